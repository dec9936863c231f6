//! Who looks on while an engine runs: told of packets, losses and decisions at the moment at which they happen, so
//! that a file of them is written as it grows and never held in memory.

use std::sync::{Arc, Mutex, PoisonError};

use lastmile::endpoint::Event;
use lastmile::node::Datagram;
use lastmile::time::Time;

use super::{Engine, NodeId};
use crate::network::carrier::{Lost, Tell};

/// Is told of every packet that goes from a node to another: when, which two nodes, and the packet.
pub type Tap = Box<dyn FnMut(Time, NodeId, NodeId, &Datagram) + Send>;
/// Is told of every packet that a link or a WLAN loses: when that is decided, by which node, and the packet.
pub type LostTap = Box<dyn FnMut(Time, NodeId, &Lost<'_>) + Send>;
/// Is told of every decision of an endpoint: when in the time of the engine, and the event.
pub type DecisionTap = Box<dyn FnMut(Time, &Event) + Send>;

#[derive(Default)]
pub(super) struct Taps {
    pub(super) packets: Option<Tap>,
    pub(super) decisions: Option<DecisionTap>,
}

impl core::fmt::Debug for Taps {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (packets, decisions) = (self.packets.is_some(), self.decisions.is_some());
        f.debug_struct("Taps").field("packets", &packets).field("decisions", &decisions).finish()
    }
}

impl Engine {
    /// Has `tap` told of every packet that goes from a node to another, after those that were added before; of
    /// one that is dropped in a queue, only up to there.
    pub fn set_tap(&mut self, mut tap: Tap) {
        self.taps.packets = Some(match self.taps.packets.take() {
            None => tap,
            Some(mut before) => Box::new(move |now, from, to, datagram| {
                before(now, from, to, datagram);
                tap(now, from, to, datagram);
            }),
        });
    }

    /// Has `tap` told of every packet that the links and WLANs which the engine has now lose, after those that
    /// were added before.
    pub fn add_lost_tap(&mut self, tap: LostTap) {
        let tap = Arc::new(Mutex::new(tap));
        for (number, slot) in self.slots.iter_mut().enumerate() {
            let (shared, node) = (Arc::clone(&tap), NodeId(number as u32));
            let tell = Tell(Box::new(move |lost| {
                (shared.lock().unwrap_or_else(PoisonError::into_inner))(lost.at, node, lost);
            }));
            if let Some(carrier) = slot.element.carrier_mut() {
                carrier.losses_mut().tell(tell);
            }
        }
    }

    /// Has `tap` told of every decision of an endpoint, with the engine's time at which it was made.
    pub fn add_decision_tap(&mut self, mut tap: DecisionTap) {
        self.taps.decisions = Some(match self.taps.decisions.take() {
            None => tap,
            Some(mut before) => Box::new(move |now, event| {
                before(now, event);
                tap(now, event);
            }),
        });
    }

    /// Tells those who look on of a decision that was made outside of the engine: by an endpoint in the lab, whose clock
    /// is the engine's. It may have been made a while ago.
    pub fn tell_decision(&mut self, event: &Event) {
        if let Some(tap) = &mut self.taps.decisions {
            tap(event.at, event);
        }
    }
}
