//! Choice of the rate of each transmission: fixed, ARF, AARF; the sampler is in [`minstrel`](super::minstrel).
//!
//! ARF: A. Kamerman and L. Monteban, "WaveLAN-II", Bell Labs Technical Journal 1997. AARF: M. Lacage,
//! M. H. Manshaei and T. Turletti, "IEEE 802.11 Rate Adaptation: A Practical Approach", MSWiM 2004. Points that these leave
//! open follow the latter authors' code for ns-3 (3.37). This decides the throughput of stations that collide: five
//! that saturate the channel fall to the slowest rate.

use lastmile::rng::Stream;
use lastmile::time::Time;
use lastmile::units::Rate;

use super::choices::RateControl;
use super::config::WlanConfig;
use super::minstrel::{Candidate, Minstrel};
use super::phy::Phy;
use super::rates::{Modulation, PhyRate};

/// Successes in a row after which the next rate is tried.
const SUCCESSES: u32 = 10;
/// AARF: the most that failed trials raise that to; 50 in the paper, 60 in ns-3.
const MOST_SUCCESSES: u32 = 60;
/// The timer, in transmissions: the next rate is tried if just the last of so many arrived, even if others failed. AARF
/// doubles it beside the successes.
const TIMER: u32 = 15;

/// One direction's rate control. Rates are indices into the PHY's list.
#[derive(Clone, Debug)]
pub(super) enum Controller {
    Fixed(usize),
    Ladder(Ladder),
    Minstrel(Box<Minstrel>),
}

impl Controller {
    /// `ladder`: the rates that may be used, slowest first and never empty.
    pub(super) fn new(kind: RateControl, ladder: Vec<Candidate>) -> Controller {
        let top = ladder.last().map_or(0, |candidate| candidate.rate);
        match kind {
            RateControl::Fixed => Controller::Fixed(top),
            RateControl::Arf | RateControl::Aarf => Controller::Ladder(Ladder::new(
                ladder.into_iter().map(|candidate| candidate.rate).collect(),
                kind == RateControl::Aarf,
            )),
            RateControl::Minstrel => Controller::Minstrel(Box::new(Minstrel::new(ladder))),
        }
    }

    /// The rate of the next transmission; `attempt` counts those of the same frame from zero.
    #[inline]
    pub(super) fn pick(&mut self, now: Time, attempt: u32, random: &mut Stream) -> usize {
        match self {
            Controller::Fixed(rate) => *rate,
            Controller::Ladder(ladder) => ladder.rates[ladder.at],
            Controller::Minstrel(minstrel) => minstrel.pick(now, attempt, random),
        }
    }

    /// Most transmissions of a frame before it is given up; `None` if the MAC's limits hold.
    #[inline]
    pub(super) fn limit(&self) -> Option<u16> {
        match self {
            Controller::Minstrel(minstrel) => Some(minstrel.limit().min(u32::from(u8::MAX)) as u16),
            _ => None,
        }
    }

    /// Takes in the frames of a transmission that were acknowledged, and those that were not.
    #[inline]
    pub(super) fn report(&mut self, rate: usize, arrived: u32, failed: u32) {
        match self {
            Controller::Fixed(_) => {}
            // An aggregate that brought anything through succeeded: its block ack came back.
            Controller::Ladder(ladder) => ladder.report(arrived > 0),
            Controller::Minstrel(minstrel) => minstrel.report(rate, arrived, failed),
        }
    }
}

/// ARF and AARF.
#[derive(Clone, Debug)]
pub(super) struct Ladder {
    rates: Vec<usize>,
    at: usize,
    adaptive: bool,
    successes: u32,
    /// Since the last success.
    failures: u32,
    timer: u32,
    threshold: u32,
    timeout: u32,
    /// True if nothing has arrived since a higher rate was tried.
    trial: bool,
}

impl Ladder {
    fn new(rates: Vec<usize>, adaptive: bool) -> Ladder {
        let at = rates.len().saturating_sub(1);
        let (threshold, timeout) = (SUCCESSES, TIMER);
        Ladder { rates, at, adaptive, successes: 0, failures: 0, timer: 0, threshold, timeout, trial: false }
    }

    fn report(&mut self, success: bool) {
        self.timer = self.timer.saturating_add(1);
        if success {
            (self.trial, self.failures) = (false, 0);
            self.successes = self.successes.saturating_add(1);
            let due = self.successes == self.threshold || self.timer == self.timeout;
            if due && self.at + 1 < self.rates.len() {
                self.at += 1;
                self.trial = true;
                (self.successes, self.timer) = (0, 0);
            }
            return;
        }
        self.successes = 0;
        self.failures = self.failures.saturating_add(1);
        // A trial falls at its first failure and then stays; else every second failure in a row is a step down.
        if if self.trial { self.failures == 1 } else { self.failures.is_multiple_of(2) } {
            self.at = self.at.saturating_sub(1);
            if self.adaptive {
                // A trial that fails at once says: not so soon again. Two failures later on start afresh.
                (self.threshold, self.timeout) = if self.trial {
                    ((self.threshold * 2).min(MOST_SUCCESSES), self.timeout.saturating_mul(2))
                } else {
                    (SUCCESSES, TIMER)
                };
            }
        }
        if self.trial || self.failures > 1 {
            self.timer = 0;
        }
    }
}

/// The number of a rate that a station was given.
pub(super) fn named_rate(config: &WlanConfig, phy: &Phy, rate: Rate) -> Result<usize, String> {
    phy.find(rate).ok_or_else(|| format!("{rate} is no rate of 802.11{}", config.standard))
}

/// The rates of the top rate's family up to it, slowest first, for frames of 1200 bytes, or sixteen of them where they are
/// aggregated: the preamble would otherwise hide what rates gain.
pub(super) fn ladder(phy: &Phy, top: usize, config: &WlanConfig, kind: RateControl) -> Vec<Candidate> {
    let family = |rate: &PhyRate| core::mem::discriminant::<Modulation>(&rate.modulation);
    let same = |&index: &usize| {
        index == top
            || (kind != RateControl::Fixed && family(&phy.rates()[index]) == family(&phy.rates()[top]))
    };
    let bytes = if config.ampdu.is_some() { 16 * 1200 } else { 1200 };
    let candidate = |rate| {
        let time = phy.plain(rate, bytes);
        Candidate { rate, time, repeats: repeats(phy, time + phy.sifs + phy.control(rate).ack) }
    };
    (0..=top).filter(same).map(candidate).collect()
}

/// Transmissions of a frame with its ACK that fit into 6 ms beside one more, each with the backoff before it: Minstrel's limit
/// for one rate; one to ten, the windows as from 31 on.
fn repeats(phy: &Phy, transmission: u64) -> u32 {
    let (mut window, mut spent) = (31, 2 * transmission + 31 * phy.slot / 2);
    for repeats in 1..10 {
        window = (2 * window + 1).min(1023);
        spent += transmission + window * phy.slot / 2;
        if spent > 6_000_000 {
            return repeats;
        }
    }
    10
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ladder(kind: RateControl) -> (Controller, Stream) {
        let candidate = |rate| Candidate { rate, time: 4 - rate as u64, repeats: 4 };
        (Controller::new(kind, (0..4).map(candidate).collect()), Stream::new(1, "x"))
    }

    /// Transmits `n` frames of which those at rates above `good` fail; says how many used each rate.
    fn run(controller: &mut Controller, random: &mut Stream, good: usize, n: u32) -> [u32; 4] {
        frames(controller, random, good, 0..u64::from(n))
    }

    /// The same, frame numbers being milliseconds.
    fn frames(
        controller: &mut Controller,
        random: &mut Stream,
        good: usize,
        frames: core::ops::Range<u64>,
    ) -> [u32; 4] {
        let mut used = [0; 4];
        for frame in frames {
            let rate = controller.pick(Time::from_nanos(frame * 1_000_000), 0, random);
            used[rate] += 1;
            controller.report(rate, u32::from(rate <= good), u32::from(rate > good));
        }
        used
    }

    #[test]
    fn arf_falls_after_two_failures_and_tries_again_after_ten_successes() {
        let (mut arf, mut random) = ladder(RateControl::Arf);
        assert_eq!(run(&mut arf, &mut random, 1, 4), [0, 0, 2, 2]);
        // Ten at 1, one trial of 2 that fails, ten at 1, ...
        assert_eq!(run(&mut arf, &mut random, 1, 110), [0, 100, 10, 0]);
    }

    #[test]
    fn aarf_tries_less_and_less_often() {
        let (mut aarf, mut random) = ladder(RateControl::Aarf);
        run(&mut aarf, &mut random, 1, 4);
        let used = run(&mut aarf, &mut random, 1, 10 + 20 + 40 + 60 + 60 + 5);
        assert_eq!(used, [0, 190, 5, 0]);
    }

    #[test]
    fn all_climb_to_a_rate_that_works_again() {
        for kind in [RateControl::Arf, RateControl::Aarf, RateControl::Minstrel] {
            let (mut controller, mut random) = ladder(kind);
            frames(&mut controller, &mut random, 0, 0..1000);
            let used = frames(&mut controller, &mut random, 3, 1000..3000);
            assert!(used[3] > 1000, "{kind:?} {used:?}");
            let used = frames(&mut controller, &mut random, 1, 3000..6000);
            assert!(used[1] > 1500, "{kind:?} {used:?}");
        }
    }
}
