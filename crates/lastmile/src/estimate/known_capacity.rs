//! A capacity that a tool must know: told by its user, or found by [`capprobe`](super::capprobe) before its own streams; and [`FreeShare`], the
//! common parts of tools that tell which share of it is left.

use crate::estimate::capprobe::{CapProbe, CapProbeConfig};
use crate::estimate::{
    Base, Conditions, Estimate, Estimator, Guard, Outcome, Quantity, Step, Value, Warning, WarningCode,
    bits_per_second,
};
use crate::observe::StreamVerdict;
use crate::observe::pairs::NOISE_SHARE;
use crate::report::StreamRecord;
use crate::time::Span;
use crate::units::{Bytes, Rate};

/// The capacity, and CapProbe while it is unknown.
pub(super) struct KnownCapacity {
    capprobe: Option<CapProbe>,
    /// The capacity's row, if it was found, and its value, in bit/s.
    row: Vec<Estimate>,
    rate: f64,
}

impl KnownCapacity {
    /// As told, or to be found with packets of that size, or of CapProbe's own.
    fn new(told: Option<Rate>, packet_size: Option<Bytes>, conditions: Conditions) -> KnownCapacity {
        let config = CapProbeConfig { packet_size, ..CapProbeConfig::default() };
        KnownCapacity {
            capprobe: told.is_none().then(|| CapProbe::new(config, conditions)),
            row: Vec::new(),
            rate: told.map_or(0.0, |rate| rate.bits_per_second() as f64),
        }
    }

    /// CapProbe's next step; `None` once it has ended, with a capacity or with the tool's own end.
    fn step(&mut self, base: &mut Base) -> Option<Step> {
        let capprobe = self.capprobe.as_mut().filter(|_| !base.is_done())?;
        match capprobe.step() {
            Step::Done(outcome) => {
                self.capprobe = None;
                self.take(outcome, base);
                None
            }
            step => Some(step),
        }
    }

    /// Takes CapProbe's result; a refusal, or a bound, is the tool's too.
    fn take(&mut self, outcome: Outcome, base: &mut Base) {
        let found = match outcome {
            Outcome::Found(found) => found,
            Outcome::Refused(refusal) => return base.refuse(refusal),
        };
        self.row = found.into_iter().filter(|estimate| estimate.quantity == Quantity::Capacity).collect();
        let rate = self.row.first().and_then(|row| row.value.rate());
        self.rate = rate.map_or(0.0, |rate| rate.bits_per_second() as f64);
        if self.rate < 1.0 {
            self.end_unknown(base, "nothing shows the capacity, of which this is a part", &[]);
        }
    }

    /// Takes a record that CapProbe asked for; false if it did not.
    fn takes(&mut self, record: &StreamRecord) -> bool {
        self.capprobe.as_mut().map(|capprobe| capprobe.on_stream(record)).is_some()
    }

    /// CapProbe sends no larger packets any more.
    pub(super) fn shrink(&mut self, size: Bytes) -> bool {
        self.capprobe.as_mut().is_some_and(|capprobe| capprobe.shrink(size))
    }

    /// In bit/s.
    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    /// The time that packets of that size take.
    pub(super) fn time_for(&self, size: Bytes) -> Span {
        bits_per_second(self.rate).time_for(size)
    }

    /// These estimates, behind the capacity's row if it was found.
    fn before(&self, found: Vec<Estimate>) -> Vec<Estimate> {
        self.row.iter().cloned().chain(found).collect()
    }

    /// Ends with the capacity alone, for that reason.
    fn end_unknown(&self, base: &mut Base, text: &str, streams: &[u32]) {
        base.warn(WarningCode::CoarseStamps, text);
        let streams = self.row.first().map_or(streams, |row| &row.streams);
        let left = base.estimate(Quantity::AvailableBandwidth, Value::Unknown, streams);
        let found = self.before(vec![left]);
        base.found(found);
    }
}

/// State of a tool that tells which share of a known capacity is left.
pub(super) struct FreeShare {
    pub(super) base: Base,
    pub(super) guard: Guard,
    pub(super) capacity: KnownCapacity,
    /// Streams that the estimate is made from.
    pub(super) streams: Vec<u32>,
    faithful: bool,
}

impl FreeShare {
    /// Ready to start. `faithful` tools say so by that text, and look at nothing else; `capacity` is told, or found with packets of
    /// `capprobe_size`.
    pub(super) fn new(
        conditions: Conditions,
        (faithful, text): (bool, &'static str),
        capacity: Option<Rate>,
        capprobe_size: Option<Bytes>,
    ) -> FreeShare {
        FreeShare {
            base: Base::of(conditions, faithful, text),
            guard: Guard::with_burst(faithful),
            capacity: KnownCapacity::new(capacity, capprobe_size, conditions),
            streams: Vec::new(),
            faithful,
        }
    }

    /// The next step but for the tool's own streams: CapProbe's, a pause, the end, or the guard's burst of packets of that size.
    pub(super) fn step(&mut self, burst_size: Bytes) -> Option<Step> {
        let step = self.capacity.step(&mut self.base).or_else(|| self.base.step());
        step.or_else(|| self.guard.plan(burst_size).map(|plan| self.base.send(plan)))
    }

    /// Judges a record of `packets` packets, and pauses for `gap` in the mean; `None` if it is none of the tool's own.
    pub(super) fn judge(
        &mut self,
        record: &StreamRecord,
        packets: usize,
        gap: Span,
    ) -> Option<StreamVerdict> {
        if self.base.is_done() || self.capacity.takes(record) || self.guard.takes(record, &mut self.base) {
            return None;
        }
        let verdict = self.base.judge(record, packets);
        self.base.warn_round_trip();
        let pause = self.base.exponential(gap);
        self.base.pause(pause.min(Span::from_secs(1)));
        Some(verdict)
    }

    /// True if these hosts cannot time so short a span; then the capacity alone is known, for that reason.
    pub(super) fn is_too_short(&mut self, span: Span, record: &StreamRecord, text: &str) -> bool {
        let is_short = span < self.base.noise(record) * NOISE_SHARE && !self.faithful;
        if is_short {
            self.streams.push(record.stream);
            self.capacity.end_unknown(&mut self.base, text, &self.streams);
        }
        is_short
    }

    /// The result: so much is left, in bit/s, for bursts of that size, or of the last stream's.
    pub(super) fn found(
        &self,
        left: f64,
        burst: Option<Bytes>,
        more: impl IntoIterator<Item = Warning>,
    ) -> Vec<Estimate> {
        let left = Value::Is(bits_per_second(left));
        let left = self.base.estimate(Quantity::AvailableBandwidth, left, &self.streams);
        let burst = burst.or(left.burst);
        let mut found = vec![Estimate { burst, warnings: self.base.said(more), ..left }];
        self.guard.warn(self.capacity.rate(), &mut found);
        self.capacity.before(found)
    }
}

#[cfg(test)]
pub(super) mod testing {
    use super::*;
    use crate::estimate::build;
    use crate::observe::testing::record;

    /// The number of a tool on a link of 10 Mbit/s, in bit/s, with the numbers of its rows, bursts and streams. A burst comes at the link's rate; of other
    /// streams packet `k` waits for `waits(stream, sent, k)`, in microseconds.
    pub(in crate::estimate) fn found(
        choice: &str,
        waits: impl Fn(u64, &[u64], usize) -> u64,
    ) -> (f64, [u64; 3]) {
        let mut tool = build(&choice.parse().unwrap(), &Conditions::exact(1)).unwrap();
        let (mut bursts, mut streams) = (0, 0);
        loop {
            match tool.step() {
                Step::Pause(_) => {}
                Step::Done(Outcome::Found(found)) => {
                    let rate = found[0].value.rate().unwrap().bits_per_second() as f64;
                    return (rate, [found.len() as u64, bursts, streams]);
                }
                Step::Done(Outcome::Refused(why)) => panic!("{why}"),
                Step::Send(plan) => {
                    let micros =
                        |packet: &crate::estimate::ProbePacket| packet.offset.as_nanos() as u64 / 1_000;
                    let planned: Vec<u64> = plan.packets.iter().map(micros).collect();
                    let sent: Vec<u64> = planned.iter().map(|at| streams * 5_000_000 + at).collect();
                    let is_burst = planned.len() == 40;
                    let wait = |k| if is_burst { k as u64 * 1_200 } else { waits(streams, &sent, k) };
                    let came: Vec<_> = (0..sent.len()).map(|k| Some(900 + sent[k] + wait(k))).collect();
                    (bursts, streams) = (bursts + u64::from(is_burst), streams + 1);
                    tool.on_stream(&record(plan.pattern, &planned, &sent, &came));
                }
            }
        }
    }
}
