//! RTCP packets (RFC 3550, section 6): sender and receiver reports, the source's name, goodbye.
//!
//! A datagram holds several packets one after the other. [`Rtcp::all`] reads them; unknown types come as
//! [`Rtcp::Other`], to be skipped. Congestion control feedback (RFC 8888) is in [`ccfb`](super::Feedback).

use super::WireError;
use super::ccfb::{FEEDBACK_FORMAT, Feedback, FeedbackRequest, INTERVAL_NAME};
use super::extended::{EXTENDED_REPORT, ExtendedReport};
use super::key_frame::{FIR_FORMAT, KeyFrameRequest, PAYLOAD_FEEDBACK, PLI_FORMAT};
use super::nack::{NACK_FORMAT, Nack};
use super::rtcp_packet::{APPLICATION, TRANSPORT_FEEDBACK, packet, split};
use super::tfrc::{NAME, REPORT, SCHEME, TfrcReport, TfrcScheme};

/// Packet types of RFC 3550, section 12.1.
const SENDER_REPORT: u8 = 200;
const RECEIVER_REPORT: u8 = 201;
const DESCRIPTION: u8 = 202;
const GOODBYE: u8 = 203;
/// The item of a source description that is the source's canonical name.
const CNAME: u8 = 1;
/// Bytes of one report block.
const BLOCK_LEN: usize = 24;

/// A sender's report on its own packets (section 6.4.1).
///
/// ```
/// use lastmile::wire::{Rtcp, SenderInfo, write_sender_report};
/// let (info, mut report) = (SenderInfo { packets: 10, bytes: 12_000, ..SenderInfo::default() }, vec![]);
/// write_sender_report(&mut report, 7, &info, &[]);
/// let read = Rtcp::all(&report).next();
/// assert!(matches!(read, Some(Ok(Rtcp::Sender { ssrc: 7, info: found, .. })) if found == info));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderInfo {
    /// Wall time as a 64-bit NTP timestamp.
    pub ntp: u64,
    /// The same moment on the media's clock.
    pub rtp: u32,
    /// Packets sent so far, modulo 2^32.
    pub packets: u32,
    /// Bytes of payload sent so far, modulo 2^32.
    pub bytes: u32,
}

/// A receiver's report on one source (section 6.4.1).
///
/// ```
/// use lastmile::wire::{ReportBlock, Rtcp, write_receiver_report};
/// // A packet came twice, and none was lost.
/// let (block, mut report) = (ReportBlock { ssrc: 7, lost: -1, ..ReportBlock::default() }, vec![]);
/// write_receiver_report(&mut report, 9, &[block]);
/// let Some(Ok(Rtcp::Receiver { ssrc: 9, blocks })) = Rtcp::all(&report).next() else { panic!() };
/// assert_eq!(blocks.iter().collect::<Vec<_>>(), [block]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReportBlock {
    /// The source.
    pub ssrc: u32,
    /// Share of packets lost since the last report, in 256ths.
    pub fraction_lost: u8,
    /// Packets lost since the beginning, 24 bits with a sign: duplicates make it less.
    pub lost: i32,
    /// The highest sequence number received, with the count of its cycles above.
    pub highest: u32,
    /// Interarrival jitter in units of the media's clock.
    pub jitter: u32,
    /// The middle 32 bits of the NTP timestamp of the last sender report; zero if there was none.
    pub last_report: u32,
    /// Time since that report came, in units of 2^-16 s.
    pub delay: u32,
}

/// One packet of RTCP.
///
/// ```
/// use lastmile::wire::Rtcp;
/// let bytes = [0x81, 203, 0, 1, 0, 0, 0, 7]; // goodbye of source 7
/// let all: Vec<_> = Rtcp::all(&bytes).collect();
/// assert!(matches!(all[..], [Ok(Rtcp::Goodbye(sources))] if sources.iter().eq([7])));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Rtcp<'a> {
    /// A sender report.
    Sender {
        /// SSRC of the reporting source.
        ssrc: u32,
        /// Report on the packets that it sent.
        info: SenderInfo,
        /// Reports on the sources that it receives.
        blocks: ReportBlocks<'a>,
    },
    /// A receiver report.
    Receiver {
        /// SSRC of the reporting source.
        ssrc: u32,
        /// Reports on the sources that it receives.
        blocks: ReportBlocks<'a>,
    },
    /// Congestion control feedback (RFC 8888).
    Feedback(Feedback<'a>),
    /// Lost packets that are asked for again (RFC 4585).
    Nack(Nack<'a>),
    /// A picture that needs none before it is asked for (RFC 4585, RFC 5104).
    KeyFrame(KeyFrameRequest<'a>),
    /// An extended report (RFC 3611).
    Extended(ExtendedReport<'a>),
    /// A report of TFRC's receiver: ours, in an APP packet.
    Tfrc(TfrcReport),
    /// The scheme by which losses are to be counted: ours as well.
    TfrcScheme(TfrcScheme<'a>),
    /// Time between feedback messages that a sender asks for: ours as well.
    FeedbackRequest(FeedbackRequest),
    /// These sources leave.
    Goodbye(Sources<'a>),
    /// Another type of packet.
    Other {
        /// Its type.
        kind: u8,
    },
}

/// The numbers of sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sources<'a>(&'a [u8]);

impl Sources<'_> {
    /// The numbers in their order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.as_chunks().0.iter().map(|source| u32::from_be_bytes(*source))
    }
}

/// The report blocks of a sender or receiver report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportBlocks<'a>(&'a [u8]);

impl ReportBlocks<'_> {
    /// The blocks in their order.
    pub fn iter(&self) -> impl Iterator<Item = ReportBlock> {
        self.0.as_chunks::<BLOCK_LEN>().0.iter().map(|block| {
            let word = |at| super::be32(block, at);
            ReportBlock {
                ssrc: word(0),
                fraction_lost: block[4],
                // Its low 24 bits, whose sign is the highest of them.
                lost: (word(4) << 8) as i32 >> 8,
                highest: word(8),
                jitter: word(12),
                last_report: word(16),
                delay: word(20),
            }
        })
    }
}

impl<'a> Rtcp<'a> {
    /// The packets of a datagram. After an error nothing follows.
    pub fn all(datagram: &'a [u8]) -> impl Iterator<Item = Result<Rtcp<'a>, WireError>> {
        let mut rest = datagram;
        core::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let (packet, after) = match split(rest) {
                Ok(split) => split,
                Err(error) => {
                    rest = &[];
                    return Some(Err(error));
                }
            };
            let read = Rtcp::parse(packet);
            rest = if read.is_ok() { after } else { &[] };
            Some(read)
        })
    }

    /// One packet, whose length is right.
    fn parse(packet: &'a [u8]) -> Result<Rtcp<'a>, WireError> {
        let (count, kind) = (usize::from(packet[0] & 0x1f), packet[1]);
        let need = |need: usize, what| match packet.len() >= need {
            true => Ok(()),
            false => Err(WireError::Truncated { what, need, have: packet.len() }),
        };
        let word =
            |at: usize| u32::from_be_bytes([packet[at], packet[at + 1], packet[at + 2], packet[at + 3]]);
        let blocks = |at: usize| ReportBlocks(&packet[at..at + count * BLOCK_LEN]);
        Ok(match kind {
            SENDER_REPORT => {
                need(28 + count * BLOCK_LEN, "a sender report")?;
                let ntp = u64::from(word(8)) << 32 | u64::from(word(12));
                let info = SenderInfo { ntp, rtp: word(16), packets: word(20), bytes: word(24) };
                Rtcp::Sender { ssrc: word(4), info, blocks: blocks(28) }
            }
            RECEIVER_REPORT => {
                need(8 + count * BLOCK_LEN, "a receiver report")?;
                Rtcp::Receiver { ssrc: word(4), blocks: blocks(8) }
            }
            GOODBYE => {
                need(4 + 4 * count, "a goodbye")?;
                Rtcp::Goodbye(Sources(&packet[4..4 + 4 * count]))
            }
            TRANSPORT_FEEDBACK if count == usize::from(FEEDBACK_FORMAT) => {
                Rtcp::Feedback(Feedback::parse(packet)?)
            }
            TRANSPORT_FEEDBACK if count == usize::from(NACK_FORMAT) => Rtcp::Nack(Nack::parse(packet)?),
            PAYLOAD_FEEDBACK if [PLI_FORMAT, FIR_FORMAT].map(usize::from).contains(&count) => {
                Rtcp::KeyFrame(KeyFrameRequest::parse(packet)?)
            }
            EXTENDED_REPORT => Rtcp::Extended(ExtendedReport::parse(packet)?),
            APPLICATION if packet.get(8..12) == Some(&NAME) && count == usize::from(REPORT) => {
                Rtcp::Tfrc(TfrcReport::parse(packet)?)
            }
            APPLICATION if packet.get(8..12) == Some(&NAME) && count == usize::from(SCHEME) => {
                Rtcp::TfrcScheme(TfrcScheme::parse(packet)?)
            }
            APPLICATION if packet.get(8..12) == Some(&INTERVAL_NAME) && count == 0 => {
                Rtcp::FeedbackRequest(FeedbackRequest::parse(packet)?)
            }
            kind => Rtcp::Other { kind },
        })
    }
}

fn put_block(out: &mut Vec<u8>, block: &ReportBlock) {
    out.extend(block.ssrc.to_be_bytes());
    let lost = block.lost.clamp(-0x80_0000, 0x7f_ffff) as u32 & 0xff_ffff;
    out.extend((u32::from(block.fraction_lost) << 24 | lost).to_be_bytes());
    for word in [block.highest, block.jitter, block.last_report, block.delay] {
        out.extend(word.to_be_bytes());
    }
}

/// Appends a sender report; of its blocks, the first 31.
pub fn write_sender_report(out: &mut Vec<u8>, ssrc: u32, info: &SenderInfo, blocks: &[ReportBlock]) {
    let blocks = &blocks[..blocks.len().min(31)];
    packet(out, blocks.len() as u8, SENDER_REPORT, |out| {
        out.extend(ssrc.to_be_bytes());
        out.extend(info.ntp.to_be_bytes());
        for word in [info.rtp, info.packets, info.bytes] {
            out.extend(word.to_be_bytes());
        }
        blocks.iter().for_each(|block| put_block(out, block));
    });
}

/// Appends a receiver report; of its blocks, the first 31.
pub fn write_receiver_report(out: &mut Vec<u8>, ssrc: u32, blocks: &[ReportBlock]) {
    let blocks = &blocks[..blocks.len().min(31)];
    packet(out, blocks.len() as u8, RECEIVER_REPORT, |out| {
        out.extend(ssrc.to_be_bytes());
        blocks.iter().for_each(|block| put_block(out, block));
    });
}

/// Appends the canonical name of a source (section 6.5.1), of at most 255 bytes, without which no report is complete.
pub fn write_name(out: &mut Vec<u8>, ssrc: u32, name: &str) {
    let name = &name.as_bytes()[..name.len().min(255)];
    packet(out, 1, DESCRIPTION, |out| {
        out.extend(ssrc.to_be_bytes());
        out.extend([CNAME, name.len() as u8]);
        out.extend(name);
        // At least one zero ends the list of items.
        out.push(0);
    });
}

/// Appends a goodbye.
pub fn write_goodbye(out: &mut Vec<u8>, ssrc: u32) {
    packet(out, 1, GOODBYE, |out| out.extend(ssrc.to_be_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: ReportBlock = ReportBlock {
        ssrc: 7,
        fraction_lost: 64,
        lost: -3,
        highest: 0x0002_fffe,
        jitter: 90,
        last_report: 0x1234_5678,
        delay: 0x8000,
    };

    #[test]
    fn what_is_written_is_read_back() {
        let info = SenderInfo { ntp: 0xe000_0000_8000_0000, rtp: 9, packets: 10, bytes: 11 };
        let mut bytes = Vec::new();
        write_sender_report(&mut bytes, 7, &info, &[]);
        write_name(&mut bytes, 7, "a@b");
        write_receiver_report(&mut bytes, 8, &[BLOCK, BLOCK]);
        write_goodbye(&mut bytes, 7);
        assert_eq!(bytes.len() % 4, 0);
        let all: Vec<_> = Rtcp::all(&bytes).collect::<Result<_, _>>().unwrap();
        assert!(matches!(all[0], Rtcp::Sender { ssrc: 7, info: read, .. } if read == info));
        assert_eq!(all[1], Rtcp::Other { kind: DESCRIPTION });
        let Rtcp::Receiver { ssrc: 8, blocks } = all[2] else { panic!("{all:?}") };
        assert_eq!(blocks.iter().collect::<Vec<_>>(), [BLOCK, BLOCK]);
        assert!(matches!(all[3], Rtcp::Goodbye(sources) if sources.iter().eq([7])));
    }

    #[test]
    fn a_datagram_cut_anywhere_gives_what_is_whole_and_one_error() {
        let mut bytes = Vec::new();
        write_receiver_report(&mut bytes, 8, &[BLOCK]);
        write_goodbye(&mut bytes, 7);
        for len in 1..bytes.len() {
            let read: Vec<_> = Rtcp::all(&bytes[..len]).collect();
            let whole = usize::from(len >= 32);
            assert_eq!(read.iter().filter(|read| read.is_ok()).count(), whole, "{len}");
            assert_eq!(read.iter().filter(|read| read.is_err()).count(), usize::from(len != 32), "{len}");
        }
    }

    #[test]
    fn a_count_beyond_the_packet_is_refused() {
        let mut bytes = Vec::new();
        write_receiver_report(&mut bytes, 8, &[BLOCK]);
        bytes[0] |= 2;
        assert!(matches!(Rtcp::all(&bytes).next(), Some(Err(WireError::Truncated { need: 80, .. }))));
    }
}
