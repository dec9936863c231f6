//! CapProbe: capacity from the packet pair that met no other traffic.
//!
//! Kapoor, Chen, Lao, Gerla, Sanadidi, "CapProbe: a simple and accurate capacity estimation technique", SIGCOMM 2004;
//! one way as in TFRC Probe, section 2. A pair whose packets were queued behind other traffic shows the wrong
//! dispersion, but also a larger sum of delays. So the pair with the smallest sum is kept, and it is believed when
//! that sum is what the smallest delays of first and of second packets, seen apart, add up to.
//!
//! **One way.** Clocks are not synchronised, so delays have an unknown offset. In
//! min(d1 + d2) - (min d1 + min d2) it cancels, but as a *share* of min(d1 + d2), which is how the test is coded in
//! its descendants, it means nothing. The difference bounds the error of the dispersion; so it is compared
//! with the dispersion. Clock skew is removed first ([`skew`](crate::observe::skew)).
//!
//! **There and back.** As coded: the three minima unchanged over 40 samples and the difference below 1 % of
//! min(d1 + d2). One per cent of a long round trip is more than a dispersion on a fast link, so that by default
//! both bounds must hold. A reply of plain STAMP has its request's size, so the result is the narrower direction.
//!
//! **Sizes.** Two packet sizes must agree within 5 %. The paper starts with 700 and 900 B; on fast paths dispersion
//! shrinks with the size and stamps do not, so that these start at 1488 B and 0.9 of it: 100 Mbit/s disperse 1488 B by
//! 119 us and 700 B by 56. Sizes further apart would disagree on 802.11 without any error, because each packet
//! pays the same overhead there (3.6 % between these at 11 Mbit/s).
//!
//! **Fast paths.** Dispersion that a receiver's interrupt coalescing may have made up is believed only if a burst of
//! 40 packets bears it out; if pairs cannot be timed, or do not converge, the burst's lower bound is the result
//! ([`burst`](crate::observe::burst)).
//!
//! **Wi-Fi that aggregates.** If pairs do not agree with one another, a burst tells whether the path aggregates
//! (`aggregation`). If they agree, a burst tells whether they are those of a wire behind such a cell (`clumps`).
//!
//! **Bursts.** Pairs show the rate of bursts of two packets. They show nothing of the sustained rate, and bursts of
//! 40 packets show only that a token bucket is smaller (`shaper`).

use crate::estimate::aggregation::{self, AggregationCheck};
use crate::estimate::batched::{BURST, Batched, TRAIN, Taken};
use crate::estimate::burst_check::{BurstCheck, Finding, Pairs};
use crate::estimate::capprobe_minima::Minima;
use crate::estimate::cell::{self, Bursts, Cell};
use crate::estimate::clumps::{self, ClumpCheck};
use crate::estimate::contention::{CONTENDED, Met, met};
use crate::estimate::shaper;
use crate::estimate::wbest::IN_BATCHES;
use crate::estimate::wbest_capacity::{Capacity, warn_too_wide};
use crate::estimate::{
    Base, Conditions, Estimate, Estimator, Method, Probes, Quantity, Refusal, Search, Signal, Step,
    StreamPlan, Value, Warning, WarningCode, bits_per_second,
};
use crate::observe::StreamVerdict;
use crate::observe::pairs::{NOISE_SHARE, Pair, PairSet, Timing};
use crate::observe::stats;
use crate::options::{OptionError, Options};
use crate::report::StreamRecord;
use crate::time::Span;
use crate::units::{Bytes, Rate};

crate::options! {
    /// CapProbe's parameters.
    pub struct CapProbeConfig {
        /// The larger of the two packet sizes at the IP layer [default: 1488 B, or 900 B with faithful]
        packet_size: Option<Bytes> [Bytes(100)..=Bytes(65_000)] = None, "CapProbe: 900 B";
        /// The smaller of the two as a share of the larger [default: 0.9, or 7/9 with faithful]
        smaller: Option<f64> [0.5..=0.99] = None, "CapProbe: 700 of 900 B";
        /// Pairs in a stream; between streams the queues may drain and convergence is looked at
        stream_pairs: usize [1..=500] = 20, "our own";
        /// Between pairs at least; widened to four times their service time once that is known
        pair_gap: Span [Span::ZERO..=Span::from_secs(1)] = Span::from_millis(10), "our own";
        /// Between streams
        pause: Span [Span::ZERO..=Span::from_secs(60)] = Span::from_millis(20), "our own";
        /// Samples of a size that are needed at least, one way
        min_samples: usize [1..=1_000] = 20, "our own";
        /// Samples of a size after which a run has failed
        max_samples: usize [1..=10_000] = 100, "CapProbe: 100";
        /// Samples over which the minima must stand still, there and back
        unchanged: usize [1..=10_000] = 40, "PBProbe: 40";
        /// By how much the minimum sum may exceed the sum of minima, as a share of the dispersion
        tolerance: f64 [0.0..=1.0] = 0.02, "our own; PBProbe: 0.01 of the delay";
        /// Runs, each with sizes a fifth smaller than the last
        max_runs: u32 [1..=10] = 3, "CapProbe: sizes change by 20 %";
        /// Do as the papers: sizes 900 and 700 B, the one best sample, no look at the schedule
        faithful: bool = false, "CapProbe, PBProbe";
    }
}

/// Its place in the registry.
pub const ENTRY: Method = Method {
    name: "capprobe",
    about: "capacity from the packet pair with the least delay: the one that met no other traffic",
    paper: "Kapoor, Chen, Lao, Gerla, Sanadidi, CapProbe, SIGCOMM 2004",
    estimates: &[Quantity::Capacity, Quantity::ShortestExchange, Quantity::SustainedRate],
    pattern: &[Probes::Pairs],
    signal: Signal::Delay,
    search: &[Search::Algorithmic],
    weak: "on queues that never empty, where no pair meets an empty path, and behind token buckets, which pairs do not show",
    round_trip: true,
    in_all: true,
    resolution: "1 us: 600 Mbit/s with the 2 us that kernels add; 250 us: 4.7 Mbit/s",
    options: CapProbeConfig::OPTIONS,
    brief: &[("max_samples", "60"), ("max_runs", "1")],
    make: |given, conditions| {
        let config = CapProbeConfig::read(given)?;
        if config.min_samples > config.max_samples {
            let reason = format!("must be at most `max_samples`, which is {}", config.max_samples);
            return Err(OptionError::new("min_samples", reason));
        }
        Ok(Box::new(CapProbe::new(config, *conditions)))
    },
};

impl CapProbeConfig {
    /// The two sizes at the IP layer, the larger first; paper: 900 and 700 B.
    pub fn sizes(&self) -> [Bytes; 2] {
        let (size, share) = if self.faithful { (Bytes(900), 7.0 / 9.0) } else { (Bytes(1488), 0.9) };
        let size = self.packet_size.unwrap_or(size);
        // An even number of bytes; a STAMP packet must fit.
        let smaller = libm::round(size.0 as f64 * self.smaller.unwrap_or(share) / 2.0) as u64 * 2;
        [size, Bytes(smaller.max(80))]
    }
}

/// Sizes must agree within this share (CapProbe).
const AGREE: f64 = 0.05;
/// A run's sizes against those of the one before (CapProbe: 20 %).
const SHRINK: (u64, u64) = (4, 5);
/// Smaller packets are not sent: a STAMP packet must fit, and dispersion be seen.
const SMALLEST: u64 = 200;
/// Streams after which there is no more hope, many of whose pairs were unusable; three full runs take 30.
const MAX_STREAMS: u32 = 40;
/// Samples that must tell of the same dispersion; one more where that is close to the stamps' noise.
const MIN_TIED: usize = 2;
/// Bursts over a path that delivers in batches.
const BATCHED_BURSTS: usize = 2;
/// Streams in a row that may tell nothing.
const ATTEMPTS: u32 = 4;

/// The tool.
///
/// ```
/// use lastmile::estimate::{Estimator, Step, capprobe::{CapProbe, CapProbeConfig}};
/// let mut capprobe = CapProbe::new(CapProbeConfig::default(), Default::default());
/// let Step::Send(plan) = capprobe.step() else { panic!("it starts with pairs") };
/// assert_eq!((plan.packets.len(), plan.packets[0].size.0), (40, 1488));
/// ```
pub struct CapProbe {
    config: CapProbeConfig,
    base: Base,
    sizes: [Bytes; 2],
    gap: Span,
    run: u32,
    samples: PairSet,
    /// The larger size's rate, once it has converged.
    larger: Option<f64>,
    /// Rate to which both sizes converged, in bit/s.
    agreed: Option<f64>,
    /// The capacity of a cell in which packets go one by one: pairs that met nothing show only its shortest exchange.
    cell: Option<Capacity>,
    /// Bursts sent in a cell with retries, and true if another one is next.
    in_cell: (Bursts, bool),
    /// Lower bound by bursts on a path whose pairs did not converge, their bytes, and their streams.
    shown: Option<(Rate, Bytes, Vec<u32>)>,
    /// Set while bursts are sent about what the pairs said.
    bursts: Option<BurstCheck>,
    /// A burst showed that scattered pairs are right.
    one_by_one: bool,
    /// Set while bursts are sent about scattered pairs.
    aggregation: Option<AggregationCheck>,
    /// Set while bursts are sent about pairs that agree, and what they showed: a rate, with so many bytes.
    clumps: Option<ClumpCheck>,
    claim: (f64, Bytes),
    /// Set where the path delivers in batches.
    batched: Option<Box<Batched>>,
    streams: Vec<u32>,
}

/// Makes the sustained rate's estimate, with what was said.
type Lasts<'a> = dyn Fn(Vec<Warning>) -> Estimate + 'a;

impl CapProbe {
    /// Ready to start.
    pub fn new(config: CapProbeConfig, conditions: Conditions) -> CapProbe {
        CapProbe {
            sizes: config.sizes(),
            gap: config.pair_gap,
            run: 1,
            samples: PairSet::default(),
            larger: None,
            agreed: None,
            cell: None,
            in_cell: (Bursts::default(), false),
            shown: None,
            bursts: None,
            one_by_one: false,
            aggregation: None,
            clumps: None,
            claim: (0.0, Bytes::ZERO),
            batched: None,
            streams: Vec::new(),
            config,
            base: Base::new(conditions),
        }
    }

    /// The size whose turn it is.
    fn size(&self) -> Bytes {
        self.sizes[usize::from(self.larger.is_some())]
    }

    /// Ends with what pairs said, and with what `lasts` where bursts met a shaper or a policer.
    fn done(&mut self, value: Value, burst: Bytes, lasts: Option<&Lasts<'_>>, why: Option<String>) {
        why.into_iter().for_each(|why| self.base.warn(WarningCode::LowerBound, why));
        if self.base.round_trip() {
            self.base.warn(
                WarningCode::RoundTrip,
                "measured there and back: replies have their requests' size, so that the narrower direction counts",
            );
        }
        if self.sizes != self.config.sizes() {
            self.base.warn(WarningCode::PacketSize, format!("measured with packets of {}", self.sizes[0]));
        }
        // Of a minimum no interval with a tested coverage is known.
        let least = Estimate {
            burst: Some(burst),
            packet_size: Some(self.sizes[0]),
            ..self.base.estimate(Quantity::Capacity, value, &self.streams)
        };
        let said = least.warnings.clone();
        let mut found = match &self.cell {
            None => vec![least],
            Some(cell) => {
                let capacity = cell.estimate([burst, self.sizes[0]], &self.streams, said.clone());
                vec![capacity, Estimate { quantity: Quantity::ShortestExchange, ..least }]
            }
        };
        found.push(match lasts {
            Some(lasts) => lasts(said),
            None => shaper::unknown(None, &self.streams, said),
        });
        warn_too_wide(&mut found, 0.0);
        self.base.found(found);
    }

    /// Sends bursts about what pairs, the last of which are in `record`, said or could not say.
    fn burst(&mut self, pairs: Pairs, record: &StreamRecord) {
        let noise = self.base.noise(record);
        let check = BurstCheck::new(pairs, self.sizes[0], self.base.coalescing(), record, noise);
        self.bursts = Some(check);
    }

    fn on_burst(&mut self, mut check: BurstCheck, record: &StreamRecord) {
        let finding = check.on_stream(record, self.base.noise(record));
        match finding {
            None => self.bursts = Some(check),
            Some(Finding::BorneOut) => match self.agreed {
                Some(rate) => self.claims(rate, check.burst),
                None => {
                    self.shown = Some((check.bound, check.burst, check.streams));
                    self.next_run();
                }
            },
            Some(Finding::MoreThan(bound, why)) => {
                self.streams = core::mem::take(&mut check.streams);
                self.done(Value::MoreThan(bound), check.burst, None, Some(why));
            }
            Some(Finding::Shaped(shaper)) => {
                self.streams = core::mem::take(&mut check.streams);
                let lasts = |said| shaper.estimate(said);
                self.done(Value::MoreThan(check.bound), check.burst, Some(&lasts), Some(shaper.why()));
            }
            Some(Finding::Policed(policer)) => {
                self.streams = core::mem::take(&mut check.streams);
                self.base.warn(WarningCode::Policer, policer.text());
                let why = "the bound is of beginnings of bursts".to_owned();
                let lasts = |said| policer.estimate(said);
                self.done(Value::MoreThan(check.bound), check.burst, Some(&lasts), Some(why));
            }
            Some(Finding::InBatches(batched)) => self.in_batches(batched),
            Some(Finding::Refused(refusal)) => self.base.refuse(refusal),
        }
    }

    /// Pairs show this rate, and a burst longer than an aggregate says whether it is that of a wire behind one.
    fn claims(&mut self, rate: f64, burst: Bytes) {
        self.claim = (rate, burst);
        let asks = !self.config.faithful && self.cell.is_none() && !self.base.round_trip();
        let check = || ClumpCheck::of(rate, self.sizes[0], self.base.coalescing());
        self.clumps = asks.then(check).flatten();
        if self.clumps.is_none() {
            self.done(Value::Is(bits_per_second(rate)), burst, None, None);
        }
    }

    fn on_clumps(&mut self, mut check: ClumpCheck, record: &StreamRecord) {
        let (rate, burst) = self.claim;
        match check.on_stream(record, self.base.noise(record)) {
            None => self.clumps = Some(check),
            Some(clumps::Finding::Steady) => self.done(Value::Is(bits_per_second(rate)), burst, None, None),
            Some(clumps::Finding::Clumped(refusal)) => self.base.refuse(refusal),
        }
    }

    fn on_aggregation(&mut self, mut check: AggregationCheck, record: &StreamRecord) {
        match check.on_stream(record, self.base.noise(record)) {
            None => self.aggregation = Some(check),
            Some(aggregation::Finding::OneByOne) => self.one_by_one = true,
            Some(aggregation::Finding::InBatches(batched)) => self.in_batches(batched),
        }
    }

    /// Goes on with bursts over a path that delivers in batches.
    fn in_batches(&mut self, mut batched: Box<Batched>) {
        batched.want(BATCHED_BURSTS, 0, TRAIN);
        self.batched = Some(batched);
    }

    fn on_batched(&mut self, mut batched: Box<Batched>, record: &StreamRecord) {
        let planned = batched.plan().map_or(0, |plan| plan.packets.len());
        let verdict = self.base.judge(record, planned);
        match batched.on_stream(record, verdict, self.base.noise(record), None) {
            Taken::No(verdict) => self.base.waste(verdict, ATTEMPTS),
            _ => self.base.useful(),
        }
        let done = batched.plan().is_none() && !self.base.is_done();
        if let (true, Some(refusal)) = (done, batched.refusal()) {
            self.base.refuse(refusal);
        } else if done {
            self.base.warn(WarningCode::BatchedStamps, IN_BATCHES);
            let value = Value::Is(bits_per_second(batched.capacity().rate));
            self.streams.clone_from(&batched.burst_streams);
            let burst = self.sizes[0] * BURST as u64;
            let capacity = self.base.estimate(Quantity::Capacity, value, &self.streams);
            let sustained = shaper::unknown(None, &self.streams, capacity.warnings.clone());
            self.base.found(vec![Estimate { burst: Some(burst), ..capacity }, sustained]);
        }
        self.batched = Some(batched);
    }

    /// Check of pairs that do not agree, unless a burst is sent about them anyway.
    fn scattered(&self, noise: Span) -> Option<AggregationCheck> {
        let pairs = &self.samples.usable;
        if self.config.faithful || self.one_by_one || pairs.len() < self.config.min_samples {
            return None;
        }
        let check = || AggregationCheck::of(pairs, self.sizes[0], self.base.coalescing(), noise);
        (!self.doubtful()).then(check).flatten()
    }

    /// True if a receiver that coalesces interrupts may have made up the pairs' median gap.
    fn doubtful(&self) -> bool {
        let gaps: Vec<f64> = self.samples.usable.iter().map(|p| p.received.as_nanos() as f64).collect();
        let rate = |gap| self.size().bits() as f64 * 1e9 / gap;
        stats::median(&gaps)
            .is_none_or(|gap| BurstCheck::needed(rate(gap), self.size(), self.base.coalescing()))
    }

    /// True if the minima have converged.
    fn converged(&self, minima: &Minima, samples: usize, noise: Span) -> bool {
        // A pair that met nothing is met again; a single one may be the stamps' noise.
        let near_noise = minima.dispersion < 50.0 * noise.as_nanos() as f64;
        if !self.config.faithful && minima.tied < MIN_TIED + usize::from(near_noise) {
            return false;
        }
        let of_dispersion = (self.config.tolerance * minima.dispersion).max(noise.as_nanos() as f64);
        if !self.base.round_trip() {
            return samples >= self.config.min_samples && minima.excess() < of_dispersion;
        }
        let sum = minima.sum as f64 + 2.0 * minima.base as f64;
        minima.unchanged >= self.config.unchanged
            && minima.excess() < 0.01 * sum // [ALGORITHMS 1.7, PBProbe]
            && (self.config.faithful || minima.excess() < of_dispersion)
    }

    /// This run failed: smaller packets, but first a look whether the receiver's coalescing is to blame, against which
    /// they are of no help.
    fn fail_run(&mut self, samples: &[Pair], record: &StreamRecord) {
        if self.cell.is_some() {
            return self.done(Value::Unknown, self.sizes[0] * 2, None, None);
        }
        let gaps: Vec<f64> = samples.iter().map(|p| p.received.as_nanos() as f64).collect();
        let rate = self.size().bits() as f64 * 1e9 / stats::median(&gaps).unwrap_or(f64::INFINITY);
        // A receiver that takes interrupts by the clock shows a gap as one period or as the next.
        let doubtful = BurstCheck::needed(2.0 * rate, self.size(), self.base.coalescing());
        if !self.config.faithful && self.run == 1 && doubtful {
            return self.burst(Pairs::Claim(rate), record);
        }
        self.next_run();
    }

    /// Smaller packets, or the end.
    fn next_run(&mut self) {
        let (times, over) = SHRINK;
        let smaller = self.sizes.map(|size| Bytes(size.0 * times / over));
        self.run += 1;
        self.samples = PairSet::default();
        self.larger = None;
        if self.run > self.config.max_runs || smaller[1].0 < SMALLEST {
            return self.give_up();
        }
        self.sizes = smaller;
    }

    /// No convergence: a bound where bursts showed one, or nothing.
    fn give_up(&mut self) {
        let Some((bound, burst, streams)) = self.shown.take() else {
            return self.base.refuse(Refusal::NotConverged { streams: self.base.sent });
        };
        self.streams = streams;
        let why = format!(
            "packet pairs did not converge, because delays or stamps change too much; the bound is of bursts of {burst}"
        );
        self.done(Value::MoreThan(bound), burst, None, Some(why));
    }

    /// Looks whether pairs of the larger size crossed a cell; true where more packets have to tell.
    fn look_for_cell(&mut self, noise: Span) -> bool {
        let pairs = &self.samples.usable;
        if self.config.faithful || self.larger.is_some() || self.cell.is_some() || self.doubtful() {
            return false;
        }
        let met = met(pairs);
        let cell = Cell::of(pairs, &self.in_cell.0, noise);
        let Some(cell) = cell.as_ref().filter(|cell| cell.tells(met)) else {
            let rate = match met {
                Met::Many(rate) => Some(Capacity { rate, ..Capacity::default() }),
                _ => cell.and_then(|cell| cell.contended(self.size())),
            };
            if let Some(capacity) = rate {
                self.base.warn(WarningCode::Contended, CONTENDED);
                self.cell = Some(capacity);
            }
            return false;
        };
        // Fewer pairs were not asked whether stations aggregate.
        self.in_cell.1 = pairs.len() >= self.config.min_samples && cell.asks(&self.in_cell.0);
        if pairs.len() < 2 * self.config.min_samples || self.in_cell.1 {
            return true;
        }
        self.cell = Some(cell.capacity(self.size()));
        false
    }

    /// Looks whether this size's samples have converged, now that those of `record` are among them.
    fn look(&mut self, record: &StreamRecord) {
        let noise = self.base.noise(record);
        if self.look_for_cell(noise) {
            return;
        }
        let samples: Vec<Pair> = if self.config.faithful {
            self.samples.arrived().filter(|p| p.received > Span::ZERO).copied().collect()
        } else {
            self.samples.usable.clone()
        };
        let minima = Minima::of(&samples, noise, self.config.tolerance, self.config.faithful);
        let Some(minima) = minima.filter(|m| self.converged(m, samples.len(), noise)) else {
            if samples.len() >= self.config.max_samples {
                self.fail_run(&samples, record);
            }
            return;
        };
        if !self.config.faithful && minima.dispersion < (noise * NOISE_SHARE).as_nanos() as f64 {
            return self.burst(Pairs::TooFast, record);
        }
        let rate = self.size().bits() as f64 * 1e9 / minima.dispersion;
        self.samples = PairSet::default();
        match self.larger {
            None => self.larger = Some(rate),
            Some(larger) if (rate / larger - 1.0).abs() <= AGREE => {
                let doubtful = BurstCheck::needed(larger, self.sizes[0], self.base.coalescing());
                if !self.config.faithful && doubtful {
                    self.agreed = Some(larger);
                    return self.burst(Pairs::Claim(larger), record);
                }
                self.claims(larger, self.sizes[0] * 2);
            }
            Some(_) => self.fail_run(&samples, record),
        }
    }
}

impl Estimator for CapProbe {
    fn step(&mut self) -> Step {
        if let Some(step) = self.base.step() {
            return step;
        }
        if let Some(plan) = self.batched.as_ref().and_then(|batched| batched.plan()) {
            return self.base.send(plan);
        }
        if self.in_cell.1 {
            return self.base.send(Bursts::plan(self.sizes[0]));
        }
        if let Some(check) = &self.clumps {
            return self.base.send(check.plan());
        }
        let aggregation = self.aggregation.as_ref().map(AggregationCheck::plan);
        if let Some(plan) = aggregation.or_else(|| Some(self.bursts.as_ref()?.plan())) {
            return self.base.send(plan);
        }
        let (n, size, gap) = (self.config.stream_pairs, self.size(), self.gap);
        let plan = match self.config.faithful {
            true => StreamPlan::pairs(n, size, gap),
            false => self.base.pairs(n, size, gap),
        };
        self.base.send(plan)
    }

    fn shrink(&mut self, size: Bytes) -> bool {
        let shrinks = self.base.shrink(&mut self.sizes[0], size, !self.streams.is_empty());
        if shrinks {
            self.config.packet_size = Some(size);
            self.sizes = self.config.sizes();
        }
        shrinks
    }

    fn on_stream(&mut self, record: &StreamRecord) {
        if self.base.is_done() {
            return;
        }
        self.base.pause(self.config.pause);
        if let Some(batched) = self.batched.take() {
            return self.on_batched(batched, record);
        }
        if let Some(check) = self.clumps.take() {
            self.base.count(record);
            return self.on_clumps(check, record);
        }
        if let Some(check) = self.aggregation.take() {
            self.base.count(record);
            return self.on_aggregation(check, record);
        }
        if core::mem::take(&mut self.in_cell.1) {
            self.base.count(record);
            self.in_cell.0.take(record);
            return self.look(record);
        }
        if let Some(check) = self.bursts.take() {
            self.base.count(record);
            return self.on_burst(check, record);
        }
        let planned = 2 * self.config.stream_pairs;
        let verdict = self.base.judge(record, planned);
        let useless = [StreamVerdict::NoReport, StreamVerdict::ClockStepped, StreamVerdict::Reordered];
        if useless.contains(&verdict) {
            return self.base.waste(verdict, ATTEMPTS);
        }
        let set = PairSet::of(record);
        let noise = self.base.noise(record);
        if !self.config.faithful && set.arrived().count() * 3 >= self.config.stream_pairs {
            match set.timing(noise) {
                Timing::Timed => {}
                Timing::TooFast => return self.burst(Pairs::TooFast, record),
                Timing::Batched => return self.burst(Pairs::Batched, record),
            }
        }
        let usable = if self.config.faithful { set.arrived().count() } else { set.usable.len() };
        if usable == 0 {
            let verdict = if record.lost() * 2 > planned { StreamVerdict::TooLossy } else { verdict };
            return self.base.waste(verdict, ATTEMPTS);
        }
        self.base.useful();
        self.streams.push(record.stream);
        let gaps: Vec<f64> = set.arrived().map(|p| p.received.as_nanos() as f64).collect();
        let service = Span::from_nanos(stats::median(&gaps).unwrap_or(0.0) as i64);
        // A pair is two packets: at most a quarter of the path.
        self.gap =
            (service * 8).max(self.config.pair_gap).min(Span::from_millis(200).max(self.config.pair_gap));
        self.samples.extend(set);
        if !self.config.faithful && self.larger.is_none() && cell::settling(&self.samples.usable) {
            self.samples = PairSet::default();
        }
        self.aggregation = self.scattered(noise);
        if self.aggregation.is_some() {
            return;
        }
        self.look(record);
        if !self.base.is_done() && self.bursts.is_none() && self.base.sent >= MAX_STREAMS {
            self.give_up();
        }
    }
}
