//! From lost packets to loss events (RFC 5348, sections 5.1 to 5.3).
//!
//! The same code serves a receiver, which sees gaps and times of arrival, and a sender, which is told of losses and knows when
//! it sent them: times are nanoseconds of whatever one clock. Losses that a classifier found wireless are not told at all, and
//! so count as received.

use super::intervals::LossIntervals;
use crate::time::Span;

/// Runs of lost packets that wait for later arrivals to confirm them; with more, the oldest counts as confirmed.
const HOLES: usize = 16;
/// Loss events of one run that are told apart, the last ones; there are no more than eight intervals.
const EVENTS: u64 = 16;

/// Packets lost in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Run {
    /// The first one's number.
    pub(super) first: u64,
    /// Packets in the run, at least one.
    pub(super) len: u64,
    /// When the first and the last were sent, or would have arrived.
    pub(super) times: (u64, u64),
}

impl Run {
    /// When the packet of that place in the run was sent or would have arrived [RFC 5348, 5.2: T_loss].
    fn time(&self, place: u64) -> u64 {
        let span = self.times.1.saturating_sub(self.times.0);
        match self.len {
            0 | 1 => self.times.0,
            len => self
                .times
                .0
                .saturating_add((u128::from(span) * u128::from(place) / u128::from(len - 1)) as u64),
        }
    }

    /// The first place, from `from` on, that is later than `after`.
    fn later_than(&self, after: u64, from: u64) -> Option<u64> {
        let (mut low, mut high) = (from, self.len);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.time(middle) > after { high = middle } else { low = middle + 1 }
        }
        (low < self.len).then_some(low)
    }
}

/// State needed to judge if a loss begins a loss event.
#[derive(Clone, Copy)]
pub(super) struct Now<'a> {
    /// R.
    pub(super) rtt: Span,
    /// The first loss interval, in packets [RFC 5348, 6.3.1]; asked for once.
    pub(super) first: &'a dyn Fn() -> f64,
    /// ns-2's round_id, of the packet that tells of the loss: a round has one loss event.
    pub(super) round: Option<u64>,
}

/// A loss event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Event {
    /// S_A and T_A: the packet that began it, and when that was sent or would have arrived.
    number: u64,
    time: u64,
    round: Option<u64>,
}

/// The loss history.
#[derive(Clone, Debug)]
pub(super) struct LossHistory {
    intervals: LossIntervals,
    /// NDUPACK.
    confirmations: u8,
    /// S_C: the highest number that arrived.
    highest: Option<u64>,
    /// The current loss event.
    began: Option<Event>,
    holes: [(Run, u8); HOLES],
    open: usize,
    undo: Option<Undo>,
}

/// State needed to take the current loss event back.
#[derive(Clone, Debug)]
struct Undo {
    /// The state before it.
    intervals: LossIntervals,
    began: Option<Event>,
    /// The packets that made it, and which of them came late, a bit each.
    run: Run,
    came: u64,
}

impl LossHistory {
    pub(super) fn new(confirmations: u8, threshold: f64) -> LossHistory {
        LossHistory {
            intervals: LossIntervals::new(threshold),
            confirmations: confirmations.max(1),
            highest: None,
            began: None,
            holes: Default::default(),
            open: 0,
            undo: None,
        }
    }

    /// The history that another connection over the same path begins with: nothing waits there to be confirmed.
    pub(super) fn heir(&self) -> LossHistory {
        LossHistory { open: 0, undo: None, ..self.clone() }
    }

    /// p; zero before the first loss event.
    pub(super) fn loss_event_rate(&self) -> f64 {
        let (Some(began), Some(highest)) = (self.began, self.highest) else { return 0.0 };
        // [RFC 5348, 5.3] I_0 = S_C - S_A + 1; ns-2, which goes by rounds, has S_C - S_A.
        let first = u64::from(began.round.is_none());
        let open = highest.saturating_sub(began.number).saturating_add(first) as f64;
        self.intervals.loss_event_rate(open).unwrap_or(0.0)
    }

    /// A packet arrived, in whatever order; `marked` by congestion (ECN). The number of the packet that began a loss event
    /// with it, if one did.
    pub(super) fn arrived(&mut self, number: u64, time: u64, marked: bool, now: Now<'_>) -> Option<u64> {
        let mut event = None;
        if self.highest.is_none_or(|highest| number > highest) {
            self.highest = Some(number);
            // [RFC 5348, 5.1] a mark confirms the losses before it: it is not to wait, and they came first.
            let count = if marked { u8::MAX } else { 1 };
            self.holes[..self.open].iter_mut().for_each(|(_, seen)| *seen = seen.saturating_add(count));
            event = self.confirm(now);
        } else {
            self.fill(number);
        }
        if marked && let Some(began) = self.judge(Run { first: number, len: 1, times: (time, time) }, now) {
            self.undo = None;
            event = Some(began);
        }
        event
    }

    /// Packets were lost. Those behind the highest arrival are confirmed by it.
    pub(super) fn lost(&mut self, run: Run, now: Now<'_>) -> Option<u64> {
        if self.highest.is_some_and(|highest| run.first <= highest) {
            return self.judge(run, now);
        }
        if let Some((last, 0)) = self.holes[..self.open].last_mut()
            && last.first.checked_add(last.len) == Some(run.first)
        {
            *last = Run {
                first: last.first,
                len: last.len.saturating_add(run.len),
                times: (last.times.0, run.times.1),
            };
            return None;
        }
        let full = if self.open == HOLES {
            self.holes[0].1 = u8::MAX;
            self.confirm(now)
        } else {
            None
        };
        self.holes[self.open] = (run, 0);
        self.open += 1;
        full
    }

    /// A packet that was said to be lost arrived after all [RFC 5348, 5.1]: it fills its hole, and a loss event that is left
    /// without a loss never was.
    pub(super) fn fill(&mut self, number: u64) {
        let within = |run: &Run| number.checked_sub(run.first).filter(|&place| place < run.len);
        for i in 0..self.open {
            let (run, seen) = self.holes[i];
            let Some(place) = within(&run) else { continue };
            let before = Run { len: place, times: (run.times.0, run.time(place.saturating_sub(1))), ..run };
            let after = Run {
                first: number.saturating_add(1),
                len: run.len - place - 1,
                times: (run.time(place.saturating_add(1)), run.times.1),
            };
            match (before.len, after.len) {
                (0, 0) => self.close(i),
                (0, _) => self.holes[i].0 = after,
                (_, 0) => self.holes[i].0 = before,
                _ if self.open < HOLES => {
                    self.holes[i].0 = before;
                    self.holes[self.open] = (after, seen);
                    self.open += 1;
                    self.holes[i + 1..self.open].rotate_right(1);
                }
                // No room to split it: the loss event that it may make is the same.
                _ => {}
            }
            return;
        }
        if let Some(undo) = &mut self.undo
            && let Some(place) = within(&undo.run).filter(|_| undo.run.len <= 64)
        {
            undo.came |= 1 << place;
            if u64::from(undo.came.count_ones()) == undo.run.len {
                (self.intervals, self.began) = (undo.intervals, undo.began);
                self.undo = None;
            }
        }
    }

    fn close(&mut self, hole: usize) {
        self.holes[hole..self.open].rotate_left(1);
        self.open -= 1;
    }

    /// Judges the holes that enough later packets have confirmed.
    fn confirm(&mut self, now: Now<'_>) -> Option<u64> {
        let mut event = None;
        while let Some(place) =
            self.holes[..self.open].iter().position(|(_, seen)| *seen >= self.confirmations)
        {
            let run = self.holes[place].0;
            self.close(place);
            event = self.judge(run, now).or(event);
        }
        event
    }

    /// Counts the loss events that begin within a run [RFC 5348, 5.2]; the number that began the last one.
    fn judge(&mut self, run: Run, now: Now<'_>) -> Option<u64> {
        let rtt = now.rtt.as_nanos().unsigned_abs();
        let (mut from, mut event) = (0, None);
        for _ in 0..EVENTS + 2 {
            // T_old + R >= T_new belongs to the event that there is.
            let place = match self.began {
                None => Some(from),
                Some(began) if now.round.is_some() && now.round <= began.round => None,
                Some(began) => run.later_than(began.time.saturating_add(rtt), from),
            };
            let Some(place) = place.filter(|&place| place < run.len) else { break };
            let number = run.first.saturating_add(place);
            let (intervals, before) = (self.intervals, self.began);
            match self.began {
                None => self.intervals.close((now.first)()),
                Some(began) => self.intervals.close(number.saturating_sub(began.number) as f64), // [5.3] S_B - S_A
            }
            self.began = Some(Event { number, time: run.time(place), round: now.round });
            // Only an event that a whole run began can be taken back.
            self.undo = (place == 0).then_some(Undo { intervals, began: before, run, came: 0 });
            // Losses further back in a long run have no weight any more.
            let tail = run.times.1.saturating_sub(rtt.saturating_mul(EVENTS));
            let late = run.later_than(tail, place + 1).unwrap_or(run.len);
            (from, event) = (late.min(run.len.saturating_sub(EVENTS)).max(place + 1), Some(number));
        }
        if event.is_none() {
            // The current event has other losses too.
            self.undo = None;
        }
        event
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const FIRST: Now<'_> = Now { rtt: Span::from_millis(100), first: &|| 50.0, round: None };

    /// Packets at 10 ms each, those named missing; the numbers that began loss events.
    fn events(history: &mut LossHistory, numbers: core::ops::Range<u64>, missing: &[u64]) -> Vec<u64> {
        let step = |n: u64| match missing.contains(&n) {
            true => history.lost(Run { first: n, len: 1, times: (10 * n * MS, 10 * n * MS) }, FIRST),
            false => history.arrived(n, 10 * n * MS, false, FIRST),
        };
        numbers.filter_map(step).collect()
    }

    fn history() -> LossHistory {
        LossHistory::new(3, 1.0)
    }

    /// R is 100 ms, ten packets: 20 to 30 are one loss event, 31 begins the next (T_old + R >= T_new).
    #[test]
    fn losses_within_a_round_trip_are_one_event() {
        let mut h = history();
        assert_eq!(events(&mut h, 0..60, &[20, 25, 30]), [20]);
        assert_eq!(h.intervals, {
            let mut one = LossIntervals::new(1.0);
            one.close(50.0);
            one
        });
        // I_0 = 59 - 20 + 1 = 40 against the 50 of the synthetic one.
        assert!((h.loss_event_rate() - 1.0 / 50.0).abs() < 1e-12);
        let mut h = history();
        assert_eq!(events(&mut h, 0..60, &[20, 31]), [20, 31]);
        // I_1 = 31 - 20, I_2 = 50, I_0 = 59 - 31 + 1: (29 + 11) / 2 against (11 + 50) / 2.
        assert!((h.loss_event_rate() - 2.0 / 61.0).abs() < 1e-12);
    }

    /// ns-2's PreciseLoss_: 100 ms apart with R of 10 ms, losses are of one event where one round tells of them.
    #[test]
    fn a_round_has_one_loss_event() {
        let events = |rounds: [u64; 4]| {
            let mut h = LossHistory::new(1, 1.0);
            let step = |n: u64| {
                let time = 100 * n * MS;
                let round = Some(rounds[n as usize / 2]);
                let now = Now { rtt: Span::from_millis(10), round, ..FIRST };
                match n {
                    1 | 3 | 4 => h.lost(Run { first: n, len: 1, times: (time, time) }, now),
                    _ => h.arrived(n, time, false, now),
                }
            };
            (0..7).filter_map(step).collect::<Vec<_>>()
        };
        // 1 is told of by packet 2, 3 and 4 by packet 5 (of the third round) at once.
        assert_eq!(events([0, 1, 2, 3]), [1, 3]);
        assert_eq!(events([0, 1, 1, 1]), [1]);
    }

    #[test]
    fn a_loss_waits_for_three_later_packets() {
        let mut h = history();
        assert_eq!(events(&mut h, 0..23, &[20]), []);
        assert_eq!(events(&mut h, 23..24, &[]), [20]);
        let mut ns_2 = LossHistory::new(1, 0.5);
        assert_eq!(events(&mut ns_2, 0..22, &[20]), [20]);
    }

    #[test]
    fn a_packet_that_comes_after_two_others_was_not_lost() {
        let mut h = history();
        events(&mut h, 0..23, &[20]);
        assert_eq!(h.arrived(20, 225 * MS, false, FIRST), None);
        assert_eq!((events(&mut h, 23..60, &[]), h.loss_event_rate()), (vec![], 0.0));
        // In the midst of a run it leaves the others.
        let mut h = history();
        events(&mut h, 0..25, &[20, 21, 22]);
        assert_eq!(h.arrived(21, 245 * MS, false, FIRST), None);
        assert_eq!(h.open, 2);
        assert_eq!(events(&mut h, 25..60, &[]), [20]);
    }

    #[test]
    fn a_packet_that_comes_very_late_takes_its_event_back() {
        let mut h = history();
        events(&mut h, 0..60, &[20, 40]);
        let before = h.clone();
        events(&mut h, 60..90, &[70, 71]);
        h.fill(70);
        h.fill(70); // twice is once
        assert_ne!(h.intervals, before.intervals);
        h.fill(71);
        assert_eq!((h.intervals, h.began), (before.intervals, before.began));
        // A packet that was never lost, or lost long ago, changes nothing.
        h.fill(55);
        h.fill(20);
        assert_eq!((h.intervals, h.began), (before.intervals, before.began));
    }

    /// Thirty packets, 300 ms, in one run: events at the 1st, the 12th and the 23rd.
    #[test]
    fn a_long_run_holds_several_events() {
        let mut h = history();
        let missing: Vec<u64> = (20..50).collect();
        assert_eq!(events(&mut h, 0..60, &missing), [42]);
        assert_eq!(h.began.unwrap().number, 20 + 22);
        let mut wanted = LossIntervals::new(1.0);
        [50.0, 11.0, 11.0].into_iter().for_each(|size| wanted.close(size));
        assert_eq!(h.intervals, wanted);
        // Of two hundred events of 11 packets the last ones count.
        let mut long = history();
        events(&mut long, 0..20, &[]);
        long.lost(Run { first: 20, len: 2_201, times: (200 * MS, 22_200 * MS) }, FIRST);
        events(&mut long, 2_221..2_230, &[]);
        // I_0 is 2229 - 2215 + 1 = 15: (15 + 5 * 11) / 6.
        assert_eq!(long.began.unwrap().number, 2_215);
        assert!((long.loss_event_rate() - 6.0 / 70.0).abs() < 1e-12);
        // Told as one run of a receiver, with the times of its ends.
        let mut told = history();
        events(&mut told, 0..20, &[]);
        told.lost(Run { first: 20, len: 30, times: (200 * MS, 490 * MS) }, FIRST);
        events(&mut told, 50..60, &[]);
        assert_eq!(told.intervals, h.intervals);
    }

    #[test]
    fn a_mark_is_an_event_at_once_and_confirms_the_loss_before_it() {
        let mut h = history();
        events(&mut h, 0..20, &[]);
        assert_eq!(h.arrived(20, 200 * MS, true, FIRST), Some(20));
        assert_eq!(h.arrived(21, 210 * MS, true, FIRST), None);
        // RFC 5348, 5.1: n lost, n + 1 arrives, n + 2 is marked: the event begins with n.
        let mut h = history();
        events(&mut h, 0..22, &[20]);
        assert_eq!(h.arrived(22, 220 * MS, true, FIRST), Some(20));
        assert_eq!(h.began.unwrap().number, 20);
    }

    #[test]
    fn an_interval_of_one_marked_packet_has_size_one() {
        let mut h = LossHistory::new(3, 1.0);
        h.arrived(7, 0, true, Now { first: &|| 1.0, ..FIRST });
        assert_eq!(h.loss_event_rate(), 1.0);
    }
}
