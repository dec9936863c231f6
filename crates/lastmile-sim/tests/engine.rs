//! The engine's arithmetic against textbooks, and ports. What holds in any network is in `invariants/`.

use lastmile::node::{Datagram, Flow, Input, Node, Output, PortId, Transmit, TransmitId};
use lastmile::time::{Span, Time};
use lastmile::units::Rate;
use lastmile_sim::network::element::Element;
use lastmile_sim::network::engine::{Engine, EngineError, Target};
use lastmile_sim::network::link::{Link, LinkConfig, LinkCounters, QueueLimit};
use lastmile_sim::network::traffic::{Arrivals, Sink, SinkCounters, Source, SourceConfig};
use lastmile_sim::rng::Stream;

mod common;

/// What a second of packets of 1500 B comes to over 10 Mbit/s.
fn one_link(packets: u32, arrivals: Arrivals, kbits: u64, seed: u64) -> (LinkCounters, SinkCounters) {
    let mut engine = Engine::new();
    let (rate, stop) = (Rate::ip(kbits * 1000), Time::ZERO + Span::from_secs(1));
    let source = SourceConfig { arrivals, rate, stop, ..SourceConfig::default() };
    let source = engine.add(Source::new(source, Stream::new(seed, "only"))).unwrap();
    let (rate, queue) = (Some(Rate::ip(10_000_000)), QueueLimit::Packets(packets));
    let link = engine.add(Link::new(LinkConfig { rate, queue, ..Default::default() })).unwrap();
    let sink = engine.add(Sink::default()).unwrap();
    engine.connect(source, Target::Node(link));
    engine.connect(link, Target::Node(sink));
    engine.run_until(Time::ZERO + Span::from_secs(3)).unwrap();
    (*engine.link(link).unwrap().counters(), *engine.sink(sink).unwrap().counters())
}

#[test]
fn md1_waits_as_pollaczek_and_khinchine_say() {
    // Mean time in an M/D/1 queue: S + rho S / (2 (1 - rho)) = 1.2 ms + 1.4 ms at rho = 0.7.
    let (mut packets, mut delay) = (0, Span::ZERO);
    for seed in 0..400 {
        let (_, counters) = one_link(100_000, Arrivals::Poisson, 7_000, seed);
        packets += counters.packets;
        delay += counters.total_delay;
    }
    let mean = (delay / packets as i64).as_secs_f64();
    assert!((mean / 0.0026 - 1.0).abs() < 0.03, "{packets} packets, {mean} s");
}

#[test]
fn dd1_is_exact() {
    // Below capacity nothing ever waits.
    let (_, counters) = one_link(1, Arrivals::Cbr, 9_000, 11);
    assert_eq!((counters.packets, counters.max_delay), (750, Span::from_micros(1200)));
    assert_eq!(counters.mean_delay(), Some(Span::from_micros(1200)));
    // 12 into 10 Mbit/s: a sixth is lost once the queue of ten is full, and the link never rests again. In one second 1000
    // come and 833.3 leave; ten wait and one is sent at the end.
    let (link, counters) = one_link(10, Arrivals::Cbr, 12_000, 11);
    assert_eq!((link.arrived, link.max_queue_packets), (1000, 10));
    assert!(link.drops.abs_diff(1000 - 833 - 11) <= 1, "{}", link.drops);
    assert!(counters.max_delay <= Span::from_micros(1200) * 11);
}

/// Sends each packet on by the port above the one at which it came in.
#[derive(Default)]
struct NextPort(Vec<(PortId, Datagram)>);

impl Node for NextPort {
    type Event = std::convert::Infallible;

    fn handle(&mut self, _now: Time, input: Input) {
        if let Input::Datagram { port, datagram, .. } = input {
            self.0.push((port, datagram));
        }
    }
    fn poll(&mut self, now: Time) -> Output {
        self.0.pop().map_or(Output::Wait(None), |(port, datagram)| {
            Output::Transmit(Transmit { id: TransmitId(0), at: now, port: PortId(port.0 + 1), datagram })
        })
    }
}

#[test]
fn ports_tell_what_enters_and_leaves_a_node_apart() {
    let any = "10.77.0.1:9".parse().unwrap();
    let packet = || Transmit {
        id: TransmitId(0),
        at: Time::ZERO,
        port: PortId(0),
        datagram: Datagram::udp(any, any, vec![1]),
    };
    let mut engine = Engine::new();
    let node = engine.add(Element::other(NextPort::default())).unwrap();
    let sinks: Vec<_> = (0..3).map(|_| engine.add(Sink::default()).unwrap()).collect();
    engine.connect(node, Target::Node(sinks[0]));
    engine.connect_port(node, PortId(4), Target::Node(sinks[1])).unwrap();
    engine.connect_port(node, PortId(4000), Target::Node(sinks[2])).unwrap();
    assert_eq!(
        engine.connect_port(node, PortId(4095), Target::Nowhere),
        Err(EngineError::TooManyPorts { port: 4095 })
    );
    let router = engine.add_router();
    engine.route_port(router, Flow(0), node, PortId(3999));
    // By a router to 3999, directly to 3, and to 7, which has no target of its own.
    for target in [Target::Router(router), Target::Port(node, PortId(3)), Target::Port(node, PortId(7))] {
        let source = engine.add(Element::other(*common::Recorder::new(vec![packet()]).0)).unwrap();
        engine.connect(source, target);
    }
    engine.run_until(Time::from_nanos(1)).unwrap();
    let received = sinks.iter().map(|&s| engine.sink(s).unwrap().counters().packets);
    assert_eq!(received.collect::<Vec<_>>(), [1, 1, 1]);
    assert_eq!(engine.unroutable(), 0);
}
