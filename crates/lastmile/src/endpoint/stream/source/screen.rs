//! A shared screen: nearly nothing while it stands still, and bursts where its content changes.

use rand_core::Rng;
use rand_pcg::Pcg64Mcg;

use super::{Frame, FrameSource, Limits, Made, Setting, Source, Steady};
use crate::options::{Given, Options};
use crate::time::{Span, Time};
use crate::units::{Bytes, Rate};

crate::options! {
    /// The source's parameters.
    pub struct ScreenConfig {
        /// Mean time for which it stands still
        still: Span [Span::from_millis(1)..=Span::from_secs(3_600)] = Span::from_secs(4), "our own";
        /// Mean time for which it moves: scrolling, a video in a window
        moves: Span [Span::from_millis(1)..=Span::from_secs(3_600)] = Span::from_secs(2), "our own";
        /// Rate while it stands still, of IP packets
        idle: Rate [Rate::ip(1_000)..=Rate::ip(1_000_000_000)] = Rate::ip(30_000), "our own";
        /// The first frame of a change, in mean frames of the target; the others make up for it
        burst: f64 [1.0..=100.0] = 8.0, "our own: a whole page, where a codec's transient has 3.24 (RFC 8593)";
        /// Makes this while it moves, of IP packets, where the target is less
        min: Option<Rate> [Rate::ip(1)..=Rate::ip(1_000_000_000_000)] = None, "our own";
        /// Makes no more than this, of IP packets
        max: Option<Rate> [Rate::ip(1)..=Rate::ip(1_000_000_000_000)] = None, "our own";
    }
}

/// Its place in the registry.
pub const ENTRY: Source = Source {
    name: "screen",
    about: "a shared screen: next to nothing while it stands still, a large frame and the target where it changes",
    paper: "our own",
    needs_sizes: false,
    options: ScreenConfig::OPTIONS,
    make,
};

/// While it moves, the share of a mean frame that is left out to make up for the first one.
const MADE_UP: u64 = 2;

fn make(given: &Given, setting: &Setting<'_>) -> Made {
    let config = ScreenConfig::read(given)?;
    let limits = Limits::new(config.min, config.max)?;
    let random = Pcg64Mcg::new(u128::from(setting.seed) << 1 | 1);
    let steady = Steady::new(setting.frame_rate);
    Ok(Box::new(Screen { config, limits, steady, random, moves: false, until: None, ahead: 0 }))
}

#[derive(Debug)]
struct Screen {
    config: ScreenConfig,
    limits: Limits,
    steady: Steady,
    random: Pcg64Mcg,
    moves: bool,
    /// When it begins to move, or comes to a stand.
    until: Option<Time>,
    /// Bytes of its large frame that smaller ones have not made up for.
    ahead: u64,
}

impl Screen {
    /// A time with an exponential distribution.
    fn lasts(&mut self, mean: Span) -> Span {
        let uniform = (f64::from(self.random.next_u32()) + 0.5) / 4_294_967_296.0;
        Span::from_secs_f64(-mean.as_secs_f64() * libm::log(uniform)).max(Span::from_millis(1))
    }
}

impl FrameSource for Screen {
    fn frame(&mut self, now: Time, target: Rate, _: Bytes) -> Frame {
        let next = self.steady.next();
        let mut changed = false;
        while self.until.is_none_or(|until| until <= now) {
            changed = true;
            self.moves = !self.moves;
            let mean = if self.moves { self.config.moves } else { self.config.still };
            self.until = Some(self.until.unwrap_or(now) + self.lasts(mean));
        }
        if !self.moves {
            self.ahead = 0;
            return Frame { size: self.steady.bytes(self.config.idle, next), next };
        }
        let mean = self.steady.bytes(self.limits.of(target), next).0;
        let size = if changed {
            let large = (mean as f64 * self.config.burst) as u64;
            self.ahead = large.saturating_sub(mean);
            large
        } else {
            let less = (mean / MADE_UP).min(self.ahead);
            self.ahead -= less;
            mean - less
        };
        Frame { size: Bytes(size), next }
    }

    fn range(&self) -> (Rate, Rate) {
        (self.config.idle, self.limits.max)
    }

    fn idle(&self) -> Option<Rate> {
        Some(self.config.idle)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Setting, build};
    use super::*;

    #[test]
    fn it_bursts_where_it_begins_to_move() {
        let choice = "screen(still=3 s, moves=1 s, idle=24 kbit/s, burst=5)".parse().unwrap();
        let mut source = build(&choice, &Setting { seed: 3, ..Setting::of(10.0, Bytes(1200)) }).unwrap();
        let frames: Vec<u64> = (0..6_000)
            .map(|k| {
                source.frame(Time::ZERO + Span::from_millis(100 * k), Rate::ip(800_000), Bytes::ZERO).size.0
            })
            .collect();
        let count = |size: u64| frames.iter().filter(|frame| **frame == size).count();
        // Of ten minutes three quarters are still; each change begins with five mean frames of 10 kB.
        let (still, large) = (count(300), count(50_000));
        assert!((3_900..5_000).contains(&still), "{still}");
        assert!((110..190).contains(&large), "{large}");
        // Eight frames of half a mean make up for it.
        assert_eq!(frames.iter().filter(|size| ![300, 50_000, 5_000, 10_000].contains(size)).count(), 0);
        let at = frames.windows(10).position(|some| some[0] == 50_000 && !some.contains(&300)).unwrap();
        assert_eq!(frames[at + 1..at + 10], [5_000, 5_000, 5_000, 5_000, 5_000, 5_000, 5_000, 5_000, 10_000]);
    }
}
