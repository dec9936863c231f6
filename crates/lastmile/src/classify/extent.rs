//! The least and the greatest value so far, or of late.

use crate::time::Span;

/// The extrema of a series: since its start, or, where a window is given, since some time between half of it and all of
/// it ago. Takes a constant amount of memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Extent<T> {
    older: Option<(T, T)>,
    newer: Option<(T, T)>,
    /// When the newer half began, in nanoseconds of whatever clock.
    since: u64,
}

impl<T: Copy + Ord> Default for Extent<T> {
    fn default() -> Extent<T> {
        Extent::EMPTY
    }
}

impl<T: Copy + Ord> Extent<T> {
    /// Of no values.
    pub(crate) const EMPTY: Extent<T> = Extent { older: None, newer: None, since: 0 };

    /// Takes a value in, at `now` nanoseconds.
    pub(crate) fn take(&mut self, value: T, now: u64, window: Option<Span>) {
        if let Some(window) = window
            && now.saturating_sub(self.since) >= window.as_nanos().unsigned_abs() / 2
        {
            self.older = self.newer.take();
            self.since = now;
        }
        self.newer =
            Some(self.newer.map_or((value, value), |(least, most)| (least.min(value), most.max(value))));
    }

    /// The least and the greatest.
    pub(crate) fn get(&self) -> Option<(T, T)> {
        match (self.older, self.newer) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (older, newer) => older.or(newer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn extrema_last_for_ever_without_a_window() {
        let mut extent = Extent::default();
        assert_eq!(extent.get(), None);
        [5, 9, 2].into_iter().for_each(|value| extent.take(value, 0, None));
        extent.take(7, u64::MAX, None);
        assert_eq!(extent.get(), Some((2, 9)));
    }

    #[test]
    fn extrema_are_forgotten_between_half_a_window_and_a_whole_one() {
        let window = Some(Span::from_millis(100));
        let mut extent = Extent::default();
        extent.take(1, 60 * MS, window);
        for ms in [70, 100, 109] {
            extent.take(5, ms * MS, window);
        }
        assert_eq!(extent.get(), Some((1, 5)));
        extent.take(6, 110 * MS, window);
        assert_eq!(extent.get(), Some((1, 6)));
        extent.take(7, 160 * MS, window);
        assert_eq!(extent.get(), Some((6, 7)));
    }
}
