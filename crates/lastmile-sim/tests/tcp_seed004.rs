//! One TCP flow over seed 004's wired-last-hop and wireless-backbone topologies against ns-2's means of ten seeds: 762-byte packets, a
//! queue of max(bandwidth / 60k, 6) packets, 7.8 % of the packets lost at random behind the bottleneck, 200 s from 22 s on.
//!
//! Those ten seeds lost 8.2 % at random on the WLH instead of 7.8, so that twenty others of ns-2 lie up to two points higher
//! there, where these means are.
#![allow(clippy::print_stdout)] // the table, with --nocapture

mod common;

use common::tcp::{Bernoulli, chain, ns2_link, seconds};
use lastmile::node::Node;
use lastmile::time::Span;
use lastmile::units::Bytes;
use lastmile_sim::engine::Engine;
use lastmile_sim::rng::Stream;
use lastmile_sim::tcp::{App, Recovery, TcpConfig};

const SEEDS: u64 = 20;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Topology {
    Wlh,
    Wb,
}
use Topology::{Wb, Wlh};

/// What the bottleneck carried and what came through, in percent of its rate, and the percentage dropped at its queue.
#[derive(Debug)]
struct Shares {
    link: f64,
    goodput: f64,
    drops: f64,
}

fn run(topology: Topology, config: &TcpConfig, loss: f64, seed: u64) -> Shares {
    let mut engine = Engine::new();
    let queue = |rate: u64| u32::try_from(rate / 60_000).unwrap().max(6);
    let (second, third, delay) = match topology {
        Wlh => (260_000, 150_000, 10),
        Wb => (800_000, 10_000_000, 1),
    };
    let hops = [(10_000_000, 1), (second, 20), (third, delay)];
    let mut both = [vec![], vec![]];
    for (direction, nodes) in both.iter_mut().enumerate() {
        for (rate, ms) in hops {
            nodes.push(engine.add(ns2_link(rate, Span::from_millis(ms), queue(rate))).unwrap());
        }
        if direction == 1 {
            nodes.reverse();
        }
    }
    let [mut there, back] = both;
    let (bottleneck, at, capacity) =
        if topology == Wlh { (there[2], 3, 150e3) } else { (there[1], 2, 800e3) };
    let lossy: Box<dyn Node + Send> = Bernoulli::boxed(loss, seed);
    there.insert(at, engine.add(lossy).unwrap());
    let start = seconds(20.0 + 2.0 * Stream::new(seed, "start").unit());
    let tcp = chain(&mut engine, config, (App::Bulk, start, seconds(1e6)), seed, &there, &back);
    let mut snaps = vec![];
    for at in [22.0, 222.0] {
        engine.run_until(seconds(at)).unwrap();
        let link = *engine.link(bottleneck).unwrap().counters();
        let got = engine.tcp_receiver(tcp.receiver).unwrap().counters().bytes;
        snaps.push([link.delivered * 762, got.0, link.drops, link.arrived].map(|n| n as f64));
    }
    let [link, got, drops, arrived] = core::array::from_fn(|i| snaps[1][i] - snaps[0][i]);
    Shares {
        link: link * 800.0 / 200.0 / capacity,
        goodput: got * 800.0 / 200.0 / capacity,
        drops: 100.0 * drops / arrived,
    }
}

fn mean(topology: Topology, config: &TcpConfig, loss: f64) -> Shares {
    let runs: Vec<Shares> = (1..=SEEDS).map(|seed| run(topology, config, loss, seed)).collect();
    let mean = |of: fn(&Shares) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    Shares { link: mean(|s| s.link), goodput: mean(|s| s.goodput), drops: mean(|s| s.drops) }
}

fn ns2(recovery: Recovery) -> TcpConfig {
    TcpConfig { recovery, segment: Bytes(722), max_window: 1000, ..TcpConfig::ns2() }
}

/// Fails where the mean is more than three points from ns-2's.
fn meets(name: &str, config: &TcpConfig, loss: f64, rows: [(Topology, f64, Option<f64>); 2]) {
    let mut wrong = vec![];
    for (topology, link, goodput) in rows {
        let got = mean(topology, config, loss);
        println!(
            "{name} {topology:?}: link {:.1} (ns-2 {link}), goodput {:.1} (ns-2 {goodput:?}), drops {:.2} %",
            got.link, got.goodput, got.drops
        );
        let off = |is: f64, oracle: f64| (is - oracle).abs() > 3.0;
        if off(got.link, link) || goodput.is_some_and(|goodput| off(got.goodput, goodput)) {
            wrong.push(format!("{topology:?}: {got:?}"));
        }
    }
    assert!(wrong.is_empty(), "{name}: {wrong:?}");
}

#[test]
fn reno_with_delayed_acks() {
    let config = TcpConfig { delayed_ack: Span::from_millis(100), ..ns2(Recovery::Reno) };
    meets("Reno, delayed ACKs", &config, 0.078, [(Wlh, 58.8, Some(53.9)), (Wb, 25.2, Some(23.3))]);
}

#[test]
fn reno() {
    meets("Reno", &ns2(Recovery::Reno), 0.078, [(Wlh, 69.1, Some(63.5)), (Wb, 34.5, Some(31.9))]);
}

#[test]
fn reno_with_the_old_defaults() {
    let config = TcpConfig {
        tick: Span::from_millis(100),
        min_rto: Span::from_secs(1),
        limited_transmit: false,
        initial_window: Some(1),
        ..ns2(Recovery::Reno)
    };
    meets("Reno, tick 0.1 s, min RTO 1 s", &config, 0.078, [(Wlh, 42.1, Some(38.6)), (Wb, 12.3, Some(11.3))]);
}

#[test]
fn newreno() {
    meets("NewReno", &ns2(Recovery::NewReno), 0.078, [(Wlh, 80.4, None), (Wb, 44.5, None)]);
}

#[test]
fn sack() {
    meets("SACK", &ns2(Recovery::Sack), 0.078, [(Wlh, 76.5, None), (Wb, 41.6, None)]);
}

#[test]
fn without_loss_the_queue_decides() {
    meets("Reno, no loss", &ns2(Recovery::Reno), 0.0, [(Wlh, 99.9, None), (Wb, 83.6, None)]);
}
