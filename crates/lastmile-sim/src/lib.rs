//! The network as nodes, in virtual time: a discrete-event engine, links with their queues, traffic, hosts with
//! clocks of their own, and scenario files that describe all of these.
//!
//! Three rooms, each of which may use those before it: [`network`] is the engine and what it drives, [`scenario`]
//! reads, checks and builds, [`runs`] runs what was built and tells what came of it.
//!
//! The same engine serves the simulator, which runs it as fast as it goes, and the lab, which paces it by the
//! wall clock and carries packets in and out ([`network::engine`]). Nothing here reads a clock or opens a socket; the
//! same scenario and seed give the same bytes on every machine.
pub mod network;
pub mod rng;
pub mod roles;
pub mod runs;
pub mod scenario;
mod text;

/// What tests outside of the crate have in common with those inside calls it by its name.
#[cfg(test)]
extern crate self as lastmile_sim;
