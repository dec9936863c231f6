//! [`Element`]: all that the engine can wake, by enum dispatch.

use core::convert::Infallible;

use lastmile::endpoint::Decided;
use lastmile::node::{Input, Node, Output};
use lastmile::time::Time;

use crate::network::carrier::{Carrier, Cost};
use crate::network::host::{External, Host};
use crate::network::link::Link;
use crate::network::tcp;
use crate::network::traffic::{Sink, Source};
use crate::network::wlan::Medium;

/// A node of the engine. The enum spares links and traffic the indirect call, and has the engine hand packets from link to
/// link without taking them into its hand.
#[derive(Debug)]
pub enum Element {
    /// One direction of a link.
    Link(Box<Link>),
    /// A WLAN: all stations on one channel.
    Wlan(Box<Medium>),
    /// A source of the simulator's own traffic.
    Source(Box<Source>),
    /// The end of the simulator's own traffic.
    Sink(Box<Sink>),
    /// The sending end of a TCP connection.
    TcpSender(Box<tcp::Sender>),
    /// The receiving end of a TCP connection.
    TcpReceiver(Box<tcp::Receiver>),
    /// A host with endpoints.
    Host(Box<Host>),
    /// A host outside the engine.
    External(Box<External>),
    /// Any other node, in the engine's time and without a clock of its own.
    Other(Other),
}

/// See [`Element::other`].
pub struct Other(Box<dyn Node<Event = Infallible> + Send>);

impl core::fmt::Debug for Other {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Other")
    }
}

impl Element {
    /// Any other node that decides nothing.
    pub fn other(node: impl Node<Event = Infallible> + Send + 'static) -> Element {
        Element::Other(Other(Box::new(node)))
    }

    /// Its view for meters, taps and results; `None` if it carries no packets.
    pub(crate) fn carrier(&self) -> Option<&dyn Carrier> {
        match self {
            Element::Link(link) => Some(link.as_ref()),
            Element::Wlan(wlan) => Some(wlan.as_ref()),
            _ => None,
        }
    }

    /// The same, to attach to.
    pub(crate) fn carrier_mut(&mut self) -> Option<&mut dyn Carrier> {
        match self {
            Element::Link(link) => Some(link.as_mut()),
            Element::Wlan(wlan) => Some(wlan.as_mut()),
            _ => None,
        }
    }

    /// Memory, and events beside the engine's own.
    pub(crate) fn cost(&self) -> Cost {
        let memory = match self {
            Element::Link(link) => return link.cost(),
            Element::Wlan(wlan) => return wlan.cost(),
            Element::TcpSender(sender) => sender.memory(),
            Element::TcpReceiver(receiver) => receiver.memory(),
            _ => 0,
        };
        Cost { memory, events: 0 }
    }

    /// Tells it something. Links, traffic and TCP are given packets in a shorter way, and look at the time alone.
    #[inline]
    pub(crate) fn handle(&mut self, now: Time, input: Input) {
        match self {
            Element::Wlan(wlan) => wlan.handle(now, input),
            Element::Host(host) => host.handle(now, input),
            Element::External(external) => external.handle(now, input),
            Element::Other(node) => node.0.handle(now, input),
            Element::Link(_)
            | Element::Source(_)
            | Element::Sink(_)
            | Element::TcpSender(_)
            | Element::TcpReceiver(_) => {}
        }
    }

    /// Its next output; nothing for elements that the engine asks in a shorter way.
    #[inline]
    pub(crate) fn poll(&mut self, now: Time) -> Output<Decided> {
        let silent = |output: Output| output.map(|never| match never {});
        match self {
            Element::Wlan(wlan) => silent(wlan.poll(now)),
            Element::Host(host) => host.poll(now),
            Element::External(external) => silent(external.poll(now)),
            Element::Other(node) => silent(node.0.poll(now)),
            Element::Link(_)
            | Element::Source(_)
            | Element::Sink(_)
            | Element::TcpSender(_)
            | Element::TcpReceiver(_) => Output::Wait(None),
        }
    }
}

macro_rules! from {
    ($($variant:ident($type:ty)),+ $(,)?) => {
        $(impl From<$type> for Element {
            fn from(it: $type) -> Element {
                Element::$variant(Box::new(it))
            }
        })+
    };
}
from!(Link(Link), Wlan(Medium), Source(Source), Sink(Sink), Host(Host), External(External));
from!(TcpSender(tcp::Sender), TcpReceiver(tcp::Receiver));
