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
            (_, Some(seconds)) if key.ends_with("_s") => time(seconds),
            (_, Some(share)) if key.ends_with("_share") => format!("{} %", digits(100.0 * share, 3)),
            (_, Some(bytes)) if key.ends_with("_bytes") && bytes >= 1e4 => match bytes >= 1e7 {
                true => format!("{} MB", digits(bytes / 1e6, 4)),
                false => format!("{} kB", digits(bytes / 1e3, 4)),
            },
            (_, Some(bytes)) if key.ends_with("_bytes") => format!("{} B", digits(bytes, 4)),
            (Some(whole), _) => whole.to_string(),
            (None, Some(value)) => digits(value, 4),
            _ => number.to_string(),
        },
        Value::Array(items) => items.iter().map(|item| cell(key, item)).collect::<Vec<_>>().join("; "),
        // A code beside its words.
        Value::Object(items) if items.contains_key("text") => cell("text", &items["text"]),
        Value::Object(items) if items.contains_key("low_bps") => {
            let of = |key: &str| items.get(key).map_or_else(String::new, |value| cell(key, value));
            let (low, high) = (of("low_bps"), of("high_bps"));
            // The unit of both is said once.
            let unit = |text: &str| text.split_once(' ').map(|(_, unit)| unit.to_owned());
            let short = unit(&low).filter(|_| unit(&low) == unit(&high)).and_then(|_| low.split(' ').next());
            format!("{} to {high}", short.unwrap_or(&low))
        }
        Value::Object(items) => items
            .iter()
            .map(|(name, value)| format!("{} {name}", cell("", value)))
            .collect::<Vec<_>>()
            .join(", "),
    }
}

/// A number with so many digits that count, and no zeros at its end: nobody reads more in a table.
fn digits(value: f64, count: i32) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if value.abs() < 0.001 {
        return format!("{value:.3e}");
    }
    let decimals = (f64::from(count - 1) - value.abs().log10().floor()).clamp(0.0, 6.0) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Seconds with the unit that suits them.
fn time(seconds: f64) -> String {
    match seconds.abs() {
        0.0 => "0".to_owned(),
        less if less < 1e-3 => format!("{} us", digits(seconds * 1e6, 3)),
        less if less < 1.0 => format!("{} ms", digits(seconds * 1e3, 4)),
        _ => format!("{} s", digits(seconds, 4)),
    }
}

/// A table of the columns named, those without any value left out; below it, folded, all fields of the rows.
pub fn chosen(rows: &[&Map<String, Value>], columns: &[&str]) -> String {
    let all = rows.iter().flat_map(|row| row.keys()).any(|key| !columns.contains(&key.as_str()));
    let all = if all { folded("All fields", &table(rows, columns)) } else { String::new() };
    rendered(rows, columns.to_vec()) + &all
}

/// Something that is shown on demand.
pub fn folded(title: &str, body: &str) -> String {
    format!("<details>\n<summary>{}</summary>\n{body}</details>\n", esc(title))
}

/// A table of rows: first the columns named, then whatever else the rows have; columns without any value are left out.
pub fn table(rows: &[&Map<String, Value>], first: &[&str]) -> String {
    let mut columns: Vec<&str> = first.to_vec();
    for key in rows.iter().take(MAX_ROWS).flat_map(|row| row.keys()) {
        if !columns.contains(&key.as_str()) {
            columns.push(key);
        }
    }
    rendered(rows, columns)
}

/// Columns from which on a table stands row by row on a narrow screen.
const WIDE: usize = 4;
/// Columns from which on it does so on a screen of middle width too.
const MANY: usize = 11;
/// Columns from which on a table of few rows lies on its side: no screen has room for them.
const TOO_MANY: usize = 14;
const FEW: usize = 10;
/// Bytes from which on a text is a sentence.
const SENTENCE: usize = 60;
/// Class of a column of sentences.
const LONG: &str = " class=\"long\"";

fn rendered(rows: &[&Map<String, Value>], mut columns: Vec<&str>) -> String {
    columns
        .retain(|key| rows.iter().any(|row| row.get(*key).is_some_and(|value| !cell(key, value).is_empty())));
    if columns.len() >= TOO_MANY && rows.len() <= FEW {
        return on_its_side(rows, &columns);
    }
    let numeric =
        |key: &str| rows.iter().all(|row| row.get(key).is_none_or(|v| v.is_number() || v.is_null()));
    // Numbers stand to the right, with their units and intervals too; sentences need room.
    let class = |key: &str| {
        let texts = || rows.iter().filter_map(|row| row.get(key)).map(|value| cell(key, value));
        let begins = |text: &String| text.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        match () {
            () if texts().any(|text| text.len() > SENTENCE) => LONG,
            () if texts().all(|text| text.is_empty() || begins(&text)) => " class=\"n\"",
            () => "",
        }
    };
    let classes: Vec<&str> = columns.iter().map(|key| class(key)).collect();
    let head: String = columns
        .iter()
        .zip(&classes)
        .map(|(key, class)| format!("<th{class}>{}</th>", esc(&name(key, numeric(key)))))
        .collect();
    let wide = match columns.len() {
        MANY.. => " class=\"wide many\"",
        WIDE.. => " class=\"wide\"",
        // Sentences beside names are as wide.
        _ if classes.contains(&LONG) => " class=\"wide\"",
        _ => "",
    };
    let body: String = rows
        .iter()
        .take(MAX_ROWS)
        .map(|row| {
            let cells: String = columns
                .iter()
                .zip(&classes)
                .map(|(key, class)| {
                    let text = row.get(*key).map_or_else(String::new, |value| cell(key, value));
                    // A narrow screen has it beside the value.
                    let label = if wide.is_empty() { String::new() } else { name(key, numeric(key)) };
                    let label = if label.is_empty() { label } else { format!(" data-l=\"{}\"", esc(&label)) };
                    format!("<td{class}{label}>{}</td>", esc(&text))
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
        "<div class=\"card scroll\"><table{wide}>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table>{more}</div>\n"
    )
}

/// A table with a line for each column; its first column heads it.
fn on_its_side(rows: &[&Map<String, Value>], columns: &[&str]) -> String {
    let text =
        |row: &Map<String, Value>, key: &str| row.get(key).map_or_else(String::new, |value| cell(key, value));
    let line = |(at, key): (usize, &&str)| {
        let numeric = rows.iter().all(|row| row.get(*key).is_none_or(|v| v.is_number() || v.is_null()));
        let (open, close) =
            if at == 0 { ("<th class=\"n\">", "</th>") } else { ("<td class=\"n\">", "</td>") };
        let cells: String = rows.iter().map(|row| format!("{open}{}{close}", esc(&text(row, key)))).collect();
        format!("<tr><th>{}</th>{cells}</tr>\n", esc(&name(key, numeric)))
    };
    let lines: String = columns.iter().enumerate().map(line).collect();
    format!("<div class=\"card scroll\"><table class=\"side\">\n<tbody>\n{lines}</tbody></table></div>\n")
}

/// A column's name: units that its values have are left out.
fn name(key: &str, numeric: bool) -> String {
    let with_unit = ["_s", "_share", "_bytes"].into_iter().filter(|_| numeric).chain(["_bps"]);
    with_unit.fold(key, |name, unit| name.strip_suffix(unit).unwrap_or(name)).replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_have_four_digits_and_no_zeros_behind_them() {
        let of = |key: &str, value: f64| cell(key, &json!(value));
        assert_eq!(
            [0.8, 0.127_21, 100.0, 9_216.7].map(|value| of("x", value)),
            ["0.8", "0.1272", "100", "9217"]
        );
        assert_eq!(
            [0.127_21, 2.5, 0.0, 3e-5].map(|value| of("delay_s", value)),
            ["127.2 ms", "2.5 s", "0", "30 us"]
        );
        assert_eq!(
            (of("busy_share", 0.797_4), of("queue_bytes", 37_493.0)),
            ("79.7 %".into(), "37.49 kB".into())
        );
        assert_eq!(
            (name("busy_share", true), name("busy_share", false)),
            ("busy".into(), "busy share".into())
        );
    }

    #[test]
    fn a_table_of_many_columns_and_few_rows_lies_on_its_side() {
        let row: Map<String, Value> = (0..TOO_MANY).map(|at| (format!("k{at:02}"), json!(at))).collect();
        let drawn = table(&[&row, &row], &[]);
        assert_eq!(
            (drawn.matches("<tr>").count(), drawn.matches("<td").count()),
            (TOO_MANY, 2 * (TOO_MANY - 1))
        );
        assert!(table(&[&row; FEW + 1], &[]).contains("<thead>"));
    }

    #[test]
    fn chosen_columns_stand_alone_and_the_others_are_folded() {
        let row = json!({"flow": "a", "sent": 5, "nacked": 7});
        let drawn = chosen(&[row.as_object().unwrap()], &["flow", "sent", "lost"]);
        let (first, rest) = drawn.split_once("<details>").unwrap();
        assert!(first.contains("sent") && !first.contains("nacked") && !first.contains("lost"), "{first}");
        assert!(rest.contains("nacked"), "{rest}");
        assert!(!chosen(&[row.as_object().unwrap()], &["flow", "sent", "nacked"]).contains("<details>"));
    }
}
