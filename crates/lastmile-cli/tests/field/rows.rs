//! Rows of a table: printed as they come, and filed in docs/validation.md by the command that made them.

use super::hosts::Host;
use super::relay::Running;
use super::said::{Said, Truth};

pub(super) const MEASURED: &str = "| path | number | n | true, Mbit/s | said: median (range) | right | held | warned | refused | silently wrong | codes | median cost |\n|---|---|---|---|---|---|---|---|---|---|---|---|";
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/validation.md");

/// Runs of each case.
pub(super) fn runs() -> u64 {
    std::env::var("LASTMILE_FIELD_RUNS").ok().and_then(|n| n.parse().ok()).unwrap_or(20)
}

/// Processes that wanted a core, as a mean over the last minute.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("?").to_owned()
}

pub(super) struct Rows {
    command: &'static str,
    head: &'static str,
    load: String,
    lines: Vec<String>,
    /// Cases with this in their names alone, which are not filed.
    only: Option<String>,
    wrong: Vec<String>,
}

impl Rows {
    pub(super) fn new(command: &'static str, head: &'static str) -> Rows {
        eprintln!("{head}");
        let only = std::env::var("LASTMILE_FIELD_ONLY").ok();
        Rows { command, head, load: load(), lines: Vec::new(), only, wrong: Vec::new() }
    }

    pub(super) fn wants(&self, case: &str) -> bool {
        self.only.as_ref().is_none_or(|only| case.contains(only))
    }

    /// Measures so often, each time beside `around` of the run's number, and prints the results.
    pub(super) fn row(
        &mut self,
        near: &Host,
        case: &str,
        arguments: &[&str],
        truth: &Truth,
        mut around: impl FnMut(u64) -> Option<Running>,
    ) -> Said {
        let mut said = Said::default();
        for seed in 0..runs() {
            let _beside = around(seed);
            said.add(&near.lastmile(&[&["measure"], arguments, &["--json"]].concat()), truth);
        }
        for line in said.lines(case, truth) {
            self.line(line);
        }
        said.reasons.iter().for_each(|(code, text)| eprintln!("{code}: {text}"));
        self.wrong.extend(said.silent().map(|(number, n)| format!("{case}: {number}: {n} silently wrong")));
        self.wrong.extend(said.exits.iter().map(|exit| format!("{case}: {exit}")));
        said
    }

    pub(super) fn line(&mut self, line: String) {
        eprintln!("{line}");
        self.lines.push(line);
    }

    pub(super) fn is_wrong(&mut self, what: String) {
        self.wrong.push(what);
    }

    /// Files the table, and fails where more was wrong than may be.
    pub(super) fn end(self) {
        if self.only.is_none() {
            let (begin, end) =
                (format!("<!-- {} -->\n", self.command), format!("<!-- end of {} -->", self.command));
            let file = std::fs::read_to_string(FILE).expect("docs/validation.md");
            let (before, rest) = file.split_once(&begin).expect("where the table begins");
            let (_, after) = rest.split_once(&end).expect("where the table ends");
            let about = format!("Load average {} before and {} after these runs.", self.load, load());
            let table =
                format!("{before}{begin}{about}\n\n{}\n{}\n\n{end}{after}", self.head, self.lines.join("\n"));
            std::fs::write(FILE, table).expect("docs/validation.md");
        }
        assert!(self.wrong.is_empty(), "{:#?}", self.wrong);
    }
}
