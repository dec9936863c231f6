//! [`Link`]: one direction of a wire, with the queue in front of it.
//!
//! A departure that is fully known when the packet enters the queue is computed there: one event per hop. Otherwise the
//! transmitter fetches each packet when it is free ([`Events`]); on the same FIFO both give the same departures. Waiting,
//! counting and the places of loss: `docs/architecture.md`.

use lastmile::node::{Flow, PortId};
use lastmile::time::{Span, Time};

use crate::network::carrier::{Carrier, Cost};
use crate::network::loss::Channel;
use crate::network::lost::{LossCause, Losses};
use crate::network::meter::{Meter, MeterConfig};
pub use crate::network::packets::MAX_WIRE_BYTES;
use crate::network::packets::{PACKET_MEMORY, Packets, Parcel};
use crate::network::queue::Bucket;
pub use crate::network::queue::limit::{DEFAULT_QUEUE_PACKETS, ParseQueueLimitError, QueueLimit};

mod common;
mod computed;
mod config;
mod counters;
mod dequeue;
mod late;
mod opportunities;
mod ring;
#[cfg(test)]
mod tests;
mod transmitter;
mod walk;

use common::Common;
use computed::Computed;
pub use config::{Events, LinkConfig};
pub use counters::{LinkCounters, Waits};
use dequeue::Dequeue;
use late::Late;
use ring::{Ring, UnderWay};
pub use transmitter::Change;
use transmitter::Transmitter;
pub use walk::Walk;

/// No moment of any run.
const NEVER: u64 = u64::MAX;

#[derive(Debug)]
enum Kind {
    Computed(Computed),
    Dequeue(Box<Dequeue>),
}

/// A unidirectional link. An engine drives it.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Link {
    kind: Kind,
    common: Common,
}

/// Next step of a link.
pub(crate) enum Next {
    /// A packet arrives at the far end.
    Packet(Parcel),
    /// Nothing before that time, in nanoseconds.
    Wait(u64),
}

impl Link {
    /// An idle link whose random draws, if it has any, are those of seed 0. A rate of zero would never deliver:
    /// scenarios refuse it, and here it counts as 1 bit/s.
    pub fn new(config: LinkConfig) -> Link {
        Link::seeded(config, 0, "link")
    }

    /// An idle link whose queue and channels draw from streams of their own, called after `name`, so that
    /// nothing else's draws depend on them.
    pub fn seeded(config: LinkConfig, seed: u64, name: &str) -> Link {
        let kind = match config.kind_of_events() {
            Events::PerDequeue => Kind::Dequeue(Box::new(Dequeue::new(&config, seed, name))),
            _ => Kind::Computed(Computed::default()),
        };
        let channel = Channel::new(&config.losses, seed, name).map(Box::new);
        let mtu = config.mtu.and_then(|mtu| u32::try_from(mtu.0).ok()).unwrap_or(u32::MAX);
        let policer = config.policer.as_ref().map(|policer| Box::new(Bucket::new(policer)));
        let mut link = Link {
            common: Common {
                watched: false,
                left: false,
                jittered: config.jitter.is_some(),
                transmitter: Transmitter::new(
                    config.rate,
                    config.delay,
                    &config.schedule,
                    config.trace.as_ref(),
                ),
                overhead: config.overhead.0.min(MAX_WIRE_BYTES) as u32,
                limit: config.discipline.limit().unwrap_or(config.queue),
                ring: Ring::default(),
                counters: LinkCounters::default(),
                channel,
                losses: Losses::default(),
                mtu,
                policer,
                late: config.jitter.as_ref().map(|jitter| Box::new(Late::new(jitter, seed, name))),
                meters: Vec::new(),
                profile: config.profile(),
            },
            kind,
        };
        link.common.watched = link.common.is_watched();
        link
    }

    /// Totals so far.
    pub fn counters(&self) -> &LinkCounters {
        &self.common.counters
    }

    /// Packets of a flow that did not arrive, by their cause.
    pub fn drops_of(&self, flow: Flow) -> impl Iterator<Item = (LossCause, u64)> {
        self.common.losses.of(flow)
    }

    /// Packets that wait, are in transmission or propagate.
    pub fn under_way(&self) -> usize {
        let queued = match &self.kind {
            Kind::Computed(_) => 0,
            Kind::Dequeue(queue) => queue.under_way(),
        };
        let late = self.common.late.as_ref().map_or(0, |late| late.len());
        self.common.ring.len() + late + queued
    }

    /// For how long the transmitter was busy up to `now`.
    pub fn busy(&self, now: Time) -> Span {
        self.common.transmitter.busy(now.as_nanos())
    }

    /// True if each packet keeps it busy for a time: it has a rate.
    pub fn is_timed(&self) -> bool {
        self.common.profile.limits() && self.common.transmitter.is_timed()
    }

    /// Why the trace that drives it cannot be read any more, if it cannot.
    pub fn trace_failure(&self) -> Option<&str> {
        self.common.transmitter.failure()
    }

    /// Packets that wait before its transmitter at `now`, to which the engine has come, and all waiting up to then.
    pub fn waits(&self, now: Time) -> Waits {
        match &self.kind {
            Kind::Computed(queue) => queue.waits(&self.common, now.as_nanos()),
            Kind::Dequeue(queue) => queue.waits(&self.common, now.as_nanos()),
        }
    }

    /// Takes a packet in. True if [`next`](Link::next) may then give another answer than before.
    pub(crate) fn offer(&mut self, packets: &mut Packets, now: u64, parcel: Parcel) -> bool {
        let common = &mut self.common;
        common.counters.arrived += 1;
        if common.watched
            && let Some(cause) = common.loses_before(packets, now, &parcel)
        {
            common.drop(packets, now, cause, parcel);
            return true;
        }
        match &mut self.kind {
            Kind::Computed(queue) => {
                let was_empty = common.ring.is_empty();
                queue.enqueue(common, packets, now, parcel);
                was_empty || common.ring.front().is_some_and(|head| head.arrives <= now)
            }
            Kind::Dequeue(queue) => {
                queue.enqueue(common, packets, now, parcel);
                true
            }
        }
    }

    /// Its next step.
    #[inline]
    pub(crate) fn next(&mut self, packets: &mut Packets, now: u64) -> Next {
        let common = &mut self.common;
        let mut next = NEVER;
        if let Kind::Dequeue(queue) = &mut self.kind {
            next = queue.advance(common, packets, now);
        }
        if common.jittered {
            return self.next_late(packets, now, next);
        }
        loop {
            match common.ring.front() {
                Some(head) if head.arrives <= now => {}
                Some(head) => return Next::Wait(next.min(head.arrives)),
                None => return Next::Wait(next),
            }
            if let Kind::Computed(queue) = &mut self.kind {
                queue.forget_first(common, now);
            }
            let packet = common.ring.pop_front();
            match packet {
                Some(UnderWay { lost: false, parcel, .. }) => {
                    common.counters.delivered += 1;
                    return Next::Packet(parcel);
                }
                Some(UnderWay { parcel, .. }) => common.drop(packets, now, LossCause::Channel, parcel),
                None => return Next::Wait(next),
            }
        }
    }

    /// The next step with jitter, where the queue does nothing before `next`.
    #[cold]
    fn next_late(&mut self, packets: &mut Packets, now: u64, next: u64) -> Next {
        let Link { kind, common } = self;
        let Some(mut late) = common.late.take() else { return Next::Wait(next) };
        while common.ring.front().is_some_and(|head| head.arrives <= now) {
            if let Kind::Computed(queue) = kind {
                queue.forget_first(common, now);
            }
            common.ring.pop_front().into_iter().for_each(|packet| late.hold(packet));
        }
        let found = loop {
            match late.take_due(now) {
                Some(UnderWay { lost: false, parcel, .. }) => {
                    common.counters.delivered += 1;
                    break Next::Packet(parcel);
                }
                Some(UnderWay { parcel, .. }) => common.drop(packets, now, LossCause::Channel, parcel),
                None => {
                    let head = common.ring.front().map(|head| head.arrives);
                    break Next::Wait([head, late.next()].into_iter().flatten().fold(next, u64::min));
                }
            }
        };
        common.late = Some(late);
        found
    }
}

impl Carrier for Link {
    fn is_shared(&self) -> bool {
        false
    }

    /// `None` if the link never has a rate: then it has no spare rate.
    fn attach(&mut self, _: PortId, config: MeterConfig) -> Option<usize> {
        let common = &mut self.common;
        let profile = common.profile.limits().then(|| common.profile.clone())?;
        let policer = common.policer.as_ref().map(|policer| policer.anew());
        common.meters.push(Meter::new(config, profile, common.overhead, policer));
        common.watched = true;
        Some(common.meters.len() - 1)
    }

    fn meter(&self, number: usize) -> Option<&Meter> {
        self.common.meters.get(number)
    }

    /// Waiting packets are dropped only if departures are not computed beforehand.
    fn leave(&mut self, packets: &mut Packets, now: u64, _: PortId, left: bool) {
        let common = &mut self.common;
        common.left = left;
        common.watched = common.is_watched();
        if let Kind::Dequeue(queue) = &mut self.kind
            && left
        {
            queue.leave(common, packets, now);
        }
    }

    fn losses(&self) -> &Losses {
        &self.common.losses
    }

    fn losses_mut(&mut self) -> &mut Losses {
        &mut self.common.losses
    }

    fn cost(&self) -> Cost {
        let events = self.common.channel.as_ref().map_or(0, |channel| channel.looks);
        let queue = match &self.kind {
            Kind::Computed(_) => 0,
            Kind::Dequeue(queue) => queue.memory(),
        };
        Cost { memory: self.under_way() as u64 * PACKET_MEMORY + queue, events }
    }

    fn flows_under_way(&self) -> Box<dyn Iterator<Item = Flow> + '_> {
        let queue = match &self.kind {
            Kind::Computed(_) => None,
            Kind::Dequeue(queue) => Some(queue),
        };
        let queued = queue.into_iter().flat_map(|queue| queue.packets());
        let late = self.common.late.iter().flat_map(|late| late.iter());
        let parcels = self.common.ring.iter().chain(late).map(|packet| &packet.parcel).chain(queued);
        Box::new(parcels.map(|parcel| parcel.flow))
    }
}
