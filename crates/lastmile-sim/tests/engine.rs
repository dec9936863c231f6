//! The engine's invariants over random networks, and its arithmetic against textbooks.

use lastmile::node::{Datagram, Flow, Input, Node, Output, PortId, Transmit, TransmitId};
use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};
use lastmile_sim::network::element::Element;
use lastmile_sim::network::engine::{Engine, EngineError, NodeId, Target};
use lastmile_sim::network::link::{Link, LinkConfig, QueueLimit};
use lastmile_sim::network::traffic::{Arrivals, Sink, SinkCounters, Source, SourceConfig};
use lastmile_sim::rng::Stream;
use proptest::prelude::*;

mod common;

#[derive(Clone, Debug)]
struct FlowPlan {
    name: String,
    poisson: bool,
    kbits: u64,
    size: u64,
    first_link: usize,
    last_link: usize,
}

#[derive(Clone, Debug)]
struct Plan {
    links: Vec<LinkConfig>,
    flows: Vec<FlowPlan>,
    seed: u64,
}

struct Net {
    engine: Engine,
    links: Vec<NodeId>,
    sources: Vec<NodeId>,
    sinks: Vec<NodeId>,
}

/// A chain of links; every flow crosses some of them in a row.
fn build(plan: &Plan) -> Net {
    let mut engine = Engine::new();
    let any = "10.77.0.1:9".parse().unwrap();
    let routers: Vec<_> = (0..=plan.links.len()).map(|_| engine.add_router()).collect();
    let mut links = Vec::new();
    for (index, config) in plan.links.iter().enumerate() {
        let link = engine.add(Link::new(config.clone())).unwrap();
        engine.connect(link, Target::Router(routers[index + 1]));
        links.push(link);
    }
    let (mut sources, mut sinks) = (Vec::new(), Vec::new());
    for (number, flow) in plan.flows.iter().enumerate() {
        let (first, last) = (flow.first_link.min(flow.last_link), flow.first_link.max(flow.last_link));
        let label = Flow(number as u32);
        (first..=last).for_each(|link| engine.route(routers[link], label, links[link]));
        let sink = engine.add(Sink::default()).unwrap();
        engine.route(routers[last + 1], label, sink);
        let config = SourceConfig {
            arrivals: if flow.poisson { Arrivals::Poisson } else { Arrivals::Cbr },
            rate: Rate::ip(flow.kbits * 1000),
            ip_size: Bytes(flow.size),
            start: Time::ZERO,
            stop: Time::ZERO + Span::from_secs(1),
            flow: label,
            from: any,
            to: any,
        };
        let source = engine.add(Source::new(config, Stream::new(plan.seed, &flow.name))).unwrap();
        engine.connect(source, Target::Router(routers[first]));
        sources.push(source);
        sinks.push(sink);
    }
    Net { engine, links, sources, sinks }
}

impl Net {
    fn received(&self) -> Vec<SinkCounters> {
        self.sinks.iter().map(|&sink| *self.engine.sink(sink).unwrap().counters()).collect()
    }

    fn sent(&self) -> Vec<u64> {
        let sent = |&node: &NodeId| match self.engine.element(node) {
            Some(Element::Source(source)) => source.sent(),
            _ => unreachable!(),
        };
        self.sources.iter().map(sent).collect()
    }

    /// All that can be seen from outside, for comparison byte by byte.
    fn trace(&self) -> String {
        let links: Vec<_> =
            self.links.iter().map(|&link| self.engine.link(link).unwrap().counters()).collect();
        format!("{:?} {:?} {links:?}", self.sent(), self.received())
    }
}

fn plans() -> impl Strategy<Value = Plan> {
    let queue = prop_oneof![
        (1_u32..20).prop_map(QueueLimit::Packets),
        (1500_u64..30_000).prop_map(|n| QueueLimit::Bytes(Bytes(n))),
    ];
    let link = (prop::option::of(100_u64..20_000), 0_i64..20_000, 0_u64..60, queue).prop_map(
        |(kbits, delay, overhead, queue)| LinkConfig {
            rate: kbits.map(|kbits| Rate::ip(kbits * 1000)),
            delay: Span::from_micros(delay),
            overhead: Bytes(overhead),
            queue,
            ..Default::default()
        },
    );
    let flow = (any::<bool>(), 10_u64..10_000, 40_u64..1500, 0_usize..4, 0_usize..4);
    (prop::collection::vec(link, 4), prop::collection::vec(flow, 1..6), any::<u64>()).prop_map(
        |(links, flows, seed)| {
            let flows = flows.into_iter().enumerate().map(
                |(number, (poisson, kbits, size, first_link, last_link))| FlowPlan {
                    name: format!("flow {number}"),
                    poisson,
                    kbits,
                    size,
                    first_link,
                    last_link,
                },
            );
            Plan { links, flows: flows.collect(), seed }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn packets_are_conserved_in_order_and_nothing_happens_in_the_past(
        plan in plans(), stops in prop::collection::vec(0_u64..300_000_000, 1..10),
    ) {
        let mut net = build(&plan);
        let mut end = Time::ZERO;
        for stop in stops {
            let next = net.engine.next_event();
            prop_assert!(next.is_none_or(|at| at >= net.engine.now()));
            end += Span::from_nanos(stop as i64);
            net.engine.run_until(end).unwrap();
            prop_assert_eq!(net.engine.now(), end);
            prop_assert!(net.engine.next_event().is_none_or(|at| at > end));

            let links: Vec<_> = net.links.iter().map(|&link| net.engine.link(link).unwrap()).collect();
            let dropped: u64 = links.iter().map(|link| link.counters().drops).sum();
            let under_way: u64 = links.iter().map(|link| link.under_way() as u64).sum();
            let received: u64 = net.received().iter().map(|sink| sink.packets).sum();
            prop_assert_eq!(net.sent().iter().sum::<u64>(), received + dropped + under_way);
            prop_assert_eq!(net.engine.unroutable(), 0);
            for link in links {
                prop_assert!(link.busy(end) >= Span::ZERO && link.busy(end) <= end - Time::ZERO);
            }
        }
        prop_assert!(net.received().iter().all(|sink| sink.out_of_order == 0));
    }

    #[test]
    fn one_seed_gives_one_run_however_time_is_cut(plan in plans(), step in 1_i64..100_000_000) {
        let end = Time::ZERO + Span::from_millis(1500);
        let mut whole = build(&plan);
        whole.engine.run_until(end).unwrap();
        let mut cut = build(&plan);
        while cut.engine.now() < end {
            let next = (cut.engine.now() + Span::from_nanos(step)).min(end);
            cut.engine.run_until(next).unwrap();
        }
        prop_assert_eq!(whole.trace(), cut.trace());
        // Paced as the lab does: from event to event.
        let mut paced = build(&plan);
        while let Some(at) = paced.engine.next_event().filter(|&at| at <= end) {
            paced.engine.run_until(at).unwrap();
        }
        prop_assert_eq!(whole.trace(), paced.trace());
    }

    #[test]
    fn another_flow_leaves_the_draws_of_the_others_alone(plan in plans(), poisson in any::<bool>()) {
        // On links of their own, so that only the draws could differ.
        let free = LinkConfig::default();
        let plan = Plan { links: vec![free; 4], ..plan };
        let mut more = plan.clone();
        more.flows.push(FlowPlan { name: "another".into(), poisson, kbits: 500, size: 700, first_link: 0, last_link: 3 });
        let (mut before, mut after) = (build(&plan), build(&more));
        before.engine.run_until(Time::ZERO + Span::from_secs(2)).unwrap();
        after.engine.run_until(Time::ZERO + Span::from_secs(2)).unwrap();
        let count = plan.flows.len();
        prop_assert_eq!(before.sent(), after.sent()[..count].to_vec());
        prop_assert_eq!(before.received(), after.received()[..count].to_vec());
    }
}

fn one_link(queue: QueueLimit, poisson: bool, kbits: u64) -> Plan {
    let rate = Some(Rate::ip(10_000_000));
    let flow = FlowPlan { name: "only".into(), poisson, kbits, size: 1500, first_link: 0, last_link: 0 };
    Plan { links: vec![LinkConfig { rate, queue, ..Default::default() }], flows: vec![flow], seed: 11 }
}

#[test]
fn md1_waits_as_pollaczek_and_khinchine_say() {
    // Mean time in an M/D/1 queue: S + rho S / (2 (1 - rho)) = 1.2 ms + 1.4 ms at rho = 0.7.
    let (mut packets, mut delay) = (0, Span::ZERO);
    for seed in 0..400 {
        let mut net = build(&Plan { seed, ..one_link(QueueLimit::Packets(100_000), true, 7_000) });
        net.engine.run_until(Time::ZERO + Span::from_secs(3)).unwrap();
        let counters = net.received()[0];
        packets += counters.packets;
        delay += counters.total_delay;
    }
    let mean = (delay / packets as i64).as_secs_f64();
    assert!((mean / 0.0026 - 1.0).abs() < 0.03, "{packets} packets, {mean} s");
}

#[test]
fn dd1_is_exact() {
    // Below capacity nothing ever waits.
    let mut net = build(&one_link(QueueLimit::Packets(1), false, 9_000));
    net.engine.run_until(Time::ZERO + Span::from_secs(2)).unwrap();
    let counters = net.received()[0];
    assert_eq!((counters.packets, counters.max_delay), (750, Span::from_micros(1200)));
    assert_eq!(counters.mean_delay(), Some(Span::from_micros(1200)));

    // 12 into 10 Mbit/s: a sixth is lost once the queue of ten is full, and the link never rests again.
    let mut net = build(&one_link(QueueLimit::Packets(10), false, 12_000));
    net.engine.run_until(Time::ZERO + Span::from_secs(2)).unwrap();
    let link = *net.engine.link(net.links[0]).unwrap().counters();
    // In one second 1000 come and 833.3 leave; ten wait and one is sent at the end.
    assert_eq!(link.arrived, 1000);
    assert!(link.drops.abs_diff(1000 - 833 - 11) <= 1, "{}", link.drops);
    assert_eq!(link.max_queue_packets, 10);
    assert!(net.received()[0].max_delay <= Span::from_micros(1200) * 11);
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
    let element: Box<dyn Node<Event = std::convert::Infallible> + Send> = Box::new(NextPort::default());
    let node = engine.add(element).unwrap();
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
        let source: Box<dyn Node<Event = std::convert::Infallible> + Send> =
            common::Recorder::new(vec![packet()]).0;
        let source = engine.add(source).unwrap();
        engine.connect(source, target);
    }
    engine.run_until(Time::from_nanos(1)).unwrap();
    let received = sinks.iter().map(|&s| engine.sink(s).unwrap().counters().packets);
    assert_eq!(received.collect::<Vec<_>>(), [1, 1, 1]);
    assert_eq!(engine.unroutable(), 0);
}
