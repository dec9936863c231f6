//! On any arrivals every classifier answers, takes no memory for it, and says what it needs.

use lastmile::classify::{Arrival, CLASSIFIERS, Discriminator, Loss, LossClass, build};
use lastmile::options::Choice;
use lastmile::telemetry::Visitor;
use lastmile::time::{Span, Time};
use lastmile::units::Bytes;
use proptest::prelude::*;

struct Finite;

impl Visitor for Finite {
    fn number(&mut self, name: &'static str, _: &'static str, value: f64) {
        assert!(value.is_finite(), "{name}: {value}");
    }
    fn state(&mut self, _: &'static str, _: &'static str) {}
}

fn any_time() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), 0..10_000_000_000_u64, Just(0), Just(u64::MAX)]
}

fn any_arrival() -> impl Strategy<Value = Arrival> {
    let at = prop::option::weighted(0.9, any_time());
    let rtt = prop::option::of(prop_oneof![any::<i64>(), 0..1_000_000_000_i64]);
    (prop_oneof![any::<u64>(), 0..1_000_u64], any_time(), at, prop_oneof![any::<u64>(), 0..2_000_u64], rtt)
        .prop_map(|(seq, sent, at, size, rtt)| Arrival {
            seq,
            size: Bytes(size),
            sent: Time::from_nanos(sent),
            at: at.map(Time::from_nanos),
            rtt: rtt.map(Span::from_nanos),
        })
}

proptest! {
    #[test]
    fn every_classifier_survives(
        steps in prop::collection::vec((any_arrival(), any::<u32>(), prop::option::of(any::<u64>()), any::<bool>()), 1..80),
        window in prop::option::of(10..100_000_u32),
        options in any::<bool>(),
        resolution in prop::option::of(0..100_000_000_i64),
    ) {
        for lda in CLASSIFIERS.iter() {
            let mut choice = Choice::named(lda.name);
            for opt in lda.options {
                if let ("window", Some(ms)) = (opt.name, window) {
                    choice = choice.with(opt.name, &format!("{ms} ms"));
                } else if let ("equal_size" | "route_reset" | "fixed", true) = (opt.name, options) {
                    choice = choice.with(opt.name, "true");
                }
            }
            let mut discriminator = Discriminator::new(&choice).unwrap();
            for (arrival, run, bytes, route) in &steps {
                discriminator.on_arrival(arrival);
                let loss = Loss { bytes: bytes.map(Bytes), ..Loss::of(arrival.seq.wrapping_sub(1), *run) };
                discriminator.classify(&loss);
                discriminator.suit(resolution.map(Span::from_nanos));
                if *route {
                    discriminator.on_route_change();
                }
                discriminator.telemetry(&mut Finite);
            }
            let counts = discriminator.counts();
            prop_assert_eq!(counts.congestion + counts.wireless, steps.len() as u64);
        }
    }

    /// With another offset between the clocks every classifier judges as before.
    #[test]
    fn the_offset_between_clocks_does_not_matter(
        steps in prop::collection::vec((1..50_000_000_u64, 0..40_000_000_u64, 1..4_u64), 2..200),
        offset in 0..1_700_000_000_000_000_000_u64,
    ) {
        for lda in CLASSIFIERS.iter() {
            let verdicts = |offset: u64| {
                let mut classifier = build(&Choice::named(lda.name)).unwrap();
                let (mut now, mut free, mut seq) = (1_000_000_000_u64, 0_u64, 0_u64);
                let judge = |(gap, service, packets): &(u64, u64, u64)| {
                    (now, seq) = (now + gap, seq + packets);
                    free = free.max(now) + service;
                    classifier.on_arrival(&Arrival {
                        seq,
                        size: Bytes(762),
                        sent: Time::from_nanos(now),
                        at: Some(Time::from_nanos(free + offset)),
                        rtt: Some(Span::from_nanos((free - now) as i64 + 20_000_000)),
                    });
                    classifier.classify(&Loss::of(seq - 1, (packets - 1).max(1) as u32))
                };
                steps.iter().map(judge).collect::<Vec<LossClass>>()
            };
            prop_assert_eq!(verdicts(0), verdicts(offset), "{}", lda.name);
        }
    }
}

/// All together stay far below the 4 kB that a controller and its classifier may take.
#[test]
fn states_are_small() {
    for lda in CLASSIFIERS.iter() {
        assert!(lda.cost.state <= 1024, "{}: {} B", lda.name, lda.cost.state);
    }
    assert!(size_of::<Discriminator>() <= 1024, "{}", size_of::<Discriminator>());
}
