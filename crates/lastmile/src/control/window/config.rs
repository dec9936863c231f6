//! [`LawConfig`]: a law by its name and numbers.

use core::fmt;
use core::str::FromStr;

use crate::time::Span;

use super::{
    Binomial, BinomialConfig, Cubic, CubicConfig, Reno, RenoConfig, Vegas, VegasConfig, Westwood,
    WestwoodConfig, WindowLaw,
};

/// A window's law, with its numbers. Parses from the law's name, with the defaults.
///
/// ```
/// use lastmile::control::window::{BinomialConfig, LawConfig};
/// assert_eq!("iiad".parse(), Ok(LawConfig::Binomial(BinomialConfig::IIAD)));
/// assert_eq!("westwood+".parse::<LawConfig>().unwrap().to_string(), "westwood+");
/// assert!("renault".parse::<LawConfig>().unwrap_err().to_string().contains("reno"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize), serde(rename_all = "lowercase"))]
pub enum LawConfig {
    /// Additive increase, multiplicative decrease.
    Reno(RenoConfig),
    /// Delay.
    Vegas(VegasConfig),
    /// Decrease to the measured bandwidth.
    #[cfg_attr(feature = "serde", serde(rename = "westwood+"))]
    Westwood(WestwoodConfig),
    /// RFC 9438.
    Cubic(CubicConfig),
    /// The binomial family.
    Binomial(BinomialConfig),
}

/// The names that [`LawConfig`] parses.
pub(super) const NAMES: [&str; 7] = ["reno", "vegas", "westwood+", "cubic", "iiad", "sqrt", "binomial"];

impl LawConfig {
    /// The names of all laws.
    pub fn names() -> &'static [&'static str] {
        &NAMES
    }

    /// Says which number of a law is impossible.
    ///
    /// ```
    /// # use lastmile::control::window::{LawConfig, RenoConfig};
    /// assert_eq!(LawConfig::default().check(), Ok(()));
    /// assert!(LawConfig::Reno(RenoConfig { increase: 1.0, decrease: 1.5 }).check().is_err());
    /// ```
    pub fn check(&self) -> Result<(), &'static str> {
        let positive = |x: f64| x > 0.0 && x.is_finite();
        let not_negative = |x: f64| x >= 0.0 && x.is_finite();
        let part = |x: f64| x > 0.0 && x < 1.0;
        let (holds, reason) = match *self {
            LawConfig::Reno(c) => (
                positive(c.increase) && part(c.decrease),
                "reno's increase is above 0 and its decrease between 0 and 1",
            ),
            LawConfig::Vegas(c) => (
                not_negative(c.alpha)
                    && positive(c.beta)
                    && c.alpha <= c.beta
                    && positive(c.gamma)
                    && part(c.decrease),
                "vegas' alpha is not above its beta, gamma is above 0 and the decrease between 0 and 1",
            ),
            LawConfig::Westwood(c) => (
                c.min_interval > Span::ZERO && c.memory >= 0.0 && c.memory < 1.0,
                "westwood+'s interval is above 0 and its memory at least 0 and below 1",
            ),
            LawConfig::Cubic(c) => {
                (positive(c.c) && part(c.beta), "cubic's c is above 0 and its beta between 0 and 1")
            }
            LawConfig::Binomial(c) => (
                positive(c.a) && positive(c.b) && not_negative(c.k) && not_negative(c.l) && c.l <= 1.0,
                "a binomial law's a and b are above 0, k is not negative and l between 0 and 1",
            ),
        };
        if holds { Ok(()) } else { Err(reason) }
    }

    /// Its row of ECNProbe's Table I: the congestion signal, and the iteration towards the turning point.
    ///
    /// ```
    /// use lastmile::control::window::LawConfig;
    /// assert_eq!(LawConfig::default().row(), ["loss", "AIMD iteration"]);
    /// ```
    pub fn row(&self) -> [&'static str; 2] {
        match self {
            LawConfig::Reno(_) => ["loss", "AIMD iteration"],
            LawConfig::Vegas(_) => ["delay", "AIAD iteration"],
            LawConfig::Westwood(_) => ["loss", "additive increase, decrease to the measured throughput"],
            LawConfig::Cubic(_) => ["loss", "cubic increase, multiplicative decrease"],
            LawConfig::Binomial(b) if (b.k, b.l) == (1.0, 0.0) => ["loss", "IIAD iteration"],
            LawConfig::Binomial(_) => ["loss", "binomial increase and decrease"],
        }
    }

    /// The law itself.
    pub fn law(&self) -> Box<dyn WindowLaw> {
        match *self {
            LawConfig::Reno(config) => Box::new(Reno::new(config)),
            LawConfig::Vegas(config) => Box::new(Vegas::new(config)),
            LawConfig::Westwood(config) => Box::new(Westwood::new(config)),
            LawConfig::Cubic(config) => Box::new(Cubic::new(config)),
            LawConfig::Binomial(config) => Box::new(Binomial::new(config)),
        }
    }
}

impl Default for LawConfig {
    fn default() -> LawConfig {
        LawConfig::Reno(RenoConfig::default())
    }
}

impl fmt::Display for LawConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            LawConfig::Reno(_) => "reno",
            LawConfig::Vegas(_) => "vegas",
            LawConfig::Westwood(_) => "westwood+",
            LawConfig::Cubic(_) => "cubic",
            LawConfig::Binomial(b) if (b.k, b.l) == (1.0, 0.0) => "iiad",
            LawConfig::Binomial(b) if (b.k, b.l) == (0.5, 0.5) => "sqrt",
            LawConfig::Binomial(_) => "binomial",
        })
    }
}

/// A law's name that nothing here bears.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is no window law; there are {}", NAMES.join(", "))]
pub struct UnknownLaw {
    /// The name.
    pub name: String,
}

impl FromStr for LawConfig {
    type Err = UnknownLaw;

    fn from_str(name: &str) -> Result<LawConfig, UnknownLaw> {
        Ok(match name {
            "reno" => LawConfig::Reno(RenoConfig::default()),
            "vegas" => LawConfig::Vegas(VegasConfig::default()),
            "westwood+" | "westwood" => LawConfig::Westwood(WestwoodConfig::default()),
            "cubic" => LawConfig::Cubic(CubicConfig::default()),
            "iiad" => LawConfig::Binomial(BinomialConfig::IIAD),
            "sqrt" | "binomial" => LawConfig::Binomial(BinomialConfig::SQRT),
            _ => return Err(UnknownLaw { name: name.to_owned() }),
        })
    }
}
