//! [`Receiver`]: puts segments in order and acknowledges them.

use std::collections::BTreeMap;

use lastmile::node::{Datagram, Ecn, Output, Payload, Transmit};
use lastmile::time::{Span, Time};
use lastmile::units::Bytes;

use super::packet::{Ack, Blocks, Segment};
use super::{Ends, TcpConfig};

/// Totals of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverCounters {
    /// Segments.
    pub segments: u64,
    /// IP bytes of all of them.
    pub bytes: Bytes,
    /// Segments that had arrived before.
    pub duplicates: u64,
    /// IP bytes of those.
    pub duplicate_bytes: Bytes,
    /// Segments handed on in order.
    pub delivered: u64,
    /// Data bytes that arrived for the first time.
    pub data: Bytes,
    /// Segments marked by a queue.
    pub marked: u64,
    /// ACKs sent.
    pub acks: u64,
    /// The sum of the delays of all segments from the sender.
    pub total_delay: Span,
}

/// The receiving end of a connection. Sends its ACKs by port 0.
#[derive(Debug)]
pub struct Receiver {
    ends: Ends,
    delay: u64,
    ack_gaps_at_once: bool,
    sack: bool,
    header: u32,
    next: u64,
    /// Ranges received beyond `next`: by their start, the end and when they changed last.
    beyond: BTreeMap<u64, (u64, u64)>,
    /// By when they changed last, their starts: blocks tell of the latest first (RFC 2018, section 4).
    changed: BTreeMap<u64, u64>,
    changes: u64,
    /// The delayed ACK's time.
    due: Option<u64>,
    ack_now: bool,
    timestamps: bool,
    /// Departure of the segment that the ACK echoes. With timestamps the earliest not yet acknowledged (RFC 7323,
    /// section 4.3), so that the timer allows for the delay of ACKs. Without them the latest: a sender that notes each
    /// departure knows that one, and it has no such delay in it.
    echo: Option<u64>,
    ece: bool,
    counters: ReceiverCounters,
}

impl Receiver {
    /// Memory for segments out of order, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        self.beyond.len() as u64 * 80
    }

    /// The receiving end that `config` describes.
    pub fn new(config: &TcpConfig, ends: Ends) -> Receiver {
        Receiver {
            ends,
            delay: config.delayed_ack.as_nanos().max(0) as u64,
            ack_gaps_at_once: config.ack_gaps_at_once,
            sack: config.recovery.has_blocks(),
            timestamps: config.timestamps,
            header: config.header.0.clamp(1, 1 << 16) as u32,
            next: 0,
            beyond: BTreeMap::new(),
            changed: BTreeMap::new(),
            changes: 0,
            due: None,
            ack_now: false,
            echo: None,
            ece: false,
            counters: ReceiverCounters::default(),
        }
    }

    /// Totals so far.
    pub fn counters(&self) -> &ReceiverCounters {
        &self.counters
    }

    #[inline]
    pub(crate) fn receive(&mut self, now: Time, datagram: &Datagram) {
        if let Payload::Model(model) = &datagram.payload
            && let Some(segment) = Segment::read(model)
        {
            self.segment(now.as_nanos(), segment, datagram.ip_size(), datagram.ecn);
        }
    }

    fn segment(&mut self, now: u64, segment: Segment, ip_size: Bytes, ecn: Ecn) {
        self.counters.segments += 1;
        self.counters.bytes += ip_size;
        self.counters.total_delay += Span::from_nanos(now.saturating_sub(segment.sent) as i64);
        if segment.cwr {
            self.ece = false;
        }
        if ecn == Ecn::Ce {
            self.counters.marked += 1;
            self.ece = true;
        }
        if self.timestamps {
            self.echo.get_or_insert(segment.sent);
        } else {
            self.echo = Some(segment.sent);
        }
        let seq = segment.seq;
        if seq < self.next || self.before(seq).is_some_and(|(_, end)| end > seq) {
            self.counters.duplicates += 1;
            self.counters.duplicate_bytes += ip_size;
            self.ack_now = true;
            return;
        }
        self.counters.data += Bytes(u64::from(segment.bytes));
        if seq > self.next {
            self.store(seq);
            self.ack_now = true;
            return;
        }
        let mut fills = false;
        self.next += 1;
        while let Some(end) = self.take(self.next) {
            self.next = end;
            fills = true;
        }
        self.counters.delivered = self.next;
        let gaps = self.ack_gaps_at_once && !self.beyond.is_empty();
        if self.delay == 0 || fills || gaps || self.due.is_some() {
            self.ack_now = true;
        } else {
            self.due = Some(now.saturating_add(self.delay));
        }
    }

    /// The last range that starts at `seq` or before.
    fn before(&self, seq: u64) -> Option<(u64, u64)> {
        self.beyond.range(..=seq).next_back().map(|(&start, &(end, _))| (start, end))
    }

    /// Removes the range that starts there, and gives its end.
    fn take(&mut self, start: u64) -> Option<u64> {
        let (end, changed) = self.beyond.remove(&start)?;
        self.changed.remove(&changed);
        Some(end)
    }

    fn store(&mut self, seq: u64) {
        let (mut start, mut end) = (seq, seq + 1);
        if let Some((from, _)) = self.before(seq).filter(|&(_, to)| to == seq) {
            self.take(from);
            start = from;
        }
        if let Some(to) = self.take(end) {
            end = to;
        }
        self.changes += 1;
        self.beyond.insert(start, (end, self.changes));
        self.changed.insert(self.changes, start);
    }

    fn ack(&mut self, now: Time) -> Transmit {
        (self.due, self.ack_now) = (None, false);
        self.counters.acks += 1;
        let mut blocks = Blocks::default();
        if self.sack {
            for (block, &start) in blocks.iter_mut().zip(self.changed.values().rev()) {
                *block = (start, self.beyond.get(&start).map_or(start, |range| range.0));
            }
        }
        let echo = self.echo.take().unwrap_or(0);
        let ack = Ack { next: self.next, echo, ece: self.ece, blocks };
        self.ends.ack(now, ack.model(self.header))
    }

    /// The next ACK, or the time at which it is due.
    #[inline]
    pub fn poll(&mut self, now: Time) -> Output {
        if self.ack_now || self.due.is_some_and(|due| due <= now.as_nanos()) {
            return Output::Transmit(self.ack(now));
        }
        Output::Wait(self.due.map(Time::from_nanos))
    }
}
