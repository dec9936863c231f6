//! `evaluate --program`: a stranger's controller over a pipe, in Rust, in Python where that is there, and programs that fail.

use std::process::Command;

use serde_json::Value;

use super::USAGE;
use crate::common::{Scratch, lastmile};

const PATH: &str = r#"
name = "own"
duration = "15 s"
[host.a]
[host.b]
[[link]]
from = "a"
to = "b"
rate = "500 kbit/s"
delay = "20 ms"
queue = "15 kB"
[[stream]]
name = "video"
from = "a"
to = "b"
control = "tfrc"
"#;

fn aimd() -> String {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    path.push("examples");
    path.push("aimd");
    assert!(path.exists(), "cargo build -p lastmile-cli --example aimd");
    path.to_str().unwrap().to_owned()
}

/// The row of a controller, and its failure.
fn row<'a>(document: &'a Value, controller: &str) -> (&'a Value, Option<&'a Value>) {
    let scenario = &document["scenarios"][0];
    let own = |list: &'a Value| list.as_array().unwrap().iter().find(|row| row["controller"] == controller);
    (own(&scenario["rows"]).unwrap(), own(&scenario["failed"]))
}

#[test]
#[expect(clippy::print_stderr, reason = "a part that cannot run says so")]
fn a_program_has_a_row_among_controllers() {
    let scratch = Scratch::new("program");
    let file = scratch.file("own.toml", PATH);
    let arguments = ["evaluate", "--scenario", &file, "--controllers", "tfrc", "--runs", "2", "--json"];
    let ended = lastmile(&[&arguments[..], &["--program", &aimd()]].concat());
    let document = ended.json();
    let (own, failed) = row(&document, "aimd");
    assert_eq!(failed, None);
    let used = own["of_possible"].as_f64().unwrap();
    assert!((50.0..100.0).contains(&used), "{own:#}");
    assert_eq!(document["controllers"], serde_json::json!(["tfrc", "aimd"]));
    // The same numbers once more: it has no clock but the simulation's.
    assert_eq!(lastmile(&[&arguments[..], &["--program", &aimd()]].concat()).json(), document);
    // A classifier in front takes random losses out.
    let program = aimd();
    let judged = [&arguments[..], &["--loss", "3%", "--program", &program, "--classifier", "spike"]].concat();
    let used = |document: &Value, name: &str| row(document, name).0["of_possible"].as_f64().unwrap();
    let (with, without) = (lastmile(&judged).json(), lastmile(&judged[..judged.len() - 2]).json());
    assert!(used(&with, "aimd+spike") > 1.2 * used(&without, "aimd"));
    lastmile(&[&judged[..judged.len() - 1], &["tea"]].concat()).is_error(USAGE, &["--classifier", "\"tea\""]);
    // The page's program in Python.
    if !Command::new("python3").arg("--version").output().is_ok_and(|ended| ended.status.success()) {
        eprintln!("skipped: python3 is not installed");
        return;
    }
    let page = include_str!("../../../../docs/program.md");
    let code = page.split("```python\n").nth(1).unwrap().split("```").next().unwrap();
    assert!(code.lines().count() <= 60);
    let python = format!("python3 {}", scratch.file("aimd.py", code));
    let document = lastmile(&[&arguments[..], &["--program", &python]].concat()).json();
    let (rust, python) = (own.clone(), row(&document, "python3 aimd.py").0.clone());
    let number = |row: &Value, name: &str| row[name].as_f64().unwrap();
    for name in ["of_possible", "queueing_p95_ms", "loss"] {
        assert!((number(&rust, name) - number(&python, name)).abs() < 1e-9, "{name}: {rust:#} {python:#}");
    }
}

#[test]
fn a_program_that_fails_has_a_row_with_its_reason() {
    let scratch = Scratch::new("program-fails");
    let file = scratch.file("own.toml", PATH);
    // Dies at the 20th line; seed by seed the same.
    let dies = r#"
i=0
while read line; do
    i=$((i + 1))
    case $i in
        1) echo '{"lastmile": 1, "rate_bps": 300000, "events": ["feedback"]}' ;;
        20) exit 9 ;;
        *) echo '{}' ;;
    esac
done
"#;
    let script = format!("sh {}", scratch.file("dies.sh", dies));
    let arguments = ["evaluate", "--scenario", &file, "--controllers", "tfrc", "--runs", "2"];
    let arguments = [&arguments[..], &["--program", &script]].concat();
    let document = lastmile(&[&arguments[..], &["--json"]].concat()).json();
    let (own, failed) = row(&document, "sh dies.sh");
    let failed = failed.unwrap();
    assert_eq!((&failed["runs"], &failed["seed"], &own["of_possible"]), (&2.into(), &1.into(), &Value::Null));
    let why = failed["why"].as_str().unwrap();
    assert!(why.starts_with("ended (exit status: 9); asked about `feedback` at "), "{why}");
    assert!(row(&document, "tfrc").0["of_possible"].is_number());
    let ended = lastmile(&arguments);
    assert_eq!(ended.code, Some(1), "for those who read no document");
    let text = ended.stdout;
    assert!(
        text.contains("sh dies.sh has no numbers, since it failed in 2 of the runs; seed 1: it ended"),
        "{text}"
    );
}

#[test]
fn a_case_of_the_league_is_listed_and_run_alone() {
    let league = ["evaluate", "league", "--case", "late-comer-cbr", "--json"];
    let listed = lastmile(&[&league[..], &["--list"]].concat()).json();
    assert_eq!((listed[0]["suite"].as_str(), listed.as_array().unwrap().len()), (Some("steps"), 1));
    let changes = listed[0]["changes"].as_str().unwrap();
    assert!(changes.contains("cbr(min=50 kbit/s, max=3 Mbit/s)'"), "{changes}");
    let of_tfrc = ["--runs", "1", "--controllers", "tfrc"];
    let run = lastmile(&[&league[..], &of_tfrc].concat());
    assert_eq!((run.code, run.json()["league"]["rows"].as_array().unwrap().len()), (Some(0), 1));
    // The listed options give the same path by hand.
    let sets = changes.split("--set ").skip(1).flat_map(|set| ["--set", set.trim().trim_matches('\'')]);
    let by_hand: Vec<&str> =
        ["evaluate", "--scenario", "late-comer", "--seed", "101", "--json"].into_iter().chain(sets).collect();
    let by_hand = lastmile(&[&by_hand[..], &of_tfrc].concat()).json();
    assert_eq!(by_hand["scenarios"][0]["rows"], run.json()["scenarios"][0]["rows"]);
    lastmile(&["evaluate", "league", "--case", "late"]).is_error(USAGE, &["--case late", "--list"]);
    lastmile(&["evaluate", "rmcat", "--list"]).is_error(USAGE, &["--list", "of the league"]);
}

#[test]
fn a_league_takes_programs() {
    let league = ["evaluate", "league", "--brief", "--suite", "loss", "--runs", "1", "--controllers", "tfrc"];
    let document =
        lastmile(&[&league[..], &["--program", &aimd(), "--program", "sh -c 'exit 5'", "--json"]].concat())
            .json();
    let rows = document["league"]["rows"].as_array().unwrap();
    let of = |name: &str| rows.iter().filter(|row| row["controller"] == name).collect::<Vec<_>>();
    assert!(!of("aimd").is_empty());
    assert!(of("aimd").iter().all(|row| row["rate"].is_number() && row["failed"] == false), "{rows:#?}");
    assert!(of("sh -c exit 5").iter().all(|row| row["rate"].is_null() && row["failed"] == true), "{rows:#?}");
    assert!(of("tfrc").iter().all(|row| row["rate"].is_number()), "{rows:#?}");
}

#[test]
fn commands_that_cannot_be_are_refused() {
    let refused = |command: &str, said: &str| {
        lastmile(&["evaluate", "rmcat", "--program", command]).is_error(USAGE, &["--program", said]);
    };
    refused("no-such-program --fast", "No such file or directory");
    refused("sh 'c", "a quote has no end");
    refused("", "an empty command");
    lastmile(&["evaluate", "rmcat", "--program", "true", "--program", "true"])
        .is_error(USAGE, &["two contenders are called true"]);
}
