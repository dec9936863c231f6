//! The share of a core that a pump may be awake, and the time that the scheduler made it wait.

use std::fs::File;
use std::os::unix::fs::FileExt;

use nix::libc;

/// The share of its time that the pump may be awake, in thousandths: the kernel stops a real-time thread that takes
/// more than 95 % of a second for the rest of it (sched_rt_runtime_us), 50 ms in which packets are late.
const AWAKE_PERMILLE: i64 = 880;
/// Greatest lead over that share, in thousandths of nanoseconds: 100 ms awake without a pause.
const AHEAD_MOST: i64 = 100_000_000 * (1_000 - AWAKE_PERMILLE);

/// Time that the pump may be awake before it has to sleep: a bucket that fills while it sleeps and empties
/// while it is awake. The kernel counts by periods of its own, so no second of any phase may hold more than its share.
#[derive(Debug)]
pub(super) struct Budget {
    /// In thousandths of nanoseconds.
    ahead: i64,
    /// Up to when it is counted.
    at: Option<u64>,
    slept: u64,
}

/// The rest of a [`Budget`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// It may spin for as long as it likes.
    Spare,
    /// It should sleep where it can, but for the last moment before a deadline.
    Little,
    /// Even that is too much.
    Debt,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget { ahead: AHEAD_MOST, at: None, slept: 0 }
    }
}

impl Budget {
    pub(super) fn slept(&mut self, ns: u64) {
        self.slept += ns;
    }

    pub(super) fn left(&mut self, now: u64) -> Left {
        let passed = now.saturating_sub(self.at.unwrap_or(now)) as i64;
        let slept = std::mem::take(&mut self.slept) as i64;
        self.at = Some(now);
        let change = passed.saturating_mul(AWAKE_PERMILLE) - (passed - slept).saturating_mul(1_000);
        self.ahead = (self.ahead + change).clamp(-AHEAD_MOST, AHEAD_MOST);
        match self.ahead {
            1.. => Left::Spare,
            ahead if ahead > -AHEAD_MOST => Left::Little,
            _ => Left::Debt,
        }
    }
}

/// CPU time of the calling thread, in nanoseconds.
pub(super) fn thread_time() -> u64 {
    let mut at = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `at` is valid for writing. The clock is there since Linux 2.6; without it the answer stays zero.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut at) };
    at.tv_sec as u64 * 1_000_000_000 + at.tv_nsec as u64
}

/// Time that a thread was ready to run and had no core, in nanoseconds since the thread's start: the second number of
/// Linux's Documentation/scheduler/sched-stats.
pub(super) struct RunDelay(Option<File>);

impl RunDelay {
    pub(super) fn of_this_thread() -> RunDelay {
        RunDelay(File::open("/proc/thread-self/schedstat").ok())
    }

    /// 0 always, on kernels that do not count it.
    pub(super) fn read(&self) -> u64 {
        let mut text = [0; 64];
        let n = self.0.as_ref().and_then(|file| file.read_at(&mut text, 0).ok()).unwrap_or(0);
        let text = std::str::from_utf8(&text[..n]).unwrap_or("");
        text.split(' ').nth(1).and_then(|delay| delay.parse().ok()).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::now as monotonic;

    #[test]
    fn no_second_holds_more_than_its_share_of_waking() {
        // Awake for as long as it may, asleep for 0.3 ms when it must; 20 s in steps of 50 us.
        const STEP: u64 = 50_000;
        let (mut budget, mut now, mut awake) = (Budget::default(), 0, Vec::new());
        while now < 20_000_000_000 {
            let left = budget.left(now);
            let (length, spins) = if left == Left::Spare { (STEP, true) } else { (6 * STEP, false) };
            if !spins {
                budget.slept(length);
            }
            awake.extend(std::iter::repeat_n(spins, (length / STEP) as usize));
            now += length;
        }
        let second = (1_000_000_000 / STEP) as usize;
        let most = awake.windows(second).step_by(20).map(|w| w.iter().filter(|a| **a).count()).max().unwrap();
        assert!((0.87..0.90).contains(&(most as f64 / second as f64)), "{most} of {second}");
        assert_eq!(budget.left(now + 1_000_000_000), Left::Debt);
    }

    #[test]
    fn a_thread_without_a_core_is_seen_waiting() {
        // Two threads bound to one core: while one works, the other waits.
        let one_core = || {
            // SAFETY: an all-zero set is valid; the calls read and write only it.
            unsafe {
                let mut set: libc::cpu_set_t = std::mem::zeroed();
                libc::sched_getaffinity(0, size_of_val(&set), &mut set);
                let first = (0..1024).find(|&c| libc::CPU_ISSET(c, &set)).unwrap_or(0);
                libc::CPU_ZERO(&mut set);
                libc::CPU_SET(first, &mut set);
                libc::sched_setaffinity(0, size_of_val(&set), &set);
            }
        };
        let work = move || {
            one_core();
            let delay = RunDelay::of_this_thread();
            let (before, until) = (delay.read(), monotonic() + 100_000_000);
            while monotonic() < until {
                std::hint::spin_loop();
            }
            (delay.0.is_some(), delay.read() - before)
        };
        let other = std::thread::spawn(work);
        let (counted, waited) = std::thread::spawn(work).join().unwrap();
        other.join().unwrap();
        assert!(!counted || waited > 10_000_000, "{waited} ns");
    }
}
