//! The network as nodes, in virtual time: a discrete-event engine, links with their queues, traffic, hosts with
//! clocks of their own, and scenario files that describe all of these.
//!
//! The same engine serves the simulator, which runs it as fast as it goes, and the lab, which paces it by the
//! wall clock and carries packets in and out ([`engine`]). Nothing here reads a clock or opens a socket; the
//! same scenario and seed give the same bytes on every machine.
pub mod clock;
pub mod element;
pub mod engine;
pub mod events;
pub mod flows;
pub mod host;
pub mod network;
mod packets;
pub mod path;
pub mod pcap;
mod queue;
pub mod rng;
pub mod run;
pub mod scenario;
pub mod sweep;
pub mod tcp;
mod text;
pub mod traffic;
pub mod truth;
pub mod twin;
pub mod wlan;
