//! Frames at a steady rate: their times, and the bytes of each without loss by rounding.

use crate::time::Span;
use crate::units::{Bytes, Rate};

/// Frame rate, frames so far, and the part of a byte left by rounding.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steady {
    frame_rate: f64,
    frames: u64,
    /// Bits times nanoseconds in a second, below a byte's.
    rest: u128,
}

/// A byte in that unit.
const BYTE: u128 = 8_000_000_000;

impl Steady {
    pub(super) fn new(frame_rate: f64) -> Steady {
        Steady { frame_rate, frames: 0, rest: 0 }
    }

    /// The time from this frame to the next. Frames stand where their number says, however many there are.
    pub(super) fn next(&mut self) -> Span {
        let at = |number: u64| Span::from_secs_f64(number as f64 / self.frame_rate);
        let next = at(self.frames + 1) - at(self.frames);
        self.frames += 1;
        next.max(Span::from_nanos(1))
    }

    /// The whole bytes that a rate makes in that time.
    pub(super) fn bytes(&mut self, rate: Rate, over: Span) -> Bytes {
        let all = self.rest + u128::from(rate.bits_per_second()) * u128::from(over.as_nanos().unsigned_abs());
        self.rest = all % BYTE;
        Bytes(u64::try_from(all / BYTE).unwrap_or(u64::MAX))
    }
}
