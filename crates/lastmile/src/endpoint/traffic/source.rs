//! [`Source`]: sends traffic by a law of arrivals to a sink that wants it.

use core::net::SocketAddr;
use std::collections::VecDeque;

use super::errors::Errors;
use super::{SILENCE, STATUS_EVERY};
use crate::arrivals::{Arrivals, Departures};
use crate::endpoint::Endpoint;
use crate::node::{Datagram, Ecn, Failure, Input, Node, Output, PortId, Transmit, TransmitId};
use crate::rng::Stream;
use crate::time::{Span, Time};
use crate::units::{Bytes, IpVersion, Rate};
use crate::wire::private::Token;
use crate::wire::traffic::{Counts, DATA_LEN, Packet};

/// Configuration of a source.
#[derive(Clone, Debug)]
pub struct SourceConfig {
    /// The sink.
    pub peer: SocketAddr,
    /// A number that nobody can guess.
    pub nonce: u64,
    /// Law of the departures.
    pub arrivals: Arrivals,
    /// Mean rate of IP packets.
    pub rate: Rate,
    /// Size of each at the IP layer.
    pub packet_size: Bytes,
    /// Seed of the departures.
    pub seed: u64,
    /// Time for which it sends.
    pub lasts: Span,
    /// Bytes of IP packets that it sends at most.
    pub max_bytes: Option<Bytes>,
    /// ECN codepoint of packets of data.
    pub ecn: Ecn,
    /// Their DiffServ codepoint.
    pub dscp: u8,
}

impl SourceConfig {
    /// The name of the stream of random numbers from a seed: the same as of a flow `cross` in a scenario.
    pub const COMPONENT: &'static str = "traffic/cross";

    /// The least packet at the IP layer.
    pub fn smallest(peer: SocketAddr) -> Bytes {
        Bytes(DATA_LEN as u64) + IpVersion::of(peer).udp_overhead()
    }
}

/// Why a source has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Ended {
    /// Its time is over, or its trace.
    Done,
    /// It has sent as many bytes as it may.
    Bytes,
    /// The sink said so.
    Stopped,
    /// The sink fell silent.
    Silent,
    /// No sink answered: nothing was sent.
    NoAnswer,
    /// A sink answered the hello and nothing after that: it has no place, or its answers are lost.
    NoPlace,
    /// This host, or the network, refuses the packets.
    Unreachable,
    /// The program was interrupted.
    Interrupted,
}

/// All that a source has to say at its end.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Summary {
    /// Why it ended.
    pub ended: Ended,
    /// Packets of data that left.
    pub packets: u64,
    /// Their bytes at the IP layer.
    pub bytes: u64,
    /// From the first departure to the last, seconds, by the stamps of departure where this host was late.
    pub seconds: f64,
    /// Packets that this host could not send.
    pub failed: u64,
    /// Time by which departures were put off because this host stood still, seconds.
    pub held_up: f64,
    /// Gaps whose departures were stamped.
    pub gaps: u64,
    /// Median error of a gap, seconds, from the stamps of departure.
    pub gap_error_median: Option<f64>,
    /// The error that 99 % of the gaps do not exceed.
    pub gap_error_p99: Option<f64>,
    /// The sink's last counts.
    pub counts: Option<Counts>,
    /// True if these are of all that was sent: the sink had the goodbye.
    pub complete: bool,
}

/// A decision of a source.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(tag = "event", rename_all = "kebab-case")
)]
#[non_exhaustive]
pub enum SourceEvent {
    /// The sink answered, and traffic begins.
    SinkReady {
        /// Its address.
        peer: SocketAddr,
        /// Round-trip time of its answer.
        rtt: Span,
    },
    /// A status of the sink.
    Reported {
        /// Packets sent by then.
        packets: u64,
        /// The sink's counts.
        counts: Counts,
    },
    /// It has ended.
    Ended(Summary),
}

/// Requests in a row that may stay without an answer, and the time for each.
const ASKS: u32 = 3;
const ANSWER: Span = Span::from_secs(1);
/// Packets are handed over so long before their departure.
const AHEAD: Span = Span::from_millis(20);
/// A host that was late by more has stood still: departures are put off, since nobody wants the packets of that time at once.
const STOOD_STILL: Span = Span::from_millis(200);
/// Packets that are handed over at once.
const AT_ONCE: usize = 512;
/// Bytes that may wait for this host to send them: 0.2 s of 2.5 Gbit/s, since a departure that the kernel does not stamp is told so much later.
const WAITING: Bytes = Bytes(64_000_000);
/// Longest wait for the last stamps, once the sink has counted all.
const STAMPS: Span = Span::from_millis(500);
/// Failures in a row that end it.
const FAILURES: u32 = 1_000;

#[derive(Debug)]
enum Phase {
    /// Waits for a welcome; requests so far, when the last one left.
    Hello(u32, Time),
    /// Waits for the first status.
    Open(Token, u32, Time),
    /// Sends, and opens again while its law leaves nothing to send: a sink answers no more bytes than it got.
    Sending(Token),
    /// Waits for the last status; requests so far, when the last one left.
    Bye(Ended, u32, Time),
    /// Has it, since then, and waits for the last stamps of departure.
    Stamps(Ended, Time),
    Over,
}

/// The source.
pub struct Source {
    config: SourceConfig,
    phase: Phase,
    departures: Option<Departures>,
    /// When traffic began and will end, and its first and last departures.
    begun: Time,
    until: Time,
    left: Option<(Time, Time)>,
    /// Set once there is no more to hand over.
    ending: Option<Ended>,
    packets: u64,
    bytes: Bytes,
    failed: u64,
    /// Failures since the last packet that left.
    failing: u32,
    held_up: Span,
    /// Planned departures and sizes of packets handed over, from the first whose fate is not known, and the number of that one; their bytes.
    handed: VecDeque<(Time, Bytes)>,
    first_handed: u64,
    waiting: Bytes,
    /// The last packet whose stamp came: number, plan and stamp.
    stamped: Option<(u64, Time, Time)>,
    errors: Errors,
    counts: Option<Counts>,
    last_number: Option<u32>,
    complete: bool,
    last_heard: Time,
    /// When the last packet left or will leave.
    last_left: Time,
    out: VecDeque<Output<SourceEvent>>,
}

impl Source {
    /// Ready to ask the sink.
    pub fn new(config: SourceConfig) -> Source {
        Source {
            config,
            phase: Phase::Hello(0, Time::ZERO),
            departures: None,
            begun: Time::ZERO,
            until: Time::ZERO,
            left: None,
            ending: None,
            packets: 0,
            bytes: Bytes::ZERO,
            failed: 0,
            failing: 0,
            held_up: Span::ZERO,
            handed: VecDeque::new(),
            first_handed: 1,
            waiting: Bytes::ZERO,
            stamped: None,
            errors: Errors::default(),
            counts: None,
            last_number: None,
            complete: false,
            last_heard: Time::ZERO,
            last_left: Time::ZERO,
            out: VecDeque::new(),
        }
    }

    fn request(&mut self, now: Time, packet: Packet) {
        let transmit = self.transmit(TransmitId::UNTRACKED, now, packet, 0);
        self.last_left = now;
        self.out.push_back(Output::Transmit(transmit));
    }

    fn transmit(&self, id: TransmitId, at: Time, packet: Packet, length: usize) -> Transmit {
        let peer = self.config.peer;
        let from = match IpVersion::of(peer) {
            IpVersion::V4 => SocketAddr::from(([0; 4], 0)),
            IpVersion::V6 => SocketAddr::from(([0_u16; 8], 0)),
        };
        let mut bytes = Vec::with_capacity(length);
        packet.write(&mut bytes, length);
        Transmit { id, at, port: PortId(0), datagram: Datagram::udp(from, peer, bytes) }
    }

    fn on_datagram(&mut self, now: Time, at: Time, datagram: &Datagram) {
        let Some(Ok(packet)) = datagram.payload.udp().map(Packet::parse) else { return };
        if !datagram.is_from(self.config.peer) {
            return;
        }
        match (packet, &self.phase) {
            (Packet::Welcome { nonce, token }, Phase::Hello(..)) if nonce == self.config.nonce => {
                self.phase = Phase::Open(token, 1, now);
                self.request(now, Packet::Open { nonce, token });
            }
            (Packet::Status { nonce, number, stop, last, counts }, phase) if nonce == self.config.nonce => {
                // Packets may overtake each other.
                if self.last_number.is_some_and(|before| number.wrapping_sub(before).cast_signed() <= 0) {
                    return;
                }
                (self.last_number, self.last_heard) = (Some(number), now);
                match *phase {
                    Phase::Open(token, _, asked) => self.begin(now, at - asked, token),
                    Phase::Sending(_) | Phase::Bye(..) => {
                        self.counts = Some(counts);
                        let packets = self.packets;
                        self.out.push_back(Output::Event(SourceEvent::Reported { packets, counts }));
                    }
                    Phase::Hello(..) | Phase::Stamps(..) | Phase::Over => return,
                }
                match self.phase {
                    Phase::Bye(why, ..) if last => {
                        self.complete = why != Ended::Stopped;
                        self.phase = Phase::Stamps(why, now);
                    }
                    Phase::Sending(_) if last => self.end(Ended::Stopped),
                    Phase::Sending(_) if stop => self.bye(now, Ended::Stopped),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn begin(&mut self, now: Time, rtt: Span, token: Token) {
        let SourceConfig { arrivals, rate, packet_size, seed, lasts, peer, .. } = &self.config;
        let random = Stream::new(*seed, SourceConfig::COMPONENT);
        self.departures = Some(Departures::new(arrivals, *rate, *packet_size, now, random));
        (self.begun, self.until) = (now, now + *lasts);
        self.phase = Phase::Sending(token);
        self.out.push_back(Output::Event(SourceEvent::SinkReady { peer: *peer, rtt }));
    }

    /// Hands packets over that leave soon.
    fn send(&mut self, now: Time) {
        let Some(mut departures) = self.departures.take() else { return };
        let late = now - departures.next();
        if late > STOOD_STILL {
            departures.postpone(late);
            self.held_up += late;
        }
        for _ in 0..AT_ONCE {
            let at = departures.next();
            if at >= self.until {
                self.ending = Some(Ended::Done);
            }
            if self.ending.is_some() || at > now + AHEAD || self.is_full() {
                break;
            }
            let size = departures.take();
            match self.config.max_bytes.is_some_and(|most| self.bytes + size > most) {
                true => self.ending = Some(Ended::Bytes),
                false => self.hand_over(now, at, size),
            }
        }
        self.departures = Some(departures);
        // All that was handed over leaves first.
        if let Some(why) = self.ending.filter(|_| now >= self.last_departure()) {
            self.bye(now, why);
        }
    }

    /// True if this host has enough to send.
    fn is_full(&self) -> bool {
        self.waiting >= WAITING
    }

    /// When the last packet that was handed over leaves.
    fn last_departure(&self) -> Time {
        self.left.map_or(self.begun, |(_, last)| last)
    }

    fn hand_over(&mut self, now: Time, at: Time, size: Bytes) {
        let (nonce, number) = (self.config.nonce, self.packets);
        let departure = (at - self.begun).as_nanos().max(0) as u64;
        let length = size.0.saturating_sub(IpVersion::of(self.config.peer).udp_overhead().0) as usize;
        let packet = Packet::Data { nonce, number, departure };
        // Zero is the name of packets that nobody waits for.
        let mut transmit = self.transmit(TransmitId(number + 1), at, packet, length);
        (transmit.datagram.ecn, transmit.datagram.dscp) = (self.config.ecn, self.config.dscp);
        let size = transmit.datagram.ip_size();
        self.handed.push_back((at, size));
        self.packets += 1;
        (self.bytes, self.waiting) = (self.bytes + size, self.waiting + size);
        // One that is late leaves at once.
        let leaves = at.max(now);
        self.left = Some((self.left.map_or(leaves, |left| left.0), leaves));
        self.last_left = leaves;
        self.out.push_back(Output::Transmit(transmit));
    }

    /// The planned departure of a packet and its size, once.
    fn plan(&mut self, id: TransmitId) -> Option<(Time, Bytes)> {
        let place = id.0.checked_sub(self.first_handed)? as usize;
        let planned = *self.handed.get(place)?;
        // Stamps come in order but for few.
        let gone: Bytes = self.handed.drain(..=place).map(|(_, size)| size).sum();
        self.waiting = self.waiting.saturating_sub(gone);
        self.first_handed += place as u64 + 1;
        Some(planned)
    }

    fn on_sent(&mut self, id: TransmitId, at: Time) {
        self.failing = 0;
        if let Some((_, last)) = &mut self.left {
            *last = at.max(*last);
        }
        let Some((planned, _)) = self.plan(id) else { return };
        if let Some((before, plan, stamp)) = self.stamped
            && before + 1 == id.0
        {
            self.errors.take((at - stamp) - (planned - plan));
        }
        self.stamped = Some((id.0, planned, at));
    }

    fn on_failed(&mut self, id: Option<TransmitId>, reason: Failure) {
        if let Some(id) = id {
            let size = self.plan(id).map_or(self.config.packet_size, |(_, size)| size);
            (self.failed, self.bytes) = (self.failed + 1, self.bytes.saturating_sub(size));
        }
        self.failing += 1;
        let refused = matches!(reason, Failure::Unreachable | Failure::PortClosed) && id.is_none();
        match self.phase {
            Phase::Hello(..) | Phase::Open(..) if refused => self.end(Ended::Unreachable),
            Phase::Sending(_) if self.failing >= FAILURES => self.end(Ended::Unreachable),
            // The sink's port is closed: it has ended.
            Phase::Sending(_) | Phase::Bye(..) if reason == Failure::PortClosed => self.end(Ended::Silent),
            _ => {}
        }
    }

    fn bye(&mut self, now: Time, why: Ended) {
        self.phase = Phase::Bye(why, 1, now);
        self.request(now, Packet::Bye { nonce: self.config.nonce });
    }

    fn end(&mut self, ended: Ended) {
        self.phase = Phase::Over;
        // Packets that still wait do not leave.
        (self.packets, self.bytes) =
            (self.packets - self.handed.len() as u64, self.bytes.saturating_sub(self.waiting));
        let seconds = self.left.map_or(0.0, |(first, last)| (last - first).as_secs_f64());
        let quantile = |share| self.errors.quantile(share).map(Span::as_secs_f64);
        self.out.push_back(Output::Event(SourceEvent::Ended(Summary {
            ended,
            packets: self.packets - self.failed.min(self.packets),
            bytes: self.bytes.0,
            seconds,
            failed: self.failed,
            held_up: self.held_up.as_secs_f64(),
            gaps: self.errors.count(),
            gap_error_median: quantile(0.5),
            gap_error_p99: quantile(0.99),
            counts: self.counts,
            complete: self.complete,
        })));
    }

    fn on_time(&mut self, now: Time) {
        match self.phase {
            Phase::Hello(0, _) => {
                self.phase = Phase::Hello(1, now);
                self.request(now, Packet::Hello { nonce: self.config.nonce });
            }
            Phase::Hello(asks, asked) | Phase::Open(_, asks, asked) if now >= asked + ANSWER => {
                if asks >= ASKS {
                    let answered = matches!(self.phase, Phase::Open(..));
                    return self.end(if answered { Ended::NoPlace } else { Ended::NoAnswer });
                }
                let nonce = self.config.nonce;
                let packet = match &mut self.phase {
                    Phase::Open(token, asks, asked) => {
                        (*asks, *asked) = (*asks + 1, now);
                        Packet::Open { nonce, token: *token }
                    }
                    phase => {
                        *phase = Phase::Hello(asks + 1, now);
                        Packet::Hello { nonce }
                    }
                };
                self.request(now, packet);
            }
            Phase::Sending(_) if now >= self.last_heard + SILENCE => self.end(Ended::Silent),
            Phase::Sending(token) => {
                if now >= self.last_left + STATUS_EVERY {
                    self.request(now, Packet::Open { nonce: self.config.nonce, token });
                }
                self.send(now);
            }
            Phase::Bye(why, asks, asked) if now >= asked + STATUS_EVERY => {
                if asks >= ASKS {
                    return self.end(why);
                }
                self.phase = Phase::Bye(why, asks + 1, now);
                self.request(now, Packet::Bye { nonce: self.config.nonce });
            }
            Phase::Stamps(why, since) if self.handed.is_empty() || now >= since + STAMPS => self.end(why),
            _ => {}
        }
    }

    fn wake(&self) -> Option<Time> {
        match self.phase {
            Phase::Hello(_, asked) | Phase::Open(_, _, asked) => Some(asked + ANSWER),
            Phase::Bye(_, _, asked) => Some(asked + STATUS_EVERY),
            Phase::Sending(_) => {
                let next = self.departures.as_ref().map_or(self.until, Departures::next).min(self.until);
                let ahead = Time::from_nanos(next.as_nanos().saturating_sub(AHEAD.as_nanos() as u64));
                let next = match self.ending {
                    Some(_) => self.last_departure(),
                    // A stamp wakes it.
                    None if self.is_full() => Time::MAX,
                    None => ahead,
                };
                Some(next.min(self.last_heard + SILENCE).min(self.last_left + STATUS_EVERY))
            }
            Phase::Stamps(_, since) => Some(since + STAMPS),
            Phase::Over => None,
        }
    }
}

impl Node for Source {
    type Event = SourceEvent;

    fn handle(&mut self, now: Time, input: Input) {
        match input {
            Input::Datagram { at, datagram, .. } => self.on_datagram(now, at, &datagram),
            Input::Sent { id, at } => self.on_sent(id, at),
            Input::Failed { id, reason, .. } => self.on_failed(id, reason),
            Input::Interrupted if !matches!(self.phase, Phase::Over) => {
                if matches!(self.phase, Phase::Sending(_)) {
                    self.request(now, Packet::Bye { nonce: self.config.nonce });
                }
                self.end(Ended::Interrupted);
            }
            _ => {}
        }
        if !matches!(self.phase, Phase::Over) {
            self.on_time(now);
        }
    }

    fn poll(&mut self, _: Time) -> Output<SourceEvent> {
        self.out.pop_front().unwrap_or_else(|| Output::Wait(self.wake()))
    }
}

impl Endpoint for Source {
    fn is_finished(&self) -> bool {
        matches!(self.phase, Phase::Over) && self.out.is_empty()
    }
}
