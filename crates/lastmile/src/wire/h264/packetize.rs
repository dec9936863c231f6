//! Payloads of RTP packets from an access unit (RFC 6184, sections 5.6 to 5.8 and 6.3).

use super::{END, FLAGS, FU_A, PICTURE_PARAMETERS, SEQUENCE_PARAMETERS, STAP_A, START, nal_type, nal_units};

/// The smallest payload into which any unit can be cut: the two bytes of a fragment's header, and one of its unit.
pub const MIN_PAYLOAD: usize = 3;
/// Bytes before each unit of an aggregation.
const LENGTH: usize = 2;

/// Payloads of an access unit's packets in the order of sending, of `most` bytes at most ([`MIN_PAYLOAD`] where less is asked
/// for); the last one's packet has the marker.
///
/// Parameter sets that follow each other share a payload. A unit that is too large is cut into fragments that are alike.
pub fn packetize(access_unit: &[u8], most: usize) -> Vec<Vec<u8>> {
    let most = most.max(MIN_PAYLOAD);
    let mut payloads = Vec::new();
    let mut units = nal_units(access_unit).peekable();
    while let Some(unit) = units.next() {
        if unit.len() > most {
            payloads.extend(fragments(unit, most));
            continue;
        }
        let mut size = 1 + LENGTH + unit.len();
        let mut together = vec![unit];
        while let Some(next) = units
            .next_if(|next| is_parameters(unit) && is_parameters(next) && size + LENGTH + next.len() <= most)
        {
            size += LENGTH + next.len();
            together.push(next);
        }
        payloads.push(if together.len() > 1 { aggregated(&together) } else { unit.to_vec() });
    }
    payloads
}

fn is_parameters(unit: &[u8]) -> bool {
    unit.first().is_some_and(|first| matches!(nal_type(*first), SEQUENCE_PARAMETERS | PICTURE_PARAMETERS))
}

/// An STAP-A: the forbidden bit of any unit, and the highest of their reference bits (section 5.7).
fn aggregated(units: &[&[u8]]) -> Vec<u8> {
    let firsts = || units.iter().filter_map(|unit| unit.first());
    let forbidden = firsts().fold(0, |all, first| all | first & 0x80);
    let reference = firsts().map(|first| first & 0x60).max().unwrap_or(0);
    let mut out = vec![forbidden | reference | STAP_A];
    for unit in units {
        // A payload is far smaller than 64 KiB.
        out.extend((unit.len() as u16).to_be_bytes());
        out.extend(*unit);
    }
    out
}

/// FU-As: the unit's first byte is told by the two of each fragment (section 5.8).
fn fragments(unit: &[u8], most: usize) -> impl Iterator<Item = Vec<u8>> {
    let (first, rest) = (unit[0], &unit[1..]);
    let count = rest.len().div_ceil(most - 2);
    (0..count).map(move |index| {
        let part = &rest[rest.len() * index / count..rest.len() * (index + 1) / count];
        let start = if index == 0 { START } else { 0 };
        let end = if index + 1 == count { END } else { 0 };
        [&[first & FLAGS | FU_A, start | end | nal_type(first)], part].concat()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameter_sets_share_a_payload_and_a_slice_has_its_own() {
        let stream = [0, 0, 0, 1, 0x67, 0x42, 0xc0, 0, 0, 0, 1, 0x28, 0xce, 0, 0, 0, 1, 0x65, 0x88];
        // STAP-A with the reference bits of the first set, which are the highest; then the slice as it is.
        let parameters = vec![0x78, 0, 3, 0x67, 0x42, 0xc0, 0, 2, 0x28, 0xce];
        assert_eq!(packetize(&stream, 100), [parameters, vec![0x65, 0x88]]);
        // Nine bytes do not hold both.
        assert_eq!(packetize(&stream, 9), [&[0x67, 0x42, 0xc0][..], &[0x28, 0xce], &[0x65, 0x88]]);
    }

    #[test]
    fn a_large_unit_is_cut_into_fragments_that_are_alike() {
        let stream = [0, 0, 1, 0x41, 1, 2, 3, 4, 5, 6, 7];
        // Five bytes a payload, two of them headers: three fragments, of 2, 2 and 3 bytes.
        let fragments = packetize(&stream, 5);
        assert_eq!(fragments, [&[0x5c, 0x81, 1, 2][..], &[0x5c, 0x01, 3, 4], &[0x5c, 0x41, 5, 6, 7]]);
        // A fragment is never the whole unit, whatever is asked for.
        assert_eq!(
            packetize(&[0, 0, 1, 0x41, 1, 2, 3], 0),
            [[0x5c, 0x81, 1], [0x5c, 0x01, 2], [0x5c, 0x41, 3]]
        );
    }

    #[test]
    fn no_payload_comes_from_nothing() {
        assert!(packetize(&[], 100).is_empty());
        assert!(packetize(&[0, 0, 0, 1], 100).is_empty());
    }
}
