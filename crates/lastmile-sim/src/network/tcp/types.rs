//! Types that describe and count connections.

use core::net::SocketAddr;

use lastmile::node::{Datagram, Ecn, Flow, Model, Payload, PortId, Transmit, TransmitId};
use lastmile::time::{Span, Time};
use lastmile::units::Bytes;

/// The two ends of a connection, and the flows that its packets are labelled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The sender's address.
    pub sender: SocketAddr,
    /// The receiver's.
    pub receiver: SocketAddr,
    /// The flow of the segments.
    pub data: Flow,
    /// The flow of the ACKs.
    pub acks: Flow,
}

impl Ends {
    #[inline]
    pub(super) fn segment(&self, now: Time, ecn: Ecn, model: Model) -> Transmit {
        transmit(now, (self.sender, self.receiver, self.data), ecn, model)
    }

    #[inline]
    pub(super) fn ack(&self, now: Time, model: Model) -> Transmit {
        transmit(now, (self.receiver, self.sender, self.acks), Ecn::NotEct, model)
    }
}

#[inline]
fn transmit(now: Time, (from, to, flow): (SocketAddr, SocketAddr, Flow), ecn: Ecn, model: Model) -> Transmit {
    let datagram = Datagram { from, to, flow, ecn, dscp: 0, hop_limit: 64, payload: Payload::Model(model) };
    Transmit { id: TransmitId::UNTRACKED, at: now, port: PortId(0), datagram }
}

/// Totals of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounters {
    /// Segments sent, those sent again included.
    pub segments: u64,
    /// IP bytes of all of them.
    pub bytes: Bytes,
    /// Segments sent again.
    pub resent: u64,
    /// ACKs that came.
    pub acks: u64,
    /// Segments acknowledged.
    pub acknowledged: u64,
    /// Times that the retransmission timer expired.
    pub timeouts: u64,
    /// Fast retransmits.
    pub fast_retransmits: u64,
    /// Reductions of the window because of marks.
    pub ecn_reductions: u64,
    /// Transfers finished; none of an endless one.
    pub transfers: u64,
    /// The sum of their times from the first segment's departure to the last one's acknowledgement.
    pub transfer_time: Span,
}
