//! A component's draws are its own: other components beside it change nothing that physics does not change.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use lastmile::node::Flow;
use lastmile::time::{Span, Time};
use lastmile::units::Rate;
use lastmile_sim::network::link::{Link, LinkConfig};
use lastmile_sim::scenario::{BUILTIN, Override, Scenario, Simulation, build, builtin_text};
use proptest::prelude::*;

use crate::common::link::{Alone, number, numbered};
use crate::random;
use crate::watch::{fingerprint, fingerprint_of};

/// Hosts, a link and a WLAN of their own, and traffic of every kind on them.
const ELSEWHERE: &str = r#"
[host.x0]
[host.x1]
[host.x2]
[[link]]
from = "x0"
to = "xap"
rate = "1 Mbit/s"
queue = "9 packets"
losses = [{ model = { kind = "jakes" } }]
[[wlan]]
standard = "g"
station = [{ name = "xap" }, { name = "x1", ap = "xap", frame_error = 0.3, rate_control = "minstrel" }, { name = "x2", ap = "xap" }]
[[traffic]]
name = "x-cbr"
kind = "cbr"
from = "x0"
to = "x1"
rate = "700 kbit/s"
size = "700 B"
[[traffic]]
name = "x-poisson"
kind = "poisson"
from = "x2"
to = "x0"
rate = "300 kbit/s"
size = "500 B"
[[traffic]]
name = "x-tcp"
kind = "ftp"
from = "x1"
to = "x0"
"#;

fn own(simulation: &Simulation) -> [usize; 3] {
    [simulation.links.len(), simulation.wlans.len(), simulation.sources.len()]
}

fn run(text: &str, seed: u64, until: Time) -> Option<Simulation> {
    let mut simulation = build(&Scenario::parse("draws.toml", text).ok()?, seed, vec![]).unwrap();
    simulation.engine.run_until(until).unwrap();
    Some(simulation)
}

fn seconds(seconds: f64) -> Time {
    Time::ZERO + Span::from_secs_f64(seconds)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    /// Flows on another path, and another cell on another channel: all the rest is the same to the last packet.
    #[test]
    fn another_path_changes_nothing(text in random::scenario(), seed in any::<u64>()) {
        let Some(alone) = run(&text, seed, seconds(10.0)) else { return Err(TestCaseError::reject("refused")) };
        let beside = run(&format!("{text}{ELSEWHERE}"), seed, seconds(10.0)).unwrap();
        prop_assert_eq!(own(&beside)[2], own(&alone)[2] + 3);
        prop_assert_eq!(fingerprint_of(&beside, own(&alone)), fingerprint(&alone), "{}", text);
    }

    /// Flows on the same path, TCP and CBR: until they start, all is the same.
    #[test]
    fn a_later_flow_changes_nothing_before_it_starts(text in random::scenario(), seed in any::<u64>(), late in 0.2_f64..2.9) {
        let until = Time::from_nanos(seconds(late).as_nanos() - 1);
        let Some(alone) = run(&text, seed, until) else { return Err(TestCaseError::reject("refused")) };
        let ends: Vec<_> = text.lines().filter(|line| line.starts_with("from = \"h") || line.starts_with("from = \"c") || line.starts_with("to = \"h") || line.starts_with("to = \"c")).collect();
        // Of a flow, which comes after the links.
        let ends = format!("{}\n{}", ends[ends.len() - 2], ends[ends.len() - 1]);
        let ns = seconds(late).as_nanos();
        let more = format!(
            "[[traffic]]\nname = \"z-tcp\"\nkind = \"ftp\"\n{ends}\nstart = \"{ns} ns\"\ntcp = {{ max_window = 9 }}\n\
             [[traffic]]\nname = \"z-cbr\"\nkind = \"cbr\"\n{ends}\nstart = \"{ns} ns\"\nrate = \"200 kbit/s\"\nsize = \"300 B\"\n"
        );
        let Some(beside) = run(&format!("{text}{more}"), seed, until) else { return Err(TestCaseError::reject("refused")) };
        prop_assert_eq!(fingerprint_of(&beside, own(&alone)), fingerprint(&alone), "{}", text);
    }
}

/// When each flow's packets left its source.
fn emissions(scenario: &Scenario, seed: u64, until: Time) -> BTreeMap<String, Vec<Time>> {
    let mut simulation = build(scenario, seed, vec![]).unwrap();
    let times = Arc::new(Mutex::new(BTreeMap::<Flow, Vec<Time>>::new()));
    let (log, sources) = (Arc::clone(&times), simulation.sources.clone());
    simulation.engine.set_tap(Box::new(move |at, from, _, datagram| {
        if sources.contains(&from) {
            log.lock().unwrap().entry(datagram.flow).or_default().push(at);
        }
    }));
    simulation.engine.run_until(until).unwrap();
    let times = times.lock().unwrap();
    let open = scenario.traffic.iter().zip(&simulation.traffic_flows).filter(|(spec, _)| spec.tcp.is_none());
    open.map(|(spec, flow)| (spec.name.clone(), times.get(flow).cloned().unwrap_or_default())).collect()
}

/// In every ready scenario with traffic: more flows on the very same paths, and the others' packets leave when they did.
#[test]
fn more_flows_on_the_same_path_leave_the_others_departures() {
    let mut compared = 0;
    for name in BUILTIN {
        let text = builtin_text(name).unwrap();
        let short = [Override::new("duration", "10 s"), Override::new("warm_up", "1 s")];
        let parse = |text: &str| Scenario::parse_with(name, text, &short);
        // A scenario with a flow or measurement that would start after this run's end keeps its duration.
        let parse = |text: &str| parse(text).or_else(|_| Scenario::parse(name, text)).unwrap();
        let alone = parse(text);
        let Some(first) = alone.traffic.first() else { continue };
        let ends =
            format!("from = \"{}\"\nto = \"{}\"", alone.hosts[first.from].name, alone.hosts[first.to].name);
        let more = format!(
            "\n[[traffic]]\nname = \"a-tcp\"\nkind = \"ftp\"\n{ends}\n[[traffic]]\nname = \"a-onoff\"\nkind = \"onoff\"\n{ends}\n\
             rate = \"50 kbit/s\"\nsize = \"500 B\"\non = \"100 ms\"\noff = \"200 ms\"\n"
        );
        let beside = emissions(&parse(&format!("{text}{more}")), 3, seconds(10.0));
        for (flow, times) in emissions(&alone, 3, seconds(10.0)) {
            assert_eq!(times, beside[&flow], "{name}: {flow}");
            compared += times.len();
        }
    }
    assert!(compared > 10_000, "{compared}");
}

/// The numbers of a flow's packets that arrive, with and without others on the same link.
fn arrived(loss: &str, more: bool) -> Vec<u64> {
    let config = LinkConfig {
        rate: Some(Rate::ip(1_000_000_000)),
        losses: vec![toml::from_str(loss).unwrap()],
        ..LinkConfig::default()
    };
    const OWN: u64 = 10_000;
    let own = (0..OWN).map(|n| (n * 2_000_000 + n * n % 1_999_993, 500));
    let others = (0..if more { 9_000 } else { 0 }).map(|n| (n * 2_200_001, 700));
    let mut offered = numbered(&own.chain(others).collect::<Vec<_>>());
    for (_, packet) in &mut offered {
        packet.flow = Flow(if number(packet) < OWN { 7 } else { 8 });
    }
    offered.sort_by_key(|offered| offered.0);
    let (fates, _) = Alone::new(Link::seeded(config, 5, "lossy"), offered).run();
    let own: Vec<u64> = fates.arrived.iter().map(|arrived| arrived.1).filter(|&n| n < OWN).collect();
    assert!((100..9_950).contains(&own.len()), "{loss}: {}", own.len());
    own
}

/// A channel in packets that is for one flow, and a channel in time that is for all: with any others on the link, the
/// same packets are lost.
#[test]
fn more_flows_on_the_same_link_leave_the_pattern_of_losses() {
    for loss in [
        "flows = [7]\nmodel = { kind = 'bernoulli', rate = 0.1 }",
        "flows = [7]\nmodel = { kind = 'gilbert-elliott', p = 0.05, r = 0.3 }",
        "flows = [7]\nmodel = { kind = 'markov-packets', good = 40, bad = 3 }",
        "flows = [7]\nmodel = { kind = 'pattern', period = 9, lost = [2, 3], random_start = true }",
        "place = 'before'\nmodel = { kind = 'markov-time', good = '100 ms', bad = '10 ms' }",
        "place = 'before'\nmodel = { kind = 'jakes' }",
    ] {
        assert_eq!(arrived(loss, false), arrived(loss, true), "{loss}");
    }
}
