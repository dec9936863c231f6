//! [`Engine`]: the discrete-event engine that drives nodes in virtual time, or paced by whoever calls it.
//!
//! Every node has at most one wake that counts. A node that changes its mind leaves the old one behind in the
//! queue, where it is recognised and skipped; one that asks for a later time than before keeps its place until
//! that comes up and is then moved. Equal times are woken in the order in which they were asked for.
//!
//! A packet that leaves a node at a moment is handed at once to the next, and on, until some node keeps it for
//! a later time: a hop costs one wake, of the link that it crosses. Routers are tables that the engine consults
//! on the way, by flow, since they do nothing in time.

use std::collections::{BTreeMap, VecDeque};

use lastmile::event::Event;
use lastmile::node::{Datagram, Flow, Input, Node, Output, PortId, Transmit};
use lastmile::time::Time;

use crate::element::Element;
use crate::host::{Egress, External};
use crate::path::link::Link;
use crate::queue::{EventQueue, Key, MAX_NODES};
use crate::tcp;
use crate::traffic::Sink;
use crate::wlan::Medium;

mod links;
mod meters;
mod taps;
mod types;

use taps::Taps;
pub(crate) use taps::Tell;
pub use taps::{DecisionTap, Lost, LostTap, Tap};
pub use types::{EngineError, NodeId, RouterId, Target};

/// Packets handed over and wakes at one moment, after which an engine calls itself stuck.
const STUCK_AFTER: u64 = 10_000_000;
/// Zero-delay hops that are followed on the stack before a packet is put aside.
const MAX_DEPTH: u32 = 32;

/// Where a packet enters next, in one word of a routing table: the port above the node's number.
#[derive(Clone, Copy, Debug)]
struct Hop(u32);

impl Hop {
    fn new(node: NodeId, port: PortId) -> Hop {
        Hop(u32::from(port.0.min(types::MAX_PORTS)) << NODE_BITS | node.0)
    }
    #[inline]
    fn node(self) -> usize {
        self.0 as usize & (MAX_NODES - 1)
    }
    #[inline]
    fn port(self) -> PortId {
        PortId((self.0 >> NODE_BITS) as u16)
    }
}

const NODE_BITS: u32 = MAX_NODES.trailing_zeros();

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
    decisions: u32,
}

/// The engine. See the [module](self) for how it works, and [`scenario::build`](crate::scenario::build) for how
/// to have one made from a file.
///
/// ```
/// use lastmile::{node::Flow, time::*, units::*};
/// use lastmile_sim::{engine::*, path::link::*, rng::Stream, traffic::*};
/// let mut engine = Engine::new();
/// let sink = engine.add(Sink::default())?;
/// let link = engine.add(Link::new(LinkConfig { rate: Some(Rate::ip(10_000_000)), ..Default::default() }))?;
/// let any = "10.77.0.1:9".parse().unwrap();
/// let source = engine.add(Source::new(SourceConfig {
///     arrivals: Arrivals::Cbr, rate: Rate::ip(4_000_000), ip_size: Bytes(1500),
///     start: Time::ZERO, stop: Time::from_nanos(3_000_000_000), flow: Flow(0), from: any, to: any,
/// }, Stream::new(1, "cross")))?;
/// engine.connect(source, Target::Node(link));
/// engine.connect(link, Target::Node(sink));
/// engine.run_until(Time::from_nanos(4_000_000_000))?;
/// assert_eq!(engine.sink(sink).unwrap().counters().packets, 1000);
/// # Ok::<(), EngineError>(())
/// ```
#[derive(Debug, Default)]
pub struct Engine {
    now: Time,
    slots: Vec<Slot>,
    /// Per flow, where it goes from each router on its way. So few that looking through them is quickest, and
    /// close together: a table for each router would be another place in memory for every hop of every flow.
    routes: Vec<Vec<(RouterId, Hop)>>,
    routers: u32,
    /// The targets of nodes whose ports differ.
    ports: BTreeMap<usize, Vec<Target>>,
    queue: EventQueue,
    seq: u64,
    /// Wakes and hand-overs at `now`.
    at_once: u64,
    executed: u64,
    unroutable: u64,
    aside: VecDeque<(Hop, Datagram)>,
    events: Vec<(Time, Event)>,
    /// The external hosts, since a pump asks after each event what reached them.
    externals: Vec<usize>,
    taps: Taps,
}

impl Engine {
    /// An engine without nodes, at the start of the run.
    pub fn new() -> Engine {
        Engine::default()
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
            decisions: 0,
        });
        self.want(node, Some(self.now));
        Ok(NodeId(node as u32))
    }

    /// Adds a routing table in which no flow has a route.
    pub fn add_router(&mut self) -> RouterId {
        self.routers += 1;
        RouterId(self.routers - 1)
    }

    /// Has what leaves `node` go to `target`, by whatever port.
    pub fn connect(&mut self, node: NodeId, target: Target) {
        if let Some(slot) = self.slots.get_mut(node.0 as usize) {
            (slot.target, slot.by_port) = (target, false);
        }
    }

    /// Has what leaves `node` by `port` go to `target`; ports that were given none lead where
    /// [`connect`](Engine::connect) said before.
    pub fn connect_port(&mut self, node: NodeId, port: PortId, target: Target) -> Result<(), EngineError> {
        if port.0 >= types::MAX_PORTS {
            return Err(EngineError::TooManyPorts { port: port.0 });
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

    /// Has `flow` go from that table to that node.
    pub fn route(&mut self, router: RouterId, flow: Flow, to: NodeId) {
        self.route_port(router, flow, to, PortId(0));
    }

    /// Has `flow` go from that table to that port of that node; a port beyond the last counts as the last.
    pub fn route_port(&mut self, router: RouterId, flow: Flow, to: NodeId, port: PortId) {
        let flow = flow.0 as usize;
        if self.routes.len() <= flow {
            self.routes.resize(flow + 1, Vec::new());
        }
        let (way, hop) = (&mut self.routes[flow], Hop::new(to, port));
        match way.iter_mut().find(|(at, _)| *at == router) {
            Some((_, before)) => *before = hop,
            None => way.push((router, hop)),
        }
    }

    /// The engine's time: what [`run_until`](Engine::run_until) was last told.
    pub fn now(&self) -> Time {
        self.now
    }

    /// When something will happen next, if nothing is injected before.
    pub fn next_event(&mut self) -> Option<Time> {
        self.settle().map(Key::at)
    }

    /// Lets everything happen up to `end` and at it, and sets the engine's time to `end`. An `end` that has
    /// passed does nothing.
    pub fn run_until(&mut self, end: Time) -> Result<(), EngineError> {
        while let Some(key) = self.settle() {
            if key.at() > end {
                break;
            }
            self.queue.pop();
            if key.at() > self.now {
                self.now = key.at();
                self.at_once = 0;
            }
            let node = key.node();
            let slot = &mut self.slots[node];
            (slot.wanted, slot.queued) = (Key::NONE, Key::NONE);
            slot.element.handle(self.now, Input::Wake);
            self.executed += 1;
            self.drain(node, 0);
            while let Some((hop, datagram)) = self.aside.pop_front() {
                self.hand_over(hop, datagram, 0);
                if self.at_once > STUCK_AFTER {
                    return Err(self.stuck(hop.node()));
                }
            }
            if self.at_once > STUCK_AFTER {
                return Err(self.stuck(node));
            }
        }
        if end > self.now {
            self.now = end;
            self.at_once = 0;
        }
        Ok(())
    }

    fn stuck(&self, node: usize) -> EngineError {
        EngineError::Stuck { at: self.now, node: node as u32, wakes: self.at_once }
    }

    /// Has a packet enter the network at an external host's interface, at `at` or, where that has passed, now.
    /// Its address decides the flow; to an unknown one it is dropped and counted.
    pub fn inject(&mut self, host: NodeId, at: Time, datagram: Datagram) -> Result<(), EngineError> {
        let now = self.now;
        let node = host.0 as usize;
        match self.slots.get_mut(node).map(|slot| &mut slot.element) {
            Some(Element::External(external)) => external.inject(at.max(now), datagram),
            _ => return Err(EngineError::NotExternal { host: host.0 }),
        }
        // Only an earlier time than the wake it has moves it.
        if self.slots[node].wanted.at() > at.max(now) {
            self.want(node, Some(at.max(now)));
        }
        Ok(())
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

    /// Nodes in the order of their numbers.
    pub fn elements(&self) -> impl Iterator<Item = (NodeId, &Element)> {
        self.slots.iter().enumerate().map(|(node, slot)| (NodeId(node as u32), &slot.element))
    }

    /// A node.
    pub fn element(&self, node: NodeId) -> Option<&Element> {
        self.slots.get(node.0 as usize).map(|slot| &slot.element)
    }

    /// A node, if it is a link.
    pub fn link(&self, node: NodeId) -> Option<&Link> {
        match self.element(node)? {
            Element::Link(link) => Some(link),
            _ => None,
        }
    }

    /// A node, if it is a WLAN.
    pub fn wlan(&self, node: NodeId) -> Option<&Medium> {
        match self.element(node)? {
            Element::Wlan(wlan) => Some(wlan),
            _ => None,
        }
    }

    /// A node, if it is a WLAN, to take its losses.
    pub fn wlan_mut(&mut self, node: NodeId) -> Option<&mut Medium> {
        match &mut self.slots.get_mut(node.0 as usize)?.element {
            Element::Wlan(wlan) => Some(wlan),
            _ => None,
        }
    }

    /// A node, if it is a sink.
    pub fn sink(&self, node: NodeId) -> Option<&Sink> {
        match self.element(node)? {
            Element::Sink(sink) => Some(sink),
            _ => None,
        }
    }

    /// A node, if it is the sending end of a TCP connection.
    pub fn tcp_sender(&self, node: NodeId) -> Option<&tcp::Sender> {
        match self.element(node)? {
            Element::TcpSender(sender) => Some(sender),
            _ => None,
        }
    }

    /// A node, if it is the receiving end of a TCP connection.
    pub fn tcp_receiver(&self, node: NodeId) -> Option<&tcp::Receiver> {
        match self.element(node)? {
            Element::TcpReceiver(receiver) => Some(receiver),
            _ => None,
        }
    }

    /// A node, if it is an external host.
    pub fn external(&self, node: NodeId) -> Option<&External> {
        match self.element(node)? {
            Element::External(external) => Some(external),
            _ => None,
        }
    }

    /// Brings the next wake that counts to the top of the queue.
    #[inline]
    fn settle(&mut self) -> Option<Key> {
        loop {
            let key = self.queue.peek()?;
            let slot = &mut self.slots[key.node()];
            if slot.wanted == key {
                return Some(key);
            }
            self.queue.pop();
            if slot.queued == key {
                slot.queued = slot.wanted;
                if slot.wanted != Key::NONE {
                    self.queue.push(slot.wanted);
                }
            }
        }
    }

    #[inline]
    fn want(&mut self, node: usize, wake: Option<Time>) {
        let slot = &mut self.slots[node];
        let Some(at) = wake else {
            slot.wanted = Key::NONE;
            return;
        };
        let at = at.max(self.now);
        if slot.wanted != Key::NONE && slot.wanted.at() == at {
            return;
        }
        self.seq += 1;
        slot.wanted = Key::new(at, self.seq, node);
        if slot.wanted < slot.queued {
            slot.queued = slot.wanted;
            self.queue.push(slot.wanted);
        }
    }

    /// Polls a node until it waits, handing on what it sends.
    #[inline]
    fn drain(&mut self, node: usize, depth: u32) {
        loop {
            match self.slots[node].element.poll(self.now) {
                // Taken apart at once: as a whole it would be copied by a call of `memcpy`.
                Output::Transmit(Transmit { port, datagram, .. }) => {
                    self.at_once += 1;
                    let Some(next) = self.next_hop(node, port, datagram.flow) else {
                        self.unroutable += 1;
                        continue;
                    };
                    if let Some(tap) = &mut self.taps.packets {
                        tap(self.now, NodeId(node as u32), NodeId(next.node() as u32), &datagram);
                    }
                    if depth >= MAX_DEPTH || self.at_once > STUCK_AFTER {
                        self.aside.push_back((next, datagram));
                        if self.at_once > STUCK_AFTER {
                            return;
                        }
                    } else {
                        self.hand_over(next, datagram, depth + 1);
                    }
                }
                Output::Event(what) => {
                    self.at_once += 1;
                    self.record(node, what);
                    if self.at_once > STUCK_AFTER {
                        return;
                    }
                }
                Output::Wait(wake) => {
                    self.at_once += 1;
                    self.want(node, wake);
                    return;
                }
            }
        }
    }

    #[inline]
    fn hand_over(&mut self, hop: Hop, datagram: Datagram, depth: u32) {
        let node = hop.node();
        let input = Input::Datagram { port: hop.port(), at: self.now, datagram };
        self.slots[node].element.handle(self.now, input);
        self.drain(node, depth);
    }

    #[inline]
    fn next_hop(&self, node: usize, port: PortId, flow: Flow) -> Option<Hop> {
        let slot = &self.slots[node];
        let target = if slot.by_port { self.port_target(node, port) } else { slot.target };
        let hop = match target {
            Target::Nowhere => return None,
            Target::Node(next) => Hop(next.0),
            Target::Port(next, port) => Hop::new(next, port),
            Target::Router(router) => {
                let way = self.routes.get(flow.0 as usize)?;
                way.iter().find(|(at, _)| *at == router)?.1
            }
        };
        (hop.node() < self.slots.len()).then_some(hop)
    }

    fn port_target(&self, node: usize, port: PortId) -> Target {
        let ports = self.ports.get(&node);
        ports.and_then(|ports| ports.get(usize::from(port.0))).copied().unwrap_or(self.slots[node].target)
    }

    fn record(&mut self, node: usize, what: lastmile::event::Decision) {
        let slot = &mut self.slots[node];
        let at = match &slot.element {
            Element::Host(host) => host.clock().read(self.now),
            _ => self.now,
        };
        let event = Event { at, node: node as u16, seq: u64::from(slot.decisions), what };
        slot.decisions += 1;
        if let Some(tap) = &mut self.taps.decisions {
            tap(self.now, &event);
        }
        self.events.push((self.now, event));
    }
}
