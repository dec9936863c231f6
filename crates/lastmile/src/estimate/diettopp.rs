//! DietTopp: one line through the rates of trains, from the proportional share on.
//!
//! A. Johnsson, B. Melander, M. Björkman, "DietTopp: a first implementation and evaluation of a simplified bandwidth measurement method", SNCNW 2004. Trains back
//! to back come at the proportional share, which is at least what is left; trains at rates from there to half as much again lie on TOPP's line behind its
//! break (`line`), so that no break has to be looked for:
//!
//! > o / m = a + b o;   C = 1 / b,   A = (1 - a) / b
//!
//! Constants are those of the authors' program of 2004: ten trains of 48 packets, then five of 16 (32 from 11, 64 from 50 Mbit/s on) at each rate, a tenth
//! of the time; the number of rates is that of ECNProbe's Table VII.
//!
//! **Its weakness.** Beside others the share is above what is left, by as much as they are pushed aside. No rate lies near the point where the line meets 1, and
//! A is extrapolated: an error of the slope counts many times over. Then a warning says so. `faithful` is the program, which takes the share itself as one more
//! point of the line, one that came as it went: beside 4 of 10 Mbit/s it said 8.0 to 8.7 for 6.

use crate::estimate::base::TOO_FAST;
use crate::estimate::line::{Line, Point};
use crate::estimate::search::levels;
use crate::estimate::{
    Base, Conditions, Estimator, Guard, Method, Probes, Quantity, Refusal, Search, Signal, Step, StreamPlan,
    Value, WarningCode, bits_per_second,
};
use crate::observe::StreamVerdict;
use crate::observe::burst::Burst;
use crate::observe::signal::{self, Gap};
use crate::options::Options;
use crate::report::StreamRecord;
use crate::time::Span;
use crate::units::Bytes;

crate::options! {
    /// DietTopp's parameters.
    pub struct DietToppConfig {
        /// Trains back to back, for the proportional share
        share_trains: usize [1..=100] = 10, "DietTopp: 10";
        /// Packets of each of these
        share_length: usize [8..=1_000] = 48, "DietTopp: 48";
        /// Rates from the proportional share to one and a half times that
        levels: usize [3..=50] = 10, "ECNProbe, Table VII: 10";
        /// Trains at each rate
        trains: usize [1..=100] = 5, "DietTopp: 5";
        /// Packets of these trains [default: 16, 32 from 11 Mbit/s on, 64 from 50]
        train_length: Option<usize> [8..=1_000] = None, "DietTopp: 16, 32, 64";
        /// The part of the time in which trains go
        duty: f64 [0.01..=0.9] = 0.1, "DietTopp: 10 %";
        /// Size of the packets at the IP layer
        packet_size: Bytes [Bytes(100)..=Bytes(65_000)] = Bytes(1461), "DietTopp: 1500 B with Ethernet's framing";
        /// Do as the original program: the share is a point of the line, gaps that left late count, no look at the path
        faithful: bool = false, "DietTopp 2004";
    }
}

/// Its place in the registry.
pub const ENTRY: Method = Method {
    name: "diettopp",
    about: "available bandwidth and capacity from one line through the rates of trains above the proportional share",
    paper: "Johnsson, Melander, Björkman, DietTopp, SNCNW 2004",
    estimates: &[Quantity::Capacity, Quantity::AvailableBandwidth],
    pattern: &[Probes::Bursts, Probes::Trains],
    signal: Signal::Throughput,
    search: &[Search::Regression],
    weak: "beside other traffic, where the available bandwidth is extrapolated from rates well above it, and behind fair queues, whose line is another",
    round_trip: true,
    in_all: true,
    resolution: "1 us: 1 Gbit/s with the 2 us that kernels add; 250 us: 100 Mbit/s",
    options: DietToppConfig::OPTIONS,
    brief: &[
        ("share_trains", "2"),
        ("share_length", "16"),
        ("levels", "5"),
        ("trains", "1"),
        ("duty", "0.2"),
    ],
    make: |given, conditions| Ok(Box::new(DietTopp::new(DietToppConfig::read(given)?, *conditions))),
};

/// The range, as shares of the proportional share.
const RANGE: (f64, f64) = (1.0, 1.5);
/// Packets of a train, below these shares in units of 2^20 bit/s.
const LENGTHS: [(usize, f64); 3] = [(16, 11.0), (32, 50.0), (64, f64::INFINITY)];
const UNIT: f64 = 1_048_576.0;
/// An available bandwidth below this part of the lowest rate is extrapolated.
const NEAR: f64 = 0.95;
/// The part of its points' variance that a line must explain.
const FITS: f64 = 0.5;
/// Pauses are no longer.
const MOST_PAUSE: Span = Span::from_secs(5);
/// Streams in a row that may tell nothing.
const ATTEMPTS: u32 = 6;

/// The tool.
///
/// ```
/// use lastmile::estimate::{Conditions, Step, build};
/// let mut diettopp = build(&"diettopp".parse()?, &Conditions::default())?;
/// let Step::Send(plan) = diettopp.step() else { panic!("it starts with a train back to back") };
/// assert_eq!((plan.packets.len(), plan.rate()), (48, None));
/// # Ok::<(), lastmile::options::ChoiceError>(())
/// ```
pub struct DietTopp {
    config: DietToppConfig,
    base: Base,
    guard: Guard,
    /// Gaps of the trains back to back, and how many of these came.
    burst: (Vec<Gap>, usize),
    share: f64,
    /// Rates yet to be offered, the next one last, and the trains of that rate: all their gaps, and how many.
    rates: Vec<f64>,
    level: (Vec<Gap>, usize),
    points: Vec<Point>,
    streams: Vec<u32>,
}

impl DietTopp {
    /// Ready to start.
    pub fn new(config: DietToppConfig, conditions: Conditions) -> DietTopp {
        DietTopp {
            base: Base::of(
                conditions,
                config.faithful,
                "by the original program's rules: the share is a point of the line",
            ),
            guard: Guard::new(config.faithful),
            burst: (Vec::new(), 0),
            share: 0.0,
            rates: Vec::new(),
            level: (Vec::new(), 0),
            points: Vec::new(),
            streams: Vec::new(),
            config,
        }
    }

    fn train_length(&self) -> usize {
        let by_share = || LENGTHS.iter().find(|(_, below)| self.share < below * UNIT).map_or(64, |of| of.0);
        self.config.train_length.unwrap_or_else(by_share)
    }

    fn on_burst(&mut self, record: &StreamRecord, gaps: Vec<Gap>) {
        let too_fast = Burst::of(record, None).and_then(|burst| self.base.rate_of(&burst, record).err());
        if let Some(bound) = too_fast {
            return self.base.more_than(ENTRY.estimates, bound, TOO_FAST, &[record.stream]);
        }
        self.burst.0.extend(gaps);
        self.burst.1 += 1;
        if self.burst.1 < self.config.share_trains {
            return;
        }
        self.share = signal::throughput(&self.burst.0).unwrap_or(0.0);
        if self.share < 1.0 {
            return self.base.refuse(Refusal::Inconsistent("trains took minutes a packet".into()));
        }
        self.rates = levels(RANGE.0 * self.share, RANGE.1 * self.share, self.config.levels).collect();
        self.rates.reverse();
    }

    fn on_train(&mut self, record: &StreamRecord, gaps: Vec<Gap>) {
        self.level.0.extend(gaps);
        self.level.1 += 1;
        self.streams.push(record.stream);
        if self.level.1 < self.config.trains {
            return;
        }
        let (gaps, _) = core::mem::take(&mut self.level);
        self.rates.pop();
        if let Some([offered, measured]) = signal::rates(&gaps) {
            self.points.push(Point { offered, ratio: offered / measured, stream: record.stream });
        }
        if self.rates.is_empty() {
            self.end();
        }
    }

    fn end(&mut self) {
        if self.config.faithful {
            self.points.push(Point { offered: self.share, ratio: 1.0, stream: 0 });
        }
        let line = Line::through(&self.points).filter(|line| line.slope > 0.0 && line.n >= 3);
        let Some(line) = line.filter(|line| line.slope.is_finite()) else {
            return self.base.refuse(Refusal::NotConverged { streams: self.base.sent });
        };
        let [capacity, available] = line.link();
        let lowest = self.points.iter().map(|p| p.offered).fold(f64::INFINITY, f64::min);
        if !self.config.faithful && available < NEAR * lowest {
            let text = format!(
                "the available bandwidth is extrapolated: no rate below {}, the proportional share, was offered",
                bits_per_second(lowest)
            );
            self.base.warn(WarningCode::PoorFit, text);
        }
        if !self.config.faithful && line.squares[1] > (1.0 - FITS) * line.squares[0] {
            self.base.warn(WarningCode::PoorFit, "the line explains less than half of how the rates differ");
        }
        let of =
            |quantity, rate| self.base.estimate(quantity, Value::Is(bits_per_second(rate)), &self.streams);
        let mut found = vec![of(Quantity::Capacity, capacity), of(Quantity::AvailableBandwidth, available)];
        self.guard.warn(capacity, &mut found);
        self.base.found(found);
    }
}

impl Estimator for DietTopp {
    fn step(&mut self) -> Step {
        if let Some(step) = self.base.step() {
            return step;
        }
        let DietToppConfig { share_length, packet_size, .. } = self.config;
        let plan = match self.rates.last() {
            None => StreamPlan::burst(share_length, packet_size),
            Some(rate) => StreamPlan::train(self.train_length(), packet_size, bits_per_second(*rate)),
        };
        self.base.send(plan)
    }

    fn on_stream(&mut self, record: &StreamRecord) {
        if self.base.is_done() {
            return;
        }
        let length = if self.rates.is_empty() { self.config.share_length } else { self.train_length() };
        let verdict = self.base.judge(record, length);
        self.base.warn_round_trip();
        self.guard.see(record, length, &mut self.base);
        let gaps = signal::gaps(record, !self.config.faithful);
        let took = signal::sums(&gaps)[1].max(record.planned.last().copied().unwrap_or(Span::ZERO));
        self.base.pause(took.scaled(1.0 / self.config.duty - 1.0).clamp(Span::ZERO, MOST_PAUSE));
        if verdict != StreamVerdict::Believed || signal::throughput(&gaps).is_none() {
            return self.base.waste_of(record, verdict, ATTEMPTS);
        }
        self.base.useful();
        match self.rates.is_empty() {
            true => self.on_burst(record, gaps),
            false => self.on_train(record, gaps),
        }
    }

    fn shrink(&mut self, size: Bytes) -> bool {
        let has_begun = self.burst.1 > 0;
        self.base.shrink(&mut self.config.packet_size, size, has_begun)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::{Outcome, build};
    use crate::observe::testing::record;
    use crate::report::Pattern;

    /// A path of 10 Mbit/s, 1461 B in 1168.8 us, that a constant stream fills to a part `others` of a packet a packet's time; bursts come at 9.6.
    fn found(choice: &str, others: f64) -> ([f64; 2], Vec<WarningCode>) {
        let mut tool = build(&choice.parse().unwrap(), &Conditions::exact(1)).unwrap();
        let mut stream = 0;
        loop {
            match tool.step() {
                Step::Pause(_) => {}
                Step::Done(Outcome::Refused(why)) => panic!("{why}"),
                Step::Done(Outcome::Found(found)) => {
                    let rate = |k: usize| found[k].value.rate().unwrap().bits_per_second() as f64 / 1e6;
                    return ([rate(0), rate(1)], found[1].warnings.iter().map(|w| w.code).collect());
                }
                Step::Send(plan) => {
                    let planned: Vec<u64> =
                        plan.packets.iter().map(|p| p.offset.as_nanos() as u64 / 1_000).collect();
                    let (gap, begin) = (planned[1] as f64, stream * 1_000_000);
                    let came = match plan.pattern {
                        Pattern::Burst => 1_168.8 * (1.0 + others / 9.6),
                        _ => (1_168.8 + others * gap).max(gap),
                    };
                    let sent: Vec<u64> = planned.iter().map(|at| begin + at).collect();
                    let came: Vec<Option<u64>> =
                        (0..sent.len()).map(|k| Some(begin + 900 + (k as f64 * came) as u64)).collect();
                    let mut record = record(plan.pattern, &planned, &sent, &came);
                    record.packets.iter_mut().for_each(|p| p.size = Bytes(1461));
                    tool.on_stream(&record);
                    stream += 1;
                }
            }
        }
    }

    /// Beside 4 of 10 trains at o come at 10 o / (o + 4): o / m is 0.1 o + 0.4, which meets 1 at 6, far below the share of 9.6.
    #[test]
    fn the_line_tells_both_and_says_that_it_was_extrapolated() {
        let ([capacity, available], codes) = found("diettopp", 0.4);
        assert!((capacity - 10.0).abs() < 0.1 && (available - 6.0).abs() < 0.1, "{capacity} {available}");
        assert_eq!(codes, [WarningCode::PoorFit]);
        let ([capacity, available], codes) = found("diettopp", 0.0);
        assert!((capacity - 10.0).abs() < 0.1 && (available - 10.0).abs() < 0.1, "{capacity} {available}");
        assert_eq!(codes, []);
    }

    /// Ten rates from 9.6 to 14.4 with o / m = 0.1 o + 0.4, and the share, 9.6, with 1: the means of o and o / m are 11.782 and 1.5455, Sxx is
    /// 28.7 and Sxy 3.66, so that the slope is 0.1275, and 1 is met at 11.782 - 0.5455 / 0.1275 = 7.5.
    #[test]
    fn the_original_takes_the_share_as_a_point() {
        let ([capacity, available], codes) = found("diettopp(faithful=true)", 0.4);
        assert!((capacity - 7.85).abs() < 0.1 && (available - 7.5).abs() < 0.1, "{capacity} {available}");
        assert_eq!(codes, [WarningCode::Faithful]);
    }

    #[test]
    fn faster_paths_get_longer_trains() {
        let mut tool = DietTopp::new(DietToppConfig::default(), Conditions::exact(1));
        let lengths = [10e6, 30e6, 100e6].map(|share| {
            tool.share = share;
            tool.train_length()
        });
        assert_eq!(lengths, [16, 32, 64]);
    }
}
