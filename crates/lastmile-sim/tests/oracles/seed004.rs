//! Seed 004, one flow over the ready scenarios `wlh` and `wb`, their channel made independent losses of 7.8 %, against
//! ns-2's means of ten seeds: 200 s from 22 s on.
//!
//! On the WLH two of ORACLES' rows, delayed ACKs and old defaults, are what its program prints for the seeds 1 to 6, which
//! lost 8.3 %; the seeds 1 to 10 lose 7.9 % and give 60.0 and 55.3, and 43.8 and 40.3, and both are held here. Each per
//! cent of loss is four points there (slope over 40 seeds of ns-2), so that the rows with a goodput are run at their
//! seeds' loss too. At 7.8 % the six seeds of the old defaults would be missed by 0.8 points: that row is shown, the ten
//! seeds and forty are held. It is luck and nothing else: `same_losses.rs` has both lose the same packets. SACK is held as
//! `sack1`, which is ns-2's; RFC 6675's stands beside it.

use lastmile_sim::rng::Stream;

use crate::rig::{Rig, mean, ns2_keys};
use crate::table::{Table, Within};

const SEEDS: u64 = 20;

const NONE: f64 = f64::NAN;
const OLD: &[(&str, &str)] =
    &[("tick", "100 ms"), ("min_rto", "1 s"), ("limited_transmit", "false"), ("initial_window", "1")];
const SACK1: &[(&str, &str)] = &[("recovery", "sack1")];
const SACK: &[(&str, &str)] = &[("recovery", "sack")];
const DELAYED: &[(&str, &str)] = &[("delayed_ack", "100 ms")];

/// What differs from ns-2's defaults, the scenario, the loss, and the oracles: link and goodput in percent of the
/// bottleneck, and the percentage that its queue dropped.
type Row = (&'static str, &'static str, f64, &'static [(&'static str, &'static str)], [f64; 3]);

const ROWS: [Row; 22] = [
    ("Reno, delayed ACKs", "wlh", 0.078, DELAYED, [58.8, 53.9, NONE]),
    ("the same with the loss of those seeds", "wlh", 0.0833, DELAYED, [58.8, 53.9, NONE]),
    ("Reno, delayed ACKs, ten seeds of ns-2", "wlh", 0.078, DELAYED, [60.0, 55.3, NONE]),
    ("Reno, delayed ACKs", "wb", 0.078, DELAYED, [25.2, 23.3, NONE]),
    ("Reno", "wlh", 0.078, &[], [69.1, 63.5, NONE]),
    ("the same with the loss of those seeds", "wlh", 0.0810, &[], [69.1, 63.5, NONE]),
    ("Reno", "wb", 0.078, &[], [34.5, 31.9, NONE]),
    ("Reno, old defaults, ten seeds of ns-2", "wlh", 0.078, OLD, [43.8, 40.3, NONE]),
    ("Reno, old defaults, 40 seeds of ns-2", "wlh", 0.078, OLD, [45.1, 41.6, NONE]),
    ("the same with the loss of the six seeds", "wlh", 0.0831, OLD, [42.1, 38.6, NONE]),
    ("Reno, old defaults", "wb", 0.078, OLD, [12.3, 11.3, NONE]),
    ("NewReno", "wlh", 0.078, &[("recovery", "newreno")], [80.4, NONE, NONE]),
    ("NewReno", "wb", 0.078, &[("recovery", "newreno")], [44.5, NONE, NONE]),
    ("SACK", "wlh", 0.078, SACK1, [76.5, NONE, NONE]),
    ("SACK, 40 seeds of ns-2", "wlh", 0.078, SACK1, [77.7, 71.6, NONE]),
    ("the same with the loss of the ten seeds", "wlh", 0.0811, SACK1, [76.5, 70.3, NONE]),
    ("SACK", "wb", 0.078, SACK1, [41.6, NONE, NONE]),
    ("RFC 6675, 40 seeds of ns-2's Sack1", "wlh", 0.078, SACK, [77.7, 71.6, NONE]),
    ("RFC 6675", "wb", 0.078, SACK, [41.6, NONE, NONE]),
    ("Reno, no loss", "wlh", 0.0, &[], [99.9, NONE, 2.1]),
    ("Reno, no loss", "wb", 0.0, &[], [83.6, NONE, 0.9]),
    // "Old defaults" are a tick of 0.1 s, a minimum RTO of 1 s, and no limited transmit. These are ORACLES' own cells, of six seeds.
    ("Reno, old defaults, six unlucky seeds", "wlh", 0.078, OLD, [42.1, 38.6, NONE]),
];

/// Link and goodput in percent of the bottleneck's rate, drops at its queue and losses behind it in percent of packets.
fn run(name: &str, loss: f64, options: &[(&str, &str)], seed: u64) -> [f64; 4] {
    // As in ns-2: two seconds after whose end all is counted.
    let start = 20.0 + 2.0 * Stream::new(seed, "start").unit();
    let (from, to) = if name == "wlh" { ("r2", "receiver") } else { ("r1", "r2") };
    let mut set = vec![
        ("link.2.losses.0.model.kind".to_owned(), "bernoulli".to_owned()),
        ("link.2.losses.0.model.rate".to_owned(), format!("{loss:?}")),
        ("traffic.tcp.start".to_owned(), format!("{} us", (start * 1e6) as u64)),
    ];
    let all = ns2_keys().into_iter().chain(options.iter().map(|&(key, value)| (key, value.to_owned())));
    set.extend(all.map(|(key, value)| (format!("traffic.tcp.tcp.{key}"), value)));
    let mut rig = Rig::ready(name, "", &set, seed);
    let link = rig.simulation.links[rig.scenario.link(from, to).unwrap()];
    let capacity = rig.scenario.links[rig.scenario.link(from, to).unwrap()].config.rate.unwrap();
    let snaps = [22.0, 222.0].map(|seconds| {
        rig.run_to(seconds);
        let engine = &rig.simulation.engine;
        let counters = *engine.link(link).unwrap().counters();
        let busy = engine.link(link).unwrap().busy(engine.now()).as_secs_f64();
        [
            busy,
            counters.delivered as f64,
            counters.drops as f64,
            counters.arrived as f64,
            counters.lost as f64,
        ]
    });
    let [busy, delivered, drops, arrived, lost] = core::array::from_fn(|i| snaps[1][i] - snaps[0][i]);
    let share = 100.0 / 200.0;
    [
        busy * share,
        delivered * 762.0 * 8.0 / capacity.bits_per_second() as f64 * share,
        100.0 * drops / arrived,
        100.0 * lost / (arrived - drops),
    ]
}

#[test]
fn every_row_of_ns_2_within_three_points() {
    let mut table =
        Table::new("1.1", "1.1 Seed 004, one TCP flow, percent of the bottleneck: ns-2's means, ours", 2);
    for (what, name, loss, options, oracles) in ROWS {
        let ours = mean(SEEDS, |seed| run(name, loss, options, seed));
        table.row(format!("{name}: {what}: lost behind it"), 100.0 * loss, ours[3], Within::Points(0.3));
        for (column, oracle, ours) in [("link", oracles[0], ours[0]), ("goodput", oracles[1], ours[1])] {
            let within = if what.ends_with("unlucky seeds") { Within::Shown } else { Within::Points(3.0) };
            if !oracle.is_nan() {
                table.row(format!("{name}: {what}: {column}"), oracle, ours, within);
            }
        }
        if !oracles[2].is_nan() {
            // Congestion losses: a fifth either way.
            table.row(format!("{name}: {what}: dropped"), oracles[2], ours[2], Within::Share(0.2));
        }
    }
    table.check();
}
