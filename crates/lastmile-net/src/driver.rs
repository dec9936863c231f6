//! Runs a [`Node`] on real sockets.
//!
//! One thread reads packets and stamps and feeds the node; a second one does nothing but meet departure times, so
//! that a train is never late because something was being received. The node's times count from the driver's start,
//! on CLOCK_MONOTONIC; arrivals and departures are the kernel's stamps.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use lastmile::event::Event;
use lastmile::node::{
    Datagram, Ecn, Failure, Flow, Input, Node, Output, Payload, PortId, Transmit, TransmitId,
};
use lastmile::time::{Epoch, Span, Time};
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::clock::{WallClock, now as monotonic};
use crate::sched::{self, RealTime};
use crate::udp::{BATCH, Outgoing, PathFault, RecvBatch, SendError, SocketEvent, UdpSocket, wait_readable};

/// How a driver keeps its deadlines.
#[derive(Clone, Copy, Debug, Default)]
pub struct DriverConfig {
    /// Ask for SCHED_FIFO and spin the last 60 us before each departure. Refused without the privilege.
    pub realtime: bool,
}

/// A departure stamp that the kernel has not delivered by then will not come (ns).
const STAMP_WAIT_NS: u64 = 200_000_000;
/// The sending thread wakes this long before a deadline, and sleeps precisely from there (ns).
const COARSE_NS: u64 = 1_500_000;

/// Drives one node on one or more sockets; port `i` of the node is socket `i`.
pub struct Driver {
    sockets: Arc<Vec<UdpSocket>>,
    started: u64,
    wall: WallClock,
    sender: Sender,
    realtime: Option<RealTime>,
    /// Packets that left and wait for their stamp: when user space saw them leave.
    unstamped: BTreeMap<u64, u64>,
    /// Packets whose stamp came before user space said that they had left.
    stamped: BTreeSet<u64>,
    /// What leaves at once, gathered so that a burst of replies is one system call.
    replies: Vec<Transmit>,
    wake: Option<Time>,
    events: u64,
}

impl Driver {
    /// Takes over `sockets`; the run starts now.
    ///
    /// # Errors
    /// No thread or descriptor could be had, or real-time priority was asked for and refused.
    pub fn new(sockets: Vec<UdpSocket>, config: DriverConfig) -> io::Result<Driver> {
        let sockets = Arc::new(sockets);
        let started = monotonic();
        let sender = Sender::start(Arc::clone(&sockets), started, config.realtime)?;
        let _ = sched::exact_timers();
        let realtime = match config.realtime {
            true => Some(RealTime::fifo(PRIORITY)?),
            false => {
                // Best effort: kernels without custom slices keep their own.
                let _ = sched::short_slice(sched::SLICE_NS);
                None
            }
        };
        Ok(Driver {
            sockets,
            started,
            wall: WallClock::new(),
            sender,
            realtime,
            unstamped: BTreeMap::new(),
            stamped: BTreeSet::new(),
            replies: Vec::new(),
            wake: None,
            events: 0,
        })
    }

    /// When the run started, in wall time: what endpoints stamp their packets by.
    pub fn epoch(&self) -> Epoch {
        Epoch::from_unix_nanos(self.wall.to_wall(self.started))
    }

    /// The time of the run.
    pub fn now(&self) -> Time {
        self.time(monotonic())
    }

    /// The monotonic time at which the run started, in nanoseconds.
    pub fn started(&self) -> u64 {
        self.started
    }

    /// Whether this thread has real-time priority.
    pub fn is_realtime(&self) -> bool {
        self.realtime.is_some()
    }

    fn time(&self, monotonic: u64) -> Time {
        Time::from_nanos(monotonic.saturating_sub(self.started))
    }

    /// Runs `node` until `done` says so or `stop` is set; its decisions go to `on_event`.
    ///
    /// # Errors
    /// Only faults of this host. What the network reports goes to the node.
    pub fn run<N: Node>(
        &mut self,
        node: &mut N,
        on_event: &mut impl FnMut(&Event),
        stop: &AtomicBool,
        mut done: impl FnMut(&N) -> bool,
    ) -> io::Result<()> {
        let mut batch = RecvBatch::default();
        let mut events = Vec::new();
        // The first wake begins whatever the node begins by itself.
        self.tell(self.now(), Input::Wake, node, on_event);
        self.flush();
        while !done(node) && !stop.load(Ordering::Relaxed) {
            let ready = self.wait()?;
            if ready.last() == Some(&true) {
                let _ = self.sender.ready.read();
                let results = std::mem::take(&mut *lock(&self.sender.results));
                results.into_iter().for_each(|result| self.departed(result, node, on_event));
            }
            for (port, ready) in ready.iter().take(self.sockets.len()).enumerate() {
                if *ready {
                    self.read(PortId(port as u16), node, on_event, &mut batch, &mut events)?;
                }
            }
            self.give_up_on_stamps(node, on_event);
            let now = self.now();
            if self.wake.is_some_and(|at| at <= now) {
                self.tell(now, Input::Wake, node, on_event);
            }
            self.flush();
        }
        Ok(())
    }

    fn wait(&self) -> io::Result<Vec<bool>> {
        let wake = self.wake.map(|at| self.started.saturating_add(at.as_nanos()));
        let stamp = self.unstamped.values().next().map(|at| at + STAMP_WAIT_NS);
        // A signal ends the wait by itself; the half second is for whoever sets `stop` from another thread.
        let deadline = [wake, stamp].into_iter().flatten().min().unwrap_or(u64::MAX);
        let deadline = deadline.min(monotonic() + 500_000_000);
        let mut fds: Vec<_> = self.sockets.iter().map(AsFd::as_fd).collect();
        fds.push(self.sender.ready.as_fd());
        wait_readable(&fds, Some(deadline))
    }

    /// Tells the node and does what it answers, all at one time: rule 2 of the loop.
    fn tell<N: Node>(&mut self, now: Time, input: Input, node: &mut N, on_event: &mut impl FnMut(&Event)) {
        node.handle(now, input);
        loop {
            match node.poll(now) {
                Output::Transmit(transmit) if transmit.at > now => self.sender.push(transmit),
                Output::Transmit(transmit) => self.replies.push(transmit),
                Output::Event(what) => {
                    let event = Event { at: now, node: 0, seq: self.events, what };
                    self.events += 1;
                    on_event(&event);
                }
                Output::Wait(until) => {
                    self.wake = until;
                    return;
                }
            }
        }
    }

    fn flush(&mut self) {
        if !self.replies.is_empty() {
            let sent = transmit(&self.sockets, &self.replies);
            self.replies.clear();
            if !sent.is_empty() {
                lock(&self.sender.results).extend(sent);
                let _ = self.sender.ready.write(1);
            }
        }
    }

    fn read<N: Node>(
        &mut self,
        port: PortId,
        node: &mut N,
        on_event: &mut impl FnMut(&Event),
        batch: &mut RecvBatch,
        events: &mut Vec<SocketEvent>,
    ) -> io::Result<()> {
        let sockets = Arc::clone(&self.sockets);
        let Some(socket) = sockets.get(usize::from(port.0)) else { return Ok(()) };
        // Stamps first: a reply must not overtake the departure that it answers.
        while socket.recv_events(events, &mut self.wall)? > 0 {}
        self.tell_step(node, on_event);
        for event in events.drain(..) {
            let input = match event {
                SocketEvent::Sent { id, at } => {
                    if self.unstamped.remove(&id).is_none() {
                        self.stamped.insert(id);
                    }
                    Input::Sent { id: TransmitId(id), at: self.time(at) }
                }
                SocketEvent::Error(error) => Input::Failed { id: None, reason: failure(error.fault) },
            };
            self.tell(self.now(), input, node, on_event);
        }
        let local = socket.local_addr();
        let n = socket.recv(batch, &mut self.wall)?;
        self.tell_step(node, on_event);
        let now = self.now();
        for received in batch.iter().take(n) {
            let datagram = Datagram {
                from: received.from,
                to: SocketAddr::new(received.to.unwrap_or(local.ip()), local.port()),
                flow: Flow::default(),
                ecn: Ecn::from_bits(received.ecn),
                dscp: received.dscp,
                hop_limit: received.hop_limit.unwrap_or(0),
                payload: Payload::Udp(received.payload.to_vec()),
            };
            let at = received.at.map_or(now, |at| self.time(at)).min(now);
            self.tell(now, Input::Datagram { port, at, datagram }, node, on_event);
        }
        Ok(())
    }

    fn tell_step<N: Node>(&mut self, node: &mut N, on_event: &mut impl FnMut(&Event)) {
        if let Some(step) = self.wall.take_step() {
            self.tell(self.now(), Input::ClockStepped { by: Span::from_nanos(step.by_ns) }, node, on_event);
        }
    }

    /// What user space knows of a departure: a failure is final, a success waits for the kernel's stamp.
    fn departed<N: Node>(&mut self, result: Departed, node: &mut N, on_event: &mut impl FnMut(&Event)) {
        match result {
            Departed::Left { id, at } => {
                if !self.stamped.remove(&id) {
                    self.unstamped.insert(id, at);
                }
            }
            Departed::Failed { id, reason } => {
                let input = Input::Failed { id: Some(TransmitId(id)), reason };
                self.tell(self.now(), input, node, on_event);
            }
        }
    }

    fn give_up_on_stamps<N: Node>(&mut self, node: &mut N, on_event: &mut impl FnMut(&Event)) {
        let over = monotonic().saturating_sub(STAMP_WAIT_NS);
        while let Some((&id, &at)) = self.unstamped.first_key_value().filter(|(_, at)| **at < over) {
            self.unstamped.remove(&id);
            // A device that makes no stamps: user space's time is all there is.
            let input = Input::Sent { id: TransmitId(id), at: self.time(at) };
            self.tell(self.now(), input, node, on_event);
        }
    }
}

/// Real-time priority of measuring threads: enough to precede all ordinary work.
const PRIORITY: i32 = 10;

fn failure(fault: PathFault) -> Failure {
    match fault {
        PathFault::PortClosed => Failure::PortClosed,
        PathFault::TooBig { .. } => Failure::TooBig,
        _ => Failure::Unreachable,
    }
}

/// What became of a packet in user space.
#[derive(Clone, Copy, Debug)]
enum Departed {
    Left { id: u64, at: u64 },
    Failed { id: u64, reason: Failure },
}

/// Sends packets that leave together; says what became of those that the node waits for.
fn transmit(sockets: &[UdpSocket], packets: &[Transmit]) -> Vec<Departed> {
    let mut departed = Vec::new();
    let mut rest = packets;
    while let Some(first) = rest.first() {
        let same_port = rest.iter().take(BATCH).take_while(|t| t.port == first.port).count();
        let (now, later) = rest.split_at(same_port);
        rest = later;
        let Some(socket) = sockets.get(usize::from(first.port.0)) else { continue };
        let outgoing: Vec<_> = now.iter().filter_map(outgoing).collect();
        let mut done = 0;
        while done < outgoing.len() {
            let result = socket.send(&outgoing[done..]);
            let at = monotonic();
            let sent = &outgoing[done..done + result.sent];
            departed.extend(sent.iter().filter(|o| o.stamp).map(|o| Departed::Left { id: o.id, at }));
            done += result.sent;
            if let Some(error) = result.error {
                let reason = match error {
                    SendError::TooBig { .. } => Failure::TooBig,
                    SendError::NoRoute { .. } => Failure::Unreachable,
                    _ => Failure::Host,
                };
                if let Some(refused) = outgoing.get(done).filter(|o| o.stamp) {
                    departed.push(Departed::Failed { id: refused.id, reason });
                }
                done += 1;
            }
        }
    }
    departed
}

fn outgoing(transmit: &Transmit) -> Option<Outgoing<'_>> {
    let datagram = &transmit.datagram;
    let from = datagram.from.ip();
    Some(Outgoing {
        from: (!from.is_unspecified()).then_some(from),
        ecn: datagram.ecn as u8,
        dscp: datagram.dscp,
        stamp: transmit.id != TransmitId::UNTRACKED,
        ..Outgoing::new(transmit.id.0, datagram.to, datagram.payload.udp()?)
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread that meets departure times.
struct Sender {
    queue: Arc<(Mutex<Queue>, Condvar)>,
    results: Arc<Mutex<Vec<Departed>>>,
    /// Readable when there are results.
    ready: Arc<EventFd>,
    pushed: u64,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Queue {
    /// Earliest first; equal times in the order of pushing.
    planned: BTreeMap<(Time, u64), Transmit>,
    stop: bool,
}

impl Sender {
    fn start(sockets: Arc<Vec<UdpSocket>>, started: u64, realtime: bool) -> io::Result<Sender> {
        let queue = Arc::new((Mutex::new(Queue::default()), Condvar::new()));
        let results = Arc::new(Mutex::new(Vec::new()));
        let ready = EventFd::from_value_and_flags(0, EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?;
        let ready = Arc::new(ready);
        let (granted, asked) = std::sync::mpsc::channel();
        let thread = {
            let (queue, results, ready) = (Arc::clone(&queue), Arc::clone(&results), Arc::clone(&ready));
            std::thread::Builder::new().name("lastmile-send".into()).spawn(move || {
                let _ = sched::exact_timers();
                let priority = match realtime {
                    true => RealTime::fifo(PRIORITY).map(Some),
                    false => {
                        let _ = sched::short_slice(sched::SLICE_NS);
                        Ok(None)
                    }
                };
                let spin = if matches!(priority, Ok(Some(_))) { sched::SPIN_NS } else { 0 };
                let (guard, error) = match priority {
                    Ok(guard) => (guard, None),
                    Err(error) => (None, Some(error)),
                };
                let failed = error.is_some();
                let _ = granted.send(error);
                if !failed {
                    send_loop(&sockets, started, spin, &queue, &results, &ready);
                }
                drop(guard);
            })?
        };
        match asked.recv() {
            Ok(None) => {}
            Ok(Some(error)) => return Err(error),
            Err(_) => return Err(io::Error::other("the sending thread ended at once")),
        }
        Ok(Sender { queue, results, ready, pushed: 0, thread: Some(thread) })
    }

    fn push(&mut self, transmit: Transmit) {
        let mut queue = lock(&self.queue.0);
        let earliest = queue.planned.first_key_value().is_none_or(|((at, _), _)| transmit.at < *at);
        queue.planned.insert((transmit.at, self.pushed), transmit);
        self.pushed += 1;
        drop(queue);
        if earliest {
            self.queue.1.notify_one();
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        lock(&self.queue.0).stop = true;
        self.queue.1.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn send_loop(
    sockets: &[UdpSocket],
    started: u64,
    spin: u64,
    (queue, changed): &(Mutex<Queue>, Condvar),
    results: &Mutex<Vec<Departed>>,
    ready: &EventFd,
) {
    let mut together = Vec::with_capacity(BATCH);
    let mut guard = lock(queue);
    loop {
        if guard.stop {
            return;
        }
        let Some((&(at, _), _)) = guard.planned.first_key_value() else {
            guard = changed.wait(guard).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        let deadline = started.saturating_add(at.as_nanos());
        let left = deadline.saturating_sub(monotonic());
        if left > COARSE_NS {
            let coarse = Duration::from_nanos(left - COARSE_NS / 2);
            guard = changed.wait_timeout(guard, coarse).unwrap_or_else(PoisonError::into_inner).0;
            continue;
        }
        drop(guard);
        sched::sleep_until(deadline, spin);
        guard = lock(queue);
        // Everything that was planned for this time leaves in one system call; what is overdue besides leaves too,
        // in order, and the endpoint will see from the stamps that its schedule was missed.
        let now = Time::from_nanos(monotonic().saturating_sub(started));
        while let Some(entry) = guard.planned.first_entry().filter(|e| e.key().0 <= now.max(at)) {
            together.push(entry.remove());
        }
        drop(guard);
        let departed = transmit(sockets, &together);
        together.clear();
        if !departed.is_empty() {
            lock(results).extend(departed);
            let _ = ready.write(1);
        }
        guard = lock(queue);
    }
}
