//! What looks on at queues.

use lastmile::node::PortId;

use super::{Engine, EngineError, NodeId};
use crate::network::carrier::Carrier;
use crate::network::meter::{Meter, MeterConfig};

impl Engine {
    /// Attaches a meter to the queue before a port of a link or a WLAN, of which either may have several, one for
    /// each measured flow. Gives the number by which [`meter`](Engine::meter) finds it. On a WLAN it tells when streams
    /// came there: what is spare on a medium that many share is no matter of one queue; see
    /// [`twin`](crate::runs::twin).
    pub fn attach_meter(
        &mut self,
        node: NodeId,
        port: PortId,
        config: MeterConfig,
    ) -> Result<usize, EngineError> {
        let attached = self.carrier_mut(node).and_then(|carrier| carrier.attach(port, config));
        attached.ok_or(EngineError::NotMeterable { node: node.0 })
    }

    /// A meter of a link or a WLAN.
    pub fn meter(&self, node: NodeId, number: usize) -> Option<&Meter> {
        self.carrier(node)?.meter(number)
    }

    /// A meter of a link or a WLAN, to make it forget.
    pub fn meter_mut(&mut self, node: NodeId, number: usize) -> Option<&mut Meter> {
        self.carrier_mut(node)?.meter_mut(number)
    }

    /// A node, if it carries packets.
    pub(crate) fn carrier(&self, node: NodeId) -> Option<&dyn Carrier> {
        self.element(node)?.carrier()
    }

    fn carrier_mut(&mut self, node: NodeId) -> Option<&mut dyn Carrier> {
        self.slots.get_mut(node.0 as usize)?.element.carrier_mut()
    }
}
