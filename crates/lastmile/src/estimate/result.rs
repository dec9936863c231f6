//! Results of an estimator, and its reasons to give none.

use crate::estimate::StreamPlan;
use crate::report::{Pattern, StreamRecord};
use crate::time::Span;
use crate::units::{Bytes, Rate};

/// Result of an estimator.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Numbers, each with its quantity, in the order in which they should be shown.
    Found(Vec<Estimate>),
    /// No number that could be believed.
    Refused(Refusal),
}

/// Quantity that is estimated (RFC 5136's terms).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Quantity {
    /// Highest rate of the narrow link (WBest: effective capacity), for bursts of [`Estimate::burst`]: RFC 5136 has a
    /// capacity over an interval of time, and behind a token bucket a longer one gives less.
    Capacity,
    /// Rate of Wi-Fi that sends packets one by one, if each packet drew the shortest backoff and needed no retry. (CapProbe's
    /// value, and TFRC Probe's; the capacity has the mean of both.)
    ShortestExchange,
    /// Rate that the path carries however long: the least rate of any link or shaper (RFC 2697's committed information rate).
    SustainedRate,
    /// Part of the capacity, or of the sustained rate, that is left at the time.
    AvailableBandwidth,
    /// The rate of one flow that sends as much as goes, where that is not the available bandwidth: it may take from others.
    AchievableRate,
    /// If the rate that was asked about fits: an [`Answer`], or unknown.
    Enough,
}

impl core::fmt::Display for Quantity {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(match self {
            Quantity::Capacity => "capacity",
            Quantity::ShortestExchange => "shortest exchange",
            Quantity::SustainedRate => "sustained rate",
            Quantity::AvailableBandwidth => "available bandwidth",
            Quantity::AchievableRate => "achievable rate",
            Quantity::Enough => "enough",
        })
    }
}

/// Kind of truth that an estimate aims at. On a shared medium the two differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum TruthKind {
    /// The spare rate: it can be added without taking from others, and is read from the queue.
    Queue,
    /// The achievable rate: that of one saturating flow.
    Saturation,
}

/// The time over which a truth is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum TruthOver {
    /// The window of the estimate's own streams.
    Window,
    /// The whole run behind its warm-up (20 s at least where stations aggregate, of which no more is known): also where all streams
    /// came back to back, in no time.
    Run,
}

/// Why a truth of the 10 s after an estimate's last probe packet is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum NextMissing {
    /// The run ends before they are over.
    RunEnds,
    /// There is no estimate, or none of its streams reached the path.
    NoStreams,
    /// Stations aggregate: the truth is known of the whole run alone.
    Aggregation,
    /// A link has no rate then, or more happened at it than its log holds.
    Unlogged,
}

/// A rate, or what it is above of, or an answer, or none of these.
///
/// ```
/// use lastmile::{estimate::Value, units::Rate};
/// let bound = Value::MoreThan(Rate::ip(1_000_000_000));
/// assert_eq!((bound.rate(), bound.to_string()), (None, "more than 1 Gbit/s".into()));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Value {
    /// The rate.
    Is(Rate),
    /// The path is faster than these hosts can time: all that is known is a lower bound.
    MoreThan(Rate),
    /// The answer to a question.
    Answer(Answer),
    /// Nothing of what was sent shows it, or no more than its interval.
    Unknown,
}

impl Value {
    /// The rate, if it is one and not a bound.
    pub fn rate(self) -> Option<Rate> {
        match self {
            Value::Is(rate) => Some(rate),
            Value::MoreThan(_) | Value::Answer(_) | Value::Unknown => None,
        }
    }

    /// The answer, if it is one.
    pub fn answer(self) -> Option<Answer> {
        match self {
            Value::Answer(answer) => Some(answer),
            Value::Is(_) | Value::MoreThan(_) | Value::Unknown => None,
        }
    }
}

impl core::fmt::Display for Value {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Value::Is(rate) => rate.fmt(f),
            Value::MoreThan(rate) => f.pad(&format!("more than {rate}")),
            Value::Answer(answer) => answer.fmt(f),
            Value::Unknown => f.pad("unknown"),
        }
    }
}

/// Answer to the question if a rate fits.
///
/// ```
/// use lastmile::{estimate::Answer, units::Bytes};
/// let answer = Answer::AtOnce(Bytes(10_000));
/// assert_eq!((answer.code(), answer.to_string()), ("at-once", "yes, for 10 kB at once".into()));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Answer {
    /// It fits.
    Yes,
    /// It does not.
    No,
    /// It does not last, but so many bytes pass at once, behind a token bucket.
    AtOnce(Bytes),
}

impl Answer {
    /// The answer in one word that stays, for programs.
    pub fn code(self) -> &'static str {
        match self {
            Answer::Yes => "yes",
            Answer::No => "no",
            Answer::AtOnce(_) => "at-once",
        }
    }
}

impl core::fmt::Display for Answer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Answer::Yes => f.pad("yes"),
            Answer::No => f.pad("no"),
            Answer::AtOnce(bytes) => f.pad(&format!("yes, for {bytes} at once")),
        }
    }
}

/// Method by which an interval was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum IntervalMethod {
    /// Order statistics of the pairs' rates, distribution-free for their median, widened by what stamps and the rates of
    /// clocks may add alike to all pairs: holds the truth at least as often as stated.
    #[default]
    MedianOrderStatistics,
    /// Resampling of gaps, or of blocks of them, with replacement.
    BootstrapGaps,
    /// Spread of the rates that batches of packets show, on a path that delivers in batches: docs/quantities.md has its
    /// coverage.
    BatchSpread,
    /// Student's t over the trains' own estimates: of the next 10 s, not of the trains' windows
    /// ([`wbest`](super::wbest) has its coverage).
    StudentTrains,
    /// The readings of trains and pairs, each with its own error.
    PairsAndTrains,
    /// The least delays of the pairs' first and second packets, each shown by several packets: an empty path is met again, and
    /// differs by errors of stamps alone.
    LeastDelays,
    /// The standard errors of a regression, with Student's t.
    Regression,
    /// Rates at which a share of a fleet's streams, the confidence, saw delays stay or rise: the range of a rate that varies, and no
    /// interval with a tested coverage.
    GreyRegion,
}

/// An interval that holds the true value in a stated share of measurements.
///
/// ```
/// use lastmile::{estimate::{Interval, IntervalMethod}, units::Rate};
/// let interval = Interval {
///     low: Rate::ip(5_000_000), high: Rate::ip(7_000_000), confidence: 0.9, method: IntervalMethod::StudentTrains,
/// };
/// assert!(interval.contains(Rate::ip(5_000_000)) && !interval.contains(Rate::ip(8_000_000)));
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
    /// Method by which it was made.
    pub method: IntervalMethod,
}

impl Interval {
    /// True if `rate` lies within; false across layers.
    pub fn contains(&self, rate: Rate) -> bool {
        self.low <= rate && rate <= self.high
    }

    /// It, made as wide as to hold this rate.
    pub(super) fn reaching(self, rate: Rate) -> Interval {
        let method = if self.contains(rate) { self.method } else { IntervalMethod::PairsAndTrains };
        let low = if rate < self.low { rate } else { self.low };
        let high = if rate > self.high { rate } else { self.high };
        Interval { low, high, method, ..self }
    }
}

/// One number, with what is needed to judge it.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Estimate {
    /// Quantity that is estimated.
    pub quantity: Quantity,
    /// The rate at the IP layer and the probe's packet size.
    pub value: Value,
    /// Interval that holds the rate of the probe's own window with the stated confidence; `None` if no method with a tested
    /// coverage applies.
    pub interval: Option<Interval>,
    /// Interval of the mean over the next 10 s, for an available bandwidth alone, which others may change; `None` if too little
    /// was seen to tell.
    #[cfg_attr(feature = "serde", serde(default))]
    pub next: Option<Interval>,
    /// Kind of truth that it aims at.
    pub truth_kind: TruthKind,
    /// Bytes in one go that it was shown with, at the IP layer. For a capacity the burst. For an available bandwidth the train, or
    /// `None` if it is the rest of a known sustained rate. For a sustained rate the token bucket: about its size, or the
    /// least that it may have if the rate is unknown, or `None` if it may have any.
    #[cfg_attr(feature = "serde", serde(default))]
    pub burst: Option<Bytes>,
    /// Size of the IP packets that it was shown with: smaller ones get less where each costs time or headers.
    #[cfg_attr(feature = "serde", serde(default))]
    pub packet_size: Option<Bytes>,
    /// The streams it was made from: the truth is taken over their windows.
    pub streams: Vec<u32>,
    /// Notes for the user beside the number.
    #[cfg_attr(feature = "serde", serde(default))]
    pub warnings: Vec<Warning>,
}

impl Estimate {
    /// Name of the quantity, with the bytes in one go that it was shown with.
    ///
    /// ```
    /// use lastmile::{estimate::*, units::Bytes};
    /// let estimate = Base::new(Conditions::default()).estimate(Quantity::Capacity, Value::Unknown, &[]);
    /// let of_pairs = Estimate { burst: Some(Bytes(2976)), ..estimate };
    /// assert_eq!(of_pairs.named(), "capacity for bursts of 2976 B");
    /// ```
    pub fn named(&self) -> String {
        let quantity = self.quantity;
        match (self.burst, quantity, self.value) {
            (None, ..) => quantity.to_string(),
            (Some(bucket), Quantity::SustainedRate, Value::Unknown) if self.interval.is_none() => {
                format!("{quantity} behind a token bucket of {bucket} or more")
            }
            (Some(bucket), Quantity::SustainedRate, _) => {
                format!("{quantity} behind a token bucket of about {bucket}")
            }
            (Some(burst), ..) => format!("{quantity} for bursts of {burst}"),
        }
    }

    /// The answer in one word that stays, of a quantity that is a question.
    pub fn answer(&self) -> &'static str {
        self.value.answer().map_or("cannot-tell", Answer::code)
    }

    /// The texts of all warnings in one line.
    pub fn warning(&self) -> Option<String> {
        let texts: Vec<&str> = self.warnings.iter().map(|warning| warning.text.as_str()).collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    }
}

/// Note for the user beside a number.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Warning {
    /// For programs.
    pub code: WarningCode,
    /// For people, one line.
    pub text: String,
}

/// Subject of a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum WarningCode {
    /// The number is a lower bound; the text says why.
    LowerBound,
    /// Fewer streams than the method wants.
    Partial,
    /// Streams went there and back.
    RoundTrip,
    /// Packets had another size than was asked for.
    PacketSize,
    /// Trains are longer than the queue of many an access point.
    LongTrain,
    /// Arrivals were stamped in batches.
    BatchedStamps,
    /// Others' packets came between those of most packet pairs.
    Contended,
    /// Most packet pairs were spread, by others in a cell or at a link.
    Scattered,
    /// A busy link is behind the narrow one, and what is left there may be less.
    TightLink,
    /// A queue serves flows in turn, and others fill it.
    FairQueue,
    /// The path's rate changed meanwhile.
    Changing,
    /// Stamps are too coarse for a part of the method.
    CoarseStamps,
    /// The queue of a sender's own interface is part of the path.
    OwnQueue,
    /// The rules of the original program, without our checks.
    Faithful,
    /// A token bucket, or a fair queue, lets a burst pass faster than what follows.
    Shaper,
    /// A token bucket drops what it has no tokens for, and makes nothing wait.
    Policer,
    /// The interval is so wide that it says next to nothing.
    TooWide,
    /// A regression's line does not fit what came, or other packets contradict it.
    PoorFit,
    /// Any other subject.
    Other,
}

/// Gives each variant a word that stays, whatever becomes of its text.
macro_rules! codes {
    ($kind:ident: $($variant:ident = $code:literal),+ $(,)?) => {
        impl $kind {
            /// The words of all variants.
            pub const CODES: &[&str] = &[$($code),+];

            /// The variant in one word that stays, for programs.
            pub fn code(&self) -> &'static str {
                match self {
                    $($kind::$variant { .. } => $code),+
                }
            }
        }
    };
}
codes! { WarningCode:
    LowerBound = "lower-bound",
    Partial = "partial",
    RoundTrip = "round-trip",
    PacketSize = "packet-size",
    LongTrain = "long-train",
    BatchedStamps = "batched-stamps",
    Contended = "contended",
    Scattered = "scattered",
    TightLink = "tight-link",
    FairQueue = "fair-queue",
    Changing = "changing",
    CoarseStamps = "coarse-stamps",
    OwnQueue = "own-queue",
    Faithful = "faithful",
    Shaper = "shaper",
    Policer = "policer",
    TooWide = "too-wide",
    PoorFit = "poor-fit",
    Other = "other",
}
codes! { Refusal:
    ScheduleBroken = "schedule-broken",
    TooLossy = "too-lossy",
    Reordered = "reordered",
    Congested = "congested",
    QueueFull = "queue-full",
    ClockStepped = "clock-stepped",
    NotConverged = "not-converged",
    Unmarked = "unmarked",
    ByteLimit = "byte-limit",
    TimeLimit = "time-limit",
    TooLong = "too-long",
    Interrupted = "interrupted",
    RunOver = "run-over",
    NotRecorded = "not-recorded",
    PeerSilent = "peer-silent",
    PeerCannot = "peer-cannot",
    PeerAbsent = "peer-absent",
    Inconsistent = "inconsistent",
}

impl WarningCode {
    /// True if the number may be wrong. The other codes describe the measurement.
    ///
    /// ```
    /// use lastmile::estimate::WarningCode;
    /// assert!(WarningCode::TightLink.doubts() && !WarningCode::PacketSize.doubts());
    /// ```
    pub fn doubts(self) -> bool {
        use WarningCode::{Faithful, OwnQueue, PacketSize, RoundTrip};
        !matches!(self, RoundTrip | PacketSize | OwnQueue | Faithful)
    }
}

/// Reason to give no number.
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
    /// The path changes the order of packets too much for the method.
    #[error(
        "{overtaken} of {sent} packets came out of order: the path sends them over ways of different delay, and gaps between them say nothing"
    )]
    Reordered {
        /// Packets that arrived behind one that left later.
        overtaken: u32,
        /// Packets sent.
        sent: u32,
    },
    /// A queue overflowed while probes passed.
    #[error(
        "the queue overflowed: {lost} of {sent} packets of a train were lost, all where the queue was fullest; the path is congested, and its available bandwidth unknown"
    )]
    Congested {
        /// Packets of the train that were lost.
        lost: u32,
        /// Packets of the train.
        sent: u32,
    },
    /// A queue seems to have been full while probes passed.
    #[error(
        "the delay of {trains} trains in a row climbed and then stayed at its height, as at a full queue that drops others' packets; the path is congested, and its available bandwidth unknown"
    )]
    QueueFull {
        /// Trains that saw it.
        trains: u32,
    },
    /// A clock was stepped again and again.
    #[error("a clock was stepped while packets were stamped; set the time first, then measure")]
    ClockStepped,
    /// The search found no end.
    #[error(
        "no convergence after {streams} streams: the path's delay changes too much, as other traffic makes it; measure when there is less, or with another method"
    )]
    NotConverged {
        /// Streams sent.
        streams: u32,
    },
    /// The method counts marks of routers (ECN), and no packet had one.
    #[error(
        "no packet was marked (ECN), however fast packets came: {}; measure with another method",
        if *cleared { "a router, or the other host, clears the ECN field" } else { "no queue of the path marks" }
    )]
    Unmarked {
        /// True if packets arrived as ones that must not be marked.
        cleared: bool,
    },
    /// The next stream would go beyond the byte limit.
    #[error("the next stream would go beyond the limit of {limit}")]
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
    /// The next stream would be longer than any may be.
    #[error(
        "the next stream would take {lasts} for {packets} packets, and the limits are {} and {} packets: the path is too slow, or its stamps are wrong; measure with fewer or smaller packets",
        StreamPlan::LONGEST,
        StreamPlan::MOST
    )]
    TooLong {
        /// Its packets.
        packets: usize,
        /// From the first of them to the last.
        lasts: Span,
    },
    /// The measuring side ended it.
    #[error("interrupted")]
    Interrupted,
    /// A scenario's run was over before.
    #[error("the run ended before this measurement; prolong the run, or start the measurement earlier")]
    RunOver,
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
    #[error(
        "the peer stopped answering: its program ended, the network in between is down, or the path is congested"
    )]
    PeerSilent,
    /// The peer cannot do what this method needs.
    #[error("{0}")]
    PeerCannot(String),
    /// Nothing listens there, or no way leads there: the network says so.
    #[error("{0}")]
    PeerAbsent(String),
    /// The stamps contradict each other.
    #[error("{0}")]
    Inconsistent(String),
}

impl Refusal {
    /// This stream is longer than any may be.
    pub(crate) fn too_long(plan: &StreamPlan) -> Refusal {
        Refusal::TooLong { packets: plan.packets.len(), lasts: plan.duration() }
    }

    /// A queue overflowed while this train passed.
    pub(super) fn congested(train: &StreamRecord) -> Refusal {
        Refusal::Congested { lost: train.lost() as u32, sent: train.packets.len() as u32 }
    }
}
