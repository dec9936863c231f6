//! Runs of a paper's cases in the lab, one by one.

use std::collections::BTreeMap;
use std::time::Duration;

use lastmile_net::lab::LabError;
use lastmile_net::lab::programs::{Program, ProgramsConfig, run_programs};
use lastmile_net::lab::run::{LabConfig, LabRun, LabRunError, run as run_lab};
use lastmile_sim::roles::Makers;
use lastmile_sim::runs::Hooks;
use lastmile_sim::scenario::Scenario;

use super::case::{Case, Numbers};
use super::film::{Film, makers};
use super::paper::{Paper, Run};
use super::results::Results;
use super::simulate::{checked, hooks};
use super::watch::taken;
use crate::World;
use crate::audience::Audience;
use crate::error::{Error, Result};
use crate::lab::KERNEL_NOISE;

/// Attempts at a run in the lab.
const ATTEMPTS: u32 = 3;

impl Results {
    /// Runs every case so often in the lab, with seeds from 1: all cases with one seed, then with the next, so that a machine that is slow for a
    /// while is so for all. A run that is refused for lateness is tried again twice; one that was refused each time, or whose programs
    /// are not installed, has no numbers.
    ///
    /// # Errors
    /// A run could not be, or all of a case were refused.
    pub(crate) fn lab(
        paper: &Paper,
        cases: BTreeMap<Case, u64>,
        film: Option<&Film>,
        audience: &Audience,
    ) -> Result<Results> {
        let seeds = cases.values().copied().max().unwrap_or(1);
        let mut results = Results::none(seeds);
        let all = checked(paper, cases.keys().cloned().collect())?;
        let mut runs: BTreeMap<&Case, Vec<Option<Numbers>>> = BTreeMap::new();
        let mut refused: BTreeMap<&Case, String> = BTreeMap::new();
        // A run ends with its measurement, or with its scenario.
        let longest = |(case, scenario): &(Case, Scenario)| {
            scenario.duration.as_secs_f64() * cases.get(case).copied().unwrap_or(0) as f64
        };
        let minutes = all.iter().map(longest).sum::<f64>() / 60.0;
        let what = format!("runs of {} in the lab, {minutes:.0} minutes at most", paper.name);
        audience.progress.begin(&what, cases.values().sum());
        for seed in 1..=seeds {
            for (case, scenario) in
                all.iter().filter(|(case, _)| cases.get(case).is_some_and(|&runs| seed <= runs))
            {
                let mut numbers = None;
                for _ in 0..ATTEMPTS {
                    let (notes, hooks) = hooks(paper, scenario);
                    let make = makers(film, case, KERNEL_NOISE, seed, World::Lab);
                    let Some(run) = ran((case, scenario), seed, &make, hooks, audience)? else {
                        numbers = Some(Numbers::new());
                        break;
                    };
                    if audience.is_gone() {
                        return Err(Error::interrupted());
                    }
                    if let Some(why) = run.lateness.refused {
                        refused.insert(case, why.to_string());
                        continue;
                    }
                    let (found, network, events) = (&run.found, &run.network, &run.events[..]);
                    let seen = &taken(&notes);
                    let run = Run { scenario, seed, found, network, events, seen };
                    numbers = Some((paper.measure)(&run));
                    results.lines.entry(case.clone()).or_insert_with(|| (paper.draw)(&run));
                    break;
                }
                runs.entry(case).or_default().push(numbers);
                audience.progress.advance(1);
            }
        }
        for (case, runs) in runs {
            if runs.iter().all(Option::is_none) {
                let refused = refused.get(case).cloned().unwrap_or_default();
                return Err(Error::NoResult(format!("{}: {refused}", paper.command(case))));
            }
            results.runs.insert(case.clone(), runs.into_iter().map(Option::unwrap_or_default).collect());
        }
        audience.progress.end();
        Ok(results)
    }
}

/// One run, of the scenario's endpoints or of the case's programs: none where one of these is not installed.
fn ran(
    (case, scenario): (&Case, &Scenario),
    seed: u64,
    make: &Makers,
    hooks: Hooks,
    audience: &Audience,
) -> Result<Option<LabRun>> {
    if case.programs.is_empty() {
        let config = LabConfig { seed, realtime: true, hooks };
        return Ok(Some(run_lab(scenario, make, config, &audience.stop)?));
    }
    let this = std::env::current_exe().map_err(|error| Error::Machine(error.to_string()))?;
    let of = |(host, words): &(&str, Vec<String>)| {
        let word = |word: &String| match word.as_str() {
            "lastmile" => this.to_string_lossy().into_owned(),
            word => word.to_owned(),
        };
        Program { host: (*host).to_owned(), command: words.iter().map(word).collect() }
    };
    let programs: Vec<Program> = case.programs.iter().map(of).collect();
    let config = ProgramsConfig {
        seed,
        prepare: hooks.prepare,
        series: hooks.series,
        quiet: true,
        longest: Some(Duration::from_secs_f64(scenario.duration.as_secs_f64())),
        ..ProgramsConfig::default()
    };
    match run_programs(scenario, &programs, config, &audience.stop) {
        Ok((_, run)) => Ok(Some(run)),
        Err(LabRunError::Lab(LabError::Start { .. })) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
