//! The pump: drives the simulator's engine on the wall clock, between the hosts' TUN devices.
//!
//! Engine time never runs ahead of the wall. A packet enters at the time at which it was read, or at the engine's
//! time if that is later, and leaves when the engine's model says, so that lateness does not add up. How late the
//! pump was is measured for every packet both ways: going out, the time written less the time due; coming in, the
//! time since the device was last seen empty, because a packet may have waited there for as long. A pump that was
//! descheduled reads a packet pair as simultaneous and would otherwise call itself on time. A sleeping pump does not
//! see its devices; what the scheduler made it wait after its wake-up was due is added in its place.

use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

use lastmile::node::{Datagram, Ecn, Flow, Payload};
use lastmile::time::Time;
use lastmile_sim::engine::{Engine, EngineError, NodeId};
use lastmile_sim::host::Egress;
use lastmile_sim::run::read_probe;
use lastmile_sim::truth::udp_payload;

use super::ip;
use super::lateness::{LatenessCounts, ProcessorTime};
use super::tun::Tun;
use crate::clock::now as monotonic;
use crate::sched::{self, RealTime, SPIN_NS};
use crate::udp::wait_readable;

/// Priority of the pump: above the measuring threads, whose packets it carries.
const PRIORITY: i32 = 20;
/// The share of its time that the pump may be awake, in thousandths: the kernel stops a real-time thread that takes
/// more than 95 % of a second for the rest of it (sched_rt_runtime_us), 50 ms in which packets are late.
const AWAKE_PERMILLE: i64 = 880;
/// How far ahead of that share it may be, in thousandths of nanoseconds: 100 ms awake without a pause.
const AHEAD_MOST: i64 = 100_000_000 * (1_000 - AWAKE_PERMILLE);
/// A wait that ends sooner than this may have found a packet that had come before it began.
const AT_ONCE_NS: u64 = 10_000;
/// Packets that are read from one device before it is the turn of the others and of the engine: a host that sends
/// without end must not hold up what is due.
const READ_MOST: usize = 32;
/// While packets come, the pump does not sleep for so long after each: a sleeping core takes 50 to 200 us to wake up,
/// which would be added to a packet's time of entry.
const ALERT_NS: u64 = 25_000_000;
/// Tagged packets whose entry is noted.
const MAX_NOTED: usize = 1_000_000;

/// Why a pump stopped by itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PumpError {
    /// The simulator cannot go on.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A device failed.
    #[error("the lab's device failed: {0}")]
    Device(#[from] io::Error),
}

/// When a packet with a stream tag entered the lab: to be held against its sender's kernel stamp.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The host that sent it.
    pub host: usize,
    /// Where it goes: two sessions of one host number their streams alike.
    pub to: IpAddr,
    /// Its stream.
    pub stream: u32,
    /// Its place in the stream.
    pub index: u16,
    /// When it was read from the device, in nanoseconds of CLOCK_MONOTONIC.
    pub read: u64,
}

/// One host's link into the engine.
struct Port {
    node: NodeId,
    tun: Tun,
    last_empty: u64,
}

/// The pump of one lab.
pub struct Pump {
    engine: Engine,
    ports: Vec<Port>,
    started: u64,
    egress: Vec<Egress>,
    late_out: LatenessCounts,
    late_in: LatenessCounts,
    entries: Vec<Entry>,
    refused: u64,
    ignored: u64,
    /// When a packet last came in.
    last_entry: u64,
    budget: Budget,
    /// What this machine's processors had done when the pump was made.
    began: ProcessorTime,
}

impl Pump {
    /// A pump for an engine whose external hosts have these devices.
    pub fn new(engine: Engine, ports: impl IntoIterator<Item = (NodeId, Tun)>) -> Pump {
        let ports = ports.into_iter().map(|(node, tun)| Port { node, tun, last_empty: 0 }).collect();
        Pump {
            engine,
            ports,
            started: monotonic(),
            egress: Vec::new(),
            late_out: LatenessCounts::default(),
            late_in: LatenessCounts::default(),
            entries: Vec::new(),
            refused: 0,
            ignored: 0,
            last_entry: 0,
            budget: Budget::default(),
            began: ProcessorTime::now(),
        }
    }

    /// When the engine's time zero is, in nanoseconds of CLOCK_MONOTONIC: when the pump was made.
    pub fn started(&self) -> u64 {
        self.started
    }

    /// How late packets were written.
    pub fn late_out(&self) -> &LatenessCounts {
        &self.late_out
    }

    /// How long packets may have waited to be read.
    pub fn late_in(&self) -> &LatenessCounts {
        &self.late_in
    }

    /// When stream packets entered.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The share of the processors' time since the pump was made that a hypervisor gave to others.
    pub fn stolen(&self) -> f64 {
        ProcessorTime::now().stolen_since(self.began)
    }

    /// Packets that a host's device had no room for.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// The engine, for its meters and counters.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Pumps until `stop` is set. Asks for real-time priority and goes on without it; says whether it was granted.
    ///
    /// # Errors
    /// The engine or a device failed.
    pub fn run(&mut self, stop: &AtomicBool) -> Result<bool, PumpError> {
        let _ = sched::exact_timers();
        let realtime = RealTime::fifo(PRIORITY).ok();
        if realtime.is_none() {
            let _ = sched::short_slice(sched::SLICE_NS);
        }
        let spin = if realtime.is_some() { SPIN_NS } else { 0 };
        let began = monotonic();
        self.ports.iter_mut().for_each(|port| port.last_empty = began);
        let mut buffer = vec![0; 65_536];
        let queued = RunDelay::of_this_thread();
        while !stop.load(Ordering::Relaxed) {
            let all = self.read(&mut buffer)?;
            let now = self.now();
            self.engine.run_until(now)?;
            self.write()?;
            if all {
                self.rest(spin, &queued, &mut buffer)?;
            }
        }
        Ok(realtime.is_some())
    }

    fn now(&self) -> Time {
        Time::from_nanos(monotonic() - self.started)
    }

    /// Takes in what waits; false if there may be more.
    fn read(&mut self, buffer: &mut [u8]) -> Result<bool, PumpError> {
        let mut all = true;
        for host in 0..self.ports.len() {
            for turn in 0.. {
                if turn == READ_MOST {
                    all = false;
                    break;
                }
                let before = monotonic();
                let port = &mut self.ports[host];
                let Some(n) = port.tun.read(buffer)? else {
                    port.last_empty = before;
                    break;
                };
                let at = monotonic();
                let waited = at - port.last_empty;
                let Some(datagram) = datagram(&buffer[..n]) else {
                    self.ignored += 1;
                    continue;
                };
                self.late_in.add(waited);
                self.last_entry = at;
                if let Some((stream, index)) = udp_payload(&datagram.payload).and_then(read_probe)
                    && self.entries.len() < MAX_NOTED
                {
                    let to = datagram.to.ip();
                    self.entries.push(Entry { host, to, stream, index, read: at });
                }
                let node = self.ports[host].node;
                let entered = Time::from_nanos(at - self.started).max(self.engine.now());
                self.engine.inject(node, entered, datagram)?;
            }
        }
        Ok(all)
    }

    /// Hands out everything that is due.
    fn write(&mut self) -> Result<(), PumpError> {
        self.engine.take_egress(&mut self.egress);
        for egress in self.egress.drain(..) {
            let Some(port) = self.ports.iter().find(|p| p.node.0 == u32::from(egress.host)) else { continue };
            let Payload::Ip(mut bytes) = egress.datagram.payload else { continue };
            ip::set_ecn(&mut bytes, egress.datagram.ecn as u8);
            let late = (monotonic() - self.started).saturating_sub(egress.at.as_nanos());
            self.late_out.add(late);
            if !port.tun.write(&bytes)? {
                self.refused += 1;
            }
        }
        Ok(())
    }

    /// Waits for a packet or for the next event: asleep until shortly before it, then spinning.
    fn rest(&mut self, spin: u64, queued: &RunDelay, buffer: &mut [u8]) -> Result<(), PumpError> {
        let now = monotonic();
        let due = match self.engine.next_event() {
            Some(at) => self.started.saturating_add(at.as_nanos()),
            // `stop` is looked at this often.
            None => now + 20_000_000,
        };
        let due = due.min(now + 20_000_000);
        let alert = now < self.last_entry + ALERT_NS;
        let spin = match self.budget.left(now) {
            Left::Spare if alert && spin > 0 => u64::MAX,
            Left::Debt => 0,
            _ => spin,
        };
        if due > now.saturating_add(spin) {
            let fds: Vec<_> = self.ports.iter().map(|p| p.tun.as_fd()).collect();
            let before = queued.read();
            let readable = wait_readable(&fds, Some(due - spin))?.contains(&true);
            let woken = monotonic();
            self.budget.slept(woken - now);
            // The wait ended with the packet or with the time, but for what the scheduler took to let this thread go on.
            let empty = match readable {
                true => woken.saturating_sub(queued.read().saturating_sub(before)),
                false => woken,
            };
            if !readable || woken - now > AT_ONCE_NS {
                self.ports.iter_mut().for_each(|port| port.last_empty = port.last_empty.max(empty));
            }
            // A signal ends the wait with nothing to read, and before its time.
            if readable || woken < due - spin {
                return Ok(());
            }
        }
        // The devices are read while spinning, so that what comes in is seen at once.
        let entries = self.late_in.packets();
        while monotonic() < due {
            self.read(buffer)?;
            if self.late_in.packets() > entries
                || self.engine.next_event().is_some_and(|at| at <= self.engine.now())
            {
                break;
            }
            std::hint::spin_loop();
        }
        Ok(())
    }
}

/// How much more of a core the pump may take before it has to sleep: a bucket that fills while it sleeps and empties
/// while it is awake. The kernel counts by periods of its own, so no second of any phase may hold more than its share.
#[derive(Debug)]
struct Budget {
    /// In thousandths of nanoseconds.
    ahead: i64,
    /// Up to when it is counted.
    at: Option<u64>,
    slept: u64,
}

/// What is left of a [`Budget`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
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
    fn slept(&mut self, ns: u64) {
        self.slept += ns;
    }

    fn left(&mut self, now: u64) -> Left {
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

/// How long a thread has been ready to run and had no core: the second number of Linux's
/// Documentation/scheduler/sched-stats, in nanoseconds since the thread's start.
struct RunDelay(Option<File>);

impl RunDelay {
    fn of_this_thread() -> RunDelay {
        RunDelay(File::open("/proc/thread-self/schedstat").ok())
    }

    /// 0 always, on kernels that do not count it.
    fn read(&self) -> u64 {
        let mut text = [0; 64];
        let n = self.0.as_ref().and_then(|file| file.read_at(&mut text, 0).ok()).unwrap_or(0);
        let text = std::str::from_utf8(&text[..n]).unwrap_or("");
        text.split(' ').nth(1).and_then(|delay| delay.parse().ok()).unwrap_or(0)
    }
}

/// A raw packet as the engine carries it; `None` for what is not whole, or no host's business.
fn datagram(packet: &[u8]) -> Option<Datagram> {
    let header = ip::parse(packet)?;
    if !ip::is_unicast(header.dst) {
        return None;
    }
    let (from, to) = header.ports.unwrap_or_default();
    Some(Datagram {
        from: (header.src, from).into(),
        to: (header.dst, to).into(),
        flow: Flow::default(),
        ecn: Ecn::from_bits(header.ecn),
        dscp: header.dscp,
        hop_limit: 0,
        payload: Payload::Ip(packet.get(..header.total_len)?.to_vec()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
                let mut set: nix::libc::cpu_set_t = std::mem::zeroed();
                nix::libc::sched_getaffinity(0, size_of_val(&set), &mut set);
                let first = (0..1024).find(|&c| nix::libc::CPU_ISSET(c, &set)).unwrap_or(0);
                nix::libc::CPU_ZERO(&mut set);
                nix::libc::CPU_SET(first, &mut set);
                nix::libc::sched_setaffinity(0, size_of_val(&set), &set);
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
