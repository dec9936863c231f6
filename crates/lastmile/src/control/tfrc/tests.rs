//! The controller: the rate that a data-limited sender keeps, and packets that nobody sent.

use super::*;
use crate::units::Bytes;

fn at(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

fn sending(controller: &mut Tfrc, rounds: core::ops::Range<u64>, per_round: u64, app_limited: bool) {
    for round in rounds {
        let sent: Vec<Sent> = (0..per_round)
            .map(|k| Sent {
                app_limited,
                ..Sent::media(round * per_round + k, Bytes(1000), at(100 * round + k))
            })
            .collect();
        sent.iter().for_each(|sent| controller.on_sent(sent.at, sent));
        let came = |sent: &Sent| Report {
            sent: *sent,
            fate: Fate::arrived((sent.at + Span::from_millis(20)).as_receiver()),
        };
        let mut reports: Vec<Report> = sent.iter().map(came).collect();
        let now = at(100 * round + 60);
        controller.on_feedback(now, &mut Feedback::exact(&mut reports, None));
    }
}

/// Slow start goes to twice what arrives and no further: 10 packets in 100 ms are 800 kbit/s.
#[test]
fn a_data_limited_sender_keeps_twice_what_it_sent() {
    let mut tfrc =
        Tfrc::new(&TfrcConfig::default(), &Setting { packet_size: Bytes(1000), ..Setting::default() });
    sending(&mut tfrc, 0..50, 10, true);
    let limited = tfrc.output().pacing.bits_per_second() as f64;
    assert!((limited / 1_600_000.0 - 1.0).abs() < 0.05, "{limited}");
    // It falls to one packet in a round: the allowed rate stays.
    sending(&mut tfrc, 500..550, 1, true);
    let kept = tfrc.output().pacing.bits_per_second() as f64;
    assert!((kept / limited - 1.0).abs() < 0.01, "{kept} after {limited}");
}

#[test]
fn packets_that_were_never_sent_are_not_believed() {
    let mut tfrc =
        Tfrc::new(&TfrcConfig::default(), &Setting { packet_size: Bytes(1000), ..Setting::default() });
    sending(&mut tfrc, 0..30, 10, false);
    let before = tfrc.output().pacing;
    let forged = |id| Report {
        sent: Sent::media(id, Bytes(60_000), at(2_990)),
        fate: Fate::arrived(Time::from_nanos(9)),
    };
    for round in 0..20 {
        let mut reports: Vec<Report> = (1_000..1_100).map(forged).collect();
        tfrc.on_feedback(at(3_100 + 100 * round), &mut Feedback::exact(&mut reports, None));
    }
    assert!(tfrc.output().pacing <= before, "{} after {before}", tfrc.output().pacing);
}
