//! X_recv: the rate at which packets arrive, over a round-trip time or more (RFC 5348, section 6.2, step 2).

use crate::time::Span;

/// Moments that are remembered; no two are closer than an eighth of a round-trip time.
const MARKS: usize = 16;

/// Counts bytes and answers with a rate over the time since the newest feedback that is at least a round-trip time ago.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReceiveRate {
    /// Bytes so far.
    total: u64,
    /// When feedback was given, in nanoseconds, and the bytes that had come by then; oldest first.
    marks: [(u64, u64); MARKS],
    known: usize,
}

impl ReceiveRate {
    /// Bytes arrived.
    pub(super) fn add(&mut self, bytes: u64) {
        self.total = self.total.saturating_add(bytes);
    }

    /// Bytes that arrived, and the nanoseconds in which they did; none at the first feedback. `now` goes forwards.
    pub(super) fn feedback(&mut self, now: u64, rtt: Span) -> Option<(u64, u64)> {
        let rtt = rtt.as_nanos().unsigned_abs();
        let marks = &self.marks[..self.known];
        let old_enough = |mark: &&(u64, u64)| now.saturating_sub(mark.0) >= rtt;
        let since = marks.iter().rev().find(old_enough).or(marks.first()).copied();
        if marks.last().is_none_or(|last| now.saturating_sub(last.0) >= (rtt / 8).max(1)) {
            if self.known == MARKS {
                self.marks.rotate_left(1);
                self.known -= 1;
            }
            self.marks[self.known] = (now, self.total);
            self.known += 1;
        }
        let (then, before) = since?;
        let span = now.checked_sub(then).filter(|&span| span > 0)?;
        Some((self.total - before, span))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// 1000 B every 10 ms and feedback every 20 ms: over a round trip of 50 ms that is the one 60 ms ago.
    #[test]
    fn the_rate_is_that_of_a_round_trip_or_more() {
        let mut rate = ReceiveRate::default();
        let mut last = None;
        for k in 0..200 {
            rate.add(1000);
            if k % 2 == 0 {
                last = rate.feedback(10 * k * MS, Span::from_millis(50));
            }
            if k == 0 {
                assert_eq!(last, None);
            }
        }
        assert_eq!(last, Some((6000, 60 * MS)));
    }

    #[test]
    fn early_feedback_reaches_back_all_the_same() {
        let mut rate = ReceiveRate::default();
        rate.feedback(0, Span::from_millis(100));
        rate.add(5000);
        rate.feedback(100 * MS, Span::from_millis(100));
        rate.add(100);
        assert_eq!(rate.feedback(101 * MS, Span::from_millis(100)), Some((5100, 101 * MS)));
        // Feedback in the same instant.
        assert_eq!(rate.feedback(101 * MS, Span::from_millis(100)), Some((5100, 101 * MS)));
        // A clock that goes back.
        assert_eq!(rate.feedback(0, Span::from_millis(100)), None);
    }
}
