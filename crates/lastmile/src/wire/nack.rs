//! Lost packets asked for again (generic NACK, RFC 4585, section 6.2.1), and sent again (RFC 4588, section 4).

use super::WireError;
use super::rtcp_packet::{TRANSPORT_FEEDBACK, packet};
use super::rtp::{RTP_HEADER_LEN, RtpPacket};

/// The format number of NACKs among those of the transport layer.
pub(super) const NACK_FORMAT: u8 = 1;
/// Bytes of the original sequence number, which stands before the payload of a packet that is sent again.
pub const RETRANSMISSION_HEADER_LEN: usize = 2;

/// Packets that a receiver misses.
///
/// ```
/// use lastmile::wire::{Rtcp, write_nack};
/// let mut bytes = Vec::new();
/// write_nack(&mut bytes, 1, 7, &[65_535, 0, 15, 16]);
/// assert_eq!(bytes.len(), 12 + 2 * 4); // the first and the 16 after it are one word
/// let Some(Ok(Rtcp::Nack(nack))) = Rtcp::all(&bytes).next() else { panic!() };
/// assert_eq!((nack.sender, nack.ssrc), (1, 7));
/// assert_eq!(nack.lost().collect::<Vec<_>>(), [65_535, 0, 15, 16]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nack<'a> {
    /// SSRC of the receiver that asks.
    pub sender: u32,
    /// The source of the packets.
    pub ssrc: u32,
    words: &'a [u8],
}

impl<'a> Nack<'a> {
    /// Reads a whole packet, whose type and format are right.
    pub(super) fn parse(packet: &'a [u8]) -> Result<Nack<'a>, WireError> {
        let short = WireError::Truncated { what: "a NACK", need: 16, have: packet.len() };
        let head: &[u8; 12] = packet.first_chunk().filter(|_| packet.len() >= 16).ok_or(short)?;
        Ok(Nack { sender: super::be32(head, 4), ssrc: super::be32(head, 8), words: &packet[12..] })
    }

    /// The sequence numbers asked for.
    pub fn lost(&self) -> impl Iterator<Item = u16> + use<'a> {
        self.words.as_chunks::<4>().0.iter().flat_map(|word| {
            let (first, mask) = (super::be16(word, 0), super::be16(word, 2));
            let others = (0..16_u16)
                .filter(move |bit| mask >> bit & 1 == 1)
                .map(move |bit| first.wrapping_add(bit + 1));
            core::iter::once(first).chain(others)
        })
    }
}

/// Appends a NACK for these packets of a source, by their numbers in the order of sending; nothing where there are none.
pub fn write_nack(out: &mut Vec<u8>, own: u32, ssrc: u32, lost: &[u16]) {
    if lost.is_empty() {
        return;
    }
    packet(out, NACK_FORMAT, TRANSPORT_FEEDBACK, |out| {
        out.extend(own.to_be_bytes());
        out.extend(ssrc.to_be_bytes());
        let mut rest = lost;
        while let [first, others @ ..] = rest {
            let near =
                others.iter().take_while(|other| (1..=16).contains(&other.wrapping_sub(*first))).count();
            let mask =
                others[..near].iter().fold(0, |mask, other| mask | 1 << (other.wrapping_sub(*first) - 1));
            out.extend(first.to_be_bytes());
            out.extend(u16::to_be_bytes(mask));
            rest = &others[near..];
        }
    });
}

/// Appends a packet that is sent again: the original with another type, number and source, and its own number before its payload.
///
/// ```
/// use lastmile::wire::{RtpHeader, RtpPacket, original, write_retransmission};
/// let header = RtpHeader { marker: true, payload_type: 96, sequence: 7, timestamp: 90_000, ssrc: 1 };
/// let (mut first, mut again) = (Vec::new(), Vec::new());
/// header.write(&mut first);
/// first.extend([1, 2, 3]);
/// write_retransmission(&mut again, &first, (97, 40_000, 2))?;
/// let read = RtpPacket::parse(&again)?;
/// assert_eq!(read.header, RtpHeader { payload_type: 97, sequence: 40_000, ssrc: 2, ..header });
/// assert_eq!(original(&read), Some((7, &[1, 2, 3][..])));
/// # Ok::<(), lastmile::wire::WireError>(())
/// ```
///
/// # Errors
/// The original is no RTP packet.
pub fn write_retransmission(
    out: &mut Vec<u8>,
    original: &[u8],
    (payload_type, sequence, ssrc): (u8, u16, u32),
) -> Result<(), WireError> {
    let packet = RtpPacket::parse(original)?;
    // Contributing sources and the extension stay; padding does not.
    let padding = original.last().filter(|_| original[0] & 0x20 != 0).copied().unwrap_or(0);
    let end = original.len() - usize::from(padding);
    let payload = end - packet.payload.len();
    out.push(original[0] & !0x20);
    out.push(original[1] & 0x80 | payload_type & 0x7f);
    out.extend(sequence.to_be_bytes());
    out.extend(&original[4..8]);
    out.extend(ssrc.to_be_bytes());
    out.extend(&original[RTP_HEADER_LEN..payload]);
    out.extend(packet.header.sequence.to_be_bytes());
    out.extend(packet.payload);
    Ok(())
}

/// The original's sequence number and payload in a packet that is sent again; `None` if it is too short.
pub fn original<'a>(packet: &RtpPacket<'a>) -> Option<(u16, &'a [u8])> {
    let (number, payload) = packet.payload.split_first_chunk::<RETRANSMISSION_HEADER_LEN>()?;
    Some((u16::from_be_bytes(*number), payload))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Rtcp;

    /// RFC 4585, section 6.2.1 by hand: 10, and by the mask 0b1000000000000001 also 11 and 26.
    #[test]
    fn the_layout_is_that_of_the_rfc() {
        let bytes = [0x81, 205, 0, 3, 0, 0, 0, 1, 0, 0, 0, 7, 0, 10, 0x80, 0x01];
        let Some(Ok(Rtcp::Nack(nack))) = Rtcp::all(&bytes).next() else { panic!() };
        assert_eq!(nack.lost().collect::<Vec<_>>(), [10, 11, 26]);
        let mut written = Vec::new();
        write_nack(&mut written, 1, 7, &[10, 11, 26]);
        assert_eq!(written, bytes);
    }

    #[test]
    fn a_nack_for_nothing_is_refused_and_not_written() {
        let bytes = [0x81, 205, 0, 2, 0, 0, 0, 1, 0, 0, 0, 7];
        assert!(matches!(Rtcp::all(&bytes).next(), Some(Err(WireError::Truncated { need: 16, .. }))));
        let mut written = Vec::new();
        write_nack(&mut written, 1, 7, &[]);
        assert!(written.is_empty());
    }

    /// Padding, an extension of one word and a contributing source.
    #[test]
    fn what_stands_before_the_payload_stays_and_padding_does_not() {
        let first = [
            0xb1, 0xe0, 0x12, 0x34, 0, 0, 0, 9, 0xde, 0xad, 0xbe, 0xef, 0, 0, 0, 5, 0xbe, 0xde, 0, 1, 0x10,
            0xff, 0, 0, 7, 8, 0, 0, 0, 4,
        ];
        let mut again = Vec::new();
        write_retransmission(&mut again, &first, (97, 1, 2)).unwrap();
        let (before, after) = (RtpPacket::parse(&first).unwrap(), RtpPacket::parse(&again).unwrap());
        assert_eq!((after.extension, after.header.marker), (before.extension, true));
        assert_eq!((after.header.timestamp, after.header.sequence), (9, 1));
        assert_eq!(original(&after), Some((0x1234, &[7, 8][..])));
        assert!(write_retransmission(&mut again, &first[..20], (97, 1, 2)).is_err());
    }
}
