//! One file per command, each with its `Args` and its `run`.
pub(crate) mod serve;
