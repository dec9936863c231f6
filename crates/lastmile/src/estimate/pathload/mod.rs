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
//! hide it, and those of a simulator do not. A fleet ends once no further stream changes its verdict: as eight of its twelve agree, or as
//! neither side can have eight.

mod rates;
mod stream;

use crate::estimate::{
    Base, Conditions, Estimate, Estimator, Guard, Interval, IntervalMethod, Method, Probes, Quantity,
    Refusal, Search, Signal, Step, StreamPlan, Value, Warning, WarningCode, base::TOO_FAST, bits_per_second,
};
use crate::observe::pairs::NOISE_SHARE;
use crate::observe::signal;
use crate::observe::{StreamVerdict, judge};
use crate::options::Options;
use crate::report::{Direction, StreamRecord};
use crate::time::Span;
use crate::units::{Bytes, Rate};
use rates::{Fleet, Rates};
use stream::{Delays, Stream, left};

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
/// Share of a burst's gaps that are so short where a receiver takes packets several at a time.
const COALESCED: f64 = 0.6;
/// Longer streams where so few batches came, and how much longer.
const FEW_BATCHES: usize = 5;
const LONGER: usize = 3;
/// Streams in a row of few batches that are enough.
const STREAMS: u32 = 3;
/// Share of a fleet's streams that must be readable; a fleet is repeated once.
const READABLE: usize = 2;
/// Share of streams outside the range that contradict it, from which on a warning says so (our own).
const CONTRADICTED: f64 = 0.1;
/// Streams outside the range that bound it, without a warning (our own).
const ENOUGH: usize = 20;
/// A fleet this little above the range bounds it.
const NEAR: f64 = 0.1;

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
        let close = self.read(record).close();
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
            return self.base.waste(judge(record).verdict.or(StreamVerdict::TooLossy), 1);
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

    fn read<'a>(&self, record: &'a StreamRecord) -> Stream<'a> {
        let noise = self.base.noise(record);
        Stream { record, faithful: self.config.faithful, coalesced: self.coalesced, noise }
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
        let stream = self.read(record);
        let parts = stream.parts();
        let came: usize = parts.iter().map(Vec::len).sum();
        let loss = if self.coalesced { signal::loss(record) } else { 1.0 - came as f64 / planned as f64 };
        self.lossy += usize::from(loss >= LOSSY);
        if self.coalesced && self.few_batches(came) {
            return;
        }
        let enough = |part: &Vec<f64>| self.coalesced || part.len() > PART || part.len() + 1 >= planned;
        let read: Vec<Delays> =
            parts.iter().filter(|part| enough(part)).filter_map(|part| stream.delays(part)).collect();
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
        // Further streams change such a verdict by losses alone.
        let settled = || Fleet::settled(rose, stayed, self.fleet.len(), wanted.saturating_sub(self.sent));
        let is_readable = self.fleet.len() * READABLE >= wanted;
        let ends_early = !self.config.faithful && is_readable && self.fleet.len() <= self.sent;
        if self.sent < wanted && !(ends_early && settled().is_some()) {
            return;
        }
        if !is_readable {
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
mod tests;
