//! Configuration of a link: [`LinkConfig`].

use std::sync::Arc;

use lastmile::time::Span;
use lastmile::units::{Bytes, Rate};
use serde::Deserialize;

use super::Change;
use crate::network::config_error::{ConfigError, require};
use crate::network::jitter::Jitter;
use crate::network::loss::Loss;
use crate::network::meter::Profile;
use crate::network::queue::{Discipline, QueueLimit, TokenBucket};
use crate::network::trace::Trace;

/// The packet size that every link must carry (RFC 791, section 3.2).
const LEAST_MTU: Bytes = Bytes(68);

/// When a link wakes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Events {
    /// At arrivals alone where departures can be computed beforehand, otherwise per dequeue.
    #[default]
    Auto,
    /// Whenever the transmitter fetches a packet: for links whose waiting packets a hand-off may drop.
    PerDequeue,
}

/// One direction of a link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkConfig {
    /// Bits per second of frames: IP packets and [`overhead`](LinkConfig::overhead). Without one the link only
    /// delays.
    pub rate: Option<Rate>,
    /// From the last bit's departure to its arrival.
    pub delay: Span,
    /// Bytes of framing around every IP packet.
    pub overhead: Bytes,
    /// Limit of the queue, without the packet in transmission. A discipline with a limit of its own
    /// (`tc red`) overrides it.
    pub queue: QueueLimit,
    /// Drops and marks before the queue is full.
    pub discipline: Discipline,
    /// A token bucket between queue and transmitter.
    pub shaper: Option<TokenBucket>,
    /// A token bucket before the queue: packets that find no tokens are dropped. Not beside a shaper.
    pub policer: Option<TokenBucket>,
    /// The largest IP packet that it takes, without framing; larger ones are dropped.
    pub mtu: Option<Bytes>,
    /// A trace instead of a rate: of rates, or of delivery opportunities.
    pub trace: Option<Arc<Trace>>,
    /// Changes known beforehand, in any order; of two at one time the later in the list holds.
    pub schedule: Vec<Change>,
    /// Channels that lose packets, each with random draws of its own. A packet passes all of them.
    pub losses: Vec<Loss>,
    /// The jitter: by how much packets come later than the delay.
    pub jitter: Option<Jitter>,
    /// When the link wakes.
    pub events: Events,
}

impl LinkConfig {
    /// Refuses impossible values. A link made from them nevertheless does something harmless.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.discipline.check().map_err(|error| error.within("discipline"))?;
        self.losses.iter().try_for_each(|loss| loss.check().map_err(|error| error.within("losses")))?;
        if let Some(shaper) = &self.shaper {
            shaper.check().map_err(|error| error.within("shaper"))?;
        }
        if let Some(policer) = &self.policer {
            policer.check().map_err(|error| error.within("policer"))?;
        }
        if let Some(jitter) = &self.jitter {
            jitter.check().map_err(|error| error.within("jitter"))?;
        }
        let one = self.shaper.is_none() || self.policer.is_none();
        require(one, "policer", "a link has a shaper or a policer: give the other one a link of its own")?;
        let mtu = self.mtu.is_none_or(|mtu| mtu >= LEAST_MTU);
        require(mtu, "mtu", format!("less than {LEAST_MTU}, which every link must carry (RFC 791)"))?;
        let rate = self.rate.is_none_or(|rate| rate.bits_per_second() > 0);
        require(rate, "rate", "a rate of zero delivers nothing; an outage is a change in the schedule")?;
        let delays = [self.delay].into_iter().chain(self.schedule.iter().filter_map(|change| change.delay));
        require(delays.min() >= Some(Span::ZERO), "delay", "a delay cannot be negative")?;
        let waits = self.rate.is_some()
            || self.trace.is_some()
            || self.shaper.is_some()
            || self.schedule.iter().any(|change| change.rate.is_some());
        let reason = "without a rate nothing ever waits: name a rate";
        require(waits || self.is_drop_tail(), "discipline", reason)
    }

    /// Capacity of the link over time.
    pub(crate) fn profile(&self) -> Profile {
        let changes = self.schedule.iter().filter_map(|change| Some((change.at.as_nanos(), change.rate?)));
        let queue = self.discipline.limit().unwrap_or(self.queue);
        let shaper = self.shaper.as_ref().map(|shaper| (shaper, queue));
        // Nothing waits for a policer's tokens.
        let policer = self.policer.as_ref().map(|policer| (policer, QueueLimit::Packets(0)));
        Profile::new(self.rate, shaper.or(policer), changes.collect(), self.trace.clone())
    }

    fn is_drop_tail(&self) -> bool {
        matches!(self.discipline, Discipline::DropTail(_))
    }

    pub(super) fn kind_of_events(&self) -> Events {
        if self.is_drop_tail() && self.shaper.is_none() { self.events } else { Events::PerDequeue }
    }
}
