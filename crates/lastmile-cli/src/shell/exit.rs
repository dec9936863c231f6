//! Exit codes, the same for every command.

use std::fmt;
use std::process::ExitCode;

pub(crate) const HELP: &str = "\
Exit codes: 0 done; 1 no result that can be trusted (the reason is printed), or a --program of `evaluate` that failed; 2 wrong usage or input file; \
3 the peer or the network is at fault; 4 this machine lacks a privilege, an ability, or room for the output; of `enough` 5 no, 6 only so many \
bytes at once; 130 interrupted; of `lab` the code of the program in it that failed, or 1 if several did.";

/// Exit codes of a command that did not end well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Nothing that can be trusted came out.
    NoResult,
    /// The user's input is wrong.
    Usage,
    /// The peer or the network is at fault.
    Peer,
    /// This machine lacks a privilege or an ability, or output cannot be written.
    Machine,
    /// A rate that was asked about does not fit.
    NotEnough,
    /// It does not last, but so many bytes pass at once.
    OnlyAtOnce,
    /// A signal ended it.
    Interrupted,
    /// The one program in the lab that failed ended with this code.
    Program(u8),
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

    /// Its number.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Exit::NoResult => 1,
            Exit::Usage => 2,
            Exit::Peer => 3,
            Exit::Machine => 4,
            Exit::NotEnough => 5,
            Exit::OnlyAtOnce => 6,
            Exit::Interrupted => 130,
            Exit::Program(code) => code,
        }
    }

    /// Its name where a program reads it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Exit::NoResult => "no-result",
            Exit::Usage => "usage",
            Exit::Peer => "peer",
            Exit::Machine => "machine",
            Exit::NotEnough => "not-enough",
            Exit::OnlyAtOnce => "only-at-once",
            Exit::Interrupted => "interrupted",
            Exit::Program(_) => "program",
        }
    }
}

/// True if the arguments are wrong; false if help or the version is to be shown.
pub(crate) fn is_usage_error(error: &clap::Error) -> bool {
    use clap::error::ErrorKind;
    let shown = [
        ErrorKind::DisplayHelp,
        ErrorKind::DisplayVersion,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
    ];
    !shown.contains(&error.kind())
}

/// The error in the arguments, in one line: clap's message, its tips and the help to ask for. `words` stand behind the program's name.
pub(crate) fn usage<W: AsRef<str>>(
    mut error: clap::Error,
    program: &clap::Command,
    words: impl IntoIterator<Item = W>,
) -> anyhow::Error {
    use clap::error::ContextKind;
    error.remove(ContextKind::Usage);
    // The advice to pass a misspelt option as a value.
    error.remove(ContextKind::Suggested);
    let text = error.render().to_string();
    // The last paragraph names the help.
    let said = text.rsplit_once("\n\n").map_or(&*text, |(said, _)| said).trim_start_matches("error: ");
    let in_line = |paragraph: &str| paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    let parts: Vec<String> =
        said.split("\n\n").map(|part| in_line(part).trim_start_matches("tip: ").to_owned()).collect();
    let (mut command, mut help) = (program, "lastmile".to_owned());
    for word in words {
        let Some(found) = command.find_subcommand(word.as_ref()) else { break };
        help = format!("{help} {}", found.get_name());
        command = found;
    }
    Exit::Usage.blame(anyhow::anyhow!("{}; see {help} --help", parts.join("; ")))
}

/// The process's exit code; prints the error, one line.
pub(crate) fn code(done: anyhow::Result<Option<Exit>>) -> ExitCode {
    match done {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(exit)) => ExitCode::from(exit.code()),
        Err(error) => {
            super::note::note(&one_line(&error));
            ExitCode::from(of(&error).code())
        }
    }
}

/// The exit code of an error.
pub(crate) fn of(error: &anyhow::Error) -> Exit {
    let exit = error.downcast_ref::<Blamed>().map(|blamed| blamed.exit);
    #[cfg(feature = "study")]
    let exit = exit.or_else(|| error.downcast_ref().map(of_study));
    exit.unwrap_or(Exit::Machine)
}

#[cfg(feature = "study")]
fn of_study(error: &lastmile_study::Error) -> Exit {
    use lastmile_study::Error;
    match error {
        Error::Input(_) => Exit::Usage,
        Error::NoResult(_) => Exit::NoResult,
        Error::Interrupted(_) => Exit::Interrupted,
        _ => Exit::Machine,
    }
}

/// The error and its causes. Many errors of libraries say their cause themselves: it is not said again.
pub(crate) fn one_line(error: &anyhow::Error) -> String {
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
    fn wrong_arguments_are_one_line_that_names_them() {
        use clap::Parser;
        let said = |line: &str| {
            let error = crate::Cli::try_parse_from(line.split(' ')).err().expect(line);
            assert!(is_usage_error(&error), "{line}");
            one_line(&usage(error, &crate::program(), line.split(' ').skip(1)))
        };
        for (line, parts) in [
            ("lastmile measure", &["<HOST>", "see lastmile measure --help"][..]),
            ("lastmile measure h --tarins 4", &["'--tarins'", "'--trains'", "see lastmile measure --help"]),
            (
                "lastmile measure h --max-seconds x",
                &["--max-seconds", "'x'", "is not a time", "see lastmile measure --help"],
            ),
            (
                "lastmile measure h --direction up",
                &["--direction", "'up'", "possible values: forward", "see lastmile measure --help"],
            ),
            ("lastmile measure h --max-bytes", &["--max-bytes", "a value is required"]),
            ("lastmile mesure h", &["'mesure'", "'measure'", "see lastmile --help"]),
            ("lastmile enough 1M h -v", &["unexpected argument '-v' found; see lastmile enough --help"]),
            ("lastmile traffic send h --sed 1", &["'--sed'", "see lastmile traffic send --help"]),
            ("lastmile measure h i", &["'i'", "see lastmile measure --help"]),
            ("lastmile replay f --trains 2", &["--streams", "see lastmile replay --help"]),
        ] {
            let text = said(line);
            assert!(!text.contains('\n') && !text.contains("error:") && !text.contains("Usage"), "{text}");
            for part in parts {
                assert!(text.contains(part), "{part:?} is missing for {line:?}: {text}");
            }
        }
        let help = crate::Cli::try_parse_from(["lastmile", "measure", "--help"]).err().expect("help");
        assert!(!is_usage_error(&help) && help.render().to_string().lines().count() > 20);
    }

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
