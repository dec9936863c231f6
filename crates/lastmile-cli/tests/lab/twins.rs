//! One controller over the lab's links, against its twin in virtual time: the mean and the P90 of its sending rate in bins of 1 s over
//! 60 s, medians of five runs with the simulator's seeds, within 5 %; and what it receives in cases of the league. An hour: `make twins`.
//! `LASTMILE_TWINS=SECONDS,RUNS` makes it shorter, for work on it; then nothing is held against the 5 %. `LASTMILE_TWINS_OF=NAME` runs one controller.

use super::common::{Scratch, lastmile};
use super::no_lab;
use super::patience::{Late, patiently};

const APART: f64 = 0.05;

const STREAM: &str = r#"
[[stream]]
name = "stream"
from = "a"
to = "b"
max_rate = "10 Mbit/s"
"#;

/// Each path: its name, its scenario, and the controllers that run there.
const PATHS: [(&str, &str, [&str; 2]); 3] = [
    (
        "wired, beside Poisson traffic",
        r#"[host.a]
[host.b]
[[link]]
from = "a"
to = "b"
rate = "4 Mbit/s"
delay = "20 ms"
queue = "50 kB"
[[traffic]]
name = "cross"
kind = "poisson"
from = "a"
to = "b"
rate = "1 Mbit/s"
size = "1000 B"
"#,
        ["tfrc", "lastmile"],
    ),
    (
        "wired, 2 % of random loss",
        r#"[host.a]
[host.b]
[[link]]
from = "a"
to = "b"
rate = "2 Mbit/s"
delay = "20 ms"
queue = "50 kB"
losses = [{ model = { kind = "bernoulli", rate = 0.02 } }]
back = { losses = [] }
"#,
        ["tfrc+spike", "lastmile"],
    ),
    (
        "802.11b at 5.5 Mbit/s behind 20 ms, a station beside it",
        r#"[host.a]
[host.b]
[host.c]
[[link]]
from = "a"
to = "ap"
rate = "100 Mbit/s"
delay = "20 ms"
queue = "1000 packets"
[[wlan]]
standard = "b"
station = [
  { name = "ap", queue = 30 },
  { name = "b", ap = "ap", rate = "5.5 Mbit/s" },
  { name = "c", ap = "ap", rate = "5.5 Mbit/s" },
]
[[traffic]]
name = "cross"
kind = "poisson"
from = "c"
to = "a"
rate = "500 kbit/s"
size = "1000 B"
"#,
        ["tfrc", "lastmile"],
    ),
];

/// The mean and the P90 of a stream's rate in bins of a second, in Mbit/s.
#[derive(Clone, Copy, Debug)]
struct Rates {
    mean: f64,
    p90: f64,
}

/// A flow's rate in each bin, in Mbit/s.
fn bins(series: &str, name: &str, rate: &str) -> Vec<f64> {
    let text = std::fs::read_to_string(series).expect("a series");
    let rows = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("a row"));
    let own = rows.filter(|row| row["row"] == "flow" && row["name"] == name);
    let bins: Vec<f64> = own.map(|row| row[rate].as_f64().expect("a rate") / 1e6).collect();
    assert!(!bins.is_empty(), "{name}");
    bins
}

fn mean_of(series: &str, name: &str, rate: &str) -> f64 {
    let bins = bins(series, name, rate);
    bins.iter().sum::<f64>() / bins.len() as f64
}

fn rates(series: &str) -> Rates {
    let mut bins = bins(series, "stream", "sent_bps");
    bins.sort_by(f64::total_cmp);
    Rates { mean: bins.iter().sum::<f64>() / bins.len() as f64, p90: bins[(bins.len() * 9).div_ceil(10) - 1] }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// One run in a world; in the lab, why it was refused.
fn one(world: &str, file: &str, seed: u64, scratch: &Scratch) -> Result<Rates, Late> {
    let series = series(world, &[file], seed, scratch)?;
    Ok(rates(&series))
}

/// The series of a run.
fn series(world: &str, path: &[&str], seed: u64, scratch: &Scratch) -> Result<String, Late> {
    let (series, seed) = (scratch.path("series.jsonl"), seed.to_string());
    let more = ["--seed", &seed, "--series", &series, "--series-step", "1 s", "--json"];
    let ended = lastmile(&[&[world][..], path, &more].concat());
    let json = ended.json();
    if let Some(why) = json["lateness"]["refused"]["text"].as_str() {
        return Err(Late { hypervisors: why.contains("hypervisor"), why: why.to_owned() });
    }
    assert_eq!(ended.code, Some(0), "{ended:?}");
    Ok(series)
}

/// Cases of the league in both worlds, `lastmile` and NADA: the streams' mean received rates, seeds 101 to 103.
#[test]
#[ignore = "takes half an hour on a machine that is left alone: make twins"]
fn twins_cases_of_the_league_are_those_of_the_lab() {
    if no_lab() {
        return;
    }
    let (scratch, mut wrong) = (Scratch::new("league-twins"), Vec::new());
    let cases = [
        ("rfc8867-5.1", &["video"][..]),
        ("step-5-1-5", &["video"]),
        ("late-comer", &["first", "second"]),
        ("burst-loss", &["video"]),
    ];
    for (case, streams) in cases {
        for control in ["lastmile", "nada"] {
            let sets: Vec<String> =
                streams.iter().map(|name| format!("stream.{name}.control={control}")).collect();
            let path: Vec<&str> =
                [case].into_iter().chain(sets.iter().flat_map(|set| ["--set", set])).collect();
            let received = |world: &str| -> Vec<f64> {
                let run = |seed| {
                    patiently(case, || {
                        let series = series(world, &path, seed, &scratch)?;
                        Ok(streams.iter().map(|name| mean_of(&series, name, "goodput_bps")).sum::<f64>())
                    })
                };
                (101..=103).filter_map(run).collect()
            };
            let (twin, lab) = (received("sim"), received("lab"));
            if lab.len() < twin.len() {
                continue;
            }
            let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
            let apart = mean(&lab) / mean(&twin) - 1.0;
            let text = format!(
                "{case}, {control}, {} runs: {:.3} Mbit/s, twin {:.3} ({:+.1} %)",
                lab.len(),
                mean(&lab),
                mean(&twin),
                100.0 * apart
            );
            eprintln!("lab: scored: {text}");
            if apart.abs() > APART {
                wrong.push(text);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
#[ignore = "takes half an hour on a machine that is left alone: make twins"]
fn twins_a_controller_in_the_lab_sends_at_the_rate_of_its_twin() {
    if no_lab() {
        return;
    }
    let asked = std::env::var("LASTMILE_TWINS").ok();
    let asked = asked.as_deref().and_then(|asked| asked.split_once(','));
    let (seconds, runs) = asked.unwrap_or(("60", "5"));
    let runs: u64 = runs.parse().expect("a number of runs");
    let (scratch, mut wrong) = (Scratch::new("twins"), Vec::new());
    let of = std::env::var("LASTMILE_TWINS_OF").ok();
    let runs_of = |control: &str| of.as_ref().is_none_or(|of| of == control);
    let all = PATHS.iter().flat_map(|(name, path, controls)| controls.map(|control| (name, path, control)));
    for (name, path, control) in all.filter(|(.., control)| runs_of(control)) {
        let text = format!(
            "name = \"twins\"\nduration = \"{seconds} s\"\nwarm_up = \"1 s\"\n{path}{STREAM}control = \"{control}\"\n"
        );
        let file = scratch.file("twins.toml", text);
        let all = |world: &str| -> Option<[f64; 2]> {
            let run = |seed| patiently(name, || one(world, &file, seed, &scratch));
            let rates: Vec<Rates> = (1..=runs).filter_map(run).collect();
            let medians = [|rates: &Rates| rates.mean, |rates: &Rates| rates.p90]
                .map(|of| median(rates.iter().map(of).collect()));
            // A run that was refused in the lab leaves too few.
            (rates.len() as u64 == runs).then_some(medians)
        };
        let (Some(twin), Some(lab)) = (all("sim"), all("lab")) else { continue };
        let apart = [0, 1].map(|which| lab[which] / twin[which] - 1.0);
        let text = format!(
            "{name}, {control}, medians of {runs} runs of {seconds} s: mean {:.3} Mbit/s, twin {:.3} ({:+.1} %); P90 {:.3}, twin \
             {:.3} ({:+.1} %)",
            lab[0],
            twin[0],
            100.0 * apart[0],
            lab[1],
            twin[1],
            100.0 * apart[1]
        );
        eprintln!("lab: scored: {text}");
        if asked.is_none() && apart.iter().any(|apart| apart.abs() > APART) {
            wrong.push(text);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
