//! The page of an evaluation: each scenario's table, differences, changes and charts.

use lastmile_report::drawn::{chart, table as in_columns};
use lastmile_report::html::{esc, page as html};
use lastmile_report::rows::{cell, table};
use serde_json::{Map, Value, json};

use super::heat::{heat_map, rows_of};
use super::league::STANDINGS;

/// True if a document is an evaluation's.
pub(crate) fn is_one(document: &Map<String, Value>) -> bool {
    ["evaluation", "controllers", "scenarios"].iter().all(|key| document.contains_key(*key))
}

/// The page.
pub fn page(document: &Value) -> String {
    let of = |key: &str| document.get(key).map_or_else(String::new, |value| cell(key, value));
    let facts: String = ["runs", "controllers", "variants", "playout_ms"]
        .iter()
        .filter(|key| !of(key).is_empty())
        .map(|key| format!("<div><dt>{}</dt><dd>{}</dd></div>", key.replace('_', " "), esc(&of(key))))
        .collect();
    let mut body = format!(
        "<header>\n<h1>Rate controllers compared</h1>\n<dl class=\"facts\">{facts}</dl>\n</header>\n"
    );
    let first =
        document.get("controllers").and_then(|all| all.get(0)).and_then(Value::as_str).unwrap_or_default();
    body += "<p class=\"soft\">Means over the runs with their 95 % intervals; differences are paired by seed.</p>\n";
    body += &league(document);
    for scenario in rows_of(document.get("scenarios")) {
        let of = |key: &str| scenario.get(key).map_or_else(String::new, |value| cell(key, value));
        let rows = |key: &str, columns| -> String {
            let rows: Vec<Map<String, Value>> = rows_of(scenario.get(key)).cloned().collect();
            in_columns(&rows, columns)
        };
        let columns = scenario.get("columns");
        let change_columns = json!(["at_s", "change", "controller", "converges_s", "stable_percent"]);
        body +=
            &format!("<h2 id=\"{0}\">{0}</h2>\n<p>{1}</p>\n", esc(&of("scenario")), esc(&of("description")));
        body += &rows("rows", columns);
        if !of("alike").is_empty() {
            let why = "nothing that is random in the scenario reaches them: their intervals do not say how sure a number is";
            body += &format!("<p class=\"soft\">All runs are alike of {}: {why}.</p>\n", esc(&of("alike")));
        }
        let failed: Vec<_> = rows_of(scenario.get("failed")).collect();
        if !failed.is_empty() {
            body += &format!(
                "<p>Failed, and so without numbers:</p>\n{}",
                table(&failed, &["controller", "runs", "seed", "why"])
            );
        }
        let charts = scenario.get("charts").and_then(Value::as_array).into_iter().flatten();
        let charts: String = charts.map(chart).collect();
        body += &format!("<div class=\"card\"><div class=\"plots wide\">\n{charts}</div></div>\n");
        body += &format!(
            "<details>\n<summary>More than {}, seed by seed</summary>\n{}</details>\n",
            esc(first),
            rows("differences", columns)
        );
        body += &format!(
            "<details>\n<summary>After each change</summary>\n{}</details>\n",
            rows("changes", Some(&change_columns))
        );
    }
    let sources: Vec<&Map<String, Value>> = rows_of(document.get("sources")).collect();
    if !sources.is_empty() {
        body += &format!("<h2>Controllers</h2>\n{}", table(&sources, &["controller", "source", "settings"]));
    }
    let metrics: Vec<&Map<String, Value>> = rows_of(document.get("metrics")).collect();
    body += &format!("<h2>Meaning of the numbers</h2>\n{}", table(&metrics, &["name", "unit", "about"]));
    html("Rate controllers compared", &body)
}

/// The league's standings, its heat map, and each controller's place in each case.
fn league(document: &Value) -> String {
    let Some(league) = document.get("league") else { return String::new() };
    let all = |key: &str, columns: &[&str]| {
        let rows: Vec<&Map<String, Value>> = rows_of(league.get(key)).collect();
        table(&rows, columns)
    };
    let columns = [
        "suite",
        "case",
        "controller",
        "runs",
        "rate",
        "frame_p95_ms",
        "loss",
        "regret",
        "regret_queue_ms",
        "pareto",
        "fair",
        "dominates",
        "dominated",
        "worst_seed",
        "worst_frame_p95_ms",
    ];
    let distribution = |suite: &Map<String, Value>| {
        let name = suite.get("suite").and_then(Value::as_str).unwrap_or_default();
        let charts = suite.get("charts").and_then(Value::as_array).into_iter().flatten();
        let charts: String = charts.map(chart).collect();
        format!(
            "<p><b>{}</b></p>\n<div class=\"card\"><div class=\"plots wide\">\n{charts}</div></div>\n",
            esc(name)
        )
    };
    let distributions: String = rows_of(league.get("distributions")).map(distribution).collect();
    format!(
        "<h2 id=\"league\">League</h2>\n<p>Rivals are held against the first controller by the rules of docs/league.md.</p>\n{}\n\
         <div class=\"card\">{}</div>\n<h3>Distributions over the runs of each suite</h3>\n{distributions}<details>\n<summary>Each case</summary>\n{}</details>\n",
        all("standings", &STANDINGS),
        heat_map(document),
        all("rows", &columns)
    )
}
