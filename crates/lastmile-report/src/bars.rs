//! Horizontal bars: a name, a bar from zero, and where there is one an interval and a mark beside it.

use std::fmt::Write;

use crate::chart::Axis;
use crate::html::esc;

const WIDTH: f64 = 560.0;
const LEFT: f64 = 232.0;
const RIGHT: f64 = 545.0;
const ROW: f64 = 22.0;
/// Bars of one figure; of more, the first.
const MAX_BARS: usize = 60;
/// Characters of a name that fit beside a bar.
const MAX_NAME: usize = 36;

/// One bar.
#[derive(Clone, Debug, Default)]
pub struct Bar {
    /// Its name.
    pub name: String,
    /// Its end on the axis.
    pub value: f64,
    /// Ends of a line that goes over it.
    pub range: Option<(f64, f64)>,
    /// A mark to hold it against: the truth.
    pub mark: Option<f64>,
    /// The class of its colour.
    pub class: &'static str,
    /// Its tooltip.
    pub tip: String,
}

/// A figure of bars; nothing where there are none. `label` names the quantity with its unit, `keys` the meaning of colours
/// and marks.
pub fn figure(title: &str, label: &str, keys: &[(&str, &str)], bars: &[Bar]) -> String {
    let drawn: Vec<&Bar> = bars.iter().filter(|bar| bar.value.is_finite()).take(MAX_BARS).collect();
    if drawn.is_empty() {
        return String::new();
    }
    let values = drawn.iter().flat_map(|bar| {
        [Some(bar.value), bar.mark, bar.range.map(|r| r.0), bar.range.map(|r| r.1)].into_iter().flatten()
    });
    let values: Vec<f64> = values.chain([0.0]).filter(|value| value.is_finite()).collect();
    let axis = match values.iter().any(|value| *value < 0.0) {
        true => Axis::over(label, values),
        false => Axis::from_zero(label, values),
    };
    let x = |value: f64| LEFT + axis.place(value) * (RIGHT - LEFT);
    let bottom = drawn.len() as f64 * ROW + 4.0;
    let mut svg = String::new();
    for (value, text) in axis.ticks(5.0) {
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{0:.1}\" y1=\"0\" x2=\"{0:.1}\" y2=\"{bottom}\"/>\
             <text text-anchor=\"middle\" x=\"{0:.1}\" y=\"{1}\">{text}</text>",
            x(value),
            bottom + 15.0
        );
    }
    for (row, bar) in drawn.iter().enumerate() {
        let y = row as f64 * ROW + 4.0;
        let middle = y + (ROW - 6.0) / 2.0;
        let (from, to) = (x(bar.value.min(0.0)), x(bar.value.max(0.0)));
        let _ = write!(
            svg,
            "<g class=\"{}\"><title>{}</title><text text-anchor=\"end\" x=\"{}\" y=\"{:.1}\">{}</text>\
             <rect class=\"bar\" x=\"{from:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{}\"/>",
            bar.class,
            esc(&bar.tip),
            LEFT - 8.0,
            middle + 4.0,
            esc(&shortened(&bar.name)),
            (to - from).max(1.0),
            ROW - 6.0
        );
        if let Some((low, high)) = bar.range.filter(|r| r.0.is_finite() && r.1.is_finite()) {
            let _ = write!(
                svg,
                "<line class=\"over\" x1=\"{:.1}\" y1=\"{middle:.1}\" x2=\"{:.1}\" y2=\"{middle:.1}\"/>",
                x(low),
                x(high)
            );
        }
        if let Some(mark) = bar.mark.filter(|mark| mark.is_finite()) {
            let _ = write!(
                svg,
                "<line class=\"mark c2\" x1=\"{0:.1}\" y1=\"{1:.1}\" x2=\"{0:.1}\" y2=\"{2:.1}\"/>",
                x(mark),
                y - 2.0,
                y + ROW - 4.0
            );
        }
        svg += "</g>\n";
    }
    let keys: String = keys
        .iter()
        .map(|(class, text)| format!("<span class=\"key {class}\"><i>{}</i></span>", esc(text)))
        .collect();
    let more = match bars.len() > drawn.len() {
        true => format!("<p class=\"soft\">{} of {} are drawn.</p>", drawn.len(), bars.len()),
        false => String::new(),
    };
    format!(
        "<figure><figcaption><b>{0}</b>{keys}</figcaption>\n<svg viewBox=\"0 0 {WIDTH} {1:.0}\" role=\"img\" \
         aria-label=\"{0}\">\n{svg}<line class=\"axis\" x1=\"{2:.1}\" y1=\"0\" x2=\"{2:.1}\" y2=\"{bottom}\"/>\
         <text text-anchor=\"middle\" x=\"{3}\" y=\"{4}\">{5}</text></svg>{more}</figure>\n",
        esc(title),
        bottom + 36.0,
        x(0.0),
        (LEFT + RIGHT) / 2.0,
        bottom + 31.0,
        esc(label)
    )
}

fn shortened(name: &str) -> String {
    match name.chars().count() > MAX_NAME {
        true => name.chars().take(MAX_NAME - 1).chain(['…']).collect(),
        false => name.to_owned(),
    }
}
