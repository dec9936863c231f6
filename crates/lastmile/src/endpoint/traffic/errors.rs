//! Errors of gaps, counted in classes, so that any number of packets takes the same memory.

use crate::time::Span;

/// Classes to a doubling of the error.
const PER_DOUBLING: f64 = 8.0;
/// Classes: from 1 ns up to 2^40, which is 18 minutes.
const CLASSES: usize = 8 * 40;

/// How far gaps were from the planned ones: quantiles within 9 %.
///
/// ```
/// use lastmile::{endpoint::traffic::Errors, time::Span};
/// let mut errors = Errors::default();
/// (1..=99).for_each(|k| errors.take(Span::from_micros(k)));
/// let median = errors.quantile(0.5).unwrap().as_secs_f64() * 1e6;
/// assert!((46.0..=55.0).contains(&median), "{median}");
/// assert_eq!(Errors::default().quantile(0.5), None);
/// ```
#[derive(Clone, Debug)]
pub struct Errors {
    classes: Vec<u64>,
    count: u64,
}

impl Default for Errors {
    fn default() -> Errors {
        Errors { classes: vec![0; CLASSES], count: 0 }
    }
}

impl Errors {
    /// Takes in an error, of whatever sign.
    pub fn take(&mut self, error: Span) {
        let ns = error.as_nanos().unsigned_abs().max(1);
        let class = libm::floor(libm::log2(ns as f64) * PER_DOUBLING) as usize;
        self.classes[class.min(CLASSES - 1)] += 1;
        self.count += 1;
    }

    /// Gaps taken in.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The error that this share of the gaps does not exceed: the middle of its class.
    pub fn quantile(&self, share: f64) -> Option<Span> {
        let rank = (share.clamp(0.0, 1.0) * self.count as f64).max(1.0);
        let mut below = 0;
        let class = self.classes.iter().position(|count| {
            below += count;
            self.count > 0 && below as f64 >= rank
        })?;
        Some(Span::from_nanos(libm::round(libm::exp2((class as f64 + 0.5) / PER_DOUBLING)) as i64))
    }
}
