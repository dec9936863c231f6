//! The receiving end: what comes from its sources, and when they are answered. `admission` has which sources there are, `viewing` their frames.

use core::net::SocketAddr;
use std::collections::VecDeque;
use std::sync::Arc;

use super::config::refuse_without_truth;
use super::event::{Decision, Left};
use super::heard::{QUIET, Source};
use super::missing::Missing;
use super::playout::FrameSink;
use super::receiver_config::ReceiverConfig;
use super::summary::Counting;
use super::{REPORT_EVERY, middle, ntp};
use rand_pcg::Pcg64Mcg;

use crate::control::{Composition, LossTruth};
use crate::endpoint::Endpoint;
use crate::node::{Datagram, Input, Node, Output, PortId, Transmit, TransmitId};
use crate::options::ChoiceError;
use crate::time::{Span, Time};
use crate::wire::{
    Rtcp, RtpHeader, RtpPacket, SendTime, TfrcScheme, is_rtcp, original, write_goodbye, write_nack,
    write_name, write_receiver_report,
};

/// A source that is silent for so long has left.
const LEASE: Span = Span::from_secs(10);

/// The receiving end of streams.
pub struct Receiver {
    pub(super) config: ReceiverConfig,
    truth: Option<Arc<dyn LossTruth>>,
    pub(super) sources: Vec<Source>,
    /// Sources whose packets found no room since the last notice: the last of them, and the packets; and when the next notice may come.
    pub(super) turned_away: Option<(SocketAddr, u32, u64)>,
    pub(super) next_tell: Time,
    pub(super) random: Pcg64Mcg,
    pub(super) viewer: Option<Box<dyn FrameSink>>,
    pub(super) out: VecDeque<Output<Decision>>,
}

impl Receiver {
    /// A receiver that knows no source.
    ///
    /// # Errors
    /// The receiver that counts losses cannot be made.
    pub fn new(config: ReceiverConfig) -> Result<Receiver, ChoiceError> {
        refuse_without_truth(config.control.as_ref())?;
        Receiver::with(config, None)
    }

    /// A receiver that a simulation tells what really lost packets.
    ///
    /// # Errors
    /// The receiver that counts losses cannot be made.
    pub fn informed(config: ReceiverConfig, truth: Arc<dyn LossTruth>) -> Result<Receiver, ChoiceError> {
        Receiver::with(config, Some(truth))
    }

    fn with(config: ReceiverConfig, truth: Option<Arc<dyn LossTruth>>) -> Result<Receiver, ChoiceError> {
        // Each source gets one of its own, later.
        config.counting(&config.scheme())?;
        let (sources, out) = (Vec::new(), VecDeque::new());
        let random = Pcg64Mcg::new(u128::from(config.ssrc) << 1 | 1);
        let (turned_away, next_tell, viewer) = (None, Time::ZERO, None);
        Ok(Receiver { config, truth, sources, turned_away, next_tell, random, viewer, out })
    }

    /// The same receiver with a viewer of its video ([`ReceiverConfig::video`]).
    #[must_use]
    pub fn with_viewer(self, viewer: Box<dyn FrameSink>) -> Receiver {
        Receiver { viewer: Some(viewer), ..self }
    }

    fn on_datagram(&mut self, now: Time, port: PortId, at: Time, datagram: &Datagram) {
        let Some(bytes) = datagram.payload.udp() else { return };
        if is_rtcp(bytes) {
            return self.on_rtcp(now, datagram, bytes);
        }
        let Ok(packet) = RtpPacket::parse(bytes) else { return };
        let RtpHeader { ssrc, .. } = packet.header;
        let size = datagram.ip_size() + self.config.expansion.rtp;
        let Some(place) = self.source(datagram.from, ssrc) else {
            if self.has_room(now, datagram.from) {
                let place = (port, datagram.from, datagram.to);
                let mut source = Source::new((now, at), place, &packet.header, &self.config);
                source.balance.0 += size;
                // A source that repeats packets of a proven one gets feedback from its first packet on.
                let proven = |other: &Source| other.known && other.peer == source.peer;
                source.known = source.repeats && self.sources.iter().any(proven);
                if !source.repeats && SendTime::of(&packet).is_some_and(|stamp| stamp.summary) {
                    source.counting = self.counting();
                }
                source.take(at, &packet, size, datagram.ecn);
                self.sources.push(source);
                self.take_frame(at, self.sources.len() - 1, &packet);
            } else {
                self.turn_away(datagram.from, ssrc, 1);
            }
            return self.on_repeated(now, datagram.from, &packet);
        };
        let may_stay = self.sources[place].known || self.may_stay(now, datagram.from);
        let source = &mut self.sources[place];
        source.heard(now, datagram.to, size);
        let is_back = core::mem::take(&mut source.moved);
        let was_known = source.known;
        let taken = source.take(at, &packet, size, datagram.ecn);
        if taken && source.next_feedback.is_none() {
            source.next_feedback = Some(now + source.feedback_after(&self.config));
        }
        if taken {
            self.take_frame(at, place, &packet);
        }
        let source = &mut self.sources[place];
        if source.known && !may_stay {
            self.sources.swap_remove(place);
            return self.turn_away(datagram.from, ssrc, 1);
        }
        source.decisions(&mut self.out);
        if source.is_full(&self.config) {
            source.next_feedback = Some(now);
        }
        if source.known && !was_known && !source.repeats {
            let (peer, payload_type) = (source.peer, packet.header.payload_type);
            self.out.push_back(Output::Event(Decision::SourceFound { peer, ssrc, payload_type }));
        }
        if self.sources[place].known && (is_back || !was_known) {
            self.moves(place);
        }
        self.on_repeated(now, datagram.from, &packet);
    }

    /// Counting of the losses of one more source.
    fn counting(&self) -> Option<Counting> {
        let scheme = self.config.scheme();
        let receiver = self.config.counting(&scheme).ok()?;
        Some(Counting::new(receiver, &scheme.to_string(), self.truth.clone(), self.config.resolution))
    }

    /// A source names the scheme by which its losses are to be counted: once, and once it is proven.
    fn on_scheme(&mut self, peer: SocketAddr, scheme: &TfrcScheme<'_>) {
        let Some(place) = self.source(peer, scheme.source).filter(|place| self.sources[*place].known) else {
            return;
        };
        let Ok(composition) = scheme.name.parse::<Composition>() else { return };
        let Some(counting) = self.sources[place].counting.as_mut().filter(|counting| counting.is_open())
        else {
            return;
        };
        if self.truth.is_none() && refuse_without_truth(Some(&composition)).is_err() {
            return;
        }
        if let Ok(receiver) = self.config.counting(&composition) {
            counting.follow(receiver, scheme.name);
            let (ssrc, scheme) = (scheme.source, composition);
            self.out.push_back(Output::Event(Decision::SchemeNamed { peer, ssrc, scheme }));
        }
    }

    /// A packet that repeats another one may be what a source of the same peer misses: that whose packets it repeated before, else the
    /// one that asked for this one (RFC 4588, section 5.3).
    fn on_repeated(&mut self, now: Time, peer: SocketAddr, packet: &RtpPacket<'_>) {
        if !self.config.repeats(packet.header.payload_type) {
            return;
        }
        let Some((number, payload)) = original(packet) else { return };
        let own = self.source(peer, packet.header.ssrc);
        let found = match own.and_then(|own| self.sources[own].original) {
            Some(ssrc) => self.source(peer, ssrc),
            None => self.unresolved(peer).find(|place| self.sources[*place].awaits(number)),
        };
        let Some(of) = found else { return };
        if let Some(own) = own {
            self.sources[own].original = Some(self.sources[of].ssrc);
        }
        if self.sources[of].repeated(now, number) {
            self.sources[of].received.recovered += 1;
        }
        if let Some(playout) = &mut self.sources[of].playout {
            let RtpHeader { timestamp, marker, .. } = packet.header;
            playout.push(now, (number, timestamp, marker), payload);
        }
    }

    /// A peer's sources of which it is not known by which other they are repeated.
    fn unresolved(&self, peer: SocketAddr) -> impl Iterator<Item = usize> {
        let own = move |(_, source): &(usize, &Source)| source.peer == peer;
        let resolved = move |ssrc| self.sources.iter().any(|s| s.peer == peer && s.original == Some(ssrc));
        let all = self.sources.iter().enumerate().filter(own);
        all.filter(move |(_, source)| !source.repeats && !resolved(source.ssrc)).map(|(place, _)| place)
    }

    /// Place of a source in the list.
    fn source(&self, peer: SocketAddr, ssrc: u32) -> Option<usize> {
        self.sources.iter().position(|source| (source.peer, source.ssrc) == (peer, ssrc))
    }

    fn on_rtcp(&mut self, now: Time, datagram: &Datagram, bytes: &[u8]) {
        // The datagram's bytes are counted once, for all its reports and sources.
        let mut came = datagram.ip_size() + self.config.expansion.rtcp;
        let asks = self.config.expansion.is_protected() && Rtcp::all(bytes).nth(1).is_none();
        let mut called = Vec::new();
        for packet in Rtcp::all(bytes).map_while(Result::ok) {
            match packet {
                Rtcp::Sender { ssrc, info, .. } => {
                    if let Some(place) = self.source(datagram.from, ssrc) {
                        let source = &mut self.sources[place];
                        source.heard(now, datagram.to, core::mem::take(&mut came));
                        source.sender_report = Some((middle(info.ntp), now));
                        // Nothing else is answered while no media comes. A report alone asks if this end is there.
                        let is_due = asks || now >= source.received.last + QUIET;
                        if source.known && !source.repeats && is_due && !called.contains(&ssrc) {
                            called.push(ssrc);
                        }
                    }
                }
                Rtcp::Goodbye(sources) => {
                    for ssrc in sources.iter() {
                        let Some(place) = self.source(datagram.from, ssrc) else { continue };
                        if self.sources[place].known {
                            self.answer(now, place, true, false);
                        }
                        self.leave(now, place, Left::Goodbye);
                    }
                }
                Rtcp::TfrcScheme(scheme) => self.on_scheme(datagram.from, &scheme),
                Rtcp::FeedbackRequest(request) => {
                    let place = self.source(datagram.from, request.source);
                    if let Some(place) = place.filter(|place| self.sources[*place].known) {
                        self.sources[place].ask_for_feedback(now, request.every);
                    }
                }
                _ => {}
            }
        }
        // Once for each source, however many reports a datagram holds.
        for ssrc in called {
            if let Some(place) = self.source(datagram.from, ssrc) {
                self.sources[place].calls = 1;
                self.report(now, place);
            }
        }
    }

    /// Sends feedback on a source, with a report where one is due and a goodbye at the end, if it has paid for them.
    fn answer(&mut self, now: Time, place: usize, reports: bool, leaves: bool) {
        let stamp = middle(ntp(self.config.epoch, now));
        let mut bytes = if reports { self.written_report(now, place) } else { Vec::new() };
        let source = &mut self.sources[place];
        if leaves {
            write_goodbye(&mut bytes, self.config.ssrc);
        }
        source.write_feedback(&mut bytes, now, stamp, &self.config);
        if !bytes.is_empty() && self.send(now, place, bytes) {
            self.sources[place].was_told();
        }
    }

    fn written_report(&mut self, now: Time, place: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_receiver_report(&mut bytes, self.config.ssrc, &[self.sources[place].block(now)]);
        write_name(&mut bytes, self.config.ssrc, "lastmile");
        bytes
    }

    /// Sends a report alone.
    fn report(&mut self, now: Time, place: usize) {
        let bytes = self.written_report(now, place);
        self.send(now, place, bytes);
    }

    /// When a source is told that this end is still there. Without SRTP it could not know by whom.
    fn call_due(&self, source: &Source) -> Option<Time> {
        source.call_due().filter(|_| self.config.expansion.is_protected())
    }

    /// Asks for packets that are missing.
    fn ask(&mut self, now: Time, place: usize) {
        // No two requests for one number, or nobody could tell whose packet comes.
        let peer = self.sources[place].peer;
        let open = self.unresolved(peer).any(|other| other == place);
        let others = self.unresolved(peer).filter(|other| open && *other != place);
        let asked = |other: usize| self.sources[other].missing.iter().flat_map(Missing::asked);
        let taken: Vec<u16> = others.flat_map(asked).collect();
        let source = &mut self.sources[place];
        let Some((lost, first)) = source.missing.as_mut().map(|missing| missing.due(now, &taken)) else {
            return;
        };
        let mut bytes = Vec::new();
        write_nack(&mut bytes, self.config.ssrc, source.ssrc, &lost);
        if !bytes.is_empty() && self.send(now, place, bytes) {
            self.sources[place].received.nacked += first;
        }
    }

    /// Sends `bytes` if the source has paid for them. True if it has.
    pub(super) fn send(&mut self, now: Time, place: usize, bytes: Vec<u8>) -> bool {
        let source = &mut self.sources[place];
        let datagram = Datagram::udp(source.own, source.peer, bytes);
        let size = datagram.ip_size() + self.config.expansion.rtcp;
        if source.balance.1 + size > source.balance.0 {
            return false;
        }
        source.balance.1 += size;
        source.received.feedback_packets += 1;
        source.received.feedback_bytes += size;
        let (id, port) = (TransmitId::UNTRACKED, source.port);
        self.out.push_back(Output::Transmit(Transmit { id, at: now, port, datagram }));
        true
    }

    /// Says goodbye to all sources.
    fn end(&mut self, now: Time) {
        for place in (0..self.sources.len()).rev() {
            if self.sources[place].known {
                self.answer(now, place, true, true);
            }
            self.leave(now, place, Left::Interrupted);
        }
    }

    /// A source leaves: its frames that wait are given out, and its counts told.
    pub(super) fn leave(&mut self, now: Time, place: usize, why: Left) {
        self.drain(now, place);
        let source = self.sources.swap_remove(place);
        let why = if source.moved { Left::Moved } else { why };
        if source.known && !source.repeats {
            let verdicts = source.counting.as_ref().and_then(Counting::verdicts);
            self.out.extend(verdicts.map(|verdicts| Output::Event(Decision::LossesJudged(verdicts))));
            let (peer, ssrc, received) = (source.peer, source.ssrc, source.summary());
            self.out.push_back(Output::Event(Decision::SourceLeft { peer, ssrc, why, received }));
        }
    }

    fn on_time(&mut self, now: Time) {
        for place in (0..self.sources.len()).rev() {
            let source = &mut self.sources[place];
            if now >= source.last_heard + LEASE {
                self.leave(now, place, Left::Silent);
                continue;
            }
            self.play(now, place);
            let source = &mut self.sources[place];
            if source.is_answered() && source.due().is_some_and(|at| at <= now) {
                source.next_feedback = None;
                let reports = source.next_report <= now;
                if reports {
                    source.next_report = now + REPORT_EVERY;
                }
                if reports && source.known && !source.repeats {
                    let (peer, ssrc, received) = (source.peer, source.ssrc, source.summary());
                    self.out.push_back(Output::Event(Decision::SourceProgress { peer, ssrc, received }));
                    self.tell_viewed(place);
                }
                self.answer(now, place, reports, false);
                self.ask(now, place);
            } else if source.asks().is_some_and(|at| at <= now) {
                self.ask(now, place);
            }
            if self.call_due(&self.sources[place]).is_some_and(|at| at <= now) {
                self.sources[place].call();
                self.report(now, place);
            }
        }
    }

    fn wake(&self) -> Option<Time> {
        let again = self.config.nack;
        let plays = |s: &Source| s.playout.as_ref().filter(|_| s.known)?.wake(again);
        let each = |s: &Source| {
            let due = s.due().filter(|_| s.is_answered());
            [Some(s.last_heard + LEASE), due, s.asks(), plays(s), self.call_due(s)]
        };
        let tell = self.turned_away.map(|_| self.next_tell);
        self.sources.iter().flat_map(each).flatten().chain(tell).min()
    }
}

impl Node for Receiver {
    type Event = Decision;

    fn handle(&mut self, now: Time, input: Input) {
        match input {
            Input::Datagram { port, at, datagram } => self.on_datagram(now, port, at, &datagram),
            Input::Interrupted => self.end(now),
            _ => {}
        }
        self.on_time(now);
        self.tell(now);
    }

    fn poll(&mut self, _now: Time) -> Output<Decision> {
        self.out.pop_front().unwrap_or_else(|| Output::Wait(self.wake()))
    }
}

impl Endpoint for Receiver {
    fn is_finished(&self) -> bool {
        false
    }
}
