//! A stranger that hears a whole measurement and sends it again, in the measured host's name, brings that host no byte more
//! than it spends: within the session, after it, in turns, after a restart, with and without a key.

use std::net::SocketAddr;

use lastmile::endpoint::measure::{Decision, Key, Limits, ProberConfig, Reflector, ReflectorConfig};
use lastmile::node::{Datagram, Input, Node, Output, PortId};
use lastmile::report::Direction;
use lastmile::time::{Span, Time};
use lastmile::units::Bytes;
use lastmile::wire::private::ReportRequest;
use lastmile::wire::{Mode, TlvType, TlvValue, Tlvs, tlv_area};

use crate::world::{NEAR, World, measurement, pairs, peer_address, prober_address};

fn key(keyed: bool) -> Option<Key> {
    keyed.then(|| Key::new(b"a key of many bytes").unwrap())
}

fn is_goodbye(datagram: &Datagram) -> bool {
    let Some(bytes) = datagram.payload.udp() else { return false };
    [Mode::Open, Mode::Authenticated].into_iter().any(|mode| {
        Tlvs::new(tlv_area(mode, bytes))
            .map_while(Result::ok)
            .filter(|tlv| tlv.kind == TlvType::REPORT)
            .any(|tlv| ReportRequest::decode_value(tlv.value).is_ok_and(|report| report.end))
    })
}

/// A reflector, all that is sent to it, and IP bytes from and to the measured host.
struct Tapped {
    reflector: Reflector,
    now: Time,
    /// Uptime of the reflector when the measurement at hand began.
    ran: Span,
    heard: Vec<Datagram>,
    /// True if the measurement's goodbye is lost on the way, so that its session lasts as long as its lease.
    loses_goodbye: bool,
    came: Bytes,
    went: Bytes,
}

impl Node for Tapped {
    type Event = Decision;

    fn handle(&mut self, now: Time, mut input: Input) {
        self.now = now + self.ran;
        if let Input::Datagram { at, .. } | Input::Sent { at, .. } = &mut input {
            *at += self.ran;
        }
        if let Input::Datagram { datagram, .. } = &input {
            self.heard.push(datagram.clone());
            self.came += datagram.ip_size();
            if self.loses_goodbye && is_goodbye(datagram) {
                return;
            }
        }
        self.reflector.handle(self.now, input);
    }
    fn poll(&mut self, _now: Time) -> Output<Decision> {
        let mut output = self.reflector.poll(self.now);
        match &mut output {
            Output::Transmit(transmit) => {
                self.went += transmit.datagram.ip_size();
                transmit.at = transmit.at - self.ran;
            }
            Output::Wait(Some(until)) => *until = *until - self.ran,
            _ => {}
        }
        output
    }
}

impl Tapped {
    fn new(keyed: bool, seed: u8) -> Tapped {
        let limits = Limits::unlimited();
        let config = ReflectorConfig { key: key(keyed), limits, ..ReflectorConfig::new([seed; 32]) };
        let reflector = Reflector::new(config);
        let (came, went) = (Bytes::ZERO, Bytes::ZERO);
        Tapped {
            reflector,
            now: Time::ZERO,
            ran: Span::ZERO,
            heard: Vec::new(),
            loses_goodbye: false,
            came,
            went,
        }
    }

    /// Measures in the reverse direction, where one request of 212 bytes brings a whole stream; gives back the packets
    /// heard. Bytes that the host has sent and not got stand to its credit; those that a key paid for are settled.
    fn measured(mut self, keyed: bool, run: u8) -> (Tapped, Vec<Datagram>) {
        let config = ProberConfig { key: key(keyed), ..ProberConfig::new(peer_address(), [run; 32]) };
        let measurements = vec![measurement(Direction::Reverse, vec![pairs(100), pairs(100)])];
        let mut world = World::new(config, measurements, self, NEAR, u64::from(run));
        world.run(Span::from_secs(20));
        world.settle();
        let records = world.prober.sink();
        assert_eq!(records.len(), 2, "{:?}", world.refusals());
        assert!(records.iter().flat_map(|r| &r.packets).all(|p| p.fate.arrived().is_some()));
        self = world.peer;
        self.ran = self.now - Time::ZERO;
        assert!(keyed || self.went <= self.came);
        self.went = self.went.min(self.came);
        let heard = core::mem::take(&mut self.heard);
        (self, heard)
    }

    /// Sends `packets` in the name of `from`, so long after the measurement; fails where they bring more than they have.
    fn replay(&mut self, after: Span, packets: &[Datagram], from: SocketAddr) {
        let now = Time::ZERO + after;
        for datagram in packets {
            let datagram = Datagram { from, ..datagram.clone() };
            self.handle(now, Input::Datagram { port: PortId(0), at: now, datagram });
            while !matches!(self.poll(now), Output::Wait(_)) {}
            assert!(self.went <= self.came, "{} for {}", self.went, self.came);
        }
    }
}

#[test]
fn within_the_session() {
    for (keyed, loses_goodbye) in [(false, false), (false, true), (true, false), (true, true)] {
        let tapped = Tapped { loses_goodbye, ..Tapped::new(keyed, 1) };
        let (mut tapped, heard) = tapped.measured(keyed, 5);
        for _ in 0..3 {
            tapped.replay(Span::ZERO, &heard, prober_address());
        }
    }
}

#[test]
fn after_the_session_however_long() {
    for (keyed, loses_goodbye) in [(false, false), (false, true), (true, false), (true, true)] {
        for seconds in [1, 15, 29, 31, 60, 299, 301, 599, 700, 100_000] {
            // All of it, and each packet alone: a hello before it might spoil what a thief can do without one.
            for alone in [false, true] {
                let tapped = Tapped { loses_goodbye, ..Tapped::new(keyed, 1) };
                let (mut tapped, heard) = tapped.measured(keyed, 5);
                let after = Span::from_secs(seconds);
                tapped.handle(Time::ZERO + after, Input::Wake);
                assert_eq!(tapped.reflector.sessions(), usize::from(seconds < 30 && loses_goodbye));
                for packets in heard.chunks(if alone { 1 } else { heard.len() }) {
                    (0..3).for_each(|_| tapped.replay(after, packets, prober_address()));
                }
            }
        }
    }
}

#[test]
fn twelve_measurements_in_turn_without_waiting() {
    for keyed in [false, true] {
        let (mut tapped, mut runs) = (Tapped::new(keyed, 1), Vec::new());
        for run in 1..=12 {
            let heard;
            (tapped, heard) = tapped.measured(keyed, run);
            runs.push(heard);
        }
        for _ in 0..3 {
            // Without the hello: the rest works alone.
            runs.iter().for_each(|heard| tapped.replay(Span::ZERO, &heard[1..], prober_address()));
        }
    }
}

#[test]
fn after_a_restart() {
    for keyed in [false, true] {
        let (tapped, heard) = Tapped::new(keyed, 1).measured(keyed, 5);
        for after in [Span::ZERO, tapped.ran, tapped.ran + Span::from_secs(60)] {
            Tapped::new(keyed, 2).replay(after, &heard, prober_address());
        }
    }
}

#[test]
fn in_the_name_of_others() {
    for keyed in [false, true] {
        let (mut tapped, heard) = Tapped::new(keyed, 1).measured(keyed, 5);
        for victim in ["192.0.2.1:5001", "192.0.2.2:5000"] {
            (tapped.came, tapped.went) = (Bytes::ZERO, Bytes::ZERO);
            tapped.replay(Span::ZERO, &heard, victim.parse().unwrap());
        }
    }
}

/// The thief hears the request on its way and is there before it: the stream is sent once, to who asked for it.
#[test]
fn a_request_is_served_once_whoever_brings_it_first() {
    let tapped = Tapped { loses_goodbye: true, ..Tapped::new(true, 1) };
    let (mut tapped, heard) = tapped.measured(true, 5);
    let streamed = tapped.reflector.counters().streamed;
    assert_eq!(streamed, 400);
    tapped.replay(Span::ZERO, &heard, prober_address());
    assert_eq!((tapped.reflector.counters().streamed, tapped.reflector.counters().repeated), (streamed, 2));
}
