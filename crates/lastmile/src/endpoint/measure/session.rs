//! What a reflector keeps of a peer that proved its address: credit, and the logs of streams.
//!
//! Everything is bounded: sessions, sessions of one source, logs of a session, packets of a log, stamps of all logs
//! together. A peer that wants more loses its own oldest log, or is answered "busy".
//!
//! A stream is written down once: stream numbers only grow within a run of the peer's program (told apart by the
//! SSID, RFC 8972, section 3), and a log that was given up is never begun again. Otherwise a packet that is replayed
//! later, or the same number used by the peer's next run from the same port, would put wrong stamps into a report.

use core::net::SocketAddr;
use std::collections::{BTreeMap, VecDeque};

use super::budget::{Limits, source_prefix};
use crate::node::Ecn;
use crate::time::{Span, Time};
use crate::units::Bytes;
use crate::wire::private::{Arrival, ReportKind, Token};

/// Longest stream that a log takes.
pub(super) const MAX_PACKETS: u16 = 2_048;
/// Logs of one session.
const MAX_LOGS: usize = 4;
/// Earlier runs of a peer's program whose packets are still known as old.
const MAX_PAST_RUNS: usize = 8;

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
    /// It was given up before: what comes now is a copy or too late.
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
    /// The token that it last proved its address with.
    pub(super) token: Token,
    /// Packets of reverse streams that are still to leave.
    pub(super) leaving: usize,
    /// The run of its program that the logs belong to, by its SSID.
    run: Option<u16>,
    past_runs: VecDeque<u16>,
    /// Streams up to this number are over.
    over: u32,
    logs: Vec<Log>,
}

impl Session {
    /// What may still be sent to it without sending more than came from it.
    pub(super) fn credit(&self) -> Bytes {
        self.received - self.sent
    }

    /// The log of a stream of the run with that SSID.
    pub(super) fn log(&mut self, ssid: u16, stream: u32) -> Option<&mut Log> {
        self.logs.iter_mut().find(|l| l.stream == stream && self.run == Some(ssid))
    }

    fn release(&mut self, ssid: u16, stream: u32) {
        if self.run == Some(ssid) {
            self.logs.retain(|l| l.stream != stream);
            self.over = self.over.max(stream);
        }
    }

    /// Whether a packet of the run with that SSID counts; a run that was not seen before ends the one before it.
    fn enter(&mut self, ssid: u16) -> bool {
        if self.run == Some(ssid) {
            return true;
        }
        if self.past_runs.contains(&ssid) {
            return false;
        }
        if let Some(past) = self.run.replace(ssid) {
            self.past_runs.push_back(past);
            self.past_runs.drain(..self.past_runs.len().saturating_sub(MAX_PAST_RUNS));
        }
        self.logs.clear();
        self.over = 0;
        true
    }

    /// The log of a stream, begun if need be.
    pub(super) fn open(
        &mut self,
        ssid: u16,
        stream: u32,
        kind: ReportKind,
        count: u16,
    ) -> Result<&mut Log, NoLog> {
        if count > MAX_PACKETS {
            return Err(NoLog::Unfit);
        }
        if !self.enter(ssid) {
            return Err(NoLog::Past);
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
    pub(super) ssid: u16,
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
    per_source: BTreeMap<u64, usize>,
    /// Stamps in all logs.
    stamps: usize,
}

impl Sessions {
    pub(super) fn get(&mut self, peer: SocketAddr) -> Option<&mut Session> {
        self.by_peer.get_mut(&peer)
    }

    pub(super) fn len(&self) -> usize {
        self.by_peer.len()
    }

    /// Stamps in all logs.
    pub(super) fn stamps(&self) -> usize {
        self.stamps
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
        self.stamps = self.stamps + session.stamps() - before;
        Some(result)
    }

    /// Forgets a stream.
    pub(super) fn release(&mut self, peer: SocketAddr, ssid: u16, stream: u32) {
        self.change(peer, |session| session.release(ssid, stream));
    }

    /// Writes a packet down; false where there is no room for its stamp.
    pub(super) fn note(&mut self, peer: SocketAddr, packet: &Noted, limits: &Limits) -> bool {
        let room = self.stamps < limits.stamps;
        let Noted { ssid, stream, kind, count, index, at, ecn, hop_limit } = *packet;
        let entry = Entry { at, index, ecn, hop_limit, duplicated: false };
        let noted = self.change(peer, |session| match session.open(ssid, stream, kind, count) {
            Ok(log) => log.note(room, entry),
            Err(_) => true,
        });
        noted.unwrap_or(true)
    }

    /// Begins a session for a peer that proved its address; `None` where the limits forbid one more.
    pub(super) fn begin(
        &mut self,
        now: Time,
        lease: Span,
        peer: SocketAddr,
        token: Token,
        limits: &Limits,
    ) -> Option<&mut Session> {
        let source = source_prefix(peer.ip());
        let of_source = self.per_source.get(&source).copied().unwrap_or(0);
        if self.by_peer.len() >= limits.sessions || of_source >= limits.sessions_per_source {
            return None;
        }
        self.per_source.insert(source, of_source + 1);
        Some(self.by_peer.entry(peer).or_insert(Session {
            received: Bytes::ZERO,
            sent: Bytes::ZERO,
            lease_ends: now + lease,
            sequence: 0,
            token,
            leaving: 0,
            run: None,
            past_runs: VecDeque::new(),
            over: 0,
            logs: Vec::new(),
        }))
    }

    /// Ends the sessions whose lease is over and gives them back.
    pub(super) fn expire(&mut self, now: Time) -> Vec<(SocketAddr, Session)> {
        let over: Vec<_> =
            self.by_peer.iter().filter(|(_, s)| s.lease_ends <= now).map(|(p, _)| *p).collect();
        over.into_iter()
            .filter_map(|peer| {
                let source = source_prefix(peer.ip());
                if let Some(n) = self.per_source.get_mut(&source) {
                    *n -= 1;
                    if *n == 0 {
                        self.per_source.remove(&source);
                    }
                }
                let session = self.by_peer.remove(&peer)?;
                self.stamps -= session.stamps();
                Some((peer, session))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: &str = "192.0.2.1:9";

    fn sessions(limits: &Limits) -> (Sessions, SocketAddr) {
        let (mut sessions, peer) = (Sessions::default(), PEER.parse().unwrap());
        sessions.begin(Time::ZERO, Span::from_secs(30), peer, [1; 16], limits).unwrap();
        (sessions, peer)
    }

    fn packet(ssid: u16, stream: u32, index: u16, at: u64) -> Noted {
        let (at, ecn) = (Time::from_nanos(at), Ecn::NotEct);
        Noted { ssid, stream, kind: ReportKind::Arrivals, count: 2_000, index, at, ecn, hop_limit: 64 }
    }

    fn stamps(sessions: &mut Sessions, peer: SocketAddr, ssid: u16, stream: u32) -> Option<Vec<u16>> {
        let log = sessions.get(peer).unwrap().log(ssid, stream)?;
        Some(log.entries.iter().map(|e| e.index).collect())
    }

    #[test]
    fn the_first_of_duplicates_counts_and_order_does_not_matter() {
        let limits = Limits::default();
        let (mut sessions, peer) = sessions(&limits);
        for (index, at) in [(5, 50), (3, 60), (5, 70), (4, 80)] {
            assert!(sessions.note(peer, &packet(1, 1, index, at), &limits));
        }
        let log = sessions.get(peer).unwrap().log(1, 1).unwrap();
        let got: Vec<_> = log.arrivals(2..7).map(|a| a.map(|a| (a.offset_ns, a.duplicated))).collect();
        assert_eq!(got, [None, Some((10, false)), Some((30, false)), Some((0, true)), None]);
        assert_eq!(sessions.stamps(), 3, "a claimed length of 2,000 costs nothing");
    }

    #[test]
    fn a_stream_that_was_given_up_is_not_begun_again() {
        let limits = Limits::default();
        let (mut sessions, peer) = sessions(&limits);
        sessions.note(peer, &packet(1, 7, 0, 1), &limits);
        sessions.release(peer, 1, 7);
        sessions.note(peer, &packet(1, 7, 0, 2), &limits);
        sessions.note(peer, &packet(1, 3, 0, 2), &limits);
        assert_eq!((stamps(&mut sessions, peer, 1, 7), stamps(&mut sessions, peer, 1, 3)), (None, None));
        // Five logs: the first has to go, and its replayed packet does not push out another.
        (8..13).for_each(|stream| assert!(sessions.note(peer, &packet(1, stream, 0, 3), &limits)));
        sessions.note(peer, &packet(1, 8, 0, 4), &limits);
        assert_eq!(
            (stamps(&mut sessions, peer, 1, 8), stamps(&mut sessions, peer, 1, 9)),
            (None, Some(vec![0]))
        );
        assert_eq!(sessions.stamps(), 4);
    }

    #[test]
    fn the_peers_next_run_does_not_inherit_stamps() {
        let limits = Limits::default();
        let (mut sessions, peer) = sessions(&limits);
        sessions.note(peer, &packet(1, 1, 0, 1), &limits);
        sessions.note(peer, &packet(2, 1, 1, 2), &limits);
        assert_eq!(stamps(&mut sessions, peer, 2, 1), Some(vec![1]));
        // A late or replayed packet of the first run changes nothing.
        sessions.note(peer, &packet(1, 1, 5, 3), &limits);
        assert_eq!(
            (stamps(&mut sessions, peer, 2, 1), stamps(&mut sessions, peer, 1, 1)),
            (Some(vec![1]), None)
        );
    }

    #[test]
    fn room_for_stamps_is_bounded_and_given_back() {
        let limits = Limits { stamps: 3, ..Limits::default() };
        let (mut sessions, peer) = sessions(&limits);
        let kept: Vec<_> = (0..5).map(|i| sessions.note(peer, &packet(1, 1, i, 9), &limits)).collect();
        assert_eq!(kept, [true, true, true, false, false]);
        assert!(sessions.get(peer).unwrap().log(1, 1).unwrap().overflowed, "never reported as lost packets");
        assert_eq!(sessions.expire(Time::ZERO + Span::from_secs(31)).len(), 1);
        assert_eq!(sessions.stamps(), 0);
    }

    #[test]
    fn packets_are_asked_for_once() {
        let limits = Limits::default();
        let (mut sessions, peer) = sessions(&limits);
        let log = sessions.get(peer).unwrap().open(1, 1, ReportKind::Departures, 100).unwrap();
        assert!(log.ask(60, 10) && log.ask(0, 60));
        assert!(!log.ask(59, 1) && !log.ask(69, 2) && !log.ask(90, 60));
        assert!(log.ask(70, 30));
    }
}
