//! RTP packets (RFC 3550, section 5): the fixed header, the optional fields before the payload, and padding.

use super::WireError;

/// Bytes of the fixed header.
pub const RTP_HEADER_LEN: usize = 12;
/// The protocol's version, in the two high bits of every RTP and RTCP packet.
pub(super) const VERSION: u8 = 2;

/// The fields of the fixed header that a sender of one source sets.
///
/// ```
/// use lastmile::wire::{RtpHeader, RtpPacket};
/// let header = RtpHeader { marker: true, payload_type: 96, sequence: 7, timestamp: 90_000, ssrc: 1 };
/// let mut bytes = Vec::new();
/// header.write(&mut bytes);
/// bytes.extend([1, 2, 3]);
/// let read = RtpPacket::parse(&bytes)?;
/// assert_eq!((read.header, read.payload), (header, &[1, 2, 3][..]));
/// # Ok::<(), lastmile::wire::WireError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RtpHeader {
    /// Of video: the last packet of a frame.
    pub marker: bool,
    /// Payload type number (RFC 3550, 5.1), 7 bits.
    pub payload_type: u8,
    /// One more for each packet, modulo 65,536.
    pub sequence: u16,
    /// When the payload was sampled, on the media's clock.
    pub timestamp: u32,
    /// The source.
    pub ssrc: u32,
}

impl RtpHeader {
    /// Appends the header: no padding, extension or contributing sources.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(VERSION << 6);
        out.push(u8::from(self.marker) << 7 | self.payload_type & 0x7f);
        out.extend(self.sequence.to_be_bytes());
        out.extend(self.timestamp.to_be_bytes());
        out.extend(self.ssrc.to_be_bytes());
    }
}

/// An RTP packet that was received.
///
/// ```
/// use lastmile::wire::RtpPacket;
/// assert!(RtpPacket::parse(&[0x80; 11]).is_err()); // shorter than a header
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtpPacket<'a> {
    /// The fixed header.
    pub header: RtpHeader,
    /// The header extension's profile and its words (section 5.3.1).
    pub extension: Option<(u16, &'a [u8])>,
    /// The payload, without padding.
    pub payload: &'a [u8],
}

impl<'a> RtpPacket<'a> {
    /// Reads a packet.
    ///
    /// # Errors
    /// The packet is not RTP of version 2, is too short, or has padding that does not fit.
    pub fn parse(bytes: &'a [u8]) -> Result<RtpPacket<'a>, WireError> {
        let short = |need| WireError::Truncated { what: "an RTP packet", need, have: bytes.len() };
        let fixed: &[u8; RTP_HEADER_LEN] = bytes.first_chunk().ok_or_else(|| short(RTP_HEADER_LEN))?;
        version(fixed[0], "the version of an RTP packet")?;
        let sources = usize::from(fixed[0] & 0x0f);
        let mut at = RTP_HEADER_LEN + 4 * sources;
        let mut extension = None;
        if fixed[0] & 0x10 != 0 {
            let head = bytes.get(at..at + 4).ok_or_else(|| short(at + 4))?;
            let profile = u16::from_be_bytes([head[0], head[1]]);
            let words = 4 * usize::from(u16::from_be_bytes([head[2], head[3]]));
            at += 4;
            extension = Some((profile, bytes.get(at..at + words).ok_or_else(|| short(at + words))?));
            at += words;
        }
        let mut payload = bytes.get(at..).ok_or_else(|| short(at))?;
        if fixed[0] & 0x20 != 0 {
            // The last byte counts the padding, itself included.
            let padding = payload.last().copied().unwrap_or(0);
            let end = payload.len().checked_sub(usize::from(padding)).filter(|_| padding > 0);
            let what = "the padding of an RTP packet";
            payload = &payload[..end.ok_or(WireError::Value { what, value: padding.into() })?];
        }
        let header = RtpHeader {
            marker: fixed[1] & 0x80 != 0,
            payload_type: fixed[1] & 0x7f,
            sequence: super::be16(fixed, 2),
            timestamp: super::be32(fixed, 4),
            ssrc: super::be32(fixed, 8),
        };
        Ok(RtpPacket { header, extension, payload })
    }
}

/// Refuses another version of the protocol than ours, by a packet's first byte.
pub(super) fn version(first: u8, what: &'static str) -> Result<(), WireError> {
    match first >> 6 {
        VERSION => Ok(()),
        other => Err(WireError::Value { what, value: other.into() }),
    }
}

/// True if a datagram on a port that RTP and RTCP share is RTCP (RFC 5761, section 4). Decided by its packet type, 192 to
/// 223: as RTP it would be a marker and a payload type of 64 to 95.
///
/// ```
/// assert!(lastmile::wire::is_rtcp(&[0x80, 200]));
/// assert!(!lastmile::wire::is_rtcp(&[0x80, 96 | 0x80]));
/// ```
pub fn is_rtcp(bytes: &[u8]) -> bool {
    bytes.get(1).is_some_and(|kind| (192..=223).contains(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3550, section 5.1, drawn by hand: version 2, padding, extension, one contributing source, marker, type 33.
    const WHOLE: [u8; 30] = [
        0xb1, 0xa1, 0x12, 0x34, 0, 0, 0, 9, 0xde, 0xad, 0xbe, 0xef, // the fixed header
        0, 0, 0, 5, // the contributing source
        0xbe, 0xde, 0, 1, 0x10, 0xff, 0, 0, // an extension of one word
        7, 8, 0, 0, 0, 4, // two bytes of payload, four of padding
    ];

    #[test]
    fn every_part_of_a_packet_is_found() {
        let packet = RtpPacket::parse(&WHOLE).unwrap();
        let header =
            RtpHeader { marker: true, payload_type: 33, sequence: 0x1234, timestamp: 9, ssrc: 0xdead_beef };
        assert_eq!(packet.header, header);
        assert_eq!(packet.extension, Some((0xbede, &[0x10, 0xff, 0, 0][..])));
        assert_eq!(packet.payload, [7, 8]);
    }

    #[test]
    fn a_packet_that_ends_too_early_is_refused_at_every_length() {
        for len in 0..24 {
            assert!(RtpPacket::parse(&WHOLE[..len]).is_err(), "{len}");
        }
        // More padding than there is payload, or none where some is announced.
        for last in [0, 7] {
            let mut bytes = WHOLE;
            bytes[29] = last;
            assert!(RtpPacket::parse(&bytes).unwrap_err().to_string().contains("padding"));
        }
        assert!(RtpPacket::parse(&[0x40; 12]).unwrap_err().to_string().contains("version"));
    }
}
