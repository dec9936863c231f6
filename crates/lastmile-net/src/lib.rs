//! The only crate of lastmile with system calls: clocks, probe sockets with kernel timestamps, real-time
//! scheduling, facts about the machine, and (feature `lab`) namespaces and TUN devices.
//!
//! Below [`driver`], which runs a [`Node`](lastmile::node::Node) on sockets, everything speaks nanoseconds of
//! CLOCK_MONOTONIC, [`std::net::SocketAddr`] and raw ECN code points, and can be used and tested without the
//! endpoints above it. Linux only.
pub mod clock;
pub mod doctor;
pub mod driver;
pub mod iperf3;
#[cfg(feature = "lab")]
pub mod lab;
#[cfg(feature = "video")]
pub mod media;
pub mod program;
pub mod recording;
pub mod sched;
#[cfg(feature = "srtp")]
pub mod srtp;
pub mod udp;
pub mod usage;

mod sys;
