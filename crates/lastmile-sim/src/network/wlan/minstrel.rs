//! Minstrel (D. Smithies and F. Fietkau; mac80211's documentation), with the choices of ns-3 3.37's `MinstrelWifiManager`.
//!
//! Every 100 ms rates are ranked by what a frame of 1200 bytes alone would bring on the air. Retries go down a chain: best
//! throughput, second best, best probability, slowest; each as often as fits into 6 ms, twice where nearly all or nearly nothing
//! arrives. A tenth of the frames may go out at a sampled rate, a faster one before the best in the chain, a slower one behind it.

use lastmile::time::Time;

use lastmile::rng::Stream;

/// Interval between rankings, ns.
const INTERVAL_NS: u64 = 100_000_000;
/// The old average's share.
const OLD: f64 = 0.75;
/// One frame in so many may be sent at a sampled rate.
const SAMPLE_ONE_IN: u64 = 10;
/// Above the one and below the other a rate is sampled and repeated less.
const GOOD: f64 = 0.95;
const BAD: f64 = 0.1;
/// Samples of such a rate between two rankings, and its repeats for one frame.
const FEW_SAMPLES: u32 = 4;
const FEW_REPEATS: u32 = 2;
/// Rankings without a transmission after which a slower rate is sampled first in the chain after all.
const STALE: u32 = 20;

/// A rate that may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// Its index in the PHY's list.
    pub(super) rate: usize,
    /// Airtime of a typical frame, ns.
    pub(super) time: u64,
    /// Most transmissions of such a frame at this rate: about 6 ms, ACKs and backoffs included.
    pub(super) repeats: u32,
}

#[derive(Clone, Debug)]
struct Rate {
    candidate: Candidate,
    probability: f64,
    /// True once anything has arrived: the average begins with the first that does.
    known: bool,
    arrived: u32,
    attempted: u32,
    /// Transmissions in its step of the chain.
    repeats: u32,
    /// Samples left until the next ranking.
    samples: u32,
    /// Rankings since it was last used.
    unused: u32,
}

impl Rate {
    fn throughput(&self) -> f64 {
        self.probability / self.candidate.time.max(1) as f64
    }
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    position: usize,
    /// True if it comes before the best rate.
    first: bool,
    used: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Minstrel {
    rates: Vec<Rate>,
    /// Positions in `rates`: best throughput, second, best probability.
    best: [usize; 3],
    sample: Option<Sample>,
    frames: u64,
    /// Those of `frames` sent at a sampled rate, and the samples that are not made up for.
    sampled: u64,
    ranked: u64,
}

impl Minstrel {
    /// Nothing is known of any rate: the slowest is the best.
    pub(super) fn new(ladder: Vec<Candidate>) -> Minstrel {
        let rate = |candidate: Candidate| Rate {
            probability: 0.0,
            known: false,
            arrived: 0,
            attempted: 0,
            repeats: candidate.repeats,
            samples: u32::MAX,
            unused: 0,
            candidate,
        };
        let rates = ladder.into_iter().map(rate).collect();
        Minstrel { rates, best: [0; 3], sample: None, frames: 0, sampled: 0, ranked: 0 }
    }

    /// The rate of the next transmission, which is the frame's `attempt`-th from zero.
    pub(super) fn pick(&mut self, now: Time, attempt: u32, random: &mut Stream) -> usize {
        if attempt == 0 {
            self.frames += 1;
            self.sampled += u64::from(self.sample.is_some_and(|sample| sample.used));
            if now.as_nanos() >= self.ranked + INTERVAL_NS {
                self.rank();
                self.ranked = now.as_nanos();
            }
            self.sample = self.look_around(random);
        }
        let mut left = attempt;
        for (step, position) in self.steps().into_iter().enumerate() {
            let repeats = self.rates[position].repeats;
            if left < repeats {
                if let Some(sample) = &mut self.sample {
                    sample.used |= step == usize::from(!sample.first);
                }
                return self.rates[position].candidate.rate;
            }
            left -= repeats;
        }
        self.rates[0].candidate.rate
    }

    /// The chain but for the slowest rate, which follows.
    fn steps(&self) -> [usize; 3] {
        let [first, second, safe] = self.best;
        match self.sample {
            None => [first, second, safe],
            Some(Sample { position, first: true, .. }) => [position, first, safe],
            Some(Sample { position, .. }) => [first, position, safe],
        }
    }

    /// Transmissions of the chain for one frame.
    pub(super) fn limit(&self) -> u32 {
        self.steps().iter().chain(&[0]).map(|&position| self.rates[position].repeats).sum()
    }

    fn look_around(&mut self, random: &mut Stream) -> Option<Sample> {
        let backlog = (self.frames / SAMPLE_ONE_IN).checked_sub(self.sampled)?;
        // Samples that were not reached are not made up for all at once.
        self.sampled += backlog.saturating_sub(2 * self.rates.len() as u64);
        let position = (random.bits() % self.rates.len() as u64) as usize;
        let best = self.rates[self.best[0]].candidate.time;
        let rate = &mut self.rates[position];
        if rate.candidate.time > best && rate.unused < STALE {
            return Some(Sample { position, first: false, used: false });
        }
        rate.samples = rate.samples.checked_sub(1)?;
        Some(Sample { position, first: true, used: false })
    }

    pub(super) fn report(&mut self, rate: usize, arrived: u32, failed: u32) {
        if let Some(rate) = self.rates.iter_mut().find(|r| r.candidate.rate == rate) {
            rate.arrived += arrived;
            rate.attempted += arrived + failed;
        }
    }

    fn rank(&mut self) {
        for rate in &mut self.rates {
            rate.unused += 1;
            if rate.attempted > 0 {
                let seen = f64::from(rate.arrived) / f64::from(rate.attempted);
                rate.probability =
                    if rate.known { OLD * rate.probability + (1.0 - OLD) * seen } else { seen };
                rate.known |= rate.arrived > 0;
                rate.unused = 0;
            }
            (rate.arrived, rate.attempted) = (0, 0);
            let settled = !(BAD..=GOOD).contains(&rate.probability);
            rate.samples = if settled { FEW_SAMPLES } else { u32::MAX };
            rate.repeats = rate.candidate.repeats.min(if settled { FEW_REPEATS } else { u32::MAX });
        }
        let best = |value: &dyn Fn(&Rate) -> f64, but: Option<usize>| {
            let mut best = None;
            for (position, rate) in self.rates.iter().enumerate().filter(|rate| Some(rate.0) != but) {
                let value = value(rate);
                if value > best.map_or(0.0, |(_, most)| most) {
                    best = Some((position, value));
                }
            }
            best.map_or(0, |(position, _)| position)
        };
        let first = best(&Rate::throughput, None);
        let second = best(&Rate::throughput, Some(first));
        // Of those that hardly fail the one that brings most; it outranks all probabilities.
        let safe = best(&|r| if r.probability >= GOOD { 1.0 + r.throughput() } else { r.probability }, None);
        self.best = [first, second, safe];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> Minstrel {
        let candidate = |(rate, time)| Candidate { rate, time, repeats: 3 };
        Minstrel::new([(5, 400), (6, 200), (7, 100)].map(candidate).to_vec())
    }

    #[test]
    fn retries_go_down_the_chain() {
        let mut minstrel = three();
        let mut random = Stream::new(3, "x");
        let mut now = 0;
        for _ in 0..2000 {
            now += 1_000_000;
            let rate = minstrel.pick(Time::from_nanos(now), 0, &mut random);
            minstrel.report(rate, u32::from(rate < 7), u32::from(rate == 7));
        }
        assert_eq!((minstrel.best[0], minstrel.best[2]), (1, 1));
        minstrel.sample = None;
        let chain: Vec<usize> =
            (1..8).map(|attempt| minstrel.pick(Time::from_nanos(now), attempt, &mut random)).collect();
        // Twice the best, twice the second, twice the safest, which is the best again.
        assert_eq!(chain, [6, 5, 5, 6, 6, 5, 5]);
        assert_eq!(minstrel.limit(), 8);
    }

    #[test]
    fn a_tenth_of_the_frames_samples_and_what_never_works_four_times_between_rankings() {
        for (works, most) in [(false, 4.0 / 300.0), (true, 0.1)] {
            let mut minstrel = three();
            let mut random = Stream::new(3, "x");
            let mut used = [0; 8];
            for frame in 0..30_000_u64 {
                // 300 frames between two rankings; 7 works for every second frame: worse than 6 by its throughput.
                let now = Time::from_nanos(frame * 333_334);
                let rate = minstrel.pick(now, 0, &mut random);
                used[rate] += 1;
                let arrives = rate < 7 || (works && used[7] % 5 < 2);
                minstrel.report(rate, u32::from(arrives), u32::from(!arrives));
            }
            let share = f64::from(used[7]) / 30_000.0;
            assert!(share <= 1.1 * most && share > 0.25 * most, "{works}: {share}");
            assert!(used[6] > 25_000, "{used:?}");
        }
    }
}
