//! The receiving end: sources and their sequence numbers (RFC 3550, appendix A.1 and A.8), feedback and reports.

use core::net::SocketAddr;
use std::collections::{BTreeMap, VecDeque};

use super::event::{Decision, Left, Received};
use super::{CLOCK_RATE, REPORT_EVERY, middle, nearest, ntp, ticks};
use crate::endpoint::Endpoint;
use crate::node::{Datagram, Ecn, Input, Node, Output, PortId, Transmit, TransmitId};
use crate::time::{Epoch, Span, Time};
use crate::units::Bytes;
use crate::wire::{
    ReportBlock, Reported, Rtcp, RtpHeader, RtpPacket, is_rtcp, write_feedback, write_goodbye, write_name,
    write_receiver_report,
};

/// Sources at a time. Where there are as many, one that comes takes the place of that which was silent for longest, of those
/// that are not proven or were silent for `ROOM_AFTER`: forged ones age first.
const MAX_SOURCES: usize = 64;
const ROOM_AFTER: Span = Span::from_secs(1);
/// A source that is silent for so long has left.
const LEASE: Span = Span::from_secs(10);
/// How far a number may be ahead of the highest one, and behind it (RFC 3550, appendix A.1).
const MAX_DROPOUT: u64 = 3_000;
const MAX_MISORDER: u64 = 100;
/// Packets of one feedback packet, which then fits any path.
const MAX_TOLD: usize = 512;

/// What a receiver needs to know.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ReceiverConfig {
    /// Its own source's number.
    pub ssrc: u32,
    /// How often it gives feedback.
    pub feedback: Span,
    /// When the run started, for the stamps in feedback.
    pub epoch: Epoch,
    /// Whether feedback has times of arrival in units of the media's clock as well (RFC 3611, section 4.3).
    #[cfg_attr(feature = "serde", serde(default))]
    pub receipt_times: bool,
    /// How long after it was missed a packet is still of use, and asked for again; nothing where none is.
    #[cfg_attr(feature = "serde", serde(default))]
    pub nack: Option<Span>,
}

impl ReceiverConfig {
    /// Feedback every 50 ms, and nothing else.
    pub fn new(ssrc: u32) -> ReceiverConfig {
        let (feedback, epoch) = (Span::from_millis(50), Epoch::from_unix_nanos(0));
        ReceiverConfig { ssrc, feedback, epoch, receipt_times: false, nack: None }
    }
}

/// What is known of a source.
struct Source {
    port: PortId,
    peer: SocketAddr,
    own: SocketAddr,
    ssrc: u32,
    /// The highest number so far; numbers begin at 65,536, so that those before the first have one.
    highest: u64,
    base: u64,
    /// Two packets have come in sequence.
    known: bool,
    received: Received,
    /// IP bytes that came from it, of media or not, and that went back.
    balance: (Bytes, Bytes),
    /// The number after one that was too far ahead to be believed.
    far: Option<u64>,
    /// Packets that were not yet told twice, or of which a copy may still come.
    arrivals: BTreeMap<u64, (Time, Ecn)>,
    /// The first packet of the feedback before, and of the next.
    told: (u64, u64),
    /// Interarrival jitter in 16ths of a tick, and the last packet's transit time.
    jitter: (u32, Option<u32>),
    /// What had been expected and received at the last report.
    reported: (u64, u64),
    /// The last sender report, and when it came.
    sender_report: Option<(u32, Time)>,
    next_feedback: Option<Time>,
    next_report: Time,
    last_heard: Time,
}

/// The receiving end of streams.
pub struct Receiver {
    config: ReceiverConfig,
    sources: Vec<Source>,
    out: VecDeque<Output<Decision>>,
}

impl Receiver {
    /// A receiver that knows no source.
    pub fn new(config: ReceiverConfig) -> Receiver {
        Receiver { config, sources: Vec::new(), out: VecDeque::new() }
    }

    fn on_datagram(&mut self, now: Time, port: PortId, at: Time, datagram: &Datagram) {
        let Some(bytes) = datagram.payload.udp() else { return };
        if is_rtcp(bytes) {
            return self.on_rtcp(now, datagram, bytes);
        }
        let Ok(packet) = RtpPacket::parse(bytes) else { return };
        let RtpHeader { sequence, timestamp, ssrc, .. } = packet.header;
        let size = datagram.ip_size();
        let place = self.sources.iter().position(|s| (s.peer, s.ssrc) == (datagram.from, ssrc));
        let Some(place) = place else {
            if self.has_room(now) {
                let mut source = Source::new(
                    now,
                    port,
                    (datagram.from, datagram.to),
                    ssrc,
                    sequence,
                    self.config.feedback,
                );
                source.balance.0 += size;
                source.take(at, sequence, timestamp, size, datagram.ecn);
                self.sources.push(source);
            }
            return;
        };
        let source = &mut self.sources[place];
        source.last_heard = now;
        source.balance.0 += size;
        let was_known = source.known;
        if source.take(at, sequence, timestamp, size, datagram.ecn) && source.next_feedback.is_none() {
            source.next_feedback = Some(now + self.config.feedback);
        }
        if source.known && !was_known {
            self.out.push_back(Output::Event(Decision::SourceFound { peer: source.peer, ssrc }));
        }
    }

    /// Whether one more source may come, for which another may have to leave.
    fn has_room(&mut self, now: Time) -> bool {
        if self.sources.len() >= MAX_SOURCES {
            let leaves = |source: &Source| !source.known || source.last_heard + ROOM_AFTER <= now;
            let all = self.sources.iter().enumerate().filter(|(_, source)| leaves(source));
            if let Some((place, _)) = all.min_by_key(|(_, source)| source.last_heard) {
                self.leave(place, Left::Displaced);
            }
        }
        self.sources.len() < MAX_SOURCES
    }

    fn on_rtcp(&mut self, now: Time, datagram: &Datagram, bytes: &[u8]) {
        // What came is counted once, however many reports of however many sources stand in it.
        let mut came = datagram.ip_size();
        for packet in Rtcp::all(bytes).map_while(Result::ok) {
            let of = |ssrc: u32| {
                let own = move |s: &Source| (s.peer, s.ssrc) == (datagram.from, ssrc);
                self.sources.iter().position(own)
            };
            match packet {
                Rtcp::Sender { ssrc, info, .. } => {
                    if let Some(place) = of(ssrc) {
                        let source = &mut self.sources[place];
                        source.balance.0 += core::mem::take(&mut came);
                        source.last_heard = now;
                        source.sender_report = Some((middle(info.ntp), now));
                    }
                }
                Rtcp::Goodbye { ssrc: Some(ssrc) } => {
                    if let Some(place) = of(ssrc) {
                        if self.sources[place].known {
                            self.answer(now, place, true, false);
                        }
                        self.leave(place, Left::Goodbye);
                    }
                }
                _ => {}
            }
        }
    }

    /// Sends feedback on a source, with a report where one is due and a goodbye at the end, if it has paid for them.
    fn answer(&mut self, now: Time, place: usize, reports: bool, leaves: bool) {
        let source = &mut self.sources[place];
        let stamp = middle(ntp(self.config.epoch, now));
        let mut bytes = Vec::new();
        if reports {
            let block = source.block(now);
            write_receiver_report(&mut bytes, self.config.ssrc, &[block]);
            write_name(&mut bytes, self.config.ssrc, "lastmile");
        }
        if leaves {
            write_goodbye(&mut bytes, self.config.ssrc);
        }
        let begin = source.told.0.max((source.highest + 1).saturating_sub(MAX_TOLD as u64));
        let told: Vec<Reported> = (begin..=source.highest)
            .map(|number| {
                let came = source.arrivals.get(&number);
                came.map_or(Reported::default(), |&(at, ecn)| Reported::arrived(ecn, Some(now - at)))
            })
            .collect();
        write_feedback(&mut bytes, self.config.ssrc, source.ssrc, begin as u16, &told, stamp);
        let datagram = Datagram::udp(source.own, source.peer, bytes);
        let size = datagram.ip_size();
        if source.balance.1 + size > source.balance.0 {
            return;
        }
        source.balance.1 += size;
        source.received.feedback_packets += 1;
        source.received.feedback_bytes += size;
        // Each packet is told twice, so that one lost feedback packet loses nothing.
        source.told = (source.told.1, source.highest + 1);
        source.forget();
        let (id, port) = (TransmitId::UNTRACKED, source.port);
        self.out.push_back(Output::Transmit(Transmit { id, at: now, port, datagram }));
    }

    /// Says goodbye to all sources.
    fn end(&mut self, now: Time) {
        for place in (0..self.sources.len()).rev() {
            if self.sources[place].known {
                self.answer(now, place, true, true);
            }
            self.leave(place, Left::Interrupted);
        }
    }

    fn leave(&mut self, place: usize, why: Left) {
        let source = self.sources.swap_remove(place);
        if source.known {
            let (peer, ssrc, received) = (source.peer, source.ssrc, source.summary());
            self.out.push_back(Output::Event(Decision::SourceLeft { peer, ssrc, why, received }));
        }
    }

    fn on_time(&mut self, now: Time) {
        for place in (0..self.sources.len()).rev() {
            let source = &mut self.sources[place];
            if now >= source.last_heard + LEASE {
                self.leave(place, Left::Silent);
            } else if source.known && source.next_feedback.is_some_and(|at| at <= now) {
                source.next_feedback = None;
                let reports = source.next_report <= now;
                if reports {
                    source.next_report = now + REPORT_EVERY;
                    let (peer, ssrc, received) = (source.peer, source.ssrc, source.summary());
                    self.out.push_back(Output::Event(Decision::SourceProgress { peer, ssrc, received }));
                }
                self.answer(now, place, reports, false);
            }
        }
    }

    fn wake(&self) -> Option<Time> {
        let each = |s: &Source| [Some(s.last_heard + LEASE), s.next_feedback.filter(|_| s.known)];
        self.sources.iter().flat_map(each).flatten().min()
    }
}

impl Source {
    fn new(
        now: Time,
        port: PortId,
        (peer, own): (SocketAddr, SocketAddr),
        ssrc: u32,
        sequence: u16,
        feedback: Span,
    ) -> Source {
        let base = 65_536 + u64::from(sequence);
        Source {
            port,
            peer,
            own,
            ssrc,
            highest: base - 1,
            base,
            known: false,
            far: None,
            received: Received { first: now, last: now, ..Received::default() },
            balance: (Bytes::ZERO, Bytes::ZERO),
            arrivals: BTreeMap::new(),
            told: (base, base),
            jitter: (0, None),
            reported: (0, 0),
            sender_report: None,
            next_feedback: Some(now + feedback),
            next_report: now + REPORT_EVERY,
            last_heard: now,
        }
    }

    /// Takes a packet in; says whether it belongs to the source's sequence.
    fn take(&mut self, at: Time, sequence: u16, timestamp: u32, size: Bytes, ecn: Ecn) -> bool {
        let Some(number) = nearest(self.highest, sequence) else { return false };
        if number + MAX_MISORDER < self.highest {
            return false;
        }
        // The first that came need not be the first that left.
        if number < self.base {
            (self.base, self.told.0) = (number, self.told.0.min(number));
        }
        // An outage may be longer than what is believed of one packet: the second in sequence proves it.
        if number > self.highest + MAX_DROPOUT && self.far.replace(number + 1) != Some(number) {
            return false;
        }
        self.far = None;
        if let Some((_, before)) = self.arrivals.get_mut(&number) {
            // A mark of any copy counts (RFC 8888, section 3.1).
            if ecn == Ecn::Ce && *before != Ecn::Ce {
                *before = ecn;
                self.received.marked += 1;
            }
            self.received.duplicates += 1;
            return true;
        }
        self.known |= number == self.highest + 1 && number > self.base;
        self.received.out_of_order += u64::from(number < self.highest);
        self.highest = self.highest.max(number);
        self.arrivals.insert(number, (at, ecn));
        if self.arrivals.len() > 2 * MAX_TOLD {
            self.arrivals.pop_first();
        }
        self.received.packets += 1;
        self.received.bytes += size;
        self.received.marked += u64::from(ecn == Ecn::Ce);
        self.received.last = at;
        // Appendix A.8, in 16ths so that nothing is lost by rounding.
        let transit = ticks(at).wrapping_sub(timestamp);
        if let Some(before) = self.jitter.1.replace(transit) {
            let apart = (transit.wrapping_sub(before) as i32).unsigned_abs();
            self.jitter.0 = self.jitter.0.saturating_add(apart).saturating_sub((self.jitter.0 + 8) >> 4);
        }
        true
    }

    /// Forgets packets that were told twice and of which no copy would be taken any more.
    fn forget(&mut self) {
        let copies = self.highest.saturating_sub(MAX_MISORDER);
        self.arrivals = self.arrivals.split_off(&self.told.0.min(copies));
    }

    fn expected(&self) -> u64 {
        self.highest + 1 - self.base
    }

    fn block(&mut self, now: Time) -> ReportBlock {
        let (expected, received) = (self.expected(), self.received.packets);
        let (more, came) = (expected - self.reported.0, received - self.reported.1);
        self.reported = (expected, received);
        let lost = more.saturating_sub(came);
        let (last_report, delay) = self.sender_report.map_or((0, 0), |(stamp, came)| {
            (stamp, ((now - came).as_nanos().max(0) as u64 * 65_536 / 1_000_000_000) as u32)
        });
        ReportBlock {
            ssrc: self.ssrc,
            fraction_lost: (lost * 256).checked_div(more).unwrap_or(0).min(255) as u8,
            lost: (expected as i64 - received as i64).clamp(-0x80_0000, 0x7f_ffff) as i32,
            // Cycles are counted from the source's own beginning.
            highest: (self.highest - 65_536) as u32,
            jitter: self.jitter.0 >> 4,
            last_report,
            delay,
        }
    }

    fn summary(&self) -> Received {
        let jitter = u64::from(self.jitter.0 >> 4) * 1_000_000_000 / u64::from(CLOCK_RATE);
        let lost = self.expected().saturating_sub(self.received.packets);
        Received { lost, jitter: Span::from_nanos(jitter as i64), ..self.received }
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
