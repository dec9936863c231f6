//! Cells of 802.11n that aggregate, as home access points make them: pairs say nothing there, and the ends of batches do.
//!
//! The long-run truths are those of `lastmile sim n` and its like, found by bisection: `lastmile accuracy --scenario
//! n,n-down,n-up,n-both` finds them anew. `docs/methods.md` has the numbers of longer runs.
#![allow(clippy::print_stderr, reason = "the numbers seen are quoted in the documentation")]

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lastmile::estimate::{Conditions, Estimate, Estimator, Quantity, Step, build};
use lastmile::observe::stats::quantile;
use lastmile::report::StreamRecord;
use lastmile::units::Rate;
use lastmile_sim::roles::measure::MeasureSpec;
use lastmile_sim::runs::{Hooks, simulate};
use lastmile_sim::scenario::builtin;

/// What is spare over a long run, in Mbit/s.
const CELLS: [(&str, f64); 4] = [("n", 60.9), ("n-down", 52.4), ("n-up", 47.6), ("n-both", 39.6)];
const CAPACITY: f64 = 60.9;

/// Ends the run when the tool has ended: its truths are known.
struct Ending(Box<dyn Estimator>, Arc<AtomicBool>);

impl Estimator for Ending {
    fn step(&mut self) -> Step {
        let step = self.0.step();
        self.1.fetch_or(matches!(step, Step::Done(_)), Ordering::Relaxed);
        step
    }

    fn on_stream(&mut self, record: &StreamRecord) {
        self.0.on_stream(record);
    }
}

/// Numbers, bounds and costs of the runs in a cell.
#[derive(Default)]
struct Seen {
    capacity: Vec<f64>,
    left: Vec<f64>,
    covered: Vec<f64>,
    bytes: Vec<f64>,
    seconds: Vec<f64>,
    none: Vec<String>,
}

impl Seen {
    fn take(&mut self, estimate: &Estimate, spare: f64) {
        assert!(estimate.warning().is_some_and(|text| text.contains("batches")), "{estimate:?}");
        let Some(rate) = estimate.value.rate() else { return self.none.push(estimate.value.to_string()) };
        let mbps = rate.bits_per_second() as f64 / 1e6;
        if estimate.quantity != Quantity::Capacity {
            return self.left.push((mbps / spare - 1.0).abs());
        }
        self.capacity.push((mbps / CAPACITY - 1.0).abs());
        let holds = estimate.interval.map(|i| i.contains(Rate::ip((CAPACITY * 1e6) as u64)));
        self.covered.extend(holds.map(|holds| f64::from(u8::from(holds))));
    }
}

fn measure(method: &str, cell: &str, spare: f64, runs: u64) -> Seen {
    let (scenario, mut seen) = (builtin(cell).unwrap(), Seen::default());
    for seed in 0..runs {
        let done = Arc::new(AtomicBool::new(false));
        let make = |_: &MeasureSpec| -> Result<Box<dyn Estimator>, String> {
            let tool = build(&method.parse().unwrap(), &Conditions::exact(seed)).unwrap();
            Ok(Box::new(Ending(tool, done.clone())))
        };
        let watched = done.clone();
        let progress = Box::new(move |_| match watched.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
        let hooks = Hooks { progress: Some(progress), ..Hooks::default() };
        let outcomes = simulate(&scenario, seed, &make, hooks).unwrap().found.measure.outcomes;
        for outcome in &outcomes {
            seen.none.extend(outcome.refusal.iter().map(ToString::to_string));
            outcome.estimate.iter().for_each(|estimate| seen.take(estimate, spare));
        }
        let last = outcomes.last().unwrap();
        seen.bytes.push(last.cost.probe_bytes.0 as f64);
        seen.seconds.push(last.cost.elapsed.as_secs_f64());
    }
    let of = |values: &[f64], q| quantile(values, q).unwrap_or(f64::NAN);
    eprintln!(
        "{method} {cell}, n = {runs}: capacity {:.3} (P90 {:.3}); left {:.3} (P90 {:.3}); held {:.3}; {:.0} B, {:.2} s; {:?}",
        of(&seen.capacity, 0.5),
        of(&seen.capacity, 0.9),
        of(&seen.left, 0.5),
        of(&seen.left, 0.9),
        seen.covered.iter().sum::<f64>() / seen.covered.len().max(1) as f64,
        of(&seen.bytes, 0.5),
        of(&seen.seconds, 0.5),
        seen.none,
    );
    seen
}

#[test]
fn capacity_and_what_is_left_come_out_where_stations_aggregate() {
    for (cell, spare) in CELLS {
        for (method, cost) in [("wbest", 400e3), ("capprobe", 450e3)] {
            let seen = measure(method, cell, spare, 20);
            assert!(seen.capacity.len() >= 16, "{cell}: {:?}", seen.none);
            assert!(quantile(&seen.capacity, 0.5).unwrap() <= 0.05, "{cell}");
            assert!(quantile(&seen.capacity, 0.9).unwrap() <= 0.10, "{cell}");
            assert!(quantile(&seen.bytes, 0.5).unwrap() <= cost, "{cell}");
            assert!(quantile(&seen.seconds, 0.5).unwrap() <= 1.0, "{cell}");
            if method == "wbest" {
                assert!(seen.left.len() >= 16, "{cell}: {:?}", seen.none);
                assert!(quantile(&seen.left, 0.5).unwrap() <= 0.15, "{cell}");
            }
        }
    }
}

#[test]
fn the_capacitys_interval_holds_it_as_often_as_it_says() {
    for (cell, spare) in CELLS {
        let seen = measure("wbest", cell, spare, 200);
        let held = seen.covered.iter().sum::<f64>() / seen.covered.len() as f64;
        assert!(seen.covered.len() >= 160 && (0.85..=0.95).contains(&held), "{cell}: {held}");
    }
}
