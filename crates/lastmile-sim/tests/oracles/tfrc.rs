//! TFRC at a sender of RTP that RFC 8888 feeds once in a round-trip time, against ns-2's.

use lastmile_sim::roles::Makers;
use lastmile_sim::runs::{Hooks, simulate};
use lastmile_sim::scenario::{Override, Scenario};

use crate::rig::mean;
use crate::table::{Table, Within};

const PATH: &str = include_str!("tfrc.toml");

/// The mean rate of IP packets sent, in kbit/s.
fn rate(control: &str, loss: &str, seed: u64) -> f64 {
    let set = [("stream.0.control", control), ("link.0.losses.0.model.rate", loss)];
    let set = set.map(|(key, value)| Override::new(key, value));
    let scenario = Scenario::parse_with("tfrc.toml", PATH, &set, &|_| Ok(())).unwrap();
    let run = simulate(&scenario, seed, &Makers::default(), Hooks::default()).unwrap();
    run.found.stream.outcomes[0].sent as f64 * 8.0 / scenario.duration.as_secs_f64()
}

fn rates(seeds: u64) -> Table {
    let title =
        "1.6 TFRC under independent loss at a sender of RTP, kbit/s sent: ns-2's means of ten seeds, ours";
    let mut table = Table::new("1.6-tfrc", title, 0);
    for line in include_str!("tfrc.txt").lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let [loss, own, _, four_r, _] = words[..] else { panic!("{line}") };
        for (control, ns2, share) in [("tfrc", four_r, 0.06), ("tfrc(preset=ns-2, header=0)", own, 0.05)] {
            let [ours] = mean(seeds, |seed| [rate(control, loss, seed)]);
            table.row(format!("{control} at {loss}"), ns2.parse().unwrap(), ours, Within::Share(share));
        }
    }
    table
}

#[test]
fn mean_rates_are_those_of_ns_2() {
    rates(3).check();
}

#[test]
#[ignore = "takes half a minute: run by hand, with --nocapture"]
#[allow(clippy::print_stdout, reason = "its figures are what it is for")]
fn mean_rates_of_ten_seeds() {
    println!("{}", rates(10).text());
}
