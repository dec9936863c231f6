//! Taps see packets, losses and decisions at the moment at which they happen, so that a file of them is written as it
//! grows and never held in memory.

use std::sync::{Arc, Mutex, PoisonError};

use lastmile::endpoint::Event;
use lastmile::node::Datagram;
use lastmile::time::Time;

use super::{Engine, NodeId};
use crate::network::lost::Lost;

/// Called for every packet between two nodes: time, both nodes, packet.
pub type Tap = Box<dyn FnMut(Time, NodeId, NodeId, &Datagram) + Send>;
/// Called for every lost packet: time of the decision, node, packet.
pub type LostTap = Box<dyn FnMut(Time, NodeId, &Lost<'_>) + Send>;
/// Called for every decision of an endpoint: the engine's time, event.
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
    /// Calls `tap` for every packet between two nodes, after the taps that were added before. A packet dropped in a queue
    /// is seen up to there.
    pub fn set_tap(&mut self, tap: Tap) {
        self.taps.packets.push(tap);
    }

    /// Calls `tap` for every packet that the present nodes lose, after the taps that were added before.
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

    /// Calls `tap` for every decision of an endpoint, with the engine's time.
    pub fn add_decision_tap(&mut self, tap: DecisionTap) {
        self.taps.decisions.push(tap);
    }

    /// Calls the taps for a decision outside of the engine: that of an endpoint in the lab, by the engine's clock, possibly some
    /// time ago.
    pub fn tell_decision(&mut self, event: &Event) {
        self.taps.decisions.iter_mut().for_each(|tap| tap(event.at, event));
    }
}
