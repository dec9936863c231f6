//! [`Engine`]: the discrete-event engine that drives nodes in virtual time, or paced by whoever calls it.
//!
//! Every node has at most one wake that counts; one that it no longer wants is skipped when it comes up. Equal times are woken in
//! the order in which they were asked for. A packet that leaves a node is handed on at once until some node keeps it: a hop costs
//! one wake, of the link that it crosses. Routers are tables that are consulted on the way, since they do nothing in time.

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

/// Packets handed over and wakes at one moment, after which an engine calls itself stuck.
const STUCK_AFTER: u64 = 10_000_000;
/// As many more for each packet that is under way when these are spent: where a link's delay shrinks, all that are on
/// it may arrive at once, and go on over links without any delay.
const STUCK_AFTER_EACH: u64 = 64;

/// What the engine has of a node, on one cache line.
#[derive(Debug)]
#[repr(align(64))]
struct Slot {
    element: Element,
    /// Where what leaves goes, whatever the port, unless `ports` is the way.
    target: Target,
    by_port: bool,
    /// The wake that counts, and the one in the queue that stands for it: the same, or an earlier one.
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
    /// Changes of them that are to come, in order.
    planned: VecDeque<(Time, RouteChange)>,
    /// The targets of nodes whose ports differ.
    ports: BTreeMap<usize, Vec<Target>>,
    queue: EventQueue,
    seq: u64,
    /// Wakes and hand-overs at `now`.
    at_once: u64,
    /// How many more than [`STUCK_AFTER`] there may be at that moment, the last one of which that was asked.
    at_once_more: Option<(Time, u64)>,
    executed: u64,
    unroutable: u64,
    /// What is on its way over links.
    packets: Packets,
    aside: VecDeque<(Hop, Parcel)>,
    events: Vec<(Time, Event)>,
    /// The external hosts, since a pump asks after each event what reached them.
    externals: Vec<usize>,
    taps: Taps,
    ledger: Ledger,
    /// What nodes are called in errors.
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

    /// Whether what is under way explains no more. That is looked at once in a moment: what goes on for ever may also
    /// become more for ever.
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

    /// The engine's time: what [`run_until`](Engine::run_until) was last told.
    pub fn now(&self) -> Time {
        self.now
    }

    /// When something will happen next, if nothing is injected before.
    pub fn next_event(&mut self) -> Option<Time> {
        let planned = self.planned.front().map(|planned| planned.0);
        self.settle().map(Key::at).into_iter().chain(planned).min()
    }

    /// Lets everything happen up to `end` and at it, and sets the engine's time to `end`. An `end` that has
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

    /// Gives a node the name that errors call it by.
    pub fn call(&mut self, node: NodeId, name: impl Into<String>) {
        self.names.insert(node.0 as usize, name.into());
    }

    fn name(&self, node: usize) -> String {
        self.names.get(&node).cloned().unwrap_or_else(|| format!("node {node}"))
    }

    fn stuck(&self, node: usize) -> EngineError {
        EngineError::Stuck { at: self.now, node: node as u32, name: self.name(node), wakes: self.at_once }
    }

    /// Has a packet enter the network at an external host's interface, at `at` or, where that has passed, now.
    /// Its address decides the flow; to an unknown one it is dropped and counted.
    pub fn inject(&mut self, host: NodeId, at: Time, datagram: Datagram) -> Result<(), EngineError> {
        let now = self.now;
        let node = host.0 as usize;
        match self.slots.get_mut(node).map(|slot| &mut slot.element) {
            Some(Element::External(external)) => external.inject(at.max(now), datagram),
            _ => return Err(EngineError::NotExternal(host.0)),
        }
        // Only an earlier time than the wake it has moves it.
        if self.slots[node].wanted.at() > at.max(now) {
            self.want(node, Some(at.max(now)));
        }
        Ok(())
    }

    /// Tells a host's endpoints that they are [interrupted](Input::Interrupted), at the engine's time. Other nodes are not
    /// told anything.
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

    /// Whether the endpoint that has this place among a host's seats has finished; true of other nodes and of no seat.
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
