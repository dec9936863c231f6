//! ProbeGap, where its feature is on, on the link of the estimation tools' table: docs/probegap.md has 30 runs of each row.

use lastmile::estimate::{METHODS, Quantity};
use lastmile::observe::stats;
use lastmile::time::Span;
use lastmile_sim::roles::Makers;
use lastmile_sim::runs::{Hooks, simulate};
use lastmile_sim::scenario::Scenario;

/// Its answer, in Mbit/s.
fn left(kind: &str, seed: u64) -> f64 {
    let traffic = match kind {
        "idle" => String::new(),
        kind => format!(
            "[[traffic]]\nkind = \"{kind}\"\nfrom = \"a\"\nto = \"b\"\nrate = \"4 Mbit/s\"\nsize = \"1500 B\"\n"
        ),
    };
    let text = format!(
        "name = \"probegap\"\nduration = \"60 s\"\nhost = {{ a = {{ clock = {{ skew_ppm = 30.0 }} }}, b = {{}} }}\n\
         [[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"10 Mbit/s\"\ndelay = \"2 ms\"\nqueue = \"60 kB\"\n{traffic}\
         [[measure]]\nfrom = \"a\"\nto = \"b\"\nmethod = \"probegap\"\ndirection = \"forward\"\nstart = \"300 ms\"\n"
    );
    let scenario = Scenario::parse("probegap.toml", &text).unwrap();
    let hooks = Hooks { linger: Some(Span::from_secs(1)), ..Hooks::default() };
    let run = simulate(&scenario, seed, &Makers::registered(Span::ZERO, seed), hooks).unwrap();
    let outcomes = run.found.measure.outcomes;
    let last = outcomes.last().expect("it comes to an end");
    let estimate =
        last.estimate.as_ref().filter(|estimate| estimate.quantity == Quantity::AvailableBandwidth);
    let rate = estimate.and_then(|estimate| estimate.value.rate()).unwrap_or_else(|| panic!("{last:?}"));
    rate.bits_per_second() as f64 / 1e6
}

#[test]
fn the_idle_share_is_what_is_left() {
    if METHODS.find("probegap").is_err() {
        return;
    }
    for (kind, truth) in [("idle", 10.0), ("cbr", 6.0), ("poisson", 6.0)] {
        let rates: Vec<f64> = (101..131).map(|seed| left(kind, seed)).collect();
        let median = stats::median(&rates).unwrap();
        assert!((median / truth - 1.0).abs() < 0.1, "{kind}: {rates:?}");
    }
}
