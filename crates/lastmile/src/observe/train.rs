//! Packet trains: the gaps that can be believed, as sums over runs of them.
//!
//! Sums and not single gaps: a delay of one packet at the receiver lengthens one gap and shortens the next, and
//! the two cancel unless a rule looks at one of them alone.

use crate::observe::batch::Batches;
use crate::observe::order::Order;
use crate::observe::schedule::{Schedule, runs};
use crate::report::StreamRecord;
use crate::time::{Owd, Span};
use crate::units::Bytes;

/// A run of fewer gaps is not used: against periodic traffic each run is uncertain by one packet of it.
pub const MIN_RUN: usize = 4;

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
    /// Bytes at the IP layer of all its packets but the first: the path served them between these arrivals.
    pub bytes: Bytes,
}

impl Run {
    /// Gaps in it.
    pub fn gaps(&self) -> usize {
        self.to - self.from
    }
}

/// True if the gap before packet `i` was dispersed by a busy queue, whatever the schedule says: the packet reached
/// the queue before the one ahead of it had left.
///
/// A packet that was delayed by q more than the least delayed one leaves the queue q plus its service time after it
/// was sent, at a rate that is the capacity; the planned gap stands for the service time, so that this holds for trains
/// that are planned at the capacity. The queue then served between the two departures all that arrived between
/// the two packets, also where a late sender let them go in a burst.
fn backlogged(record: &StreamRecord, least: Option<Owd>, i: usize) -> bool {
    let delayed = || Some(record.packets.get(i.checked_sub(1)?)?.owd()? - least?);
    let (Some((sent, planned)), Some(delayed)) = (record.send_gap(i), delayed()) else { return false };
    Span::ZERO <= sent && sent <= planned + delayed
}

/// The runs of a train that can be believed: departures kept the schedule or met a backlog, packets arrived in order
/// and next to each other, both ends are the last of their receive batches, and there are at least [`MIN_RUN`] gaps.
///
/// The train must be planned at the path's capacity, as WBest's is.
///
/// ```
/// use lastmile::{node::Ecn, observe::train, report::*, time::{Span, Time}, units::Bytes};
/// let packet = |k: u64, arrived_ms: Option<u64>| PacketReport {
///     seq: k, size: Bytes(1488), sent: Time::from_nanos(k * 1_000_000), ecn: Ecn::NotEct,
///     fate: arrived_ms.map_or(Fate::Lost, |ms| Fate::Arrived(Time::from_nanos(ms * 1_000_000))),
/// };
/// let record = StreamRecord {
///     stream: 1, direction: Direction::Forward, pattern: Pattern::Train,
///     planned: (0..8).map(Span::from_millis).collect(),
///     packets: (0..8).map(|k| packet(k, (k != 5).then_some(if k == 0 { 9 } else { k + 10 }))).collect(),
///     tx_resolution: Span::from_nanos(1), rx_resolution: Span::from_nanos(1), clock_stepped: false,
/// };
/// let runs = train::runs_of(&record);
/// // The sixth was lost, and one gap behind it is too short a run.
/// assert_eq!((runs.len(), runs[0].gaps()), (1, 4));
/// assert_eq!((runs[0].sent, runs[0].received), (Span::from_millis(4), Span::from_millis(5)));
/// ```
pub fn runs_of(record: &StreamRecord) -> Vec<Run> {
    let (schedule, order, batches) = (Schedule::of(record), Order::of(record), Batches::of(record));
    let least = record.packets.iter().filter_map(|p| p.owd()).min();
    let good: Vec<bool> = (schedule.held().iter().enumerate())
        .map(|(i, held)| order.usable(i) && (*held || backlogged(record, least, i)))
        .collect();
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

/// True if enough of a train can be used for it to be believed: half its gaps, and half its time, because gaps of a
/// burst tell nothing of what else was going on.
///
/// ```
/// # use lastmile::{node::Ecn, observe::train, report::*, time::{Span, Time}, units::Bytes};
/// # let packet = |k: u64| PacketReport {
/// #     seq: k, size: Bytes(1488), sent: Time::from_nanos(k * 1_000_000), ecn: Ecn::NotEct,
/// #     fate: Fate::Arrived(Time::from_nanos(k * 1_000_000)),
/// # };
/// # let record = StreamRecord {
/// #     stream: 1, direction: Direction::Forward, pattern: Pattern::Train,
/// #     planned: (0..30).map(Span::from_millis).collect(), packets: (0..30).map(packet).collect(),
/// #     tx_resolution: Span::from_nanos(1), rx_resolution: Span::from_nanos(1), clock_stepped: false,
/// # };
/// let runs = train::runs_of(&record);
/// assert!(train::enough(&record, &runs));
/// assert!(!train::enough(&record, &[]));
/// ```
pub fn enough(record: &StreamRecord, runs: &[Run]) -> bool {
    let gaps: usize = runs.iter().map(Run::gaps).sum();
    let sent: Span = runs.iter().map(|r| r.sent).sum();
    let planned = match (record.planned.first(), record.planned.last()) {
        (Some(first), Some(last)) => *last - *first,
        _ => return false,
    };
    gaps > 0 && gaps * 2 >= record.packets.len().saturating_sub(1) && sent >= planned / 2
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
        assert_eq!(runs.iter().map(|r| (r.from, r.to)).collect::<Vec<_>>(), [(0, 4), (5, 29)]);
        // The burst is dispersed by the queue; the rest comes out as it went in.
        assert_eq!(runs[0].sent, runs[0].received);
        assert_eq!(runs[1].received, Span::from_millis(24));
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
