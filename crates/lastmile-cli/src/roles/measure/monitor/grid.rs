//! Starting times of rounds, and their budget in bytes.

use std::collections::VecDeque;
use std::time::Duration;

use lastmile::units::Bytes;

const HOUR: Duration = Duration::from_secs(3600);

/// Rounds begin at multiples of an interval after the first, however long each takes.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    every: Duration,
    next: u32,
}

impl Grid {
    pub(super) fn new(every: Duration) -> Grid {
        Grid { every, next: 0 }
    }

    /// When the next round begins, and how many beginnings have passed while another round was measured. Times count from
    /// the first round's beginning.
    pub(super) fn next(&mut self, now: Duration) -> (Duration, u32) {
        // The first begins at once.
        let passed = if self.next == 0 { 0 } else { now.as_nanos().div_ceil(self.every.as_nanos()) };
        let first = self.next.max(u32::try_from(passed).unwrap_or(u32::MAX));
        let missed = first - self.next;
        self.next = first.saturating_add(1);
        (self.every.saturating_mul(first), missed)
    }
}

/// A bound on the bytes of any 3,600 s.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    limit: Bytes,
    spent: VecDeque<(Duration, Bytes)>,
}

/// Why a round does not fit into the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OverBudget {
    pub(super) limit: Bytes,
    pub(super) left: Bytes,
    pub(super) wanted: Bytes,
}

impl Budget {
    pub(super) fn new(limit: Bytes) -> Budget {
        Budget { limit, spent: VecDeque::new() }
    }

    /// Most bytes of a round that begins at `now`: all that is left, if the dearest round of the last hour fits into it.
    pub(super) fn allows(&mut self, now: Duration) -> Result<Bytes, OverBudget> {
        while self.spent.front().is_some_and(|(ended, _)| *ended + HOUR <= now) {
            self.spent.pop_front();
        }
        let spent = self.spent.iter().map(|(_, bytes)| bytes.0).sum();
        let left = Bytes(self.limit.0.saturating_sub(spent));
        let wanted = self.spent.iter().map(|(_, bytes)| *bytes).max().unwrap_or(Bytes(1));
        if left < wanted { Err(OverBudget { limit: self.limit, left, wanted }) } else { Ok(left) }
    }

    pub(super) fn spend(&mut self, ended: Duration, bytes: Bytes) {
        self.spent.push_back((ended, bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    #[test]
    fn rounds_keep_to_the_grid_and_count_those_that_passed() {
        let mut grid = Grid::new(seconds(60.0));
        assert_eq!(grid.next(seconds(0.001)), (seconds(0.0), 0));
        // However late a round began, the next is on the grid.
        assert_eq!(grid.next(seconds(0.9)), (seconds(60.0), 0));
        assert_eq!(grid.next(seconds(61.2)), (seconds(120.0), 0));
        // A round of 130 s is in the way of those at 180 and 240 s.
        assert_eq!(grid.next(seconds(250.0)), (seconds(300.0), 2));
        assert_eq!(grid.next(seconds(360.0)), (seconds(360.0), 0));
    }

    #[test]
    fn no_hour_has_more_than_the_budget() {
        let mut budget = Budget::new(Bytes(1000));
        assert_eq!(budget.allows(Duration::ZERO), Ok(Bytes(1000)));
        budget.spend(seconds(1.0), Bytes(400));
        assert_eq!(budget.allows(seconds(60.0)), Ok(Bytes(600)));
        budget.spend(seconds(61.0), Bytes(300));
        // 300 B are left, and a round took 400 B.
        let over = OverBudget { limit: Bytes(1000), left: Bytes(300), wanted: Bytes(400) };
        assert_eq!(budget.allows(seconds(120.0)), Err(over));
        assert_eq!(budget.allows(seconds(3600.9)), Err(over));
        // The first round is an hour ago.
        assert_eq!(budget.allows(seconds(3601.0)), Ok(Bytes(700)));
    }
}
