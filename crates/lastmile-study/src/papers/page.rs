//! The page of a reproduction: claims, and each item's charts and table.

use lastmile_report::drawn::{chart, table as in_columns};
use lastmile_report::html::{esc, page as html};
use lastmile_report::rows::{cell, folded, table};
use lastmile_report::topology::topology;
use serde_json::{Map, Value};

/// True if a document is a reproduction's.
pub(crate) fn is_one(document: &Map<String, Value>) -> bool {
    ["paper", "items", "claims"].iter().all(|key| document.contains_key(*key))
}

/// The page.
pub fn page(document: &Value) -> String {
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
    body += "<p class=\"soft\">Means over the runs, or medians where an item says so, with their 95 % intervals (99 % where a column says ci99); the paper's own numbers beside.</p>\n";
    let list = |key: &str| {
        document.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
    };
    let claims: String = list("claims").filter(|claim| !waits(claim)).map(claim).collect();
    if !claims.is_empty() {
        body += &format!("<h2>Claims</h2>\n{claims}");
    }
    let others = list("claims").filter(|claim| waits(claim)).count();
    if let Some(counted) = counted(document).filter(|_| others == 0) {
        body += &format!("<p>{}</p>\n", esc(&counted));
    }
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
        let rows: Vec<Map<String, Value>> = rows.filter_map(Value::as_object).cloned().collect();
        let all = in_columns(&rows, item.get("columns"));
        body += &match item.get("topology").and_then(Value::as_bool) {
            Some(true) => topology(&rows) + &folded("As a table", &all),
            _ => all,
        };
    }
    html(&of("paper"), &body)
}

/// The verdicts on the paper's own claims, counted, in words.
pub(crate) fn counted(document: &Value) -> Option<String> {
    let of = |key: &str| document.get("held")?.get(key)?.as_u64();
    Some(format!(
        "Of the paper's claims {} hold as written, {} miss with a cause, shown or presumed, and {} without one; {} are undecided.",
        of("holds")?,
        of("misses_with_cause")?,
        of("misses_without_cause")?,
        of("undecided")?,
    ))
}

/// True if a claim waits for items that were not asked for.
pub(crate) fn is_elsewhere(claim: &Value) -> bool {
    claim.as_object().is_some_and(waits)
}

fn waits(claim: &Map<String, Value>) -> bool {
    claim.get("needs").and_then(Value::as_array).is_some_and(|needs| !needs.is_empty())
}

/// Number of such claims, in words.
pub(crate) fn elsewhere(claims: usize) -> String {
    match claims {
        1 => "1 other claim needs another item (--item)".to_owned(),
        claims => format!("{claims} other claims need other items (--item)"),
    }
}

/// A claim: its words, the paper's numbers, and a row for each part.
fn claim(claim: &Map<String, Value>) -> String {
    let of = |key: &str| esc(&claim.get(key).map_or_else(String::new, |value| cell(key, value)));
    let (class, verdict) = match claim.get("holds").and_then(Value::as_bool) {
        Some(true) => ("good", "holds"),
        Some(false) => ("bad", "does not hold"),
        None => ("soft", "undecided"),
    };
    let why =
        if of("why").is_empty() { String::new() } else { format!("<p class=\"soft\">{}</p>\n", of("why")) };
    let parts =
        claim.get("parts").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object);
    let parts: Vec<Map<String, Value>> = parts.map(part).collect();
    let rows = match parts.is_empty() {
        true => format!("<p>{}</p>\n", of("ours")),
        false => {
            table(&parts.iter().collect::<Vec<_>>(), &["part", "ours", "95 % interval", "n", "bar", "holds"])
        }
    };
    format!(
        "<h3 id=\"{0}\">{0}: {1}<span class=\"tag {class}\">{verdict}</span></h3>\n<p class=\"soft\">The paper: {2}</p>\n{why}{rows}",
        of("id"),
        of("claim"),
        of("paper")
    )
}

/// A part of a claim, its value and interval with their unit.
fn part(part: &Map<String, Value>) -> Map<String, Value> {
    let of = |key: &str| part.get(key).map_or_else(String::new, |value| cell(key, value));
    let interval =
        if of("low").is_empty() { String::new() } else { format!("{} to {}", of("low"), of("high")) };
    let ours = format!("{} {}", of("ours"), if of("ours").is_empty() { String::new() } else { of("unit") });
    let all = [
        ("part", of("part")),
        ("ours", ours),
        ("95 % interval", interval),
        ("n", of("n")),
        ("bar", of("bar")),
        ("holds", of("holds")),
    ];
    all.into_iter().map(|(key, text)| (key.to_owned(), text.trim().to_owned().into())).collect()
}
