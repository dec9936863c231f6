//! [`Results`]: what came of runs, of each case the numbers of each seed.

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

    /// That number of a case, run by run in the order of the seeds.
    pub fn values(&self, case: &Case, number: &str) -> Vec<f64> {
        let runs = self.runs.get(case).map(Vec::as_slice).unwrap_or_default();
        let values: Vec<f64> = runs.iter().filter_map(|numbers| numbers.get(number).copied()).collect();
        let asked = (values.len(), runs.len() - values.len());
        self.asked.borrow_mut().insert((case.clone(), number.to_owned()), asked);
        values
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
    pub fn median(&self, case: &Case, number: &str) -> Option<f64> {
        Some(self.mean(case, number)?.median)
    }

    /// Difference of the first case and the second, paired by seed.
    pub fn difference(&self, of: &Case, from: &Case, number: &str) -> Option<Mean> {
        let _ = [of, from].map(|case| self.values(case, number));
        difference(self.runs.get(of)?, self.runs.get(from)?, number)
    }

    /// The median of these differences.
    pub fn more(&self, of: &Case, from: &Case, number: &str) -> Option<f64> {
        Some(self.difference(of, from, number)?.median)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_those_of_one_seed() {
        let (a, b) = (Case::new("a"), Case::new("b"));
        let numbers = |values: [f64; 3]| values.map(|x| Numbers::from([("x", x)])).to_vec();
        let runs = [(a.clone(), numbers([1.0, 10.0, 100.0])), (b.clone(), numbers([0.0, 9.0, 99.0]))].into();
        let results = Results { runs, ..Results::none(3) };
        let difference = results.difference(&a, &b, "x").unwrap();
        assert_eq!((difference.mean, difference.half), (1.0, Some(0.0)), "whatever the seeds differ by");
        assert_eq!(results.difference(&a, &b, "y"), None);
    }
}
