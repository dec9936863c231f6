//! TCP against ns-2 on LDA's paths where both lose the same packets, by number: the difference left is TCP, not luck. Each
//! mean of five patterns over 200 s varies by several points from one set of patterns to another; between the programs,
//! with the same set, it must not. `same_losses.txt` has ns-2's output.

use lastmile_sim::scenario::builtin_text;

use crate::rig::{NS2, Rig, mean};
use crate::table::{Table, Within};

/// Lehmer's generator, as there.
fn losses(kind: &str, rate: f64, seed: u64) -> Vec<u64> {
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
    lost
}

/// Use of the bottleneck, in percent of its rate, by one flow alone over a ready scenario.
fn run(arguments: &str, seed: u64) -> [f64; 1] {
    let words: Vec<&str> = arguments.split(' ').collect();
    let [name, recovery, options, kind, rate] = words[..] else { panic!("{arguments}") };
    let lost = losses(kind, rate.parse().unwrap(), seed);
    let model = format!("model = {{ kind = \"pattern\", period = 30000, lost = {lost:?} }} }}]");
    let (text, end) = (builtin_text(name).unwrap(), "}]");
    let from = text.find("model = {").unwrap();
    let to = from + text[from..].find(end).unwrap() + end.len();
    let (recovery, vegas, old) = (recovery.to_lowercase(), recovery == "Vegas", options.contains("old"));
    let mut tcp = NS2.to_vec();
    tcp.push(("recovery", if vegas { "reno" } else { recovery.as_str() }));
    if vegas {
        tcp.extend([("law", "vegas"), ("fine_timeouts", "true")]);
    }
    if old {
        tcp.extend([("tick", "100 ms"), ("min_rto", "1 s"), ("initial_window", "1")]);
    }
    let limited = (!old && !vegas).to_string();
    tcp.extend([("limited_transmit", limited.as_str())]);
    tcp.extend(options.contains("delayed").then_some(("delayed_ack", "100 ms")));
    let tcp: Vec<_> = tcp.into_iter().map(|(key, value)| (format!("traffic.tcp.tcp.{key}"), value)).collect();
    let mut set =
        vec![("traffic.warm-1.count", "0"), ("traffic.warm-2.count", "0"), ("traffic.tcp.start", "500 ms")];
    set.extend(tcp.iter().map(|(key, value)| (key.as_str(), *value)));
    let mut rig = Rig::new(&[&text[..from], &model, &text[to..]].concat(), &set, seed);
    let link = rig.simulation.links[2 * 2];
    let [before, after] = [22.0, 222.0].map(|seconds| {
        rig.run_to(seconds);
        let engine = &rig.simulation.engine;
        engine.link(link).unwrap().busy(engine.now()).as_secs_f64()
    });
    [(after - before) / 2.0]
}

#[test]
fn with_the_same_losses_tcp_is_as_fast_as_in_ns_2() {
    let mut table = Table::new(
        "1.1-same-losses",
        "1.1 LDA's paths with the same packets lost: percent of the bottleneck, ns-2's and ours",
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
