//! Samples to capacity and available bandwidth: one file per tool.
//!
//! An [`Estimator`] is a probe pattern, a congestion signal and a turning-point search (seed 003, Table I). It
//! never sees a packet: it says what to send next ([`Step::Send`]), is given the [`StreamRecord`], and in the end
//! says what it found, or why it found nothing. Endpoints, recordings and the simulator drive it alike.

mod burst_check;
pub mod capprobe;
mod capprobe_config;
mod capprobe_minima;
mod registry;
pub mod wbest;
mod wbest_config;
mod wbest_fluid;
pub mod wbest_planner;

pub use burst_check::COALESCING;
pub use registry::{METHODS, Method, MethodConfig, MethodError, build};

use crate::node::Ecn;
use crate::report::{Pattern, StreamRecord};
use crate::time::Span;
use crate::units::{Bytes, Rate};

/// One packet of a stream that is to be sent.
///
/// ```
/// use lastmile::{estimate::ProbePacket, node::Ecn, time::Span, units::Bytes};
/// let first = ProbePacket { offset: Span::ZERO, size: Bytes(1488), ecn: Ecn::NotEct };
/// assert_eq!(first.size, Bytes(1488));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ProbePacket {
    /// When it leaves, counted from the stream's first packet. Equal offsets leave back to back.
    pub offset: Span,
    /// Its size at the IP layer.
    pub size: Bytes,
    /// Its ECN codepoint.
    pub ecn: Ecn,
}

/// A stream that is to be sent.
///
/// ```
/// use lastmile::{estimate::StreamPlan, time::Span, units::{Bytes, Rate}};
/// let train = StreamPlan::train(30, Bytes(1488), Rate::ip(10_000_000));
/// assert_eq!(train.packets[29].offset, Rate::ip(10_000_000).time_for(Bytes(1488) * 29));
/// let pairs = StreamPlan::pairs(30, Bytes(1488), Span::from_millis(10));
/// assert_eq!(pairs.bytes(), Bytes(60 * 1488));
/// assert_eq!(pairs.packets[2].offset, pairs.packets[3].offset);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct StreamPlan {
    /// Its shape.
    pub pattern: Pattern,
    /// Its packets, offsets never falling.
    pub packets: Vec<ProbePacket>,
}

impl StreamPlan {
    /// `n` pairs of back-to-back packets of `size` bytes at the IP layer, one pair every `gap`.
    ///
    /// ```
    /// # use lastmile::{estimate::StreamPlan, time::Span, units::Bytes};
    /// let plan = StreamPlan::pairs(2, Bytes(1488), Span::from_millis(10));
    /// assert_eq!((plan.packets.len(), plan.duration()), (4, Span::from_millis(10)));
    /// ```
    pub fn pairs(n: usize, size: Bytes, gap: Span) -> StreamPlan {
        let packet = |k: usize| ProbePacket { offset: gap * (k / 2) as i64, size, ecn: Ecn::NotEct };
        StreamPlan { pattern: Pattern::Pairs, packets: (0..2 * n).map(packet).collect() }
    }

    /// `n` packets of `size` bytes at `rate`, both at the IP layer.
    ///
    /// ```
    /// # use lastmile::{estimate::StreamPlan, time::Span, units::{Bytes, Rate}};
    /// let plan = StreamPlan::train(3, Bytes(1500), Rate::ip(10_000_000));
    /// assert_eq!(plan.duration(), Span::from_micros(2_400));
    /// ```
    pub fn train(n: usize, size: Bytes, rate: Rate) -> StreamPlan {
        // The offset is computed from the bytes before it, so that rounding does not add up.
        let packet =
            |k: usize| ProbePacket { offset: rate.time_for(size * k as u64), size, ecn: Ecn::NotEct };
        StreamPlan { pattern: Pattern::Train, packets: (0..n).map(packet).collect() }
    }

    /// `n` packets of `size` bytes at the IP layer, back to back.
    pub fn burst(n: usize, size: Bytes) -> StreamPlan {
        let packet = ProbePacket { offset: Span::ZERO, size, ecn: Ecn::NotEct };
        StreamPlan { pattern: Pattern::Burst, packets: vec![packet; n] }
    }

    /// Bytes at the IP layer.
    ///
    /// ```
    /// # use lastmile::{estimate::StreamPlan, time::Span, units::Bytes};
    /// assert_eq!(StreamPlan::pairs(1, Bytes(700), Span::ZERO).bytes(), Bytes(1400));
    /// ```
    pub fn bytes(&self) -> Bytes {
        self.packets.iter().map(|p| p.size).sum()
    }

    /// From the first packet to the last.
    ///
    /// ```
    /// # use lastmile::{estimate::StreamPlan, time::Span, units::Bytes};
    /// assert_eq!(StreamPlan::pairs(1, Bytes(700), Span::from_secs(1)).duration(), Span::ZERO);
    /// ```
    pub fn duration(&self) -> Span {
        self.packets.last().map_or(Span::ZERO, |p| p.offset)
    }
}

/// What an estimator wants next.
///
/// ```
/// use lastmile::{estimate::Step, time::Span};
/// assert_ne!(Step::Pause(Span::ZERO), Step::Pause(Span::from_millis(50)));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Send this stream and give back its record.
    Send(StreamPlan),
    /// Leave the path alone for so long, then ask again.
    Pause(Span),
    /// This is what it found.
    Done(Outcome),
}

/// What an estimator found.
///
/// ```
/// use lastmile::estimate::{Outcome, Refusal};
/// let nothing = Outcome::Refused(Refusal::NotConverged { streams: 100 });
/// assert!(matches!(nothing, Outcome::Refused(_)));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Numbers, each with its quantity, in the order in which they should be shown.
    Found(Vec<Estimate>),
    /// No number that could be believed.
    Refused(Refusal),
}

/// What is estimated (RFC 5136's terms).
///
/// ```
/// assert_eq!(lastmile::estimate::Quantity::Capacity.to_string(), "capacity");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Quantity {
    /// What the narrow link carries at most (WBest: effective capacity).
    Capacity,
    /// What of it is left now.
    AvailableBandwidth,
}

impl core::fmt::Display for Quantity {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(match self {
            Quantity::Capacity => "capacity",
            Quantity::AvailableBandwidth => "available bandwidth",
        })
    }
}

/// Which truth an estimate aims at. On a shared medium the two differ.
///
/// ```
/// use lastmile::estimate::TruthKind;
/// assert_ne!(TruthKind::Queue, TruthKind::Saturation);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum TruthKind {
    /// The spare rate: what can be added without taking from others, read from the queue.
    Queue,
    /// The achievable rate: what one saturating flow gets.
    Saturation,
}

/// A rate, or what it is above of.
///
/// ```
/// use lastmile::{estimate::Value, units::Rate};
/// assert_eq!(Value::MoreThan(Rate::ip(1_000_000_000)).to_string(), "more than 1 Gbit/s");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Value {
    /// The rate.
    Is(Rate),
    /// The path is faster than these hosts can time: all that is known is a lower bound.
    MoreThan(Rate),
}

impl Value {
    /// The rate, if it is one and not a bound.
    ///
    /// ```
    /// # use lastmile::{estimate::Value, units::Rate};
    /// assert_eq!(Value::MoreThan(Rate::ip(9)).rate(), None);
    /// ```
    pub fn rate(self) -> Option<Rate> {
        match self {
            Value::Is(rate) => Some(rate),
            Value::MoreThan(_) => None,
        }
    }
}

impl core::fmt::Display for Value {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Value::Is(rate) => rate.fmt(f),
            Value::MoreThan(rate) => f.pad(&format!("more than {rate}")),
        }
    }
}

/// How an interval was made.
///
/// ```
/// use lastmile::estimate::IntervalMethod;
/// assert_ne!(IntervalMethod::BootstrapGaps, IntervalMethod::StudentTrains);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum IntervalMethod {
    /// Order statistics of the pairs' rates, distribution-free for their median, widened by what stamps and the rates of
    /// clocks may add alike to all pairs: holds the truth at least as often as stated.
    MedianOrderStatistics,
    /// Resampling of gaps, or of blocks of them, with replacement.
    BootstrapGaps,
    /// Student's t over the trains' own estimates: of the long-run spare rate, not of the trains' windows
    /// ([`wbest`] says with which coverage).
    StudentTrains,
}

/// An interval that holds the true value in a stated share of measurements.
///
/// ```
/// use lastmile::{estimate::{Interval, IntervalMethod}, units::Rate};
/// let interval = Interval {
///     low: Rate::ip(5_000_000), high: Rate::ip(7_000_000), confidence: 0.9, method: IntervalMethod::StudentTrains,
/// };
/// assert!(interval.contains(Rate::ip(6_000_000)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Interval {
    /// The lower end.
    pub low: Rate,
    /// The upper end.
    pub high: Rate,
    /// The nominal share of measurements whose interval holds the truth.
    pub confidence: f64,
    /// How it was made.
    pub method: IntervalMethod,
}

impl Interval {
    /// Whether `rate` lies within; false across layers.
    ///
    /// ```
    /// # use lastmile::{estimate::{Interval, IntervalMethod}, units::Rate};
    /// # let interval = Interval { low: Rate::ip(5), high: Rate::ip(7), confidence: 0.9, method: IntervalMethod::StudentTrains };
    /// assert!(interval.contains(Rate::ip(5)) && !interval.contains(Rate::ip(8)));
    /// ```
    pub fn contains(&self, rate: Rate) -> bool {
        self.low <= rate && rate <= self.high
    }
}

/// One number, with what is needed to judge it.
///
/// ```
/// use lastmile::{estimate::*, units::Rate};
/// let estimate = Estimate {
///     quantity: Quantity::Capacity, value: Value::Is(Rate::ip(10_000_000)), interval: None,
///     truth_kind: TruthKind::Queue, streams: vec![1], warning: None,
/// };
/// assert_eq!(estimate.value.to_string(), "10 Mbit/s");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Estimate {
    /// What it is.
    pub quantity: Quantity,
    /// The rate at the IP layer and the probe's packet size.
    pub value: Value,
    /// Where the truth lies with the stated confidence; `None` where no method with a tested coverage applies.
    pub interval: Option<Interval>,
    /// Which truth it aims at.
    pub truth_kind: TruthKind,
    /// The streams it was made from: the truth is taken over their windows.
    pub streams: Vec<u32>,
    /// What the user should know beside the number.
    pub warning: Option<String>,
}

/// Why there is no number.
///
/// ```
/// use lastmile::estimate::Refusal;
/// assert_eq!(Refusal::PeerSilent.to_string(), "the peer stopped answering");
/// ```
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Refusal {
    /// This host, or the peer's, could not keep the schedule.
    #[error(
        "{discarded} of {sent} streams missed their schedule: a host is too busy to time packets; try again when it is idle, or with --realtime"
    )]
    ScheduleBroken {
        /// Streams sent.
        sent: u32,
        /// Streams not believed.
        discarded: u32,
    },
    /// The path loses too much for the method.
    #[error("{lost} of {sent} packets were lost: too many for this method")]
    TooLossy {
        /// Packets lost.
        lost: u32,
        /// Packets sent.
        sent: u32,
    },
    /// A queue overflowed while probes passed.
    #[error(
        "the queue overflowed: {lost} of {sent} packets of a train were lost at the height of its delay; the path is congested, and what is left of it cannot be told"
    )]
    Congested {
        /// Packets of the train that were lost.
        lost: u32,
        /// Packets of the train.
        sent: u32,
    },
    /// A queue seems to have been full while probes passed.
    #[error(
        "the delay of {trains} trains in a row climbed and then stayed at its height, as at a full queue that drops others' packets; the path is congested, and what is left of it cannot be told"
    )]
    QueueFull {
        /// Trains that saw it.
        trains: u32,
    },
    /// A clock was stepped again and again.
    #[error("a clock was stepped while packets were stamped; set the time first, then measure")]
    ClockStepped,
    /// The search found no end.
    #[error("no convergence after {streams} streams: the path's delay changes too much")]
    NotConverged {
        /// Streams sent.
        streams: u32,
    },
    /// The next stream would go beyond the byte limit.
    #[error("the next stream would go beyond the limit of {limit}; raise --max-bytes")]
    ByteLimit {
        /// The limit.
        limit: Bytes,
    },
    /// The time is up.
    #[error("no result within the limit of {limit}; raise --max-seconds")]
    TimeLimit {
        /// The limit.
        limit: Span,
    },
    /// Whoever measures ended it.
    #[error("interrupted")]
    Interrupted,
    /// Of streams that were recorded there are too few, or they have another shape.
    #[error(
        "the method wants at least {} stream{} of {packets} packets of {size} as {pattern}, and {recorded} {} recorded",
        recorded + 1,
        if *recorded == 0 { "" } else { "s" },
        if *recorded == 1 { "was" } else { "were" }
    )]
    NotRecorded {
        /// The shape that is wanted.
        pattern: Pattern,
        /// Its packets.
        packets: usize,
        /// The size of the first.
        size: Bytes,
        /// Recorded streams of that shape.
        recorded: usize,
    },
    /// The peer stopped answering.
    #[error("the peer stopped answering")]
    PeerSilent,
    /// The peer cannot do what this method needs.
    #[error("{0}")]
    PeerCannot(String),
    /// The stamps contradict each other.
    #[error("{0}")]
    Inconsistent(String),
}

/// A tool's state machine.
///
/// ```
/// use lastmile::estimate::{MethodConfig, Step, build};
/// let mut wbest = build("wbest", &MethodConfig::default())?;
/// let Step::Send(plan) = wbest.step() else { panic!() };
/// assert_eq!(plan.packets.len(), 60); // thirty pairs
/// # Ok::<(), lastmile::estimate::MethodError>(())
/// ```
pub trait Estimator: Send {
    /// What to do next. Asked again only after the record of a stream was given, a pause is over, or
    /// at the start.
    fn step(&mut self) -> Step;

    /// Takes in what became of the stream that [`step`](Estimator::step) asked for.
    fn on_stream(&mut self, record: &StreamRecord);

    /// What it can already vouch for, where it is not asked any more: a limit was reached, or the user had enough.
    /// Nothing once [`step`](Estimator::step) has said [`Step::Done`].
    fn so_far(&self) -> Vec<Estimate> {
        Vec::new()
    }
}

/// Runs an estimator over streams that were recorded: each plan gets the next one of its shape, that is of its pattern,
/// as many packets and their sizes.
///
/// A recording that lacks one is a [`Refusal::NotRecorded`]; what the estimator can vouch for even so, it says by
/// [`so_far`](Estimator::so_far).
///
/// ```
/// use lastmile::estimate::{MethodConfig, Outcome, build, replay};
/// let mut capprobe = build("capprobe", &MethodConfig::default())?;
/// let Outcome::Refused(why) = replay(&mut *capprobe, &[]) else { panic!() };
/// assert_eq!(why.to_string(), "the method wants at least 1 stream of 40 packets of 1488 B as pairs, and 0 were recorded");
/// # Ok::<(), lastmile::estimate::MethodError>(())
/// ```
pub fn replay(estimator: &mut dyn Estimator, records: &[StreamRecord]) -> Outcome {
    let mut used = vec![false; records.len()];
    loop {
        match estimator.step() {
            Step::Pause(_) => {}
            Step::Done(outcome) => return outcome,
            Step::Send(plan) => {
                let Some(next) = (0..records.len()).find(|&i| !used[i] && fits(&plan, &records[i])) else {
                    let recorded = records.iter().filter(|record| fits(&plan, record)).count();
                    return Outcome::Refused(Refusal::NotRecorded {
                        pattern: plan.pattern,
                        packets: plan.packets.len(),
                        size: plan.packets.first().map_or(Bytes::ZERO, |p| p.size),
                        recorded,
                    });
                };
                used[next] = true;
                estimator.on_stream(&records[next]);
            }
        }
    }
}

/// Whether a recorded stream is what a plan asks for.
fn fits(plan: &StreamPlan, record: &StreamRecord) -> bool {
    // Reflectors round sizes down to multiples of four (asymmetrical-pkts, 3), and some add an HMAC TLV of 20 bytes.
    let alike = |planned: Bytes, got: Bytes| got.0 + 4 > planned.0 && got.0 <= planned.0 + 20;
    plan.pattern == record.pattern
        && plan.packets.len() == record.packets.len()
        && plan.packets.iter().zip(&record.packets).all(|(p, r)| alike(p.size, r.size))
}
