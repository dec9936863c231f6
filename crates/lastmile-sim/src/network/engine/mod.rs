//! [`Engine`]: the discrete-event engine that drives nodes in virtual time, or paced by whoever calls it.
//!
//! Every node has at most one valid wake; the engine skips stale ones. Wakes at equal times come in the order of their requests. A
//! packet that leaves a node is handed on at once until a node keeps it: a hop costs one wake, that of its link. Routers do nothing
//! in time, so they are tables that the engine consults on the way.

use std::collections::{BTreeMap, VecDeque};

use lastmile::endpoint::{AnyEndpoint, Event};
use lastmile::node::{Datagram, Input, Node};
use lastmile::time::Time;

use crate::network::element::Element;
use crate::network::event_queue::{EventQueue, Key, MAX_NODES};
use crate::network::host::Egress;
use crate::network::packets::{Packets, Parcel};

mod budget;
mod meters;
mod routes;
mod step;
mod taps;
#[cfg(test)]
mod tests;
mod types;
mod view;

pub use budget::Budget;
use budget::Ledger;
pub use routes::RouteChange;
use routes::{Hop, Routes};
use taps::Taps;
pub use taps::{DecisionTap, LostTap, Tap};
pub use types::{EngineError, NodeId, RouterId, Target};

/// The engine calls itself stuck after so many wakes and hand-overs at one moment.
const STUCK_AFTER: u64 = 10_000_000;
/// As many more for each packet that is under way when these are spent: where a link's delay shrinks, all that are on
/// it may arrive at once, and go on over links without any delay.
const STUCK_AFTER_EACH: u64 = 64;

/// The engine's state of a node, on one cache line.
#[derive(Debug)]
#[repr(align(64))]
struct Slot {
    element: Element,
    /// Target of all ports, unless `ports` has one for each.
    target: Target,
    by_port: bool,
    /// The valid wake, and its entry in the queue: the same time, or an earlier one.
    wanted: Key,
    queued: Key,
}

/// The engine. See the [module](self) for how it works, and [`scenario::build`](crate::scenario::build) for how
/// to have one made from a file; `examples/dumbbell.rs` makes one by hand.
#[derive(Debug, Default)]
pub struct Engine {
    now: Time,
    slots: Vec<Slot>,
    routes: Routes,
    /// Their planned changes, in order.
    planned: VecDeque<(Time, RouteChange)>,
    /// The targets of nodes whose ports differ.
    ports: BTreeMap<usize, Vec<Target>>,
    queue: EventQueue,
    seq: u64,
    /// Wakes and hand-overs at `now`.
    at_once: u64,
    /// Wakes beyond [`STUCK_AFTER`] that are allowed at the last moment that was checked.
    at_once_more: Option<(Time, u64)>,
    executed: u64,
    unroutable: u64,
    /// Packets under way on links.
    packets: Packets,
    aside: VecDeque<(Hop, Parcel)>,
    events: Vec<(Time, Event)>,
    /// The external hosts: a pump looks at their arrivals after each event.
    externals: Vec<usize>,
    taps: Taps,
    ledger: Ledger,
    /// Nodes' names for errors.
    names: BTreeMap<usize, String>,
}

impl Engine {
    /// An engine without nodes, at the start of the run.
    pub fn new() -> Engine {
        Engine::default()
    }

    #[inline]
    fn is_stuck(&mut self) -> bool {
        self.at_once > STUCK_AFTER && self.has_no_more()
    }

    /// True if packets under way do not explain the wakes. Checked once a moment: an endless loop may also add packets
    /// without end.
    #[cold]
    fn has_no_more(&mut self) -> bool {
        let more = match self.at_once_more {
            Some((at, more)) if at == self.now => more,
            _ => STUCK_AFTER_EACH * self.packets.places() as u64,
        };
        self.at_once_more = Some((self.now, more));
        self.at_once > STUCK_AFTER + more
    }

    /// Adds a node. It is first polled when time starts to run.
    pub fn add(&mut self, element: impl Into<Element>) -> Result<NodeId, EngineError> {
        let node = self.slots.len();
        if node >= MAX_NODES {
            return Err(EngineError::TooManyNodes);
        }
        let element = element.into();
        if let Element::External(_) = element {
            self.externals.push(node);
        }
        self.slots.push(Slot {
            element,
            target: Target::Nowhere,
            by_port: false,
            wanted: Key::NONE,
            queued: Key::NONE,
        });
        self.want(node, Some(self.now));
        Ok(NodeId(node as u32))
    }

    /// The engine's time: the last `end` of [`run_until`](Engine::run_until).
    pub fn now(&self) -> Time {
        self.now
    }

    /// Time of the next event, if nothing is injected before.
    pub fn next_event(&mut self) -> Option<Time> {
        let planned = self.planned.front().map(|planned| planned.0);
        self.settle().map(Key::at).into_iter().chain(planned).min()
    }

    /// Handles all events up to and at `end`, and sets the engine's time to `end`. An `end` that has
    /// passed does nothing.
    pub fn run_until(&mut self, end: Time) -> Result<(), EngineError> {
        loop {
            let next = self.settle();
            let at = next.map_or(Time::MAX, Key::at);
            if self.planned.front().is_some_and(|planned| planned.0 <= at.min(end)) {
                self.change_routes();
                continue;
            }
            let Some(key) = next.filter(|_| at <= end) else { break };
            self.queue.pop();
            let node = key.node();
            if key.at() > self.now {
                self.now = key.at();
                if self.ledger.pass(core::mem::take(&mut self.at_once)) {
                    self.look(node)?;
                }
            }
            let slot = &mut self.slots[node];
            (slot.wanted, slot.queued) = (Key::NONE, Key::NONE);
            slot.element.handle(self.now, Input::Wake);
            self.executed += 1;
            self.drain(node, 0);
            while let Some((hop, parcel)) = self.aside.pop_front() {
                self.hand_over(hop, parcel, 0);
                if self.is_stuck() {
                    return Err(self.stuck(hop.node()));
                }
            }
            if self.is_stuck() {
                return Err(self.stuck(node));
            }
        }
        if end > self.now {
            self.now = end;
            self.ledger.pass(core::mem::take(&mut self.at_once));
        }
        Ok(())
    }

    /// Sets the node's name in errors.
    pub fn call(&mut self, node: NodeId, name: impl Into<String>) {
        self.names.insert(node.0 as usize, name.into());
    }

    fn name(&self, node: usize) -> String {
        self.names.get(&node).cloned().unwrap_or_else(|| format!("node {node}"))
    }

    fn stuck(&self, node: usize) -> EngineError {
        EngineError::Stuck { at: self.now, node: node as u32, name: self.name(node), wakes: self.at_once }
    }

    /// Injects a packet at an external host's interface, at `at`, or at once if that has passed. The address decides its flow;
    /// packets to unknown addresses are dropped and counted.
    pub fn inject(&mut self, host: NodeId, at: Time, datagram: Datagram) -> Result<(), EngineError> {
        let now = self.now;
        let node = host.0 as usize;
        match self.slots.get_mut(node).map(|slot| &mut slot.element) {
            Some(Element::External(external)) => external.inject(at.max(now), datagram),
            _ => return Err(EngineError::NotExternal(host.0)),
        }
        // An earlier time alone moves the wake.
        if self.slots[node].wanted.at() > at.max(now) {
            self.want(node, Some(at.max(now)));
        }
        Ok(())
    }

    /// [Interrupts](Input::Interrupted) a host's endpoints at the engine's time; other nodes get nothing.
    pub fn interrupt(&mut self, host: NodeId) {
        let (node, now) = (host.0 as usize, self.now);
        if let Some(Slot { element: Element::Host(endpoint), .. }) = self.slots.get_mut(node) {
            endpoint.handle(now, Input::Interrupted);
            self.drain(node, 0);
        }
    }

    /// Takes a host's endpoints out, in the order of its seats, to look at them after a run; other nodes have none.
    pub fn take_endpoints(&mut self, host: NodeId) -> Vec<AnyEndpoint> {
        match self.slots.get_mut(host.0 as usize) {
            Some(Slot { element: Element::Host(host), .. }) => host.take_endpoints().collect(),
            _ => Vec::new(),
        }
    }

    /// True if the endpoint at this seat of a host has finished, if there is no such seat, and for other nodes.
    pub(crate) fn is_finished(&self, host: NodeId, seat: usize) -> bool {
        match self.slots.get(host.0 as usize) {
            Some(Slot { element: Element::Host(host), .. }) => host.is_finished(seat),
            _ => true,
        }
    }

    /// Moves the packets that reached external hosts to the end of `out`, ordered by the time they are due.
    pub fn take_egress(&mut self, out: &mut Vec<Egress>) {
        let from = out.len();
        for &host in &self.externals {
            if let Element::External(external) = &mut self.slots[host].element {
                while let Some((at, datagram)) = external.pop_egress() {
                    out.push(Egress { host: host as u16, at, datagram });
                }
            }
        }
        if let Some(added) = out.get_mut(from..) {
            added.sort_by_key(|egress| egress.at);
        }
    }

    /// Takes the decisions of endpoints so far, ordered by the engine's time, node and sequence. Their own
    /// `at` is on the clock of the host that decided.
    pub fn take_events(&mut self) -> Vec<Event> {
        self.events.sort_by_key(|(at, event)| (*at, event.node, event.seq));
        self.events.drain(..).map(|(_, event)| event).collect()
    }

    /// Wakes so far.
    pub fn executed(&self) -> u64 {
        self.executed
    }

    /// Packets that met a router without a route for their flow, or a port that leads nowhere.
    pub fn unroutable(&self) -> u64 {
        self.unroutable
    }
}
