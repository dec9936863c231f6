//! A controller and a classifier, each added in one file and one line (`examples/ledbat.rs`, `examples/veno.rs`), are
//! everywhere where those of the program are.

use super::own_method::example;
use super::{PEER, USAGE, closed_port};
use crate::common::Scratch;

const PATH: &str = r#"name = "own"
duration = "30 s"
[host.a]
[host.b]
[[link]]
from = "a"
to = "b"
rate = "4 Mbit/s"
delay = "20 ms"
queue = "150 kB"
losses = [{ model = { kind = "bernoulli", rate = 0.02 } }]
[[stream]]
from = "a"
to = "b"
control = "CONTROL"
"#;

/// The stream's row of a run with that control.
fn streamed(program: &str, control: &str) -> serde_json::Value {
    let scratch = Scratch::new(&format!("own-{program}"));
    let file = scratch.file("own.toml", PATH.replace("CONTROL", control));
    example(program, &["sim", &file, "--json"]).json()["streams"][0].clone()
}

#[test]
fn names_of_ones_own_are_listed_with_their_options() {
    for (program, command, option) in [("ledbat", "controllers", "target"), ("veno", "classifiers", "beta")] {
        let all = example(program, &[command, "--json"]).json();
        let all = all.as_array().unwrap();
        let own = all.iter().find(|entry| entry["name"] == program).unwrap();
        assert_eq!(own["options"][0]["name"], option);
        let listed = example(program, &[command, program]).stdout;
        assert!(listed.contains(option), "{listed}");
    }
}

#[test]
fn a_stream_over_sockets_takes_them() {
    let stream = |program: &str, control: &str| {
        example(program, &["stream", &closed_port(), "--control", control, "--seconds", "1"])
    };
    stream("ledbat", "ledbat+spike").is_error(PEER, &["does not answer"]);
    stream("veno", "rap+veno").is_error(PEER, &["does not answer"]);
    stream("ledbat", "ledbat(target=1 s)")
        .is_error(USAGE, &["target of ledbat must be 1 ms to 100 ms, not 1 s"]);
    stream("veno", "rap+veno(gamma=1)").is_error(USAGE, &["veno has no option gamma; its options: beta"]);
}

/// The queue holds 300 ms, and LEDBAT aims at 50. Losses cost it less with a classifier in front.
#[test]
fn a_controller_of_ones_own_runs_from_scenarios_with_classifiers_and_wrappers() {
    let rate = |row: &serde_json::Value| row["goodput_bps"].as_f64().unwrap();
    let [alone, judged, probing] =
        ["", "+spike", "+probe+zbs"].map(|more| streamed("ledbat", &format!("ledbat(target=50 ms){more}")));
    for row in [&alone, &judged, &probing] {
        let delay = row["delay_mean_s"].as_f64().unwrap();
        assert!((0.02..0.08).contains(&delay), "{row:#}");
    }
    assert!(rate(&judged) > 1.1 * rate(&alone), "{alone:#} {judged:#}");
    // Hand-offs are counted only where capacity is probed.
    assert_eq!((&probing["hand_offs"], &judged["hand_offs"]), (&0.into(), &serde_json::Value::Null));
    assert_eq!(judged["verdicts"]["classifier"], "spike", "{judged:#}");
}

#[test]
fn a_classifier_of_ones_own_stands_in_front_of_a_controller() {
    let row = streamed("veno", "rap+veno(beta=2)");
    assert_eq!(row["verdicts"]["classifier"], "veno", "{row:#}");
    let wireless = row["verdicts"]["wireless"].as_u64().unwrap();
    assert!(wireless > 10, "{row:#}");
}

#[test]
fn a_controller_and_a_classifier_of_ones_own_conform() {
    for name in ["ledbat", "veno"] {
        let rows = example(name, &["conformance", name, "--json"]).json();
        let rows = rows.as_array().unwrap();
        assert_eq!(rows.len(), 3, "one direction in three worlds: {rows:#?}");
        let real: Vec<_> = rows.iter().filter(|row| row["world"] != "lab").collect();
        assert!(real.iter().all(|row| row["verdict"] == "same"), "{rows:#?}");
        assert!(rows.iter().all(|row| row["verdict"] != "differs"), "{rows:#?}");
    }
}
