//! Two states that change per packet: E. N. Gilbert, "Capacity of a Burst-Noise Channel", Bell System Technical
//! Journal 39, 1960; E. O. Elliott, "Estimates of Error Rates for Codes on Burst-Noise Channels", BSTJ 42, 1963.

use serde::Deserialize;

use lastmile::rng::Stream;

use super::{Air, Parameters, State};
use crate::network::config_error::{ConfigError, probability, require};
use crate::text;

/// The Gilbert-Elliott channel. The chain starts in its stationary state and moves after each packet.
///
/// Loss rate: (1-k) r/(p+r) + (1-h) p/(p+r). With k = 1 and h = 0 the mean run of losses is 1/r.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GilbertElliott {
    /// Probability to change from good to bad.
    #[serde(deserialize_with = "text::share")]
    pub p: f64,
    /// Probability to change from bad to good.
    #[serde(deserialize_with = "text::share")]
    pub r: f64,
    /// Probability that a packet in the good state arrives.
    #[serde(default = "super::one", deserialize_with = "text::share")]
    pub k: f64,
    /// Probability that a packet in the bad state arrives.
    #[serde(default, deserialize_with = "text::share")]
    pub h: f64,
}

impl Default for GilbertElliott {
    /// A channel that loses nothing.
    fn default() -> GilbertElliott {
        GilbertElliott { p: 0.0, r: 1.0, k: 1.0, h: 0.0 }
    }
}

impl Parameters for GilbertElliott {
    fn check(&self) -> Result<(), ConfigError> {
        for (key, p) in [("p", self.p), ("r", self.r), ("k", self.k), ("h", self.h)] {
            probability(key, p)?;
        }
        require(self.p + self.r > 0.0, "r", "with p = r = 0 the state never changes")
    }

    fn state(&self, seed: u64, name: &str) -> Box<dyn State> {
        let mut random = Stream::new(seed, name);
        let bad = random.unit() * (self.p + self.r) < self.p;
        Box::new(Chain { model: self.clone(), bad, random })
    }
}

/// Two states by the mean number of packets that they last; in the bad one all are lost.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MarkovPackets {
    /// Mean length of a good period, at least 1.
    pub good: f64,
    /// Mean length of a bad period, at least 1: of a run of losses.
    pub bad: f64,
}

impl Parameters for MarkovPackets {
    fn check(&self) -> Result<(), ConfigError> {
        for (key, packets) in [("good", self.good), ("bad", self.bad)] {
            let lasts = packets >= 1.0 && packets.is_finite();
            require(lasts, key, "a period lasts at least one packet")?;
        }
        Ok(())
    }

    fn state(&self, seed: u64, name: &str) -> Box<dyn State> {
        let (p, r) = (1.0 / self.good.max(1.0), 1.0 / self.bad.max(1.0));
        GilbertElliott { p, r, ..GilbertElliott::default() }.state(seed, name)
    }
}

#[derive(Debug)]
struct Chain {
    model: GilbertElliott,
    bad: bool,
    random: Stream,
}

impl State for Chain {
    fn loses(&mut self, _: Air, _: &mut u64) -> bool {
        let (arrives, changes) = match self.bad {
            true => (self.model.h, self.model.r),
            false => (self.model.k, self.model.p),
        };
        // Two draws per packet whatever happens, so that parameters can be compared under one seed.
        let lost = self.random.unit() >= arrives;
        self.bad ^= self.random.unit() < changes;
        lost
    }
}
