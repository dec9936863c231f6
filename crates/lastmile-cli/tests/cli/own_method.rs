//! A tool added in one file and one line (`examples/yaz.rs`) is everywhere where those of the program are.

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

/// The program with Yaz.
fn lastmile(arguments: &[&str]) -> Ended {
    example("yaz", arguments)
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
kind = "cbr"
from = "a"
to = "b"
rate = "4 Mbit/s"
size = "1500 B"
[[measure]]
from = "a"
to = "b"
method = "yaz"
packets = 40
resolution = "200 kbit/s"
"#;

#[test]
fn a_method_of_ones_own_is_listed_with_its_options() {
    let all = lastmile(&["methods", "--json"]).json();
    let yaz = all.as_array().unwrap().iter().find(|m| m["name"] == "yaz").unwrap();
    let names: Vec<_> =
        yaz["options"].as_array().unwrap().iter().map(|o| o["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["packets", "pause", "packet_size", "max_rate", "resolution"]);
    let listed = lastmile(&["methods", "yaz"]).stdout;
    assert!(listed.contains("The mean time between trains"), "{listed}");
    assert!(listed.contains("max_rate") && listed.contains("20 Mbit/s"), "{listed}");
    let refused = lastmile(&["measure", "h", "--method", "yaz(packets=9)"]);
    refused.is_error(USAGE, &["packets of yaz must be 10 to 1000, not 9"]);
    let refused = lastmile(&["measure", "h", "--method", "yaz", "--trains", "4"]);
    refused.is_error(USAGE, &["yaz has no option --trains"]);
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
        assert_eq!(
            (options["packets"].as_u64(), options["packet_size"].as_str()),
            (Some(40), Some("1500 B"))
        );
        // The train that came as it went is within the resolution and a packet of the truth.
        let (rate, truth) = (row["rate_bps"].as_f64().unwrap(), row["truth_window_bps"].as_f64().unwrap());
        assert!((rate - truth).abs() < 5e5, "{row:#}");
    }
    let out = scratch.path("own.jsonl");
    let sweep = [
        "sweep",
        &file,
        "--set",
        "measure.0.packets=10,20",
        "--set",
        "measure.0.direction=forward",
        "-o",
        &out,
    ];
    assert_eq!(lastmile(&sweep).code, Some(0));
    let swept = fs::read_to_string(&out).unwrap();
    let packets: Vec<_> = swept
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|row| row.get("method").is_some_and(Value::is_string))
        .map(|row| row["asked"].as_str().unwrap().split_once("packets=").unwrap().1[..2].to_owned())
        .collect();
    assert_eq!(packets, ["10", "20"]);
    let file = scratch.file("wrong.toml", PATH.replace("packets = 40", "pockets = 40"));
    lastmile(&["sim", &file])
        .is_error(USAGE, &["wrong.toml:20: measure[0].pockets", "`max_rate`", "option of yaz"]);
}

#[test]
fn a_method_of_ones_own_conforms() {
    let rows = lastmile(&["conformance", "yaz", "--json"]).json();
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
    for (name, shown) in ["yaz", "ledbat"].into_iter().zip(page.split("```rust\n").skip(1)) {
        let (shown, example) =
            (shown.split("```").next().unwrap(), read(&format!("crates/lastmile-cli/examples/{name}.rs")));
        assert!(shown.lines().count() > 30, "{shown}");
        for part in shown.split("// ...\n") {
            assert!(example.contains(part), "not in examples/{name}.rs:\n{part}");
        }
    }
}
