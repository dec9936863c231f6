//! [`Packets`]: the packets that links hold, each in one place from where it enters the network to where it
//! leaves it.
//!
//! A datagram is two cache lines of addresses and words that only its two ends read. A [`Parcel`] goes from link to link
//! instead: the place of the datagram, and the two things that every hop asks of it.

use lastmile::node::{Datagram, Ecn, Flow, Model, Payload};

/// Larger packets count as this large: keeps 64-bit arithmetic of nanoseconds exact.
pub const MAX_WIRE_BYTES: u64 = 1 << 30;

/// Memory of a packet with the places that refer to it, in bytes.
pub(crate) const PACKET_MEMORY: u64 = 160;

/// A packet in [`Packets`]. Not `Copy`: its holder has the packet, and gives it away or back. The default one
/// fills a place where none is.
#[derive(Debug, Default)]
pub(crate) struct Parcel {
    slot: u32,
    /// The IP packet's bytes; larger ones than [`MAX_WIRE_BYTES`] count as this large.
    pub(crate) size: u32,
    pub(crate) flow: Flow,
}

/// A slab: the place that was left last is taken first, since the cache still holds it.
#[derive(Debug, Default)]
pub(crate) struct Packets {
    slots: Vec<Datagram>,
    free: Vec<u32>,
}

impl Packets {
    #[inline]
    pub(crate) fn insert(&mut self, datagram: Datagram) -> Parcel {
        let (size, flow) = (datagram.ip_size().0.min(MAX_WIRE_BYTES) as u32, datagram.flow);
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = datagram;
                slot
            }
            None => {
                self.slots.push(datagram);
                (self.slots.len() - 1) as u32
            }
        };
        Parcel { slot, size, flow }
    }

    #[inline]
    pub(crate) fn get(&self, parcel: &Parcel) -> &Datagram {
        &self.slots[parcel.slot as usize]
    }

    /// Marks it Congestion Experienced.
    pub(crate) fn mark(&mut self, parcel: &Parcel) {
        self.slots[parcel.slot as usize].ecn = Ecn::Ce;
    }

    /// The most packets ever held at a time.
    #[inline]
    pub(crate) fn places(&self) -> usize {
        self.slots.len()
    }

    /// Packets held.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Takes it out.
    #[inline]
    pub(crate) fn take(&mut self, parcel: Parcel) -> Datagram {
        self.free.push(parcel.slot);
        let left = &mut self.slots[parcel.slot as usize];
        let payload = core::mem::replace(&mut left.payload, EMPTY);
        let Datagram { from, to, flow, ecn, dscp, hop_limit, .. } = *left;
        Datagram { from, to, flow, ecn, dscp, hop_limit, payload }
    }

    /// Lets it go.
    #[inline]
    pub(crate) fn remove(&mut self, parcel: Parcel) {
        self.free.push(parcel.slot);
        let payload = &mut self.slots[parcel.slot as usize].payload;
        // Its bytes are given back; a modelled packet has none.
        if !matches!(payload, Payload::Model(_)) {
            *payload = EMPTY;
        }
    }
}

const EMPTY: Payload = Payload::Model(Model { ip_size: 0, words: [0; 4] });

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(flow: u32, bytes: usize) -> Datagram {
        let any = "10.0.0.1:1".parse().unwrap();
        Datagram { flow: Flow(flow), ..Datagram::udp(any, any, vec![flow as u8; bytes]) }
    }

    #[test]
    fn what_goes_in_comes_out_and_places_are_used_again_and_hold_nothing() {
        let mut packets = Packets::default();
        let (a, b) = (packets.insert(datagram(1, 10)), packets.insert(datagram(2, 20)));
        assert_eq!((a.flow, a.size, b.flow, b.size), (Flow(1), 38, Flow(2), 48));
        packets.mark(&b);
        assert_eq!(packets.take(a), datagram(1, 10));
        let c = packets.insert(datagram(3, 30));
        assert_eq!((packets.get(&b).ecn, packets.get(&c)), (Ecn::Ce, &datagram(3, 30)));
        packets.remove(b);
        packets.remove(c);
        assert!(packets.slots.len() == 2 && packets.slots.iter().all(|slot| slot.payload == EMPTY));
        let huge = Payload::Model(Model { ip_size: u32::MAX, words: [0; 4] });
        let huge = packets.insert(Datagram { payload: huge, ..datagram(1, 0) });
        assert_eq!(u64::from(huge.size), MAX_WIRE_BYTES);
    }
}
