//! VTP: the rate falls to what the path carried, stays there for what TCP would have given up, and then rises as TCP's does.
//!
//! Yang, Chen, Sun, Gerla, Sanadidi, "Smooth and efficient real-time video transport in presence of wireless errors" (VTP),
//! sections 3.2, 3.3 and 4. `docs/rate-control.md` decides the points left open there (the start, a second loss, silence,
//! both readings of the hold).

mod achieved;

use achieved::Achieved;

use super::{
    Controller, Decision, Fate, Feedback, Flow, Information, Made, News, Output, RateController, Report,
    RouteChange, Sent, Setting, Signal,
};
use crate::classify::LossClass;
use crate::node::Ecn;
use crate::options::{Given, Options};
use crate::telemetry::Visitor;
use crate::time::{Rx, Span, Time};
use crate::units::Rate;

crate::names! {
    /// Rule for the time that the rate stays down after a congestion loss.
    pub enum Hold {
        /// Until the bytes that were not sent are as many as TCP would not have sent [VTP, figure 2: A1 = A2].
        #[default]
        Areas = "areas",
        /// Until TCP's window would have grown to VTP's [VTP, figure 3: bc = bh].
        Rounds = "rounds",
    }
}

crate::names! {
    /// Quantity that a congestion loss cuts to what the path carried.
    pub enum Cut {
        /// The rate [VTP, section 5.3].
        #[default]
        Rate = "rate",
        /// The equivalent window, which drains the queue [VTP, section 4.2].
        Window = "window",
    }
}

crate::options! {
    /// VTP's parameters.
    pub struct VtpConfig {
        /// Time for which the rate stays down: areas, or rounds
        hold: Hold = Hold::Areas, "VTP, section 3.3 and figure 2; section 4.1 and figure 3";
        /// Quantity that is cut to the path's throughput: rate, or window
        cut: Cut = Cut::Rate, "VTP, section 5.3; section 4.2";
        /// The weight of the past in the achieved rate, a sample each round
        memory: f64 [0.0..=0.999] = 0.75, "VTP, section 3.2, names none; earlier work 0.6 to 0.8";
        /// Largest distance from one of the ratio of two rounds' round-trip times in equation 5
        guard: f64 [0.0..=0.99] = 0.5, "our own: equation 5 has a pole at 2";
        /// Follow equation 5 where the round-trip time falls too, which raises the rate by as much
        falling: bool = false, "our own: VTP, section 3.3, assumes that the queue grows";
        /// Double the rate each round until the first congestion
        slow_start: bool = true, "our own: VTP names no start; its section 4 begins in congestion avoidance";
    }
}

/// Its place in the registry.
pub const ENTRY: Controller = Controller {
    name: "vtp",
    about: "cut to the achieved rate, held there, then raised as TCP's: smooth, and fair to TCP",
    paper: "Yang, Chen, Sun, Gerla, Sanadidi, VTP",
    classifier: Some("spike-rtt"),
    needs: Information::Fates,
    below: "takes the receiver's rate as the achieved one, and one congestion a round-trip time where it tells of losses",
    options: VtpConfig::OPTIONS,
    make: |given: &Given, setting| -> Made { Ok(Box::new(Vtp::new(VtpConfig::read(given)?, setting))) },
};

/// Phase of the rate.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// It doubles each round.
    Start,
    /// It stays down, with that equivalent window in bytes where the window was cut.
    Held { until: Time, window: Option<f64> },
    /// It follows equation 5.
    Avoidance,
}

/// Measurements since a round began.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// A packet sent at that time or later ends the round.
    start: Time,
    /// Bytes that arrived, and those that were lost behind the bottleneck.
    bytes: u64,
    lost: u64,
    /// Sum of round-trip times in seconds, and their number.
    rtts: (f64, u32),
    /// The sources filled the rate.
    filled: bool,
}

/// VTP's state. Rates are IP bytes a second.
#[derive(Clone, Debug)]
struct Vtp {
    config: VtpConfig,
    /// R.
    rate: f64,
    phase: Phase,
    achieved: Achieved,
    /// RTT, RTT[-1] of the round before, the latest sample of all and the least, in seconds.
    rtt: Option<f64>,
    last_rtt: Option<f64>,
    latest_rtt: Option<f64>,
    min_rtt: f64,
    round: Round,
    flow: Flow,
}

impl Vtp {
    fn new(config: VtpConfig, setting: &Setting) -> Vtp {
        let flow = Flow::new(setting);
        Vtp {
            phase: if config.slow_start { Phase::Start } else { Phase::Avoidance },
            achieved: Achieved::new(config.memory),
            config,
            rate: flow.start_rate().unwrap_or(flow.full_size()),
            rtt: None,
            last_rtt: None,
            latest_rtt: None,
            min_rtt: f64::INFINITY,
            round: Round::default(),
            flow,
        }
    }

    /// Limits the rate to the slowest at least, and to the user's maximum and twice the arrivals at most, whatever a classifier says
    /// of losses (as RFC 5348, section 4.3, has it).
    fn set(&mut self, rate: f64) {
        let max = self.flow.max_rate().min(2.0 * self.achieved.received);
        self.rate = if rate.is_nan() { 0.0 } else { rate }.min(max).max(self.flow.slowest_rate());
    }

    fn on_rtt(&mut self, sample: Span) {
        let sample = sample.as_secs_f64();
        if self.rtt.is_none() {
            // As TFRC starts (RFC 5348, section 4.2).
            self.set(self.rate.max(self.flow.initial_rate(sample)));
            self.rtt = Some(sample);
        }
        self.latest_rtt = Some(sample);
        self.min_rtt = self.min_rtt.min(sample);
        self.round.rtts = (self.round.rtts.0 + sample, self.round.rtts.1.saturating_add(1));
    }

    /// A round ended: its rate and round-trip time are known, and the rate rises.
    fn end_round(&mut self, arrived: Option<Time<Rx>>) {
        let Round { rtts: (sum, n), filled, bytes, lost, .. } = self.round;
        self.achieved.round_ended(self.flow.now(), arrived, bytes, lost);
        self.round = Round { start: self.flow.now(), ..Round::default() };
        if n > 0 {
            self.last_rtt = self.rtt.replace(sum / f64::from(n));
        }
        let Some(rtt) = self.rtt else { return };
        self.set(self.rate);
        match self.phase {
            Phase::Held { until, .. } if self.flow.now() < until => {}
            Phase::Held { .. } => self.phase = Phase::Avoidance,
            _ if !filled => {}
            Phase::Start => self.set(2.0 * self.rate),
            Phase::Avoidance => {
                // [VTP, equation 5] R' = (R + 1/RTT) / (2 - RTT[-1]/RTT), with R in packets a second.
                let VtpConfig { guard, falling, .. } = self.config;
                let most = if falling { 1.0 + guard } else { 1.0 };
                let ratio = self.last_rtt.map_or(1.0, |last| last / rtt).clamp(1.0 - guard, most);
                self.set((self.rate + self.flow.packet_size() / rtt) / (2.0 - ratio));
            }
        }
    }

    /// A congestion loss [VTP, sections 3.3 and 4]. Losses of packets that were sent before the last cut belong to that.
    fn congested(&mut self, sent_at: Time) {
        if !self.flow.begin_recovery(sent_at) {
            return;
        }
        let first = self.phase == Phase::Start;
        let Some(rtt) = self.rtt else { return self.set(self.rate / 2.0) };
        // No queue doubles in a round: an outage makes one long, and no window of it.
        let rtt = self.last_rtt.filter(|last| rtt > 2.0 * last).unwrap_or(rtt);
        let size = self.flow.packet_size();
        // A packet in a second, or a receiver takes the sender for gone.
        let least = size.min(self.rate);
        let achieved = self.achieved.for_cut().unwrap_or(self.rate / 2.0).min(self.rate).max(least);
        let before = self.rate;
        let window = before * rtt; // [equation 2] in bytes
        let pipe = achieved * self.min_rtt;
        self.set(achieved);
        // Bytes that a window gives up while the queue drains are part of A2; after that a round is the least round-trip time.
        let is_window = self.config.cut == Cut::Window;
        let (drained, round) = if is_window { (window - pipe, self.min_rtt) } else { (0.0, rtt) };
        let seconds = match self.config.hold {
            // [figure 2] A1 = W/2; A2 = tau (R - R'). TCP is a packet per round above what the path carries.
            Hold::Areas => (window / 2.0 - drained) / (before - achieved).max(size / round),
            // [figure 3] A window of P goes on from where TCP's comes to it, a packet per round from W/2.
            Hold::Rounds => (pipe - window / 2.0) / size * self.min_rtt,
        };
        let until = |seconds: f64| self.flow.now() + Span::from_secs_f64(seconds.min(3_600.0));
        if is_window {
            // To the pipe, or to TCP's half window where that is more; the queue drains for a round, and is seen to in another.
            let window = Some(pipe.max(window / 2.0));
            self.phase = Phase::Held { until: until(seconds.max(0.0) + 2.0 * rtt), window };
            self.drain();
        } else if seconds > 0.0 {
            self.phase = Phase::Held { until: until(seconds), window: None };
        } else {
            // [section 3.3, step 1] from the window that TCP would have, at what the path carries at most.
            self.set(achieved.min(window / 2.0 / self.min_rtt));
            self.phase = Phase::Avoidance;
        }
        if first {
            self.flow.decide(Decision::SlowStartEnded { rate: self.target() });
        }
    }

    /// The rate of a window that was cut, while the queue drains.
    fn drain(&mut self) {
        if let (Phase::Held { window: Some(window), .. }, Some(rtt)) = (self.phase, self.latest_rtt) {
            self.set(window / rtt);
        }
    }

    fn target(&self) -> Rate {
        self.flow.rate(self.rate)
    }
}

impl RateController for Vtp {
    fn on_sent(&mut self, now: Time, sent: &Sent) {
        self.flow.on_sent(now, sent);
        self.flow.expect_feedback(self.rtt, self.rate);
    }

    fn on_feedback(&mut self, now: Time, feedback: &mut Feedback<'_>) {
        self.flow.on_feedback(now);
        if let Some(sample) = self.flow.round_trip(feedback) {
            self.on_rtt(sample);
        }
        let newest =
            feedback.newest().and_then(|at| feedback.reports.get(at)).and_then(|report| match report.fate {
                Fate::Arrived { at, .. } => at,
                _ => None,
            });
        let (mut heard, mut ended) = (false, false);
        let mut lost = None;
        for Report { sent, fate } in feedback.reports.iter() {
            let news = self.flow.on_report(sent);
            let is_new = news == News::New;
            let bytes = sent.size.0.min(65_535);
            match *fate {
                _ if news == News::NeverSent => {}
                Fate::Arrived { ecn, .. } if is_new => {
                    heard = true;
                    self.round.bytes += bytes;
                    self.round.filled |= !sent.app_limited;
                    ended |= sent.at >= self.round.start;
                    lost = lost.max((ecn == Ecn::Ce).then_some(sent.at));
                }
                // Lost behind the bottleneck, which it went through.
                Fate::Lost { class: LossClass::Wireless, .. } if is_new => self.round.lost += bytes,
                Fate::Lost { class: LossClass::Congestion, .. } => lost = lost.max(Some(sent.at)),
                _ => {}
            }
        }
        if let Some(summary) = feedback.receiver.filter(|_| feedback.reports.is_empty()) {
            let over = summary.over.as_secs_f64();
            heard = true;
            if over > 0.0 {
                // No more can have come than was sent and not lost, whatever the receiver says.
                let most = self.rate * (1.0 - summary.loss_event_rate).clamp(0.0, 1.0);
                self.achieved.told((summary.received.0 as f64 / over).min(most));
            }
            let rtt = Span::from_secs_f64(self.rtt.unwrap_or(0.0));
            ended = self.flow.now() - self.round.start >= rtt;
            self.round.filled = true;
            lost = (summary.loss_event_rate > 0.0).then_some(self.flow.now() - rtt);
        }
        if ended {
            self.end_round(newest);
        }
        self.drain();
        if let Some(sent_at) = lost {
            let Round { bytes, lost, .. } = self.round;
            self.achieved.so_far(self.flow.now(), newest, bytes + lost, self.rtt.unwrap_or(0.0));
            self.congested(sent_at);
        }
        if heard {
            self.flow.restart(self.rtt, self.rate);
        } else {
            self.flow.expect_feedback(self.rtt, self.rate);
        }
    }

    fn on_signal(&mut self, now: Time, signal: Signal) {
        self.flow.on_signal(now, signal);
        match signal {
            Signal::Rtt { sample } if sample > Span::ZERO => self.on_rtt(sample),
            Signal::Route { why: RouteChange::MoreCapacity } => {
                (self.phase, self.min_rtt) = (Phase::Start, self.rtt.unwrap_or(f64::INFINITY));
            }
            Signal::Route { .. } => self.min_rtt = self.rtt.unwrap_or(f64::INFINITY),
            Signal::PersistentCongestion => self.congested(self.flow.now()),
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
        self.set(self.rate / 2.0);
        self.flow.begin_recovery(self.flow.now());
        if self.rtt.is_some() {
            self.phase = Phase::Avoidance;
        }
        self.flow.no_feedback(self.rtt, self.rate);
    }

    fn poll_decision(&mut self) -> Option<Decision> {
        self.flow.poll_decision()
    }

    fn output(&self) -> Output {
        Output::rate(self.target())
    }

    fn telemetry(&self, visitor: &mut dyn Visitor) {
        visitor.number("rate", "bit/s", self.target().bits_per_second() as f64);
        self.achieved.rate.into_iter().for_each(|rate| visitor.number("achieved rate", "bit/s", 8.0 * rate));
        self.rtt.into_iter().for_each(|rtt| visitor.number("round-trip time", "s", rtt));
        visitor.state(
            "phase",
            match self.phase {
                Phase::Start => "start",
                Phase::Held { .. } => "held",
                Phase::Avoidance => "congestion avoidance",
            },
        );
    }

    fn clone_box(&self) -> Box<dyn RateController> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::super::LostBy;
    use super::*;
    use crate::units::Bytes;

    fn at(ms: f64) -> Time {
        Time::from_nanos((ms * 1e6) as u64)
    }

    /// At 410 packets of 1000 B a second where the path carries 400 and its round-trip time is 50 ms: a pipe P of 20.
    fn full(options: &str, rtt: f64) -> Vtp {
        let given = format!("vtp({options})").parse::<crate::options::Choice>().unwrap().options;
        let setting = Setting { packet_size: Bytes(1000), ..Setting::default() };
        let mut vtp = Vtp::new(VtpConfig::read(&given).unwrap(), &setting);
        (vtp.rtt, vtp.last_rtt, vtp.latest_rtt, vtp.min_rtt) = (Some(rtt), Some(rtt), Some(rtt), 0.05);
        (vtp.rate, vtp.achieved.rate, vtp.phase) = (410_000.0, Some(400_000.0), Phase::Avoidance);
        vtp.flow.at(at(1_000.0));
        vtp
    }

    /// Time for which the rate stays down, in milliseconds, and the rate.
    fn cut(options: &str, rtt: f64) -> (Option<f64>, f64) {
        let mut vtp = full(options, rtt);
        vtp.congested(at(990.0));
        let held = match vtp.phase {
            Phase::Held { until, .. } => Some((until - vtp.flow.now()).as_secs_f64() * 1e3),
            _ => None,
        };
        (held.map(libm::round), libm::round(vtp.rate))
    }

    /// Buffers of half a pipe, one and two: windows of 30.75, 41 and 61.5 packets at the loss.
    #[test]
    fn both_readings_of_the_hold() {
        // A1 = 15.4, 20.5, 30.8 packets, at 13.3 (a packet per round), 10 and 10 packets a second less.
        assert_eq!(cut("hold=areas", 0.075), (Some(1153.0), 400_000.0));
        assert_eq!(cut("hold=areas", 0.1), (Some(2050.0), 400_000.0));
        assert_eq!(cut("hold=areas", 0.15), (Some(3075.0), 400_000.0));
        // P - W/2 = 4.6 rounds of 50 ms; none, where TCP's window is as large already.
        assert_eq!(cut("hold=rounds", 0.075), (Some(231.0), 400_000.0));
        assert_eq!(cut("hold=rounds", 0.1), (None, 400_000.0));
        assert_eq!(cut("hold=rounds", 0.15), (None, 400_000.0));
        // A window of P over the round trip of a full queue, which two rounds drain; then both readings are the same.
        for hold in ["areas", "rounds"] {
            let cut = |rtt| cut(&format!("cut=window, hold={hold}"), rtt);
            assert_eq!(cut(0.075), (Some(381.0), 266_667.0));
            // TCP's half window is 20.5 and 30.75 packets.
            assert_eq!((cut(0.1), cut(0.15)), ((Some(200.0), 205_000.0), (Some(300.0), 205_000.0)));
        }
    }

    /// R' of 400 packets a second: a packet more where the round trip stays 100 ms, less where it grew by 10 ms.
    #[test]
    fn equation_5_and_its_guard() {
        let after = |before: f64, options: &str| {
            let mut vtp = full(options, 0.1);
            (vtp.rate, vtp.rtt) = (400_000.0, Some(before));
            vtp.round = Round { rtts: (0.1, 1), filled: true, ..Round::default() };
            vtp.end_round(None);
            libm::round(vtp.rate)
        };
        let risen = |before| after(before, "");
        assert_eq!(risen(0.1), 410_000.0);
        assert_eq!(risen(0.09), 372_727.0);
        // No further than a ratio of 0.5; where the round trip falls, a packet more.
        assert_eq!((risen(0.05), risen(0.001)), (273_333.0, 273_333.0));
        assert_eq!((risen(0.15), risen(0.2)), (410_000.0, 410_000.0));
        // The pole is at 0.2: no further than a ratio of 1.5.
        let falling = |before| after(before, "falling=true");
        assert_eq!(
            (falling(0.11), falling(0.15), falling(0.2), falling(10.0)),
            (455_556.0, 820_000.0, 820_000.0, 820_000.0)
        );
        let start = |options| full(options, 0.1).config;
        let phase = |options| Vtp::new(start(options), &Setting::default()).phase;
        assert_eq!((phase(""), phase("slow_start=false")), (Phase::Start, Phase::Avoidance));
        // Sources that do not fill the rate raise nothing.
        let mut vtp = full("", 0.1);
        vtp.end_round(None);
        assert_eq!(vtp.rate, 410_000.0);
    }

    /// 100 packets a second arrive or are lost behind the bottleneck, whatever the clock says there.
    #[test]
    fn wireless_losses_count_as_achieved_and_change_nothing() {
        let mut vtp = full("", 0.1);
        (vtp.rate, vtp.achieved.rate, vtp.flow) = (100_000.0, None, Flow::new(&Setting::default()));
        let mut slowest: f64 = f64::INFINITY;
        for round in 0..20_u64 {
            let report = |k: u64| {
                let id = 10 * round + k;
                let ms = 10.0 * id as f64;
                let lost = Fate::Lost { by: LostBy::Gap, class: LossClass::Wireless };
                let arrived = Fate::arrived(Time::from_nanos(((ms + 5_050.0) * 1e6) as u64));
                Report {
                    sent: Sent::media(id, Bytes(1000), at(ms)),
                    fate: if k == 4 { lost } else { arrived },
                }
            };
            let mut reports: Vec<Report> = (0..10).map(report).collect();
            let newest = Time::from_nanos((100 * round + 90 + 5_050) * 1_000_000);
            vtp.on_feedback(
                at(100.0 * round as f64 + 190.0),
                &mut Feedback::exact(&mut reports, Some(newest)),
            );
            slowest = slowest.min(vtp.rate);
        }
        assert!(slowest >= 100_000.0, "{slowest}");
        assert!((vtp.achieved.rate.unwrap() - 100_000.0).abs() < 1e-6, "{:?}", vtp.achieved);
    }

    /// A packet in a second, then four in a round-trip time, of a millisecond at least, whatever a peer claims.
    #[test]
    fn it_starts_with_a_window_in_a_round_trip() {
        for (micros, rate) in [(0, 1_000.0), (50_000, 80_000.0), (1, 4_000_000.0)] {
            let setting = Setting { packet_size: Bytes(1000), ..Setting::default() };
            let mut vtp = Vtp::new(VtpConfig::default(), &setting);
            vtp.on_signal(at(1.0), Signal::Rtt { sample: Span::from_micros(micros) });
            assert_eq!(vtp.rate, rate);
        }
    }

    /// Nothing arrived in the last round.
    #[test]
    fn a_cut_leaves_a_packet_in_a_second() {
        let mut vtp = full("", 0.1);
        vtp.achieved.rate = Some(0.0);
        vtp.congested(at(990.0));
        assert_eq!(vtp.rate, 1_000.0);
    }

    #[test]
    fn losses_of_one_round_are_one_congestion_and_a_later_one_cuts_again() {
        let mut vtp = full("", 0.1);
        vtp.congested(at(990.0));
        let Phase::Held { until, .. } = vtp.phase else { panic!() };
        vtp.achieved.rate = Some(300_000.0);
        vtp.congested(at(999.0));
        assert_eq!((vtp.rate, vtp.phase), (400_000.0, Phase::Held { until, window: None }));
        vtp.flow.at(at(1_500.0));
        vtp.congested(at(1_400.0));
        assert_eq!(vtp.rate, 300_000.0);
        // A1 of 20 packets at 100 a second less.
        assert_eq!(vtp.phase, Phase::Held { until: at(1_700.0), window: None });
    }
}
