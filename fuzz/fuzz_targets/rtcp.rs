//! RTCP datagrams, with congestion control feedback and reports of TFRC's receiver: what was read is written and read again as the same.
#![no_main]

use lastmile::wire::{
    ReportBlock, Rtcp, write_feedback, write_goodbye, write_receiver_report, write_sender_report,
    write_tfrc_report,
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
            Rtcp::Goodbye { ssrc: Some(ssrc) } => write_goodbye(&mut out, ssrc),
            _ => continue,
        }
        let again: Vec<_> = Rtcp::all(&out).collect();
        assert_eq!(again.len(), 1);
        assert_eq!(format!("{:?}", again[0]), format!("{:?}", Ok::<_, ()>(packet)));
    }
});
