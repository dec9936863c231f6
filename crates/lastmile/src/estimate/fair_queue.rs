//! A queue that serves flows in turn, as FQ-CoDel does (RFC 8290): found by a burst beside trains.
//!
//! In a FIFO a flow's share of the link is that of its packets among all that come: a train at the capacity C leaves at
//! R = C² / (C + X) beside X of others (WBest eq. 13), and a burst, which comes much faster than others do, at nearly C. A fair
//! queue gives the train what others leave, or an equal share, and gives a burst the same. So if trains come out clearly slower than
//! C and a burst not much faster than the trains, R is what one flow gets, and eq. 13 does not hold. (TOPP's regression over rates tells it
//! too, from many more trains: Melander, Björkman, Gunningberg, GLOBECOM 2000.) A link of the same C before another one makes a burst as
//! slow as a train, so that a train at R has the last word: a fair queue lets it pass, and a FIFO that is busy slows it down
//! again. This rule is our own.

use crate::estimate::{StreamPlan, bits_per_second};
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
/// A train at the rate of one flow comes out at this share of it at least.
const PASSES: f64 = 0.87;

/// The queue's service of flows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Served {
    /// As a FIFO does.
    Together,
    /// In turn: this is the rate of one flow, in bit/s.
    InTurn(f64),
    /// A burst came as slowly as trains, and a train at that rate, in bit/s, more slowly still: two links of one capacity are busy.
    Twice(f64),
}

/// True if trains that came out at these rates, of a capacity, both in bit/s, ask for the burst.
pub(super) fn asks(outputs: &[f64], capacity: f64) -> bool {
    stats::median(outputs).is_some_and(|output| output < SLOWED * capacity)
}

/// The burst; or, once that was as slow as trains, a train of so many packets at the rate of one flow.
pub(super) fn plan(share: Option<f64>, packets: usize, size: Bytes) -> StreamPlan {
    match share {
        None => StreamPlan::burst(BURST, size),
        Some(share) => StreamPlan::train(packets, size, bits_per_second(share)),
    }
}

/// The rate of one flow, in bit/s, if the queue may serve flows in turn: trains came out at these rates, and this is the burst.
pub(super) fn share(outputs: &[f64], capacity: f64, burst: &StreamRecord) -> Option<f64> {
    let output = stats::median(outputs)?;
    (rate(burst)? < output + FASTER * (capacity - output)).then_some(output)
}

/// Tells it by a train at the rate of one flow.
pub(super) fn served(share: f64, train: &StreamRecord) -> Served {
    match rate(train) {
        Some(rate) if rate > PASSES * share => Served::InTurn(share),
        Some(_) => Served::Twice(share),
        None => Served::Together,
    }
}

/// The rate at which a stream came, in bit/s; none where too little of it did, or out of order.
fn rate(stream: &StreamRecord) -> Option<f64> {
    let came = stream.packets.len() - stream.lost();
    let times = || stream.packets.iter().filter_map(|p| p.fate.arrived());
    if (came as f64) < CAME * stream.packets.len() as f64 || Order::of(stream).overtaken() > 0 {
        return None;
    }
    let took = times().max()? - times().min()?;
    let bytes: u64 =
        stream.packets.iter().filter(|p| p.fate.arrived().is_some()).skip(1).map(|p| p.size.0).sum();
    Some(bytes as f64 * 8e9 / took.as_nanos().max(1) as f64)
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
        assert_eq!(plan(None, 30, Bytes(1488)).packets.len(), BURST);
        // A train at 6 Mbit/s passes, or comes out at 5.
        assert_eq!(plan(Some(6e6), 30, Bytes(1488)).packets.len(), 30);
        assert_eq!(served(6e6, &burst(1_984, true)), Served::InTurn(6e6));
        assert_eq!(served(6e6, &burst(2_480, true)), Served::Twice(6e6));
    }
}
