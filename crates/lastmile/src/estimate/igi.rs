//! IGI: available bandwidth from the gaps that others made longer in trains at the turning point.
//!
//! N. Hu, P. Steenkiste, "Evaluation and characterization of available bandwidth probing techniques", IEEE JSAC 21(6), 2003. Trains of equal gaps come
//! further apart than they left if they find the path full. At the smallest gap at which they do not (`gap_search`), the
//! gaps that grew did so by packets of others:
//!
//! > B_C = B_O Σ (g - g_B) over the gaps g > g_B that grew / Σ g over all,   A = B_O - B_C
//!
//! with B_O the bottleneck's capacity and g_B its gap, from trains that left back to back. [`ptr`](super::ptr) takes the trains' own rate
//! instead. The constants are those of the authors' program, versions 2.0 to 2.2: 60 packets with 500 B of payload, three trains a gap, bins of 25 us.
//!
//! **What is ours.** Rates are of IP packets, and no more than the capacity is left; the original's are of payload, as with `faithful`. [`Guard`] warns.

use crate::estimate::base::TOO_FAST;
use crate::estimate::gap_search::GapSearch;
pub use crate::estimate::gap_search::How;
use crate::estimate::{
    Base, Conditions, Estimate, Estimator, Guard, Method, Probes, Quantity, Refusal, Search, Signal, Step,
    StreamPlan, Value, Warning, WarningCode, bits_per_second,
};
use crate::observe::burst::Burst;
use crate::observe::signal::{self, Gap};
use crate::observe::{StreamVerdict, stats};
use crate::options::Options;
use crate::report::StreamRecord;
use crate::time::Span;
use crate::units::Bytes;

crate::options! {
    /// Parameters of IGI and PTR.
    pub struct IgiConfig {
        /// Trains at each gap; version 1.0: 1
        trains: usize [1..=20] = 3, "IGI 2.0: 3";
        /// Packets of a train
        train_length: usize [8..=1_000] = 60, "IGI: 60";
        /// Size of the packets at the IP layer
        packet_size: Bytes [Bytes(100)..=Bytes(65_000)] = Bytes(528), "IGI: 500 B of payload";
        /// Search of the gap: `step`, or `binary` as in version 1.0
        search: How = How::Step, "IGI, figure 7";
        /// Gaps to try at most
        rounds: usize [2..=200] = 60, "our own";
        /// Between trains, and longer where a queue has to drain
        pause: Span [Span::ZERO..=Span::from_secs(1)] = Span::from_millis(20), "our own";
        /// Do as the original program: rates of payload, gaps that left late count, no look at the path
        faithful: bool = false, "IGI 2.0";
    }
}

/// Its place in the registry.
pub const ENTRY: Method = Method {
    name: "igi",
    about: "available bandwidth from the gaps that others make longer, at the gap at which trains come as they went",
    paper: "Hu, Steenkiste, IGI/PTR, IEEE JSAC 2003",
    estimates: &[Quantity::Capacity, Quantity::AvailableBandwidth],
    pattern: &[Probes::Bursts, Probes::Trains],
    signal: Signal::Gap,
    search: &[Search::Linear, Search::Binary],
    weak: "where others' packets are larger than its own: a train of small ones comes as it went when fewer are met than there are in the mean",
    round_trip: true,
    in_all: true,
    resolution: "1 us: 200 Mbit/s with the 2 us that kernels add; 250 us: 25 Mbit/s",
    options: IgiConfig::OPTIONS,
    brief: &[("trains", "1"), ("train_length", "30"), ("search", "binary"), ("pause", "10 ms")],
    make: |given, conditions| Ok(Box::new(Igi::new(IgiConfig::read(given)?, available, *conditions))),
};

/// Width of a bin of gaps, in nanoseconds [IGI 2.0].
const BIN: f64 = 25e3;
/// A gap grew if it is longer than sent, and than the bottleneck's, by so many nanoseconds [IGI 2.0].
const GREW: f64 = 5e3;
/// IGI and PTR differ by more than this share of the capacity only if the search missed the turning point.
const DISAGREE: f64 = 0.15;
/// Streams in a row that may tell nothing.
const ATTEMPTS: u32 = 6;
/// IPv4's and UDP's headers, which the original's rates leave out.
const HEADERS: Bytes = Bytes(28);

/// The formula of a tool: available bandwidth, bit/s, of a capacity of `bits` a gap of the bottleneck, by the trains of a round.
pub(super) type Formula = fn(bits: f64, bottleneck: f64, round: &[Vec<Gap>]) -> f64;

/// IGI's formula: packets have `bits`, and the bottleneck's gap is in nanoseconds.
fn available(bits: f64, bottleneck: f64, round: &[Vec<Gap>]) -> f64 {
    let capacity = bits * 1e9 / bottleneck;
    let others = |gaps: &Vec<Gap>| {
        let received = |gap: &Gap| gap.received.as_nanos() as f64;
        let grew = |gap: &&Gap| received(gap) > bottleneck.max(gap.sent.as_nanos() as f64) + GREW;
        let more: f64 = gaps.iter().filter(grew).map(|gap| received(gap) - bottleneck).sum();
        capacity * more / gaps.iter().map(received).sum::<f64>() // [IGI eq. 4]
    };
    let others: Vec<f64> = round.iter().map(others).collect();
    capacity - stats::median(&others).unwrap_or(0.0)
}

/// Both tools: IGI and PTR.
///
/// ```
/// use lastmile::estimate::{Conditions, Step, build};
/// let mut igi = build(&"igi".parse()?, &Conditions::default())?;
/// let Step::Send(plan) = igi.step() else { panic!("it starts with a train back to back") };
/// assert_eq!((plan.packets.len(), plan.rate()), (60, None));
/// # Ok::<(), lastmile::options::ChoiceError>(())
/// ```
pub struct Igi {
    config: IgiConfig,
    formula: Formula,
    base: Base,
    guard: Guard,
    /// Gaps of the trains back to back, in nanoseconds, and those trains.
    bursts: Vec<f64>,
    burst_streams: Vec<u32>,
    /// The bottleneck's gap, in nanoseconds.
    bottleneck: f64,
    search: Option<GapSearch>,
    /// The gaps of each train of the round, the rounds before it, and each round's streams.
    round: Vec<Vec<Gap>>,
    rounds: Vec<Vec<Vec<Gap>>>,
    streams: Vec<Vec<u32>>,
}

impl Igi {
    /// With a formula for what is left.
    pub(super) fn new(config: IgiConfig, formula: Formula, conditions: Conditions) -> Igi {
        Igi {
            formula,
            base: Base::of(
                conditions,
                config.faithful,
                "by the original program's rules: rates are of payload",
            ),
            guard: Guard::new(config.faithful),
            bursts: Vec::new(),
            burst_streams: Vec::new(),
            bottleneck: 0.0,
            search: None,
            round: Vec::new(),
            rounds: Vec::new(),
            streams: vec![Vec::new()],
            config,
        }
    }

    /// Bits of a packet that count.
    fn bits(&self) -> f64 {
        let headers = if self.config.faithful { HEADERS } else { Bytes::ZERO };
        self.config.packet_size.saturating_sub(headers).bits() as f64
    }

    /// Takes in a train that left back to back; the last one tells the bottleneck's gap.
    fn on_burst(&mut self, record: &StreamRecord, gaps: &[Gap]) {
        let too_fast = Burst::of(record, None).and_then(|burst| self.base.rate_of(&burst, record).err());
        if let Some(bound) = too_fast {
            return self.base.more_than(ENTRY.estimates, bound, TOO_FAST, &[record.stream]);
        }
        self.bursts.extend(gaps.iter().map(|gap| gap.received.as_nanos() as f64));
        self.burst_streams.push(record.stream);
        if self.burst_streams.len() < self.config.trains {
            return;
        }
        self.bottleneck = stats::mode(&self.bursts, BIN).unwrap_or(0.0); // [IGI 2.0]
        if self.bottleneck < 1.0 {
            let text = "packets that left one after the other came at once".to_owned();
            return self.base.refuse(Refusal::Inconsistent(text));
        }
        self.search = Some(GapSearch::new(self.config.search, self.bottleneck));
    }

    fn on_train(&mut self, record: &StreamRecord, gaps: Vec<Gap>) {
        self.round.push(gaps);
        if let Some(streams) = self.streams.last_mut() {
            streams.push(record.stream);
        }
        let Some(search) = self.search.as_mut().filter(|_| self.round.len() == self.config.trains) else {
            return;
        };
        let all: Vec<Gap> = self.round.iter().flatten().copied().collect();
        let [sent, received] = signal::sums(&all).map(|sum| sum.as_nanos() as f64);
        let found = search.take(sent, received, self.config.trains);
        let over = search.rounds() >= self.config.rounds;
        self.rounds.push(core::mem::take(&mut self.round));
        self.streams.push(Vec::new());
        if let Some(round) = found {
            self.base.found(self.found(round));
        } else if over {
            self.base.refuse(Refusal::NotConverged { streams: self.base.sent });
        }
    }

    fn found(&self, round: usize) -> Vec<Estimate> {
        let capacity = self.bits() * 1e9 / self.bottleneck;
        let most = if self.config.faithful { f64::INFINITY } else { capacity };
        let available = (self.formula)(self.bits(), self.bottleneck, &self.rounds[round]).min(most);
        let of = |quantity, rate, streams: &[u32]| {
            self.base.estimate(quantity, Value::Is(bits_per_second(rate)), streams)
        };
        let mut found = vec![
            of(Quantity::Capacity, capacity, &self.burst_streams),
            of(Quantity::AvailableBandwidth, available, &self.streams[round]),
        ];
        let igi = self::available(self.bits(), self.bottleneck, &self.rounds[round]);
        if !self.config.faithful && (igi - available).abs() > DISAGREE * capacity {
            let text = format!(
                "IGI says {} of the same trains, and at the turning point both are the same: the search went beyond it",
                bits_per_second(igi)
            );
            found[1].warnings.push(Warning { code: WarningCode::PoorFit, text });
        }
        self.guard.warn(capacity, &mut found);
        found
    }
}

impl Estimator for Igi {
    fn step(&mut self) -> Step {
        if let Some(step) = self.base.step() {
            return step;
        }
        let IgiConfig { train_length, packet_size, .. } = self.config;
        let plan = match &self.search {
            None => StreamPlan::burst(train_length, packet_size),
            Some(search) => {
                let rate = packet_size.bits() as f64 * 1e9 / search.gap();
                StreamPlan::train(train_length, packet_size, bits_per_second(rate))
            }
        };
        self.base.send(plan)
    }

    fn on_stream(&mut self, record: &StreamRecord) {
        if self.base.is_done() {
            return;
        }
        let verdict = self.base.judge(record, self.config.train_length);
        self.base.warn_round_trip();
        self.guard.see(record, self.config.train_length, &mut self.base);
        self.base.drain(record, self.config.pause);
        let gaps = signal::gaps(record, !self.config.faithful);
        if verdict != StreamVerdict::Believed || signal::throughput(&gaps).is_none() {
            return self.base.waste_of(record, verdict, ATTEMPTS);
        }
        self.base.useful();
        match self.search {
            None => self.on_burst(record, &gaps),
            Some(_) => self.on_train(record, gaps),
        }
    }

    fn shrink(&mut self, size: Bytes) -> bool {
        let has_begun = !self.burst_streams.is_empty();
        self.base.shrink(&mut self.config.packet_size, size, has_begun)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::estimate::{Outcome, Refusal, build};
    use crate::observe::testing::record;
    use crate::options::Choice;
    use crate::report::Pattern;

    pub(in crate::estimate) fn gaps(sent: i64, received: &[i64]) -> Vec<Gap> {
        let gap = |(at, received): (usize, &i64)| Gap {
            at,
            sent: Span::from_micros(sent),
            received: Span::from_micros(*received),
            size: Bytes(500),
        };
        received.iter().enumerate().map(gap).collect()
    }

    /// 500 B at 10 Mbit/s take 400 us. Gaps of 600 us came as 600, 1000, 600, 400 and 400: 1000 grew, by 600 of 3000 in all, a fifth of the capacity.
    /// In another train two of 800 grew by 400 each: 800 of 2800. The mean of the two middle ones is no train's: the median of three is a fifth.
    #[test]
    fn available_bandwidth_is_the_capacity_less_what_made_gaps_longer() {
        let one = gaps(600, &[600, 1_000, 600, 400, 400]);
        let two = gaps(600, &[800, 800, 400, 400, 400]);
        let near = |round: &[Vec<Gap>], left: f64| {
            let found = available(4_000.0, 400e3, round);
            assert!((found - left).abs() < 1.0, "{found}");
        };
        near(core::slice::from_ref(&one), 8e6);
        near(core::slice::from_ref(&two), 1e7 * (1.0 - 800.0 / 2_800.0));
        near(&[one.clone(), two, one], 8e6);
        // Up to 5 us more is the same gap.
        near(&[gaps(600, &[605, 595])], 1e7);
    }

    /// A path of 10 Mbit/s that a constant stream fills to `others`: trains at gap g come at 422.4 us + others x g, or as they went.
    pub(in crate::estimate) fn drive(choice: &str, others: f64) -> Outcome {
        let mut tool = build(&choice.parse::<Choice>().unwrap(), &Conditions::exact(1)).unwrap();
        for stream in 0..500 {
            match tool.step() {
                Step::Send(plan) => {
                    let planned: Vec<u64> =
                        plan.packets.iter().map(|p| p.offset.as_nanos() as u64 / 1_000).collect();
                    let gap = planned[1] as f64;
                    let came =
                        if plan.pattern == Pattern::Burst { 422.4 } else { (422.4 + others * gap).max(gap) };
                    let came: Vec<Option<u64>> = (0..planned.len())
                        .map(|k| Some(stream * 100_000 + 900 + (k as f64 * came) as u64))
                        .collect();
                    let sent: Vec<u64> = planned.iter().map(|at| stream * 100_000 + at).collect();
                    let mut record = record(plan.pattern, &planned, &sent, &came);
                    record.packets.iter_mut().for_each(|p| p.size = Bytes(528));
                    tool.on_stream(&record);
                }
                Step::Pause(_) => {}
                Step::Done(outcome) => return outcome,
            }
        }
        panic!("no end")
    }

    pub(in crate::estimate) fn rates(outcome: &Outcome) -> Vec<f64> {
        let Outcome::Found(found) = outcome else { panic!("{outcome:?}") };
        found.iter().map(|e| e.value.rate().unwrap().bits_per_second() as f64 / 1e6).collect()
    }

    #[test]
    fn both_searches_end_and_an_idle_path_is_all_left() {
        for choice in ["igi", "igi(search=binary, trains=1)"] {
            let found = rates(&drive(choice, 0.0));
            assert!((found[0] - 10.0).abs() < 0.05 && (found[1] - 10.0).abs() < 0.05, "{choice}: {found:?}");
        }
        // Payload: 500 of 528 B.
        let found = rates(&drive("igi(faithful=true)", 0.0));
        assert!((found[0] - 9.47).abs() < 0.05, "{found:?}");
    }

    #[test]
    fn a_path_that_spreads_every_train_has_no_turning_point() {
        let outcome = drive("igi(rounds=5)", 1.0);
        assert!(matches!(outcome, Outcome::Refused(Refusal::NotConverged { .. })), "{outcome:?}");
    }
}
