//! Recordings and event files, whole and not, and runs that were interrupted.

use std::fs;
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lastmile::estimate::{ALL, METHODS};
use serde_json::{Value, json};

use super::{MACHINE, USAGE};
use crate::common::{self, PROGRAM, Scratch, Server, lastmile};

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
    let long =
        ["measure", &server.address, "--method", "wbest(capacity=1 Mbit/s)", "--trains", "100", "--json"];
    let ended = interrupted(&[&long[..], &["--record", &file]].concat(), Duration::from_millis(1_800));
    assert_eq!(ended.code, Some(130), "{ended:?}");
    let rows = ended.json()["results"].clone();
    let number = |row: &Value| row["rate_bps"].as_u64();
    // Beside a given capacity the sustained rate comes first, which one train does not show.
    assert!(number(&rows[1]).is_some_and(|bps| bps > 500_000), "{rows:#}");
    assert!(rows[0]["warning"].as_str().is_some_and(|text| text.contains("of 100 trains")), "{rows:#}");
    assert_eq!(rows[1]["code"], "partial", "{rows:#}");
    for row in [&rows[2], &rows[3]] {
        assert_eq!(row["refused"], "interrupted", "{rows:#}");
    }
    // It is a recording like any other, and its replay is interrupted at the same place.
    let replayed = lastmile(&["replay", &file]);
    assert!(replayed.code == Some(0) && replayed.stdout.contains("all as recorded"), "{replayed:?}");

    let short = [&long[..], &["--direction", "forward", "--max-seconds", "1.5"]].concat();
    let ended = lastmile(&short);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let rows = ended.json()["results"].clone();
    assert!(number(&rows[1]).is_some() && rows[2]["refused"].as_str().is_some_and(|w| w.contains("1.5 s")));

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
        (&rows[0]["quantity"], &rows[2]["quantity"]),
        (&"capacity".into(), &"available-bandwidth".into())
    );
    // Each text stands once, and its word in each row.
    assert_eq!(rows[1]["warning"], "from 1 of 4 trains", "{rows:#}");
    assert_eq!((&rows[2]["warning"], &rows[2]["code"]), (&Value::Null, &"partial".into()), "{rows:#}");
    let why = "wants at least 2 streams of 30 packets of 1488 B as train, and 1 was recorded";
    assert!(rows[3]["refused"].as_str().is_some_and(|text| text.contains(why)), "{rows:#}");
    let ended = lastmile(&["replay", &file, "--streams", "--method", "capprobe", "-v"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stdout.contains("40 packets of 1488 B as pairs, and 0 were recorded"), "{ended:?}");
}

/// Every tool, and `all`, beside traffic in the simulator: the recording decides as the run did, and the tool finds the same in the
/// recorded streams alone, for these come with the errors of the run's stamps and the seed of its draws.
#[test]
fn each_method_is_recorded_and_replayed() {
    let scratch = Scratch::new("recorded-methods");
    let file = scratch.path("run.jsonl");
    let found = |rows: &Value| -> Vec<Value> {
        let rows = rows.as_array().expect("rows");
        rows.iter().map(|row| json!([row["quantity"], row["rate_bps"], row["refused"]])).collect()
    };
    for name in METHODS.iter().map(|method| method.name).chain([ALL]) {
        let method = format!("measure.0.method={name}");
        let run = ["sim", "path", "--set", &method, "--set", "duration=1500 s", "--record", &file, "--json"];
        let ran = lastmile(&run).json();
        let ran = found(&ran["results"]);
        let replayed = lastmile(&["replay", &file, "--json"]);
        assert_eq!(replayed.code, lastmile(&["replay", &file]).code, "{name}: {replayed:?}");
        assert_eq!(found(&replayed.json()["results"]), ran, "{name}");
        let streams = lastmile(&["replay", &file, "--streams", "--method", name, "--json"]);
        if name == ALL {
            streams.is_error(USAGE, &["--streams runs one method"]);
        } else {
            assert_eq!(found(&streams.json()["results"]), ran, "{name}");
        }
    }
}

/// Without a measurement the recording is of the first stream's sender, and has no results to print: the sender began, exchanged
/// reports each second, and ended.
#[test]
fn a_stream_is_recorded_replayed_and_drawn() {
    let scratch = Scratch::new("recorded-stream");
    let scenario = "name = \"x\"\nduration = \"2 s\"\n[host.a]\n[host.b]\n[[link]]\nfrom = \"a\"\nto = \"b\"\n\
                    [[stream]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Mbit/s\"\nframe_rate = 29.97\n";
    let (scenario, file) = (scratch.file("stream.toml", scenario), scratch.path("stream.jsonl"));
    assert_eq!(lastmile(&["sim", &scenario, "--record", &file]).code, Some(0));
    let replayed = lastmile(&["replay", &file]);
    assert_eq!(
        (replayed.code, replayed.stdout.as_str()),
        (Some(0), "8 decisions, all as recorded\n"),
        "{replayed:?}"
    );
    lastmile(&["replay", &file, "--streams"]).is_error(1, &["the recording holds no streams"]);
    assert_eq!(lastmile(&["report", &file]).code, Some(0));
    let text = std::fs::read_to_string(&file).unwrap();
    let other = scratch.file("other.jsonl", text.replacen("\"role\":\"stream\"", "\"role\":\"juggler\"", 1));
    lastmile(&["replay", &other]).is_error(USAGE, &["juggler", "unknown here"]);
    // A decision that the inputs do not bring about is told.
    let turned = text.replacen("\"sent\":{\"packets\":", "\"sent\":{\"packets\":9", 1);
    assert_ne!(turned, text);
    let turned = scratch.file("turned.jsonl", &turned);
    lastmile(&["replay", &turned]).is_error(1, &["decides otherwise", "media-progress"]);
}

/// A controller is built again from its description in the recording, and comes to the same targets.
#[test]
fn a_controlled_stream_is_replayed_byte_for_byte() {
    let scratch = Scratch::new("controlled-stream");
    let scenario = "name = \"x\"\nduration = \"5 s\"\n[host.a]\n[host.b]\nclock = { offset = \"3 s\", skew_ppm = 40.0 }\n\
                    [[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Mbit/s\"\ndelay = \"20 ms\"\nqueue = \"20 kB\"\n\
                    [[stream]]\nname = \"one\"\nfrom = \"a\"\nto = \"b\"\ncontrol = \"tfrc+spike\"\n\
                    start_rate = \"400 kbit/s\"\nmax_rate = \"3 Mbit/s\"\n";
    let (scenario, file) = (scratch.file("stream.toml", scenario), scratch.path("stream.jsonl"));
    for control in ["tfrc+spike", "tfrc(preset=ns-2)", "rap"] {
        let set = format!("stream.one.control={control}");
        let ended = lastmile(&["sim", &scenario, "--set", &set, "--record", &file, "--json"]);
        assert_eq!(ended.json()["streams"][0]["control"], control);
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains("\"event\":\"target-changed\"") && text.contains(control), "{control}");
        let replayed = lastmile(&["replay", &file]);
        assert!(replayed.code == Some(0) && replayed.stdout.contains("all as recorded"), "{replayed:?}");
        // Under another controller the same inputs make other targets; of one that there is not, none.
        let other = |name: &str| scratch.file("other.jsonl", text.replacen(control, name, 1));
        lastmile(&["replay", &other("iiad")]).is_error(1, &["decides otherwise"]);
        lastmile(&["replay", &other("wishful")]).is_error(USAGE, &["no rate controller", "wishful"]);
    }
}

/// Runs our program where no file may be longer than so many kB: to a writer that is a full disk.
fn on_a_full_disk(kilobytes: usize, arguments: &[&str]) -> common::Ended {
    let limited = format!("trap '' XFSZ; ulimit -f {}; exec \"$0\" \"$@\"", kilobytes * 2);
    common::run(Command::new("sh").args(["-c", &limited, PROGRAM]).args(arguments))
}

/// The results and the error are printed, and the recording so far is there.
#[test]
fn a_full_disk_takes_the_recording_and_nothing_else() {
    let scratch = Scratch::new("full-disk");
    let (server, file) = (Server::start(&[]), scratch.path("run.jsonl"));
    let ended = on_a_full_disk(8, &["measure", &server.address, "--json", "--record", &file]);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert!(
        ended.stderr.starts_with(&format!("lastmile: cannot write {file}, which is not complete: ")),
        "{ended:?}"
    );
    assert!(ended.json()["results"].as_array().is_some_and(|rows| !rows.is_empty()), "{ended:?}");
    let recorded = fs::metadata(&file).unwrap().len();
    assert!((4_000..=8_192).contains(&recorded), "{recorded} bytes");
    let replayed = lastmile(&["replay", &file]);
    assert!(replayed.code == Some(0) && replayed.stdout.contains("all as recorded"), "{replayed:?}");
    assert!(replayed.stdout.contains("run.jsonl: cut at line "), "{replayed:?}");

    let (simulated, events) = (scratch.path("sim.jsonl"), scratch.path("events.jsonl"));
    for (kilobytes, what) in [(2, ["--record", &simulated]), (0, ["--events", &events])] {
        let ended = on_a_full_disk(kilobytes, &[&["sim", "path"], &what[..]].concat());
        assert_eq!(ended.code, Some(4), "{ended:?}");
        assert!(ended.stdout.contains("available"), "{ended:?}");
        assert!(ended.stderr.contains("not complete"), "{ended:?}");
    }

    // A page is whole, or the one that was there.
    let (page, whole) = (scratch.path("run.html"), "an older page");
    fs::write(&page, whole).unwrap();
    let ended = on_a_full_disk(4, &["report", &file]);
    ended.is_error(MACHINE, &["cannot write", "run.html"]);
    assert_eq!(fs::read_to_string(&page).unwrap(), whole);
    let left = fs::read_dir(&scratch.0).unwrap().flatten().map(|entry| entry.file_name()).collect::<Vec<_>>();
    assert_eq!(left.len(), 4, "{left:?}");
    assert_eq!(lastmile(&["report", &file]).code, Some(0));
    assert!(fs::read_to_string(&page).unwrap().contains("cut at line"));
}

#[test]
fn a_killed_recording_holds_what_was_recorded() {
    let scratch = Scratch::new("killed");
    let (server, file) = (Server::start(&[]), scratch.path("run.jsonl"));
    let long = [
        "measure",
        &server.address,
        "--method",
        "wbest(capacity=1 Mbit/s)",
        "--trains",
        "100",
        "--record",
        &file,
    ];
    let mut child = Command::new(PROGRAM).args(long).stdout(Stdio::null()).spawn().unwrap();
    // A line for each packet, in trains of 30.
    let written = || fs::read_to_string(&file).map_or(0, |text| text.lines().count());
    let began = Instant::now();
    while written() < 240 {
        assert!(began.elapsed() < Duration::from_secs(60), "{} lines", written());
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let replayed = lastmile(&["replay", &file, "--json"]);
    let json = replayed.json();
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
    // The peer that answered, and trains.
    assert!(json["decisions"].as_u64().is_some_and(|n| n >= 3), "{json:#}");
    assert!(json["cut"].as_str().is_some_and(|cut| cut.contains("was killed")), "{json:#}");
    assert_eq!(lastmile(&["report", &file]).code, Some(0));
    // Its streams are there too, for another method.
    let ended = lastmile(&["replay", &file, "--streams", "--method", "wbest(capacity=1 Mbit/s)"]);
    assert!(ended.code == Some(0) && ended.stdout.contains("available"), "{ended:?}");
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
        for cut in [&truncated, &no_end] {
            let ended = lastmile(&[command, cut]);
            assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
            let page = || fs::read_to_string(cut.replace(".jsonl", ".html")).unwrap();
            let said = if command == "replay" { ended.stdout } else { page() };
            assert!(
                said.contains("cut at line") && said.contains("was killed, or the disk was full"),
                "{said}"
            );
        }
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
