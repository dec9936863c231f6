//! Policers: token buckets that drop what they have no tokens for, and make nothing wait (RFC 2697's color-blind meter with a
//! dropper, the kernel's `police`).
//!
//! The beginning of a burst passes, and then one packet whenever tokens for one have come. So a stream is a suspicion if all its
//! losses are behind an unbroken beginning, by more than chance. A full queue loses alike; but packets through it have waited, and
//! packets through a policer have not. A train shows that: its survivors are as early as its first packets, and as evenly
//! spaced as tokens come. Survivors' bytes over their time are the sustained rate; each may be late by a packet's gap. A train that is
//! little longer than the bucket loses all of its end, were it only one packet: then its beginning tells whether it waited.
//!
//! Others who take tokens make survivors uneven: then nothing is said, and losses count as before.

use crate::estimate::wbest_capacity::{CONFIDENCE, Capacity};
use crate::estimate::{
    Estimate, Interval, IntervalMethod, Quantity, StreamPlan, TruthKind, Value, Warning, WarningCode,
    bits_per_second,
};
use crate::observe::stats;
use crate::report::{Fate, PacketReport, StreamRecord};
use crate::time::Span;
use crate::units::{Bytes, Rate};

/// So many losses at least are a suspicion, if chance puts all behind the beginning in fewer than one of a thousand streams.
const MIN_LOST: usize = 4;
const BY_CHANCE: f64 = 0.001;
/// Packets of the train that is sent about it.
const TRAIN: usize = 160;
/// So many survivors at least tell of the rate.
const MIN_SURVIVORS: usize = 8;
/// The share of their gaps that is within [`OFF`] packets' gaps of the median.
const EVEN: f64 = 0.8;
const OFF: f64 = 1.5;
/// A queue that held as much as the bucket would make packets wait so many times what stamps and gaps hide.
const SHOWN: f64 = 3.0;
/// Trains sent, each at a quarter of the rate of the one before, where too few survive.
const ATTEMPTS: u32 = 3;
const SLOWER: f64 = 0.25;

/// The beginning of a stream, before its first loss.
pub(super) fn unbroken(record: &StreamRecord) -> StreamRecord {
    let n = record.packets.iter().position(|p| p.fate == Fate::Lost).unwrap_or(record.packets.len());
    let mut begun = record.clone();
    begun.packets.truncate(n);
    begun.planned.truncate(n);
    begun
}

/// True if all losses are behind a stream's unbroken beginning, by more than chance.
pub(super) fn suspects(record: &StreamRecord) -> bool {
    let (all, lost, first) = (record.packets.len(), record.lost(), unbroken(record).packets.len());
    lost >= MIN_LOST
        && first > 0
        && !record.clock_stepped
        && stats::hypergeometric_tail(lost, lost, all - first, all) <= BY_CHANCE
}

/// True if a train looks so, or lost just its end, and its survivors waited for no queue. Stamps may be late by `late`.
pub(super) fn suspects_train(record: &StreamRecord, late: Span) -> bool {
    let lost = record.lost();
    let cut_short = lost > 0 && unbroken(record).packets.len() + lost == record.packets.len();
    (cut_short && !record.clock_stepped || suspects(record)) && !waited(record, late)
}

/// Between the packets of a train, as sent.
fn gap(record: &StreamRecord) -> Span {
    let n = record.planned.len().saturating_sub(1).max(1) as i64;
    record.planned.last().map_or(Span::ZERO, |last| *last / n)
}

/// True if the median survivor, or the beginning's median packet if there is none, waited longer than a packet's gap and `late`.
fn waited(record: &StreamRecord, late: Span) -> bool {
    let (begun, ended) = record.packets.split_at(unbroken(record).packets.len());
    let least = record.packets.iter().filter_map(PacketReport::owd).min();
    let waits = |of: &[PacketReport]| -> Vec<f64> {
        of.iter().filter_map(|p| Some((p.owd()? - least?).as_nanos() as f64)).collect()
    };
    let half = stats::median(&waits(ended)).or_else(|| stats::median(&waits(begun)));
    half.is_none_or(|wait| wait > (gap(record) + late).as_nanos() as f64)
}

/// A policer that a train has shown.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Policer {
    sustained: Capacity,
    bucket: Bytes,
    stream: u32,
}

impl Policer {
    /// Reads a train of packets of `size` bytes, whose stamps are uncertain by `noise` and late by `late` at most.
    fn of(record: &StreamRecord, size: Bytes, noise: Span, late: Span) -> Option<Policer> {
        let first = unbroken(record).packets.len();
        let came: Vec<f64> = (record.packets[first..].iter())
            .filter_map(|p| Some((p.fate.arrived()? - record.packets[0].fate.arrived()?).as_nanos() as f64))
            .collect();
        if came.len() < MIN_SURVIVORS || waited(record, late) {
            return None;
        }
        let slot = (gap(record) + noise * 2).as_nanos() as f64;
        let gaps: Vec<f64> = came.windows(2).map(|w| w[1] - w[0]).collect();
        let middle = stats::median(&gaps)?;
        let off = OFF * slot + late.as_nanos() as f64;
        let even = gaps.iter().filter(|gap| (*gap - middle).abs() <= off).count();
        if (even as f64) < EVEN * gaps.len() as f64 {
            return None;
        }
        let (bits, took) = (size.bits() as f64 * 1e9 * gaps.len() as f64, came.last()? - came.first()?);
        let by = slot + late.as_nanos() as f64;
        if took <= by {
            return None;
        }
        let rate = bits / took;
        let bucket = size.0 as f64 * first as f64 - rate * gap(record).as_nanos() as f64 * first as f64 / 8e9;
        // A queue of those bytes must have shown.
        if bucket.max(0.0) * 8e9 / rate < SHOWN * by {
            return None;
        }
        Some(Policer {
            sustained: Capacity {
                rate,
                interval: Some((bits / (took + by), bits / (took - by))),
                method: IntervalMethod::MedianOrderStatistics,
            },
            bucket: Bytes(bucket.max(size.0 as f64) as u64),
            stream: record.stream,
        })
    }

    /// The rate that lasts.
    pub(super) fn rate(&self) -> Rate {
        bits_per_second(self.sustained.rate)
    }

    /// The sustained rate.
    pub(super) fn estimate(&self, warnings: Vec<Warning>) -> Estimate {
        let interval = self.sustained.interval.map(|(low, high)| Interval {
            low: bits_per_second(libm::floor(low)),
            high: bits_per_second(libm::ceil(high)),
            confidence: CONFIDENCE,
            method: IntervalMethod::MedianOrderStatistics,
        });
        Estimate {
            quantity: Quantity::SustainedRate,
            value: Value::Is(self.rate()),
            interval,
            next: None,
            truth_kind: TruthKind::Queue,
            burst: Some(self.bucket),
            packet_size: None,
            streams: vec![self.stream],
            // A lower bound is the capacity's.
            warnings: warnings.into_iter().filter(|w| w.code != WarningCode::LowerBound).collect(),
        }
    }

    /// The warning's text.
    pub(super) fn text(&self) -> String {
        format!(
            "a policer (a token bucket of about {} without a queue) passes the beginning of a burst, then {}, and drops the rest",
            self.bucket,
            self.rate()
        )
    }
}

/// Sends trains about a suspicion.
#[derive(Clone, Debug)]
pub(super) struct PolicerCheck {
    rate: f64,
    size: Bytes,
    late: Span,
    attempts: u32,
}

impl PolicerCheck {
    /// With trains at `rate` bit/s first, of packets of `size` bytes. Stamps may be late by `late`.
    pub(super) fn new(rate: f64, size: Bytes, late: Span) -> PolicerCheck {
        PolicerCheck { rate, size, late, attempts: 0 }
    }

    pub(super) fn plan(&self) -> StreamPlan {
        StreamPlan::train(TRAIN, self.size, bits_per_second(self.rate))
    }

    /// Takes in a train, with stamps as uncertain as `noise`: a policer, or that there is none that shows. `None` asks for another one.
    pub(super) fn on_stream(&mut self, record: &StreamRecord, noise: Span) -> Option<Option<Policer>> {
        self.attempts += 1;
        let (first, whole) = (unbroken(record).packets.len(), record.packets.len() == TRAIN);
        if !whole || !suspects(record) {
            return Some(None);
        }
        if let Some(policer) = Policer::of(record, self.size, noise, self.late) {
            return Some(Some(policer));
        }
        let survivors = record.packets.len() - record.lost() - first;
        if survivors >= MIN_SURVIVORS || self.attempts >= ATTEMPTS {
            return Some(None);
        }
        self.rate *= SLOWER;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::testing::record;
    use crate::report::Pattern;

    /// `n` packets of 1488 B `apart` us apart, of which those come that find tokens: 595.2 us each, and a bucket of `bucket` bytes.
    fn policed(n: u64, apart: u64, bucket: f64) -> StreamRecord {
        let (mut tokens, mut before) = (bucket, 0);
        let mut came = Vec::new();
        for at in (0..n).map(|k| k * apart) {
            tokens = (tokens + (at - before) as f64 * 2.5).min(bucket);
            before = at;
            let passes = tokens >= 1488.0;
            tokens -= if passes { 1488.0 } else { 0.0 };
            came.push(passes.then_some(at + 500));
        }
        let sent: Vec<u64> = (0..n).map(|k| k * apart).collect();
        record(Pattern::Train, &sent, &sent, &came)
    }

    #[test]
    fn what_survives_of_a_train_shows_the_rate_and_its_beginning_the_bucket() {
        for bucket in [10e3, 30e3] {
            assert!(suspects(&policed(40, 0, bucket)), "a burst");
            let mut asks = PolicerCheck::new(1e8, Bytes(1488), Span::ZERO);
            assert_eq!(asks.plan().packets.len(), TRAIN);
            let found = asks.on_stream(&policed(160, 119, bucket), Span::from_nanos(1)).unwrap().unwrap();
            assert!((found.sustained.rate / 20e6 - 1.0).abs() < 0.02, "{found:?}");
            let (low, high) = found.sustained.interval.unwrap();
            assert!(low <= 20e6 && 20e6 <= high, "{found:?}");
            assert!((found.bucket.0 as f64 - bucket).abs() <= 1_600.0, "{found:?}");
        }
    }

    /// Trains of 30 packets at 100 Mbit/s: the bucket lets 20, 26 and 29 of them pass, and none behind these.
    #[test]
    fn a_train_that_loses_just_its_end_is_a_suspicion() {
        for lost in [10, 4, 1] {
            let sent: Vec<u64> = (0..30).map(|k| k * 119).collect();
            let cut = |k: usize, wait: u64| (k < 30 - lost).then_some(sent[k] + 500 + wait);
            let policed: Vec<_> = (0..30).map(|k| cut(k, 0)).collect();
            assert!(suspects_train(&record(Pattern::Train, &sent, &sent, &policed), Span::ZERO), "{lost}");
            // A queue of ten packets that filled.
            let queued: Vec<_> = (0..30).map(|k| cut(k, 60 * k as u64)).collect();
            assert!(!suspects_train(&record(Pattern::Train, &sent, &sent, &queued), Span::ZERO), "{lost}");
        }
    }

    #[test]
    fn full_queues_and_losses_by_chance_are_no_policer() {
        // A queue of ten packets before a link of 20 Mbit/s: its packets have waited, and come without a hole.
        let (mut free, mut came) = (0_u64, Vec::new());
        for at in (0..160).map(|k| k * 119) {
            let passes = free.saturating_sub(at) < 10 * 595;
            free = if passes { free.max(at) + 595 } else { free };
            came.push(passes.then_some(free));
        }
        let sent: Vec<u64> = (0..160).map(|k| k * 119).collect();
        let queued = record(Pattern::Train, &sent, &sent, &came);
        assert!(suspects(&queued) && !suspects_train(&queued, Span::ZERO));
        let mut asks = PolicerCheck::new(1e8, Bytes(1488), Span::ZERO);
        assert_eq!(asks.on_stream(&queued, Span::from_nanos(1)), Some(None));
        // One of three, anywhere.
        let came: Vec<_> = (0..160).map(|k| (k * k % 7 % 3 != 1).then_some(k * 119 + 500)).collect();
        let scattered = record(Pattern::Train, &sent, &sent, &came);
        assert!(scattered.lost() > 40 && !suspects(&scattered));
    }
}
