//! The JSON of a [`Table`](crate::table::Table) as a page shows it: rows with their intervals in one cell, and charts.

use serde_json::{Map, Value};

use crate::chart::{Axis, Chart};

/// Lines that a chart has colours for.
const COLOURS: [&str; 9] = ["s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9"];
/// A line of more points has no dots.
const MAX_DOTS: usize = 60;

/// A row without its medians, an interval and the paper's number in one cell.
pub fn short(row: &Map<String, Value>) -> Map<String, Value> {
    let mut out = Map::new();
    for (key, value) in row {
        let beside = |what: &str| row.get(&format!("{key}_{what}")).and_then(Value::as_f64);
        match value.as_f64() {
            _ if ["_low", "_high", "_median", "_paper"].iter().any(|end| key.ends_with(end)) => {}
            Some(number) => {
                let half = beside("high").map_or_else(String::new, |high| format!(" ±{:.1}", high - number));
                out.insert(key.clone(), format!("{:.*}{half}", digits(number), number + 0.0).into());
                if let Some(paper) = beside("paper") {
                    out.insert(format!("{key} (paper)"), paper.into());
                }
            }
            None => {
                out.insert(key.clone(), value.clone());
            }
        }
    }
    out
}

fn digits(value: f64) -> usize {
    if value != 0.0 && value.abs() < 1.0 { 2 } else { 1 }
}

/// A chart; nothing where it has no points.
pub fn chart(chart: &Value) -> String {
    let of = |key: &str| chart.get(key).and_then(Value::as_str).unwrap_or_default();
    let all =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let lines: Vec<(String, Vec<[f64; 4]>)> = all(chart, "lines")
        .iter()
        .map(|line| {
            let point = |point: &Value| {
                let numbers: Vec<f64> = point.as_array()?.iter().filter_map(Value::as_f64).collect();
                <[f64; 4]>::try_from(numbers).ok()
            };
            let name = line.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            (name, all(line, "points").iter().filter_map(point).collect())
        })
        .collect();
    let stated: Vec<(f64, String)> = all(chart, "stated")
        .iter()
        .filter_map(|stated| Some((stated.get(0)?.as_f64()?, stated.get(1)?.as_str()?.to_owned())))
        .collect();
    let points = || lines.iter().flat_map(|line| &line.1);
    if points().next().is_none() {
        return String::new();
    }
    let x = Axis::over(of("x"), points().map(|point| point[0]));
    let y = Axis::over(
        of("y"),
        points().flat_map(|p| [p[1], p[2], p[3]]).chain(stated.iter().map(|stated| stated.0)),
    );
    let mut drawn = Chart::new(of("title"), x, y);
    for ((name, points), class) in lines.iter().zip(COLOURS.iter().cycle()) {
        let line: Vec<(f64, f64)> = points.iter().map(|point| (point[0], point[1])).collect();
        let tip = |p: &[f64; 4]| format!("{name}, {}: {:.2}, {:.2} to {:.2}", p[0], p[1], p[2], p[3]);
        let dots: Vec<(f64, f64, String)> =
            points.iter().map(|point| (point[0], point[1], tip(point))).collect();
        drawn = drawn.key(class, name).line(class, &line);
        for point in points.iter().filter(|point| point[3] > point[2]) {
            drawn = drawn.whisker(class, point[0], point[2], point[3], &tip(point));
        }
        if dots.len() <= MAX_DOTS {
            drawn = drawn.points(class, &dots);
        }
    }
    for (value, what) in &stated {
        drawn = drawn.horizontal("soft", *value, what);
    }
    drawn.figure()
}
