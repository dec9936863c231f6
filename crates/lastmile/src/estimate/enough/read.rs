//! Trains as shares of what is left, block by block.

use crate::estimate::shaper::Slowdown;
use crate::estimate::{ProbePacket, StreamPlan, policer};
use crate::node::Ecn;
use crate::report::{Fate, Pattern, StreamRecord};
use crate::time::Span;
use crate::units::{Bytes, Rate};

/// Packets of a block; in a cell, where others' packets are no part of the queue, half as many.
const BLOCK: usize = 4;
/// A bucket holds clearly more than a pair: a fair queue lets two packets pass at once.
const CLEAR: f64 = 2.5;
/// Packets of a head beyond those that the bucket lets pass.
const BEYOND: usize = 3;

/// Observations of a block: shares with these bounds of their means, where A is the available bandwidth and R' the block's rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Block {
    /// The mean is A / R' at most.
    pub(super) most: f64,
    /// The mean is A / R' at least.
    pub(super) least: f64,
    /// R', in bit/s.
    pub(super) rate: f64,
}

/// Observations of a train's blocks.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Blocks {
    pub(super) blocks: Vec<Block>,
    /// The rate at which the last third came, in bit/s.
    pub(super) end: Option<f64>,
}

impl Blocks {
    /// A train of pairs at a link that takes `slot` for a packet. The first packets of pairs count.
    pub(super) fn of_pairs(record: &StreamRecord, slot: Span, in_cell: bool) -> Blocks {
        // A fair queue makes delay grow by more than a FIFO does, (C / A) (1 - A / R') packets' times; it gives the rate A. A FIFO gives
        // C / (C + R' - A) of the rate offered, which is more.
        let of = |block: Block, passed: f64| Block { least: block.least.max(passed), ..block };
        let blocks = blocks(record, (0, 2), if in_cell { BLOCK / 2 } else { BLOCK }, slot)
            .into_iter()
            .map(|(block, passed)| of(block, passed))
            .collect();
        Blocks { blocks, end: end(record, 0) }
    }

    /// The train behind the head that empties a bucket.
    pub(super) fn behind(record: &StreamRecord, bucket: &Bucket, rate: f64) -> Blocks {
        let slot = Span::from_nanos((record_bits(record) * 1e9 / bucket.rate.unwrap_or(rate)) as i64);
        let from = bucket.head.saturating_sub(1);
        let blocks = blocks(record, (from, 1), BLOCK, slot).into_iter().map(|(block, _)| block).collect();
        Blocks { blocks, end: end(record, from) }
    }
}

/// The share of its rate at which a whole train passed, and that rate in bit/s: all there is to tell where packets come in frames of many.
pub(super) fn whole(record: &StreamRecord) -> Option<(f64, f64)> {
    let came = arrived(record, 0, 1);
    let (first, last) = (*came.first()?, *came.last()?);
    let (sent, _, passed) = between(record, first, last);
    let rest = (record.packets.len() - 1 - (last - first)) as f64 / (record.packets.len() - 1).max(1) as f64;
    (last > first && sent > 0.0)
        .then(|| (passed * (1.0 - rest), record_bits(record) * (last - first) as f64 / sent))
}

/// From one packet that came to another: the seconds in which they were sent, by how many nanoseconds delay grew, and the share of the rate
/// that passed.
fn between(record: &StreamRecord, first: usize, last: usize) -> (f64, f64, f64) {
    let (a, b) = (&record.packets[first], &record.packets[last]);
    let sent = (b.sent - a.sent).as_secs_f64();
    let growth = a.owd().zip(b.owd()).map_or(0.0, |(waited, waits)| (waits - waited).as_nanos() as f64);
    let took = sent + growth / 1e9;
    let passed = if growth > 0.0 { sent / took } else { 1.0 };
    (sent, growth, passed * (1.0 - lost(record, first, last)))
}

fn record_bits(record: &StreamRecord) -> f64 {
    record.packets.first().map_or(0.0, |p| p.size.bits() as f64)
}

/// Every `step`-th packet from `from` on, if it came.
fn arrived(record: &StreamRecord, from: usize, step: usize) -> Vec<usize> {
    (from..record.packets.len())
        .step_by(step)
        .filter(|&i| record.packets[i].fate.arrived().is_some())
        .collect()
}

/// The share of the packets behind `first`, up to `last`, that was lost.
fn lost(record: &StreamRecord, first: usize, last: usize) -> f64 {
    let lost = record.packets[first + 1..=last].iter().filter(|p| p.fate == Fate::Lost).count();
    lost as f64 / (last - first) as f64
}

/// For each block 1 less the growth of delay, in packets' times, and the losses; and the share of its rate that passed.
fn blocks(
    record: &StreamRecord,
    (from, step): (usize, usize),
    length: usize,
    slot: Span,
) -> Vec<(Block, f64)> {
    let (bits, slot) = (record_bits(record), slot.as_nanos().max(1) as f64);
    let mut blocks = Vec::new();
    let mut first = None;
    let mut push = |share: f64, passed: f64, packets: usize, sent: f64| {
        if sent > 0.0 {
            blocks.push((Block { most: share, least: share, rate: bits * packets as f64 / sent }, passed));
        }
    };
    for i in arrived(record, from, step) {
        let Some(start) = first else {
            first = Some(i);
            continue;
        };
        if i < start + length {
            continue;
        }
        let (sent, growth, passed) = between(record, start, i);
        push(1.0 - growth / ((i - start) as f64 * slot) - lost(record, start, i), passed, i - start, sent);
        first = Some(i);
    }
    // A train that loses its end leaves no packet to end a block with.
    let last = record.packets.len().saturating_sub(1);
    if let Some(start) = first.filter(|&start| start + length <= last && lost(record, start, last) > 0.5) {
        let (passed, sent) =
            (1.0 - lost(record, start, last), record.packets[last].sent - record.packets[start].sent);
        push(passed, passed, last - start, sent.as_secs_f64());
    }
    blocks
}

/// True if most packets of a train of pairs left when they should have, by the first packets of pairs.
pub(super) fn kept(record: &StreamRecord) -> bool {
    let gap = |i: usize| {
        let sent = record.packets.get(i)?.sent - record.packets.get(i.checked_sub(2)?)?.sent;
        let planned = *record.planned.get(i)? - *record.planned.get(i - 2)?;
        Some((sent - planned).abs() <= planned.scaled(0.1).max(record.tx_resolution))
    };
    let n = record.packets.len();
    let held = (2..n).step_by(2).filter(|&i| gap(i) == Some(true)).count();
    n > 2 && held * 4 >= n - 2
}

/// The rate at which a train came that fills an empty queue first, in bit/s: from its third packet on.
pub(super) fn came(record: &StreamRecord) -> Option<f64> {
    let came: Vec<_> = record.packets.iter().skip(2).filter_map(|p| p.fate.arrived()).collect();
    let took = *came.iter().max()? - *came.iter().min()?;
    Some(record_bits(record) * 1e9 * (came.len() - 1) as f64 / took.as_nanos().max(1) as f64)
}

/// The rate at which the last third came, in bit/s.
pub(super) fn end(record: &StreamRecord, from: usize) -> Option<f64> {
    let n = record.packets.len();
    let third = n - n.saturating_sub(from) / 3;
    let came: Vec<_> = record.packets.get(third..)?.iter().filter_map(|p| p.fate.arrived()).collect();
    let before = record.packets.get(..third)?.iter().rev().find_map(|p| p.fate.arrived())?;
    let last = came.iter().max().copied().unwrap_or(before);
    let sent = record.packets.last()?.sent - record.packets.get(third.checked_sub(1)?)?.sent;
    let took = (last - before).max(sent).as_secs_f64();
    (took > 0.0).then(|| record_bits(record) * came.len() as f64 / took)
}

/// A token bucket, as a burst shows it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bucket {
    /// Bytes that it holds.
    bytes: Bytes,
    /// Packets that leave no token.
    head: usize,
    /// The rate of what follows, in bit/s; none if that is dropped.
    rate: Option<f64>,
    /// Gaps of what follows.
    gaps: Vec<Span>,
}

impl Bucket {
    /// Reads a burst: from some packet on to the end all come slower than `slot`, or are lost.
    pub(super) fn of(record: &StreamRecord, slot: Span, noise: Span, rate: f64) -> Option<Bucket> {
        let size = record.packets.first()?.size.0 as f64;
        if policer::suspects(record) {
            let at = policer::unbroken(record).packets.len();
            let bytes = Bytes((at as f64 * size) as u64);
            return (at as f64 > CLEAR).then_some(Bucket {
                bytes,
                head: at + BEYOND,
                rate: None,
                gaps: vec![],
            });
        }
        let slow = Slowdown::of(record, slot, noise * 2, None)?;
        let (at, gap) = (slow.at(), slow.gap());
        let lasts = size * 8e9 / gap;
        // k = b / (1 - r / C), see `shaper`.
        let bytes = size * at as f64 * (1.0 - slot.as_nanos() as f64 / gap);
        (bytes > CLEAR * size && lasts > 0.0 && rate > 0.0).then(|| Bucket {
            bytes: Bytes(bytes as u64),
            head: at + BEYOND,
            rate: Some(lasts),
            gaps: slow.gaps().iter().map(|gap| Span::from_nanos(*gap as i64)).collect(),
        })
    }

    /// Bytes that pass at once.
    pub(super) fn bytes(&self) -> Bytes {
        self.bytes
    }

    /// Gaps of the packets that follow, from the second on: the first waits for a part of its tokens only.
    pub(super) fn gaps(&self) -> impl Iterator<Item = Span> + '_ {
        self.gaps.iter().skip(1).copied()
    }

    /// `n` packets at `rate` behind a head that empties the bucket.
    pub(super) fn train(&self, n: usize, size: Bytes, rate: Rate) -> StreamPlan {
        let mut plan = StreamPlan::burst(self.head, size);
        let packet =
            |k: usize| ProbePacket { offset: rate.time_for(size * k as u64), size, ecn: Ecn::NotEct };
        plan.packets.extend((1..=n).map(packet));
        plan.pattern = Pattern::Uneven;
        plan
    }

    /// The warning's text.
    pub(super) fn text(&self) -> String {
        let then = match self.rate {
            Some(rate) => format!("come at {}", crate::estimate::bits_per_second(rate)),
            None => "are lost beyond its rate".to_owned(),
        };
        format!(
            "a token bucket of about {} lets the beginning of a stream pass, and later packets {then}",
            self.bytes
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::testing::record;

    /// Pairs every 2,000 us (11.9 Mbit/s) at 10 Mbit/s, where a packet takes 1,190 us: those of A = 6 Mbit/s add 2,380 us and others' 4/10 of the time.
    #[test]
    fn blocks_of_a_fifo_and_of_a_fair_queue_bound_what_is_left() {
        let blocks = |apart: u64| {
            let sent: Vec<u64> = (0..16).map(|k| k / 2 * 2_000).collect();
            let came: Vec<Option<u64>> = (0..16).map(|k| Some(900 + k / 2 * apart + k % 2 * 1_190)).collect();
            Blocks::of_pairs(&record(Pattern::Pairs, &sent, &sent, &came), Span::from_micros(1_190), false)
        };
        // A FIFO: 2 x 1,190 + 0.4 x 2,000 = 3,180 us from pair to pair. Growth of 1,180 us for two packets: 1 - 1,180 / 2,380 = 0.504, and A / R' = 6 / 11.9.
        let fifo = blocks(3_180);
        assert_eq!(fifo.blocks.len(), 3);
        let Block { most, least, rate } = fifo.blocks[0];
        assert!((most - 0.504).abs() < 0.001 && (rate - 11.904e6).abs() < 1e3, "{most} {rate}");
        // It passes at 2,000 / 3,180 of its rate.
        assert!((least - 0.629).abs() < 0.001, "{least}");
        // A fair queue: two packets in 3,968 us at 6 Mbit/s.
        let Block { most, least, .. } = blocks(3_968).blocks[0];
        assert!(
            (most - (1.0 - 1_968.0 / 2_380.0)).abs() < 0.001 && (least - 0.504).abs() < 0.001,
            "{most} {least}"
        );
        // Nothing in the way.
        assert_eq!(blocks(2_000).blocks[2], Block { most: 1.0, least: 1.0, rate });
    }

    /// 42 packets in 5,125 us that come in 10,250: half. Ten more that are lost at the end: four fifths of that.
    #[test]
    fn a_whole_train_passes_at_a_share_of_its_rate() {
        let train = |n: u64| {
            let sent: Vec<u64> = (0..n).map(|k| k * 125).collect();
            let came: Vec<Option<u64>> = (0..n).map(|k| (k < 42).then_some(900 + k * 250)).collect();
            whole(&record(Pattern::Uneven, &sent, &sent, &came)).unwrap()
        };
        let (share, rate) = train(42);
        assert!((share - 0.5).abs() < 1e-9 && (rate / 95.232e6 - 1.0).abs() < 1e-6, "{share} {rate}");
        assert!((train(52).0 - 0.5 * 41.0 / 51.0).abs() < 1e-9);
    }

    /// 20 packets at 100 Mbit/s, 119 us each, of which 7 pass and then one every 1,190 us: 7 x 1488 x 0.9 = 9.4 kB.
    #[test]
    fn a_burst_shows_a_bucket() {
        let came: Vec<Option<u64>> =
            (0..20).map(|k| Some(900 + if k < 7 { k * 119 } else { 714 + (k - 6) * 1_190 })).collect();
        let burst = record(Pattern::Burst, &[0; 20], &[0; 20], &came);
        let bucket = |burst| Bucket::of(burst, Span::from_micros(119), Span::from_nanos(1), 1e7);
        let found = bucket(&burst).unwrap();
        assert_eq!((found.bytes(), found.head), (Bytes(9_374), 10));
        assert_eq!(found.gaps().collect::<Vec<_>>(), [Span::from_micros(1_190); 12]);
        let plan = found.train(4, Bytes(1488), Rate::ip(11_904_000));
        assert_eq!((plan.packets.len(), plan.duration()), (14, Span::from_millis(4)));
        // A policer drops what a shaper delays.
        let came: Vec<Option<u64>> = (0..20).map(|k| (k < 7).then_some(900 + k * 119)).collect();
        let burst = record(Pattern::Burst, &[0; 20], &[0; 20], &came);
        let found = bucket(&burst).unwrap();
        assert_eq!((found.bytes(), found.rate), (Bytes(7 * 1488), None));
        // A link alone.
        let came: Vec<Option<u64>> = (0..20).map(|k| Some(900 + k * 119)).collect();
        assert_eq!(bucket(&record(Pattern::Burst, &[0; 20], &[0; 20], &came)), None);
    }

    #[test]
    fn trains_that_lose_all_or_their_ends_are_read() {
        let sent: Vec<u64> = (0..16).map(|k| k / 2 * 2_000).collect();
        let lost = |from: u64| {
            let came: Vec<Option<u64>> = (0..16).map(|k| (k < from).then_some(900 + k / 2 * 2_000)).collect();
            Blocks::of_pairs(&record(Pattern::Pairs, &sent, &sent, &came), Span::from_micros(1_190), false)
        };
        let shares: Vec<f64> = lost(6).blocks.iter().map(|block| block.most).collect();
        // Of the eleven behind the last first packet that came, one came.
        assert_eq!(shares, [1.0, 1.0 - 10.0 / 11.0]);
        assert_eq!(lost(6).end, Some(0.0));
        assert_eq!(lost(0), Blocks::default());
    }
}
