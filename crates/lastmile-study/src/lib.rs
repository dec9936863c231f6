//! Experiments over simulated networks: cases that are run with the same seeds on all cores, differences paired by seed, sweeps,
//! accuracy against a known truth, random paths, rate controllers compared, and papers' tables and figures again.
//!
//! Runs are those of [`lastmile_sim`]; their results are data, tables and pages of [`lastmile_report`]. With the feature `lab` some
//! run in real time between network namespaces as well; without it the crate builds for WebAssembly.
//!
//! # A whole program
//!
//! `examples/sweep.rs`:
//!
//! ```
#![doc = include_str!("../examples/sweep.rs")]
//! ```
//!
//! A paper of one's own is one file too, and a line that adds it to [`papers::PAPERS`]: `tests/own_paper.rs`.
pub mod accuracy;
mod audience;
pub mod bench;
pub mod enough;
mod error;
pub mod evaluate;
pub mod fleet;
#[cfg(feature = "lab")]
mod lab;
mod media;
pub mod network_tables;
pub mod pages;
pub mod papers;
pub mod paths;
pub mod runs;
pub mod scenarios;
pub mod sweep;

pub use audience::{Audience, Progress};
pub use error::{Error, Result};

/// World in which runs take place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum World {
    /// In virtual time.
    #[default]
    Sim,
    /// In real time, between network namespaces: with the feature `lab`.
    Lab,
}
