//! Why a study has no result, by who is to blame.

use std::fmt::Display;

/// Why a study has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What was asked for cannot be: a scenario, a name, a value.
    #[error("{0}")]
    Input(String),
    /// This machine lacks an ability, or a file cannot be read or written.
    #[error("{0}")]
    Machine(String),
    /// Nothing that can be trusted came out.
    #[error("{0}")]
    NoResult(String),
    /// Its [`Audience`](crate::Audience) ended it.
    #[error("{0}")]
    Interrupted(String),
}

/// What a study gives.
pub type Result<T> = core::result::Result<T, Error>;

impl Error {
    pub(crate) fn input(why: impl Display) -> Error {
        Error::Input(why.to_string())
    }

    pub(crate) fn machine(why: impl Display) -> Error {
        Error::Machine(why.to_string())
    }

    pub(crate) fn interrupted() -> Error {
        Error::Interrupted("interrupted".to_owned())
    }

    /// The same, said of something.
    pub(crate) fn of(mut self, what: impl Display) -> Error {
        let (Error::Input(why) | Error::Machine(why) | Error::NoResult(why) | Error::Interrupted(why)) =
            &mut self;
        *why = format!("{what}: {why}");
        self
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        Error::machine(error)
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Error {
        Error::machine(error)
    }
}

impl From<lastmile_sim::runs::RunError> for Error {
    fn from(error: lastmile_sim::runs::RunError) -> Error {
        match error {
            lastmile_sim::runs::RunError::Engine(_) => Error::machine(error),
            _ => Error::input(error),
        }
    }
}

impl From<lastmile_sim::scenario::ScenarioError> for Error {
    fn from(error: lastmile_sim::scenario::ScenarioError) -> Error {
        Error::input(error)
    }
}

impl From<lastmile_sim::runs::sweep::SweepError> for Error {
    fn from(error: lastmile_sim::runs::sweep::SweepError) -> Error {
        Error::input(error)
    }
}
