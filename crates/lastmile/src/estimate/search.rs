//! Searches for a turning point: halving, steps, and averages over streams. Lines are in `line`.
//!
//! The quantity searched may be a rate, which congests the path beyond the turning point, or a gap, beyond which packets come as they went.

use std::collections::VecDeque;

use crate::observe::stats;

/// Binary search of the value from which on something holds, such as the rate that congests a path; doubling while it was never seen to hold.
///
/// ```
/// use lastmile::estimate::search::Bracket;
/// let mut rates = Bracket::new(1.0, None);
/// // Rates of 6 and more congest this path.
/// let tried: Vec<f64> = (0..5).map(|_| {
///     let rate = rates.next();
///     rates.take(rate, rate >= 6.0);
///     rate
/// }).collect();
/// assert_eq!(tried, [2.0, 4.0, 8.0, 6.0, 5.0]);
/// assert_eq!((rates.low(), rates.high(), rates.width()), (5.0, Some(6.0), 1.0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bracket {
    low: f64,
    high: Option<f64>,
}

impl Bracket {
    /// The turning point is above `low`, and below `high` if that is known.
    pub fn new(low: f64, high: Option<f64>) -> Bracket {
        Bracket { low, high }
    }

    /// Value to try next: the middle, or twice the lower end as long as there is no upper one.
    pub fn next(&self) -> f64 {
        self.high.map_or(2.0 * self.low, |high| (self.low + high) / 2.0)
    }

    /// Takes in that a value is beyond the turning point, or not yet. A value outside of the bracket, or one that is no number, changes nothing.
    pub fn take(&mut self, value: f64, beyond: bool) {
        if value >= self.low && self.high.is_none_or(|high| value <= high) {
            match beyond {
                true => self.high = Some(value),
                false => self.low = value,
            }
        }
    }

    /// The largest value that is known to be short of it.
    pub fn low(&self) -> f64 {
        self.low
    }

    /// The smallest that is known to be beyond it.
    pub fn high(&self) -> Option<f64> {
        self.high
    }

    /// Width between them; infinite without an upper end.
    pub fn width(&self) -> f64 {
        self.high.map_or(f64::INFINITY, |high| high - self.low)
    }
}

/// Values of a linear search: `n` from `low` to `high`, both included.
///
/// ```
/// assert_eq!(lastmile::estimate::search::levels(2.0, 8.0, 4).collect::<Vec<_>>(), [2.0, 4.0, 6.0, 8.0]);
/// ```
pub fn levels(low: f64, high: f64, n: usize) -> impl Iterator<Item = f64> {
    let step = (high - low) / n.saturating_sub(1).max(1) as f64;
    (0..n).map(move |k| low + k as f64 * step)
}

/// The mean of the latest estimates, one from each stream.
///
/// ```
/// use lastmile::estimate::search::Latest;
/// let mut latest = Latest::new(3);
/// [9.0, 4.0, 5.0, 6.0].into_iter().for_each(|value| latest.push(value));
/// assert_eq!((latest.mean(), latest.is_full()), (Some(5.0), true));
/// // P90 - P10 of 4, 5, 6.
/// assert!((latest.spread().unwrap() - 1.6).abs() < 1e-9);
/// ```
#[derive(Clone, Debug)]
pub struct Latest {
    values: VecDeque<f64>,
    most: usize,
}

impl Latest {
    /// Of `most` values, one at least.
    pub fn new(most: usize) -> Latest {
        Latest { values: VecDeque::new(), most: most.max(1) }
    }

    /// Takes in one more, and forgets the oldest of too many.
    pub fn push(&mut self, value: f64) {
        self.values.truncate(self.most - 1);
        self.values.push_front(value);
    }

    /// True once there are as many as are kept.
    pub fn is_full(&self) -> bool {
        self.values.len() == self.most
    }

    /// Their mean.
    pub fn mean(&self) -> Option<f64> {
        stats::mean(&self.values.iter().copied().collect::<Vec<_>>())
    }

    /// The width from their tenth to their ninetieth percentile.
    pub fn spread(&self) -> Option<f64> {
        let values: Vec<f64> = self.values.iter().copied().collect();
        Some(stats::quantile(&values, 0.9)? - stats::quantile(&values, 0.1)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bracket_never_widens() {
        let mut bracket = Bracket::new(2.0, Some(4.0));
        for (value, congested) in [(1.0, true), (5.0, false), (f64::NAN, true), (3.0, false), (2.5, true)] {
            bracket.take(value, congested);
        }
        assert_eq!((bracket.low(), bracket.high(), bracket.width()), (3.0, Some(4.0), 1.0));
        assert_eq!(Bracket::new(3.0, None).width(), f64::INFINITY);
    }

    #[test]
    fn few_levels_are_the_lower_end() {
        assert_eq!(levels(2.0, 8.0, 1).collect::<Vec<_>>(), [2.0]);
        assert_eq!(levels(2.0, 8.0, 0).count(), 0);
        assert_eq!(Latest::new(0).mean(), None);
    }
}
