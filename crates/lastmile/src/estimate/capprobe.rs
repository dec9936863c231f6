//! CapProbe: capacity from the packet pair that met no other traffic.
//!
//! Kapoor, Chen, Lao, Gerla, Sanadidi, "CapProbe: a simple and accurate capacity estimation technique", SIGCOMM 2004;
//! one way as in seed 001, section 2. A pair whose packets were queued behind other traffic shows the wrong
//! dispersion, but also a larger sum of delays. So the pair with the smallest sum is kept, and it is believed when
//! that sum is what the smallest delays of first and of second packets, seen apart, add up to.
//!
//! **One way.** Clocks are not synchronised, so delays have an unknown offset. In
//! min(d1 + d2) - (min d1 + min d2) it cancels, but as a *share* of min(d1 + d2), which is how the test is coded in
//! its descendants, it means nothing. What the difference bounds is the error of the dispersion; so it is compared
//! with the dispersion. Clock skew is removed first ([`skew`]).
//!
//! **There and back.** As coded: the three minima unchanged over 40 samples and the difference below 1 % of
//! min(d1 + d2). One per cent of a long round trip is more than a dispersion on a fast link, so that by default
//! both bounds must hold. A reply of plain STAMP has its request's size, so the result is the narrower direction.
//!
//! **Sizes.** Two packet sizes must agree within 5 %. The paper starts with 700 and 900 B; on fast paths dispersion
//! shrinks with the size and stamps do not, so that these start at 1488 B and 0.9 of it: 100 Mbit/s disperse 1488 B by
//! 119 us and 700 B by 56. Sizes further apart would disagree on 802.11 without any error, because each packet
//! pays the same overhead there (3.6 % between these at 11 Mbit/s).

use rand_core::Rng;
use rand_pcg::Pcg64Mcg;

use crate::estimate::{Estimate, Estimator, Outcome, Quantity, Refusal, Step, StreamPlan, TruthKind, Value};
use crate::event::StreamVerdict;
use crate::observe::pairs::{NOISE_SHARE, Pair, PairSet, Timing};
use crate::observe::{judge, skew, stats};
use crate::report::{Direction, StreamRecord};
use crate::time::Span;
use crate::units::{Bytes, Layer, Rate};

/// CapProbe's parameters.
///
/// ```
/// use lastmile::estimate::capprobe::CapProbeConfig;
/// assert_eq!(CapProbeConfig::default().max_samples, 100);
/// assert_eq!(CapProbeConfig::faithful().sizes[0].0, 900);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CapProbeConfig {
    /// The two packet sizes at the IP layer, the larger first; paper: 900 and 700 B, here 1488 and 1340.
    pub sizes: [Bytes; 2],
    /// Pairs in a stream; between streams the queues may drain and convergence is looked at.
    pub pairs: usize,
    /// Between pairs at least, and at most one and a half of it; widened to four times their service time once that
    /// is known.
    pub pair_gap: Span,
    /// Between streams.
    pub pause: Span,
    /// Samples of a size needed at least one way.
    pub min_samples: usize,
    /// Samples of a size after which a run has failed; paper: 100.
    pub max_samples: usize,
    /// Samples over which the minima must stand still, there and back; PBProbe: 40.
    pub unchanged: usize,
    /// By how much the minimum sum may exceed the sum of minima, as a share of the dispersion.
    pub tolerance: f64,
    /// Runs, each with sizes a fifth smaller than the last; packets that take less time meet less traffic.
    pub max_runs: u32,
    /// Uncertainty of the hosts' stamps beyond their resolution, as in WBest.
    pub timing_noise: Span,
    /// Seeds the gaps between pairs.
    pub seed: u64,
    /// The papers' rules and nothing else: sizes 900 and 700 B, the round-trip test as coded, the one best sample,
    /// no look at the schedule.
    pub faithful: bool,
}

impl Default for CapProbeConfig {
    fn default() -> CapProbeConfig {
        CapProbeConfig {
            sizes: [Bytes(1488), Bytes(1340)],
            pairs: 20,
            pair_gap: Span::from_millis(10),
            pause: Span::from_millis(20),
            min_samples: 20,
            max_samples: 100,
            unchanged: 40,
            tolerance: 0.02,
            max_runs: 3,
            timing_noise: Span::from_micros(2),
            seed: 0,
            faithful: false,
        }
    }
}

impl CapProbeConfig {
    /// The papers' rules.
    pub fn faithful() -> CapProbeConfig {
        CapProbeConfig { sizes: [Bytes(900), Bytes(700)], faithful: true, ..CapProbeConfig::default() }
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
/// Streams in a row that may tell nothing.
const ATTEMPTS: u32 = 4;

/// The minima over the samples of one size (nanoseconds, relative to the first sample's delay).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Minima {
    first: i64,
    second: i64,
    sum: i64,
    /// Delay to which these are relative.
    base: i64,
    /// Dispersion of the sample with the smallest sum, or of all that tie with it.
    dispersion: f64,
    /// Samples that tie with the smallest sum, it included.
    tied: usize,
    /// Samples since one of the minima fell.
    unchanged: usize,
}

impl Minima {
    fn of(samples: &[Pair], noise: Span, tolerance: f64, faithful: bool) -> Option<Minima> {
        let (since, base) = (samples.first()?.at, samples.first()?.first.relative_nanos());
        let points: Vec<(i64, i64)> = samples.iter().map(|p| (p.at, p.first.relative_nanos())).collect();
        let slope = skew::skew(&points).unwrap_or(0.0);
        let level = |at, delay: i64| skew::corrected(at, delay.saturating_sub(base), slope, since);
        // A fall within the stamps' noise is none.
        let step = if faithful { 0 } else { noise.as_nanos() };
        let mut minima =
            Minima { first: i64::MAX, second: i64::MAX, sum: i64::MAX, base, ..Minima::default() };
        let mut sums = Vec::with_capacity(samples.len());
        for pair in samples {
            let first = level(pair.at, pair.first.relative_nanos());
            let second = level(pair.at, pair.second.relative_nanos());
            let sum = first.saturating_add(second);
            let falls = |new: i64, old: i64| new < old.saturating_sub(step);
            let fell = falls(first, minima.first) || falls(second, minima.second) || falls(sum, minima.sum);
            minima.unchanged = if fell { 0 } else { minima.unchanged + 1 };
            if sum < minima.sum {
                minima.dispersion = pair.received.as_nanos() as f64;
            }
            minima.first = minima.first.min(first);
            minima.second = minima.second.min(second);
            minima.sum = minima.sum.min(sum);
            sums.push((sum, pair.received.as_nanos() as f64));
        }
        if !faithful {
            // Sums that tie within what is tolerated are equally good samples; their median is less noisy than one.
            let within = (tolerance * minima.dispersion).max(noise.as_nanos() as f64);
            let tied: Vec<f64> = sums
                .iter()
                .filter(|(sum, _)| sum.saturating_sub(minima.sum) as f64 <= within)
                .map(|s| s.1)
                .collect();
            minima.dispersion = stats::median(&tied)?;
            minima.tied = tied.len();
        }
        Some(minima)
    }

    /// How far the best sample is from one that met no traffic at all.
    fn excess(&self) -> f64 {
        self.sum.saturating_sub(self.first.saturating_add(self.second)) as f64
    }
}

/// The tool.
///
/// ```
/// use lastmile::estimate::{Estimator, Step, capprobe::{CapProbe, CapProbeConfig}};
/// let mut capprobe = CapProbe::new(CapProbeConfig::default());
/// let Step::Send(plan) = capprobe.step() else { panic!("it starts with pairs") };
/// assert_eq!((plan.packets.len(), plan.packets[0].size.0), (40, 1488));
/// ```
pub struct CapProbe {
    config: CapProbeConfig,
    sizes: [Bytes; 2],
    gap: Span,
    run: u32,
    samples: PairSet,
    /// The larger size's rate, once it has converged.
    larger: Option<f64>,
    streams: Vec<u32>,
    sent: u32,
    wasted: u32,
    losses: (u32, u32),
    pause_due: bool,
    round_trip: bool,
    random: Pcg64Mcg,
    outcome: Option<Outcome>,
}

impl CapProbe {
    /// Ready to start.
    pub fn new(config: CapProbeConfig) -> CapProbe {
        CapProbe {
            sizes: config.sizes,
            gap: config.pair_gap,
            run: 1,
            samples: PairSet::default(),
            larger: None,
            streams: Vec::new(),
            sent: 0,
            wasted: 0,
            losses: (0, 0),
            pause_due: false,
            round_trip: false,
            random: Pcg64Mcg::new(u128::from(config.seed) << 1 | 1),
            outcome: None,
            config,
        }
    }

    fn size(&self) -> Bytes {
        self.sizes[usize::from(self.larger.is_some())]
    }

    fn done(&mut self, value: Value) {
        let mut warnings = Vec::new();
        if matches!(value, Value::MoreThan(_)) {
            warnings.push("the path is faster than these hosts can time".to_owned());
        }
        if self.round_trip {
            warnings.push(
                "measured there and back: replies have their requests' size, so that the narrower direction counts".into(),
            );
        }
        if self.sizes[0] != self.config.sizes[0] {
            warnings.push(format!("measured with packets of {}", self.sizes[0]));
        }
        self.outcome = Some(Outcome::Found(vec![Estimate {
            quantity: Quantity::Capacity,
            value,
            // Of a minimum no interval with a tested coverage is known.
            interval: None,
            truth_kind: TruthKind::Queue,
            streams: self.streams.clone(),
            warning: (!warnings.is_empty()).then(|| warnings.join("; ")),
        }]));
    }

    fn more_than(&mut self, gap: Span) {
        self.done(Value::MoreThan(Rate::over(self.size(), gap, Layer::Ip).unwrap_or(Rate::ip(u64::MAX))));
    }

    fn waste(&mut self, verdict: StreamVerdict) {
        self.wasted += 1;
        if self.wasted >= ATTEMPTS {
            self.outcome = Some(Outcome::Refused(match verdict {
                StreamVerdict::ClockStepped => Refusal::ClockStepped,
                StreamVerdict::TooLossy => Refusal::TooLossy { lost: self.losses.0, sent: self.losses.1 },
                StreamVerdict::NoReport => {
                    Refusal::Inconsistent("reports of other streams than those sent".into())
                }
                _ => Refusal::ScheduleBroken { sent: self.sent, discarded: self.wasted },
            }));
        }
    }

    /// Whether the minima have converged.
    fn converged(&self, minima: &Minima, samples: usize, noise: Span) -> bool {
        // A pair that met nothing is met again; a single one may be the stamps' noise.
        let near_noise = minima.dispersion < 50.0 * noise.as_nanos() as f64;
        if !self.config.faithful && minima.tied < MIN_TIED + usize::from(near_noise) {
            return false;
        }
        let of_dispersion = (self.config.tolerance * minima.dispersion).max(noise.as_nanos() as f64);
        if !self.round_trip {
            return samples >= self.config.min_samples && minima.excess() < of_dispersion;
        }
        let sum = minima.sum as f64 + 2.0 * minima.base as f64;
        minima.unchanged >= self.config.unchanged
            && minima.excess() < 0.01 * sum // [ALGORITHMS 1.7, PBProbe]
            && (self.config.faithful || minima.excess() < of_dispersion)
    }

    /// Smaller packets, or the end.
    fn next_run(&mut self) {
        let (times, over) = SHRINK;
        let smaller = self.sizes.map(|size| Bytes(size.0 * times / over));
        self.run += 1;
        self.samples = PairSet::default();
        self.larger = None;
        if self.run > self.config.max_runs || smaller[1].0 < SMALLEST {
            self.outcome = Some(Outcome::Refused(Refusal::NotConverged { streams: self.sent }));
        }
        self.sizes = smaller;
    }

    fn look(&mut self, noise: Span) {
        let samples: Vec<Pair> = if self.config.faithful {
            self.samples.arrived().filter(|p| p.received > Span::ZERO).copied().collect()
        } else {
            self.samples.usable.clone()
        };
        let minima = Minima::of(&samples, noise, self.config.tolerance, self.config.faithful);
        let Some(minima) = minima.filter(|m| self.converged(m, samples.len(), noise)) else {
            if samples.len() >= self.config.max_samples {
                self.next_run();
            }
            return;
        };
        if !self.config.faithful && minima.dispersion < (noise * NOISE_SHARE).as_nanos() as f64 {
            let gaps: Vec<f64> = samples.iter().map(|p| p.received.as_nanos() as f64).collect();
            let upper = Span::from_nanos(stats::quantile(&gaps, 0.75).unwrap_or(0.0) as i64);
            return self.more_than((upper + noise * 2).max(noise * NOISE_SHARE));
        }
        let rate = self.size().bits() as f64 * 1e9 / minima.dispersion;
        self.samples = PairSet::default();
        match self.larger {
            None => self.larger = Some(rate),
            Some(larger) if (rate / larger - 1.0).abs() <= AGREE => {
                self.done(Value::Is(Rate::ip((larger + 0.5) as u64)));
            }
            Some(_) => self.next_run(),
        }
    }
}

impl Estimator for CapProbe {
    fn step(&mut self) -> Step {
        match &self.outcome {
            Some(outcome) => Step::Done(outcome.clone()),
            None if core::mem::take(&mut self.pause_due) => Step::Pause(self.config.pause),
            // Every stream has a gap of its own: in step with periodic traffic all pairs would meet the same.
            None if self.config.faithful => {
                Step::Send(StreamPlan::pairs(self.config.pairs, self.size(), self.gap))
            }
            None => {
                let share = 1.0 + f64::from(self.random.next_u32()) / f64::from(u32::MAX) / 2.0;
                Step::Send(StreamPlan::pairs(self.config.pairs, self.size(), self.gap.scaled(share)))
            }
        }
    }

    fn on_stream(&mut self, record: &StreamRecord) {
        if self.outcome.is_some() {
            return;
        }
        self.sent += 1;
        self.pause_due = true;
        self.round_trip = record.direction == Direction::RoundTrip;
        self.losses.0 += record.lost() as u32;
        self.losses.1 += record.packets.len() as u32;
        let planned = 2 * self.config.pairs;
        if record.packets.len() != planned || record.planned.len() != planned {
            return self.waste(StreamVerdict::NoReport);
        }
        let verdict = judge(record).verdict;
        if verdict == StreamVerdict::ClockStepped {
            return self.waste(verdict);
        }
        let set = PairSet::of(record);
        let noise = self.config.timing_noise.max(record.tx_resolution).max(record.rx_resolution);
        if !self.config.faithful && set.arrived().count() * 3 >= self.config.pairs {
            match set.timing(noise) {
                Timing::Timed => {}
                Timing::TooFast { gap } => {
                    self.streams.push(record.stream);
                    return self.more_than(gap);
                }
                Timing::Batched => {
                    self.outcome = Some(Outcome::Refused(Refusal::Inconsistent(
                        "the receiver stamps packets in batches, closer together than they were sent: turn off GRO and interrupt coalescing there"
                            .into(),
                    )));
                    return;
                }
            }
        }
        let usable = if self.config.faithful { set.arrived().count() } else { set.usable.len() };
        if usable == 0 {
            return self.waste(if record.lost() * 2 > planned { StreamVerdict::TooLossy } else { verdict });
        }
        self.wasted = 0;
        self.streams.push(record.stream);
        let gaps: Vec<f64> = set.arrived().map(|p| p.received.as_nanos() as f64).collect();
        let service = Span::from_nanos(stats::median(&gaps).unwrap_or(0.0) as i64);
        // A pair is two packets: at most a quarter of the path.
        self.gap =
            (service * 8).max(self.config.pair_gap).min(Span::from_millis(200).max(self.config.pair_gap));
        self.samples.extend(set);
        self.look(noise);
        if self.outcome.is_none() && self.sent >= MAX_STREAMS {
            self.outcome = Some(Outcome::Refused(Refusal::NotConverged { streams: self.sent }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::testing::record;
    use crate::report::Pattern;

    /// Pairs from (at, first delay, second delay) in microseconds, both delays from the first departure.
    fn samples(of: &[(u64, u64, u64)]) -> Vec<Pair> {
        let twice = |f: fn(&(u64, u64, u64)) -> [u64; 2]| of.iter().flat_map(f).collect::<Vec<_>>();
        let (sent, came) = (twice(|p| [p.0, p.0]), twice(|p| [p.0 + p.1, p.0 + p.2]));
        let came: Vec<Option<u64>> = came.into_iter().map(Some).collect();
        PairSet::of(&record(Pattern::Pairs, &sent, &sent, &came)).usable
    }

    /// By hand: 10 Mbit/s, 1488 B: 1190 us. The first pair's second packet met 1200 us of others (expansion), the
    /// second pair's first packet did (compression), the third met nothing.
    #[test]
    fn the_pair_that_met_nothing_has_the_smallest_sum() {
        let all = samples(&[(0, 5_000, 7_390), (10_000, 6_200, 6_800), (20_000, 5_000, 6_190)]);
        let noise = Span::from_nanos(1);
        let minima = Minima::of(&all, noise, 0.02, true).unwrap();
        assert_eq!((minima.dispersion, minima.excess(), minima.unchanged), (1_190_000.0, 0.0, 0));
        // Without it the minima come from different pairs, and do not add up.
        let minima = Minima::of(&all[..2], noise, 0.02, true).unwrap();
        assert_eq!(minima.excess(), 12_390e3_f64.min(13_000e3) - (5_000e3 + 6_800e3));
        assert!(Minima::of(&[], noise, 0.02, true).is_none());
    }

    /// The offset of the clocks does not matter to the difference, and would to its share of the sum.
    #[test]
    fn the_offset_cancels() {
        let near = samples(&[(0, 5_000, 7_390), (10_000, 6_200, 6_800)]);
        let far = samples(&[(0, 3_600_005_000, 3_600_007_390), (10_000, 3_600_006_200, 3_600_006_800)]);
        let excess = |of: &[Pair]| Minima::of(of, Span::from_nanos(1), 0.02, true).unwrap().excess();
        assert_eq!(excess(&near), excess(&far));
    }
}
