//! The JSON documents of commands (`--json`) as pages: `sim`, `lab`, `measure`, `accuracy`, `bench-sim`, `conformance`,
//! `reproduce`, `evaluate`, `paths`.

use std::collections::BTreeMap;

use lastmile_report::bars::{Bar, figure};
use lastmile_report::chart::{Axis, Chart};
use lastmile_report::html::{esc, heading, page, plots};
use lastmile_report::rows::{cell, chosen, folded, number, table};
use serde_json::{Map, Value};

use crate::evaluate::page as evaluation;
use crate::papers::page as reproduction;
use crate::paths::page as random_paths;

/// A row of a document.
type Row = Map<String, Value>;

/// The kind of a document.
enum Kind<'a> {
    /// Of `sim` and `lab`.
    Run(&'a Row),
    Measure(&'a Row),
    Accuracy(Vec<&'a Row>),
    Bench(Vec<&'a Row>),
    Conformance(Vec<&'a Row>),
}

fn kind(document: &Value) -> Option<Kind<'_>> {
    match document {
        Value::Object(all) if all.contains_key("world") && all.contains_key("results") => {
            Some(Kind::Run(all))
        }
        Value::Object(all) if all.contains_key("peer") && all.contains_key("results") => {
            Some(Kind::Measure(all))
        }
        Value::Object(all) if all.contains_key("options") && all.contains_key("rows") => {
            Some(Kind::Accuracy(list(all, "rows")))
        }
        Value::Array(rows) => {
            let rows: Vec<&Row> = rows.iter().map(Value::as_object).collect::<Option<_>>()?;
            let first = rows.first()?;
            let has = |key: &str| first.contains_key(key);
            match () {
                () if has("cpu_s_per_sim_s") => Some(Kind::Bench(rows)),
                () if has("verdict") && has("world") => Some(Kind::Conformance(rows)),
                () => None,
            }
        }
        _ => None,
    }
}

/// The page of a document; `None` where it is of no kind that can be drawn.
pub fn draw(file: &str, document: &Value) -> Option<String> {
    if document.as_object().is_some_and(reproduction::is_one) {
        return Some(reproduction::page(document));
    }
    if document.as_object().is_some_and(evaluation::is_one) {
        return Some(evaluation::page(document));
    }
    if document.as_object().is_some_and(random_paths::is_one) {
        return Some(random_paths::page(document));
    }
    let body = match kind(document)? {
        Kind::Run(all) => {
            let mut facts = vec!["world", "scenario", "seed", "simulated_seconds", "seconds"];
            facts.retain(|fact| all.contains_key(*fact));
            heading(file, &facts.iter().map(|f| (f.replace('_', " "), cell(f, &all[*f]))).collect::<Vec<_>>())
                + &lateness(all)
                + &results(all)
                + &flows(all, "Streams", "stream")
                + &flows(all, "Flows", "flow")
                + &links(all)
                + &wlans(all)
        }
        Kind::Measure(all) => {
            let facts: Vec<_> = ["peer", "rtt_seconds"]
                .iter()
                .filter_map(|key| Some((key.replace('_', " "), cell(key, all.get(*key)?))))
                .collect();
            heading(file, &facts) + &warnings(all) + &results(all)
        }
        Kind::Accuracy(rows) => heading(file, &[("rows", rows.len().to_string())]) + &accuracy(&rows),
        Kind::Bench(rows) => heading(file, &[("rows", rows.len().to_string())]) + &bench(&rows),
        Kind::Conformance(rows) => {
            heading(file, &[("rows", rows.len().to_string())])
                + "<h2>Conformance</h2>\n"
                + &table(&rows, &columns("kind name direction world verdict inputs decisions reason"))
        }
    };
    Some(page(file, &body))
}

/// The names of columns with spaces between them.
fn columns(names: &str) -> Vec<&str> {
    names.split(' ').collect()
}

fn list<'a>(all: &'a Row, key: &str) -> Vec<&'a Row> {
    let items = all.get(key).and_then(Value::as_array);
    items.map(|items| items.iter().filter_map(Value::as_object).collect()).unwrap_or_default()
}

fn text(row: &Row, keys: &[&str]) -> String {
    let parts: Vec<String> =
        keys.iter().filter_map(|key| row.get(*key)).filter(|v| !v.is_null()).map(|v| cell("", v)).collect();
    parts.join(" ")
}

/// A number of each row that has it, times a factor, under the name that these keys make.
fn bars(
    rows: &[&Row],
    name: &[&str],
    key: &str,
    factor: f64,
    unit: &str,
    class: impl Fn(&Row) -> &'static str,
) -> Vec<Bar> {
    let bar = |row: &&Row| {
        let (value, name) = (number(row, key)? * factor, text(row, name));
        let tip = format!("{name}: {value:.3} {unit}");
        Some(Bar { tip, name, value, class: class(row), ..Bar::default() })
    };
    rows.iter().filter_map(bar).collect()
}

fn warnings(all: &Row) -> String {
    let items = all.get("warnings").and_then(Value::as_array);
    items
        .into_iter()
        .flatten()
        .map(|text| format!("<p class=\"bad\">{}</p>\n", esc(&cell("", text))))
        .collect()
}

fn lateness(all: &Row) -> String {
    let Some(lateness) = all.get("lateness").and_then(Value::as_object) else { return String::new() };
    "<h2>Lateness of the lab</h2>\n".to_owned()
        + &table(
            &[lateness],
            &columns(
                "packets events p50_ns p99_ns worst_ns allowed_ns late moved device_drops stolen_share core_share realtime refused",
            ),
        )
}

/// The truth that an estimate aims at, bit/s.
fn truth(row: &Row) -> Option<f64> {
    match row.get("quantity").and_then(Value::as_str) {
        Some("capacity") => number(row, "truth_capacity_bps"),
        Some("shortest-exchange") => number(row, "truth_shortest_bps"),
        Some("sustained-rate") => number(row, "truth_sustained_bps"),
        _ => number(row, "truth_window_bps"),
    }
}

/// Estimates over time beside their truths: a chart for each quantity of a measurement that begins anew every so often.
fn over_time(rows: &[&Row]) -> Vec<String> {
    let mut all: BTreeMap<String, Vec<&Row>> = BTreeMap::new();
    for row in rows.iter().filter(|row| number(row, "rate_bps").is_some()) {
        let name = text(row, &["from", "to", "method", "direction", "quantity"]);
        all.entry(name).or_default().push(row);
    }
    let chart = |(name, rows): (String, Vec<&Row>)| {
        let of = |row: &Row| Some((number(row, "start_seconds")?, number(row, "rate_bps")? / 1e6));
        let points: Vec<(&Row, f64, f64)> =
            rows.iter().filter_map(|row| of(row).map(|(at, rate)| (*row, at, rate))).collect();
        // One estimate has no course.
        if points.iter().all(|point| point.1 == points[0].1) {
            return None;
        }
        let ends = |row: &Row| {
            let interval = row.get("interval")?.as_object()?;
            Some((number(interval, "low_bps")? / 1e6, number(interval, "high_bps")? / 1e6))
        };
        let truths: Vec<(f64, f64)> =
            points.iter().filter_map(|(row, at, _)| Some((*at, truth(row)? / 1e6))).collect();
        let values = points.iter().map(|point| point.2).chain(truths.iter().map(|point| point.1));
        let values =
            values.chain(points.iter().filter_map(|point| ends(point.0)).flat_map(|ends| [ends.0, ends.1]));
        let x = Axis::over("start of the measurement, s", points.iter().map(|point| point.1));
        let mut chart = Chart::new(&name, x, Axis::from_zero("Mbit/s of IP packets", values))
            .key("c1", "estimate, with its interval")
            .key("c2", "truth")
            .line("c2", &truths);
        let mut dots = Vec::new();
        for (row, at, rate) in &points {
            let tip = format!(
                "{at} s: {rate:.3} Mbit/s, truth {:.3}",
                truth(row).map_or(f64::NAN, |truth| truth / 1e6)
            );
            if let Some((low, high)) = ends(row) {
                chart = chart.whisker("c1", *at, low, high, &tip);
            }
            dots.push((*at, *rate, tip));
        }
        Some(chart.points("c1", &dots).figure())
    };
    all.into_iter().filter_map(chart).collect()
}

/// Results of measurements beside their truths.
fn results(all: &Row) -> String {
    let rows = list(all, "results");
    if rows.is_empty() {
        return String::new();
    }
    let over_time = over_time(&rows);
    let bars: Vec<Bar> = rows
        .iter()
        .filter_map(|row| {
            let value = number(row, "rate_bps")? / 1e6;
            let interval = row.get("interval").and_then(Value::as_object);
            let range =
                interval.and_then(|i| Some((number(i, "low_bps")? / 1e6, number(i, "high_bps")? / 1e6)));
            let truth = truth(row);
            let name = text(row, &["method", "direction", "quantity"]);
            let mut tip = format!("{name}: {value:.3} Mbit/s");
            if let Some((low, high)) = range {
                tip += &format!(", interval {low:.3} to {high:.3}");
            }
            if let Some(truth) = truth {
                tip += &format!(", truth {:.3}", truth / 1e6);
            }
            let short = match row.get("quantity").and_then(Value::as_str) {
                Some("available-bandwidth") => text(row, &["method", "direction"]) + " avail.",
                Some(quantity) => text(row, &["method", "direction"]) + " " + quantity,
                None => name,
            };
            Some(Bar { name: short, value, range, mark: truth.map(|t| t / 1e6), class: "c1", tip })
        })
        .collect();
    let keys = [("c1", "estimate, with its interval"), ("c2", "truth")];
    // One truth for each: that of its quantity.
    let with_truth = |row: &&Row| {
        let mut row = (*row).clone();
        row.extend(truth(&row).map(|bps| ("truth_bps".to_owned(), bps.into())));
        row
    };
    let rows: Vec<Row> = rows.iter().map(with_truth).collect();
    let shown = chosen(
        &rows.iter().collect::<Vec<_>>(),
        &columns(
            "start_seconds method direction quantity rate_bps more_than_bps interval truth_bps seconds bytes refused warning",
        ),
    );
    let (drawn, shown) = match over_time.is_empty() {
        true => (vec![figure("Estimates", "IP layer, Mbit/s", &keys, &bars)], shown),
        false => (over_time, folded("Each estimate", &shown)),
    };
    "<h2>Results</h2>\n".to_owned() + &plots(&drawn) + &shown
}

/// Flows of traffic, or of a role: each row is called `what`.
fn flows(all: &Row, title: &str, what: &str) -> String {
    let rows = list(all, &format!("{what}s"));
    if rows.is_empty() {
        return String::new();
    }
    let bars = |key: &str, factor: f64, unit: &str, class: &'static str| {
        bars(&rows, &[what], key, factor, unit, |_| class)
    };
    let lost: Vec<Bar> = rows
        .iter()
        .filter_map(|row| {
            let sent = number(row, "sent").filter(|sent| *sent > 0.0)?;
            let causes = row.get("lost")?.as_object()?;
            let lost: f64 = causes.values().filter_map(Value::as_f64).sum();
            let name = text(row, &[what]);
            let tip = format!("{name}: {}", cell("lost", row.get("lost")?));
            Some(Bar { name, value: lost / sent * 100.0, class: "cb", tip, ..Bar::default() })
        })
        .collect();
    format!("<h2>{title}</h2>\n")
        + &plots(&[
            figure(
                "Goodput",
                "goodput, Mbit/s of IP packets",
                &[],
                &bars("goodput_bps", 1e-6, "Mbit/s", "c1"),
            ),
            figure("Mean delay", "mean delay, ms", &[], &bars("delay_mean_s", 1e3, "ms", "ci")),
            figure("Lost", "lost of what was sent, %", &[], &lost),
        ])
        + &chosen(
            &rows,
            &columns(&format!(
                "{what} control kind from to goodput_bps sent lost wireless_lost delay_mean_s delay_max_s frames_dropped ended"
            )),
        )
}

fn links(all: &Row) -> String {
    let rows = list(all, "links");
    if rows.is_empty() {
        return String::new();
    }
    let bars = rows.iter().filter_map(|row| {
        let value = number(row, "dropped")?;
        let name = format!("{}>{}", text(row, &["from"]), text(row, &["to"]));
        let tip = format!("{name}: {value} of {} dropped", text(row, &["packets"]));
        (value > 0.0).then_some(Bar { name, value, class: "cb", tip, ..Bar::default() })
    });
    "<h2>Links</h2>\n".to_owned()
        + &plots(&[figure("Dropped by queues", "packets", &[], &bars.collect::<Vec<_>>())])
        + &chosen(&rows, &columns("from to packets lost marked busy_share queue_mean_bytes queue_max_bytes"))
}

fn wlans(all: &Row) -> String {
    let rows = list(all, "wlans");
    if rows.is_empty() {
        return String::new();
    }
    let shown = "wlan from to packets lost lost_by_cause collisions busy_share air_share queue_mean_bytes";
    "<h2>WLANs</h2>\n".to_owned() + &chosen(&rows, &columns(shown))
}

fn accuracy(rows: &[&Row]) -> String {
    let name = |row: &Row| {
        let (method, cross) = (text(row, &["method"]), text(row, &["cross"]));
        format!(
            "{} {} Mbit/s {cross} {method} x{}",
            text(row, &["world"]),
            text(row, &["rate_mbps"]),
            text(row, &["trains"])
        )
    };
    let bars = |middle: &str, high: &str| -> Vec<Bar> {
        let bar = |row: &&Row| {
            let value = number(row, middle)? * 100.0;
            let range = number(row, high).map(|high| (value, high * 100.0));
            let name = name(row);
            let tip = format!("{name}: median {value:.2} %, P90 {:.2} %", range.map_or(f64::NAN, |r| r.1));
            Some(Bar { name, value, range, class: "c1", tip, ..Bar::default() })
        };
        rows.iter().filter_map(bar).collect()
    };
    let signed = |row: &&Row| {
        let value = number(row, "bias_window_p50")? * 100.0;
        let name = name(row);
        Some(Bar { tip: format!("{name}: {value:.2} %"), name, value, class: "c2", ..Bar::default() })
    };
    let bias: Vec<Bar> = rows.iter().filter_map(signed).collect();
    let keys = [("c1", "median; line: to the 90th percentile")];
    "<h2>Errors</h2>\n".to_owned()
        + &plots(&[
            figure(
                "Against the probe's own window",
                "error, % of the truth",
                &keys,
                &bars("error_window_p50", "error_window_p90"),
            ),
            figure(
                "Against the long-run mean",
                "error, % of the truth",
                &keys,
                &bars("error_mean_p50", "error_mean_p90"),
            ),
            figure("Bias, with its sign", "median error of the window, % of the truth", &[], &bias),
        ])
        + &chosen(
            rows,
            &columns(
                "world rate_mbps cross method direction trains n refused more_than error_window_p50 error_window_p90 bias_window_p50",
            ),
        )
}

fn bench(rows: &[&Row]) -> String {
    let class = |row: &Row| if text(row, &["tool"]) == "lastmile" { "c1" } else { "c2" };
    let bars =
        |key: &str, factor: f64, unit: &str| bars(rows, &["scenario", "tool"], key, factor, unit, class);
    let keys = [("c1", "lastmile"), ("c2", "other simulators")];
    "<h2>Cost</h2>\n".to_owned()
        + &plots(&[
            figure("CPU time", "CPU ms per simulated second", &keys, &bars("cpu_s_per_sim_s", 1e3, "ms")),
            figure("Memory", "peak memory, MB", &keys, &bars("peak_mb", 1.0, "MB")),
        ])
        + &table(rows, &columns("scenario tool cpu_s_per_sim_s peak_mb packets simulated_s"))
}
