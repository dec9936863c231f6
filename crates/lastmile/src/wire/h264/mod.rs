//! H.264 as RTP payload (RFC 6184, packetization mode 1): NAL units in a byte stream, in packets, and in access units again.
//!
//! Encoders and decoders speak byte streams: NAL units behind start codes (ITU-T H.264, annex B). [`packetize`] turns one access unit of
//! a byte stream into payloads, [`Depacketizer`] payloads into access units.
//!
//! ```
//! use lastmile::wire::h264::{Depacketizer, nal_units, packetize};
//! let picture = [0, 0, 0, 1, 0x65, 1, 2, 3, 4, 5, 6];
//! assert_eq!(nal_units(&picture).collect::<Vec<_>>(), [&[0x65, 1, 2, 3, 4, 5, 6]]);
//! let payloads = packetize(&picture, 5);
//! assert_eq!(payloads, [[0x7c, 0x85, 1, 2, 3], [0x7c, 0x45, 4, 5, 6]]); // two fragments
//! let mut depacketizer = Depacketizer::default();
//! for (sequence, payload) in (7..).zip(&payloads) {
//!     depacketizer.push(sequence, 90_000, sequence == 8, payload);
//! }
//! let unit = depacketizer.pop().expect("both came");
//! assert_eq!((unit.bytes, unit.whole), (picture.to_vec(), true));
//! ```

mod assemble;
mod packetize;
mod reassemble;

pub use assemble::AccessUnit;
pub use packetize::{MIN_PAYLOAD, packetize};
pub use reassemble::{Depacketizer, DepacketizerCounts};

/// Coded slice of a picture that refers to others.
pub const SLICE: u8 = 1;
/// Coded slice of a picture from which decoding can begin.
pub const IDR_SLICE: u8 = 5;
/// Sequence parameter set.
pub const SEQUENCE_PARAMETERS: u8 = 7;
/// Picture parameter set.
pub const PICTURE_PARAMETERS: u8 = 8;
/// NAL units proper; types above are those of RTP payloads (RFC 6184, table 1).
const PROPER: core::ops::RangeInclusive<u8> = 1..=23;
/// Aggregation of units of one time.
const STAP_A: u8 = 24;
/// Fragment of a unit.
const FU_A: u8 = 28;
/// Start bit of a fragment's header.
const START: u8 = 0x80;
/// End bit.
const END: u8 = 0x40;
/// Bits of forbidden zero and reference in a unit's first byte.
const FLAGS: u8 = 0xe0;

/// Type of a NAL unit, from its first byte.
///
/// ```
/// use lastmile::wire::h264::{IDR_SLICE, nal_type};
/// assert_eq!(nal_type(0x65), IDR_SLICE);
/// ```
pub const fn nal_type(first: u8) -> u8 {
    first & 0x1f
}

/// NAL units of a byte stream, without start codes and the zeros after a unit; bytes before the first start code are none.
pub fn nal_units(stream: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = start_code(stream).map(|at| &stream[at + 3..]);
    core::iter::from_fn(move || {
        let stream = rest?;
        let end = start_code(stream);
        rest = end.map(|at| &stream[at + 3..]);
        Some(&stream[..end.unwrap_or(stream.len())])
    })
    .map(|unit| &unit[..unit.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)])
    .filter(|unit| !unit.is_empty())
}

/// Place of the first start code of three bytes.
fn start_code(stream: &[u8]) -> Option<usize> {
    stream.windows(3).position(|bytes| bytes == [0, 0, 1])
}

/// Appends a NAL unit with a start code of four bytes, which every decoder takes.
pub fn write_nal_unit(out: &mut Vec<u8>, unit: &[u8]) {
    out.extend([0, 0, 0, 1]);
    out.extend(unit);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Annex B by hand: leading zeros, both start codes, an escaped zero within, trailing zeros, an empty unit.
    #[test]
    fn units_are_found_between_start_codes() {
        let stream =
            [9, 0, 0, 0, 0, 1, 0x67, 0, 0, 3, 1, 0, 0, 0, 1, 0x68, 7, 0, 0, 1, 0, 0, 1, 0x65, 0, 0, 0, 0];
        let units: Vec<_> = nal_units(&stream).collect();
        assert_eq!(units, [&[0x67, 0, 0, 3, 1][..], &[0x68, 7], &[0x65]]);
        assert_eq!(nal_units(&[0, 0, 2, 1, 0x65]).count(), 0);
        assert_eq!(nal_units(&[0, 0, 1]).count(), 0);
    }
}
