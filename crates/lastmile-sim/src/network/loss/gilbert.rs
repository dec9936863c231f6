//! Two states that change per packet: E. N. Gilbert, "Capacity of a Burst-Noise Channel", Bell System Technical
//! Journal 39, 1960; E. O. Elliott, "Estimates of Error Rates for Codes on Burst-Noise Channels", BSTJ 42, 1963.

use serde::Deserialize;

use crate::network::config_error::LinkConfigError;
use crate::rng::Stream;

/// The Gilbert-Elliott channel. The chain starts in its stationary state and moves after each packet.
///
/// Loss rate: (1-k) r/(p+r) + (1-h) p/(p+r). With k = 1 and h = 0 the mean run of losses is 1/r.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GilbertElliott {
    /// Probability to change from good to bad.
    pub p: f64,
    /// Probability to change from bad to good.
    pub r: f64,
    /// Probability that a packet in the good state arrives.
    #[serde(default = "one")]
    pub k: f64,
    /// Probability that a packet in the bad state arrives.
    #[serde(default)]
    pub h: f64,
}

fn one() -> f64 {
    1.0
}

impl Default for GilbertElliott {
    /// A channel that loses nothing.
    fn default() -> GilbertElliott {
        GilbertElliott { p: 0.0, r: 1.0, k: 1.0, h: 0.0 }
    }
}

impl GilbertElliott {
    pub(super) fn check(&self) -> Result<(), LinkConfigError> {
        for (key, p) in [("p", self.p), ("r", self.r), ("k", self.k), ("h", self.h)] {
            LinkConfigError::probability(key, p)?;
        }
        if self.p + self.r <= 0.0 {
            return Err(LinkConfigError::new("r", "with p = r = 0 the state never changes"));
        }
        Ok(())
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

impl MarkovPackets {
    pub(super) fn check(&self) -> Result<(), LinkConfigError> {
        for (key, packets) in [("good", self.good), ("bad", self.bad)] {
            if !(packets >= 1.0 && packets.is_finite()) {
                return Err(LinkConfigError::new(key, "a period lasts at least one packet"));
            }
        }
        Ok(())
    }

    pub(super) fn as_gilbert_elliott(&self) -> GilbertElliott {
        GilbertElliott { p: 1.0 / self.good.max(1.0), r: 1.0 / self.bad.max(1.0), k: 1.0, h: 0.0 }
    }
}

#[derive(Debug)]
pub(super) struct State {
    model: GilbertElliott,
    bad: bool,
    random: Stream,
}

impl State {
    pub(super) fn new(model: &GilbertElliott, mut random: Stream) -> State {
        let bad = random.unit() * (model.p + model.r) < model.p;
        State { model: model.clone(), bad, random }
    }

    pub(super) fn loses(&mut self) -> bool {
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

#[cfg(test)]
mod tests {
    use super::super::testing::statistics;
    use super::*;

    fn run(model: &GilbertElliott) -> Vec<bool> {
        let mut state = State::new(model, Stream::new(3, "g"));
        (0..400_000).map(|_| state.loses()).collect()
    }

    #[test]
    fn loss_rate_and_runs_follow_the_closed_forms() {
        let (rate, run_length, [one, two]) =
            statistics(&run(&GilbertElliott { p: 0.02, r: 0.4, ..Default::default() }));
        assert!((rate - 0.02 / 0.42).abs() < 0.002, "{rate}");
        assert!((run_length - 2.5).abs() < 0.05, "{run_length}");
        assert!((one - 0.4).abs() < 0.015 && (two - 0.24).abs() < 0.015, "{one} {two}"); // geometric
        let (rate, ..) = statistics(&run(&GilbertElliott { p: 0.1, r: 0.3, k: 0.99, h: 0.5 }));
        assert!((rate - (0.01 * 0.75 + 0.5 * 0.25)).abs() < 0.003, "{rate}");
    }

    #[test]
    fn mean_lengths_say_the_same() {
        let (rate, run_length, _) =
            statistics(&run(&MarkovPackets { good: 95.0, bad: 5.0 }.as_gilbert_elliott()));
        assert!((rate - 0.05).abs() < 0.003, "{rate}");
        assert!((run_length - 5.0).abs() < 0.15, "{run_length}");
    }

    #[test]
    fn impossible_values_are_refused() {
        assert!(GilbertElliott { p: 0.0, r: 0.0, ..Default::default() }.check().is_err());
        assert!(GilbertElliott { h: 1.1, ..Default::default() }.check().is_err());
        assert!(MarkovPackets { good: 0.5, bad: 2.0 }.check().is_err());
    }
}
