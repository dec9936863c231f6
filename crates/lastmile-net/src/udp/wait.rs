//! Waiting for packets.
use crate::clock::now;
use nix::libc;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Sleeps until one of `fds` has something to read (packets, stamps or errors), or until the monotonic time
/// `deadline`; `None` waits for ever. Returns true for each descriptor that has something.
///
/// # Errors
/// Only if the system is out of memory or a descriptor is invalid. A signal ends the wait early with nothing ready.
pub fn wait_readable(fds: &[BorrowedFd<'_>], deadline: Option<u64>) -> io::Result<Vec<bool>> {
    let mut polled: Vec<libc::pollfd> =
        fds.iter().map(|fd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 }).collect();
    let left = deadline.map(|d| {
        let ns = d.saturating_sub(now());
        libc::timespec { tv_sec: (ns / 1_000_000_000) as _, tv_nsec: (ns % 1_000_000_000) as _ }
    });
    let timeout = left.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: `polled` is valid for its length, `timeout` is null or points to `left`, which outlives the call;
    // a null signal mask is allowed.
    let ready =
        unsafe { libc::ppoll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, timeout, std::ptr::null()) };
    if ready < 0 {
        let e = io::Error::last_os_error();
        if e.kind() != io::ErrorKind::Interrupted {
            return Err(e);
        }
        return Ok(vec![false; fds.len()]);
    }
    Ok(polled.iter().map(|p| p.revents != 0).collect())
}
