//! The spare rate where stations aggregate frames: found by trying. It is the highest constant rate at which no other flow loses
//! more than [`LOSS`] of its goodput, and the added flow less than that, counted over the whole run. `docs/wlan.md` says why.

use lastmile::time::{Span, Time};
use lastmile::units::Rate;

use crate::scenario::Scenario;

/// The share of its goodput that a flow may lose.
const LOSS: f64 = 0.005;
/// The shortest time over which such a loss can be told from chance.
const MIN_RUN: Span = Span::from_secs(20);
/// Largest gap from the answer up to a rate that does not fit: a share of the answer, and at least one of the capacity.
const GRAIN: (f64, f64) = (0.01, 0.002);
/// The first step away from the guess, as a share of the capacity.
const STEP: f64 = 0.08;
/// IP bytes of a packet that comes just behind the end, and is not lost.
const LATE_PACKET: f64 = 1500.0;

/// The time over which losses are counted: from the warm-up's end to the run's.
pub(crate) fn window(scenario: &Scenario) -> (Time, Time) {
    let from = Time::ZERO + scenario.warm_up;
    (from, (Time::ZERO + scenario.duration).max(from + MIN_RUN))
}

/// True if a flow that brought, or should have brought, so many bytes still does.
pub(crate) fn keeps(before: f64, after: f64) -> bool {
    after >= before * (1.0 - LOSS) - LATE_PACKET
}

/// The highest rate up to `capacity` that fits, to within [`GRAIN`] below; from `guess` by steps that double until the
/// answer lies between two tries, then by halves. At most 12 tries, mostly 7.
pub(crate) fn highest<E>(
    capacity: Rate,
    guess: Rate,
    mut fits: impl FnMut(Rate) -> Result<bool, E>,
) -> Result<Rate, E> {
    let (mut low, mut high) = (0.0, 1.0);
    let grain = |low: f64| (GRAIN.0 * low).max(GRAIN.1);
    let mut step = STEP;
    let mut at = guess.ratio(capacity).unwrap_or(0.0).clamp(GRAIN.1, 1.0);
    while high - low > grain(low) {
        let fit = fits(capacity.scaled(at))?;
        if fit {
            low = at
        } else {
            high = at
        }
        let far = if fit { low + step } else { high - step };
        step *= 2.0;
        let open = low == 0.0 || high == 1.0;
        at = if open && low < far && far < high { far } else { (low + high) / 2.0 };
    }
    Ok(capacity.scaled(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_just_below_what_no_longer_fits_after_few_tries() {
        let capacity = Rate::ip(60_000_000);
        for limit in (0..=120).map(|half| half * 500_000) {
            for guess in [0, 1, 20, 45, 60, 90] {
                let mut tries = 0;
                let found = highest(capacity, Rate::ip(guess * 1_000_000), |rate| {
                    tries += 1;
                    Ok::<_, ()>(rate.bits_per_second() <= limit)
                });
                let found = found.unwrap().bits_per_second();
                assert!(found <= limit && limit - found <= (limit / 100).max(120_000) + 1, "{limit} {found}");
                assert!(tries <= 12, "{limit} {guess}: {tries}");
            }
        }
        let failed = highest(capacity, capacity, |_| Err("no"));
        assert_eq!(failed, Err("no"));
    }

    #[test]
    fn half_a_percent_is_kept_and_so_is_all_but_a_late_packet_of_a_small_flow() {
        assert!(keeps(1e6, 0.995e6) && !keeps(1e6, 0.993e6));
        assert!(keeps(3_000.0, 1_500.0) && !keeps(4_000.0, 1_000.0) && keeps(0.0, 0.0));
    }
}
