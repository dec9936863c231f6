//! A small chart: two linear axes, points, lines, bars, marks, and a tooltip for each thing.

use std::fmt::Write;

use crate::html::esc;

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 264.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 408.0;
const TOP: f64 = 32.0;
const BOTTOM: f64 = 222.0;
/// Width of a character.
const CHARACTER: f64 = 6.5;
/// Points of one series that are drawn; of more, every n-th.
const MAX_POINTS: usize = 1_000;

/// A linear axis.
#[derive(Clone, Debug)]
pub struct Axis {
    label: String,
    low: f64,
    high: f64,
    /// Names at 1, 2, 3 and so on, on an axis without numbers.
    names: Vec<String>,
}

/// Characters of a name on an axis.
const MAX_NAME: usize = 16;

impl Axis {
    /// An axis on which names stand one beside the other, at 1, 2, 3 and so on.
    pub fn named(label: &str, names: &[String]) -> Axis {
        let short = |name: &String| match name.chars().count() > MAX_NAME {
            true => name.chars().take(MAX_NAME - 1).chain(['…']).collect(),
            false => name.clone(),
        };
        let names: Vec<String> = names.iter().map(short).collect();
        Axis { label: label.to_owned(), low: 0.5, high: names.len() as f64 + 0.5, names }
    }

    /// An axis that holds all finite `values`, with a little room at either end.
    pub fn over(label: &str, values: impl IntoIterator<Item = f64>) -> Axis {
        let finite = values.into_iter().filter(|v| v.is_finite());
        let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
        let (low, high) = match (low.is_finite(), high - low) {
            (false, _) => (0.0, 1.0),
            (true, 0.0) if low == 0.0 => (0.0, 1.0),
            (true, spread) if spread > 0.0 => (low - spread * 0.04, high + spread * 0.06),
            (true, _) => {
                let room = (low.abs() * 0.05).max(0.5);
                (low - room, high + room)
            }
        };
        Axis { label: label.to_owned(), low, high, names: Vec::new() }
    }

    /// The same, from exactly zero.
    pub fn from_zero(label: &str, values: impl IntoIterator<Item = f64>) -> Axis {
        let high = Axis::over(label, values.into_iter().chain([0.0])).high;
        Axis { label: label.to_owned(), low: 0.0, high, names: Vec::new() }
    }

    /// Place of a value, 0 to 1; values beyond the axis stick to its ends.
    pub fn place(&self, value: f64) -> f64 {
        ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    /// Round numbers, at most `n` or one more, each with its text.
    pub fn ticks(&self, n: f64) -> Vec<(f64, String)> {
        if !self.names.is_empty() {
            let every = (self.names.len() as f64 / n).ceil().max(1.0) as usize;
            let all = self.names.iter().enumerate().step_by(every);
            return all.map(|(at, name)| (at as f64 + 1.0, esc(name))).collect();
        }
        let rough = (self.high - self.low) / n;
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|s| *s >= rough);
        let step = step.unwrap_or(rough);
        let decimals = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
        let first = (self.low / step).ceil();
        let all = (0..).map(|i| (first + f64::from(i)) * step).take(n as usize + 2);
        all.take_while(|v| *v <= self.high).map(|v| (v, number(v, decimals))).collect()
    }
}

/// Large numbers without their zeros, and no minus before zero.
fn number(value: f64, decimals: usize) -> String {
    match value.abs() {
        v if v >= 1e9 => format!("{}G", value / 1e9),
        v if v >= 1e6 => format!("{}M", value / 1e6),
        v if v >= 1e4 => format!("{}k", value / 1e3),
        _ => format!("{:.decimals$}", value + 0.0),
    }
}

/// A chart that is being drawn. Classes name colours: `c1`, `c2`, `cg` (good), `cb` (bad), `ci`.
pub struct Chart {
    title: String,
    keys: String,
    x: Axis,
    y: Axis,
    body: String,
}

impl Chart {
    /// A chart with nothing in it.
    pub fn new(title: &str, x: Axis, y: Axis) -> Chart {
        Chart { title: title.to_owned(), keys: String::new(), x, y, body: String::new() }
    }

    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (LEFT + self.x.place(x) * (RIGHT - LEFT), BOTTOM - self.y.place(y) * (BOTTOM - TOP))
    }

    /// Says what a colour means.
    pub fn key(mut self, class: &str, text: &str) -> Chart {
        let _ = write!(self.keys, "<span class=\"key {class}\"><i>{}</i></span>", esc(text));
        self
    }

    /// Points with their tooltips.
    pub fn points(mut self, class: &str, points: &[(f64, f64, String)]) -> Chart {
        for (x, y, tip) in points.iter().step_by(points.len().div_ceil(MAX_POINTS).max(1)) {
            let (x, y) = self.at(*x, *y);
            let _ = writeln!(
                self.body,
                "<circle class=\"dot {class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"><title>{}</title></circle>",
                esc(tip)
            );
        }
        self
    }

    /// A line through points.
    pub fn line(mut self, class: &str, points: &[(f64, f64)]) -> Chart {
        let mut path = String::new();
        for &(x, y) in points.iter().step_by(points.len().div_ceil(MAX_POINTS).max(1)) {
            let (x, y) = self.at(x, y);
            let _ = write!(path, "{}{x:.1} {y:.1}", if path.is_empty() { "M" } else { "L" });
        }
        let _ = writeln!(self.body, "<path class=\"line {class}\" d=\"{path}\"/>");
        self
    }

    /// The line where y equals x, as far as both axes go; nothing where they do not meet.
    pub fn diagonal(mut self, class: &str) -> Chart {
        let (low, high) = (self.x.low.max(self.y.low), self.x.high.min(self.y.high));
        if low < high {
            let ((x1, y1), (x2, y2)) = (self.at(low, low), self.at(high, high));
            let _ = writeln!(
                self.body,
                "<line class=\"dash {class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
            );
        }
        self
    }

    /// A vertical line from one value to another.
    pub fn whisker(mut self, class: &str, x: f64, low: f64, high: f64, tip: &str) -> Chart {
        let ((x, y1), (_, y2)) = (self.at(x, low), self.at(x, high));
        let _ = writeln!(
            self.body,
            "<line class=\"mark {class}\" x1=\"{x:.1}\" y1=\"{y1:.1}\" x2=\"{x:.1}\" y2=\"{y2:.1}\"><title>{}</title></line>",
            esc(tip)
        );
        self
    }

    /// A short horizontal line.
    pub fn across(mut self, class: &str, x: (f64, f64), y: f64, tip: &str) -> Chart {
        let ((x1, y), (x2, _)) = (self.at(x.0, y), self.at(x.1, y));
        let _ = writeln!(
            self.body,
            "<line class=\"mark {class}\" x1=\"{x1:.1}\" y1=\"{y:.1}\" x2=\"{x2:.1}\" y2=\"{y:.1}\"><title>{}</title></line>",
            esc(tip)
        );
        self
    }

    /// A bar from zero up to `y`.
    pub fn bar(mut self, class: &str, from: f64, to: f64, y: f64, tip: &str) -> Chart {
        let ((x1, y1), (x2, y0)) = (self.at(from, y), self.at(to, 0.0));
        let _ = writeln!(
            self.body,
            "<rect class=\"bar {class}\" x=\"{:.1}\" y=\"{y1:.1}\" width=\"{:.1}\" height=\"{:.1}\"><title>{}</title></rect>",
            x1 + 0.5,
            (x2 - x1 - 1.0).max(0.5),
            y0 - y1,
            esc(tip)
        );
        self
    }

    /// A column between two values.
    pub fn column(mut self, class: &str, x: (f64, f64), y: (f64, f64), tip: &str) -> Chart {
        let ((x1, y1), (x2, y0)) = (self.at(x.0, y.1), self.at(x.1, y.0));
        let _ = writeln!(
            self.body,
            "<rect class=\"bar {class}\" x=\"{x1:.1}\" y=\"{y1:.1}\" width=\"{:.1}\" height=\"{:.1}\"><title>{}</title></rect>",
            (x2 - x1).max(1.0),
            (y0 - y1).max(0.5),
            esc(tip)
        );
        self
    }

    /// A part of the plane, without a border.
    pub fn region(mut self, class: &str, x: (f64, f64), y: (f64, f64), tip: &str) -> Chart {
        let ((x1, y1), (x2, y0)) = (self.at(x.0, y.1), self.at(x.1, y.0));
        let _ = writeln!(
            self.body,
            "<rect class=\"band {class}\" x=\"{x1:.1}\" y=\"{y1:.1}\" width=\"{:.1}\" height=\"{:.1}\"><title>{}</title></rect>",
            x2 - x1,
            y0 - y1,
            esc(tip)
        );
        self
    }

    /// A vertical line over the whole height, with a label at its top.
    pub fn vertical(mut self, class: &str, x: f64, label: &str) -> Chart {
        let (x, _) = self.at(x, self.y.low);
        // Beyond the middle the label stands to the left, so that it stays inside.
        let (anchor, shift) = if x > (LEFT + RIGHT) / 2.0 { ("end", -4.0) } else { ("start", 4.0) };
        let _ = writeln!(
            self.body,
            "<g class=\"{class}\"><line class=\"mark\" x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{BOTTOM}\"/>\
             <text class=\"label\" text-anchor=\"{anchor}\" x=\"{:.1}\" y=\"{}\">{}</text></g>",
            x + shift,
            TOP + 9.0,
            esc(label)
        );
        self
    }

    /// A horizontal line over the whole width, with a label at its right.
    pub fn horizontal(mut self, class: &str, y: f64, label: &str) -> Chart {
        let (_, y) = self.at(self.x.low, y);
        let _ = writeln!(
            self.body,
            "<g class=\"{class}\"><line class=\"dash\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{RIGHT}\" y2=\"{y:.1}\"/>\
             <text class=\"label\" text-anchor=\"end\" x=\"{RIGHT}\" y=\"{:.1}\">{}</text></g>",
            y - 4.0,
            esc(label)
        );
        self
    }

    /// A shaded range of x.
    pub fn band(mut self, class: &str, from: f64, to: f64, tip: &str) -> Chart {
        let ((x1, _), (x2, _)) = (self.at(from, self.y.low), self.at(to, self.y.low));
        let _ = writeln!(
            self.body,
            "<rect class=\"band {class}\" x=\"{x1:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\"><title>{}</title></rect>",
            (x2 - x1).max(1.0),
            BOTTOM - TOP,
            esc(tip)
        );
        self
    }

    /// Short marks at the top edge, for points that have an x but no y, such as lost packets.
    pub fn rug(mut self, class: &str, xs: &[(f64, String)]) -> Chart {
        for (x, tip) in xs.iter().step_by(xs.len().div_ceil(MAX_POINTS).max(1)) {
            let (x, _) = self.at(*x, self.y.low);
            let _ = writeln!(
                self.body,
                "<line class=\"mark {class}\" x1=\"{x:.1}\" y1=\"{}\" x2=\"{x:.1}\" y2=\"{}\"><title>{}</title></line>",
                TOP - 8.0,
                TOP + 4.0,
                esc(tip)
            );
        }
        self
    }

    /// Words beside a point.
    pub fn label(mut self, class: &str, x: f64, y: f64, text: &str) -> Chart {
        let (x, y) = self.at(x, y);
        let _ = writeln!(
            self.body,
            "<text class=\"label {class}\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            x + 5.0,
            y - 5.0,
            esc(text)
        );
        self
    }

    /// The chart as a figure.
    pub fn figure(self) -> String {
        let mut frame = String::new();
        let ticks = self.y.ticks(5.0);
        // Five characters have room beside the axis; more widen the chart.
        let longest = ticks.iter().map(|(_, text)| text.chars().count()).max().unwrap_or(0);
        let shift = longest.saturating_sub(5) as f64 * 7.0;
        for (value, text) in ticks {
            let (_, y) = self.at(self.x.low, value);
            let _ = writeln!(
                frame,
                "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{RIGHT}\" y2=\"{y:.1}\"/>\
                 <text text-anchor=\"end\" x=\"{}\" y=\"{:.1}\">{text}</text>",
                LEFT - 6.0,
                y + 4.0
            );
        }
        let ticks = self.x.ticks(6.0);
        // Names that would touch one another stand in two rows, where no label needs the second.
        let longest = self.x.names.iter().map(|name| name.chars().count()).max().unwrap_or(0) as f64;
        let crowded = longest * CHARACTER > (RIGHT - LEFT) / ticks.len().max(1) as f64;
        let lower = if crowded && self.x.label.is_empty() { 14.0 } else { 0.0 };
        for (k, (value, text)) in ticks.into_iter().enumerate() {
            let (x, _) = self.at(value, self.y.low);
            let _ = writeln!(
                frame,
                "<line class=\"axis\" x1=\"{x:.1}\" y1=\"{BOTTOM}\" x2=\"{x:.1}\" y2=\"{}\"/>\
                 <text text-anchor=\"middle\" x=\"{x:.1}\" y=\"{}\">{text}</text>",
                BOTTOM + 4.0,
                BOTTOM + 17.0 + lower * (k % 2) as f64
            );
        }
        let _ = writeln!(
            frame,
            "<line class=\"axis\" x1=\"{LEFT}\" y1=\"{BOTTOM}\" x2=\"{RIGHT}\" y2=\"{BOTTOM}\"/>\
             <text text-anchor=\"middle\" x=\"{}\" y=\"{}\">{}</text>\
             <text x=\"{}\" y=\"12\">{}</text>",
            (LEFT + RIGHT) / 2.0,
            BOTTOM + 34.0,
            esc(&self.x.label),
            -shift,
            // Above the axis: names are longer than it is high.
            esc(&self.y.label)
        );
        let (title, keys, body) = (esc(&self.title), self.keys, self.body);
        let width = WIDTH + shift;
        format!(
            "<figure><figcaption><b>{title}</b>{keys}</figcaption>\n\
             <svg viewBox=\"{} 0 {width} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">\n{frame}{body}</svg></figure>\n",
            -shift
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(axis: &Axis) -> Vec<String> {
        axis.ticks(5.0).into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(texts(&Axis::from_zero("", [9.3])), ["0", "2", "4", "6", "8"]);
        assert_eq!(texts(&Axis::over("", [0.11, 0.14])), ["0.11", "0.12", "0.13", "0.14"]);
        assert_eq!(texts(&Axis::from_zero("", [2.1e7])), ["0", "5M", "10M", "15M", "20M"]);
    }

    #[test]
    fn no_values_break_an_axis() {
        for values in
            [vec![], vec![f64::NAN], vec![5.0; 3], vec![0.0], vec![-1e300, 1e300], vec![1e18, 1e18 + 1.0]]
        {
            let axis = Axis::over("", values.iter().copied());
            assert!(axis.low < axis.high && axis.ticks(5.0).len() <= 7, "{values:?} {axis:?}");
            let drawn =
                Chart::new("", axis.clone(), axis).points("c1", &[(5.0, f64::MAX, String::new())]).figure();
            assert!(!drawn.contains("NaN") && !drawn.contains("inf\""), "{drawn}");
        }
    }
}
