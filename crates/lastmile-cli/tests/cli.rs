//! Bad input and faults of the network, as a user meets them: one line that says who is to blame and what to do, the
//! documented exit code, nothing on standard output. And the JSON, as `docs/json.md` has it.

mod common;

use std::net::UdpSocket;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{PROGRAM, Scratch, Server, lastmile, run};
use serde_json::Value;

const USAGE: i32 = 2;
const PEER: i32 = 3;
const MACHINE: i32 = 4;

/// A port of the loopback on which nothing listens.
fn closed_port() -> String {
    UdpSocket::bind("127.0.0.1:0").and_then(|s| s.local_addr()).expect("a port").to_string()
}

#[test]
fn hosts_that_cannot_be_measured() {
    lastmile(&["measure", "no-such-host.invalid"]).is_error(PEER, &["unknown host", "no-such-host.invalid"]);
    lastmile(&["measure", "127.0.0.1:x"]).is_error(USAGE, &["\"x\"", "is not a port"]);
    let port = closed_port();
    let ended = lastmile(&["measure", &port]);
    ended.is_error(PEER, &[&port, "nothing listens on that port", "lastmile serve"]);
    assert!(ended.after < Duration::from_secs(2), "{ended:?}");
}

#[test]
fn a_host_that_never_answers_is_given_up() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let ended = lastmile(&["measure", &address]);
    ended.is_error(PEER, &[&address, "does not answer"]);
    assert!(ended.after < Duration::from_secs(7), "{ended:?}");
}

/// Reflects as RFC 8762, section 4.3.1 has it, and knows nothing of TLVs: 44 octets, until dropped.
struct PlainReflector {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
    address: String,
}

impl PlainReflector {
    fn start() -> PlainReflector {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let address = socket.local_addr().unwrap().to_string();
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut packet = [0; 2048];
            while !flag.load(Ordering::Relaxed) {
                let Ok((n, peer)) = socket.recv_from(&mut packet) else { continue };
                if n < 44 {
                    continue;
                }
                // NTP format (RFC 8762, section 4.2.1): seconds since 1900 and their fraction.
                let unix = std::time::UNIX_EPOCH.elapsed().unwrap();
                let fraction = (u64::from(unix.subsec_nanos()) << 32) / 1_000_000_000;
                let now = (unix.as_secs() + 2_208_988_800) << 32 | fraction;
                let mut reply = [0; 44];
                // Sequence number, timestamp, error estimate, receive timestamp.
                reply[..4].copy_from_slice(&packet[..4]);
                reply[4..12].copy_from_slice(&now.to_be_bytes());
                reply[12..14].copy_from_slice(&[0x80, 1]);
                reply[16..24].copy_from_slice(&now.to_be_bytes());
                // The sender's sequence number, timestamp, error estimate and TTL.
                reply[24..38].copy_from_slice(&packet[..14]);
                reply[40] = 255;
                let _ = socket.send_to(&reply, peer);
            }
        });
        PlainReflector { stop, thread: Some(thread), address }
    }
}

impl Drop for PlainReflector {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[test]
fn a_plain_reflector_serves_no_one_way_method() {
    let plain = PlainReflector::start();
    let ended = lastmile(&["measure", &plain.address, "--direction", "forward"]);
    ended.is_error(PEER, &["STAMP", "round-trip"]);
    assert!(ended.after < Duration::from_secs(7), "{ended:?}");
}

#[test]
fn keys() {
    let scratch = Scratch::new("keys");
    let right = scratch.file("right", "0123456789abcdef\n");
    let wrong = scratch.file("wrong", "fedcba9876543210\n");
    let short = scratch.file("short", "0123456\n");
    let server = Server::start(&["--key-file", &right]);
    let with =
        |key: &str| lastmile(&["measure", &server.address, "--direction", "forward", "--key-file", key]);
    with(&wrong).is_error(PEER, &[&server.address, "key"]);
    lastmile(&["measure", &server.address]).is_error(PEER, &[&server.address, "key"]);
    with(&short).is_error(USAGE, &["short", "16"]);
    with(&scratch.path("none")).is_error(USAGE, &["cannot read the key file", "none"]);
    // And with the right one there is something to refuse the others for. Loopback may be too fast to have a number.
    // Streams were sent and reported; whether a loopback this busy has a number is another matter.
    let ended = with(&right);
    assert!(matches!(ended.code, Some(0 | 1)) && !ended.stdout.contains("; 0 streams"), "{ended:?}");
    let open = Server::start(&[]);
    let ended = lastmile(&["measure", &open.address, "--key-file", &right]);
    ended.is_error(PEER, &[&open.address, "key"]);
}

#[test]
fn limits_are_kept_and_named() {
    let server = Server::start(&[]);
    let ended =
        lastmile(&["measure", &server.address, "--direction", "forward", "--max-bytes", "1000", "--json"]);
    let json = ended.json();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let row = &json["results"][0];
    assert!(row["refused"].as_str().is_some_and(|why| why.contains("1000 B")), "{json:#}");
    let spent = row["bytes"].as_u64().unwrap() + row["bytes_received"].as_u64().unwrap();
    assert!(spent <= 1000, "{spent} bytes were spent: {json:#}");

    let ended = lastmile(&["measure", &server.address, "--max-seconds", "0.01"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stdout.contains("10 ms"), "{ended:?}");
    assert!(ended.after < Duration::from_millis(500), "{ended:?}");
    for bad in ["0", "-1", "nan", "1e300"] {
        let argument = format!("--max-seconds={bad}");
        lastmile(&["measure", &server.address, &argument]).is_error(USAGE, &["--max-seconds"]);
    }
}

#[test]
fn methods_and_their_parameters() {
    for command in
        [["measure", "127.0.0.1", "--method", "nonsense"], ["accuracy", "--runs=1", "--method", "nonsense"]]
    {
        lastmile(&command).is_error(USAGE, &["nonsense", "wbest"]);
    }
    lastmile(&["measure", "127.0.0.1", "--trains", "0"]).is_error(USAGE, &["train"]);
    lastmile(&["measure", "127.0.0.1", "--classifier", "nonsense"]).is_error(USAGE, &["nonsense"]);
    let scratch = Scratch::new("methods");
    let text = lastmile_sim::scenario::builtin_text("path").unwrap().replace("\"wbest\"", "\"nonsense\"");
    let file = scratch.file("path.toml", text);
    lastmile(&["sim", &file]).is_error(USAGE, &["path.toml:", "method", "nonsense", "wbest"]);
}

#[test]
fn what_would_be_ignored_is_refused() {
    for (command, parts) in [
        ("measure 127.0.0.1 --method capprobe --trains 4", &["--trains", "capprobe"][..]),
        ("measure 127.0.0.1 --capacity 10Mbit/s --pairs 30", &["--pairs", "--capacity"]),
        ("measure 127.0.0.1 --packet-size 9000", &["--packet-size 9000", "1500", "--direction forward"]),
        ("measure 127.0.0.1 --direction reverse --packet-size 1501", &["--packet-size 1501", "1500"]),
        ("accuracy --runs 0", &["--runs 0", "at least 1"]),
        ("accuracy --runs 1 --realtime", &["--realtime", "--world lab"]),
        ("accuracy --runs 1 --method wbest,capprobe --trains 4", &["--trains", "capprobe"]),
        ("accuracy --runs 1 --trains 0", &["trains", "0"]),
        ("lab path --realtime --in sender -- true", &["--realtime", "leave it out"]),
        ("lab path --record x --in sender -- true", &["--record", "leave it out"]),
        ("replay none.jsonl --method wbest", &["--streams", "see lastmile replay --help"]),
        ("measure", &["<HOST>", "see lastmile measure --help"]),
        ("measure 127.0.0.1 --dscp 64", &["--dscp", "64", "0..64"]),
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        lastmile(&words).is_error(USAGE, parts);
    }
    let help = lastmile(&["measure", "--help"]);
    assert!(help.code == Some(0) && help.stdout.contains("--max-seconds") && help.stderr.is_empty());
    let bare = lastmile(&[]);
    assert!(bare.code == Some(2) && bare.stderr.contains("Usage:") && bare.stderr.contains("measure"));
}

#[test]
fn scenarios() {
    let scratch = Scratch::new("scenarios");
    let none = scratch.path("none.toml");
    let text = lastmile_sim::scenario::builtin_text("path").unwrap();
    let line = |what: &str| text.lines().position(|l| l.starts_with(what)).unwrap() + 1;
    let typo = scratch.file("typo.toml", text.replace("queue = ", "queeu = "));
    let rate = scratch.file("rate.toml", text.replace("rate = \"10 Mbit/s\"", "rate = \"10 apples\""));
    let broken = scratch.file("broken.toml", "name = \"x\"\nduration\n");
    let binary = scratch.file("binary.toml", [0xff, 0xfe, 0, 1]);
    for world in ["sim", "lab"] {
        lastmile(&[world, &none]).is_error(USAGE, &["cannot read scenario", "none.toml", "dumbbell"]);
        let at = format!("typo.toml:{}", line("queue"));
        lastmile(&[world, &typo]).is_error(USAGE, &[&at, "queeu"]);
        let at = format!("rate.toml:{}", line("rate"));
        lastmile(&[world, &rate]).is_error(USAGE, &[&at, "rate", "10 apples"]);
        lastmile(&[world, &broken]).is_error(USAGE, &["broken.toml:2"]);
        lastmile(&[world, &binary]).is_error(USAGE, &["binary.toml"]);
    }
    // Nothing waits for a file that never ends.
    lastmile(&["sim", "/dev/zero"]).is_error(USAGE, &["/dev/zero:1", "more than 16000000 bytes"]);
    lastmile(&["bench-sim", "--only-ours", "--repeat", "0"]).is_error(USAGE, &["1..=100", "--repeat"]);
}

#[test]
fn programs_in_the_lab() {
    let bad = |arguments: &[&str], parts: &[&str]| {
        let ended = lastmile(&[&["lab", "path"], arguments].concat());
        // Where there can be no lab, that is said instead of what only a lab can find out.
        if ended.code == Some(MACHINE) && ended.stderr.contains("namespaces") {
            return;
        }
        ended.is_error(USAGE, parts);
    };
    bad(&["--in", "nowhere", "--", "true"], &["no host \"nowhere\"", "sender, receiver"]);
    bad(&["--", "true"], &["--in HOST"]);
    bad(&["--in", "sender"], &["--in HOST -- COMMAND"]);
    bad(&["--in", "sender", "--", "no-such-program-here"], &["no-such-program-here", "sender"]);
}

/// As nobody, who may make no namespaces; where users may, there is nothing to refuse.
#[test]
#[allow(clippy::print_stderr, reason = "a test that cannot run says so")]
fn a_lab_without_privilege() {
    let nobody = |arguments: &[&str]| {
        let ids = ["--reuid=65534", "--regid=65534", "--clear-groups", "--"];
        run(Command::new("setpriv").args(ids).args(arguments))
    };
    let scratch = Scratch::new("nobody");
    let program = scratch.path("lastmile");
    std::fs::copy(PROGRAM, &program).unwrap();
    let may = Command::new("setpriv").arg("--version").output().is_ok() && nobody(&["true"]).code == Some(0);
    if !may || nobody(&[&program, "--version"]).code != Some(0) {
        eprintln!("skipped: cannot become nobody here");
        return;
    }
    let ended = nobody(&[&program, "lab", "path"]);
    if matches!(ended.code, Some(0 | 1)) {
        eprintln!("skipped: nobody may have a lab here");
        return;
    }
    ended.is_error(MACHINE, &["the lab needs", "run as root"]);
}

/// Runs a command and interrupts it after so long.
fn interrupted(arguments: &[&str], after: Duration) -> common::Ended {
    let began = std::time::Instant::now();
    let mut command = Command::new(PROGRAM);
    let piped = || std::process::Stdio::piped();
    let child = command.args(arguments).stdout(piped()).stderr(piped()).spawn().expect("the program starts");
    std::thread::sleep(after);
    let signal = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(signal.is_ok_and(|s| s.success()));
    let output = child.wait_with_output().expect("its end");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    common::Ended { code: output.status.code(), stdout, stderr, after: began.elapsed() }
}

/// Trains at 1 Mbit/s take 0.35 s each, so that a hundred are under way when the signal comes.
#[test]
fn what_was_found_is_printed_when_the_rest_is_not_waited_for() {
    let scratch = Scratch::new("interrupted");
    let server = Server::start(&[]);
    let file = scratch.path("run.jsonl");
    let long = ["measure", &server.address, "--capacity", "1 Mbit/s", "--trains", "100", "--json"];
    let ended = interrupted(&[&long[..], &["--record", &file]].concat(), Duration::from_millis(1_800));
    assert_eq!(ended.code, Some(130), "{ended:?}");
    let rows = ended.json()["results"].clone();
    let number = |row: &Value| row["rate_bps"].as_u64();
    assert!(number(&rows[0]).is_some_and(|bps| bps > 500_000), "{rows:#}");
    assert!(rows[0]["warning"].as_str().is_some_and(|text| text.contains("of 100 trains")), "{rows:#}");
    for row in [&rows[1], &rows[2]] {
        assert_eq!(row["refused"], "interrupted", "{rows:#}");
    }
    // It is a recording like any other, and its replay is interrupted at the same place.
    let replayed = lastmile(&["replay", &file]);
    assert!(replayed.stdout.contains("all as recorded"), "{replayed:?}");

    let short = [&long[..], &["--direction", "forward", "--max-seconds", "1.5"]].concat();
    let ended = lastmile(&short);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let rows = ended.json()["results"].clone();
    assert!(number(&rows[0]).is_some() && rows[1]["refused"].as_str().is_some_and(|w| w.contains("1.5 s")));

    // Nothing was found: one line.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    interrupted(&["measure", &address], Duration::from_millis(500)).is_error(130, &["interrupted"]);
}

#[test]
fn a_method_that_wants_more_than_was_recorded_says_so() {
    let scratch = Scratch::new("streams");
    let text = lastmile_sim::scenario::builtin_text("path").unwrap();
    let (scenario, file) = (scratch.file("path.toml", text), scratch.path("run.jsonl"));
    // Without others, so that one train is enough.
    let alone =
        text.split("[[traffic]]").next().unwrap().to_owned() + &text[text.find("[[measure]]").unwrap()..];
    let scenario = if text.contains("[[traffic]]") { scratch.file("path.toml", alone) } else { scenario };
    assert_eq!(lastmile(&["sim", &scenario, "--record", &file]).code, Some(0));
    assert_eq!(lastmile(&["replay", &file, "--streams"]).code, Some(0));
    let ended = lastmile(&["replay", &file, "--streams", "--trains", "4", "--json"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(1), ""));
    let rows = ended.json()["results"].clone();
    assert_eq!(
        (&rows[0]["quantity"], &rows[1]["quantity"]),
        (&"capacity".into(), &"available-bandwidth".into())
    );
    assert!(rows[1]["warning"].as_str().is_some_and(|text| text == "from 1 of 4 trains"), "{rows:#}");
    let why = "wants at least 2 streams of 30 packets of 1488 B as train, and 1 was recorded";
    assert!(rows[2]["refused"].as_str().is_some_and(|text| text.contains(why)), "{rows:#}");
    let ended = lastmile(&["replay", &file, "--streams", "--method", "capprobe"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stdout.contains("40 packets of 1488 B as pairs, and 0 were recorded"), "{ended:?}");
}

#[test]
fn recordings_and_event_files() {
    let scratch = Scratch::new("recordings");
    let server = Server::start(&[]);
    let whole = scratch.path("whole.jsonl");
    let ended = lastmile(&["measure", &server.address, "--direction", "forward", "--record", &whole]);
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    let text = std::fs::read_to_string(&whole).unwrap();
    let replayed = lastmile(&["replay", &whole]);
    assert!(replayed.stdout.contains("all as recorded"), "{replayed:?}");

    let end = text.trim_end().rfind('\n').unwrap();
    let truncated = scratch.file("truncated.jsonl", &text[..end - 20]);
    let no_end = scratch.file("no-end.jsonl", &text[..=end]);
    let garbage = scratch.file("garbage.jsonl", "this is\nnothing\n");
    let binary = scratch.file("binary.jsonl", [0xff, 0x00, 0xfe, b'\n']);
    let empty = scratch.file("empty.jsonl", "");
    for command in ["replay", "report"] {
        lastmile(&[command, &truncated]).is_error(USAGE, &["truncated.jsonl", "truncated recording"]);
        lastmile(&[command, &no_end]).is_error(USAGE, &["no-end.jsonl", "truncated recording"]);
        lastmile(&[command, &garbage])
            .is_error(USAGE, &["garbage.jsonl:1", "neither a recording nor an event"]);
        lastmile(&[command, &binary]).is_error(USAGE, &["binary.jsonl"]);
        lastmile(&[command, &empty]).is_error(USAGE, &["empty.jsonl"]);
        lastmile(&[command, &scratch.path("none.jsonl")]).is_error(USAGE, &["none.jsonl"]);
    }
    assert!(!std::path::Path::new(&scratch.path("garbage.html")).exists(), "no page of nothing");
    let nowhere = scratch.path("nowhere/run.jsonl");
    lastmile(&["measure", &server.address, "--record", &nowhere])
        .is_error(USAGE, &["cannot write", "nowhere"]);
}

fn keys_of(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
    keys.sort_unstable();
    keys
}

#[track_caller]
fn has_keys(value: &Value, keys: &str) {
    let mut wanted: Vec<&str> = keys.split_whitespace().collect();
    wanted.sort_unstable();
    assert_eq!(keys_of(value), wanted, "{value:#}");
}

const ROW: &str = "method direction quantity rate_bps more_than_bps layer interval truth_kind warning refused \
                   seconds bytes probe_bytes control_bytes credit_bytes bytes_received streams streams_discarded";

const AP_1: &str = include_str!("../../lastmile-sim/scenarios/ap-1.toml");
const TRUTHS: &str = "from to truth_capacity_bps truth_window_bps truth_mean_bps truth_saturation_window_bps \
                      truth_saturation_mean_bps error error_saturation";

#[test]
fn truths_of_a_wlan() {
    let scratch = Scratch::new("truths");
    let mbps = |value: &Value| value.as_f64().unwrap() / 1e6;
    let near = |value: &Value, expected: f64| {
        assert!((mbps(value) / expected - 1.0).abs() < 0.01, "{value}, not {expected} Mbit/s");
    };
    let json = lastmile(&["sim", "ap-1", "--json"]).json();
    json["results"].as_array().unwrap().iter().for_each(|row| has_keys(row, &format!("{ROW} {TRUTHS}")));
    let row = &json["results"][1];
    // An exchange takes 28 + 67.5 + 26 + 4 * 57 + 10 + 50 us, for 1488 B as for 1500 B.
    near(&row["truth_capacity_bps"], 1488.0 * 8.0 / 409.5);
    // Others send 383 packets a second by the same queue.
    near(&row["truth_window_bps"], 1488.0 * 8.0 * (1e6 / 409.5 - 4.6e6 / 12e3) / 1e6);
    near(&row["truth_mean_bps"], 1488.0 * 8.0 * (1e6 / 409.5 - 4.6e6 / 12e3) / 1e6);
    // A saturating flow takes some of that from them, and not all.
    let (spare, most) = (mbps(&row["truth_window_bps"]), mbps(&row["truth_saturation_window_bps"]));
    assert!(spare < most && most < mbps(&row["truth_capacity_bps"]), "{row:#}");
    for (error, truth) in [("error", "truth_window_bps"), ("error_saturation", "truth_saturation_window_bps")]
    {
        let expected = mbps(&row["rate_bps"]) / mbps(&row[truth]) - 1.0;
        assert!((row[error].as_f64().unwrap() - expected).abs() < 1e-9, "{row:#}");
    }
    let text = lastmile(&["sim", "ap-1"]).stdout;
    assert!(text.contains("saturation") && text.contains("one saturating flow"), "{text}");
    assert_eq!(
        lastmile(&["sim", "ap-1", "--json"]).json(),
        json,
        "twins have no random numbers of their own"
    );

    // A wired link that is narrower than the air, and 4.6 Mbit/s by it.
    let narrow = AP_1.replace("100 Mbit/s", "10 Mbit/s");
    let file = scratch.file("narrow.toml", narrow);
    let json = lastmile(&["sim", &file, "--json"]).json();
    let row = &json["results"][1];
    near(&row["truth_capacity_bps"], 10.0 * 1488.0 / 1526.0);
    near(&row["truth_mean_bps"], (10.0 - 4.6 * 1538.0 / 1500.0) * 1488.0 / 1526.0);
}

#[test]
fn json_of_a_simulated_run() {
    let json = lastmile(&["sim", "path", "--json"]).json();
    has_keys(&json, "world scenario seed simulated_seconds results flows links wlans");
    assert_eq!((&json["world"], &json["scenario"]), (&"sim".into(), &"path".into()));
    let flow =
        "flow kind from to goodput_bps sent received lost under_way delay_mean_s delay_max_s out_of_order";
    has_keys(&json["flows"][0], flow);
    has_keys(&json["links"][0], "from to packets dropped");
    assert_eq!(json["wlans"], Value::Array(vec![]));
    let cell = ["sim", "wlan-g-busy", "--json", "--set", "duration=2 s"];
    let keys = "wlan from to packets delivered dropped lost transmissions collisions frames channel_errors airtime_s";
    has_keys(&lastmile(&cell).json()["wlans"][0], keys);
    let rows = json["results"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for row in rows {
        has_keys(row, &format!("{ROW} {TRUTHS}"));
        assert_eq!((&row["truth_kind"], &row["truth_saturation_mean_bps"]), (&"queue".into(), &Value::Null));
        assert_eq!(row["error_saturation"], Value::Null);
        assert!(row["error"].as_f64().unwrap().abs() < 0.01, "{row:#}");
        let sum = ["probe_bytes", "control_bytes", "credit_bytes"].map(|key| row[key].as_u64().unwrap());
        assert_eq!(row["bytes"].as_u64().unwrap(), sum.iter().sum::<u64>());
    }
    assert_eq!(rows[0]["quantity"], "capacity");
    has_keys(&rows[0]["interval"], "low_bps high_bps confidence method");
    assert_eq!(rows[1]["quantity"], "available-bandwidth");
}

#[test]
fn json_of_a_measurement() {
    let server = Server::start(&[]);
    let json = lastmile(&["measure", &server.address, "--json"]).json();
    has_keys(&json, "peer rtt_seconds results warnings");
    assert!(json["rtt_seconds"].as_f64().is_some_and(|s| s > 0.0), "{json:#}");
    json["results"].as_array().unwrap().iter().for_each(|row| has_keys(row, ROW));
    // A peer that cannot be talked to is a row too, and the exit code is the same as without --json.
    let ended = lastmile(&["measure", &closed_port(), "--json"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(PEER), ""));
    assert!(ended.json()["results"][0]["refused"].is_string());
}

#[test]
fn json_of_the_registries() {
    let methods = lastmile(&["methods", "--json"]).json();
    for method in methods.as_array().unwrap() {
        has_keys(method, "name about paper estimates round_trip resolution");
    }
    assert!(methods.as_array().unwrap().iter().any(|m| m["name"] == "wbest"));
    for classifier in lastmile(&["classifiers", "--json"]).json().as_array().unwrap() {
        has_keys(classifier, "name about");
    }
}

#[test]
fn scenarios_that_come_with_the_program() {
    let json = lastmile(&["scenarios", "--json"]).json();
    let names: Vec<&str> = json.as_array().unwrap().iter().filter_map(|row| row["name"].as_str()).collect();
    assert_eq!(names, lastmile_sim::scenario::BUILTIN);
    json.as_array().unwrap().iter().for_each(|row| has_keys(row, "name description"));
    let listed = lastmile(&["scenarios"]);
    assert_eq!(listed.stdout.lines().count(), names.len() + 1, "{listed:?}");
    // What is printed is a file that runs.
    let scratch = Scratch::new("builtin");
    let file = scratch.file("path.toml", lastmile(&["scenarios", "path"]).stdout);
    assert_eq!(lastmile(&["sim", &file]).code, Some(0));
    lastmile(&["scenarios", "nowhere"]).is_error(USAGE, &["nowhere", "dumbbell"]);
    lastmile(&["scenarios", "path", "--json"]).is_error(USAGE, &["--json", "see lastmile scenarios --help"]);
}

#[test]
fn json_of_the_doctor() {
    let ended = lastmile(&["doctor", "--json"]);
    let json = ended.json();
    has_keys(&json, "kernel cores load realtime lateness lateness_realtime findings");
    has_keys(&json["lateness"], "n p50_ns p99_ns worst_ns");
    let findings = json["findings"].as_array().unwrap();
    findings.iter().for_each(|finding| has_keys(finding, "name verdict found advice"));
    let missing = findings.iter().any(|f| f["verdict"] == "missing");
    assert_eq!(ended.code, Some(if missing { MACHINE } else { 0 }));
    let ended = lastmile(&["doctor", "--interface", "no-such-device"]);
    ended.is_error(USAGE, &["no-such-device"]);
}

#[test]
fn json_of_accuracy() {
    let arguments = ["accuracy", "--runs", "2", "--cross", "idle", "--json"];
    let json = lastmile(&arguments).json();
    let keys = "world scenario rate_mbps cross method trains n refused more_than seconds_p50 bytes_p50 control_bytes_p50 \
                truth_p50_bps saturation_p50_bps error_saturation_p50 error_mean_p50 error_mean_p90 error_window_p50 error_window_p90 bias_window_p50 \
                error_worst_of_capacity coverage rate_p50_bps reasons";
    json.as_array().unwrap().iter().for_each(|row| has_keys(row, keys));
    assert_eq!(json[0]["n"], 2);
    // WLANs: TCP leaves nothing, so that there is no relative error, and a saturating flow takes its share.
    let json = lastmile(&["accuracy", "--runs", "2", "--scenario", "ap,ap-4", "--json"]).json();
    json.as_array().unwrap().iter().for_each(|row| has_keys(row, keys));
    assert_eq!(
        (&json[0]["scenario"], &json[0]["rate_mbps"], &json[0]["n"]),
        (&"ap".into(), &Value::Null, &2.into())
    );
    assert!(json[0]["error_window_p50"].as_f64().unwrap() < 0.1, "{json:#}");
    assert!(json[0]["error_saturation_p50"].as_f64().unwrap() < 0.1, "{json:#}");
    assert_eq!((&json[1]["truth_p50_bps"], &json[1]["error_window_p50"]), (&0.0.into(), &Value::Null));
    assert!(json[1]["saturation_p50_bps"].as_f64().unwrap() > 1e6, "{json:#}");
    let scratch = Scratch::new("accuracy");
    let nothing = scratch.file(
        "nothing.toml",
        "name = \"x\"\nduration = \"1 s\"\n[host.a]\n[host.b]\n[[link]]\nfrom = \"a\"\nto = \"b\"\n",
    );
    lastmile(&["accuracy", "--scenario", &nothing]).is_error(USAGE, &["measures nothing"]);
    let both = lastmile(&["accuracy", "--scenario", "ap", "--rate", "10"]);
    assert!(both.code == Some(USAGE) && both.stderr.contains("cannot be used with '--rate"), "{both:?}");
}

/// A probe takes 0.6 s here, and a stream half a minute. Nobody is silent: the path is slow.
#[test]
fn a_path_of_20_kbit_per_second_has_numbers() {
    let scratch = Scratch::new("slow");
    for (method, direction, queue) in [
        ("wbest", "forward", "100 kB"),
        ("wbest", "reverse", "60 kB"),
        ("wbest", "both", "60 kB"),
        ("capprobe", "round-trip", "100 kB"),
    ] {
        let text = format!(
            "name = \"slow\"\nduration = \"300 s\"\n[host.a]\n[host.b]\n[[link]]\nfrom = \"a\"\nto = \"b\"\n\
             rate = \"20 kbit/s\"\ndelay = \"20 ms\"\nqueue = \"{queue}\"\n[[measure]]\nfrom = \"a\"\nto = \"b\"\n\
             method = \"{method}\"\ndirection = \"{direction}\"\n"
        );
        let ended = lastmile(&["sim", &scratch.file("slow.toml", text), "--json"]);
        assert_eq!(ended.code, Some(0), "{method} {direction} {queue}: {ended:?}");
        for row in ended.json()["results"].as_array().unwrap() {
            let rate = row["rate_bps"].as_u64().unwrap();
            assert!((19_900..=20_100).contains(&rate), "{method} {direction} {queue}: {row:#}");
        }
    }
}
