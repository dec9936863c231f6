//! [`Ring`]: the packets that a link has under way.

use crate::network::packets::Parcel;

/// A packet that left the queue, or whose departure is known.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    pub(super) starts: u64,
    pub(super) arrives: u64,
    /// The channel has lost it: it is sent and does not arrive.
    pub(super) lost: bool,
    pub(super) parcel: Parcel,
}

/// A queue in memory that is a power of two long, so that no branch asks whether it goes round.
#[derive(Debug, Default)]
pub(super) struct Ring {
    slots: Vec<UnderWay>,
    head: usize,
    len: usize,
}

impl Ring {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Slot of the packet that is `index` behind the first.
    #[inline]
    fn place(&self, index: usize) -> usize {
        (self.head + index) & self.slots.len().wrapping_sub(1)
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&UnderWay> {
        if index < self.len { self.slots.get(self.place(index)) } else { None }
    }

    #[inline]
    pub(super) fn front(&self) -> Option<&UnderWay> {
        self.get(0)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &UnderWay> {
        (0..self.len).filter_map(|index| self.get(index))
    }

    #[inline]
    pub(super) fn push_back(&mut self, packet: UnderWay) {
        if self.len == self.slots.len() {
            self.grow();
        }
        let place = self.place(self.len);
        self.slots[place] = packet;
        self.len += 1;
    }

    #[cold]
    fn grow(&mut self) {
        self.slots.rotate_left(self.head);
        self.head = 0;
        let length = (2 * self.slots.len()).max(4);
        self.slots.resize_with(length, UnderWay::default);
    }

    #[inline]
    pub(super) fn pop_front(&mut self) -> Option<UnderWay> {
        if self.len == 0 {
            return None;
        }
        let packet = core::mem::take(self.slots.get_mut(self.head)?);
        self.len -= 1;
        // When it is empty, back to the start of its memory, which the cache still holds: the packets to come
        // would else go round all of it.
        self.head = if self.len == 0 { 0 } else { self.place(1) };
        Some(packet)
    }
}
