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

/// The queue: events due within a short window in a heap, later ones in a [`Wheel`].
///
/// Most wakes are of links, a packet's time ahead, and few of those are waited for at a time. Timers and sources that
/// send now and then are as many as there are flows: in the heap they would make each wake of a link dearer, the more
/// flows there are.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    near: Near,
    wheel: Wheel,
}

impl EventQueue {
    #[inline]
    pub(crate) fn push(&mut self, key: Key) {
        if key.at().as_nanos() >> WINDOW_BITS <= self.wheel.window {
            self.near.push(key);
        } else {
            self.wheel.push(key);
        }
    }

    #[inline]
    pub(crate) fn peek(&mut self) -> Option<Key> {
        loop {
            if let Some(key) = self.near.peek() {
                return Some(key);
            }
            self.wheel.advance(&mut self.near)?;
        }
    }

    /// Takes away what [`peek`](EventQueue::peek) gave.
    #[inline]
    pub(crate) fn pop(&mut self) {
        self.near.pop();
    }
}

/// A heap whose popped top is left as a hole until the next push fills it: a link that delivers a packet asks at
/// once for its next wake, and one sift down is then all that both cost.
#[derive(Debug, Default)]
struct Near {
    heap: BinaryHeap<Reverse<Key>>,
    hole: bool,
}

impl Near {
    #[inline]
    fn push(&mut self, key: Key) {
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
    fn peek(&mut self) -> Option<Key> {
        if self.hole {
            self.hole = false;
            self.heap.pop();
        }
        self.heap.peek().map(|top| top.0)
    }

    #[inline]
    fn pop(&mut self) {
        if self.hole {
            self.heap.peek_mut().map(PeekMut::pop);
        }
        self.hole = !self.heap.is_empty();
    }
}

/// A window is 2^22 ns, 4.2 ms: longer than most links hold a packet, shorter than what timers wait for.
const WINDOW_BITS: u32 = 22;
/// Each level has 64 times the span of the one below.
const LEVEL_BITS: u32 = 6;
const SLOTS: usize = 1 << LEVEL_BITS;
/// As many as 64 bits of nanoseconds need.
const LEVELS: usize = (u64::BITS - WINDOW_BITS).div_ceil(LEVEL_BITS) as usize;
const END: u32 = u32::MAX;

/// A hierarchical timing wheel (Varghese and Lauck, SOSP 1987, scheme 7): a key is kept, in no order, in the slot of the
/// highest digit (in base 64) in which its window differs from the present one, and falls to a lower level when that
/// slot's time has come.
#[derive(Debug)]
struct Wheel {
    /// The present window's number.
    window: u64,
    /// The first key of each slot in `keys`, and which slots have one.
    first: [[u32; SLOTS]; LEVELS],
    filled: [u64; LEVELS],
    /// Keys, and the next of the same slot, or of those that are free.
    keys: Vec<(Key, u32)>,
    free: u32,
}

impl Default for Wheel {
    fn default() -> Wheel {
        Wheel { window: 0, first: [[END; SLOTS]; LEVELS], filled: [0; LEVELS], keys: Vec::new(), free: END }
    }
}

impl Wheel {
    /// Of a window after the present one: the level and the slot.
    #[inline]
    fn place(&self, window: u64) -> (usize, usize) {
        let highest = u64::BITS - 1 - (window ^ self.window).leading_zeros();
        let level = highest / LEVEL_BITS;
        (level as usize, (window >> (level * LEVEL_BITS)) as usize % SLOTS)
    }

    fn push(&mut self, key: Key) {
        let (level, slot) = self.place(key.at().as_nanos() >> WINDOW_BITS);
        let next = self.first[level][slot];
        let number = match self.keys.get_mut(self.free as usize) {
            Some(place) => {
                let number = core::mem::replace(&mut self.free, place.1);
                *place = (key, next);
                number
            }
            None => {
                self.keys.push((key, next));
                (self.keys.len() - 1) as u32
            }
        };
        self.first[level][slot] = number;
        self.filled[level] |= 1 << slot;
    }

    /// Goes on to the next window that has keys, or to the first of a higher level's slot, and moves its keys to where
    /// they then belong. `None` where there are none.
    #[cold]
    fn advance(&mut self, near: &mut Near) -> Option<()> {
        let level = self.filled.iter().position(|&filled| filled != 0)?;
        let slot = self.filled[level].trailing_zeros() as usize;
        self.filled[level] &= !(1 << slot);
        let low = level as u32 * LEVEL_BITS;
        let above = self.window.checked_shr(low + LEVEL_BITS).unwrap_or(0);
        self.window = (above << LEVEL_BITS | slot as u64) << low;
        let mut number = core::mem::replace(&mut self.first[level][slot], END);
        while let Some(place) = self.keys.get_mut(number as usize) {
            let (key, next) = *place;
            place.1 = core::mem::replace(&mut self.free, number);
            number = next;
            if key.at().as_nanos() >> WINDOW_BITS == self.window {
                near.push(key);
            } else {
                self.push(key);
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Times at the edges of windows and of slots of each level, from now to the end of time.
    fn ahead() -> impl Strategy<Value = u64> {
        let edge = (0..=LEVELS as u32, 0_u64..130, 0_u64..5).prop_map(|(level, slots, near)| {
            let slot = u128::from(slots) << (WINDOW_BITS + level * LEVEL_BITS);
            u64::try_from(slot + u128::from(near)).unwrap_or(u64::MAX).saturating_sub(2)
        });
        prop_oneof![0_u64..3, 0_u64..10_000_000, edge, Just(u64::MAX), Just(31 * 86_400 * 1_000_000_000)]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

        /// As an engine uses it: nothing is pushed before what came out last, but often before what was only looked at.
        #[test]
        fn time_goes_on_to_its_end(ops in prop::collection::vec((0_u8..8, ahead()), 1..400)) {
            let (mut queue, mut model) = (EventQueue::default(), std::collections::BTreeSet::<Key>::new());
            let (mut now, mut seq) = (0_u64, 0);
            for (op, ahead) in ops {
                if op < 4 {
                    seq += 1;
                    let key = Key::new(Time::from_nanos(now.saturating_add(ahead)), seq, seq as usize % MAX_NODES);
                    queue.push(key);
                    model.insert(key);
                    continue;
                }
                prop_assert_eq!(queue.peek(), model.first().copied());
                if op < 7 && let Some(key) = model.pop_first() {
                    queue.pop();
                    now = key.at().as_nanos();
                }
            }
            while let Some(key) = model.pop_first() {
                prop_assert_eq!(queue.peek(), Some(key));
                queue.pop();
            }
            prop_assert_eq!(queue.peek(), None);
            // Every popped key left its place.
            let mut free = 0;
            let mut next = queue.wheel.free;
            while let Some(place) = queue.wheel.keys.get(next as usize) {
                (free, next) = (free + 1, place.1);
            }
            prop_assert_eq!(free, queue.wheel.keys.len());
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
