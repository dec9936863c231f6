//! The sending end: when it begins and why it ends.

use super::*;

/// Runs a sender alone to its end; says when it ended, why, and what it had sent.
fn alone(mut sender: Sender) -> (Time, End, Sent) {
    let mut now = Time::ZERO;
    sender.handle(now, Input::Wake);
    loop {
        let (_, decisions, wake) = drain(&mut sender, now);
        for decision in decisions {
            if let Decision::MediaEnded { why, sent } = decision {
                assert!(sender.is_finished());
                return (now, why, sent);
            }
        }
        now = wake.expect("it has not ended");
        sender.handle(now, Input::Wake);
    }
}

#[test]
fn silence_ends_the_sender() {
    let (when, why, sent) = alone(sender(at(60_000)));
    // Fifteen seconds, and a second for what may be on its way.
    assert_eq!((when, why), (at(16_000), End::NoFeedback));
    // 1 Mbit/s for 2 s, then in each second half of what it was in the second before: 2 + 1/2 + ... + 1/256.
    assert!((365_000..=385_000).contains(&sent.bytes.0), "{}", sent.bytes);
    assert_eq!(sent.acknowledged, 0);
    let (when, why, sent) = alone(sender(at(2_000)));
    assert_eq!((when, why), (at(3_000), End::Stop));
    assert_eq!(sent.bytes, Bytes(250_000));
}

/// A player that nobody hears asks for no key frame: one comes each second, until somebody is heard.
#[test]
fn a_player_that_cannot_ask_is_sent_key_frames() {
    let seen = video::Shared::default();
    let sender = video::coding(config(at(4_500)), &seen, 1.0, Span::ZERO);
    assert_eq!(alone(sender).1, End::Stop);
    assert_eq!(seen.lock().unwrap().keys, 4);
}

/// Ten frames a second of 25 packets, each 4 ms behind the one before: what is asked for 3 ms after a frame was made does not wait for all of it.
#[test]
fn a_repeat_does_not_wait_behind_a_frame() {
    let control = ControlConfig::new("fixed(rate=1 Mbit/s)".parse().unwrap());
    let config = SenderConfig {
        frame_rate: 10.0,
        rate: SenderRate::Controlled(control),
        retransmission: Some(Retransmission::within(9, Span::from_millis(400))),
        ..config(at(1_000))
    };
    let mut sender = Sender::new(config).unwrap();
    let (mut now, mut left) = (Time::ZERO, Vec::new());
    sender.handle(now, Input::Wake);
    loop {
        let (packets, _, wake) = drain(&mut sender, now);
        left.extend(packets.into_iter().map(|(at, datagram)| (at, datagram.payload.udp().unwrap().to_vec())));
        let Some(next) = wake.filter(|next| *next < at(203)) else { break };
        now = next;
        sender.handle(now, Input::Wake);
    }
    let media = left.iter().filter(|(_, bytes)| !is_rtcp(bytes)).count();
    // Of the frame at 200 ms only the next 5 ms are handed out.
    assert!((50..=53).contains(&media), "{media}");
    let mut asks = Vec::new();
    write_nack(&mut asks, 8, OURS, &[40]);
    let datagram = Datagram::udp(ends().1, ends().0, asks);
    sender.handle(at(203), Input::Datagram { port: PortId(0), at: at(203), datagram });
    let (packets, ..) = drain(&mut sender, at(203));
    let repeats = |bytes: &[u8]| RtpPacket::parse(bytes).is_ok_and(|packet| packet.header.ssrc == 9);
    let repeat = packets.iter().find(|(_, datagram)| repeats(datagram.payload.udp().unwrap()));
    assert!(repeat.is_some_and(|(due, _)| *due <= at(212)), "{packets:?}");
}

/// Feedback on the packets so far, as a receiver of that number would send it.
fn answered(sender: &mut Sender, now: Time, goodbye: bool) {
    let (own, mut bytes) = (8, Vec::new());
    write_feedback(&mut bytes, own, OURS, 0, &[Reported::arrived(Ecn::Ect0, Some(Span::ZERO))], 0);
    if goodbye {
        write_receiver_report(&mut bytes, own, &[]);
        write_goodbye(&mut bytes, own);
    }
    let datagram = Datagram::udp(ends().1, ends().0, bytes);
    sender.handle(now, Input::Datagram { port: PortId(0), at: now, datagram });
}

#[test]
fn a_closed_port_ends_the_sender_unless_feedback_says_otherwise() {
    let refused = |reason| Input::Failed { port: PortId(0), id: None, reason };
    for (reason, why) in [
        (Failure::PortClosed, End::PortClosed),
        (Failure::Unreachable, End::Unreachable),
        (Failure::TooBig, End::TooBig),
    ] {
        let mut one = sender(at(60_000));
        one.handle(at(0), Input::Wake);
        // A refusal for each packet: old or forged ones would not come again a second later.
        (0..=11).for_each(|tenths| one.handle(at(100 * tenths), refused(reason)));
        let (when, ended, sent) = alone(one);
        assert_eq!((when, ended), (at(2_000), why));
        assert!(sent.bytes < Bytes(130_000), "{}", sent.bytes);
    }
    let mut told_once = sender(at(3_000));
    told_once.handle(at(0), Input::Wake);
    told_once.handle(at(10), refused(Failure::PortClosed));
    assert_eq!(alone(told_once).1, End::Stop);
    let mut answered_after = sender(at(3_000));
    answered_after.handle(at(0), Input::Wake);
    answered_after.handle(at(10), refused(Failure::PortClosed));
    answered(&mut answered_after, at(20), false);
    assert_eq!(alone(answered_after).1, End::Stop);
}

#[test]
fn a_receiver_that_says_goodbye_ends_the_sender() {
    let mut told = sender(at(60_000));
    told.handle(at(0), Input::Wake);
    // A goodbye of a source that was never heard of changes nothing.
    let mut bytes = Vec::new();
    write_goodbye(&mut bytes, 8);
    let datagram = Datagram::udp(ends().1, ends().0, bytes);
    told.handle(at(5), Input::Datagram { port: PortId(0), at: at(5), datagram });
    answered(&mut told, at(10), false);
    drain(&mut told, at(10));
    answered(&mut told, at(100), true);
    let (packets, ..) = drain(&mut told, at(100));
    assert!(packets.iter().any(|(_, datagram)| is_rtcp(datagram.payload.udp().unwrap())));
    told.handle(at(1_100), Input::Wake);
    let (_, decisions, _) = drain(&mut told, at(1_100));
    assert!(matches!(decisions[..], [Decision::MediaEnded { why: End::PeerLeft, .. }]), "{decisions:?}");
}

#[test]
fn no_more_than_the_limit_is_sent_reports_and_goodbye_included() {
    for limit in [0, 200, 100_000, 100_001, 101_234] {
        let config = SenderConfig { max_bytes: Some(Bytes(limit)), ..config(at(60_000)) };
        let mut sender = Sender::new(config).unwrap();
        let (mut now, mut sum) = (Time::ZERO, Bytes::ZERO);
        sender.handle(now, Input::Wake);
        let sent = loop {
            let (packets, decisions, wake) = drain(&mut sender, now);
            sum += packets.iter().map(|(_, datagram)| datagram.ip_size()).sum();
            if let Some(Decision::MediaEnded { why, sent }) = decisions.last() {
                assert_eq!(*why, End::ByteLimit);
                break *sent;
            }
            now = wake.unwrap();
            answered(&mut sender, now, false);
        };
        assert_eq!(sum, sent.bytes + sent.report_bytes);
        // Nothing but a goodbye where not even that would fit.
        assert!(sum.0 <= limit.max(84) && sum.0 + 700 > limit, "{sum} of {limit}");
    }
}

/// A goodbye that overtakes media would have the receiver take what comes after it for another stream.
#[test]
fn a_goodbye_leaves_after_all_media() {
    let mut one = sender(at(985));
    let (mut now, mut all) = (Time::ZERO, Vec::new());
    one.handle(now, Input::Wake);
    while !one.is_finished() {
        let (packets, _, wake) = drain(&mut one, now);
        all.extend(packets.into_iter().map(|(at, datagram)| (at, is_rtcp(datagram.payload.udp().unwrap()))));
        let Some(next) = wake else { break };
        now = next;
        answered(&mut one, now, false);
    }
    let goodbye = all.iter().rfind(|(_, rtcp)| *rtcp).unwrap().0;
    let media = all.iter().rfind(|(_, rtcp)| !*rtcp).unwrap().0;
    // The frame of 980 ms leaves over 20 ms.
    assert_eq!((media, goodbye), (at(996), at(996)));
}

#[test]
fn a_sender_that_was_held_up_for_long_sends_nobody_what_it_missed() {
    let mut sender = sender(at(3_600_000));
    sender.handle(Time::ZERO, Input::Wake);
    drain(&mut sender, Time::ZERO);
    sender.handle(at(1_800_000), Input::Wake);
    let (packets, ..) = drain(&mut sender, at(1_800_000));
    // Its goodbye alone.
    assert_eq!(packets.len(), 1);
}

/// A lab's endpoint is there some milliseconds after the run's start.
#[test]
fn a_sender_that_comes_late_begins_then() {
    let mut sender = sender(at(1_000));
    sender.handle(at(30), Input::Wake);
    let (packets, ..) = drain(&mut sender, at(30));
    // A frame of 2,500 B and a report.
    let media: Vec<_> = packets.iter().filter(|(_, d)| !is_rtcp(d.payload.udp().unwrap())).collect();
    assert_eq!(media.len(), 5);
    assert_eq!((media[0].0, media[4].0), (at(30), at(30 + 16)));
}

/// The highest number of a report is one that was sent: of the first second's 250 packets 249 at most.
#[test]
fn reports_of_packets_that_were_never_sent_are_left_out() {
    let mut told = sender(at(2_000));
    (0..100).for_each(|tick| {
        told.handle(at(10 * tick), Input::Wake);
        drain(&mut told, at(10 * tick));
    });
    for (sent, highest) in [(0, 20_000), (1, 100), (2, 65_636), (3, 101), (4, u32::MAX)] {
        let (mut bytes, now) = (Vec::new(), at(1_000 + sent));
        let block = ReportBlock {
            ssrc: OURS,
            fraction_lost: 0,
            lost: 0,
            highest,
            jitter: 0,
            last_report: 0,
            delay: 0,
        };
        write_receiver_report(&mut bytes, 8, &[block]);
        let datagram = Datagram::udp(ends().1, ends().0, bytes);
        told.handle(now, Input::Datagram { port: PortId(0), at: now, datagram });
        let (_, decisions, _) = drain(&mut told, now);
        let heard = decisions.iter().any(|what| matches!(what, Decision::MediaReported { .. }));
        assert_eq!(heard, highest < 250, "{highest}");
    }
    assert_eq!(alone(told).2.impossible_reports, 3);
}
