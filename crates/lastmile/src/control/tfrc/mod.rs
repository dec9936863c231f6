//! TCP-friendly rate control: RFC 5348, with ns-2's version of it as a preset.
//!
//! Two forms share the loss history. In the sender-based one (section 7) the sender computes it from [`Report`]s: times are
//! those of sending, which it knows exactly and nobody else can invent. In the receiver-based one a [`Receiver`] does, and its
//! [`Summary`](super::Summary) comes with the feedback. A feedback message with a summary is of the latter form.
//!
//! | file | RFC 5348 |
//! |---|---|
//! | `equation` | 3.1, 8.1: the throughput equation and its inverse |
//! | `sender` | 4: the allowed rate; `ns2` the same as ns-2 has it |
//! | `history`, `intervals` | 5: loss events, intervals, discounting |
//! | `connections` | those of several connections over one stream, for MULTFRC |
//! | `receive_rate`, `receiver` | 6: X_recv, the receiver |

mod connections;
mod equation;
mod history;
mod intervals;
mod law;
mod ns2;
mod options;
mod receive_rate;
mod receiver;
mod sender;

pub use equation::Equation;
pub use options::{Form, Preset, TfrcConfig};
pub use receiver::{Receiver, ReceiverFeedback, ReceiverPacket};

use connections::Connections;
use history::{LossHistory, Now};
use law::{Facts, Law};
use options::Parameters;
use receive_rate::ReceiveRate;

use super::spacing::Spacing;
use super::{
    Action, Controller, Decision, Decisions, Fate, Feedback, Information, Made, Output, RateController,
    Report, RouteChange, Sent, Setting, Signal, Source,
};
use crate::classify::LossClass;
use crate::node::Ecn;
use crate::options::{Given, Options};
use crate::telemetry::Visitor;
use crate::time::{Rx, Span, Time};
use crate::units::Rate;

/// Bytes of a loss history.
pub(super) const LOSS_HISTORY: usize = size_of::<LossHistory>();

/// Its place in the registry.
pub const ENTRY: Controller = Controller {
    name: "tfrc",
    about: "the rate that TCP would have at this loss event rate and round-trip time, without TCP's jumps",
    paper: "RFC 5348; preset ns-2: ns-2 2.35, tcp/tfrc.cc",
    classifier: None,
    needs: Information::Fates,
    below: "smooths the fraction lost of receiver reports, which is never less than the loss event rate",
    options: TfrcConfig::OPTIONS,
    make,
};

fn make(given: &Given, setting: &Setting) -> Made {
    Ok(Box::new(Tfrc::new(&TfrcConfig::read(given)?, setting)))
}

/// The sending side, in either form.
#[derive(Debug)]
pub struct Tfrc {
    setting: Setting,
    parameters: Parameters,
    law: Box<dyn Law>,
    connections: Connections,
    factor: f64,
    receive: ReceiveRate,
    clock: ReceiveClock,
    /// The mean size of packets at the IP layer, in bytes.
    size: Option<f64>,
    /// The host tells of packets sent, up to this number.
    sent: Option<u64>,
    /// The highest number that was ever reported.
    reported: Option<u64>,
    /// p.
    loss_event_rate: f64,
    /// The largest X_recv so far, and the newest, in bytes a second.
    most_received: f64,
    received: f64,
    limited: DataLimited,
    spacing: Spacing,
    /// What left, and the highest rate at which it did: reports may say more.
    sending: ReceiveRate,
    most_sent: f64,
    sent_since_timer: bool,
    cap: Option<Rate>,
    /// The receiver is to be asked to forget its losses; until it has, or that time has come, its p counts as none.
    forget: bool,
    forgets_until: Option<Time>,
    now: Time,
    decisions: Decisions,
}

/// Which clock spans of receiving are measured on: the receiver's while it runs about as fast as ours, else ours.
#[derive(Clone, Copy, Debug, Default)]
struct ReceiveClock {
    nanos: u64,
    last: Option<(Time, Option<Time<Rx>>)>,
}

impl ReceiveClock {
    fn advance(&mut self, now: Time, remote: Option<Time<Rx>>) -> u64 {
        if let Some((then, before)) = self.last.replace((now, remote)) {
            let ours = (now - then).max(Span::ZERO);
            let theirs = remote.zip(before).map(|(remote, before)| remote - before);
            let believed = theirs.filter(|theirs| *theirs >= ours / 2 && *theirs <= ours * 2).unwrap_or(ours);
            self.nanos = self.nanos.saturating_add(believed.as_nanos().unsigned_abs());
        }
        self.nanos
    }
}

/// When the sender was not data-limited [RFC 5348, 8.2.1].
#[derive(Clone, Copy, Debug, Default)]
struct DataLimited {
    /// NotLimited1 and NotLimited2.
    sent: [Time; 2],
    /// The newest such packet that was reported, for hosts that do not tell of sending.
    reported: Option<Time>,
    /// t_new and t_next.
    new: Time,
    next: Time,
}

impl DataLimited {
    /// A packet left while there was nothing else that could have been sent.
    fn on_sent(&mut self, at: Time) {
        if self.sent[0] <= self.new {
            self.sent[0] = at;
        } else if self.sent[1] <= self.next {
            self.sent[1] = at;
        }
    }

    /// Whether all of the round-trip time before the packet sent at `new` was data-limited.
    fn interval(&mut self, now: Time, new: Time, rtt: Span) -> bool {
        (self.new, self.next) = (new, now);
        let old = new - rtt;
        let within = |at: Time| (old < at || old == Time::ZERO) && at <= new;
        let limited = !within(self.sent[0]) && !within(self.sent[1]) && !self.reported.is_some_and(within);
        if self.sent[0] <= new && self.sent[1] > new {
            self.sent[0] = self.sent[1];
        }
        limited
    }
}

impl Tfrc {
    /// Within the limits of `setting`.
    pub fn new(config: &TfrcConfig, setting: &Setting) -> Tfrc {
        Tfrc::several(config, setting, 1)
    }

    /// With room for the loss histories of up to `most` connections; it begins with one.
    pub(super) fn several(config: &TfrcConfig, setting: &Setting, most: usize) -> Tfrc {
        let parameters = config.parameters();
        let start = setting.start.map(|rate| rate.bits_per_second() as f64 / 8.0);
        let mut tfrc = Tfrc {
            setting: *setting,
            law: parameters.law(1.0, None),
            connections: Connections::new(parameters.history(), most),
            factor: 1.0,
            parameters,
            receive: ReceiveRate::default(),
            clock: ReceiveClock::default(),
            size: None,
            sent: None,
            reported: None,
            loss_event_rate: 0.0,
            most_received: 0.0,
            received: 0.0,
            limited: DataLimited::default(),
            spacing: Spacing::default(),
            sending: ReceiveRate::default(),
            most_sent: 0.0,
            sent_since_timer: false,
            cap: None,
            forget: false,
            forgets_until: None,
            now: Time::ZERO,
            decisions: Decisions::default(),
        };
        tfrc.law = parameters.law(tfrc.segment(), start.map(|start| start * tfrc.paced()));
        tfrc
    }

    /// The rate is that of so many connections from now on, to which packets are dealt in turn, times a factor.
    pub(super) fn connect(&mut self, count: usize, factor: f64) {
        self.factor = factor;
        let newest = self.sent.max(self.reported);
        self.connections.set(count, newest.map_or(0, |newest| newest.saturating_add(1)));
    }

    /// R, in seconds.
    pub(super) fn rtt(&self) -> Option<f64> {
        self.law.rtt()
    }

    /// Bytes of a packet at the IP layer.
    fn wire(&self) -> f64 {
        self.size.unwrap_or(self.setting.packet_size.0 as f64).max(1.0)
    }

    /// s: what of a packet is paced.
    fn segment(&self) -> f64 {
        (self.wire() - self.parameters.header).max(1.0)
    }

    /// The part of IP bytes that is paced.
    fn paced(&self) -> f64 {
        self.segment() / self.wire()
    }

    /// Never backwards.
    fn at(&mut self, now: Time) -> Time {
        self.now = self.now.max(now);
        self.now
    }

    fn sized(&mut self, bytes: u64) {
        let bytes = bytes.clamp(1, 65_535) as f64;
        // [RFC 5348, 4.1] An average over some four loss intervals at 10 % of loss.
        self.size = Some(self.size.map_or(bytes, |size| size + (bytes - size) / 32.0));
    }

    fn rate(&self, paced_bytes: f64) -> Rate {
        self.setting.below(self.cap, paced_bytes / self.paced())
    }

    /// Takes in what became of each packet; whether a loss event began, and how many times the equation's rate is meant.
    fn on_reports(&mut self, feedback: &Feedback<'_>, rtt: Span) -> (bool, f64) {
        let known = |id: u64, sent: Option<u64>| sent.is_none_or(|sent| id <= sent);
        let mut reported = self.reported;
        for Report { sent, fate } in feedback.reports.iter() {
            let new = known(sent.id, self.sent) && reported.is_none_or(|reported| sent.id > reported);
            if new && let Fate::Arrived { .. } = fate {
                self.receive.add(sent.size.0);
            }
            if new {
                reported = Some(sent.id);
            }
        }
        let nanos = self.clock.advance(self.now, feedback.remote_sent);
        if let Some((bytes, span)) = self.receive.feedback(nanos, rtt) {
            self.set_received(bytes as f64 * 1e9 / span as f64);
        }
        let (segment, seconds) = (self.segment(), rtt.as_secs_f64().max(1e-6));
        // [RFC 5348, 6.3.1] X_target is the largest X_recv so far, at least half a packet in a round-trip time.
        let share = self.most_received / self.connections.count() as f64;
        let target = share.max(0.5 * segment / seconds);
        let equation = self.law.equation(segment, seconds);
        let first = || 1.0 / equation.loss_event_rate(target);
        let now = Now { rtt, first: &first };
        let mut began = false;
        for i in 0..feedback.reports.len() {
            let Report { sent, fate } = feedback.reports[i];
            if !known(sent.id, self.sent) {
                continue;
            }
            let time = sent.at.as_nanos();
            let new = self.reported.is_none_or(|reported| sent.id > reported);
            let event = match fate {
                Fate::Arrived { ecn, .. } if new => {
                    self.connections.arrived(sent.id, time, ecn == Ecn::Ce, now)
                }
                Fate::Lost { class: LossClass::Congestion, .. } => {
                    // A host's timeout may find what lies behind the newest report.
                    self.connections.lost(sent.id, time, now)
                }
                Fate::Arrived { .. } | Fate::Late { .. } => {
                    self.connections.fill(sent.id);
                    None
                }
                Fate::Lost { class: LossClass::Wireless, .. } => None,
            };
            if !sent.app_limited {
                self.limited.reported = self.limited.reported.max(Some(sent.at));
            }
            if self.sent.is_none() && new {
                self.sized(sent.size.0);
                self.law.on_packet();
            }
            self.reported = self.reported.max(Some(sent.id));
            if let Some((id, loss_event_rate)) = event {
                began = true;
                self.decisions.push(Decision::LossEvent { id, loss_event_rate });
            }
        }
        let (loss_event_rate, times) = self.connections.together(&equation);
        self.loss_event_rate = loss_event_rate;
        (began, times)
    }

    /// X_recv of IP bytes, kept in those that are paced.
    fn set_received(&mut self, bytes_per_second: f64) {
        self.received = bytes_per_second * self.paced();
        self.most_received = self.most_received.max(self.received);
    }
}

impl RateController for Tfrc {
    fn on_sent(&mut self, now: Time, sent: &Sent) {
        let now = self.at(now);
        self.law.start(now);
        self.law.on_packet();
        self.sent = self.sent.max(Some(sent.id));
        self.sent_since_timer = true;
        self.sized(sent.size.0);
        self.sending.add(sent.size.0);
        if !sent.app_limited {
            self.limited.on_sent(now);
        }
    }

    fn on_feedback(&mut self, now: Time, feedback: &mut Feedback<'_>) {
        let now = self.at(now);
        let sample = feedback.rtt(now);
        let rtt = self.law.rtt().map(Span::from_secs_f64).or(sample).unwrap_or(Span::ZERO);
        let (before, counted) = (self.loss_event_rate, self.received);
        self.received = 0.0;
        let (began, times) = match feedback.receiver {
            None => self.on_reports(feedback, rtt),
            Some(summary) => {
                if let Some((bytes, span)) = self.sending.feedback(now.as_nanos(), rtt) {
                    let seconds = (span as f64 / 1e9).max(rtt.as_secs_f64());
                    self.most_sent = self.most_sent.max(bytes as f64 / seconds);
                }
                // [RFC 5348, 6.2, step 2] X_recv is taken over a round-trip time at least. Nobody receives at a much higher
                // rate than was ever sent at; queues that empty after an outage make up for the factor.
                let over = summary.over.max(rtt).as_secs_f64();
                let most = if self.sent.is_some() { 2.0 * self.most_sent } else { f64::INFINITY };
                if summary.over > Span::ZERO && summary.received.0 > 0 && most > 0.0 {
                    self.set_received((summary.received.0 as f64 / over).min(most));
                }
                let p = summary.loss_event_rate;
                let p = if p.is_finite() { p.clamp(0.0, 1.0) } else { before };
                self.forgets_until.take_if(|until| p == 0.0 || now >= *until);
                let p = if self.forgets_until.is_some() { 0.0 } else { p };
                self.loss_event_rate = match feedback.source {
                    // A report without a loss does not end a congestion that others told of.
                    Source::ReceiverReport if before > 0.0 => (before + (p - before) / 8.0).max(1e-9),
                    _ => p,
                };
                (false, self.connections.count() as f64)
            }
        };
        let newest = feedback.newest().map(|i| feedback.reports[i].sent.at);
        if newest.is_none() && feedback.receiver.is_none() {
            // [RFC 5348, 6.2] A receiver to which nothing came gives no feedback.
            (self.loss_event_rate, self.received) = (before, counted);
            return;
        }
        self.spacing.heard(now);
        let received = (self.received > 0.0).then_some(self.received);
        let facts = Facts {
            rtt: sample.map(|sample| sample.as_secs_f64()),
            received,
            loss_event_rate: self.loss_event_rate,
            times: times * self.factor,
            worse: began || self.loss_event_rate > before,
            // [RFC 5348, 4.3] not where X_recv is zero
            data_limited: received.is_some()
                && newest.is_some_and(|new| self.limited.interval(now, new, rtt)),
            spacing: self.spacing.beyond(rtt.as_secs_f64()),
            segment: self.segment(),
            max: self.setting.max.bits_per_second() as f64 / 8.0,
        };
        if received.is_none() {
            self.received = counted;
        }
        self.law.on_feedback(now, &facts);
        self.sent_since_timer = false;
        if before == 0.0 && self.loss_event_rate > 0.0 {
            self.decisions.push(Decision::SlowStartEnded { rate: self.rate(self.law.allowed()) });
        }
    }

    fn on_signal(&mut self, now: Time, signal: Signal) {
        self.at(now);
        match signal {
            Signal::Remb { rate } => self.cap = Some(rate),
            Signal::Mtu { size } => self.setting.packet_size = size,
            // There is no slow start once p > 0 [RFC 5348, 4.3]: the history is forgotten, by the receiver two round trips later.
            Signal::Route { why: RouteChange::MoreCapacity } => {
                self.connections.forget(&self.parameters.history());
                let rtt = self.law.rtt().unwrap_or(0.5);
                let until = self.now + Span::from_secs_f64(2.0 * rtt + self.spacing.beyond(rtt));
                (self.forget, self.forgets_until) = (true, Some(until));
                self.loss_event_rate = 0.0;
                self.law.restart();
            }
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.law.no_feedback_at()
    }

    fn on_timeout(&mut self, now: Time) {
        let now = self.at(now);
        if self.law.no_feedback_at().is_none_or(|at| now < at) {
            return;
        }
        let idle = self.sent.is_some() && !self.sent_since_timer;
        let before = self.law.allowed();
        self.law.on_no_feedback(now, idle);
        self.sent_since_timer = false;
        if self.law.allowed() != before {
            self.decisions.push(Decision::NoFeedback { rate: self.rate(self.law.allowed()) });
        }
    }

    fn poll_action(&mut self) -> Option<Action> {
        core::mem::take(&mut self.forget).then_some(Action::ForgetLosses)
    }

    fn poll_decision(&mut self) -> Option<Decision> {
        self.decisions.pop()
    }

    fn output(&self) -> Output {
        let (allowed, instantaneous) = (self.law.allowed(), self.law.instantaneous());
        let target = self.rate(allowed.min(instantaneous));
        Output { pacing: self.rate(instantaneous), ..Output::rate(target) }
    }

    fn telemetry(&self, visitor: &mut dyn Visitor) {
        visitor.number("rate", "bit/s", self.rate(self.law.allowed()).bits_per_second() as f64);
        visitor.number("loss event rate", "", self.loss_event_rate);
        visitor.number("receive rate", "bit/s", 8.0 * self.received / self.paced());
        self.law.rtt().into_iter().for_each(|rtt| visitor.number("round-trip time", "s", rtt));
        self.law.telemetry(visitor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Bytes;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// [8.2.1] R is 100 ms. The sender was not limited at 1,020; the feedback on what it sent until 1,100 covers that, the one
    /// on what it sent until 1,250 does not, and neither does that until 1,400, but for what it sent at 1,350.
    #[test]
    fn an_interval_is_data_limited_if_all_of_it_is() {
        let rtt = Span::from_millis(100);
        let mut limited = DataLimited::default();
        limited.interval(at(1_010), at(900), rtt);
        limited.on_sent(at(1_020));
        assert!(!limited.interval(at(1_200), at(1_100), rtt));
        assert!(limited.interval(at(1_340), at(1_250), rtt));
        limited.on_sent(at(1_350));
        assert!(!limited.interval(at(1_500), at(1_400), rtt));
        assert!(limited.interval(at(1_700), at(1_600), rtt));
    }

    /// A receiver whose clock is stepped does not stretch X_recv.
    #[test]
    fn the_receivers_clock_is_believed_while_it_runs_like_ours() {
        let rx = |ms: u64| Some(Time::from_nanos(ms * 1_000_000));
        let mut clock = ReceiveClock::default();
        clock.advance(at(0), rx(7_000));
        assert_eq!(clock.advance(at(100), rx(7_090)), 90_000_000);
        assert_eq!(clock.advance(at(200), rx(99_000)), 190_000_000);
        assert_eq!(clock.advance(at(300), rx(1)), 290_000_000);
        assert_eq!(clock.advance(at(400), None), 390_000_000);
    }

    fn sending(controller: &mut Tfrc, rounds: core::ops::Range<u64>, per_round: u64, app_limited: bool) {
        for round in rounds {
            let sent: Vec<Sent> = (0..per_round)
                .map(|k| Sent {
                    app_limited,
                    ..Sent::media(round * per_round + k, Bytes(1000), at(100 * round + k))
                })
                .collect();
            sent.iter().for_each(|sent| controller.on_sent(sent.at, sent));
            let came = |sent: &Sent| Report {
                sent: *sent,
                fate: Fate::arrived((sent.at + Span::from_millis(20)).as_receiver()),
            };
            let mut reports: Vec<Report> = sent.iter().map(came).collect();
            let now = at(100 * round + 60);
            controller.on_feedback(now, &mut Feedback::exact(&mut reports, None));
        }
    }

    /// Slow start goes to twice what arrives and no further: 10 packets in 100 ms are 800 kbit/s.
    #[test]
    fn a_data_limited_sender_keeps_twice_what_it_sent() {
        let mut tfrc =
            Tfrc::new(&TfrcConfig::default(), &Setting { packet_size: Bytes(1000), ..Setting::default() });
        sending(&mut tfrc, 0..50, 10, true);
        let limited = tfrc.output().pacing.bits_per_second() as f64;
        assert!((limited / 1_600_000.0 - 1.0).abs() < 0.05, "{limited}");
        // It falls to one packet in a round: what it may send stays.
        sending(&mut tfrc, 500..550, 1, true);
        let kept = tfrc.output().pacing.bits_per_second() as f64;
        assert!((kept / limited - 1.0).abs() < 0.01, "{kept} after {limited}");
    }

    #[test]
    fn packets_that_were_never_sent_are_not_believed() {
        let mut tfrc =
            Tfrc::new(&TfrcConfig::default(), &Setting { packet_size: Bytes(1000), ..Setting::default() });
        sending(&mut tfrc, 0..30, 10, false);
        let before = tfrc.output().pacing;
        let forged = |id| Report {
            sent: Sent::media(id, Bytes(60_000), at(2_990)),
            fate: Fate::arrived(Time::from_nanos(9)),
        };
        for round in 0..20 {
            let mut reports: Vec<Report> = (1_000..1_100).map(forged).collect();
            tfrc.on_feedback(at(3_100 + 100 * round), &mut Feedback::exact(&mut reports, None));
        }
        assert!(tfrc.output().pacing <= before, "{} after {before}", tfrc.output().pacing);
    }
}
