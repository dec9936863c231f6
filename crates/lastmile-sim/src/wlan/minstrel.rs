//! A sampling rate control in the manner of Minstrel (D. Smithies and F. Fietkau, mac80211).
//!
//! A tenth of the frames sample another rate; every 100 ms each rate's success probability is averaged and the
//! rates are ranked by throughput. Retries go down a chain: best throughput, second best, best probability,
//! slowest. Described from the mac80211 documentation; the choice of samples is uniform, not by a table.

use lastmile::time::Time;

use crate::rng::Stream;

/// How often the rates are ranked.
const INTERVAL_NS: u64 = 100_000_000;
/// The old average's share.
const OLD: f64 = 0.75;
/// One frame in so many samples.
const SAMPLE_ONE_IN: u64 = 10;
/// Transmissions at each step of the chain.
const PER_STEP: u32 = 2;

#[derive(Clone, Debug)]
struct Rate {
    index: usize,
    time: u64,
    /// `None` until it was used once.
    probability: Option<f64>,
    arrived: u32,
    attempted: u32,
}

impl Rate {
    /// Frames per nanosecond; nothing where nearly all fail, and no credit for the last tenth.
    fn throughput(&self) -> f64 {
        match self.probability {
            Some(p) if p >= 0.1 => p.min(0.9) / self.time.max(1) as f64,
            _ => 0.0,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Minstrel {
    rates: Vec<Rate>,
    /// Positions in `rates`: best throughput, second, best probability, slowest.
    chain: [usize; 4],
    /// The position sampled by the frame under way, and the attempt that does it.
    sample: Option<(usize, u32)>,
    ranked: u64,
}

impl Minstrel {
    pub(super) fn new(ladder: Vec<(usize, u64)>) -> Minstrel {
        let rate = |(index, time)| Rate { index, time, probability: None, arrived: 0, attempted: 0 };
        let rates: Vec<Rate> = ladder.into_iter().map(rate).collect();
        let top = rates.len().saturating_sub(1);
        Minstrel { rates, chain: [top, top.saturating_sub(1), 0, 0], sample: None, ranked: 0 }
    }

    pub(super) fn pick(&mut self, now: Time, attempt: u32, random: &mut Stream) -> usize {
        if now.as_nanos() >= self.ranked + INTERVAL_NS {
            self.rank();
            self.ranked = now.as_nanos();
        }
        if attempt == 0 {
            self.sample = None;
            if random.bits().is_multiple_of(SAMPLE_ONE_IN) {
                let position = (random.bits() % self.rates.len() as u64) as usize;
                // What is slower than the best even without a loss is sampled only where the best failed.
                let slower = self.rates[position].time > self.rates[self.chain[0]].time;
                self.sample =
                    (position != self.chain[0]).then_some((position, if slower { PER_STEP } else { 0 }));
            }
        }
        let position = match self.sample {
            Some((position, when)) if when == attempt => position,
            _ => self.chain[(attempt / PER_STEP).min(3) as usize],
        };
        self.rates[position].index
    }

    pub(super) fn report(&mut self, rate: usize, arrived: u32, failed: u32) {
        if let Some(rate) = self.rates.iter_mut().find(|r| r.index == rate) {
            rate.arrived += arrived;
            rate.attempted += arrived + failed;
        }
    }

    fn rank(&mut self) {
        for rate in self.rates.iter_mut().filter(|r| r.attempted > 0) {
            let seen = f64::from(rate.arrived) / f64::from(rate.attempted);
            rate.probability = Some(rate.probability.map_or(seen, |old| OLD * old + (1.0 - OLD) * seen));
            (rate.arrived, rate.attempted) = (0, 0);
        }
        let best = |rank: &dyn Fn(&Rate) -> f64, but: Option<usize>| {
            let mut best = 0;
            for (position, rate) in self.rates.iter().enumerate() {
                if Some(position) != but && (Some(best) == but || rank(rate) > rank(&self.rates[best])) {
                    best = position;
                }
            }
            best
        };
        let first = best(&Rate::throughput, None);
        let second = best(&Rate::throughput, Some(first));
        self.chain = [first, second, best(&|r| r.probability.unwrap_or(0.0), None), 0];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_go_down_the_chain_and_nothing_is_sampled_twice() {
        let mut minstrel = Minstrel::new(vec![(5, 400), (6, 200), (7, 100)]);
        let mut random = Stream::new(3, "x");
        let mut now = 0;
        for _ in 0..2000 {
            now += 1_000_000;
            let rate = minstrel.pick(Time::from_nanos(now), 0, &mut random);
            minstrel.report(rate, u32::from(rate < 7), u32::from(rate == 7));
        }
        assert_eq!(minstrel.chain[0], 1);
        minstrel.sample = None;
        let chain: Vec<usize> =
            (1..7).map(|attempt| minstrel.pick(Time::from_nanos(now), attempt, &mut random)).collect();
        assert_eq!(chain[0], 6);
        assert_eq!(chain[5], 5);
    }
}
