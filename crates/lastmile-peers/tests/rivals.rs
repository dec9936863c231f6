//! Controllers of others behind our interface, each in a host of 30 frames a second over one link, in virtual time. Without them there is
//! nothing to test: `SCREAM_DIR=CHECKOUT cargo test -p lastmile-peers --features googcc`.
#![cfg(any(scream, feature = "googcc"))]

use std::collections::{BTreeMap, VecDeque};

use lastmile::control::{
    Controller, Fate, Feedback, LostBy, Output, PacketClass, RateController, Report, Sent, Setting, Signal,
};
use lastmile::node::Ecn;
use lastmile::pace::Pacer;
use lastmile::rng::Stream;
use lastmile::time::{Rx, Span, Time};
use lastmile::units::{Bytes, Rate};

const FRAME: u64 = 33_333;
const FEEDBACK: u64 = 50_000;
const STEP: u64 = 500;
const PACKET: u64 = 1200;

fn at(us: u64) -> Time {
    Time::from_nanos(us * 1000)
}

/// A link of so many bit/s with a queue of so many ms, and so long a way there and back in ms.
#[derive(Clone, Copy)]
struct Path {
    bps: f64,
    rtt_ms: u64,
    queue_ms: u64,
    /// Share of packets that it loses at random.
    loss: f64,
    /// Wait beyond which it marks, in ms.
    mark_ms: u64,
    ecn: Ecn,
    /// The other clock's time at our zero, in us.
    clock: u64,
    seconds: u64,
}

const PATH: Path = Path {
    bps: 2e6,
    rtt_ms: 40,
    queue_ms: 300,
    loss: 0.0,
    mark_ms: u64::MAX,
    ecn: Ecn::NotEct,
    clock: 0,
    seconds: 40,
};

/// Numbers of a run.
#[derive(Debug, Default, PartialEq)]
struct Ran {
    /// Mean target and mean received rate from the middle on, in kbit/s.
    target: f64,
    received: f64,
    /// Mean wait in the queue from the middle on, in ms.
    wait: f64,
    /// Packets that the link lost, and that feedback has told of by the end.
    lost: u64,
    /// The most bytes in flight beyond the window.
    beyond: i64,
    padding: u64,
    /// Targets at each second, in kbit/s.
    targets: Vec<f64>,
    telemetry: BTreeMap<&'static str, f64>,
}

/// A packet, when it arrives and with which codepoint, and whether its fate was told.
type InFlight = (Sent, Option<(u64, Ecn)>, bool);

struct Numbers(BTreeMap<&'static str, f64>);

impl lastmile::telemetry::Visitor for Numbers {
    fn number(&mut self, name: &'static str, _unit: &'static str, value: f64) {
        self.0.insert(name, value);
    }
    fn state(&mut self, _: &'static str, _: &'static str) {}
}

fn made(name: &str, setting: &Setting) -> Box<dyn RateController> {
    let all = lastmile_peers::controllers();
    let entry: &Controller = all.into_iter().find(|entry| entry.name == name).expect("this build has it");
    (entry.make)(&Default::default(), setting).expect("its defaults are possible")
}

fn setting() -> Setting {
    Setting { start: Some(Rate::ip(300_000)), ..Setting::default() }
}

fn run(name: &str, path: Path) -> Ran {
    let mut controller = made(name, &setting());
    let (mut random, mut ran) = (Stream::new(1, "loss"), Ran::default());
    let mut pacer = Pacer::new(Span::ZERO);
    let mut waiting: VecDeque<(u64, PacketClass)> = VecDeque::new();
    let mut flight: Vec<InFlight> = Vec::new();
    let (mut free, mut since_frame, mut in_flight) = (0.0_f64, 0_u64, 0_u64);
    let most = Rate::ip(10_000_000);
    controller.on_signal(at(0), Signal::Demand { min: Rate::ip(100_000), desired: most, max: most });
    let (end, middle) = (path.seconds * 1_000_000, path.seconds * 500_000);
    let (mut targets, mut waits, mut received) = (Vec::new(), Vec::new(), 0.0);
    for now in (0..end).step_by(STEP as usize) {
        if controller.poll_timeout().is_some_and(|due| due <= at(now)) {
            controller.on_timeout(at(now));
        }
        if now % FRAME < STEP {
            let Output { target, padding, .. } = controller.output();
            let backlog =
                |waiting: &VecDeque<(u64, PacketClass)>| waiting.iter().map(|packet| packet.0).sum();
            let before: u64 = backlog(&waiting);
            let frame = (target.bits_per_second() * FRAME / 8_000_000).max(100);
            // A host leaves a frame out where half a second of them waits.
            if before < controller.output().pacing.bits_per_second() / 16 {
                let packets = frame.div_ceil(PACKET);
                waiting.extend((0..packets).map(|_| (frame.div_ceil(packets), PacketClass::Media)));
            }
            controller.on_signal(at(now), Signal::Backlog { bytes: Bytes(backlog(&waiting)) });
            let due = (padding.bits_per_second() * FRAME / 8_000_000).saturating_sub(frame.max(since_frame));
            waiting.extend((0..due / PACKET).map(|_| (PACKET, PacketClass::Padding)));
            since_frame = 0;
            if now >= middle {
                targets.push(target.bits_per_second() as f64 / 1e3);
            }
        }
        if now % 1_000_000 < STEP {
            ran.targets.push(controller.output().target.bits_per_second() as f64 / 1e3);
        }
        while let Some(&(size, class)) = waiting.front() {
            let Output { pacing, window, .. } = controller.output();
            let fits = window.is_none_or(|window| in_flight == 0 || in_flight + size <= window.0);
            if !fits || pacer.ready(at(now), pacing) > at(now) {
                break;
            }
            pacer.release(at(now), Bytes(size), pacing);
            waiting.pop_front();
            in_flight += size;
            since_frame += size;
            ran.padding += u64::from(class == PacketClass::Padding);
            ran.beyond = ran.beyond.max(window.map_or(0, |window| in_flight as i64 - window.0 as i64));
            let sent = Sent {
                class,
                ecn: path.ecn,
                in_flight: Bytes(in_flight),
                ..Sent::media(flight.len() as u64, Bytes(size), at(now))
            };
            let wait = (free - now as f64).max(0.0);
            if now >= middle {
                waits.push(wait / 1e3);
            }
            let drops = wait > path.queue_ms as f64 * 1e3 || random.unit() < path.loss;
            let marks = path.ecn != Ecn::NotEct && wait > path.mark_ms as f64 * 1e3;
            ran.lost += u64::from(drops);
            let arrival = (!drops).then(|| {
                free = free.max(now as f64) + size as f64 * 8e6 / path.bps;
                received += if now >= middle { size as f64 * 8.0 } else { 0.0 };
                (free as u64 + path.rtt_ms * 500, if marks { Ecn::Ce } else { path.ecn })
            });
            flight.push((sent, arrival, false));
            controller.on_sent(at(now), &sent);
        }
        if now % FEEDBACK < STEP {
            let came = |arrival: &Option<(u64, Ecn)>| {
                arrival.filter(|(arrived, _)| *arrived + path.rtt_ms * 500 <= now)
            };
            let newest = flight.iter().rposition(|(_, arrival, _)| came(arrival).is_some());
            let mut reports = Vec::new();
            let from = flight.len().saturating_sub(5000);
            for (number, (sent, arrival, told)) in flight.iter_mut().enumerate().skip(from) {
                if *told || newest.is_none_or(|newest| number > newest) {
                    continue;
                }
                let fate = match came(arrival) {
                    Some((arrived, ecn)) => {
                        Fate::Arrived { at: Some(Time::<Rx>::from_nanos((arrived + path.clock) * 1000)), ecn }
                    }
                    None if newest.is_some_and(|newest| number + 3 <= newest) => Fate::lost(LostBy::Gap),
                    None => continue,
                };
                *told = true;
                in_flight -= sent.size.0;
                reports.push(Report { sent: *sent, fate });
            }
            if !reports.is_empty() {
                let remote = Time::<Rx>::from_nanos((now - path.rtt_ms * 500 + path.clock) * 1000);
                controller.on_feedback(at(now), &mut Feedback::exact(&mut reports, Some(remote)));
            }
        }
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let mut numbers = Numbers(BTreeMap::new());
    controller.telemetry(&mut numbers);
    (ran.target, ran.wait) = (mean(&targets), mean(&waits));
    (ran.received, ran.telemetry) = (received / ((end - middle) as f64 / 1e3), numbers.0);
    ran
}

/// Without feedback no more leaves than the first window, 100 ms of the start rate and its headroom.
#[cfg(scream)]
#[test]
fn scream_clocks_itself() {
    let mut controller = made("scream", &setting());
    controller.on_signal(at(0), Signal::Backlog { bytes: Bytes(50_000) });
    let (mut in_flight, mut number) = (0, 0);
    while controller.output().window.is_none_or(|window| in_flight + PACKET <= window.0) {
        in_flight += PACKET;
        let sent =
            Sent { in_flight: Bytes(in_flight), ..Sent::media(number, Bytes(PACKET), at(number * 100)) };
        controller.on_sent(at(number * 100), &sent);
        number += 1;
        assert!(number < 100, "{:?}", controller.output());
    }
    assert!((3_750..=5 * 3_750 + 1_200).contains(&in_flight), "{in_flight}");
    // Half a second without a packet: it forgets what is in flight, and a packet may leave.
    controller.on_signal(at(700_000), Signal::Backlog { bytes: Bytes(50_000) });
    let window = controller.output().window.unwrap().0;
    assert!(window >= in_flight + PACKET, "{window} of {in_flight}");
}

#[cfg(scream)]
#[test]
fn scream_fills_a_link_with_its_delay_target() {
    let ran = run("scream", PATH);
    assert!(ran.beyond <= 0, "{ran:?}");
    assert!((1_300.0..2_000.0).contains(&ran.received) && ran.wait < 60.0 && ran.lost == 0, "{ran:?}");
}

/// It is told of arrivals alone, and finds all losses in their gaps.
#[cfg(scream)]
#[test]
fn scream_finds_losses() {
    let ran = run("scream", Path { loss: 0.03, ..PATH });
    let found = ran.telemetry["lost"];
    assert!(ran.lost > 20 && (found - ran.lost as f64).abs() <= 3.0, "{found} of {}", ran.lost);
}

/// Clocks are apart by any time: so that delays are below zero, change their sign, and end NTP's 16 bits of seconds.
#[cfg(scream)]
#[test]
fn scream_needs_no_common_clock() {
    let ran = run("scream", PATH);
    for clock in [1, 21_000, 3_600_000_000, 65_530_000_000] {
        let other = run("scream", Path { clock, ..PATH });
        let apart = (other.received - ran.received).abs() / ran.received;
        assert!(apart < 0.02 && (other.wait - ran.wait).abs() < 3.0, "{clock}: {other:?}\n{ran:?}");
    }
}

/// More than 65,536 packets, and so numbers that begin anew.
#[cfg(scream)]
#[test]
fn scream_goes_on_after_65536_packets() {
    let ran = run("scream", Path { bps: 20e6, seconds: 120, ..PATH });
    let (early, late) = (ran.targets[40], ran.targets[119]);
    assert!(ran.received > 7_000.0 && late > 0.8 * early, "{ran:?}");
}

/// Marked beyond 1 ms: as ECT(1) by shares of marks, and so with a shorter queue than unmarked.
#[cfg(scream)]
#[test]
fn scream_answers_marks() {
    let marked = Path { bps: 5e6, mark_ms: 2, ..PATH };
    let [none, classic, l4s] =
        [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1].map(|ecn| run("scream", Path { ecn, ..marked }));
    assert!(l4s.wait < 0.7 * none.wait && classic.wait < none.wait, "{none:?}\n{classic:?}\n{l4s:?}");
    assert!((l4s.received - classic.received).abs() > 10.0, "{classic:?}\n{l4s:?}");
}

/// From 300 kbit/s by probes at three and six times of it.
#[cfg(feature = "googcc")]
#[test]
fn googcc_probes_at_its_start() {
    let ran = run("googcc", Path { bps: 4e6, ..PATH });
    assert!(ran.padding >= 4 && ran.targets[5] > 1_200.0, "{ran:?}");
    assert!((2_600.0..4_000.0).contains(&ran.received) && ran.wait < 100.0, "{ran:?}");
}

#[cfg(feature = "googcc")]
#[test]
fn googcc_backs_off_from_a_queue_and_not_from_random_loss() {
    let [clean, some, most] = [0.0, 0.05, 0.5].map(|loss| run("googcc", Path { loss, ..PATH }));
    assert!(some.target > 0.7 * clean.target, "{clean:?}\n{some:?}");
    assert!(most.target < 0.5 * clean.target, "{clean:?}\n{most:?}");
}

#[cfg(feature = "googcc")]
#[test]
fn googcc_needs_no_common_clock_and_repeats_itself() {
    let ran = run("googcc", PATH);
    assert_eq!(run("googcc", PATH), ran);
    assert_eq!(run("googcc", Path { clock: 3_600_000_000, ..PATH }), ran);
}

/// A peer whose reports make no sense: rates stay within the limits.
#[test]
fn nonsense_leaves_rates_within_the_limits() {
    for entry in lastmile_peers::controllers() {
        let setting = Setting { max: Rate::ip(5_000_000), ..setting() };
        let mut controller = made(entry.name, &setting);
        let mut random = Stream::new(7, "nonsense");
        let mut any = |most: f64| (random.unit() * most) as u64;
        for step in 0..3_000 {
            let now = at(step * 1_000);
            let sent = Sent { in_flight: Bytes(any(1e6)), ..Sent::media(step, Bytes(any(70_000.0)), now) };
            controller.on_sent(now, &sent);
            let fate = match any(4.0) {
                0 => Fate::arrived(Time::from_nanos(any(1e19))),
                1 => Fate::lost(LostBy::Timeout),
                2 => Fate::Late { at: Some(Time::from_nanos(any(1e12))) },
                _ => Fate::Arrived { at: None, ecn: Ecn::Ce },
            };
            let told = Sent::media(any(4_000.0), Bytes(any(70_000.0)), at(any(4e6)));
            let mut reports = [Report { sent, fate }, Report { sent: told, fate }];
            controller.on_feedback(now, &mut Feedback::exact(&mut reports, None));
            controller.on_signal(now, Signal::Backlog { bytes: Bytes(any(1e7)) });
            if controller.poll_timeout().is_some_and(|due| due <= now) {
                controller.on_timeout(now);
            }
            let output = controller.output();
            for rate in [output.target, output.pacing] {
                assert!(rate >= setting.min && rate <= setting.max, "{}: {output:?}", entry.name);
            }
        }
    }
}

/// The registry's line has the version.
#[test]
fn versions_are_told() {
    for entry in lastmile_peers::controllers() {
        assert!(entry.paper.contains("str0m 0.25.0") || entry.paper.contains("EricssonResearch/scream at "));
    }
}
