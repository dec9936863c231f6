//! A process and its pipe: one line there, one line back, each within its budget. Nothing of it is left once this is dropped.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::sys::socket::MsgFlags;
use nix::unistd::Pid;

/// An answer is at most this long.
const MAX_LINE: usize = 65_536;
/// Time for the first answer, which has the start of an interpreter in it, and for each later one.
const FIRST: Duration = Duration::from_secs(10);
const ANSWER: Duration = Duration::from_secs(5);
/// Time for all answers of a run, and more for each.
const RUN: Duration = Duration::from_secs(10);
const MORE: Duration = Duration::from_micros(100);
/// Time to end in after its input did.
const GRACE: Duration = Duration::from_millis(200);

/// Why there is no answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// The program was late.
    Late(String),
    /// Anything else.
    Wrong(String),
}

/// A program that runs, the leader of a process group of its own.
#[derive(Debug)]
pub(super) struct Pipe {
    child: Child,
    ours: UnixStream,
    came: Vec<u8>,
    lines: u32,
    spent: Duration,
    ended: bool,
}

impl Pipe {
    /// Starts a program.
    pub(super) fn open(words: &[String]) -> std::io::Result<Pipe> {
        let (ours, its) = UnixStream::pair()?;
        let [input, output] = [its.try_clone()?, its].map(|end| Stdio::from(OwnedFd::from(end)));
        let (name, arguments) =
            words.split_first().ok_or_else(|| std::io::Error::from(ErrorKind::InvalidInput))?;
        let mut command = Command::new(name);
        let child = command.args(arguments).stdin(input).stdout(output).process_group(0).spawn()?;
        Ok(Pipe { child, ours, came: Vec::new(), lines: 0, spent: Duration::ZERO, ended: false })
    }

    /// Sends a line, which ends with a line feed, and waits for the answer to it.
    pub(super) fn ask(&mut self, line: &[u8]) -> Result<Vec<u8>, NoAnswer> {
        let begins = Instant::now();
        let whole = if self.lines == 0 { FIRST } else { ANSWER };
        let answer = self.exchange(line, begins + whole, whole);
        self.lines += 1;
        self.spent += begins.elapsed();
        let budget = RUN + MORE * self.lines;
        if self.spent > budget && answer.is_ok() {
            let (lines, spent, budget) = (self.lines, self.spent.as_secs_f64(), budget.as_secs_f64());
            let why = format!("took {spent:.1} s for {lines} answers, of which a run may have {budget:.1}");
            return Err(NoAnswer::Late(why));
        }
        answer
    }

    fn exchange(&mut self, line: &[u8], until: Instant, whole: Duration) -> Result<Vec<u8>, NoAnswer> {
        let late = || NoAnswer::Late(format!("did not answer within {} s", whole.as_secs()));
        let left = || {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() { Err(late()) } else { Ok(left) }
        };
        let mut chunk = [0; 4096];
        let early = nix::sys::socket::recv(self.ours.as_raw_fd(), &mut chunk, MsgFlags::MSG_DONTWAIT);
        if early.is_ok_and(|read| read > 0) {
            return Err(NoAnswer::Wrong("wrote a line that was not asked for".to_owned()));
        }
        let mut rest = line;
        while !rest.is_empty() {
            let left = left()?;
            match self.ours.set_write_timeout(Some(left)).and_then(|()| self.ours.write(rest)) {
                Ok(written) => rest = &rest[written..],
                Err(error) => self.told(&error)?,
            }
        }
        loop {
            if let Some(end) = self.came.iter().position(|&byte| byte == b'\n') {
                if end + 1 < self.came.len() {
                    return Err(NoAnswer::Wrong("answered one line with several".to_owned()));
                }
                return Ok(std::mem::take(&mut self.came));
            }
            if self.came.len() > MAX_LINE {
                return Err(NoAnswer::Wrong(format!("answered with a line of more than {MAX_LINE} bytes")));
            }
            let left = left()?;
            match self.ours.set_read_timeout(Some(left)).and_then(|()| self.ours.read(&mut chunk)) {
                Ok(0) => return Err(self.end()),
                Ok(read) => self.came.extend_from_slice(&chunk[..read]),
                Err(error) => self.told(&error)?,
            }
        }
    }

    /// Goes on after an interruption or a time-out, which the caller counts.
    fn told(&mut self, error: &std::io::Error) -> Result<(), NoAnswer> {
        match error.kind() {
            ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut => Ok(()),
            _ => Err(self.end()),
        }
    }

    /// The way in which it ended, or closed its end of the pipe.
    fn end(&mut self) -> NoAnswer {
        // A process that is ending keeps its status.
        let status = self.kill();
        let killed = status.as_ref().is_some_and(|status| {
            std::os::unix::process::ExitStatusExt::signal(status) == Some(Signal::SIGKILL as i32)
        });
        NoAnswer::Wrong(match status {
            Some(status) if !killed => format!("ended ({status})"),
            _ => "closed its end of the pipe, or was killed".to_owned(),
        })
    }

    /// Kills its process group and waits for it, which may not be allowed.
    fn kill(&mut self) -> Option<std::process::ExitStatus> {
        if !std::mem::replace(&mut self.ended, true) {
            // Of a group that has ended there is nothing to kill; its number is held until it was waited for.
            let group = killpg(Pid::from_raw(self.child.id() as i32), Signal::SIGKILL);
            // It may lead another group by now, or belong to another user.
            let _ = group.map_err(|_| self.child.kill());
        }
        let until = Instant::now() + GRACE;
        loop {
            match self.child.try_wait() {
                Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(1)),
                ended => return ended.ok().flatten(),
            }
        }
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let until = Instant::now() + GRACE;
        let _ = self.ours.shutdown(Shutdown::Write);
        let mut chunk = [0; 4096];
        while !self.ended {
            let left = until.saturating_duration_since(Instant::now());
            let timed = !left.is_zero() && self.ours.set_read_timeout(Some(left)).is_ok();
            if !timed || matches!(self.ours.read(&mut chunk), Ok(0) | Err(_)) {
                break;
            }
        }
        self.kill();
    }
}
