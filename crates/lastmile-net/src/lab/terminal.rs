//! The terminal at standard input, while a program in the lab has it.

use std::io::{self, IsTerminal};

use nix::libc;
use nix::sys::termios::{SetArg, Termios, tcgetattr, tcsetattr};
use nix::unistd::{getpgrp, tcgetpgrp};

/// A terminal that this process may hand over. Dropping it takes the terminal back, with the modes that it had.
#[derive(Debug)]
pub(super) struct Terminal {
    modes: Termios,
}

impl Terminal {
    /// The terminal at standard input, if there is one and this process is in front of it. A pager that reads this process's
    /// output wants the keys for itself.
    pub(super) fn in_front() -> Option<Terminal> {
        if !io::stdout().is_terminal() {
            return None;
        }
        let front = tcgetpgrp(io::stdin()).ok()?;
        let modes = tcgetattr(io::stdin()).ok()?;
        (front == getpgrp()).then_some(Terminal { modes })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A terminal that has gone away takes no orders, and needs none.
        if take().is_ok() {
            let _ = tcsetattr(io::stdin(), SetArg::TCSADRAIN, &self.modes);
        }
    }
}

/// Puts this process's group in front of the terminal: keys such as Ctrl-C are then signals to that group. It makes system calls
/// alone, so that it may stand between fork and exec.
pub(super) fn take() -> io::Result<()> {
    // SAFETY: the sets are local, and `sigemptyset` fills them before they are read.
    let done = unsafe {
        let (mut blocked, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        // SIGTTOU would stop a process that does this from behind.
        libc::sigemptyset(&mut blocked);
        libc::sigaddset(&mut blocked, libc::SIGTTOU);
        libc::pthread_sigmask(libc::SIG_BLOCK, &blocked, &mut before);
        let done = libc::tcsetpgrp(libc::STDIN_FILENO, libc::getpgrp());
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        done
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
