//! Packets of generated traffic and of the sink that counts it: ours.
//!
//! ```text
//! source                                    sink
//!   hello: nonce ------------------------>
//!          <------------------------ welcome: nonce, token
//!   open: nonce, token ------------------>   the address is proved
//!          <------------------------ status: nonce, counts
//!   data: nonce, number, departure ======>
//!          <------------------------ status, each second
//!   bye: nonce -------------------------->
//!          <------------------------ status, the last one
//!
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |       'L'     |      'M'      |      'T'      |   version 1   |  kind: 4 bits each
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                        nonce, 8 bytes                         |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! The nonce is the source's, and every packet has it: a host that does not see the source's packets cannot answer in the sink's name. Numbers
//! have network order. Each request is at least as long as its answer. Bytes behind a packet's fields are filling.

use super::private::{TOKEN_LEN, Token};
use super::{WireError, be32, be64};

/// Port of sinks.
pub const PORT: u16 = 8621;
/// Bytes of a hello and a welcome.
pub const HELLO_LEN: usize = NONCE_END + TOKEN_LEN;
/// Bytes of an opening, a goodbye and a status.
pub const STATUS_LEN: usize = 64;
/// Bytes of a packet of data without filling.
pub const DATA_LEN: usize = NONCE_END + 16;

const MAGIC: [u8; 3] = *b"LMT";
const VERSION: u8 = 1;
const NONCE_END: usize = 12;

/// Counts of a sink.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Counts {
    /// Packets of data that arrived, each once.
    pub packets: u64,
    /// Their bytes at the IP layer.
    pub bytes: u64,
    /// One more than the largest number of any.
    pub expected: u64,
    /// Packets with a lower number than one before them.
    pub disordered: u64,
    /// Packets that routers marked (ECN).
    pub marked: u64,
    /// Packets that had come before, as far as the sink remembers.
    pub copies: u32,
}

/// A packet.
///
/// ```
/// use lastmile::wire::traffic::{Counts, DATA_LEN, Packet};
/// let mut bytes = Vec::new();
/// Packet::Data { nonce: 7, number: 3, departure: 5_000 }.write(&mut bytes, 100);
/// assert_eq!((bytes.len(), Packet::parse(&bytes)), (100, Ok(Packet::Data { nonce: 7, number: 3, departure: 5_000 })));
/// assert!(Packet::parse(&bytes[..DATA_LEN - 1]).is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Packet {
    /// A source would send.
    Hello {
        /// The source's, which nobody can guess.
        nonce: u64,
    },
    /// A sink is there.
    Welcome {
        /// The source's.
        nonce: u64,
        /// To be returned from the same address.
        token: Token,
    },
    /// The source proves its address.
    Open {
        /// The source's.
        nonce: u64,
        /// The sink's.
        token: Token,
    },
    /// Traffic.
    Data {
        /// The source's.
        nonce: u64,
        /// From zero on.
        number: u64,
        /// Planned departure, nanoseconds from the source's start.
        departure: u64,
    },
    /// Counts so far.
    Status {
        /// The source's.
        nonce: u64,
        /// From zero on.
        number: u32,
        /// True if the source shall send no more.
        stop: bool,
        /// True if it is the last one: the sink has forgotten the source.
        last: bool,
        /// The counts.
        counts: Counts,
    },
    /// The source sends no more.
    Bye {
        /// The source's.
        nonce: u64,
    },
}

impl Packet {
    /// Reads a packet.
    ///
    /// # Errors
    /// [`WireError::Truncated`] or [`WireError::Value`].
    pub fn parse(bytes: &[u8]) -> Result<Packet, WireError> {
        let what = "a packet of traffic";
        let short = |need| WireError::Truncated { what, need, have: bytes.len() };
        let head: &[u8; NONCE_END] = bytes.first_chunk().ok_or_else(|| short(NONCE_END))?;
        if head[..3] != MAGIC || head[3] >> 4 != VERSION {
            return Err(WireError::Value { what, value: u64::from(be32(head, 0)) });
        }
        let nonce = be64(head, 4);
        let hello = || bytes.first_chunk::<HELLO_LEN>().ok_or_else(|| short(HELLO_LEN));
        let status = || bytes.first_chunk::<STATUS_LEN>().ok_or_else(|| short(STATUS_LEN));
        let token = |bytes: &[u8; HELLO_LEN]| {
            let mut token = [0; TOKEN_LEN];
            token.copy_from_slice(&bytes[NONCE_END..]);
            token
        };
        Ok(match head[3] & 0x0f {
            0 => hello().map(|_| Packet::Hello { nonce })?,
            1 => Packet::Welcome { nonce, token: token(hello()?) },
            // As long as its answer.
            2 => Packet::Open { nonce, token: status().and(hello().map(token))? },
            3 => {
                let data: &[u8; DATA_LEN] = bytes.first_chunk().ok_or_else(|| short(DATA_LEN))?;
                Packet::Data { nonce, number: be64(data, NONCE_END), departure: be64(data, NONCE_END + 8) }
            }
            4 => {
                let status = status()?;
                let flags = be32(status, 16);
                let at = |k: usize| be64(status, 20 + 8 * k);
                let counts = Counts {
                    packets: at(0),
                    bytes: at(1),
                    expected: at(2),
                    disordered: at(3),
                    marked: at(4),
                    copies: be32(status, 60),
                };
                let (number, stop, last) = (be32(status, NONCE_END), flags & 1 == 1, flags & 2 == 2);
                Packet::Status { nonce, number, stop, last, counts }
            }
            5 => status().map(|_| Packet::Bye { nonce })?,
            kind => return Err(WireError::Value { what, value: u64::from(kind) }),
        })
    }

    /// The packet's bytes in place of those in `out`, filled up to a length at least.
    pub fn write(&self, out: &mut Vec<u8>, length: usize) {
        let (kind, nonce, least) = match *self {
            Packet::Hello { nonce } => (0, nonce, HELLO_LEN),
            Packet::Welcome { nonce, .. } => (1, nonce, HELLO_LEN),
            Packet::Open { nonce, .. } => (2, nonce, STATUS_LEN),
            Packet::Data { nonce, .. } => (3, nonce, DATA_LEN),
            Packet::Status { nonce, .. } => (4, nonce, STATUS_LEN),
            Packet::Bye { nonce } => (5, nonce, STATUS_LEN),
        };
        out.clear();
        out.extend(MAGIC);
        out.push(VERSION << 4 | kind);
        out.extend(nonce.to_be_bytes());
        match *self {
            Packet::Hello { .. } | Packet::Bye { .. } => {}
            Packet::Welcome { token, .. } | Packet::Open { token, .. } => out.extend(token),
            Packet::Data { number, departure, .. } => {
                out.extend(number.to_be_bytes());
                out.extend(departure.to_be_bytes());
            }
            Packet::Status { number, stop, last, counts, .. } => {
                out.extend(number.to_be_bytes());
                out.extend((u32::from(stop) | u32::from(last) << 1).to_be_bytes());
                let Counts { packets, bytes, expected, disordered, marked, copies } = counts;
                out.extend([packets, bytes, expected, disordered, marked].map(u64::to_be_bytes).concat());
                out.extend(copies.to_be_bytes());
            }
        }
        out.resize(length.max(least), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all() -> impl Strategy<Value = Packet> {
        (0_u8..6, any::<u64>(), any::<[u8; TOKEN_LEN]>(), any::<[u64; 5]>(), any::<(bool, bool, u32)>())
            .prop_map(
                |(
                    kind,
                    nonce,
                    token,
                    [packets, bytes, expected, disordered, marked],
                    (stop, last, number),
                )| match kind {
                    0 => Packet::Hello { nonce },
                    1 => Packet::Welcome { nonce, token },
                    2 => Packet::Open { nonce, token },
                    3 => Packet::Data { nonce, number: packets, departure: bytes },
                    4 => {
                        let counts = Counts { packets, bytes, expected, disordered, marked, copies: number };
                        Packet::Status { nonce, number, stop, last, counts }
                    }
                    _ => Packet::Bye { nonce },
                },
            )
    }

    proptest! {
        #[test]
        fn packets_are_read_as_written(packet in all(), length in 0..200_usize) {
            let mut bytes = Vec::new();
            packet.write(&mut bytes, length);
            prop_assert_eq!(Packet::parse(&bytes), Ok(packet));
            prop_assert!(bytes.len() >= length);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            if let Ok(packet) = Packet::parse(&bytes) {
                let mut again = Vec::new();
                packet.write(&mut again, 0);
                prop_assert_eq!(Packet::parse(&again), Ok(packet));
            }
        }
    }

    /// A request that is shorter than its answer is none.
    #[test]
    fn no_answer_is_longer_than_its_request() {
        let (mut ask, mut answer) = (Vec::new(), Vec::new());
        Packet::Hello { nonce: 1 }.write(&mut ask, 0);
        Packet::Welcome { nonce: 1, token: [7; TOKEN_LEN] }.write(&mut answer, 0);
        assert!(ask.len() >= answer.len() && Packet::parse(&ask[..answer.len() - 1]).is_err());
        let status =
            Packet::Status { nonce: 1, number: 0, stop: false, last: false, counts: Counts::default() };
        status.write(&mut answer, 0);
        for request in [Packet::Open { nonce: 1, token: [7; TOKEN_LEN] }, Packet::Bye { nonce: 1 }] {
            request.write(&mut ask, 0);
            assert!(ask.len() >= answer.len() && Packet::parse(&ask[..answer.len() - 1]).is_err());
        }
    }
}
