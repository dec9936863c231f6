//! Simulated runs from a library: the example that embeds a prober, against the truth, and runs of ready scenarios.

use lastmile::Decision;
use lastmile::estimate::Quantity;
use lastmile::time::Span;
use lastmile_sim::roles::Makers;
use lastmile_sim::runs::{Hooks, simulate};
use lastmile_sim::scenario::builtin;

#[path = "../../examples/embed.rs"]
#[allow(dead_code)] // its `main`
mod embed;

#[test]
fn the_embedding_example_finds_what_is_there() {
    let decisions = embed::measure().unwrap();
    let found = |quantity| {
        decisions.iter().find_map(|decision| match decision {
            Decision::Estimated { estimate, .. } if estimate.quantity == quantity => estimate.value.rate(),
            _ => None,
        })
    };
    let mbits = |quantity| found(quantity).map_or(f64::NAN, |rate| rate.bits_per_second() as f64 / 1e6);
    assert!((9.9..=10.1).contains(&mbits(Quantity::Capacity)), "{decisions:?}");
    // One train's window of Poisson traffic.
    assert!((5.0..=7.0).contains(&mbits(Quantity::AvailableBandwidth)), "{decisions:?}");
}

/// Of measurements by methods that draw. Another seed of theirs gives other results in the same network.
#[test]
fn methods_draw_with_the_seed_of_the_run_unless_told_otherwise() {
    let scenario = builtin("path").unwrap();
    let run = |make: &Makers| simulate(&scenario, 1, make, Hooks::default()).unwrap().json(&scenario, 1);
    assert_eq!(run(&Makers::default()), run(&Makers::registered(Span::ZERO, 1)));
    assert_ne!(run(&Makers::default()), run(&Makers::registered(Span::ZERO, 0)));
}
