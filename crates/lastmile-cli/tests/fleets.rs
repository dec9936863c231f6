//! Commands whose runs many machines share: their merged shards give one machine's document, byte for byte.

mod common;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{NARROW, PROGRAM, Scratch, lastmile, read, run};

const USAGE: i32 = 2;

const SWEEP: &[&str] =
    &["sweep", "path", "--set", "link.0.rate=5 Mbit/s,6 Mbit/s", "--set", "duration=2 s", "--seeds", "3"];

/// The command in that many shards, on the second one on two cores; gives their files.
fn shards(scratch: &Scratch, command: &[&str], of: usize) -> Vec<String> {
    let shard = |number: usize| {
        let (which, file) = (format!("{number}/{of}"), scratch.path(&format!("{number}-of-{of}.shard")));
        // An earlier study's is refused.
        let _ = std::fs::remove_file(&file);
        let threads = if number == 2 { "2" } else { "1" };
        let own = ["--shard", &which, "-o", &file, "--threads", threads];
        let ended = lastmile(&[command, &own].concat());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(ended.stdout, format!("shard {which} is in {file}\n"));
        file
    };
    (1..=of).map(shard).collect()
}

fn merged(files: &[String], own: &[&str]) -> common::Ended {
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    lastmile(&[&["merge"], &files[..], own].concat())
}

#[test]
fn merged_equals_unsharded() {
    let scratch = Scratch::new("merged");
    let evaluate =
        ["evaluate", "--scenario", "rfc8867-5.1", "--set", "duration=8 s", "--controllers", "tfrc,vtp,tcp"];
    let reproduce = ["reproduce", "vtp", "--item", "figure-1,figure-3", "--runs", "2"];
    let paths =
        ["paths", "--runs", "5", "--method", "wbest,capprobe", "--without", "loss,fq-codel", "--list"];
    let commands: [&[&str]; 6] = [
        SWEEP,
        &[SWEEP, &["--format", "csv"]].concat(),
        &[&evaluate[..], &["--runs", "2", "--json"]].concat(),
        &reproduce,
        &[&reproduce[..], &["--json"]].concat(),
        &paths,
    ];
    for command in commands {
        let whole = lastmile(command);
        assert_eq!(whole.code, Some(0), "{whole:?}");
        assert!(whole.stdout.lines().count() > 5, "{whole:?}");
        let mut files = shards(&scratch, command, 3);
        files.reverse();
        let printed = merged(&files, &[]);
        assert_eq!(
            (printed.code, &printed.stdout),
            (Some(0), &whole.stdout),
            "{command:?}: {}",
            printed.stderr
        );
        let output = scratch.path("out");
        assert_eq!(merged(&files, &["-o", &output]).code, Some(0));
        assert_eq!(std::fs::read_to_string(&output).unwrap(), whole.stdout, "{command:?}");
        std::fs::remove_file(&output).unwrap();
    }
}

#[test]
fn a_page_is_written_by_the_merge() {
    let scratch = Scratch::new("merged-page");
    let (page, other) = (scratch.path("page.html"), scratch.path("whole.html"));
    let command = |page| {
        ["reproduce", "vtp", "--item", "figure-1,figure-3", "--runs", "1", "--report", page]
            .map(str::to_owned)
    };
    let of = |page| command(page).iter().map(String::as_str).collect::<Vec<_>>().join("\n");
    assert_eq!(lastmile(&of(&other).split('\n').collect::<Vec<_>>()).code, Some(0));
    let files = shards(&scratch, &of(&page).split('\n').collect::<Vec<_>>(), 2);
    assert!(!std::path::Path::new(&page).exists(), "a shard has no page");
    assert_eq!(merged(&files, &[]).code, Some(0));
    assert_eq!(std::fs::read(&page).unwrap(), std::fs::read(&other).unwrap());
}

#[test]
fn files_that_are_not_the_shards_of_one_command_are_refused() {
    let scratch = Scratch::new("foreign");
    let own = shards(&scratch, SWEEP, 2);
    let refused = |files: &[&String], parts: &[&str]| {
        let files: Vec<String> = files.iter().map(|file| (*file).clone()).collect();
        merged(&files, &[]).is_error(2, parts);
    };
    refused(&[&own[0]], &[&own[0], "shard 2/2 is missing"]);
    refused(&[&own[0], &own[1], &own[1]], &[&own[1], "as is"]);
    let diary = scratch.file("diary", "dear diary\n");
    refused(&[&own[0], &diary], &[&diary, "it is no shard"]);
    lastmile(&["sweep", "path", "--shard", "1/2"]).is_error(2, &["--output"]);
    lastmile(&["sweep", "path", "--shard", "3/2", "-o", &diary]).is_error(2, &["3/2", "is not I/N"]);
    lastmile(&["sweep", "path", "--shard", "1/2", "-o", &diary]).is_error(2, &[&diary, "something else"]);
    assert_eq!(std::fs::read_to_string(&diary).unwrap(), "dear diary\n");

    let text = std::fs::read_to_string(&own[1]).unwrap();
    let (before, rest) = text.split_once("\"build\":\"").unwrap();
    let (build, after) = rest.split_once('"').unwrap();
    let built = scratch.file("built", format!("{before}\"build\":\"0123\"{after}"));
    refused(&[&own[0], &built], &[&built, "build 0123, and this is", &format!("build {build}")]);

    for (line, option) in [
        ("reproduce --shard 1/2 -o x", "PAPER"),
        ("reproduce -o x", "PAPER"),
        ("reproduce vtp --list --shard 1/2 -o x", "--list"),
        ("paths --show 3 --shard 1/2 -o x", "--show"),
    ] {
        lastmile(&line.split(' ').collect::<Vec<_>>()).is_error(2, &[option]);
    }

    let other = ["sweep", "path", "--shard", "1/2", "-o", &own[0]];
    lastmile(&other).is_error(2, &[&own[0], "a shard of another study"]);

    // A scenario file that has changed.
    let scenario = |rate: u32| {
        let text = lastmile(&["scenarios", "path"]).stdout.replace("10 Mbit/s", &format!("{rate} Mbit/s"));
        scratch.file("own.toml", text)
    };
    let file = scenario(10);
    let changed = shards(&scratch, &["sweep", &file, "--set", "duration=2 s"], 2);
    scenario(11);
    merged(&changed, &[]).is_error(2, &[&changed[0], "the scenario files have changed"]);
    let lab = ["reproduce", "vtp", "--world", "lab", "--item", "figure-1,figure-3", "--shard", "1/2", "-o"];
    lastmile(&[&lab[..], &[&scratch.path("lab")]].concat())
        .is_error(2, &["only those of the simulator have shards"]);
}

#[test]
#[expect(clippy::print_stderr, reason = "says why it is skipped")]
fn dask_runs_shards_on_two_workers() {
    let python = std::env::var("LASTMILE_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has = Command::new(&python).args(["-c", "import dask.distributed"]).output();
    if !has.is_ok_and(|has| has.status.success()) {
        return eprintln!("skipped: {python} has no dask.distributed");
    }
    let scratch = Scratch::new("dask");
    let sweep = ["sweep", "path", "--set", "duration=2 s", "--seeds", "200"];
    let (recipe, output) =
        (concat!(env!("CARGO_MANIFEST_DIR"), "/../../recipes/dask_shards.py"), scratch.path("out"));
    let mut dask = Command::new(&python);
    dask.args([recipe, "--workers", "2", "--shards", "8", "-o", &output, "--", common::PROGRAM]).args(sweep);
    let ended = run(dask.current_dir(&scratch.0));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let whole = lastmile(&sweep);
    assert_eq!(std::fs::read_to_string(&output).unwrap(), whole.stdout);
    assert_eq!(std::fs::read_dir(&scratch.0).unwrap().count(), 1, "shards are gone once they are merged");
}

#[test]
fn a_killed_sweep_goes_on_and_ends_as_if_nothing_had_been() {
    let scratch = Scratch::new("killed");
    let scenario = scratch.file("narrow.toml", NARROW);
    let set = ["--set", "link.0.queue=5 packets,20 packets", "--set", "traffic.tcp.tcp.recovery=reno,sack"];
    let sweep = |output: &str, more: &[&str]| {
        let output = scratch.path(output);
        let all = [&["sweep", &scenario, "--seeds", "15", "-o", &output], &set[..], more].concat();
        lastmile(&all)
    };
    for jobs in ["1", "2"] {
        let ended = sweep(&format!("jobs-{jobs}"), &["--jobs", jobs]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
    let whole = read(&scratch.path("jobs-1"));
    assert_eq!(whole, read(&scratch.path("jobs-2")));
    assert_eq!(whole.lines().count(), 4 * 15 * 4, "two flows and two directions of each run");

    let (output, part) = (scratch.path("killed"), scratch.path("killed.part"));
    let mut child = Command::new(PROGRAM)
        .args(["sweep", &scenario, "--seeds", "15", "--jobs", "1", "-o", &output])
        .args(set)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = || std::fs::read_to_string(&part).map_or(0, |text| text.lines().count());
    let began = Instant::now();
    while lines() < 4 && child.try_wait().unwrap().is_none() && began.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap(); // SIGKILL
    child.wait().unwrap();
    assert!(!std::path::Path::new(&output).exists(), "the test was too slow to kill it");
    let mut torn = std::fs::read(&part).unwrap();
    torn.extend_from_slice(b"{\"run\":5,\"found\":[{\"see");
    std::fs::write(&part, torn).unwrap();
    lastmile(&["report", &part]).is_error(USAGE, &["killed.part", "unfinished sweep"]);
    // Another sweep does not go on from there.
    lastmile(&["sweep", &scenario, "--seeds", "15", "-o", &output])
        .is_error(USAGE, &["killed.part", "another study"]);
    let ended = sweep("killed", &["--jobs", "2"]);
    assert!(ended.stdout.contains("were finished before"), "{ended:?}");
    assert_eq!(read(&output), whole);
    assert!(!std::path::Path::new(&part).exists());

    // The same sweep may be made again; another sweep's file stays.
    assert_eq!(sweep("killed", &[]).code, Some(0));
    assert_eq!(read(&output), whole);
    let other = ["sweep", &scenario, "--set", "link.0.queue=5 packets", "-o", &output];
    lastmile(&other).is_error(USAGE, &["killed", "something else than results of this sweep"]);
    let diary = scratch.file("diary.txt", "Dear diary\n");
    lastmile(&["sweep", &scenario, "-o", &diary]).is_error(USAGE, &["diary.txt", "name another output"]);
    assert_eq!(read(&diary), "Dear diary\n");
}
