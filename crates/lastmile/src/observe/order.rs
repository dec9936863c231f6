//! Reordering, duplicates, and stamps that contradict each other.

use crate::report::StreamRecord;
use crate::time::Span;

/// A one-way delay does not rise by more than this between neighbours unless a clock was stepped (or the path
/// was gone, which is no better).
pub const ABSURD: Span = Span::from_secs(1);
/// Arrivals that run backwards by less than this are reordering.
const BACKWARDS: Span = Span::from_millis(1);

/// In which order packets arrived.
///
/// ```
/// use lastmile::{node::Ecn, observe::order::Order, report::*, time::{Span, Time}, units::Bytes};
/// let packet = |seq: u64, arrived: u64| PacketReport {
///     seq, size: Bytes(1488), sent: Time::from_nanos(seq), fate: Fate::Arrived(Time::from_nanos(arrived)), ecn: Ecn::NotEct,
/// };
/// let record = StreamRecord {
///     stream: 1, direction: Direction::Forward, pattern: Pattern::Train,
///     planned: vec![Span::ZERO; 3], packets: vec![packet(0, 10), packet(1, 30), packet(2, 20)],
///     tx_resolution: Span::from_nanos(1), rx_resolution: Span::from_nanos(1), clock_stepped: false,
/// };
/// let order = Order::of(&record);
/// assert_eq!((order.overtaken(), order.usable(1), order.usable(2)), (1, true, false));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// Whether a packet's stamp may bound a gap: it arrived, once, and behind all that left before it.
    good: Vec<bool>,
    overtaken: usize,
    duplicates: usize,
}

impl Order {
    /// Looks through a record.
    pub fn of(record: &StreamRecord) -> Order {
        let mut order = Order { good: Vec::with_capacity(record.packets.len()), overtaken: 0, duplicates: 0 };
        let mut newest = None;
        let mut highest = None;
        for packet in &record.packets {
            let duplicate = highest.is_some_and(|seq| packet.seq <= seq);
            highest = highest.max(Some(packet.seq));
            let arrived = packet.fate.arrived();
            let overtaken = arrived.is_some() && arrived < newest;
            newest = newest.max(arrived);
            order.duplicates += usize::from(duplicate);
            order.overtaken += usize::from(overtaken);
            order.good.push(arrived.is_some() && !duplicate && !overtaken);
        }
        order
    }

    /// Packets that arrived behind one that left later.
    pub fn overtaken(&self) -> usize {
        self.overtaken
    }

    /// Entries whose sequence number had come before.
    pub fn duplicates(&self) -> usize {
        self.duplicates
    }

    /// Whether the gap before packet `i` was received: both its packets arrived, in order, next to each other.
    pub fn usable(&self, i: usize) -> bool {
        i.checked_sub(1).is_some_and(|before| {
            self.good.get(i).copied().unwrap_or(false) && self.good.get(before).copied().unwrap_or(false)
        })
    }
}

/// Whether a clock was stepped while the stream ran: the driver said so, departures or several arrivals in a row
/// run backwards, or the delay jumps by more than [`ABSURD`].
///
/// A forward step of some milliseconds looks like a burst of other traffic; only the driver can tell these apart.
pub fn clock_stepped(record: &StreamRecord) -> bool {
    let departures_run_back =
        record.packets.windows(2).any(|two| two[1].sent - two[0].sent < -BACKWARDS.max(record.tx_resolution));
    let mut behind = 0;
    let mut newest = None;
    let mut last_delay = None;
    let mut arrivals_contradict = false;
    for packet in &record.packets {
        let (Some(at), Some(delay)) = (packet.fate.arrived(), packet.owd()) else { continue };
        arrivals_contradict |= last_delay.is_some_and(|before| delay - before > ABSURD);
        last_delay = Some(delay);
        // Reordering moves single packets; after a step all that follow are behind.
        let slack = BACKWARDS.max(record.rx_resolution);
        behind = if newest.is_some_and(|newest| at - newest < -slack) { behind + 1 } else { 0 };
        arrivals_contradict |= behind >= 3;
        newest = newest.max(Some(at));
    }
    record.clock_stepped || departures_run_back || arrivals_contradict
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::testing::record;
    use crate::report::Pattern;

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
