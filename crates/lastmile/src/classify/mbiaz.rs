//! mBiaz: [`Biaz`] with a narrower gap, which misses less congestion.
//!
//! Cen, Cosman, Voelker (LDA), section III.A and figure 2: the upper threshold is (n + 1.25) T_min.

use super::spacing::BiazConfig;
use super::{Biaz, Cost, Lda};
use crate::options::Options;
use crate::time::Span;

crate::options! {
    /// mBiaz's parameters.
    pub struct MbiazConfig {
        /// A gap is wireless below so many times the least, beside one for each lost packet
        upper: f64 [1.01..=2.0] = 1.25, "LDA, section III.A: 1.25";
        /// Take the least time between arrivals as it is, for packets of one size, in place of the least per byte
        equal_size: bool = false, "LDA, section III.A: packets of one size";
        /// Forget the least time after so long, and after half of that at the earliest
        window: Option<Span> [Span::from_millis(10)..=Span::from_secs(86_400)] = None, "LDA, section IX.B: never";
        /// Forget the least time when the route changes
        route_reset: bool = true, "our own: LDA knows one route, section IX.B";
    }
}

/// Its place in the registry.
pub const ENTRY: Lda = Lda {
    name: "mbiaz",
    about: "wireless where the gap that n lost packets left is n + 1 to n + 1.25 times the least between arrivals",
    paper: "Cen, Cosman, Voelker, IEEE/ACM ToN 2003, section III.A",
    resolution: "a thirteenth of the least time between arrivals",
    cost: Cost { arrival: [6, 2], loss: [4, 5], state: size_of::<Biaz>() },
    options: MbiazConfig::OPTIONS,
    build: |given| {
        let MbiazConfig { upper, equal_size, window, route_reset } = MbiazConfig::read(given)?;
        Ok(Box::new(Biaz::modified(BiazConfig { equal_size, window, route_reset }, upper)))
    },
};
