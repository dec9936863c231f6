//! Requests for a picture that needs none before it: Picture Loss Indication (RFC 4585, section 6.3.1) and Full Intra Request (RFC 5104,
//! section 4.3.1).

use super::WireError;
use super::rtcp_packet::packet;

/// Payload-specific feedback (RFC 4585, section 9).
pub(super) const PAYLOAD_FEEDBACK: u8 = 206;
/// The format number of a Picture Loss Indication.
pub(super) const PLI_FORMAT: u8 = 1;
/// That of a Full Intra Request.
pub(super) const FIR_FORMAT: u8 = 4;

/// A receiver asks for a picture from which decoding can begin.
///
/// ```
/// use lastmile::wire::{Rtcp, write_picture_loss};
/// let mut bytes = Vec::new();
/// write_picture_loss(&mut bytes, 1, 7);
/// let Some(Ok(Rtcp::KeyFrame(request))) = Rtcp::all(&bytes).next() else { panic!() };
/// assert!(request.asks(7) && !request.asks(1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyFrameRequest<'a> {
    /// SSRC of the receiver that asks.
    pub sender: u32,
    /// The source of a PLI; zero of a FIR.
    source: u32,
    /// Entries of a FIR: a source, a number, and three reserved bytes.
    entries: &'a [u8],
}

impl<'a> KeyFrameRequest<'a> {
    /// Reads a whole packet, whose type and format are right.
    pub(super) fn parse(packet: &'a [u8]) -> Result<KeyFrameRequest<'a>, WireError> {
        let short = WireError::Truncated { what: "a request for a key frame", need: 12, have: packet.len() };
        let (head, rest) = packet.split_first_chunk::<12>().ok_or(short)?;
        let entries = if head[0] & 0x1f == FIR_FORMAT { rest } else { &[] };
        Ok(KeyFrameRequest { sender: super::be32(head, 4), source: super::be32(head, 8), entries })
    }

    /// True if that source is asked.
    pub fn asks(&self, ssrc: u32) -> bool {
        let own = ssrc.to_be_bytes();
        match self.entries {
            [] => self.source == ssrc,
            entries => entries.as_chunks::<8>().0.iter().any(|entry| entry.starts_with(&own)),
        }
    }
}

/// Appends a Picture Loss Indication.
pub fn write_picture_loss(out: &mut Vec<u8>, own: u32, ssrc: u32) {
    packet(out, PLI_FORMAT, PAYLOAD_FEEDBACK, |out| {
        out.extend(own.to_be_bytes());
        out.extend(ssrc.to_be_bytes());
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Rtcp;

    #[test]
    fn the_layouts_are_those_of_the_rfcs() {
        let mut written = Vec::new();
        write_picture_loss(&mut written, 1, 7);
        assert_eq!(written, [0x81, 206, 0, 2, 0, 0, 0, 1, 0, 0, 0, 7]);
        // RFC 5104, figure 4, with two entries.
        let full_intra =
            [0x84, 206, 0, 6, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 8, 3, 0, 0, 0, 0, 0, 0, 7, 9, 0, 0, 0];
        let Some(Ok(Rtcp::KeyFrame(request))) = Rtcp::all(&full_intra).next() else { panic!() };
        assert!(request.sender == 1 && request.asks(7) && request.asks(8) && !request.asks(0));
        assert!(matches!(Rtcp::all(&[0x81, 206, 0, 1, 0, 0, 0, 1]).next(), Some(Err(_))));
        // Another format of payload-specific feedback.
        let slice_loss = [0x82, 206, 0, 3, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 0];
        assert!(matches!(Rtcp::all(&slice_loss).next(), Some(Ok(Rtcp::Other { kind: 206 }))));
    }
}
