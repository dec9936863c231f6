//! A host of the lab: a thread in a network namespace of its own.
//!
//! Threads rather than forked helpers: sockets and TUN devices made on the thread belong to its namespace for good,
//! and can then be used by any thread of the process, the pump's too.
use super::LabError;
use crate::sys::{interface_ioctl, request, user_namespace_remedy};
use crate::udp;
use nix::libc;
use nix::sched::{CloneFlags, unshare};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc;
use std::thread::JoinHandle;

type Job = Box<dyn FnOnce() + Send>;

/// Gives an unprivileged process the rights that the lab needs, inside a user namespace of its own; does nothing
/// in a process that has them. The process keeps its user's rights to files.
///
/// Must be called at the start of `main`: the kernel lets only single-threaded processes change user namespace.
/// Afterwards the process sees itself as root, and privileges over the real system (SCHED_FIFO, if it was root's)
/// are gone with the old namespace: ask for those first.
///
/// # Errors
/// [`LabError::NeedNamespaces`] with the setting to change.
pub fn enter_user_namespace() -> Result<(), LabError> {
    if can_unshare_net() {
        return Ok(());
    }
    let (uid, gid) = (nix::unistd::geteuid(), nix::unistd::getegid());
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|e| {
        let remedy = if e == nix::Error::EINVAL {
            "a thread was started before entering the user namespace; this is a fault of the program"
        } else {
            user_namespace_remedy()
        };
        LabError::NeedNamespaces { source: e.into(), remedy }
    })?;
    let write = |path: &str, text: String| {
        std::fs::write(path, text)
            .map_err(|source| LabError::NeedNamespaces { source, remedy: user_namespace_remedy() })
    };
    // Since Linux 3.19 an unprivileged process must give up setgroups before it may map a group.
    write("/proc/self/setgroups", "deny".into())?;
    write("/proc/self/uid_map", format!("0 {uid} 1"))?;
    write("/proc/self/gid_map", format!("0 {gid} 1"))?;
    if can_unshare_net() {
        return Ok(());
    }
    // AppArmor, if it restricts user namespaces, leaves them without any rights inside.
    Err(LabError::NeedNamespaces {
        source: io::ErrorKind::PermissionDenied.into(),
        remedy: user_namespace_remedy(),
    })
}

/// Tried in a thread of its own, whose namespace vanishes with it. In a single-threaded process the thread is over
/// when this returns, so that the caller is single-threaded again.
fn can_unshare_net() -> bool {
    let trial = std::thread::spawn(|| unshare(CloneFlags::CLONE_NEWNET).is_ok());
    let may = trial.join().unwrap_or(false);
    // The kernel takes a moment longer than `join` to forget the thread.
    for _ in 0..100 {
        let threads = std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
        if threads <= 1 || may {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    may
}

/// A network namespace with its thread. Dropping it ends the thread; the namespace then lives on only in the
/// sockets and TUN devices that still exist.
#[derive(Debug)]
pub struct NetNs {
    name: String,
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl NetNs {
    /// A fresh namespace with loopback up and nothing else. `name` appears in errors and as the thread's name.
    ///
    /// # Errors
    /// [`LabError::NeedNamespaces`] if the process may not; see [`enter_user_namespace`].
    pub fn new(name: &str) -> Result<Self, LabError> {
        // Otherwise the process's own timestamping socket would hold this namespace.
        udp::prepare();
        let (jobs, inbox) = mpsc::channel::<Job>();
        let (ready, started) = mpsc::channel();
        let setup = |step, source| LabError::Setup { host: name.to_owned(), step, source };
        let thread = std::thread::Builder::new()
            .name(name.chars().filter(|c| *c != '\0').take(15).collect())
            .spawn(move || {
                let made = unshare(CloneFlags::CLONE_NEWNET).map_err(io::Error::from);
                let made = made.map(|()| set_flags("lo", libc::IFF_UP as libc::c_short));
                let _ = ready.send(made);
                for job in inbox {
                    job();
                }
            })
            .map_err(|e| setup("starting its thread", e))?;
        let host = Self { name: name.to_owned(), jobs: Some(jobs), thread: Some(thread) };
        match started.recv() {
            Ok(Ok(Ok(()))) => Ok(host),
            Ok(Ok(Err(e))) => Err(setup("bringing loopback up", e)),
            Ok(Err(source)) => Err(LabError::NeedNamespaces { source, remedy: user_namespace_remedy() }),
            Err(_) => Err(LabError::HostGone { host: name.to_owned() }),
        }
    }

    /// The name given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs `f` on the namespace's thread and waits for its result: sockets opened by `f` live in this
    /// namespace and may be used anywhere. A panic in `f` continues in the caller.
    ///
    /// # Errors
    /// [`LabError::HostGone`] if the thread has ended.
    pub fn run<T: Send + 'static>(&self, f: impl FnOnce() -> T + Send + 'static) -> Result<T, LabError> {
        let gone = || LabError::HostGone { host: self.name.clone() };
        let (reply, answer) = mpsc::channel();
        let job: Job = Box::new(move || {
            let _ = reply.send(catch_unwind(AssertUnwindSafe(f)));
        });
        self.jobs.as_ref().ok_or_else(gone)?.send(job).map_err(|_| gone())?;
        match answer.recv().map_err(|_| gone())? {
            Ok(value) => Ok(value),
            Err(panic) => resume_unwind(panic),
        }
    }

    /// As [`run`](Self::run), for steps of setting up that can fail.
    pub(super) fn step<T: Send + 'static>(
        &self,
        step: &'static str,
        f: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Result<T, LabError> {
        self.run(f)?.map_err(|source| LabError::Setup { host: self.name.clone(), step, source })
    }

    /// Names of the interfaces in the namespace.
    ///
    /// # Errors
    /// The system's list cannot be read.
    pub fn interfaces(&self) -> Result<Vec<String>, LabError> {
        self.step("listing interfaces", || {
            let all = nix::net::if_::if_nameindex()?;
            Ok(all.iter().map(|i| i.name().to_string_lossy().into_owned()).collect())
        })
    }

    /// Starts a thread in this namespace, for endpoints that want a sending thread of their own there (sockets do
    /// not need it).
    ///
    /// # Errors
    /// The system has no more threads.
    pub fn spawn<T: Send + 'static>(
        &self,
        f: impl FnOnce() -> T + Send + 'static,
    ) -> Result<JoinHandle<T>, LabError> {
        // A thread begins in the namespace of the thread that starts it.
        self.step("starting a thread", move || std::thread::Builder::new().spawn(f))
    }
}

impl Drop for NetNs {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Sets flags of an interface, beside those that it has.
pub(super) fn set_flags(name: &str, flags: libc::c_short) -> io::Result<()> {
    let mut req = request(name)?;
    // SAFETY: both requests take an `ifreq`; SIOCGIFFLAGS fills `ifru_flags`.
    unsafe {
        interface_ioctl(libc::AF_INET, libc::SIOCGIFFLAGS, &mut req)?;
        req.ifr_ifru.ifru_flags |= flags;
        interface_ioctl(libc::AF_INET, libc::SIOCSIFFLAGS, &mut req)
    }
}
