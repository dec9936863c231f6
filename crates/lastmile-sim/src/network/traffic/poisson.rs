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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_the_mean_and_the_variance_of_poissons_law() {
        // 4 Mbit/s of 1500 B: 333.3 a second, 12.3 in 37 ms with a deviation of 3.5.
        let (mut poisson, mut random) = (Poisson::new(4_000_000, 1500), Stream::new(5, "x"));
        let (mut at, mut counts) = (0_u64, vec![0_u32; 20_000]);
        loop {
            at += poisson.gap(&mut random);
            match counts.get_mut((at / 37_000_000) as usize) {
                Some(count) => *count += 1,
                None => break,
            }
        }
        let n = counts.len() as f64;
        let mean = counts.iter().map(|&c| f64::from(c)).sum::<f64>() / n;
        let variance = counts.iter().map(|&c| (f64::from(c) - mean) * (f64::from(c) - mean)).sum::<f64>() / n;
        assert!((mean - 12.333).abs() < 0.1 && (variance / mean - 1.0).abs() < 0.05, "{mean} {variance}");
    }
}
