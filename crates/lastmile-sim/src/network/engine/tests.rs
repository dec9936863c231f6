//! Packets that the engine holds, and the moment at which it calls itself stuck.

use lastmile::node::{Datagram, Flow, Input, Node, Output, PortId, Transmit, TransmitId};
use lastmile::rng::Stream;
use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};

use super::{Engine, EngineError, STUCK_AFTER, Target};
use crate::network::element::Element;
use crate::network::link::{Change, Link, LinkConfig, QueueLimit};
use crate::network::traffic::{Sink, Source, SourceConfig};
use crate::scenario::{BUILTIN, build, builtin};

/// Every packet is in one place: the slab holds the packets that links have under way, and no others.
#[test]
fn no_packet_is_left_behind() {
    for name in BUILTIN {
        let mut simulation = build(&builtin(name).unwrap(), 3, vec![]).unwrap();
        for until in [300, 1_100, 1_999, 2_000, 3_000].map(|ms| Time::ZERO + Span::from_millis(ms)) {
            simulation.engine.run_until(until).unwrap();
            let link = |&node| simulation.engine.link(node).unwrap().under_way();
            let under_way: usize = simulation.links.iter().map(link).sum();
            assert_eq!(simulation.engine.packets.held(), under_way, "{name} at {until}");
        }
    }
}

/// A link never reorders: when its delay shrinks, the packets on it come at one moment, and that is no standstill.
#[test]
fn all_that_is_under_way_may_arrive_at_once() {
    let mut engine = Engine::new();
    let second = Span::from_secs(1);
    let config = LinkConfig {
        delay: second * 20,
        queue: QueueLimit::Packets(u32::MAX),
        schedule: vec![Change { at: Time::ZERO + Span::from_millis(1), rate: None, delay: Some(Span::ZERO) }],
        ..LinkConfig::default()
    };
    let first = engine.add(Link::new(config)).unwrap();
    let source = SourceConfig {
        rate: Rate::ip(100_000_000),
        ip_size: Bytes(50),
        stop: Time::ZERO + second,
        ..SourceConfig::default()
    };
    let source = engine.add(Source::new(source, Stream::new(1, "x"))).unwrap();
    engine.connect(source, Target::Node(first));
    // Hops enough to be more than the limit of an engine that holds nothing.
    let (mut last, hops) = (first, 48);
    for _ in 0..hops {
        let next = engine.add(Link::new(LinkConfig::default())).unwrap();
        engine.connect(last, Target::Node(next));
        last = next;
    }
    let sink = engine.add(Sink::default()).unwrap();
    engine.connect(last, Target::Node(sink));
    engine.run_until(Time::ZERO + second * 30).unwrap();
    let packets = engine.sink(sink).unwrap().counters().packets;
    assert!(packets * hops > STUCK_AFTER, "{packets}");
    assert_eq!(engine.packets.held(), 0);
}

/// Sends each packet on by the port above the one at which it came in.
#[derive(Default)]
struct NextPort(Vec<(PortId, Datagram)>);

impl Node for NextPort {
    type Event = core::convert::Infallible;

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
    let (mut engine, stop) = (Engine::new(), Time::ZERO + Span::from_secs(1));
    let node = engine.add(Element::other(NextPort::default())).unwrap();
    let sinks = [(); 3].map(|()| engine.add(Sink::default()).unwrap());
    engine.connect(node, Target::Node(sinks[0]));
    engine.connect_port(node, PortId(4), Target::Node(sinks[1])).unwrap();
    engine.connect_port(node, PortId(4000), Target::Node(sinks[2])).unwrap();
    let beyond = engine.connect_port(node, PortId(4095), Target::Nowhere);
    assert_eq!(beyond, Err(EngineError::TooManyPorts(4095)));
    let router = engine.add_router();
    engine.route_port(router, Flow(0), node, PortId(3999));
    // By a router to 3999, directly to 3, and to 7, which has no target of its own. One packet each.
    for target in [Target::Router(router), Target::Port(node, PortId(3)), Target::Port(node, PortId(7))] {
        let source = SourceConfig { rate: Rate::ip(12_000), stop, ..SourceConfig::default() };
        let source = engine.add(Source::new(source, Stream::new(1, "x"))).unwrap();
        engine.connect(source, target);
    }
    engine.run_until(stop).unwrap();
    let received = sinks.map(|sink| engine.sink(sink).unwrap().counters().packets);
    assert_eq!((received, engine.unroutable()), ([1, 1, 1], 0));
}
