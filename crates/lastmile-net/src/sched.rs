//! Being on time: real-time priority, short scheduler slices, locked memory, and sleeping until a deadline.
//!
//! Measured on two cores: under SCHED_FIFO, sleeping until 60 us before a deadline and spinning the rest is late by
//! 0.3 us (median) and 20 to 48 us (p99), loaded or not. Spinning for good under SCHED_FIFO is throttled for 50 ms
//! at a time, and spinning without priority makes a loaded machine worse; hence the short spin, on request only.
use crate::clock::now;
use crate::sys::check;
use nix::libc;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::io;
use std::marker::PhantomData;

/// Time before a deadline at which a real-time thread stops sleeping and spins, in nanoseconds.
pub const SPIN_NS: u64 = 60_000;
/// The scheduler slice that [`short_slice`] is usually asked for: the shortest that Linux grants.
pub const SLICE_NS: u64 = 100_000;

/// Real-time priority of measuring threads: enough to precede all ordinary work.
pub const PRIORITY: i32 = 10;

/// Keeps the calling thread as exact in time as it can be, until dropped.
#[derive(Debug)]
#[must_use = "a real-time priority ends when this is dropped"]
pub struct Pace(Option<RealTime>);

impl Pace {
    /// At that real-time priority.
    ///
    /// # Errors
    /// As of [`RealTime::fifo`].
    pub fn realtime(priority: i32) -> io::Result<Pace> {
        let _ = exact_timers();
        Ok(Pace(Some(RealTime::fifo(priority)?)))
    }

    /// Without real-time priority: best effort, since kernels without custom slices keep their own.
    pub fn ordinary() -> Pace {
        let _ = exact_timers();
        let _ = short_slice(SLICE_NS);
        Pace(None)
    }

    /// At the priority of measuring threads if that is asked for.
    ///
    /// # Errors
    /// It is refused.
    pub fn new(realtime: bool) -> io::Result<Pace> {
        if realtime { Pace::realtime(PRIORITY) } else { Ok(Pace::ordinary()) }
    }

    /// True at real-time priority.
    pub fn is_realtime(&self) -> bool {
        self.0.is_some()
    }

    /// Time before a deadline at which the thread may spin, in nanoseconds.
    pub fn spin_ns(&self) -> u64 {
        if self.is_realtime() { SPIN_NS } else { 0 }
    }
}

/// Keeps the calling thread at real-time priority until dropped.
///
/// Not `Send`: priority belongs to the thread that asked for it.
#[derive(Debug)]
#[must_use = "the priority ends when this is dropped"]
pub struct RealTime {
    policy: libc::c_int,
    param: libc::sched_param,
    _this_thread: PhantomData<*const ()>,
}

impl RealTime {
    /// Puts the calling thread under SCHED_FIFO at `priority` (1 to 99; 10 is enough to precede all ordinary
    /// work). Children and threads started from it do not inherit the priority.
    ///
    /// # Errors
    /// Permission denied without CAP_SYS_NICE unless RLIMIT_RTPRIO (`ulimit -r`) allows the priority.
    pub fn fifo(priority: i32) -> io::Result<Self> {
        // SAFETY: reads this thread's policy.
        let policy = check(unsafe { libc::sched_getscheduler(0) })?;
        let mut param = libc::sched_param { sched_priority: 0 };
        // SAFETY: `param` is valid for writing.
        check(unsafe { libc::sched_getparam(0, &mut param) })?;
        let wanted = libc::sched_param { sched_priority: priority };
        // SAFETY: `wanted` is valid for reading; 0 means the calling thread.
        check(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &wanted) })?;
        Ok(Self { policy, param, _this_thread: PhantomData })
    }
}

impl Drop for RealTime {
    fn drop(&mut self) {
        // SAFETY: `param` is valid for reading. Lowering one's own priority needs no privilege.
        let set = |policy| unsafe { libc::sched_setscheduler(0, policy, &self.param) };
        // An unprivileged thread may set the reset-on-fork flag but not clear it.
        if set(self.policy) < 0 {
            set(self.policy | libc::SCHED_RESET_ON_FORK);
        }
    }
}

/// True if this process may have real-time priority; tried on a thread of its own.
pub fn may_be_realtime() -> bool {
    std::thread::spawn(|| RealTime::fifo(1).is_ok()).join().unwrap_or(false)
}

/// `struct sched_attr` of linux/sched/types.h, first version (48 bytes).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

fn attributes() -> io::Result<SchedAttr> {
    let mut attr = SchedAttr::default();
    let size = size_of::<SchedAttr>() as u32;
    // SAFETY: `attr` is valid for writing `size` bytes; 0 is this thread, the last 0 no flags.
    let ret = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attr, size, 0) };
    check(ret as libc::c_int)?;
    Ok(attr)
}

/// Asks the scheduler for slices of `slice_ns` for the calling thread, so that it gets its turn sooner after
/// waking up beside busy processes. Needs no privilege. Returns the slice granted: kernels before 6.12 and other
/// schedulers answer 0, meaning that the request changes nothing.
///
/// # Errors
/// The thread is under a real-time policy, or the system call is forbidden (seccomp).
pub fn short_slice(slice_ns: u64) -> io::Result<u64> {
    let mut attr = attributes()?;
    if attr.policy != libc::SCHED_OTHER as u32 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "only ordinary threads have slices"));
    }
    attr.size = size_of::<SchedAttr>() as u32;
    attr.runtime = slice_ns;
    // SAFETY: `attr` is valid for reading its `size` bytes; 0 is this thread, the last 0 no flags.
    check(unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0) } as libc::c_int)?;
    Ok(attributes()?.runtime)
}

/// Checks that this process may lock memory without limit; nothing stays locked. Tried rather than computed from user,
/// capabilities and namespaces: more than the limit is locked and released, without touching a page of it.
///
/// # Errors
/// Permission denied where RLIMIT_MEMLOCK is finite and the process may neither raise nor exceed it.
pub fn may_lock_memory() -> io::Result<()> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_MEMLOCK)?;
    if soft == libc::RLIM_INFINITY {
        return Ok(());
    }
    if setrlimit(Resource::RLIMIT_MEMLOCK, libc::RLIM_INFINITY, libc::RLIM_INFINITY).is_ok() {
        setrlimit(Resource::RLIMIT_MEMLOCK, soft, hard)?;
        return Ok(());
    }
    let refused = || {
        let text = format!("memory locking is limited to {} kB (ulimit -l)", soft / 1024);
        io::Error::new(io::ErrorKind::PermissionDenied, text)
    };
    let len = usize::try_from(soft).ok().and_then(|l| l.checked_add(1 << 16)).ok_or_else(refused)?;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a fresh anonymous mapping of our own, which is never accessed and is unmapped with its exact length.
    unsafe {
        let at = libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ, flags, -1, 0);
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let locked = libc::syscall(libc::SYS_mlock2, at, len, libc::MLOCK_ONFAULT) == 0;
        libc::munmap(at, len);
        if locked { Ok(()) } else { Err(refused()) }
    }
}

/// Locks all present and future memory of the process, page by page as it is first touched, so that no deadline
/// waits for a page to come back from disk.
///
/// # Errors
/// As [`may_lock_memory`]: under a limit, locking future memory would make later allocations fail.
pub fn lock_memory() -> io::Result<()> {
    may_lock_memory()?;
    // Raised where that is allowed; otherwise the process may exceed it.
    let _ = setrlimit(Resource::RLIMIT_MEMLOCK, libc::RLIM_INFINITY, libc::RLIM_INFINITY);
    // SAFETY: no pointers; changes no memory's content.
    check(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT) })?;
    Ok(())
}

/// Lets the calling thread's sleeps end within 1 ns of the time asked for, instead of the usual 50 us within which
/// the kernel may gather wake-ups. Real-time threads have no such slack anyway.
///
/// # Errors
/// None in practice.
pub fn exact_timers() -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0) })?;
    Ok(())
}

/// Sleeps until the monotonic time `deadline`, the last `spin_ns` of it spinning; 0 never spins. Returns how late
/// it is, in nanoseconds. Returns at once if the deadline has passed.
///
/// Spin only at real-time priority (with [`SPIN_NS`]) or on a core of one's own: see the module's head.
pub fn sleep_until(deadline: u64, spin_ns: u64) -> u64 {
    let wake = deadline.saturating_sub(spin_ns);
    if now() < wake {
        let at = libc::timespec { tv_sec: (wake / 1_000_000_000) as _, tv_nsec: (wake % 1_000_000_000) as _ };
        loop {
            // SAFETY: `at` is valid for reading; with TIMER_ABSTIME no remainder is written.
            let e = unsafe {
                libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &at, std::ptr::null_mut())
            };
            if e != libc::EINTR {
                break;
            }
        }
    }
    loop {
        let t = now();
        if t >= deadline {
            return t - deadline;
        }
        std::hint::spin_loop();
    }
}

/// Lateness of a set of timers, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// Timers.
    pub n: usize,
    /// Median.
    pub p50: u64,
    /// 99th percentile.
    pub p99: u64,
    /// Largest.
    pub worst: u64,
}

impl Lateness {
    /// Summarises latenesses in nanoseconds (nearest rank; all zero for an empty set). Sorts `all`.
    pub fn of(all: &mut [u64]) -> Self {
        all.sort_unstable();
        let rank =
            |percent: usize| all.get((all.len() * percent).div_ceil(100).max(1) - 1).copied().unwrap_or(0);
        Self { n: all.len(), p50: rank(50), p99: rank(99), worst: all.last().copied().unwrap_or(0) }
    }
}

/// Measures how late `n` sleeps of `interval_ns` end on the calling thread as it is scheduled now, in about
/// `n * interval_ns`.
pub fn measure_lateness(n: usize, interval_ns: u64, spin_ns: u64) -> Lateness {
    let mut all = Vec::with_capacity(n);
    let mut deadline = now();
    for _ in 0..n {
        // A deadline already missed would be counted twice.
        deadline = (deadline + interval_ns).max(now() + interval_ns / 2);
        all.push(sleep_until(deadline, spin_ns));
    }
    Lateness::of(&mut all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_rank() {
        let mut all: Vec<u64> = (1..=100).rev().collect();
        assert_eq!(Lateness::of(&mut all), Lateness { n: 100, p50: 50, p99: 99, worst: 100 });
        assert_eq!(Lateness::of(&mut [7]), Lateness { n: 1, p50: 7, p99: 7, worst: 7 });
        assert_eq!(Lateness::of(&mut []), Lateness::default());
    }

    #[test]
    fn sleeping_never_ends_early() {
        for spin in [0, SPIN_NS] {
            let deadline = now() + 1_000_000;
            let late = sleep_until(deadline, spin);
            let t = now();
            assert!(t >= deadline && t - deadline >= late);
        }
        assert!(sleep_until(now() - 1_000, SPIN_NS) >= 1_000, "a missed deadline returns its lateness");
    }

    #[test]
    fn lateness_is_measured() {
        exact_timers().expect("timer slack");
        let l = measure_lateness(20, 200_000, 0);
        assert!(l.n == 20 && l.p50 > 0 && l.p50 <= l.p99 && l.p99 <= l.worst, "{l:?}");
    }

    #[test]
    fn priority_ends_with_its_guard() {
        std::thread::spawn(|| {
            // SAFETY: reads this thread's policy.
            let policy = || unsafe { libc::sched_getscheduler(0) } & !libc::SCHED_RESET_ON_FORK;
            assert_eq!(policy(), libc::SCHED_OTHER);
            match RealTime::fifo(10) {
                Ok(guard) => {
                    assert_eq!(policy(), libc::SCHED_FIFO);
                    drop(guard);
                }
                Err(e) => assert_eq!(e.kind(), io::ErrorKind::PermissionDenied),
            }
            assert_eq!(policy(), libc::SCHED_OTHER);
        })
        .join()
        .expect("thread");
    }

    #[test]
    fn slices_and_locked_memory_work_or_say_why() {
        std::thread::spawn(|| {
            let granted = short_slice(SLICE_NS).expect("ordinary thread");
            assert!(granted == 0 || granted == SLICE_NS, "{granted}");
            if let Ok(_fifo) = RealTime::fifo(1) {
                assert!(short_slice(SLICE_NS).is_err());
            }
        })
        .join()
        .expect("thread");
        match lock_memory() {
            Ok(()) => {
                let kept = vec![1u8; 32 << 20];
                assert!(kept.iter().all(|b| *b == 1), "memory beyond the old limit can be had");
                // SAFETY: no pointers; changes no memory's content.
                unsafe { libc::munlockall() };
            }
            Err(e) => assert_eq!(e.kind(), io::ErrorKind::PermissionDenied),
        }
    }
}
