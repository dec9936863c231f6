//! Paths on which a model does not hold, 40 runs each: `cases/*.toml`, which `lastmile sim` takes too.
#![allow(clippy::print_stdout, reason = "the table is this test's result")]

use lastmile::estimate::Quantity;
use lastmile::time::Span;
use lastmile_sim::roles::Makers;
use lastmile_sim::runs::{Hooks, simulate};
use lastmile_sim::scenario::Scenario;

use super::judge::{Verdict, judge};

const RUNS: u64 = 40;
/// Of 40 numbers so many may be wrong without a word.
const SILENT: usize = 2;
/// The largest median error where others take half of the link or less.
const ERROR: f64 = 0.15;

/// Results for one quantity on a path: verdicts, and errors as shares of the truth.
#[derive(Default)]
struct Told {
    verdicts: Vec<Verdict>,
    errors: Vec<f64>,
}

impl Told {
    fn count(&self, verdict: Verdict) -> usize {
        self.verdicts.iter().filter(|v| **v == verdict).count()
    }

    fn error(&self) -> f64 {
        lastmile::observe::stats::median(&self.errors).unwrap_or(0.0)
    }
}

/// The capacity and the spare rate, in all runs of a case.
fn told(name: &str) -> [Told; 2] {
    let file = format!("{}/src/paths/cases/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&file).unwrap();
    let scenario = Scenario::parse(name, &text).unwrap();
    let mut told = [Told::default(), Told::default()];
    for seed in 1..=RUNS {
        let make = Makers::registered(Span::ZERO, seed);
        let run = simulate(&scenario, seed, &make, Hooks::default()).unwrap();
        let mut seen = [false; 2];
        for outcome in run.found.measure.outcomes {
            let Some(estimate) = outcome.estimate else { continue };
            let which = match estimate.quantity {
                Quantity::Capacity => 0,
                Quantity::AvailableBandwidth => 1,
                _ => continue,
            };
            let Some(judged) = judge(&estimate, outcome.truth) else { continue };
            let bps = |rate: Option<lastmile::units::Rate>| rate.map_or(0.0, |r| r.bits_per_second() as f64);
            let off = bps(estimate.value.rate()) - bps(judged.truth);
            told[which].errors.push(off.abs() / bps(judged.truth).max(1.0));
            told[which].verdicts.push(judged.verdict);
            seen[which] = true;
        }
        for (told, seen) in told.iter_mut().zip(seen) {
            told.verdicts.extend((!seen).then_some(Verdict::Refused));
        }
    }
    let all = [Verdict::Right, Verdict::Held, Verdict::Warned, Verdict::Silent, Verdict::Refused];
    for (quantity, told) in ["capacity", "left"].iter().zip(&told) {
        let counts = all.map(|verdict| told.count(verdict).to_string()).join(" | ");
        println!("| {name} | {quantity} | {counts} | {:.1} |", told.error() * 100.0);
    }
    told
}

/// Cases whose numbers are wrong in silence in more than [`SILENT`] runs, and the most such runs: capacity, spare rate.
const OPEN: [(&str, [usize; 2]); 4] = [
    ("fair-queue-poisson-5", [0, 4]),
    ("lattice-20-200", [2, 16]),
    ("lattice-20-500", [2, 5]),
    ("lattice-30-300", [2, 17]),
];
/// Cases in which others take more than half.
const BUSY: [&str; 6] = [
    "fair-queue-poisson-5",
    "busy-before-30",
    "busy-before-100",
    "lattice-",
    "cell-g-tcp",
    "backlogged-flow",
];

/// As many cases as there are files: `cargo test -p lastmile-study cases -- --nocapture` prints the table.
#[test]
fn numbers_of_all_cases_are_right_or_say_so() {
    println!(
        "| case | number | right | held | warned | silent | none | error, % |\n|---|---|---|---|---|---|---|---|"
    );
    let dir = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/paths/cases")).unwrap();
    let mut names: Vec<String> =
        dir.map(|file| file.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned()).collect();
    names.sort();
    let mut wrong = Vec::new();
    for name in &names {
        let most = OPEN.iter().find(|(of, _)| of == name).map_or([SILENT; 2], |(_, most)| *most);
        let busy = BUSY.iter().any(|of| name.starts_with(of));
        for (told, most) in told(name).iter().zip(most) {
            let silent = told.count(Verdict::Silent);
            if silent > most || (!busy && told.error() > ERROR) {
                wrong.push(format!("{name}: {silent} silent, {:.3} off", told.error()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
