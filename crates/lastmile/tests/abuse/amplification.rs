//! Nobody is sent more than came from his address, and what a reflector keeps is bounded.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use lastmile::endpoint::measure::{Decision, Key, Limits, ProberConfig, Reflector, ReflectorConfig};
use lastmile::node::{Datagram, Input, Node, Output, Payload, PortId, Transmit, TransmitId};
use lastmile::report::Direction;
use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};
use lastmile::wire::private::{HelloReply, ReportKind, ReportRequest, Schedule, StreamTag, Token};
use lastmile::wire::{
    ControlCode, ErrorEstimate, HmacKey, Mode, PacketBuilder, Padding, ReflectedControl, SenderPacket,
    TlvFlags, TlvType, TlvValue, Tlvs, WireError, tlv_area,
};
use proptest::prelude::*;

use crate::world::{Dice, NEAR, World, measurement, pairs};

const SECRET: &[u8] = b"a key of many bytes";

/// A reflector and everybody who sends to it, with what each address sent and got.
struct Crowd {
    reflector: Reflector,
    key: Option<HmacKey>,
    now: Time,
    dice: Dice,
    addresses: Vec<SocketAddr>,
    tokens: Vec<(SocketAddr, Token)>,
    /// Addresses in whose name others send: they never answer packets that are sent to them, and nobody else hears these.
    deaf: Vec<SocketAddr>,
    seen: Vec<Datagram>,
    sequence: u32,
    ssid: u16,
    /// IP bytes from and to each address.
    ledger: BTreeMap<SocketAddr, (Bytes, Bytes)>,
    /// Packets that are to leave.
    leaving: Vec<(Time, TransmitId)>,
    /// The reflector's decisions about clients that it turned away.
    told: Vec<Decision>,
}

impl Crowd {
    fn new(keyed: bool, limits: Limits, seed: u64) -> Crowd {
        let key = keyed.then(|| Key::new(SECRET).unwrap());
        let config = ReflectorConfig { key, limits, ..ReflectorConfig::new([3; 32]) };
        let addresses =
            ["192.0.2.1:1", "192.0.2.1:2", "192.0.2.9:1", "[2001:db8::1]:7", "[2001:db8:0:1::1]:7"];
        Crowd {
            reflector: Reflector::new(config),
            key: keyed.then(|| HmacKey::new(SECRET).unwrap()),
            now: Time::ZERO,
            dice: Dice(seed),
            addresses: addresses.iter().map(|a| a.parse().unwrap()).collect(),
            tokens: Vec::new(),
            deaf: Vec::new(),
            seen: Vec::new(),
            sequence: 0,
            ssid: 1,
            ledger: BTreeMap::new(),
            leaving: Vec::new(),
            told: Vec::new(),
        }
    }

    /// Hands a packet to the reflector and returns what it sends for it.
    fn deliver(&mut self, datagram: Datagram) -> Vec<Transmit> {
        self.ledger.entry(datagram.from).or_default().0 += datagram.ip_size();
        let input = Input::Datagram { port: PortId(0), at: self.now, datagram };
        self.tell(input)
    }

    fn tell(&mut self, input: Input) -> Vec<Transmit> {
        self.reflector.handle(self.now, input);
        let mut sent = Vec::new();
        loop {
            match self.reflector.poll(self.now) {
                Output::Transmit(transmit) => {
                    self.ledger.entry(transmit.datagram.to).or_default().1 += transmit.datagram.ip_size();
                    if transmit.id != TransmitId::UNTRACKED {
                        self.leaving.push((transmit.at, transmit.id));
                    }
                    self.learn(&transmit);
                    sent.push(transmit);
                }
                Output::Event(told @ Decision::TurnedAway { .. }) => self.told.push(told),
                Output::Event(_) => {}
                Output::Wait(_) => return sent,
            }
        }
    }

    fn pass(&mut self, span: Span) {
        self.now += span;
        let gone: Vec<_> = self.leaving.iter().filter(|(at, _)| *at <= self.now).copied().collect();
        self.leaving.retain(|(at, _)| *at > self.now);
        for (at, id) in gone {
            self.tell(Input::Sent { id, at });
        }
        self.tell(Input::Wake);
    }

    fn mode(&self) -> Mode {
        if self.key.is_some() { Mode::Authenticated } else { Mode::Open }
    }

    /// A reader of a reply learns its token.
    fn learn(&mut self, transmit: &Transmit) {
        let Some(bytes) = transmit.datagram.payload.udp() else { return };
        let hellos = Tlvs::new(tlv_area(self.mode(), bytes)).flatten().filter(|t| t.kind == TlvType::HELLO);
        let token =
            hellos.filter_map(|t| HelloReply::decode_value(t.value).ok()).map(|h| h.offer.token).last();
        if let Some(token) = token.filter(|_| !self.deaf.contains(&transmit.datagram.to)) {
            self.tokens.push((transmit.datagram.to, token));
        }
    }

    fn own_token(&self, address: SocketAddr) -> Token {
        self.tokens.iter().rev().find(|(a, _)| *a == address).map_or([0; 16], |t| t.1)
    }

    fn build(
        &mut self,
        from: SocketAddr,
        add: impl FnOnce(PacketBuilder<'_>) -> Result<PacketBuilder<'_>, WireError>,
        pad: usize,
    ) -> Datagram {
        let error = ErrorEstimate::from_bits(1);
        self.sequence += 1;
        let base = SenderPacket {
            sequence: self.sequence,
            timestamp: u64::from(self.sequence),
            error,
            ssid: self.ssid,
        };
        let mut bytes = Vec::new();
        let b = add(PacketBuilder::sender(&mut bytes, self.mode(), &base)).unwrap();
        let b = match &self.key {
            Some(key) => b.tlv_hmac(key).unwrap(),
            None => b,
        };
        let b = if pad >= b.size() + 4 { b.pad_to(pad, Padding::Zeros).unwrap() } else { b };
        if let Some(key) = &self.key {
            b.sign(key).unwrap();
        }
        let to = if from.is_ipv4() { "198.51.100.1:8620" } else { "[2001:db8:9::1]:8620" };
        Datagram::udp(from, to.parse().unwrap(), bytes)
    }

    fn hello(&mut self, from: SocketAddr, token: Token) -> Datagram {
        let hello = crate::forge::hello(&mut self.dice, token);
        self.build(from, |b| b.tlv(&hello), 0)
    }

    /// Begins a session, with so much credit.
    fn session(&mut self, from: SocketAddr, credit: u64) {
        let hello = self.hello(from, [0; 16]);
        self.deliver(hello);
        let token = self.own_token(from);
        assert_ne!(token, [0; 16]);
        for _ in 0..credit.div_ceil(1_488).max(1) {
            let tag = StreamTag { stream: 0, index: 0, count: 1, burst: 0, token };
            let pay = self.build(from, |b| b.tlv(&tag)?.tlv(&ControlCode::NoReply), 1_460);
            assert!(self.deliver(pay).is_empty());
        }
    }

    /// The packet that ends the session with that token.
    fn goodbye(&mut self, from: SocketAddr, token: Token) -> Datagram {
        let (kind, value_len) = (ReportKind::Arrivals, 48);
        let report =
            ReportRequest { token, stream: 0, page: 0, kind, acknowledge: true, end: true, value_len };
        self.build(from, |b| b.tlv(&report)?.tlv(&ControlCode::NoReply), 0)
    }

    /// Has a stream sent to the first address, so that there is one to repeat.
    fn one_stream(&mut self) {
        let from = self.addresses[0];
        self.session(from, 10_000);
        let request = self.reverse(from, 1, control(5, 1));
        self.seen.push(request.clone());
        assert_eq!(self.deliver(request).len(), 5);
        self.pass(Span::from_secs(1));
    }

    fn reverse(&mut self, from: SocketAddr, stream: u32, control: ReflectedControl) -> Datagram {
        let tag = StreamTag {
            stream,
            index: 0,
            count: control.count.max(1),
            burst: 1,
            token: self.own_token(from),
        };
        self.build(from, |b| b.tlv(&tag)?.tlv(&control), 0)
    }

    /// Sends a packet that anybody may think of, then lets some time pass.
    fn anything(&mut self) {
        let pick = self.dice.below(self.addresses.len() as u64) as usize;
        let from = self.addresses[pick];
        let stolen = self.dice.below(self.tokens.len() as u64) as usize;
        let token = match self.dice.below(10) {
            0 => [0; 16],
            1 => self.tokens.get(stolen).map_or([7; 16], |t| t.1),
            _ => self.own_token(from),
        };
        let (stream, count) = (self.dice.below(6) as u32, self.dice.below(30) as u16 + 1);
        let index = self.dice.below(u64::from(count)) as u16;
        let burst = self.dice.below(4) as u16;
        let tag = StreamTag { stream, index, count, burst, token };
        let huge = self.dice.happens(15);
        let control = ReflectedControl {
            length: if huge { self.dice.next() as u16 } else { 44 + self.dice.below(1_500) as u16 },
            count: if huge { self.dice.next() as u16 } else { self.dice.below(30) as u16 },
            interval_ns: self.dice.next() as u32 >> (8 + self.dice.below(24)),
            groups: false,
        };
        let grouped = self.dice.happens(10);
        let pad = if self.dice.happens(50) { 1_460 } else { 0 };
        let acknowledge = self.dice.happens(20);
        let kind = if self.dice.happens(50) { ReportKind::Arrivals } else { ReportKind::Departures };
        let end = self.dice.happens(5);
        let report =
            ReportRequest { token, stream, page: 0, kind, acknowledge, end, value_len: 48 + 8 * 100 };
        let mut group = vec![0; 12];
        control.encode_value(&mut group).unwrap();
        group.truncate(8);
        group.extend([0x80, 11, 0, 8, 24, 0, 0, 0, 192, 0, 2, 0]);
        fn put<'a>(
            b: PacketBuilder<'a>,
            control: &ReflectedControl,
            group: Option<&[u8]>,
        ) -> Result<PacketBuilder<'a>, WireError> {
            match group {
                Some(value) => b.raw(TlvFlags::SENDER, TlvType::REFLECTED_CONTROL, value),
                None => b.tlv(control),
            }
        }
        let group = grouped.then_some(&group[..]);
        // Often one gap for each packet but the first, as it must be.
        let gaps = if self.dice.happens(50) { usize::from(control.count).saturating_sub(1) } else { 7 };
        let gap = self.dice.next() as u32 >> (4 + self.dice.below(28));
        let schedule = Schedule { gaps: vec![gap; gaps.min(256)] };
        let uneven = self.dice.happens(50);
        let datagram = match self.dice.below(10) {
            // As a program that goes on, or one that was started anew.
            0 => {
                let anew = self.dice.happens(50);
                self.hello(from, if anew { [0; 16] } else { token })
            }
            1 | 2 => self.build(from, |b| b.tlv(&tag)?.tlv(&ControlCode::NoReply), pad),
            3 | 4 if uneven => self.build(from, |b| put(b.tlv(&tag)?, &control, group)?.tlv(&schedule), pad),
            3 | 4 => self.build(from, |b| put(b.tlv(&tag)?, &control, group), pad),
            5 => self.build(from, |b| put(b, &control, group), pad),
            6 => self.build(from, |b| put(b.tlv(&tag)?.tlv(&ControlCode::NoReply)?, &control, group), pad),
            7 => self.build(from, |b| b.tlv(&report), 0),
            8 => self.build(from, |b| b.tlv(&report)?.tlv(&tag), pad),
            _ => match self.seen.is_empty() {
                true => self.build(from, |b| Ok(b), pad),
                false => {
                    let pick = self.dice.below(self.seen.len() as u64) as usize;
                    let again = self.seen[pick].clone();
                    // As it was, or from somewhere else.
                    if from.is_ipv4() == again.to.is_ipv4() { Datagram { from, ..again } } else { again }
                }
            },
        };
        self.seen.push(datagram.clone());
        self.ssid = if self.dice.happens(2) { self.dice.next() as u16 } else { self.ssid };
        self.deliver(datagram);
        let longest = if self.dice.happens(3) { 5_000_000 } else { 3_000 };
        let us = self.dice.below(longest);
        self.pass(Span::from_micros(us as i64));
    }

    fn sent_to(&self, matches: impl Fn(IpAddr) -> bool) -> Bytes {
        self.ledger.iter().filter(|(a, _)| matches(a.ip())).map(|(_, (_, out))| *out).sum()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn without_a_key_no_address_gets_more_than_it_sent(seed: u64) {
        let mut crowd = Crowd::new(false, Limits::default(), seed);
        crowd.one_stream();
        for _ in 0..1_500 {
            crowd.anything();
            for (address, (came, went)) in &crowd.ledger {
                prop_assert!(went <= came, "{address} sent {came} and got {went}");
            }
        }
    }

    /// A host that only hears and repeats packets that others signed gains nothing by their key.
    #[test]
    fn with_a_key_an_address_that_never_answered_gets_no_more_than_was_sent_in_its_name(seed: u64) {
        let mut crowd = Crowd::new(true, Limits::default(), seed);
        crowd.deaf = vec![crowd.addresses[1], crowd.addresses[2], crowd.addresses[4]];
        crowd.one_stream();
        for _ in 0..1_500 {
            crowd.anything();
            for address in &crowd.deaf {
                let (came, went) = crowd.ledger.get(address).copied().unwrap_or_default();
                prop_assert!(went <= came, "{address}: {came} came in its name and {went} went");
            }
        }
    }

    #[test]
    fn with_a_key_the_limits_hold(seed: u64) {
        let (rate, burst) = (Rate::ip(8_000), Bytes(20_000));
        let limits = Limits {
            per_source_rate: rate,
            per_source_burst: burst,
            total_rate: rate,
            total_burst: Bytes(40_000),
            ..Limits::default()
        };
        let mut crowd = Crowd::new(true, limits, seed);
        crowd.one_stream();
        for _ in 0..1_000 {
            crowd.anything();
            let earned = rate.bytes_in(crowd.now - Time::ZERO) + Bytes(1);
            prop_assert!(crowd.sent_to(|_| true) <= Bytes(40_000) + earned);
            for address in &crowd.addresses {
                prop_assert!(crowd.sent_to(|ip| ip == address.ip()) <= burst + earned);
            }
        }
        prop_assert!(crowd.reflector.counters().over_budget > 0, "{:?}", crowd.reflector.counters());
    }
}

fn control(count: u16, ms: u32) -> ReflectedControl {
    ReflectedControl { length: 1_460, count, interval_ns: ms * 1_000_000, groups: false }
}

fn somebody() -> SocketAddr {
    "192.0.2.1:1".parse().unwrap()
}

#[test]
fn credit_is_spent_once_and_a_copy_of_a_request_is_not_served_again() {
    let mut crowd = Crowd::new(false, Limits::default(), 1);
    crowd.session(somebody(), 100_000);
    let request = crowd.reverse(somebody(), 1, control(10, 1));
    assert_eq!(crowd.deliver(request.clone()).len(), 10);
    // A copy brings nothing, before and after the packets have left, and once their log was given up.
    assert_eq!(crowd.deliver(request.clone()).len(), 0);
    crowd.pass(Span::from_secs(1));
    assert_eq!(crowd.deliver(request.clone()).len(), 0);
    let token = crowd.own_token(somebody());
    let (kind, value_len) = (ReportKind::Departures, 56);
    let done = ReportRequest { token, stream: 1, page: 0, kind, acknowledge: true, end: false, value_len };
    let done = crowd.build(somebody(), |b| b.tlv(&done), 0);
    crowd.deliver(done);
    assert_eq!(crowd.deliver(request).len(), 0);
    assert_eq!(crowd.reflector.counters().repeated, 3);
    assert_eq!(crowd.reflector.counters().streamed, 10);
}

#[test]
fn a_reverse_stream_beyond_the_credit_is_refused_with_c() {
    let mut crowd = Crowd::new(false, Limits::default(), 1);
    crowd.session(somebody(), 14_880);
    let request = crowd.reverse(somebody(), 1, control(11, 1));
    let replies = crowd.deliver(request);
    assert_eq!(replies.len(), 1);
    let bytes = replies[0].datagram.payload.udp().unwrap();
    let flags =
        |kind| Tlvs::new(tlv_area(Mode::Open, bytes)).flatten().find(|t| t.kind == kind).unwrap().flags;
    assert_eq!(flags(TlvType::REFLECTED_CONTROL), TlvFlags::NOT_CONFORMANT);
    assert_eq!(flags(TlvType::STREAM), TlvFlags::NONE);
}

#[test]
fn a_stream_ends_within_a_second_of_its_request() {
    let mut crowd = Crowd::new(true, Limits::default(), 1);
    crowd.session(somebody(), 0);
    let requests =
        [control(1_000, 1), control(1_001, 1), control(1_002, 1), control(2, 1_001), control(2, 1_000)];
    let last: Vec<_> = (1..)
        .zip(requests)
        .map(|(stream, control)| {
            let request = crowd.reverse(somebody(), stream, control);
            let now = crowd.now;
            let sent = crowd.deliver(request);
            crowd.pass(Span::from_secs(2));
            sent.last().filter(|t| t.id != TransmitId::UNTRACKED).map(|t| t.at - now)
        })
        .collect();
    let lead = Span::from_millis(2);
    let at = |ms| Some(Span::from_millis(ms) + lead);
    assert_eq!(last, [at(999), at(1_000), None, None, at(1_000)]);
}

#[test]
fn an_uneven_stream_leaves_as_its_schedule_says_within_the_same_bounds() {
    let mut crowd = Crowd::new(false, Limits::default(), 1);
    crowd.session(somebody(), 100_000);
    let mut ask = |stream, count, ms: &[u32]| -> Vec<i64> {
        let tag = StreamTag { stream, index: 0, count, burst: 0, token: crowd.own_token(somebody()) };
        let schedule = Schedule { gaps: ms.iter().map(|ms| ms * 1_000_000).collect() };
        let request = crowd.build(somebody(), |b| b.tlv(&tag)?.tlv(&control(count, 0))?.tlv(&schedule), 0);
        let now = crowd.now;
        let sent = crowd.deliver(request);
        crowd.pass(Span::from_secs(2));
        let leaving = sent.iter().filter(|t| t.id != TransmitId::UNTRACKED);
        leaving.map(|t| (t.at - now).as_nanos() / 1_000_000).collect()
    };
    assert_eq!(ask(1, 4, &[10, 0, 80]), [2, 12, 12, 92]);
    assert_eq!(ask(2, 3, &[600, 400]), [2, 602, 1_002]);
    // Longer than a second, or with gaps for other packets than are asked for.
    for (stream, gaps) in [(3, &[600, 401][..]), (4, &[1]), (5, &[1, 1, 1]), (6, &[4_000, 4_000])] {
        assert_eq!(ask(stream, 3, gaps), [], "{gaps:?}");
    }
    // It is paid for like any other.
    assert_eq!(ask(7, 100, &[1; 99]), []);
}

#[test]
fn packets_that_wait_to_leave_are_bounded() {
    let limits = Limits { planned: 3_000, ..Limits::unlimited() };
    let mut crowd = Crowd::new(true, limits, 1);
    let mut planned = 0;
    for host in 1..=3_u8 {
        let from = SocketAddr::new([192, 0, 2, host].into(), 1);
        crowd.session(from, 0);
        for stream in 1..=4 {
            let request = crowd.reverse(from, stream, control(900, 1));
            let sent = crowd.deliver(request);
            planned += sent.iter().filter(|t| t.id != TransmitId::UNTRACKED).count();
        }
    }
    // Two of each session, as the third goes beyond 2,048, until 3,000 in all.
    assert_eq!(planned, 2_700);
    crowd.pass(Span::from_secs(2));
    let request = crowd.reverse(somebody(), 9, control(900, 1));
    assert_eq!(crowd.deliver(request).len(), 900, "room again when they have left");
}

#[test]
fn hellos_from_forged_addresses_leave_nothing_behind() {
    for (hosts, keyed) in [(1_000_u32, false), (1_000, true), (100_000, false)] {
        let mut crowd = Crowd::new(keyed, Limits::unlimited(), 1);
        for host in 0..hosts {
            let from = SocketAddr::new(IpAddr::V4((0x0A00_0000 + host).into()), 9);
            let hello = crowd.hello(from, [0; 16]);
            assert_eq!(crowd.deliver(hello).len(), 1);
            crowd.tokens.clear();
        }
        assert_eq!(crowd.reflector.sessions(), 0);
    }
}

#[test]
fn sessions_are_bounded_in_all_and_per_source_and_end_with_the_lease() {
    let mut crowd = Crowd::new(false, Limits::default(), 1);
    for port in 1..=100 {
        crowd.session(SocketAddr::new([192, 0, 2, 1].into(), port), 0);
    }
    assert_eq!(crowd.reflector.sessions(), 64);
    // One network of IPv6 is one source.
    for host in 1..=100_u128 {
        crowd.session(SocketAddr::new(IpAddr::V6((0x2001_0db8_u128 << 96 | host).into()), 9), 0);
    }
    assert_eq!(crowd.reflector.sessions(), 128);
    for host in 0..5_000_u32 {
        crowd.session(SocketAddr::new(IpAddr::V4((0x0A00_0000 + host).into()), 9), 0);
    }
    assert_eq!(crowd.reflector.sessions(), 4_096);
    // A client that is turned away is told that the reflector is busy, not that its stream is unknown.
    let late = SocketAddr::new(IpAddr::V4((0x0A00_0000_u32 + 4_999).into()), 9);
    let token = crowd.own_token(late);
    let report = ReportRequest {
        token,
        stream: 1,
        page: 0,
        kind: ReportKind::Arrivals,
        acknowledge: false,
        end: false,
        value_len: 56,
    };
    let report = crowd.build(late, |b| b.tlv(&report), 0);
    let reply = crowd.deliver(report);
    let bytes = reply[0].datagram.payload.udp().unwrap();
    let page = Tlvs::new(tlv_area(Mode::Open, bytes)).flatten().find(|t| t.kind == TlvType::REPORT).unwrap();
    let page = lastmile::wire::private::ReportPage::parse(page.value).unwrap();
    assert_eq!(page.head.status, lastmile::wire::private::ReportStatus::Busy);
    crowd.pass(Span::from_secs(32));
    assert_eq!(crowd.reflector.sessions(), 0);
}

/// One source may measure as often as it likes, one run after the other: a finished one leaves its place.
#[test]
fn a_goodbye_ends_its_own_session_and_no_other() {
    for keyed in [false, true] {
        let mut crowd = Crowd::new(keyed, Limits::default(), 1);
        for port in 1..=500 {
            let (peer, neighbour) =
                (SocketAddr::new([192, 0, 2, 1].into(), port), "192.0.2.1:9999".parse().unwrap());
            crowd.pass(Span::from_millis(10));
            crowd.session(peer, 0);
            crowd.session(neighbour, 0);
            assert_eq!(crowd.reflector.sessions(), 2, "run {port}");
            let own = crowd.own_token(peer);
            for (from, token) in [(neighbour, own), (peer, [7; 16]), (peer, [0; 16])] {
                let goodbye = crowd.goodbye(from, token);
                assert!(crowd.deliver(goodbye).is_empty());
                assert_eq!(crowd.reflector.sessions(), 2, "whose token it is not");
            }
            if keyed {
                let mut forged = crowd.goodbye(peer, own);
                let Payload::Udp(bytes) = &mut forged.payload else { panic!() };
                *bytes.last_mut().unwrap() ^= 1;
                crowd.deliver(forged);
                assert_eq!(crowd.reflector.sessions(), 2, "who has not the key");
            }
            let goodbye = crowd.goodbye(peer, own);
            (0..2).for_each(|_| assert!(crowd.deliver(goodbye.clone()).is_empty(), "needs no answer"));
            assert_eq!(crowd.reflector.sessions(), 1, "a copy begins no session");
        }
        assert_eq!(crowd.reflector.counters().no_session, 0);
        crowd.pass(Span::from_secs(32));
        assert_eq!(crowd.reflector.sessions(), 0);
    }
}

#[test]
fn sixty_four_sources_that_want_every_session_leave_some_to_others() {
    let mut crowd = Crowd::new(false, Limits::default(), 1);
    for port in 1..=64 {
        for host in 1..=64 {
            crowd.session(SocketAddr::new([203, 0, 113, host].into(), port), 0);
        }
    }
    let taken = crowd.reflector.sessions();
    for host in 1..=20 {
        crowd.session(SocketAddr::new([192, 0, 2, host].into(), 1), 0);
    }
    assert_eq!(crowd.reflector.sessions(), taken + 20, "{taken} taken");
}

/// One source opens every session that it can have, fills their logs, has streams wait, and asks for more than it may.
fn besieged(keyed: bool) -> Crowd {
    let mut crowd = Crowd::new(keyed, Limits::default(), 1);
    let enemy = |port| SocketAddr::new([203, 0, 113, 9].into(), port);
    for port in 1..=70 {
        crowd.session(enemy(port), 0);
    }
    for port in 1..=64 {
        let token = crowd.own_token(enemy(port));
        for index in 0..2_048 * 4 {
            let (stream, index) = (u32::from(index / 2_048) + 1, index % 2_048);
            let tag = StreamTag { stream, index, count: 2_048, burst: 0, token };
            let packet = crowd.build(enemy(port), |b| b.tlv(&tag)?.tlv(&ControlCode::NoReply), 0);
            crowd.deliver(packet);
            if crowd.reflector.counters().no_room > 0 {
                break;
            }
        }
        let request = crowd.reverse(enemy(port), 9, control(900, 1));
        crowd.deliver(request);
    }
    crowd
}

#[test]
fn a_second_client_measures_while_one_source_wants_everything() {
    for keyed in [false, true] {
        let crowd = besieged(keyed);
        let counters = crowd.reflector.counters();
        assert!(counters.no_session > 0 && counters.no_room > 0, "{counters:?}");
        let key = keyed.then(|| Key::new(SECRET).unwrap());
        let config = ProberConfig { key, ..ProberConfig::new(crate::world::peer_address(), [5; 32]) };
        let directions = [Direction::Forward, Direction::Reverse, Direction::RoundTrip];
        let measurements = directions.map(|d| measurement(d, vec![pairs(1_000)])).into();
        let mut world = World::new(config, measurements, crowd.reflector, NEAR, 1);
        world.run(Span::from_secs(30));
        let records = world.prober.sink();
        assert_eq!(records.len(), 3, "{:?}", world.refusals());
        assert!(records.iter().flat_map(|r| &r.packets).all(|p| p.fate.arrived().is_some()));
    }
}

#[test]
fn who_is_turned_away_is_told_of_at_once_and_then_every_ten_seconds() {
    let mut crowd = Crowd::new(false, Limits::default(), 1);
    for port in 1..=100 {
        crowd.session(SocketAddr::new([192, 0, 2, 1].into(), port), 0);
    }
    let told = |crowd: &mut Crowd| core::mem::take(&mut crowd.told);
    let peer = SocketAddr::new([192, 0, 2, 1].into(), 65);
    let line =
        |peer, no_session| Decision::TurnedAway { peer, no_session, no_room: 0, over_budget: 0, unpaid: 0 };
    assert_eq!(told(&mut crowd), [line(peer, 1)]);
    crowd.pass(Span::from_secs(9));
    assert_eq!(told(&mut crowd), []);
    crowd.pass(Span::from_secs(1));
    assert_eq!(told(&mut crowd), [line(SocketAddr::new(peer.ip(), 100), 35)]);
    crowd.pass(Span::from_secs(60));
    assert_eq!(told(&mut crowd), [], "nothing since");
}

#[test]
fn flags_of_other_tlvs_stay_when_a_hello_or_report_is_answered() {
    let mut crowd = Crowd::new(false, Limits::default(), 1);
    let hello = crate::forge::hello(&mut crowd.dice, [0; 16]);
    // An unknown TLV, a hello, and a Class of Service that is one octet short.
    let odd = crowd.build(
        somebody(),
        |b| {
            let b = b.raw(TlvFlags::SENDER, TlvType(200), &[1, 2])?.tlv(&hello)?;
            b.raw(TlvFlags::SENDER, TlvType::CLASS_OF_SERVICE, &[1, 2, 3])
        },
        0,
    );
    let reply = crowd.deliver(odd);
    let bytes = reply[0].datagram.payload.udp().unwrap();
    let flags: Vec<_> = Tlvs::new(tlv_area(Mode::Open, bytes)).flatten().map(|t| t.flags).collect();
    assert_eq!(flags, [TlvFlags::UNRECOGNIZED, TlvFlags::NONE, TlvFlags::MALFORMED]);
}

#[test]
fn an_hmac_tlv_that_cannot_be_checked_is_flagged_i() {
    let mut crowd = Crowd::new(false, Limits::default(), 1);
    let other = HmacKey::new(b"a key that the reflector has not").unwrap();
    let hello = crate::forge::hello(&mut crowd.dice, [0; 16]);
    let packet = crowd.build(somebody(), |b| b.tlv(&hello)?.tlv_hmac(&other), 0);
    let reply = crowd.deliver(packet);
    let bytes = reply[0].datagram.payload.udp().unwrap();
    assert!(Tlvs::new(tlv_area(Mode::Open, bytes)).flatten().all(|t| t.flags == TlvFlags::INTEGRITY));
    assert!(crowd.tokens.is_empty(), "and no hello is answered");
}
