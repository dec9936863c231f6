//! Fields of receiver-based TFRC beyond RTP and its reports (RFC 5348, section 3.2), in formats of our own. Data packets carry
//! the time of sending and the sender's round-trip time in a header extension (RFC 8285, one-byte headers). Feedback is an APP
//! packet (RFC 3550, section 6.7); in another one a sender names the scheme that is to count losses. `docs/protocol.md`
//! draws all of them.

use super::WireError;
use super::rtcp_packet::{APPLICATION, packet};
use super::rtp::{RtpHeader, RtpPacket};
use crate::time::Span;
use crate::units::Bytes;

/// The profile of one-byte elements (RFC 8285, section 4.2), and our element's identifier.
const ONE_BYTE: u16 = 0xbede;
const ELEMENT: u8 = 5;
/// Bytes of our element's data.
const DATA: usize = 7;
/// Bytes that the extension takes in a packet.
pub const SEND_TIME_LEN: usize = 12;
/// Bits of the time, below those of the round's number.
const TIME_BITS: u32 = 28;
/// The greatest round-trip time that can be written, in microseconds; and the bits above it.
const MAX_RTT: u32 = (1 << 22) - 1;
const HISTORY: u32 = 1 << 22;
const SUMMARY: u32 = 1 << 23;

/// The name of our APP packets.
pub(super) const NAME: [u8; 4] = *b"TFRC";
/// Subtypes of ours: reports, and names of schemes.
pub(super) const REPORT: u8 = 0;
pub(super) const SCHEME: u8 = 1;
/// Bytes of a report, with the header, and those of a packet before the name in it.
pub(super) const REPORT_LEN: usize = 40;
const SCHEME_HEAD: usize = 12;
/// The longest name of a scheme in bytes.
pub const MAX_SCHEME_NAME: usize = 252;

/// A sender's fields in a data packet (RFC 5348, section 3.2.1).
///
/// ```
/// use lastmile::{time::Span, wire::{RtpHeader, RtpPacket, SendTime}};
/// let header = RtpHeader { marker: true, payload_type: 96, sequence: 7, timestamp: 90_000, ssrc: 1 };
/// let sent = SendTime { at: 5, round: 3, rtt: Some(Span::from_millis(40)), summary: true, history: false };
/// let mut bytes = Vec::new();
/// sent.write(&header, &mut bytes);
/// assert_eq!(SendTime::of(&RtpPacket::parse(&bytes)?), Some(sent));
/// # Ok::<(), lastmile::wire::WireError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendTime {
    /// When it left, on a clock of the sender's: microseconds modulo 2^28.
    pub at: u32,
    /// The sender's round, modulo 16: the number of times that it heard feedback or waited for it in vain.
    pub round: u8,
    /// The sender's estimate of the round-trip time, once it has one; 4.194303 s is the most.
    pub rtt: Option<Span>,
    /// The receiver is asked for [`TfrcReport`]s in place of congestion control feedback.
    pub summary: bool,
    /// Toggled to make the receiver begin a new loss history: from the first packet with the other value.
    pub history: bool,
}

impl SendTime {
    /// A time, in microseconds, that was so many when the packet before told `before`: within two minutes of it.
    pub fn micros(&self, before: u32, unwrapped: u64) -> u64 {
        let left = 32 - TIME_BITS;
        unwrapped.saturating_add_signed(i64::from((self.at.wrapping_sub(before) << left) as i32 >> left))
    }

    /// Appends an RTP header that carries it.
    pub fn write(&self, header: &RtpHeader, out: &mut Vec<u8>) {
        let start = out.len();
        header.write(out);
        out[start] |= 0x10;
        out.extend(ONE_BYTE.to_be_bytes());
        out.extend([0, 2, ELEMENT << 4 | (DATA as u8 - 1)]);
        let at = self.at & ((1 << TIME_BITS) - 1) | u32::from(self.round) << TIME_BITS;
        out.extend(at.to_be_bytes());
        let bit = |set: bool, bit: u32| if set { bit } else { 0 };
        let rtt = self.rtt.map_or(0, |rtt| micros(rtt).clamp(1, MAX_RTT));
        let word = rtt | bit(self.summary, SUMMARY) | bit(self.history, HISTORY);
        out.extend(&word.to_be_bytes()[1..]);
    }

    /// The send time in a packet's header extension, if it has one.
    pub fn of(packet: &RtpPacket<'_>) -> Option<SendTime> {
        let (_, mut rest) = packet.extension.filter(|(profile, _)| *profile == ONE_BYTE)?;
        while let Some((&head, after)) = rest.split_first() {
            // Zero is padding; an identifier of 15 ends the elements (section 4.2).
            let len = match head >> 4 {
                0 => 0,
                15 => return None,
                _ => usize::from(head & 0x0f) + 1,
            };
            let (data, next) = after.split_at_checked(len)?;
            if head >> 4 == ELEMENT
                && let &[a, b, c, d, e, f, g] = data
            {
                let (at, rtt) = (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([0, e, f, g]));
                return Some(SendTime {
                    at: at & ((1 << TIME_BITS) - 1),
                    round: (at >> TIME_BITS) as u8,
                    rtt: Some(rtt & MAX_RTT).filter(|rtt| *rtt > 0).map(span),
                    summary: rtt & SUMMARY != 0,
                    history: rtt & HISTORY != 0,
                });
            }
            rest = next;
        }
        None
    }
}

/// A receiver's report on one source (RFC 5348, section 3.2.2).
///
/// ```
/// use lastmile::{time::Span, units::Bytes, wire::{Rtcp, TfrcReport, scheme_check, write_tfrc_report}};
/// let scheme = scheme_check("tfrc(form=receiver)+zbs");
/// let report = TfrcReport {
///     ssrc: 9, source: 7, sequence: 65_535, scheme, echo: 5, delay: Span::from_micros(120),
///     received: Bytes(50_000), over: Span::from_millis(50), loss_event_rate: 0.2,
/// };
/// let mut bytes = Vec::new();
/// write_tfrc_report(&mut bytes, &report);
/// assert_eq!(Rtcp::all(&bytes).next(), Some(Ok(Rtcp::Tfrc(report))));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TfrcReport {
    /// SSRC of the receiver.
    pub ssrc: u32,
    /// SSRC of the source reported on.
    pub source: u32,
    /// The sequence number of the newest packet.
    pub sequence: u16,
    /// Scheme by which losses are counted: [`scheme_check`] of its name.
    pub scheme: u16,
    /// The send time in that packet: `t_recvdata`.
    pub echo: u32,
    /// Time from that packet's arrival to the report, to a microsecond: `t_delay`.
    pub delay: Span,
    /// IP bytes that arrived within `over`: X_recv is their quotient.
    pub received: Bytes,
    /// Time in which they arrived, to a microsecond; zero before the first measurement.
    pub over: Span,
    /// p, 0 to 1, in steps of 1 / (2^32 - 1).
    pub loss_event_rate: f64,
}

impl TfrcReport {
    /// Reads a whole packet, whose type and name are right.
    pub(super) fn parse(packet: &[u8]) -> Result<TfrcReport, WireError> {
        let short = WireError::Truncated { what: "a report of TFRC", need: REPORT_LEN, have: packet.len() };
        let all: &[u8; REPORT_LEN] = packet.first_chunk().ok_or(short)?;
        let word = |at| super::be32(all, at);
        Ok(TfrcReport {
            ssrc: word(4),
            source: word(12),
            sequence: super::be16(all, 16),
            scheme: super::be16(all, 18),
            echo: word(20),
            delay: span(word(24)),
            received: Bytes(word(28).into()),
            over: span(word(32)),
            loss_event_rate: f64::from(word(36)) / 4_294_967_295.0,
        })
    }
}

/// Appends a report; values out of range become the nearest that fits.
pub fn write_tfrc_report(out: &mut Vec<u8>, report: &TfrcReport) {
    packet(out, REPORT, APPLICATION, |out| {
        out.extend(report.ssrc.to_be_bytes());
        out.extend(NAME);
        out.extend(report.source.to_be_bytes());
        out.extend(report.sequence.to_be_bytes());
        out.extend(report.scheme.to_be_bytes());
        let p = report.loss_event_rate;
        // A loss event rate above zero is never said to be none: that ends slow start.
        let p = if p > 0.0 { ((p * 4_294_967_295.0 + 0.5) as u32).max(1) } else { 0 };
        let received = u32::try_from(report.received.0).unwrap_or(u32::MAX);
        for word in [report.echo, micros(report.delay), received, micros(report.over), p] {
            out.extend(word.to_be_bytes());
        }
    });
}

/// A sender names the scheme by which its losses are to be counted: `tfrc(form=receiver)` with its options, and the classifier in front.
///
/// ```
/// use lastmile::wire::{Rtcp, TfrcScheme, write_tfrc_scheme};
/// let scheme = TfrcScheme { source: 7, name: "tfrc(form=receiver)+zbs" };
/// let mut bytes = Vec::new();
/// write_tfrc_scheme(&mut bytes, &scheme);
/// assert_eq!(Rtcp::all(&bytes).next(), Some(Ok(Rtcp::TfrcScheme(scheme))));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TfrcScheme<'a> {
    /// The source.
    pub source: u32,
    /// The scheme's name, of 1 to [`MAX_SCHEME_NAME`] bytes without zeros.
    pub name: &'a str,
}

impl<'a> TfrcScheme<'a> {
    /// Reads a whole packet, whose type and name are right.
    pub(super) fn parse(packet: &'a [u8]) -> Result<TfrcScheme<'a>, WireError> {
        let short =
            WireError::Truncated { what: "the name of a TFRC scheme", need: SCHEME_HEAD, have: packet.len() };
        let head: &[u8; SCHEME_HEAD] = packet.first_chunk().ok_or(short)?;
        // Zeros fill the last word.
        let text = packet[SCHEME_HEAD..].split(|byte| *byte == 0).next().unwrap_or_default();
        let name = core::str::from_utf8(text).ok().filter(|name| (1..=MAX_SCHEME_NAME).contains(&name.len()));
        let wrong = WireError::Value { what: "the name of a TFRC scheme", value: text.len() as u64 };
        Ok(TfrcScheme { source: super::be32(head, 4), name: name.ok_or(wrong)? })
    }
}

/// Appends the name of a scheme; nothing where it is longer than [`MAX_SCHEME_NAME`].
pub fn write_tfrc_scheme(out: &mut Vec<u8>, scheme: &TfrcScheme<'_>) {
    if scheme.name.len() > MAX_SCHEME_NAME {
        return;
    }
    packet(out, SCHEME, APPLICATION, |out| {
        out.extend(scheme.source.to_be_bytes());
        out.extend(NAME);
        out.extend(scheme.name.as_bytes());
    });
}

/// Check value by which reports tell schemes apart: FNV-1a of 32 bits over the name, its halves joined by exclusive or.
pub fn scheme_check(name: &str) -> u16 {
    let hash =
        name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    (hash >> 16) as u16 ^ hash as u16
}

fn micros(span: Span) -> u32 {
    u32::try_from(span.as_nanos().max(0).saturating_add(500) / 1_000).unwrap_or(u32::MAX)
}

fn span(micros: u32) -> Span {
    Span::from_nanos(i64::from(micros) * 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Rtcp;

    const HEADER: RtpHeader =
        RtpHeader { marker: false, payload_type: 96, sequence: 0x1234, timestamp: 9, ssrc: 7 };

    /// RFC 8285, section 4.2, drawn by hand: identifier 5, seven bytes, round 11, 40 ms with the bits for reports and of the history.
    #[test]
    fn the_extension_is_laid_out_as_documented() {
        let mut bytes = Vec::new();
        let rtt = Some(Span::from_millis(40));
        SendTime { at: 0x0102_0304, round: 11, rtt, summary: true, history: true }.write(&HEADER, &mut bytes);
        assert_eq!(bytes[0], 0x90);
        assert_eq!(bytes[12..], [0xbe, 0xde, 0, 2, 0x56, 0xb1, 2, 3, 4, 0xc0, 0x9c, 0x40]);
        assert_eq!(bytes.len() - 12, SEND_TIME_LEN);
    }

    /// Each is told of its predecessor: 3 ms later, 3 ms earlier, and where 28 bits begin anew.
    #[test]
    fn times_go_on_where_their_bits_begin_anew() {
        let at = |at| SendTime { at, round: 0, rtt: None, summary: false, history: false };
        assert_eq!(at(5_000).micros(2_000, 1 << 30), (1 << 30) + 3_000);
        assert_eq!(at(2_000).micros(5_000, 1 << 30), (1 << 30) - 3_000);
        assert_eq!(at(1_000).micros((1 << 28) - 1_000, (1 << 28) - 1_000), (1 << 28) + 1_000);
    }

    #[test]
    fn it_is_found_among_elements_of_others_and_not_beyond_the_extension() {
        let find = |words: &[u8]| {
            let packet = RtpPacket { header: HEADER, extension: Some((ONE_BYTE, words)), payload: &[] };
            SendTime::of(&packet)
        };
        let sent = SendTime { at: 1, round: 0, rtt: None, summary: false, history: false };
        assert_eq!(find(&[0, 0x31, 9, 9, 0x56, 0, 0, 0, 1, 0, 0, 0]), Some(sent));
        // Cut short, behind the end that 15 says, or of another length.
        for words in
            [&[0x56, 0, 0, 0][..], &[0xf0, 0x56, 0, 0, 0, 1, 0, 0, 0], &[0x55, 0, 0, 0, 1, 0, 0], &[]]
        {
            assert_eq!(find(words), None, "{words:?}");
        }
        let other = RtpPacket {
            header: HEADER,
            extension: Some((0x1000, &[0x56, 0, 0, 0, 1, 0, 0, 0])),
            payload: &[],
        };
        assert_eq!(SendTime::of(&other), None);
    }

    #[test]
    fn what_cannot_be_said_becomes_the_nearest_that_can() {
        let report = TfrcReport {
            ssrc: 1,
            source: 2,
            sequence: 3,
            scheme: 6,
            echo: 4,
            delay: Span::from_nanos(-5),
            received: Bytes(u64::MAX),
            over: Span::MAX,
            loss_event_rate: 1e-15,
        };
        let read = |report: &TfrcReport| {
            let mut bytes = Vec::new();
            write_tfrc_report(&mut bytes, report);
            assert_eq!(bytes.len(), REPORT_LEN);
            let Some(Ok(Rtcp::Tfrc(read))) = Rtcp::all(&bytes).next() else { panic!() };
            read
        };
        let said = read(&report);
        assert_eq!((said.delay, said.received.0, said.over), (Span::ZERO, u32::MAX.into(), span(u32::MAX)));
        assert!(said.loss_event_rate > 0.0);
        for (p, wanted) in [(f64::NAN, 0.0), (-1.0, 0.0), (7.0, 1.0), (1.0, 1.0), (0.0, 0.0)] {
            assert_eq!(read(&TfrcReport { loss_event_rate: p, ..report }).loss_event_rate, wanted, "{p}");
        }
    }

    /// FNV-1a's own test vectors: of nothing 811c9dc5, of "a" e40c292c, of "foobar" bf9cf968.
    #[test]
    fn names_of_schemes_are_told_apart_and_only_possible_ones_are_read() {
        assert_eq!(
            ["", "a", "foobar"].map(scheme_check),
            [0x811c ^ 0x9dc5, 0xe40c ^ 0x292c, 0xbf9c ^ 0xf968]
        );
        let mut bytes = Vec::new();
        write_tfrc_scheme(&mut bytes, &TfrcScheme { source: 7, name: "tfrc+" });
        assert_eq!(bytes, [&[0x81, APPLICATION, 0, 4, 0, 0, 0, 7][..], b"TFRCtfrc+\0\0\0"].concat());
        for wrong in [&[][..], &[0; 4], &[0xff; 4], &[b'a'; 256]] {
            let mut bytes = Vec::new();
            packet(&mut bytes, SCHEME, APPLICATION, |out| {
                out.extend([&[0, 0, 0, 7][..], &NAME, wrong].concat())
            });
            assert!(matches!(Rtcp::all(&bytes).next(), Some(Err(WireError::Value { .. }))), "{wrong:?}");
        }
        bytes.clear();
        write_tfrc_scheme(&mut bytes, &TfrcScheme { source: 7, name: &"a".repeat(253) });
        assert!(bytes.is_empty());
    }

    #[test]
    fn a_report_that_is_cut_is_refused_and_other_applications_are_skipped() {
        let mut bytes = Vec::new();
        packet(&mut bytes, 0, APPLICATION, |out| {
            out.extend([0, 0, 0, 1, b'T', b'F', b'R', b'C', 0, 0, 0, 7])
        });
        assert!(matches!(Rtcp::all(&bytes).next(), Some(Err(WireError::Truncated { need: REPORT_LEN, .. }))));
        bytes[8] = b'X';
        assert_eq!(Rtcp::all(&bytes).next(), Some(Ok(Rtcp::Other { kind: APPLICATION })));
        assert_eq!(Rtcp::all(&[0x80, APPLICATION, 0, 0]).next(), Some(Ok(Rtcp::Other { kind: APPLICATION })));
    }
}
