//! Hand-offs: from a scenario's plan to changes of the engine's routes.

use std::collections::{BTreeMap, BTreeSet};

use lastmile::node::{Flow, PortId};
use lastmile::time::Time;

use super::routes::Ways;
use super::{OldQueue, Scenario};
use crate::network::engine::{Engine, NodeId, RouteChange, RouterId};

/// A flow with its ends, and where it leaves the network.
pub(super) type Routed = (usize, usize, Flow, NodeId);

impl Scenario {
    /// True if the path between two hosts changes during the run.
    pub fn path_changes(&self, from: usize, to: usize) -> bool {
        self.handoffs.iter().any(|handoff| [from, to].contains(&handoff.host))
    }

    /// The paths between two hosts as [`path`](Scenario::path) gives them, each with the time from which on it is in use.
    pub fn paths(&self, from: usize, to: usize) -> Vec<(Time, Vec<usize>)> {
        let first = (Time::ZERO, self.path(from, to).unwrap_or_default());
        let later = self.handoffs.iter().zip(self.ways_after_handoffs());
        let later = later.filter(|(handoff, _)| [from, to].contains(&handoff.host));
        let later = later.map(|(handoff, ways)| (handoff.at, ways.path(from, to).unwrap_or_default()));
        core::iter::once(first).chain(later).collect()
    }

    /// The ways of the network after each hand-off, in their order.
    pub(super) fn ways_after_handoffs(&self) -> impl Iterator<Item = Ways> {
        let mut neighbours = BTreeMap::new();
        self.handoffs.iter().map(move |handoff| {
            neighbours.insert(handoff.host, handoff.to);
            let elsewhere = |host: usize, to: usize| neighbours.get(&host).is_some_and(|own| *own != to);
            let mut edges = self.edges();
            for edge in &mut edges {
                if elsewhere(edge.from, edge.to) || elsewhere(edge.to, edge.from) {
                    // It leads nowhere, and the others keep their numbers.
                    edge.to = edge.from;
                }
            }
            Ways::new(edges, self.vertices(), self.hosts.len())
        })
    }
}

/// Has the engine change the routes of `flows` at every hand-off. `hop` says where a link, or a direction of a WLAN, begins.
pub(super) fn plan(
    scenario: &Scenario,
    engine: &mut Engine,
    routers: &[RouterId],
    hop: impl Fn(usize) -> (NodeId, PortId),
    flows: &[Routed],
) {
    if scenario.handoffs.is_empty() {
        return;
    }
    let ways = scenario.ways();
    let path = |ways: &Ways, flow: &Routed| ways.path(flow.0, flow.1).unwrap_or_default();
    let mut paths: Vec<Vec<usize>> = flows.iter().map(|flow| path(&ways, flow)).collect();
    let mut gone = BTreeSet::new();
    for (handoff, ways) in scenario.handoffs.iter().zip(scenario.ways_after_handoffs()) {
        let mut change = RouteChange::default();
        let mut before = BTreeSet::new();
        for (flow, own) in flows.iter().zip(&mut paths) {
            if flow.0 != handoff.host && flow.1 != handoff.host {
                continue;
            }
            before.extend(own.iter().copied());
            *own = path(&ways, flow);
            for &link in own.iter() {
                let (node, port) = hop(link);
                change.routes.push((routers[ways.edges[link].from], flow.2, node, port));
            }
        }
        let used: BTreeSet<usize> = paths.iter().flatten().copied().collect();
        let back: Vec<usize> = gone.intersection(&used).copied().collect();
        change.entered.extend(back.iter().map(|&link| hop(link)));
        back.iter().for_each(|link| _ = gone.remove(link));
        if handoff.old_queue == OldQueue::Drop {
            let left: Vec<usize> = before.difference(&used).copied().collect();
            change.left.extend(left.iter().map(|&link| hop(link)));
            gone.extend(left);
        }
        engine.plan_routes(handoff.at, change);
    }
}
