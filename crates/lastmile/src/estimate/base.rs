//! The parts that all tools share, so that a tool's file holds its own idea alone: the streams that count, the reasons to give up,
//! the uncertainty of stamps, pauses, random draws, warnings.

use rand_core::Rng;
use rand_pcg::Pcg64Mcg;

use crate::estimate::{
    Conditions, Estimate, Outcome, Quantity, Refusal, Step, StreamPlan, TruthKind, Value, Warning,
    WarningCode,
};
use crate::observe::StreamVerdict;
use crate::observe::burst::Burst;
use crate::observe::order::Order;
use crate::observe::{cause, judge};
use crate::report::{Direction, Pattern, StreamRecord};
use crate::time::Span;
use crate::units::{Bytes, Rate};

/// Warning text for paths that are faster than stamps can tell.
pub(super) const TOO_FAST: &str = "packets come closer together than these hosts can time";
/// Longest pause in which a queue may drain.
const LONGEST_DRAIN: Span = Span::from_secs(1);

/// A tool keeps one of these. Its `step` begins with [`Base::step`], its `on_stream` with [`Base::judge`].
///
/// ```
/// use lastmile::estimate::{Base, Conditions, Outcome, Refusal, Step};
/// use lastmile::observe::StreamVerdict;
/// let mut base = Base::new(Conditions::default());
/// assert_eq!(base.step(), None); // nothing is due: the tool says what to send
/// base.waste(StreamVerdict::ClockStepped, 2);
/// assert!(!base.is_done());
/// base.waste(StreamVerdict::ClockStepped, 2);
/// assert_eq!(base.step(), Some(Step::Done(Outcome::Refused(Refusal::ClockStepped))));
/// ```
#[derive(Clone, Debug)]
pub struct Base {
    conditions: Conditions,
    random: Pcg64Mcg,
    pause: Option<Span>,
    outcome: Option<Outcome>,
    /// Streams that came back.
    pub sent: u32,
    /// Streams in a row that told nothing.
    wasted: u32,
    /// Packets lost, of so many.
    pub(super) losses: (u32, u32),
    /// Packets that arrived behind one that left later, of so many.
    pub(super) reordered: (usize, usize),
    round_trip: bool,
    /// The last stream's largest packet, and its bytes in one go.
    shown: Option<(Bytes, Bytes)>,
    warnings: Vec<Warning>,
}

impl Base {
    /// At the start, under these conditions.
    pub fn new(conditions: Conditions) -> Base {
        Base {
            conditions,
            random: Pcg64Mcg::new(u128::from(conditions.seed) << 1 | 1),
            pause: None,
            outcome: None,
            sent: 0,
            wasted: 0,
            losses: (0, 0),
            reordered: (0, 0),
            round_trip: false,
            shown: None,
            warnings: Vec::new(),
        }
    }

    /// The same; where the tool does as its original, it says so beside all numbers, and what that means.
    pub(super) fn of(conditions: Conditions, faithful: bool, meaning: &str) -> Base {
        let mut base = Base::new(conditions);
        if faithful {
            base.warn(WarningCode::Faithful, meaning);
        }
        base
    }

    /// The result, or a pause that is due; otherwise it is the tool's turn.
    pub fn step(&mut self) -> Option<Step> {
        match &self.outcome {
            Some(outcome) => Some(Step::Done(outcome.clone())),
            None => self.pause.take().map(Step::Pause),
        }
    }

    /// Sends `plan`, or ends where it is longer than a stream may be.
    pub fn send(&mut self, plan: StreamPlan) -> Step {
        if plan.bounded() {
            return Step::Send(plan);
        }
        let refusal = Refusal::too_long(&plan);
        self.refuse(refusal.clone());
        Step::Done(Outcome::Refused(refusal))
    }

    /// Leaves the path alone for so long before the next stream.
    pub fn pause(&mut self, span: Span) {
        self.pause = Some(span);
    }

    /// Leaves the path alone until the queue that a stream filled is empty, `least` at least: a queue drains at what is left, a quarter of the
    /// capacity or more.
    pub fn drain(&mut self, record: &StreamRecord, least: Span) {
        self.drain_at(record, least, 0.25);
    }

    /// The same where a share of the capacity is left.
    pub fn drain_at(&mut self, record: &StreamRecord, least: Span, share: f64) {
        let times = || record.packets.iter().filter_map(|p| p.owd());
        let waited = times().max().zip(times().min()).map_or(Span::ZERO, |(most, least)| most - least);
        let lasts = Span::from_secs_f64(waited.as_secs_f64() / share);
        self.pause(least.max(lasts.min(LONGEST_DRAIN)));
    }

    /// True once the run has ended, with numbers or a refusal.
    pub fn is_done(&self) -> bool {
        self.outcome.is_some()
    }

    /// Ends without a number.
    pub fn refuse(&mut self, refusal: Refusal) {
        self.outcome = Some(Outcome::Refused(refusal));
    }

    /// Ends with these numbers.
    pub fn found(&mut self, estimates: Vec<Estimate>) {
        self.outcome = Some(Outcome::Found(estimates));
    }

    /// Ends with a bound of these quantities.
    pub fn more_than(&mut self, quantities: &[Quantity], bound: Rate, why: &str, streams: &[u32]) {
        self.warn(WarningCode::LowerBound, why);
        let of = |quantity: &Quantity| self.estimate(*quantity, Value::MoreThan(bound), streams);
        self.found(quantities.iter().map(of).collect());
    }

    /// Counts a stream of `planned` packets, and says whether it can be believed.
    pub fn judge(&mut self, record: &StreamRecord, planned: usize) -> StreamVerdict {
        self.count(record);
        let verdict = match record.packets.len() == planned && record.planned.len() == planned {
            true => judge(record).verdict,
            false => StreamVerdict::NoReport,
        };
        if verdict != StreamVerdict::ClockStepped {
            self.reordered.0 += Order::of(record).overtaken();
            self.reordered.1 += record.packets.len();
        }
        verdict
    }

    /// Counts a stream that is judged by other means.
    pub fn count(&mut self, record: &StreamRecord) {
        self.sent += 1;
        self.round_trip = record.direction == Direction::RoundTrip;
        self.losses.0 += record.lost() as u32;
        self.losses.1 += record.packets.len() as u32;
        let sizes = || record.packets.iter().map(|packet| packet.size);
        let in_one_go = if record.pattern == Pattern::Pairs { 2 } else { usize::MAX };
        self.shown = sizes().max().map(|largest| (largest, sizes().take(in_one_go).sum()));
    }

    /// True if streams go there and back.
    pub fn round_trip(&self) -> bool {
        self.round_trip
    }

    /// A stream told something.
    pub fn useful(&mut self) {
        self.wasted = 0;
    }

    /// The same of a stream of which a tool could make nothing.
    pub fn waste_of(&mut self, record: &StreamRecord, verdict: StreamVerdict, attempts: u32) {
        self.waste(verdict.or(cause(record)), attempts);
    }

    /// Counts a stream that told nothing. After `attempts` in a row there is no result, for the last reason seen.
    pub fn waste(&mut self, verdict: StreamVerdict, attempts: u32) {
        self.wasted += 1;
        if self.wasted < attempts {
            return;
        }
        let (lost, sent) = self.losses;
        self.refuse(match verdict {
            StreamVerdict::ClockStepped => Refusal::ClockStepped,
            StreamVerdict::NoReport => {
                Refusal::Inconsistent("the peer reports other streams than those that were sent to it: restart `lastmile serve` there, in the same version as here".into())
            }
            StreamVerdict::TooLossy => Refusal::TooLossy { lost, sent },
            StreamVerdict::Reordered => {
                let (overtaken, sent) = self.reordered;
                Refusal::Reordered { overtaken: overtaken as u32, sent: sent as u32 }
            }
            _ => Refusal::ScheduleBroken { sent: self.sent, discarded: self.wasted },
        });
    }

    /// Uncertainty of a record's stamps: the hosts' noise or the coarser resolution, if that is more.
    pub fn noise(&self, record: &StreamRecord) -> Span {
        self.conditions.timing_noise.max(record.tx_resolution).max(record.rx_resolution)
    }

    /// The rate at which a burst arrived, in bit/s, or the bound that it proves where stamps are too uncertain to tell one.
    ///
    /// # Errors
    /// The bound.
    pub fn rate_of(&self, burst: &Burst, record: &StreamRecord) -> Result<f64, Rate> {
        let slack = self.coalescing().max(self.noise(record) * 2);
        let bound = || burst.at_least(slack).unwrap_or(Rate::ip(0));
        burst.rate().filter(|_| burst.received >= slack * 4).ok_or_else(bound)
    }

    /// By how much a receiver that coalesces interrupts may stamp late.
    pub fn coalescing(&self) -> Span {
        self.conditions.coalescing
    }

    /// A random number from 0 to 1.
    pub fn draw(&mut self) -> f64 {
        f64::from(self.random.next_u32()) / f64::from(u32::MAX)
    }

    /// A random span, exponentially distributed: between events at Poisson times.
    pub fn exponential(&mut self, mean: Span) -> Span {
        // Not the logarithm of zero.
        mean.scaled(-libm::log((f64::from(self.random.next_u32()) + 1.0) / (f64::from(u32::MAX) + 2.0)))
    }

    /// `n` pairs, `gap` apart, half more or less: pairs in step with periodic traffic would all meet the same part of it.
    pub fn pairs(&mut self, n: usize, size: Bytes, gap: Span) -> StreamPlan {
        StreamPlan::pairs_apart((1..n).map(|_| gap.scaled(0.5 + self.draw())), size)
    }

    /// `n` pairs at Poisson times, `mean` apart in the mean, whose second packets leave `within` after the first ones.
    ///
    /// ```
    /// # use lastmile::{estimate::{Base, Conditions}, time::Span, units::Bytes};
    /// let plan = Base::new(Conditions::exact(1)).poisson_pairs(10, Bytes(1500), Span::from_micros(1_200), Span::from_millis(100));
    /// assert_eq!(plan.packets.len(), 20);
    /// assert_eq!(plan.packets[3].offset - plan.packets[2].offset, Span::from_micros(1_200));
    /// ```
    pub fn poisson_pairs(&mut self, n: usize, size: Bytes, within: Span, mean: Span) -> StreamPlan {
        StreamPlan::spread_pairs((1..n).map(|_| self.exponential(mean)), within, size)
    }

    /// Says something beside the result, once.
    pub fn warn(&mut self, code: WarningCode, text: impl Into<String>) {
        let warning = Warning { code, text: text.into() };
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// Takes smaller packets where a tool's `own` do not pass the path, with a warning; false once the tool `has_begun`.
    pub fn shrink(&mut self, own: &mut Bytes, to: Bytes, has_begun: bool) -> bool {
        let shrinks = to < *own && !has_begun;
        if shrinks {
            let text = format!(
                "packets of {own} do not pass this path, as behind a VPN: measured with {to} (--packet-size)"
            );
            self.warn(WarningCode::PacketSize, text);
            *own = to;
        }
        shrinks
    }

    /// Says that streams went there and back, if they did.
    pub fn warn_round_trip(&mut self) {
        if self.round_trip {
            self.warn(
                WarningCode::RoundTrip,
                "measured there and back: each direction has at least this available bandwidth, and more if others load both",
            );
        }
    }

    /// All that was said, and `more`.
    pub fn said(&self, more: impl IntoIterator<Item = Warning>) -> Vec<Warning> {
        self.warnings.iter().cloned().chain(more).collect()
    }

    /// An estimate without an interval, of packets and bytes in one go as those of the last stream, with all that was said.
    pub fn estimate(&self, quantity: Quantity, value: Value, streams: &[u32]) -> Estimate {
        let has_burst = quantity != Quantity::SustainedRate && value != Value::Unknown;
        Estimate {
            quantity,
            value,
            interval: None,
            next: None,
            truth_kind: TruthKind::Queue,
            burst: self.shown.filter(|_| has_burst).map(|(_, burst)| burst),
            packet_size: self.shown.map(|(size, _)| size),
            streams: streams.to_vec(),
            warnings: self.said(None),
        }
    }
}

/// A rate at the IP layer, rounded; numbers below zero, and NaN, give zero.
pub fn bits_per_second(rate: f64) -> Rate {
    // A float cast saturates.
    Rate::ip((rate + 0.5) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::testing::record;
    use crate::report::Pattern;

    #[test]
    fn reasons_to_give_up_are_the_last_ones_seen() {
        let lossy = record(Pattern::Train, &[0, 9, 18, 27], &[0, 9, 18, 27], &[Some(50), None, None, None]);
        let mut base = Base::new(Conditions::default());
        let verdict = base.judge(&lossy, 4);
        assert_eq!(verdict, StreamVerdict::TooLossy);
        base.waste(verdict, 1);
        assert_eq!(base.step(), Some(Step::Done(Outcome::Refused(Refusal::TooLossy { lost: 3, sent: 4 }))));
        let mut base = Base::new(Conditions::default());
        assert_eq!(base.judge(&lossy, 5), StreamVerdict::NoReport);
        // Only streams in a row count.
        (0..9).for_each(|_| {
            base.waste(StreamVerdict::NoReport, 2);
            base.useful();
        });
        assert!(!base.is_done());
    }

    /// Every fourth packet of a train is lost, and its gaps that came were sent as planned; or they were not.
    #[test]
    fn losses_are_not_a_hosts_fault() {
        let planned: Vec<u64> = (0..20).map(|k| k * 1_000).collect();
        let came: Vec<Option<u64>> = (0..20).map(|k| (k % 4 != 1).then_some(5_000 + k * 1_000)).collect();
        let cause = |sent: &[u64], came: &[Option<u64>]| {
            let (mut base, stream) =
                (Base::new(Conditions::default()), record(Pattern::Train, &planned, sent, came));
            let verdict = base.judge(&stream, 20);
            base.waste_of(&stream, verdict, 1);
            base.step()
        };
        let lossy = Step::Done(Outcome::Refused(Refusal::TooLossy { lost: 5, sent: 20 }));
        let late = Step::Done(Outcome::Refused(Refusal::ScheduleBroken { sent: 1, discarded: 1 }));
        assert_eq!(cause(&planned, &came), Some(lossy));
        let slow: Vec<u64> = planned.iter().map(|at| at * 2).collect();
        let behind: Vec<Option<u64>> = slow.iter().map(|at| Some(5_000 + at)).collect();
        assert_eq!(cause(&slow, &behind), Some(late.clone()));
        let some: Vec<Option<u64>> = came.iter().zip(&behind).map(|(one, two)| one.and(*two)).collect();
        assert_eq!(cause(&slow, &some), Some(late));
    }

    #[test]
    fn draws_have_their_means_and_are_the_seeds() {
        let means = |seed| {
            let mut base = Base::new(Conditions::exact(seed));
            let n = 100_000;
            let uniform = (0..n).map(|_| base.draw()).sum::<f64>() / f64::from(n);
            let spans: Span = (0..n).map(|_| base.exponential(Span::from_millis(100))).sum();
            (uniform, spans.as_secs_f64() / f64::from(n))
        };
        let (uniform, mean) = means(1);
        assert!((uniform - 0.5).abs() < 0.004 && (mean - 0.1).abs() < 0.001, "{uniform} {mean}");
        assert_eq!(means(2), means(2));
        assert_ne!(means(2), means(3));
    }
}
