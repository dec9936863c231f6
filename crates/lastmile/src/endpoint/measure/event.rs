//! Decisions of the two ends of a measurement, and the sink for records of single packets.
//!
//! Two tiers: [`Decision`]s are few and come from [`poll`](crate::node::Node::poll); records of single packets
//! go to a [`PacketSink`] that the endpoint is generic over, whose disabled form, `()`, compiles to nothing.

use core::net::SocketAddr;

use crate::estimate::{Estimate, Refusal, Warning};
use crate::observe::{self, StreamVerdict};
use crate::report::{Direction, Pattern, StreamRecord};
use crate::time::Span;
use crate::units::Bytes;

/// Cost of a measurement so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Cost {
    /// IP bytes of probing streams that the initiator sent.
    pub probe_bytes: Bytes,
    /// IP bytes of requests that the initiator sent.
    pub control_bytes: Bytes,
    /// IP bytes that the initiator sent only to earn credit for a reverse stream.
    pub credit_bytes: Bytes,
    /// IP bytes that the initiator received, probes of a reverse stream included.
    pub bytes_received: Bytes,
    /// From the first packet sent to the result.
    pub elapsed: Span,
    /// Streams that were sent and believed.
    pub streams: u32,
    /// Streams that were sent and not believed.
    pub streams_discarded: u32,
}

impl Cost {
    /// All IP bytes that the initiator sent.
    ///
    /// ```
    /// # use lastmile::{endpoint::measure::Cost, units::Bytes};
    /// let cost = Cost { credit_bytes: Bytes(5), bytes_received: Bytes(9), ..Cost::default() };
    /// assert_eq!(cost.bytes(), Bytes(5));
    /// ```
    pub fn bytes(&self) -> Bytes {
        self.probe_bytes + self.control_bytes + self.credit_bytes
    }

    /// True if a stream was sent, or paid for, since then.
    pub(in crate::endpoint) fn has_probed_since(&self, before: &Cost) -> bool {
        let probed =
            |cost: &Cost| (cost.probe_bytes, cost.credit_bytes, cost.streams, cost.streams_discarded);
        probed(self) != probed(before)
    }

    /// Counts a stream by its verdict, and gives the event about it.
    pub(in crate::endpoint) fn judge(&mut self, record: &StreamRecord) -> Decision {
        let judged = observe::judge(record);
        match judged.verdict {
            StreamVerdict::Believed => self.streams += 1,
            _ => self.streams_discarded += 1,
        }
        Decision::StreamJudged {
            stream: record.stream,
            direction: record.direction,
            pattern: record.pattern,
            packets: record.packets.len() as u32,
            lost: record.lost() as u32,
            gaps_held: judged.gaps_held,
            verdict: judged.verdict,
        }
    }
}

/// A decision of an endpoint.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(tag = "event", rename_all = "kebab-case")
)]
#[non_exhaustive]
pub enum Decision {
    /// The peer answered, and its abilities are known.
    PeerReady {
        /// Its address.
        peer: SocketAddr,
        /// True if it speaks more than plain STAMP.
        lastmile: bool,
        /// Round-trip time of the exchange.
        rtt: Span,
    },
    /// A stream's record was judged.
    StreamJudged {
        /// The stream's number within its session.
        stream: u32,
        /// The stream's direction.
        direction: Direction,
        /// Its shape.
        pattern: Pattern,
        /// Packets planned.
        packets: u32,
        /// Packets lost on the path.
        lost: u32,
        /// Gaps whose departures kept the schedule.
        gaps_held: u32,
        /// The verdict: believed, or the reason why not.
        verdict: StreamVerdict,
    },
    /// A method came to a result.
    Estimated {
        /// The method's registered name.
        method: String,
        /// The direction measured.
        direction: Direction,
        /// The result.
        estimate: Estimate,
        /// Cost of the whole session up to here.
        cost: Cost,
    },
    /// A method came to no result that could be believed.
    Refused {
        /// The method's registered name.
        method: String,
        /// The direction measured.
        direction: Direction,
        /// Why.
        refusal: Refusal,
        /// Cost of the whole session up to here.
        cost: Cost,
    },
    /// A warning that does not change the result's standing.
    Warned(Warning),
    /// A clock that stamps packets was stepped.
    ClockStepped {
        /// Size of the step, positive if forward.
        by: Span,
    },
    /// A reflector opened a session.
    SessionOpened {
        /// The peer's address.
        peer: SocketAddr,
    },
    /// A reflector closed a session.
    SessionClosed {
        /// The peer's address.
        peer: SocketAddr,
        /// IP bytes received from it.
        received: Bytes,
        /// IP bytes sent to it.
        sent: Bytes,
    },
    /// A reflector turned peers away because of its limits: told at once, and then at most every ten seconds.
    TurnedAway {
        /// The last of them.
        peer: SocketAddr,
        /// Packets since it was last told, for want of room for one more session, or for one more of that source.
        no_session: u64,
        /// For want of room for stamps or waiting packets, or for more of that source.
        no_room: u64,
        /// Because the budget of that source, or of all, is spent.
        over_budget: u64,
        /// Because a reverse stream is not paid for, or larger than any may be.
        unpaid: u64,
    },
    /// A sender of TWAMP Light uses packets that no reply of their size could answer: told once for each
    /// source, and where there are more than 64 of them, of one every ten seconds.
    TooSmall {
        /// The sender.
        peer: SocketAddr,
        /// UDP payload of its packet, in bytes.
        octets: u16,
    },
    /// The peer has not answered for a while, and is waited for: the path may be cut, or slow and its queue long.
    PeerQuiet {
        /// Its address.
        peer: SocketAddr,
        /// For so long since it was first asked.
        silent: Span,
        /// It is given up after so much more, unless it answers.
        patience: Span,
    },
    /// The endpoint has nothing more to do.
    Finished {
        /// Cost of the session.
        cost: Cost,
    },
}

/// Sink for records of single streams and packets. Endpoints are generic over it; `()` keeps nothing and costs
/// nothing.
///
/// ```
/// use lastmile::endpoint::measure::PacketSink;
/// use lastmile::report::StreamRecord;
/// #[derive(Default)]
/// struct Count(usize);
/// impl PacketSink for Count {
///     fn stream(&mut self, record: &StreamRecord) { self.0 += record.packets.len(); }
/// }
/// ```
pub trait PacketSink {
    /// A stream's packets, as they are handed to the estimator.
    fn stream(&mut self, record: &StreamRecord);
}

impl PacketSink for () {
    #[inline(always)]
    fn stream(&mut self, _record: &StreamRecord) {}
}

/// A sink that calls a function for each stream.
pub struct Each<F>(pub F);

impl<F: FnMut(&StreamRecord)> PacketSink for Each<F> {
    fn stream(&mut self, record: &StreamRecord) {
        (self.0)(record);
    }
}

/// A sink that may be left out.
impl<S: PacketSink> PacketSink for Option<S> {
    fn stream(&mut self, record: &StreamRecord) {
        if let Some(sink) = self {
            sink.stream(record);
        }
    }
}

impl PacketSink for Vec<StreamRecord> {
    fn stream(&mut self, record: &StreamRecord) {
        self.push(record.clone());
    }
}
