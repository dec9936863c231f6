//! Capacity probing around controllers: hand-offs between 150 kbit/s and 6 Mbit/s, after a minute.

use super::path::{Came, Form, Log, Path};
use lastmile::control::*;
use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};
use proptest::prelude::*;

const LOW: Rate = Rate::ip(150_000);
const HIGH: Rate = Rate::ip(6_000_000);

fn run(name: &str, from: Rate, to: Rate) -> Log {
    watch(name, from, to).1
}

fn watch(name: &str, from: Rate, to: Rate) -> (Came, Log) {
    let path = Path {
        rate: from,
        then: Some((60, to)),
        delay: Span::from_millis(40),
        queue: 20,
        mark: u64::MAX,
        loss: 0.0,
        size: Bytes(1500),
        feedback: Span::from_millis(50),
        seconds: 120,
        seed: 1,
    };
    path.watch(name, Form::Sender)
}

/// When each hand-off was noticed, in seconds, and the capacities before and after in kbit/s.
fn hand_offs(log: &Log) -> Vec<(f64, f64, f64)> {
    let kbps = |rate: Rate| rate.bits_per_second() as f64 / 1e3;
    let noticed = log.decisions.iter().filter_map(|(at, what)| match what {
        Decision::HandOff { from, to } => Some((at.as_nanos() as f64 / 1e9, kbps(*from), kbps(*to))),
        _ => None,
    });
    noticed.collect()
}

/// One window of 20 pairs takes some 5 s, since packets shrink to 231 B at 147 kbit/s (equation 4).
#[test]
fn a_hand_off_upwards_is_noticed_in_a_window_and_the_rate_follows() {
    for name in ["tfrc+probe", "tfrc(preset=ns-2)+probe", "sqrt+probe", "tfrc+probe+spike"] {
        let log = run(name, LOW, HIGH);
        let [(at, from, to)] = hand_offs(&log)[..] else { panic!("{name}: {:?}", hand_offs(&log)) };
        assert!((60.0..65.0).contains(&at), "{name}: noticed at {at}");
        assert!(
            (from / 150.0 - 1.0).abs() < 0.01 && (to / 6_000.0 - 1.0).abs() < 0.01,
            "{name}: {from}, {to}"
        );
        // Of the slow path's rate: with a classifier more than that is sent there.
        let after = log.targets[at as usize + 5];
        assert!(after > 20.0 * log.targets[59].min(150.0), "{name}: {after} after {}", log.targets[59]);
        assert!(log.sizes.iter().any(|(_, size)| (200..=250).contains(&size.0)), "{name}: {:?}", log.sizes);
    }
}

/// The window that straddles the hand-off would tell the old capacity; arrivals show the new one within a second.
#[test]
fn a_hand_off_downwards_is_noticed_by_what_arrives() {
    for name in ["tfrc+probe", "tfrc(preset=ns-2)+probe", "sqrt+probe"] {
        let log = run(name, HIGH, LOW);
        let first = hand_offs(&log)[0];
        assert!((60.0..61.5).contains(&first.0), "{name}: {first:?}");
        assert!(first.2 < 600.0, "{name}: {first:?}");
        assert!(log.targets[61..66].iter().all(|rate| *rate <= 300.0), "{name}: {:?}", &log.targets[60..70]);
    }
}

#[test]
fn where_nothing_changes_there_is_no_hand_off() {
    for name in ["tfrc+probe", "vtp+probe", "sqrt+probe"] {
        for rate in [LOW, HIGH] {
            assert_eq!(hand_offs(&run(name, rate, rate)), [], "{name}, {rate}");
        }
    }
}

/// With the delays of the slow path as a yardstick no queue of the fast one is full: without a test of the rate every loss would be the link's.
#[test]
fn a_classifier_forgets_the_old_path() {
    for name in ["tfrc+probe+spike", "vtp+probe+spike-rtt"] {
        let lost = |name: &str| {
            let came = watch(name, LOW, HIGH).0;
            1.0 - came.arrived / came.sent
        };
        let (forgets, keeps) = (lost(name), lost(&format!("{name}(route_reset=false, rate_test=false)")));
        assert!(forgets < 0.1 && keeps > 3.0 * forgets, "{name}: {forgets:.3}, {keeps:.3}");
    }
}

/// The same run with its notice heeded rises faster.
#[test]
fn a_notice_alone_changes_no_rate() {
    let (heeded, alone) = (run("tfrc+probe", LOW, HIGH), run("tfrc+probe(notice_only=true)", LOW, HIGH));
    assert_eq!(hand_offs(&heeded), hand_offs(&alone));
    assert!(
        heeded.targets[62] > 2.0 * alone.targets[62],
        "{:?}, {:?}",
        &heeded.targets[60..66],
        &alone.targets[60..66]
    );
}

/// Fate of a pair on its way.
#[derive(Clone, Copy, Debug)]
enum Fortune {
    /// It meets nobody.
    Alone,
    /// Others hold its packets back, so long each.
    Held([Span; 2]),
    /// One of them is lost.
    Lost(usize),
    /// The host was held up between them.
    Split(Span),
    /// The second overtakes the first.
    Reordered,
}

/// A flow of pairs over a link; feedback on each comes by itself.
struct Pairs {
    controller: Box<dyn RateController>,
    now: Time,
    number: u64,
    resolution: Span,
    decisions: Vec<Decision>,
}

impl Pairs {
    fn new(resolution: Span) -> Pairs {
        let name = "fixed(rate=1 Mbit/s)+probe";
        let controller = build(&name.parse().unwrap(), &Setting::default()).unwrap();
        let now = Time::ZERO + Span::from_secs(1);
        Pairs { controller, now, number: 0, resolution, decisions: Vec::new() }
    }

    /// Sends a pair at a moment that no clock's step knows.
    fn send(&mut self, capacity: Rate, size: Bytes, fortune: Fortune) {
        self.now += Span::from_nanos(53_123_457);
        let service = capacity.time_for(size);
        let apart = if let Fortune::Split(apart) = fortune { apart } else { Span::ZERO };
        let held = if let Fortune::Held(held) = fortune { held } else { [Span::ZERO; 2] };
        let left = [self.now, self.now + apart];
        let first = left[0] + Span::from_millis(20) + service + held[0];
        let second = (left[1] + Span::from_millis(20) + held[1]).max(first) + service;
        let came = if let Fortune::Reordered = fortune { [second, first] } else { [first, second] };
        let mut reports = [0, 1].map(|index: usize| {
            let class = PacketClass::Probe { train: self.number as u32, index: index as u16, len: 2 };
            let id = 2 * self.number + index as u64;
            let sent = Sent { class, ..Sent::media(id, size, left[index]) };
            let step = self.resolution.as_nanos() as u64;
            let stamp = Time::from_nanos(came[index].as_nanos() / step * step);
            let lost = matches!(fortune, Fortune::Lost(which) if which == index);
            Report { sent, fate: if lost { Fate::lost(LostBy::Gap) } else { Fate::arrived(stamp) } }
        });
        self.number += 1;
        let heard = second + Span::from_millis(20);
        let mut feedback = Feedback::exact(&mut reports, Some(heard.as_receiver()));
        feedback.resolution = Some(self.resolution);
        self.controller.on_feedback(heard, &mut feedback);
        self.decisions.extend(core::iter::from_fn(|| self.controller.poll_decision()));
    }
}

const EXACT: Span = Span::from_nanos(1);
/// Of times of receipt, and of RFC 8888.
const TICK: Span = Span::from_nanos(11_112);
const COARSE: Span = Span::from_nanos(976_563);

/// RFC 8888's steps of 0.98 ms: 1500 B take 80 ms at 150 kbit/s, 2 ms at 6 Mbit/s, 0.12 ms at 100 Mbit/s.
#[test]
fn a_path_faster_than_the_stamps_gives_a_bound_or_nothing() {
    let told = |resolution, kbps: u64| {
        let mut pairs = Pairs::new(resolution);
        (0..20).for_each(|_| pairs.send(Rate::ip(kbps * 1000), Bytes(1500), Fortune::Alone));
        let [told] = pairs.decisions[..] else { panic!("{:?}", pairs.decisions) };
        told
    };
    let is = |told, kbps: f64, tolerance: f64| {
        let Decision::Capacity { rate, size: Bytes(1500), .. } = told else { panic!("{told:?}") };
        let off = rate.bits_per_second() as f64 / 1e3 / kbps - 1.0;
        assert!(off.abs() <= tolerance, "{told:?} of {kbps}");
    };
    is(told(EXACT, 100_000), 100_000.0, 1e-3);
    // Eleven ticks each: the mean of twenty tells more than one.
    is(told(TICK, 100_000), 100_000.0, 0.05);
    is(told(COARSE, 150), 150.0, 0.02);
    let Decision::CapacityAbove { rate, .. } = told(COARSE, 6_000) else {
        panic!("{:?}", told(COARSE, 6_000))
    };
    assert!((3_900_000..6_000_000).contains(&rate.bits_per_second()), "{rate}");
    assert_eq!(told(COARSE, 100_000), Decision::CapacityUnknown);
}

/// A host that spreads its pairs tells a bound, and one that says nothing of arrivals tells nothing, once.
#[test]
fn pairs_that_are_not_back_to_back_are_no_measurement() {
    let mut pairs = Pairs::new(TICK);
    let split = Fortune::Split(Span::from_millis(5));
    (0..40).for_each(|_| pairs.send(Rate::ip(6_000_000), Bytes(1500), split));
    for told in &pairs.decisions {
        let Decision::CapacityAbove { rate, .. } = told else { panic!("{told:?}") };
        assert!((2_300_000..2_400_000).contains(&rate.bits_per_second()), "{rate}");
    }
    assert_eq!(pairs.decisions.len(), 2);
}

/// A hundredfold up and down, between windows and in the midst of one; and stamps that tell a bound alone.
#[test]
fn a_jump_of_a_hundredfold_is_one_hand_off() {
    for (before, resolution) in [(40, EXACT), (47, EXACT), (40, TICK), (47, TICK), (45, COARSE)] {
        let mut pairs = Pairs::new(resolution);
        (0..before).for_each(|_| pairs.send(Rate::ip(100_000), Bytes(1000), Fortune::Alone));
        (0..40).for_each(|_| pairs.send(Rate::ip(5_000_000), Bytes(1000), Fortune::Alone));
        let hand_offs =
            pairs.decisions.iter().filter(|what| matches!(what, Decision::HandOff { .. })).count();
        assert_eq!(hand_offs, 1, "{resolution}: {:?}", pairs.decisions);
        pairs.decisions.clear();
        (0..60).for_each(|_| pairs.send(Rate::ip(50_000), Bytes(1000), Fortune::Alone));
        let hand_offs =
            pairs.decisions.iter().filter(|what| matches!(what, Decision::HandOff { .. })).count();
        assert_eq!(hand_offs, 1, "{resolution}: {:?}", pairs.decisions);
    }
}

/// Of a path that loses one packet of each pair nothing is known but that: packets get the size that suits the rate all the same.
#[test]
fn where_every_pair_loses_a_packet_a_window_ends_all_the_same() {
    let mut pairs = Pairs::new(EXACT);
    let send = |pairs: &mut Pairs, times: usize| {
        for _ in 0..times {
            pairs.send(Rate::ip(150_000), Bytes(1200), Fortune::Lost(1));
        }
    };
    send(&mut pairs, 390);
    assert_eq!(pairs.decisions, []);
    send(&mut pairs, 30);
    assert_eq!(pairs.decisions, [Decision::CapacityUnknown]);
    let asked: Vec<_> = core::iter::from_fn(|| pairs.controller.poll_action()).collect();
    // [equation 4] of what two packets in 53 ms make.
    let Some(Action::PacketSize(Bytes(size))) = asked.first() else { panic!("{asked:?}") };
    assert!((500..600).contains(size), "{size}");
}

fn fortunes() -> impl Strategy<Value = Fortune> {
    let held = (0..100_000_000_i64, 0..100_000_000_i64);
    prop_oneof![
        4 => Just(Fortune::Alone),
        4 => held.prop_map(|(a, b)| Fortune::Held([Span::from_nanos(a), Span::from_nanos(b)])),
        1 => (0..2_usize).prop_map(Fortune::Lost),
        1 => (1..50_000_000_i64).prop_map(|apart| Fortune::Split(Span::from_nanos(apart))),
        1 => Just(Fortune::Reordered),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Pairs held up, lost, split and reordered: the capacity told is right, or a bound below it. If no step of the
    /// stamps is drawn anew it may be a quarter too much.
    #[test]
    fn whatever_becomes_of_pairs_no_capacity_is_wild(
        fortunes in prop::collection::vec(fortunes(), 100),
        kbps in prop_oneof![50..1_000_u64, 1_000..100_000_u64, 100_000..2_000_000_u64],
        size in 200..1500_u64,
        resolution in prop_oneof![Just(EXACT), Just(TICK), Just(COARSE)],
    ) {
        let mut pairs = Pairs::new(resolution);
        let undisturbed = |window: &[Fortune]| window.iter().any(|fortune| matches!(fortune, Fortune::Alone));
        prop_assume!(fortunes.chunks(10).all(undisturbed));
        fortunes.iter().for_each(|fortune| pairs.send(Rate::ip(kbps * 1000), Bytes(size), *fortune));
        for told in &pairs.decisions {
            match told {
                Decision::Capacity { rate, .. } => {
                    let share = rate.bits_per_second() as f64 / 1e3 / kbps as f64;
                    prop_assert!((0.6..1.35).contains(&share), "{rate} of {kbps} kbit/s");
                }
                Decision::CapacityAbove { rate, .. } => {
                    prop_assert!(rate.bits_per_second() <= kbps * 1010, "{rate} of {kbps} kbit/s");
                }
                Decision::CapacityUnknown => {}
                other => prop_assert!(false, "{other:?}"),
            }
        }
    }
}
