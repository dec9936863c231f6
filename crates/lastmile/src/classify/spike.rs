//! Spike: losses within a spike of the relative one-way delay are congestion.
//!
//! Tobe, Tamura, Molano, Ghosh, Tokuda, "Achieving moderate fairness for UDP flows by path-status classification";
//! thresholds relative to the delay's range as in Cen, Cosman, Voelker, "End-to-end differentiation of congestion
//! and wireless losses" (seed 004), section III.B.

use crate::classify::{Classifier, Lda, Loss, LossClass};
use crate::options::{OptionError, Options};
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
#[derive(Clone, Debug, Default)]
pub struct Spike {
    config: SpikeConfig,
    range: Option<(Owd, Owd)>,
    in_spike: bool,
}

crate::options! {
    /// Spike's parameters: the paper's best trade-off on its wireless last hop.
    pub struct SpikeConfig {
        /// A spike starts above this share of the delay's range
        start: f64 [0.0..=1.0] = 1.0 / 2.0, "LDA, section III.B: alpha = 1/2";
        /// A spike ends below this share of the delay's range
        end: f64 [0.0..=1.0] = 1.0 / 3.0, "LDA, section III.B: beta = 1/3";
    }
}

/// Its place in the registry.
pub const ENTRY: Lda = Lda {
    name: "spike",
    about: "congestion while the relative one-way delay is in a spike above half of its range",
    paper: "Tobe et al., NOSSDAV 2000, as parametrised by Cen, Cosman, Voelker, IEEE/ACM ToN 2003, section III.B",
    options: SpikeConfig::OPTIONS,
    build: |given| Ok(Box::new(Spike::new(SpikeConfig::read(given)?)?)),
};

impl Spike {
    /// Refuses a spike that would end above where it starts.
    pub fn new(config: SpikeConfig) -> Result<Spike, OptionError> {
        if config.end > config.start {
            let reason = format!("must be at most `start`, which is {}, not {}", config.start, config.end);
            return Err(OptionError::new("end", reason));
        }
        Ok(Spike { config, ..Spike::default() })
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
            self.in_spike = above > range.scaled(self.config.start); // [LDA, B_spikestart]
        } else {
            self.in_spike = above >= range.scaled(self.config.end); // [LDA, B_spikeend]
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
    fn a_spike_does_not_end_above_its_start() {
        let refused = crate::classify::build(&"spike(start=0.2)".parse().unwrap()).err().unwrap();
        assert!(
            refused.to_string().starts_with("end of spike must be at most start, which is 0.2"),
            "{refused}"
        );
        assert!(crate::classify::build(&"spike(start=0.2, end=0.1)".parse().unwrap()).is_ok());
    }

    #[test]
    fn a_constant_delay_is_never_a_spike() {
        assert_eq!(verdicts(&[5_000; 4]), [false; 4]);
    }
}
