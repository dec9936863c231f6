//! Congestion signals of a stream, p(t) in the framework of ECNProbe (Table I): gaps, throughput, the trend of delays, losses, marks.

use crate::node::Ecn;
use crate::observe::order::Order;
use crate::observe::schedule::Schedule;
use crate::observe::stats;
use crate::report::{PacketReport, StreamRecord};
use crate::time::Span;
use crate::units::Bytes;

/// The gap between two packets that left one after the other, both of which arrived, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Place of the second packet in its stream.
    pub at: usize,
    /// The gap with which it left.
    pub sent: Span,
    /// The gap with which it arrived.
    pub received: Span,
    /// Its size at the IP layer.
    pub size: Bytes,
}

/// The gaps of a stream: all whose packets arrived in order, as the original programs take them, or with `held` only those of them that left as
/// planned ([`Schedule`]).
///
/// ```
/// use lastmile::{node::Ecn, observe::signal, report::*, time::{Span, Time}, units::Bytes};
/// let packet = |k: u64, arrived_us: Option<u64>| PacketReport {
///     seq: k, size: Bytes(1500), sent: Time::from_nanos(k * 1_000_000), ecn: if k == 3 { Ecn::Ce } else { Ecn::Ect0 },
///     fate: arrived_us.map_or(Fate::Lost, |us| Fate::Arrived(Time::from_nanos(us * 1_000))),
/// };
/// let record = StreamRecord {
///     stream: 1, direction: Direction::Forward, pattern: Pattern::Train, planned: (0..5).map(Span::from_millis).collect(),
///     packets: vec![packet(0, Some(500)), packet(1, None), packet(2, Some(2_500)), packet(3, Some(4_000)), packet(4, Some(5_500))],
///     tx_resolution: Span::from_nanos(1), rx_resolution: Span::from_nanos(1), clock_stepped: false,
/// };
/// let gaps = signal::gaps(&record, true);
/// assert_eq!(gaps.iter().map(|gap| (gap.at, gap.received.as_nanos())).collect::<Vec<_>>(), [(3, 1_500_000), (4, 1_500_000)]);
/// assert_eq!(signal::rates(&gaps).map(|rates| rates.map(f64::round)), Some([12e6, 8e6])); // 1500 B in 1 ms, and in 1.5 ms
/// assert_eq!((signal::loss(&record), signal::marks(&record)), (0.2, Some(0.25)));
/// ```
pub fn gaps(record: &StreamRecord, held: bool) -> Vec<Gap> {
    let (order, schedule) = (Order::of(record), Schedule::of(record));
    let good = |i: &usize| order.usable(*i) && (!held || schedule.held()[*i]);
    let gap = |i: usize| {
        let ((sent, _), received) = (record.send_gap(i)?, record.receive_gap(i)?);
        Some(Gap { at: i, sent, received, size: record.packets.get(i)?.size })
    };
    (1..record.packets.len()).filter(good).filter_map(gap).collect()
}

/// The gaps within the pairs of a stream, packets 2k and 2k + 1; `held` as of [`gaps`].
pub fn pair_gaps(record: &StreamRecord, held: bool) -> Vec<Gap> {
    gaps(record, held).into_iter().filter(|gap| gap.at % 2 == 1).collect()
}

/// The sums of gaps: as sent and as received.
pub fn sums(gaps: &[Gap]) -> [Span; 2] {
    [gaps.iter().map(|gap| gap.sent).sum(), gaps.iter().map(|gap| gap.received).sum()]
}

/// The rates at which packets left and came over their gaps, in bit/s at the IP layer; `None` where there was no time between them.
pub fn rates(gaps: &[Gap]) -> Option<[f64; 2]> {
    let bits = gaps.iter().map(|gap| gap.size).sum::<Bytes>().bits() as f64;
    let rates = sums(gaps).map(|time| bits / time.as_secs_f64());
    rates.iter().all(|rate| *rate > 0.0 && rate.is_finite()).then_some(rates)
}

/// The throughput of gaps, in bit/s at the IP layer, whatever the rate at which their packets left.
pub fn throughput(gaps: &[Gap]) -> Option<f64> {
    let bits = gaps.iter().map(|gap| gap.size).sum::<Bytes>().bits() as f64;
    Some(bits / sums(gaps)[1].as_secs_f64()).filter(|rate| *rate > 0.0 && rate.is_finite())
}

/// Trend of a stream's delays by Jain and Dovrolis, "End-to-end available bandwidth: measurement methodology, dynamics, and relation with
/// TCP throughput", IEEE/ACM ToN 11(4), 2003, section IV: delays in groups of about the square root of their number, and each group's median.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// Medians.
    pub medians: usize,
    /// Medians above the one before.
    pub rising: usize,
    /// Pairwise difference test: how far the last median is above the first, as a share of the way between all neighbours; -1 to 1.
    pub pdt: f64,
}

impl Trend {
    /// Of delays in the order of departure, in any unit and from any zero; `None` where they make fewer than two groups.
    ///
    /// ```
    /// use lastmile::observe::signal::Trend;
    /// // Groups of three with the medians 2, 5, 4.
    /// let trend = Trend::of(&[1.0, 2.0, 3.0, 5.0, 5.0, 9.0, 4.0, 3.0, 4.0]).unwrap();
    /// assert_eq!((trend.pct(), trend.pdt), (0.5, 0.5)); // one rise of two; (4 - 2) / (3 + 1)
    /// ```
    pub fn of(delays: &[f64]) -> Option<Trend> {
        let group = libm::floor(libm::sqrt(delays.len() as f64)) as usize;
        let medians: Vec<f64> = delays.chunks_exact(group.max(1)).filter_map(stats::median).collect();
        let (first, last) = (medians.first()?, medians.last()?);
        let way: f64 = medians.windows(2).map(|two| (two[1] - two[0]).abs()).sum();
        let rising = medians.windows(2).filter(|two| two[1] > two[0]).count();
        let pdt = if way > 0.0 { (last - first) / way } else { 0.0 }; // [pathload eq. 9]
        (medians.len() >= 2).then_some(Trend { medians: medians.len(), rising, pdt })
    }

    /// Pairwise comparison test: the share of medians above the one before.
    pub fn pct(&self) -> f64 {
        self.rising as f64 / (self.medians - 1) as f64 // [pathload eq. 8]
    }
}

/// The delays of the packets that arrived, in nanoseconds from any zero.
pub fn delays(record: &StreamRecord) -> Vec<f64> {
    record.packets.iter().filter_map(PacketReport::owd).map(|owd| owd.relative_nanos() as f64).collect()
}

/// The share of packets that were lost.
pub fn loss(record: &StreamRecord) -> f64 {
    record.lost() as f64 / record.packets.len().max(1) as f64
}

/// The share of arrived packets that routers marked; `None` where no packet arrived as one that may be marked.
pub fn marks(record: &StreamRecord) -> Option<f64> {
    let came = || record.packets.iter().filter(|p| p.fate.arrived().is_some() && p.ecn != Ecn::NotEct);
    let marked = came().filter(|p| p.ecn == Ecn::Ce).count();
    (came().count() > 0).then(|| marked as f64 / came().count() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::testing::record;
    use crate::report::Pattern;

    #[test]
    fn trends_are_between_all_and_none() {
        let rising: Vec<f64> = (0..100).map(f64::from).collect();
        let (up, flat) = (Trend::of(&rising).unwrap(), Trend::of(&[7.0; 100]).unwrap());
        assert_eq!((up.medians, up.pct(), up.pdt), (10, 1.0, 1.0));
        assert_eq!((flat.pct(), flat.pdt), (0.0, 0.0));
        let falling: Vec<f64> = rising.iter().rev().copied().collect();
        assert_eq!(Trend::of(&falling).map(|t| (t.pct(), t.pdt)), Some((0.0, -1.0)));
        assert_eq!((Trend::of(&[]), Trend::of(&[1.0])), (None, None));
    }

    #[test]
    fn what_left_late_counts_for_the_original_programs_alone() {
        // The third packet left 400 us late.
        let late = record(
            Pattern::Train,
            &[0, 1_000, 2_000, 3_000],
            &[0, 1_000, 2_400, 3_000],
            &[Some(900), Some(1_900), Some(3_300), Some(3_900)],
        );
        assert_eq!(gaps(&late, true).iter().map(|gap| gap.at).collect::<Vec<_>>(), [1]);
        assert_eq!(sums(&gaps(&late, false)), [Span::from_millis(3); 2]);
        let nothing = record(Pattern::Train, &[0, 10], &[0, 10], &[None, None]);
        assert_eq!((gaps(&nothing, false).len(), rates(&[]), throughput(&[])), (0, None, None));
        assert_eq!((loss(&nothing), marks(&nothing)), (1.0, None));
    }
}
