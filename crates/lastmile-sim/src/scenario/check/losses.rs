//! Channels on links, and the flows that they are for.

use std::collections::{BTreeMap, BTreeSet};

use toml::Spanned;

use super::link::Direction;
use super::{Check, Checked};
use crate::network::link::LinkConfigError;
use crate::network::loss::{ErrorModel, Loss};
use crate::scenario::Scenario;
use crate::scenario::raw::{RawLoss, RawTraffic};

impl Check<'_> {
    /// The channels of a direction, and for each the flows that it is for.
    pub(super) fn losses(
        &self,
        raw: &[Spanned<RawLoss>],
        of: Direction,
    ) -> Checked<(Vec<Loss>, Vec<Vec<usize>>)> {
        let (mut losses, mut flows) = (Vec::new(), Vec::new());
        let mut names = BTreeSet::new();
        let list = self.link_key(of, "losses");
        for (index, spanned) in raw.iter().enumerate() {
            let one = spanned.get_ref();
            if let Some(name) = one.name.as_ref().filter(|name| name.get_ref().is_empty()) {
                return self.error(name.span(), "an empty name: leave it out");
            }
            // Two of one name would lose the same packets.
            let name = one.name.as_ref().map(|name| name.get_ref().clone());
            if !names.insert(name.clone().unwrap_or_else(|| index.to_string())) {
                let at = one.name.as_ref().map_or(spanned.span(), Spanned::span);
                return self.error(
                    at,
                    "another channel of this link has this name: they would draw the same numbers",
                );
            }
            let loss = Loss {
                model: one.model.clone(),
                place: one.place,
                flows: Vec::new(),
                name: name.unwrap_or_default(),
            };
            if let Err(LinkConfigError { key, reason }) = loss.check() {
                return self.refuse(&format!("{list}[{index}].model.{key}"), reason);
            }
            let covers = format!("{list}[{index}].model.covers");
            if matches!(&loss.model, ErrorModel::Pattern(pattern) if pattern.slot.is_none())
                && self.place.has(&covers)
            {
                return self.refuse(&covers, "means nothing without `slot`: packets are counted");
            }
            losses.push(loss);
            flows.push(self.named_flows(one.flows.as_deref(), &format!("{list}[{index}].flows"))?);
        }
        Ok((losses, flows))
    }

    fn named_flows(&self, names: Option<&[Spanned<String>]>, list: &str) -> Checked<Vec<usize>> {
        if names.is_some_and(<[_]>::is_empty) {
            return self.refuse(list, "an empty list: leave it out for all packets, or the channel for none");
        }
        let mut flows = Vec::new();
        let mut seen = BTreeSet::new();
        for flow in names.into_iter().flatten() {
            match self.traffic_by_name().get(flow.get_ref().as_str()) {
                Some(found) if !seen.insert(*found) => {
                    return self.error(flow.span(), format!("{:?} is named twice", flow.get_ref()));
                }
                Some(&found) => flows.push(found),
                None => {
                    return self.error(flow.span(), format!("no traffic is called {:?}", flow.get_ref()));
                }
            }
        }
        Ok(flows)
    }

    /// The place of each flow in the file.
    fn traffic_by_name(&self) -> &BTreeMap<String, usize> {
        self.traffic_by_name.get_or_init(|| {
            let name = |(index, raw): (usize, &Spanned<RawTraffic>)| {
                let own = raw.get_ref().name.as_ref().map(|name| name.get_ref().clone());
                (own.unwrap_or_else(|| format!("traffic{index}")), index)
            };
            self.raw.traffic.iter().enumerate().map(name).collect()
        })
    }

    /// Refuses a channel for flows that do not come by, in no direction that has it.
    pub(super) fn losses_met(&self, scenario: &Scenario) -> Checked<()> {
        // By flow, so that the path of each is looked for once: the links whose channels name it, and the places of the
        // channel and the name there.
        let mut named: BTreeMap<usize, Vec<(usize, usize, usize)>> = BTreeMap::new();
        for (link, spec) in scenario.links.iter().enumerate() {
            for (channel, flows) in spec.loss_flows.iter().enumerate() {
                for (at, &flow) in flows.iter().enumerate() {
                    named.entry(flow).or_default().push((link, channel, at));
                }
            }
        }
        let directions = if named.is_empty() { Vec::new() } else { self.directions() };
        for (flow, places) in named {
            let Some(flow) = scenario.traffic.get(flow) else { continue };
            let path = self.path(scenario, flow.from, flow.to).unwrap_or_default();
            let path: BTreeSet<usize> = path.into_iter().collect();
            for (link, channel, at) in places {
                let Some(&of) = directions.get(link) else { continue };
                let other = Direction { back: !of.back, ..of };
                // A list that both directions have is met where either is.
                let beside = if of.back { link.checked_sub(1) } else { Some(link + 1) };
                let list = self.link_key(of, "losses");
                let shared =
                    !self.raw.link[of.link].get_ref().one_way && self.link_key(other, "losses") == list;
                if !path.contains(&link) && !beside.is_some_and(|beside| shared && path.contains(&beside)) {
                    let reason = format!("packets of {:?} do not come by this link", flow.name);
                    return self.refuse(&format!("{list}[{channel}].flows[{at}]"), reason);
                }
            }
        }
        Ok(())
    }
}
