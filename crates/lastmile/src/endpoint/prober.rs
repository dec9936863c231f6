//! The initiator of a measurement: says hello, sends what the estimators ask for, fetches the reports.
//!
//! One session is a list of [`Measurement`]s, done one after the other. For each, the estimator's
//! [`Step`]s become STAMP packets: a forward stream is sent without asking for replies (RFC 9503; a reply per
//! probe would contend with the probes on a WLAN) and its arrivals are fetched afterwards; a reverse stream is
//! asked for (Reflected Test Packet Control) and its departures are fetched afterwards; a round-trip stream
//! needs no more than a plain STAMP reflector.

use core::net::SocketAddr;
use std::collections::VecDeque;

use super::packets::{Codec, Key, PAGE_ENTRIES, Replied, Reply, Request, VERSION, derive_u64};
use super::stream::{Stamp, StreamInFlight};
use crate::estimate::{Estimator, Outcome, Refusal, Step, StreamPlan};
use crate::event::{Cost, Decision, PacketSink};
use crate::node::{Datagram, Ecn, Failure, Flow, Input, Node, Output, PortId, Transmit, TransmitId};
use crate::observe;
use crate::report::Direction;
use crate::time::{Epoch, Span, Time};
use crate::units::{Bytes, IpVersion};
use crate::wire::private::{
    Abilities, HelloReply, Offer, ReportKind, ReportPage, ReportStatus, StreamTag, Token,
};

/// One method in one direction.
pub struct Measurement {
    /// The method's registered name.
    pub method: String,
    /// Which way its streams go.
    pub direction: Direction,
    /// Its state machine.
    pub estimator: Box<dyn Estimator>,
}

/// What a prober needs to know.
#[derive(Clone, Debug)]
pub struct ProberConfig {
    /// The reflector.
    pub peer: SocketAddr,
    /// The shared key; `None` for unauthenticated mode.
    pub key: Option<Key>,
    /// When the run started, for the stamps on the wire.
    pub epoch: Epoch,
    /// Makes nonces, session identifiers and sequence numbers that nobody can guess; random on real networks.
    pub seed: [u8; 32],
    /// Bytes at the IP layer, both directions together, that may be spent.
    pub max_bytes: Option<Bytes>,
    /// Time that may be spent.
    pub max_time: Option<Span>,
    /// When to begin.
    pub start: Time,
    /// Resolution of this host's stamps.
    pub resolution: Span,
    /// DiffServ codepoint of all packets.
    pub dscp: u8,
    /// The flow label for the simulator's observers.
    pub flow: Flow,
}

impl ProberConfig {
    /// Measures towards `peer` with no key and no limits.
    ///
    /// ```
    /// let config = lastmile::endpoint::ProberConfig::new("192.0.2.7:8620".parse().unwrap());
    /// assert!(config.key.is_none());
    /// ```
    pub fn new(peer: SocketAddr) -> ProberConfig {
        ProberConfig {
            peer,
            key: None,
            epoch: Epoch::default(),
            seed: [0; 32],
            max_bytes: None,
            max_time: None,
            start: Time::ZERO,
            resolution: Span::from_nanos(1),
            dscp: 0,
            flow: Flow::default(),
        }
    }
}

/// A stream is handed over this long before its first packet, so that a sending thread is awake and waiting.
const LEAD: Span = Span::from_millis(2);
/// Longer silence may close a NAT's mapping.
const KEEP_ALIVE: Span = Span::from_secs(15);
/// Between packets that are sent only to pay.
const CREDIT_GAP: Span = Span::from_millis(5);
/// Size of packets that are sent only to pay.
const CREDIT_SIZE: Bytes = Bytes(1_488);
/// A stream's last packets may take this long beyond the plan before they count as lost.
const GRACE: Span = Span::from_millis(500);
const TRIES: u32 = 5;

/// What the session is doing.
enum Phase {
    /// Waiting for the peer's first answer.
    Hello,
    /// The peer is silent to our key: a hello without it tells a wrong key from no reflector.
    KeyCheck,
    /// Ask the estimator.
    Step,
    /// Before a reverse stream: a hello that says what the peer has counted in our favour.
    Credit(StreamPlan, u32),
    /// Sending packets that only pay, until then.
    Paying(StreamPlan, u32, Time),
    /// A stream is on its way.
    Streaming(StreamInFlight),
    /// Its report is being fetched, page by page.
    Reporting(StreamInFlight, u16),
    /// The estimator wants quiet until then.
    Pausing(Time),
    /// Nothing more to do.
    Finished,
}

/// A request that waits for its reply.
#[derive(Clone, Debug)]
struct Waiting {
    sequence: u32,
    stamp: u64,
    sent: Time,
    tries: u32,
    until: Time,
}

/// The initiator of a measurement.
pub struct Prober<S: PacketSink = ()> {
    config: ProberConfig,
    codec: Codec,
    measurements: VecDeque<Measurement>,
    phase: Phase,
    waiting: Option<Waiting>,
    peer: Option<Offer>,
    failure: Option<Failure>,
    rtt: Span,
    started: Option<Time>,
    next_stream: u32,
    next_id: u64,
    cost: Cost,
    last_sent: Time,
    out: VecDeque<Output>,
    sink: S,
}

impl Prober<()> {
    /// A prober that keeps no per-packet records.
    pub fn new(config: ProberConfig, measurements: Vec<Measurement>) -> Prober<()> {
        Prober::with_sink(config, measurements, ())
    }
}

impl<S: PacketSink> Prober<S> {
    /// A prober that gives the record of every stream to `sink`.
    pub fn with_sink(config: ProberConfig, measurements: Vec<Measurement>, sink: S) -> Prober<S> {
        let ip = IpVersion::of(config.peer);
        Prober {
            codec: Codec::new(config.key.clone(), config.epoch, &config.seed, ip),
            measurements: measurements.into(),
            phase: Phase::Hello,
            waiting: None,
            peer: None,
            failure: None,
            rtt: Span::ZERO,
            started: None,
            next_stream: 1,
            next_id: 1,
            cost: Cost::default(),
            last_sent: Time::ZERO,
            out: VecDeque::new(),
            sink,
            config,
        }
    }

    /// Whether all is done and said.
    pub fn is_finished(&self) -> bool {
        matches!(self.phase, Phase::Finished) && self.out.is_empty()
    }

    /// The sink, with what it collected.
    pub fn sink(&self) -> &S {
        &self.sink
    }

    fn token(&self) -> Token {
        self.peer.map_or([0; 16], |offer| offer.token)
    }

    fn nonce(&self) -> u64 {
        derive_u64(&self.config.seed, "nonce", 0)
    }

    // ---- sending ----------------------------------------------------------------------------------------------

    fn transmit(&mut self, at: Time, ecn: Ecn, payload: Vec<u8>) -> TransmitId {
        let id = TransmitId(self.next_id);
        self.next_id += 1;
        self.last_sent = self.last_sent.max(at);
        let unspecified = if self.config.peer.is_ipv4() { [0, 0, 0, 0].into() } else { [0_u16; 8].into() };
        let datagram = Datagram {
            ecn,
            dscp: self.config.dscp,
            flow: self.config.flow,
            ..Datagram::udp(SocketAddr::new(unspecified, 0), self.config.peer, payload)
        };
        self.out.push_back(Output::Transmit(Transmit { id, at, port: PortId(0), datagram }));
        id
    }

    /// Sends, or sends again, the request that the phase waits for.
    fn request(&mut self, now: Time) {
        let tries = self.waiting.as_ref().map_or(0, |w| w.tries);
        let token = self.token();
        let (sequence, stamp) = (self.codec.next_sequence(), self.codec.stamp(now));
        let nonce = self.nonce();
        let bytes = match &self.phase {
            Phase::Hello | Phase::Credit(..) => {
                self.codec.encode(now, &Request::Hello { nonce, token }, None)
            }
            Phase::KeyCheck => self.codec.encode_open_hello(now, nonce),
            Phase::Reporting(stream, page) => {
                let kind = match stream.direction {
                    Direction::Reverse => ReportKind::Departures,
                    _ => ReportKind::Arrivals,
                };
                let entries = stream.len().min(PAGE_ENTRIES);
                let request = Request::Report { token, stream: stream.id, page: *page, kind, entries };
                self.codec.encode(now, &request, None)
            }
            _ => return,
        };
        self.cost.control_bytes += Bytes(bytes.len() as u64) + IpVersion::of(self.config.peer).udp_overhead();
        self.transmit(now, Ecn::NotEct, bytes);
        let first = (self.rtt * 3).max(Span::from_millis(250));
        let timeout = (first * (1_i64 << tries.min(8))).min(Span::from_secs(1).max(first));
        self.waiting = Some(Waiting { sequence, stamp, sent: now, tries: tries + 1, until: now + timeout });
    }

    fn enter(&mut self, now: Time, phase: Phase) {
        self.phase = phase;
        self.waiting = None;
        self.request(now);
    }

    // ---- the estimator's steps --------------------------------------------------------------------------------

    fn step(&mut self, now: Time) {
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
                self.phase = Phase::Step;
            }
            Step::Send(plan) => {
                let direction = measurement.direction;
                if let Err(refusal) = self.admit(now, direction, &plan) {
                    return self.refuse(now, refusal);
                }
                match direction {
                    Direction::Reverse if !self.codec.is_authenticated() => {
                        self.enter(now, Phase::Credit(plan, 0));
                    }
                    _ => self.start(now, direction, plan),
                }
            }
        }
    }

    /// Whether a stream may be sent: the peer can take it, and the limits hold beyond it.
    fn admit(&self, now: Time, direction: Direction, plan: &StreamPlan) -> Result<(), Refusal> {
        let offer = self.peer.as_ref();
        let most = offer.map_or(usize::MAX, |o| usize::from(o.max_packets));
        let needed = match direction {
            Direction::Forward => Abilities::ARRIVAL_REPORTS,
            Direction::Reverse => Abilities::REVERSE_STREAMS | Abilities::DEPARTURE_REPORTS,
            Direction::RoundTrip => Abilities::default(),
        };
        if !offer.map_or(Abilities::default(), |o| o.abilities).contains(needed) {
            return Err(Refusal::PeerCannot(format!(
                "{} speaks plain STAMP only, and the {direction} direction needs a lastmile reflector; use --method capprobe --direction round-trip, or run `lastmile serve` there",
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
        if let Some(limit) = self.config.max_bytes {
            // A reply doubles the bytes; credit may have to be earned; a report follows.
            let factor = if direction == Direction::RoundTrip { 2 } else { 1 };
            let report = Bytes(2 * (200 + 8 * plan.packets.len() as u64));
            let spent = self.cost.bytes() + self.cost.bytes_received;
            if spent + plan.bytes() * factor + report > limit {
                return Err(Refusal::ByteLimit { limit });
            }
        }
        if let (Some(limit), Some(started)) = (self.config.max_time, self.started)
            && now + plan.duration() + LEAD + self.rtt > started + limit
        {
            return Err(Refusal::TimeLimit { limit });
        }
        Ok(())
    }

    /// Pays for a reverse stream, or sends it when the credit that the peer counted is enough.
    fn pay(&mut self, now: Time, credit: u64, plan: StreamPlan, tries: u32) {
        let missing = plan.bytes() - Bytes(credit);
        if missing == Bytes::ZERO {
            return self.start(now, Direction::Reverse, plan);
        }
        let packets = missing.0.div_ceil(CREDIT_SIZE.0);
        let spent = self.cost.bytes() + self.cost.bytes_received + CREDIT_SIZE * packets + plan.bytes();
        match self.config.max_bytes {
            Some(limit) if spent > limit => return self.refuse(now, Refusal::ByteLimit { limit }),
            _ if tries >= TRIES => {
                return self.refuse(now, Refusal::PeerCannot(format!(
                    "{} counts too little of what is sent to pay for a reverse stream; the path loses too much, or give both sides a key",
                    self.config.peer
                )));
            }
            _ => {}
        }
        let token = self.token();
        for k in 0..packets {
            let at = now + CREDIT_GAP * k as i64;
            let bytes = self.codec.encode(at, &Request::Pay { token }, Some(CREDIT_SIZE));
            self.transmit(at, Ecn::NotEct, bytes);
        }
        self.cost.credit_bytes += CREDIT_SIZE * packets;
        self.phase = Phase::Paying(plan, tries + 1, now + CREDIT_GAP * packets as i64);
        self.waiting = None;
    }

    fn start(&mut self, now: Time, direction: Direction, plan: StreamPlan) {
        let id = self.next_stream;
        self.next_stream += 1;
        let starts = now + LEAD;
        let mut stream = StreamInFlight::new(id, direction, plan, starts, self.config.resolution);
        stream.first_seq = self.codec.next_sequence();
        stream.first_id = self.next_id;
        let (token, count) = (self.token(), stream.len() as u16);
        if direction == Direction::Reverse {
            for what in stream.reverse_requests() {
                let at = starts + what.offset;
                let request = Request::Reverse { token, stream: id, total: count, what };
                let bytes = self.codec.encode(at, &request, None);
                self.cost.control_bytes +=
                    Bytes(bytes.len() as u64) + IpVersion::of(self.config.peer).udp_overhead();
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
            self.cost.probe_bytes += stream.plan.bytes();
        }
        self.phase = Phase::Streaming(stream);
        self.waiting = None;
    }

    /// Fetches what the other side knows of a stream, or judges it when nothing is missing.
    fn streamed(&mut self, now: Time, stream: StreamInFlight) {
        if stream.direction == Direction::RoundTrip {
            self.judge(now, stream);
        } else {
            self.enter(now, Phase::Reporting(stream, 0));
        }
    }

    fn judge(&mut self, now: Time, stream: StreamInFlight) {
        let record = stream.record();
        self.sink.stream(&record);
        let judged = observe::judge(&record);
        self.out.push_back(Output::Event(Decision::StreamJudged {
            stream: record.stream,
            direction: record.direction,
            pattern: record.pattern,
            packets: record.packets.len() as u32,
            lost: record.lost() as u32,
            gaps_held: judged.gaps_held,
            verdict: judged.verdict,
        }));
        match judged.verdict {
            crate::event::StreamVerdict::Believed => self.cost.streams += 1,
            _ => self.cost.streams_discarded += 1,
        }
        if stream.direction != Direction::RoundTrip {
            let bytes =
                self.codec.encode(now, &Request::Release { token: self.token(), stream: stream.id }, None);
            self.cost.control_bytes +=
                Bytes(bytes.len() as u64) + IpVersion::of(self.config.peer).udp_overhead();
            self.transmit(now, Ecn::NotEct, bytes);
        }
        if let Some(measurement) = self.measurements.front_mut() {
            measurement.estimator.on_stream(&record);
        }
        self.phase = Phase::Step;
        self.waiting = None;
    }

    fn refuse(&mut self, now: Time, refusal: Refusal) {
        self.cost.elapsed = now - self.started.unwrap_or(now);
        if let Some(measurement) = self.measurements.pop_front() {
            self.out.push_back(Output::Event(Decision::Refused {
                method: measurement.method,
                direction: measurement.direction,
                refusal,
                cost: self.cost,
            }));
        }
        self.phase = Phase::Step;
        self.waiting = None;
    }

    /// What is wrong is wrong for every method that is left.
    fn refuse_all(&mut self, now: Time, refusal: &Refusal) {
        while !self.measurements.is_empty() {
            self.refuse(now, refusal.clone());
        }
        self.finish(now);
    }

    fn finish(&mut self, now: Time) {
        self.cost.elapsed = now - self.started.unwrap_or(now);
        self.out.push_back(Output::Event(Decision::Finished { cost: self.cost }));
        self.phase = Phase::Finished;
        self.waiting = None;
    }

    // ---- receiving --------------------------------------------------------------------------------------------

    fn on_datagram(&mut self, now: Time, at: Time, datagram: &Datagram) {
        let Some(bytes) = datagram.payload.udp() else { return };
        if datagram.from.port() != self.config.peer.port()
            || datagram.from.ip().to_canonical() != self.config.peer.ip().to_canonical()
        {
            return;
        }
        self.cost.bytes_received += datagram.ip_size();
        let replied = match self.phase {
            Phase::KeyCheck => self.codec.decode_open(bytes),
            _ => self.codec.decode(bytes),
        };
        // What cannot be read, or answers nothing that was asked, is not from our peer or not for us.
        let Ok(replied) = replied else { return };
        if self.on_stream_packet(&replied, at, datagram) {
            return;
        }
        let Some(waiting) = self.waiting.clone() else { return };
        if replied.sequence != waiting.sequence || replied.stamp != waiting.stamp {
            return;
        }
        match replied.reply {
            Reply::Hello(hello) if hello.nonce == self.nonce() => self.on_hello(now, at, &waiting, &hello),
            Reply::Plain if matches!(self.phase, Phase::Hello) => self.on_plain(now, at, &waiting),
            Reply::Report(page) => self.on_report(now, &page),
            _ => {}
        }
    }

    fn on_stream_packet(&mut self, replied: &Replied<'_>, at: Time, datagram: &Datagram) -> bool {
        let token = self.token();
        let Phase::Streaming(stream) = &mut self.phase else { return false };
        match (&replied.reply, stream.direction) {
            (Reply::Stream(tag), Direction::Reverse) if tag.stream == stream.id && tag.token == token => {
                stream.on_arrival(usize::from(tag.index), at, datagram.ecn, datagram.ip_size());
            }
            (Reply::Plain, Direction::RoundTrip) => {
                let index = replied.sequence.wrapping_sub(stream.first_seq) as usize;
                let planned = stream.plan.packets.get(index).map(|p| stream.starts + p.offset);
                if planned.is_some_and(|planned| self.codec.stamp(planned) == replied.stamp) {
                    stream.on_arrival(index, at, datagram.ecn, datagram.ip_size());
                }
            }
            (Reply::ReverseRefused, Direction::Reverse) => {
                // The report will say that the reflector knows no such stream.
                stream.answered = usize::MAX;
            }
            _ => return false,
        }
        true
    }

    fn ready(&mut self, at: Time, waiting: &Waiting, lastmile: bool) {
        if waiting.tries == 1 || self.rtt == Span::ZERO {
            self.rtt = (at - waiting.sent).max(Span::ZERO);
        }
        if matches!(self.phase, Phase::Hello) {
            let decision = Decision::PeerReady { peer: self.config.peer, lastmile, rtt: self.rtt };
            self.out.push_back(Output::Event(decision));
        }
    }

    fn on_hello(&mut self, now: Time, at: Time, waiting: &Waiting, hello: &HelloReply) {
        let peer = self.config.peer;
        if matches!(self.phase, Phase::KeyCheck) {
            return self.refuse_all(now, &Refusal::PeerCannot(if hello.offer.abilities.contains(Abilities::AUTHENTICATED) {
                format!("{peer} asks for a key, and does not accept this one: the key is wrong")
            } else {
                format!("{peer} works without a key and does not know ours; leave out --key-file, or give the server the key")
            }));
        }
        if hello.offer.abilities.contains(Abilities::AUTHENTICATED) && !self.codec.is_authenticated() {
            let why = format!("{peer} asks for a key: give it with --key-file");
            return self.refuse_all(now, &Refusal::PeerCannot(why));
        }
        if hello.offer.version != Some(VERSION) {
            let (low, high) = (hello.version_min, hello.version_max);
            let why = format!(
                "{peer} speaks versions {low} to {high} of the exchange, this program {VERSION}: upgrade the older"
            );
            return self.refuse_all(now, &Refusal::PeerCannot(why));
        }
        self.ready(at, waiting, true);
        self.peer = Some(hello.offer);
        match core::mem::replace(&mut self.phase, Phase::Step) {
            Phase::Credit(plan, tries) => self.pay(now, hello.offer.credit, plan, tries),
            _ => self.waiting = None,
        }
    }

    fn on_plain(&mut self, now: Time, at: Time, waiting: &Waiting) {
        let _ = now;
        self.ready(at, waiting, false);
        self.phase = Phase::Step;
        self.waiting = None;
    }

    fn on_report(&mut self, now: Time, page: &ReportPage<'_>) {
        let Phase::Reporting(stream, wanted) = &mut self.phase else { return };
        if page.head.stream != stream.id || page.head.page != *wanted {
            return;
        }
        match page.head.status {
            ReportStatus::Ok => {}
            ReportStatus::Running | ReportStatus::Busy => {
                // Asked again soon: its last departures are being stamped.
                if let Some(waiting) = &mut self.waiting {
                    waiting.until = now + Span::from_millis(50);
                }
                return;
            }
            status => {
                let why = match status {
                    ReportStatus::CreditExhausted => "has spent its budget for this address; try again later",
                    _ => "knows nothing of the stream: none of its packets came, or its lease ended",
                };
                let why = format!("{} {why}", self.config.peer);
                return self.refuse(now, Refusal::PeerCannot(why));
            }
        }
        let resolution = Span::from_nanos(i64::from(page.head.resolution_ns.max(1)));
        let (stamps, own) = match stream.direction {
            Direction::Reverse => (&mut stream.departures, &mut stream.tx_resolution),
            _ => (&mut stream.arrivals, &mut stream.rx_resolution),
        };
        *own = resolution;
        stream.clock_stepped |= page.head.clock_stepped;
        for (index, arrival) in page.entries() {
            if let (Some(slot), Some(arrival)) = (stamps.get_mut(usize::from(index)), arrival) {
                let ns = page.head.base_ns.saturating_add(arrival.offset_ns);
                *slot = Some(Stamp { ns, ecn: Ecn::from_bits(arrival.ecn), late: arrival.late });
            }
        }
        let next = *wanted + 1;
        let Phase::Reporting(stream, _) = core::mem::replace(&mut self.phase, Phase::Step) else { return };
        if next < page.head.pages {
            self.enter(now, Phase::Reporting(stream, next));
        } else {
            self.judge(now, stream);
        }
    }

    fn on_sent(&mut self, id: TransmitId, at: Option<Time>) {
        let Phase::Streaming(stream) = &mut self.phase else { return };
        let Some(index) = id.0.checked_sub(stream.first_id).map(|i| i as usize) else { return };
        if stream.direction != Direction::Reverse && index < stream.len() {
            stream.answered = stream.answered.saturating_add(1);
            if let Some(at) = at {
                stream.departures[index] = Some(Stamp { ns: at.as_nanos(), ecn: Ecn::NotEct, late: false });
            }
        }
    }

    // ---- time -------------------------------------------------------------------------------------------------

    /// When the phase is over even if nothing comes.
    fn deadline(&self) -> Option<Time> {
        let phase = match &self.phase {
            Phase::Streaming(s) => Some(s.ends() + GRACE + self.rtt * 2),
            Phase::Pausing(until) => Some((*until).min(self.last_sent.max(Time::ZERO) + KEEP_ALIVE)),
            Phase::Paying(_, _, until) => Some(*until + self.rtt),
            _ => self.waiting.as_ref().map(|w| w.until),
        };
        let limit = match (&self.phase, self.started, self.config.max_time) {
            (Phase::Finished, ..) => None,
            (_, Some(started), Some(limit)) => Some(started + limit),
            _ => None,
        };
        [phase, limit].into_iter().flatten().min()
    }

    fn on_time(&mut self, now: Time) {
        if let (Some(started), Some(limit)) = (self.started, self.config.max_time)
            && now >= started + limit
            && !matches!(self.phase, Phase::Finished)
        {
            return self.refuse_all(now, &Refusal::TimeLimit { limit });
        }
        if self.waiting.as_ref().is_some_and(|w| now >= w.until) {
            return self.on_silence(now);
        }
        match core::mem::replace(&mut self.phase, Phase::Step) {
            Phase::Streaming(stream) if self.stream_is_over(now, &stream) => self.streamed(now, stream),
            Phase::Paying(plan, tries, until) if now >= until + self.rtt => {
                self.enter(now, Phase::Credit(plan, tries));
            }
            Phase::Pausing(until) if now >= until => {}
            Phase::Pausing(until) if now >= self.last_sent + KEEP_ALIVE => {
                let (nonce, token) = (self.nonce(), self.token());
                let bytes = self.codec.encode(now, &Request::Hello { nonce, token }, None);
                self.cost.control_bytes +=
                    Bytes(bytes.len() as u64) + IpVersion::of(self.config.peer).udp_overhead();
                self.transmit(now, Ecn::NotEct, bytes);
                self.phase = Phase::Pausing(until);
            }
            phase => self.phase = phase,
        }
    }

    fn stream_is_over(&self, now: Time, stream: &StreamInFlight) -> bool {
        if now >= stream.ends() + GRACE + self.rtt * 2 {
            return true;
        }
        let all_sent = stream.answered >= stream.len();
        match stream.direction {
            Direction::Forward => all_sent,
            Direction::Reverse => stream.arrived() == stream.len() || stream.answered == usize::MAX,
            Direction::RoundTrip => all_sent && stream.arrived() == stream.len(),
        }
    }

    fn on_silence(&mut self, now: Time) {
        let tries = self.waiting.as_ref().map_or(0, |w| w.tries);
        let closed = self.failure == Some(Failure::PortClosed);
        if tries < TRIES && !closed {
            return self.request(now);
        }
        let peer = self.config.peer;
        let refusal = match &self.phase {
            Phase::Hello if closed => Refusal::PeerCannot(format!(
                "{peer}: nothing listens on that port; start `lastmile serve` there, or name its port"
            )),
            Phase::Hello if self.codec.is_authenticated() => {
                return self.enter(now, Phase::KeyCheck);
            }
            Phase::Hello | Phase::KeyCheck => Refusal::PeerCannot(match self.failure {
                Some(failure) => format!("{peer}: {failure}"),
                None => {
                    format!("{peer} does not answer: no STAMP reflector there, or a firewall drops UDP to it")
                }
            }),
            _ => Refusal::PeerSilent,
        };
        self.refuse_all(now, &refusal);
    }

    fn on_failed(&mut self, now: Time, id: Option<TransmitId>, reason: Failure) {
        self.failure = Some(reason);
        if let Some(id) = id {
            self.on_sent(id, None);
        }
        if reason == Failure::PortClosed && matches!(self.phase, Phase::Hello) {
            self.on_silence(now);
        }
    }
}

impl<S: PacketSink> Node for Prober<S> {
    fn handle(&mut self, now: Time, input: Input) {
        if self.started.is_none() {
            if now < self.config.start {
                return;
            }
            self.started = Some(now);
            self.request(now);
        }
        match input {
            Input::Datagram { at, datagram, .. } => self.on_datagram(now, at, &datagram),
            Input::Sent { id, at } => self.on_sent(id, Some(at)),
            Input::Failed { id, reason } => self.on_failed(now, id, reason),
            Input::ClockStepped { by } => {
                if let Phase::Streaming(stream) | Phase::Reporting(stream, _) = &mut self.phase {
                    stream.clock_stepped = true;
                }
                self.out.push_back(Output::Event(Decision::ClockStepped { by }));
            }
            Input::Wake => {}
        }
        self.on_time(now);
        while matches!(self.phase, Phase::Step) {
            self.step(now);
        }
    }

    fn poll(&mut self, _now: Time) -> Output {
        self.out.pop_front().unwrap_or_else(|| {
            Output::Wait(if self.started.is_none() { Some(self.config.start) } else { self.deadline() })
        })
    }
}
