//! pathload: the rates between which delays begin to rise, from fleets of streams.
//!
//! Jain, Dovrolis, "End-to-end available bandwidth: measurement methodology, dynamics, and relation with TCP throughput", IEEE/ACM ToN
//! 11(4), 2003, and its program 1.3.2. A stream faster than the available bandwidth fills a queue, and its delays rise. A fleet of
//! streams at one rate says "rising" or "not rising" if six in ten of its streams do, and else lies in the grey region: the
//! available bandwidth is above that rate at times and below it at others. `Rates` is the search. All constants are the program's unless the text says otherwise.
//!
//! **Slow links.** A stream of half a second or more is a fleet by itself. **Lossy streams.** A packet out of order is lost; 15 % of
//! a stream, or 3 % of half of them, are as good as a trend. **Coalescing.** Where a receiver takes packets several at a time, the
//! last one of each batch counts, and streams have 300 packets where these are too few.
//!
//! **Ours.** A rise that clocks can make is none: 100 ppm of the stream, or what stamps are uncertain by. The program's stamps of 1 us
//! hide it, and those of a simulator do not. A fleet ends once eight of its twelve streams agree, since no further one changes its verdict.

mod rates;

use crate::estimate::{
    Base, Conditions, Estimate, Estimator, Guard, Interval, IntervalMethod, Method, Probes, Quantity,
    Refusal, Search, Signal, Step, StreamPlan, Value, Warning, WarningCode, base::TOO_FAST, bits_per_second,
};
use crate::observe::pairs::NOISE_SHARE;
use crate::observe::signal::{self, Trend};
use crate::observe::{StreamVerdict, judge};
use crate::options::Options;
use crate::report::{Direction, StreamRecord};
use crate::time::Span;
use crate::units::{Bytes, Rate};
use rates::{Fleet, Rates};

crate::options! {
    /// pathload's parameters.
    pub struct PathloadConfig {
        /// Streams of a fleet
        streams: usize [3..=100] = 12, "pathload 1.3.2: 12";
        /// Packets of a stream
        packets: usize [40..=1_000] = 100, "pathload 1.3.2: 100";
        /// Largest packet at the IP layer
        packet_size: Bytes [Bytes(300)..=Bytes(9_000)] = Bytes(1488), "pathload 1.3.2: as TCP's";
        /// A range this narrow is the result [default: 2 % of the rate at which a burst comes, 5 % where packets come in batches]
        omega: Option<Rate> [Rate::ip(1_000)..=Rate::ip(100_000_000)] = None, "pathload 1.3.2: 2 %; ECNProbe: 200 kbit/s";
        /// A grey region this near to both ends of the range is the result [default: 5 % of that rate, at most 12 Mbit/s]
        chi: Option<Rate> [Rate::ip(1_000)..=Rate::ip(100_000_000)] = None, "pathload 1.3.2: 5 %; ECNProbe: 200 kbit/s";
        /// Fleets after which there is no result
        max_fleets: u32 [1..=100] = 30, "our own";
        /// Time after which there is none, of streams and pauses
        max_span: Span [Span::from_secs(1)..=Span::from_secs(600)] = Span::from_secs(300), "our own";
        /// Do as the program: stamps of 1 us, whole fleets, no look at buckets, batches and clocks
        faithful: bool = false, "pathload 1.3.2";
    }
}

/// Its place in the registry.
pub const ENTRY: Method = Method {
    name: "pathload",
    about: "range of the available bandwidth, from fleets of streams whose delays rise or do not",
    paper: "Jain, Dovrolis, IEEE/ACM ToN 11(4), 2003; pathload 1.3.2",
    estimates: &[Quantity::AvailableBandwidth],
    pattern: &[Probes::Bursts, Probes::Trains],
    signal: Signal::Trend,
    search: &[Search::Binary],
    weak: "for answers within seconds or few megabytes, and beside bursts of others: a stream of some 20 ms meets many or none",
    round_trip: false,
    in_all: true,
    resolution: "1 us: 120 Mbit/s; streams of 80 us a packet",
    options: PathloadConfig::OPTIONS,
    brief: &[
        ("streams", "3"),
        ("packets", "50"),
        ("max_fleets", "6"),
        ("max_span", "3 s"),
        ("omega", "5 Mbit/s"),
        ("chi", "5 Mbit/s"),
    ],
    make: |given, conditions| Ok(Box::new(Pathload::new(PathloadConfig::read(given)?, *conditions))),
};

/// Lengths of the burst at the start, each shorter where the one before lost packets.
const BURSTS: [usize; 5] = [50, 35, 20, 5, 3];
/// Headers of IPv4 and UDP, which the program's sizes leave out.
const HEADERS: u64 = 28;
/// Smallest payload.
const SMALLEST: u64 = 200;
/// Shortest gap between packets.
const GAP: Span = Span::from_micros(80);
/// Shortest and longest gaps of any stream; stamps may tell less.
const SHORTEST: Span = Span::from_micros(7);
const LONGEST: Span = Span::from_millis(200);
/// Rates from which packets have the largest size, and gaps are whole microseconds.
const LARGE: f64 = 150e6;
/// Idle time behind a stream, in streams; behind one of a slow link as behind the shortest of these.
const IDLE: i64 = 9;
/// A stream of this length is a fleet by itself.
const SLOW: Span = Span::from_millis(500);
/// Shares of lost packets: a stream that lost so many is lossy, or ends its fleet; so does this share of lossy streams.
const LOSSY: f64 = 0.03;
const CONGESTED: f64 = 0.15;
const LOSSY_STREAMS: f64 = 0.5;
/// Fleets in a row that losses end, each at half the rate: those losses are no queue's (our own).
const LOSSY_FLEETS: u32 = 4;
const AT_ONCE_REFUSED: &str = "packets that left apart came together, as at a host that takes interrupts late or over Wi-Fi that aggregates: delays of single packets say nothing";
/// Packets of a part of a stream that can be read.
const PART: usize = 36;
/// Medians that make a trend.
const MEDIANS: usize = 5;
/// Bands of the two tests, 10 % about 0.55 and 0.4: below the first there is no trend, above the second there is one.
const PCT: (f64, f64) = (0.495, 0.605);
const PDT: (f64, f64) = (0.36, 0.44);
/// Packets that arrive closer together came at once.
const AT_ONCE: Span = Span::from_micros(7);
/// Share of a burst's gaps that are so short where a receiver takes packets several at a time.
const COALESCED: f64 = 0.6;
/// Longer streams where so few batches came, and how much longer.
const FEW_BATCHES: usize = 5;
const LONGER: usize = 3;
/// Streams in a row of few batches that are enough.
const STREAMS: u32 = 3;
/// Gaps at sending that do not count, the longest ones.
const LATE: f64 = 0.15;
/// Share of a fleet's streams that must be readable; a fleet is repeated once.
const READABLE: usize = 2;
/// Share of streams outside the range that contradict it, from which on a warning says so (our own).
const CONTRADICTED: f64 = 0.1;
/// Streams outside the range that bound it, without a warning (our own).
const ENOUGH: usize = 20;
/// A fleet this little above the range bounds it.
const NEAR: f64 = 0.1;
/// Largest difference of two clocks' rates (our own).
const SKEW: f64 = 1e-4;

/// Verdict on one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Delays {
    Rise,
    Stay,
    /// The tests disagree, or neither tells.
    Unclear,
}

/// The two tests on delays in any unit.
fn verdict(trend: &Trend) -> Delays {
    // 1.3.2 divides by the medians, and not by the steps between them.
    let pct = trend.rising as f64 / trend.medians as f64;
    let side = |value: f64, (low, high): (f64, f64)| i32::from(value > high) - i32::from(value < low);
    match side(pct, PCT) + side(trend.pdt, PDT) {
        1.. => Delays::Rise,
        ..=-1 => Delays::Stay,
        0 => Delays::Unclear,
    }
}

#[derive(Clone, Debug)]
enum Phase {
    /// The burst of that length at the start, with the rates of the ones that lost packets.
    Burst(usize, Vec<f64>),
    Fleet,
}

/// The tool.
///
/// ```
/// use lastmile::estimate::{Estimator, Step, pathload::{Pathload, PathloadConfig}};
/// let mut pathload = Pathload::new(PathloadConfig::default(), Default::default());
/// let Step::Send(plan) = pathload.step() else { panic!("it starts with a burst") };
/// assert_eq!(plan.packets.len(), 50);
/// ```
pub struct Pathload {
    config: PathloadConfig,
    base: Base,
    guard: Guard,
    phase: Phase,
    rates: Option<Rates>,
    adr: f64,
    coalesced: bool,
    /// Verdicts of the fleet, and its streams that were sent and that were lossy.
    fleet: Vec<Delays>,
    sent: usize,
    lossy: usize,
    /// Fleets in a row that losses ended.
    by_loss: u32,
    /// Rates at which its streams left.
    left: Vec<f64>,
    /// Streams of earlier fleets that saw delays rise or stay, with their fleets' rates.
    told: Vec<(f64, Delays)>,
    /// Lowest rate of a fleet that losses ended although delays did not rise.
    lost: Option<f64>,
    repeated: bool,
    fleets: u32,
    /// Packets of a stream, and streams in a row with less than two batches, and with few.
    packets: usize,
    few: [u32; 2],
    spent: Span,
    streams: Vec<u32>,
}

impl Pathload {
    /// Ready to start.
    pub fn new(config: PathloadConfig, conditions: Conditions) -> Pathload {
        Pathload {
            base: Base::new(conditions),
            guard: Guard::new(config.faithful),
            phase: Phase::Burst(0, Vec::new()),
            rates: None,
            adr: 0.0,
            coalesced: false,
            fleet: Vec::new(),
            sent: 0,
            lossy: 0,
            by_loss: 0,
            left: Vec::new(),
            told: Vec::new(),
            lost: None,
            repeated: false,
            fleets: 0,
            packets: config.packets,
            few: [0; 2],
            spent: Span::ZERO,
            streams: Vec::new(),
            config,
        }
    }

    /// A stream at a rate in bit/s: packets 80 us apart whose size gives the rate, if that is not too small or too large.
    fn stream(&self, rate: f64) -> StreamPlan {
        let most = self.config.packet_size;
        let size = |gap: Span| Bytes((rate * gap.as_secs_f64() / 8.0) as u64);
        let size = match rate < LARGE {
            true => size(GAP),
            false => size(Span::from_micros(libm::round(most.bits() as f64 / rate * 1e6) as i64)),
        };
        let size = size.clamp(Bytes(SMALLEST + HEADERS).min(most), most);
        StreamPlan::train(self.packets, size, bits_per_second(rate))
    }

    fn on_burst(&mut self, record: &StreamRecord, length: usize, mut bad: Vec<f64>) {
        let gaps = signal::gaps(record, false);
        let close = self.close(record);
        let coalesced = gaps.iter().filter(|gap| gap.received <= close).count();
        self.coalesced |= coalesced as f64 > COALESCED * gaps.len() as f64;
        let rate = signal::throughput(&gaps);
        self.guard.see(record, record.packets.len(), &mut self.base);
        let good = rate.filter(|_| record.lost() == 0);
        bad.extend(rate);
        self.base.drain(record, Span::ZERO);
        if good.is_none() && length + 1 < BURSTS.len() {
            self.phase = Phase::Burst(length + 1, bad);
            return;
        }
        let mean = bad.iter().sum::<f64>() / bad.len() as f64;
        let Some(adr) = good.or(Some(mean)).filter(|rate| rate.is_finite() && *rate > 0.0) else {
            let verdict = judge(record).verdict;
            let verdict = if verdict == StreamVerdict::Believed { StreamVerdict::TooLossy } else { verdict };
            return self.base.waste(verdict, 1);
        };
        self.adr = adr;
        let bps =
            |rate: Option<Rate>, default: f64| rate.map_or(default, |rate| rate.bits_per_second() as f64);
        let omega = bps(self.config.omega, adr * if self.coalesced { 0.05 } else { 0.02 });
        let chi = bps(self.config.chi, (adr * 0.05).min(12e6));
        let ours = if self.config.faithful { Span::ZERO } else { self.base.noise(record) * NOISE_SHARE };
        let gap = ours.max(SHORTEST).as_secs_f64();
        let (low, high) =
            (SMALLEST as f64 * 8.0 / LONGEST.as_secs_f64(), self.config.packet_size.bits() as f64 / gap);
        self.rates = Some(Rates::new(adr, [low, high], omega, chi));
        self.phase = Phase::Fleet;
    }

    /// Packets closer than this came at once.
    fn close(&self, record: &StreamRecord) -> Span {
        if self.config.faithful { AT_ONCE } else { AT_ONCE.max(self.base.noise(record) * 3) }
    }

    /// Delays of the parts of a stream that were sent without a break, of packets in order.
    fn parts(&mut self, record: &StreamRecord) -> Vec<Vec<f64>> {
        let gap = record.planned.get(1).copied().unwrap_or(Span::ZERO);
        let switched = (gap * 2).max(gap + Span::from_millis(1));
        let close = self.close(record);
        let (mut parts, mut last): (Vec<Vec<f64>>, Option<usize>) = (vec![Vec::new()], None);
        for (i, packet) in record.packets.iter().enumerate() {
            let (Some(owd), Some(came)) = (packet.owd(), packet.fate.arrived()) else { continue };
            if record.send_gap(i).is_some_and(|(sent, _)| sent > switched) {
                parts.push(Vec::new());
            }
            let before = last.and_then(|last| record.packets[last].fate.arrived());
            // Out of order.
            if before.is_some_and(|before| came < before) {
                continue;
            }
            let at_once = before.is_some_and(|before| came - before <= close);
            last = Some(i);
            let Some(part) = parts.last_mut() else { continue };
            // The last one of a batch waited least.
            if at_once && self.coalesced {
                part.pop();
            }
            if !at_once || self.coalesced {
                part.push(owd.relative_nanos() as f64);
            }
        }
        parts
    }

    /// Verdict on the delays of a part of a stream.
    fn delays(&self, delays: &[f64], record: &StreamRecord) -> Option<Delays> {
        let zero = delays.iter().copied().reduce(f64::min)?;
        let micros =
            |delay: f64| if self.config.faithful { libm::floor((delay - zero) / 1e3) } else { delay - zero };
        let delays: Vec<f64> = delays.iter().map(|delay| micros(*delay)).collect();
        let trend = Trend::of(&delays).filter(|trend| trend.medians >= MEDIANS)?;
        let most = delays.iter().copied().fold(0.0, f64::max);
        let length = record.planned.last().map_or(0.0, |last| last.as_nanos() as f64);
        let clocks = (SKEW * length).max(self.base.noise(record).as_nanos() as f64);
        let none = !self.config.faithful && most <= clocks;
        Some(if none { Delays::Stay } else { verdict(&trend) })
    }

    fn on_fleet(&mut self, record: &StreamRecord) {
        let planned = self.packets;
        let verdict = self.base.judge(record, planned);
        self.guard.see(record, planned, &mut self.base);
        let length = record.planned.last().copied().unwrap_or(Span::ZERO);
        let idle = (length * IDLE).min(SLOW * IDLE);
        self.base.pause(idle);
        self.spent += length + idle;
        if matches!(verdict, StreamVerdict::ClockStepped | StreamVerdict::NoReport) {
            return self.base.waste(verdict, STREAMS);
        }
        self.base.useful();
        self.sent += 1;
        self.streams.push(record.stream);
        self.left.extend(left(record));
        let parts = self.parts(record);
        let came: usize = parts.iter().map(Vec::len).sum();
        let loss = if self.coalesced { signal::loss(record) } else { 1.0 - came as f64 / planned as f64 };
        self.lossy += usize::from(loss >= LOSSY);
        if self.coalesced && self.few_batches(came) {
            return;
        }
        let enough = |part: &Vec<f64>| self.coalesced || part.len() > PART || part.len() + 1 >= planned;
        let read: Vec<Delays> =
            parts.iter().filter(|part| enough(part)).filter_map(|part| self.delays(part, record)).collect();
        self.fleet.extend(read);
        let wanted = if length >= SLOW { 1 } else { self.config.streams };
        let lossy = self.lossy as f64 >= LOSSY_STREAMS * self.config.streams as f64;
        if loss >= CONGESTED || lossy {
            self.by_loss += 1;
            if self.by_loss >= LOSSY_FLEETS && !self.config.faithful {
                return self.refuse_losses();
            }
            return self.end_fleet(Fleet::Rising);
        }
        let all = |one: Delays| self.fleet.iter().filter(|other| **other == one).count();
        let (rose, stayed) = (all(Delays::Rise), all(Delays::Stay));
        // Six in ten of all streams have made a verdict, which further ones change by losses alone.
        let certain =
            rose.max(stayed) as f64 >= rates::SHARE * wanted as f64 && self.fleet.len() <= self.sent;
        if self.sent < wanted && (self.config.faithful || !certain) {
            return;
        }
        if self.fleet.len() * READABLE < wanted {
            if core::mem::replace(&mut self.repeated, true) {
                let sent = self.base.sent;
                return self.base.refuse(Refusal::ScheduleBroken { sent, discarded: self.sent as u32 });
            }
            return self.begin_fleet();
        }
        self.by_loss = 0;
        self.end_fleet(Fleet::of(rose, stayed, self.fleet.len()));
    }

    /// Packets that overtook others, or came together with them, tell as little as lost ones, and are none.
    fn refuse_losses(&mut self) {
        let (lost, sent) = self.base.losses;
        if f64::from(lost) >= LOSSY * f64::from(sent) {
            self.base.waste(StreamVerdict::TooLossy, 1);
        } else if self.base.reordered.0 > 0 {
            self.base.waste(StreamVerdict::Reordered, 1);
        } else {
            self.base.refuse(Refusal::Inconsistent(AT_ONCE_REFUSED.to_owned()));
        }
    }

    /// True if a stream of so few batches ends the run, or is to be sent again.
    fn few_batches(&mut self, batches: usize) -> bool {
        for (few, most) in self.few.iter_mut().zip([1, FEW_BATCHES]) {
            *few = if batches <= most { *few + 1 } else { 0 };
        }
        if self.few[0] >= STREAMS {
            let bound = bits_per_second(self.adr.min(self.rates.as_ref().map_or(0.0, Rates::low)));
            let why = "packets come in batches as long as whole streams";
            self.base.more_than(&[Quantity::AvailableBandwidth], bound, why, &self.streams);
        } else if self.few[1] >= STREAMS && self.packets == self.config.packets {
            self.packets *= LONGER;
            self.begin_fleet();
        }
        batches <= FEW_BATCHES
    }

    fn begin_fleet(&mut self) {
        (self.sent, self.lossy) = (0, 0);
        self.fleet.clear();
        self.left.clear();
    }

    fn end_fleet(&mut self, fleet: Fleet) {
        self.fleets += 1;
        self.repeated = false;
        let left = self.left.iter().sum::<f64>() / self.left.len().max(1) as f64;
        let Some(rates) = &mut self.rates else { return };
        rates.take(left, fleet);
        let rose = self.fleet.iter().filter(|delays| **delays == Delays::Rise).count();
        if self.by_loss > 0 && rose * 2 < self.fleet.len().max(1) {
            self.lost = Some(self.lost.map_or(left, |least| least.min(left)));
        }
        let clear = self.fleet.iter().filter(|delays| **delays != Delays::Unclear);
        self.told.extend(clear.map(|delays| (left, *delays)));
        if rates.is_done() {
            if let Some(bound) = rates.bound() {
                let bound = bits_per_second(bound);
                return self.base.more_than(&[Quantity::AvailableBandwidth], bound, TOO_FAST, &self.streams);
            }
            let found = self.found();
            return self.base.found(found);
        }
        if self.fleets >= self.config.max_fleets || self.spent >= self.config.max_span {
            return self.base.refuse(Refusal::NotConverged { streams: self.base.sent });
        }
        self.begin_fleet();
    }

    fn found(&self) -> Vec<Estimate> {
        let Some(rates) = &self.rates else { return Vec::new() };
        let (low, high) = rates.range();
        let value = Value::Is(bits_per_second((low + high) / 2.0));
        let range = Interval {
            low: bits_per_second(low),
            high: bits_per_second(high),
            confidence: rates::SHARE,
            method: IntervalMethod::GreyRegion,
        };
        let found = self.base.estimate(Quantity::AvailableBandwidth, value, &self.streams);
        let mut found = vec![Estimate { interval: Some(range), ..found }];
        self.guard.warn(self.adr, &mut found);
        if !self.config.faithful {
            found[0].warnings.extend(self.doubts(low, high));
        }
        found
    }

    /// Warnings (our own) of a range that streams contradict, or that rests on losses alone.
    fn doubts(&self, low: f64, high: f64) -> Vec<Warning> {
        let outside = |&(rate, delays): &(f64, Delays)| match rate > high {
            true => Some(delays == Delays::Stay),
            false => (rate < low).then_some(delays == Delays::Rise),
        };
        let outside: Vec<bool> = self.told.iter().filter_map(outside).collect();
        let against = outside.iter().filter(|against| **against).count();
        let mut said = Vec::new();
        if against as f64 > CONTRADICTED * outside.len() as f64 {
            let text = format!(
                "{against} of {} streams outside this range contradict it, as where others' traffic changes or answers to streams",
                outside.len()
            );
            said.push(Warning { code: WarningCode::Changing, text });
        }
        if outside.len() < ENOUGH {
            let text = format!(
                "{} streams alone bound this range: on so slow a path each one tries another rate",
                outside.len()
            );
            said.push(Warning { code: WarningCode::Partial, text });
        }
        if self.lost.is_some_and(|rate| rate <= high * (1.0 + NEAR)) {
            let text = "losses ended a fleet whose delays did not rise: they may be no queue's";
            said.push(Warning { code: WarningCode::PoorFit, text: text.into() });
        }
        said
    }
}

/// The rate at which a stream left, in bit/s, without its longest gaps.
fn left(record: &StreamRecord) -> Option<f64> {
    let mut gaps: Vec<Span> = (1..record.packets.len()).filter_map(|i| Some(record.send_gap(i)?.0)).collect();
    gaps.sort();
    gaps.truncate(gaps.len() - (gaps.len() as f64 * LATE) as usize);
    let mean = gaps.iter().copied().sum::<Span>().as_secs_f64() / gaps.len() as f64;
    let rate = record.packets.first()?.size.bits() as f64 / mean;
    (rate.is_finite() && rate > 0.0).then_some(rate)
}

impl Estimator for Pathload {
    fn step(&mut self) -> Step {
        if let Some(step) = self.base.step() {
            return step;
        }
        let plan = match (&self.phase, &self.rates) {
            (Phase::Burst(length, _), _) => StreamPlan::burst(BURSTS[*length], self.config.packet_size),
            (Phase::Fleet, rates) => self.stream(rates.as_ref().map_or(self.adr, Rates::next)),
        };
        self.base.send(plan)
    }

    fn on_stream(&mut self, record: &StreamRecord) {
        if self.base.is_done() {
            return;
        }
        if record.direction == Direction::RoundTrip {
            self.base.warn_round_trip();
        }
        match self.phase.clone() {
            Phase::Burst(length, bad) => {
                self.base.count(record);
                self.on_burst(record, length, bad);
            }
            Phase::Fleet => self.on_fleet(record),
        }
    }

    fn shrink(&mut self, size: Bytes) -> bool {
        self.base.shrink(&mut self.config.packet_size, size, self.rates.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Outcome;
    use crate::observe::testing::record;
    use crate::report::{Fate, Pattern};
    use crate::time::Time;

    fn tool(config: PathloadConfig) -> Pathload {
        Pathload::new(config, Conditions::exact(1))
    }

    /// Five medians of which so many are above the one before.
    fn trend(medians: [f64; 5]) -> Trend {
        let delays: Vec<f64> = medians.iter().flat_map(|median| [*median; 5]).collect();
        Trend::of(&delays).unwrap()
    }

    #[test]
    fn both_tests_and_their_bands_by_hand() {
        // PCT 4 / 5 = 0.8 and PDT (9 - 1) / 8 = 1: both rise.
        assert_eq!(verdict(&trend([1.0, 3.0, 5.0, 7.0, 9.0])), Delays::Rise);
        // PCT 3 / 5 = 0.6, between the bands; PDT (4 - 0) / (5 + 3 + 1 + 1) = 0.4, between them too.
        assert_eq!(verdict(&trend([0.0, 5.0, 2.0, 3.0, 4.0])), Delays::Unclear);
        // PCT 3 / 5 and PDT (2 - 0) / (3 + 3 + 1 + 1) = 0.25.
        assert_eq!(verdict(&trend([0.0, 3.0, 0.0, 1.0, 2.0])), Delays::Stay);
        // PCT 3 / 5 and PDT (6 - 1) / (2 + 1 + 3 + 1) = 0.71: one is unclear, the other decides.
        assert_eq!(verdict(&trend([1.0, 3.0, 2.0, 5.0, 6.0])), Delays::Rise);
        // PCT 1 / 5 and PDT (9 - 1) / 8 = 1: they disagree.
        assert_eq!(verdict(&trend([1.0, 1.0, 1.0, 1.0, 9.0])), Delays::Unclear);
        assert_eq!(verdict(&trend([3.0; 5])), Delays::Stay);
    }

    /// R T / 8 at 80 us, 228 B at least, and from 150 Mbit/s on the largest size with a gap of whole microseconds.
    #[test]
    fn sizes_and_gaps_of_streams() {
        let of = |rate: f64| {
            let plan = tool(PathloadConfig::default()).stream(rate);
            (plan.packets[0].size.0, plan.packets[1].offset.as_nanos())
        };
        assert_eq!(of(60e6), (600, 80_000));
        assert_eq!(of(10e6), (228, 182_400));
        assert_eq!(of(200e6), (1488, 59_520));
    }

    #[test]
    fn the_rate_at_which_a_stream_left_is_without_its_longest_gaps() {
        let mut sent: Vec<u64> = (0..21).map(|k| k * 100).collect();
        let even = left(&record(Pattern::Train, &sent, &sent, &[None; 21])).unwrap();
        assert!((even - 1488.0 * 8e4).abs() < 1.0, "{even}");
        // Two late packets of 20 gaps: 15 % are three gaps.
        sent[7] += 60;
        sent[12] += 80;
        let rate = left(&record(Pattern::Train, &sent, &sent, &[None; 21])).unwrap();
        // The gaps of 40 and 20 us count, the longest three do not.
        assert!((rate - 1488.0 * 8.0 / ((40.0 + 20.0 + 15.0 * 100.0) / 17.0 * 1e-6)).abs() < 1.0, "{rate}");
    }

    /// Of twenty streams outside 5 to 6 Mbit/s three contradict it; a fleet at 6.5 ended by losses bounds it, one at 8 does not.
    #[test]
    fn streams_that_contradict_the_range_are_told_of() {
        let mut tool = tool(PathloadConfig::default());
        tool.told = [(8e6, Delays::Rise), (4e6, Delays::Stay)].repeat(10);
        let codes = |tool: &Pathload| tool.doubts(5e6, 6e6).iter().map(|w| w.code).collect::<Vec<_>>();
        assert_eq!(codes(&tool), []);
        (tool.told[0].1, tool.told[1].1) = (Delays::Stay, Delays::Rise);
        assert_eq!(codes(&tool), []);
        tool.told[2].1 = Delays::Stay;
        assert_eq!(codes(&tool), [WarningCode::Changing]);
        // Within the range a stream may say either.
        tool.told[..4].iter_mut().for_each(|told| told.0 = 5.5e6);
        assert_eq!(codes(&tool), [WarningCode::Partial]);
        tool.told = [(8e6, Delays::Rise)].repeat(20);
        tool.lost = Some(8e6);
        assert_eq!(codes(&tool), []);
        tool.lost = Some(6.5e6);
        assert_eq!(codes(&tool), [WarningCode::PoorFit]);
    }

    /// A plan over a FIFO of so many Mbit/s with so many of others as a fluid, stamps of a clock 50 ppm fast.
    fn over(plan: &StreamPlan, mbps: f64, others: f64) -> StreamRecord {
        let (mut queue, mut before) = (0.0_f64, 0.0_f64);
        let us = |span: Span| span.as_nanos() as f64 / 1e3;
        let sent: Vec<u64> = plan.packets.iter().map(|p| us(p.offset) as u64).collect();
        let mut record = record(plan.pattern, &sent, &sent, &vec![None; sent.len()]);
        record.planned = plan.packets.iter().map(|p| p.offset).collect();
        for (r, p) in record.packets.iter_mut().zip(&plan.packets) {
            let at = us(p.offset);
            queue = (queue - (at - before) * (1.0 - others / mbps)).max(0.0) + p.size.bits() as f64 / mbps;
            before = at;
            (r.sent, r.size) = (Time::from_nanos(p.offset.as_nanos() as u64), p.size);
            if queue < 60_000.0 * 8.0 / mbps {
                r.fate = Fate::Arrived(Time::from_nanos(((at + queue) * 1_000.05) as u64 + 9_000_000));
            }
        }
        record
    }

    fn run(
        config: PathloadConfig,
        change: impl Fn(StreamRecord) -> StreamRecord,
        mbps: f64,
        others: f64,
    ) -> (Outcome, u64) {
        let (mut tool, mut bytes) = (tool(config), 0);
        loop {
            match tool.step() {
                Step::Send(plan) => {
                    bytes += plan.bytes().0;
                    tool.on_stream(&change(over(&plan, mbps, others)));
                }
                Step::Pause(_) => {}
                Step::Done(outcome) => return (outcome, bytes),
            }
        }
    }

    fn left_over(outcome: &Outcome) -> f64 {
        let Outcome::Found(found) = outcome else { panic!("{outcome:?}") };
        found[0].value.rate().unwrap().bits_per_second() as f64 / 1e6
    }

    #[test]
    fn fleets_find_what_is_left_of_a_fluid_within_the_range() {
        for (mbps, others) in [(10.0, 0.0), (10.0, 4.0), (1.0, 0.3), (90.0, 30.0)] {
            let (outcome, bytes) = run(PathloadConfig::default(), |r| r, mbps, others);
            let left = left_over(&outcome);
            assert!((left / (mbps - others) - 1.0).abs() < 0.05, "{left} of {mbps} under {others}");
            assert!(mbps != 10.0 || bytes < 2_400_000, "{bytes}");
        }
        let of_ecnprobe = Some(Rate::ip(200_000));
        let config = PathloadConfig { omega: of_ecnprobe, chi: of_ecnprobe, ..PathloadConfig::default() };
        assert!((left_over(&run(config, |r| r, 10.0, 4.0).0) - 6.0).abs() < 0.2);
    }

    /// One of 50 packets lost is none of the stream's; one of 25 makes all streams lossy, which is a trend at any rate.
    #[test]
    fn losses_and_a_slow_link_are_as_the_program_takes_them() {
        let lose = |every: usize| {
            move |mut record: StreamRecord| {
                if record.pattern == Pattern::Train {
                    record.packets.iter_mut().skip(3).step_by(every).for_each(|p| p.fate = Fate::Lost);
                }
                record
            }
        };
        assert!((left_over(&run(PathloadConfig::default(), lose(50), 10.0, 4.0).0) / 6.0 - 1.0).abs() < 0.05);
        let (outcome, _) =
            run(PathloadConfig { max_fleets: 5, ..PathloadConfig::default() }, lose(25), 10.0, 4.0);
        assert!(matches!(outcome, Outcome::Refused(Refusal::TooLossy { .. })), "{outcome:?}");
        // 100 packets of 228 B at 100 kbit/s take 1.8 s: one is a fleet.
        let mut slow = tool(PathloadConfig::default());
        slow.on_stream(&over(&StreamPlan::burst(50, Bytes(1488)), 0.1, 0.0));
        let _ = slow.step();
        for (length, fleets) in [(35, 0), (20, 0), (5, 0), (100, 1)] {
            let plan = loop {
                match slow.step() {
                    Step::Send(plan) => break plan,
                    Step::Pause(_) => {}
                    Step::Done(outcome) => panic!("{outcome:?}"),
                }
            };
            slow.on_stream(&over(&plan, 0.1, 0.0));
            if slow.fleets > 0 || plan.packets.len() == 100 {
                assert_eq!(slow.fleets, 1);
                return;
            }
            assert!(plan.packets.len() <= length && slow.fleets == fleets);
        }
    }

    /// Stamps in batches of four: the last of each counts, and ten streams' worth of batches are a trend.
    #[test]
    fn batches_are_read_by_their_last_packets() {
        let batch = |mut record: StreamRecord| {
            for four in record.packets.chunks_mut(4) {
                let last = four.iter().rev().find_map(|p| p.fate.arrived());
                four.iter_mut().filter(|p| p.fate.arrived().is_some()).for_each(|p| {
                    p.fate = last.map_or(Fate::Lost, Fate::Arrived);
                });
            }
            record
        };
        let (outcome, _) = run(PathloadConfig::default(), batch, 10.0, 4.0);
        assert!((left_over(&outcome) / 6.0 - 1.0).abs() < 0.08, "{outcome:?}");
    }
}
