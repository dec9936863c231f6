//! Two nodes, a bad path between them, and virtual time.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use lastmile::endpoint::Endpoint;
use lastmile::endpoint::measure::{Cost, Decision};
use lastmile::endpoint::measure::{Measurement, Prober, ProberConfig};
use lastmile::estimate::{Estimator, Outcome, Refusal, Step, StreamPlan};
use lastmile::node::{Datagram, Failure, Input, Node, Output, Payload, PortId, Transmit, TransmitId};
use lastmile::report::{Direction, Fate, StreamRecord};
use lastmile::time::{Span, Time};
use lastmile::units::Bytes;
use lastmile::wire::private::StreamTag;

/// SplitMix64: all that tests need of randomness.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    pub(crate) fn happens(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.next() as u8).collect()
    }
}

/// Effects of the path on packets, in percent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Path {
    pub(crate) delay: Span,
    /// Added at random, so that packets overtake each other.
    pub(crate) jitter: Span,
    pub(crate) loss: u64,
    pub(crate) duplicates: u64,
    /// An earlier packet comes once more, whenever a packet passes.
    pub(crate) replays: u64,
    pub(crate) flips: u64,
    pub(crate) cuts: u64,
    /// A packet of somebody off the path, with the right addresses, whenever a packet passes.
    pub(crate) forgeries: u64,
    /// Larger packets vanish.
    pub(crate) mtu: Option<u64>,
}

pub(crate) const NEAR: Path = Path {
    delay: Span::from_millis(10),
    jitter: Span::ZERO,
    loss: 0,
    duplicates: 0,
    replays: 0,
    flips: 0,
    cuts: 0,
    forgeries: 0,
    mtu: None,
};

/// Runs the streams that it is given and ends.
pub(crate) struct Streams(pub(crate) Vec<Step>);

impl Estimator for Streams {
    fn step(&mut self) -> Step {
        if self.0.is_empty() {
            return Step::Done(Outcome::Refused(Refusal::NotConverged { streams: 1 }));
        }
        self.0.remove(0)
    }
    fn on_stream(&mut self, _record: &StreamRecord) {}
}

pub(crate) fn pairs(n: usize) -> Step {
    Step::Send(StreamPlan::pairs(n, Bytes(1_488), Span::from_millis(5)))
}

pub(crate) fn measurement(direction: Direction, steps: Vec<Step>) -> Measurement {
    Measurement { method: "streams".into(), direction, estimator: Box::new(Streams(steps)) }
}

enum Due {
    AtProber(Datagram),
    AtPeer(Datagram),
    ProberSent(TransmitId),
    PeerSent(TransmitId),
    /// An input of the test's own: to the prober, or to the peer.
    Told(bool, Input),
}

/// A copy of a probe that arrived.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ProbeCopy {
    left: u64,
    arrived: u64,
    /// Damage to padding takes nothing from a packet, so one that is not whole may count or not.
    whole: bool,
}

/// A prober, a peer and what really happened between them.
pub(crate) struct World<P: Node> {
    pub(crate) prober: Prober<Vec<StreamRecord>>,
    pub(crate) peer: P,
    pub(crate) events: Vec<Decision>,
    pub(crate) now: Time,
    /// The peer falls silent then, and is told nothing any more.
    pub(crate) silent_from: Option<Time>,
    /// So many of each five packets are held up in the queue of their sender's own interface.
    pub(crate) held_up: u64,
    /// IP bytes: from the prober, and to it.
    pub(crate) carried: (Bytes, Bytes),
    /// When the last of the prober's packets leaves.
    pub(crate) last_departure: Time,
    path: Path,
    dice: Dice,
    due: BTreeMap<(Time, u64), Due>,
    next: u64,
    wakes: (Option<Time>, Option<Time>),
    seen: Vec<(bool, bool, Time, Datagram)>,
    departures: BTreeMap<(bool, u32, u16), u64>,
    arrivals: BTreeMap<(bool, u32, u16), Vec<ProbeCopy>>,
    /// Round-trip probes: departures, and first arrivals of their replies, by the stamp that replies repeat.
    echo_departures: BTreeMap<u64, u64>,
    echo_arrivals: BTreeMap<u64, BTreeSet<u64>>,
}

/// The peer's clock is ahead by so much, and nothing may mix the two up.
pub(crate) const PEER_AHEAD: Span = Span::from_secs(5);
/// Time for which a packet is held up in the queue of its sender's own interface, if any is.
const HELD_UP: Span = Span::from_millis(1);

pub(crate) fn prober_address() -> SocketAddr {
    "192.0.2.1:5000".parse().unwrap()
}

pub(crate) fn peer_address() -> SocketAddr {
    "198.51.100.1:8620".parse().unwrap()
}

impl<P: Node> World<P> {
    pub(crate) fn new(
        config: ProberConfig,
        measurements: Vec<Measurement>,
        peer: P,
        path: Path,
        seed: u64,
    ) -> Self {
        World {
            prober: Prober::with_sink(config, measurements, Vec::new()),
            peer,
            events: Vec::new(),
            now: Time::ZERO,
            silent_from: None,
            held_up: 0,
            carried: (Bytes::ZERO, Bytes::ZERO),
            last_departure: Time::ZERO,
            path,
            dice: Dice(seed),
            due: BTreeMap::new(),
            next: 0,
            wakes: (None, None),
            seen: Vec::new(),
            departures: BTreeMap::new(),
            arrivals: BTreeMap::new(),
            echo_departures: BTreeMap::new(),
            echo_arrivals: BTreeMap::new(),
        }
    }

    pub(crate) fn tell_at(&mut self, at: Time, prober: bool, input: Input) {
        self.put(at, Due::Told(prober, input));
    }

    /// Runs until the prober is done; fails where it is not by `limit`.
    pub(crate) fn run(&mut self, limit: Span) {
        self.tell_prober(Input::Wake);
        for _ in 0..2_000_000 {
            if self.prober.is_finished() {
                return;
            }
            let first = self.due.first_key_value().map(|(key, _)| key.0);
            let next = [first, self.wakes.0, self.wakes.1].into_iter().flatten().min();
            let Some(next) = next else { panic!("nothing will ever happen again; {:?}", self.events) };
            assert!(next - Time::ZERO <= limit, "not done after {limit}: {:?}", self.events);
            self.now = next.max(self.now);
            if first == Some(next) {
                let Some((_, due)) = self.due.pop_first() else { return };
                self.happen(due);
            } else if self.wakes.0 == Some(next) {
                self.tell_prober(Input::Wake);
            } else {
                self.tell_peer(Input::Wake);
            }
        }
        panic!("an endless loop at {}: {:?}", self.now, self.events);
    }

    /// Carries what is still on its way.
    pub(crate) fn settle(&mut self) {
        while let Some(((at, _), due)) = self.due.pop_first() {
            self.now = at.max(self.now);
            self.happen(due);
        }
    }

    fn happen(&mut self, due: Due) {
        let now = self.now;
        match due {
            Due::AtProber(datagram) => {
                self.carried.1 += datagram.ip_size();
                self.tell_prober(Input::Datagram { port: PortId(0), at: now, datagram });
            }
            Due::AtPeer(datagram) => {
                let at = now + PEER_AHEAD;
                self.tell_peer(Input::Datagram { port: PortId(0), at, datagram });
            }
            Due::ProberSent(id) => {
                if id.0 % 5 < self.held_up {
                    self.tell_prober(Input::Queued { id, wait: HELD_UP });
                }
                self.tell_prober(Input::Sent { id, at: now });
            }
            Due::PeerSent(id) => {
                if id.0 % 5 < self.held_up {
                    self.tell_peer(Input::Queued { id, wait: HELD_UP });
                }
                self.tell_peer(Input::Sent { id, at: now + PEER_AHEAD });
            }
            Due::Told(true, input) => self.tell_prober(input),
            Due::Told(false, input) => self.tell_peer(input),
        }
    }

    fn put(&mut self, at: Time, due: Due) {
        self.next += 1;
        self.due.insert((at.max(self.now), self.next), due);
    }

    fn tell_prober(&mut self, input: Input) {
        self.prober.handle(self.now, input);
        loop {
            match self.prober.poll(self.now) {
                Output::Transmit(transmit) => {
                    self.carried.0 += transmit.datagram.ip_size();
                    self.last_departure = self.last_departure.max(transmit.at);
                    self.send(true, transmit);
                }
                Output::Event(event) => self.events.push(event),
                Output::Wait(until) => {
                    self.wakes.0 = until;
                    return;
                }
            }
        }
    }

    fn tell_peer(&mut self, input: Input) {
        if self.silent_from.is_some_and(|from| self.now >= from) {
            self.wakes.1 = None;
            return;
        }
        self.peer.handle(self.now + PEER_AHEAD, input);
        loop {
            match self.peer.poll(self.now + PEER_AHEAD) {
                Output::Transmit(mut transmit) => {
                    transmit.at = transmit.at - PEER_AHEAD;
                    self.send(false, transmit);
                }
                Output::Event(_) => {}
                Output::Wait(until) => {
                    self.wakes.1 = until.map(|at| at - PEER_AHEAD);
                    return;
                }
            }
        }
    }

    fn send(&mut self, from_prober: bool, transmit: Transmit) {
        let Transmit { id, at, mut datagram, .. } = transmit;
        let at = at.max(self.now);
        if from_prober {
            let v4 = datagram.to.is_ipv4();
            datagram.from = if v4 { prober_address() } else { "[2001:db8::1]:5000".parse().unwrap() };
        }
        if id != TransmitId::UNTRACKED {
            self.put(at, if from_prober { Due::ProberSent(id) } else { Due::PeerSent(id) });
        }
        let tracked = id != TransmitId::UNTRACKED;
        self.note_departure((from_prober, tracked), at, &datagram);
        let copies = if self.dice.happens(self.path.duplicates) { 2 } else { 1 };
        for _ in 0..copies {
            let jitter = Span::from_nanos(self.dice.below(self.path.jitter.as_nanos() as u64) as i64);
            let arrives = at + self.path.delay + jitter;
            if self.dice.happens(self.path.loss)
                || self.path.mtu.is_some_and(|mtu| datagram.ip_size().0 > mtu)
            {
                continue;
            }
            let mut copy = datagram.clone();
            let spoiled = self.spoil(&mut copy);
            self.note_arrival((from_prober, tracked), (at, arrives), &datagram, !spoiled);
            self.put(arrives, if from_prober { Due::AtPeer(copy) } else { Due::AtProber(copy) });
        }
        self.seen.push((from_prober, tracked, at, datagram));
        if self.dice.happens(self.path.replays) {
            let pick = self.dice.below(self.seen.len() as u64) as usize;
            let (to_peer, tracked, left, copy) = self.seen[pick].clone();
            // After the first copy: a replay is of something seen on the way.
            let later =
                at + self.path.delay + self.path.jitter + Span::from_micros(self.dice.below(400_000) as i64);
            self.note_arrival((to_peer, tracked), (left, later), &copy, true);
            self.put(later, if to_peer { Due::AtPeer(copy) } else { Due::AtProber(copy) });
        }
        if self.dice.happens(self.path.forgeries) {
            let to_peer = self.dice.happens(50);
            let (from, to) =
                if to_peer { (prober_address(), peer_address()) } else { (peer_address(), prober_address()) };
            let forged = Datagram::udp(from, to, crate::forge::packet(&mut self.dice, to_peer));
            let later = at + Span::from_micros(self.dice.below(100_000) as i64);
            self.put(later, if to_peer { Due::AtPeer(forged) } else { Due::AtProber(forged) });
        }
    }

    /// True if the packet was damaged.
    fn spoil(&mut self, datagram: &mut Datagram) -> bool {
        let Payload::Udp(bytes) = &mut datagram.payload else { return false };
        let mut spoiled = false;
        if self.dice.happens(self.path.flips) {
            for _ in 0..=self.dice.below(3) {
                let bit = self.dice.below(bytes.len() as u64 * 8) as usize;
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            spoiled = true;
        }
        if self.dice.happens(self.path.cuts) {
            bytes.truncate(self.dice.below(bytes.len() as u64) as usize);
            spoiled = true;
        }
        spoiled
    }

    fn note_departure(&mut self, (forward, tracked): (bool, bool), at: Time, datagram: &Datagram) {
        let Some(bytes) = datagram.payload.udp() else { return };
        match probe_tag(bytes).filter(|_| tracked) {
            Some(tag) => {
                let at = if forward { at } else { at + PEER_AHEAD };
                self.departures.entry((forward, tag.stream, tag.index)).or_insert(at.as_nanos());
            }
            None if forward => {
                self.echo_departures.entry(stamp(bytes, 4, 16)).or_insert(at.as_nanos());
            }
            None => {}
        }
    }

    fn note_arrival(
        &mut self,
        (forward, tracked): (bool, bool),
        (left, at): (Time, Time),
        datagram: &Datagram,
        whole: bool,
    ) {
        let Some(bytes) = datagram.payload.udp() else { return };
        match probe_tag(bytes).filter(|_| tracked) {
            Some(tag) => {
                let (tx, rx) = if forward { (Span::ZERO, PEER_AHEAD) } else { (PEER_AHEAD, Span::ZERO) };
                let (left, arrived) = ((left + tx).as_nanos(), (at + rx).as_nanos());
                self.arrivals.entry((forward, tag.stream, tag.index)).or_default().push(ProbeCopy {
                    left,
                    arrived,
                    whole,
                });
            }
            None if !forward => {
                self.echo_arrivals.entry(stamp(bytes, 28, 64)).or_default().insert(at.as_nanos());
            }
            None => {}
        }
    }

    /// Every stamp that a record believes is that of the true packet.
    pub(crate) fn check_records(&self) {
        for record in self.prober.sink() {
            for packet in &record.packets {
                let Fate::Arrived(arrived) = packet.fate else { continue };
                let (sent, arrived) = (packet.sent.as_nanos(), arrived.as_nanos());
                if record.direction == Direction::RoundTrip {
                    let probes = self.echo_departures.iter().filter(|(_, at)| **at == sent);
                    let mut echoes = probes.filter_map(|(stamp, _)| self.echo_arrivals.get(stamp));
                    assert!(echoes.any(|all| all.contains(&arrived)), "{packet:?} is not what happened");
                    continue;
                }
                let forward = record.direction == Direction::Forward;
                let key = (forward, record.stream, packet.seq as u16);
                assert_eq!(self.departures.get(&key), Some(&sent), "departure of {packet:?}");
                let copies = self.arrivals.get(&key).map_or(&[][..], Vec::as_slice);
                let this = copies.iter().any(|c| (c.left, c.arrived) == (sent, arrived));
                assert!(this, "{packet:?} did not leave and arrive then");
                let earlier = copies.iter().find(|c| c.whole && c.arrived < arrived);
                assert_eq!(earlier, None, "the first copy of {packet:?} counts");
            }
        }
    }

    pub(crate) fn cost(&self) -> Cost {
        match self.events.last() {
            Some(Decision::Finished { cost }) => *cost,
            other => panic!("not finished: {other:?}"),
        }
    }

    pub(crate) fn refusals(&self) -> Vec<String> {
        let refusal = |event: &Decision| match event {
            Decision::Refused { refusal, .. } => Some(refusal.to_string()),
            _ => None,
        };
        self.events.iter().filter_map(refusal).collect()
    }
}

/// The tag of a probe; requests for probes carry one too. (So do replies to damaged ones, but those are untracked.)
fn probe_tag(bytes: &[u8]) -> Option<StreamTag> {
    StreamTag::find(bytes).filter(|_| bytes.len() > 1_400)
}

/// The timestamp of a base packet; the reserved bytes of the authenticated layout tell which of its two places
/// it has.
fn stamp(bytes: &[u8], open: usize, authenticated: usize) -> u64 {
    let keyed = bytes.len() >= 112 && bytes[4..16].iter().all(|b| *b == 0);
    let at = if keyed { authenticated } else { open };
    bytes.get(at..at + 8).map_or(0, |b| u64::from_be_bytes(b.try_into().unwrap()))
}

/// Says nothing to anybody.
pub(crate) struct Nobody;

impl Node for Nobody {
    type Event = std::convert::Infallible;

    fn handle(&mut self, _now: Time, _input: Input) {}
    fn poll(&mut self, _now: Time) -> Output {
        Output::Wait(None)
    }
}

/// A Session-Reflector of RFC 8762 alone: base packets, no TLVs looked at; they are echoed, or the reply has a
/// size of its own.
pub(crate) struct PlainReflector {
    pub(crate) echo_tlvs: bool,
    /// Octets of UDP payload of all replies that echo nothing; less than a base packet is no STAMP.
    pub(crate) octets: usize,
    pub(crate) out: Vec<Transmit>,
}

impl Node for PlainReflector {
    type Event = std::convert::Infallible;

    fn handle(&mut self, now: Time, input: Input) {
        let Input::Datagram { port, datagram, .. } = input else { return };
        let Some(request) = datagram.payload.udp().filter(|bytes| bytes.len() >= 44) else { return };
        let mut reply = vec![0; 44];
        // Sequence number and timestamps as if no time passed here.
        reply[..14].copy_from_slice(&request[..14]);
        reply[16..24].copy_from_slice(&request[4..12]);
        reply[24..28].copy_from_slice(&request[..4]);
        reply[28..36].copy_from_slice(&request[4..12]);
        reply[36..38].copy_from_slice(&request[12..14]);
        if self.echo_tlvs {
            reply.extend_from_slice(&request[44..]);
        } else {
            reply.resize(self.octets, 0);
        }
        let datagram = Datagram::udp(datagram.to, datagram.from, reply);
        self.out.push(Transmit { id: TransmitId::UNTRACKED, at: now, port, datagram });
    }
    fn poll(&mut self, _now: Time) -> Output {
        self.out.pop().map_or(Output::Wait(None), Output::Transmit)
    }
}

/// A host's message about a port on which nothing listens.
pub(crate) fn closed() -> Input {
    Input::Failed { port: PortId(0), id: None, reason: Failure::PortClosed }
}
