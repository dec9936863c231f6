//! Whether a queue serves flows in turn, as FQ-CoDel does (RFC 8290): from a burst beside trains.
//!
//! In a FIFO a flow's share of the link is that of its packets among all that come: a train at the capacity C leaves at
//! R = C² / (C + X) beside X of others (WBest eq. 13), and a burst, which comes much faster than others do, at nearly C. A fair
//! queue gives the train what others leave, or an equal share, and gives a burst the same. So where trains come out clearly slower than
//! C and a burst not much faster than the trains, R is what one flow gets, and eq. 13 does not hold. (TOPP's regression over rates tells it
//! too, from many more trains: Melander, Björkman, Gunningberg, GLOBECOM 2000.) This rule is our own.

use crate::estimate::StreamPlan;
use crate::observe::{order::Order, stats};
use crate::report::StreamRecord;
use crate::units::Bytes;

/// Packets of the burst: enough for its rate, and half of what access points queue.
const BURST: usize = 20;
/// Trains that come out at more than this share of the capacity say the same by either model.
const SLOWED: f64 = 0.9;
/// A burst comes through a FIFO faster than the trains by at least this share of what these fall short of the capacity: it is half where it
/// reaches the link at twice the capacity, and nearly all of it behind faster links.
const FASTER: f64 = 0.35;
/// The least share of the burst's packets that must have come.
const CAME: f64 = 0.75;

/// Whether trains that came out at these rates, of a capacity, both in bit/s, ask for the burst.
pub(super) fn asks(outputs: &[f64], capacity: f64) -> bool {
    stats::median(outputs).is_some_and(|output| output < SLOWED * capacity)
}

/// The burst.
pub(super) fn plan(size: Bytes) -> StreamPlan {
    StreamPlan::burst(BURST, size)
}

/// The rate of one flow, in bit/s, if the queue serves flows in turn: trains came out at these rates, and this is the burst.
pub(super) fn share(outputs: &[f64], capacity: f64, burst: &StreamRecord) -> Option<f64> {
    let came = burst.packets.len() - burst.lost();
    let times = || burst.packets.iter().filter_map(|p| p.fate.arrived());
    if (came as f64) < CAME * burst.packets.len() as f64 || Order::of(burst).overtaken() > 0 {
        return None;
    }
    let took = times().max()? - times().min()?;
    let bytes: u64 =
        burst.packets.iter().filter(|p| p.fate.arrived().is_some()).skip(1).map(|p| p.size.0).sum();
    let rate = bytes as f64 * 8e9 / took.as_nanos().max(1) as f64;
    let output = stats::median(outputs)?;
    (rate < output + FASTER * (capacity - output)).then_some(output)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::testing::record;
    use crate::report::Pattern;

    /// 20 packets of 1488 B that come `gap` us apart, all or without every third.
    fn burst(gap: u64, all: bool) -> StreamRecord {
        let came: Vec<Option<u64>> =
            (0..20).map(|k| (all || k % 3 != 1).then_some(5_000 + k * gap)).collect();
        record(Pattern::Burst, &[0; 20], &[0; 20], &came)
    }

    /// Trains at 10 Mbit/s come out at 6 beside 4 that a fair queue serves first, and at 7.14 in a FIFO.
    #[test]
    fn a_burst_tells_a_fair_queue_from_a_fifo() {
        let turn = [6.0e6, 6.1e6, 5.9e6];
        assert!(asks(&turn, 1e7) && !asks(&[9.5e6], 1e7) && !asks(&[], 1e7));
        // 1488 B at 6 Mbit/s are 1984 us, at 10 1190.
        assert_eq!(share(&turn, 1e7, &burst(1_984, true)), Some(6.0e6));
        assert_eq!(share(&[7.14e6; 3], 1e7, &burst(1_190, true)), None);
        // Too few came to tell.
        assert_eq!(share(&turn, 1e7, &burst(1_984, false)), None);
        assert_eq!(plan(Bytes(1488)).packets.len(), BURST);
    }
}
