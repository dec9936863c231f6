//! A log of the packets that a link dropped or lost, for who wants each one.

use lastmile::node::Datagram;
use lastmile::time::Time;

use crate::network::carrier::LossCause;

/// One packet that did not arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// When the queue dropped it, or when it would have arrived.
    pub at: Time,
    /// Why.
    pub cause: LossCause,
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
