//! Arrivals by hand, for the tests of classifiers.

use super::{Arrival, Classifier, Loss, LossClass};
use crate::time::Time;
use crate::units::Bytes;

/// A packet of 1000 B that was sent at `sent` and took `delay`, in microseconds, between clocks 7 s apart.
pub(super) fn arrival(seq: u64, sent: u64, delay: u64) -> Arrival {
    Arrival {
        seq,
        size: Bytes(1000),
        sent: Time::from_nanos(sent * 1_000),
        at: Some(Time::from_nanos((sent + delay) * 1_000 + 7_000_000_000)),
        rtt: None,
    }
}

/// Verdict after each arrival on a run of `lost` packets before the next one: true for congestion.
pub(super) fn judged(
    classifier: &mut dyn Classifier,
    arrivals: impl IntoIterator<Item = Arrival>,
    lost: u32,
) -> Vec<bool> {
    let verdict = |arrival: Arrival| {
        classifier.on_arrival(&arrival);
        classifier.classify(&Loss::of(arrival.seq.saturating_sub(1), lost)) == LossClass::Congestion
    };
    arrivals.into_iter().map(verdict).collect()
}
