//! [`Late`]: packets that a link's jitter has come later than its delay does.

use std::collections::BTreeMap;

use lastmile::rng::Stream;

use super::ring::UnderWay;
use crate::network::jitter::Jitter;

/// Packets that have propagated and are kept back, by arrival time.
#[derive(Debug)]
pub(super) struct Late {
    jitter: Jitter,
    random: Stream,
    packets: BTreeMap<(u64, u64), UnderWay>,
    held: u64,
    last: u64,
}

impl Late {
    pub(super) fn new(jitter: &Jitter, seed: u64, link: &str) -> Late {
        let random = Stream::new(seed, &format!("{link}/jitter"));
        Late { jitter: jitter.clone(), random, packets: BTreeMap::new(), held: 0, last: 0 }
    }

    /// Takes a packet at the end of its delay. One that the channel has lost draws as well, so that a channel moves no
    /// other packet.
    pub(super) fn hold(&mut self, packet: UnderWay) {
        let drawn = packet.arrives.saturating_add(self.jitter.draw(&mut self.random));
        let arrives = if self.jitter.reorders() { drawn } else { drawn.max(self.last) };
        self.last = arrives;
        self.held += 1;
        self.packets.insert((arrives, self.held), packet);
    }

    /// The next packet that arrives by `now`.
    pub(super) fn take_due(&mut self, now: u64) -> Option<UnderWay> {
        let first = self.packets.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(first.remove())
    }

    /// When the next packet arrives.
    pub(super) fn next(&self) -> Option<u64> {
        self.packets.first_key_value().map(|((arrives, _), _)| *arrives)
    }

    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &UnderWay> {
        self.packets.values()
    }
}
