//! The prober's packets: it writes requests and probes, and reads replies.

use core::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::requests::ReverseRequest;
use crate::time::{Epoch, Time};
use crate::units::{Bytes, IpVersion};
use crate::wire::private::{
    Abilities, HelloReply, HelloRequest, ReportKind, ReportPage, ReportRequest, StreamTag, Token,
};
use crate::wire::{
    ControlCode, ErrorEstimate, HmacKey, Mode, PacketBuilder, Padding, ReflectedControl, ReflectorPacket,
    SenderPacket, TimestampFormat, TlvFlags, TlvType, TlvValue, Tlvs, WireError, tlv_area,
};

/// The version of our exchange that this program speaks.
pub(super) const VERSION: u8 = 1;

/// A key shared by prober and reflector: STAMP's authenticated mode, HMAC-SHA-256.
///
/// ```
/// use lastmile::endpoint::measure::Key;
/// assert!(Key::new(b"sixteen bytes or more").is_ok());
/// assert!(Key::new(b"short").unwrap_err().to_string().contains("too short"));
/// ```
#[derive(Clone)]
pub struct Key(pub(super) HmacKey);

impl Key {
    /// A key from its bytes.
    ///
    /// [`WireError::KeyTooShort`] below 16 bytes.
    pub fn new(bytes: &[u8]) -> Result<Key, WireError> {
        HmacKey::new(bytes).map(Key)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// A value that nobody can guess who does not know `seed`.
pub(super) fn derive(seed: &[u8; 32], label: &str, number: u64) -> [u8; 16] {
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(seed).expect("HMAC takes keys of any length");
    mac.update(label.as_bytes());
    mac.update(&number.to_be_bytes());
    let digest = mac.finalize().into_bytes();
    let mut out = [0; 16];
    out.copy_from_slice(&digest[..16]);
    out
}

pub(super) fn derive_u64(seed: &[u8; 32], label: &str, number: u64) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = derive(seed, label, number);
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}

/// A request of the prober.
#[derive(Clone, Debug)]
pub(super) enum Request {
    Hello {
        nonce: u64,
        token: Token,
    },
    Report {
        token: Token,
        stream: u32,
        page: u16,
        kind: ReportKind,
        entries: usize,
    },
    /// Frees a stream's log on the other side.
    Release {
        token: Token,
        stream: u32,
    },
    /// Ends the session on the other side.
    Goodbye {
        token: Token,
    },
    /// Earns credit and asks for nothing.
    Pay {
        token: Token,
    },
    Reverse {
        token: Token,
        stream: u32,
        total: u16,
        what: ReverseRequest,
    },
    /// A stream packet that shall not be answered.
    Forward {
        tag: StreamTag,
    },
    /// A stream packet that shall be answered by its like.
    RoundTrip,
}

/// Content of a reply.
#[derive(Debug)]
pub(super) enum Reply<'a> {
    Hello(HelloReply),
    /// The reflector knows no TLVs of ours.
    Plain,
    Report(ReportPage<'a>),
    /// A reverse stream's packet.
    Stream(StreamTag),
    /// The reflector will not send that reverse stream.
    ReverseRefused,
}

/// A reply and the request that it belongs to.
#[derive(Debug)]
pub(super) struct Replied<'a> {
    pub(super) sequence: u32,
    pub(super) stamp: u64,
    pub(super) reply: Reply<'a>,
}

/// Writes and reads the prober's side of a session.
pub(super) struct Codec {
    key: Option<Key>,
    epoch: Epoch,
    ssid: u16,
    error: ErrorEstimate,
    ip: IpVersion,
    first_sequence: u32,
    next_sequence: u32,
}

impl Codec {
    pub(super) fn new(key: Option<Key>, epoch: Epoch, seed: &[u8; 32], ip: IpVersion) -> Codec {
        let [a, b, c, d, e, f, ..] = derive(seed, "session", 0);
        // RFC 8762 starts at zero; a start that nobody can guess makes forged replies miss. Half the range is left.
        let first_sequence = u32::from_be_bytes([c, d, e, f]) >> 1;
        Codec {
            key,
            epoch,
            // Zero means "no session identifier" (RFC 8972, 3).
            ssid: u16::from_be_bytes([a, b]).max(1),
            error: ErrorEstimate::from_nanos(1_000, false, TimestampFormat::Ntp),
            ip,
            first_sequence,
            next_sequence: first_sequence,
        }
    }

    pub(super) fn is_authenticated(&self) -> bool {
        self.key.is_some()
    }

    pub(super) fn next_sequence(&self) -> u32 {
        self.next_sequence
    }

    /// True if a packet with that sequence number was made: a sender that cannot hear this session guesses one in some millions.
    pub(super) fn made(&self, sequence: u32) -> bool {
        (self.first_sequence..self.next_sequence).contains(&sequence)
    }

    /// The stamp that a packet leaving at `at` carries.
    pub(super) fn stamp(&self, at: Time) -> u64 {
        TimestampFormat::Ntp.from_unix_nanos(self.epoch.unix_nanos(at))
    }

    /// Encodes a request that leaves at `at`, of `size` bytes at the IP layer if that is given and large enough.
    pub(super) fn encode(&mut self, at: Time, request: &Request, size: Option<Bytes>) -> Vec<u8> {
        let wanted = size.map_or(0, |s| (s - self.ip.udp_overhead()).0 as usize);
        let mut buffer = Vec::with_capacity(wanted.max(256));
        // Nothing of what we put together ourselves is refused by the encoder.
        let built = self.build(&mut buffer, self.key.as_ref(), at, request, wanted);
        debug_assert_eq!(built, Ok(()));
        self.next_sequence = self.next_sequence.wrapping_add(1);
        buffer
    }

    /// A hello in unauthenticated mode, whatever the session's mode: asks a silent peer whether it is the key.
    pub(super) fn encode_open_hello(&mut self, at: Time, nonce: u64) -> Vec<u8> {
        let mut buffer = Vec::new();
        let built = self.build(&mut buffer, None, at, &Request::Hello { nonce, token: [0; 16] }, 0);
        debug_assert_eq!(built, Ok(()));
        self.next_sequence = self.next_sequence.wrapping_add(1);
        buffer
    }

    fn build(
        &self,
        buffer: &mut Vec<u8>,
        key: Option<&Key>,
        at: Time,
        request: &Request,
        wanted: usize,
    ) -> Result<(), WireError> {
        let mode = if key.is_some() { Mode::Authenticated } else { Mode::Open };
        let base = SenderPacket {
            sequence: self.next_sequence,
            timestamp: self.stamp(at),
            error: self.error,
            ssid: self.ssid,
        };
        let b = PacketBuilder::sender(buffer, mode, &base);
        let b = match request {
            Request::Hello { nonce, token } => b.tlv(&HelloRequest {
                version_min: VERSION,
                version_max: VERSION,
                wanted: Abilities::ARRIVAL_REPORTS
                    | Abilities::REVERSE_STREAMS
                    | Abilities::DEPARTURE_REPORTS
                    | Abilities::SCHEDULES,
                nonce: *nonce,
                token: *token,
            })?,
            Request::Report { token, stream, page, kind, entries } => b.tlv(&ReportRequest {
                token: *token,
                stream: *stream,
                page: *page,
                kind: *kind,
                acknowledge: false,
                end: false,
                value_len: report_len(*entries),
            })?,
            Request::Release { token, stream } => {
                b.tlv(&last(*token, *stream))?.tlv(&ControlCode::NoReply)?
            }
            Request::Goodbye { token } => {
                b.tlv(&ReportRequest { end: true, ..last(*token, 0) })?.tlv(&ControlCode::NoReply)?
            }
            Request::Pay { token } => {
                let tag = StreamTag { stream: 0, index: 0, count: 1, burst: 0, token: *token };
                b.tlv(&tag)?.tlv(&ControlCode::NoReply)?
            }
            Request::Reverse { token, stream, total, what } => {
                let tag = StreamTag {
                    stream: *stream,
                    index: what.first,
                    count: *total,
                    burst: what.burst,
                    token: *token,
                };
                let control = ReflectedControl {
                    length: reverse_payload(what.size, self.ip),
                    count: what.count,
                    interval_ns: u32::try_from(what.interval.as_nanos()).unwrap_or(u32::MAX),
                    groups: false,
                };
                let mut b = b.tlv(&tag)?.tlv(&control)?;
                if let Some(schedule) = &what.schedule {
                    b = b.tlv(schedule)?;
                }
                match what.class() {
                    Some(class) => b.tlv(&class)?,
                    None => b,
                }
            }
            Request::Forward { tag } => b.tlv(tag)?.tlv(&ControlCode::NoReply)?,
            Request::RoundTrip => b,
        };
        // A session without TLVs but padding needs no HMAC TLV (RFC 8972, 4.8).
        let b = match key {
            Some(key) if !matches!(request, Request::RoundTrip) => b.tlv_hmac(&key.0)?,
            _ => b,
        };
        let b = if wanted >= b.size() + 4 { b.pad_to(wanted, Padding::Zeros)? } else { b };
        match key {
            Some(key) => b.sign(&key.0).map(drop),
            None => Ok(()),
        }
    }

    /// Reads a reply in the session's mode.
    ///
    /// A packet that is not for this session, altered, or not understood is an error: to be dropped and counted.
    pub(super) fn decode<'a>(&self, datagram: &'a [u8]) -> Result<Replied<'a>, WireError> {
        let mode = match &self.key {
            Some(key) => {
                key.0.verify_packet(datagram)?;
                Mode::Authenticated
            }
            None => Mode::Open,
        };
        self.decode_as(mode, datagram)
    }

    /// Reads a reply in unauthenticated mode, for [`encode_open_hello`](Codec::encode_open_hello).
    pub(super) fn decode_open<'a>(&self, datagram: &'a [u8]) -> Result<Replied<'a>, WireError> {
        self.decode_as(Mode::Open, datagram)
    }

    fn decode_as<'a>(&self, mode: Mode, datagram: &'a [u8]) -> Result<Replied<'a>, WireError> {
        let base = ReflectorPacket::parse(mode, datagram)?;
        // Zero: a reflector that does not know RFC 8972.
        if base.ssid != self.ssid && base.ssid != 0 {
            return Err(WireError::Value { what: "the session identifier", value: u64::from(base.ssid) });
        }
        let (mut reply, mut tag) = (Reply::Plain, None);
        for tlv in Tlvs::new(tlv_area(mode, datagram)) {
            let tlv = tlv?;
            if !tlv.flags.usable() {
                continue;
            }
            match tlv.kind {
                TlvType::HELLO => reply = Reply::Hello(HelloReply::decode_value(tlv.value)?),
                TlvType::REPORT => reply = Reply::Report(ReportPage::parse(tlv.value)?),
                TlvType::STREAM => tag = Some(StreamTag::decode_value(tlv.value)?),
                TlvType::REFLECTED_CONTROL if tlv.flags.contains(TlvFlags::NOT_CONFORMANT) => {
                    reply = Reply::ReverseRefused;
                }
                _ => {}
            }
        }
        if let (Reply::Plain, Some(tag)) = (&reply, tag) {
            reply = Reply::Stream(tag);
        }
        Ok(Replied { sequence: base.sender_sequence, stamp: base.sender_timestamp, reply })
    }

    /// A report request, or a smaller one of control, of so many entries at the IP layer.
    pub(super) fn report_size(&self, entries: usize) -> Bytes {
        let (base, hmac) = if self.key.is_some() { (112, 20) } else { (44, 0) };
        // Beside the report there may be a Return Path TLV of 12 bytes.
        Bytes(base + hmac + 4 + 12 + report_len(entries) as u64) + self.ip.udp_overhead()
    }

    /// Bytes of the replies to `n` packets of `bytes` in all at the IP layer: as much, and an HMAC TLV that some
    /// reflectors add.
    pub(super) fn reply_size(&self, bytes: Bytes, n: usize) -> Bytes {
        if self.key.is_some() { bytes + Bytes(20) * n as u64 } else { bytes }
    }

    /// Size at the IP layer of the smallest probe that holds all that a probe of any direction must carry.
    pub(super) fn smallest_probe(&self) -> Bytes {
        let tlvs = if self.key.is_some() { 112 + 36 + 12 + 20 } else { 44 + 36 + 12 };
        Bytes(tlvs + 4) + self.ip.udp_overhead()
    }
}

/// The last request about a stream.
fn last(token: Token, stream: u32) -> ReportRequest {
    let kind = ReportKind::Arrivals;
    ReportRequest { token, stream, page: 0, kind, acknowledge: true, end: false, value_len: 0 }
}

/// Entries of a report page that keeps its packet, authenticated and on IPv6, below 1280 bytes.
pub(super) const PAGE_ENTRIES: usize = 120;
/// The same below 576 bytes.
pub(super) const SMALL_PAGE: usize = 40;

fn report_len(entries: usize) -> usize {
    crate::wire::private::REPORT_HEADER_LEN
        + entries.min(PAGE_ENTRIES) * crate::wire::private::REPORT_ENTRY_LEN
}

/// UDP payload of a reverse packet: reflectors send multiples of four (asymmetrical-pkts, 3).
fn reverse_payload(size: Bytes, ip: IpVersion) -> u16 {
    u16::try_from((size - ip.udp_overhead()).0 & !3).unwrap_or(!3)
}
