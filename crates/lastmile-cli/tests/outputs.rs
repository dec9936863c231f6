//! Files of the program, as a user meets them: captures and event files on full disks,
//! and a page of every kind of result.

mod common;

use std::process::{Command, Stdio};
use std::time::Duration;

use common::{Ended, NARROW, PROGRAM, Scratch, lastmile, read, run};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

const USAGE: i32 = 2;
const MACHINE: i32 = 4;

#[test]
fn a_series_is_lines_or_csv_and_a_page() {
    let scratch = Scratch::new("series");
    let scenario = scratch.file("narrow.toml", NARROW);
    let written = |name: &str, step: &str| {
        let file = scratch.path(name);
        let ended = lastmile(&["sim", &scenario, "--series", &file, "--series-step", step]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stdout.contains("mean queue"), "{ended:?}");
        let page = lastmile(&["report", &file, "-o", "-"]);
        assert!(page.code == Some(0) && page.stdout.contains("flows: window"), "{page:?}");
        assert!(page.stdout.contains("links: queue") && page.stdout.contains("a&gt;b"), "{page:?}");
        read(&file)
    };
    let lines = written("a.jsonl", "500 ms");
    let rows: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 4 * (2 + 2), "two flows and two directions in each step");
    let named = |name: &'static str| rows.iter().filter(move |row| row["name"] == name);
    assert!(named("tcp").all(|row| row["window_packets"].as_f64() > Some(0.0)));
    assert!(named("a>b").all(|row| row["busy_share"].as_f64() > Some(0.3)));
    assert!(named("a>b").all(|row| row.get("goodput_bps").is_none()));
    let csv = written("a.csv", "500 ms");
    assert!(csv.starts_with("at_s,row,name,goodput_bps,") && csv.lines().count() == rows.len() + 1, "{csv}");
    lastmile(&["sim", &scenario, "--series", "x", "--series-step", "1 us"])
        .is_error(USAGE, &["1 ms at least"]);
    lastmile(&["sim", &scenario, "--series-step", "1 s"]).is_error(USAGE, &["--series"]);
}

#[test]
fn a_measurement_begins_anew_every_so_often() {
    let set = ["--set", "measure.0.every=2 s", "--set", "duration=9 s"];
    let json = lastmile(&[&["sim", "path", "--json"], &set[..]].concat()).json();
    let rows = json["results"].as_array().unwrap();
    let starts: Vec<f64> = rows.iter().filter_map(|row| row["start_seconds"].as_f64()).collect();
    let each = [1.0, 3.0, 5.0, 7.0].map(|start| [start; 3]);
    assert_eq!(starts, each.concat(), "capacity, sustained rate and available bandwidth of each");
    assert!(rows.iter().all(|row| row["refused"].is_null() && row["truth_window_bps"].as_u64() > Some(0)));
    let text = lastmile(&[&["sim", "path", "-v"], &set[..]].concat()).stdout;
    for start in ["1 s", "3 s", "5 s", "7 s"] {
        let own = text.lines().filter(|line| line.trim_start().starts_with(&format!("{start}  forward")));
        assert_eq!(own.count(), 3, "{start}: {text}");
    }
    let short =
        lastmile(&["sim", "path", "--json", "--set", "measure.0.start=8 s", "--set", "duration=8100 ms"]);
    assert_eq!(short.json()["results"][0]["code"], "run-over");
}

#[test]
fn a_path_that_changes_has_no_truth_and_says_so() {
    let link = |from: &str, to: &str| {
        format!("[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"10 Mbit/s\"\ndelay = \"5 ms\"\n")
    };
    let scratch = Scratch::new("moved");
    let moved = "name = \"moved\"\nduration = \"9 s\"\n[host.a]\n[host.b]\n".to_owned()
        + &link("a", "one")
        + &link("one", "b")
        + &link("a", "two")
        + &link("two", "b")
        + "[[handoff]]\nat = \"8 s\"\nhost = \"b\"\nto = \"two\"\n\
           [[measure]]\nfrom = \"a\"\nto = \"b\"\nmethod = \"wbest\"\ndirection = \"forward\"\n";
    let text = lastmile(&["sim", &scratch.file("moved.toml", moved)]).stdout;
    assert!(text.contains("a and b: no truth: the path between them changes in the run"), "{text}");
    assert!(!text.contains("truth  ") && !lastmile(&["sim", "path"]).stdout.contains("no truth"), "{text}");
}

#[test]
fn sweeps_over_any_key_and_over_none() {
    let scratch = Scratch::new("keys");
    let scenario = scratch.file("narrow.toml", NARROW);
    let rows = |arguments: &[&str]| -> Vec<Value> {
        let ended = lastmile(&[&["sweep", &scenario], arguments].concat());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let all: Vec<Value> = ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let is = |row: &Value, kind: &str| row["row"] == kind;
        assert_eq!(all.iter().filter(|row| is(row, "link")).count(), all.len() / 2, "as many as flows");
        all.into_iter().filter(|row| is(row, "flow")).collect()
    };
    let swept = ["--set", "traffic.poisson.size=100 B,1000 B", "--set", "duration=500 ms"];
    for (format, first) in [
        ("jsonl", r#"{"run":0,"seed":1,"traffic.poisson.size":"100 B","duration":"500 ms","row":"flow","#),
        ("csv", "run,seed,traffic.poisson.size,duration,row,"),
    ] {
        let written = lastmile(&[&["sweep", &scenario, "--format", format], &swept[..]].concat());
        assert!(written.stdout.starts_with(first), "{written:?}");
    }
    let sizes = rows(&swept);
    assert_eq!(
        sizes.iter().map(|row| row["traffic.poisson.size"].as_str().unwrap()).collect::<Vec<_>>(),
        ["100 B", "100 B", "1000 B", "1000 B"]
    );
    assert!(sizes[1]["sent"].as_u64() > sizes[3]["sent"].as_u64());
    // Swept seeds are the runs' seeds, and numbers.
    let seeds = rows(&["--set", "seed=7,9"]);
    assert_eq!(seeds.iter().map(|row| row["seed"].as_u64().unwrap()).collect::<Vec<_>>(), [7, 7, 9, 9]);
    assert_ne!(seeds[1]["goodput_bps"], seeds[3]["goodput_bps"]);
    let wlan = lastmile(&[
        "sweep",
        "ap-3",
        "--set",
        "duration=5100 ms",
        "--set",
        "warm_up=0 s",
        "--set",
        "wlan.0.station.1.rate=1 Mbit/s,54 Mbit/s",
    ]);
    assert!(
        wlan.code == Some(0) && wlan.stdout.contains("\"wlan.0.station.1.rate\":\"54 Mbit/s\""),
        "{wlan:?}"
    );

    let bad = |arguments: &[&str], parts: &[&str]| {
        let ended = lastmile(&[&["sweep", &scenario], arguments].concat());
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(USAGE), ""), "{ended:?}");
        parts.iter().for_each(|part| assert!(ended.stderr.contains(part), "{part:?} is missing: {ended:?}"));
    };
    bad(&["--seeds", "0"], &["--seeds", "0"]);
    bad(&["--jobs", "0"], &["0"]);
    bad(&["--seeds", "2", "--set", "seed=1,2"], &["--seeds", "seed="]);
    bad(&["--set", "link.0.queue=1 packets", "--set", "link.0.queue=2 packets"], &["link.0.queue", "twice"]);
    bad(&["--set", "link.0.queeu=1"], &["link[0].queeu", "unknown field"]);
    bad(&["--set", "link.7.queue=1"], &["link.7.queue", "no element"]);
    bad(&["--set", "wlan.0.station.1.rate=1 Mbit/s"], &["wlan.0.station.1.rate", "no [[wlan]]"]);
    bad(&["--set", "traffic.nobody.rate=1 Mbit/s"], &["traffic.nobody.rate", "no element"]);
    bad(&["--set", "link.0.queue="], &["link.0.queue=", "not a queue limit"]);
    bad(&["--set", "link.0.queue"], &["KEY=VALUES"]);
    bad(&["--set", "traffic.tcp.tcp.recovery=sack,hope"], &["recovery=hope", "unknown variant"]);
    bad(&["-o", &scratch.path("nowhere/x")], &["cannot write", "nowhere"]);
    bad(&["-o", scratch.0.to_str().unwrap()], &["is a directory"]);
}

#[test]
fn full_disks_and_unknown_interfaces() {
    let scratch = Scratch::new("full");
    let scenario = scratch.file("narrow.toml", NARROW);
    if std::path::Path::new("/dev/full").exists() {
        let swept = ["sweep", &scenario, "--seeds", "1"];
        for command in [&["help"][..], &["measure", "--help"], &["--version"], &["methods"], &swept] {
            let full = std::fs::File::create("/dev/full").unwrap();
            let ended = run(Command::new(PROGRAM).args(command).stdout(full));
            ended.is_error(MACHINE, &["cannot write to standard output: No space"]);
        }
        let record = ["measure", "127.0.0.1:1", "--record", "/dev/full"];
        lastmile(&record).is_error(MACHINE, &["cannot write /dev/full"]);
    }
    for option in ["--pcap", "--events"] {
        if std::path::Path::new("/dev/full").exists() {
            // The run's results are printed all the same.
            let ended = lastmile(&["sim", &scenario, option, "/dev/full"]);
            assert!(ended.stdout.contains("poisson"), "{ended:?}");
            Ended { stdout: String::new(), ..ended }.is_error(MACHINE, &["/dev/full", "not complete"]);
        }
        lastmile(&["sim", &scenario, option, &scratch.path("nowhere/x")])
            .is_error(USAGE, &["cannot write", "nowhere"]);
    }
    let file = scratch.path("x.pcapng");
    let at = ["sim", &scenario, "--pcap", &file, "--pcap-at", "a,elsewhere"];
    lastmile(&at).is_error(USAGE, &["elsewhere", "a, b, a>b, b>a"]);
    assert!(!std::path::Path::new(&file).exists());
    assert_eq!(lastmile(&["sim", &scenario, "--pcap", &file, "--pcap-at", "a,b>a"]).code, Some(0));
    let begins = std::fs::read(&file).unwrap();
    lastmile(&["report", &file]).is_error(USAGE, &["x.pcapng is a capture", "Wireshark", "event files"]);
    assert_eq!(lastmile(&["sim", &scenario, "--pcap", &file, "--pcap-at", "a,b>a"]).code, Some(0));
    assert_eq!(begins, std::fs::read(&file).unwrap(), "the same bytes again");
}

/// A page that needs nothing from anywhere and whose figures have axes with these labels.
#[track_caller]
fn is_drawn(scratch: &Scratch, file: &str, labels: &[&str]) {
    let page = scratch.path("page.html");
    let ended = lastmile(&["report", file, "-o", &page]);
    assert_eq!(ended.code, Some(0), "{file}: {ended:?}");
    let page = read(&page);
    for forbidden in ["http:", "https:", "<script", "<img", "<link", "url(", "@import", "NaN", "\"inf"] {
        assert!(!page.contains(forbidden), "{file}: {forbidden:?} in the page");
    }
    assert!(labels.is_empty() || page.contains("<svg"), "{file}: no figure");
    for label in labels {
        let drawn = ["text", "i"].iter().any(|tag| page.contains(&format!(">{label}</{tag}>")));
        assert!(drawn, "{file}: no axis and no curve {label:?}: {page}");
    }
}

#[test]
fn every_result_has_its_page() {
    let scratch = Scratch::new("pages");
    let scenario = scratch.file("narrow.toml", NARROW);
    let events = scratch.path("events");
    let json = |name: &str, arguments: &[&str]| {
        let ended = lastmile(arguments);
        assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
        scratch.file(name, ended.stdout)
    };
    let sim = json("sim.json", &["sim", &scenario, "--json", "--events", &events]);
    is_drawn(
        &scratch,
        &sim,
        &["goodput, Mbit/s of IP packets", "mean delay, ms", "lost of what was sent, %", "packets"],
    );
    is_drawn(&scratch, &events, &["time, s", "packets lost in 8 ms", "3 Mbit/s"]);
    let lab = ["lab", &scenario, "--json", "--set", "duration=1200 ms", "--events", &events];
    let lab = json("lab.json", &lab);
    is_drawn(&scratch, &lab, &["goodput, Mbit/s of IP packets", "lost of what was sent, %"]);
    is_drawn(&scratch, &events, &["time, s", "3 Mbit/s"]);
    let path_events = scratch.path("path-events");
    let path = json("path.json", &["sim", "path", "--json", "--events", &path_events]);
    is_drawn(&scratch, &path, &["IP layer, Mbit/s"]);
    is_drawn(&scratch, &path_events, &["results"]);
    // Compact JSON is JSON.
    let compact: Value = serde_json::from_str(&read(&path)).unwrap();
    is_drawn(&scratch, &scratch.file("compact.json", compact.to_string()), &["IP layer, Mbit/s"]);
    for format in ["jsonl", "csv"] {
        let set =
            ["--set", "link.0.queue=5 packets,50 packets", "--set", "traffic.tcp.tcp.recovery=reno,sack"];
        let sweep = json(format, &[&["sweep", &scenario, "--format", format], &set[..]].concat());
        let curve = "traffic.tcp.tcp.recovery = sack";
        is_drawn(&scratch, &sweep, &["goodput, Mbit/s", "mean delay, ms", "link.0.queue, packets", curve]);
    }
    let accuracy = json("accuracy.json", &["accuracy", "--runs", "2", "--cross", "idle", "--json"]);
    is_drawn(&scratch, &accuracy, &["error, % of the truth"]);
    let bench = r#"[{"scenario":"s","tool":"lastmile","cpu_s_per_sim_s":0.004,"peak_mb":9.5,"packets":9,"simulated_s":15},
                    {"scenario":"s","tool":"ns-2","cpu_s_per_sim_s":0.012,"peak_mb":20.0,"packets":9,"simulated_s":15}]"#;
    is_drawn(
        &scratch,
        &scratch.file("bench.json", bench),
        &["CPU ms per simulated second", "peak memory, MB"],
    );
    let conformance = r#"[{"kind":"method","name":"wbest","direction":"forward","world":"sim","verdict":"same","inputs":3,"decisions":2,"reason":null}]"#;
    is_drawn(&scratch, &scratch.file("conformance.json", conformance), &[]);

    let kinds = [
        "recordings",
        "event files",
        "sweeps",
        "sim, lab, measure, enough, accuracy, paths, bench-sim, conformance, reproduce and evaluate",
    ];
    let refused = |name: &str, content: &str, why: &str| {
        let file = scratch.file(name, content);
        lastmile(&["report", &file]).is_error(USAGE, &[&[name, why][..], &kinds[..]].concat());
    };
    refused("doctor.json", "{\"kernel\":\"6\"}", "cannot draw");
    refused("list.json", "[1, 2]", "cannot draw");
    refused("sim-torn.json", &read(&sim)[..200], "nor another result");
    lastmile(&["report", &scratch.file("empty", "")]).is_error(USAGE, &["empty", "nothing to draw"]);
    // A killed run has a page of its records so far.
    is_drawn(&scratch, &scratch.file("torn.jsonl", &read(&events)[..200]), &[]);
}

/// Event files have the tiers of `docs/json.md` and `docs/recording.md`.
#[test]
fn event_files_have_both_tiers() {
    let scratch = Scratch::new("tiers");
    let scenario = scratch.file("narrow.toml", NARROW);
    let events = scratch.path("events");
    let sim = lastmile(&["sim", &scenario, "--json", "--events", &events]).json();
    let lines: Vec<Value> = read(&events).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let order = |line: &Value| ["at", "node", "seq"].map(|key| line[key].as_u64().unwrap());
    assert!(lines.is_sorted_by_key(order));
    let of = |event: &str| lines.iter().filter(|line| line["event"] == event).collect::<Vec<_>>();
    for flow in sim["flows"].as_array().unwrap() {
        for (cause, packets) in flow["lost"].as_object().unwrap() {
            let lost = of("packet-lost");
            let is = |line: &&&Value| {
                line["flow"] == flow["flow"] && line["cause"] == *cause.as_str() && line["kind"] == "data"
            };
            assert_eq!(lost.iter().filter(is).count() as u64, packets.as_u64().unwrap(), "{flow}");
        }
    }
    let keys = |line: &Value| line.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(keys(of("packet-lost")[0]), "at by cause event flow ip_size kind node number seq");
    assert_eq!(keys(of("segment-resent")[0]), "at event flow node number seq");
    let changed = of("link-changed");
    assert_eq!(keys(changed[0]), "at delay event link node rate seq");
    assert_eq!(changed.iter().map(|line| line["link"].as_str().unwrap()).collect::<Vec<_>>(), ["a>b", "b>a"]);
    assert_eq!(
        (changed[0]["at"].as_u64(), changed[0]["rate"]["bits_per_second"].as_u64()),
        (Some(1_000_000_000), Some(3_000_000))
    );
    assert_eq!(keys(of("traffic-changed")[0]), "at event flow node rate seq");
    lastmile(&["sim", &scenario, "--events", &events, "--pcap", &events])
        .is_error(2, &["--pcap", "--events's"]);
    lastmile(&["sim", &scenario, "--events", &scenario]).is_error(2, &["--events", "the scenario's"]);
    assert_eq!(read(&scenario), NARROW);
    // A run in which nothing is lost has its decisions.
    lastmile(&["sim", "path", "--events", &events]);
    assert!(read(&events).lines().any(|line| line.contains("\"event\":\"estimated\"")));
    // A hand-off from a link to the air and back, and its losses.
    let story = include_str!("../../lastmile-sim/tests/stories/handoffs.toml").split("'''").nth(1).unwrap();
    lastmile(&["sim", &scratch.file("handoff.toml", story), "--events", &events]);
    let lines: Vec<Value> = read(&events).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let hand_offs: Vec<_> = lines.iter().filter(|line| line["event"] == "handed-off").collect();
    let said = |line: &&Value| json!([line["at"], line["host"], line["to"], line["old_queue"]]);
    assert_eq!(
        hand_offs.iter().map(said).collect::<Vec<_>>(),
        [
            json!([5_000_000_000_u64, "mobile", "base", "drop"]),
            json!([15_000_000_000_u64, "mobile", "cell", "drop"])
        ]
    );
    let dropped = lines.iter().filter(|line| line["cause"] == "handoff" && line["at"] == hand_offs[0]["at"]);
    assert_eq!(dropped.count(), 20);
    let documented = include_str!("../../../docs/recording.md");
    for word in [
        "packet-lost",
        "segment-resent",
        "link-changed",
        "station-changed",
        "handed-off",
        "traffic-changed",
        "`collision`",
    ] {
        assert!(documented.contains(word), "{word} is not documented");
    }
}

/// Ctrl-C ends a long simulation; the results so far are printed, and the files are whole.
#[test]
fn an_interrupted_simulation_prints_what_there_is() {
    let scratch = Scratch::new("interrupted");
    let events = scratch.path("events.jsonl");
    let child = Command::new(PROGRAM)
        .args(["sim", "dumbbell-tcp", "--set", "duration=9000 s", "--json", "--events", &events])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    std::thread::sleep(Duration::from_millis(500));
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).expect("our own unreaped child");
    let output = child.wait_with_output().expect("output");
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["interrupted"], true);
    assert!(json["simulated_seconds"].as_f64().is_some_and(|s| s > 0.0 && s < 9_000.0), "{json}");
    assert!(json["flows"].as_array().is_some_and(|flows| flows.len() == 5), "{json}");
    let text = std::fs::read_to_string(&events).expect("events");
    assert!(
        text.ends_with('\n') && text.lines().all(|l| serde_json::from_str::<serde_json::Value>(l).is_ok())
    );
}
