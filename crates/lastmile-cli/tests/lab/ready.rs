//! Every scenario that comes with the program runs in the lab too: its traffic alone fares, packet for packet, as in `sim`,
//! however late this machine is; where measurements or programs are beside it, results have it as well.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lastmile_sim::scenario::{BUILTIN, builtin, builtin_text};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::common::{Ended, PROGRAM, Scratch, lastmile};
use super::no_lab;

/// `lastmile lab` or `sim` on a ready scenario, so short that a suite has room for all of them: everything begins at once.
fn short(world: &str, scenario: &str, name: &str, duration: &str, more: &[&str]) -> Ended {
    let mut set = vec![format!("duration={duration}"), "warm_up=50 ms".to_owned()];
    let starts = builtin(name).expect("a ready scenario").traffic.len();
    set.extend((0..starts).map(|flow| format!("traffic.{flow}.start={} ms", 7 * flow)));
    let set: Vec<&str> = set.iter().flat_map(|set| ["--set", set]).collect();
    lastmile(&[&[world, scenario, "--json"], &set[..], more].concat())
}

/// True if the run was on time: a machine's lateness may refuse a run, but changes no figure.
fn on_time(name: &str, ended: &Ended) -> bool {
    let refused = !ended.json()["lateness"]["refused"].is_null();
    assert_eq!(ended.code, Some(i32::from(refused)), "{name}: {ended:?}");
    !refused
}

#[test]
#[ignore = "meets the wall clock: runs alone"]
fn wallclock_every_ready_scenario_runs_in_the_lab() {
    eprintln!();
    let (scratch, mut on_time_of) = (Scratch::new("ready"), [0, 0]);
    for name in BUILTIN {
        let text = builtin_text(name).expect("a ready scenario");
        let alone = scratch.file("alone.toml", text.split("[[measure]]").next().expect("what is before"));
        let lab = short("lab", &alone, name, "300 ms", &[]);
        let flows = builtin(name).expect("a ready scenario").traffic.len();
        if flows == 0 {
            // A path that is there for measurements and programs alone.
            lab.is_error(2, &["neither traffic nor measurements"]);
            continue;
        }
        let sim = short("sim", &alone, name, "300 ms", &[]);
        on_time_of[0] += u32::from(on_time(name, &lab));
        on_time_of[1] += 1;
        let (lab, sim) = (lab.json(), sim.json());
        for key in ["scenario", "seed", "results", "flows", "links", "wlans"] {
            assert_eq!(lab[key], sim[key], "{name}: {key}");
        }
        assert_eq!((lab["seconds"].as_f64(), lab["lateness"]["packets"].as_u64()), (Some(0.3), Some(0)));
        assert_eq!(lab["flows"].as_array().map(Vec::len), Some(flows), "{name}");
        let sent: u64 =
            lab["flows"].as_array().expect("flows").iter().filter_map(|f| f["sent"].as_u64()).sum();
        assert!(sent > 0 && lab["lateness"]["events"].as_u64() > Some(0), "{name}: {lab}");
    }
    let [on_time, all] = on_time_of;
    assert!(all >= 20, "{all} of {}", BUILTIN.len());
    eprintln!(
        "lab: whatever the clock: {all} ready scenarios as in the simulator, {on_time} of them on time"
    );
}

/// The lines of an event file with their places: time, node, sequence.
fn lines(file: &str) -> Vec<((u64, u64, u64), Value)> {
    let text = std::fs::read_to_string(file).expect("an event file");
    let line = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("a line");
        let [at, node, seq] = ["at", "node", "seq"].map(|key| line[key].as_u64().expect(key));
        ((at, node, seq), line)
    };
    text.lines().map(line).collect()
}

#[test]
#[ignore = "meets the wall clock: runs alone"]
fn wallclock_measurements_and_programs_stand_beside_the_traffic() {
    if no_lab() {
        return;
    }
    let scratch = Scratch::new("beside");
    let (events, pcap) = (scratch.path("events.jsonl"), scratch.path("all.pcapng"));
    let more = ["--set", "measure.0.start=100 ms", "--events", &events, "--pcap", &pcap];
    // A queue that the measurement and the connection overflow together.
    let narrow = ["--set", "link.0.queue=4 packets"];
    let lab = lastmile(&[&["lab", "path", "--json", "--set", "warm_up=50 ms"], &more[..], &narrow].concat());
    assert!(matches!(lab.code, Some(0 | 1)), "{lab:?}");
    let json = lab.json();
    assert!(json["results"].as_array().is_some_and(|rows| !rows.is_empty()), "{json}");
    assert!(json["flows"][0]["sent"].as_u64() > Some(50) && json["exit_code"].is_null(), "{json}");
    assert!(json["links"][0]["packets"].as_u64() > json["flows"][0]["received"].as_u64(), "{json}");
    // Both tiers, in one order, although endpoints decide on threads of their own.
    let lines = lines(&events);
    let has = |event: &str| lines.iter().any(|(_, line)| line["event"] == event);
    assert!(has("packet-lost") && has("stream-judged") && has("session-opened"), "{lines:?}");
    assert!(lines.is_sorted_by_key(|(place, _)| *place), "{lines:?}");
    // Probes and their reports are in the capture: UDP to the reflector's port, beside the traffic's.
    let begins = std::fs::read(&pcap).expect("a capture");
    assert_eq!(begins[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
    let port = 8620_u16.to_be_bytes();
    assert!(begins.windows(2).filter(|bytes| *bytes == port).count() > 50);

    // A program's output goes aside, so that the document is alone on standard output.
    let script = ["--in", "sender", "--", "sh", "-c", "echo aside; sleep 0.3; exit 7"];
    let ran = lastmile(&[&["lab", "path", "--json", "--set", "duration=5 s"], &script[..]].concat());
    let json = ran.json();
    assert_eq!((ran.code, json["exit_code"].as_i64()), (Some(7), Some(7)), "{ran:?}");
    assert!(ran.stderr.starts_with("aside\n") && ran.stderr.contains("exit code 7"), "{ran:?}");
    assert!(json["flows"][0]["sent"].as_u64() > Some(20) && json["interrupted"] == false, "{json}");
    eprintln!("lab: whatever the clock: traffic beside measurements and programs");
}

/// The same files as in the simulator, byte for byte, from a run of traffic alone.
#[test]
fn captures_and_event_files_are_the_simulators() {
    let scratch = Scratch::new("files");
    let text = builtin_text("path").expect("a ready scenario");
    let alone = scratch.file("alone.toml", text.split("[[measure]]").next().expect("what is before"));
    let files = |world: &str| {
        let [events, pcap] = ["events", "pcap"].map(|kind| scratch.path(&format!("{world}.{kind}")));
        let more = [
            "--events",
            &events,
            "--pcap",
            &pcap,
            "--set",
            "link.0.rate=4 Mbit/s",
            "--set",
            "link.0.queue=2 packets",
        ];
        let ended = short(world, &alone, "path", "700 ms", &more);
        assert!(matches!(ended.code, Some(0 | 1)) && ended.stderr.is_empty(), "{ended:?}");
        [events, pcap].map(|file| std::fs::read(&file).expect("it is written"))
    };
    let (lab, sim) = (files("lab"), files("sim"));
    assert!(sim.iter().all(|file| file.len() > 1_000), "something is lost, and captured");
    assert!(lab == sim);
}

#[test]
fn a_lab_of_a_month_ends_at_once_when_it_is_interrupted() {
    let scratch = Scratch::new("month");
    let scenario = scratch.file(
        "month.toml",
        "name = \"month\"\nduration = \"2678400 s\"\n[host.a]\n[host.b]\n[[link]]\nfrom = \"a\"\nto = \"b\"\n\
         [[traffic]]\nkind = \"cbr\"\nfrom = \"a\"\nto = \"b\"\nrate = \"100 kbit/s\"\nsize = \"1000 B\"\n",
    );
    let events = scratch.path("events.jsonl");
    let lab = Command::new(PROGRAM)
        .args(["lab", &scenario, "--json", "--events", &events])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    std::thread::sleep(Duration::from_millis(700));
    kill(Pid::from_raw(lab.id() as i32), Signal::SIGINT).expect("our own unreaped child");
    let interrupted = Instant::now();
    let output = lab.wait_with_output().expect("its end");
    assert!(interrupted.elapsed() < Duration::from_secs(2), "{:?}", interrupted.elapsed());
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let json: Value = serde_json::from_slice(&output.stdout).expect("what there was until then");
    let (sent, seconds) = (json["flows"][0]["sent"].as_f64(), json["seconds"].as_f64());
    assert!((sent.unwrap() - seconds.unwrap() * 12.5).abs() <= 1.0 && sent > Some(0.0), "{json}");
    assert_eq!((&json["interrupted"], &json["exit_code"]), (&true.into(), &Value::Null));
    let keys = |of: &Value| of.as_object().expect("a table").keys().cloned().collect::<Vec<_>>().join(" ");
    let all = "exit_code flows hosts interrupted lateness links options programs results scenario schema seconds seed streams wlans world";
    assert_eq!(keys(&json), all);
    let lateness = "allowed_ns core_share device_drops events late moved p50_ns p99_ns packets realtime refused stolen_share worst_ns";
    assert_eq!(keys(&json["lateness"]), lateness);
    assert!(std::fs::exists(&events).unwrap());
}

#[test]
fn a_scenario_in_which_nothing_happens_is_refused() {
    let scratch = Scratch::new("nothing");
    let text = "name = \"x\"\nduration = \"5 s\"\n[host.a]\n[host.b]\n[[link]]\nfrom = \"a\"\nto = \"b\"\n";
    let nothing = scratch.file("nothing.toml", text);
    lastmile(&["lab", &nothing]).is_error(2, &["neither traffic nor measurements", "--in HOST -- COMMAND"]);
    lastmile(&["lab", "wlh", "--realtime"]).is_error(2, &["--realtime", "this one has none"]);
    lastmile(&["lab", "wlh", "--record", "x"]).is_error(2, &["--record", "this one has none"]);
    lastmile(&["lab", "wlh", "--pcap", "x", "--pcap-at", "nobody"]).is_error(2, &["nobody", "there are: "]);
}
