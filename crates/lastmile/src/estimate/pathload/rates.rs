//! pathload's search over fleets: a bracket with a grey region inside.

/// Share of a fleet's streams that makes its verdict (0.6 since 1.1.0; the paper has 0.7).
pub(super) const SHARE: f64 = 0.6;
/// Steps before the bracket has both ends: doubled, or by this where a grey region has no upper end.
const DOUBLE: f64 = 2.0;
const GREY: f64 = 1.5;
/// Fleets at the largest rate that end the search.
const AT_MOST: u32 = 2;

/// Verdict on a fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fleet {
    Rising,
    Staying,
    Grey,
}

impl Fleet {
    /// Of so many streams of which so many rose and stayed.
    pub(super) fn of(rose: usize, stayed: usize, all: usize) -> Fleet {
        let enough = |some: usize| some as f64 >= SHARE * all as f64;
        match (enough(rose), enough(stayed)) {
            (true, _) => Fleet::Rising,
            (_, true) => Fleet::Staying,
            _ => Fleet::Grey,
        }
    }

    /// The verdict if `more` streams cannot change it, whatever their delays do.
    pub(super) fn settled(rose: usize, stayed: usize, all: usize, more: usize) -> Option<Fleet> {
        let least = Fleet::of(rose, stayed, all + more);
        let open = Fleet::of(rose + more, 0, all + more) != Fleet::Grey
            || Fleet::of(0, stayed + more, all + more) != Fleet::Grey;
        (least != Fleet::Grey || !open).then_some(least)
    }
}

/// The search, in bit/s.
#[derive(Clone, Debug)]
pub(super) struct Rates {
    low: f64,
    high: Option<f64>,
    grey: Option<(f64, f64)>,
    rate: f64,
    limits: [f64; 2],
    omega: f64,
    chi: f64,
    /// True until two fleets said opposite things.
    exponential: bool,
    last: Option<Fleet>,
    /// The next grey rate is the upper end's.
    upper: bool,
    at_most: u32,
    done: bool,
}

impl Rates {
    /// Begins at `adr`, or in the middle of `limits` if that is outside of them.
    pub(super) fn new(adr: f64, limits: [f64; 2], omega: f64, chi: f64) -> Rates {
        let inside = (limits[0]..=limits[1]).contains(&adr);
        Rates {
            low: 0.0,
            high: None,
            grey: None,
            rate: if inside { adr } else { (limits[0] + limits[1]) / 2.0 },
            limits,
            omega,
            chi,
            exponential: true,
            last: None,
            upper: true,
            at_most: 0,
            done: false,
        }
    }

    /// The next fleet's rate.
    pub(super) fn next(&self) -> f64 {
        self.rate
    }

    /// The largest rate at which delays did not rise.
    pub(super) fn low(&self) -> f64 {
        self.low
    }

    /// The largest rate, if the search ended there.
    pub(super) fn bound(&self) -> Option<f64> {
        (self.done && self.high.is_none()).then_some(self.low)
    }

    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// The result: the grey region, if it is that which the search ended at, or the bracket.
    pub(super) fn range(&self) -> (f64, f64) {
        let high = self.high.unwrap_or(self.limits[1]);
        match self.grey {
            Some(grey) if high - self.low > self.omega => grey,
            _ => (self.low, high),
        }
    }

    /// Takes in a fleet whose streams left at this rate.
    pub(super) fn take(&mut self, rate: f64, fleet: Fleet) {
        // Streams that left at another rate than was asked for say nothing new.
        if rate < self.low || self.high.is_some_and(|high| rate > high) {
            self.done = self.high.is_some();
            if self.done {
                return;
            }
        }
        if self.last.is_some_and(|last| last != fleet && fleet != Fleet::Grey && last != Fleet::Grey) {
            self.exponential = false;
        }
        match fleet {
            Fleet::Rising => {
                self.high = Some(rate);
                // Streams may leave far slower than they were to.
                self.low = self.low.min(rate);
                self.grey = self.grey.filter(|grey| grey.1 < rate);
            }
            Fleet::Staying => {
                self.low = self.low.max(rate);
                self.grey = self.grey.filter(|grey| grey.0 > rate);
            }
            Fleet::Grey => {
                let (low, high) = self.grey.unwrap_or((rate, rate));
                self.grey = Some((low.min(rate), high.max(rate)));
            }
        }
        self.last = Some(fleet);
        self.rate = self.after(fleet);
        if self.rate >= self.limits[1] {
            self.rate = self.limits[1];
            self.at_most += 1;
        }
        self.rate = self.rate.max(self.limits[0]);
        self.done |= self.has_converged() || self.at_most >= AT_MOST;
    }

    fn has_converged(&self) -> bool {
        let Some(high) = self.high else { return false };
        let near = self.grey.is_some_and(|grey| high - grey.1 <= self.chi && grey.0 - self.low <= self.chi);
        near || high - self.low <= self.omega
    }

    fn after(&mut self, fleet: Fleet) -> f64 {
        let Some(high) = self.high else {
            return match self.grey {
                Some(grey) => grey.1.max(self.low) * if fleet == Fleet::Grey { GREY } else { DOUBLE },
                None => self.rate * DOUBLE,
            };
        };
        let Some(grey) = self.grey else {
            let halves = self.exponential && self.low == 0.0;
            return if halves { self.rate / DOUBLE } else { (self.low + high) / 2.0 };
        };
        // The two ends of the grey region in turn, as long as either is far.
        let (above, below) = (high - grey.1 > self.chi, grey.0 - self.low > self.chi);
        self.upper = if above && below { !self.upper } else { above };
        if self.upper { (high + grey.1) / 2.0 } else { (self.low + grey.0) / 2.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_left_far_too_slow_turns_no_range_round() {
        let mut rates = Rates::new(10.0, [0.01, 1000.0], 0.2, 0.5);
        rates.take(10.0, Fleet::Staying);
        rates.take(4.0, Fleet::Rising);
        assert_eq!(rates.range(), (4.0, 4.0));
    }

    /// The rates that are tried and the result, where delays rise above one rate and stay below another.
    fn search(adr: f64, (stay, rise): (f64, f64)) -> (Vec<f64>, (f64, f64)) {
        let mut rates = Rates::new(adr, [0.01, 1000.0], 0.2, 0.5);
        let mut tried = Vec::new();
        while !rates.is_done() && tried.len() < 50 {
            let rate = rates.next();
            tried.push(rate);
            let fleet = match rate {
                rate if rate > rise => Fleet::Rising,
                rate if rate < stay => Fleet::Staying,
                _ => Fleet::Grey,
            };
            rates.take(rate, fleet);
        }
        (tried, rates.range())
    }

    #[test]
    fn without_a_grey_region_the_bracket_is_halved_to_omega() {
        let (tried, range) = search(8.0, (6.05, 6.05));
        assert_eq!(tried, [8.0, 4.0, 6.0, 7.0, 6.5, 6.25, 6.125]);
        assert_eq!(range, (6.0, 6.125));
        // From below by doubling.
        let (tried, range) = search(1.0, (6.05, 6.05));
        assert_eq!(tried[..5], [1.0, 2.0, 4.0, 8.0, 6.0]);
        assert_eq!(range, (6.0, 6.125));
    }

    #[test]
    fn a_grey_region_is_followed_to_both_its_ends_within_chi() {
        let (tried, (low, high)) = search(10.0, (4.0, 6.0));
        assert_eq!(tried[..3], [10.0, 5.0, 2.5], "{tried:?}");
        assert!((4.0..4.5).contains(&low) && high <= 6.0 && high > 5.5, "{low} {high} {tried:?}");
        // A grey beginning without an upper end.
        let (tried, _) = search(5.0, (4.0, 6.0));
        assert_eq!(tried[..2], [5.0, 7.5]);
    }

    #[test]
    fn fleets_need_six_in_ten_and_limits_end_the_search() {
        let of = |rose, stayed| Fleet::of(rose, stayed, 12);
        assert_eq!(
            [of(8, 4), of(7, 5), of(5, 7), of(3, 8), of(0, 0)],
            [Fleet::Rising, Fleet::Grey, Fleet::Grey, Fleet::Staying, Fleet::Grey]
        );
        // Eight of twelve are enough with four to come, seven are not; five and five of ten can have seven, and five of nine can have eight.
        let settled = |rose, stayed, more| Fleet::settled(rose, stayed, rose + stayed, more);
        assert_eq!(
            [settled(8, 0, 4), settled(7, 0, 5), settled(0, 8, 4), settled(5, 5, 2), settled(4, 5, 3)],
            [Some(Fleet::Rising), None, Some(Fleet::Staying), Some(Fleet::Grey), None]
        );
        let (tried, (low, _)) = search(400.0, (2e3, 2e3));
        assert_eq!((tried, low), (vec![400.0, 800.0, 1000.0], 1000.0));
    }
}
