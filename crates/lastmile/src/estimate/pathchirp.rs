//! pathChirp: available bandwidth from where the delays of a chirp begin to rise for good.
//!
//! Ribeiro, Riedi, Baraniuk, Navratil, Cottrell, "pathChirp: efficient available bandwidth estimation for network paths", PAM 2003, and its
//! program 2.4.1. The packets of a chirp come closer and closer, so that it passes through all rates of a range at once. Delays that
//! rise and fall again are those of others' bursts; delays that rise and do not fall are those of a chirp faster than the available bandwidth. All
//! constants are the program's unless the text says otherwise.
//!
//! The mean of the latest eleven chirps moves the range, three in a row, if it is at an end of it, and a new range begins a new mean. The run ends in time, or when
//! P90 - P10 of these chirps is less than a fifth of their mean, or than a given rate (WBest, section III).
//!
//! **Ours.** Delays count in steps of 1 us, as the program's stamps do, and of more where stamps are less certain or clocks may
//! differ by more within a chirp (100 ppm): else delays rise on any path.

use crate::estimate::search::Latest;
use crate::estimate::{
    Base, Conditions, Estimate, Estimator, Guard, Method, Probes, Quantity, Search, Signal, Step, StreamPlan,
    Value, Warning, WarningCode, base::TOO_FAST, bits_per_second,
};
use crate::observe::StreamVerdict;
use crate::observe::pairs::NOISE_SHARE;
use crate::observe::signal;
use crate::options::{OptionError, Options};
use crate::report::StreamRecord;
use crate::time::Span;
use crate::units::{Bytes, Rate};

crate::options! {
    /// pathChirp's parameters.
    pub struct PathchirpConfig {
        /// Size of the packets at the IP layer
        packet_size: Bytes [Bytes(100)..=Bytes(9_000)] = Bytes(1000), "pathChirp 2.4.1: 1000 B of payload";
        /// Each gap of a chirp is so many times shorter than the one before
        gamma: f64 [1.01..=2.0] = 1.2, "pathChirp 2.4.1: 1.2";
        /// The lowest rate of the first chirps
        low: Rate [Rate::ip(10_000)..=Rate::ip(1_000_000_000)] = Rate::ip(10_000_000), "pathChirp 2.4.1: 10 Mbit/s";
        /// Their highest rate
        high: Rate [Rate::ip(20_000)..=Rate::ip(1_500_000_000)] = Rate::ip(200_000_000), "pathChirp 2.4.1: 200 Mbit/s";
        /// Mean rate of all chirps
        average_load: Rate [Rate::ip(5_000)..=Rate::ip(100_000_000)] = Rate::ip(300_000), "pathChirp 2.4.1: 300 kbit/s";
        /// An excursion ends where delays have fallen by this factor
        decrease: f64 [1.0..=10.0] = 1.5, "pathChirp 2.4.1: 1.5";
        /// Packets of an excursion that counts
        busy: usize [1..=100] = 5, "pathChirp 2.4.1: 5";
        /// Chirps in the mean
        window: usize [1..=1_000] = 11, "pathChirp 2.4.1: 11";
        /// The run ends once P90 - P10 of these is less than this share of their mean; 0: in time alone
        converged: f64 [0.0..=1.0] = 0.2, "WBest: a fifth";
        /// The same as a rate, instead of a share
        converged_below: Option<Rate> [Rate::ip(1_000)..=Rate::ip(1_500_000_000)] = None, "WBest: about 6 Mbit/s";
        /// P90 - P10 is of so many of the latest means, in place of single chirps
        means: Option<usize> [2..=1_000] = None, "WBest: the estimates that the program prints";
        /// Time of chirps and pauses after which the run ends
        max_span: Span [Span::from_secs(1)..=Span::from_secs(600)] = Span::from_secs(30), "ECNProbe: 25 s; pathChirp 2.4.1: 600 s";
        /// Do as the program: steps of 1 us, no look at buckets, fair queues and batches
        faithful: bool = false, "pathChirp 2.4.1";
    }
}

/// Its place in the registry.
pub const ENTRY: Method = Method {
    name: "pathchirp",
    about: "available bandwidth from chirps whose delays rise and do not fall again",
    paper: "Ribeiro, Riedi, Baraniuk, Navratil, Cottrell, PAM 2003; pathChirp 2.4.1",
    estimates: &[Quantity::AvailableBandwidth],
    pattern: &[Probes::Chirps],
    signal: Signal::Delay,
    search: &[Search::Average],
    weak: "beside others: a chirp passes the rates above the available bandwidth in few packets, their queue falls meanwhile, and the number is too high",
    round_trip: false,
    in_all: true,
    resolution: "1 us: 270 Mbit/s",
    options: PathchirpConfig::OPTIONS,
    brief: &[("average_load", "2 Mbit/s"), ("max_span", "1 s")],
    make: |given, conditions| {
        let config = PathchirpConfig::read(given)?;
        if config.low >= config.high {
            return Err(OptionError::new("low", format!("must be below `high`, which is {}", config.high)));
        }
        Ok(Box::new(Pathchirp::new(config, *conditions)))
    },
};

/// Packets of a chirp at most, and rates of a range at most.
const PACKETS: usize = 200;
const HIGHEST: f64 = 1.5e9;
/// The range moves up from no higher than this.
const MOVES: f64 = 1.35e9;
/// Means in a row near an end of the range that move it: below so many times the lowest rate, or above so much of the highest.
const IN_A_ROW: u32 = 3;
const NEAR_LOW: f64 = 1.5;
const NEAR_HIGH: f64 = 0.66;
/// The new range is about that end, by this factor to either side, or by the second one at rates up to the third.
const FACTORS: (f64, f64, f64) = (7.0, 4.0, 1e6);
/// The load is from a tenth to a fifth of the lowest rate then, within these limits.
const LOADS: (f64, f64) = (5e3, 3e6);
/// Two packets in a row that arrive within this time of the one before were taken together: the chirp ends before them.
const TOGETHER: Span = Span::from_micros(10);
/// The program's stamps.
const MICROSECOND: Span = Span::from_micros(1);
/// One of so many chirps that met others is a doubt (our own).
const MET: usize = 4;
/// Largest difference of two clocks' rates (our own).
const SKEW: f64 = 1e-4;
/// Longest pause in one piece.
const PAUSE: Span = Span::from_secs(4);
/// Chirps in a row that may tell nothing.
const ATTEMPTS: u32 = 20;

/// Reading of one chirp.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Chirp {
    /// The estimate.
    rate: f64,
    /// Delays rose, and fell again: others sent meanwhile.
    met: bool,
}

/// Estimate of one chirp, in the unit of `rates`: the rate of each gap, the gaps' lengths, and the delays of the packets, one more than gaps.
/// (PAM 2003, section 3, equation 3.)
fn chirp(rates: &[f64], gaps: &[f64], delays: &[f64], decrease: f64, busy: usize) -> Option<Chirp> {
    let n = rates.len().min(gaps.len()).min(delays.len().checked_sub(1)?);
    let rises = |k: usize| k < n && delays[k] < delays[k + 1];
    let next_rise = |from: usize| (from..n).find(|k| rises(*k)).unwrap_or(n);
    let mut found: Vec<Option<f64>> = vec![None; n];
    let mut start = next_rise(0);
    let (mut at, mut most) = (start + 1, 0.0_f64);
    while at <= n {
        let queue = delays[at] - delays[start];
        most = most.max(queue);
        if queue < most / decrease {
            if at - start >= busy {
                (start..at).filter(|k| rises(*k)).for_each(|k| found[k] = Some(rates[k]));
            }
            (start, most) = (next_rise(at), 0.0);
            at = start;
        }
        at += 1;
    }
    // The excursion that does not end, or the last gap.
    let last = start.min(n.checked_sub(1)?);
    found[last..].fill(Some(rates[last]));
    let sum: f64 = found.iter().zip(gaps).map(|(rate, gap)| rate.unwrap_or(rates[last]) * gap).sum();
    let rate = sum / gaps[..n].iter().sum::<f64>();
    rate.is_finite().then_some(Chirp { rate, met: (0..last).any(rises) })
}

/// The tool.
///
/// ```
/// use lastmile::estimate::{Estimator, Step, pathchirp::{Pathchirp, PathchirpConfig}};
/// let config = PathchirpConfig { faithful: true, ..PathchirpConfig::default() };
/// let mut pathchirp = Pathchirp::new(config, Default::default());
/// let Step::Send(plan) = pathchirp.step() else { panic!("it starts with a chirp") };
/// assert_eq!(plan.packets.len(), 18); // 10 Mbit/s to 200 in steps of 1.2
/// ```
pub struct Pathchirp {
    base: Base,
    guard: Guard,
    low: f64,
    high: f64,
    load: f64,
    latest: Latest,
    /// The latest means, if their spread counts.
    means: Option<Latest>,
    /// Means in a row near the lower and the upper end of the range.
    near: [u32; 2],
    /// Rate of the guard's burst, in bit/s.
    capacity: f64,
    noise: Span,
    spent: Span,
    /// Time left alone before the next chirp.
    idle: Span,
    streams: Vec<u32>,
    /// Chirps that met others.
    met: usize,
    /// Chirps that lost packets.
    lossy: usize,
    config: PathchirpConfig,
}

impl Pathchirp {
    /// Ready to start.
    pub fn new(config: PathchirpConfig, conditions: Conditions) -> Pathchirp {
        Pathchirp {
            base: Base::new(conditions),
            guard: Guard::with_burst(config.faithful),
            low: config.low.bits_per_second() as f64,
            high: config.high.bits_per_second() as f64,
            load: config.average_load.bits_per_second() as f64,
            latest: Latest::new(config.window),
            means: config.means.map(Latest::new),
            near: [0; 2],
            capacity: 0.0,
            noise: Span::ZERO,
            spent: Span::ZERO,
            idle: Span::ZERO,
            streams: Vec::new(),
            met: 0,
            lossy: 0,
            config,
        }
    }

    fn plan(&self) -> StreamPlan {
        let [low, high] = [self.low, self.high].map(bits_per_second);
        let mut plan = StreamPlan::chirp(self.config.packet_size, low, high, self.config.gamma);
        plan.packets.truncate(PACKETS);
        plan
    }

    /// The highest rate whose gaps stamps can tell.
    fn limit(&self) -> f64 {
        let least = if self.config.faithful { Span::ZERO } else { self.noise * NOISE_SHARE };
        let gap = least.as_secs_f64().max(self.config.packet_size.bits() as f64 / HIGHEST);
        self.config.packet_size.bits() as f64 / gap
    }

    /// The estimate of a chirp, in bit/s.
    fn estimate(&self, record: &StreamRecord) -> Option<Chirp> {
        if record.lost() > 0 {
            // The program takes a lossy chirp beside no other one for half of the lowest rate.
            let is_alone = self.config.faithful && self.latest.mean().is_none();
            return is_alone.then_some(Chirp { rate: self.low / 2.0, met: false });
        }
        let came: Vec<Span> = (1..record.packets.len()).map_while(|i| record.receive_gap(i)).collect();
        if came.iter().any(|gap| *gap < Span::ZERO) {
            return None;
        }
        let together = came.windows(2).position(|two| two.iter().all(|gap| *gap < TOGETHER));
        let packets = together.map_or(record.packets.len(), |at| at + 1);
        let length = record.planned.last().copied().unwrap_or(Span::ZERO);
        let ours = if self.config.faithful { Span::ZERO } else { (self.noise * 2).max(length.scaled(SKEW)) };
        let step = MICROSECOND.max(ours);
        let delays = signal::delays(record);
        let first = *delays.first()?;
        let whole = |delay: &f64| libm::floor((delay - first) / step.as_nanos() as f64);
        let delays: Vec<f64> = delays[..packets.min(delays.len())].iter().map(whole).collect();
        let gaps: Vec<f64> = record.planned.windows(2).map(|two| (two[1] - two[0]).as_secs_f64()).collect();
        let bits = self.config.packet_size.bits() as f64;
        let rates: Vec<f64> = gaps.iter().map(|gap| bits / gap).collect();
        chirp(&rates, &gaps, &delays, self.config.decrease, self.config.busy)
    }

    /// Moves the range where the mean is near an end of it, and the load with it.
    fn adapt(&mut self, mean: f64) {
        let near = [mean < NEAR_LOW * self.low, mean > NEAR_HIGH * self.high && self.high < MOVES];
        for (count, near) in self.near.iter_mut().zip(near) {
            *count = if near { *count + 1 } else { 0 };
        }
        let about = match self.near.map(|count| count >= IN_A_ROW) {
            [true, _] => self.low,
            [_, true] => self.high,
            _ => return,
        };
        let factor = if about <= FACTORS.2 { FACTORS.1 } else { FACTORS.0 };
        self.near = [0; 2];
        // Estimates of another range have other steps.
        self.latest = Latest::new(self.config.window);
        (self.low, self.high) = ((about / factor).max(1e3), (about * factor).min(self.limit()));
        self.low = self.low.min(self.high / factor);
        self.load = self.load.clamp(self.low / 10.0, self.low / 5.0).clamp(LOADS.0, LOADS.1);
    }

    fn finish(&mut self, mean: f64) {
        if mean > NEAR_HIGH * self.limit() {
            let bound = bits_per_second(NEAR_HIGH * self.limit());
            return self.base.more_than(&[Quantity::AvailableBandwidth], bound, TOO_FAST, &self.streams);
        }
        let found = self.found(mean);
        self.base.found(found);
    }

    fn found(&self, mean: f64) -> Vec<Estimate> {
        let value = Value::Is(bits_per_second(mean));
        let mut found = vec![self.base.estimate(Quantity::AvailableBandwidth, value, &self.streams)];
        if !self.config.faithful && self.lossy > self.streams.len() {
            let text = format!(
                "from {} chirps: {} others lost packets and tell nothing",
                self.streams.len(),
                self.lossy
            );
            found[0].warnings.push(Warning { code: WarningCode::Partial, text });
        }
        self.guard.warn(self.capacity.max(mean), &mut found);
        if !self.config.faithful && self.met * MET > self.streams.len() {
            let text = format!(
                "delays rose and fell again in {} of {} chirps: others send, and beside them a chirp finds more than is left",
                self.met,
                self.streams.len()
            );
            found[0].warnings.push(Warning { code: WarningCode::Contended, text });
        }
        found
    }
}

impl Estimator for Pathchirp {
    fn step(&mut self) -> Step {
        if let Some(step) = self.base.step() {
            return step;
        }
        let idle = self.idle.min(PAUSE);
        if idle > Span::ZERO {
            self.idle = self.idle - idle;
            return Step::Pause(idle);
        }
        let plan = self.guard.plan(self.config.packet_size).unwrap_or_else(|| self.plan());
        self.base.send(plan)
    }

    fn on_stream(&mut self, record: &StreamRecord) {
        if self.base.is_done() {
            return;
        }
        if self.guard.takes(record, &mut self.base) {
            self.capacity = signal::throughput(&signal::gaps(record, false)).unwrap_or(0.0);
            return;
        }
        let planned = self.plan();
        let verdict = self.base.judge(record, planned.packets.len());
        self.guard.see(record, record.packets.len(), &mut self.base);
        self.noise = self.noise.max(self.base.noise(record));
        // (N + 1) packets in the time that the load gives them, or half of the time idle.
        let (length, period) = (planned.duration(), bits_per_second(self.load).time_for(planned.bytes()));
        let period = if period <= length { length * 2 } else { period };
        self.idle = period - length;
        self.spent += period;
        let over = self.spent >= self.config.max_span;
        let believed = verdict == StreamVerdict::Believed || verdict == StreamVerdict::TooLossy;
        let one = self.estimate(record).filter(|_| believed);
        self.lossy += usize::from(believed && record.lost() > 0);
        let Some(one) = one else {
            let why = if record.lost() > 0 {
                StreamVerdict::TooLossy
            } else {
                verdict.or(StreamVerdict::Reordered)
            };
            let mean = self.latest.mean();
            self.base.waste(why, if over && mean.is_none() { 0 } else { ATTEMPTS });
            if let Some(mean) = mean.filter(|_| over && !self.base.is_done()) {
                self.finish(mean);
            }
            return;
        };
        self.base.useful();
        self.streams.push(record.stream);
        self.met += usize::from(one.met);
        self.latest.push(one.rate);
        let Some(mean) = self.latest.mean() else { return };
        self.means.iter_mut().for_each(|means| means.push(mean));
        let spread_of = self.means.as_ref().unwrap_or(&self.latest);
        let spread = spread_of.spread().filter(|_| spread_of.is_full());
        let below = self.config.converged_below.map(|rate| rate.bits_per_second() as f64);
        let below = below.unwrap_or(self.config.converged * mean);
        let converged = spread.is_some_and(|spread| spread < below);
        let (low, high) = (self.low, self.high);
        self.adapt(mean);
        if over || converged && (low, high) == (self.low, self.high) && self.near == [0; 2] {
            self.finish(mean);
        }
    }

    fn so_far(&self) -> Vec<Estimate> {
        let Some(mean) = self.latest.mean().filter(|_| !self.base.is_done()) else { return Vec::new() };
        let text = format!("from {} chirps, whose mean may yet change", self.streams.len());
        let mut found = self.found(mean);
        found[0].warnings.insert(0, Warning { code: WarningCode::Partial, text });
        found
    }

    fn shrink(&mut self, size: Bytes) -> bool {
        let has_begun = self.base.sent > 0;
        self.base.shrink(&mut self.config.packet_size, size, has_begun)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::{Outcome, Refusal};
    use crate::observe::testing::record;
    use crate::report::Fate;
    use crate::time::Time;

    /// Gaps of 8, 4, 2, 1 and 0.5 ms: rates of 1 to 16.
    const RATES: [f64; 5] = [1.0, 2.0, 4.0, 8.0, 16.0];
    const GAPS: [f64; 5] = [8.0, 4.0, 2.0, 1.0, 0.5];

    #[test]
    fn the_published_formula_by_hand() {
        let of = |delays: &[f64]| chirp(&RATES, &GAPS, delays, 1.5, 2).unwrap().rate;
        // Delays rise from the gap at rate 4 on, and do not fall: 4 everywhere.
        assert_eq!(of(&[0.0, 0.0, 0.0, 3.0, 7.0, 12.0]), 4.0);
        // They rise within the first gap by a burst of others, and are down again (2 < 6 / 1.5) two packets later: that gap counts at
        // its own rate 1, as does no other until they rise for good at rate 8: (1 * 8 + 8 * 7.5) / 15.5.
        let burst = of(&[0.0, 6.0, 2.0, 2.0, 5.0, 9.0]);
        assert!((burst - (1.0 * 8.0 + 8.0 * 7.5) / 15.5).abs() < 1e-9, "{burst}");
        // The same burst is too short for a busy period of five packets: 8 everywhere.
        assert_eq!(
            chirp(&RATES, &GAPS, &[0.0, 6.0, 2.0, 2.0, 5.0, 9.0], 1.5, 5),
            Some(Chirp { rate: 8.0, met: true })
        );
        // Without any rise, and with one that ends at the last packet, the last gap's rate.
        assert_eq!(
            (of(&[0.0; 6]), chirp(&RATES, &GAPS, &[0.0; 1], 1.5, 5), chirp(&[], &[], &[], 1.5, 5)),
            (16.0, None, None)
        );
    }

    /// A chirp over a FIFO of 10 Mbit/s, whose receiver's clock is 50 ppm fast: delays begin to rise at the first rate above.
    fn over(plan: &StreamPlan, mbps: f64) -> StreamRecord {
        let mut free = 0.0_f64;
        let sent: Vec<u64> = plan.packets.iter().map(|p| p.offset.as_nanos() as u64 / 1_000).collect();
        let mut record = record(plan.pattern, &sent, &sent, &vec![None; sent.len()]);
        record.planned = plan.packets.iter().map(|p| p.offset).collect();
        for (r, p) in record.packets.iter_mut().zip(&plan.packets) {
            free = free.max(p.offset.as_secs_f64() * 1e9) + p.size.bits() as f64 * 1e3 / mbps;
            (r.sent, r.size) = (Time::from_nanos(p.offset.as_nanos() as u64), p.size);
            r.fate = Fate::Arrived(Time::from_nanos((free * 1.00005) as u64 + 5_000_000));
        }
        record
    }

    fn run(config: PathchirpConfig, mbps: f64) -> (Outcome, Vec<usize>) {
        let mut tool = Pathchirp::new(config, Conditions::exact(1));
        let mut packets = Vec::new();
        loop {
            match tool.step() {
                Step::Send(plan) => {
                    packets.push(plan.packets.len());
                    tool.on_stream(&over(&plan, mbps));
                }
                Step::Pause(_) => {}
                Step::Done(outcome) => return (outcome, packets),
            }
        }
    }

    /// Three means of 12 at the lower end of 10 to 200 move the range to 10 / 7 to 70, whose first rate above 10 is 10.6.
    #[test]
    fn the_range_moves_and_the_estimate_is_the_first_rate_above_the_links() {
        let (outcome, packets) = run(PathchirpConfig::default(), 10.0);
        let Outcome::Found(found) = outcome else { panic!("{outcome:?}") };
        let rate = found[0].value.rate().unwrap().bits_per_second() as f64 / 1e6;
        assert!((10.5..10.7).contains(&rate), "{rate}");
        // The guard's burst, and then chirps.
        assert_eq!((&packets[..5], packets.len() > 11), (&[40, 18, 18, 18, 23][..], true), "{packets:?}");
        // A load of its own is within a tenth and a fifth of the lowest rate: 143 to 286 kbit/s.
        let mut tool = Pathchirp::new(PathchirpConfig::default(), Conditions::exact(1));
        (0..3).for_each(|_| tool.adapt(10e6));
        assert!((tool.low / (1e7 / 7.0) - 1.0).abs() < 1e-9 && (tool.load / (2e7 / 70.0) - 1.0).abs() < 1e-9);
    }

    /// All chirps say the same, so that eleven in a row are enough where any spread is below the limit: a tool that no share could end.
    #[test]
    fn a_limit_of_the_spread_ends_the_run_in_place_of_a_share() {
        let config = |converged_below| PathchirpConfig {
            converged: 0.0,
            converged_below,
            ..PathchirpConfig::default()
        };
        let chirps = |below: Option<Rate>| run(config(below), 30.0).1.len();
        let (with, without) = (chirps(Some(Rate::ip(1_000_000))), chirps(None));
        assert!(with < without && with <= 15, "{with}, {without}");
        // A mean after each chirp: 25 of them are 25 chirps, behind the burst of the guard.
        let of_means = PathchirpConfig { means: Some(25), ..config(Some(Rate::ip(6_000_000))) };
        assert_eq!(run(of_means, 30.0).1.len(), 26);
    }

    #[test]
    fn faster_paths_move_it_up_and_losses_drop_chirps() {
        let (outcome, _) = run(PathchirpConfig::default(), 400.0);
        let Outcome::Found(found) = outcome else { panic!("{outcome:?}") };
        let rate = found[0].value.rate().unwrap().bits_per_second() as f64 / 1e6;
        assert!((300.0..480.0).contains(&rate), "{rate}");
        let mut tool = Pathchirp::new(
            PathchirpConfig { faithful: true, ..PathchirpConfig::default() },
            Conditions::exact(1),
        );
        let plan = tool.plan();
        let mut lossy = over(&plan, 10.0);
        lossy.packets[5].fate = Fate::Lost;
        assert_eq!(tool.estimate(&lossy), Some(Chirp { rate: 5e6, met: false }));
        tool.latest.push(9e6);
        assert_eq!(tool.estimate(&lossy), None);
        let tool = Pathchirp::new(PathchirpConfig::default(), Conditions::exact(1));
        assert_eq!(tool.estimate(&lossy), None);
        let mut late = over(&plan, 10.0);
        late.packets.swap(4, 5);
        assert_eq!(tool.estimate(&late), None);
    }
    /// Every chirp loses a packet, but for those of `whole`: no number comes of those that do, neither at the end nor before it.
    #[test]
    fn where_only_lossy_chirps_came_there_is_no_number() {
        let end = |whole: &[u32]| {
            let config = PathchirpConfig { max_span: Span::from_secs(3), ..PathchirpConfig::default() };
            let mut tool = Pathchirp::new(config, Conditions::exact(1));
            let mut so_far = Vec::new();
            loop {
                match tool.step() {
                    Step::Send(plan) => {
                        let mut record = over(&plan, 100.0);
                        if !whole.contains(&tool.base.sent) {
                            record.packets[7].fate = Fate::Lost;
                        }
                        tool.on_stream(&record);
                        so_far.extend(tool.so_far());
                    }
                    Step::Pause(_) => {}
                    Step::Done(outcome) => return (outcome, so_far),
                }
            }
        };
        let (outcome, so_far) = end(&[]);
        assert!(matches!(outcome, Outcome::Refused(Refusal::TooLossy { .. })), "{outcome:?}");
        assert_eq!(so_far, []);
        let (outcome, so_far) = end(&[3]);
        let Outcome::Found(found) = outcome else { panic!("{outcome:?}") };
        for estimate in found.iter().chain(&so_far) {
            assert!(
                estimate.warnings.iter().any(|warning| warning.code == WarningCode::Partial),
                "{estimate:?}"
            );
        }
        assert!(!so_far.is_empty() && so_far[0].value == found[0].value);
    }
}
