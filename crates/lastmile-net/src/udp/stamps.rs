//! Which packet a transmit stamp belongs to.
//!
//! The kernel returns a 32-bit key with each stamp. Since Linux 6.13 the sender may name the key per packet
//! (SCM_TS_OPT_ID), which is exact whatever happens. Before, the key is the kernel's own count of packets sent on
//! the socket, and whether a failed send advances it depends on kernel version and cause. So after a failure the
//! count is not guessed: stamping is switched off until the stamps under way have come in, and then the count is
//! set to zero. A few packets stay without a stamp, none gets another's.
use std::collections::VecDeque;

/// Packets that may wait for their stamps; older ones are given up (their stamps were lost in a full queue).
const PENDING_MAX: usize = 8192;
/// How long stamps may be under way, in nanoseconds: far longer than any driver's transmit queue.
const DRAIN_NS: u64 = 200_000_000;

/// What the socket must do before the next send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arm {
    /// Nothing.
    Keep,
    /// Switch stamping on, with the kernel's count at zero.
    Restart,
    /// Send without stamps.
    Without,
}

#[derive(Debug)]
pub(super) struct Tracker {
    /// The sender names the keys; otherwise the kernel counts.
    named: bool,
    next: u32,
    pending: VecDeque<(u32, u64)>,
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

    /// Asks what to do before a send at time `now`.
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

    /// Registers a packet that is about to be sent; the key is what SCM_TS_OPT_ID must say.
    pub(super) fn register(&mut self, id: u64) -> u32 {
        let key = self.next;
        self.next = self.next.wrapping_add(1);
        if self.pending.len() == PENDING_MAX {
            self.pending.pop_front();
        }
        self.pending.push_back((key, id));
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

    /// The packet whose stamp carries `key`, once.
    pub(super) fn resolve(&mut self, key: u32) -> Option<u64> {
        let first = self.pending.front()?.0;
        // Keys rise along the queue, modulo 2^32.
        let at = self
            .pending
            .binary_search_by_key(&key.wrapping_sub(first), |(k, _)| k.wrapping_sub(first))
            .ok()?;
        self.pending.remove(at).map(|(_, id)| id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
