//! The available bandwidth from the readings of trains and pairs: the number, both intervals, and the trains that these take.

use super::*;
use crate::estimate::{Interval, IntervalMethod};

/// Trains where the first met others' traffic.
const LOADED: usize = 3;
/// From so many trains on their spread tells of the next 10 s.
const MIN_TRAINS: usize = 3;
/// Above this share of the capacity a path is idle, if pairs and train agree.
const IDLE: f64 = 0.95;

/// The warning where others fill a queue that serves flows in turn.
const IN_TURN: &str = "a queue serves flows in turn, and others fill it: the rate of one flow is known, the available bandwidth is not";
/// The warning where packets of a slow path waited for somebody, nearly all and each a little.
const ELSEWHERE: &str = "most packets met others on the path, at a place much faster than its narrow link: a cell of Wi-Fi, or a link, which may be full, so that less may be left";
/// The warning in a cell where others send.
const IN_CELL: &str = "other stations of the cell of Wi-Fi send: packets get their turn beside them, and less may be left than that";

impl Wbest {
    /// Trains to send.
    pub(super) fn wanted(&self) -> usize {
        let met_others = || {
            let left = self.trains.first().map_or(0.0, |left| left / self.limit().rate.max(1.0));
            left < IDLE || self.idle().is_some_and(|idle| idle.contradicts(left))
        };
        match self.config.trains {
            Some(trains) => trains.max(1),
            None if self.pairs.usable.is_empty() || self.config.faithful || self.shaper.is_some() => 1,
            None if met_others() => LOADED,
            None => 1,
        }
    }

    /// The share of time in which pairs, or single packets, met nobody.
    fn idle(&self) -> Option<Idle> {
        let (pairs, slot) = (&self.pairs.usable, self.slot()?);
        let of_singles = || Idle::of_singles(self.singles.as_ref()?, pairs, slot, self.noise);
        Idle::of(pairs, slot, self.noise).or_else(of_singles)
    }

    /// A packet's time at the capacity, if pairs could tell it. If stations aggregate, packets wait for more than others' packets.
    fn slot(&self) -> Option<Span> {
        let timed = self.bound.is_none() && !self.capacity.is_of_batches() && !self.pairs.usable.is_empty();
        timed.then(|| bits_per_second(self.capacity.rate).time_for(self.config.packet_size))
    }

    /// Single packets that are to tell what pairs cannot.
    pub(super) fn asks_singles(&mut self) -> Option<StreamPlan> {
        let slot = self.slot().filter(|_| !self.config.faithful && self.singles.is_none())?;
        let asked = Idle::of(&self.pairs.usable, slot, self.noise).is_none();
        asked.then(|| Idle::singles(slot, || self.base.draw()))
    }

    /// True if a burst is to tell whether a queue serves flows in turn.
    pub(super) fn asks_fair_queue(&self) -> bool {
        let free = !self.config.faithful && self.shaper.is_none() && self.served.is_none();
        free && !self.pairs.usable.is_empty() && fair_queue::asks(&self.outputs, self.capacity.rate)
    }

    pub(super) fn on_fair_queue(&mut self, share: Option<f64>, record: &StreamRecord) {
        self.served = Some(match share {
            Some(share) => fair_queue::served(share, record),
            None => match fair_queue::share(&self.outputs, self.capacity.rate, record) {
                None => Served::Together,
                share => {
                    self.phase = Phase::FairQueue(share);
                    return self.pause();
                }
            },
        });
        self.finish();
    }

    /// The mean of the trains so far.
    pub(super) fn available(&self) -> f64 {
        let ceiling = if self.config.faithful { f64::INFINITY } else { self.limit().rate };
        stats::mean(&self.trains).unwrap_or(0.0).min(ceiling)
    }

    /// The available bandwidth, and the achievable rate where that is another.
    pub(super) fn rest(&self, warnings: Vec<Warning>) -> Vec<Estimate> {
        let estimate = Estimate {
            quantity: Quantity::AvailableBandwidth,
            value: Value::Is(bits_per_second(self.available())),
            interval: None,
            next: None,
            truth_kind: TruthKind::Queue,
            burst: self.shaper.is_none().then_some(self.config.packet_size * self.train_length() as u64),
            packet_size: Some(self.config.packet_size),
            streams: self.train_streams.clone(),
            warnings,
        };
        if self.config.faithful {
            return vec![estimate];
        }
        let idle = self.idle();
        match self.served {
            Some(Served::InTurn(share)) => self.rest_in_turn(estimate, share, idle),
            _ => vec![self.rest_of_fifo(estimate, idle)],
        }
    }

    /// Trains and pairs bound what is left from both sides.
    fn rest_of_fifo(&self, mut estimate: Estimate, idle: Option<Idle>) -> Estimate {
        let (limit, left) = (self.limit(), self.available());
        let own = limit.interval_of_rest(
            left,
            [self.trains.len(), self.config.train_length],
            self.config.packet_size,
            self.noise,
        );
        let by_pairs = idle.map(|idle| bits_per_second(limit.rate * idle.share()));
        // Two busy links slow a train twice, and eq. 13 takes off too much: less is left than the train got.
        let most = match self.served {
            Some(Served::Twice(share)) => Some(bits_per_second(share)),
            _ => None,
        };
        let readings = || [by_pairs, most].into_iter().flatten();
        estimate.interval = own.map(|own| readings().fold(own, Interval::reaching));
        estimate.next = self.next(idle);
        if let Some((code, text)) = idle.and_then(|idle| self.doubt_of_rest(idle, left / limit.rate.max(1.0)))
        {
            // The number is an upper bound here, and its error is not known.
            estimate.interval = estimate.interval.filter(|interval| !too_wide(interval, limit.rate));
            estimate.warnings.push(Warning { code, text });
        }
        estimate
    }

    /// Reason to doubt that as much is left as trains say, a share of the capacity.
    fn doubt_of_rest(&self, idle: Idle, left: f64) -> Option<(WarningCode, String)> {
        let slow = self.slot().is_some_and(|slot| idle.is_busy_elsewhere(slot));
        if idle.contradicts(left) {
            let text = format!(
                "a link other than the narrow one seems busy: {:.0} % of the pairs met an empty path, and the available bandwidth may be as little as that share of the capacity",
                idle.share() * 100.0
            );
            Some((WarningCode::TightLink, text))
        } else if slow {
            Some((WarningCode::TightLink, ELSEWHERE.to_owned()))
        } else if self.capacity.is_of_cell() && idle.met_others() {
            Some((WarningCode::Contended, IN_CELL.to_owned()))
        } else {
            None
        }
    }

    /// In a queue that serves flows in turn a train gets what others leave, as long as those are below their shares; pairs then say the
    /// same. Else it gets its own share, and the queue is never empty.
    fn rest_in_turn(&self, mut estimate: Estimate, share: f64, idle: Option<Idle>) -> Vec<Estimate> {
        let c = self.limit().rate.max(1.0);
        let gets =
            Estimate {
                quantity: Quantity::AchievableRate,
                value: Value::Is(bits_per_second(share)),
                interval: Some(self.outputs.iter().map(|output| bits_per_second(*output)).fold(
                    self.limit().around(share, 0.0, IntervalMethod::PairsAndTrains),
                    Interval::reaching,
                )),
                truth_kind: TruthKind::Saturation,
                ..estimate.clone()
            };
        let (low, high) = idle.map_or((0.0, 0.0), |idle| idle.interval(CONFIDENCE));
        let left = idle.filter(|idle| !idle.contradicts(share / c)).map(|_| share);
        estimate.value = left.map_or(Value::Unknown, |left| Value::Is(bits_per_second(left)));
        let interval = self.limit().around(share, 0.0, IntervalMethod::PairsAndTrains);
        let readings = self.outputs.iter().copied().chain([c * low, c * high]).map(bits_per_second);
        estimate.interval = Some(readings.fold(interval, Interval::reaching));
        estimate.next = self.next(idle);
        if left.is_none() {
            estimate.warnings.push(Warning { code: WarningCode::FairQueue, text: IN_TURN.to_owned() });
        }
        vec![estimate, gets]
    }

    /// The interval of the next 10 s: the spread of the trains, or of the pairs where there was one train, and both readings.
    fn next(&self, idle: Option<Idle>) -> Option<Interval> {
        let (limit, left, packets) = (self.limit(), self.available(), self.config.train_length);
        let of_trains =
            stats::student_interval(&self.trains, CONFIDENCE).filter(|_| self.trains.len() >= MIN_TRAINS);
        let rate = |share: f64| bits_per_second(limit.rate * share);
        match (of_trains, idle) {
            (Some((low, high)), idle) => {
                let next = limit.interval_of_next(left, (high - low) / 2.0, self.trains.len(), packets);
                Some(idle.map_or(next, |idle| next.reaching(rate(idle.share()))))
            }
            (None, Some(idle)) => {
                let (low, high) = idle.interval(CONFIDENCE);
                let next = limit.around(left, 0.0, IntervalMethod::PairsAndTrains);
                Some(next.reaching(rate(low)).reaching(rate(high)))
            }
            (None, None) => None,
        }
    }
}
