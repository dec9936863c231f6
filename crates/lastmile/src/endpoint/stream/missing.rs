//! Packets that a receiver misses: which to ask for (RFC 4585), when, and which came again (RFC 4588).

use std::collections::BTreeMap;

use super::nearest;
use crate::time::{Span, Time};

/// A packet that is merely late comes within this, on a path where one has: it is not asked for before that.
const REORDERED: Span = Span::from_millis(10);
/// A packet is asked for again once its answer is overdue, by twice the variation of answers (RFC 6298 has four times: here a packet too much
/// costs less than a frame too late), and after this while the time of answers is not known.
const ANSWER: Span = Span::from_millis(100);
const SHORTEST: Span = Span::from_millis(20);
const GRANULARITY: Span = Span::from_millis(5);
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
    /// Time that answers take, smoothed, and its variation.
    answer: Option<(Span, Span)>,
    /// A packet came that was merely late.
    reordered: bool,
}

#[derive(Clone, Copy, Debug)]
struct Asked {
    missing_since: Time,
    /// When it was asked for, first and last.
    asked: Option<(Time, Time)>,
    /// When it was last left to another source of its peer, which asks for the same number.
    deferred: Option<Time>,
}

impl Missing {
    pub(super) fn new(within: Span) -> Missing {
        Missing { within, packets: BTreeMap::new(), answer: None, reordered: false }
    }

    /// These are missing as of now.
    pub(super) fn gap(&mut self, now: Time, numbers: core::ops::Range<u64>) {
        let first = numbers.start.max(numbers.end.saturating_sub(MAX_MISSING as u64));
        self.packets.extend(
            (first..numbers.end)
                .map(|number| (number, Asked { missing_since: now, asked: None, deferred: None })),
        );
        while self.packets.len() > MAX_MISSING {
            self.packets.pop_first();
        }
    }

    /// One came after all.
    pub(super) fn came(&mut self, number: u64) {
        self.reordered |= self.packets.remove(&number).is_some();
    }

    /// The numbers that were asked for and have not come.
    pub(super) fn asked(&self) -> impl Iterator<Item = u16> {
        self.packets.iter().filter(|(_, asked)| asked.asked.is_some()).map(|(number, _)| *number as u16)
    }

    /// One was sent again. True if it was missing, and is of use. `highest` is the highest number that came.
    pub(super) fn repeated(&mut self, now: Time, low: u16, highest: u64) -> bool {
        let Some(asked) = nearest(highest, low).and_then(|number| self.packets.remove(&number)) else {
            return false;
        };
        if let Some((first, last)) = asked.asked {
            // A packet that comes soon after a request answers the one before.
            let soon = self.answer.is_some_and(|(mean, _)| now < last + mean / 2);
            let took = (now - if soon { first } else { last }).max(Span::ZERO);
            self.answer = Some(self.answer.map_or((took, took / 2), |(mean, variation)| {
                let off = if took > mean { took - mean } else { mean - took };
                (mean * 7 / 8 + took / 8, variation * 3 / 4 + off / 4)
            }));
        }
        now <= asked.missing_since + self.within
    }

    /// The numbers to ask for now but for `others`, and the count of those asked for the first time. Packets of no use any more are
    /// forgotten.
    pub(super) fn due(&mut self, now: Time, others: &[u16]) -> (Vec<u16>, u64) {
        let (within, waits) = (self.within, self.waits());
        self.packets.retain(|_, asked| now <= asked.missing_since + within);
        let due = self.packets.iter_mut().filter(|(_, asked)| asked.due(waits) <= now);
        let free = due.filter_map(|(number, asked)| {
            let taken = others.contains(&(*number as u16));
            asked.deferred = taken.then_some(now);
            (!taken).then_some((number, asked))
        });
        let mut first = 0;
        let numbers = free.take(MAX_ASKED).map(|(number, asked)| {
            first += u64::from(asked.asked.is_none());
            asked.asked = Some((asked.asked.map_or(now, |(first, _)| first), now));
            *number as u16
        });
        (numbers.collect(), first)
    }

    /// When something is to be asked for.
    pub(super) fn wake(&self) -> Option<Time> {
        let waits = self.waits();
        self.packets.values().map(|asked| asked.due(waits)).min()
    }

    /// Time until a packet is asked for, and until it is asked for again.
    fn waits(&self) -> (Span, Span) {
        let again = self.answer.map_or(ANSWER, |(mean, variation)| mean + (variation * 2).max(GRANULARITY));
        (if self.reordered { REORDERED } else { Span::ZERO }, again.max(SHORTEST))
    }
}

impl Asked {
    fn due(&self, (first, again): (Span, Span)) -> Time {
        let due = self.asked.map_or(self.missing_since + first, |(_, last)| last + again);
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
        assert_eq!((missing.wake(), missing.due(at(0), &[])), (Some(at(0)), (vec![0, 1, 2], 3)));
        missing.came(65_538);
        assert!(missing.repeated(at(40), 0, 65_540) && !missing.repeated(at(41), 0, 65_540));
        // No answer within 100 ms. The one to the first request took 40 ms, with a variation of half that: the next is overdue after 80 ms.
        assert_eq!((missing.due(at(79), &[]), missing.due(at(80), &[])), ((vec![], 0), (vec![1], 0)));
        // It was an answer to the first request after all: 90 ms. (7 x 40 + 90) / 8 = 46.25, (3 x 20 + 50) / 4 = 27.5 ms.
        assert!(missing.repeated(at(90), 1, 65_540));
        missing.gap(at(200), 65_541..65_542);
        // One packet was merely late: others may be.
        assert_eq!((missing.due(at(209), &[]), missing.due(at(210), &[])), ((vec![], 0), (vec![5], 1)));
        assert_eq!(missing.wake(), Some(at(210) + Span::from_micros(101_250)));
        assert_eq!(missing.due(at(501), &[]), (vec![], 0));
        assert_eq!(missing.wake(), None);
    }

    /// Answers that always take 40 ms: the next request leaves after 45.
    #[test]
    fn a_lost_answer_is_asked_for_again_once_it_is_overdue() {
        let mut missing = Missing::new(Span::from_millis(300));
        for number in 1..60_u64 {
            let now = at(100 * number as i64);
            missing.gap(now, number..number + 1);
            assert_eq!(missing.due(now, &[]).0, [number as u16]);
            missing.repeated(now + Span::from_millis(40), number as u16, number + 1);
        }
        missing.gap(at(6_000), 60..61);
        missing.due(at(6_000), &[]);
        assert_eq!(missing.wake(), Some(at(6_045)));
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
