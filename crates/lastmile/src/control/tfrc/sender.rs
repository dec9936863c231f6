//! The sender of RFC 5348: slow start, the allowed rate, data-limited intervals, the nofeedback timer, oscillation prevention.

use super::equation::Equation;
use super::law::{Facts, Law, after};
use super::receive_set::ReceiveSet;
use crate::control::flow::initial_rate;
use crate::control::spacing::overdue_after;
use crate::telemetry::Visitor;
use crate::time::{Span, Time};

/// t_mbi: the longest between two packets, in seconds.
const T_MBI: f64 = 64.0;
/// The nofeedback timer before the first round-trip sample [RFC 5348, 4.2].
const FIRST_TIMER: Span = Span::from_secs(2);

/// A step down, while packets are lost to congestion and a classifier has taken losses out of p: less than this part of X arrives.
const STEP_DOWN: f64 = 0.75;

/// Parameters of the law that users can change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RfcParameters {
    /// q, and q2 of the oscillation prevention.
    pub(super) memory: f64,
    /// Section 4.5.
    pub(super) steady: bool,
    /// The largest segment, in the bytes that are paced.
    pub(super) mss: f64,
    /// The rate before the first feedback; none for a segment per second.
    pub(super) start: Option<f64>,
}

/// RFC 5348's sender.
#[derive(Clone, Debug)]
pub(super) struct RfcSender {
    parameters: RfcParameters,
    /// X.
    allowed: f64,
    /// R and R_sqmean, and the newest R_sample.
    rtt: Option<f64>,
    sqmean_rtt: f64,
    latest_rtt: f64,
    /// X_recv_set.
    received: ReceiveSet,
    /// tld.
    last_doubled: Time,
    /// p, the number of connections, and X_Bps of all of them.
    loss_event_rate: f64,
    connections: f64,
    equation_rate: f64,
    segment: f64,
    /// Seconds by which feedback is further apart than a round-trip time.
    spacing: f64,
    /// After a step down: the bound on X, and its time.
    ramp: Option<(f64, Time)>,
    no_feedback_at: Option<Time>,
}

impl RfcSender {
    pub(super) fn new(parameters: RfcParameters) -> RfcSender {
        RfcSender {
            parameters,
            allowed: parameters.start.unwrap_or(parameters.mss), // [4.2] s bytes per second
            rtt: None,
            sqmean_rtt: 0.0,
            latest_rtt: 0.0,
            received: ReceiveSet::of(Time::ZERO, f64::INFINITY),
            last_doubled: Time::ZERO,
            loss_event_rate: 0.0,
            connections: 1.0,
            equation_rate: f64::INFINITY,
            segment: parameters.mss,
            spacing: 0.0,
            ramp: None,
            no_feedback_at: None,
        }
    }

    /// initial_rate, and recover_rate [RFC 5348, 4.2 and 4.4].
    fn initial_rate(&self, rtt: f64) -> f64 {
        initial_rate(self.parameters.mss, rtt)
    }

    fn least(&self) -> f64 {
        self.segment / T_MBI
    }

    /// RTO [RFC 5348, 4.3, step 3], and how long the nofeedback timer runs when it was restarted [4.4, step 2].
    fn timeout(&self) -> f64 {
        let rtt = self.rtt.unwrap_or(0.0);
        overdue_after((4.0 * rtt).max(2.0 * self.segment / self.allowed), rtt, self.spacing)
    }

    /// The last part of step 4 of section 4.3.
    fn set_allowed(&mut self, now: Time, limit: f64, max: f64) {
        let Some(rtt) = self.rtt else { return };
        // The first entry of X_recv_set is infinite: without a limit a p next to nothing would allow any rate.
        let limit = if limit.is_finite() { limit } else { 2.0 * self.allowed };
        if self.loss_event_rate > 0.0 {
            let one = Equation::rfc(self.segment, rtt).bytes_per_second(self.loss_event_rate);
            self.equation_rate = self.connections * one;
            self.allowed = self.equation_rate.min(limit).max(self.least());
            if let Some((from, since)) = self.ramp {
                let risen = from + self.segment / rtt * ((now - since).as_secs_f64() / rtt);
                self.ramp = (risen < self.allowed).then_some((risen, now));
                self.allowed = self.allowed.min(risen).max(self.least());
            }
        } else if (now - self.last_doubled).as_secs_f64() >= rtt {
            self.allowed = (2.0 * self.allowed).min(limit).max(self.initial_rate(rtt));
            self.last_doubled = now;
        }
        self.allowed = self.allowed.min(max);
    }
}

impl Law for RfcSender {
    fn on_feedback(&mut self, now: Time, facts: &Facts) {
        (self.segment, self.spacing) = (facts.segment, facts.spacing);
        (self.loss_event_rate, self.connections) = (facts.loss_event_rate, facts.times);
        let q = self.parameters.memory;
        let first = self.rtt.is_none();
        if let Some(sample) = facts.rtt {
            // Steps 1 and 2, and R_sqmean of section 4.5.
            self.latest_rtt = sample;
            let root = libm::sqrt(sample);
            // q R + (1 - q) R_sample, so written that a constant stays one.
            self.rtt = Some(self.rtt.map_or(sample, |rtt| rtt + (1.0 - q) * (sample - rtt)));
            self.sqmean_rtt =
                if first { root } else { self.sqmean_rtt + (1.0 - q) * (root - self.sqmean_rtt) };
        }
        let Some(rtt) = self.rtt else {
            self.no_feedback_at = Some(now + FIRST_TIMER);
            return;
        };
        if first {
            // [4.2] in place of step 4.
            self.allowed = self.initial_rate(rtt).max(self.parameters.start.unwrap_or(0.0)).min(facts.max);
            self.last_doubled = now;
            self.received = ReceiveSet::of(now, f64::INFINITY);
            if self.loss_event_rate > 0.0 {
                self.set_allowed(now, self.allowed, facts.max);
            }
        } else {
            // Step 4.
            let limit = match facts.received {
                // Without reports of arrivals the rate does not rise.
                None if self.received.max().is_infinite() => self.allowed,
                None => 2.0 * self.received.max(),
                Some(received) if facts.data_limited && facts.worse => {
                    self.received.halve();
                    self.received.maximize(now, 0.85 * received);
                    self.received.max()
                }
                Some(received) if facts.data_limited => {
                    self.received.maximize(now, received);
                    2.0 * self.received.max()
                }
                Some(received) => {
                    self.received.update(now, received, rtt);
                    2.0 * self.received.max()
                }
            };
            // p is next to nothing where a classifier took most losses out of it, and says what the path carries only after several
            // loss events, each a full queue's round-trip time: X is what arrives, and rises as TCP would.
            let few =
                |received: &f64| facts.sifted && !facts.data_limited && *received < STEP_DOWN * self.allowed;
            if let Some(received) = facts.received.filter(few) {
                self.ramp = Some((received, now));
            }
            self.set_allowed(now, limit, facts.max);
        }
        self.no_feedback_at = Some(after(now, self.timeout())); // steps 3 and 6
    }

    fn on_no_feedback(&mut self, now: Time, idle: bool) {
        // [RFC 5348, 4.4]
        let received = self.received.max();
        let lossy = self.loss_event_rate > 0.0;
        let recovering = |rtt: f64| {
            let recover = self.initial_rate(rtt);
            if lossy { received < recover } else { self.allowed < 2.0 * recover }
        };
        match self.rtt {
            // Nothing was sent that could have been answered.
            None if idle => {}
            Some(rtt) if idle && recovering(rtt) => {}
            // Without a round-trip time there is neither X_recv nor X_Bps to go by.
            _ if !lossy || self.rtt.is_none() => self.allowed = (self.allowed / 2.0).max(self.least()),
            _ => {
                // Update_Limits(): of X_recv where twice that was the limit, else of X_Bps / 2.
                let limit =
                    if self.equation_rate > 2.0 * received { received } else { self.equation_rate / 2.0 };
                let limit = limit.max(self.least());
                self.received = ReceiveSet::of(now, limit / 2.0);
                self.set_allowed(now, limit, f64::INFINITY);
            }
        }
        let seconds =
            if self.rtt.is_some() { self.timeout() } else { self.timeout().max(FIRST_TIMER.as_secs_f64()) };
        self.no_feedback_at = Some(after(now, seconds));
    }

    fn no_feedback_at(&self) -> Option<Time> {
        self.no_feedback_at
    }

    fn start(&mut self, now: Time) {
        self.no_feedback_at.get_or_insert(now + FIRST_TIMER);
    }

    fn rtt(&self) -> Option<f64> {
        self.rtt
    }

    fn allowed(&self) -> f64 {
        self.allowed
    }

    fn instantaneous(&self) -> f64 {
        if !self.parameters.steady || self.latest_rtt <= 0.0 {
            return self.allowed;
        }
        // [RFC 5348, 4.5]
        (self.allowed * self.sqmean_rtt / libm::sqrt(self.latest_rtt)).max(self.least())
    }

    fn telemetry(&self, visitor: &mut dyn Visitor) {
        visitor
            .state("phase", if self.loss_event_rate > 0.0 { "congestion avoidance" } else { "slow start" });
        if self.equation_rate.is_finite() {
            visitor.number("rate of the equation", "bit/s", 8.0 * self.equation_rate);
        }
    }

    fn clone_box(&self) -> Box<dyn Law> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const R: f64 = 0.1;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn facts(received: f64, p: f64) -> Facts {
        Facts {
            rtt: Some(R),
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

    fn sender() -> RfcSender {
        RfcSender::new(RfcParameters { memory: 0.9, steady: true, mss: 1000.0, start: None })
    }

    /// Told so many milliseconds after the start; the allowed rate.
    fn told(sender: &mut RfcSender, ms: u64, facts: &Facts) -> f64 {
        sender.on_feedback(at(ms), facts);
        sender.allowed()
    }

    #[test]
    fn it_starts_with_a_segment_per_second_and_then_four_per_round_trip() {
        let mut s = sender();
        assert_eq!(s.allowed(), 1000.0);
        s.start(at(0));
        assert_eq!(s.no_feedback_at(), Some(at(2_000)));
        // W_init = min(4000, max(2000, 4380)) = 4000; the timer runs max(4 R, 2 s / X) = 400 ms.
        assert!((told(&mut s, 100, &facts(0.0, 0.0)) - 40_000.0).abs() < 1e-6);
        assert_eq!(s.no_feedback_at(), Some(at(500)));
        assert_eq!((initial_rate(1460.0, 1.0), initial_rate(3000.0, 1.0)), (4380.0, 6000.0));
        assert_eq!(initial_rate(1000.0, 1e-9), 4_000_000.0);
    }

    /// Doubled once per round-trip time, to at most twice what arrives; the first two round trips know no limit.
    #[test]
    fn slow_start_doubles() {
        let mut s = sender();
        told(&mut s, 100, &facts(0.0, 0.0));
        assert_eq!(told(&mut s, 150, &facts(10_000.0, 0.0)), 40_000.0);
        assert_eq!(told(&mut s, 200, &facts(10_000.0, 0.0)), 80_000.0);
        // The unlimited entry is as old as two round trips at 300 ms, and older at 310.
        assert_eq!(told(&mut s, 310, &facts(70_000.0, 0.0)), 140_000.0);
        assert_eq!(told(&mut s, 410, &facts(75_000.0, 0.0)), 150_000.0);
    }

    /// X_Bps at 1 % and 100 ms is 1000 / (0.1 * 0.0890220) = 112,332 B/s.
    #[test]
    fn the_equation_and_what_arrives_bound_the_rate() {
        let mut s = sender();
        told(&mut s, 100, &facts(0.0, 0.0));
        told(&mut s, 400, &facts(100_000.0, 0.0));
        assert!((told(&mut s, 500, &facts(100_000.0, 0.01)) - 112_332.0).abs() < 1.0);
        assert!((told(&mut s, 800, &facts(50_000.0, 0.01)) - 100_000.0).abs() < 1e-6);
        // p = 1 at 100 ms gives 41 B/s; a segment in 64 s is 15.6.
        assert!((told(&mut s, 900, &facts(50_000.0, 1.0)) - 1000.0 / 24.331_598).abs() < 0.01);
    }

    /// [4.3] In a data-limited interval the highest entry stays; with a loss, half of it or 0.85 of what arrives is the limit.
    #[test]
    fn a_data_limited_interval_keeps_what_was_received_before() {
        let limited = |received, worse, p| Facts { data_limited: true, worse, ..facts(received, p) };
        let mut s = sender();
        told(&mut s, 100, &facts(0.0, 0.0));
        told(&mut s, 400, &facts(60_000.0, 0.001));
        assert!((told(&mut s, 800, &limited(1_000.0, false, 0.001)) - 120_000.0).abs() < 1e-6);
        assert!((told(&mut s, 1_200, &limited(1_000.0, true, 0.001)) - 30_000.0).abs() < 1e-6);
        assert!((told(&mut s, 1_600, &limited(100_000.0, true, 0.001)) - 85_000.0).abs() < 1e-6);
    }

    #[test]
    fn silence_halves_the_rate() {
        // Before any feedback, and not for an idle sender.
        let mut s = sender();
        s.on_no_feedback(at(2_000), true);
        assert_eq!(s.allowed(), 1000.0);
        s.on_no_feedback(at(4_000), false);
        assert_eq!((s.allowed(), s.no_feedback_at()), (500.0, Some(at(8_000))));
        // Losses, and no round-trip time yet.
        let mut lossy = sender();
        lossy.on_feedback(at(100), &Facts { rtt: None, ..facts(0.0, 0.1) });
        lossy.on_no_feedback(at(2_100), false);
        assert_eq!(lossy.allowed(), 500.0);
        // In slow start, and never below a segment in 64 s.
        told(&mut s, 4_100, &facts(0.0, 0.0));
        s.on_no_feedback(at(4_500), false);
        assert_eq!((s.allowed(), s.no_feedback_at()), (20_000.0, Some(at(4_900))));
        (0..40).for_each(|_| s.on_no_feedback(at(5_000), false));
        assert_eq!((s.allowed(), s.no_feedback_at()), (1000.0 / 64.0, Some(at(133_000))));
    }

    #[test]
    fn silence_limits_what_was_received_once_there_were_losses() {
        // Limited by the equation, 112 kB/s: X_Bps / 2, and then X_recv, which is a quarter of that.
        let mut s = sender();
        told(&mut s, 100, &facts(0.0, 0.0));
        told(&mut s, 500, &facts(100_000.0, 0.01));
        s.on_no_feedback(at(900), false);
        assert!((s.allowed() - 56_166.0).abs() < 1.0);
        s.on_no_feedback(at(1_300), false);
        assert!((s.allowed() - 28_083.0).abs() < 1.0);
        // Feedback without losses may double it in a round-trip time.
        assert!((told(&mut s, 1_400, &facts(28_000.0, 0.01)) - 56_000.0).abs() < 1.0);
    }

    /// recover_rate is 40 kB/s: an idle sender keeps what is below it (p > 0) or below twice that (p = 0).
    #[test]
    fn an_idle_sender_keeps_a_window() {
        let mut s = sender();
        told(&mut s, 100, &facts(0.0, 0.0));
        told(&mut s, 200, &facts(40_000.0, 0.0));
        s.on_no_feedback(at(600), true);
        assert_eq!(s.allowed(), 40_000.0);
        s.on_no_feedback(at(1_000), true);
        assert_eq!(s.allowed(), 40_000.0);
        let mut s = sender();
        told(&mut s, 100, &facts(0.0, 0.0));
        told(&mut s, 500, &facts(30_000.0, 0.001));
        s.on_no_feedback(at(900), true);
        assert_eq!(s.allowed(), 60_000.0);
    }

    /// [4.5] A sample of twice the long-term mean takes a factor of 1.31 off: R_sqmean = 0.9 sqrt(.1) + 0.1 sqrt(.2).
    #[test]
    fn the_rate_gives_way_while_the_queue_grows() {
        let mut s = sender();
        told(&mut s, 100, &facts(0.0, 0.0));
        assert!((s.instantaneous() / s.allowed() - 1.0).abs() < 1e-12);
        told(&mut s, 200, &Facts { rtt: Some(0.2), ..facts(10_000.0, 0.0) });
        assert!((s.instantaneous() / s.allowed() - (0.9 / libm::sqrt(2.0) + 0.1)).abs() < 1e-12);
        assert!((s.rtt().unwrap() - 0.11).abs() < 1e-12);
    }
}
