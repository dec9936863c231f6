//! Exit codes, the same for every command.

use std::fmt;
use std::process::ExitCode;

pub(crate) const HELP: &str = "\
Exit codes: 0 done; 1 no result that can be trusted (the reason is printed); 2 wrong usage or input file; \
3 the peer or the network is at fault; 4 this machine lacks a privilege or an ability; 130 interrupted.";

/// How a command ended, where it did not simply end well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Nothing that can be trusted came out.
    NoResult = 1,
    /// The user's input is wrong.
    Usage = 2,
    /// The peer or the network is at fault.
    Peer = 3,
    /// This machine lacks a privilege or an ability.
    Machine = 4,
    /// A signal ended it.
    Interrupted = 130,
}

/// An error that knows its exit code.
#[derive(Debug)]
pub(crate) struct Blamed {
    exit: Exit,
    source: anyhow::Error,
}

impl fmt::Display for Blamed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&one_line(&self.source))
    }
}

impl std::error::Error for Blamed {}

impl Exit {
    /// Gives an error this exit code.
    pub(crate) fn blame(self, source: impl Into<anyhow::Error>) -> anyhow::Error {
        anyhow::Error::new(Blamed { exit: self, source: source.into() })
    }
}

/// The process's exit code; prints the error, one line.
#[expect(clippy::print_stderr, reason = "the one place where errors are printed")]
pub(crate) fn code(done: anyhow::Result<Option<Exit>>) -> ExitCode {
    match done {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(exit)) => ExitCode::from(exit as u8),
        Err(error) => {
            eprintln!("lastmile: {}", one_line(&error));
            let exit = error.downcast_ref::<Blamed>().map_or(Exit::Machine, |b| b.exit);
            ExitCode::from(exit as u8)
        }
    }
}

/// The error and its causes. Many errors of libraries say their cause themselves: it is not said again.
fn one_line(error: &anyhow::Error) -> String {
    let mut line = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !line.contains(&cause) {
            line = format!("{line}: {cause}");
        }
    }
    line.lines().map(str::trim).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::{Context, anyhow};

    #[test]
    fn an_error_is_one_line_that_says_nothing_twice() {
        let io = || std::io::Error::other("no such thing");
        let with_context = Err::<(), _>(io()).context("cannot read x").unwrap_err();
        assert_eq!(one_line(&with_context), "cannot read x: no such thing");
        assert_eq!(one_line(&Exit::Usage.blame(with_context)), "cannot read x: no such thing");
        let says_itself = anyhow::Error::new(io()).context("host a: no such thing");
        assert_eq!(one_line(&says_itself), "host a: no such thing");
        assert_eq!(one_line(&anyhow!("two\n  lines\n")), "two lines");
    }
}
