//! [`QueueLimit`]: the most that may wait.

use core::str::FromStr;

use lastmile::options::{Kind, OptionType, Scalar, quantity};
use lastmile::units::Bytes;
use serde::{Deserialize, Deserializer};

use super::Discipline;

/// The most that may wait. In files "50 packets", "50p" or "60 kB".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// So many packets of whatever size.
    Packets(u32),
    /// So many bytes on the wire.
    Bytes(Bytes),
}

/// The queue of a link whose scenario names none.
pub const DEFAULT_QUEUE_PACKETS: u32 = 50;

impl Default for QueueLimit {
    fn default() -> QueueLimit {
        QueueLimit::Packets(DEFAULT_QUEUE_PACKETS)
    }
}

impl QueueLimit {
    /// True if this, as a threshold, is above the most that a queue of that limit can hold.
    pub(crate) fn exceeds(self, limit: QueueLimit) -> bool {
        match (self, limit) {
            (QueueLimit::Packets(threshold), QueueLimit::Packets(limit)) => threshold > limit,
            (QueueLimit::Bytes(threshold), QueueLimit::Bytes(limit)) => threshold > limit,
            (QueueLimit::Packets(threshold), QueueLimit::Bytes(limit)) => {
                u64::from(threshold) * SMALLEST_IP_PACKET > limit.0
            }
            // Framing is at most as large again as a packet.
            (QueueLimit::Bytes(threshold), QueueLimit::Packets(limit)) => {
                threshold.0 > u64::from(limit) * 2 * LARGEST_IP_PACKET
            }
        }
    }

    /// True if a packet of `wire` bytes finds no room behind `packets` waiting packets of `bytes` bytes in all.
    #[inline]
    pub(crate) fn is_full(self, packets: u32, bytes: u64, wire: u32) -> bool {
        match self {
            QueueLimit::Packets(limit) => packets >= limit,
            QueueLimit::Bytes(limit) => bytes + u64::from(wire) > limit.0,
        }
    }
}

/// A text that is no queue limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseQueueLimitError(String);

impl core::error::Error for ParseQueueLimitError {}

impl core::fmt::Display for ParseQueueLimitError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (text, number) = (&self.0, self.0.trim());
        if number.parse::<u64>().is_ok() {
            return write!(
                f,
                "{text:?} has no unit: type \"{number} packets\", {number}B for bytes or {number}kB"
            );
        }
        write!(f, "{text:?} is not a queue limit such as \"60 kB\" or \"50 packets\"")?;
        match Discipline::kinds().any(|kind| kind == number) {
            true => f.write_str("; a discipline stands in the key `discipline`"),
            false => Ok(()),
        }
    }
}

impl FromStr for QueueLimit {
    type Err = ParseQueueLimitError;
    fn from_str(text: &str) -> Result<QueueLimit, ParseQueueLimitError> {
        let trimmed = text.trim();
        match ["packets", "packet", "p"].iter().find_map(|unit| trimmed.strip_suffix(unit)) {
            Some(number) => number.trim().parse().map(QueueLimit::Packets).ok(),
            None => text.parse().map(QueueLimit::Bytes).ok(),
        }
        .ok_or_else(|| ParseQueueLimitError(text.to_owned()))
    }
}

impl core::fmt::Display for QueueLimit {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            QueueLimit::Packets(packets) => write!(f, "{packets} packets"),
            QueueLimit::Bytes(bytes) => bytes.fmt(f),
        }
    }
}

impl OptionType for QueueLimit {
    const KIND: Kind = Kind::Limit;
    type Bound = String;

    fn read(given: &Scalar) -> Result<QueueLimit, String> {
        quantity(given)
    }

    fn show(&self) -> Option<Scalar> {
        Some(Scalar::Text(self.to_string()))
    }

    fn bound(&self) -> Option<&String> {
        None
    }

    fn any() -> String {
        "such as 60 kB or 50 packets".into()
    }
}

impl<'de> Deserialize<'de> for QueueLimit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<QueueLimit, D::Error> {
        crate::text::unit(deserializer)
    }
}

/// The smallest and the largest packet on any wire, without framing.
const SMALLEST_IP_PACKET: u64 = 28;
pub(crate) const LARGEST_IP_PACKET: u64 = 65_535;
