//! Configuration of a session: its measurements, peer and limits.

use core::net::SocketAddr;

use crate::endpoint::measure::packets::Key;
use crate::estimate::{AllConfig, Estimator};
use crate::node::Flow;
use crate::report::Direction;
use crate::time::{Epoch, Span, Time};
use crate::units::Bytes;

/// One method in one direction.
pub struct Measurement {
    /// The method's registered name.
    pub method: String,
    /// Direction of its streams.
    pub direction: Direction,
    /// Its state machine.
    pub estimator: Box<dyn Estimator>,
}

/// Configuration of a prober.
///
/// Its written form, of the feature `serde`, leaves out what a file must not or need not hold: key, epoch and seed.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ProberConfig {
    /// The reflector.
    pub peer: SocketAddr,
    /// The shared key; `None` for unauthenticated mode.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub key: Option<Key>,
    /// When the run started, for the stamps on the wire.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub epoch: Epoch,
    /// Makes nonces, session identifiers and sequence numbers that nobody can guess.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub seed: [u8; 32],
    /// Bytes at the IP layer, both directions together, that may be spent.
    pub max_bytes: Option<Bytes>,
    /// Time that may be spent.
    pub max_time: Option<Span>,
    /// Time between two measurements in which nothing is sent.
    #[cfg_attr(feature = "serde", serde(default))]
    pub pause: Span,
    /// When to begin.
    pub start: Time,
    /// Resolution of this host's stamps.
    pub resolution: Span,
    /// DiffServ codepoint of all packets.
    pub dscp: u8,
    /// The flow label for the simulator's observers.
    pub flow: Flow,
}

impl ProberConfig {
    /// Measures towards `peer` with no key and no limits. `seed` has to come from the system's random source where
    /// strangers can send packets: a stranger with the seed could forge the peer's answers.
    pub fn new(peer: SocketAddr, seed: [u8; 32]) -> ProberConfig {
        ProberConfig {
            peer,
            key: None,
            epoch: Epoch::default(),
            seed,
            max_bytes: None,
            max_time: None,
            pause: Span::ZERO,
            start: Time::ZERO,
            resolution: Span::from_nanos(1),
            dscp: 0,
            flow: Flow::default(),
        }
    }

    /// The same within the budget of `all`, where it has no limits of its own.
    pub fn within(self, budget: &AllConfig) -> ProberConfig {
        ProberConfig {
            max_bytes: self.max_bytes.or(Some(budget.max_bytes)),
            max_time: self.max_time.or(Some(budget.max_time)),
            pause: budget.pause,
            ..self
        }
    }
}
