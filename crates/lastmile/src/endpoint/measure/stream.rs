//! A probing stream between its plan and its record.

use super::packets::Replied;
use crate::estimate::StreamPlan;
use crate::node::Ecn;
use crate::report::{Direction, Fate, PacketReport, StreamRecord};
use crate::time::{Rx, Span, Time, Tx};
use crate::units::Bytes;
use crate::wire::private::{MAX_GAPS, Schedule};
use crate::wire::{TLV_HEADER_LEN, TlvValue};

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

/// Whether so many packets of a stream were held up in the queue of the sender's own interface that it is a part of the
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
    /// Packets that were held up in the queue of this host's own interface; reverse: whether the peer says so of its own.
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

    /// Whether the queue of the sender's own interface was a part of the path that shows.
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

    /// What no clock can have shown: the earliest and the latest stamp of the other side that contradict each other, by
    /// how much they claim to lie apart, and how much they could, where the report came at `now`.
    ///
    /// Whatever the other clock's offset is, every stamp of its was made after the plan's time of that packet, or of
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

    /// The requests that make a reflector send such a stream.
    pub(super) fn requests(plan: &StreamPlan) -> Vec<ReverseRequest> {
        reverse_requests(plan)
    }
}

/// One request asks for no more than this takes: reflectors refuse what lasts longer than a second, because a stream
/// must end soon after its peer fell silent.
const LONGEST_REQUEST: Span = Span::from_millis(900);

/// The requests that make a reflector send a stream.
///
/// One request where the plan is groups of equal size at equal intervals, as pairs and trains are, and ends soon
/// enough; else several. An uneven plan's requests carry its gaps, so that the reflector times it as well.
fn reverse_requests(plan: &StreamPlan) -> Vec<ReverseRequest> {
    let packets = &plan.packets;
    let mut groups: Vec<(usize, usize)> = Vec::new();
    for (i, packet) in packets.iter().enumerate() {
        match groups.last_mut() {
            Some((first, n)) if packets[*first].offset == packet.offset => *n += 1,
            _ => groups.push((i, 1)),
        }
    }
    let (Some(&(_, burst)), Some(last)) = (groups.first(), packets.last()) else { return Vec::new() };
    let interval = last.offset / (groups.len() as i64 - 1).max(1);
    let uniform = groups.iter().enumerate().all(|(k, &(first, n))| {
        let drift = packets[first].offset - interval * k as i64;
        // The division's remainder, at most one nanosecond a group.
        n == burst && drift.abs().as_nanos() <= k as i64 && packets[first].size == packets[0].size
    });
    let request = |offset, first: usize, count: usize, burst: usize, interval: Span| ReverseRequest {
        offset,
        first: first as u16,
        count: count as u16,
        burst: burst as u16,
        interval,
        size: packets[first].size,
        schedule: None,
    };
    if uniform {
        let together = match interval.as_nanos() {
            0 => groups.len(),
            ns => (LONGEST_REQUEST.as_nanos() / ns) as usize + 1,
        };
        let part = |part: &[(usize, usize)]| {
            let first = part[0].0;
            request(packets[first].offset, first, part.len() * burst, burst, interval)
        };
        return groups.chunks(together).map(part).collect();
    }
    let mut requests: Vec<ReverseRequest> = Vec::new();
    for (i, packet) in packets.iter().enumerate() {
        if let Some(last) = requests.last_mut()
            && let Some(schedule) = &mut last.schedule
            && schedule.gaps.len() < MAX_GAPS
            && packet.size == last.size
            && packet.offset - last.offset <= LONGEST_REQUEST
        {
            let gap = packet.offset - packets[i - 1].offset;
            schedule.gaps.push(u32::try_from(gap.as_nanos()).unwrap_or(u32::MAX));
            last.count += 1;
            continue;
        }
        let first = request(packet.offset, i, 1, 1, Span::ZERO);
        requests.push(ReverseRequest { schedule: Some(Schedule { gaps: Vec::new() }), ..first });
    }
    requests
}

/// One request for packets of a reverse stream.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ReverseRequest {
    pub(super) offset: Span,
    pub(super) first: u16,
    pub(super) count: u16,
    pub(super) burst: u16,
    pub(super) interval: Span,
    pub(super) size: Bytes,
    /// The gaps between its packets, where they are not all alike.
    pub(super) schedule: Option<Schedule>,
}

impl ReverseRequest {
    /// Bytes that its schedule takes in the request.
    pub(super) fn schedule_size(&self) -> Bytes {
        Bytes(self.schedule.as_ref().map_or(0, |s| (TLV_HEADER_LEN + s.value_len()) as u64))
    }

    /// Whether it asks for the packet with that index.
    pub(super) fn holds(&self, index: u16) -> bool {
        index.checked_sub(self.first).is_some_and(|i| i < self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Rate;

    fn stream(plan: StreamPlan) -> StreamInFlight {
        StreamInFlight::new(1, Direction::Reverse, plan, Time::ZERO, Span::from_nanos(1))
    }

    #[test]
    fn pairs_and_trains_are_one_request() {
        let pairs = StreamInFlight::requests(&StreamPlan::pairs(30, Bytes(1488), Span::from_millis(10)));
        assert_eq!(pairs.len(), 1);
        assert_eq!((pairs[0].count, pairs[0].burst, pairs[0].interval), (60, 2, Span::from_millis(10)));
        let train = StreamInFlight::requests(&StreamPlan::train(30, Bytes(1488), Rate::ip(7_777_777)));
        assert_eq!((train.len(), train[0].count, train[0].burst), (1, 30, 1));
    }

    #[test]
    fn a_stream_longer_than_a_second_is_asked_for_in_parts() {
        let pairs = StreamInFlight::requests(&StreamPlan::pairs(30, Bytes(1488), Span::from_millis(100)));
        let parts: Vec<_> = pairs.iter().map(|r| (r.offset, r.first, r.count, r.burst)).collect();
        let at = Span::from_millis;
        assert_eq!(parts, [(at(0), 0, 20, 2), (at(1_000), 20, 20, 2), (at(2_000), 40, 20, 2)]);
        let burst = StreamInFlight::requests(&StreamPlan::pairs(1, Bytes(1488), Span::ZERO));
        assert_eq!((burst.len(), burst[0].count), (1, 2));
    }

    #[test]
    fn an_uneven_plan_is_one_request_with_its_gaps() {
        let plan = |ms: &[i64]| StreamPlan::uneven(ms.iter().copied().map(Span::from_millis), Bytes(1000));
        let [chirp] = &StreamInFlight::requests(&plan(&[0, 10, 10, 90]))[..] else { panic!("one request") };
        let gaps = &chirp.schedule.as_ref().unwrap().gaps;
        assert_eq!((chirp.count, &gaps[..]), (4, &[10_000_000, 0, 80_000_000][..]));
        // Longer than a request may last, or of other sizes: several, none with more than its own packets.
        let mut long = plan(&[0, 600, 1_000, 1_001, 1_900]);
        long.packets[4].size = Bytes(500);
        let requests = StreamInFlight::requests(&long);
        let parts: Vec<_> = requests.iter().map(|r| (r.offset, r.first, r.count, r.size.0)).collect();
        let at = Span::from_millis;
        assert_eq!(parts, [(at(0), 0, 2, 1000), (at(1_000), 2, 2, 1000), (at(1_900), 4, 1, 500)]);
        let many = StreamPlan::uneven((0..600).map(|k| Span::from_micros(k * k)), Bytes(1000));
        let requests = StreamInFlight::requests(&many);
        assert_eq!(requests.iter().map(|r| r.count).collect::<Vec<_>>(), [257, 257, 86]);
    }

    #[test]
    fn a_packet_without_a_departure_stamp_is_not_believed() {
        let mut s = stream(StreamPlan::pairs(1, Bytes(1488), Span::ZERO));
        s.on_arrival(0, Time::from_nanos(9), Ecn::NotEct, Bytes(1488));
        let record = s.record();
        assert_eq!((record.packets[0].fate, record.packets[1].fate), (Fate::Late, Fate::Lost));
    }
}
