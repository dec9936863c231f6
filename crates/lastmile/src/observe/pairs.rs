//! Packet pairs: the usable pairs of a stream, and a verdict on the hosts' ability to time the path at all.

use crate::observe::order::Order;
use crate::observe::stats;
use crate::report::StreamRecord;
use crate::time::{Owd, Span};
use crate::units::Bytes;

/// A gap must be this many times the noise with which it is stamped to be a rate and not a bound.
pub const NOISE_SHARE: i64 = 10;
/// A host that sends a pair within this long did what it could.
pub(super) const BACK_TO_BACK: Span = Span::from_micros(200);

/// A pair both of whose packets arrived.
///
/// ```
/// use lastmile::{node::Ecn, observe::pairs::PairSet, report::*, time::{Span, Time}, units::Bytes};
/// let packet = |seq, sent, arrived| PacketReport {
///     seq, size: Bytes(1488), sent: Time::from_nanos(sent), fate: Fate::Arrived(Time::from_nanos(arrived)), ecn: Ecn::NotEct,
/// };
/// let record = StreamRecord {
///     stream: 1, direction: Direction::Forward, pattern: Pattern::Pairs, planned: vec![Span::ZERO; 2],
///     packets: vec![packet(0, 0, 5_000_000), packet(1, 4_000, 6_190_400)],
///     tx_resolution: Span::from_nanos(1), rx_resolution: Span::from_nanos(1), clock_stepped: false,
/// };
/// let pairs = PairSet::of(&record);
/// let pair = pairs.usable[0];
/// assert_eq!(pair.received.as_nanos(), 1_190_400);
/// assert_eq!(pair.second - pair.first, pair.received); // both delays count from the first departure
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// When its first packet left, in nanoseconds of the sender's clock.
    pub at: i64,
    /// The gap with which it left.
    pub sent: Span,
    /// The gap with which it arrived: its dispersion.
    pub received: Span,
    /// Delay of the first packet.
    pub first: Owd,
    /// Delay of the second packet, counted from the *first* packet's departure, as in CapProbe, so that it does
    /// not depend on how long the host took between the two.
    pub second: Owd,
    /// Size of the second packet at the IP layer: the one whose service time the dispersion is.
    pub size: Bytes,
}

/// The pairs of a stream, sorted by what they are good for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PairSet {
    /// Both arrived, in order, and the gap at sending is small against the gap at arrival.
    pub usable: Vec<Pair>,
    /// Both arrived in order, but the gap at sending was too wide to be closed by the queue.
    pub wide: Vec<Pair>,
    /// Pairs of which a packet was lost, or came out of order, or without a stamp.
    pub broken: usize,
}

/// Ability of these hosts to time the pairs of this path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// Dispersion is clearly larger than what disturbs it.
    Timed,
    /// It is not: packets come no further apart than they were sent, or than their stamps are uncertain.
    TooFast,
    /// Arrivals are stamped in batches: the receiver's stamps say nothing about dispersion.
    Batched,
}

impl PairSet {
    /// Sorts the pairs of a record: packets 2k and 2k + 1.
    pub fn of(record: &StreamRecord) -> PairSet {
        let order = Order::of(record);
        let mut set = PairSet::default();
        for (k, two) in record.packets.chunks_exact(2).enumerate() {
            let pair = || {
                let at = two[0].sent;
                let second = two[1].fate.arrived()?;
                order.usable(2 * k + 1).then_some(Pair {
                    at: i64::try_from(at.as_nanos()).ok()?,
                    sent: two[1].sent - at,
                    received: second - two[0].fate.arrived()?,
                    first: two[0].owd()?,
                    second: second - at,
                    size: two[1].size,
                })
            };
            match pair() {
                Some(pair) if pair.sent < Span::ZERO => set.broken += 1,
                // The queue closes a gap shorter than its service time; half leaves room for noise. (Sum, not
                // product: a span that saturates must not pass.)
                Some(pair) if pair.received > Span::ZERO && pair.sent <= pair.received - pair.sent => {
                    set.usable.push(pair)
                }
                Some(pair) => set.wide.push(pair),
                None => set.broken += 1,
            }
        }
        set
    }

    /// All pairs that arrived.
    pub fn arrived(&self) -> impl Iterator<Item = &Pair> {
        self.usable.iter().chain(&self.wide)
    }

    /// Takes in the pairs of another stream.
    pub fn extend(&mut self, more: PairSet) {
        self.usable.extend(more.usable);
        self.wide.extend(more.wide);
        self.broken += more.broken;
    }

    /// Verdict on timing the path, with stamps as uncertain as `noise`.
    ///
    /// A pair that leaves with a gap of its own comes out of a fast path with that same gap, and a rate computed
    /// from it is the sender's, not the path's. So dispersion must be at least twice the gap at sending and
    /// [`NOISE_SHARE`] times `noise`. No bound follows from pairs that are not timed, because stamps may come in batches
    /// without that being seen; a [burst](crate::observe::burst) gives one.
    pub fn timing(&self, noise: Span) -> Timing {
        let median = |gap: fn(&Pair) -> Span| {
            let gaps: Vec<f64> = self.arrived().map(|p| gap(p).as_nanos() as f64).collect();
            stats::median(&gaps).map(|ns| Span::from_nanos(ns as i64))
        };
        let (Some(sent), Some(received)) = (median(|p| p.sent), median(|p| p.received)) else {
            return Timing::Timed;
        };
        let floor = noise * NOISE_SHARE;
        // A queue brings a pair closer together where its first packet waits for others, but not most pairs, on a
        // path that has room for them; a receiver that stamps in batches does.
        if sent <= BACK_TO_BACK && received + noise < sent {
            Timing::Batched
        } else if received < floor || (sent <= BACK_TO_BACK && received < sent * 2) {
            Timing::TooFast
        } else {
            Timing::Timed
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::testing::record;
    use crate::report::Pattern;

    /// `n` pairs with these gaps in microseconds.
    fn pairs(n: u64, sent: u64, received: u64) -> PairSet {
        let planned: Vec<u64> = (0..2 * n).map(|k| k / 2 * 10_000).collect();
        let left: Vec<u64> = (0..2 * n).map(|k| k / 2 * 10_000 + k % 2 * sent).collect();
        let came: Vec<Option<u64>> =
            (0..2 * n).map(|k| Some(k / 2 * 10_000 + k % 2 * received + 900)).collect();
        PairSet::of(&record(Pattern::Pairs, &planned, &left, &came))
    }

    #[test]
    fn timing_tells_paths_from_hosts() {
        let noise = Span::from_micros(2);
        assert_eq!(pairs(10, 5, 1_190).timing(noise), Timing::Timed);
        // 1 Gbit/s: 12 us, six times the noise.
        assert_eq!(pairs(10, 3, 12).timing(noise), Timing::TooFast);
        // Loopback: pairs come as they left.
        assert_eq!(pairs(10, 30, 31).timing(noise), Timing::TooFast);
        // Coalesced: they left 9 us apart and have one stamp.
        assert_eq!(pairs(10, 9, 0).timing(noise), Timing::Batched);
        assert_eq!(PairSet::default().timing(noise), Timing::Timed);
    }

    #[test]
    fn a_wide_pair_is_set_aside() {
        let set = pairs(3, 700, 1_190);
        assert_eq!((set.usable.len(), set.wide.len(), set.broken), (0, 3, 0));
        // A sender this slow is not a fast path.
        assert_eq!(set.timing(Span::from_nanos(1)), Timing::Timed);
    }
}
