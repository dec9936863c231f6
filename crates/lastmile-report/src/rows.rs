//! Tables of rows as JSON has them.

use lastmile::units::Rate;
use serde_json::{Map, Value};

use crate::html::esc;

/// Rows that are shown.
const MAX_ROWS: usize = 2_000;

/// A number of a row.
pub fn number(row: &Map<String, Value>, key: &str) -> Option<f64> {
    row.get(key).and_then(Value::as_f64).filter(|value| value.is_finite())
}

/// A value as a person reads it. The text is not escaped.
pub fn cell(key: &str, value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        Value::Number(number) => match (number.as_u64(), number.as_f64()) {
            (_, Some(rate)) if key.ends_with("_bps") && rate >= 0.0 => {
                Rate::ip(rate.round() as u64).to_string()
            }
            (Some(whole), _) => whole.to_string(),
            // Four digits that count: nobody reads more in a table.
            (None, Some(small)) if small != 0.0 && small.abs() < 0.001 => format!("{small:.3e}"),
            (None, Some(0.0)) => "0".to_owned(),
            (None, Some(value)) => {
                let decimals = (3.0 - value.abs().max(1e-3).log10().floor()).clamp(0.0, 6.0) as usize;
                format!("{value:.decimals$}")
            }
            _ => number.to_string(),
        },
        Value::Array(items) => items.iter().map(|item| cell(key, item)).collect::<Vec<_>>().join("; "),
        // A code beside its words.
        Value::Object(items) if items.contains_key("text") => cell("text", &items["text"]),
        Value::Object(items) if items.contains_key("low_bps") => {
            let of = |key: &str| items.get(key).map_or_else(String::new, |value| cell(key, value));
            format!("{} to {}", of("low_bps"), of("high_bps"))
        }
        Value::Object(items) => items
            .iter()
            .map(|(name, value)| format!("{} {name}", cell("", value)))
            .collect::<Vec<_>>()
            .join(", "),
    }
}

/// A table of rows: first the columns named, then whatever else the rows have; columns without any value are left out.
pub fn table(rows: &[&Map<String, Value>], first: &[&str]) -> String {
    let mut columns: Vec<&str> = first.to_vec();
    for key in rows.iter().take(MAX_ROWS).flat_map(|row| row.keys()) {
        if !columns.contains(&key.as_str()) {
            columns.push(key);
        }
    }
    columns
        .retain(|key| rows.iter().any(|row| row.get(*key).is_some_and(|value| !cell(key, value).is_empty())));
    let numeric =
        |key: &str| rows.iter().all(|row| row.get(key).is_none_or(|v| v.is_number() || v.is_null()));
    let head: String = columns
        .iter()
        .map(|key| {
            let class = if numeric(key) { " class=\"n\"" } else { "" };
            let name = key.strip_suffix("_bps").unwrap_or(key).replace('_', " ");
            format!("<th{class}>{}</th>", esc(&name))
        })
        .collect();
    let body: String = rows
        .iter()
        .take(MAX_ROWS)
        .map(|row| {
            let cells: String = columns
                .iter()
                .map(|key| {
                    let class = if numeric(key) { " class=\"n\"" } else { "" };
                    let text = row.get(*key).map_or_else(String::new, |value| cell(key, value));
                    format!("<td{class}>{}</td>", esc(&text))
                })
                .collect();
            format!("<tr>{cells}</tr>\n")
        })
        .collect();
    let more = match rows.len() > MAX_ROWS {
        true => format!("<p class=\"soft\">The first {MAX_ROWS} of {} are shown.</p>", rows.len()),
        false => String::new(),
    };
    format!(
        "<div class=\"card scroll\"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table>{more}</div>\n"
    )
}
