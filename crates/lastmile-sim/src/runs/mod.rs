//! Runs of scenarios with their endpoints: from a scenario to its document, sweeps, captures and event files.
mod document;
pub mod event_file;
pub mod pcap;
mod run;
pub mod sweep;

pub use crate::scenario::RunError;
pub use document::document;
pub use run::{
    Hooks, Prepare, Progress, Recorded, SimulatedRun, TellConfig, TellInput, simulate, simulate_with,
};
