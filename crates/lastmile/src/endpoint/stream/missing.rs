//! Packets that a receiver misses: which to ask for (RFC 4585), when, and which came again (RFC 4588).

use std::collections::BTreeMap;

use super::nearest;
use crate::time::{Span, Time};

/// A packet that is merely late comes within this.
const REORDERED: Span = Span::from_millis(10);
/// A packet is asked for again after half as much again as an answer takes, and this while that is not known.
const ANSWER: Span = Span::from_millis(100);
const SHORTEST: Span = Span::from_millis(20);
/// Packets that are missed at a time; of more, the newest.
const MAX_MISSING: usize = 512;
/// Packets asked for at a time, which then fit any datagram.
const MAX_ASKED: usize = 128;

/// The packets of one source.
#[derive(Debug)]
pub(super) struct Missing {
    /// Time for which a packet is of use.
    within: Span,
    packets: BTreeMap<u64, Asked>,
    /// Time that answers take, smoothed.
    answer: Option<Span>,
}

#[derive(Clone, Copy, Debug)]
struct Asked {
    missing_since: Time,
    last_asked: Option<Time>,
    /// When it was last left to another source of its peer, which asks for the same number.
    deferred: Option<Time>,
}

impl Missing {
    pub(super) fn new(within: Span) -> Missing {
        Missing { within, packets: BTreeMap::new(), answer: None }
    }

    /// These are missing as of now.
    pub(super) fn gap(&mut self, now: Time, numbers: core::ops::Range<u64>) {
        let first = numbers.start.max(numbers.end.saturating_sub(MAX_MISSING as u64));
        self.packets.extend(
            (first..numbers.end)
                .map(|number| (number, Asked { missing_since: now, last_asked: None, deferred: None })),
        );
        while self.packets.len() > MAX_MISSING {
            self.packets.pop_first();
        }
    }

    /// One came after all.
    pub(super) fn came(&mut self, number: u64) {
        self.packets.remove(&number);
    }

    /// The numbers that were asked for and have not come.
    pub(super) fn asked(&self) -> impl Iterator<Item = u16> {
        self.packets.iter().filter(|(_, asked)| asked.last_asked.is_some()).map(|(number, _)| *number as u16)
    }

    /// One was sent again. True if it was missing, and is of use. `highest` is the highest number that came.
    pub(super) fn repeated(&mut self, now: Time, low: u16, highest: u64) -> bool {
        let Some(asked) = nearest(highest, low).and_then(|number| self.packets.remove(&number)) else {
            return false;
        };
        if let Some(last) = asked.last_asked {
            let took = (now - last).max(Span::ZERO);
            self.answer = Some(self.answer.map_or(took, |before| before * 7 / 8 + took / 8));
        }
        now <= asked.missing_since + self.within
    }

    /// The numbers to ask for now but for `others`, and the count of those asked for the first time. Packets of no use any more are
    /// forgotten.
    pub(super) fn due(&mut self, now: Time, others: &[u16]) -> (Vec<u16>, u64) {
        let (within, again) = (self.within, self.again());
        self.packets.retain(|_, asked| now <= asked.missing_since + within);
        let due = self.packets.iter_mut().filter(|(_, asked)| asked.due(again) <= now);
        let free = due.filter_map(|(number, asked)| {
            let taken = others.contains(&(*number as u16));
            asked.deferred = taken.then_some(now);
            (!taken).then_some((number, asked))
        });
        let mut first = 0;
        let numbers = free.take(MAX_ASKED).map(|(number, asked)| {
            first += u64::from(asked.last_asked.replace(now).is_none());
            *number as u16
        });
        (numbers.collect(), first)
    }

    /// When something is to be asked for.
    pub(super) fn wake(&self) -> Option<Time> {
        let again = self.again();
        self.packets.values().map(|asked| asked.due(again)).min()
    }

    fn again(&self) -> Span {
        self.answer.map_or(ANSWER, |answer| (answer * 3 / 2).max(SHORTEST))
    }
}

impl Asked {
    fn due(&self, again: Span) -> Time {
        let due = self.last_asked.map_or(self.missing_since + REORDERED, |last| last + again);
        self.deferred.map_or(due, |left| due.max(left + SHORTEST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn a_packet_is_asked_for_until_it_comes_or_is_of_no_use() {
        let mut missing = Missing::new(Span::from_millis(300));
        missing.gap(at(0), 65_536..65_539);
        missing.came(65_538);
        assert_eq!((missing.due(at(9), &[]), missing.wake()), ((vec![], 0), Some(at(10))));
        assert_eq!(missing.due(at(10), &[]), (vec![0, 1], 2));
        assert!(missing.repeated(at(50), 0, 65_540) && !missing.repeated(at(51), 0, 65_540));
        // The answer took 40 ms: it is asked for again after 60 ms.
        assert_eq!((missing.due(at(69), &[]), missing.due(at(70), &[])), ((vec![], 0), (vec![1], 0)));
        assert_eq!(missing.due(at(301), &[]), (vec![], 0));
        assert_eq!(missing.wake(), None);
    }

    #[test]
    fn what_another_source_asks_for_is_left_to_it_for_a_while() {
        let mut missing = Missing::new(Span::from_millis(300));
        missing.gap(at(0), 5..7);
        assert_eq!((missing.due(at(10), &[5]), missing.wake()), ((vec![6], 1), Some(at(30))));
        assert_eq!(missing.asked().collect::<Vec<_>>(), [6]);
        assert_eq!(missing.due(at(30), &[]), (vec![5], 1));
    }

    #[test]
    fn one_that_comes_too_late_is_of_no_use() {
        let mut missing = Missing::new(Span::from_millis(300));
        missing.gap(at(0), 5..6);
        assert!(!missing.repeated(at(301), 5, 9));
    }

    #[test]
    fn of_a_long_outage_the_newest_are_missed() {
        let mut missing = Missing::new(Span::from_secs(1));
        missing.gap(at(0), 0..100_000);
        missing.gap(at(1), 100_001..100_010);
        assert_eq!(missing.packets.len(), MAX_MISSING);
        let (asked, first) = missing.due(at(11), &[]);
        assert_eq!((asked.len(), first), (MAX_ASKED, MAX_ASKED as u64));
    }
}
