//! CapProbe's parameters; [`capprobe`](super::capprobe) is the tool.

use crate::estimate::COALESCING;
use crate::time::Span;
use crate::units::Bytes;

/// CapProbe's parameters.
///
/// ```
/// use lastmile::estimate::capprobe::CapProbeConfig;
/// assert_eq!(CapProbeConfig::default().max_samples, 100);
/// assert_eq!(CapProbeConfig::faithful().sizes[0].0, 900);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CapProbeConfig {
    /// The two packet sizes at the IP layer, the larger first; paper: 900 and 700 B, here 1488 and 1340.
    pub sizes: [Bytes; 2],
    /// Pairs in a stream; between streams the queues may drain and convergence is looked at.
    pub pairs: usize,
    /// Between pairs at least, and at most one and a half of it; widened to four times their service time once that
    /// is known.
    pub pair_gap: Span,
    /// Between streams.
    pub pause: Span,
    /// Samples of a size needed at least one way.
    pub min_samples: usize,
    /// Samples of a size after which a run has failed; paper: 100.
    pub max_samples: usize,
    /// Samples over which the minima must stand still, there and back; PBProbe: 40.
    pub unchanged: usize,
    /// By how much the minimum sum may exceed the sum of minima, as a share of the dispersion.
    pub tolerance: f64,
    /// Runs, each with sizes a fifth smaller than the last; packets that take less time meet less traffic.
    pub max_runs: u32,
    /// Uncertainty of the hosts' stamps beyond their resolution, as in WBest.
    pub timing_noise: Span,
    /// By how much a receiver that coalesces interrupts may stamp late, as in WBest.
    pub coalescing: Span,
    /// Seeds the gaps between pairs.
    pub seed: u64,
    /// The papers' rules and nothing else: sizes 900 and 700 B, the round-trip test as coded, the one best sample,
    /// no look at the schedule.
    pub faithful: bool,
}

impl Default for CapProbeConfig {
    fn default() -> CapProbeConfig {
        CapProbeConfig {
            sizes: [Bytes(1488), Bytes(1340)],
            pairs: 20,
            pair_gap: Span::from_millis(10),
            pause: Span::from_millis(20),
            min_samples: 20,
            max_samples: 100,
            unchanged: 40,
            tolerance: 0.02,
            max_runs: 3,
            timing_noise: Span::from_micros(2),
            coalescing: COALESCING,
            seed: 0,
            faithful: false,
        }
    }
}

impl CapProbeConfig {
    /// The papers' rules.
    pub fn faithful() -> CapProbeConfig {
        CapProbeConfig { sizes: [Bytes(900), Bytes(700)], faithful: true, ..CapProbeConfig::default() }
    }
}
