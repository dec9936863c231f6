//! Packets byte by byte, and bytes that are no packet.

use super::*;

const ERROR: ErrorEstimate =
    ErrorEstimate { synchronized: true, format: super::super::TimestampFormat::Ntp, scale: 0, multiplier: 1 };

fn sender() -> SenderPacket {
    SenderPacket { sequence: 0x0102_0304, timestamp: 0x83AA_7E80_8000_0000, error: ERROR, ssid: 0xBEEF }
}

/// Puts fields into zeros at the offsets counted off the figures.
fn bytes<const L: usize>(fields: &[(usize, &[u8])]) -> [u8; L] {
    let mut out = [0; L];
    fields.iter().for_each(|(at, field)| out[*at..at + field.len()].copy_from_slice(field));
    out
}

const SEQUENCE: &[u8] = &[1, 2, 3, 4];
const TIMESTAMP: &[u8] = &[0x83, 0xAA, 0x7E, 0x80, 0x80, 0, 0, 0];
const ERROR_AND_SSID: &[u8] = &[0x80, 0x01, 0xBE, 0xEF];

#[test]
fn sender_packets_follow_the_figures() {
    // RFC 8972, figures 1 and 3.
    let open: [u8; 44] = bytes(&[(0, SEQUENCE), (4, TIMESTAMP), (12, ERROR_AND_SSID)]);
    let auth: [u8; 112] = bytes(&[(0, SEQUENCE), (16, TIMESTAMP), (24, ERROR_AND_SSID)]);
    for (mode, wire) in [(Mode::Open, &open[..]), (Mode::Authenticated, &auth[..])] {
        let mut out = vec![0xFF; mode.base_len()];
        sender().write(mode, &mut out).unwrap();
        assert_eq!(out, wire);
        assert_eq!(SenderPacket::parse(mode, wire), Ok(sender()));
    }
}

#[test]
fn reflected_packets_follow_the_figures() {
    // RFC 8972, figures 2 and 4: own fields, receive timestamp, then copies of the sender's, then TTL.
    let (own, received): (&[u8], &[u8]) = (&[0, 0, 0, 9], &[0x11; 8]);
    let (sent, own_error): (&[u8], &[u8]) = (&[0x22; 8], &[0x40, 0x05, 0xBE, 0xEF]);
    let open: [u8; 44] = bytes(&[
        (0, own),
        (4, sent),
        (12, own_error),
        (16, received),
        (24, SEQUENCE),
        (28, TIMESTAMP),
        (36, &ERROR_AND_SSID[..2]),
        (40, &[63]),
    ]);
    let auth: [u8; 112] = bytes(&[
        (0, own),
        (16, sent),
        (24, own_error),
        (32, received),
        (48, SEQUENCE),
        (64, TIMESTAMP),
        (72, &ERROR_AND_SSID[..2]),
        (80, &[63]),
    ]);
    let facts = Reflection {
        sequence: Some(9),
        timestamp: 0x2222_2222_2222_2222,
        error: ErrorEstimate::from_bits(0x4005),
        receive_timestamp: 0x1111_1111_1111_1111,
        sender_ttl: 63,
    };
    for (mode, wire) in [(Mode::Open, &open[..]), (Mode::Authenticated, &auth[..])] {
        let mut datagram = vec![0; mode.base_len() + 3];
        sender().write(mode, &mut datagram).unwrap();
        datagram[mode.base_len()..].copy_from_slice(b"abc");
        assert_eq!(reflect_in_place(mode, &mut datagram, &facts), Ok(sender()));
        assert_eq!(datagram.split_at(mode.base_len()), (wire, &b"abc"[..]));
        let reply = ReflectorPacket::parse(mode, &datagram).unwrap();
        assert_eq!((reply.sender_sequence, reply.ssid, reply.sender_ttl), (0x0102_0304, 0xBEEF, 63));
        assert_eq!((reply.sender_timestamp, reply.sender_error), (sender().timestamp, ERROR));
    }
}

#[test]
fn nonzero_reserved_bytes_are_ignored_on_receipt() {
    // RFC 8762, 4.2.1: MBZ "MUST be ignored on receipt".
    let mut datagram = [0xFF; 44];
    let mut clean = [0; 44];
    sender().write(Mode::Open, &mut clean).unwrap();
    datagram[..16].copy_from_slice(&clean[..16]);
    assert_eq!(SenderPacket::parse(Mode::Open, &datagram), Ok(sender()));
}

/// An unauthenticated packet with these timestamps.
fn stamped(sent: u64, received: u64) -> [u8; 44] {
    bytes(&[(4, &sent.to_be_bytes()), (16, &received.to_be_bytes())])
}

#[test]
fn a_reply_is_known_by_its_receive_timestamp() {
    let second = |s: u64| s << 32;
    let cases = [
        (second(5_000), second(5_000) - 1, true),
        (second(5_000), second(1_400), true),
        (second(5_000), second(1_399), false),
        (second(5_000), second(8_600), true),
        (second(5_000), second(8_601), false),
        // Around the end of an era.
        (second(10), second(0xFFFF_FFFF), true),
        (second(0xFFFF_FFFF), second(10), true),
        (second(1 << 31), 1, false),
        // A sender's zeros, whatever its clock says.
        (second(5_000), 0, false),
        (1, 0, false),
        (0, 0, false),
    ];
    for (sent, received, reflected) in cases {
        assert_eq!(looks_reflected(Mode::Open, &stamped(sent, received)), reflected, "{sent} {received}");
    }
    let auth = |at: usize| bytes::<112>(&[(16, TIMESTAMP), (at, &[1])]);
    for (at, reflected) in [(31, false), (32, true), (39, true), (40, false)] {
        assert_eq!(looks_reflected(Mode::Authenticated, &auth(at)), reflected, "{at}");
    }
}

#[test]
fn what_senders_write_does_not_look_reflected() {
    for mode in [Mode::Open, Mode::Authenticated] {
        let mut datagram = vec![0; mode.base_len()];
        sender().write(mode, &mut datagram).unwrap();
        assert!(!looks_reflected(mode, &datagram));
        for length in 0..mode.base_len() {
            assert!(!looks_reflected(mode, &vec![0xA5; length]));
        }
    }
    // Random padding (by splitmix64), and the patterns that are usual.
    let mut state = 0_u64;
    let taken = (0..20_000).filter(|_| {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        looks_reflected(Mode::Open, &stamped(0xEB00_0000_1234_5678, z ^ (z >> 31)))
    });
    assert_eq!(taken.count(), 0);
    for pattern in [[0xFF; 8], [0xAA; 8], [0x55; 8], [0, 1, 2, 3, 4, 5, 6, 7]] {
        let received = u64::from_be_bytes(pattern);
        assert!(!looks_reflected(Mode::Open, &stamped(0xEB00_0000_1234_5678, received)));
    }
}

#[test]
fn every_shorter_length_is_refused_and_left_alone() {
    let facts =
        Reflection { sequence: None, timestamp: 1, error: ERROR, receive_timestamp: 2, sender_ttl: 3 };
    for mode in [Mode::Open, Mode::Authenticated] {
        for length in 0..mode.base_len() {
            let mut datagram = vec![0xA5; length];
            assert!(matches!(SenderPacket::parse(mode, &datagram), Err(WireError::Truncated { .. })));
            assert!(matches!(ReflectorPacket::parse(mode, &datagram), Err(WireError::Truncated { .. })));
            assert!(reflect_in_place(mode, &mut datagram, &facts).is_err());
            assert!(matches!(sender().write(mode, &mut datagram), Err(WireError::Buffer { .. })));
            assert!(datagram.iter().all(|octet| *octet == 0xA5));
            assert!(tlv_area(mode, &datagram).is_empty());
        }
    }
}
