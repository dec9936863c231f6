//! State that links of both kinds of events share.

use lastmile::node::Flow;
use lastmile::time::Time;
use lastmile::units::Bytes;

use super::late::Late;
use super::ring::Ring;
use super::{LinkCounters, MAX_WIRE_BYTES, QueueLimit, Transmitter};
use crate::network::loss::Channel;
use crate::network::lost::{LossCause, Losses, Lost};
use crate::network::meter::{Meter, Profile};
use crate::network::packets::{Packets, Parcel};
use crate::network::queue::Bucket;

/// State of both kinds of links. Fields that every packet needs stand first: a link is otherwise spread over twice as
/// many cache lines, and with many links a hop waits for those.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Common {
    /// Packets in the order of their arrivals; where departures are computed, the waiting ones as well.
    pub(super) ring: Ring,
    pub(super) limit: QueueLimit,
    pub(super) overhead: u32,
    /// There is an MTU, a channel, a policer or a meter to ask, or the link's host has left.
    pub(super) watched: bool,
    /// Its host has left for another link: packets that come are dropped.
    pub(super) left: bool,
    /// There is jitter: packets that leave the ring have not arrived yet.
    pub(super) jittered: bool,
    pub(super) transmitter: Transmitter,
    pub(super) counters: LinkCounters,
    pub(super) channel: Option<Box<Channel>>,
    pub(super) losses: Losses,
    /// The largest IP packet that it takes.
    pub(super) mtu: u32,
    pub(super) policer: Option<Box<Bucket>>,
    pub(super) late: Option<Box<Late>>,
    pub(super) meters: Vec<Meter>,
    /// Capacity over time, for meters.
    pub(super) profile: Profile,
}

impl Common {
    #[cold]
    pub(super) fn drop(&mut self, packets: &mut Packets, at: u64, cause: LossCause, parcel: Parcel) {
        let datagram = packets.get(&parcel);
        match cause {
            LossCause::Queue | LossCause::Early => {
                self.counters.drops += 1;
                self.counters.early_drops += u64::from(cause == LossCause::Early);
            }
            LossCause::Handoff => self.counters.handed_off += 1,
            LossCause::Policer => self.counters.policed += 1,
            LossCause::TooBig => self.counters.too_big += 1,
            _ => self.counters.lost += 1,
        }
        self.losses.add(&Lost { at: Time::from_nanos(at), cause, datagram });
        packets.remove(parcel);
    }

    /// A packet's bytes on the wire.
    #[inline]
    pub(super) fn wire(&self, parcel: &Parcel) -> u32 {
        (parcel.size + self.overhead).min(MAX_WIRE_BYTES as u32)
    }

    #[inline]
    pub(super) fn queued(&mut self, packets: u32, bytes: u64) {
        self.counters.max_queue_packets = self.counters.max_queue_packets.max(packets);
        self.counters.max_queue_bytes = self.counters.max_queue_bytes.max(Bytes(bytes));
    }

    /// Why a packet does not even enter the queue; if nothing says so, meters see it.
    #[cold]
    pub(super) fn loses_before(&mut self, packets: &Packets, now: u64, parcel: &Parcel) -> Option<LossCause> {
        if self.left {
            return Some(LossCause::Handoff);
        }
        if parcel.size > self.mtu {
            return Some(LossCause::TooBig);
        }
        if self.channel.as_mut().is_some_and(|channel| channel.loses_before(now, parcel.flow)) {
            return Some(LossCause::Channel);
        }
        let wire = self.wire(parcel);
        self.meters.iter_mut().for_each(|meter| meter.arrival(now, packets.get(parcel), wire));
        let passes = self.policer.as_mut().is_none_or(|policer| policer.admits(now, wire));
        (!passes).then_some(LossCause::Policer)
    }

    /// True if anything but its queue asks for packets that come.
    pub(super) fn is_watched(&self) -> bool {
        let before = self.left || self.mtu != u32::MAX || self.policer.is_some();
        before || self.channel.is_some() || !self.meters.is_empty()
    }

    /// True if the channel loses a packet that is in the air between these times.
    #[inline]
    pub(super) fn loses(&mut self, starts: u64, departs: u64, flow: Flow) -> bool {
        self.watched
            && self.channel.as_mut().is_some_and(|channel| channel.loses_after(starts, departs, flow))
    }
}
