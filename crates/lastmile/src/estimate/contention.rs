//! Where most packet pairs meet others' packets, as beside TCP in a cell of Wi-Fi: the capacity from those that met none.
//!
//! The median of the pairs' rates (WBest eq. 3) is that of a pair that met nothing as long as half of them do. A station that always
//! has something to send gets in between most pairs; their dispersions then lie in groups, by how many of its frames there were
//! between. The first group met none. This rule is our own, and neither WBest's nor CapProbe's:
//!
//! - The first group reaches from the second smallest dispersion (a single one may be noise) up to [`GROUP`] times that: backoffs of
//!   802.11 make no more of a packet of usual size, another's frame makes more.
//! - It counts where more than a third of the pairs lie above it. Elsewhere the median stands.
//! - The capacity is that of the group's middle, half way between its ends: pairs that drew short backoffs are less often
//!   interrupted, so that the group's own median is too fast (by 11 % beside one TCP flow in 802.11g).
//! - A later link that pushes packets together makes short dispersions too, but of pairs whose first packet waited for as much as
//!   they are shorter. So two pairs of the group at least must not have waited; where they all did, the median stands if half of
//!   all pairs agree with it.

use crate::observe::pairs::Pair;
use crate::observe::stats;

/// The largest dispersion of the first group, in shares of the smallest.
const GROUP: f64 = 1.4;
/// Pairs in the first group that are enough.
const ENOUGH: usize = 10;
/// Pairs of the first group that did not wait, at least.
const UNDELAYED: usize = 2;
/// What was pushed together waited for as much as its dispersion is short of the median, and by less than this share of it did not.
const WAITED: f64 = 0.8;
/// How far pairs may differ from the median to agree with it.
const SAME: f64 = 0.1;

/// What pairs say of others' packets among them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Met {
    /// At most a third of the pairs met any, or those with short dispersions were pushed together: the median stands.
    Few,
    /// More did; those that met none show this rate, in bit/s.
    Many(f64),
    /// More did, and too few or doubtful ones met none.
    TooMany,
}

/// Looks through pairs both of whose packets arrived, in order.
pub(super) fn met(pairs: &[Pair]) -> Met {
    let mut gaps: Vec<f64> = pairs.iter().map(|p| p.received.as_nanos() as f64).collect();
    gaps.sort_by(f64::total_cmp);
    let (Some(&least), Some(median)) = (gaps.get(1), stats::median(&gaps)) else { return Met::Few };
    let last = least * GROUP;
    let group = gaps.iter().filter(|gap| **gap <= last).count();
    let agree = gaps.iter().filter(|gap| (*gap / median - 1.0).abs() <= SAME).count();
    if group * 3 >= gaps.len() * 2 {
        return Met::Few;
    }
    let soonest = pairs.iter().map(|p| p.first).min();
    let undelayed = |p: &&Pair| {
        let gap = p.received.as_nanos() as f64;
        let waited = soonest.map_or(0.0, |soonest| (p.first - soonest).as_nanos() as f64);
        gap <= last && waited < (median - gap) * WAITED
    };
    if pairs.iter().filter(undelayed).count() < UNDELAYED {
        return if agree * 2 >= gaps.len() { Met::Few } else { Met::TooMany };
    }
    if group < ENOUGH {
        return Met::TooMany;
    }
    let middle = (least + gaps[group - 1]) / 2.0;
    Met::Many(pairs[0].size.bits() as f64 * 1e9 / middle.max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::pairs::PairSet;
    use crate::observe::testing::record;
    use crate::report::Pattern;

    /// Pairs whose first packet waited so long, and whose second came so long behind it, in microseconds.
    fn pairs(of: &[(u64, u64)]) -> Vec<Pair> {
        let sent: Vec<u64> = (0..2 * of.len() as u64).map(|k| k / 2 * 10_000).collect();
        let came: Vec<Option<u64>> = (0..2 * of.len())
            .map(|k| {
                let (waited, gap) = of[k / 2];
                Some(sent[k] + 900 + waited + if k % 2 == 1 { gap } else { 0 })
            })
            .collect();
        PairSet::of(&record(Pattern::Pairs, &sent, &sent, &came)).usable
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
    }

    /// Behind a link of 1190 us for a packet, a third of the pairs waited at a faster one and left it back to back.
    #[test]
    fn pairs_that_were_pushed_together_are_not_the_capacity() {
        let all: Vec<(u64, u64)> =
            (0..30).map(|k| if k % 5 < 2 { (1_100 + k, 119) } else { (k, 1_190) }).collect();
        assert_eq!(met(&pairs(&all)), Met::Few);
    }
}
