//! `lastmile evaluate`: a small evaluation whose numbers are known by hand, its forms, and what cannot be evaluated.

use serde_json::Value;

use super::USAGE;
use super::json::{has_keys, is_document};
use crate::common::{Scratch, lastmile};
use crate::documents::hold;

/// A path of 1 Mbit/s; others have 200 kbit/s of it.
const SMALL: &str = r#"
name = "small"
duration = "20 s"
[host.a]
[host.b]
[host.other]
[[link]]
from = "a"
to = "r"
[[link]]
from = "other"
to = "r"
[[link]]
from = "r"
to = "b"
rate = "1 Mbit/s"
delay = "20 ms"
queue = "25 kB"
[[stream]]
name = "video"
from = "a"
to = "b"
control = "tfrc"
max_rate = "2 Mbit/s"
source = "cbr"
stop = "19 s"
[[stream]]
name = "audio"
from = "a"
to = "b"
rate = "50 kbit/s"
[[traffic]]
name = "udp"
kind = "cbr"
from = "other"
to = "b"
rate = "150 kbit/s"
size = "500 B"
"#;

/// A stream over the air alone, beside nothing that is random.
const AIR: &str = r#"
name = "air"
duration = "8 s"
[host.ap]
[host.phone]
[[wlan]]
standard = "g"
station = [{ name = "ap" }, { name = "phone", ap = "ap", rate = "54 Mbit/s" }]
[[stream]]
name = "video"
from = "ap"
to = "phone"
control = "tfrc"
"#;

/// Controllers whose numbers no change of a scheme moves.
const FIXED: &str = "fixed(rate=400 kbit/s),fixed(rate=1600 kbit/s)";

fn evaluated(scratch: &Scratch, options: &[&str]) -> crate::common::Ended {
    let file = scratch.file("small.toml", SMALL);
    let name = ["evaluate", "--scenario", &file, "--stream", "video", "--controllers", FIXED, "--runs", "2"];
    lastmile(&[&name[..], options].concat())
}

#[test]
fn a_heat_map_is_no_other_image_than_svg() {
    let scratch = Scratch::new("evaluate-map");
    let (png, svg) = (scratch.path("map.png"), scratch.path("map.svg"));
    evaluated(&scratch, &["--heat-map", &png]).is_error(USAGE, &["the heat map is an SVG", &svg]);
    assert!(!std::path::Path::new(&png).exists());
}

#[test]
fn a_small_evaluation_has_the_numbers_that_are_known_by_hand() {
    let scratch = Scratch::new("evaluate");
    let [page, csv, map] = ["page.html", "numbers.csv", "map.svg"].map(|name| scratch.path(name));
    let ended = evaluated(&scratch, &["--json", "--report", &page, "--csv", &csv, "--heat-map", &map]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let json = ended.json();
    is_document(&json, "evaluation runs controllers sources variants playout_ms metrics scenarios");
    assert_eq!((&json["evaluation"], &json["runs"]), (&Value::Null, &2.into()));
    let scenario = &json["scenarios"][0];
    has_keys(
        scenario,
        "scenario description seconds from_s streams columns rows differences changes charts alike values failed",
    );
    assert_eq!(scenario["alike"], serde_json::json!([]));
    assert_eq!(scenario["streams"], serde_json::json!(["video"]));
    let number = |row: &Value, key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key}: {row:#}"));
    let near = |row: usize, key: &str, expected: f64, within: f64| {
        let found = number(&scenario["rows"][row], key);
        assert!((found - expected).abs() <= within, "{key} of row {row}: {found}, not {expected}");
    };
    // 50 and 150 of 1000 kbit/s are others', so that half of the rest is used. 1600 fills it: of 1800 in all each gets between what others leave
    // and its share of 1000, since small packets find room where large ones do not.
    near(0, "utilisation", 50.0, 1.0);
    near(0, "of_possible", 50.0, 1.0);
    near(0, "received_kbps", 400.0, 6.0);
    near(0, "loss", 0.0, 0.0);
    near(0, "convergence_s", 0.0, 0.0);
    near(0, "unconverged", 0.0, 0.0);
    near(0, "variation", 0.0, 1.5);
    near(0, "swings_per_min", 0.0, 0.0);
    // A frame of 1667 B is two packets, and each takes 6.67 ms on the link.
    near(0, "queueing_p50_ms", 6.67, 0.01);
    // The second one leaves half a frame's time, 16.67 ms, after the frame was made, and arrives 26.67 ms later.
    near(0, "frame_p50_ms", 43.33, 0.1);
    near(0, "frames_late", 0.0, 0.0);
    near(0, "frozen", 0.0, 0.0);
    near(0, "pacing", 1.0, 0.0);
    near(0, "padding", 0.0, 0.0);
    // An oracle has the 800 kbit/s that are left; its frames of two packets wait no longer than these.
    near(0, "regret", 50.0, 1.0);
    near(0, "regret_queue_ms", 0.0, 6.0);
    near(1, "regret_queue_ms", 190.0, 12.0);
    near(1, "utilisation", 105.5, 5.6);
    near(1, "loss", 47.2, 2.8);
    // 25 kB wait for 200 ms at 1 Mbit/s.
    near(1, "queue_ms", 195.0, 12.0);
    near(1, "queueing_p95_ms", 205.0, 8.0);
    let delay =
        number(&scenario["rows"][1], "delay_p95_ms") - number(&scenario["rows"][1], "queueing_p95_ms");
    assert!((delay - 20.0).abs() < 0.01, "propagation: {delay} ms");
    near(1, "late", 0.0, 0.0);
    // Feedback every 50 ms, receiver reports, sender reports not.
    assert!((5.0..40.0).contains(&number(&scenario["rows"][0], "feedback_kbps")), "{scenario:#}");
    // A stream alone has no fairness index, and there is no TCP.
    assert!(scenario["rows"][0]["jain"].is_null() && scenario["rows"][0]["tcp_share"].is_null());
    let more = &scenario["differences"][0];
    assert_eq!(more["controller"], "fixed(rate=1600 kbit/s)");
    // The values behind a mean, of a number in which the runs differ.
    let values = scenario["values"]["fixed(rate=1600 kbit/s)"].as_object().unwrap();
    let two = |values: &Value| Some([values[0].as_f64()?, values[1].as_f64()?]);
    let mut differing = values.iter().filter_map(|(name, values)| Some((name, two(values)?)));
    let (name, values) = differing.find(|(_, [one, other])| one != other).expect("two seeds are two runs");
    near(1, name, (values[0] + values[1]) / 2.0, 1e-9);
    let both = [0, 1].map(|row| number(&scenario["rows"][row], "utilisation"));
    assert!((number(more, "utilisation") - (both[1] - both[0])).abs() < 1e-9, "{more:#}");
    assert!(number(more, "utilisation_low") <= number(more, "utilisation_high"));
    assert_eq!(scenario["changes"][0]["change"], "start");
    // A shorter playout delay makes all of those late that wait.
    let late = evaluated(&scratch, &["--json", "--playout", "100 ms"]).json();
    assert!(number(&late["scenarios"][0]["rows"][1], "late") > 45.0, "{late:#}");
    // From the eleventh second on: nine of 19 s, and no change in them. Nearly from the beginning on: the same losses, counted otherwise.
    let from = |time: &str| evaluated(&scratch, &["--json", "--from", time]).json()["scenarios"][0].clone();
    let (half, whole) = (from("10 s"), from("1 ms"));
    assert!(half["from_s"] == 10.0 && half["rows"][0]["convergence_s"].is_null(), "{half:#}");
    assert!((number(&half["rows"][0], "received_mbit") - 3.6).abs() < 0.1, "{half:#}");
    assert!((number(&half["rows"][1], "loss") - 47.2).abs() < 2.8, "{half:#}");
    let losses = [&whole, scenario].map(|of| number(&of["rows"][1], "loss"));
    assert!((losses[0] - losses[1]).abs() < 0.1, "{losses:?}");
    // The same numbers as CSV, and drawn.
    let csv = std::fs::read_to_string(&csv).unwrap();
    assert!(csv.starts_with("scenario,controller,utilisation,utilisation_low,"), "{csv}");
    assert_eq!(csv.lines().count(), 3, "{csv}");
    assert!(
        csv.lines().nth(1).is_some_and(|row| row.starts_with("small,fixed(rate=400 kbit/s),49.96,")),
        "{csv}"
    );
    assert!(std::fs::read_to_string(&map).unwrap().contains(">50</text>"));
    // The page, and the same by `report`.
    let html = std::fs::read_to_string(&page).unwrap();
    for wanted in ["small", "queueing p95 ms", "Distribution of delays", "More than fixed(rate=400 kbit/s)"] {
        assert!(html.contains(wanted), "{wanted:?} is missing");
    }
    let file = scratch.file("small.json", &ended.stdout);
    let again = lastmile(&["report", &file, "-o", "-"]);
    assert_eq!((again.code, again.stdout.trim_end()), (Some(0), html.trim_end()));
}

#[test]
fn the_table_is_the_one_that_was() {
    let scratch = Scratch::new("evaluate-table");
    let ended = evaluated(&scratch, &[]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    hold(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/evaluate.txt"), &ended.stdout);
    // By any number of cores.
    assert_eq!(evaluated(&scratch, &["--threads", "1"]).stdout, ended.stdout);
}

#[test]
fn runs_that_are_alike_are_said_to_be() {
    let scratch = Scratch::new("evaluate-alike");
    let text = SMALL.split("[[stream]]\nname = \"audio\"").next().unwrap();
    let file = scratch.file("alone.toml", text);
    let of = |more: &[&str]| {
        let ended = lastmile(&[&["evaluate", "--scenario", &file, "--controllers", "tfrc"], more].concat());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended
    };
    let said = "runs identical for every seed: tfrc; no random draw of the scenario reaches them";
    let ended = of(&["--runs", "2", "-v"]);
    assert!(
        ended.stdout.contains(said) && ended.stdout.contains("`start_within` of [[stream]]"),
        "{ended:?}"
    );
    let scenario = &of(&["--runs", "2", "--json"]).json()["scenarios"][0];
    assert_eq!(scenario["alike"], serde_json::json!(["tfrc"]));
    // One run is like no other, and losses are drawn.
    assert!(!of(&["--runs", "1"]).stdout.contains("identical"));
    assert!(!of(&["--runs", "2", "--loss", "0.01"]).stdout.contains("identical"));
}

#[test]
fn tcp_and_variants_stand_in_the_place_of_what_a_file_has() {
    let options = ["--scenario", "rfc8867-5.6", "--set", "duration=20 s", "--runs", "1", "--json"];
    let of = |more: &[&str]| {
        let ended = lastmile(
            &[&["evaluate", "--controllers", "fixed(rate=1 Mbit/s),tcp"], &options[..], more].concat(),
        );
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.json()
    };
    let plain = of(&["--stream", "video"]);
    let rows = &plain["scenarios"][0]["rows"];
    // Beside 1 Mbit/s that never yields TCP gets about half. Two TCP flows, one of them 5 s shorter, share it all.
    let share = |row: usize| rows[row]["tcp_share"].as_f64().unwrap();
    assert!((40.0..56.0).contains(&share(0)) && (20.0..80.0).contains(&share(1)), "{rows:#}");
    assert!(rows[1]["loss"].as_f64().unwrap() > 0.0 && rows[1]["late"].is_null(), "{rows:#}");
    let pie = of(&["--stream", "video", "--queue", "pie", "--jitter", "--loss", "0.05"]);
    assert_eq!(pie["variants"], serde_json::json!(["pie", "5 % lost at random", "jitter"]));
    let of_pie = &pie["scenarios"][0]["rows"][0];
    let number = |row: &Value, key: &str| row[key].as_f64().unwrap();
    assert!(number(of_pie, "queue_ms") < number(&rows[0], "queue_ms") / 2.0, "{of_pie:#}");
    assert!(number(of_pie, "loss") - number(of_pie, "congestion_loss") > 3.0, "{of_pie:#}");
}

#[test]
fn runs_begin_with_the_seed_that_is_named() {
    let scratch = Scratch::new("evaluate-seed");
    let received = |options: &[&str]| {
        let json = evaluated(&scratch, &[&["--json"], options].concat()).json();
        let values = &json["scenarios"][0]["values"];
        values.as_object().unwrap().values().next().unwrap()["delay_p95_ms"].clone()
    };
    let (first, second) = (received(&[]), received(&["--seed", "2"]));
    assert_eq!(first[1], second[0], "{first} {second}");
    evaluated(&scratch, &["--seed", "0"]).is_error(USAGE, &["--seed"]);
    let league = ["evaluate", "league", "--suite", "l4s", "--brief", "--runs", "1", "--controllers", FIXED];
    let csv = scratch.path("league.csv");
    for (options, said) in [(&["--csv", &csv][..], "seeds 101 on"), (&["--seed", "7"], "seeds 7 on")] {
        let ended = lastmile(&[&league[..], options].concat());
        assert!(ended.stdout.contains(said), "{}", ended.stdout);
    }
    let rows = std::fs::read_to_string(&csv).unwrap();
    let has = |line: &str, end: &str| assert!(line.contains(end), "{line}");
    has(rows.lines().next().unwrap(), ",suite,pareto,fair,dominates,dominated,worst_seed,worst_frame_p95_ms");
    has(rows.lines().nth(1).unwrap(), ",l4s,true,,false,false,101,");
}

#[test]
fn what_cannot_be_evaluated_is_refused_with_its_reason() {
    let scratch = Scratch::new("evaluate-refused");
    let silent = scratch.file("silent.toml", SMALL.split("[[stream]]").next().unwrap());
    let small = scratch.file("small.toml", SMALL);
    let air = scratch.file("air.toml", AIR);
    let measures = scratch.path("nowhere.toml");
    for (options, parts) in [
        (&["--scenario", &small, "--controllers", "wishful"][..], &["--controllers wishful", "tfrc"][..]),
        (&["--scenario", &small, "--controllers", "tfrc+wishful"], &["wishful", "zbs"]),
        (&["--scenario", &small, "--controllers", "tfrc(speed=9)"], &["speed", "tfrc"]),
        (&["--scenario", &small, "--controllers", "tfrc,tfrc"], &["names tfrc twice"]),
        (&["--scenario", &small, "--controllers", "tfrc", "--from=-1 s"], &["--from -1 s", "begins at 0 s"]),
        (
            &["--scenario", &small, "--controllers", "vtp,vtp(hold=areas)"],
            &["one controller twice: vtp and vtp(hold=areas) are the same"],
        ),
        (
            &["--scenario", &air, "--jitter"],
            &["air.toml: --jitter is that of a [[link]]", "\"video\", only a WLAN"],
        ),
        (&["--scenario", &small, "--controllers", ","], &["name 1 of the list is empty"]),
        (&["--scenario", &small, "--runs", "0"], &["--runs", "1..=10000"]),
        (&["--scenario", &small, "--stream", "audio"], &["small.toml", "\"audio\" is fixed", "control"]),
        (&["--scenario", &small, "--stream", "picture"], &["\"picture\"", "video, audio"]),
        (&["--scenario", &small, "--queue", "step"], &["--queue step", "ECT(1)"]),
        (&["--scenario", &small, "--queue", "fastest"], &["--queue", "fastest", "pie"]),
        (&["--scenario", &small, "--loss", "7"], &["--loss", "0 to 1"]),
        (&["--scenario", &small, "--set", "link.9.rate=1 Mbit/s"], &["link.9"]),
        (&["--scenario", &silent], &["silent.toml", "nothing is tested", "[[stream]]"]),
        (&["--scenario", &measures], &["cannot read scenario", "nowhere.toml"]),
        (&["--scenario", "rfc8869-3.2-n", "--queue", "pie"], &["rfc8869-3.2-n", "none of a known rate"]),
        (&["rmcat", "--scenario", &small], &["cannot be used with"]),
        (&[], &["--scenario FILE", "rmcat"]),
        (&["everything"], &["everything", "rmcat"]),
    ] {
        lastmile(&[&["evaluate"], options].concat()).is_error(USAGE, parts);
    }
}

#[test]
fn every_number_of_an_evaluation_is_documented() {
    let scratch = Scratch::new("evaluate-documented");
    let page = include_str!("../../../../docs/evaluate-numbers.md");
    let json = evaluated(&scratch, &["--json"]).json();
    for metric in json["metrics"].as_array().unwrap() {
        let name = metric["name"].as_str().unwrap();
        assert!(page.contains(&format!("`{name}`")), "{name} is missing");
        assert!(!metric["unit"].as_str().unwrap().is_empty());
    }
    let section = include_str!("../../../../docs/json.md").split("## `evaluate`").nth(1).unwrap();
    for key in "evaluation runs controllers sources variants playout_ms metrics scenarios streams rows differences changes charts alike values".split(' ') {
        assert!(section.contains(&format!("`{key}`")), "{key} is missing");
    }
}
