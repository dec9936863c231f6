//! The share of time in which nobody else's packets were on the path, by the packet pairs that met none.
//!
//! A first packet of a pair that has the least delay waited nowhere. Pairs at random times see time averages, so that the share of such
//! pairs is that of the time in which the path was empty (R. Wolff, "Poisson arrivals see time averages", Operations Research
//! 30, 1982; gaps drawn from half to one and a half of their mean serve here). At a single busy link of capacity C, C times this share
//! is the available bandwidth. If other links are busy as well, the product is a lower bound: a busy link has a capacity of C
//! or more, and was empty more often than the path.
//!
//! WBest's train is another reading. It takes the narrow link for the busy one (WBest eq. 13): if the busy link is another one, it says
//! too much. So the two bound the available bandwidth from both sides, and agree if WBest's model holds. A queue that serves
//! flows in turn makes the train's reading the smaller one ([`fair_queue`](super::fair_queue)). This rule is our own;
//! `docs/quantities.md` has its figures.

use crate::estimate::StreamPlan;
use crate::observe::pairs::Pair;
use crate::observe::{skew, stats};
use crate::report::{PacketReport, StreamRecord};
use crate::time::Span;
use crate::units::Bytes;

/// A wait of less than this share of a packet's time at the capacity is none: at a link that is much faster than the narrow one. Such
/// links have room, unless much waits there.
const NO_WAIT: f64 = 0.05;
/// Stamps and hosts, or the backoffs of a cell, scatter delays: so many times the width of the closest third of the dispersions, ...
const SCATTER: f64 = 3.0;
/// ... and no more than this share of a packet's time: a wait of more is one.
const MOST_SCATTER: f64 = 0.4;
/// Fewer pairs say nothing.
const LEAST: usize = 10;
/// The trains' reading above this one by so much of the capacity is no chance: twice the error of a share of 30 pairs.
const BUSY: f64 = 0.25;

/// At a narrow link that takes this long for a packet, or longer, ...
const SLOW: Span = Span::from_millis(8);
/// ... waits of more than this share of that time are elsewhere too: frames of a cell, or packets of links a hundred times as fast. ...
const NOTHING: f64 = 0.005;
/// ... If no larger share of the packets waited nowhere, some other place is busy most of the time.
const HARDLY: f64 = 0.3;

/// Where stations aggregate, a pair whose first packet came later than the earliest by more than this, or than two packets' times, waited for
/// others: backoffs are a tenth of it.
const TURN: Span = Span::from_millis(1);

/// If no larger share of the packets met none, the least delay may be that of a queue that never emptied, as beside a TCP download.
const BY_CHANCE: f64 = 0.1;

/// Others are about if a smaller share of the packets met none.
const MET_OTHERS: f64 = 0.9;

/// Single packets that are sent if pairs cannot tell: so many, ...
const SINGLES: usize = 20;
/// ... of this size, ...
const SIZE: Bytes = Bytes(200);
/// ... so many packets' times of a pair's packet apart.
const APART: f64 = 0.7;

/// Pairs, or single packets, that met an empty path, and all of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Idle {
    met_none: usize,
    pairs: usize,
    /// Those of `met_none` that waited nowhere, not even at a much faster link.
    nowhere: usize,
}

/// A packet that may meet an empty path: when it left, its delay, and the delay behind which its sender's packets are gone, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Seen {
    at: i64,
    delay: i64,
    gone: i64,
}

impl Idle {
    /// From pairs of packets that take `slot` at the capacity, with stamps as uncertain as `noise`. Pairs that may have met those
    /// before them say nothing; `None` where too few are left.
    pub(super) fn of(pairs: &[Pair], slot: Span, noise: Span) -> Option<Idle> {
        let seen = |p: &Pair| Seen {
            at: p.at,
            delay: p.first.relative_nanos(),
            gone: p.second.relative_nanos().saturating_add(slot.as_nanos()),
        };
        Idle::among(pairs.iter().map(seen).collect(), slot, noise, closest_third(pairs))
    }

    /// Single packets that tell it where pairs cannot, because a pair takes longer than the gap to the next one.
    pub(super) fn singles(slot: Span, mut draw: impl FnMut() -> f64) -> StreamPlan {
        let mut at = Span::ZERO;
        let offsets = (0..SINGLES).map(|_| {
            at += slot.scaled(APART * (0.5 + draw()));
            at
        });
        StreamPlan::uneven(offsets.collect::<Vec<_>>(), SIZE)
    }

    /// From single packets.
    pub(super) fn of_singles(record: &StreamRecord, pairs: &[Pair], slot: Span, noise: Span) -> Option<Idle> {
        let seen = |p: &PacketReport| {
            let delay = p.owd()?.relative_nanos();
            Some(Seen { at: i64::try_from(p.sent.as_nanos()).ok()?, delay, gone: i64::MIN })
        };
        let seen = record.packets.iter().filter_map(seen).collect();
        Idle::among(seen, slot, noise, closest_third(pairs))
    }

    fn among(mut seen: Vec<Seen>, slot: Span, noise: Span, scatter: f64) -> Option<Idle> {
        let points: Vec<(i64, i64)> = seen.iter().map(|s| (s.at, s.delay)).collect();
        let since = points.first()?.0;
        let slope = skew::skew(&points).unwrap_or(0.0);
        for one in &mut seen {
            one.delay = skew::corrected(one.at, one.delay, slope, since);
            one.gone = skew::corrected(one.at, one.gone, slope, since);
        }
        let least = seen.iter().map(|one| one.delay).min()?;
        let slot = slot.as_nanos() as f64;
        let scattered = (SCATTER * scatter).min(MOST_SCATTER * slot);
        let none = (NO_WAIT * slot).max((noise * 4).as_nanos() as f64).max(scattered);
        let nothing = (NOTHING * slot).max((noise * 4).as_nanos() as f64);
        let mut idle = Idle { met_none: 0, pairs: 0, nowhere: 0 };
        // True if the packet before met others, `None` if that is unknown, and the time until which its pair was on the path.
        let (mut waited, mut until) = (Some(false), i64::MIN);
        for one in seen {
            let (free, wait) = (one.at >= until, one.delay.saturating_sub(least) as f64);
            waited = match waited {
                // Others' packets are still ahead.
                Some(true) if !free => Some(true),
                _ if !free => None,
                _ => Some(wait > none),
            };
            until = one.at.saturating_add(one.gone.saturating_sub(least));
            idle.met_none += usize::from(waited == Some(false));
            idle.nowhere += usize::from(waited == Some(false) && wait <= nothing);
            idle.pairs += usize::from(waited.is_some());
        }
        (idle.pairs >= LEAST).then_some(idle)
    }

    /// Packets that met none, and all.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.met_none, self.pairs)
    }

    /// The share; none where it may be chance.
    pub(super) fn share(&self) -> f64 {
        let share = self.met_none as f64 / self.pairs as f64;
        if share > BY_CHANCE { share } else { 0.0 }
    }

    /// Interval of the share over a longer time, with `confidence`.
    pub(super) fn interval(&self, confidence: f64) -> (f64, f64) {
        let (low, high) = stats::share_interval(self.met_none, self.pairs, confidence).unwrap_or((0.0, 1.0));
        (low.min(self.share()), high)
    }

    /// True if hardly any packet that takes `slot` at the narrow link waited nowhere: most met somebody, perhaps at a place where less is left.
    pub(super) fn is_busy_elsewhere(&self, slot: Span) -> bool {
        slot >= SLOW && self.nowhere as f64 <= HARDLY * self.pairs as f64
    }

    /// True if more than one packet in ten met others.
    pub(super) fn met_others(&self) -> bool {
        self.share() < MET_OTHERS
    }

    /// True if a link other than the narrow one seems busy: trains say that this share of the capacity is left, and pairs say much less.
    pub(super) fn contradicts(&self, left: f64) -> bool {
        left - self.share() > BUSY
    }
}

/// First packets of pairs that waited for nobody, and all of them, where hardly any did: over a path that hands packets over in batches, whose
/// pairs have no dispersion, at a capacity in bit/s.
pub(super) fn crowded<'a>(
    pairs: impl Iterator<Item = &'a Pair>,
    size: Bytes,
    capacity: f64,
) -> Option<(usize, usize)> {
    let delays: Vec<i64> = pairs.map(|pair| pair.first.relative_nanos()).collect();
    let least = *delays.iter().min()?;
    let turn = TURN.as_nanos().max((2.0 * size.bits() as f64 * 1e9 / capacity.max(1.0)) as i64);
    let free = delays.iter().filter(|delay| delay.saturating_sub(least) <= turn).count();
    let hardly = delays.len() >= LEAST && free as f64 <= HARDLY * delays.len() as f64;
    hardly.then_some((free, delays.len()))
}

/// The width of the closest third of the dispersions, in nanoseconds: pairs that met nobody differ by what stamps, hosts and
/// backoffs add.
fn closest_third(pairs: &[Pair]) -> f64 {
    let mut gaps: Vec<i64> = pairs.iter().map(|p| p.received.as_nanos()).collect();
    gaps.sort_unstable();
    let third = gaps.len().div_ceil(3).max(2);
    let widths = gaps.windows(third).map(|some| some[third - 1].saturating_sub(some[0]));
    widths.min().unwrap_or(0) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::pairs::PairSet;
    use crate::observe::testing;
    use crate::report::Pattern;

    fn idle(of: &[(u64, u64)], slot: u64, noise: u64) -> Idle {
        let set = PairSet::of(&testing::pairs(of));
        let span = |us: u64| Span::from_micros(us as i64);
        Idle::of(&set.usable, span(slot), span(noise)).unwrap()
    }

    /// Of 30 pairs at 10 Mbit/s every third waits, 100 us and more.
    #[test]
    fn pairs_that_waited_nowhere_are_counted() {
        let of: Vec<(u64, u64)> =
            (0..30).map(|k| (if k % 3 == 0 { 100 + k * 30 } else { 0 }, 1_190)).collect();
        let idle = idle(&of, 1_190, 2);
        assert_eq!((idle.met_none, idle.pairs), (20, 30));
        assert!(idle.contradicts(0.95) && !idle.contradicts(0.9));
        let (low, high) = idle.interval(0.9);
        assert!(low > 0.5 && low < 0.55 && high > 0.77 && high < 0.82, "{low} {high}");
    }

    /// A queue of 1 to 10 ms that never empties: three delays are the least by chance.
    #[test]
    fn in_a_queue_that_never_empties_nothing_is_known_to_be_left() {
        let of: Vec<(u64, u64)> =
            (0..30).map(|k| (if k % 10 == 0 { 4 } else { 1_000 + k * 300 }, 1_190)).collect();
        let idle = idle(&of, 1_190, 2);
        assert_eq!((idle.met_none, idle.share(), idle.interval(0.9).0), (3, 0.0, 0.0));
    }

    /// 16 backoffs of 9 us before 300 us; dispersions scatter alike.
    #[test]
    fn backoffs_are_no_waiting() {
        let of: Vec<(u64, u64)> = (0..48).map(|k| (k * 7 % 16 * 9, 300 + k * 5 % 16 * 9)).collect();
        assert!(idle(&of, 370, 2).share() > 0.9);
        // And without them so much would be.
        let of: Vec<(u64, u64)> = (0..48).map(|k| (k * 7 % 16 * 9, 370)).collect();
        assert!(idle(&of, 370, 2).share() < 0.3);
    }

    /// Pairs of 24 ms each leave every 10 ms: only the first knows that it met nobody but its sender's own.
    #[test]
    fn pairs_that_met_their_own_say_nothing_and_single_packets_do() {
        let slot = Span::from_millis(24);
        let of: Vec<(u64, u64)> = (0..30).map(|k| (k * 38_000, 24_000)).collect();
        let pairs = PairSet::of(&testing::pairs(&of)).usable;
        assert_eq!(Idle::of(&pairs, slot, Span::ZERO), None);
        let plan = Idle::singles(slot, || 0.5);
        assert_eq!((plan.packets.len(), plan.bytes()), (20, Bytes(4_000)));
        let sent: Vec<u64> = plan.packets.iter().map(|p| p.offset.as_nanos() as u64 / 1_000).collect();
        let came: Vec<Option<u64>> = sent
            .iter()
            .enumerate()
            .map(|(k, at)| Some(at + 3_200 + if k % 4 == 0 { 9_000 } else { 0 }))
            .collect();
        let record = testing::record(Pattern::Uneven, &sent, &sent, &came);
        let idle = Idle::of_singles(&record, &pairs, slot, Span::ZERO).unwrap();
        assert_eq!((idle.met_none, idle.pairs), (15, 20));
    }

    /// Single packets wait some 100 us each, as in a cell that others fill: little beside the 24 ms of a slow link, but nearly all do.
    #[test]
    fn small_waits_of_nearly_all_are_at_another_place() {
        let slot = Span::from_millis(24);
        let told = |wait: fn(u64) -> u64| {
            let sent: Vec<u64> = (0..20).map(|k| k * 17_000).collect();
            let came: Vec<Option<u64>> = (0..20).map(|k| Some(sent[k as usize] + 3_200 + wait(k))).collect();
            let record = testing::record(Pattern::Uneven, &sent, &sent, &came);
            Idle::of_singles(&record, &[], slot, Span::ZERO).unwrap()
        };
        let busy = told(|k| k * 7 % 20 * 40);
        assert!(busy.share() > 0.99 && busy.is_busy_elsewhere(slot), "{busy:?}");
        assert!(!busy.is_busy_elsewhere(Span::from_millis(2)));
        assert!(!told(|k| k % 2 * 400).is_busy_elsewhere(slot));
    }

    /// Pairs without dispersion that wait for aggregates of 4 ms: a tenth of them for none, or two thirds.
    #[test]
    fn where_others_always_send_hardly_any_pair_waits_for_nobody() {
        let told = |pairs: u64, wait: fn(u64) -> u64| {
            let set = PairSet::of(&testing::pairs(&(0..pairs).map(|k| (wait(k), 0)).collect::<Vec<_>>()));
            crowded(set.arrived(), Bytes(1488), 60e6)
        };
        assert_eq!(told(30, |k| if k % 10 == 0 { 90 } else { 1_200 + k * 97 }), Some((3, 30)));
        assert_eq!(told(30, |k| if k % 3 == 0 { 4_000 } else { k % 15 * 9 }), None);
        assert_eq!((told(9, |k| k * 2_000), told(0, |k| k)), (None, None));
    }

    #[test]
    fn few_pairs_say_nothing() {
        let set = PairSet::of(&testing::pairs(&[(0, 1_190); 9]));
        assert_eq!(Idle::of(&set.usable, Span::from_micros(1_190), Span::ZERO), None);
    }
}
