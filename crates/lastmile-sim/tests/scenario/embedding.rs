//! Simulated runs from a library: the example that embeds a prober, against the truth, and runs of ready scenarios.

use lastmile::Decision;
use lastmile::endpoint::measure::Reflector;
use lastmile::endpoint::stream::{Receiver, Sender};
use lastmile::estimate::Quantity;
use lastmile::time::Span;
use lastmile_sim::network::host::{Own, Seat};
use lastmile_sim::roles::Makers;
use lastmile_sim::runs::{Hooks, simulate};
use lastmile_sim::scenario::{Scenario, builtin, builtin_text};

use crate::common::Recorder;

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
    // Three trains' windows of Poisson traffic.
    assert!((4.5..=7.5).contains(&mbits(Quantity::AvailableBandwidth)), "{decisions:?}");
}

/// Of measurements by methods that draw. Another seed of theirs gives other results in the same network.
#[test]
fn methods_draw_with_the_seed_of_the_run_unless_told_otherwise() {
    let scenario = builtin("path").unwrap();
    let run = |make: &Makers| simulate(&scenario, 1, make, Hooks::default()).unwrap().json(&scenario, 1);
    assert_eq!(run(&Makers::default()), run(&Makers::registered(Span::ZERO, 1)));
    assert_ne!(run(&Makers::default()), run(&Makers::registered(Span::ZERO, 0)));
}

#[test]
fn a_run_hands_back_the_endpoints_of_its_tables() {
    let stream = "[[stream]]\nfrom = \"sender\"\nto = \"receiver\"\nrate = \"1 Mbit/s\"\n";
    let text = builtin_text("path").unwrap().to_owned() + stream;
    let mut run = Scenario::parse("path.toml", &text).unwrap().run(1).unwrap();
    assert_eq!(run.endpoints.len(), 4, "a prober too, whose type is the simulator's own");
    assert!(run.take::<Sender>().is_some() && run.take::<Receiver>().is_some());
    assert!(run.take::<Reflector>().is_some() && run.take::<Sender>().is_none());
}

#[test]
fn a_node_that_sends_nothing_changes_nothing() {
    let path = builtin("path").unwrap();
    let (silent, _) = Recorder::new(Vec::new());
    let mut run = path.run_with(1, vec![("receiver".into(), Seat::own(7, *silent))]).unwrap();
    assert_eq!(run.json(&path, 1), path.run(1).unwrap().json(&path, 1));
    let numbers: Vec<u32> = run.endpoints.iter().map(|(place, _)| place.number).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
    assert!(run.take::<Own<Recorder>>().is_some());
    let nowhere = path.run_with(1, vec![("nobody".into(), Seat::own(7, Recorder::default()))]);
    assert_eq!(nowhere.unwrap_err().to_string(), "the scenario has no host \"nobody\"");
}
