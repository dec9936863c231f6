//! A rate controller at a sender of RTP: it is told of departures and, by congestion control feedback (RFC 8888), of arrivals,
//! or by reports of TFRC's receiver of what that counted.

use std::collections::VecDeque;
use std::sync::Arc;

use super::event::Decision;
use super::receipts::{ReceiptClock, TICK};
use super::signals::Signals;
use super::summary::{Scheme, micros};
use super::{MAX_AWAITED, nearest};
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
/// A packet is lost once so many later ones arrived.
const LATER: u64 = 3;
/// With a full window a packet leaves all the same, so long after the last: if all in flight are lost, its feedback tells of them.
const PROBE_AFTER: Span = Span::from_secs(1);
/// Padding that is owed, or was sent ahead, at most.
const OWED: Span = Span::from_millis(100);
/// Delay of this host that its pacer makes good, at most. A pause of the source gives nothing: a burst of the time that was not used would be a
/// queue (RFC 9331, section 4.3).
const CREDIT: Span = Span::from_millis(10);

/// Knowledge of a packet that left.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Known {
    /// The driver has it, and has not told that it left.
    Planned,
    Nothing,
    /// Feedback told of it and later ones, and not that it came.
    Missing,
    /// Feedback has just said that it came.
    Came(Option<Time<Rx>>, Ecn),
    /// The same, of one that was thought to be lost.
    Late(Option<Time<Rx>>),
    /// The controller was told that it came, or that it was lost.
    Arrived,
    Lost,
}

/// Bytes of packets whose fate is not known: what a window limits.
#[derive(Clone, Copy, Debug, Default)]
struct UnderWay {
    /// Of packets that the driver has.
    planned: Bytes,
    /// Of packets that left.
    left: Bytes,
}

impl UnderWay {
    /// A packet is no longer awaited, of which that was known.
    fn end(&mut self, size: Bytes, known: Known) {
        match known {
            Known::Planned => self.planned = self.planned.saturating_sub(size),
            Known::Nothing | Known::Missing => self.left = self.left.saturating_sub(size),
            _ => {}
        }
    }

    fn all(&self) -> Bytes {
        self.planned + self.left
    }
}

/// Packets to measure with: their number, the size of each, and the time from one to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Train {
    pub(super) packets: u16,
    pub(super) size: Bytes,
    pub(super) gap: Span,
}

/// The packets of one stream in flight: the sequence number of the first, and the numbers that the controller has for them.
#[derive(Debug, Default)]
struct Numbers {
    first: u64,
    ids: VecDeque<u64>,
}

impl Numbers {
    /// The controller's number of a packet.
    fn id(&self, low: u16) -> Option<u64> {
        let last = self.next().checked_sub(1)?;
        let place = nearest(last, low)?.checked_sub(self.first)?;
        self.ids.get(usize::try_from(place).ok()?).copied()
    }

    /// The sequence number of the next packet.
    fn next(&self) -> u64 {
        self.first + self.ids.len() as u64
    }

    /// The sequence number of a packet.
    fn sequence(&self, id: u64) -> Option<u64> {
        Some(self.first + self.ids.binary_search(&id).ok()? as u64)
    }
}

/// The simulator's side channel, which knows packets of media by their sequence numbers.
#[derive(Debug)]
struct MediaTruth<'a>(&'a dyn LossTruth, &'a Numbers);

impl LossTruth for MediaTruth<'_> {
    fn cause(&self, id: u64) -> Option<LossClass> {
        self.0.cause(self.1.sequence(id)?)
    }
    fn judged(&self, id: u64, class: LossClass) {
        self.1.sequence(id).into_iter().for_each(|sequence| self.0.judged(sequence, class));
    }
}

/// The controller, its pacer, and what is in flight.
#[derive(Debug)]
pub(super) struct Control {
    pub(super) controller: Box<dyn RateController>,
    pub(super) pacer: Pacer,
    /// Until feedback comes, no slower than that: two packets in sequence prove a source to its receiver, and a scheme that
    /// starts slower than RFC 5348's packet in a second would be over before a lost one is made good.
    pub(super) min_rate: Option<Rate>,
    /// The rates at which the second and the third packet follow at least. The second proves the source, and who is proven is
    /// answered; the third was not held for long where that answer comes after the usual interval. They are W_init, and no more.
    pub(super) opening: Option<[Rate; 2]>,
    /// No more than this, while a circuit breaker is tried.
    pub(super) ceiling: Option<Rate>,
    /// The source makes less than the target.
    pub(super) app_limited: bool,
    /// The train that the controller asks for, and the number of trains sent.
    pub(super) train: Option<Train>,
    pub(super) trains: u32,
    /// The packets of each stream, by their sequence numbers: of media, and of what is sent again.
    numbers: [Numbers; 2],
    /// The number of the first packet that is kept, and what is known of each from there on.
    first: u64,
    flight: VecDeque<(control::Sent, Known)>,
    under_way: UnderWay,
    /// When the last packet was to leave.
    planned_at: Option<Time>,
    /// Bytes sent since padding was last thought of, and those that it owes, negative if it is ahead.
    since_padding: Bytes,
    owed: i64,
    /// Time between feedback messages that the controller asks for.
    pub(super) feedback_every: Option<Span>,
    pub(super) signals: Signals,
    /// The highest number that arrived.
    highest: Option<u64>,
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
            train: None,
            trains: 0,
            numbers: Default::default(),
            first: 0,
            flight: VecDeque::new(),
            under_way: UnderWay::default(),
            planned_at: None,
            since_padding: Bytes::ZERO,
            owed: 0,
            feedback_every: None,
            signals: Signals::default(),
            highest: None,
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
        let follows = self.numbers[0].next().saturating_sub(1) as usize;
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
        let id = self.first + self.flight.len() as u64;
        let stream = u32::from(class == PacketClass::Rtx);
        let app_limited = self.app_limited;
        let sent = control::Sent { stream, class, ecn, app_limited, ..control::Sent::media(id, size, at) };
        self.flight.push_back((sent, Known::Planned));
        self.under_way.planned += size;
        self.since_padding += size;
        self.planned_at = Some(at);
        if self.flight.len() > MAX_AWAITED {
            self.forget_first();
        }
        let numbers = &mut self.numbers[stream as usize];
        numbers.ids.push_back(id);
        while numbers.ids.front().is_some_and(|id| *id < self.first) {
            numbers.ids.pop_front();
            numbers.first += 1;
        }
        id
    }

    /// Forgets the oldest packet.
    fn forget_first(&mut self) {
        if let Some((sent, known)) = self.flight.pop_front() {
            self.under_way.end(sent.size, known);
            self.first += 1;
        }
    }

    /// When so many bytes may be sent by the window, not before `from`.
    pub(super) fn window_opens(&self, from: Time, size: Bytes) -> Time {
        let under_way = self.under_way.all();
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
        self.under_way.planned
    }

    /// Rate that padding fills up to.
    pub(super) fn fills_up_to(&self) -> Rate {
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
        let place = id.checked_sub(self.first).and_then(|place| usize::try_from(place).ok());
        if let Some((sent, known)) = place.and_then(|place| self.flight.get_mut(place)) {
            sent.at = at;
            if *known == Known::Planned {
                self.under_way.end(sent.size, *known);
                self.under_way.left += sent.size;
                *known = Known::Nothing;
            }
            sent.in_flight = self.under_way.left;
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
            let number = self.numbers[stream].id(low);
            let place = number.and_then(|number| number.checked_sub(self.first)).map(|place| place as usize);
            let (Some(number), Some((control::Sent { size, .. }, known))) =
                (number, place.and_then(|place| self.flight.get_mut(place)))
            else {
                continue;
            };
            match (told.received, *known) {
                (true, Known::Planned | Known::Nothing | Known::Missing | Known::Lost) => {
                    self.under_way.end(*size, *known);
                    let near = told.before_report().map(|ago| remote - ago);
                    let fine = near.and_then(|near| self.receipts.refine((block.ssrc, low), near));
                    (came, coarse) = (true, coarse || fine.is_none());
                    let at = fine.or(near);
                    if *known == Known::Lost {
                        *known = Known::Late(at);
                        continue;
                    }
                    self.highest = self.highest.max(Some(number));
                    *known = Known::Came(at, told.ecn);
                }
                (false, Known::Nothing) => (missing, *known) = (true, Known::Missing),
                // It did not leave, or nobody told that it did.
                (false, Known::Planned) => {
                    self.under_way.end(*size, *known);
                    self.under_way.left += *size;
                    (missing, *known) = (true, Known::Missing);
                }
                _ => {}
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
        let mut newest: Option<Time<Rx>> = None;
        let (first, highest) = (self.first, self.highest.unwrap_or(0));
        for (k, (sent, known)) in self.flight.iter_mut().enumerate() {
            let number = first + k as u64;
            let fate = match *known {
                Known::Came(at, ecn) => {
                    *known = Known::Arrived;
                    newest = newest.max(at);
                    Fate::Arrived { at, ecn }
                }
                Known::Late(at) => {
                    *known = Known::Arrived;
                    Fate::Late { at }
                }
                Known::Missing if number + LATER <= highest => {
                    self.under_way.end(sent.size, *known);
                    *known = Known::Lost;
                    Fate::lost(LostBy::Gap)
                }
                // Those behind a hole are told of once it is known to be a loss: a classifier judges by the arrival that
                // reveals it.
                Known::Missing => break,
                _ if number > highest => break,
                _ => continue,
            };
            self.reports.push(Report { sent: *sent, fate });
        }
        // Feedback has left these packets behind: nothing more will be said of them.
        let begin = self.numbers[stream].id(block.begin).filter(|_| stream == 0).unwrap_or(0);
        let told = |known: &Known| !matches!(known, Known::Missing | Known::Came(..));
        while self.first < begin.min(highest) && self.flight.front().is_some_and(|(_, known)| told(known)) {
            self.forget_first();
        }
        if !came && self.reports.is_empty() {
            return false;
        }
        arrival_order(&self.reports, &mut self.order);
        let truth = self.truth.as_deref().map(|truth| MediaTruth(truth, &self.numbers[0]));
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
        let newer = |id: &u64| self.scheme.is_some() && self.highest.is_none_or(|before| *id > before);
        let number = self.numbers[0].id(report.sequence).filter(newer);
        let place = number.and_then(|number| number.checked_sub(self.first));
        let known = place.and_then(|place| self.flight.get(usize::try_from(place).ok()?));
        let (Some(number), Some(&(sent, _))) = (number, known) else { return false };
        self.highest = Some(number);
        self.reports.clear();
        self.min_rate = None;
        // With times of receipt the fate of each packet is known; the receiver judges what lost them.
        let at = self.receipts.alone((report.source, report.sequence));
        let media = &self.numbers[0];
        let timed = self.flight.iter().take_while(|(sent, _)| sent.id < number).filter_map(|(sent, _)| {
            let at = self.receipts.alone((report.source, media.sequence(sent.id)? as u16));
            let fate = at.map_or(Fate::lost(LostBy::Gap), Fate::arrived);
            Some(Report { sent: *sent, fate })
        });
        self.reports.extend(timed.filter(|_| at.is_some()));
        self.reports.push(Report { sent, fate: Fate::Arrived { at, ecn: Ecn::NotEct } });
        while self.first <= number && !self.flight.is_empty() {
            self.forget_first();
        }
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
