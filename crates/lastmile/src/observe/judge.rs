//! The verdict on a stream that its event carries, and by which estimators believe it or not.

use crate::observe::burst::{Burst, MIN_ARRIVED};
use crate::observe::order::{Order, clock_stepped, reordered};
use crate::observe::pairs::{BACK_TO_BACK, PairSet, Timing};
use crate::observe::schedule::Schedule;
use crate::observe::train;
use crate::report::{Pattern, StreamRecord};
use crate::time::Span;

/// Verdict on a stream: believed, or the reason why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum StreamVerdict {
    /// It counts.
    #[error("believed")]
    Believed,
    /// Too few gaps left as planned: this host was late.
    #[error("discarded: its departures missed the schedule")]
    ScheduleBroken,
    /// Too few packets came.
    #[error("discarded: too many packets were lost")]
    TooLossy,
    /// Too many packets came out of order.
    #[error("discarded: too many packets came out of order")]
    Reordered,
    /// A clock was stepped meanwhile.
    #[error("discarded: a clock was stepped while it ran")]
    ClockStepped,
    /// Its report did not come.
    #[error("discarded: no report came")]
    NoReport,
}

impl StreamVerdict {
    /// The reason not to count a stream that told nothing: its verdict, or `else_for` where it was believed.
    ///
    /// ```
    /// use lastmile::observe::StreamVerdict::{Believed, ScheduleBroken, TooLossy};
    /// assert_eq!(Believed.or(ScheduleBroken), ScheduleBroken);
    /// assert_eq!(TooLossy.or(ScheduleBroken), TooLossy);
    /// ```
    #[must_use]
    pub fn or(self, else_for: StreamVerdict) -> StreamVerdict {
        if self == StreamVerdict::Believed { else_for } else { self }
    }
}

/// Judgement of a stream that holds for every method.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    /// Gaps whose departures kept the schedule.
    pub gaps_held: u32,
    /// Verdict on the stream.
    pub verdict: StreamVerdict,
}

/// A stream that cannot be used, of which more than this share was overtaken, was spoilt by that.
const REORDERED: usize = 20;
/// Pairs of a stream that must be usable, as a share.
const PAIRS_SHARE: usize = 3;

/// Judges a stream by its schedule, its losses and its clocks.
///
/// A train is believed if half of it can be used ([`train::enough`]), a stream of pairs if a third can be used, or if
/// enough of them say that the path is too fast to be timed, and a burst if a few packets arrived ([`Burst::of`]), or all of a shorter one.
///
/// ```
/// use lastmile::{node::Ecn, observe::{StreamVerdict, judge}, report::*, time::{Span, Time}, units::Bytes};
/// let packet = |seq: u64| PacketReport {
///     seq, size: Bytes(1488), sent: Time::from_nanos(seq * 1_000), fate: Fate::Lost, ecn: Ecn::NotEct,
/// };
/// let record = StreamRecord {
///     stream: 1, direction: Direction::Forward, pattern: Pattern::Train,
///     planned: (0..30).map(Span::from_micros).collect(), packets: (0..30).map(packet).collect(),
///     tx_resolution: Span::from_nanos(1), rx_resolution: Span::from_nanos(1), clock_stepped: false,
/// };
/// let judged = judge(&record);
/// assert_eq!((judged.gaps_held, judged.verdict), (29, StreamVerdict::TooLossy));
/// ```
pub fn judge(record: &StreamRecord) -> Judged {
    let schedule = Schedule::of(record);
    let n = record.packets.len();
    let (gaps_held, enough) = match record.pattern {
        Pattern::Pairs => {
            let pairs = PairSet::of(record);
            let fast = !matches!(pairs.timing(Span::ZERO), Timing::Timed);
            let usable = !pairs.usable.is_empty() && pairs.usable.len() * PAIRS_SHARE * 2 >= n;
            let enough = usable || (fast && pairs.arrived().count() * PAIRS_SHARE * 2 >= n);
            // The gaps between pairs are no measure of anything.
            ((1..n).step_by(2).filter(|i| schedule.held()[*i]).count(), enough)
        }
        Pattern::Burst => {
            let together = |i: &usize| {
                record.send_gap(*i).is_some_and(|(sent, _)| (Span::ZERO..=BACK_TO_BACK).contains(&sent))
            };
            let all =
                (2..MIN_ARRIVED).contains(&n) && record.packets.iter().all(|p| p.fate.arrived().is_some());
            ((1..n).filter(together).count(), all || Burst::of(record, None).is_some())
        }
        // A tool knows by itself the gaps that it needs.
        Pattern::Uneven => (schedule.count(), schedule.count() * 2 > n.saturating_sub(1)),
        Pattern::Train => (schedule.count(), train::enough(record, &train::runs_of(record))),
    };
    let overtaken = Order::of(record).overtaken();
    let verdict = if clock_stepped(record) {
        StreamVerdict::ClockStepped
    } else if reordered(record.pattern, overtaken, n) {
        StreamVerdict::Reordered
    } else if enough {
        StreamVerdict::Believed
    } else if record.lost() * 4 > n || (record.pattern == Pattern::Burst && record.lost() > 0) {
        StreamVerdict::TooLossy
    } else if overtaken * REORDERED > n {
        StreamVerdict::Reordered
    } else {
        cause(record)
    };
    Judged { gaps_held: u32::try_from(gaps_held).unwrap_or(u32::MAX), verdict }
}

/// The reason why a stream that came in order tells nothing: losses, if packets were lost and half of the gaps that can be seen kept the
/// schedule; else hosts.
pub(crate) fn cause(record: &StreamRecord) -> StreamVerdict {
    let schedule = Schedule::of(record);
    let seen = || (1..record.packets.len()).filter(|i| record.receive_gap(*i).is_some());
    let kept = seen().filter(|i| schedule.held()[*i]).count() * 2 >= seen().count();
    if record.lost() > 0 && kept { StreamVerdict::TooLossy } else { StreamVerdict::ScheduleBroken }
}
