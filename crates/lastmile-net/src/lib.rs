//! The only crate of lastmile with system calls: clocks, probe sockets with kernel timestamps, real-time
//! scheduling, facts about the machine, and (feature `lab`) namespaces and TUN devices.
//!
//! This layer speaks nanoseconds of CLOCK_MONOTONIC, [`std::net::SocketAddr`] and raw ECN code points, so that
//! every part can be used and tested without the protocol endpoints above it. Linux only.
pub mod clock;
pub mod doctor;
#[cfg(feature = "lab")]
pub mod lab;
pub mod sched;
pub mod udp;

mod sys;
