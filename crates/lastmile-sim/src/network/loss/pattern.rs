//! A recorded pattern of losses, played in a circle.

use lastmile::time::Span;
use serde::Deserialize;

use super::slots::Slots;
use super::{Air, Covers};
use crate::network::config_error::LinkConfigError;
use crate::rng::Stream;
use crate::text;

/// A recording of which packets, or which slots of time, were lost.
///
/// ```
/// use lastmile_sim::network::loss::Pattern;
/// let bits = Pattern::parse("0100\n0010 # two of eight").unwrap();
/// let list = Pattern::parse("period 8\n1\n6\n").unwrap();
/// assert_eq!(bits, list);
/// assert_eq!((list.period, list.lost), (8, vec![1, 6]));
/// ```
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
    /// Which slots decide about a packet.
    #[serde(default)]
    pub covers: Covers,
    /// Begin at a random place, another one for each seed.
    #[serde(default)]
    pub random_start: bool,
}

/// Why a text is no pattern.
///
/// ```
/// let error = lastmile_sim::network::loss::Pattern::parse("period 3\n7\n").unwrap_err();
/// assert_eq!(error.to_string(), "line 2: 7 is not below the period of 3");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct PatternError {
    /// Where, from 1.
    pub line: usize,
    /// What is wrong.
    pub reason: String,
}

/// A recording may be this long.
const MAX_PERIOD: u64 = 100_000_000;

impl Pattern {
    /// Reads a recording: either characters 0 (arrived) and 1 (lost), with any white space, or a line
    /// `period N` followed by the numbers of the lost ones. `#` begins a comment.
    pub fn parse(text: &str) -> Result<Pattern, PatternError> {
        let mut pattern = Pattern::default();
        let mut listed = false;
        for (index, line) in text.lines().enumerate() {
            let refuse = |reason: String| PatternError { line: index + 1, reason };
            let line = line.split('#').next().unwrap_or_default();
            let mut words = line.split_whitespace().peekable();
            if words.peek() == Some(&"period") {
                if listed || pattern.period > 0 {
                    return Err(refuse("the period stands once, before everything else".into()));
                }
                words.next();
                let number = words.next().and_then(|word| word.parse().ok());
                let Some(period) = number.filter(|period| (1..=MAX_PERIOD).contains(period)) else {
                    return Err(refuse(format!("a period is a number from 1 to {MAX_PERIOD}")));
                };
                (pattern.period, listed) = (period, true);
            }
            for word in words {
                if listed {
                    let number: u64 =
                        word.parse().map_err(|_| refuse(format!("{word:?} is not a number")))?;
                    if number >= pattern.period {
                        return Err(refuse(format!(
                            "{number} is not below the period of {}",
                            pattern.period
                        )));
                    }
                    pattern.lost.push(number);
                    continue;
                }
                for bit in word.chars() {
                    match bit {
                        '0' => {}
                        '1' => pattern.lost.push(pattern.period),
                        _ => return Err(refuse(format!("{bit:?} is neither 0 (arrived) nor 1 (lost)"))),
                    }
                    pattern.period += 1;
                    if pattern.period > MAX_PERIOD {
                        return Err(refuse(format!("longer than {MAX_PERIOD}")));
                    }
                }
            }
        }
        if pattern.period == 0 {
            return Err(PatternError { line: 1, reason: "an empty pattern".into() });
        }
        pattern.lost.sort_unstable();
        pattern.lost.dedup();
        Ok(pattern)
    }

    pub(super) fn check(&self) -> Result<(), LinkConfigError> {
        if self.period == 0 || self.lost.iter().any(|&n| n >= self.period) {
            return Err(LinkConfigError::new("lost", "all numbers must be below the period"));
        }
        let mut lost = self.lost.clone();
        lost.sort_unstable();
        if lost.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(LinkConfigError::new("lost", "a number stands twice"));
        }
        if self.slot.is_some_and(|slot| slot < Span::from_micros(1)) {
            return Err(LinkConfigError::new("slot", "a slot of less than 1 us"));
        }
        Ok(())
    }
}

#[derive(Debug)]
pub(super) struct State {
    /// Sorted.
    lost: Vec<u64>,
    period: u64,
    slots: Option<Slots>,
    next: u64,
}

impl State {
    pub(super) fn new(model: &Pattern, mut random: Stream) -> State {
        let mut lost = model.lost.clone();
        lost.sort_unstable();
        let period = model.period.max(1);
        let next = if model.random_start { random.bits() % period } else { 0 };
        State { lost, period, slots: model.slot.map(|slot| Slots::of(slot, model.covers)), next }
    }

    fn is_lost(&self, number: u64) -> bool {
        self.lost.binary_search(&(number % self.period)).is_ok()
    }

    pub(super) fn loses(&mut self, air: Air, looks: &mut u64) -> bool {
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
    use proptest::prelude::*;

    const NOW: Air = Air { starts: 0, ends: 0 };

    #[test]
    fn packets_play_it_in_a_circle() {
        let mut state = State::new(&Pattern::parse("011").unwrap(), Stream::new(1, "p"));
        let played: Vec<bool> = (0..7).map(|_| state.loses(NOW, &mut 0)).collect();
        assert_eq!(played, [false, true, true, false, true, true, false]);
        let random = Pattern { random_start: true, ..Pattern::parse(&"01".repeat(500)).unwrap() };
        let starts: Vec<u64> = (0..4).map(|seed| State::new(&random, Stream::new(seed, "p")).next).collect();
        assert!(starts.windows(2).any(|w| w[0] != w[1]), "{starts:?}");
    }

    #[test]
    fn slots_go_by_the_clock() {
        let slot = Some(Span::from_millis(20));
        let at = |covers, starts: u64, ends: u64| {
            let model = Pattern { slot, covers, ..Pattern::parse("0010").unwrap() };
            let air = Air { starts: starts * 1_000_000, ends: ends * 1_000_000 };
            State::new(&model, Stream::new(1, "p")).loses(air, &mut 0)
        };
        // Slot 2 is 40 to 60 ms, and 120 to 140 ms again.
        assert!(at(Covers::Whole, 30, 41) && !at(Covers::Whole, 30, 40) && at(Covers::Whole, 125, 126));
        assert!(!at(Covers::Instant, 30, 41) && at(Covers::Instant, 30, 51));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(period )?[01#x \n0-9]{0,60}") {
            if let Ok(pattern) = Pattern::parse(&text) {
                prop_assert!(pattern.check().is_ok());
            }
        }
    }
}
