//! Truths of a shared medium against their definitions (the spare rate: `oracles/spare.rs`), and the losses of its flows by their cause.
#![allow(clippy::print_stderr)] // the figures are worth a look: --nocapture

use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};
use lastmile_sim::runs::flows::FlowWatch;
use lastmile_sim::runs::twin::{SharedTruth, TwinPath, shared_truths};
use lastmile_sim::scenario::{Scenario, build, builtin};

const SIZE: Bytes = Bytes(1488);

fn at(seconds: i64) -> Time {
    Time::ZERO + Span::from_secs(seconds)
}

fn path(scenario: &Scenario, from: &str, to: &str) -> TwinPath {
    TwinPath { from: scenario.host(from).unwrap(), to: scenario.host(to).unwrap(), ip_size: SIZE }
}

/// Over the five seconds after one of warm-up.
fn truth(scenario: &Scenario, from: &str, to: &str) -> SharedTruth {
    shared_truths(scenario, 1, path(scenario, from, to), &[(at(1), at(6))]).unwrap()[0]
}

fn mbps(rate: Rate) -> f64 {
    rate.bits_per_second() as f64 / 1e6
}

#[test]
fn tcp_leaves_nothing_though_a_saturating_flow_takes_its_share() {
    for (name, least, most) in [("ap-3", 0.9, 1.01), ("ap-4", 0.4, 1.01), ("ap-8", 0.3, 1.01)] {
        let truth = truth(&builtin(name).unwrap(), "server", "A");
        let share = mbps(truth.achievable) / mbps(truth.capacity);
        eprintln!("{name}: {truth:?} {share:.3}");
        assert!(mbps(truth.spare) < 0.02 * mbps(truth.capacity), "{name}: {truth:?}");
        assert!((least..most).contains(&share), "{name}: {share}");
    }
}

/// ORACLES 1.2: ns-3's saturating downlink beside 4.6 Mbit/s of uplink gets 25.85 Mbit/s in packets of 1500 B.
#[test]
fn the_achievable_rate_is_what_ns3_says() {
    let mut scenario = builtin("ap-2").unwrap();
    scenario.wlans[0].config.ack_rate = None;
    let path = TwinPath { ip_size: Bytes(1500), ..path(&scenario, "server", "A") };
    let truth = shared_truths(&scenario, 1, path, &[(at(1), at(9))]).unwrap()[0];
    eprintln!("{truth:?}");
    assert!((mbps(truth.achievable) / 25.85 - 1.0).abs() < 0.015, "{truth:?}");
    assert!((mbps(truth.capacity) / 30.50 - 1.0).abs() < 0.005, "{truth:?}");
}

#[test]
fn an_idle_medium_is_all_spare_also_where_a_flow_crosses_it_twice() {
    for (name, from, to) in [("ap", "server", "A"), ("ap-13", "server", "A"), ("ap", "A", "B")] {
        let truth = truth(&builtin(name).unwrap(), from, to);
        eprintln!("{name} {from} {to}: {truth:?}");
        assert_eq!(truth.capacity, truth.achievable);
        assert!((mbps(truth.spare) / mbps(truth.capacity) - 1.0).abs() < 0.005, "{name}: {truth:?}");
    }
    // By the access point each packet goes twice: about half is left of the medium.
    let scenario = builtin("ap").unwrap();
    let (once, twice) = (truth(&scenario, "server", "A"), truth(&scenario, "A", "B"));
    assert!((0.45..0.57).contains(&(mbps(twice.capacity) / mbps(once.capacity))), "{twice:?}");
}

/// A saturated cell with noise, few retries and short queues: all three causes, each flow by a port of its own.
#[test]
fn every_packet_of_every_flow_has_an_end_with_its_cause() {
    let station = |name: &str| format!("{{ name = \"{name}\", ap = \"ap\", queue = 5, frame_error = 0.3 }}");
    let flow = |name: &str, from: &str, to: &str, rest: &str| {
        format!("[[traffic]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\n{rest}\n")
    };
    let cbr = "kind = \"cbr\"\nrate = \"12 Mbit/s\"\nsize = \"1000 B\"";
    let text = [
        "name = \"noise\"\nduration = \"6 s\"\n[host.a]\n[host.b]\n[host.c]\n[host.server]\n".to_owned(),
        "[[link]]\nfrom = \"server\"\nto = \"ap\"\n[[wlan]]\nstandard = \"g\"\nshort_retry = 2\n".to_owned(),
        format!(
            "station = [{{ name = \"ap\", queue = 20 }}, {}, {}, {}]\n",
            station("a"),
            station("b"),
            station("c")
        ),
        flow("up-a", "a", "server", cbr),
        flow("up-b", "b", "server", cbr),
        flow("down-a", "server", "a", cbr),
        flow("tcp-c", "c", "server", "kind = \"ftp\""),
    ]
    .concat();
    let scenario = Scenario::parse("noise.toml", &text).unwrap();
    let mut run = build(&scenario, 1, vec![]).unwrap();
    let watch = FlowWatch::begin(&run);
    run.engine.run_until(Time::ZERO + scenario.duration).unwrap();
    let flows = watch.end(&scenario, &run);
    let wlan = run.engine.wlan(run.wlans[0]).unwrap();
    for flow in &flows {
        let lost: u64 = flow.lost.values().sum();
        assert_eq!(flow.sent, flow.received + lost + flow.under_way, "{flow:?}");
    }
    for (flow, (from, to)) in flows.iter().zip([("a", "ap"), ("b", "ap"), ("ap", "a")]) {
        let port = wlan.counters(wlan.port(from, to).unwrap()).unwrap();
        let counted = [port.lost_channel, port.lost_collision, port.lost_queue];
        eprintln!("{}: {:?}", flow.flow, flow.lost);
        assert_eq!(["channel", "collision", "queue"].map(|cause| flow.lost[cause]), counted, "{flow:?}");
        assert!(counted.iter().all(|&lost| lost > 50), "{flow:?}");
    }
}
