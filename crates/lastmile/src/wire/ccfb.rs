//! RTP congestion control feedback (RFC 8888): when each packet arrived, and with which ECN mark.

use super::WireError;
use super::rtcp_packet::{APPLICATION, TRANSPORT_FEEDBACK, packet};
use crate::node::Ecn;
use crate::time::Span;

/// The name of our APP packet (RFC 3550, section 6.7) by which a sender asks for feedback so often, and its bytes.
pub(super) const INTERVAL_NAME: [u8; 4] = *b"CCFB";
const INTERVAL_LEN: usize = 16;
/// The format number of this feedback among those of the transport layer.
pub(super) const FEEDBACK_FORMAT: u8 = 11;
/// Packets that one block may report on (section 3.1).
pub const MAX_REPORTED: usize = 16_384;
/// Bytes around the blocks: header, the reporting source, the report's time.
const AROUND: usize = 12;
/// An arrival that is longer ago than can be written, and one that is not known.
const TOO_LONG_AGO: u16 = 0x1ffe;
const UNKNOWN: u16 = 0x1fff;

/// Report on one packet.
///
/// ```
/// use lastmile::{node::Ecn, time::Span, wire::Reported};
/// let half = Reported::arrived(Ecn::Ce, Some(Span::from_millis(500)));
/// assert_eq!(half.ago, Some(512));
/// assert_eq!(half.before_report(), Some(Span::from_millis(500)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reported {
    /// True if it has arrived.
    pub received: bool,
    /// Its ECN codepoint as it arrived.
    pub ecn: Ecn,
    /// Time from its arrival to the report, in 1/1024 s: 8189 at most, 8190 for longer. `None` if it arrived after the report.
    pub ago: Option<u16>,
}

impl Reported {
    /// A packet that arrived this long before the report; `None` if the time of arrival is unknown.
    pub fn arrived(ecn: Ecn, ago: Option<Span>) -> Reported {
        let units =
            ago.filter(|ago| *ago >= Span::ZERO).map(|ago| i128::from(ago.as_nanos()) * 1024 / 1_000_000_000);
        let ago = units.map(|units| u16::try_from(units).unwrap_or(u16::MAX).min(TOO_LONG_AGO));
        Reported { received: true, ecn, ago }
    }

    /// Time from its arrival to the report, to 1/1024 s; `None` if unknown or beyond 8189/1024 s.
    pub fn before_report(&self) -> Option<Span> {
        let known = self.ago.filter(|ago| *ago < TOO_LONG_AGO);
        known.map(|ago| Span::from_nanos(i64::from(ago) * 1_000_000_000 / 1024))
    }

    fn bits(self) -> u16 {
        match self.received {
            true => 0x8000 | (self.ecn as u16) << 13 | self.ago.unwrap_or(UNKNOWN),
            false => 0,
        }
    }

    fn read(bits: u16) -> Reported {
        match bits & 0x8000 != 0 {
            true => Reported {
                received: true,
                ecn: Ecn::from_bits((bits >> 13) as u8),
                ago: Some(bits & 0x1fff).filter(|ago| *ago != UNKNOWN),
            },
            false => Reported::default(),
        }
    }
}

/// A feedback packet.
///
/// ```
/// use lastmile::{node::Ecn, time::Span, wire::{Reported, Rtcp, write_feedback}};
/// let mut bytes = Vec::new();
/// let told = [Reported::arrived(Ecn::Ect0, Some(Span::ZERO)), Reported::default()];
/// write_feedback(&mut bytes, 1, 7, 65_535, &told, 0x1_0000);
/// let Some(Ok(Rtcp::Feedback(feedback))) = Rtcp::all(&bytes).next() else { panic!() };
/// let block = feedback.blocks().next().unwrap();
/// assert_eq!((block.ssrc, feedback.at()), (7, 0x1_0000));
/// assert_eq!(block.reports().collect::<Vec<_>>(), [(65_535, told[0]), (0, told[1])]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feedback<'a> {
    ssrc: u32,
    at: u32,
    blocks: &'a [u8],
}

/// A feedback packet's reports on one source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedbackBlock<'a> {
    /// The source.
    pub ssrc: u32,
    /// The sequence number of the first packet reported on.
    pub begin: u16,
    metrics: &'a [u8],
}

impl<'a> Feedback<'a> {
    /// Reads a whole packet, whose type and format are right.
    pub(super) fn parse(packet: &'a [u8]) -> Result<Feedback<'a>, WireError> {
        let what = "congestion control feedback";
        let short = |need| WireError::Truncated { what, need, have: packet.len() };
        let head: &[u8; 8] = packet.first_chunk().ok_or_else(|| short(AROUND))?;
        let at: &[u8; 4] = packet[8..].last_chunk().ok_or_else(|| short(AROUND))?;
        let blocks = &packet[8..packet.len() - 4];
        let feedback = Feedback { ssrc: super::be32(head, 4), at: u32::from_be_bytes(*at), blocks };
        // Each block once, so that reading them later cannot fail.
        let mut rest = blocks;
        while !rest.is_empty() {
            let (_, after) = block(rest).ok_or_else(|| short(packet.len() + 4))?;
            rest = after;
        }
        if let Some(block) = feedback.blocks().find(|block| block.metrics.len() / 2 > MAX_REPORTED) {
            let value = (block.metrics.len() / 2) as u64;
            return Err(WireError::Value { what: "the number of reports in a block of feedback", value });
        }
        Ok(feedback)
    }

    /// SSRC of the reporting source.
    pub fn ssrc(&self) -> u32 {
        self.ssrc
    }

    /// The time of the report: the middle 32 bits of an NTP timestamp.
    pub fn at(&self) -> u32 {
        self.at
    }

    /// A block for each source.
    pub fn blocks(&self) -> impl Iterator<Item = FeedbackBlock<'a>> + use<'a> {
        let mut rest = self.blocks;
        core::iter::from_fn(move || {
            let (block, after) = block(rest)?;
            rest = after;
            Some(block)
        })
    }
}

/// The first block of some, and the bytes after it.
fn block(bytes: &[u8]) -> Option<(FeedbackBlock<'_>, &[u8])> {
    let head: &[u8; 8] = bytes.first_chunk()?;
    let reports = usize::from(super::be16(head, 6));
    let metrics = bytes.get(8..8 + 2 * reports)?;
    let after = bytes.get(8 + (2 * reports).next_multiple_of(4)..)?;
    Some((FeedbackBlock { ssrc: super::be32(head, 0), begin: super::be16(head, 4), metrics }, after))
}

impl FeedbackBlock<'_> {
    /// Each packet's sequence number and report.
    pub fn reports(&self) -> impl Iterator<Item = (u16, Reported)> {
        let begin = self.begin;
        let metrics = self.metrics.as_chunks::<2>().0.iter();
        metrics
            .enumerate()
            .map(move |(i, bits)| (begin.wrapping_add(i as u16), Reported::read(u16::from_be_bytes(*bits))))
    }
}

/// Appends feedback on one source: its packets from `begin` on, the first [`MAX_REPORTED`] at most, at a time
/// given as the middle 32 bits of an NTP timestamp.
pub fn write_feedback(out: &mut Vec<u8>, own: u32, ssrc: u32, begin: u16, reports: &[Reported], at: u32) {
    let reports = &reports[..reports.len().min(MAX_REPORTED)];
    packet(out, FEEDBACK_FORMAT, TRANSPORT_FEEDBACK, |out| {
        out.extend(own.to_be_bytes());
        out.extend(ssrc.to_be_bytes());
        out.extend(begin.to_be_bytes());
        out.extend((reports.len() as u16).to_be_bytes());
        reports.iter().for_each(|report| out.extend(report.bits().to_be_bytes()));
        if reports.len() % 2 == 1 {
            out.extend([0, 0]);
        }
        out.extend(at.to_be_bytes());
    });
}

/// A sender asks for feedback so often: RFC 8888 leaves the interval to the ends (section 6), and has no message for it. Ours, in an APP packet.
///
/// ```
/// use lastmile::{time::Span, wire::{FeedbackRequest, Rtcp, write_feedback_request}};
/// let request = FeedbackRequest { source: 7, every: Span::from_millis(25) };
/// let mut bytes = Vec::new();
/// write_feedback_request(&mut bytes, &request);
/// assert_eq!((bytes.len(), Rtcp::all(&bytes).next()), (16, Some(Ok(Rtcp::FeedbackRequest(request)))));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedbackRequest {
    /// The source whose packets are to be told of.
    pub source: u32,
    /// Time between messages, to a microsecond.
    pub every: Span,
}

impl FeedbackRequest {
    /// Reads a whole packet, whose type and name are right.
    pub(super) fn parse(packet: &[u8]) -> Result<FeedbackRequest, WireError> {
        let what = "a request for feedback";
        let short = WireError::Truncated { what, need: INTERVAL_LEN, have: packet.len() };
        let all: &[u8; INTERVAL_LEN] = packet.first_chunk().ok_or(short)?;
        let every = Span::from_micros(i64::from(super::be32(all, 12)));
        Ok(FeedbackRequest { source: super::be32(all, 4), every })
    }
}

/// Appends a request; an interval out of range becomes the nearest that fits.
pub fn write_feedback_request(out: &mut Vec<u8>, request: &FeedbackRequest) {
    packet(out, 0, APPLICATION, |out| {
        out.extend(request.source.to_be_bytes());
        out.extend(INTERVAL_NAME);
        let micros = (request.every.as_nanos() / 1_000).clamp(0, u32::MAX.into()) as u32;
        out.extend(micros.to_be_bytes());
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Rtcp;

    /// Section 3.1 by hand: source 1 reports on source 7 from 3 on, three packets, the second lost.
    const WHOLE: [u8; 32] = [
        0x8b, 205, 0, 7, 0, 0, 0, 1, 0, 0, 0, 7, 0, 3, 0, 3, // header, sources, begin, number
        0xc2, 0x00, 0, 0, 0xff, 0xfe, 0, 0, // ECT(0) half a second ago; lost; CE too long ago; padding
        0, 0, 0, 9, 0, 0, 0, 0, // another source, of which nothing is said
    ];

    #[test]
    fn the_layout_is_that_of_the_rfc() {
        let mut bytes = WHOLE.to_vec();
        bytes.extend([0, 1, 0x80, 0]);
        bytes[3] = 8;
        let Some(Ok(Rtcp::Feedback(feedback))) = Rtcp::all(&bytes).next() else { panic!() };
        let blocks: Vec<_> = feedback.blocks().collect();
        assert_eq!((feedback.ssrc(), feedback.at(), blocks.len()), (1, 0x1_8000, 2));
        let half = Reported { received: true, ecn: Ecn::Ect0, ago: Some(512) };
        let long = Reported::arrived(Ecn::Ce, Some(Span::from_secs(9)));
        assert_eq!((long.ago, long.before_report()), (Some(TOO_LONG_AGO), None));
        let told: Vec<_> = blocks[0].reports().collect();
        assert_eq!(told, [(3, half), (4, Reported::default()), (5, long)]);
        assert_eq!((blocks[1].ssrc, blocks[1].reports().count()), (9, 0));
    }

    #[test]
    fn a_block_beyond_the_packet_is_refused() {
        let mut bytes = WHOLE.to_vec();
        bytes[15] = 200;
        assert!(matches!(Rtcp::all(&bytes).next(), Some(Err(WireError::Truncated { .. }))));
        for len in 4..32 {
            bytes[3] = (len / 4 - 1) as u8;
            let _ = Rtcp::all(&bytes[..len]).count();
        }
    }

    #[test]
    fn an_arrival_that_cannot_be_said_is_not_known() {
        let ago = |span| Reported::arrived(Ecn::NotEct, Some(span)).before_report();
        assert_eq!(ago(Span::from_millis(250)), Some(Span::from_millis(250)));
        assert_eq!(ago(Span::from_secs(8)), None);
        assert_eq!(ago(Span::from_nanos(-1)), None);
        // [3.1] An arrival too long ago is written as such; one after the report is written as unknown.
        let bits = |span| Reported::arrived(Ecn::NotEct, Some(span)).bits();
        assert_eq!(
            (bits(Span::from_secs(8)), bits(Span::from_nanos(-1))),
            (0x8000 | 0x1ffe, 0x8000 | 0x1fff)
        );
        // To the unit below: 8189 of them are the most.
        assert_eq!(ago(Span::from_nanos(7_998_000_000)), Some(Span::from_nanos(7_997_070_312)));
    }
}
