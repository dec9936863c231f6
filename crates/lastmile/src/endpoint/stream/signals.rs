//! Signals to a controller beside packets and feedback: the pacer's backlog, pauses of the source, round-trip times of receiver
//! reports, persistent congestion, and another address of this host.

use core::net::IpAddr;

use crate::control::{Fate, RateController, Report, RouteChange, Signal};
use crate::time::{Span, Time};
use crate::units::Bytes;

/// Sources pause once they have made nothing for so long and in so many frames.
const PAUSE: Span = Span::from_millis(500);
const PAUSE_FRAMES: u32 = 3;
/// A receiver report's round-trip time is told where feedback brought none for so long.
const WITHOUT_SAMPLE: Span = Span::from_secs(1);
/// RFC 9002, section 7.6: losses over three probe timeouts are persistent congestion. A probe timeout is the round-trip time, four times its
/// deviation, which is half of it at first, and the receiver's delay, here of two of its usual intervals.
const PERSISTENT: i64 = 3;
const RECEIVER_DELAY: Span = Span::from_millis(100);

/// Signals that a controller was given.
#[derive(Debug, Default)]
pub(super) struct Signals {
    backlog: Bytes,
    /// Frames without a byte in a row, and when the first of them was due.
    empty: (u32, Time),
    paused: bool,
    /// When feedback last brought a round-trip time.
    sampled: Option<Time>,
    /// Departures of the first and the last packet of a run of losses.
    losses: Option<(Time, Time)>,
    /// The address of this host that the receiver answers to.
    own: Option<IpAddr>,
}

impl Signals {
    /// So much media waits for the pacer.
    pub(super) fn backlog(&mut self, now: Time, bytes: Bytes, controller: &mut dyn RateController) {
        if self.backlog != bytes {
            self.backlog = bytes;
            controller.on_signal(now, Signal::Backlog { bytes });
        }
    }

    /// A frame was due: true if the source made one, or an earlier one still waits.
    pub(super) fn frame(&mut self, now: Time, made: bool, controller: &mut dyn RateController) {
        let (frames, since) = self.empty;
        self.empty = match frames {
            _ if made => (0, now),
            0 => (1, now),
            _ => (frames.saturating_add(1), since),
        };
        let pauses = !made && frames + 1 >= PAUSE_FRAMES && now >= since + PAUSE;
        if self.paused != pauses && (made || pauses) {
            self.paused = pauses;
            controller.on_signal(now, if pauses { Signal::Idle } else { Signal::Resume });
        }
    }

    /// True while the source makes nothing.
    pub(super) fn is_paused(&self) -> bool {
        self.paused
    }

    /// Feedback came, with a round-trip time or none, and these fates.
    pub(super) fn feedback(
        &mut self,
        now: Time,
        (sample, rtt): (Option<Span>, Option<Span>),
        reports: &[Report],
        controller: &mut dyn RateController,
    ) {
        self.sampled = sample.map(|_| now).or(self.sampled);
        let timeout = rtt.map(|rtt| (rtt * 3 + RECEIVER_DELAY) * PERSISTENT);
        for Report { sent, fate } in reports {
            let Fate::Lost { .. } = fate else {
                self.losses = None;
                continue;
            };
            let (first, _) = self.losses.unwrap_or((sent.at, sent.at));
            self.losses = Some((first, sent.at));
            if timeout.is_some_and(|timeout| sent.at - first > timeout) {
                self.losses = None;
                controller.on_signal(now, Signal::PersistentCongestion);
            }
        }
    }

    /// A receiver report told a round-trip time.
    pub(super) fn report(&mut self, now: Time, sample: Span, controller: &mut dyn RateController) {
        if self.sampled.is_none_or(|at| now > at + WITHOUT_SAMPLE) && sample > Span::ZERO {
            controller.on_signal(now, Signal::Rtt { sample });
        }
    }

    /// The receiver answered to that address of this host.
    pub(super) fn answered(&mut self, now: Time, own: IpAddr, controller: &mut dyn RateController) {
        if own.is_unspecified() {
            return;
        }
        if self.own.replace(own).is_some_and(|before| before != own) {
            controller.on_signal(now, Signal::Route { why: RouteChange::Handover });
        }
    }
}
