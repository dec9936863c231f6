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
//! | `receiver` | 6: the receiver; `control::receive_rate` has X_recv, `control::receive_clock` the clock that it is on |
//! | `data_limited`, `receive_set` | 8.2: data-limited intervals, X_recv_set |

mod connections;
mod data_limited;
mod equation;
mod history;
mod intervals;
mod law;
mod ns2;
mod options;
mod receive_set;
mod receiver;
mod sender;

pub use equation::Equation;
pub use options::{Form, Preset, TfrcConfig};
pub use receiver::{Receiver, ReceiverFeedback, ReceiverPacket};

use connections::Connections;
use data_limited::DataLimited;
use history::{LossHistory, Now};
pub(super) use intervals::LossIntervals;
use law::{Facts, Law};
use options::Parameters;

use super::lately::Lately;
use super::receive_clock::ReceiveClock;
use super::receive_rate::ReceiveRate;
use super::{
    Action, Controller, Decision, Fate, Feedback, Flow, Information, Made, News, Output, RateController,
    Report, RouteChange, Sent, Setting, Signal, Source,
};
use crate::classify::LossClass;
use crate::node::Ecn;
use crate::options::{Given, Options};
use crate::telemetry::Visitor;
use crate::time::{Span, Time};
use crate::units::Rate;

/// Bytes of a loss history.
pub const LOSS_HISTORY: usize = size_of::<LossHistory>();

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
#[derive(Clone, Debug)]
pub struct Tfrc {
    parameters: Parameters,
    law: Box<dyn Law>,
    connections: Connections,
    factor: f64,
    receive: ReceiveRate,
    clock: ReceiveClock,
    /// p.
    loss_event_rate: f64,
    /// The largest X_recv so far, and the newest, in bytes a second.
    max_receive_rate: f64,
    received: f64,
    limited: DataLimited,
    /// Bytes that left, the rates at which they did of late and the highest of them: reports may say more.
    sending: ReceiveRate,
    send_rates: Lately,
    max_send_rate: f64,
    sent_since_timer: bool,
    /// A classifier has taken losses out of p.
    sifted: bool,
    /// The receiver is to be asked to forget its losses; until it has, or that time has come, its p counts as none.
    forget: bool,
    forgets_until: Option<Time>,
    flow: Flow,
}

impl Tfrc {
    /// Within the limits of `setting`.
    pub fn new(config: &TfrcConfig, setting: &Setting) -> Tfrc {
        Tfrc::several(config, setting, 1)
    }

    /// With room for the loss histories of up to `most` connections; it begins with one.
    pub(super) fn several(config: &TfrcConfig, setting: &Setting, most: usize) -> Tfrc {
        let parameters = config.parameters();
        let flow = Flow::new(setting);
        let start = flow.start_rate();
        let mut tfrc = Tfrc {
            law: parameters.law(1.0, None),
            connections: Connections::new(parameters.history(), most),
            factor: 1.0,
            parameters,
            receive: ReceiveRate::default(),
            clock: ReceiveClock::default(),
            loss_event_rate: 0.0,
            max_receive_rate: 0.0,
            received: 0.0,
            limited: DataLimited::default(),
            sending: ReceiveRate::default(),
            send_rates: Lately::default(),
            max_send_rate: 0.0,
            sent_since_timer: false,
            sifted: false,
            forget: false,
            forgets_until: None,
            flow,
        };
        tfrc.law = parameters.law(tfrc.segment(), start.map(|start| start * tfrc.paced()));
        tfrc
    }

    /// The rate is that of so many connections from now on, to which packets are dealt in turn, times a factor.
    pub(super) fn connect(&mut self, count: usize, factor: f64) {
        self.factor = factor;
        let newest = self.flow.numbers.sent.max(self.flow.numbers.reported);
        self.connections.set(count, newest.map_or(0, |newest| newest.saturating_add(1)));
    }

    /// R, in seconds.
    pub(super) fn rtt(&self) -> Option<f64> {
        self.law.rtt()
    }

    /// s: the bytes of a packet that are paced.
    fn segment(&self) -> f64 {
        (self.flow.packet_size() - self.parameters.header).max(1.0)
    }

    /// The part of IP bytes that is paced.
    fn paced(&self) -> f64 {
        self.segment() / self.flow.packet_size()
    }

    fn rate(&self, paced_bytes: f64) -> Rate {
        self.flow.rate(paced_bytes / self.paced())
    }

    /// Takes in the fate of each packet. True if a loss event began, and the factor on the equation's rate.
    fn on_reports(&mut self, feedback: &Feedback<'_>, rtt: Span) -> (bool, f64) {
        let mut numbers = self.flow.numbers;
        for Report { sent, fate } in feedback.reports.iter() {
            if numbers.on_report(sent.id) == News::New && matches!(fate, Fate::Arrived { .. }) {
                self.receive.add(sent.size.0);
            }
        }
        let nanos = self.clock.advance(self.flow.now(), feedback.remote_sent);
        if let Some((bytes, span)) = self.receive.feedback(nanos, rtt) {
            self.set_received(bytes as f64 * 1e9 / span as f64);
        }
        let (segment, seconds) = (self.segment(), rtt.as_secs_f64().max(1e-6));
        // [RFC 5348, 6.3.1] X_target is the largest X_recv so far, at least half a packet in a round-trip time.
        let share = self.max_receive_rate / self.connections.count() as f64;
        let target = share.max(0.5 * segment / seconds);
        let equation = self.law.equation(segment, seconds);
        let first = || 1.0 / equation.loss_event_rate(target);
        let now = Now { rtt, first: &first, round: None };
        let mut began = false;
        for i in 0..feedback.reports.len() {
            let Report { sent, fate } = feedback.reports[i];
            let news = self.flow.on_report(&sent);
            if news == News::NeverSent {
                continue;
            }
            let time = sent.at.as_nanos();
            let now = Now { round: self.law.round(sent.at), ..now };
            let event = match fate {
                Fate::Arrived { ecn, .. } if news == News::New => {
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
                Fate::Lost { class: LossClass::Wireless, .. } => {
                    self.sifted = true;
                    None
                }
            };
            if !sent.app_limited {
                self.limited.reported = self.limited.reported.max(Some(sent.at));
            }
            if news == News::New && !self.flow.tells_of_sending() {
                self.law.on_packet();
            }
            if let Some((id, loss_event_rate)) = event {
                began = true;
                self.flow.decide(Decision::LossEvent { id, loss_event_rate });
            }
        }
        let (loss_event_rate, times) = self.connections.together(&equation);
        self.loss_event_rate = loss_event_rate;
        (began, times)
    }

    /// X_recv of IP bytes, kept in those that are paced.
    fn set_received(&mut self, bytes_per_second: f64) {
        self.received = bytes_per_second * self.paced();
        self.max_receive_rate = self.max_receive_rate.max(self.received);
    }
}

impl RateController for Tfrc {
    fn on_sent(&mut self, now: Time, sent: &Sent) {
        self.flow.on_sent(now, sent);
        let now = self.flow.now();
        self.law.start(now);
        self.law.on_packet();
        self.sent_since_timer = true;
        self.sending.add(sent.size.0);
        if !sent.app_limited {
            self.limited.on_sent(now);
        }
    }

    fn on_feedback(&mut self, now: Time, feedback: &mut Feedback<'_>) {
        let now = self.flow.at(now);
        let sample = self.flow.round_trip(feedback);
        let rtt = self.law.rtt().map(Span::from_secs_f64).or(sample).unwrap_or(Span::ZERO);
        let (before, counted) = (self.loss_event_rate, self.received);
        self.received = 0.0;
        let (began, times) = match feedback.receiver {
            None => self.on_reports(feedback, rtt),
            Some(summary) => {
                if let Some((bytes, span)) = self.sending.feedback(now.as_nanos(), rtt) {
                    let seconds = (span as f64 / 1e9).max(rtt.as_secs_f64());
                    self.max_send_rate = self.send_rates.take(bytes as f64 / seconds, f64::max);
                }
                // [RFC 5348, 6.2, step 2] X_recv is taken over a round-trip time at least. Nobody receives at a much higher
                // rate than was sent at of late; queues that empty after an outage make up for the factor.
                let over = summary.over.max(rtt).as_secs_f64();
                let most =
                    if self.flow.tells_of_sending() { 2.0 * self.max_send_rate } else { f64::INFINITY };
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
        self.flow.spacing.heard(now);
        let received = (self.received > 0.0).then_some(self.received);
        let facts = Facts {
            rtt: sample.map(|sample| sample.as_secs_f64()),
            received,
            loss_event_rate: self.loss_event_rate,
            times: times * self.factor,
            worse: began || self.loss_event_rate > before,
            sifted: self.sifted
                && feedback
                    .reports
                    .iter()
                    .any(|report| matches!(report.fate, Fate::Lost { class: LossClass::Congestion, .. })),
            // [RFC 5348, 4.3] not where X_recv is zero
            data_limited: received.is_some()
                && newest.is_some_and(|new| self.limited.interval(now, new, rtt)),
            spacing: self.flow.spacing.beyond(rtt.as_secs_f64()),
            every: self.flow.spacing.usual(),
            segment: self.segment(),
            max: self.flow.max_rate(),
        };
        if received.is_none() {
            self.received = counted;
        }
        self.law.on_feedback(now, &facts);
        self.sent_since_timer = false;
        if before == 0.0 && self.loss_event_rate > 0.0 {
            self.flow.decide(Decision::SlowStartEnded { rate: self.rate(self.law.allowed()) });
        }
    }

    fn on_signal(&mut self, now: Time, signal: Signal) {
        self.flow.on_signal(now, signal);
        // There is no slow start once p > 0 [RFC 5348, 4.3]: the history is forgotten, by the receiver two round trips later.
        if let Signal::Route { why: RouteChange::MoreCapacity } = signal {
            self.connections.forget(&self.parameters.history());
            let rtt = self.law.rtt().unwrap_or(0.5);
            let until = self.flow.now() + Span::from_secs_f64(2.0 * rtt + self.flow.spacing.beyond(rtt));
            (self.forget, self.forgets_until) = (true, Some(until));
            self.loss_event_rate = 0.0;
            self.law.restart();
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.law.no_feedback_at()
    }

    fn on_timeout(&mut self, now: Time) {
        let now = self.flow.at(now);
        if self.law.no_feedback_at().is_none_or(|at| now < at) {
            return;
        }
        let idle = self.flow.tells_of_sending() && !self.sent_since_timer;
        let before = self.law.allowed();
        self.law.on_no_feedback(now, idle);
        self.sent_since_timer = false;
        if self.law.allowed() != before {
            self.flow.decide(Decision::NoFeedback { rate: self.rate(self.law.allowed()) });
        }
    }

    fn poll_action(&mut self) -> Option<Action> {
        core::mem::take(&mut self.forget).then_some(Action::ForgetLosses)
    }

    fn poll_decision(&mut self) -> Option<Decision> {
        self.flow.poll_decision()
    }

    fn output(&self) -> Output {
        let (allowed, instantaneous) = (self.law.allowed(), self.law.instantaneous());
        let target = self.rate(allowed.min(instantaneous));
        let rtt = self.law.rtt().map(Span::from_secs_f64);
        let round = self.law.round(self.flow.now()).unwrap_or(0);
        Output { pacing: self.rate(instantaneous), rtt, round, ..Output::rate(target) }
    }

    fn telemetry(&self, visitor: &mut dyn Visitor) {
        visitor.number("rate", "bit/s", self.rate(self.law.allowed()).bits_per_second() as f64);
        visitor.number("loss event rate", "", self.loss_event_rate);
        visitor.number("receive rate", "bit/s", 8.0 * self.received / self.paced());
        self.law.rtt().into_iter().for_each(|rtt| visitor.number("round-trip time", "s", rtt));
        self.law.telemetry(visitor);
    }

    fn clone_box(&self) -> Box<dyn RateController> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests;
