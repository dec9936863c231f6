//! TCP connections over chains of links, and independent loss.

use lastmile::node::Flow;
use lastmile::rng::Stream;
use lastmile::time::{Span, Time};
use lastmile::units::Rate;
use lastmile_sim::network::element::Element;
use lastmile_sim::network::engine::{Engine, NodeId, RouterId, Target};
use lastmile_sim::network::link::{Link, LinkConfig, QueueLimit};
use lastmile_sim::network::loss::{Bernoulli, Loss};
use lastmile_sim::network::tcp::{App, Ends, Receiver, ReceiverCounters, Sender, SenderCounters, TcpConfig};

/// Loses each packet with the same probability.
pub fn lossy(rate: f64, seed: u64) -> Element {
    let losses = vec![Loss::of(Bernoulli { rate })];
    Link::seeded(LinkConfig { losses, ..LinkConfig::default() }, seed, "lossy").into()
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

/// A connection over a link each way and what lies behind it.
pub struct Path {
    pub engine: Engine,
    pub link: NodeId,
    tcp: Connection,
}

impl Path {
    /// Over so many bit/s, a delay, and a queue of so many packets for segments; the queue for ACKs is long.
    pub fn new(
        config: &TcpConfig,
        (app, start, stop): (App, Time, Time),
        (bits_per_second, delay, queue): (u64, Span, u32),
        behind: [Vec<Element>; 2],
        seed: u64,
    ) -> Path {
        let mut engine = Engine::new();
        let sender = Sender::new(config, ends(0), app, start, stop, Stream::new(seed, "tcp"));
        let sender = engine.add(sender).unwrap();
        let receiver = engine.add(Receiver::new(config, ends(0))).unwrap();
        let links = [queue, 1000].map(|queue| engine.add(ns2_link(bits_per_second, delay, queue)).unwrap());
        let ways = [(sender, links[0], receiver), (receiver, links[1], sender)];
        for ((from, link, to), behind) in ways.into_iter().zip(behind) {
            engine.connect(from, Target::Node(link));
            let mut before = link;
            for element in behind {
                let next = engine.add(element).unwrap();
                engine.connect(before, Target::Node(next));
                before = next;
            }
            engine.connect(before, Target::Node(to));
        }
        Path { engine, link: links[0], tcp: Connection { sender, receiver } }
    }

    /// Counters of both ends at that second.
    pub fn run(&mut self, at: f64) -> (SenderCounters, ReceiverCounters) {
        self.engine.run_until(seconds(at)).unwrap();
        let (sender, receiver) = (self.tcp.sender, self.tcp.receiver);
        let sent = self.engine.tcp_sender(sender).unwrap().counters();
        (sent, *self.engine.tcp_receiver(receiver).unwrap().counters())
    }
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
