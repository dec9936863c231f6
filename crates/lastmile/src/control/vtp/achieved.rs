//! VTP's achieved rate: a flow's rate through the bottleneck, round by round [VTP, section 3.2].

use crate::control::receive_clock::ReceiveClock;
use crate::time::{Rx, Time};

/// AR. Rates are IP bytes a second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Achieved {
    /// The weight of the past.
    memory: f64,
    /// AR, with what was lost behind the bottleneck.
    pub(super) rate: Option<f64>,
    /// Rate of arrivals alone, of the last round; infinite before one ended.
    pub(super) received: f64,
    /// AR of the last round alone.
    last: f64,
    /// The clock of arrivals, and what it showed at the newest one of the last round, in nanoseconds.
    clock: ReceiveClock,
    last_round: Option<u64>,
}

impl Achieved {
    pub(super) fn new(memory: f64) -> Achieved {
        Achieved {
            memory,
            rate: None,
            received: f64::INFINITY,
            last: f64::INFINITY,
            clock: ReceiveClock::default(),
            last_round: None,
        }
    }

    /// A round ended with that newest arrival: so many bytes arrived, and so many were lost behind the bottleneck.
    pub(super) fn round_ended(&mut self, now: Time, arrived: Option<Time<Rx>>, bytes: u64, lost: u64) {
        let arrived = self.clock.advance(now, arrived);
        let Some(before) = self.last_round.replace(arrived) else { return };
        let span = (arrived - before) as f64 / 1e9;
        if span > 0.0 {
            self.received = bytes as f64 / span;
            self.add((bytes + lost) as f64 / span);
        }
    }

    /// The receiver tells the rate itself.
    pub(super) fn told(&mut self, rate: f64) {
        (self.received, self.last_round) = (rate, None);
        self.add(rate);
    }

    /// A round goes on: its rate so far counts as the last one's, once the round is `least` seconds long.
    pub(super) fn so_far(&mut self, now: Time, arrived: Option<Time<Rx>>, bytes: u64, least: f64) {
        let Some(before) = self.last_round else { return };
        let span = (self.clock.advance(now, arrived) - before) as f64 / 1e9;
        if span >= least {
            self.last = bytes as f64 / span;
        }
    }

    /// Rate that a cut leaves: AR, or the last round's if that is less than half of it. After a large step down AR is of the old rate for
    /// many rounds, each as long as the full queue; a round with random losses differs from AR by less.
    pub(super) fn for_cut(&self) -> Option<f64> {
        self.rate.map(|rate| if self.last < rate / 2.0 { self.last } else { rate })
    }

    fn add(&mut self, sample: f64) {
        self.last = sample;
        self.rate = Some(self.rate.map_or(sample, |past| past + (1.0 - self.memory) * (sample - past)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of 100 ms by our clock; the receiver's says 110, then what cannot be.
    #[test]
    fn the_receivers_clock_counts_where_it_can_be_true() {
        let mut achieved = Achieved::new(0.75);
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        let arrived = |ms: u64| Some(Time::<Rx>::from_nanos(ms * 1_000_000));
        achieved.round_ended(at(100), arrived(5_000), 11_000, 0);
        assert_eq!((achieved.rate, achieved.received), (None, f64::INFINITY));
        achieved.round_ended(at(200), arrived(5_110), 9_900, 1_100);
        assert_eq!((achieved.rate, achieved.received), (Some(100_000.0), 90_000.0));
        // 100,000 and a quarter of the way to 60,000.
        achieved.round_ended(at(300), arrived(9_000), 6_000, 0);
        assert_eq!((achieved.rate, achieved.received), (Some(90_000.0), 60_000.0));
    }
}
