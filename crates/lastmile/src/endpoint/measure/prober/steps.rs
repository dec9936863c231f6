//! From the estimator's steps to streams, and from streams to its next step.

use super::{LARGE, Phase, Prober};
use crate::endpoint::measure::event::{Decision, PacketSink};
use crate::endpoint::measure::packets::Request;
use crate::endpoint::measure::reflector::MAX_REVERSE_SIZE;
use crate::endpoint::measure::requests::requests;
use crate::endpoint::measure::stream::StreamInFlight;
use crate::estimate::{Outcome, Refusal, Step, StreamPlan, Warning, WarningCode};
use crate::node::{Ecn, Output};
use crate::report::{Direction, Fate, PacketReport};
use crate::time::{Span, Time};
use crate::units::Bytes;
use crate::wire::private::{Abilities, StreamTag};

/// A stream is handed over this long before its first packet, so that a sending thread is awake and waiting.
const LEAD: Span = Span::from_millis(2);
/// Between packets that are sent only to pay.
const CREDIT_GAP: Span = Span::from_millis(5);
/// A session that the peer showed so long ago may be over, or its token too old to begin one: hello is said again.
const WELCOME: Span = Span::from_secs(10);
/// A reverse stream is paid for in so many turns at most: of each some packets may be lost.
const PAYMENTS: usize = 10;
/// Size of packets that are sent only to pay.
const CREDIT_SIZE: Bytes = Bytes(1_488);
/// Sizes tried in turn where larger packets vanish: most VPNs leave the first, every path with IPv6 carries the second
/// (RFC 8200, 5), and every host with IPv4 takes the third (RFC 791, 3.1).
const FITTING: [Bytes; 3] = [Bytes(1_400), Bytes(1_280), Bytes(576)];
/// So many packets that all vanish are no chance.
const VANISHED: u64 = 5;
/// Round-trip streams in a row of which nothing comes back, until the peer counts as silent.
const SILENT_STREAMS: u32 = 3;

impl<S: PacketSink> Prober<S> {
    pub(super) fn step(&mut self, now: Time) {
        let Some(measurement) = self.measurements.front_mut() else {
            return self.finish(now);
        };
        match measurement.estimator.step() {
            Step::Pause(span) => self.phase = Phase::Pausing(now + span),
            Step::Done(Outcome::Refused(refusal)) => self.refuse(now, refusal),
            Step::Done(Outcome::Found(estimates)) => {
                let Some(done) = self.measurements.pop_front() else { return };
                self.cost.elapsed = now - self.started.unwrap_or(now);
                for estimate in estimates {
                    self.out.push_back(Output::Event(Decision::Estimated {
                        method: done.method.clone(),
                        direction: done.direction,
                        estimate,
                        cost: self.cost,
                    }));
                }
                self.phase = self.between(now);
            }
            // A size that the measurement before found out.
            Step::Send(plan) if largest(&plan) > self.fits && measurement.estimator.shrink(self.fits) => {}
            Step::Send(plan) => {
                let direction = measurement.direction;
                if let Err(refusal) = self.admit(now, direction, &plan) {
                    return self.refuse(now, refusal);
                }
                let pays = direction == Direction::Reverse && !self.codec.is_authenticated();
                let lease = self.peer.map_or(0, |offer| offer.lease_s);
                let stale = now > self.welcome + WELCOME.min(Span::from_secs(i64::from(lease)) / 2);
                match direction {
                    Direction::Forward | Direction::Reverse if pays || stale => {
                        self.enter(now, Phase::Credit(plan, 0));
                    }
                    _ => self.start(now, direction, plan),
                }
            }
        }
    }

    /// Small packets pass and none of `planned` bytes does. True if the method goes on with smaller ones.
    pub(super) fn shrunk(&mut self, planned: Bytes) -> bool {
        let Some(size) = FITTING.into_iter().find(|size| *size < planned) else { return false };
        let shrinks = self.measurements.front_mut().is_some_and(|m| m.estimator.shrink(size));
        if shrinks {
            self.fits = size;
        }
        shrinks
    }

    /// Refuses a stream that the peer cannot take, or that goes beyond the limits.
    pub(super) fn admit(&self, now: Time, direction: Direction, plan: &StreamPlan) -> Result<(), Refusal> {
        if !plan.bounded() {
            return Err(Refusal::too_long(plan));
        }
        let offer = self.peer.as_ref();
        let most = offer.map_or(usize::MAX, |o| usize::from(o.max_packets));
        let needed = match direction {
            Direction::Forward => Abilities::ARRIVAL_REPORTS,
            Direction::Reverse if requests(plan).iter().any(|what| what.schedule.is_some()) => {
                Abilities::REVERSE_STREAMS | Abilities::DEPARTURE_REPORTS | Abilities::SCHEDULES
            }
            Direction::Reverse => Abilities::REVERSE_STREAMS | Abilities::DEPARTURE_REPORTS,
            Direction::RoundTrip => Abilities::default(),
        };
        if !offer.map_or(Abilities::default(), |o| o.abilities).contains(needed) {
            return Err(Refusal::PeerCannot(format!(
                "{} speaks plain STAMP only, and the {direction} direction needs a lastmile reflector; use --direction round-trip, or run `lastmile serve` there",
                self.config.peer
            )));
        }
        if direction != Direction::RoundTrip && plan.packets.len() > most {
            return Err(Refusal::PeerCannot(format!(
                "{} takes streams of at most {most} packets, this method needs {}",
                self.config.peer,
                plan.packets.len()
            )));
        }
        let smallest = self.codec.smallest_probe();
        if plan.packets.iter().any(|p| p.size < smallest) {
            return Err(Refusal::PeerCannot(format!(
                "a probe packet needs at least {smallest} at the IP layer"
            )));
        }
        // Before anything is paid for.
        if direction == Direction::Reverse && plan.packets.iter().any(|p| p.size > MAX_REVERSE_SIZE) {
            return Err(Refusal::PeerCannot(format!(
                "reflectors send packets of at most {MAX_REVERSE_SIZE} at the IP layer: lower --packet-size"
            )));
        }
        self.afford(self.price(direction, plan))?;
        self.in_time(now, self.lasts(plan))
    }

    /// From now until a stream's last packet has arrived.
    fn lasts(&self, plan: &StreamPlan) -> Span {
        plan.duration() + LEAD + self.rtt
    }

    /// IP bytes that a stream and all that belongs to it take, both directions together, if nothing is lost.
    fn price(&self, direction: Direction, plan: &StreamPlan) -> Bytes {
        let (all, n) = (plan.bytes(), plan.packets.len());
        let pages = n.div_ceil(self.page_entries) as u64;
        let report = self.codec.report_size(n.min(self.page_entries)) * 2 * pages + self.codec.report_size(0);
        match direction {
            Direction::RoundTrip => all + self.codec.reply_size(all, n),
            Direction::Forward => all + report,
            Direction::Reverse => {
                let requests = requests(plan);
                all + report + requests.iter().map(|what| self.codec.report_size(0) + what.extra_size()).sum()
            }
        }
    }

    /// Refuses a task that ends after the time limit.
    fn in_time(&self, now: Time, lasts: Span) -> Result<(), Refusal> {
        match (self.config.max_time, self.started) {
            (Some(limit), Some(started)) if now + lasts > started + limit => {
                Err(Refusal::TimeLimit { limit })
            }
            _ => Ok(()),
        }
    }

    /// Pays for a reverse stream, or sends it when a key or the credit that the peer counted is enough.
    pub(super) fn pay(&mut self, now: Time, credit: u64, plan: StreamPlan, tries: usize) {
        let direction = self.measurements.front().map_or(Direction::Forward, |m| m.direction);
        let missing = plan.bytes() - Bytes(credit);
        if missing == Bytes::ZERO || direction == Direction::Forward || self.codec.is_authenticated() {
            // Asking took its time.
            return match self.in_time(now, self.lasts(&plan)) {
                Ok(()) => self.start(now, direction, plan),
                Err(refusal) => self.refuse(now, refusal),
            };
        }
        let each = CREDIT_SIZE.min(self.fits);
        // Nothing is paid twice in vain; a new token is that of a peer that was started again.
        let packets = missing.0.div_ceil(each.0);
        let (token, before) = self.before_paying;
        // Small packets were lost too: it is not the size.
        let lossy = self.waiting.as_ref().is_some_and(|waiting| waiting.tries.len() > LARGE);
        let unpaid = token == self.token() && packets >= VANISHED && credit < before + each.0;
        let in_vain = tries > 0 && unpaid && !lossy;
        if in_vain && self.shrunk(each) {
            self.phase = Phase::Step;
            self.waiting = None;
            return;
        }
        self.before_paying = (self.token(), credit);
        if in_vain {
            return self.refuse(now, Refusal::PeerCannot(format!(
                "none of {packets} packets of {each} that pay for a reverse stream arrived at {}: the path is congested, or carries only smaller ones; lower --packet-size, or give both sides a key",
                self.config.peer
            )));
        }
        if tries >= PAYMENTS {
            return self.refuse(now, Refusal::PeerCannot(format!(
                "too few of the packets that pay for a reverse stream arrive at {}: the path loses too much, or is congested; give both sides a key",
                self.config.peer
            )));
        }
        let lasts = CREDIT_GAP * packets as i64;
        let allowed = self
            .afford(each * packets + self.price(Direction::Reverse, &plan))
            .and_then(|()| self.in_time(now, lasts + self.lasts(&plan) + self.rtt));
        if let Err(refusal) = allowed {
            return self.refuse(now, refusal);
        }
        self.committed += each * packets;
        let token = self.token();
        for k in 0..packets {
            let at = now + CREDIT_GAP * k as i64;
            let bytes = self.codec.encode(at, &Request::Pay { token }, Some(each));
            self.transmit(at, Ecn::NotEct, bytes);
        }
        self.cost.credit_bytes += each * packets;
        self.phase = Phase::Paying(plan, tries + 1, now + lasts);
        self.waiting = None;
    }

    pub(super) fn start(&mut self, now: Time, direction: Direction, plan: StreamPlan) {
        let id = self.next_stream;
        self.next_stream += 1;
        let starts = now + LEAD;
        let mut stream = StreamInFlight::new(id, direction, plan, starts, self.config.resolution);
        stream.first_seq = self.codec.next_sequence();
        stream.first_id = self.next_id;
        let (token, count) = (self.token(), stream.len() as u16);
        if direction == Direction::Reverse {
            for what in requests(&stream.plan) {
                let at = starts + what.offset;
                stream.asked.push((self.codec.next_sequence(), self.codec.stamp(at), what.clone()));
                let (size, packets) = (what.size, u64::from(what.count));
                let request = Request::Reverse { token, stream: id, total: count, what };
                let bytes = self.codec.encode(at, &request, None);
                let own = self.ip_size(&bytes);
                self.cost.control_bytes += own;
                self.committed += own + size * packets;
                self.transmit(at, Ecn::NotEct, bytes);
            }
        } else {
            for (index, packet) in stream.plan.packets.iter().enumerate() {
                let at = starts + packet.offset;
                let request = match direction {
                    Direction::Forward => Request::Forward {
                        tag: StreamTag { stream: id, index: index as u16, count, burst: 0, token },
                    },
                    _ => Request::RoundTrip,
                };
                let bytes = self.codec.encode(at, &request, Some(packet.size));
                self.transmit(at, packet.ecn, bytes);
            }
            let all = stream.plan.bytes();
            self.cost.probe_bytes += all;
            self.committed += all;
            if direction == Direction::RoundTrip {
                self.committed += self.codec.reply_size(all, stream.len());
            }
        }
        self.phase = Phase::Streaming(stream);
        self.waiting = None;
    }

    /// Fetches what the other side knows of a stream, or judges it when nothing is missing.
    pub(super) fn streamed(&mut self, now: Time, stream: StreamInFlight) {
        if stream.direction == Direction::RoundTrip {
            self.judge(now, stream);
        } else {
            self.enter(now, Phase::Reporting(stream, 0));
        }
    }

    /// Why a stream says nothing of the path, whatever a method would make of it: the peer is to blame.
    fn disbelieve(&self, now: Time, stream: &StreamInFlight) -> Option<Refusal> {
        let peer = self.config.peer;
        if let Some((sent, got)) = stream.unlike {
            let instead = match got >= self.codec.smallest_probe() {
                true => format!(", or measure with --packet-size {}", got.0),
                false => String::new(),
            };
            return Some(Refusal::PeerCannot(format!(
                "{peer} answers packets of {sent} with replies of {got} (IP layer): the way back is measured at another size, and the narrower of the two ways would be overestimated; use a reflector that answers in the size of the request, as `lastmile serve` does{instead}"
            )));
        }
        // A step that the peer noticed explains what is otherwise impossible.
        let (claimed, passed) = stream.impossible(now).filter(|_| !stream.clock_stepped)?;
        let which = if stream.direction == Direction::Reverse { "departures" } else { "arrivals" };
        Some(Refusal::Inconsistent(format!(
            "{peer} reports {which} {:.3} s apart, and only {:.3} s passed here from the first of them to the report: its report is false, or its clock is wrong",
            claimed.as_secs_f64(),
            passed.as_secs_f64()
        )))
    }

    /// Says once for each direction that the queue of the sender's own interface is part of what is measured.
    fn tell_of_queue(&mut self, stream: &StreamInFlight) {
        if !stream.queue_shows() || self.queue_told.contains(&stream.direction) {
            return;
        }
        self.queue_told.push(stream.direction);
        let whose = match stream.direction {
            Direction::Reverse => format!("{}'s", self.config.peer.ip()),
            _ => "this host's".to_owned(),
        };
        let text = format!(
            "{} direction: packets waited in the queue of {whose} own interface, which is part of the path that was measured (it is shaped or slow, or other traffic fills it)",
            stream.direction
        );
        self.out.push_back(Output::Event(Decision::Warned(Warning { code: WarningCode::OwnQueue, text })));
    }

    fn release(&mut self, now: Time, stream: &StreamInFlight) {
        if stream.direction != Direction::RoundTrip {
            self.courtesy(now, &Request::Release { token: self.token(), stream: stream.id }, false);
        }
    }

    pub(super) fn judge(&mut self, now: Time, stream: StreamInFlight) {
        self.renewed = 0;
        if let Some(refusal) = self.disbelieve(now, &stream) {
            self.cost.streams_discarded += 1;
            self.release(now, &stream);
            return self.refuse(now, refusal);
        }
        let record = stream.record();
        self.sink.stream(&record);
        let arrived = |p: &&PacketReport| p.fate != Fate::Lost;
        self.saw(record.packets.iter().filter(arrived).map(|p| p.size).sum(), now - stream.starts);
        let judged = self.cost.judge(&record);
        self.out.push_back(Output::Event(judged));
        self.tell_of_queue(&stream);
        if stream.arrived() == 0 && self.shrunk(largest(&stream.plan)) {
            self.release(now, &stream);
            self.phase = Phase::Step;
            self.waiting = None;
            return;
        }
        match stream.direction {
            Direction::RoundTrip if stream.arrived() > 0 => self.silent_streams = 0,
            Direction::RoundTrip => self.silent_streams += 1,
            _ => self.release(now, &stream),
        }
        if self.silent_streams >= SILENT_STREAMS {
            return self.refuse(now, Refusal::PeerSilent);
        }
        if let Some(measurement) = self.measurements.front_mut() {
            measurement.estimator.on_stream(&record);
        }
        self.phase = Phase::Step;
        self.waiting = None;
    }

    pub(super) fn refuse(&mut self, now: Time, refusal: Refusal) {
        self.cost.elapsed = now - self.started.unwrap_or(now);
        if let Some(measurement) = self.measurements.pop_front() {
            let (method, direction) = (&measurement.method, measurement.direction);
            for estimate in measurement.estimator.so_far() {
                let (method, cost) = (method.clone(), self.cost);
                self.out.push_back(Output::Event(Decision::Estimated { method, direction, estimate, cost }));
            }
            self.out.push_back(Output::Event(Decision::Refused {
                method: measurement.method,
                direction: measurement.direction,
                refusal,
                cost: self.cost,
            }));
        }
        (self.silent_streams, self.renewed) = (0, 0);
        self.phase = self.between(now);
        self.waiting = None;
    }

    /// The phase behind a measurement: the path is left alone, unless the next would find it so in any case.
    fn between(&mut self, now: Time) -> Phase {
        let probed = self.cost.has_probed_since(&self.cost_before);
        self.cost_before = self.cost;
        match self.config.pause {
            Span::ZERO => Phase::Step,
            pause if probed && !self.measurements.is_empty() => Phase::Pausing(now + pause),
            _ => Phase::Step,
        }
    }

    /// Refuses all methods that are left, for a reason that holds for each.
    pub(super) fn refuse_all(&mut self, now: Time, refusal: &Refusal) {
        if matches!(self.phase, Phase::Finished) {
            return;
        }
        while !self.measurements.is_empty() {
            self.refuse(now, refusal.clone());
        }
        self.finish(now);
    }

    fn finish(&mut self, now: Time) {
        if self.peer.is_some() {
            self.courtesy(now, &Request::Goodbye { token: self.token() }, false);
        }
        self.cost.elapsed = now - self.started.unwrap_or(now);
        self.out.push_back(Output::Event(Decision::Finished { cost: self.cost }));
        self.phase = Phase::Finished;
        self.waiting = None;
    }
}

/// Size of a plan's largest packet at the IP layer.
pub(super) fn largest(plan: &StreamPlan) -> Bytes {
    plan.packets.iter().map(|p| p.size).max().unwrap_or(Bytes::ZERO)
}
