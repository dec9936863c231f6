//! Receive batches: interrupt coalescing, GRO and A-MPDU hand several packets over at once, so that their stamps
//! are (nearly) equal and a jump follows.
//!
//! Inside a batch stamps say nothing. Its last packet waited least, so gaps between the last packets of batches
//! are still true (pathload keeps the last of each burst for the same reason); a packet alone is its own batch.

use crate::observe::stats;
use crate::report::StreamRecord;
use crate::time::{Rx, Span, Time, Tx};
use crate::units::Bytes;

/// Stamps closer than this share of a gap are one batch.
const SHARE: f64 = 0.1;

/// Largest gap between stamps of one batch: a tenth of the mean gap at arrival, or of the usual one at sending if that is
/// shorter and not a burst's.
fn close(record: &StreamRecord) -> Span {
    let came = || record.packets.iter().filter_map(|p| p.fate.arrived());
    let (Some(first), Some(last)) = (came().min(), came().max()) else { return Span::ZERO };
    let mean = (last - first) / (came().count() as i64 - 1).max(1);
    let planned: Vec<f64> = record.planned.windows(2).map(|w| (w[1] - w[0]).as_nanos() as f64).collect();
    let usual = Span::from_nanos(stats::median(&planned).unwrap_or(0.0) as i64);
    let gap = if usual > Span::ZERO { mean.min(usual) } else { mean };
    gap.scaled(SHARE).max(Span::ZERO)
}

/// Ends of a stream's batches.
///
/// ```
/// use lastmile::{node::Ecn, observe::batch::Batches, report::*, time::{Span, Time}, units::Bytes};
/// let packet = |k: u64, arrived_us: u64| PacketReport {
///     seq: k, size: Bytes(1488), sent: Time::from_nanos(k * 1_000_000),
///     fate: Fate::Arrived(Time::from_nanos(arrived_us * 1_000)), ecn: Ecn::NotEct,
/// };
/// let record = StreamRecord {
///     stream: 1, direction: Direction::Forward, pattern: Pattern::Train,
///     planned: (0..4).map(Span::from_millis).collect(),
///     packets: vec![packet(0, 3_000), packet(1, 3_002), packet(2, 3_004), packet(3, 4_000)],
///     tx_resolution: Span::from_nanos(1), rx_resolution: Span::from_nanos(1), clock_stepped: false,
/// };
/// let batches = Batches::of(&record);
/// assert_eq!(batches.largest(), 3);
/// assert_eq!((batches.ends_with(1), batches.ends_with(2), batches.ends_with(3)), (false, true, true));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batches {
    last: Vec<bool>,
    largest: usize,
}

impl Batches {
    /// Looks through a stream whose packets were sent apart from each other.
    pub fn of(record: &StreamRecord) -> Batches {
        let n = record.packets.len();
        let close = close(record);
        let mut batches = Batches { last: vec![true; n], largest: usize::from(n > 0) };
        let mut size = 1;
        for i in 1..n {
            let joined = record.receive_gap(i).is_some_and(|gap| gap >= Span::ZERO && gap <= close);
            // Coarse stamps make two packets equal without a batch, but not three.
            size = if joined { size + 1 } else { 1 };
            batches.last[i - 1] = !joined;
            batches.largest = batches.largest.max(size);
        }
        batches
    }

    /// True if packet `i` is the last of its batch, so that its stamp may bound a gap.
    pub fn ends_with(&self, i: usize) -> bool {
        self.last.get(i).copied().unwrap_or(false)
    }

    /// Packets in the largest batch; 1 where there are none.
    pub fn largest(&self) -> usize {
        self.largest
    }
}

/// Packets that were handed over together, with the stamps of their last one: a packet alone is its own batch.
///
/// ```
/// use lastmile::{node::Ecn, observe::batch::{Batch, Between}, report::*, time::{Span, Time}, units::Bytes};
/// let packet = |k: u64, arrived_us: u64| PacketReport {
///     seq: k, size: Bytes(1000), sent: Time::from_nanos(k * 1_000),
///     fate: Fate::Arrived(Time::from_nanos(arrived_us * 1_000)), ecn: Ecn::NotEct,
/// };
/// let record = StreamRecord {
///     stream: 1, direction: Direction::Forward, pattern: Pattern::Burst, planned: vec![Span::ZERO; 5],
///     packets: vec![packet(0, 900), packet(1, 900), packet(2, 1_700), packet(3, 1_701), packet(4, 1_702)],
///     tx_resolution: Span::from_nanos(1), rx_resolution: Span::from_nanos(1), clock_stepped: false,
/// };
/// let batches = Batch::of(&record, Span::from_micros(1));
/// assert_eq!(batches.iter().map(|b| b.bytes.0).collect::<Vec<_>>(), [2000, 3000]);
/// let between = Between::of(&batches);
/// assert_eq!((between[0].bytes, between[0].received), (Bytes(3000), Span::from_micros(802)));
/// assert_eq!(between[0].sent, Span::from_micros(3));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Bytes at the IP layer that arrived in it.
    pub bytes: Bytes,
    /// When its last packet left.
    pub sent: Time<Tx>,
    /// When its last packet arrived.
    pub arrived: Time<Rx>,
}

impl Batch {
    /// The batches of a stream, whose stamps are uncertain by `noise`.
    pub fn of(record: &StreamRecord, noise: Span) -> Vec<Batch> {
        let came = (record.packets.iter())
            .filter_map(|p| Some(Batch { bytes: p.size, sent: p.sent, arrived: p.fate.arrived()? }));
        let close = close(record).max(noise * 2);
        let mut batches: Vec<Batch> = Vec::new();
        for packet in came {
            match batches.last_mut() {
                Some(batch) if packet.arrived - batch.arrived <= close => {
                    batch.bytes += packet.bytes;
                    batch.sent = batch.sent.max(packet.sent);
                    batch.arrived = batch.arrived.max(packet.arrived);
                }
                _ => batches.push(packet),
            }
        }
        batches
    }
}

/// From the end of a batch to the end of the next: of this stream the path carried the latter's bytes meanwhile.
///
/// Bytes and times are all there is: the number of frames or packets in a batch is no input of any estimate (US 10,383,002).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Between {
    /// Bytes at the IP layer of the later batch.
    pub bytes: Bytes,
    /// Between the departures of the last packets of both.
    pub sent: Span,
    /// Between their arrivals.
    pub received: Span,
}

impl Between {
    /// One fewer than there are batches.
    pub fn of(batches: &[Batch]) -> Vec<Between> {
        let between = |two: &[Batch]| Between {
            bytes: two[1].bytes,
            sent: two[1].sent - two[0].sent,
            received: two[1].arrived - two[0].arrived,
        };
        batches.windows(2).map(between).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::testing::record;
    use crate::report::Pattern;

    #[test]
    fn a_train_without_batches_has_none() {
        let offsets: Vec<u64> = (0..10).map(|k| k * 1_190).collect();
        let arrivals: Vec<Option<u64>> = offsets.iter().map(|o| Some(o + 5_000)).collect();
        let batches = Batches::of(&record(Pattern::Train, &offsets, &offsets, &arrivals));
        assert_eq!(batches.largest(), 1);
        assert!((0..10).all(|i| batches.ends_with(i)));
        assert_eq!(Batches::of(&record(Pattern::Train, &[], &[], &[])).largest(), 0);
    }
}
