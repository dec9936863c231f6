//! ECNProbe behind the router of its paper (`red-ecn`), at the paper's five loads, in both directions.

use lastmile::estimate::Refusal;
use lastmile_sim::roles::measure::Outcome;
use lastmile_sim::runs::{Hooks, simulate};
use lastmile_sim::scenario::Scenario;

use crate::stories::makers;

/// The paper's queue in `tc`'s words.
const RED: &str = "kind = \"tc-red\", limit = \"256000 B\", min = \"12000 B\", max = \"32000 B\", avpkt = \"1000 B\", burst = 20, probability = 0.02";

fn last(kind: &str, load: &str, direction: &str, discipline: &str, seed: u64) -> Outcome {
    let (from, to) = if direction == "forward" { ("a", "b") } else { ("b", "a") };
    let text = format!(
        "name = \"ecn\"\nduration = \"60 s\"\nhost = {{ a = {{}}, b = {{}} }}\n[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\n\
         rate = \"10 Mbit/s\"\ndelay = \"20 ms\"\ndiscipline = {{ {discipline} }}\nback = {{ rate = \"100 Mbit/s\", queue = \"1 MB\", discipline = {{ kind = \"drop-tail\" }} }}\n\
         [[traffic]]\nkind = \"{kind}\"\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"{load}\"\nsize = \"500 B\"\n\
         [[measure]]\nfrom = \"a\"\nto = \"b\"\nmethod = \"ecnprobe\"\ndirection = \"{direction}\"\nstart = \"2 s\"\n"
    );
    let scenario = Scenario::parse("ecn.toml", &text).unwrap();
    let run = simulate(&scenario, seed, &makers(), Hooks::default()).unwrap();
    run.found.measure.outcomes.into_iter().next_back().expect("it comes to an end")
}

/// The rate found, in Mbit/s.
fn rate(kind: &str, load: &str, direction: &str, seed: u64) -> f64 {
    let outcome = last(kind, load, direction, &format!("{RED}, ecn = true"), seed);
    let estimate = outcome.estimate.unwrap_or_else(|| panic!("{:?}", outcome.refusal));
    estimate.value.rate().unwrap().bits_per_second() as f64 / 1e6
}

#[test]
fn marks_tell_what_is_left_at_the_papers_five_loads() {
    for kind in ["cbr", "poisson"] {
        for (load, left) in
            [("1 kbit/s", 10.0), ("2 Mbit/s", 8.0), ("4 Mbit/s", 6.0), ("6 Mbit/s", 4.0), ("8 Mbit/s", 2.0)]
        {
            let mut rates: Vec<f64> = (101..106).map(|seed| rate(kind, load, "forward", seed)).collect();
            rates.sort_by(f64::total_cmp);
            assert!((rates[2] / left - 1.0).abs() <= 0.1, "{kind} of {load}: {rates:?} for {left}");
        }
    }
}

#[test]
fn packets_of_the_way_back_are_marked_too() {
    let found = rate("cbr", "4 Mbit/s", "reverse", 7);
    assert!((5.4..6.6).contains(&found), "{found}");
}

#[test]
fn a_queue_that_drops_instead_of_marking_is_no_answer() {
    let outcome = last("cbr", "4 Mbit/s", "forward", "kind = \"drop-tail\"", 7);
    assert!(
        outcome.refusal.is_some_and(|why| matches!(
            why,
            Refusal::Unmarked { cleared: false } | Refusal::TooLossy { .. }
        ))
    );
}
