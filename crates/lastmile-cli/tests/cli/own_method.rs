//! A tool added in one file and one line (`examples/spruce.rs`) is everywhere where those of the program are.

use std::fs;
use std::process::Command;

use serde_json::Value;

use super::USAGE;
use crate::common::{Ended, Scratch, run};

/// Runs the program of an example; cargo builds examples together with all tests.
pub(super) fn example(name: &str, arguments: &[&str]) -> Ended {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    path.push("examples");
    path.push(name);
    assert!(path.exists(), "cargo build -p lastmile-cli --example {name}");
    run(Command::new(path).args(arguments))
}

/// The program with Spruce.
fn lastmile(arguments: &[&str]) -> Ended {
    example("spruce", arguments)
}

const PATH: &str = r#"name = "own"
duration = "5 s"
[host.a]
[host.b]
[[link]]
from = "a"
to = "b"
rate = "10 Mbit/s"
[[traffic]]
name = "cross"
kind = "poisson"
from = "a"
to = "b"
rate = "4 Mbit/s"
size = "1500 B"
[[measure]]
from = "a"
to = "b"
method = "spruce"
pairs = 30
pair_gap = "30 ms"
"#;

#[test]
fn a_method_of_ones_own_is_listed_with_its_options() {
    let all = lastmile(&["methods", "--json"]).json();
    let spruce = all.as_array().unwrap().iter().find(|m| m["name"] == "spruce").unwrap();
    let names: Vec<_> =
        spruce["options"].as_array().unwrap().iter().map(|o| o["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["pairs", "pair_gap", "packet_size", "known_capacity"]);
    let listed = lastmile(&["methods", "spruce"]).stdout;
    assert!(listed.contains("The mean time between pairs"), "{listed}");
    assert!(listed.contains("known_capacity") && listed.contains("10 Mbit/s"), "{listed}");
    let refused = lastmile(&["measure", "h", "--method", "spruce(pairs=9)"]);
    refused.is_error(USAGE, &["pairs of spruce must be 10 to 10000, not 9"]);
    let refused = lastmile(&["measure", "h", "--method", "spruce", "--trains", "4"]);
    refused.is_error(USAGE, &["spruce has no option --trains"]);
}

#[test]
fn a_method_of_ones_own_runs_from_scenarios_and_sweeps() {
    let scratch = Scratch::new("own-method");
    let file = scratch.file("own.toml", PATH);
    let document = lastmile(&["sim", &file, "--json"]).json();
    let rows = document["results"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "both directions: {rows:#?}");
    for row in rows {
        let options = &document["options"][row["asked"].as_str().unwrap()];
        assert_eq!((options["pairs"].as_u64(), options["packet_size"].as_str()), (Some(30), Some("1500 B")));
        // Thirty pairs of Poisson traffic: the mean is within a fifth of the capacity.
        let (rate, truth) = (row["rate_bps"].as_f64().unwrap(), row["truth_window_bps"].as_f64().unwrap());
        assert!((rate - truth).abs() < 2e6, "{row:#}");
    }
    let out = scratch.path("own.jsonl");
    let sweep = [
        "sweep",
        &file,
        "--set",
        "measure.0.pairs=10,20",
        "--set",
        "measure.0.direction=forward",
        "-o",
        &out,
    ];
    assert_eq!(lastmile(&sweep).code, Some(0));
    let swept = fs::read_to_string(&out).unwrap();
    let pairs: Vec<_> = swept
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|row| row.get("method").is_some_and(Value::is_string))
        .map(|row| row["asked"].as_str().unwrap().split_once("pairs=").unwrap().1[..2].to_owned())
        .collect();
    assert_eq!(pairs, ["10", "20"]);
    let file = scratch.file("wrong.toml", PATH.replace("pairs = 30", "pears = 30"));
    lastmile(&["sim", &file])
        .is_error(USAGE, &["wrong.toml:20: measure[0].pears", "`pair_gap`", "option of spruce"]);
}

#[test]
fn a_method_of_ones_own_conforms() {
    let rows = lastmile(&["conformance", "spruce", "--json"]).json();
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 6, "two directions in three worlds: {rows:#?}");
    let real: Vec<_> = rows.iter().filter(|row| row["world"] != "lab").collect();
    assert!(real.iter().all(|row| row["verdict"] == "same"), "{rows:#?}");
    assert!(rows.iter().all(|row| row["verdict"] != "differs"), "{rows:#?}");
}

#[test]
fn contributing_shows_these_very_examples() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let read = |file: &str| fs::read_to_string(format!("{root}/{file}")).unwrap();
    let page = read("CONTRIBUTING.md");
    for (name, shown) in ["spruce", "ledbat"].into_iter().zip(page.split("```rust\n").skip(1)) {
        let (shown, example) =
            (shown.split("```").next().unwrap(), read(&format!("crates/lastmile-cli/examples/{name}.rs")));
        assert!(shown.lines().count() > 30, "{shown}");
        for part in shown.split("// ...\n") {
            assert!(example.contains(part), "not in examples/{name}.rs:\n{part}");
        }
    }
}
