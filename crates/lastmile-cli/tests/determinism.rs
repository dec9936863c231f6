//! The same scenario and seed give the same bytes: run again, and in sweeps on any number of threads.

mod common;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{PROGRAM, Scratch, lastmile};
use lastmile::time::Time;
use lastmile_sim::scenario::{BUILTIN, builtin, builtin_text};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A ready scenario that ends a second after its warm-up and its last start.
fn shortened(name: &str) -> String {
    let (text, scenario) = (builtin_text(name).unwrap(), builtin(name).unwrap());
    let starts =
        scenario.traffic.iter().map(|flow| flow.start).chain(scenario.roles.measure.iter().map(|m| m.start));
    let last = starts.fold(Time::ZERO + scenario.warm_up, Time::max);
    let seconds = ((last - Time::ZERO).as_secs_f64() + 1.0).min(scenario.duration.as_secs_f64());
    let line = |line: &str| match line.starts_with("duration = ") {
        true => format!("duration = \"{seconds} s\""),
        false => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_ready_scenario_gives_the_same_bytes_again_and_on_any_number_of_threads() {
    let scratch = Scratch::new("determinism");
    for name in BUILTIN {
        let file = &scratch.file(&format!("{name}.toml"), shortened(name));
        let printed = |arguments: &[&str]| {
            let ended = lastmile(arguments);
            assert!(ended.stdout.len() > 100, "{name}: {ended:?}");
            ended.stdout
        };
        let first = printed(&["sim", file, "--json", "--seed", "7"]);
        assert_eq!(first, printed(&["sim", file, "--json", "--seed", "7"]), "{name}");
        assert_ne!(
            first,
            printed(&["sim", file, "--json", "--seed", "8"]),
            "{name}: the seed changes nothing"
        );
        let alone = printed(&["sweep", file, "--seeds", "3", "--threads", "1"]);
        for threads in ["2", "4"] {
            assert_eq!(
                alone,
                printed(&["sweep", file, "--seeds", "3", "--threads", threads]),
                "{name}, {threads} threads"
            );
        }
    }
}

/// A sweep's run may take minutes: an interruption does not wait for it, and keeps the runs that were finished.
#[test]
fn a_long_run_of_a_sweep_ends_when_it_is_interrupted() {
    let scratch = Scratch::new("long");
    let scenario = scratch.file(
        "long.toml",
        "name = \"long\"\nduration = \"1000 s\"\n[host.a]\n[host.b]\n[[link]]\nfrom = \"a\"\nto = \"b\"\n[[traffic]]\nname = \"t\"\n\
         kind = \"cbr\"\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Gbit/s\"\nsize = \"100 B\"\n",
    );
    let output = scratch.path("long.jsonl");
    let long = "traffic.t.rate=1 kbit/s,1 Gbit/s";
    let sweep = Command::new(PROGRAM)
        .args(["sweep", &scenario, "--set", long, "--threads", "1", "--output", &output])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    std::thread::sleep(Duration::from_millis(500));
    kill(Pid::from_raw(sweep.id() as i32), Signal::SIGINT).expect("our own unreaped child");
    let interrupted = Instant::now();
    let ended = sweep.wait_with_output().expect("its end");
    assert!(interrupted.elapsed() < Duration::from_secs(5), "{:?}", interrupted.elapsed());
    assert_eq!(ended.status.code(), Some(130), "{ended:?}");
    assert!(String::from_utf8_lossy(&ended.stderr).contains("interrupted"), "{ended:?}");
    let part = std::fs::read_to_string(format!("{output}.part")).expect("the journal");
    assert_eq!(part.lines().count(), 2, "{part}");
}
