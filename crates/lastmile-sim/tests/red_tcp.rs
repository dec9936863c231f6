//! TCP over Linux's RED as seed 003's tc line sets it up: NewReno with delayed ACKs, 10 Mbit/s, 20 ms, 60 s. ns-2's RED
//! with the same parameters is in `oracles/`.
#![allow(clippy::print_stdout)] // the table, with --nocapture

mod common;

use common::tcp::{Dumbbell, dumbbell_over, ns2_link, seconds};
use lastmile::time::Span;
use lastmile::units::{Bytes, Rate};
use lastmile_sim::network::engine::Engine;
use lastmile_sim::network::link::{Link, LinkConfig, QueueLimit};
use lastmile_sim::network::queue::{Discipline, TcRed};
use lastmile_sim::network::tcp::{App, Recovery, TcpConfig};
use lastmile_sim::rng::Stream;

/// Goodput in Mbit/s, mean queue in bytes, drops and marks from 5 s to 65 s.
fn run(flows: u32, discipline: &Discipline, ecn: bool, seed: u64) -> [f64; 4] {
    let mut engine = Engine::new();
    let config = LinkConfig {
        rate: Some(Rate::ip(10_000_000)),
        delay: Span::from_millis(20),
        queue: QueueLimit::Bytes(Bytes(256_000)),
        discipline: discipline.clone(),
        ..Default::default()
    };
    config.check().unwrap();
    let tcp = TcpConfig {
        recovery: Recovery::NewReno,
        delayed_ack: Span::from_millis(100),
        max_window: 1000,
        ecn,
        ..TcpConfig::ns2()
    };
    let mut starts = Stream::new(seed, "start");
    let connections: Vec<_> = (0..flows).map(|_| (tcp.clone(), App::Bulk, seconds(starts.unit()))).collect();
    let (bottleneck, reverse) =
        (Link::seeded(config, seed, "bottleneck"), ns2_link(10_000_000, Span::from_millis(20), 1000));
    let Dumbbell { bottleneck, connections, .. } =
        dumbbell_over(&mut engine, bottleneck, reverse, &connections, seed);
    let [before, after] = [5.0, 65.0].map(|at| {
        engine.run_until(seconds(at)).unwrap();
        let acknowledged: u64 =
            connections.iter().map(|c| engine.tcp_sender(c.sender).unwrap().counters().acknowledged).sum();
        (acknowledged, *engine.link(bottleneck).unwrap().counters())
    });
    [
        (after.0 - before.0) as f64 * 1460.0 * 8.0 / 60e6,
        after.1.mean_queue(&before.1, Span::from_secs(60)).0 as f64,
        (after.1.drops - before.1.drops) as f64,
        (after.1.marked - before.1.marked) as f64,
    ]
}

fn mean(flows: u32, discipline: &Discipline, ecn: bool) -> [f64; 4] {
    let runs: Vec<_> = (1..=10).map(|seed| run(flows, discipline, ecn, seed)).collect();
    core::array::from_fn(|i| runs.iter().map(|run| run[i]).sum::<f64>() / runs.len() as f64)
}

/// Linux's own arithmetic from the line itself: it counts packets where ns-2 counts bytes and leaves no gap of 1/p
/// after a mark, so that the queue is not the same, a quarter shorter with four flows; the link is as full. The queues are
/// this arithmetic's own figures, so that a change of it is noticed.
#[test]
fn the_tc_line_itself_does_much_the_same() {
    let line = TcRed {
        limit: Bytes(256_000),
        min: Bytes(12_000),
        max: Bytes(32_000),
        avpkt: Bytes(1000),
        burst: 20,
        probability: 0.02,
        bandwidth: Some(Rate::ip(10_000_000)),
        ecn: true,
        ..TcRed::default()
    };
    for (flows, goodput, queue) in [(1, 8.72, 4_180.0), (4, 9.73, 12_500.0)] {
        let got = mean(flows, &Discipline::TcRed(line.clone()), true);
        println!("{flows} flows, tc: {got:?}");
        assert!((got[0] / goodput - 1.0).abs() < 0.05, "{flows}: {got:?}");
        assert!((got[1] / queue - 1.0).abs() < 0.04, "{flows}: {got:?}");
        assert!(got[2] == 0.0 && got[3] > 10.0, "{flows}: {got:?}");
    }
}
