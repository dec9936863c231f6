//! The schemas of `docs/schema` against the output of the commands. A key that a schema does not name is an error here, and no
//! error for readers of documents: a key may be added without notice.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use jsonschema::{Retrieve, Uri, Validator};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::{MACHINE, closed_port};
use crate::common::{PROGRAM, Scratch, Server, lastmile};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema")
}

/// A schema in which objects have no other keys than those that it names.
fn strict(name: &str) -> Value {
    fn close(schema: &mut Value) {
        if let Value::Object(schema) = schema {
            if schema.contains_key("properties") && !schema.contains_key("additionalProperties") {
                schema.insert("additionalProperties".into(), false.into());
            }
            schema.values_mut().for_each(close);
        } else if let Value::Array(all) = schema {
            all.iter_mut().for_each(close);
        }
    }
    let text = std::fs::read_to_string(folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut schema = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
    close(&mut schema);
    schema
}

/// Finds the schemas beside.
struct Beside;

impl Retrieve for Beside {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Ok(strict(uri.path().as_str().trim_start_matches('/')))
    }
}

fn validator(name: &str) -> Validator {
    jsonschema::options()
        .with_base_uri("docs:///")
        .with_retriever(Beside)
        .build(&strict(&format!("{name}.json")))
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Names of the schemas that were tried.
#[derive(Default)]
struct Tried(BTreeSet<String>);

impl Tried {
    #[track_caller]
    fn all<'a>(&mut self, name: &str, documents: impl IntoIterator<Item = &'a Value>) {
        let validator = validator(name);
        let mut any = false;
        for document in documents {
            any = true;
            let wrong: Vec<String> = validator
                .iter_errors(document)
                .map(|error| format!("{}: {error}", error.instance_path()))
                .collect();
            assert!(wrong.is_empty(), "{name}: {}\n{document:#}", wrong.join("\n"));
        }
        assert!(any, "no {name}");
        self.0.insert(name.to_owned());
    }

    #[track_caller]
    fn one(&mut self, name: &str, arguments: &[&str]) {
        self.all(name, [&lastmile(arguments).json()]);
    }
}

fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

fn of_file(path: &str) -> Vec<Value> {
    lines(&std::fs::read_to_string(path).unwrap())
}

/// Lines of a server until it was interrupted, while `meanwhile` used it at its address.
fn served(command: &str, meanwhile: impl FnOnce(&str)) -> Vec<Value> {
    let address = closed_port();
    let port = address.rsplit_once(':').unwrap().1;
    let child = Command::new(PROGRAM)
        .args(command.split(' '))
        .args(["--bind", "127.0.0.1", "--port", port, "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    meanwhile(&address);
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    lines(&String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap())
}

#[test]
fn every_document_has_a_schema_that_it_fits() {
    let scratch = Scratch::new("schemas");
    let (events, series, swept) =
        (scratch.path("e.jsonl"), scratch.path("s.jsonl"), scratch.path("swept.jsonl"));
    let recording = scratch.path("recording.jsonl");
    let mut tried = Tried::default();

    // Real sockets.
    let lines_of_server = served("serve", |address| {
        tried.one("measure", &["measure", address, "--json", "--record", &recording]);
        tried.one("measure", &["measure", address, "--json", "--method", "all", "--max-bytes", "400kB"]);
        tried.one("enough", &["enough", "1M", address, "--json"]);
        let rounds = lastmile(&["measure", address, "--every", "1s", "--count", "1"]);
        tried.all("round", &lines(&rounds.stdout));
    });
    let (last, before) = lines_of_server.split_last().unwrap();
    tried.all("event", before);
    tried.all("counters", [last]);
    tried.one("measure", &["measure", &closed_port(), "--json"]);
    tried.all("round", &lines(&lastmile(&["measure", "no.invalid", "--every", "1s", "--count", "1"]).stdout));
    tried.one("replay", &["replay", &recording, "--json"]);
    tried.one("replay", &["replay", &recording, "--json", "--streams", "--method", "capprobe"]);
    let events_of_receiver = served("receive", |address| {
        for control in [&["--control", "tfrc+probe+zbs"][..], &["--rate", "1 Mbit/s", "--audio"]] {
            let stream = ["stream", address, "--seconds", "2s", "--json", "--events", &events];
            tried.one("stream", &[&stream[..], control].concat());
            tried.all("event", &of_file(&events));
        }
    });
    tried.all("event", &events_of_receiver);
    let events_of_sink = served("traffic sink", |address| {
        tried.one("traffic", &["traffic", "send", address, "--seconds", "1", "--json"]);
    });
    tried.all("event", &events_of_sink);
    tried.one("stream", &["stream", &closed_port(), "--control", "tfrc", "--json"]);

    // Scenarios: links, WLANs, refusals, streams, TCP.
    let tcp = concat!(env!("CARGO_MANIFEST_DIR"), "/../lastmile-sim/tests/scenarios/three-tcp.toml");
    for scenario in ["path", "ap-1", "n-down", "rfc8867-5.1", tcp] {
        let sim = ["sim", scenario, "--json", "--events", &events, "--series", &series];
        tried.one("sim", &sim);
        tried.all("series", &of_file(&series));
        // Traffic alone decides nothing.
        if scenario != tcp {
            tried.all("event", &of_file(&events));
        }
    }
    let beside = std::fs::read_to_string(tcp).unwrap().replace("6 s", "30 s");
    let all = "[[measure]]\nfrom = \"a\"\nto = \"b\"\nmethod = \"all(max_time=10 s)\"\n";
    tried.one("sim", &["sim", &scratch.file("all.toml", beside + all), "--json"]);
    let lab = lastmile(&["lab", "path", "--json"]);
    if lab.code == Some(MACHINE) {
        // No namespaces here.
        tried.0.insert("lab".into());
    } else {
        tried.all("lab", [&lab.json()]);
    }
    for (scenario, key) in [("path", "link.0.rate=5 Mbit/s,10 Mbit/s"), ("wlan-g-busy", "duration=2 s,3 s")] {
        let _ = std::fs::remove_file(&swept);
        assert_eq!(lastmile(&["sweep", scenario, "--set", key, "--seeds", "1", "-o", &swept]).code, Some(0));
        tried.all("sweep", &of_file(&swept));
    }

    // Studies.
    let case = ["evaluate", "--scenario", "rfc8867-5.1", "--set", "duration=10 s", "--json", "--runs", "2"];
    tried.one("evaluate", &[&case[..], &["--controllers", "tfrc+zbs,tcp"]].concat());
    tried.one("reproduce", &["reproduce", "lda", "--item", "figure-4", "--runs", "1", "--json"]);
    tried.one("reproduce-papers", &["reproduce", "--list", "--json"]);
    tried.one("reproduce-list", &["reproduce", "lda", "--list", "--json"]);
    tried.one("paths", &["paths", "--runs", "12", "--only", "3,10", "--without", "loss,hops", "--json"]);
    tried.one("accuracy", &["accuracy", "--runs", "2", "--cross", "idle", "--json"]);
    let enough = ["--enough", "--runs", "1", "--paths", "fifo", "--times", "2", "--json"];
    tried.one("accuracy-enough", &[&["accuracy"][..], &enough].concat());
    tried.one("accuracy", &["accuracy", "--runs", "1", "--scenario", "ap", "--json"]);
    tried.one("conformance", &["conformance", "capprobe", "--json"]);
    tried.one("bench-sim", &["bench-sim", "--only-ours", "--repeat", "1", "--json"]);

    tried.one("doctor", &["doctor", "--json"]);
    tried.one("scenarios", &["scenarios", "--json"]);
    for (registry, one) in
        [("methods", "wbest"), ("classifiers", "zbs"), ("controllers", "tfrc"), ("sources", "codec")]
    {
        tried.one(registry, &[registry, "--json"]);
        tried.one(registry, &[registry, one, "--json"]);
    }

    let there = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let there: BTreeSet<String> = there
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .filter(|name| name != "common")
        .collect();
    assert_eq!(tried.0, there, "schemas that were tried, and those of docs/schema");
}

#[test]
fn a_schema_finds_what_is_wrong() {
    let server = Server::start(&[]);
    let document = lastmile(&["measure", &server.address, "--direction", "forward", "--json"]).json();
    let wrong = |change: &dyn Fn(&mut Value)| {
        let mut document = document.clone();
        change(&mut document);
        !validator("measure").is_valid(&document)
    };
    assert!(!wrong(&|_| ()));
    assert!(wrong(&|document| document["schema"] = 1.into()));
    assert!(wrong(&|document| document["results"][0]["direction"] = "up".into()));
    assert!(wrong(&|document| document["results"][0]["added"] = 1.into()));
    assert!(wrong(&|document| drop(document.as_object_mut().unwrap().remove("peer"))));
}
