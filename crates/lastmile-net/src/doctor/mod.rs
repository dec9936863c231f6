//! Abilities of this machine for measuring, found out by trials, and advice on changes.
//!
//! [`Machine::examine`] collects the facts; [`Machine::findings`] judges them. Nothing is changed: priorities are
//! tried on threads of their own, namespaces vanish with the trial, packets go over loopback only.
mod findings;
mod interface;

pub use findings::{Finding, Verdict};
pub use interface::InterfaceFacts;

use crate::clock::{WallClock, now};
use crate::sched::{self, Lateness, PRIORITY, RealTime, SLICE_NS, SPIN_NS};
use crate::sys::{check, read_number};
use crate::udp::{Outgoing, RecvBatch, SocketEvent, UdpConfig, UdpSocket, wait_readable};
use nix::libc;
use nix::sys::resource::{Resource, getrlimit};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

const SLEEPS: usize = 200;
const SLEEP_NS: u64 = 1_000_000;
/// Packets of the stamp trial.
const PACKETS: usize = 10;

/// The lab's way to its namespaces on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Namespaces {
    /// At once: root, or a process with CAP_SYS_ADMIN.
    Privileged,
    /// Inside a user namespace.
    User,
    /// Not at all.
    Forbidden,
}

/// Results of sending ten packets back to back over loopback.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StampTrial {
    /// Packets with a transmit stamp, of 10.
    pub sent: usize,
    /// Packets with a receive stamp different from the others', of 10.
    pub received: usize,
    /// Packets whose ECN mark arrived, of 10.
    pub marked: usize,
    /// Bytes of receive buffer granted, as the kernel counts them, of 16 MB (twice the 8 MB asked for).
    pub recv_buffer: usize,
    /// Why the trial failed, if it did.
    pub error: Option<String>,
}

/// Facts about this machine, for this user, at this moment. `None` is "cannot be told".
#[derive(Clone, Debug)]
pub struct Machine {
    /// Kernel release, such as "6.12.8".
    pub kernel: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Processes that wanted to run during the last minute, on average.
    pub load: Option<f64>,
    /// SCHED_FIFO was granted.
    pub realtime: bool,
    /// RLIMIT_RTPRIO, the highest priority that an unprivileged process may ask for.
    pub rtprio_limit: u64,
    /// Microseconds of each period that real-time threads may use before they are throttled; -1 is all.
    pub rt_runtime_us: Option<i64>,
    /// Length of that period, microseconds.
    pub rt_period_us: Option<i64>,
    /// The scheduler slice granted, in nanoseconds, of 100 000 asked for; 0 if the kernel has none to give.
    pub slice_ns: u64,
    /// Memory may be locked.
    pub lock_memory: bool,
    /// Kernel timestamps on loopback.
    pub stamps: StampTrial,
    /// Namespaces for the lab.
    pub namespaces: Namespaces,
    /// `Ok` if /dev/net/tun can be used; otherwise the system's error in words.
    pub tun: Result<(), String>,
    /// Lateness of 200 sleeps of 1 ms on an ordinary thread, prepared as measuring threads are.
    pub lateness: Lateness,
    /// The same at real-time priority with a short spin, if granted.
    pub lateness_realtime: Option<Lateness>,
    /// The interface asked about, or why it cannot be examined.
    pub interface: Option<Result<InterfaceFacts, String>>,
}

impl Machine {
    /// Examines the machine, and `interface` if given, in about half a second.
    pub fn examine(interface: Option<&str>) -> Self {
        let (lateness, slice_ns) = on_thread(|| {
            let _ = sched::exact_timers();
            let slice = sched::short_slice(SLICE_NS).unwrap_or(0);
            (sched::measure_lateness(SLEEPS, SLEEP_NS, 0), slice)
        })
        .unwrap_or_default();
        let lateness_realtime = on_thread(|| {
            let _priority = RealTime::fifo(PRIORITY).ok()?;
            Some(sched::measure_lateness(SLEEPS, SLEEP_NS, SPIN_NS))
        })
        .flatten();
        Self {
            kernel: std::fs::read_to_string("/proc/sys/kernel/osrelease")
                .map_or_else(|_| "unknown".into(), |s| s.trim().to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            load: std::fs::read_to_string("/proc/loadavg")
                .ok()
                .and_then(|s| s.split_whitespace().next()?.parse().ok()),
            realtime: lateness_realtime.is_some(),
            rtprio_limit: getrlimit(Resource::RLIMIT_RTPRIO).map_or(0, |(soft, _)| soft),
            rt_runtime_us: read_number("/proc/sys/kernel/sched_rt_runtime_us"),
            rt_period_us: read_number("/proc/sys/kernel/sched_rt_period_us"),
            slice_ns,
            lock_memory: sched::may_lock_memory().is_ok(),
            stamps: try_stamps(),
            namespaces: try_namespaces(),
            tun: try_tun().map_err(|e| e.to_string()),
            lateness,
            lateness_realtime,
            interface: interface
                .map(|name| InterfaceFacts::of(name).map_err(|e| format!("interface {name}: {e}"))),
        }
    }
}

/// Runs a trial where it can spoil nothing; `None` if it panicked or no thread could be had.
fn on_thread<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    std::thread::Builder::new().spawn(f).ok()?.join().ok()
}

fn try_stamps() -> StampTrial {
    let mut trial = StampTrial::default();
    if let Err(e) = exchange(&mut trial) {
        trial.error = Some(e.to_string());
    }
    trial
}

fn exchange(trial: &mut StampTrial) -> Result<(), Box<dyn std::error::Error>> {
    let config = UdpConfig::new((Ipv4Addr::LOCALHOST, 0).into());
    let (a, b) = (UdpSocket::open(&config)?, UdpSocket::open(&config)?);
    trial.recv_buffer = b.recv_buffer()?;
    let packet = |id| Outgoing { ecn: 1, ..Outgoing::new(id, b.local_addr(), &[0; 1000]) };
    let packets: Vec<_> = (0..PACKETS as u64).map(packet).collect();
    if let Some(e) = a.send(&packets).error {
        return Err(e.into());
    }
    let (mut batch, mut wall, mut events) = (RecvBatch::default(), WallClock::new(), Vec::new());
    let (mut stamps, mut got) = (Vec::new(), 0);
    let deadline = now() + 200_000_000;
    while (got < PACKETS || events.len() < PACKETS) && now() < deadline {
        a.recv_events(&mut events, &mut wall)?;
        got += b.recv(&mut batch, &mut wall)?;
        for packet in batch.iter() {
            trial.marked += usize::from(packet.ecn == 1);
            stamps.extend(packet.at);
        }
        wait_readable(&[a.as_fd(), b.as_fd()], Some((now() + 1_000_000).min(deadline)))?;
    }
    stamps.sort_unstable();
    stamps.dedup();
    trial.received = stamps.len();
    trial.sent = events.iter().filter(|e| matches!(e, SocketEvent::Sent { .. })).count();
    Ok(())
}

fn try_namespaces() -> Namespaces {
    // SAFETY: no pointers; the thread's new namespace ends with it.
    if on_thread(|| unsafe { libc::unshare(libc::CLONE_NEWNET) } == 0) == Some(true) {
        return Namespaces::Privileged;
    }
    // A user namespace needs a process with one thread: a child between fork and exec is one.
    let mut command = Command::new("true");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: the closure only makes a system call on integers.
    unsafe {
        command.pre_exec(|| check(libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET)).map(drop));
    }
    match command.status() {
        // A missing program `true` says nothing about namespaces.
        Err(e) if e.kind() != io::ErrorKind::NotFound => Namespaces::Forbidden,
        _ => Namespaces::User,
    }
}

/// Asks the driver for its features, which makes no device.
fn try_tun() -> io::Result<()> {
    /// linux/if_tun.h: _IOR('T', 207, unsigned int)
    const TUNGETFEATURES: libc::c_ulong = 0x8004_54cf;
    let file = std::fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun")?;
    let mut features: libc::c_uint = 0;
    // SAFETY: TUNGETFEATURES writes an unsigned int.
    check(unsafe { libc::ioctl(file.as_raw_fd(), TUNGETFEATURES, &raw mut features) })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_can_be_examined() {
        let m = Machine::examine(Some("lo"));
        assert!(m.cores > 0 && m.kernel.contains('.'));
        assert_eq!(m.stamps.error, None);
        assert_eq!((m.stamps.sent, m.stamps.received, m.stamps.marked), (10, 10, 10), "stamps on loopback");
        assert_eq!(m.lateness.n, SLEEPS);
        assert_eq!(m.realtime, m.lateness_realtime.is_some());
        assert!(matches!(&m.interface, Some(Ok(lo)) if lo.name == "lo"));
        let findings = m.findings();
        assert!(findings.iter().all(|f| (f.verdict == Verdict::Good) == f.advice.is_none()), "{findings:#?}");
        assert!(
            matches!(Machine::examine(Some("nosuchif0")).interface, Some(Err(e)) if e.contains("nosuchif0"))
        );
    }
}
