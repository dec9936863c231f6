//! Independent losses of packets: seed papers call this the exponential or uniform error model.

use serde::Deserialize;

use lastmile::rng::Stream;

use super::{Air, Parameters, State};
use crate::network::config_error::{ConfigError, probability};
use crate::text;

/// Losses that know nothing of each other.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bernoulli {
    /// The probability that a packet is lost.
    #[serde(deserialize_with = "text::share")]
    pub rate: f64,
}

impl Parameters for Bernoulli {
    fn check(&self) -> Result<(), ConfigError> {
        probability("rate", self.rate)
    }

    fn state(&self, seed: u64, name: &str) -> Box<dyn State> {
        Box::new(Draws { rate: self.rate, random: Stream::new(seed, name) })
    }
}

#[derive(Debug)]
struct Draws {
    rate: f64,
    random: Stream,
}

impl State for Draws {
    fn loses(&mut self, _: Air, _: &mut u64) -> bool {
        self.random.unit() < self.rate
    }
}
