//! WBest where a queue drops others' packets and none of its own, and that it refuses no more elsewhere.

use std::ops::RangeInclusive;

use lastmile::estimate::{Estimate, Quantity, Refusal};
use lastmile_sim::runs::{Hooks, simulate};
use lastmile_sim::scenario::Scenario;

use crate::stories::makers;

/// Of `runs` at 10 Mbit/s under Poisson traffic of packets of that size, over a link with these keys: those refused as
/// congested, and those more than 15 % of the capacity above the truth.
fn outcomes(others: &str, size: u32, link: &str, runs: u64) -> (usize, usize) {
    let text = format!(
        "name = \"queue\"\nduration = \"5 s\"\n[host.a]\n[host.b]\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"10 Mbit/s\"\n\
         delay = \"2 ms\"\n{link}\n[[traffic]]\nkind = \"poisson\"\nfrom = \"a\"\nto = \"b\"\nrate = \"{others}\"\n\
         size = \"{size} B\"\n[[measure]]\nfrom = \"a\"\nto = \"b\"\nmethod = \"wbest\"\ndirection = \"forward\"\nstart = \"300 ms\"\n"
    );
    let scenario = Scenario::parse("queue.toml", &text).unwrap();
    let (mut refused, mut wrong) = (0, 0);
    for seed in 0..runs {
        let run = simulate(&scenario, seed, &makers(), Hooks::default()).unwrap();
        let left = |e: &Estimate| e.quantity == Quantity::AvailableBandwidth;
        let outcomes = &run.found.measure.outcomes;
        let last =
            outcomes.iter().rfind(|o| o.estimate.as_ref().is_none_or(left)).expect("it comes to an end");
        let Some(estimate) = &last.estimate else {
            let congested =
                matches!(last.refusal, Some(Refusal::Congested { .. } | Refusal::QueueFull { .. }));
            refused += usize::from(congested);
            continue;
        };
        let truth = last.truth.and_then(|t| t.window).unwrap().bits_per_second();
        wrong +=
            usize::from(estimate.value.rate().map_or(0, |rate| rate.bits_per_second()) > truth + 1_500_000);
    }
    (refused, wrong)
}

/// With those others, over a link with these keys: of so many runs at least and at most so many are refused, and at most so
/// many wrong.
fn check(others: &[(&str, u32)], link: &str, runs: u64, refused: RangeInclusive<usize>, wrong: usize) {
    for (others, size) in others {
        let found = outcomes(others, *size, link, runs);
        assert!(
            refused.contains(&found.0) && found.1 <= wrong,
            "{others} in {size} B, {link}: {found:?} of {runs}"
        );
    }
}

#[test]
fn drops_of_others_are_no_spare_capacity() {
    // Without the look at the delay 4 and 9 of 150 are wrong with 15 kB, and 6 with 60 kB.
    check(&[("5 Mbit/s", 1500), ("6 Mbit/s", 1500)], "queue = \"15 kB\"", 150, 0..=150, 2);
    check(&[("9 Mbit/s", 1500)], "queue = \"60 kB\"", 150, 0..=150, 2);
    // A queue of ten packets that overflows is seen. With 6 Mbit/s of others one train in twenty comes through whole.
    check(&[("6 Mbit/s", 1500)], "queue = \"10 packets\"", 200, 185..=200, 200);
    check(&[("8 Mbit/s", 1500), ("11 Mbit/s", 1500)], "queue = \"10 packets\"", 40, 38..=40, 40);
    // It is full at less delay the more of these small packets it holds.
    let small = [("9.5 Mbit/s", 700), ("8 Mbit/s", 700), ("9.5 Mbit/s", 400)];
    check(&small, "queue = \"10 packets\"", 40, 38..=40, 1);
}

#[test]
fn queues_that_never_fill_and_random_losses_are_no_reason_to_refuse() {
    check(&[("2 Mbit/s", 1500), ("6 Mbit/s", 1500), ("9 Mbit/s", 1500)], "queue = \"1 MB\"", 100, 0..=1, 0);
    // Losses of a wireless hop are no overflow.
    for rate in [0.01, 0.03, 0.1] {
        let link = format!("losses = [{{ model = {{ kind = \"bernoulli\", rate = {rate} }} }}]");
        let others = [("100 kbit/s", 1500), ("4 Mbit/s", 1500), ("7 Mbit/s", 1500), ("7 Mbit/s", 700)];
        check(&others, &link, 40, 0..=1, 40);
    }
}
