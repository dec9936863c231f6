//! [`Link`]: one direction of a wire, with the drop-tail queue in front of it.
//!
//! The rate is known beforehand, so a packet's departure is computed when it enters the queue, and only the
//! head of the ring of packets under way is in the engine's event queue: one event per hop.
//!
//! **What is queued.** A packet waits until its transmission begins; the packet in transmission does not count
//! against the limit. This is Linux's rule: `pfifo limit N` and `bfifo limit B` hold what was not yet handed
//! to the device. ns-2's `DropTail` with limit N drops at N - 1 waiting packets, so it is this queue with N - 1.
//! Bytes are counted as on the wire, with the framing overhead, as `bfifo` does with the link's header.

use std::collections::VecDeque;

use lastmile::node::{Datagram, Input, Node, Output, PortId, Transmit, TransmitId};
use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};

use crate::truth::{Meter, MeterConfig};

/// How much may wait.
///
/// ```
/// use lastmile::units::Bytes;
/// use lastmile_sim::path::link::QueueLimit;
/// assert_ne!(QueueLimit::Packets(50), QueueLimit::Bytes(Bytes(60_000)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// So many packets of whatever size.
    Packets(u32),
    /// So many bytes on the wire.
    Bytes(Bytes),
}

/// One direction of a link.
///
/// ```
/// use lastmile::{time::Span, units::Rate};
/// use lastmile_sim::path::link::LinkConfig;
/// let link = LinkConfig { rate: Some(Rate::ip(10_000_000)), delay: Span::from_millis(5), ..Default::default() };
/// assert_eq!(link.overhead.0, 0);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkConfig {
    /// Bits per second of frames: IP packets and [`overhead`](LinkConfig::overhead). Without one the link only
    /// delays.
    pub rate: Option<Rate>,
    /// From the last bit's departure to its arrival.
    pub delay: Span,
    /// Bytes of framing around every IP packet.
    pub overhead: Bytes,
    /// What the queue holds beside the packet in transmission.
    pub queue: QueueLimit,
}

impl Default for LinkConfig {
    fn default() -> LinkConfig {
        LinkConfig {
            rate: None,
            delay: Span::ZERO,
            overhead: Bytes::ZERO,
            queue: QueueLimit::Packets(DEFAULT_QUEUE_PACKETS),
        }
    }
}

/// The queue of a link whose scenario names none.
pub const DEFAULT_QUEUE_PACKETS: u32 = 50;

/// Larger packets count as this large: keeps 64-bit arithmetic of nanoseconds exact.
pub const MAX_WIRE_BYTES: u64 = 1 << 30;

/// What a link has done so far.
///
/// ```
/// assert_eq!(lastmile_sim::path::link::LinkCounters::default().drops, 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Packets offered to the queue, dropped ones included.
    pub arrived: u64,
    /// Packets accepted.
    pub packets: u64,
    /// IP bytes accepted.
    pub bytes: Bytes,
    /// Packets dropped because the queue was full.
    pub drops: u64,
    /// IP bytes dropped.
    pub dropped_bytes: Bytes,
    /// Packets handed over at the far end.
    pub delivered: u64,
    /// The most packets that ever waited.
    pub max_queue_packets: u32,
    /// The most bytes that ever waited.
    pub max_queue_bytes: Bytes,
    /// Transmission time of all accepted packets.
    committed: Span,
}

#[derive(Debug)]
struct UnderWay {
    starts: u64,
    arrives: u64,
    wire: u32,
    datagram: Datagram,
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
    bits_per_second: u64,
    delay: u64,
    overhead: u32,
    limit: QueueLimit,
    ring: VecDeque<UnderWay>,
    /// Where in `ring` the packets begin whose transmission had not begun at the last look.
    first_waiting: usize,
    waiting_packets: u32,
    waiting_bytes: u64,
    /// When the transmitter is free: nanoseconds, and a fraction of one in units of 1/`bits_per_second`, so
    /// that no rounding adds up over a busy period.
    free_at: u64,
    free_fraction: u64,
    /// Transmission time of the last size seen: whole nanoseconds and the fraction.
    cached: (u32, u64, u64),
    counters: LinkCounters,
    pub(crate) meters: Vec<Meter>,
}

impl Link {
    /// An idle link. A rate of zero would never deliver: scenarios refuse it, and here it counts as 1 bit/s.
    pub fn new(config: LinkConfig) -> Link {
        Link {
            bits_per_second: config.rate.map_or(0, |rate| rate.bits_per_second().max(1)),
            delay: config.delay.as_nanos().max(0) as u64,
            overhead: config.overhead.0.min(MAX_WIRE_BYTES) as u32,
            limit: config.queue,
            ring: VecDeque::new(),
            first_waiting: 0,
            waiting_packets: 0,
            waiting_bytes: 0,
            free_at: 0,
            free_fraction: 0,
            cached: (0, 0, 0),
            counters: LinkCounters::default(),
            meters: Vec::new(),
        }
    }

    /// What the link has done so far.
    pub fn counters(&self) -> &LinkCounters {
        &self.counters
    }

    /// Packets that wait, are in transmission or propagate.
    pub fn under_way(&self) -> usize {
        self.ring.len()
    }

    /// For how long the transmitter was busy up to `now`.
    pub fn busy(&self, now: Time) -> Span {
        self.counters.committed - Span::from_nanos(self.free_at.saturating_sub(now.as_nanos()) as i64)
    }

    /// Attaches a meter; `None` where the link has no rate, since nothing can then be spare.
    pub(crate) fn attach(&mut self, config: MeterConfig) -> Option<usize> {
        let rate = (self.bits_per_second > 0).then_some(self.bits_per_second)?;
        self.meters.push(Meter::new(config, rate, self.overhead));
        Some(self.meters.len() - 1)
    }

    /// Transmission time of `wire` bytes, as whole nanoseconds and the fraction.
    #[inline]
    fn transmission(&mut self, wire: u32) -> (u64, u64) {
        if self.cached.0 != wire {
            let scaled = u64::from(wire) * 8_000_000_000;
            self.cached = (wire, scaled / self.bits_per_second, scaled % self.bits_per_second);
        }
        (self.cached.1, self.cached.2)
    }

    fn begin_waiting_packets(&mut self, now: u64) {
        while let Some(next) = self.ring.get(self.first_waiting)
            && next.starts <= now
        {
            self.waiting_packets -= 1;
            self.waiting_bytes -= u64::from(next.wire);
            self.first_waiting += 1;
        }
    }

    fn enqueue(&mut self, now: Time, datagram: Datagram) {
        let now = now.as_nanos();
        let ip_size = datagram.ip_size();
        let wire = (ip_size.0.min(MAX_WIRE_BYTES) as u32 + self.overhead).min(MAX_WIRE_BYTES as u32);
        self.counters.arrived += 1;
        for meter in &mut self.meters {
            meter.arrival(now, &datagram, wire);
        }
        let (starts, departs) = if self.bits_per_second == 0 {
            (now, now)
        } else {
            self.begin_waiting_packets(now);
            if self.free_at < now {
                (self.free_at, self.free_fraction) = (now, 0);
            }
            let starts = self.free_at;
            if starts > now && self.is_full(wire) {
                self.counters.drops += 1;
                self.counters.dropped_bytes += ip_size;
                return;
            }
            let (ns, fraction) = self.transmission(wire);
            self.free_at = self.free_at.saturating_add(ns);
            self.free_fraction += fraction;
            if self.free_fraction >= self.bits_per_second {
                self.free_fraction -= self.bits_per_second;
                self.free_at = self.free_at.saturating_add(1);
            }
            self.counters.committed += Span::from_nanos((self.free_at - starts) as i64);
            (starts, self.free_at)
        };
        self.counters.packets += 1;
        self.counters.bytes += ip_size;
        if starts > now {
            self.waiting_packets += 1;
            self.waiting_bytes += u64::from(wire);
            self.counters.max_queue_packets = self.counters.max_queue_packets.max(self.waiting_packets);
            self.counters.max_queue_bytes = self.counters.max_queue_bytes.max(Bytes(self.waiting_bytes));
        } else {
            self.first_waiting += 1;
        }
        let arrives = departs.saturating_add(self.delay);
        self.ring.push_back(UnderWay { starts, arrives, wire, datagram });
    }

    #[inline]
    fn is_full(&self, wire: u32) -> bool {
        match self.limit {
            QueueLimit::Packets(limit) => self.waiting_packets >= limit,
            QueueLimit::Bytes(limit) => self.waiting_bytes + u64::from(wire) > limit.0,
        }
    }
}

impl Node for Link {
    #[inline]
    fn handle(&mut self, now: Time, input: Input) {
        if let Input::Datagram { datagram, .. } = input {
            self.enqueue(now, datagram);
        }
    }

    #[inline]
    fn poll(&mut self, now: Time) -> Output {
        match self.ring.front() {
            Some(head) if head.arrives <= now.as_nanos() => {
                if self.first_waiting == 0 {
                    self.begin_waiting_packets(now.as_nanos());
                }
                self.first_waiting -= 1;
                self.counters.delivered += 1;
                match self.ring.pop_front() {
                    Some(UnderWay { datagram, .. }) => {
                        Output::Transmit(Transmit { id: TransmitId(0), at: now, port: PortId(0), datagram })
                    }
                    None => Output::Wait(None),
                }
            }
            Some(head) => Output::Wait(Some(Time::from_nanos(head.arrives))),
            None => Output::Wait(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lastmile::node::{Model, Payload};
    use proptest::prelude::*;

    fn packet(ip_size: u32, seq: u64) -> Input {
        let any = "10.0.0.1:1".parse().unwrap();
        let datagram = Datagram {
            payload: Payload::Model(Model { ip_size, words: [seq, 0, 0, 0] }),
            ..Datagram::udp(any, any, vec![])
        };
        Input::Datagram { port: PortId(0), at: Time::ZERO, datagram }
    }

    fn drain(link: &mut Link, now: Time, out: &mut Vec<(u64, u64)>) -> Option<Time> {
        loop {
            match link.poll(now) {
                Output::Transmit(t) => match t.datagram.payload {
                    Payload::Model(m) => out.push((now.as_nanos(), m.words[0])),
                    _ => unreachable!(),
                },
                Output::Event(_) => {}
                Output::Wait(next) => return next,
            }
        }
    }

    /// Offers the packets (time, size) in order and runs the link until it is empty.
    fn run(link: &mut Link, offered: &[(u64, u32)]) -> Vec<(u64, u64)> {
        let (mut out, mut next) = (Vec::new(), None);
        for (seq, &(at, size)) in offered.iter().enumerate() {
            let at = Time::from_nanos(at);
            while let Some(due) = next
                && due <= at
            {
                next = drain(link, due, &mut out);
            }
            link.handle(at, packet(size, seq as u64));
            next = drain(link, at, &mut out);
        }
        while let Some(due) = next {
            next = drain(link, due, &mut out);
        }
        out
    }

    fn link(queue: QueueLimit) -> Link {
        Link::new(LinkConfig {
            rate: Some(Rate::ip(10_000_000)),
            delay: Span::from_millis(1),
            overhead: Bytes(14),
            queue,
        })
    }

    #[test]
    fn a_packet_takes_its_frames_time_and_the_delay() {
        let out = run(&mut link(QueueLimit::Packets(9)), &[(0, 1486), (0, 486), (5_000_000, 1486)]);
        assert_eq!(out, [(2_200_000, 0), (2_600_000, 1), (7_200_000, 2)]);
    }

    #[test]
    fn the_packet_in_transmission_does_not_count_as_queued() {
        let mut two = link(QueueLimit::Packets(2));
        assert_eq!(run(&mut two, &[(0, 1486); 5]).len(), 3);
        assert_eq!((two.counters().drops, two.counters().max_queue_packets), (2, 2));
        // The second begins at 1.2 ms exactly: a packet that comes then finds one place free.
        let mut two = link(QueueLimit::Packets(2));
        assert_eq!(run(&mut two, &[(0, 1486), (0, 1486), (0, 1486), (1_200_000, 1486)]).len(), 4);
        let mut bytes = link(QueueLimit::Bytes(Bytes(3000)));
        assert_eq!(run(&mut bytes, &[(0, 1486); 5]).len(), 3);
        assert_eq!(bytes.counters().max_queue_bytes, Bytes(3000));
    }

    #[test]
    fn no_rounding_adds_up_over_a_busy_period() {
        // 1500 B at 7 Mbit/s take 1714285.714... ns; 7000 of them exactly 12 s.
        let mut seven = Link::new(LinkConfig {
            rate: Some(Rate::ip(7_000_000)),
            queue: QueueLimit::Packets(10_000),
            ..Default::default()
        });
        let out = run(&mut seven, &vec![(0, 1500); 7000]);
        assert_eq!(out.last(), Some(&(12_000_000_000, 6999)));
        assert_eq!(seven.busy(Time::from_nanos(12_000_000_000)), Span::from_secs(12));
    }

    #[test]
    fn without_a_rate_it_only_delays() {
        let mut wire = Link::new(LinkConfig { delay: Span::from_micros(3), ..Default::default() });
        assert_eq!(run(&mut wire, &[(0, 1500), (0, 1500), (7, 40)]), [(3_000, 0), (3_000, 1), (3_007, 2)]);
    }

    proptest! {
        #[test]
        fn conserves_packets_in_order_and_is_never_busier_than_the_clock(
            gaps in prop::collection::vec((0_u64..3_000_000, 40_u32..1500), 1..200),
            limit in 1_u32..10, by_bytes in any::<bool>(), rate in 1_000_u64..20_000_000,
        ) {
            let mut at = 0;
            let offered: Vec<_> = gaps.iter().map(|&(gap, size)| { at += gap; (at, size) }).collect();
            let queue = if by_bytes { QueueLimit::Bytes(Bytes(u64::from(limit) * 1500)) } else { QueueLimit::Packets(limit) };
            let mut link = Link::new(LinkConfig { rate: Some(Rate::ip(rate)), queue, ..Default::default() });
            let out = run(&mut link, &offered);
            let counters = *link.counters();
            prop_assert_eq!(counters.packets + counters.drops, offered.len() as u64);
            prop_assert_eq!(counters.delivered, counters.packets);
            prop_assert_eq!(out.len() as u64, counters.packets);
            prop_assert!(out.windows(2).all(|w| w[0].0 <= w[1].0 && w[0].1 < w[1].1));
            prop_assert_eq!((link.waiting_packets, link.waiting_bytes, link.first_waiting), (0, 0, 0));
            let end = out.last().map_or(0, |last| last.0);
            prop_assert!(link.busy(Time::from_nanos(end)).as_nanos() as u64 <= end);
        }
    }
}
