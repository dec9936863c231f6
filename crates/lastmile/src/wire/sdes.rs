//! Keys of SRTP as session descriptions carry them (RFC 4568): suites, keys, and the lines `a=crypto`.
//!
//! The ciphers are elsewhere: this room knows lengths and texts.

use core::fmt;
use core::str::FromStr;

use super::base64;
use crate::units::Bytes;

/// A cipher with its authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    /// AES-128 in counter mode and 80 bits of HMAC-SHA-1 (RFC 3711, RFC 4568 section 6.2.1).
    AesCm128HmacSha1_80,
    /// AES-128 in Galois counter mode with its tag of 16 bytes (RFC 7714).
    AeadAes128Gcm,
}

impl Suite {
    const ALL: [Suite; 2] = [Suite::AesCm128HmacSha1_80, Suite::AeadAes128Gcm];

    /// Its name in session descriptions.
    pub fn name(self) -> &'static str {
        match self {
            Suite::AesCm128HmacSha1_80 => "AES_CM_128_HMAC_SHA1_80",
            Suite::AeadAes128Gcm => "AEAD_AES_128_GCM",
        }
    }

    /// Bytes of its master key and master salt (RFC 3711, section 8.2; RFC 7714, section 12).
    pub fn lengths(self) -> (usize, usize) {
        match self {
            Suite::AesCm128HmacSha1_80 => (16, 14),
            Suite::AeadAes128Gcm => (16, 12),
        }
    }

    /// Bytes that it adds to packets: the tag, and to RTCP a word with its number as well (RFC 3711, section 3.4).
    pub fn expansion(self) -> Expansion {
        let tag = match self {
            Suite::AesCm128HmacSha1_80 => 10,
            Suite::AeadAes128Gcm => 16,
        };
        Expansion { rtp: Bytes(tag), rtcp: Bytes(tag + 4) }
    }
}

/// Bytes that protection adds to each packet.
///
/// ```
/// use lastmile::{units::Bytes, wire::sdes::{Expansion, Suite}};
/// assert_eq!(Suite::AesCm128HmacSha1_80.expansion().rtp, Bytes(10));
/// assert_eq!(Expansion::default().rtcp, Bytes::ZERO); // plain RTP
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Expansion {
    /// To a packet of RTP.
    pub rtp: Bytes,
    /// To a datagram of RTCP.
    pub rtcp: Bytes,
}

impl Expansion {
    /// True if packets have tags, and come of nobody without the key.
    pub fn is_protected(&self) -> bool {
        self.rtcp > Bytes::ZERO
    }
}

/// Master key and master salt of a suite. Its text is base64 of both; `Debug` shows neither.
///
/// ```
/// use lastmile::wire::sdes::{MasterKey, Suite};
/// let key = MasterKey::new(Suite::AeadAes128Gcm, &[7; 64]).unwrap();
/// assert_eq!(key.to_text().parse(), Ok(key.clone()));
/// assert!(format!("{key:?}").starts_with("MasterKey { suite: AeadAes128Gcm"));
/// assert!("short".parse::<MasterKey>().is_err());
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct MasterKey {
    suite: Suite,
    bytes: Vec<u8>,
}

impl MasterKey {
    /// A key of so many of these bytes as the suite takes; `None` if there are too few.
    pub fn new(suite: Suite, bytes: &[u8]) -> Option<MasterKey> {
        let (key, salt) = suite.lengths();
        Some(MasterKey { suite, bytes: bytes.get(..key + salt)?.to_vec() })
    }

    /// Its suite.
    pub fn suite(&self) -> Suite {
        self.suite
    }

    /// The master key and the master salt.
    pub fn parts(&self) -> (&[u8], &[u8]) {
        self.bytes.split_at(self.suite.lengths().0)
    }

    /// Base64 of both, whose length tells the suite.
    pub fn to_text(&self) -> String {
        base64::write(&self.bytes)
    }
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MasterKey").field("suite", &self.suite).finish_non_exhaustive()
    }
}

/// A text that is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a key of SRTP is base64 of 30 bytes (AES_CM_128_HMAC_SHA1_80) or 28 bytes (AEAD_AES_128_GCM), 40 signs either way"
)]
pub struct NoKey;

impl FromStr for MasterKey {
    type Err = NoKey;

    fn from_str(text: &str) -> Result<MasterKey, NoKey> {
        let bytes = base64::read(text).ok_or(NoKey)?;
        let is = |suite: &Suite| suite.lengths().0 + suite.lengths().1 == bytes.len();
        let suite = Suite::ALL.into_iter().find(is).ok_or(NoKey)?;
        Ok(MasterKey { suite, bytes })
    }
}

/// The line of a key.
pub(super) fn crypto_line(key: &MasterKey) -> String {
    format!("a=crypto:1 {} inline:{}", key.suite.name(), key.to_text())
}

/// The key of such a line, without its name: of a known suite, one for all time, and without session parameters that change packets
/// (section 6.3: one with a minus may be skipped, and the size of the window is the receiver's own).
pub(super) fn read_crypto(value: &str) -> Option<MasterKey> {
    let mut words = value.split_ascii_whitespace();
    let (_tag, suite, key) = (words.next()?, words.next()?, words.next()?);
    if words.any(|parameter| !parameter.starts_with('-') && !parameter.starts_with("WSH=")) {
        return None;
    }
    // A lifetime may follow, and an index of keys, which packets then carry (section 6.1). Several keys have indices too.
    let mut parts = key.strip_prefix("inline:")?.split('|');
    let key: MasterKey = parts.next()?.parse().ok()?;
    (key.suite.name() == suite && !parts.any(|part| part.contains([':', ';']))).then_some(key)
}
