//! The cost of child processes: for benchmarks that compare programs.

use std::io;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// CPU time and peak memory of all child processes that have been waited for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usage {
    /// Seconds in user space and in the kernel.
    pub cpu_seconds: f64,
    /// The largest resident set of any of them, in bytes.
    pub peak_bytes: u64,
}

impl Usage {
    /// Of the children so far. To measure one alone, it has to be the only one.
    ///
    /// # Errors
    /// The kernel's.
    pub fn of_children() -> io::Result<Usage> {
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
        let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
        // Linux counts in units of 1024 bytes.
        let peak = u64::try_from(usage.max_rss()).unwrap_or(0) * 1024;
        Ok(Usage { cpu_seconds: micros as f64 / 1e6, peak_bytes: peak })
    }
}
