//! A test of the rate: losses that a classifier takes for the wireless link's, and that cease while less is sent, are a queue's.
//!
//! Queues that stay short (CoDel, FQ-CoDel, CAKE, PIE) drop packets at delays that no classifier by delay takes for congestion. Once one
//! packet in fifty is judged to be lost by the link, the pacer sends three quarters of what arrives for a moment, again and again, until
//! tests have shown if as many are lost meanwhile. The rule is ours.

use super::receive_rate::ReceiveRate;
use super::spacing::Spacing;
use super::{Output, Sent};
use crate::time::{Span, Time};
use crate::units::Rate;

/// A smaller share of losses is not tested.
const MIN_SHARE: f64 = 0.02;
/// The weight of a packet in that share.
const SHARE_GAIN: f64 = 1.0 / 128.0;
/// The part of the receive rate that a test sends.
const TEST_RATE: f64 = 0.75;
/// The receive rate is taken over so long.
const RATE_WINDOW: Span = Span::from_millis(400);
/// The length of a test, in times of an answer and a gap of feedback; the queue drains for that part of it.
const TEST_LENGTH: f64 = 2.5;
const DRAINING: f64 = 0.4;
/// A test that sees fewer packets tells nothing.
const MIN_PACKETS: f64 = 8.0;
/// The time from a test to the next, by verdicts in a row that losses are the link's.
const INTERVALS: [Span; 4] =
    [Span::from_secs(1), Span::from_secs(10), Span::from_secs(20), Span::from_secs(40)];
/// Losses are a queue's if tests should have seen so many and saw less than that part. With losses of the link's, one verdict of 400 says so.
const MIN_EXPECTED: f64 = 12.0;
const CEASED: f64 = 0.3;
/// They are the link's if tests saw so many and that part of what they should have, or if it is still open after so many expected.
const MIN_SEEN: f64 = 4.0;
const STAYED: f64 = 0.5;
const MAX_EXPECTED: f64 = 36.0;

/// One test.
#[derive(Clone, Copy, Debug)]
struct Test {
    start: Time,
    /// The queue has drained by then.
    drained: Time,
    end: Time,
    rate: Rate,
}

/// Packets, and runs of lost ones.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    packets: f64,
    losses: f64,
}

impl Counts {
    fn share(&self) -> f64 {
        self.losses / self.packets.max(1.0)
    }
}

/// Tests of a flow's rate.
#[derive(Clone, Debug)]
pub(super) struct RateTest {
    /// No test sends less.
    min_rate: Rate,
    /// The moving share of packets with which a run of losses began that was judged the link's.
    share: f64,
    newest_lost: Option<u64>,
    receive_rate: ReceiveRate,
    packet_size: f64,
    spacing: Spacing,
    /// The shortest time in which packets were answered.
    min_rtt: Option<Span>,
    /// The latest test.
    test: Option<Test>,
    next_test: Time,
    /// Verdicts in a row that losses are the link's.
    link_verdicts: usize,
    inside: Counts,
    outside: Counts,
}

impl RateTest {
    pub(super) fn new(min_rate: Rate) -> RateTest {
        RateTest {
            min_rate,
            share: 0.0,
            newest_lost: None,
            receive_rate: ReceiveRate::default(),
            packet_size: 0.0,
            spacing: Spacing::default(),
            min_rtt: None,
            test: None,
            next_test: Time::ZERO,
            link_verdicts: 0,
            inside: Counts::default(),
            outside: Counts::default(),
        }
    }

    /// The packets take another way: nothing is known of it.
    pub(super) fn on_route_change(&mut self) {
        *self = RateTest::new(self.min_rate);
    }

    fn count(&mut self, sent: &Sent, losses: f64) {
        let counts = match self.test {
            Some(test) if sent.at < test.start || sent.at >= test.end => &mut self.outside,
            Some(test) if sent.at >= test.drained => &mut self.inside,
            _ => return,
        };
        counts.packets += 1.0;
        counts.losses += losses;
    }

    /// A packet arrived.
    pub(super) fn arrived(&mut self, sent: &Sent) {
        self.share *= 1.0 - SHARE_GAIN;
        self.receive_rate.add(sent.size.0);
        self.packet_size = sent.size.0 as f64;
        self.count(sent, 0.0);
    }

    /// A packet was lost, by the link as a classifier says. Losses in a row are one: the length of a fade tells nothing of a queue.
    pub(super) fn lost(&mut self, sent: &Sent) {
        let begins = self.newest_lost.replace(sent.id).is_none_or(|newest| sent.id != newest.wrapping_add(1));
        let losses = if begins { 1.0 } else { 0.0 };
        self.share += losses * SHARE_GAIN;
        self.count(sent, losses);
    }

    /// Feedback was counted, whose newest packet was answered after `rtt`. Begins a test that is due, while tests are `wanted`.
    /// The share of packets that were judged to be lost by the link, if they turn out to be a queue's.
    pub(super) fn on_feedback(&mut self, now: Time, rtt: Option<Span>, wanted: bool) -> Option<f64> {
        self.spacing.heard(now);
        let receive_rate = self.receive_rate.feedback(now.as_nanos(), RATE_WINDOW);
        if !wanted {
            (self.test, self.inside, self.outside) = (None, Counts::default(), Counts::default());
            (self.share, self.next_test) = (0.0, now);
            return None;
        }
        self.min_rtt = self.min_rtt.into_iter().chain(rtt).min();
        if let Some(verdict) = self.verdict(now) {
            return verdict;
        }
        if now >= self.next_test && self.share > MIN_SHARE {
            self.begin(now, receive_rate);
        }
        None
    }

    /// The end of a series of tests: with the share of losses if they are a queue's, with none if they are the link's.
    fn verdict(&mut self, now: Time) -> Option<Option<f64>> {
        let share = self.outside.share();
        let (seen, expected) = (self.inside.losses, share * self.inside.packets);
        let ceased = expected >= MIN_EXPECTED && seen < CEASED * expected;
        let stayed = seen >= MIN_SEEN && seen >= STAYED * expected;
        if !(ceased || stayed || expected >= MAX_EXPECTED) {
            return None;
        }
        (self.inside, self.outside) = (Counts::default(), Counts::default());
        self.link_verdicts = if ceased { 0 } else { self.link_verdicts + 1 };
        self.next_test = now + self.interval();
        Some(ceased.then_some(share))
    }

    fn begin(&mut self, now: Time, receive_rate: Option<(u64, u64)>) {
        let (Some(min_rtt), Some((bytes, nanos))) = (self.min_rtt, receive_rate) else { return };
        let seconds = TEST_LENGTH * (min_rtt.as_secs_f64() + self.spacing.usual());
        let bytes_per_second = TEST_RATE * bytes as f64 / (nanos as f64 / 1e9);
        if (1.0 - DRAINING) * seconds * bytes_per_second < MIN_PACKETS * self.packet_size {
            return;
        }
        let rate = Rate::ip((8.0 * bytes_per_second) as u64);
        let rate = if rate < self.min_rate { self.min_rate } else { rate };
        let after = |part: f64| now + Span::from_secs_f64((part * seconds).min(10.0));
        self.test = Some(Test { start: now, drained: after(DRAINING), end: after(1.0), rate });
        self.next_test = after(1.0) + self.interval();
    }

    /// From a test to the next.
    fn interval(&self) -> Span {
        INTERVALS[self.link_verdicts.min(INTERVALS.len() - 1)]
    }

    /// The rate of a test that is under way.
    pub(super) fn rate(&self, now: Time) -> Option<Rate> {
        self.test.filter(|test| now < test.end).map(|test| test.rate)
    }

    /// Verdicts in a row that losses are the link's.
    pub(super) fn link_verdicts(&self) -> usize {
        self.link_verdicts
    }

    /// The controller's rates, lowered while a test goes on. The target is lowered too: media beyond it would wait for the pacer.
    pub(super) fn output(&self, now: Time, output: Output) -> Output {
        let Some(test) = self.rate(now) else { return output };
        let below = |rate: Rate| if test < rate { test } else { rate };
        Output { target: below(output.target), pacing: below(output.pacing), ..output }
    }

    /// The end of the latest test.
    pub(super) fn latest_end(&self) -> Option<Time> {
        self.test.map(|test| test.end)
    }

    /// The end of the test that is under way.
    pub(super) fn poll_timeout(&self, now: Time) -> Option<Time> {
        self.latest_end().filter(|end| *end > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Bytes;

    /// A path of 1 Mbit/s that is sent 1.2 as packets of 1000 B, told of each 50 ms: every packet is lost by the link with a chance of one in
    /// `one_in`, or, if that is none, those that are too many. The share that is found to follow the rate, and when.
    fn path(one_in: Option<u64>, seconds: u64) -> (Option<f64>, u64) {
        let full = Output::rate(Rate::ip(1_200_000));
        let mut test = RateTest::new(Rate::ip(1));
        let (mut sent_at, mut id, mut excess) = (0.0, 0_u64, 0.0);
        for round in 0..20 * seconds {
            let now = |after: f64| Time::from_nanos(((0.05 * round as f64 + after) * 1e9) as u64);
            while sent_at < 0.05 * (round + 1) as f64 {
                let rate =
                    test.output(Time::from_nanos((sent_at * 1e9) as u64), full).pacing.bits_per_second()
                        as f64;
                let sent = Sent::media(id, Bytes(1000), Time::from_nanos((sent_at * 1e9) as u64));
                excess = (excess + 1.0 - 1e6 / rate).max(0.0);
                let lost = match one_in {
                    Some(n) => id.wrapping_mul(0x9E37_79B9_7F4A_7C15) % n == 0,
                    None => excess >= 1.0,
                };
                if lost {
                    test.lost(&sent)
                } else {
                    test.arrived(&sent)
                }
                excess -= if lost { excess.floor() } else { 0.0 };
                sent_at += 8_000.0 / rate;
                id += 1;
            }
            let found = test.on_feedback(now(0.05), Some(Span::from_millis(60)), true);
            if found.is_some() {
                return (found, round / 20);
            }
        }
        (None, seconds)
    }

    #[test]
    fn what_ceases_at_three_quarters_of_what_arrives_is_the_rates() {
        let (share, after) = path(None, 60);
        assert!(
            share.is_some_and(|share| (0.12..0.2).contains(&share)) && after < 20,
            "{share:?}, {after} s"
        );
    }

    #[test]
    fn what_goes_on_is_the_links() {
        for one_in in [50, 20, 10, 5] {
            assert_eq!(path(Some(one_in), 600).0, None, "one in {one_in}");
        }
    }

    /// A test lowers both rates for two and a half times of an answer and a gap of feedback, and not below the least.
    #[test]
    fn a_test_is_short_and_ends_by_itself() {
        let full = Output::rate(Rate::ip(1_000_000));
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        for (least, wanted) in [(1, 720_000), (900_000, 900_000)] {
            let mut test = RateTest::new(Rate::ip(least));
            let mut round = 0;
            while test.test.is_none() {
                round += 1;
                let sent = |k: u64| Sent::media(7 * round + k, Bytes(1000), at(50 * round));
                (0..6).for_each(|k| test.arrived(&sent(k)));
                test.lost(&sent(6));
                test.on_feedback(at(50 * round), Some(Span::from_millis(50)), true);
            }
            let Some(Test { end, rate, .. }) = test.test else { panic!() };
            assert_eq!(rate, Rate::ip(wanted));
            assert_eq!(test.poll_timeout(end - Span::from_nanos(1)), Some(end));
            let output = test.output(end - Span::from_nanos(1), full);
            assert_eq!((output.target, output.pacing), (rate, rate));
            assert_eq!((test.output(end, full), test.poll_timeout(end)), (full, None));
        }
    }
}
