//! A recorded pattern of losses, played in a circle.

use lastmile::rng::Stream;
use lastmile::time::Span;
use serde::Deserialize;

use super::slots::Slots;
use super::{Air, Covers, Parameters, State};
use crate::network::config_error::{ConfigError, require};
use crate::text;

/// A recording of lost packets, or of lost slots of time.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pattern {
    /// After so many packets or slots it begins again.
    pub period: u64,
    /// The numbers of those lost, from 0, below the period.
    pub lost: Vec<u64>,
    /// The length of a slot. Without one the pattern counts packets.
    #[serde(default, deserialize_with = "text::optional")]
    pub slot: Option<Span>,
    /// Slots that decide about a packet.
    #[serde(default)]
    pub covers: Covers,
    /// Begin at a random place, another one for each seed.
    #[serde(default)]
    pub random_start: bool,
}

impl Parameters for Pattern {
    fn check(&self) -> Result<(), ConfigError> {
        let below = self.period > 0 && self.lost.iter().all(|&number| number < self.period);
        require(below, "lost", "all numbers must be below the period")?;
        let once = self.lost.iter().collect::<std::collections::BTreeSet<_>>().len() == self.lost.len();
        require(once, "lost", "a number stands twice")?;
        let long = self.slot.is_none_or(|slot| slot >= Span::from_micros(1));
        require(long, "slot", "a slot of less than 1 us")
    }

    fn state(&self, seed: u64, name: &str) -> Box<dyn State> {
        let (mut lost, period) = (self.lost.clone(), self.period.max(1));
        lost.sort_unstable();
        let slots = self.slot.map(|slot| Slots::of(slot, self.covers));
        let next = if self.random_start { Stream::new(seed, name).bits() % period } else { 0 };
        Box::new(Played { lost, period, slots, next })
    }
}

#[derive(Debug)]
struct Played {
    /// Sorted.
    lost: Vec<u64>,
    period: u64,
    slots: Option<Slots>,
    next: u64,
}

impl Played {
    fn is_lost(&self, number: u64) -> bool {
        self.lost.binary_search(&(number % self.period)).is_ok()
    }
}

impl State for Played {
    fn loses(&mut self, air: Air, looks: &mut u64) -> bool {
        if let Some(slots) = &self.slots {
            let under = slots.under(air);
            *looks += under.end() - under.start();
            return under.into_iter().any(|slot| self.is_lost(slot.wrapping_add(self.next)));
        }
        let lost = self.is_lost(self.next);
        self.next = (self.next + 1) % self.period;
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Air = Air { starts: 0, ends: 0 };

    #[test]
    fn packets_play_it_in_a_circle() {
        let mut state = Pattern { period: 3, lost: vec![2, 1], ..Pattern::default() }.state(1, "p");
        let played: Vec<bool> = (0..7).map(|_| state.loses(NOW, &mut 0)).collect();
        assert_eq!(played, [false, true, true, false, true, true, false]);
        let lost = (0..500).map(|n| 2 * n).collect();
        let random = Pattern { random_start: true, period: 1000, lost, ..Pattern::default() };
        let first = |seed| random.state(seed, "p").loses(NOW, &mut 0);
        assert!((1..20).any(|seed| first(seed) != first(0)));
    }

    #[test]
    fn slots_go_by_the_clock() {
        let slot = Some(Span::from_millis(20));
        let at = |covers, starts: u64, ends: u64| {
            let model = Pattern { period: 4, lost: vec![2], slot, covers, random_start: false };
            model.state(1, "p").loses(Air { starts: starts * 1_000_000, ends: ends * 1_000_000 }, &mut 0)
        };
        // Slot 2 is 40 to 60 ms, and 120 to 140 ms again.
        assert!(at(Covers::Whole, 30, 41) && !at(Covers::Whole, 30, 40) && at(Covers::Whole, 125, 126));
        assert!(!at(Covers::Instant, 30, 41) && at(Covers::Instant, 30, 51));
    }
}
