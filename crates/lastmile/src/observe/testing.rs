//! Records by hand.

use crate::node::Ecn;
use crate::report::{Direction, Fate, PacketReport, Pattern, StreamRecord};
use crate::time::{Span, Time};
use crate::units::Bytes;

/// Pairs, 10 ms apart, whose first packet waited so long, and whose second came so long behind it, in microseconds.
pub(crate) fn pairs(of: &[(u64, u64)]) -> StreamRecord {
    let sent: Vec<u64> = (0..2 * of.len() as u64).map(|k| k / 2 * 10_000).collect();
    let came: Vec<Option<u64>> = (0..2 * of.len())
        .map(|k| {
            let (waited, gap) = of[k / 2];
            Some(sent[k] + 900 + waited + if k % 2 == 1 { gap } else { 0 })
        })
        .collect();
    record(Pattern::Pairs, &sent, &sent, &came)
}

/// A record of 1488-byte packets from times in microseconds.
pub(crate) fn record(
    pattern: Pattern,
    planned: &[u64],
    sent: &[u64],
    arrived: &[Option<u64>],
) -> StreamRecord {
    let packet = |(k, (sent, arrived)): (usize, (&u64, &Option<u64>))| PacketReport {
        seq: k as u64,
        size: Bytes(1488),
        sent: Time::from_nanos(sent * 1_000),
        fate: arrived.map_or(Fate::Lost, |us| Fate::Arrived(Time::from_nanos(us * 1_000))),
        ecn: Ecn::NotEct,
    };
    StreamRecord {
        stream: 1,
        direction: Direction::Forward,
        pattern,
        planned: planned.iter().map(|us| Span::from_micros(*us as i64)).collect(),
        packets: sent.iter().zip(arrived).enumerate().map(packet).collect(),
        tx_resolution: Span::from_nanos(1),
        rx_resolution: Span::from_nanos(1),
        clock_stepped: false,
    }
}
