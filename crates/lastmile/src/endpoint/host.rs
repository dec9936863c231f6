//! [`Endpoints`]: all endpoints of a host as one node, each behind a port of its own.
//!
//! A driver knows one node, and what its ports are: sockets of a real host, or UDP ports of a simulated one.

use super::{AnyEndpoint, Decision, Endpoint, Event};
use crate::event;
use crate::node::{Input, Node, Output, PortId, Transmit, TransmitId};
use crate::time::Time;

/// A decision of one of a host's endpoints.
#[derive(Clone, Debug, PartialEq)]
pub struct Decided {
    /// The endpoint's number; its host's if there is none.
    pub number: Option<u32>,
    /// Decisions that the endpoint made before.
    pub seq: u64,
    /// The decision.
    pub what: Decision,
}

impl Decided {
    /// The event that it is, at a host of that number.
    pub fn event(self, at: Time, host: u32) -> Event {
        Event { at, node: self.number.unwrap_or(host), seq: self.seq, what: self.what }
    }
}

impl From<event::Event<Decided>> for Event {
    fn from(told: event::Event<Decided>) -> Event {
        told.what.event(told.at, told.node)
    }
}

/// The endpoints of a host as one node: its port `i` is the `i`-th endpoint's only one, and each is told what concerns it.
///
/// Names of packets ([`TransmitId`]) are told apart by the endpoints' number: an endpoint of `n` may use those up to
/// `u64::MAX / n`.
///
/// ```
/// use lastmile::endpoint::{Endpoints, any, measure::{Reflector, ReflectorConfig}};
/// use lastmile::endpoint::stream::{Receiver, ReceiverConfig};
/// use lastmile::node::{Node, Output};
/// use lastmile::time::{Epoch, Time};
///
/// let epoch = Epoch::from_unix_nanos(1_700_000_000_000_000_000);
/// let reflector = Reflector::new(ReflectorConfig::new([7; 32]));
/// let receiver = Receiver::new(ReceiverConfig { epoch, ..ReceiverConfig::new(1) }).unwrap();
/// // Sockets, or simulated UDP ports, in the same order.
/// let mut host = Endpoints::new([(None, any(reflector)), (Some(9), any(receiver))]);
/// assert!(matches!(host.poll(Time::ZERO), Output::Wait(None)));
/// ```
pub struct Endpoints(Vec<Seat>);

/// An endpoint at its port.
struct Seat {
    number: Option<u32>,
    endpoint: AnyEndpoint,
    /// When it wants to be woken.
    wake: Option<Time>,
    /// It was given something and has not yet said `Wait`. The first poll of all gives it its chance to start without
    /// being told anything.
    stirred: bool,
    decisions: u64,
}

impl Endpoints {
    /// The endpoints in the order of their ports, each with the number that its decisions carry if that is another than
    /// the host's.
    pub fn new(endpoints: impl IntoIterator<Item = (Option<u32>, AnyEndpoint)>) -> Endpoints {
        let seat = |(number, endpoint)| Seat { number, endpoint, wake: None, stirred: true, decisions: 0 };
        Endpoints(endpoints.into_iter().map(seat).collect())
    }

    /// True if the endpoint of that port has finished, or there is none.
    pub fn is_finished(&self, port: PortId) -> bool {
        self.0.get(usize::from(port.0)).is_none_or(|seat| seat.endpoint.is_finished())
    }

    /// The endpoints, in the order of their ports.
    pub fn into_endpoints(self) -> impl Iterator<Item = AnyEndpoint> {
        self.0.into_iter().map(|seat| seat.endpoint)
    }

    fn count(&self) -> u64 {
        self.0.len().max(1) as u64
    }

    fn tell(&mut self, now: Time, place: usize, input: Input) {
        if let Some(seat) = self.0.get_mut(place) {
            seat.endpoint.handle(now, input);
            seat.stirred = true;
        }
    }
}

impl Node for Endpoints {
    type Event = Decided;

    fn handle(&mut self, now: Time, input: Input) {
        let own = |id: TransmitId, n: u64| TransmitId(id.0 / n);
        match input {
            Input::Datagram { port, at, datagram } => {
                self.tell(now, port.0.into(), Input::Datagram { port: PortId(0), at, datagram });
            }
            Input::Sent { id, at } => {
                let n = self.count();
                self.tell(now, (id.0 % n) as usize, Input::Sent { id: own(id, n), at });
            }
            Input::Queued { id, wait } => {
                let n = self.count();
                self.tell(now, (id.0 % n) as usize, Input::Queued { id: own(id, n), wait });
            }
            Input::Failed { port, id, reason } => {
                let id = id.map(|id| own(id, self.count()));
                self.tell(now, port.0.into(), Input::Failed { port: PortId(0), id, reason });
            }
            Input::Wake => {
                for place in 0..self.0.len() {
                    if self.0[place].wake.take_if(|at| *at <= now).is_some() {
                        self.tell(now, place, Input::Wake);
                    }
                }
            }
            other => (0..self.0.len()).for_each(|place| self.tell(now, place, other.clone())),
        }
    }

    fn poll(&mut self, now: Time) -> Output<Decided> {
        let n = self.count();
        for (place, seat) in self.0.iter_mut().enumerate() {
            while seat.stirred {
                match seat.endpoint.poll(now) {
                    Output::Transmit(Transmit { id, at, datagram, .. }) => {
                        let id = match id {
                            TransmitId::UNTRACKED => id,
                            id => TransmitId(id.0.wrapping_mul(n).wrapping_add(place as u64)),
                        };
                        return Output::Transmit(Transmit { id, at, port: PortId(place as u16), datagram });
                    }
                    Output::Event(what) => {
                        let (number, seq) = (seat.number, seat.decisions);
                        seat.decisions += 1;
                        return Output::Event(Decided { number, seq, what });
                    }
                    Output::Wait(wake) => (seat.wake, seat.stirred) = (wake, false),
                }
            }
        }
        Output::Wait(self.0.iter().filter_map(|seat| seat.wake).min())
    }
}

impl Endpoint for Endpoints {
    fn is_finished(&self) -> bool {
        self.0.iter().all(|seat| seat.endpoint.is_finished())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::node::{Datagram, Failure};
    use crate::time::Span;

    /// Sends one packet called 7 to the peer of its name, then sleeps for as many seconds; keeps what it was told.
    struct Echo {
        name: u16,
        sent: bool,
        told: Arc<Mutex<Vec<(u16, Input)>>>,
    }

    impl Node for Echo {
        type Event = Decision;

        fn handle(&mut self, _now: Time, input: Input) {
            self.told.lock().unwrap().push((self.name, input));
        }
        fn poll(&mut self, now: Time) -> Output<Decision> {
            if core::mem::replace(&mut self.sent, true) {
                return Output::Wait(Some(Time::ZERO + Span::from_secs(self.name.into())));
            }
            let to = ([192, 0, 2, 1], self.name).into();
            let datagram = Datagram::udp(([0, 0, 0, 0], 0).into(), to, vec![0; 8]);
            Output::Transmit(Transmit { id: TransmitId(7), at: now, port: PortId(0), datagram })
        }
    }

    impl Endpoint for Echo {
        fn is_finished(&self) -> bool {
            self.name == 2
        }
    }

    #[test]
    fn each_endpoint_is_told_what_concerns_it() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let echo = |name| (None, super::super::any(Echo { name, sent: false, told: Arc::clone(&told) }));
        let mut host = Endpoints::new([echo(1), echo(2), echo(3)]);
        let mut sent = Vec::new();
        let wake = loop {
            match host.poll(Time::ZERO) {
                Output::Transmit(transmit) => sent.push(transmit),
                Output::Wait(wake) => break wake,
                Output::Event(_) => unreachable!(),
            }
        };
        assert_eq!(wake, Some(Time::ZERO + Span::from_secs(1)));
        // Two packets of one name are told apart, each by the port of its sender.
        let ports: Vec<_> = sent.iter().map(|one| (one.port.0, one.datagram.to.port())).collect();
        assert_eq!(ports, [(0, 1), (1, 2), (2, 3)]);
        let now = Time::ZERO + Span::from_secs(2);
        let wait = Span::from_millis(1);
        host.handle(now, Input::Queued { id: sent[1].id, wait });
        host.handle(now, Input::Sent { id: sent[1].id, at: now });
        let failed = |port, id| Input::Failed { port: PortId(port), id, reason: Failure::PortClosed };
        host.handle(now, failed(2, Some(sent[2].id)));
        host.handle(now, failed(0, None));
        host.handle(now, Input::Wake);
        // Of a port that nobody has nobody is told.
        host.handle(now, failed(3, None));
        let seven = TransmitId(7);
        let expected = [
            (2, Input::Queued { id: seven, wait }),
            (2, Input::Sent { id: seven, at: now }),
            (3, failed(0, Some(seven))),
            (1, failed(0, None)),
            (1, Input::Wake),
            (2, Input::Wake),
        ];
        assert_eq!(*told.lock().unwrap(), expected);
        assert!(!host.is_finished(PortId(0)) && host.is_finished(PortId(1)));
    }
}
