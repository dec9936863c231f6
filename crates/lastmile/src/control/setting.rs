//! User settings of any controller: limits and start.

use crate::options::OptionError;
use crate::units::{Bytes, Layer, Rate};

/// Limits, start and packet size. Rates are those of IP packets.
///
/// ```
/// use lastmile::{control::Setting, units::Rate};
/// let wrong = Setting { min: Rate::ip(2_000_000), max: Rate::ip(1_000_000), ..Setting::default() };
/// assert_eq!(wrong.check().unwrap_err().to_string(), "min must be at most max, which is 1 Mbit/s, not 2 Mbit/s");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// Never less; above zero.
    pub min: Rate,
    /// Start rate; `None` for the scheme's own.
    pub start: Option<Rate>,
    /// Never more.
    pub max: Rate,
    /// The size of full packets.
    pub packet_size: Bytes,
}

impl Default for Setting {
    /// 100 bit/s, which is a packet in two minutes, to 10 Gbit/s, by packets of 1200 bytes.
    fn default() -> Setting {
        Setting { min: Rate::ip(100), start: None, max: Rate::ip(10_000_000_000), packet_size: Bytes(1200) }
    }
}

impl Setting {
    /// Says what is wrong with it.
    pub fn check(&self) -> Result<(), OptionError> {
        let rates = [("min", self.min), ("start", self.start.unwrap_or(self.min)), ("max", self.max)];
        if let Some((name, _)) = rates.iter().find(|(_, rate)| rate.layer() != Layer::Ip) {
            return Err(OptionError::new(*name, "must be a rate of IP packets"));
        }
        if self.min.bits_per_second() == 0 {
            return Err(OptionError::new("min", "must be above 0 bit/s"));
        }
        if self.min > self.max {
            let reason = format!("must be at most `max`, which is {}, not {}", self.max, self.min);
            return Err(OptionError::new("min", reason));
        }
        if let Some(start) = self.start.filter(|start| *start < self.min || *start > self.max) {
            let reason = format!("must be {} to {}, as `min` and `max` say, not {start}", self.min, self.max);
            return Err(OptionError::new("start", reason));
        }
        if !(40..=65_535).contains(&self.packet_size.0) {
            let reason = format!("must be 40 B to 65535 B, not {}", self.packet_size);
            return Err(OptionError::new("packet_size", reason));
        }
        Ok(())
    }

    /// The rate of so many bytes a second, within the limits; NaN becomes the least.
    pub(crate) fn within(&self, bytes_per_second: f64) -> Rate {
        let bits = bytes_per_second * 8.0;
        let (min, max) = (self.min.bits_per_second(), self.max.bits_per_second());
        if bits.is_nan() { self.min } else { Rate::ip(((bits + 0.5) as u64).clamp(min, max)) }
    }

    /// The same, and no more than the receiver asks for, unless that is less than the least.
    pub(crate) fn below(&self, cap: Option<Rate>, bytes_per_second: f64) -> Rate {
        let rate = self.within(bytes_per_second);
        cap.filter(|cap| *cap < rate).map_or(rate, |cap| if cap > self.min { cap } else { self.min })
    }
}
