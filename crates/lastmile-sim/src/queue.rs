//! [`EventQueue`]: the times at which nodes want to be woken, earliest first, equal times in the order in which
//! they were asked for.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use lastmile::time::Time;

/// A wake: time, sequence number and node packed so that one comparison orders them.
///
/// 64 bits of nanoseconds, 44 of sequence (a run of 10^13 wakes) and 20 of node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(u128);

/// The number of nodes that a [`Key`] can tell apart.
pub(crate) const MAX_NODES: usize = 1 << 20;

impl Key {
    /// No wake.
    pub(crate) const NONE: Key = Key(u128::MAX);

    pub(crate) fn new(at: Time, seq: u64, node: usize) -> Key {
        Key(u128::from(at.as_nanos()) << 64 | u128::from(seq << 20 | node as u64))
    }
    #[inline]
    pub(crate) fn at(self) -> Time {
        Time::from_nanos((self.0 >> 64) as u64)
    }
    #[inline]
    pub(crate) fn node(self) -> usize {
        self.0 as usize & (MAX_NODES - 1)
    }
}

/// A heap whose popped top is left as a hole until the next push fills it: a link that delivers a packet asks at
/// once for its next wake, and one sift down is then all that both cost.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    heap: BinaryHeap<Reverse<Key>>,
    hole: bool,
}

impl EventQueue {
    #[inline]
    pub(crate) fn push(&mut self, key: Key) {
        if self.hole {
            self.hole = false;
            if let Some(mut top) = self.heap.peek_mut() {
                *top = Reverse(key);
                return;
            }
        }
        self.heap.push(Reverse(key));
    }

    #[inline]
    pub(crate) fn peek(&mut self) -> Option<Key> {
        if self.hole {
            self.hole = false;
            self.heap.pop();
        }
        self.heap.peek().map(|top| top.0)
    }

    /// Takes away what [`peek`](EventQueue::peek) gave.
    #[inline]
    pub(crate) fn pop(&mut self) {
        if self.hole {
            self.heap.peek_mut().map(PeekMut::pop);
        }
        self.hole = !self.heap.is_empty();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn comes_out_sorted_however_pushes_and_pops_mix(ops in prop::collection::vec((any::<bool>(), 0_u64..50), 1..200)) {
            let (mut queue, mut model, mut seq) = (EventQueue::default(), Vec::new(), 0);
            for (push, at) in ops {
                if push {
                    seq += 1;
                    let key = Key::new(Time::from_nanos(at), seq, 3);
                    queue.push(key);
                    model.push(key);
                    model.sort();
                } else {
                    let want = (!model.is_empty()).then(|| model.remove(0));
                    prop_assert_eq!(queue.peek(), want);
                    if want.is_some() {
                        queue.pop();
                    }
                }
            }
        }
    }

    #[test]
    fn keys_order_by_time_then_sequence() {
        let key = |at, seq, node| Key::new(Time::from_nanos(at), seq, node);
        assert!(key(1, 9, 9) < key(2, 1, 1));
        assert!(key(2, 1, 9) < key(2, 2, 1));
        assert_eq!((key(7, 5, 12).at().as_nanos(), key(7, 5, 12).node()), (7, 12));
        assert!(key(u64::MAX, 1, 1) < Key::NONE);
    }
}
