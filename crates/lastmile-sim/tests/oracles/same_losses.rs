//! TCP against ns-2 on seed 004's paths where both lose the same packets, by number: what is left is TCP, not luck. Each
//! mean of five patterns over 200 s varies by several points from one set of patterns to another; between the programs,
//! with the same set, it must not. ns-2's column is what `same_losses.tcl`, beside this file, prints for seeds 1 to 5.

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

/// Path, recovery, options and losses as the program's arguments, and what it prints.
const ROWS: [(&str, f64); 53] = [
    ("wlh Reno - single 0.078", 72.29),
    ("wlh Reno delayed single 0.078", 61.70),
    ("wlh Reno old single 0.078", 48.18),
    ("wlh Reno old+delayed single 0.078", 36.20),
    ("wlh Reno - single 0.02", 89.31),
    ("wlh Reno - single 0.15", 52.48),
    ("wlh Reno - bursts 0.078", 25.57),
    ("wlh Reno old+delayed bursts 0.078", 18.61),
    ("wlh Newreno - single 0.078", 81.80),
    ("wlh Newreno delayed single 0.078", 66.20),
    ("wlh Newreno old single 0.078", 57.61),
    ("wlh Newreno old+delayed single 0.078", 39.64),
    ("wlh Newreno - single 0.02", 97.62),
    ("wlh Newreno - single 0.15", 57.48),
    ("wlh Newreno - bursts 0.078", 20.71),
    ("wlh Newreno old+delayed bursts 0.078", 22.92),
    ("wlh Sack1 - single 0.078", 79.43),
    ("wlh Sack1 delayed single 0.078", 60.86),
    ("wlh Sack1 old single 0.078", 56.15),
    ("wlh Sack1 old+delayed single 0.078", 37.71),
    ("wlh Sack1 - single 0.02", 96.90),
    ("wlh Sack1 - single 0.15", 52.26),
    ("wlh Sack1 - bursts 0.078", 21.73),
    ("wlh Sack1 old+delayed bursts 0.078", 21.12),
    ("wb Reno - single 0.078", 35.53),
    ("wb Reno delayed single 0.078", 26.33),
    ("wb Reno old single 0.078", 14.71),
    ("wb Reno old+delayed single 0.078", 9.95),
    ("wb Reno - single 0.02", 76.08),
    ("wb Reno - single 0.15", 16.83),
    ("wb Reno - bursts 0.078", 10.06),
    ("wb Reno old+delayed bursts 0.078", 4.89),
    ("wb Newreno - single 0.078", 43.99),
    ("wb Newreno delayed single 0.078", 29.93),
    ("wb Newreno old single 0.078", 18.38),
    ("wb Newreno old+delayed single 0.078", 10.61),
    ("wb Newreno - single 0.02", 86.90),
    ("wb Newreno - single 0.15", 21.53),
    ("wb Newreno - bursts 0.078", 11.67),
    ("wb Newreno old+delayed bursts 0.078", 4.65),
    ("wb Sack1 - single 0.078", 42.35),
    ("wb Sack1 delayed single 0.078", 26.15),
    ("wb Sack1 old single 0.078", 17.58),
    ("wb Sack1 old+delayed single 0.078", 10.42),
    ("wb Sack1 - single 0.02", 86.12),
    ("wb Sack1 - single 0.15", 20.24),
    ("wb Sack1 - bursts 0.078", 11.11),
    ("wb Sack1 old+delayed bursts 0.078", 5.17),
    ("wb Vegas - single 0.005", 99.74),
    ("wb Vegas - single 0.02", 95.58),
    ("wb Vegas delayed single 0.005", 97.63),
    ("wlh Vegas - single 0.005", 99.88),
    ("wlh Vegas delayed single 0.02", 96.22),
];

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
    for (arguments, oracle) in ROWS {
        let [ours] = mean(5, |seed| run(arguments, seed));
        // Vegas' law takes the rate from the window, ns-2's from what was sent in a round trip.
        let points = if arguments.contains("Vegas") { 3.0 } else { 1.0 };
        table.row(arguments, oracle, ours, Within::Points(points));
    }
    table.check();
}
