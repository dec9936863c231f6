//! Pairs among others' packets, as beside TCP in a cell of Wi-Fi: the capacity from the few pairs that met none.
//!
//! The median of the pairs' rates (WBest eq. 3) is that of a pair that met nothing as long as half of them do. A station that always
//! has something to send gets in between most pairs; their dispersions then lie in groups, by how many of its frames there were
//! between. The first group met none. This rule is our own, and neither WBest's nor CapProbe's:
//!
//! - The first group reaches from the second smallest dispersion (a single one may be noise) up to [`GROUP`] times that.
//! - The rule is for cells alone: if at most a third of the pairs lie above the group, the median stands. A busy
//!   link behind the narrow one makes groups too, which say nothing of the narrow one. Three things tell them from a cell's:
//!   - Backoffs are drawn, so that the group's dispersions differ. Packets that leave a link back to back, or that met nothing at it,
//!     have the same ones.
//!   - A frame comes between whole, so that hardly a pair is just above the group. At a link pairs meet parts of packets.
//!   - A frame comes between regardless of the first packet's wait. A link brings a pair together only if
//!     its first packet waited there. (If no pair met a part, a group of eight may all have waited by chance.)
//! - The capacity is that of the group's middle, half way between its ends: pairs that drew short backoffs are less often
//!   interrupted, so that the group's own median is too fast (by 11 % beside one TCP flow in 802.11g).

use crate::observe::pairs::Pair;

/// The largest dispersion of the first group, in shares of the smallest: in 802.11g 15 slots of 9 us more than 326 us for 1488 B at
/// 54 Mbit/s. Slower rates of that standard, and larger packets, have less.
const GROUP: f64 = 1.42;
/// Above the group at most this share of pairs is short of a whole frame, ...
const PARTS: f64 = 0.2;
/// ... and a whole frame makes a dispersion so many times the smallest at least. (Of 1000 B: 1.9 times; of 1500 B: 2.)
const FRAME: f64 = 1.8;
/// Dispersions this close, in shares of the smallest, are the same: half a slot, and what kernels' stamps differ by.
const SAME: f64 = 0.015;
/// Of 16 backoffs the commonest, with those a slot beside it, is not half of a group of ten or more; and the two commonest are not
/// four fifths.
const MODES: [f64; 2] = [0.5, 0.8];
/// Of the third of the pairs whose first packet waited least, so much of the share of all pairs is in the group at least.
const SOON: f64 = 0.25;
/// Fewer pairs in the group than this are no group.
const SOME: usize = 5;
/// Pairs of the group that are enough for its ends: two draws of ten are within a fifth of the range of either end.
pub(super) const ENOUGH: usize = 10;

/// Warning text for [`Met::Many`].
pub(super) const CONTENDED: &str = "more than a third of the packet pairs met others' packets, as beside TCP in a cell of Wi-Fi: the capacity comes from the other pairs, its error is unknown, and it has no interval";

/// Verdict on others' packets among pairs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Met {
    /// At most a third of the pairs met any: the median stands.
    Few,
    /// More did, at a link behind another one ([`tight_link`](super::tight_link)).
    AtLink,
    /// More did, and nothing tells a cell from a link.
    Scattered,
    /// More did; those that met none show this rate, in bit/s.
    Many(f64),
    /// More did, and too few met none.
    TooMany,
}

/// Looks through pairs both of whose packets arrived, in order.
pub(super) fn met(pairs: &[Pair]) -> Met {
    let gap = |p: &Pair| p.received.as_nanos() as f64;
    let mut gaps: Vec<f64> = pairs.iter().map(gap).collect();
    gaps.sort_by(f64::total_cmp);
    let Some(&least) = gaps.get(1) else { return Met::Few };
    let last = least * GROUP;
    let (group, above) = gaps.split_at(gaps.partition_point(|gap| *gap <= last));
    if above.len() * 3 <= gaps.len() {
        return Met::Few;
    }
    if group.len() < SOME {
        return Met::Scattered;
    }
    if same(group, least * SAME) {
        return Met::AtLink;
    }
    if short_of_a_frame(above, least) {
        return Met::Scattered;
    }
    let parts = parts(above, least);
    let mut soonest: Vec<&Pair> = pairs.iter().collect();
    soonest.sort_by_key(|p| p.first);
    soonest.truncate(pairs.len() / 3);
    let share = |group: usize, of: usize| group as f64 / of.max(1) as f64;
    let soon = soonest.iter().filter(|p| gap(p) <= last).count();
    if (parts > 0 || group.len() < ENOUGH - 2)
        && share(soon, soonest.len()) < SOON * share(group.len(), gaps.len())
    {
        return Met::Scattered;
    }
    if group.len() < ENOUGH {
        return Met::TooMany;
    }
    let middle = (least + group[group.len() - 1]) / 2.0;
    Met::Many(pairs[0].size.bits() as f64 * 1e9 / middle.max(1.0))
}

/// Of the sorted dispersions above the group those that are short of a whole frame.
fn parts(above: &[f64], least: f64) -> usize {
    above.partition_point(|gap| *gap < least * FRAME)
}

/// True if more dispersions above the group are short of a whole frame than in a cell.
pub(super) fn short_of_a_frame(above: &[f64], least: f64) -> bool {
    parts(above, least) as f64 > PARTS * above.len() as f64
}

/// True if the commonest values of a sorted group, those within `by` of one of them, are a larger share of it than backoffs make.
pub(super) fn same(group: &[f64], by: f64) -> bool {
    let mut rest = group.to_vec();
    MODES.iter().any(|most| {
        let near = |of: f64| rest.partition_point(|v| *v <= of + by) - rest.partition_point(|v| *v < of - by);
        let Some(mode) = rest.iter().copied().max_by_key(|v| near(*v)) else { return true };
        rest.retain(|v| (v - mode).abs() > by);
        (group.len() - rest.len()) as f64 > most * group.len() as f64
    })
}

#[cfg(test)]
mod tests {
    use rand_core::Rng;
    use rand_pcg::Pcg64Mcg;

    use super::*;
    use crate::observe::pairs::PairSet;
    use crate::observe::testing;

    fn pairs(of: &[(u64, u64)]) -> Vec<Pair> {
        PairSet::of(&testing::pairs(of)).usable
    }

    /// Two thirds of the pairs had a frame of 340 us between them, of those every other one two.
    #[test]
    fn the_first_group_is_told_from_those_that_met_frames() {
        let backoff = |k: u64| 326 + k % 15 * 9;
        let contended = |k: u64| (k % 7 * 60, backoff(k) + [0, 340, 680][k as usize % 3]);
        let all: Vec<(u64, u64)> = (0..45).map(contended).collect();
        let Met::Many(rate) = met(&pairs(&all)) else { panic!("{:?}", met(&pairs(&all))) };
        assert!((rate / (1488.0 * 8.0 / 389e-6) - 1.0).abs() < 0.05, "{rate}");
        // Fewer than ten that met none.
        assert_eq!(met(&pairs(&all[..21])), Met::TooMany);
        // Backoffs alone, or a frame between one of four.
        let alone: Vec<(u64, u64)> = (0..30).map(|k| (0, backoff(k))).collect();
        assert_eq!(met(&pairs(&alone)), Met::Few);
        let some: Vec<(u64, u64)> =
            (0..40).map(|k| (0, backoff(k) + if k % 4 == 0 { 340 } else { 0 })).collect();
        assert_eq!(met(&pairs(&some)), Met::Few);
        assert_eq!(met(&[]), Met::Few);
        // Spread evenly: many met parts of packets.
        let spread: Vec<(u64, u64)> = (0..40).map(|k| (0, 326 + k * 15)).collect();
        assert_eq!(met(&pairs(&spread)), Met::Scattered);
    }

    /// Pairs that leave a link of 10 Mbit/s, which nobody else uses, and pass one of `rate` with `load` on it, of `size` bytes a packet
    /// and Poisson, in Mbit/s.
    fn behind_a_busy_link(rate: f64, load: f64, size: f64, random: &mut Pcg64Mcg) -> Vec<Pair> {
        let mut exponential = |mean: f64| -mean * libm::log(1.0 - random.next_u64() as f64 / u64::MAX as f64);
        let [mean, own, theirs] = [size * 8.0 / load, 1488.0 * 8.0 / rate, size * 8.0 / rate];
        let (mut free, mut other, mut left) = (0.0f64, exponential(mean), Vec::new());
        for k in 0..60 {
            let reached = 20_000.0 + f64::from(k / 2) * 10_000.0 + f64::from(k % 2 + 1) * 1_190.4;
            while other < reached {
                free = free.max(other) + theirs;
                other += exponential(mean);
            }
            free = free.max(reached) + own;
            left.push(free);
        }
        let waited = |k: usize| left[2 * k] - k as f64 * 10_000.0 - 21_190.4 - own;
        let of: Vec<(u64, u64)> =
            (0..30).map(|k| (waited(k) as u64, (left[2 * k + 1] - left[2 * k]) as u64)).collect();
        pairs(&of)
    }

    /// A link behind the narrow one brings pairs together and apart, and their median stands.
    #[test]
    fn a_busy_link_behind_the_narrow_one_is_no_cell() {
        let mut random = Pcg64Mcg::new(7);
        for (rate, load, size) in [
            (100.0, 50.0, 1500.0),
            (100.0, 70.0, 1500.0),
            (100.0, 85.0, 1500.0),
            (30.0, 20.0, 1500.0),
            (20.0, 8.0, 1500.0),
            (20.0, 12.0, 1500.0),
            (20.0, 15.0, 1500.0),
            (20.0, 12.0, 500.0),
            (15.0, 11.0, 1500.0),
            (12.0, 8.0, 1500.0),
            (11.0, 6.0, 1500.0),
        ] {
            let told = |_: &u32| {
                let met = met(&behind_a_busy_link(rate, load, size, &mut random));
                matches!(met, Met::Many(_) | Met::TooMany)
            };
            let changed = (0..300).filter(told).count();
            assert!(changed < 3, "{changed} of 300 behind {rate} Mbit/s with {load} in {size} B");
        }
    }
}
