//! Pathrate on the link of the estimation tools' table, and behind an access link little faster than the narrow one, where others' packets come between those of most
//! trains: docs/validation.md has 30 runs of each.

use lastmile::endpoint::measure::relative_error;
use lastmile::time::Span;
use lastmile_sim::roles::Makers;
use lastmile_sim::roles::measure::Outcome;
use lastmile_sim::runs::{Hooks, simulate};
use lastmile_sim::scenario::Scenario;

/// A narrow link as the table has it.
const NARROW: &str = "rate = \"10 Mbit/s\"\nqueue = \"60 kB\"";

/// Runs it to its end over a narrow link with those keys, beside 4 Mbit/s of others of that kind, which come to it over another way than the probes.
fn last(access: Option<&str>, narrow: &str, kind: &str, seed: u64) -> Outcome {
    let access = access.map_or_else(String::new, |rate| {
        let link = |from, rate| {
            format!("[[link]]\nfrom = \"{from}\"\nto = \"r\"\nrate = \"{rate}\"\ndelay = \"1 ms\"\nqueue = \"1 MB\"\n")
        };
        format!("[host.c]\n{}{}", link("a", rate), link("c", "100 Mbit/s"))
    });
    let [near, others] = if access.is_empty() { ["a", "a"] } else { ["r", "c"] };
    let traffic = match kind {
        "idle" => String::new(),
        kind => format!(
            "[[traffic]]\nkind = \"{kind}\"\nfrom = \"{others}\"\nto = \"b\"\nrate = \"4 Mbit/s\"\nsize = \"1500 B\"\n"
        ),
    };
    let text = format!(
        "name = \"pathrate\"\nduration = \"1800 s\"\n[host.a]\n[host.b]\n{access}\
         [[link]]\nfrom = \"{near}\"\nto = \"b\"\ndelay = \"2 ms\"\n{narrow}\n{traffic}\
         [[measure]]\nfrom = \"a\"\nto = \"b\"\nmethod = \"pathrate\"\ndirection = \"forward\"\nstart = \"300 ms\"\n"
    );
    let scenario = Scenario::parse("pathrate.toml", &text).unwrap();
    let hooks = Hooks { linger: Some(Span::from_secs(1)), ..Hooks::default() };
    let run = simulate(&scenario, seed, &Makers::registered(Span::ZERO, seed), hooks).unwrap();
    run.found.measure.outcomes.into_iter().next_back().expect("it comes to an end")
}

/// Trains of up to ten packets differ by less than a twentieth on one link, and both phases run where others come between.
#[test]
fn the_capacity_is_found_idle_and_beside_others() {
    for (access, kind, phases) in [
        (None, "idle", false),
        (None, "cbr", false),
        (None, "poisson", false),
        (Some("12 Mbit/s"), "idle", false),
        (Some("12 Mbit/s"), "cbr", true),
        (Some("12 Mbit/s"), "poisson", true),
    ] {
        for seed in 101..104 {
            let outcome = last(access, NARROW, kind, seed);
            let rate = outcome.estimate.and_then(|estimate| estimate.value.rate()).unwrap();
            let mbit = rate.bits_per_second() as f64 / 1e6;
            let seconds = outcome.cost.elapsed.as_secs_f64();
            assert!((mbit - 10.0).abs() < 0.1, "{access:?} {kind}, seed {seed}: {mbit}");
            assert_eq!((500.0..1_500.0).contains(&seconds), phases, "{access:?} {kind}: {seconds} s");
        }
    }
}

/// Faults of the narrow link, whole runs: the path that changes and the one that ends do so in phase I.
#[test]
fn faults_end_in_a_reason_or_a_number_that_is_right_or_doubted() {
    let loss =
        |rate: f64| format!("{NARROW}\nlosses = [{{ model = {{ kind = \"bernoulli\", rate = {rate} }} }}]");
    let change = |rate: &str| format!("{NARROW}\nchanges = [{{ at = \"200 s\", rate = \"{rate}\" }}]");
    for narrow in [
        loss(0.01),
        loss(0.05),
        loss(0.2),
        format!(
            "{NARROW}\njitter = {{ kind = \"normal\", std = \"2 ms\", max = \"10 ms\", reorder = true }}"
        ),
        "rate = \"10 Mbit/s\"\nqueue = \"1 packets\"".to_owned(),
        "rate = \"100 Mbit/s\"\nqueue = \"60 kB\"\npolicer = { rate = \"10 Mbit/s\", burst = \"10 kB\" }"
            .to_owned(),
        "rate = \"100 Mbit/s\"\nqueue = \"100 kB\"\nshaper = { rate = \"10 Mbit/s\", burst = \"10 kB\" }"
            .to_owned(),
        change("4 Mbit/s"),
        change("0 bit/s"),
    ] {
        for access in [None, Some("12 Mbit/s")] {
            let outcome = last(access, &narrow, "poisson", 7);
            let what = format!("{access:?} {narrow}: {outcome:?}");
            assert!(outcome.cost.elapsed < Span::from_secs(1_500), "{what}");
            let Some(estimate) = outcome.estimate else {
                assert!(!outcome.refusal.unwrap().to_string().is_empty(), "{what}");
                continue;
            };
            let truth = outcome.truth.and_then(|truth| truth.of(&estimate));
            let off = relative_error(estimate.value.rate(), truth).unwrap().abs();
            assert!(off < 0.1 || estimate.warnings.iter().any(|warning| warning.code.doubts()), "{what}");
        }
    }
}
