//! Who looks on while an engine runs: told of packets, losses and decisions at the moment at which they happen, so
//! that a file of them is written as it grows and never held in memory.

use std::sync::{Arc, Mutex, PoisonError};

use lastmile::endpoint::Event;
use lastmile::node::Datagram;
use lastmile::time::Time;

use super::{Engine, NodeId};
use crate::network::lost::Lost;

/// Is told of every packet that goes from a node to another: when, which two nodes, and the packet.
pub type Tap = Box<dyn FnMut(Time, NodeId, NodeId, &Datagram) + Send>;
/// Is told of every packet that is lost: when that is decided, by which node, and the packet.
pub type LostTap = Box<dyn FnMut(Time, NodeId, &Lost<'_>) + Send>;
/// Is told of every decision of an endpoint: when in the time of the engine, and the event.
pub type DecisionTap = Box<dyn FnMut(Time, &Event) + Send>;

#[derive(Default)]
pub(super) struct Taps {
    pub(super) packets: Vec<Tap>,
    pub(super) decisions: Vec<DecisionTap>,
}

impl core::fmt::Debug for Taps {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Taps")
    }
}

impl Engine {
    /// Has `tap` told of every packet that goes from a node to another, after those that were added before; of
    /// one that is dropped in a queue, only up to there.
    pub fn set_tap(&mut self, tap: Tap) {
        self.taps.packets.push(tap);
    }

    /// Has `tap` told of every packet that the nodes which the engine has now lose, after those that were added before.
    pub fn add_lost_tap(&mut self, tap: LostTap) {
        let tap = Arc::new(Mutex::new(tap));
        for (number, slot) in self.slots.iter_mut().enumerate() {
            let (shared, node) = (Arc::clone(&tap), NodeId(number as u32));
            if let Some(carrier) = slot.element.carrier_mut() {
                carrier.losses_mut().tell(move |lost| {
                    (shared.lock().unwrap_or_else(PoisonError::into_inner))(lost.at, node, lost);
                });
            }
        }
    }

    /// Has `tap` told of every decision of an endpoint, with the engine's time at which it was made.
    pub fn add_decision_tap(&mut self, tap: DecisionTap) {
        self.taps.decisions.push(tap);
    }

    /// Tells those who look on of a decision that was made outside of the engine: by an endpoint in the lab, whose clock
    /// is the engine's. It may have been made a while ago.
    pub fn tell_decision(&mut self, event: &Event) {
        self.taps.decisions.iter_mut().for_each(|tap| tap(event.at, event));
    }
}
