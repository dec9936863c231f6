//! X_recv_set: what arrived lately, which limits the allowed rate [RFC 5348, 4.3 and 8.2.2].

use crate::time::Time;

/// Entries of X_recv_set. RFC 5348, section 8.2.2, finds three enough at one feedback in a round-trip time; more feedback needs
/// more to hold the largest of two round-trip times.
const KEPT: usize = 8;

/// Recent values of X_recv, with their times.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceiveSet {
    entries: [(Time, f64); KEPT],
    known: usize,
}

impl ReceiveSet {
    /// A set of that value alone.
    pub(super) fn of(now: Time, value: f64) -> ReceiveSet {
        ReceiveSet { entries: [(now, value); KEPT], known: 1 }
    }

    /// The largest.
    pub(super) fn max(&self) -> f64 {
        self.entries[..self.known].iter().fold(0.0, |max, entry| max.max(entry.1))
    }

    /// Update X_recv_set() [RFC 5348, 4.3 and 8.2.2].
    pub(super) fn update(&mut self, now: Time, received: f64, rtt: f64) {
        if self.known == KEPT {
            // The largest is what counts.
            let least =
                (0..KEPT).min_by(|&a, &b| self.entries[a].1.total_cmp(&self.entries[b].1)).unwrap_or(0);
            self.entries[least..].rotate_left(1);
            self.known -= 1;
        }
        self.entries[self.known] = (now, received);
        self.known += 1;
        let young = |entry: &(Time, f64)| (now - entry.0).as_secs_f64() <= 2.0 * rtt;
        let mut kept = 0;
        for i in 0..self.known {
            // The newest stays in any case.
            if young(&self.entries[i]) || i + 1 == self.known {
                self.entries[kept] = self.entries[i];
                kept += 1;
            }
        }
        self.known = kept;
    }

    /// Halves what is kept.
    pub(super) fn halve(&mut self) {
        self.entries[..self.known].iter_mut().for_each(|entry| entry.1 /= 2.0);
    }

    /// Maximize X_recv_set() [RFC 5348, 4.3].
    pub(super) fn maximize(&mut self, now: Time, received: f64) {
        let known = self.entries[..self.known].iter().map(|entry| entry.1).filter(|value| value.is_finite());
        *self = ReceiveSet::of(now, known.fold(received, f64::max));
    }
}
