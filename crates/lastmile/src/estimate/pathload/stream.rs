//! Pathload's reading of one stream: the rate at which it left, and the trends of its delays.

use crate::observe::signal::Trend;
use crate::report::StreamRecord;
use crate::time::Span;

/// Medians that make a trend.
const MEDIANS: usize = 5;
/// Bands of the two tests, 10 % about 0.55 and 0.4: below the first there is no trend, above the second there is one.
const PCT: (f64, f64) = (0.495, 0.605);
const PDT: (f64, f64) = (0.36, 0.44);
/// Packets that arrive closer together came at once.
const AT_ONCE: Span = Span::from_micros(7);
/// Gaps at sending that do not count, the longest ones.
const LATE: f64 = 0.15;
/// Largest difference of two clocks' rates (our own).
const SKEW: f64 = 1e-4;

/// Verdict on one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delays {
    Rise,
    Stay,
    /// The tests disagree, or neither tells.
    Unclear,
}

/// The two tests on delays in any unit.
pub(super) fn verdict(trend: &Trend) -> Delays {
    // 1.3.2 divides by the medians, and not by the steps between them.
    let pct = trend.rising as f64 / trend.medians as f64;
    let side = |value: f64, (low, high): (f64, f64)| i32::from(value > high) - i32::from(value < low);
    match side(pct, PCT) + side(trend.pdt, PDT) {
        1.. => Delays::Rise,
        ..=-1 => Delays::Stay,
        0 => Delays::Unclear,
    }
}

/// The rate at which a stream left, in bit/s, without its longest gaps.
pub(super) fn left(record: &StreamRecord) -> Option<f64> {
    let mut gaps: Vec<Span> = (1..record.packets.len()).filter_map(|i| Some(record.send_gap(i)?.0)).collect();
    gaps.sort();
    gaps.truncate(gaps.len() - (gaps.len() as f64 * LATE) as usize);
    let mean = gaps.iter().copied().sum::<Span>().as_secs_f64() / gaps.len() as f64;
    let rate = record.packets.first()?.size.bits() as f64 / mean;
    (rate.is_finite() && rate > 0.0).then_some(rate)
}

/// A stream, and how it is to be read.
pub(super) struct Stream<'a> {
    pub(super) record: &'a StreamRecord,
    pub(super) faithful: bool,
    /// The receiver takes packets several at a time.
    pub(super) coalesced: bool,
    pub(super) noise: Span,
}

impl Stream<'_> {
    /// Packets closer than this came at once.
    pub(super) fn close(&self) -> Span {
        if self.faithful { AT_ONCE } else { AT_ONCE.max(self.noise * 3) }
    }

    /// Delays of its parts that were sent without a break, of packets in order.
    pub(super) fn parts(&self) -> Vec<Vec<f64>> {
        let packets = &self.record.packets;
        let gap = self.record.planned.get(1).copied().unwrap_or(Span::ZERO);
        let switched = (gap * 2).max(gap + Span::from_millis(1));
        let close = self.close();
        let (mut parts, mut last): (Vec<Vec<f64>>, Option<usize>) = (vec![Vec::new()], None);
        for (i, packet) in packets.iter().enumerate() {
            let (Some(owd), Some(came)) = (packet.owd(), packet.fate.arrived()) else { continue };
            if self.record.send_gap(i).is_some_and(|(sent, _)| sent > switched) {
                parts.push(Vec::new());
            }
            let before = last.and_then(|last: usize| packets[last].fate.arrived());
            // Out of order.
            if before.is_some_and(|before| came < before) {
                continue;
            }
            let at_once = before.is_some_and(|before| came - before <= close);
            last = Some(i);
            let Some(part) = parts.last_mut() else { continue };
            // The last one of a batch waited least.
            if at_once && self.coalesced {
                part.pop();
            }
            if !at_once || self.coalesced {
                part.push(owd.relative_nanos() as f64);
            }
        }
        parts
    }

    /// Verdict on the delays of a part.
    pub(super) fn delays(&self, delays: &[f64]) -> Option<Delays> {
        let zero = delays.iter().copied().reduce(f64::min)?;
        let micros =
            |delay: f64| if self.faithful { libm::floor((delay - zero) / 1e3) } else { delay - zero };
        let delays: Vec<f64> = delays.iter().map(|delay| micros(*delay)).collect();
        let trend = Trend::of(&delays).filter(|trend| trend.medians >= MEDIANS)?;
        let most = delays.iter().copied().fold(0.0, f64::max);
        let length = self.record.planned.last().map_or(0.0, |last| last.as_nanos() as f64);
        let clocks = (SKEW * length).max(self.noise.as_nanos() as f64);
        let none = !self.faithful && most <= clocks;
        Some(if none { Delays::Stay } else { verdict(&trend) })
    }
}
