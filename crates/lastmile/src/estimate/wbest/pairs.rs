//! WBest's first step: the capacity from packet pairs, and from bursts where pairs cannot tell it.

use super::*;

/// Of the pairs' rates this quantile may be the receiver's own.
const FAST: f64 = 0.75;
/// So many times as many pairs are advised where too few tell, and no more than these.
const MORE: usize = 4;
const MOST: usize = 1_000;

/// Pairs agree where half of them lie within so much of their median.
const MOST_ALIKE: f64 = 0.75;
const ALIKE: f64 = 0.08;

impl Wbest {
    pub(super) fn on_pairs(&mut self, record: &StreamRecord, verdict: StreamVerdict) {
        // Of several streams one may pass by luck.
        let verdict = match verdict {
            StreamVerdict::Believed
                if reordered(Pattern::Pairs, self.base.reordered.0, self.base.reordered.1) =>
            {
                StreamVerdict::Reordered
            }
            verdict => verdict,
        };
        if matches!(verdict, StreamVerdict::ClockStepped | StreamVerdict::NoReport | StreamVerdict::Reordered)
        {
            return self.base.waste(verdict, self.config.pair_attempts);
        }
        self.classify(record);
        self.see(record, verdict);
        self.pairs.extend(PairSet::of(record));
        self.pair_streams.push(record.stream);
        let needed = self.config.pairs.div_ceil(3).max(5);
        let noise = self.base.noise(record);
        let arrived = self.pairs.arrived().count();
        if !self.config.faithful && arrived >= needed {
            match self.pairs.timing(noise) {
                Timing::Timed => {}
                Timing::TooFast => return self.burst(Pairs::TooFast, record),
                Timing::Batched => return self.burst(Pairs::Batched, record),
            }
        }
        let rate = |p: &Pair| p.size.bits() as f64 * 1e9 / p.received.as_nanos() as f64;
        let rates: Vec<f64> = if self.config.faithful {
            self.pairs.arrived().filter(|p| p.received > Span::ZERO).map(rate).collect()
        } else {
            self.pairs.usable.iter().map(rate).collect()
        };
        if rates.len() < needed {
            let verdict =
                if arrived < needed { StreamVerdict::TooLossy } else { StreamVerdict::ScheduleBroken };
            return self.base.waste(verdict, self.config.pair_attempts);
        }
        self.capacity = Capacity::of(&rates, &self.config, noise);
        self.base.useful();
        if self.capacity.rate < 1.0 {
            return self
                .base
                .refuse(Refusal::Inconsistent("the packets of a pair arrived minutes apart".into()));
        }
        let (gap, late) = (self.config.pair_gap, self.base.coalescing());
        if !self.config.faithful
            && let Some(gap) = shaper::apart(&self.pairs, self.capacity.rate, gap, late)
        {
            self.config.pair_gap = gap;
            (self.pairs, self.pair_streams) = (PairSet::default(), Vec::new());
            return self.pause();
        }
        if !self.config.faithful && cell::settling(&self.pairs.usable) {
            if self.pair_streams.len() < self.config.pair_attempts as usize {
                (self.pairs, self.one_by_one) = (PairSet::default(), false);
                return self.pause();
            }
            self.base.warn(WarningCode::Changing, CHANGING);
        }
        // A receiver that takes interrupts by the clock shows a gap as one period or as the next.
        let typical = stats::quantile(&rates, FAST).unwrap_or(self.capacity.rate);
        if !self.config.faithful
            && BurstCheck::needed(typical, self.config.packet_size, self.base.coalescing())
        {
            return self.burst(Pairs::Claim(typical), record);
        }
        let check = || {
            AggregationCheck::of(&self.pairs.usable, self.config.packet_size, self.base.coalescing(), noise)
        };
        let settled = self.config.faithful || self.one_by_one;
        match (!settled).then(check).flatten() {
            Some(check) => self.phase = Phase::Aggregation(check),
            None => self.settle(noise),
        }
    }

    /// Ends the pairs: if most met others' packets, the capacity is from those that met none.
    pub(super) fn settle(&mut self, noise: Span) {
        self.phase = Phase::Train;
        if self.config.faithful || self.config.conservative {
            return;
        }
        let pairs = &self.pairs.usable;
        let (met, closer, size) = (met(pairs), tight_link::closer(pairs, noise), self.config.packet_size);
        let cell = Cell::of(pairs, &self.bursts, noise);
        if let Some(cell) = cell.as_ref().filter(|cell| cell.tells(met)) {
            if cell.changed() && self.pair_streams.len() < self.config.pair_attempts as usize {
                (self.pairs, self.phase) = (PairSet::default(), Phase::Pairs);
            } else if cell.asks(&self.bursts) {
                self.phase = Phase::Cell;
            } else {
                self.capacity = cell.capacity(size);
            }
            return;
        }
        if let Some(capacity) = cell.and_then(|cell| cell.contended(size)) {
            return self.met_none(CONTENDED, WarningCode::Contended, capacity.rate);
        }
        match met {
            Met::Many(rate) => return self.met_none(CONTENDED, WarningCode::Contended, rate),
            Met::TooMany => return self.more_pairs(CROWDED),
            Met::Few | Met::AtLink | Met::Scattered => {}
        }
        let again = self.pair_streams.len() < self.config.pair_attempts as usize;
        let late = BurstCheck::made_up(self.base.coalescing());
        match tight_link::least(pairs, closer || met != Met::Few, noise, late) {
            Least::Contradicts => return self.more_pairs(SPREAD),
            Least::Agrees(_) if met != Met::Few && again => return self.more_pairs(SPREAD),
            Least::Is(gap) => self.capacity = Capacity::of_least(gap, size, noise),
            Least::Agrees(_) | Least::Doubts(_) | Least::Nothing if met != Met::Few => {
                self.base.warn(WarningCode::Scattered, SCATTERED);
            }
            Least::Agrees(_) | Least::Doubts(_) | Least::Nothing if tight_link::together(pairs, noise) => {
                self.base.warn(WarningCode::Scattered, SCATTERED);
                self.capacity.interval = None;
            }
            Least::Doubts(gap) => {
                if !self.is_by_chance(noise) || self.are_spread() {
                    self.base.warn(WarningCode::Scattered, UNCONFIRMED);
                }
                self.capacity.reach(gap, size);
            }
            Least::Agrees(gap) => {
                if self.is_by_chance(noise) && self.are_spread() {
                    self.base.warn(WarningCode::Scattered, UNCONFIRMED);
                }
                self.capacity.reach(gap, size);
            }
            Least::Proves | Least::Nothing => {}
        }
        if closer {
            self.base.warn(WarningCode::TightLink, TIGHT_LINK);
        }
    }

    /// True if no pair met an empty path, but by chance.
    fn is_by_chance(&self, noise: Span) -> bool {
        let slot = bits_per_second(self.capacity.rate).time_for(self.config.packet_size);
        Idle::of(&self.pairs.usable, slot, noise).is_some_and(|idle| idle.share() <= 0.0)
    }

    /// True if too few pairs are like the median one for it to be the narrow link's.
    fn are_spread(&self) -> bool {
        let gaps: Vec<f64> = self.pairs.usable.iter().map(|p| p.received.as_nanos() as f64).collect();
        let [low, median, high] = [1.0 - MOST_ALIKE, 0.5, MOST_ALIKE].map(|q| stats::quantile(&gaps, q));
        median.zip(low.zip(high)).is_some_and(|(median, (low, high))| {
            low < (1.0 - ALIKE) * median || high > (1.0 + ALIKE) * median
        })
    }

    /// Pairs that met none of others' packets show this rate.
    fn met_none(&mut self, text: &str, code: WarningCode, rate: f64) {
        self.base.warn(code, text);
        self.capacity = Capacity { rate, ..Capacity::default() };
    }

    /// Too few pairs met none of others' packets: sends pairs again, or ends.
    fn more_pairs(&mut self, why: &str) {
        if self.pair_streams.len() < self.config.pair_attempts as usize {
            self.phase = Phase::Pairs;
            self.pause();
        } else {
            let more = (self.config.pairs * MORE).min(MOST);
            self.base
                .refuse(Refusal::Inconsistent(format!("{why}, or with more pairs, as wbest(pairs={more})")));
        }
    }

    /// Sends bursts about what pairs, the last of which are in `record`, said or could not say.
    pub(super) fn burst(&mut self, pairs: Pairs, record: &StreamRecord) {
        let (size, coalescing, noise) =
            (self.config.packet_size, self.base.coalescing(), self.base.noise(record));
        self.phase = Phase::Burst(BurstCheck::new(pairs, size, coalescing, record, noise));
    }

    pub(super) fn on_burst(&mut self, record: &StreamRecord) {
        let noise = self.base.noise(record);
        let Phase::Burst(check) = &mut self.phase else { return };
        let found = check.on_stream(record, noise);
        self.pause();
        let Phase::Burst(check) = &mut self.phase else { return };
        match found {
            None => {}
            Some(Finding::BorneOut) => {
                self.burst = check.burst;
                self.phase = Phase::Train;
            }
            Some(Finding::Refused(refusal)) => self.base.refuse(refusal),
            Some(Finding::InBatches(batched)) => self.in_batches(batched),
            Some(Finding::MoreThan(bound, why)) => {
                (self.bound, self.burst) = (Some((bound, core::mem::take(&mut check.streams))), check.burst);
                self.base.warn(WarningCode::LowerBound, why);
                self.unseen = None;
                self.end_without_rest();
            }
            Some(Finding::Policed(policer)) => {
                (self.bound, self.burst) =
                    (Some((check.bound, core::mem::take(&mut check.streams))), check.burst);
                self.base.warn(WarningCode::LowerBound, "the bound is of beginnings of bursts");
                self.policed(policer);
            }
            Some(Finding::Shaped(shaper)) => {
                let streams = core::mem::take(&mut check.streams);
                (self.bound, self.burst) = (Some((check.bound, streams)), check.burst);
                self.base.warn(WarningCode::LowerBound, shaper.why());
                self.shaped(shaper);
            }
        }
    }

    pub(super) fn on_aggregation(&mut self, record: &StreamRecord) {
        let noise = self.base.noise(record);
        self.pause();
        let Phase::Aggregation(check) = &mut self.phase else { return };
        match check.on_stream(record, noise) {
            None => {}
            Some(aggregation::Finding::OneByOne) => {
                self.one_by_one = true;
                self.settle(noise);
            }
            Some(aggregation::Finding::InBatches(batched)) => self.in_batches(batched),
        }
    }

    /// A burst in a cell with retries.
    pub(super) fn on_cell(&mut self, record: &StreamRecord) {
        let noise = self.base.noise(record);
        self.bursts.take(record);
        self.pause();
        self.settle(noise);
    }

    /// Goes on with trains over a path that delivers in batches.
    pub(super) fn in_batches(&mut self, mut batched: Box<Batched>) {
        let capacity = batched.capacity().rate;
        if let Some((free, pairs)) = idle::crowded(self.pairs.arrived(), self.config.packet_size, capacity) {
            return self.base.refuse(Refusal::Inconsistent(format!(
                "packets arrive in batches, as over Wi-Fi that aggregates, and others send nearly all the time: {free} of {pairs} pairs had to wait for nobody; measure when others send less"
            )));
        }
        batched.want(1, self.config.trains.unwrap_or(1).max(TRAINS), self.config.train_length.max(TRAIN));
        self.base.warn(WarningCode::BatchedStamps, IN_BATCHES);
        self.burst = self.config.packet_size * BURST as u64;
        self.unseen = None;
        (self.capacity, self.pair_streams) = (batched.capacity(), batched.burst_streams.clone());
        self.phase = Phase::Batched(batched);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Outcome;
    use crate::observe::testing;

    /// The tool after these pairs, which a burst has borne out, and its capacity in Mbit/s.
    fn told(of: &[(u64, u64)]) -> (Wbest, f64) {
        let config = WbestConfig { pairs: of.len(), pair_attempts: 1, ..WbestConfig::default() };
        let mut wbest = Wbest::new(config, Conditions::default()).unwrap();
        wbest.one_by_one = true;
        wbest.on_stream(&testing::pairs(of));
        let rate = wbest.capacity.rate / 1e6;
        (wbest, rate)
    }

    fn refused(of: &[(u64, u64)]) -> String {
        let Step::Done(Outcome::Refused(refusal)) = told(of).0.step() else { panic!("it goes on") };
        refusal.to_string()
    }

    fn says(wbest: &Wbest, code: WarningCode) -> bool {
        wbest.base.said([]).iter().any(|warning| warning.code == code)
    }

    /// A frame of 340 us between two thirds of the pairs, of those every other one two; spread evenly; a busy link behind; and alone.
    #[test]
    fn others_between_the_packets_of_pairs_are_said() {
        let backoff = |k: u64| 326 + k % 15 * 9;
        let met: Vec<_> = (0..45).map(|k| (k % 7 * 60, backoff(k) + [0, 340, 680][k as usize % 3])).collect();
        let (wbest, rate) = told(&met);
        assert!(says(&wbest, WarningCode::Contended) && !says(&wbest, WarningCode::Scattered));
        assert!((rate / 30.6 - 1.0).abs() < 0.05, "{rate}");
        assert!(refused(&met[..21]).contains("other stations of the cell"));
        let spread: Vec<_> = (0..40).map(|k| (0, 326 + k * 15)).collect();
        let refusal = refused(&spread);
        assert!(refusal.contains("too few pairs met none"));
        let advice = refusal.split_once("as ").unwrap().1;
        let method: crate::options::Choice = advice.parse().unwrap();
        let mut tool = crate::estimate::build(&method, &Conditions::default()).unwrap();
        assert!(
            matches!(tool.step(), Step::Send(plan) if plan.packets.len() == 8 * spread.len()),
            "{advice}"
        );
        // 10 Mbit/s before 20: one in seven pairs met none, one was brought together, five met two of 1500 B.
        let behind =
            |k: u64| [(0, 1_190), (600 + k * 7, 595), (k * 17 % 600, 1_795)][(k as usize % 7).min(2)];
        let (wbest, rate) = told(&(0..28).map(behind).collect::<Vec<_>>());
        assert!(!says(&wbest, WarningCode::Scattered) && says(&wbest, WarningCode::TightLink));
        let interval = wbest.capacity.interval.unwrap();
        assert!(interval.0 < 1e7 && 1e7 < interval.1 && interval.1 - interval.0 < 2e5, "{interval:?}");
        assert!((rate / 10.0 - 1.0).abs() < 0.01, "{rate}");
        let alone: Vec<_> = (0..30).map(|k| (0, backoff(k))).collect();
        let (wbest, rate) = told(&alone);
        assert!(wbest.base.said([]).is_empty() && (rate / 30.6 - 1.0).abs() < 0.05, "{rate}");
    }
}
