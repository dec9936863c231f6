//! Schedule: when the packets of a reverse stream leave that are not evenly spaced.

use super::{PREFIX, check_prefix};
use crate::time::Span;
use crate::wire::{TlvType, TlvValue, WireError};

/// Gaps that fit into one request beside all else, within 1,280 bytes of IPv6's least MTU.
pub const MAX_GAPS: usize = 256;

/// The gaps between the packets that one request asks for, beside its Stream tag and Reflected Test Packet Control TLV,
/// whose interval then means nothing: chirps, pairs at Poisson times. One gap fewer than the Control TLV's count.
///
/// ```text
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                   'LSM'                       |   Layout = 1  |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |              Gap in nanoseconds, for each packet but the first |
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// Nanoseconds between a packet and the one before it; at most [`MAX_GAPS`].
    pub gaps: Vec<u32>,
}

impl Schedule {
    /// When each packet leaves, counted from the first.
    pub fn offsets(&self) -> impl Iterator<Item = Span> {
        let mut at = Span::ZERO;
        core::iter::once(Span::ZERO).chain(self.gaps.iter().map(move |&gap| {
            at += Span::from_nanos(i64::from(gap));
            at
        }))
    }

    /// From the first packet to the last.
    #[must_use]
    pub fn duration(&self) -> Span {
        Span::from_nanos(self.gaps.iter().map(|&gap| i64::from(gap)).sum())
    }
}

impl TlvValue for Schedule {
    const KIND: TlvType = TlvType::SCHEDULE;

    fn value_len(&self) -> usize {
        PREFIX.len() + 4 * self.gaps.len()
    }

    fn encode_value(&self, out: &mut [u8]) -> Result<(), WireError> {
        if out.len() != self.value_len() || self.gaps.len() > MAX_GAPS {
            return Err(WireError::TlvLength { kind: Self::KIND.0, length: out.len() });
        }
        let (head, gaps) = out.split_at_mut(PREFIX.len());
        head.copy_from_slice(&PREFIX);
        gaps.chunks_exact_mut(4)
            .zip(&self.gaps)
            .for_each(|(out, gap)| out.copy_from_slice(&gap.to_be_bytes()));
        Ok(())
    }

    /// Refuses more gaps than a request has room for.
    fn decode_value(value: &[u8]) -> Result<Self, WireError> {
        check_prefix(Self::KIND, value)?;
        let (gaps, rest) = value.get(PREFIX.len()..).unwrap_or_default().as_chunks::<4>();
        if gaps.len() > MAX_GAPS || !rest.is_empty() {
            return Err(WireError::TlvLength { kind: Self::KIND.0, length: value.len() });
        }
        Ok(Self { gaps: gaps.iter().map(|gap| u32::from_be_bytes(*gap)).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_its_gaps() {
        let schedule = Schedule { gaps: vec![1_000, 0, 2_500] };
        let mut wire = vec![0xFF; schedule.value_len()];
        schedule.encode_value(&mut wire).unwrap();
        assert_eq!(wire, *b"LSM\x01\0\0\x03\xE8\0\0\0\0\0\0\x09\xC4");
        assert_eq!(Schedule::decode_value(&wire), Ok(schedule.clone()));
        let offsets: Vec<i64> = schedule.offsets().map(Span::as_nanos).collect();
        assert_eq!((offsets, schedule.duration().as_nanos()), (vec![0, 1_000, 1_000, 3_500], 3_500));
        assert!(matches!(Schedule::decode_value(&wire[..15]), Err(WireError::TlvLength { length: 15, .. })));
        assert!(matches!(Schedule::decode_value(b"LSN\x01\0\0\0\x01"), Err(WireError::NotOurs { .. })));
        let long = [b"LSM\x01".to_vec(), vec![0; 4 * (MAX_GAPS + 1)]].concat();
        assert!(matches!(Schedule::decode_value(&long), Err(WireError::TlvLength { .. })));
    }
}
