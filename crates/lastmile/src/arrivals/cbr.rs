//! Constant bit rate: equal gaps, the first packet at a random phase within one of them.

use crate::rng::Stream;

/// Equal gaps, exact over any number of packets.
#[derive(Debug)]
pub(super) struct Cbr {
    bits_per_second: u64,
    gap: u64,
    gap_fraction: u64,
    fraction: u64,
}

impl Cbr {
    pub(super) fn new(bits_per_second: u64, ip_size: u32) -> Cbr {
        let bits_per_second = bits_per_second.max(1);
        let scaled = u64::from(ip_size) * 8_000_000_000;
        let (gap, gap_fraction) = (scaled / bits_per_second, scaled % bits_per_second);
        Cbr { bits_per_second, gap, gap_fraction, fraction: 0 }
    }

    /// From the start to the first packet. Without a phase of its own for each run, all runs would meet the
    /// probes in the same way.
    pub(super) fn phase(&mut self, random: &mut Stream) -> u64 {
        (random.unit() * self.gap as f64) as u64
    }

    #[inline]
    pub(super) fn gap(&mut self) -> u64 {
        self.fraction += self.gap_fraction;
        if self.fraction >= self.bits_per_second {
            self.fraction -= self.bits_per_second;
            return self.gap + 1;
        }
        self.gap
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_exact_in_the_long_run() {
        let mut cbr = Cbr::new(7_000_000, 1500);
        assert_eq!((0..7000).map(|_| cbr.gap()).sum::<u64>(), 12_000_000_000);
        let phase = cbr.phase(&mut Stream::new(1, "x"));
        assert!(phase < cbr.gap);
    }
}
