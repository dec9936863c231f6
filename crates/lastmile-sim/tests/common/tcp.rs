//! TCP connections over chains of links, and independent loss.

use std::collections::VecDeque;

use lastmile::node::{Datagram, Flow, Input, Node, Output, PortId, Transmit, TransmitId};
use lastmile::time::{Span, Time};
use lastmile::units::Rate;
use lastmile_sim::network::engine::{Engine, NodeId, RouterId, Target};
use lastmile_sim::network::link::{Link, LinkConfig, QueueLimit};
use lastmile_sim::network::tcp::{App, Ends, Receiver, Sender, TcpConfig};
use lastmile_sim::rng::Stream;

/// Loses each packet with the same probability.
pub struct Bernoulli {
    probability: f64,
    random: Stream,
    out: VecDeque<Datagram>,
}

impl Bernoulli {
    pub fn boxed(probability: f64, seed: u64) -> Box<dyn Node<Event = std::convert::Infallible> + Send> {
        Box::new(Bernoulli { probability, random: Stream::new(seed, "loss"), out: VecDeque::new() })
    }
}

impl Node for Bernoulli {
    type Event = std::convert::Infallible;

    fn handle(&mut self, _now: Time, input: Input) {
        if let Input::Datagram { datagram, .. } = input
            && self.random.unit() >= self.probability
        {
            self.out.push_back(datagram);
        }
    }
    fn poll(&mut self, now: Time) -> Output {
        self.out.pop_front().map_or(Output::Wait(None), |datagram| {
            Output::Transmit(Transmit { id: TransmitId::UNTRACKED, at: now, port: PortId(0), datagram })
        })
    }
}

/// A link as ns-2's DropTail of `limit` packets makes it: one place of those is the packet in transmission's.
pub fn ns2_link(bits_per_second: u64, delay: Span, limit: u32) -> Link {
    let queue = QueueLimit::Packets(limit - 1);
    Link::new(LinkConfig { rate: Some(Rate::ip(bits_per_second)), delay, queue, ..Default::default() })
}

/// The two ends of a connection.
pub struct Connection {
    pub sender: NodeId,
    pub receiver: NodeId,
}

pub fn ends(number: u32) -> Ends {
    let any = "10.77.0.1:80".parse().unwrap();
    Ends { sender: any, receiver: any, data: Flow(2 * number), acks: Flow(2 * number + 1) }
}

/// A connection whose segments cross the nodes of `there` one after the other, and its ACKs those of `back`.
pub fn chain(
    engine: &mut Engine,
    config: &TcpConfig,
    (app, start, stop): (App, Time, Time),
    seed: u64,
    there: &[NodeId],
    back: &[NodeId],
) -> Connection {
    let random = Stream::new(seed, "tcp");
    let sender = engine.add(Sender::new(config, ends(0), app, start, stop, random)).unwrap();
    let receiver = engine.add(Receiver::new(config, ends(0))).unwrap();
    for (from, nodes, to) in [(sender, there, receiver), (receiver, back, sender)] {
        let mut before = from;
        for &node in nodes.iter().chain([&to]) {
            engine.connect(before, Target::Node(node));
            before = node;
        }
    }
    Connection { sender, receiver }
}

/// Connections over access links of 1 Gbit/s and 1 ms, a bottleneck with a queue of so many packets, and the same way
/// back without a limit. Gives the bottleneck too.
pub fn dumbbell(
    engine: &mut Engine,
    (mbits, delay, queue): (u64, Span, u32),
    flows: &[(TcpConfig, App, Time)],
    seed: u64,
) -> (NodeId, Vec<Connection>) {
    let [bottleneck, reverse] = [queue, 10_000].map(|queue| ns2_link(mbits * 1_000_000, delay, queue));
    let it = dumbbell_over(engine, bottleneck, reverse, flows, seed);
    (it.bottleneck, it.connections)
}

/// A bottleneck, the router behind it, and the connections over it.
pub struct Dumbbell {
    pub bottleneck: NodeId,
    pub router: RouterId,
    pub connections: Vec<Connection>,
}

/// Such connections over a bottleneck and a way back that are given.
pub fn dumbbell_over(
    engine: &mut Engine,
    bottleneck: Link,
    reverse: Link,
    flows: &[(TcpConfig, App, Time)],
    seed: u64,
) -> Dumbbell {
    let (forth, back) = (engine.add_router(), engine.add_router());
    let bottleneck = engine.add(bottleneck).unwrap();
    let reverse = engine.add(reverse).unwrap();
    engine.connect(bottleneck, Target::Router(forth));
    engine.connect(reverse, Target::Router(back));
    let connections = flows.iter().enumerate().map(|(number, (config, app, start))| {
        let ends = ends(number as u32);
        let random = Stream::new(seed, &format!("tcp/{number}"));
        let sender = Sender::new(config, ends, app.clone(), *start, seconds(1e6), random);
        let sender = engine.add(sender).unwrap();
        let receiver = engine.add(Receiver::new(config, ends)).unwrap();
        let [up, down, ack_up, ack_down] =
            [(); 4].map(|()| engine.add(ns2_link(1_000_000_000, Span::from_millis(1), 10_000)).unwrap());
        engine.connect(sender, Target::Node(up));
        engine.connect(up, Target::Node(bottleneck));
        engine.route(forth, ends.data, down);
        engine.connect(down, Target::Node(receiver));
        engine.connect(receiver, Target::Node(ack_up));
        engine.connect(ack_up, Target::Node(reverse));
        engine.route(back, ends.acks, ack_down);
        engine.connect(ack_down, Target::Node(sender));
        Connection { sender, receiver }
    });
    Dumbbell { bottleneck, router: forth, connections: connections.collect() }
}

pub fn seconds(s: f64) -> Time {
    Time::ZERO + Span::from_secs_f64(s)
}
