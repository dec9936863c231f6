//! Each packet is lost for itself: what seed papers call the exponential or uniform error model.

use serde::Deserialize;

use crate::network::config_error::LinkConfigError;
use crate::rng::Stream;

/// Losses that know nothing of each other.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bernoulli {
    /// The probability that a packet is lost.
    pub rate: f64,
}

impl Bernoulli {
    pub(super) fn check(&self) -> Result<(), LinkConfigError> {
        LinkConfigError::probability("rate", self.rate)
    }
}

#[derive(Debug)]
pub(super) struct State {
    rate: f64,
    random: Stream,
}

impl State {
    pub(super) fn new(model: &Bernoulli, random: Stream) -> State {
        State { rate: model.rate, random }
    }

    pub(super) fn loses(&mut self) -> bool {
        self.random.unit() < self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::statistics;
    use super::*;

    #[test]
    fn rate_and_runs_are_those_of_independent_losses() {
        let mut state = State::new(&Bernoulli { rate: 0.078 }, Stream::new(1, "b"));
        let lost: Vec<bool> = (0..400_000).map(|_| state.loses()).collect();
        let (rate, run, [one, _]) = statistics(&lost);
        assert!((rate - 0.078).abs() < 0.0015, "{rate}");
        assert!((run - 1.0 / (1.0 - 0.078)).abs() < 0.01, "{run}");
        assert!((one - (1.0 - 0.078)).abs() < 0.01, "{one}");
    }

    #[test]
    fn never_and_always() {
        let at = |rate| State::new(&Bernoulli { rate }, Stream::new(1, "b")).loses();
        assert!(!at(0.0) && at(1.0));
        assert!(Bernoulli { rate: f64::NAN }.check().is_err());
    }
}
