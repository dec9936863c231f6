//! Hosts that change their links.

use lastmile::time::{Span, Time};
use toml::Spanned;

use super::{Check, Checked};
use crate::scenario::{HandoffSpec, Scenario};

/// Hand-offs of one scenario, and routes that they change in all.
const MAX_HANDOFFS: usize = 200;
const MAX_CHANGED: usize = 1_000_000;

impl Check<'_> {
    pub(super) fn handoffs(&self, scenario: &mut Scenario) -> Checked<()> {
        if let Some(more) = self.raw.handoff.get(MAX_HANDOFFS) {
            return self.error(more.span(), format!("more than {MAX_HANDOFFS} hand-offs"));
        }
        let edges = scenario.edges();
        let mut changed = 0;
        let mut planned = Vec::new();
        for spanned in &self.raw.handoff {
            let raw = spanned.get_ref();
            let at = Time::ZERO + self.not_negative(Some(&raw.at))?.unwrap_or(Span::ZERO);
            let host = self.host(scenario, &raw.host)?;
            let to = (0..scenario.vertices()).find(|&at| scenario.vertex_name(at) == raw.to.get_ref());
            let joined = |to: &usize| {
                let has = |from, to| edges.iter().any(|edge| (edge.from, edge.to) == (from, to));
                has(host, *to) && has(*to, host)
            };
            let Some(to) = to.filter(joined) else {
                let (host, to) = (raw.host.get_ref(), raw.to.get_ref());
                return self.error(raw.to.span(), format!("nothing joins {host:?} and {to:?} both ways"));
            };
            let flows = scenario.traffic.iter().filter(|flow| flow.from == host || flow.to == host).count();
            changed += flows + 1;
            if changed > MAX_CHANGED {
                return self.error(spanned.span(), format!("more than {MAX_CHANGED} routes change"));
            }
            planned.push((HandoffSpec { at, host, to, old_queue: raw.old_queue }, &raw.to));
        }
        planned.sort_by_key(|(handoff, _)| handoff.at);
        scenario.handoffs = planned.iter().map(|(handoff, _)| handoff.clone()).collect();
        for ((handoff, name), ways) in planned.iter().zip(scenario.ways_after_handoffs()) {
            let traffic = scenario.traffic.iter().map(|flow| (flow.from, flow.to, flow.tcp.is_some()));
            let talks = scenario.conversations();
            let talks = talks.iter().map(|talk| (talk.from.0, talk.to.0, true));
            let own = |(from, to, both): (usize, usize, bool)| {
                let is = from == handoff.host || to == handoff.host;
                let cut = is && (ways.path(from, to).is_none() || both && ways.path(to, from).is_none());
                cut.then_some((from, to))
            };
            if let Some((from, to)) = traffic.chain(talks).find_map(own) {
                let (from, to) = (scenario.vertex_name(from), scenario.vertex_name(to));
                return self.error(
                    Spanned::span(name),
                    format!("no path leads from {from} to {to} and back after this hand-off"),
                );
            }
        }
        Ok(())
    }
}
