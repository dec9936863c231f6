//! Paths of two links, one behind the other: WBest's capacity where the tight link is not the narrow one, and no word where it is.
#![allow(clippy::print_stderr, reason = "the numbers seen are quoted in the documentation")]

mod fifo;

use fifo::{Cross, Path};
use lastmile::estimate::{Conditions, Outcome, Quantity, WarningCode, build};
use lastmile::units::Rate;

const SEEDS: u64 = 100;
/// Seeds of the loop from which the rules were made: tests and documentation have others.
const FROM: u64 = 5_000;

/// Runs by their outcome.
#[derive(Debug, Default)]
struct Count {
    within: usize,
    /// Beyond a tenth of the truth, with an interval that holds it, with a warning only, and without a word.
    held: usize,
    warned: usize,
    silent: usize,
    refused: usize,
    /// Runs that said, right or wrong: that pairs were spread, that a tight link is behind the narrow one.
    spread: usize,
    tight: usize,
}

/// Two links at these rates and loads in bit/s, with packets of so many bytes; stamps as kernels make them.
fn measure(links: [(f64, f64); 2], cross: Cross, size: f64, capacity: f64, seed: u64, count: &mut Count) {
    let link = |k: usize| {
        let (rate, load) = links[k];
        let mut path =
            Path::new(rate, if load > 0.0 { cross } else { Cross::Idle }, load, 2 * seed + k as u64);
        path.cross_size = size;
        path
    };
    let mut path = link(0);
    (path.behind, path.jitter) = (Some(Box::new(link(1))), 2_000.0);
    let conditions = Conditions { seed, ..Conditions::default() };
    let Outcome::Found(found) =
        path.measure(&mut *build(&"wbest(trains=1)".parse().unwrap(), &conditions).unwrap())
    else {
        count.refused += 1;
        return;
    };
    let c = found.iter().find(|e| e.quantity == Quantity::Capacity).unwrap();
    let says = |code| c.warnings.iter().any(|warning| warning.code == code);
    let (spread, tight) =
        (says(WarningCode::Scattered) || says(WarningCode::Contended), says(WarningCode::TightLink));
    // An interval that is too wide leaves no number to be wrong.
    let warned = spread || tight || c.value.rate().is_none();
    (count.spread, count.tight) = (count.spread + usize::from(spread), count.tight + usize::from(tight));
    let value = c.value.rate().map_or(0.0, |rate| rate.bits_per_second() as f64);
    let holds = c.interval.is_some_and(|i| i.contains(Rate::ip(capacity as u64)));
    *if (value / capacity - 1.0).abs() <= 0.1 {
        &mut count.within
    } else if warned && holds {
        &mut count.held
    } else if warned {
        &mut count.warned
    } else {
        &mut count.silent
    } += 1;
}

fn runs(links: [(f64, f64); 2], cross: Cross, size: f64, capacity: f64) -> Count {
    let mut count = Count::default();
    (FROM..FROM + SEEDS).for_each(|seed| measure(links, cross, size, capacity, seed, &mut count));
    eprintln!("{links:?}, {cross:?} of {size} B: {count:?}");
    count
}

/// Others that come as they like; and regular ones, who come between the packets of each pair alike, so that no pair tells.
#[test]
fn a_busy_link_behind_the_narrow_one_does_not_change_the_capacity() {
    let (mut all, mut wrong) = (0, 0);
    for (rate, load, size) in [
        (10e6, 6e6, 1500.0),
        (11e6, 6e6, 1500.0),
        (12e6, 5e6, 1500.0),
        (12e6, 8e6, 1500.0),
        (15e6, 11e6, 1500.0),
        (20e6, 12e6, 1500.0),
        (20e6, 12e6, 500.0),
        (20e6, 15e6, 1500.0),
        (20e6, 15e6, 700.0),
        (20e6, 18e6, 1500.0),
        (30e6, 25e6, 1500.0),
        (100e6, 70e6, 1500.0),
        (100e6, 92e6, 1500.0),
    ] {
        for cross in [Cross::Cbr, Cross::Poisson, Cross::Pareto] {
            let found = runs([(1e7, 0.0), (rate, load)], cross, size, 1e7);
            if cross != Cross::Cbr {
                all += SEEDS as usize;
                wrong += found.silent;
                assert!(found.warned * 5 <= SEEDS as usize, "{found:?}");
            }
        }
    }
    eprintln!("without a word beyond a tenth: {wrong} of {all}");
    assert!(wrong * 100 <= 3 * all, "{wrong} of {all}");
}

#[test]
fn where_the_narrow_link_is_the_tight_one_nothing_is_said() {
    for cross in [Cross::Cbr, Cross::Poisson, Cross::Pareto] {
        // Such that regular packets do not come in step with pairs, all of which would meet the same.
        for load in [0.0, 0.31, 0.59, 0.89] {
            for before in [1e8, 1e9] {
                // A link before it that nobody else uses.
                let found = runs([(before, 0.0), (1e7, load * 1e7)], cross, 1500.0, 1e7);
                assert!(found.within == SEEDS as usize, "{found:?}");
                assert!(found.tight == 0 && found.spread * 20 <= SEEDS as usize, "{found:?}");
            }
        }
    }
}
