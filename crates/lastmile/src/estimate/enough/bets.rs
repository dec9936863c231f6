//! Bets on an answer: capital that grows if the other answer is wrong.
//!
//! Waudby-Smith, Ramdas, "Estimating means of bounded random variables by betting", J. Royal Statistical Society B 86, 2024,
//! sections 3 and 4; Ville, "Étude critique de la notion de collectif", 1939; Ramdas, Grünwald, Vovk, Shafer, "Game-theoretic statistics and safe
//! anytime-valid inference", Statistical Science 38, 2023.
//!
//! An observation y lies in 0 to 1. If its mean, given all that was seen before, is at most m, then
//!
//! > K_t = K_(t-1) (1 + s (y - m) / m), K_0 = 1, 0 <= s < 1
//!
//! is never negative and does not grow in the mean, whatever the dependence between observations. So K ever reaches 1 / alpha with a
//! probability of alpha at most, at any time and in any stretch of looking (Ville). The same holds for the mean of such capitals with
//! several stakes s, which stands for the unknown best one, and for a mean of 1 - y. Nothing has to be independent, as Wald's
//! test wants it; the bound of the conditional mean is the whole assumption.

use crate::estimate::enough::ZONE;

/// Stakes, as shares of the most that can be lost.
const STAKES: [f64; 6] = [0.03, 0.1, 0.25, 0.45, 0.65, 0.85];
/// No bound of a mean is nearer to 0 or 1: one observation alone never decides.
const NEAREST: f64 = 0.08;

/// Logarithms of the capital by each stake.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Capital([f64; STAKES.len()]);

impl Capital {
    /// Bets that the mean of `y` is more than `most`.
    pub(super) fn more(&mut self, y: f64, most: f64) {
        let most = most.max(NEAREST);
        if most < 1.0 {
            self.gain((y.clamp(0.0, 1.0) - most) / most);
        }
    }

    /// Bets that it is less than `least`.
    pub(super) fn less(&mut self, y: f64, least: f64) {
        let least = least.min(1.0 - NEAREST);
        if least > 0.0 {
            self.gain((least - y.clamp(0.0, 1.0)) / (1.0 - least));
        }
    }

    fn gain(&mut self, share: f64) {
        for (log, stake) in self.0.iter_mut().zip(STAKES) {
            *log += libm::log(1.0 + stake * share);
        }
    }

    /// The capital: the mean over the stakes.
    pub(super) fn wealth(&self) -> f64 {
        self.0.iter().map(|log| libm::exp(log.min(700.0))).sum::<f64>() / STAKES.len() as f64
    }
}

/// One whole train in so many is on the wrong side, and in so many clearly.
const SELDOM: f64 = 4.0;
const RARELY: f64 = 20.0;
/// Clearly is by so much of the train's rate.
const CLEAR: f64 = 0.1;
/// Gains of a stake then, so that it gains nothing in the mean: 9 / 20 + 1.5 (1 / 4 - 1 / 20) = 1 - 1 / 4.
const GAINS: [f64; 2] = [9.0, (1.0 - 1.0 / SELDOM - 9.0 / RARELY) / (1.0 / SELDOM - 1.0 / RARELY)];

/// Losses from the first to the second share are the zone of indifference.
const LOSSES: [f64; 2] = [0.01, 0.05];
/// Share of the allowed error that answers by losses have.
const BY_LOSSES: f64 = 0.1;
/// Share of the rest that each stage of bets against yes has: they begin anew once at most.
const STAGE: f64 = 0.5;

/// Bets on the share of packets that the path loses, whatever their rate: the likelihood ratio of 1 % to 5 %, which does not grow in the mean
/// if 5 % or more are lost; nor does its inverse if 1 % or less are.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Losses {
    /// Logarithm of the ratio.
    few: f64,
    any: bool,
}

impl Losses {
    /// A packet far from the next ones, that was lost or not.
    pub(super) fn take(&mut self, lost: bool) {
        let [few, many] = LOSSES;
        self.few += if lost { libm::log(few / many) } else { libm::log((1.0 - few) / (1.0 - many)) };
        self.any |= lost;
    }

    /// A train that lost packets: its own rate may be why.
    pub(super) fn suspect(&mut self, lost: bool) {
        self.any |= lost;
    }

    /// True if the path loses too much for any rate.
    pub(super) fn are_many(&self, confidence: f64) -> bool {
        -self.few >= -libm::log((1.0 - confidence) * BY_LOSSES)
    }

    /// True if a packet was lost, and it is open by how many more.
    pub(super) fn are_open(&self, confidence: f64) -> bool {
        self.any && self.few < -libm::log(1.0 - confidence)
    }
}

/// The bets against both answers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Bets {
    against_no: Capital,
    against_yes: Capital,
    /// Pairs that came slower, less those that came as fast as the rate.
    slow: i32,
    /// A block, a pair or a small packet counted.
    staked: bool,
    /// Bets came before these and were given up.
    anew: bool,
}

impl Bets {
    /// A share whose mean is what is left by something `times` the rate asked about: more than 1 / `times` if the rate fits. Between the
    /// two hypotheses is the zone of indifference.
    pub(super) fn left(&mut self, share: f64, times: f64) {
        self.left_between(share, share, times);
    }

    /// The same of two shares, between whose means that lies: the one that it is at least, and the one that it is at most.
    pub(super) fn left_between(&mut self, most: f64, least: f64, times: f64) {
        self.staked = true;
        self.against_no.more(most, (1.0 - ZONE) / times);
        self.against_yes.less(least, (1.0 + ZONE) / times);
    }

    /// The same where what is left is not so much more than `share` says: others hide so large a part of their time.
    pub(super) fn left_hidden(&mut self, share: f64, times: f64, hidden: f64) {
        let most = (1.0 - ZONE) / times;
        self.against_no.more(share, most + hidden * (1.0 - most));
    }

    /// The share of its rate, `times` the rate asked about, at which a whole train passed. If the rate does not fit, the share is above the
    /// middle of the zone in one train of [`SELDOM`] at most, and clearly above in one of [`RARELY`]; and the other way round if it does. What
    /// others send while so short a train passes is all that makes it so.
    pub(super) fn whole(&mut self, share: f64, times: f64) {
        let above = share - 1.0 / times;
        let gain = |above: f64| match above {
            _ if above > CLEAR => GAINS[0],
            _ if above > 0.0 => GAINS[1],
            _ => -1.0,
        };
        self.against_no.gain(gain(above));
        self.against_yes.gain(gain(-above));
    }

    /// A pair of packets, or two of a burst, that came as fast as the rate or not. If it fits, half of them do: others' packets are between
    /// the rest. Nothing is staked until more came slower than not: that only depends on what was seen before.
    pub(super) fn came(&mut self, fast: bool) {
        if self.slow > 0 {
            self.against_yes.less(f64::from(u8::from(fast)), 0.5);
        }
        self.slow += if fast { -1 } else { 1 };
    }

    /// Bets without what was seen so far; they spend the other half of the error if that could have been an answer.
    pub(super) fn anew(&self) -> Bets {
        Bets { anew: self.anew || self.staked, ..Bets::default() }
    }

    /// True if these are not the first bets.
    pub(super) fn is_anew(&self) -> bool {
        self.anew
    }

    /// Capital against no and against yes.
    pub(super) fn wealth(&self) -> [f64; 2] {
        // Whole trains are the last stage: nothing begins anew after them.
        let stage = if self.staked || self.anew { STAGE } else { 1.0 };
        [self.against_no.wealth(), stage * (1.0 - BY_LOSSES) * self.against_yes.wealth()]
    }

    /// The answer at this confidence, if there is one: yes is true. If both are refuted, the assumptions are wrong, and there is none.
    pub(super) fn answer(&self, confidence: f64) -> Option<bool> {
        let enough = 1.0 / (1.0 - confidence);
        match self.wealth().map(|wealth| wealth >= enough) {
            [true, false] => Some(true),
            [false, true] => Some(false),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::Rng;
    use rand_pcg::Pcg64Mcg;

    /// m = 0.5, y = 1: each stake s gains 1 + s. Twice: the mean of (1 + s)².
    #[test]
    fn capital_is_the_mean_over_the_stakes() {
        let mut capital = Capital::default();
        assert!((capital.wealth() - 1.0).abs() < 1e-12);
        capital.more(1.0, 0.5);
        capital.more(1.0, 0.5);
        let by_hand = [1.03_f64, 1.1, 1.25, 1.45, 1.65, 1.85].iter().map(|k| k * k).sum::<f64>() / 6.0;
        assert!((capital.wealth() - by_hand).abs() < 1e-9);
        let mut other = Capital::default();
        other.less(0.0, 0.5);
        other.less(0.0, 0.5);
        assert!((other.wealth() - by_hand).abs() < 1e-9);
    }

    /// Ville: shares whose mean is at the edge of the zone, and each of which depends on the one before, refute the truth in no more than
    /// one of twenty runs of 500.
    #[test]
    fn the_truth_is_refuted_no_more_often_than_stated() {
        let mut random = Pcg64Mcg::new(1);
        let mut draw = || f64::from(random.next_u32()) / f64::from(u32::MAX);
        let wrong = (0..1_000).filter(|_| {
            let (mut bets, mut wide) = (Bets::default(), false);
            (0..500).any(|_| {
                // A wide draw after a low one, a narrow one after a high one: of one mean.
                let y = 0.45 + if wide { 0.45 } else { 0.1 } * if draw() < 0.5 { -1.0 } else { 1.0 };
                wide = y < 0.45;
                bets.left(y, 2.0);
                bets.answer(0.95) == Some(true)
            })
        });
        let wrong = wrong.count();
        assert!(wrong <= 50, "{wrong} of 1000");
    }

    /// Runs in 1,000 in which bets that begin anew after 200 shares refute yes: by the bets themselves, and if both stages had all of the error.
    /// Shares of 0 or 1 have the mean `mean`, the least that a rate which fits by the zone's edge can have.
    fn wrong_over_a_restart(seed: u64, mean: f64) -> [usize; 2] {
        let mut random = Pcg64Mcg::new(u128::from(seed));
        let mut share = || f64::from(u8::from(f64::from(random.next_u32()) < mean * f64::from(u32::MAX)));
        let mut wrong = [0, 0];
        for _ in 0..1_000 {
            let (mut bets, mut ended) = (Bets::default(), [false, false]);
            for k in 0..400 {
                if k == 200 {
                    bets = bets.anew();
                }
                bets.left(share(), 2.0);
                ended[0] |= bets.wealth()[1] >= 20.0;
                ended[1] |= bets.against_yes.wealth() >= 20.0;
            }
            wrong.iter_mut().zip(ended).for_each(|(wrong, ended)| *wrong += usize::from(ended));
        }
        wrong
    }

    /// Half of the error before a restart and half after it keep a true yes within it; all of it both times would not.
    #[test]
    fn a_restart_spends_no_more_than_the_error() {
        let wrong: Vec<_> = (1..=4).map(|seed| wrong_over_a_restart(seed, (1.0 + ZONE) / 2.0)).collect();
        let [halves, wholes] = [0, 1].map(|k| wrong.iter().map(|wrong| wrong[k]).sum::<usize>());
        assert!(halves <= 200, "{halves} of 4000: more than one in twenty");
        assert!(wholes > 200, "{wholes} of 4000: this test cannot tell halves from wholes");
    }

    /// A no that is true has to be refuted twice, before the restart and after it, for a wrong yes: once in twenty at most, at any restart.
    #[test]
    fn a_wrong_yes_over_a_restart_takes_two_wrong_refutations() {
        let mut random = Pcg64Mcg::new(5);
        let mut share =
            || f64::from(u8::from(f64::from(random.next_u32()) < (1.0 - ZONE) / 2.0 * f64::from(u32::MAX)));
        let mut refutes = |mut bets: Bets| {
            (0..400).find_map(|_| {
                bets.left(share(), 2.0);
                (bets.wealth()[0] >= 20.0).then_some(bets)
            })
        };
        let (mut once, mut twice) = (0, 0);
        for _ in 0..4_000 {
            let first = refutes(Bets::default());
            once += usize::from(first.is_some());
            twice += usize::from(first.and_then(|bets| refutes(bets.anew())).is_some());
        }
        assert!(once <= 200 && twice <= 20 && once > 40, "{once} and {twice} of 4000");
    }

    #[test]
    fn clear_cases_take_few_bets() {
        let count = |share: f64| {
            let mut bets = Bets::default();
            (1..1_000).find_map(|n| {
                bets.left(share, 2.0);
                bets.answer(0.95).map(|answer| (n, answer))
            })
        };
        assert_eq!(count(1.0).map(|(n, yes)| (n <= 8, yes)), Some((true, true)));
        assert_eq!(count(0.0).map(|(n, yes)| (n <= 8, yes)), Some((true, false)));
        // In the zone either may be refuted, but late.
        assert!(count(0.5).is_none_or(|(n, _)| n > 40));
    }

    /// By hand: a loss multiplies the ratio of 1 % to 5 % by 0.2, another packet by 0.99 / 0.95.
    #[test]
    fn losses_are_many_or_few_and_open_between() {
        let of = |all: usize, every: usize| {
            let mut losses = Losses::default();
            (0..all).for_each(|k| losses.take(k % every == every - 1));
            (losses.are_many(0.95), losses.are_open(0.95), losses.few)
        };
        let ratio = libm::log(0.2) + 19.0 * libm::log(0.99 / 0.95);
        assert!((of(20, 20).2 - ratio).abs() < 1e-12);
        assert_eq!((of(40, 5).0, of(40, 5).1), (true, true));
        // One of 112 is open, one of 130 not any more, and none of 30 asks for no more.
        assert_eq!((of(112, 112).0, of(112, 112).1), (false, true));
        assert_eq!((of(130, 113).0, of(130, 113).1), (false, false));
        assert_eq!((of(30, 31).0, of(30, 31).1), (false, false));
    }
}
