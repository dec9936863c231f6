//! [`Sink`]: counts traffic, and tells its source each second.

use core::net::SocketAddr;
use std::collections::VecDeque;

use super::STATUS_EVERY;
use crate::endpoint::Endpoint;
use crate::endpoint::shares::{TELL, fair, source_prefix};
use crate::endpoint::token;
use crate::node::{Datagram, Ecn, Flow, Input, Node, Output, Payload, PortId, Transmit, TransmitId};
use crate::time::{Span, Time};
use crate::units::Bytes;
use crate::wire::traffic::{Counts, Packet, STATUS_LEN};

/// Configuration of a sink.
#[derive(Clone, Debug)]
pub struct SinkConfig {
    /// Bytes that nobody can guess.
    pub secret: [u8; 32],
    /// Sources at a time.
    pub sources: usize,
    /// A source that is silent for so long has left.
    pub lease: Span,
    /// A source is told to stop after this time.
    pub longest: Span,
    /// A source is told to stop after so many bytes.
    pub most: Bytes,
}

impl SinkConfig {
    /// With limits that a test of hours keeps: 16 sources, a silence of 10 s, 24 hours, 10 TB.
    pub fn new(secret: [u8; 32]) -> SinkConfig {
        SinkConfig {
            secret,
            sources: 16,
            lease: Span::from_secs(10),
            longest: Span::from_secs(86_400),
            most: Bytes(10_000_000_000_000),
        }
    }
}

/// A decision of a sink.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(tag = "event", rename_all = "kebab-case")
)]
#[non_exhaustive]
pub enum SinkEvent {
    /// A source proved its address.
    SourceFound {
        /// Its address.
        peer: SocketAddr,
    },
    /// Counts of a source, each second.
    Counted {
        /// Its address.
        peer: SocketAddr,
        /// The counts so far.
        counts: Counts,
    },
    /// A source has left.
    SourceLeft {
        /// Its address.
        peer: SocketAddr,
        /// All that came of it.
        counts: Counts,
        /// From its first packet of data to its last.
        seconds: f64,
        /// True if it fell silent; false if it said goodbye, or the sink ended.
        silent: bool,
    },
    /// A source found no place: told at once, and then at most every ten seconds.
    TurnedAway {
        /// The last of those.
        peer: SocketAddr,
    },
}

/// A source that proved its address.
#[derive(Debug)]
struct Session {
    peer: SocketAddr,
    own: SocketAddr,
    port: PortId,
    nonce: u64,
    /// Bytes at the IP layer, both ways.
    received: Bytes,
    sent: Bytes,
    opened: Time,
    last_heard: Time,
    /// When the first and the last packet of data came.
    data: Option<(Time, Time)>,
    next_status: Time,
    number: u32,
    counts: Counts,
    seen: Seen,
    leaves: bool,
}

/// Numbers below the largest whose packets are told from copies.
const REMEMBERED: u64 = 1_024;

/// The last numbers that came: a bit for each.
#[derive(Debug, Default)]
struct Seen([u64; (REMEMBERED / 64) as usize]);

impl Seen {
    /// Notes a number, `expected` being one more than the largest so far; true if it came before. Nobody knows of one that is too old.
    fn note(&mut self, number: u64, expected: u64) -> bool {
        let bit = |number: u64| ((number % REMEMBERED / 64) as usize, 1_u64 << (number % 64));
        if number >= expected {
            if number - expected >= REMEMBERED {
                self.0 = Default::default();
            } else {
                (expected..number).map(bit).for_each(|(word, bit)| self.0[word] &= !bit);
            }
        } else if expected - number > REMEMBERED {
            return false;
        }
        let (word, bit) = bit(number);
        let came = number < expected && self.0[word] & bit != 0;
        self.0[word] |= bit;
        came
    }
}

/// The end of generated traffic. It answers, and never is finished.
pub struct Sink {
    config: SinkConfig,
    sessions: Vec<Session>,
    next_tell: Time,
    closing: bool,
    out: VecDeque<Output<SinkEvent>>,
}

impl Sink {
    /// A sink that knows no source.
    pub fn new(config: SinkConfig) -> Sink {
        Sink { config, sessions: Vec::new(), next_tell: Time::ZERO, closing: false, out: VecDeque::new() }
    }

    /// Sources at the moment.
    pub fn sources(&self) -> usize {
        self.sessions.len()
    }

    fn on_datagram(&mut self, now: Time, port: PortId, at: Time, datagram: &Datagram) {
        let Some(Ok(packet)) = datagram.payload.udp().map(Packet::parse) else { return };
        let (peer, size) = (datagram.from, datagram.ip_size());
        let known = |nonce: u64| move |session: &&mut Session| session.peer == peer && session.nonce == nonce;
        match packet {
            Packet::Hello { nonce } => {
                // As long as the hello: needs no memory.
                let token = token::issue(&self.config.secret, peer, now);
                let welcome = Packet::Welcome { nonce, token };
                self.out.push_back(answer(now, (port, datagram.to, peer), welcome));
            }
            Packet::Open { nonce, token } => {
                let Some(issued) = token::issued(&self.config.secret, peer, &token) else { return };
                if let Some(session) = self.sessions.iter_mut().find(known(nonce)) {
                    session.received += size;
                    session.last_heard = now;
                } else if issued <= now && now - issued <= token::LIFE {
                    self.open(now, (port, datagram.to, peer), nonce, size);
                }
            }
            Packet::Data { nonce, number, .. } => {
                let Some(session) = self.sessions.iter_mut().find(known(nonce)) else { return };
                session.received += size;
                session.last_heard = now;
                session.data = Some((session.data.map_or(at, |data| data.0), at));
                let counts = &mut session.counts;
                if session.seen.note(number, counts.expected) {
                    counts.copies = counts.copies.saturating_add(1);
                    return;
                }
                counts.packets += 1;
                counts.bytes = counts.bytes.saturating_add(size.0);
                match number < counts.expected {
                    true => counts.disordered += 1,
                    false => counts.expected = number.saturating_add(1),
                }
                counts.marked += u64::from(datagram.ecn == Ecn::Ce);
            }
            Packet::Bye { nonce } => {
                if let Some(session) = self.sessions.iter_mut().find(known(nonce)) {
                    session.received += size;
                    session.leaves = true;
                }
            }
            Packet::Welcome { .. } | Packet::Status { .. } => {}
        }
    }

    fn open(
        &mut self,
        now: Time,
        (port, own, peer): (PortId, SocketAddr, SocketAddr),
        nonce: u64,
        size: Bytes,
    ) {
        let prefix = source_prefix(peer.ip());
        let held = self.sessions.iter().filter(|session| source_prefix(session.peer.ip()) == prefix).count();
        if self.closing || !fair(self.config.sources, self.sessions.len(), held, 1) {
            if now >= self.next_tell {
                self.next_tell = now + TELL;
                self.out.push_back(Output::Event(SinkEvent::TurnedAway { peer }));
            }
            return;
        }
        self.sessions.push(Session {
            peer,
            own,
            port,
            nonce,
            received: size,
            sent: Bytes::ZERO,
            opened: now,
            last_heard: now,
            data: None,
            next_status: now,
            number: 0,
            counts: Counts::default(),
            seen: Seen::default(),
            leaves: false,
        });
        self.out.push_back(Output::Event(SinkEvent::SourceFound { peer }));
    }

    /// Sends what is due, and forgets who has left.
    fn on_time(&mut self, now: Time) {
        let SinkConfig { lease, longest, most, .. } = self.config;
        let (closing, out) = (self.closing, &mut self.out);
        self.sessions.retain_mut(|session| {
            let silent = now >= session.last_heard + lease;
            // The last status of a sink that ends does not wait for its second.
            if (now >= session.next_status || closing) && !silent {
                let over = now - session.opened >= longest || session.received >= most;
                let status = Packet::Status {
                    nonce: session.nonce,
                    number: session.number,
                    stop: over || closing,
                    last: session.leaves || closing,
                    counts: session.counts,
                };
                let transmit = answer(now, (session.port, session.own, session.peer), status);
                let Output::Transmit(Transmit { datagram, .. }) = &transmit else { return false };
                let size = datagram.ip_size();
                // Never more than it got.
                if session.sent + size <= session.received {
                    session.sent += size;
                    session.number = session.number.wrapping_add(1);
                    out.push_back(transmit);
                }
                session.next_status = now + STATUS_EVERY;
                let (peer, counts) = (session.peer, session.counts);
                out.push_back(Output::Event(SinkEvent::Counted { peer, counts }));
                if !session.leaves && !closing {
                    return true;
                }
            } else if !silent {
                return true;
            }
            let (peer, counts) = (session.peer, session.counts);
            let seconds = session.data.map_or(0.0, |(first, last)| (last - first).as_secs_f64());
            out.push_back(Output::Event(SinkEvent::SourceLeft { peer, counts, seconds, silent }));
            false
        });
    }

    fn wake(&self) -> Option<Time> {
        let of = |session: &Session| session.next_status.min(session.last_heard + self.config.lease);
        self.sessions.iter().map(of).min()
    }
}

/// A packet to a peer, by the port and from the address to which its own came.
fn answer<E>(now: Time, (port, from, to): (PortId, SocketAddr, SocketAddr), packet: Packet) -> Output<E> {
    let mut bytes = Vec::with_capacity(STATUS_LEN);
    packet.write(&mut bytes, 0);
    let datagram = Datagram {
        from,
        to,
        flow: Flow::default(),
        ecn: Ecn::NotEct,
        dscp: 0,
        hop_limit: 0,
        payload: Payload::Udp(bytes),
    };
    Output::Transmit(Transmit { id: TransmitId::UNTRACKED, at: now, port, datagram })
}

impl Node for Sink {
    type Event = SinkEvent;

    fn handle(&mut self, now: Time, input: Input) {
        match input {
            Input::Datagram { port, at, datagram } => self.on_datagram(now, port, at, &datagram),
            Input::Interrupted => self.closing = true,
            _ => {}
        }
        self.on_time(now);
    }

    fn poll(&mut self, _: Time) -> Output<SinkEvent> {
        self.out.pop_front().unwrap_or_else(|| Output::Wait(self.wake()))
    }
}

impl Endpoint for Sink {
    fn is_finished(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_comes_again_is_a_copy_as_long_as_it_is_remembered() {
        let (mut seen, mut expected) = (Seen::default(), 0);
        let mut comes = |number: u64| {
            let copy = seen.note(number, expected);
            expected = expected.max(number + 1);
            copy
        };
        assert_eq!(
            [0, 2, 1, 1, 2, 2_000, 2, 1_999, 1_999, 2_000].map(&mut comes),
            [false, false, false, true, true, false, false, false, true, true]
        );
        assert_eq!(
            [2_500, 2_000, 2_400, 2_400, 10_000, 2_400].map(comes),
            [false, true, false, true, false, false]
        );
    }
}
