//! Receivers that report nonsense, or anything that would raise the rate: it stays within what was really sent.

use lastmile::classify::{CLASSIFIERS, Discriminator};
use lastmile::control::tfrc::{Receiver, ReceiverPacket, TfrcConfig};
use lastmile::control::*;
use lastmile::endpoint::stream::{ControlConfig, Sender, SenderConfig, SenderRate};
use lastmile::node::{Datagram, Ecn, Input, Node, Output, PortId};
use lastmile::options::Choice;
use lastmile::time::{Epoch, Span, Time};
use lastmile::units::{Bytes, Rate};
use lastmile::wire::{TfrcReport, write_tfrc_report};
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
            let packet = ReceiverPacket { number, size: Bytes(size), sent: Time::from_nanos(sent), rtt, ecn };
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

    /// Reports on packets that were never sent, and reports that nobody asked for, are no feedback: a packet in a second leaves,
    /// and after 10 s the sender ends.
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
        prop_assert!(sender.sent().packets <= 14, "{:?}", sender.sent());
    }
}
