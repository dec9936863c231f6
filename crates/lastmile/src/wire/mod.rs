//! Bytes on the wire: STAMP packets, their TLVs and the TLVs of our own; RTP, RTCP and its congestion control feedback.
//!
//! Sans-IO and on plain integers: a datagram's bytes come in, values go out, and the other way round. Parsing
//! borrows from the datagram and never allocates; encoding goes into the caller's buffer; a reflector turns a
//! received packet into its reply in place ([`reflect_in_place`], then [`reflect_tlvs`]), so that the reply has
//! the request's size by construction. Nothing here panics on a peer's bytes.
//!
//! Sources of the formats:
//!
//! | part | source |
//! |---|---|
//! | base packets, 44 and 112 bytes, HMAC over 96 | RFC 8762, 4.2 to 4.4 |
//! | Error Estimate, NTP and PTP timestamps | RFC 4656, 4.1.2; RFC 8186, 2.1 and 2.3; RFC 8762, 4.2.1 |
//! | SSID, TLV framing, flags U/M/I, Extra Padding, Class of Service, HMAC TLV | RFC 8972, 3 and 4, errata 8199 |
//! | type numbers, 240 to 251 for experiments | IANA registry "STAMP TLV Types", state of 2026-03-26 |
//! | Return Path TLV with Control Code sub-TLV | RFC 9503, 4 |
//! | Reflected Test Packet Control TLV, flag C | draft-ietf-ippm-asymmetrical-pkts-14, 3 |
//! | ECN fields EC1 and RPE of Class of Service | draft-ietf-ippm-stamp-cos-ecn-01, 3 |
//! | Hello, Stream and Report TLVs (types 243 to 245) | ours, [`private`] |
//! | RTP and RTCP packets | RFC 3550, 5.1 and 6; RFC 5761, 4 |
//! | congestion control feedback with arrival times and ECN marks | RFC 8888, 3.1 |
//! | packet receipt times of extended reports | RFC 3611, 3 and 4.3 |
//! | send time in RTP packets, report of TFRC's receiver | ours, in RFC 8285's and RFC 3550's frames |
//! | NACKs and the packets that are sent again | RFC 4585, 6.2.1; RFC 4588, 4 |
//! | requests for key frames | RFC 4585, 6.3.1; RFC 5104, 4.3.1 |
//! | H.264 in RTP packets | RFC 6184, 5 to 7, [`h264`] |
//! | descriptions of a video for players | RFC 4566, 5 and 9; RFC 6184, 8.2, [`sdp`] |
//! | keys of SRTP in them | RFC 4568, 5 and 6; RFC 7714, 14.2, [`sdes`] |
//! | control connection and datagrams of iperf3 | its sources, [`iperf3`] |
//! | generated traffic and its sink | ours, [`traffic`] |
//!
//! The two drafts were read through the quotations in the conformance documents of `stamp-suite` 1.0.0, which
//! names the first one RFC 10052; the RFC texts through their public copies. `stamp-suite` and scapy are the
//! programs that the encodings are checked against.
//!
//! # Examples
//!
//! A probe goes out, is reflected in place, and comes back:
//!
//! ```
//! use lastmile::wire::{
//!     ErrorEstimate, Mode, PacketBuilder, Padding, ReflectorPacket, Reflection, SenderPacket, Verdict,
//!     TimestampFormat, reflect_in_place, reflect_tlvs, tlv_area_mut,
//! };
//!
//! let error = ErrorEstimate::from_nanos(1_000, false, TimestampFormat::Ntp);
//! let probe = SenderPacket { sequence: 7, timestamp: 0xE000_0000_8000_0000, error, ssid: 1 };
//! let mut datagram = Vec::new();
//! PacketBuilder::sender(&mut datagram, Mode::Open, &probe).pad_to(1472, Padding::Random(7))?;
//! assert_eq!(datagram.len(), 1472);
//!
//! let facts = Reflection { sequence: None, timestamp: 3, error, receive_timestamp: 2, sender_ttl: 64 };
//! reflect_in_place(Mode::Open, &mut datagram, &facts)?;
//! reflect_tlvs(tlv_area_mut(Mode::Open, &mut datagram), |_| Verdict::Understood);
//!
//! let reply = ReflectorPacket::parse(Mode::Open, &datagram)?;
//! assert_eq!((reply.sender_sequence, reply.receive_timestamp, datagram.len()), (7, 2, 1472));
//! # Ok::<(), lastmile::wire::WireError>(())
//! ```

mod auth;
mod base64;
mod build;
mod ccfb;
mod extended;
pub mod h264;
pub mod iperf3;
mod key_frame;
mod nack;
mod ntp;
pub mod private;
mod rtcp;
mod rtcp_packet;
mod rtp;
pub mod sdes;
pub mod sdp;
mod stamp;
mod standard;
mod tfrc;
mod tlv;
pub mod traffic;

pub use auth::{HmacKey, MIN_KEY_LEN, TAG_LEN, TlvIntegrity};
pub use build::{PacketBuilder, Padding};
pub use ccfb::{
    Feedback, FeedbackBlock, FeedbackRequest, MAX_REPORTED, Reported, write_feedback, write_feedback_request,
};
pub use extended::{ExtendedReport, ReceiptTimes, write_receipt_times};
pub use key_frame::{KeyFrameRequest, write_picture_loss};
pub use nack::{Nack, RETRANSMISSION_HEADER_LEN, original, write_nack, write_retransmission};
pub use ntp::{ErrorEstimate, TimestampFormat};
pub use rtcp::{
    ReportBlock, ReportBlocks, Rtcp, SenderInfo, Sources, write_goodbye, write_name, write_receiver_report,
    write_sender_report,
};
pub use rtp::{RTP_HEADER_LEN, RtpHeader, RtpPacket, is_rtcp};
pub use stamp::{
    AUTH_LEN, Mode, OPEN_LEN, Reflection, ReflectorPacket, SenderPacket, looks_reflected, reflect_in_place,
    sequence_of, tlv_area, tlv_area_mut,
};
pub use standard::{ClassOfService, ControlCode, ReflectedControl, ReturnPath, ReversePathEcn};
pub use tfrc::{
    MAX_SCHEME_NAME, SEND_TIME_LEN, SendTime, TfrcReport, TfrcScheme, scheme_check, write_tfrc_report,
    write_tfrc_scheme,
};
pub use tlv::{
    Reflected, TLV_HEADER_LEN, Tlv, TlvFlags, TlvMut, TlvType, TlvValue, Tlvs, Verdict, fail_integrity,
    reflect_tlvs,
};

/// Why bytes cannot be read or written.
///
/// Variants blame the peer unless their text names the caller. All of them mean: drop the packet or the TLV.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// A fixed part is longer than the bytes that there are.
    #[error("the peer sent {have} bytes where {what} needs {need}")]
    Truncated {
        /// The part that does not fit.
        what: &'static str,
        /// Bytes it needs.
        need: usize,
        /// Bytes there are.
        have: usize,
    },
    /// A TLV's Length leads past the end of the packet (RFC 8972, 4: malformed, flag M).
    #[error("the peer's TLV of type {kind} claims {length} bytes, the packet has {have} left")]
    TlvOverrun {
        /// TLV type number.
        kind: u8,
        /// Claimed length of the value, bytes.
        length: usize,
        /// Bytes left in the packet.
        have: usize,
    },
    /// A TLV's Length is not one that its type allows (RFC 8972, 4: malformed, flag M).
    #[error("the peer's TLV of type {kind} has a value of {length} bytes, which that type does not allow")]
    TlvLength {
        /// TLV type number.
        kind: u8,
        /// Length of the value, bytes.
        length: usize,
    },
    /// An experimental type number without our magic: somebody else's experiment.
    #[error("the TLV of type {kind} does not carry lastmile's magic: another program's experiment")]
    NotOurs {
        /// TLV type number.
        kind: u8,
    },
    /// One of our TLVs in a layout that this program does not know.
    #[error(
        "the peer's TLV of type {kind} has layout {layout}; this program knows layout 1: upgrade the older side"
    )]
    Layout {
        /// TLV type number.
        kind: u8,
        /// Layout number found.
        layout: u8,
    },
    /// A field holds a value that the format does not allow.
    #[error("the peer put {value} into {what}, which does not allow it")]
    Value {
        /// The field.
        what: &'static str,
        /// Its value.
        value: u64,
    },
    /// The packet's HMAC does not fit its bytes: wrong key, or altered on the way.
    #[error("the packet's HMAC is wrong: the peer has another key, or the packet was altered")]
    BadHmac,
    /// The caller's key is too short to be worth checking.
    #[error("an HMAC key of {have} bytes is too short: give at least {MIN_KEY_LEN}")]
    KeyTooShort {
        /// Bytes given.
        have: usize,
    },
    /// The caller's buffer is too small for what it asked to have encoded.
    #[error("the caller's buffer has {have} bytes, {what} needs {need}")]
    Buffer {
        /// The part to be encoded.
        what: &'static str,
        /// Bytes it needs.
        need: usize,
        /// Bytes there are.
        have: usize,
    },
    /// The caller asked for a packet size that no padding reaches: below the content, or one to three bytes above
    /// it, where an Extra Padding TLV's header does not fit.
    #[error(
        "no padding brings a packet of {content} bytes to {wanted}: ask for {content}, or {content}+4 and more"
    )]
    Unreachable {
        /// Bytes of the packet without padding.
        content: usize,
        /// Bytes asked for.
        wanted: usize,
    },
}

/// `N` bytes of a fixed layout, read at an offset that the layout fixes.
fn be<const N: usize, const L: usize>(bytes: &[u8; L], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

/// Big-endian `u16` of a fixed layout.
fn be16<const L: usize>(bytes: &[u8; L], at: usize) -> u16 {
    u16::from_be_bytes(be(bytes, at))
}

/// Big-endian `u32` of a fixed layout.
fn be32<const L: usize>(bytes: &[u8; L], at: usize) -> u32 {
    u32::from_be_bytes(be(bytes, at))
}

/// Big-endian `u64` of a fixed layout.
fn be64<const L: usize>(bytes: &[u8; L], at: usize) -> u64 {
    u64::from_be_bytes(be(bytes, at))
}

/// Writes a field of a fixed layout.
fn put<const L: usize>(bytes: &mut [u8; L], at: usize, field: &[u8]) {
    bytes[at..at + field.len()].copy_from_slice(field);
}
