//! [`HostClock`]: the clock of a simulated host. The *monotonic* clock, which endpoints are given as
//! `now`, has an offset and a skew and never jumps. *Stamps* of packets come from another one, with a resolution and steps: one
//! that the driver notices is [told](lastmile::node::Input::ClockStepped), another shifts all later stamps, also beyond `now`.

use lastmile::time::{Span, Time};

/// A jump of the clock that stamps packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Engine time of the jump.
    pub at: Time,
    /// Size of the jump; positive is forward.
    pub by: Span,
    /// True if the host's driver notices.
    pub announced: bool,
}

/// Errors of a host's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockConfig {
    /// Reading of the clock at the run's start; negative counts as zero.
    pub offset: Span,
    /// Frequency error against the engine's time, in parts per billion; positive runs faster. Kept within
    /// +-[`MAX_SKEW_PPB`].
    pub skew_ppb: i64,
    /// Stamps are multiples of this, rounded down; at least one nanosecond.
    pub resolution: Span,
    /// Jumps, ordered by time.
    pub steps: Vec<Step>,
}

impl Default for ClockConfig {
    fn default() -> ClockConfig {
        ClockConfig { offset: Span::ZERO, skew_ppb: 0, resolution: Span::from_nanos(1), steps: Vec::new() }
    }
}

/// The largest skew, either way: one tenth. Real quartz stays below 0.0002.
pub const MAX_SKEW_PPB: i64 = 100_000_000;

const BILLION: u128 = 1_000_000_000;

/// A host's clock, as a function of the engine's time.
#[derive(Clone, Debug)]
pub struct HostClock {
    offset: u64,
    /// Host nanoseconds per 10^9 of the engine's.
    pace: u128,
    resolution: u64,
    steps: Vec<Step>,
}

impl HostClock {
    /// The clock that errs so.
    pub fn new(config: ClockConfig) -> HostClock {
        let mut steps = config.steps;
        steps.sort_by_key(|step| step.at);
        let skew = config.skew_ppb.clamp(-MAX_SKEW_PPB, MAX_SKEW_PPB);
        HostClock {
            offset: config.offset.as_nanos().max(0) as u64,
            pace: (BILLION as i64 + skew) as u128,
            resolution: config.resolution.as_nanos().max(1) as u64,
            steps,
        }
    }

    /// The monotonic clock's reading. Never goes back as the engine's time goes on.
    pub fn read(&self, engine: Time) -> Time {
        let ns = engine.as_nanos();
        let ns = if self.pace == BILLION {
            ns
        } else {
            u64::try_from(u128::from(ns) * self.pace / BILLION).unwrap_or(u64::MAX)
        };
        Time::from_nanos(ns.saturating_add(self.offset))
    }

    /// The first moment at which [`read`](HostClock::read) gives `host` or more; the run's start where that
    /// was so from the beginning. `when(read(t))` is `t`, or one nanosecond before it where the clock is slow.
    pub fn when(&self, host: Time) -> Time {
        let ns = host.as_nanos().saturating_sub(self.offset);
        if self.pace == BILLION || ns == u64::MAX {
            return Time::from_nanos(ns);
        }
        Time::from_nanos(u64::try_from((u128::from(ns) * BILLION).div_ceil(self.pace)).unwrap_or(u64::MAX))
    }

    /// The stamp that a packet gets at that moment.
    pub fn stamp(&self, engine: Time) -> Time {
        let read = self.read(engine).as_nanos();
        let shift: Span =
            self.steps.iter().take_while(|s| s.at <= engine).filter(|s| !s.announced).map(|s| s.by).sum();
        Time::from_nanos(read - read % self.resolution) + shift
    }

    /// The announced steps, ordered by time.
    pub fn announced(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|s| s.announced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_unannounced_steps_shift_stamps_and_only_stamps() {
        let step = |ms, by, announced| Step {
            at: Time::ZERO + Span::from_millis(ms),
            by: Span::from_millis(by),
            announced,
        };
        let clock = HostClock::new(ClockConfig {
            resolution: Span::from_micros(10),
            steps: vec![step(20, 7, true), step(10, -4, false)],
            ..Default::default()
        });
        let at = Time::from_nanos(10_000_007);
        assert_eq!(clock.stamp(at), Time::from_nanos(6_000_000));
        assert_eq!(clock.read(at), at);
        assert_eq!(clock.stamp(Time::from_nanos(30_000_000)), Time::from_nanos(26_000_000));
        assert_eq!(clock.announced().count(), 1);
    }

    proptest! {
        #[test]
        fn there_and_back_within_a_nanosecond_and_never_back(
            ns in 0_u64..1_000_000_000_000_000, more in 0_u64..1_000_000, skew in -MAX_SKEW_PPB..=MAX_SKEW_PPB,
            offset in 0_i64..1_000_000_000_000, resolution in 1_i64..10_000_000,
        ) {
            let clock = HostClock::new(ClockConfig {
                offset: Span::from_nanos(offset), skew_ppb: skew, resolution: Span::from_nanos(resolution), steps: vec![],
            });
            let (t, later) = (Time::from_nanos(ns), Time::from_nanos(ns + more));
            let back = clock.when(clock.read(t));
            prop_assert!(back <= t && (t - back).as_nanos() <= 1);
            prop_assert!(clock.read(back) >= clock.read(t));
            prop_assert!(clock.read(t) <= clock.read(later));
            prop_assert!(clock.stamp(t) <= clock.stamp(later));
            prop_assert!(clock.stamp(t) <= clock.read(t));
            prop_assert!(clock.when(clock.read(t)) <= clock.when(clock.read(later)));
        }
    }
}
