//! Runs of scenarios and what came of them: outcomes beside truths, sweeps, captures and event files.
pub mod accounting;
pub mod event_file;
pub mod flows;
mod outcome;
mod path_meter;
pub mod pcap;
mod run;
mod spare;
pub mod sweep;
pub mod twin;

pub use outcome::{Outcome, SessionMeters, Truth, found, outcomes};
pub use path_meter::PathMeter;
pub use run::{
    Hooks, MakeEstimator, PROBE_SIZE, Prepare, Progress, REFLECTOR_PORT, RunError, Session, SharedRecords,
    SimulatedRun, TellConfig, TellInput, prober_config, read_probe, reflector_config, sessions, simulate,
};
