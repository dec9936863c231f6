//! [`Screen`]: the state of a run in a few lines at a terminal, drawn anew in place.

use lastmile_report::text::wrapped;

use super::note::{WIDTH, is_looked_at, print};

/// Lines on standard error; gone when dropped.
#[derive(Default)]
pub(crate) struct Screen {
    shown: String,
}

impl Screen {
    /// One if standard error is a terminal that can be drawn on, and --json is off.
    pub(crate) fn new(json: bool) -> Option<Screen> {
        let draws = std::env::var_os("TERM").is_some_and(|term| term != "dumb");
        (draws && is_looked_at(json)).then(Screen::default)
    }

    /// Shows these lines in place of those before.
    pub(crate) fn show(&mut self, lines: &[String]) {
        self.clear();
        self.shown = lines.iter().map(|line| wrapped(line, WIDTH)).collect();
        print(&self.shown);
    }

    /// Prints above it.
    pub(crate) fn above(&mut self, line: impl FnOnce()) {
        self.clear();
        line();
        print(&self.shown);
    }

    fn clear(&self) {
        match self.shown.lines().count() {
            0 => {}
            // ECMA-48: the cursor up so many lines, and all from there on erased.
            lines => print(&format!("\x1b[{lines}A\x1b[J")),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.clear();
    }
}
