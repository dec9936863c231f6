//! WBest's parameters; [`wbest`](super::wbest) is the tool.

use crate::estimate::COALESCING;
use crate::time::Span;
use crate::units::{Bytes, Rate};

/// WBest's parameters.
///
/// ```
/// let config = lastmile::estimate::wbest::WbestConfig::default();
/// assert_eq!((config.pairs, config.train, config.trains), (30, 30, 1));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct WbestConfig {
    /// Packet pairs; paper: 30.
    pub pairs: usize,
    /// Between pairs, so that they do not fill a queue; paper: 10 ms.
    pub pair_gap: Span,
    /// Packets in a train; paper: 30, and fewer than 40.
    pub train: usize,
    /// Trains, whose results are averaged; paper: 1. From four on there is an interval.
    pub trains: usize,
    /// Between trains on average; each pause is drawn from half to one and a half of it, because trains in step with
    /// periodic traffic would all see the same part of it.
    pub pause: Span,
    /// Size of the packets at the IP layer; paper: 1460 bytes of payload over IPv4, 1488 here.
    pub packet_size: Bytes,
    /// Take the upper decile of the pairs' rates for the capacity: never over-estimates what is left (section II.D).
    pub conservative: bool,
    /// Do as the original program: its median, which is half a rank high, its gap rule, no look at the schedule.
    /// Its rates of payload differ from ours of IP packets by a factor that cancels in all its formulas.
    pub faithful: bool,
    /// The capacity at the IP layer, where it is known: no pairs are sent.
    pub capacity: Option<Rate>,
    /// Streams of pairs that may be sent until enough pairs are usable.
    pub pair_attempts: u32,
    /// Trains that may be sent in vain.
    pub train_attempts: u32,
    /// Uncertainty of the hosts' stamps beyond their resolution. A tenth of a dispersion at most, or the answer is
    /// "more than".
    pub timing_noise: Span,
    /// By how much a receiver that coalesces interrupts may stamp late. Pairs closer than that are believed only if a
    /// burst of 40 packets (60 kB) bears them out; zero trusts them.
    pub coalescing: Span,
    /// Seeds the pauses.
    pub seed: u64,
}

impl Default for WbestConfig {
    fn default() -> WbestConfig {
        WbestConfig {
            pairs: 30,
            pair_gap: Span::from_millis(10),
            train: 30,
            trains: 1,
            pause: Span::from_millis(50),
            packet_size: Bytes(1488),
            conservative: false,
            faithful: false,
            capacity: None,
            pair_attempts: 3,
            train_attempts: 6,
            timing_noise: Span::from_micros(2),
            coalescing: COALESCING,
            seed: 0,
        }
    }
}
