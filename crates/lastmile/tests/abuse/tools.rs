//! Every tool on faults that only a session meets: copies of packets, a reflector that falls silent half-way, a limit on bytes.

use lastmile::endpoint::measure::{Decision, Measurement, ProberConfig, Reflector, ReflectorConfig};
use lastmile::estimate::{Conditions, METHODS, Method, build};
use lastmile::options::Choice;
use lastmile::report::Direction;
use lastmile::time::{Span, Time};
use lastmile::units::Bytes;

use crate::world::{NEAR, Path, World, peer_address};

/// Bytes of a session that may not send what its tool asks for.
const FEW: Bytes = Bytes(20_000);

/// The ends of one session, one result or refusal at least, and the bytes that it spent.
fn session(
    method: &Method,
    direction: Direction,
    path: Path,
    silent_from: Option<Time>,
    max_bytes: Option<Bytes>,
) -> (usize, Bytes) {
    let choice = method.brief.iter().fold(Choice::named(method.name), |c, (name, value)| c.with(name, value));
    let estimator = build(&choice, &Conditions::exact(1)).unwrap();
    let measurement = Measurement { method: method.name.to_owned(), direction, estimator };
    let config = ProberConfig { max_bytes, ..ProberConfig::new(peer_address(), [3; 32]) };
    let reflector = Reflector::new(ReflectorConfig::new([9; 32]));
    let mut world = World::new(config, vec![measurement], reflector, path, 7);
    world.silent_from = silent_from;
    world.run(Span::from_secs(240));
    let is_end = |event: &&Decision| matches!(event, Decision::Estimated { .. } | Decision::Refused { .. });
    let ends = world.events.iter().filter(is_end).count();
    (ends, world.cost().bytes() + world.cost().bytes_received)
}

#[test]
fn every_tool_ends_with_a_result_or_a_reason_and_holds_its_limit_on_bytes() {
    let copies = Path { duplicates: 20, ..NEAR };
    let half_way = Some(Time::ZERO + Span::from_millis(150));
    for method in METHODS.iter() {
        for direction in [Direction::Forward, Direction::Reverse, Direction::RoundTrip] {
            if direction == Direction::RoundTrip && !method.round_trip {
                continue;
            }
            let name = method.name;
            let (ends, _) = session(method, direction, copies, None, None);
            assert!(ends > 0, "{name}, {direction}: copies");
            let (ends, _) = session(method, direction, NEAR, half_way, None);
            assert!(ends > 0, "{name}, {direction}: a reflector that falls silent");
            let (ends, spent) = session(method, direction, NEAR, None, Some(FEW));
            assert!(ends > 0 && spent <= FEW, "{name}, {direction}: {spent} spent");
        }
    }
}
