//! Streams in the reverse direction: asked for by a Reflected Test Packet Control TLV beside a Stream tag
//! (draft-ietf-ippm-asymmetrical-pkts-14, 3), paid by credit or a key.

use core::net::SocketAddr;

use super::{MAX_REVERSE_SIZE, Received, Reflector};
use crate::endpoint::measure::session::{MAX_PACKETS, NoLog, Noted};
use crate::endpoint::shares::{fair, source_prefix};
use crate::node::{Datagram, Ecn, Output, Transmit, TransmitId};
use crate::time::{Span, Time};
use crate::units::{Bytes, IpVersion};
use crate::wire::private::{ReportKind, Schedule, StreamTag};
use crate::wire::{PacketBuilder, Padding, ReflectedControl, ReflectorPacket, WireError};

/// A reverse stream is handed over this long before its first packet, so that a sending thread is awake.
const LEAD: Span = Span::from_millis(2);
/// Longest duration of one request's packets, so that a stream whose peer fell silent ends by itself.
const LONGEST_BURST: Span = Span::from_secs(1);

/// Outcome of a request for a reverse stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reversed {
    /// Its packets are on their way.
    Sent,
    /// It needs no answer: nothing is asked for, others are meant, or it is a copy of one that was served. A copy
    /// is not even refused: the refusal would overtake the stream, and the peer would give it up.
    Ignored,
    /// It is larger than any may be, or not paid for. The peer is told, as of what follows, by its own packet with flag C.
    Refused,
    /// There is no room for its packets or their stamps.
    NoRoom,
    /// The budget of this source, or of all, is spent.
    OverBudget,
}

/// A request for a reverse stream, and its packet.
pub(super) struct Asked<'a> {
    pub(super) packet: &'a Received,
    pub(super) tag: &'a StreamTag,
    pub(super) control: &'a ReflectedControl,
    /// The gaps of a stream that is not evenly spaced.
    pub(super) schedule: Option<&'a Schedule>,
    /// The ECN codepoint of its packets.
    pub(super) ecn: Ecn,
}

impl Asked<'_> {
    /// When its packets leave, counted from the first; `None` where the parts of the request contradict each other.
    fn offsets(&self) -> Option<Vec<Span>> {
        let count = usize::from(self.control.count);
        if let Some(schedule) = self.schedule {
            return (schedule.gaps.len() + 1 == count).then(|| schedule.offsets().collect());
        }
        let interval = Span::from_nanos(i64::from(self.control.interval_ns));
        let group = usize::from(self.tag.burst.max(1));
        Some((0..count).map(|k| interval * (k / group) as i64).collect())
    }
}

/// A packet of a reverse stream that is to leave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving {
    peer: SocketAddr,
    /// The run of the peer's program, by when its token was made.
    run: Time,
    stream: u32,
    index: u16,
}

impl Reflector {
    /// Sends the packets that a request asks for, if nothing forbids it.
    pub(super) fn reverse(&mut self, now: Time, asked: &Asked<'_>) -> Reversed {
        let Asked { packet: &Received { peer, .. }, tag, control, .. } = *asked;
        if control.count == 0 || control.groups {
            return Reversed::Ignored;
        }
        let payload = control.aligned_length();
        let size = Bytes(payload as u64) + IpVersion::of(peer).udp_overhead();
        let all = size * u64::from(control.count);
        let Some(offsets) = asked.offsets() else { return Reversed::Refused };
        let lasts = offsets.last().copied().unwrap_or(Span::ZERO);
        let authenticated = self.config.key.is_some();
        let count = usize::from(control.count);
        let held = self.leaving_to.get(&source_prefix(peer.ip())).copied().unwrap_or(0);
        let room = fair(self.config.limits.planned, self.leaving.len(), held, count)
            && self.sessions.has_room(peer, &self.config.limits);
        let Some(session) = self.sessions.get(peer) else { return Reversed::Refused };
        let allowed = size <= MAX_REVERSE_SIZE
            && payload >= self.least_payload
            && lasts <= LONGEST_BURST
            && u32::from(tag.index) + u32::from(control.count) <= u32::from(tag.count)
            && count <= usize::from(MAX_PACKETS);
        if !allowed {
            return Reversed::Refused;
        }
        if !room || session.leaving + count > usize::from(MAX_PACKETS) {
            return Reversed::NoRoom;
        }
        let budget = &mut self.budget;
        let verdict = self.sessions.change(peer, |session| {
            let credit = session.credit();
            let log = match session.open(tag.stream, ReportKind::Departures, tag.count) {
                Ok(log) => log,
                Err(NoLog::Past) => return Reversed::Ignored,
                Err(NoLog::Unfit) => return Reversed::Refused,
            };
            if !log.ask(tag.index, control.count) {
                return Reversed::Ignored;
            }
            // From here on a copy of this request is ignored, even if it is refused now.
            if !(authenticated || credit >= all) {
                return Reversed::Refused;
            }
            if !budget.take(now, peer.ip(), all) {
                return Reversed::OverBudget;
            }
            log.unsent += control.count;
            session.sent += all;
            session.leaving += usize::from(control.count);
            Reversed::Sent
        });
        if verdict == Some(Reversed::Sent) {
            (0..control.count).zip(offsets).for_each(|(k, offset)| self.plan(now, asked, k, offset));
        }
        verdict.unwrap_or(Reversed::Refused)
    }

    /// Hands over packet `k` of those that were asked for.
    fn plan(&mut self, now: Time, asked: &Asked<'_>, k: u16, offset: Span) {
        let Asked {
            packet: &Received { port, peer, own, hop_limit, request, .. }, tag, control, ecn, ..
        } = *asked;
        let at = now + LEAD + offset;
        let Some(session) = self.sessions.get(peer) else { return };
        let (sequence, run) = (session.sequence, session.issued);
        session.sequence = sequence.wrapping_add(1);
        let base = ReflectorPacket {
            sequence,
            timestamp: self.stamp(at),
            error: self.error,
            ssid: request.ssid,
            receive_timestamp: self.stamp(now),
            sender_sequence: request.sequence,
            sender_timestamp: request.timestamp,
            sender_error: request.error,
            sender_ttl: hop_limit,
        };
        let mut bytes = Vec::with_capacity(control.aligned_length());
        let index = tag.index + k;
        let tag = StreamTag { index, burst: 0, ..*tag };
        let built = self.build(&mut bytes, &base, &tag, control.aligned_length());
        debug_assert_eq!(built, Ok(()), "sizes were checked");
        let id = self.next_id;
        self.next_id += 1;
        self.leaving.insert(id, Leaving { peer, run, stream: tag.stream, index });
        *self.leaving_to.entry(source_prefix(peer.ip())).or_default() += 1;
        let datagram = Datagram { ecn, ..Datagram::udp(own, peer, bytes) };
        self.out.push_back(Output::Transmit(Transmit { id: TransmitId(id), at, port, datagram }));
    }

    fn build(
        &self,
        bytes: &mut Vec<u8>,
        base: &ReflectorPacket,
        tag: &StreamTag,
        payload: usize,
    ) -> Result<(), WireError> {
        let b = PacketBuilder::reflector(bytes, self.mode, base).tlv(tag)?;
        match &self.config.key {
            Some(key) => b.tlv_hmac(&key.0)?.pad_to(payload, Padding::Zeros)?.sign(&key.0).map(drop),
            None => b.pad_to(payload, Padding::Zeros).map(drop),
        }
    }

    /// A packet of a reverse stream was held up in the queue of this host's own interface.
    pub(super) fn on_queued(&mut self, id: TransmitId) {
        let Some(&Leaving { peer, run, stream, .. }) = self.leaving.get(&id.0) else { return };
        let session = self.sessions.get(peer).filter(|session| session.issued == run);
        if let Some(log) = session.and_then(|session| session.log(stream)) {
            log.queued = log.queued.saturating_add(1);
        }
    }

    /// A packet of a reverse stream left, or could not.
    pub(super) fn on_left(&mut self, id: TransmitId, at: Option<Time>) {
        let Some(Leaving { peer, run, stream, index }) = self.leaving.remove(&id.0) else { return };
        let source = source_prefix(peer.ip());
        if let Some(leaving) = self.leaving_to.get_mut(&source) {
            *leaving -= 1;
            if *leaving == 0 {
                self.leaving_to.remove(&source);
            }
        }
        self.counters.streamed += u64::from(at.is_some());
        let Some(session) = self.sessions.get(peer) else { return };
        session.leaving = session.leaving.saturating_sub(1);
        if session.issued != run {
            return;
        }
        let Some(log) = session.log(stream) else { return };
        log.unsent = log.unsent.saturating_sub(1);
        let (kind, count) = (ReportKind::Departures, log.count);
        if let Some(at) = at {
            let noted = Noted { stream, kind, count, index, at, ecn: Ecn::NotEct, hop_limit: 0 };
            self.sessions.note(peer, &noted, &self.config.limits);
        }
    }
}
