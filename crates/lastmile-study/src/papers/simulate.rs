//! Runs of all cases with all seeds, in the simulator on all cores.

use std::collections::BTreeMap;

use lastmile::time::Span;
use lastmile_sim::roles::Truths;
use lastmile_sim::runs::Hooks;
use lastmile_sim::scenario::Scenario;

use super::case::Case;
use super::film::{Film, makers};
use super::paper::{Paper, Run};
use super::results::Results;
use super::watch::{Notes, taken};
use crate::World;
use crate::audience::Audience;
use crate::error::Result;
use crate::fleet::Fleet;
use crate::runs::by_seed;
use crate::scenarios;

impl Results {
    /// Runs every case so often in the simulator, with seeds from 1; `seeds` is how often most are. A shard has no results.
    pub(crate) fn simulate(
        paper: &Paper,
        mut cases: BTreeMap<Case, u64>,
        seeds: u64,
        film: Option<&Film>,
        fleet: &Fleet,
        audience: &Audience,
    ) -> Result<Option<Results>> {
        cases.retain(|case, _| case.programs.is_empty());
        let all = checked(paper, cases.keys().cloned().collect())?;
        let often: Vec<u64> = all.iter().filter_map(|(case, _)| cases.get(case).copied()).collect();
        let texts: Vec<_> = all.iter().map(|(case, _)| (paper.command(case), paper.text(case))).collect();
        let title = format!("runs of {}", paper.name);
        let runs = by_seed(&title, &often, &texts, fleet, audience, |case, seed| {
            let (case, scenario) = &all[case];
            let (notes, hooks) = hooks(paper, scenario);
            let make = makers(film, case, Span::ZERO, seed, World::Sim);
            let run = scenarios::simulated_with(scenario, seed, &make, hooks, audience)
                .map_err(|error| error.of(format!("{}, seed {seed}", paper.command(case))))?;
            let (found, network, events) = (&run.found, &run.network, &run.events[..]);
            let run = Run { scenario, seed, found, network, events, seen: &taken(&notes) };
            Ok(((paper.measure)(&run), (seed == 1).then(|| (paper.draw)(&run))))
        })?;
        let Some(runs) = runs else { return Ok(None) };
        let mut results = Results::none(seeds);
        for ((case, _), runs) in all.into_iter().zip(runs) {
            let (numbers, lines): (Vec<_>, Vec<_>) = runs.into_iter().unzip();
            results.lines.extend(lines.into_iter().next().flatten().map(|lines| (case.clone(), lines)));
            results.runs.insert(case, numbers);
        }
        Ok(Some(results))
    }
}

/// A run goes on so long after its measurements.
const LINGER: Span = Span::from_millis(100);

/// Hooks of a paper's watch, and its notes.
pub(super) fn hooks(paper: &Paper, scenario: &Scenario) -> (Notes, Hooks) {
    let notes = Notes::default();
    let hooks = paper.watch.map_or_else(Hooks::default, |watch| watch.hooks(&notes));
    let linger = (paper.measures && !scenario.conversations().is_empty()).then_some(LINGER);
    let truths = if paper.measures { Truths::None } else { Truths::All };
    (notes, Hooks { linger, truths, ..hooks })
}

/// The cases, each once, with their scenarios: an error in one is found before any is run. Those that take longest
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
