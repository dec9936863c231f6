//! An event per dequeue: for everything whose departures cannot be known when packets enter.

use lastmile::node::{Datagram, Ecn};
use lastmile::units::Bytes;

use super::{Common, LinkConfig, NEVER, UnderWay, Waits};
use crate::network::lost::LossCause;
use crate::network::packets::{Packets, Parcel};
use crate::network::queue::{Ahead, AnyQueue, Bucket, Fate, Waiting};

#[derive(Debug)]
pub(super) struct Dequeue {
    queue: AnyQueue,
    /// Since when something waits in it.
    waits_since: u64,
    shaper: Option<Bucket>,
    /// Taken from the queue and waiting for tokens; it still counts as queued.
    held: Option<Waiting>,
    /// The packet in transmission, and when that ends.
    sending: Option<(u64, UnderWay)>,
}

impl Dequeue {
    pub(super) fn new(config: &LinkConfig, seed: u64, name: &str) -> Dequeue {
        Dequeue {
            queue: config.discipline.queue(config.rate, seed, name),
            waits_since: 0,
            shaper: config.shaper.as_ref().map(Bucket::new),
            held: None,
            sending: None,
        }
    }

    pub(super) fn under_way(&self) -> usize {
        self.queue.len() + usize::from(self.held.is_some()) + usize::from(self.sending.is_some())
    }

    pub(super) fn memory(&self) -> u64 {
        self.queue.memory()
    }

    #[inline(never)]
    pub(super) fn enqueue(&mut self, common: &mut Common, packets: &mut Packets, now: u64, parcel: Parcel) {
        let (wire, ecn) = (common.wire(&parcel), packets.get(&parcel).ecn);
        // Events due at this moment happen first, so that the order of equal times cannot matter.
        self.advance(common, packets, now);
        if self.shaper.as_ref().is_some_and(|bucket| !bucket.can_ever_pass(wire)) {
            return common.drop(packets, now, LossCause::Queue, parcel);
        }
        let (count, bytes) = (self.waiting_packets(), self.waiting_bytes());
        // A packet that finds a free transmitter, and tokens, does not wait.
        let waits = count > 0
            || common.transmitter.ready(now) > now
            || self.shaper.as_ref().is_some_and(|bucket| bucket.ready(now, wire) > now);
        if self.queue.len() == 0 {
            self.waits_since = now;
        }
        let ahead = Ahead { packets: count, bytes, full: waits && common.limit.is_full(count, bytes, wire) };
        let size = Bytes(u64::from(wire - common.overhead));
        let packet = Waiting { since: now, wire, ecn, parcel };
        if self.queue.enqueue(now, ahead, packet, &mut Link { common, packets, at: now }) {
            common.counters.packets += 1;
            common.counters.bytes += size;
            if waits {
                common.queued(self.waiting_packets(), self.waiting_bytes());
            }
        }
    }

    /// Packets accepted that have not left the transmitter.
    pub(super) fn packets(&self) -> impl Iterator<Item = &Parcel> {
        let held = self.held.iter().map(|held| &held.parcel);
        let sending = self.sending.iter().map(|(_, packet)| &packet.parcel);
        self.queue.iter().map(|waiting| &waiting.parcel).chain(held).chain(sending)
    }

    /// Packets that wait at `now`.
    pub(super) fn waits(&self, common: &Common, now: u64) -> Waits {
        let mut waits = Waits { total: common.counters.waited, ..Waits::default() };
        let waiting = self.queue.iter().chain(&self.held);
        waiting.for_each(|packet| waits.add(packet.wire, packet.since, now));
        waits
    }

    /// Drops what waits: its host has left.
    pub(super) fn leave(&mut self, common: &mut Common, packets: &mut Packets, now: u64) {
        self.advance(common, packets, now);
        let mut leaving = Leaving(Link { common, packets, at: now });
        while let Some(packet) = self.held.take().or_else(|| self.queue.dequeue(now, &mut leaving)) {
            leaving.drop(packet, LossCause::Handoff);
        }
        if self.sending.is_none() {
            self.queue.idle(now);
        }
    }

    fn waiting_packets(&self) -> u32 {
        self.queue.len() as u32 + u32::from(self.held.is_some())
    }

    fn waiting_bytes(&self) -> u64 {
        self.queue.bytes() + self.held.as_ref().map_or(0, |held| u64::from(held.wire))
    }

    /// Lets everything happen up to `now` and says when something will next.
    #[inline(never)]
    pub(super) fn advance(&mut self, common: &mut Common, packets: &mut Packets, now: u64) -> u64 {
        loop {
            if let Some(&(departs, _)) = self.sending.as_ref() {
                if departs > now {
                    return departs;
                }
                if let Some((_, mut packet)) = self.sending.take() {
                    packet.lost = common.loses(packet.starts, departs, packet.parcel.flow);
                    packet.arrives = common.transmitter.arrival(departs);
                    common.ring.push_back(packet);
                }
                if self.held.is_none() && self.queue.len() == 0 {
                    self.queue.idle(departs);
                }
            }
            let Some(packet) = self.next_packet(common, packets, now) else {
                return self.next_start(common, now);
            };
            let starts = match self.start_of(common, packet.since, packet.wire, now) {
                Ok(starts) => starts,
                Err(later) => {
                    self.held = Some(packet);
                    return later;
                }
            };
            if let Some(bucket) = &mut self.shaper {
                bucket.take(starts, packet.wire);
            }
            common.counters.waited += u128::from(packet.wire) * u128::from(starts - packet.since.min(starts));
            let departs = common.transmitter.send(starts, packet.wire);
            let packet = UnderWay { starts, arrives: NEVER, lost: false, parcel: packet.parcel };
            self.sending = Some((departs, packet));
        }
    }

    /// The packet to send next, if the transmitter can fetch one by `now`.
    fn next_packet(&mut self, common: &mut Common, packets: &mut Packets, now: u64) -> Option<Waiting> {
        if let Some(held) = self.held.take() {
            return Some(held);
        }
        if self.queue.len() == 0 {
            return None;
        }
        let at = common.transmitter.ready(self.waits_since);
        if at > now {
            return None;
        }
        self.queue.dequeue(at, &mut Link { common, packets, at })
    }

    /// When a fetched packet's transmission begins; `Err` with the time where that is after `now`.
    fn start_of(&self, common: &mut Common, since: u64, wire: u32, now: u64) -> Result<u64, u64> {
        let mut starts = common.transmitter.ready(since);
        if let Some(bucket) = &self.shaper {
            starts = common.transmitter.ready(bucket.ready(starts, wire));
        }
        if starts > now { Err(starts) } else { Ok(starts) }
    }

    /// When the transmitter will fetch the head of the queue.
    fn next_start(&mut self, common: &mut Common, now: u64) -> u64 {
        if self.queue.len() == 0 { NEVER } else { common.transmitter.ready(self.waits_since).max(now) }
    }
}

/// The link at the moment at which its queue decides.
struct Link<'a> {
    common: &'a mut Common,
    packets: &'a mut Packets,
    at: u64,
}

impl Fate for Link<'_> {
    fn drop(&mut self, packet: Waiting, cause: LossCause) {
        let waited = u128::from(self.at.saturating_sub(packet.since));
        self.common.counters.waited += u128::from(packet.wire) * waited;
        self.common.drop(self.packets, self.at, cause, packet.parcel);
    }

    fn mark(&mut self, packet: &mut Waiting) {
        if packet.ecn.is_capable() {
            // A packet marked upstream is not marked by this queue.
            self.common.counters.marked += u64::from(packet.ecn != Ecn::Ce);
            self.packets.mark(&packet.parcel);
            packet.ecn = Ecn::Ce;
        }
    }

    fn datagram(&self, packet: &Waiting) -> &Datagram {
        self.packets.get(&packet.parcel)
    }
}

/// The link that its host leaves: whatever its queue does to packets, they are dropped for that.
struct Leaving<'a>(Link<'a>);

impl Fate for Leaving<'_> {
    fn drop(&mut self, packet: Waiting, _: LossCause) {
        self.0.drop(packet, LossCause::Handoff);
    }

    fn mark(&mut self, _: &mut Waiting) {}

    fn datagram(&self, packet: &Waiting) -> &Datagram {
        self.0.datagram(packet)
    }
}
