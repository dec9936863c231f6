//! Packets that arrive in batches: capacity and available bandwidth, from the dispersion between the ends of batches.
//!
//! Wi-Fi that aggregates (A-MPDU) hands over many packets at once, so that pairs say nothing. Bursts of several batches do, and
//! trains: from the end of a batch to the end of the next the path carried the bytes of the latter and no others of this stream
//! ([`Between`]). All of this is our own; nothing of it is in the papers.
//!
//! **Only bytes and times are inputs**, never how many frames an aggregate had: estimating from the intensity of aggregation is
//! patented (US 10,383,002). A test holds that the same bytes at the same times in other packets give the same numbers.
//!
//! **Capacity.** A batch of b bytes takes T = o + tau b: the line, fitted to all batches without those that others' packets
//! lengthened, gives the overhead o of each. Every batch of at least a third of the largest, lengthened by tau to the largest, F,
//! says F / T. The largest such rate is the capacity: others only make T longer.
//!
//! **Its interval** reaches by the spread of access times to either side, and up by four times what the third rate falls short
//! of the first: if even the best batches differ, all may have met others. (Robson and Whitlock, 1964: the largest and k
//! times its distance from the next hold an upper end in k / (1 + k) of all cases.) `docs/quantities.md` says how often it held.
//! If no line can be fitted, the spread is the largest that access times have, and another burst is sent; without a line even
//! then there is no capacity.
//!
//! **Available bandwidth.** A train at the capacity comes in smaller batches than a burst, and pays o for each. So D_out of WBest's
//! fluid model (`wbest_fluid`) is lessened by o for each batch more than its bytes would have filled of F:
//! A = C - (C D_out - B) / D_in, the mean over trains. Each train after the first is sent half way between C and the mean so far:
//! its window is longer for the same bytes, and contending stations are met nearer to the rate at which they matter.

use crate::estimate::overflow::{OVERFLOWS, losses};
use crate::estimate::wbest_capacity::Capacity;
use crate::estimate::{IntervalMethod, Refusal, StreamPlan, bits_per_second};
use crate::observe::StreamVerdict;
use crate::observe::batch::{Batch, Between};
use crate::report::{Pattern, StreamRecord};
use crate::time::{Owd, Span};
use crate::units::Bytes;

/// Packets in a burst: several batches, and no more than a queue of 100 packets holds.
pub(super) const BURST: usize = 84;
/// Packets in a train at least: others' accesses to a medium come in milliseconds, and 30 packets pass in five.
pub(super) const TRAIN: usize = 62;
/// Trains at least.
pub(super) const TRAINS: usize = 2;
/// An interval of so many times what a host may hold back is the path's.
const HELD: i64 = 5;
/// A batch holds one of so many parts of a burst's bytes at least; smaller ones are no batches.
const LEAST_BATCH: u64 = 32;
/// Rates of batches count from this share of the largest batch's bytes on.
const FULL: u64 = 3;
/// The two best rates further apart than this ask for another burst: more than access times make of a full aggregate (1 %) or of one
/// a third as large, and less than a collision costs (a quarter and more).
const APART: f64 = 0.12;
/// Refusal text for batches that tell no rate.
const UNEVEN: &str = "packets arrive in batches, as over Wi-Fi that aggregates, and larger ones took no longer than smaller ones: other stations send between them; measure again when they send less";
/// The best batch says nothing where it came at so many times the rate of all: a receiver held its packets back until a lost frame had
/// come again, and beside others there was no moment without them.
const BEST: f64 = 2.0;
/// Refusal text for that.
const RETRIED: &str = "packets arrive in batches, as over Wi-Fi that aggregates, all in all at less than half of the best one's rate: frames are lost and sent again, or other stations send between them; measure nearer to the access point, or when others send less";
/// Bursts beyond those that were asked for.
const MORE: usize = 1;
/// The interval reaches up by so many times the distance of the first and the third rate.
const REACH: f64 = 4.0;
/// And by so many deviations of access times, which are spread evenly, to either side.
const SPREAD: f64 = 1.1;
/// A deviation by the median of absolute residuals.
const BY_MEDIAN: f64 = 1.4826;
/// A path's own times of access differ by no more, in nanoseconds (backoffs of 15 slots of 9 us: 39 us); larger
/// differences come from others.
const OWN_SPREAD: f64 = 65e3;
/// The least deviation from the line that is not chance.
const STRAIGHT: f64 = 20e3;

/// A train, as its batches show it: in bits and nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Train {
    bits: f64,
    batches: f64,
    sent: f64,
    received: f64,
    /// The share of its packets that came.
    came: f64,
}

/// The line T = overhead + per_byte b, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    overhead: f64,
    per_byte: f64,
    /// By how much batches differ from it, but for what others do.
    spread: f64,
}

/// Outcome of taking in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It counts.
    Yes,
    /// It tells nothing.
    No(StreamVerdict),
    /// A queue overflowed.
    Overflow,
}

/// The longest time between a burst's batches, where three times or more it was longer than a host holds packets back: then it
/// is the path that does.
pub(super) fn apart(record: &StreamRecord, coalescing: Span, noise: Span) -> Option<Span> {
    let between = Between::of(&Batch::of(record, noise));
    let long = (coalescing + noise * 2) * HELD;
    let late = || between.iter().map(|b| b.received).filter(|received| *received >= long);
    (late().count() >= 3).then(|| late().max())?
}

/// Bursts and trains over a path that delivers in batches.
#[derive(Clone, Debug)]
pub(super) struct Batched {
    size: Bytes,
    /// Bursts and trains that are wanted.
    bursts: usize,
    trains: usize,
    train_length: usize,
    noise: Span,
    taken: usize,
    gaps: Vec<Between>,
    /// Of bursts alone: bits, in so many nanoseconds.
    of_bursts: (f64, f64),
    max_batch: u64,
    sent: Vec<Train>,
    pub(super) burst_streams: Vec<u32>,
    pub(super) train_streams: Vec<u32>,
}

impl Batched {
    /// From a burst, where it came in batches that can be read; `coalescing` is how long a host may hold packets back.
    pub(super) fn of(record: &StreamRecord, size: Bytes, coalescing: Span, noise: Span) -> Option<Batched> {
        let batches = Batch::of(record, noise);
        let between = Between::of(&batches);
        let longest = between.iter().map(|b| b.received).max()?;
        let (sent, received) =
            between.iter().fold((Span::ZERO, Span::ZERO), |sum, b| (sum.0 + b.sent, sum.1 + b.received));
        // Else these are no batches.
        let (came, sent_in_all) = (
            batches.iter().map(|b| b.bytes.0).sum::<u64>(),
            record.packets.iter().map(|p| p.size.0).sum::<u64>(),
        );
        let together = came * LEAST_BATCH >= sent_in_all * batches.len() as u64;
        let the_paths = longest >= (coalescing + noise * 2) * HELD && sent <= received / 2;
        let mut new = Batched {
            size,
            bursts: 1,
            trains: 0,
            train_length: TRAIN,
            noise,
            taken: 0,
            gaps: Vec::new(),
            of_bursts: (0.0, 0.0),
            max_batch: 0,
            sent: Vec::new(),
            burst_streams: Vec::new(),
            train_streams: Vec::new(),
        };
        (together && the_paths && new.take(record, noise, None) == Taken::Yes).then_some(new)
    }

    /// Wants so many bursts in all, and trains of so many packets.
    pub(super) fn want(&mut self, bursts: usize, trains: usize, train_length: usize) {
        (self.bursts, self.trains, self.train_length) = (bursts, trains, train_length);
    }

    /// True if there is a line through the batches.
    fn has_line(&self) -> bool {
        self.line().per_byte > 0.0
    }

    /// Reason to give no numbers after all streams. With trains, whose batches are smaller, only a line tells the error of the
    /// capacity; bursts alone may all come in batches of one size.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        let nothing = self.capacity().rate < 1.0 || self.trains > 0 && !self.has_line();
        let why =
            if self.capacity().rate > BEST * self.mean() { Some(RETRIED) } else { nothing.then_some(UNEVEN) };
        why.map(|why| Refusal::Inconsistent(why.into()))
    }

    /// The rate of all batches of bursts, in bit/s. (Trains are slower by themselves.)
    fn mean(&self) -> f64 {
        self.of_bursts.0 * 1e9 / self.of_bursts.1.max(1.0)
    }

    /// Next stream to send; `None` if nothing is left to learn.
    pub(super) fn plan(&self) -> Option<StreamPlan> {
        let burst = StreamPlan::burst(BURST, self.size);
        if self.taken < self.bursts {
            return Some(burst);
        }
        let capacity = self.capacity().rate;
        // Without a rate there is none to send a train at, and another burst may show one.
        if self.sent.len() < self.trains && capacity >= 1.0 {
            let left = self.spares();
            let left = left.last().map_or(capacity, |_| left.iter().sum::<f64>() / left.len() as f64);
            let rate = bits_per_second((capacity + left) / 2.0);
            return Some(StreamPlan::train(self.train_length, self.size, rate));
        }
        let rates = self.rates(&self.line());
        let apart = !self.has_line() && self.trains > 0
            || rates.get(1).is_none_or(|second| *second < rates[0] * (1.0 - APART));
        (apart && self.taken < self.bursts + MORE).then_some(burst)
    }

    /// Takes in a stream that was judged, with stamps as uncertain as `noise`. `least` is the least delay of the session.
    pub(super) fn on_stream(
        &mut self,
        record: &StreamRecord,
        verdict: StreamVerdict,
        noise: Span,
        least: Option<Owd>,
    ) -> Taken {
        match verdict {
            StreamVerdict::Believed => self.take(record, noise, least),
            verdict => Taken::No(verdict),
        }
    }

    fn take(&mut self, record: &StreamRecord, noise: Span, least: Option<Owd>) -> Taken {
        let batches = Batch::of(record, noise);
        let between = Between::of(&batches);
        let largest = batches.iter().map(|b| b.bytes.0).max().unwrap_or(0);
        let sum = |of: fn(&Between) -> f64| between.iter().map(of).sum::<f64>();
        let (sent, received) = (sum(|b| b.sent.as_nanos() as f64), sum(|b| b.received.as_nanos() as f64));
        if between.is_empty() || received <= 0.0 {
            return Taken::No(StreamVerdict::ScheduleBroken);
        }
        if record.pattern == Pattern::Train {
            let slot = bits_per_second(self.capacity().rate).time_for(self.size);
            let by_chance = least.and_then(|least| losses(record, &[], least, slot));
            if by_chance.is_some_and(|chance| chance < OVERFLOWS) {
                return Taken::Overflow;
            }
            if sent <= 0.0 {
                return Taken::No(StreamVerdict::ScheduleBroken);
            }
            self.sent.push(Train {
                bits: sum(|b| b.bytes.bits() as f64),
                batches: between.len() as f64,
                sent,
                received,
                came: 1.0 - record.lost() as f64 / record.packets.len().max(1) as f64,
            });
            self.train_streams.push(record.stream);
        } else {
            self.taken += 1;
            self.of_bursts.0 += sum(|b| b.bytes.bits() as f64);
            self.of_bursts.1 += received;
            self.burst_streams.push(record.stream);
        }
        self.max_batch = self.max_batch.max(largest);
        self.gaps.extend(between);
        Taken::Yes
    }

    /// The line through the batches, by least squares without those that lie far above it.
    fn line(&self) -> Line {
        let all: Vec<(f64, f64)> =
            self.gaps.iter().map(|b| (b.bytes.0 as f64, b.received.as_nanos() as f64)).collect();
        let mut used = all.clone();
        // Without a line: as much as access times differ at most.
        let mut line = Line { spread: OWN_SPREAD, ..Line::default() };
        for _ in 0..6 {
            let n = used.len() as f64;
            let (x, y) = used.iter().fold((0.0, 0.0), |sum, p| (sum.0 + p.0 / n, sum.1 + p.1 / n));
            let (xx, xy) = used
                .iter()
                .fold((0.0, 0.0), |sum, p| (sum.0 + (p.0 - x) * (p.0 - x), sum.1 + (p.0 - x) * (p.1 - y)));
            // Without different sizes, or against all sense: no overhead.
            if xx <= 0.0 || xy <= 0.0 || y * xx < x * xy {
                break;
            }
            (line.per_byte, line.overhead) = (xy / xx, y - x * xy / xx);
            let above = |p: &(f64, f64)| p.1 - line.overhead - line.per_byte * p.0;
            let mut residuals: Vec<f64> = all.iter().map(|p| above(p).abs()).collect();
            residuals.sort_by(f64::total_cmp);
            let middle = residuals[residuals.len() / 2];
            line.spread = (BY_MEDIAN * middle).min(OWN_SPREAD);
            let far = 2.0 * middle.max(STRAIGHT);
            used = all.iter().filter(|p| above(p) <= far).copied().collect();
            if used.len() < 3 {
                break;
            }
        }
        line
    }

    /// Rates by batches of a third of the largest or more, in bit/s, the highest first.
    fn rates(&self, line: &Line) -> Vec<f64> {
        let whole = |b: &&Between| b.bytes.0 * FULL >= self.max_batch && b.received > Span::ZERO;
        let rate = |b: &Between| {
            let rest = (self.max_batch - b.bytes.0) as f64 * line.per_byte;
            match line.per_byte > 0.0 {
                true => self.max_batch as f64 * 8e9 / (b.received.as_nanos() as f64 + rest),
                false => b.bytes.bits() as f64 * 1e9 / b.received.as_nanos() as f64,
            }
        };
        let mut rates: Vec<f64> = self.gaps.iter().filter(whole).map(rate).collect();
        rates.sort_by(|a, b| b.total_cmp(a));
        rates
    }

    /// The capacity that batches show.
    pub(super) fn capacity(&self) -> Capacity {
        let line = self.line();
        let rates = self.rates(&line);
        let Some(&rate) = rates.first() else { return Capacity::default() };
        let time = self.max_batch as f64 * 8e9 / rate;
        let by = (SPREAD * line.spread).max(self.noise.as_nanos() as f64 * 2.0) / time;
        let interval = (rates.len() > 1).then(|| {
            let third = rates[2.min(rates.len() - 1)];
            (rate * (1.0 - by), (rate * (1.0 + by)).max(rate + REACH * (rate - third)))
        });
        Capacity { rate, interval, method: IntervalMethod::BatchSpread }
    }

    /// Available bandwidth by each train, in bit/s.
    pub(super) fn spares(&self) -> Vec<f64> {
        let (capacity, overhead) = (self.capacity().rate, self.line().overhead);
        let spare = |t: &Train| {
            let more = (t.batches - t.bits / 8.0 / self.max_batch.max(1) as f64).max(0.0);
            let received = t.received - overhead * more;
            let left = capacity - (capacity * received - t.bits * 1e9) / t.sent;
            left.clamp(0.0, capacity) * t.came
        };
        self.sent.iter().map(spare).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Ecn;
    use crate::report::{Direction, Fate, PacketReport};
    use crate::time::Time;

    /// Bytes, departure of the last packet, arrival of all, in microseconds.
    type Handed = (u64, u64, u64);

    /// Batches, each in so many packets.
    fn stream(pattern: Pattern, batches: &[Handed], packets: u64) -> StreamRecord {
        let mut all = Vec::new();
        for &(bytes, sent, arrived) in batches {
            all.extend((0..packets).map(|_| PacketReport {
                seq: 0,
                size: Bytes(bytes / packets),
                sent: Time::from_nanos(sent * 1_000),
                fate: Fate::Arrived(Time::from_nanos(arrived * 1_000)),
                ecn: Ecn::NotEct,
            }));
        }
        all.iter_mut().enumerate().for_each(|(k, p)| p.seq = k as u64);
        StreamRecord {
            stream: 7,
            direction: Direction::Forward,
            pattern,
            planned: all.iter().map(|p| p.sent - all[0].sent).collect(),
            packets: all,
            tx_resolution: Span::from_nanos(1),
            rx_resolution: Span::from_nanos(1),
            clock_stepped: false,
        }
    }

    /// A batch of b bytes takes 200 us and b / 8 us: 8 * 40,000 / 5,200 us = 61.54 Mbit/s where batches have 40,000 bytes.
    fn burst(packets: u64) -> StreamRecord {
        let batches = [(40_000, 1, 9_000), (40_000, 2, 14_200), (40_000, 3, 19_400)];
        stream(Pattern::Burst, &batches, packets)
    }

    /// Ten batches of 8,000 bytes, that is 1,200 us each, and after the fifth one that waited 1,000 us for others.
    fn train(packets: u64) -> StreamRecord {
        let arrived = |k: u64| 30_000 + 1_200 * k + if k > 5 { 1_000 } else { 0 };
        let batches: Vec<Handed> = (0..11).map(|k| (8_000, 20_000 + 1_040 * k, arrived(k))).collect();
        stream(Pattern::Train, &batches, packets)
    }

    fn read(bursts: u64, trains: u64) -> Batched {
        let exact = Span::from_nanos(1);
        let mut batched = Batched::of(&burst(bursts), Bytes(400), Span::ZERO, exact).unwrap();
        batched.want(1, 1, TRAIN);
        assert_eq!(batched.plan().unwrap().pattern, Pattern::Train);
        let taken = batched.on_stream(&train(trains), StreamVerdict::Believed, exact, None);
        assert_eq!((taken, batched.plan()), (Taken::Yes, None));
        batched
    }

    #[test]
    fn capacity_and_what_is_left_by_hand() {
        let batched = read(20, 20);
        let capacity = batched.capacity();
        assert!((capacity.rate / 61.538e6 - 1.0).abs() < 1e-4, "{capacity:?}");
        let (low, high) = capacity.interval.unwrap();
        assert!(low <= capacity.rate && capacity.rate <= high && high / low < 1.01, "{capacity:?}");
        // 10 batches of 8,000 bytes in 13,000 us, 8 of whose overheads of 200 us full batches would not have paid, while 10,400
        // us passed at sending: C - (C 11.4 ms - 640 kbit) / 10.4 ms.
        let expected = 61.538e6 - (61.538e6 * 11.4e-3 - 640e3) / 10.4e-3;
        assert!((batched.spares()[0] / expected - 1.0).abs() < 1e-3, "{:?} {expected}", batched.spares());
        assert_eq!((batched.burst_streams, batched.train_streams), (vec![7], vec![7]));
    }

    /// US 10,383,002 claims estimates from the intensity of aggregation. Ours do not know it.
    #[test]
    fn the_same_bytes_at_the_same_times_in_other_packets_give_the_same_numbers() {
        let numbers = |batched: Batched| {
            let Capacity { rate, interval, .. } = batched.capacity();
            (rate, interval, batched.spares())
        };
        let twenty = numbers(read(20, 20));
        for (bursts, trains) in [(5, 20), (100, 20), (20, 2), (20, 10), (40, 5)] {
            assert_eq!(numbers(read(bursts, trains)), twenty, "{bursts} {trains}");
        }
    }

    /// All batches are less than a third of the first, of which no time is known: no rate, and no train at none.
    #[test]
    fn without_a_rate_another_burst_is_sent_and_no_train() {
        let batches = [(200_000, 1, 9_000), (40_000, 2, 14_200), (40_000, 3, 19_400)];
        let (record, exact) = (stream(Pattern::Burst, &batches, 20), Span::from_nanos(1));
        let mut batched = Batched::of(&record, Bytes(400), Span::ZERO, exact).unwrap();
        batched.want(1, 2, TRAIN);
        assert_eq!(batched.capacity().rate, 0.0);
        assert_eq!(batched.plan(), Some(StreamPlan::burst(BURST, Bytes(400))));
        assert_eq!(batched.on_stream(&record, StreamVerdict::Believed, exact, None), Taken::Yes);
        assert_eq!(batched.plan(), None);
        assert!(matches!(batched.refusal(), Some(Refusal::Inconsistent(_))));
    }

    #[test]
    fn what_the_host_may_have_made_is_not_read() {
        let of = |record: &StreamRecord, coalescing| {
            Batched::of(record, Bytes(400), Span::from_micros(coalescing), Span::from_micros(2)).is_some()
        };
        assert!(of(&burst(20), 250));
        // 5.2 ms between batches, where the host may hold packets for 2 ms.
        assert!(!of(&burst(20), 2_000));
        // As slow as the sender, and not in batches at all.
        let slow = [(40_000, 1, 9_000), (40_000, 5_201, 14_200), (40_000, 10_401, 19_400)];
        assert!(!of(&stream(Pattern::Burst, &slow, 20), 250));
        let single: Vec<Handed> = (0..40).map(|k| (400, k, 9_000 + 5_000 * k)).collect();
        assert!(!of(&stream(Pattern::Burst, &single, 1), 250));
    }

    /// The second batch waited 800 us for others.
    #[test]
    fn batches_that_differ_widen_the_interval_and_ask_for_another_burst() {
        let batches = [(40_000, 1, 9_000), (40_000, 2, 15_000), (40_000, 3, 20_200)];
        let batched =
            Batched::of(&stream(Pattern::Burst, &batches, 20), Bytes(400), Span::ZERO, Span::ZERO).unwrap();
        let (_, high) = batched.capacity().interval.unwrap();
        assert!(high > 1.5 * batched.capacity().rate, "{:?}", batched.capacity());
        assert_eq!(batched.plan().map(|plan| plan.packets.len()), Some(BURST));
    }
}
