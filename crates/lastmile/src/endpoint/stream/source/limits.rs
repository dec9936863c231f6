//! The least and the most that a source makes.

use crate::options::OptionError;
use crate::units::Rate;

/// Rates of IP packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) min: Rate,
    pub(super) max: Rate,
}

impl Limits {
    /// More than any network carries.
    pub(super) const NONE: Limits = Limits { min: Rate::ip(0), max: Rate::ip(1_000_000_000_000) };

    /// The limits that were asked for.
    pub(super) fn new(min: Option<Rate>, max: Option<Rate>) -> Result<Limits, OptionError> {
        let limits = Limits { min: min.unwrap_or(Limits::NONE.min), max: max.unwrap_or(Limits::NONE.max) };
        if limits.min > limits.max {
            let reason = format!("must be at most max, which is {}, not {}", limits.max, limits.min);
            return Err(OptionError::new("min", reason));
        }
        Ok(limits)
    }

    /// The rate within the limits that is nearest to a target.
    pub(super) fn of(&self, target: Rate) -> Rate {
        Rate::ip(target.bits_per_second().clamp(self.min.bits_per_second(), self.max.bits_per_second()))
    }
}
