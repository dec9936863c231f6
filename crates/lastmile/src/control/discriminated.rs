//! A loss classifier in front of a controller: losses that it judges wireless are no congestion to what stands behind it.

use super::rate_test::RateTest;
use super::{
    Action, Decision, Decisions, Fate, Feedback, Output, RateController, Report, Sent, Setting, Signal,
};
use crate::classify::{self, Arrival, Discriminator, Loss, LossClass, LossCounts, Verdicts};
use crate::telemetry::Visitor;
use crate::time::Time;
use crate::units::Bytes;

/// Memory for verdicts, in packets behind the newest judged loss.
const REMEMBERED: u64 = 512;

/// Verdicts on the losses of late, a bit for each packet: hosts may tell of a loss twice, or after later ones.
#[derive(Clone, Copy, Debug, Default)]
struct Recent {
    /// The newest packet whose loss was judged.
    newest: Option<u64>,
    /// Two bits for each packet: its loss was judged; the wireless link lost it.
    bits: [[u64; (REMEMBERED / 64) as usize]; 2],
}

impl Recent {
    /// Word and mask of a packet's bits.
    fn place(id: u64) -> (usize, u64) {
        ((id % REMEMBERED / 64) as usize, 1 << (id % 64))
    }

    /// The verdict on a loss; `None` if it was not judged yet. Losses too old to be remembered count as congestion.
    fn verdict(&self, id: u64) -> Option<LossClass> {
        let newest = self.newest.filter(|newest| id <= *newest)?;
        let (word, bit) = Recent::place(id);
        let [judged, wireless] = self.bits.map(|bits| bits[word] & bit != 0);
        match newest - id {
            behind if behind >= REMEMBERED => Some(LossClass::Congestion),
            _ if !judged => None,
            _ if wireless => Some(LossClass::Wireless),
            _ => Some(LossClass::Congestion),
        }
    }

    fn remember(&mut self, id: u64, class: LossClass) {
        // The places of the packets in between hold verdicts that are too old.
        let from = self.newest.map_or(id, |newest| newest.saturating_add(1));
        for id in from.max(id.saturating_sub(REMEMBERED - 1))..=id {
            let (word, bit) = Recent::place(id);
            self.bits.iter_mut().for_each(|bits| bits[word] &= !bit);
        }
        self.newest = self.newest.max(Some(id));
        let (word, bit) = Recent::place(id);
        self.bits[0][word] |= bit;
        if class == LossClass::Wireless {
            self.bits[1][word] |= bit;
        }
    }
}

/// A controller and the classifier in front of it.
///
/// In front of a controller that knows nothing of this crate, [`judge`](Discriminated::judge) alone is used: the host then
/// leaves out the reports whose class is wireless.
#[derive(Clone, Debug)]
pub struct Discriminated {
    discriminator: Discriminator,
    controller: Box<dyn RateController>,
    decisions: Decisions,
    /// The highest number that arrived, and the verdicts of late: feedback that repeats itself is taken once.
    highest: Option<u64>,
    recent: Recent,
    rate_test: RateTest,
    now: Time,
}

impl Discriminated {
    /// Puts a classifier in front of a controller.
    pub fn new(discriminator: Discriminator, controller: Box<dyn RateController>) -> Discriminated {
        Discriminated {
            discriminator,
            controller,
            decisions: Decisions::default(),
            highest: None,
            recent: Recent::default(),
            rate_test: RateTest::new(Setting::default().min),
            now: Time::ZERO,
        }
    }

    /// The same where no test of the rate may send less than the user allows.
    pub(super) fn within(self, setting: &Setting) -> Discriminated {
        Discriminated { rate_test: RateTest::new(setting.min), ..self }
    }

    /// Losses judged so far, by verdict.
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
        // Losses at the end are judged by the last state known.
        self.settle(feedback, feedback.reports.len(), &mut waiting);
    }

    /// Counts what was judged for tests of the rate, which may end the trust in the classifier.
    fn test_rate(&mut self, feedback: &Feedback<'_>) {
        for report in feedback.reports.iter() {
            match report.fate {
                Fate::Arrived { .. } => self.rate_test.arrived(&report.sent),
                Fate::Lost { class: LossClass::Wireless, .. } => self.rate_test.lost(&report.sent),
                _ => {}
            }
        }
        let answered = feedback.newest().map(|newest| self.now - feedback.reports[newest].sent.at);
        let wanted = self.discriminator.wants_rate_test();
        if let Some(share) = self.rate_test.on_feedback(self.now, answered, wanted) {
            self.discriminator.doubt_by_rate(share);
        }
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
            if let Some(before) = self.recent.verdict(seq) {
                *class = before;
                continue;
            }
            let loss = Loss { seq, run, bytes: Some(bytes), truth: truth.and_then(|truth| truth.cause(seq)) };
            *class = self.discriminator.classify(&loss);
            let (class, by) = (*class, self.discriminator.judge());
            self.recent.remember(seq, class);
            truth.into_iter().for_each(|truth| truth.judged(seq, class));
            self.decisions.push(classify::Decision::LossJudged { id: seq, packets: 1, class, by });
        }
    }
}

impl RateController for Discriminated {
    fn on_sent(&mut self, now: Time, sent: &Sent) {
        self.now = self.now.max(now);
        self.controller.on_sent(now, sent);
    }

    fn on_feedback(&mut self, now: Time, feedback: &mut Feedback<'_>) {
        self.now = self.now.max(now);
        self.judge(now, feedback);
        self.test_rate(feedback);
        self.controller.on_feedback(now, feedback);
    }

    fn on_signal(&mut self, now: Time, signal: Signal) {
        self.now = self.now.max(now);
        match signal {
            Signal::Route { .. } => {
                self.discriminator.on_route_change();
                self.rate_test.on_route_change();
            }
            Signal::Excess { loss, trips } => self.discriminator.on_excess(loss, trips),
            _ => {}
        }
        self.controller.on_signal(now, signal);
    }

    fn poll_timeout(&self) -> Option<Time> {
        [self.rate_test.poll_timeout(self.now), self.controller.poll_timeout()].into_iter().flatten().min()
    }

    fn on_timeout(&mut self, now: Time) {
        self.now = self.now.max(now);
        if self.controller.poll_timeout().is_some_and(|at| at <= self.now) {
            self.controller.on_timeout(now);
        }
    }

    fn poll_action(&mut self) -> Option<Action> {
        self.controller.poll_action()
    }

    fn poll_decision(&mut self) -> Option<Decision> {
        self.decisions.pop().or_else(|| self.controller.poll_decision())
    }

    fn verdicts(&self) -> Option<Verdicts> {
        Some(self.discriminator.verdicts())
    }

    fn output(&self) -> Output {
        self.rate_test.output(self.now, self.controller.output())
    }

    fn telemetry(&self, visitor: &mut dyn Visitor) {
        self.discriminator.telemetry(visitor);
        self.controller.telemetry(visitor);
    }

    fn clone_box(&self) -> Box<dyn RateController> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LossTruth, LostBy, build};
    use super::*;
    use crate::classify::Decision::{FellBack, LossJudged};
    use crate::time::Span;

    const WIRELESS: Fate = Fate::Lost { by: LostBy::Gap, class: LossClass::Wireless };

    #[derive(Debug)]
    struct Odd;
    impl LossTruth for Odd {
        fn cause(&self, id: u64) -> Option<LossClass> {
            Some(if id % 2 == 1 { LossClass::Wireless } else { LossClass::Congestion })
        }
    }

    fn with(name: &str) -> Discriminated {
        let fixed = build(&"fixed".parse().unwrap(), &Setting::default()).unwrap();
        Discriminated::new(Discriminator::new(&name.parse().unwrap()).unwrap(), fixed)
    }

    /// Packets of 1000 B every 10 ms from the given number on, each 10 ms on the link; `.` arrives, `x` is lost.
    fn reports(first: u64, fates: &str) -> Vec<Report> {
        let report = |(k, fate)| {
            let id = first + k as u64;
            let at = Time::ZERO + Span::from_millis(10 * id as i64);
            let came = Fate::arrived((at + Span::from_millis(25)).as_receiver());
            Report {
                sent: Sent::media(id, Bytes(1000), at),
                fate: if fate == 'x' { Fate::lost(LostBy::Gap) } else { came },
            }
        };
        fates.chars().enumerate().map(report).collect()
    }

    fn judged(by: &mut Discriminated, reports: &mut [Report], truth: Option<&dyn LossTruth>) -> Vec<u64> {
        by.judge(Time::ZERO + Span::from_secs(1), &mut Feedback { truth, ..Feedback::exact(reports, None) });
        reports.iter().filter(|report| report.fate == WIRELESS).map(|report| report.sent.id).collect()
    }

    #[test]
    fn verdicts_stand_in_the_reports_and_nothing_else_changes() {
        let mut by = with("biaz");
        let mut told = reports(0, "....xx..x.");
        let before = told.clone();
        assert_eq!(judged(&mut by, &mut told, None), [4, 5, 8]);
        for (after, before) in told.iter().zip(&before).filter(|(after, _)| after.fate != WIRELESS) {
            assert_eq!(after, before);
        }
        assert_eq!((by.counts().wireless, by.counts().congestion), (3, 0));
        // Told once more, they keep the verdict, and count once.
        assert_eq!(judged(&mut by, &mut before.clone(), None), [4, 5, 8]);
        assert_eq!((by.counts().wireless, by.counts().congestion), (3, 0));
        // A gap that begins with the feedback.
        assert_eq!(judged(&mut by, &mut reports(10, "x..."), None), [10]);
        // A host that was sure of a loss only after it had told of later arrivals.
        let mut none = with("none");
        judged(
            &mut none,
            &mut reports(0, ".x..").into_iter().filter(|r| r.sent.id != 1).collect::<Vec<_>>(),
            None,
        );
        judged(&mut none, &mut reports(1, "x..."), None);
        assert_eq!(none.counts().congestion, 1);
    }

    /// A loss that is told after a later one is judged, once; a loss judged long ago is congestion when it is told again.
    #[test]
    fn verdicts_of_late_are_remembered() {
        let mut recent = Recent::default();
        recent.remember(10, LossClass::Wireless);
        recent.remember(8, LossClass::Congestion);
        let told = |recent: &Recent, ids: [u64; 4]| ids.map(|id| recent.verdict(id));
        let (w, c) = (Some(LossClass::Wireless), Some(LossClass::Congestion));
        assert_eq!(told(&recent, [8, 9, 10, 11]), [c, None, w, None]);
        // 522 has the place of 10, and those in between have not been judged.
        recent.remember(600, LossClass::Wireless);
        assert_eq!(told(&recent, [10, 522, 599, 600]), [c, None, None, w]);
        recent.remember(u64::MAX, LossClass::Congestion);
        assert_eq!(told(&recent, [0, 600, u64::MAX - 1, u64::MAX]), [c, c, None, c]);
    }

    #[test]
    fn omniscient_judges_each_packet_of_a_gap_by_its_own_cause() {
        let mut by = with("omniscient");
        assert_eq!(judged(&mut by, &mut reports(0, "..xxxx.."), Some(&Odd)), [3, 5]);
        assert_eq!((by.counts().mc(), by.counts().mw()), (Some(0.0), Some(0.0)));
        let mut blind = with("none");
        assert!(judged(&mut blind, &mut reports(0, "..xxxx.."), Some(&Odd)).is_empty());
        assert_eq!((blind.counts().mc(), blind.counts().mw()), (Some(0.0), Some(1.0)));
    }

    /// T_min is 10 ms: mBiaz wants stamps of 0.77 ms, and RFC 8888's are of 0.98.
    #[test]
    fn coarse_feedback_is_judged_by_spike_and_the_host_is_told() {
        let mut by = with("mbiaz");
        judged(&mut by, &mut reports(0, "...."), None);
        assert_eq!(by.poll_decision(), None);
        let mut told = reports(4, "x...");
        let coarse = Some(Span::from_nanos(976_563));
        by.judge(Time::ZERO, &mut Feedback { resolution: coarse, ..Feedback::exact(&mut told, None) });
        let Some(Decision::Classify(FellBack { from: "mbiaz", to: "spike", needs, resolution })) =
            by.poll_decision()
        else {
            panic!()
        };
        assert_eq!((needs, resolution), (Span::from_nanos(769_230), coarse));
        assert!(matches!(
            by.poll_decision(),
            Some(Decision::Classify(LossJudged { id: 4, by: "spike", .. }))
        ));
        assert_eq!(by.poll_decision(), None);
    }
}
