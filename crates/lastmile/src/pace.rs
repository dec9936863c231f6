//! Rates to departure times (RFC 5348, section 4.6).

use crate::time::{Span, Time};
use crate::units::{Bytes, Rate};

/// Spaces packets at a rate that may change at any time. A sender that was held up catches up, with at most the credit that it
/// was given: never with a burst of any length.
///
/// ```
/// use lastmile::{pace::Pacer, time::{Span, Time}, units::{Bytes, Rate}};
/// let mut pacer = Pacer::new(Span::from_millis(5));
/// let (start, rate) = (Time::ZERO + Span::from_secs(1), Rate::ip(1_000_000));
/// assert_eq!(pacer.release(start, Bytes(1250), rate), start); // 1250 B are 10 ms
/// assert_eq!(pacer.ready(start, rate), start + Span::from_millis(10));
/// // A higher rate shortens the wait that is under way.
/// assert_eq!(pacer.ready(start, Rate::ip(2_000_000)), start + Span::from_millis(5));
/// // Held up by 100 ms: what is owed is 5 ms.
/// let late = start + Span::from_millis(100);
/// assert_eq!(pacer.release(late, Bytes(1250), rate), late);
/// assert_eq!(pacer.ready(late, rate), late + Span::from_millis(5));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Pacer {
    credit: Span,
    /// When the last packet should have left, and its size.
    last: Option<(Time, Bytes)>,
}

impl Pacer {
    /// A pacer that has released nothing.
    pub fn new(credit: Span) -> Pacer {
        Pacer { credit: credit.max(Span::ZERO), last: None }
    }

    /// Gives another credit, for packets from here on.
    pub fn allow(&mut self, credit: Span) {
        self.credit = credit.max(Span::ZERO);
    }

    /// When the next packet may leave: the nominal time, which lies at most the credit in the past.
    fn nominal(&self, now: Time, rate: Rate) -> Time {
        match self.last {
            None => now,
            // t_(i+1) = t_i + s / X_inst
            Some((at, size)) => (at + rate.time_for(size)).max(now - self.credit),
        }
    }

    /// When the next packet may leave, not before `now`.
    pub fn ready(&self, now: Time, rate: Rate) -> Time {
        self.nominal(now, rate).max(now)
    }

    /// Releases a packet of that size at the IP layer; when it may leave, not before `now`.
    pub fn release(&mut self, now: Time, size: Bytes, rate: Rate) -> Time {
        let nominal = self.nominal(now, rate);
        self.last = Some((nominal, size));
        nominal.max(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// However the sender is held up, no span sees more than its rate, the credit and a packet.
        #[test]
        fn no_span_carries_more_than_the_rate_and_the_credit(
            gaps in prop::collection::vec(0..50_000_000_i64, 2..100),
            credit in 0..20_000_000_i64,
            bps in 10_000_u64..1_000_000_000,
        ) {
            let (rate, size) = (Rate::ip(bps), Bytes(1200));
            let mut pacer = Pacer::new(Span::from_nanos(credit));
            let mut now = Time::ZERO + Span::from_secs(1);
            let mut left: Vec<Time> = Vec::new();
            for gap in gaps {
                now += Span::from_nanos(gap);
                let at = pacer.release(now, size, rate);
                prop_assert!(at >= now && left.last().is_none_or(|last| at >= *last));
                left.push(at);
            }
            for (i, from) in left.iter().enumerate() {
                for (j, to) in left.iter().enumerate().skip(i) {
                    let bytes = size * (j - i) as u64;
                    let room = rate.bytes_in(*to - *from + Span::from_nanos(credit)) + Bytes(2 * (j - i) as u64 + 1);
                    prop_assert!(bytes <= room, "{} in {}", bytes, *to - *from);
                }
            }
        }
    }
}
