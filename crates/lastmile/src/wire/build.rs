//! Puts packets together.

use super::{
    HmacKey, Mode, ReflectorPacket, SenderPacket, TLV_HEADER_LEN, TlvFlags, TlvType, TlvValue, WireError,
    sequence_of, tlv_area,
};

/// Contents of Extra Padding (RFC 8972, 4.1: pseudorandom recommended, zeros allowed).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Padding {
    /// Zeros: cheapest, and compressible on the way.
    Zeros,
    /// A pseudorandom sequence (SplitMix64) from this seed; give each packet its own, as its sequence number.
    Random(u64),
}

/// Builds a packet in a buffer that the caller keeps between packets, so that building does not allocate.
///
/// Order: base packet, TLVs, HMAC TLV, Extra Padding, and the base HMAC at any time after the base packet.
///
/// ```
/// use lastmile::wire::{ControlCode, ErrorEstimate, HmacKey, Mode, PacketBuilder, Padding, SenderPacket, TlvIntegrity};
/// use lastmile::wire::{tlv_area, TimestampFormat};
///
/// let key = HmacKey::new(b"a key of at least 16 bytes")?;
/// let error = ErrorEstimate::from_nanos(0, false, TimestampFormat::Ntp);
/// let packet = SenderPacket { sequence: 1, timestamp: 2, error, ssid: 3 };
/// let mut datagram = Vec::new();
/// PacketBuilder::sender(&mut datagram, Mode::Authenticated, &packet)
///     .tlv(&ControlCode::NoReply)?
///     .tlv_hmac(&key)?
///     .sign(&key)?
///     .pad_to(1200, Padding::Zeros)?;
/// key.verify_base(&datagram)?;
/// assert_eq!(key.verify_tlvs(1, tlv_area(Mode::Authenticated, &datagram)), TlvIntegrity::Valid);
/// # Ok::<(), lastmile::wire::WireError>(())
/// ```
#[derive(Debug)]
pub struct PacketBuilder<'a> {
    buffer: &'a mut Vec<u8>,
    mode: Mode,
    flags: TlvFlags,
}

impl<'a> PacketBuilder<'a> {
    /// Begins a Session-Sender's packet and discards the buffer's contents. Its TLVs carry U.
    pub fn sender(buffer: &'a mut Vec<u8>, mode: Mode, packet: &SenderPacket) -> Self {
        Self::begin(buffer, mode, TlvFlags::SENDER, |out| packet.write(mode, out))
    }

    /// Begins a Session-Reflector's packet that is not a changed request: one of an asymmetrical sequence. Its TLVs
    /// carry no flags.
    pub fn reflector(buffer: &'a mut Vec<u8>, mode: Mode, packet: &ReflectorPacket) -> Self {
        Self::begin(buffer, mode, TlvFlags::NONE, |out| packet.write(mode, out))
    }

    fn begin(
        buffer: &'a mut Vec<u8>,
        mode: Mode,
        flags: TlvFlags,
        write: impl FnOnce(&mut [u8]) -> Result<(), WireError>,
    ) -> Self {
        buffer.clear();
        buffer.resize(mode.base_len(), 0);
        // `write` fails only on a buffer below the length just set.
        let written = write(buffer);
        debug_assert_eq!(written, Ok(()));
        Self { buffer, mode, flags }
    }

    /// Bytes so far.
    #[must_use]
    pub fn size(&self) -> usize {
        self.buffer.len()
    }

    /// Appends a TLV.
    ///
    /// # Errors
    /// [`WireError::Buffer`] where the value is longer than the 65,535 octets that Length can say.
    pub fn tlv<T: TlvValue>(self, value: &T) -> Result<Self, WireError> {
        let flags = self.flags;
        self.append(flags, T::KIND, value.value_len(), |out| value.encode_value(out))
    }

    /// Appends a TLV as it came: an unknown one, or one of a request that goes into a reflected sequence.
    ///
    /// # Errors
    /// As [`Self::tlv`].
    pub fn raw(self, flags: TlvFlags, kind: TlvType, value: &[u8]) -> Result<Self, WireError> {
        self.append(flags, kind, value.len(), |out| {
            out.copy_from_slice(value);
            Ok(())
        })
    }

    /// Appends the HMAC TLV over all that stands so far. Only Extra Padding may follow (RFC 8972, 4.8).
    ///
    /// # Errors
    /// None in practice; the signature is that of its fellows.
    pub fn tlv_hmac(self, key: &HmacKey) -> Result<Self, WireError> {
        let tag = key.tlv_tag(sequence_of(self.buffer)?, tlv_area(self.mode, self.buffer));
        let flags = self.flags;
        self.raw(flags, TlvType::HMAC, &tag)
    }

    /// Fills the HMAC of the base packet; does nothing in open mode.
    ///
    /// # Errors
    /// None in practice; the signature is that of its fellows.
    pub fn sign(self, key: &HmacKey) -> Result<Self, WireError> {
        if self.mode == Mode::Authenticated {
            key.sign_base(self.buffer)?;
        }
        Ok(self)
    }

    /// Brings the packet to exactly `size` bytes of UDP payload with an Extra Padding TLV, or leaves it if it has
    /// that size.
    ///
    /// # Errors
    /// [`WireError::Unreachable`] where the packet is larger, or smaller by one to three bytes.
    pub fn pad_to(self, size: usize, padding: Padding) -> Result<Self, WireError> {
        let content = self.buffer.len();
        if content == size {
            return Ok(self);
        }
        let unreachable = WireError::Unreachable { content, wanted: size };
        let value = size.checked_sub(content + TLV_HEADER_LEN).ok_or(unreachable)?;
        let flags = self.flags;
        self.append(flags, TlvType::EXTRA_PADDING, value, |out| {
            if let Padding::Random(seed) = padding {
                fill_random(out, seed);
            }
            Ok(())
        })
    }

    fn append(
        self,
        flags: TlvFlags,
        kind: TlvType,
        length: usize,
        encode: impl FnOnce(&mut [u8]) -> Result<(), WireError>,
    ) -> Result<Self, WireError> {
        let most = usize::from(u16::MAX);
        let header = u16::try_from(length)
            .map_err(|_| WireError::Buffer { what: "a TLV value", need: length, have: most })?
            .to_be_bytes();
        let at = self.buffer.len();
        self.buffer.extend_from_slice(&[flags.bits(), kind.0, header[0], header[1]]);
        self.buffer.resize(at + TLV_HEADER_LEN + length, 0);
        encode(self.buffer.get_mut(at + TLV_HEADER_LEN..).unwrap_or_default())?;
        Ok(self)
    }
}

/// SplitMix64 (Steele, Lea and Flood 2014), eight octets at a time.
fn fill_random(out: &mut [u8], seed: u64) {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)).to_be_bytes()
    };
    let (words, tail) = out.as_chunks_mut::<8>();
    words.iter_mut().for_each(|word| *word = next());
    tail.iter_mut().zip(next()).for_each(|(octet, random)| *octet = random);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{ErrorEstimate, TlvIntegrity, Tlvs};

    fn packet() -> SenderPacket {
        SenderPacket { sequence: 9, timestamp: 1, error: ErrorEstimate::from_bits(1), ssid: 0 }
    }

    #[test]
    fn every_size_is_exact_or_refused() {
        let mut buffer = Vec::new();
        for size in 0..1500 {
            let built =
                PacketBuilder::sender(&mut buffer, Mode::Open, &packet()).pad_to(size, Padding::Random(1));
            match built.map(|b| b.size()) {
                Ok(got) => {
                    assert_eq!(got, size);
                    assert!(size == 44 || size >= 48);
                    assert!(Tlvs::new(tlv_area(Mode::Open, &buffer)).all(|tlv| tlv.is_ok()));
                }
                Err(error) => {
                    assert_eq!(error, WireError::Unreachable { content: 44, wanted: size });
                    assert!(size < 44 || (45..48).contains(&size));
                }
            }
        }
    }

    #[test]
    fn padding_is_a_known_sequence() {
        // SplitMix64 from seed 1234567, published first output 6457827717110365317.
        let mut out = [0; 8];
        fill_random(&mut out, 1_234_567);
        assert_eq!(u64::from_be_bytes(out), 6_457_827_717_110_365_317);
    }

    #[test]
    fn authenticated_mode_needs_the_hmac_tlv_as_soon_as_there_is_a_tlv() {
        let key = HmacKey::new(&[7; 32]).unwrap();
        let mut buffer = Vec::new();
        fn begin<'a>(buffer: &'a mut Vec<u8>, key: &HmacKey) -> PacketBuilder<'a> {
            PacketBuilder::sender(buffer, Mode::Authenticated, &packet()).sign(key).unwrap()
        }
        fn with<'a>(buffer: &'a mut Vec<u8>, key: &HmacKey) -> PacketBuilder<'a> {
            begin(buffer, key).raw(TlvFlags::SENDER, TlvType(200), &[1, 2]).unwrap().tlv_hmac(key).unwrap()
        }

        begin(&mut buffer, &key).pad_to(300, Padding::Zeros).unwrap();
        assert_eq!(key.verify_packet(&buffer), Ok(()), "a single Extra Padding needs none");

        begin(&mut buffer, &key).raw(TlvFlags::SENDER, TlvType(200), &[1, 2]).unwrap();
        assert_eq!(key.verify_packet(&buffer), Err(WireError::BadHmac));

        with(&mut buffer, &key).pad_to(300, Padding::Zeros).unwrap();
        assert_eq!(key.verify_packet(&buffer), Ok(()));

        with(&mut buffer, &key).raw(TlvFlags::SENDER, TlvType(201), &[]).unwrap();
        assert_eq!(
            key.verify_packet(&buffer),
            Err(WireError::BadHmac),
            "only padding may follow the HMAC TLV"
        );
        assert_eq!(key.verify_tlvs(9, tlv_area(Mode::Authenticated, &buffer)), TlvIntegrity::Failed);
    }
}
