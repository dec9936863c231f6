//! Steps of a video's rate (M. Li, M. Claypool, R. Kinicki, "WBest", 2008, section 1: a server chooses among encodings of a few rates by what
//! is available). A step is taken only when the estimate is clear of it: all targets of a second are above the next step, or below the one
//! that is coded.

use std::collections::VecDeque;

use lastmile::time::{Span, Time};
use lastmile::units::Rate;

/// The targets of so long are the estimate's interval.
const INTERVAL: Span = Span::from_secs(1);
/// Most steps.
const MAX_STEPS: usize = 32;

/// Steps, and the one that is coded.
#[derive(Clone, Debug)]
pub struct Ladder {
    steps: Vec<Rate>,
    step: usize,
    targets: VecDeque<(Time, Rate)>,
    /// Since when targets are in the interval.
    since: Option<Time>,
}

impl Ladder {
    /// 0.7, 1.2, 2.5 and 5 Mbit/s.
    pub const USUAL: [Rate; 4] =
        [Rate::ip(700_000), Rate::ip(1_200_000), Rate::ip(2_500_000), Rate::ip(5_000_000)];

    /// A ladder of these steps, from the lowest on; `None` without a step, with a step of zero, or with more than 32.
    pub fn new(mut steps: Vec<Rate>) -> Option<Ladder> {
        steps.sort_by_key(|step| step.bits_per_second());
        let possible = (1..=MAX_STEPS).contains(&steps.len()) && steps[0].bits_per_second() > 0;
        possible.then_some(Ladder { steps, step: 0, targets: VecDeque::new(), since: None })
    }

    /// The rate of the picture of that moment, never above the target.
    pub fn rate(&mut self, now: Time, target: Rate) -> Rate {
        // After a pause the second begins anew.
        if self.targets.back().is_none_or(|(at, _)| *at + INTERVAL < now) {
            self.since = Some(now);
        }
        let since = self.since.unwrap_or(now);
        self.targets.push_back((now, target));
        while self.targets.front().is_some_and(|(at, _)| *at + INTERVAL < now) {
            self.targets.pop_front();
        }
        let bits = || self.targets.iter().map(|(_, target)| target.bits_per_second());
        let (low, high) = (bits().min().unwrap_or(0), bits().max().unwrap_or(0));
        let of = |step: &Rate| step.bits_per_second();
        let is_whole = now >= since + INTERVAL;
        let above = self.steps.get(self.step + 1).is_some_and(|next| low > of(next));
        let below = self.step > 0 && high < of(&self.steps[self.step]);
        if is_whole && (above || below) {
            // The highest step that the interval is clear of, or the lowest.
            let bound = if above { low } else { high };
            self.step = self.steps.iter().rposition(|step| of(step) < bound).unwrap_or(0);
        }
        let step = self.steps[self.step];
        if target < step { target } else { step }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rates of pictures 40 ms apart, in kbit/s, each with its target.
    fn rates(targets: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let mut ladder = Ladder::new(Ladder::USUAL.to_vec()).unwrap();
        let rate = |(number, kbps): (usize, u64)| {
            let now = Time::ZERO + Span::from_millis(40 * number as i64);
            ladder.rate(now, Rate::ip(kbps * 1_000)).bits_per_second() / 1_000
        };
        targets.into_iter().enumerate().map(rate).collect()
    }

    #[test]
    fn a_step_is_taken_once_a_second_of_targets_is_clear_of_it() {
        let up = rates([3_000; 60]);
        assert_eq!((&up[..25], &up[25..]), (&[700; 25][..], &[2_500; 35][..]));
        // It swings about 2.5 Mbit/s, and is clear of 1.2 alone.
        let swings = rates((0..200).map(|n| if n % 4 == 0 { 2_400 } else { 2_900 }));
        assert_eq!(swings[199], 1_200);
        assert!(swings.windows(2).filter(|pair| pair[0] != pair[1]).count() == 1, "{swings:?}");
    }

    #[test]
    fn a_step_down_waits_as_long_and_no_picture_is_above_its_target() {
        let down = rates([vec![6_000; 60], vec![1_500; 60], vec![300; 40]].concat());
        assert_eq!((down[59], down[60], down[84]), (5_000, 1_500, 1_500));
        assert_eq!((down[86], down[119], down[120], down[159]), (1_200, 1_200, 300, 300));
    }

    #[test]
    fn ladders_without_steps_are_refused() {
        assert!(Ladder::new(Vec::new()).is_none() && Ladder::new(vec![Rate::ip(0)]).is_none());
        assert!(Ladder::new(vec![Rate::ip(1); 33]).is_none());
    }
}
