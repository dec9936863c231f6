//! Why a study has no result, by who is to blame.

use std::fmt::Display;

/// Why a study has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request cannot be met: a scenario, a name or a value is wrong.
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

/// Result of a study.
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

    /// The same, said of something; an interruption is nobody's.
    pub(crate) fn of(mut self, what: impl Display) -> Error {
        if let Error::Input(why) | Error::Machine(why) | Error::NoResult(why) = &mut self {
            *why = format!("{what}: {why}");
        }
        self
    }
}

macro_rules! from {
    ($($error:ty => $kind:ident),+ $(,)?) => {
        $(impl From<$error> for Error {
            fn from(error: $error) -> Error {
                Error::$kind(error)
            }
        })+
    };
}
from! {
    std::io::Error => machine,
    serde_json::Error => machine,
    lastmile_sim::scenario::ScenarioError => input,
    lastmile_sim::runs::sweep::SweepError => input,
}

impl From<lastmile_sim::runs::RunError> for Error {
    fn from(error: lastmile_sim::runs::RunError) -> Error {
        match error {
            lastmile_sim::runs::RunError::Engine(_) => Error::machine(error),
            _ => Error::input(error),
        }
    }
}
