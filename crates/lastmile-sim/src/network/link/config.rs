//! What a link is made from: [`LinkConfig`].

use core::str::FromStr;
use std::sync::Arc;

use lastmile::time::Span;
use lastmile::units::{Bytes, Rate};
use serde::{Deserialize, Deserializer};

use super::Change;
use crate::network::loss::Loss;
use crate::network::queue::{Discipline, Shaper};
use crate::network::trace::Trace;

/// How much may wait. In files "50 packets" or "60 kB".
///
/// ```
/// use lastmile::units::Bytes;
/// use lastmile_sim::network::link::QueueLimit;
/// assert_eq!("50 packets".parse(), Ok(QueueLimit::Packets(50)));
/// assert_eq!("60 kB".parse(), Ok(QueueLimit::Bytes(Bytes(60_000))));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// So many packets of whatever size.
    Packets(u32),
    /// So many bytes on the wire.
    Bytes(Bytes),
}

impl QueueLimit {
    /// The queue of an ns-2 link with `queue-limit` `n`: there `DropTail` drops when the queue, with the
    /// arriving packet, would reach `n`, so that n - 1 wait beside the packet in transmission.
    ///
    /// ```
    /// # use lastmile_sim::network::link::QueueLimit;
    /// assert_eq!(QueueLimit::ns2(6), QueueLimit::Packets(5));
    /// ```
    pub fn ns2(n: u32) -> QueueLimit {
        QueueLimit::Packets(n.saturating_sub(1))
    }

    /// Whether this, as a threshold, is above what a queue of that limit can hold.
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

    /// Whether a packet of `wire` bytes finds no room behind what waits.
    #[inline]
    pub(crate) fn is_full(self, packets: u32, bytes: u64, wire: u32) -> bool {
        match self {
            QueueLimit::Packets(limit) => packets >= limit,
            QueueLimit::Bytes(limit) => bytes + u64::from(wire) > limit.0,
        }
    }
}

/// A text that is no queue limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a queue limit such as \"60 kB\" or \"50 packets\"")]
pub struct ParseQueueLimitError(String);

impl FromStr for QueueLimit {
    type Err = ParseQueueLimitError;
    fn from_str(text: &str) -> Result<QueueLimit, ParseQueueLimitError> {
        let trimmed = text.trim();
        let packets = trimmed.strip_suffix("packets").or_else(|| trimmed.strip_suffix("packet"));
        match packets {
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

impl<'de> Deserialize<'de> for QueueLimit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<QueueLimit, D::Error> {
        crate::text::unit(deserializer)
    }
}

/// When a link wakes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Events {
    /// At arrivals alone where departures can be computed beforehand, otherwise per dequeue.
    #[default]
    Auto,
    /// Whenever the transmitter fetches a packet: for links whose rate or delay is
    /// [changed by hand](super::Link::change).
    PerDequeue,
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// Bits per second of frames: IP packets and [`overhead`](LinkConfig::overhead). Without one the link only
    /// delays.
    pub rate: Option<Rate>,
    /// From the last bit's departure to its arrival.
    pub delay: Span,
    /// Bytes of framing around every IP packet.
    pub overhead: Bytes,
    /// What the queue holds beside the packet in transmission. A discipline with a limit of its own
    /// (`tc red`) overrides it.
    pub queue: QueueLimit,
    /// Which packets the queue drops or marks before it is full.
    pub discipline: Discipline,
    /// A token bucket between queue and transmitter.
    pub shaper: Option<Shaper>,
    /// A trace instead of a rate: of rates, or of delivery opportunities.
    pub trace: Option<Arc<Trace>>,
    /// Changes known beforehand, in any order; of two at one time the later in the list holds.
    pub schedule: Vec<Change>,
    /// Channels that lose packets, each with random draws of its own. A packet passes all of them.
    pub losses: Vec<Loss>,
    /// When the link wakes.
    pub events: Events,
}

impl Default for LinkConfig {
    fn default() -> LinkConfig {
        LinkConfig {
            rate: None,
            delay: Span::ZERO,
            overhead: Bytes::ZERO,
            queue: QueueLimit::Packets(DEFAULT_QUEUE_PACKETS),
            discipline: Discipline::default(),
            shaper: None,
            trace: None,
            schedule: Vec::new(),
            losses: Vec::new(),
            events: Events::Auto,
        }
    }
}

/// What is impossible in a [`LinkConfig`]: the key, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {reason}")]
pub struct LinkConfigError {
    /// Which field, as its path.
    pub key: String,
    /// What is wrong and what would do.
    pub reason: String,
}

impl LinkConfigError {
    pub(crate) fn new(key: impl Into<String>, reason: impl Into<String>) -> LinkConfigError {
        LinkConfigError { key: key.into(), reason: reason.into() }
    }

    pub(crate) fn within(self, key: &str) -> LinkConfigError {
        LinkConfigError { key: format!("{key}: {}", self.key), ..self }
    }

    /// Refuses what is no probability.
    pub(crate) fn probability(key: &str, p: f64) -> Result<(), LinkConfigError> {
        if (0.0..=1.0).contains(&p) {
            return Ok(());
        }
        Err(LinkConfigError::new(key, format!("{p} is not a probability (0 to 1)")))
    }
}

impl LinkConfig {
    /// Refuses impossible values. A link made from them nevertheless does something harmless.
    pub fn check(&self) -> Result<(), LinkConfigError> {
        self.discipline.check().map_err(|error| error.within("discipline"))?;
        self.losses.iter().try_for_each(|loss| loss.check().map_err(|error| error.within("losses")))?;
        if let Some(shaper) = &self.shaper {
            shaper.check().map_err(|error| error.within("shaper"))?;
        }
        if self.rate.is_some_and(|rate| rate.bits_per_second() == 0) {
            let reason = "a rate of zero delivers nothing; an outage is a change in the schedule";
            return Err(LinkConfigError::new("rate", reason));
        }
        if self.delay < Span::ZERO || self.schedule.iter().any(|c| c.delay.is_some_and(|d| d < Span::ZERO)) {
            return Err(LinkConfigError::new("delay", "a delay cannot be negative"));
        }
        let waits = self.rate.is_some()
            || self.trace.is_some()
            || self.shaper.is_some()
            || self.schedule.iter().any(|change| change.rate.is_some());
        if !waits && !self.is_drop_tail() {
            return Err(LinkConfigError::new("discipline", "without a rate nothing ever waits: name a rate"));
        }
        Ok(())
    }

    fn is_drop_tail(&self) -> bool {
        matches!(self.discipline, Discipline::DropTail(_))
    }

    pub(super) fn kind_of_events(&self) -> Events {
        if self.is_drop_tail() && self.shaper.is_none() { self.events } else { Events::PerDequeue }
    }
}

/// The queue of a link whose scenario names none.
pub const DEFAULT_QUEUE_PACKETS: u32 = 50;

/// Larger packets count as this large: keeps 64-bit arithmetic of nanoseconds exact.
pub const MAX_WIRE_BYTES: u64 = 1 << 30;

/// The smallest and the largest packet on any wire, without framing.
const SMALLEST_IP_PACKET: u64 = 28;
pub(crate) const LARGEST_IP_PACKET: u64 = 65_535;
