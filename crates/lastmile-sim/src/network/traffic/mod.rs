//! The simulator's own traffic: sources and sinks of packets without bytes, by the laws of [`arrivals`](lastmile::arrivals).
//!
//! A packet's [`Model::words`](lastmile::node::Model::words) are its number and its departure in nanoseconds.

mod sink;
mod source;

pub use lastmile::arrivals::{Arrivals, Lengths, MAX_TRACE_PACKETS, OnOff, Trace};
pub use sink::{Sink, SinkCounters};
pub use source::{Source, SourceConfig};
