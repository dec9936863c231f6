//! Routes: each node's packets go to one node, or by their flow's route.

use std::collections::BTreeMap;

use lastmile::node::{Flow, PortId};
use lastmile::time::Time;

use super::{Engine, EngineError, NodeId, RouterId, Target, types};
use crate::network::event_queue::MAX_NODES;

/// A packet's next node and port, in one word of a routing table: the port above the node's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hop(u32);

impl Hop {
    /// No node: one beyond the last port.
    const NONE: Hop = Hop(u32::MAX);

    pub(super) fn new(node: NodeId, port: PortId) -> Hop {
        Hop(u32::from(port.0.min(types::MAX_PORTS - 1)) << NODE_BITS | node.0)
    }
    #[inline]
    pub(super) fn node(self) -> usize {
        self.0 as usize & (MAX_NODES - 1)
    }
    #[inline]
    pub(super) fn port(self) -> PortId {
        PortId((self.0 >> NODE_BITS) as u16)
    }
}

const NODE_BITS: u32 = MAX_NODES.trailing_zeros();

/// Routers that a flow passes whose hops lie side by side.
const NEAR: usize = 4;
const NO_ROUTER: u32 = u32::MAX;

/// The routing tables, by flow: tables by router would touch another place in memory for every hop of every
/// flow.
#[derive(Debug, Default)]
pub(super) struct Routes {
    routers: u32,
    /// The hops from the first few routers of each flow, half a cache line.
    near: Vec<[(u32, Hop); NEAR]>,
    /// Those from further ones.
    far: BTreeMap<(Flow, RouterId), Hop>,
}

impl Routes {
    fn set(&mut self, router: RouterId, flow: Flow, hop: Hop) {
        let number = flow.0 as usize;
        if self.near.len() <= number {
            self.near.resize(number + 1, [(NO_ROUTER, Hop::NONE); NEAR]);
        }
        let legs = &mut self.near[number];
        match legs.iter_mut().find(|(at, _)| *at == router.0 || *at == NO_ROUTER) {
            Some(leg) => *leg = (router.0, hop),
            None => {
                self.far.insert((flow, router), hop);
            }
        }
    }

    #[inline]
    pub(super) fn hop(&self, router: RouterId, flow: Flow) -> Option<Hop> {
        let legs = self.near.get(flow.0 as usize)?;
        // All are compared: the right one changes from packet to packet, and no branch would foresee it.
        let chosen = |&(at, hop): &(u32, Hop)| u32::from(at == router.0).wrapping_neg() & !hop.0;
        let found = Hop(!legs.iter().map(chosen).fold(0, |found, hop| found | hop));
        if found != Hop::NONE { Some(found) } else { self.far.get(&(flow, router)).copied() }
    }
}

/// Other routes from some time on.
#[derive(Clone, Debug, Default)]
pub struct RouteChange {
    /// Table, flow, and the node and port that it goes to.
    pub routes: Vec<(RouterId, Flow, NodeId, PortId)>,
    /// Nodes and ports that carry nothing any more: they drop waiting packets and later ones.
    pub left: Vec<(NodeId, PortId)>,
    /// Nodes and ports that carry packets again.
    pub entered: Vec<(NodeId, PortId)>,
}

impl Engine {
    /// Plans a change of routes; it precedes all other events of its time. Callers plan changes in order.
    pub fn plan_routes(&mut self, at: Time, change: RouteChange) {
        self.planned.push_back((at, change));
    }

    /// Makes the next planned change.
    #[cold]
    pub(super) fn change_routes(&mut self) {
        let Some((at, change)) = self.planned.pop_front() else { return };
        if at > self.now {
            self.now = at;
            // The budget is checked after the next event.
            self.ledger.pass(core::mem::take(&mut self.at_once));
        }
        let now = self.now.as_nanos();
        for (router, flow, to, port) in change.routes {
            self.route_port(router, flow, to, port);
        }
        let left = change.left.into_iter().map(|at| (at, true));
        for ((node, port), left) in left.chain(change.entered.into_iter().map(|at| (at, false))) {
            let slot = self.slots.get_mut(node.0 as usize);
            if let Some(carrier) = slot.and_then(|slot| slot.element.carrier_mut()) {
                carrier.leave(&mut self.packets, now, port, left);
                // A wake at this moment lets the node ask for its next one.
                self.want(node.0 as usize, Some(self.now));
            }
        }
    }

    /// Sends all packets of `node` to `target`, whatever their port.
    pub fn connect(&mut self, node: NodeId, target: Target) {
        if let Some(slot) = self.slots.get_mut(node.0 as usize) {
            (slot.target, slot.by_port) = (target, false);
        }
    }

    /// Sends the packets that leave `node` by `port` to `target`; other ports keep the target of
    /// [`connect`](Engine::connect).
    pub fn connect_port(&mut self, node: NodeId, port: PortId, target: Target) -> Result<(), EngineError> {
        if port.0 >= types::MAX_PORTS {
            return Err(EngineError::TooManyPorts(port.0));
        }
        if let Some(slot) = self.slots.get_mut(node.0 as usize) {
            slot.by_port = true;
            let ports = self.ports.entry(node.0 as usize).or_default();
            let port = usize::from(port.0);
            if ports.len() <= port {
                ports.resize(port + 1, slot.target);
            }
            ports[port] = target;
        }
        Ok(())
    }

    /// Routes `flow` from that table to that node.
    pub fn route(&mut self, router: RouterId, flow: Flow, to: NodeId) {
        self.route_port(router, flow, to, PortId(0));
    }

    /// Routes `flow` from that table to that port of that node; a port beyond the last counts as the last.
    pub fn route_port(&mut self, router: RouterId, flow: Flow, to: NodeId, port: PortId) {
        self.routes.set(router, flow, Hop::new(to, port));
    }

    /// Adds a routing table in which no flow has a route.
    pub fn add_router(&mut self) -> RouterId {
        self.routes.routers += 1;
        RouterId(self.routes.routers - 1)
    }

    #[inline]
    pub(super) fn next_hop(&self, node: usize, port: PortId, flow: Flow) -> Option<Hop> {
        let slot = &self.slots[node];
        let target = if slot.by_port { self.port_target(node, port) } else { slot.target };
        let hop = match target {
            Target::Nowhere => return None,
            Target::Node(next) => Hop(next.0),
            Target::Port(next, port) => Hop::new(next, port),
            Target::Router(router) => self.routes.hop(router, flow)?,
        };
        (hop.node() < self.slots.len()).then_some(hop)
    }

    fn port_target(&self, node: usize, port: PortId) -> Target {
        let ports = self.ports.get(&node);
        ports.and_then(|ports| ports.get(usize::from(port.0))).copied().unwrap_or(self.slots[node].target)
    }
}
