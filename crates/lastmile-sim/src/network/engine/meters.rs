//! Meters at queues.

use lastmile::node::PortId;

use super::{Engine, EngineError, NodeId};
use crate::network::carrier::Carrier;
use crate::network::meter::{Meter, MeterConfig};

impl Engine {
    /// Attaches a meter to the queue before a port of a link or WLAN; a queue may have several, one for each measured flow.
    /// [`meter`](Engine::meter) finds it by the number returned here. On a shared medium the meter tells arrivals alone, since one
    /// queue does not decide the spare rate there: see [`twin`](crate::monitor::twin).
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
