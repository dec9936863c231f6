//! Sessions in which something is wrong end soon and say who is to blame; their limits are hard.

use lastmile::endpoint::measure::Decision;
use lastmile::endpoint::measure::{Key, Measurement, ProberConfig, Reflector, ReflectorConfig};
use lastmile::estimate::{Conditions, Step, StreamPlan, build};
use lastmile::node::{Input, Node, Output, Payload};
use lastmile::report::Direction;
use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};
use lastmile::wire::{Mode, TlvType, Tlvs, tlv_area_mut};
use proptest::prelude::*;

use crate::world::{
    NEAR, Nobody, PEER_AHEAD, Path, PlainReflector, World, closed, measurement, pairs, peer_address,
};

const DIRECTIONS: [Direction; 3] = [Direction::Forward, Direction::Reverse, Direction::RoundTrip];

fn key(text: &str) -> Option<Key> {
    Some(Key::new(text.as_bytes()).unwrap())
}

fn config(key: Option<Key>) -> ProberConfig {
    ProberConfig { key, ..ProberConfig::new(peer_address(), [5; 32]) }
}

fn reflector(key: Option<Key>) -> Reflector {
    Reflector::new(ReflectorConfig { key, ..ReflectorConfig::new([6; 32]) })
}

fn world<P: Node>(config: ProberConfig, direction: Direction, steps: Vec<Step>, peer: P) -> World<P> {
    World::new(config, vec![measurement(direction, steps)], peer, NEAR, 1)
}

/// Runs one stream and returns why it was refused, and after how long.
fn refusal<P: Node>(config: ProberConfig, direction: Direction, peer: P) -> (String, Span) {
    let mut world = world(config, direction, vec![pairs(10)], peer);
    world.run(Span::from_secs(30));
    let refusals = world.refusals();
    assert_eq!(refusals.len(), 1, "{refusals:?}");
    assert!(world.prober.sink().is_empty());
    (refusals[0].clone(), world.now - Time::ZERO)
}

#[test]
fn no_reflector_is_said_within_seconds() {
    for key in [None, key("a key of many bytes")] {
        let (why, after) = refusal(config(key), Direction::Forward, Nobody);
        assert!(why.contains("does not answer"), "{why}");
        // As long again without the key.
        assert!(after < Span::from_secs(22), "{after}");
    }
}

#[test]
fn a_closed_port_is_said_at_once() {
    let mut world = world(config(None), Direction::Forward, vec![pairs(10)], Nobody);
    world.tell_at(Time::ZERO + Span::from_millis(20), true, closed());
    world.run(Span::from_secs(1));
    assert!(world.refusals()[0].contains("nothing listens on that port"), "{:?}", world.refusals());
    assert_eq!(world.now, Time::ZERO + Span::from_millis(20));
}

#[test]
fn a_plain_stamp_reflector_serves_round_trips_and_nothing_else() {
    for echo_tlvs in [true, false] {
        for direction in [Direction::Forward, Direction::Reverse] {
            let plain = PlainReflector { echo_tlvs, octets: 44, out: Vec::new() };
            let (why, _) = refusal(config(None), direction, plain);
            assert!(why.contains("speaks plain STAMP only") && why.contains("lastmile serve"), "{why}");
        }
    }
    let plain = PlainReflector { echo_tlvs: true, octets: 0, out: Vec::new() };
    let mut world = world(config(None), Direction::RoundTrip, vec![pairs(10)], plain);
    world.run(Span::from_secs(5));
    world.check_records();
    let record = &world.prober.sink()[0];
    assert_eq!(record.rtt(0), Some(Span::from_millis(20)));
    assert!(record.packets.iter().all(|p| p.size == Bytes(1_488)));
}

/// TWAMP Light responders answer in a size of their own: a reply of another size says nothing of a narrow way back.
#[test]
fn replies_of_another_size_than_their_requests_are_refused_with_both_sizes() {
    for (octets, size, advice) in [(44, 72, false), (110, 138, true), (1_900, 1_928, true)] {
        let plain = PlainReflector { echo_tlvs: false, octets, out: Vec::new() };
        let (why, _) = refusal(config(None), Direction::RoundTrip, plain);
        assert!(
            why.contains(&format!("{} answers packets of 1488 B with replies of {size} B", peer_address())),
            "{why}"
        );
        assert_eq!(why.contains(&format!("--packet-size {size}")), advice, "{why}");
    }
    // At the replies' own size both ways are alike.
    let plain = PlainReflector { echo_tlvs: false, octets: 110, out: Vec::new() };
    let small = Step::Send(StreamPlan::pairs(10, Bytes(138), Span::from_millis(5)));
    let mut world = world(config(None), Direction::RoundTrip, vec![small], plain);
    world.run(Span::from_secs(5));
    assert_eq!(world.prober.sink().len(), 1, "{:?}", world.refusals());
}

#[test]
fn replies_that_are_no_stamp_are_counted_and_named() {
    let foreign = || PlainReflector { echo_tlvs: false, octets: 38, out: Vec::new() };
    let (why, _) = refusal(config(None), Direction::RoundTrip, foreign());
    assert!(why.contains("answers, but not in STAMP: 12 replies of 38 octets"), "{why}");
    let (why, _) = refusal(config(key("a key of many bytes")), Direction::Forward, foreign());
    assert!(why.contains("not in STAMP: ") && why.contains(" replies of 38 octets"), "{why}");
}

/// Forgets all that it knew at some time, and has another secret then.
struct Restarted {
    reflector: Reflector,
    at: Time,
    key: Option<Key>,
}

impl Node for Restarted {
    type Event = Decision;

    fn handle(&mut self, now: Time, input: Input) {
        if now >= self.at {
            self.at = Time::from_nanos(u64::MAX);
            let key = self.key.clone();
            self.reflector = Reflector::new(ReflectorConfig { key, ..ReflectorConfig::new([7; 32]) });
        }
        self.reflector.handle(now, input);
    }
    fn poll(&mut self, now: Time) -> Output<Decision> {
        self.reflector.poll(now)
    }
}

/// To a peer that knows nothing of a session any more, hello is said again, and the stream sent again.
#[test]
fn a_server_that_was_started_again_is_said_hello_to_again() {
    for key in [None, key("a key of many bytes")] {
        for direction in [Direction::Forward, Direction::Reverse] {
            // Before, within and behind the first of two streams of half a second, as the peer's clock has it.
            for ms in [5_025, 5_400, 5_700, 5_900] {
                let at = Time::ZERO + Span::from_millis(ms);
                let peer = Restarted { reflector: reflector(key.clone()), at, key: key.clone() };
                let steps = vec![pairs(100), pairs(100)];
                let mut world = world(config(key.clone()), direction, steps, peer);
                world.run(Span::from_secs(20));
                world.check_records();
                assert_eq!(world.prober.sink().len(), 2, "{direction} at {ms} ms: {:?}", world.refusals());
                assert!(world.refusals()[0].contains("no convergence"), "{:?}", world.refusals());
            }
        }
    }
}

#[test]
fn keys_that_do_not_fit_are_said() {
    let (ours, other) = ("a key of many bytes", "another key of many bytes");
    let said =
        |ours: Option<Key>, theirs: Option<Key>| refusal(config(ours), Direction::Forward, reflector(theirs));
    let cases = [
        (key(ours), key(other), "the key is wrong"),
        (None, key(other), "asks for a key: give it with --key-file"),
        (key(ours), None, "works without a key"),
    ];
    for (ours, theirs, text) in cases {
        let (why, after) = said(ours, theirs);
        assert!(why.contains(text), "{why}");
        assert!(after < Span::from_secs(14), "{after}");
    }
}

#[test]
fn with_the_right_key_every_direction_works_on_both_ip_versions() {
    for peer in ["198.51.100.1:8620", "[2001:db8:9::1]:8620"] {
        for key in [None, key("a key of many bytes")] {
            let peer = peer.parse().unwrap();
            let config = ProberConfig { key: key.clone(), ..ProberConfig::new(peer, [5; 32]) };
            let measurements = DIRECTIONS.map(|d| measurement(d, vec![pairs(70)])).into();
            let mut world = World::new(config, measurements, reflector(key), NEAR, 1);
            world.run(Span::from_secs(20));
            world.check_records();
            let records = world.prober.sink();
            assert_eq!(records.iter().map(|r| r.direction).collect::<Vec<_>>(), DIRECTIONS);
            assert!(records.iter().flat_map(|r| &r.packets).all(|p| p.fate.arrived().is_some()), "{peer}");
            assert!(records.iter().flat_map(|r| &r.packets).all(|p| p.size == Bytes(1_488)), "{peer}");
        }
    }
}

#[test]
fn a_reverse_measurement_alone_earns_its_credit_and_says_so() {
    let mut world = world(config(None), Direction::Reverse, vec![pairs(30)], reflector(None));
    world.run(Span::from_secs(20));
    assert!(world.prober.sink()[0].packets.iter().all(|p| p.fate.arrived().is_some()));
    let cost = world.cost();
    assert!(cost.credit_bytes >= Bytes(59 * 1_488) && cost.credit_bytes <= Bytes(60 * 1_488), "{cost:?}");
    assert!(cost.bytes_received <= cost.bytes(), "not amplified: {cost:?}");
    assert_eq!(cost.probe_bytes, Bytes::ZERO);
}

#[test]
fn a_reverse_stream_of_several_seconds_is_whole() {
    let slow = Step::Send(StreamPlan::pairs(30, Bytes(1_488), Span::from_millis(100)));
    let mut world = world(config(None), Direction::Reverse, vec![slow], reflector(None));
    world.run(Span::from_secs(20));
    world.check_records();
    let record = &world.prober.sink()[0];
    assert!(record.packets.iter().all(|p| p.fate.arrived().is_some()));
    assert!((1..60).all(|i| record.send_gap(i).is_some_and(|(sent, planned)| sent == planned)), "{record:?}");
}

#[test]
fn a_pause_of_a_minute_keeps_the_session() {
    let steps = || vec![pairs(5), Step::Pause(Span::from_secs(60)), pairs(5)];
    for direction in DIRECTIONS {
        let mut world = world(config(None), direction, steps(), reflector(None));
        world.run(Span::from_secs(90));
        assert!(world.now - Time::ZERO > Span::from_secs(60));
        assert_eq!(world.prober.sink().len(), 2, "{direction}: {:?}", world.refusals());
        assert!(world.prober.sink()[1].packets.iter().all(|p| p.fate.arrived().is_some()));
    }
}

/// Round trips show no token, so a session that comes to its first one-way stream late says hello again.
#[test]
fn a_minute_of_round_trips_first_spoils_no_stream_after_it() {
    for key in [None, key("a key of many bytes")] {
        let slow = || Step::Send(StreamPlan::pairs(30, Bytes(1_488), Span::from_secs(2)));
        let measurements = vec![
            measurement(Direction::RoundTrip, vec![slow()]),
            measurement(Direction::Forward, vec![pairs(5)]),
            measurement(Direction::RoundTrip, vec![slow()]),
            measurement(Direction::Reverse, vec![pairs(5)]),
        ];
        let mut world = World::new(config(key.clone()), measurements, reflector(key), NEAR, 1);
        world.run(Span::from_secs(200));
        let records = world.prober.sink();
        assert_eq!(records.len(), 4, "{:?}", world.refusals());
        assert!(records.iter().flat_map(|r| &r.packets).all(|p| p.fate.arrived().is_some()));
    }
}

/// The queue of the sender's own interface is part of the path: it spoils no stream, and is told of once for each way.
#[test]
fn the_queue_of_the_senders_own_interface_is_told_of_once() {
    for (held_up, ways) in [(0, 0), (1, 1), (5, 1)] {
        for direction in DIRECTIONS {
            let mut world = world(config(None), direction, vec![pairs(20), pairs(20)], reflector(None));
            world.held_up = held_up;
            world.run(Span::from_secs(20));
            assert_eq!(world.prober.sink().len(), 2, "{direction}: {:?}", world.refusals());
            let told: Vec<_> = (world.events.iter())
                .filter_map(
                    |e| if let Decision::Warned(w) = e { Some((w.code.code(), &w.text)) } else { None },
                )
                .collect();
            assert_eq!(told.len(), ways, "{direction}: {told:?}");
            let whose =
                if direction == Direction::Reverse { "198.51.100.1's own" } else { "this host's own" };
            assert!(told.iter().all(|(code, text)| *code == "own-queue" && text.contains(whose)), "{told:?}");
        }
    }
}

#[test]
fn a_clock_step_on_either_side_marks_the_stream() {
    for direction in DIRECTIONS {
        for at_prober in [true, false] {
            if direction == Direction::RoundTrip && !at_prober {
                continue; // The peer's clock stamps nothing there.
            }
            let mut world = world(
                config(key("a key of many bytes")),
                direction,
                vec![pairs(30), pairs(3)],
                reflector(key("a key of many bytes")),
            );
            let step = Input::ClockStepped { by: Span::from_millis(-7) };
            world.tell_at(Time::ZERO + Span::from_millis(90), at_prober, step);
            world.run(Span::from_secs(20));
            let stepped: Vec<_> = world.prober.sink().iter().map(|r| r.clock_stepped).collect();
            assert_eq!(stepped, [true, false], "{direction}, at the prober: {at_prober}");
        }
    }
}

/// A method may compute a rate of zero from what stamps say: its stream would leave in 292 years.
#[test]
fn a_stream_without_an_end_is_refused_before_it_begins() {
    for direction in DIRECTIONS {
        let train = Step::Send(StreamPlan::train(30, Bytes(1_488), Rate::ip(0)));
        let mut world = world(config(None), direction, vec![train], reflector(None));
        world.run(Span::from_secs(1));
        assert!(world.refusals()[0].contains("the limits are 1200 s"), "{:?}", world.refusals());
    }
}

/// Whenever the peer falls silent, the session ends, within what its own timers take.
#[test]
fn silence_in_any_phase_ends_the_session() {
    let endless = || (0..200).map(|_| pairs(5)).collect::<Vec<_>>();
    for direction in DIRECTIONS {
        for ms in (15..600).step_by(9) {
            let mut world = world(config(None), direction, endless(), reflector(None));
            let from = Time::ZERO + Span::from_millis(ms);
            world.silent_from = Some(from);
            world.run(Span::from_secs(60));
            let refusals = world.refusals();
            assert!(refusals[0].contains("stopped answering"), "{direction} at {ms} ms: {refusals:?}");
            let after = world.now - from;
            assert!(after < Span::from_secs(14), "{direction} at {ms} ms: {after}");
        }
    }
}

/// After a cut in the first stream it is waited for what may stand in a slow path's queue; nobody waits without being told.
#[test]
fn a_cut_is_said_within_two_seconds() {
    let train = || Step::Send(StreamPlan::train(60, Bytes(1_488), Rate::ip(50_000_000)));
    let mut world = world(config(None), Direction::Forward, vec![train()], reflector(None));
    world.silent_from = Some(Time::ZERO + Span::from_millis(25));
    world.run(Span::from_secs(60));
    let quiet: Vec<_> = (world.events.iter())
        .filter_map(|e| match *e {
            Decision::PeerQuiet { peer, silent, patience } => Some((peer, silent, patience)),
            _ => None,
        })
        .collect();
    let [(peer, silent, patience)] = quiet[..] else { panic!("{:?}", world.events) };
    assert_eq!(peer, peer_address());
    assert!(silent < Span::from_secs(2), "{silent}");
    // And it ends when it said it would: after the time of all that was sent, at the rate that the hello's round trip showed.
    let rest = world.now - Time::ZERO - silent;
    assert!(
        patience > Span::from_secs(3) && (rest - patience).abs() < Span::from_secs(9),
        "{patience}, not {rest}"
    );
    assert!(world.refusals()[0].contains("stopped answering"), "{:?}", world.refusals());
}

/// A reflector that hears nothing for a while, by its own clock.
struct Deaf(Reflector, std::ops::Range<Time>);

impl Node for Deaf {
    type Event = <Reflector as Node>::Event;

    fn handle(&mut self, now: Time, input: Input) {
        let heard = !(self.1.contains(&now) && matches!(input, Input::Datagram { .. }));
        self.0.handle(now, if heard { input } else { Input::Wake });
    }
    fn poll(&mut self, now: Time) -> Output<Self::Event> {
        self.0.poll(now)
    }
}

/// Two methods, on a path that carries nothing from `from` on, for so long.
fn refusals_of_two(direction: Direction, from: Span, congested: Span) -> Vec<String> {
    let from = Time::ZERO + PEER_AHEAD + from;
    let peer = Deaf(reflector(None), from..from + congested);
    let two = [vec![pairs(30)], vec![pairs(30)]].map(|steps| measurement(direction, steps)).into();
    let mut world = World::new(config(None), two, peer, NEAR, 1);
    world.run(Span::from_secs(90));
    world.refusals()
}

/// The result of a method that came to its end.
const ENDED: &str = "no convergence after 1 streams";

#[test]
fn a_path_that_is_congested_for_nine_seconds_is_waited_for() {
    for direction in [Direction::Forward, Direction::Reverse] {
        for ms in (0..400).step_by(20) {
            let said = refusals_of_two(direction, Span::from_millis(ms), Span::from_secs(9));
            assert!(said.iter().all(|why| why.contains(ENDED)), "{direction} at {ms} ms: {said:?}");
        }
    }
}

/// Packets may stand in a queue, by what the hello showed for 27 s: then the first method ends.
#[test]
fn after_a_peer_was_silent_the_next_method_begins_anew() {
    for direction in [Direction::Forward, Direction::Reverse] {
        let said = refusals_of_two(direction, Span::from_millis(60), Span::from_secs(40));
        assert!(said[0].contains("stopped answering") && said[0].contains("path is congested"), "{said:?}");
        assert!(said[1].contains(ENDED), "{direction}: {said:?}");
    }
}

/// Two of five packets are lost each way: of five requests all would be in vain in one of nine exchanges.
#[test]
fn heavy_loss_is_no_silence() {
    let mut silent = 0;
    for seed in 0..200 {
        let both = [Direction::Forward, Direction::Reverse].map(|d| measurement(d, vec![pairs(30)])).into();
        let path = Path { loss: 40, ..NEAR };
        let mut world = World::new(config(None), both, reflector(None), path, seed);
        world.run(Span::from_secs(200));
        let said = world.refusals();
        silent += said.iter().filter(|why| !why.contains(ENDED)).count();
    }
    assert!(silent <= 12, "{silent} of 400");
}

/// Changes the reports and hellos that it hands on.
struct Liar<F> {
    honest: Reflector,
    lie: F,
}

impl<F: FnMut(TlvType, &mut [u8])> Node for Liar<F> {
    type Event = Decision;

    fn handle(&mut self, now: Time, input: Input) {
        self.honest.handle(now, input);
    }
    fn poll(&mut self, now: Time) -> Output<Decision> {
        let mut output = self.honest.poll(now);
        if let Output::Transmit(transmit) = &mut output
            && let Payload::Udp(bytes) = &mut transmit.datagram.payload
        {
            let area = tlv_area_mut(Mode::Open, bytes);
            let found =
                Tlvs::new(area).flatten().find(|t| matches!(t.kind, TlvType::HELLO | TlvType::REPORT));
            if let Some((kind, at)) = found.map(|t| (t.kind, t.offset + 4)) {
                (self.lie)(kind, &mut area[at..]);
            }
        }
        output
    }
}

/// A peer may lie about what it saw, but it cannot keep a session from ending, soon, or break it.
#[test]
fn a_lying_peer_cannot_hold_a_session() {
    type Lie = fn(TlvType, &mut [u8]);
    // Offsets as in the figures of the Report and Hello TLVs.
    let lies: [(&str, Lie); 6] = [
        ("always running", |kind, value| {
            if kind == TlvType::REPORT {
                value[5] = 5;
            }
        }),
        ("busy", |kind, value| {
            if kind == TlvType::REPORT {
                value[5] = 4;
            }
        }),
        ("65,535 pages", |kind, value| {
            if kind == TlvType::REPORT {
                value[28..30].fill(0xFF);
            }
        }),
        ("times at the end of the world", |kind, value| {
            if kind == TlvType::REPORT {
                value[36..48].fill(0xFF);
            }
        }),
        ("never any credit", |kind, value| {
            if kind == TlvType::HELLO {
                value[44..52].fill(0);
            }
        }),
        ("credit without end", |kind, value| {
            if kind == TlvType::HELLO {
                value[44..52].fill(0xFF);
            }
        }),
    ];
    for (name, lie) in lies {
        for direction in [Direction::Forward, Direction::Reverse] {
            let liar = Liar { honest: reflector(None), lie };
            let mut world = world(config(None), direction, vec![pairs(100)], liar);
            world.run(Span::from_secs(15));
            assert_eq!(world.refusals().len(), 1, "{name}, {direction}");
        }
    }
}

/// Times that nobody's clock can have shown are believed of nobody, whatever they would say of a clock.
#[test]
fn an_impossible_report_is_refused_and_the_peer_named() {
    type Lie = fn(TlvType, &mut [u8]);
    // Behind the report's 48 octets an entry has 8, of which 6 are nanoseconds since the first.
    let second: Lie = |kind, value| {
        if kind == TlvType::REPORT {
            value[48 + 8 * 11..][..6].copy_from_slice(&1_000_000_000_u64.to_be_bytes()[2..]);
        }
    };
    let backwards: Lie = |kind, value| {
        if kind == TlvType::REPORT {
            value[48..54].copy_from_slice(&95_000_000_u64.to_be_bytes()[2..]);
            value[48 + 8 * 39..][..6].fill(0);
        }
    };
    let lies = [
        (second, "1.000 s apart", vec![Direction::Forward, Direction::Reverse]),
        (backwards, "0.095 s apart", vec![Direction::Forward]),
    ];
    for (lie, claimed, directions) in lies {
        for direction in directions {
            let liar = Liar { honest: reflector(None), lie };
            let mut world = world(config(None), direction, vec![pairs(20), pairs(20)], liar);
            world.run(Span::from_secs(15));
            let [why] = &world.refusals()[..] else { panic!("{:?}", world.events) };
            let which = if direction == Direction::Forward { "arrivals" } else { "departures" };
            assert!(
                why.contains(&format!("{} reports {which} {claimed}", peer_address())),
                "{direction}: {why}"
            );
            assert!(why.contains("passed here"), "{why}");
            assert!(world.prober.sink().is_empty(), "not believed");
        }
    }
}

/// Behind a VPN full-sized packets vanish and small ones pass: the methods go on with what fits, and say so.
#[test]
fn a_path_with_a_small_mtu_is_measured_with_packets_that_fit() {
    for (mtu, fits) in [(1_420, 1_400), (1_300, 1_280), (1_200, 576), (600, 576), (576, 576)] {
        for direction in DIRECTIONS {
            for method in ["wbest", "capprobe"] {
                let estimator = build(&method.parse().unwrap(), &Conditions::default()).unwrap();
                let measurements = vec![Measurement { method: method.into(), direction, estimator }];
                let path = Path { mtu: Some(mtu), ..NEAR };
                let mut world = World::new(config(None), measurements, reflector(None), path, 1);
                world.run(Span::from_secs(60));
                let warning = world.events.iter().find_map(|event| match event {
                    Decision::Estimated { estimate, .. } => estimate.warning(),
                    _ => None,
                });
                let case = format!("{method} {direction} at {mtu}: {:?}", world.events);
                let warning = warning.unwrap_or_else(|| panic!("{case}"));
                assert!(warning.contains("packets of 1488 B do not pass this path"), "{case}");
                assert!(warning.contains(&format!("measured with {fits} B")), "{case}");
                let records = world.prober.sink().iter().filter(|record| record.lost() == 0);
                assert!(records.flat_map(|r| &r.packets).all(|p| p.size.0 <= fits), "{case}");
            }
        }
    }
}

/// A method that cannot change its size is refused after one payment that bought nothing.
#[test]
fn nothing_is_paid_twice_in_vain() {
    let path = Path { mtu: Some(1_420), ..NEAR };
    let measurements = vec![measurement(Direction::Reverse, vec![pairs(30)])];
    let mut world = World::new(config(None), measurements, reflector(None), path, 1);
    world.run(Span::from_secs(20));
    assert!(world.refusals()[0].contains("packets of 1488 B"), "{:?}", world.refusals());
    assert!(world.cost().credit_bytes <= Bytes(60 * 1_488), "{:?}", world.cost());
}

fn time_limit_holds(limit: Span, loss: u64, delay: i64, keyed: bool, seed: u64) {
    let key = key("a key of many bytes").filter(|_| keyed);
    let config = ProberConfig { max_time: Some(limit), ..config(key.clone()) };
    let steps = || vec![pairs(5), pairs(100), Step::Pause(Span::from_secs(3)), pairs(5)];
    let measurements = DIRECTIONS.map(|d| measurement(d, steps())).into();
    let path = Path { loss, delay: Span::from_millis(delay), ..NEAR };
    let mut world = World::new(config, measurements, reflector(key), path, seed);
    world.run(Span::from_secs(600));
    assert!(world.now - Time::ZERO <= limit, "{} of {limit}", world.now);
    assert!(world.last_departure <= Time::ZERO + limit, "{} of {limit}", world.last_departure);
    let finished = world.events.iter().filter(|e| matches!(e, Decision::Finished { .. })).count();
    assert_eq!(finished, 1);
}

#[test]
fn asking_for_credit_does_not_outlast_the_time_limit() {
    time_limit_holds(Span::from_millis(8761), 14, 174, false, 2376836216345967548);
}

/// A stranger that sends in the peer's name and cannot hear the session uses up nothing of the user's limit.
#[test]
fn a_flood_in_the_peers_name_does_not_use_up_the_byte_limit() {
    for key in [None, key("a key of many bytes")] {
        let run = |max_bytes, forgeries| {
            let config = ProberConfig { max_bytes, ..config(key.clone()) };
            let measurements = DIRECTIONS.map(|d| measurement(d, vec![pairs(70)])).into();
            let path = Path { forgeries, ..NEAR };
            let mut world = World::new(config, measurements, reflector(key.clone()), path, 1);
            world.run(Span::from_secs(20));
            assert_eq!(world.prober.sink().len(), 3, "{:?}", world.refusals());
            (world.cost(), world.carried)
        };
        let (quiet, (sent, received)) = run(None, 0);
        assert_eq!((quiet.bytes(), quiet.bytes_received), (sent, received), "what was seen without a flood");
        // Its cost, and a prober's reserve for pages that have to be asked for twice.
        let limit = sent + received + Bytes(10_000);
        let (flooded, (_, carried)) = run(Some(limit), 100);
        assert!(carried > received + Bytes(30_000), "a flood: {carried} beside {received}");
        assert_eq!(flooded.bytes_received, received);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Both directions together, however much is lost and however often something is asked again.
    #[test]
    fn the_byte_limit_is_hard(
        limit in 0_u64..600_000, loss in 0_u64..40, delay in 0_i64..500, keyed: bool, seed: u64, pause in 0_i64..60,
    ) {
        let key = key("a key of many bytes").filter(|_| keyed);
        let config = ProberConfig { max_bytes: Some(Bytes(limit)), ..config(key.clone()) };
        let steps = || vec![pairs(5), Step::Pause(Span::from_secs(pause)), pairs(40), pairs(5), pairs(70)];
        let measurements = DIRECTIONS.map(|d| measurement(d, steps())).into();
        let path = Path { loss, delay: Span::from_millis(delay), ..NEAR };
        let mut world = World::new(config, measurements, reflector(key), path, seed);
        world.run(Span::from_secs(600));
        let (sent, received) = world.carried;
        prop_assert!(sent + received <= Bytes(limit), "{sent} and {received} of {limit}");
        let cost = world.cost();
        prop_assert_eq!((cost.bytes(), cost.bytes_received <= received), (sent, true));
    }

    #[test]
    fn the_time_limit_is_hard(ms in 0_i64..20_000, loss in 0_u64..40, delay in 0_i64..500, keyed: bool, seed: u64) {
        time_limit_holds(Span::from_millis(ms), loss, delay, keyed, seed);
    }
}
