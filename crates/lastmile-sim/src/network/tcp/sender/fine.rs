//! Vegas' retransmission (Brakmo and Peterson, "TCP Vegas: End to end congestion avoidance on a global Internet", IEEE JSAC
//! 13(8), 1995, section 3.1): a duplicate ACK is a reason to look whether the first segment under way is overdue by a
//! clock without ticks, and so are the first two new ACKs after something was sent again.

use std::collections::VecDeque;

use lastmile::time::{Span, Time};

use super::Sender;

/// When the segments under way left last, and what a round trip takes.
#[derive(Debug, Default)]
pub(super) struct Fine {
    /// From the first unacknowledged segment on: when each left last, and how often it has been sent.
    departures: VecDeque<(u64, u32)>,
    /// SRTT and RTTVAR in nanoseconds.
    estimate: Option<(i64, i64)>,
    /// In nanoseconds, if a round trip has been timed.
    timeout: Option<u64>,
    /// New ACKs that still look.
    looks: u8,
    /// The last to be found was a timeout.
    pub(super) after_timeout: bool,
}

impl Fine {
    /// When a segment left last, counted from the first unacknowledged one.
    pub(super) fn departure(&self, index: usize) -> u64 {
        self.departures.get(index).map_or(0, |departure| departure.0)
    }

    pub(super) fn on_send(&mut self, now: Time, index: u64) {
        let index = index as usize;
        if self.departures.len() <= index {
            self.departures.resize(index + 1, (0, 0));
        }
        let sent = &mut self.departures[index];
        *sent = (now.as_nanos(), sent.1 + 1);
    }

    /// So many are acknowledged; the last of them is timed, by its own departure, unless it was sent twice.
    pub(super) fn on_new_ack(&mut self, now: Time, newly: u64) -> Option<Span> {
        let last = (newly as usize).checked_sub(1).and_then(|index| self.departures.get(index)).copied();
        self.departures.drain(..(newly as usize).min(self.departures.len()));
        let Some((sent, 1)) = last else { return None };
        let rtt = now.as_nanos().saturating_sub(sent).min(1 << 60) as i64;
        let (srtt, rttvar) = match self.estimate {
            // Jacobson and Karels, appendix A, whose gains are RFC 6298's.
            Some((srtt, rttvar)) => {
                let delta = rtt - srtt;
                (srtt + delta / 8, rttvar + (delta.abs() - rttvar) / 4)
            }
            None => (rtt, rtt / 4),
        };
        self.estimate = Some((srtt, rttvar));
        // Their first factor, two deviations, and the sixteenth that Vegas' own code adds.
        let timeout = srtt + 2 * rttvar;
        self.timeout = Some((timeout + timeout / 16).max(0) as u64);
        Some(Span::from_nanos(rtt))
    }

    /// The first segment is sent again: the next ACKs look, and the timeout grows by an eighth, or doubles at the second
    /// time, until another round trip is timed.
    pub(super) fn on_resend(&mut self, looks: u8) {
        (self.looks, self.after_timeout) = (looks, false);
        let again = self.departures.front().is_some_and(|sent| sent.1 > 1);
        self.timeout =
            self.timeout.map(|timeout| timeout.saturating_add(if again { timeout } else { timeout / 8 }));
    }
}

impl Sender {
    /// True if the first segment under way is overdue.
    pub(super) fn overdue(&self, now: Time) -> bool {
        self.fine.as_ref().is_some_and(|fine| {
            let due = fine.timeout.map(|timeout| fine.departure(0).saturating_add(timeout));
            self.una < self.max && due.is_some_and(|due| due <= now.as_nanos())
        })
    }

    /// After a new ACK: one of the first two after something was sent again sends the next, if it is overdue. The window
    /// has been reduced for it.
    pub(super) fn look_again(&mut self, now: Time) {
        let overdue = self.overdue(now);
        if let Some(fine) = &mut self.fine
            && fine.looks > 0
        {
            fine.looks = if overdue { fine.looks - 1 } else { 0 };
            if overdue {
                (self.in_recovery, self.resend_first) = (true, true);
            }
        }
    }
}
