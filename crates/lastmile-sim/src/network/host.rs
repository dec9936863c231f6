//! Hosts: [`Host`] carries an endpoint and a clock; [`External`] stands for a host outside the engine, whose
//! packets a driver carries in and out.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use lastmile::node::{Datagram, Failure, Flow, Input, Node, Output, PortId, Transmit, TransmitId};
use lastmile::time::Time;

use crate::network::clock::{HostClock, Step};

/// Which flow a host's packets belong to, by the address they go to.
///
/// The simulator's routers go by flow, so the address is looked up once, where a packet enters the network.
#[derive(Clone, Debug, Default)]
pub struct AddressBook(Vec<(IpAddr, Flow)>);

impl AddressBook {
    /// The book with those entries; of two with one address, either.
    pub fn new(entries: impl IntoIterator<Item = (IpAddr, Flow)>) -> AddressBook {
        let mut entries: Vec<_> = entries.into_iter().collect();
        entries.sort_unstable();
        AddressBook(entries)
    }

    /// The flow to an address.
    pub fn flow(&self, to: IpAddr) -> Option<Flow> {
        let at = self.0.binary_search_by_key(&to, |&(address, _)| address).ok()?;
        self.0.get(at).map(|&(_, flow)| flow)
    }
}

/// What is due at a time, in the order in which it was planned: heap entries compare by these two alone.
#[derive(Debug)]
struct Planned<T> {
    at: Time,
    seq: u64,
    what: T,
}

impl<T> PartialEq for Planned<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl<T> Eq for Planned<T> {}
impl<T> PartialOrd for Planned<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Planned<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.seq).cmp(&(other.at, other.seq))
    }
}

#[derive(Debug)]
struct Plan<T> {
    heap: BinaryHeap<Reverse<Planned<T>>>,
    seq: u64,
}

impl<T> Default for Plan<T> {
    fn default() -> Self {
        Plan { heap: BinaryHeap::new(), seq: 0 }
    }
}

impl<T> Plan<T> {
    fn add(&mut self, at: Time, what: T) {
        self.seq += 1;
        self.heap.push(Reverse(Planned { at, seq: self.seq, what }));
    }
    fn next(&self) -> Option<Time> {
        self.heap.peek().map(|entry| entry.0.at)
    }
    fn take_due(&mut self, now: Time) -> Option<T> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|entry| entry.0.what)
    }
}

/// Packets that a host has planned or dropped, and received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounters {
    /// Packets that entered the network here.
    pub sent: u64,
    /// Packets that left it here.
    pub received: u64,
    /// Packets to an address that no host here has.
    pub unroutable: u64,
}

/// A host that carries an endpoint. To the engine it speaks the engine's time, to the endpoint its own clock's.
pub struct Host {
    endpoint: Box<dyn Node + Send>,
    addresses: (Ipv4Addr, Ipv6Addr),
    book: AddressBook,
    clock: HostClock,
    outbox: Plan<(TransmitId, PortId, Datagram)>,
    /// Announced steps still to come.
    steps: VecDeque<Step>,
    /// When the endpoint wants to be woken: as it said, and in the engine's time.
    wake: Option<(Time, Time)>,
    /// The endpoint was given something and has not yet said `Wait`.
    stirred: bool,
    started: bool,
    counters: HostCounters,
}

impl core::fmt::Debug for Host {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Host").field("addresses", &self.addresses).field("counters", &self.counters).finish()
    }
}

impl Host {
    /// A host with an address of each IP version, the flows that lead to others, and a clock.
    pub fn new(
        endpoint: Box<dyn Node + Send>,
        addresses: (Ipv4Addr, Ipv6Addr),
        book: AddressBook,
        clock: HostClock,
    ) -> Host {
        let steps = clock.announced().copied().collect();
        Host {
            endpoint,
            addresses,
            book,
            clock,
            outbox: Plan::default(),
            steps,
            wake: None,
            stirred: false,
            started: false,
            counters: HostCounters::default(),
        }
    }

    /// What it has sent and received.
    pub fn counters(&self) -> &HostCounters {
        &self.counters
    }

    /// The host's clock.
    pub fn clock(&self) -> &HostClock {
        &self.clock
    }

    fn tell(&mut self, now: Time, input: Input) {
        self.endpoint.handle(self.clock.read(now), input);
        self.stirred = true;
    }

    fn plan(&mut self, now: Time, transmit: Transmit) {
        let Transmit { id, at, port, mut datagram } = transmit;
        // Leaving the source address open is leaving it to the driver, which is the host.
        if datagram.from.ip().is_unspecified() {
            let address = match datagram.to {
                SocketAddr::V4(_) => IpAddr::V4(self.addresses.0),
                SocketAddr::V6(_) => IpAddr::V6(self.addresses.1),
            };
            datagram.from = SocketAddr::new(address, datagram.from.port());
        }
        self.outbox.add(self.clock.when(at).max(now), (id, port, datagram));
    }

    /// Sends a packet whose time has come. The endpoint hears of it first: with no delay on the way, a reply
    /// could otherwise come before.
    fn depart(&mut self, now: Time, id: TransmitId, mut datagram: Datagram) -> Option<Output> {
        // Of other packets nobody waits to hear: rule 4 of the loop.
        let tracked = id != TransmitId::UNTRACKED;
        let Some(flow) = self.book.flow(datagram.to.ip()) else {
            self.counters.unroutable += 1;
            if tracked {
                self.tell(now, Input::Failed { id: Some(id), reason: Failure::Unreachable });
            }
            return None;
        };
        datagram.flow = flow;
        self.counters.sent += 1;
        if tracked {
            self.tell(now, Input::Sent { id, at: self.clock.stamp(now) });
        }
        Some(Output::Transmit(Transmit { id, at: now, port: PortId(0), datagram }))
    }
}

impl Node for Host {
    fn handle(&mut self, now: Time, input: Input) {
        match input {
            Input::Datagram { datagram, .. } => {
                self.counters.received += 1;
                self.tell(now, Input::Datagram { port: PortId(0), at: self.clock.stamp(now), datagram });
            }
            Input::Wake => {
                while let Some(step) = self.steps.front().copied()
                    && step.at <= now
                {
                    self.steps.pop_front();
                    self.tell(now, Input::ClockStepped { by: step.by });
                }
                if let Some((wanted, _)) = self.wake
                    && wanted <= self.clock.read(now)
                {
                    self.wake = None;
                    self.tell(now, Input::Wake);
                }
            }
            other => self.tell(now, other),
        }
    }

    fn poll(&mut self, now: Time) -> Output {
        // The first poll of all gives the endpoint its chance to start without being told anything.
        self.stirred |= !self.started;
        self.started = true;
        loop {
            while self.stirred {
                match self.endpoint.poll(self.clock.read(now)) {
                    Output::Transmit(transmit) => self.plan(now, transmit),
                    Output::Event(decision) => return Output::Event(decision),
                    Output::Wait(wake) => {
                        self.wake = wake.map(|at| (at, self.clock.when(at)));
                        self.stirred = false;
                    }
                }
            }
            let Some((id, _, datagram)) = self.outbox.take_due(now) else { break };
            if let Some(transmit) = self.depart(now, id, datagram) {
                return transmit;
            }
        }
        let wake = self.wake.map(|(_, engine)| engine);
        let step = self.steps.front().map(|step| step.at);
        Output::Wait([wake, step, self.outbox.next()].into_iter().flatten().min())
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
    counters: HostCounters,
}

impl External {
    /// An interface from which those flows lead to others.
    pub fn new(book: AddressBook) -> External {
        External { book, ..External::default() }
    }

    /// What passed.
    pub fn counters(&self) -> &HostCounters {
        &self.counters
    }

    pub(crate) fn inject(&mut self, at: Time, datagram: Datagram) {
        self.inbox.add(at, datagram);
    }

    pub(crate) fn pop_egress(&mut self) -> Option<(Time, Datagram)> {
        self.egress.pop_front()
    }
}

impl Node for External {
    fn handle(&mut self, now: Time, input: Input) {
        if let Input::Datagram { datagram, .. } = input {
            self.counters.received += 1;
            self.egress.push_back((now, datagram));
        }
    }

    fn poll(&mut self, now: Time) -> Output {
        while let Some(mut datagram) = self.inbox.take_due(now) {
            let Some(flow) = self.book.flow(datagram.to.ip()) else {
                self.counters.unroutable += 1;
                continue;
            };
            datagram.flow = flow;
            self.counters.sent += 1;
            return Output::Transmit(Transmit { id: TransmitId(0), at: now, port: PortId(0), datagram });
        }
        Output::Wait(self.inbox.next())
    }
}
