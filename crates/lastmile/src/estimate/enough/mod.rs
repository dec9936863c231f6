//! Is it enough: will a rate fit on the path, yes or no, for as few bytes as a stated confidence needs.
//!
//! The question is about an outcome: a stream of the rate R for the next 10 s loses less than 1 %, waits at most 50 ms longer in 95 of 100
//! packets, and takes no more than 5 % from others. The outcome is yes if more than R is left. Each observation is a share y of 0 to 1 whose mean is
//! bounded by what is left, A, if the answer is no, and by another bound if it is yes (`bets` has the test, and why it holds though trains of one
//! path depend on each other: Waudby-Smith, Ramdas, "Estimating means of bounded random variables by betting", J. Royal Statistical Society B 86,
//! 2024). Between 0.9 and 1.1 R no answer is wrong, and none may come: `cannot tell`.
//!
//! Sources of the shares:
//!
//! - **Trains at 2 R.** At a FIFO of capacity C each packet of a train of rate R' > A adds, in the mean, `(L / C) (1 - A / R')` to the delay
//!   (WBest's fluid model, eq. 13, by the packet); a fair queue, a shaper or a policer adds more, or loses as much. So y, 1 less that
//!   growth in units of L / C, has the mean A / R' or less, for blocks of four packets. Twice the rate, because a train at R tells a path
//!   with much room from one with just enough only by its noise, and because a token bucket empties sooner.
//! - **Pairs of the train.** Packets go in pairs, which show C. If the rate fits, half of them come as fast as R.
//! - **Small packets at random times.** The share that met nobody is A / C at a single busy link (`idle`): an observation for 200
//!   bytes. They are far enough apart that most queues forget in between.
//!   Where the link is slower than the rate they tell nothing, and trains alone count.
//! - **Losses** of small packets are bets on 1 % or less against 5 % or more. Once a packet was lost, no yes comes before these are decided. A path
//!   that loses 5 % shows none in the 46 packets of a quick yes once in ten times.
//! - **Wi-Fi that aggregates** delays packets by what others' and its own aggregates do; there longer trains at 2 R are all, and y is the rate at
//!   which blocks came by that at which they went.
//!
//! Before a yes the end of the trains must bear small packets out. If it came out much slower, a burst looks for a **token bucket**, which small
//! packets never empty. Then all bets begin anew, once, with trains behind a head that empties it; a no is `only at once`, with the bytes that pass. Bets against yes
//! have half of the error before that and half after it. Bets against no have all of it both times: a burst goes only after no was refuted, so that
//! a wrong yes after it needs a wrong refutation before it, unless a bucket was found, of which the bets before know nothing.
//!
//! All but the test is our own. A bucket that holds more than half of the train is not seen, and none where pairs cannot be timed.

mod bets;
mod read;
mod streams;

use self::bets::{Bets, Losses};
use self::read::{Block, Bucket};
use crate::estimate::{
    Answer, Base, Conditions, Estimate, Estimator, Method, Probes, Quantity, Search, Signal, Step,
    StreamPlan, Value, Warning, WarningCode, bits_per_second,
};
use crate::observe::StreamVerdict;
use crate::observe::pairs::Pair;
use crate::options::Options;
use crate::report::{Pattern, StreamRecord};
use crate::time::Span;
use crate::units::{Bytes, Rate};

crate::options! {
    /// Parameters of `enough`.
    pub struct EnoughConfig {
        /// The rate of IP packets that is asked about
        rate: Rate [Rate::ip(10_000)..=Rate::ip(1_000_000_000_000)] = Rate::ip(5_000_000), "our own: an example";
        /// Probability that an answer is right, at least, if the assumptions hold
        confidence: f64 [0.5..=0.9999] = 0.95, "our own";
        /// Rounds of small packets, each second one with a train, until it cannot be told
        rounds: usize [1..=1_000] = 12, "our own";
        /// Small packets of a round
        singles: usize [10..=1_000] = 30, "our own";
        /// Mean time between small packets, half more or less
        single_gap: Span [Span::from_millis(1)..=Span::from_secs(1)] = Span::from_millis(15), "our own";
        /// Between streams, half more or less, and longer where a queue has to drain
        pause: Span [Span::ZERO..=Span::from_secs(60)] = Span::from_millis(30), "our own";
        /// Size of the packets of trains at the IP layer
        packet_size: Bytes [Bytes(200)..=Bytes(65_000)] = Bytes(1488), "our own: as WBest's";
    }
}

/// Its place in the registry.
pub const ENTRY: Method = Method {
    name: "enough",
    about: "if a rate fits, yes or no: bets on short trains at twice the rate and on small packets that met nobody",
    paper: "our own; the test: Waudby-Smith, Ramdas, J. Royal Statistical Society B, 2024",
    estimates: &[Quantity::Enough],
    pattern: &[Probes::Trains, Probes::Packets],
    signal: Signal::Delay,
    search: &[Search::Algorithmic],
    weak: "behind a token bucket that holds more than half of a train, or any where pairs cannot be timed: it is not seen",
    round_trip: true,
    in_all: false,
    resolution: "any: where pairs cannot be timed it knows a bound of the capacity",
    options: EnoughConfig::OPTIONS,
    brief: &[("rounds", "2")],
    make: |given, conditions| Ok(Box::new(Enough::new(EnoughConfig::read(given)?, *conditions))),
};

/// If from 1 - this to 1 + this of the rate is left, either answer may come: the zone of indifference.
pub const ZONE: f64 = 0.1;
/// Trains go at so many times the rate.
const TIMES: f64 = 2.0;
/// Pairs of a train.
const PAIRS: usize = 8;
/// A link that is so many times as fast as the rate may be behind a shaper: then a longer train goes before a yes.
const STEEP: f64 = 4.0;
const MORE_PAIRS: usize = 10;
/// Behind a bucket, where the queue is busy from the first packet on, a slower train tells more. At 1.5 times a rate that just fits costs bets
/// against yes (1.1 / 1.5 - 1 / 1.5) / (1 - 1.1 / 1.5) = 0.25 of a stake and bets against no 0.11: `only at once` came first.
const TIMES_BEHIND: f64 = 1.75;
/// Packets behind the head that empties a bucket.
const TAIL: usize = 36;
/// Packets of a train on a path that aggregates, which has to span several frames.
const LONG: usize = 42;
/// These go at so many times the rate: nearer to it, shares of trains that fit and of others are further apart.
const TIMES_IN_FRAMES: f64 = 1.5;
/// The size of small packets.
const SMALL: Bytes = Bytes(200);
/// Packets of the burst that looks for a bucket.
const BURST: usize = 20;
/// The end of trains bears small packets out if it came at this share of what these say, or faster.
const BORNE_OUT: f64 = 0.75;
/// Where the link is steep, trains are later by so many packets' times at most: others' packets on the link make as much, a queue more.
const LATE: f64 = 3.0;
/// Streams in a row that may tell nothing.
const ATTEMPTS: u32 = 6;

#[derive(Debug)]
enum Phase {
    Train,
    Singles,
    Burst,
}

/// The narrow link, as pairs showed it.
#[derive(Clone, Debug, PartialEq)]
struct Narrow {
    /// A packet's time there.
    slot: Span,
    /// True if pairs scatter, as backoffs make them.
    is_cell: bool,
    pairs: Vec<Pair>,
}

/// The tool.
///
/// ```
/// use lastmile::estimate::{Estimator, Step, enough::{Enough, EnoughConfig}};
/// use lastmile::units::Rate;
/// let config = EnoughConfig { rate: Rate::ip(3_000_000), ..EnoughConfig::default() };
/// let mut enough = Enough::new(config, Default::default());
/// let Step::Send(plan) = enough.step() else { panic!("it starts with a train") };
/// assert_eq!(plan.packets.len(), 16);
/// // Eight pairs at twice the rate.
/// assert_eq!(plan.packets[2].offset, Rate::ip(6_000_000).time_for(plan.packets[0].size * 2));
/// ```
pub struct Enough {
    config: EnoughConfig,
    base: Base,
    phase: Phase,
    bets: Bets,
    losses: Losses,
    /// Whole trains that counted.
    wholes: usize,
    /// Blocks of trains, for bets that begin anew.
    blocks: Vec<Block>,
    narrow: Option<Narrow>,
    /// Small packets that met nobody, and all that tell.
    idle: (usize, usize),
    /// Rates at which the ends of trains came, in bit/s.
    ends: Vec<f64>,
    rounds: usize,
    /// Pairs tell nothing: stations aggregate, or these hosts cannot time the path.
    trains_alone: bool,
    bucket: Option<Bucket>,
    /// Small packets and the ends of trains contradict each other, and there is no bucket: trains alone count.
    contradicted: bool,
    /// A burst bore small packets out.
    borne_out: bool,
    bursts: u32,
    singles_lost: (usize, usize),
    streams: Vec<u32>,
}

impl Enough {
    /// Ready to start.
    pub fn new(config: EnoughConfig, conditions: Conditions) -> Enough {
        Enough {
            config,
            base: Base::new(conditions),
            phase: Phase::Train,
            bets: Bets::default(),
            losses: Losses::default(),
            wholes: 0,
            blocks: Vec::new(),
            narrow: None,
            idle: (0, 0),
            ends: Vec::new(),
            rounds: 0,
            trains_alone: false,
            bucket: None,
            contradicted: false,
            borne_out: false,
            bursts: 0,
            singles_lost: (0, 0),
            streams: Vec::new(),
        }
    }

    /// The rate asked about, in bit/s.
    fn rate(&self) -> f64 {
        self.config.rate.bits_per_second() as f64
    }

    fn train(&self) -> StreamPlan {
        let size = self.config.packet_size;
        let rate = bits_per_second(TIMES * self.rate());
        match &self.bucket {
            Some(bucket) => bucket.train(TAIL, size, bits_per_second(TIMES_BEHIND * self.rate())),
            None if self.trains_alone => {
                let rate = bits_per_second(TIMES_IN_FRAMES * self.rate());
                StreamPlan { pattern: Pattern::Uneven, ..StreamPlan::train(LONG, size, rate) }
            }
            None => StreamPlan::pairs(self.pairs(), size, rate.time_for(size * 2)),
        }
    }

    /// Pairs of the next train.
    fn pairs(&self) -> usize {
        if self.is_steep() && !self.ends.is_empty() { MORE_PAIRS } else { PAIRS }
    }

    /// True if the link is so much faster than the rate that a shaper is likely.
    fn is_steep(&self) -> bool {
        let takes =
            |narrow: &Narrow| self.config.rate.time_for(self.config.packet_size) >= narrow.slot.scaled(STEEP);
        !self.trains_alone && self.narrow.as_ref().is_some_and(takes)
    }

    /// True if the link is slower than the rate. Small packets bet nothing then: those that met nobody are no reason for yes, and against a no that
    /// is true they lose their whole stake, since the bound of their mean is above 1.
    fn is_slower(&self) -> bool {
        let slower = |narrow: &Narrow| narrow.slot > self.config.rate.time_for(self.config.packet_size);
        self.narrow.as_ref().is_some_and(slower)
    }

    /// True if trains alone count.
    fn counts_trains(&self) -> bool {
        self.trains_alone || self.bucket.is_some() || self.contradicted || self.is_slower()
    }

    fn singles(&mut self) -> StreamPlan {
        let slot = self.narrow.as_ref().map_or(Span::ZERO, |narrow| narrow.slot);
        let gap = self.config.single_gap.max(slot);
        let mut at = Span::ZERO;
        let mut next = || {
            at += gap.scaled(0.5 + self.base.draw());
            at
        };
        let offsets: Vec<Span> = (0..self.config.singles).map(|_| next()).collect();
        StreamPlan::uneven(offsets, SMALL)
    }

    /// Ends if the answer is clear, or looks for what may be wrong with it.
    fn decide(&mut self) {
        if self.base.is_done() || matches!(self.phase, Phase::Burst) {
            return;
        }
        let confidence = self.config.confidence;
        if self.losses.are_many(confidence) {
            return self.base.found(vec![self.estimate(Value::Answer(Answer::No))]);
        }
        let answer = self.bets.answer(confidence);
        if answer == Some(true) && self.losses.are_open(confidence) {
            // Small packets tell if the path loses too many at any rate.
            self.phase = Phase::Singles;
            if self.rounds >= self.config.rounds {
                let (lost, sent) = self.singles_lost;
                self.give_up(format!(
                    "trains say yes, but {lost} of {sent} small packets were lost, too few packets to tell 1 % from 5 %"
                ));
            }
            return;
        }
        if answer == Some(true) && self.contradicts() {
            self.phase = Phase::Burst;
            return;
        }
        if answer == Some(true) && self.is_steep() && self.bucket.is_none() && self.ends.len() < 2 {
            self.phase = Phase::Train;
            return;
        }
        let trains = self.ends.len() + self.wholes;
        let is_over = if self.counts_trains() {
            trains > self.config.rounds
        } else {
            self.rounds >= self.config.rounds
        };
        let value = match (answer, &self.bucket) {
            (Some(true), _) => Answer::Yes,
            (Some(false), Some(bucket)) => Answer::AtOnce(bucket.bytes()),
            (Some(false), None) => Answer::No,
            (None, _) if is_over => return self.give_up(self.open()),
            (None, _) => return,
        };
        if answer == Some(true) && self.trains_alone {
            self.base.warn(
                WarningCode::CoarseStamps,
                "packet pairs tell nothing here, whole trains alone count, and a token bucket of any size would not be seen",
            );
        }
        self.base.found(vec![self.estimate(Value::Answer(value))]);
    }

    /// Ends without an answer, for this reason.
    fn give_up(&mut self, text: String) {
        let mut estimate = self.estimate(Value::Unknown);
        estimate.warnings.insert(0, Warning { code: WarningCode::Other, text });
        self.base.found(vec![estimate]);
    }

    /// The reason why rounds leave the answer open.
    fn open(&self) -> String {
        let streams = self.streams.len();
        let enough = 1.0 / (1.0 - self.config.confidence);
        let [no, yes] = self.bets.wealth().map(|wealth| wealth >= enough);
        if no && yes {
            format!(
                "{streams} streams contradict both answers: some of them met another load than the others"
            )
        } else {
            format!(
                "{streams} streams, the limit of {} rounds, leave both answers open: the rate may be within a tenth of what is left, or others' traffic varies",
                self.config.rounds
            )
        }
    }

    fn estimate(&self, value: Value) -> Estimate {
        let (lost, sent) = self.singles_lost;
        let lossy = Warning {
            code: WarningCode::Other,
            text: format!("{lost} of {sent} small packets were lost, which no queue of their own explains"),
        };
        let mut estimate = self.base.estimate(Quantity::Enough, value, &self.streams);
        estimate.burst = match value {
            Value::Answer(Answer::AtOnce(bytes)) => Some(bytes),
            // Behind a head that empties a bucket the rate lasts.
            Value::Answer(Answer::Yes) => {
                (self.bucket.is_none() && !self.trains_alone).then(|| self.train().bytes())
            }
            _ => estimate.burst,
        };
        estimate.warnings.extend((lost > 0).then_some(lossy));
        estimate
    }
}

impl Estimator for Enough {
    fn step(&mut self) -> Step {
        if let Some(step) = self.base.step() {
            return step;
        }
        let plan = match &self.phase {
            Phase::Train => self.train(),
            Phase::Burst => StreamPlan::burst(BURST, self.config.packet_size),
            Phase::Singles => self.singles(),
        };
        self.base.send(plan)
    }

    fn on_stream(&mut self, record: &StreamRecord) {
        if self.base.is_done() {
            return;
        }
        let planned = match &self.phase {
            Phase::Train => self.train().packets.len(),
            Phase::Burst => BURST,
            Phase::Singles => self.config.singles,
        };
        let verdict = self.base.judge(record, planned);
        if self.base.round_trip() {
            self.base
                .warn(WarningCode::RoundTrip, "measured there and back: a no may be of either direction");
        }
        let whole = !matches!(verdict, StreamVerdict::NoReport | StreamVerdict::ClockStepped);
        match self.phase {
            Phase::Train => self.on_train(record, verdict),
            _ if !whole || verdict == StreamVerdict::Reordered => self.base.waste(verdict, ATTEMPTS),
            Phase::Singles => self.on_singles(record),
            Phase::Burst => self.on_burst(record),
        }
        self.decide();
        let times = || record.packets.iter().filter_map(|p| p.owd());
        let waited = times().max().zip(times().min()).map_or(Span::ZERO, |(most, least)| most - least);
        let queues = record.pattern != Pattern::Uneven || self.bucket.is_some() || self.trains_alone;
        let drains = if queues { (waited * 4).min(Span::from_secs(1)) } else { Span::ZERO };
        let pause = self.config.pause.scaled(0.5 + self.base.draw());
        self.base.pause(pause.max(drains));
    }

    fn shrink(&mut self, size: Bytes) -> bool {
        self.base.shrink(&mut self.config.packet_size, size, self.narrow.is_some())
    }

    fn so_far(&self) -> Vec<Estimate> {
        if self.base.is_done() || self.streams.is_empty() {
            return Vec::new();
        }
        let text = match self.streams.len() {
            1 => "from one stream, which leaves the answer open".to_owned(),
            streams => format!("from {streams} streams, which leave the answer open"),
        };
        let mut estimate = self.estimate(Value::Unknown);
        estimate.warnings.push(Warning { code: WarningCode::Partial, text });
        vec![estimate]
    }
}

#[cfg(test)]
mod tests;
