//! Departures computed when packets enter: for drop-tail queues and rates known beforehand.

use lastmile::units::Bytes;

use super::{Common, UnderWay, Waits};
use crate::network::lost::LossCause;
use crate::network::packets::{Packets, Parcel};

/// Packets in the ring that still wait.
#[derive(Debug, Default)]
pub(super) struct Computed {
    /// Index in the ring of the first packet whose transmission had not begun at the last look.
    first_waiting: u32,
    waiting_packets: u32,
    waiting_bytes: u64,
}

impl Computed {
    #[inline]
    fn begin_waiting_packets(&mut self, common: &Common, now: u64) {
        while let Some(next) = common.ring.get(self.first_waiting as usize)
            && next.starts <= now
        {
            self.waiting_packets -= 1;
            self.waiting_bytes -= u64::from(common.wire(&next.parcel));
            self.first_waiting += 1;
        }
    }

    #[inline]
    pub(super) fn enqueue(&mut self, common: &mut Common, packets: &mut Packets, now: u64, parcel: Parcel) {
        let wire = common.wire(&parcel);
        self.begin_waiting_packets(common, now);
        let starts = common.transmitter.ready(now);
        let waits = starts > now;
        if waits && common.limit.is_full(self.waiting_packets, self.waiting_bytes, wire) {
            common.drop(packets, now, LossCause::Queue, parcel);
            return;
        }
        let departs = common.transmitter.send(starts, wire);
        common.counters.packets += 1;
        common.counters.bytes += Bytes(u64::from(wire - common.overhead));
        if waits {
            self.waiting_packets += 1;
            self.waiting_bytes += u64::from(wire);
            common.counters.waited += u128::from(wire) * u128::from(starts - now);
            common.queued(self.waiting_packets, self.waiting_bytes);
        } else {
            self.first_waiting += 1;
        }
        let lost = common.loses(starts, departs, parcel.flow);
        let arrives = common.transmitter.arrival(departs);
        common.ring.push_back(UnderWay { starts, arrives, lost, parcel });
    }

    /// Packets that wait at `now`. Waits are counted when packets enter, so the part still to come is subtracted.
    pub(super) fn waits(&self, common: &Common, now: u64) -> Waits {
        let mut waits = Waits { total: common.counters.waited, ..Waits::default() };
        let waiting = common.ring.iter().skip(self.first_waiting as usize);
        for packet in waiting.filter(|packet| packet.starts > now) {
            let wire = common.wire(&packet.parcel);
            waits.add(wire, now, now);
            waits.total -= u128::from(wire) * u128::from(packet.starts - now);
        }
        waits
    }

    /// The head of the ring is about to leave.
    #[inline]
    pub(super) fn forget_first(&mut self, common: &Common, now: u64) {
        if self.first_waiting == 0 {
            self.begin_waiting_packets(common, now);
        }
        self.first_waiting -= 1;
    }
}
