//! Both ends over a path that loses, repeats and reorders.

use super::*;

/// A path that loses, marks, copies and delays, by the numbers of the packets.
pub(super) struct Path {
    pub(super) lose: u64,
    pub(super) mark: u64,
    pub(super) copy: u64,
    pub(super) delay: fn(u64) -> Span,
}

/// Results of a stream over a path.
pub(super) struct Came {
    pub(super) sent: Sent,
    pub(super) received: Received,
    /// Packets that the path marked.
    marked: u64,
    pub(super) decisions: Vec<Decision>,
    /// The loss event rate in each report of TFRC's receiver, and how many names of schemes went to it.
    loss_event_rates: Vec<f64>,
    named: usize,
}

fn over(path: &Path, sender: Sender) -> Came {
    between(path, sender, receiver())
}

pub(super) fn between(path: &Path, sender: Sender, receiver: Receiver) -> Came {
    let (mut media, mut marked, mut named, mut loss_event_rates) = (0, 0, 0, Vec::new());
    let all = joined(sender, receiver, None, |way, mut datagram| {
        let (mut delay, mut copies) = (DELAY, 1);
        let payload = datagram.payload.udp().unwrap();
        for packet in Rtcp::all(payload).filter(|_| is_rtcp(payload)).flatten() {
            match packet {
                Rtcp::Tfrc(report) => loss_event_rates.push(report.loss_event_rate),
                Rtcp::TfrcScheme(_) => named += 1,
                _ => {}
            }
        }
        if way.to_receiver && !is_rtcp(payload) {
            media += 1;
            delay += (path.delay)(media);
            if path.mark > 0 && media % path.mark == 0 {
                datagram.ecn = Ecn::Ce;
            }
            copies += usize::from(path.copy > 0 && media % path.copy == 0);
            if path.lose > 0 && media % path.lose == 0 {
                copies = 0;
            }
            marked += u64::from(copies > 0 && datagram.ecn == Ecn::Ce);
        }
        Ok(vec![(delay, datagram); copies])
    });
    let ended =
        |what: &Decision| if let Decision::MediaEnded { sent, .. } = what { Some(*sent) } else { None };
    let left = |what: &Decision| {
        if let Decision::SourceLeft { received, .. } = what { Some(*received) } else { None }
    };
    let (sent, received) = (all.iter().find_map(ended).unwrap(), all.iter().find_map(left).unwrap());
    Came { sent, received, marked, decisions: all, loss_event_rates, named }
}

#[test]
fn both_ends_count_what_the_path_did() {
    let plain = Path { lose: 0, mark: 0, copy: 0, delay: |_| Span::ZERO };
    let Came { sent, received, .. } = over(&plain, sender(at(10_000)));
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
    let path = Path { lose: 10, mark: 7, copy: 4, delay: late };
    let Came { sent, received, marked, .. } = over(&path, sender(at(10_000)));
    let lost = sent.packets / 10;
    // The last may be among the lost: nobody knows that it was sent.
    assert!(received.lost == lost || received.lost + 1 == lost, "{} of {lost}", received.lost);
    assert_eq!(received.packets, sent.packets - lost);
    assert_eq!((received.marked, sent.marked, sent.acknowledged), (marked, marked, received.packets));
    assert_eq!(received.duplicates, sent.packets / 4 - sent.packets / 20);
    assert!(received.out_of_order > sent.packets / 5, "{}", received.out_of_order);
}

/// 750 packets between two intervals of feedback, which tells of 512 at most.
#[test]
fn all_packets_of_a_fast_stream_are_told_of() {
    let plain = Path { lose: 0, mark: 0, copy: 0, delay: |_| Span::ZERO };
    let fast = SenderConfig { rate: Rate::ip(60_000_000).into(), ..config(at(2_000)) };
    let Came { sent, received, .. } = over(&plain, Sender::new(fast).unwrap());
    assert!(sent.packets > 25_000);
    assert_eq!((received.packets, sent.acknowledged), (sent.packets, sent.packets));
}

/// Every 20th packet is lost on a path whose queue only the first ten met. The receiver has not been told of a classifier; the sender
/// names `spike`, which judges by the delays that the link lost them, and the loss event rate falls to none.
#[test]
fn the_classifier_that_a_sender_names_judges_at_the_receiver() {
    let delay = |number| if number < 10 { Span::from_millis(10) } else { Span::ZERO };
    let path = Path { lose: 20, mark: 0, copy: 0, delay };
    let came = |control: &str| {
        let control = ControlConfig {
            start: Some(Rate::ip(500_000)),
            max: Rate::ip(2_000_000),
            ..ControlConfig::new(control.parse().unwrap())
        };
        let config = SenderConfig { rate: SenderRate::Controlled(control), ..config(at(10_000)) };
        over(&path, Sender::new(config).unwrap())
    };
    let scheme = |came: &Came| {
        let told = came.decisions.iter().filter_map(|what| match what {
            Decision::SchemeHeeded { heeded } => Some(heeded.to_string()),
            Decision::SchemeNamed { scheme, .. } => Some(scheme.to_string()),
            _ => None,
        });
        told.collect::<Vec<_>>()
    };
    let unjudged = came("tfrc(form=receiver)");
    let p = *unjudged.loss_event_rates.last().unwrap();
    assert!((0.03..0.06).contains(&p), "{p}");
    assert_eq!((scheme(&unjudged), unjudged.named), (vec![], 0));
    let judged = came("tfrc(form=receiver)+spike");
    let rates = &judged.loss_event_rates;
    assert!(rates.len() > 100 && rates[rates.len() / 10..].iter().all(|p| *p == 0.0), "{rates:?}");
    assert!(judged.sent.packets > 2 * unjudged.sent.packets, "{:?} {:?}", judged.sent, unjudged.sent);
    assert_eq!(scheme(&judged), ["false", "tfrc(form=receiver)+spike", "true"]);
    assert_eq!(judged.named, 1);
    let verdicts = judged.decisions.iter().any(|what| match what {
        Decision::LossesJudged(verdicts) => verdicts.classifier == "spike" && verdicts.wireless > 20,
        _ => false,
    });
    assert!(verdicts, "{:?}", judged.decisions);
}
