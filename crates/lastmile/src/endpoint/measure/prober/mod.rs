//! The initiator of a measurement: says hello, sends what the estimators ask for, fetches the reports.
//!
//! One session is a list of [`Measurement`]s, done one after the other. For each, the estimator's
//! [`Step`]s become STAMP packets: a forward stream is sent without asking for replies (RFC 9503; a reply per
//! probe would contend with the probes on a WLAN) and its arrivals are fetched afterwards; a reverse stream is
//! asked for (Reflected Test Packet Control) and its departures are fetched afterwards; a round-trip stream
//! needs no more than a plain STAMP reflector.

mod config;
mod receive;
mod steps;

use core::net::SocketAddr;
use std::collections::VecDeque;

pub use config::{Measurement, ProberConfig};

use super::packets::{Codec, PAGE_ENTRIES, Request, SMALL_PAGE, derive_u64};
use super::stream::StreamInFlight;
use crate::endpoint::Endpoint;
use crate::endpoint::measure::event::{Cost, Decision, PacketSink};
use crate::estimate::{Refusal, StreamPlan};
use crate::node::{Datagram, Ecn, Failure, Input, Node, Output, PortId, Transmit, TransmitId};
use crate::report::Direction;
use crate::time::{Span, Time};
use crate::units::{Bytes, IpVersion, Rate};
use crate::wire::private::{Offer, ReportKind, Token};

/// Longer silence may close a NAT's mapping.
const KEEP_ALIVE: Span = Span::from_secs(15);
/// A stream's last packets may take this long beyond the plan before they count as lost.
const GRACE: Span = Span::from_millis(500);
/// A request waits so long at least before its peer counts as silent: on a congested path many packets are lost in a row.
const PATIENCE: Span = Span::from_secs(10);
/// After so many of them a report is asked for in small pages: large ones may not pass.
const LARGE: usize = 3;
/// A peer that was asked so long ago is said to be quiet, at the next request.
const QUIET: Span = Span::from_millis(1_500);
/// However slow the path may be, nothing is waited for longer than this without a sign of life: 90 kB at 12 kbit/s.
const LONGEST_GRACE: Span = Span::from_secs(60);
/// Requests are sent again after this at most, as long as [`PATIENCE`] lasts.
const AGAIN: Span = Span::from_secs(1);
/// Requests beyond [`PATIENCE`] are sent ever more rarely, up to this: on a slow path they only add to the queue.
const RAREST: Span = Span::from_secs(8);

/// Phase of the session.
enum Phase {
    /// Waiting for the peer's first answer.
    Hello,
    /// The peer is silent to our key: a hello without it tells a wrong key from no reflector.
    KeyCheck,
    /// Ask the estimator.
    Step,
    /// Before a stream: a hello that says what the peer has counted in our favour, and begins a session where the old one
    /// may be over.
    Credit(StreamPlan, usize),
    /// Sending packets that only pay, until then.
    Paying(StreamPlan, usize, Time),
    /// A stream is on its way.
    Streaming(StreamInFlight),
    /// Its report is being fetched, page by page.
    Reporting(StreamInFlight, u16),
    /// The estimator wants quiet until then.
    Pausing(Time),
    /// Nothing more to do.
    Finished,
}

/// A request that waits for its reply. It is sent several times if need be, and a reply to any of them counts: on a
/// path of long delay only the first may be answered before the last is sent.
#[derive(Clone, Debug)]
struct Waiting {
    tries: Vec<Try>,
    until: Time,
    /// Answers of the peer that it is not ready.
    unready: u32,
    /// It was said that the peer is quiet.
    quiet: bool,
}

#[derive(Clone, Copy, Debug)]
struct Try {
    sequence: u32,
    stamp: u64,
    sent: Time,
}

/// The initiator of a measurement.
pub struct Prober<S: PacketSink = ()> {
    config: ProberConfig,
    codec: Codec,
    measurements: VecDeque<Measurement>,
    phase: Phase,
    waiting: Option<Waiting>,
    peer: Option<Offer>,
    /// When that was asked to which the peer last gave an answer: its session there was alive then, or may be begun.
    welcome: Time,
    failure: Option<Failure>,
    /// Packets from the peer that are no STAMP, and the UDP payloads of the smallest and the largest.
    foreign: Option<(u64, usize, usize)>,
    /// Answers in a row that the peer knows nothing of a stream, each followed by a hello.
    renewed: u32,
    /// The largest packets that pass, as far as is known.
    fits: Bytes,
    /// Entries that a page of a report is asked for.
    page_entries: usize,
    /// Our token and the credit that the peer counted before the last payment.
    before_paying: (Token, u64),
    rtt: Span,
    /// Highest rate at which the path was seen to carry bytes.
    seen: Rate,
    /// IP bytes sent since the peer last answered: they may still stand in a queue.
    unanswered: Bytes,
    started: Option<Time>,
    next_stream: u32,
    next_id: u64,
    cost: Cost,
    /// The cost at the last measurement's end.
    cost_before: Cost,
    /// IP bytes sent, and those that the peer may send for them.
    committed: Bytes,
    /// Round-trip streams in a row of which nothing came back.
    silent_streams: u32,
    /// Methods in a row that ended in the peer's silence.
    silent_methods: u32,
    last_sent: Time,
    /// Directions of which it was said that the queue of the sender's own interface is part of the path.
    queue_told: Vec<Direction>,
    out: VecDeque<Output<Decision>>,
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
            welcome: Time::ZERO,
            failure: None,
            foreign: None,
            renewed: 0,
            fits: Bytes(u64::MAX),
            page_entries: PAGE_ENTRIES,
            before_paying: ([0; 16], 0),
            rtt: Span::ZERO,
            seen: Rate::ip(0),
            unanswered: Bytes::ZERO,
            started: None,
            next_stream: 1,
            next_id: 1,
            cost: Cost::default(),
            cost_before: Cost::default(),
            committed: Bytes::ZERO,
            silent_streams: 0,
            silent_methods: 0,
            last_sent: Time::ZERO,
            queue_told: Vec::new(),
            out: VecDeque::new(),
            sink,
            config,
        }
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
        self.unanswered += self.ip_size(&payload);
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

    /// Size of a packet of this session at the IP layer.
    fn ip_size(&self, payload: &[u8]) -> Bytes {
        Bytes(payload.len() as u64) + IpVersion::of(self.config.peer).udp_overhead()
    }

    /// Refuses `more` bytes, of both directions together, beyond the byte limit.
    fn afford(&self, more: Bytes) -> Result<(), Refusal> {
        let spent = self.committed.max(self.cost.bytes() + self.cost.bytes_received);
        match self.config.max_bytes {
            Some(limit) if spent + more > limit => Err(Refusal::ByteLimit { limit }),
            _ => Ok(()),
        }
    }

    /// Sends a packet of control at once, if the byte limit allows it and its `answer`.
    fn control(&mut self, now: Time, payload: Vec<u8>, answer: Bytes) -> Result<(), Refusal> {
        let size = self.ip_size(&payload);
        self.afford(size + answer)?;
        self.committed += size + answer;
        self.cost.control_bytes += size;
        self.transmit(now, Ecn::NotEct, payload);
        Ok(())
    }

    /// Sends, or sends again, the request that the phase waits for.
    fn request(&mut self, now: Time) {
        let token = self.token();
        let this = Try { sequence: self.codec.next_sequence(), stamp: self.codec.stamp(now), sent: now };
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
                let entries = stream.len().min(self.page_entries);
                let request = Request::Report { token, stream: stream.id, page: *page, kind, entries };
                self.codec.encode(now, &request, None)
            }
            _ => return,
        };
        let answer = self.ip_size(&bytes);
        if let Err(refusal) = self.control(now, bytes, answer) {
            return self.refuse_all(now, &refusal);
        }
        let first = (self.rtt * 3).max(Span::from_millis(250));
        let waiting =
            self.waiting.get_or_insert(Waiting { tries: Vec::new(), until: now, unready: 0, quiet: false });
        let asked = waiting.tries.first().map_or(now, |first| first.sent);
        let timeout = if now < asked + PATIENCE {
            (first * (1_i64 << waiting.tries.len().min(8))).min(AGAIN.max(first))
        } else {
            (now - asked - PATIENCE + AGAIN * 2).min(RAREST).max(first)
        };
        waiting.tries.push(this);
        waiting.until = now + timeout;
    }

    /// Tells the peer something that needs no answer, or keeps a NAT's mapping open; left out where the byte limit
    /// does not allow it.
    fn courtesy(&mut self, now: Time, request: &Request, answered: bool) {
        let bytes = self.codec.encode(now, request, None);
        let answer = if answered { self.ip_size(&bytes) } else { Bytes::ZERO };
        let _ = self.control(now, bytes, answer);
    }

    fn enter(&mut self, now: Time, phase: Phase) {
        self.phase = phase;
        self.waiting = None;
        self.request(now);
    }

    // ---- patience ---------------------------------------------------------------------------------------------

    /// The path carried so many IP bytes within that time.
    fn saw(&mut self, bytes: Bytes, within: Span) {
        if within > Span::ZERO {
            let rate = Rate::ip((bytes.bits() as f64 * 1e9 / within.as_nanos() as f64) as u64);
            self.seen = Rate::ip(self.seen.bits_per_second().max(rate.bits_per_second()));
        }
    }

    /// When a peer that was asked at `asked` counts as silent, and not before.
    fn silent_at(&self, asked: Time) -> Time {
        asked + self.patience(self.unanswered).max(PATIENCE)
    }

    /// Time that so many bytes may take at the rate seen so far; half as much again, for other traffic on the path.
    fn patience(&self, bytes: Bytes) -> Span {
        if self.seen.bits_per_second() == 0 {
            return Span::ZERO;
        }
        self.seen.time_for(bytes).scaled(1.5).min(LONGEST_GRACE)
    }

    /// When a stream counts as over, whatever is missing of it.
    ///
    /// Packets received here may stand in a queue long after they were sent. As long as packets come, the next one is waited
    /// for: three times the longest gap seen. Before there is one, the rate seen on the path has to do.
    fn over_at(&self, stream: &StreamInFlight) -> Time {
        let planned = stream.ends() + GRACE + self.rtt * 2;
        match (stream.direction, stream.last_arrival) {
            (Direction::Forward, _) => planned,
            (_, last) => {
                let largest = stream.plan.packets.iter().map(|p| p.size).max().unwrap_or(Bytes::ZERO);
                let next = match stream.longest_gap {
                    Span::ZERO => self.patience(largest),
                    gap => gap * 3,
                };
                let next = last.map_or(planned + next, |last| last + next);
                planned.max(next.min(planned + LONGEST_GRACE))
            }
        }
    }

    // ---- time -------------------------------------------------------------------------------------------------

    /// When the phase is over even if nothing comes.
    fn deadline(&self) -> Option<Time> {
        let phase = match &self.phase {
            Phase::Streaming(s) if s.direction == Direction::Reverse => {
                Some(self.over_at(s).min(self.last_sent + KEEP_ALIVE))
            }
            Phase::Streaming(s) => Some(self.over_at(s)),
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
            let unanswered = matches!(self.phase, Phase::Hello | Phase::KeyCheck);
            let refusal = if unanswered { self.no_answer(false) } else { Refusal::TimeLimit { limit } };
            return self.refuse_all(now, &refusal);
        }
        if self.waiting.as_ref().is_some_and(|w| now >= w.until) {
            return self.on_silence(now);
        }
        match core::mem::replace(&mut self.phase, Phase::Step) {
            Phase::Streaming(stream) if self.stream_is_over(now, &stream) => self.streamed(now, stream),
            Phase::Streaming(stream) => {
                // A long queue on the way here must not outlast the lease there.
                if stream.direction == Direction::Reverse && now >= self.last_sent + KEEP_ALIVE {
                    self.keep_alive(now);
                }
                self.phase = Phase::Streaming(stream);
            }
            Phase::Paying(plan, tries, until) if now >= until + self.rtt => {
                self.enter(now, Phase::Credit(plan, tries));
            }
            Phase::Pausing(until) if now >= until => {}
            Phase::Pausing(until) if now >= self.last_sent + KEEP_ALIVE => {
                self.keep_alive(now);
                self.phase = Phase::Pausing(until);
            }
            phase => self.phase = phase,
        }
    }

    fn keep_alive(&mut self, now: Time) {
        let (nonce, token) = (self.nonce(), self.token());
        self.courtesy(now, &Request::Hello { nonce, token }, true);
        // Also where nothing could be sent: or this time would come again and again.
        self.last_sent = now;
    }

    fn stream_is_over(&self, now: Time, stream: &StreamInFlight) -> bool {
        if now >= self.over_at(stream) {
            return true;
        }
        let all_sent = stream.answered >= stream.len();
        match stream.direction {
            Direction::Forward => all_sent,
            Direction::Reverse => stream.arrived() == stream.len() || stream.answered == usize::MAX,
            Direction::RoundTrip => all_sent && stream.arrived() == stream.len(),
        }
    }

    /// Says once for each request that nothing comes, so that nobody waits without knowing for what. The first hello is given
    /// up soon anyway.
    fn tell_of_quiet(&mut self, now: Time, asked: Time) {
        let patience = self.silent_at(asked) - now;
        let Some(waiting) = self.waiting.as_mut().filter(|w| !w.quiet && now >= asked + QUIET) else {
            return;
        };
        if matches!(self.phase, Phase::Hello | Phase::KeyCheck) {
            return;
        }
        waiting.quiet = true;
        let (peer, silent) = (self.config.peer, now - asked);
        self.out.push_back(Output::Event(Decision::PeerQuiet { peer, silent, patience }));
    }

    fn on_silence(&mut self, now: Time) {
        let tries = self.waiting.as_ref().map_or(0, |w| w.tries.len());
        // Later it may be starting again.
        let closed = self.failure == Some(Failure::PortClosed) && matches!(self.phase, Phase::Hello);
        let asked = self.waiting.as_ref().and_then(|w| w.tries.first()).map_or(now, |t| t.sent);
        if now < self.silent_at(asked) && !closed {
            self.tell_of_quiet(now, asked);
            // Later pages follow a first one of their size.
            if tries >= LARGE && matches!(self.phase, Phase::Reporting(_, 0)) {
                self.page_entries = SMALL_PAGE;
            }
            return self.request(now);
        }
        match &self.phase {
            Phase::Hello if !closed && self.codec.is_authenticated() => self.enter(now, Phase::KeyCheck),
            Phase::Hello | Phase::KeyCheck => {
                let refusal = self.no_answer(closed);
                self.refuse_all(now, &refusal);
            }
            // A congested path may be free again for the next method; a peer that is silent through two is gone.
            _ if self.silent_methods > 0 => self.refuse_all(now, &Refusal::PeerSilent),
            _ => {
                self.silent_methods += 1;
                self.refuse(now, Refusal::PeerSilent);
            }
        }
    }

    /// Reason why the peer answered no hello.
    fn no_answer(&self, closed: bool) -> Refusal {
        let peer = self.config.peer;
        if closed {
            return Refusal::PeerAbsent(format!(
                "{peer}: nothing listens on that port; start `lastmile serve` there, or name its port"
            ));
        }
        match (self.foreign, self.failure) {
            (Some((count, least, most)), _) => {
                let replies = if count == 1 { "reply" } else { "replies" };
                let octets = if least == most { format!("{least}") } else { format!("{least} to {most}") };
                Refusal::PeerCannot(format!(
                    "{peer} answers, but not in STAMP: {count} {replies} of {octets} octets; run `lastmile serve` or a STAMP reflector (RFC 8762) there"
                ))
            }
            (None, Some(failure)) => Refusal::PeerAbsent(format!("{peer}: {failure}")),
            (None, None) => Refusal::PeerCannot(format!(
                "{peer} does not answer: no STAMP reflector there, a firewall drops UDP to it, or the path is congested"
            )),
        }
    }
}

impl<S: PacketSink> Node for Prober<S> {
    type Event = Decision;

    fn handle(&mut self, now: Time, input: Input) {
        if self.started.is_none() {
            if now < self.config.start {
                if let Input::Interrupted = input {
                    self.started = Some(now);
                    self.refuse_all(now, &Refusal::Interrupted);
                }
                return;
            }
            self.started = Some(now);
            self.request(now);
        }
        match input {
            Input::Datagram { at, datagram, .. } => self.on_datagram(now, at, &datagram),
            Input::Queued { id, .. } => self.on_queued(id),
            Input::Sent { id, at } => self.on_sent(id, Some(at)),
            Input::Failed { id, reason, .. } => self.on_failed(now, id, reason),
            Input::ClockStepped { by } => {
                if let Phase::Streaming(stream) | Phase::Reporting(stream, _) = &mut self.phase {
                    stream.clock_stepped = true;
                }
                self.out.push_back(Output::Event(Decision::ClockStepped { by }));
            }
            Input::Interrupted => self.refuse_all(now, &Refusal::Interrupted),
            Input::Wake => {}
        }
        self.on_time(now);
        while matches!(self.phase, Phase::Step) {
            self.step(now);
        }
    }

    fn poll(&mut self, _now: Time) -> Output<Decision> {
        self.out.pop_front().unwrap_or_else(|| {
            Output::Wait(if self.started.is_none() { Some(self.config.start) } else { self.deadline() })
        })
    }
}

impl<S: PacketSink> Endpoint for Prober<S> {
    fn is_finished(&self) -> bool {
        matches!(self.phase, Phase::Finished) && self.out.is_empty()
    }
}
