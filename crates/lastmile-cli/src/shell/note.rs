//! Lines on standard error, which no program reads.

use std::io::{IsTerminal, Write};

use lastmile_report::text::wrapped;

/// Columns of text for people.
pub(crate) const WIDTH: usize = 80;

/// Prints a note for people, which no program reads.
pub(crate) fn note(line: &str) {
    look(&format!("lastmile: {line}"));
}

/// True if standard error is a terminal and --json is off.
pub(crate) fn is_looked_at(json: bool) -> bool {
    !json && std::io::stderr().is_terminal()
}

/// Prints a line to standard error: in lines of 80 columns at a terminal, elsewhere in one, for those who search it.
pub(crate) fn look(line: &str) {
    match std::io::stderr().is_terminal() {
        true => print(&line.lines().map(|line| wrapped(line, WIDTH)).collect::<String>()),
        false => print(&format!("{line}\n")),
    }
}

/// Prints to standard error. A terminal that was closed, or a log on a full disk, ends no run.
pub(crate) fn print(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
