//! Hosts: [`Host`] carries endpoints and a clock; [`External`] stands for a host outside the engine, whose
//! packets a driver carries in and out.

use core::convert::Infallible;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::collections::{BTreeMap, VecDeque};

use lastmile::endpoint::{AnyEndpoint, Decided, Endpoint, Endpoints, any};
use lastmile::node::{Datagram, Failure, Flow, Input, Node, Output, PortId, Transmit, TransmitId};
use lastmile::time::Time;

use crate::network::clock::{HostClock, Step};

/// Flows of a host's packets, by destination address; for some conversations by source port and destination.
///
/// The simulator's routers go by flow, so a packet's flow is looked up once, on entry into the network.
#[derive(Clone, Debug, Default)]
pub struct AddressBook {
    hosts: Vec<(IpAddr, Flow)>,
    /// By the port that packets come from and the address and port that they go to.
    conversations: Vec<((u16, SocketAddr), Flow)>,
}

impl AddressBook {
    /// The book with those entries; of two with one address, either.
    pub fn new(entries: impl IntoIterator<Item = (IpAddr, Flow)>) -> AddressBook {
        let mut hosts: Vec<_> = entries.into_iter().collect();
        hosts.sort_unstable();
        AddressBook { hosts, conversations: Vec::new() }
    }

    /// Gives the packets from one port to another a flow of their own.
    pub fn add(&mut self, from: u16, to: SocketAddr, flow: Flow) {
        let at = self.conversations.partition_point(|(key, _)| *key < (from, to));
        self.conversations.insert(at, ((from, to), flow));
    }

    /// The flow of a packet.
    pub fn flow(&self, from: u16, to: SocketAddr) -> Option<Flow> {
        if let Ok(at) = self.conversations.binary_search_by_key(&(from, to), |&(key, _)| key) {
            return Some(self.conversations[at].1);
        }
        let at = self.hosts.binary_search_by_key(&to.ip(), |&(address, _)| address).ok()?;
        self.hosts.get(at).map(|&(_, flow)| flow)
    }
}

/// Items by the time at which they are due; those of one time in the order in which they were planned.
#[derive(Debug)]
struct Plan<T> {
    due: BTreeMap<(Time, u64), T>,
    seq: u64,
}

impl<T> Default for Plan<T> {
    fn default() -> Self {
        Plan { due: BTreeMap::new(), seq: 0 }
    }
}

impl<T> Plan<T> {
    fn add(&mut self, at: Time, what: T) {
        self.seq += 1;
        self.due.insert((at, self.seq), what);
    }
    fn next(&self) -> Option<Time> {
        self.due.first_key_value().map(|((at, _), _)| *at)
    }
    fn take_due(&mut self, now: Time) -> Option<T> {
        let first = self.due.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(first.remove())
    }
}

/// An endpoint at a host, with the IP version and the port that select its packets.
pub struct Seat {
    /// The number that its decisions carry; its host's if there is none.
    pub number: Option<u32>,
    /// The IP version that it speaks.
    pub ipv6: bool,
    /// Its UDP port. Zero takes what no other endpoint here does, by either IP version.
    pub port: u16,
    /// The endpoint.
    pub endpoint: AnyEndpoint,
}

impl Seat {
    /// The only endpoint of a host, for all packets.
    pub fn only(endpoint: AnyEndpoint) -> Seat {
        Seat { number: None, ipv6: false, port: 0, endpoint }
    }

    /// A node of one's own behind an IPv4 port, or for zero behind all that no other endpoint of its host has. It comes back
    /// as [`Own`].
    pub fn own<N: Node<Event: Send> + Send + 'static>(port: u16, node: N) -> Seat {
        let endpoint = any(Own { node, events: Vec::new() });
        Seat { number: None, ipv6: false, port, endpoint }
    }
}

/// A node of one's own at a host. Its events may be of any type: they stay with it.
#[derive(Clone, Debug)]
pub struct Own<N: Node> {
    /// The node.
    pub node: N,
    /// Its events, with their times on its host's clock.
    pub events: Vec<(Time, N::Event)>,
}

impl<N: Node> Node for Own<N> {
    type Event = Infallible;

    fn handle(&mut self, now: Time, input: Input) {
        self.node.handle(now, input);
    }
    fn poll(&mut self, now: Time) -> Output {
        loop {
            match self.node.poll(now) {
                Output::Event(event) => self.events.push((now, event)),
                Output::Transmit(transmit) => return Output::Transmit(transmit),
                Output::Wait(wake) => return Output::Wait(wake),
            }
        }
    }
}

impl<N: Node> Endpoint for Own<N> {
    fn is_finished(&self) -> bool {
        false
    }
}

/// A host that carries endpoints, told apart by UDP port. To the engine it speaks the engine's time, to the endpoints
/// its own clock's.
pub struct Host {
    endpoints: Endpoints,
    /// The IP version and UDP port of each.
    places: Vec<(bool, u16)>,
    addresses: (Ipv4Addr, Ipv6Addr),
    book: AddressBook,
    clock: HostClock,
    outbox: Plan<Transmit>,
    /// Announced steps still to come.
    steps: VecDeque<Step>,
}

impl core::fmt::Debug for Host {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Host").field("addresses", &self.addresses).finish()
    }
}

impl Host {
    /// A host with an address of each IP version, the flows that lead to others, and a clock.
    pub fn new(
        seats: Vec<Seat>,
        addresses: (Ipv4Addr, Ipv6Addr),
        book: AddressBook,
        clock: HostClock,
    ) -> Host {
        let steps = clock.announced().copied().collect();
        let places = seats.iter().map(|seat| (seat.ipv6, seat.port)).collect();
        let endpoints = Endpoints::new(seats.into_iter().map(|seat| (seat.number, seat.endpoint)));
        Host { endpoints, places, addresses, book, clock, outbox: Plan::default(), steps }
    }

    /// The host's clock.
    pub fn clock(&self) -> &HostClock {
        &self.clock
    }

    /// True if the endpoint of that seat has finished.
    pub(crate) fn is_finished(&self, seat: usize) -> bool {
        self.endpoints.is_finished(PortId(seat as u16))
    }

    /// Takes its endpoints, in the order of its seats.
    pub(crate) fn take_endpoints(&mut self) -> impl Iterator<Item = AnyEndpoint> + use<> {
        self.places.clear();
        core::mem::replace(&mut self.endpoints, Endpoints::new([])).into_endpoints()
    }

    fn tell(&mut self, now: Time, input: Input) {
        self.endpoints.handle(self.clock.read(now), input);
    }

    /// Port of the endpoint that takes packets to that address.
    fn port_of(&self, to: SocketAddr) -> Option<PortId> {
        let own = self.places.iter().position(|&place| place == (to.is_ipv6(), to.port()));
        let own = own.or_else(|| self.places.iter().position(|&(_, port)| port == 0));
        own.map(|place| PortId(place as u16))
    }

    fn plan(&mut self, now: Time, mut transmit: Transmit) {
        let Datagram { from, to, .. } = &mut transmit.datagram;
        // Leaving the source address or its port open is leaving it to the driver, which is the host.
        if from.ip().is_unspecified() {
            from.set_ip(match to {
                SocketAddr::V4(_) => IpAddr::V4(self.addresses.0),
                SocketAddr::V6(_) => IpAddr::V6(self.addresses.1),
            });
        }
        if from.port() == 0 {
            from.set_port(self.places[usize::from(transmit.port.0)].1);
        }
        self.outbox.add(self.clock.when(transmit.at).max(now), transmit);
    }

    /// Sends a packet whose time has come. The endpoint hears of it first: with no delay on the way, a reply
    /// could otherwise come before.
    fn depart(&mut self, now: Time, transmit: Transmit) -> Option<Transmit> {
        let Transmit { id, port, mut datagram, .. } = transmit;
        // Of other packets nobody waits to hear: rule 4 of the loop.
        let tracked = id != TransmitId::UNTRACKED;
        let Some(flow) = self.book.flow(datagram.from.port(), datagram.to) else {
            if tracked {
                self.tell(now, Input::Failed { port, id: Some(id), reason: Failure::Unreachable });
            }
            return None;
        };
        datagram.flow = flow;
        if tracked {
            self.tell(now, Input::Sent { id, at: self.clock.stamp(now) });
        }
        Some(Transmit { id, at: now, port: PortId(0), datagram })
    }
}

impl Node for Host {
    type Event = Decided;

    fn handle(&mut self, now: Time, input: Input) {
        match input {
            Input::Datagram { datagram, .. } => {
                let Some(port) = self.port_of(datagram.to) else { return };
                self.tell(now, Input::Datagram { port, at: self.clock.stamp(now), datagram });
            }
            Input::Wake => {
                while let Some(step) = self.steps.front().copied()
                    && step.at <= now
                {
                    self.steps.pop_front();
                    self.tell(now, Input::ClockStepped { by: step.by });
                }
                self.tell(now, Input::Wake);
            }
            other => self.tell(now, other),
        }
    }

    fn poll(&mut self, now: Time) -> Output<Decided> {
        loop {
            let wake = match self.endpoints.poll(self.clock.read(now)) {
                Output::Transmit(transmit) => {
                    self.plan(now, transmit);
                    continue;
                }
                Output::Event(decided) => return Output::Event(decided),
                Output::Wait(wake) => wake.map(|at| self.clock.when(at)),
            };
            let Some(due) = self.outbox.take_due(now) else {
                let step = self.steps.front().map(|step| step.at);
                return Output::Wait([wake, step, self.outbox.next()].into_iter().flatten().min());
            };
            if let Some(transmit) = self.depart(now, due) {
                return Output::Transmit(transmit);
            }
        }
    }
}

/// A packet that left the engine at an external host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Egress {
    /// The host, as numbered by the engine.
    pub host: u16,
    /// When it is due there. Written later, it is late by the difference; the next one's time does not move.
    pub at: Time,
    /// The packet.
    pub datagram: Datagram,
}

/// The interface of a host outside the engine.
#[derive(Debug, Default)]
pub struct External {
    book: AddressBook,
    inbox: Plan<Datagram>,
    egress: VecDeque<(Time, Datagram)>,
}

impl External {
    /// An interface from which those flows lead to others.
    pub fn new(book: AddressBook) -> External {
        External { book, ..External::default() }
    }

    pub(crate) fn inject(&mut self, at: Time, datagram: Datagram) {
        self.inbox.add(at, datagram);
    }

    pub(crate) fn pop_egress(&mut self) -> Option<(Time, Datagram)> {
        self.egress.pop_front()
    }
}

impl Node for External {
    type Event = Infallible;

    fn handle(&mut self, now: Time, input: Input) {
        if let Input::Datagram { datagram, .. } = input {
            self.egress.push_back((now, datagram));
        }
    }

    fn poll(&mut self, now: Time) -> Output {
        while let Some(mut datagram) = self.inbox.take_due(now) {
            let Some(flow) = self.book.flow(datagram.from.port(), datagram.to) else { continue };
            datagram.flow = flow;
            return Output::Transmit(Transmit { id: TransmitId(0), at: now, port: PortId(0), datagram });
        }
        Output::Wait(self.inbox.next())
    }
}
