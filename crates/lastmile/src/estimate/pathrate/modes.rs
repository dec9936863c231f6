//! Local modes of many rates, and the figure of merit by which pathrate picks one (the paper's section VI, with the constants of version 2.4.1).
//!
//! The modal bin is the window of the bin's width that holds most values. From there the mode's bell goes on to both sides, window by window, as long as none
//! holds a tenth more than the one before. Values of a bell make no further mode, and the next one is found among those that are left. A mode that
//! stands out is strong and narrow:
//!
//! > merit = kurtosis of the bell x share of all values in the modal bin

use crate::observe::stats;

/// Fewer values in a modal bin are noise [pathrate 2.4.1].
const NOISE: usize = 16;
/// A bell's next bin may hold this much more than the last, as a share [pathrate 2.4.1].
const TOLERANCE: f64 = 0.1;

/// A local mode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mode {
    /// The least value in its modal bin.
    pub(super) low: f64,
    /// The greatest one.
    pub(super) high: f64,
    /// Figure of merit.
    pub(super) merit: f64,
}

impl Mode {
    /// The middle of the modal bin.
    pub(super) fn centre(&self) -> f64 {
        (self.low + self.high) / 2.0
    }
}

/// The width of bins for rates like these, in bit/s: an eighth of the spread of their middle eight tenths, or of all where there are few; a quarter where the spread
/// is less than 1 Mbit/s. Values in rising order.
pub(super) fn bin(sorted: &[f64]) -> f64 {
    let out = if sorted.len() > FEW { sorted.len() / 10 } else { 0 };
    let spread = middle(sorted, out).map_or(0.0, |rest| rest[rest.len() - 1] - rest[0]);
    spread * if spread < 1e6 { 0.25 } else { 0.125 } // [pathrate 2.4.1]
}

/// More rates than these are looked at without their extremes [pathrate 2.4.1].
pub(super) const FEW: usize = 30;

/// Values in rising order without so many at each end, and at least half of them; `None` where there are none.
pub(super) fn middle(sorted: &[f64], out: usize) -> Option<&[f64]> {
    let out = out.min(sorted.len() / 4);
    sorted.get(out..sorted.len() - out).filter(|rest| !rest.is_empty())
}

/// The modes of values in rising order, the strongest first.
pub(super) fn modes(sorted: &[f64], width: f64) -> Vec<Mode> {
    // Windows of the width that end, or begin, with each value.
    let begin: Vec<usize> = sorted.iter().map(|v| sorted.partition_point(|w| *w < v - width)).collect();
    let end: Vec<usize> = sorted.iter().map(|v| sorted.partition_point(|w| *w <= v + width)).collect();
    let mut free = vec![true; sorted.len()];
    let mut found = Vec::new();
    while let Some((low, high)) = fullest(&free, &end) {
        let first = bell_below(&begin, low, high);
        let last = bell_above(&end, low, high);
        free[first..last].fill(false);
        if high - low >= NOISE
            && let Some(kurtosis) = kurtosis(&sorted[first..last])
        {
            let share = (high - low) as f64 / sorted.len() as f64;
            found.push(Mode { low: sorted[low], high: sorted[high - 1], merit: kurtosis * share });
        }
    }
    found
}

/// The window of free values that holds most, the lowest of several; `None` where none is free.
fn fullest(free: &[bool], end: &[usize]) -> Option<(usize, usize)> {
    let mut best = None;
    // The end of the free values around `low`.
    let mut free_to = 0;
    for low in (0..free.len()).filter(|low| free[*low]) {
        if low >= free_to {
            free_to = (low..free.len()).find(|at| !free[*at]).unwrap_or(free.len());
        }
        let high = end[low].min(free_to);
        if best.is_none_or(|(from, to)| high - low > to - from) {
            best = Some((low, high));
        }
    }
    best
}

/// The least value of a bell around the bin from `low` to before `high`.
fn bell_below(begin: &[usize], mut low: usize, mut high: usize) -> usize {
    // The next value is within a bin's width of this one.
    while low > 0 && begin[low] < low {
        let below = (low - 1..high - 1).map(|last| (begin[last], last + 1));
        let Some((from, to)) = below.rev().max_by_key(|(from, to)| to - from) else { break };
        if exceeds(to - from, high - low) {
            break;
        }
        (low, high) = (from, to);
    }
    low
}

/// The place behind the greatest value of that bell.
fn bell_above(end: &[usize], mut low: usize, mut high: usize) -> usize {
    while high < end.len() && end[high - 1] > high {
        let above = (low + 1..=high).map(|first| (first, end[first]));
        let Some((from, to)) = above.max_by_key(|(from, to)| to - from) else { break };
        if exceeds(to - from, high - low) {
            break;
        }
        (low, high) = (from, to);
    }
    high
}

fn exceeds(count: usize, before: usize) -> bool {
    count as f64 >= before as f64 * (1.0 + TOLERANCE)
}

/// Kurtosis: the fourth moment over the square of the second; `None` of fewer than three values. Values that are all one are a mode without width.
fn kurtosis(values: &[f64]) -> Option<f64> {
    let centre = stats::mean(values).filter(|_| values.len() >= 3)?;
    let squares: Vec<f64> = values.iter().map(|v| (v - centre) * (v - centre)).collect();
    let fourths: Vec<f64> = squares.iter().map(|square| square * square).collect();
    let variance = stats::mean(&squares)?;
    Some(if variance > 0.0 { stats::mean(&fourths)? / (variance * variance) } else { f64::INFINITY })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 40 rates of 1 to 40 Mbit/s: without four at each end the spread is 36 - 5 = 31, and an eighth of it 3.875. Two rates 0.4 Mbit/s apart: a quarter, 0.1.
    #[test]
    fn a_bin_is_an_eighth_of_the_spread() {
        let rates: Vec<f64> = (1..=40).map(|mbit| f64::from(mbit) * 1e6).collect();
        assert_eq!(bin(&rates), 3.875e6);
        assert_eq!((bin(&[9.0e6, 9.4e6]), bin(&[7.0]), bin(&[])), (0.1e6, 0.0, 0.0));
    }

    /// Deviations of -1, 0, 0, 0 and 1: the second moment is 2/5, and the fourth as well; 0.4 / 0.16.
    #[test]
    fn kurtosis_is_as_by_hand() {
        assert!((kurtosis(&[1.0, 2.0, 2.0, 2.0, 3.0]).unwrap() - 2.5).abs() < 1e-12);
        assert_eq!((kurtosis(&[4.0; 5]), kurtosis(&[4.0, 5.0])), (Some(f64::INFINITY), None));
    }

    /// Bins of 1. 20 values at 5.0 to 5.95, four below, from 4 on, are the bell of a mode. 40 at 10, with two at 9.5 and two at 10.5, are all in one bin from 9.5 to
    /// 10.5: deviations of a half in 4 of 44, so that the kurtosis is 44 / 4 = 11, and the merit 11 x 44 / 78. Ten at 20 are noise.
    #[test]
    fn modes_are_found_with_their_bells_and_merits() {
        let mut values: Vec<f64> = (0..20).map(|k| 5.0 + 0.05 * f64::from(k)).collect();
        values.extend([4.0, 4.2, 4.4, 4.6]);
        values.extend([10.0; 40].into_iter().chain([9.5, 9.5, 10.5, 10.5]).chain([20.0; 10]));
        values.sort_by(f64::total_cmp);
        let found = modes(&values, 1.0);
        assert_eq!(
            found.iter().map(|mode| (mode.low, mode.high)).collect::<Vec<_>>(),
            [(9.5, 10.5), (5.0, 5.95)]
        );
        assert!((found[0].merit - 11.0 * 44.0 / 78.0).abs() < 1e-9, "{found:?}");
        assert_eq!(found[0].centre(), 10.0);
        let bell = &values[..24];
        assert!((found[1].merit - kurtosis(bell).unwrap() * 20.0 / 78.0).abs() < 1e-9, "{found:?}");
    }

    /// Bins of 1 with 30, 4, 4 and 40 values have two modes, and of bins with 10, 30 and 40 the bell of one holds all.
    #[test]
    fn a_bell_ends_where_values_grow_denser_again() {
        let heap = |at: f64, n: usize| (0..n).map(move |k| at + 0.9 * k as f64 / n as f64);
        let values: Vec<f64> =
            heap(1.0, 30).chain(heap(2.0, 4)).chain(heap(3.0, 4)).chain(heap(4.0, 40)).collect();
        assert_eq!(modes(&values, 1.0).len(), 2);
        let values: Vec<f64> = heap(1.0, 10).chain(heap(2.0, 30)).chain(heap(3.0, 40)).collect();
        assert_eq!(modes(&values, 1.0).len(), 1);
        assert_eq!((modes(&[], 1.0).len(), modes(&[3.0; 50], 0.0).len()), (0, 1));
    }
}
