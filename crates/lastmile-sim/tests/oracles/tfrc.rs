//! TFRC and the binomial laws at a sender of RTP, with feedback once in a round-trip time, against ns-2's.

use lastmile_sim::roles::Makers;
use lastmile_sim::roles::stream::StreamOutcome;
use lastmile_sim::runs::{Hooks, simulate};
use lastmile_sim::scenario::{Override, Scenario};

use crate::rig::mean;
use crate::table::{Table, Within};

const PATH: &str = include_str!("tfrc.toml");
/// ns-2's defaults: 32 B of header are on the wire, not paced, and not in its numbers.
const DEFAULTS: [(&str, &str); 3] =
    [("link.0.rate", "2 Mbit/s"), ("link.0.queue", "50 packets"), ("stream.0.packet_size", "1032 B")];

fn run(control: &str, loss: &str, path: &[(&str, &str)], seed: u64) -> StreamOutcome {
    let set = [("stream.0.control", control), ("link.0.losses.0.model.rate", loss)];
    let set: Vec<_> = set.iter().chain(path).map(|&(key, value)| Override::new(key, value)).collect();
    let scenario = Scenario::parse_with("tfrc.toml", PATH, &set).unwrap();
    let run = simulate(&scenario, seed, &Makers::default(), Hooks::default()).unwrap();
    run.found.stream.outcomes[0].clone()
}

#[test]
fn mean_rates_are_those_of_ns_2() {
    let title = "1.6 TFRC and binomial laws under independent loss at a sender of RTP, kbit/s: ns-2's means of ten seeds, ours";
    let mut table = Table::new("1.6-tfrc", title, 0);
    // Packets count as 1000 B over 200 s.
    let rate = |packets: u64| packets as f64 * 8.0 / 200.0;
    let mut row = |control: &str, loss: &str, path: &[(&str, &str)], ns2: &str, share| {
        let [ours] = mean(10, |seed| [rate(run(control, loss, path, seed).sent)]);
        table.row(format!("{control} at {loss}"), ns2.parse().unwrap(), ours, Within::Share(share));
    };
    for line in include_str!("tfrc.txt").lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let [loss, own, _, four_r, _] = words[..] else { panic!("{line}") };
        for (control, ns2, share) in [
            ("tfrc", four_r, 0.06),
            ("tfrc(form=receiver)", four_r, 0.06),
            ("tfrc(preset=ns-2, header=0)", own, 0.05),
            ("tfrc(form=receiver, preset=ns-2, header=0)", own, 0.05),
        ] {
            row(control, loss, &[], ns2, share);
        }
    }
    for (loss, ns2) in [("0.0", "1939"), ("0.01", "1800"), ("0.05", "612")] {
        row("tfrc(form=receiver, preset=ns-2)", loss, &DEFAULTS, ns2, 0.05);
    }
    for (law, ns2) in [("sqrt", 2202.0), ("iiad", 2208.0)] {
        let [ours] = mean(10, |seed| [rate(run(law, "0.01", &[], seed).received)]);
        table.row(format!("{law} at 0.01, goodput"), ns2, ours, Within::Share(0.08));
    }
    table.check();
}
