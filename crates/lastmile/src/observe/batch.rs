//! Receive batches: interrupt coalescing, GRO and A-MPDU hand several packets over at once, so that their stamps
//! are (nearly) equal and a jump follows.
//!
//! Inside a batch stamps say nothing. Its last packet waited least, so gaps between the last packets of batches
//! are still true (pathload keeps the last of each burst for the same reason); a packet alone is its own batch.

use crate::observe::stats;
use crate::report::StreamRecord;
use crate::time::Span;

/// Stamps closer than this share of the usual gap at sending are one batch.
const SHARE: f64 = 0.1;

/// Where the batches of a stream end.
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
/// assert!(!batches.gap_usable(1));
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
        let planned: Vec<f64> = record.planned.windows(2).map(|w| (w[1] - w[0]).as_nanos() as f64).collect();
        let usual = Span::from_nanos(stats::median(&planned).unwrap_or(0.0) as i64);
        let close = usual.scaled(SHARE).max(Span::ZERO);
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

    /// Whether packet `i` is the last of its batch, so that its stamp may bound a gap.
    pub fn ends_with(&self, i: usize) -> bool {
        self.last.get(i).copied().unwrap_or(false)
    }

    /// Whether the gap before packet `i` is one between batches of one packet each.
    pub fn gap_usable(&self, i: usize) -> bool {
        let alone = |k: usize| self.ends_with(k) && (k == 0 || self.ends_with(k - 1));
        i > 0 && alone(i) && alone(i - 1)
    }

    /// Packets in the largest batch; 1 where there are none.
    pub fn largest(&self) -> usize {
        self.largest
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
        assert!((1..10).all(|i| batches.gap_usable(i)));
        assert_eq!(Batches::of(&record(Pattern::Train, &[], &[], &[])).largest(), 0);
    }
}
