//! Programs inside a host of the lab; none can outlive it.
//!
//! PR_SET_PDEATHSIG alone kills only the program itself, not its children. So the program runs in a process
//! namespace: when the namespace's first process dies, the kernel kills everything in it, daemons included. Between
//! us and the program stand two small processes:
//!
//! - the keeper, our child: dies with the thread that made it (PR_SET_PDEATHSIG), hands the exit status up;
//! - the init, first process of the namespace: dies with the keeper, reaps orphans, ends when the program ends.
use super::{LabError, NetNs, terminal};
use nix::libc;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longest piece of a line that [`forward`] keeps together.
const LINE_MAX: u64 = 64 * 1024;

/// A program's standard input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProgramInput {
    /// Nothing.
    #[default]
    Nothing,
    /// The lab's own standard input.
    Inherited,
    /// The terminal at the lab's standard input. The program is then in front of it: keys such as Ctrl-C are its own.
    Terminal,
}

/// A running program. Dropping it kills the program and everything that it started, and waits for their end.
#[derive(Debug)]
pub struct LabChild {
    child: Child,
}

impl LabChild {
    /// Starts `command` in the host's namespace, in a process group of its own, with no standard input.
    ///
    /// # Errors
    /// As [`spawn_with`](Self::spawn_with).
    pub fn spawn(host: &NetNs, command: Command) -> Result<Self, LabError> {
        Self::spawn_with(host, command, ProgramInput::Nothing)
    }

    /// Starts `command` in the host's namespace, in a process group of its own. Output goes
    /// where the command says: inherited by default, or piped (see [`forward`]).
    ///
    /// The program dies with `host` too, at the latest. If a signal ends it, its exit code is 128 plus the signal's
    /// number, as in a shell.
    ///
    /// # Errors
    /// [`LabError::Start`], for a program that cannot be found above all.
    pub fn spawn_with(host: &NetNs, mut command: Command, input: ProgramInput) -> Result<Self, LabError> {
        let program = command.get_program().to_string_lossy().into_owned();
        command.stdin(if input == ProgramInput::Nothing { Stdio::null() } else { Stdio::inherit() });
        let in_front = input == ProgramInput::Terminal;
        let us = std::process::id();
        // SAFETY: the closure runs between fork and exec and only makes system calls; it allocates nothing and
        // takes no locks.
        unsafe { command.pre_exec(move || enclose(us as libc::pid_t, in_front)) };
        let child = host.run(move || command.spawn())?;
        let child =
            child.map_err(|source| LabError::Start { host: host.name().to_owned(), program, source })?;
        Ok(Self { child })
    }

    /// The process group of the program, and the id of its keeper.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The program's output, once, if it was piped.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// The program's error output, once, if it was piped.
    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// The exit status if the program has ended.
    ///
    /// # Errors
    /// None in practice.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Waits for the program's end.
    ///
    /// # Errors
    /// None in practice.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }

    /// Asks the program to end (SIGTERM to its group), and does not wait.
    pub fn ask_to_end(&mut self) {
        self.signal(libc::SIGTERM);
    }

    /// Asks the program to end (SIGTERM to its group), and kills it if it has not after `grace`.
    ///
    /// # Errors
    /// None in practice.
    pub fn terminate(&mut self, grace: Duration) -> io::Result<ExitStatus> {
        self.ask_to_end();
        self.end_within(grace)
    }

    /// Waits for the end of a program that was asked to, and kills it if it has not after `grace`.
    ///
    /// # Errors
    /// None in practice.
    pub fn end_within(&mut self, grace: Duration) -> io::Result<ExitStatus> {
        let until = Instant::now() + grace;
        while Instant::now() < until {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.signal(libc::SIGKILL);
        self.child.wait()
    }

    /// To the whole group, unless the keeper has been waited for: its number may be another's by then.
    fn signal(&mut self, signal: libc::c_int) {
        if let Ok(None) = self.child.try_wait() {
            // SAFETY: no pointers; the group is that of our own unreaped child.
            unsafe { libc::kill(-(self.child.id() as libc::pid_t), signal) };
        }
    }
}

impl Drop for LabChild {
    fn drop(&mut self) {
        self.signal(libc::SIGKILL);
        let _ = self.child.wait();
    }
}

/// Copies lines from a program's output to `to`, each behind `prefix`, on a thread that ends with the output.
///
/// # Errors
/// The system has no more threads.
pub fn forward(
    from: impl Read + Send + 'static,
    prefix: String,
    mut to: impl Write + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("output".into()).spawn(move || {
        let (mut from, mut line) = (BufReader::new(from), Vec::new());
        loop {
            line.clear();
            line.extend_from_slice(prefix.as_bytes());
            match from.by_ref().take(LINE_MAX).read_until(b'\n', &mut line) {
                Ok(1..) => {}
                _ => return,
            }
            if line.last() != Some(&b'\n') {
                line.push(b'\n');
            }
            // A reader that has gone away must not stop the program: keep draining.
            let _ = to.write_all(&line).and_then(|()| to.flush());
        }
    })
}

/// Runs in the forked child: becomes the keeper, and returns only in the process that is to become the program.
fn enclose(parent: libc::pid_t, in_front: bool) -> io::Result<()> {
    let check = |ret: libc::c_int| if ret < 0 { Err(io::Error::last_os_error()) } else { Ok(ret) };
    // SAFETY: system calls on integers and on locals, in a process with one thread.
    unsafe {
        check(libc::setpgid(0, 0))?;
        if in_front {
            terminal::take()?;
        }
        check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong))?;
        if libc::getppid() != parent {
            libc::_exit(1);
        }
        check(libc::unshare(libc::CLONE_NEWPID))?;
        // Lets the init see whether the keeper died before it could ask to die with it: its parent's number is 0 in
        // the new namespace, dead or alive.
        let mut alive = [0; 2];
        check(libc::pipe2(alive.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK))?;
        let init = check(libc::fork())?;
        if init != 0 {
            libc::close(alive[0]);
            keep(init, alive[1]);
        }
        libc::close(alive[1]);
        check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong))?;
        let mut byte = 0u8;
        if libc::read(alive[0], (&raw mut byte).cast(), 1) == 0 {
            libc::_exit(1);
        }
        libc::close(alive[0]);
        let program = check(libc::fork())?;
        if program != 0 {
            reap(program);
        }
        Ok(())
    }
}

/// Closes every descriptor above standard error except `but` (-1: none): among them is the pipe on which our
/// parent waits for the program's start.
fn close_all(but: libc::c_int) {
    let range = |from: libc::c_int, to: libc::c_int| {
        // SAFETY: no pointers; nothing in this process uses the descriptors any more.
        if from <= to && unsafe { libc::syscall(libc::SYS_close_range, from, to, 0) } < 0 {
            // Kernels before 5.9.
            for fd in from..to.min(65_536) {
                // SAFETY: as above.
                unsafe { libc::close(fd) };
            }
        }
    };
    range(3, but - 1);
    range(but.max(2) + 1, libc::c_int::MAX);
}

/// Signals to the group are the program's business.
fn ignore_signals() {
    let asked = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];
    for signal in asked.into_iter().chain([libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU]) {
        // SAFETY: ignoring a signal installs no handler.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

fn exit_code(status: libc::c_int) -> libc::c_int {
    if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 128 + libc::WTERMSIG(status) }
}

/// The keeper: waits for the init and ends as it did.
fn keep(init: libc::pid_t, alive: libc::c_int) -> ! {
    close_all(alive);
    ignore_signals();
    loop {
        let mut status = 0;
        // SAFETY: `status` is valid for writing; `_exit` runs no handlers of the forked program.
        unsafe {
            let pid = libc::waitpid(init, &mut status, 0);
            if pid == init {
                libc::_exit(exit_code(status));
            }
            if pid < 0 && *libc::__errno_location() != libc::EINTR {
                libc::_exit(1);
            }
        }
    }
}

/// The init: reaps whatever ends in the namespace, until the program does.
fn reap(program: libc::pid_t) -> ! {
    close_all(-1);
    ignore_signals();
    loop {
        let mut status = 0;
        // SAFETY: as in `keep`.
        unsafe {
            let pid = libc::waitpid(-1, &mut status, libc::WUNTRACED);
            if pid > 0 && libc::WIFSTOPPED(status) {
                // Nobody in front of the terminal could make it go on after a Ctrl-Z.
                if pid == program && libc::WSTOPSIG(status) == libc::SIGTSTP {
                    libc::kill(program, libc::SIGCONT);
                }
            } else if pid == program {
                libc::_exit(exit_code(status));
            }
            if pid < 0 && *libc::__errno_location() != libc::EINTR {
                libc::_exit(1);
            }
        }
    }
}
