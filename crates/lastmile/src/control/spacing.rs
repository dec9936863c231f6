//! How far apart feedback comes, as seen: what timers that wait for it have to allow for.
//!
//! RFC 5348 has feedback once in a round-trip time, and waits for four of them (section 4.3). Feedback every 50 ms on a path of
//! 2 ms would let that timer fire between any two.

use crate::time::{Span, Time};

/// No feedback is waited for longer than that on account of its spacing; and so long for the second.
const MOST: Span = Span::from_secs(1);

/// The time between feedback messages: the longest of late, less an eighth of the time since. Reports out of turn, of which a
/// burst of losses brings many, take little off.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spacing {
    last: Option<Time>,
    longest: Option<Span>,
}

impl Spacing {
    /// Feedback came.
    pub(super) fn heard(&mut self, now: Time) {
        if let Some(last) = self.last.replace(now) {
            let gap = (now - last).max(Span::ZERO).min(MOST);
            let before = self.longest.map_or(Span::ZERO, |longest| longest - gap / 8);
            self.longest = Some(gap.max(before));
        }
    }

    /// Seconds by which feedback is further apart than a round-trip time in seconds.
    pub(super) fn beyond(&self, rtt: f64) -> f64 {
        (self.longest.unwrap_or(MOST).as_secs_f64() - rtt).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_gap_of_late_counts_up_to_a_second() {
        let at = |ms: i64| Time::ZERO + Span::from_millis(ms);
        let mut spacing = Spacing::default();
        spacing.heard(at(0));
        assert_eq!(spacing.beyond(0.25), 0.75);
        spacing.heard(at(50));
        spacing.heard(at(55));
        // A report out of turn: the next one is due in 50 ms all the same.
        assert!((spacing.beyond(0.002) - 0.047_375).abs() < 1e-9);
        assert_eq!(spacing.beyond(0.1), 0.0);
        spacing.heard(at(60_000));
        assert_eq!(spacing.beyond(0.0), 1.0);
    }
}
