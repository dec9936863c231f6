//! Poisson arrivals: exponential gaps.

use crate::rng::Stream;

/// Exponential gaps with a mean.
#[derive(Debug)]
pub(super) struct Poisson {
    mean_gap: f64,
}

impl Poisson {
    pub(super) fn new(bits_per_second: u64, ip_size: u32) -> Poisson {
        Poisson { mean_gap: f64::from(ip_size) * 8e9 / bits_per_second.max(1) as f64 }
    }

    /// Rounded to the nanosecond, which moves the mean by less than that of a gap of microseconds can be told.
    #[inline]
    pub(super) fn gap(&mut self, random: &mut Stream) -> u64 {
        libm::round(random.exponential(self.mean_gap)) as u64
    }
}
