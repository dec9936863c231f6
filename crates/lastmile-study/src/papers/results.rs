//! Runs of all cases with all seeds, in the simulator on all cores or in the lab one by one, and what came of them.

use std::cell::RefCell;
use std::collections::BTreeMap;

use lastmile_report::Mean;
use lastmile_sim::runs::Hooks;
use lastmile_sim::scenario::Scenario;

use super::claim::{Parts, Verdict};
use super::paper::{Case, Lines, Numbers, Paper, Run};
use super::watch::{Notes, taken};
use crate::audience::Audience;
use crate::error::Result;
use crate::runs::{by_seed, difference};
use crate::scenarios;

/// What came of runs: of each case the numbers of each seed.
pub struct Results {
    pub(super) runs: BTreeMap<Case, Vec<Numbers>>,
    /// What is drawn of the first.
    pub(super) lines: BTreeMap<Case, Lines>,
    /// Seeds 1 to this.
    pub(crate) seeds: u64,
    /// The numbers that were asked for since a claim began to be decided: in how many runs of a case there is one, and in how
    /// many not.
    asked: RefCell<BTreeMap<(Case, String), (usize, usize)>>,
}

/// A number that a claim goes by and that some of its runs do not have.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Without {
    pub(crate) number: String,
    pub(crate) without: usize,
    /// Of all runs in which it was looked for.
    pub(crate) runs: usize,
}

impl Results {
    pub(super) fn none(seeds: u64) -> Results {
        Results { runs: BTreeMap::new(), lines: BTreeMap::new(), seeds, asked: RefCell::default() }
    }

    /// Runs every case with every seed in the simulator.
    pub(crate) fn simulate(
        paper: &Paper,
        cases: Vec<Case>,
        seeds: u64,
        audience: &Audience,
    ) -> Result<Results> {
        let all = checked(paper, cases)?;
        let runs = by_seed(&format!("runs of {}", paper.name), all.len(), seeds, audience, |case, seed| {
            let (case, scenario) = &all[case];
            let (notes, hooks) = hooks(paper);
            let run = scenarios::simulated(scenario, seed, hooks, audience)
                .map_err(|error| error.of(format!("{}, seed {seed}", case.command(paper))))?;
            let (found, network, events) = (&run.found, &run.network, &run.events[..]);
            let run = Run { scenario, seed, found, network, events, seen: &taken(&notes) };
            Ok(((paper.measure)(&run), (seed == 1).then(|| (paper.draw)(&run))))
        })?;
        let mut results = Results::none(seeds);
        for ((case, _), runs) in all.into_iter().zip(runs) {
            let (numbers, lines): (Vec<_>, Vec<_>) = runs.into_iter().unzip();
            results.lines.extend(lines.into_iter().next().flatten().map(|lines| (case.clone(), lines)));
            results.runs.insert(case, numbers);
        }
        Ok(results)
    }

    /// What a claim comes to, and which of the numbers that it goes by are missing in some runs.
    pub(crate) fn decide(&self, decide: &dyn Fn(&Results) -> Parts) -> (Verdict, Vec<Without>) {
        self.asked.take();
        let verdict = decide(self).verdict();
        let mut sums = BTreeMap::<String, (usize, usize)>::new();
        for ((_, number), (with, without)) in self.asked.take() {
            let sum = sums.entry(number).or_default();
            *sum = (sum.0 + with, sum.1 + without);
        }
        let some = sums.into_iter().filter(|(_, (_, without))| *without > 0);
        let all = some.map(|(number, (with, without))| Without { number, without, runs: with + without });
        (verdict, all.collect())
    }

    /// That number of a case, run by run in the order of the seeds.
    pub fn values(&self, case: &Case, number: &str) -> Vec<f64> {
        let runs = self.runs.get(case).map(Vec::as_slice).unwrap_or_default();
        let values: Vec<f64> = runs.iter().filter_map(|numbers| numbers.get(number).copied()).collect();
        let asked = (values.len(), runs.len() - values.len());
        self.asked.borrow_mut().insert((case.clone(), number.to_owned()), asked);
        values
    }

    /// A line of its first run; nothing of one that was not drawn.
    pub fn line(&self, case: &Case, name: &str) -> Vec<(f64, Mean)> {
        let points = self.lines.get(case).and_then(|lines| lines.get(name)).into_iter().flatten();
        points.map(|&(x, y)| (x, Mean::exactly(y))).collect()
    }

    /// Its mean over the runs.
    pub fn mean(&self, case: &Case, number: &str) -> Option<Mean> {
        Mean::of(&self.values(case, number))
    }

    /// Its median over the runs.
    pub fn median(&self, case: &Case, number: &str) -> Option<f64> {
        Some(self.mean(case, number)?.median)
    }

    /// How much more it is in the first case than in the second, seed by seed.
    pub fn difference(&self, of: &Case, from: &Case, number: &str) -> Option<Mean> {
        let _ = [of, from].map(|case| self.values(case, number));
        difference(self.runs.get(of)?, self.runs.get(from)?, number)
    }

    /// The median of these differences.
    pub fn more(&self, of: &Case, from: &Case, number: &str) -> Option<f64> {
        Some(self.difference(of, from, number)?.median)
    }
}

/// Who looks on at a run, and where it is noted.
pub(super) fn hooks(paper: &Paper) -> (Notes, Hooks) {
    let notes = Notes::default();
    let hooks = paper.watch.map_or_else(Hooks::default, |watch| watch.hooks(&notes));
    (notes, hooks)
}

/// The cases, each once, with their scenarios: what is wrong with one is found before any is run. Those that take longest
/// come first.
pub(super) fn checked(paper: &Paper, mut cases: Vec<Case>) -> Result<Vec<(Case, Scenario)>> {
    cases.sort();
    cases.dedup();
    let read = |case: Case| -> Result<_> { Ok((case.clone(), paper.scenario(&case)?)) };
    let mut all = cases.into_iter().map(read).collect::<Result<Vec<_>>>()?;
    all.sort_by_key(|(_, scenario)| {
        let flows = scenario.conversations().len() + scenario.traffic.len();
        core::cmp::Reverse(scenario.duration.as_nanos() * flows as i64)
    });
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_those_of_one_seed() {
        let (a, b) = (Case::new("a"), Case::new("b"));
        let numbers = |values: [f64; 3]| values.map(|x| Numbers::from([("x", x)])).to_vec();
        let runs = [(a.clone(), numbers([1.0, 10.0, 100.0])), (b.clone(), numbers([0.0, 9.0, 99.0]))].into();
        let results = Results { runs, ..Results::none(3) };
        let difference = results.difference(&a, &b, "x").unwrap();
        assert_eq!((difference.mean, difference.half), (1.0, Some(0.0)), "whatever the seeds differ by");
        assert_eq!(results.difference(&a, &b, "y"), None);
    }
    /// Of `x` one of five runs has none. What was asked for before the claim is not its.
    #[test]
    fn a_claim_says_how_many_runs_have_no_number() {
        let of = |values: &[Option<f64>]| {
            values.iter().map(|value| value.map(|x| ("x", x)).into_iter().collect::<Numbers>()).collect()
        };
        let runs =
            [(Case::new("a"), of(&[Some(1.0), None, Some(3.0)])), (Case::new("b"), of(&[Some(5.0); 2]))];
        let results = Results { runs: runs.into(), ..Results::none(3) };
        results.values(&Case::new("a"), "y");
        let (verdict, without) = results.decide(&|results| {
            let mut parts = Parts::default();
            // Asked twice is once.
            for case in ["a", "b", "a"] {
                parts.beside(case, results.median(&Case::new(case), "x"));
            }
            parts
        });
        assert_eq!(verdict.ours, "a 2.0, b 5.0, a 2.0");
        assert_eq!(without, [Without { number: "x".to_owned(), without: 1, runs: 5 }]);
    }
}
