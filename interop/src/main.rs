//! lastmile's STAMP codec against that of `stamp-suite`: each reads what the other wrote, in both roles and modes.
//!
//! Exits with 1 and the first difference. No sockets; the programs are put against each other elsewhere.

use anyhow::{Context as _, Result, ensure};
use lastmile::wire::{
    ClassOfService, ControlCode, ErrorEstimate, HmacKey, Mode, PacketBuilder, Padding, ReflectedControl,
    Reflection, ReflectorPacket, ReturnPath, ReversePathEcn, SenderPacket, TimestampFormat, TlvFlags,
    TlvIntegrity, TlvType, TlvValue, Tlvs, Verdict, WireError, private::StreamTag, reflect_in_place,
    reflect_tlvs, tlv_area, tlv_area_mut,
};
use stamp_suite::crypto::{HmacKey as TheirKey, compute_packet_hmac};
use stamp_suite::packets::{
    AUTH_HMAC_OFFSET, ExtendedPacketAuthenticated, ExtendedPacketUnauthenticated,
    ExtendedReflectedPacketAuthenticated, ExtendedReflectedPacketUnauthenticated, PacketAuthenticated,
    PacketUnauthenticated, ReflectedPacketAuthenticated, ReflectedPacketUnauthenticated,
};
use stamp_suite::tlv::{
    ClassOfServiceTlv, ExtraPaddingTlv, ReflectedControlTlv, ReturnPathTlv, TlvList, TypedTlv,
};

const PACKET: SenderPacket = SenderPacket {
    sequence: 0x0102_0304,
    timestamp: 0x1122_3344_5566_7788,
    error: ErrorEstimate { synchronized: true, format: TimestampFormat::Ptp, scale: 20, multiplier: 200 },
    ssid: 0xABCD,
};

fn keys() -> Result<(HmacKey, TheirKey)> {
    let bytes: Vec<u8> = (0..32).collect();
    Ok((HmacKey::new(&bytes)?, TheirKey::new(bytes)?))
}

fn main() -> Result<()> {
    for mode in [Mode::Open, Mode::Authenticated] {
        they_read_our_packet(mode).with_context(|| format!("our sender, their reader, {mode:?}"))?;
        we_read_their_packet(mode).with_context(|| format!("their sender, our reader, {mode:?}"))?;
        they_read_our_reply(mode).with_context(|| format!("our reflector, their reader, {mode:?}"))?;
        we_read_their_reply(mode).with_context(|| format!("their reflector, our reader, {mode:?}"))?;
        println!("stamp-suite 1.0.0 codec, {mode:?}: four directions agree");
    }
    malformed_rule_agrees()?;
    println!("stamp-suite 1.0.0 codec: malformed rule agrees at every cut");
    Ok(())
}

/// A packet of ours with one of each TLV that both know, one that only we know, HMAC and padding.
fn ours(mode: Mode) -> Result<Vec<u8>> {
    let (key, _) = keys()?;
    let mut packet = Vec::new();
    PacketBuilder::sender(&mut packet, mode, &PACKET)
        .tlv(&StreamTag { stream: 1, index: 2, count: 60, burst: 0, token: [7; 16] })?
        .tlv(&ClassOfService { dscp_wanted: 46, ecn_wanted: 1, ..ClassOfService::default() })?
        .tlv(&ControlCode::SameLink)?
        .tlv(&ReflectedControl { length: 1472, count: 4, interval_ns: 1_200_000, groups: false })?
        .tlv_hmac(&key)?
        .sign(&key)?
        .pad_to(400, Padding::Random(5))?;
    Ok(packet)
}

fn they_read_our_packet(mode: Mode) -> Result<()> {
    let packet = ours(mode)?;
    let (_, key) = keys()?;
    let (base, list) = match mode {
        Mode::Open => {
            let p = ExtendedPacketUnauthenticated::from_bytes(&packet)?;
            let b = p.base;
            ((b.sequence_number, b.timestamp, b.error_estimate, b.ssid), p.tlvs)
        }
        Mode::Authenticated => {
            let p = ExtendedPacketAuthenticated::from_bytes(&packet)?;
            let b = p.base;
            ensure!(b.hmac == compute_packet_hmac(&key, &packet, AUTH_HMAC_OFFSET), "base HMAC");
            ((b.sequence_number, b.timestamp, b.error_estimate, b.ssid), p.tlvs)
        }
    };
    ensure!(
        base == (PACKET.sequence, PACKET.timestamp, PACKET.error.bits(), PACKET.ssid),
        "base fields {base:?}"
    );
    let theirs = stamp_suite::error_estimate::ErrorEstimate::from_wire(base.2);
    let nanos = theirs.error_seconds() * 1e9;
    ensure!((nanos - PACKET.error.nanos() as f64).abs() <= 1.0, "error estimate {nanos} ns");
    list.verify_hmac(&key, &packet[..4], tlv_area(mode, &packet)).context("TLV HMAC")?;
    ensure!(list.iter().all(|tlv| tlv.is_unrecognized()), "a sender's TLVs carry U");
    let cos: ClassOfServiceTlv = find(&list)?;
    ensure!((cos.dscp1, cos.ecn1, cos.rpd, cos.rpe) == (46, 1, 0, 0), "{cos:?}");
    let path: ReturnPathTlv = find(&list)?;
    ensure!(path.get_control_code() == Some(1), "{path:?}");
    let control: ReflectedControlTlv = find(&list)?;
    let fields = (
        control.length_of_reflected_packet,
        control.number_of_reflected_packets,
        control.interval_nanoseconds,
    );
    ensure!(fields == (1472, 4, 1_200_000), "{control:?}");
    ensure!(list.iter().any(|tlv| tlv.tlv_type.to_byte() == TlvType::STREAM.0), "our own TLV is kept");
    Ok(())
}

fn find<T: TypedTlv>(list: &TlvList) -> Result<T> {
    let raw = list.iter().find(|tlv| tlv.tlv_type == T::TYPE).with_context(|| format!("no {:?}", T::TYPE))?;
    Ok(T::from_raw(raw)?)
}

fn their_tlvs(sequence: u32, key: &TheirKey, cos: ClassOfServiceTlv) -> Result<TlvList> {
    let mut list = TlvList::new();
    list.push(cos.to_raw())?;
    list.push(ReturnPathTlv::with_control_code(0).to_raw())?;
    list.push(ReflectedControlTlv::new(1400, 30, 1_000).to_raw())?;
    list.push(ExtraPaddingTlv::new(100).to_raw())?;
    list.set_hmac(key, &sequence.to_be_bytes());
    Ok(list)
}

fn check_their_tlvs(mode: Mode, packet: &[u8], sequence: u32) -> Result<()> {
    let (key, _) = keys()?;
    let area = tlv_area(mode, packet);
    ensure!(key.verify_tlvs(sequence, area) == TlvIntegrity::Valid, "TLV HMAC");
    let all = Tlvs::new(area).collect::<Result<Vec<_>, WireError>>()?;
    let value = |kind| all.iter().find(|tlv| tlv.kind == kind).map(|tlv| tlv.value).context("TLV missing");
    let path = ReturnPath::decode(value(TlvType::RETURN_PATH)?)?;
    ensure!(path == ReturnPath::Control(ControlCode::NoReply), "{path:?}");
    let control = ReflectedControl::decode_value(value(TlvType::REFLECTED_CONTROL)?)?;
    ensure!(
        control == ReflectedControl { length: 1400, count: 30, interval_ns: 1_000, groups: false },
        "{control:?}"
    );
    Ok(())
}

fn we_read_their_packet(mode: Mode) -> Result<()> {
    let (ours, key) = keys()?;
    let list = their_tlvs(PACKET.sequence, &key, ClassOfServiceTlv::new(34, 2))?;
    let (sequence_number, timestamp, error_estimate, ssid) =
        (PACKET.sequence, PACKET.timestamp, PACKET.error.bits(), PACKET.ssid);
    let packet = match mode {
        Mode::Open => {
            let base =
                PacketUnauthenticated { sequence_number, timestamp, error_estimate, ssid, mbz: [0; 28] };
            ExtendedPacketUnauthenticated::with_tlvs(base, list).to_bytes()
        }
        Mode::Authenticated => {
            let mut base = PacketAuthenticated {
                sequence_number,
                mbz0: [0; 12],
                timestamp,
                error_estimate,
                ssid,
                mbz1: [0; 68],
                hmac: [0; 16],
            };
            base.hmac = compute_packet_hmac(&key, &base.to_bytes(), AUTH_HMAC_OFFSET);
            let packet = ExtendedPacketAuthenticated::with_tlvs(base, list).to_bytes();
            ours.verify_packet(&packet)?;
            packet
        }
    };
    ensure!(SenderPacket::parse(mode, &packet)? == PACKET);
    check_their_tlvs(mode, &packet, PACKET.sequence)?;
    let cos = cos_of(mode, &packet)?;
    ensure!(cos == ClassOfService { dscp_wanted: 34, ecn_wanted: 2, ..ClassOfService::default() }, "{cos:?}");
    Ok(())
}

fn cos_of(mode: Mode, packet: &[u8]) -> Result<ClassOfService> {
    let mut tlvs = Tlvs::new(tlv_area(mode, packet)).map_while(Result::ok);
    let tlv = tlvs.find(|tlv| tlv.kind == TlvType::CLASS_OF_SERVICE).context("no CoS")?;
    Ok(ClassOfService::decode_value(tlv.value)?)
}

const FACTS: Reflection = Reflection {
    sequence: Some(9),
    timestamp: 0x22,
    error: ErrorEstimate { synchronized: false, format: TimestampFormat::Ntp, scale: 1, multiplier: 3 },
    receive_timestamp: 0x11,
    sender_ttl: 61,
};

fn they_read_our_reply(mode: Mode) -> Result<()> {
    let (key, their_key) = keys()?;
    let mut packet = ours(mode)?;
    let size = packet.len();
    reflect_in_place(mode, &mut packet, &FACTS)?;
    let area = tlv_area_mut(mode, &mut packet);
    reflect_tlvs(area, |tlv| match tlv.kind {
        TlvType::CLASS_OF_SERVICE => {
            let Ok(asked) = ClassOfService::decode_value(tlv.value) else { return Verdict::Malformed };
            let told = ClassOfService {
                dscp_received: 10,
                ecn_received: 3,
                dscp_refused: true,
                reverse_ecn: ReversePathEcn::Set,
                ..asked
            };
            Verdict::of(&told.encode_value(tlv.value))
        }
        TlvType::REFLECTED_CONTROL => Verdict::NotConformant,
        TlvType::STREAM => Verdict::Unrecognized,
        _ => Verdict::Understood,
    });
    key.resign_tlvs(9, area);
    if mode == Mode::Authenticated {
        key.sign_base(&mut packet)?;
    }
    ensure!(packet.len() == size);
    let (base, list) = match mode {
        Mode::Open => {
            let p = ExtendedReflectedPacketUnauthenticated::from_bytes(&packet)?;
            let b = p.base;
            let own = (
                b.sequence_number,
                b.timestamp,
                b.error_estimate,
                b.ssid,
                b.receive_timestamp,
                b.sess_sender_ttl,
            );
            let copied = (b.sess_sender_seq_number, b.sess_sender_timestamp, b.sess_sender_err_estimate);
            ((own, copied), p.tlvs)
        }
        Mode::Authenticated => {
            let p = ExtendedReflectedPacketAuthenticated::from_bytes(&packet)?;
            let b = p.base;
            ensure!(b.hmac == compute_packet_hmac(&their_key, &packet, AUTH_HMAC_OFFSET), "base HMAC");
            let own = (
                b.sequence_number,
                b.timestamp,
                b.error_estimate,
                b.ssid,
                b.receive_timestamp,
                b.sess_sender_ttl,
            );
            let copied = (b.sess_sender_seq_number, b.sess_sender_timestamp, b.sess_sender_err_estimate);
            ((own, copied), p.tlvs)
        }
    };
    let own = (9, 0x22, FACTS.error.bits(), PACKET.ssid, 0x11, 61);
    ensure!(base == (own, (PACKET.sequence, PACKET.timestamp, PACKET.error.bits())), "base fields {base:x?}");
    list.verify_hmac(&their_key, &packet[..4], tlv_area(mode, &packet)).context("TLV HMAC")?;
    let cos: ClassOfServiceTlv = find(&list)?;
    let wanted = ClassOfServiceTlv { dscp1: 46, ecn1: 1, dscp2: 10, ecn2: 3, rpd: 1, rpe: 3 };
    ensure!(cos == wanted, "{cos:?}");
    for tlv in list.iter() {
        let flags = match TlvType(tlv.tlv_type.to_byte()) {
            TlvType::STREAM => TlvFlags::UNRECOGNIZED,
            TlvType::REFLECTED_CONTROL => TlvFlags::NOT_CONFORMANT,
            _ => TlvFlags::NONE,
        };
        ensure!(tlv.flags.to_byte() == flags.bits(), "flags of {tlv:?}");
    }
    Ok(())
}

fn we_read_their_reply(mode: Mode) -> Result<()> {
    let (ours, key) = keys()?;
    let received =
        their_tlvs(9, &key, ClassOfServiceTlv::for_response(46, 1, 10, 3, true, false))?.to_bytes();
    let mut list = TlvList::parse(&received)?;
    list.apply_reflector_flags(Some(&key), &9u32.to_be_bytes(), &received);
    list.set_hmac_response(&key, &9u32.to_be_bytes());
    let expected = ReflectorPacket {
        sequence: 9,
        timestamp: FACTS.timestamp,
        error: FACTS.error,
        ssid: PACKET.ssid,
        receive_timestamp: FACTS.receive_timestamp,
        sender_sequence: PACKET.sequence,
        sender_timestamp: PACKET.timestamp,
        sender_error: PACKET.error,
        sender_ttl: 61,
    };
    let packet = match mode {
        Mode::Open => {
            let base = ReflectedPacketUnauthenticated {
                sequence_number: 9,
                timestamp: expected.timestamp,
                error_estimate: expected.error.bits(),
                ssid: expected.ssid,
                receive_timestamp: expected.receive_timestamp,
                sess_sender_seq_number: expected.sender_sequence,
                sess_sender_timestamp: expected.sender_timestamp,
                sess_sender_err_estimate: expected.sender_error.bits(),
                mbz2: [0; 2],
                sess_sender_ttl: 61,
                mbz3: [0; 3],
            };
            ExtendedReflectedPacketUnauthenticated::with_tlvs(base, list).to_bytes()
        }
        Mode::Authenticated => {
            let mut base = ReflectedPacketAuthenticated {
                sequence_number: 9,
                mbz0: [0; 12],
                timestamp: expected.timestamp,
                error_estimate: expected.error.bits(),
                ssid: expected.ssid,
                mbz1: [0; 4],
                receive_timestamp: expected.receive_timestamp,
                mbz2: [0; 8],
                sess_sender_seq_number: expected.sender_sequence,
                mbz3: [0; 12],
                sess_sender_timestamp: expected.sender_timestamp,
                sess_sender_err_estimate: expected.sender_error.bits(),
                mbz4: [0; 6],
                sess_sender_ttl: 61,
                mbz5: [0; 15],
                hmac: [0; 16],
            };
            base.hmac = compute_packet_hmac(&key, &base.to_bytes(), AUTH_HMAC_OFFSET);
            let packet = ExtendedReflectedPacketAuthenticated::with_tlvs(base, list).to_bytes();
            ours.verify_packet(&packet)?;
            packet
        }
    };
    ensure!(ReflectorPacket::parse(mode, &packet)? == expected);
    check_their_tlvs(mode, &packet, 9)?;
    ensure!(
        Tlvs::new(tlv_area(mode, &packet)).flatten().all(|tlv| tlv.flags.usable()),
        "their reflector cleared U"
    );
    let wanted = ClassOfService {
        dscp_wanted: 46,
        ecn_wanted: 1,
        dscp_received: 10,
        ecn_received: 3,
        dscp_refused: true,
        reverse_ecn: ReversePathEcn::Refused,
    };
    ensure!(cos_of(mode, &packet)? == wanted);
    Ok(())
}

/// Both sides set the same flags on a TLV area cut at every length.
fn malformed_rule_agrees() -> Result<()> {
    let mut whole = Vec::new();
    PacketBuilder::sender(&mut whole, Mode::Open, &PACKET)
        .tlv(&ClassOfService::default())?
        .raw(TlvFlags::SENDER, TlvType(200), &[1, 2, 3])?
        .tlv(&ReflectedControl { length: 100, count: 1, interval_ns: 0, groups: false })?
        .raw(TlvFlags::SENDER, TlvType::CLASS_OF_SERVICE, &[1, 2, 3])?;
    let area = tlv_area(Mode::Open, &whole);
    for cut in 0..=area.len() {
        let (mut theirs, _) = TlvList::parse_lenient(&area[..cut]);
        theirs.apply_reflector_flags(None, &[0; 4], &area[..cut]);
        let mut ours = area[..cut].to_vec();
        reflect_tlvs(&mut ours, |tlv| match tlv.kind {
            TlvType::CLASS_OF_SERVICE => Verdict::of(&ClassOfService::decode_value(tlv.value)),
            TlvType::REFLECTED_CONTROL => Verdict::of(&ReflectedControl::decode_value(tlv.value)),
            _ => Verdict::Unrecognized,
        });
        let mut theirs = theirs.to_bytes();
        // Fewer octets than a TLV header: stamp-suite's list drops them (its reflector then pads with zeros), we
        // return them with M as RFC 8972, 4 has it.
        if let Some(rest @ [first, ..]) = ours.get(theirs.len()..)
            && rest.len() < 4
        {
            ensure!(*first == TlvFlags::MALFORMED.bits(), "cut at {cut}: the cut header has no M");
            theirs.extend_from_slice(rest);
        }
        // On a malformed TLV of an unknown type stamp-suite sets U beside M. Its sender stops at M either way.
        let malformed = (TlvFlags::MALFORMED | TlvFlags::UNRECOGNIZED).bits();
        for (their, our) in theirs.iter_mut().zip(&ours).filter(|(their, _)| **their == malformed) {
            *their = *our;
        }
        ensure!(theirs == ours, "cut at {cut}: theirs {theirs:02x?}, ours {ours:02x?}");
    }
    Ok(())
}
