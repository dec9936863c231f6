//! Rows of a table: printed as they come, and filed in docs/validation.md.

use std::fmt::{self, Display};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/validation.md");

/// Runs of each row, where the environment does not say how many.
const RUNS: usize = 20;

/// A mean with the half of its interval of 95 %.
#[derive(Clone, Copy)]
pub(super) struct Mean {
    pub(super) mean: f64,
    half: f64,
    digits: usize,
}

impl Mean {
    pub(super) fn of(values: &[f64], digits: usize) -> Mean {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>();
        // Student's t for 1 to 19 degrees of freedom, and for more.
        const T: [f64; 19] = [
            12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12,
            2.11, 2.10, 2.09,
        ];
        let t = values.len().checked_sub(2).map_or(f64::NAN, |at| T.get(at).copied().unwrap_or(2.0));
        Mean { mean, half: t * (squares / (n - 1.0) / n).sqrt(), digits }
    }
}

impl Display for Mean {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.*} ± {:.*}", self.digits, self.mean, self.digits, self.half)
    }
}

/// A table of docs/validation.md, between the marks with its name.
pub(super) struct Rows {
    name: &'static str,
    head: &'static str,
    lines: Vec<String>,
    notes: Vec<String>,
    only: Option<String>,
    runs: Option<usize>,
}

impl Rows {
    pub(super) fn new(name: &'static str, head: &'static str) -> Rows {
        eprintln!("{head}");
        let only = std::env::var("LASTMILE_NS2_ONLY").ok();
        let runs = std::env::var("LASTMILE_NS2_RUNS").ok().and_then(|runs| runs.parse().ok());
        Rows { name, head, lines: Vec::new(), notes: Vec::new(), only, runs }
    }

    pub(super) fn runs(&self) -> usize {
        self.runs.unwrap_or(RUNS)
    }

    pub(super) fn wants(&self, row: &str) -> bool {
        self.only.as_ref().is_none_or(|only| row.contains(only))
    }

    pub(super) fn row(&mut self, cells: &[String]) {
        let line = format!("| {} |", cells.join(" | "));
        eprintln!("{line}");
        self.lines.push(line);
    }

    /// A sentence below the table.
    pub(super) fn note(&mut self, note: String) {
        eprintln!("{note}");
        self.notes.push(note);
    }

    /// Files the table, where all rows of it were made as often as they are by default.
    pub(super) fn end(self) {
        if self.only.is_some() || self.runs.is_some() {
            return;
        }
        let (begin, end) = (format!("<!-- {} -->\n", self.name), format!("<!-- end of {} -->", self.name));
        let file = std::fs::read_to_string(FILE).expect("docs/validation.md");
        let (before, rest) = file.split_once(&begin).expect("where the table begins");
        let (_, after) = rest.split_once(&end).expect("where the table ends");
        let (columns, lines) = (self.head.matches('|').count() - 1, self.lines);
        let head = format!("{}\n|{}", self.head, "---|".repeat(columns));
        let notes: String = self.notes.iter().map(|note| format!("{note}\n\n")).collect();
        let about = format!("{RUNS} runs of each number, seeds 1 to {RUNS}; means with intervals of 95 %.");
        let lines = lines.join("\n");
        let table = format!("{before}{begin}{about}\n\n{head}\n{lines}\n\n{notes}{end}{after}");
        std::fs::write(FILE, table).expect("docs/validation.md");
    }
}
