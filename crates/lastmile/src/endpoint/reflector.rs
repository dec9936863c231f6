//! The reflector: answers STAMP packets, and serves deferred reports and reverse streams to proven peers.
//!
//! Anybody's plain STAMP packet is reflected without keeping anything. Only a peer that echoes the token of an
//! earlier [hello](crate::wire::private), and so receives what is sent to its address, gets a session. What is sent
//! to an unauthenticated peer never exceeds what came from it, byte for byte at the IP layer: replies have their
//! request's size, and reverse streams are paid by credit. [`Limits`] bound the rest.

use core::net::SocketAddr;
use std::collections::{BTreeMap, VecDeque};

use super::budget::{Budget, Limits};
use super::packets::{Key, VERSION, derive};
use super::session::{MAX_PACKETS, Session, Sessions};
use crate::event::Decision;
use crate::node::{Datagram, Ecn, Input, Node, Output, Payload, PortId, Transmit, TransmitId};
use crate::time::{Epoch, Span, Time};
use crate::units::{Bytes, IpVersion};
use crate::wire::private::{
    Abilities, HelloReply, HelloRequest, Offer, ReportHeader, ReportKind, ReportRequest, ReportStatus,
    StreamTag, Token, write_report,
};
use crate::wire::{
    ClassOfService, ControlCode, ErrorEstimate, Mode, PacketBuilder, Padding, ReflectedControl, Reflection,
    ReflectorPacket, ReturnPath, ReversePathEcn, SenderPacket, TimestampFormat, TlvIntegrity, TlvMut,
    TlvType, TlvValue, Verdict, fail_integrity, reflect_in_place, reflect_tlvs, sequence_of, tlv_area,
    tlv_area_mut,
};

/// What a reflector needs to know.
#[derive(Clone, Debug)]
pub struct ReflectorConfig {
    /// The shared key. With a key, packets without it are dropped (but for hellos, which are told so).
    pub key: Option<Key>,
    /// When the run started, for the stamps on the wire.
    pub epoch: Epoch,
    /// Makes tokens that nobody can guess; random on real networks.
    pub seed: [u8; 32],
    /// Budgets.
    pub limits: Limits,
    /// A session ends when its peer is silent for so long.
    pub lease: Span,
    /// Resolution of this host's stamps.
    pub resolution: Span,
}

impl Default for ReflectorConfig {
    fn default() -> ReflectorConfig {
        ReflectorConfig {
            key: None,
            epoch: Epoch::default(),
            seed: [0; 32],
            limits: Limits::default(),
            lease: Span::from_secs(30),
            resolution: Span::from_nanos(1),
        }
    }
}

/// A reverse stream is handed over this long before its first packet, so that a sending thread is awake.
const LEAD: Span = Span::from_millis(2);
/// A reverse stream lasts no longer, so that one whose peer fell silent ends by itself.
const LONGEST_BURST: Span = Span::from_secs(1);
/// A token's age: it is good in the slot that it was made in and in the next.
const TOKEN_SLOT: Span = Span::from_secs(300);
/// The largest packet that is ever made up here rather than reflected: fits Ethernet.
const MTU: Bytes = Bytes(1_500);
/// Sessions are looked through for ended leases this often.
const SWEEP: Span = Span::from_secs(1);

/// What happened to the packets that came.
///
/// ```
/// assert_eq!(lastmile::endpoint::Counters::default().reflected, 0);
/// ```
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
    /// Without the right key.
    pub unauthenticated: u64,
    /// Dropped because a budget was spent.
    pub over_budget: u64,
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
    /// Packets of reverse streams that have not left: whose, and which.
    leaving: BTreeMap<u64, (SocketAddr, u32, u16)>,
    next_sweep: Option<Time>,
    out: VecDeque<Output>,
}

/// What a packet asks for, besides being reflected.
#[derive(Default)]
struct Wishes {
    hello: Option<HelloRequest>,
    tag: Option<StreamTag>,
    report: Option<ReportRequest>,
    control: Option<ReflectedControl>,
    no_reply: bool,
    class: Option<ClassOfService>,
}

impl Reflector {
    /// A reflector that knows nobody yet.
    pub fn new(config: ReflectorConfig) -> Reflector {
        let resolution = config.resolution.as_nanos().max(1) as u64;
        Reflector {
            mode: if config.key.is_some() { Mode::Authenticated } else { Mode::Open },
            error: ErrorEstimate::from_nanos(resolution, false, TimestampFormat::Ntp),
            sessions: Sessions::default(),
            budget: Budget::new(&config.limits, &config.seed),
            counters: Counters::default(),
            next_id: 1,
            leaving: BTreeMap::new(),
            next_sweep: None,
            out: VecDeque::new(),
            config,
        }
    }

    /// What happened so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Sessions at the moment.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    fn token(&self, peer: SocketAddr, slot: u64) -> Token {
        derive(&self.config.seed, &format!("token {peer}"), slot)
    }

    fn slot(now: Time) -> u64 {
        now.as_nanos() / TOKEN_SLOT.as_nanos() as u64
    }

    fn proves(&self, now: Time, peer: SocketAddr, token: &Token) -> bool {
        let slot = Self::slot(now);
        *token == self.token(peer, slot) || (slot > 0 && *token == self.token(peer, slot - 1))
    }

    /// The session of a peer that shows its token, begun if there is none; counts what came.
    fn session(&mut self, now: Time, peer: SocketAddr, token: &Token, size: Bytes) -> Option<&mut Session> {
        let known = self.sessions.get(peer).map(|session| session.token == *token);
        // Comparing tokens costs nothing and making one costs a hash, so the hash is only made for a new one.
        if known != Some(true) && !self.proves(now, peer, token) {
            return None;
        }
        if known.is_none() {
            self.sessions.begin(now, self.config.lease, peer, *token, &self.config.limits)?;
            self.next_sweep.get_or_insert(now + SWEEP);
            self.out.push_back(Output::Event(Decision::SessionOpened { peer }));
        }
        let lease = self.config.lease;
        let session = self.sessions.get(peer)?;
        session.token = *token;
        session.received += size;
        session.lease_ends = now + lease;
        Some(session)
    }

    // ---- packets ----------------------------------------------------------------------------------------------

    fn on_datagram(&mut self, now: Time, port: PortId, at: Time, datagram: Datagram) {
        let size = datagram.ip_size();
        let Datagram { from, to, flow, ecn, dscp, hop_limit, payload } = datagram;
        let Payload::Udp(mut bytes) = payload else { return };
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
        let Ok(request) = SenderPacket::parse(mode, &bytes) else {
            self.counters.malformed += 1;
            return;
        };
        let mut wishes = Wishes::default();
        if bytes.len() > mode.base_len() {
            self.read_tlvs(mode, &mut bytes, &mut wishes, (ecn, dscp));
        }
        let keyless = self.config.key.is_some() && mode == Mode::Open;
        if keyless {
            wishes = Wishes { hello: wishes.hello, ..Wishes::default() };
        }

        if let Some(tag) = wishes.tag {
            if self.session(now, from, &tag.token, size).is_none() {
                self.counters.malformed += 1;
                return;
            }
            if let Some(control) = wishes.control.filter(|_| !wishes.no_reply) {
                if self.reverse(now, port, (from, to), &request, &tag, &control) {
                    return;
                }
                self.flag_not_conformant(mode, &mut bytes);
            } else if wishes.no_reply {
                self.counters.logged += 1;
                if tag.stream != 0
                    && let Some(session) = self.sessions.get(from)
                {
                    let stamp = (at, ecn, hop_limit);
                    session.note(tag.stream, ReportKind::Arrivals, tag.count, tag.index, stamp);
                }
                return;
            }
        } else if let Some(report) = &wishes.report {
            if self.session(now, from, &report.token, size).is_none() {
                self.counters.malformed += 1;
                return;
            }
            if report.acknowledge
                && let Some(session) = self.sessions.get(from)
            {
                session.release(report.stream);
            }
        }
        if wishes.no_reply {
            return;
        }
        if !self.budget.take(now, from.ip(), size) {
            self.counters.over_budget += 1;
            return;
        }
        // Credit is for those who show their token: a reply to them is paid by its request, and the rest earns none.
        let proven = wishes.tag.is_some()
            || wishes.report.is_some()
            || wishes.hello.is_some_and(|h| !keyless && self.session(now, from, &h.token, size).is_some());
        if let Some(session) = self.sessions.get(from).filter(|_| proven) {
            session.sent += size;
        }
        if wishes.hello.is_some() {
            self.fill_hello(now, mode, from, keyless, &mut bytes);
        }
        if let Some(report) = &wishes.report {
            self.fill_report(mode, from, report, &mut bytes);
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
        self.counters.reflected += 1;
        let class = wishes.class.unwrap_or_default();
        let reply = Datagram {
            from: to,
            to: from,
            flow,
            ecn: Ecn::from_bits(class.ecn_wanted),
            dscp: if wishes.class.is_some() { class.dscp_wanted } else { dscp },
            hop_limit: 0,
            payload: Payload::Udp(bytes),
        };
        let id = TransmitId::UNTRACKED;
        self.out.push_back(Output::Transmit(Transmit { id, at: now, port, datagram: reply }));
    }

    fn stamp(&self, at: Time) -> u64 {
        TimestampFormat::Ntp.from_unix_nanos(self.config.epoch.unix_nanos(at))
    }

    /// Reads the TLVs and sets their flags; what only the reply's fields decide is filled in later.
    fn read_tlvs(&self, mode: Mode, bytes: &mut [u8], wishes: &mut Wishes, received: (Ecn, u8)) {
        if let (Mode::Authenticated, Some(key)) = (mode, &self.config.key) {
            let sequence = sequence_of(bytes).unwrap_or_default();
            match key.0.verify_tlvs(sequence, tlv_area(mode, bytes)) {
                TlvIntegrity::Empty | TlvIntegrity::Valid => {}
                TlvIntegrity::Absent | TlvIntegrity::Failed => {
                    return fail_integrity(tlv_area_mut(mode, bytes));
                }
            }
        }
        let (ecn, dscp) = received;
        reflect_tlvs(tlv_area_mut(mode, bytes), |TlvMut { kind, value, .. }| match kind {
            TlvType::EXTRA_PADDING | TlvType::HMAC => Verdict::Understood,
            TlvType::HELLO => {
                let read = HelloRequest::decode_value(value);
                wishes.hello = read.as_ref().ok().copied();
                Verdict::of(&read)
            }
            TlvType::STREAM => {
                let read = StreamTag::decode_value(value);
                wishes.tag = wishes.tag.or(read.as_ref().ok().copied());
                Verdict::of(&read)
            }
            TlvType::REPORT => {
                let read = ReportRequest::decode_value(value);
                wishes.report = wishes.report.or(read.as_ref().ok().copied());
                Verdict::of(&read)
            }
            TlvType::REFLECTED_CONTROL => {
                let read = ReflectedControl::decode_value(value);
                wishes.control = wishes.control.or(read.as_ref().ok().copied());
                match &read {
                    // Without a tag nobody has proved an address: one reply of the request's size, and C.
                    Ok(_) if wishes.tag.is_none() => Verdict::NotConformant,
                    _ => Verdict::of(&read),
                }
            }
            TlvType::RETURN_PATH => {
                let read = ReturnPath::decode(value);
                match &read {
                    Ok(ReturnPath::Control(ControlCode::NoReply)) => wishes.no_reply = true,
                    Ok(ReturnPath::Control(ControlCode::SameLink)) => {}
                    Ok(ReturnPath::Elsewhere) => return Verdict::Unrecognized,
                    Err(_) => {}
                }
                Verdict::of(&read)
            }
            TlvType::CLASS_OF_SERVICE => {
                let read = ClassOfService::decode_value(value);
                if let Ok(class) = read {
                    let filled = ClassOfService {
                        dscp_received: dscp,
                        ecn_received: ecn as u8,
                        dscp_refused: false,
                        reverse_ecn: ReversePathEcn::Set,
                        ..class
                    };
                    wishes.class = Some(filled);
                    if filled.encode_value(value).is_err() {
                        return Verdict::Malformed;
                    }
                }
                Verdict::of(&read)
            }
            _ => Verdict::Unrecognized,
        });
    }

    fn flag_not_conformant(&self, mode: Mode, bytes: &mut [u8]) {
        reflect_tlvs(tlv_area_mut(mode, bytes), |tlv| match tlv.kind {
            TlvType::REFLECTED_CONTROL => Verdict::NotConformant,
            _ => Verdict::Understood,
        });
    }

    fn fill_hello(&mut self, now: Time, mode: Mode, peer: SocketAddr, keyless: bool, bytes: &mut [u8]) {
        let token = self.token(peer, Self::slot(now));
        let budget = self.budget.left(now, peer.ip()).0;
        let credit = self.sessions.get(peer).map_or(0, |session| session.credit().0);
        let abilities = if keyless {
            Abilities::AUTHENTICATED
        } else {
            let all = Abilities::ARRIVAL_REPORTS
                | Abilities::REVERSE_STREAMS
                | Abilities::DEPARTURE_REPORTS
                | Abilities::ECN
                | Abilities::KERNEL_RECEIVE_TIMES
                | Abilities::HOP_LIMIT;
            if self.config.key.is_some() { all | Abilities::AUTHENTICATED } else { all }
        };
        let lease_s = u16::try_from(self.config.lease.as_nanos() / 1_000_000_000).unwrap_or(u16::MAX);
        let resolution_ns = u32::try_from(self.config.resolution.as_nanos()).unwrap_or(u32::MAX);
        reflect_tlvs(tlv_area_mut(mode, bytes), |TlvMut { kind, value, .. }| {
            if kind != TlvType::HELLO {
                return Verdict::Understood;
            }
            let Ok(request) = HelloRequest::decode_value(value) else { return Verdict::Unrecognized };
            let offer = Offer {
                version: request.choose(VERSION, VERSION),
                abilities,
                token: if keyless { [0; 16] } else { token },
                lease_s,
                max_packets: MAX_PACKETS,
                resolution_ns,
                credit,
                budget,
            };
            let reply =
                HelloReply { version_min: VERSION, version_max: VERSION, nonce: request.nonce, offer };
            match reply.encode_value(value) {
                Ok(()) => Verdict::Understood,
                Err(_) => Verdict::Malformed,
            }
        });
    }

    fn fill_report(&mut self, mode: Mode, peer: SocketAddr, request: &ReportRequest, bytes: &mut [u8]) {
        let resolution_ns = u32::try_from(self.config.resolution.as_nanos()).unwrap_or(u32::MAX);
        let log = self.sessions.get(peer).and_then(|s| s.log(request.stream));
        let log = log.filter(|l| l.kind == request.kind);
        let mut head = ReportHeader {
            status: ReportStatus::UnknownStream,
            kind: request.kind,
            clock_stepped: false,
            stream: request.stream,
            page: request.page,
            pages: 0,
            first_index: 0,
            resolution_ns,
            base_ns: 0,
        };
        let mut indices = 0..0;
        if let Some(log) = &log {
            indices = request.indices(log.count);
            head.status = if log.unsent > 0 { ReportStatus::Running } else { ReportStatus::Ok };
            head.clock_stepped = log.clock_stepped;
            head.pages = request.pages(log.count);
            head.first_index = indices.start;
            head.base_ns = log.base().as_nanos();
        }
        reflect_tlvs(tlv_area_mut(mode, bytes), |TlvMut { kind, value, .. }| {
            if kind != TlvType::REPORT {
                return Verdict::Understood;
            }
            let ready = log.iter().filter(|_| head.status == ReportStatus::Ok);
            let entries = ready.flat_map(|l| l.arrivals(indices.clone()));
            match write_report(value, &head, entries) {
                Ok(_) => Verdict::Understood,
                Err(_) => Verdict::Malformed,
            }
        });
    }

    /// Sends the packets that a request asks for; false where a limit forbids it.
    fn reverse(
        &mut self,
        now: Time,
        port: PortId,
        (peer, own): (SocketAddr, SocketAddr),
        request: &SenderPacket,
        tag: &StreamTag,
        control: &ReflectedControl,
    ) -> bool {
        let ip = IpVersion::of(peer);
        let payload = control.aligned_length();
        let size = Bytes(payload as u64) + ip.udp_overhead();
        let burst = i64::from(tag.burst.max(1));
        let interval = Span::from_nanos(i64::from(control.interval_ns));
        let lasts = interval * (i64::from(control.count) / burst);
        let all = size * u64::from(control.count);
        let authenticated = self.config.key.is_some();
        let Some(session) = self.sessions.get(peer) else { return false };
        let allowed = control.count > 0
            && !control.groups
            && size <= MTU
            && lasts <= LONGEST_BURST
            && u32::from(tag.index) + u32::from(control.count) <= u32::from(tag.count)
            && (authenticated || session.credit() >= all);
        if !allowed || !self.budget.take(now, peer.ip(), all) {
            return false;
        }
        match session.open(tag.stream, ReportKind::Departures, tag.count) {
            Some(log) => log.unsent += control.count,
            None => return false,
        }
        session.sent += all;
        for k in 0..control.count {
            let at = now + LEAD + interval * (i64::from(k) / burst);
            let Ok(tag) = tag.reflected(k) else { return false };
            let session_sequence = session.sequence;
            session.sequence = session.sequence.wrapping_add(1);
            let base = ReflectorPacket {
                sequence: session_sequence,
                timestamp: TimestampFormat::Ntp.from_unix_nanos(self.config.epoch.unix_nanos(at)),
                error: self.error,
                ssid: request.ssid,
                receive_timestamp: TimestampFormat::Ntp.from_unix_nanos(self.config.epoch.unix_nanos(now)),
                sender_sequence: request.sequence,
                sender_timestamp: request.timestamp,
                sender_error: request.error,
                sender_ttl: 0,
            };
            let mut bytes = Vec::with_capacity(payload);
            let built = PacketBuilder::reflector(&mut bytes, self.mode, &base).tlv(&tag).and_then(|b| {
                let b = match &self.config.key {
                    Some(key) => b.tlv_hmac(&key.0)?,
                    None => b,
                };
                let b = b.pad_to(payload, Padding::Zeros)?;
                match &self.config.key {
                    Some(key) => b.sign(&key.0),
                    None => Ok(b),
                }
            });
            if built.is_err() {
                return false;
            }
            let id = self.next_id;
            self.next_id += 1;
            self.leaving.insert(id, (peer, tag.stream, tag.index));
            let datagram = Datagram::udp(own, peer, bytes);
            self.out.push_back(Output::Transmit(Transmit { id: TransmitId(id), at, port, datagram }));
        }
        true
    }

    fn on_left(&mut self, id: TransmitId, at: Option<Time>) {
        let Some((peer, stream, index)) = self.leaving.remove(&id.0) else { return };
        self.counters.streamed += 1;
        let Some(session) = self.sessions.get(peer) else { return };
        let Some(log) = session.log(stream) else { return };
        log.unsent = log.unsent.saturating_sub(1);
        let count = log.count;
        if let Some(at) = at {
            session.note(stream, ReportKind::Departures, count, index, (at, Ecn::NotEct, 0));
        }
    }

    fn sweep(&mut self, now: Time) {
        if self.next_sweep.is_none_or(|at| now < at) {
            return;
        }
        for (peer, session) in self.sessions.expire(now) {
            let (received, sent) = (session.received, session.sent);
            self.out.push_back(Output::Event(Decision::SessionClosed { peer, received, sent }));
        }
        self.next_sweep = (self.sessions.len() > 0).then_some(now + SWEEP);
    }
}

/// Whether an unauthenticated packet carries a hello.
fn has_hello(bytes: &[u8]) -> bool {
    crate::wire::Tlvs::new(tlv_area(Mode::Open, bytes))
        .map_while(Result::ok)
        .any(|tlv| tlv.kind == TlvType::HELLO && HelloRequest::decode_value(tlv.value).is_ok())
}

impl Node for Reflector {
    fn handle(&mut self, now: Time, input: Input) {
        match input {
            Input::Datagram { port, at, datagram } => self.on_datagram(now, port, at, datagram),
            Input::Sent { id, at } => self.on_left(id, Some(at)),
            Input::Failed { id: Some(id), .. } => self.on_left(id, None),
            Input::ClockStepped { by } => {
                self.sessions.iter_mut().for_each(Session::clock_stepped);
                self.out.push_back(Output::Event(Decision::ClockStepped { by }));
            }
            _ => {}
        }
        self.sweep(now);
    }

    fn poll(&mut self, _now: Time) -> Output {
        self.out.pop_front().unwrap_or(Output::Wait(self.next_sweep))
    }
}
