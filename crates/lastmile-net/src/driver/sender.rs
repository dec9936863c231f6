//! The order in which packets leave, the thread that meets their times, and their fates in user space.
//!
//! All packets stand in one queue. Two threads send: one meets departure times, and the driver's own sends packets that are
//! due at once. Each takes from the front and keeps the other out until it has sent: no packet overtakes another one,
//! however long either thread is held up.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use lastmile::node::{Failure, PortId, Transmit, TransmitId};
use lastmile::time::Time;
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::clock::now as monotonic;
use crate::sched::{self, Pace};
use crate::udp::{BATCH, Outgoing, SendError, UdpSocket};

/// The fate of a packet in user space.
#[derive(Clone, Copy, Debug)]
pub(super) enum Departed {
    Left { id: u64, at: u64 },
    Failed { port: PortId, id: u64, reason: Failure },
}

/// Sends packets that leave together; returns the fates of those that the node waits for.
fn transmit(sockets: &[UdpSocket], packets: &[Transmit]) -> Vec<Departed> {
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Packets that wait to leave, and the fates of those that left.
struct Outbox {
    sockets: Arc<Vec<UdpSocket>>,
    started: u64,
    queue: Mutex<Queue>,
    changed: Condvar,
    results: Mutex<Vec<Departed>>,
    /// Readable when there are results.
    ready: Arc<EventFd>,
}

#[derive(Default)]
struct Queue {
    /// Earliest first; equal times in the order of pushing.
    planned: BTreeMap<(Time, u64), Transmit>,
    pushed: u64,
    /// Packets that leave together: empty but while they are sent.
    together: Vec<Transmit>,
    /// Until when the thread that meets departure times sleeps, unless it is woken.
    sleeps_until: Option<Time>,
    stop: bool,
}

impl Outbox {
    fn new(sockets: Arc<Vec<UdpSocket>>, started: u64) -> io::Result<Outbox> {
        let ready = EventFd::from_value_and_flags(0, EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?;
        Ok(Outbox {
            sockets,
            started,
            queue: Mutex::default(),
            changed: Condvar::new(),
            results: Mutex::default(),
            ready: Arc::new(ready),
        })
    }

    /// Sends all that is due by then, or by now where that is later, in order and with as few system calls as possible. Overdue
    /// packets leave too: the endpoint sees from the stamps that its schedule was missed.
    fn send_due(&self, queue: &mut Queue, by: Time) {
        let due = by.max(Time::from_nanos(monotonic().saturating_sub(self.started)));
        while let Some(entry) = queue.planned.first_entry().filter(|entry| entry.key().0 <= due) {
            queue.together.push(entry.remove());
        }
        let departed = transmit(&self.sockets, &queue.together);
        queue.together.clear();
        if !departed.is_empty() {
            lock(&self.results).extend(departed);
            let _ = self.ready.write(1);
        }
    }

    /// Meets departure times until it is told to stop. With `spin` nanoseconds to go it spins rather than sleeps.
    fn meet_times(&self, spin: u64) {
        let mut queue = lock(&self.queue);
        while !queue.stop {
            let Some((&(at, _), _)) = queue.planned.first_key_value() else {
                queue.sleeps_until = Some(Time::MAX);
                queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let deadline = self.started.saturating_add(at.as_nanos());
            let left = deadline.saturating_sub(monotonic());
            // Asleep on the queue, so that a packet planned for an earlier time is not late. With exact timers this wait
            // is as precise as any sleep.
            if left > spin {
                let sleep = Duration::from_nanos(left - spin);
                queue.sleeps_until = Some(at);
                queue = self.changed.wait_timeout(queue, sleep).unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            queue.sleeps_until = None;
            drop(queue);
            sched::sleep_until(deadline, spin);
            queue = lock(&self.queue);
            self.send_due(&mut queue, at);
        }
    }
}

/// The sender of a driver's packets, with the thread that meets departure times.
pub(super) struct Sender {
    outbox: Arc<Outbox>,
    thread: Option<JoinHandle<()>>,
}

impl Sender {
    pub(super) fn start(sockets: Arc<Vec<UdpSocket>>, started: u64, realtime: bool) -> io::Result<Sender> {
        let outbox = Arc::new(Outbox::new(sockets, started)?);
        let (granted, asked) = std::sync::mpsc::channel();
        let thread = {
            let outbox = Arc::clone(&outbox);
            std::thread::Builder::new().name("lastmile-send".into()).spawn(move || {
                let (pace, error) = match Pace::new(realtime) {
                    Ok(pace) => (Some(pace), None),
                    Err(error) => (None, Some(error)),
                };
                let _ = granted.send(error);
                if let Some(pace) = pace {
                    outbox.meet_times(pace.spin_ns());
                }
            })?
        };
        match asked.recv() {
            Ok(None) => {}
            Ok(Some(error)) => return Err(error),
            Err(_) => return Err(io::Error::other("the sending thread ended at once")),
        }
        Ok(Sender { outbox, thread: Some(thread) })
    }

    /// Plans a packet. One that is due already leaves with [`flush`](Sender::flush) at the latest.
    pub(super) fn push(&self, transmit: Transmit, due: bool) {
        let mut queue = lock(&self.outbox.queue);
        let (at, place) = (transmit.at, (transmit.at, queue.pushed));
        queue.planned.insert(place, transmit);
        queue.pushed += 1;
        if !due && queue.sleeps_until.is_some_and(|until| at < until) {
            queue.sleeps_until = Some(at);
            drop(queue);
            self.outbox.changed.notify_one();
        }
    }

    /// Sends due packets from this thread.
    pub(super) fn flush(&self) {
        self.outbox.send_due(&mut lock(&self.outbox.queue), Time::ZERO);
    }

    /// A descriptor that is readable when there are results.
    pub(super) fn ready(&self) -> &Arc<EventFd> {
        &self.outbox.ready
    }

    /// The fates of packets since the last call.
    pub(super) fn results(&self) -> Vec<Departed> {
        std::mem::take(&mut *lock(&self.outbox.results))
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        lock(&self.outbox.queue).stop = true;
        self.outbox.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use lastmile::node::Datagram;
    use lastmile::time::Span;

    use super::*;
    use crate::udp::UdpConfig;

    /// Hands packets over, each due or not, and flushes; those that arrive within half a second.
    fn arrive(sender: &Sender, packets: &[(u8, Time, bool)]) -> Vec<u8> {
        let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        receiver.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        let to = receiver.local_addr().unwrap();
        for (number, at, due) in packets {
            let datagram = Datagram::udp(SocketAddr::from(([0; 4], 0)), to, vec![*number]);
            let transmit = Transmit { id: TransmitId::UNTRACKED, at: *at, port: PortId(0), datagram };
            sender.push(transmit, *due);
        }
        sender.flush();
        let mut number = [0];
        let next = || receiver.recv(&mut number).ok().map(|_| number[0]);
        std::iter::from_fn(next).take(packets.len()).collect()
    }

    fn sockets() -> Arc<Vec<UdpSocket>> {
        let local = SocketAddr::from(([127, 0, 0, 1], 0));
        Arc::new(vec![UdpSocket::open(&UdpConfig::new(local)).unwrap()])
    }

    /// The thread that should have sent the first three gets no time.
    #[test]
    fn what_is_overdue_leaves_before_what_is_due() {
        let started = monotonic() - 1_000_000_000;
        let sender = Sender { outbox: Arc::new(Outbox::new(sockets(), started).unwrap()), thread: None };
        let at = |ms: i64| Time::ZERO + Span::from_millis(ms);
        let packets = [(1, at(700), false), (2, at(800), false), (3, at(800), false), (4, at(1_000), true)];
        assert_eq!(arrive(&sender, &packets), [1, 2, 3, 4]);
    }

    #[test]
    fn a_packet_that_is_planned_behind_one_that_is_due_meets_its_time() {
        let started = monotonic();
        let sender = Sender::start(sockets(), started, false).unwrap();
        // So that the thread is asleep.
        std::thread::sleep(Duration::from_millis(20));
        let now = Time::from_nanos(monotonic() - started);
        let packets = [(1, now, true), (2, now + Span::from_millis(100), false)];
        assert_eq!(arrive(&sender, &packets), [1, 2]);
    }
}
