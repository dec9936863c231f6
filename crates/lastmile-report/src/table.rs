//! An item's table and charts, and its forms: text for people, JSON for programs and for the page.

use lastmile::observe::stats;
use serde_json::{Map, Value, json};

use crate::Mean;
use crate::text;

/// Rows under columns; and charts, where a picture says more.
#[derive(Default)]
pub struct Table {
    columns: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
    charts: Vec<Chart>,
    topology: bool,
}

/// A cell.
pub enum Cell {
    /// Words.
    Text(String),
    /// A number of ours, and the paper's.
    Number {
        /// The mean over runs.
        ours: Option<Mean>,
        /// The paper's number.
        paper: Option<f64>,
    },
    /// A median with the ends of its interval, and the paper's.
    Middle {
        /// The median, and the lower and the upper end.
        ours: Option<[f64; 3]>,
        /// The paper's number.
        paper: Option<f64>,
    },
    /// A number without an interval: one that no chance has a part in.
    Exact(Option<f64>, Option<f64>),
    /// A count.
    Count(usize),
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl From<Option<Mean>> for Cell {
    fn from(ours: Option<Mean>) -> Cell {
        Cell::Number { ours, paper: None }
    }
}

impl From<(Option<Mean>, Option<f64>)> for Cell {
    fn from((ours, paper): (Option<Mean>, Option<f64>)) -> Cell {
        Cell::Number { ours, paper }
    }
}

/// A line of a chart, by its name: x, and y there.
pub type Line = (String, Vec<(f64, Mean)>);

/// Lines over a number.
pub struct Chart {
    /// Its title.
    pub title: String,
    /// The name of the horizontal axis, with its unit.
    pub x: &'static str,
    /// The name of the vertical axis, with its unit.
    pub y: &'static str,
    /// Its lines.
    pub lines: Vec<Line>,
    /// Values that the paper states, each with its name.
    pub stated: Vec<(f64, String)>,
    /// Parts of the plane, each with its name.
    pub regions: Vec<(&'static str, Vec<Region>)>,
    /// Boxes with whiskers side by side at 1, 2, 3 and so on, each with its name; points of lines stand beside.
    pub boxes: Vec<(String, Option<Spread>)>,
    /// True if its lines are points alone.
    pub scattered: bool,
}

/// Quantiles of some values that a box with whiskers shows: the 10th, 25th, 50th, 75th and 90th percentile.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Spread {
    /// The lower whisker's end.
    pub p10: f64,
    /// The box's lower end.
    pub p25: f64,
    /// The line within the box.
    pub p50: f64,
    /// The box's upper end.
    pub p75: f64,
    /// The upper whisker's end.
    pub p90: f64,
    /// Values.
    pub n: usize,
}

impl Spread {
    /// Of values; nothing of none.
    ///
    /// ```
    /// use lastmile_report::table::Spread;
    /// let values: Vec<f64> = (0..=20).map(f64::from).collect();
    /// let expected = Spread { p10: 2.0, p25: 5.0, p50: 10.0, p75: 15.0, p90: 18.0, n: 21 };
    /// assert_eq!(Spread::of(&values), Some(expected));
    /// assert_eq!(Spread::of(&[]), None);
    /// ```
    pub fn of(values: &[f64]) -> Option<Spread> {
        let at = |q| stats::quantile(values, q);
        let (p10, p25, p50, p75, p90) = (at(0.1)?, at(0.25)?, at(0.5)?, at(0.75)?, at(0.9)?);
        Some(Spread { p10, p25, p50, p75, p90, n: values.len() })
    }
}

/// A rectangle: from and to where across, and up; without an end it goes as far as the chart does.
pub type Region = (f64, f64, Option<f64>, Option<f64>);

impl Chart {
    /// Lines, and nothing of a paper.
    pub fn new(title: impl Into<String>, x: &'static str, y: &'static str, lines: Vec<Line>) -> Chart {
        let (stated, regions, boxes) = (Vec::new(), Vec::new(), Vec::new());
        Chart { title: title.into(), x, y, lines, stated, regions, boxes, scattered: false }
    }

    /// Boxes with whiskers side by side, of the values behind each name, and the paper's median of each.
    pub fn boxes(
        title: impl Into<String>,
        y: &'static str,
        all: Vec<(String, Vec<f64>, Option<f64>)>,
    ) -> Chart {
        let (mut boxes, mut paper) = (Vec::new(), Vec::new());
        for (name, values, median) in all {
            // A name without values keeps its place, and so the others their colours.
            boxes.push((name, Spread::of(&values)));
            paper.extend(median.map(|median| (boxes.len() as f64, Mean::exactly(median))));
        }
        Chart { boxes, ..Chart::new(title, "", y, vec![("the paper's median".to_owned(), paper)]) }
    }

    /// The same with other points beside the boxes.
    pub fn beside(self, name: &str, points: Vec<(f64, Mean)>) -> Chart {
        Chart { lines: vec![(name.to_owned(), points)], ..self }
    }

    /// The same with its lines' points alone.
    pub fn scattered(self) -> Chart {
        Chart { scattered: true, ..self }
    }

    /// The same with a part of the plane filled.
    pub fn region(mut self, name: &'static str, parts: Vec<Region>) -> Chart {
        self.regions.push((name, parts));
        self
    }

    /// The same beside values of a paper, each with words.
    pub fn stated<'a>(self, stated: impl IntoIterator<Item = (f64, &'a str)>) -> Chart {
        Chart { stated: stated.into_iter().map(|(y, what)| (y, what.to_owned())).collect(), ..self }
    }
}

/// A line for each name over numbers; where there is no mean, it has no point.
pub fn lines<X: Copy + Into<f64>>(
    names: &[&'static str],
    over: &[X],
    of: impl Fn(&'static str, X) -> Option<Mean>,
) -> Vec<Line> {
    let line = |name| over.iter().filter_map(|&x| Some((x.into(), of(name, x)?))).collect();
    names.iter().map(|&name| (name.to_owned(), line(name))).collect()
}

impl Table {
    /// A table without rows.
    pub fn new(columns: &[&'static str]) -> Table {
        Table { columns: columns.to_vec(), ..Table::default() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Adds a chart.
    pub fn chart(&mut self, chart: Chart) {
        self.charts.push(chart);
    }

    /// The same, of links: each row has `from`, `to`, `rate` and `delay`, and a page draws them as a network.
    pub fn of_links(self) -> Table {
        Table { topology: true, ..self }
    }

    /// True if its rows are links.
    pub fn is_topology(&self) -> bool {
        self.topology
    }

    /// For people: the interval behind a number, the paper's in brackets. Columns whose name begins with `~` are details.
    pub fn text(&self) -> text::Table {
        let is_text =
            |column: usize| self.rows.iter().all(|row| matches!(row.get(column), Some(Cell::Text(_)) | None));
        let heads: Vec<String> = self
            .columns
            .iter()
            .enumerate()
            .map(|(at, name)| {
                let (detail, name) = name.strip_prefix('~').map_or(("", *name), |name| ("~", name));
                format!("{detail}{}{}", if is_text(at) { "" } else { ">" }, name.replace('_', " "))
            })
            .collect();
        let mut text = text::Table::new(&heads.iter().map(String::as_str).collect::<Vec<_>>());
        for row in &self.rows {
            text.row(row.iter().map(Cell::text));
        }
        text
    }

    /// For programs: each row an object, by the columns; beside a number its interval and the paper's.
    pub fn json(&self) -> (Value, Value, Value) {
        let row = |cells: &Vec<Cell>| {
            let mut all = Map::new();
            self.columns.iter().zip(cells).for_each(|(column, cell)| cell.json(column, &mut all));
            Value::Object(all)
        };
        let point = |(x, y): &(f64, Mean)| {
            let half = y.half.unwrap_or(0.0);
            json!([x, y.mean, y.mean - half, y.mean + half])
        };
        let chart = |chart: &Chart| {
            let line = |(name, points): &(String, Vec<(f64, Mean)>)| json!({ "name": name, "points": points.iter().map(point).collect::<Vec<_>>() });
            let spread =
                |(name, spread): &(String, Option<Spread>)| json!({ "name": name, "spread": spread });
            json!({
                "title": chart.title, "x": chart.x, "y": chart.y, "stated": chart.stated, "regions": chart.regions,
                "lines": chart.lines.iter().map(line).collect::<Vec<_>>(), "scattered": chart.scattered,
                "boxes": chart.boxes.iter().map(spread).collect::<Vec<_>>(),
            })
        };
        (json!(self.columns), self.rows.iter().map(row).collect(), self.charts.iter().map(chart).collect())
    }
}

impl Cell {
    fn text(&self) -> String {
        let of = |ours: Option<f64>, half: Option<f64>, paper: Option<f64>| {
            let ours =
                ours.map_or_else(|| "-".to_owned(), |ours| format!("{:.*}", decimals(ours), ours + 0.0));
            let half = half.map_or_else(String::new, |half| format!(" ±{half:.1}"));
            ours + &half + &paper.map_or_else(String::new, |paper| format!(" ({paper})"))
        };
        match self {
            Cell::Text(text) => text.clone(),
            Cell::Number { ours, paper } => of(ours.map(|o| o.mean), ours.and_then(|o| o.half), *paper),
            Cell::Middle { ours, paper } => {
                let range = ours.map_or_else(String::new, |[_, low, high]| {
                    format!(", {:.*} to {:.*}", decimals(low), low + 0.0, decimals(high), high + 0.0)
                });
                of(ours.map(|ours| ours[0]), None, None)
                    + &range
                    + &paper.map_or_else(String::new, |paper| format!(" ({paper})"))
            }
            Cell::Exact(ours, paper) => of(*ours, None, *paper),
            Cell::Count(count) => count.to_string(),
        }
    }

    fn json(&self, column: &str, row: &mut Map<String, Value>) {
        let mut add = |what: &str, value: Option<f64>| {
            row.insert(format!("{column}{what}"), value.map_or(Value::Null, |value| json!(value)));
        };
        match self {
            Cell::Text(text) => {
                row.insert(column.to_owned(), json!(text));
            }
            Cell::Number { ours, paper } => {
                add("", ours.map(|ours| ours.mean));
                let end = |sign: f64| ours.and_then(|ours| Some(ours.mean + sign * ours.half?));
                add("_low", end(-1.0));
                add("_high", end(1.0));
                add("_median", ours.map(|ours| ours.median));
                if paper.is_some() {
                    add("_paper", *paper);
                }
            }
            Cell::Middle { ours, paper } => {
                add("", ours.map(|ours| ours[0]));
                add("_low", ours.map(|ours| ours[1]));
                add("_high", ours.map(|ours| ours[2]));
                if paper.is_some() {
                    add("_paper", *paper);
                }
            }
            Cell::Count(count) => {
                row.insert(column.to_owned(), json!(count));
            }
            Cell::Exact(ours, paper) => {
                add("", *ours);
                if paper.is_some() {
                    add("_paper", *paper);
                }
            }
        }
    }
}

/// One digit after the point, two of what is small.
fn decimals(value: f64) -> usize {
    if value != 0.0 && value.abs() < 1.0 { 2 } else { 1 }
}
