//! Common parts of all RTCP packets: header, length and padding (RFC 3550, section 6.4.1).

use super::rtp::{VERSION, version};
use super::{WireError, be16};

/// Transport layer feedback (RFC 4585, section 9), whose formats stand in files of their own.
pub(super) const TRANSPORT_FEEDBACK: u8 = 205;
/// APP packets (RFC 3550, section 6.7): their names tell whose they are.
pub(super) const APPLICATION: u8 = 204;

/// The first packet of a datagram, without padding, and the bytes after it.
pub(super) fn split(bytes: &[u8]) -> Result<(&[u8], &[u8]), WireError> {
    let what = "an RTCP packet";
    let head: &[u8; 4] =
        bytes.first_chunk().ok_or(WireError::Truncated { what, need: 4, have: bytes.len() })?;
    version(head[0], "the version of an RTCP packet")?;
    // In words, without the first (section 6.4.1).
    let len = 4 * (usize::from(be16(head, 2)) + 1);
    let short = WireError::Truncated { what, need: len, have: bytes.len() };
    let (mut packet, after) = bytes.split_at_checked(len).ok_or(short)?;
    if head[0] & 0x20 != 0 {
        let padding = packet.last().copied().unwrap_or(0);
        let end = len.checked_sub(padding.into()).filter(|&end| padding > 0 && end >= 4);
        let what = "the padding of an RTCP packet";
        packet = &packet[..end.ok_or(WireError::Value { what, value: padding.into() })?];
    }
    Ok((packet, after))
}

/// Appends a packet: its header with the length in words, and the bytes that `body` writes.
pub(super) fn packet(out: &mut Vec<u8>, count: u8, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend([VERSION << 6 | count & 0x1f, kind, 0, 0]);
    body(out);
    out.resize(start + (out.len() - start).next_multiple_of(4), 0);
    let words = ((out.len() - start) / 4 - 1) as u16;
    out[start + 2..start + 4].copy_from_slice(&words.to_be_bytes());
}
