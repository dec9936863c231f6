//! Scenarios for the commands: which one is to run, and with what.

use anyhow::anyhow;
use lastmile_sim::runs::RunError;
use lastmile_sim::scenario::{Override, Scenario};

use super::exit::Exit;

/// The scenario to run, and its changes.
#[derive(clap::Args)]
pub(crate) struct ScenarioArgs {
    /// Scenario file, or a name that `lastmile scenarios` lists
    #[arg(value_name = "SCENARIO")]
    pub(crate) name: String,
    /// A key of the scenario and its value, such as `duration=5 s` or `traffic.cross.rate=2 Mbit/s`; may be given several
    /// times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Seed of all random numbers [default: the scenario's own]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

impl ScenarioArgs {
    /// The checked scenario, and the seed.
    pub(crate) fn load(&self) -> anyhow::Result<(Scenario, u64)> {
        let scenario = lastmile_study::scenarios::load(&self.name, &replaced(&self.set)?)?;
        let seed = self.seed.unwrap_or(scenario.seed);
        Ok((scenario, seed))
    }
}

/// Each KEY=VALUE, a key once.
pub(crate) fn replaced(sets: &[String]) -> anyhow::Result<Vec<Override>> {
    let mut overrides: Vec<Override> = Vec::new();
    for set in sets {
        let (key, value) = set.split_once('=').ok_or_else(|| {
            Exit::Usage.blame(anyhow!("--set {set:?}: give a key and its value, such as duration=5 s"))
        })?;
        let next = Override::new(key.trim(), value.trim());
        if overrides.iter().any(|before| before.key == next.key) {
            return Err(Exit::Usage.blame(anyhow!("--set gives {} twice: give it once", next.key)));
        }
        overrides.push(next);
    }
    Ok(overrides)
}

/// Exit code of a run that could not be.
pub(crate) fn blame(error: RunError) -> anyhow::Error {
    match error {
        RunError::Engine(_) => Exit::Machine.blame(error),
        _ => Exit::Usage.blame(error),
    }
}
