//! Any bytes may come.

use super::*;

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
        video in prop::option::of(96_u8..98),
    ) {
        let nack = nack.map(Span::from_millis);
        let config = ReceiverConfig { epoch: EPOCH, receipt_times, nack, video, ..ReceiverConfig::new(8) };
        let mut receiver = Receiver::new(config).unwrap();
        // Bytes that came and went, by address.
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
            // A loss event of each packet, and a few things of the report.
            prop_assert!(decisions.len() as u64 <= sent.packets + 16, "{}", decisions.len());
        }
    }
}
