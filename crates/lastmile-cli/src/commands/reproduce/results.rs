//! Runs of all cases with all seeds, in the simulator on all cores or in the lab one by one; and what came of them: means with
//! their 95 % intervals, medians, differences paired by seed.

use std::collections::BTreeMap;

use anyhow::anyhow;
use lastmile_net::lab::run::{LabConfig, run as run_lab};
use lastmile_sim::runs::Hooks;
use lastmile_sim::scenario::Scenario;
use rayon::prelude::*;

use super::paper::{Case, Numbers, Paper, Run};
use crate::commands::lab::blame;
use crate::exit::Exit;
use crate::options::KERNEL_NOISE;
use crate::progress::Progress;
use crate::{roles, scenarios, signals};

/// What came of runs: of each case the numbers of each seed.
pub(crate) struct Results {
    runs: BTreeMap<Case, Vec<Numbers>>,
    /// Seeds 1 to this.
    pub(crate) seeds: u64,
}

/// A mean over runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    pub(crate) mean: f64,
    pub(crate) median: f64,
    /// Half of its 95 % interval (Student's t); nothing of one run.
    pub(crate) half: Option<f64>,
    pub(crate) n: usize,
}

/// Quantiles of Student's t, 97.5 %, by degrees of freedom from 1; beyond them the normal's.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

impl Estimate {
    /// Of values; nothing of none.
    pub(crate) fn of(values: &[f64]) -> Option<Estimate> {
        let n = values.len();
        if n == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0;
        let half = (n > 1).then(|| {
            let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
            T.get(n - 2).copied().unwrap_or(1.96) * (variance / n as f64).sqrt()
        });
        Some(Estimate { mean, median, half, n })
    }
}

impl Results {
    /// Runs every case with every seed in the simulator.
    pub(crate) fn simulate(paper: &Paper, cases: Vec<Case>, seeds: u64) -> anyhow::Result<Results> {
        let all = checked(paper, cases)?;
        let runs: Vec<(usize, u64)> =
            (1..=seeds).flat_map(|seed| (0..all.len()).map(move |case| (case, seed))).collect();
        let progress = Progress::new(&format!("runs of {}", paper.name), runs.len() as u64);
        let bar = progress.bar();
        let found: Vec<(usize, Numbers)> = runs
            .into_par_iter()
            .with_max_len(1)
            .map(|(case, seed)| {
                let scenario = &all[case].1;
                let run = scenarios::simulated(scenario, seed)
                    .map_err(|error| error.context(format!("{}, seed {seed}", all[case].0.command(paper))))?;
                bar.inc(1);
                let (found, network) = (&run.found, &run.network);
                Ok((case, (paper.measure)(&Run { scenario, seed, found, network })))
            })
            .collect::<anyhow::Result<_>>()?;
        let mut runs: Vec<Vec<Numbers>> = vec![Vec::new(); all.len()];
        found.into_iter().for_each(|(case, numbers)| runs[case].push(numbers));
        Ok(Results { runs: all.into_iter().map(|(case, _)| case).zip(runs).collect(), seeds })
    }

    /// Runs every case once in the lab.
    ///
    /// # Errors
    /// A run was late, so that its numbers are not to be believed, or could not be.
    pub(crate) fn lab(paper: &Paper, cases: Vec<Case>) -> anyhow::Result<Results> {
        let mut runs = BTreeMap::new();
        let all = checked(paper, cases)?;
        let progress = Progress::new(&format!("runs of {} in the lab", paper.name), all.len() as u64);
        let bar = progress.bar();
        for (case, scenario) in all {
            let seed = 1;
            let config = LabConfig { seed, realtime: true, hooks: Hooks::default() };
            let make = roles::makers(KERNEL_NOISE, seed);
            let run = run_lab(&scenario, &make, config, signals::stop()).map_err(blame)?;
            if signals::stopped() {
                return Err(Exit::Interrupted.blame(anyhow!("interrupted")));
            }
            if let Some(why) = run.lateness.refused {
                return Err(Exit::NoResult.blame(anyhow!("{}: {why}", case.command(paper))));
            }
            let (found, network) = (&run.found, &run.network);
            runs.insert(case, vec![(paper.measure)(&Run { scenario: &scenario, seed, found, network })]);
            bar.inc(1);
        }
        Ok(Results { runs, seeds: 1 })
    }

    /// That number of a case, run by run in the order of the seeds.
    pub(crate) fn values(&self, case: &Case, number: &str) -> Vec<f64> {
        let runs = self.runs.get(case).into_iter().flatten();
        runs.filter_map(|numbers| numbers.get(number).copied()).collect()
    }

    /// Its mean over the runs.
    pub(crate) fn mean(&self, case: &Case, number: &str) -> Option<Estimate> {
        Estimate::of(&self.values(case, number))
    }

    /// Its median over the runs.
    pub(crate) fn median(&self, case: &Case, number: &str) -> Option<f64> {
        Some(self.mean(case, number)?.median)
    }

    /// How much more it is in the first case than in the second, seed by seed.
    pub(crate) fn difference(&self, of: &Case, from: &Case, number: &str) -> Option<Estimate> {
        let (of, from) = (self.runs.get(of)?, self.runs.get(from)?);
        let differences = of.iter().zip(from).filter_map(|(a, b)| Some(a.get(number)? - b.get(number)?));
        Estimate::of(&differences.collect::<Vec<_>>())
    }
}

/// The cases, each once, with their scenarios: what is wrong with one is found before any is run. Those that take longest
/// come first.
pub(super) fn checked(paper: &Paper, mut cases: Vec<Case>) -> anyhow::Result<Vec<(Case, Scenario)>> {
    cases.sort();
    cases.dedup();
    let read = |case: Case| {
        let file = paper.scenarios.iter().find(|file| file.0 == case.scenario);
        let text = file.map(|file| file.1).ok_or_else(|| anyhow!("no scenario {}", case.scenario))?;
        let name = format!("{}.toml", case.scenario);
        let scenario = Scenario::parse_with(&name, text, &case.overrides(), &scenarios::check_choice)?;
        anyhow::Ok((case, scenario))
    };
    let mut all = cases.into_iter().map(read).collect::<anyhow::Result<Vec<_>>>()?;
    all.sort_by_key(|(_, scenario)| {
        core::cmp::Reverse(scenario.conversations().len() + scenario.traffic.len())
    });
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 1, 2, 3, 6 have mean 3, median 2.5, variance 14/3, and t = 3.182 with three degrees of freedom.
    #[test]
    fn means_and_intervals_by_hand() {
        let estimate = Estimate::of(&[6.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((estimate.mean, estimate.median, estimate.n), (3.0, 2.5, 4));
        assert!((estimate.half.unwrap() - 3.182 * (14.0_f64 / 12.0).sqrt()).abs() < 1e-12);
        assert_eq!(Estimate::of(&[5.0]).unwrap().half, None);
        assert_eq!(Estimate::of(&[]), None);
    }

    #[test]
    fn differences_are_those_of_one_seed() {
        let (a, b) = (Case::new("a"), Case::new("b"));
        let numbers = |values: [f64; 3]| values.map(|value| Numbers::from([("x", value)])).to_vec();
        let runs = [(a.clone(), numbers([1.0, 10.0, 100.0])), (b.clone(), numbers([0.0, 9.0, 99.0]))].into();
        let results = Results { runs, seeds: 3 };
        let difference = results.difference(&a, &b, "x").unwrap();
        assert_eq!((difference.mean, difference.half), (1.0, Some(0.0)), "whatever the seeds differ by");
        assert_eq!(results.difference(&a, &b, "y"), None);
    }
}
