//! Generated traffic: a source that sends by a law of arrivals, and a sink that counts what comes. [`wire::traffic`](crate::wire::traffic) has
//! their packets.
//!
//! - **A source sends nothing before the sink has answered its nonce**, and so never to a host that did not ask to be a sink. It
//!   stops when the sink says so, and when the sink falls silent.
//! - **A sink never sends more bytes than it got** from the same peer: a status each second, as long as there is so much.
//! - Departures are those of [`arrivals`](crate::arrivals): with one seed they are the simulator's, to the nanosecond.

mod errors;
mod sink;
mod source;
#[cfg(test)]
mod tests;

pub use errors::Errors;
pub use sink::{Sink, SinkConfig, SinkEvent};
pub use source::{Ended, Source, SourceConfig, SourceEvent, Summary};

use crate::time::Span;

/// Interval of a sink's status.
pub const STATUS_EVERY: Span = Span::from_secs(1);
/// A source gives up a sink that says nothing for so long.
pub const SILENCE: Span = Span::from_secs(3);
