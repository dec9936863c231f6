//! Sweeps: one scenario, every combination of some of its values, several seeds. A [`Plan`] makes runs one by one, from
//! their numbers: a sweep of a million runs needs no more memory than those that are under way. They may run on as many
//! cores as there are, in any order; [`Run::index`] sorts them.

use std::sync::Arc;

use crate::scenario::{Override, Scenario, ScenarioError};

/// Parameters that vary, and seeds.
///
/// ```
/// use lastmile_sim::{scenario::builtin_text, runs::sweep::*};
/// let sweep = Sweep {
///     parameters: vec![
///         Parameter::new("link.0.rate", ["10 Mbit/s", "30 Mbit/s"]),
///         Parameter::new("traffic.cross.rate", ["1 Mbit/s", "4 Mbit/s", "8 Mbit/s"]),
///     ],
///     seeds: vec![1, 2],
/// };
/// let plan = sweep.plan("path.toml", builtin_text("path").unwrap())?;
/// assert_eq!((plan.runs(), plan.combinations()), (12, 6));
/// // The last parameter turns fastest but for the seed.
/// assert_eq!(plan.scenario(plan.combination_of(2))?.traffic[0].rate.to_string(), "4 Mbit/s");
/// # Ok::<(), SweepError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// The values that vary; none is one combination.
    pub parameters: Vec<Parameter>,
    /// The seeds of each combination; none is the scenario's own.
    pub seeds: Vec<u64>,
}

/// A key of the scenario, as in [`Override`], and the values it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The dotted key.
    pub key: String,
    /// Its values.
    pub values: Vec<String>,
}

impl Parameter {
    /// `key`, taking each of `values`.
    pub fn new<V: Into<String>>(key: impl Into<String>, values: impl IntoIterator<Item = V>) -> Parameter {
        Parameter { key: key.into(), values: values.into_iter().map(Into::into).collect() }
    }
}

/// One run of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Its place in the list.
    pub index: usize,
    /// Values that it sets.
    pub overrides: Arc<[Override]>,
    /// Its seed.
    pub seed: u64,
    /// The scenario with the overrides in place: one for all seeds.
    pub scenario: Arc<Scenario>,
}

impl Run {
    /// Its overrides in one line, for tables.
    pub fn label(&self) -> String {
        label(&self.overrides)
    }
}

fn label(overrides: &[Override]) -> String {
    let parts: Vec<_> = overrides.iter().map(|o| format!("{}={}", o.key, o.value)).collect();
    parts.join(" ")
}

/// Why a sweep cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SweepError {
    /// A parameter without values.
    #[error("parameter {0:?} has no values")]
    NoValues(String),
    /// A parameter that is there twice: its column would be.
    #[error("parameter {0:?} is there twice")]
    Twice(String),
    /// A value that is there twice: so would be its runs.
    #[error("parameter {0:?} has the value {1:?} twice")]
    SameValue(String, String),
    /// More runs than anybody means.
    #[error("{0} runs, more than {MAX_RUNS}")]
    TooMany(u128),
    /// A combination is no scenario.
    #[error("{}{error}", if label.is_empty() { String::new() } else { format!("with {label}: ") })]
    Scenario {
        /// The combination.
        label: String,
        /// Its error.
        error: ScenarioError,
    },
}

/// The most runs in one sweep.
pub const MAX_RUNS: u128 = 1_000_000;

/// A sweep of a scenario file: its runs by their numbers, combinations in the order of the parameters, the last turning
/// fastest, each with all seeds.
pub struct Plan<'a> {
    sweep: &'a Sweep,
    file: &'a str,
    text: &'a str,
    combinations: usize,
}

impl Sweep {
    /// Refuses sweeps that cannot be, whatever the scenario says. Combinations are checked when they are asked for.
    pub fn plan<'a>(&'a self, file: &'a str, text: &'a str) -> Result<Plan<'a>, SweepError> {
        for (at, parameter) in self.parameters.iter().enumerate() {
            if parameter.values.is_empty() {
                return Err(SweepError::NoValues(parameter.key.clone()));
            }
            if self.parameters[..at].iter().any(|before| before.key == parameter.key) {
                return Err(SweepError::Twice(parameter.key.clone()));
            }
            let mut seen = std::collections::BTreeSet::new();
            if let Some(value) = parameter.values.iter().find(|value| !seen.insert(*value)) {
                return Err(SweepError::SameValue(parameter.key.clone(), value.clone()));
            }
        }
        let lengths = self.parameters.iter().map(|p| p.values.len());
        let combinations = lengths.fold(1_u128, |product, n| product.saturating_mul(n as u128));
        let total = combinations.saturating_mul(self.seeds.len().max(1) as u128);
        if total > MAX_RUNS {
            return Err(SweepError::TooMany(total));
        }
        Ok(Plan { sweep: self, file, text, combinations: combinations as usize })
    }
}

impl Plan<'_> {
    /// Number of runs.
    pub fn runs(&self) -> usize {
        self.combinations * self.seeds()
    }

    /// Number of combinations, each a scenario.
    pub fn combinations(&self) -> usize {
        self.combinations
    }

    /// The sweep that was planned.
    pub fn sweep(&self) -> &Sweep {
        self.sweep
    }

    /// The combination that a run is of.
    pub fn combination_of(&self, run: usize) -> usize {
        run / self.seeds()
    }

    /// The scenario of a combination: one for all its seeds.
    ///
    /// # Errors
    /// The combination is no scenario.
    pub fn scenario(&self, combination: usize) -> Result<Scenario, SweepError> {
        let overrides = self.overrides(combination);
        Scenario::parse_with(self.file, self.text, &overrides)
            .map_err(|error| SweepError::Scenario { label: label(&overrides), error })
    }

    /// A run, given the scenario of its combination.
    pub fn run(&self, index: usize, scenario: Arc<Scenario>) -> Run {
        let overrides = self.overrides(self.combination_of(index)).into();
        let seed = self.sweep.seeds.get(index % self.seeds()).copied().unwrap_or(scenario.seed);
        Run { index, overrides, seed, scenario }
    }

    fn seeds(&self) -> usize {
        self.sweep.seeds.len().max(1)
    }

    /// Values that a combination sets.
    pub fn overrides(&self, combination: usize) -> Vec<Override> {
        let mut rest = combination;
        let mut overrides: Vec<_> = self
            .sweep
            .parameters
            .iter()
            .rev()
            .map(|p| {
                let value = &p.values[rest % p.values.len()];
                rest /= p.values.len();
                Override::new(&p.key, value)
            })
            .collect();
        overrides.reverse();
        overrides
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::builtin_text;

    fn runs(sweep: &Sweep) -> Result<Vec<Run>, SweepError> {
        let plan = sweep.plan("path.toml", builtin_text("path").unwrap())?;
        (0..plan.runs())
            .map(|index| Ok(plan.run(index, plan.scenario(plan.combination_of(index))?.into())))
            .collect()
    }

    #[test]
    fn without_parameters_it_is_the_scenario_with_its_seeds() {
        let plain = runs(&Sweep::default()).unwrap();
        assert_eq!((plain.len(), plain[0].seed, plain[0].label()), (1, 1, String::new()));
        let seeded = runs(&Sweep { seeds: vec![9, 4], ..Sweep::default() }).unwrap();
        assert_eq!(seeded.iter().map(|run| (run.index, run.seed)).collect::<Vec<_>>(), [(0, 9), (1, 4)]);
    }

    #[test]
    fn absurd_sweeps_are_refused_before_anything_is_made() {
        let empty = Sweep { parameters: vec![Parameter::new("seed", [""; 0])], seeds: vec![] };
        assert_eq!(runs(&empty), Err(SweepError::NoValues("seed".into())));
        let twice = Sweep { parameters: vec![Parameter::new("seed", ["1"]); 2], seeds: vec![] };
        assert_eq!(runs(&twice), Err(SweepError::Twice("seed".into())));
        let same = Sweep { parameters: vec![Parameter::new("seed", ["1", "2", "1"])], seeds: vec![] };
        assert_eq!(runs(&same), Err(SweepError::SameValue("seed".into(), "1".into())));
        let eight = (0..8)
            .map(|n| Parameter::new(format!("link.{n}.rate"), (0..1000).map(|n| n.to_string())))
            .collect();
        let huge = Sweep { parameters: eight, seeds: vec![] };
        assert_eq!(
            runs(&huge).unwrap_err().to_string(),
            format!("{} runs, more than 1000000", 10_u128.pow(24))
        );
    }
}
