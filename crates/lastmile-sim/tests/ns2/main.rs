//! `make ns2`: the program ns-2 (Debian's package `ns2`) beside ours, both run here. It is only ever called as a program.
//! Every table has a number of runs, seeds from 1 on, and intervals; docs/validation.md has what the command printed.
//!
//! `LASTMILE_NS2_RUNS=5` runs each row five times, `LASTMILE_NS2_ONLY=20 ms` only rows with that text; neither is filed.
#![allow(clippy::print_stderr, reason = "tables and what is left out are this test's result")]

mod back;
mod grid;
mod red;
mod rows;

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use lastmile_sim::roles::Makers;
use lastmile_sim::runs::{Hooks, SimulatedRun, simulate};
use lastmile_sim::scenario::{Override, Scenario};

/// ns-2's t_RTO, and ours that goes by it.
const LAWS: [(&str, &str); 2] = [("4R", ""), ("own", ", preset=ns-2, header=0")];
const FORMS: [&str; 2] = ["receiver", "sender"];

/// True if ns-2 cannot be called, with a note on stderr.
fn no_ns2() -> bool {
    // The harness has begun a line.
    eprintln!();
    let none = Command::new("ns").arg("-h").output().is_err();
    if none {
        eprintln!("ns2: skipped: there is no program ns here (Debian: apt-get install ns2)");
    }
    none
}

/// The number that a script of this folder prints last.
fn ns2(script: &str, arguments: &str) -> f64 {
    let file = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ns2")).join(script);
    let output = Command::new("ns").arg(file).args(arguments.split(' ')).output().expect("ns");
    let text = String::from_utf8_lossy(&output.stdout);
    let number = text.lines().last().and_then(|line| line.trim().parse().ok());
    number
        .unwrap_or_else(|| panic!("{script} {arguments}: {text}{}", String::from_utf8_lossy(&output.stderr)))
}

/// A scenario of this folder with other values for some of its keys.
fn ours(text: &str, set: &[(&str, &str)], seed: u64) -> SimulatedRun {
    let set: Vec<_> = set.iter().map(|&(key, value)| Override::new(key, value)).collect();
    let scenario = Scenario::parse_with("ns2.toml", text, &set).unwrap_or_else(|error| panic!("{error}"));
    simulate(&scenario, seed, &Makers::default(), Hooks::default()).unwrap()
}

/// The values of `run` with the seeds from 1 on, on all cores.
fn seeds(runs: usize, run: impl Fn(u64) -> f64 + Sync) -> Vec<f64> {
    let next = AtomicUsize::new(1);
    let some = || {
        let mut found = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed > runs {
                return found;
            }
            found.push((seed, run(seed as u64)));
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let mut all = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(some)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a run")).collect::<Vec<_>>()
    });
    all.sort_by_key(|(seed, _)| *seed);
    all.into_iter().map(|(_, value)| value).collect()
}
