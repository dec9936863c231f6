//! A loss classifier in front of a controller: losses that it judges wireless are no congestion to what stands behind it.

use super::{Action, Decision, Decisions, Fate, Feedback, Output, RateController, Report, Sent, Signal};
use crate::classify::{Arrival, Discriminator, Loss, LossCounts};
use crate::telemetry::Visitor;
use crate::time::Time;
use crate::units::Bytes;

/// A controller and the classifier in front of it.
///
/// In front of a controller that knows nothing of this crate, [`judge`](Discriminated::judge) alone is used: the host then
/// leaves out the reports whose class is wireless.
#[derive(Debug)]
pub struct Discriminated {
    discriminator: Discriminator,
    controller: Box<dyn RateController>,
    decisions: Decisions,
    /// The highest number that was judged or arrived: feedback that repeats itself is judged once.
    highest: Option<u64>,
}

impl Discriminated {
    /// Puts a classifier in front of a controller.
    pub fn new(discriminator: Discriminator, controller: Box<dyn RateController>) -> Discriminated {
        Discriminated { discriminator, controller, decisions: Decisions::default(), highest: None }
    }

    /// How losses were judged so far.
    pub fn counts(&self) -> LossCounts {
        self.discriminator.counts()
    }

    /// Writes into the reports of lost packets what lost them.
    pub fn judge(&mut self, now: Time, feedback: &mut Feedback<'_>) {
        if let Some(change) = self.discriminator.suit(feedback.resolution) {
            self.decisions.push(change);
        }
        let newest = feedback.newest().map(|i| (i, feedback.rtt(now)));
        let mut waiting = 0;
        for i in 0..feedback.reports.len() {
            let report = feedback.reports[i];
            match report.fate {
                Fate::Lost { .. } => waiting += 1,
                Fate::Late { .. } => {}
                Fate::Arrived { at, .. } => {
                    let rtt = feedback.rtt_of(now, &report).or_else(|| newest.filter(|n| n.0 == i)?.1);
                    let Sent { id: seq, size, at: sent, .. } = report.sent;
                    if self.highest.is_none_or(|highest| seq > highest) {
                        let arrival = Arrival { seq, size, sent: sent.as_sender(), at, rtt };
                        self.discriminator.on_arrival(&arrival);
                    }
                    self.settle(feedback, i, &mut waiting);
                    self.highest = self.highest.max(Some(seq));
                }
            }
        }
        // What is lost at the end is judged by the last state known.
        self.settle(feedback, feedback.reports.len(), &mut waiting);
    }

    /// Asks about the losses among the reports before `end` that wait.
    fn settle(&mut self, feedback: &mut Feedback<'_>, end: usize, waiting: &mut usize) {
        if *waiting == 0 {
            return;
        }
        let truth = feedback.truth;
        let mut first = end;
        while first > 0 && !matches!(feedback.reports[first - 1].fate, Fate::Arrived { .. }) {
            first -= 1;
        }
        let run = u32::try_from(core::mem::take(waiting)).unwrap_or(u32::MAX);
        let lost = |report: &&mut Report| matches!(report.fate, Fate::Lost { .. });
        let bytes: Bytes = feedback.reports[first..end].iter_mut().filter(lost).map(|r| r.sent.size).sum();
        for report in &mut feedback.reports[first..end] {
            let Fate::Lost { class, .. } = &mut report.fate else { continue };
            let seq = report.sent.id;
            let loss = Loss { seq, run, bytes: Some(bytes), truth: truth.and_then(|truth| truth.cause(seq)) };
            if self.highest.is_none_or(|highest| seq > highest) {
                *class = self.discriminator.classify(&loss);
                let (class, by, truth) = (*class, self.discriminator.judge(), loss.truth);
                self.decisions.push(Decision::LossJudged { id: seq, class, by, truth });
                self.highest = self.highest.max(Some(seq));
            }
        }
    }
}

impl RateController for Discriminated {
    fn on_sent(&mut self, now: Time, sent: &Sent) {
        self.controller.on_sent(now, sent);
    }

    fn on_feedback(&mut self, now: Time, feedback: &mut Feedback<'_>) {
        self.judge(now, feedback);
        self.controller.on_feedback(now, feedback);
    }

    fn on_signal(&mut self, now: Time, signal: Signal) {
        if let Signal::Route { .. } = signal {
            self.discriminator.on_route_change();
        }
        self.controller.on_signal(now, signal);
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.controller.poll_timeout()
    }

    fn on_timeout(&mut self, now: Time) {
        self.controller.on_timeout(now);
    }

    fn poll_action(&mut self) -> Option<Action> {
        self.controller.poll_action()
    }

    fn poll_decision(&mut self) -> Option<Decision> {
        self.decisions.pop().or_else(|| self.controller.poll_decision())
    }

    fn output(&self) -> Output {
        self.controller.output()
    }

    fn telemetry(&self, visitor: &mut dyn Visitor) {
        self.discriminator.telemetry(visitor);
        self.controller.telemetry(visitor);
    }
}
