//! What WBest says where a queue drops others' packets and none of its own, and that it says no less elsewhere.

use lastmile::estimate::{Conditions, Estimator, Quantity, Refusal, build};
use lastmile_sim::roles::measure::MeasureSpec;
use lastmile_sim::runs::{Hooks, simulate};
use lastmile_sim::scenario::Scenario;

/// Of `runs` at 10 Mbit/s under Poisson traffic, over a link with these keys: those refused as congested, and those more
/// than 15 % of the capacity above the truth.
fn outcomes(others: &str, link: &str, runs: u64) -> (usize, usize) {
    let text = format!(
        "name = \"queue\"\nduration = \"5 s\"\n[host.a]\n[host.b]\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"10 Mbit/s\"\n\
         delay = \"2 ms\"\n{link}\n[[traffic]]\nkind = \"poisson\"\nfrom = \"a\"\nto = \"b\"\nrate = \"{others}\"\n\
         size = \"1500 B\"\n[[measure]]\nfrom = \"a\"\nto = \"b\"\nmethod = \"wbest\"\ndirection = \"forward\"\nstart = \"300 ms\"\n"
    );
    let scenario = Scenario::parse("queue.toml", &text).unwrap();
    let make = |spec: &MeasureSpec| -> Result<Box<dyn Estimator>, String> {
        build(&spec.method, &Conditions::exact(0)).map_err(|error| error.to_string())
    };
    let (mut refused, mut wrong) = (0, 0);
    for seed in 0..runs {
        let run = simulate(&scenario, seed, &make, Hooks::default()).unwrap();
        let last = run.found.measure.outcomes.last().expect("it comes to an end");
        let Some(estimate) = &last.estimate else {
            let congested =
                matches!(last.refusal, Some(Refusal::Congested { .. } | Refusal::QueueFull { .. }));
            refused += usize::from(congested);
            continue;
        };
        assert_eq!(estimate.quantity, Quantity::AvailableBandwidth);
        let truth = last.truth.and_then(|t| t.window).unwrap().bits_per_second();
        wrong += usize::from(estimate.value.rate().unwrap().bits_per_second() > truth + 1_500_000);
    }
    (refused, wrong)
}

#[test]
fn drops_of_others_are_no_spare_capacity() {
    // Without the look at the delay 4 and 9 of 150 are wrong with 15 kB, and 6 with 60 kB.
    for (others, queue) in [("5 Mbit/s", "15 kB"), ("6 Mbit/s", "15 kB"), ("9 Mbit/s", "60 kB")] {
        let (refused, wrong) = outcomes(others, &format!("queue = \"{queue}\""), 150);
        assert!(wrong <= 2, "{others} in {queue}: {wrong} of 150 wrong, {refused} refused");
    }
}

#[test]
fn a_queue_that_never_fills_is_no_reason_to_refuse() {
    for others in ["2 Mbit/s", "6 Mbit/s", "9 Mbit/s"] {
        let (refused, wrong) = outcomes(others, "queue = \"1 MB\"", 100);
        assert!(refused <= 1 && wrong == 0, "{others}: {refused} of 100 refused, {wrong} wrong");
    }
}

/// Losses of a wireless hop are no overflow: of 40 runs at each rate at most one is called so.
#[test]
fn random_losses_are_no_overflow() {
    for rate in [0.01, 0.03, 0.1] {
        for others in ["100 kbit/s", "4 Mbit/s", "7 Mbit/s"] {
            let link = format!("losses = [{{ model = {{ kind = \"bernoulli\", rate = {rate} }} }}]");
            let (refused, _) = outcomes(others, &link, 40);
            assert!(refused <= 1, "{others}, {rate} lost: {refused} of 40 called congested");
        }
    }
}

/// A queue of ten packets that overflows is seen. With 6 Mbit/s of others one train in twenty comes through whole.
#[test]
fn a_short_queue_that_overflows_is_seen() {
    for (others, least) in [("6 Mbit/s", 37), ("8 Mbit/s", 38), ("11 Mbit/s", 38)] {
        let (refused, _) = outcomes(others, "queue = \"10 packets\"", 40);
        assert!(refused >= least, "{others}: {refused} of 40 called congested");
    }
}
