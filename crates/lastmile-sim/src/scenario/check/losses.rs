//! Channels on links, and the flows that they are for.

use std::collections::{BTreeMap, BTreeSet};

use super::link::Direction;
use super::{Check, Checked};
use crate::network::ConfigError;
use crate::network::loss::{ErrorModel, Loss};
use crate::scenario::Scenario;
use crate::scenario::raw::RawLoss;

impl Check<'_> {
    /// The channels of a direction, and for each the names of the flows that it is for.
    pub(super) fn losses(&self, raw: &[RawLoss], of: Direction) -> Checked<(Vec<Loss>, Vec<Vec<String>>)> {
        let (mut losses, mut flows) = (Vec::new(), Vec::new());
        let mut names = BTreeSet::new();
        let list = self.link_key(of, "losses");
        for (index, one) in raw.iter().enumerate() {
            let key = |key: &str| format!("{list}[{index}].{key}");
            let name = one.name.clone().unwrap_or_default();
            let nameless = one.name.is_some() && name.is_empty();
            self.ensure(!nameless, || (key("name"), "an empty name: leave it out"))?;
            let own = if one.name.is_some() { name.clone() } else { index.to_string() };
            self.ensure(names.insert(own), || {
                let path = if one.name.is_some() { key("name") } else { format!("{list}[{index}]") };
                (path, "another channel of this link has this name: they would draw the same numbers")
            })?;
            let loss = Loss { model: one.model.clone(), place: one.place, flows: Vec::new(), name };
            if let Err(ConfigError { key: wrong, reason }) = loss.check() {
                return self.refuse(&key(&format!("model.{wrong}")), reason);
            }
            let counts = matches!(&loss.model, ErrorModel::Pattern(pattern) if pattern.slot.is_none());
            self.ensure(!counts || !self.file.has(&key("model.covers")), || {
                (key("model.covers"), "means nothing without `slot`: packets are counted")
            })?;
            losses.push(loss);
            flows.push(self.flows_named(one.flows.as_deref(), &key("flows"))?);
        }
        Ok((losses, flows))
    }

    fn flows_named(&self, names: Option<&[String]>, list: &str) -> Checked<Vec<String>> {
        self.ensure(names.is_none_or(|names| !names.is_empty()), || {
            (list, "an empty list: leave it out for all packets, or the channel for none")
        })?;
        let mut seen = BTreeSet::new();
        for (index, flow) in names.unwrap_or_default().iter().enumerate() {
            let twice = || (format!("{list}[{index}]"), format!("{flow:?} is named twice"));
            self.ensure(seen.insert(flow), twice)?;
        }
        Ok(names.unwrap_or_default().to_vec())
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
            let shared = !self.raw.link[of.link].one_way && self.link_key(other, "losses") == list;
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
