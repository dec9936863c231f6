//! Video over a path that is cut, to a receiver that is started anew, between ends whose addresses change, and beside packets of others.

use std::sync::Arc;

use lastmile::wire::sdes::Suite;

use super::video::{Shared, Viewer, coding, controlled};
use super::*;

/// A stream of video of so many seconds to a receiver; another one takes its place at that time. `path` says what arrives of a datagram,
/// or that its host refuses it. The frames that are shown, and the sender's end.
fn streamed(
    config: SenderConfig,
    anew: Option<Time>,
    mut path: impl FnMut(&Way, Datagram) -> Result<Vec<Datagram>, Failure>,
) -> (Vec<Time>, End) {
    let seen = Shared::default();
    let expansion = config.expansion;
    let sender = coding(config, &seen, 1.0, Span::from_millis(2));
    let receiver = |ssrc| {
        let config = ReceiverConfig { epoch: EPOCH, video: Some(96), expansion, ..ReceiverConfig::new(ssrc) };
        Receiver::new(config).unwrap().with_viewer(Box::new(Viewer(Arc::clone(&seen))))
    };
    let anew = anew.map(|at| (at, receiver(9)));
    let decisions = joined(sender, receiver(8), anew, |way, datagram| {
        Ok(path(way, datagram)?.into_iter().map(|datagram| (DELAY, datagram)).collect())
    });
    let ended = decisions.iter().find_map(|what| match what {
        Decision::MediaEnded { why, .. } => Some(*why),
        _ => None,
    });
    let shown = Arc::into_inner(seen).unwrap().into_inner().unwrap().shown;
    (shown.iter().map(|(at, _)| *at).collect(), ended.unwrap())
}

/// Frames that were shown between two times, in seconds.
fn between(shown: &[Time], from: i64, to: i64) -> usize {
    shown.iter().filter(|shown| (at(1_000 * from)..at(1_000 * to)).contains(shown)).count()
}

fn lasting(control: &str, seconds: i64) -> SenderConfig {
    SenderConfig { stop: at(1_000 * seconds), ..controlled(control) }
}

/// A source is answered once two of its packets came in sequence, and before that it may send one in a second.
#[test]
fn any_one_of_the_first_packets_may_be_lost() {
    for control in ["lastmile", "tfrc", "vtp"] {
        for lost in 0..4 {
            let (mut media, mut answered) = (0, None);
            let sender = Sender::new(lasting(control, 2)).unwrap();
            joined(sender, receiver(), None, |way, datagram| {
                if !way.to_receiver {
                    answered = answered.or(Some(way.at));
                } else if datagram.payload.udp().is_some_and(|bytes| !is_rtcp(bytes)) {
                    media += 1;
                    return Ok(if media == lost + 1 { vec![] } else { vec![(DELAY, datagram)] });
                }
                Ok(vec![(DELAY, datagram)])
            });
            let answered = answered.unwrap();
            assert!(answered < at(250), "{control}, packet {lost}: {answered:?}");
        }
    }
}

/// 25 frames a second are made.
#[test]
fn a_path_that_is_cut_for_ten_seconds_carries_video_again() {
    for control in ["lastmile", "tfrc", "tfrc+spike", "vtp"] {
        let (shown, ended) = streamed(lasting(control, 60), None, |way, datagram| {
            Ok(if (at(5_000)..at(15_000)).contains(&way.at) { vec![] } else { vec![datagram] })
        });
        assert_eq!(ended, End::Stop, "{control}");
        assert_eq!(between(&shown, 6, 15), 0, "{control}");
        let after = between(&shown, 40, 60);
        assert!(between(&shown, 1, 5) > 80 && after > 400, "{control}: {after} of 500");
        // VTP comes back from a packet in seconds, by a packet in a round trip.
        let back = if control == "vtp" { 29 } else { 16 };
        let soon = between(&shown, back, back + 10);
        assert!(soon > 225, "{control}: {soon} of 250 from {back} s on");
    }
}

#[test]
fn a_receiver_that_is_started_anew_shows_video_within_a_second() {
    // Its port is closed for three seconds.
    let (shown, ended) = streamed(lasting("tfrc", 20), Some(at(8_000)), |way, datagram| {
        match (at(5_000)..at(8_000)).contains(&way.at) {
            true if way.to_receiver => Err(Failure::PortClosed),
            true => Ok(vec![]),
            false => Ok(vec![datagram]),
        }
    });
    assert_eq!((ended, between(&shown, 6, 8)), (End::Stop, 0));
    assert!(between(&shown, 9, 10) > 5 && between(&shown, 12, 20) > 180, "{:?}", between(&shown, 9, 10));
    // One that is never started again ends the stream, which says so.
    let (_, ended) = streamed(lasting("tfrc", 60), None, |way, datagram| match way.at < at(5_000) {
        true => Ok(vec![datagram]),
        false => Err(Failure::PortClosed),
    });
    assert_eq!(ended, End::PortClosed);
}

/// As when a NAT forgets it: packets come from another port, and answers to the old one are lost.
#[test]
fn a_change_of_the_senders_address_is_survived() {
    let moved: SocketAddr = "10.0.0.1:43000".parse().unwrap();
    let (shown, ended) = streamed(lasting("tfrc", 20), None, |way, mut datagram| {
        let after = way.at >= at(5_000);
        if way.to_receiver && after {
            datagram.from = moved;
        }
        if !way.to_receiver {
            if after != (datagram.to == moved) {
                return Ok(vec![]);
            }
            datagram.to = ends().0;
        }
        Ok(vec![datagram])
    });
    assert_eq!(ended, End::Stop);
    assert!(between(&shown, 5, 6) >= 10, "{}", between(&shown, 5, 6));
    assert!(between(&shown, 6, 20) > 320, "{}", between(&shown, 6, 20));
}

const ELSEWHERE: &str = "10.0.0.3:5005";

fn protected(config: SenderConfig) -> SenderConfig {
    SenderConfig { expansion: Suite::AesCm128HmacSha1_80.expansion(), ..config }
}

/// Its packets come from there from 5 s on, and those to the address before are lost.
#[test]
fn a_change_of_the_receivers_address_is_survived_with_a_key_alone() {
    let moved: SocketAddr = ELSEWHERE.parse().unwrap();
    let moving = |config: SenderConfig| {
        streamed(config, None, |way, mut datagram| {
            let after = way.at >= at(5_000);
            match way.to_receiver {
                true if after != (datagram.to == moved) => return Ok(vec![]),
                false if after => datagram.from = moved,
                _ => {}
            }
            Ok(vec![datagram])
        })
    };
    let (shown, ended) = moving(protected(lasting("lastmile", 20)));
    // Half a second until the receiver calls, and two round trips of 40 ms.
    assert_eq!((ended, between(&shown, 5, 6) >= 8), (End::Stop, true), "{}", between(&shown, 5, 6));
    assert!(between(&shown, 6, 20) > 330, "{}", between(&shown, 6, 20));
    // Without a key anybody could say so.
    let (shown, ended) = moving(lasting("lastmile", 60));
    assert_eq!((ended, between(&shown, 6, 60)), (End::NoFeedback, 0));
}

/// A path of 1.4 s there and back: the answer to a question comes after the next question left.
#[test]
fn a_new_address_is_proved_over_a_long_round_trip() {
    let moved: SocketAddr = ELSEWHERE.parse().unwrap();
    let config = protected(lasting("lastmile", 30));
    let sender = Sender::new(config.clone()).unwrap();
    let expansion = config.expansion;
    let receiver =
        Receiver::new(ReceiverConfig { epoch: EPOCH, expansion, ..ReceiverConfig::new(8) }).unwrap();
    let decisions = joined(sender, receiver, None, |way, mut datagram| {
        let after = way.at >= at(10_000);
        match way.to_receiver {
            true if after != (datagram.to == moved) => return Ok(vec![]),
            false if after => datagram.from = moved,
            _ => {}
        }
        Ok(vec![(Span::from_millis(700), datagram)])
    });
    let moves = decisions.iter().filter(|what| matches!(what, Decision::ReceiverMoved { .. })).count();
    let ended = decisions.iter().any(|what| matches!(what, Decision::MediaEnded { why: End::Stop, .. }));
    assert!(moves == 1 && ended, "{decisions:?}");
}

/// Somebody holds the receiver's packets up, and sends them on from the address of a victim.
#[test]
fn an_address_that_does_not_answer_gets_no_stream() {
    let victim: SocketAddr = ELSEWHERE.parse().unwrap();
    let (mut to_victim, mut from_victim, mut asked) = (Bytes::ZERO, Bytes::ZERO, Vec::new());
    let (shown, ended) = streamed(protected(lasting("lastmile", 60)), None, |way, mut datagram| {
        if way.to_receiver && datagram.to == victim {
            to_victim += datagram.ip_size();
            asked.push(way.at);
            return Ok(vec![]);
        }
        if !way.to_receiver && way.at >= at(5_000) {
            datagram.from = victim;
            from_victim += datagram.ip_size();
        }
        Ok(vec![datagram])
    });
    assert_eq!((ended, between(&shown, 21, 60)), (End::NoFeedback, 0));
    assert!(Bytes::ZERO < to_victim && to_victim * 2 < from_victim, "{to_victim} for {from_victim}");
    let gaps = asked.windows(2).map(|pair| pair[1] - pair[0]);
    assert!(gaps.min().unwrap() >= Span::from_millis(250), "{asked:?}");
}

/// Requests for key frames become Full Intra Requests (RFC 5104, section 4.3.1) on the way, as others send them.
#[test]
fn a_full_intra_request_is_answered_as_a_picture_loss_indication_is() {
    let shown = [false, true].map(|as_full| {
        let mut asked = 0;
        let (shown, _) = streamed(lasting("lastmile", 20), None, |way, mut datagram| {
            let lost = way.to_receiver && (at(5_000)..at(5_100)).contains(&way.at);
            let bytes = datagram.payload.udp().unwrap().to_vec();
            if !way.to_receiver && bytes.starts_with(&[0x81, 206]) {
                asked += 1;
                let full = [&[0x84, 206, 0, 4], &bytes[4..8], &[0; 4], &bytes[8..12], &[asked, 0, 0, 0]];
                if as_full {
                    datagram.payload = lastmile::node::Payload::Udp(full.concat());
                }
            }
            Ok(if lost { vec![] } else { vec![datagram] })
        });
        // One that is not heeded is repeated until the end, 75 times.
        assert!((1..8).contains(&asked), "asked {asked} times");
        between(&shown, 5, 20)
    });
    assert!(shown[0] > 340 && shown[0] == shown[1], "{shown:?}");
}

/// Beside each packet come truncated copies of it, one of an unknown payload type, and garbage; answers are cut short as well.
#[test]
fn broken_and_unknown_packets_beside_a_stream_do_not_harm_it() {
    let (clean, _) = streamed(lasting("tfrc", 20), None, |_, datagram| Ok(vec![datagram]));
    let mut number = 0_usize;
    let (shown, ended) = streamed(lasting("tfrc", 20), None, |_, datagram| {
        number += 1;
        let bytes = datagram.payload.udp().unwrap();
        let with =
            |bytes: Vec<u8>| Datagram { payload: lastmile::node::Payload::Udp(bytes), ..datagram.clone() };
        let mut unknown = bytes.to_vec();
        // Of another source, with payload type 33.
        (unknown[1], unknown[8]) = (33, !unknown[8]);
        let garbage = (0..bytes.len()).map(|at| ((at * number * 37) >> 3) as u8).collect();
        let mut all = vec![with(bytes[..number % 12].to_vec()), with(garbage)];
        if !is_rtcp(bytes) {
            all.push(with(unknown));
        } else {
            all.push(with(bytes[..bytes.len() - 1].to_vec()));
        }
        all.insert(number % 4, datagram.clone());
        Ok(all)
    });
    assert_eq!(ended, End::Stop);
    let (clean, shown) = (between(&clean, 1, 20), between(&shown, 1, 20));
    assert!(shown * 50 >= clean * 49, "{shown} of {clean}");
}
