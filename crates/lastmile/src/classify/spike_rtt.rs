//! Spike on round-trip times: needs no stamps of the other side.
//!
//! Yang, Sun, Chen, Gerla, Sanadidi, the Video Transport Protocol (VTP), which takes Spike from Cen, Cosman,
//! Voelker (LDA) and names no thresholds: those of LDA are the defaults.

use super::spike::{SpikeConfig, SpikeState};
use super::{Arrival, Classifier, Cost, Lda, Loss, LossClass};
use crate::options::{OptionError, Options};
use crate::telemetry::Visitor;
use crate::time::Span;

/// The algorithm's state. Without a single round-trip time all losses are congestion.
///
/// ```
/// use lastmile::classify::{Classifier, Loss, LossClass, SpikeRtt};
/// assert_eq!(SpikeRtt::default().classify(&Loss::of(0, 1)), LossClass::Congestion);
/// ```
#[derive(Clone, Debug, Default)]
pub struct SpikeRtt {
    config: SpikeConfig,
    state: SpikeState<Span>,
}

/// Its place in the registry.
pub const ENTRY: Lda = Lda {
    name: "spike-rtt",
    about: "congestion while the round-trip time is in a spike above half of its range",
    paper: "VTP, section 3; thresholds of Cen, Cosman, Voelker, IEEE/ACM ToN 2003, section III.B",
    resolution: "any: no stamps of arrival",
    cost: Cost { arrival: [6, 1], loss: [0, 0], state: size_of::<SpikeRtt>() },
    options: SpikeConfig::OPTIONS,
    build: |given| Ok(Box::new(SpikeRtt::new(SpikeConfig::read(given)?)?)),
};

impl SpikeRtt {
    /// Refuses a spike that would end above where it starts.
    pub fn new(config: SpikeConfig) -> Result<SpikeRtt, OptionError> {
        config.check()?;
        Ok(SpikeRtt { config, ..SpikeRtt::default() })
    }
}

impl Classifier for SpikeRtt {
    fn on_arrival(&mut self, arrival: &Arrival) {
        if let Some(rtt) = arrival.rtt {
            self.state.take(&self.config, rtt, arrival.sent.as_nanos());
        }
    }

    fn classify(&mut self, _: &Loss) -> LossClass {
        if self.state.is_empty() { LossClass::Congestion } else { self.state.verdict() }
    }

    fn on_route_change(&mut self) {
        self.state.on_route_change(&self.config);
    }

    fn telemetry(&self, visitor: &mut dyn Visitor) {
        visitor.state("spike", if self.state.in_spike { "in" } else { "out" });
    }

    fn clone_box(&self) -> Box<dyn Classifier> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{arrival, judged};
    use super::*;

    #[test]
    fn spikes_are_found_in_round_trips_alone() {
        // One-way delays that say the opposite.
        let packets = [(0, 20), (1, 60), (2, 40), (3, 41), (4, 33), (5, 32)].map(|(k, rtt)| Arrival {
            rtt: Some(Span::from_millis(rtt)),
            ..arrival(k, 1_000 * k, 100_000 - 1_000 * rtt as u64)
        });
        // Range 20..60: starts above 40, ends below 33.3.
        assert_eq!(judged(&mut SpikeRtt::default(), packets, 1), [false, true, true, true, false, false]);
    }
}
