//! Shared parts of the commands: arguments that several have, exit codes, signals, files, and lines to print.
pub(crate) mod dscp;
pub(crate) mod ecn;
pub(crate) mod exit;
#[cfg(feature = "study")]
pub(crate) mod experiment;
pub(crate) mod network;
mod note;
pub(crate) mod options;
pub(crate) mod progress;
pub(crate) mod replace;
mod say;
#[cfg(feature = "study")]
pub(crate) mod scenarios;
pub(crate) mod screen;
#[cfg(feature = "study")]
pub(crate) mod shard;
pub(crate) mod signals;
pub(crate) mod spool;

pub(crate) use note::{WIDTH, is_looked_at, look, note};
#[cfg(feature = "study")]
pub(crate) use say::Standard;
pub(crate) use say::{
    Log, PrintArgs, end_unsaid, json, json_line, log, log_event, say, say_help, say_in_lines, say_text,
    time_of_day, try_say,
};
