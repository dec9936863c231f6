//! The thread that meets departure times, and what becomes of packets in user space.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use lastmile::node::{Failure, PortId, Transmit, TransmitId};
use lastmile::time::Time;
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::clock::now as monotonic;
use crate::sched::{self, RealTime};
use crate::udp::{BATCH, Outgoing, SendError, UdpSocket};

/// Real-time priority of measuring threads: enough to precede all ordinary work.
pub(super) const PRIORITY: i32 = 10;

/// What became of a packet in user space.
#[derive(Clone, Copy, Debug)]
pub(super) enum Departed {
    Left { id: u64, at: u64 },
    Failed { port: PortId, id: u64, reason: Failure },
}

/// Sends packets that leave together; says what became of those that the node waits for.
pub(super) fn transmit(sockets: &[UdpSocket], packets: &[Transmit]) -> Vec<Departed> {
    let mut departed = Vec::new();
    let mut rest = packets;
    while let Some(first) = rest.first() {
        let same_port = rest.iter().take(BATCH).take_while(|t| t.port == first.port).count();
        let (now, later) = rest.split_at(same_port);
        rest = later;
        let Some(socket) = sockets.get(usize::from(first.port.0)) else {
            departed.extend(now.iter().filter_map(impossible));
            continue;
        };
        departed.extend(now.iter().filter(|t| t.datagram.payload.udp().is_none()).filter_map(impossible));
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
                    departed.push(Departed::Failed { port: first.port, id: refused.id, reason });
                }
                done += 1;
            }
        }
    }
    departed
}

/// The answer to a packet that this driver cannot send: no such port, or not made of bytes.
fn impossible(transmit: &Transmit) -> Option<Departed> {
    let (port, id) = (transmit.port, transmit.id.0);
    (transmit.id != TransmitId::UNTRACKED).then_some(Departed::Failed { port, id, reason: Failure::Host })
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

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread that meets departure times.
pub(super) struct Sender {
    queue: Arc<(Mutex<Queue>, Condvar)>,
    pub(super) results: Arc<Mutex<Vec<Departed>>>,
    /// Readable when there are results.
    pub(super) ready: Arc<EventFd>,
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
    pub(super) fn start(sockets: Arc<Vec<UdpSocket>>, started: u64, realtime: bool) -> io::Result<Sender> {
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

    pub(super) fn push(&mut self, transmit: Transmit) {
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
        // Asleep on the queue, so that a packet planned for an earlier time is not late. With exact timers this wait
        // is as precise as any sleep.
        if left > spin {
            let sleep = Duration::from_nanos(left - spin);
            guard = changed.wait_timeout(guard, sleep).unwrap_or_else(PoisonError::into_inner).0;
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
