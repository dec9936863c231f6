//! Packet pairs that do not agree with one another, as behind Wi-Fi's backoff: one short burst tells whether the path aggregates.
//!
//! An access point that aggregates (802.11n's A-MPDU) sends a pair's first packet before the second has come, where these come
//! some microseconds apart. Each then pays its own access to the medium, and pairs show half of what the path carries, as steadily as
//! in 802.11b and g, where that is all there is. Nothing in pairs tells these apart; more packets do. This rule is our own, and
//! neither WBest's nor CapProbe's:
//!
//! - Pairs are scattered if no window of [`WINDOW`] of their median dispersion, or of [`NOISE`] times the uncertainty of their
//!   stamps, holds a share of [`AGREE`] of them. On a wire, even a busy one, many pairs have exactly L / C; backoffs are spread
//!   evenly over 16 slots or more. `docs/quantities.md` says how often wires look scattered.
//! - For scattered pairs one burst of [`PACKETS`] packets is sent. If it comes at more than [`FASTER`] times the pairs' rate, the path
//!   aggregates, and bursts of several batches follow ([`batched`](super::batched)). Else pairs are right.
//!
//! Bytes and times are the only inputs, never the number of frames in an aggregate (US 10,383,002).

use crate::estimate::StreamPlan;
use crate::estimate::batched::{BURST, Batched};
use crate::estimate::contention::{Met, met};
use crate::observe::pairs::Pair;
use crate::observe::{StreamVerdict, judge, stats};
use crate::report::StreamRecord;
use crate::time::Span;
use crate::units::Bytes;

/// Pairs agree within this share of their median dispersion.
const WINDOW: f64 = 0.02;
/// And within so many times the uncertainty of their stamps.
const NOISE: i64 = 4;
/// The share of pairs that agree on a wire.
const AGREE: f64 = 0.3;
/// Packets in the burst: all but the first fit into one aggregate, and any queue.
const PACKETS: usize = 8;
/// Ratio of a burst's rate to the pairs' above which the path aggregates.
pub(super) const FASTER: f64 = 1.25;
/// Bursts that may tell nothing.
const ATTEMPTS: u32 = 3;

/// Result of the bursts about scattered pairs.
#[derive(Clone, Debug)]
pub(super) enum Finding {
    /// Packets come one by one: pairs are right.
    OneByOne,
    /// The path delivers in batches that can be read.
    InBatches(Box<Batched>),
}

/// Sends bursts until one tells whether the path aggregates.
#[derive(Clone, Debug)]
pub(super) struct AggregationCheck {
    /// The pairs' rate, in bit/s at the IP layer.
    claim: f64,
    size: Bytes,
    coalescing: Span,
    /// A burst was faster: the next ones are several batches long.
    faster: bool,
    attempts: u32,
}

/// True if pairs do not agree with one another, with stamps as uncertain as `noise`.
pub(super) fn scattered(pairs: &[Pair], noise: Span) -> bool {
    let mut gaps: Vec<f64> = pairs.iter().map(|p| p.received.as_nanos() as f64).collect();
    gaps.sort_by(f64::total_cmp);
    let Some(median) = stats::median(&gaps) else { return false };
    let window = (WINDOW * median).max((noise * NOISE).as_nanos() as f64);
    let within =
        |(k, first): (usize, &f64)| gaps[k..].iter().take_while(|gap| **gap - first <= window).count();
    let most = gaps.iter().enumerate().map(within).max().unwrap_or(0);
    (most as f64) < AGREE * gaps.len() as f64
}

impl AggregationCheck {
    /// About these pairs, if they are scattered.
    pub(super) fn of(pairs: &[Pair], size: Bytes, coalescing: Span, noise: Span) -> Option<AggregationCheck> {
        if !scattered(pairs, noise) {
            return None;
        }
        let rates: Vec<f64> =
            pairs.iter().map(|p| p.size.bits() as f64 * 1e9 / p.received.as_nanos().max(1) as f64).collect();
        // Beside others' packets a burst is faster than most pairs, and no faster than those that met none.
        let claim = match met(pairs) {
            Met::Many(rate) => rate,
            Met::Few | Met::AtLink | Met::Scattered | Met::TooMany => stats::median(&rates)?,
        };
        Some(AggregationCheck { claim, size, coalescing, faster: false, attempts: 0 })
    }

    pub(super) fn plan(&self) -> StreamPlan {
        StreamPlan::burst(if self.faster { BURST } else { PACKETS }, self.size)
    }

    /// Takes in a burst, with stamps as uncertain as `noise`; `None` asks for another one.
    pub(super) fn on_stream(&mut self, record: &StreamRecord, noise: Span) -> Option<Finding> {
        let planned = self.plan().packets.len();
        self.attempts += 1;
        let whole = record.packets.len() == planned && record.planned.len() == planned;
        if whole && judge(record).verdict == StreamVerdict::Believed {
            if self.faster {
                let batched = Batched::of(record, self.size, self.coalescing, noise);
                return Some(batched.map_or(Finding::OneByOne, |b| Finding::InBatches(Box::new(b))));
            }
            if let Some(rate) = rate(record) {
                if rate <= FASTER * self.claim {
                    return Some(Finding::OneByOne);
                }
                (self.faster, self.attempts) = (true, 0);
            }
        }
        (self.attempts >= ATTEMPTS).then_some(Finding::OneByOne)
    }
}

/// Bytes after the first packet, over the time from the first arrival to the last, in bit/s; `None` where too little came.
fn rate(record: &StreamRecord) -> Option<f64> {
    let mut came: Vec<_> =
        record.packets.iter().filter_map(|p| Some((p.fate.arrived()?, p.size.bits()))).collect();
    came.sort();
    let [first, .., last] = came.as_slice() else { return None };
    let bits: u64 = came[1..].iter().map(|c| c.1).sum();
    // All at once is faster than anything.
    let took = (last.0 - first.0).as_nanos().max(1);
    (came.len() * 2 >= record.packets.len()).then_some(bits as f64 * 1e9 / took as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::pairs::PairSet;
    use crate::observe::testing::record;
    use crate::report::Pattern;

    const EXACT: Span = Span::from_nanos(1);

    /// Pairs that came so far apart, in microseconds.
    fn pairs(gaps: impl IntoIterator<Item = u64>) -> Vec<Pair> {
        let gaps: Vec<u64> = gaps.into_iter().collect();
        let sent: Vec<u64> = (0..2 * gaps.len() as u64).map(|k| k / 2 * 10_000).collect();
        let came = |k: usize| Some(sent[k] + 900 + if k % 2 == 1 { gaps[k / 2] } else { 0 });
        let came: Vec<Option<u64>> = (0..sent.len()).map(came).collect();
        PairSet::of(&record(Pattern::Pairs, &sent, &sent, &came)).usable
    }

    /// Backoffs of 16 slots of 9 us beside a frame of 316.
    fn backoffs() -> Vec<Pair> {
        pairs((0..30).map(|k| 316 + k * 7 % 16 * 9))
    }

    fn burst(arrivals: &[u64]) -> StreamRecord {
        let zeros = vec![0; arrivals.len()];
        let came: Vec<Option<u64>> = arrivals.iter().map(|us| Some(*us)).collect();
        record(Pattern::Burst, &zeros, &zeros, &came)
    }

    #[test]
    fn backoffs_are_scattered_and_a_wires_pairs_are_not() {
        assert!(scattered(&backoffs(), EXACT));
        // A third of a busy wire's met nothing.
        let busy = pairs((0..32).map(|k| if k % 3 == 0 { 1_190 } else { 400 + 83 * k }));
        assert!(!scattered(&busy, EXACT));
        let busier = pairs((0..32).map(|k| if k % 5 == 0 { 1_190 } else { 400 + 83 * k }));
        assert!(scattered(&busier, EXACT));
        // Stamps that are uncertain by 20 us could have made up backoffs.
        assert!(!scattered(&backoffs(), Span::from_micros(20)));
        assert!(!scattered(&[], EXACT));
    }

    #[test]
    fn a_burst_that_is_no_faster_says_that_pairs_are_right() {
        let about = |pairs: &[Pair]| AggregationCheck::of(pairs, Bytes(1488), Span::ZERO, EXACT);
        assert!(about(&pairs([1_190; 30])).is_none());
        let mut check = about(&backoffs()).unwrap();
        assert_eq!(check.plan().packets.len(), PACKETS);
        // One by one, each with the mean backoff: 384 us.
        let alone: Vec<u64> = (0..8).map(|k| 900 + k * 384).collect();
        assert!(matches!(check.clone().on_stream(&burst(&alone), EXACT), Some(Finding::OneByOne)));
        // Seven in one batch, after one that was alone.
        let together = [900, 2_400, 2_401, 2_402, 2_403, 2_404, 2_405, 2_406];
        assert!(check.on_stream(&burst(&together), EXACT).is_none());
        assert_eq!(check.plan().packets.len(), BURST);
        // Three batches of 28.
        let batches: Vec<u64> = (0..84).map(|k| 5_440 * (k / 28 + 1) + k % 28 / 14).collect();
        let Some(Finding::InBatches(batched)) = check.clone().on_stream(&burst(&batches), EXACT) else {
            panic!("batches are not read")
        };
        assert!((batched.capacity().rate / 61.3e6 - 1.0).abs() < 0.01, "{:?}", batched.capacity());
        // Faster than the pairs, but one by one.
        let single: Vec<u64> = (0..84).map(|k| 900 + k * 200).collect();
        assert!(matches!(check.on_stream(&burst(&single), EXACT), Some(Finding::OneByOne)));
    }

    #[test]
    fn bursts_that_tell_nothing_end() {
        let mut check = AggregationCheck::of(&backoffs(), Bytes(1488), Span::ZERO, EXACT).unwrap();
        let lost = record(
            Pattern::Burst,
            &[0; 8],
            &[0; 8],
            &[Some(900), Some(1_284), None, None, None, None, None, None],
        );
        assert!(check.on_stream(&lost, EXACT).is_none());
        assert!(check.on_stream(&lost, EXACT).is_none());
        assert!(matches!(check.on_stream(&lost, EXACT), Some(Finding::OneByOne)));
    }
}
