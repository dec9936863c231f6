//! [`Sink`]: counts what arrives.

use lastmile::node::{Datagram, Payload};
use lastmile::time::{Span, Time};
use lastmile::units::Bytes;

/// Totals of a sink.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SinkCounters {
    /// Packets.
    pub packets: u64,
    /// IP bytes.
    pub bytes: Bytes,
    /// Packets with a lower number than one before them.
    pub out_of_order: u64,
    /// The longest delay of a packet.
    pub max_delay: Span,
    /// The sum of all delays.
    pub total_delay: Span,
    /// When the last one came.
    pub last: Time,
}

impl SinkCounters {
    /// Mean time from departure to arrival.
    pub fn mean_delay(&self) -> Option<Span> {
        (self.packets > 0).then(|| self.total_delay / self.packets as i64)
    }
}

/// The end of one flow of the simulator's own traffic.
#[derive(Debug, Default)]
pub struct Sink {
    counters: SinkCounters,
    expected: u64,
}

impl Sink {
    /// Totals so far.
    pub fn counters(&self) -> &SinkCounters {
        &self.counters
    }

    #[inline]
    pub(crate) fn receive(&mut self, now: Time, datagram: &Datagram) {
        self.counters.packets += 1;
        self.counters.bytes += datagram.ip_size();
        self.counters.last = now;
        if let Payload::Model(model) = &datagram.payload {
            let [number, departed, ..] = model.words;
            if number < self.expected {
                self.counters.out_of_order += 1;
            } else {
                self.expected = number + 1;
            }
            let delay = now - Time::from_nanos(departed);
            self.counters.total_delay += delay;
            self.counters.max_delay = self.counters.max_delay.max(delay);
        }
    }
}
