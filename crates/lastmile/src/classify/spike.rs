//! Spike: losses within a spike of the relative one-way delay are congestion.
//!
//! Tobe, Tamura, Molano, Ghosh, Tokuda, "Achieving moderate fairness for UDP flows by path-status classification";
//! thresholds relative to the delay's range as in Cen, Cosman, Voelker, "End-to-end differentiation of congestion
//! and wireless losses" (LDA), section III.B.

use super::extent::Extent;
use super::{Arrival, Classifier, Cost, Lda, Loss, LossClass};
use crate::options::{OptionError, Options};
use crate::telemetry::Visitor;
use crate::time::{Owd, Span};

/// [Tobe]: a spike starts so far above the least delay, and ends so far above it.
const FIXED: (Span, Span) = (Span::from_millis(20), Span::from_millis(5));

/// The algorithm's state.
///
/// ```
/// use lastmile::classify::{Classifier, Loss, LossClass, Spike};
/// let mut spike = Spike::default();
/// // Nothing is known yet: a spike has not been seen.
/// assert_eq!(spike.classify(&Loss::of(0, 1)), LossClass::Wireless);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Spike {
    config: SpikeConfig,
    state: SpikeState<Owd>,
}

/// Detector of spikes in a series of delays: one-way here, of round trips in [`SpikeRtt`](super::SpikeRtt).
#[derive(Clone, Copy, Debug)]
pub(super) struct SpikeState<D> {
    range: Extent<D>,
    pub(super) in_spike: bool,
}

crate::options! {
    /// Spike's parameters: the paper's best trade-off on its wireless last hop.
    pub struct SpikeConfig {
        /// A spike starts above this share of the delay's range
        start: f64 [0.0..=1.0] = 1.0 / 2.0, "LDA, section III.B: alpha = 1/2";
        /// A spike ends below this share of the delay's range
        end: f64 [0.0..=1.0] = 1.0 / 3.0, "LDA, section III.B: beta = 1/3";
        /// The original's thresholds in place of shares: 20 ms above the least delay, and 5 ms
        fixed: bool = false, "Tobe et al., as LDA, section III.B, quotes it";
        /// Forget the extrema after so long, and after half of that at the earliest
        window: Option<Span> [Span::from_millis(10)..=Span::from_secs(86_400)] = None, "LDA, section IX.B: never";
        /// Forget the extrema when the route changes
        route_reset: bool = true, "our own: LDA knows one route, section IX.B";
    }
}

/// Its place in the registry.
pub const ENTRY: Lda = Lda {
    name: "spike",
    about: "congestion while the relative one-way delay is in a spike above half of its range",
    paper: "Tobe et al., LCN 2000, as parametrised by Cen, Cosman, Voelker, IEEE/ACM ToN 2003, section III.B",
    resolution: "1 ms",
    // The delay, two comparisons for the extrema, the range and what is above it, the threshold.
    cost: Cost { arrival: [6, 1], loss: [0, 0], state: size_of::<Spike>() },
    options: SpikeConfig::OPTIONS,
    build: |given| Ok(Box::new(Spike::new(SpikeConfig::read(given)?)?)),
};

impl SpikeConfig {
    /// Refuses a spike that would end above where it starts.
    pub(super) fn check(&self) -> Result<(), OptionError> {
        if self.end > self.start {
            let reason = format!("must be at most `start`, which is {}, not {}", self.start, self.end);
            return Err(OptionError::new("end", reason));
        }
        Ok(())
    }
}

impl Spike {
    /// Refuses a spike that would end above where it starts.
    pub fn new(config: SpikeConfig) -> Result<Spike, OptionError> {
        config.check()?;
        Ok(Spike { config, ..Spike::default() })
    }

    /// The least relative one-way delay.
    pub(super) fn min_delay(&self) -> Option<Owd> {
        self.state.range.get().map(|(least, _)| least)
    }
}

impl<D: Copy + Ord> Default for SpikeState<D> {
    fn default() -> SpikeState<D> {
        SpikeState { range: Extent::EMPTY, in_spike: false }
    }
}

impl<D: Copy + Ord + core::ops::Sub<Output = Span>> SpikeState<D> {
    /// Takes a delay in, at `now` nanoseconds.
    pub(super) fn take(&mut self, config: &SpikeConfig, delay: D, now: u64) {
        self.range.take(delay, now, config.window);
        let (min, max) = self.range.get().unwrap_or((delay, delay));
        let (above, range) = (delay - min, max - min);
        // Forgotten extrema may leave no range, and with it no spike.
        self.in_spike = match (self.in_spike, config.fixed) {
            (false, false) => above > range.scaled(config.start), // [LDA, III.B: B_spikestart]
            (true, false) => range > Span::ZERO && above >= range.scaled(config.end), // [LDA, III.B: B_spikeend]
            (false, true) => above > FIXED.0,
            (true, true) => above >= FIXED.1,
        };
    }

    /// No delay is known.
    pub(super) fn is_empty(&self) -> bool {
        self.range.get().is_none()
    }

    pub(super) fn verdict(&self) -> LossClass {
        if self.in_spike { LossClass::Congestion } else { LossClass::Wireless }
    }

    pub(super) fn on_route_change(&mut self, config: &SpikeConfig) {
        if config.route_reset {
            *self = SpikeState::default();
        }
    }
}

impl Classifier for Spike {
    fn on_arrival(&mut self, arrival: &Arrival) {
        if let (Some(rott), Some(at)) = (arrival.rott(), arrival.at) {
            self.state.take(&self.config, rott, at.as_nanos());
        }
    }

    fn classify(&mut self, _: &Loss) -> LossClass {
        self.state.verdict()
    }

    fn on_route_change(&mut self) {
        self.state.on_route_change(&self.config);
    }

    /// Queues that overflow hold tens of milliseconds; a millisecond of them is fine enough.
    fn resolution_needed(&self) -> Span {
        Span::from_millis(1)
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

    /// Feeds delays in microseconds and asks after each whether a loss would be congestion.
    fn verdicts(options: &str, delays: &[u64]) -> Vec<bool> {
        let mut spike = super::super::build(&format!("spike({options})").parse().unwrap()).unwrap();
        let packets = delays.iter().enumerate().map(|(k, delay)| arrival(k as u64, 1_000 * k as u64, *delay));
        judged(&mut *spike, packets, 1)
    }

    /// Figure 3 of the paper: range 10..40 ms, so that spikes start above 25 and end below 20.
    #[test]
    fn spikes_start_high_and_end_low() {
        assert_eq!(
            verdicts("", &[10_000, 40_000, 10_000, 25_000, 25_001, 20_000, 19_999, 24_000]),
            [false, true, false, false, true, true, false, false]
        );
    }

    #[test]
    fn the_originals_thresholds_are_20_and_5_ms_above_the_least() {
        assert_eq!(
            verdicts("fixed=true", &[10_000, 30_000, 30_001, 15_000, 14_999, 29_000]),
            [false, false, true, true, false, false]
        );
    }

    #[test]
    fn a_spike_does_not_end_above_its_start() {
        let refused = super::super::build(&"spike(start=0.2)".parse().unwrap()).err().unwrap();
        assert!(
            refused.to_string().starts_with("end of spike must be at most start, which is 0.2"),
            "{refused}"
        );
        assert!(super::super::build(&"spike(start=0.2, end=0.1)".parse().unwrap()).is_ok());
    }

    #[test]
    fn a_constant_delay_is_never_a_spike() {
        assert_eq!(verdicts("", &[5_000; 4]), [false; 4]);
    }

    /// A hand-over to a path 30 ms longer: with its old least delay Spike sees a spike for ever.
    #[test]
    fn a_new_route_is_a_spike_unless_the_extrema_are_forgotten() {
        for (options, congested) in [("route_reset=false", true), ("", false)] {
            let mut spike = super::super::build(&format!("spike({options})").parse().unwrap()).unwrap();
            judged(&mut *spike, [(0, 10_000), (1, 20_000)].map(|(k, d)| arrival(k, 1_000 * k, d)), 1);
            spike.on_route_change();
            let after = judged(&mut *spike, [arrival(2, 2_000, 45_000), arrival(3, 3_000, 45_000)], 1);
            assert_eq!(after, [congested; 2], "{options}");
        }
        let delays: Vec<u64> = [10_000, 20_000].into_iter().chain([45_000; 300]).collect();
        assert_eq!(verdicts("", &delays).last(), Some(&true));
        assert_eq!(verdicts("window=200 ms", &delays).last(), Some(&false));
    }
}
