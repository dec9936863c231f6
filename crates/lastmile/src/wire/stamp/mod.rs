//! The base packets of RFC 8762, with the session identifier of RFC 8972, section 3.

use super::{ErrorEstimate, HmacKey, TAG_LEN, TlvIntegrity, WireError, be, be16, be32, be64, put};

/// Bytes of either unauthenticated base packet (RFC 8762, 4.2.1 and 4.3.1).
pub const OPEN_LEN: usize = 44;
/// Bytes of either authenticated base packet (RFC 8762, 4.2.2 and 4.3.2).
pub const AUTH_LEN: usize = 112;
/// Offset of the HMAC in an authenticated packet, bytes; it covers everything before (RFC 8762, 4.4).
pub(super) const AUTH_TAG_AT: usize = AUTH_LEN - TAG_LEN;

/// Mode of a STAMP session. The packets do not say it: both sides are configured alike (RFC 8762, 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// Unauthenticated.
    #[default]
    Open,
    /// Authenticated by HMAC-SHA-256, truncated to 16 octets.
    Authenticated,
}

impl Mode {
    /// Bytes of the base packet, which is where the TLVs begin.
    #[must_use]
    pub const fn base_len(self) -> usize {
        match self {
            Self::Open => OPEN_LEN,
            Self::Authenticated => AUTH_LEN,
        }
    }
}

/// The bytes after the base packet; empty for a packet that is too short to have any.
#[must_use]
pub fn tlv_area(mode: Mode, datagram: &[u8]) -> &[u8] {
    datagram.get(mode.base_len()..).unwrap_or_default()
}

/// Like [`tlv_area`], to be changed in place.
#[must_use]
pub fn tlv_area_mut(mode: Mode, datagram: &mut [u8]) -> &mut [u8] {
    datagram.get_mut(mode.base_len()..).unwrap_or_default()
}

/// The Sequence Number, which stands first in all four packets and goes into the HMAC TLV (RFC 8972, 4.8).
///
/// # Errors
/// [`WireError::Truncated`] below four bytes.
pub fn sequence_of(datagram: &[u8]) -> Result<u32, WireError> {
    let first = datagram.first_chunk::<4>();
    first.map(|bytes| u32::from_be_bytes(*bytes)).ok_or(short("the Sequence Number", 4, datagram))
}

fn short(what: &'static str, need: usize, datagram: &[u8]) -> WireError {
    WireError::Truncated { what, need, have: datagram.len() }
}

fn open<'a>(what: &'static str, datagram: &'a [u8]) -> Result<&'a [u8; OPEN_LEN], WireError> {
    datagram.first_chunk().ok_or(short(what, OPEN_LEN, datagram))
}

fn authenticated<'a>(what: &'static str, datagram: &'a [u8]) -> Result<&'a [u8; AUTH_LEN], WireError> {
    datagram.first_chunk().ok_or(short(what, AUTH_LEN, datagram))
}

/// Base packet of a Session-Sender (RFC 8762, 4.2; offsets of the SSID: RFC 8972, figures 1 and 3).
///
/// ```text
///                        unauthenticated   authenticated
/// Sequence Number              0..4             0..4
/// Timestamp                    4..12           16..24
/// Error Estimate              12..14           24..26
/// SSID                        14..16           26..28
/// HMAC                          -              96..112
/// ```
///
/// Everything else must be zero and is ignored by the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SenderPacket {
    /// Sequence number, starting at 0.
    pub sequence: u32,
    /// When the packet left, in the format that `error` names.
    pub timestamp: u64,
    /// Quality and format of the timestamp.
    pub error: ErrorEstimate,
    /// Session identifier, 0 if unused.
    pub ssid: u16,
}

impl SenderPacket {
    /// Reads the base packet from the front of a datagram; the HMAC is [`HmacKey::verify_base`]'s business.
    ///
    /// # Errors
    /// [`WireError::Truncated`]. RFC 8762, 4.6 would let a reflector answer a shorter TWAMP Light packet with a
    /// whole base packet; we do not, because a reply must never be larger than its request.
    pub fn parse(mode: Mode, datagram: &[u8]) -> Result<Self, WireError> {
        let (sequence, timestamp, error, ssid) = match mode {
            Mode::Open => {
                let p = open("an unauthenticated STAMP packet", datagram)?;
                (be32(p, 0), be64(p, 4), be16(p, 12), be16(p, 14))
            }
            Mode::Authenticated => {
                let p = authenticated("an authenticated STAMP packet", datagram)?;
                (be32(p, 0), be64(p, 16), be16(p, 24), be16(p, 26))
            }
        };
        Ok(Self { sequence, timestamp, error: ErrorEstimate::from_bits(error), ssid })
    }

    /// Writes the base packet to the front of `out`, with zeros in the HMAC field ([`HmacKey::sign_base`] fills it).
    ///
    /// # Errors
    /// [`WireError::Buffer`] where `out` is shorter than [`Mode::base_len`].
    pub fn write(&self, mode: Mode, out: &mut [u8]) -> Result<(), WireError> {
        let have = out.len();
        let full = WireError::Buffer { what: "a STAMP packet", need: mode.base_len(), have };
        match mode {
            Mode::Open => {
                let p: &mut [u8; OPEN_LEN] = out.first_chunk_mut().ok_or(full)?;
                *p = [0; OPEN_LEN];
                self.fill(p, 4);
            }
            Mode::Authenticated => {
                let p: &mut [u8; AUTH_LEN] = out.first_chunk_mut().ok_or(full)?;
                *p = [0; AUTH_LEN];
                self.fill(p, 16);
            }
        }
        Ok(())
    }

    fn fill<const L: usize>(&self, p: &mut [u8; L], timestamp_at: usize) {
        put(p, 0, &self.sequence.to_be_bytes());
        put(p, timestamp_at, &self.timestamp.to_be_bytes());
        put(p, timestamp_at + 8, &self.error.bits().to_be_bytes());
        put(p, timestamp_at + 10, &self.ssid.to_be_bytes());
    }
}

/// Base packet of a Session-Reflector (RFC 8762, 4.3; offsets of the SSID: RFC 8972, figures 2 and 4).
///
/// ```text
///                                unauthenticated   authenticated
/// Sequence Number                      0..4             0..4
/// Timestamp                            4..12           16..24
/// Error Estimate                      12..14           24..26
/// SSID                                14..16           26..28
/// Receive Timestamp                   16..24           32..40
/// Session-Sender Sequence Number      24..28           48..52
/// Session-Sender Timestamp            28..36           64..72
/// Session-Sender Error Estimate       36..38           72..74
/// Session-Sender TTL                    40               80
/// HMAC                                  -              96..112
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReflectorPacket {
    /// The reflector's own count in a stateful session, else a copy of the sender's.
    pub sequence: u32,
    /// When the reply left, in the format that `error` names.
    pub timestamp: u64,
    /// Quality and format of `timestamp` and `receive_timestamp`.
    pub error: ErrorEstimate,
    /// The sender's session identifier; 0 from a reflector that does not know RFC 8972.
    pub ssid: u16,
    /// When the request arrived, in the format that `error` names.
    pub receive_timestamp: u64,
    /// Copy of the request's sequence number.
    pub sender_sequence: u32,
    /// Copy of the request's timestamp.
    pub sender_timestamp: u64,
    /// Copy of the request's Error Estimate.
    pub sender_error: ErrorEstimate,
    /// TTL or Hop Limit with which the request arrived.
    pub sender_ttl: u8,
}

impl ReflectorPacket {
    /// Reads the base packet from the front of a datagram; the HMAC is [`HmacKey::verify_base`]'s business.
    ///
    /// # Errors
    /// [`WireError::Truncated`].
    pub fn parse(mode: Mode, datagram: &[u8]) -> Result<Self, WireError> {
        match mode {
            Mode::Open => Ok(Self::read(open("a reflected STAMP packet", datagram)?, &OPEN_FIELDS)),
            Mode::Authenticated => Ok(Self::read(
                authenticated("a reflected authenticated STAMP packet", datagram)?,
                &AUTH_FIELDS,
            )),
        }
    }

    /// Writes the base packet to the front of `out`, with zeros in the HMAC field ([`HmacKey::sign_base`] fills it).
    ///
    /// # Errors
    /// [`WireError::Buffer`] where `out` is shorter than [`Mode::base_len`].
    pub fn write(&self, mode: Mode, out: &mut [u8]) -> Result<(), WireError> {
        let have = out.len();
        let full = WireError::Buffer { what: "a reflected STAMP packet", need: mode.base_len(), have };
        match mode {
            Mode::Open => self.fill(out.first_chunk_mut::<OPEN_LEN>().ok_or(full)?, &OPEN_FIELDS),
            Mode::Authenticated => self.fill(out.first_chunk_mut::<AUTH_LEN>().ok_or(full)?, &AUTH_FIELDS),
        }
        Ok(())
    }

    fn read<const L: usize>(p: &[u8; L], at: &Fields) -> Self {
        Self {
            sequence: be32(p, 0),
            timestamp: be64(p, at.timestamp),
            error: ErrorEstimate::from_bits(be16(p, at.error)),
            ssid: be16(p, at.error + 2),
            receive_timestamp: be64(p, at.receive_timestamp),
            sender_sequence: be32(p, at.sender_sequence),
            sender_timestamp: be64(p, at.sender_timestamp),
            sender_error: ErrorEstimate::from_bits(be16(p, at.sender_timestamp + 8)),
            sender_ttl: be::<1, L>(p, at.sender_ttl)[0],
        }
    }

    fn fill<const L: usize>(&self, p: &mut [u8; L], at: &Fields) {
        *p = [0; L];
        put(p, 0, &self.sequence.to_be_bytes());
        put(p, at.timestamp, &self.timestamp.to_be_bytes());
        put(p, at.error, &self.error.bits().to_be_bytes());
        put(p, at.error + 2, &self.ssid.to_be_bytes());
        put(p, at.receive_timestamp, &self.receive_timestamp.to_be_bytes());
        put(p, at.sender_sequence, &self.sender_sequence.to_be_bytes());
        put(p, at.sender_timestamp, &self.sender_timestamp.to_be_bytes());
        put(p, at.sender_timestamp + 8, &self.sender_error.bits().to_be_bytes());
        put(p, at.sender_ttl, &[self.sender_ttl]);
    }
}

/// Offsets of the reflected packet's fields; SSID and Session-Sender Error Estimate follow their neighbours.
struct Fields {
    timestamp: usize,
    error: usize,
    receive_timestamp: usize,
    sender_sequence: usize,
    sender_timestamp: usize,
    sender_ttl: usize,
}

const OPEN_FIELDS: Fields = Fields {
    timestamp: 4,
    error: 12,
    receive_timestamp: 16,
    sender_sequence: 24,
    sender_timestamp: 28,
    sender_ttl: 40,
};
const AUTH_FIELDS: Fields = Fields {
    timestamp: 16,
    error: 24,
    receive_timestamp: 32,
    sender_sequence: 48,
    sender_timestamp: 64,
    sender_ttl: 80,
};

/// A reflector's own fields in a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reflection {
    /// The reflector's own count; `None` copies the sender's (stateless, RFC 8762, 4.3.1).
    pub sequence: Option<u32>,
    /// When the reply leaves.
    pub timestamp: u64,
    /// Quality and format of both timestamps.
    pub error: ErrorEstimate,
    /// When the request arrived.
    pub receive_timestamp: u64,
    /// TTL or Hop Limit with which the request arrived.
    pub sender_ttl: u8,
}

/// Turns a received request into its reply, in place, and returns the request as it was.
///
/// The TLVs are left as they are: [`super::reflect_tlvs`] sets their flags. In authenticated mode the caller has
/// verified the request and signs the reply.
///
/// # Errors
/// As [`SenderPacket::parse`]; the datagram is then unchanged.
pub fn reflect_in_place(
    mode: Mode,
    datagram: &mut [u8],
    facts: &Reflection,
) -> Result<SenderPacket, WireError> {
    let request = SenderPacket::parse(mode, datagram)?;
    let reply = ReflectorPacket {
        sequence: facts.sequence.unwrap_or(request.sequence),
        timestamp: facts.timestamp,
        error: facts.error,
        ssid: request.ssid,
        receive_timestamp: facts.receive_timestamp,
        sender_sequence: request.sequence,
        sender_timestamp: request.timestamp,
        sender_error: request.error,
        sender_ttl: facts.sender_ttl,
    };
    reply.write(mode, datagram)?;
    Ok(request)
}

/// Greatest distance between a reply's two timestamps for it to be recognised as a reply, seconds.
const REFLECTED_WITHIN: u32 = 3_600;

/// True if a packet that came to a reflector looks like another reflector's reply: answering it may never end.
///
/// In authenticated mode a sender must leave the Receive Timestamp's bytes zero. In unauthenticated mode they may be the
/// padding of a TWAMP Light packet. Both timestamps of a reply are of one clock, so a packet counts as a reply if they
/// are at most an hour apart; random padding is once in 600,000 packets. The seconds are the first four bytes of either
/// [`super::TimestampFormat`]. False for a packet shorter than the base packet.
///
/// ```
/// use lastmile::wire::{ErrorEstimate, Mode, Reflection, SenderPacket, looks_reflected, reflect_in_place};
/// let error = ErrorEstimate::from_bits(1);
/// let request = SenderPacket { sequence: 0, timestamp: 0x83AA_7E80_8000_0000, error, ssid: 0 };
/// let (timestamp, receive_timestamp) = (0xEB00_0000_0000_0002, 0xEB00_0000_0000_0001);
/// let facts = Reflection { sequence: None, timestamp, error, receive_timestamp, sender_ttl: 63 };
/// for mode in [Mode::Open, Mode::Authenticated] {
///     let mut datagram = vec![0; mode.base_len()];
///     request.write(mode, &mut datagram)?;
///     assert!(!looks_reflected(mode, &datagram));
///     reflect_in_place(mode, &mut datagram, &facts)?;
///     assert!(looks_reflected(mode, &datagram));
/// }
/// # Ok::<(), lastmile::wire::WireError>(())
/// ```
#[must_use]
pub fn looks_reflected(mode: Mode, datagram: &[u8]) -> bool {
    match mode {
        Mode::Open => datagram.first_chunk::<OPEN_LEN>().is_some_and(|p| {
            let (sent, received) = (be64(p, OPEN_FIELDS.timestamp), be64(p, OPEN_FIELDS.receive_timestamp));
            // The seconds wrap with the era.
            let apart = ((sent >> 32) as u32).wrapping_sub((received >> 32) as u32).cast_signed();
            received != 0 && apart.unsigned_abs() <= REFLECTED_WITHIN
        }),
        Mode::Authenticated => {
            datagram.first_chunk::<AUTH_LEN>().is_some_and(|p| be64(p, AUTH_FIELDS.receive_timestamp) != 0)
        }
    }
}

impl HmacKey {
    /// Writes the HMAC of an authenticated base packet, over its first 96 octets (RFC 8762, 4.4).
    ///
    /// # Errors
    /// [`WireError::Buffer`] below 112 bytes.
    pub fn sign_base(&self, datagram: &mut [u8]) -> Result<(), WireError> {
        let have = datagram.len();
        let need = WireError::Buffer { what: "an authenticated STAMP packet", need: AUTH_LEN, have };
        let packet: &mut [u8; AUTH_LEN] = datagram.first_chunk_mut().ok_or(need)?;
        let tag = self.tag(&[&packet[..AUTH_TAG_AT]]);
        put(packet, AUTH_TAG_AT, &tag);
        Ok(())
    }

    /// Checks the HMAC of an authenticated base packet, in constant time.
    ///
    /// # Errors
    /// [`WireError::Truncated`] below 112 bytes, [`WireError::BadHmac`].
    pub fn verify_base(&self, datagram: &[u8]) -> Result<(), WireError> {
        let packet = authenticated("an authenticated STAMP packet", datagram)?;
        self.check(&[&packet[..AUTH_TAG_AT]], &packet[AUTH_TAG_AT..])
    }

    /// Checks that the packet satisfies authenticated mode as a whole: its base HMAC, and the HMAC TLV over its TLVs
    /// unless there is nothing to protect (RFC 8762, 4.4; RFC 8972, 4.8).
    ///
    /// # Errors
    /// [`WireError::Truncated`], or [`WireError::BadHmac`] where either does not fit or the HMAC TLV is missing.
    pub fn verify_packet(&self, datagram: &[u8]) -> Result<(), WireError> {
        self.verify_base(datagram)?;
        match self.verify_tlvs(sequence_of(datagram)?, tlv_area(Mode::Authenticated, datagram)) {
            TlvIntegrity::Empty | TlvIntegrity::Valid => Ok(()),
            TlvIntegrity::Absent | TlvIntegrity::Failed => Err(WireError::BadHmac),
        }
    }
}

#[cfg(test)]
mod tests;
