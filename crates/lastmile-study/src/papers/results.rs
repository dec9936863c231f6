//! [`Results`]: the numbers of runs, of each case for each seed.

use std::cell::RefCell;
use std::collections::BTreeMap;

use lastmile_report::Mean;

use super::case::{Case, Lines, Numbers};
use crate::runs::difference;

/// Numbers of runs: of each case, by seed.
pub struct Results {
    pub(super) runs: BTreeMap<Case, Vec<Numbers>>,
    /// Lines of the first run.
    pub(super) lines: BTreeMap<Case, Lines>,
    /// Seeds 1 to this.
    pub(crate) seeds: u64,
    /// The numbers that were asked for since a claim began to be decided: in how many runs of a case there is one, and in how
    /// many not.
    pub(super) asked: RefCell<BTreeMap<(Case, String), (usize, usize)>>,
}

impl Results {
    pub(super) fn none(seeds: u64) -> Results {
        Results { runs: BTreeMap::new(), lines: BTreeMap::new(), seeds, asked: RefCell::default() }
    }

    /// Values of a number of a case, run by run in the order of the seeds.
    pub fn values(&self, case: &Case, number: &str) -> Vec<f64> {
        let runs = self.runs.get(case).map(Vec::as_slice).unwrap_or_default();
        let values: Vec<f64> = runs.iter().filter_map(|numbers| numbers.get(number).copied()).collect();
        let asked = (values.len(), runs.len() - values.len());
        self.asked.borrow_mut().insert((case.clone(), number.to_owned()), asked);
        values
    }

    /// Two numbers of a case, of the runs that have both.
    pub fn both(&self, case: &Case, [one, other]: [&str; 2]) -> Vec<(f64, f64)> {
        let runs = self.runs.get(case).map(Vec::as_slice).unwrap_or_default();
        runs.iter().filter_map(|run| Some((*run.get(one)?, *run.get(other)?))).collect()
    }

    /// A line of its first run; nothing of one that was not drawn.
    pub fn line(&self, case: &Case, name: &str) -> Vec<(f64, Mean)> {
        let points = self.lines.get(case).and_then(|lines| lines.get(name)).into_iter().flatten();
        points.map(|&(x, y)| (x, Mean::exactly(y))).collect()
    }

    /// Its mean over the runs.
    pub fn mean(&self, case: &Case, number: &str) -> Option<Mean> {
        Mean::of(&self.values(case, number))
    }

    /// Its median over the runs.
    pub fn median(&self, case: &Case, number: &str) -> Option<Middle> {
        Middle::of(&self.values(case, number))
    }

    /// The median of what becomes of that number of some cases, run by run: of the runs in which all of them have it.
    pub fn paired<const N: usize>(
        &self,
        cases: [&Case; N],
        number: &str,
        of: impl Fn([f64; N]) -> f64,
    ) -> Option<Middle> {
        let mut runs = Vec::new();
        for case in cases {
            self.values(case, number);
            runs.push(self.runs.get(case)?);
        }
        let seeds = runs.iter().map(|runs| runs.len()).min().unwrap_or(0);
        let at = |seed: usize| -> Option<f64> {
            let mut values = [0.0; N];
            for (value, runs) in values.iter_mut().zip(&runs) {
                *value = *runs[seed].get(number)?;
            }
            Some(of(values))
        };
        Middle::of(&(0..seeds).filter_map(at).collect::<Vec<_>>())
    }

    /// Difference of the first case and the second, paired by seed.
    pub fn difference(&self, of: &Case, from: &Case, number: &str) -> Option<Mean> {
        let _ = [of, from].map(|case| self.values(case, number));
        difference(self.runs.get(of)?, self.runs.get(from)?, number)
    }

    /// The median of these differences.
    pub fn more(&self, of: &Case, from: &Case, number: &str) -> Option<Middle> {
        self.paired([of, from], number, |[of, from]| of - from)
    }

    /// The median of what the first case has in percent of what the second has, paired by seed.
    pub fn share(&self, of: &Case, from: &Case, number: &str) -> Option<Middle> {
        self.paired([of, from], number, |[of, from]| 100.0 * of / from)
    }
}

/// A number that decides: the median over runs, and its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Middle {
    /// The median.
    pub median: f64,
    /// Its interval, both ends counted: of the sorted values the k-th from either side, whatever their distribution. Of less than six
    /// runs it is all that they have, and less sure.
    pub interval: (f64, f64),
    /// Runs behind it.
    pub runs: usize,
}

impl Middle {
    /// The median of some values.
    pub fn of(values: &[f64]) -> Option<Middle> {
        let median = Mean::of(values)?.median;
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = beyond(values.len());
        Some(Middle { median, interval: (sorted[at], sorted[sorted.len() - 1 - at]), runs: sorted.len() })
    }
}

impl Middle {
    /// How much more it is than another that is not paired with it. The interval has all that both intervals leave.
    pub fn minus(self, other: Middle) -> Middle {
        let ((low, high), (least, most)) = (self.interval, other.interval);
        Middle {
            median: self.median - other.median,
            interval: (low - most, high - least),
            runs: fewer(self.runs, other.runs),
        }
    }
}

/// The fewer of two numbers of runs; none stands behind a number in which chance has no part.
fn fewer(one: usize, other: usize) -> usize {
    [one, other].into_iter().filter(|runs| *runs > 0).min().unwrap_or(0)
}

/// A number in which chance has no part.
impl From<f64> for Middle {
    fn from(value: f64) -> Middle {
        Middle { median: value, interval: (value, value), runs: 0 }
    }
}

/// The mean, where a paper says that its numbers are means.
impl From<Mean> for Middle {
    fn from(Mean { mean, half, n, .. }: Mean) -> Middle {
        let half = half.unwrap_or(0.0);
        Middle { median: mean, interval: (mean - half, mean + half), runs: n }
    }
}

/// Number of `n` values that are beyond the median's 95 % interval on either side: the binomial distribution's sum up to so many is
/// at most 2.5 %.
fn beyond(n: usize) -> usize {
    let (mut term, mut sum, mut at) = (0.5_f64.powi(n as i32), 0.0, 0);
    while at < n / 2 && sum + term <= 0.025 {
        sum += term;
        at += 1;
        term *= (n + 1 - at) as f64 / at as f64;
    }
    at.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of ten values the second from either side (97.9 %), of 100 the 40th (96.5 %), of 15 the fourth (96.5 %): the tables of the sign test.
    #[test]
    fn medians_have_the_intervals_of_the_sign_test() {
        assert_eq!([1, 5, 6, 9, 10, 15, 100].map(beyond), [0, 0, 0, 1, 1, 3, 39]);
        let values: Vec<f64> = (1..=10).rev().map(f64::from).collect();
        assert_eq!(Middle::of(&values), Some(Middle { median: 5.5, interval: (2.0, 9.0), runs: 10 }));
        assert_eq!(Middle::of(&[]), None);
    }

    #[test]
    fn differences_are_those_of_one_seed() {
        let (a, b) = (Case::new("a"), Case::new("b"));
        let numbers = |values: [f64; 3]| values.map(|x| Numbers::from([("x".into(), x)])).to_vec();
        let runs = [(a.clone(), numbers([1.0, 10.0, 100.0])), (b.clone(), numbers([0.0, 9.0, 99.0]))].into();
        let results = Results { runs, ..Results::none(3) };
        let difference = results.difference(&a, &b, "x").unwrap();
        assert_eq!((difference.mean, difference.half), (1.0, Some(0.0)), "whatever the seeds differ by");
        assert_eq!(results.difference(&a, &b, "y"), None);
    }
}
