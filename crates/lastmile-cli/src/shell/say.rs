//! Lines for people and programs.

use super::exit::Exit;

/// Prints a note for people, which no program reads.
#[expect(clippy::print_stderr, reason = "standard output is for results")]
pub(crate) fn note(line: &str) {
    eprintln!("lastmile: {line}");
}

/// True if stderr is a terminal and --json is off.
pub(crate) fn is_looked_at(json: bool) -> bool {
    use std::io::IsTerminal;
    !json && std::io::stderr().is_terminal()
}

/// Shows a line of progress.
#[expect(clippy::print_stderr, reason = "standard output is for results")]
pub(crate) fn look(line: &str) {
    eprintln!("{line}");
}

/// Prints a line for people or programs. A reader that went away (`| head`) ends the program quietly; output that
/// cannot be written for another reason (a full disk) is an error.
#[expect(clippy::print_stderr, reason = "it ends the program here")]
pub(crate) fn say(line: &str) {
    use std::io::Write;
    let mut out = std::io::stdout();
    match writeln!(out, "{line}").and_then(|()| out.flush()) {
        Ok(()) => {}
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(e) => {
            eprintln!("lastmile: cannot write to standard output: {e}");
            std::process::exit(Exit::Machine as i32);
        }
    }
}

/// Columns of text for people.
pub(crate) const WIDTH: usize = 80;

/// Prints a sentence in lines of at most so many columns.
pub(crate) fn say_in_lines(text: &str) {
    say(lastmile_report::text::wrapped(text, WIDTH).trim_end());
}

/// Prints a document for programs, or text for people.
pub(crate) fn show(is_json: bool, document: &impl serde::Serialize, text: &str) -> anyhow::Result<()> {
    if is_json {
        return json(document);
    }
    say(text.trim_end());
    Ok(())
}

/// Prints a document for programs.
pub(crate) fn json(document: &impl serde::Serialize) -> anyhow::Result<()> {
    say(&lastmile_report::json::document(document)?);
    Ok(())
}
