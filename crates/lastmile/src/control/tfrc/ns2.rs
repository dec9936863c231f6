//! The sender of ns-2 2.35 (tcp/tfrc.cc), which papers of its time were made with. It is not RFC 5348's:
//!
//! - t_RTO is TCP's, from round-trip times on a clock of 0.1 s: 0.3 s below 150 ms, 0.5 s at 200 ms; and the equation's factor
//!   of t_RTO is capped.
//! - 300 B/s until the first feedback, then W_init in a round-trip time.
//! - In slow start a doubling is spread over the packets of a round-trip time.
//! - Up to the equation's rate it rises by a segment per round-trip time in each; down it follows at once.
//! - The nofeedback timer is max(2 R, 2 s / X) and halves the rate.
//! - A receiver's feedback is sent by the packet that comes a round-trip time after the last one, or half as long again after it.
//! - A round begins with each feedback, and each time the nofeedback timer expires. Packets carry its number, and the packets
//!   of one round tell of one loss event at most (PreciseLoss_): without that a run of losses is several events where packets
//!   are further apart than a round-trip time.
//! - The packet that begins a loss event is not of the interval that it begins, while that is open.
//! - The round-trip times' memory is 0.95; the instantaneous rate follows their square roots outside slow start.
//!
//! The preset adds the rest: packets are lost at the first one out of sequence and paced without 32 bytes of header, and history
//! is discounted to one half. Left out: the tolerance of 5 % in the equation's inverse; a receiver takes RFC 5348's
//! equation for the first interval.

use super::equation::Equation;
use super::law::{Facts, Law, after};
use crate::control::flow::initial_rate;
use crate::telemetry::Visitor;
use crate::time::Time;

/// InitRate_, bytes a second.
const INITIAL: f64 = 300.0;
/// tcp_tick_, in seconds.
const TICK: f64 = 0.1;

/// Rounds of which it is known when they began.
const ROUNDS: usize = 32;

/// TCP's smoothed round-trip time and variation in ns-2's fixed point: eighths and quarters of a tick.
#[derive(Clone, Copy, Debug, Default)]
struct Ticks {
    mean: i64,
    variation: i64,
}

impl Ticks {
    fn take(&mut self, rtt: f64) {
        let ticks = ((rtt / TICK + 0.5) as i64).max(1);
        if self.mean == 0 {
            (self.mean, self.variation) = (ticks << 3, ticks << 1);
            return;
        }
        let delta = ticks - (self.mean >> 3);
        self.mean = (self.mean + delta).max(1);
        self.variation = (self.variation + delta.abs() - (self.variation >> 2)).max(1);
    }

    /// t_RTO in seconds.
    fn timeout(&self) -> f64 {
        (((self.variation << 3) + self.mean) >> 3) as f64 * TICK
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    SlowStart,
    Avoidance,
}

/// ns-2's sender.
#[derive(Clone, Debug)]
pub(super) struct Ns2Sender {
    memory: f64,
    mss: f64,
    phase: Phase,
    /// rate_, oldrate_ and delta_: the rate, the part of it reached in slow start, and a packet's step.
    rate: f64,
    reached_rate: f64,
    step: f64,
    rtt: Option<f64>,
    sqmean_rtt: f64,
    latest_rtt: f64,
    ticks: Ticks,
    last_change: Time,
    /// round_id: feedback packets and expirations so far; and when the latest rounds began, at their number modulo `ROUNDS`.
    round: u64,
    began: [Time; ROUNDS],
    segment: f64,
    /// Seconds added to the nofeedback timer for feedback less than once in a round-trip time, which ns-2's never is.
    spacing: f64,
    no_feedback_at: Option<Time>,
}

impl Ns2Sender {
    pub(super) fn new(memory: f64, mss: f64, start: Option<f64>) -> Ns2Sender {
        let rate = start.unwrap_or(INITIAL);
        Ns2Sender {
            memory,
            mss,
            phase: Phase::SlowStart,
            rate,
            reached_rate: rate,
            step: 0.0,
            rtt: None,
            sqmean_rtt: 1.0,
            latest_rtt: 1.0,
            ticks: Ticks::default(),
            last_change: Time::ZERO,
            round: 0,
            began: [Time::ZERO; ROUNDS],
            segment: mss,
            spacing: 0.0,
            no_feedback_at: None,
        }
    }

    fn next_round(&mut self, now: Time) {
        self.round += 1;
        self.began[self.round as usize % ROUNDS] = now;
    }

    /// Goes from the rate to another over the packets of a round-trip time.
    fn rise(&mut self, to: f64, rtt: f64) {
        self.reached_rate = self.rate;
        self.rate = to;
        self.step = (self.rate - self.reached_rate) / (self.rate * rtt / self.segment);
    }

    /// `received`: ss_maxrate_, twice what arrives.
    fn slow_start(&mut self, now: Time, limit: Option<f64>, rtt: f64, data_limited: bool) {
        let initial = initial_rate(self.mss, rtt);
        let Some(limit) = limit.filter(|_| self.round > 2) else {
            if self.round <= 2 {
                self.rise(self.rate.max(initial), rtt);
            } else {
                // Nothing arrives.
                (self.reached_rate, self.rate, self.step) = (self.rate, self.segment / rtt, 0.0);
            }
            self.last_change = now;
            return;
        };
        if data_limited && limit < initial {
            self.rise(self.rate.max(initial), rtt);
            self.last_change = now;
        } else if self.rate < limit && (now - self.last_change).as_secs_f64() > rtt {
            self.rise((2.0 * self.rate).min(limit).max(self.segment / rtt), rtt);
            self.last_change = now;
        } else if self.rate > limit {
            (self.rate, self.reached_rate, self.step) = (limit / 2.0, limit / 2.0, 0.0);
            self.last_change = now;
        }
    }

    fn timeout(&self) -> f64 {
        (2.0 * self.rtt.unwrap_or(0.0)).max(2.0 * self.segment / self.rate) + self.spacing
    }
}

impl Law for Ns2Sender {
    fn on_feedback(&mut self, now: Time, facts: &Facts) {
        self.segment = facts.segment;
        self.next_round(now);
        if let Some(sample) = facts.rtt {
            let (m, root) = (self.memory, libm::sqrt(sample));
            self.sqmean_rtt = if self.rtt.is_none() {
                root
            } else {
                self.sqmean_rtt + (1.0 - m) * (root - self.sqmean_rtt)
            };
            self.rtt = Some(self.rtt.map_or(sample, |rtt| rtt + (1.0 - m) * (sample - rtt)));
            self.latest_rtt = sample;
            self.ticks.take(sample);
        }
        let Some(rtt) = self.rtt else { return };
        // maxrate_
        let limit = facts.received.filter(|_| self.round > 1).map(|received| 2.0 * received);
        let one = facts.times * self.segment / rtt;
        let most =
            limit.unwrap_or(0.0).max(if facts.data_limited { initial_rate(self.mss, rtt) } else { one });
        let p = facts.loss_event_rate;
        let fair = facts.times * self.equation(self.segment, rtt).bytes_per_second(p);
        match self.phase {
            Phase::SlowStart if p > 0.0 => {
                self.phase = Phase::Avoidance;
                // ns-2 believes any p; one next to nothing would allow any rate.
                let fair = fair.min(self.rate.max(limit.unwrap_or(0.0)));
                (self.rate, self.reached_rate) = (fair, fair);
            }
            Phase::SlowStart => {
                self.slow_start(now, limit, rtt, facts.data_limited);
                // ns-2 sends a packet at once. Packets at the pacer leave at the rate that this packet would reach.
                self.on_packet();
            }
            Phase::Avoidance if fair > self.rate => {
                let rounds = ((now - self.last_change).as_secs_f64() / rtt).min(2.0);
                self.rate = (self.rate + one * rounds).min(most.min(fair));
                self.last_change = now;
            }
            Phase::Avoidance => {
                self.rate = fair.min(limit.unwrap_or(0.0).max(one));
                self.last_change = now;
            }
        }
        self.rate = self.rate.min(facts.max);
        // A message that is lost makes the timer expire; that they come less often than ns-2's, by the interval and not for want
        // of packets, does not. ns-2 allows for 2 R where messages come every 1.5 R at most.
        self.spacing = (2.0 * (facts.every - self.segment / self.rate) - 3.0 * rtt).max(0.0);
        self.no_feedback_at = Some(after(now, self.timeout()));
    }

    fn on_no_feedback(&mut self, now: Time, idle: bool) {
        let keeps = self.rtt.map_or(0.0, |rtt| initial_rate(self.mss, rtt));
        match idle {
            true if self.rate <= keeps => {}
            true => self.rate = (self.rate / 2.0).max(keeps),
            false => self.rate /= 2.0,
        }
        // No rate of ns-2's is ever raised from below this, so that its timer is not either.
        self.rate = self.rate.max(self.segment / 64.0);
        self.reached_rate = self.reached_rate.min(self.rate);
        self.next_round(now);
        self.no_feedback_at = Some(after(now, self.timeout()));
    }

    fn restart(&mut self) {
        (self.phase, self.reached_rate, self.step) = (Phase::SlowStart, self.rate, 0.0);
    }

    fn on_packet(&mut self) {
        if self.phase == Phase::SlowStart && self.round > 2 && self.reached_rate < self.rate {
            self.reached_rate = (self.reached_rate + self.step.max(0.0)).min(self.rate);
        }
    }

    fn round(&self, sent: Time) -> Option<u64> {
        let known = self.round.min(ROUNDS as u64);
        let later = (0..known).find(|back| self.began[(self.round - back) as usize % ROUNDS] <= sent);
        Some(self.round - later.unwrap_or(known))
    }

    fn no_feedback_at(&self) -> Option<Time> {
        self.no_feedback_at
    }

    fn start(&mut self, now: Time) {
        if self.no_feedback_at.is_none() {
            self.no_feedback_at = Some(after(now, self.timeout()));
        }
    }

    fn rtt(&self) -> Option<f64> {
        self.rtt
    }

    fn equation(&self, segment: f64, rtt: f64) -> Equation {
        Equation { segment, rtt, t_rto: self.ticks.timeout(), capped: true }
    }

    fn allowed(&self) -> f64 {
        self.rate
    }

    fn instantaneous(&self) -> f64 {
        if self.phase == Phase::SlowStart && self.round > 2 && self.reached_rate < self.rate {
            return self.reached_rate;
        }
        match self.rtt {
            Some(_) => self.rate * self.sqmean_rtt / libm::sqrt(self.latest_rtt),
            None => self.rate,
        }
    }

    fn telemetry(&self, visitor: &mut dyn Visitor) {
        visitor.state(
            "phase",
            if self.phase == Phase::SlowStart { "slow start" } else { "congestion avoidance" },
        );
        visitor.number("t_RTO", "s", self.ticks.timeout());
    }

    fn clone_box(&self) -> Box<dyn Law> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Span;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn facts(received: f64, p: f64) -> Facts {
        Facts {
            rtt: Some(0.1),
            received: (received > 0.0).then_some(received),
            loss_event_rate: p,
            times: 1.0,
            worse: false,
            sifted: false,
            data_limited: false,
            spacing: 0.0,
            every: 0.0,
            segment: 1000.0,
            max: 1e9,
        }
    }

    #[test]
    fn t_rto_is_that_of_a_clock_of_a_tenth_of_a_second() {
        for (rtt, timeout) in [(0.04, 0.3), (0.149, 0.3), (0.2, 0.5)] {
            let mut ticks = Ticks::default();
            (0..100).for_each(|_| ticks.take(rtt));
            assert!((ticks.timeout() - timeout).abs() < 1e-9, "{rtt}: {ticks:?}");
        }
    }

    #[test]
    fn slow_start_is_spread_over_a_round_trip() {
        let mut s = Ns2Sender::new(0.95, 1000.0, None);
        assert_eq!(s.instantaneous(), 300.0);
        s.start(at(0));
        assert_eq!(s.no_feedback_at(), Some(at(6_666) + Span::from_nanos(666_667)));
        s.on_feedback(at(100), &facts(0.0, 0.0));
        s.on_feedback(at(200), &facts(1_000.0, 0.0));
        assert!((s.allowed() - 40_000.0).abs() < 1e-6);
        assert_eq!(s.no_feedback_at(), Some(at(400)));
        // Doubled a little more than a round trip later: 40 -> 80 kB/s in steps of 40 / 8.
        s.on_feedback(at(301), &facts(41_000.0, 0.0));
        assert!((s.allowed() - 80_000.0).abs() < 1e-6 && (s.instantaneous() - 45_000.0).abs() < 1e-6);
        (0..3).for_each(|_| s.on_packet());
        assert!((s.instantaneous() - 60_000.0).abs() < 1e-6);
        (0..9).for_each(|_| s.on_packet());
        assert!((s.instantaneous() - 80_000.0).abs() < 1e-6);
    }

    /// A message that is lost makes the timer expire, and feedback every 200 ms where R is 100 does not.
    #[test]
    fn the_timer_waits_for_two_round_trips() {
        let mut s = Ns2Sender::new(0.95, 1000.0, Some(200_000.0));
        // Packets are 5 ms apart.
        for (ms, every, expires) in [(100, 0.12, 300), (200, 0.2, 490), (300, 0.0, 500)] {
            s.on_feedback(at(ms), &Facts { every, ..facts(200_000.0, 0.0) });
            assert_eq!(s.no_feedback_at(), Some(at(expires)), "{every}");
        }
    }

    /// Rounds begin at 100, 200, .. 4000 ms; when the first eight did is forgotten.
    #[test]
    fn packets_are_of_the_round_in_which_they_were_sent() {
        let mut s = Ns2Sender::new(0.95, 1000.0, None);
        assert_eq!(s.round(at(0)), Some(0));
        (1..=3).for_each(|k| s.on_feedback(at(100 * k), &facts(1_000.0, 0.0)));
        assert_eq!([99, 100, 199, 250, 300].map(|ms| s.round(at(ms)).unwrap()), [0, 1, 1, 2, 3]);
        (4..40).for_each(|k| s.on_feedback(at(100 * k), &facts(1_000.0, 0.0)));
        s.on_no_feedback(at(4_000), false);
        assert_eq!([700, 850, 900, 3_950, 4_000].map(|ms| s.round(at(ms)).unwrap()), [8, 8, 9, 39, 40]);
    }

    /// At 1 %: 1000 / (0.1 * 0.0816497 + 0.3 * 0.1837117 * 0.01 * 1.0032) = 114,707 B/s.
    #[test]
    fn it_falls_at_once_and_rises_by_a_segment_a_round() {
        let mut s = Ns2Sender::new(0.95, 1000.0, Some(200_000.0));
        s.on_feedback(at(100), &facts(0.0, 0.0));
        s.on_feedback(at(200), &facts(200_000.0, 0.01));
        assert!((s.allowed() - 114_707.0).abs() < 1.0, "{}", s.allowed());
        s.on_feedback(at(300), &facts(100_000.0, 0.02));
        let fell = s.allowed();
        assert!((fell - 1000.0 / (0.011_547_005 + 0.3 * 0.259_807_62 * 0.02 * 1.0128)).abs() < 1.0);
        s.on_feedback(at(400), &facts(100_000.0, 0.001));
        assert!((s.allowed() - fell - 10_000.0).abs() < 1e-6);
        // At most two rounds' worth at once.
        s.on_feedback(at(900), &facts(100_000.0, 0.001));
        assert!((s.allowed() - fell - 30_000.0).abs() < 1e-6);
        s.on_no_feedback(at(1_200), false);
        assert!((s.allowed() - (fell + 30_000.0) / 2.0).abs() < 1e-6);
    }
}
