//! What looks on at queues.

use lastmile::node::PortId;

use super::{Engine, EngineError, NodeId};
use crate::network::carrier::Carrier;
use crate::network::meter::{Meter, MeterConfig};

impl Engine {
    /// Attaches a meter to the queue before a port of what carries packets, of which there may be several, one for each
    /// measured flow. Gives the number by which [`meter`](Engine::meter) finds it. Where others send by the same medium it
    /// tells when streams came: what is spare there is no matter of one queue; see [`twin`](crate::monitor::twin).
    pub fn attach_meter(
        &mut self,
        node: NodeId,
        port: PortId,
        config: MeterConfig,
    ) -> Result<usize, EngineError> {
        let attached = self.carrier_mut(node).and_then(|carrier| carrier.attach(port, config));
        attached.ok_or(EngineError::NotMeterable(node.0))
    }

    /// An attached meter.
    pub fn meter(&self, node: NodeId, number: usize) -> Option<&Meter> {
        self.carrier(node)?.meter(number)
    }

    /// A node, if it carries packets.
    pub(crate) fn carrier(&self, node: NodeId) -> Option<&dyn Carrier> {
        self.element(node)?.carrier()
    }

    fn carrier_mut(&mut self, node: NodeId) -> Option<&mut dyn Carrier> {
        self.slots.get_mut(node.0 as usize)?.element.carrier_mut()
    }
}
