//! mBiaz: [`Biaz`] with a narrower gap, which misses less congestion.
//!
//! Cen, Cosman, Voelker (seed 004), section III.A and figure 2: the upper threshold is (n + 1.25) T_min.

use super::spacing::BiazConfig;
use super::{Biaz, Cost, Lda};
use crate::options::Options;

/// Its place in the registry.
pub const ENTRY: Lda = Lda {
    name: "mbiaz",
    about: "wireless where the gap that n lost packets left is n + 1 to n + 1.25 times the least between arrivals",
    paper: "Cen, Cosman, Voelker, IEEE/ACM ToN 2003, section III.A",
    resolution: "a thirteenth of the least time between arrivals",
    cost: Cost { arrival: [6, 2], loss: [4, 5], state: size_of::<Biaz>() },
    options: BiazConfig::OPTIONS,
    build: |given| Ok(Box::new(Biaz::modified(BiazConfig::read(given)?))),
};
