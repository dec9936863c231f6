//! TLV framing, flags and the reflector's duties (RFC 8972, section 4).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |U|M|I|C|0 0 0 0|      Type     |            Length             |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ~                            Value                              ~
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```

use std::fmt;
use std::iter::FusedIterator;

use super::WireError;

/// Octets before a TLV's value.
pub const TLV_HEADER_LEN: usize = 4;

/// The flags octet of a TLV.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TlvFlags(u8);

impl TlvFlags {
    /// No flag: a reflector has understood the TLV.
    pub const NONE: Self = Self(0);
    /// U: the reflector has not understood the TLV. A sender sets it, so that a reflector that knows no TLVs and
    /// copies them is told from one that does.
    pub const UNRECOGNIZED: Self = Self(0x80);
    /// M: the TLV is malformed.
    pub const MALFORMED: Self = Self(0x40);
    /// I: the TLVs failed HMAC verification.
    pub const INTEGRITY: Self = Self(0x20);
    /// C: the reflector did not follow the Reflected Test Packet Control TLV, because of a limit of its own
    /// (draft-ietf-ippm-asymmetrical-pkts-14, 3).
    pub const NOT_CONFORMANT: Self = Self(0x10);
    /// Flags of a sender's TLVs.
    pub const SENDER: Self = Self::UNRECOGNIZED;

    /// Flags from the octet; the four reserved bits are dropped.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 0xF0)
    }

    /// The octet.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// True if all flags of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// True if a sender may use the values of a reflected TLV with these flags: neither U, M nor I is set.
    #[must_use]
    pub const fn usable(self) -> bool {
        self.0 & 0xE0 == 0
    }
}

impl std::ops::BitOr for TlvFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Debug for TlvFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters = [(0x80, 'U'), (0x40, 'M'), (0x20, 'I'), (0x10, 'C')];
        f.write_str("TlvFlags(")?;
        letters.iter().filter(|(bit, _)| self.0 & bit != 0).try_for_each(|(_, name)| write!(f, "{name}"))?;
        f.write_str(")")
    }
}

/// A TLV type number of the registry "STAMP TLV Types" (RFC 8972, 5.1).
///
/// 1 to 175 by IETF review, 176 to 239 first come first served, 240 to 251 for experiments, 252 to 254 private.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TlvType(pub u8);

impl TlvType {
    /// Extra Padding, RFC 8972, 4.1.
    pub const EXTRA_PADDING: Self = Self(1);
    /// Location, RFC 8972, 4.2. Not implemented: flagged U.
    pub const LOCATION: Self = Self(2);
    /// Timestamp Information, RFC 8972, 4.3. Not implemented: flagged U.
    pub const TIMESTAMP_INFORMATION: Self = Self(3);
    /// Class of Service, RFC 8972, 4.4.
    pub const CLASS_OF_SERVICE: Self = Self(4);
    /// Direct Measurement, RFC 8972, 4.5. Not implemented: flagged U.
    pub const DIRECT_MEASUREMENT: Self = Self(5);
    /// Access Report, RFC 8972, 4.6. Not implemented: flagged U.
    pub const ACCESS_REPORT: Self = Self(6);
    /// Follow-Up Telemetry, RFC 8972, 4.7. Not implemented: flagged U.
    pub const FOLLOW_UP_TELEMETRY: Self = Self(7);
    /// HMAC, RFC 8972, 4.8.
    pub const HMAC: Self = Self(8);
    /// Destination Node Address, RFC 9503, 3. Not implemented: flagged U.
    pub const DESTINATION_NODE_ADDRESS: Self = Self(9);
    /// Return Path, RFC 9503, 4.
    pub const RETURN_PATH: Self = Self(10);
    /// Micro-session ID, RFC 9534, 3.1. Not implemented: flagged U.
    pub const MICRO_SESSION_ID: Self = Self(11);
    /// Reflected Test Packet Control, draft-ietf-ippm-asymmetrical-pkts-14, 3.
    pub const REFLECTED_CONTROL: Self = Self(12);
    /// Our version and ability exchange, [`super::private::HelloRequest`]. Experimental range; 240 to 242, 246 and
    /// 247 are left free because `stamp-suite` uses them.
    pub const HELLO: Self = Self(243);
    /// Our stream tag, [`super::private::StreamTag`].
    pub const STREAM: Self = Self(244);
    /// Our deferred report, [`super::private::ReportRequest`].
    pub const REPORT: Self = Self(245);
    /// The departures of a reverse stream that is not evenly spaced, [`super::private::Schedule`].
    pub const SCHEDULE: Self = Self(248);
}

/// A value that knows its TLV type and its encoding.
pub trait TlvValue: Sized {
    /// The type number.
    const KIND: TlvType;

    /// Octets of the encoded value.
    fn value_len(&self) -> usize;

    /// Writes the value into exactly [`Self::value_len`] octets.
    ///
    /// # Errors
    /// [`WireError::Buffer`] where `out` has another length.
    fn encode_value(&self, out: &mut [u8]) -> Result<(), WireError>;

    /// Reads a value.
    ///
    /// # Errors
    /// [`WireError::TlvLength`] (flag M); [`WireError::NotOurs`] and [`WireError::Layout`] for our own types
    /// (flag U); [`WireError::Value`].
    fn decode_value(value: &[u8]) -> Result<Self, WireError>;
}

/// One TLV of a packet, borrowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tlv<'a> {
    /// Flags as found.
    pub flags: TlvFlags,
    /// Type number.
    pub kind: TlvType,
    /// The value.
    pub value: &'a [u8],
    /// Offset of the TLV's header in the area, bytes.
    pub offset: usize,
}

/// Header of the TLV at a position: its kind, flags and the end of its value.
struct Frame {
    at: usize,
    end: usize,
    flags: TlvFlags,
    kind: TlvType,
}

/// A walk over a TLV area that does not borrow it.
#[derive(Debug, Clone, Default)]
struct Cursor {
    at: usize,
    /// Offset of the trailing zeros, bytes. Found when the first zero header is met, and only once, so that a packet
    /// made of zero headers costs no more than any other.
    zeros_from: Option<usize>,
    done: bool,
}

impl Cursor {
    fn next(&mut self, area: &[u8]) -> Option<Result<Frame, WireError>> {
        let at = self.at;
        let rest = area.get(at..).unwrap_or_default();
        if self.done || rest.is_empty() || self.is_fill(area, rest) {
            self.done = true;
            return None;
        }
        // After any error below, nothing can be framed.
        self.done = true;
        let Some(&[flags, kind, high, low]) = rest.first_chunk() else {
            return Some(Err(WireError::Truncated {
                what: "a TLV header",
                need: TLV_HEADER_LEN,
                have: rest.len(),
            }));
        };
        let length = usize::from(u16::from_be_bytes([high, low]));
        let end = at + TLV_HEADER_LEN + length;
        if end > area.len() {
            let have = rest.len() - TLV_HEADER_LEN;
            return Some(Err(WireError::TlvOverrun { kind, length, have }));
        }
        self.done = false;
        self.at = end;
        Some(Ok(Frame { at, end, flags: TlvFlags::from_bits(flags), kind: TlvType(kind) }))
    }

    /// Zeros to the end are TWAMP Light padding (RFC 8762, 4.6), not TLVs: a sender of RFC 8972 sets U on each.
    fn is_fill(&mut self, area: &[u8], rest: &[u8]) -> bool {
        if rest.iter().take(TLV_HEADER_LEN).any(|octet| *octet != 0) {
            return false;
        }
        let from = || area.iter().rposition(|octet| *octet != 0).map_or(0, |last| last + 1);
        self.at >= *self.zeros_from.get_or_insert_with(from)
    }
}

/// The TLVs after a base packet, in order; an `Err` is the last item, because framing ends there.
///
/// Zeros up to the end of the area are padding of a TWAMP Light sender and end the walk without an error.
///
/// ```
/// use lastmile::wire::{TlvType, Tlvs, WireError};
/// let area = [0x80, 1, 0, 2, 0xAA, 0xBB, 0x80, 200, 0, 9, 1];
/// let mut tlvs = Tlvs::new(&area);
/// let padding = tlvs.next().unwrap()?;
/// assert_eq!((padding.kind, padding.value), (TlvType::EXTRA_PADDING, &[0xAA, 0xBB][..]));
/// assert_eq!(tlvs.next(), Some(Err(WireError::TlvOverrun { kind: 200, length: 9, have: 1 })));
/// assert_eq!(tlvs.next(), None);
/// # Ok::<(), WireError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Tlvs<'a> {
    area: &'a [u8],
    cursor: Cursor,
}

impl<'a> Tlvs<'a> {
    /// Walks over a TLV area ([`super::tlv_area`]), or over the sub-TLVs in a value.
    #[must_use]
    pub fn new(area: &'a [u8]) -> Self {
        Self { area, cursor: Cursor::default() }
    }
}

impl<'a> Iterator for Tlvs<'a> {
    type Item = Result<Tlv<'a>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        let frame = match self.cursor.next(self.area)? {
            Ok(frame) => frame,
            Err(error) => return Some(Err(error)),
        };
        let value = self.area.get(frame.at + TLV_HEADER_LEN..frame.end).unwrap_or_default();
        Some(Ok(Tlv { flags: frame.flags, kind: frame.kind, value, offset: frame.at }))
    }
}

impl FusedIterator for Tlvs<'_> {}

/// A TLV under a reflector's hands: the value may be filled in.
#[derive(Debug)]
pub struct TlvMut<'a> {
    /// Type number.
    pub kind: TlvType,
    /// The value, of the length that it keeps.
    pub value: &'a mut [u8],
    /// Offset of the TLV's header in the area, bytes.
    pub offset: usize,
}

/// A reflector's verdict on a TLV.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Understood and acted on: all flags cleared.
    Understood,
    /// Not understood, or understood and not to be used: U.
    Unrecognized,
    /// The length does not fit the type: M, and nothing after it is looked at.
    Malformed,
    /// A Reflected Test Packet Control that a limit forbids to follow: C.
    NotConformant,
}

impl Verdict {
    /// The verdict on a TLV from the result of reading its value.
    ///
    /// A wrong length is M. Another program's experiment, an unknown layout, or a value that has no meaning is U.
    #[must_use]
    pub fn of<T>(read: &Result<T, WireError>) -> Self {
        match read {
            Ok(_) => Self::Understood,
            Err(WireError::TlvLength { .. } | WireError::Truncated { .. } | WireError::TlvOverrun { .. }) => {
                Self::Malformed
            }
            Err(_) => Self::Unrecognized,
        }
    }
}

/// Counts of [`reflect_tlvs`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Reflected {
    /// TLVs walked over, the malformed one included.
    pub count: usize,
    /// TLVs that got U.
    pub unrecognized: usize,
    /// Offset of the malformed TLV's header in the area, bytes, if there is one; the bytes after it are unchanged.
    pub malformed_at: Option<usize>,
}

/// A reflector's pass over the TLVs of a packet in place (RFC 8972, 4): asks `judge` about each, which may change
/// the value, and sets the flags.
///
/// A TLV that leads past the end gets M without `judge` being asked; it and the remainder stay as they are.
pub fn reflect_tlvs(area: &mut [u8], mut judge: impl FnMut(TlvMut<'_>) -> Verdict) -> Reflected {
    let mut cursor = Cursor::default();
    let mut met = Reflected::default();
    loop {
        let at = cursor.at;
        let frame = match cursor.next(area) {
            None => return met,
            Some(frame) => frame,
        };
        met.count += 1;
        let verdict = match frame {
            Err(_) => Verdict::Malformed,
            Ok(frame) => {
                let value = area.get_mut(at + TLV_HEADER_LEN..frame.end).unwrap_or_default();
                judge(TlvMut { kind: frame.kind, value, offset: at })
            }
        };
        let flags = match verdict {
            Verdict::Understood => TlvFlags::NONE,
            Verdict::Unrecognized => TlvFlags::UNRECOGNIZED,
            Verdict::Malformed => TlvFlags::MALFORMED,
            Verdict::NotConformant => TlvFlags::NOT_CONFORMANT,
        };
        met.unrecognized += usize::from(verdict == Verdict::Unrecognized);
        if let Some(octet) = area.get_mut(at) {
            *octet = flags.bits();
        }
        if verdict == Verdict::Malformed {
            met.malformed_at = Some(at);
            return met;
        }
    }
}

/// A reflector's pass over TLVs whose HMAC does not fit: I on every one, and no value is looked at (RFC 8972, 4.8).
///
/// Also for a reflector without a key that meets an HMAC TLV, since it must not use TLVs that it cannot verify.
pub fn fail_integrity(area: &mut [u8]) {
    let mut cursor = Cursor::default();
    loop {
        let at = cursor.at;
        let (flags, last) = match cursor.next(area) {
            None => return,
            Some(Ok(_)) => (TlvFlags::INTEGRITY, false),
            Some(Err(_)) => (TlvFlags::INTEGRITY | TlvFlags::MALFORMED, true),
        };
        if let Some(octet) = area.get_mut(at) {
            *octet = flags.bits();
        }
        if last {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ClassOfService;

    fn judge(tlv: TlvMut<'_>) -> Verdict {
        match tlv.kind {
            TlvType::EXTRA_PADDING => Verdict::Understood,
            TlvType::CLASS_OF_SERVICE => Verdict::of(&ClassOfService::decode_value(tlv.value)),
            _ => Verdict::Unrecognized,
        }
    }

    #[test]
    fn flags_print_their_letters() {
        assert_eq!(format!("{:?}", TlvFlags::from_bits(0xBF)), "TlvFlags(UIC)");
        assert!(!TlvFlags::SENDER.usable() && TlvFlags::NOT_CONFORMANT.usable());
    }

    #[test]
    fn reflector_clears_u_on_what_it_knows_and_keeps_the_rest() {
        let mut area = [0x80, 4, 0, 4, 1, 2, 3, 4, 0x80, 200, 0, 1, 9, 0xFF, 1, 0, 0];
        let met = reflect_tlvs(&mut area, judge);
        assert_eq!(met, Reflected { count: 3, unrecognized: 1, malformed_at: None });
        assert_eq!(area, [0, 4, 0, 4, 1, 2, 3, 4, 0x80, 200, 0, 1, 9, 0, 1, 0, 0]);
    }

    #[test]
    fn malformed_length_gets_m_and_ends_the_walk() {
        // Class of Service with three octets, then a TLV that stays as it came.
        let mut area = [0x80, 4, 0, 3, 1, 2, 3, 0x80, 1, 0, 0];
        let met = reflect_tlvs(&mut area, judge);
        assert_eq!(met, Reflected { count: 1, unrecognized: 0, malformed_at: Some(0) });
        assert_eq!(area, [0x40, 4, 0, 3, 1, 2, 3, 0x80, 1, 0, 0]);
    }

    #[test]
    fn a_tlv_past_the_end_gets_m_at_every_cut() {
        let whole = [0x80, 1, 0, 2, 7, 7, 0x80, 4, 0, 4, 1, 2, 3, 4];
        for cut in 7..whole.len() {
            let mut area = whole[..cut].to_vec();
            let met = reflect_tlvs(&mut area, judge);
            assert_eq!((met.count, met.malformed_at), (2, Some(6)), "cut at {cut}");
            assert_eq!((area[0], area[6]), (0, 0x40));
            assert_eq!(area[7..], whole[7..cut]);
            assert!(Tlvs::new(&area).last().unwrap().is_err());
        }
    }

    #[test]
    fn integrity_failure_marks_every_tlv() {
        let mut area = [0x80, 4, 0, 1, 0, 0x80, 200, 0, 0, 0x80, 8, 0, 99, 1];
        fail_integrity(&mut area);
        assert_eq!(area, [0x20, 4, 0, 1, 0, 0x20, 200, 0, 0, 0x60, 8, 0, 99, 1]);
    }

    #[test]
    fn trailing_zeros_are_padding_and_zeros_between_are_not() {
        let mut area = [0x80, 200, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(reflect_tlvs(&mut area, judge).count, 1);
        assert_eq!(area, [0x80, 200, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let kinds: Vec<u8> = Tlvs::new(&[0, 0, 0, 0, 0x80, 5, 0, 0]).map(|tlv| tlv.unwrap().kind.0).collect();
        assert_eq!(kinds, [0, 5]);
    }

    #[test]
    fn a_packet_of_zero_headers_costs_linear_time() {
        // One set bit at the end makes every zero header a TLV; a scan per header would be quadratic.
        let mut area = vec![0; 65_532];
        area.extend([0x80, 1, 0, 0]);
        assert_eq!(Tlvs::new(&area).filter(Result::is_ok).count(), 65_536 / 4);
    }

    #[test]
    fn not_conformant_is_c() {
        let mut area = [0x80, 12, 0, 0];
        reflect_tlvs(&mut area, |_| Verdict::NotConformant);
        assert_eq!(area[0], 0x10);
    }
}
