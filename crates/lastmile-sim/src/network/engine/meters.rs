//! What looks on at queues.

use lastmile::node::PortId;

use super::{Engine, EngineError, NodeId};
use crate::network::element::Element;
use crate::network::meter::{Meter, MeterConfig};

impl Engine {
    /// Attaches a meter to a link's queue; a link may have several, one for each measured flow. Gives the
    /// number by which [`meter`](Engine::meter) finds it.
    pub fn attach_meter(&mut self, link: NodeId, config: MeterConfig) -> Result<usize, EngineError> {
        let refuse = EngineError::NotMeterable { node: link.0 };
        match self.element_mut(link) {
            Some(Element::Link(link)) => link.attach(config).ok_or(refuse),
            _ => Err(refuse),
        }
    }

    /// Attaches a meter to the queue before a port of a WLAN: it tells when streams came there. What is spare
    /// on a medium that many share is no matter of one queue; see [`twin`](crate::runs::twin).
    pub fn attach_wlan_meter(
        &mut self,
        wlan: NodeId,
        port: PortId,
        config: MeterConfig,
    ) -> Result<usize, EngineError> {
        let refuse = EngineError::NotMeterable { node: wlan.0 };
        match self.element_mut(wlan) {
            Some(Element::Wlan(wlan)) => wlan.attach(port, config).ok_or(refuse),
            _ => Err(refuse),
        }
    }

    /// A meter of a link or a WLAN.
    pub fn meter(&self, node: NodeId, number: usize) -> Option<&Meter> {
        match self.element(node)? {
            Element::Link(link) => link.meter(number),
            Element::Wlan(wlan) => wlan.meter(number),
            _ => None,
        }
    }

    /// A meter of a link or a WLAN, to make it forget.
    pub fn meter_mut(&mut self, node: NodeId, number: usize) -> Option<&mut Meter> {
        match self.element_mut(node)? {
            Element::Link(link) => link.meter_mut(number),
            Element::Wlan(wlan) => wlan.meter_mut(number),
            _ => None,
        }
    }

    fn element_mut(&mut self, node: NodeId) -> Option<&mut Element> {
        self.slots.get_mut(node.0 as usize).map(|slot| &mut slot.element)
    }
}
