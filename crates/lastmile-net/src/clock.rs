//! The driver's clock, and the way from the kernel's packet stamps to it.
//!
//! Everything here runs on CLOCK_MONOTONIC in nanoseconds. The kernel stamps packets with CLOCK_REALTIME, which
//! an operator or a time daemon may set at any moment; gradual corrections (slewing) act on both clocks alike, so
//! their difference is a constant between steps and a step shows as a change of that difference.
use nix::libc;
use std::fmt;

/// A difference below this is taken for sampling noise even if the samples claim to be better.
const SMALLEST_STEP_NS: u64 = 1_000;
/// Attempts to sample both clocks without being descheduled in between.
const ATTEMPTS: usize = 4;
/// Samples tighter than this are good enough to stop trying.
const TIGHT_NS: u64 = 200;

fn read(clock: libc::clockid_t) -> u64 {
    let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `ts` is valid for writing; both clocks used here exist on every Linux, so the call cannot fail.
    unsafe { libc::clock_gettime(clock, &mut ts) };
    timespec_ns(&ts)
}

/// A non-negative `timespec` as nanoseconds; negative ones (a wall clock before 1970) become zero.
pub(crate) fn timespec_ns(ts: &libc::timespec) -> u64 {
    (ts.tv_sec.max(0) as u64).saturating_mul(1_000_000_000).saturating_add(ts.tv_nsec.max(0) as u64)
}

/// CLOCK_MONOTONIC, in nanoseconds. Every time in this crate's API is of this clock unless it says "wall".
pub fn now() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// CLOCK_REALTIME, in nanoseconds since 1970-01-01 UTC.
pub fn wall_now() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// The two clocks read at one moment.
#[derive(Clone, Copy, Debug)]
struct Sample {
    mono: u64,
    wall: u64,
    /// Time between the two monotonic readings around the wall reading: the sample is wrong by at most half of it.
    width: u64,
}

impl Sample {
    fn take() -> Self {
        let mut best: Option<Sample> = None;
        for _ in 0..ATTEMPTS {
            let before = now();
            let wall = wall_now();
            let width = now().saturating_sub(before);
            if best.is_none_or(|b| width < b.width) {
                best = Some(Sample { mono: before + width / 2, wall, width });
            }
            if width <= TIGHT_NS {
                break;
            }
        }
        best.unwrap_or(Sample { mono: now(), wall: wall_now(), width: u64::MAX })
    }

    fn offset(&self) -> i64 {
        (self.wall as i64).saturating_sub(self.mono as i64)
    }
}

/// The wall clock was set while packets were being stamped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WallStep {
    /// Jump of the wall clock, in nanoseconds; positive is forwards.
    pub by_ns: i64,
    /// The step happened after this monotonic time ...
    pub after: u64,
    /// ... and was noticed at this one. Stamps made in between are converted as well as can be; streams that
    /// overlap the interval should be discarded.
    pub noticed: u64,
}

impl fmt::Display for WallStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "wall clock stepped by {:.3} ms during the measurement", self.by_ns as f64 / 1e6)
    }
}

/// Converts wall-clock stamps to monotonic time and notices steps of the wall clock.
///
/// Call [`refresh`](Self::refresh) after each read of stamps, before converting them.
///
/// ```
/// use lastmile_net::clock::{WallClock, now, wall_now};
/// let mut wall = WallClock::new();
/// let stamp = wall_now();
/// let step = wall.refresh();
/// if step.is_none() {
///     assert!(wall.to_mono(stamp).abs_diff(now()) < 1_000_000_000);
/// }
/// ```
#[derive(Clone, Debug)]
pub struct WallClock {
    /// Wall minus monotonic, and how wrong that may be.
    offset: i64,
    error: u64,
    /// When both clocks were last seen together.
    seen: u64,
    /// The offset before the last step, with the step: stamps older than it are still in the queues.
    before: Option<(i64, WallStep)>,
    untold: Option<WallStep>,
}

impl Default for WallClock {
    fn default() -> Self {
        Self::new()
    }
}

impl WallClock {
    /// Samples both clocks.
    pub fn new() -> Self {
        Self::from_sample(Sample::take())
    }

    fn from_sample(s: Sample) -> Self {
        Self { offset: s.offset(), error: s.width, seen: s.mono, before: None, untold: None }
    }

    /// Samples both clocks again. Returns the step if the wall clock was set since the last call; the same step is
    /// then also kept for [`take_step`](Self::take_step), for callers further up.
    pub fn refresh(&mut self) -> Option<WallStep> {
        self.update(Sample::take())
    }

    fn update(&mut self, s: Sample) -> Option<WallStep> {
        let moved = s.offset().saturating_sub(self.offset);
        let noise = self.error.saturating_add(s.width).max(SMALLEST_STEP_NS);
        let after = std::mem::replace(&mut self.seen, s.mono);
        if moved.unsigned_abs() <= noise {
            // The tighter sample of the same constant is the better one.
            if s.width < self.error {
                (self.offset, self.error) = (s.offset(), s.width);
            }
            return None;
        }
        let step = WallStep { by_ns: moved, after, noticed: s.mono };
        self.before = Some((self.offset, step));
        (self.offset, self.error) = (s.offset(), s.width);
        // Two steps before anyone asks count as their sum over the whole interval.
        self.untold = Some(match self.untold {
            Some(first) => WallStep { by_ns: first.by_ns.saturating_add(moved), after: first.after, ..step },
            None => step,
        });
        Some(step)
    }

    /// The steps since the last call, added up, or `None`.
    pub fn take_step(&mut self) -> Option<WallStep> {
        self.untold.take()
    }

    /// The monotonic time of a wall-clock stamp that the kernel made before the last refresh.
    ///
    /// After a step a stamp may be of either side. A reading that contradicts the known facts (made after it was
    /// read, or before the step by the clock after it) is ruled out; if both are possible, the newer clock is used.
    pub fn to_mono(&self, wall_ns: u64) -> u64 {
        let with = |offset: i64| (wall_ns as i64).saturating_sub(offset).max(0) as u64;
        let newer = with(self.offset);
        let Some((old, step)) = self.before else { return newer };
        let older = with(old);
        let newer_fits =
            newer >= step.after.saturating_sub(self.error) && newer <= self.seen.saturating_add(self.error);
        if !newer_fits && older <= step.noticed { older } else { newer }
    }

    /// The wall-clock time, in nanoseconds since 1970, of a monotonic time: the `Epoch` that NTP fields want is
    /// `to_wall` of the run's start.
    pub fn to_wall(&self, mono_ns: u64) -> u64 {
        (mono_ns as i64).saturating_add(self.offset).max(0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400_000_000_000;
    fn sample(mono: u64, offset: i64, width: u64) -> Sample {
        Sample { mono, wall: (mono as i64 + offset) as u64, width }
    }

    #[test]
    fn live_clocks_agree_and_do_not_step() {
        let mut wall = WallClock::new();
        for _ in 0..100 {
            let stamp = wall_now();
            if let Some(step) = wall.refresh() {
                panic!("saw {step} on a quiet machine");
            }
            let mono = wall.to_mono(stamp);
            assert!(mono <= now() + wall.error / 2 + 1_000);
            assert!(wall.to_wall(mono).abs_diff(stamp) <= 1);
        }
        assert_eq!(wall.take_step(), None);
    }

    #[test]
    fn noise_is_no_step_and_tight_samples_win() {
        let mut wall = WallClock::from_sample(sample(10, DAY as i64, 5_000));
        assert_eq!(wall.update(sample(100_000, DAY as i64 + 4_000, 40_000)), None);
        assert_eq!(wall.to_mono(DAY + 7), 7, "the wide sample does not move the conversion");
        assert_eq!(wall.update(sample(200_000, DAY as i64 + 900, 60)), None);
        assert_eq!(wall.to_mono(DAY + 1_000), 100, "the tight one does");
    }

    #[test]
    fn a_step_is_told_with_its_size() {
        let mut wall = WallClock::from_sample(sample(1_000, DAY as i64, 50));
        let step = wall.update(sample(2_000_000, DAY as i64 - 700_000, 50)).expect("step");
        assert_eq!(step, WallStep { by_ns: -700_000, after: 1_000, noticed: 2_000_000 });
        assert_eq!(wall.update(sample(3_000_000, DAY as i64 - 500_000, 50)).map(|s| s.by_ns), Some(200_000));
        let both = wall.take_step().expect("kept");
        assert_eq!((both.by_ns, both.after, both.noticed), (-500_000, 1_000, 3_000_000));
        assert_eq!(wall.take_step(), None);
    }

    #[test]
    fn stamps_of_both_sides_of_a_step_are_converted() {
        for by in [3_600_000_000_000i64, -3_600_000_000_000] {
            let mut wall = WallClock::from_sample(sample(1_000_000, DAY as i64, 50));
            // Stamped at 1.2 ms by the old clock and at 1.8 ms by the one after, both read at 2 ms.
            let (early, late) = (DAY + 1_200_000, (DAY as i64 + by) as u64 + 1_800_000);
            wall.update(sample(2_000_000, DAY as i64 + by, 50)).expect("step");
            assert_eq!(wall.to_mono(early), 1_200_000);
            assert_eq!(wall.to_mono(late), 1_800_000);
            wall.update(sample(9_000_000, DAY as i64 + by, 50));
            assert_eq!(wall.to_mono(late + 6_000_000), 7_800_000);
        }
    }

    #[test]
    fn no_input_overflows() {
        let mut wall = WallClock::from_sample(sample(1, i64::MAX / 2, 1));
        wall.update(sample(2, -1, u64::MAX));
        for stamp in [0, 1, u64::MAX / 2, u64::MAX] {
            let _ = (wall.to_mono(stamp), wall.to_wall(stamp));
        }
    }
}
