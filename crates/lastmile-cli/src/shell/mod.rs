//! Shared parts of the commands: arguments that several have, exit codes, signals, files, and lines to print.
pub(crate) mod exit;
#[cfg(feature = "study")]
pub(crate) mod experiment;
pub(crate) mod network;
pub(crate) mod options;
#[cfg(feature = "study")]
pub(crate) mod progress;
#[cfg(feature = "pages")]
pub(crate) mod replace;
mod say;
#[cfg(feature = "study")]
pub(crate) mod scenarios;
#[cfg(feature = "study")]
pub(crate) mod shard;
pub(crate) mod signals;
pub(crate) mod spool;

pub(crate) use say::{WIDTH, is_looked_at, json, look, note, say, say_in_lines, show, shown};
