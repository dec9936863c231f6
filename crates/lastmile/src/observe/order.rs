//! Reordering, duplicates, and stamps that contradict each other.

use crate::report::{Pattern, StreamRecord};
use crate::time::{Owd, Span};

/// A one-way delay does not rise by more than this between neighbours unless a clock was stepped (or the path
/// was gone, which is no better).
pub const ABSURD: Span = Span::from_secs(1);
/// Arrivals that run backwards by less than this are reordering.
const BACKWARDS: Span = Span::from_millis(1);

/// Packets that are stamped within this of each other may have been taken by one interrupt, in any order.
const BATCH: Span = Span::from_micros(250);
/// So many packets before a step and behind it show that the delay has another level.
const STEADY: usize = 2;

/// Order in which packets arrived.
///
/// ```
/// use lastmile::{node::Ecn, observe::order::Order, report::*, time::{Span, Time}, units::Bytes};
/// let packet = |seq: u64, arrived: u64| PacketReport {
///     seq, size: Bytes(1488), sent: Time::from_nanos(seq), fate: Fate::Arrived(Time::from_nanos(arrived)), ecn: Ecn::NotEct,
/// };
/// let record = StreamRecord {
///     stream: 1, direction: Direction::Forward, pattern: Pattern::Train,
///     planned: vec![Span::ZERO; 3], packets: vec![packet(0, 10), packet(1, 3_000_000), packet(2, 2_000_000)],
///     tx_resolution: Span::from_nanos(1), rx_resolution: Span::from_nanos(1), clock_stepped: false,
/// };
/// let order = Order::of(&record);
/// // The second was overtaken by the third (RFC 4737): it bounds no gap.
/// assert_eq!((order.overtaken(), order.usable(1), order.usable(2)), (1, false, false));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// True if a packet's stamp may bound a gap: it arrived, once, and before all that left behind it.
    good: Vec<bool>,
    overtaken: usize,
    duplicates: usize,
}

impl Order {
    /// Looks through a record.
    pub fn of(record: &StreamRecord) -> Order {
        let mut order = Order { good: vec![false; record.packets.len()], overtaken: 0, duplicates: 0 };
        let mut highest = None;
        for (packet, good) in record.packets.iter().zip(&mut order.good) {
            let duplicate = highest.is_some_and(|seq| packet.seq <= seq);
            highest = highest.max(Some(packet.seq));
            order.duplicates += usize::from(duplicate);
            *good = packet.fate.arrived().is_some() && !duplicate;
        }
        // The earliest arrival of those that left later. One packet that was held up spoils its own gaps alone.
        let mut earliest = None;
        for (packet, good) in record.packets.iter().zip(&mut order.good).rev() {
            let Some(arrived) = packet.fate.arrived() else { continue };
            let behind = earliest.map_or(Span::ZERO, |earliest| arrived - earliest);
            // Stamps of one receive batch differ by their noise alone.
            order.overtaken += usize::from(behind > BATCH);
            *good &= behind <= Span::ZERO;
            earliest = Some(earliest.map_or(arrived, |earliest| arrived.min(earliest)));
        }
        order
    }

    /// Packets that arrived clearly behind one that left later.
    pub fn overtaken(&self) -> usize {
        self.overtaken
    }

    /// Entries whose sequence number had come before.
    pub fn duplicates(&self) -> usize {
        self.duplicates
    }

    /// True if the gap before packet `i` was received: both its packets arrived, in order, next to each other.
    pub fn usable(&self, i: usize) -> bool {
        i.checked_sub(1).is_some_and(|before| {
            self.good.get(i).copied().unwrap_or(false) && self.good.get(before).copied().unwrap_or(false)
        })
    }
}

/// True if so many of the packets sent were overtaken that their gaps say nothing.
///
/// Of pairs that go two ways as many come spread as come in the wrong order, and only the latter are seen: an eighth of all
/// pairs is too much. The rest of a train goes one way.
pub fn reordered(pattern: Pattern, overtaken: usize, sent: usize) -> bool {
    let share = if pattern == Pattern::Pairs { 16 } else { 4 };
    overtaken * share > sent
}

/// True if a clock was stepped while the stream ran: the driver said so, departures run backwards, the delay jumps by more
/// than [`ABSURD`], or arrivals run backwards and stay behind.
///
/// Reordering moves packets against their neighbours and back again: some delays before and after it are alike. A step back
/// puts every delay behind it below every delay before it.
///
/// A forward step of some milliseconds looks like a burst of other traffic; only the driver can tell these apart.
pub fn clock_stepped(record: &StreamRecord) -> bool {
    let departures_run_back =
        record.packets.windows(2).any(|two| two[1].sent - two[0].sent < -BACKWARDS.max(record.tx_resolution));
    let came: Vec<_> = record.packets.iter().filter_map(|p| Some((p.fate.arrived()?, p.owd()?))).collect();
    let jumps = came.windows(2).any(|two| two[1].1 - two[0].1 > ABSURD);
    let slack = BACKWARDS.max(record.rx_resolution);
    // The greatest delay from each packet on.
    let mut highest: Vec<Owd> = came.iter().map(|(_, delay)| *delay).collect();
    for i in (1..highest.len()).rev() {
        highest[i - 1] = highest[i - 1].max(highest[i]);
    }
    let (mut newest, mut least) = (None, None);
    let mut stepped_back = false;
    for (i, (at, delay)) in came.iter().enumerate() {
        let enough = i >= STEADY && came.len() - i >= STEADY;
        let runs_back = newest.is_some_and(|newest| *at - newest < -slack);
        let below = least.is_some_and(|least: Owd| highest[i] - least < -slack);
        stepped_back |= enough && runs_back && below;
        newest = newest.max(Some(*at));
        least = Some(least.map_or(*delay, |least| least.min(*delay)));
    }
    record.clock_stepped || departures_run_back || jumps || stepped_back
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::testing::record;

    fn train(arrivals: &[Option<u64>]) -> StreamRecord {
        let offsets: Vec<u64> = (0..arrivals.len() as u64).map(|k| k * 1_000).collect();
        record(Pattern::Train, &offsets, &offsets, arrivals)
    }

    #[test]
    fn one_packet_that_was_overtaken_is_reordering() {
        let swapped = train(&[Some(10_000), Some(15_000), Some(12_000), Some(16_000), Some(17_000)]);
        assert!(!clock_stepped(&swapped));
        assert_eq!(Order::of(&swapped).overtaken(), 1);
    }

    /// The third packet was held up for 20 ms, and all others passed it.
    #[test]
    fn a_packet_that_all_others_overtook_is_no_step_and_spoils_its_own_gaps_alone() {
        let came: Vec<Option<u64>> = (0..12).map(|k| Some(10_000 + k * 1_000)).collect();
        let mut held_up = came.clone();
        held_up[2] = Some(32_000);
        assert!(!clock_stepped(&train(&held_up)));
        let order = Order::of(&train(&held_up));
        assert_eq!(order.overtaken(), 1);
        assert_eq!((1..12).filter(|i| !order.usable(*i)).collect::<Vec<_>>(), [2, 3]);
        // Every third packet by another way, 7 ms longer.
        let two_ways = (0..12).map(|k| came[k].map(|at| at + if k % 3 == 1 { 7_000 } else { 0 }));
        assert!(!clock_stepped(&train(&two_ways.collect::<Vec<_>>())));
    }

    #[test]
    fn arrivals_that_stay_behind_are_a_step() {
        let stepped = train(&[Some(10_000), Some(15_000), Some(6_000), Some(7_000), Some(8_000)]);
        assert!(clock_stepped(&stepped));
    }

    #[test]
    fn a_lost_packet_takes_both_its_gaps() {
        let order = Order::of(&train(&[Some(10), Some(20), None, Some(40), Some(50)]));
        assert_eq!((1..5).map(|i| order.usable(i)).collect::<Vec<_>>(), [true, false, false, true]);
    }

    #[test]
    fn a_repeated_sequence_number_counts_once() {
        let mut twice = train(&[Some(10), Some(20), Some(30)]);
        twice.packets[1].seq = 0;
        assert_eq!(Order::of(&twice).duplicates(), 1);
        assert!(!Order::of(&twice).usable(1));
    }
}
