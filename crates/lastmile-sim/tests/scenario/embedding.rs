//! The example that embeds a prober in a simulated network, against the truth there.

use lastmile::Decision;
use lastmile::estimate::Quantity;

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
