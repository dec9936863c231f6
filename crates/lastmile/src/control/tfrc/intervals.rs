//! Loss intervals and their weighted average, with history discounting (RFC 5348, sections 5.4 and 5.5).

/// n: the number of intervals that count.
pub(super) const N: usize = 8;

/// w_0 to w_7 [RFC 5348, 5.4].
const WEIGHTS: [f64; N] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

/// Closed loss intervals: between loss events that are over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::control) struct LossIntervals {
    /// I_1 to I_n in packets, newest first.
    sizes: [f64; N],
    /// DF_1 to DF_n.
    factors: [f64; N],
    known: usize,
    /// THRESHOLD: below this no interval is discounted at once; 1 for no discounting.
    threshold: f64,
}

impl LossIntervals {
    pub(in crate::control) fn new(threshold: f64) -> LossIntervals {
        LossIntervals { sizes: [0.0; N], factors: [1.0; N], known: 0, threshold }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.known == 0
    }

    /// I_1 to I_k with their weights w_0 to w_(k-1) and discount factors.
    fn closed(&self) -> impl Iterator<Item = (f64, f64)> {
        (0..self.known).map(|i| (self.sizes[i], WEIGHTS[i] * self.factors[i]))
    }

    /// The weighted average of the closed intervals: `I_tot1 / W_tot1`.
    fn mean(&self) -> f64 {
        let (total, weights) =
            self.closed().fold((0.0, 0.0), |(t, w), (size, weight)| (t + size * weight, w + weight));
        if weights > 0.0 { total / weights } else { 0.0 }
    }

    /// DF while the open interval has `open` packets [RFC 5348, 5.5].
    fn discount(&self, open: f64) -> f64 {
        let mean = self.mean();
        if open > 2.0 * mean { (2.0 * mean / open).max(self.threshold) } else { 1.0 }
    }

    /// A loss event ended an interval of so many packets, which becomes I_1.
    pub(in crate::control) fn close(&mut self, size: f64) {
        let discount = if self.is_empty() { 1.0 } else { self.discount(size) };
        self.factors.iter_mut().for_each(|factor| *factor *= discount);
        self.factors.rotate_right(1);
        self.sizes.rotate_right(1);
        (self.sizes[0], self.factors[0]) = (size.max(1.0), 1.0);
        self.known = (self.known + 1).min(N);
    }

    /// The loss event rate with an open interval I_0 of `open` packets; nothing before the first loss event.
    pub(in crate::control) fn loss_event_rate(&self, open: f64) -> Option<f64> {
        if self.is_empty() {
            return None;
        }
        let discount = self.discount(open);
        let (mut total, mut weights) = (open * WEIGHTS[0], WEIGHTS[0]);
        // I_1 to I_(k-1) move up by one weight to make room for I_0.
        for (i, weight) in WEIGHTS[1..self.known].iter().enumerate() {
            let weight = weight * self.factors[i] * discount;
            (total, weights) = (total + self.sizes[i] * weight, weights + weight);
        }
        Some(1.0 / (total / weights).max(self.mean()).max(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(threshold: f64, newest_first: &[f64]) -> LossIntervals {
        let mut intervals = LossIntervals::new(threshold);
        newest_first.iter().rev().for_each(|size| intervals.close(*size));
        intervals
    }

    fn mean(intervals: &LossIntervals, open: f64) -> f64 {
        1.0 / intervals.loss_event_rate(open).unwrap()
    }

    #[track_caller]
    fn near(value: f64, wanted: f64) {
        assert!((value / wanted - 1.0).abs() < 1e-12, "{value} instead of {wanted}");
    }

    /// Section 5.4's weights over 10, 20, .. 80: I_tot1 = 10 + 20 + 30 + 40 + 40 + 36 + 28 + 16 = 220 over 6.
    #[test]
    fn eight_intervals_are_weighted() {
        let intervals = of(1.0, &[10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0]);
        near(mean(&intervals, 1.0), 220.0 / 6.0);
        // With I_0 = 100 the others move up: 100 + 10 + 20 + 30 + 32 + 30 + 24 + 14 = 260.
        near(mean(&intervals, 100.0), 260.0 / 6.0);
        // I_0 counts only where it makes the average longer: at 60 it is 220 / 6 either way.
        near(mean(&intervals, 60.0), 220.0 / 6.0);
        // A ninth pushes the oldest out.
        let mut more = intervals;
        more.close(60.0);
        near(mean(&more, 1.0), 220.0 / 6.0);
    }

    #[test]
    fn few_intervals_are_weighted_by_as_many_weights() {
        near(mean(&of(1.0, &[30.0]), 1.0), 30.0);
        near(mean(&of(1.0, &[30.0]), 90.0), 90.0);
        // k = 2: (90 + 30) / 2 against (30 + 50) / 2.
        near(mean(&of(1.0, &[30.0, 50.0]), 90.0), 60.0);
        assert_eq!(of(1.0, &[]).loss_event_rate(10.0), None);
    }

    /// Eight intervals of 10; I_0 = 40 is twice as long as twice their mean: DF = 1/2. I_tot0 = 40 + 10 * 0.5 * 5 = 65,
    /// W_tot0 = 1 + 0.5 * 5 = 3.5. At I_0 = 400 DF would be 1/20 and is 1/4: (400 + 12.5) / 2.25.
    #[test]
    fn a_long_interval_discounts_the_older_ones() {
        let intervals = of(0.25, &[10.0; 8]);
        near(mean(&intervals, 20.0), (20.0 + 50.0) / 6.0);
        near(mean(&intervals, 40.0), 65.0 / 3.5);
        near(mean(&intervals, 400.0), 412.5 / 2.25);
        // ns-2's THRESHOLD.
        near(mean(&of(0.5, &[10.0; 8]), 400.0), 425.0 / 3.5);
    }

    /// The discount stays with the older intervals when the long one closes: I_1 = 400 of weight 1, then seven of 10 with
    /// 0.25 times 1, 1, 1, .8, .6, .4, .2: 412.5 / 2.25.
    #[test]
    fn discounts_last() {
        let mut intervals = of(0.25, &[10.0; 8]);
        intervals.close(400.0);
        near(mean(&intervals, 1.0), 412.5 / 2.25);
        // The next interval is ordinary, and the factors move on with their intervals.
        intervals.close(10.0);
        near(
            mean(&intervals, 1.0),
            (10.0 + 400.0 + 2.5 * (1.0 + 1.0 + 0.8 + 0.6 + 0.4 + 0.2)) / (2.0 + 0.25 * 4.0),
        );
    }

    /// After a steady state the rate grows by at most 0.14 packets per round-trip time in each, and 0.22 where history is
    /// discounted to one half (Floyd, Handley, Padhye, Widmer, SIGCOMM 2000, as TFRC Probe quotes it): 0.75 of the weight of
    /// I_0. While the factor falls to its threshold the formula gives up to 0.33, of which they say nothing.
    #[test]
    fn the_increase_without_losses_is_bounded() {
        let equation = crate::control::tfrc::Equation::rfc(1.0, 1.0);
        for (threshold, most, falling) in [(1.0, 0.14, 0.14), (0.5, 0.22, 0.34)] {
            let (mut fastest, mut meanwhile) = (0.0_f64, 0.0_f64);
            for size in [10.0, 30.0, 100.0, 300.0, 1_000.0, 10_000.0] {
                let intervals = of(threshold, &[size; 8]);
                let per_round = |open| equation.bytes_per_second(intervals.loss_event_rate(open).unwrap());
                let (mut open, mut before) = (1.0, per_round(1.0));
                while open < 20.0 * size {
                    let settled = open >= 2.0 * size / threshold;
                    open += before;
                    let rate = per_round(open);
                    let fastest = if settled { &mut fastest } else { &mut meanwhile };
                    *fastest = fastest.max(rate - before);
                    before = rate;
                }
            }
            assert!(fastest <= most && fastest > 0.7 * most, "{threshold}: {fastest}");
            assert!(meanwhile <= falling, "{threshold}: {meanwhile}");
        }
    }
}
