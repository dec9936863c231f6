//! Data-limited intervals: the sender had less to send than it might have [RFC 5348, 8.2.1].

use crate::time::{Span, Time};

/// When the sender was not data-limited [RFC 5348, 8.2.1].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DataLimited {
    /// NotLimited1 and NotLimited2.
    sent: [Time; 2],
    /// The newest such packet that was reported, for hosts that do not tell of sending.
    pub(super) reported: Option<Time>,
    /// t_new and t_next.
    new: Time,
    next: Time,
}

impl DataLimited {
    /// A packet left while there was nothing else that could have been sent.
    pub(super) fn on_sent(&mut self, at: Time) {
        if self.sent[0] <= self.new {
            self.sent[0] = at;
        } else if self.sent[1] <= self.next {
            self.sent[1] = at;
        }
    }

    /// True if all of the round-trip time before the packet sent at `new` was data-limited.
    pub(super) fn interval(&mut self, now: Time, new: Time, rtt: Span) -> bool {
        (self.new, self.next) = (new, now);
        let old = new - rtt;
        let within = |at: Time| (old < at || old == Time::ZERO) && at <= new;
        let limited = !within(self.sent[0]) && !within(self.sent[1]) && !self.reported.is_some_and(within);
        if self.sent[0] <= new && self.sent[1] > new {
            self.sent[0] = self.sent[1];
        }
        limited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// [8.2.1] R is 100 ms. The sender was not limited at 1,020; the feedback on what it sent until 1,100 covers that, the one
    /// on what it sent until 1,250 does not, and neither does that until 1,400, but for what it sent at 1,350.
    #[test]
    fn an_interval_is_data_limited_if_all_of_it_is() {
        let rtt = Span::from_millis(100);
        let mut limited = DataLimited::default();
        limited.interval(at(1_010), at(900), rtt);
        limited.on_sent(at(1_020));
        assert!(!limited.interval(at(1_200), at(1_100), rtt));
        assert!(limited.interval(at(1_340), at(1_250), rtt));
        limited.on_sent(at(1_350));
        assert!(!limited.interval(at(1_500), at(1_400), rtt));
        assert!(limited.interval(at(1_700), at(1_600), rtt));
    }
}
