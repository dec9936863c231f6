//! `lastmile lab` as a program: interrupted at any point it leaves nothing behind, and our own programs measure the
//! simulator's numbers in it.
#![allow(clippy::print_stderr, reason = "what was scored and what refused is this test's result")]

#[path = "../common/mod.rs"]
mod common;
mod cost;
mod demo;
mod enough;
mod iperf3;
#[path = "../../../lastmile-net/tests/lab/patience.rs"]
mod patience;
mod programs;
mod ready;
mod rivals;
mod streams;
mod trains;
mod twins;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use common::{Ended, PROGRAM, lastmile};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use patience::{Late, patiently};

/// Prints why there can be no lab here, if the doctor says so. A lab that fails on a machine that can have one is a
/// defect.
fn no_lab() -> bool {
    // The harness has begun a line.
    eprintln!();
    let examined = lastmile(&["doctor", "--json"]).json();
    let findings = examined["findings"].as_array().expect("findings");
    let needed = findings.iter().filter(|f| f["name"] == "namespaces" || f["name"] == "tun");
    let missing: Vec<_> = needed.filter(|f| f["verdict"] == "missing").map(|f| f["found"].clone()).collect();
    if missing.is_empty() {
        return false;
    }
    lastmile(&["lab", "path", "--in", "sender", "--", "true"]).is_error(4, &["the lab needs"]);
    eprintln!("lab: skipped: {missing:?}");
    true
}

/// All processes whose command line contains `mark`.
fn marked(mark: &str) -> Vec<i32> {
    let numbers = fs::read_dir("/proc").expect("/proc").flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let has = |pid: &i32| {
        fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|c| String::from_utf8_lossy(&c).contains(mark))
    };
    numbers.filter(has).collect()
}

/// Network namespaces of the threads of a process, as links.
fn namespaces(pid: i32) -> BTreeSet<String> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let link = |thread: fs::DirEntry| fs::read_link(thread.path().join("ns/net")).ok();
    threads.filter_map(|t| Some(link(t)?.to_string_lossy().into_owned())).collect()
}

/// True if `done` within that time.
fn within(time: Duration, mut done: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + time;
    while !done() {
        if Instant::now() > until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

/// Sends a signal to `lastmile ARGUMENTS` after `delay`; all processes have `mark` in their arguments. True if there were hosts
/// to leave behind; an error if something was left, or the program ended otherwise than it should.
fn interrupt(arguments: &[&str], mark: &str, signal: Signal, delay: Duration) -> Result<bool, String> {
    let own = namespaces(std::process::id() as i32);
    let mut lab = Command::new(PROGRAM)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    std::thread::sleep(delay);
    let made: BTreeSet<String> =
        marked(mark).into_iter().flat_map(namespaces).filter(|ns| !own.contains(ns)).collect();
    let before = lab.try_wait().expect("status");
    if before.is_none() {
        kill(Pid::from_raw(lab.id() as i32), signal).expect("our own unreaped child");
    }
    let mut after: Option<ExitStatus> = None;
    let ended = within(Duration::from_secs(2), || {
        after = lab.try_wait().expect("status");
        after.is_some()
    });
    if !ended {
        let _ = lab.kill();
        let _ = lab.wait();
        return Err("did not end within 2 s".into());
    }
    let status = after.unwrap_or_default();
    let right = match signal {
        _ if before.is_some() => matches!(status.code(), Some(0 | 1)),
        Signal::SIGKILL => status.signal() == Some(Signal::SIGKILL as i32),
        // Too early for its handlers, and for anything to be left behind.
        _ if made.is_empty() && status.signal() == Some(signal as i32) => true,
        // Just finished as the signal came.
        _ => status.code() == Some(130) || (status.code() == Some(0) && delay > Duration::from_secs(1)),
    };
    if !right {
        return Err(format!("ended with {status}"));
    }
    if !within(Duration::from_secs(1), || marked(mark).is_empty()) {
        return Err(format!("left processes {:?}", marked(mark)));
    }
    // Numbers of namespaces are used again, so another lab on this machine may have one of these for a while.
    let held = || {
        let all = fs::read_dir("/proc").expect("/proc").flatten();
        let all = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        all.flat_map(|pid: i32| namespaces(pid)).any(|ns| made.contains(&ns))
    };
    if !within(Duration::from_secs(5), || !held()) {
        return Err(format!("left one of the namespaces {made:?}"));
    }
    if fs::exists("/sys/class/net/lab0").unwrap_or(false) {
        return Err("left a device".into());
    }
    Ok(!made.is_empty())
}

#[test]
#[ignore = "meets the wall clock: runs alone"]
fn wallclock_an_interrupted_lab_leaves_nothing() {
    if no_lab() {
        return;
    }
    // From before there is anything to the measurement's end, at times of no rhythm.
    let seed = std::time::UNIX_EPOCH.elapsed().expect("time").subsec_nanos();
    let (mut random, mut wrong, mut labs) = (u64::from(seed) << 16 | 1, Vec::new(), 0_u64);
    const TRIALS: u64 = 24;
    for trial in 0..TRIALS {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let jitter = (random >> 33) % (1_490_000 / (TRIALS / 4));
        let delay = Duration::from_micros(10_000 + (trial / 4) * 1_490_000 / (TRIALS / 4) + jitter);
        let mark = format!("9{:07}{trial:02}", std::process::id());
        let family = format!("setsid sleep {mark} & trap '' TERM INT; sleep {mark}; sleep {mark}");
        let kinds: [&[&str]; 4] = [
            &["demo", "--seed", &mark],
            &["lab", "path", "--seed", &mark],
            &["lab", "path", "--in", "receiver", "--", "sleep", &mark],
            &[
                "lab", "path", "--in", "receiver", "--", "sh", "-c", &family, "--in", "sender", "--",
                "sleep", &mark,
            ],
        ];
        let kind = kinds[(trial % 4) as usize];
        let signal = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGKILL][((trial + trial / 4) % 3) as usize];
        match interrupt(kind, &mark, signal, delay) {
            Ok(had_hosts) => labs += u64::from(had_hosts),
            Err(why) => wrong.push(format!("{} after {delay:?}: {kind:?}: {why}", signal.as_str())),
        }
    }
    eprintln!("{TRIALS} labs interrupted, {labs} of them with hosts");
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(labs >= TRIALS / 2, "only {labs} of {TRIALS} had anything to leave behind");
}

/// The rate of a quantity in the JSON of a measurement, among other output.
fn measured(text: &str, quantity: &str) -> Option<f64> {
    let lines = text.lines().skip_while(|line| *line != "{");
    let lines: Vec<&str> = lines.take_while(|line| *line != "}").chain(["}"]).collect();
    let json: serde_json::Value = serde_json::from_str(&lines.join("\n")).ok()?;
    let rows = json["results"].as_array()?;
    rows.iter().find(|row| row["quantity"] == quantity)?["rate_bps"].as_f64()
}

#[test]
#[ignore = "meets the wall clock: runs alone"]
fn wallclock_our_own_programs_measure_in_the_lab() {
    if no_lab() {
        return;
    }
    let serve = ["lab", "path", "--in", "receiver", "--", PROGRAM, "serve", "--bind", "{receiver}"];
    let measure =
        ["--in", "sender", "--", PROGRAM, "measure", "{receiver}", "--direction", "forward", "--json"];
    let bps = patiently("our own programs", || {
        let ended = lastmile(&[&serve[..], &measure[..]].concat());
        match (ended.code, measured(&ended.stdout, "capacity")) {
            (Some(0), Some(bps)) => Ok(bps),
            _ => Err(lateness(&ended).unwrap_or_else(|| panic!("{ended:?}"))),
        }
    });
    if let Some(bps) = bps {
        assert!((bps / 10e6 - 1.0).abs() < 0.03, "{bps} bit/s");
        eprintln!("lab: scored: our own programs: {bps} bit/s");
    }
}

/// A link of 10 Mbit/s whose queue marks, on its average alone.
const MARKING: &str = r#"
name = "marking"
duration = "20 s"
host = { a = {}, b = {} }
[[link]]
from = "a"
to = "b"
rate = "10 Mbit/s"
delay = "5 ms"
discipline = { kind = "tc-red", limit = "600 kB", min = "12 kB", max = "32 kB", probability = 0.02, ecn = true }
"#;

/// ECNProbe has nothing but marks to go by: both ends set and read them, and the peer reports them.
#[test]
#[ignore = "meets the wall clock"]
fn wallclock_marks_are_set_and_read_over_both_ip_versions() {
    if no_lab() {
        return;
    }
    let scratch = common::Scratch::new("marks");
    let file = scratch.file("marking.toml", MARKING);
    for address in ["10.77.0.2", "fd77::2"] {
        let bps = patiently("marks", || {
            let serve = ["lab", &file, "--in", "b", "--", PROGRAM, "serve", "--in", "a", "--", PROGRAM];
            let measure = ["measure", address, "--method", "ecnprobe", "--direction", "forward", "--json"];
            let ended = lastmile(&[&serve[..], &measure[..]].concat());
            match lateness(&ended) {
                Some(late) => Err(late),
                None => {
                    Ok(measured(&ended.stdout, "available-bandwidth").unwrap_or_else(|| panic!("{ended:?}")))
                }
            }
        });
        let Some(bps) = bps else { continue };
        // Without a mark there is no number. How near it comes depends on the host's quiet: docs/validation.md.
        assert!((5e6..11e6).contains(&bps), "{address}: {bps}");
        eprintln!("lab: scored: marks to {address}: {bps} bit/s");
    }
}

/// A link of 10 Mbit/s with a TCP connection, and a budget that most methods fit into.
const BESIDE_TCP: &str = r#"
name = "beside TCP"
duration = "30 s"
warm_up = "1 s"
host = { sender = {}, receiver = {} }
link = [{ from = "sender", to = "receiver", rate = "10 Mbit/s", delay = "10 ms", queue = "60 kB" }]
traffic = [{ name = "tcp", kind = "ftp", from = "sender", to = "receiver", tcp = { max_window = 7 } }]
measure = [{ from = "sender", to = "receiver", method = "all(max_time=14 s)", direction = "forward" }]
"#;

/// The twin is tests/cli/all.rs.
#[test]
#[ignore = "meets the wall clock"]
fn wallclock_all_methods_measure_beside_tcp_in_the_lab() {
    if no_lab() {
        return;
    }
    let scratch = common::Scratch::new("lab-all");
    let file = scratch.file("beside-tcp.toml", BESIDE_TCP);
    let found = patiently("all beside TCP", || {
        let document = lastmile(&["lab", &file, "--json"]).json();
        match document["lateness"]["refused"]["text"].as_str() {
            Some(why) => Err(Late { hypervisors: why.contains("hypervisor"), why: why.to_owned() }),
            None => Ok(document),
        }
    });
    let Some(found) = found else { return };
    let rows = found["results"].as_array().expect("results");
    let number = |row: &serde_json::Value, path: &str| row.pointer(path).and_then(serde_json::Value::as_f64);
    let wbest = rows.iter().find(|row| row["quantity"] == "available-bandwidth").expect("wbest's number");
    // Alone in the engine, the connection has what it has in the simulator: 3.39 Mbit/s.
    let twin = number(wbest, "/load/tcp_after/twin_bps").expect("the twin's");
    assert!((3.3e6..3.5e6).contains(&twin), "{wbest:#}");
    let after = number(wbest, "/load/tcp_after/goodput_bps").expect("the run's");
    assert!((after / twin - 1.0).abs() < 0.1, "{wbest:#}");
    assert!(
        rows.iter().all(|row| number(row, "/seconds").is_some_and(|seconds| seconds < 14.1)),
        "{rows:#?}"
    );
    let idle = rows.iter().filter(|row| row["load"]["bytes"] == 0).count();
    assert!(idle > 0 && rows.iter().any(|row| row["code"] == "time-limit"), "{rows:#?}");
    eprintln!("lab: scored: all beside TCP: {} rows, {idle} not run", rows.len());
}

/// Why a lab with programs in it must not be believed, if so.
fn lateness(ended: &Ended) -> Option<Late> {
    let refused = ended.stdout.lines().find_map(|line| line.strip_prefix("refused: "));
    let missed = ended.stdout.lines().find(|line| line.contains("missed their schedule"));
    let why = refused.or(missed)?.to_owned();
    Some(Late { hypervisors: why.contains("hypervisor"), why })
}

/// The twin of the test above.
#[test]
fn the_same_path_in_the_simulator() {
    let bps = measured(&lastmile(&["sim", "path", "--json"]).stdout, "capacity").expect("a capacity");
    assert!((bps / 10e6 - 1.0).abs() < 0.005, "{bps} bit/s");
}
