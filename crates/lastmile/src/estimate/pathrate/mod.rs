//! Pathrate: capacity from the modes of many packet pairs, of which long trains rule out those that others' traffic makes.
//!
//! C. Dovrolis, P. Ramanathan, D. Moore, "Packet-dispersion techniques and a capacity-estimation methodology", IEEE/ACM ToN 12(6), 2004. Pairs
//! show the capacity where nothing comes between them, less where others do, and more where the first of a pair waits behind the narrow link. So their rates have
//! several modes, of which the strongest need not be the capacity. Long trains all meet others: they come at the asymptotic dispersion rate (ADR), which is below
//! the capacity. Packets of several sizes make the modes of others' traffic wide, and the capacity's stays narrow:
//!
//! > C = the mode of phase I above the ADR with the greatest figure of merit (`modes`)
//!
//! 1. Trains grow up to 50 packets, or until four lost packets.
//! 2. Seven trains of each length from 2 to 10: where all rates so far differ by less than a twentieth, their mean is the capacity.
//! 3. Phase I: 1000 pairs of 40 sizes.
//! 4. Phase II: 500 trains of the greatest length; the ADR is their mean, without ten at each end.
//!
//! Without a mode above the ADR, that is the capacity. Pairs are half a second apart and long trains one second, so that it takes up to a thousand seconds.
//!
//! **Ours.** Pairs' distances are drawn, half more or less. Trains that lose packets are not sent again. An empty bin ends a mode's bell. Where more than a quarter cannot be timed, the answer is
//! a bound, and no longer trains of larger packets follow. **Faithful** to version 2.4.1: where phase II has several modes, the ADR is the low end of the one with the greatest merit.

mod modes;

use crate::estimate::{
    Base, Conditions, Estimate, Estimator, Guard, Method, Probes, Quantity, Refusal, Search, Signal, Step,
    StreamPlan, Value, Warning, WarningCode, base::TOO_FAST, bits_per_second, policer,
};
use crate::observe::pairs::{NOISE_SHARE, Pair, PairSet};
use crate::observe::signal;
use crate::observe::{StreamVerdict, stats};
use crate::options::Options;
use crate::report::StreamRecord;
use crate::time::Span;
use crate::units::Bytes;
use modes::Mode;

crate::options! {
    /// Pathrate's parameters.
    pub struct PathrateConfig {
        /// Packet pairs of phase I
        pairs: usize [40..=4_000] = 1_000, "pathrate 2.4.1: 1000";
        /// Sizes of these pairs
        sizes: usize [4..=100] = 40, "pathrate 2.4.1: 40";
        /// The least of these sizes at the IP layer
        min_size: Bytes [Bytes(100)..=Bytes(65_000)] = Bytes(600), "pathrate 2.4.1: 572 B of payload";
        /// Size of the largest packets, and those of trains, at the IP layer
        packet_size: Bytes [Bytes(100)..=Bytes(65_000)] = Bytes(1488), "our own: as WBest's";
        /// Between pairs, half more or less, and after short trains
        pair_gap: Span [Span::ZERO..=Span::from_secs(1)] = Span::from_millis(500), "pathrate 2.4.1: 500 ms";
        /// Packets of the longest trains
        longest_train: usize [2..=200] = 50, "pathrate 2.4.1: 50";
        /// Trains of each length from 2 to 10 before phase I
        preliminary: usize [1..=100] = 7, "pathrate 2.4.1: 7";
        /// Long trains of phase II
        trains: usize [1..=1_000] = 500, "pathrate 2.4.1: 500";
        /// After a long train
        pause: Span [Span::ZERO..=Span::from_secs(60)] = Span::from_secs(1), "pathrate 2.4.1: 1 s";
        /// Standard deviation of the first rates, as a share of their mean, below which that is the capacity
        variation: f64 [0.0..=1.0] = 0.05, "pathrate 2.4.1: 5 %";
        /// End before phase I, however much the rates differ
        quick: bool = false, "pathrate 2.4.1: -Q";
        /// Do as the original program: its ADR where long trains have several modes, no look at the path
        faithful: bool = false, "pathrate 2.4.1";
    }
}

/// Its place in the registry.
pub const ENTRY: Method = Method {
    name: "pathrate",
    about: "capacity as the mode of a thousand packet pairs that is above the rate of long trains and stands out most; takes up to 20 minutes",
    paper: "Dovrolis, Ramanathan, Moore, IEEE/ACM ToN 12(6), 2004; pathrate 2.4.1",
    estimates: &[Quantity::Capacity],
    pattern: &[Probes::Bursts, Probes::Pairs],
    signal: Signal::Gap,
    search: &[Search::Algorithmic],
    weak: "for answers within minutes, and where nearly all pairs meet others: then no mode is the capacity's",
    round_trip: true,
    in_all: false,
    resolution: "1 us: 600 Mbit/s with the 2 us that kernels add; 250 us: 4.7 Mbit/s",
    options: PathrateConfig::OPTIONS,
    brief: &[
        ("pairs", "40"),
        ("sizes", "4"),
        ("pair_gap", "5 ms"),
        ("longest_train", "8"),
        ("preliminary", "1"),
        ("trains", "8"),
        ("pause", "10 ms"),
    ],
    make: |given, conditions| Ok(Box::new(Pathrate::new(PathrateConfig::read(given)?, *conditions))),
};

/// Trains that lost packets before the greatest length is known to be exceeded [pathrate 2.4.1].
const BAD: u32 = 4;
/// Packets of the longest preliminary trains [pathrate 2.4.1].
const SHORT: usize = 10;
/// Rates left out at each end: of the first ones, where they are more than 30, and of the ADR's [pathrate 2.4.1].
const FIRST_OUT: usize = 5;
const ADR_OUT: usize = 10;
/// Fewer than this part of all pairs or trains say nothing.
const ENOUGH: usize = 4;
/// Long trains before an end by limits gives a number.
const LEAST: usize = 20;
/// Streams in a row that may tell nothing, and that may lose too many packets.
const ATTEMPTS: u32 = 4;
const LOSSY: u32 = 20;
/// Pairs are so many times their second packet's time apart, ...
const APART: i64 = 8;
/// ... and this at most.
const MOST_APART: Span = Span::from_secs(2);
/// Long trains that differ so much before and behind some train change, by less than this chance of another cause.
const BY_CHANCE: f64 = 0.001;

/// Phase of a run, each with its streams so far.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Trains of growing length: this one, and trains that lost packets.
    Length(usize, u32),
    /// Preliminary trains.
    Preliminary(usize),
    /// Phase I, a stream of pairs for each size.
    Pairs(usize),
    /// Phase II.
    Trains(usize),
}

/// The length after this one [pathrate 2.4.1].
fn longer(length: usize) -> usize {
    length
        + match length {
            ..6 => 1,
            6..12 => 2,
            _ => 4,
        }
}

/// The asymptotic dispersion rate of long trains' rates in rising order.
fn adr(sorted: &[f64]) -> Option<f64> {
    stats::mean(modes::middle(sorted, ADR_OUT)?)
}

/// The mode above the ADR that stands out most.
fn pick(modes: &[Mode], adr: f64) -> Option<Mode> {
    // The strongest of equals: they come first.
    let above = modes.iter().rev().filter(|mode| mode.high > adr);
    above.max_by(|a, b| a.merit.total_cmp(&b.merit)).copied()
}

/// The tool.
///
/// ```
/// use lastmile::estimate::{Conditions, Step, build};
/// let mut pathrate = build(&"pathrate".parse()?, &Conditions::default())?;
/// let Step::Send(plan) = pathrate.step() else { panic!("it starts with two packets") };
/// assert_eq!(plan.packets.len(), 2);
/// # Ok::<(), lastmile::options::ChoiceError>(())
/// ```
pub struct Pathrate {
    config: PathrateConfig,
    base: Base,
    guard: Guard,
    phase: Phase,
    /// Greatest length of a train that arrived, and its record.
    length: usize,
    longest: Option<StreamRecord>,
    /// Longer trains that lost packets behind so many alone.
    cut: u32,
    /// Rates of this phase, those that could not be timed, and its streams.
    rates: Vec<f64>,
    untimed: usize,
    streams: Vec<u32>,
    gap: Span,
    /// Width of the modes' bins; then the modes of phase I, and its streams.
    bin: f64,
    modes: Vec<Mode>,
    pair_streams: Vec<u32>,
}

impl Pathrate {
    /// Ready to start.
    pub fn new(config: PathrateConfig, conditions: Conditions) -> Pathrate {
        Pathrate {
            base: Base::of(
                conditions,
                config.faithful,
                "by the original program's rules, without a look at the path",
            ),
            guard: Guard::new(config.faithful),
            phase: Phase::Length(2, 0),
            length: 0,
            longest: None,
            cut: 0,
            rates: Vec::new(),
            untimed: 0,
            streams: Vec::new(),
            gap: config.pair_gap,
            bin: 0.0,
            modes: Vec::new(),
            pair_streams: Vec::new(),
            config,
        }
    }

    /// The packets of a preliminary train, by the trains before it.
    fn preliminary(&self, sent: usize) -> usize {
        2 + sent / self.config.preliminary
    }

    fn pairs_of_a_size(&self) -> usize {
        self.config.pairs.div_ceil(self.config.sizes)
    }

    /// The size of phase I after so many others [pathrate 2.4.1].
    fn size(&self, sent: usize) -> Bytes {
        let PathrateConfig { min_size, packet_size, sizes, .. } = self.config;
        let step = packet_size.0.saturating_sub(min_size.0) / sizes as u64 + 1;
        Bytes((min_size.0 + step * sent as u64).min(packet_size.0))
    }

    fn plan(&mut self) -> StreamPlan {
        let size = self.config.packet_size;
        match self.phase {
            Phase::Length(length, _) => StreamPlan::burst(length, size),
            Phase::Preliminary(sent) => StreamPlan::burst(self.preliminary(sent), size),
            Phase::Pairs(sent) => self.base.pairs(self.pairs_of_a_size(), self.size(sent), self.gap),
            Phase::Trains(_) => StreamPlan::burst(self.length, size),
        }
    }

    fn planned(&self) -> usize {
        match self.phase {
            Phase::Length(length, _) => length,
            Phase::Preliminary(sent) => self.preliminary(sent),
            Phase::Pairs(_) => 2 * self.pairs_of_a_size(),
            Phase::Trains(_) => self.length,
        }
    }

    /// Takes in the rate of a train that arrived whole; false if it did not.
    fn take_train(&mut self, record: &StreamRecord) -> bool {
        let gaps = signal::gaps(record, false);
        let [sent, received] = signal::sums(&gaps);
        let least = self.base.noise(record) * NOISE_SHARE * gaps.len() as i64;
        let whole = gaps.len() + 1 == record.packets.len();
        if let Some(rate) = signal::throughput(&gaps).filter(|_| whole) {
            let timed = received >= least && sent <= received - sent;
            self.take(timed || self.config.faithful, rate);
        }
        whole
    }

    fn take_pairs(&mut self, record: &StreamRecord) {
        let (set, least) = (PairSet::of(record), self.base.noise(record) * NOISE_SHARE);
        let rate = |pair: &Pair| pair.size.bits() as f64 / pair.received.as_secs_f64();
        for pair in set.arrived().filter(|pair| pair.received > Span::ZERO) {
            let timed = pair.received >= least && pair.sent <= pair.received - pair.sent;
            self.take(timed || self.config.faithful, rate(pair));
        }
    }

    fn take(&mut self, timed: bool, rate: f64) {
        match timed {
            true => self.rates.push(rate),
            false => self.untimed += 1,
        }
    }

    /// Ends a phase: its rates in rising order, or an end of the run where too few of `sent` say something.
    fn sorted(&mut self, sent: usize) -> Option<Vec<f64>> {
        let untimed = core::mem::take(&mut self.untimed);
        let mut rates = self.rates.clone();
        rates.sort_by(f64::total_cmp);
        if untimed * ENOUGH > untimed + rates.len() {
            match self.guard.bound(&self.base) {
                Some(bound) => self.base.more_than(ENTRY.estimates, bound, TOO_FAST, &self.streams),
                None => self.base.refuse(Refusal::Inconsistent(TOO_FAST.into())),
            }
        } else if rates.len() < 2 || rates.len() * ENOUGH < sent {
            self.base.waste(StreamVerdict::TooLossy, 0);
        }
        (!self.base.is_done()).then_some(rates)
    }

    fn on_length(&mut self, record: &StreamRecord, length: usize, mut bad: u32) {
        let mut next = length;
        if self.take_train(record) {
            (self.length, next) = (length, longer(length));
            self.longest = Some(record.clone());
            // A slow link: trains would come until the next one leaves.
            let took = signal::sums(&signal::gaps(record, false))[1];
            if took > self.gap {
                next = usize::MAX;
            }
        } else {
            bad += 1;
            self.cut += u32::from(policer::unbroken(record).packets.len() >= self.length);
        }
        self.phase = Phase::Length(next, bad);
        if bad < BAD && next <= self.config.longest_train {
            return;
        }
        if self.cut >= BAD && self.length < SHORT && !self.config.faithful {
            let text = format!(
                "trains of more than {} packets lost their ends, as at a policer or in a queue that holds no more",
                self.length
            );
            self.base.warn(WarningCode::Policer, text);
        }
        match self.longest.take() {
            Some(record) => self.guard.see(&record, record.packets.len(), &mut self.base),
            None => return self.base.waste(StreamVerdict::TooLossy, 0),
        }
        self.phase = Phase::Preliminary(0);
    }

    fn on_preliminary(&mut self, record: &StreamRecord, sent: usize) {
        self.take_train(record);
        self.phase = Phase::Preliminary(sent + 1);
        if self.preliminary(sent + 1) <= self.length.min(SHORT) {
            return;
        }
        let Some(sorted) = self.sorted(sent + 1) else { return };
        let out = if sorted.len() > modes::FEW { FIRST_OUT } else { 0 };
        let Some((rest, mean)) =
            modes::middle(&sorted, out).and_then(|rest| Some((rest, stats::mean(rest)?)))
        else {
            return;
        };
        self.bin = modes::bin(&sorted);
        let deviation = stats::deviation(rest).unwrap_or(0.0);
        if self.config.quick || self.bin <= 0.0 || deviation < self.config.variation * mean {
            let found = self.found(mean, self.length.min(SHORT), &self.streams, &[]);
            return self.base.found(found);
        }
        let service = bits_per_second(mean).time_for(self.config.packet_size);
        self.gap = self.gap.max((service * APART).min(MOST_APART));
        self.rates.clear();
        self.streams.clear();
        self.phase = Phase::Pairs(0);
    }

    fn on_pairs(&mut self, record: &StreamRecord, sent: usize) {
        self.take_pairs(record);
        self.phase = Phase::Pairs(sent + 1);
        if sent + 1 < self.config.sizes {
            return;
        }
        let Some(sorted) = self.sorted(self.pairs_of_a_size() * self.config.sizes) else { return };
        self.modes = modes::modes(&sorted, self.bin);
        self.rates.clear();
        self.pair_streams = core::mem::take(&mut self.streams);
        self.phase = Phase::Trains(0);
    }

    fn on_long(&mut self, record: &StreamRecord, sent: usize) {
        self.take_train(record);
        self.guard.see(record, record.packets.len(), &mut self.base);
        self.phase = Phase::Trains(sent + 1);
        if sent + 1 < self.config.trains {
            return;
        }
        let Some(sorted) = self.sorted(sent + 1) else { return };
        let (mut adr, several) = (adr(&sorted).unwrap_or(0.0), modes::modes(&sorted, self.bin));
        let mut said = Vec::new();
        if several.len() > 1 && self.config.faithful {
            adr = pick(&several, 0.0).map_or(adr, |mode| mode.low);
        } else if several.len() > 1 {
            let text = format!(
                "long trains came at {} rates: none may be the one by which pairs' modes are judged",
                several.len()
            );
            said.push(Warning { code: WarningCode::PoorFit, text });
        }
        if !self.config.faithful && stats::change_by_chance(&self.rates) < BY_CHANCE {
            let text = "trains show other rates at the end than at the beginning: the path or others' traffic changes";
            said.push(Warning { code: WarningCode::Changing, text: text.into() });
        }
        let found = self.by_modes(adr, &said);
        self.base.found(found);
    }

    /// The result by the modes of phase I and the ADR.
    fn by_modes(&self, adr: f64, said: &[Warning]) -> Vec<Estimate> {
        match pick(&self.modes, adr) {
            Some(mode) => self.found(mode.centre(), 2, &self.pair_streams, said),
            None => self.found(adr, self.length, &self.streams, said),
        }
    }

    fn found(&self, rate: f64, packets: usize, streams: &[u32], more: &[Warning]) -> Vec<Estimate> {
        let mut found = [Estimate {
            burst: Some(self.config.packet_size * packets as u64),
            warnings: self.base.said(more.iter().cloned()),
            ..self.base.estimate(Quantity::Capacity, Value::Is(bits_per_second(rate)), streams)
        }];
        self.guard.warn(rate, &mut found);
        found.into()
    }
}

impl Estimator for Pathrate {
    fn step(&mut self) -> Step {
        if let Some(step) = self.base.step() {
            return step;
        }
        let plan = self.plan();
        self.base.send(plan)
    }

    fn on_stream(&mut self, record: &StreamRecord) {
        if self.base.is_done() {
            return;
        }
        let verdict = self.base.judge(record, self.planned());
        let long = matches!(self.phase, Phase::Trains(_));
        self.base.drain(record, if long { self.config.pause } else { self.gap });
        self.streams.push(record.stream);
        match verdict {
            StreamVerdict::Believed => self.base.useful(),
            StreamVerdict::TooLossy => self.base.waste(verdict, LOSSY),
            _ => self.base.waste(verdict, ATTEMPTS),
        }
        if self.base.is_done() {
            return;
        }
        // A stream that cannot be believed counts as one of which nothing came.
        let nothing = StreamRecord { packets: Vec::new(), ..record.clone() };
        let believed = matches!(verdict, StreamVerdict::Believed | StreamVerdict::TooLossy);
        let record = if believed { record } else { &nothing };
        match self.phase {
            Phase::Length(length, bad) => self.on_length(record, length, bad),
            Phase::Preliminary(sent) => self.on_preliminary(record, sent),
            Phase::Pairs(sent) => self.on_pairs(record, sent),
            Phase::Trains(sent) => self.on_long(record, sent),
        }
    }

    fn shrink(&mut self, size: Bytes) -> bool {
        let has_begun = !self.rates.is_empty() || self.bin != 0.0;
        let shrinks = self.base.shrink(&mut self.config.packet_size, size, has_begun);
        if shrinks {
            self.config.min_size = self.config.min_size.min(size);
        }
        shrinks
    }

    fn so_far(&self) -> Vec<Estimate> {
        if self.base.is_done() || !matches!(self.phase, Phase::Trains(_)) || self.rates.len() < LEAST {
            return Vec::new();
        }
        let mut sorted = self.rates.clone();
        sorted.sort_by(f64::total_cmp);
        let text = format!("from {} of {} long trains", self.rates.len(), self.config.trains);
        let said = [Warning { code: WarningCode::Partial, text }];
        adr(&sorted).map_or_else(Vec::new, |adr| self.by_modes(adr, &said))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Outcome;
    use crate::observe::testing::record;

    /// Ten rates of 1 and ten of 40 are left out, and 24 have the mean (12 x 5 + 12 x 8) / 24. Of eight, two at each end.
    #[test]
    fn the_adr_is_a_mean_without_its_extremes() {
        let heap = |at: f64, n: usize| core::iter::repeat_n(at, n);
        let rates: Vec<f64> =
            heap(1.0, 10).chain(heap(5.0, 12)).chain(heap(8.0, 12)).chain(heap(40.0, 10)).collect();
        assert_eq!(adr(&rates), Some(6.5));
        assert_eq!(adr(&[0.0, 1.0, 2.0, 3.0, 5.0, 6.0, 7.0, 99.0]), Some(4.0));
        assert_eq!(adr(&[]), None);
    }

    /// The strongest mode is below the ADR of 7; of the others the narrow one has the greater merit, though 12 is above it.
    #[test]
    fn the_capacity_is_the_mode_above_the_adr_with_the_greatest_merit() {
        let mode = |low, merit| Mode { low, high: low + 0.5, merit };
        let modes = [mode(5.0, 9.0), mode(9.75, 2.0), mode(12.0, 0.3)];
        assert_eq!(pick(&modes, 7.0).map(|mode| mode.centre()), Some(10.0));
        assert_eq!(pick(&modes, 5.4).map(|mode| mode.centre()), Some(5.25));
        assert_eq!(pick(&modes, 13.0), None);
        assert_eq!(pick(&[mode(9.0, 1.0), mode(8.0, 1.0)], 0.0).map(|mode| mode.low), Some(9.0));
    }

    /// Pathrate 2.4.1: by one to 6, by two to 12, by four to 48. Sizes by (1488 - 600) / 40 + 1 = 23 B, to 1488.
    #[test]
    fn lengths_and_sizes_are_the_original_programs() {
        let lengths: Vec<usize> = core::iter::successors(Some(2), |length| Some(longer(*length)))
            .take_while(|n| *n <= 50)
            .collect();
        assert_eq!(lengths, [2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48]);
        let tool = Pathrate::new(PathrateConfig::default(), Conditions::exact(1));
        assert_eq!([0, 1, 38, 39].map(|sent| tool.size(sent)), [600, 623, 1474, 1488].map(Bytes));
    }

    /// Runs it over a path on which packets of a stream come so many microseconds apart, by the stream, the place and the size.
    fn drive(config: PathrateConfig, gap: impl Fn(u64, usize, Bytes) -> Option<f64>) -> (Outcome, u64) {
        let mut tool = Pathrate::new(config, Conditions::exact(1));
        for stream in 0.. {
            let plan = loop {
                match tool.step() {
                    Step::Send(plan) => break plan,
                    Step::Pause(_) => {}
                    Step::Done(outcome) => return (outcome, stream),
                }
            };
            let planned: Vec<u64> = plan.packets.iter().map(|p| p.offset.as_nanos() as u64 / 1_000).collect();
            let sent: Vec<u64> = planned.iter().map(|at| stream * 20_000_000 + at).collect();
            let mut after = 0.0;
            let came: Vec<Option<u64>> = (0..sent.len())
                .map(|k| {
                    let first = k == 0 || planned[k] > planned[k - 1];
                    after = if first { 0.0 } else { after + gap(stream, k, plan.packets[k].size)? };
                    Some(sent[k] + 900 + after as u64)
                })
                .collect();
            let mut record = record(plan.pattern, &planned, &sent, &came);
            record.packets.iter_mut().zip(&plan.packets).for_each(|(got, planned)| got.size = planned.size);
            tool.on_stream(&record);
        }
        unreachable!("streams have no end")
    }

    fn rate(outcome: &Outcome) -> f64 {
        let Outcome::Found(found) = outcome else { panic!("{outcome:?}") };
        found[0].value.rate().unwrap().bits_per_second() as f64 / 1e6
    }

    /// 10 Mbit/s: a packet of n bytes takes 0.8 n us.
    fn service(size: Bytes) -> f64 {
        size.0 as f64 * 0.8
    }

    /// 17 lengths, and 7 trains of each of 9.
    #[test]
    fn rates_that_are_all_one_are_the_capacity_at_once() {
        let (outcome, streams) = drive(PathrateConfig::default(), |_, _, size| Some(service(size)));
        assert!((rate(&outcome) - 10.0).abs() < 0.01, "{outcome:?}");
        assert_eq!(streams, 17 + 63);
    }

    /// A packet of 1500 B of others is in two of three gaps: two in three pairs, all the strongest mode, show 2.9 to 5.0 Mbit/s by their size, and the others 10. Trains come at 5.9 and so.
    #[test]
    fn the_narrow_mode_of_few_pairs_is_the_capacity() {
        let met = |stream: u64, k: usize| (stream * 7 + k as u64 / 2 + k as u64).is_multiple_of(3);
        let path = |stream, k, size| Some(service(size) + if met(stream, k) { 0.0 } else { 1_200.0 });
        for faithful in [false, true] {
            let config = PathrateConfig { faithful, ..PathrateConfig::default() };
            let (outcome, streams) = drive(config, path);
            assert!((rate(&outcome) - 10.0).abs() < 0.01, "{outcome:?}");
            assert_eq!(streams, 17 + 63 + 40 + 500);
        }
        let (outcome, _) = drive(PathrateConfig { quick: true, ..PathrateConfig::default() }, path);
        assert!((4.0..8.0).contains(&rate(&outcome)), "{outcome:?}");
    }

    /// Trains lose their last packet from the sixth on: they stay short, and short ones that lose one are left out. Nothing comes at all: four trains of two.
    #[test]
    fn losses_keep_trains_short_or_end_it() {
        let (outcome, streams) =
            drive(PathrateConfig::default(), |_, k, size| (k < 5).then_some(service(size)));
        assert!((rate(&outcome) - 10.0).abs() < 0.01, "{outcome:?}");
        assert_eq!(streams, 4 + 4 + 7 * 4);
        let Outcome::Found(found) = outcome else { panic!() };
        assert_eq!(
            found[0].warnings.iter().map(|warning| warning.code).collect::<Vec<_>>(),
            [WarningCode::Policer]
        );
        let (outcome, streams) = drive(PathrateConfig::default(), |_, _, _| None);
        assert!(matches!(outcome, Outcome::Refused(Refusal::TooLossy { .. })), "{outcome:?}");
        assert_eq!(streams, 4);
    }
}
