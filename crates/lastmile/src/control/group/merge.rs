//! Fates of the packets of several streams, told in the order in which these left, as of one stream: feedback on each comes at its own times.

use std::collections::VecDeque;

use super::super::{Report, Sent, arrival_order};
use crate::time::{Span, Time};

/// Packets whose fates are waited for at most: 100 Mbit/s for more than a second.
const MOST: usize = 16_384;

/// Packets of a group since the first whose fate was not told, and fates that came too late for their places.
#[derive(Clone, Debug, Default)]
pub(super) struct Merge {
    first: u64,
    places: VecDeque<Place>,
    late: Vec<Report>,
    told: Vec<Report>,
    order: Vec<u32>,
}

/// A packet of a stream as the controller was told of it, and its fate, once it came, with the time of that.
#[derive(Clone, Copy, Debug)]
struct Place {
    stream: usize,
    sent: Sent,
    fate: Option<(Report, Time)>,
}

impl Merge {
    /// A packet of that stream left, whose number is the group's next.
    pub(super) fn left(&mut self, stream: usize, sent: Sent) -> u64 {
        if self.places.len() == MOST {
            self.places.pop_front();
            self.first += 1;
        }
        let id = self.first + self.places.len() as u64;
        self.places.push_back(Place { stream, sent: Sent { id, ..sent }, fate: None });
        id
    }

    /// A fate came, of a packet by its number.
    pub(super) fn came(&mut self, now: Time, report: Report) {
        let at = report.sent.id.checked_sub(self.first).and_then(|at| usize::try_from(at).ok());
        match at.and_then(|at| self.places.get_mut(at)) {
            Some(place) if place.fate.is_none() => {
                place.fate = Some((Report { sent: place.sent, ..report }, now));
            }
            _ => self.late.push(report),
        }
    }

    /// The fates that can be told, with the order of arrivals: up to the first packet whose fate is not known. It is waited for while `waits` says so
    /// of its stream, and no longer than `longest` after the next fate came.
    pub(super) fn tell(
        &mut self,
        now: Time,
        longest: Span,
        waits: impl Fn(usize) -> bool,
    ) -> (&mut [Report], &[u32]) {
        self.told.clear();
        self.told.append(&mut self.late);
        self.told.sort_unstable_by_key(|report| report.sent.id);
        while let Some(next) = self.places.iter().position(|place| place.fate.is_some()) {
            let came = self.places[next].fate.map_or(now, |(_, at)| at);
            if now - came <= longest && self.places.iter().take(next).any(|place| waits(place.stream)) {
                break;
            }
            self.first += next as u64 + 1;
            self.told.extend(self.places.drain(..=next).filter_map(|place| Some(place.fate?.0)));
        }
        arrival_order(&self.told, &mut self.order);
        (&mut self.told, &self.order)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Fate;
    use super::*;
    use crate::units::Bytes;

    fn at(ms: i64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    fn arrived(id: u64, ms: u64) -> Report {
        let fate = Fate::arrived(Time::from_nanos(ms * 1_000_000));
        Report { sent: Sent::media(id, Bytes(100), at(id as i64)), fate }
    }

    /// Packets of two streams by turns: numbers 0, 2, 4 are the first's.
    fn merged() -> Merge {
        let mut merge = Merge::default();
        let sent = |k: usize| Sent::media(99, Bytes(100), at(k as i64));
        let ids: Vec<u64> = (0..6).map(|k| merge.left(k % 2, sent(k))).collect();
        assert_eq!(ids, [0, 1, 2, 3, 4, 5]);
        merge
    }

    fn told(merge: &mut Merge, ms: i64, waits: bool) -> (Vec<u64>, Vec<u32>) {
        let (reports, order) = merge.tell(at(ms), Span::from_millis(100), |_| waits);
        (reports.iter().map(|report| report.sent.id).collect(), order.to_vec())
    }

    #[test]
    fn fates_are_told_in_the_order_of_sending() {
        let mut merge = merged();
        [0, 2, 4].iter().for_each(|&id| merge.came(at(50), arrived(id, 20 + id)));
        assert_eq!(told(&mut merge, 50, true).0, [0]);
        // The second stream's come 40 ms later: one of them overtook another on its way.
        merge.came(at(90), arrived(1, 23));
        merge.came(at(90), arrived(3, 22));
        assert_eq!(told(&mut merge, 90, true), (vec![1, 2, 3, 4], vec![1, 2, 0, 3]));
        assert_eq!(told(&mut merge, 90, true).0, []);
        merge.came(at(100), arrived(5, 30));
        assert_eq!(told(&mut merge, 100, true), (vec![5], vec![]));
    }

    #[test]
    fn a_stream_that_says_nothing_holds_up_nobody_for_long() {
        let mut merge = merged();
        [0, 2, 4].iter().for_each(|&id| merge.came(at(50), arrived(id, 20 + id)));
        assert_eq!(told(&mut merge, 50, false).0, [0, 2, 4], "nobody waits for it");
        // Its word in the end is told before all others.
        merge.came(at(60), arrived(1, 21));
        merge.came(at(60), arrived(5, 25));
        assert_eq!(told(&mut merge, 60, true).0, [1, 5]);
        let mut merge = merged();
        [0, 2, 4].iter().for_each(|&id| merge.came(at(50), arrived(id, 20 + id)));
        assert_eq!((told(&mut merge, 150, true).0, told(&mut merge, 151, true).0), (vec![0], vec![2, 4]));
        // Numbers that nobody has sent, and one twice.
        [4, 77, u64::MAX].iter().for_each(|&id| merge.came(at(200), arrived(id, 30)));
        assert_eq!(told(&mut merge, 200, true).0, [4, 77, u64::MAX]);
        let sent = arrived(0, 0).sent;
        (0..2 * MOST).for_each(|_| _ = merge.left(0, sent));
        assert_eq!((merge.places.len(), merge.left(0, sent)), (MOST, 6 + 2 * MOST as u64));
    }
}
