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

/// A node of the engine. All variants are [`Node`]s; the enum spares links and traffic the indirect call, and has the
/// engine hand packets from link to link without taking them into its hand.
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
    Other(Box<dyn Node<Event = Infallible> + Send>),
}

impl core::fmt::Debug for Element {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Element::Link(link) => link.fmt(f),
            Element::Wlan(wlan) => wlan.fmt(f),
            Element::Source(source) => source.fmt(f),
            Element::Sink(sink) => sink.fmt(f),
            Element::TcpSender(sender) => sender.fmt(f),
            Element::TcpReceiver(receiver) => receiver.fmt(f),
            Element::Host(host) => host.fmt(f),
            Element::External(external) => external.fmt(f),
            Element::Other(_) => f.write_str("Other"),
        }
    }
}

impl Element {
    /// What it is to meters, taps and results, if it carries packets.
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

    /// What it has cost beside the engine's own events.
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

    /// Tells it that the time which it named has come, unless it looks at the time alone.
    #[inline]
    pub(crate) fn wake(&mut self, now: Time) {
        match self {
            Element::Link(_)
            | Element::Source(_)
            | Element::Sink(_)
            | Element::TcpSender(_)
            | Element::TcpReceiver(_) => {}
            other => other.handle(now, Input::Wake),
        }
    }
}

/// What a node that decides nothing gives, as what any node gives.
#[inline]
fn silent<E>(output: Output) -> Output<E> {
    output.map(|never| match never {})
}

impl Node for Element {
    type Event = Decided;

    #[inline]
    fn handle(&mut self, now: Time, input: Input) {
        match self {
            Element::Link(link) => link.handle(now, input),
            Element::Wlan(wlan) => wlan.handle(now, input),
            Element::Source(source) => source.handle(now, input),
            Element::Sink(sink) => sink.handle(now, input),
            Element::TcpSender(sender) => sender.handle(now, input),
            Element::TcpReceiver(receiver) => receiver.handle(now, input),
            Element::Host(host) => host.handle(now, input),
            Element::External(external) => external.handle(now, input),
            Element::Other(node) => node.handle(now, input),
        }
    }

    #[inline]
    fn poll(&mut self, now: Time) -> Output<Decided> {
        match self {
            Element::Link(link) => silent(link.poll(now)),
            Element::Wlan(wlan) => silent(wlan.poll(now)),
            Element::Source(source) => silent(source.poll(now)),
            Element::Sink(sink) => silent(sink.poll(now)),
            Element::TcpSender(sender) => silent(sender.poll(now)),
            Element::TcpReceiver(receiver) => silent(receiver.poll(now)),
            Element::Host(host) => host.poll(now),
            Element::External(external) => silent(external.poll(now)),
            Element::Other(node) => silent(node.poll(now)),
        }
    }
}

macro_rules! from {
    ($($variant:ident($type:ty) = $make:expr),+ $(,)?) => {
        $(impl From<$type> for Element {
            fn from(it: $type) -> Element {
                Element::$variant($make(it))
            }
        })+
    };
}
from! {
    Link(Link) = Box::new,
    Wlan(Medium) = Box::new,
    Source(Source) = Box::new,
    Sink(Sink) = Box::new,
    TcpSender(tcp::Sender) = Box::new,
    TcpReceiver(tcp::Receiver) = Box::new,
    Host(Host) = Box::new,
    External(External) = Box::new,
    Other(Box<dyn Node<Event = Infallible> + Send>) = std::convert::identity,
}
