//! Playout of a source's frames: each is put together, waits until it is due, and is then given out.
//!
//! The delay is that of R. Ramjee, J. Kurose, D. Towsley, H. Schulzrinne, "Adaptive playout mechanisms for packetized audio applications in
//! wide-area networks", INFOCOM 1994, algorithm 1: the mean of transit times plus four times their mean deviation. Both have RFC 3550's
//! gain of 1/16, since a video has 30 frames in a second and no pauses to change the delay in; so the delay follows a clock that drifts too.
//! A late frame raises the delay to its own at once, a simple form of algorithm 4's spikes.

use std::collections::VecDeque;

use super::CLOCK_RATE;
use crate::time::{Span, Time};
use crate::wire::h264::{AccessUnit, Depacketizer};

/// Least and most that a frame waits, beyond the mean transit time. Where frames are alike in size, a larger one would be late for a millisecond
/// or two that nobody sees.
const MIN_DELAY: Span = Span::from_millis(10);
const MAX_DELAY: Span = Span::from_millis(150);
/// A timestamp so far from its time is another clock's, or a lie.
const JUMP: Span = Span::from_secs(5);
/// The longest that a frame waits after its last packet, whatever its timestamp says.
const MOST: Span = Span::from_millis(300);
/// Deviation before any was measured: a delay of 20 ms.
const FIRST_DEVIATION: Span = Span::from_millis(5);
/// Weight of a new frame in mean and deviation: one in so many.
const GAIN: i64 = 16;
/// Requests for a key frame are so far apart.
const ASK_EVERY: Span = Span::from_millis(200);
/// Frames whose last packet's time is kept.
const MAX_CAME: usize = 64;
/// Frames that tell the usual duration of one, and the least that a freeze lasts beyond that (W3C, webrtc-stats, freezeCount).
const USUAL: usize = 30;
const FREEZE: Span = Span::from_millis(150);

/// Counts of a source's frames at a viewer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Viewed {
    /// Frames shown.
    pub frames: u64,
    /// Of these, frames of which a part was missing.
    pub damaged: u64,
    /// Frames that came too late to be shown: beyond the longest delay, or with the frame behind them.
    pub late: u64,
    /// Frames of which nothing could be used.
    pub lost: u64,
    /// Requests for a key frame.
    pub key_frames_asked: u64,
    /// Freezes: a frame stood for max(3 d, d + 150 ms), d the mean of the last 30 (W3C, webrtc-stats).
    pub freezes: u64,
    /// Their time.
    pub frozen: Span,
    /// Time from a frame's last packet, in the mean of transit times, to its showing.
    pub delay: Span,
}

/// A frame that is due.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlayedFrame {
    /// The frame.
    pub unit: AccessUnit,
    /// True if it came too late to be shown: it is of use to later frames that refer to it.
    pub late: bool,
    /// When it was due.
    pub due: Time,
}

/// A viewer: it takes the frames of sources as they are due.
pub trait FrameSink: Send {
    /// A frame of a source. False if nothing can be shown of it without another key frame, which is then asked for.
    fn frame(&mut self, now: Time, ssrc: u32, frame: &PlayedFrame) -> bool;

    /// No more frames come of a source.
    fn left(&mut self, ssrc: u32);
}

/// Playout of one source.
#[derive(Debug, Default)]
pub(super) struct Playout {
    depacketizer: Depacketizer,
    /// A frame's timestamp and the same time on this clock, but for the transit time.
    clock: Option<(u32, Time)>,
    mean: Span,
    deviation: Span,
    /// Timestamps of frames that are not out yet, and when the last packet of each came.
    came: VecDeque<(u32, Time)>,
    /// Frames that wait until they are due.
    ready: VecDeque<PlayedFrame>,
    /// A key frame came.
    began: bool,
    /// A frame is missing to which others refer.
    needs_key: bool,
    asked: Option<Time>,
    /// When frames were shown lately.
    shown: VecDeque<Time>,
    viewed: Viewed,
}

impl Playout {
    /// Takes a packet that came then; its payload is empty where it is none of media.
    pub(super) fn push(&mut self, at: Time, (sequence, timestamp, marker): (u16, u32, bool), payload: &[u8]) {
        if self.clock.is_none() {
            (self.clock, self.deviation) = (Some((timestamp, at)), FIRST_DEVIATION);
        }
        let late = self.depacketizer.counts().late;
        self.depacketizer.push(sequence, timestamp, marker, payload);
        if self.depacketizer.counts().late > late {
            // A frame that was given up would have been whole with more patience.
            if let Some(media) = self.media_time(timestamp) {
                self.measure(at - media);
            }
        } else if !payload.is_empty() {
            self.note(at, timestamp);
        }
        while let Some(unit) = self.depacketizer.pop() {
            self.take(at, unit);
        }
    }

    /// A packet of a frame that is not out yet came.
    fn note(&mut self, at: Time, timestamp: u32) {
        match self.came.iter_mut().rev().find(|(known, _)| *known == timestamp) {
            Some((_, last)) => *last = at,
            None => self.came.push_back((timestamp, at)),
        }
        if self.came.len() > MAX_CAME {
            self.came.pop_front();
        }
    }

    /// The time of a timestamp on this clock, but for the transit time.
    fn media_time(&self, timestamp: u32) -> Option<Time> {
        self.since(timestamp).map(|(before, since)| before + since)
    }

    /// The time of the timestamp that the clock has, and the time from that to another.
    fn since(&self, timestamp: u32) -> Option<(Time, Span)> {
        let (known, at) = self.clock?;
        let ticks = i64::from(timestamp.wrapping_sub(known) as i32);
        Some((at, Span::from_nanos(ticks * 1_000_000_000 / i64::from(CLOCK_RATE))))
    }

    /// The transit time with which frames are shown.
    fn planned(&self) -> Span {
        self.mean + (self.deviation * 4).clamp(MIN_DELAY, MAX_DELAY)
    }

    fn measure(&mut self, transit: Span) {
        let (off, planned) = (transit - self.mean, self.planned());
        if is_far(off) {
            return;
        }
        let far = if off < Span::ZERO { -off } else { off };
        self.mean += off / GAIN;
        self.deviation += (far - self.deviation) / GAIN;
        if transit > planned {
            // A spike, as by algorithm 4: those behind a late frame come as late, and are not to be late too.
            self.deviation = self.deviation.max((transit - self.mean).min(MAX_DELAY) / 4);
        }
    }

    /// A frame is whole, or given up.
    fn take(&mut self, at: Time, unit: AccessUnit) {
        // The first frame that can be shown is in time, however long its packets took.
        if !self.began && unit.whole {
            self.clock = Some((unit.timestamp, at));
        }
        // A frame that waited for the one before it was whole sooner.
        let known = self.came.iter().position(|(timestamp, _)| *timestamp == unit.timestamp);
        let came = known.and_then(|place| self.came.remove(place)).map_or(at, |(_, came)| came);
        // Times before this clock's beginning are none, but spans are.
        let transit = self.since(unit.timestamp).map(|(before, since)| came - before - since);
        if transit.is_none_or(|transit| is_far(transit - self.mean)) {
            (self.clock, self.mean) = (Some((unit.timestamp, came)), Span::ZERO);
        }
        let media = self.media_time(unit.timestamp).unwrap_or(at);
        let first = if self.began { Time::ZERO } else { media };
        let before = self.clock.map_or(media, |(_, before)| before);
        if unit.whole {
            self.measure(came.max(first) - media);
        }
        // A frame that waited for another may still be shown, without a longer delay for those to come.
        let late = at > media + self.mean + MAX_DELAY;
        let due = if late { media + self.planned() } else { at.max(media + self.planned()) };
        let due = due.min(at + MOST).max(self.ready.back().map_or(Time::ZERO, |last| last.due));
        self.needs_key |= unit.lost > 0 || !unit.whole;
        if unit.key && unit.whole {
            (self.began, self.needs_key) = (true, false);
        }
        self.needs_key |= !self.began;
        if media > before {
            self.clock = Some((unit.timestamp, media));
        }
        if !self.began || unit.bytes.is_empty() {
            self.viewed.lost += 1;
            return;
        }
        self.ready.push_back(PlayedFrame { late, unit, due });
    }

    /// When the oldest frame is given up: packets are missing, and it is due; where lost packets are sent again for so long, and before the
    /// first key frame, at the most that a frame waits. A key frame takes longer than others to come, and is of use to all that follow.
    fn gives_up(&self, again: Option<Span>) -> Option<Time> {
        let timestamp = self.depacketizer.oldest().filter(|_| self.depacketizer.is_missing())?;
        let waits = again.is_some() || !self.began;
        let due = self.media_time(timestamp)? + if waits { self.mean + MAX_DELAY } else { self.planned() };
        let last = self.came.iter().find(|(known, _)| *known == timestamp).map(|(_, last)| *last);
        let due = last.map_or(due, |last| due.min(last + MOST));
        let hopeless = again.zip(last).map(|(again, last)| last + again);
        Some(hopeless.map_or(due, |hopeless| hopeless.max(due)))
    }

    /// When the next frame is due, or given up; lost packets are sent again for so long.
    pub(super) fn wake(&self, again: Option<Span>) -> Option<Time> {
        let ready = self.ready.front().map(|frame| if frame.late { Time::ZERO } else { frame.due });
        ready.into_iter().chain(self.gives_up(again)).min()
    }

    /// The next frame that is due by now.
    pub(super) fn pop(&mut self, now: Time, again: Option<Span>) -> Option<PlayedFrame> {
        while self.gives_up(again).is_some_and(|at| at <= now) {
            self.give_up(now);
        }
        self.ready.front().filter(|frame| frame.late || frame.due <= now)?;
        self.next(now)
    }

    /// The next frame of those that came, due or not: the source has left.
    pub(super) fn drain(&mut self, now: Time) -> Option<PlayedFrame> {
        // Frames that wait for the source's end are no freeze.
        self.shown.clear();
        while self.ready.is_empty() && self.depacketizer.oldest().is_some() {
            self.give_up(now);
        }
        self.next(now)
    }

    fn give_up(&mut self, now: Time) {
        let Some(unit) = self.depacketizer.force() else { return };
        // Frames given up are shown at once, since they are due.
        self.take(now.min(self.media_time(unit.timestamp).map_or(now, |media| media + self.planned())), unit);
        while let Some(unit) = self.depacketizer.pop() {
            self.take(now, unit);
        }
    }

    fn next(&mut self, now: Time) -> Option<PlayedFrame> {
        let mut frame = self.ready.pop_front()?;
        // The screen has room for one of those that are due.
        frame.late |= self.ready.front().is_some_and(|next| !next.late && next.due <= now);
        if frame.late {
            self.viewed.late += 1;
            return Some(frame);
        }
        self.viewed.frames += 1;
        self.viewed.damaged += u64::from(!frame.unit.whole);
        if let Some(before) = self.shown.back() {
            let stood = now - *before;
            let all = self.shown.iter().zip(self.shown.iter().skip(1)).map(|(a, b)| *b - *a);
            let count = (self.shown.len() - 1) as i64;
            let mean = if count > 0 { all.fold(Span::ZERO, |sum, one| sum + one) / count } else { stood };
            if stood >= (mean * 3).max(mean + FREEZE) {
                self.viewed.freezes += 1;
                self.viewed.frozen += stood;
            }
        }
        self.shown.push_back(now);
        if self.shown.len() > USUAL + 1 {
            self.shown.pop_front();
        }
        Some(frame)
    }

    /// True if a key frame is to be asked for.
    pub(super) fn asks(&mut self, now: Time) -> bool {
        let asks = self.needs_key && self.asked.is_none_or(|at| now >= at + ASK_EVERY);
        if asks {
            self.asked = Some(now);
        }
        asks
    }

    /// Nothing can be shown without another key frame.
    pub(super) fn lacks_key(&mut self) {
        self.needs_key = true;
    }

    /// A request for a key frame left.
    pub(super) fn has_asked(&mut self) {
        self.viewed.key_frames_asked += 1;
    }

    /// Counts so far.
    pub(super) fn viewed(&self) -> Viewed {
        Viewed { delay: self.planned() - self.mean, ..self.viewed }
    }
}

fn is_far(off: Span) -> bool {
    off > JUMP || -off > JUMP
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    /// A playout to which frames of one packet came: the number of each, and when. Frame `n` is of `40 n` ms; the first is a key frame.
    fn pushed(frames: &[(u16, i64)]) -> Playout {
        let mut playout = Playout::default();
        frames.iter().for_each(|(number, came)| push(&mut playout, *number, *came));
        playout
    }

    fn push(playout: &mut Playout, number: u16, came: i64) {
        let kind = if number == 0 { 0x65 } else { 0x41 };
        playout.push(at(came), (number, u32::from(number) * 3_600, true), &[kind, 0x80, 7]);
    }

    /// Numbers of the frames that are given out until then, each with its time, as its wakes say.
    fn played(playout: &mut Playout, until: i64) -> Vec<(u16, i64, bool)> {
        let mut all = Vec::new();
        while let Some(now) = playout.wake(None).filter(|wake| *wake <= at(until)) {
            while let Some(frame) = playout.pop(now, None) {
                let millis = (now - Time::ZERO).as_nanos() / 1_000_000;
                all.push(((frame.unit.timestamp / 3_600) as u16, millis, frame.late));
            }
        }
        all
    }

    #[test]
    fn frames_are_shown_as_far_apart_as_they_were_taken() {
        let mut playout = pushed(&[(0, 100), (1, 140), (2, 180), (3, 220)]);
        let shown = played(&mut playout, 1_000);
        // The first deviation makes a delay of 20 ms, which falls by a sixteenth with each frame, the first one too.
        assert_eq!(shown.iter().map(|(number, ..)| *number).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(shown[0].1, 118);
        assert!(shown.windows(2).all(|pair| (38..=40).contains(&(pair[1].1 - pair[0].1))), "{shown:?}");
        assert_eq!((playout.viewed().frames, playout.viewed().late), (4, 0));
    }

    #[test]
    fn the_delay_follows_the_deviation_of_transit_times_up_to_its_most() {
        let jittered = |by: i64| {
            let frames: Vec<_> =
                (0..200).map(|n: u16| (n, 100 + 40 * i64::from(n) + by * i64::from(n % 2))).collect();
            pushed(&frames).viewed().delay
        };
        assert_eq!(jittered(0), MIN_DELAY);
        // Two equally likely transit times 20 ms apart deviate by 10 ms from their mean.
        assert!((jittered(20) - Span::from_millis(40)).as_secs_f64().abs() < 0.002, "{}", jittered(20));
        assert_eq!(jittered(500), MAX_DELAY);
    }

    #[test]
    fn a_frame_that_comes_too_late_is_given_out_at_once_and_not_counted_as_shown() {
        let mut playout = pushed(&[(0, 100), (1, 140)]);
        played(&mut playout, 200);
        push(&mut playout, 2, 400);
        assert_eq!(playout.pop(at(400), None).map(|frame| frame.late), Some(true));
        let viewed = playout.viewed();
        assert_eq!((viewed.frames, viewed.late, viewed.freezes), (2, 1, 0));
        // It has widened the delay.
        assert!(viewed.delay > Span::from_millis(40), "{}", viewed.delay);
    }

    /// A frame whose packet is missing is given up once it is due, and with repeats once the longest delay is over.
    #[test]
    fn a_missing_packet_is_waited_for_until_its_frame_is_due() {
        for (again, patience) in
            [(None, 19), (Some(Span::from_millis(150)), 150), (Some(Span::from_millis(200)), 200)]
        {
            let mut playout = pushed(&[(0, 100)]);
            playout.pop(at(130), again).unwrap();
            // The first of two packets of frame 1 does not come.
            playout.push(at(140), (2, 3_600, true), &[0x41, 0x40, 7]);
            let given_up = playout.wake(again).unwrap() - at(140);
            assert!(
                (given_up - Span::from_millis(patience)).as_secs_f64().abs() < 0.002,
                "{again:?}: {given_up}"
            );
            let frame = playout.pop(at(140) + given_up, again).unwrap();
            assert_eq!((frame.unit.whole, playout.viewed().damaged), (false, 1), "{again:?}");
            assert!(playout.asks(at(400)) && !playout.asks(at(599)) && playout.asks(at(600)), "{again:?}");
        }
    }

    /// A key frame whose packets come over 300 ms, of which one is missing: what is asked for after its last packet may still come.
    #[test]
    fn a_frame_that_takes_long_to_come_is_not_given_up_meanwhile() {
        let again = Some(Span::from_millis(150));
        let mut playout = pushed(&[(0, 100)]);
        playout.pop(at(130), again).unwrap();
        for (number, came) in [(1, 140), (3, 240), (4, 340), (5, 440)] {
            assert!(playout.pop(at(came), again).is_none());
            playout.push(
                at(came),
                (number, 3_600, number == 5),
                &[0x65, if number == 1 { 0x80 } else { 0x40 }, 7],
            );
        }
        assert_eq!(playout.wake(again), Some(at(590)));
        playout.push(at(500), (2, 3_600, false), &[0x65, 0x40, 7]);
        let frame = playout.pop(at(500), again).unwrap();
        assert_eq!((frame.unit.whole, frame.late, playout.asks(at(500))), (true, true, false));
    }

    /// All from frame 10 on come 60 ms later, as behind a pacer that held them back: none is late.
    #[test]
    fn frames_behind_a_late_one_are_shown() {
        let came = |number: u16| 100 + 40 * i64::from(number) + if number < 10 { 0 } else { 60 };
        let mut playout = Playout::default();
        for number in 0..30 {
            played(&mut playout, came(number) - 1);
            push(&mut playout, number, came(number));
        }
        played(&mut playout, 2_000);
        assert_eq!((playout.viewed().frames, playout.viewed().late), (30, 0));
    }

    /// Frame 2 lacks a packet until it is given up, and three wait behind it, which were due meanwhile.
    #[test]
    fn of_frames_that_are_due_at_once_the_last_is_shown() {
        let again = Some(Span::from_millis(150));
        let mut playout = pushed(&[(0, 100), (1, 140)]);
        assert_eq!(played(&mut playout, 170).len(), 2);
        for (number, came) in [(3, 220), (4, 260), (5, 300)] {
            push(&mut playout, number, came);
        }
        let now = playout.wake(again).unwrap();
        let shown: Vec<_> = std::iter::from_fn(|| playout.pop(now, again))
            .map(|frame| (frame.unit.timestamp / 3_600, frame.late))
            .collect();
        assert_eq!(shown, [(3, true), (4, true), (5, false)]);
        assert_eq!((playout.viewed().frames, playout.viewed().late), (3, 2));
    }

    /// Each third frame lacks a packet: those behind it wait until it is given up, which says nothing of their transit.
    #[test]
    fn frames_behind_one_that_is_given_up_do_not_make_the_delay_grow() {
        for again in [None, Some(Span::from_millis(100))] {
            let mut playout = Playout::default();
            let mut last = None;
            for number in 0..300_u16 {
                let (came, stamp) = (100 + 40 * i64::from(number), u32::from(number) * 3_600);
                if number % 3 != 1 {
                    playout.push(
                        at(came),
                        (2 * number, stamp, false),
                        &[if number == 0 { 0x65 } else { 0x41 }, 0x80, 7],
                    );
                }
                playout.push(
                    at(came),
                    (2 * number + 1, stamp, true),
                    &[if number == 0 { 0x65 } else { 0x41 }, 0x40, 7],
                );
                while let Some(now) = playout.wake(again).filter(|wake| *wake < at(came + 40)) {
                    while let Some(frame) = playout.pop(now, again) {
                        last = Some((frame.unit.timestamp, now));
                    }
                }
            }
            let (stamp, shown) = last.unwrap();
            let after = shown - at(100 + 40 * i64::from(stamp / 3_600));
            assert!(after <= Span::from_millis(160), "{again:?}: {after}");
            assert!(playout.viewed().frames > 95, "{again:?}: {:?}", playout.viewed());
        }
    }

    /// Frame 2 came after 0 ms of transit, and again for frame 1, which is sent again and comes after 130. Padding behind frame 2 is none of it.
    /// By hand: deviations of 5 ms and 4.7; frame 1 is late by a mean of 8.1, which makes it (130 - 8.1) / 4 = 30.5; then 29.1, so that the delay
    /// is 116 ms.
    #[test]
    fn padding_is_no_part_of_a_frame_that_waits() {
        let mut playout = pushed(&[(0, 100), (2, 180)]);
        playout.push(at(260), (3, 2 * 3_600, false), &[]);
        push(&mut playout, 1, 270);
        let delay = playout.viewed().delay.as_secs_f64();
        assert!((delay - 0.116).abs() < 0.001, "{delay}");
    }

    #[test]
    fn nothing_is_shown_before_a_key_frame_which_is_asked_for() {
        let mut playout = pushed(&[(1, 140), (2, 180)]);
        assert_eq!(played(&mut playout, 1_000), []);
        assert!(playout.asks(at(180)));
        assert_eq!(playout.viewed().lost, 2);
        playout.push(at(220), (3, 3 * 3_600, true), &[0x65, 0x80, 7]);
        assert_eq!(played(&mut playout, 1_000).len(), 1);
        assert!(!playout.asks(at(1_000)));
    }

    /// W3C's rule: a frame stood for max(3 d, d + 150 ms), here for 190 ms and more after frames 40 ms apart.
    #[test]
    fn freezes_are_those_of_the_rule() {
        for (gap, freezes) in [(180, 0), (200, 1)] {
            let mut playout = pushed(&[(0, 100), (1, 140), (2, 180), (3, 220)]);
            let last = played(&mut playout, 1_000)[3].1;
            playout.ready.push_back(PlayedFrame { due: at(last + gap), ..PlayedFrame::default() });
            playout.pop(at(last + gap), None).unwrap();
            assert_eq!(playout.viewed().freezes, freezes, "{gap}");
            assert_eq!(playout.viewed().frozen > Span::ZERO, freezes > 0);
        }
    }

    /// A timestamp of an hour or of 4 s later, of a whole frame or of one that lacks a packet, and timestamps that grow too fast.
    #[test]
    fn a_timestamp_that_lies_holds_up_nothing() {
        for (ahead, whole) in [(90_000 * 3_600, true), (90_000 * 4, true), (90_000 * 3_600, false), (0, true)]
        {
            let (mut playout, mut shown) = (Playout::default(), Vec::new());
            for number in 0..500_u16 {
                let came = at(100 + 40 * i64::from(number));
                let stamp = match number {
                    100 => 100 * 3_600 + ahead,
                    _ => u32::from(number) * if ahead == 0 { 36_000 } else { 3_600 },
                };
                let kind = if number == 0 { 0x65 } else { 0x41 };
                playout.push(came, (2 * number, stamp, false), &[kind, 0x80, 7]);
                if whole || number != 100 {
                    playout.push(came, (2 * number + 1, stamp, true), &[kind, 0x40, 7]);
                }
                while let Some(now) = playout.wake(None).filter(|wake| *wake < came + Span::from_millis(40)) {
                    while let Some(frame) = playout.pop(now, None) {
                        shown.extend((!frame.late).then_some(now));
                    }
                }
                assert!(playout.ready.len() < 12 && playout.came.len() < 12, "{ahead} {whole}");
            }
            let last = shown.iter().filter(|shown| **shown > at(10_000)).count();
            assert!(shown.len() > 450 && last > 240, "{ahead} {whole}: {} {last}", shown.len());
        }
    }

    /// A sender's clock that is 100 ppm fast: after an hour the frames come 360 ms earlier by its stamps, and none is late.
    #[test]
    fn a_clock_that_drifts_is_followed() {
        let mut playout = Playout::default();
        for number in 0..90_000_u64 {
            let came =
                Time::ZERO + Span::from_nanos((number as f64 * 40e6 * (1.0 - 100e-6)) as i64 + 100_000_000);
            let kind = if number == 0 { 0x65 } else { 0x41 };
            playout.push(came, (number as u16, (number * 3_600) as u32, true), &[kind, 0x80, 7]);
            while let Some(now) = playout.wake(None).filter(|wake| *wake <= came + Span::from_millis(30)) {
                while playout.pop(now, None).is_some() {}
            }
        }
        let viewed = playout.viewed();
        assert_eq!((viewed.late, viewed.freezes, viewed.lost), (0, 0, 0));
        assert!(viewed.frames > 89_990 && viewed.delay == MIN_DELAY, "{viewed:?}");
    }
}
