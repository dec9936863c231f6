//! A cell of Wi-Fi in which packets go one by one: the capacity from the mean time that a packet takes there.
//!
//! Before each frame a station draws a backoff, and a frame that is not acknowledged goes again behind another one (IEEE 802.11, DCF). So
//! the dispersions of packet pairs differ by backoffs and retries, and a flow that always has something to send gets a packet
//! through in their *mean* (Bianchi, "Performance analysis of the IEEE 802.11 distributed coordination function", JSAC 2000, section V).
//! Their median (WBest eq. 3) knows nothing of retries that fewer than half of the packets need, and the least (CapProbe's) is that
//! of the shortest backoff. This rule is our own, and neither's:
//!
//! - Dispersions up to the largest backoff above the shortest are those of frames that passed at once. Backoffs are drawn, so that these differ
//!   ([`contention`](super::contention)); at a link many would be equal. Those above are longer by whole frames: retries or others'.
//! - A first packet finds the air idle, or waits. Its own retry makes it wait for a whole frame, and another station for the
//!   rest of that station's: so waits of a part of a frame tell that the cell is shared. If no first packet waited so, all
//!   dispersions count, and a burst of [`BURST`] packets, each behind the one before, adds to them.
//! - In a shared cell as many of the pairs above the group are taken for others' as first packets met a part of a frame, and the
//!   rest for retries.

use crate::estimate::contention::{ENOUGH as CONTENDED, Met, same, short_of_a_frame};
use crate::estimate::tight_link;
use crate::estimate::wbest_capacity::{CONFIDENCE, Capacity};
use crate::estimate::{IntervalMethod, StreamPlan};
use crate::observe::order::Order;
use crate::observe::pairs::Pair;
use crate::observe::stats;
use crate::report::StreamRecord;
use crate::time::Span;
use crate::units::Bytes;

/// Fewer pairs in the group tell nothing of backoffs.
const ENOUGH: usize = 6;
/// Dispersions that differ by less, as a share of the shortest or in what stamps are uncertain by, are the same.
const SAME: f64 = 0.002;
const NOISE: i64 = 4;
/// Parts of a frame, as shares of the shortest dispersion: beyond what backoffs and clocks make up, and short of a retry.
const PART: core::ops::Range<f64> = 0.12..0.97;
/// So many first packets that all found the cell idle, or waited for retries, found it theirs alone.
const ALONE: usize = 15;
/// A slot, and the largest first backoff, in nanoseconds: 15 slots of 9 us (OFDM: 802.11a, g and n), and 31 of 20 us (802.11b), ...
const SLOTS: [(f64, f64); 2] = [(9e3, 135e3), (20e3, 620e3)];
/// ... with exchanges longer than this.
const DSSS: f64 = 600e3;
/// Interframe spaces, preambles and a response take so many nanoseconds at least, with a frame between.
const EXCHANGE: f64 = 150e3;
/// Drawn backoffs reach over so much of what they may at least.
const SPREAD: f64 = 0.6;
/// Stamps that are no more uncertain show slots; ...
const FINE: Span = Span::from_nanos(500);
/// ... differences of dispersions are whole slots within this, in nanoseconds, ...
const DRIFT: f64 = 300.0;
/// ... of so large a share of them at least, where chance makes it a tenth; and so many are odd ones, where slots and not others' packets
/// are counted.
const IN_SLOTS: f64 = 0.5;
const ODD: f64 = 0.2;
/// And not a few dispersions of a link that happen to.
const DIFFERENT: usize = 5;
/// Others' frames between the packets of pairs, and of bursts, for each first packet that met a part of one: in the simulator 1 to 1.25, and
/// 1.3 to 2, of stations with 2 and 8 Mbit/s.
const OTHERS: [f64; 2] = [1.2, 1.7];
/// Pairs closer than this share of what the least delays say are a link's.
const CLOSER: f64 = 0.85;
/// First packets that waited for a frame and more, for each that met a part of another station's: in the simulator 0.5 to 0.7.
const WHOLE: f64 = 0.7;
/// More than that by so many deviations, which chance makes in one of twenty.
const Z: f64 = 1.645;
/// A first packet waits for the pair before it up to so many exchanges behind that one's end: the delays' offset is unknown.
const AFTER: f64 = 1.5;
/// Packets of a burst in a cell with retries, and such bursts.
const BURST: usize = 40;
const BURSTS: u32 = 6;
/// No more are sent where the interval is no wider than this share of the mean.
const WIDE: f64 = 0.12;

/// Chance alone makes pairs look as if the path changed so rarely.
const CHANGED: f64 = 0.01;

/// Warning text for a path that goes on changing.
pub(super) const CHANGING: &str = "the path's rate changed several times while packet pairs passed: the capacity belongs to no single moment";

/// Times that packets take in a cell, by pairs and bursts, in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cell {
    /// Times of packets that needed no retry.
    once: Vec<f64>,
    /// Excess of each packet by whole frames, mostly zero.
    more: Vec<f64>,
    /// The share of that excess that was not others' frames: at least, about, and at most.
    own: [f64; 3],
    /// Nobody else was seen to send.
    alone: bool,
    /// Bursts would tell more.
    unclear: bool,
    /// The waits of first packets changed under way.
    changed: bool,
}

impl Cell {
    /// From pairs both of whose packets arrived, in order, and from the gaps of bursts; `None` where they look like a link's.
    pub(super) fn of(pairs: &[Pair], bursts: &Bursts, noise: Span) -> Option<Cell> {
        let mut gaps: Vec<f64> = pairs.iter().map(|p| p.received.as_nanos() as f64).collect();
        gaps.sort_by(f64::total_cmp);
        let least = *gaps.get(1)?;
        let reach = |most: f64| (least + most) * (1.0 + SAME);
        let within = |reach: f64| gaps.partition_point(|gap| *gap <= reach);
        let reach = if noise <= FINE {
            let in_slots = |(slot, most): &&(f64, f64)| in_slots(&gaps[..within(reach(*most))], *slot, noise);
            reach(SLOTS.iter().find(in_slots)?.1)
        } else {
            reach(SLOTS[usize::from(least >= DSSS)].1)
        };
        let (group, above) = gaps.split_at(within(reach));
        if noise > FINE {
            let by = (least * SAME).max((noise * NOISE).as_nanos() as f64);
            let drawn = |of: &[f64]| of.len() >= ENOUGH && !same(of, by);
            let spread = group.last()? - least;
            if least < EXCHANGE
                || spread < SPREAD * (reach - least)
                || !drawn(group)
                || short_of_a_frame(above, least)
            {
                return None;
            }
        }
        let waits = Waits::of(pairs, least);
        let alone = waits.alone();
        // A link brings a pair together where its first packet waited, and mostly for a part of a packet.
        if noise > FINE && !alone && tight_link::is_link(CLOSER, pairs, noise) {
            return None;
        }
        let (once, retried): (Vec<f64>, Vec<f64>) =
            gaps.iter().chain(&bursts.gaps).partition(|took| **took <= reach);
        let mean = stats::mean(&once)?;
        let mut more: Vec<f64> = retried.iter().map(|took| took - mean).collect();
        more.resize(once.len() + retried.len(), 0.0);
        let (own, unclear) = if alone {
            // A first packet waited for its own retries alone.
            more.extend(&waits.own);
            ([1.0; 3], !retried.is_empty())
        } else {
            waits.own_share(retried.len(), [gaps.len(), bursts.gaps.len()])
        };
        Some(Cell { once, more, own, alone, unclear, changed: waits.changed(least) })
    }

    /// True if the mean tells the capacity: not if others' frames are between the packets of most pairs.
    pub(super) fn tells(&self, met: Met) -> bool {
        self.alone || met == Met::Few
    }

    /// The capacity if others are between those of most: half way between the ends of the first group, since pairs that drew short
    /// backoffs are less often interrupted. `None` if too few met none.
    pub(super) fn contended(&self, size: Bytes) -> Option<Capacity> {
        let ends = self.once.iter().fold((f64::MAX, 0.0_f64), |(a, b), took| (a.min(*took), b.max(*took)));
        let rate = size.bits() as f64 * 2e9 / (ends.0 + ends.1);
        (self.once.len() >= CONTENDED).then(|| Capacity { rate, ..Capacity::default() })
    }

    /// True if another burst would tell more of retries.
    pub(super) fn asks(&self, bursts: &Bursts) -> bool {
        let [short, took, long] = self.took();
        self.unclear && bursts.sent < BURSTS && long - short > WIDE * took
    }

    /// True if first packets tell that the rate of the cell changed under way.
    pub(super) fn changed(&self) -> bool {
        self.changed
    }

    /// The mean time of a packet, between its bounds.
    fn took(&self) -> [f64; 3] {
        let interval = |of: &[f64]| {
            let mean = stats::mean(of).unwrap_or(0.0);
            let (low, high) = stats::bootstrap_interval(of, CONFIDENCE).unwrap_or((mean, mean));
            (mean, [mean - low, high - mean])
        };
        let ((once, by), (more, by_more)) = (interval(&self.once), interval(&self.more));
        let [least, about, most] = self.own.map(|own| once + own * more);
        // The mean over one second differs from the long-run mean, since it is of few packets.
        let second = Z * stats::deviation(&self.more).unwrap_or(0.0) * libm::sqrt(about / 1e9);
        let half = |k: usize| libm::hypot(libm::hypot(by[k], second), self.own[1] * by_more[k]);
        [least - half(0), about, most + half(1)]
    }

    /// Rate of a flow that always has packets of `size` to send.
    pub(super) fn capacity(&self, size: Bytes) -> Capacity {
        let [long, rate, short] = self.took().map(|took| size.bits() as f64 * 1e9 / took.max(1.0));
        Capacity { rate, interval: Some((short, long)), method: IntervalMethod::BootstrapGaps }
    }
}

/// Waits of first packets, in nanoseconds, without those that waited for the pair before them.
#[derive(Clone, Debug, Default)]
struct Waits {
    own: Vec<f64>,
    nothing: usize,
    /// A part of a frame: another station sent.
    part: usize,
}

impl Waits {
    fn of(pairs: &[Pair], frame: f64) -> Waits {
        let mut waits = Waits::default();
        let Some(least) = pairs.iter().map(|p| p.first).min() else { return waits };
        let behind = |k: usize| {
            let (last, this) = (&pairs[k - 1], &pairs[k]);
            ((this.at.saturating_sub(last.at)) as f64)
                <= (last.second - least).as_nanos() as f64 + AFTER * frame
        };
        for k in (1..pairs.len()).filter(|&k| !behind(k)) {
            let wait = (pairs[k].first - least).as_nanos() as f64;
            waits.own.push(wait);
            waits.nothing += usize::from(wait < PART.start * frame);
            waits.part += usize::from(PART.contains(&(wait / frame)));
        }
        waits
    }

    /// True if nobody else was seen to send, by enough first packets.
    fn alone(&self) -> bool {
        self.part == 0 && self.own.len() >= ALONE && self.nothing * 2 >= self.own.len()
    }

    /// The share of so many `longer` packets of these pairs and of bursts that retries made longer, and not others' frames: at least, about
    /// and at most; and true if bursts would tell more.
    fn own_share(&self, longer: usize, of: [usize; 2]) -> ([f64; 3], bool) {
        let (longer, part, own) = (longer as f64, self.part as f64, self.own.len().max(1) as f64);
        let whole = own - self.nothing as f64 - part;
        let theirs = WHOLE * (part + 1.0);
        let retried = whole > theirs + Z * libm::sqrt(theirs * (1.0 + WHOLE));
        let others = part / own * (OTHERS[0] * of[0] as f64 + OTHERS[1] * of[1] as f64);
        // The counts on both sides are uncertain by their square root.
        let by = libm::hypot(others / libm::sqrt(part.max(1.0)), libm::sqrt(others));
        let share = |others: f64| ((longer - others) / longer.max(1.0)).clamp(0.0, 1.0);
        match retried {
            true => ([others + by, others, others - by].map(share), true),
            false => ([0.0, 0.0, share(others - by)], false),
        }
    }

    /// True if the waits changed, in steps that are neither backoffs nor clocks.
    fn changed(&self, frame: f64) -> bool {
        let steps: Vec<f64> = self.own.iter().map(|wait| libm::floor(wait / (PART.start * frame))).collect();
        stats::change_by_chance(&steps) < CHANGED
    }
}

/// True if sorted dispersions differ by whole slots, as drawn backoffs do.
fn in_slots(group: &[f64], slot: f64, noise: Span) -> bool {
    let by = noise.as_nanos() as f64 + DRIFT;
    let (mut whole, mut odd, mut all) = (0, 0, 0);
    for (k, low) in group.iter().enumerate() {
        for high in &group[k + 1..] {
            let of = |slot: f64| libm::remainder(high - low, slot).abs() <= by;
            all += 1;
            whole += usize::from(of(slot));
            odd += usize::from(of(slot) && !of(2.0 * slot));
        }
    }
    let mut different: Vec<i64> =
        group.iter().map(|gap| libm::round((gap - group[0]) / slot) as i64).collect();
    different.dedup();
    different.len() >= DIFFERENT
        && whole as f64 >= IN_SLOTS * f64::from(all)
        && odd as f64 >= ODD * f64::from(all)
}

/// True if dispersions changed while pairs passed: a station's rate adaptation learns from its own frames, and begins low, so that pairs
/// from before say nothing of a flow that always has something to send.
pub(super) fn settling(pairs: &[Pair]) -> bool {
    let gaps: Vec<f64> = pairs.iter().map(|p| p.received.as_nanos() as f64).collect();
    stats::change_by_chance(&gaps) < CHANGED
}

/// Bursts in a cell with retries, each packet of which waits for the one before.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Bursts {
    sent: u32,
    gaps: Vec<f64>,
}

impl Bursts {
    pub(super) fn plan(size: Bytes) -> StreamPlan {
        StreamPlan::burst(BURST, size)
    }

    /// Takes in the gaps between packets both of which arrived, in order.
    pub(super) fn take(&mut self, record: &StreamRecord) {
        let order = Order::of(record);
        let gap = |k: usize| Some(record.receive_gap(k)?.as_nanos() as f64).filter(|_| order.usable(k));
        self.gaps.extend((1..record.packets.len()).filter_map(gap));
        self.sent += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::pairs::PairSet;
    use crate::observe::testing;

    const EXACT: Span = Span::from_nanos(1);

    /// 802.11g: 326 us and up to 15 slots of 9 us; every n-th second packet, and first one, goes again behind another backoff.
    fn cell(n: u64) -> Vec<(u64, u64)> {
        let again = |k: u64| if k.is_multiple_of(n) { 340 + k * 5 % 32 * 9 } else { 0 };
        (0..40).map(|k| (again(k + 1), 326 + k * 7 % 16 * 9 + again(k))).collect()
    }

    fn of(pairs: &[(u64, u64)], noise: Span) -> Option<Cell> {
        Cell::of(&PairSet::of(&testing::pairs(pairs)).usable, &Bursts::default(), noise)
    }

    fn mbits(cell: &Cell) -> f64 {
        cell.capacity(Bytes(1488)).rate / 1e6
    }

    #[test]
    fn the_capacity_is_of_the_mean_with_its_retries() {
        // 393.5 us in the mean; of stamps that show no slots alike.
        for noise in [EXACT, Span::from_micros(2)] {
            let idle = of(&cell(99), noise).unwrap();
            assert!((mbits(&idle) / 30.25 - 1.0).abs() < 0.03 && !idle.asks(&Bursts::default()), "{idle:?}");
            // A fifth of the packets takes 480 us more.
            let lossy = of(&cell(5), noise).unwrap();
            assert!((mbits(&lossy) / 24.3 - 1.0).abs() < 0.05 && lossy.asks(&Bursts::default()), "{lossy:?}");
            let (low, high) = lossy.capacity(Bytes(1488)).interval.unwrap();
            assert!(low < 24.3e6 && 24.3e6 < high && high < 30e6, "{low} {high}");
        }
    }

    #[test]
    fn frames_that_first_packets_met_a_part_of_are_others() {
        // Every fourth pair has one between its packets, and every fifth first packet met a part.
        let busy: Vec<(u64, u64)> = (0..40)
            .map(|k| {
                (
                    if k % 5 == 0 { 60 + k * 6 } else { 0 },
                    326 + k * 7 % 16 * 9 + if k % 4 == 1 { 350 } else { 0 },
                )
            })
            .collect();
        let cell = of(&busy, EXACT).unwrap();
        assert!(!cell.alone && (mbits(&cell) / 30.25 - 1.0).abs() < 0.04, "{cell:?}");
    }

    #[test]
    fn a_link_is_no_cell() {
        let equal: Vec<(u64, u64)> = (0..30).map(|k| (k * 97 % 1_200, 1_190)).collect();
        // Others' packets of 80 us between those of pairs: slots of 20 us, but never an odd number.
        let packets: Vec<(u64, u64)> = (0..30).map(|k| (k * 61 % 400, 1_075 + k * 7 % 11 * 80)).collect();
        for pairs in [equal, packets] {
            assert!(of(&pairs, EXACT).is_none() && of(&pairs, Span::from_micros(2)).is_none());
        }
        assert!(of(&[], EXACT).is_none());
    }

    #[test]
    fn what_settles_is_seen() {
        let set = |of: &[(u64, u64)]| settling(&PairSet::of(&testing::pairs(of)).usable);
        let slow_first: Vec<(u64, u64)> =
            (0..30).map(|k| (0, if k < 10 { 2_200 + k } else { 330 + k * 7 % 16 * 9 })).collect();
        assert!(set(&slow_first) && !set(&cell(5)));
    }
}
