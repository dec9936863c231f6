//! The simulator's own traffic: sources and sinks of packets without bytes.
//!
//! A packet's [`Model::words`](lastmile::node::Model::words) are its number and its departure in nanoseconds.

mod cbr;
mod onoff;
mod poisson;
mod sink;
mod source;
mod trace;

pub use onoff::{Lengths, OnOff};
pub use sink::{Sink, SinkCounters};
pub use source::{Arrivals, Source, SourceConfig};
pub use trace::{MAX_TRACE_PACKETS, Trace};
