//! MULTFRC: as many TFRC connections as leave no queue, so that losses of a wireless link cost nothing.
//!
//! Chen, Zakhor, "Rate control for streaming video over wireless", INFOCOM 2004, and IEEE Trans. Multimedia 8(5), 2006. Their
//! text was not at hand: the rule and its constants are recalled. `docs/rate-control.md` has the open points. MULTFRC is not
//! the IRTF's MulTFRC, which weighs a single flow.
//!
//! The connections share one stream of packets and all that TFRC knows but their loss histories (`tfrc/connections.rs`).

use super::tfrc::{LOSS_HISTORY, Preset, Tfrc, TfrcConfig};
use super::{
    Action, Controller, Decision, Fate, Feedback, Information, Made, Output, RateController, Report, Sent,
    Setting, Signal,
};
use crate::options::{Given, Options};
use crate::telemetry::Visitor;
use crate::time::{Span, Time};

/// Connections at most, by default.
const MOST: u32 = 32;

/// Bytes of loss history with the defaults, beside the state of 4 kB that every controller has.
pub const HISTORY: usize = MOST as usize * LOSS_HISTORY;

crate::options! {
    /// MULTFRC's parameters.
    pub struct MultfrcConfig {
        /// Connections more after a window without a queue, divided by how many there are
        alpha: f64 [0.0..=100.0] = 1.0, "Chen, Zakhor: 1 (recalled)";
        /// Connections less after a window with a queue
        beta: f64 [0.0..=100.0] = 1.0, "Chen, Zakhor: 1 (recalled)";
        /// The share of the least round-trip time by which a longer one shows a queue
        gamma: f64 [0.0..=100.0] = 0.2, "Chen, Zakhor: 0.2 (recalled)";
        /// Round-trip times over which the mean round-trip time is taken
        window: u32 [1..=1_000] = 8, "our own: theirs is not at hand";
        /// Connections at most; each has a loss history of about 1 kB
        most: u32 [1..=64] = MOST, "our own";
        /// Count fractions of a connection in the rate too: without, it changes by a whole one
        fractions: bool = false, "our own; Chen, Zakhor, ICC 2005 (AIO-TFRC), call whole ones the quantization effect";
        /// TFRC of RFC 5348, or of ns-2
        preset: Preset = Preset::Rfc, "RFC 5348; ns-2 2.35";
    }
}

/// Its place in the registry.
pub const ENTRY: Controller = Controller {
    name: "multfrc",
    about: "several TFRC connections in one: one more while there is no queue, one less while there is",
    paper: "Chen, Zakhor, INFOCOM 2004",
    classifier: None,
    needs: Information::Fates,
    below: "without round-trip times it is tfrc; the fraction lost of receiver reports counts for each connection",
    options: MultfrcConfig::OPTIONS,
    make: |given: &Given, setting| -> Made {
        Ok(Box::new(Multfrc::new(MultfrcConfig::read(given)?, setting)))
    },
};

/// Round-trip times that were measured since the number of connections was decided on.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    /// When the one before ended; none before the first of them.
    start: Option<Time>,
    /// Their sum in seconds, and their number.
    rtt_sum: f64,
    samples: u32,
    /// The sources filled the rate: the window shows if there is room for more.
    filled: bool,
}

/// MULTFRC's state.
#[derive(Clone, Debug)]
struct Multfrc {
    config: MultfrcConfig,
    tfrc: Tfrc,
    /// n; of its whole part there are connections.
    n: f64,
    /// rtt_min, in seconds.
    min_rtt: f64,
    window: Window,
    /// Never backwards.
    now: Time,
}

impl Multfrc {
    fn new(config: MultfrcConfig, setting: &Setting) -> Multfrc {
        let of_each = TfrcConfig { preset: config.preset, ..TfrcConfig::default() };
        Multfrc {
            tfrc: Tfrc::several(&of_each, setting, config.most as usize),
            config,
            n: 1.0,
            min_rtt: f64::INFINITY,
            window: Window::default(),
            now: Time::ZERO,
        }
    }

    /// The round-trip time measurement: a mean in each window.
    fn measure(&mut self, sample: Span, feedback: &Feedback<'_>) {
        let seconds = sample.as_secs_f64();
        self.min_rtt = self.min_rtt.min(seconds);
        let fills = |report: &Report| matches!(report.fate, Fate::Arrived { .. }) && !report.sent.app_limited;
        let window = &mut self.window;
        let began = *window.start.get_or_insert(self.now);
        (window.rtt_sum, window.samples) = (window.rtt_sum + seconds, window.samples.saturating_add(1));
        window.filled |= feedback.reports.iter().any(fills);
        let round = self.tfrc.rtt().unwrap_or(seconds);
        if (self.now - began).as_secs_f64() >= f64::from(self.config.window) * round {
            self.decide(feedback.resolution.unwrap_or(Span::ZERO));
        }
    }

    /// The connection controller: inversely increase, additively decrease. A delay within the stamps' resolution is no queue.
    fn decide(&mut self, resolution: Span) {
        let MultfrcConfig { alpha, beta, gamma, .. } = self.config;
        let next = Window { start: Some(self.now), ..Window::default() };
        let Window { rtt_sum, samples, filled, .. } = core::mem::replace(&mut self.window, next);
        let queue = rtt_sum / f64::from(samples.max(1)) - self.min_rtt;
        if queue > gamma * self.min_rtt + resolution.as_secs_f64() {
            self.set(self.n - beta);
        } else if filled {
            self.set(self.n + alpha / self.n);
        }
    }

    fn set(&mut self, n: f64) {
        self.n = n.clamp(1.0, f64::from(self.config.most));
        let whole = libm::floor(self.n);
        self.tfrc.connect(whole as usize, if self.config.fractions { self.n / whole } else { 1.0 });
    }
}

impl RateController for Multfrc {
    fn on_sent(&mut self, now: Time, sent: &Sent) {
        self.tfrc.on_sent(now, sent);
    }

    fn on_feedback(&mut self, now: Time, feedback: &mut Feedback<'_>) {
        self.now = self.now.max(now);
        if let Some(sample) = feedback.rtt(self.now) {
            self.measure(sample, feedback);
        }
        self.tfrc.on_feedback(now, feedback);
    }

    fn on_signal(&mut self, now: Time, signal: Signal) {
        if let Signal::Route { .. } = signal {
            (self.min_rtt, self.window) = (f64::INFINITY, Window::default());
        }
        self.tfrc.on_signal(now, signal);
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.tfrc.poll_timeout()
    }

    fn on_timeout(&mut self, now: Time) {
        if self.tfrc.poll_timeout().is_some_and(|at| at <= now) {
            // A path that tells nothing is no path without a queue.
            self.window = Window::default();
            self.set(self.n - self.config.beta);
        }
        self.tfrc.on_timeout(now);
    }

    fn poll_action(&mut self) -> Option<Action> {
        self.tfrc.poll_action()
    }

    fn poll_decision(&mut self) -> Option<Decision> {
        self.tfrc.poll_decision()
    }

    fn output(&self) -> Output {
        self.tfrc.output()
    }

    fn telemetry(&self, visitor: &mut dyn Visitor) {
        visitor.number("connections", "", self.n);
        self.tfrc.telemetry(visitor);
    }

    fn clone_box(&self) -> Box<dyn RateController> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::super::RouteChange;
    use super::*;
    use crate::units::Bytes;

    fn multfrc(options: &str) -> Multfrc {
        let given =
            format!("multfrc(window=1, {options})").parse::<crate::options::Choice>().unwrap().options;
        Multfrc::new(
            MultfrcConfig::read(&given).unwrap(),
            &Setting { packet_size: Bytes(1000), ..Setting::default() },
        )
    }

    /// Rounds of ten packets and one feedback, with these round-trip times in milliseconds; n after each.
    fn rounds(m: &mut Multfrc, rtts: &[i64], app_limited: bool) -> Vec<f64> {
        let round = |&rtt: &i64| {
            let sent_at = m.now + Span::from_millis(1);
            let heard = sent_at + Span::from_millis(rtt);
            let report = |k| {
                let sent = Sent { app_limited, ..Sent::media(sent_at.as_nanos() + k, Bytes(1000), sent_at) };
                m.on_sent(sent_at, &sent);
                Report { sent, fate: Fate::arrived(heard.as_receiver()) }
            };
            let mut reports: Vec<Report> = (0..10).map(report).collect();
            m.on_feedback(heard, &mut Feedback::exact(&mut reports, None));
            m.n
        };
        rtts.iter().map(round).collect()
    }

    /// The first round begins the first window. Then 1 + 1/1, 2 + 1/2, 2.5 + 1/2.5; 60 ms are no queue at 0.2 of 50 ms, 62 are.
    #[test]
    fn connections_come_ever_slower_without_a_queue_and_go_one_by_one_with_one() {
        let mut m = multfrc("");
        assert_eq!(rounds(&mut m, &[50; 4], false), [1.0, 2.0, 2.5, 2.9]);
        let most = 2.9 + 1.0 / 2.9;
        assert_eq!(rounds(&mut m, &[60, 62, 62, 62], false), [most, most - 1.0, most - 2.0, 1.0]);
        // A mean: of 50 and 62 ms it is 56.
        let mut m = multfrc("window=2");
        assert_eq!(rounds(&mut m, &[50, 62, 62, 50, 62], false), [1.0, 1.0, 2.0, 2.0, 2.5]);
        // No more than the most, and no more than the sources can fill.
        let mut m = multfrc("most=2");
        assert_eq!(rounds(&mut m, &[50; 5], false), [1.0, 2.0, 2.0, 2.0, 2.0]);
        assert_eq!(rounds(&mut multfrc(""), &[50; 5], true), [1.0; 5]);
    }

    #[test]
    fn on_another_route_another_round_trip_is_the_least() {
        let mut m = multfrc("");
        rounds(&mut m, &[50; 4], false);
        m.on_signal(m.now, Signal::Route { why: RouteChange::Handover });
        assert_eq!(rounds(&mut m, &[90, 90], false), [2.9, 2.9 + 1.0 / 2.9]);
    }

    #[test]
    fn silence_closes_connections_too() {
        let mut m = multfrc("");
        rounds(&mut m, &[50; 4], false);
        m.on_timeout(m.now);
        assert_eq!(m.n, 2.9);
        let at = m.poll_timeout().unwrap();
        m.on_timeout(at);
        assert_eq!(m.n, 1.9);
    }

    /// Stamps of 20 ms cannot tell a queue of 12.
    #[test]
    fn what_stamps_cannot_tell_is_no_queue() {
        for (resolution, n) in [(Span::from_millis(1), 1.0), (Span::from_millis(20), 2.0)] {
            let mut m = multfrc("");
            (m.min_rtt, m.n, m.window) =
                (0.05, 1.0, Window { rtt_sum: 0.062, samples: 1, filled: true, start: None });
            m.decide(resolution);
            assert_eq!(m.n, n);
        }
    }
}
