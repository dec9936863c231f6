//! lastmile's RTCP against that of `rtc-rtcp`: sender and receiver reports, names, goodbyes (RFC 3550), NACKs
//! (RFC 4585), times of receipt (RFC 3611) and congestion control feedback (RFC 8888). Each reads what the other wrote.
//!
//! Exits with 1 and the first difference. No sockets.

use anyhow::{Context as _, Result, ensure};
use lastmile::node::Ecn;
use lastmile::time::Span;
use lastmile::wire::{
    ReportBlock, Reported, Rtcp, SenderInfo, write_feedback, write_goodbye, write_nack, write_name,
    write_receipt_times, write_receiver_report, write_sender_report,
};
use rtc_rtcp::Packet;
use rtc_rtcp::extended_report::ExtendedReport;
use rtc_rtcp::extended_report::prt::PacketReceiptTimesReportBlock;
use rtc_rtcp::goodbye::Goodbye;
use rtc_rtcp::packet::{marshal, unmarshal};
use rtc_rtcp::receiver_report::ReceiverReport;
use rtc_rtcp::reception_report::ReceptionReport;
use rtc_rtcp::sender_report::SenderReport;
use rtc_rtcp::source_description::{
    SdesType, SourceDescription, SourceDescriptionChunk, SourceDescriptionItem,
};
use rtc_rtcp::transport_feedbacks::cc_feedback_report::{
    CcFeedbackMetricBlock, CcFeedbackReport, CcFeedbackReportBlock, Ecn as TheirEcn,
};
use rtc_rtcp::transport_feedbacks::transport_layer_nack::{NackPair, TransportLayerNack};

const INFO: SenderInfo =
    SenderInfo { ntp: 0xe123_4567_89ab_cdef, rtp: 0xfedc_ba98, packets: 70_000, bytes: 80_000_000 };
const NAME: &str = "lastmile";

fn blocks() -> [ReportBlock; 2] {
    let one = ReportBlock {
        ssrc: 0xdead_beef,
        fraction_lost: 63,
        lost: 4_660,
        highest: 0x0003_fffe,
        jitter: 91,
        last_report: 0x4567_89ab,
        delay: 0x0001_8000,
    };
    // More copies than losses.
    [one, ReportBlock { ssrc: 9, lost: -3, ..one }]
}

/// The same block in their words, who keep the 24 bits without their sign.
fn theirs(block: &ReportBlock) -> ReceptionReport {
    ReceptionReport {
        ssrc: block.ssrc,
        fraction_lost: block.fraction_lost,
        total_lost: block.lost as u32 & 0x00ff_ffff,
        last_sequence_number: block.highest,
        jitter: block.jitter,
        last_sender_report: block.last_report,
        delay: block.delay,
    }
}

/// Every kind of report on a packet: lost, each codepoint, times that are near, far and not known.
fn told() -> Vec<Reported> {
    let ago = [Some(0), Some(1), Some(512), Some(0x1ffd), None];
    let codes = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];
    let arrived = ago.into_iter().flat_map(|ago| codes.map(|ecn| Reported { received: true, ecn, ago }));
    [Reported::default()].into_iter().chain(arrived).collect()
}

fn their_metric(told: &Reported) -> CcFeedbackMetricBlock {
    let ecn = match told.ecn {
        Ecn::NotEct => TheirEcn::NotEct,
        Ecn::Ect1 => TheirEcn::Ect1,
        Ecn::Ect0 => TheirEcn::Ect0,
        Ecn::Ce => TheirEcn::Ce,
    };
    let unknown = if told.received { 0x1fff } else { 0 };
    CcFeedbackMetricBlock { received: told.received, ecn, arrival_time_offset: told.ago.unwrap_or(unknown) }
}

fn their_feedback(block: CcFeedbackReportBlock) -> CcFeedbackReport {
    CcFeedbackReport { sender_ssrc: 8, report_blocks: vec![block], report_timestamp: 0x89ab_cdef }
}

fn names(ssrc: u32) -> SourceDescription {
    let item = SourceDescriptionItem { sdes_type: SdesType::SdesCname, text: NAME.into() };
    SourceDescription { chunks: vec![SourceDescriptionChunk { source: ssrc, items: vec![item] }] }
}

fn sender_report() -> SenderReport {
    SenderReport {
        ssrc: 7,
        ntp_time: INFO.ntp,
        rtp_time: INFO.rtp,
        packet_count: INFO.packets,
        octet_count: INFO.bytes,
        reports: blocks().iter().map(theirs).collect(),
        ..SenderReport::default()
    }
}

fn receiver_report() -> ReceiverReport {
    ReceiverReport { ssrc: 8, reports: blocks().iter().map(theirs).collect(), ..ReceiverReport::default() }
}

/// Times of receipt in their words: of 65,535 and 0 in one block, of 2 in another.
fn their_times(times: &[(u16, u32); 3]) -> ExtendedReport {
    let block = |begin_seq, end_seq, times: &[(u16, u32)]| -> Box<dyn Packet> {
        let receipt_time = times.iter().map(|(_, time)| *time).collect();
        Box::new(PacketReceiptTimesReportBlock { t: 0, ssrc: 7, begin_seq, end_seq, receipt_time })
    };
    ExtendedReport { sender_ssrc: 8, reports: vec![block(65_535, 1, &times[..2]), block(2, 3, &times[2..])] }
}

/// One of each packet as we write them, and what they should be in their words.
fn ours() -> Vec<(&'static str, Vec<u8>, Box<dyn Packet>)> {
    let mut all: Vec<(&str, Vec<u8>, Box<dyn Packet>)> = Vec::new();
    let mut add = |what, write: &dyn Fn(&mut Vec<u8>), packet| {
        let mut bytes = Vec::new();
        write(&mut bytes);
        all.push((what, bytes, packet));
    };
    add("SR", &|out| write_sender_report(out, 7, &INFO, &blocks()), Box::new(sender_report()));
    add("RR", &|out| write_receiver_report(out, 8, &blocks()), Box::new(receiver_report()));
    add("SDES", &|out| write_name(out, 7, NAME), Box::new(names(7)));
    let leaves = Goodbye { sources: vec![7], ..Goodbye::default() };
    add("BYE", &|out| write_goodbye(out, 7), Box::new(leaves));
    let lost = [65_530, 65_531, 10, 40, 41];
    // 10 is the 16th after 65,530.
    let pairs =
        [(65_530, 0x8001), (40, 1)].map(|(packet_id, lost_packets)| NackPair { packet_id, lost_packets });
    let nack = TransportLayerNack { sender_ssrc: 8, media_ssrc: 7, nacks: pairs.into() };
    add("NACK", &|out| write_nack(out, 8, 7, &lost), Box::new(nack));
    let times = [(65_535, 1), (0, 90_000), (2, u32::MAX)];
    add("XR", &|out| write_receipt_times(out, 8, 7, &times), Box::new(their_times(&times)));
    // Even and odd numbers of packets, from a number that wraps.
    for many in [0, 1, 2, told().len()] {
        let told = told()[..many].to_vec();
        let block = CcFeedbackReportBlock {
            media_ssrc: 7,
            begin_sequence: 65_530,
            metric_blocks: told.iter().map(their_metric).collect(),
        };
        let write = |out: &mut Vec<u8>| write_feedback(out, 8, 7, 65_530, &told, 0x89ab_cdef);
        add("CCFB", &write, Box::new(their_feedback(block)));
    }
    all
}

/// They read what we wrote as what we meant, and write the same bytes for it.
fn they_read_ours() -> Result<()> {
    let mut datagram = Vec::new();
    let mut whole = Vec::new();
    for (what, bytes, expected) in ours() {
        let read = unmarshal(&mut bytes.as_slice()).with_context(|| format!("our {what}"))?;
        ensure!(read.len() == 1 && read[0].equal(&*expected), "our {what}: {read:?}, not {expected:?}");
        // They end the fill of a name with its length, where RFC 3550, 6.5 has zeros, and write a reason of no letters.
        if !["SDES", "BYE"].contains(&what) {
            let theirs = marshal(&[expected.clone()])?;
            ensure!(theirs == bytes, "{what}: theirs {theirs:02x?}, ours {bytes:02x?}");
        }
        datagram.extend(bytes);
        whole.push(expected);
    }
    ensure!(unmarshal(&mut datagram.as_slice())? == whole, "all in one datagram");
    Ok(())
}

/// We read what they wrote, also what we never write: several sources in a goodbye, its reason, several blocks of feedback.
fn we_read_theirs() -> Result<()> {
    let block = |ssrc, many: usize| CcFeedbackReportBlock {
        media_ssrc: ssrc,
        begin_sequence: 65_534,
        metric_blocks: told()[..many].iter().map(their_metric).collect(),
    };
    let mut feedback = their_feedback(block(7, 21));
    feedback.report_blocks.extend([block(9, 4), block(10, 0), block(11, 1)]);
    let bytes = marshal(&[
        Box::new(sender_report()),
        Box::new(receiver_report()),
        Box::new(names(7)),
        Box::new(feedback),
        Box::new(Goodbye { sources: vec![7, 9], reason: "done".into() }),
    ])?;
    let read: Vec<Rtcp<'_>> = Rtcp::all(&bytes).collect::<Result<_, _>>()?;
    ensure!(read.len() == 5, "{read:?}");
    let Rtcp::Sender { ssrc: 7, info: INFO, blocks: told_of } = read[0] else {
        anyhow::bail!("their SR: {:?}", read[0]);
    };
    ensure!(told_of.iter().eq(blocks()), "blocks of their SR");
    let Rtcp::Receiver { ssrc: 8, blocks: told_of } = read[1] else {
        anyhow::bail!("their RR: {:?}", read[1]);
    };
    ensure!(told_of.iter().eq(blocks()), "blocks of their RR");
    let Rtcp::Feedback(feedback) = read[3] else { anyhow::bail!("their CCFB: {:?}", read[3]) };
    ensure!((feedback.ssrc(), feedback.at()) == (8, 0x89ab_cdef), "{feedback:?}");
    let sources: Vec<(u32, usize)> =
        feedback.blocks().map(|block| (block.ssrc, block.reports().count())).collect();
    ensure!(sources == [(7, 21), (9, 4), (10, 0), (11, 1)], "{sources:?}");
    for block in feedback.blocks() {
        for (i, (number, one)) in block.reports().enumerate() {
            ensure!(number == 65_534_u16.wrapping_add(i as u16) && one == told()[i], "{number}: {one:?}");
        }
    }
    let Rtcp::Goodbye(leaving) = read[4] else { anyhow::bail!("their BYE: {:?}", read[4]) };
    ensure!(leaving.iter().eq([7, 9]), "their BYE: {leaving:?}");
    // Half a second, in seconds.
    let half = Reported { received: true, ecn: Ecn::Ce, ago: Some(512) }.before_report();
    ensure!(half == Some(Span::from_millis(500)), "{half:?}");
    Ok(())
}

/// Both refuse the same cuts, and the same of all packets in which one bit has another value, but for the contents
/// of names, which we skip, and of extended reports.
fn both_refuse_the_same() -> Result<usize> {
    let mut tried = 0;
    let mut compare = |what: &str, how: String, bytes: &[u8]| {
        tried += 1;
        let ours = Rtcp::all(bytes).all(|read| read.is_ok());
        let theirs = unmarshal(&mut &*bytes).is_ok();
        // They take times of receipt that are more or fewer than their numbers.
        let skipped = ["SDES", "XR"].contains(&what);
        ensure!(ours == theirs || skipped, "{what}, {how}: ours {ours}, theirs {theirs}");
        Ok(())
    };
    for (what, bytes, _) in ours() {
        for cut in 1..bytes.len() {
            compare(what, format!("cut at {cut}"), &bytes[..cut])?;
        }
        // Not the type and format: what another one means, we may not read at all.
        for at in 2..bytes.len() {
            for flip in [0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80] {
                let mut bytes = bytes.clone();
                bytes[at] ^= flip;
                compare(what, format!("byte {at} is {:#04x}", bytes[at]), &bytes)?;
            }
        }
    }
    Ok(tried)
}

fn main() -> Result<()> {
    they_read_ours()?;
    println!(
        "rtc-rtcp 0.21.1 reads our SR, RR, SDES, BYE, NACK, XR and CCFB, and writes the same bytes for all but SDES and BYE"
    );
    we_read_theirs()?;
    println!("we read SR, RR, SDES, BYE and CCFB of rtc-rtcp 0.21.1");
    println!("both refuse the same of {} broken packets", both_refuse_the_same()?);
    Ok(())
}
