//! What can be seen of an engine's nodes.

use super::{Engine, NodeId};
use crate::network::element::Element;
use crate::network::host::External;
use crate::network::link::Link;
use crate::network::tcp;
use crate::network::traffic::Sink;
use crate::network::wlan::Medium;

impl Engine {
    /// Nodes in the order of their numbers.
    pub fn elements(&self) -> impl Iterator<Item = (NodeId, &Element)> {
        self.slots.iter().enumerate().map(|(node, slot)| (NodeId(node as u32), &slot.element))
    }

    /// A node.
    pub fn element(&self, node: NodeId) -> Option<&Element> {
        self.slots.get(node.0 as usize).map(|slot| &slot.element)
    }

    /// A node, if it is a link.
    pub fn link(&self, node: NodeId) -> Option<&Link> {
        match self.element(node)? {
            Element::Link(link) => Some(link),
            _ => None,
        }
    }

    /// A node, if it is a WLAN.
    pub fn wlan(&self, node: NodeId) -> Option<&Medium> {
        match self.element(node)? {
            Element::Wlan(wlan) => Some(wlan),
            _ => None,
        }
    }

    /// A node, if it is a WLAN, to take its losses.
    pub fn wlan_mut(&mut self, node: NodeId) -> Option<&mut Medium> {
        match &mut self.slots.get_mut(node.0 as usize)?.element {
            Element::Wlan(wlan) => Some(wlan),
            _ => None,
        }
    }

    /// A node, if it is a sink.
    pub fn sink(&self, node: NodeId) -> Option<&Sink> {
        match self.element(node)? {
            Element::Sink(sink) => Some(sink),
            _ => None,
        }
    }

    /// A node, if it is the sending end of a TCP connection.
    pub fn tcp_sender(&self, node: NodeId) -> Option<&tcp::Sender> {
        match self.element(node)? {
            Element::TcpSender(sender) => Some(sender),
            _ => None,
        }
    }

    /// A node, if it is the receiving end of a TCP connection.
    pub fn tcp_receiver(&self, node: NodeId) -> Option<&tcp::Receiver> {
        match self.element(node)? {
            Element::TcpReceiver(receiver) => Some(receiver),
            _ => None,
        }
    }

    /// A node, if it is an external host.
    pub fn external(&self, node: NodeId) -> Option<&External> {
        match self.element(node)? {
            Element::External(external) => Some(external),
            _ => None,
        }
    }
}
