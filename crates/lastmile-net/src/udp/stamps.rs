//! Assigns transmit stamps to packets, two for each.
//!
//! A packet is stamped when it enters the queue of its interface and when it leaves that for the device. It counts as sent
//! when it entered; both are told together, since only the second shows the wait between them.
//!
//! The kernel returns a 32-bit key with each stamp. Since Linux 6.13 the sender may name the key per packet
//! (SCM_TS_OPT_ID), which is exact whatever happens. Before, the key is the kernel's own count of packets sent on
//! the socket; a failed send advances it or not, depending on kernel version and cause. So after a failure the
//! count is not guessed: stamping is switched off until the stamps under way have come in, and then the count is
//! set to zero. A few packets stay without a stamp, none gets another's.
use super::SocketEvent;
use std::collections::VecDeque;

/// Packets that may wait for their stamps; older ones are given up (their stamps were lost in a full queue).
const PENDING_MAX: usize = 8192;
/// Longest time that stamps may be under way, in nanoseconds: far longer than any driver's transmit queue.
const DRAIN_NS: u64 = 200_000_000;

/// The socket's task before the next send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arm {
    /// Nothing.
    Keep,
    /// Switch stamping on, with the kernel's count at zero.
    Restart,
    /// Send without stamps.
    Without,
}

/// A packet that waits for its stamps.
#[derive(Clone, Copy, Debug)]
struct Pending {
    key: u32,
    id: u64,
    /// When it entered the interface's queue; of several in a row (a tunnel's and the device's below it), the first.
    entered: Option<u64>,
}

/// The occasion of a stamp: the field `ee_info` that comes with it (include/uapi/linux/errqueue.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stamped {
    /// SCM_TSTAMP_SCHED: the packet entered the queue.
    EnteredQueue,
    /// SCM_TSTAMP_SND: it was handed to the device.
    Sent,
}

#[derive(Debug)]
pub(super) struct Tracker {
    /// The sender names the keys; otherwise the kernel counts.
    named: bool,
    next: u32,
    pending: VecDeque<Pending>,
    /// Set after a failed send in counting mode: when to stop waiting for stragglers.
    draining: Option<u64>,
}

impl Tracker {
    pub(super) fn new(named: bool) -> Self {
        Self { named, next: 0, pending: VecDeque::new(), draining: None }
    }

    pub(super) fn named(&self) -> bool {
        self.named
    }

    /// The socket's task before a send at time `now`.
    pub(super) fn before_send(&mut self, now: u64) -> Arm {
        match self.draining {
            None => Arm::Keep,
            Some(until) if now < until && !self.pending.is_empty() => Arm::Without,
            Some(_) => {
                self.draining = None;
                self.pending.clear();
                self.next = 0;
                Arm::Restart
            }
        }
    }

    /// Registers a packet that is about to be sent; returns the key for SCM_TS_OPT_ID.
    pub(super) fn register(&mut self, id: u64) -> u32 {
        let key = self.next;
        self.next = self.next.wrapping_add(1);
        if self.pending.len() == PENDING_MAX {
            self.pending.pop_front();
        }
        self.pending.push_back(Pending { key, id, entered: None });
        key
    }

    /// The last `count` registered packets were not sent. True if stamping must be switched off now.
    pub(super) fn failed(&mut self, count: usize, now: u64) -> bool {
        self.pending.truncate(self.pending.len().saturating_sub(count));
        // Named keys are simply not used again.
        if self.named {
            return false;
        }
        self.draining = Some(now.saturating_add(DRAIN_NS));
        true
    }

    /// Takes in the stamp that carries `key`; says, once, when that packet was sent.
    pub(super) fn stamped(&mut self, key: u32, what: Stamped, at: u64) -> Option<SocketEvent> {
        let first = self.pending.front()?.key;
        // Keys rise along the queue, modulo 2^32.
        let place = self
            .pending
            .binary_search_by_key(&key.wrapping_sub(first), |p| p.key.wrapping_sub(first))
            .ok()?;
        match what {
            Stamped::EnteredQueue => {
                self.pending.get_mut(place)?.entered.get_or_insert(at);
                None
            }
            Stamped::Sent => {
                let Pending { id, entered, .. } = self.pending.remove(place)?;
                let entered = entered.unwrap_or(at);
                Some(SocketEvent::Sent { id, at: entered, queued: at.saturating_sub(entered) })
            }
        }
    }

    /// When the packet `id`, not yet told as sent, entered the queue.
    pub(super) fn entered(&self, id: u64) -> Option<u64> {
        self.pending.iter().find(|p| p.id == id)?.entered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Tracker {
        /// The packet whose last stamp carries `key`.
        fn resolve(&mut self, key: u32) -> Option<u64> {
            self.stamped(key, Stamped::Sent, 0).map(|event| match event {
                SocketEvent::Sent { id, .. } => id,
                SocketEvent::Error(error) => panic!("{error}"),
            })
        }
    }

    #[test]
    fn a_packet_counts_as_sent_when_it_entered_the_queue() {
        let mut t = Tracker::new(true);
        let keys: Vec<u32> = (0..3).map(|id| t.register(100 + id)).collect();
        assert_eq!(t.stamped(keys[0], Stamped::EnteredQueue, 1_000), None);
        assert_eq!(t.stamped(keys[1], Stamped::EnteredQueue, 1_001), None);
        // A tunnel's queue first, then that of the device below.
        assert_eq!(t.stamped(keys[1], Stamped::EnteredQueue, 1_500), None);
        assert_eq!(t.entered(101), Some(1_001));
        let sent = |id, at, queued| Some(SocketEvent::Sent { id, at, queued });
        assert_eq!(t.stamped(keys[0], Stamped::Sent, 1_003), sent(100, 1_000, 3));
        assert_eq!(t.stamped(keys[1], Stamped::Sent, 601_001), sent(101, 1_001, 600_000));
        // The first of its stamps was lost in a full queue of messages.
        assert_eq!(t.stamped(keys[2], Stamped::Sent, 7_000), sent(102, 7_000, 0));
        assert_eq!((t.entered(101), t.stamped(keys[2], Stamped::EnteredQueue, 8_000)), (None, None));
    }

    #[test]
    fn stamps_find_their_packets_in_any_order_and_once() {
        let mut t = Tracker::new(true);
        t.next = u32::MAX - 1;
        let keys: Vec<u32> = (0..4).map(|id| t.register(100 + id)).collect();
        assert_eq!(keys, [u32::MAX - 1, u32::MAX, 0, 1]);
        assert_eq!(t.resolve(0), Some(102));
        assert_eq!(t.resolve(0), None);
        assert_eq!(t.resolve(u32::MAX - 1), Some(100));
        assert_eq!(t.resolve(1), Some(103));
        assert_eq!(t.resolve(77), None);
        assert_eq!(t.resolve(u32::MAX), Some(101));
        assert_eq!(t.resolve(u32::MAX), None);
    }

    #[test]
    fn a_failed_send_leaves_named_keys_right() {
        let mut t = Tracker::new(true);
        for id in 0..3 {
            t.register(id);
        }
        assert!(!t.failed(2, 0));
        assert_eq!(t.before_send(1), Arm::Keep);
        let key = t.register(9);
        assert_eq!((t.resolve(1), t.resolve(2)), (None, None));
        assert_eq!((t.resolve(key), t.resolve(0)), (Some(9), Some(0)));
    }

    #[test]
    fn counting_waits_for_stragglers_before_it_restarts() {
        let mut t = Tracker::new(false);
        for id in 10..13 {
            t.register(id);
        }
        assert!(t.failed(1, 1_000));
        assert_eq!(t.before_send(2_000), Arm::Without);
        assert_eq!(t.resolve(1), Some(11));
        assert_eq!(t.before_send(3_000), Arm::Without);
        assert_eq!(t.resolve(0), Some(10));
        assert_eq!(t.before_send(4_000), Arm::Restart);
        assert_eq!(t.register(20), 0);
        assert_eq!(t.before_send(4_001), Arm::Keep);
        assert!(t.failed(0, 5_000));
        assert_eq!(t.before_send(5_000 + DRAIN_NS - 1), Arm::Without);
        assert_eq!(t.before_send(5_000 + DRAIN_NS), Arm::Restart);
        assert_eq!(t.resolve(0), None, "the straggler of the old count is given up");
    }

    #[test]
    fn memory_is_bounded() {
        let mut t = Tracker::new(true);
        for id in 0..3 * PENDING_MAX as u64 {
            t.register(id);
        }
        assert_eq!(t.pending.len(), PENDING_MAX);
        assert_eq!(t.resolve(0), None);
        assert_eq!(t.resolve(3 * PENDING_MAX as u32 - 1), Some(3 * PENDING_MAX as u64 - 1));
    }
}
