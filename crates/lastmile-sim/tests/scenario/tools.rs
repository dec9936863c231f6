//! Estimation tools on paths that their models leave out: an end in every case, with a reason, or a number that is right or comes with a doubt.

use lastmile::endpoint::measure::relative_error;
use lastmile::estimate::{Answer, METHODS, Quantity, Value};
use lastmile_sim::runs::{Hooks, simulate};
use lastmile_sim::scenario::Scenario;

use crate::stories::makers;

/// Names, keys of the link, Poisson traffic of others in Mbit/s, and if the 5 Mbit/s fit that `enough` asks about where no rate is given: none where
/// chance or a change decides.
const PATHS: [(&str, &str, u32, Option<bool>); 14] = [
    ("idle", "rate = \"10 Mbit/s\"\nqueue = \"60 kB\"", 0, Some(true)),
    ("loaded", "rate = \"10 Mbit/s\"\nqueue = \"60 kB\"", 4, Some(true)),
    (
        "loss of 1 %",
        "rate = \"10 Mbit/s\"\nqueue = \"60 kB\"\nlosses = [{ model = { kind = \"bernoulli\", rate = 0.01 } }]",
        4,
        None,
    ),
    (
        "loss of 5 %",
        "rate = \"10 Mbit/s\"\nqueue = \"60 kB\"\nlosses = [{ model = { kind = \"bernoulli\", rate = 0.05 } }]",
        4,
        Some(false),
    ),
    (
        "loss of 20 %",
        "rate = \"10 Mbit/s\"\nqueue = \"60 kB\"\nlosses = [{ model = { kind = \"bernoulli\", rate = 0.2 } }]",
        4,
        Some(false),
    ),
    (
        "reordering",
        "rate = \"10 Mbit/s\"\nqueue = \"60 kB\"\njitter = { kind = \"normal\", std = \"2 ms\", max = \"10 ms\", reorder = true }",
        4,
        Some(true),
    ),
    (
        "loss of 20 % on a fast link",
        "rate = \"100 Mbit/s\"\nqueue = \"60 kB\"\nlosses = [{ model = { kind = \"bernoulli\", rate = 0.2 } }]",
        0,
        Some(false),
    ),
    ("no queue", "rate = \"10 Mbit/s\"\nqueue = \"1 packets\"", 4, Some(false)),
    (
        "a policer",
        "rate = \"100 Mbit/s\"\nqueue = \"60 kB\"\npolicer = { rate = \"10 Mbit/s\", burst = \"10 kB\" }",
        0,
        Some(true),
    ),
    (
        "a bucket",
        "rate = \"100 Mbit/s\"\nqueue = \"100 kB\"\nshaper = { rate = \"10 Mbit/s\", burst = \"10 kB\" }",
        0,
        Some(true),
    ),
    (
        "a change",
        "rate = \"10 Mbit/s\"\nqueue = \"60 kB\"\nchanges = [{ at = \"1 s\", rate = \"4 Mbit/s\" }]",
        0,
        None,
    ),
    (
        "no way",
        "rate = \"10 Mbit/s\"\nqueue = \"60 kB\"\nlosses = [{ model = { kind = \"bernoulli\", rate = 1.0 } }]\nback = { losses = [] }",
        0,
        Some(false),
    ),
    (
        "an outage from the middle on",
        "rate = \"10 Mbit/s\"\nqueue = \"60 kB\"\nchanges = [{ at = \"500 ms\", rate = \"0 bit/s\" }]",
        0,
        None,
    ),
    ("a fair queue", "rate = \"10 Mbit/s\"\ndiscipline = { kind = \"fq-codel\" }", 4, Some(true)),
];

/// A number further off than this has to come with a doubt.
const OFF: f64 = 0.3;

/// Numbers that are wrong without a word: a queue of one packet drops others' packets, and of WBest's trains none (docs/validation.md).
const KNOWN: [(&str, &str); 1] = [("wbest", "no queue")];

#[test]
fn on_paths_that_their_models_leave_out_tools_refuse_or_warn() {
    let (mut silent, mut answers) = (Vec::new(), 0);
    for method in METHODS.iter() {
        for (name, link, others, fits) in PATHS {
            let traffic = match others {
                0 => String::new(),
                others => format!(
                    "[[traffic]]\nkind = \"poisson\"\nfrom = \"a\"\nto = \"b\"\nrate = \"{others} Mbit/s\"\nsize = \"1500 B\"\n"
                ),
            };
            let text = format!(
                "name = \"tools\"\nduration = \"60 s\"\n[host.a]\n[host.b]\n[[link]]\nfrom = \"a\"\nto = \"b\"\ndelay = \"5 ms\"\n{link}\n{traffic}\
                 [[measure]]\nfrom = \"a\"\nto = \"b\"\nmethod = \"{}\"\ndirection = \"forward\"\nstart = \"300 ms\"\n",
                method.name
            );
            let scenario = Scenario::parse("tools.toml", &text).unwrap();
            let run = simulate(&scenario, 1, &makers(), Hooks::default()).unwrap();
            let outcomes = &run.found.measure.outcomes;
            assert!(!outcomes.is_empty(), "{} on {name}: no end", method.name);
            for outcome in outcomes {
                let Some(estimate) = &outcome.estimate else {
                    let why = outcome.refusal.as_ref().map_or_else(String::new, ToString::to_string);
                    assert!(!why.is_empty(), "{} on {name}", method.name);
                    continue;
                };
                let truth = outcome.truth.and_then(|truth| truth.of(estimate));
                let off = relative_error(estimate.value.rate(), truth).map(f64::abs);
                let doubted = estimate.warnings.iter().any(|warning| warning.code.doubts());
                if matches!(estimate.value, Value::Is(_))
                    && off.is_some_and(|off| off > OFF)
                    && !doubted
                    && !KNOWN.contains(&(method.name, name))
                {
                    silent.push(format!(
                        "{} on {name}: {} {} of {truth:?}",
                        method.name, estimate.quantity, estimate.value
                    ));
                }
                if estimate.quantity == Quantity::Enough {
                    let answer = estimate.value.answer().map(|answer| answer == Answer::Yes);
                    let is_wrong = answer.zip(fits).is_some_and(|(answer, fits)| answer != fits);
                    // A `cannot tell` has its reason.
                    if (is_wrong || answer.is_none()) && !doubted {
                        silent.push(format!("{} on {name}: {} of {fits:?}", method.name, estimate.value));
                    }
                    answers += 1;
                }
            }
        }
    }
    assert!(silent.is_empty() && answers >= 10, "{answers} answers of `enough`: {silent:#?}");
}

/// Hardly a chirp comes whole, and a short span, or a limit that ends the run, leaves none to a mean: then there is no number; from few there is a doubt.
#[test]
fn lossy_chirps_make_no_number() {
    for (loss, options) in [(0.2, "max_span=3 s"), (0.3, "max_span=3 s"), (0.2, ""), (0.3, ""), (0.5, "")] {
        let text = format!(
            "name = \"lossy\"\nduration = \"60 s\"\n[host.a]\n[host.b]\n[[link]]\nfrom = \"a\"\nto = \"b\"\ndelay = \"5 ms\"\nrate = \"100 Mbit/s\"\nqueue = \"60 kB\"\n\
             losses = [{{ model = {{ kind = \"bernoulli\", rate = {loss} }} }}]\n[[measure]]\nfrom = \"a\"\nto = \"b\"\n\
             method = \"pathchirp({options})\"\ndirection = \"forward\"\n"
        );
        // The run may end, and with it the measurement, before the tool does.
        for (seed, duration) in (1..=4).flat_map(|seed| [(seed, "60 s"), (seed, "4 s")]) {
            let text = text.replace("60 s", duration);
            let run =
                simulate(&Scenario::parse("lossy.toml", &text).unwrap(), seed, &makers(), Hooks::default());
            let outcomes = run.unwrap().found.measure.outcomes;
            assert!(!outcomes.is_empty(), "{loss}, {options}, {seed}: no end");
            for outcome in outcomes {
                let refused = outcome.refusal.is_some_and(|refusal| !refusal.to_string().is_empty());
                let doubted = outcome
                    .estimate
                    .is_some_and(|found| found.warnings.iter().any(|warning| warning.code.doubts()));
                assert!(refused || doubted, "{loss}, {options}, {seed}, {duration}");
            }
        }
    }
}

/// A yes says that less than 1 % is lost. 46 packets show no loss of 5 % in one of ten runs.
#[test]
fn enough_says_no_yes_on_links_that_lose() {
    let answers = |loss: f64| {
        let text = format!(
            "name = \"lossy\"\nduration = \"30 s\"\n[host.a]\n[host.b]\n[[link]]\nfrom = \"a\"\nto = \"b\"\ndelay = \"5 ms\"\nrate = \"10 Mbit/s\"\nqueue = \"60 kB\"\n\
             losses = [{{ model = {{ kind = \"bernoulli\", rate = {loss} }} }}]\n[[measure]]\nfrom = \"a\"\nto = \"b\"\n\
             method = \"enough(rate=3 Mbit/s)\"\ndirection = \"forward\"\n"
        );
        let scenario = Scenario::parse("lossy.toml", &text).unwrap();
        let answer = |seed| {
            let run = simulate(&scenario, seed, &makers(), Hooks::default()).unwrap();
            run.found.measure.outcomes[0].estimate.as_ref().and_then(|estimate| estimate.value.answer())
        };
        let all: Vec<_> = (1..=40).map(answer).collect();
        let of = |wanted| all.iter().filter(|answer| **answer == wanted).count();
        [of(Some(Answer::Yes)), of(Some(Answer::No)), of(None)]
    };
    let [yes, no, _] = answers(0.001);
    assert!(yes >= 36 && no == 0, "0.1 %: {yes} yes, {no} no");
    let [yes, no, open] = answers(0.05);
    assert!(yes <= 9 && no > open, "5 %: {yes} yes, {no} no, {open} open");
    let [yes, no, _] = answers(0.1);
    assert!(yes <= 2 && no >= 36, "10 %: {yes} yes, {no} no");
}
