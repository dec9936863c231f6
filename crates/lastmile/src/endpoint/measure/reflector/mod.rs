//! The reflector: answers STAMP packets, and serves deferred reports and reverse streams to proven peers.
//!
//! Anybody's plain STAMP packet is reflected without keeping anything. Only a peer that echoes the token of an
//! earlier [hello](crate::wire::private), and so receives packets sent to its address, gets a session. Bytes sent
//! to an unauthenticated peer never exceed those that came from it, counted at the IP layer: replies have their
//! request's size (but for `answer_small`, which is off by default), and reverse streams are paid by credit. [`Limits`] bound the rest.

mod reverse;
mod small;
mod tlvs;

use core::net::SocketAddr;
use std::collections::{BTreeMap, VecDeque};

use self::reverse::{Asked, Leaving, Reversed};
use self::tlvs::Wishes;
use super::budget::{Budget, Limits};
use super::packets::Key;
use super::session::{MAX_PACKETS, Noted, Session, Sessions};
use crate::endpoint::Endpoint;
use crate::endpoint::measure::event::Decision;
use crate::endpoint::shares::TELL;
use crate::endpoint::token;
use crate::node::{Datagram, Ecn, Flow, Input, Node, Output, Payload, PortId, Transmit, TransmitId};
use crate::time::{Epoch, Span, Time};
use crate::units::{Bytes, IpVersion};
use crate::wire::private::{HelloRequest, ReportKind, STREAM_LEN, StreamTag, Token};
use crate::wire::{
    ErrorEstimate, Mode, Reflection, SenderPacket, TAG_LEN, TLV_HEADER_LEN, TimestampFormat, TlvType,
    TlvValue, Tlvs, looks_reflected, reflect_in_place, sequence_of, tlv_area, tlv_area_mut,
};

/// Configuration of a reflector.
#[derive(Clone, Debug)]
pub struct ReflectorConfig {
    /// The shared key. With a key, packets without it are dropped (but for hellos, which are told so).
    pub key: Option<Key>,
    /// When the run started, for the stamps on the wire.
    pub epoch: Epoch,
    /// Makes tokens that nobody can guess.
    pub seed: [u8; 32],
    /// Budgets.
    pub limits: Limits,
    /// A session ends when its peer is silent for so long.
    pub lease: Span,
    /// Resolution of this host's stamps.
    pub resolution: Span,
    /// Answer packets that are smaller than any reply could be with a whole base packet, as RFC 8762, 4.6 has it: with up to
    /// 1.7 times as many bytes as came, to any address that stands in them.
    pub answer_small: bool,
}

impl ReflectorConfig {
    /// The lease that [`ReflectorConfig::new`] gives.
    pub const LEASE: Span = Span::from_secs(30);

    /// Serves anybody, without a key, within the default limits. `seed` has to come from the system's random source
    /// where strangers can send packets, and to differ at each start: a stranger with the seed could forge proofs of address.
    pub fn new(seed: [u8; 32]) -> ReflectorConfig {
        ReflectorConfig {
            key: None,
            epoch: Epoch::default(),
            seed,
            limits: Limits::default(),
            lease: ReflectorConfig::LEASE,
            resolution: Span::from_nanos(1),
            answer_small: false,
        }
    }
}

/// The largest packet, at the IP layer, that a reflector makes up rather than reflects: fits Ethernet.
pub const MAX_REVERSE_SIZE: Bytes = Bytes(1_500);
/// Sessions are looked through for ended leases this often.
const SWEEP: Span = Span::from_secs(1);

/// Counts of the packets that came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Counters {
    /// Answered.
    pub reflected: u64,
    /// Packets of forward streams, written down and not answered.
    pub logged: u64,
    /// Packets of reverse streams, sent.
    pub streamed: u64,
    /// Not STAMP, or malformed.
    pub malformed: u64,
    /// TWAMP Light packets that no reply of their size could answer.
    pub too_small: u64,
    /// Without the right key.
    pub unauthenticated: u64,
    /// Asked as a session, without a token that proves the address: none, a forged one, or an old one.
    pub unproven: u64,
    /// Turned away: no room for one more session, or for one more of that source.
    pub no_session: u64,
    /// Turned away: no room for stamps or waiting packets, or for more of that source.
    pub no_room: u64,
    /// Turned away: the budget of that source, or of all, is spent.
    pub over_budget: u64,
    /// Turned away: a reverse stream that is not paid for, or larger than any may be.
    pub unpaid: u64,
    /// Requests for reverse streams that need no answer: copies of those served before, or meant for others.
    pub repeated: u64,
    /// From this reflector's own address and port, or with the looks of a reflector's reply: answers might never end.
    pub looped: u64,
}

/// The reflector.
pub struct Reflector {
    config: ReflectorConfig,
    mode: Mode,
    error: ErrorEstimate,
    sessions: Sessions,
    budget: Budget,
    counters: Counters,
    next_id: u64,
    /// Packets of reverse streams that have not left.
    leaving: BTreeMap<u64, Leaving>,
    /// Number of these packets for each source.
    leaving_to: BTreeMap<u64, usize>,
    /// UDP payload of the smallest packet that a reverse stream can have.
    least_payload: usize,
    next_sweep: Option<Time>,
    /// The counts at the last notice of peers turned away, and the earliest time of the next notice.
    told: (Counters, Time),
    /// The peer turned away last, if any was since that notice.
    turned_away: Option<SocketAddr>,
    /// Sources of too small packets that were told of, and when it is told of one more however many these are.
    small_told: (VecDeque<u64>, Time),
    out: VecDeque<Output<Decision>>,
}

/// Standing of a peer, by its proof that it receives packets sent to its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// It has a session.
    Served,
    /// It has given the proof, and there is no room for its session.
    NoRoom,
    /// It has not given it.
    Unproven,
}

/// A packet that came, but for its bytes.
struct Received {
    port: PortId,
    peer: SocketAddr,
    own: SocketAddr,
    flow: Flow,
    at: Time,
    ecn: Ecn,
    dscp: u8,
    hop_limit: u8,
    mode: Mode,
    request: SenderPacket,
    /// UDP payload of a reply to it, in bytes.
    reply_len: usize,
    standing: Standing,
}

impl Reflector {
    /// A reflector that knows nobody yet.
    pub fn new(config: ReflectorConfig) -> Reflector {
        let resolution = config.resolution.as_nanos().max(1) as u64;
        let (mode, hmac) = match config.key {
            Some(_) => (Mode::Authenticated, TLV_HEADER_LEN + TAG_LEN),
            None => (Mode::Open, 0),
        };
        Reflector {
            mode,
            least_payload: mode.base_len() + TLV_HEADER_LEN + STREAM_LEN + hmac,
            error: ErrorEstimate::from_nanos(resolution, false, TimestampFormat::Ntp),
            sessions: Sessions::default(),
            budget: Budget::new(&config.limits, &config.seed),
            counters: Counters::default(),
            next_id: 1,
            leaving: BTreeMap::new(),
            leaving_to: BTreeMap::new(),
            next_sweep: None,
            told: (Counters::default(), Time::ZERO),
            turned_away: None,
            small_told: (VecDeque::new(), Time::ZERO),
            out: VecDeque::new(),
            config,
        }
    }

    /// Counts so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Sessions at the moment.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// The session of a peer that shows its token, begun if there is none; counts what came.
    fn enter(&mut self, now: Time, peer: SocketAddr, token: &Token, size: Bytes) -> Standing {
        let known = self.sessions.get(peer).map(|session| (session.token, session.issued));
        // Comparing tokens costs nothing and checking one costs a hash, so that is only done for a new one.
        if known.is_none_or(|(known, _)| known != *token) {
            let life = token::LIFE.min(self.config.lease);
            let issued = token::issued(&self.config.seed, peer, token).filter(|at| now - *at < life);
            match (issued, known) {
                (None, _) => return Standing::Unproven,
                (Some(issued), Some((_, newest))) if issued <= newest => return Standing::Unproven,
                (Some(issued), None) if self.sessions.is_spent(peer, issued) => return Standing::Unproven,
                (Some(issued), Some(_)) => self.sessions.renew(peer, *token, issued),
                (Some(issued), None) if !self.sessions.begin(peer, *token, issued, &self.config.limits) => {
                    return Standing::NoRoom;
                }
                (Some(_), None) => {
                    self.next_sweep.get_or_insert(now + SWEEP);
                    self.out.push_back(Output::Event(Decision::SessionOpened { peer }));
                }
            }
        }
        let Some(session) = self.sessions.get(peer) else { return Standing::NoRoom };
        session.received += size;
        session.lease_ends = now + self.config.lease;
        Standing::Served
    }

    // ---- packets ----------------------------------------------------------------------------------------------

    fn on_datagram(&mut self, now: Time, port: PortId, at: Time, datagram: Datagram) {
        let size = datagram.ip_size();
        let Datagram { from, to, flow, ecn, dscp, hop_limit, payload } = datagram;
        let Payload::Udp(mut bytes) = payload else { return };
        if (from.ip(), from.port()) == (to.ip(), to.port()) {
            self.counters.looped += 1;
            return;
        }
        let mut mode = self.mode;
        if let Some(key) = &self.config.key
            && key.0.verify_base(&bytes).is_err()
        {
            // A hello without the key is told that one is needed; everything else is dropped (RFC 8762, 4.4).
            mode = Mode::Open;
            if !has_hello(&bytes) {
                self.counters.unauthenticated += 1;
                return;
            }
        }
        let octets = bytes.len();
        if self.config.key.is_none() {
            small::complete(&mut bytes);
        }
        let Ok(request) = SenderPacket::parse(mode, &bytes) else {
            self.counters.malformed += 1;
            return;
        };
        if looks_reflected(mode, &bytes) {
            self.counters.looped += 1;
            return;
        }
        let Some(reply_len) = self.reply_len(now, from, mode, octets) else { return };
        let keyless = self.config.key.is_some() && mode == Mode::Open;
        let mut wishes = tlvs::read(self, mode, &mut bytes, (ecn, dscp));
        if keyless {
            wishes = Wishes { hello: wishes.hello, ..Wishes::default() };
        }
        if let Some(report) = wishes.report.filter(|report| report.value.end) {
            return self.end(from, &report.value.token);
        }
        // Credit is for those who show their token: a reply to them is paid by its request, and the rest earns none.
        let shown = (wishes.tag.map(|tag| tag.token))
            .or(wishes.report.map(|report| report.value.token))
            .or(wishes.hello.map(|hello| hello.value.token).filter(|_| !keyless && !wishes.no_reply));
        let standing = match &shown {
            Some(token) => self.enter(now, from, token, size),
            None => Standing::Unproven,
        };
        let packet = Received {
            port,
            peer: from,
            own: to,
            flow,
            at,
            ecn,
            dscp,
            hop_limit,
            mode,
            request,
            reply_len,
            standing,
        };
        if self.serve(now, &packet, &wishes, &mut bytes) && !wishes.no_reply {
            self.reflect(now, &packet, &wishes, bytes);
        }
        // After the reply, which may be the last that tells of the stream.
        if let Some(report) = wishes.report.filter(|r| r.value.acknowledge && standing == Standing::Served) {
            self.sessions.release(from, report.value.stream);
        }
    }

    /// Ends a session whose peer says goodbye; of others nothing is known, and nothing said.
    fn end(&mut self, peer: SocketAddr, token: &Token) {
        if let Some(Session { received, sent, .. }) = self.sessions.end(peer, token, &self.config.limits) {
            self.out.push_back(Output::Event(Decision::SessionClosed { peer, received, sent }));
        }
    }

    /// Takes note that somebody was turned away.
    fn turn_away(&mut self, peer: SocketAddr, counter: fn(&mut Counters) -> &mut u64) {
        *counter(&mut self.counters) += 1;
        self.turned_away = Some(peer);
    }

    /// Grants a packet's wishes besides a reply. True if it may have a reply too.
    fn serve(&mut self, now: Time, packet: &Received, wishes: &Wishes, bytes: &mut [u8]) -> bool {
        let proven = packet.standing == Standing::Served;
        match (&wishes.tag, &wishes.report, &wishes.control) {
            (Some(_), ..) if !proven => {
                self.stranger(packet);
                false
            }
            (Some(tag), _, Some(control)) if !wishes.no_reply => {
                match self.reverse(
                    now,
                    &Asked {
                        packet,
                        tag,
                        control: &control.value,
                        schedule: wishes.schedule.as_ref(),
                        ecn: Ecn::from_bits(wishes.class.unwrap_or_default().ecn_wanted),
                    },
                ) {
                    Reversed::Sent => return false,
                    Reversed::Ignored => {
                        self.counters.repeated += 1;
                        return false;
                    }
                    Reversed::Refused => self.turn_away(packet.peer, |c| &mut c.unpaid),
                    Reversed::NoRoom => self.turn_away(packet.peer, |c| &mut c.no_room),
                    Reversed::OverBudget => self.turn_away(packet.peer, |c| &mut c.over_budget),
                }
                tlvs::flag_not_conformant(packet.mode, bytes, control);
                true
            }
            (Some(tag), ..) if wishes.no_reply => {
                self.log(packet, tag);
                false
            }
            (Some(_), ..) => true,
            (None, Some(_), _) if !proven => {
                // Told "unknown" or "busy" in as many bytes as it sent, so that it may say hello again.
                self.stranger(packet);
                true
            }
            // Meant for others, or for nobody (asymmetrical-pkts, 3).
            (None, None, Some(control)) if control.value.groups || control.value.count == 0 => false,
            (None, None, Some(control)) => {
                // Without a tag nobody has proved an address: one reply of the request's size, and C.
                tlvs::flag_not_conformant(packet.mode, bytes, control);
                true
            }
            (None, ..) => true,
        }
    }

    /// Counts a packet of a session that its sender has not.
    fn stranger(&mut self, packet: &Received) {
        match packet.standing {
            Standing::NoRoom => self.turn_away(packet.peer, |c| &mut c.no_session),
            _ => self.counters.unproven += 1,
        }
    }

    /// Writes down a packet of a forward stream.
    fn log(&mut self, packet: &Received, tag: &StreamTag) {
        self.counters.logged += 1;
        // Stream 0 only pays.
        if tag.stream == 0 {
            return;
        }
        let Received { peer, at, ecn, hop_limit, .. } = *packet;
        let (kind, stream, count, index) = (ReportKind::Arrivals, tag.stream, tag.count, tag.index);
        let noted = Noted { stream, kind, count, index, at, ecn, hop_limit };
        if !self.sessions.note(peer, &noted, &self.config.limits) {
            self.turn_away(peer, |c| &mut c.no_room);
        }
    }

    /// Sends a packet back, as a rule of the size that it came with.
    fn reflect(&mut self, now: Time, packet: &Received, wishes: &Wishes, mut bytes: Vec<u8>) {
        let Received { port, peer, own, flow, at, dscp, hop_limit, mode, reply_len, standing, .. } = *packet;
        let size = Bytes(reply_len as u64) + IpVersion::of(peer).udp_overhead();
        if !self.budget.take(now, peer.ip(), size) {
            return self.turn_away(peer, |c| &mut c.over_budget);
        }
        let (mut credit, mut token) = (0, None);
        if standing == Standing::Served
            && let Some(session) = self.sessions.get(peer)
        {
            session.sent += size;
            credit = session.credit().0;
            token = Some(session.token);
        }
        if let Some(hello) = &wishes.hello {
            let keyless = self.config.key.is_some() && mode == Mode::Open;
            let fresh = || token::issue(&self.config.seed, peer, now);
            let token = if keyless { [0; 16] } else { token.unwrap_or_else(fresh) };
            let budget = self.budget.left(now, peer.ip()).0;
            let offer = self.offer(&hello.value, keyless, token, credit, budget);
            tlvs::fill_hello(mode, &mut bytes, hello, offer);
        }
        if let Some(report) = &wishes.report {
            self.fill_report(packet, &mut bytes, report);
        }
        let facts = Reflection {
            sequence: None,
            timestamp: self.stamp(now),
            error: self.error,
            receive_timestamp: self.stamp(at),
            sender_ttl: hop_limit,
        };
        if reflect_in_place(mode, &mut bytes, &facts).is_err() {
            return;
        }
        if let (Mode::Authenticated, Some(key)) = (mode, &self.config.key) {
            let sequence = sequence_of(&bytes).unwrap_or_default();
            key.0.resign_tlvs(sequence, tlv_area_mut(mode, &mut bytes));
            if key.0.sign_base(&mut bytes).is_err() {
                return;
            }
        }
        bytes.truncate(reply_len);
        self.counters.reflected += 1;
        let class = wishes.class.unwrap_or_default();
        let datagram = Datagram {
            from: own,
            to: peer,
            flow,
            ecn: Ecn::from_bits(class.ecn_wanted),
            dscp: if wishes.class.is_some() { class.dscp_wanted } else { dscp },
            hop_limit: 0,
            payload: Payload::Udp(bytes),
        };
        let id = TransmitId::UNTRACKED;
        self.out.push_back(Output::Transmit(Transmit { id, at: now, port, datagram }));
    }

    fn stamp(&self, at: Time) -> u64 {
        TimestampFormat::Ntp.from_unix_nanos(self.config.epoch.unix_nanos(at))
    }

    fn sweep(&mut self, now: Time) {
        if self.next_sweep.is_none_or(|at| now < at) {
            return;
        }
        for (peer, session) in self.sessions.expire(now) {
            let (received, sent) = (session.received, session.sent);
            self.out.push_back(Output::Event(Decision::SessionClosed { peer, received, sent }));
        }
        self.next_sweep = (!self.sessions.is_empty()).then_some(now + SWEEP);
    }

    /// Tells of those who were turned away since it was last told, if there are any and it is time.
    fn tell(&mut self, now: Time) {
        let (before, next) = self.told;
        if let Some(peer) = self.turned_away.filter(|_| now >= next) {
            let counters = self.counters;
            self.out.push_back(Output::Event(Decision::TurnedAway {
                peer,
                no_session: counters.no_session - before.no_session,
                no_room: counters.no_room - before.no_room,
                over_budget: counters.over_budget - before.over_budget,
                unpaid: counters.unpaid - before.unpaid,
            }));
            self.told = (counters, now + TELL);
            self.turned_away = None;
        }
    }
}

/// True if an unauthenticated packet carries a hello.
fn has_hello(bytes: &[u8]) -> bool {
    Tlvs::new(tlv_area(Mode::Open, bytes))
        .map_while(Result::ok)
        .any(|tlv| tlv.kind == TlvType::HELLO && HelloRequest::decode_value(tlv.value).is_ok())
}

impl Node for Reflector {
    type Event = Decision;

    fn handle(&mut self, now: Time, input: Input) {
        match input {
            Input::Datagram { port, at, datagram } => self.on_datagram(now, port, at, datagram),
            Input::Queued { id, .. } => self.on_queued(id),
            Input::Sent { id, at } => self.on_left(id, Some(at)),
            Input::Failed { id: Some(id), .. } => self.on_left(id, None),
            Input::ClockStepped { by } => {
                self.sessions.iter_mut().for_each(Session::clock_stepped);
                self.out.push_back(Output::Event(Decision::ClockStepped { by }));
            }
            _ => {}
        }
        self.sweep(now);
        self.tell(now);
    }

    fn poll(&mut self, _now: Time) -> Output<Decision> {
        let tell = self.turned_away.map(|_| self.told.1);
        let wait = [self.next_sweep, tell].into_iter().flatten().min();
        self.out.pop_front().unwrap_or(Output::Wait(wait))
    }
}

impl Endpoint for Reflector {
    fn is_finished(&self) -> bool {
        false
    }
}
