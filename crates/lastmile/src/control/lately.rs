//! The least or the most of late: bounds on what a peer may say that fall as well as grow.

/// Messages after which it begins anew.
const PERIOD: u32 = 8;

/// The least or the most of the last 8 to 16 values.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lately {
    /// The bytes of the last whole period, and since.
    best: [Option<f64>; 2],
    values: u32,
}

impl Lately {
    /// Takes a value in; the best of late, where `better` is [`f64::min`] or [`f64::max`].
    pub(super) fn take(&mut self, value: f64, better: fn(f64, f64) -> f64) -> f64 {
        if self.values == PERIOD {
            (self.best, self.values) = ([self.best[1], None], 0);
        }
        let since = self.best[1].map_or(value, |best| better(best, value));
        (self.best[1], self.values) = (Some(since), self.values + 1);
        self.best[0].map_or(since, |before| better(before, since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_long_past_is_forgotten() {
        let (mut least, mut most) = (Lately::default(), Lately::default());
        for value in [60.0, 41.0, 70.0] {
            least.take(value, f64::min);
            most.take(value, f64::max);
        }
        assert_eq!((least.take(50.0, f64::min), most.take(50.0, f64::max)), (41.0, 70.0));
        let after = (0..15).map(|_| (least.take(300.0, f64::min), most.take(3.0, f64::max))).last();
        assert_eq!(after, Some((300.0, 3.0)));
    }
}
