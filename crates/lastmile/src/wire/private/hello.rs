//! Hello: versions, abilities, address proof and budget.

use super::{PREFIX, Token, check_prefix};
use crate::wire::standard::{fixed, target};
use crate::wire::{TlvType, TlvValue, WireError, be, be16, be32, be64, put};

/// Octets of a Hello value, in both directions.
pub const HELLO_LEN: usize = 60;

/// Abilities of a side, as bits; unknown bits are kept and mean nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Abilities(pub u32);

impl Abilities {
    /// Keeps arrival times of unreplied streams and reports them.
    pub const ARRIVAL_REPORTS: Self = Self(1);
    /// Sends streams on request (Reflected Test Packet Control with a Stream tag).
    pub const REVERSE_STREAMS: Self = Self(1 << 1);
    /// Sees the ECN field of arriving packets, and sets it as Class of Service asks.
    pub const ECN: Self = Self(1 << 2);
    /// Receive times are the kernel's or the network card's.
    pub const KERNEL_RECEIVE_TIMES: Self = Self(1 << 3);
    /// Departure times of reverse streams are the kernel's, and are reported.
    pub const DEPARTURE_REPORTS: Self = Self(1 << 4);
    /// Has a key and speaks authenticated mode.
    pub const AUTHENTICATED: Self = Self(1 << 5);
    /// Sees the TTL or Hop Limit of arriving packets.
    pub const HOP_LIMIT: Self = Self(1 << 6);
    /// Sends reverse streams of uneven spacing, by a Schedule beside the request.
    pub const SCHEDULES: Self = Self(1 << 7);

    /// True if `self` has all abilities of `other`.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Abilities that both have.
    #[must_use]
    pub const fn common(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl std::ops::BitOr for Abilities {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The sender's half of a Hello TLV.
///
/// ```text
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                   'LSM'                       |   Layout = 1  |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |R|  Reserved   |  Version min  |  Version max  | Version chosen|
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |               Abilities wanted, or offered                    |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                            Nonce (8)                          |
/// |                            Token (16)                         |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |        Lease, seconds         |   Most packets per stream     |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                Receive time resolution, ns                    |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                         Credit, bytes (8)                     |
/// |                    Remaining budget, bytes (8)                |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
///
/// R is 0 and the last four lines and the chosen version are zero in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HelloRequest {
    /// Oldest version of the exchange that the sender speaks, from 1.
    pub version_min: u8,
    /// Newest version that it speaks.
    pub version_max: u8,
    /// Abilities that it would use.
    pub wanted: Abilities,
    /// Random; the reply repeats it, so that an off-path host cannot forge one.
    pub nonce: u64,
    /// The token that the reflector gave out before, or zeros.
    pub token: Token,
}

/// Grants of a reflector to one peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Offer {
    /// The version to speak, or `None` where there is none in common; the reflector's own range then stands in
    /// the reply's `version_min` and `version_max`, so the user can be told who has to upgrade.
    pub version: Option<u8>,
    /// Abilities that the reflector offers to this peer.
    pub abilities: Abilities,
    /// Address proof, to be echoed in Stream and Report TLVs.
    pub token: Token,
    /// Seconds without a packet after which the reflector forgets the session.
    pub lease_s: u16,
    /// Most packets of one stream.
    pub max_packets: u16,
    /// Resolution of the reflector's receive times, ns.
    pub resolution_ns: u32,
    /// Bytes that the reflector may send to this peer beyond plain replies, because the peer has sent as many.
    pub credit: u64,
    /// Bytes left of the operator's allowance for this peer.
    pub budget: u64,
}

/// The reflector's half of a Hello TLV; layout as in [`HelloRequest`], with R set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HelloReply {
    /// Oldest version that the reflector speaks.
    pub version_min: u8,
    /// Newest version that the reflector speaks.
    pub version_max: u8,
    /// The request's nonce.
    pub nonce: u64,
    /// The grants.
    pub offer: Offer,
}

const REPLY: u8 = 0x80;

fn parse(value: &[u8], reply: bool) -> Result<&[u8; HELLO_LEN], WireError> {
    check_prefix(TlvType::HELLO, value)?;
    let p: &[u8; HELLO_LEN] = fixed(TlvType::HELLO, value)?;
    let flags = p[4];
    if (flags & REPLY != 0) != reply {
        return Err(WireError::Value { what: "the direction of a Hello TLV", value: u64::from(flags) });
    }
    Ok(p)
}

fn begin(out: &mut [u8], head: [u8; 4], abilities: Abilities) -> Result<&mut [u8; HELLO_LEN], WireError> {
    let p: &mut [u8; HELLO_LEN] = target(out)?;
    *p = [0; HELLO_LEN];
    put(p, 0, &PREFIX);
    put(p, 4, &head);
    put(p, 8, &abilities.0.to_be_bytes());
    Ok(p)
}

impl TlvValue for HelloRequest {
    const KIND: TlvType = TlvType::HELLO;

    fn value_len(&self) -> usize {
        HELLO_LEN
    }

    fn encode_value(&self, out: &mut [u8]) -> Result<(), WireError> {
        let p = begin(out, [0, self.version_min, self.version_max, 0], self.wanted)?;
        put(p, 12, &self.nonce.to_be_bytes());
        put(p, 20, &self.token);
        Ok(())
    }

    fn decode_value(value: &[u8]) -> Result<Self, WireError> {
        let p = parse(value, false)?;
        Ok(Self {
            version_min: p[5],
            version_max: p[6],
            wanted: Abilities(be32(p, 8)),
            nonce: be64(p, 12),
            token: be(p, 20),
        })
    }
}

impl HelloRequest {
    /// The newest version that both ranges contain.
    ///
    /// ```
    /// # use lastmile::wire::private::{Abilities, HelloRequest};
    /// let request =
    ///     HelloRequest { version_min: 1, version_max: 3, wanted: Abilities::ECN, nonce: 5, token: [0; 16] };
    /// assert_eq!(request.choose(2, 9), Some(3));
    /// assert_eq!(request.choose(4, 9), None);
    /// ```
    #[must_use]
    pub fn choose(&self, version_min: u8, version_max: u8) -> Option<u8> {
        let (low, high) = (self.version_min.max(version_min), self.version_max.min(version_max));
        (low <= high && high > 0).then_some(high)
    }
}

impl TlvValue for HelloReply {
    const KIND: TlvType = TlvType::HELLO;

    fn value_len(&self) -> usize {
        HELLO_LEN
    }

    fn encode_value(&self, out: &mut [u8]) -> Result<(), WireError> {
        let offer = &self.offer;
        let head = [REPLY, self.version_min, self.version_max, offer.version.unwrap_or(0)];
        let p = begin(out, head, offer.abilities)?;
        put(p, 12, &self.nonce.to_be_bytes());
        put(p, 20, &offer.token);
        put(p, 36, &offer.lease_s.to_be_bytes());
        put(p, 38, &offer.max_packets.to_be_bytes());
        put(p, 40, &offer.resolution_ns.to_be_bytes());
        put(p, 44, &offer.credit.to_be_bytes());
        put(p, 52, &offer.budget.to_be_bytes());
        Ok(())
    }

    fn decode_value(value: &[u8]) -> Result<Self, WireError> {
        let p = parse(value, true)?;
        Ok(Self {
            version_min: p[5],
            version_max: p[6],
            nonce: be64(p, 12),
            offer: Offer {
                version: (p[7] != 0).then_some(p[7]),
                abilities: Abilities(be32(p, 8)),
                token: be(p, 20),
                lease_s: be16(p, 36),
                max_packets: be16(p, 38),
                resolution_ns: be32(p, 40),
                credit: be64(p, 44),
                budget: be64(p, 52),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_and_reply_have_fixed_places() {
        let request = HelloRequest {
            version_min: 1,
            version_max: 2,
            wanted: Abilities::ECN | Abilities::ARRIVAL_REPORTS,
            nonce: 0x0102_0304_0506_0708,
            token: [0xEE; 16],
        };
        let mut wire = [0xFF; HELLO_LEN];
        request.encode_value(&mut wire).unwrap();
        let head = *b"LSM\x01\x00\x01\x02\x00\x00\x00\x00\x05\x01\x02\x03\x04\x05\x06\x07\x08";
        assert_eq!(wire[..20], head);
        assert_eq!((&wire[20..36], &wire[36..]), (&[0xEE; 16][..], &[0; 24][..]));

        let offer = Offer {
            version: Some(2),
            abilities: Abilities::ECN,
            token: [0xDD; 16],
            lease_s: 0x1122,
            max_packets: 0x3344,
            resolution_ns: 0x5566_7788,
            credit: 0x99,
            budget: 0xAA,
        };
        let reply = HelloReply { version_min: 1, version_max: 9, nonce: request.nonce, offer };
        reply.encode_value(&mut wire).unwrap();
        assert_eq!(wire[4..12], [0x80, 1, 9, 2, 0, 0, 0, 4]);
        assert_eq!(wire[36..44], [0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88]);
        assert_eq!((wire[51], wire[59]), (0x99, 0xAA));
        assert_eq!(HelloReply::decode_value(&wire), Ok(reply));
        assert!(
            matches!(HelloRequest::decode_value(&wire), Err(WireError::Value { .. })),
            "a reply is no request"
        );
    }

    #[test]
    fn other_experiments_and_layouts_are_told_apart_from_damage() {
        let request = HelloRequest {
            version_min: 1,
            version_max: 1,
            wanted: Abilities::default(),
            nonce: 0,
            token: [0; 16],
        };
        let mut wire = [0; HELLO_LEN];
        request.encode_value(&mut wire).unwrap();
        assert!(matches!(
            HelloRequest::decode_value(&wire[..59]),
            Err(WireError::TlvLength { kind: 243, length: 59 })
        ));
        assert!(matches!(HelloRequest::decode_value(&wire[..3]), Err(WireError::NotOurs { kind: 243 })));
        wire[3] = 2;
        assert!(matches!(HelloRequest::decode_value(&wire), Err(WireError::Layout { kind: 243, layout: 2 })));
        wire[0] = b'X';
        assert!(matches!(HelloRequest::decode_value(&wire), Err(WireError::NotOurs { kind: 243 })));
    }
}
