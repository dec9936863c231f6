//! TCP against ns-2 on seed 004's paths where both lose the same packets, by number: what is left is TCP, not luck. Each
//! mean of five patterns over 200 s varies by several points from one set of patterns to another; between the programs,
//! with the same set, it must not. `same_losses.txt` has what ns-2 prints.

use lastmile::control::window::{LawConfig, VegasConfig};
use lastmile::node::Flow;
use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};
use lastmile_sim::network::engine::{Engine, Target};
use lastmile_sim::network::link::{Link, LinkConfig, QueueLimit};
use lastmile_sim::network::loss::{Loss, Pattern};
use lastmile_sim::network::tcp::{App, Ends, Receiver, Recovery, Sender, TcpConfig};
use lastmile_sim::rng::Stream;

use crate::rig::{at, mean};
use crate::table::{Table, Within};

/// Bandwidth in kbit/s, delay in ms and queue of each link there, and which is the bottleneck; losses are behind it.
fn path(name: &str) -> ([(u64, i64, u32); 3], usize) {
    match name {
        "wlh" => ([(10_000, 1, 166), (260, 20, 6), (150, 10, 6)], 2),
        _ => ([(10_000, 1, 166), (800, 20, 13), (10_000, 1, 166)], 1),
    }
}

/// Lehmer's generator, as there.
fn losses(kind: &str, rate: f64, seed: u64) -> Pattern {
    let mut x = 1_000_003 * seed;
    let mut below = |p: f64| {
        x = 16_807 * x % 2_147_483_647;
        x < (p * 2_147_483_647.0) as u64
    };
    let (mut bad, mut lost) = (false, vec![]);
    for packet in 0..30_000 {
        bad = match (kind, bad) {
            ("single", _) => below(rate),
            (_, true) => !below(1.0 / 3.0),
            (_, false) => below(rate / (1.0 - rate) / 3.0),
        };
        if bad {
            lost.push(packet);
        }
    }
    Pattern { period: 30_000, lost, ..Pattern::default() }
}

fn config(recovery: &str, options: &str) -> TcpConfig {
    let ns2 = TcpConfig { segment: Bytes(722), max_window: 1000, ..TcpConfig::ns2() };
    let (old, vegas) = (options.contains("old"), recovery == "Vegas");
    TcpConfig {
        recovery: match recovery {
            "Reno" => Recovery::Reno,
            "Newreno" => Recovery::NewReno,
            "Sack1" => Recovery::Sack1,
            _ => Recovery::Reno,
        },
        law: if vegas { LawConfig::Vegas(VegasConfig::default()) } else { LawConfig::default() },
        fine_timeouts: vegas,
        delayed_ack: Span::from_millis(if options.contains("delayed") { 100 } else { 0 }),
        tick: if old { Span::from_millis(100) } else { ns2.tick },
        min_rto: if old { Span::from_secs(1) } else { ns2.min_rto },
        limited_transmit: !old && !vegas,
        initial_window: Some(if old { 1 } else { 2 }),
        ..ns2
    }
}

/// What the bottleneck carries, in percent of its rate.
fn run(arguments: &str, seed: u64) -> [f64; 1] {
    let words: Vec<&str> = arguments.split(' ').collect();
    let [topology, recovery, options, kind, rate] = words[..] else { panic!("{arguments}") };
    let (links, bottleneck) = path(topology);
    let config = config(recovery, options);
    let mut engine = Engine::new();
    let address = "10.77.0.1:80".parse().unwrap();
    let ends = Ends { sender: address, receiver: address, data: Flow(0), acks: Flow(1) };
    let start = Time::ZERO + Span::from_millis(500);
    let sender = Sender::new(&config, ends, App::Bulk, start, Time::MAX, Stream::new(seed, "tcp"));
    let sender = engine.add(sender).unwrap();
    let receiver = engine.add(Receiver::new(&config, ends)).unwrap();
    let mut link = |(kbits, delay, queue): (u64, i64, u32), lossy: bool| {
        let pattern = Loss::of(losses(kind, rate.parse().unwrap(), seed));
        let config = LinkConfig {
            rate: Some(Rate::ip(1000 * kbits)),
            delay: Span::from_millis(delay),
            // One place of ns-2's queue is the packet in transmission's.
            queue: QueueLimit::Packets(queue - 1),
            losses: if lossy { vec![pattern] } else { vec![] },
            ..LinkConfig::default()
        };
        engine.add(Link::seeded(config, seed, "losses")).unwrap()
    };
    let there: Vec<_> =
        links.iter().enumerate().map(|(number, &config)| link(config, number == bottleneck)).collect();
    let back: Vec<_> =
        links.iter().rev().map(|&(kbits, delay, _)| link((kbits, delay, 166), false)).collect();
    for (from, nodes, to) in [(sender, &there, receiver), (receiver, &back, sender)] {
        let mut before = from;
        for &node in nodes.iter().chain([&to]) {
            engine.connect(before, Target::Node(node));
            before = node;
        }
    }
    let [before, after] = [22.0, 222.0].map(|seconds| {
        engine.run_until(at(seconds)).unwrap();
        engine.link(there[bottleneck]).unwrap().busy(engine.now()).as_secs_f64()
    });
    [(after - before) / 2.0]
}

#[test]
fn with_the_same_losses_tcp_is_as_fast_as_in_ns_2() {
    let mut table = Table::new(
        "1.1-same-losses",
        "1.1 Seed 004's paths with the same packets lost: percent of the bottleneck, ns-2's and ours",
        2,
    );
    for line in include_str!("same_losses.txt").lines().filter(|line| !line.starts_with('#')) {
        let (arguments, oracle) = line.rsplit_once(' ').unwrap();
        let [ours] = mean(5, |seed| run(arguments, seed));
        // Vegas' law takes the rate from the window, ns-2's from what was sent in a round trip.
        let points = if arguments.contains("Vegas") { 3.0 } else { 1.0 };
        table.row(arguments, oracle.parse().unwrap(), ours, Within::Points(points));
    }
    table.check();
}
