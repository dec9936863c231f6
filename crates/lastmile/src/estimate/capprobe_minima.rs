//! CapProbe's minimum filter; [`capprobe`](super::capprobe) is the tool and says what the sums of delays mean.

use crate::observe::pairs::Pair;
use crate::observe::{skew, stats};
use crate::time::Span;

/// Two dispersions that differ by so many times what stamps are uncertain by are the same.
const ALIKE: i64 = 4;
/// And so are delays, and such as differ by this share of the dispersion: less than a slot of a cell's backoff.
const SAME: f64 = 0.005;

/// The minima over the samples of one size (nanoseconds, relative to the first sample's delay).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Minima {
    first: i64,
    second: i64,
    pub(super) sum: i64,
    /// Delay to which these are relative.
    pub(super) base: i64,
    /// Dispersion of the sample with the smallest sum, or of all that tie with it.
    pub(super) dispersion: f64,
    /// Samples that tie with the smallest sum, it included.
    pub(super) tied: usize,
    /// Of these such as have the dispersion within the stamps' noise.
    pub(super) alike: usize,
    /// First packets that have the least delay of these within [`SAME`], and second ones: an empty path is met again.
    pub(super) empty: [usize; 2],
    /// Samples since one of the minima fell.
    pub(super) unchanged: usize,
}

impl Minima {
    /// Of samples in the order of sending; `None` where there are none.
    pub(super) fn of(samples: &[Pair], noise: Span, tolerance: f64, faithful: bool) -> Option<Minima> {
        let (since, base) = (samples.first()?.at, samples.first()?.first.relative_nanos());
        let points: Vec<(i64, i64)> = samples.iter().map(|p| (p.at, p.first.relative_nanos())).collect();
        let slope = skew::skew(&points).unwrap_or(0.0);
        let level = |at, delay: i64| skew::corrected(at, delay.saturating_sub(base), slope, since);
        // A fall within the stamps' noise is none.
        let step = if faithful { 0 } else { noise.as_nanos() };
        let mut minima =
            Minima { first: i64::MAX, second: i64::MAX, sum: i64::MAX, base, ..Minima::default() };
        let (mut sums, mut delays) = (Vec::with_capacity(samples.len()), Vec::with_capacity(samples.len()));
        for pair in samples {
            let first = level(pair.at, pair.first.relative_nanos());
            let second = level(pair.at, pair.second.relative_nanos());
            let sum = first.saturating_add(second);
            let falls = |new: i64, old: i64| new < old.saturating_sub(step);
            let fell = falls(first, minima.first) || falls(second, minima.second) || falls(sum, minima.sum);
            minima.unchanged = if fell { 0 } else { minima.unchanged + 1 };
            if sum < minima.sum {
                minima.dispersion = pair.received.as_nanos() as f64;
            }
            minima.first = minima.first.min(first);
            minima.second = minima.second.min(second);
            minima.sum = minima.sum.min(sum);
            sums.push((sum, pair.received.as_nanos() as f64));
            delays.push([first, second]);
        }
        if !faithful {
            // Sums that tie within what is tolerated are equally good samples; their median is less noisy than one.
            let within = (tolerance * minima.dispersion).max(noise.as_nanos() as f64);
            let tied: Vec<f64> = sums
                .iter()
                .filter(|(sum, _)| sum.saturating_sub(minima.sum) as f64 <= within)
                .map(|s| s.1)
                .collect();
            minima.dispersion = stats::median(&tied)?;
            minima.tied = tied.len();
            let noisy = (noise * ALIKE).as_nanos() as f64;
            let within = (SAME * minima.least()).max(noisy);
            let least = [minima.first, minima.second];
            let empty =
                |k: usize| delays.iter().filter(|d| (d[k].saturating_sub(least[k]) as f64) <= within).count();
            minima.empty = [0, 1].map(empty);
            minima.alike = tied.iter().filter(|d| (*d - minima.dispersion).abs() <= noisy).count();
        }
        Some(minima)
    }

    /// Dispersion of a pair that met no traffic at all, in nanoseconds, by the least delays of first and of second packets.
    pub(super) fn least(&self) -> f64 {
        self.second.saturating_sub(self.first) as f64
    }

    /// Sum of delays of the best sample less that of a pair that met no traffic at all, in nanoseconds.
    pub(super) fn excess(&self) -> f64 {
        self.sum.saturating_sub(self.first.saturating_add(self.second)) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::pairs::PairSet;
    use crate::observe::testing::record;
    use crate::report::Pattern;

    /// Pairs from (at, first delay, second delay) in microseconds, both delays from the first departure.
    fn samples(of: &[(u64, u64, u64)]) -> Vec<Pair> {
        let twice = |f: fn(&(u64, u64, u64)) -> [u64; 2]| of.iter().flat_map(f).collect::<Vec<_>>();
        let (sent, came) = (twice(|p| [p.0, p.0]), twice(|p| [p.0 + p.1, p.0 + p.2]));
        let came: Vec<Option<u64>> = came.into_iter().map(Some).collect();
        PairSet::of(&record(Pattern::Pairs, &sent, &sent, &came)).usable
    }

    /// By hand: 10 Mbit/s, 1488 B: 1190 us. The first pair's second packet met 1200 us of others (expansion), the
    /// second pair's first packet did (compression), the third met nothing.
    #[test]
    fn the_pair_that_met_nothing_has_the_smallest_sum() {
        let all = samples(&[(0, 5_000, 7_390), (10_000, 6_200, 6_800), (20_000, 5_000, 6_190)]);
        let noise = Span::from_nanos(1);
        let minima = Minima::of(&all, noise, 0.02, true).unwrap();
        assert_eq!((minima.dispersion, minima.excess(), minima.unchanged), (1_190_000.0, 0.0, 0));
        // Without it the minima come from different pairs, and do not add up.
        let minima = Minima::of(&all[..2], noise, 0.02, true).unwrap();
        assert_eq!(minima.excess(), 12_390e3_f64.min(13_000e3) - (5_000e3 + 6_800e3));
        assert!(Minima::of(&[], noise, 0.02, true).is_none());
    }

    /// The offset of the clocks does not matter to the difference, and would to its share of the sum.
    #[test]
    fn the_offset_cancels() {
        let near = samples(&[(0, 5_000, 7_390), (10_000, 6_200, 6_800)]);
        let far = samples(&[(0, 3_600_005_000, 3_600_007_390), (10_000, 3_600_006_200, 3_600_006_800)]);
        let excess = |of: &[Pair]| Minima::of(of, Span::from_nanos(1), 0.02, true).unwrap().excess();
        assert_eq!(excess(&near), excess(&far));
    }
}
