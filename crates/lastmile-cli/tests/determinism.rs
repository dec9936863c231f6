//! The same scenario and seed give the same bytes: run again, and in sweeps on any number of threads.

mod common;

use common::{Scratch, lastmile};
use lastmile::time::Time;
use lastmile_sim::scenario::{BUILTIN, builtin, builtin_text};

/// A ready scenario that ends a second after its warm-up and its last start.
fn shortened(name: &str) -> String {
    let (text, scenario) = (builtin_text(name).unwrap(), builtin(name).unwrap());
    let starts =
        scenario.traffic.iter().map(|flow| flow.start).chain(scenario.measures.iter().map(|m| m.start));
    let last = starts.fold(Time::ZERO + scenario.warm_up, Time::max);
    let seconds = ((last - Time::ZERO).as_secs_f64() + 1.0).min(scenario.duration.as_secs_f64());
    let line = |line: &str| match line.starts_with("duration = ") {
        true => format!("duration = \"{seconds} s\""),
        false => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_ready_scenario_gives_the_same_bytes_again_and_on_any_number_of_threads() {
    let scratch = Scratch::new("determinism");
    for name in BUILTIN {
        let file = &scratch.file(&format!("{name}.toml"), shortened(name));
        let printed = |arguments: &[&str]| {
            let ended = lastmile(arguments);
            assert!(ended.stdout.len() > 100, "{name}: {ended:?}");
            ended.stdout
        };
        let first = printed(&["sim", file, "--json", "--seed", "7"]);
        assert_eq!(first, printed(&["sim", file, "--json", "--seed", "7"]), "{name}");
        assert_ne!(
            first,
            printed(&["sim", file, "--json", "--seed", "8"]),
            "{name}: the seed changes nothing"
        );
        let alone = printed(&["sweep", file, "--seeds", "3", "--threads", "1"]);
        for threads in ["2", "4"] {
            assert_eq!(
                alone,
                printed(&["sweep", file, "--seeds", "3", "--threads", threads]),
                "{name}, {threads} threads"
            );
        }
    }
}
