//! Scenarios for the commands: from a file, by a built-in name, and how their methods are made.

use std::fs;
use std::io::Read;

use anyhow::anyhow;
use lastmile::time::Span;
use lastmile_sim::roles::Makers;
use lastmile_sim::runs::{Hooks, RunError, SimulatedRun, simulate};
use lastmile_sim::scenario::{MAX_TEXT, Override, Scenario};

use crate::exit::Exit;
use crate::{ready, signals};

/// Which scenario is to run, and with what.
#[derive(clap::Args)]
pub(crate) struct ScenarioArgs {
    /// Scenario file, or the name of one that is built in; `lastmile scenarios` lists those
    #[arg(value_name = "SCENARIO")]
    pub(crate) name: String,
    /// A key of the scenario and its value, such as `duration=5 s` or `traffic.cross.rate=2 Mbit/s`; may be given several
    /// times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Draws all random numbers; the scenario's own if left out
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

impl ScenarioArgs {
    /// The checked scenario, and the seed.
    pub(crate) fn load(&self) -> anyhow::Result<(Scenario, u64)> {
        let (file, text) = text(&self.name)?;
        let overrides = self.set.iter().map(|set| replaced(set)).collect::<anyhow::Result<Vec<_>>>()?;
        let scenario = Scenario::parse_with(&file, &text, &overrides);
        let scenario = scenario.map_err(|error| Exit::Usage.blame(error))?;
        let seed = self.seed.unwrap_or(scenario.seed);
        Ok((scenario, seed))
    }
}

/// The text of a scenario and what errors call it.
pub(crate) fn text(name: &str) -> anyhow::Result<(String, String)> {
    if let Some(text) = ready::text(name) {
        return Ok((format!("{name}.toml"), text.to_owned()));
    }
    match read(name) {
        Ok(text) => Ok((name.to_owned(), text)),
        Err(error) => Err(Exit::Usage.blame(anyhow!(
            "cannot read scenario {name}: {error}; built in are: {}",
            ready::names().join(", ")
        ))),
    }
}

/// A file's text, no more of it than one byte beyond what a scenario may have: the reader refuses that by itself.
fn read(name: &str) -> std::io::Result<String> {
    let mut text = String::new();
    fs::File::open(name)?.take(MAX_TEXT as u64 + 1).read_to_string(&mut text)?;
    Ok(text)
}

/// A checked scenario as it is.
pub(crate) fn load(name: &str) -> anyhow::Result<Scenario> {
    let scenario = ScenarioArgs { name: name.to_owned(), set: Vec::new(), seed: None }.load()?;
    Ok(scenario.0)
}

/// KEY=VALUE.
pub(crate) fn replaced(set: &str) -> anyhow::Result<Override> {
    let (key, value) = set.split_once('=').ok_or_else(|| {
        Exit::Usage.blame(anyhow!("--set {set:?}: give a key and its value, such as duration=5 s"))
    })?;
    Ok(Override::new(key.trim(), value.trim()))
}

/// Runs a scenario in virtual time, with nobody who looks on.
///
/// # Errors
/// It cannot be run, or a signal came: a run may take minutes.
pub(crate) fn simulated(scenario: &Scenario, seed: u64) -> anyhow::Result<SimulatedRun> {
    simulated_with(scenario, seed, Hooks::default())
}

/// The same with those who look on.
///
/// # Errors
/// See there.
pub(crate) fn simulated_with(scenario: &Scenario, seed: u64, hooks: Hooks) -> anyhow::Result<SimulatedRun> {
    let interrupted = || Exit::Interrupted.blame(anyhow!("interrupted"));
    if signals::stopped() {
        return Err(interrupted());
    }
    let hooks = Hooks { progress: Some(Box::new(|_| signals::goes_on())), ..hooks };
    let run = simulate(scenario, seed, &Makers::registered(Span::ZERO, seed), hooks).map_err(blame)?;
    if run.stopped { Err(interrupted()) } else { Ok(run) }
}

/// Who is to blame for a run that could not be.
pub(crate) fn blame(error: RunError) -> anyhow::Error {
    match error {
        RunError::Engine(_) => Exit::Machine.blame(error),
        _ => Exit::Usage.blame(error),
    }
}
