//! Hosts that change their links.

use lastmile::time::Time;

use super::{Check, Checked};
use crate::scenario::{HandoffSpec, Scenario};

/// Routes that hand-offs change in all.
const MAX_CHANGED: usize = 1_000_000;

impl Check<'_> {
    pub(super) fn handoffs(&self, scenario: &mut Scenario) -> Checked<()> {
        let edges = scenario.edges();
        let mut changed = 0;
        let mut planned = Vec::new();
        for (index, raw) in self.raw.handoff.iter().enumerate() {
            let own = format!("handoff[{index}]");
            let host = self.host(scenario, &format!("{own}.host"), &raw.host)?;
            let path = format!("{own}.to");
            let to = (0..scenario.vertices()).find(|&at| scenario.vertex_name(at) == raw.to);
            let joined = |to: &usize| {
                let has = |from, to| edges.iter().any(|edge| (edge.from, edge.to) == (from, to));
                has(host, *to) && has(*to, host)
            };
            let Some(to) = to.filter(joined) else {
                return self
                    .refuse(&path, format!("nothing joins {:?} and {:?} both ways", raw.host, raw.to));
            };
            changed +=
                1 + scenario.traffic.iter().filter(|flow| flow.from == host || flow.to == host).count();
            self.ensure(changed <= MAX_CHANGED, || (&own, format!("more than {MAX_CHANGED} routes change")))?;
            planned.push((HandoffSpec { at: Time::ZERO + raw.at, host, to, old_queue: raw.old_queue }, path));
        }
        planned.sort_by_key(|(handoff, _)| handoff.at);
        scenario.handoffs = planned.iter().map(|(handoff, _)| handoff.clone()).collect();
        let traffic = scenario.traffic.iter().map(|flow| (flow.from, flow.to, flow.tcp.is_some()));
        let talks = scenario.conversations().into_iter().map(|talk| (talk.from.0, talk.to.0, true));
        let ends: Vec<_> = traffic.chain(talks).collect();
        for ((handoff, path), ways) in planned.iter().zip(scenario.ways_after_handoffs()) {
            let cut = |&&(from, to, both): &&(usize, usize, bool)| {
                (from == handoff.host || to == handoff.host)
                    && (ways.path(from, to).is_none() || both && ways.path(to, from).is_none())
            };
            if let Some(&(from, to, _)) = ends.iter().find(cut) {
                let (from, to) = (scenario.vertex_name(from), scenario.vertex_name(to));
                let reason = format!("no path leads from {from} to {to} and back after this hand-off");
                return self.refuse(path, reason);
            }
        }
        Ok(())
    }
}
