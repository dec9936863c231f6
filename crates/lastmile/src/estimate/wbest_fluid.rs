//! WBest's fluid model: what a train says is left of the capacity, before losses; [`wbest`](super::wbest) is the tool.
//!
//! **What is generalised.** The paper's fluid model of the last hop (eq. 13) is R_p / (R_p + C - A) = R / C: a train
//! that comes at R_p to a busy queue shares the capacity C with C - A of other traffic and leaves at R. The paper
//! sets R_p = C; solved for A with the R_p at which the used gaps were *really* sent it is
//!
//! > A = C + R_p (1 - C / R)
//!
//! which is the paper's C (2 - C / R) at R_p = C, and needs no more than that the queue was busy. It is where a gap left
//! as planned ([`schedule`](crate::observe::schedule)), and also where a packet came before the one ahead of it had
//! left, which delays tell ([`train`]): so of a train with a hole and a burst only the hole is
//! lost. With sums over the gaps,
//! R_p = B / D_in and R = B / D_out, it is C - (C D_out - B) / D_in: the capacity less the bits of others that were
//! served between the first packet and the last, and those arrived while the train was sent. So on a FIFO the
//! estimate *is* the spare rate of the train's own window, without error; what remains against the long-run mean
//! is the traffic's own variation over 35 ms.
//!
//! **What is left out by default.** The paper replaces each received gap that is shorter than its gap at sending by
//! the latter (section II.E, last-hop compression). Jitter makes some gaps shorter and others longer by as much,
//! and a rule that mends one half only is a bias: with receive stamps late by up to 20 us on an idle path, -0.3 % of
//! the capacity at 10 Mbit/s and -0.8 % at 30 Mbit/s, where sums have none. A band that the rule leaves alone (10 % of the
//! gap) removes the bias as long as jitter stays below it; sums need none, so they are the default. Compression
//! cancels within them, receive batches are cut at their ends ([`batch`](crate::observe::batch)), and the result is
//! capped at the capacity. [`WbestConfig::faithful`](super::wbest::WbestConfig::faithful) has the paper's rule.

use crate::observe::train;
use crate::report::{Fate, PacketReport, StreamRecord};
use crate::time::{Owd, Span};
use crate::units::Bytes;

/// What the gaps that hold say of a path of `capacity`, in bit/s at the IP layer: A = C + R_p (1 - C / R). `None` where
/// no gaps hold.
pub(super) fn spare(record: &StreamRecord, capacity: f64) -> Option<f64> {
    let runs = train::runs_of(record);
    let sent: Span = runs.iter().map(|r| r.sent).sum();
    let received: Span = runs.iter().map(|r| r.received).sum();
    let bits = runs.iter().map(|r| r.bytes).sum::<Bytes>().bits() as f64 * 1e9;
    if sent <= Span::ZERO || received <= Span::ZERO || bits <= 0.0 {
        return None;
    }
    let before_hop = bits / sent.as_nanos() as f64;
    let after_hop = bits / received.as_nanos() as f64;
    Some(capacity + before_hop * (1.0 - capacity / after_hop)) // [WBest eq. 13]
}

/// How probable it is that chance let all losses of a train fall where a queue was full; `None` where there are none, or some
/// fell elsewhere. `least` is the least delay that the session has seen, and `slot` a packet's time at the capacity.
///
/// The paper assumes that little overflows (section II.E). Where much does, others' packets are dropped beside the
/// train's own, so that the gaps that are left look emptier than the path is, and `1 - p` mends nothing. A queue that drops
/// is full to within a packet, so that all its losses fall where it is fullest. Losses of a wireless hop fall
/// anywhere: that all `k` of them meet the fullest queue, as a share `q` of the packets that came did, has probability
/// `q^k`. On a queue of fewer than [`GROWN`] packets the two cannot be told apart; where a quarter of the train is lost, which is
/// not believed in any case ([`judge`](crate::observe::judge)), the queue is full all along, and `q` near 1 says nothing: that all losses
/// met it counts as it is.
///
/// How full a queue is that counts bytes is its delay. One that counts packets is full at less delay the more of them are small
/// ones of others: how many it holds is then nearer to its delay less [`SMALL`] of a packet's time for each of the train's own that wait
/// in it. The more telling of the two readings counts, and that there are two doubles what chance may do.
pub(super) fn losses(record: &StreamRecord, least: Owd, slot: Span) -> Option<f64> {
    let packets = &record.packets;
    let waited: Vec<Option<Span>> = packets.iter().map(|p| p.owd().map(|owd| owd - least)).collect();
    let height = *waited.iter().flatten().max()?;
    if record.lost() == 0 || height < slot * GROWN {
        return None;
    }
    let near = slot.scaled(NEAR_TOP).max(height.scaled(NEAR_SHARE));
    // Those of the train's own that were still waiting, or being sent, when the packet came.
    let ahead = |i: usize| {
        let waits = |j: &usize| waited[*j].is_some_and(|w| packets[i].sent - packets[*j].sent < w + slot);
        (0..i).filter(waits).count() as f64
    };
    let own: Vec<f64> = (0..packets.len()).map(ahead).collect();
    let by_chance = |share: f64| {
        let full = |(waited, own): (&Option<Span>, &f64)| waited.map(|w| w - slot.scaled(share * own));
        let full: Vec<Option<Span>> = waited.iter().zip(&own).map(full).collect();
        let most = *full.iter().flatten().max()?;
        // Judged alike, whether it came or not: by the packets before and behind it.
        let high = |i: &usize| {
            let before = full[..*i].iter().rev().flatten().next();
            let after = full[*i + 1..].iter().flatten().next();
            before.max(after).is_some_and(|full| most - *full <= near)
        };
        let (lost, came): (Vec<_>, Vec<_>) = (0..full.len()).partition(|i| packets[*i].fate == Fate::Lost);
        let share = came.iter().filter(|i| high(i)).count() as f64 / came.len().max(1) as f64;
        lost.iter().all(high).then(|| libm::pow(share, lost.len() as f64))
    };
    let chance = 2.0 * [0.0, SMALL].into_iter().filter_map(by_chance).min_by(f64::total_cmp)?;
    Some(if record.lost() * 4 > packets.len() { 0.0 } else { chance })
}

/// Whether a train looks as if a queue had filled while it passed, at the expense of others: its delay climbs, and then stays
/// at its height to the end.
///
/// A train at the capacity lets no queue shrink: its delay grows by the others' packets, one by one. Where the queue is full
/// these are dropped, the delay stays, and what is left looks like more than it is. The same is seen where others happen to
/// pause. If they keep coming as they did, that the last of `n` gaps met none of the k packets that came has probability
/// `(1 - flat / n)^k`.
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
/// [`losses`] less probable than this are a queue's, in one train or in two together.
pub(super) const OVERFLOWS: f64 = 0.01;
/// By what share of a packet others' are smaller, for a queue that counts packets: between none and nearly all.
const SMALL: f64 = 0.5;
/// What counts as the height of delay: so many packets' time, or this share of all of it, below the greatest.
const NEAR_TOP: f64 = 1.6;
const NEAR_SHARE: f64 = 0.1;

/// What the original program makes of a train of packets of `size` bytes.
pub(super) fn faithful_spare(record: &StreamRecord, size: Bytes, capacity: f64) -> Option<f64> {
    let mut sum = 0.0;
    let mut gaps = 0.0;
    for i in 1..record.packets.len() {
        let (Some((sent, _)), Some(received)) = (record.send_gap(i), record.receive_gap(i)) else {
            continue;
        };
        let gap = received.max(sent); // [WBest section II.E]
        if gap > Span::ZERO {
            sum += gap.as_nanos() as f64;
            gaps += 1.0;
        }
    }
    let rate = (gaps > 0.0).then(|| size.bits() as f64 * 1e9 * gaps / sum)?;
    // [WBest eq. 6]
    Some(if rate >= capacity { rate } else { capacity * (2.0 - capacity / rate) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Ecn;
    use crate::report::{Direction, Pattern};
    use crate::time::Time;

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
        // 15 of the 26 that came found it as full as the four that were lost; two readings.
        let chance = losses(&record, least, SLOT).unwrap();
        assert!((chance - 2.0 * libm::pow(15.0 / 26.0, 4.0)).abs() < 1e-9, "{chance}");
        // One that was lost where there was nothing to fill it.
        record.packets[3].fate = Fate::Lost;
        assert_eq!(losses(&record, least, SLOT), None);
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
