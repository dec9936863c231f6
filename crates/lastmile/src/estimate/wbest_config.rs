//! Options of [`Wbest`](super::wbest::Wbest).

use crate::classify;
use crate::options::{Given, OptionError, Options};
use crate::time::Span;
use crate::units::{Bytes, Rate};

crate::options! {
    /// WBest's parameters.
    pub struct WbestConfig {
        /// Packet pairs
        pairs: usize [5..=1_000] = 30, "WBest, section II.C: 30";
        /// Between pairs, so that they do not fill a queue
        pair_gap: Span [Span::ZERO..=Span::from_secs(1)] = Span::from_millis(10), "the original program: 10 ms";
        /// Packets in a train
        train_length: usize [8..=1_000] = 30, "WBest, section II.C: 30, and fewer than 40";
        /// Trains to average [default: 1 on an idle path, 3 on others]
        trains: Option<usize> [1..=1_000] = None, "WBest: 1";
        /// Between trains, half more or less: trains in step with periodic traffic would all see the same part of it
        pause: Span [Span::ZERO..=Span::from_secs(60)] = Span::from_millis(50), "our own";
        /// Size of the packets at the IP layer
        packet_size: Bytes [Bytes(100)..=Bytes(65_000)] = Bytes(1488), "the original program: 1460 B of payload";
        /// Rather under-estimate: the upper decile of the pairs' rates for the capacity
        conservative: bool = false, "WBest, section II.D";
        /// Do as the original program: its median and gap rule, no look at the schedule
        faithful: bool = false, "the original program, 1.0";
        /// The capacity at the IP layer, where it is known: no pairs are sent
        capacity: Option<Rate> [Rate::ip(1)..=Rate::ip(1_000_000_000_000)] = None, "our own";
        /// Streams of pairs to send until enough pairs are usable
        pair_attempts: u32 [1..=100] = 3, "our own";
        /// Trains to send in vain
        train_attempts: u32 [1..=100] = 6, "our own";
        /// Tell wireless from congestion losses with this classifier
        classifier: Option<classify::Named> = None, "WBest, section V";
    }
}

impl WbestConfig {
    /// Refuses options that mean nothing beside one another.
    pub(super) fn agreeing(given: &Given) -> Result<WbestConfig, OptionError> {
        let config = WbestConfig::read(given)?;
        let refuse = |option, reason: &str| Err(OptionError::new(option, format!("{reason}: leave it out")));
        if config.capacity.is_some() && given.contains_key("pairs") {
            return refuse("pairs", "means nothing beside `capacity`, with which none are sent");
        }
        if config.capacity.is_some() && config.conservative {
            return refuse("conservative", "means nothing beside `capacity`, which is used as it is");
        }
        if config.faithful && config.conservative {
            return refuse("conservative", "is not in the original program, and `faithful` is that");
        }
        Ok(config)
    }
}
