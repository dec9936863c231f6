//! What became of the packets that did not arrive: [`DropCause`], and a log of them for who wants each one.

use lastmile::node::Datagram;
use lastmile::time::Time;

/// The true cause of a loss.
///
/// ```
/// use lastmile_sim::network::link::DropCause;
/// assert!(DropCause::QueueFull.is_congestion() && DropCause::Early.is_congestion());
/// assert!(!DropCause::Channel.is_congestion());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DropCause {
    /// The queue had no room.
    QueueFull,
    /// The queue's discipline dropped it to signal congestion.
    Early,
    /// The channel lost it.
    Channel,
}

impl DropCause {
    /// All causes.
    ///
    /// ```
    /// # use lastmile_sim::network::link::DropCause;
    /// assert!(DropCause::ALL.contains(&DropCause::Channel));
    /// ```
    pub const ALL: [DropCause; 3] = [DropCause::QueueFull, DropCause::Early, DropCause::Channel];

    /// One word for tables.
    ///
    /// ```
    /// # use lastmile_sim::network::link::DropCause;
    /// assert_eq!(DropCause::Early.name(), "early");
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            DropCause::QueueFull => "queue",
            DropCause::Early => "early",
            DropCause::Channel => "channel",
        }
    }

    /// Whether load is to blame.
    ///
    /// ```
    /// # use lastmile_sim::network::link::DropCause;
    /// assert!(!DropCause::Channel.is_congestion());
    /// ```
    pub fn is_congestion(self) -> bool {
        !matches!(self, DropCause::Channel)
    }
}

/// One packet that did not arrive.
///
/// ```
/// use lastmile::{node::Datagram, time::Time};
/// use lastmile_sim::network::link::{DropCause, Dropped};
/// let any = "10.0.0.1:1".parse().unwrap();
/// let lost = Dropped { at: Time::ZERO, cause: DropCause::Channel, datagram: Datagram::udp(any, any, vec![]) };
/// assert!(!lost.cause.is_congestion());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// When the queue dropped it, or when it would have arrived.
    pub at: Time,
    /// Why.
    pub cause: DropCause,
    /// The packet.
    pub datagram: Datagram,
}

/// A log of drops that holds at most so many. Asked only when a packet is dropped, so that a link without one
/// pays nothing.
#[derive(Debug)]
pub(super) struct DropLog {
    limit: usize,
    drops: Vec<Dropped>,
    pub(super) left_out: u64,
}

impl DropLog {
    pub(super) fn new(limit: usize) -> DropLog {
        DropLog { limit, drops: Vec::new(), left_out: 0 }
    }

    pub(super) fn push(&mut self, drop: Dropped) {
        if self.drops.len() < self.limit {
            self.drops.push(drop);
        } else {
            self.left_out += 1;
        }
    }

    pub(super) fn take(&mut self) -> Vec<Dropped> {
        core::mem::take(&mut self.drops)
    }
}
