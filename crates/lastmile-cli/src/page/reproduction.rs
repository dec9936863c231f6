//! What `lastmile reproduce --json` says, as a page: claims, and each item's charts and table.

use serde_json::{Map, Value};

use super::chart::{Axis, Chart};
use super::html::{esc, page as html};
use super::table::{cell, table};

/// Lines that a chart has colours for.
const COLOURS: [&str; 9] = ["s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9"];
/// A line of more points has no dots.
const MAX_DOTS: usize = 60;

/// Whether a document is a reproduction's.
pub(crate) fn is_one(document: &Map<String, Value>) -> bool {
    ["paper", "items", "claims"].iter().all(|key| document.contains_key(*key))
}

/// The page.
pub(crate) fn page(document: &Value) -> String {
    let of = |key: &str| document.get(key).map_or_else(String::new, |value| cell(key, value));
    let facts: String = ["world", "runs"]
        .iter()
        .map(|key| format!("<div><dt>{key}</dt><dd>{}</dd></div>", esc(&of(key))))
        .collect();
    let mut body = format!(
        "<header>\n<h1>{}</h1>\n<p>{}</p>\n<dl class=\"facts\">{facts}</dl>\n</header>\n",
        esc(&of("paper")),
        esc(&of("citation"))
    );
    body += "<p class=\"soft\">Means over the runs with their 95 % intervals (99 % where a column says ci99); the paper's own numbers beside.</p>\n";
    let list = |key: &str| {
        document.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
    };
    let claims: Vec<Map<String, Value>> =
        list("claims").filter(|claim| !waits(claim)).map(in_words).collect();
    if !claims.is_empty() {
        body += "<h2>Claims</h2>\n";
        body += &table(&claims.iter().collect::<Vec<_>>(), &["id", "holds", "claim", "paper", "ours", "why"]);
    }
    let others = list("claims").filter(|claim| waits(claim)).count();
    if others > 0 {
        body += &format!("<p class=\"soft\">{}</p>\n", esc(&elsewhere(others)));
    }
    for item in list("items") {
        let of = |key: &str| item.get(key).map_or_else(String::new, |value| cell(key, value));
        let number = if of("number").is_empty() { String::new() } else { format!(" ({})", of("number")) };
        body +=
            &format!("<h2 id=\"{0}\">{0}{1}: {2}</h2>\n", esc(&of("item")), esc(&number), esc(&of("shows")));
        let charts = item.get("charts").and_then(Value::as_array).into_iter().flatten();
        let charts: String = charts.map(chart).collect();
        if !charts.is_empty() {
            body += &format!("<div class=\"card\"><div class=\"plots wide\">\n{charts}</div></div>\n");
        }
        let rows = item.get("rows").and_then(Value::as_array).into_iter().flatten();
        let rows: Vec<Map<String, Value>> = rows.filter_map(Value::as_object).map(short).collect();
        body += &table(&rows.iter().collect::<Vec<_>>(), &[]);
    }
    html(&of("paper"), &body)
}

/// Whether a claim waits for items that were not asked for.
pub(crate) fn is_elsewhere(claim: &Value) -> bool {
    claim.as_object().is_some_and(waits)
}

fn waits(claim: &Map<String, Value>) -> bool {
    claim.get("needs").and_then(Value::as_array).is_some_and(|needs| !needs.is_empty())
}

/// How many such claims there are.
pub(crate) fn elsewhere(claims: usize) -> String {
    match claims {
        1 => "1 other claim waits for items that were not asked for".to_owned(),
        claims => format!("{claims} other claims wait for items that were not asked for"),
    }
}

/// A claim without what its words say already.
fn in_words(claim: &Map<String, Value>) -> Map<String, Value> {
    let own = |key: &&String| !["needs", "without"].contains(&key.as_str());
    claim.iter().filter(|(key, _)| own(key)).map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// A row without its medians, an interval and the paper's number in one cell.
pub(super) fn short(row: &Map<String, Value>) -> Map<String, Value> {
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

pub(super) fn chart(chart: &Value) -> String {
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
