//! Spike: losses within a spike of the relative one-way delay are congestion.
//!
//! Tobe, Tamura, Molano, Ghosh, Tokuda, "Achieving moderate fairness for UDP flows by path-status classification";
//! thresholds relative to the delay's range as in Cen, Cosman, Voelker, "End-to-end differentiation of congestion
//! and wireless losses" (seed 004), section III.B.

use crate::classify::{Classifier, Loss, LossClass};
use crate::report::PacketReport;
use crate::time::{Owd, Span};

/// The algorithm's state.
///
/// ```
/// use lastmile::classify::{Classifier, Loss, LossClass, Spike};
/// let mut spike = Spike::default();
/// // Nothing is known yet: a spike has not been seen.
/// assert_eq!(spike.classify(Loss { seq: 0, run: 1 }), LossClass::Wireless);
/// ```
#[derive(Clone, Debug)]
pub struct Spike {
    /// A spike starts above rott_min + alpha (rott_max - rott_min).
    pub alpha: f64,
    /// It ends below rott_min + beta (rott_max - rott_min); at most alpha.
    pub beta: f64,
    range: Option<(Owd, Owd)>,
    in_spike: bool,
}

impl Default for Spike {
    /// alpha = 1/2, beta = 1/3: the paper's best trade-off on its wireless last hop.
    fn default() -> Spike {
        Spike { alpha: 1.0 / 2.0, beta: 1.0 / 3.0, range: None, in_spike: false }
    }
}

impl Classifier for Spike {
    fn on_arrival(&mut self, packet: &PacketReport) {
        let Some(rott) = packet.owd() else { return };
        let (min, max) = self.range.map_or((rott, rott), |(min, max)| (min.min(rott), max.max(rott)));
        self.range = Some((min, max));
        let above = rott - min;
        let range = max - min;
        if !self.in_spike {
            self.in_spike = above > range.scaled(self.alpha); // [LDA, B_spikestart]
        } else {
            self.in_spike = above >= range.scaled(self.beta); // [LDA, B_spikeend]
        }
    }

    fn classify(&mut self, _loss: Loss) -> LossClass {
        if self.in_spike { LossClass::Congestion } else { LossClass::Wireless }
    }

    /// Queues that overflow hold tens of milliseconds; a millisecond of them is fine enough.
    fn resolution_needed(&self) -> Span {
        Span::from_millis(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::testing::record;
    use crate::report::Pattern;

    /// Feeds delays in microseconds and asks after each whether a loss would be congestion.
    fn verdicts(delays: &[u64]) -> Vec<bool> {
        let mut spike = Spike::default();
        let sent: Vec<u64> = (0..delays.len() as u64).map(|k| k * 1_000_000).collect();
        let arrived: Vec<Option<u64>> = sent.iter().zip(delays).map(|(t, d)| Some(t + d)).collect();
        record(Pattern::Train, &sent, &sent, &arrived)
            .packets
            .iter()
            .map(|packet| {
                spike.on_arrival(packet);
                spike.classify(Loss { seq: packet.seq, run: 1 }) == LossClass::Congestion
            })
            .collect()
    }

    /// Figure 3 of the paper: range 10..40 ms, so that spikes start above 25 and end below 20.
    #[test]
    fn spikes_start_high_and_end_low() {
        assert_eq!(
            verdicts(&[10_000, 40_000, 10_000, 25_000, 25_001, 20_000, 19_999, 24_000]),
            [false, true, false, false, true, true, false, false]
        );
    }

    #[test]
    fn a_constant_delay_is_never_a_spike() {
        assert_eq!(verdicts(&[5_000; 4]), [false; 4]);
    }
}
