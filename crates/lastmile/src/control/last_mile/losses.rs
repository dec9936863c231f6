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
/// A loss is late if the packet before it waited longer than that part of the longest wait, and longer than a queue of so many packets at the
/// flow's rate, of so many seconds at most: without a queue the longest wait is that of a packet's own bits.
const LATE: f64 = 0.6;
const LATE_PACKETS: f64 = 2.0;
const LATE_S: f64 = 0.01;
/// The weight of a loss in the share of late ones, and the share beyond which they are congestion.
const LATE_GAIN: f64 = 0.05;
const LATE_SHARE: f64 = 0.6;
/// The longest wait shrinks by that part in a second.
const FORGOTTEN: f64 = 0.1;
/// Losses that are found to go with the rate cease at that part of it. If more than this share stays, they do not go with it.
const LESS: f64 = 0.6;
const STAYED: f64 = 0.02;
/// So many losses are congestion as long as nothing is known of them.
const TOO_MANY: f64 = 0.25;
/// So many are, though a test found losses to be the link's: these are not the same ones.
const FAR_TOO_MANY: f64 = 0.5;

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
    /// The rate at which they were found to go with it, bytes a second.
    found_at: f32,
}

impl Losses {
    /// Tests send no less than `min_rate`.
    pub(super) fn new(min_rate: Rate) -> Losses {
        let test = RateTest::new(min_rate);
        Losses {
            cause: Cause::Unknown,
            test,
            long: 0.0,
            short: 0.0,
            late: 0.5,
            longest_wait: 0.0,
            found_at: 0.0,
        }
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

    /// A packet was lost; the one before it had waited for `queue` seconds, where a packet takes `packet_s` at the flow's rate. True if that was
    /// long, for this path.
    pub(super) fn lost(&mut self, sent: &Sent, queue: f64, packet_s: f64) -> bool {
        self.test.lost(sent);
        let is_late = queue > LATE * self.longest_wait && queue > LATE_S.min(LATE_PACKETS * packet_s);
        self.late += (f64::from(u8::from(is_late)) - self.late) * LATE_GAIN;
        is_late
    }

    /// A message told of so many packets, and of so many among them that were lost or marked.
    pub(super) fn count(&mut self, told: u32, lost: u32) {
        if told > 0 {
            let share = f64::from(lost) / f64::from(told);
            let weight = |packets: f64| (f64::from(told) / packets).min(MOST);
            self.long += (share - self.long) * weight(LONG);
            self.short += (share - self.short) * weight(SHORT);
        }
    }

    /// Feedback came, at that rate in bytes a second. A test begins if one is due and `may_test`.
    pub(super) fn on_feedback(&mut self, now: Time, rate: f64, rtt: Option<Span>, may_test: bool) {
        let (verdicts, found) = (self.test.link_verdicts(), self.test.on_feedback(now, rtt, may_test));
        if found.is_some() {
            (self.cause, self.found_at) = (Cause::Rate, rate as f32);
        } else if self.cause == Cause::Rate && rate < LESS * f64::from(self.found_at) && self.long > STAYED {
            // Not before the next tests say so again.
            self.cause = Cause::Unknown;
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
            Cause::Link => self.short.min(self.long) > FAR_TOO_MANY,
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

    /// The end of the latest test of the rate, in seconds.
    pub(super) fn tested_at(&self) -> f64 {
        self.test.latest_end().map_or(f64::NEG_INFINITY, |end| (end - Time::ZERO).as_secs_f64())
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
        assert!(!losses.lost(&sent(1), 0.05, 0.01) && !losses.are_congestion());
        let mut late = Losses::new(Rate::ip(1));
        late.arrived(&sent(0), 0.1);
        (1..=5).for_each(|k| assert!(late.lost(&sent(2 * k), 0.061, 0.01)));
        assert!((late.late - 0.613).abs() < 1e-3 && late.are_congestion(), "{}", late.late);
        late.on_route_change();
        assert!(!late.are_congestion());
    }

    /// The longest wait is 2.4 ms, a packet's own bits at 4 Mbit/s.
    #[test]
    fn losses_without_a_queue_are_none_of_a_queue() {
        let mut losses = Losses::new(Rate::ip(1));
        losses.arrived(&sent(0), 0.0024);
        for (packet_s, late) in [(0.001, true), (0.0012, false), (0.02, false)] {
            assert_eq!(losses.lost(&sent(1), 0.0024, packet_s), late, "{packet_s}");
        }
    }

    /// One verdict in 400 is wrong: at 60 % of its rate as many are lost as before.
    #[test]
    fn a_verdict_is_taken_back_where_losses_go_on_at_a_lower_rate() {
        for (lost, rate, cause) in
            [(0, 599.0, Cause::Rate), (3, 601.0, Cause::Rate), (3, 599.0, Cause::Unknown)]
        {
            let mut losses = Losses::new(Rate::ip(1));
            (losses.cause, losses.found_at) = (Cause::Rate, 1000.0);
            (0..20).for_each(|_| losses.count(30, lost));
            losses.on_feedback(Time::ZERO, rate, None, true);
            assert_eq!(losses.cause, cause, "{lost} {rate}");
        }
    }

    #[test]
    fn a_path_that_loses_every_third_packet_is_answered_before_it_is_known() {
        let mut losses = Losses::new(Rate::ip(1));
        for _ in 0..30 {
            losses.count(30, 10);
        }
        assert!((losses.short_share() - 1.0 / 3.0).abs() < 1e-3 && losses.are_congestion());
        losses.cause = Cause::Link;
        assert!(!losses.are_congestion());
        // Nine of ten are more than a link loses that a test was sent over.
        (0..30).for_each(|_| losses.count(30, 27));
        assert!(losses.are_congestion());
    }
}
