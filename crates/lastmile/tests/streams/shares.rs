//! Places at a receiver where many want one.

use super::*;

fn hears(receiver: &mut Receiver, now: Time, from: SocketAddr, ssrc: u32, sequence: u16) {
    let header = RtpHeader { sequence, payload_type: 96, ssrc, ..RtpHeader::default() };
    let mut bytes = Vec::new();
    header.write(&mut bytes);
    bytes.resize(200, 0);
    let datagram = Datagram::udp(from, ends().1, bytes);
    receiver.handle(now, Input::Datagram { port: PortId(0), at: now, datagram });
}

/// One address sends 64 streams for half a minute; after each second a stream comes from another one.
#[test]
fn one_address_shuts_nobody_out() {
    let mut receiver = receiver();
    let greedy: SocketAddr = "203.0.113.9:9".parse().unwrap();
    let (mut found, mut told) = (Vec::new(), Vec::new());
    for second in 0..30_u16 {
        for tenth in 0..10_u16 {
            let number = 10 * second + tenth;
            let now = at(100 * i64::from(number));
            (0..64).for_each(|ssrc| hears(&mut receiver, now, greedy, ssrc, number));
            let (_, decisions, _) = drain(&mut receiver, now);
            for decision in decisions {
                match decision {
                    Decision::SourceFound { peer, .. } => found.push((second, peer)),
                    Decision::SourceTurnedAway { peer, packets, .. } => told.push((second, peer, packets)),
                    _ => {}
                }
            }
        }
        let other = SocketAddr::from(([198, 51, 100, second as u8], 9));
        (0..2).for_each(|sequence| {
            hears(&mut receiver, at(1_000 * i64::from(second) + 950), other, 7, sequence)
        });
    }
    assert_eq!(found.iter().filter(|(_, peer)| *peer == greedy).count(), 32);
    // Found by the time at which it is next asked, each in its own second or at the next one's beginning.
    for second in 0..29 {
        let other = SocketAddr::from(([198, 51, 100, second as u8], 9));
        assert!(found.iter().any(|(at, peer)| *peer == other && *at <= second + 1), "{second}: {found:?}");
    }
    // At once, and then every ten seconds: of 64 streams 32 with ten packets a second each.
    let seconds: Vec<u16> = told.iter().map(|(second, ..)| *second).collect();
    assert_eq!(seconds, [0, 10, 20]);
    assert!(told.iter().all(|(_, peer, packets)| *peer == greedy && *packets <= 32 * 101), "{told:?}");
}

/// Fresh sources by the thousand a second from one address, one packet each, and one from another whose packets are 20 ms apart.
#[test]
fn fresh_sources_of_one_address_shut_nobody_out_and_are_told_of() {
    let mut receiver = receiver();
    let (flood, other) = ("203.0.113.9:9".parse().unwrap(), "198.51.100.1:9".parse().unwrap());
    let (mut found, mut told) = (Vec::new(), Vec::new());
    for tick in 0..2_000_u32 {
        let now = at(i64::from(tick));
        (0..20).for_each(|k| hears(&mut receiver, now, flood, 1_000 + 20 * tick + k, 0));
        if tick >= 1_000 && tick % 20 == 0 {
            hears(&mut receiver, now, other, 7, (tick / 20) as u16);
        }
        for decision in drain(&mut receiver, now).1 {
            match decision {
                Decision::SourceFound { peer, .. } => found.push((tick, peer)),
                Decision::SourceTurnedAway { peer, .. } => told.push((tick, peer)),
                _ => {}
            }
        }
    }
    assert_eq!(found, [(1_020, other)]);
    assert_eq!(told, [(3, flood)], "once in ten seconds");
}

/// 300 streams of one address in turn, 50 packets a second each: more than there are places. Some are found, the others told of.
#[test]
fn of_more_streams_than_there_are_places_some_are_found() {
    let mut receiver = receiver();
    let peer = "203.0.113.9:9".parse().unwrap();
    let (mut found, mut told) = (0, 0);
    for round in 0..100_u16 {
        for ssrc in 0..300 {
            let now = at(20 * i64::from(round)) + Span::from_micros(60 * i64::from(ssrc));
            hears(&mut receiver, now, peer, ssrc, round);
            for decision in drain(&mut receiver, now).1 {
                found += usize::from(matches!(decision, Decision::SourceFound { .. }));
                told += usize::from(matches!(decision, Decision::SourceTurnedAway { .. }));
            }
        }
    }
    assert!((16..=32).contains(&found), "{found}");
    assert_eq!(told, 1);
}
