//! Receivers that report nonsense, or anything that would raise the rate: it stays within what was really sent.

use lastmile::classify::{CLASSIFIERS, Discriminator};
use lastmile::control::tfrc::{Receiver, ReceiverPacket, TfrcConfig};
use lastmile::control::*;
use lastmile::endpoint::stream::{ControlConfig, Decision, End, Sender, SenderConfig, SenderRate};
use lastmile::node::{Datagram, Ecn, Input, Node, Output, PortId};
use lastmile::options::Choice;
use lastmile::time::{Epoch, Span, Time};
use lastmile::units::{Bytes, Rate};
use lastmile::wire::{Reported, RtpPacket, TfrcReport, write_feedback, write_tfrc_report};
use proptest::prelude::*;

fn rates() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), 0.0..1.0_f64, Just(-1.0), Just(f64::NAN), Just(f64::INFINITY), Just(1e-300)]
}

fn spans() -> impl Strategy<Value = i64> {
    prop_oneof![Just(0), Just(1), 0..200_000_000_i64, Just(i64::MAX), Just(-5)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// 400 kbit/s are sent, whatever is allowed. Reports come every 50 ms and are right in their round-trip time of 40 ms alone.
    #[test]
    fn no_report_raises_tfrc_far_above_what_is_sent(
        told in prop::collection::vec((prop_oneof![Just(u64::MAX), Just(0), any::<u32>().prop_map(u64::from)], spans(), rates()), 1..200),
        preset in prop_oneof![Just("rfc"), Just("ns-2")],
    ) {
        let setting = Setting { packet_size: Bytes(1000), ..Setting::default() };
        let name = format!("tfrc(form=receiver, preset={preset})");
        let mut controller = build(&name.parse().unwrap(), &setting).unwrap();
        let mut now = Time::ZERO + Span::from_secs(1);
        let mut id = 0;
        for (received, over, loss_event_rate) in told {
            let mut sent = Sent::media(id, Bytes(1000), now);
            for k in 0..3 {
                sent = Sent::media(id, Bytes(1000), now + Span::from_millis(k));
                controller.on_sent(sent.at, &sent);
                id += 1;
            }
            now = sent.at + Span::from_millis(48);
            let mut reports = [Report { sent, fate: Fate::Arrived { at: None, ecn: Ecn::NotEct } }];
            let summary = Summary { received: Bytes(received), over: Span::from_nanos(over), loss_event_rate };
            let mut feedback = Feedback { hold: Span::from_millis(8), ..Feedback::exact(&mut reports, None) };
            (feedback.resolution, feedback.receiver) = (None, Some(summary));
            controller.on_feedback(now, &mut feedback);
            // 480 kbit/s over the shortest round; four times that, and a window of 4 packets in 40 ms.
            let allowed = controller.output().pacing;
            prop_assert!(allowed <= Rate::ip(2_500_000), "{allowed}");
        }
    }

    /// A receiver takes any packets, and what it reports is possible.
    #[test]
    fn what_a_receiver_counts_is_possible(
        packets in prop::collection::vec((prop_oneof![0..500_u64, any::<u64>()], any::<u64>(), any::<u64>(), prop::option::of(spans()), -1_000_000..100_000_000_i64, any::<bool>()), 1..300),
        which in 0..CLASSIFIERS.len(),
    ) {
        let classifier = Discriminator::new(&Choice::named(CLASSIFIERS[which].name)).unwrap();
        let mut receiver = Receiver::new(&TfrcConfig::default(), Some(classifier), None);
        let mut now = Time::ZERO + Span::from_secs(1);
        let mut all = 0_u64;
        for (number, size, sent, rtt, wait, marked) in packets {
            now += Span::from_nanos(wait.max(0));
            let ecn = if marked { Ecn::Ce } else { Ecn::NotEct };
            let rtt = rtt.map(Span::from_nanos);
            let packet = ReceiverPacket {
                number,
                size: Bytes(size),
                sent: Time::from_nanos(sent),
                rtt,
                round: number,
                ecn,
            };
            all = all.saturating_add(size);
            receiver.suit(Some(Span::from_nanos(wait)));
            receiver.on_packet(now, &packet, None);
            if let Some(told) = receiver.poll_feedback(now) {
                let Summary { received, over, loss_event_rate } = told.summary;
                prop_assert!((0.0..=1.0).contains(&loss_event_rate), "{loss_event_rate}");
                prop_assert!(received.0 <= all && over >= Span::ZERO && told.delay >= Span::ZERO);
            }
            while receiver.poll_decision().is_some() {}
        }
    }

    /// Reports on packets that were never sent, and reports that nobody asked for, are no feedback: the four packets of the
    /// beginning and a packet in a second leave, and no more.
    #[test]
    fn reports_on_nothing_are_no_feedback(
        forged in prop::collection::vec((100_u16.., any::<u32>(), any::<u32>(), any::<u32>()), 1..40),
        asked in any::<bool>(),
    ) {
        let peer = "192.0.2.2:5004".parse().unwrap();
        let control = if asked { "tfrc(form=receiver)" } else { "sqrt" }.parse().unwrap();
        let config = SenderConfig {
            stop: Time::ZERO + Span::from_secs(100),
            epoch: Epoch::from_unix_nanos(1_700_000_000_000_000_000),
            ..SenderConfig::new(peer, 7, SenderRate::Controlled(ControlConfig::new(control)))
        };
        let mut sender = Sender::new(config).unwrap();
        let mut now = Time::ZERO;
        for second in 0..12_u64 {
            for (sequence, delay, received, over) in &forged {
                now = (now + Span::from_millis(20)).max(Time::from_nanos(second * 1_000_000_000));
                let mut bytes = Vec::new();
                let sequence = if asked { *sequence } else { sequence % 3 };
                write_tfrc_report(&mut bytes, &TfrcReport {
                    ssrc: 9,
                    source: 7,
                    sequence,
                    scheme: *delay as u16,
                    echo: *delay,
                    delay: Span::from_micros((*delay).into()),
                    received: Bytes((*received).into()),
                    over: Span::from_micros((*over).into()),
                    loss_event_rate: 0.0,
                });
                let datagram = Datagram::udp(peer, "192.0.2.1:5004".parse().unwrap(), bytes);
                sender.handle(now, Input::Datagram { port: PortId(0), at: now, datagram });
                while !matches!(sender.poll(now), Output::Wait(_)) {}
            }
        }
        prop_assert!(sender.sent().packets <= 15, "{:?}", sender.sent());
    }
}

/// Everything arrives for 2 s, and is told of after 20 ms. From then on the receiver says what it said last, or nothing, or that
/// newer packets are missing: that is no feedback, the rate falls at once and the stream ends after 15 s.
#[test]
fn feedback_without_news_is_no_feedback() {
    let peer = "192.0.2.2:5004".parse().unwrap();
    let came = |count: u16| vec![Reported::arrived(Ecn::NotEct, Some(Span::ZERO)); count.into()];
    for control in ["lastmile", "nada", "tfrc", "tfrc+spike", "tfrc(preset=ns-2)", "multfrc", "vtp", "sqrt"] {
        for what in ["the same", "nothing", "missing"] {
            let rate =
                ControlConfig { max: Rate::ip(1_000_000), ..ControlConfig::new(control.parse().unwrap()) };
            let config = SenderConfig {
                stop: Time::ZERO + Span::from_secs(100),
                ..SenderConfig::new(peer, 7, SenderRate::Controlled(rate))
            };
            let mut sender = Sender::new(config).unwrap();
            let (mut newest, mut heard, mut ended) = (0, 0, None);
            for tick in 0..2_000_i64 {
                let now = Time::ZERO + Span::from_millis(10 * tick);
                sender.handle(now, Input::Wake);
                let mut left = Vec::new();
                loop {
                    match sender.poll(now) {
                        Output::Wait(_) => break,
                        Output::Transmit(transmit) => left.push(transmit),
                        Output::Event(Decision::MediaEnded { why, .. }) => ended = Some((now, why)),
                        Output::Event(_) => {}
                    }
                }
                for transmit in left.iter().filter(|transmit| transmit.id.0 > 0) {
                    newest =
                        RtpPacket::parse(transmit.datagram.payload.udp().unwrap()).unwrap().header.sequence;
                    sender.handle(now, Input::Sent { id: transmit.id, at: transmit.at });
                }
                if tick % 5 != 2 || (tick < 200 && newest == heard) {
                    continue;
                }
                let mut bytes = Vec::new();
                let told = match what {
                    _ if tick < 200 => came(newest - heard),
                    "the same" => came(5),
                    "nothing" => Vec::new(),
                    _ => [came(1), vec![Reported::default(); usize::from(newest - heard)]].concat(),
                };
                if tick < 200 {
                    heard = newest;
                }
                let begin = (newest.max(heard) + 1).wrapping_sub(told.len() as u16);
                let begin = if what == "the same" && tick >= 200 { heard + 1 - 5 } else { begin };
                write_feedback(&mut bytes, 9, 7, begin, &told, (tick * 655) as u32);
                let datagram = Datagram::udp(peer, "192.0.2.1:5004".parse().unwrap(), bytes);
                sender.handle(now, Input::Datagram { port: PortId(0), at: now, datagram });
            }
            let sent = sender.sent().bytes;
            assert!(sent < Bytes(350_000), "{control}, {what}: {sent}");
            let (when, why) = ended.unwrap();
            assert_eq!(why, End::NoFeedback, "{control}, {what}");
            assert!(when < Time::ZERO + Span::from_millis(18_500), "{control}, {what}: {when}");
        }
    }
}
