//! Packet pairs' dispersion: capacity by the median, the mode or a kernel density of many pairs.
//!
//! A pair back to back leaves the narrowest link as far apart as a packet takes there, unless others come between or the first waits behind it. The methods
//! differ in how they pick the link's rate from what many pairs show: the median (WBest has it); the mode of a histogram (R. Carter, M. Crovella, "Measuring bottleneck
//! link speed in packet-switched networks", Performance Evaluation 27-28, 1996), with the bins of pathrate (C. Dovrolis, P. Ramanathan, D. Moore, "Packet-dispersion techniques
//! and a capacity-estimation methodology", IEEE/ACM ToN 12(6), 2004): an eighth of the spread of the middle eight tenths; or the maximum of a kernel density, which has no bins (K. Lai,
//! M. Baker, "Measuring bandwidth", INFOCOM 1999), here with Gauss' kernel as wide as B. Silverman's rule of thumb has it.
//!
//! **What is ours.** Pairs count that left close together against their dispersion, and paths that stamps cannot time get a bound by [`Guard`]'s burst.

use crate::estimate::{
    Base, Conditions, Estimate, Estimator, Guard, Method, Probes, Quantity, Refusal, Search, Signal, Step,
    StreamPlan, Value, Warning, WarningCode, bits_per_second,
};
use crate::observe::pairs::{Pair, PairSet, Timing};
use crate::observe::{StreamVerdict, stats};
use crate::options::Options;
use crate::report::StreamRecord;
use crate::time::Span;
use crate::units::Bytes;

crate::names! {
    /// Statistic of the pairs' rates.
    pub enum By {
        /// Half of them are below.
        #[default]
        Median = "median",
        /// The fullest bin of a histogram.
        Mode = "mode",
        /// The maximum of a kernel density.
        Kernel = "kernel",
    }
}

crate::options! {
    /// Parameters of packet-pair dispersion.
    pub struct DispersionConfig {
        /// Pairs in all
        pairs: usize [10..=10_000] = 100, "our own";
        /// Between pairs, half more or less; widened to four times their service time once that is known
        pair_gap: Span [Span::ZERO..=Span::from_secs(1)] = Span::from_millis(10), "our own";
        /// Size of the packets at the IP layer
        packet_size: Bytes [Bytes(100)..=Bytes(65_000)] = Bytes(1488), "our own: as WBest's";
        /// Statistic of the pairs' rates
        by: By = By::Median, "our own";
        /// The mode's bins as a share of the spread from the first to the ninth decile
        bin: f64 [0.01..=1.0] = 0.125, "pathrate: 12.5 %";
        /// All pairs count that arrived, and nothing looks at the path
        faithful: bool = false, "the papers";
    }
}

/// Its place in the registry.
pub const ENTRY: Method = Method {
    name: "dispersion",
    about: "capacity from the dispersion of many packet pairs: their median, mode or kernel density",
    paper: "Carter, Crovella, Performance Evaluation 1996; Lai, Baker, INFOCOM 1999",
    estimates: &[Quantity::Capacity],
    pattern: &[Probes::Pairs],
    signal: Signal::Gap,
    search: &[Search::Algorithmic],
    weak: "where most pairs meet others: behind slow access links of others, before busy links, and in cells of Wi-Fi, where all pairs are slower than the narrowest link; `capprobe` looks for the few that met nobody",
    round_trip: true,
    in_all: true,
    resolution: "1 us: 600 Mbit/s with the 2 us that kernels add; 250 us: 4.7 Mbit/s",
    options: DispersionConfig::OPTIONS,
    brief: &[("pairs", "40")],
    make: |given, conditions| Ok(Box::new(Dispersion::new(DispersionConfig::read(given)?, *conditions))),
};

/// Pairs in a stream.
const AT_ONCE: usize = 20;
/// Streams in a row that may tell nothing.
const ATTEMPTS: u32 = 4;
/// Between streams.
const PAUSE: Span = Span::from_millis(20);
/// Between pairs at most.
const MOST_APART: Span = Span::from_millis(200);
/// Rates that differ so much before and behind some pair change, by less than this chance of another cause.
const BY_CHANCE: f64 = 0.001;
/// Silverman's rule of thumb: the kernel's width by the deviation, and by the width of the middle half, which is 1.34 deviations of a normal distribution.
const SILVERMAN: (f64, f64) = (0.9, 1.34);

/// The rate that pairs show, all in bit/s.
fn rate(by: By, bin: f64, rates: &[f64]) -> Option<f64> {
    let quantile = |q| stats::quantile(rates, q);
    let median = stats::median(rates)?;
    let spread = quantile(0.9)? - quantile(0.1)?;
    Some(match by {
        By::Mode if spread > 0.0 => stats::mode(rates, bin * spread)?,
        By::Kernel => kernel(rates).unwrap_or(median),
        By::Median | By::Mode => median,
    })
}

/// The value at which the kernel density of `values` is greatest, of those values. `None` where most of them are one.
fn kernel(values: &[f64]) -> Option<f64> {
    let half = stats::quantile(values, 0.75)? - stats::quantile(values, 0.25)?;
    let width = stats::deviation(values)?.min(half / SILVERMAN.1);
    let width = SILVERMAN.0 * width * libm::pow(values.len() as f64, -0.2);
    let density = |at: f64| -> f64 {
        values.iter().map(|v| libm::exp(-(v - at) * (v - at) / (2.0 * width * width))).sum()
    };
    let best = values.iter().copied().map(|at| (density(at), at)).max_by(|a, b| a.0.total_cmp(&b.0));
    best.filter(|_| width > 0.0).map(|(_, at)| at)
}

/// The tool.
///
/// ```
/// use lastmile::estimate::{Conditions, Step, build};
/// let mut dispersion = build(&"dispersion(by=mode, faithful=true)".parse()?, &Conditions::default())?;
/// let Step::Send(plan) = dispersion.step() else { panic!("it starts with pairs") };
/// assert_eq!(plan.packets.len(), 40);
/// # Ok::<(), lastmile::options::ChoiceError>(())
/// ```
pub struct Dispersion {
    config: DispersionConfig,
    base: Base,
    guard: Guard,
    gap: Span,
    rates: Vec<f64>,
    streams: Vec<u32>,
}

impl Dispersion {
    /// Ready to start.
    pub fn new(config: DispersionConfig, conditions: Conditions) -> Dispersion {
        Dispersion {
            base: Base::of(
                conditions,
                config.faithful,
                "all pairs count, without a check that these hosts can time them",
            ),
            guard: Guard::with_burst(config.faithful),
            gap: config.pair_gap,
            rates: Vec::new(),
            streams: Vec::new(),
            config,
        }
    }

    fn found(&self, more: &[Warning]) -> Vec<Estimate> {
        let Some(rate) = rate(self.config.by, self.config.bin, &self.rates) else { return Vec::new() };
        let changed = !self.config.faithful && stats::change_by_chance(&self.rates) < BY_CHANCE;
        let changing = changed.then(|| {
            let text = "pairs show other rates at the end than at the beginning: the path or others' traffic changes";
            Warning { code: WarningCode::Changing, text: text.into() }
        });
        let mut found = [Estimate {
            warnings: self.base.said(more.iter().cloned().chain(changing)),
            ..self.base.estimate(Quantity::Capacity, Value::Is(bits_per_second(rate)), &self.streams)
        }];
        self.guard.warn(rate, &mut found);
        found.into()
    }
}

impl Estimator for Dispersion {
    fn step(&mut self) -> Step {
        if let Some(step) = self.base.step() {
            return step;
        }
        let size = self.config.packet_size;
        let plan: StreamPlan = match self.guard.plan(size) {
            Some(plan) => plan,
            None => self.base.pairs(AT_ONCE, size, self.gap),
        };
        self.base.send(plan)
    }

    fn on_stream(&mut self, record: &StreamRecord) {
        if self.base.is_done() || self.guard.takes(record, &mut self.base) {
            return;
        }
        let verdict = self.base.judge(record, 2 * AT_ONCE);
        self.base.pause(PAUSE);
        if verdict != StreamVerdict::Believed {
            return self.base.waste(verdict, ATTEMPTS);
        }
        self.guard.see(record, 2, &mut self.base);
        let set = PairSet::of(record);
        if !self.config.faithful && set.timing(self.base.noise(record)) != Timing::Timed {
            let text = "packet pairs come closer together than these hosts can time";
            return match self.guard.bound(&self.base) {
                Some(bound) => self.base.more_than(ENTRY.estimates, bound, text, &[record.stream]),
                None => self.base.refuse(Refusal::Inconsistent(text.into())),
            };
        }
        let rate = |pair: &Pair| pair.size.bits() as f64 / pair.received.as_secs_f64();
        let faithful = self.config.faithful;
        let came: Vec<f64> =
            (set.arrived().filter(|pair| faithful || pair.sent <= pair.received - pair.sent))
                .filter(|pair| pair.received > Span::ZERO)
                .map(rate)
                .collect();
        let Some(middle) = stats::median(&came) else {
            return self.base.waste_of(record, verdict, ATTEMPTS);
        };
        self.base.useful();
        let service = bits_per_second(middle).time_for(self.config.packet_size);
        self.gap = self.gap.max((service * 8).min(MOST_APART));
        self.rates.extend(came);
        self.streams.push(record.stream);
        if self.rates.len() >= self.config.pairs {
            self.base.found(self.found(&[]));
        } else if self.base.sent as usize > 4 * self.config.pairs.div_ceil(AT_ONCE) + 1 {
            self.base.waste_of(record, verdict, 0);
        }
    }

    fn shrink(&mut self, size: Bytes) -> bool {
        let has_begun = !self.streams.is_empty();
        self.base.shrink(&mut self.config.packet_size, size, has_begun)
    }

    fn so_far(&self) -> Vec<Estimate> {
        if self.base.is_done() || self.rates.is_empty() {
            return Vec::new();
        }
        let text = format!("from {} of {} pairs", self.rates.len(), self.config.pairs);
        self.found(&[Warning { code: WarningCode::Partial, text }])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::{Outcome, build};
    use crate::observe::testing::pairs;

    /// Seven of ten pairs met others; three show 10. Median: 5.5. The deciles are 2.8 and 10, so that bins are 0.9 wide, and that of 10 has most. The kernel's
    /// width is 0.9 x 3.134 x 10^-0.2 = 1.780 (by the middle half, which is 5, it would be more): the density, in sums of exp(-d² / 2 width²), is 4.98 at 5, 4.93 at
    /// 5.4 and 3.35 at 10.
    #[test]
    fn statistics_are_as_by_hand() {
        let rates = [1.0, 3.0, 4.0, 5.0, 5.4, 5.6, 7.0, 10.0, 10.0, 10.0];
        assert_eq!(rate(By::Median, 0.125, &rates), Some(5.5));
        assert_eq!(rate(By::Mode, 0.125, &rates), Some(10.0));
        assert_eq!(rate(By::Kernel, 0.125, &rates), Some(5.0));
        for by in [By::Median, By::Mode, By::Kernel] {
            assert_eq!((rate(by, 0.125, &[7.0; 9]), rate(by, 0.125, &[])), (Some(7.0), None));
        }
    }

    /// Two in three pairs are of 10 Mbit/s, and the others 100 us longer.
    #[test]
    fn pairs_are_gathered_from_streams() {
        for choice in ["dispersion", "dispersion(by=mode)", "dispersion(by=kernel)"] {
            let mut tool = build(&choice.parse().unwrap(), &Conditions::exact(1)).unwrap();
            let found = loop {
                match tool.step() {
                    Step::Pause(_) => {}
                    Step::Done(Outcome::Found(found)) => break found,
                    Step::Done(Outcome::Refused(why)) => panic!("{why}"),
                    Step::Send(_) => {
                        let of: Vec<(u64, u64)> =
                            (0..20).map(|k| (0, if k % 3 == 2 { 1_290 } else { 1_190 })).collect();
                        tool.on_stream(&pairs(&of));
                    }
                }
            };
            let rate = found[0].value.rate().unwrap().bits_per_second() as f64;
            assert!((rate / 10.003e6 - 1.0).abs() < 1e-3, "{choice}: {rate}");
            assert_eq!(found[0].burst, Some(Bytes(2_976)));
        }
    }

    #[test]
    fn pairs_that_cannot_be_timed_give_a_bound_by_the_guards_burst() {
        let mut tool = build(&"dispersion".parse().unwrap(), &Conditions::default()).unwrap();
        let outcome = loop {
            match tool.step() {
                Step::Pause(_) => {}
                Step::Done(outcome) => break outcome,
                Step::Send(plan) => {
                    let planned: Vec<u64> =
                        plan.packets.iter().map(|p| p.offset.as_nanos() as u64 / 1_000).collect();
                    let came: Vec<Option<u64>> =
                        planned.iter().enumerate().map(|(k, at)| Some(900 + at + k as u64 * 4)).collect();
                    tool.on_stream(&crate::observe::testing::record(plan.pattern, &planned, &planned, &came));
                }
            }
        };
        let Outcome::Found(found) = outcome else { panic!("{outcome:?}") };
        assert!(matches!(found[0].value, Value::MoreThan(_)), "{found:?}");
    }
}
