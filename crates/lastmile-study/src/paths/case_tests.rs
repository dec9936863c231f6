//! Paths on which WBest's model does not hold, 40 runs each: fair queues, busy links before the narrow one, cells with retries.

use lastmile::estimate::Quantity;
use lastmile::time::Span;
use lastmile_sim::roles::Makers;
use lastmile_sim::runs::{Hooks, simulate};
use lastmile_sim::scenario::Scenario;

use super::judge::{Verdict, judge};

const RUNS: u64 = 40;

/// Silently wrong numbers of the quantity on a path, the median error as a share of the truth, and both as text.
fn told(name: &str, quantity: Quantity, path: &str) -> (usize, f64, String) {
    let text = format!(
        "name = \"{name}\"\nduration = \"6 s\"\nwarm_up = \"1 s\"\n[host.a]\n[host.b]\n{path}\n\
         [[measure]]\nfrom = \"a\"\nto = \"b\"\nmethod = \"wbest\"\ndirection = \"forward\"\nstart = \"2 s\"\n"
    );
    let scenario = Scenario::parse(name, &text).unwrap();
    let (mut errors, mut verdicts) = (Vec::new(), Vec::new());
    for seed in 1..=RUNS {
        let make = Makers::registered(Span::ZERO, seed);
        let run = simulate(&scenario, seed, &make, Hooks::default()).unwrap();
        for outcome in run.found.measure.outcomes {
            let Some(estimate) = outcome.estimate.filter(|e| e.quantity == quantity) else { continue };
            let Some(judged) = judge(&estimate, outcome.truth) else {
                verdicts.push(Verdict::Refused);
                continue;
            };
            let bps = |rate: Option<lastmile::units::Rate>| rate.map_or(0.0, |r| r.bits_per_second() as f64);
            errors.push((bps(estimate.value.rate()) / bps(judged.truth).max(1.0) - 1.0).abs());
            verdicts.push(judged.verdict);
        }
    }
    let count = |verdict| verdicts.iter().filter(|v| **v == verdict).count();
    let error = lastmile::observe::stats::median(&errors).unwrap_or(0.0);
    let all = verdicts.len();
    let [right, held, warned, silent] =
        [Verdict::Right, Verdict::Held, Verdict::Warned, Verdict::Silent].map(count);
    let said = format!(
        "{name}: {right} right, {held} held, {warned} warned, {silent} silent of {all}; {error:.3} off"
    );
    (silent, error, said)
}

fn link(from: &str, to: &str, more: &str) -> String {
    format!("[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\n{more}\n")
}

fn traffic(kind: &str, from: &str, to: &str, rate: f64) -> String {
    format!(
        "[[traffic]]\nkind = \"{kind}\"\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"{rate} Mbit/s\"\nsize = \"1500 B\"\n"
    )
}

/// CBR of 4 of 10 Mbit/s leaves 6 where WBest's model says 3.3; and Poisson traffic, which now and then is above its share.
#[test]
fn behind_a_fair_queue_a_train_gets_what_others_leave() {
    for (kind, rate, most) in [("cbr", 4.0, 0), ("poisson", 3.0, 2), ("poisson", 5.0, 4)] {
        let path = link("a", "b", "rate = \"10 Mbit/s\"\ndiscipline = { kind = \"fq-codel\" }")
            + &traffic(kind, "a", "b", rate);
        let (silent, error, said) =
            told(&format!("fq-codel, {kind} {rate}"), Quantity::AvailableBandwidth, &path);
        assert!(silent <= most && error <= 0.15, "{said}");
    }
}

/// 30 Mbit/s with 20 taken, or 100 with 90, before an idle 20.
#[test]
fn a_busy_link_before_the_narrow_one_is_told() {
    for (rate, load) in [(30.0, 20.0), (100.0, 90.0)] {
        let path = [
            "[host.x]\n[host.y]\n".to_owned(),
            link("a", "r0", "rate = \"1 Gbit/s\""),
            link("x", "r0", "rate = \"1 Gbit/s\""),
            link("r0", "r1", &format!("rate = \"{rate} Mbit/s\"\nqueue = \"1 MB\"")),
            link("r1", "y", "rate = \"1 Gbit/s\""),
            link("r1", "b", "rate = \"20 Mbit/s\"\nqueue = \"1 MB\""),
            traffic("poisson", "x", "y", load),
        ]
        .concat();
        let (silent, _, said) =
            told(&format!("{load} of {rate} Mbit/s before 20"), Quantity::AvailableBandwidth, &path);
        assert!(silent <= 2, "{said}");
    }
}

/// The narrow link itself, as always.
#[test]
fn a_fifo_stays_as_exact_as_it_was() {
    for (kind, rate) in [("cbr", 4.0), ("poisson", 4.0), ("poisson", 8.0)] {
        let path =
            link("a", "b", "rate = \"10 Mbit/s\"\nqueue = \"200 kB\"") + &traffic(kind, "a", "b", rate);
        let (silent, error, said) =
            told(&format!("fifo, {kind} {rate}"), Quantity::AvailableBandwidth, &path);
        assert!(silent == 0 && error <= 0.01, "{said}");
    }
}
