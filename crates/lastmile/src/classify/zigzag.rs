//! ZigZag: a loss is wireless where the relative one-way delay is low for the number of packets lost.
//!
//! Cen, Cosman, Voelker, "End-to-end differentiation of congestion and wireless losses" (LDA), section III.C.

use super::{Arrival, Classifier, Cost, Lda, Loss, LossClass};
use crate::options::Options;
use crate::telemetry::Visitor;
use crate::time::{Owd, Span};

/// The algorithm's state. The mean starts at the first delay, the deviation at zero.
///
/// ```
/// use lastmile::classify::{Classifier, Loss, LossClass, ZigZag};
/// assert_eq!(ZigZag::default().classify(&Loss::of(0, 1)), LossClass::Congestion);
/// ```
#[derive(Clone, Debug, Default)]
pub struct ZigZag {
    config: ZigZagConfig,
    /// The first delay: the others are counted from it, so that clocks years apart cost no digits.
    delay_origin: Option<Owd>,
    /// The newest delay, the mean and the mean deviation, in nanoseconds.
    rott: f64,
    /// The one before it.
    last_rott: f64,
    mean: f64,
    deviation: f64,
}

crate::options! {
    /// ZigZag's parameters.
    pub struct ZigZagConfig {
        /// The weight of a new delay in the mean; twice that in the deviation
        alpha: f64 [0.000_1..=0.5] = 1.0 / 32.0, "LDA, section III.C: 1/32";
        /// Judge by the delay of the packet before the loss, in place of the one after it
        before: bool = false, "LDA, section III: rott_i, where P_i is the last packet before the loss";
        /// Forget mean and deviation when the route changes
        route_reset: bool = true, "our own: in LDA they are forgotten gradually";
    }
}

/// Its place in the registry.
pub const ENTRY: Lda = Lda {
    name: "zigzag",
    about: "congestion where the relative one-way delay is not low, less so the more packets are lost",
    paper: "Cen, Cosman, Voelker, IEEE/ACM ToN 2003, section III.C",
    resolution: "1 ms",
    // The delay and its difference from the first; two averages and a difference with its sign; 1 - alpha, 1 - 2 alpha.
    cost: Cost { arrival: [7, 5], loss: [4, 1], state: size_of::<ZigZag>() },
    options: ZigZagConfig::OPTIONS,
    build: |given| Ok(Box::new(ZigZag::new(ZigZagConfig::read(given)?))),
};

impl ZigZag {
    /// With these parameters.
    pub fn new(config: ZigZagConfig) -> ZigZag {
        ZigZag { config, ..ZigZag::default() }
    }
}

impl Classifier for ZigZag {
    fn on_arrival(&mut self, arrival: &Arrival) {
        let Some(rott) = arrival.rott() else { return };
        let first = *self.delay_origin.get_or_insert(rott);
        let (alpha, rott) = (self.config.alpha, (rott - first).as_nanos() as f64);
        (self.last_rott, self.rott) = (self.rott, rott);
        self.mean = (1.0 - alpha) * self.mean + alpha * rott; // [LDA, III.C: rott_mean]
        // [LDA, III.C: rott_dev], from the mean as it is with this delay in it
        self.deviation = (1.0 - 2.0 * alpha) * self.deviation + 2.0 * alpha * (rott - self.mean).abs();
    }

    fn classify(&mut self, loss: &Loss) -> LossClass {
        // [LDA, III.C, figure 4]
        let below = match loss.run {
            0 | 1 => self.mean - self.deviation,
            3 => self.mean,
            _ => self.mean - self.deviation / 2.0,
        };
        let rott = if self.config.before { self.last_rott } else { self.rott };
        if self.delay_origin.is_some() && rott < below { LossClass::Wireless } else { LossClass::Congestion }
    }

    fn on_route_change(&mut self) {
        if self.config.route_reset {
            *self = ZigZag::new(self.config.clone());
        }
    }

    /// Delays deviate by more than a millisecond if queues say anything.
    fn resolution_needed(&self) -> Span {
        Span::from_millis(1)
    }

    fn telemetry(&self, visitor: &mut dyn Visitor) {
        visitor.number("mean delay above the first", "s", self.mean / 1e9);
        visitor.number("mean deviation of the delay", "s", self.deviation / 1e9);
    }

    fn clone_box(&self) -> Box<dyn Classifier> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::arrival;
    use super::*;

    /// With alpha = 1/4, delays 10, 18, 10 ms: the mean goes 0, 2, 1.5 above the first, the deviation 0, 3, 2.25.
    #[test]
    fn the_averages_are_the_papers() {
        let mut zigzag = ZigZag::new(ZigZagConfig { alpha: 0.25, ..ZigZagConfig::default() });
        for (k, delay) in [10_000, 18_000, 10_000].into_iter().enumerate() {
            zigzag.on_arrival(&arrival(k as u64, 1_000 * k as u64, delay));
        }
        assert!((zigzag.mean - 1.5e6).abs() < 1.0, "{zigzag:?}");
        // 0.5 (0.5 * 0 + 0.5 * |8 - 2|) + 0.5 |0 - 1.5|
        assert!((zigzag.deviation - 2.25e6).abs() < 1.0, "{zigzag:?}");
    }

    /// Mean 10, deviation 4: the boundaries are 6 for one lost packet, 8 for two, 10 for three, 8 for more.
    #[test]
    fn the_boundary_zigzags_with_the_number_of_packets_lost() {
        for (run, boundary) in [(1, 6.0), (2, 8.0), (3, 10.0), (4, 8.0), (100, 8.0)] {
            for (rott, class) in [(boundary, LossClass::Congestion), (boundary - 0.001, LossClass::Wireless)]
            {
                let first = arrival(0, 0, 0).rott();
                let mut zigzag =
                    ZigZag { delay_origin: first, rott, mean: 10.0, deviation: 4.0, ..ZigZag::default() };
                assert_eq!(zigzag.classify(&Loss::of(9, run)), class, "{run} lost at {rott}");
            }
        }
    }

    /// A delay that falls with the packet that reveals the loss.
    #[test]
    fn the_packet_before_the_loss_may_judge() {
        for (before, class) in [(false, LossClass::Wireless), (true, LossClass::Congestion)] {
            let mut zigzag = ZigZag::new(ZigZagConfig { before, ..ZigZagConfig::default() });
            for k in 0..100 {
                zigzag.on_arrival(&arrival(k, 1_000 * k, if k % 2 == 0 { 10_000 } else { 12_000 }));
            }
            zigzag.on_arrival(&arrival(101, 101_000, 5_000));
            assert_eq!(zigzag.classify(&Loss::of(100, 1)), class);
        }
    }

    #[test]
    fn a_new_route_is_learnt_gradually_unless_the_old_one_is_forgotten() {
        for route_reset in [false, true] {
            let mut zigzag = ZigZag::new(ZigZagConfig { route_reset, ..ZigZagConfig::default() });
            (0..100).for_each(|k| zigzag.on_arrival(&arrival(k, 1_000 * k, 10_000)));
            zigzag.on_route_change();
            zigzag.on_arrival(&arrival(100, 100_000, 42_000));
            assert!((zigzag.mean - if route_reset { 0.0 } else { 1e6 }).abs() < 1.0, "{zigzag:?}");
        }
    }
}
