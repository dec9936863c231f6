//! [`Jitter`]: random delay of a packet beyond the delay of its link.

use lastmile::options::{ChoiceError, Given, Opt, OptionError, Options};
use lastmile::rng::Stream;
use lastmile::time::Span;

use super::config_error::{ConfigError, require};

/// The longest additional delay.
const MOST: Span = Span::from_secs(60);

lastmile::options! {
    /// Each additional delay is as likely as any other.
    pub struct Uniform {
        /// The longest additional delay
        max: Span [Span::from_nanos(1)..=MOST] = Span::from_millis(5), "our own: an example";
        /// Packets overtake each other; without it none comes before one that was sent earlier
        reorder: bool = false, "our own";
    }
}

lastmile::options! {
    /// Additional delays around the middle between none and the longest.
    pub struct Normal {
        /// Standard deviation, before the ends are cut off
        std: Span [Span::from_nanos(1)..=MOST] = Span::from_millis(2), "our own: an example";
        /// The longest additional delay, at least `std`; half of it is the mean. Without it six times `std`
        max: Option<Span> = None, "our own: three deviations either way";
        /// Packets overtake each other; without it none comes before one that was sent earlier
        reorder: bool = false, "our own";
    }
}

/// The law of additional delays. In files a table of its kind and its options.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Jitter {
    /// See [`Uniform`].
    Uniform(Uniform),
    /// See [`Normal`].
    Normal(Normal),
}

impl Jitter {
    /// Each kind's name, options and source.
    pub fn described() -> [(&'static str, &'static [Opt], &'static str); 2] {
        [
            ("uniform", Uniform::OPTIONS, "all delays alike likely"),
            ("normal", Normal::OPTIONS, "a bell without its ends"),
        ]
    }

    /// The law of a kind, with the options given to it.
    ///
    /// # Errors
    /// There is no such kind, or it takes no such option or not that value.
    pub fn read(kind: &str, given: &Given) -> Result<Jitter, ChoiceError> {
        let read = match kind {
            "uniform" => Uniform::read(given).map(Jitter::Uniform),
            "normal" => Normal::read(given).map(Jitter::Normal),
            _ => {
                let known = Jitter::described().map(|(kind, ..)| kind).to_vec();
                return Err(ChoiceError::unknown("jitter", kind, known, None));
            }
        };
        Ok(read.map_err(|error| error.of(kind))?)
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let in_range = match self {
            Jitter::Uniform(uniform) => uniform.in_range(),
            Jitter::Normal(normal) => normal.in_range(),
        };
        in_range.map_err(|OptionError { option: key, reason, .. }| ConfigError { key, reason })?;
        let Jitter::Normal(Normal { std, max: Some(max), .. }) = self else { return Ok(()) };
        require(max <= &MOST, "max", format!("longer than {MOST}"))?;
        require(max >= std, "max", "shorter than `std`: `uniform` is nearly the same")
    }

    pub(crate) fn reorders(&self) -> bool {
        match self {
            Jitter::Uniform(uniform) => uniform.reorder,
            Jitter::Normal(normal) => normal.reorder,
        }
    }

    /// The additional delay of the next packet, in nanoseconds.
    pub(crate) fn draw(&self, random: &mut Stream) -> u64 {
        let share = match self {
            Jitter::Uniform(_) => random.unit(),
            Jitter::Normal(normal) => normal.share(random),
        };
        (self.max().max(Span::ZERO).as_nanos() as f64 * share) as u64
    }

    fn max(&self) -> Span {
        match self {
            Jitter::Uniform(uniform) => uniform.max,
            Jitter::Normal(normal) => normal.max.unwrap_or(normal.std.scaled(6.0)),
        }
    }
}

/// Draws of one normal number. With a longest delay of one deviation each is within it with a probability of 0.38.
const TRIES: u32 = 1_000;

impl Normal {
    /// The bound of the longest delay.
    fn share(&self, random: &mut Stream) -> f64 {
        let max = self.max.unwrap_or(self.std.scaled(6.0)).as_nanos() as f64;
        let share = self.std.as_nanos() as f64 / max.max(1.0);
        let mut draws = (0..TRIES).map(|_| 0.5 + share * random.gaussian());
        draws.find(|drawn| (0.0..=1.0).contains(drawn)).unwrap_or(0.5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delays(jitter: &Jitter) -> (f64, f64, f64) {
        let mut random = Stream::new(1, "x");
        let drawn: Vec<f64> = (0..100_000).map(|_| jitter.draw(&mut random) as f64 / 1e6).collect();
        let mean = drawn.iter().sum::<f64>() / 1e5;
        let square = drawn.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / 1e5;
        (mean, libm::sqrt(square), drawn.iter().fold(0.0, |most: f64, &x| most.max(x)))
    }

    #[test]
    fn delays_have_mean_and_deviation_and_stay_within_the_longest() {
        let ms = Span::from_millis;
        let normal = |std, max| Jitter::Normal(Normal { std: ms(std), max, ..Normal::default() });
        // The deviation of a normal law without its ends, from numerical integration: 0.9866 at three deviations either
        // way, and at half of one 0.2840.
        for (jitter, mean, deviation, most) in [
            (Jitter::Uniform(Uniform { max: ms(6), reorder: true }), 3.0, 1.7321, 6.0),
            (normal(2, None), 6.0, 1.9732, 12.0),
            (normal(2, Some(ms(2))), 1.0, 0.5680, 2.0),
        ] {
            jitter.check().unwrap();
            let found = delays(&jitter);
            assert!(
                (found.0 - mean).abs() < 0.03 && (found.1 - deviation).abs() < 0.02,
                "{jitter:?}: {found:?}"
            );
            assert!(found.2 <= most && found.2 > 0.97 * most, "{jitter:?}: {found:?}");
        }
    }

    #[test]
    fn impossible_values_do_nothing_harmful() {
        let none = Normal { max: Some(Span::ZERO), ..Normal::default() };
        let negative = Uniform { max: Span::from_millis(-1), ..Uniform::default() };
        for jitter in [Jitter::Normal(none), Jitter::Uniform(negative)] {
            assert!(jitter.check().is_err());
            assert_eq!(jitter.draw(&mut Stream::new(1, "x")), 0);
        }
    }
}
