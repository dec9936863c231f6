//! Lines on standard error, which no program reads.

use std::io::IsTerminal;

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
#[expect(clippy::print_stderr, reason = "standard output is for results")]
pub(crate) fn look(line: &str) {
    match std::io::stderr().is_terminal() {
        true => eprint!("{}", line.lines().map(|line| wrapped(line, WIDTH)).collect::<String>()),
        false => eprintln!("{line}"),
    }
}
