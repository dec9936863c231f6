//! Packets of somebody who knows the protocol and the addresses, and neither tokens, nonces nor keys.

use lastmile::wire::private::{
    Abilities, Arrival, HelloReply, HelloRequest, Offer, ReportHeader, ReportKind, ReportRequest,
    ReportStatus, StreamTag, write_report,
};
use lastmile::wire::{
    ControlCode, ErrorEstimate, Mode, PacketBuilder, Padding, ReflectedControl, ReflectorPacket,
    SenderPacket, TlvFlags, TlvType, TlvValue,
};

use crate::world::Dice;

/// A packet to the reflector or, else, to the prober.
pub(crate) fn packet(dice: &mut Dice, to_peer: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    if dice.happens(20) {
        let n = dice.below(400) as usize;
        return dice.bytes(n);
    }
    let mode = if dice.happens(70) { Mode::Open } else { Mode::Authenticated };
    let token: [u8; 16] = if dice.happens(50) { [0; 16] } else { dice.bytes(16).try_into().unwrap() };
    let stream = dice.below(4) as u32;
    let (count, index) = (1 + dice.below(40) as u16, 0);
    let error = ErrorEstimate::from_bits(1);
    let ssid = if dice.happens(50) { 0 } else { dice.next() as u16 };
    let tag = StreamTag { stream, index, count, burst: dice.below(3) as u16, token };
    if to_peer {
        let base = SenderPacket { sequence: dice.next() as u32, timestamp: dice.next(), error, ssid };
        let b = PacketBuilder::sender(&mut bytes, mode, &base);
        let control = ReflectedControl {
            length: dice.next() as u16,
            count: dice.next() as u16,
            interval_ns: dice.next() as u32 >> dice.below(32),
            groups: false,
        };
        let kind = ReportKind::Arrivals;
        let built = match dice.below(6) {
            0 => b.tlv(&tag).and_then(|b| b.tlv(&ControlCode::NoReply)),
            1 => b.tlv(&tag).and_then(|b| b.tlv(&control)),
            2 => b.tlv(&control),
            3 => b.tlv(&ReportRequest {
                token,
                stream,
                page: 0,
                kind,
                acknowledge: dice.happens(50),
                end: dice.happens(5),
                value_len: 300,
            }),
            4 => b.tlv(&hello(dice, token)),
            _ => b.pad_to(1_400, Padding::Zeros),
        };
        built.unwrap();
    } else {
        let base = ReflectorPacket {
            sequence: dice.next() as u32,
            timestamp: dice.next(),
            error,
            ssid,
            receive_timestamp: dice.next(),
            sender_sequence: dice.next() as u32,
            sender_timestamp: dice.next(),
            sender_error: error,
            sender_ttl: 1,
        };
        let b = PacketBuilder::reflector(&mut bytes, mode, &base);
        let built = match dice.below(5) {
            0 => b.tlv(&tag),
            1 => b.raw(TlvFlags::NOT_CONFORMANT, TlvType::REFLECTED_CONTROL, &[0; 12]),
            2 => b.tlv(&HelloReply {
                version_min: 1,
                version_max: 1,
                nonce: dice.next(),
                offer: offer(dice, token),
            }),
            3 => b.raw(TlvFlags::NONE, TlvType::REPORT, &report(dice, stream)),
            _ => Ok(b),
        };
        built.unwrap();
    }
    bytes
}

pub(crate) fn hello(dice: &mut Dice, token: [u8; 16]) -> HelloRequest {
    HelloRequest {
        version_min: 1,
        version_max: 1,
        wanted: Abilities::ARRIVAL_REPORTS,
        nonce: dice.next(),
        token,
    }
}

fn offer(dice: &mut Dice, token: [u8; 16]) -> Offer {
    Offer {
        version: Some(1),
        abilities: Abilities(dice.next() as u32),
        token,
        lease_s: 9,
        max_packets: dice.next() as u16,
        resolution_ns: 1,
        credit: dice.next(),
        budget: dice.next(),
    }
}

/// A report full of arrivals.
pub(crate) fn report(dice: &mut Dice, stream: u32) -> Vec<u8> {
    let kind = if dice.happens(50) { ReportKind::Arrivals } else { ReportKind::Departures };
    let (token, acknowledge, end) = ([0; 16], false, false);
    let request = ReportRequest { token, stream, page: 0, kind, acknowledge, end, value_len: 300 };
    let mut value = vec![0; request.value_len()];
    request.encode_value(&mut value).unwrap();
    let head = ReportHeader {
        status: ReportStatus::Ok,
        kind,
        clock_stepped: false,
        queued: false,
        stream,
        page: 0,
        pages: dice.next() as u16,
        first_index: dice.below(20) as u16,
        resolution_ns: dice.next() as u32,
        base_ns: dice.next(),
    };
    let seen = |offset_ns| Some(Arrival { offset_ns, ecn: 0, late: false, duplicated: false, hop_limit: 0 });
    write_report(&mut value, &head, (0..20).map(seen)).unwrap();
    value
}
