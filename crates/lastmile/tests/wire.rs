//! The wire format as a whole: whatever is built is read again, and whatever arrives is survived.

use lastmile::wire::private::*;
use lastmile::wire::*;
use proptest::prelude::*;

fn modes() -> impl Strategy<Value = Mode> {
    prop_oneof![Just(Mode::Open), Just(Mode::Authenticated)]
}

fn senders() -> impl Strategy<Value = SenderPacket> {
    (any::<u32>(), any::<u64>(), any::<u16>(), any::<u16>()).prop_map(|(sequence, timestamp, error, ssid)| {
        SenderPacket { sequence, timestamp, error: ErrorEstimate::from_bits(error), ssid }
    })
}

fn reflections() -> impl Strategy<Value = Reflection> {
    (any::<Option<u32>>(), any::<u64>(), any::<u16>(), any::<u64>(), any::<u8>()).prop_map(
        |(sequence, timestamp, error, receive_timestamp, sender_ttl)| Reflection {
            sequence,
            timestamp,
            error: ErrorEstimate::from_bits(error),
            receive_timestamp,
            sender_ttl,
        },
    )
}

fn tokens() -> impl Strategy<Value = Token> {
    any::<[u8; TOKEN_LEN]>()
}

fn round_trip<T: TlvValue + PartialEq + std::fmt::Debug>(value: T) -> Result<(), TestCaseError> {
    let mut wire = vec![0xA5; value.value_len()];
    value.encode_value(&mut wire).unwrap();
    prop_assert_eq!(T::decode_value(&wire), Ok(value));
    // A value cut anywhere is read as something else or refused, and never more than that.
    (0..wire.len()).for_each(|cut| drop(T::decode_value(&wire[..cut])));
    Ok(())
}

/// Bytes that look like TLVs often enough to get far: random ones, and chains of headers with plausible lengths.
fn areas() -> impl Strategy<Value = Vec<u8>> {
    let kinds = prop_oneof![0u8..16, 240u8..=251, any::<u8>()];
    let lengths =
        prop_oneof![Just(4u16), Just(8), Just(12), Just(16), Just(32), Just(60), 0u16..100, any::<u16>()];
    let values = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..80),
        prop::collection::vec(any::<u8>(), 0..80).prop_map(|tail| [b"LSM\x01", &tail[..]].concat()),
    ];
    let tlvs = (any::<u8>(), kinds, lengths, values).prop_map(|(flags, kind, length, mut value)| {
        if length < 100 {
            value.resize(usize::from(length), 0);
        }
        let mut tlv = vec![flags, kind];
        tlv.extend(length.to_be_bytes());
        tlv.extend(value);
        tlv
    });
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        prop::collection::vec(tlvs, 0..6).prop_map(|tlvs| tlvs.concat()),
    ]
}

/// Reads everything that there is to read in a TLV.
fn judge(tlv: TlvMut<'_>) -> Verdict {
    match tlv.kind {
        TlvType::EXTRA_PADDING | TlvType::HMAC => Verdict::Understood,
        TlvType::CLASS_OF_SERVICE => Verdict::of(&ClassOfService::decode_value(tlv.value)),
        TlvType::RETURN_PATH => Verdict::of(&ReturnPath::decode(tlv.value)),
        TlvType::REFLECTED_CONTROL => Verdict::of(&ReflectedControl::decode_value(tlv.value)),
        TlvType::HELLO => {
            let _ = HelloReply::decode_value(tlv.value);
            Verdict::of(&HelloRequest::decode_value(tlv.value))
        }
        TlvType::STREAM => Verdict::of(&StreamTag::decode_value(tlv.value)),
        TlvType::REPORT => {
            let _ = ReportPage::parse(tlv.value).map(|page| page.entries().count());
            Verdict::of(&ReportRequest::decode_value(tlv.value))
        }
        _ => Verdict::Unrecognized,
    }
}

proptest! {
    #[test]
    fn sender_packets_round_trip(mode in modes(), packet in senders(), extra in 0usize..9) {
        let mut wire = vec![0xA5; mode.base_len() + extra];
        packet.write(mode, &mut wire).unwrap();
        prop_assert_eq!(SenderPacket::parse(mode, &wire), Ok(packet));
        prop_assert_eq!(sequence_of(&wire), Ok(packet.sequence));
        prop_assert_eq!(tlv_area(mode, &wire), &vec![0xA5; extra][..]);
    }

    #[test]
    fn reflection_keeps_size_and_tells_all(
        mode in modes(), packet in senders(), facts in reflections(), area in areas(),
    ) {
        let mut wire = vec![0; mode.base_len()];
        packet.write(mode, &mut wire).unwrap();
        wire.extend_from_slice(&area);
        let before = wire.len();
        prop_assert_eq!(reflect_in_place(mode, &mut wire, &facts), Ok(packet));
        prop_assert_eq!(wire.len(), before);
        prop_assert_eq!(tlv_area(mode, &wire), &area[..]);
        let expected = ReflectorPacket {
            sequence: facts.sequence.unwrap_or(packet.sequence),
            timestamp: facts.timestamp,
            error: facts.error,
            ssid: packet.ssid,
            receive_timestamp: facts.receive_timestamp,
            sender_sequence: packet.sequence,
            sender_timestamp: packet.timestamp,
            sender_error: packet.error,
            sender_ttl: facts.sender_ttl,
        };
        prop_assert_eq!(ReflectorPacket::parse(mode, &wire), Ok(expected));
        let mut again = vec![0; mode.base_len()];
        expected.write(mode, &mut again).unwrap();
        prop_assert_eq!(&again[..], &wire[..mode.base_len()]);
    }

    #[test]
    fn standard_tlvs_round_trip(
        dscp in (0u8..64, 0u8..64), ecn in (0u8..4, 0u8..4), refused: bool, rpe in 0usize..3,
        length: u16, count: u16, interval_ns: u32,
    ) {
        let rpe = [ReversePathEcn::Unsaid, ReversePathEcn::Refused, ReversePathEcn::Set][rpe];
        round_trip(ClassOfService {
            dscp_wanted: dscp.0, dscp_received: dscp.1, ecn_wanted: ecn.0, ecn_received: ecn.1,
            dscp_refused: refused, reverse_ecn: rpe,
        })?;
        round_trip(ReflectedControl { length, count, interval_ns, groups: false })?;
        round_trip(if refused { ControlCode::NoReply } else { ControlCode::SameLink })?;
    }

    #[test]
    fn hello_round_trips(
        versions: (u8, u8), chosen in prop::option::of(1u8..), bits: (u32, u32), token in tokens(), nonce: u64,
        limits: (u16, u16, u32, u64, u64),
    ) {
        let (version_min, version_max) = versions;
        round_trip(HelloRequest { version_min, version_max, wanted: Abilities(bits.0), nonce, token })?;
        let (lease_s, max_packets, resolution_ns, credit, budget) = limits;
        let abilities = Abilities(bits.1);
        let offer = Offer { version: chosen, abilities, token, lease_s, max_packets, resolution_ns, credit, budget };
        round_trip(HelloReply { version_min, version_max, nonce, offer })?;
    }

    #[test]
    fn stream_and_report_requests_round_trip(
        stream: u32, index in 0u16..u16::MAX, more in 1u16.., burst: u16, token in tokens(), page: u16,
        departures: bool, acknowledge: bool, end: bool, slots in 0usize..180,
    ) {
        round_trip(StreamTag { stream, index, count: index.saturating_add(more), burst, token })?;
        let kind = if departures { ReportKind::Departures } else { ReportKind::Arrivals };
        let value_len = MIN_REPORT_LEN + slots * REPORT_ENTRY_LEN;
        round_trip(ReportRequest { token, stream, page, kind, acknowledge, end, value_len })?;
    }

    #[test]
    fn reports_round_trip(
        entries in prop::collection::vec(prop::option::of((0u64..(1 << 48) - 1, 0u8..4, any::<[bool; 2]>(), any::<u8>())), 0..200),
        first_index in 0u16..60_000, status in 0usize..6, slack in 0usize..8, base_ns: u64,
    ) {
        use ReportStatus::{Busy, CreditExhausted, Expired, Ok as Fine, Running, UnknownStream};
        let entries: Vec<Option<Arrival>> = entries
            .into_iter()
            .map(|entry| entry.map(|(offset_ns, ecn, [late, duplicated], hop_limit)| {
                Arrival { offset_ns, ecn, late, duplicated, hop_limit }
            }))
            .collect();
        let head = ReportHeader {
            status: [Fine, UnknownStream, Expired, CreditExhausted, Busy, Running][status],
            kind: ReportKind::Arrivals, clock_stepped: base_ns % 2 == 0, queued: base_ns % 3 == 0, stream: 1, page: 2, pages: 3, first_index, resolution_ns: 4, base_ns,
        };
        let mut value = vec![0xA5; MIN_REPORT_LEN + entries.len() * REPORT_ENTRY_LEN + slack];
        prop_assert_eq!(write_report(&mut value, &head, entries.iter().copied()), Ok(entries.len() as u16));
        let page = ReportPage::parse(&value).unwrap();
        prop_assert_eq!(page.head, head);
        let (indices, got): (Vec<u16>, Vec<_>) = page.entries().unzip();
        prop_assert_eq!(got, &entries[..]);
        prop_assert!(indices.iter().copied().eq(first_index..first_index + entries.len() as u16));
        prop_assert!((0..value.len() - slack).all(|cut| ReportPage::parse(&value[..cut]).is_err()));
    }

    #[test]
    fn built_packets_are_read_again_and_verified(
        mode in modes(), packet in senders(), size in 300usize..1500, seed: u64, kind in 13u8..240, value: Vec<u8>,
    ) {
        let key = HmacKey::new(&[3; 20]).unwrap();
        let value = &value[..value.len().min(100)];
        let mut wire = Vec::new();
        PacketBuilder::sender(&mut wire, mode, &packet)
            .raw(TlvFlags::SENDER, TlvType(kind), value).unwrap()
            .tlv(&ControlCode::NoReply).unwrap()
            .tlv_hmac(&key).unwrap()
            .sign(&key).unwrap()
            .pad_to(size, Padding::Random(seed)).unwrap();
        prop_assert_eq!(wire.len(), size);
        prop_assert_eq!(SenderPacket::parse(mode, &wire), Ok(packet));
        prop_assert_eq!(key.verify_tlvs(packet.sequence, tlv_area(mode, &wire)), TlvIntegrity::Valid);
        if mode == Mode::Authenticated {
            prop_assert_eq!(key.verify_packet(&wire), Ok(()));
        }
        let tlvs: Vec<_> = Tlvs::new(tlv_area(mode, &wire)).map(Result::unwrap).collect();
        let kinds: Vec<u8> = tlvs.iter().map(|tlv| tlv.kind.0).collect();
        prop_assert_eq!(kinds, [kind, 10, 8, 1]);
        prop_assert_eq!(tlvs[0].value, value);
        // Cut anywhere, it is refused or shorter, and the HMAC does not vouch for TLVs that are gone.
        for cut in 0..wire.len() {
            let _ = SenderPacket::parse(mode, &wire[..cut]);
            let integrity = key.verify_tlvs(packet.sequence, tlv_area(mode, &wire[..cut]));
            let hmac_end = mode.base_len() + tlvs[2].offset + TLV_HEADER_LEN + TAG_LEN;
            prop_assert!(cut >= hmac_end || integrity != TlvIntegrity::Valid);
        }
    }

    #[test]
    fn arbitrary_bytes_are_survived(area in areas(), mode in modes(), facts in reflections()) {
        let key = HmacKey::new(&[3; 20]).unwrap();
        let mut wire = vec![0x55; mode.base_len()];
        wire.extend_from_slice(&area);
        let _ = key.verify_packet(&wire);
        let _ = StreamTag::find(&wire);
        let _ = StreamTag::find(&area);
        let _ = ReflectorPacket::parse(mode, &area);
        let framed = Tlvs::new(&area).filter(Result::is_ok).count();
        let broken = Tlvs::new(&area).filter(Result::is_err).count();
        prop_assert!(broken <= 1);
        reflect_in_place(mode, &mut wire, &facts).unwrap();
        let met = reflect_tlvs(tlv_area_mut(mode, &mut wire), judge);
        prop_assert!(met.count <= framed + broken);
        // Nothing but flags octets may differ.
        let mut flags: Vec<usize> = Tlvs::new(&area).map_while(Result::ok).map(|tlv| tlv.offset).collect();
        flags.extend(met.malformed_at);
        for (at, (old, new)) in area.iter().zip(tlv_area(mode, &wire)).enumerate() {
            prop_assert!(old == new || flags.contains(&at), "octet {} changed", at);
        }
        let _ = key.resign_tlvs(1, tlv_area_mut(mode, &mut wire));
        fail_integrity(tlv_area_mut(mode, &mut wire));
        prop_assert_eq!(wire.len(), mode.base_len() + area.len());
    }
}

/// Units of a byte stream: those that a sender may have.
fn pictures() -> impl Strategy<Value = Vec<u8>> {
    let unit = (0_u8..=3, 1_u8..=23, prop::collection::vec(1_u8..=255, 1..400));
    prop::collection::vec(unit, 1..12).prop_map(|units| {
        let mut stream = Vec::new();
        for (reference, kind, rest) in units {
            h264::write_nal_unit(&mut stream, &[&[reference << 5 | kind][..], &rest].concat());
        }
        stream
    })
}

proptest! {
    #[test]
    fn pictures_come_whole_out_of_packets_in_any_order(
        pictures in prop::collection::vec(pictures(), 1..5),
        most in 3_usize..300,
        first in any::<u16>(),
        seed in any::<u64>(),
    ) {
        let mut packets = Vec::new();
        for (time, picture) in (1_u32..).zip(&pictures) {
            let payloads = h264::packetize(picture, most);
            let last = payloads.len() - 1;
            packets.extend(payloads.into_iter().enumerate().map(|(index, payload)| (time, index == last, payload)));
        }
        // All that came is taken only at the end: the order cannot matter below the window.
        prop_assume!(packets.len() < 3_000);
        let mut numbered: Vec<_> = (0_u16..).map(|index| first.wrapping_add(index)).zip(packets).collect();
        numbered.sort_by_key(|(number, _)| (u64::from(*number) + 1).wrapping_mul(seed | 1));
        let mut depacketizer = h264::Depacketizer::default();
        for (number, (time, marker, payload)) in &numbered {
            prop_assert!(payload.len() <= most);
            depacketizer.push(*number, *time, *marker, payload);
            depacketizer.push(*number, *time, *marker, payload);
        }
        prop_assert_eq!(depacketizer.counts().duplicates, numbered.len() as u64);
        for picture in &pictures {
            let unit = depacketizer.pop().expect("all of it came");
            prop_assert!(unit.whole);
            prop_assert_eq!(&unit.bytes, picture);
        }
        prop_assert_eq!(depacketizer.force(), None);
    }

    #[test]
    fn of_lossy_packets_only_units_that_were_sent_come_out(
        pictures in prop::collection::vec(pictures(), 1..5),
        most in 3_usize..300,
        lost in any::<u64>(),
    ) {
        let mut depacketizer = h264::Depacketizer::default();
        let mut number = 0_u16;
        let mut missing = 0;
        for (time, picture) in (1_u32..).zip(&pictures) {
            let payloads = h264::packetize(picture, most);
            for (index, payload) in payloads.iter().enumerate() {
                let loses = number > 0 && lost >> (number % 64) & 1 == 1;
                if !loses {
                    depacketizer.push(number, time, index + 1 == payloads.len(), payload);
                }
                missing += u64::from(loses);
                number += 1;
            }
        }
        let mut told = 0;
        while let Some(unit) = depacketizer.force() {
            let sent = &pictures[unit.timestamp as usize - 1];
            let mut of: Vec<_> = h264::nal_units(sent).collect();
            for part in h264::nal_units(&unit.bytes) {
                let place = of.iter().position(|other| *other == part);
                prop_assert!(place.is_some(), "a unit that was not sent");
                of.drain(..=place.unwrap());
            }
            told += unit.lost;
            // Whole: all of it, but for what stood alone in a lost packet before a unit that seems to begin a picture.
            let seems = h264::nal_units(&unit.bytes).next().is_some_and(|first| {
                (6..=9).contains(&h264::nal_type(first[0])) || first.get(1).is_some_and(|second| second & 0x80 != 0)
            });
            prop_assert!(!unit.whole || unit.bytes == *sent || seems);
        }
        // Those after the last that came are not known of.
        prop_assert!(told <= missing);
    }
}

proptest! {
    #[test]
    fn any_payloads_and_descriptions_are_survived(
        packets in prop::collection::vec(
            (any::<u8>(), 0_u32..4, any::<bool>(), prop::sample::select(vec![0x78_u8, 0x7c, 0x5c, 0x41, 0x67, 0xff]), prop::collection::vec(any::<u8>(), 0..40)),
            0..60,
        ),
        lines in prop::collection::vec("(v=0|m=video [0-9]{1,6} RTP/AVP 9[0-9]|a=rtpmap:9[0-9] H264/90000|a=fmtp:9[0-9] [a-z=;,A-Z0-9-]{0,40}|c=IN IP4 [0-9.]{1,15}|.{0,20})", 0..8),
    ) {
        let mut depacketizer = h264::Depacketizer::default();
        for (number, time, marker, first, rest) in packets {
            depacketizer.push(number.into(), time, marker, &[&[first][..], &rest].concat());
            let _ = if number % 4 == 0 { depacketizer.force() } else { depacketizer.pop() };
        }
        if let Ok(video) = format!("v=0\n{}", lines.join("\n")).parse::<sdp::Video>() {
            prop_assert_eq!(video.to_string().parse::<sdp::Video>().map(|again| again.port), Ok(video.port));
        }
    }
}
