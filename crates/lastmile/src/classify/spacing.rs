//! The time between arrivals, and its least: the classifiers of the Biaz family go by these.
//!
//! The papers' T_min is the least time between two arrivals and holds for packets of one size. Here it is the least time per
//! byte, so that a small packet does not pass for a fast link; with `equal_size` it is the papers'.

use super::extent::Extent;
use super::{Arrival, Loss};
use crate::time::{Rx, Span, Time};

/// Times per byte are kept in 1024ths of a nanosecond.
const FINE: u64 = 1024;

crate::options! {
    /// Options of the Biaz family.
    pub struct BiazConfig {
        /// Take the least time between arrivals as it is, for packets of one size, in place of the least per byte
        equal_size: bool = false, "LDA, section III.A: packets of one size";
        /// Forget the least time after so long, and after half of that at the earliest
        window: Option<Span> [Span::from_millis(10)..=Span::from_secs(86_400)] = None, "LDA, section IX.B: never";
        /// Forget the least time when the route changes
        route_reset: bool = true, "our own: LDA knows one route, section IX.B";
    }
}

/// The newest gap between arrivals, and the least.
#[derive(Clone, Debug, Default)]
pub(super) struct Spacing {
    last_arrival: Option<(u64, Time<Rx>)>,
    min_gap: Extent<u64>,
    gap: Option<Gap>,
}

/// Between an arrival and the one before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    /// T_i.
    time: Span,
    /// Packets on in the order of sending: one more than are missing between.
    packets: u64,
    /// Divisor of a packet's time: its bytes, or one.
    size: u64,
}

impl Gap {
    fn unit(&self) -> u64 {
        (self.time.as_nanos().unsigned_abs().saturating_mul(FINE) / self.size).max(1)
    }

    /// The time for each packet, those missing counted, in T_min's unit.
    pub(super) fn each(&self) -> f64 {
        self.unit() as f64 / self.packets as f64
    }
}

impl Spacing {
    /// Takes an arrival in. Arrivals at one instant, or out of order, say nothing of a link.
    pub(super) fn take(&mut self, config: &BiazConfig, arrival: &Arrival) -> Option<Gap> {
        let at = arrival.at?;
        let (before, since) = self.last_arrival.replace((arrival.seq, at))?;
        let (packets, time) = (arrival.seq.checked_sub(before)?, at - since);
        if packets == 0 || time <= Span::ZERO {
            return None;
        }
        let size = if config.equal_size { 1 } else { arrival.size.0.max(1) };
        let gap = Gap { time, packets, size };
        self.min_gap.take(gap.unit(), at.as_nanos(), config.window);
        self.gap = Some(gap);
        self.gap
    }

    /// [LDA, III.A] (n + 1) T_min <= T_i < (n + `upper`) T_min: the lost packets took their time on the last link.
    pub(super) fn fits(&self, loss: &Loss, upper: f64) -> bool {
        let (Some(gap), Some(least)) = (self.gap, self.min_gap()) else { return false };
        let lost = match loss.bytes {
            Some(bytes) if gap.size > 1 => bytes.0,
            _ => u64::from(loss.run).saturating_mul(gap.size),
        };
        let (lost, size) = (lost as f64, gap.size as f64);
        let time = gap.time.as_nanos() as f64 * FINE as f64;
        (lost + size) * least <= time && time < (lost + upper * size) * least
    }

    /// T_min in its unit.
    pub(super) fn min_gap(&self) -> Option<f64> {
        self.min_gap.get().map(|(least, _)| least as f64)
    }

    /// T_min as a time, of a packet of the newest one's size.
    pub(super) fn min_gap_time(&self) -> Option<Span> {
        let nanos = self.min_gap()? * self.gap?.size as f64 / FINE as f64;
        Some(Span::from_nanos(nanos as i64))
    }

    pub(super) fn on_route_change(&mut self, config: &BiazConfig) {
        if config.route_reset {
            *self = Spacing::default();
        }
    }

    /// A share of T_min: the coarsest stamps with which thresholds so close together can be told apart.
    pub(super) fn resolution(&self, share: i64) -> Span {
        self.min_gap_time().map_or(Span::MAX, |least| least / share)
    }
}
