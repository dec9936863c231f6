//! An item's table and charts, and its forms: text for people, JSON for programs and for the page.

use lastmile::units::Rate;
use lastmile_sim::scenario::Scenario;
use serde_json::{Map, Value, json};

use super::Estimate;
use crate::table::Table as Text;

/// Rows under columns; and charts, where a picture says more.
#[derive(Default)]
pub(crate) struct Table {
    columns: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
    charts: Vec<Chart>,
}

/// What stands in a cell.
pub(crate) enum Cell {
    Text(String),
    /// A number of ours, and what the paper has.
    Number {
        ours: Option<Estimate>,
        paper: Option<f64>,
    },
    /// A number without an interval: one that no chance has a part in.
    Exact(Option<f64>, Option<f64>),
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

impl From<Option<Estimate>> for Cell {
    fn from(ours: Option<Estimate>) -> Cell {
        Cell::Number { ours, paper: None }
    }
}

impl From<(Option<Estimate>, Option<f64>)> for Cell {
    fn from((ours, paper): (Option<Estimate>, Option<f64>)) -> Cell {
        Cell::Number { ours, paper }
    }
}

/// Lines over a number.
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) x: &'static str,
    pub(crate) y: &'static str,
    /// By name: x, and y there.
    pub(crate) lines: Vec<(String, Vec<(f64, Estimate)>)>,
    /// What the paper says of it: values, and of what.
    pub(crate) stated: Vec<(f64, String)>,
}

impl Table {
    pub(crate) fn new(columns: &[&'static str]) -> Table {
        Table { columns: columns.to_vec(), ..Table::default() }
    }

    /// What lies between the hosts of a scenario: its links one by one, its stations by their access points.
    pub(crate) fn links(scenario: &Scenario) -> Table {
        let mut table = Table::new(&["from", "to", "rate", "delay", "queue", "loses packets"]);
        let of_link = |rate: Option<Rate>| rate.map_or_else(|| "-".to_owned(), |rate| rate.to_string());
        for link in &scenario.links {
            let config = &link.config;
            let of = |vertex| Cell::from(scenario.vertex_name(vertex));
            let loses = if config.losses.is_empty() { "no" } else { "yes" };
            let cells =
                [of_link(config.rate), config.delay.to_string(), config.queue.to_string(), loses.to_owned()];
            table.row([of(link.from), of(link.to)].into_iter().chain(cells.map(Cell::from)));
        }
        for station in scenario.wlans.iter().flat_map(|wlan| &wlan.config.station) {
            let Some(ap) = &station.ap else { continue };
            let loses = if station.frame_error > 0.0 || station.channel.is_some() { "yes" } else { "no" };
            let queue = format!("{} packets", station.queue);
            let cells = [of_link(station.rate), "-".to_owned(), queue, loses.to_owned()];
            table.row([ap.clone(), station.name.clone()].into_iter().chain(cells).map(Cell::from));
        }
        table
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    pub(crate) fn chart(&mut self, chart: Chart) {
        self.charts.push(chart);
    }

    /// For people: the interval behind a number, the paper's in brackets.
    pub(crate) fn text(&self) -> String {
        let is_text =
            |column: usize| self.rows.iter().all(|row| matches!(row.get(column), Some(Cell::Text(_)) | None));
        let heads: Vec<String> = self
            .columns
            .iter()
            .enumerate()
            .map(|(at, name)| format!("{}{}", if is_text(at) { "" } else { ">" }, name.replace('_', " ")))
            .collect();
        let mut text = Text::new(&heads.iter().map(String::as_str).collect::<Vec<_>>());
        for row in &self.rows {
            text.row(row.iter().map(Cell::text));
        }
        text.text()
    }

    /// For programs: each row an object, by the columns; beside a number its interval and the paper's.
    pub(crate) fn json(&self) -> (Value, Value, Value) {
        let row = |cells: &Vec<Cell>| {
            let mut all = Map::new();
            self.columns.iter().zip(cells).for_each(|(column, cell)| cell.json(column, &mut all));
            Value::Object(all)
        };
        let point = |(x, y): &(f64, Estimate)| {
            let half = y.half.unwrap_or(0.0);
            json!([x, y.mean, y.mean - half, y.mean + half])
        };
        let chart = |chart: &Chart| {
            let line = |(name, points): &(String, Vec<(f64, Estimate)>)| json!({ "name": name, "points": points.iter().map(point).collect::<Vec<_>>() });
            json!({
                "title": chart.title, "x": chart.x, "y": chart.y, "stated": chart.stated,
                "lines": chart.lines.iter().map(line).collect::<Vec<_>>(),
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
            Cell::Exact(ours, paper) => of(*ours, None, *paper),
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
