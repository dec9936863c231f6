//! Links and stations that traces drive: departures worked by hand, and errors in traces.

use std::path::Path;
use std::sync::{Arc, Mutex};

use lastmile::time::{Span, Time};
use lastmile_sim::monitor::accounting::Watched;
use lastmile_sim::network::trace::{Source, Trace, TraceForm};
use lastmile_sim::scenario::{Override, Scenario, build};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scenarios/traces");

/// When each packet left the link, in milliseconds.
fn departures(set: &[(&str, &str)]) -> Vec<f64> {
    let set: Vec<_> = set.iter().map(|&(key, value)| Override::new(key, value)).collect();
    let file = format!("{FOLDER}/link.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let scenario = Scenario::parse_with(&file, &text, &set).unwrap();
    let mut simulation = build(&scenario, 1, vec![]).unwrap();
    let found = Arc::new(Mutex::new(Vec::new()));
    let (told, link) = (Arc::clone(&found), simulation.links[0]);
    simulation.engine.set_tap(Box::new(move |now, from, _, _| {
        if from == link {
            told.lock().unwrap().push((now - Time::ZERO).as_secs_f64() * 1e3);
        }
    }));
    simulation.engine.run_until(Time::ZERO + scenario.duration).unwrap();
    found.lock().unwrap().clone()
}

/// 1504 B at 5, 5, 10 and 20 ms, and 20 ms later again. Three packets take the first three; one that comes at 10 ms is too
/// late for that one. Two of 752 B share the one at 25 ms, one of 2004 B needs those at 30 and 40 ms, and leaves room for
/// 1004 B.
#[test]
fn mahimahis_opportunities() {
    let expected = [5.0, 5.0, 10.0, 20.0, 25.0, 25.0, 40.0, 40.0, 45.0];
    assert_eq!(departures(&[]), expected);
    // Fetched from a discipline, packet by packet, it is the same.
    let codel = [
        ("link.0.discipline.kind", "codel"),
        ("link.0.discipline.target", "1 s"),
        ("link.0.discipline.interval", "2 s"),
    ];
    assert_eq!(departures(&codel), expected);
    // Without repetition all is over with the fourth.
    assert_eq!(departures(&[("link.0.trace.repeat", "false")]), expected[..4]);
}

/// 12 Mbit/s send 1500 B in 1 ms, 1.2 Mbit/s in 10; nothing goes from 20 to 30 ms; from 30 ms on it begins anew.
#[test]
fn times_and_rates() {
    let rates = [("link.0.trace.kind", "csv"), ("link.0.trace.file", "steps.csv")];
    let packets = "0 1500\n0.0095 1500\n0.0105 1500\n0.0206 1500\n0.0405 1500\n";
    let found = departures(&[&rates[..], &[("traffic.t.packets", packets)]].concat());
    assert_eq!(found, [1.0, 10.5, 20.5, 31.0, 50.5]);
}

#[test]
fn what_a_trace_offers_is_the_links_truth() {
    let open = |file: &str, form| {
        let file = Source::File(Path::new(FOLDER).join(file));
        Arc::new(Trace::open(file, form, true).unwrap())
    };
    let ms = 1_000_000;
    let four = open("four.mahi", TraceForm::Mahimahi);
    for (from, to, bits) in [(0, 20, 4.0), (0, 10, 3.0), (10, 25, 3.0), (5, 105, 20.0), (7, 7, 4.0)] {
        let mean = four.mean_rate(from * ms, to * ms).unwrap();
        let over = if to > from { to - from } else { 20 } as f64 / 1e3;
        assert!((mean - bits * 1504.0 * 8.0 / over).abs() < 1e-6, "{from} to {to} ms: {mean}");
    }
    let steps = open("steps.csv", TraceForm::Csv);
    let means = |trace: &Arc<Trace>, step, steps| -> Vec<f64> {
        let all = trace.means(Span::from_millis(step), steps).unwrap();
        all.iter().map(|rate| (rate / 1e3).round() / 1e3).collect()
    };
    // 12 Mbit/s for 10 ms, 1.2 for 10 ms, and nothing for 10 ms.
    assert_eq!(means(&steps, 10, 6), [12.0, 1.2, 0.0, 12.0, 1.2, 0.0]);
    assert_eq!(means(&steps, 15, 4), [8.4, 0.4, 8.4, 0.4]);
    // Opportunities at 5, 5, 10, 20, 25, 25 and 30 ms: two in the first 10 ms, then one, three, and one.
    assert_eq!(means(&four, 10, 4), [2.406, 1.203, 3.61, 1.203]);
    for (from, to, mbps) in
        [(0, 10, 12.0), (5, 25, (5.0 * 12.0 + 10.0 * 1.2) / 20.0), (20, 45, (10.0 * 12.0 + 5.0 * 1.2) / 25.0)]
    {
        let mean = steps.mean_rate(from * ms, to * ms).unwrap();
        assert!((mean / 1e6 - mbps).abs() < 1e-9, "{from} to {to} ms: {mean}");
    }
    assert_eq!((steps.largest(), four.largest()), (12e6, 4.0 * 1504.0 * 8.0 / 0.02));
}

#[test]
fn a_saturated_trace_is_used_up() {
    let text = std::fs::read_to_string(format!("{FOLDER}/link.toml")).unwrap();
    let flood = text.split("[[traffic]]").next().unwrap().replace("200 ms", "10 s")
        + "[[traffic]]\nkind = \"cbr\"\nfrom = \"a\"\nto = \"b\"\nrate = \"5 Mbit/s\"\nsize = \"1500 B\"\n";
    let more = Scenario::parse(&format!("{FOLDER}/flood.toml"), &flood).unwrap();
    let mut run = Watched::new(&more, build(&more, 1, vec![]).unwrap());
    run.run_until(Time::ZERO + Span::from_secs(10)).unwrap();
    let found = run.outcome(&more);
    // Four in 20 ms, all but the first turn's, in which little has come.
    assert!((1996..=2000).contains(&found.flows[0].received), "{:?}", found.flows[0]);
    assert_eq!(found.links[0].busy_share, None);
    assert!(found.links[0].queue_mean_bytes.unwrap() > 70_000.0, "{:?}", found.links[0]);
}

/// From a time on that is no part of the trace's turn of 100 ms, with frames under way at each change.
#[test]
fn a_station_that_a_trace_drives_does_what_the_same_list_makes_it_do() {
    let text = std::fs::read_to_string(format!("{FOLDER}/station.toml")).unwrap();
    let trace = "trace = { kind = \"csv\", file = \"FILE\" }";
    let outcome = |text: &str| {
        let scenario = Scenario::parse(&format!("{FOLDER}/station.toml"), text).unwrap();
        let mut run = Watched::new(&scenario, build(&scenario, 1, vec![]).unwrap());
        run.run_until(Time::ZERO + scenario.duration).unwrap();
        let found = run.outcome(&scenario);
        (found.flows[0].received, format!("{:?} {:?}", found.flows, found.wlans))
    };
    let still = outcome(&text.replace(trace, ""));
    // 53 Mbit/s is none of the standard's: 48 is the fastest that is no faster; of 13 it is 12.
    for (file, first, second) in [
        ("near-and-far.csv", "distance_m = 5.0", "distance_m = 150.0"),
        ("good-and-bad.csv", "snr_db = 30.0", "snr_db = 3.0"),
        ("fast-and-slow.csv", "rate = \"48 Mbit/s\"", "rate = \"12 Mbit/s\""),
    ] {
        let turn = |k: u32| {
            let (begins, turns) = (k * 100, k * 100 + 60);
            format!("{{ at = \"{begins} ms\", {first} }}, {{ at = \"{turns} ms\", {second} }}, ")
        };
        let list = format!("schedule = [{}]", (0..10).map(turn).collect::<String>());
        let driven = outcome(&text.replace("FILE", file));
        assert_eq!(driven, outcome(&text.replace(trace, &list)), "{file}");
        assert!(driven.0 < still.0, "{file}: {} of {}", driven.0, still.0);
        let lines = std::fs::read_to_string(format!("{FOLDER}/{file}")).unwrap();
        let within = text.replace("file = \"FILE\"", &format!("lines = \"\"\"{lines}\"\"\""));
        assert_eq!(driven, outcome(&within), "{file}");
        // Without repetition the last value stays.
        let once = outcome(&text.replace("FILE\"", &format!("{file}\", repeat = false")));
        assert_eq!(once, outcome(&text.replace(trace, &format!("schedule = [{{ at = \"0 s\", {first} }}]"))));
    }
}

#[test]
fn bad_traces_are_refused() {
    for (text, form, why) in [
        ("", TraceForm::Mahimahi, "nothing stands in it"),
        ("0\n", TraceForm::Mahimahi, "must last for some time"),
        ("5\n4\n", TraceForm::Mahimahi, "line 2: earlier than the line before"),
        ("5\nx\n", TraceForm::Mahimahi, "line 2: \"x\""),
        ("5\n\n9\n", TraceForm::Mahimahi, "line 2: \"\""),
        ("-5\n", TraceForm::Mahimahi, "line 1: -5 is no time"),
        ("0,1\n", TraceForm::Csv, "does not name the units"),
        ("s,Mbit/s\n1,2\n", TraceForm::Csv, "begins with the time 0"),
        ("s,Mbit/s\n0,-2\n1,1\n", TraceForm::Csv, "line 2: -2000000 is out of range"),
        ("s,dB\n0,1e9\n", TraceForm::Csv, "out of range"),
    ] {
        let error = Trace::open(Source::Lines(text.as_bytes().into()), form, true).unwrap_err();
        assert!(error.contains(why), "{text:?}: {error}");
    }
}
