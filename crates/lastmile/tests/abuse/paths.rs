//! On any path a session ends, and what a record believes is true.

use lastmile::endpoint::measure::Decision;
use lastmile::endpoint::measure::{Key, ProberConfig, Reflector, ReflectorConfig};
use lastmile::node::{Datagram, Input, Node, Output, PortId};
use lastmile::report::Direction;
use lastmile::time::{Span, Time};
use proptest::prelude::*;

use crate::world::{Dice, Path, World, measurement, pairs, peer_address, prober_address};

const DIRECTIONS: [Direction; 3] = [Direction::Forward, Direction::Reverse, Direction::RoundTrip];

fn key() -> Key {
    Key::new(b"a key of many bytes").unwrap()
}

fn session(path: Path, keyed: bool, seed: u64) -> World<Reflector> {
    let key = keyed.then(key);
    let config = ProberConfig { key: key.clone(), ..ProberConfig::new(peer_address(), [seed as u8; 32]) };
    let reflector = Reflector::new(ReflectorConfig { key, ..ReflectorConfig::new([9; 32]) });
    let measurements = DIRECTIONS.map(|direction| measurement(direction, vec![pairs(6), pairs(70)])).into();
    let mut world = World::new(config, measurements, reflector, path, seed);
    // If six of seven exchanges fail, a session takes as long as its patience: for each of three times two streams 60 s
    // at most until it is over, and as long for its report. Of 4,000 sessions the longest took 159 s.
    world.run(Span::from_secs(3 * 2 * 120));
    assert!(matches!(world.events.last(), Some(Decision::Finished { .. })));
    let ends = world.events.iter().filter(|e| matches!(e, Decision::Refused { .. })).count();
    assert_eq!(ends, 3, "every measurement comes to an end: {:?}", world.events);
    world
}

prop_compose! {
    fn paths()(
        delay in 0_i64..400, jitter in 0_i64..60, loss in 0_u64..30, duplicates in 0_u64..30, replays in 0_u64..30,
        forgeries in 0_u64..60,
    ) -> Path {
        let (delay, jitter) = (Span::from_millis(delay), Span::from_millis(jitter));
        Path { delay, jitter, loss, duplicates, replays, flips: 0, cuts: 0, forgeries, mtu: None }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Lost, duplicated, overtaken, replayed and forged packets; sessions without and with a key.
    #[test]
    fn what_a_record_believes_is_what_happened(path in paths(), keyed: bool, seed: u64) {
        session(path, keyed, seed).check_records();
    }

    /// With a key, damage on the way is found out too. (Without one it is up to UDP's checksum.)
    #[test]
    fn damage_is_found_out_with_a_key(path in paths(), flips in 0_u64..40, cuts in 0_u64..30, seed: u64) {
        session(Path { flips, cuts, ..path }, true, seed).check_records();
    }

    /// Without a key damage may be believed, but nothing breaks.
    #[test]
    fn damage_without_a_key_ends_well(path in paths(), flips in 0_u64..60, cuts in 0_u64..40, seed: u64) {
        session(Path { flips, cuts, ..path }, false, seed);
    }

    /// Any bytes from anybody at any time.
    #[test]
    fn any_bytes_are_survived(seed: u64, keyed: bool) {
        let mut dice = Dice(seed);
        let key = keyed.then(key);
        let mut reflector = Reflector::new(ReflectorConfig { key: key.clone(), ..ReflectorConfig::new([9; 32]) });
        let mut prober = lastmile::endpoint::measure::Prober::new(
            ProberConfig { key, ..ProberConfig::new(peer_address(), [5; 32]) },
            vec![measurement(Direction::Reverse, vec![pairs(3)])],
        );
        for k in 0..200_u64 {
            let now = Time::from_nanos(k * 1_000_000);
            let bytes = crate::forge::packet(&mut dice, k % 2 == 0);
            let to_reflector = Datagram::udp(prober_address(), peer_address(), bytes.clone());
            let to_prober = Datagram::udp(peer_address(), prober_address(), bytes);
            reflector.handle(now, Input::Datagram { port: PortId(0), at: now, datagram: to_reflector });
            prober.handle(now, Input::Datagram { port: PortId(0), at: now, datagram: to_prober });
            while !matches!(reflector.poll(now), Output::Wait(_)) {}
            while !matches!(prober.poll(now), Output::Wait(_)) {}
        }
    }
}

/// On a path that only delays, everything is seen: the properties above do not hold because nothing arrives.
#[test]
fn a_good_path_gives_whole_records() {
    for keyed in [false, true] {
        let world = session(Path { delay: Span::from_millis(700), ..Path::default() }, keyed, 1);
        world.check_records();
        assert_eq!(world.prober.sink().len(), 6);
        for record in world.prober.sink() {
            assert!(record.packets.iter().all(|p| p.fate.arrived().is_some()), "{record:?}");
        }
    }
}

/// It takes 200 s and more.
#[test]
fn a_path_that_loses_almost_everything_ends_too() {
    let (delay, jitter) = (Span::from_millis(385), Span::ZERO);
    let chances =
        Path { loss: 23, duplicates: 16, replays: 21, flips: 20, cuts: 38, forgeries: 1, ..Path::default() };
    session(Path { delay, jitter, ..chances }, false, 5_882_339_084_175_508_557);
}
