//! Decisions of the two ends of a media stream.

use core::net::SocketAddr;

use super::playout::Viewed;
use crate::classify::Verdicts;
use crate::control::{self, Composition};
use crate::time::{Span, Time};
use crate::units::{Bytes, Rate};

/// Counts of a sender's packets, and of the feedback on them. Bytes are those of IP packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Sent {
    /// Packets of media.
    pub packets: u64,
    /// Their bytes.
    pub bytes: Bytes,
    /// Of these packets, those that carry nothing, as a controller asked for.
    #[cfg_attr(feature = "serde", serde(default))]
    pub padding: u64,
    /// Their bytes.
    #[cfg_attr(feature = "serde", serde(default))]
    pub padding_bytes: Bytes,
    /// Frames that the source made.
    #[cfg_attr(feature = "serde", serde(default))]
    pub frames: u64,
    /// Of these, left out whole, since too much waited for the pacer.
    #[cfg_attr(feature = "serde", serde(default))]
    pub frames_dropped: u64,
    /// Packets that were sent again.
    #[cfg_attr(feature = "serde", serde(default))]
    pub retransmitted: u64,
    /// Their bytes, which are not among those of media.
    #[cfg_attr(feature = "serde", serde(default))]
    pub retransmitted_bytes: Bytes,
    /// Packets that feedback said arrived; none where it tells of sums alone (`tfrc(form=receiver)`).
    pub acknowledged: u64,
    /// Packets up to the newest one that any report tells of. The fate of later ones is not known.
    #[cfg_attr(feature = "serde", serde(default))]
    pub reported: u64,
    /// Bytes of those acknowledged.
    pub acknowledged_bytes: Bytes,
    /// Of these, packets with a mark of congestion.
    pub marked: u64,
    /// Packets that a rate controller was told are lost.
    pub lost: u64,
    /// Of these, judged to be lost by a wireless link.
    pub lost_wireless: u64,
    /// Packets that came after the controller was told that they are lost.
    #[cfg_attr(feature = "serde", serde(default))]
    pub late: u64,
    /// Bytes of this end's own RTCP.
    pub report_bytes: Bytes,
    /// Packets of RTCP that came back.
    pub feedback_packets: u64,
    /// Their bytes.
    pub feedback_bytes: Bytes,
    /// Receiver reports that were left out: more is lost than was sent, packets came that were not, or jitter lasts longer than the
    /// stream.
    #[cfg_attr(feature = "serde", serde(default))]
    pub impossible_reports: u64,
}

/// Counts of a receiver's packets from one source, and of its feedback. Bytes are those of IP packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Received {
    /// Packets of media, each once.
    pub packets: u64,
    /// Their bytes.
    pub bytes: Bytes,
    /// Packets that were missing at the end, between the first and the last that came.
    pub lost: u64,
    /// Packets that were asked for again.
    #[cfg_attr(feature = "serde", serde(default))]
    pub nacked: u64,
    /// Of the packets lost, those that were sent again and came while they were of use.
    #[cfg_attr(feature = "serde", serde(default))]
    pub recovered: u64,
    /// Packets that came a second time.
    pub duplicates: u64,
    /// Packets that came after a later one.
    pub out_of_order: u64,
    /// Packets with a mark of congestion.
    pub marked: u64,
    /// Interarrival jitter at the end (RFC 3550, section 6.4.1).
    pub jitter: Span,
    /// Packets of RTCP that were sent back.
    pub feedback_packets: u64,
    /// Their bytes.
    pub feedback_bytes: Bytes,
    /// When the first packet came.
    pub first: Time,
    /// When the last one did.
    pub last: Time,
}

/// A decision of an end of a media stream.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(tag = "event", rename_all = "kebab-case")
)]
#[non_exhaustive]
pub enum Decision {
    /// A sender began to send.
    MediaStarted {
        /// The receiver's address.
        peer: SocketAddr,
        /// Its source's number.
        ssrc: u32,
        /// Its rate of IP packets.
        rate: Rate,
    },
    /// A rate controller wants another rate, by a twentieth or more.
    TargetChanged {
        /// The rate of IP packets from now on.
        target: Rate,
    },
    /// Progress of a sender, each second and when it sends no more.
    MediaProgress {
        /// The rate of IP packets that it is to have.
        target: Rate,
        /// The rate at which its pacer may release packets, where a controller says so.
        #[cfg_attr(feature = "serde", serde(default))]
        pacing: Option<Rate>,
        /// Its counts so far.
        sent: Sent,
    },
    /// A receiver's report came that can be true.
    MediaReported {
        /// Packets lost since the beginning, as the receiver counts them.
        lost: i32,
        /// Interarrival jitter.
        jitter: Span,
        /// Round-trip time, where the report answers one of the sender's own.
        rtt: Option<Span>,
    },
    /// A sender's receiver answers from another address, which it proved; the stream goes there.
    ReceiverMoved {
        /// The address before.
        from: SocketAddr,
        /// The address from now on.
        to: SocketAddr,
    },
    /// A circuit breaker tripped (RFC 8083).
    CircuitBroken {
        /// Which: congestion, or the media timeout.
        why: End,
        /// True if the stream ends; else it tries a tenth of its rate.
        ends: bool,
        /// The rate of media lately, and the most that the breaker lets pass: ten times what TCP would send.
        rates: Option<(Rate, Rate)>,
        /// The share of packets lost lately.
        loss: Option<f64>,
        /// Smoothed round-trip time.
        rtt: Option<Span>,
    },
    /// A sender has ended.
    MediaEnded {
        /// Why.
        why: End,
        /// Its counts.
        sent: Sent,
    },
    /// A receiver knows a source: two packets came in sequence.
    SourceFound {
        /// Its address.
        peer: SocketAddr,
        /// Its number.
        ssrc: u32,
        /// Payload type of the second one.
        payload_type: u8,
    },
    /// Progress of a source, each second in which something came.
    SourceProgress {
        /// Its address.
        peer: SocketAddr,
        /// Its number.
        ssrc: u32,
        /// Its counts so far.
        received: Received,
    },
    /// A source has left, or is silent.
    SourceLeft {
        /// Its address.
        peer: SocketAddr,
        /// Its number.
        ssrc: u32,
        /// Why it is no longer listened to.
        why: Left,
        /// Its counts.
        received: Received,
    },
    /// Frames of a source at a viewer, each second and right before the source has left.
    FramesViewed {
        /// Its address.
        peer: SocketAddr,
        /// Its number.
        ssrc: u32,
        /// Its counts so far.
        viewed: Viewed,
    },
    /// A receiver has no room for packets of sources that it does not know: there are too many sources, or too many of that address. Told
    /// every ten seconds at most.
    SourceTurnedAway {
        /// The address of the last of them.
        peer: SocketAddr,
        /// Its number.
        ssrc: u32,
        /// Packets that were turned away since the last notice, from any address.
        packets: u64,
    },
    /// A source named the scheme by which its losses are counted from now on (`tfrc(form=receiver)`).
    SchemeNamed {
        /// Its address.
        peer: SocketAddr,
        /// Its number.
        ssrc: u32,
        /// The scheme.
        scheme: Composition,
    },
    /// Reports of TFRC's receiver tell by which scheme it counts losses: not by the sender's, which is named to it; or by that after all.
    SchemeHeeded {
        /// True if it is the sender's.
        heeded: bool,
    },
    /// All losses judged, by verdict: told by the end that judges, right before the stream's end.
    LossesJudged(Verdicts),
    /// A decision of the rate controller, or of the classifier in front of it: losses judged, loss events, fall-backs.
    #[cfg_attr(feature = "serde", serde(untagged))]
    Control(control::Decision),
}

/// Why a sender has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum End {
    /// It was to send until then, or its source has no more frames.
    Stop,
    /// No feedback came for too long: nobody may be there, or the path carries nothing.
    NoFeedback,
    /// Reports say that no media arrives (RFC 8083, section 4.2).
    MediaTimeout,
    /// Reports say that ten times as much is sent as TCP would send (RFC 8083, section 4.3).
    Congestion,
    /// The peer's host says that nothing listens there, and no feedback says otherwise.
    PortClosed,
    /// No route, or a router or firewall refuses, and no feedback says otherwise.
    Unreachable,
    /// Packets are larger than the path takes, and no feedback says otherwise.
    TooBig,
    /// The receiver said goodbye.
    PeerLeft,
    /// The next packet would go beyond the limit of bytes.
    ByteLimit,
    /// The sender's user ended the run.
    Interrupted,
}

/// Why a receiver no longer listens to a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Left {
    /// It said goodbye.
    Goodbye,
    /// Nothing came for too long.
    Silent,
    /// Its packets come from another address since: a NAT gave it another port, say.
    Moved,
    /// Another source took its place.
    Displaced,
    /// The receiver's user ended the run.
    Interrupted,
}
