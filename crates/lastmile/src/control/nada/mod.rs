//! NADA: one congestion signal out of queueing delay, losses and marks, and a rate that holds it where the rate's share is.
//!
//! Zhu, Pan, Ramalho, Mena, "Network-Assisted Dynamic Adaptation (NADA)", RFC 8698. The receiver's half (section 4.2) runs at the
//! sender, from feedback of each packet, which sections 5.3 and 6.4 permit: any receiver with RFC 8888 will do. `docs/rate-control.md`
//! decides the points left open there and compares it with the authors' own program.

mod options;
mod receiver;

pub use options::{LossInterval, NadaConfig};
use receiver::{NadaReport, Receiver};

use super::receive_clock::ReceiveClock;
use super::{
    Controller, Decision, Fate, Feedback, Flow, Information, Made, News, Output, RateController, Report,
    Sent, Setting, Signal, Summary,
};
use crate::classify::LossClass;
use crate::node::Ecn;
use crate::options::{Given, Options};
use crate::telemetry::Visitor;
use crate::time::{Span, Time};
use crate::units::Rate;

/// Its place in the registry.
pub const ENTRY: Controller = Controller {
    name: "nada",
    about: "queueing delay, losses and marks as one signal, held where the share of the highest rate has it",
    paper: "RFC 8698, calculated at the sender",
    classifier: None,
    needs: Information::Times,
    below: "goes by round-trip times (section 6.1), and so by queues of feedback too; from sums alone it warps no delay",
    options: NadaConfig::OPTIONS,
    make: |given: &Given, setting| -> Made { Ok(Box::new(Nada::new(NadaConfig::read(given)?, setting))) },
};

/// The rate after the first round trip where there is no RMIN to begin at, in bytes a second: RMIN of table 2.
const RSTART: f64 = 150e3 / 8.0;
/// RMAX where neither user nor sources name one, in bytes a second (section 4.3).
const RMAX: f64 = 3e6 / 8.0;
/// NADA's state at the sender. Rates are IP bytes a second, times seconds.
#[derive(Clone, Debug)]
struct Nada {
    flow: Flow,
    limits: Setting,
    receiver: Receiver,
    clock: ReceiveClock,
    /// RMIN and RMAX.
    range: (f64, f64),
    r_ref: f64,
    rtt: Option<f64>,
    /// The last report; its x_curr is x_prev.
    last: NadaReport,
    /// The first ramp-up is over.
    ramped: bool,
    /// When the last report was made, and when feedback came last.
    t_last: Option<Time>,
    heard: Option<Time>,
    /// Bytes in the rate-shaping buffer, as far as the host tells.
    buffer_len: f64,
}

impl Nada {
    fn new(config: NadaConfig, setting: &Setting) -> Nada {
        let flow = Flow::new(setting);
        let mut nada = Nada {
            receiver: Receiver::new(config),
            r_ref: flow.start_rate().unwrap_or(0.0),
            flow,
            limits: *setting,
            clock: ReceiveClock::default(),
            range: (0.0, RMAX),
            rtt: None,
            last: NadaReport { x_curr: 0.0, ramping: true, r_recv: 0.0 },
            ramped: false,
            t_last: None,
            heard: None,
            buffer_len: 0.0,
        };
        nada.set_range(Rate::ip(0), nada.limits.max);
        nada
    }

    /// RMIN and RMAX [4.3]: the user's; or those of the setting and the sources; or none, and 3 Mbit/s.
    fn set_range(&mut self, min: Rate, max: Rate) {
        let bytes = |rate: Rate| rate.bits_per_second() as f64 / 8.0;
        let known = bytes(self.limits.max).min(bytes(max));
        let rmax = if known < bytes(Setting::default().max) { known } else { RMAX };
        let rmin = self.receiver.config.rmin.map_or(bytes(self.limits.min).max(bytes(min)), bytes);
        self.range = (rmin, self.receiver.config.rmax.map_or(rmax, bytes).max(rmin));
        self.r_ref = self.clip(self.r_ref);
    }

    /// Equations 8 and 9, and no more than a receiver asks for; without RMIN, the least that a law need ask for.
    fn clip(&self, rate: f64) -> f64 {
        rate.min(self.range.1).min(self.flow.max_rate()).max(self.range.0).max(self.flow.slowest_rate())
    }

    /// A report, `delta` seconds after the last [4.3].
    fn on_report(&mut self, report: NadaReport, delta: f64) {
        self.r_ref = self.clip(if report.ramping {
            self.ramped_up(report.r_recv)
        } else {
            self.graded(report.x_curr, delta)
        });
        self.last = report;
        if !report.ramping && !self.ramped {
            self.ramped = true;
            self.flow.decide(Decision::SlowStartEnded { rate: self.flow.rate(self.r_ref) });
        }
    }

    /// Accelerated ramp-up.
    fn ramped_up(&self, r_recv: f64) -> f64 {
        let NadaConfig { delta, dfilt, qbound, gamma_max, .. } = self.receiver.config;
        // (3)
        let gamma =
            gamma_max.min(qbound.as_secs_f64() / (self.rtt.unwrap_or(0.0) + (delta + dfilt).as_secs_f64()));
        // (4)
        self.r_ref.max((1.0 + gamma) * r_recv)
    }

    /// Gradual update.
    fn graded(&self, x_curr: f64, delta: f64) -> f64 {
        let NadaConfig { prio, kappa, eta, .. } = self.receiver.config;
        let (tau, xref) = (self.receiver.config.tau.as_secs_f64(), self.receiver.config.xref.as_secs_f64());
        // (5), (6)
        let x_offset = x_curr - prio * xref * self.range.1 / self.r_ref;
        let x_diff = x_curr - self.last.x_curr;
        // (7)
        self.r_ref
            - kappa * (delta / tau) * (x_offset / tau) * self.r_ref
            - kappa * eta * (x_diff / tau) * self.r_ref
    }
}

impl RateController for Nada {
    fn on_sent(&mut self, now: Time, sent: &Sent) {
        self.flow.on_sent(now, sent);
        self.flow.expect_feedback(self.rtt, self.r_ref);
        self.t_last.get_or_insert(self.flow.now());
    }

    fn on_feedback(&mut self, now: Time, feedback: &mut Feedback<'_>) {
        self.flow.on_feedback(now);
        let now = self.flow.now();
        let sample = self.flow.round_trip(feedback).map(|sample| sample.as_secs_f64());
        if let (None, None, Some(rtt)) = (self.rtt, self.flow.start_rate(), sample) {
            // A start for sources without RMIN.
            self.r_ref = self.clip(self.r_ref.max(self.flow.initial_rate(rtt).min(RSTART)));
        }
        // RFC 6298's weight: RFC 8698 names none.
        self.rtt = sample.map(|s| self.rtt.map_or(s, |rtt| rtt + (s - rtt) / 8.0)).or(self.rtt);
        let (mut arrivals, mut losses) = (false, false);
        for Report { sent, fate } in feedback.reports.iter() {
            let news = self.flow.on_report(sent);
            match *fate {
                _ if news == News::NeverSent => {}
                Fate::Arrived { at, ecn } if news == News::New => {
                    arrivals = true;
                    let one_way = at.map(|at| at - sent.at.as_sender());
                    self.receiver.arrived(now, sent, one_way, sample, ecn == Ecn::Ce);
                }
                Fate::Lost { class: LossClass::Congestion, .. } => {
                    losses = true;
                    let rtt = Span::from_secs_f64(self.rtt.unwrap_or(0.0));
                    if let Some(loss_event_rate) = self.receiver.lost(now, sent, rtt) {
                        self.flow.decide(Decision::LossEvent { id: sent.id, loss_event_rate });
                    }
                }
                _ => {}
            }
        }
        let nanos = self.clock.advance(now, feedback.remote_sent);
        match feedback.receiver {
            None => self.receiver.count(nanos),
            Some(Summary { received, over, loss_event_rate }) => {
                arrivals |= received.0 > 0;
                let rate = (over > Span::ZERO).then(|| received.0 as f64 / over.as_secs_f64());
                self.receiver.summed(now, rate, loss_event_rate);
            }
        }
        if arrivals {
            self.flow.restart(self.rtt, self.r_ref);
        }
        self.flow.expect_feedback(self.rtt, self.r_ref);
        let gap = self.heard.replace(now).map_or(Span::ZERO, |heard| now - heard);
        let t_last = *self.t_last.get_or_insert(now);
        if (arrivals || losses) && now + gap / 2 >= t_last + self.receiver.config.delta {
            self.t_last = Some(now);
            let report = self.receiver.report(now);
            self.on_report(report, (now - t_last).as_secs_f64());
        }
    }

    fn on_signal(&mut self, now: Time, signal: Signal) {
        self.flow.on_signal(now, signal);
        match signal {
            Signal::Demand { min, max, .. } => self.set_range(min, max),
            Signal::Backlog { bytes } => self.buffer_len = bytes.0 as f64,
            Signal::PersistentCongestion => self.r_ref = self.clip(0.0),
            Signal::Route { .. } => self.receiver.on_route(),
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.flow.poll_timeout()
    }

    /// RFC 8698 says nothing of silence: the rate halves, as TFRC's does.
    fn on_timeout(&mut self, now: Time) {
        if self.flow.is_overdue(now) {
            self.r_ref = (self.r_ref / 2.0).max(self.flow.slowest_rate());
            self.flow.no_feedback(self.rtt, self.r_ref);
        }
    }

    fn poll_decision(&mut self) -> Option<Decision> {
        self.flow.poll_decision()
    }

    fn output(&self) -> Output {
        let NadaConfig { beta_v, beta_s, fps, .. } = self.receiver.config;
        // (11), (12)
        let shift = |beta: f64| (0.05 * self.r_ref).min(beta * self.buffer_len * fps);
        // (13), (14)
        let r_vin = (self.r_ref - shift(beta_v)).max(self.range.0.min(self.r_ref));
        let r_send = (self.r_ref + shift(beta_s)).min(self.range.1);
        Output { pacing: self.flow.rate(r_send), ..Output::rate(self.flow.rate(r_vin)) }
    }

    fn telemetry(&self, visitor: &mut dyn Visitor) {
        let (queueing, p_loss) = self.receiver.state();
        visitor.state("mode", if self.last.ramping { "accelerated ramp-up" } else { "gradual update" });
        visitor.number("reference rate", "bit/s", 8.0 * self.r_ref);
        visitor.number("receive rate", "bit/s", 8.0 * self.last.r_recv);
        visitor.number("congestion signal", "s", self.last.x_curr);
        visitor.number("queueing delay", "s", queueing);
        visitor.number("loss ratio", "", p_loss);
    }

    fn clone_box(&self) -> Box<dyn RateController> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests;
