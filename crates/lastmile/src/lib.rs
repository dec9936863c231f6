//! Measures a network path's capacity and available bandwidth, for paths with a wireless last hop: estimators, the
//! two endpoints of a measurement, their wire format, loss classification and rate control.
//!
//! The crate is sans-IO. Nothing in it reads a clock, opens a socket, starts a thread or draws global randomness. It is
//! given the time and packets, and answers with packets and the time at which it wants to be called again, so that the
//! same code runs in a simulator, in an emulated lab, on real sockets, and inside a program that has a transport of its own.
//!
//! # A whole program
//!
//! `examples/measure.rs`, with nothing but std's sockets:
//!
//! ```no_run
#![doc = include_str!("../examples/measure.rs")]
//! ```
//!
//! The same measurement inside a simulated network, where the truth is known, is `examples/embed.rs` of `lastmile-sim`.
//!
//! # What a driver owes
//!
//! The driver of a [`Node`] keeps the rules at the head of [`node`]. Those that cost a result when they are broken:
//!
//! - **Deadlines.** [`Transmit::at`] is when a packet has to leave, often tens of microseconds after the one before. A
//!   sleep ends late: wake up early and spin the rest, and let nothing else run in between. Packets of one deadline leave
//!   back to back. A late driver costs time and bytes, but no correctness: the endpoint judges each stream by its
//!   packets' departures, sends a broken one again, and gives no number where too many broke.
//! - **Honest times.** [`Input::Sent`] and [`Input::Datagram`] bring a packet's true departure and arrival (on Linux the stamps
//!   SOF_TIMESTAMPING_TX_SCHED, before the queue of this host's own interface, and RX_SOFTWARE). The kernel's
//!   stamps are right to some 2 us; a time taken after the system call is off by more, on a busy host by milliseconds. Give
//!   your stamps' error ([`estimate::Conditions`]), and fast paths are refused rather than guessed.
//! - **A seed that nobody can guess**, from the system's random source, for [`ProberConfig`] and [`ReflectorConfig`]; a
//!   simulation gives a constant.
//! - **ECN and "don't fragment"**, where the method asks for them: std's sockets can neither set nor read them.
//!
//! `lastmile-net` is a driver for Linux that does all of this: a thread for departures, kernel stamps, real-time priority.
//!
//! # A rate controller behind a transport of one's own
//!
//! `examples/control.rs`, with a toy of a transport:
//!
//! ```
#![doc = include_str!("../examples/control.rs")]
//! ```
//!
//! # What a host owes
//!
//! The host of a [`RateController`](control::RateController) tells it the truth about times and packets:
//!
//! - **Stamps.** [`Sent::at`](control::Sent::at) is a packet's true departure, by the clock of all the calls' `now`. Arrivals are by the
//!   receiver's clock, at any offset. [`Feedback::hold`](control::Feedback::hold) is the time that the receiver waited before it
//!   reported; if it is left at zero, that time counts as part of the round trip.
//! - **One fate for each packet**, in the order of sending: `Lost` once later packets arrived or a timeout of the host's says so, after
//!   that at most `Late`. Packets whose fate is open stand in no report.
//! - **Pending feedback before timers.** All feedback that waits is handed over before
//!   [`on_timeout`](control::RateController::on_timeout). Otherwise the no-feedback timer lowers a rate that the feedback would have kept. A
//!   timer that is called too early does nothing.
//! - **Idle sources.** [`Sent::app_limited`](control::Sent::app_limited) marks packets that left while the sources had no more to
//!   send. Without the mark, the rate rises above all rates that packets have tried.
//! - **The rate, read anew.** [`output`](control::RateController::output) may change with every call: `target` is for sources, `pacing` for
//!   the pacer.
//!
//! A host may ignore any [`Action`](control::Action), and the scheme goes without: where nobody sends its pairs, `probe` decides
//! `CapacityUnknown` and leaves the rate alone; where a receiver does not forget its losses, they count again after two round-trip times.
//! Decisions that nobody fetches are dropped, beyond 64 the oldest verdicts first.
//!
//! A classifier needs times of arrival of a certain resolution: `spike` 1 ms, `biaz` a quarter of the least time between arrivals, `spike-rtt`
//! none. [`Feedback::resolution`](control::Feedback::resolution) says how fine the host's are, or that there are none. While they are too
//! coarse, `spike` judges, or `spike-rtt`, and the decision `FellBack` says so. A host that claims finer stamps than it has gets verdicts
//! that mean nothing. `docs/rate-control.md` lists the needs of each classifier.
//!
//! # Where things are
//!
//! | module | holds |
//! |---|---|
//! | [`node`], [`event`] | the contract between driver and endpoint, and how decisions are ordered |
//! | [`endpoint`] | the roles, a folder each: [`endpoint::measure`] has [`Prober`] and [`Reflector`] |
//! | [`estimate`] | the methods: `estimate::METHODS` lists them |
//! | [`observe`], [`classify`], [`control`] | reports to samples, loss to its cause, both to a rate: `control::build` makes a rate controller for any host |
//! | [`wire`], [`report`] | bytes, and the known fates and times of packets |
//! | [`pace`], [`arrivals`] | a rate to departure times, and laws of arrivals for traffic |
//! | [`rng`] | random numbers from a seed, a stream for each component |
//! | [`telemetry`] | the present state of an algorithm |
//! | [`units`], [`time`] | rates that know their layer, clocks that do not mix |
pub mod arrivals;
pub mod classify;
pub mod control;
pub mod endpoint;
pub mod estimate;
pub mod event;
pub mod node;
pub mod observe;
pub mod options;
pub mod pace;
pub mod report;
pub mod rng;
pub mod telemetry;
pub mod time;
pub mod units;
pub mod wire;

mod text;

/// Version of the meaning of keys in JSON documents, of programs and libraries alike: a change of meaning counts it up.
pub const SCHEMA: u32 = 2;

pub use endpoint::Endpoint;
pub use endpoint::measure::{
    Decision, Key, Limits, Measurement, Prober, ProberConfig, Reflector, ReflectorConfig,
};
pub use estimate::{Estimate, Estimator, Refusal};
pub use node::{Datagram, Ecn, Failure, Input, Node, Output, Payload, PortId, Transmit, TransmitId};
pub use report::Direction;
pub use time::{Epoch, Span, Time};
pub use units::{Bytes, Rate};

/// The program of the tutorial compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/tutorials/controller.md")]
struct Tutorial;
