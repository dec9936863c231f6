//! [`Scoreboard`]: arrivals of the segments under way, by SACK (RFC 6675, sections 2 to 4).

use std::collections::VecDeque;

use super::packet::Blocks;

const SACKED: u8 = 1;
const RESENT: u8 = 2;
const LOST: u8 = 4;

/// Segments with that many received beyond them are taken for lost (RFC 6675, DupThresh).
pub(super) const DUP_THRESH: usize = 3;

/// One flag byte for each segment from the first unacknowledged to the highest one that is flagged: nothing at
/// all while nothing is lost.
#[derive(Debug, Default)]
pub(super) struct Scoreboard {
    /// So many received beyond a segment make it lost.
    threshold: usize,
    una: u64,
    flags: VecDeque<u8>,
    sacked: u64,
    lost: u64,
    resent: u64,
    /// Below it every segment is sacked or lost.
    judged: u64,
    /// Below it no segment is lost and not resent.
    hole: u64,
    /// Below it every segment is sacked or resent.
    doubtful: u64,
    /// The last ACK's blocks: their segments are sacked, and the next ACK mostly reports them again.
    known: Blocks,
}

impl Scoreboard {
    pub(super) fn new(threshold: usize) -> Scoreboard {
        Scoreboard { threshold, ..Scoreboard::default() }
    }

    /// All below `una` are acknowledged.
    #[inline]
    pub(super) fn advance(&mut self, una: u64) {
        while self.una < una
            && let Some(flags) = self.flags.pop_front()
        {
            self.una += 1;
            self.uncount(flags);
        }
        self.una = self.una.max(una);
        self.judged = self.judged.max(una);
        self.hole = self.hole.max(una);
        self.doubtful = self.doubtful.max(una);
    }

    fn uncount(&mut self, flags: u8) {
        self.sacked -= u64::from(flags & SACKED != 0);
        self.lost -= u64::from(flags & LOST != 0);
        self.resent -= u64::from(flags & RESENT != 0);
    }

    /// Forgets all but what is sacked: after a timeout everything else is taken for lost.
    pub(super) fn forget(&mut self) {
        for flags in &mut self.flags {
            *flags &= SACKED;
        }
        (self.lost, self.resent) = (0, 0);
        (self.judged, self.hole, self.doubtful) = (self.una, self.una, self.una);
    }

    /// Forgets what is sacked too.
    pub(super) fn clear(&mut self) {
        self.flags.clear();
        (self.sacked, self.lost, self.resent) = (0, 0, 0);
        (self.judged, self.hole, self.doubtful) = (self.una, self.una, self.una);
        self.known = Blocks::default();
    }

    /// Takes in an ACK's blocks; says how many segments they newly report. `max` is the first segment never sent.
    pub(super) fn update(&mut self, blocks: &Blocks, max: u64) -> u64 {
        let before = self.sacked;
        let mut all = Blocks::default();
        for (&(start, end), reported) in blocks.iter().zip(&mut all) {
            let (start, end) = (start.max(self.una), end.min(max));
            if start >= end {
                continue;
            }
            let needed = (end - self.una) as usize;
            if self.flags.len() < needed {
                self.flags.resize(needed, 0);
            }
            // An ACK's cost does not grow with the length of its blocks, but with what is new in them.
            let overlap = |known: &&(u64, u64)| known.1.min(end).saturating_sub(known.0.max(start));
            let known = self.known.iter().max_by_key(overlap).copied().unwrap_or_default();
            let (from, to) = (known.0.clamp(start, end), known.1.clamp(start, end));
            self.sack(start, from);
            self.sack(to.max(from), end);
            *reported = (start, end);
        }
        self.known = all;
        if self.sacked > before {
            self.judge();
        }
        self.sacked - before
    }

    fn sack(&mut self, start: u64, end: u64) {
        for index in (start - self.una) as usize..(end - self.una) as usize {
            let flags = self.flags[index];
            if flags & SACKED == 0 {
                self.uncount(flags);
                self.flags[index] = SACKED;
                self.sacked += 1;
            }
        }
    }

    /// IsLost of RFC 6675: with a threshold of three, all below the third-highest sacked segment that have not arrived.
    fn judge(&mut self) {
        let mut seen = 0;
        let mut end = self.flags.len();
        while end > 0 && seen < self.threshold {
            end -= 1;
            seen += usize::from(self.flags[end] & SACKED != 0);
        }
        if seen < self.threshold {
            return;
        }
        for index in (self.judged - self.una) as usize..end {
            if self.flags[index] & (SACKED | LOST) == 0 {
                self.flags[index] |= LOST;
                self.lost += 1;
            }
        }
        self.judged = self.judged.max(self.una + end as u64);
    }

    /// Takes the first segment for lost, whatever was sacked beyond it: as many duplicate ACKs say the same.
    pub(super) fn lose_first(&mut self) {
        if self.flags.is_empty() {
            self.flags.push_back(0);
        }
        if let Some(first) = self.flags.front_mut()
            && *first & (SACKED | LOST) == 0
        {
            *first |= LOST;
            self.lost += 1;
            (self.judged, self.hole) = (self.judged.max(self.una + 1), self.una);
        }
    }

    /// True if the first unacknowledged segment is lost.
    pub(super) fn first_lost(&self) -> bool {
        self.flags.front().is_some_and(|flags| flags & LOST != 0)
    }

    /// True if it was sent again, and is not known to have arrived.
    pub(super) fn first_resent(&self) -> bool {
        self.flags.front().is_some_and(|flags| flags & RESENT != 0)
    }

    #[inline]
    pub(super) fn is_sacked(&self, seq: u64) -> bool {
        self.flag(seq) & SACKED != 0
    }

    fn flag(&self, seq: u64) -> u8 {
        seq.checked_sub(self.una).and_then(|index| self.flags.get(index as usize)).copied().unwrap_or(0)
    }

    /// Notes that `seq` was sent again.
    pub(super) fn resend(&mut self, seq: u64) {
        let Some(index) = seq.checked_sub(self.una) else { return };
        let index = index as usize;
        if self.flags.len() <= index {
            self.flags.resize(index + 1, 0);
        }
        if self.flags[index] & (SACKED | RESENT) == 0 {
            self.flags[index] |= RESENT;
            self.resent += 1;
        }
    }

    /// `seq`, sent again before, is lost again; true if it was not known to have arrived.
    pub(super) fn lose_again(&mut self, seq: u64) -> bool {
        if self.flag(seq) & (SACKED | LOST | RESENT) != LOST | RESENT {
            return false;
        }
        self.flags[(seq - self.una) as usize] &= !RESENT;
        self.resent -= 1;
        (self.hole, self.doubtful) = (self.hole.min(seq), self.doubtful.min(seq));
        true
    }

    /// NextSeg's rule 1: the first segment that is lost and was not resent.
    pub(super) fn next_lost(&mut self) -> Option<u64> {
        while self.hole < self.judged {
            if self.flag(self.hole) & (SACKED | LOST | RESENT) == LOST {
                return Some(self.hole);
            }
            self.hole += 1;
        }
        None
    }

    /// NextSeg's rule 3: the first segment below a sacked one that is not known to have arrived nor resent.
    pub(super) fn next_doubtful(&mut self) -> Option<u64> {
        let last = self.una + self.flags.iter().rposition(|flags| flags & SACKED != 0)? as u64;
        while self.doubtful < last {
            if self.flag(self.doubtful) & (SACKED | RESENT) == 0 {
                return Some(self.doubtful);
            }
            self.doubtful += 1;
        }
        None
    }

    /// NextSeg's rule 4: the last segment before `max` that is not known to have arrived, unless it was resent.
    pub(super) fn last_missing(&self, max: u64) -> Option<u64> {
        let last = (self.una..max).rev().find(|&seq| !self.is_sacked(seq))?;
        (self.flag(last) & RESENT == 0).then_some(last)
    }

    /// Segments thought to be in the network, of those from the first unacknowledged to `max` (RFC 6675, pipe).
    #[inline]
    pub(super) fn pipe(&self, max: u64) -> u64 {
        (max - self.una + self.resent).saturating_sub(self.sacked + self.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(ranges: &[(u64, u64)]) -> Blocks {
        let mut blocks = Blocks::default();
        blocks[..ranges.len()].copy_from_slice(ranges);
        blocks
    }

    #[test]
    fn what_is_new_in_a_block_is_seen_wherever_it_is() {
        let mut board = Scoreboard::new(DUP_THRESH);
        assert_eq!(board.update(&blocks(&[(10, 12)]), 99), 2);
        assert_eq!(board.update(&blocks(&[(9, 14), (20, 22)]), 99), 5);
        assert_eq!(board.update(&blocks(&[(5, 22), (30, 31)]), 99), 11);
        assert_eq!(board.update(&blocks(&[(40, 41), (5, 22)]), 99), 1);
        assert!((5..22).all(|seq| board.is_sacked(seq)) && board.is_sacked(30) && !board.is_sacked(31));
        assert_eq!(board.update(&blocks(&[(5, 22), (1, 2)]), 99), 1);
        board.advance(22);
        assert_eq!(board.update(&blocks(&[(25, 29)]), 99), 4);
        assert_eq!(board.pipe(50), 28 - 6 - board.lost);
    }

    #[test]
    fn nonsense_beyond_what_was_sent_is_ignored() {
        let mut board = Scoreboard::new(DUP_THRESH);
        board.advance(5);
        assert_eq!(board.update(&blocks(&[(7, 1 << 40), (0, 4)]), 8), 1);
        assert_eq!(board.pipe(8), 2);
        board.advance(100);
        assert_eq!(board.pipe(100), 0);
    }
}
