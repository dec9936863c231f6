//! A token bucket: the path of an operator's speed limit. A burst passes at the link's rate, later packets at the token
//! rate; this credit makes packet pairs overrate such links. Between the queue and the transmitter it is a shaper, as
//! Linux's `tbf`: packets wait for its tokens. Before the queue it is a policer: packets without tokens are dropped.

use lastmile::units::{Bytes, Rate};
use serde::Deserialize;

use crate::network::config_error::{ConfigError, require};
use crate::text;

/// Parameters of a shaper or a policer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenBucket {
    /// Token rate, counted as on the wire.
    #[serde(deserialize_with = "text::unit")]
    pub rate: Rate,
    /// Size of the bucket: the most tokens that gather. A packet larger than this on the wire never passes and is dropped.
    #[serde(deserialize_with = "text::unit")]
    pub burst: Bytes,
}

impl TokenBucket {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        require(self.rate.bits_per_second() > 0, "rate", "without tokens nothing passes")?;
        require(self.burst > Bytes::ZERO, "burst", "must hold the largest packet")
    }
}

/// Tokens in units of a bit times a nanosecond's share of a second (1e-9 bit): exact in whole numbers.
const BYTE: u128 = 8_000_000_000;

/// A bucket at work, full at first.
#[derive(Debug)]
pub(crate) struct Bucket {
    rate: u128,
    burst: u128,
    tokens: u128,
    at: u64,
}

impl Bucket {
    pub(crate) fn new(config: &TokenBucket) -> Bucket {
        let burst = u128::from(config.burst.0) * BYTE;
        Bucket { rate: u128::from(config.rate.bits_per_second().max(1)), burst, tokens: burst, at: 0 }
    }

    fn level(&self, at: u64) -> u128 {
        let came = u128::from(at.saturating_sub(self.at)) * self.rate;
        (self.tokens + came).min(self.burst)
    }

    pub(crate) fn can_ever_pass(&self, wire: u32) -> bool {
        u128::from(wire) * BYTE <= self.burst
    }

    /// The earliest time from `from` on at which there are tokens for `wire` bytes.
    pub(crate) fn ready(&self, from: u64, wire: u32) -> u64 {
        let from = from.max(self.at);
        let missing = (u128::from(wire) * BYTE).saturating_sub(self.level(from));
        from.saturating_add(u64::try_from(missing.div_ceil(self.rate)).unwrap_or(u64::MAX))
    }

    /// True if there are tokens for `wire` bytes at `now`; they are spent then.
    pub(crate) fn admits(&mut self, now: u64, wire: u32) -> bool {
        let admits = self.ready(now, wire) <= now;
        if admits {
            self.take(now, wire);
        }
        admits
    }

    /// The same bucket as it was at the start.
    pub(crate) fn anew(&self) -> Bucket {
        Bucket { tokens: self.burst, at: 0, ..*self }
    }

    /// Spends them at `at`.
    pub(crate) fn take(&mut self, at: u64, wire: u32) {
        self.tokens = self.level(at).saturating_sub(u128::from(wire) * BYTE);
        self.at = at.max(self.at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bucket(rate: u64, burst: u64) -> Bucket {
        Bucket::new(&TokenBucket { rate: Rate::ip(rate), burst: Bytes(burst) })
    }

    proptest! {
        /// Over any interval no more than burst + rate * time passes (RFC 2697's and tbf's definition).
        #[test]
        fn never_more_than_the_burst_and_the_rate(
            rate in 1_000_u64..100_000_000, packets in prop::collection::vec((0_u64..5_000_000, 40_u32..1500), 1..60),
        ) {
            let mut bucket = bucket(rate, 4_000);
            let (mut now, mut passed) = (0, Vec::new());
            for (gap, wire) in packets {
                now = bucket.ready(now + gap, wire);
                bucket.take(now, wire);
                passed.push((now, u64::from(wire)));
            }
            for i in 0..passed.len() {
                for j in i..passed.len() {
                    let bits: u64 = passed[i..=j].iter().map(|p| p.1 * 8).sum();
                    let allowed = 32_000.0 + rate as f64 * (passed[j].0 - passed[i].0) as f64 / 1e9;
                    prop_assert!(bits as f64 <= allowed + 1e-3, "{bits} > {allowed}");
                }
            }
        }

        /// A policer lets pass what it has tokens for at that moment, and no less: its bucket never holds a packet's tokens back.
        #[test]
        fn a_policer_drops_only_what_exceeds_the_burst_and_the_rate(
            rate in 1_000_u64..100_000_000, packets in prop::collection::vec((0_u64..5_000_000, 40_u32..1500), 1..60),
        ) {
            let mut policer = bucket(rate, 4_000);
            let (mut now, mut level) = (0, 32_000.0_f64);
            for (gap, wire) in packets {
                now += gap;
                level = (level + rate as f64 * gap as f64 / 1e9).min(32_000.0);
                let bits = f64::from(wire) * 8.0;
                // Rounding decides only where hardly anything lacks.
                if (level - bits).abs() < 1e-3 {
                    return Ok(());
                }
                prop_assert_eq!(policer.admits(now, wire), level > bits);
                level -= if level > bits { bits } else { 0.0 };
            }
        }
    }
}
