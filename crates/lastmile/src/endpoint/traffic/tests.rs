//! A source and a sink with a path between them, in virtual time.

use core::net::SocketAddr;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::arrivals::{Arrivals, Departures, Lengths, OnOff};
use crate::endpoint::Endpoint;
use crate::node::{Datagram, Ecn, Failure, Input, Node, Output, PortId, Transmit, TransmitId};
use crate::rng::Stream;
use crate::time::{Span, Time};
use crate::units::{Bytes, Rate};
use crate::wire::traffic::{Counts, Packet};

fn source_at(port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], port))
}

fn sink_at() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 2], 8621))
}

fn config(arrivals: Arrivals) -> SourceConfig {
    SourceConfig {
        peer: sink_at(),
        nonce: 77,
        arrivals,
        rate: Rate::ip(1_000_000),
        packet_size: Bytes(500),
        seed: 5,
        lasts: Span::from_secs(4),
        max_bytes: None,
        ecn: Ecn::NotEct,
        dscp: 0,
    }
}

/// Observations of a run.
#[derive(Default)]
struct Seen {
    summary: Option<Summary>,
    sink: Vec<SinkEvent>,
    /// Departures of packets of data, with their sizes.
    data: Vec<(Time, u64)>,
    hellos: usize,
    /// Bytes that the sink got and sent.
    got: u64,
    gave: u64,
    statuses: Vec<Time>,
}

/// Runs both ends over a path of 5 ms each way. `passes` says which packets arrive.
fn run(
    source: SourceConfig,
    sink: SinkConfig,
    mut passes: impl FnMut(Time, &Packet) -> bool,
    end: Option<Time>,
) -> Seen {
    let (mut source, mut sink, mut seen) = (Source::new(source), Sink::new(sink), Seen::default());
    // Packets under way: when, to the sink or not, and the packet.
    let mut way: Vec<(Time, bool, Datagram)> = Vec::new();
    let (mut now, mut wakes, mut closed) = (Time::ZERO, [Some(Time::ZERO); 2], false);
    for _ in 0..1_000_000 {
        let next = way.iter().map(|packet| packet.0).chain(wakes.into_iter().flatten()).min();
        let Some(next) = next.filter(|_| !source.is_finished()) else { break };
        now = next.max(now);
        let mut inputs: Vec<(bool, Input)> = Vec::new();
        if let Some(place) = way.iter().position(|packet| packet.0 <= now) {
            let (at, to_sink, datagram) = way.remove(place);
            inputs.push((to_sink, Input::Datagram { port: PortId(0), at, datagram }));
        } else {
            inputs.extend([(false, Input::Wake), (true, Input::Wake)]);
        }
        if end.is_some_and(|end| now >= end) && !closed {
            closed = true;
            inputs.push((true, Input::Interrupted));
        }
        for (to_sink, input) in inputs {
            if to_sink {
                sink.handle(now, input);
            } else {
                source.handle(now, input);
            }
        }
        loop {
            match source.poll(now) {
                Output::Transmit(Transmit { id, at, mut datagram, .. }) => {
                    let at = at.max(now);
                    datagram.from = source_at(40_000);
                    let packet = Packet::parse(datagram.payload.udp().unwrap()).unwrap();
                    seen.hellos += usize::from(matches!(packet, Packet::Hello { .. }));
                    if matches!(packet, Packet::Data { .. }) {
                        seen.data.push((at, datagram.ip_size().0));
                    }
                    if id != TransmitId::UNTRACKED {
                        // Each leaves a tenth of a microsecond later than the one before.
                        source.handle(now, Input::Sent { id, at: at + Span::from_nanos(100 * id.0 as i64) });
                    }
                    if passes(at, &packet) {
                        seen.got += datagram.ip_size().0;
                        way.push((at + Span::from_millis(5), true, datagram));
                    }
                }
                Output::Event(SourceEvent::Ended(summary)) => seen.summary = Some(summary),
                Output::Event(_) => {}
                Output::Wait(until) => break wakes[0] = until,
            }
        }
        loop {
            match sink.poll(now) {
                Output::Transmit(Transmit { datagram, .. }) => {
                    let packet = Packet::parse(datagram.payload.udp().unwrap()).unwrap();
                    seen.gave += datagram.ip_size().0;
                    if matches!(packet, Packet::Status { .. }) {
                        seen.statuses.push(now);
                    }
                    if passes(now, &packet) {
                        way.push((now + Span::from_millis(5), false, datagram));
                    }
                }
                Output::Event(event) => seen.sink.push(event),
                Output::Wait(until) => break wakes[1] = until,
            }
        }
    }
    seen
}

/// 250 packets a second for 4 s: all are counted, they leave when the simulator's would, each gap is 100 ns too long, and the sink answers once a
/// second with less than it got.
#[test]
fn all_that_leaves_is_counted_and_leaves_when_the_law_says() {
    let trace = "0 100\n0.5 400\n0.5 500\n3 60".parse().unwrap();
    for arrivals in [Arrivals::Cbr, Arrivals::Poisson, Arrivals::Trace(Arc::new(trace))] {
        let seen = run(config(arrivals.clone()), SinkConfig::new([1; 32]), |_, _| true, None);
        let summary = seen.summary.unwrap();
        let counts = summary.counts.unwrap();
        assert_eq!((summary.ended, summary.complete, summary.failed), (Ended::Done, true, 0));
        assert_eq!(
            (counts.packets, counts.bytes, counts.expected),
            (summary.packets, summary.bytes, summary.packets)
        );
        // Two exchanges of 10 ms come first.
        let begun = Time::ZERO + Span::from_millis(20);
        let random = Stream::new(5, SourceConfig::COMPONENT);
        let mut law = Departures::new(&arrivals, Rate::ip(1_000_000), Bytes(500), begun, random);
        assert_eq!(seen.data.len() as u64, summary.packets);
        for (at, size) in &seen.data {
            assert_eq!(*at, law.next());
            assert_eq!(*size, law.take().0);
        }
        assert!(summary.gap_error_median.is_some_and(|error| (error - 100e-9).abs() < 10e-9), "{summary:?}");
        assert!(seen.gave < seen.got && seen.statuses.len() <= 6, "{} of {}", seen.gave, seen.got);
        assert!(seen.statuses.windows(2).all(|two| two[1] - two[0] >= STATUS_EVERY));
        assert!(matches!(seen.sink.last(), Some(SinkEvent::SourceLeft { silent: false, .. })));
    }
}

#[test]
fn nothing_is_sent_before_the_sink_has_answered() {
    let silent = run(
        config(Arrivals::Cbr),
        SinkConfig::new([1; 32]),
        |_, p| !matches!(p, Packet::Welcome { .. }),
        None,
    );
    let summary = silent.summary.unwrap();
    assert_eq!(
        (summary.ended, summary.packets, silent.hellos, silent.data.len()),
        (Ended::NoAnswer, 0, 3, 0)
    );
    let unproven = run(
        config(Arrivals::Cbr),
        SinkConfig::new([1; 32]),
        |_, p| !matches!(p, Packet::Status { .. }),
        None,
    );
    assert_eq!((unproven.summary.unwrap().ended, unproven.data.len()), (Ended::NoPlace, 0));
}

#[test]
fn a_source_stops_when_the_sink_falls_silent_or_says_so() {
    let second = |s| Time::ZERO + Span::from_secs(s);
    let lasts = SourceConfig { lasts: Span::from_secs(60), ..config(Arrivals::Poisson) };
    let cut = |at: Time, packet: &Packet| at < second(5) || !matches!(packet, Packet::Status { .. });
    let silent = run(lasts.clone(), SinkConfig::new([1; 32]), cut, None);
    let last = silent.data.last().unwrap().0;
    assert_eq!(silent.summary.unwrap().ended, Ended::Silent);
    assert!(last > second(6) && last < second(5) + SILENCE + Span::from_millis(100), "{last}");

    let told = run(lasts.clone(), SinkConfig::new([1; 32]), |_, _| true, Some(second(5)));
    assert_eq!(told.summary.unwrap().ended, Ended::Stopped);
    assert!(told.data.last().unwrap().0 < second(5) + Span::from_millis(100));

    assert!(matches!(told.sink.last(), Some(SinkEvent::SourceLeft { silent: false, .. })));

    let limited = SinkConfig { longest: Span::from_secs(2), ..SinkConfig::new([1; 32]) };
    let limited = run(lasts.clone(), limited, |_, _| true, None);
    assert_eq!(limited.summary.unwrap().ended, Ended::Stopped);
    let bytes = run(
        SourceConfig { max_bytes: Some(Bytes(50_000)), ..lasts },
        SinkConfig::new([1; 32]),
        |_, _| true,
        None,
    );
    let summary = bytes.summary.unwrap();
    assert_eq!((summary.ended, summary.bytes, summary.packets), (Ended::Bytes, 50_000, 100));
}

/// A packet each 32 s, and silences of 10 s: the sink has bytes to answer with, since the source opens again each second.
#[test]
fn a_slow_source_keeps_its_sink() {
    let off = Span::from_secs(10);
    let bursts = OnOff { lengths: Lengths::Exponential, on: Span::from_millis(100), off };
    let slow = SourceConfig {
        rate: Rate::ip(300),
        packet_size: Bytes(1200),
        lasts: Span::from_secs(100),
        ..config(Arrivals::Cbr)
    };
    for config in [slow.clone(), SourceConfig { arrivals: Arrivals::OnOff(bursts), ..slow }] {
        let seen = run(config, SinkConfig::new([1; 32]), |_, _| true, None);
        let summary = seen.summary.unwrap();
        assert_eq!((summary.ended, summary.complete), (Ended::Done, true), "{summary:?}");
        assert_eq!(summary.counts.unwrap().packets, summary.packets);
        let most = seen.statuses.windows(2).map(|two| two[1] - two[0]).max().unwrap();
        assert!(most < Span::from_millis(2_200) && seen.gave <= seen.got, "{most}");
    }
}

/// A sink that starts anew knows neither the source nor its token, and a source takes its silence for an end.
#[test]
fn a_sink_that_starts_anew_answers_nothing_of_the_old_one() {
    let mut bytes = Vec::new();
    let mut tell = |sink: &mut Sink, packet: Packet| {
        packet.write(&mut bytes, 0);
        let now = Time::from_nanos(1);
        let datagram = Datagram::udp(source_at(40_000), sink_at(), bytes.clone());
        sink.handle(now, Input::Datagram { port: PortId(0), at: now, datagram });
        match sink.poll(now) {
            Output::Transmit(t) => Packet::parse(t.datagram.payload.udp().unwrap()).ok(),
            _ => None,
        }
    };
    let (mut old, mut new) = (Sink::new(SinkConfig::new([1; 32])), Sink::new(SinkConfig::new([2; 32])));
    let Some(Packet::Welcome { token, .. }) = tell(&mut old, Packet::Hello { nonce: 7 }) else { panic!() };
    for packet in [
        Packet::Data { nonce: 7, number: 900, departure: 0 },
        Packet::Open { nonce: 7, token },
        Packet::Bye { nonce: 7 },
    ] {
        assert_eq!((tell(&mut new, packet), new.sources()), (None, 0), "{packet:?}");
    }
}

/// 100 Gbit/s on a host that takes all that it is given and sends 400 packets each millisecond, and whose stamps come 1 ms later: it says what left,
/// in which time, and no more waits than is bounded, if it ends by itself and if it is interrupted.
#[test]
fn a_host_that_is_too_slow_says_what_left_and_for_how_long_it_sent() {
    for interrupted in [None, Some(300)] {
        let fast = SourceConfig {
            rate: Rate::ip(100_000_000_000),
            packet_size: Bytes(1200),
            lasts: Span::from_millis(400),
            ..config(Arrivals::Cbr)
        };
        let mut source = Source::new(fast);
        let mut bytes = Vec::new();
        let (mut now, mut summary) = (Time::ZERO, None);
        let (mut waiting, mut most, mut left) = (std::collections::VecDeque::new(), 0, 0);
        for step in 0_u32..4_000 {
            let mut inputs = vec![Input::Wake];
            let mut said = |packet: Packet| {
                packet.write(&mut bytes, 0);
                let datagram = Datagram::udp(sink_at(), source_at(40_000), bytes.clone());
                inputs.push(Input::Datagram { port: PortId(0), at: now, datagram });
            };
            match step {
                1 => said(Packet::Welcome { nonce: 77, token: [0; 16] }),
                2 => said(status_of(0)),
                _ => {}
            }
            let sent: Vec<_> = waiting.drain(..waiting.len().min(400)).collect();
            left += sent.iter().filter(|id| **id != TransmitId::UNTRACKED).count() as u64;
            if sent.last() == Some(&TransmitId::UNTRACKED) && step > 10 {
                let Packet::Status { nonce, number, counts, .. } = status_of(step) else { panic!() };
                said(Packet::Status { nonce, number, stop: false, last: true, counts });
            }
            let tracked = sent.into_iter().filter(|id| *id != TransmitId::UNTRACKED);
            inputs.extend(tracked.map(|id| Input::Sent { id, at: now }));
            inputs.extend((interrupted == Some(step)).then_some(Input::Interrupted));
            now += Span::from_millis(1);
            for input in inputs {
                source.handle(now, input);
                loop {
                    match source.poll(now) {
                        Output::Transmit(transmit) => waiting.push_back(transmit.id),
                        Output::Event(SourceEvent::Ended(ended)) => summary = Some(ended),
                        Output::Event(_) => {}
                        Output::Wait(_) => break,
                    }
                }
            }
            most = most.max(waiting.len());
            if source.is_finished() {
                break;
            }
        }
        let summary = summary.unwrap();
        let ended = if interrupted.is_some() { Ended::Interrupted } else { Ended::Done };
        assert_eq!((summary.ended, summary.packets, summary.bytes), (ended, left, left * 1200));
        let rate = summary.bytes as f64 * 8.0 / summary.seconds;
        assert!(left > 50_000 && (rate / 3.84e9 - 1.0).abs() < 0.03, "{rate} {summary:?}");
        assert!(most <= 64_000_000 / 1200 + 512, "{most}");
    }
}

fn status_of(number: u32) -> Packet {
    Packet::Status { nonce: 77, number, stop: false, last: false, counts: Counts::default() }
}

/// A status is believed only from the sink's address and with the source's nonce.
#[test]
fn a_stranger_cannot_answer_for_the_sink() {
    let mut source = Source::new(config(Arrivals::Cbr));
    source.handle(Time::ZERO, Input::Wake);
    let mut bytes = Vec::new();
    let mut tell = |from, packet: Packet| {
        packet.write(&mut bytes, 0);
        let datagram = Datagram::udp(from, source_at(40_000), bytes.clone());
        source.handle(
            Time::from_nanos(9),
            Input::Datagram { port: PortId(0), at: Time::from_nanos(9), datagram },
        );
        let mut sent = 0;
        while let Output::Transmit(transmit) = source.poll(Time::from_nanos(9)) {
            let packet = Packet::parse(transmit.datagram.payload.udp().unwrap());
            sent += usize::from(!matches!(packet, Ok(Packet::Hello { .. })));
        }
        sent
    };
    assert_eq!(tell(source_at(8621), Packet::Welcome { nonce: 77, token: [0; 16] }), 0);
    assert_eq!(tell(sink_at(), Packet::Welcome { nonce: 78, token: [0; 16] }), 0);
    let status =
        |nonce| Packet::Status { nonce, number: 0, stop: false, last: false, counts: Counts::default() };
    assert_eq!(tell(sink_at(), status(77)), 0, "a status before the opening is none");
    assert_eq!(tell(sink_at(), Packet::Welcome { nonce: 77, token: [0; 16] }), 1);
    assert_eq!(tell(sink_at(), status(78)), 0);
}

/// A host that stood still does not send what it owes.
#[test]
fn what_was_held_up_is_put_off() {
    let mut source = Source::new(config(Arrivals::Cbr));
    let mut bytes = Vec::new();
    let second = |s: f64| Time::ZERO + Span::from_secs_f64(s);
    let mut at = |now: Time, packet: Option<Packet>| {
        match packet {
            Some(packet) => {
                packet.write(&mut bytes, 0);
                let datagram = Datagram::udp(sink_at(), source_at(40_000), bytes.clone());
                source.handle(now, Input::Datagram { port: PortId(0), at: now, datagram });
            }
            None => source.handle(now, Input::Wake),
        }
        let mut data = 0;
        loop {
            match source.poll(now) {
                Output::Transmit(t) => data += usize::from(t.id != TransmitId::UNTRACKED),
                Output::Event(_) => {}
                Output::Wait(_) => return data,
            }
        }
    };
    let status =
        |number| Packet::Status { nonce: 77, number, stop: false, last: false, counts: Counts::default() };
    at(second(0.0), None);
    at(second(0.1), Some(Packet::Welcome { nonce: 77, token: [0; 16] }));
    let first = at(second(0.2), Some(status(0)));
    assert!((4..=6).contains(&first), "{first}"); // 20 ms ahead
    assert!((4..=7).contains(&at(second(2.2), Some(status(1)))), "two seconds are owed, and not sent");
}

#[test]
fn one_network_has_half_of_the_places() {
    let mut sink = Sink::new(SinkConfig::new([9; 32]));
    let mut bytes = Vec::new();
    let mut opened = |from: SocketAddr| {
        let mut tell = |packet: Packet| {
            packet.write(&mut bytes, 0);
            let datagram = Datagram::udp(from, sink_at(), bytes.clone());
            let now = Time::from_nanos(1);
            sink.handle(now, Input::Datagram { port: PortId(0), at: now, datagram });
            let mut answer = None;
            loop {
                match sink.poll(now) {
                    Output::Transmit(t) => answer = Packet::parse(t.datagram.payload.udp().unwrap()).ok(),
                    Output::Event(_) => {}
                    Output::Wait(_) => return answer,
                }
            }
        };
        let Some(Packet::Welcome { token, .. }) = tell(Packet::Hello { nonce: 1 }) else { panic!() };
        let mut forged = token;
        forged[3] ^= 1;
        assert_eq!(tell(Packet::Open { nonce: 1, token: forged }), None);
        assert_eq!(tell(Packet::Data { nonce: 1, number: 0, departure: 0 }), None);
        tell(Packet::Open { nonce: 1, token }).is_some()
    };
    assert_eq!((1..=20).filter(|port| opened(source_at(*port))).count(), 8);
    assert!(opened("198.51.100.7:5".parse().unwrap()));
    assert_eq!(sink.sources(), 9);
}

proptest! {
    /// No peer gets more bytes than it sent, by any sequence of packets.
    #[test]
    fn a_sink_gives_no_more_than_it_gets(
        packets in prop::collection::vec((0_u8..6, 0_u64..3, 0_usize..200, 0_u64..2_000, 0_u16..3), 1..200),
    ) {
        let mut sink = Sink::new(SinkConfig::new([3; 32]));
        let (mut now, mut balance, mut token) = (Time::ZERO, [0_i64; 3], [0; 16]);
        for (kind, nonce, length, ms, port) in packets {
            now += Span::from_millis(ms as i64);
            let packet = match kind {
                0 => Packet::Hello { nonce },
                1 => Packet::Welcome { nonce, token },
                2 => Packet::Open { nonce, token },
                3 => Packet::Data { nonce, number: ms, departure: 0 },
                4 => Packet::Status { nonce, number: 1, stop: false, last: false, counts: Counts::default() },
                _ => Packet::Bye { nonce },
            };
            let mut bytes = Vec::new();
            packet.write(&mut bytes, length);
            bytes.truncate(length.max(20));
            let datagram = Datagram::udp(source_at(port), sink_at(), bytes);
            balance[usize::from(port)] += datagram.ip_size().0 as i64;
            sink.handle(now, Input::Datagram { port: PortId(0), at: now, datagram });
            loop {
                match sink.poll(now) {
                    Output::Transmit(t) => {
                        balance[usize::from(t.datagram.to.port())] -= t.datagram.ip_size().0 as i64;
                        if let Ok(Packet::Welcome { token: given, .. }) = Packet::parse(t.datagram.payload.udp().unwrap()) {
                            token = given;
                        }
                    }
                    Output::Event(_) => {}
                    Output::Wait(_) => break,
                }
            }
            prop_assert!(balance.iter().all(|left| *left >= 0), "{:?}", balance);
        }
    }
}

#[test]
fn a_refused_source_says_so() {
    let mut source = Source::new(config(Arrivals::Cbr));
    source.handle(Time::ZERO, Input::Wake);
    source.handle(Time::ZERO, Input::Failed { port: PortId(0), id: None, reason: Failure::PortClosed });
    let mut ended = None;
    loop {
        match source.poll(Time::ZERO) {
            Output::Event(SourceEvent::Ended(summary)) => ended = Some(summary.ended),
            Output::Wait(_) => break,
            _ => {}
        }
    }
    assert_eq!((ended, source.is_finished()), (Some(Ended::Unreachable), true));
}
