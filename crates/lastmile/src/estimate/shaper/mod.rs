//! Token buckets: the place from which a stream comes slower than bursts, and the sustained rate.
//!
//! A shaper of token rate r and bucket b (RFC 2697's committed information rate and burst size) on a link of capacity C lets
//! at most min(L + C t, b + r t) through in any time t (Kanuparthy, Dovrolis, "ShaperProbe: end-to-end detection of ISP traffic
//! shaping using active methods", IMC 2011, section 2). A stream sent at C comes through at C until
//!
//! > k = b / (1 - r / C)
//!
//! bytes have passed, and at r from then on. ShaperProbe looks for that shift in seconds of traffic by ranks of the received
//! rate. Here a stream is 30 or 40 packets, and other traffic spreads some of its gaps, so that the sign is a *floor*: from
//! some packet on to the end every gap is longer than a packet's time at the rate of bursts, by [`RATIO`] (ShaperProbe's).
//! Other traffic leaves some gap free sooner or later; a bucket without tokens never does.
//!
//! A bucket may end only one to three packets before the stream does. Those gaps are a suspicion if they are longer than free
//! ones by more packets' time than others fill, if they go on as in the gaps before, and than stamps may be late.
//!
//! A stream that looks so is a suspicion. A burst of packets back to back, between which next to nothing of others fits,
//! must show the same at the same place; its gaps from there on are a packet's time at r each, and their median is the sustained
//! rate, as that of pairs is the capacity (WBest, eq. 3). Trains then go at that rate behind a head that empties the bucket.
//!
//! A fair queue does alike: it lets a new flow's first packets pass at once, and then every other one (RFC 8290, section 5.2). Its
//! quantum is about a packet, so that a bucket counts as one only if it clearly holds more than a pair ([`CLEAR`]). Others
//! may have taken tokens just before, so that short bursts look again.
//!
//! Three do not show: a shaper that takes less than [`RATIO`] off, a bucket that outlasts the stream
//! ([`least_unseen`]), and a policer that drops packets it has no tokens for and leaves gaps of one packet's time.
//!
//! Not the knee of a distribution of delays: the order of arrivals and their gaps alone are looked at.

use crate::estimate::wbest_capacity::{CONFIDENCE, Capacity};
use crate::estimate::wbest_config::WbestConfig;
use crate::estimate::{
    Estimate, Interval, IntervalMethod, ProbePacket, Quantity, StreamPlan, TruthKind, Value, Warning,
    WarningCode, bits_per_second,
};
use crate::node::Ecn;
use crate::observe::pairs::{Pair, PairSet};
use crate::observe::{StreamVerdict, judge, stats};
use crate::report::{Pattern, StreamRecord};
use crate::time::{Owd, Span};
use crate::units::{Bytes, Rate};

/// Gaps this many times a packet's time at the rate of bursts are slow (ShaperProbe: 1.1).
const RATIO: f64 = 1.1;
/// So many slow gaps at a stream's end are a suspicion, unless chance does that in more than one of fifty streams.
const MIN_SLOW: usize = 4;
const BY_CHANCE: f64 = 0.02;
/// Fewer are where chance makes them as long in fewer than one of a thousand: others' packets come in bursts.
const FEW_BY_CHANCE: f64 = 0.001;
/// Slow gaps of a burst that tell of the rate.
const MIN_RATES: usize = 8;
/// Packets in a burst: as many as a queue of 40 packets or 60 kB holds.
pub(super) const BURST: usize = 40;
/// Bursts sent until two streams agree.
const ATTEMPTS: u32 = 3;
/// Packets that a bucket holds, more than a fair queue lets pass at once: a pair, and a twentieth of a packet. (A fair queue that lets two
/// pass and then one in N + 1 looks like a bucket of 3 - (N + 2) / (N + 1) packets, less than a pair whatever N is.)
const CLEAR: f64 = 2.05;
/// A fair queue leaves half to a flow at most, and a gap twice as long, beside one that always sends; others that send less make its
/// gaps uneven by their packets. So gaps of less than this, most within that share of their median, are a bucket's, whatever it holds:
/// behind one of 1600 B packets of 1280 B come 1.33 times a pair's gap apart, and of 1488 B 1.08 times.
const SHARE: f64 = 1.8;
const EVEN: f64 = 0.03;
/// The share of gaps that is even behind a kernel's shaper: some are longer, since its timer is late, and the next ones shorter.
const MOST: f64 = 0.8;
/// Short bursts sent about a bucket that no stream has shown to hold more.
const SHORT: u32 = 6;
/// Two streams agree where one slows down within so many packets of the other, or this share of them.
const PLACE: (usize, f64) = (3, 0.25);
/// By how much a burst's slow gaps may be longer or shorter than those of the stream that was suspected, in which there may
/// be packets of others.
const SAME_GAPS: core::ops::RangeInclusive<f64> = 0.5..=RATIO;
/// Tokens for pairs and bursts are not waited for any longer.
const MOST_APART: Span = Span::from_secs(1);
/// Packets of a head beyond those that the bucket lets pass: they wait, and so the queue is busy.
const BEYOND: usize = 3;

/// The bucket that a shaper to half the rate of bursts, or less, must at least have, for a stream of so many packets not to
/// have shown it: from k = b / (1 - r / C) with r = C / 2.
///
/// ```text
/// 30 packets of 1488 B have 25 ahead of the last four gaps and the packet before them: 37.2 kB, half of which is 18.6 kB.
/// ```
pub(super) fn least_unseen(packets: usize, size: Bytes) -> Option<Bytes> {
    let ahead = packets.checked_sub(1 + MIN_SLOW).filter(|ahead| *ahead > 0)?;
    Some(Bytes(size.0 * ahead as u64 / 2))
}

/// Place from which a stream came slower.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Slowdown {
    /// Packets that came before.
    at: usize,
    /// A packet's time before.
    fast: Span,
    /// Gaps from there on, in nanoseconds a packet.
    gaps: Vec<f64>,
    /// Packets up to the first that waited for tokens, itself included, and the nanoseconds from the first to that one.
    passed: (usize, i64),
    /// The same for the slower packets, from the second on: the first waited for a part of its tokens only.
    slow: (usize, i64),
}

impl Slowdown {
    /// Looks through a stream of packets of one size, where one of them takes `slot` at the rate of bursts. Arrivals within
    /// `noise` of each other are one. With `least`, the least delay of other streams' packets and by how much its stamp may be late,
    /// the packets before must have shown by themselves that they came faster, since `slot` is then only a bound.
    pub(super) fn of(
        record: &StreamRecord,
        slot: Span,
        noise: Span,
        least: Option<(Owd, Span)>,
    ) -> Option<Slowdown> {
        Slowdown::look(record, slot, noise, least, None)
    }

    /// Looks through a train alike, where fewer than [`MIN_SLOW`] gaps are enough if others would hardly fill them. Stamps may be late
    /// by `late`.
    pub(super) fn of_train(record: &StreamRecord, slot: Span, noise: Span, late: Span) -> Option<Slowdown> {
        Slowdown::look(record, slot, noise, None, Some(late))
    }

    fn look(
        record: &StreamRecord,
        slot: Span,
        noise: Span,
        least: Option<(Owd, Span)>,
        few: Option<Span>,
    ) -> Option<Slowdown> {
        if record.clock_stepped {
            return None;
        }
        // (index of the last, when it came, packets)
        let mut points: Vec<(usize, i64, usize)> = Vec::new();
        let first = record.packets.iter().find_map(|p| p.fate.arrived())?;
        for (index, packet) in record.packets.iter().enumerate() {
            let Some(arrived) = packet.fate.arrived() else { continue };
            let at = (arrived - first).as_nanos();
            match points.last_mut() {
                Some(last) if at.saturating_sub(last.1) <= noise.as_nanos() => {
                    *last = (index, last.1.max(at), last.2 + 1);
                }
                _ => points.push((index, at, 1)),
            }
        }
        let gaps: Vec<f64> = points.windows(2).map(|w| (w[1].1 - w[0].1) as f64 / w[1].2 as f64).collect();
        let slow = RATIO * slot.as_nanos() as f64;
        let from = gaps.iter().rposition(|gap| *gap < slow).map_or(0, |fast| fast + 1);
        let Some((least, late)) = least else {
            return Slowdown::from(record, &points, &gaps, from, slow, few);
        };
        let own = record.packets.iter().filter_map(|p| p.owd()).min()?;
        let (departed, least) = (record.packets.first()?.sent, own.min(least));
        // The stamp at `before` may have been late, and those of the first packets then were so by more.
        (from..gaps.len()).find_map(|from| {
            let (before, at) = (points.get(from)?.0, points.get(..=from)?.iter().map(|point| point.2).sum());
            let took = record.packets.get(before)?.fate.arrived()? - departed - least + late;
            let each = took.as_nanos() as f64 / usize::checked_sub(at, 1).filter(|n| *n > 0)? as f64;
            Slowdown::from(record, &points, &gaps, from, slow.max(RATIO * each), few)
        })
    }

    /// If all gaps from `from` on are `slow` nanoseconds or more, and there are enough of them.
    fn from(
        record: &StreamRecord,
        points: &[(usize, i64, usize)],
        gaps: &[f64],
        from: usize,
        slow: f64,
        few: Option<Span>,
    ) -> Option<Slowdown> {
        let (before, after) = gaps.split_at(from);
        let enough = match few {
            _ if after.len() >= MIN_SLOW => chance_of_many(before, after, slow) <= BY_CHANCE,
            Some(late) => chance_of_few(before, after, slow / RATIO, late) <= FEW_BY_CHANCE,
            None => false,
        };
        if !enough || after.iter().any(|gap| *gap < slow) {
            return None;
        }
        let ((before, came, _), (last, ended, _)) = (*points.get(from)?, *points.last()?);
        let (_, waited, _) = *points.get(from + 1)?;
        // Not because they were sent so slowly.
        let sent = record.packets.get(last)?.sent - record.packets.get(before)?.sent;
        if ((ended - came) as f64) < RATIO * sent.as_nanos() as f64 {
            return None;
        }
        let packets = |from: usize| points.iter().skip(from).map(|point| point.2).sum::<usize>();
        Some(Slowdown {
            at: packets(0) - packets(from + 1),
            fast: Span::from_nanos((slow / RATIO) as i64),
            gaps: after.to_vec(),
            passed: (packets(0) - packets(from + 2), waited),
            slow: (packets(from + 2), ended - waited),
        })
    }

    /// Packets that came before.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Nanoseconds from one packet to the next, from there on.
    pub(super) fn gaps(&self) -> &[f64] {
        &self.gaps
    }

    /// Median nanoseconds from one packet to the next, from there on.
    pub(super) fn gap(&self) -> f64 {
        stats::median(&self.gaps).unwrap_or(f64::INFINITY)
    }

    /// True if a burst bears this out.
    fn agrees(&self, burst: &Slowdown) -> bool {
        let near = PLACE.0.max((self.at.max(burst.at) as f64 * PLACE.1) as usize);
        self.at.abs_diff(burst.at) <= near && SAME_GAPS.contains(&(burst.gap() / self.gap()))
    }
}

/// Probability that others filled all gaps after a place, if they filled gaps as before it (Laplace's rule).
fn chance_of_many(before: &[f64], after: &[f64], slow: f64) -> f64 {
    let filled = before.iter().filter(|gap| **gap >= slow).count();
    let one = (filled + 1) as f64 / (before.len() + 2) as f64;
    libm::pow(one, after.len() as f64)
}

/// Upper bound of the probability that others, who come at random and as often as before, put k packets of a `slot` each into the
/// last gaps, where m were expected (Chernoff's bound for Poisson's distribution): e^-m (e m / k)^k. Lateness of `late` counts for
/// none.
fn chance_of_few(before: &[f64], after: &[f64], slot: f64, late: Span) -> f64 {
    let more = |gaps: &[f64]| gaps.iter().map(|gap| (gap - slot).max(0.0)).sum::<f64>() / slot;
    let expected = (more(before) + 1.0) / (before.len() + 1) as f64 * after.len() as f64;
    let came = more(after) - late.as_nanos() as f64 / slot;
    if came <= expected {
        return 1.0;
    }
    libm::exp(came - expected) * libm::pow(expected / came, came)
}

/// Time between pairs that is needed if those of a stream, `gap` apart, took a bucket's tokens faster than these came: pairs that
/// pass at first are followed by slower ones alone. Their median, `rate` in bit/s, is then the shaper's and not that of such bursts. Twice
/// their own time at it lets the bucket fill between pairs.
pub(super) fn apart(pairs: &PairSet, rate: f64, gap: Span, late: Span) -> Option<Span> {
    let mut all: Vec<&Pair> = pairs.arrived().collect();
    all.sort_by_key(|pair| pair.at);
    let gaps: Vec<f64> = all.iter().map(|pair| pair.received.as_nanos() as f64).collect();
    let fast = gaps.iter().copied().min_by(f64::total_cmp)?.max(0.0);
    let slow = RATIO * (fast + late.as_nanos() as f64);
    let (before, after) = gaps.split_at(gaps.iter().rposition(|gap| *gap < slow)? + 1);
    let needed = slot(rate, all.first()?.size) * 4;
    let passed = before.iter().filter(|gap| **gap < slow).count();
    let drained = passed * 2 > before.len()
        && after.len() > before.len()
        && chance_of_many(before, after, slow) <= BY_CHANCE;
    (drained && gap < needed && needed <= MOST_APART).then_some(needed)
}

/// Result of the bursts about a suspicion.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Finding {
    /// There is a shaper.
    Shaped(Shaper),
    /// There is one whose bucket holds no more than a pair, or a fair queue; later packets came at this rate.
    Unclear(Rate),
    /// There is none that shows.
    Refuted,
}

/// Warning text for [`Finding::Unclear`].
pub(super) fn unclear(later: Rate) -> String {
    format!(
        "streams slow down after their first packets, and later packets came at {later}: a fair queue shares the path among flows, or a token bucket holds no more than a packet pair"
    )
}

/// Sends bursts about a suspicion.
#[derive(Clone, Debug)]
pub(super) struct ShaperCheck {
    suspected: Slowdown,
    size: Bytes,
    coalescing: Span,
    attempts: u32,
    /// Borne out, but for a bucket that is clearly one.
    found: Option<Shaper>,
}

impl ShaperCheck {
    /// About a stream of packets of `size` bytes. Stamps may be late by `coalescing`.
    pub(super) fn new(suspected: Slowdown, size: Bytes, coalescing: Span) -> ShaperCheck {
        ShaperCheck { suspected, size, coalescing, attempts: 0, found: None }
    }

    pub(super) fn plan(&self) -> StreamPlan {
        if let Some(shaper) = &self.found {
            return fast(shaper.head + MIN_SLOW, 0, self.size, shaper.slot);
        }
        fast(self.suspected.at + MIN_RATES + MIN_SLOW, BURST, self.size, self.suspected.fast)
    }

    /// Time in which tokens come for all packets that passed, at most [`MOST_APART`]: a bucket that is not full shows at another place.
    pub(super) fn pause(&self) -> Span {
        Span::from_nanos((self.suspected.gap() * self.suspected.at as f64) as i64).min(MOST_APART)
    }

    /// Takes in a burst, with stamps as uncertain as `noise`; `None` asks for another one.
    pub(super) fn on_stream(&mut self, record: &StreamRecord, noise: Span) -> Option<Finding> {
        self.attempts += 1;
        let last = (self.attempts >= ATTEMPTS).then_some(Finding::Refuted);
        let unusable = [StreamVerdict::ClockStepped, StreamVerdict::NoReport, StreamVerdict::Reordered];
        let usable = !unusable.contains(&judge(record).verdict);
        let slowdown = || Slowdown::of(record, self.suspected.fast, noise * 2, None).filter(|_| usable);
        if let Some(mut shaper) = self.found.take() {
            slowdown().iter().for_each(|burst| shaper.met(burst, self.size));
            return self.clear(shaper);
        }
        let Some(burst) = slowdown() else {
            return if usable { Some(Finding::Refuted) } else { last };
        };
        if burst.gaps.len() > MIN_RATES && self.suspected.agrees(&burst) {
            let shaper = self.shaper(&burst, record.stream, noise);
            // Minutes between packets are no rate.
            return if shaper.sustained.rate < 1.0 { Some(Finding::Refuted) } else { self.clear(shaper) };
        }
        self.suspected = burst;
        last
    }

    /// True if a burst's slow gaps are shorter and more even than a fair queue's.
    fn even(&self, burst: &Slowdown) -> bool {
        let gap = burst.gap();
        let same = burst.gaps.iter().skip(1).filter(|one| (*one / gap - 1.0).abs() <= EVEN).count();
        gap < SHARE * burst.fast.as_nanos() as f64 && same as f64 >= MOST * (burst.gaps.len() as f64 - 1.0)
    }

    /// Verdict, if the bucket is clearly one or the attempts are over; `None` asks for another burst.
    fn clear(&mut self, shaper: Shaper) -> Option<Finding> {
        if shaper.bucket.0 as f64 > CLEAR * self.size.0 as f64 || shaper.even {
            return Some(Finding::Shaped(shaper));
        }
        if self.attempts >= ATTEMPTS + SHORT {
            return Some(Finding::Unclear(bits_per_second(shaper.sustained.rate)));
        }
        self.found = Some(shaper);
        None
    }

    fn shaper(&self, burst: &Slowdown, stream: u32, noise: Span) -> Shaper {
        let bits = self.size.bits() as f64 * 1e9;
        let rates: Vec<f64> = burst.gaps.iter().skip(1).map(|gap| bits / gap).collect();
        let config = WbestConfig { packet_size: self.size, ..WbestConfig::default() };
        let mut sustained = Capacity::of(&rates, &config, noise);
        if self.coalescing > Span::ZERO {
            // A median of gaps may be a period of interrupts; stamps add no more than one to the sum of all.
            let (packets, span) = burst.slow;
            let of = |by: i64| bits * packets as f64 / (span.saturating_add(by) as f64).max(1.0);
            let by = self.coalescing.as_nanos();
            let (low, high) = sustained.interval.unwrap_or((sustained.rate, sustained.rate));
            sustained.rate = of(0);
            sustained.interval = Some((low.min(of(by)), high.max(of(-by))));
        }
        let mut shaper = Shaper {
            sustained,
            head: 0,
            slot: self.suspected.fast,
            bucket: Bytes::ZERO,
            even: self.even(burst),
            streams: vec![stream],
        };
        shaper.met(&self.suspected, self.size);
        shaper.met(burst, self.size);
        shaper
    }
}

/// `n` packets as fast as they go, at least `least` of them: in a burst, but for more than queues hold; those go at the rate of
/// bursts.
fn fast(n: usize, least: usize, size: Bytes, slot: Span) -> StreamPlan {
    let n = n.max(least);
    if n <= BURST {
        return StreamPlan::burst(n, size);
    }
    let packet = |k: usize| ProbePacket { offset: slot * k as i64, size, ecn: Ecn::NotEct };
    StreamPlan { pattern: Pattern::Train, packets: (0..n).map(packet).collect() }
}

/// A shaper that bursts have shown.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shaper {
    /// The rate that lasts.
    pub(super) sustained: Capacity,
    /// Packets that leave no token.
    head: usize,
    slot: Span,
    /// About what the bucket holds.
    bucket: Bytes,
    /// Its gaps are too short and too even for a fair queue.
    even: bool,
    streams: Vec<u32>,
}

impl Shaper {
    /// A stream that met it: its bucket holds at least what passed beyond what tokens came for meanwhile (b + r t, as above).
    fn met(&mut self, stream: &Slowdown, size: Bytes) {
        let (packets, span) = (stream.passed.0 as f64, stream.passed.1 as f64);
        let bucket = size.0 as f64 * packets - self.sustained.rate * span / 8e9;
        self.bucket = self.bucket.max(Bytes(bucket.max(0.0) as u64));
        self.head = self.head.max(stream.at + BEYOND);
    }

    /// A train of `n` packets at the sustained rate, behind a head that leaves no token. It waits behind the head's last packets,
    /// so that the queue is busy from its first packet on, as WBest's fluid model wants.
    pub(super) fn train(&self, n: usize, size: Bytes) -> StreamPlan {
        let mut plan = fast(self.head, 0, size, self.slot);
        let (begin, rate) = (plan.duration(), bits_per_second(self.sustained.rate));
        let packet =
            |k: usize| ProbePacket { offset: begin + rate.time_for(size * k as u64), size, ecn: Ecn::NotEct };
        plan.packets.extend((1..=n).map(packet));
        plan.pattern = Pattern::Uneven;
        plan
    }

    /// The train of such a stream, from the head's last packet on.
    pub(super) fn tail(&self, record: &StreamRecord) -> StreamRecord {
        let from = (self.head - 1).min(record.packets.len()).min(record.planned.len());
        StreamRecord {
            pattern: Pattern::Train,
            planned: record.planned[from..].to_vec(),
            packets: record.packets[from..].to_vec(),
            ..record.clone()
        }
    }

    /// Packets of such a stream, `n` of them in the train.
    pub(super) fn packets(&self, n: usize) -> usize {
        self.head + n
    }

    /// Capacity for bursts of [`BURST`] packets of `size` bytes, those bytes, and the streams that show it. `None` unless the bucket
    /// holds less than a pair: pairs then show neither the line nor the sustained rate.
    pub(super) fn of_bursts(&self, size: Bytes) -> Option<(Capacity, Bytes, Vec<u32>)> {
        let bytes = size * BURST as u64;
        // The first packet is not timed, and the bytes that the bucket holds do not wait.
        let faster = (bytes - size).0 as f64 / (bytes - self.bucket).0 as f64;
        let mut capacity = self.sustained;
        capacity.interval = capacity.interval.map(|(low, high)| (low, high * faster));
        (self.bucket < size * 2).then(|| (capacity, bytes, self.streams.clone()))
    }

    /// Estimate of the sustained rate.
    pub(super) fn estimate(&self, mut warnings: Vec<Warning>) -> Estimate {
        // A lower bound is the capacity's.
        warnings.retain(|warning| warning.code != WarningCode::LowerBound);
        warnings.push(self.warning());
        Estimate {
            quantity: Quantity::SustainedRate,
            value: Value::Is(bits_per_second(self.sustained.rate)),
            interval: self.sustained.interval.map(|(low, high)| Interval {
                low: bits_per_second(libm::floor(low)),
                high: bits_per_second(libm::ceil(high)),
                confidence: CONFIDENCE,
                method: IntervalMethod::MedianOrderStatistics,
            }),
            next: None,
            truth_kind: TruthKind::Queue,
            burst: Some(self.bucket),
            packet_size: None,
            streams: self.streams.clone(),
            warnings,
        }
    }

    /// Why the capacity is a lower bound, where a burst that met it said so.
    pub(super) fn why(&self) -> String {
        "the bound is of bursts that in part met a token bucket without tokens".to_owned()
    }

    fn warning(&self) -> Warning {
        Warning {
            code: WarningCode::Shaper,
            text: format!(
                "a token bucket of about {}, or a fair queue, passes a burst at the capacity and later packets at the sustained rate",
                self.bucket
            ),
        }
    }
}

/// Estimate of a sustained rate that did not show, in `streams` that would have shown a bucket smaller than `unseen`.
pub(super) fn unknown(unseen: Option<Bytes>, streams: &[u32], warnings: Vec<Warning>) -> Estimate {
    Estimate {
        quantity: Quantity::SustainedRate,
        value: Value::Unknown,
        interval: None,
        next: None,
        truth_kind: TruthKind::Queue,
        burst: unseen,
        packet_size: None,
        streams: streams.to_vec(),
        warnings,
    }
}

/// A packet's time at a rate in bit/s.
pub(super) fn slot(rate: f64, size: Bytes) -> Span {
    Rate::time_for(bits_per_second(rate), size)
}

#[cfg(test)]
mod tests;
