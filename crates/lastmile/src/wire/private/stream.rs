//! Stream: which packets belong together.

use super::{PREFIX, Token, check_prefix};
use crate::wire::standard::{fixed, target};
use crate::wire::{Mode, TlvType, TlvValue, Tlvs, WireError, be, be16, be32, put, tlv_area};

/// Octets of a Stream value.
pub const STREAM_LEN: usize = 32;

/// Tag of a probe packet: its stream and its place there. Put it first among the TLVs.
///
/// ```text
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                   'LSM'                       |   Layout = 1  |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                           Stream id                           |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |            Index              |            Count              |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |            Burst              |           Reserved            |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                            Token (16)                         |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StreamTag {
    /// The stream, unique within the sender's session.
    pub stream: u32,
    /// Place of this packet in the stream, from 0. In a request for a reverse stream: of the first packet that the
    /// request asks for, so that a stream may be asked for in several requests.
    pub index: u16,
    /// Packets in the whole stream.
    pub count: u16,
    /// In a request for a reverse stream: packets sent back to back each time the interval of the Reflected Test
    /// Packet Control TLV has passed (2 for packet pairs). 0 and 1 mean single packets, as that TLV has it by itself.
    /// 0 elsewhere.
    pub burst: u16,
    /// The reflector's address-proof token.
    pub token: Token,
}

impl StreamTag {
    /// Finds the tag of any STAMP packet, authenticated or not, without knowing the mode: for an observer of the path.
    ///
    /// ```
    /// # use lastmile::wire::*;
    /// # use lastmile::wire::private::StreamTag;
    /// let tag = StreamTag { stream: 3, index: 1, count: 30, burst: 0, token: [0; 16] };
    /// let error = ErrorEstimate::from_bits(1);
    /// let packet = SenderPacket { sequence: 0, timestamp: 0, error, ssid: 0 };
    /// let mut probe = Vec::new();
    /// PacketBuilder::sender(&mut probe, Mode::Open, &packet)
    ///     .tlv(&tag)?
    ///     .tlv(&ControlCode::NoReply)?
    ///     .pad_to(1472, Padding::Zeros)?;
    /// assert_eq!(StreamTag::find(&probe), Some(tag));
    /// assert_eq!(StreamTag::find(b"something else"), None);
    /// # Ok::<(), WireError>(())
    /// ```
    #[must_use]
    pub fn find(datagram: &[u8]) -> Option<Self> {
        [Mode::Open, Mode::Authenticated].into_iter().find_map(|mode| Self::find_in(tlv_area(mode, datagram)))
    }

    /// Finds the tag in a TLV area.
    #[must_use]
    pub fn find_in(area: &[u8]) -> Option<Self> {
        let tagged = |tlv: crate::wire::Tlv<'_>| match tlv.kind {
            TlvType::STREAM => Self::decode_value(tlv.value).ok(),
            _ => None,
        };
        Tlvs::new(area).map_while(Result::ok).find_map(tagged)
    }

    /// The packet's own tag in a sequence that answers this request: `index` moved on by `offset`.
    ///
    /// # Errors
    /// [`WireError::Value`] where the index would leave the stream.
    pub fn reflected(&self, offset: u16) -> Result<Self, WireError> {
        match self.index.checked_add(offset) {
            Some(index) if index < self.count => Ok(Self { index, burst: 0, ..*self }),
            _ => Err(WireError::Value {
                what: "the index of a Stream TLV",
                value: u64::from(self.index) + u64::from(offset),
            }),
        }
    }
}

impl TlvValue for StreamTag {
    const KIND: TlvType = TlvType::STREAM;

    fn value_len(&self) -> usize {
        STREAM_LEN
    }

    fn encode_value(&self, out: &mut [u8]) -> Result<(), WireError> {
        let p: &mut [u8; STREAM_LEN] = target(out)?;
        *p = [0; STREAM_LEN];
        put(p, 0, &PREFIX);
        put(p, 4, &self.stream.to_be_bytes());
        put(p, 8, &self.index.to_be_bytes());
        put(p, 10, &self.count.to_be_bytes());
        put(p, 12, &self.burst.to_be_bytes());
        put(p, 16, &self.token);
        Ok(())
    }

    /// Refuses an index that is not below the count.
    fn decode_value(value: &[u8]) -> Result<Self, WireError> {
        check_prefix(Self::KIND, value)?;
        let p: &[u8; STREAM_LEN] = fixed(Self::KIND, value)?;
        let tag = Self {
            stream: be32(p, 4),
            index: be16(p, 8),
            count: be16(p, 10),
            burst: be16(p, 12),
            token: be(p, 16),
        };
        if tag.index >= tag.count {
            return Err(WireError::Value { what: "the index of a Stream TLV", value: u64::from(tag.index) });
        }
        Ok(tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{
        ErrorEstimate, PacketBuilder, ReflectedControl, SenderPacket, reflect_tlvs, tlv_area_mut,
    };

    const TAG: StreamTag =
        StreamTag { stream: 0x0A0B_0C0D, index: 4, count: 60, burst: 2, token: [0x77; 16] };

    #[test]
    fn tag_has_fixed_places() {
        let mut wire = [0xFF; STREAM_LEN];
        TAG.encode_value(&mut wire).unwrap();
        assert_eq!(wire[..16], *b"LSM\x01\x0A\x0B\x0C\x0D\x00\x04\x00\x3C\x00\x02\x00\x00");
        assert_eq!(wire[16..], [0x77; 16]);
        wire[9] = 60;
        assert!(matches!(StreamTag::decode_value(&wire), Err(WireError::Value { value: 60, .. })));
        assert!(matches!(StreamTag::decode_value(&wire[..31]), Err(WireError::TlvLength { .. })));
    }

    #[test]
    fn reverse_request_composes_with_the_control_tlv() {
        let control = ReflectedControl { length: 1472, count: 6, interval_ns: 1_000_000, groups: false };
        let packet = SenderPacket { sequence: 0, timestamp: 0, error: ErrorEstimate::from_bits(1), ssid: 0 };
        for mode in [Mode::Open, Mode::Authenticated] {
            let mut request = Vec::new();
            PacketBuilder::sender(&mut request, mode, &packet).tlv(&TAG).unwrap().tlv(&control).unwrap();
            // The reflector writes each packet's own index into the tag that it copies.
            let area = tlv_area_mut(mode, &mut request);
            let met = reflect_tlvs(area, |tlv| {
                if tlv.kind == TlvType::STREAM {
                    let tag = StreamTag::decode_value(tlv.value).unwrap();
                    tag.reflected(5).unwrap().encode_value(tlv.value).unwrap();
                }
                crate::wire::Verdict::Understood
            });
            assert_eq!((met.count, met.unrecognized, met.malformed_at), (2, 0, None));
            assert_eq!(StreamTag::find(&request), Some(StreamTag { index: 9, burst: 0, ..TAG }));
        }
        assert!(TAG.reflected(56).is_err(), "index 60 of 60");
        assert!(TAG.reflected(u16::MAX).is_err());
    }

    #[test]
    fn tag_of_another_experiment_is_passed_over() {
        let mut area =
            vec![0x80, TlvType::STREAM.0, 0, 4, 1, 2, 3, 4, 0x80, TlvType::STREAM.0, 0, STREAM_LEN as u8];
        area.resize(12 + STREAM_LEN, 0);
        TAG.encode_value(&mut area[12..]).unwrap();
        assert_eq!(StreamTag::find_in(&area), Some(TAG));
    }
}
