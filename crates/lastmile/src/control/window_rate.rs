//! A rate from a congestion window's law: the window in a round-trip time, spread over it.
//!
//! The laws are those of [`window`](super::window), which the simulator's TCP follows too. Losses of packets that were sent
//! before a decrease took effect belong to the congestion that caused it (RFC 5681, section 3.2); where feedback stops, the rate
//! halves with each timeout, after the law's own answer to the first.

use super::window::{Acked, Congestion, MIN_SSTHRESH, Window, WindowLaw};
use super::{
    Decision, Fate, Feedback, Flow, News, Output, RateController, Report, RouteChange, Sent, Setting, Signal,
};
use crate::classify::LossClass;
use crate::node::Ecn;
use crate::telemetry::Visitor;
use crate::time::{Span, Time};
use crate::units::{Bytes, Rate};

/// Conversion of a window into a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shape {
    /// The gap between packets follows the round-trip time [RAP].
    pub(super) fine_grain: bool,
    /// A fraction of a packet in the window counts; TCP sends whole packets.
    pub(super) fractions: bool,
    /// Beyond slow start the window grows once in each round-trip time, by the clock [RAP]; TCP's grows by what is acknowledged,
    /// and not in the round after a decrease.
    pub(super) clocked: bool,
}

/// A window's law at work as a rate.
#[derive(Clone, Debug)]
pub(super) struct WindowRate {
    law: Box<dyn WindowLaw>,
    window: Window,
    /// Short and long averages of the round-trip time, in seconds; both with RAP's fine grain, else the first alone.
    rtt: Option<(f64, f64)>,
    shape: Shape,
    /// Bytes that left and were not told of in sums, where the host tells of sending: no more can have arrived.
    unacked_bytes: u64,
    /// A packet sent at that time or later ends the round.
    round_start: Time,
    /// When a window that grows by the clock grew last, or was cut.
    grown: Time,
    /// Factor by which silence has lowered the rate.
    backoff: f64,
    flow: Flow,
}

impl WindowRate {
    pub(super) fn new(law: Box<dyn WindowLaw>, shape: Shape, setting: &Setting) -> WindowRate {
        let flow = Flow::new(setting);
        WindowRate {
            law,
            window: Window::new(flow.initial_window() / flow.full_size()),
            rtt: None,
            shape,
            unacked_bytes: 0,
            round_start: Time::ZERO,
            grown: Time::ZERO,
            backoff: 1.0,
            flow,
        }
    }

    /// IP bytes a second.
    fn bytes_per_second(&self) -> f64 {
        let rate = match self.rtt {
            None => self.flow.start_rate().unwrap_or(self.flow.packet_size()),
            Some((short, long)) => {
                // [RAP] the gap between packets is multiplied by the short average over the long one.
                let fine = if self.shape.fine_grain { long / short } else { 1.0 };
                let packets =
                    if self.shape.fractions { self.window.cwnd } else { libm::floor(self.window.cwnd) };
                packets * self.flow.packet_size() / short * fine
            }
        };
        (rate / self.backoff).max(self.flow.slowest_rate())
    }

    fn rate(&self) -> Rate {
        self.flow.rate(self.bytes_per_second())
    }

    fn on_rtt(&mut self, sample: Span) {
        let sample = sample.as_secs_f64();
        self.rtt = Some(match self.rtt {
            None => {
                // A start that the user chose is a window in this round-trip time.
                if let Some(start) = self.flow.start_rate() {
                    let window = start * sample / self.flow.packet_size();
                    self.window.cwnd = self.window.cwnd.max(window);
                }
                (sample, sample)
            }
            // RFC 6298's weight; the long one is RAP's.
            Some((short, long)) => (short + (sample - short) / 8.0, long + (sample - long) / 100.0),
        });
    }

    /// More than this is never sent, so that the window need not grow beyond.
    fn bound(&mut self) {
        let Some((rtt, _)) = self.rtt else { return };
        let most = (self.flow.max_rate() * rtt / self.flow.packet_size()).max(1.0);
        self.window.cwnd = self.window.cwnd.min(most).max(1.0);
    }

    fn delivered(&mut self, sent: &Sent, segments: f64, rtt: Option<Span>) {
        self.law.on_delivered(segments, rtt, self.flow.now());
        let round_ended = sent.at >= self.round_start;
        if round_ended {
            self.round_start = self.flow.now();
        }
        if self.shape.clocked && !self.window.in_slow_start() {
            return self.grow_by_clock(sent.app_limited);
        }
        self.grown = self.flow.now();
        if !self.flow.in_recovery(sent.at) && !sent.app_limited {
            self.law.on_ack(&mut self.window, &Acked { segments, rtt, now: self.flow.now(), round_ended });
            self.bound();
        }
    }

    /// [RAP] An increase in each smoothed round-trip time, while packets arrive and the sources fill the rate. Feedback may be further
    /// apart than that; the no-feedback timer bounds its distance.
    fn grow_by_clock(&mut self, app_limited: bool) {
        let now = self.flow.now();
        if app_limited {
            self.grown = now;
        }
        let Some((rtt, _)) = self.rtt else { return };
        let rounds = libm::floor((now - self.grown).as_secs_f64() / rtt.max(1e-9));
        if rounds >= 1.0 {
            self.grown += Span::from_secs_f64(rounds * rtt);
            let segments = rounds * self.window.cwnd;
            self.law.on_ack(&mut self.window, &Acked { segments, rtt: None, now, round_ended: true });
            self.bound();
        }
    }

    fn congested(&mut self, sent_at: Time, how: Congestion) {
        if !self.flow.begin_recovery(sent_at) {
            return;
        }
        self.grown = self.flow.now();
        let first = self.window.ssthresh.is_infinite();
        self.law.on_congestion(&mut self.window, how, self.flow.now());
        self.bound();
        if first {
            self.flow.decide(Decision::SlowStartEnded { rate: self.rate() });
        }
    }
}

impl RateController for WindowRate {
    fn on_sent(&mut self, now: Time, sent: &Sent) {
        self.unacked_bytes = self.unacked_bytes.saturating_add(sent.size.0);
        self.flow.on_sent(now, sent);
        self.flow.expect_feedback(self.rtt.map(|rtt| rtt.0), self.bytes_per_second());
    }

    fn on_feedback(&mut self, now: Time, feedback: &mut Feedback<'_>) {
        self.flow.on_feedback(now);
        let rtt = self.flow.round_trip(feedback);
        rtt.into_iter().for_each(|sample| self.on_rtt(sample));
        let mut heard = false;
        for i in 0..feedback.reports.len() {
            let Report { sent, fate } = feedback.reports[i];
            let news = self.flow.on_report(&sent);
            match fate {
                _ if news == News::NeverSent => {}
                Fate::Arrived { ecn, .. } if news == News::New => {
                    heard = true;
                    if feedback.receiver.is_none() {
                        self.delivered(&sent, 1.0, rtt);
                    }
                    if ecn == Ecn::Ce {
                        self.congested(sent.at, Congestion::Ecn);
                    }
                }
                Fate::Lost { class: LossClass::Congestion, .. } => {
                    self.congested(sent.at, Congestion::DupAcks)
                }
                _ => {}
            }
        }
        if let Some(summary) = feedback.receiver {
            // Sums alone: as many segments as these bytes, and one congestion in a round-trip time.
            let at = self.rtt.map_or(self.flow.now(), |rtt| self.flow.now() - Span::from_secs_f64(rtt.0));
            let sends = self.flow.tells_of_sending();
            let came = if sends { summary.received.0.min(self.unacked_bytes) } else { summary.received.0 };
            self.unacked_bytes -= came.min(self.unacked_bytes);
            let sent = Sent::media(0, Bytes(came), at);
            heard |= came > 0;
            self.delivered(&sent, (came as f64 / self.flow.packet_size()).min(1e6), rtt);
            if summary.loss_event_rate > 0.0 {
                self.congested(at, Congestion::DupAcks);
            }
        }
        if heard {
            self.backoff = 1.0;
            self.flow.restart(self.rtt.map(|rtt| rtt.0), self.bytes_per_second());
        } else {
            self.flow.expect_feedback(self.rtt.map(|rtt| rtt.0), self.bytes_per_second());
        }
    }

    fn on_signal(&mut self, now: Time, signal: Signal) {
        self.flow.on_signal(now, signal);
        match signal {
            Signal::PersistentCongestion => self.congested(self.flow.now(), Congestion::Timeout),
            Signal::Route { why: RouteChange::MoreCapacity } => self.window.ssthresh = f64::INFINITY,
            // Packets in flight are of the old path: their window says nothing of this one, and some laws would take minutes to cut it.
            Signal::Route { why: RouteChange::LessCapacity } => {
                self.window.reduce_to(MIN_SSTHRESH, Congestion::Timeout);
                self.flow.begin_recovery(self.flow.now());
            }
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.flow.poll_timeout()
    }

    fn on_timeout(&mut self, now: Time) {
        if !self.flow.is_overdue(now) {
            return;
        }
        if self.backoff == 1.0 && self.rtt.is_some() {
            self.congested(self.flow.now(), Congestion::Timeout);
        }
        self.grown = self.flow.now();
        // 2^20 is far below a packet in 64 s, whatever the rate was.
        self.backoff = (self.backoff * 2.0).min(1_048_576.0);
        self.flow.no_feedback(self.rtt.map(|rtt| rtt.0), self.bytes_per_second());
    }

    fn poll_decision(&mut self) -> Option<Decision> {
        self.flow.poll_decision()
    }

    fn output(&self) -> Output {
        Output::rate(self.rate())
    }

    fn telemetry(&self, visitor: &mut dyn Visitor) {
        visitor.number("rate", "bit/s", self.rate().bits_per_second() as f64);
        visitor.number("window", "packets", self.window.cwnd);
        self.rtt.into_iter().for_each(|rtt| visitor.number("round-trip time", "s", rtt.0));
        visitor
            .state("phase", if self.window.in_slow_start() { "slow start" } else { "congestion avoidance" });
    }

    fn clone_box(&self) -> Box<dyn RateController> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::super::window::{Reno, RenoConfig};
    use super::super::{LostBy, Summary};
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// Packets of 1000 B that were sent at these times, told of 100 ms after the last; those named are lost.
    fn told(controller: &mut WindowRate, first: u64, sent: &[u64], lost: &[u64]) {
        let now = at(sent.last().unwrap() + 100);
        let report = |(k, ms): (usize, &u64)| {
            let id = first + k as u64;
            let fate = match lost.contains(&id) {
                true => Fate::lost(LostBy::Gap),
                false => Fate::Arrived { at: None, ecn: Ecn::NotEct },
            };
            Report { sent: Sent::media(id, Bytes(1000), at(*ms)), fate }
        };
        let mut reports: Vec<Report> = sent.iter().enumerate().map(report).collect();
        let mut feedback = Feedback::exact(&mut reports, None);
        feedback.resolution = None;
        controller.on_feedback(now, &mut feedback);
    }

    fn reno() -> WindowRate {
        let setting = Setting { packet_size: Bytes(1000), ..Setting::default() };
        WindowRate::new(Box::new(Reno::new(RenoConfig::default())), Shape::default(), &setting)
    }

    /// 1000 B in a second, then 4 packets in 100 ms, one more for each that arrives.
    #[test]
    fn a_window_is_spread_over_a_round_trip() {
        let mut c = reno();
        assert_eq!(c.output().target, Rate::ip(8_000));
        told(&mut c, 0, &[0], &[]);
        assert_eq!(c.output().target, Rate::ip(5 * 80_000));
        told(&mut c, 1, &[100, 100, 100, 100, 100], &[]);
        assert_eq!(c.output().target, Rate::ip(10 * 80_000));
    }

    #[test]
    fn losses_of_one_window_halve_it_once() {
        let mut c = reno();
        told(&mut c, 0, &[0; 7], &[]);
        assert_eq!(c.window.cwnd, 11.0);
        told(&mut c, 7, &[50, 50, 50, 50], &[7, 9]);
        let halved = c.window.cwnd;
        assert_eq!(halved, 5.5);
        // Sent before the decrease was known, at 150 ms.
        told(&mut c, 11, &[120, 149], &[11, 12]);
        assert_eq!(c.window.cwnd, halved);
        told(&mut c, 13, &[160, 160], &[13]);
        assert!(c.window.cwnd < halved);
    }

    #[test]
    fn wireless_losses_and_idle_sources_change_nothing() {
        let mut c = reno();
        told(&mut c, 0, &[0; 4], &[]);
        let before = c.window;
        let lost = Fate::Lost { by: LostBy::Gap, class: LossClass::Wireless };
        let limited = Sent { app_limited: true, ..Sent::media(5, Bytes(1000), at(100)) };
        let came = Fate::Arrived { at: None, ecn: Ecn::NotEct };
        let mut reports = [
            Report { sent: Sent::media(4, Bytes(1000), at(100)), fate: lost },
            Report { sent: limited, fate: came },
        ];
        c.on_feedback(at(200), &mut Feedback::exact(&mut reports, None));
        assert_eq!(c.window, before);
    }

    /// A packet of 1000 B leaves every 8 ms, and six are told of 40 ms after the last of them left. A peer that says that it held this back
    /// for nearly all of the time is sent 5/3 of what an honest one is, not the window in what is left of the time; one that tells in
    /// sums of more than ever left gains nothing by it.
    #[test]
    fn a_peer_that_lies_about_its_feedback_gains_little() {
        let rate = |hold: Span, sums: Option<u64>| {
            let mut c = reno();
            for round in 0..40_u64 {
                let sent = |k: u64| Sent::media(6 * round + k, Bytes(1000), at(50 * round + 8 * k));
                (0..6).for_each(|k| c.on_sent(sent(k).at, &sent(k)));
                let fate = Fate::Arrived { at: None, ecn: Ecn::NotEct };
                let mut reports: Vec<Report> = (0..6).map(|k| Report { sent: sent(k), fate }).collect();
                let told = if sums.is_some() { &mut reports[5..] } else { &mut reports[..] };
                let mut feedback = Feedback { hold, ..Feedback::exact(told, None) };
                feedback.receiver = sums.map(|bytes| Summary {
                    received: Bytes(bytes),
                    over: Span::from_millis(50),
                    loss_event_rate: 0.0,
                });
                c.on_feedback(at(50 * round + 80), &mut feedback);
            }
            c.output().pacing.bits_per_second() as f64
        };
        let lies = [1, 1_000, 20_000].map(|micros| Span::from_millis(40) - Span::from_micros(micros));
        for sums in [None, Some(6_000)] {
            let honest = rate(Span::ZERO, sums);
            assert!(lies.iter().all(|lie| rate(*lie, sums) <= 1.667 * honest), "{sums:?}: {honest}");
        }
        assert_eq!(rate(Span::ZERO, Some(1 << 32)), rate(Span::ZERO, Some(6_000)));
    }
}
