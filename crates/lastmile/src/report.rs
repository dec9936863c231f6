//! [`PacketReport`] and [`StreamRecord`]: the fates and times of packets, as known from feedback.
//!
//! Every kind of feedback (our deferred arrival reports, reflected STAMP packets, RTCP, the simulator's truth)
//! becomes these, and estimators and classifiers see nothing else.

use crate::node::Ecn;
use crate::time::{Owd, Rx, Span, Time, Tx};
use crate::units::Bytes;

/// The fate of a packet, on the receiver's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Fate {
    /// It arrived at this time.
    Arrived(Time<Rx>),
    /// It did not arrive before the report was made.
    Lost,
    /// It arrived, but too late or too disturbed for its stamp to mean anything.
    Late,
}

impl Fate {
    /// The arrival's stamp, where there is one to be trusted.
    ///
    /// ```
    /// # use lastmile::{report::Fate, time::Time};
    /// assert_eq!(Fate::Arrived(Time::from_nanos(3)).arrived(), Some(Time::from_nanos(3)));
    /// assert_eq!(Fate::Late.arrived(), None);
    /// ```
    pub fn arrived(self) -> Option<Time<Rx>> {
        match self {
            Fate::Arrived(at) => Some(at),
            _ => None,
        }
    }
}

/// One packet: its true departure and its fate.
///
/// ```
/// use lastmile::{node::Ecn, report::{Fate, PacketReport}, time::Time, units::Bytes};
/// let report = PacketReport {
///     seq: 0, size: Bytes(1488), sent: Time::from_nanos(10), fate: Fate::Arrived(Time::from_nanos(900)), ecn: Ecn::NotEct,
/// };
/// assert_eq!(report.owd().unwrap().relative_nanos(), 890);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PacketReport {
    /// Its place in the order of sending.
    pub seq: u64,
    /// Its size at the IP layer.
    pub size: Bytes,
    /// When it left, from the driver's `Sent`, not from the plan.
    pub sent: Time<Tx>,
    /// Its fate.
    pub fate: Fate,
    /// The ECN codepoint as it arrived.
    pub ecn: Ecn,
}

impl PacketReport {
    /// Its relative one-way delay, if it arrived.
    pub fn owd(&self) -> Option<Owd> {
        Some(self.fate.arrived()? - self.sent)
    }
}

/// The direction of a stream's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Direction {
    /// From the initiator to the reflector (up).
    Forward,
    /// From the reflector to the initiator (down).
    Reverse,
    /// There and back, by a reply to each packet.
    RoundTrip,
}

impl core::fmt::Display for Direction {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(match self {
            Direction::Forward => "forward",
            Direction::Reverse => "reverse",
            Direction::RoundTrip => "round-trip",
        })
    }
}

/// The shape of a probing stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Pattern {
    /// Packets two by two: 2k and 2k+1 leave back to back.
    Pairs,
    /// Packets at one rate.
    Train,
    /// Packets that all leave back to back.
    Burst,
    /// Packets at times of their own: chirps, pairs at Poisson times.
    Uneven,
}

impl core::fmt::Display for Pattern {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(match self {
            Pattern::Pairs => "pairs",
            Pattern::Train => "train",
            Pattern::Burst => "burst",
            Pattern::Uneven => "uneven",
        })
    }
}

/// A probing stream after its report: the plan, the departures and the arrivals, in the order of sending.
///
/// In the round-trip direction the arrivals are the replies' and the "receiver's" clock is the sender's own,
/// so that [`rtt`](StreamRecord::rtt) exists.
///
/// ```
/// use lastmile::{node::Ecn, report::*, time::{Span, Time}, units::Bytes};
/// let packet = |seq, sent, fate| PacketReport { seq, size: Bytes(1488), sent: Time::from_nanos(sent), fate, ecn: Ecn::NotEct };
/// let at = |ns| Fate::Arrived(Time::from_nanos(ns));
/// let mut record = StreamRecord {
///     stream: 1,
///     direction: Direction::RoundTrip,
///     pattern: Pattern::Train,
///     planned: [0, 100, 200].map(Span::from_nanos).to_vec(),
///     packets: vec![packet(0, 0, at(7_000)), packet(1, 110, at(7_150)), packet(2, 200, Fate::Lost)],
///     tx_resolution: Span::from_nanos(1),
///     rx_resolution: Span::from_nanos(1),
///     clock_stepped: false,
/// };
/// assert_eq!(record.lost(), 1);
/// assert_eq!((record.send_gap(0), record.send_gap(1)), (None, Some((Span::from_nanos(110), Span::from_nanos(100)))));
/// assert_eq!((record.receive_gap(1), record.receive_gap(2)), (Some(Span::from_nanos(150)), None));
/// assert_eq!((record.rtt(1), record.rtt(2)), (Some(Span::from_nanos(7_040)), None));
/// record.direction = Direction::Forward;
/// assert_eq!(record.rtt(1), None); // one way: two clocks
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct StreamRecord {
    /// The stream's number within its session.
    pub stream: u32,
    /// Its direction.
    pub direction: Direction,
    /// Its shape.
    pub pattern: Pattern,
    /// When each packet was to leave, counted from the first.
    pub planned: Vec<Span>,
    /// A report on each packet, in the order of sending.
    pub packets: Vec<PacketReport>,
    /// Resolution of the departures' stamps.
    pub tx_resolution: Span,
    /// Resolution of the arrivals' stamps.
    pub rx_resolution: Span,
    /// A clock that stamped this stream was stepped while it ran: its stamps cannot be believed.
    pub clock_stepped: bool,
}

impl StreamRecord {
    /// Packets that did not arrive.
    pub fn lost(&self) -> usize {
        self.packets.iter().filter(|p| p.fate == Fate::Lost).count()
    }

    /// The round-trip time of a packet, where there is one: [`Direction::RoundTrip`] and it came back.
    pub fn rtt(&self, index: usize) -> Option<Span> {
        if self.direction != Direction::RoundTrip {
            return None;
        }
        let packet = self.packets.get(index)?;
        // One clock took both stamps, so the relative delay is the delay.
        Some(Span::from_nanos(packet.owd()?.relative_nanos()))
    }

    /// Between a packet's departure and the one before it, really and as planned: `(sent, planned)`.
    pub fn send_gap(&self, index: usize) -> Option<(Span, Span)> {
        let before = index.checked_sub(1)?;
        Some((
            self.packets.get(index)?.sent - self.packets.get(before)?.sent,
            *self.planned.get(index)? - *self.planned.get(before)?,
        ))
    }

    /// Between a packet's arrival and that of the one sent before it, where both arrived.
    pub fn receive_gap(&self, index: usize) -> Option<Span> {
        let before = index.checked_sub(1)?;
        Some(self.packets.get(index)?.fate.arrived()? - self.packets.get(before)?.fate.arrived()?)
    }
}
