//! [`Link`]: one direction of a wire, with the queue in front of it.
//!
//! **Two kinds of events.** Where everything about a packet's departure is known when it enters the queue
//! (drop-tail, and a rate that is constant or scheduled), the departure is computed there, and only the head of
//! the ring of packets under way is in the engine's event queue: one event per hop. Where it is not (CoDel and
//! other disciplines, shapers, rates changed by hand) the transmitter fetches each packet when it is free: an
//! event per dequeue and one per arrival. [`Events`] chooses; on the same FIFO both give the same departures.
//!
//! **What is queued.** A packet waits until its transmission begins; the packet in transmission does not count
//! against the limit. This is Linux's rule: `pfifo limit N` and `bfifo limit B` hold what was not yet handed
//! to the device. ns-2's `DropTail` drops when its queue would hold more than N - 1, so limit N there is this
//! queue with N - 1 ([`QueueLimit::ns2`]). Bytes are counted as on the wire, with the framing overhead, as
//! `bfifo` does with the link's header.
//!
//! **Where packets are lost.** A full queue and its discipline drop what enters or leaves the queue; channels
//! ([`path::error`](crate::path::error)) lose packets before the queue or after the transmitter, which then sent
//! them in vain. The counters keep the causes apart, and [`Link::log_drops`] keeps the packets.

use std::collections::VecDeque;

use lastmile::node::{Datagram, Flow, Input, Node, Output, PortId, Transmit, TransmitId};
use lastmile::time::{Span, Time};
use lastmile::units::Bytes;

use crate::engine::{Lost, Tell};
use crate::path::error::Channel;
use crate::truth::{Meter, MeterConfig, Profile};

mod computed;
mod config;
mod dequeue;
mod drops;
#[cfg(test)]
mod tests;
mod transmitter;

use computed::Computed;
pub use config::{
    DEFAULT_QUEUE_PACKETS, Events, LinkConfig, LinkConfigError, MAX_WIRE_BYTES, ParseQueueLimitError,
    QueueLimit,
};
use dequeue::Dequeue;
use drops::DropLog;
pub use drops::{DropCause, Dropped};
pub use transmitter::Change;
use transmitter::{NEVER, Transmitter};

/// What a link has done so far. Packets are conserved: `arrived = drops + lost + delivered +`
/// [`under_way`](Link::under_way), where of the lost only those on their way count as under way.
///
/// ```
/// assert_eq!(lastmile_sim::path::link::LinkCounters::default().drops, 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Packets offered to the link, lost and dropped ones included.
    pub arrived: u64,
    /// Packets that the queue accepted.
    pub packets: u64,
    /// IP bytes that the queue accepted.
    pub bytes: Bytes,
    /// Packets dropped by the queue, full or not: all congestion losses.
    pub drops: u64,
    /// IP bytes dropped by the queue.
    pub dropped_bytes: Bytes,
    /// Those of `drops` that the queue's discipline dropped with room left.
    pub early_drops: u64,
    /// Packets marked Congestion Experienced.
    pub marked: u64,
    /// Packets lost by the channel, before or after the transmitter.
    pub lost: u64,
    /// IP bytes lost by the channel.
    pub lost_bytes: Bytes,
    /// Packets handed over at the far end.
    pub delivered: u64,
    /// The most packets that ever waited.
    pub max_queue_packets: u32,
    /// The most bytes that ever waited.
    pub max_queue_bytes: Bytes,
    /// Bytes that waited, times the nanoseconds that each did.
    waited: u128,
}

impl LinkCounters {
    /// The mean number of bytes that waited over the `window` at whose start the counters were `before`.
    /// A link whose departures are computed counts a packet's wait when it enters.
    ///
    /// ```
    /// use lastmile::{time::Span, units::Bytes};
    /// use lastmile_sim::path::link::LinkCounters;
    /// let idle = LinkCounters::default();
    /// assert_eq!(idle.mean_queue(&idle, Span::from_secs(1)), Bytes(0));
    /// ```
    pub fn mean_queue(&self, before: &LinkCounters, window: Span) -> Bytes {
        let ns = u128::try_from(window.as_nanos()).unwrap_or(0).max(1);
        Bytes(u64::try_from(self.waited.saturating_sub(before.waited) / ns).unwrap_or(u64::MAX))
    }
}

/// A packet that left the queue, or whose departure is known.
#[derive(Debug)]
struct UnderWay {
    starts: u64,
    arrives: u64,
    wire: u32,
    /// The channel has lost it: it is sent and does not arrive.
    lost: bool,
    datagram: Datagram,
}

/// What both kinds of links have.
#[derive(Debug)]
struct Common {
    transmitter: Transmitter,
    overhead: u32,
    limit: QueueLimit,
    /// Packets in the order of their arrivals; where departures are computed, the waiting ones as well.
    ring: VecDeque<UnderWay>,
    counters: LinkCounters,
    channel: Option<Box<Channel>>,
    drops: Option<Box<DropLog>>,
    tell: Option<Tell>,
    /// Drops of each flow, by the cause's place in [`DropCause::ALL`].
    by_flow: Vec<[u64; 3]>,
    meters: Vec<Meter>,
    /// What meters measure against.
    profile: Profile,
}

/// Flows whose drops are counted apart.
const MAX_COUNTED_FLOWS: usize = 1 << 16;

impl Common {
    #[cold]
    fn drop(&mut self, at: u64, cause: DropCause, datagram: Datagram) {
        let size = datagram.ip_size();
        if cause == DropCause::Channel {
            self.counters.lost += 1;
            self.counters.lost_bytes += size;
        } else {
            self.counters.drops += 1;
            self.counters.dropped_bytes += size;
            self.counters.early_drops += u64::from(cause == DropCause::Early);
        }
        let flow = datagram.flow.0 as usize;
        if flow < MAX_COUNTED_FLOWS {
            if self.by_flow.len() <= flow {
                self.by_flow.resize(flow + 1, [0; 3]);
            }
            self.by_flow[flow][cause as usize] += 1;
        }
        if let Some(tell) = &mut self.tell {
            tell.lost(&Lost { at: Time::from_nanos(at), cause: cause.name(), datagram: &datagram });
        }
        if let Some(log) = &mut self.drops {
            log.push(Dropped { at: Time::from_nanos(at), cause, datagram });
        }
    }

    #[inline]
    fn queued(&mut self, packets: u32, bytes: u64) {
        self.counters.max_queue_packets = self.counters.max_queue_packets.max(packets);
        self.counters.max_queue_bytes = self.counters.max_queue_bytes.max(Bytes(bytes));
    }

    #[cold]
    fn loses_before(&mut self, now: u64, datagram: &Datagram) -> bool {
        self.channel.as_mut().is_some_and(|channel| channel.loses_before(now, datagram))
    }

    /// Whether the channel loses a packet that is in the air between these times.
    #[inline]
    fn loses(&mut self, starts: u64, departs: u64, datagram: &Datagram) -> bool {
        self.channel.as_mut().is_some_and(|channel| channel.loses_after(starts, departs, datagram))
    }
}

#[derive(Debug)]
enum Kind {
    Computed(Computed),
    Dequeue(Box<Dequeue>),
}

/// A unidirectional link. Packets enter and leave by port 0.
///
/// ```
/// use lastmile::{node::*, time::Time, units::Rate};
/// use lastmile_sim::path::link::{Link, LinkConfig};
/// let mut link = Link::new(LinkConfig { rate: Some(Rate::ip(12_000_000)), ..Default::default() });
/// let (a, b) = ("10.0.0.1:1".parse().unwrap(), "10.0.0.2:1".parse().unwrap());
/// let datagram = Datagram { payload: Payload::Model(Model { ip_size: 1500, ..Default::default() }), ..Datagram::udp(a, b, vec![]) };
/// link.handle(Time::ZERO, Input::Datagram { port: PortId(0), at: Time::ZERO, datagram });
/// assert!(matches!(link.poll(Time::ZERO), Output::Wait(Some(at)) if at.as_nanos() == 1_000_000));
/// ```
#[derive(Debug)]
pub struct Link {
    common: Common,
    kind: Kind,
}

impl Link {
    /// An idle link whose random draws, if it has any, are those of seed 0. A rate of zero would never deliver:
    /// scenarios refuse it, and here it counts as 1 bit/s.
    pub fn new(config: LinkConfig) -> Link {
        Link::seeded(config, 0, "link")
    }

    /// An idle link whose queue and channels draw from streams of their own, called after `name`, so that
    /// nothing else's draws depend on them.
    ///
    /// ```
    /// use lastmile_sim::path::{error::*, link::*};
    /// let lossy = Bernoulli { rate: 0.078 };
    /// let config = LinkConfig { losses: vec![Loss::of(lossy)], ..Default::default() };
    /// let link = Link::seeded(config, 7, "link/last-hop");
    /// assert_eq!(link.counters().lost, 0);
    /// ```
    pub fn seeded(config: LinkConfig, seed: u64, name: &str) -> Link {
        let kind = match config.kind_of_events() {
            Events::PerDequeue => Kind::Dequeue(Box::new(Dequeue::new(&config, seed, name))),
            _ => Kind::Computed(Computed::default()),
        };
        Link {
            common: Common {
                transmitter: Transmitter::new(config.rate, config.delay, &config.schedule),
                overhead: config.overhead.0.min(MAX_WIRE_BYTES) as u32,
                limit: config.discipline.limit().unwrap_or(config.queue),
                ring: VecDeque::new(),
                counters: LinkCounters::default(),
                channel: Channel::new(&config.losses, seed, name).map(Box::new),
                drops: None,
                tell: None,
                by_flow: Vec::new(),
                meters: Vec::new(),
                profile: Profile::new(&config),
            },
            kind,
        }
    }

    /// What the link has done so far.
    pub fn counters(&self) -> &LinkCounters {
        &self.common.counters
    }

    /// Packets of a flow that did not arrive, by their cause.
    ///
    /// ```
    /// # use lastmile_sim::path::link::*;
    /// let link = Link::new(LinkConfig::default());
    /// assert!(link.drops_of(lastmile::node::Flow(0)).all(|(_, packets)| packets == 0));
    /// ```
    pub fn drops_of(&self, flow: Flow) -> impl Iterator<Item = (DropCause, u64)> {
        let counted = self.common.by_flow.get(flow.0 as usize).copied().unwrap_or_default();
        DropCause::ALL.into_iter().zip(counted)
    }

    /// Packets that wait, are in transmission or propagate.
    pub fn under_way(&self) -> usize {
        let queued = match &self.kind {
            Kind::Computed(_) => 0,
            Kind::Dequeue(queue) => queue.under_way(),
        };
        self.common.ring.len() + queued
    }

    /// Those of them that are a flow's.
    ///
    /// ```
    /// # use lastmile_sim::path::link::*;
    /// assert_eq!(Link::new(LinkConfig::default()).under_way_of(lastmile::node::Flow(0)), 0);
    /// ```
    pub fn under_way_of(&self, flow: Flow) -> u64 {
        let queued = match &self.kind {
            Kind::Computed(_) => 0,
            Kind::Dequeue(queue) => queue.packets().filter(|packet| packet.flow == flow).count(),
        };
        (self.common.ring.iter().filter(|packet| packet.datagram.flow == flow).count() + queued) as u64
    }

    /// For how long the transmitter was busy up to `now`.
    pub fn busy(&self, now: Time) -> Span {
        self.common.transmitter.busy(now.as_nanos())
    }

    /// Keeps every packet that is dropped or lost from now on, with its cause, up to `limit` of them.
    ///
    /// ```
    /// # use lastmile_sim::path::link::*;
    /// let mut link = Link::new(LinkConfig::default());
    /// link.log_drops(1_000);
    /// assert!(link.take_drops().is_empty());
    /// ```
    pub fn log_drops(&mut self, limit: usize) {
        self.common.drops = Some(Box::new(DropLog::new(limit)));
    }

    /// Has each packet that is dropped or lost told of when that is decided.
    pub(crate) fn tell(&mut self, tell: Tell) {
        tell.join(&mut self.common.tell);
    }

    /// Takes the drops kept so far, in the order in which they happened.
    pub fn take_drops(&mut self) -> Vec<Dropped> {
        self.common.drops.as_mut().map(|log| log.take()).unwrap_or_default()
    }

    /// Drops that [`log_drops`](Link::log_drops)'s limit left out.
    pub fn drops_left_out(&self) -> u64 {
        self.common.drops.as_ref().map_or(0, |log| log.left_out)
    }

    /// Changes rate or delay by hand at `now`, for transmissions that begin, or end, from then on; a rate of
    /// zero is an outage. False, and nothing changes, where departures are computed beforehand: such a link
    /// needs [`Events::PerDequeue`]. Poll it afterwards, as after every input.
    #[must_use]
    pub fn change(&mut self, now: Time, change: &Change) -> bool {
        match &mut self.kind {
            Kind::Computed(_) => false,
            Kind::Dequeue(queue) => {
                let now = now.as_nanos();
                queue.change(&mut self.common, now, change);
                if let Some(rate) = change.rate {
                    self.common.profile.change(now, rate);
                    self.common.meters.iter_mut().for_each(|meter| meter.change(now, rate));
                }
                true
            }
        }
    }

    /// Attaches a meter; `None` where the link never has a rate, since nothing can then be spare.
    pub(crate) fn attach(&mut self, config: MeterConfig) -> Option<usize> {
        let common = &mut self.common;
        let profile = common.profile.limits().then(|| common.profile.clone())?;
        common.meters.push(Meter::new(config, profile, common.overhead));
        Some(common.meters.len() - 1)
    }

    pub(crate) fn meter(&self, number: usize) -> Option<&Meter> {
        self.common.meters.get(number)
    }

    pub(crate) fn meter_mut(&mut self, number: usize) -> Option<&mut Meter> {
        self.common.meters.get_mut(number)
    }

    #[inline(never)]
    fn offer(&mut self, now: u64, datagram: Datagram) {
        let common = &mut self.common;
        common.counters.arrived += 1;
        if common.channel.is_some() && common.loses_before(now, &datagram) {
            common.drop(now, DropCause::Channel, datagram);
            return;
        }
        let size = datagram.ip_size().0.min(MAX_WIRE_BYTES) as u32;
        let wire = (size + common.overhead).min(MAX_WIRE_BYTES as u32);
        for meter in &mut common.meters {
            meter.arrival(now, &datagram, wire);
        }
        match &mut self.kind {
            Kind::Computed(queue) => queue.enqueue(common, now, wire, datagram),
            Kind::Dequeue(queue) => queue.enqueue(common, now, wire, datagram),
        }
    }
}

#[inline]
fn wait(until: u64) -> Output {
    Output::Wait((until != NEVER).then(|| Time::from_nanos(until)))
}

impl Node for Link {
    #[inline]
    fn handle(&mut self, now: Time, input: Input) {
        if let Input::Datagram { datagram, .. } = input {
            self.offer(now.as_nanos(), datagram);
        }
    }

    #[inline]
    fn poll(&mut self, now: Time) -> Output {
        let at = now.as_nanos();
        let common = &mut self.common;
        let mut next = NEVER;
        if let Kind::Dequeue(queue) = &mut self.kind {
            next = queue.advance(common, at);
        }
        loop {
            match common.ring.front() {
                Some(head) if head.arrives <= at => {}
                Some(head) => return wait(next.min(head.arrives)),
                None => return wait(next),
            }
            if let Kind::Computed(queue) = &mut self.kind {
                queue.forget_first(common, at);
            }
            let packet = common.ring.pop_front();
            if common.ring.is_empty() {
                // Back to the start of its memory, which the cache still holds: the packets to come would else
                // go round all of it.
                common.ring.clear();
            }
            match packet {
                Some(UnderWay { lost: false, datagram, .. }) => {
                    common.counters.delivered += 1;
                    return Output::Transmit(Transmit {
                        id: TransmitId(0),
                        at: now,
                        port: PortId(0),
                        datagram,
                    });
                }
                Some(UnderWay { datagram, .. }) => common.drop(at, DropCause::Channel, datagram),
                None => return wait(next),
            }
        }
    }
}
