//! `make rivals` without its browsers: its paths, its rules, and a short call of ours.

use std::path::PathBuf;
use std::process::Command;

use super::*;

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../rivals"))
}

/// Python with what the scripts need, or why there is none.
fn python() -> Option<Command> {
    let known = Command::new("python3").args(["-c", "import tomllib"]).output();
    if known.is_ok_and(|ended| ended.status.success()) {
        return Some(Command::new("python3"));
    }
    eprintln!("lab: skipped: there is no python3 of 3.11 or later here");
    None
}

#[test]
fn paths_of_rivals_are_scenarios() {
    let mut paths = 0;
    for file in fs::read_dir(folder().join("paths")).expect("rivals/paths").flatten() {
        let name = file.path().display().to_string();
        let ended = lastmile(&["sim", &name, "--set", "duration=12 s", "--json"]);
        assert_eq!(ended.code, Some(0), "{name}: {ended:?}");
        paths += 1;
    }
    assert_eq!(paths, 9);
}

#[test]
fn rules_of_rivals_hold() {
    for file in ["test_rivals.py", "../scripts/test_league.py"] {
        let Some(mut python) = python() else { return };
        let ended = python.arg(folder().join(file)).output().expect("python3");
        assert!(ended.status.success(), "{file}: {}", String::from_utf8_lossy(&ended.stderr));
    }
}

/// Its numbers are not judged, which a late lab would spoil.
#[cfg(feature = "video")]
#[test]
#[ignore = "meets the wall clock"]
fn wallclock_a_call_of_ours_gives_the_rivals_numbers() {
    if no_lab() {
        return;
    }
    let Some(mut python) = python() else { return };
    let scratch = common::Scratch::new("rivals");
    let ended = python
        .arg(folder().join("rivals.py"))
        .args([
            "--paths",
            "loss-2",
            "--contenders",
            "lastmile",
            "--seeds",
            "1",
            "--seconds",
            "14",
            "--tries",
            "1",
        ])
        .args(["--program", PROGRAM, "--folder", &scratch.path("out")])
        .output()
        .expect("python3");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let kept = fs::read_to_string(scratch.path("out/kept/14s/loss-2/lastmile/1.json")).expect("a kept call");
    let call: serde_json::Value = serde_json::from_str(&kept).expect("JSON");
    let number = |key: &str| call[key].as_f64().unwrap_or_else(|| panic!("{key} of {call:#}"));
    assert!(number("received_mbps") > 0.5 && number("frame_rate") > 5.0, "{call:#}");
    assert!(number("p95_ms") > 0.0 && (6.0..10.0).contains(&number("began_s")), "{call:#}");
    assert!(
        fs::read_to_string(scratch.path("out/table.md")).expect("a table").contains("| loss-2 | lastmile |")
    );
    eprintln!("lab: scored: a call of ours among rivals: {:?}", call["why"]);
}
