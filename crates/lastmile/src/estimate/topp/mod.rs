//! TOPP: available bandwidth and the tight link's capacity from a line through the rates of many trains.
//!
//! Melander, Björkman, Gunningberg, "A new end-to-end probing and analysis method for estimating bandwidth bottlenecks",
//! GLOBECOM 2000, and "Regression-based available bandwidth measurements", SPECTS 2002. Probes are offered at rates o that rise
//! linearly, and are measured at m. Up to the available bandwidth A they come as they went. Above it they share the link's
//! capacity C with X = C - A of others, in proportion:
//!
//! > o / m = 1 for o <= A; o / m = o / C + (C - A) / C for o > A
//!
//! so that a regression of o / m on o has the slope 1 / C, and meets 1 at A. A second break is a second busy link, whose slope and
//! intercept the first one changed; `Line::behind` undoes that.
//!
//! **What is ours.** The papers are told the rates; here packet pairs find them, from the one with the least delays, as CapProbe has it. Short
//! trains take the place of pairs at each rate: a pair meets no packet of others, or one. Of points only those count that are clearly above 1:
//! with little traffic the others are most of the line, and their slope is that of nothing. Pairs are held against the slope too: a fair queue gives one flow
//! what the others leave, however fast it comes, so that its line goes through the origin with the slope 1 / A; a link that is busy before
//! a narrower one has a slope that pairs contradict from the other side. If they do not contradict it, the line takes their slope, which they tell far better
//! than 11 trains do (at 10 Mbit/s beside Poisson 4 the median error of A falls from 11 to 0.6 %). `faithful` leaves all of this out but for the rates.

mod found;
mod line;

use self::line::{CLEAR, FEWEST};
use crate::estimate::base::TOO_FAST;
use crate::estimate::line::Point;
use crate::estimate::wbest_fluid::Fluid;
use crate::estimate::{
    Base, Conditions, Estimate, Estimator, Guard, Method, Probes, Quantity, Refusal, Search, Signal, Step,
    StreamPlan, Warning, WarningCode, bits_per_second,
};
use crate::observe::burst::Burst;
use crate::observe::pairs::{PairSet, Timing};
use crate::observe::{StreamVerdict, signal, stats};
use crate::options::{OptionError, Options};
use crate::report::StreamRecord;
use crate::time::Span;
use crate::units::{Bytes, Rate};

crate::options! {
    /// TOPP's parameters.
    pub struct ToppConfig {
        /// The lowest rate offered [default: 0.15 of what pairs show]
        min_rate: Option<Rate> [Rate::ip(1_000)..=Rate::ip(1_000_000_000_000)] = None, "our own: TOPP is told it";
        /// The highest rate offered [default: 1.75 of what pairs show, doubled up to twice while nothing grows]
        max_rate: Option<Rate> [Rate::ip(1_000)..=Rate::ip(1_000_000_000_000)] = None, "our own: TOPP is told it";
        /// Rates in the range
        levels: usize [8..=60] = 21, "our own";
        /// From one rate to the next, in place of `levels`, widened to 60 rates at most
        step: Option<Rate> [Rate::ip(1_000)..=Rate::ip(1_000_000_000_000)] = None, "our own: TOPP is told it";
        /// Packets of the train at each rate
        train_length: usize [8..=1_000] = 20, "our own; TOPP: pairs";
        /// Packet pairs of the start; with faithful, of each rate too
        pairs: usize [5..=1_000] = 20, "our own";
        /// Between streams, half more or less, and longer where a queue has to drain
        pause: Span [Span::ZERO..=Span::from_secs(60)] = Span::from_millis(50), "our own";
        /// Size of the packets at the IP layer
        packet_size: Bytes [Bytes(100)..=Bytes(65_000)] = Bytes(1488), "our own: as WBest's";
        /// Do as the papers: pairs at each rate, a line through all points behind the break, nothing held against it
        faithful: bool = false, "TOPP";
    }
}

/// Its place in the registry.
pub const ENTRY: Method = Method {
    name: "topp",
    about: "available bandwidth and the tight link's capacity from a line through the rates of trains that come faster and faster",
    paper: "Melander, Björkman, Gunningberg, TOPP, GLOBECOM 2000",
    estimates: &[Quantity::Capacity, Quantity::AvailableBandwidth],
    pattern: &[Probes::Pairs, Probes::Trains],
    signal: Signal::Throughput,
    search: &[Search::Regression],
    weak: "on a busy link before a narrower one, and with bursts of others behind a fair queue: one train at each rate is too few",
    round_trip: true,
    in_all: true,
    resolution: "1 us: 1 Gbit/s with the 2 us that kernels add; 250 us: 100 Mbit/s",
    options: ToppConfig::OPTIONS,
    brief: &[("levels", "12"), ("train_length", "10"), ("pairs", "10"), ("pause", "10 ms")],
    make: |given, conditions| {
        let config = ToppConfig::read(given)?;
        match (config.min_rate, config.max_rate) {
            (Some(min), Some(max)) if min >= max => {
                Err(OptionError::new("min_rate", format!("must be less than `max_rate`, which is {max}")))
            }
            _ => Ok(Box::new(Topp::new(config, *conditions))),
        }
    },
};

/// The range, as shares of what pairs show.
const RANGE: (f64, f64) = (0.15, 1.75);
/// Rates in the range at most.
const MOST: usize = 60;
/// So often the range is doubled.
const DOUBLED: u32 = 2;
/// Streams in a row that may tell nothing.
const ATTEMPTS: u32 = 6;
/// Packets of the burst that finds the range where pairs cannot be timed.
const BURST: usize = 40;

/// The tool.
///
/// ```
/// use lastmile::estimate::{Estimator, Step, topp::{Topp, ToppConfig}};
/// let mut topp = Topp::new(ToppConfig::default(), Default::default());
/// let Step::Send(plan) = topp.step() else { panic!("it starts with pairs") };
/// assert_eq!(plan.packets.len(), 40);
/// ```
pub struct Topp {
    config: ToppConfig,
    base: Base,
    /// Capacity by the pairs, in bit/s, and their stream.
    pairs: Option<(f64, u32)>,
    /// Set while a burst finds the range, because the pairs cannot be timed.
    asks_burst: bool,
    /// Rates yet to be offered, the next one last; from one to the next; the range was doubled so often.
    rates: Vec<f64>,
    step: f64,
    doubled: u32,
    points: Vec<Point>,
    guard: Guard,
}

impl Topp {
    /// Ready to start.
    pub fn new(config: ToppConfig, conditions: Conditions) -> Topp {
        Topp {
            guard: Guard::new(config.faithful),
            base: Base::of(
                conditions,
                config.faithful,
                "by the papers' rules, without a check that the line is of one link",
            ),
            pairs: None,
            asks_burst: false,
            rates: Vec::new(),
            step: 0.0,
            doubled: 0,
            points: Vec::new(),
            config,
        }
    }

    /// Plans the rates of a range around what the start showed, in bit/s.
    fn plan_rates(&mut self, shown: f64) {
        let bps = |rate: Option<Rate>, share: f64| {
            rate.map_or(share * shown, |rate| rate.bits_per_second() as f64).max(1.0)
        };
        let (mut min, mut max) = (bps(self.config.min_rate, RANGE.0), bps(self.config.max_rate, RANGE.1));
        // A limit that was given stands.
        match self.config.min_rate {
            None => min = min.min(max / 2.0),
            Some(_) => max = max.max(min * 1.01),
        }
        let level = |levels: usize| (max - min) / (levels - 1) as f64;
        self.step = bps(self.config.step, level(self.config.levels) / shown).max(level(MOST));
        let rates = (0..MOST).map(|k| min + k as f64 * self.step);
        self.rates = rates.take_while(|rate| *rate <= max * 1.001).map(|rate| rate.min(max)).collect();
        self.rates.reverse();
    }

    /// The plan at a rate in bit/s.
    fn plan_at(&mut self, rate: f64) -> StreamPlan {
        let ToppConfig { packet_size, train_length, pairs, pause, faithful, .. } = self.config;
        let rate = bits_per_second(rate);
        if !faithful {
            return StreamPlan::train(train_length, packet_size, rate);
        }
        let apart = (1..pairs).map(|_| pause.scaled(0.5 + self.base.draw()));
        StreamPlan::spread_pairs(apart, rate.time_for(packet_size), packet_size)
    }

    /// The rates at which a stream went and came, in bit/s.
    fn rates_of(&self, record: &StreamRecord) -> Option<[f64; 2]> {
        if !self.config.faithful {
            return Fluid::of(record).map(|fluid| [fluid.input, fluid.output]);
        }
        signal::rates(&signal::pair_gaps(record, true))
    }

    fn on_pairs(&mut self, record: &StreamRecord, verdict: StreamVerdict) {
        let set = PairSet::of(record);
        if verdict != StreamVerdict::Believed {
            return self.base.waste_of(record, verdict, ATTEMPTS);
        }
        self.base.useful();
        let sum = |first: i64, second: i64| first.saturating_add(second);
        let least =
            set.usable.iter().min_by_key(|p| sum(p.first.relative_nanos(), p.second.relative_nanos()));
        let noise = self.base.noise(record);
        let timed = |gap: Span| gap > Span::ZERO && gap >= self.base.coalescing().scaled(1.25);
        match least.filter(|p| set.timing(noise) == Timing::Timed && timed(p.received)) {
            Some(pair) => {
                let shown = pair.size.bits() as f64 / pair.received.as_secs_f64();
                self.pairs = Some((shown, record.stream));
                self.guard.see(record, 2, &mut self.base);
                self.plan_rates(shown);
            }
            None => self.asks_burst = true,
        }
    }

    /// A burst tells the range; or, where even that cannot be timed, all there is.
    fn on_burst(&mut self, record: &StreamRecord) {
        let Some(burst) = Burst::of(record, None) else {
            return self.base.waste(StreamVerdict::TooLossy, ATTEMPTS);
        };
        self.base.useful();
        self.asks_burst = false;
        match self.base.rate_of(&burst, record) {
            Ok(rate) => self.plan_rates(rate),
            Err(bound) => self.base.more_than(ENTRY.estimates, bound, TOO_FAST, &[record.stream]),
        }
    }

    fn on_rate(&mut self, record: &StreamRecord, verdict: StreamVerdict) {
        self.rates.pop();
        let every = if self.config.faithful { 2 } else { self.config.train_length };
        self.guard.see(record, every, &mut self.base);
        match self.rates_of(record).filter(|_| verdict == StreamVerdict::Believed) {
            Some([offered, measured]) => {
                self.base.useful();
                self.points.push(Point { offered, ratio: offered / measured, stream: record.stream });
            }
            None => self.base.waste_of(record, verdict, ATTEMPTS),
        }
        if self.rates.is_empty() && !self.base.is_done() {
            self.end();
        }
    }

    fn end(&mut self) {
        self.points.sort_by(|a, b| a.offered.total_cmp(&b.offered));
        let found = self.found(&[]);
        if !found.is_empty() {
            return self.base.found(found);
        }
        let ratios: Vec<f64> = self.points.iter().rev().take(FEWEST).map(|p| p.ratio).collect();
        let most = self.points.last().map_or(0.0, |p| p.offered);
        let grows = stats::median(&ratios).is_some_and(|ratio| ratio >= CLEAR);
        if grows || self.points.len() < FEWEST {
            return self.base.refuse(Refusal::NotConverged { streams: self.base.sent });
        }
        if self.config.max_rate.is_none() && self.doubled < DOUBLED {
            self.doubled += 1;
            let (from, step) = (most, 2.0 * self.step);
            self.step = step;
            self.rates = (1..MOST / 2)
                .map(|k| from + k as f64 * step)
                .take_while(|rate| *rate < 2.05 * from)
                .collect();
            return self.rates.reverse();
        }
        let passed: Vec<f64> = self.points.iter().map(|p| p.offered / p.ratio.max(1.0)).collect();
        let bound = bits_per_second(passed.iter().fold(0.0, |a: f64, b| a.max(*b)));
        let streams: Vec<u32> = self.points.iter().map(|p| p.stream).collect();
        self.base.more_than(
            ENTRY.estimates,
            bound,
            "no rate that was offered made packets wait (--set max_rate)",
            &streams,
        );
    }
}

impl Estimator for Topp {
    fn step(&mut self) -> Step {
        if let Some(step) = self.base.step() {
            return step;
        }
        let ToppConfig { packet_size, pairs, pause, .. } = self.config;
        let plan = match self.rates.last() {
            Some(&rate) => self.plan_at(rate),
            None if self.asks_burst => StreamPlan::burst(BURST, packet_size),
            None => self.base.pairs(pairs, packet_size, pause),
        };
        self.base.send(plan)
    }

    fn on_stream(&mut self, record: &StreamRecord) {
        if self.base.is_done() {
            return;
        }
        let planned = match (self.rates.is_empty(), self.config.faithful) {
            (true, _) if self.asks_burst => BURST,
            (true, _) | (false, true) => 2 * self.config.pairs,
            (false, false) => self.config.train_length,
        };
        let verdict = self.base.judge(record, planned);
        self.base.warn_round_trip();
        if !self.rates.is_empty() {
            self.on_rate(record, verdict);
        } else if self.asks_burst {
            self.on_burst(record);
        } else {
            self.on_pairs(record, verdict);
        }
        let pause = self.config.pause.scaled(0.5 + self.base.draw());
        self.base.drain(record, pause);
    }

    fn shrink(&mut self, size: Bytes) -> bool {
        let has_begun = self.pairs.is_some() || !self.points.is_empty();
        self.base.shrink(&mut self.config.packet_size, size, has_begun)
    }

    fn so_far(&self) -> Vec<Estimate> {
        if self.base.is_done() {
            return Vec::new();
        }
        let text =
            format!("from {} rates, and {} were still to be offered", self.points.len(), self.rates.len());
        self.found(&[Warning { code: WarningCode::Partial, text }])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::{Outcome, Value};
    use crate::observe::testing::{pairs, record};
    use crate::report::{Direction, Pattern};

    /// A path of 10 Mbit/s of which a constant stream takes a share: a train's packet and what came of the others meanwhile leave one after the
    /// other, 1488 B in 1190.4 us.
    fn train(plan: &StreamPlan, others: f64, stream: u32) -> StreamRecord {
        let planned: Vec<u64> = plan.packets.iter().map(|p| p.offset.as_nanos() as u64 / 1_000).collect();
        let gap = planned[1] as f64;
        let came = (1_190.4 + others * gap).max(gap);
        let came: Vec<Option<u64>> =
            (0..planned.len()).map(|k| Some(900 + (k as f64 * came) as u64)).collect();
        StreamRecord { stream, ..record(plan.pattern, &planned, &planned, &came) }
    }

    fn drive(mut topp: Topp, stream: impl Fn(&StreamPlan, u32) -> StreamRecord) -> (Outcome, u32) {
        for k in 0..200 {
            match topp.step() {
                Step::Send(plan) => topp.on_stream(&stream(&plan, k)),
                Step::Pause(_) => {}
                Step::Done(outcome) => return (outcome, topp.base.sent),
            }
        }
        panic!("no end")
    }

    fn numbers(others: f64) -> Vec<(Quantity, f64)> {
        let (outcome, sent) =
            drive(Topp::new(ToppConfig::default(), Conditions::exact(1)), |plan, k| match plan.pattern {
                Pattern::Pairs => pairs(&[(0, 1_190); 20]),
                _ => train(plan, others, k),
            });
        let Outcome::Found(found) = outcome else { panic!("{outcome:?}") };
        // The pairs and 21 rates.
        assert_eq!(sent, 22);
        assert!(found.iter().all(|e| e.warnings.is_empty()), "{found:?}");
        found.iter().map(|e| (e.quantity, e.value.rate().unwrap().bits_per_second() as f64 / 1e6)).collect()
    }

    /// Beside 4 Mbit/s trains at o come at m = 10 o / (o + 4), so that o / m meets 1 at 6; alone the line goes through the origin.
    #[test]
    fn trains_beside_a_constant_rate_tell_both() {
        for (others, left) in [(0.4, 6.0), (0.1, 9.0), (0.0, 10.0)] {
            let found = numbers(others);
            assert_eq!([found[0].0, found[1].0], [Quantity::Capacity, Quantity::AvailableBandwidth]);
            assert!(
                (found[0].1 - 10.0).abs() < 0.02 && (found[1].1 - left).abs() < 0.05,
                "{others}: {found:?}"
            );
        }
    }

    /// A fair queue leaves 6 of 10 to one flow, however fast it comes: o / m = o / 6.
    #[test]
    fn a_fair_queue_is_told_by_pairs() {
        let (outcome, _) = drive(Topp::new(ToppConfig::default(), Conditions::exact(1)), |plan, k| {
            let planned: Vec<u64> = plan.packets.iter().map(|p| p.offset.as_nanos() as u64 / 1_000).collect();
            let came: Vec<Option<u64>> =
                planned.iter().enumerate().map(|(i, at)| Some(900 + (*at).max(i as u64 * 1_984))).collect();
            match plan.pattern {
                Pattern::Pairs => pairs(&[(0, 1_190); 20]),
                _ => StreamRecord { stream: k, ..record(plan.pattern, &planned, &planned, &came) },
            }
        });
        let Outcome::Found(found) = outcome else { panic!("{outcome:?}") };
        let rate = |k: usize| found[k].value.rate().unwrap().bits_per_second() as f64 / 1e6;
        assert!((rate(0) - 10.0).abs() < 0.01 && (rate(1) - 6.0).abs() < 0.05, "{found:?}");
        assert!(found[1].warnings.iter().any(|w| w.code == WarningCode::FairQueue));
    }

    /// No rate makes packets wait: the range is doubled twice, and all there is is a bound.
    #[test]
    fn without_congestion_there_is_a_bound() {
        let (outcome, _) = drive(Topp::new(ToppConfig::default(), Conditions::exact(1)), |plan, k| {
            let planned: Vec<u64> = plan.packets.iter().map(|p| p.offset.as_nanos() as u64 / 1_000).collect();
            let came: Vec<Option<u64>> = planned.iter().map(|at| Some(900 + at)).collect();
            match plan.pattern {
                Pattern::Pairs => pairs(&[(0, 1_190); 20]),
                _ => StreamRecord { stream: k, ..record(plan.pattern, &planned, &planned, &came) },
            }
        });
        let Outcome::Found(found) = outcome else { panic!("{outcome:?}") };
        // 1.75 x 10, doubled twice.
        for estimate in &found {
            let Value::MoreThan(bound) = estimate.value else { panic!("{estimate:?}") };
            assert!((60_000_000..=75_000_000).contains(&bound.bits_per_second()), "{bound}");
        }
    }

    /// Pairs show 10 Mbit/s: a limit far below that is obeyed, and is the bound.
    #[test]
    fn a_highest_rate_below_what_pairs_show_is_obeyed() {
        for limit in [100_000, 1_000_000, 1_600_000] {
            let config = ToppConfig { max_rate: Some(Rate::ip(limit)), ..ToppConfig::default() };
            let (outcome, _) = drive(Topp::new(config, Conditions::exact(1)), |plan, k| match plan.pattern {
                Pattern::Pairs => pairs(&[(0, 1_190); 20]),
                _ => {
                    let rate = plan.rate().unwrap().bits_per_second();
                    assert!(rate * 1_000 <= limit * 1_001 && rate * 21 >= limit * 10, "{rate} of {limit}");
                    train(plan, 0.0, k)
                }
            });
            let Outcome::Found(found) = outcome else { panic!("{outcome:?}") };
            let Value::MoreThan(bound) = found[0].value else { panic!("{found:?}") };
            assert!(bound.bits_per_second().abs_diff(limit) * 100 <= limit, "{bound}");
        }
    }

    #[test]
    fn losses_and_disorder_are_refused_by_their_names() {
        let lossy = |came: fn(usize) -> Option<u64>| {
            drive(Topp::new(ToppConfig::default(), Conditions::exact(1)), move |plan, k| {
                let planned: Vec<u64> =
                    plan.packets.iter().map(|p| p.offset.as_nanos() as u64 / 1_000).collect();
                let came: Vec<Option<u64>> =
                    planned.iter().enumerate().map(|(i, at)| came(i).map(|add| at + add)).collect();
                StreamRecord {
                    stream: k,
                    direction: Direction::RoundTrip,
                    ..record(plan.pattern, &planned, &planned, &came)
                }
            })
        };
        let (outcome, _) = lossy(|_| None);
        assert!(matches!(outcome, Outcome::Refused(Refusal::TooLossy { .. })), "{outcome:?}");
        let (outcome, _) = lossy(|i| Some(60_000 - 3_000 * (i as u64 % 20)));
        assert!(matches!(outcome, Outcome::Refused(Refusal::Reordered { .. })), "{outcome:?}");
    }

    /// The papers' pairs: at each rate the mean gap received by that sent.
    #[test]
    fn faithful_sends_pairs_at_each_rate() {
        let config = ToppConfig { faithful: true, ..ToppConfig::default() };
        let (outcome, _) = drive(Topp::new(config, Conditions::exact(1)), |plan, k| {
            let planned: Vec<u64> = plan.packets.iter().map(|p| p.offset.as_nanos() as u64 / 1_000).collect();
            let came = planned.chunks(2).flat_map(|two| {
                let gap = (two[1] - two[0]) as f64;
                [Some(two[0] + 900), Some(two[0] + 900 + (1_190.4 + 0.4 * gap).max(gap) as u64)]
            });
            match plan.pattern {
                Pattern::Pairs => pairs(&[(0, 1_190); 20]),
                pattern => StreamRecord {
                    stream: k,
                    ..record(pattern, &planned, &planned, &came.collect::<Vec<_>>())
                },
            }
        });
        let Outcome::Found(found) = outcome else { panic!("{outcome:?}") };
        let rate = |k: usize| found[k].value.rate().unwrap().bits_per_second() as f64 / 1e6;
        assert!((rate(0) - 10.0).abs() < 0.1 && (rate(1) - 6.0).abs() < 0.1, "{found:?}");
        assert!(found[0].warnings.iter().all(|w| w.code == WarningCode::Faithful));
    }

    #[test]
    fn rates_are_the_users() {
        let rate = |mbit: u64| Some(Rate::ip(mbit * 1_000_000));
        let config =
            ToppConfig { min_rate: rate(2), max_rate: rate(8), step: rate(1), ..ToppConfig::default() };
        let mut topp = Topp::new(config, Conditions::exact(1));
        topp.plan_rates(10e6);
        assert_eq!(topp.rates, [8e6, 7e6, 6e6, 5e6, 4e6, 3e6, 2e6]);
        topp.config.step = Some(Rate::ip(1_000));
        topp.plan_rates(10e6);
        assert_eq!(topp.rates.len(), MOST);
    }
}
