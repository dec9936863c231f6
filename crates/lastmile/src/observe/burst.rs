//! A burst: packets that left back to back prove a lower bound of the capacity, however late their arrivals are
//! stamped.
//!
//! A receiver that coalesces interrupts stamps a packet up to some time c late. Such lateness ruins a pair, whose dispersion
//! is shorter than c on a fast path, and takes no more than c from a whole burst. Let the packets that arrived be k of
//! L bytes each, the first of them sent at s, the last stamped at r. All were served after s, one after another, by
//! the link of capacity C, so that r is no earlier than s + p + k L / C, with p the delay of an empty path without that
//! service. The least delay seen of any packet is p + L / C and a delay of its stamp, which is at most c. So
//!
//! > C >= (k - 1) L / (r - s - least + c)
//!
//! wherever other traffic was met, whatever was lost, and in whichever order packets came. A first packet that had
//! to wait (which would bring the others closer to it) is seen by its delay, and counts.

use crate::report::StreamRecord;
use crate::time::{Owd, Span};
use crate::units::{Bytes, Layer, Rate};

/// Fewer packets than this are no burst.
pub const MIN_ARRIVED: usize = 8;

/// Bytes of a burst that arrived, and their times.
///
/// ```
/// use lastmile::{node::Ecn, observe::burst::Burst, report::*, time::{Span, Time}, units::{Bytes, Rate}};
/// // 100 Mbit/s: 120 us for each 1500 bytes; the last of ten arrives 1.2 ms after the first was sent.
/// let packet = |k: u64| PacketReport {
///     seq: k, size: Bytes(1500), sent: Time::from_nanos(0),
///     fate: Fate::Arrived(Time::from_nanos((k + 1) * 120_000)), ecn: Ecn::NotEct,
/// };
/// let record = StreamRecord {
///     stream: 1, direction: Direction::Forward, pattern: Pattern::Burst, planned: vec![Span::ZERO; 10],
///     packets: (0..10).map(packet).collect(),
///     tx_resolution: Span::from_nanos(1), rx_resolution: Span::from_nanos(1), clock_stepped: false,
/// };
/// let burst = Burst::of(&record, None).unwrap();
/// assert_eq!(burst.at_least(Span::ZERO), Some(Rate::ip(100_000_000)));
/// assert_eq!(burst.at_least(Span::from_micros(120)), Some(Rate::ip(90_000_000)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Bytes at the IP layer of all packets that arrived but one.
    pub bytes: Bytes,
    /// From the first arrival to the last, as stamped.
    pub received: Span,
    /// From the first departure to the last arrival, less the least delay; never shorter than `received`.
    pub elapsed: Span,
}

impl Burst {
    /// Reads a burst. `least` is the least delay that other streams of the same direction showed shortly before;
    /// the burst's own delays count too. `None` where fewer than [`MIN_ARRIVED`] packets came.
    pub fn of(record: &StreamRecord, least: Option<Owd>) -> Option<Burst> {
        let arrived = || record.packets.iter().filter(|p| p.fate.arrived().is_some());
        if arrived().count() < MIN_ARRIVED {
            return None;
        }
        let at = || arrived().filter_map(|p| p.fate.arrived());
        let (first, last) = (at().min()?, at().max()?);
        let departed = arrived().map(|p| p.sent).min()?;
        let own = arrived().filter_map(|p| p.owd()).min()?;
        let all: Bytes = arrived().map(|p| p.size).sum();
        Some(Burst {
            bytes: Bytes(all.0.saturating_sub(arrived().map(|p| p.size.0).max()?)),
            received: last - first,
            elapsed: (last - departed) - least.map_or(own, |least| own.min(least)),
        })
    }

    /// The path's capacity is at least this, at the IP layer, if no stamp is off by more than `slack`; `None` where the
    /// stamps contradict that.
    pub fn at_least(&self, slack: Span) -> Option<Rate> {
        let span = self.elapsed.max(self.received) + slack;
        (span > Span::ZERO).then(|| Rate::over(self.bytes, span, Layer::Ip))?
    }

    /// The rate with which it arrived, in bit/s at the IP layer; `None` where it arrived all at once.
    pub fn rate(&self) -> Option<f64> {
        (self.received > Span::ZERO).then(|| self.bytes.bits() as f64 * 1e9 / self.received.as_nanos() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::testing::record;
    use crate::report::Pattern;

    fn burst(arrived: &[Option<u64>], least: Option<Owd>) -> Option<Burst> {
        let zeros = vec![0; arrived.len()];
        Burst::of(&record(Pattern::Burst, &zeros, &zeros, arrived), least)
    }

    /// 119 us for each packet, all stamped at the next multiple of 250 us.
    #[test]
    fn late_stamps_cost_no_more_than_their_delay() {
        let truth = 1488.0 * 8.0 / 119e-6;
        for phase in 0..250 {
            let stamps: Vec<Option<u64>> =
                (1..=40_u64).map(|k| Some((k * 119 + phase).div_ceil(250) * 250)).collect();
            let bound = burst(&stamps, None).unwrap().at_least(Span::from_micros(250)).unwrap();
            let share = bound.bits_per_second() as f64 / truth;
            assert!((0.9..=1.0).contains(&share), "{share}");
        }
    }

    /// The first packet waited for 1 ms behind the narrow link, and the others came up to it.
    #[test]
    fn a_burst_that_was_compressed_is_seen_by_its_delay() {
        let stamps: Vec<Option<u64>> = (1..=40_u64).map(|k| Some((k * 119 + 500).max(1_619))).collect();
        let alone = burst(&stamps, None).unwrap();
        assert!(alone.rate().unwrap() > 1.2 * 1e8);
        let least = record(Pattern::Train, &[0], &[0], &[Some(619)]).packets[0].owd();
        assert_eq!(burst(&stamps, least).unwrap().elapsed, Span::from_micros(39 * 119));
    }

    #[test]
    fn only_what_arrived_counts() {
        let mut stamps: Vec<Option<u64>> = (1..=40_u64).map(|k| (k % 2 == 1).then_some(k * 100)).collect();
        stamps.swap(4, 8);
        let burst_of_half = burst(&stamps, None).unwrap();
        assert_eq!(
            (burst_of_half.bytes, burst_of_half.received),
            (Bytes(19 * 1488), Span::from_micros(3_800))
        );
        assert_eq!(burst(&stamps[..13], None), None);
        let at_once = burst(&[Some(7); 8], None).unwrap();
        assert_eq!((at_once.rate(), at_once.at_least(Span::ZERO)), (None, None));
    }
}
