//! HMAC-SHA-256, truncated to 16 octets: over the base packet (RFC 8762, 4.4) and over the TLVs (RFC 8972, 4.8).

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::{TLV_HEADER_LEN, TlvType, Tlvs, WireError};

/// Octets of an HMAC on the wire (RFC 8762, 4.4).
pub const TAG_LEN: usize = 16;
/// Shortest key accepted, bytes. The RFCs name none; shorter than the tag would make the key the weakest part.
pub const MIN_KEY_LEN: usize = 16;

/// A key, with the first hash block already absorbed, so that a packet costs two blocks less.
#[derive(Clone)]
pub struct HmacKey(Hmac<Sha256>);

impl fmt::Debug for HmacKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HmacKey(..)")
    }
}

/// Result of checking a packet's HMAC TLV over its TLVs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TlvIntegrity {
    /// There is nothing to protect: no TLV, or a single Extra Padding (RFC 8972, 4.8).
    Empty,
    /// There are TLVs and no HMAC TLV. In authenticated mode that is a failure; otherwise it is the sender's choice.
    Absent,
    /// The HMAC fits.
    Valid,
    /// The HMAC does not fit, or stands before a TLV other than Extra Padding: no TLV may be used, and a reflector
    /// answers with [`super::fail_integrity`].
    Failed,
}

impl HmacKey {
    /// A key from its bytes.
    ///
    /// # Errors
    /// [`WireError::KeyTooShort`] below [`MIN_KEY_LEN`].
    pub fn new(key: &[u8]) -> Result<Self, WireError> {
        let refused = WireError::KeyTooShort { have: key.len() };
        if key.len() < MIN_KEY_LEN {
            return Err(refused);
        }
        Hmac::new_from_slice(key).map(Self).map_err(|_| refused)
    }

    fn mac(&self, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        parts.iter().for_each(|part| mac.update(part));
        mac
    }

    pub(super) fn tag(&self, parts: &[&[u8]]) -> [u8; TAG_LEN] {
        let full = self.mac(parts).finalize().into_bytes();
        let mut tag = [0; TAG_LEN];
        tag.copy_from_slice(&full[..TAG_LEN]);
        tag
    }

    pub(super) fn check(&self, parts: &[&[u8]], tag: &[u8]) -> Result<(), WireError> {
        self.mac(parts).verify_truncated_left(tag).map_err(|_| WireError::BadHmac)
    }

    /// The value of an HMAC TLV: over the base packet's Sequence Number and all TLVs before it (RFC 8972, 4.8).
    #[must_use]
    pub fn tlv_tag(&self, sequence: u32, preceding: &[u8]) -> [u8; TAG_LEN] {
        self.tag(&[&sequence.to_be_bytes(), preceding])
    }

    /// Checks the HMAC TLV of a TLV area, before any of its values is used.
    ///
    /// A TLV that breaks the framing ends the search; if it stands before the HMAC TLV the result is
    /// [`TlvIntegrity::Absent`] and the malformed rule decides.
    #[must_use]
    pub fn verify_tlvs(&self, sequence: u32, area: &[u8]) -> TlvIntegrity {
        let mut tag = None;
        let (mut count, mut others) = (0usize, 0usize);
        for tlv in Tlvs::new(area) {
            let Ok(tlv) = tlv else {
                return if tag.is_some() { TlvIntegrity::Failed } else { TlvIntegrity::Absent };
            };
            count += 1;
            match tlv.kind {
                TlvType::EXTRA_PADDING => {}
                TlvType::HMAC if tag.is_none() && tlv.value.len() == TAG_LEN => tag = Some(tlv),
                // A second HMAC, one of a wrong length, or anything but padding behind the HMAC.
                kind if tag.is_some() || kind == TlvType::HMAC => return TlvIntegrity::Failed,
                _ => others += 1,
            }
        }
        match tag {
            Some(hmac) => {
                let preceding = area.get(..hmac.offset).unwrap_or_default();
                match self.check(&[&sequence.to_be_bytes(), preceding], hmac.value) {
                    Ok(()) => TlvIntegrity::Valid,
                    Err(_) => TlvIntegrity::Failed,
                }
            }
            None if count == 0 || (count == 1 && others == 0) => TlvIntegrity::Empty,
            None => TlvIntegrity::Absent,
        }
    }

    /// Renews the HMAC TLV of a TLV area after its flags and values were changed; false if there is none.
    ///
    /// `sequence` is the one of the packet that goes out.
    pub fn resign_tlvs(&self, sequence: u32, area: &mut [u8]) -> bool {
        let found = Tlvs::new(area)
            .map_while(Result::ok)
            .find(|t| t.kind == TlvType::HMAC && t.value.len() == TAG_LEN);
        let Some(offset) = found.map(|tlv| tlv.offset) else { return false };
        let (preceding, rest) = area.split_at_mut(offset);
        let tag = self.tlv_tag(sequence, preceding);
        match rest.get_mut(TLV_HEADER_LEN..TLV_HEADER_LEN + TAG_LEN) {
            Some(value) => value.copy_from_slice(&tag),
            None => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{ErrorEstimate, Mode, SenderPacket, TlvFlags};

    fn key() -> HmacKey {
        HmacKey::new(&std::array::from_fn::<u8, 32, _>(|i| i as u8)).unwrap()
    }

    fn packet() -> [u8; 112] {
        let mut out = [0; 112];
        let error = ErrorEstimate::from_bits(0x8001);
        SenderPacket { sequence: 0x0102_0304, timestamp: 0x83AA_7E80_8000_0000, error, ssid: 0xBEEF }
            .write(Mode::Authenticated, &mut out)
            .unwrap();
        out
    }

    #[test]
    fn base_hmac_is_that_of_another_implementation() {
        // Python 3.11:
        //   b = bytearray(96); b[0:4] = bytes.fromhex('01020304'); b[16:24] = bytes.fromhex('83aa7e8080000000')
        //   b[24:28] = bytes.fromhex('8001beef')
        //   hmac.new(bytes(range(32)), b, hashlib.sha256).hexdigest()[:32]
        let expected = 0x9861_b6b5_1380_44e0_7ed4_a27a_385d_3c4f_u128;
        let mut datagram = packet();
        key().sign_base(&mut datagram).unwrap();
        assert_eq!(datagram[96..], expected.to_be_bytes());
        assert_eq!(key().verify_base(&datagram), Ok(()));
    }

    #[test]
    fn tlv_hmac_is_that_of_another_implementation() {
        // Python 3.11: hmac.new(bytes(range(32)), bytes.fromhex('01020304' '80040004b8004000'), hashlib.sha256), as above.
        let expected = 0x0936_b892_b968_f101_d046_d3bc_b948_b323_u128;
        let preceding = [0x80, 4, 0, 4, 0xB8, 0, 0x40, 0];
        assert_eq!(key().tlv_tag(0x0102_0304, &preceding), expected.to_be_bytes());
        let mut area = preceding.to_vec();
        area.extend([0x80, 8, 0, 16]);
        area.extend(expected.to_be_bytes());
        area.extend([0x80, 1, 0, 0]);
        assert_eq!(key().verify_tlvs(0x0102_0304, &area), TlvIntegrity::Valid);
        assert_eq!(key().verify_tlvs(0x0102_0305, &area), TlvIntegrity::Failed);
    }

    #[test]
    fn any_flipped_bit_is_found() {
        let mut datagram = packet();
        key().sign_base(&mut datagram).unwrap();
        for bit in 0..8 * datagram.len() {
            let mut altered = datagram;
            altered[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(key().verify_base(&altered), Err(WireError::BadHmac));
        }
        let other = HmacKey::new(&[1; 32]).unwrap();
        assert_eq!(other.verify_base(&datagram), Err(WireError::BadHmac));
    }

    #[test]
    fn resigning_restores_what_the_reflector_changed() {
        let mut area = vec![TlvFlags::SENDER.bits(), 4, 0, 4, 0, 0, 0, 0, 0x80, 8, 0, 16];
        area.extend([0; 16]);
        assert!(key().resign_tlvs(5, &mut area));
        assert_eq!(key().verify_tlvs(5, &area), TlvIntegrity::Valid);
        area[0] = 0;
        assert_eq!(key().verify_tlvs(5, &area), TlvIntegrity::Failed);
        assert!(key().resign_tlvs(6, &mut area));
        assert_eq!(key().verify_tlvs(6, &area), TlvIntegrity::Valid);
        assert!(!key().resign_tlvs(6, &mut area[..8]), "no HMAC TLV there");
    }

    #[test]
    fn what_counts_as_protected() {
        let verify = |area: &[u8]| key().verify_tlvs(0, area);
        assert_eq!(verify(&[]), TlvIntegrity::Empty);
        assert_eq!(verify(&[0; 30]), TlvIntegrity::Empty, "TWAMP Light padding");
        assert_eq!(verify(&[0x80, 1, 0, 2, 5, 5]), TlvIntegrity::Empty, "a single Extra Padding");
        assert_eq!(verify(&[0x80, 1, 0, 0, 0x80, 1, 0, 0]), TlvIntegrity::Absent);
        assert_eq!(verify(&[0x80, 4, 0, 4, 0, 0, 0, 0]), TlvIntegrity::Absent);
        assert_eq!(verify(&[0x80, 8, 0, 2, 5, 5]), TlvIntegrity::Failed, "an HMAC of two octets");
        assert_eq!(
            verify(&[0x80, 4, 0, 40, 0, 0, 0, 0]),
            TlvIntegrity::Absent,
            "framing ends before any HMAC"
        );
    }

    #[test]
    fn short_keys_are_refused_and_keys_are_not_printed() {
        assert_eq!(HmacKey::new(&[0; 15]).err(), Some(WireError::KeyTooShort { have: 15 }));
        assert_eq!(format!("{:?}", key()), "HmacKey(..)");
    }
}
