//! The JSON, as `docs/json.md` has it.

use serde_json::Value;

use super::{MACHINE, PEER, USAGE, closed_port};
use crate::common::{Scratch, Server, lastmile};

fn keys_of(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
    keys.sort_unstable();
    keys
}

#[track_caller]
pub(crate) fn has_keys(value: &Value, keys: &str) {
    let mut wanted: Vec<&str> = keys.split_whitespace().collect();
    wanted.sort_unstable();
    assert_eq!(keys_of(value), wanted, "{value:#}");
}

/// A document that is an object: its keys, and the version of their meaning.
pub(crate) fn is_document(json: &Value, keys: &str) {
    has_keys(json, &format!("schema {keys}"));
    assert_eq!(json["schema"], 2, "{json:#}");
}

const ROW: &str = "method asked direction quantity rate_bps more_than_bps burst_bytes packet_bytes layer interval next truth_kind warning refused code \
                   seconds bytes probe_bytes control_bytes credit_bytes bytes_received streams streams_discarded";

const AP_1: &str = include_str!("../../../lastmile-sim/scenarios/ap-1.toml");
const TRUTHS: &str = "from to start_seconds truth_capacity_bps truth_sustained_bps truth_shortest_bps truth_window_bps truth_mean_bps truth_next_bps truth_next_missing truth_over truth_saturation_window_bps \
                      truth_saturation_mean_bps error error_bps error_saturation";

#[test]
fn truths_of_a_wlan() {
    let scratch = Scratch::new("truths");
    let mbps = |value: &Value| value.as_f64().unwrap() / 1e6;
    let near = |value: &Value, expected: f64| {
        assert!((mbps(value) / expected - 1.0).abs() < 0.01, "{value}, not {expected} Mbit/s");
    };
    let json = lastmile(&["sim", "ap-1", "--json"]).json();
    json["results"].as_array().unwrap().iter().for_each(|row| has_keys(row, &format!("{ROW} {TRUTHS}")));
    let row = &json["results"][2];
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
    let text = lastmile(&["sim", "ap-1", "-v"]).stdout;
    assert!(text.contains("saturation") && text.contains("one saturating flow"), "{text}");
    assert_eq!(
        lastmile(&["sim", "ap-1", "--json"]).json(),
        json,
        "twins have no random numbers of their own"
    );

    // With aggregating stations the spare rate is known only of the run, and the window has none.
    let row = &lastmile(&["sim", "n-down", "--json"]).json()["results"][0];
    assert_eq!((&row["truth_over"], &row["truth_window_bps"]), (&"run".into(), &Value::Null));
    assert!((51.0..54.0).contains(&mbps(&row["truth_mean_bps"])), "{row:#}");
    assert!(lastmile(&["sim", "n-down", "-v"]).stdout.contains("truth and error over the whole run"));

    // A wired link that is narrower than the air, and 4.6 Mbit/s by it.
    let narrow = AP_1.replace("100 Mbit/s", "10 Mbit/s");
    let file = scratch.file("narrow.toml", narrow);
    let json = lastmile(&["sim", &file, "--json"]).json();
    let row = &json["results"][2];
    near(&row["truth_capacity_bps"], 10.0 * 1488.0 / 1526.0);
    near(&row["truth_mean_bps"], (10.0 - 4.6 * 1538.0 / 1500.0) * 1488.0 / 1526.0);
}

#[test]
fn json_of_a_simulated_run() {
    let json = lastmile(&["sim", "path", "--json"]).json();
    is_document(
        &json,
        "world scenario seed simulated_seconds interrupted options results flows links wlans streams",
    );
    assert_eq!((&json["world"], &json["scenario"]), (&"sim".into(), &"path".into()));
    let flow =
        "flow kind from to goodput_bps sent received lost under_way delay_mean_s delay_max_s out_of_order";
    has_keys(&json["flows"][0], flow);
    let link =
        "from to packets dropped lost marked queue_mean_bytes queue_max_bytes queue_max_packets busy_share";
    has_keys(&json["links"][0], link);
    assert_eq!(json["wlans"], Value::Array(vec![]));
    let cell = ["sim", "wlan-g-busy", "--json", "--set", "duration=2 s"];
    let keys = "wlan from to packets delivered dropped lost transmissions collisions frames channel_errors airtime_s \
                lost_by_cause queue_mean_bytes queue_max_packets air_share busy_share";
    has_keys(&lastmile(&cell).json()["wlans"][0], keys);
    let rows = json["results"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    for row in rows {
        has_keys(row, &format!("{ROW} {TRUTHS}"));
        if row["quantity"] == "sustained-rate" {
            // 25 packets are ahead of a train's last four gaps and the packet before them.
            assert_eq!((&row["rate_bps"], &row["burst_bytes"]), (&Value::Null, &(25 * 1488 / 2).into()));
            assert_eq!((&row["error"], &row["truth_sustained_bps"]), (&Value::Null, &10_000_000.into()));
            continue;
        }
        assert_eq!((&row["truth_kind"], &row["truth_saturation_mean_bps"]), (&"queue".into(), &Value::Null));
        assert_eq!(row["error_saturation"], Value::Null);
        assert!(row["error"].as_f64().unwrap().abs() < 0.01, "{row:#}");
        let sum = ["probe_bytes", "control_bytes", "credit_bytes"].map(|key| row[key].as_u64().unwrap());
        assert_eq!(row["bytes"].as_u64().unwrap(), sum.iter().sum::<u64>());
    }
    assert_eq!(rows[0]["quantity"], "capacity");
    has_keys(&rows[0]["interval"], "low_bps high_bps confidence method");
    assert_eq!((&rows[0]["burst_bytes"], &rows[2]["burst_bytes"]), (&(2 * 1488).into(), &(30 * 1488).into()));
    assert_eq!(rows[2]["quantity"], "available-bandwidth");
}

#[test]
fn json_of_a_measurement() {
    let server = Server::start(&[]);
    let json = lastmile(&["measure", &server.address, "--json"]).json();
    is_document(&json, "version time host local peer rtt_seconds options results warnings warning_codes");
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
        has_keys(
            method,
            "name about paper estimates round_trip resolution options brief pattern signal search weak in_all",
        );
        let mut one = lastmile(&["methods", method["name"].as_str().unwrap(), "--json"]).json();
        // Alone it is a document.
        assert_eq!(one.as_object_mut().unwrap().remove("schema"), Some(2.into()));
        assert_eq!(one, *method);
        for option in one["options"].as_array().unwrap() {
            has_keys(option, "name kind default possible help source");
        }
    }
    assert!(methods.as_array().unwrap().iter().any(|m| m["name"] == "wbest"));
    for (registry, known, keys) in [
        ("classifiers", "zbs", "name about paper options resolution"),
        ("controllers", "tfrc", "name about paper options needs below classifier aliases"),
        ("sources", "codec", "name about paper options needs_sizes"),
    ] {
        let all = lastmile(&[registry, "--json"]).json();
        all.as_array().unwrap().iter().for_each(|entry| has_keys(entry, keys));
        let mut one = lastmile(&[registry, known, "--json"]).json();
        one.as_object_mut().unwrap().remove("schema");
        assert!(all.as_array().unwrap().contains(&one), "{one:#}");
        assert!(lastmile(&[registry]).stdout.contains(known));
        lastmile(&[registry, "wishful"]).is_error(USAGE, &["wishful", known]);
    }
    let listed = lastmile(&["controllers", "tfrc"]).stdout;
    assert!(listed.contains("RFC 5348") && listed.contains("preset"), "{listed}");
}

#[test]
fn scenarios_that_come_with_the_program() {
    let json = lastmile(&["scenarios", "--json"]).json();
    let names: Vec<&str> = json.as_array().unwrap().iter().filter_map(|row| row["name"].as_str()).collect();
    assert!(
        names.starts_with(lastmile_sim::scenario::BUILTIN) && names.contains(&"rfc8867-5.1"),
        "{names:?}"
    );
    json.as_array().unwrap().iter().for_each(|row| has_keys(row, "name description"));
    let listed = lastmile(&["scenarios", "-v"]);
    assert_eq!(listed.stdout.lines().count(), names.len() + 1, "{listed:?}");
    // The printed text is a file that runs.
    let scratch = Scratch::new("builtin");
    let file = scratch.file("path.toml", lastmile(&["scenarios", "path"]).stdout);
    assert_eq!(lastmile(&["sim", &file]).code, Some(0));
    lastmile(&["scenarios", "nowhere"]).is_error(USAGE, &["nowhere", "`lastmile scenarios`"]);
    lastmile(&["scenarios", "path", "--json"]).is_error(USAGE, &["--json", "see lastmile scenarios --help"]);
}

#[test]
fn json_of_the_doctor() {
    let ended = lastmile(&["doctor", "--json"]);
    let json = ended.json();
    is_document(&json, "kernel cores load realtime lateness lateness_realtime findings");
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
    let document = lastmile(&arguments).json();
    is_document(&document, "options rows");
    assert!(document["options"]["wbest"]["pairs"].is_u64(), "{document:#}");
    let json = &document["rows"];
    let keys = "world scenario rate_mbps cross method asked direction trains n refused more_than seconds_p50 bytes_p50 control_bytes_p50 \
                truth_p50_bps saturation_p50_bps error_saturation_p50 error_mean_p50 error_mean_p90 floor_mean_p50 error_next_p50 error_next_p90 floor_next_p50 error_window_p50 error_window_p90 bias_window_p50 \
                error_worst_of_capacity coverage coverage_next rate_p50_bps moved_most moved_simulated_most reasons";
    json.as_array().unwrap().iter().for_each(|row| has_keys(row, keys));
    assert_eq!(json[0]["n"], 2);
    // WLANs: TCP leaves nothing, so that there is no relative error, and a saturating flow takes its share.
    let json =
        lastmile(&["accuracy", "--runs", "2", "--scenario", "ap,ap-4", "--json"]).json()["rows"].take();
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
    let both = lastmile(&["accuracy", "--scenario", "ap", "--rate", "10M"]);
    assert!(both.code == Some(USAGE) && both.stderr.contains("cannot be used with '--rate"), "{both:?}");
}

#[test]
fn json_of_paths() {
    let arguments = ["paths", "--runs", "12", "--only", "3,10", "--without", "loss,cubic,hops"];
    let json = lastmile(&[&arguments[..], &["--json"]].concat()).json();
    has_keys(&json, "schema paths rows codes costs removed numbers answers durations");
    let list = |key: &str| json[key].as_array().unwrap().clone();
    let keys = "method row n right held warned silent silent_share silent_low silent_high kept refused unjudged intervals holding score nexts next_holding";
    list("rows").iter().for_each(|row| has_keys(row, keys));
    list("codes").iter().for_each(|row| has_keys(row, "method code refusal n wrong"));
    list("costs").iter().for_each(|row| has_keys(row, "method loaded n bytes seconds"));
    let keys = "feature method paths right turned_silent silent turned_right turned_held turned_warned turned_refused numbers";
    list("removed").iter().for_each(|row| has_keys(row, keys));
    assert!(!list("removed").is_empty());
    let keys = "path method direction quantity verdict kept rate_bps bound interval truth_bps capacity_bps holds next_holds score codes changed tags";
    list("numbers").iter().for_each(|row| has_keys(row, keys));
    list("answers")
        .iter()
        .for_each(|row| has_keys(row, "path method direction bytes seconds refusal loaded"));
    assert_eq!(list("answers").len(), 2 * 3 * 2, "two paths, three methods, both ways");
    // The scenario of a path has its numbers, and the same truths where it is as long.
    let scratch = Scratch::new("paths");
    let shown = lastmile(&["paths", "--runs", "12", "--show", "3"]);
    let file = scratch.file("path.toml", &shown.stdout);
    let length = format!("duration={} s", json["durations"]["3"]);
    let sim = lastmile(&["sim", &file, "--set", &length, "--json"]).json();
    let rates = |rows: &[Value], of: &dyn Fn(&Value) -> bool, key: &str| -> Vec<(Value, Value)> {
        let known = rows.iter().filter(|row| of(row) && row["rate_bps"].is_u64());
        known.map(|row| (row["rate_bps"].clone(), row[key].clone())).collect()
    };
    let own = rates(&list("numbers"), &|row| row["path"] == 3 && row["quantity"] == "capacity", "truth_bps");
    let simulated = sim["results"].as_array().unwrap();
    assert_eq!(own, rates(simulated, &|row| row["quantity"] == "capacity", "truth_capacity_bps"));
    let page = scratch.path("paths.html");
    let text = lastmile(&["paths", "--runs", "12", "--only", "3", "--list", "-v", "--report", &page]).stdout;
    assert!(text.contains("jitter in order") && text.contains("right without"), "{text}");
    assert!(std::fs::read_to_string(page).unwrap().contains("Random paths"));
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
            let Some(rate) = row["rate_bps"].as_u64() else {
                assert_eq!(row["quantity"], "sustained-rate", "{row:#}");
                continue;
            };
            assert!((19_900..=20_100).contains(&rate), "{method} {direction} {queue}: {row:#}");
        }
    }
}
