//! Time between feedback messages, as seen, which timers that wait for feedback have to allow for.
//!
//! RFC 5348 has feedback once in a round-trip time, and waits for four of them (section 4.3). Feedback every 50 ms on a path of
//! 2 ms would let that timer fire between any two.

use crate::time::{Span, Time};

/// No feedback is waited for longer than that on account of its spacing.
const MOST: Span = Span::from_secs(1);
/// Feedback that is further apart than two round-trip times may come so many seconds late: its sender is a program that decodes video, say, and
/// four round-trip times of a local network are a few milliseconds.
const SLACK_S: f64 = 0.1;
/// Initial value: twice the 100 ms at which transport-wide feedback comes usually.
const FIRST: Span = Span::from_millis(200);

/// The time between feedback messages: the longest of late, less an eighth of the time since. Reports out of
/// turn, of which a burst of losses brings many, and those of a slow start take little off.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spacing {
    last: Option<Time>,
    longest: Span,
    /// The last three, newest first.
    gaps: [Span; 3],
}

impl Default for Spacing {
    fn default() -> Spacing {
        Spacing { last: None, longest: FIRST, gaps: [FIRST; 3] }
    }
}

impl Spacing {
    /// Feedback came.
    pub(super) fn heard(&mut self, now: Time) {
        if let Some(last) = self.last.replace(now) {
            let gap = (now - last).max(Span::ZERO).min(MOST);
            self.longest = gap.max(self.longest - gap / 8);
            self.gaps = [gap, self.gaps[0], self.gaps[1]];
        }
    }

    /// The usual time between feedback messages, in seconds, the median of three: one that is lost does not make it longer.
    pub(super) fn usual(&self) -> f64 {
        let mut gaps = self.gaps;
        gaps.sort_unstable();
        gaps[1].as_secs_f64()
    }

    /// Seconds by which feedback is further apart than a round-trip time in seconds.
    pub(super) fn beyond(&self, rtt: f64) -> f64 {
        (self.longest.as_secs_f64() - rtt).max(0.0)
    }
}

/// Seconds until feedback is overdue: `least` where it comes once in a round-trip time, and more where it is `beyond` seconds further apart.
pub(super) fn overdue_after(least: f64, rtt: f64, beyond: f64) -> f64 {
    let slack = if beyond > rtt { rtt + beyond + SLACK_S } else { 0.0 };
    (least + beyond).max(slack)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_gap_of_late_counts_up_to_a_second() {
        let at = |ms: i64| Time::ZERO + Span::from_millis(ms);
        let mut spacing = Spacing::default();
        spacing.heard(at(0));
        assert!((spacing.beyond(0.05) - 0.15).abs() < 1e-9 && spacing.beyond(0.25) == 0.0);
        // Every 50 ms: known after 1.2 s.
        (1..=24).for_each(|n| spacing.heard(at(50 * n)));
        assert!((spacing.beyond(0.002) - 0.048).abs() < 1e-9);
        spacing.heard(at(1_205));
        // A report out of turn: the next one is due in 50 ms all the same.
        assert!((spacing.beyond(0.002) - 0.047_375).abs() < 1e-9);
        assert_eq!(spacing.beyond(0.1), 0.0);
        spacing.heard(at(60_000));
        assert_eq!(spacing.beyond(0.0), 1.0);
    }

    #[test]
    fn a_message_that_is_lost_is_not_usual() {
        let at = |ms: i64| Time::ZERO + Span::from_millis(ms);
        let mut spacing = Spacing::default();
        assert_eq!(spacing.usual(), 0.2);
        for n in (0..60).filter(|n| n % 4 != 3) {
            spacing.heard(at(50 * n));
        }
        assert_eq!(spacing.usual(), 0.05);
    }
}
