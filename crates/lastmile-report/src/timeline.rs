//! Decisions over time, in lanes.

use std::fmt::Write;

use lastmile::time::Time;

use crate::chart::Axis;
use crate::event::{Happened, Mood, Told};
use crate::html::esc;

const WIDTH: f64 = 1180.0;
const LEFT: f64 = 100.0;
const RIGHT: f64 = 1160.0;
const ROW: f64 = 34.0;

/// The class of its colour.
fn class(mood: Mood) -> &'static str {
    match mood {
        Mood::Good => "cg",
        Mood::Bad => "cb",
        Mood::Neutral => "ci",
    }
}

/// The list of events in words, folded; `all` is how many there are beside those that are given.
pub fn list(events: &[Happened], all: u64) -> String {
    if events.is_empty() {
        return String::new();
    }
    let row = |Happened { at, node, told }: &Happened| {
        let class = if told.mood == Mood::Bad { " class=\"bad\"" } else { "" };
        format!(
            "<tr><td class=\"n\">{at}</td><td class=\"n\">{node}</td><td{class}>{}</td></tr>\n",
            esc(&told.text)
        )
    };
    let rows: String = events.iter().map(row).collect();
    let title = match all > events.len() as u64 {
        true => format!("The first {} of {all} events", events.len()),
        false => format!("All {all} events"),
    };
    format!(
        "<details>\n<summary>{title}</summary>\n<div class=\"card scroll\"><table>\n<thead><tr><th class=\"n\">time</th>\
         <th class=\"n\">node</th><th>what</th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n</details>\n"
    )
}

/// Events in the lanes of a timeline, named from above; a lane without events is left out.
pub fn section(events: &[Happened], lanes: &[&str]) -> String {
    let times = || events.iter().map(|e| e.at.as_secs_f64());
    let (first, last) = (times().fold(f64::INFINITY, f64::min), times().fold(0.0, f64::max));
    if events.is_empty() {
        return String::new();
    }
    let mut used = lanes.to_vec();
    used.retain(|lane| events.iter().any(|event| event.told.lane == *lane));
    let spread = if last > first { last - first } else { 1.0 };
    let x = |at: f64| LEFT + 14.0 + (at - first) / spread * (RIGHT - LEFT - 28.0);
    let bottom = used.len() as f64 * ROW;

    let mut svg = String::new();
    for (row, lane) in used.iter().enumerate() {
        let y = row as f64 * ROW;
        let _ = writeln!(
            svg,
            "<rect class=\"lane\" x=\"{LEFT}\" y=\"{:.1}\" width=\"{}\" height=\"{}\" rx=\"6\"/>\
             <text text-anchor=\"end\" x=\"{}\" y=\"{:.1}\">{}</text>",
            y + 3.0,
            RIGHT - LEFT,
            ROW - 6.0,
            LEFT - 10.0,
            y + ROW / 2.0 + 4.0,
            esc(lane)
        );
    }
    for Happened { at, told, .. } in events {
        let row = used.iter().position(|&lane| lane == told.lane).unwrap_or(0);
        mark(&mut svg, *at, told, x(at.as_secs_f64()), row as f64 * ROW + ROW / 2.0);
    }
    for (at, text) in Axis::over("", [first, first + spread]).ticks(8.0) {
        // The axis has more room at its ends than the lanes have.
        if at >= first && at <= first + spread {
            let (x, y) = (x(at), bottom + 16.0);
            let _ = writeln!(svg, "<text text-anchor=\"middle\" x=\"{x:.1}\" y=\"{y:.1}\">{text} s</text>");
        }
    }
    format!(
        "<h2>Timeline</h2>\n<div class=\"card timeline\"><figure><figcaption>\
         <span class=\"key cg\"><i>believed, or a result</i></span><span class=\"key cb\"><i>discarded or refused</i></span>\
         <span class=\"key ci\"><i>other</i></span>point at a mark to read it</figcaption>\n\
         <svg viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" aria-label=\"Timeline\">\n{svg}</svg></figure></div>\n",
        bottom + 22.0
    )
}

/// Shape and colour both say what it is: round for good, a cross for bad, a diamond for the rest.
fn mark(svg: &mut String, at: Time, Told { mood, text, .. }: &Told, x: f64, y: f64) {
    let class = class(*mood);
    let shape = match mood {
        Mood::Good => format!("<circle class=\"dot\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5.5\"/>"),
        Mood::Bad => {
            let (a, b, c, d) = (x - 5.0, y - 5.0, x + 5.0, y + 5.0);
            format!(
                "<path class=\"mark\" stroke-width=\"2.5\" d=\"M{a:.1} {b:.1}L{c:.1} {d:.1}M{a:.1} {d:.1}L{c:.1} {b:.1}\"/>\
                 <rect x=\"{a:.1}\" y=\"{b:.1}\" width=\"10\" height=\"10\" fill=\"transparent\"/>"
            )
        }
        Mood::Neutral => {
            format!("<path class=\"dot\" d=\"M{:.1} {y:.1}l5.5 -5.5l5.5 5.5l-5.5 5.5z\"/>", x - 5.5)
        }
    };
    let _ = writeln!(svg, "<g class=\"{class}\"><title>{at}: {}</title>{shape}</g>", esc(text));
}
