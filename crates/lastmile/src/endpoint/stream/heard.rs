//! State of one source at a receiver: its sequence numbers (RFC 3550, appendix A.1 and A.8), and the reports on it.

use core::net::SocketAddr;
use std::collections::{BTreeMap, VecDeque};

use super::event::{Decision, Received};
use super::missing::Missing;
use super::playout::Playout;
use super::receiver_config::{FeedbackInterval, ReceiverConfig};
use super::summary::Counting;
use super::{CLOCK_RATE, REPORT_EVERY, nearest, ticks};
use crate::node::{Ecn, Output, PortId};
use crate::time::{Span, Time};
use crate::units::Bytes;
use crate::wire::{
    ReportBlock, Reported, RtpHeader, RtpPacket, SendTime, write_feedback, write_receipt_times,
    write_tfrc_report,
};

/// Most that a number may be ahead of the highest one, and behind it (RFC 3550, appendix A.1).
const MAX_DROPOUT: u64 = 3_000;
const MAX_MISORDER: u64 = 100;
/// Packets of one feedback packet, which then fits any path; with their times of receipt, fewer.
const MAX_TOLD: u64 = 512;
const MAX_TIMED: u64 = 192;
/// Bytes of times of receipt, so that all of a datagram fits 1400.
const MAX_TIMES: usize = 900;
/// A source that is silent for so long is told that this end is still there.
pub(super) const QUIET: Span = Span::from_millis(500);

/// State of a source.
pub(super) struct Source {
    pub(super) port: PortId,
    pub(super) peer: SocketAddr,
    pub(super) own: SocketAddr,
    pub(super) ssrc: u32,
    /// The highest number so far; numbers begin at 65,536, so that those before the first have one.
    highest: u64,
    base: u64,
    /// Two packets have come in sequence.
    pub(super) known: bool,
    pub(super) received: Received,
    /// It repeats packets of another one (RFC 4588), and of which, once that is known.
    pub(super) repeats: bool,
    pub(super) original: Option<u32>,
    /// Packets to ask for again, if repeats are asked for.
    pub(super) missing: Option<Missing>,
    /// IP bytes that came from it, of media or not, and that went back.
    pub(super) balance: (Bytes, Bytes),
    /// The number after one that was too far ahead to be believed.
    bad_sequence: Option<u64>,
    /// Packets that were not yet told twice, or of which a copy may still come.
    arrivals: BTreeMap<u64, (Time, Ecn)>,
    /// The first packet of the feedback before, and of the next.
    told: (u64, u64),
    /// Interarrival jitter in 16ths of a tick, and the last packet's transit time.
    jitter: (u32, Option<u32>),
    /// Packets expected and received at the last report.
    reported: (u64, u64),
    /// The last sender report, and when it came.
    pub(super) sender_report: Option<(u32, Time)>,
    pub(super) next_feedback: Option<Time>,
    pub(super) next_report: Time,
    pub(super) last_heard: Time,
    /// Reports since then.
    pub(super) calls: u32,
    /// The same SSRC comes from another address since.
    pub(super) moved: bool,
    /// The round-trip time that its packets told of.
    pub(super) rtt: Option<Span>,
    /// Time between feedback messages that it asked for.
    every: Option<FeedbackInterval>,
    /// Its frames, where they are played.
    pub(super) playout: Option<Box<Playout>>,
    /// Counts of a source that asks for them in place of congestion control feedback.
    pub(super) counting: Option<Counting>,
}

impl Source {
    /// A source whose first packet was taken in now, and came then.
    pub(super) fn new(
        (now, at): (Time, Time),
        (port, peer, own): (PortId, SocketAddr, SocketAddr),
        header: &RtpHeader,
        config: &ReceiverConfig,
    ) -> Source {
        let base = 65_536 + u64::from(header.sequence);
        let repeats = config.repeats(header.payload_type);
        Source {
            port,
            peer,
            own,
            ssrc: header.ssrc,
            repeats,
            original: None,
            missing: config.nack.filter(|_| !repeats).map(Missing::new),
            highest: base - 1,
            base,
            known: false,
            bad_sequence: None,
            received: Received { first: at, last: at, ..Received::default() },
            balance: (Bytes::ZERO, Bytes::ZERO),
            arrivals: BTreeMap::new(),
            told: (base, base),
            jitter: (0, None),
            reported: (0, 0),
            sender_report: None,
            next_feedback: Some(now + config.feedback.span(None)),
            next_report: now + REPORT_EVERY,
            last_heard: now,
            calls: 0,
            moved: false,
            rtt: None,
            every: None,
            playout: None,
            counting: None,
        }
    }

    /// A datagram came from it, to that address of this host.
    pub(super) fn heard(&mut self, now: Time, own: SocketAddr, size: Bytes) {
        self.balance.0 += size;
        (self.last_heard, self.own, self.calls) = (now, own, 0);
    }

    /// When it is told that this end is still there: after 0.5, 1.5, 3.5 and 7.5 s of silence, since five reports in a row that nothing came
    /// are the end of a stream (RFC 8083, section 4.2).
    pub(super) fn call_due(&self) -> Option<Time> {
        let times = (2_i64 << self.calls.min(8)) - 1;
        (self.known && !self.repeats && !self.moved).then(|| self.last_heard + QUIET * times)
    }

    /// A report goes out that this end is still there: the first from the address that the source knows, the others from any of this host,
    /// since that one may be gone.
    pub(super) fn call(&mut self) {
        self.calls += 1;
        if self.calls == 1 {
            return;
        }
        let any = if self.own.is_ipv4() { [0, 0, 0, 0].into() } else { [0_u16; 8].into() };
        self.own.set_ip(any);
    }

    /// True if feedback goes to it: once it is known; at once if it asks for reports of counts, since at 300 B/s its
    /// next packet is far (RFC 5348, section 6.3).
    pub(super) fn is_answered(&self) -> bool {
        self.known || self.counting.is_some()
    }

    /// When feedback is due.
    pub(super) fn due(&self) -> Option<Time> {
        self.counting.as_ref().map_or(self.next_feedback, Counting::due)
    }

    /// Time from a packet to the feedback that tells of it.
    pub(super) fn feedback_after(&self, config: &ReceiverConfig) -> Span {
        self.every.unwrap_or(config.feedback).span(self.rtt)
    }

    /// It asks for feedback so often: that counts at once.
    pub(super) fn ask_for_feedback(&mut self, now: Time, every: Span) {
        let every = FeedbackInterval::nearest(every);
        self.every = Some(every);
        self.next_feedback = self.next_feedback.map(|at| at.min(now + every.span(None)));
    }

    /// Appends the decisions of the counting receiver.
    pub(super) fn decisions(&mut self, out: &mut VecDeque<Output<Decision>>) {
        if let Some(counting) = &mut self.counting {
            out.extend(counting.decisions().map(Output::Event));
        }
    }

    /// Takes a packet in. True if it belongs to the source's sequence.
    pub(super) fn take(&mut self, at: Time, packet: &RtpPacket<'_>, size: Bytes, ecn: Ecn) -> bool {
        let RtpHeader { sequence, timestamp, .. } = packet.header;
        let Some(number) = nearest(self.highest, sequence) else { return false };
        if number + MAX_MISORDER < self.highest {
            return false;
        }
        // The first that came need not be the first that left.
        if number < self.base {
            (self.base, self.told.0) = (number, self.told.0.min(number));
        }
        // An outage may be longer than what is believed of one packet: the second in sequence proves it.
        if number > self.highest + MAX_DROPOUT && self.bad_sequence.replace(number + 1) != Some(number) {
            return false;
        }
        self.bad_sequence = None;
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
        if let Some(missing) = &mut self.missing {
            match number > self.highest + 1 {
                true => missing.gap(at, self.highest + 1..number),
                false => missing.came(number),
            }
        }
        self.highest = self.highest.max(number);
        self.arrivals.insert(number, (at, ecn));
        if self.arrivals.len() as u64 > 2 * MAX_TOLD {
            self.arrivals.pop_first();
        }
        self.received.packets += 1;
        self.received.bytes += size;
        self.received.marked += u64::from(ecn == Ecn::Ce);
        self.received.last = self.received.last.max(at);
        if let Some(stamp) = SendTime::of(packet) {
            self.rtt = stamp.rtt.or(self.rtt);
            if let Some(counting) = &mut self.counting {
                counting.on_packet(at, number, size, &stamp, ecn);
            }
        }
        // Appendix A.8, in 16ths so that nothing is lost by rounding.
        let transit = ticks(at).wrapping_sub(timestamp);
        if let Some(before) = self.jitter.1.replace(transit) {
            let apart = (transit.wrapping_sub(before) as i32).unsigned_abs();
            self.jitter.0 = self.jitter.0.saturating_add(apart).saturating_sub((self.jitter.0 + 8) >> 4);
        }
        true
    }

    /// Hands a packet of its sequence to its playout.
    pub(super) fn play(&mut self, at: Time, packet: &RtpPacket<'_>, video: Option<u8>) {
        let RtpHeader { sequence, timestamp, marker, payload_type, .. } = packet.header;
        let payload = if video == Some(payload_type) { packet.payload } else { &[] };
        if let Some(playout) = &mut self.playout {
            playout.push(at, (sequence, timestamp, marker), payload);
        }
    }

    /// Packets of one feedback packet.
    fn most_told(config: &ReceiverConfig) -> u64 {
        if config.receipt_times { MAX_TIMED } else { MAX_TOLD }
    }

    /// True if new packets fill half of a feedback packet: the other half tells those before again.
    pub(super) fn is_full(&self, config: &ReceiverConfig) -> bool {
        self.highest + 1 >= self.told.1 + Source::most_told(config) / 2
    }

    /// When it is to be asked for something.
    pub(super) fn asks(&self) -> Option<Time> {
        self.missing.as_ref().filter(|_| self.known)?.wake()
    }

    /// True if this packet was asked for and has not come.
    pub(super) fn awaits(&self, low: u16) -> bool {
        self.missing.as_ref().is_some_and(|missing| missing.asked().any(|asked| asked == low))
    }

    /// True if this packet was missing, and its content is of use.
    pub(super) fn repeated(&mut self, now: Time, low: u16) -> bool {
        let highest = self.highest;
        self.missing.as_mut().is_some_and(|missing| missing.repeated(now, low, highest))
    }

    /// Appends feedback, `stamp` its time, and the times of receipt before it.
    pub(super) fn write_feedback(
        &mut self,
        out: &mut Vec<u8>,
        now: Time,
        stamp: u32,
        config: &ReceiverConfig,
    ) {
        let begin = self.told.0.max((self.highest + 1).saturating_sub(Source::most_told(config)));
        if let Some(counting) = &mut self.counting {
            let Some(report) = counting.report(now, config.ssrc, self.ssrc) else { return };
            if config.receipt_times {
                self.write_receipt_times(out, begin, config);
            }
            return write_tfrc_report(out, &report);
        }
        if config.receipt_times {
            self.write_receipt_times(out, begin, config);
        }
        let told: Vec<Reported> = (begin..=self.highest)
            .map(|number| {
                let came = self.arrivals.get(&number);
                came.map_or(Reported::default(), |&(at, ecn)| Reported::arrived(ecn, Some(now - at)))
            })
            .collect();
        write_feedback(out, config.ssrc, self.ssrc, begin as u16, &told, stamp);
    }

    /// Appends the times of receipt from that packet on.
    fn write_receipt_times(&self, out: &mut Vec<u8>, begin: u64, config: &ReceiverConfig) {
        let mut room = MAX_TIMES;
        let mut next = None;
        // From the newest back: those without room were told before.
        let newest = self.arrivals.range(begin..).rev().take_while(|&(&number, _)| {
            let run = next.replace(number) != Some(number + 1);
            let takes = if run { 16 } else { 4 };
            let fits = room >= takes;
            room = room.saturating_sub(takes);
            fits
        });
        let mut times: Vec<_> = newest.map(|(number, (at, _))| (*number as u16, ticks(*at))).collect();
        times.reverse();
        write_receipt_times(out, config.ssrc, self.ssrc, &times);
    }

    /// Feedback was given: each packet is told twice, so that one lost feedback packet loses nothing.
    pub(super) fn was_told(&mut self) {
        self.told = (self.told.1, self.highest + 1);
        self.forget();
    }

    /// Forgets packets that were told twice and of which no copy would be taken any more.
    fn forget(&mut self) {
        let copies = self.highest.saturating_sub(MAX_MISORDER);
        self.arrivals = self.arrivals.split_off(&self.told.0.min(copies));
    }

    fn expected(&self) -> u64 {
        self.highest + 1 - self.base
    }

    pub(super) fn block(&mut self, now: Time) -> ReportBlock {
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

    pub(super) fn summary(&self) -> Received {
        let jitter = u64::from(self.jitter.0 >> 4) * 1_000_000_000 / u64::from(CLOCK_RATE);
        let lost = self.expected().saturating_sub(self.received.packets);
        Received { lost, jitter: Span::from_nanos(jitter as i64), ..self.received }
    }
}
