//! Biaz: lost packets that took their time on the last link were lost behind it.
//!
//! Biaz, Vaidya, "Discriminating congestion losses from wireless losses using inter-arrival times at the receiver",
//! IEEE ASSET 1999, as Cen, Cosman, Voelker (LDA) give it in section III.A. Works where the last link is wireless, the
//! bottleneck, and not shared; there it finds congestion beyond the last link alone.

use super::spacing::{BiazConfig, Spacing};
use super::{Arrival, Classifier, Cost, Lda, Loss, LossClass};
use crate::options::Options;
use crate::telemetry::Visitor;
use crate::time::Span;

/// The algorithm's state, of Biaz and of mBiaz.
///
/// ```
/// use lastmile::classify::{Biaz, Classifier, Loss, LossClass};
/// // Nothing is known yet.
/// assert_eq!(Biaz::default().classify(&Loss::of(0, 1)), LossClass::Congestion);
/// ```
#[derive(Clone, Debug)]
pub struct Biaz {
    config: BiazConfig,
    spacing: Spacing,
    upper: f64,
    /// Stamps may be as coarse as this part of T_min.
    share: i64,
}

/// Its place in the registry.
pub const ENTRY: Lda = Lda {
    name: "biaz",
    about: "wireless where the gap that n lost packets left is n + 1 to n + 2 times the least between arrivals",
    paper: "Biaz, Vaidya, ASSET 1999, as in Cen, Cosman, Voelker, IEEE/ACM ToN 2003, section III.A",
    resolution: "a quarter of the least time between arrivals",
    // The gap in time and in numbers, two comparisons of it, two for the extrema; the size.
    // The bytes of both thresholds, two comparisons; the thresholds.
    cost: Cost { arrival: [6, 2], loss: [4, 5], state: size_of::<Biaz>() },
    options: BiazConfig::OPTIONS,
    build: |given| Ok(Box::new(Biaz::new(BiazConfig::read(given)?))),
};

impl Default for Biaz {
    fn default() -> Biaz {
        Biaz::new(BiazConfig::default())
    }
}

impl Biaz {
    /// The upper threshold is (n + 2) T_min.
    pub fn new(config: BiazConfig) -> Biaz {
        Biaz::modified(config, 2.0)
    }

    /// The upper threshold is (n + `upper`) T_min: 1.25 is mBiaz's [LDA, III.A, figure 2].
    ///
    /// Stamps in steps of r make T_min read up to r less, and T_i up to r more: a gap that is exactly right stays below the
    /// upper threshold while (n + upper)(T_min - r) > (n + 1) T_min + r, for n = 1 up to a quarter of T_min with 2, and a
    /// thirteenth with 1.25.
    pub fn modified(config: BiazConfig, upper: f64) -> Biaz {
        let share = ((2.0 + upper) / (upper - 1.0).max(0.01)) as i64;
        Biaz { config, spacing: Spacing::default(), upper, share }
    }
}

impl Classifier for Biaz {
    fn on_arrival(&mut self, arrival: &Arrival) {
        self.spacing.take(&self.config, arrival);
    }

    fn classify(&mut self, loss: &Loss) -> LossClass {
        if self.spacing.fits(loss, self.upper) { LossClass::Wireless } else { LossClass::Congestion }
    }

    fn on_route_change(&mut self) {
        self.spacing.on_route_change(&self.config);
    }

    fn resolution_needed(&self) -> Span {
        self.spacing.resolution(self.share)
    }

    fn telemetry(&self, visitor: &mut dyn Visitor) {
        let least = self.spacing.min_gap_time();
        least
            .into_iter()
            .for_each(|least| visitor.number("least time between arrivals", "s", least.as_secs_f64()));
    }

    fn clone_box(&self) -> Box<dyn Classifier> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::arrival;
    use super::*;
    use crate::units::Bytes;

    /// A link of 10 ms a packet; then a gap of so many microseconds that `lost` packets left.
    fn verdict(biaz: &mut Biaz, gap: u64, lost: u64) -> LossClass {
        for k in 0..5 {
            biaz.on_arrival(&arrival(k, 10_000 * k, 50_000));
        }
        let seq = 5 + lost;
        biaz.on_arrival(&arrival(seq, 10_000 * seq, 90_000 + gap - 10_000 * seq));
        biaz.classify(&Loss::of(seq - 1, lost as u32))
    }

    /// T_min is 10 ms: n = 1 is wireless from 20 to below 30 ms, n = 3 from 40 to below 50 ms; mBiaz to 22.5 and 42.5.
    #[test]
    fn the_gap_has_to_be_that_of_the_packets_that_are_missing() {
        for (lost, gap, biaz, modified) in [
            (1, 19_999, false, false),
            (1, 20_000, true, true),
            (1, 22_499, true, true),
            (1, 22_500, true, false),
            (1, 29_999, true, false),
            (1, 30_000, false, false),
            (3, 39_999, false, false),
            (3, 40_000, true, true),
            (3, 42_500, true, false),
            (3, 50_000, false, false),
        ] {
            let wireless = |mut by: Biaz| verdict(&mut by, gap, lost) == LossClass::Wireless;
            for equal_size in [false, true] {
                let config = BiazConfig { equal_size, ..BiazConfig::default() };
                let got = (wireless(Biaz::new(config.clone())), wireless(Biaz::modified(config, 1.25)));
                assert_eq!(got, (biaz, modified), "{lost} lost, {gap} us");
            }
        }
    }

    /// 500 B in 5 ms and 1000 B in 10 ms are one link. With the paper's T_min of 5 ms a loss between large packets would
    /// have to show within 15 ms; per byte it shows at 20, as it should.
    #[test]
    fn unequal_packets_are_told_by_their_bytes() {
        for (equal_size, wireless) in [(false, true), (true, false)] {
            let mut biaz = Biaz::new(BiazConfig { equal_size, ..BiazConfig::default() });
            biaz.on_arrival(&arrival(0, 0, 50_000));
            biaz.on_arrival(&Arrival { size: Bytes(500), ..arrival(1, 0, 55_000) });
            biaz.on_arrival(&arrival(3, 0, 75_000));
            let loss = Loss { bytes: Some(Bytes(1000)), ..Loss::of(2, 1) };
            assert_eq!(biaz.classify(&loss) == LossClass::Wireless, wireless);
            // A lost packet of 500 B would have left a gap of 15 ms, less than 15 + 10.
            let small = Loss { bytes: Some(Bytes(500)), ..loss };
            assert_eq!(biaz.classify(&small) == LossClass::Wireless, wireless);
        }
    }

    #[test]
    fn arrivals_at_one_instant_and_out_of_order_do_not_stop_it() {
        let mut biaz = Biaz::default();
        for (seq, at) in [(0, 50_000), (1, 50_000), (2, 60_000), (1, 61_000), (3, 70_000)] {
            biaz.on_arrival(&arrival(seq, 0, at));
        }
        assert!(biaz.spacing.min_gap_time() >= Some(Span::from_millis(9)), "{biaz:?}");
    }

    #[test]
    fn what_stamps_it_needs_follows_from_the_link() {
        let (mut biaz, mut modified) = (Biaz::default(), Biaz::modified(BiazConfig::default(), 1.25));
        assert_eq!(biaz.resolution_needed(), Span::MAX);
        verdict(&mut biaz, 20_000, 1);
        verdict(&mut modified, 20_000, 1);
        assert_eq!(biaz.resolution_needed(), Span::from_micros(2_500));
        assert_eq!(modified.resolution_needed(), Span::from_nanos(769_230));
    }
}
