//! The pairs of a window, and the capacity that they tell (TFRC Probe, section 3.2.1 and equation 1).

use crate::time::Span;
use crate::units::Bytes;

/// A capacity is told where the dispersion's error, by the stamps' resolution, is a tenth of it at most: the mean of n pairs has an
/// error of a step over the root of n. A step that is not drawn anew from pair to pair, since packets leave in its time, is a
/// quarter at most.
const STEPS: f64 = 10.0;
const LEAST_STEPS: f64 = 4.0;

/// A capacity for packets of one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Capacity {
    /// Bytes a second.
    pub(super) rate: f64,
    pub(super) size: Bytes,
    /// No pair told how much more it is.
    pub(super) at_least: bool,
}

impl Capacity {
    /// True if it is above `factor` times `than`, allowing for packet sizes: a link takes a time of its own for each packet, so that
    /// size alone may change the capacity by as much as itself.
    pub(super) fn is_more(&self, than: &Capacity, factor: f64) -> bool {
        let by_size = (self.size.0 as f64 / than.size.0 as f64).max(1.0);
        !than.at_least && self.rate > factor * than.rate * by_size
    }
}

/// The pairs of a window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    /// Of their packets, all of them.
    pub(super) size: Bytes,
    /// Those that were measured.
    pub(super) pairs: u32,
    /// The least delay sum T1 + T2 in nanoseconds, from an unknown zero.
    pub(super) least: i64,
    /// Pairs that stamps cannot tell from the least one, and the sum of their dispersions T2 - T1 in nanoseconds.
    best: (u32, i64),
    /// Coarsest resolution of the stamps of arrival.
    pub(super) resolution: Span,
    /// Pairs that this host itself spread, and the sum of their dispersions.
    pub(super) spread: (u32, i64),
}

impl Window {
    /// One without pairs, whose packets have that size.
    pub(super) fn of(size: Bytes) -> Window {
        Window { size, ..Window::default() }
    }

    /// Takes a pair in.
    pub(super) fn add(&mut self, delay_sum: i64, dispersion: Span) {
        // Two stamps, each late by a step at most; exact ones are alike where they are the same.
        let alike = self.resolution.as_nanos().max(0).saturating_mul(2).max(1);
        let (first, apart) = (self.pairs == 0, delay_sum.saturating_sub(self.least));
        if first || apart <= -alike {
            self.best = (0, 0); // [algorithm 1] the least delay sum
        }
        if first || apart < alike {
            self.best = (self.best.0 + 1, self.best.1.saturating_add(dispersion.as_nanos()));
            self.least = if first { delay_sum } else { self.least.min(delay_sum) };
        }
        self.pairs += 1;
    }

    /// [equation 1] C = P/T, or what C is at least; nothing where pairs came within a step, as those do that a WLAN or a host
    /// hands on together.
    pub(super) fn capacity(&self) -> Option<Capacity> {
        let size = self.size;
        let step = (self.resolution.as_nanos() as f64).max(1.0);
        let (pairs, sum) = if self.best.0 > 0 { self.best } else { self.spread };
        let dispersion = sum as f64 / f64::from(pairs.max(1));
        let exact = dispersion * libm::sqrt(self.best.0.into()) >= STEPS * step;
        let at_least = !exact || dispersion < LEAST_STEPS * step;
        let nanos = if at_least { dispersion + step } else { dispersion };
        (dispersion >= step).then(|| Capacity { rate: 1e9 * size.0 as f64 / nanos, size, at_least })
    }
}
