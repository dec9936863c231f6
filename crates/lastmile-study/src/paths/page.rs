//! The page of measured paths.

use lastmile_report::html::{esc, page as html};
use lastmile_report::rows::{cell, table};
use serde_json::{Map, Value};

/// True if a document is of measured paths.
pub(crate) fn is_one(document: &Map<String, Value>) -> bool {
    ["paths", "rows", "codes", "costs", "numbers"].iter().all(|key| document.contains_key(*key))
}

/// The page.
pub fn page(document: &Value) -> String {
    let of = |key: &str| document.get("paths").and_then(|paths| paths.get(key));
    let facts: String = ["runs", "cells", "seed", "methods"]
        .iter()
        .filter_map(|key| Some((key, cell(key, of(key)?))))
        .map(|(key, value)| format!("<div><dt>{key}</dt><dd>{}</dd></div>", esc(&value)))
        .collect();
    let mut body = format!("<header>\n<h1>Random paths</h1>\n<dl class=\"facts\">{facts}</dl>\n</header>\n");
    let sections = [
        ("rows", "Numbers by method and feature", &["method", "row"][..]),
        ("codes", "By warning and refusal", &["method", "code"]),
        ("costs", "Costs", &["method"]),
        ("removed", "Without one feature", &["feature", "method"]),
    ];
    for (key, title, first) in sections {
        let rows = document.get(key).and_then(Value::as_array).into_iter().flatten();
        let rows: Vec<Map<String, Value>> =
            rows.filter_map(Value::as_object).cloned().map(without_lists).collect();
        if !rows.is_empty() {
            let rows: Vec<&Map<String, Value>> = rows.iter().collect();
            body += &format!("<h2>{title}</h2>\n{}", table(&rows, first));
        }
    }
    let numbers = document.get("numbers").and_then(Value::as_array).into_iter().flatten();
    let silent =
        |number: &&Map<String, Value>| number.get("verdict").and_then(Value::as_str) == Some("silent");
    let silent: Vec<&Map<String, Value>> = numbers.filter_map(Value::as_object).filter(silent).collect();
    let first = ["path", "method", "direction", "quantity", "rate_bps", "truth_bps", "interval"];
    body += &format!("<h2>Wrong without a word</h2>\n{}", table(&silent, &first));
    html("Random paths", &body)
}

fn without_lists(mut row: Map<String, Value>) -> Map<String, Value> {
    row.retain(|_, value| !value.is_array());
    row
}
