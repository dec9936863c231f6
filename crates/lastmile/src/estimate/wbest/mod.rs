//! WBest: effective capacity from packet pairs, available bandwidth from trains at that rate.
//!
//! Li, Claypool, Kinicki, "WBest: a bandwidth estimation tool for multimedia streaming application over IEEE
//! 802.11 wireless networks" (WBest), section II, Algorithm 1. `pairs` and `trains` are its two steps; the bursts about
//! pairs (`burst_check`, `aggregation`, `contention`, `batched`) and about trains (`shaper`) are ours. `docs/quantities.md` has the
//! aim of its interval, the meaning of round trips, and the search for full queues.

mod pairs;
mod rest;
mod trains;

use crate::classify::{self, Classifier, LossClass};
use crate::estimate::aggregation::{self, AggregationCheck};
use crate::estimate::batched::{BURST, Batched, TRAIN, TRAINS, Taken};
use crate::estimate::burst_check::{BurstCheck, Finding, Pairs};
use crate::estimate::cell::{self, Bursts, CHANGING, Cell};
use crate::estimate::contention::{CONTENDED, Met, met};
use crate::estimate::overflow::{OVERFLOWS, least_delay, losses, plateau};
use crate::estimate::policer::{self, Policer, PolicerCheck};
use crate::estimate::shaper::{self, Shaper, ShaperCheck, Slowdown};
use crate::estimate::tight_link::{self, Least};
use crate::estimate::wbest_capacity::{CONFIDENCE, Capacity, too_wide, warn_too_wide};
pub use crate::estimate::wbest_config::WbestConfig;
use crate::estimate::wbest_fluid::{Fluid, faithful_spare};
use crate::estimate::{
    Base, Conditions, Estimate, Estimator, Method, Probes, Quantity, Refusal, Search, Signal, Step,
    StreamPlan, TruthKind, Value, Warning, WarningCode, bits_per_second,
};
use crate::estimate::{
    fair_queue::{self, Served},
    idle::{self, Idle},
};
use crate::observe::StreamVerdict;
use crate::observe::order::reordered;
use crate::observe::pairs::{Pair, PairSet, Timing};
use crate::observe::{batch::Batches, judge, stats};
use crate::options::{OptionError, Options};
use crate::report::{Direction, Pattern, StreamRecord};
use crate::time::{Owd, Span};
use crate::units::{Bytes, Rate};

/// Its place in the registry.
pub const ENTRY: Method = Method {
    name: "wbest",
    about: "capacity from 30 packet pairs, available bandwidth from trains at that rate and from pairs that met nobody",
    paper: "Li, Claypool, Kinicki, WBest, LCN 2008",
    estimates: &[
        Quantity::Capacity,
        Quantity::SustainedRate,
        Quantity::AvailableBandwidth,
        Quantity::AchievableRate,
    ],
    pattern: &[Probes::Pairs, Probes::Trains],
    signal: Signal::Throughput,
    search: &[Search::Algorithmic],
    weak: "under contention in Wi-Fi that aggregates, behind a token bucket that outlasts its trains, and beside others at a queue that holds one packet: that drops theirs and delays none",
    round_trip: true,
    in_all: true,
    resolution: "1 us: 600 Mbit/s with the 2 us that kernels add; 250 us: 4.7 Mbit/s",
    options: WbestConfig::OPTIONS,
    brief: &[],
    make: |given, conditions| Ok(Box::new(Wbest::new(WbestConfig::agreeing(given)?, *conditions)?)),
};

/// Access points queue 40 to 300 packets (WBest, section II.C): a train of this many may overflow one.
const LONG_TRAIN: usize = 40;

enum Phase {
    Pairs,
    Burst(BurstCheck),
    Aggregation(AggregationCheck),
    Cell,
    Shaper(ShaperCheck),
    Policer(PolicerCheck),
    /// The burst, or the train at the rate of one flow.
    FairQueue(Option<f64>),
    Singles,
    Train,
    Batched(Box<Batched>),
}

/// The tool.
///
/// ```
/// use lastmile::estimate::{Estimator, Step, wbest::{Wbest, WbestConfig}};
/// use lastmile::report::Pattern;
/// let mut wbest = Wbest::new(WbestConfig::default(), Default::default())?;
/// let Step::Send(plan) = wbest.step() else { panic!("it starts with pairs") };
/// assert_eq!((plan.pattern, plan.packets.len()), (Pattern::Pairs, 60));
/// # Ok::<(), lastmile::options::OptionError>(())
/// ```
pub struct Wbest {
    config: WbestConfig,
    base: Base,
    classifier: Option<Box<dyn Classifier>>,
    phase: Phase,
    pairs: PairSet,
    pair_streams: Vec<u32>,
    capacity: Capacity,
    trains: Vec<f64>,
    train_streams: Vec<u32>,
    /// The rates at which trains came out.
    outputs: Vec<f64>,
    /// Single packets that told of the path's idle time.
    singles: Option<StreamRecord>,
    /// The queue's service of flows, once that was asked.
    served: Option<Served>,
    /// A burst showed that scattered pairs are right.
    one_by_one: bool,
    /// Bursts sent in a cell with retries.
    bursts: Bursts,
    /// Trains that must still come through without losses in a full queue, after one whose losses all were.
    doubt: u32,
    /// Such trains in a row.
    doubtful: u32,
    /// The first streams of the session, against whose losses those of a train are held.
    first_streams: Vec<StreamRecord>,
    /// Trains in a row whose delay stopped growing, as at a full queue.
    plateaus: u32,
    /// The least delay of any packet so far.
    least_delay: Option<Owd>,
    /// The most uncertain stamps so far.
    noise: Span,
    /// Lower bound by bursts of a capacity that pairs cannot tell, and their streams.
    bound: Option<(Rate, Vec<u32>)>,
    /// Bytes that showed the capacity: a pair's, or a burst's if bursts bore pairs out or say more than they.
    burst: Bytes,
    /// A shaper that was met; trains then go at its rate.
    shaper: Option<Shaper>,
    /// A train that looked like one, while bursts tell whether it was.
    suspect: Option<(StreamRecord, StreamVerdict)>,
    /// It was not.
    refuted: bool,
    /// A policer that was met.
    policer: Option<Policer>,
    /// A train that looked as if it had met one had not.
    unpoliced: bool,
    /// The bucket that no train has shown.
    unseen: Option<Bytes>,
}

/// After a train whose losses may be a queue's, the last of so many without such losses is believed.
const DOUBT: u32 = 2;
/// So many streams are kept to hold losses against.
const SEEN: usize = 8;
/// So many trains in a row that met a full queue, as it seems, are believed to have.
const PLATEAUS: u32 = 3;

/// Texts for others' packets between those of most pairs.
const SCATTERED: &str = "more than a third of the packet pairs were spread by a busy link behind the narrow one (its available bandwidth is unknown then), by a token bucket, or by other stations of a cell of Wi-Fi (the capacity may be twice as much then)";
const UNCONFIRMED: &str =
    "packet pairs differ, and too few of them met an empty path to tell which of them show the capacity";
const TIGHT_LINK: &str = "a busy link behind the narrow one brought packet pairs closer together: its available bandwidth may be less than this number";
const SPREAD: &str = "others' packets spread the packet pairs, at a busy link or in a cell of Wi-Fi, and too few pairs met none to tell the capacity: measure when others send less";
const CROWDED: &str = "other stations of the cell of Wi-Fi sent between the packets of most pairs, and too few pairs met none to tell the capacity: measure when those send less";

/// Warning text for a path that delivers in batches.
pub(super) const IN_BATCHES: &str =
    "packets arrive in batches, as over Wi-Fi that aggregates: measured between the ends of batches";

/// Warning text for [`WbestConfig::faithful`].
const FAITHFUL: &str = "by the original program's rules, without a check that these hosts can time this path";

impl Wbest {
    /// With the paper's loss correction, or with a classifier that tells wireless loss from congestion.
    pub fn new(config: WbestConfig, conditions: Conditions) -> Result<Wbest, OptionError> {
        let classifier = config.classifier.as_ref().map(classify::Named::build).transpose()?;
        let known = config.capacity.map(|rate| rate.bits_per_second() as f64);
        let train = config.train_length;
        let mut wbest = Wbest {
            classifier,
            phase: if known.is_some() { Phase::Train } else { Phase::Pairs },
            pairs: PairSet::default(),
            pair_streams: Vec::new(),
            capacity: Capacity { rate: known.unwrap_or(0.0), ..Capacity::default() },
            trains: Vec::new(),
            train_streams: Vec::new(),
            outputs: Vec::new(),
            singles: None,
            served: None,
            one_by_one: false,
            bursts: Bursts::default(),
            doubt: 0,
            doubtful: 0,
            first_streams: Vec::new(),
            plateaus: 0,
            least_delay: None,
            noise: Span::ZERO,
            bound: None,
            burst: config.packet_size * 2,
            shaper: None,
            suspect: None,
            refuted: false,
            policer: None,
            unpoliced: false,
            unseen: shaper::least_unseen(train, config.packet_size),
            config,
            base: Base::new(conditions),
        };
        if train >= LONG_TRAIN {
            let text = format!(
                "a train of {train} packets may overflow the queue of an access point, which holds 40 to 300"
            );
            wbest.base.warn(WarningCode::LongTrain, text);
        }
        Ok(wbest)
    }

    /// Packets of a train.
    fn train_length(&self) -> usize {
        let least = if matches!(self.phase, Phase::Batched(_)) { TRAIN } else { 0 };
        self.config.train_length.max(least)
    }

    /// Limit of the trains' rate: the capacity, or the sustained rate.
    fn limit(&self) -> &Capacity {
        self.shaper.as_ref().map_or(&self.capacity, |shaper| &shaper.sustained)
    }

    /// Every pause is another: trains in step with periodic traffic would all see the same part of it.
    fn pause(&mut self) {
        let share = 0.5 + self.base.draw();
        let least = match &self.phase {
            Phase::Shaper(check) => check.pause(),
            Phase::Burst(check) => check.pause(),
            _ => Span::ZERO,
        };
        self.base.pause(self.config.pause.scaled(share).max(least));
    }

    /// True if trains at a capacity that was given show that it cannot be.
    fn contradicts_capacity(&self) -> bool {
        self.config.capacity.is_some() && !self.config.faithful && self.available() < 1.0
    }

    fn finish(&mut self) {
        if self.contradicts_capacity() {
            return self.base.refuse(Refusal::Inconsistent(format!(
                "trains at the capacity given, {}, came out at half of it or less: either nothing is left, or that capacity is too high; leave it out",
                bits_per_second(self.capacity.rate)
            )));
        }
        self.base.found(self.found(true, &[]));
    }

    /// Ends where nothing tells what is left: that has its row too, with the reasons that were said.
    fn end_without_rest(&mut self) {
        let mut found = self.found(false, &[]);
        let streams = found.last().map_or(&[][..], |estimate| &estimate.streams);
        let unknown = self.base.estimate(Quantity::AvailableBandwidth, Value::Unknown, streams);
        found.push(unknown);
        self.base.found(found);
    }

    /// The capacity, the sustained rate and, with `rest`, the available bandwidth; all but the capacity get the warnings `more`.
    fn found(&self, rest: bool, more: &[Warning]) -> Vec<Estimate> {
        let faithful = Warning { code: WarningCode::Faithful, text: FAITHFUL.to_owned() };
        let said = self.base.said(self.config.faithful.then_some(faithful));
        let mut found = Vec::new();
        if let Some((bound, streams)) = &self.bound {
            let bound = self.base.estimate(Quantity::Capacity, Value::MoreThan(*bound), streams);
            found.push(Estimate { burst: Some(self.burst), ..bound });
        } else if self.config.capacity.is_none() {
            // A tight link's warning is about the available bandwidth, not about the narrow link.
            let said = said.iter().filter(|warning| warning.code != WarningCode::TightLink).cloned();
            let shown = [self.burst, self.config.packet_size];
            found.push(self.capacity.estimate(shown, &self.pair_streams, said.collect()));
        }
        let said: Vec<Warning> = said.into_iter().chain(more.iter().cloned()).collect();
        let streams = match (&self.bound, self.train_streams.is_empty()) {
            (Some((_, streams)), true) => streams,
            (None, true) => &self.pair_streams,
            (_, false) => &self.train_streams,
        };
        let lasts = self.policer.as_ref().map(|policer| policer.estimate(said.clone()));
        match (lasts, &self.shaper) {
            (Some(lasts), _) => found.push(lasts),
            (None, Some(shaper)) => found.push(shaper.estimate(said.clone())),
            _ if self.config.faithful || streams.is_empty() => {}
            _ => {
                let unseen = self.unseen.filter(|_| !self.trains.is_empty());
                found.push(shaper::unknown(unseen, streams, said.clone()));
            }
        }
        if rest {
            // A number, whatever the capacity is.
            let said = said.into_iter().filter(|warning| warning.code != WarningCode::LowerBound).collect();
            found.extend(self.rest(said));
        }
        warn_too_wide(&mut found, self.limit().rate);
        found
    }
}

impl Estimator for Wbest {
    fn step(&mut self) -> Step {
        if let Some(step) = self.base.step() {
            return step;
        }
        if let Phase::Batched(batched) = &self.phase
            && let Some(plan) = batched.plan()
        {
            return self.base.send(plan);
        }
        if matches!(self.phase, Phase::Train)
            && let Some(plan) = self.asks_singles()
        {
            self.phase = Phase::Singles;
            return self.base.send(plan);
        }
        let config = &self.config;
        let plan = match &self.phase {
            Phase::Pairs if config.faithful => {
                StreamPlan::pairs(config.pairs, config.packet_size, config.pair_gap)
            }
            Phase::Pairs => self.base.pairs(config.pairs, config.packet_size, config.pair_gap),
            Phase::Burst(check) => check.plan(),
            Phase::Aggregation(check) => check.plan(),
            Phase::Cell => Bursts::plan(config.packet_size),
            Phase::Shaper(check) => check.plan(),
            Phase::Policer(check) => check.plan(),
            Phase::FairQueue(share) => fair_queue::plan(*share, config.train_length, config.packet_size),
            Phase::Singles | Phase::Train | Phase::Batched(_) => match &self.shaper {
                Some(shaper) => shaper.train(config.train_length, config.packet_size),
                None => {
                    let rate = bits_per_second(self.capacity.rate);
                    StreamPlan::train(config.train_length, config.packet_size, rate)
                }
            },
        };
        self.base.send(plan)
    }

    fn on_stream(&mut self, record: &StreamRecord) {
        if self.base.is_done() {
            return;
        }
        self.least_delay = [self.least_delay, least_delay(record)].into_iter().flatten().min();
        self.noise = self.noise.max(self.base.noise(record));
        if record.direction == Direction::RoundTrip {
            self.base.warn(
                WarningCode::RoundTrip,
                "measured there and back: each direction has at least this available bandwidth, and more if others load both",
            );
        }
        match self.phase {
            Phase::Pairs => {
                let verdict = self.base.judge(record, 2 * self.config.pairs);
                self.on_pairs(record, verdict);
            }
            Phase::Burst(_) => {
                self.base.count(record);
                self.on_burst(record);
            }
            Phase::Aggregation(_) => {
                self.base.count(record);
                self.on_aggregation(record);
            }
            Phase::Cell => {
                self.base.count(record);
                self.on_cell(record);
            }
            Phase::Batched(_) => self.on_batched(record),
            Phase::Shaper(_) => {
                self.base.count(record);
                self.on_suspicion(record);
            }
            Phase::Policer(_) => {
                self.base.count(record);
                self.on_policed(record);
            }
            Phase::Singles => {
                self.base.count(record);
                self.singles = Some(record.clone());
                self.phase = Phase::Train;
                self.pause();
            }
            Phase::FairQueue(share) => {
                self.base.count(record);
                self.on_fair_queue(share, record);
            }
            Phase::Train => {
                let length = self.config.train_length;
                let shaper = self.shaper.as_ref();
                let tail = shaper.map(|shaper| (shaper.packets(length), shaper.tail(record)));
                let (planned, train) = tail.as_ref().map_or((length, record), |(n, tail)| (*n, tail));
                let verdict = match (self.base.judge(record, planned), &tail) {
                    (verdict, None) | (verdict @ StreamVerdict::NoReport, _) => verdict,
                    (_, Some((_, tail))) => judge(tail).verdict,
                };
                self.on_train(train, verdict);
            }
        }
    }

    fn shrink(&mut self, size: Bytes) -> bool {
        let has_begun = !self.pair_streams.is_empty() || !self.trains.is_empty();
        let shrinks = self.base.shrink(&mut self.config.packet_size, size, has_begun);
        if shrinks {
            (self.burst, self.unseen) = (size * 2, shaper::least_unseen(self.config.train_length, size));
        }
        shrinks
    }

    fn so_far(&self) -> Vec<Estimate> {
        // Bursts may yet overturn what pairs say, so that nothing counts before the trains.
        if self.base.is_done() || !matches!(self.phase, Phase::Train | Phase::Batched(_)) {
            return Vec::new();
        }
        let rest = !self.trains.is_empty() && !self.contradicts_capacity();
        let text = format!("from {} of {} trains", self.trains.len(), self.wanted());
        self.found(rest, &[Warning { code: WarningCode::Partial, text }][..usize::from(rest)])
    }
}
