//! [`Opportunities`]: departures at the times of a trace, as Mahimahi's link has them.

use super::NEVER;
use crate::network::trace::{OPPORTUNITY, Reader};

/// The opportunities of a link, those that were used or missed left behind.
#[derive(Debug)]
pub(super) struct Opportunities {
    trace: Reader,
    /// The one used last, and what is left of it.
    at: u64,
    left: u32,
    /// The one after it.
    next: u64,
}

impl Opportunities {
    pub(super) fn new(mut trace: Reader) -> Opportunities {
        let next = trace.next().map_or(NEVER, |entry| entry.0);
        Opportunities { trace, at: 0, left: 0, next }
    }

    fn advance(&mut self) {
        self.next = self.trace.next().map_or(NEVER, |entry| entry.0);
    }

    /// When the first bytes of a packet can go that came at `from`: with what is left of an opportunity for which it was
    /// there, else at the first one after it.
    pub(super) fn ready(&mut self, from: u64) -> u64 {
        if self.left > 0 && from < self.at {
            return self.at;
        }
        while self.next <= from && self.next != NEVER {
            self.advance();
        }
        self.next
    }

    /// Sends a packet from `start`, which [`ready`](Opportunities::ready) gave, and says when its last bytes go.
    pub(super) fn send(&mut self, start: u64, wire: u32) -> u64 {
        if start != self.at {
            self.left = 0;
        }
        let mut rest = wire;
        loop {
            if self.left == 0 {
                if self.next == NEVER {
                    return NEVER;
                }
                (self.at, self.left) = (self.next, OPPORTUNITY);
                self.advance();
            }
            let now = rest.min(self.left);
            (rest, self.left) = (rest - now, self.left - now);
            if rest == 0 {
                return self.at;
            }
        }
    }

    pub(super) fn trace(&self) -> &Reader {
        &self.trace
    }
}
