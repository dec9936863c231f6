//! Budgets: token buckets that bound what a reflector sends, per source and in total.
//!
//! A reflector answers anybody, so its state must not grow with the number of addresses that somebody can
//! forge. Sources share a table of fixed size, placed by a keyed hash of their address: two sources may share a
//! bucket, and no sender can choose which.

use core::net::IpAddr;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::endpoint::shares::source_prefix;
use crate::time::{Span, Time};
use crate::units::{Bytes, Rate};

/// A token bucket: `rate` on average, `burst` at once.
///
/// ```
/// use lastmile::{endpoint::measure::TokenBucket, time::{Span, Time}, units::{Bytes, Rate}};
/// let mut bucket = TokenBucket::new(Rate::ip(8_000), Bytes(1_500)); // 1 kB/s
/// let start = Time::ZERO;
/// assert!(bucket.take(start, Bytes(1_500)));
/// assert!(!bucket.take(start, Bytes(500)));
/// assert!(bucket.take(start + Span::from_millis(500), Bytes(500)));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TokenBucket {
    rate: Rate,
    burst: Bytes,
    tokens: Bytes,
    filled: Time,
}

impl TokenBucket {
    /// A full bucket.
    pub fn new(rate: Rate, burst: Bytes) -> TokenBucket {
        TokenBucket { rate, burst, tokens: burst, filled: Time::ZERO }
    }

    /// True if `bytes` may be sent at `now`; takes them if so.
    pub fn take(&mut self, now: Time, bytes: Bytes) -> bool {
        self.fill(now);
        if self.tokens < bytes {
            return false;
        }
        self.tokens = self.tokens - bytes;
        true
    }

    /// Bytes that may be sent at `now`.
    pub fn left(&mut self, now: Time) -> Bytes {
        self.fill(now);
        self.tokens
    }

    fn fill(&mut self, now: Time) {
        let earned = self.rate.bytes_in(now - self.filled);
        if earned > Bytes::ZERO {
            self.tokens = (self.tokens + earned).min(self.burst);
            // Only whole bytes were earned: keep the time of the fraction.
            let rest = (now - self.filled) - self.rate.time_for(earned);
            self.filled = if rest > Span::ZERO { now - rest } else { now };
        }
    }
}

/// Limits on a reflector's bytes, sessions and memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// On average to one source (an IPv4 address, an IPv6 /64).
    pub per_source_rate: Rate,
    /// At once to one source.
    pub per_source_burst: Bytes,
    /// On average to all.
    pub total_rate: Rate,
    /// At once to all.
    pub total_burst: Bytes,
    /// Sessions at a time: peers that proved their address and keep state here.
    pub sessions: usize,
    /// Sessions at a time from one source.
    pub sessions_per_source: usize,
    /// Packets of forward and reverse streams whose stamps are kept, of all sessions together.
    pub stamps: usize,
    /// Packets of reverse streams that wait for their departure, of all sessions together.
    pub planned: usize,
}

impl Default for Limits {
    /// 20 Mbit/s and 8 MB at once to a source, 200 Mbit/s and 64 MB to all, 4,096 sessions, 64 from one source;
    /// half a million stamps and 8,192 planned packets, which together stay below 30 MB.
    fn default() -> Limits {
        Limits {
            per_source_rate: Rate::ip(20_000_000),
            per_source_burst: Bytes(8_000_000),
            total_rate: Rate::ip(200_000_000),
            total_burst: Bytes(64_000_000),
            sessions: 4_096,
            sessions_per_source: 64,
            stamps: 1 << 19,
            planned: 8_192,
        }
    }
}

impl Limits {
    /// No limit on bytes, nor on the sessions of one source: for benchmarks and closed labs.
    pub fn unlimited() -> Limits {
        let (rate, burst) = (Rate::ip(1 << 50), Bytes(1 << 50));
        Limits {
            per_source_rate: rate,
            per_source_burst: burst,
            total_rate: rate,
            total_burst: burst,
            sessions_per_source: 4_096,
            ..Limits::default()
        }
    }
}

const BUCKETS: usize = 4_096;

/// The reflector's budgets: one bucket for all, and a fixed table for sources.
pub(crate) struct Budget {
    total: TokenBucket,
    sources: Vec<TokenBucket>,
    hash_key: [u64; 2],
}

impl Budget {
    pub(crate) fn new(limits: &Limits, secret: &[u8; 32]) -> Budget {
        let mut mac =
            <Hmac<Sha256> as KeyInit>::new_from_slice(secret).expect("HMAC takes keys of any length");
        mac.update(b"lastmile source buckets");
        let digest = mac.finalize().into_bytes();
        let word = |i: usize| u64::from_be_bytes(digest[8 * i..8 * i + 8].try_into().expect("eight bytes"));
        Budget {
            total: TokenBucket::new(limits.total_rate, limits.total_burst),
            sources: vec![TokenBucket::new(limits.per_source_rate, limits.per_source_burst); BUCKETS],
            hash_key: [word(0), word(1) | 1],
        }
    }

    /// True if `bytes` may go to `source` at `now`; takes them from both buckets if so.
    pub(crate) fn take(&mut self, now: Time, source: IpAddr, bytes: Bytes) -> bool {
        let slot = self.slot(source);
        if self.total.left(now) < bytes || !self.sources[slot].take(now, bytes) {
            return false;
        }
        self.total.take(now, bytes)
    }

    /// Bytes that may go to `source` at `now`.
    pub(crate) fn left(&mut self, now: Time, source: IpAddr) -> Bytes {
        let slot = self.slot(source);
        self.total.left(now).min(self.sources[slot].left(now))
    }

    fn slot(&self, source: IpAddr) -> usize {
        // Multiply-shift with secret words: enough that nobody outside can aim at another's bucket.
        let mixed = (source_prefix(source) ^ self.hash_key[0]).wrapping_mul(self.hash_key[1]);
        let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(self.hash_key[1]);
        (mixed >> 40) as usize % BUCKETS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn never_more_than_burst_plus_rate(steps in prop::collection::vec((0_i64..50_000_000, 1_u64..3_000), 1..200)) {
            let rate = Rate::ip(1_000_000);
            let burst = Bytes(10_000);
            let mut bucket = TokenBucket::new(rate, burst);
            let (mut now, mut sent) = (Time::ZERO, Bytes::ZERO);
            for (ns, bytes) in steps {
                now += Span::from_nanos(ns);
                if bucket.take(now, Bytes(bytes)) {
                    sent += Bytes(bytes);
                }
                prop_assert!(sent <= burst + rate.bytes_in(now - Time::ZERO) + Bytes(1));
            }
        }
    }

    #[test]
    fn a_forged_crowd_of_sources_needs_no_memory_and_leaves_the_total_bounded() {
        let limits = Limits { total_rate: Rate::ip(8_000), total_burst: Bytes(100_000), ..Limits::default() };
        let mut budget = Budget::new(&limits, &[7; 32]);
        let sent =
            (0..100_000_u32).filter(|i| budget.take(Time::ZERO, IpAddr::V4((*i).into()), Bytes(100))).count();
        assert_eq!(sent, 1_000);
        assert_eq!(budget.sources.len(), BUCKETS);
    }

    #[test]
    fn a_source_that_spent_its_share_does_not_spend_the_others() {
        let mut budget = Budget::new(&Limits::default(), &[7; 32]);
        let (greedy, other) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        while budget.take(Time::ZERO, greedy, Bytes(1500)) {}
        assert!(budget.left(Time::ZERO, greedy) < Bytes(1500));
        assert!(budget.take(Time::ZERO, other, Bytes(1500)));
    }
}
