//! Stories: scenarios in `tests/stories`, each with its expected results; and invariants of all.
//!
//! A file has parts of texts, and stories; `{name}` in these stands for a part, or for its value in a row of `with`. An
//! expectation is two terms and a word between: numbers and paths into the outcome, joined by + - * / from left to right.
//! A step of a path is a key, a number in a list, `key=value` for the elements that have it, or `*` for all whose names begin
//! with the text before it. A path with several ends has to hold for each; `sum:`, `mean:` and `count:` make one number of
//! them.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use lastmile::estimate::{Conditions, Refusal, build};
use lastmile::time::{Span, Time};
use lastmile::units::Bytes;
use lastmile_sim::monitor::series::{SeriesPlan, SeriesRow};
use lastmile_sim::monitor::twin::{TwinPath, Wanted, shared_truths};
use lastmile_sim::roles::Makers;
use lastmile_sim::roles::measure::Outcome;
use lastmile_sim::runs::{Hooks, Progress, SimulatedRun, simulate};
use lastmile_sim::scenario::{Override, Scenario, Simulation, builtin_text};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    part: BTreeMap<String, String>,
    story: Vec<Story>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Story {
    about: String,
    /// The scenario, or the name of one that comes with the program.
    text: String,
    #[serde(default)]
    set: BTreeMap<String, String>,
    #[serde(default)]
    with: Vec<BTreeMap<String, String>>,
    /// The step of a series.
    series_ms: Option<i64>,
    /// Between which hosts truths of a shared medium are looked for, over which seconds and for which IP size.
    truth: Option<(String, String, i64, i64, u64)>,
    expect: Vec<String>,
}

pub(crate) fn makers() -> Makers {
    // Stamps are exact, as `lastmile sim` has it.
    Makers::measuring(|spec| build(&spec.method, &Conditions::exact(0)).map_err(|error| error.to_string()))
}

pub(crate) fn parse(name: &str, set: &[(&str, &str)]) -> Scenario {
    let set: Vec<_> = set.iter().map(|&(key, value)| Override::new(key, value)).collect();
    Scenario::parse_with(name, builtin_text(name).unwrap_or(name), &set).unwrap()
}

/// Results of a story, as the paths of expectations find them.
fn outcome(story: &Story, fill: &dyn Fn(&String) -> String) -> Value {
    let set: Vec<_> = story.set.iter().map(|(key, value)| (key.as_str(), fill(value))).collect();
    let set: Vec<_> = set.iter().map(|(key, value)| (*key, value.as_str())).collect();
    let scenario = parse(&fill(&story.text), &set);
    if let Some((from, to, first, last, size)) = &story.truth {
        let at = |seconds| Time::ZERO + Span::from_secs(seconds);
        let [from, to] = [from, to].map(|host| scenario.host(&fill(host)).unwrap());
        let path = TwinPath { from, to, ip_size: Bytes(*size) };
        let wanted = Wanted { path, windows: vec![(at(*first), at(*last))], achievable: true };
        let truth = shared_truths(&scenario, 1, &[wanted]).unwrap()[0][0];
        let [capacity, achievable, spare] =
            [truth.capacity, truth.achievable.unwrap(), truth.spare].map(|r| r.bits_per_second());
        return json!({ "capacity": capacity, "achievable": achievable, "spare": spare });
    }
    let (rows, sources) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
    let (told, known) = (Arc::clone(&rows), Arc::clone(&sources));
    let tell = Box::new(move |row: &SeriesRow| told.lock().unwrap().push(row.clone()));
    let prepare = move |_: &Scenario, made: &mut Simulation| known.lock().unwrap().clone_from(&made.sources);
    let series = story.series_ms.map(|step| SeriesPlan { step: Span::from_millis(step), tell });
    let hooks = Hooks { series, prepare: Some(Box::new(prepare)), ..Hooks::default() };
    let run = match simulate(&scenario, 1, &makers(), hooks) {
        Ok(run) => run,
        Err(error) => {
            let error = error.to_string();
            let at = error.split_once(" at ").and_then(|(_, at)| at.split(' ').next()?.parse::<f64>().ok());
            return json!({ "error": error, "at": at });
        }
    };
    let rows = std::mem::take(&mut *rows.lock().unwrap());
    always(&scenario, &run);
    if let Some(step) = story.series_ms {
        adds_up(&scenario, &run, &rows, step as f64 / 1e3);
    }
    let timeouts = |(flow, &node): (&lastmile_sim::scenario::TrafficSpec, _)| {
        Some((flow.name.clone(), run.engine.tcp_sender(node)?.counters().timeouts))
    };
    let (network, measured) = (&run.network, &run.found.measure);
    let sources = sources.lock().unwrap();
    json!({
        "flow": network.flows.iter().map(|f| (f.flow.clone(), json!(f))).collect::<BTreeMap<_, _>>(),
        "link": network.links.iter().map(|l| (format!("{}>{}", l.from, l.to), json!(l))).collect::<BTreeMap<_, _>>(),
        "wlan": network.wlans.iter().map(|w| (format!("{}>{}", w.from, w.to), json!(w))).collect::<BTreeMap<_, _>>(),
        "stream": run.found.stream.outcomes.iter().map(|s| (s.stream.clone(), json!(s))).collect::<BTreeMap<_, _>>(),
        "measure": measured.outcomes.iter().map(measured_json).collect::<Vec<_>>(),
        "sessions": measured.records.iter().map(|(number, _)| number).collect::<Vec<_>>(),
        "timeouts": scenario.traffic.iter().zip(&*sources).filter_map(timeouts).collect::<BTreeMap<_, _>>(),
        "events": run.events,
        "rows": rows,
    })
}

/// An outcome, with what is wrong with its number beside, if it has one.
fn measured_json(outcome: &Outcome) -> Value {
    let mut json = json!(outcome);
    let truth = outcome.estimate.as_ref().and_then(|estimate| outcome.truth?.of(estimate));
    let found = outcome.estimate.as_ref().and_then(|estimate| estimate.value.rate());
    if let Some(ratio) = found.zip(truth).and_then(|(found, truth)| found.ratio(truth)) {
        json["error"] = json!(ratio - 1.0);
    }
    json["refusal"] = json!(outcome.refusal.as_ref().map(|why| format!("{why:?}")));
    json
}

/// Invariants of every run.
pub(crate) fn always(scenario: &Scenario, run: &SimulatedRun) {
    let same_clock = scenario.hosts.iter().all(|host| host.clock == Default::default());
    assert!(!same_clock || run.events.is_sorted_by_key(|event| event.order()));
    for flow in &run.network.flows {
        assert_eq!(flow.sent, flow.received + flow.lost.values().sum::<u64>() + flow.under_way, "{flow:?}");
    }
    for way in &run.network.wlans {
        assert!(way.delivered + way.dropped + way.lost <= way.packets, "{way:?}");
        // Of what is on the air at the end the one counts all, the other what has been.
        let most = |share: Option<f64>, most: f64| share.is_none_or(|share| share <= most);
        assert!(
            most(way.busy_share, 1.0) && most(way.air_share, way.busy_share.unwrap_or(1.0) + 1e-3),
            "{way:?}"
        );
    }
}

/// A series adds up to the run, where that has no warm-up.
fn adds_up(scenario: &Scenario, run: &SimulatedRun, rows: &[SeriesRow], step: f64) {
    let found = &run.network;
    let steps = scenario.duration.as_secs_f64() / step;
    let flows = found.flows.len() + run.found.stream.outcomes.len();
    assert_eq!(rows.len() as f64, steps * (flows + found.links.len() + found.wlans.len()) as f64);
    let of =
        |kind: &'static str, name: String| rows.iter().filter(move |row| row.row == kind && row.name == name);
    let near = |sum: f64, whole: f64| assert!((sum - whole).abs() <= 1e-6 * whole + 1.0, "{sum} of {whole}");
    for (flow, spec) in found.flows.iter().zip(&scenario.traffic) {
        let own = || of("flow", flow.flow.clone());
        let stop = spec.stop.min(Time::ZERO + scenario.duration);
        let seconds = (stop - spec.start).as_secs_f64();
        near(
            own().filter_map(|row| row.goodput_bps).sum::<f64>() * step,
            flow.goodput_bps.unwrap() * seconds,
        );
        assert_eq!(spec.tcp.is_some(), own().all(|row| row.window_packets.is_some()));
    }
    for link in &found.links {
        let own = || of("link", format!("{}>{}", link.from, link.to));
        near(
            own().filter_map(|row| row.queue_mean_bytes).sum::<f64>() / steps,
            link.queue_mean_bytes.unwrap(),
        );
        assert_eq!(own().filter_map(|row| row.marked).sum::<u64>(), link.marked);
        assert_eq!(own().filter_map(|row| row.lost).sum::<u64>(), link.lost.values().sum::<u64>());
        assert!(own().filter_map(|row| row.busy_share).all(|share| (0.0..=1.0 + 1e-9).contains(&share)));
    }
    for air in &found.wlans {
        let own = of("wlan", format!("{}>{}", air.from, air.to));
        near(own.filter_map(|row| row.queue_mean_bytes).sum::<f64>() / steps, air.queue_mean_bytes.unwrap());
    }
}

/// The ends of a path.
fn ends(found: &Value, path: &str) -> Vec<Value> {
    let step = |values: Vec<Value>, step: &str| {
        let below = |value: Value| -> Vec<Value> {
            let all = || match &value {
                Value::Array(items) => items.iter().map(|item| (String::new(), item.clone())).collect(),
                Value::Object(map) => map.clone().into_iter().collect(),
                _ => Vec::new(),
            };
            let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            if let Some((key, wanted)) = step.split_once('=') {
                return vec![
                    all().into_iter().map(|one| one.1).filter(|one| plain(&one[key]) == wanted).collect(),
                ];
            }
            if let Some(begins) = step.strip_suffix('*') {
                return all().into_iter().filter(|one| one.0.starts_with(begins)).map(|one| one.1).collect();
            }
            match (&value, step.parse::<usize>()) {
                (Value::Array(items), Ok(index)) => items.get(index).cloned().into_iter().collect(),
                (Value::Array(items), _) => items.iter().filter_map(|item| item.get(step).cloned()).collect(),
                _ => value.get(step).cloned().into_iter().collect(),
            }
        };
        values.into_iter().flat_map(below).collect()
    };
    path.split('.').fold(vec![found.clone()], step)
}

/// Value of a term: as many numbers as it has ends, and NaN for an end without one.
fn term(found: &Value, words: &[&str]) -> Vec<f64> {
    let operand = |word: &str| -> Vec<f64> {
        if let Ok(number) = word.parse() {
            return vec![number];
        }
        let (of, path) = word.split_once(':').unwrap_or(("", word));
        let ends = ends(found, path);
        let numbers = ends.iter().filter_map(Value::as_f64);
        let count = ends.iter().filter(|end| !end.is_null()).count() as f64;
        match of {
            "" => ends.iter().map(|end| end.as_f64().unwrap_or(f64::NAN)).collect(),
            "sum" => vec![numbers.sum()],
            "mean" => vec![numbers.sum::<f64>() / count],
            "count" => vec![count],
            _ => panic!("{of} of what?"),
        }
    };
    words[1..].chunks(2).fold(operand(words[0]), |left, next| {
        let join = |left: f64, right: f64| match next[0] {
            "+" => left + right,
            "-" => left - right,
            "*" => left * right,
            "/" => left / right,
            word => panic!("{word} is no operation"),
        };
        each(&left, &operand(next[1])).map(|(left, right)| join(left, right)).collect()
    })
}

/// Each end with its own of the others, or with the only one.
fn each<'a>(left: &'a [f64], right: &'a [f64]) -> impl Iterator<Item = (f64, f64)> + 'a {
    let other = move |index| right.get(index).or(right.first()).copied().unwrap_or(f64::NAN);
    left.iter().enumerate().map(move |(index, &left)| (left, other(index)))
}

fn holds(found: &Value, expected: &str) -> bool {
    const WORDS: [&str; 8] = ["==", "<", "<=", ">", ">=", "in", "within", "has"];
    let words: Vec<&str> = expected.split(' ').collect();
    let at = words.iter().position(|word| WORDS.contains(word)).expect("a word between");
    let right = &words[at + 1..];
    if words[at] == "has" {
        let texts = ends(found, words[0]);
        return texts.iter().any(|text| text.as_str().is_some_and(|text| text.contains(&right.join(" "))));
    }
    let left = term(found, &words[..at]);
    let all = |right: &[&str], holds: &dyn Fn(f64, f64) -> bool| {
        !left.is_empty() && each(&left, &term(found, right)).all(|(left, right)| holds(left, right))
    };
    match words[at] {
        "in" => {
            all(&right[..1], &|left, least| left >= least) && all(&right[1..], &|left, most| left <= most)
        }
        "within" => {
            let share: f64 = right[0].parse().unwrap();
            all(&right[2..], &|left, right| (left / right - 1.0).abs() <= share)
        }
        "==" => all(right, &|left, right| left == right),
        "<" => all(right, &|left, right| left < right),
        "<=" => all(right, &|left, right| left <= right),
        ">" => all(right, &|left, right| left > right),
        _ => all(right, &|left, right| left >= right),
    }
}

fn told(name: &str) {
    let path = format!("{}/tests/stories/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let file: File = toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut wrong = String::new();
    for story in &file.story {
        let rows = if story.with.is_empty() { vec![BTreeMap::new()] } else { story.with.clone() };
        for row in rows {
            let known: BTreeMap<_, _> = file.part.iter().chain(&row).collect();
            // A part may name others.
            let fill = |text: &String| {
                let all = (0..4).flat_map(|_| &known);
                all.fold(text.clone(), |text, (key, value)| text.replace(&format!("{{{key}}}"), value))
            };
            let found = outcome(story, &fill);
            for expected in story.expect.iter().map(fill) {
                let path = expected.split(' ').next().unwrap();
                let path = path.split_once(':').map_or(path, |(_, path)| path);
                let seen: String = json!(ends(&found, path)).to_string().chars().take(1_000).collect();
                if !holds(&found, &expected) {
                    wrong += &format!("\n{}, {row:?}: not {expected}: {seen}", story.about);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{name}:{wrong}");
}

macro_rules! told {
    ($($name:ident),+) => { $(#[test] fn $name() { told(stringify!($name)); })+ };
}
told!(budgets, cells, dcf, handoffs, links, measurements, network, streams, truths);

#[test]
fn whoever_looks_on_changes_nothing() {
    for name in ["path", "wlan-g-busy", "dumbbell-tcp"] {
        let scenario = parse(name, &[("duration", "4 s"), ("warm_up", "1 s")]);
        let run = |progress| {
            let run = simulate(&scenario, 3, &makers(), Hooks { progress, ..Hooks::default() }).unwrap();
            format!("{:?} {:?} {:?}", run.found.measure.outcomes, run.network, run.events)
        };
        let told = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&told);
        let progress: Progress = Box::new(move |at| {
            log.lock().unwrap().push(at);
            ControlFlow::Continue(())
        });
        assert_eq!(run(Some(progress)), run(None), "{name}");
        let told = told.lock().unwrap();
        assert!(told.len() >= 998 && told.is_sorted(), "{name}: {}", told.len());
    }
}

#[test]
fn a_run_that_lingers_is_that_of_a_shorter_scenario() {
    for name in ["path", "wlan-g-busy"] {
        let run = |duration: &str, linger| {
            let scenario = parse(name, &[("duration", duration), ("warm_up", "1 s")]);
            let run = simulate(&scenario, 3, &makers(), Hooks { linger, ..Hooks::default() }).unwrap();
            (run.engine.now() - Time::ZERO, format!("{:?} {:?}", run.found.measure.outcomes, run.network))
        };
        let (lasted, found) = run("50 s", Some(Span::from_secs(2)));
        assert!(lasted > Span::from_secs(3) && lasted < Span::from_secs(20), "{name}: {lasted}");
        assert_eq!(found, run(&format!("{} s", lasted.as_secs_f64()), None).1, "{name}");
    }
}

#[test]
fn a_run_that_is_stopped_gives_what_there_is_until_then() {
    let stop = |at: Time| match at < Time::from_nanos(100_000_000) {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    };
    let hooks = Hooks { progress: Some(Box::new(stop)), ..Hooks::default() };
    let early = simulate(&parse("path", &[]), 3, &makers(), hooks).unwrap();
    assert!(early.stopped && early.engine.now() < Time::from_nanos(300_000_000));
    // Within the warm-up.
    assert!(early.network.flows[0].sent > 20 && early.network.flows[0].goodput_bps.is_none());
    assert!(!early.found.measure.outcomes.is_empty());
    for outcome in &early.found.measure.outcomes {
        assert_eq!((&outcome.refusal, &outcome.truth), (&Some(Refusal::Interrupted), &None), "{outcome:?}");
    }
}
