//! Media streams: a sender and a receiver of RTP on a made-up path, and whatever bytes come instead.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use lastmile::endpoint::Endpoint;
use lastmile::endpoint::stream::{
    Decision, End, Left, Received, Receiver, ReceiverConfig, Retransmission, Sender, SenderConfig, Sent,
    SourceConfig,
};
use lastmile::node::{Datagram, Ecn, Failure, Input, Node, Output, PortId};
use lastmile::options::Choice;
use lastmile::time::{Epoch, Span, Time};
use lastmile::units::{Bytes, Rate};
use lastmile::wire::{
    ReportBlock, Reported, Rtcp, RtpHeader, RtpPacket, SendTime, SenderInfo, is_rtcp, write_feedback,
    write_goodbye, write_nack, write_name, write_receipt_times, write_receiver_report, write_sender_report,
};
use proptest::prelude::*;

const EPOCH: Epoch = Epoch::from_unix_nanos(1_700_000_000_000_000_000);
const OURS: u32 = 7;

fn ends() -> (SocketAddr, SocketAddr) {
    ("10.0.0.1:42000".parse().unwrap(), "10.0.0.2:5004".parse().unwrap())
}

fn at(millis: i64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

fn sender(stop: Time) -> Sender {
    Sender::new(config(stop)).unwrap()
}

fn config(stop: Time) -> SenderConfig {
    SenderConfig {
        frame_rate: 50.0,
        packet_size: Bytes(500),
        ecn: Ecn::Ect0,
        stop,
        epoch: EPOCH,
        ..SenderConfig::new(ends().1, OURS, Rate::ip(1_000_000))
    }
}

fn receiver() -> Receiver {
    Receiver::new(ReceiverConfig { epoch: EPOCH, ..ReceiverConfig::new(8) }).unwrap()
}

/// What a node wants by now: its packets, its decisions, and when it is to be woken.
fn drain(
    node: &mut impl Node<Event = Decision>,
    now: Time,
) -> (Vec<(Time, Datagram)>, Vec<Decision>, Option<Time>) {
    let (mut packets, mut decisions) = (Vec::new(), Vec::new());
    for _ in 0..100_000 {
        match node.poll(now) {
            Output::Transmit(transmit) => packets.push((transmit.at.max(now), transmit.datagram)),
            Output::Event(decision) => decisions.push(decision),
            Output::Wait(until) => return (packets, decisions, until),
        }
    }
    panic!("a node that never waits");
}

/// A packet of a source at `from`, of `size` bytes of payload.
fn rtp(from: SocketAddr, sequence: u16, size: usize, ecn: Ecn) -> Datagram {
    let header = RtpHeader { marker: false, payload_type: 96, sequence, timestamp: 0, ssrc: OURS };
    let mut bytes = Vec::new();
    header.write(&mut bytes);
    bytes.resize(bytes.len() + size, 0);
    Datagram { ecn, ..Datagram::udp(from, ends().1, bytes) }
}

/// A receiver with what it said so far.
struct Heard {
    receiver: Receiver,
    packets: Vec<Datagram>,
    decisions: Vec<Decision>,
    bytes_in: Bytes,
}

impl Heard {
    fn new() -> Heard {
        Heard { receiver: receiver(), packets: Vec::new(), decisions: Vec::new(), bytes_in: Bytes::ZERO }
    }

    fn input(&mut self, now: Time, input: Input) {
        if let Input::Datagram { datagram, .. } = &input {
            self.bytes_in += datagram.ip_size();
        }
        self.receiver.handle(now, input);
        let (packets, decisions, _) = drain(&mut self.receiver, now);
        self.packets.extend(packets.into_iter().map(|(_, datagram)| datagram));
        self.decisions.extend(decisions);
    }

    fn hears(&mut self, now: Time, datagram: Datagram) {
        self.input(now, Input::Datagram { port: PortId(0), at: now, datagram });
    }

    fn media(&mut self, now: Time, sequence: u16) {
        self.hears(now, rtp(ends().0, sequence, 400, Ecn::Ect0));
    }

    fn bytes_out(&self) -> Bytes {
        self.packets.iter().map(Datagram::ip_size).fold(Bytes::ZERO, |sum, size| sum + size)
    }

    /// What feedback said, of each packet the last word.
    fn told(&self) -> BTreeMap<u16, Reported> {
        let mut told = BTreeMap::new();
        for datagram in &self.packets {
            for packet in Rtcp::all(datagram.payload.udp().unwrap()).flatten() {
                if let Rtcp::Feedback(feedback) = packet {
                    let blocks: Vec<_> = feedback.blocks().collect();
                    told.extend(blocks.iter().flat_map(|block| block.reports().collect::<Vec<_>>()));
                }
            }
        }
        told
    }

    /// Ends the run, and says what was received of the only source.
    fn received(mut self, now: Time) -> Option<Received> {
        self.input(now, Input::Interrupted);
        self.decisions.iter().find_map(|decision| match decision {
            Decision::SourceLeft { received, .. } => Some(*received),
            _ => None,
        })
    }
}

#[test]
fn numbers_wrap_and_what_was_sent_is_what_is_told() {
    let mut heard = Heard::new();
    for step in 0..2_000_u16 {
        heard.media(at(i64::from(step)), 65_000_u16.wrapping_add(step));
    }
    let told = heard.told();
    assert!(told.values().all(|told| told.received && told.ecn == Ecn::Ect0));
    // Feedback goes every 50 ms: of 2 s all but what came after the last.
    assert!((1_940..=2_000).contains(&told.len()), "{}", told.len());
    let received = heard.received(at(2_000)).unwrap();
    assert_eq!((received.packets, received.lost, received.out_of_order), (2_000, 0, 0));
}

#[test]
fn a_copy_is_no_new_packet_however_late_it_comes() {
    let mut heard = Heard::new();
    // Number 10 comes again after 60 more packets; feedback has told of it twice by then.
    for step in 0..200_u16 {
        heard.media(at(10 * i64::from(step)), step);
        if step >= 60 {
            heard.media(at(10 * i64::from(step)), step - 60);
        }
    }
    let received = heard.received(at(2_000)).unwrap();
    let expected = (200, 140, 0, 0);
    assert_eq!((received.packets, received.duplicates, received.lost, received.out_of_order), expected);
}

#[test]
fn reordering_is_counted_and_heals_what_was_missing() {
    let mut heard = Heard::new();
    // Each pair comes the other way round, but for the first, which makes the source known.
    let mut order: Vec<u16> = (0..100).collect();
    order[2..].chunks_exact_mut(2).for_each(|pair| pair.swap(0, 1));
    for (step, number) in order.into_iter().enumerate() {
        heard.media(at(step as i64), number);
    }
    let received = heard.received(at(100)).unwrap();
    assert_eq!((received.packets, received.lost, received.out_of_order), (100, 0, 49));
}

#[test]
fn an_outage_of_any_length_is_loss() {
    let mut heard = Heard::new();
    (0..10).for_each(|step| heard.media(at(step), step as u16));
    // 10,000 packets are gone: the first of the others is not believed alone.
    (0..10).for_each(|step| heard.media(at(500 + step), 10_010 + step as u16));
    let received = heard.received(at(600)).unwrap();
    assert_eq!((received.packets, received.lost), (19, 10_001));
    // One packet that far ahead is noise.
    let mut heard = Heard::new();
    for step in 0..10 {
        heard.media(at(step), step as u16);
        heard.media(at(step), 20_000 + 7 * step as u16);
    }
    let received = heard.received(at(600)).unwrap();
    assert_eq!((received.packets, received.lost), (10, 0));
}

#[test]
fn a_mark_on_any_copy_counts_once() {
    let mut heard = Heard::new();
    for (step, ecn) in [Ecn::Ect0, Ecn::Ce, Ecn::Ect0, Ecn::Ect0].into_iter().enumerate() {
        heard.hears(at(step as i64), rtp(ends().0, step as u16, 400, ecn));
    }
    for ecn in [Ecn::Ce, Ecn::Ce, Ecn::Ect0] {
        heard.hears(at(10), rtp(ends().0, 2, 400, ecn));
    }
    heard.input(at(60), Input::Wake);
    let told = heard.told();
    let marks: Vec<u16> =
        told.iter().filter(|(_, told)| told.ecn == Ecn::Ce).map(|(&number, _)| number).collect();
    assert_eq!(marks, [1, 2]);
    assert_eq!(heard.received(at(100)).unwrap().marked, 2);
}

#[test]
fn a_source_that_is_not_proven_gets_nothing() {
    let (from, _) = ends();
    // One packet and a goodbye; packets that are not in sequence; reports alone.
    let mut heard = Heard::new();
    heard.media(at(0), 5);
    let mut bytes = Vec::new();
    write_goodbye(&mut bytes, OURS);
    heard.hears(at(1), Datagram::udp(from, ends().1, bytes));
    (0..20).for_each(|step| heard.media(at(10 + 10 * step), 900 * step as u16));
    heard.input(at(1_000), Input::Wake);
    assert!(heard.packets.is_empty() && heard.decisions.is_empty());
}

#[test]
fn many_reports_in_one_datagram_pay_once() {
    let (from, _) = ends();
    let mut heard = Heard::new();
    // Fifty reports in one datagram, then packets that are smaller than the feedback on them.
    for step in 0..400_u16 {
        let now = at(100 * i64::from(step));
        heard.hears(now, rtp(from, step, 0, Ecn::NotEct));
        if step == 2 {
            let mut bytes = Vec::new();
            (0..50).for_each(|_| write_sender_report(&mut bytes, OURS, &SenderInfo::default(), &[]));
            heard.hears(now, Datagram::udp(from, ends().1, bytes));
        }
        heard.input(now + Span::from_millis(60), Input::Wake);
        assert!(heard.bytes_out() <= heard.bytes_in, "{} for {}", heard.bytes_out(), heard.bytes_in);
    }
    assert!(!heard.packets.is_empty());
}

#[test]
fn a_silent_source_leaves_after_ten_seconds() {
    let mut heard = Heard::new();
    heard.media(at(0), 1);
    heard.media(at(1), 2);
    heard.input(at(10_000), Input::Wake);
    let left = |decision: &Decision| matches!(decision, Decision::SourceLeft { .. });
    assert!(!heard.decisions.iter().any(left));
    heard.input(at(10_001), Input::Wake);
    assert!(heard.decisions.iter().any(left));
}

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
        one.handle(at(10), refused(reason));
        let (when, ended, sent) = alone(one);
        // The frame of 1 s has left by 1,016 ms.
        assert_eq!((when, ended), (at(2_016), why));
        assert!(sent.bytes < Bytes(130_000), "{}", sent.bytes);
    }
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
    // Who was never heard of may say what it likes.
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

/// Of a receiver that leaves all sources that it knows are told.
#[test]
fn a_receiver_that_is_interrupted_says_goodbye() {
    let mut heard = Heard::new();
    (0..10).for_each(|sequence| heard.media(at(i64::from(sequence)), sequence));
    heard.input(at(20), Input::Interrupted);
    let all = heard.packets.iter().flat_map(|datagram| Rtcp::all(datagram.payload.udp().unwrap()));
    assert!(all.flatten().any(|packet| matches!(packet, Rtcp::Goodbye { ssrc: Some(8) })));
    assert!(matches!(heard.decisions.last(), Some(Decision::SourceLeft { why: Left::Interrupted, .. })));
    assert!(heard.bytes_out() <= heard.bytes_in);
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

#[test]
fn packets_from_before_the_first_that_came_are_counted() {
    let mut receiver = receiver();
    for (k, sequence) in [2_u16, 1, 0, 3, 4].into_iter().enumerate() {
        let now = at(k as i64);
        let datagram = rtp(ends().0, sequence, 500, Ecn::NotEct);
        receiver.handle(now, Input::Datagram { port: PortId(0), at: now, datagram });
    }
    receiver.handle(at(60), Input::Wake);
    let (feedback, ..) = drain(&mut receiver, at(60));
    let told = feedback.iter().flat_map(|(_, d)| Rtcp::all(d.payload.udp().unwrap()).map(Result::unwrap));
    let arrived: usize = told
        .filter_map(|packet| match packet {
            Rtcp::Feedback(feedback) => Some(
                feedback
                    .blocks()
                    .flat_map(|b| b.reports().collect::<Vec<_>>())
                    .filter(|r| r.1.received)
                    .count(),
            ),
            _ => None,
        })
        .sum();
    assert_eq!(arrived, 5);
    receiver.handle(at(70), Input::Interrupted);
    let (_, decisions, _) = drain(&mut receiver, at(70));
    let Some(Decision::SourceLeft { received, .. }) = decisions.last() else { panic!("{decisions:?}") };
    assert_eq!((received.packets, received.lost, received.out_of_order), (5, 0, 2));
}

/// Forged sources by the thousand, proven or not, and a real one among them. Those that ask for reports of TFRC's receiver are
/// answered at once, and proven no more than others by that.
#[test]
fn forged_sources_keep_no_real_one_out() {
    for (proven, asks) in [(false, false), (false, true), (true, false)] {
        let mut receiver = receiver();
        let mut forged = 0_u16;
        let mut forge = |receiver: &mut Receiver, now: Time| {
            let from = (ends().0.ip(), 1_000 + forged % 60_000).into();
            forged += 1;
            for sequence in 0..1 + u16::from(proven) {
                let mut datagram = rtp(from, sequence, 500, Ecn::NotEct);
                if asks {
                    let header = RtpHeader { sequence, payload_type: 96, ssrc: OURS, ..RtpHeader::default() };
                    let mut bytes = Vec::new();
                    SendTime { at: 0, rtt: None, summary: true }.write(&header, &mut bytes);
                    datagram = Datagram::udp(from, ends().1, bytes);
                }
                receiver.handle(now, Input::Datagram { port: PortId(0), at: now, datagram });
            }
        };
        (0..1_000).for_each(|_| forge(&mut receiver, at(0)));
        drain(&mut receiver, at(0));
        let mut found = None;
        for number in 0..200_u16 {
            // Ten milliseconds apart, five forged ones between each two.
            let now = at(100 + 10 * i64::from(number));
            (0..5).for_each(|_| forge(&mut receiver, now));
            let datagram = rtp(ends().0, number, 500, Ecn::NotEct);
            receiver.handle(now, Input::Datagram { port: PortId(0), at: now, datagram });
            let (_, decisions, _) = drain(&mut receiver, now);
            let is_real =
                |what: &Decision| matches!(what, Decision::SourceFound { peer, .. } if *peer == ends().0);
            found = found.or(decisions.iter().any(is_real).then_some(number));
        }
        // Forged ones that are proven hold their places for a second.
        let latest = if proven { 95 } else { 1 };
        assert!(found.is_some_and(|number| number <= latest), "{proven}, {asks}: {found:?}");
    }
}

/// A path that loses, marks, copies and delays, by the numbers of the packets.
struct Path {
    lose: u64,
    mark: u64,
    copy: u64,
    delay: fn(u64) -> Span,
}

/// What each end says when a stream has run over that path.
fn over(path: &Path, stop: Time) -> (Sent, Received, u64) {
    let (mut sender, mut receiver) = (sender(stop), receiver());
    let mut queue: BTreeMap<(Time, u64), (bool, Input)> = BTreeMap::new();
    let (mut order, mut media, mut marked) = (0, 0, 0);
    let (mut sent, mut received) = (None, None);
    let mut wakes = [Some(Time::ZERO); 2];
    loop {
        let next = queue.keys().next().map(|&(at, _)| at);
        let Some(now) = [next, wakes[0], wakes[1]].into_iter().flatten().min() else { break };
        let (to_receiver, input) = match queue.first_entry().filter(|entry| entry.key().0 == now) {
            Some(entry) => entry.remove(),
            None => (wakes[1] == Some(now), Input::Wake),
        };
        let (packets, decisions, wake) = if to_receiver {
            receiver.handle(now, input);
            drain(&mut receiver, now)
        } else {
            sender.handle(now, input);
            drain(&mut sender, now)
        };
        wakes[usize::from(to_receiver)] = wake;
        for decision in decisions {
            match decision {
                Decision::MediaEnded { sent: what, .. } => sent = Some(what),
                Decision::SourceLeft { received: what, .. } => received = Some(what),
                _ => {}
            }
        }
        for (left, mut datagram) in packets {
            let mut came = left + Span::from_millis(20);
            let mut copies = 1;
            if to_receiver {
                (datagram.from, datagram.to) = (ends().1, ends().0);
            } else {
                (datagram.from, datagram.to) = ends();
                if !is_rtcp(datagram.payload.udp().unwrap()) {
                    media += 1;
                    came += (path.delay)(media);
                    if path.mark > 0 && media % path.mark == 0 {
                        datagram.ecn = Ecn::Ce;
                    }
                    copies += usize::from(path.copy > 0 && media % path.copy == 0);
                    if path.lose > 0 && media % path.lose == 0 {
                        copies = 0;
                    }
                    marked += u64::from(copies > 0 && datagram.ecn == Ecn::Ce);
                }
            }
            for _ in 0..copies {
                order += 1;
                let input = Input::Datagram { port: PortId(0), at: came, datagram: datagram.clone() };
                queue.insert((came, order), (!to_receiver, input));
            }
        }
    }
    (sent.unwrap(), received.unwrap(), marked)
}

#[test]
fn both_ends_count_what_the_path_did() {
    let plain = Path { lose: 0, mark: 0, copy: 0, delay: |_| Span::ZERO };
    let (sent, received, _) = over(&plain, at(10_000));
    assert_eq!(
        (received.packets, received.lost, received.duplicates, received.marked),
        (sent.packets, 0, 0, 0)
    );
    assert_eq!((sent.acknowledged, received.bytes), (sent.packets, sent.bytes));
    // Every 10th is lost, every 7th marked, every 4th copied, every 3rd 15 ms late, which is behind several others.
    // The last are not, or the goodbye would overtake them.
    let late = |number: u64| match number {
        0..2_400 if number.is_multiple_of(3) => Span::from_millis(15),
        _ => Span::ZERO,
    };
    let (sent, received, marked) = over(&Path { lose: 10, mark: 7, copy: 4, delay: late }, at(10_000));
    let lost = sent.packets / 10;
    // The last may be among the lost: nobody knows that it was sent.
    assert!(received.lost == lost || received.lost + 1 == lost, "{} of {lost}", received.lost);
    assert_eq!(received.packets, sent.packets - lost);
    assert_eq!((received.marked, sent.marked, sent.acknowledged), (marked, marked, received.packets));
    assert_eq!(received.duplicates, sent.packets / 4 - sent.packets / 20);
    assert!(received.out_of_order > sent.packets / 5, "{}", received.out_of_order);
}

/// Bytes of a datagram: anything, or RTP and RTCP that may be cut or have one byte changed.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let media = (any::<u16>(), 0_usize..600, 0_u32..80).prop_map(|(sequence, size, ssrc)| {
        let mut datagram = Vec::new();
        RtpHeader { marker: false, payload_type: 96, sequence, timestamp: 1, ssrc }.write(&mut datagram);
        datagram.resize(datagram.len() + size, 0);
        datagram
    });
    // Near each other, so that sources become known; a few of them are sent again.
    let near = (0_u16..64, 0_usize..40, 0_u8..4).prop_map(|(sequence, size, again)| {
        let mut datagram = Vec::new();
        let sequence = sequence.wrapping_sub(32);
        let (payload_type, ssrc) = if again == 0 { (97, OURS + 1) } else { (96, OURS) };
        RtpHeader { marker: true, payload_type, sequence, timestamp: 1, ssrc }.write(&mut datagram);
        datagram.resize(datagram.len() + size, 0);
        datagram
    });
    let reports = (any::<[u32; 6]>(), prop::collection::vec(0_u8..7, 1..12)).prop_map(|(words, kinds)| {
        let mut datagram = Vec::new();
        let block = ReportBlock {
            ssrc: OURS,
            fraction_lost: words[0] as u8,
            lost: words[1] as i32,
            highest: words[2],
            jitter: words[3],
            last_report: words[4],
            delay: words[5],
        };
        let told = vec![Reported::arrived(Ecn::Ce, Some(Span::ZERO)); words[1] as usize % 100];
        let lost: Vec<u16> = (0..words[1] as u16 % 100).map(|k| words[2] as u16 & 0x3f | k << 3).collect();
        let times: Vec<(u16, u32)> = lost.iter().map(|number| (*number, words[3])).collect();
        for kind in kinds {
            match kind {
                0 => write_sender_report(&mut datagram, OURS, &SenderInfo::default(), &[block]),
                1 => write_receiver_report(&mut datagram, words[0], &[block, block]),
                2 => write_feedback(&mut datagram, words[0], OURS, words[2] as u16, &told, words[4]),
                3 => write_name(&mut datagram, OURS, "x"),
                4 => write_nack(&mut datagram, words[0], OURS, &lost),
                5 => write_receipt_times(&mut datagram, words[0], OURS, &times),
                _ if words[5] % 8 == 0 => write_goodbye(&mut datagram, OURS),
                _ => {}
            }
        }
        datagram
    });
    let whole = prop_oneof![media, near.clone(), near, reports];
    let broken = (whole.clone(), any::<prop::sample::Index>(), any::<u8>(), any::<bool>());
    let broken = broken.prop_map(|(mut datagram, place, value, cut)| {
        if datagram.is_empty() {
            return datagram;
        }
        let place = place.index(datagram.len());
        datagram[place] = value;
        if cut {
            datagram.truncate(place);
        }
        datagram
    });
    prop_oneof![2 => prop::collection::vec(any::<u8>(), 0..200), 5 => whole, 3 => broken]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn parsers_take_anything(bytes in bytes()) {
        if let Ok(packet) = RtpPacket::parse(&bytes) {
            prop_assert!(packet.payload.len() + 12 <= bytes.len());
        }
        let mut read = 0;
        for packet in Rtcp::all(&bytes) {
            read += 1;
            match packet {
                Ok(Rtcp::Feedback(feedback)) => {
                    let told: usize = feedback.blocks().map(|block| block.reports().count()).sum();
                    prop_assert!(2 * told <= bytes.len());
                }
                Ok(Rtcp::Sender { blocks, .. } | Rtcp::Receiver { blocks, .. }) => {
                    prop_assert!(24 * blocks.iter().count() <= bytes.len());
                }
                _ => {}
            }
        }
        // Each takes four bytes at least, and an error is the last.
        prop_assert!(read <= bytes.len() / 4 + 1);
    }

    #[test]
    fn a_receiver_takes_anything_and_never_says_more_than_it_heard(
        inputs in prop::collection::vec((bytes(), 0_u8..3, 0_i64..200), 1..200),
        receipt_times: bool,
        nack in prop::option::of(0_i64..1_000),
    ) {
        let nack = nack.map(Span::from_millis);
        let config = ReceiverConfig { epoch: EPOCH, receipt_times, nack, ..ReceiverConfig::new(8) };
        let mut receiver = Receiver::new(config).unwrap();
        // By address: what came and what went.
        let mut balance: BTreeMap<SocketAddr, (u64, u64)> = BTreeMap::new();
        let mut now = Time::ZERO;
        for (bytes, host, wait) in inputs {
            now += Span::from_millis(wait);
            let from: SocketAddr = format!("10.0.1.{host}:5000").parse().unwrap();
            let datagram = Datagram::udp(from, ends().1, bytes);
            balance.entry(from).or_default().0 += datagram.ip_size().0;
            receiver.handle(now, Input::Datagram { port: PortId(0), at: now, datagram });
            for (_, datagram) in drain(&mut receiver, now).0 {
                let account = balance.entry(datagram.to).or_default();
                account.1 += datagram.ip_size().0;
                prop_assert!(account.1 <= account.0, "{} B for {} B", account.1, account.0);
            }
        }
        receiver.handle(now, Input::Interrupted);
        // A source each of three hosts and 64 in all is what it may have kept.
        let left = drain(&mut receiver, now).1;
        prop_assert!(left.len() <= 64, "{}", left.len());
    }

    #[test]
    fn a_sender_takes_anything_and_believes_no_more_than_it_sent(
        inputs in prop::collection::vec((bytes(), any::<bool>(), 0_i64..200), 1..200),
        control in prop::option::of(prop_oneof![Just("tfrc"), Just("tfrc+zbs"), Just("rap+spike")]),
        source in prop::option::of(prop_oneof![Just("cbr"), Just("on-demand"), Just("codec")]),
        repeats: bool,
    ) {
        let controller = |name: &str| lastmile::control::build(&name.parse().unwrap(), &Default::default()).unwrap();
        let retransmission = repeats.then(|| Retransmission::within(OURS + 1, Span::from_millis(400)));
        let source = SourceConfig { source: source.map(Choice::named), ..SourceConfig::default() };
        let config = SenderConfig { retransmission, source, ..config(at(5_000)) };
        let mut sender = match control {
            Some(name) => Sender::controlled(config, controller(name)).unwrap(),
            None => Sender::new(config).unwrap(),
        };
        let (mut now, mut packets, mut again) = (Time::ZERO, 0, 0);
        sender.handle(now, Input::Wake);
        for (bytes, peer, wait) in inputs {
            now += Span::from_millis(wait);
            let from = if peer { ends().1 } else { ends().0 };
            let datagram = Datagram::udp(from, ends().0, bytes);
            sender.handle(now, Input::Datagram { port: PortId(0), at: now, datagram });
            let (out, decisions, _) = drain(&mut sender, now);
            let bytes = out.iter().map(|(_, datagram)| datagram.payload.udp().unwrap());
            for bytes in bytes.filter(|bytes| !is_rtcp(bytes)) {
                match RtpPacket::parse(bytes).unwrap().header.ssrc {
                    OURS => packets += 1,
                    _ => again += 1,
                }
            }
            let sent = sender.sent();
            prop_assert_eq!((sent.packets, sent.retransmitted), (packets, again));
            prop_assert!(sent.retransmitted_bytes.0 * 4 <= sent.bytes.0);
            prop_assert!(sent.marked <= sent.acknowledged && sent.acknowledged <= sent.packets);
            // A report that came says one thing for each of its packets.
            prop_assert!(decisions.len() <= 16, "{}", decisions.len());
        }
    }
}
