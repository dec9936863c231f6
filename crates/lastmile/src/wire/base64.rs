//! Base64 (RFC 4648, section 4), as session descriptions have it.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes as text.
pub(super) fn write(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let all =
            group.iter().fold(0_u32, |all, byte| all << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for index in 0..4 {
            let sextet = (all >> (18 - 6 * index)) as usize & 63;
            text.push(if index <= group.len() { char::from(ALPHABET[sextet]) } else { '=' });
        }
    }
    text
}

/// Bytes of a text; `None` if it is no base64.
pub(super) fn read(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=').as_bytes();
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    for group in digits.chunks(4) {
        let mut all = 0_u32;
        for digit in group {
            all = all << 6 | ALPHABET.iter().position(|known| known == digit)? as u32;
        }
        all <<= 6 * (4 - group.len());
        // One digit alone is less than a byte.
        bytes.extend(&all.to_be_bytes()[1..=group.len().checked_sub(1).filter(|bytes| *bytes > 0)?]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4648, section 10.
    #[test]
    fn it_is_that_of_the_rfc() {
        for (bytes, text) in [("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(read(text).as_deref(), Some(bytes.as_bytes()));
            assert_eq!(write(bytes.as_bytes()), text);
        }
    }
}
