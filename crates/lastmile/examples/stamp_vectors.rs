//! STAMP packets as hex, for other programs to read, and other programs' packets read as values.
//!
//! `stamp_vectors` prints lines `name role mode hex`. `stamp_vectors decode` reads such lines from standard input and
//! prints `name key=value ...`, or `name error=...`. Role is `sender` or `reflector`, mode `open` or `auth`; the key
//! of authenticated packets is the octets 0 to 31. Used by the scripts in `interop/`.

use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, BufRead as _, Write as _};

use lastmile::wire::private::{Abilities, HelloRequest, ReportKind, ReportRequest, StreamTag};
use lastmile::wire::{
    ClassOfService, ControlCode, ErrorEstimate, HmacKey, Mode, PacketBuilder, Padding, ReflectedControl,
    Reflection, ReflectorPacket, SenderPacket, TimestampFormat, TlvType, TlvValue, Tlvs, Verdict, WireError,
    reflect_in_place, reflect_tlvs, tlv_area, tlv_area_mut,
};

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = io::stdout().lock();
    if std::env::args().nth(1).as_deref() == Some("decode") {
        for line in io::stdin().lock().lines() {
            let line = line?;
            let [name, role, mode, packet] = line.split_whitespace().collect::<Vec<_>>()[..] else {
                continue;
            };
            match decode(role, mode, packet) {
                Ok(values) => writeln!(out, "{name} {values}")?,
                Err(error) => writeln!(out, "{name} error={error}")?,
            }
        }
    } else {
        for (name, role, mode, packet) in vectors()? {
            let mode = if mode == Mode::Open { "open" } else { "auth" };
            writeln!(out, "{name} {role} {mode} {}", hex(&packet))?;
        }
    }
    Ok(())
}

type Vector = (String, &'static str, Mode, Vec<u8>);

fn key() -> Result<HmacKey, WireError> {
    HmacKey::new(&std::array::from_fn::<u8, 32, _>(|i| i as u8))
}

fn vectors() -> Result<Vec<Vector>, WireError> {
    let mut all = Vec::new();
    for (mode, suffix) in [(Mode::Open, "open"), (Mode::Authenticated, "auth")] {
        let format = if mode == Mode::Open { TimestampFormat::Ntp } else { TimestampFormat::Ptp };
        let error = ErrorEstimate::from_nanos(1_000_000, true, format);
        let timestamp = format.from_unix_nanos(1_763_715_600_123_456_789);
        let packet = SenderPacket { sequence: 0x0102_0304, timestamp, error, ssid: 0x0506 };
        let mut bare = Vec::new();
        PacketBuilder::sender(&mut bare, mode, &packet).sign(&key()?)?;
        let mut full = Vec::new();
        all_tlvs(PacketBuilder::sender(&mut full, mode, &packet))?
            .tlv_hmac(&key()?)?
            .sign(&key()?)?
            .pad_to(600, Padding::Random(1))?;
        all.push((format!("bare-{suffix}"), "sender", mode, bare));
        all.push((format!("full-{suffix}"), "sender", mode, full.clone()));
        all.push((format!("reflected-{suffix}"), "reflector", mode, reflect(mode, full, error, timestamp)?));
    }
    Ok(all)
}

/// One of each TLV; not a combination that a reflector would act on.
fn all_tlvs(builder: PacketBuilder<'_>) -> Result<PacketBuilder<'_>, WireError> {
    let cos = ClassOfService { dscp_wanted: 46, ecn_wanted: 1, ..ClassOfService::default() };
    let hello =
        HelloRequest { version_min: 1, version_max: 1, wanted: Abilities(0x7F), nonce: 7, token: [0; 16] };
    let (kind, value_len) = (ReportKind::Arrivals, 64);
    builder
        .tlv(&StreamTag { stream: 7, index: 3, count: 60, burst: 0, token: [0xAB; 16] })?
        .tlv(&cos)?
        .tlv(&ControlCode::SameLink)?
        .tlv(&ReflectedControl { length: 1472, count: 4, interval_ns: 1_200_000, groups: false })?
        .tlv(&hello)?
        .tlv(&ReportRequest {
            token: [0xAB; 16],
            stream: 7,
            page: 0,
            kind,
            acknowledge: false,
            end: false,
            value_len,
        })
}

fn reflect(mode: Mode, mut packet: Vec<u8>, error: ErrorEstimate, now: u64) -> Result<Vec<u8>, WireError> {
    let facts = Reflection {
        sequence: Some(1),
        timestamp: now + 2,
        error,
        receive_timestamp: now + 1,
        sender_ttl: 64,
    };
    reflect_in_place(mode, &mut packet, &facts)?;
    let area = tlv_area_mut(mode, &mut packet);
    reflect_tlvs(
        area,
        |tlv| if tlv.kind == TlvType::HELLO { Verdict::Unrecognized } else { Verdict::Understood },
    );
    key()?.resign_tlvs(1, area);
    if mode == Mode::Authenticated {
        key()?.sign_base(&mut packet)?;
    }
    Ok(packet)
}

fn decode(role: &str, mode: &str, packet: &str) -> Result<String, Box<dyn Error>> {
    let mode = if mode == "auth" { Mode::Authenticated } else { Mode::Open };
    let packet = unhex(packet).ok_or("not hex")?;
    let mut line = String::new();
    let sequence = if role == "sender" {
        let p = SenderPacket::parse(mode, &packet)?;
        write!(line, "seq={} ts={:#x} err={:#x} ssid={}", p.sequence, p.timestamp, p.error.bits(), p.ssid)?;
        p.sequence
    } else {
        let p = ReflectorPacket::parse(mode, &packet)?;
        write!(line, "seq={} ts={:#x} err={:#x} ssid={}", p.sequence, p.timestamp, p.error.bits(), p.ssid)?;
        write!(
            line,
            " rx={:#x} sseq={} sts={:#x}",
            p.receive_timestamp, p.sender_sequence, p.sender_timestamp
        )?;
        write!(line, " serr={:#x} ttl={}", p.sender_error.bits(), p.sender_ttl)?;
        p.sequence
    };
    let area = tlv_area(mode, &packet);
    if mode == Mode::Authenticated {
        write!(line, " base_hmac={}", key()?.verify_base(&packet).is_ok())?;
    }
    write!(line, " tlv_hmac={:?}", key()?.verify_tlvs(sequence, area))?;
    for tlv in Tlvs::new(area) {
        let tlv = tlv?;
        write!(line, " tlv={}:{:02x}:{}", tlv.kind.0, tlv.flags.bits(), hex(tlv.value))?;
        if tlv.kind == TlvType::CLASS_OF_SERVICE {
            let cos = ClassOfService::decode_value(tlv.value)?;
            write!(line, " dscp1={} dscp2={} ecn={}", cos.dscp_wanted, cos.dscp_received, cos.ecn_received)?;
        }
    }
    Ok(line)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, octet| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{octet:02x}");
        text
    })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |octet: &u8| char::from(*octet).to_digit(16).map(|d| d as u8);
    text.as_bytes().chunks(2).map(|pair| Some(digit(pair.first()?)? << 4 | digit(pair.get(1)?)?)).collect()
}
