//! Queues that overflow while a train passes: found by the places of its losses, and by delay that stops growing.
//!
//! The paper assumes that little overflows (WBest, section II.E). If much does, others' packets are dropped beside the train's
//! own, so that the gaps that are left look emptier than the path is, and `1 - p` mends nothing. Both rules are our own.
//! `docs/quantities.md` says how often they are right.

use crate::observe::stats;
use crate::report::{Fate, PacketReport, StreamRecord};
use crate::time::{Owd, Span};

/// Probability that chance let the losses of a train fall where a queue was full; `None` if there are none, or some
/// fell elsewhere. `before` are earlier streams of the session, `least` is the least delay that it has seen, and `slot` a packet's time at
/// the capacity.
///
/// A queue that drops is full to within a packet, so that all its losses fall where it is fullest, in this stream and in others: nothing
/// comes through that waited longer. Losses of a wireless hop fall anywhere: of all packets of the session, `lost` of which were
/// lost and `high` of which met that queue, chance picks as many losses among the `high` ones with Fisher's exact probability.
/// On a queue of fewer than [`GROWN`] packets the two cannot be told apart. If more than a quarter of the train is lost,
/// which is not believed in any case ([`judge`](crate::observe::judge)), losses that all met the fullest queue are never chance.
///
/// The fill of a queue that counts bytes is its delay. A queue that counts packets is full at less delay the more of them are small
/// ones of others: its fill is then nearer to its delay less [`SMALL`] of a packet's time for each of the train's own that wait
/// in it. The more telling of the two readings counts, and its probability is doubled because there are two.
pub(super) fn losses(record: &StreamRecord, before: &[StreamRecord], least: Owd, slot: Span) -> Option<f64> {
    let most = record.packets.iter().filter_map(PacketReport::owd).max()?;
    if record.lost() == 0 || most - least < slot * GROWN {
        return None;
    }
    let rise = most - least_delay(record)?;
    let near = slot.scaled(NEAR_TOP).max(rise.scaled(NEAR_SHARE));
    let by_chance = |share: f64| {
        let from = *filled(record, least, slot, share).iter().flatten().max()? - near;
        let here = Tally::of(record, least, slot, share, from);
        let others = before.iter().map(|record| Tally::of(record, least, slot, share, from));
        let all = others.fold(here, Tally::and);
        let chance = || stats::hypergeometric_tail(all.lost_high, all.lost, all.high, all.packets);
        (here.lost == here.lost_high).then(chance)
    };
    let chance = 2.0 * [0.0, SMALL].into_iter().filter_map(by_chance).min_by(f64::total_cmp)?;
    Some(if record.lost() * 4 > record.packets.len() { 0.0 } else { chance })
}

/// Fill of the queue that each packet met: its delay above the least, less `share` of a packet's time for each of the stream's own
/// that were still waiting, or being sent.
fn filled(record: &StreamRecord, least: Owd, slot: Span, share: f64) -> Vec<Option<Span>> {
    let packets = &record.packets;
    let waited: Vec<Option<Span>> = packets.iter().map(|p| p.owd().map(|owd| owd - least)).collect();
    let ahead = |i: usize| {
        let waits = |j: &usize| waited[*j].is_some_and(|w| packets[i].sent - packets[*j].sent < w + slot);
        (0..i).filter(waits).count() as f64
    };
    (0..packets.len()).map(|i| waited[i].map(|w| w - slot.scaled(share * ahead(i)))).collect()
}

/// The packets of a stream, and of these such as met a queue that was full, as far as it seems.
#[derive(Clone, Copy, Debug)]
struct Tally {
    packets: usize,
    lost: usize,
    high: usize,
    lost_high: usize,
}

impl Tally {
    /// Full is from `from` on. Lost packets and others are judged alike: by those before and behind them.
    fn of(record: &StreamRecord, least: Owd, slot: Span, share: f64, from: Span) -> Tally {
        let filled = filled(record, least, slot, share);
        let high = |i: usize| {
            let before = filled[..i].iter().rev().flatten().next();
            before.max(filled[i + 1..].iter().flatten().next()).is_some_and(|filled| *filled >= from)
        };
        let mut tally = Tally { packets: record.packets.len(), lost: record.lost(), high: 0, lost_high: 0 };
        for (_, packet) in record.packets.iter().enumerate().filter(|(i, _)| high(*i)) {
            tally.high += 1;
            tally.lost_high += usize::from(packet.fate == Fate::Lost);
        }
        tally
    }

    fn and(self, other: Tally) -> Tally {
        Tally {
            packets: self.packets + other.packets,
            lost: self.lost + other.lost,
            high: self.high + other.high,
            lost_high: self.lost_high + other.lost_high,
        }
    }
}

/// True if a train looks as if a queue had filled while it passed, at the expense of others: its delay climbs, and then stays
/// at its height to the end.
///
/// A train at the capacity lets no queue shrink: its delay grows by the others' packets, one by one. If the queue is full
/// these are dropped, the delay stays, and the estimate is too high. Others that happen to pause look the same. If they keep
/// coming as they did, the last `flat` of `n` gaps meet none of the k packets that came with probability `(1 - flat / n)^k`.
pub(super) fn plateau(record: &StreamRecord, slot: Span) -> bool {
    let owds: Vec<Owd> = record.packets.iter().filter_map(PacketReport::owd).collect();
    let (Some(first), Some(most)) = (owds.first(), owds.iter().max()) else { return false };
    // A full queue is full to within a packet.
    let top = slot.scaled(TOP);
    let from = owds.iter().rposition(|owd| *most - *owd > top).map_or(0, |below| below + 1);
    let Some(reached) = owds.get(from) else { return false };
    let (gaps, flat) = (owds.len() - 1, owds.len() - 1 - from);
    let rise = *reached - *first;
    if flat < FLAT || rise < slot * GROWN {
        return false;
    }
    let packets = rise.as_nanos() as f64 / slot.as_nanos().max(1) as f64;
    libm::pow(1.0 - flat as f64 / gaps as f64, packets) < BY_CHANCE
}

/// The least delay of a stream's packets.
pub(super) fn least_delay(record: &StreamRecord) -> Option<Owd> {
    record.packets.iter().filter_map(PacketReport::owd).min()
}

/// Packets' time from which delay has grown, so that it can be told where on its way up a loss happened.
const GROWN: i64 = 3;
/// A plateau is so many packets' time high, and at least so many gaps long.
const TOP: f64 = 1.1;
const FLAT: usize = 5;
/// Less probable than this, chance is doubted.
const BY_CHANCE: f64 = 0.02;
/// [`losses`] less probable than this are a queue's.
pub(super) const OVERFLOWS: f64 = 0.003;
/// Share of a packet by which others' are smaller, for a queue that counts packets: between none and nearly all.
const SMALL: f64 = 0.5;
/// Delays within so many packets' time of the greatest, or within this share of the rise, count as the greatest.
const NEAR_TOP: f64 = 1.6;
const NEAR_SHARE: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Ecn;
    use crate::report::{Direction, Pattern};
    use crate::time::Time;
    use crate::units::Bytes;

    const SLOT: Span = Span::from_millis(1);

    /// A train at the capacity, before the packets of which so many of others came.
    fn train(others: &[i64]) -> StreamRecord {
        let mut delay = Span::from_millis(5);
        let packet = |(k, others): (usize, &i64)| {
            delay += SLOT * *others;
            let sent = Span::from_millis(k as i64);
            PacketReport {
                seq: k as u64,
                size: Bytes(1_488),
                sent: Time::ZERO.as_sender() + sent,
                fate: Fate::Arrived(Time::from_nanos((sent + delay).as_nanos() as u64)),
                ecn: Ecn::NotEct,
            }
        };
        let packets: Vec<_> = others.iter().enumerate().map(packet).collect();
        StreamRecord {
            stream: 1,
            direction: Direction::Forward,
            pattern: Pattern::Train,
            planned: (0..others.len() as i64).map(|k| SLOT * k).collect(),
            packets,
            tx_resolution: Span::from_nanos(1),
            rx_resolution: Span::from_nanos(1),
            clock_stepped: false,
        }
    }

    /// Waits in halves of a packet's time, as a queue of eight packets gives them to a train in whose gaps, from the tenth on, three, no
    /// and three packets of others come that are half as large. It is full at 3 of these times, and at 5.5.
    #[test]
    fn a_queue_that_counts_packets_is_full_at_less_delay_with_small_ones() {
        let waits = [
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 3, 6, -1, 7, 9, 9, 9, -1, 10, 10, -1, -1, 8, 10, 10, 10, 11, 11,
            11,
        ];
        let mut record = train(&[0; 30]);
        for (packet, wait) in record.packets.iter_mut().zip(waits) {
            let came = |at: Time<_>| Fate::Arrived(at + SLOT / 2 * wait);
            packet.fate = packet.fate.arrived().filter(|_| wait >= 0).map_or(Fate::Lost, came);
        }
        let least = least_delay(&record).unwrap();
        // 15 of the 26 that came found it as full as the four that were lost: 19 over 4 of 30 over 4; two readings.
        let chance = losses(&record, &[], least, SLOT).unwrap();
        assert!((chance - 2.0 * 3_876.0 / 27_405.0).abs() < 1e-9, "{chance}");
        // Of 60 others, none of which waited, none was lost: 19 over 4 of 90 over 4.
        let mut others = train(&[0; 60]);
        let chance = losses(&record, core::slice::from_ref(&others), least, SLOT).unwrap();
        assert!((chance - 2.0 * 3_876.0 / 2_555_190.0).abs() < 1e-9, "{chance}");
        // Had four of them been, chance would explain more.
        (10..14).for_each(|i| others.packets[4 * i].fate = Fate::Lost);
        let more = losses(&record, core::slice::from_ref(&others), least, SLOT).unwrap();
        assert!(more > 0.05, "{more}");
        // One that was lost where there was nothing to fill it.
        record.packets[3].fate = Fate::Lost;
        assert_eq!(losses(&record, &[], least, SLOT), None);
    }

    #[test]
    fn a_plateau_is_where_delay_stops_growing_against_all_odds() {
        let with = |rising: usize, every: usize| {
            let others: Vec<i64> =
                (0..30).map(|k| i64::from(k > 0 && k <= rising && k % every == 0)).collect();
            plateau(&train(&others), SLOT)
        };
        // Ten packets of others in the first ten gaps, and none in the last nineteen.
        assert!(with(10, 1));
        assert!(with(16, 2));
        // To the end; a pause of nine gaps that five before it make likely; too little to tell.
        assert!(!with(29, 1) && !with(29, 3));
        assert!(!with(20, 4));
        assert!(!with(2, 1) && !with(0, 1));
        assert!(!plateau(&train(&[]), SLOT) && !plateau(&train(&[0]), SLOT));
    }
}
