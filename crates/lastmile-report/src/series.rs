//! The series of a run (`--series`) as a page: each number of each flow, link and WLAN over time.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};

use serde_json::{Map, Value};

use crate::chart::{Axis, Chart};
use crate::html::{at_most, esc, page};
use crate::rows::number;

/// Numbers that are drawn: key, title of the chart, factor.
const DRAWN: [(&str, &str, f64); 11] = [
    ("goodput_bps", "goodput, Mbit/s of IP packets", 1e-6),
    ("sent_bps", "sent, Mbit/s of IP packets", 1e-6),
    ("delay_s", "mean delay, ms", 1e3),
    ("window_packets", "window, packets", 1.0),
    ("queue_mean_bytes", "queue, kB", 1e-3),
    ("queue_packets", "queue, packets", 1.0),
    ("busy_share", "busy, % of the time", 100.0),
    ("phy_bps", "rate of frames, Mbit/s", 1e-6),
    ("retry_share", "frames sent again, %", 100.0),
    ("lost", "packets lost", 1.0),
    ("marked", "packets marked", 1.0),
];
/// Lines of one chart, by their colours.
const COLOURS: [&str; 5] = ["c1", "c2", "cg", "ci", "cb"];
/// Lines that are kept; names come from the file.
const MAX_LINES: usize = 400;
const MAX_CHARTS: usize = 60;
/// Points of a line that are kept; of more, every second, and again.
const MAX_POINTS: usize = 2_000;
const MAX_LINE: u64 = 1_000_000;

/// A line that holds at most [`MAX_POINTS`], however many come.
#[derive(Default)]
struct Line {
    points: Vec<(f64, f64)>,
    every: usize,
    seen: usize,
}

impl Line {
    fn add(&mut self, at: f64, value: f64) {
        if self.seen.is_multiple_of(self.every.max(1)) {
            self.points.push((at, value));
        }
        self.seen += 1;
        if self.points.len() > MAX_POINTS {
            self.points = self.points.iter().copied().step_by(2).collect();
            self.every = 2 * self.every.max(1);
        }
    }
}

/// A run's series.
#[derive(Default)]
pub struct SeriesResult {
    rows: usize,
    /// By number and kind of row, by name.
    lines: BTreeMap<(usize, String), BTreeMap<String, Line>>,
    kept: usize,
}

/// True if a file's first line is that of a series: JSON, or the head of a CSV.
pub fn is_series(first_line: &str) -> bool {
    match serde_json::from_str(first_line) {
        Ok(Value::Object(row)) => ["at_s", "row", "name"].iter().all(|key| row.contains_key(*key)),
        _ => first_line.starts_with("at_s,row,name,"),
    }
}

impl SeriesResult {
    /// Reads all rows, be they JSON lines or CSV.
    ///
    /// # Errors
    /// A line is no row of a series: its number and the reason.
    pub fn read(mut file: impl BufRead) -> io::Result<SeriesResult> {
        let mut result = SeriesResult::default();
        if file.fill_buf()?.first() != Some(&b'{') {
            let mut csv = csv::Reader::from_reader(file);
            let names = csv.headers()?.clone();
            for record in csv.records() {
                let record = record?;
                let cells =
                    names.iter().zip(&record).filter(|cell| !cell.1.is_empty()).map(|(name, cell)| {
                        let value = cell.parse::<f64>().ok().filter(|_| name != "name").map(Value::from);
                        (name.to_owned(), value.unwrap_or_else(|| Value::from(cell)))
                    });
                result.add(&cells.collect());
            }
            return Ok(result);
        }
        let mut line = Vec::new();
        loop {
            line.clear();
            if (&mut file as &mut dyn BufRead).take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
                return Ok(result);
            }
            let row: Map<String, Value> = serde_json::from_slice(&line).map_err(|error| {
                let what = format!("line {}: not a row of a series: {error}", result.rows + 1);
                io::Error::new(io::ErrorKind::InvalidData, what)
            })?;
            result.add(&row);
        }
    }

    fn add(&mut self, row: &Map<String, Value>) {
        self.rows += 1;
        let text = |key: &str| row.get(key).and_then(Value::as_str).unwrap_or_default();
        let Some(at) = number(row, "at_s") else { return };
        for (index, &(key, _, factor)) in DRAWN.iter().enumerate() {
            let Some(value) = number(row, key) else { continue };
            let lines = self.lines.entry((index, text("row").to_owned())).or_default();
            if !lines.contains_key(text("name")) {
                if self.kept >= MAX_LINES {
                    continue;
                }
                self.kept += 1;
            }
            lines.entry(text("name").to_owned()).or_default().add(at, value * factor);
        }
    }

    /// The page. Lines in which nothing ever was are left out.
    pub fn page(&self, file: &str) -> String {
        let mut figures = Vec::new();
        for ((index, kind), lines) in &self.lines {
            let lines: Vec<_> =
                lines.iter().filter(|line| line.1.points.iter().any(|p| p.1 != 0.0)).collect();
            for some in lines.chunks(COLOURS.len()) {
                let points = || some.iter().flat_map(|line| &line.1.points);
                let (label, x) = (DRAWN[*index].1, Axis::from_zero("time, s", points().map(|p| p.0)));
                let what = label.split(',').next().unwrap_or(label);
                let y = Axis::from_zero(label, points().map(|p| p.1));
                let mut chart = Chart::new(&format!("{kind}s: {what}"), x, y);
                for ((name, line), colour) in some.iter().zip(COLOURS) {
                    chart = chart.key(colour, name).line(colour, &line.points);
                }
                figures.push(chart.figure());
            }
        }
        let notice = at_most(&mut figures, MAX_CHARTS);
        let body = format!(
            "<header>\n<h1>{}</h1>\n<dl class=\"facts\"><div><dt>rows</dt><dd>{}</dd></div></dl>\n</header>\n\
             <div class=\"card\"><div class=\"plots\">\n{}</div></div>\n{notice}",
            esc(file),
            self.rows,
            figures.concat()
        );
        page(file, &body)
    }
}
