//! What a reflector keeps of a peer that proved its address: credit, and the logs of streams.
//!
//! Everything is bounded: sessions, sessions of one source, logs of a session, packets of a log. A peer that wants
//! more loses its own oldest log, or is answered "busy".

use core::net::SocketAddr;
use std::collections::BTreeMap;

use super::budget::{Limits, source_prefix};
use crate::node::Ecn;
use crate::time::{Span, Time};
use crate::units::Bytes;
use crate::wire::private::{Arrival, ReportKind, Token};

/// Longest stream that a log takes.
pub(super) const MAX_PACKETS: u16 = 2_048;
/// Logs of one session.
const MAX_LOGS: usize = 4;

/// A packet's stamp on this side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    at: Time,
    ecn: Ecn,
    hop_limit: u8,
    duplicated: bool,
}

/// The stamps of one stream.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) stream: u32,
    pub(super) kind: ReportKind,
    /// Packets of the stream.
    pub(super) count: u16,
    entries: Vec<Option<Entry>>,
    /// Reverse: packets that are still to leave.
    pub(super) unsent: u16,
    pub(super) clock_stepped: bool,
}

impl Log {
    fn note(&mut self, index: u16, entry: Entry) {
        let index = usize::from(index);
        if index >= usize::from(self.count) {
            return;
        }
        if self.entries.len() <= index {
            // Grows with what really arrives, so that a claimed length costs nothing.
            self.entries.resize(index + 1, None);
        }
        match &mut self.entries[index] {
            Some(first) => first.duplicated = true,
            slot => *slot = Some(entry),
        }
    }

    /// The earliest stamp, from which a report's offsets are counted.
    pub(super) fn base(&self) -> Time {
        self.entries.iter().flatten().map(|e| e.at).min().unwrap_or(Time::ZERO)
    }

    pub(super) fn arrivals(&self, indices: core::ops::Range<u16>) -> impl Iterator<Item = Option<Arrival>> {
        let base = self.base();
        indices.map(move |i| {
            self.entries.get(usize::from(i)).copied().flatten().map(|e| Arrival {
                offset_ns: (e.at - base).as_nanos().max(0) as u64,
                ecn: e.ecn as u8,
                late: false,
                duplicated: e.duplicated,
                hop_limit: e.hop_limit,
            })
        })
    }
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
    logs: Vec<Log>,
}

impl Session {
    /// What may still be sent to it without sending more than came from it.
    pub(super) fn credit(&self) -> Bytes {
        self.received - self.sent
    }

    pub(super) fn log(&mut self, stream: u32) -> Option<&mut Log> {
        self.logs.iter_mut().find(|l| l.stream == stream)
    }

    pub(super) fn release(&mut self, stream: u32) {
        self.logs.retain(|l| l.stream != stream);
    }

    /// The log of a stream, begun if need be; `None` for a stream that is too long or changed its shape.
    pub(super) fn open(&mut self, stream: u32, kind: ReportKind, count: u16) -> Option<&mut Log> {
        if count > MAX_PACKETS {
            return None;
        }
        if let Some(i) = self.logs.iter().position(|l| l.stream == stream) {
            let log = &mut self.logs[i];
            return (log.kind == kind && log.count == count).then_some(log);
        }
        if self.logs.len() == MAX_LOGS {
            self.logs.remove(0);
        }
        self.logs.push(Log { stream, kind, count, entries: Vec::new(), unsent: 0, clock_stepped: false });
        self.logs.last_mut()
    }

    pub(super) fn note(
        &mut self,
        stream: u32,
        kind: ReportKind,
        count: u16,
        index: u16,
        stamp: (Time, Ecn, u8),
    ) -> bool {
        let (at, ecn, hop_limit) = stamp;
        match self.open(stream, kind, count) {
            Some(log) => {
                log.note(index, Entry { at, ecn, hop_limit, duplicated: false });
                true
            }
            None => false,
        }
    }

    pub(super) fn clock_stepped(&mut self) {
        self.logs.iter_mut().for_each(|l| l.clock_stepped = true);
    }
}

/// All peers.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    by_peer: BTreeMap<SocketAddr, Session>,
    per_source: BTreeMap<u64, usize>,
}

impl Sessions {
    pub(super) fn get(&mut self, peer: SocketAddr) -> Option<&mut Session> {
        self.by_peer.get_mut(&peer)
    }

    pub(super) fn len(&self) -> usize {
        self.by_peer.len()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Session> {
        self.by_peer.values_mut()
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
        let source = self.per_source.entry(source_prefix(peer.ip())).or_insert(0);
        if self.by_peer.len() >= limits.sessions || *source >= limits.sessions_per_source {
            if *source == 0 {
                self.per_source.remove(&source_prefix(peer.ip()));
            }
            return None;
        }
        *source += 1;
        Some(self.by_peer.entry(peer).or_insert(Session {
            received: Bytes::ZERO,
            sent: Bytes::ZERO,
            lease_ends: now + lease,
            sequence: 0,
            token,
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
                self.by_peer.remove(&peer).map(|session| (peer, session))
            })
            .collect()
    }
}
