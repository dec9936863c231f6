//! A capacity that a tool must know: told by its user, or found by [`capprobe`](super::capprobe) before its own streams.

use crate::estimate::capprobe::{CapProbe, CapProbeConfig};
use crate::estimate::{
    Base, Conditions, Estimate, Estimator, Outcome, Quantity, Step, Value, WarningCode, bits_per_second,
};
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
    pub(super) fn new(
        told: Option<Rate>,
        packet_size: Option<Bytes>,
        conditions: Conditions,
    ) -> KnownCapacity {
        let config = CapProbeConfig { packet_size, ..CapProbeConfig::default() };
        KnownCapacity {
            capprobe: told.is_none().then(|| CapProbe::new(config, conditions)),
            row: Vec::new(),
            rate: told.map_or(0.0, |rate| rate.bits_per_second() as f64),
        }
    }

    /// CapProbe's next step; `None` once it has ended, with a capacity or with the tool's own end.
    pub(super) fn step(&mut self, base: &mut Base) -> Option<Step> {
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
    pub(super) fn takes(&mut self, record: &StreamRecord) -> bool {
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
    pub(super) fn before(&self, found: Vec<Estimate>) -> Vec<Estimate> {
        self.row.iter().cloned().chain(found).collect()
    }

    /// Ends with the capacity alone, for that reason.
    pub(super) fn end_unknown(&self, base: &mut Base, text: &str, streams: &[u32]) {
        base.warn(WarningCode::CoarseStamps, text);
        let streams = self.row.first().map_or(streams, |row| &row.streams);
        let left = base.estimate(Quantity::AvailableBandwidth, Value::Unknown, streams);
        let found = self.before(vec![left]);
        base.found(found);
    }
}
