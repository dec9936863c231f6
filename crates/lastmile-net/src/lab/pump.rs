//! The pump: drives the simulator's engine on the wall clock, between the hosts' TUN devices.
//!
//! Engine time never runs ahead of the wall. A packet enters at the time at which it was read, or at the engine's
//! time if that is later, and leaves when the engine's model says, so that lateness does not add up. The pump's
//! lateness is measured for every packet both ways: going out, the time written less the time due; coming in, the
//! time since the device was last seen empty, because a packet may have waited there for as long. A pump that was
//! descheduled reads a packet pair as simultaneous and would otherwise call itself on time. The time for reading the
//! packets before it is not counted: a burst takes its time on any host's own device. A sleeping pump does not
//! see its devices; the scheduler's delay of its wake-up is added instead. Each moment at which
//! something is due in the engine is handled by itself, and its lateness is counted too: if no packet enters or
//! leaves, it is the only measure of lateness.
//!
//! Waking up makes a packet 50 to 200 us late. The pump stays awake only for packets of our own measurements. Others are
//! judged by the path's own times (`scale`), and a pump that stayed awake for them would take a core.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;

use lastmile::endpoint::Event;
use lastmile::node::{Datagram, Ecn, Flow, Model, Payload};
use lastmile::time::{Span, Time};
use lastmile_sim::monitor::accounting::Watched;
use lastmile_sim::network::engine::{Engine, EngineError, NodeId};
use lastmile_sim::network::host::Egress;

use super::awake::{Budget, Left, RunDelay, thread_time};
use super::counts::{LatenessCounts, ProcessorTime};
use super::entry::{Entry, MAX_NOTED, Probe, Unseen};
use super::ip;
use super::roles::is_timed;
use super::tun::Tun;
use crate::clock::now as monotonic;
use crate::sched::Pace;
use crate::udp::wait_readable;

/// Priority of the pump: above the measuring threads, whose packets it carries.
const PRIORITY: i32 = 20;
/// Least sleep of a pump that was awake for too long.
const REST_NS: u64 = 300_000;
/// A wait that ends sooner than this may have found a packet that had come before it began.
const AT_ONCE_NS: u64 = 10_000;
/// Packets that are read from one device before it is the turn of the others and of the engine: a host that sends
/// without end must not hold up due events.
const READ_MOST: usize = 32;
/// Moments of the engine that are handled before it is the turn of the devices and of a request to stop: an
/// engine that cannot keep up with the clock always has another one due.
const MOMENTS_MOST: usize = 256;
/// Greatest lag behind the clock at a run's end; beyond it the run is given up.
const BEHIND_MOST: Span = Span::from_secs(1);
/// While packets of our own measurements come, the pump does not sleep for so long after each: a sleeping core takes 50 to
/// 200 us to wake up, which would be added to a packet's time of entry.
const ALERT_NS: u64 = 25_000_000;
/// The ways out are taken once so long before something is due, so that the first of two packets is not later than the second by
/// the cost of cold caches: 2.5 us, which is 2 % of the gap of two packets at 100 Mbit/s.
const WARM_NS: u64 = 15_000;

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
    /// There is more to do than this machine can in real time.
    #[error(
        "this machine is too slow for the scenario in real time: when it should have been over after {end}, it had come \
         to {now}; make it smaller, or run it in virtual time"
    )]
    TooSlow {
        /// The engine's time.
        now: Time,
        /// When it should have ended.
        end: Time,
    },
}

/// One host's link into the engine.
struct Port {
    node: NodeId,
    tun: Tun,
    unseen: Unseen,
}

/// The pump of one lab.
pub struct Pump {
    watched: Watched,
    ports: Vec<Port>,
    /// When it ends by itself.
    end: Option<Time>,
    /// Decisions of endpoints outside of the engine, for observers.
    decisions: Option<Receiver<Event>>,
    started: u64,
    egress: Vec<Egress>,
    late_out: LatenessCounts,
    late_in: LatenessCounts,
    late_events: LatenessCounts,
    /// True if entering packets and the lateness of leaving probes are noted.
    noting: bool,
    entries: Vec<Entry>,
    exits: Vec<(Probe, Span)>,
    /// The hosts' numbers and the addresses between which packets entered.
    pairs: BTreeSet<(usize, IpAddr)>,
    refused: u64,
    ignored: u64,
    /// When a packet of our own measurements last came in.
    last_own: u64,
    budget: Budget,
    /// The share of a core that the run took.
    core: f64,
    /// The processors' times when the pump was made.
    began: ProcessorTime,
}

impl Pump {
    /// A pump for a simulation whose external hosts have these devices.
    pub fn new(watched: Watched, ports: impl IntoIterator<Item = (NodeId, Tun)>) -> Pump {
        let ports =
            ports.into_iter().map(|(node, tun)| Port { node, tun, unseen: Unseen::default() }).collect();
        Pump {
            watched,
            ports,
            end: None,
            decisions: None,
            started: monotonic(),
            egress: Vec::new(),
            late_out: LatenessCounts::default(),
            late_in: LatenessCounts::default(),
            late_events: LatenessCounts::default(),
            noting: false,
            entries: Vec::new(),
            exits: Vec::new(),
            pairs: BTreeSet::new(),
            refused: 0,
            ignored: 0,
            last_own: 0,
            budget: Budget::default(),
            core: 0.0,
            began: ProcessorTime::now(),
        }
    }

    /// Has it end by itself when all is done that is due up to `end` and at it.
    pub fn ending_at(mut self, end: Time) -> Pump {
        self.end = Some(end);
        self
    }

    /// Has observers told of the decisions that come this way; see [`Engine::tell_decision`].
    pub fn telling(mut self, decisions: Receiver<Event>) -> Pump {
        self.decisions = Some(decisions);
        self
    }

    /// Has it note entering packets, and the lateness of leaving probes.
    pub(super) fn noting(mut self) -> Pump {
        self.noting = true;
        self
    }

    /// When the engine's time zero is, in nanoseconds of CLOCK_MONOTONIC: when the pump was made, or without any devices
    /// when it began to run.
    pub fn started(&self) -> u64 {
        self.started
    }

    /// Lateness of packets when they were written.
    pub fn late_out(&self) -> &LatenessCounts {
        &self.late_out
    }

    /// Longest times that packets may have waited to be read.
    pub fn late_in(&self) -> &LatenessCounts {
        &self.late_in
    }

    /// Lateness of handling each moment at which something was due in the engine.
    pub fn late_events(&self) -> &LatenessCounts {
        &self.late_events
    }

    /// Packets that entered, in the order of entry; empty unless they are noted.
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Lateness of probes that left; empty unless it is noted.
    pub(super) fn exits(&self) -> &[(Probe, Span)] {
        &self.exits
    }

    /// The hosts' numbers and the addresses between which packets entered.
    pub(super) fn pairs(&self) -> &BTreeSet<(usize, IpAddr)> {
        &self.pairs
    }

    /// The share of the processors' time since the pump was made that a hypervisor gave to others.
    pub fn stolen(&self) -> f64 {
        ProcessorTime::now().stolen_since(self.began)
    }

    /// The share of a core that the run took.
    pub fn core(&self) -> f64 {
        self.core
    }

    /// Packets that a host's device had no room for.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// The engine, for its meters and counters.
    pub fn engine(&self) -> &Engine {
        &self.watched.simulation().engine
    }

    /// The simulation that is pumped, for its results.
    pub fn watched(&self) -> &Watched {
        &self.watched
    }

    /// Pumps until `stop` is set, or the time comes at which it ends by itself. Asks for real-time priority and goes on
    /// without it; returns true if it was granted.
    ///
    /// # Errors
    /// The engine or a device failed.
    pub fn run(&mut self, stop: &AtomicBool) -> Result<bool, PumpError> {
        let pace = Pace::realtime(PRIORITY).unwrap_or_else(|_| Pace::ordinary());
        let spin = pace.spin_ns();
        let began = monotonic();
        if self.ports.is_empty() {
            // Nobody else goes by this clock: the start of this thread makes nothing late.
            self.started = began;
        }
        self.ports.iter_mut().for_each(|port| port.unseen.empty(began));
        let mut buffer = vec![0; 65_536];
        let queued = RunDelay::of_this_thread();
        let used = thread_time();
        while !stop.load(Ordering::Relaxed) {
            let all = self.read(&mut buffer)?;
            let done = self.advance()?;
            self.write()?;
            self.tell();
            if done && self.end.is_some_and(|end| self.engine().now() >= end) {
                break;
            }
            if all && done {
                self.rest(spin, &queued, &mut buffer)?;
            }
        }
        self.core = (thread_time() - used) as f64 / (monotonic() - began).max(1) as f64;
        Ok(pace.is_realtime())
    }

    /// Lets the engine do all that is due by the clock, each moment by itself; false if there is more.
    fn advance(&mut self) -> Result<bool, PumpError> {
        let now = self.now().min(self.end.unwrap_or(Time::MAX));
        for _ in 0..MOMENTS_MOST {
            match self.watched.engine_mut().next_event() {
                Some(at) if at <= now => {
                    // At zero every node is asked for the first time: nothing was due, and the time for that is the start itself.
                    if at > Time::ZERO {
                        let late = self.now() - at;
                        self.late_events.add(late.as_nanos().max(0) as u64);
                    }
                    self.watched.run_until(at)?;
                }
                _ => {
                    self.watched.run_until(now)?;
                    return Ok(true);
                }
            }
        }
        match self.end {
            Some(end) if self.now() > end + BEHIND_MOST => {
                Err(PumpError::TooSlow { now: self.engine().now(), end })
            }
            _ => Ok(false),
        }
    }

    /// Tells observers of the decisions that have come.
    pub fn tell(&mut self) {
        let Some(decisions) = &self.decisions else { return };
        for event in decisions.try_iter() {
            self.watched.engine_mut().tell_decision(&event);
        }
    }

    fn now(&self) -> Time {
        Time::from_nanos(monotonic() - self.started)
    }

    /// Takes in waiting packets; false if there may be more.
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
                    port.unseen.empty(before);
                    break;
                };
                let at = monotonic();
                let waited = port.unseen.waited(at);
                let node = port.node;
                match datagram(&buffer[..n]) {
                    Some(datagram) => self.enter(node, at, waited, datagram)?,
                    None => self.ignored += 1,
                }
                self.ports[host].unseen.took(monotonic() - before);
            }
        }
        Ok(all)
    }

    /// Has a packet enter that was read at a time of CLOCK_MONOTONIC, after it may have waited for so long.
    fn enter(&mut self, node: NodeId, at: u64, waited: u64, datagram: Datagram) -> Result<(), PumpError> {
        let probe = Probe::of(&datagram);
        if probe.is_some() || is_timed(&datagram) {
            self.last_own = at;
        }
        self.pairs.insert((node.0 as usize, datagram.to.ip()));
        let entered = Time::from_nanos(at - self.started).max(self.engine().now());
        if self.noting && self.entries.len() < MAX_NOTED {
            let payload = Payload::Model(Model { ip_size: datagram.ip_size().0 as u32, words: [0; 4] });
            let header = Datagram { payload, ..datagram };
            let waited = Span::from_nanos(waited as i64);
            self.entries.push(Entry { node, header, at: entered, waited, probe });
        }
        self.late_in.add(waited);
        self.watched.engine_mut().inject(node, entered, datagram)?;
        Ok(())
    }

    /// Hands out everything that is due.
    fn write(&mut self) -> Result<(), PumpError> {
        self.watched.engine_mut().take_egress(&mut self.egress);
        for egress in self.egress.drain(..) {
            let Some(port) = self.ports.iter().find(|p| p.node.0 == u32::from(egress.host)) else { continue };
            let probe = if self.noting { Probe::of(&egress.datagram) } else { None };
            let Payload::Ip(mut bytes) = egress.datagram.payload else { continue };
            ip::set_ecn(&mut bytes, egress.datagram.ecn as u8);
            let late = (monotonic() - self.started).saturating_sub(egress.at.as_nanos());
            self.late_out.add(late);
            if let Some(probe) = probe.filter(|_| self.exits.len() < MAX_NOTED) {
                self.exits.push((probe, Span::from_nanos(late as i64)));
            }
            if !port.tun.write(&bytes)? {
                self.refused += 1;
            }
        }
        Ok(())
    }

    /// Waits for a packet or for the next event: asleep until shortly before it, then spinning.
    fn rest(&mut self, spin: u64, queued: &RunDelay, buffer: &mut [u8]) -> Result<(), PumpError> {
        let now = monotonic();
        let next = self.watched.engine_mut().next_event().into_iter().chain(self.end).min();
        let due = match next {
            Some(at) => self.started.saturating_add(at.as_nanos()),
            // `stop` is looked at this often.
            None => now + 20_000_000,
        };
        let due = due.min(now + 20_000_000);
        let alert = now < self.last_own + ALERT_NS;
        let until = match self.budget.left(now) {
            Left::Spare if alert && spin > 0 => 0,
            // Even where events are closer together than a sleep is long: the kernel's pause would be a hundred times as long.
            Left::Debt => due.max(now + REST_NS),
            _ => due.saturating_sub(spin),
        };
        if until > now {
            let fds: Vec<_> = self.ports.iter().map(|p| p.tun.as_fd()).collect();
            let before = queued.read();
            let readable = wait_readable(&fds, Some(until))?.contains(&true);
            let woken = monotonic();
            self.budget.slept(woken - now);
            // The wait ended with the packet or with the time, but for the scheduler's delay of this thread.
            let empty = match readable {
                true => woken.saturating_sub(queued.read().saturating_sub(before)),
                false => woken,
            };
            if !readable || woken - now > AT_ONCE_NS {
                self.ports.iter_mut().for_each(|port| port.unseen.empty(empty));
            }
            // A signal ends the wait with nothing to read, and before its time.
            if readable || woken < until {
                return Ok(());
            }
        }
        // The devices are read while spinning, so that packets are seen at once.
        let entries = self.late_in.packets();
        let mut cold = true;
        loop {
            let left = due.saturating_sub(monotonic());
            if left == 0 {
                break;
            }
            if cold && left < WARM_NS {
                cold = false;
                self.ports.iter().for_each(|port| port.tun.warm());
            }
            self.read(buffer)?;
            if self.late_in.packets() > entries
                || self.watched.engine_mut().next_event().is_some_and(|at| at <= self.engine().now())
            {
                break;
            }
            std::hint::spin_loop();
        }
        Ok(())
    }
}

/// A raw packet as the engine carries it; `None` if it is not whole, or not for one host.
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
