//! A heat map of an evaluation: a row for each scenario, a column for each controller, shaded by what was used of the possible.

use std::fmt::Write;

use lastmile_report::html::esc;
use serde_json::{Map, Value};

/// The number that is drawn.
const NUMBER: &str = "of_possible";
/// Sizes in pixels: the names on the left, a cell, the heading.
const NAMES: usize = 170;
const CELL_HEIGHT: usize = 20;
const CELL_WIDTH: usize = 70;
/// Width of a character.
const CHARACTER: usize = 8;
const HEADING: usize = 46;

/// The objects of a list of a document.
pub(super) fn rows_of(list: Option<&Value>) -> impl Iterator<Item = &Map<String, Value>> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}

/// The map as SVG. Where what was possible is not known, such as behind a WLAN, a league's cells are of the best controller's rate; other
/// evaluations have no row there.
pub fn heat_map(document: &Value) -> String {
    let league: Vec<&Map<String, Value>> = rows_of(document["league"].get("rows")).collect();
    let share_of = |scenario: &Map<String, Value>, row: &Map<String, Value>| {
        let of_best = || {
            let is_it = |place: &&&Map<String, Value>| {
                place.get("case") == scenario.get("scenario")
                    && place.get("controller") == row.get("controller")
            };
            league.iter().find(is_it)?.get("rate")?.as_f64()
        };
        row.get(NUMBER).and_then(Value::as_f64).or_else(of_best)
    };
    let has = |scenario: &&Map<String, Value>| {
        rows_of(scenario.get("rows")).any(|row| share_of(scenario, row).is_some())
    };
    let scenarios: Vec<&Map<String, Value>> = rows_of(document.get("scenarios")).filter(has).collect();
    let controllers: Vec<&str> =
        document["controllers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let longest = controllers.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let cell = CELL_WIDTH.max(CHARACTER * longest);
    let (width, height) = (NAMES + cell * controllers.len() + 8, HEADING + CELL_HEIGHT * scenarios.len() + 8);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n\
         <text x=\"8\" y=\"16\" font-weight=\"bold\">Used of what was possible, %{}</text>\n",
        if league.is_empty() { "" } else { "; of the best, where that is not known" }
    );
    for (column, controller) in controllers.iter().enumerate() {
        let x = NAMES + cell * column + cell / 2;
        let _ = writeln!(svg, "<text x=\"{x}\" y=\"38\" text-anchor=\"middle\">{}</text>", esc(controller));
    }
    for (row, scenario) in scenarios.iter().enumerate() {
        let y = HEADING + CELL_HEIGHT * row;
        let name = scenario.get("scenario").and_then(Value::as_str).unwrap_or_default();
        let _ = writeln!(svg, "<text x=\"8\" y=\"{}\">{}</text>", y + 14, esc(name));
        for of in rows_of(scenario.get("rows")) {
            let Some(column) =
                controllers.iter().position(|one| of.get("controller").and_then(Value::as_str) == Some(one))
            else {
                continue;
            };
            let Some(share) = share_of(scenario, of) else { continue };
            let (x, text) = (NAMES + cell * column, if share > 65.0 { "#fff" } else { "#000" });
            let _ = writeln!(
                svg,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" fill=\"{}\"/><text x=\"{}\" y=\"{}\" \
                 text-anchor=\"middle\" style=\"fill:{text}\">{share:.0}</text>",
                cell - 1,
                CELL_HEIGHT - 1,
                shade(share),
                x + cell / 2,
                y + 14
            );
        }
    }
    svg + "</svg>\n"
}

/// From white at nothing to dark blue at 100 % and more.
fn shade(share: f64) -> String {
    let at = (share / 100.0).clamp(0.0, 1.0);
    let mix = |full: f64| (255.0 + (full - 255.0) * at).round() as u8;
    format!("#{:02x}{:02x}{:02x}", mix(12.0), mix(68.0), mix(124.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_scenario_and_controller_has_a_cell_with_its_number() {
        let mut document = json!({
            "controllers": ["tfrc", "tcp"],
            "scenarios": [{ "scenario": "a<b", "rows": [
                { "controller": "tfrc", "of_possible": 99.6 }, { "controller": "tcp", "of_possible": null },
            ]}, { "scenario": "air", "rows": [{ "controller": "tfrc", "of_possible": null }] }],
        });
        let svg = heat_map(&document);
        assert_eq!(svg.matches("<rect").count(), 2, "{svg}");
        assert!(svg.contains("a&lt;b") && svg.contains(">100</text>") && !svg.contains("air"), "{svg}");
        document["league"] = json!({ "rows": [{ "case": "air", "controller": "tfrc", "rate": 71.0 }] });
        let svg = heat_map(&document);
        assert!(svg.contains("air") && svg.contains(">71</text>") && svg.contains("of the best"), "{svg}");
        assert_eq!((shade(0.0).as_str(), shade(130.0).as_str()), ("#ffffff", "#0c447c"));
    }
}
