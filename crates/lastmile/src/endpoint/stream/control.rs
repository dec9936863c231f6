//! A rate controller at a sender of RTP: it is told of departures and, by congestion control feedback (RFC 8888), of arrivals,
//! or by reports of TFRC's receiver of what that counted.

use std::collections::VecDeque;
use std::sync::Arc;

use super::event::Decision;
use super::flight::Flight;
use super::receipts::{ReceiptClock, TICK};
use super::signals::Signals;
use super::summary::{Scheme, micros};
use crate::classify::LossClass;
use crate::control::{
    self, Fate, LossTruth, LostBy, PacketClass, RateController, Report, Source, Summary, arrival_order,
};
use crate::node::{Ecn, Output};
use crate::pace::Pacer;
use crate::time::{Rx, Span, Time};
use crate::units::{Bytes, Rate};
use crate::wire::{FeedbackBlock, SendTime, TfrcReport};

/// RFC 8888 stamps arrivals in 1/1024 s.
const RESOLUTION: Span = Span::from_nanos(976_563);
/// With a full window a packet leaves all the same, so long after the last: if all in flight are lost, its feedback tells of them.
const PROBE_AFTER: Span = Span::from_secs(1);
/// Padding that is owed, or was sent ahead, at most.
const OWED: Span = Span::from_millis(100);
/// Delay of this host that its pacer makes good, at most. A pause of the source gives nothing: a burst of the time that was not used would be a
/// queue (RFC 9331, section 4.3).
const CREDIT: Span = Span::from_millis(10);

/// Packets to measure with: their number, the size of each, and the time from one to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Train {
    pub(super) packets: u16,
    pub(super) size: Bytes,
    pub(super) gap: Span,
}

/// The controller, its pacer, and what is in flight.
#[derive(Debug)]
pub(super) struct Control {
    pub(super) controller: Box<dyn RateController>,
    pub(super) pacer: Pacer,
    /// Until feedback comes, no slower than that: two packets in sequence prove a source to its receiver, and a scheme that
    /// starts slower than RFC 5348's packet in a second would be over before a lost one is made good.
    pub(super) min_rate: Option<Rate>,
    /// The rates at which the second to the fourth packet follow at least. Two in sequence prove the source, and a source that is proven
    /// is answered: so many that any one of them may be lost. The third was not held for long where that answer comes after the usual
    /// interval. They are W_init of packets up to 1095 B (RFC 5348, section 4.2), a tenth more at 1200 B, and less than half of RFC 6928's.
    pub(super) opening: Option<[Rate; 3]>,
    /// No more than this, while a circuit breaker is tried.
    pub(super) ceiling: Option<Rate>,
    /// The source makes less than the target.
    pub(super) app_limited: bool,
    /// The source repeats a picture.
    pub(super) stands_still: bool,
    /// The train that the controller asks for, and the number of trains sent.
    pub(super) train: Option<Train>,
    pub(super) trains: u32,
    flight: Flight,
    /// When the last packet was to leave.
    planned_at: Option<Time>,
    /// Bytes sent since padding was last thought of, and those that it owes, negative if it is ahead.
    since_padding: Bytes,
    owed: i64,
    /// Time between feedback messages that the controller asks for.
    pub(super) feedback_every: Option<Span>,
    pub(super) signals: Signals,
    reports: Vec<Report>,
    /// The places of its arrivals, by their times, where these are not in the order of sending.
    order: Vec<u32>,
    /// Times of receipt, which are finer than feedback's.
    pub(super) receipts: ReceiptClock,
    resolution: Span,
    /// The last report's time as it was written, and unwrapped, in 1/65536 s.
    last_report: Option<(u32, u64)>,
    /// The target that was told last.
    last_target: Rate,
    /// The simulator's side channel.
    truth: Option<Arc<dyn LossTruth>>,
    /// True if packets carry the time; and the scheme by which the receiver is asked to count losses, if it is.
    timed: bool,
    pub(super) scheme: Option<Scheme>,
    /// The round-trip time that they carry, and which of the receiver's loss histories.
    rtt: Option<Span>,
    pub(super) history: bool,
    /// Packets that were lost, and those of them that were judged wireless.
    pub(super) lost: u64,
    pub(super) lost_wireless: u64,
    /// Packets that were lost and came after all.
    pub(super) late: u64,
}

impl Control {
    pub(super) fn new(
        controller: Box<dyn RateController>,
        (timed, scheme): (bool, Option<Scheme>),
        truth: Option<Arc<dyn LossTruth>>,
    ) -> Control {
        let told = controller.output().target;
        Control {
            controller,
            pacer: Pacer::new(Span::ZERO),
            min_rate: None,
            opening: None,
            ceiling: None,
            app_limited: false,
            stands_still: false,
            train: None,
            trains: 0,
            flight: Flight::default(),
            planned_at: None,
            since_padding: Bytes::ZERO,
            owed: 0,
            feedback_every: None,
            signals: Signals::default(),
            reports: Vec::new(),
            order: Vec::new(),
            receipts: ReceiptClock::default(),
            resolution: RESOLUTION,
            last_report: None,
            last_target: told,
            lost: 0,
            lost_wireless: 0,
            late: 0,
            truth,
            timed,
            scheme,
            rtt: None,
            history: false,
        }
    }

    /// The pacer may make good so much delay of this host.
    pub(super) fn make_good(&mut self, late: Span) {
        self.pacer.allow(late.min(CREDIT));
    }

    /// The rates of the source and of the pacer.
    pub(super) fn rates(&self) -> (Rate, Rate) {
        let control::Output { target, pacing, .. } = self.controller.output();
        let at_least = |rate: Rate, least: Option<Rate>| least.filter(|least| *least > rate).unwrap_or(rate);
        let pacing = at_least(self.below(pacing), self.min_rate);
        let follows = self.flight.next_media().saturating_sub(1) as usize;
        let opening = self.opening.and_then(|rates| rates.get(follows).copied());
        (at_least(self.below(target), self.min_rate), at_least(pacing, opening))
    }

    /// When the pacer lets the next packet leave: not before `from`, and behind the last of a train with gaps.
    pub(super) fn ready(&self, from: Time, pacing: Rate) -> Time {
        self.pacer.ready(from, pacing).max(self.planned_at.unwrap_or(from))
    }

    /// Content beside the header of a packet that leaves at `due`; `None` if packets carry no time.
    pub(super) fn stamp(&self, due: Time) -> Option<SendTime> {
        let (rtt, summary, history) = (self.rtt, self.scheme.is_some(), self.history);
        let round = || (self.controller.output().round % 16) as u8;
        self.timed.then(|| SendTime { at: micros(due), round: round(), rtt, summary, history })
    }

    /// Appends the decisions since the last call.
    pub(super) fn decisions(&mut self, out: &mut VecDeque<Output<Decision>>) {
        let decided = core::iter::from_fn(|| self.controller.poll_decision().map(Decision::Control));
        out.extend(decided.map(Output::Event));
        let target = self.target();
        if target.ratio(self.last_target).is_none_or(|ratio| (ratio - 1.0).abs() >= 0.05) {
            self.last_target = target;
            out.push_back(Output::Event(Decision::TargetChanged { target }));
        }
    }

    /// Rate that the controller wants the source to make, below the ceiling.
    pub(super) fn target(&self) -> Rate {
        self.below(self.controller.output().target)
    }

    /// Rate at which the controller wants packets released, below the ceiling.
    pub(super) fn pacing(&self) -> Rate {
        self.below(self.controller.output().pacing)
    }

    fn below(&self, rate: Rate) -> Rate {
        self.ceiling.filter(|ceiling| *ceiling < rate).unwrap_or(rate)
    }

    /// A packet was given to the driver, to leave at that time. Its number.
    pub(super) fn planned(&mut self, at: Time, size: Bytes, ecn: Ecn, class: PacketClass) -> u64 {
        let stream = u32::from(class == PacketClass::Rtx);
        let app_limited = self.app_limited;
        self.since_padding += size;
        self.planned_at = Some(at);
        self.flight.plan(control::Sent {
            stream,
            class,
            ecn,
            app_limited,
            ..control::Sent::media(0, size, at)
        })
    }

    /// When so many bytes may be sent by the window, not before `from`.
    pub(super) fn window_opens(&self, from: Time, size: Bytes) -> Time {
        let (under_way, _) = self.flight.bytes();
        let fits = |window: Bytes| under_way == Bytes::ZERO || under_way + size <= window;
        match (self.controller.output().window, self.planned_at) {
            (Some(window), Some(last)) if !fits(window) => from.max(last + PROBE_AFTER),
            _ => from,
        }
    }

    /// True if more may leave when feedback comes than at the next frame.
    pub(super) fn has_window(&self) -> bool {
        self.controller.output().window.is_some()
    }

    /// Bytes of packets that the driver has and that have not left.
    pub(super) fn planned_bytes(&self) -> Bytes {
        self.flight.bytes().1
    }

    /// Rate that padding fills up to: none for a source that makes nothing, or nothing new.
    pub(super) fn fills_up_to(&self) -> Rate {
        if self.signals.is_paused() || self.stands_still {
            return Rate::ip(0);
        }
        let control::Output { target, padding, keep_probing, .. } = self.controller.output();
        let wanted = if keep_probing && target > padding { target } else { padding };
        self.below(wanted)
    }

    /// The time of a frame begins: the bytes of padding that are due in it, beside what was sent since the last one.
    pub(super) fn padding_due(&mut self, time: Span, packet: Bytes) -> Bytes {
        let sent = core::mem::take(&mut self.since_padding);
        let rate = self.fills_up_to();
        if rate.bits_per_second() == 0 {
            self.owed = 0;
            return Bytes::ZERO;
        }
        let most = rate.bytes_in(OWED).max(packet * 2).0 as i64;
        let more = rate.bytes_in(time).0 as i64 - sent.0 as i64;
        self.owed = self.owed.saturating_add(more).clamp(-most, most);
        Bytes(self.owed.max(0) as u64)
    }

    /// A packet really left.
    pub(super) fn left(&mut self, now: Time, id: u64, at: Time) {
        if let Some(sent) = self.flight.leave(id, at) {
            self.controller.on_sent(now, sent);
        }
    }

    /// Feedback came, written at `at` (the middle 32 bits of an NTP timestamp). True if it tells anything new: feedback that repeats
    /// itself, or tells of no arrival and no loss, keeps no controller from backing off.
    pub(super) fn on_feedback(
        &mut self,
        now: Time,
        block: &FeedbackBlock<'_>,
        at: u32,
        stream: usize,
    ) -> bool {
        let remote = match self.last_report {
            None => (1 << 32) + u64::from(at),
            Some((before, unwrapped)) => {
                unwrapped.saturating_add_signed((at.wrapping_sub(before) as i32).into())
            }
        };
        self.last_report = Some((at, remote));
        let remote = Time::<Rx>::from_nanos(((u128::from(remote) * 1_000_000_000) >> 16) as u64);
        let (mut came, mut missing, mut coarse) = (false, false, false);
        for (low, told) in block.reports() {
            let Some(id) = self.flight.id(stream, low) else { continue };
            if !told.received {
                missing |= self.flight.misses(id);
            } else if self.flight.awaits(id) {
                let near = told.before_report().map(|ago| remote - ago);
                let fine = near.and_then(|near| self.receipts.refine((block.ssrc, low), near));
                (came, coarse) = (true, coarse || fine.is_none());
                self.flight.came(id, fine.or(near), told.ecn);
            }
        }
        if !came && !missing {
            return false;
        }
        if came {
            self.resolution = if coarse { RESOLUTION } else { TICK };
            self.min_rate = None;
        }
        self.reports.clear();
        let newest = self.flight.fates(&mut self.reports);
        if let Some(begin) = self.flight.id(stream, block.begin).filter(|_| stream == 0) {
            self.flight.left_behind(begin);
        }
        if !came && self.reports.is_empty() {
            return false;
        }
        arrival_order(&self.reports, &mut self.order);
        let truth = self.truth.as_deref().map(|truth| self.flight.truth(truth));
        let mut feedback = control::Feedback {
            reports: &mut self.reports,
            arrival_order: &self.order,
            resolution: Some(self.resolution),
            remote_sent: Some(remote),
            hold: newest.map_or(Span::ZERO, |newest| remote - newest),
            source: Source::Rfc8888,
            receiver: None,
            truth: truth.as_ref().map(|truth| truth as &dyn LossTruth),
        };
        let sample = feedback.rtt(now);
        self.controller.on_feedback(now, &mut feedback);
        self.measured(sample);
        self.signals.feedback(now, (sample, self.rtt), &self.reports, &mut *self.controller);
        for report in &self.reports {
            match report.fate {
                Fate::Lost { class, .. } => {
                    self.lost += 1;
                    self.lost_wireless += u64::from(class == LossClass::Wireless);
                }
                Fate::Late { .. } => self.late += 1,
                Fate::Arrived { .. } => {}
            }
        }
        true
    }

    /// A report of TFRC's receiver came. True if it tells of packets that were sent, and was asked for. This end knows better than the
    /// report's echo when its newest packet left.
    pub(super) fn on_report(&mut self, now: Time, report: &TfrcReport) -> bool {
        if self.scheme.is_none() {
            return false;
        }
        let Some((sent, before)) = self.flight.newest(report.sequence) else { return false };
        self.reports.clear();
        self.min_rate = None;
        // With times of receipt the fate of each packet is known; the receiver judges what lost them.
        let at = self.receipts.alone((report.source, report.sequence));
        let timed = before.filter_map(|(sent, sequence)| {
            let at = self.receipts.alone((report.source, sequence? as u16));
            let fate = at.map_or(Fate::lost(LostBy::Gap), Fate::arrived);
            Some(Report { sent, fate })
        });
        self.reports.extend(timed.filter(|_| at.is_some()));
        self.reports.push(Report { sent, fate: Fate::Arrived { at, ecn: Ecn::NotEct } });
        self.flight.forget(sent.id);
        let TfrcReport { received, over, loss_event_rate, .. } = *report;
        let mut feedback = control::Feedback {
            hold: report.delay,
            resolution: at.map(|_| TICK),
            receiver: Some(Summary { received, over, loss_event_rate }),
            ..control::Feedback::exact(&mut self.reports, None)
        };
        let sample = feedback.rtt(now);
        self.controller.on_feedback(now, &mut feedback);
        self.measured(sample);
        self.signals.feedback(now, (sample, self.rtt), &[], &mut *self.controller);
        true
    }

    /// Packets carry the round-trip time that the controller goes by; where it names none, samples smoothed as TFRC's sender smooths
    /// its own (RFC 5348, section 4.3).
    fn measured(&mut self, sample: Option<Span>) {
        let smoothed = sample.map(|sample| self.rtt.map_or(sample, |rtt| rtt + (sample - rtt) / 10));
        self.rtt = self.controller.output().rtt.or(smoothed).or(self.rtt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 40 ms and then 80: 44 to RFC 5348, whose memory is 0.9, and 42 to ns-2, whose memory is 0.95.
    #[test]
    fn packets_tell_the_round_trip_time_that_their_controller_goes_by() {
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        for (name, wanted) in
            [("tfrc(form=receiver)", 44), ("tfrc(form=receiver,preset=ns-2)", 42), ("fixed", 44)]
        {
            let made = control::build(&name.parse().unwrap(), &control::Setting::default()).unwrap();
            let scheme = Scheme::new(name.to_owned());
            let mut control = Control::new(made, (true, Some(scheme)), None);
            for (k, rtt) in [(0, 40), (1, 80)] {
                let left = at(1_000 * k);
                let id = control.planned(left, Bytes(1000), Ecn::NotEct, PacketClass::Media);
                control.left(left, id, left);
                let report = TfrcReport {
                    ssrc: 9,
                    source: 7,
                    sequence: k as u16,
                    scheme: 0,
                    echo: 0,
                    delay: Span::ZERO,
                    received: Bytes(1000),
                    over: Span::from_millis(50),
                    loss_event_rate: 0.0,
                };
                assert!(control.on_report(at(1_000 * k + rtt), &report));
            }
            let told = control.stamp(at(2_000)).unwrap().rtt.unwrap();
            assert!((told - Span::from_millis(wanted)).abs() < Span::from_micros(1), "{name}: {told}");
        }
    }
}
