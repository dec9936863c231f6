//! For any feedback, however late, twice, out of order or from the future: no panic, and rates that are finite,
//! positive and within the limits; for every controller behind every classifier.

use std::cell::Cell;

use lastmile::classify::{CLASSIFIERS, LossClass};
use lastmile::control::*;
use lastmile::node::Ecn;
use lastmile::options::Choice;
use lastmile::telemetry::Visitor;
use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};
use proptest::prelude::*;

struct Finite;

impl Visitor for Finite {
    fn number(&mut self, name: &'static str, _: &'static str, value: f64) {
        assert!(value.is_finite(), "{name}: {value}");
    }
    fn state(&mut self, _: &'static str, _: &'static str) {}
}

#[derive(Clone, Debug)]
enum Step {
    Sent(Sent),
    Feedback(Vec<Report>, Told),
    Signal(Signal),
    Timeout,
}

#[derive(Clone, Debug)]
struct Told {
    order: Vec<u32>,
    resolution: Option<Span>,
    remote_sent: Option<u64>,
    hold: Span,
    source: Source,
    receiver: Option<Summary>,
}

fn times() -> impl Strategy<Value = u64> {
    prop_oneof![0..20_000_000_000_u64, any::<u64>(), Just(0), Just(u64::MAX)]
}

fn spans() -> impl Strategy<Value = Span> {
    prop_oneof![0..1_000_000_000_i64, any::<i64>(), Just(0)].prop_map(Span::from_nanos)
}

fn ecn() -> impl Strategy<Value = Ecn> {
    prop_oneof![4 => Just(Ecn::NotEct), 1 => Just(Ecn::Ce)]
}

fn packets() -> impl Strategy<Value = Sent> {
    let size = prop_oneof![Just(1200), any::<u64>(), 0..3_u64];
    let class = prop_oneof![
        Just(PacketClass::Media),
        Just(PacketClass::Padding),
        (0..3_u32, 0..3_u16, 1..4_u16).prop_map(|(train, index, len)| PacketClass::Probe {
            train,
            index,
            len
        }),
    ];
    (prop_oneof![0..200_u64, any::<u64>()], times(), size, any::<bool>(), class).prop_map(
        |(id, at, size, app_limited, class)| Sent {
            app_limited,
            class,
            ..Sent::media(id, Bytes(size), Time::from_nanos(at))
        },
    )
}

fn fates() -> impl Strategy<Value = Fate> {
    let at = || prop::option::weighted(0.8, times().prop_map(Time::from_nanos));
    prop_oneof![
        6 => (at(), ecn()).prop_map(|(at, ecn)| Fate::Arrived { at, ecn }),
        3 => any::<bool>().prop_map(|gap| Fate::lost(if gap { LostBy::Gap } else { LostBy::Timeout })),
        1 => Just(Fate::Lost { by: LostBy::Gap, class: LossClass::Wireless }),
        1 => at().prop_map(|at| Fate::Late { at }),
    ]
}

fn summaries() -> impl Strategy<Value = Summary> {
    let rate = prop_oneof![0.0..1.0_f64, any::<f64>(), Just(f64::NAN), Just(f64::INFINITY), Just(0.0)];
    (prop_oneof![0..100_000_u64, any::<u64>()], spans(), rate).prop_map(
        |(received, over, loss_event_rate)| Summary { received: Bytes(received), over, loss_event_rate },
    )
}

fn told() -> impl Strategy<Value = Told> {
    let source = prop_oneof![
        Just(Source::Rfc8888),
        Just(Source::Quic),
        Just(Source::ReceiverReport),
        Just(Source::Native)
    ];
    (
        prop::collection::vec(0..40_u32, 0..4),
        prop::option::of(spans()),
        prop::option::of(times()),
        spans(),
        source,
        prop::option::weighted(0.3, summaries()),
    )
        .prop_map(|(order, resolution, remote_sent, hold, source, receiver)| Told {
            order,
            resolution,
            remote_sent,
            hold,
            source,
            receiver,
        })
}

fn steps() -> impl Strategy<Value = Vec<(Span, Step)>> {
    let reports =
        prop::collection::vec((packets(), fates()).prop_map(|(sent, fate)| Report { sent, fate }), 0..30);
    let signals = prop_oneof![
        Just(Signal::Idle),
        Just(Signal::PersistentCongestion),
        Just(Signal::Route { why: RouteChange::Handover }),
        Just(Signal::Route { why: RouteChange::MoreCapacity }),
        spans().prop_map(|sample| Signal::Rtt { sample }),
        any::<u64>().prop_map(|bps| Signal::Remb { rate: Rate::ip(bps) }),
        any::<u64>().prop_map(|size| Signal::Mtu { size: Bytes(size) }),
    ];
    let step = prop_oneof![
        4 => packets().prop_map(Step::Sent),
        4 => (reports, told()).prop_map(|(reports, told)| Step::Feedback(reports, told)),
        1 => signals.prop_map(Step::Signal),
        2 => Just(Step::Timeout),
    ];
    let gap = prop_oneof![0..100_000_000_i64, Just(0), Just(600_000_000_000), Just(-50_000_000)];
    prop::collection::vec((gap.prop_map(Span::from_nanos), step), 1..40)
}

fn check(controller: &dyn RateController, setting: &Setting) -> Result<(), TestCaseError> {
    let output = controller.output();
    for rate in [output.target, output.pacing] {
        prop_assert!(rate >= setting.min && rate <= setting.max, "{:?}", output);
    }
    controller.telemetry(&mut Finite);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_controller_survives(steps in steps(), min in 1..1_000_000_u64, more in 0..10_000_000_u64, start in any::<bool>(), preset in any::<bool>()) {
        let (min, max) = (Rate::ip(min), Rate::ip(min + more));
        let setting = Setting { min, max, start: start.then_some(min), ..Setting::default() };
        for (i, scheme) in CONTROLLERS.iter().enumerate() {
            let mut choice = Choice::named(scheme.name);
            if preset && scheme.options.iter().any(|opt| opt.name == "preset") {
                choice = choice.with("preset", "ns-2");
            }
            let classifier = CLASSIFIERS[(i + steps.len()) % CLASSIFIERS.len()];
            let composition = Composition {
                classifier: Some(Choice::named(classifier.name)),
                wrapper: preset.then(|| Choice::named("probe").with("every", "2").with("samples", "2")),
                ..Composition::of(choice)
            };
            let mut controller = build(&composition, &setting).unwrap();
            let mut now = Time::ZERO + Span::from_secs(1);
            for (gap, step) in &steps {
                now += *gap;
                match step {
                    Step::Sent(sent) => controller.on_sent(now, sent),
                    Step::Signal(signal) => controller.on_signal(now, *signal),
                    Step::Timeout => {
                        if let Some(at) = controller.poll_timeout() {
                            now = now.max(at.min(now + Span::from_secs(100_000)));
                            controller.on_timeout(now);
                        }
                    }
                    Step::Feedback(reports, told) => {
                        let mut reports = reports.clone();
                        let mut feedback = Feedback {
                            reports: &mut reports,
                            arrival_order: &told.order,
                            resolution: told.resolution,
                            remote_sent: told.remote_sent.map(Time::from_nanos),
                            hold: told.hold,
                            source: told.source,
                            receiver: told.receiver,
                            truth: None,
                        };
                        controller.on_feedback(now, &mut feedback);
                    }
                }
                check(&*controller, &setting)?;
            }
            for _ in 0..10_000 {
                if controller.poll_decision().is_none() && controller.poll_action().is_none() {
                    break;
                }
            }
            prop_assert!(controller.poll_decision().is_none());
        }
    }
}

/// A receiver asks for little for a while, and what it asks for arrives: when it asks for more, no controller goes on at a rate that it had before,
/// or that nothing has shown since.
#[test]
fn a_receivers_limit_bounds_the_rate_behind_it() {
    for scheme in CONTROLLERS.iter().filter(|scheme| scheme.name != "fixed") {
        let setting = Setting { min: Rate::ip(1_000), ..Setting::default() };
        let mut controller = build(&scheme.name.parse().unwrap(), &setting).unwrap();
        let (mut now, mut id) = (Time::ZERO + Span::from_secs(1), 0);
        let mut talk = |controller: &mut dyn RateController, rounds: u64, packets: u64| {
            for _ in 0..rounds {
                let sent: Vec<Sent> =
                    (id..id + packets).map(|id| Sent::media(id, Bytes(1250), now)).collect();
                sent.iter().for_each(|sent| controller.on_sent(now, sent));
                now += Span::from_millis(50);
                let came = |sent: Sent| Report { sent, fate: Fate::arrived(now.as_receiver()) };
                let mut reports: Vec<Report> = sent.into_iter().map(came).collect();
                controller.on_feedback(now, &mut Feedback::exact(&mut reports, Some(now.as_receiver())));
                id += packets;
            }
            now
        };
        let now = talk(&mut *controller, 80, 20);
        assert!(controller.output().target > Rate::ip(1_000_000), "{}", scheme.name);
        controller.on_signal(now, Signal::Remb { rate: Rate::ip(400_000) });
        let now = talk(&mut *controller, 200, 2);
        controller.on_signal(now, Signal::Remb { rate: Rate::ip(10_000_000_000) });
        let target = controller.output().target;
        assert!(target <= Rate::ip(2 * 400_000), "{}: {target}", scheme.name);
    }
}

/// Minutes of silence bring the rate down to the least, and it comes back; so do minutes in which the host finds by timeouts that
/// all packets were lost, and a classifier that the wireless link lost them.
#[test]
fn silence_stops_every_controller_that_listens() {
    let schemes = CONTROLLERS.iter().filter(|scheme| scheme.name != "fixed");
    for (scheme, told) in schemes.flat_map(|scheme| [(scheme, false), (scheme, true)]) {
        let setting = Setting { min: Rate::ip(1_000), ..Setting::default() };
        let name: Composition = scheme.name.parse().unwrap();
        let mut controller = build(&name, &setting).unwrap();
        let (mut now, id) = (Time::ZERO + Span::from_secs(1), Cell::new(0));
        let talk = |controller: &mut dyn RateController, now: &mut Time, rounds: u64| {
            for _ in 0..rounds {
                let sent: Vec<Sent> = (0..10).map(|k| Sent::media(id.get() + k, Bytes(1200), *now)).collect();
                sent.iter().for_each(|sent| controller.on_sent(*now, sent));
                *now += Span::from_millis(50);
                let came = |sent: Sent| Report { sent, fate: Fate::arrived(now.as_receiver()) };
                let mut reports: Vec<Report> = sent.into_iter().map(came).collect();
                controller.on_feedback(*now, &mut Feedback::exact(&mut reports, Some(now.as_receiver())));
                id.set(id.get() + 10);
            }
        };
        talk(&mut *controller, &mut now, 40);
        let before = controller.output().pacing;
        assert!(before > Rate::ip(500_000), "{}: {before}", scheme.name);
        // A receiver may ask for no more, but for no less than the least.
        for (asked, got) in [(400_000, 400_000), (10, 1_000), (10_000_000_000, before.bits_per_second())] {
            controller.on_signal(now, Signal::Remb { rate: Rate::ip(asked) });
            assert_eq!(controller.output().pacing, Rate::ip(got), "{}", scheme.name);
        }
        let silent_until = now + Span::from_secs(600);
        while let Some(at) = controller.poll_timeout().filter(|at| *at < silent_until) {
            let sent = Sent::media(id.replace(id.get() + 1), Bytes(1200), at);
            controller.on_sent(at, &sent);
            controller.on_timeout(at);
            if told {
                let fate = Fate::Lost { by: LostBy::Timeout, class: LossClass::Wireless };
                let mut reports = [Report { sent, fate }];
                controller.on_feedback(at, &mut Feedback::exact(&mut reports, None));
            }
        }
        let silent = controller.output().pacing;
        assert!(silent < Rate::ip(5_000), "{}: {silent}", scheme.name);
        now = silent_until;
        talk(&mut *controller, &mut now, 60);
        let after = controller.output().pacing;
        assert!(after > Rate::ip(500_000), "{}: {before}, {silent}, {after}", scheme.name);
    }
}
