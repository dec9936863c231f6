//! A sweep's results as a page: each number against the parameter of most values, a curve for each value of a second one, and a chart
//! for each combination of the others; the median and 10 to 90 % of the runs, their number, and the refusals.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::io::{self, BufRead, Read};

use lastmile::time::Span;
use lastmile::units::{Bytes, Rate};
use serde_json::{Map, Value};

use lastmile_report::chart::{Axis, Chart};
use lastmile_report::html::{at_most, esc, page};

/// Charts on one page; with more, nobody looks at any.
const MAX_CHARTS: usize = 60;
/// Rows of a file; any beyond are not read.
const MAX_ROWS: usize = 2_000_000;
const MAX_LINE: u64 = 1_000_000;

/// The numbers that are drawn: key, axis, factor.
const MEASURED: [(&str, &str, f64); 3] = [
    ("rate_bps", "Mbit/s", 1e-6),
    ("error", "error against the truth, %", 100.0),
    ("seconds", "seconds", 1.0),
];
const FLOWS: [(&str, &str, f64); 2] =
    [("goodput_bps", "goodput, Mbit/s", 1e-6), ("delay_mean_s", "mean delay, ms", 1e3)];

const LINKS: [(&str, &str, f64); 2] =
    [("queue_mean_bytes", "mean queue, kB", 1e-3), ("busy_share", "busy, % of the time", 100.0)];

/// Curves of one chart, by their colours.
const COLOURS: [&str; 9] = ["s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9"];

/// The place of the value of each parameter.
type Combination = Vec<usize>;

/// A sweep's numbers, by series and quantity; then by combination.
#[derive(Default)]
pub struct SweepResult {
    rows: usize,
    runs: BTreeSet<u64>,
    seeds: BTreeSet<u64>,
    /// The parameters in their order of appearance, with their values in that order.
    parameters: Vec<(String, Vec<String>)>,
    points: BTreeMap<(String, &'static str), BTreeMap<Combination, Vec<f64>>>,
    /// Results without a number, by method and direction.
    refused: BTreeMap<String, BTreeMap<Combination, BTreeSet<u64>>>,
}

/// True if a column is a parameter: a scenario's keys are dotted but for a few, results' are not.
fn is_parameter(key: &str) -> bool {
    key.contains('.') || ["duration", "warm_up"].contains(&key)
}

/// True if a file's first line is a sweep's.
pub fn is_sweep(first_line: &str) -> bool {
    let Ok(Value::Object(row)) = serde_json::from_str(first_line) else { return false };
    row.get("run").is_some_and(Value::is_u64) && row.get("seed").is_some_and(Value::is_u64)
}

/// True if a file's first line is the head of a sweep's CSV.
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
    /// A line is no row of a sweep: its number and the reason.
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
        let combination: Combination = set
            .iter()
            .map(|(key, value)| {
                let at = self.parameters.iter().position(|p| p.0 == **key).unwrap_or_else(|| {
                    self.parameters.push(((*key).clone(), Vec::new()));
                    self.parameters.len() - 1
                });
                let values = &mut self.parameters[at].1;
                values.iter().position(|v| v == value).unwrap_or_else(|| {
                    values.push((*value).to_owned());
                    values.len() - 1
                })
            })
            .collect();
        let text = |key: &str| row.get(key).and_then(Value::as_str).unwrap_or_default();
        let ends = || format!("{}>{}", text("from"), text("to"));
        // Rows of older sweeps say no kind: those of flows have a flow.
        let kind = match row.get("row").and_then(Value::as_str) {
            Some(kind) => kind,
            None if row.contains_key("flow") => "flow",
            None => "result",
        };
        if row.get("refused").is_some_and(Value::is_string) {
            let of = self.refused.entry(format!("{} {}", text("method"), text("direction"))).or_default();
            of.entry(combination.clone()).or_default().extend(number("run"));
        }
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
            let of = self.points.entry((series.clone(), key)).or_default();
            of.entry(combination.clone()).or_default().push(value * factor);
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
            body += "<p class=\"soft\">Lines: medians. Bars: from the 10th to the 90th percentile of the runs, which differ by their \
                     seeds alone. Numbers at points: results that were refused there.</p>\n";
        }
        let (mut charts, mut before) = (Vec::new(), "");
        for ((series, key), values) in &self.points {
            // A number that is always zero has nothing to show.
            if self.parameters.is_empty() || values.values().flatten().all(|value| *value == 0.0) {
                continue;
            }
            let own = self.charts(series, key, values);
            charts.extend(own.into_iter().map(|chart| (series.as_str(), chart)));
        }
        let notice = at_most(&mut charts, MAX_CHARTS);
        for (series, chart) in charts {
            if before != series {
                body += if before.is_empty() { "" } else { "</div></div>\n" };
                let _ = writeln!(body, "<h2>{}</h2>\n<div class=\"card\"><div class=\"plots\">", esc(series));
                before = series;
            }
            body += &chart;
        }
        body += if before.is_empty() { "" } else { "</div></div>\n" };
        page(file, &(body + &notice))
    }

    /// The parameters in the order of what they are: axis, curves, charts. The axis is a quantity if there is one; curves have colours.
    fn order(&self) -> Vec<usize> {
        let mut all: Vec<usize> = (0..self.parameters.len()).collect();
        let values = |&at: &usize| &self.parameters[at].1;
        all.sort_by_key(|at| (quantities(values(at)).is_none(), Reverse(values(at).len())));
        let few = |at: &usize| values(at).len() <= COLOURS.len();
        if let Some(second) = all.iter().skip(1).position(few) {
            all[1..].swap(0, second);
        }
        all
    }

    /// Values of some parameters in a combination, in words.
    fn words(&self, of: &[usize], combination: &Combination) -> String {
        let word =
            |&at: &usize| format!("{} = {}", self.parameters[at].0, self.parameters[at].1[combination[at]]);
        of.iter().map(word).collect::<Vec<_>>().join(", ")
    }

    /// The charts of a series' number: one for each combination of the parameters beyond the second, on the same axes.
    fn charts(&self, series: &str, key: &str, values: &BTreeMap<Combination, Vec<f64>>) -> Vec<String> {
        let label = MEASURED.iter().chain(&FLOWS).chain(&LINKS).find(|q| q.0 == key).map_or(key, |q| q.1);
        let order = self.order();
        let few = order.get(1).is_some_and(|&at| self.parameters[at].1.len() <= COLOURS.len());
        let (axis, curves, others) = (order[0], order.get(1).filter(|_| few), &order[1 + usize::from(few)..]);
        let (name, texts) = &self.parameters[axis];
        let numbers = quantities(texts);
        let x_of = |at: usize| numbers.as_ref().map_or(at as f64 + 1.0, |(numbers, _)| numbers[at]);
        let x = match &numbers {
            None => Axis::named(name, texts),
            Some((numbers, "")) => Axis::over(name, numbers.iter().copied()),
            Some((numbers, unit)) => Axis::over(&format!("{name}, {unit}"), numbers.iter().copied()),
        };
        let spreads: BTreeMap<&Combination, Spread> =
            values.iter().map(|(combination, values)| (combination, Spread::of(values))).collect();
        let y = Axis::over(label, spreads.values().flat_map(|spread| [spread.low, spread.high]));
        let refused = self.refused.iter().find(|(of, _)| series.starts_with(of.as_str())).map(|of| of.1);
        let mut facets: BTreeMap<Combination, Vec<&Combination>> = BTreeMap::new();
        for combination in spreads.keys() {
            facets.entry(others.iter().map(|&at| combination[at]).collect()).or_default().push(combination);
        }
        let facet = |all: &Vec<&Combination>| {
            let of = all.first().map_or_else(String::new, |first| self.words(others, first));
            let title = [format!("{label} against {name}"), of];
            let title = title.iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join("; ");
            let mut chart = Chart::new(&title, x.clone(), y.clone());
            let runs = all.iter().map(|combination| spreads[*combination].runs);
            let (least, most) = (runs.clone().min().unwrap_or(0), runs.max().unwrap_or(0));
            let n = if least == most { format!("n = {most}") } else { format!("n = {least} to {most}") };
            let mut by_curve: BTreeMap<usize, Vec<&Combination>> = BTreeMap::new();
            for combination in all {
                by_curve.entry(curves.map_or(0, |&at| combination[at])).or_default().push(combination);
            }
            for (curve, combinations) in &mut by_curve {
                combinations.sort_by(|a, b| x_of(a[axis]).total_cmp(&x_of(b[axis])));
                let class = COLOURS[*curve % COLOURS.len()];
                if let Some(&at) = curves {
                    chart = chart.key(class, &self.words(&[at], combinations[0]));
                }
                let place = |combination: &Combination| (x_of(combination[axis]), &spreads[combination]);
                if numbers.is_some() {
                    let line = combinations.iter().map(|combination| place(combination));
                    chart =
                        chart.line(class, &line.map(|(x, spread)| (x, spread.median)).collect::<Vec<_>>());
                }
                let mut dots = Vec::new();
                for combination in combinations.iter() {
                    let (x, spread) = place(combination);
                    let refusals = refused.and_then(|all| all.get(*combination)).map_or(0, |runs| runs.len());
                    let tip = format!(
                        "{}: median {:.4}, 10 to 90 %: {:.4} to {:.4}, {} runs, {refusals} refused",
                        self.words(&order, combination),
                        spread.median,
                        spread.low,
                        spread.high,
                        spread.runs
                    );
                    chart = chart.whisker(class, x, spread.low, spread.high, &tip);
                    if refusals > 0 {
                        chart = chart.label(class, x, spread.median, &refusals.to_string());
                    }
                    dots.push((x, spread.median, tip));
                }
                chart = chart.points(class, &dots);
            }
            chart.key("soft", &n).figure()
        };
        facets.values().map(facet).collect()
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

/// Values as numbers of one unit.
fn quantities(texts: &[String]) -> Option<(Vec<f64>, &'static str)> {
    let all: Vec<(f64, &'static str)> = texts.iter().map(|text| quantity(text)).collect::<Option<_>>()?;
    let unit = all.first()?.1;
    all.iter().all(|one| one.1 == unit).then(|| (all.iter().map(|one| one.0).collect(), unit))
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
