//! Input of a session: replies, packets of streams, reports, departures.

use super::steps::largest;
use super::{Phase, Prober, Try};
use crate::endpoint::measure::event::{Decision, PacketSink};
use crate::endpoint::measure::packets::{Replied, Reply, VERSION};
use crate::endpoint::measure::stream::{Stamp, StreamInFlight};
use crate::estimate::{Refusal, alike};
use crate::node::{Datagram, Ecn, Failure, Output, TransmitId};
use crate::report::Direction;
use crate::time::{Span, Time};
use crate::units::Bytes;
use crate::wire::private::{Abilities, HelloReply, ReportKind, ReportPage, ReportStatus};
use crate::wire::{Mode, ReflectorPacket};

/// A peer may say so often that a stream's report is not ready; with [`UNREADY_WAIT`] longer than any request lasts.
const UNREADY: u32 = 40;
const UNREADY_WAIT: Span = Span::from_millis(50);
/// So often in a row a reverse stream that the peer knows nothing of is asked for again.
const RENEWALS: u32 = 4;

impl<S: PacketSink> Prober<S> {
    pub(super) fn on_datagram(&mut self, now: Time, at: Time, datagram: &Datagram) {
        let Some(bytes) = datagram.payload.udp() else { return };
        if datagram.from.port() != self.config.peer.port()
            || datagram.from.ip().to_canonical() != self.config.peer.ip().to_canonical()
        {
            return;
        }
        let replied = match self.phase {
            Phase::KeyCheck => self.codec.decode_open(bytes),
            _ => self.codec.decode(bytes),
        };
        // A packet that cannot be read, or answers nothing that was asked, is not from our peer or not for us.
        let Ok(replied) = replied else { return self.on_foreign(bytes) };
        if !self.codec.made(replied.sequence) {
            return;
        }
        // Only what answers this session is paid for: a flood in the peer's name must not use up the limit.
        self.cost.bytes_received += datagram.ip_size();
        if self.on_stream_packet(now, &replied, at, datagram) {
            return;
        }
        let answers = |t: &&Try| t.sequence == replied.sequence && t.stamp == replied.stamp;
        let Some(answered) = self.waiting.as_ref().and_then(|w| w.tries.iter().find(answers)).copied() else {
            return;
        };
        (self.unanswered, self.silent_methods) = (Bytes::ZERO, 0);
        self.welcome = answered.sent;
        if !matches!(replied.reply, Reply::Report(_)) {
            self.saw(datagram.ip_size(), at - answered.sent);
        }
        match replied.reply {
            Reply::Hello(hello) if hello.nonce == self.nonce() => self.on_hello(now, at, &answered, &hello),
            Reply::Plain if matches!(self.phase, Phase::Hello) => {
                self.ready(at, &answered, false);
                self.phase = Phase::Step;
                self.waiting = None;
            }
            Reply::Report(page) => self.on_report(now, &page),
            _ => {}
        }
    }

    /// Counts a packet from the peer's address that is no STAMP, so that it is not called silent.
    fn on_foreign(&mut self, bytes: &[u8]) {
        if ReflectorPacket::parse(Mode::Open, bytes).is_err() {
            let (count, least, most) = self.foreign.unwrap_or((0, usize::MAX, 0));
            self.foreign = Some((count + 1, least.min(bytes.len()), most.max(bytes.len())));
        }
    }

    fn on_stream_packet(&mut self, now: Time, replied: &Replied<'_>, at: Time, datagram: &Datagram) -> bool {
        let token = self.token();
        let Phase::Streaming(stream) = &mut self.phase else { return false };
        let size = datagram.ip_size();
        match (&replied.reply, stream.direction) {
            (Reply::Stream(tag), Direction::Reverse) if tag.stream == stream.id && tag.token == token => {
                // Only what a request of this stream asked for.
                if stream.request_for(replied).is_some_and(|what| what.holds(tag.index)) {
                    stream.on_arrival(usize::from(tag.index), at, datagram.ecn, size);
                }
            }
            (Reply::Plain, Direction::RoundTrip) => {
                let index = replied.sequence.wrapping_sub(stream.first_seq) as usize;
                let planned = stream.plan.packets.get(index);
                if let Some(packet) = planned
                    && self.codec.stamp(stream.starts + packet.offset) == replied.stamp
                {
                    let sent = packet.size;
                    if !alike(sent, size) {
                        stream.unlike = Some((sent, size));
                    }
                    stream.on_arrival(index, at, datagram.ecn, size.max(sent));
                }
            }
            (Reply::ReverseRefused, Direction::Reverse) if stream.request_for(replied).is_some() => {
                let why = format!(
                    "{} does not send this reverse stream: a limit of its own, or its debt to others, forbids it; try again later",
                    self.config.peer
                );
                self.refuse(now, Refusal::PeerCannot(why));
            }
            _ => return false,
        }
        true
    }

    fn ready(&mut self, at: Time, answered: &Try, lastmile: bool) {
        // The least: a full queue's delay is no property of the path, and is waited for anyway.
        let rtt = (at - answered.sent).max(Span::ZERO);
        self.rtt = if self.peer.is_some() { self.rtt.min(rtt) } else { rtt };
        if matches!(self.phase, Phase::Hello) {
            let decision = Decision::PeerReady { peer: self.config.peer, lastmile, rtt: self.rtt };
            self.out.push_back(Output::Event(decision));
        }
    }

    fn on_hello(&mut self, now: Time, at: Time, answered: &Try, hello: &HelloReply) {
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
        self.ready(at, answered, true);
        self.peer = Some(hello.offer);
        match core::mem::replace(&mut self.phase, Phase::Step) {
            Phase::Credit(plan, tries) => self.pay(now, hello.offer.credit, plan, tries),
            _ => self.waiting = None,
        }
    }

    fn on_report(&mut self, now: Time, page: &ReportPage<'_>) {
        let Phase::Reporting(stream, wanted) = &mut self.phase else { return };
        let planned = largest(&stream.plan);
        let kind = match stream.direction {
            Direction::Reverse => ReportKind::Departures,
            _ => ReportKind::Arrivals,
        };
        if page.head.stream != stream.id || page.head.page != *wanted || page.head.kind != kind {
            return;
        }
        // The few requests for a reverse stream may all be lost; packets of a forward one that are all lost are too large.
        let renewals = if stream.direction == Direction::Reverse { RENEWALS } else { 1 };
        match page.head.status {
            ReportStatus::Ok => {}
            ReportStatus::Running if self.waiting.as_ref().is_some_and(|w| w.unready < UNREADY) => {
                // Asked again soon, and as often as if for the first time: its last departures are being stamped.
                if let Some(waiting) = &mut self.waiting {
                    waiting.tries.clear();
                    waiting.unready += 1;
                    waiting.until = now + UNREADY_WAIT;
                }
                return;
            }
            // It was started again, or a NAT gave us another address there: a hello begins a new session.
            ReportStatus::UnknownStream if self.renewed < renewals => {
                self.renewed += 1;
                let Phase::Reporting(stream, _) = core::mem::replace(&mut self.phase, Phase::Step) else {
                    return;
                };
                self.cost.streams_discarded += 1;
                match self.admit(now, stream.direction, &stream.plan) {
                    Ok(()) => self.enter(now, Phase::Credit(stream.plan, 0)),
                    Err(refusal) => self.refuse(now, refusal),
                }
                return;
            }
            // Small packets pass, and this was sent to a session that is new.
            ReportStatus::UnknownStream if self.shrunk(planned) => {
                self.cost.streams_discarded += 1;
                self.phase = Phase::Step;
                self.waiting = None;
                return;
            }
            status => {
                let why = match status {
                    ReportStatus::CreditExhausted => "has spent its budget for this address; try again later",
                    ReportStatus::Busy => "has no room for one more session or stream; try again later",
                    ReportStatus::Running => "does not finish the stream that it was asked for",
                    _ => {
                        "knows nothing of the stream: none of its packets came, or its lease ended, or the path is congested"
                    }
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
        stream.queued_there |= page.head.queued;
        for (index, arrival) in page.entries() {
            if let (Some(slot), Some(arrival)) = (stamps.get_mut(usize::from(index)), arrival) {
                let ns = page.head.base_ns.saturating_add(arrival.offset_ns);
                *slot = Some(Stamp { ns, ecn: Ecn::from_bits(arrival.ecn), late: arrival.late });
            }
        }
        let next = *wanted + 1;
        // However many pages the peer claims to have.
        let pages = page.head.pages.min(stream.len().div_ceil(self.page_entries) as u16);
        let Phase::Reporting(stream, _) = core::mem::replace(&mut self.phase, Phase::Step) else { return };
        if next < pages {
            self.enter(now, Phase::Reporting(stream, next));
        } else {
            self.judge(now, stream);
        }
    }

    /// The stream under way from here that a packet belongs to, and its index there.
    fn probe(&mut self, id: TransmitId) -> Option<(&mut StreamInFlight, usize)> {
        let Phase::Streaming(stream) = &mut self.phase else { return None };
        let index = id.0.checked_sub(stream.first_id)? as usize;
        (stream.direction != Direction::Reverse && index < stream.len()).then_some((stream, index))
    }

    pub(super) fn on_queued(&mut self, id: TransmitId) {
        if let Some((stream, _)) = self.probe(id) {
            stream.queued += 1;
        }
    }

    pub(super) fn on_sent(&mut self, id: TransmitId, at: Option<Time>) {
        let Some((stream, index)) = self.probe(id) else { return };
        stream.answered = stream.answered.saturating_add(1);
        if let Some(at) = at {
            stream.departures[index] = Some(Stamp { ns: at.as_nanos(), ecn: Ecn::NotEct, late: false });
        }
    }

    pub(super) fn on_failed(&mut self, now: Time, id: Option<TransmitId>, reason: Failure) {
        self.failure = Some(reason);
        // It is the size, which a new session would not change.
        if reason == Failure::TooBig {
            self.renewed = RENEWALS;
        }
        if let Some(id) = id {
            self.on_sent(id, None);
        }
        if reason == Failure::PortClosed && matches!(self.phase, Phase::Hello) {
            self.on_silence(now);
        }
    }
}
