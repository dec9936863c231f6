//! Runs of all cases with all seeds, in the simulator on all cores or in the lab one by one, and what came of them.

use std::collections::BTreeMap;

use anyhow::anyhow;
use lastmile_net::lab::run::{LabConfig, run as run_lab};
use lastmile_sim::runs::Hooks;
use lastmile_sim::scenario::Scenario;

use super::paper::{Case, Numbers, Paper, Run};
use crate::commands::lab::blame;
use crate::exit::Exit;
pub(crate) use crate::experiment::Estimate;
use crate::experiment::by_seed;
use crate::options::KERNEL_NOISE;
use crate::progress::Progress;
use crate::{roles, scenarios, signals};

/// What came of runs: of each case the numbers of each seed.
pub(crate) struct Results {
    runs: BTreeMap<Case, Vec<Numbers>>,
    /// Seeds 1 to this.
    pub(crate) seeds: u64,
}

impl Results {
    /// Runs every case with every seed in the simulator.
    pub(crate) fn simulate(paper: &Paper, cases: Vec<Case>, seeds: u64) -> anyhow::Result<Results> {
        let all = checked(paper, cases)?;
        let runs = by_seed(&format!("runs of {}", paper.name), all.len(), seeds, |case, seed| {
            let (case, scenario) = &all[case];
            let run = scenarios::simulated(scenario, seed)
                .map_err(|error| error.context(format!("{}, seed {seed}", case.command(paper))))?;
            let (found, network) = (&run.found, &run.network);
            Ok((paper.measure)(&Run { scenario, seed, found, network }))
        })?;
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
        Estimate::difference(self.runs.get(of)?, self.runs.get(from)?, number)
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
