//! Both ends over a path that loses, repeats and reorders.

use super::*;

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
