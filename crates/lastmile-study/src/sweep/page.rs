//! A sweep's results as a page: each number against each parameter that varied, median and 10 to 90 % of the runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::io::{self, BufRead, Read};

use lastmile::time::Span;
use lastmile::units::{Bytes, Rate};
use serde_json::{Map, Value};

use lastmile_report::chart::{Axis, Chart};
use lastmile_report::html::{esc, page};

/// Charts on one page; with more, nobody looks at any.
const MAX_CHARTS: usize = 60;
/// Rows of a file; what is beyond is not read.
const MAX_ROWS: usize = 2_000_000;
const MAX_LINE: u64 = 1_000_000;

/// The numbers that are drawn: key, axis, and what they are multiplied with.
const MEASURED: [(&str, &str, f64); 3] = [
    ("rate_bps", "Mbit/s", 1e-6),
    ("error", "error against the truth, %", 100.0),
    ("seconds", "seconds", 1.0),
];
const FLOWS: [(&str, &str, f64); 2] =
    [("goodput_bps", "goodput, Mbit/s", 1e-6), ("delay_mean_s", "mean delay, ms", 1e3)];

const LINKS: [(&str, &str, f64); 2] =
    [("queue_mean_bytes", "mean queue, kB", 1e-3), ("busy_share", "busy, % of the time", 100.0)];

type Points = BTreeMap<(String, &'static str, String), BTreeMap<String, Vec<f64>>>;

/// A sweep's numbers, by series, quantity, and parameter; then by the parameter's value.
#[derive(Default)]
pub struct SweepResult {
    rows: usize,
    runs: BTreeSet<u64>,
    seeds: BTreeSet<u64>,
    /// The parameters in their order of appearance, with their values in that order.
    parameters: Vec<(String, Vec<String>)>,
    points: Points,
}

/// Whether a column is a parameter: a scenario's keys are dotted but for a few, results' are not.
fn is_parameter(key: &str) -> bool {
    key.contains('.') || ["duration", "warm_up"].contains(&key)
}

/// Whether a file's first line is a sweep's.
pub fn is_sweep(first_line: &str) -> bool {
    let Ok(Value::Object(row)) = serde_json::from_str(first_line) else { return false };
    row.get("run").is_some_and(Value::is_u64) && row.get("seed").is_some_and(Value::is_u64)
}

/// Whether a file's first line is the head of a sweep's CSV.
pub fn is_csv(first_line: &str) -> bool {
    let columns: Vec<&str> = first_line.trim_end().split(',').collect();
    ["run", "seed"].iter().all(|column| columns.contains(column))
}

impl SweepResult {
    /// Reads all rows of a CSV file.
    ///
    /// # Errors
    /// A line has more or fewer cells than the head: its number.
    pub fn read_csv(file: impl Read) -> io::Result<SweepResult> {
        let mut result = SweepResult::default();
        let mut csv = csv::Reader::from_reader(file);
        let names = csv.headers()?.clone();
        for record in csv.records().take(MAX_ROWS) {
            let record = record?;
            let cells = names.iter().zip(&record).filter(|(_, cell)| !cell.is_empty()).map(|(name, cell)| {
                // A parameter's value is text in JSON lines as well.
                let number = if is_parameter(name) { None } else { serde_json::from_str(cell).ok() };
                (name.to_owned(), number.unwrap_or_else(|| Value::from(cell)))
            });
            result.add(&cells.collect());
        }
        Ok(result)
    }

    /// Reads all rows.
    ///
    /// # Errors
    /// A line is no row of a sweep: its number and what is wrong.
    pub fn read(mut file: impl BufRead) -> io::Result<SweepResult> {
        let mut result = SweepResult::default();
        let mut line = String::new();
        while result.rows < MAX_ROWS {
            line.clear();
            if (&mut file as &mut dyn BufRead).take(MAX_LINE).read_line(&mut line)? == 0 {
                break;
            }
            let row: Map<String, Value> = serde_json::from_str(&line).map_err(|error| {
                let what = format!("line {}: not a row of a sweep: {error}", result.rows + 1);
                io::Error::new(io::ErrorKind::InvalidData, what)
            })?;
            result.add(&row);
        }
        Ok(result)
    }

    fn add(&mut self, row: &Map<String, Value>) {
        self.rows += 1;
        let number = |key: &str| row.get(key).and_then(Value::as_u64);
        self.runs.extend(number("run"));
        self.seeds.extend(number("seed"));
        let set: Vec<(&String, &str)> = row
            .iter()
            .filter(|(key, _)| is_parameter(key))
            .filter_map(|(key, value)| Some((key, value.as_str()?)))
            .collect();
        for (key, value) in &set {
            let at = self.parameters.iter().position(|p| p.0 == **key).unwrap_or_else(|| {
                self.parameters.push(((*key).clone(), Vec::new()));
                self.parameters.len() - 1
            });
            let values = &mut self.parameters[at].1;
            if !values.iter().any(|v| v == value) {
                values.push((*value).to_owned());
            }
        }
        let text = |key: &str| row.get(key).and_then(Value::as_str).unwrap_or_default();
        let ends = || format!("{}>{}", text("from"), text("to"));
        // Rows of older sweeps say no kind: those of flows have a flow.
        let kind = match row.get("row").and_then(Value::as_str) {
            Some(kind) => kind,
            None if row.contains_key("flow") => "flow",
            None => "result",
        };
        let (series, quantities) = match kind {
            "link" | "wlan" => (format!("{kind} {}", ends()), &LINKS[..]),
            // Flows, of traffic or of a role, say their names.
            _ if row.contains_key(kind) => (format!("{kind} {}", text(kind)), &FLOWS[..]),
            _ => {
                let parts = [text("method"), text("direction"), text("quantity")];
                (parts.join(" ").trim().to_owned(), &MEASURED[..])
            }
        };
        for &(key, _, factor) in quantities {
            let Some(value) = row.get(key).and_then(Value::as_f64).filter(|v| v.is_finite()) else {
                continue;
            };
            for (parameter, at) in &set {
                let of = self.points.entry((series.clone(), key, (*parameter).clone())).or_default();
                of.entry((*at).to_owned()).or_default().push(value * factor);
            }
        }
    }

    /// The page.
    pub fn page(&self, file: &str) -> String {
        let mut body = format!(
            "<header>\n<h1>{}</h1>\n<dl class=\"facts\"><div><dt>runs</dt><dd>{}</dd></div>\
             <div><dt>seeds</dt><dd>{}</dd></div><div><dt>results</dt><dd>{}</dd></div></dl>\n</header>\n",
            esc(file),
            self.runs.len(),
            self.seeds.len(),
            self.rows
        );
        if self.points.is_empty() {
            body += "<p class=\"soft\">No parameter varied, or no run came to a number: there is nothing to draw.</p>\n";
        } else {
            body += "<p class=\"soft\">Line: median. Bars: from the 10th to the 90th percentile of all runs with that \
                     value, whatever the other parameters and the seed.</p>\n";
        }
        let mut charts = 0;
        let mut before = "";
        for ((series, key, parameter), values) in &self.points {
            charts += 1;
            if charts > MAX_CHARTS {
                let _ = writeln!(
                    body,
                    "</div></div>\n<p class=\"soft\">The first {MAX_CHARTS} charts are drawn.</p>"
                );
                break;
            }
            if before != series {
                if !before.is_empty() {
                    body += "</div></div>\n";
                }
                let _ = writeln!(body, "<h2>{}</h2>\n<div class=\"card\"><div class=\"plots\">", esc(series));
                before = series;
            }
            body += &self.chart(key, parameter, values);
        }
        if charts > 0 && charts <= MAX_CHARTS {
            body += "</div></div>\n";
        }
        page(file, &body)
    }

    fn chart(&self, key: &str, parameter: &str, values: &BTreeMap<String, Vec<f64>>) -> String {
        let label = MEASURED.iter().chain(&FLOWS).chain(&LINKS).find(|q| q.0 == key).map_or(key, |q| q.1);
        let order = self.parameters.iter().find(|p| p.0 == parameter).map_or(&[][..], |p| &p.1[..]);
        // Quantities stand where they belong; names one after the other.
        let numbers: Option<Vec<(f64, &'static str)>> = order.iter().map(|text| quantity(text)).collect();
        let unit = numbers.as_ref().and_then(|n| n.first()).map_or("", |n| n.1);
        let numbers = numbers.filter(|n| n.iter().all(|n| n.1 == unit));
        let mut points: Vec<(f64, Spread, &String)> = Vec::new();
        for (at, text) in order.iter().enumerate() {
            let Some(found) = values.get(text) else { continue };
            let x = numbers.as_ref().map_or(at as f64 + 1.0, |n| n[at].0);
            points.push((x, Spread::of(found), text));
        }
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let x = match (&numbers, unit) {
            (None, _) => Axis::named(parameter, order),
            (_, "") => Axis::over(parameter, points.iter().map(|p| p.0)),
            (_, unit) => Axis::over(&format!("{parameter}, {unit}"), points.iter().map(|p| p.0)),
        };
        let y = Axis::over(label, points.iter().flat_map(|p| [p.1.low, p.1.high]));
        let mut chart = Chart::new(&format!("{label} against {parameter}"), x, y);
        let line: Vec<(f64, f64)> = points.iter().map(|p| (p.0, p.1.median)).collect();
        if numbers.is_some() {
            chart = chart.line("c1", &line);
        }
        let mut dots = Vec::new();
        for (x, spread, text) in &points {
            let tip = format!(
                "{parameter} = {text}: median {:.4}, 10 to 90 %: {:.4} to {:.4}, {} runs",
                spread.median, spread.low, spread.high, spread.runs
            );
            chart = chart.whisker("c1", *x, spread.low, spread.high, &tip);
            dots.push((*x, spread.median, tip));
        }
        chart.points("c1", &dots).figure()
    }
}

/// Some runs' values.
struct Spread {
    low: f64,
    median: f64,
    high: f64,
    runs: usize,
}

impl Spread {
    fn of(values: &[f64]) -> Spread {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        // Between the two nearest ranks, in proportion.
        let at = |share: f64| {
            let place = share * (sorted.len() - 1) as f64;
            let below = place.floor() as usize;
            let above = (below + 1).min(sorted.len() - 1);
            sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64)
        };
        Spread { low: at(0.1), median: at(0.5), high: at(0.9), runs: sorted.len() }
    }
}

/// A parameter's value as a number with its unit.
fn quantity(text: &str) -> Option<(f64, &'static str)> {
    if let Ok(number) = text.parse::<f64>() {
        return number.is_finite().then_some((number, ""));
    }
    if let Ok(rate) = text.parse::<Rate>() {
        return Some((rate.bits_per_second() as f64 / 1e6, "Mbit/s"));
    }
    if let Ok(span) = text.parse::<Span>() {
        return Some((span.as_secs_f64() * 1e3, "ms"));
    }
    if let Some(packets) = text.strip_suffix("packets") {
        return Some((packets.trim().parse().ok()?, "packets"));
    }
    text.parse::<Bytes>().ok().map(|bytes| (bytes.0 as f64 / 1e3, "kB"))
}
