//! The network as nodes, in virtual time: a discrete-event engine, links with their queues, traffic, hosts with
//! clocks of their own, and scenario files that describe all of these. `docs/architecture.md` has the rooms.
//!
//! The same engine serves the simulator and the lab. Nothing here reads a clock or opens a socket; the same scenario and seed
//! give the same bytes on every machine.

pub mod network;
pub mod rng;
pub mod roles;
pub mod runs;
pub mod scenario;
mod text;

/// What tests outside of the crate have in common with those inside calls it by its name.
#[cfg(test)]
extern crate self as lastmile_sim;
