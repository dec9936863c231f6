//! Packet pairs spread by a busy link behind the narrow one: the capacity from least delays, held against the median.
//!
//! Pairs leave the narrow link L / C apart. A busy link of T > C behind it brings a pair closer together where its first packet
//! waited there, down to L / T, and apart where others came in between. The median pair (WBest eq. 3) then shows anything from T to
//! half of C. [CapProbe's minimum filter](super::capprobe_minima) tells the pairs that waited nowhere. This rule is our own:
//!
//! - If [`MET_NONE`] pairs tie for the least sum of delays, and the least delays of first and of second packets add up to it, their
//!   dispersion is L / C.
//! - Else the median stands if it agrees with the two least delays. If it does not, nothing is known if many pairs are spread: more
//!   than a third lie apart ([`contention`](super::contention)), or a tenth came closer than [`CLOSER`] of the difference between
//!   the least delays of second and of first packets. The narrow link itself, busy or not, brings no pair closer than L / C.
//!
//! `docs/quantities.md` says how often that is so.

use crate::estimate::capprobe_minima::Minima;
use crate::observe::pairs::Pair;
use crate::observe::stats;
use crate::time::Span;

/// Pairs below this share of the dispersion by the least delays are closer: backoffs make up less than the rest.
const CLOSER: f64 = 0.85;
/// And by so many times the uncertainty of stamps.
const NOISE: i64 = 4;
/// Pairs closer than this share of what an empty path makes of them are a link's: a cell's shortest exchange is its shortest dispersion.
const LINK: f64 = 0.97;
/// The share of pairs that are so where a busy link is behind the narrow one.
const MANY: f64 = 0.1;
/// The filter's tolerance, as a share of the dispersion (CapProbe's default here).
const TOLERANCE: f64 = 0.02;
/// So many pairs that tie are no chance; and so many where few are spread.
const MET_NONE: usize = 3;
const MET_NONE_OF_FEW: usize = 6;
/// The median agrees with the least delays within this share.
const AGREE: f64 = 0.05;
/// And where pairs tell that they crossed one behind it within this.
const SAME: f64 = 0.001;
/// One link behind another makes the median dispersion less than twice the narrow link's, and chance somewhat more. A token bucket
/// spreads pairs further.
const MOST: f64 = 3.0;

/// Verdict of the least delays on the pairs' median.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Least {
    /// Pairs that met none show this dispersion, in nanoseconds, and the median does not.
    Is(f64),
    /// They show the median.
    Proves,
    /// They are too few, but the median agrees with the least delays, which show this dispersion.
    Agrees(f64),
    /// The median contradicts them, and too few pairs met none.
    Contradicts,
    /// The least delays show this dispersion, and few pairs are spread: either may be right.
    Doubts(f64),
    /// Nothing that this rule is for.
    Nothing,
}

/// True if many pairs came closer together than the narrow link brings them, with stamps as uncertain as `noise`.
pub(super) fn closer(pairs: &[Pair], noise: Span) -> bool {
    let Some(minima) = Minima::of(pairs, noise, TOLERANCE, false) else { return false };
    // Else nobody knows what a pair that met none has.
    if !met_none(&minima, MET_NONE, noise) {
        return false;
    }
    let most = (CLOSER * minima.least()).min(minima.least() - (noise * NOISE).as_nanos() as f64);
    let close = pairs.iter().filter(|p| (p.received.as_nanos() as f64) < most).count();
    close as f64 >= MANY * pairs.len() as f64
}

/// True if `enough` pairs met none: these have the least delays of first and of second packets, and one dispersion.
fn met_none(minima: &Minima, enough: usize, noise: Span) -> bool {
    let within = (TOLERANCE * minima.dispersion).max(noise.as_nanos() as f64);
    minima.alike >= enough && minima.excess() <= within
}

/// True if the least delays differ by a pair's dispersion on an empty path: several first packets have the least delay, several second
/// ones too, and pairs came closer together than that.
fn at_link(pairs: &[Pair], minima: &Minima, noise: Span) -> bool {
    let within = (TOLERANCE * minima.least() / 4.0).max(noise.as_nanos() as f64);
    minima.empty.iter().all(|n| *n >= MET_NONE)
        && minima.excess() <= within
        && brought_together(LINK, pairs, minima, noise)
}

fn brought_together(share: f64, pairs: &[Pair], minima: &Minima, noise: Span) -> bool {
    let most = (share * minima.least()).min(minima.least() - (noise * NOISE).as_nanos() as f64);
    pairs.iter().filter(|p| (p.received.as_nanos() as f64) < most).count() >= 2
}

/// True if pairs tell a link: they came closer together than `share` of the least delays' difference, or than [`LINK`] of it if an
/// empty path was met again.
pub(super) fn is_link(share: f64, pairs: &[Pair], noise: Span) -> bool {
    let tells =
        |minima: &Minima| at_link(pairs, minima, noise) || brought_together(share, pairs, minima, noise);
    Minima::of(pairs, noise, TOLERANCE, false).is_some_and(|minima| tells(&minima))
}

/// True if pairs came closer together than the least delays' difference, and several first packets have the least delay.
pub(super) fn together(pairs: &[Pair], noise: Span) -> bool {
    let empty = |minima: &Minima| minima.empty[0] >= MET_NONE && brought_together(LINK, pairs, minima, noise);
    Minima::of(pairs, noise, TOLERANCE, false).is_some_and(|minima| empty(&minima))
}

/// Holds the pairs' median dispersion against their least delays. Of few that are `spread` it is told by pairs that met none alone; and
/// nothing by dispersions of `late` and less, which receivers make up.
pub(super) fn least(pairs: &[Pair], spread: bool, noise: Span, late: Span) -> Least {
    let gaps: Vec<f64> = pairs.iter().map(|p| p.received.as_nanos() as f64).collect();
    let (Some(median), Some(minima)) = (stats::median(&gaps), Minima::of(pairs, noise, TOLERANCE, false))
    else {
        return Least::Nothing;
    };
    let enough = if spread { MET_NONE } else { MET_NONE_OF_FEW };
    let again = minima.empty.iter().all(|n| *n >= MET_NONE);
    let once = met_none(&minima, if again { MET_NONE } else { enough }, noise);
    let met_none = once || at_link(pairs, &minima, noise);
    let truth = if once { minima.dispersion } else { minima.least() };
    if truth <= late.as_nanos() as f64 || median > MOST * truth {
        Least::Nothing
    } else {
        let agree = if met_none && brought_together(LINK, pairs, &minima, noise) { SAME } else { AGREE };
        match ((median / truth - 1.0).abs() <= agree, met_none) {
            (true, true) => Least::Proves,
            (false, true) => Least::Is(truth),
            (true, false) => Least::Agrees(truth),
            (false, false) if spread => Least::Contradicts,
            (false, false) => Least::Doubts(truth),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::pairs::PairSet;
    use crate::observe::testing;

    const EXACT: Span = Span::from_nanos(1);

    /// Pairs whose first packet waited so long, and whose second came so long behind it, in microseconds.
    fn pairs(of: &[(u64, u64)]) -> Vec<Pair> {
        PairSet::of(&testing::pairs(of)).usable
    }

    /// 10 Mbit/s (1190 us) before 20 (595 us), where others' packets of 600 us are: one in seven pairs met none, one waited and was
    /// brought together, the others met two.
    #[test]
    fn pairs_that_met_none_have_the_least_delays() {
        let of = |k: u64| match k % 7 {
            0 => (0, 1_190),
            1 => (600 + k * 7, 595),
            _ => (k * 17 % 600, 1_795),
        };
        let all: Vec<(u64, u64)> = (0..28).map(of).collect();
        assert!(closer(&pairs(&all), EXACT));
        assert_eq!(least(&pairs(&all), true, EXACT, Span::ZERO), Least::Is(1_190e3));
        // Two of these pairs may be chance.
        let few: Vec<(u64, u64)> = all[..14].iter().chain(&all[15..21]).copied().collect();
        assert_eq!(least(&pairs(&few), true, EXACT, Span::ZERO), Least::Contradicts);
    }

    /// Of 30 pairs two met none, 1190 us apart, and all others one packet of 300 us between.
    #[test]
    fn where_too_few_met_none_both_readings_stand() {
        let of = |k: u64| if k.is_multiple_of(15) { (0, 1_190) } else { (k * 37 % 900, 1_490) };
        let all: Vec<(u64, u64)> = (0..30).map(of).collect();
        assert_eq!(least(&pairs(&all), false, EXACT, Span::ZERO), Least::Doubts(1_190e3));
    }

    #[test]
    fn where_all_agree_and_where_a_bucket_spreads_pairs_nothing_is_said() {
        // A busy narrow link: all wait, and all come 1190 us apart.
        let narrow: Vec<(u64, u64)> = (0..30).map(|k| (k * 97 % 1_200, 1_190)).collect();
        assert!(!closer(&pairs(&narrow), EXACT));
        assert!(matches!(least(&pairs(&narrow), true, EXACT, Span::ZERO), Least::Agrees(_) | Least::Proves));
        // 802.11g: 326 us and up to 15 slots of 9 us, before each packet.
        let cell: Vec<(u64, u64)> = (0..30).map(|k| (k * 11 % 16 * 9, 326 + k * 7 % 16 * 9)).collect();
        assert!(!closer(&pairs(&cell), EXACT));
        // A token bucket that holds a pair in one of five cases.
        let bucket: Vec<(u64, u64)> = (0..30).map(|k| if k % 5 == 0 { (0, 12) } else { (0, 595) }).collect();
        assert_eq!(least(&pairs(&bucket), true, EXACT, Span::ZERO), Least::Nothing);
        assert_eq!(least(&[], true, EXACT, Span::ZERO), Least::Nothing);
        assert!(!closer(&[], EXACT));
    }
}
