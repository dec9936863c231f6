//! The price of an answer: lastmile and iperf3 over the same path whose truth is known. `make cost` prints the table of the README.
//!
//! OB-UDPST (RFC 9097) would be a third row: Debian has no package of it.

use std::process::Command;

use serde_json::Value;

use super::common::{PROGRAM, Scratch, lastmile};
use super::no_lab;

/// 10 Mbit/s, 5 ms away, a queue of 60 kB; others take 4 Mbit/s.
const PATH: &str = r#"name = "cost"
duration = "30 s"
[host.home]
[host.server]
[[link]]
from = "home"
to = "server"
rate = "10 Mbit/s"
delay = "5 ms"
queue = "60 kB"
[[traffic]]
name = "others"
kind = "poisson"
from = "home"
to = "server"
rate = "4 Mbit/s"
size = "1500 B"
"#;
const CAPACITY: f64 = 10e6;
const OTHERS_BYTES: f64 = 1500.0;
const SEEDS: u64 = 5;

/// One answer of a program.
struct Answer {
    /// Rate in bit/s.
    rate: f64,
    bytes: f64,
    seconds: f64,
}

/// A program that answers how much is left.
struct Tool {
    name: &'static str,
    /// Answers `--version` or another harmless option if the program is there.
    probe: [&'static str; 2],
    missing: &'static str,
    server: String,
    /// Prints JSON.
    client: String,
    read: fn(&Value) -> Option<Answer>,
    note: &'static str,
}

fn tools() -> [Tool; 2] {
    // On busy cores deadlines hold by priority alone.
    let realtime = lastmile(&["doctor", "--json"]).json()["realtime"] == true;
    let realtime = if realtime { " --realtime" } else { "" };
    [
        Tool {
            name: "lastmile measure",
            probe: [PROGRAM, "--version"],
            missing: "",
            server: format!("timeout 4 {PROGRAM} serve"),
            client: format!("{PROGRAM} measure {{server}} --direction forward --json{realtime}"),
            read: |json| {
                let rows = json["results"].as_array()?;
                let row = rows.iter().find(|row| row["quantity"] == "available-bandwidth")?;
                let bytes = row["bytes"].as_f64()? + row["bytes_received"].as_f64()?;
                Some(Answer { rate: row["rate_bps"].as_f64()?, bytes, seconds: row["seconds"].as_f64()? })
            },
            note: "IP packets; the capacity too",
        },
        Tool {
            name: "iperf3 (TCP)",
            probe: ["iperf3", "--version"],
            missing: "apt-get install iperf3",
            server: "iperf3 -s -1".to_owned(),
            client: "iperf3 -c {server} -J".to_owned(),
            read: |json| {
                let (sent, received) = (&json["end"]["sum_sent"], &json["end"]["sum_received"]);
                Some(Answer {
                    rate: received["bits_per_second"].as_f64()?,
                    bytes: sent["bytes"].as_f64()?,
                    seconds: received["seconds"].as_f64()?,
                })
            },
            note: "payload",
        },
    ]
}

impl Tool {
    fn is_there(&self) -> bool {
        let [program, option] = self.probe;
        Command::new(program).arg(option).output().is_ok()
    }

    /// An answer, and what others left of the link while the lab ran.
    fn ask(&self, scratch: &Scratch, seed: u64) -> Option<(Answer, f64)> {
        let (file, said) = (scratch.file("cost.toml", PATH), scratch.path("said.json"));
        let server = format!("{}; true", self.server);
        let client = format!("sleep 1; {} > {said}; true", self.client);
        let seed = seed.to_string();
        let ended = lastmile(&[
            "lab", &file, "--seed", &seed, "--json", "--in", "server", "--", "sh", "-c", &server, "--in",
            "home", "--", "sh", "-c", &client,
        ]);
        let lab = ended.json();
        if !lab["lateness"]["refused"].is_null() {
            eprintln!("cost: {}: seed {seed}: {}", self.name, lab["lateness"]["refused"]);
            return None;
        }
        let others = lab["flows"][0]["sent"].as_f64()? * OTHERS_BYTES * 8.0 / lab["seconds"].as_f64()?;
        let said: Value = serde_json::from_str(&std::fs::read_to_string(&said).ok()?).ok()?;
        Some(((self.read)(&said)?, CAPACITY - others))
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
#[ignore = "meets the wall clock: runs alone"]
fn cost_of_an_answer() {
    if no_lab() {
        return;
    }
    let scratch = Scratch::new("cost");
    eprintln!("| program | said, Mbit/s (n = {SEEDS}) | left, Mbit/s | seconds | sent and received |");
    eprintln!("|---|---|---|---|---|");
    for tool in tools() {
        if !tool.is_there() {
            eprintln!("| {} | not installed: {} | | | |", tool.name, tool.missing);
            continue;
        }
        let all: Vec<(Answer, f64)> = (1..=SEEDS).filter_map(|seed| tool.ask(&scratch, seed)).collect();
        assert!(!all.is_empty(), "{} gave no answer", tool.name);
        let of = |of: fn(&(Answer, f64)) -> f64| all.iter().map(of).collect::<Vec<_>>();
        let rates = of(|(answer, _)| answer.rate / 1e6);
        let ends =
            rates.iter().fold((f64::MAX, f64::MIN), |(low, high), rate| (low.min(*rate), high.max(*rate)));
        eprintln!(
            "| {} | {:.2} ({:.2} to {:.2}) of {} | {:.2} | {:.2} | {:.0} kB |",
            tool.name,
            median(rates),
            ends.0,
            ends.1,
            tool.note,
            median(of(|(_, left)| left / 1e6)),
            median(of(|(answer, _)| answer.seconds)),
            median(of(|(answer, _)| answer.bytes / 1e3)),
        );
    }
    eprintln!("| OB-UDPST | not installed: Debian has no package of it | | | |");
}
