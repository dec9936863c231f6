//! The sending end: its state and its times. `answers` takes in answers, `outgoing` makes packets.

use core::net::SocketAddr;
use std::collections::VecDeque;
use std::sync::Arc;

use super::REPORT_EVERY;
use super::breaker::Breakers;
use super::config::{SenderConfig, SenderRate, refuse_without_truth};
use super::control::Control;
use super::event::{Decision, End, Sent};
use super::frames::Frames;
use super::repeater::Repeater;
use super::source::FrameSource;
use crate::control::{LossTruth, RateController, Setting, Signal};
use crate::endpoint::Endpoint;
use crate::node::{Ecn, Failure, Input, Node, Output, TransmitId};
use crate::options::ChoiceError;
use crate::time::{Span, Time};
use crate::units::{Bytes, Rate};

/// Feedback that is still on its way is waited for so long after the last packet.
const LINGER: Span = Span::from_secs(1);
/// A sender ends where no feedback comes for so long: three times the interval at which any receiver reports (RFC 8083, section
/// 4.1: the RTCP timeout).
const SILENCE: Span = Span::from_secs(15);
/// Longest gaps before the second to the fourth packet.
const OPENING: [Span; 3] = [Span::from_millis(10), Span::from_millis(30), Span::from_millis(60)];
/// A sender of a fixed rate that hears nothing for so long leaves out half of its frames, after another second half of the rest,
/// and so on: first until it is answered at all, then beyond the interval of any receiver (RFC 3550, section 6.2: 5 s).
const PATIENCE: [Span; 2] = [Span::from_secs(2), Span::from_secs(6)];
/// A sender that is told of a closed port, no route or too large packets ends if it is told so again so much later, and nothing was
/// heard of the receiver between: one error may be of the past, or forged. A receiver that was heard may be started anew meanwhile.
const REFUSED: [Span; 2] = [Span::from_secs(1), Span::from_secs(10)];
/// Size of the last report, by IPv6: on media alone, and on packets that were sent again too.
const LAST_REPORT: [Bytes; 2] = [Bytes(112), Bytes(168)];

/// A packet that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Awaited {
    pub(super) size: Bytes,
    /// When it was to leave.
    pub(super) at: Time,
    /// ECN codepoint as it arrived; `None` until its arrival is known.
    pub(super) arrived: Option<Ecn>,
}

/// The sending end of a stream.
pub struct Sender {
    pub(super) config: SenderConfig,
    pub(super) started: bool,
    /// When the stream ended, and why.
    ended: Option<(Time, End)>,
    finished: bool,
    pub(super) frames: Frames,
    pub(super) sent: Sent,
    /// Bytes of payload sent.
    pub(super) payload: u64,
    /// The number of the first packet that is still awaited, and what is known of each from there on.
    pub(super) awaited: (u64, VecDeque<Awaited>),
    pub(super) next_report: Time,
    /// The stamps of the last reports, which those of the receiver may answer.
    pub(super) reports: VecDeque<u32>,
    pub(super) last_feedback: Time,
    /// When the receiver's request for a key frame was last heeded.
    pub(super) key_frame_at: Option<Time>,
    /// The latest departure that was asked for.
    pub(super) planned_until: Time,
    /// When the coded frames made so far would have left if none had hurried.
    pub(super) coded_until: Time,
    /// When there is more to hand to the driver before the next frame, and the time until which all was handed out.
    pub(super) handed_out: (Option<Time>, Time),
    /// The receiver's number, once it was heard.
    pub(super) receiver: Option<u32>,
    /// The highest number in the last receiver report, and the packets that were sent then.
    pub(super) told: Option<(u32, u64)>,
    /// Other addresses that reports of the receiver come from: the stamp of the report that asked each, and when that left.
    pub(super) asked: VecDeque<(SocketAddr, u32, Time)>,
    /// When the path first refused packets since something was last heard, and why.
    pub(super) refused: Option<(Time, End)>,
    /// Round-trip time, by the last receiver report.
    pub(super) rtt: Option<Span>,
    pub(super) control: Option<Control>,
    pub(super) repeater: Option<Repeater>,
    pub(super) breakers: Option<Breakers>,
    pub(super) out: VecDeque<Output<Decision>>,
}

impl Sender {
    /// A sender that has sent nothing.
    ///
    /// # Errors
    /// The controller or the source that is asked for cannot be had.
    pub fn new(config: SenderConfig) -> Result<Sender, ChoiceError> {
        Sender::built(config, None)
    }

    /// The same, where a simulation tells what really lost packets.
    ///
    /// # Errors
    /// The controller or the source that is asked for cannot be had.
    pub fn informed(config: SenderConfig, truth: Arc<dyn LossTruth>) -> Result<Sender, ChoiceError> {
        Sender::built(config, Some(truth))
    }

    /// The controller that is asked for.
    fn control(
        config: &SenderConfig,
        truth: Option<Arc<dyn LossTruth>>,
    ) -> Result<Option<Control>, ChoiceError> {
        let SenderRate::Controlled(control) = &config.rate else { return Ok(None) };
        if truth.is_none() {
            refuse_without_truth(Some(&control.control))?;
        }
        Ok(Some(Control::new(control.build(config.packet_size)?, control.carries(), truth)))
    }

    fn built(config: SenderConfig, truth: Option<Arc<dyn LossTruth>>) -> Result<Sender, ChoiceError> {
        let control = Sender::control(&config, truth)?;
        Sender::with(config, control)
    }

    /// The same sender, before it has sent anything, with frames of that source, whichever the configuration names; it is made with
    /// [`SenderConfig::source_setting`].
    #[must_use]
    pub fn with_source(self, source: Box<dyn FrameSource>) -> Sender {
        let frames = Frames::new(source, self.config.start, self.config.full_size());
        Sender { frames, ..self }
    }

    /// A sender at the rate of a controller of one's own, whichever the configuration names.
    ///
    /// # Errors
    /// The source that is asked for cannot be had.
    pub fn controlled(
        config: SenderConfig,
        controller: Box<dyn RateController>,
    ) -> Result<Sender, ChoiceError> {
        let timed = matches!(&config.rate, SenderRate::Controlled(control) if control.timed);
        Sender::with(config, Some(Control::new(controller, (timed, None), None)))
    }

    fn with(config: SenderConfig, mut control: Option<Control>) -> Result<Sender, ChoiceError> {
        let Setting { start, max: most, .. } = match &config.rate {
            SenderRate::Controlled(control) => control.setting(config.packet_size),
            SenderRate::Fixed(_) => Setting::default(),
        };
        let at_most = |rate: Rate| if rate > most { most } else { rate };
        let packet = Rate::ip(config.full_size().bits());
        if let Some(control) = &mut control {
            control.min_rate = Some(at_most(packet));
            // A start that the user chose is that of these packets too, and a controller may have one of its own. A receiver that
            // counts losses answers the first one.
            let slow = control.controller.output().pacing < packet.scaled(2.0);
            let opening = OPENING.map(|gap| at_most(packet.scaled(1.0 / gap.as_secs_f64())));
            control.opening = (slow && start.is_none() && control.scheme.is_none()).then_some(opening);
        }
        let source = config.make_source(control.is_some())?;
        let frames = Frames::new(source, config.start, config.full_size());
        Ok(Sender {
            started: false,
            ended: None,
            finished: false,
            frames,
            sent: Sent::default(),
            payload: 0,
            awaited: (0, VecDeque::new()),
            next_report: config.start,
            key_frame_at: None,
            reports: VecDeque::new(),
            last_feedback: config.start,
            planned_until: Time::ZERO,
            coded_until: Time::ZERO,
            handed_out: (None, config.start),
            receiver: None,
            told: None,
            asked: VecDeque::new(),
            refused: None,
            rtt: None,
            control,
            breakers: config.circuit_breakers.then(|| Breakers::new(config.frame_rate)),
            repeater: config.retransmission.map(Repeater::new),
            out: VecDeque::new(),
            config,
        })
    }

    /// The rate that it sends at, of IP packets.
    pub fn rate(&self) -> Rate {
        match &self.control {
            Some(control) => control.target(),
            None => self.config.fixed(),
        }
    }

    /// Counts so far.
    pub fn sent(&self) -> Sent {
        self.sent
    }

    /// Halvings of a fixed-rate sender's frames: the first after `PATIENCE` without feedback, then one each second.
    pub(super) fn halvings(&self, now: Time) -> u32 {
        let unheard = now - self.last_feedback - PATIENCE[usize::from(self.receiver.is_some())];
        (unheard.as_secs_f64() + 1.0).clamp(0.0, 32.0) as u32
    }

    /// True if `size` bytes and a last report after them stay within the byte limit.
    pub(super) fn affords(&self, size: Bytes) -> bool {
        let sent = self.sent.bytes + self.sent.retransmitted_bytes + self.sent.report_bytes;
        let last = LAST_REPORT[usize::from(self.repeater.is_some())] + self.config.expansion.rtcp;
        self.config.max_bytes.is_none_or(|most| sent + size + last <= most)
    }

    /// Largest size of a report that is not the last.
    fn report_size(&self) -> Bytes {
        let name = self.unheeded().map_or(0, |name| 16 + name.len() as u64);
        let asks = self.control.as_ref().is_some_and(|control| control.feedback_every.is_some());
        let asked = if asks { 16 } else { 0 };
        LAST_REPORT[usize::from(self.repeater.is_some())] + self.config.expansion.rtcp + Bytes(name + asked)
    }

    /// The scheme that is to be named to the receiver, where it counts losses by another.
    pub(super) fn unheeded(&self) -> Option<&str> {
        self.control.as_ref()?.scheme.as_ref()?.unheeded()
    }

    /// True if nothing is sent any more.
    pub(super) fn ended(&self) -> bool {
        self.ended.is_some()
    }

    fn progress(&mut self) {
        let (target, sent) = (self.rate(), self.sent);
        let pacing = self.control.as_ref().map(Control::pacing);
        self.out.push_back(Output::Event(Decision::MediaProgress { target, pacing, sent }));
    }

    pub(super) fn end(&mut self, now: Time, why: End) {
        if self.ended.is_none() {
            // Planned packets leave before the goodbye, unless nobody will be there to send them.
            let at = if why == End::Interrupted { now } else { now.max(self.planned_until) };
            self.report(at, true);
            self.progress();
            self.ended = Some((at, why));
        }
    }

    fn finish(&mut self) {
        let Some((_, why)) = self.ended.filter(|_| !self.finished) else { return };
        let verdicts = self.control.as_ref().and_then(|control| control.controller.verdicts());
        self.out.extend(verdicts.map(|verdicts| Output::Event(Decision::LossesJudged(verdicts))));
        self.out.push_back(Output::Event(Decision::MediaEnded { why, sent: self.sent }));
        self.finished = true;
    }

    fn on_failure(&mut self, now: Time, reason: Failure) {
        let why = match reason {
            Failure::PortClosed => End::PortClosed,
            Failure::Unreachable => End::Unreachable,
            Failure::TooBig => End::TooBig,
            _ => return,
        };
        let (since, _) = *self.refused.get_or_insert((now, why));
        let waits = self.receiver.is_some() && why != End::TooBig;
        if now >= since + REFUSED[usize::from(waits)] {
            self.end(now, why);
        }
    }

    fn on_time(&mut self, now: Time) {
        if !self.started && now >= self.config.start && self.ended.is_none() {
            self.started = true;
            // One that comes late begins now: the frames it missed, sent at once, would be a burst that nobody asked for.
            (self.config.start, self.last_feedback, self.frames.next) = (now, now, now);
            self.handed_out.1 = now;
            if let Some(control) = &mut self.control {
                let (min, max) = self.frames.range();
                control.controller.on_signal(now, Signal::Demand { min, desired: max, max });
                control.controller.on_signal(now, Signal::Mtu { size: self.config.packet_size });
            }
            let SenderConfig { peer, ssrc, .. } = self.config;
            let rate = self.rate();
            self.out.push_back(Output::Event(Decision::MediaStarted { peer, ssrc, rate }));
        }
        if let Some((at, _)) = self.ended {
            if now >= at + LINGER {
                self.finish();
            }
            return;
        }
        if now >= self.last_feedback + SILENCE {
            // Before what else is due: a sender that was held up sends nobody all that it missed.
            return self.end(now, self.refused.map_or(End::NoFeedback, |(_, why)| why));
        }
        while self.frames.next <= now && self.frames.next < self.config.stop {
            self.send_frame(now);
            if self.ended.is_some() {
                return;
            }
        }
        if let (Some(due), Some(control)) = (self.handed_out.0.filter(|due| *due <= now), &mut self.control) {
            control.make_good(now - due);
            self.hand_out(now);
        }
        if let Some(control) = &mut self.control {
            if control.controller.poll_timeout().is_some_and(|at| at <= now) {
                control.controller.on_timeout(now);
            }
            control.decisions(&mut self.out);
        }
        if self.started && now >= self.next_report {
            if !self.affords(self.report_size()) {
                return self.end(now, End::ByteLimit);
            }
            self.report(now, false);
            self.next_report = now + REPORT_EVERY;
            self.progress();
        }
        if now >= self.config.stop {
            self.stop(now);
        }
    }

    fn wake(&self) -> Option<Time> {
        match self.ended {
            _ if self.finished => None,
            Some((at, _)) => Some(at + LINGER),
            None if !self.started => Some(self.config.start),
            None => {
                let frame = self.frames.next;
                let timer = self.control.as_ref().and_then(|control| control.controller.poll_timeout());
                let next =
                    frame.min(self.next_report).min(self.config.stop).min(self.last_feedback + SILENCE);
                timer.into_iter().chain(self.handed_out.0).chain([next]).min()
            }
        }
    }
}

impl Node for Sender {
    type Event = Decision;

    fn handle(&mut self, now: Time, input: Input) {
        match input {
            Input::Datagram { datagram, .. } => self.on_rtcp(now, &datagram),
            Input::Sent { id: TransmitId(id), at } => {
                if let (Some(control), Some(number)) = (&mut self.control, id.checked_sub(1)) {
                    control.left(now, number, at);
                }
            }
            Input::Failed { reason, .. } => self.on_failure(now, reason),
            Input::Interrupted => {
                self.end(now, End::Interrupted);
                self.finish();
            }
            _ => {}
        }
        self.on_time(now);
    }

    fn poll(&mut self, _now: Time) -> Output<Decision> {
        self.out.pop_front().unwrap_or_else(|| Output::Wait(self.wake()))
    }
}

impl Endpoint for Sender {
    fn is_finished(&self) -> bool {
        self.finished && self.out.is_empty()
    }
}
