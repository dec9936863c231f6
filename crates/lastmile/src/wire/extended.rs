//! RTCP extended reports (RFC 3611), and of their blocks packet receipt times (section 4.3): when each packet arrived, in units of
//! the media's clock, which are finer than RFC 8888's.

use super::WireError;
use super::rtcp_packet::packet;

/// The packet type of extended reports (section 3), and the block type of receipt times.
pub(super) const EXTENDED_REPORT: u8 = 207;
const RECEIPT_TIMES: u8 = 3;
/// Bytes of a block before its times.
const BLOCK_HEAD: usize = 12;

/// An extended report.
///
/// ```
/// use lastmile::wire::{Rtcp, write_receipt_times};
/// let mut bytes = Vec::new();
/// write_receipt_times(&mut bytes, 1, 7, &[(65_535, 90_000), (0, 90_900)]);
/// let Some(Ok(Rtcp::Extended(report))) = Rtcp::all(&bytes).next() else { panic!() };
/// let block = report.receipt_times().next().unwrap();
/// assert_eq!((report.ssrc(), block.ssrc), (1, 7));
/// assert_eq!(block.times().collect::<Vec<_>>(), [(65_535, 90_000), (0, 90_900)]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtendedReport<'a> {
    ssrc: u32,
    blocks: &'a [u8],
}

/// When packets of one source arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiptTimes<'a> {
    /// The source.
    pub ssrc: u32,
    /// The sequence numbers reported on: from the first one up to the second, which is not.
    pub numbers: (u16, u16),
    /// Only numbers that are multiples of 2 to this power are reported on.
    pub thinning: u8,
    times: &'a [u8],
}

impl<'a> ExtendedReport<'a> {
    /// Reads a whole packet, whose type is right.
    pub(super) fn parse(packet: &'a [u8]) -> Result<ExtendedReport<'a>, WireError> {
        let what = "an extended report";
        let short = |need| WireError::Truncated { what, need, have: packet.len() };
        let head: &[u8; 8] = packet.first_chunk().ok_or_else(|| short(8))?;
        let report = ExtendedReport { ssrc: super::be32(head, 4), blocks: &packet[8..] };
        // Each block once, so that reading them later cannot fail.
        let mut rest = report.blocks;
        while !rest.is_empty() {
            let (_, content, after) = block(rest).ok_or_else(|| short(packet.len() + 4))?;
            if content.first() == Some(&RECEIPT_TIMES) && ReceiptTimes::read(content).is_none() {
                return Err(WireError::Truncated {
                    what: "a block of receipt times",
                    need: content.len() + 4,
                    have: content.len(),
                });
            }
            rest = after;
        }
        Ok(report)
    }

    /// SSRC of the reporting source.
    pub fn ssrc(&self) -> u32 {
        self.ssrc
    }

    /// Its blocks of receipt times. Blocks of other types are skipped.
    pub fn receipt_times(&self) -> impl Iterator<Item = ReceiptTimes<'a>> + use<'a> {
        let mut rest = self.blocks;
        let blocks = core::iter::from_fn(move || {
            let (kind, content, after) = block(rest)?;
            rest = after;
            Some((kind, content))
        });
        blocks
            .filter(|(kind, _)| *kind == RECEIPT_TIMES)
            .filter_map(|(_, content)| ReceiptTimes::read(content))
    }
}

/// The first block of some: its type, its bytes, and the bytes after it.
fn block(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let head: &[u8; 4] = bytes.first_chunk()?;
    let (content, after) = bytes.split_at_checked(4 * (usize::from(super::be16(head, 2)) + 1))?;
    Some((head[0], content, after))
}

impl<'a> ReceiptTimes<'a> {
    /// A whole block; nothing where it has fewer times than it announces.
    fn read(block: &'a [u8]) -> Option<ReceiptTimes<'a>> {
        let head: &[u8; BLOCK_HEAD] = block.first_chunk()?;
        let (numbers, thinning) = ((super::be16(head, 8), super::be16(head, 10)), head[1] & 0x0f);
        let ssrc = super::be32(head, 4);
        let mut read = ReceiptTimes { ssrc, numbers, thinning, times: &[] };
        read.times = block[BLOCK_HEAD..].get(..4 * read.reported().count())?;
        Some(read)
    }

    /// The numbers that are reported on.
    fn reported(&self) -> impl Iterator<Item = u16> + use<> {
        let ((begin, end), step) = (self.numbers, 1_u16 << self.thinning);
        let first = begin.wrapping_neg() & (step - 1);
        (first..end.wrapping_sub(begin)).step_by(step.into()).map(move |k| begin.wrapping_add(k))
    }

    /// Each number with the time at which its packet arrived, on the media's clock, whose zero the receiver chose.
    pub fn times(&self) -> impl Iterator<Item = (u16, u32)> + use<'a> {
        self.reported().zip(self.times.as_chunks::<4>().0.iter().map(|time| u32::from_be_bytes(*time)))
    }
}

/// Appends an extended report with the receipt times of one source's packets, in the order of their numbers; a block for each run
/// of numbers, since packets that did not arrive have no place in one.
pub fn write_receipt_times(out: &mut Vec<u8>, own: u32, ssrc: u32, times: &[(u16, u32)]) {
    packet(out, 0, EXTENDED_REPORT, |out| {
        out.extend(own.to_be_bytes());
        for run in times.chunk_by(|before, after| after.0 == before.0.wrapping_add(1)) {
            out.extend([RECEIPT_TIMES, 0]);
            out.extend((run.len() as u16 + 2).to_be_bytes());
            out.extend(ssrc.to_be_bytes());
            let begin = run.first().map_or(0, |first| first.0);
            out.extend(begin.to_be_bytes());
            out.extend(begin.wrapping_add(run.len() as u16).to_be_bytes());
            run.iter().for_each(|(_, time)| out.extend(time.to_be_bytes()));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Rtcp;

    /// Sections 3 and 4.3 by hand: an unknown block of two words, then source 7: numbers 4 and 6 of 3 to 7 by thinning 1.
    const WHOLE: [u8; 36] = [
        0x80, 207, 0, 8, 0, 0, 0, 1, // header, reporting source
        99, 0, 0, 1, 1, 2, 3, 4, // another type of block
        3, 0x01, 0, 4, 0, 0, 0, 7, 0, 3, 0, 7, // receipt times, thinned by two
        0, 1, 0x5f, 0x90, 0, 1, 0x63, 0x14, // 90000 and 90900 ticks
    ];

    #[test]
    fn the_layout_is_that_of_the_rfc() {
        let Some(Ok(Rtcp::Extended(report))) = Rtcp::all(&WHOLE).next() else { panic!() };
        let blocks: Vec<_> = report.receipt_times().collect();
        assert_eq!((report.ssrc(), blocks.len(), blocks[0].ssrc), (1, 1, 7));
        assert_eq!(blocks[0].times().collect::<Vec<_>>(), [(4, 90_000), (6, 90_900)]);
    }

    #[test]
    fn a_lost_packet_ends_a_block_and_numbers_wrap() {
        let told = [(65_534, 1), (65_535, 2), (0, 3), (2, u32::MAX)];
        let mut bytes = Vec::new();
        write_receipt_times(&mut bytes, 1, 7, &told);
        let Some(Ok(Rtcp::Extended(report))) = Rtcp::all(&bytes).next() else { panic!() };
        assert_eq!(
            report.receipt_times().map(|block| block.numbers).collect::<Vec<_>>(),
            [(65_534, 1), (2, 3)]
        );
        assert_eq!(report.receipt_times().flat_map(|block| block.times()).collect::<Vec<_>>(), told);
    }

    #[test]
    fn blocks_beyond_the_packet_and_times_beyond_the_block_are_refused() {
        for (place, value) in [(11, 9), (19, 2), (27, 9), (19, 9)] {
            let mut bytes = WHOLE;
            bytes[place] = value;
            assert!(matches!(Rtcp::all(&bytes).next(), Some(Err(WireError::Truncated { .. }))), "{place}");
        }
        for len in (4..36).step_by(4) {
            let mut bytes = WHOLE;
            bytes[3] = (len / 4 - 1) as u8;
            let _ = Rtcp::all(&bytes[..len]).count();
        }
    }
}
