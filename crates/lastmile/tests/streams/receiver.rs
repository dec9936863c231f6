//! The receiving end: its counts, and the senders that it answers.

use lastmile::wire::sdes::Expansion;

use super::*;

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

    /// The feedback's last report on each packet.
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

/// A receiver behind SRTP whose tags and indices add so much to RTCP; without a key if nothing.
fn protected(rtcp: u64) -> Heard {
    let expansion = Expansion { rtp: Bytes(10), rtcp: Bytes(rtcp) };
    let config = ReceiverConfig { epoch: EPOCH, expansion, ..ReceiverConfig::new(8) };
    Heard { receiver: Receiver::new(config).unwrap(), ..Heard::new() }
}

/// A receiver with a key cannot know that its own address changed.
#[test]
fn a_silent_source_is_called_four_times_from_the_second_on_from_any_address() {
    for (rtcp, expected) in [(14, vec![1_500, 2_500, 4_500, 8_500]), (0, vec![])] {
        let mut heard = protected(rtcp);
        (0..=100).for_each(|sequence| heard.media(at(10 * i64::from(sequence)), sequence));
        heard.input(at(1_100), Input::Wake);
        let mut called = Vec::new();
        for now in (1_100..12_000).step_by(10) {
            heard.packets.clear();
            heard.input(at(now), Input::Wake);
            called.extend(heard.packets.iter().map(|call| (now, call.from.ip().is_unspecified())));
        }
        let any = |(number, at): (usize, i64)| (at, number > 0);
        assert_eq!(called, expected.into_iter().enumerate().map(any).collect::<Vec<_>>());
    }
}

/// A source that makes nothing for a while: its reports come, and it learns that somebody is there, once for each.
#[test]
fn reports_of_a_source_that_pauses_are_answered() {
    // With a key it is called too, half a second after a report that was not answered.
    for (rtcp, expected) in [(0, vec![2_200, 3_200, 4_200]), (14, vec![1_700, 2_200, 3_200, 4_200, 5_000])] {
        let mut heard = protected(rtcp);
        (0..=100).for_each(|sequence| heard.media(at(10 * i64::from(sequence)), sequence));
        heard.input(at(1_100), Input::Wake);
        let mut answered = Vec::new();
        let mut now = 1_100;
        while now < 5_100 {
            heard.packets.clear();
            let mut bytes = Vec::new();
            write_sender_report(&mut bytes, OURS, &SenderInfo::default(), &[]);
            match now {
                // A report alone asks if this end is there.
                5_000 => heard.hears(at(now), Datagram::udp(ends().0, ends().1, bytes)),
                1_200 | 2_200 | 3_200 | 4_200 => {
                    // However many there are in a datagram.
                    write_sender_report(&mut bytes, OURS, &SenderInfo::default(), &[]);
                    write_name(&mut bytes, OURS, "a");
                    heard.hears(at(now), Datagram::udp(ends().0, ends().1, bytes));
                }
                4_900 => (101..103).for_each(|sequence| heard.media(at(now), sequence)),
                _ => heard.input(at(now), Input::Wake),
            }
            let all = heard.packets.iter().flat_map(|datagram| Rtcp::all(datagram.payload.udp().unwrap()));
            let alone = all.flatten().filter(|packet| !matches!(packet, Rtcp::Feedback(_)));
            answered.extend(alone.filter(|packet| matches!(packet, Rtcp::Receiver { .. })).map(|_| now));
            now += 10;
        }
        answered.retain(|at| *at != 4_950);
        assert_eq!(answered, expected, "{rtcp}");
    }
}

#[test]
fn a_source_that_goes_on_from_another_address_has_moved() {
    let (sender, _) = ends();
    let moved = SocketAddr::new(sender.ip(), sender.port() + 1);
    let mut heard = protected(14);
    (0..100).for_each(|sequence| heard.media(at(10 * i64::from(sequence)), sequence));
    for sequence in 100..1_500_u16 {
        if sequence == 120 {
            heard.packets.clear();
        }
        heard.hears(at(10 * i64::from(sequence)), rtp(moved, sequence, 400, Ecn::Ect0));
    }
    assert!(heard.packets.iter().all(|datagram| datagram.to == moved), "nobody calls the old address");
    heard.input(at(40_000), Input::Wake);
    let left = heard.decisions.iter().filter_map(|decision| match decision {
        Decision::SourceLeft { peer, why, .. } => Some((*peer, *why)),
        _ => None,
    });
    let left: Vec<_> = left.collect();
    assert_eq!(left, [(sender, Left::Moved), (moved, Left::Silent)]);
}

/// Of a receiver that leaves all sources that it knows are told.
#[test]
fn a_receiver_that_is_interrupted_says_goodbye() {
    let mut heard = Heard::new();
    (0..10).for_each(|sequence| heard.media(at(i64::from(sequence)), sequence));
    heard.input(at(20), Input::Interrupted);
    let all = heard.packets.iter().flat_map(|datagram| Rtcp::all(datagram.payload.udp().unwrap()));
    assert!(all.flatten().any(|packet| matches!(packet, Rtcp::Goodbye(sources) if sources.iter().eq([8]))));
    assert!(matches!(heard.decisions.last(), Some(Decision::SourceLeft { why: Left::Interrupted, .. })));
    assert!(heard.bytes_out() <= heard.bytes_in);
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

/// A source that sent for long and pauses keeps its place from a hundred forged ones that prove themselves.
#[test]
fn a_proven_source_that_pauses_is_not_displaced_by_forged_ones() {
    let mut receiver = receiver();
    let hears = |receiver: &mut Receiver, now: Time, from, sequence| {
        let datagram = rtp(from, sequence, 500, Ecn::NotEct);
        receiver.handle(now, Input::Datagram { port: PortId(0), at: now, datagram });
    };
    (0..100).for_each(|number| hears(&mut receiver, at(30 * i64::from(number)), ends().0, number));
    for forged in 0..200_u16 {
        let from = (ends().0.ip(), 1_000 + forged).into();
        let now = at(3_000 + 14 * i64::from(forged));
        (0..2).for_each(|sequence| hears(&mut receiver, now, from, sequence));
    }
    let (_, decisions, _) = drain(&mut receiver, at(5_800));
    let displaced = |peer| {
        decisions.iter().any(|what| matches!(what, Decision::SourceLeft { peer: of, .. } if *of == peer))
    };
    assert!(displaced((ends().0.ip(), 1_000).into()));
    assert!(!displaced(ends().0));
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
                    SendTime { at: 0, round: 0, rtt: None, summary: true, history: false }
                        .write(&header, &mut bytes);
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

/// A packet that asks for reports of TFRC's receiver; 40 ms there and back.
fn asking(from: SocketAddr, number: u16) -> Datagram {
    let header = RtpHeader { sequence: number, payload_type: 96, ssrc: OURS, ..RtpHeader::default() };
    let (at_micros, rtt) = (u32::from(number) * 1_000, Some(Span::from_millis(40)));
    let mut bytes = Vec::new();
    SendTime { at: at_micros, round: 0, rtt, summary: true, history: false }.write(&header, &mut bytes);
    bytes.resize(bytes.len() + 400, 0);
    Datagram::udp(from, ends().1, bytes)
}

/// Names are taken from proven sources that ask for reports, each source's first that can be, and no others.
#[test]
fn a_scheme_is_named_once_by_a_proven_source() {
    const USUAL: &str = "tfrc(form=receiver)";
    const ZBS: &str = "tfrc(form=receiver)+zbs";
    let (from, to) = ends();
    let naming = |from, names: &[&str]| {
        let mut bytes = Vec::new();
        write_sender_report(&mut bytes, OURS, &SenderInfo::default(), &[]);
        names.iter().for_each(|name| write_tfrc_scheme(&mut bytes, &TfrcScheme { source: OURS, name }));
        Datagram::udp(from, to, bytes)
    };
    let stranger = (from.ip(), from.port() + 1).into();
    let refused =
        ["tfrc+zbs", "vtp", "tfrc(form=receiver)+wishful", "tfrc(form=receiver)+omniscient", "x(", "+"];
    // Senders and their names before the first packet, after it, and after the second; and the scheme that counts losses then.
    type Named<'a> = (SocketAddr, &'a [&'a str]);
    let cases: [([Named<'_>; 3], &str); 7] = [
        ([(from, &[]), (from, &[]), (from, &[])], USUAL),
        ([(from, &[ZBS]), (from, &[]), (from, &[])], USUAL),
        ([(from, &[]), (from, &[ZBS]), (from, &[])], USUAL),
        ([(from, &[]), (from, &[]), (stranger, &[ZBS])], USUAL),
        ([(from, &[]), (from, &[]), (from, &refused)], USUAL),
        ([(from, &[]), (from, &[]), (from, &[ZBS])], ZBS),
        ([(from, &[]), (from, &refused), (from, &[ZBS, "tfrc(form=receiver)+spike"])], ZBS),
    ];
    for (named, scheme) in cases {
        let mut heard = Heard::new();
        for (number, (from, names)) in named.into_iter().enumerate() {
            heard.hears(at(20 + number as i64), naming(from, names));
            heard.hears(at(20 + number as i64), asking(ends().0, number as u16));
        }
        heard.input(at(100), Input::Wake);
        let reports = heard.packets.iter().flat_map(|datagram| Rtcp::all(datagram.payload.udp().unwrap()));
        let last = reports.flatten().filter_map(|packet| match packet {
            Rtcp::Tfrc(report) => Some(report.scheme),
            _ => None,
        });
        assert_eq!(last.last(), Some(scheme_check(scheme)), "{named:?}");
        assert!(heard.bytes_out() <= heard.bytes_in);
    }
}

/// Two streams of one peer miss the same numbers. Until it is known which stream repeats which, only one of them asks for a number
/// (RFC 4588, section 5.3); a packet of a stream that repeats the second never counts for the first.
#[test]
fn what_comes_again_counts_for_its_own_stream() {
    const STREAMS: [u32; 2] = [7, 17];
    let (from, to) = ends();
    let within = Some(Span::from_millis(400));
    let mut receiver =
        Receiver::new(ReceiverConfig { epoch: EPOCH, nack: within, ..ReceiverConfig::new(9) }).unwrap();
    let mut run = |now: Time, packet: Option<(u32, u8, u16, u16)>| {
        let input = packet.map_or(Input::Wake, |(ssrc, payload_type, sequence, original)| {
            let mut bytes = Vec::new();
            RtpHeader { marker: false, payload_type, sequence, timestamp: 0, ssrc }.write(&mut bytes);
            bytes.extend(original.to_be_bytes());
            bytes.resize(400, 0);
            Input::Datagram { port: PortId(0), at: now, datagram: Datagram::udp(from, to, bytes) }
        });
        receiver.handle(now, input);
        let (packets, decisions, _) = drain(&mut receiver, now);
        let mut asked = Vec::new();
        for (_, datagram) in packets {
            for packet in Rtcp::all(datagram.payload.udp().unwrap()).flatten() {
                if let Rtcp::Nack(nack) = packet {
                    asked.extend(nack.lost().map(|number| (nack.ssrc, number)));
                }
            }
        }
        (asked, decisions)
    };
    let mut asked = Vec::new();
    for number in [0, 1, 2, 4, 5, 6] {
        let each = |ssrc: &u32| asked.extend(run(at(i64::from(number)), Some((*ssrc, 96, number, 0))).0);
        STREAMS.iter().for_each(each);
    }
    let [(first, 3)] = asked[..] else { panic!("{asked:?}") };
    let second = STREAMS[usize::from(first == STREAMS[0])];
    // A stream that repeats has one number more than the other.
    run(at(20), Some((first + 1, 97, 0, 3)));
    let (asked, _) = run(at(40), None);
    assert_eq!(asked, [(second, 3)]);
    run(at(50), Some((second + 1, 97, 0, 3)));
    // Both ask at once, and only the second is answered.
    let mut asked = Vec::new();
    for number in [7, 9, 10] {
        let each = |ssrc: &u32| asked.extend(run(at(50 + i64::from(number)), Some((*ssrc, 96, number, 0))).0);
        STREAMS.iter().for_each(each);
    }
    asked.sort_unstable();
    assert_eq!(asked, STREAMS.map(|ssrc| (ssrc, 8)));
    run(at(80), Some((STREAMS[1] + 1, 97, 1, 8)));
    receiver.handle(at(90), Input::Interrupted);
    let (_, decisions, _) = drain(&mut receiver, at(90));
    let recovered = |of: u32| {
        decisions.iter().find_map(|what| match what {
            Decision::SourceLeft { ssrc, received, .. } if *ssrc == of => Some(received.recovered),
            _ => None,
        })
    };
    assert_eq!(STREAMS.map(recovered), [Some(1), Some(2)]);
}

/// Four seconds of a packet each millisecond are gone: a loss event for each round-trip time of 40 ms, of which the last eight count.
#[test]
fn an_outage_is_a_loss_to_who_counts_losses() {
    let mut heard = Heard::new();
    for number in (0..1_000_u16).chain(5_000..5_100) {
        heard.hears(at(20 + i64::from(number)), asking(ends().0, number));
    }
    let rates: Vec<f64> = heard
        .packets
        .iter()
        .flat_map(|datagram| Rtcp::all(datagram.payload.udp().unwrap()).flatten().collect::<Vec<_>>())
        .filter_map(
            |packet| if let Rtcp::Tfrc(report) = packet { Some(report.loss_event_rate) } else { None },
        )
        .collect();
    assert_eq!(rates[..20], [0.0; 20]);
    let last = 1.0 / rates.last().unwrap();
    assert!((41.0..60.0).contains(&last), "{last}");
}
