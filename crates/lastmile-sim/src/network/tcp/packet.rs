//! Layout of a segment or an ACK in a [`Model`]'s four words.
//!
//! | word | segment | ACK |
//! |---|---|---|
//! | 0 | kind, CWR, number | kind, ECE, number of the next segment expected |
//! | 1 | departure, ns | the departure that it echoes |
//! | 2, 3 | bytes of data; 0 | three SACK blocks of 42 bits: start beyond the ACK's number, and length |

use lastmile::node::Model;

/// Sequence numbers count segments and stay below this.
pub(super) const MAX_SEQ: u64 = 1 << 48;
/// The largest window, in segments: the reach of a SACK block.
pub const MAX_WINDOW: u32 = (1 << 21) - 1;
/// As many SACK blocks as fit into TCP's options beside timestamps (RFC 2018, section 3).
pub(crate) const MAX_BLOCKS: usize = 3;

const DATA: u64 = 1 << 62;
const ACK: u64 = 2 << 62;
const FLAG: u64 = 1 << 61;
const KIND: u64 = 3 << 62;

/// A segment of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) seq: u64,
    pub(crate) sent: u64,
    pub(crate) bytes: u32,
    /// Congestion window reduced (RFC 3168, section 6.1.2).
    pub(crate) cwr: bool,
}

/// Half-open ranges of segments that arrived beyond the next expected one; empty where `start == end`.
pub(crate) type Blocks = [(u64, u64); MAX_BLOCKS];

/// An ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ack {
    pub(crate) next: u64,
    pub(crate) echo: u64,
    /// Congestion experienced echo (RFC 3168, section 6.1.3).
    pub(crate) ece: bool,
    pub(crate) blocks: Blocks,
}

impl Segment {
    #[inline]
    pub(crate) fn model(self, header: u32) -> Model {
        let flag = if self.cwr { FLAG } else { 0 };
        let words = [DATA | flag | self.seq, self.sent, u64::from(self.bytes), 0];
        Model { ip_size: self.bytes + header, words }
    }

    #[inline]
    pub(crate) fn read(model: &Model) -> Option<Segment> {
        let [first, sent, bytes, _] = model.words;
        (first & KIND == DATA).then_some(Segment {
            seq: first % MAX_SEQ,
            sent,
            bytes: bytes as u32,
            cwr: first & FLAG != 0,
        })
    }
}

impl Ack {
    #[inline]
    pub(crate) fn model(self, header: u32) -> Model {
        let flag = if self.ece { FLAG } else { 0 };
        let mut packed = 0_u128;
        for (number, &(start, end)) in self.blocks.iter().enumerate() {
            if end > start {
                let from = (start - self.next).min(u64::from(MAX_WINDOW));
                let length = (end - start).min(u64::from(MAX_WINDOW));
                packed |= u128::from(from << 21 | length) << (42 * number);
            }
        }
        let words = [ACK | flag | self.next, self.echo, packed as u64, (packed >> 64) as u64];
        Model { ip_size: header, words }
    }

    #[inline]
    pub(crate) fn read(model: &Model) -> Option<Ack> {
        let [first, echo, low, high] = model.words;
        if first & KIND != ACK {
            return None;
        }
        let next = first % MAX_SEQ;
        let mut blocks = Blocks::default();
        if low | high != 0 {
            let packed = u128::from(high) << 64 | u128::from(low);
            for (number, block) in blocks.iter_mut().enumerate() {
                let bits = (packed >> (42 * number)) as u64;
                let (from, length) = (bits >> 21 & u64::from(MAX_WINDOW), bits & u64::from(MAX_WINDOW));
                *block = (next + from, next + from + length);
            }
        }
        Some(Ack { next, echo, ece: first & FLAG != 0, blocks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_packed_comes_out_again(
            next in 0_u64..MAX_SEQ / 2, echo in any::<u64>(), flag in any::<bool>(),
            ranges in prop::collection::vec((1_u64..1 << 20, 1_u64..1 << 20), 0..=MAX_BLOCKS),
        ) {
            let mut blocks = [(next, next); MAX_BLOCKS];
            for (block, (from, length)) in blocks.iter_mut().zip(&ranges) {
                *block = (next + from, next + from + length);
            }
            let ack = Ack { next, echo, ece: flag, blocks };
            let read = Ack::read(&ack.model(40)).unwrap();
            prop_assert_eq!((read.next, read.echo, read.ece), (next, echo, flag));
            for (read, put) in read.blocks.iter().zip(&blocks) {
                prop_assert!(read == put || (read.0 == read.1 && put.0 == put.1));
            }
            prop_assert_eq!(Segment::read(&ack.model(40)), None);
            let segment = Segment { seq: next, sent: echo, bytes: 1460, cwr: flag };
            prop_assert_eq!(Segment::read(&segment.model(40)), Some(segment));
            prop_assert_eq!(segment.model(40).ip_size, 1500);
            prop_assert_eq!(Ack::read(&segment.model(40)), None);
        }
    }
}
