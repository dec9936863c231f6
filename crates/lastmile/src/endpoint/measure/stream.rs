//! A probing stream between its plan and its record.

use super::packets::Replied;
use super::requests::ReverseRequest;
use crate::estimate::StreamPlan;
use crate::node::Ecn;
use crate::report::{Direction, Fate, PacketReport, StreamRecord};
use crate::time::{Rx, Span, Time, Tx};
use crate::units::Bytes;

/// Stamps of one side, in nanoseconds of that side's clock; the direction says whose clock it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamp {
    pub(super) ns: u64,
    pub(super) ecn: Ecn,
    /// The other side says that it cannot be trusted.
    pub(super) late: bool,
}

/// Two clocks may differ by this share in their rates: 500 ppm, twice what crystals do.
const CLOCK_RATES: f64 = 500e-6;
/// A host may take its stamps by so much too early or too late.
const CLOCK_SLACK: Span = Span::from_millis(5);

/// True if so many packets of a stream were held up in the queue of the sender's own interface that it is a part of the
/// path that shows, and no accident of one of them: a fifth, since of pairs only half can be.
pub(super) fn queue_shows(held_up: usize, packets: usize) -> bool {
    held_up > 0 && held_up * 5 >= packets
}

#[derive(Debug)]
pub(super) struct StreamInFlight {
    pub(super) id: u32,
    pub(super) direction: Direction,
    pub(super) plan: StreamPlan,
    /// When its first packet, or in reverse the request for it, is to leave.
    pub(super) starts: Time,
    /// Sequence number of its first packet.
    pub(super) first_seq: u32,
    /// [`crate::node::TransmitId`] of its first packet; the others follow.
    pub(super) first_id: u64,
    pub(super) departures: Vec<Option<Stamp>>,
    pub(super) arrivals: Vec<Option<Stamp>>,
    /// Reverse: the requests that were sent, with the sequence number and stamp that replies repeat.
    pub(super) asked: Vec<(u32, u64, ReverseRequest)>,
    sizes: Vec<Bytes>,
    /// Round trip: a packet's size and that of its reply, where they are not alike.
    pub(super) unlike: Option<(Bytes, Bytes)>,
    /// When a packet last arrived here, and the longest time between two of them.
    pub(super) last_arrival: Option<Time>,
    pub(super) longest_gap: Span,
    /// Packets that were held up in the queue of this host's own interface; reverse: true if the peer says so of its own.
    pub(super) queued: usize,
    pub(super) queued_there: bool,
    /// Packets that left or could not.
    pub(super) answered: usize,
    pub(super) tx_resolution: Span,
    pub(super) rx_resolution: Span,
    pub(super) clock_stepped: bool,
}

impl StreamInFlight {
    pub(super) fn new(
        id: u32,
        direction: Direction,
        plan: StreamPlan,
        starts: Time,
        resolution: Span,
    ) -> Self {
        let n = plan.packets.len();
        StreamInFlight {
            id,
            direction,
            sizes: plan.packets.iter().map(|p| p.size).collect(),
            plan,
            starts,
            first_seq: 0,
            first_id: 0,
            departures: vec![None; n],
            arrivals: vec![None; n],
            asked: Vec::new(),
            unlike: None,
            last_arrival: None,
            longest_gap: Span::ZERO,
            queued: 0,
            queued_there: false,
            answered: 0,
            tx_resolution: resolution,
            rx_resolution: resolution,
            clock_stepped: false,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.plan.packets.len()
    }

    /// When its last packet should have left.
    pub(super) fn ends(&self) -> Time {
        self.starts + self.plan.duration()
    }

    /// True if the queue of the sender's own interface was a part of the path that shows.
    pub(super) fn queue_shows(&self) -> bool {
        self.queued_there || queue_shows(self.queued, self.len())
    }

    pub(super) fn arrived(&self) -> usize {
        self.arrivals.iter().filter(|a| a.is_some()).count()
    }

    /// Takes in an arrival at this endpoint; of duplicates the first counts.
    pub(super) fn on_arrival(&mut self, index: usize, at: Time, ecn: Ecn, size: Bytes) {
        if let Some(slot @ None) = self.arrivals.get_mut(index) {
            *slot = Some(Stamp { ns: at.as_nanos(), ecn, late: false });
            self.sizes[index] = size;
            let last = self.last_arrival.unwrap_or(at);
            self.longest_gap = self.longest_gap.max(at - last);
            self.last_arrival = Some(last.max(at));
        }
    }

    /// Stamps of the other side that no clock can have shown: the time between the newest and the first that contradicts it, and
    /// the time that passed from that packet's planned departure until the report came at `now`.
    ///
    /// By any offset of the other clock, every stamp of its was made after the plan's time of that packet, or of
    /// the request for it, and before the report came: one that is so much older than the newest left no later than that.
    pub(super) fn impossible(&self, now: Time) -> Option<(Span, Span)> {
        let (stamps, resolution) = match self.direction {
            Direction::Forward => (&self.arrivals, self.rx_resolution),
            Direction::Reverse => (&self.departures, self.tx_resolution),
            Direction::RoundTrip => return None,
        };
        let span = |ns: i128| Span::from_nanos(i64::try_from(ns).unwrap_or(i64::MAX));
        let newest = stamps.iter().flatten().map(|stamp| stamp.ns).max()?;
        let contradicts = |(i, stamp): (usize, &Option<Stamp>)| {
            let claimed = span(i128::from(newest) - i128::from(stamp.as_ref()?.ns));
            let asked = match self.direction {
                Direction::Reverse => {
                    let request = self.asked.iter().find(|(_, _, what)| what.holds(i as u16));
                    request.map_or(Span::ZERO, |(_, _, what)| what.offset)
                }
                _ => self.plan.packets[i].offset,
            };
            let passed = now - (self.starts + asked);
            let allowed = passed + passed.scaled(CLOCK_RATES) + CLOCK_SLACK + resolution * 2;
            (claimed > allowed).then_some((claimed, passed))
        };
        stamps.iter().enumerate().find_map(contradicts)
    }

    /// The record, as the estimators want it.
    pub(super) fn record(&self) -> StreamRecord {
        let packet = |i: usize| {
            // The sender's stamp may be missing: then the plan's time stands in, and the packet is not believed.
            let sent = match self.departures[i] {
                Some(stamp) => Time::<Tx>::from_nanos(stamp.ns),
                None => (self.starts + self.plan.packets[i].offset).as_sender(),
            };
            let fate = match self.arrivals[i] {
                None => Fate::Lost,
                Some(stamp) if stamp.late || self.departures[i].is_none_or(|d| d.late) => Fate::Late,
                Some(stamp) => Fate::Arrived(Time::<Rx>::from_nanos(stamp.ns)),
            };
            let ecn = self.arrivals[i].map_or(Ecn::NotEct, |stamp| stamp.ecn);
            PacketReport { seq: i as u64, size: self.sizes[i], sent, fate, ecn }
        };
        StreamRecord {
            stream: self.id,
            direction: self.direction,
            pattern: self.plan.pattern,
            planned: self.plan.packets.iter().map(|p| p.offset).collect(),
            packets: (0..self.len()).map(packet).collect(),
            tx_resolution: self.tx_resolution,
            rx_resolution: self.rx_resolution,
            clock_stepped: self.clock_stepped,
        }
    }

    /// The request that a packet from the peer answers.
    pub(super) fn request_for(&self, replied: &Replied<'_>) -> Option<&ReverseRequest> {
        let answers = |(sequence, stamp, _): &&(u32, u64, ReverseRequest)| {
            *sequence == replied.sequence && *stamp == replied.stamp
        };
        self.asked.iter().find(answers).map(|(_, _, what)| what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(plan: StreamPlan) -> StreamInFlight {
        StreamInFlight::new(1, Direction::Reverse, plan, Time::ZERO, Span::from_nanos(1))
    }

    #[test]
    fn a_packet_without_a_departure_stamp_is_not_believed() {
        let mut s = stream(StreamPlan::pairs(1, Bytes(1488), Span::ZERO));
        s.on_arrival(0, Time::from_nanos(9), Ecn::NotEct, Bytes(1488));
        let record = s.record();
        assert_eq!((record.packets[0].fate, record.packets[1].fate), (Fate::Late, Fate::Lost));
    }
}
