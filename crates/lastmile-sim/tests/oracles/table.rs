//! [`Table`]: oracles, ours beside them, and a mark where the one is not as near to the other as it must be.

use std::fmt::Write;
use std::path::PathBuf;

/// Distance of ours from the oracle that is allowed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Within {
    /// By this share of it.
    Share(f64),
    /// By so much in its own unit.
    Points(f64),
    /// The oracle is a range from it to this.
    To(f64),
    /// Ours is below it.
    Below,
    /// Shown, not held; the line says why.
    Shown,
}

struct Line {
    what: String,
    oracle: f64,
    ours: f64,
    within: Within,
}

impl Line {
    fn holds(&self) -> bool {
        match self.within {
            Within::Share(share) => (self.ours / self.oracle - 1.0).abs() <= share,
            Within::Points(points) => (self.ours - self.oracle).abs() <= points,
            Within::To(top) => (self.oracle..=top).contains(&self.ours),
            Within::Below => self.ours < self.oracle,
            Within::Shown => true,
        }
    }
}

/// A table of oracles.
pub struct Table {
    name: &'static str,
    title: &'static str,
    digits: usize,
    lines: Vec<Line>,
}

impl Table {
    /// `name` is that of the file in `tables/`; numbers have so many digits after the point.
    pub fn new(name: &'static str, title: &'static str, digits: usize) -> Table {
        Table { name, title, digits, lines: Vec::new() }
    }

    pub fn row(&mut self, what: impl Into<String>, oracle: f64, ours: f64, within: Within) {
        self.lines.push(Line { what: what.into(), oracle, ours, within });
    }

    pub fn text(&self) -> String {
        let width = self.lines.iter().map(|line| line.what.chars().count()).max().unwrap_or(0);
        let number = |value: f64| format!("{value:>11.*}", self.digits);
        let mut text = format!("{}\n{:width$}      oracle        ours   allowed\n", self.title, "");
        for line in &self.lines {
            let allowed = match line.within {
                Within::Share(share) => format!("{:.1} %", 100.0 * share),
                Within::Points(points) => format!("+- {points}"),
                Within::To(top) => format!("to {}", number(top).trim()),
                Within::Below => "below".to_owned(),
                Within::Shown => "shown".to_owned(),
            };
            let (oracle, ours) = (number(line.oracle), number(line.ours));
            let wrong = if line.holds() { "" } else { "  WRONG" };
            let _ = writeln!(text, "{:width$} {oracle} {ours}   {allowed}{wrong}", line.what);
        }
        text
    }

    /// Fails where a line does not hold, and where the table is not the one on file.
    pub fn check(&self) {
        let text = self.text();
        assert!(self.lines.iter().all(Line::holds), "{text}");
        let mut file = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oracles/tables"));
        file.push(format!("{}.txt", self.name));
        // Every line holds; the file says whether one moved.
        crate::documents::hold(&file, &text);
    }
}
