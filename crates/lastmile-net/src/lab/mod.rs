//! The parts of the real-time lab that touch the system: hosts as network namespaces, their TUN devices, and the
//! programs inside them. The pump that joins the TUNs to the simulator stands on top of this.
//!
//! Nothing here has a name outside this process: a namespace lives as long as a thread, socket or child in it, a
//! TUN device as long as its descriptor, and children are killed by the kernel when their parent dies, by SIGKILL
//! too. So nothing needs cleaning up after a crash, and nothing can be left behind.
mod awake;
pub mod child;
pub mod counts;
pub mod due;
mod endpoints;
mod entry;
pub mod ip;
pub mod lateness;
pub mod losses;
mod names;
pub mod netns;
pub mod programs;
pub mod pump;
mod roles;
pub mod run;
mod scale;
mod terminal;
#[cfg(test)]
mod tests;
pub mod tun;

pub use child::LabChild;
pub use netns::{NetNs, enter_user_namespace};
pub use tun::{Tun, TunConfig};

use std::io;

/// Name of the device in every host.
const DEVICE: &str = "lab0";

/// Why the lab cannot be built here, with advice on changes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// Namespaces are forbidden.
    #[error("the lab needs network namespaces, which this user may not create ({source}): {remedy}")]
    NeedNamespaces {
        /// The system's error.
        source: io::Error,
        /// Advice on a change.
        remedy: &'static str,
    },
    /// No TUN driver, or no right to use it.
    #[error("the lab needs TUN devices, and /dev/net/tun cannot be used ({source}): {remedy}")]
    NeedTun {
        /// The system's error.
        source: io::Error,
        /// Advice on a change.
        remedy: &'static str,
    },
    /// A step of setting up a host failed.
    #[error("host {host}: {step}: {source}")]
    Setup {
        /// The host's name.
        host: String,
        /// The step.
        step: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The host's thread has died: a job panicked in it.
    #[error("host {host} is gone: a job inside it panicked")]
    HostGone {
        /// The host's name.
        host: String,
    },
    /// The program could not be started.
    #[error("host {host}: cannot start {program}: {source}")]
    Start {
        /// The host's name.
        host: String,
        /// The program.
        program: String,
        /// The system's error.
        source: io::Error,
    },
}
