//! `--method all`: every method within one budget, in the simulator and over the loopback.

use lastmile::estimate::METHODS;
use serde_json::Value;

use crate::common::{Scratch, Server, lastmile};
use crate::documents::hold;

/// A TCP connection over a link of 10 Mbit/s, with a window that lets it have a third of that; and one that meets nobody.
const BESIDE_TCP: &str = r#"
name = "beside TCP"
duration = "400 s"
warm_up = "5 s"
[host.sender]
[host.receiver]
[host.other]
[host.far]
[[link]]
from = "sender"
to = "receiver"
rate = "10 Mbit/s"
delay = "10 ms"
queue = "60 kB"
[[link]]
from = "other"
to = "far"
rate = "5 Mbit/s"
delay = "10 ms"
[[traffic]]
name = "tcp"
kind = "ftp"
from = "FROM"
to = "TO"
tcp = { max_window = 7 }
[[measure]]
from = "sender"
to = "receiver"
method = "all"
direction = "forward"
"#;

fn scenario(scratch: &Scratch, between: [&str; 2], options: &str) -> String {
    let text = BESIDE_TCP.replace("FROM", between[0]).replace("TO", between[1]);
    scratch.file("beside-tcp.toml", text + options)
}

/// Rows of a document, and the names of their methods without repetition.
fn results(document: &Value) -> (Vec<Value>, Vec<String>) {
    let rows = document["results"].as_array().expect("results").clone();
    let mut names: Vec<String> = rows.iter().map(|row| row["method"].as_str().unwrap().to_owned()).collect();
    names.dedup();
    (rows, names)
}

fn number(row: &Value, path: &str) -> f64 {
    row.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path}: {row:#}"))
}

fn in_all() -> Vec<&'static str> {
    METHODS.iter().filter(|method| method.in_all).map(|method| method.name).collect()
}

/// A link of 10 Mbit/s carries a TCP connection. All methods measure it one after the other, five seconds apart. Each has a row, and
/// each row says what the connection lost meanwhile and after, against the same time without anybody who measures.
#[test]
fn all_methods_beside_a_tcp_connection() {
    let scratch = Scratch::new("all-beside-tcp");
    let file = scenario(&scratch, ["sender", "receiver"], "pause = \"5 s\"\n");
    let ended = lastmile(&["sim", &file]);
    assert!(ended.stdout.lines().all(|line| line.chars().count() <= 80), "{}", ended.stdout);
    hold(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/all.txt"), &ended.stdout);
    let (rows, names) = results(&lastmile(&["sim", &file, "--json"]).json());
    assert_eq!(names, in_all());
    for row in &rows {
        let (seconds, bytes) = (number(row, "/load/seconds"), number(row, "/load/bytes"));
        assert!((number(row, "/load/probing_bps") - bytes * 8.0 / seconds).abs() <= 1.0, "{row:#}");
        assert!((number(row, "/load/tcp_during/seconds") - seconds).abs() < 1e-6, "{row:#}");
        let after = number(row, "/load/tcp_after/seconds");
        // The last one is followed by nobody.
        let until = if row["method"] == *names.last().unwrap() { 10.0 } else { 5.0 };
        assert!((after - until).abs() < 1e-6, "{row:#}");
        // Without probes the connection has a window of 7 segments in each round trip of some 25 ms.
        let twin = number(row, "/load/tcp_after/twin_bps");
        assert!((3.3e6..3.5e6).contains(&twin), "{row:#}");
    }
    // The tool that sends most disturbs most; a thin one next to nothing.
    let lost = |name: &str| {
        let row = rows.iter().find(|row| row["method"] == name).expect("a row");
        1.0 - number(row, "/load/tcp_during/goodput_bps") / number(row, "/load/tcp_during/twin_bps")
    };
    assert!(lost("ecnprobe") > 0.2 && lost("pathchirp").abs() < 0.05, "{rows:#?}");
}

#[test]
fn a_connection_that_meets_no_probe_has_what_its_twin_has() {
    let scratch = Scratch::new("all-elsewhere");
    let file = scenario(&scratch, ["other", "far"], "max_time = \"20 s\"\n");
    // Windows are in the run's time, whatever the prober's clock says.
    let text = std::fs::read_to_string(&file).unwrap();
    let file = scratch
        .file("clock.toml", text.replace("[host.sender]", "[host.sender]\nclock = { offset = \"1000 s\" }"));
    let (rows, _) = results(&lastmile(&["sim", &file, "--json"]).json());
    let during: Vec<&Value> =
        rows.iter().map(|row| &row["load"]["tcp_during"]).filter(|tcp| !tcp.is_null()).collect();
    assert!(during.len() >= 5, "{rows:#?}");
    assert!(
        during.iter().all(|tcp| tcp["goodput_bps"] == tcp["twin_bps"] && tcp["twin_bps"] != 0),
        "{during:#?}"
    );
}

#[test]
fn the_budget_holds_and_the_table_says_who_could_not_run() {
    let scratch = Scratch::new("all-budget");
    for (option, code) in [("max_bytes = \"1 MB\"\n", "byte-limit"), ("max_time = \"10 s\"\n", "time-limit")]
    {
        let file = scenario(&scratch, ["other", "far"], option);
        let (rows, names) = results(&lastmile(&["sim", &file, "--json"]).json());
        assert_eq!(names, in_all(), "{option}");
        for row in &rows {
            assert!(
                number(row, "/bytes") + number(row, "/bytes_received") <= 1e6 || code == "time-limit",
                "{row:#}"
            );
            assert!(number(row, "/seconds") <= 10.001 || code == "byte-limit", "{row:#}");
        }
        let idle: Vec<&Value> = rows.iter().filter(|row| row["load"]["bytes"] == 0).collect();
        assert!(!idle.is_empty() && idle.iter().all(|row| row["code"] == code), "{option} {idle:#?}");
        let screen = lastmile(&["sim", &file]).stdout;
        let words = screen.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("ecnprobe not run"), "{screen}");
        assert!(words.contains("ecnprobe: not run: the budget is used up"), "{screen}");
        let full = lastmile(&["sim", &file, "-v"]).stdout;
        assert!(full.contains("forward ecnprobe: not run: the budget is used up"), "{full}");
    }
}

#[test]
fn over_real_sockets_the_limits_of_the_command_line_go_first() {
    let server = Server::start(&[]);
    let measured = lastmile(&[
        "measure",
        &server.address,
        "--method",
        "all(pause=0 s)",
        "--json",
        "--max-bytes",
        "600kB",
    ]);
    let document = measured.json();
    let (rows, _) = results(&document);
    assert_eq!(
        rows.iter().map(|row| row["direction"].as_str()).collect::<std::collections::BTreeSet<_>>().len(),
        2
    );
    let last = rows.last().expect("rows");
    assert!(number(last, "/bytes") + number(last, "/bytes_received") <= 600e3, "{last:#}");
    assert_eq!((&last["load"]["bytes"], &last["code"]), (&0.into(), &"byte-limit".into()));
    assert!(rows[0]["load"]["tcp_during"].is_null(), "{:#}", rows[0]);
    let screen = lastmile(&["measure", &server.address, "--method", "all", "--max-seconds", "2"]);
    assert!(screen.after.as_secs() < 5, "{screen:?}");
    assert!(screen.stdout.lines().all(|line| line.chars().count() <= 80), "{}", screen.stdout);
    assert!(screen.stdout.contains("not run: the budget is used up"), "{}", screen.stdout);
    // Round trips are for methods that can do them.
    let trips = [
        "measure",
        &server.address,
        "--method",
        "all",
        "--direction",
        "round-trip",
        "--max-bytes",
        "1kB",
        "--json",
    ];
    let (_, names) = results(&lastmile(&trips).json());
    assert!(names.contains(&"wbest".to_owned()) && !names.contains(&"pathload".to_owned()), "{names:?}");
    let every = lastmile(&["measure", &server.address, "--method", "all", "--every", "1s"]);
    every.is_error(2, &["--every repeats one method"]);
    let wrong = lastmile(&["measure", &server.address, "--method", "all(rate=1M)"]);
    wrong.is_error(2, &["all has no option rate; its options: pause, max_time, max_bytes"]);
}
