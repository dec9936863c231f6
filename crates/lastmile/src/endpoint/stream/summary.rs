//! Receiver-based TFRC between the ends of a stream: packets bring the sender's time and round-trip time, and reports of X_recv
//! and the loss event rate go back. The law and the loss history are those of [`control::tfrc`](crate::control::tfrc).

use std::sync::Arc;

use super::event::Decision;
use crate::classify::Verdicts;
use crate::control::LossTruth;
use crate::control::tfrc::{Receiver, ReceiverPacket};
use crate::node::Ecn;
use crate::time::{Span, Time, Tx};
use crate::units::Bytes;
use crate::wire::{SendTime, TfrcReport};

/// A moment as packets carry it: microseconds modulo 2^32.
pub(super) fn micros(at: Time) -> u32 {
    (at.as_nanos() / 1_000) as u32
}

/// What a receiver counts of one source.
#[derive(Debug)]
pub(super) struct Counting {
    receiver: Receiver,
    truth: Option<Arc<dyn LossTruth>>,
    /// The newest time that a packet brought, as it was written and unwrapped, in microseconds.
    sent: Option<(u32, u64)>,
    /// How fine stamps of arrival are.
    resolution: Span,
    /// The highest number that came, and which loss history it was of.
    newest: Option<(u64, bool)>,
}

impl Counting {
    /// With the simulator's side channel, if there is one, and stamps of arrival that are so fine.
    pub(super) fn new(receiver: Receiver, truth: Option<Arc<dyn LossTruth>>, resolution: Span) -> Counting {
        Counting { receiver, truth, sent: None, resolution, newest: None }
    }

    /// A packet arrived that had not come before.
    pub(super) fn on_packet(&mut self, at: Time, number: u64, size: Bytes, stamp: &SendTime, ecn: Ecn) {
        self.receiver.suit(Some(self.resolution));
        if self.newest.is_none_or(|(newest, _)| number > newest) {
            let before = self.newest.replace((number, stamp.history));
            if before.is_some_and(|(_, history)| history != stamp.history) {
                self.receiver.forget();
            }
        }
        let sent = match self.sent {
            // Half of the range before the first.
            None => (1 << 32) + u64::from(stamp.at),
            Some((before, unwrapped)) => {
                unwrapped.saturating_add_signed((stamp.at.wrapping_sub(before) as i32).into())
            }
        };
        self.sent = Some((stamp.at, sent));
        let sent = Time::<Tx>::from_nanos(sent.saturating_mul(1_000));
        let packet = ReceiverPacket { number, size, sent, rtt: stamp.rtt, ecn };
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
            echo: (told.newest.1.as_nanos() / 1_000) as u32,
            delay: told.delay,
            received: told.summary.received,
            over: told.summary.over,
            loss_event_rate: told.summary.loss_event_rate,
        })
    }

    /// What was decided since it was last asked.
    pub(super) fn decisions(&mut self) -> impl Iterator<Item = Decision> {
        core::iter::from_fn(|| self.receiver.poll_decision().map(Decision::Control))
    }

    /// How losses were judged, where a classifier does.
    pub(super) fn verdicts(&self) -> Option<Verdicts> {
        self.receiver.verdicts()
    }
}
