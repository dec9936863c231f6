//! TCP over classic RED in sixty settings, against ns-2 2.35: `red_ns2.txt` says which, and how it was run.

use lastmile::rng::Stream;
use lastmile::time::Span;
use lastmile::units::{Bytes, Rate};
use lastmile_sim::network::engine::{Engine, Target};
use lastmile_sim::network::link::{Link, LinkConfig, QueueLimit};
use lastmile_sim::network::queue::Discipline;
use lastmile_sim::network::tcp::{App, Recovery, TcpConfig};
use lastmile_sim::network::traffic::{Sink, Source, SourceConfig};

use super::red_cell::Cell;
use crate::common::tcp::{Dumbbell, dumbbell_over, ends, ns2_link, seconds};

/// Goodput in Mbit/s, mean queue in bytes, drops and responses to marks a minute, from 5 s on.
fn run(cell: &Cell, window: f64, seed: u64) -> [f64; 4] {
    let mut engine = Engine::new();
    let (rate, delay) =
        (cell.number("bw", "10") as u64 * 1_000_000, Span::from_millis(cell.number("del", "20") as i64));
    let (red, queue) = cell.red();
    let (discipline, queue) = match cell.text("aqm", "red") {
        "red" => (Discipline::Red(red), queue),
        _ => (Discipline::default(), QueueLimit::Packets(cell.number("lim", "50") as u32 - 1)),
    };
    let config = LinkConfig { rate: Some(Rate::ip(rate)), delay, queue, discipline, ..Default::default() };
    config.check().unwrap();
    let segment = cell.number("size", "1460");
    let tcp = TcpConfig {
        recovery: match cell.text("tcp", "Newreno") {
            "Reno" => Recovery::Reno,
            "Sack1" => Recovery::Sack1,
            _ => Recovery::NewReno,
        },
        segment: Bytes(segment as u64),
        delayed_ack: Span::from_millis(100),
        max_window: 1000,
        ecn: cell.flag("ecn", "0"),
        ..TcpConfig::ns2()
    };
    let mut starts = Stream::new(seed, "start");
    let flows = 0..cell.number("nf", "1") as u32;
    let flows: Vec<_> = flows.map(|_| (tcp.clone(), App::Bulk, seconds(starts.unit()))).collect();
    let (bottleneck, reverse) = (Link::seeded(config, seed, "bottleneck"), ns2_link(rate, delay, 1000));
    let Dumbbell { bottleneck, router, connections } =
        dumbbell_over(&mut engine, bottleneck, reverse, &flows, seed);
    let cross = cell.number("cbr", "0");
    if cross > 0.0 {
        let ends = ends(1_000);
        let traffic = SourceConfig {
            rate: Rate::ip((cross * 1e6) as u64),
            ip_size: Bytes(500),
            start: seconds(0.5),
            flow: ends.data,
            ..SourceConfig::default()
        };
        let source = engine.add(Source::new(traffic, Stream::new(seed, "cross"))).unwrap();
        let sink = engine.add(Sink::default()).unwrap();
        engine.connect(source, Target::Node(bottleneck));
        engine.route(router, ends.data, sink);
    }
    let [before, after] = [5.0, 5.0 + window].map(|at| {
        engine.run_until(seconds(at)).unwrap();
        let counters = connections.iter().map(|c| engine.tcp_sender(c.sender).unwrap().counters());
        let (acknowledged, reductions) =
            counters.fold((0, 0), |sum, c| (sum.0 + c.acknowledged, sum.1 + c.ecn_reductions));
        (acknowledged, reductions, *engine.link(bottleneck).unwrap().counters())
    });
    [
        (after.0 - before.0) as f64 * segment * 8.0 / window / 1e6,
        (after.2.waited - before.2.waited) as f64 / window / 1e9,
        (after.2.drops - before.2.drops) as f64 * 60.0 / window,
        (after.1 - before.1) as f64 * 60.0 / window,
    ]
}

#[test]
fn goodput_queue_and_signals_are_those_of_ns_2() {
    let mut wrong = 0;
    for cell in Cell::all(include_str!("red_ns2.txt")) {
        let few = cell.ns2[2].max(cell.ns2[3]) < 100.0;
        let (window, seeds) = if few { (60.0, 2) } else { (20.0, 3) };
        let runs: Vec<_> = (1..=seeds).map(|seed| run(&cell, window, seed)).collect();
        let ours: [f64; 4] =
            core::array::from_fn(|i| runs.iter().map(|run| run[i]).sum::<f64>() / runs.len() as f64);
        print!("{}:", cell.name);
        let (queue, drops) = (cell.number("queue_within", "0.06"), cell.number("drops_within", "0.15"));
        for (i, tolerance) in [(0, 0.05), (1, queue), (2, drops), (3, 0.15)] {
            // A handful of drops a minute are as good as none.
            let off = (ours[i] - cell.ns2[i]) / cell.ns2[i].max(if i < 2 { 1e-9 } else { 40.0 });
            let mark = if off.abs() > tolerance { "!" } else { "" };
            wrong += mark.len();
            print!("  {:.4} ({}) {:+.1} %{mark}", ours[i], cell.ns2[i], 100.0 * off);
        }
        println!();
    }
    assert_eq!(wrong, 0, "numbers with ! above");
}
