//! Lines for people and programs.

use std::io::{self, IsTerminal, Stdout, Write};
use std::process::ExitCode;
use std::time::Instant;

use lastmile_report::text::{Form, Text, wrapped};

use super::exit::Exit;
use super::note::WIDTH;

/// Form of the results.
#[derive(clap::Args, Clone, Copy)]
pub(crate) struct PrintArgs {
    /// Print all columns, in lines of any length
    #[arg(long, short, conflicts_with = "json")]
    verbose: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl PrintArgs {
    /// Prints a document for programs, or text for people.
    pub(crate) fn show(self, document: &impl serde::Serialize, text: &Text) -> anyhow::Result<()> {
        let shown = self.shown(document, text)?;
        if !shown.is_empty() {
            say(&shown);
        }
        Ok(())
    }

    /// A document for programs, or text for people, without the last end of a line.
    pub(crate) fn shown(self, document: &impl serde::Serialize, text: &Text) -> anyhow::Result<String> {
        match self.json {
            true => Ok(lastmile_report::json::document(document)?),
            false => Ok(shown(text, self.verbose)),
        }
    }

    /// Prints a text for people, in lines of 80 columns unless all is asked for.
    pub(crate) fn say(self, text: &Text) {
        say_text(text, self.verbose);
    }
}

/// Prints a text for people: all of it, or in lines of 80 columns.
pub(crate) fn say_text(text: &Text, all: bool) {
    let shown = shown(text, all);
    if !shown.is_empty() {
        say(&shown);
    }
}

fn shown(text: &Text, all: bool) -> String {
    text.shown(if all { Form::Full } else { Form::Short(WIDTH) }).trim_end().to_owned()
}

/// Standard output. A reader that went away (`| head`) ends the program quietly; output that cannot be written for another
/// reason (a full disk) ends it with an error.
pub(crate) struct Standard(pub(crate) Stdout);

impl Write for Standard {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).inspect_err(end_unsaid)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().inspect_err(end_unsaid)
    }
}

/// Ends the program: something cannot be written to standard output.
pub(crate) fn end_unsaid(error: &io::Error) {
    match error.kind() {
        io::ErrorKind::Interrupted => {}
        // As of programs that the closed pipe's signal ends.
        io::ErrorKind::BrokenPipe => std::process::exit(128 + 13),
        _ => {
            super::note::print(&format!("lastmile: cannot write to standard output: {error}\n"));
            std::process::exit(Exit::Machine.code().into());
        }
    }
}

/// Prints help, or the version, which is asked for or stands in for a command; gives the exit code.
pub(crate) fn say_help(asked: &clap::Error) -> ExitCode {
    let printed = asked.print().and_then(|()| io::stdout().flush());
    let _ = printed.inspect_err(end_unsaid);
    u8::try_from(asked.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// Prints a line, and gives the error of one that cannot be printed.
pub(crate) fn try_say(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush())
}

/// Prints a line for people or programs.
pub(crate) fn say(line: &str) {
    let mut out = Standard(io::stdout());
    // In one call: two programs of a lab may share the output. An error has ended the program.
    let _ = out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush());
}

/// Prints a line of JSON about an event, for programs. They get all of them: [`Log`]'s limit is for people's files.
pub(crate) fn json_line(event: &impl serde::Serialize) {
    match serde_json::to_string(event) {
        Ok(line) => say(&line),
        Err(error) => {
            super::note::note(&format!("an event has no JSON ({error}): this is a defect of lastmile"))
        }
    }
}

/// Prints a sentence in lines of 80 columns.
pub(crate) fn say_in_lines(text: &str) {
    say(wrapped(text, WIDTH).trim_end());
}

/// Prints a line of a log: in lines of 80 columns at a terminal, elsewhere in one, for those who search it.
pub(crate) fn log(line: &str) {
    if std::io::stdout().is_terminal() { say_in_lines(line) } else { say(line) }
}

/// Prints an event of this program, with its time.
pub(crate) fn log_event(line: &str) {
    log(&format!("{} {line}", time_of_day()));
}

/// Lines of a log in a second, and at once: anybody who sends packets makes events, and none is to fill a disk with them.
const LINES: (f64, f64) = (20.0, 200.0);

/// A log of events that others make.
pub(crate) struct Log {
    left: f64,
    at: Instant,
    left_out: u64,
}

impl Log {
    pub(crate) fn new() -> Log {
        Log { left: LINES.1, at: Instant::now(), left_out: 0 }
    }

    /// True if there is room for a line more, which is then taken.
    fn has_room(&mut self, now: Instant) -> bool {
        self.left = (self.left + LINES.0 * (now - self.at).as_secs_f64()).min(LINES.1);
        self.at = now;
        let has_room = self.left >= 1.0;
        self.left -= f64::from(u8::from(has_room));
        has_room
    }

    /// Prints an event with its time, or counts it where there are too many.
    pub(crate) fn event(&mut self, line: &str) {
        if !self.has_room(Instant::now()) {
            self.left_out += 1;
            return;
        }
        self.tell_left_out();
        log_event(line);
    }

    fn tell_left_out(&mut self) {
        match std::mem::take(&mut self.left_out) {
            0 => {}
            1 => log_event("1 event is not told"),
            many => log_event(&format!("{many} events are not told: too many at once")),
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.tell_left_out();
    }
}

/// The time of day, UTC, as RFC 3339 has it.
pub(crate) fn time_of_day() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}

/// Prints a document for programs.
pub(crate) fn json(document: &impl serde::Serialize) -> anyhow::Result<()> {
    say(&lastmile_report::json::document(document)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_log_has_two_hundred_lines_at_once_and_twenty_a_second() {
        let mut log = Log::new();
        let began = log.at;
        let mut lines =
            |seconds| (0..1_000).filter(|_| log.has_room(began + Duration::from_secs(seconds))).count();
        assert_eq!([lines(0), lines(1), lines(1), lines(3), lines(3_600)], [200, 20, 0, 40, 200]);
    }
}
