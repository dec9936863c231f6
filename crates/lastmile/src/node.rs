//! [`Node`]: the one trait of everything that handles packets, from a measuring endpoint to a simulated link.
//!
//! # The loop
//! A driver owns the clock and carries the packets. It calls [`Node::handle`] when something happened and then
//! [`Node::poll`] until that answers [`Output::Wait`]:
//!
//! 1. `now` never goes back. A datagram's own stamp `at` may lie before `now`: the kernel stamps a packet when
//!    it arrives, the driver reads it later.
//! 2. After every `handle`, `poll` is called **at the same `now`** until it answers `Wait`. The answers of `poll`
//!    may change only after `handle`, or at the time that `Wait` named; then the driver calls `handle`
//!    with [`Input::Wake`]. So the list of inputs, each with its `now`, determines all outputs: this
//!    makes a recording replayable.
//! 3. [`Transmit::at`] may lie ahead, by up to one probe stream: the driver keeps the packet until then. Equal
//!    `at` means back to back, in the order in which they were polled. A node may hand over a whole stream at
//!    once, so that a sending thread meets its deadlines without asking the node again.
//! 4. For every `Transmit` but [untracked](TransmitId::UNTRACKED) ones the driver answers once, with [`Input::Sent`] and the time at which the packet really
//!    left (where the kernel stamps it: when it entered the queue of its interface, which is part of the path), or with
//!    [`Input::Failed`]. [`Input::Queued`] comes just before for a packet that was held up in that queue. From these the
//!    endpoint, and never the driver, judges a stream's schedule.
//! 5. Inputs at equal times are handled in the order of their sequence numbers in the driver's queue.
//!
//! A node's decisions are of its own type, [`Node::Event`]. The contract says only when they are told.
//!
//! ```
//! use lastmile::node::*;
//! use lastmile::time::{Span, Time};
//!
//! /// Sends every datagram back, one millisecond later.
//! #[derive(Default)]
//! struct Echo { out: Vec<Transmit> }
//!
//! impl Node for Echo {
//!     type Event = std::convert::Infallible; // it decides nothing
//!     fn handle(&mut self, now: Time, input: Input) {
//!         if let Input::Datagram { port, at, mut datagram } = input {
//!             std::mem::swap(&mut datagram.from, &mut datagram.to);
//!             self.out.push(Transmit { id: TransmitId(0), at: at + Span::from_millis(1), port, datagram });
//!         }
//!     }
//!     fn poll(&mut self, _now: Time) -> Output {
//!         self.out.pop().map_or(Output::Wait(None), Output::Transmit)
//!     }
//! }
//!
//! let mut echo = Echo::default();
//! let (a, b) = ("10.0.0.1:1".parse().unwrap(), "10.0.0.2:862".parse().unwrap());
//! let datagram = Datagram::udp(a, b, b"ping".to_vec());
//! let now = Time::from_nanos(5);
//! echo.handle(now, Input::Datagram { port: PortId(0), at: now, datagram });
//! let Output::Transmit(reply) = echo.poll(now) else { panic!() };
//! assert_eq!(reply.at - now, Span::from_millis(1)); // planned, not yet due
//! assert_eq!(reply.datagram.to, a);
//! assert!(matches!(echo.poll(now), Output::Wait(None)));
//! ```

use core::convert::Infallible;
use core::net::SocketAddr;

use crate::time::{Span, Time};
use crate::units::{Bytes, IpVersion};

/// An interface or socket of a node, numbered from zero by the program that wires the node up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct PortId(pub u16);

/// The name that a node gives to one of its packets, to recognise it in [`Input::Sent`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct TransmitId(pub u64);

impl TransmitId {
    /// The name of a packet whose departure nobody waits for: the driver answers nothing for it, and asks the
    /// kernel for no stamp.
    pub const UNTRACKED: TransmitId = TransmitId(0);
}

/// A label that links and observers may read to tell flows apart; real networks do not carry it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Flow(pub u32);

/// The ECN codepoint of the IP header (RFC 3168, section 5).
///
/// ```
/// use lastmile::node::Ecn;
/// assert_eq!(Ecn::from_bits(0b11), Ecn::Ce);
/// assert_eq!(Ecn::Ect0 as u8, 0b10);
/// assert!(!Ecn::NotEct.is_capable());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[repr(u8)]
pub enum Ecn {
    /// The sender does not take marks.
    #[default]
    NotEct = 0b00,
    /// ECN-capable, codepoint 01 (L4S, RFC 9331).
    Ect1 = 0b01,
    /// ECN-capable, codepoint 10.
    Ect0 = 0b10,
    /// Congestion experienced: a queue marked the packet.
    Ce = 0b11,
}

impl Ecn {
    /// The codepoint in the two low bits of `bits`.
    ///
    /// ```
    /// # use lastmile::node::Ecn;
    /// assert_eq!(Ecn::from_bits(0b101), Ecn::Ect1); // only the two low bits count
    /// ```
    pub const fn from_bits(bits: u8) -> Ecn {
        match bits & 0b11 {
            0b00 => Ecn::NotEct,
            0b01 => Ecn::Ect1,
            0b10 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// True if a queue may mark this packet instead of dropping it.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Ecn::NotEct)
    }
}

/// The contents of a packet.
///
/// ```
/// use lastmile::node::{Model, Payload};
/// use lastmile::units::{Bytes, IpVersion};
/// assert_eq!(Payload::Udp(vec![0; 100]).ip_size(IpVersion::V4), Bytes(128));
/// assert_eq!(Payload::Ip(vec![0; 100]).ip_size(IpVersion::V4), Bytes(100));
/// assert_eq!(Payload::Model(Model { ip_size: 1500, words: [0; 4] }).ip_size(IpVersion::V6), Bytes(1500));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// The payload of a UDP datagram, as endpoints send and receive it.
    Udp(Vec<u8>),
    /// A whole IP packet with its headers, as foreign programs send it through the lab.
    Ip(Vec<u8>),
    /// A packet of the simulator's own traffic, which has a size and no bytes.
    Model(Model),
}

/// A packet without bytes: its size, and a few words that only the simulator's traffic understands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Model {
    /// Size in bytes with the IP header.
    pub ip_size: u32,
    /// Sequence numbers and the like, in a layout that its own source and sink agreed on.
    pub words: [u64; 4],
}

impl Payload {
    /// The size of the packet with its IP header; the version matters only to [`Payload::Udp`].
    pub fn ip_size(&self, version: IpVersion) -> Bytes {
        match self {
            Payload::Udp(bytes) => Bytes(bytes.len() as u64) + version.udp_overhead(),
            Payload::Ip(bytes) => Bytes(bytes.len() as u64),
            Payload::Model(model) => Bytes(u64::from(model.ip_size)),
        }
    }

    /// The UDP payload, if this is one.
    pub fn udp(&self) -> Option<&[u8]> {
        match self {
            Payload::Udp(bytes) => Some(bytes),
            _ => None,
        }
    }
}

/// A packet: addresses, the IP header fields that matter, and its payload.
///
/// ```
/// use lastmile::node::Datagram;
/// use lastmile::units::Bytes;
/// let (a, b) = ("[::1]:9".parse().unwrap(), "[::2]:862".parse().unwrap());
/// assert_eq!(Datagram::udp(a, b, vec![0; 44]).ip_size(), Bytes(92));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Source address. A node that leaves the port or the address unspecified lets the driver fill it in.
    pub from: SocketAddr,
    /// Destination address.
    pub to: SocketAddr,
    /// The label of the flow it belongs to.
    pub flow: Flow,
    /// The ECN codepoint.
    pub ecn: Ecn,
    /// The DiffServ codepoint, six bits.
    pub dscp: u8,
    /// The hop limit (IPv4: TTL) as received; zero where it is unknown or left to the driver.
    pub hop_limit: u8,
    /// Its contents.
    pub payload: Payload,
}

impl Datagram {
    /// A UDP datagram of the default flow, not ECN-capable, best effort.
    pub fn udp(from: SocketAddr, to: SocketAddr, payload: Vec<u8>) -> Datagram {
        Datagram {
            from,
            to,
            flow: Flow::default(),
            ecn: Ecn::NotEct,
            dscp: 0,
            hop_limit: 0,
            payload: Payload::Udp(payload),
        }
    }

    /// True if it comes from that address and port, whatever the interface is called and the address is written in.
    pub fn is_from(&self, peer: SocketAddr) -> bool {
        (self.from.ip().to_canonical(), self.from.port()) == (peer.ip().to_canonical(), peer.port())
    }

    /// The size of the packet with its IP header.
    pub fn ip_size(&self) -> Bytes {
        self.payload.ip_size(IpVersion::of(self.to))
    }
}

/// An event at a node, as told to [`Node::handle`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Input {
    /// A packet arrived.
    Datagram {
        /// The port at which it arrived.
        port: PortId,
        /// When it arrived: the kernel's receive stamp where there is one. Not after `now`.
        at: Time,
        /// The packet.
        datagram: Datagram,
    },
    /// A packet of this node left.
    Sent {
        /// The packet's name.
        id: TransmitId,
        /// When it really left. With kernel stamps: when it entered the queue of its interface.
        at: Time,
    },
    /// A packet of this node was held up in the queue of this host's own interface: the interface is slow or shaped, or
    /// others fill it. Comes before its [`Input::Sent`], where the driver can tell.
    Queued {
        /// The packet's name.
        id: TransmitId,
        /// Its wait there.
        wait: Span,
    },
    /// A packet of this node did not leave, or the network reported it undeliverable.
    Failed {
        /// The port by which it was sent.
        port: PortId,
        /// The packet's name, where the driver can tell.
        id: Option<TransmitId>,
        /// The fault.
        reason: Failure,
    },
    /// The clock that stamps this node's packets was stepped, and stamps taken around now may be off by as much.
    ClockStepped {
        /// Its jump, positive forward.
        by: Span,
    },
    /// The time that [`Output::Wait`] named has come.
    Wake,
    /// The run ends: the node's last input. It may still report its findings; packets that it wants to send are
    /// not sent.
    Interrupted,
}

/// Why a packet did not leave or not arrive, as far as the network says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Failure {
    /// The peer's host says that nothing listens there.
    #[error("nothing listens on that port (ICMP port unreachable)")]
    PortClosed,
    /// No route, or a router or firewall refuses.
    #[error("the host or network is unreachable")]
    Unreachable,
    /// The packet is larger than the path's MTU, and probes are never fragmented.
    #[error("the packet is larger than the path's MTU")]
    TooBig,
    /// This host could not send: buffers, interface, permissions.
    #[error("this host could not send the packet")]
    Host,
}

/// A packet to send, as answered by [`Node::poll`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The node's name for it.
    pub id: TransmitId,
    /// When it shall leave; a time that has passed means at once.
    pub at: Time,
    /// The port to send by.
    pub port: PortId,
    /// The packet.
    pub datagram: Datagram,
}

/// An answer of [`Node::poll`].
#[derive(Clone, Debug, PartialEq)]
pub enum Output<E = Infallible> {
    /// A packet to send, at once or at a planned time.
    Transmit(Transmit),
    /// A decision, for logs, tables and plots.
    Event(E),
    /// Nothing before that time, or before the next input where there is no time.
    Wait(Option<Time>),
}

impl<E> Output<E> {
    /// The same with its decision mapped to another type.
    ///
    /// ```
    /// use lastmile::node::Output;
    /// assert_eq!(Output::Event(7_u8).map(u64::from), Output::Event(7_u64));
    /// ```
    #[inline]
    pub fn map<F>(self, event: impl FnOnce(E) -> F) -> Output<F> {
        match self {
            Output::Transmit(transmit) => Output::Transmit(transmit),
            Output::Event(what) => Output::Event(event(what)),
            Output::Wait(until) => Output::Wait(until),
        }
    }
}

/// Everything that handles packets. The rules of its use stand at the head of [this module](self).
pub trait Node {
    /// Type of its decisions, for logs, tables and plots; [`Infallible`] if it decides nothing.
    type Event;

    /// Takes in what happened at `now`.
    fn handle(&mut self, now: Time, input: Input);

    /// Gives the next thing to do. Called until it answers [`Output::Wait`].
    fn poll(&mut self, now: Time) -> Output<Self::Event>;
}

impl<N: Node + ?Sized> Node for Box<N> {
    type Event = N::Event;

    fn handle(&mut self, now: Time, input: Input) {
        (**self).handle(now, input);
    }
    fn poll(&mut self, now: Time) -> Output<N::Event> {
        (**self).poll(now)
    }
}

/// A node that also tells `T` all its inputs, which determine its outputs (rule 2).
///
/// ```
/// # use lastmile::{node::{Input, Node, Output, Recorded}, time::Time};
/// # struct Hole;
/// # impl Node for Hole {
/// #     type Event = std::convert::Infallible;
/// #     fn handle(&mut self, _now: Time, _input: Input) {}
/// #     fn poll(&mut self, _now: Time) -> Output { Output::Wait(None) }
/// # }
/// let mut inputs = 0;
/// let mut node = Recorded::new(Hole, |_now: Time, _input: &Input| inputs += 1);
/// node.handle(Time::ZERO, Input::Wake);
/// drop(node);
/// assert_eq!(inputs, 1);
/// ```
pub struct Recorded<N, T> {
    node: N,
    tell: T,
}

impl<N: Node, T: FnMut(Time, &Input)> Recorded<N, T> {
    /// Records `node`.
    pub fn new(node: N, tell: T) -> Recorded<N, T> {
        Recorded { node, tell }
    }

    /// The node.
    pub fn node(&self) -> &N {
        &self.node
    }

    /// The node, recorded no more.
    pub fn into_node(self) -> N {
        self.node
    }
}

impl<N: Node, T: FnMut(Time, &Input)> Node for Recorded<N, T> {
    type Event = N::Event;

    fn handle(&mut self, now: Time, input: Input) {
        (self.tell)(now, &input);
        self.node.handle(now, input);
    }
    fn poll(&mut self, now: Time) -> Output<N::Event> {
        self.node.poll(now)
    }
}
