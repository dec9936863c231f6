//! A forged packet does not make reflectors answer each other, or themselves, without end.

use std::collections::VecDeque;
use std::net::SocketAddr;

use lastmile::endpoint::measure::{Counters, Key, Limits, ProberConfig, Reflector, ReflectorConfig};
use lastmile::node::{Datagram, Input, Node, Output, PortId};
use lastmile::report::Direction;
use lastmile::time::{Epoch, Span, Time};
use lastmile::wire::{
    ErrorEstimate, HmacKey, Mode, PacketBuilder, ReflectorPacket, SenderPacket, TimestampFormat,
};

use crate::world::{Dice, NEAR, World, measurement, pairs, peer_address};

const SECRET: &[u8] = b"a key of many bytes";
const ONE: &str = "198.51.100.1:8620";
const OTHER: &str = "198.51.100.2:862";
/// Some day of 2026.
const EPOCH: u64 = 1_790_000_000_000_000_000;

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn reflector_config(epoch: u64) -> ReflectorConfig {
    let (epoch, limits) = (Epoch::from_unix_nanos(epoch), Limits::unlimited());
    ReflectorConfig { epoch, limits, ..ReflectorConfig::new([4; 32]) }
}

fn reflector(keyed: bool, epoch: u64) -> Reflector {
    let key = keyed.then(|| Key::new(SECRET).unwrap());
    Reflector::new(ReflectorConfig { key, ..reflector_config(epoch) })
}

/// A request as a sender writes it, signed if there is a key; with a hello if wished.
fn request(keyed: bool, hello: bool) -> Vec<u8> {
    let mode = if keyed { Mode::Authenticated } else { Mode::Open };
    let timestamp = TimestampFormat::Ntp.from_unix_nanos(EPOCH);
    let base = SenderPacket { sequence: 7, timestamp, error: ErrorEstimate::from_bits(1), ssid: 1 };
    let mut bytes = Vec::new();
    let builder = PacketBuilder::sender(&mut bytes, mode, &base);
    let builder = match hello {
        true => builder.tlv(&crate::forge::hello(&mut Dice(1), [0; 16])).unwrap(),
        false => builder,
    };
    if keyed {
        let key = HmacKey::new(SECRET).unwrap();
        let builder = if hello { builder.tlv_hmac(&key).unwrap() } else { builder };
        builder.sign(&key).unwrap();
    }
    bytes
}

/// Carries packets between reflectors until none is left, or there were a thousand; returns how many they sent.
fn carry(nodes: &mut [(SocketAddr, Reflector)], first: Datagram) -> usize {
    let mut now = Time::ZERO;
    let mut flying = VecDeque::from([first]);
    let mut sent = 0;
    while let Some(datagram) = flying.pop_front() {
        now += Span::from_millis(10);
        let Some((_, node)) = nodes.iter_mut().find(|(a, _)| *a == datagram.to) else { continue };
        node.handle(now, Input::Datagram { port: PortId(0), at: now, datagram });
        loop {
            match node.poll(now) {
                Output::Transmit(transmit) => {
                    sent += 1;
                    flying.push_back(transmit.datagram);
                }
                Output::Event(_) => {}
                Output::Wait(_) => break,
            }
        }
        if sent > 1_000 {
            break;
        }
    }
    sent
}

#[test]
fn two_reflectors_do_not_answer_each_other() {
    // Clocks that agree, and that are days or half an era apart.
    for epoch in [EPOCH, EPOCH + 300_000_000_000_000, 0] {
        for (keyed, other_keyed) in [(false, false), (true, true), (true, false), (false, true)] {
            for (signed, hello) in [(false, false), (false, true), (true, false), (true, true)] {
                let mut nodes = [
                    (address(ONE), reflector(keyed, EPOCH)),
                    (address(OTHER), reflector(other_keyed, epoch)),
                ];
                let forged = Datagram::udp(address(OTHER), address(ONE), request(signed, hello));
                let sent = carry(&mut nodes, forged);
                assert!(sent <= 2, "{sent} packets: {keyed} {other_keyed} {signed} {hello} {epoch}");
                if keyed == other_keyed && keyed == signed {
                    assert_eq!(sent, 1);
                    assert_eq!(nodes[1].1.counters(), Counters { looped: 1, ..Counters::default() });
                }
            }
        }
    }
}

#[test]
fn a_reflector_does_not_answer_itself() {
    for keyed in [false, true] {
        for own in [ONE, "[2001:db8:9::1]:8620"] {
            let mut nodes = [(address(own), reflector(keyed, EPOCH))];
            let forged = Datagram::udp(address(own), address(own), request(keyed, false));
            assert_eq!(carry(&mut nodes, forged), 0);
            assert_eq!(nodes[0].1.counters(), Counters { looped: 1, ..Counters::default() });
        }
        // Another port of the same host is somebody else.
        let mut nodes = [(address(ONE), reflector(keyed, EPOCH))];
        let good = Datagram::udp(address("198.51.100.1:8621"), address(ONE), request(keyed, false));
        assert_eq!(carry(&mut nodes, good), 1);
    }
}

#[test]
fn random_padding_of_a_twamp_light_packet_is_answered() {
    let mut dice = Dice(9);
    let mut nodes = [(address(ONE), reflector(false, EPOCH))];
    for _ in 0..1_000 {
        let mut bytes = request(false, false);
        // TWAMP Light has its padding right behind the Error Estimate.
        bytes.resize(80, 0);
        bytes[14..].fill_with(|| dice.next() as u8);
        assert_eq!(carry(&mut nodes, Datagram::udp(address("192.0.2.1:1"), address(ONE), bytes)), 1);
    }
    assert_eq!(nodes[0].1.counters(), Counters { reflected: 1_000, ..Counters::default() });
}

/// Senders of TWAMP Light whose packets are below 44 octets: a reply of their own size where one fits, else none unless the
/// server was told otherwise. Never more bytes out than in unasked, and no loop in either case.
#[test]
fn small_packets_of_twamp_light() {
    let sender = |host: usize| address(&format!("192.0.2.{host}:1"));
    let small =
        |host, octets| Datagram::udp(sender(host), address(ONE), request(false, false)[..octets].to_vec());
    for answer_small in [false, true] {
        let mut node = Reflector::new(ReflectorConfig { answer_small, ..reflector_config(EPOCH) });
        let mut answer_at = |now: Time, datagram: Datagram| {
            let (mut replies, mut told) = (Vec::new(), Vec::new());
            node.handle(now, Input::Datagram { port: PortId(0), at: now, datagram });
            loop {
                match node.poll(now) {
                    Output::Transmit(transmit) => replies.push(transmit.datagram),
                    Output::Event(event) => told.push(event),
                    Output::Wait(_) => return (replies, told),
                }
            }
        };
        let mut answer = |datagram| answer_at(Time::ZERO, datagram);
        for octets in 0..=44 {
            let (replies, told) = answer(small(1, octets));
            let expected = match octets {
                41..=44 => Some(octets),
                14..=40 if answer_small => Some(44),
                _ => None,
            };
            let sizes: Vec<_> = replies.iter().map(|d| d.payload.udp().unwrap().len()).collect();
            assert_eq!(sizes, Vec::from_iter(expected), "{octets} octets");
            if let Some(reply) = replies.first() {
                let mut bytes = reply.payload.udp().unwrap().to_vec();
                bytes.resize(44, 0);
                let reply = ReflectorPacket::parse(Mode::Open, &bytes).unwrap();
                assert_eq!((reply.sender_sequence, reply.sender_ttl), (7, 0), "{octets} octets");
            }
            // One line for each source.
            let said: Vec<_> = told.iter().map(|event| format!("{event:?}")).collect();
            assert_eq!(said.len(), usize::from(octets == 14 && !answer_small), "{octets} octets: {said:?}");
        }
        let told: usize = (2..200).map(|host| answer(small(host, 14)).1.len()).sum();
        assert_eq!(told, if answer_small { 0 } else { 63 }, "forged sources fill no log");
        // Nor do they silence others for good: one more is told of every ten seconds.
        let seconds = |s| Time::ZERO + Span::from_secs(s);
        let later: Vec<_> = [(9, 240), (11, 240), (12, 240), (13, 241), (21, 241), (23, 1)]
            .map(|(s, host)| answer_at(seconds(s), small(host, 14)).1.len())
            .to_vec();
        assert_eq!(later, if answer_small { [0; 6] } else { [0, 1, 0, 0, 1, 0] });
        assert_eq!(node.counters().too_small, if answer_small { 0 } else { 27 + 198 + 6 });
        assert_eq!(node.counters().malformed, 14);
    }
    for octets in [14, 41] {
        let node = || Reflector::new(ReflectorConfig { answer_small: true, ..reflector_config(EPOCH) });
        let mut nodes = [(address(ONE), node()), (address(OTHER), node())];
        let forged = Datagram::udp(address(OTHER), address(ONE), request(false, false)[..octets].to_vec());
        assert_eq!(carry(&mut nodes, forged), 1);
    }
    // With a key they are without it.
    let mut nodes = [(address(ONE), reflector(true, EPOCH))];
    assert_eq!(carry(&mut nodes, small(1, 41)), 0);
    assert_eq!(nodes[0].1.counters(), Counters { unauthenticated: 1, ..Counters::default() });
}

#[test]
fn a_prober_is_served() {
    for keyed in [false, true] {
        let mode = if keyed { Mode::Authenticated } else { Mode::Open };
        assert_eq!(ReflectorPacket::parse(mode, &request(keyed, false)).unwrap().receive_timestamp, 0);
        for direction in [Direction::Forward, Direction::Reverse, Direction::RoundTrip] {
            let key = keyed.then(|| Key::new(SECRET).unwrap());
            let config = ProberConfig { key, ..ProberConfig::new(peer_address(), [5; 32]) };
            let measurements = vec![measurement(direction, vec![pairs(30)])];
            let mut world = World::new(config, measurements, reflector(keyed, EPOCH), NEAR, 1);
            world.run(Span::from_secs(20));
            world.check_records();
            let record = &world.prober.sink()[0];
            assert!(record.packets.iter().all(|p| p.fate.arrived().is_some()), "{keyed} {direction}");
        }
    }
}
