//! Contents of the standard TLVs that we speak.

use super::{TLV_HEADER_LEN, TlvFlags, TlvType, TlvValue, Tlvs, WireError, be16, be32, put};

/// The array behind a value of fixed length, or the error that makes the TLV malformed.
pub(super) fn fixed<const L: usize>(kind: TlvType, value: &[u8]) -> Result<&[u8; L], WireError> {
    value.try_into().map_err(|_| WireError::TlvLength { kind: kind.0, length: value.len() })
}

/// The array to write a value of fixed length into.
pub(super) fn target<const L: usize>(out: &mut [u8]) -> Result<&mut [u8; L], WireError> {
    let have = out.len();
    out.try_into().map_err(|_| WireError::Buffer { what: "a TLV value", need: L, have })
}

/// A reflector's answer to EC1 (draft-ietf-ippm-stamp-cos-ecn-01, 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ReversePathEcn {
    /// 0b00, from senders, and from reflectors that know only RFC 8972.
    #[default]
    Unsaid,
    /// 0b10: the reply's ECN field could not be set to EC1 and is 0b00.
    Refused,
    /// 0b11: the reply's ECN field is EC1.
    Set,
}

/// Class of Service TLV (RFC 8972, 4.4, with erratum 8199; EC1 and RPE from draft-ietf-ippm-stamp-cos-ecn-01, 3.1).
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |   DSCP1   |   DSCP2   |ECN|RP |EC1|RPE|        Reserved       |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
///
/// The draft calls ECN "EC2" and RP "RPD", and uses bits that RFC 8972 reserves, so either side may know only the RFC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ClassOfService {
    /// DSCP1: codepoint that the reply shall carry, 0 to 63.
    pub dscp_wanted: u8,
    /// EC1: ECN codepoint that the reply shall carry, 0 to 3.
    pub ecn_wanted: u8,
    /// DSCP2: codepoint that the request arrived with; the reflector's answer.
    pub dscp_received: u8,
    /// ECN (EC2): codepoint that the request arrived with; the reflector's answer.
    pub ecn_received: u8,
    /// RP: the reflector's policy refused DSCP1, so the reply carries the received DSCP.
    pub dscp_refused: bool,
    /// RPE: the reflector's answer to EC1.
    pub reverse_ecn: ReversePathEcn,
}

impl TlvValue for ClassOfService {
    const KIND: TlvType = TlvType::CLASS_OF_SERVICE;

    fn value_len(&self) -> usize {
        4
    }

    fn encode_value(&self, out: &mut [u8]) -> Result<(), WireError> {
        let reverse_ecn = match self.reverse_ecn {
            ReversePathEcn::Unsaid => 0b00,
            ReversePathEcn::Refused => 0b10,
            ReversePathEcn::Set => 0b11,
        };
        let bits = u32::from(self.dscp_wanted & 63) << 26
            | u32::from(self.dscp_received & 63) << 20
            | u32::from(self.ecn_received & 3) << 18
            | u32::from(self.dscp_refused) << 16
            | u32::from(self.ecn_wanted & 3) << 14
            | reverse_ecn << 12;
        *target(out)? = bits.to_be_bytes();
        Ok(())
    }

    fn decode_value(value: &[u8]) -> Result<Self, WireError> {
        let bits = u32::from_be_bytes(*fixed(Self::KIND, value)?);
        let field = |shift: u32, mask: u32| ((bits >> shift) & mask) as u8;
        Ok(Self {
            dscp_wanted: field(26, 63),
            dscp_received: field(20, 63),
            ecn_received: field(18, 3),
            dscp_refused: field(16, 3) != 0,
            ecn_wanted: field(14, 3),
            reverse_ecn: match field(12, 3) {
                0b11 => ReversePathEcn::Set,
                0b10 => ReversePathEcn::Refused,
                _ => ReversePathEcn::Unsaid,
            },
        })
    }
}

/// Control Code sub-TLV (type 1) of the Return Path TLV (RFC 9503, 4.1.1). Encodes as a Return Path TLV with it alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ControlCode {
    /// 0x0: send no reply. Must not stand beside a Reflected Test Packet Control TLV: a reflector that knows both
    /// sets U on both and replies once (draft-ietf-ippm-asymmetrical-pkts-14, 4.3).
    NoReply,
    /// 0x1: reply over the link that the request came in by.
    SameLink,
}

/// Number of the Control Code sub-TLV.
const CONTROL_CODE: u8 = 1;

impl TlvValue for ControlCode {
    const KIND: TlvType = TlvType::RETURN_PATH;

    fn value_len(&self) -> usize {
        TLV_HEADER_LEN + 4
    }

    fn encode_value(&self, out: &mut [u8]) -> Result<(), WireError> {
        let code = u8::from(*self == Self::SameLink);
        *target(out)? = [TlvFlags::SENDER.bits(), CONTROL_CODE, 0, 4, 0, 0, 0, code];
        Ok(())
    }

    /// As [`ReturnPath::decode`], but a return path elsewhere is [`WireError::Value`].
    fn decode_value(value: &[u8]) -> Result<Self, WireError> {
        match ReturnPath::decode(value)? {
            ReturnPath::Control(code) => Ok(code),
            ReturnPath::Elsewhere => {
                Err(WireError::Value { what: "a Return Path TLV without control code", value: 0 })
            }
        }
    }
}

/// Contents of a Return Path TLV (RFC 9503, 4.1). Only a packet's first one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReturnPath {
    /// A control code; other sub-TLVs beside it are ignored.
    Control(ControlCode),
    /// An address or a segment list, or something unknown. We send replies nowhere but to where the request came
    /// from, so this gets U.
    Elsewhere,
}

impl ReturnPath {
    /// Reads the value of a Return Path TLV.
    ///
    /// # Errors
    /// The framing error of a sub-TLV, or [`WireError::TlvLength`] for a control code that is not four octets long
    /// or for an empty value: flag M.
    pub fn decode(value: &[u8]) -> Result<Self, WireError> {
        if value.len() < TLV_HEADER_LEN {
            return Err(WireError::TlvLength { kind: TlvType::RETURN_PATH.0, length: value.len() });
        }
        for sub in Tlvs::new(value) {
            let sub = sub?;
            if sub.kind == TlvType(CONTROL_CODE) {
                let flags = u32::from_be_bytes(*fixed(TlvType::RETURN_PATH, sub.value)?);
                // Only the lowest bit means anything (RFC 9503, 4.1.1).
                let code = if flags & 1 == 0 { ControlCode::NoReply } else { ControlCode::SameLink };
                return Ok(Self::Control(code));
            }
        }
        Ok(Self::Elsewhere)
    }
}

/// Reflected Test Packet Control TLV: number, size and interval of the packets that shall come back for this one
/// (draft-ietf-ippm-asymmetrical-pkts-14, 3).
///
/// ```text
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |Length of the Reflected Packet |Number of the Reflected Packets|
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |             Interval Between the Reflected Packets            |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ~                            Sub-TLVs                           ~
/// ```
///
/// The value is at least 12 octets, so an empty sub-TLV header stands in where there is no sub-TLV. A reflector that
/// may not send that much replies once, with [`TlvFlags::NOT_CONFORMANT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReflectedControl {
    /// Bytes of UDP payload per reflected packet. The reflector rounds up to a multiple of four and never goes below
    /// the packet without its Extra Padding; so ask for multiples of four.
    pub length: u16,
    /// Number of reflected packets; 0 asks for none, and for the request to be dropped.
    pub count: u16,
    /// Nanoseconds between two reflected packets.
    pub interval_ns: u32,
    /// True if sub-TLVs (address groups, types 10 and 11) limit the reflectors that shall answer. We are in no group:
    /// such a request gets no reply. Encodes nothing.
    pub groups: bool,
}

impl ReflectedControl {
    const LEN: usize = 12;

    /// The packet size that the reflector aims at: `length`, rounded up to a multiple of four.
    #[must_use]
    pub fn aligned_length(&self) -> usize {
        usize::from(self.length).next_multiple_of(4)
    }
}

impl TlvValue for ReflectedControl {
    const KIND: TlvType = TlvType::REFLECTED_CONTROL;

    fn value_len(&self) -> usize {
        Self::LEN
    }

    fn encode_value(&self, out: &mut [u8]) -> Result<(), WireError> {
        let p: &mut [u8; Self::LEN] = target(out)?;
        *p = [0; Self::LEN];
        put(p, 0, &self.length.to_be_bytes());
        put(p, 2, &self.count.to_be_bytes());
        put(p, 4, &self.interval_ns.to_be_bytes());
        Ok(())
    }

    fn decode_value(value: &[u8]) -> Result<Self, WireError> {
        let malformed = WireError::TlvLength { kind: Self::KIND.0, length: value.len() };
        let p: &[u8; Self::LEN] = value.first_chunk().ok_or(malformed)?;
        let mut groups = false;
        for sub in Tlvs::new(value.get(8..).unwrap_or_default()) {
            groups |= sub?.kind != TlvType(0);
        }
        Ok(Self { length: be16(p, 0), count: be16(p, 2), interval_ns: be32(p, 4), groups })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode<T: TlvValue>(value: &T) -> Vec<u8> {
        let mut out = vec![0xFF; value.value_len()];
        value.encode_value(&mut out).unwrap();
        assert!(value.encode_value(&mut vec![0; value.value_len() + 1]).is_err());
        out
    }

    #[test]
    fn class_of_service_follows_the_figure() {
        let cos = ClassOfService {
            dscp_wanted: 0b10_1110,
            ecn_wanted: 0b01,
            dscp_received: 0b01_1010,
            ecn_received: 0b11,
            dscp_refused: true,
            reverse_ecn: ReversePathEcn::Refused,
        };
        let wire = [0b1011_1001, 0b1010_1101, 0b0110_0000, 0];
        assert_eq!(encode(&cos), wire);
        assert_eq!(ClassOfService::decode_value(&wire), Ok(cos));
        // Reserved bits are ignored on receipt.
        assert_eq!(ClassOfService::decode_value(&[wire[0], wire[1], 0b0110_1111, 0xFF]), Ok(cos));
    }

    #[test]
    fn return_path_carries_its_control_code() {
        assert_eq!(encode(&ControlCode::NoReply), [0x80, 1, 0, 4, 0, 0, 0, 0]);
        assert_eq!(encode(&ControlCode::SameLink), [0x80, 1, 0, 4, 0, 0, 0, 1]);
        // Bits other than the lowest are ignored; so are sub-TLVs beside the code.
        let beside = [0, 2, 0, 4, 10, 0, 0, 1, 0, 1, 0, 4, 0xFF, 0xFF, 0xFF, 0xFE];
        assert_eq!(ReturnPath::decode(&beside), Ok(ReturnPath::Control(ControlCode::NoReply)));
        assert_eq!(ReturnPath::decode(&beside[..8]), Ok(ReturnPath::Elsewhere));
        assert!(ControlCode::decode_value(&beside[..8]).is_err());
        assert!(matches!(
            ReturnPath::decode(&[0, 1, 0, 2, 0, 0]),
            Err(WireError::TlvLength { kind: 10, .. })
        ));
        assert!(matches!(ReturnPath::decode(&[0, 1, 0, 4, 0, 0]), Err(WireError::TlvOverrun { .. })));
        assert!(matches!(ReturnPath::decode(&[]), Err(WireError::TlvLength { .. })));
    }

    #[test]
    fn reflected_control_follows_the_figure() {
        let control = ReflectedControl { length: 1472, count: 30, interval_ns: 1_200_000, groups: false };
        let wire = [0x05, 0xC0, 0, 30, 0x00, 0x12, 0x4F, 0x80, 0, 0, 0, 0];
        assert_eq!(encode(&control), wire);
        assert_eq!(ReflectedControl::decode_value(&wire), Ok(control));
        for short in 0..12 {
            assert!(matches!(
                ReflectedControl::decode_value(&wire[..short]),
                Err(WireError::TlvLength { .. })
            ));
        }
        // A Layer 3 Address Group sub-TLV (type 11, eight octets for IPv4).
        let mut grouped = wire[..8].to_vec();
        grouped.extend([0x80, 11, 0, 8, 24, 0, 0, 0, 192, 0, 2, 0]);
        assert!(ReflectedControl::decode_value(&grouped).unwrap().groups);
        grouped.truncate(16);
        assert!(matches!(ReflectedControl::decode_value(&grouped), Err(WireError::TlvOverrun { .. })));
        assert_eq!(ReflectedControl { length: 101, ..control }.aligned_length(), 104);
    }
}
