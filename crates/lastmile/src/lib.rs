//! Sans-IO measurement of capacity and available bandwidth, loss classification and rate control, for paths
//! whose last hop is wireless.
//!
//! Nothing in this crate reads a clock, opens a socket, starts a thread or draws global randomness. It is
//! given the time and packets, and answers with packets and the time at which it wants to be called again
//! ([`node`]), so that the same code runs in a simulator, in an emulated lab and on real sockets.
pub mod classify;
pub mod control;
pub mod endpoint;
pub mod estimate;
pub mod event;
pub mod node;
pub mod observe;
pub mod report;
pub mod time;
pub mod units;
pub mod wire;
