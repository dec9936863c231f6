//! Measuring: the two ends of a measurement, as [`Node`](crate::node::Node)s.
//!
//! A [`Prober`] says hello to a reflector, drives [`Estimator`](crate::estimate::Estimator)s and emits what they
//! find. A [`Reflector`] answers anybody's STAMP packets and, to peers that proved their address, offers deferred
//! arrival reports and reverse streams.
//!
//! The exchange, all of it STAMP packets (RFC 8762) with TLVs (RFC 8972), the reply never larger than the request:
//!
//! ```text
//! prober                                   reflector
//!   Hello (nonce) ------------------------->            versions, abilities
//!         <--------------------- Hello (token, credit)  returning the token proves the address
//!   Stream 1, no reply (RFC 9503) =========>            arrivals are written down
//!   Report? stream 1, page 0 -------------->
//!         <------------------ Report (arrival times)
//!   Stream 2, Reflected Control (type 12) ->            paid by credit: bytes this peer has sent before
//!         <================================= Stream 2
//!   Report? stream 2, departures ---------->
//!         <---------------- Report (departure times)
//! ```

mod budget;
mod event;
mod load;
mod packets;
mod prober;
mod reflector;
mod requests;
#[cfg(feature = "serde")]
mod row;
mod session;
mod stream;

pub use budget::{Limits, TokenBucket};
pub use event::{Cost, Decision, Each, PacketSink};
pub use load::Load;
pub use packets::Key;
pub use prober::{Measurement, Prober, ProberConfig};
pub use reflector::{Counters, MAX_REVERSE_SIZE, Reflector, ReflectorConfig};
#[cfg(feature = "serde")]
pub use row::{CostRow, IntervalRow, LoadRow, Row, TcpRow, TruthRow, relative_error};
