//! Channels on links, and the flows that they are for.

use std::collections::{BTreeMap, BTreeSet};

use toml::Spanned;

use super::link::Direction;
use super::{Check, Checked};
use crate::network::ConfigError;
use crate::network::loss::{ErrorModel, Loss};
use crate::scenario::Scenario;
use crate::scenario::raw::RawLoss;

impl Check<'_> {
    /// The channels of a direction, and for each the names of the flows that it is for.
    pub(super) fn losses(
        &self,
        raw: &[Spanned<RawLoss>],
        of: Direction,
    ) -> Checked<(Vec<Loss>, Vec<Vec<String>>)> {
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
            if let Err(ConfigError { key, reason }) = loss.check() {
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

    fn named_flows(&self, names: Option<&[Spanned<String>]>, list: &str) -> Checked<Vec<String>> {
        if names.is_some_and(<[_]>::is_empty) {
            return self.refuse(list, "an empty list: leave it out for all packets, or the channel for none");
        }
        let mut flows = Vec::new();
        let mut seen = BTreeSet::new();
        for flow in names.into_iter().flatten() {
            if !seen.insert(flow.get_ref()) {
                return self.error(flow.span(), format!("{:?} is named twice", flow.get_ref()));
            }
            flows.push(flow.get_ref().clone());
        }
        Ok(flows)
    }

    /// Refuses a channel for flows that there are not, or that do not come by in any direction that has it.
    pub(super) fn losses_met(&self, scenario: &Scenario) -> Checked<()> {
        if scenario.links.iter().all(|link| link.loss_flows.iter().all(Vec::is_empty)) {
            return Ok(());
        }
        let (directions, ends) = (self.directions(), scenario.named_flows());
        // By flow, so that the path of each is looked for once.
        let mut paths: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
        for (link, (spec, &of)) in scenario.links.iter().zip(&directions).enumerate() {
            if spec.loss_flows.iter().all(Vec::is_empty) {
                continue;
            }
            let list = self.link_key(of, "losses");
            let other = Direction { back: !of.back, ..of };
            // A list that both directions have is met where either is.
            let beside = if of.back { link.checked_sub(1) } else { Some(link + 1) };
            let shared = !self.raw.link[of.link].get_ref().one_way && self.link_key(other, "losses") == list;
            for (channel, flows) in spec.loss_flows.iter().enumerate() {
                for (at, flow) in flows.iter().enumerate() {
                    let key = || format!("{list}[{channel}].flows[{at}]");
                    let Some(&(from, to)) = ends.get(flow.as_str()) else {
                        return self.refuse(&key(), format!("no traffic or stream is called {flow:?}"));
                    };
                    let path = paths.entry(flow).or_insert_with(|| {
                        self.path(scenario, from, to).unwrap_or_default().into_iter().collect()
                    });
                    if !path.contains(&link) && !beside.is_some_and(|beside| shared && path.contains(&beside))
                    {
                        return self.refuse(&key(), format!("packets of {flow:?} do not come by this link"));
                    }
                }
            }
        }
        Ok(())
    }
}
