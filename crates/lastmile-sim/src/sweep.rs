//! Sweeps: one scenario, every combination of some of its values, several seeds. Only the list of runs is made
//! here; whoever runs them may do so on as many cores as there are, in any order, and sort by
//! [`Run::index`].

use std::sync::Arc;

use crate::scenario::{Override, Scenario, ScenarioError};

/// What varies.
///
/// ```
/// use lastmile_sim::{scenario::builtin_text, sweep::*};
/// let sweep = Sweep {
///     parameters: vec![
///         Parameter::new("link.0.rate", ["10 Mbit/s", "30 Mbit/s"]),
///         Parameter::new("traffic.cross.rate", ["1 Mbit/s", "4 Mbit/s", "8 Mbit/s"]),
///     ],
///     seeds: vec![1, 2],
/// };
/// let runs = sweep.runs("path.toml", builtin_text("path").unwrap(), &|_| Ok(()))?;
/// assert_eq!(runs.len(), 12);
/// // The last parameter turns fastest but for the seed.
/// assert_eq!((runs[2].label(), runs[2].seed), ("link.0.rate=10 Mbit/s traffic.cross.rate=4 Mbit/s".into(), 1));
/// assert_eq!(runs[2].scenario.traffic[0].rate.to_string(), "4 Mbit/s");
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
///
/// ```
/// assert_eq!(lastmile_sim::sweep::Parameter::new("seed", ["1", "2"]).values.len(), 2);
/// ```
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
    /// What it sets.
    pub overrides: Arc<[Override]>,
    /// Its seed.
    pub seed: u64,
    /// The scenario with the overrides in place: one for all seeds.
    pub scenario: Arc<Scenario>,
}

impl Run {
    /// Its overrides in one line, for tables.
    pub fn label(&self) -> String {
        let parts: Vec<_> = self.overrides.iter().map(|o| format!("{}={}", o.key, o.value)).collect();
        parts.join(" ")
    }
}

/// Why a sweep has no list of runs.
///
/// ```
/// use lastmile_sim::{scenario::builtin_text, sweep::*};
/// let sweep = Sweep { parameters: vec![Parameter::new("link.0.rate", ["fast"])], seeds: vec![] };
/// let error = sweep.runs("path.toml", builtin_text("path").unwrap(), &|_| Ok(())).unwrap_err();
/// assert!(error.to_string().starts_with("with link.0.rate=fast: path.toml:15: link[0].rate:"), "{error}");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SweepError {
    /// A parameter without values.
    #[error("parameter {0:?} has no values")]
    NoValues(String),
    /// A parameter that is there twice: its column would be.
    #[error("parameter {0:?} is there twice")]
    Twice(String),
    /// More runs than anybody means.
    #[error("{0} runs, more than {MAX_RUNS}")]
    TooMany(u128),
    /// A combination is no scenario.
    #[error("{}{error}", if label.is_empty() { String::new() } else { format!("with {label}: ") })]
    Scenario {
        /// The combination.
        label: String,
        /// What is wrong with it.
        error: ScenarioError,
    },
}

/// The most runs in one sweep.
pub const MAX_RUNS: u128 = 1_000_000;

impl Sweep {
    /// The runs: combinations in the order of the parameters, the last turning fastest, each with all seeds.
    /// Every combination is checked before any is run.
    pub fn runs(
        &self,
        file: &str,
        text: &str,
        check_method: &dyn Fn(&str) -> Result<(), String>,
    ) -> Result<Vec<Run>, SweepError> {
        if let Some(empty) = self.parameters.iter().find(|p| p.values.is_empty()) {
            return Err(SweepError::NoValues(empty.key.clone()));
        }
        for (at, parameter) in self.parameters.iter().enumerate() {
            if self.parameters[..at].iter().any(|before| before.key == parameter.key) {
                return Err(SweepError::Twice(parameter.key.clone()));
            }
        }
        let lengths = self.parameters.iter().map(|p| p.values.len());
        let combinations = lengths.fold(1_u128, |product, n| product.saturating_mul(n as u128));
        let total = combinations.saturating_mul(self.seeds.len().max(1) as u128);
        if total > MAX_RUNS {
            return Err(SweepError::TooMany(total));
        }
        let mut runs = Vec::with_capacity(total as usize);
        for combination in 0..combinations as usize {
            let overrides = self.combination(combination);
            let scenario = Scenario::parse_with(file, text, &overrides, check_method).map_err(|error| {
                let parts: Vec<_> = overrides.iter().map(|o| format!("{}={}", o.key, o.value)).collect();
                SweepError::Scenario { label: parts.join(" "), error }
            })?;
            let mut run =
                Run { index: 0, seed: 0, scenario: Arc::new(scenario), overrides: overrides.into() };
            let own = [run.scenario.seed];
            for &seed in if self.seeds.is_empty() { &own[..] } else { &self.seeds } {
                (run.index, run.seed) = (runs.len(), seed);
                runs.push(run.clone());
            }
        }
        Ok(runs)
    }

    fn combination(&self, number: usize) -> Vec<Override> {
        let mut rest = number;
        let mut overrides: Vec<_> = self
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
        sweep.runs("path.toml", builtin_text("path").unwrap(), &|_| Ok(()))
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
        let eight = (0..8).map(|n| Parameter::new(format!("link.{n}.rate"), vec!["1 bit/s"; 1000])).collect();
        let huge = Sweep { parameters: eight, seeds: vec![] };
        assert_eq!(
            runs(&huge).unwrap_err().to_string(),
            format!("{} runs, more than 1000000", 10_u128.pow(24))
        );
    }
}
