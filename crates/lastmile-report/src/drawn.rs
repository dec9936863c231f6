//! The JSON of a [`Table`](crate::table::Table) as a page shows it: rows with their intervals in one cell, and charts.

use serde_json::{Map, Value};

use crate::chart::{Axis, Chart};
use crate::rows;

/// Lines that a chart has colours for.
const COLOURS: [&str; 9] = ["s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9"];
/// A line of more points has no dots.
const MAX_DOTS: usize = 60;

/// Difference of an interval's two sides that its digits show.
const UNLIKE: f64 = 0.05;

/// A row without its medians, an interval and the paper's number in one cell.
pub fn short(row: &Map<String, Value>) -> Map<String, Value> {
    let mut out = Map::new();
    for (key, value) in row {
        let beside = |what: &str| row.get(&format!("{key}_{what}")).and_then(Value::as_f64);
        match value.as_f64() {
            _ if ["_low", "_high", "_median", "_paper"].iter().any(|end| key.ends_with(end)) => {}
            Some(number) => {
                let shown = |number: f64| format!("{:.*}", digits(number), number + 0.0);
                let interval = match (beside("low"), beside("high")) {
                    // Ends that are unlike far from the number are said themselves.
                    (Some(low), Some(high)) if (high + low - 2.0 * number).abs() >= UNLIKE => {
                        format!(", {} to {}", shown(low), shown(high))
                    }
                    (_, high) => high.map_or_else(String::new, |high| format!(" ±{:.1}", high - number)),
                };
                out.insert(key.clone(), (shown(number) + &interval).into());
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

/// A table of such rows in the order of their columns, the paper's numbers beside ours.
pub fn table(rows: &[Map<String, Value>], columns: Option<&Value>) -> String {
    let names = columns.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let names: Vec<String> = names.flat_map(|name| [name.to_owned(), format!("{name} (paper)")]).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    rows::table(&rows.iter().map(short).collect::<Vec<_>>().iter().collect::<Vec<_>>(), &names)
}

fn digits(value: f64) -> usize {
    if value != 0.0 && value.abs() < 1.0 { 2 } else { 1 }
}

/// Half of a box's width, between names that are 1 apart.
const HALF_BOX: f64 = 0.28;

/// A line by its name: x, the mean, and the ends of its interval.
type Line = (String, Vec<[f64; 4]>);

/// Boxes with whiskers, from zero on: the names of what they are of stand below, points of lines and the values that a paper states beside.
fn spreads(title: &str, label: &str, boxes: &[Value], lines: &[Line], stated: &[(f64, String)]) -> String {
    let name = |one: &Value| one.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let names: Vec<String> = boxes.iter().map(name).collect();
    let at = |one: &Value, key: &str| {
        one.get("spread").and_then(|spread| spread.get(key)).and_then(Value::as_f64).unwrap_or(f64::NAN)
    };
    let ends = boxes.iter().flat_map(|one| [at(one, "p10"), at(one, "p90")]);
    let points = || lines.iter().flat_map(|line| &line.1).map(|point| point[1]);
    let y = Axis::from_zero(label, ends.chain(points()).chain(stated.iter().map(|stated| stated.0)));
    let mut drawn = Chart::new(title, Axis::named("", &names), y);
    for (k, (one, class)) in boxes.iter().zip(COLOURS.iter().cycle()).enumerate() {
        let x = k as f64 + 1.0;
        let [p10, p25, p50, p75, p90] = ["p10", "p25", "p50", "p75", "p90"].map(|key| at(one, key));
        if p50.is_nan() {
            continue;
        }
        let tip = format!(
            "{}, {} runs: {p10:.2}, {p25:.2}, {p50:.2}, {p75:.2}, {p90:.2} (10, 25, 50, 75 and 90 %)",
            names[k],
            at(one, "n")
        );
        drawn = drawn
            .whisker(class, x, p10, p25, &tip)
            .whisker(class, x, p75, p90, &tip)
            .column(class, (x - HALF_BOX, x + HALF_BOX), (p25, p75), &tip)
            .across(class, (x - HALF_BOX, x + HALF_BOX), p50, &tip);
        for end in [p10, p90] {
            drawn = drawn.across(class, (x - HALF_BOX / 2.0, x + HALF_BOX / 2.0), end, &tip);
        }
    }
    for (name, points) in lines.iter().filter(|line| !line.1.is_empty()) {
        let tip = |point: &[f64; 4]| (point[0], point[1], format!("{name}: {:.2}", point[1]));
        drawn = drawn.key("soft", name).points("soft", &points.iter().map(tip).collect::<Vec<_>>());
    }
    for (value, what) in stated {
        // A label on the line would stand on a box.
        let key = format!("dashed, at {value:.1}: {what}");
        drawn = drawn.key("soft", &key).horizontal("soft", *value, "");
    }
    drawn.figure()
}

/// A chart; nothing where it has no points.
pub fn chart(chart: &Value) -> String {
    let of = |key: &str| chart.get(key).and_then(Value::as_str).unwrap_or_default();
    let all =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let lines: Vec<Line> = all(chart, "lines")
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
    type Part = (f64, f64, Option<f64>, Option<f64>);
    let regions: Vec<(String, Vec<Part>)> = chart
        .get("regions")
        .cloned()
        .and_then(|regions| serde_json::from_value(regions).ok())
        .unwrap_or_default();
    let boxes = all(chart, "boxes");
    if !boxes.is_empty() {
        return spreads(of("title"), of("y"), &boxes, &lines, &stated);
    }
    let scattered = chart.get("scattered").and_then(Value::as_bool).unwrap_or_default();
    let points = || lines.iter().flat_map(|line| &line.1);
    if points().next().is_none() {
        return String::new();
    }
    let parts = || regions.iter().flat_map(|region| &region.1);
    let x =
        Axis::over(of("x"), points().map(|point| point[0]).chain(parts().flat_map(|part| [part.0, part.1])));
    let values = || points().flat_map(|p| [p[1], p[2], p[3]]).chain(stated.iter().map(|stated| stated.0));
    // Regions without an end need room to be seen in.
    let (low, high) =
        values().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), y| (low.min(y), high.max(y)));
    let room = if regions.is_empty() { 0.0 } else { 0.4 * (high - low) };
    let y = Axis::over(of("y"), values().chain([low - room, high + room]));
    let mut drawn = Chart::new(of("title"), x, y);
    for ((name, parts), class) in regions.iter().zip(["s7", "s8", "s5"].iter().cycle()) {
        drawn = drawn.key(class, name);
        for &(from, to, low, high) in parts {
            let y = (low.unwrap_or(f64::NEG_INFINITY), high.unwrap_or(f64::INFINITY));
            drawn = drawn.region(class, (from, to), y, name);
        }
    }
    // A line that has no points has no name in the key either.
    let seen = |line: &(&Line, &&str)| !line.0.1.is_empty();
    for ((name, points), class) in lines.iter().zip(COLOURS.iter().cycle()).filter(seen) {
        let line: Vec<(f64, f64)> = points.iter().map(|point| (point[0], point[1])).collect();
        let tip = |p: &[f64; 4]| format!("{name}, {}: {:.2}, {:.2} to {:.2}", p[0], p[1], p[2], p[3]);
        let dots: Vec<(f64, f64, String)> =
            points.iter().map(|point| (point[0], point[1], tip(point))).collect();
        drawn = drawn.key(class, name);
        if scattered {
            drawn = drawn.points(class, &dots);
            continue;
        }
        drawn = drawn.line(class, &line);
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
