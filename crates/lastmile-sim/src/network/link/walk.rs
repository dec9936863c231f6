//! A capacity that walks at random between two bounds, as that of a cell does while its user moves: another walk with each seed.

use lastmile::rng::Stream;
use lastmile::time::{Span, Time};
use lastmile::units::Rate;
use serde::Deserialize;

use super::Change;
use crate::network::config_error::{ConfigError, require};
use crate::text;

/// Steps of a walk.
const MAX_STEPS: i64 = 100_000;

/// A bounded random walk of a link's rate.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Walk {
    /// Time between steps.
    #[serde(deserialize_with = "text::positive")]
    pub every: Span,
    /// The largest step, as a share of the rate: a step multiplies or divides it by up to 1 + `step`, either with equal chances.
    pub step: f64,
    /// The least rate.
    #[serde(deserialize_with = "text::unit")]
    pub min: Rate,
    /// The highest rate.
    #[serde(deserialize_with = "text::unit")]
    pub max: Rate,
}

impl Walk {
    /// Refuses a walk that cannot be, of a link that begins at `rate`, in a run of that length.
    pub(crate) fn check(&self, rate: Option<Rate>, duration: Span) -> Result<(), ConfigError> {
        let Some(rate) = rate else {
            let reason = "it begins at the link's `rate`: name one".to_owned();
            return Err(ConfigError { key: String::new(), reason });
        };
        require(self.step > 0.0 && self.step <= 10.0, "step", "must be above 0, at most 10")?;
        require(self.min.bits_per_second() > 0, "min", "a rate of zero delivers nothing")?;
        let bounds = self.min.bits_per_second()..=self.max.bits_per_second();
        require(!bounds.is_empty(), "max", "below `min`")?;
        let within = bounds.contains(&rate.bits_per_second());
        require(within, "", "it begins at the link's `rate`, which is not within `min` and `max`")?;
        let steps = duration.as_nanos() / self.every.as_nanos().max(1);
        require(steps <= MAX_STEPS, "every", format!("more than {MAX_STEPS} steps in the run"))
    }

    /// The rates after each step of a run of that length and seed, of a link of that name.
    pub(crate) fn changes(&self, rate: Rate, duration: Span, seed: u64, link: &str) -> Vec<Change> {
        let mut random = Stream::new(seed, &format!("walk/{link}"));
        let (min, max) = (self.min.bits_per_second() as f64, self.max.bits_per_second() as f64);
        let mut rate = rate.bits_per_second() as f64;
        let mut changes = Vec::new();
        let mut at = Time::ZERO + self.every;
        while at < Time::ZERO + duration && (changes.len() as i64) < MAX_STEPS {
            let factor = 1.0 + self.step * random.unit();
            let step = if random.unit() < 0.5 { factor } else { 1.0 / factor };
            rate = (rate * step).clamp(min, max);
            changes.push(Change { at, rate: Some(Rate::ip(rate as u64)), delay: None });
            at += self.every.max(Span::from_nanos(1));
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Span = Span::from_secs(60);

    fn walk() -> Walk {
        let (min, max) = (Rate::ip(500_000), Rate::ip(4_000_000));
        Walk { every: Span::from_millis(500), step: 0.3, min, max }
    }

    #[test]
    fn a_walk_is_bounded_and_another_one_with_each_seed() {
        let of = |seed| walk().changes(Rate::ip(2_000_000), MINUTE, seed, "a>b");
        let one = of(1);
        assert_eq!((one.len(), one == of(1), one == of(2)), (119, true, false));
        let mut before = 2_000_000.0;
        for change in &one {
            let rate = change.rate.unwrap().bits_per_second() as f64;
            assert!((500_000.0..=4_000_000.0).contains(&rate));
            assert!((1.0 / 1.301..=1.301).contains(&(rate / before)), "{before} {rate}");
            before = rate;
        }
        // Over many seeds it spends time near both bounds.
        let near = |low: f64, high: f64| {
            let rates = (0..50).flat_map(of).filter_map(|change| change.rate);
            rates.filter(|rate| (low..=high).contains(&(rate.bits_per_second() as f64))).count()
        };
        assert!(near(500_000.0, 600_000.0) > 100 && near(3_500_000.0, 4_000_000.0) > 100);
    }

    #[test]
    fn a_walk_that_cannot_be_is_refused() {
        let said =
            |walk: Walk, rate: Option<u64>| walk.check(rate.map(Rate::ip), MINUTE).unwrap_err().to_string();
        assert!(said(walk(), None).contains("it begins at the link's `rate`: name one"));
        assert!(said(walk(), Some(5_000_000)).contains("not within `min` and `max`"));
        assert!(said(Walk { step: f64::NAN, ..walk() }, Some(2_000_000)).contains("above 0"));
        assert!(said(Walk { max: Rate::ip(1), ..walk() }, Some(2_000_000)).contains("below `min`"));
        let quick = Walk { every: Span::from_nanos(1_000), ..walk() };
        assert!(said(quick, Some(2_000_000)).contains("more than 100000 steps"));
        assert!(walk().check(Some(Rate::ip(2_000_000)), MINUTE).is_ok());
    }
}
