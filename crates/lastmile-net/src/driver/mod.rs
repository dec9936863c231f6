//! Runs a [`Node`] on real sockets.
//!
//! One thread reads packets and stamps and feeds the node; a second one does nothing but meet departure times, so
//! that a train is never late because something was being received. Packets leave in the order of the times for which they
//! were planned, and those of one time in the order in which they were made, whichever thread sends them. The node's times count
//! from the driver's start, on CLOCK_MONOTONIC; arrivals and departures are the kernel's stamps.

mod sender;

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lastmile::event::Event;
use lastmile::node::{Datagram, Ecn, Failure, Flow, Input, Node, Output, Payload, PortId, TransmitId};
use lastmile::time::{Epoch, Span, Time};
use nix::sys::eventfd::EventFd;

use crate::clock::{WallClock, now as monotonic};
use crate::sched::Pace;
use crate::udp::{PathFault, RecvBatch, SocketEvent, UdpSocket, wait_readable};
use sender::{Departed, Sender};

/// Configuration of a driver: its deadlines and its time zero.
#[derive(Clone, Copy, Debug, Default)]
pub struct DriverConfig {
    /// Ask for SCHED_FIFO and spin the last 60 us before each departure. Refused without the privilege.
    pub realtime: bool,
    /// When the run's time zero is, in nanoseconds of CLOCK_MONOTONIC: several drivers of one run share it. `None`: when
    /// the driver is made.
    pub started: Option<u64>,
}

/// Protection of packets between a node and its sockets, such as SRTP.
pub trait Guard: Send {
    /// A payload as it leaves; `None` if it must not.
    fn seal(&mut self, payload: &[u8]) -> Option<Vec<u8>>;

    /// A payload that came from there, for the node; `None` if it is to be dropped.
    fn open(&mut self, from: SocketAddr, payload: &[u8]) -> Option<Vec<u8>>;
}

/// Longest wait for a packet's stamp, ns. A packet that stands in this host's own queue for longer is told as sent.
const STAMP_WAIT_NS: u64 = 200_000_000;
/// Time from the queue's entry to the device from which a packet counts as held up in the queue, ns. The way through
/// the kernel takes microseconds.
const HELD_NS: u64 = 100_000;

/// Drives one node on one or more sockets; port `i` of the node is socket `i`.
pub struct Driver {
    sockets: Arc<Vec<UdpSocket>>,
    started: u64,
    wall: WallClock,
    sender: Sender,
    _pace: Pace,
    /// Packets whose departure the node waits for. Each is answered once, by the first of these: its stamp, a
    /// failure, the end of the wait for its stamp.
    awaited: BTreeSet<u64>,
    /// Packets that user space sent and that may still get a stamp: when user space saw them leave, in that order.
    unstamped: VecDeque<(u64, u64)>,
    /// Packets that are due were handed over: they leave together, so that a burst of replies is one system call.
    due: bool,
    wake: Option<Time>,
    events: u64,
    guard: Option<Box<dyn Guard>>,
}

impl Driver {
    /// Takes over `sockets`; the run starts now, unless the configuration says that it has started before.
    ///
    /// # Errors
    /// No thread or descriptor could be had, or real-time priority was asked for and refused.
    pub fn new(sockets: Vec<UdpSocket>, config: DriverConfig) -> io::Result<Driver> {
        let sockets = Arc::new(sockets);
        let started = config.started.unwrap_or_else(monotonic);
        let sender = Sender::start(Arc::clone(&sockets), started, config.realtime)?;
        let _pace = Pace::new(config.realtime)?;
        Ok(Driver {
            sockets,
            started,
            wall: WallClock::new(),
            sender,
            _pace,
            awaited: BTreeSet::new(),
            unstamped: VecDeque::new(),
            due: false,
            wake: None,
            events: 0,
            guard: None,
        })
    }

    /// Has all packets from now on pass a guard. One that it does not seal is lost to the node.
    pub fn guard(&mut self, guard: Box<dyn Guard>) {
        self.guard = Some(guard);
    }

    /// When the run started, in wall time: endpoints stamp their packets by it.
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

    /// A handle that ends [`run`](Driver::run)'s wait at once, for a thread that sets `stop`.
    pub fn waker(&self) -> Waker {
        Waker(Arc::clone(self.sender.ready()))
    }

    fn time(&self, monotonic: u64) -> Time {
        Time::from_nanos(monotonic.saturating_sub(self.started))
    }

    /// Runs `node` until `done` says so or `stop` is set; a node that is not done is then interrupted. Its decisions go
    /// to `on_event`.
    ///
    /// # Errors
    /// Only faults of this host. Reports of the network go to the node.
    pub fn run<N: Node>(
        &mut self,
        node: &mut N,
        on_event: &mut impl FnMut(&Event<N::Event>),
        stop: &AtomicBool,
        mut done: impl FnMut(&N) -> bool,
    ) -> io::Result<()> {
        let mut batch = RecvBatch::default();
        let mut events = Vec::new();
        // The first wake starts a node that begins by itself.
        self.tell(self.now(), Input::Wake, node, on_event);
        self.flush();
        while !done(node) && !stop.load(Ordering::Relaxed) {
            let ready = self.wait()?;
            if ready.last() == Some(&true) {
                let _ = self.sender.ready().read();
                self.sender.results().into_iter().for_each(|result| self.departed(result, node, on_event));
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
        if !done(node) {
            self.interrupt(node, on_event);
        }
        Ok(())
    }

    /// Tells `node` that it is interrupted, after a run that was done before the node was. Packets that it sends at once still leave.
    pub fn interrupt<N: Node>(&mut self, node: &mut N, on_event: &mut impl FnMut(&Event<N::Event>)) {
        self.tell(self.now(), Input::Interrupted, node, on_event);
        self.flush();
    }

    fn wait(&self) -> io::Result<Vec<bool>> {
        let wake = self.wake.map(|at| self.started.saturating_add(at.as_nanos()));
        let stamp = self.unstamped.front().map(|(at, _)| at + STAMP_WAIT_NS);
        // A signal ends the wait of the thread that it meets, which may be another: hence the half second.
        let deadline = [wake, stamp].into_iter().flatten().min().unwrap_or(u64::MAX);
        let deadline = deadline.min(monotonic() + 500_000_000);
        let mut fds: Vec<_> = self.sockets.iter().map(AsFd::as_fd).collect();
        fds.push(self.sender.ready().as_fd());
        wait_readable(&fds, Some(deadline))
    }

    /// Tells the node and carries out its answers, all at one time: rule 2 of the loop.
    fn tell<N: Node>(
        &mut self,
        now: Time,
        input: Input,
        node: &mut N,
        on_event: &mut impl FnMut(&Event<N::Event>),
    ) {
        node.handle(now, input);
        loop {
            match node.poll(now) {
                Output::Transmit(mut transmit) => {
                    if let (Some(guard), Payload::Udp(bytes)) =
                        (&mut self.guard, &mut transmit.datagram.payload)
                    {
                        match guard.seal(bytes) {
                            Some(sealed) => *bytes = sealed,
                            None => continue,
                        }
                    }
                    if transmit.id != TransmitId::UNTRACKED {
                        self.awaited.insert(transmit.id.0);
                    }
                    let due = transmit.at <= now;
                    self.due |= due;
                    self.sender.push(transmit, due);
                }
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
        if std::mem::take(&mut self.due) {
            self.sender.flush();
        }
    }

    fn read<N: Node>(
        &mut self,
        port: PortId,
        node: &mut N,
        on_event: &mut impl FnMut(&Event<N::Event>),
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
                SocketEvent::Sent { id, .. } if !self.awaited.remove(&id) => continue,
                SocketEvent::Sent { id, at, queued } => {
                    let id = TransmitId(id);
                    if queued >= HELD_NS {
                        let wait = Span::from_nanos(i64::try_from(queued).unwrap_or(i64::MAX));
                        self.tell(self.now(), Input::Queued { id, wait }, node, on_event);
                    }
                    Input::Sent { id, at: self.time(at) }
                }
                SocketEvent::Error(error) => Input::Failed { port, id: None, reason: failure(error.fault) },
            };
            self.tell(self.now(), input, node, on_event);
        }
        let local = socket.local_addr();
        let n = socket.recv(batch, &mut self.wall)?;
        self.tell_step(node, on_event);
        let now = self.now();
        for received in batch.iter().take(n) {
            let payload = match &mut self.guard {
                None => received.payload.to_vec(),
                Some(guard) => match guard.open(received.from, received.payload) {
                    Some(opened) => opened,
                    None => continue,
                },
            };
            let datagram = Datagram {
                from: received.from,
                to: SocketAddr::new(received.to.unwrap_or(local.ip()), local.port()),
                flow: Flow::default(),
                ecn: Ecn::from_bits(received.ecn),
                dscp: received.dscp,
                hop_limit: received.hop_limit.unwrap_or(0),
                payload: Payload::Udp(payload),
            };
            let at = received.at.map_or(now, |at| self.time(at)).min(now);
            self.tell(now, Input::Datagram { port, at, datagram }, node, on_event);
        }
        Ok(())
    }

    fn tell_step<N: Node>(&mut self, node: &mut N, on_event: &mut impl FnMut(&Event<N::Event>)) {
        if let Some(step) = self.wall.take_step() {
            self.tell(self.now(), Input::ClockStepped { by: Span::from_nanos(step.by_ns) }, node, on_event);
        }
    }

    /// Takes in a departure as user space saw it: a failure is final, a success waits for the kernel's stamp.
    fn departed<N: Node>(
        &mut self,
        result: Departed,
        node: &mut N,
        on_event: &mut impl FnMut(&Event<N::Event>),
    ) {
        match result {
            Departed::Left { id, at } => self.unstamped.push_back((at, id)),
            Departed::Failed { port, id, reason } => {
                if self.awaited.remove(&id) {
                    let input = Input::Failed { port, id: Some(TransmitId(id)), reason };
                    self.tell(self.now(), input, node, on_event);
                }
            }
        }
    }

    fn give_up_on_stamps<N: Node>(&mut self, node: &mut N, on_event: &mut impl FnMut(&Event<N::Event>)) {
        let over = monotonic().saturating_sub(STAMP_WAIT_NS);
        while let Some(&(at, id)) = self.unstamped.front() {
            let awaited = self.awaited.contains(&id);
            if awaited && at >= over {
                return;
            }
            self.unstamped.pop_front();
            if awaited {
                self.awaited.remove(&id);
                // Its queue is long, or the device makes no stamps. Without any, user space's time is all there is.
                let at = self.sockets.iter().find_map(|socket| socket.entered_queue(id)).unwrap_or(at);
                let input = Input::Sent { id: TransmitId(id), at: self.time(at) };
                self.tell(self.now(), input, node, on_event);
            }
        }
    }
}

/// Ends a driver's wait from another thread; see [`Driver::waker`].
#[derive(Clone, Debug)]
pub struct Waker(Arc<EventFd>);

impl Waker {
    /// Has the driver look at `stop` at once.
    pub fn wake(&self) {
        // Fails only where the counter is full: then the driver is about to wake anyway.
        let _ = self.0.write(1);
    }
}

fn failure(fault: PathFault) -> Failure {
    match fault {
        PathFault::PortClosed => Failure::PortClosed,
        PathFault::TooBig { .. } => Failure::TooBig,
        _ => Failure::Unreachable,
    }
}
