//! Views of an engine's nodes.

use super::{Engine, NodeId};
use crate::network::element::Element;
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
}

macro_rules! nodes_of_a_kind {
    ($($(#[$doc:meta])* $name:ident: $kind:ident($of:ty);)+) => {
        impl Engine {$(
            $(#[$doc])*
            pub fn $name(&self, node: NodeId) -> Option<&$of> {
                if let Element::$kind(it) = self.element(node)? { Some(it) } else { None }
            }
        )+}
    };
}

nodes_of_a_kind! {
    /// A node, if it is a link.
    link: Link(Link);
    /// A node, if it is a WLAN.
    wlan: Wlan(Medium);
    /// A node, if it is a sink.
    sink: Sink(Sink);
    /// A node, if it is the sending end of a TCP connection.
    tcp_sender: TcpSender(tcp::Sender);
    /// A node, if it is the receiving end of a TCP connection.
    tcp_receiver: TcpReceiver(tcp::Receiver);
}
