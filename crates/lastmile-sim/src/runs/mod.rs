//! Runs of scenarios and what came of them: outcomes beside truths, sweeps, captures and event files.
pub mod accounting;
mod document;
pub mod event_file;
pub mod flows;
mod path_meter;
pub mod pcap;
mod run;
pub mod series;
mod spare;
pub mod sweep;
pub mod twin;

pub use document::document;
pub use path_meter::PathMeter;
pub use run::{
    Hooks, Prepare, Progress, Recorded, RunError, SimulatedRun, TellConfig, TellInput, simulate,
    simulate_with,
};
