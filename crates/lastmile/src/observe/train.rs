//! Packet trains: the gaps that can be believed, as sums over runs of them.
//!
//! Sums and not single gaps: what delays one packet at the receiver lengthens one gap and shortens the next, and
//! the two cancel unless a rule looks at one of them alone.

use crate::observe::batch::Batches;
use crate::observe::order::Order;
use crate::observe::schedule::{Schedule, runs};
use crate::report::StreamRecord;
use crate::time::Span;
use crate::units::Bytes;

/// A run of fewer gaps is not used: against periodic traffic each run is uncertain by one packet of it.
pub const MIN_RUN: usize = 3;

/// A run of gaps that were sent as planned and received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its first packet.
    pub from: usize,
    /// Its last packet.
    pub to: usize,
    /// From the first packet's departure to the last's.
    pub sent: Span,
    /// From the first packet's arrival to the last's.
    pub received: Span,
    /// Bytes at the IP layer of all its packets but the first: what the path served between these arrivals.
    pub bytes: Bytes,
}

impl Run {
    /// Gaps in it.
    pub fn gaps(&self) -> usize {
        self.to - self.from
    }
}

/// The runs of a train that can be believed: departures kept the schedule, packets arrived in order and next to
/// each other, both ends are the last of their receive batches, and there are at least [`MIN_RUN`] gaps.
///
/// ```
/// use lastmile::{node::Ecn, observe::train, report::*, time::{Span, Time}, units::Bytes};
/// let packet = |k: u64, arrived_ms: Option<u64>| PacketReport {
///     seq: k, size: Bytes(1488), sent: Time::from_nanos(k * 1_000_000), ecn: Ecn::NotEct,
///     fate: arrived_ms.map_or(Fate::Lost, |ms| Fate::Arrived(Time::from_nanos(ms * 1_000_000))),
/// };
/// let record = StreamRecord {
///     stream: 1, direction: Direction::Forward, pattern: Pattern::Train,
///     planned: (0..6).map(Span::from_millis).collect(),
///     packets: vec![packet(0, Some(9)), packet(1, Some(11)), packet(2, Some(12)), packet(3, Some(13)), packet(4, None), packet(5, Some(20))],
///     tx_resolution: Span::from_nanos(1), rx_resolution: Span::from_nanos(1), clock_stepped: false,
/// };
/// let runs = train::runs_of(&record);
/// assert_eq!((runs.len(), runs[0].gaps()), (1, 3));
/// assert_eq!((runs[0].sent, runs[0].received), (Span::from_millis(3), Span::from_millis(4)));
/// ```
pub fn runs_of(record: &StreamRecord) -> Vec<Run> {
    let (schedule, order, batches) = (Schedule::of(record), Order::of(record), Batches::of(record));
    let good: Vec<bool> =
        schedule.held().iter().enumerate().map(|(i, held)| *held && order.usable(i)).collect();
    let run = |range: core::ops::RangeInclusive<usize>| {
        let from = range.clone().find(|i| batches.ends_with(*i))?;
        let to = range.rev().find(|i| batches.ends_with(*i))?;
        let (first, last) = (record.packets.get(from)?, record.packets.get(to)?);
        (to >= from + MIN_RUN).then_some(Run {
            from,
            to,
            sent: last.sent - first.sent,
            received: last.fate.arrived()? - first.fate.arrived()?,
            bytes: record.packets[from + 1..=to].iter().map(|p| p.size).sum(),
        })
    };
    runs(&good).into_iter().filter_map(run).collect()
}

/// Gaps that a train of `packets` must leave usable to be believed: half of them.
///
/// ```
/// assert_eq!(lastmile::observe::train::gaps_needed(30), 15);
/// ```
pub fn gaps_needed(packets: usize) -> usize {
    packets.saturating_sub(1).div_ceil(2).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::testing::record;
    use crate::report::Pattern;

    #[test]
    fn a_hiccup_splits_the_train() {
        // Packet 5 is 8 ms late; 5 to 12 leave in a burst; from 13 on the schedule holds again.
        let planned: Vec<u64> = (0..30).map(|k| k * 1_000).collect();
        let sent: Vec<u64> =
            planned.iter().map(|&t| if (5_000..=12_900).contains(&t) { 13_000 } else { t }).collect();
        let mut free = 0;
        let arrived: Vec<Option<u64>> = sent
            .iter()
            .map(|&t| {
                free = t.max(free) + 1_000;
                Some(free)
            })
            .collect();
        let runs = runs_of(&record(Pattern::Train, &planned, &sent, &arrived));
        assert_eq!(runs.iter().map(|r| (r.from, r.to)).collect::<Vec<_>>(), [(0, 4), (13, 29)]);
        assert!(runs.iter().all(|r| r.sent == r.received), "{runs:?}");
    }

    #[test]
    fn batches_are_cut_at_their_ends() {
        // Stamps come every 4 ms for all that arrived until then.
        let planned: Vec<u64> = (0..12).map(|k| k * 1_000).collect();
        let arrived: Vec<Option<u64>> =
            planned.iter().map(|t| Some((t + 900).div_ceil(4_000) * 4_000)).collect();
        let runs = runs_of(&record(Pattern::Train, &planned, &planned, &arrived));
        assert_eq!(runs.len(), 1);
        assert_eq!((runs[0].from, runs[0].to), (3, 11));
        assert_eq!(runs[0].sent, runs[0].received);
    }
}
