//! The search of [`igi`](super::igi) and [`ptr`](super::ptr): the smallest gap with which a train comes as it went.
//!
//! N. Hu, P. Steenkiste, "Evaluation and characterization of available bandwidth probing techniques", IEEE JSAC 21(6), 2003, figure 7: from half of the
//! bottleneck's gap on in steps of an eighth of it, until the gaps received are those sent. Version 2 sends several trains a gap, takes
//! their sums, jumps to the middle of both gaps where a train was spread by half or more, and wants two gaps in a row at which
//! nothing grew, of which the first counts. ECNProbe's measurements took version 1.0 with a binary search, of which no more is
//! known than that: here the bracket is halved by the same test until it is narrower than a quarter of a step.

use crate::estimate::search::Bracket;

crate::names! {
    /// Search of the gap.
    pub enum How {
        /// Step by step.
        #[default]
        Step = "step",
        /// By halves.
        Binary = "binary",
    }
}

/// A received gap may be longer than that sent by so many nanoseconds in sum, for each train [IGI 2.0].
const DELTA: f64 = 5e3;
/// Trains whose gaps grew by this factor are far from the turning point [IGI 2.0].
const FAR: f64 = 1.5;

/// The state of the search. Gaps are in nanoseconds.
#[derive(Clone, Debug)]
pub(super) struct GapSearch {
    how: How,
    gap: f64,
    step: f64,
    /// The gap next to the turning point, beyond it, if it is the last that was tried, or for the binary search in all.
    equal: Option<usize>,
    bracket: Bracket,
    rounds: usize,
}

impl GapSearch {
    /// From the gap with which trains came that had left back to back.
    pub(super) fn new(how: How, bottleneck: f64) -> GapSearch {
        let gap = bottleneck / 2.0; // [IGI fig. 7]
        GapSearch {
            how,
            gap,
            step: bottleneck / 8.0, // [IGI fig. 7]
            equal: None,
            bracket: Bracket::new(gap, None),
            rounds: 0,
        }
    }

    /// The gap to send.
    pub(super) fn gap(&self) -> f64 {
        self.gap
    }

    /// Rounds so far.
    pub(super) fn rounds(&self) -> usize {
        self.rounds
    }

    /// Takes in the sums of all gaps of a round of trains, as sent and as received, and says the round of the turning point once it is known.
    pub(super) fn take(&mut self, sent: f64, received: f64, trains: usize) -> Option<usize> {
        let (round, grew) = (self.rounds, received > sent + DELTA * trains as f64);
        self.rounds += 1;
        if self.how == How::Binary {
            self.bracket.take(self.gap, !grew);
            self.equal = if grew { self.equal } else { Some(round) };
            self.gap = self.bracket.next();
            return self.equal.filter(|_| self.bracket.width() <= self.step / 4.0);
        }
        let before = core::mem::replace(&mut self.equal, (!grew).then_some(round));
        let far = grew && received >= FAR * sent;
        self.gap = if far { self.gap * (1.0 + received / sent) / 2.0 } else { self.gap + self.step };
        before.filter(|_| !grew)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path of 10 units a packet that others fill to four tenths: gaps of less than 16.67 grow to 10 + 0.4 of themselves.
    fn search(how: How) -> (Vec<f64>, usize) {
        let mut search = GapSearch::new(how, 10e6);
        let mut gaps = Vec::new();
        loop {
            let gap = search.gap();
            gaps.push(gap / 1e6);
            if let Some(found) = search.take(gap, (10e6 + 0.4 * gap).max(gap), 1) {
                return (gaps, found);
            }
        }
    }

    #[test]
    fn steps_end_with_the_first_of_two_gaps_at_which_nothing_grew() {
        let (gaps, found) = search(How::Step);
        // 5 grows to 12, more than half as much again: on to 8.5; that grows to 13.4, and on to 10.95, 12.2, 13.45 and so on.
        assert!(
            (gaps[1] - 8.5).abs() < 1e-9 && (gaps[2] - 10.95).abs() < 1e-9 && (gaps[3] - 12.2).abs() < 1e-9
        );
        assert!((gaps[found] - 17.2).abs() < 1e-9 && gaps.len() == found + 2, "{gaps:?}");
    }

    #[test]
    fn halves_end_next_to_the_turning_point() {
        let (gaps, found) = search(How::Binary);
        assert_eq!(gaps[..4], [5.0, 10.0, 20.0, 15.0]);
        assert!((0.0..=0.3125).contains(&(gaps[found] - 16.667)), "{gaps:?}");
    }
}
