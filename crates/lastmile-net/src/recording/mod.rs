//! Recordings: all inputs and decisions of one node, as JSON lines.
//!
//! The inputs of a [`Node`](lastmile::node::Node), each with its time, determine its outputs, so a recording can be
//! replayed in virtual time and must give the same events again. [`Recorder`] writes, [`Reader`] reads. The format is
//! specified in `docs/recording.md`; [`VERSION`] grows with every change that an older reader would misread.
//!
//! It lives here rather than in the program so that a program that embeds [`driver`](crate::driver) can record too.
//!
//! ```
//! use lastmile::node::Input;
//! use lastmile::time::{Epoch, Time};
//! use lastmile_net::recording::*;
//!
//! let (role, config) = ("measure".into(), serde_json::Value::Null);
//! let header = Header { world: World::Sim, role, seed: [7; 32], epoch: Epoch::default(), config };
//! let mut file = Vec::new();
//! let mut recorder = Recorder::new(&mut file, &header)?;
//! recorder.input(Time::from_nanos(5), &Input::Wake);
//! recorder.finish()?;
//!
//! let mut reader = Reader::new("memory", file.as_slice())?;
//! assert_eq!(reader.header().map(|h| h.seed), Some([7; 32]));
//! let entry = reader.next_entry()?;
//! assert_eq!(entry, Some(Entry::Input { now: Time::from_nanos(5), input: Input::Wake }));
//! assert_eq!(reader.next_entry()?, None); // and the last line was there: nothing is missing
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
mod form;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use read::{Reader, RecordingError};
pub use write::{Recorder, SharedRecorder};

use std::fmt;

use lastmile::endpoint::Event;
use lastmile::node::Input;
use lastmile::time::{Epoch, Time};
use serde::{Deserialize, Serialize};

/// The version of the format that is written, and the only one that is read.
pub const VERSION: u32 = 1;

/// No line is longer, in bytes. A reader keeps no more than one line, so a file of one endless line costs no more.
pub const MAX_LINE: usize = 4 << 20;

/// The largest payload in bytes: the longest IP packet.
pub const MAX_PAYLOAD: usize = 65_535;

/// The supplier of time and carrier of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum World {
    /// The simulator, in virtual time.
    Sim,
    /// The lab: the simulator on the wall clock between TUN devices.
    Lab,
    /// Sockets and a real network.
    Real,
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            World::Sim => "sim",
            World::Lab => "lab",
            World::Real => "real",
        })
    }
}

/// The first line of a recording: all that is needed, beside the inputs, to build the node again. Never holds a key.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// The world in which the node ran.
    pub world: World,
    /// The role of the node, by the name that the writing command gave it; empty where it names none.
    pub role: String,
    /// The node's seed.
    pub seed: [u8; 32],
    /// When the run started, in wall time.
    pub epoch: Epoch,
    /// The node's configuration, in a form that the writing command chose.
    pub config: serde_json::Value,
}

/// One line of a recording after the first.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// The recorded node was told this.
    Input {
        /// Time of the input, on the node's clock.
        now: Time,
        /// The input.
        input: Input,
    },
    /// A decision, of this node or, in a simulation, of any.
    Event(Event),
    /// A record that the node's role keeps beside its decisions, in the role's own form: for a measurement, a stream as it
    /// was handed to an estimator.
    Record(serde_json::Value),
}

/// Numbers of entries of each kind: the last line of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Inputs.
    pub inputs: u64,
    /// Decision events.
    pub events: u64,
    /// Records of the role's own.
    #[serde(rename = "streams")]
    pub records: u64,
}

impl Counts {
    fn count(&mut self, entry: &Entry) {
        match entry {
            Entry::Input { .. } => self.inputs += 1,
            Entry::Event(_) => self.events += 1,
            Entry::Record(_) => self.records += 1,
        }
    }
}
