//! `measure --every`: its lines, its CSV and its file for Prometheus.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::json::has_keys;
use super::{PEER, USAGE, closed_port};
use crate::common::{PROGRAM, Scratch, Server, lastmile};

const LINE: &str = "schema version time host local peer rtt_seconds options results warnings warning_codes \
                    round missed exit_code code error";

fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

/// The value of a metric with its labels.
fn metric(text: &str, name: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

#[test]
fn each_round_is_a_line_two_rows_and_the_metrics_of_the_last() {
    let (server, scratch) = (Server::start(&[]), Scratch::new("monitor"));
    let (csv, prom) = (scratch.path("rounds.csv"), scratch.path("lastmile.prom"));
    let files = ["--csv", csv.as_str(), "--prom", prom.as_str()];
    let measure = ["measure", server.address.as_str(), "--every", "1s", "--trains", "1", "--count"];
    let ended = lastmile(&[&measure[..], &["2"], &files].concat());
    let told = lines(&ended.stdout);
    assert_eq!(told.len(), 2, "{ended:?}");
    for (number, line) in told.iter().enumerate() {
        has_keys(line, LINE);
        assert_eq!((&line["round"], &line["local"]), (&(number + 1).into(), &"127.0.0.1".into()), "{line:#}");
        assert_eq!(
            (&line["host"], &line["peer"]),
            (&server.address.as_str().into(), &server.address.as_str().into())
        );
        assert!(
            line["time"].as_str().is_some_and(|time| time.starts_with("20") && time.ends_with('Z')),
            "{line:#}"
        );
        for row in line["results"].as_array().unwrap() {
            assert!(line["options"][row["asked"].as_str().unwrap()]["trains"].is_u64(), "{line:#}");
        }
    }
    assert_eq!(ended.code.map(Value::from), Some(told[1]["exit_code"].clone()), "{ended:?}");

    // A second program appends to the rows, and keeps the time of the last success.
    let again = lastmile(&[&measure[..], &["1"], &files].concat());
    let rows = std::fs::read_to_string(&csv).unwrap();
    assert_eq!(rows.lines().count(), 1 + 3 * 2, "{again:?}: {rows}");
    assert!(
        rows.starts_with("time,version,schema,round,missed,host,") && rows.matches("\ntime,").count() == 0,
        "{rows}"
    );
    let row: Vec<&str> = rows.lines().nth(1).unwrap().split(',').collect();
    assert_eq!((row[5], row[6], row[9]), (server.address.as_str(), "127.0.0.1", "forward"));

    let text = std::fs::read_to_string(&prom).unwrap();
    let host = format!("{{host=\"{}\"}}", server.address);
    assert!(
        metric(&text, &format!("lastmile_round_trip_seconds{host} ")).is_some_and(|rtt| rtt > 0.0),
        "{text}"
    );
    assert!(
        metric(&text, &format!("lastmile_sent_bytes_total{host} ")).is_some_and(|sent| sent > 1e4),
        "{text}"
    );
    for line in ["# HELP lastmile_last_round_timestamp_seconds", "# TYPE lastmile_rounds_total counter"] {
        assert!(text.contains(line), "{text}");
    }
    // Loopback has no limit that these hosts can time: a bound, in bytes.
    let rate = text
        .lines()
        .find(|line| line.starts_with("lastmile_capacity_") && line.contains("direction=\"forward\""));
    assert!(rate.is_some_and(|line| line.contains("method=\"wbest(trains=1)\"")), "{text}");
    assert!(std::fs::read_dir(&scratch.0).unwrap().count() == 2, "nothing else is left there");
}

#[test]
fn a_round_that_fails_is_a_line_too() {
    let scratch = Scratch::new("monitor-fails");
    let (csv, prom) = (scratch.path("rounds.csv"), scratch.path("lastmile.prom"));
    let earlier = "lastmile_last_success_timestamp_seconds{host=\"HOST\"} 1700000000.5\n";
    let closed = closed_port();
    std::fs::write(&prom, earlier.replace("HOST", &closed)).unwrap();
    // A row that a program was killed in.
    lastmile(&["measure", &closed, "--every", "1s", "--count", "1", "--csv", &csv]);
    let whole = std::fs::read_to_string(&csv).unwrap();
    std::fs::write(&csv, format!("{whole}2026-11-23T00:0")).unwrap();
    let ended =
        lastmile(&["measure", &closed, "--every", "1s", "--count", "1", "--csv", &csv, "--prom", &prom]);
    let line = &lines(&ended.stdout)[0];
    assert_eq!(
        (ended.code, &line["exit_code"], &line["code"]),
        (Some(PEER), &PEER.into(), &"peer-absent".into())
    );
    assert!(ended.stderr.contains("torn") && line["error"].is_string(), "{ended:?}");
    let rows = std::fs::read_to_string(&csv).unwrap();
    assert!(rows.starts_with(&whole) && rows.lines().count() == 5, "{rows}");
    let text = std::fs::read_to_string(&prom).unwrap();
    let success = format!("lastmile_last_success_timestamp_seconds{{host=\"{closed}\"}} ");
    assert_eq!(metric(&text, &success), Some(1_700_000_000.5), "{text}");
    assert!(!text.contains("bytes_per_second"), "no number is older than its round: {text}");

    let unknown = lastmile(&["measure", "no-such-host.invalid", "--every", "1s", "--count", "1"]);
    let line = &lines(&unknown.stdout)[0];
    assert_eq!((unknown.code, &line["code"]), (Some(PEER), &"peer".into()));
    has_keys(line, LINE);
    // A full disk may have room again.
    let full = ["--every", "500ms", "--count", "2", "--prom", "/dev/full"];
    let ended = lastmile(&[&["measure", closed.as_str()], &full[..]].concat());
    assert_eq!(
        (lines(&ended.stdout).len(), ended.stderr.matches("/dev/full: ").count()),
        (2, 2),
        "{ended:?}"
    );
    // Each further round would meet these too.
    lastmile(&["measure", "127.0.0.1:x", "--every", "1s"]).is_error(USAGE, &["not a port"]);
    let other = scratch.file("other.csv", "a,b\n");
    lastmile(&["measure", &closed, "--every", "1s", "--csv", &other]).is_error(USAGE, &["another header"]);
    lastmile(&["measure", &closed, "--count", "2"]).is_error(USAGE, &["--every"]);
    lastmile(&["measure", &closed, "--every", "1s", "--prom", "x.txt"]).is_error(USAGE, &["end in .prom"]);
}

/// Nobody reads standard output: rounds with a file of their own go on, and others end.
#[test]
fn a_reader_that_goes_away_takes_no_file_along() {
    let scratch = Scratch::new("reader");
    let (closed, csv) = (closed_port(), scratch.path("rounds.csv"));
    let file = ["--csv", csv.as_str()];
    for (files, code) in [(&[][..], 141), (&file, PEER)] {
        let mut child = Command::new(PROGRAM);
        child.args(["measure", &closed, "--every", "500ms", "--count", "2"]).args(files);
        let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let ended = child.wait_with_output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(code), "{said}");
        assert_eq!(
            said.matches("the rounds go on into the files").count(),
            usize::from(code == PEER),
            "{said}"
        );
    }
    // A heading, and both directions of two rounds.
    assert_eq!(std::fs::read_to_string(&csv).unwrap().lines().count(), 1 + 2 * 2);
}

/// Neither results nor notes can be written: the file of rounds goes on.
#[test]
fn a_full_disk_behind_both_outputs_takes_no_file_along() {
    let scratch = Scratch::new("full");
    let (closed, csv) = (closed_port(), scratch.path("rounds.csv"));
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(PROGRAM);
    command.args(["measure", &closed, "--every", "500ms", "--count", "2", "--csv", &csv]);
    let ended = command.stdout(full()).stderr(full()).status().unwrap();
    assert_eq!(ended.code(), Some(PEER));
    assert_eq!(std::fs::read_to_string(&csv).unwrap().lines().count(), 1 + 2 * 2);
}

#[test]
fn a_budget_leaves_out_rounds_and_cuts_none_short_later() {
    let server = Server::start(&[]);
    let measure =
        ["measure", server.address.as_str(), "--every", "500ms", "--trains", "1", "--direction", "forward"];
    // A round has 149 kB of probes at least, and more where a train comes to be sent again, or a longer one: two never fit.
    let ended = lastmile(&[&measure[..], &["--count", "2", "--max-bytes-per-hour", "280 kB"]].concat());
    let told = lines(&ended.stdout);
    assert_eq!(told[1]["code"], "over-budget", "{ended:?}");
    assert!(told[1]["error"].as_str().is_some_and(|error| error.contains("skipped")), "{ended:?}");
    assert_eq!(ended.code, Some(1));
    // A budget of less than a round cuts the first one short.
    let ended = lastmile(&[&measure[..], &["--count", "1", "--max-bytes-per-hour", "30 kB"]].concat());
    let told = &lines(&ended.stdout)[0];
    assert_eq!((ended.code, &told["code"]), (Some(1), &"byte-limit".into()));
    assert!(
        told["error"]
            .as_str()
            .is_some_and(|error| error.ends_with("; --max-bytes-per-hour left 30 kB for this round")),
        "{told:#}"
    );
    let bytes = |row: &Value| row["bytes"].as_u64().unwrap() + row["bytes_received"].as_u64().unwrap();
    assert!(told["results"].as_array().unwrap().iter().all(|row| bytes(row) <= 30_000), "{told:#}");
}

#[test]
fn ctrl_c_between_rounds_ends_as_the_last_round_did() {
    let server = Server::start(&[]);
    let mut child = Command::new(PROGRAM)
        .args(["measure", &server.address, "--every", "60s", "--trains", "1"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut line, mut out) = (String::new(), BufReader::new(child.stdout.take().unwrap()));
    out.read_line(&mut line).unwrap();
    let code = lines(&line)[0]["exit_code"].clone();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(child.id() as i32), nix::sys::signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().code().map(Value::from), Some(code));
}

#[test]
fn ctrl_c_in_a_round_tells_what_was_found() {
    // A round waits for a silent peer.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let child = Command::new(PROGRAM)
        .args(["measure", &silent.local_addr().unwrap().to_string(), "--every", "60s"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    silent.set_read_timeout(Some(std::time::Duration::from_secs(10))).unwrap();
    silent.recv(&mut [0; 2048]).expect("its first request");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(child.id() as i32), nix::sys::signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    let told = lines(&String::from_utf8(output.stdout).unwrap());
    assert_eq!(
        (told.len(), &told[0]["code"], &told[0]["exit_code"]),
        (1, &"interrupted".into(), &130.into())
    );
    assert_eq!(output.status.code(), Some(130));
}
