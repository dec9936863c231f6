//! Runs of a paper's cases in the lab, one by one.

use std::collections::BTreeMap;

use lastmile_net::lab::run::{LabConfig, run as run_lab};
use lastmile_sim::roles::Makers;

use super::case::Case;
use super::paper::{Paper, Run};
use super::results::Results;
use super::simulate::{checked, hooks};
use super::watch::taken;
use crate::audience::Audience;
use crate::error::{Error, Result};
use crate::lab::KERNEL_NOISE;

/// Attempts at a run in the lab.
const ATTEMPTS: u32 = 3;

impl Results {
    /// Runs every case so often in the lab, with seeds from 1. A run that is refused for lateness is tried again twice; one that
    /// was refused each time has no numbers.
    ///
    /// # Errors
    /// A run could not be, or all of a case were refused.
    pub(crate) fn lab(paper: &Paper, cases: BTreeMap<Case, u64>, audience: &Audience) -> Result<Results> {
        let seeds = cases.values().copied().max().unwrap_or(1);
        let mut results = Results::none(seeds);
        let all = checked(paper, cases.keys().cloned().collect())?;
        audience.progress.begin(&format!("runs of {} in the lab", paper.name), cases.values().sum());
        for (case, scenario) in all {
            let mut runs = Vec::new();
            let mut refused = String::new();
            for seed in 1..=cases.get(&case).copied().unwrap_or(1) {
                let mut numbers = None;
                for _ in 0..ATTEMPTS {
                    let (notes, hooks) = hooks(paper, &scenario);
                    let config = LabConfig { seed, realtime: true, hooks };
                    let make = Makers::registered(KERNEL_NOISE, seed);
                    let run = run_lab(&scenario, &make, config, &audience.stop)?;
                    if audience.is_gone() {
                        return Err(Error::interrupted());
                    }
                    if let Some(why) = run.lateness.refused {
                        refused = why.to_string();
                        continue;
                    }
                    let (found, network, events) = (&run.found, &run.network, &run.events[..]);
                    let seen = &taken(&notes);
                    let run = Run { scenario: &scenario, seed, found, network, events, seen };
                    numbers = Some((paper.measure)(&run));
                    results.lines.entry(case.clone()).or_insert_with(|| (paper.draw)(&run));
                    break;
                }
                runs.push(numbers);
                audience.progress.advance(1);
            }
            if runs.iter().all(Option::is_none) {
                return Err(Error::NoResult(format!("{}: {refused}", paper.command(&case))));
            }
            results.runs.insert(case, runs.into_iter().map(Option::unwrap_or_default).collect());
        }
        audience.progress.end();
        Ok(results)
    }
}
