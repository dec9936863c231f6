//! State that a reflector keeps of a peer that proved its address: credit, and the logs of streams.
//!
//! Everything is bounded: sessions, logs of a session, packets of a log, stamps of all logs together; and no source may
//! have more of it than it leaves to all others. A peer that wants more loses its own oldest log, or is answered "busy".
//!
//! A stream is written down once, and a request for one is served once: stream numbers only grow within a run of the
//! peer's program, which is told by its [token](super::token), and a log that was given up is never begun again.
//! Otherwise a packet that is replayed later, or the same number used by the peer's next run from the same port, would
//! put wrong stamps into a report or be paid for twice.
//!
//! A session ends with its lease, or when its peer says goodbye. After goodbyes each source keeps the time at which the newest
//! token so ended was made: packets overheard in that session must not begin another while the token lives.

use core::net::SocketAddr;
use std::collections::BTreeMap;

use super::budget::Limits;
use crate::endpoint::shares::{fair, source_prefix};
use crate::endpoint::token;
use crate::node::Ecn;
use crate::time::Time;
use crate::units::Bytes;
use crate::wire::private::{Arrival, ReportKind, Token};

/// Longest stream that a log takes.
pub(super) const MAX_PACKETS: u16 = 2_048;
/// Logs of one session.
const MAX_LOGS: usize = 4;

/// A packet's stamp on this side.
#[derive(Clone, Copy, Debug)]
struct Entry {
    at: Time,
    index: u16,
    ecn: Ecn,
    hop_limit: u8,
    duplicated: bool,
}

/// The stamps of one stream.
#[derive(Debug)]
pub(super) struct Log {
    stream: u32,
    pub(super) kind: ReportKind,
    /// Packets of the stream.
    pub(super) count: u16,
    /// By index. Holds what really came, so that a claimed length costs nothing.
    entries: Vec<Entry>,
    /// Reverse: which packets were asked for, one bit each.
    asked: Vec<u64>,
    /// Reverse: packets that are still to leave.
    pub(super) unsent: u16,
    /// Reverse: packets that were held up in the queue of this host's own interface.
    pub(super) queued: u16,
    pub(super) clock_stepped: bool,
    /// A stamp was not kept for want of room: the log must not be reported as if it were whole.
    pub(super) overflowed: bool,
}

impl Log {
    /// Writes a packet down; false where there is no room.
    fn note(&mut self, room: bool, entry: Entry) -> bool {
        if entry.index >= self.count {
            return true;
        }
        match self.entries.binary_search_by_key(&entry.index, |e| e.index) {
            Ok(known) => self.entries[known].duplicated = true,
            Err(_) if !room => {
                self.overflowed = true;
                return false;
            }
            Err(place) => self.entries.insert(place, entry),
        }
        true
    }

    /// Takes note that packets from `first` on are asked for; false where one of them was before.
    pub(super) fn ask(&mut self, first: u16, packets: u16) -> bool {
        self.asked.resize(usize::from(self.count).div_ceil(64), 0);
        let places =
            || (first..first.saturating_add(packets)).map(|i| (usize::from(i / 64), 1_u64 << (i % 64)));
        if places().any(|(word, bit)| self.asked.get(word).is_none_or(|w| w & bit != 0)) {
            return false;
        }
        places().for_each(|(word, bit)| self.asked[word] |= bit);
        true
    }

    /// The earliest stamp, from which a report's offsets are counted.
    pub(super) fn base(&self) -> Time {
        self.entries.iter().map(|e| e.at).min().unwrap_or(Time::ZERO)
    }

    pub(super) fn arrivals(&self, indices: core::ops::Range<u16>) -> impl Iterator<Item = Option<Arrival>> {
        let base = self.base();
        let mut entries =
            self.entries[self.entries.partition_point(|e| e.index < indices.start)..].iter().peekable();
        indices.map(move |i| {
            let e = entries.next_if(|e| e.index == i)?;
            Some(Arrival {
                offset_ns: (e.at - base).as_nanos().max(0) as u64,
                ecn: e.ecn as u8,
                late: false,
                duplicated: e.duplicated,
                hop_limit: e.hop_limit,
            })
        })
    }
}

/// Why a stream's log cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoLog {
    /// It was given up before: later packets are copies or too late.
    Past,
    /// The stream is longer than a log, or changed its shape.
    Unfit,
}

/// One peer.
#[derive(Debug)]
pub(super) struct Session {
    /// IP bytes received from it since it proved its address.
    pub(super) received: Bytes,
    /// IP bytes sent to it since.
    pub(super) sent: Bytes,
    pub(super) lease_ends: Time,
    pub(super) sequence: u32,
    /// The token that it proved its address with, and when that was made.
    pub(super) token: Token,
    pub(super) issued: Time,
    /// Packets of reverse streams that are still to leave.
    pub(super) leaving: usize,
    /// Streams up to this number are over.
    over: u32,
    logs: Vec<Log>,
}

impl Session {
    /// Bytes that may still be sent to it without sending more than came from it.
    pub(super) fn credit(&self) -> Bytes {
        self.received - self.sent
    }

    /// The log of a stream.
    pub(super) fn log(&mut self, stream: u32) -> Option<&mut Log> {
        self.logs.iter_mut().find(|l| l.stream == stream)
    }

    fn release(&mut self, stream: u32) {
        self.logs.retain(|l| l.stream != stream);
        self.over = self.over.max(stream);
    }

    /// The log of a stream, begun if need be.
    pub(super) fn open(&mut self, stream: u32, kind: ReportKind, count: u16) -> Result<&mut Log, NoLog> {
        if count > MAX_PACKETS {
            return Err(NoLog::Unfit);
        }
        if let Some(i) = self.logs.iter().position(|l| l.stream == stream) {
            let log = &mut self.logs[i];
            return if log.kind == kind && log.count == count { Ok(log) } else { Err(NoLog::Unfit) };
        }
        if stream <= self.over {
            return Err(NoLog::Past);
        }
        if self.logs.len() == MAX_LOGS {
            let oldest = self.logs.remove(0);
            self.over = self.over.max(oldest.stream);
        }
        self.logs.push(Log {
            stream,
            kind,
            count,
            entries: Vec::new(),
            asked: Vec::new(),
            unsent: 0,
            queued: 0,
            clock_stepped: false,
            overflowed: false,
        });
        let last = self.logs.len() - 1;
        Ok(&mut self.logs[last])
    }

    pub(super) fn clock_stepped(&mut self) {
        self.logs.iter_mut().for_each(|l| l.clock_stepped = true);
    }

    fn stamps(&self) -> usize {
        self.logs.iter().map(|l| l.entries.len()).sum()
    }
}

/// A packet of a stream, as it is written down.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noted {
    pub(super) stream: u32,
    pub(super) kind: ReportKind,
    pub(super) count: u16,
    pub(super) index: u16,
    pub(super) at: Time,
    pub(super) ecn: Ecn,
    pub(super) hop_limit: u8,
}

/// All peers.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    by_peer: BTreeMap<SocketAddr, Session>,
    by_source: BTreeMap<u64, Share>,
    /// Stamps in all logs.
    stamps: usize,
}

/// State that the sessions of one source share.
#[derive(Debug, Default)]
struct Share {
    sessions: usize,
    stamps: usize,
    /// Tokens made up to then begin no session: one of them has ended before its time.
    spent: Option<Time>,
}

impl Share {
    fn is_over(&self, now: Time) -> bool {
        self.sessions == 0 && self.spent.is_none_or(|at| now - at >= token::LIFE)
    }
}

impl Sessions {
    pub(super) fn get(&mut self, peer: SocketAddr) -> Option<&mut Session> {
        self.by_peer.get_mut(&peer)
    }

    pub(super) fn len(&self) -> usize {
        self.by_peer.len()
    }

    /// True if there is nothing that time will end.
    pub(super) fn is_empty(&self) -> bool {
        self.by_source.is_empty()
    }

    /// True if a token made at `issued` is no newer than that of a session of that source that has ended before its time.
    pub(super) fn is_spent(&self, peer: SocketAddr, issued: Time) -> bool {
        let share = self.by_source.get(&source_prefix(peer.ip()));
        share.and_then(|share| share.spent).is_some_and(|spent| issued <= spent)
    }

    /// True if there is room for one more stamp of that peer's source.
    pub(super) fn has_room(&self, peer: SocketAddr, limits: &Limits) -> bool {
        let held = self.by_source.get(&source_prefix(peer.ip())).map_or(0, |share| share.stamps);
        fair(limits.stamps, self.stamps, held, 1)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Session> {
        self.by_peer.values_mut()
    }

    /// Changes a session in a way that may give up logs.
    pub(super) fn change<T>(
        &mut self,
        peer: SocketAddr,
        change: impl FnOnce(&mut Session) -> T,
    ) -> Option<T> {
        let session = self.by_peer.get_mut(&peer)?;
        let before = session.stamps();
        let result = change(session);
        let after = session.stamps();
        self.stamps = self.stamps + after - before;
        if let Some(share) = self.by_source.get_mut(&source_prefix(peer.ip())) {
            share.stamps = share.stamps + after - before;
        }
        Some(result)
    }

    /// Forgets a stream.
    pub(super) fn release(&mut self, peer: SocketAddr, stream: u32) {
        self.change(peer, |session| session.release(stream));
    }

    /// The peer's program runs anew: the state that it left behind is over.
    pub(super) fn renew(&mut self, peer: SocketAddr, token: Token, issued: Time) {
        self.change(peer, |session| {
            (session.token, session.issued, session.over) = (token, issued, 0);
            session.logs.clear();
        });
    }

    /// Writes a packet down; false where there is no room for its stamp.
    pub(super) fn note(&mut self, peer: SocketAddr, packet: &Noted, limits: &Limits) -> bool {
        let room = self.has_room(peer, limits);
        let Noted { stream, kind, count, index, at, ecn, hop_limit } = *packet;
        let entry = Entry { at, index, ecn, hop_limit, duplicated: false };
        let noted = self.change(peer, |session| match session.open(stream, kind, count) {
            Ok(log) => log.note(room, entry),
            Err(_) => true,
        });
        noted.unwrap_or(true)
    }

    /// Begins a session for a peer that proved its address; false where the limits forbid one more.
    pub(super) fn begin(&mut self, peer: SocketAddr, token: Token, issued: Time, limits: &Limits) -> bool {
        let share = self.by_source.entry(source_prefix(peer.ip())).or_default();
        let room = share.sessions < limits.sessions_per_source
            && fair(limits.sessions, self.by_peer.len(), share.sessions, 1);
        if room {
            share.sessions += 1;
            self.by_peer.insert(
                peer,
                Session {
                    received: Bytes::ZERO,
                    sent: Bytes::ZERO,
                    lease_ends: issued,
                    sequence: 0,
                    token,
                    issued,
                    leaving: 0,
                    over: 0,
                    logs: Vec::new(),
                },
            );
        } else if share.sessions == 0 && share.spent.is_none() {
            self.by_source.remove(&source_prefix(peer.ip()));
        }
        room
    }

    fn remove(&mut self, peer: SocketAddr) -> Option<Session> {
        let session = self.by_peer.remove(&peer)?;
        self.stamps -= session.stamps();
        if let Some(share) = self.by_source.get_mut(&source_prefix(peer.ip())) {
            share.sessions -= 1;
            share.stamps -= session.stamps();
        }
        Some(session)
    }

    /// Ends a session at its peer's wish and gives it back; not where the token is not its own, or where so many sources said
    /// goodbye lately that it costs less memory to keep the session.
    pub(super) fn end(&mut self, peer: SocketAddr, token: &Token, limits: &Limits) -> Option<Session> {
        self.by_peer.get(&peer).filter(|s| s.token == *token && self.by_source.len() <= limits.sessions)?;
        let session = self.remove(peer)?;
        if let Some(share) = self.by_source.get_mut(&source_prefix(peer.ip())) {
            share.spent = share.spent.max(Some(session.issued));
        }
        Some(session)
    }

    /// Ends the sessions whose lease is over and gives them back.
    pub(super) fn expire(&mut self, now: Time) -> Vec<(SocketAddr, Session)> {
        let over: Vec<_> =
            self.by_peer.iter().filter(|(_, s)| s.lease_ends <= now).map(|(p, _)| *p).collect();
        let ended = over.into_iter().filter_map(|peer| Some((peer, self.remove(peer)?))).collect();
        self.by_source.retain(|_, share| !share.is_over(now));
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Span;

    const PEER: &str = "192.0.2.1:9";

    fn sessions(limits: &Limits) -> (Sessions, SocketAddr) {
        let (mut sessions, peer) = (Sessions::default(), PEER.parse().unwrap());
        assert!(sessions.begin(peer, [1; 16], Time::ZERO, limits));
        (sessions, peer)
    }

    fn packet(stream: u32, index: u16, at: u64) -> Noted {
        let (at, ecn) = (Time::from_nanos(at), Ecn::NotEct);
        Noted { stream, kind: ReportKind::Arrivals, count: 2_000, index, at, ecn, hop_limit: 64 }
    }

    fn stamps(sessions: &mut Sessions, peer: SocketAddr, stream: u32) -> Option<Vec<u16>> {
        let log = sessions.get(peer).unwrap().log(stream)?;
        Some(log.entries.iter().map(|e| e.index).collect())
    }

    #[test]
    fn the_first_of_duplicates_counts_and_order_does_not_matter() {
        let limits = Limits::default();
        let (mut sessions, peer) = sessions(&limits);
        for (index, at) in [(5, 50), (3, 60), (5, 70), (4, 80)] {
            assert!(sessions.note(peer, &packet(1, index, at), &limits));
        }
        let log = sessions.get(peer).unwrap().log(1).unwrap();
        let got: Vec<_> = log.arrivals(2..7).map(|a| a.map(|a| (a.offset_ns, a.duplicated))).collect();
        assert_eq!(got, [None, Some((10, false)), Some((30, false)), Some((0, true)), None]);
        assert_eq!(sessions.stamps, 3, "a claimed length of 2,000 costs nothing");
    }

    #[test]
    fn a_stream_that_was_given_up_is_not_begun_again() {
        let limits = Limits::default();
        let (mut sessions, peer) = sessions(&limits);
        sessions.note(peer, &packet(7, 0, 1), &limits);
        sessions.release(peer, 7);
        sessions.note(peer, &packet(7, 0, 2), &limits);
        sessions.note(peer, &packet(3, 0, 2), &limits);
        assert_eq!((stamps(&mut sessions, peer, 7), stamps(&mut sessions, peer, 3)), (None, None));
        // Five logs: the first has to go, and its replayed packet does not push out another.
        (8..13).for_each(|stream| assert!(sessions.note(peer, &packet(stream, 0, 3), &limits)));
        sessions.note(peer, &packet(8, 0, 4), &limits);
        assert_eq!((stamps(&mut sessions, peer, 8), stamps(&mut sessions, peer, 9)), (None, Some(vec![0])));
        assert_eq!(sessions.stamps, 4);
    }

    #[test]
    fn the_peers_next_run_does_not_inherit_stamps() {
        let limits = Limits::default();
        let (mut sessions, peer) = sessions(&limits);
        sessions.note(peer, &packet(1, 0, 1), &limits);
        sessions.renew(peer, [2; 16], Time::from_nanos(2));
        assert_eq!(sessions.stamps, 0);
        sessions.note(peer, &packet(1, 1, 2), &limits);
        assert_eq!(stamps(&mut sessions, peer, 1), Some(vec![1]));
    }

    #[test]
    fn room_for_stamps_is_bounded_and_given_back() {
        let limits = Limits { stamps: 6, ..Limits::default() };
        let (mut sessions, peer) = sessions(&limits);
        let kept: Vec<_> = (0..5).map(|i| sessions.note(peer, &packet(1, i, 9), &limits)).collect();
        assert_eq!(kept, [true, true, true, false, false]);
        // The rest is for others, and they leave some too.
        let other = "192.0.2.2:9".parse().unwrap();
        assert!(sessions.begin(other, [1; 16], Time::ZERO, &limits));
        let kept: Vec<_> = (0..3).map(|i| sessions.note(other, &packet(1, i, 9), &limits)).collect();
        assert_eq!(kept, [true, true, false]);
        assert!(sessions.get(peer).unwrap().log(1).unwrap().overflowed, "never reported as lost packets");
        assert_eq!(sessions.expire(Time::ZERO + Span::from_secs(31)).len(), 2);
        assert_eq!((sessions.stamps, sessions.by_source.len()), (0, 0));
    }

    #[test]
    fn packets_are_asked_for_once() {
        let limits = Limits::default();
        let (mut sessions, peer) = sessions(&limits);
        let log = sessions.get(peer).unwrap().open(1, ReportKind::Departures, 100).unwrap();
        assert!(log.ask(60, 10) && log.ask(0, 60));
        assert!(!log.ask(59, 1) && !log.ask(69, 2) && !log.ask(90, 60));
        assert!(log.ask(70, 30));
    }
}
