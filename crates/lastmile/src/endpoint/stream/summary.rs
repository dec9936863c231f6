//! Receiver-based TFRC between the ends of a stream: packets bring the sender's time and round-trip time, and reports of X_recv
//! and the loss event rate go back. The law and the loss history are those of [`control::tfrc`](crate::control::tfrc). The sender
//! names its scheme if reports say that the receiver counts losses by another.

use std::sync::Arc;

use super::event::Decision;
use crate::classify::Verdicts;
use crate::control::LossTruth;
use crate::control::tfrc::{Receiver, ReceiverPacket};
use crate::node::Ecn;
use crate::time::{Span, Time, Tx};
use crate::units::Bytes;
use crate::wire::{SendTime, TfrcReport, scheme_check};

/// A moment as packets carry it: microseconds, of which they have the lower 28 bits.
pub(super) fn micros(at: Time) -> u32 {
    (at.as_nanos() / 1_000) as u32
}

/// A receiver's counts of one source.
#[derive(Debug)]
pub(super) struct Counting {
    receiver: Receiver,
    /// The check of the scheme's name by which they are counted; true if the source named it.
    scheme: (u16, bool),
    truth: Option<Arc<dyn LossTruth>>,
    /// The newest time that a packet brought, as it was written and unwrapped, in microseconds.
    sent: Option<(u32, u64)>,
    /// The same of the newest packet's round.
    round: (u8, u64),
    /// Resolution of the stamps of arrival.
    resolution: Span,
    /// The highest number that came, and which loss history it was of.
    newest: Option<(u64, bool)>,
}

impl Counting {
    /// By that scheme, with the simulator's side channel, if there is one, and stamps of arrival that are so fine.
    pub(super) fn new(
        receiver: Receiver,
        scheme: &str,
        truth: Option<Arc<dyn LossTruth>>,
        resolution: Span,
    ) -> Counting {
        let scheme = (scheme_check(scheme), false);
        Counting { receiver, scheme, truth, sent: None, round: (0, 0), resolution, newest: None }
    }

    /// True if the source may still name a scheme: each names one.
    pub(super) fn is_open(&self) -> bool {
        !self.scheme.1
    }

    /// The source named the scheme by which `receiver` counts.
    pub(super) fn follow(&mut self, receiver: Receiver, scheme: &str) {
        self.scheme = (scheme_check(scheme), true);
        self.receiver.follow(receiver);
    }

    /// A packet arrived that had not come before.
    pub(super) fn on_packet(&mut self, at: Time, number: u64, size: Bytes, stamp: &SendTime, ecn: Ecn) {
        self.receiver.suit(Some(self.resolution));
        if self.newest.is_none_or(|(newest, _)| number > newest) {
            let before = self.newest.replace((number, stamp.history));
            let passed = stamp.round.wrapping_sub(self.round.0) % 16;
            self.round = (stamp.round, self.round.1 + u64::from(passed));
            if before.is_some_and(|(_, history)| history != stamp.history) {
                self.receiver.forget();
            }
        }
        let sent = match self.sent {
            // Half of the range before the first.
            None => (1 << 28) + u64::from(stamp.at),
            Some((before, unwrapped)) => stamp.micros(before, unwrapped),
        };
        self.sent = Some((stamp.at, sent));
        let sent = Time::<Tx>::from_nanos(sent.saturating_mul(1_000));
        let packet = ReceiverPacket { number, size, sent, rtt: stamp.rtt, round: self.round.1, ecn };
        self.receiver.on_packet(at, &packet, self.truth.as_deref());
    }

    /// When to ask for a report.
    pub(super) fn due(&self) -> Option<Time> {
        self.receiver.poll_timeout()
    }

    /// The report that is due, if any.
    pub(super) fn report(&mut self, now: Time, ssrc: u32, source: u32) -> Option<TfrcReport> {
        let told = self.receiver.poll_feedback(now)?;
        Some(TfrcReport {
            ssrc,
            source,
            sequence: told.newest.0 as u16,
            scheme: self.scheme.0,
            echo: (told.newest.1.as_nanos() / 1_000) as u32,
            delay: told.delay,
            received: told.summary.received,
            over: told.summary.over,
            loss_event_rate: told.summary.loss_event_rate,
        })
    }

    /// Takes the decisions since the last call.
    pub(super) fn decisions(&mut self) -> impl Iterator<Item = Decision> {
        core::iter::from_fn(|| self.receiver.poll_decision().map(Decision::Control))
    }

    /// Losses judged so far, by verdict; `None` without a classifier.
    pub(super) fn verdicts(&self) -> Option<Verdicts> {
        self.receiver.verdicts()
    }
}

/// The scheme by which a sender wants its losses counted.
#[derive(Debug)]
pub(super) struct Scheme {
    name: String,
    check: u16,
    /// True if the newest report was counted by it.
    pub(super) heeded: Option<bool>,
}

impl Scheme {
    pub(super) fn new(name: String) -> Scheme {
        Scheme { check: scheme_check(&name), name, heeded: None }
    }

    /// A report came. `Some` if the receiver began or ceased to heed the scheme: at first it is thought to heed it.
    pub(super) fn heard(&mut self, report: &TfrcReport) -> Option<bool> {
        // Until a second packet came a receiver takes no name.
        if report.sequence == 0 {
            return None;
        }
        let heeded = report.scheme == self.check;
        let before = self.heeded.replace(heeded).unwrap_or(true);
        (before != heeded).then_some(heeded)
    }

    /// The scheme's name while reports are counted by another.
    pub(super) fn unheeded(&self) -> Option<&str> {
        (self.heeded == Some(false)).then_some(&self.name)
    }
}
