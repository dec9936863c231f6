//! Losses: how many, at which delays, and whether they go with the rate.
//!
//! A queue that overflows loses packets at the end of its range of delays, and a short one (CoDel, PIE, a policer) only while too much
//! is sent; a radio link loses them at any delay and any rate. [`RateTest`] tells the second pair apart; until it has, the delays do.

use super::super::Output;
use super::super::rate_test::RateTest;
use crate::control::Sent;
use crate::time::{Span, Time};
use crate::units::Rate;

/// Packets of which the shares are, and the most that one message counts.
const LONG: f64 = 150.0;
const SHORT: f64 = 30.0;
const MOST: f64 = 0.5;
/// A loss is late if the packet before it waited longer than that part of the longest wait.
const LATE: f64 = 0.6;
/// The weight of a loss in the share of late ones, and the share beyond which they are congestion.
const LATE_GAIN: f64 = 0.05;
const LATE_SHARE: f64 = 0.6;
/// The longest wait shrinks by that part in a second.
const FORGOTTEN: f64 = 0.1;
/// So many losses are congestion as long as nothing is known of them.
const TOO_MANY: f64 = 0.25;

/// Cause of a flow's losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// No test of the rate has told yet.
    Unknown,
    /// They cease where less is sent.
    Rate,
    /// They go on where less is sent.
    Link,
}

impl Cause {
    pub(super) fn name(self) -> &'static str {
        match self {
            Cause::Unknown => "unknown",
            Cause::Rate => "by rate",
            Cause::Link => "the link's",
        }
    }
}

/// The losses of a flow.
#[derive(Clone, Debug)]
pub(super) struct Losses {
    pub(super) cause: Cause,
    test: RateTest,
    long: f64,
    short: f64,
    late: f64,
    longest_wait: f64,
}

impl Losses {
    /// Tests send no less than `min_rate`.
    pub(super) fn new(min_rate: Rate) -> Losses {
        let test = RateTest::new(min_rate);
        Losses { cause: Cause::Unknown, test, long: 0.0, short: 0.0, late: 0.5, longest_wait: 0.0 }
    }

    /// The packets take another way.
    pub(super) fn on_route_change(&mut self) {
        self.test.on_route_change();
        (self.cause, self.late, self.longest_wait) = (Cause::Unknown, 0.5, 0.0);
    }

    /// A packet arrived that had waited for `queue` seconds.
    pub(super) fn arrived(&mut self, sent: &Sent, queue: f64) {
        self.test.arrived(sent);
        self.longest_wait = self.longest_wait.max(queue);
    }

    /// A packet was lost; the one before it had waited for `queue` seconds. True if that was long, for this path.
    pub(super) fn lost(&mut self, sent: &Sent, queue: f64) -> bool {
        self.test.lost(sent);
        let is_late = queue > LATE * self.longest_wait;
        self.late += (f64::from(u8::from(is_late)) - self.late) * LATE_GAIN;
        is_late
    }

    /// A message told of so many packets, and of so many among them that were lost or marked. A test begins if one is due and `may_test`.
    pub(super) fn on_feedback(&mut self, now: Time, told: u32, lost: u32, rtt: Option<Span>, may_test: bool) {
        if told > 0 {
            let share = f64::from(lost) / f64::from(told);
            let weight = |packets: f64| (f64::from(told) / packets).min(MOST);
            self.long += (share - self.long) * weight(LONG);
            self.short += (share - self.short) * weight(SHORT);
        }
        let (verdicts, found) = (self.test.link_verdicts(), self.test.on_feedback(now, rtt, may_test));
        if found.is_some() {
            self.cause = Cause::Rate;
        } else if self.test.link_verdicts() > verdicts {
            self.cause = Cause::Link;
        }
    }

    /// So many seconds went by.
    pub(super) fn age(&mut self, seconds: f64) {
        self.longest_wait *= 1.0 - FORGOTTEN * seconds;
    }

    /// The share of the last 30 packets or so.
    pub(super) fn short_share(&self) -> f64 {
        self.short
    }

    /// The longest wait of late, in seconds.
    pub(super) fn longest_wait(&self) -> f64 {
        self.longest_wait
    }

    /// True if losses are to be answered.
    pub(super) fn are_congestion(&self) -> bool {
        match self.cause {
            Cause::Rate => true,
            Cause::Link => false,
            Cause::Unknown => self.late > LATE_SHARE || self.short.min(self.long) > TOO_MANY,
        }
    }

    /// True if a test of the rate found that they are the link's.
    pub(super) fn is_link(&self) -> bool {
        self.cause == Cause::Link
    }

    /// The rate to which a test that is under way holds the pacer.
    pub(super) fn test_rate(&self, now: Time) -> Option<Rate> {
        self.test.rate(now)
    }

    /// The end of the test that is under way.
    pub(super) fn poll_timeout(&self, now: Time) -> Option<Time> {
        self.test.poll_timeout(now)
    }

    /// Holds the pacer to a test's rate; the encoder is left alone, since a new target costs bytes of its own.
    pub(super) fn hold(&self, now: Time, output: Output) -> Output {
        let pacing = self.test_rate(now).filter(|rate| *rate < output.pacing);
        Output { pacing: pacing.unwrap_or(output.pacing), ..output }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Bytes;

    fn sent(id: u64) -> Sent {
        Sent::media(id, Bytes(1000), Time::from_nanos(id * 10_000_000))
    }

    /// By hand: from a half, fifteen late losses make 1 - 0.5 * 0.95^15 = 0.768, and five 0.613.
    #[test]
    fn losses_at_the_end_of_the_range_are_congestion() {
        let mut losses = Losses::new(Rate::ip(1));
        losses.arrived(&sent(0), 0.1);
        assert!(!losses.lost(&sent(1), 0.05) && !losses.are_congestion());
        let mut late = Losses::new(Rate::ip(1));
        late.arrived(&sent(0), 0.1);
        (1..=5).for_each(|k| assert!(late.lost(&sent(2 * k), 0.061)));
        assert!((late.late - 0.613).abs() < 1e-3 && late.are_congestion(), "{}", late.late);
        late.on_route_change();
        assert!(!late.are_congestion());
    }

    #[test]
    fn a_path_that_loses_every_third_packet_is_answered_before_it_is_known() {
        let mut losses = Losses::new(Rate::ip(1));
        for _ in 0..30 {
            losses.on_feedback(Time::ZERO, 30, 10, None, false);
        }
        assert!((losses.short_share() - 1.0 / 3.0).abs() < 1e-3 && losses.are_congestion());
        losses.cause = Cause::Link;
        assert!(!losses.are_congestion());
    }
}
