//! For any records: no panic, an end, plans and values within bounds, and no number from stamps that were disowned.

use lastmile::estimate::{
    Conditions, Estimate, Estimator, METHODS, Outcome, Quantity, Step, StreamPlan, Value, build,
};
use lastmile::node::Ecn;
use lastmile::observe;
use lastmile::options::{Choice, Kind};
use lastmile::report::{Direction, Fate, PacketReport, StreamRecord};
use lastmile::time::{Span, Time};
use lastmile::units::Bytes;
use proptest::prelude::*;
use rand_core::Rng;
use rand_pcg::Pcg64Mcg;

/// Pathload and DietTopp leave a path alone nine times as long as a stream of half a second took.
const LONGEST_PAUSE: Span = Span::from_secs(5);

/// Wildness of a record.
#[derive(Clone, Copy, Debug)]
struct Wild {
    seed: u64,
    /// Stamps of 256 that are anything at all.
    absurd: u8,
    lost: u8,
    jitter: u32,
    /// Service time of the path in nanoseconds.
    service: u32,
    resolution: u32,
    cut: bool,
    stepped: bool,
}

fn wild() -> impl Strategy<Value = Wild> {
    (
        any::<u64>(),
        prop_oneof![Just(0_u8), any::<u8>()],
        prop_oneof![Just(0_u8), any::<u8>()],
        prop_oneof![Just(0_u32), 0_u32..100_000, any::<u32>()],
        prop_oneof![0_u32..20_000, 100_000_u32..20_000_000],
        prop_oneof![Just(1_u32), any::<u32>()],
        prop::bool::weighted(0.05),
        prop::bool::weighted(0.1),
    )
        .prop_map(|(seed, absurd, lost, jitter, service, resolution, cut, stepped)| Wild {
            seed,
            absurd,
            lost,
            jitter,
            service,
            resolution,
            cut,
            stepped,
        })
}

fn record(plan: &StreamPlan, wild: Wild, random: &mut Pcg64Mcg, stream: u32) -> StreamRecord {
    let mut free = 0_u64;
    let start = if random.next_u32().is_multiple_of(8) { random.next_u64() } else { 1_000_000_000 };
    let mut packets: Vec<PacketReport> = plan
        .packets
        .iter()
        .enumerate()
        .map(|(k, packet)| {
            let absurd = |random: &mut Pcg64Mcg| (random.next_u32() as u8) < wild.absurd;
            let jitter = |random: &mut Pcg64Mcg| u64::from(random.next_u32()) % (u64::from(wild.jitter) + 1);
            let left = start.saturating_add(packet.offset.as_nanos() as u64).saturating_add(jitter(random));
            let sent = if absurd(random) { random.next_u64() } else { left };
            free = free.max(left).saturating_add(u64::from(wild.service));
            let arrived =
                if absurd(random) { random.next_u64() } else { free.saturating_add(jitter(random)) };
            let fate = match random.next_u32() as u8 {
                n if n < wild.lost => Fate::Lost,
                n if n == wild.lost && wild.lost > 0 => Fate::Late,
                _ => Fate::Arrived(Time::from_nanos(arrived)),
            };
            let size = if absurd(random) { Bytes(u64::from(random.next_u32() % 3)) } else { packet.size };
            // A duplicate, or one of another stream.
            let seq = if absurd(random) { u64::from(random.next_u32() % 64) } else { k as u64 };
            PacketReport { seq, size, sent: Time::from_nanos(sent), fate, ecn: Ecn::NotEct }
        })
        .collect();
    if wild.cut {
        packets.truncate(random.next_u32() as usize % (packets.len() + 1));
    }
    StreamRecord {
        stream,
        direction: if wild.seed.is_multiple_of(3) { Direction::RoundTrip } else { Direction::Forward },
        pattern: plan.pattern,
        planned: plan.packets.iter().map(|p| p.offset).collect(),
        packets,
        tx_resolution: Span::from_nanos(i64::from(wild.resolution)),
        rx_resolution: Span::from_nanos(i64::from(wild.resolution)),
        clock_stepped: wild.stepped,
    }
}

fn check(found: &[Estimate], faithful: bool) -> Result<(), TestCaseError> {
    prop_assert!(!found.is_empty());
    let of = |quantity| found.iter().find(|e| e.quantity == quantity);
    for estimate in found {
        prop_assert!(!estimate.streams.is_empty());
        if let (Some(interval), Some(rate)) = (estimate.interval, estimate.value.rate()) {
            prop_assert!(interval.contains(rate), "{estimate:?}");
        }
    }
    if let (Some(capacity), Some(available)) = (of(Quantity::Capacity), of(Quantity::AvailableBandwidth)) {
        let sustained = of(Quantity::SustainedRate).and_then(|e| e.value.rate());
        let wide = |e: &Estimate| e.value == Value::Unknown && e.interval.is_some();
        match (sustained.or(capacity.value.rate()), available.value.rate()) {
            (Some(limit), Some(available)) => prop_assert!(faithful || available <= limit, "{found:?}"),
            (None, Some(_)) => prop_assert!(wide(capacity), "what is left of an unknown capacity: {found:?}"),
            (_, None) => prop_assert!(!available.warnings.is_empty(), "unknown without a reason: {found:?}"),
        }
    }
    Ok(())
}

fn drive(tool: &mut dyn Estimator, wild: Wild, faithful: bool) -> Result<Option<Outcome>, TestCaseError> {
    let mut random = Pcg64Mcg::new(u128::from(wild.seed) * 2 + 1);
    let largest = Bytes(1488);
    for stream in 0..2_000 {
        match tool.step() {
            Step::Send(plan) => {
                prop_assert!(plan.bounded());
                prop_assert!(plan.bytes() <= largest * StreamPlan::MOST as u64, "{}", plan.bytes());
                let record = record(&plan, wild, &mut random, stream);
                let _ = observe::judge(&record);
                tool.on_stream(&record);
                let so_far = tool.so_far();
                if !so_far.is_empty() {
                    check(&so_far, faithful)?;
                }
            }
            Step::Pause(span) => prop_assert!((Span::ZERO..=LONGEST_PAUSE).contains(&span), "{}", span),
            Step::Done(outcome) => {
                prop_assert!(tool.so_far().is_empty(), "the outcome has it all");
                return Ok(Some(outcome));
            }
        }
    }
    Ok(None)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_method_survives(wild in wild(), trains in 1_usize..6, faithful in any::<bool>(), others in any::<bool>(), spike in any::<bool>()) {
        for method in METHODS.iter() {
            let mut choice = Choice::named(method.name);
            for opt in method.options {
                choice = match (opt.kind, opt.name) {
                    (Kind::Flag, "faithful") => choice.with(opt.name, &faithful.to_string()),
                    (Kind::Flag, _) => choice.with(opt.name, &(!faithful && others).to_string()),
                    (Kind::Classifier, _) if spike => choice.with(opt.name, "spike"),
                    (Kind::Count, "trains") => choice.with(opt.name, &trains.to_string()),
                    (Kind::Count, "train_length") if wild.seed % 16 == 0 => choice.with(opt.name, "1000"),
                    _ => choice,
                };
            }
            let mut tool = build(&choice, &Conditions::default()).unwrap();
            match drive(&mut *tool, wild, faithful)? {
                Some(Outcome::Found(found)) => {
                    prop_assert!(!wild.stepped, "{} believed a stepped clock", method.name);
                    check(&found, faithful)?;
                }
                Some(Outcome::Refused(refusal)) => prop_assert!(!refusal.to_string().is_empty()),
                None => prop_assert!(false, "{} does not come to an end", method.name),
            }
        }
    }
}
