//! A clock of frames that runs whether packets come or not.

use super::{Air, Covers};
use lastmile::time::Span;

/// Frames of equal, not necessarily whole, length.
#[derive(Debug)]
pub(super) struct Slots {
    /// A frame is `numerator / denominator` nanoseconds long.
    numerator: u128,
    denominator: u128,
    covers: Covers,
}

/// One packet never asks for more frames than this.
const MAX_SLOTS: u64 = 10_000;

impl Slots {
    pub(super) fn new(numerator: u128, denominator: u128, covers: Covers) -> Slots {
        Slots { numerator: numerator.max(1), denominator: denominator.max(1), covers }
    }

    pub(super) fn of(span: Span, covers: Covers) -> Slots {
        Slots::new(span.as_nanos().max(1) as u128, 1, covers)
    }

    fn at(&self, time: u64) -> u64 {
        u64::try_from(u128::from(time) * self.denominator / self.numerator).unwrap_or(u64::MAX)
    }

    /// The first and last frame that decide about a packet.
    pub(super) fn under(&self, air: Air) -> core::ops::RangeInclusive<u64> {
        let (first, last) = air.deciding(self.covers);
        let first = self.at(first);
        first..=self.at(last).min(first.saturating_add(MAX_SLOTS))
    }
}
