//! LEDBAT, a controller of one's own beside those of the program: `cargo run -p lastmile-cli --example ledbat -- controllers`.
//!
//! Shalunov, Hazel, Iyengar, Kuehlewind, "Low Extra Delay Background Transport (LEDBAT)", RFC 6817, section 2.4.2. The
//! window grows while its queue holds less than a target and shrinks while it holds more, so that it yields to any other
//! flow. Here it is spread over a round-trip time, as a rate.

use lastmile::classify::LossClass;
use lastmile::control::{
    Controller, Decision, Fate, Feedback, Flow, Information, News, Output, RateController, Report, Sent,
    Setting, Signal,
};
use lastmile::node::Ecn;
use lastmile::options::Options;
use lastmile::telemetry::Visitor;
use lastmile::time::{Owd, Span, Time};

lastmile::options! {
    /// LEDBAT's parameters.
    pub struct LedbatConfig {
        /// The queueing delay that it aims at
        target: Span [Span::from_millis(1)..=Span::from_millis(100)] = Span::from_millis(100), "RFC 6817, section 2.5: TARGET";
        /// Packets by which an empty queue lets the window grow in a round-trip time
        gain: f64 [0.01..=1.0] = 1.0, "RFC 6817, section 2.5: GAIN";
    }
}

/// Its place in the registry.
pub const ENTRY: Controller = Controller {
    name: "ledbat",
    about: "as much as leaves a queue of 100 ms at most, and less than any other flow",
    paper: "RFC 6817",
    classifier: None,
    needs: Information::Times,
    below: "goes by round-trip times, and so by queues of feedback too",
    options: LedbatConfig::OPTIONS,
    make: |given, setting| Ok(Box::new(Ledbat::new(LedbatConfig::read(given)?, setting))),
};

/// INIT_CWND, MIN_CWND and ALLOWED_INCREASE of section 2.5, in packets.
const INIT_CWND: f64 = 2.0;
const MIN_CWND: f64 = 2.0;
const ALLOWED_INCREASE: f64 = 1.0;

/// The least delays of the last ten minutes, and the last four delays.
#[derive(Clone, Debug, Default)]
struct Delays {
    /// One-way delays count from the first, since the clocks' offset is unknown.
    first: Option<Owd>,
    base: [Option<Span>; 10],
    minute: Time,
    current: [Option<Span>; 4],
}

impl Delays {
    fn add(&mut self, now: Time, delay: Span) {
        if now - self.minute >= Span::from_secs(60) {
            self.base.rotate_right(1);
            (self.base[0], self.minute) = (None, now);
        }
        self.base[0] = Some(self.base[0].map_or(delay, |least| least.min(delay)));
        self.current.rotate_right(1);
        self.current[0] = Some(delay);
    }

    /// FILTER(current_delays) - MIN(base_delays); FILTER is the least.
    fn queueing(&self) -> Option<Span> {
        Some(*self.current.iter().flatten().min()? - *self.base.iter().flatten().min()?)
    }
}

/// LEDBAT's state.
#[derive(Clone, Debug)]
pub struct Ledbat {
    config: LedbatConfig,
    flow: Flow,
    delays: Delays,
    /// cwnd and flightsize, in bytes.
    cwnd: f64,
    flight: f64,
    /// Smoothed round-trip time, in seconds.
    rtt: Option<f64>,
}

impl Ledbat {
    /// Within the limits of `setting`.
    pub fn new(config: LedbatConfig, setting: &Setting) -> Ledbat {
        let flow = Flow::new(setting);
        let cwnd = INIT_CWND * flow.full_size();
        Ledbat { config, flow, delays: Delays::default(), cwnd, flight: 0.0, rtt: None }
    }

    /// IP bytes a second: the window in a round-trip time.
    fn rate(&self) -> f64 {
        let before_feedback = self.flow.start_rate().unwrap_or(self.flow.full_size());
        self.rtt.map_or(before_feedback, |rtt| self.cwnd / rtt.max(1e-3)).max(self.flow.slowest_rate())
    }

    fn acked(&mut self, bytes: f64) {
        let mss = self.flow.packet_size();
        let queueing = self.delays.queueing().unwrap_or(self.config.target).as_secs_f64();
        let off_target = 1.0 - queueing / self.config.target.as_secs_f64();
        self.cwnd += self.config.gain * off_target * bytes * mss / self.cwnd;
        self.cwnd = self.cwnd.min(self.flight + ALLOWED_INCREASE * mss).max(MIN_CWND * mss);
        self.flight = (self.flight - bytes).max(0.0);
    }

    /// A packet that was sent at that time was lost, or marked: at most once in a round-trip time.
    fn congested(&mut self, sent_at: Time) {
        if self.flow.begin_recovery(sent_at) {
            self.cwnd = self.cwnd.min((self.cwnd / 2.0).max(MIN_CWND * self.flow.packet_size()));
        }
    }
}

impl RateController for Ledbat {
    fn on_sent(&mut self, now: Time, sent: &Sent) {
        self.flow.on_sent(now, sent);
        self.flow.expect_feedback(self.rtt, self.rate());
        self.flight += sent.size.0 as f64;
    }

    fn on_feedback(&mut self, now: Time, feedback: &mut Feedback<'_>) {
        self.flow.on_feedback(now);
        let sample = self.flow.round_trip(feedback);
        let smooth = |new: f64| self.rtt.map_or(new, |rtt| rtt + (new - rtt) / 8.0);
        self.rtt = sample.map(|sample| smooth(sample.as_secs_f64())).or(self.rtt);
        let (mut acked, mut lost) = (0.0, 0.0);
        for Report { sent, fate } in feedback.reports.iter() {
            let news = self.flow.on_report(sent);
            match *fate {
                Fate::Arrived { at, ecn } if news == News::New => {
                    acked += sent.size.0 as f64;
                    let one_way = at.map(|at| at - sent.at.as_sender());
                    let first = self.delays.first;
                    self.delays.first = first.or(one_way);
                    let delay = one_way.map(|delay| delay - first.unwrap_or(delay));
                    let delay = delay.or(sample.filter(|_| first.is_none()));
                    delay.into_iter().for_each(|delay| self.delays.add(self.flow.now(), delay));
                    if ecn == Ecn::Ce {
                        self.congested(sent.at);
                    }
                }
                Fate::Lost { class, .. } if news != News::NeverSent => {
                    lost += sent.size.0 as f64;
                    if class == LossClass::Congestion {
                        self.congested(sent.at);
                    }
                }
                _ => {}
            }
        }
        self.flight = (self.flight - lost).max(0.0);
        if acked > 0.0 {
            self.acked(acked);
            self.flow.restart(self.rtt, self.rate());
        }
        self.flow.expect_feedback(self.rtt, self.rate());
    }

    fn on_signal(&mut self, now: Time, signal: Signal) {
        self.flow.on_signal(now, signal);
        match signal {
            Signal::PersistentCongestion => self.congested(self.flow.now()),
            // Delays of another path do not compare.
            Signal::Route { .. } => self.delays = Delays::default(),
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.flow.poll_timeout()
    }

    fn on_timeout(&mut self, now: Time) {
        if self.flow.is_overdue(now) {
            // One packet after the first, and half as much after each of the next: a rate has no timeout to double.
            self.cwnd = self.cwnd.min(2.0 * self.flow.packet_size()) / 2.0;
            self.flow.no_feedback(self.rtt, self.rate());
        }
    }

    fn poll_decision(&mut self) -> Option<Decision> {
        self.flow.poll_decision()
    }

    fn output(&self) -> Output {
        Output::rate(self.flow.rate(self.rate()))
    }

    fn telemetry(&self, visitor: &mut dyn Visitor) {
        visitor.number("window", "B", self.cwnd);
        let queueing = self.delays.queueing();
        queueing.into_iter().for_each(|delay| visitor.number("queueing delay", "s", delay.as_secs_f64()));
    }

    fn clone_box(&self) -> Box<dyn RateController> {
        Box::new(self.clone())
    }
}

fn main() -> std::process::ExitCode {
    lastmile_cli::run(lastmile_cli::Own { controllers: &[&ENTRY], ..lastmile_cli::Own::default() })
}
