//! Gaps of a stream that were really sent as planned.
//!
//! A descheduled sender leaves a hole and then a burst. The gaps that it did keep are still right, so that a
//! stream is judged gap by gap, from the departures' own stamps, and never believed as a whole.

use core::ops::RangeInclusive;

use crate::report::StreamRecord;
use crate::time::Span;

/// A gap holds if it is within this share of the planned one.
pub const TOLERANCE: f64 = 0.1;

/// The gaps of a stream that were sent as planned.
///
/// ```
/// use lastmile::{node::Ecn, observe::schedule::Schedule, report::*, time::{Span, Time}, units::Bytes};
/// let packet = |seq: u64, sent_us: u64| PacketReport {
///     seq, size: Bytes(1488), sent: Time::from_nanos(sent_us * 1000), fate: Fate::Lost, ecn: Ecn::NotEct,
/// };
/// let record = StreamRecord {
///     stream: 1, direction: Direction::Forward, pattern: Pattern::Train,
///     planned: (0..5).map(|k| Span::from_millis(k)).collect(),
///     // The third packet left 400 us late; the others in time.
///     packets: vec![packet(0, 0), packet(1, 1000), packet(2, 2400), packet(3, 3000), packet(4, 4020)],
///     tx_resolution: Span::from_nanos(1), rx_resolution: Span::from_nanos(1), clock_stepped: false,
/// };
/// let schedule = Schedule::of(&record);
/// assert_eq!(schedule.held(), [false, true, false, false, true]);
/// assert_eq!(schedule.segments(), [0..=1, 3..=4]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    held: Vec<bool>,
}

impl Schedule {
    /// Compares departures and plan.
    ///
    /// A planned gap holds within [`TOLERANCE`] of itself, or the resolution of the departures' stamps where that
    /// is coarser. Packets planned back to back hold where their real gap is at most half the gap at which they
    /// were received: the queue then closed it, and dispersion does not depend on it.
    pub fn of(record: &StreamRecord) -> Schedule {
        let gap_holds = |i: usize| {
            let Some((sent, planned)) = record.send_gap(i) else { return false };
            if sent < Span::ZERO || planned < Span::ZERO {
                return false;
            }
            if planned == Span::ZERO {
                return record.receive_gap(i).is_some_and(|got| got > Span::ZERO && sent * 2 <= got);
            }
            (sent - planned).abs() <= planned.scaled(TOLERANCE).max(record.tx_resolution)
        };
        Schedule { held: (0..record.packets.len()).map(gap_holds).collect() }
    }

    /// For each packet, true if the gap before it holds; false for the first.
    pub fn held(&self) -> &[bool] {
        &self.held
    }

    /// Gaps that hold.
    pub fn count(&self) -> usize {
        self.held.iter().filter(|h| **h).count()
    }

    /// Runs of packets between which all gaps hold, by first and last packet.
    pub fn segments(&self) -> Vec<RangeInclusive<usize>> {
        runs(&self.held)
    }
}

/// The runs of packets between which every gap is good; `good[i]` tells of the gap before packet `i`.
pub(crate) fn runs(good: &[bool]) -> Vec<RangeInclusive<usize>> {
    let mut runs: Vec<RangeInclusive<usize>> = Vec::new();
    for i in (1..good.len()).filter(|i| good[*i]) {
        match runs.last_mut() {
            Some(run) if *run.end() == i - 1 => *run = *run.start()..=i,
            _ => runs.push(i - 1..=i),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::testing::record;
    use crate::report::Pattern;

    #[test]
    fn a_pair_holds_where_the_queue_closed_its_gap() {
        let pairs = record(
            Pattern::Pairs,
            &[0, 0, 10_000, 10_000],
            &[0, 500, 10_000, 10_600],
            &[Some(100), Some(1_100), Some(10_100), Some(11_100)],
        );
        // 500 us within 1000 us holds; 600 us does not. 9.5 ms between the pairs are 10 ms within the tolerance.
        assert_eq!(Schedule::of(&pairs).held(), [false, true, true, false]);
    }

    #[test]
    fn coarse_stamps_widen_the_tolerance() {
        let mut train = record(Pattern::Train, &[0, 100, 200], &[0, 100, 250], &[None, None, None]);
        assert_eq!(Schedule::of(&train).count(), 1);
        train.tx_resolution = Span::from_micros(50);
        assert_eq!(Schedule::of(&train).count(), 2);
    }
}
