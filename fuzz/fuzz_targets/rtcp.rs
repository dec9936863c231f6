//! RTCP datagrams, with congestion control feedback, its requests, reports of TFRC's receiver and names of schemes: what was read is written and read
//! again as the same, and of a name a receiver is made or refused.
#![no_main]

use lastmile::control::{Composition, build_receiver};
use lastmile::wire::{
    ReportBlock, Rtcp, write_feedback, write_feedback_request, write_goodbye, write_nack,
    write_receipt_times, write_receiver_report, write_sender_report, write_tfrc_report, write_tfrc_scheme,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    assert!(Rtcp::all(data).count() <= data.len() / 4 + 1);
    let mut out = Vec::new();
    for packet in Rtcp::all(data).map_while(Result::ok) {
        out.clear();
        match packet {
            Rtcp::Sender { ssrc, info, blocks } => {
                let blocks: Vec<ReportBlock> = blocks.iter().collect();
                write_sender_report(&mut out, ssrc, &info, &blocks);
            }
            Rtcp::Receiver { ssrc, blocks } => {
                let blocks: Vec<ReportBlock> = blocks.iter().collect();
                write_receiver_report(&mut out, ssrc, &blocks);
            }
            Rtcp::Feedback(feedback) => {
                for block in feedback.blocks() {
                    let told: Vec<_> = block.reports().map(|(_, told)| told).collect();
                    out.clear();
                    write_feedback(&mut out, feedback.ssrc(), block.ssrc, block.begin, &told, feedback.at());
                    let Some(Ok(Rtcp::Feedback(again))) = Rtcp::all(&out).next() else {
                        panic!("just written")
                    };
                    assert_eq!((again.ssrc(), again.at()), (feedback.ssrc(), feedback.at()));
                    let one = again.blocks().next().expect("one block was written");
                    assert_eq!((one.ssrc, one.begin), (block.ssrc, block.begin));
                    assert!(one.reports().eq(block.reports()));
                }
                continue;
            }
            Rtcp::Tfrc(report) => {
                assert!((0.0..=1.0).contains(&report.loss_event_rate));
                write_tfrc_report(&mut out, &report);
            }
            Rtcp::TfrcScheme(scheme) => {
                if let Ok(composition) = scheme.name.parse::<Composition>() {
                    let _ = build_receiver(&composition, None);
                }
                write_tfrc_scheme(&mut out, &scheme);
            }
            Rtcp::FeedbackRequest(request) => write_feedback_request(&mut out, &request),
            Rtcp::Nack(nack) => {
                // A mask may name what another word names: as a set they are the same.
                let mut lost: Vec<u16> = nack.lost().collect();
                write_nack(&mut out, nack.sender, nack.ssrc, &lost);
                let Some(Ok(Rtcp::Nack(again))) = Rtcp::all(&out).next() else { panic!("just written") };
                let mut read: Vec<u16> = again.lost().collect();
                assert_eq!((again.sender, again.ssrc), (nack.sender, nack.ssrc));
                [&mut lost, &mut read].into_iter().for_each(|numbers| {
                    numbers.sort_unstable();
                    numbers.dedup();
                });
                assert_eq!(read, lost);
                continue;
            }
            Rtcp::Extended(report) => {
                for block in report.receipt_times() {
                    let times: Vec<(u16, u32)> = block.times().collect();
                    assert!(4 * times.len() <= data.len());
                    out.clear();
                    write_receipt_times(&mut out, report.ssrc(), block.ssrc, &times);
                    let Some(Ok(Rtcp::Extended(again))) = Rtcp::all(&out).next() else {
                        panic!("just written")
                    };
                    let read: Vec<(u16, u32)> =
                        again.receipt_times().flat_map(|block| block.times()).collect();
                    // Thinned times take a block each, of which 64 kB hold no more than this.
                    assert!(read == times || times.len() > 4_000);
                }
                continue;
            }
            Rtcp::Goodbye(sources) if sources.iter().count() == 1 => {
                sources.iter().for_each(|ssrc| write_goodbye(&mut out, ssrc));
            }
            _ => continue,
        }
        let again: Vec<_> = Rtcp::all(&out).collect();
        assert_eq!(again.len(), 1);
        assert_eq!(format!("{:?}", again[0]), format!("{:?}", Ok::<_, ()>(packet)));
    }
});
