//! Two states in time, each of exponentially distributed length: VTP's error bursts.

use lastmile::rng::Stream;
use lastmile::time::Span;
use serde::Deserialize;

use super::{Air, Covers, Parameters, State};
use crate::network::config_error::{ConfigError, probability, require};
use crate::text;

/// A channel that is good and bad in turn, with or without packets.
///
/// Share of bad time: bad / (good + bad). Under [`Covers::Whole`] a packet of duration d meets a bad moment with
/// probability 1 - good / (good + bad) exp(-d / good).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MarkovTime {
    /// Mean length of a good period, at least 1 us.
    #[serde(deserialize_with = "text::unit")]
    pub good: Span,
    /// Mean length of a bad period, at least 1 us.
    #[serde(deserialize_with = "text::unit")]
    pub bad: Span,
    /// Probability that a packet is lost which meets no bad moment.
    #[serde(default, deserialize_with = "text::share")]
    pub loss_good: f64,
    /// Probability that a packet is lost which meets a bad moment.
    #[serde(default = "super::one", deserialize_with = "text::share")]
    pub loss_bad: f64,
    /// Moments of a packet that count.
    #[serde(default)]
    pub covers: Covers,
}

impl MarkovTime {
    /// Periods of these mean lengths, in the bad ones of which everything is lost.
    pub fn new(good: Span, bad: Span) -> MarkovTime {
        MarkovTime { good, bad, loss_good: 0.0, loss_bad: 1.0, covers: Covers::Instant }
    }
}

impl Parameters for MarkovTime {
    fn check(&self) -> Result<(), ConfigError> {
        for (key, span) in [("good", self.good), ("bad", self.bad)] {
            require(span >= Span::from_micros(1), key, "a period of less than 1 us")?;
        }
        probability("loss_good", self.loss_good)?;
        probability("loss_bad", self.loss_bad)
    }

    fn state(&self, seed: u64, name: &str) -> Box<dyn State> {
        Box::new(Periods::new(self, Stream::new(seed, name)))
    }
}

/// Periods that are drawn one by one over a time without packets; beyond as many the state is drawn anew, which
/// bounds the work and, since nothing is remembered over so many periods, is the same chance.
const MAX_PERIODS: u32 = 100_000;

#[derive(Debug)]
struct Periods {
    model: MarkovTime,
    bad: bool,
    changes_at: u64,
    /// The last bad period ended here: a packet that began before it was hit.
    bad_until: u64,
    periods: Stream,
    packets: Stream,
}

impl Periods {
    fn new(model: &MarkovTime, random: Stream) -> Periods {
        // Packets draw from the stream's continuation under another name, so that they do not shift the periods.
        let mut periods = random;
        let packets = Stream::new(periods.bits(), "packets");
        let mut state =
            Periods { model: model.clone(), bad: false, changes_at: 0, bad_until: 0, periods, packets };
        state.draw_state(0);
        state
    }

    fn draw_state(&mut self, at: u64) {
        let (good, bad) = (self.model.good.as_nanos() as f64, self.model.bad.as_nanos() as f64);
        self.bad = self.periods.unit() * (good + bad) < bad;
        self.draw_length(at);
    }

    fn draw_length(&mut self, from: u64) {
        let mean = if self.bad { self.model.bad } else { self.model.good };
        let length = self.periods.exponential(mean.as_nanos().max(1_000) as f64);
        self.changes_at = from.saturating_add((length as u64).max(1));
        if self.bad {
            self.bad_until = self.changes_at;
        }
    }

    /// True if any moment from `first` to `last` is bad. Times do not go back beyond the packet before.
    fn meets_bad(&mut self, first: u64, last: u64, looks: &mut u64) -> bool {
        let mut drawn = 0;
        while self.changes_at <= first {
            drawn += 1;
            if drawn > MAX_PERIODS {
                self.draw_state(first);
                break;
            }
            self.bad = !self.bad;
            self.draw_length(self.changes_at);
        }
        *looks += u64::from(drawn);
        let mut met = self.bad || first < self.bad_until && self.bad_until != self.changes_at;
        while !met && self.changes_at <= last {
            *looks += 1;
            self.bad = !self.bad;
            self.draw_length(self.changes_at);
            met = self.bad;
        }
        met
    }
}

impl State for Periods {
    fn loses(&mut self, air: Air, looks: &mut u64) -> bool {
        let (first, last) = air.deciding(self.model.covers);
        let probability =
            if self.meets_bad(first, last, looks) { self.model.loss_bad } else { self.model.loss_good };
        self.packets.unit() < probability
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_packets_meet_more() {
        let model = MarkovTime {
            covers: Covers::Whole,
            ..MarkovTime::new(Span::from_millis(90), Span::from_millis(10))
        };
        let (mut channel, packets, length) = (model.state(5, "m"), 200_000_u64, 40_000_000);
        let air = |n: &u64| Air { starts: n * length, ends: (n + 1) * length };
        let lost = (0..packets).filter(|n| channel.loses(air(n), &mut 0)).count();
        let want = 1.0 - 0.9 * libm::exp(-40.0 / 90.0);
        assert!((lost as f64 / packets as f64 - want).abs() < 0.005, "{lost} {want}");
    }
}
