//! The lab against its simulator twins: every story is one scenario, run with real sockets between namespaces and in
//! virtual time, under the same check.
//!
//! The twins always gate. The lab meets the wall clock: its stories run alone, one after the other; one that was late
//! is tried again, and then printed as refused.
#![allow(clippy::print_stderr, reason = "what was scored and what refused is this test's result")]

mod patience;
mod programs;
mod traffic;

use std::sync::atomic::AtomicBool;

use lastmile::endpoint::Event;
use lastmile::estimate::{Conditions, Quantity, Refusal, Value};
use lastmile::report::Direction;
use lastmile::time::{Span, Time};
use lastmile::units::Rate;
use lastmile_net::lab::LabError;
use lastmile_net::lab::due::MOVED_MOST;
use lastmile_net::lab::lateness::LabLateness;
use lastmile_net::lab::run::{LabConfig, LabRunError, run as run_lab};
use lastmile_net::sched::RealTime;
use lastmile_sim::roles::measure::Outcome;
use lastmile_sim::roles::{Found, Makers};
use lastmile_sim::runs::{Hooks, simulate};
use lastmile_sim::scenario::Scenario;

use patience::{Late, patiently};

/// Verdict on a run in the lab.
pub(crate) enum Verdict {
    /// It was on time; the result of the check.
    Scored(Result<String, String>),
    /// It was too late to be judged.
    Late(Late),
    /// This machine can have no lab.
    Impossible(String),
}

/// One scenario and the results that it must give.
struct Story {
    name: &'static str,
    scenario: String,
    seed: u64,
    /// The estimates that are to be made: direction, quantity, and the largest error against the truth of the
    /// estimate's own window in the lab, and in the simulator.
    wanted: Vec<(Direction, Quantity, f64, f64)>,
}

fn head(hosts: &str) -> String {
    format!("name = \"story\"\nduration = \"20 s\"\nwarm_up = \"0.2 s\"\n{hosts}\n")
}

const TWO: &str = "[host.sender]\n[host.receiver]";

fn link(from: &str, to: &str, rest: &str) -> String {
    format!("[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\nqueue = \"60 kB\"\n{rest}\n")
}

fn traffic(kind: &str, from: &str, to: &str, rate: &str) -> String {
    format!(
        "[[traffic]]\nname = \"{from}-{to}\"\nkind = \"{kind}\"\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"{rate}\"\nsize = \"1500 B\"\n"
    )
}

fn measure(from: &str, to: &str, rest: &str) -> String {
    format!("[[measure]]\nfrom = \"{from}\"\nto = \"{to}\"\nstart = \"300 ms\"\n{rest}\n")
}

const WBEST: &str = "method = \"wbest\"\ndirection = \"both\"";
const TEN: &str = "rate = \"10 Mbit/s\"\ndelay = \"2 ms\"";

/// Both quantities of WBest, both ways: capacity within 3 % (three times what a pair's stamps cost), the available
/// bandwidth within what the 90th percentile allows a single run.
fn wbest(available: f64, twin: f64) -> Vec<(Direction, Quantity, f64, f64)> {
    let one = |d| [(d, Quantity::Capacity, 0.03, 0.002), (d, Quantity::AvailableBandwidth, available, twin)];
    [Direction::Forward, Direction::Reverse].into_iter().flat_map(one).collect()
}

fn wbest_against(name: &'static str, kind: Option<&str>, rest: &str, available: f64, twin: f64) -> Story {
    let cross = |from, to| kind.map_or_else(String::new, |kind| traffic(kind, from, to, "4 Mbit/s"));
    let scenario = [
        head(TWO),
        link("sender", "receiver", TEN),
        cross("sender", "receiver"),
        cross("receiver", "sender"),
        measure("sender", "receiver", &format!("{WBEST}\n{rest}")),
    ];
    Story { name, scenario: scenario.concat(), seed: 7, wanted: wbest(available, twin) }
}

fn stories() -> Vec<Story> {
    let capprobe = |direction: &str| {
        let method = format!("method = \"capprobe\"\ndirection = \"{direction}\"");
        [
            head(TWO),
            link("sender", "receiver", &format!("{TEN}\nback = {{ rate = \"6 Mbit/s\" }}")),
            traffic("poisson", "sender", "receiver", "2 Mbit/s"),
            measure("sender", "receiver", &method),
        ]
        .concat()
    };
    let capacity = |direction| (direction, Quantity::Capacity, 0.03, 0.005);
    let routed = [
        // Addresses that no common prefix routes.
        head("[host.alice]\naddress = \"192.0.2.1\"\n[host.bob]\naddress = \"198.51.100.7\"\n[host.carol]"),
        link("alice", "middle", "rate = \"100 Mbit/s\"\ndelay = \"1 ms\""),
        link("carol", "middle", "rate = \"100 Mbit/s\""),
        link("middle", "bob", "rate = \"8 Mbit/s\"\ndelay = \"5 ms\"\nback = { rate = \"5 Mbit/s\" }"),
        traffic("poisson", "carol", "bob", "3 Mbit/s"),
        measure("alice", "bob", WBEST),
    ];
    let shared = [
        head("[host.alice]\n[host.bob]\n[host.carol]"),
        link("alice", "middle", TEN),
        link("carol", "middle", "rate = \"6 Mbit/s\""),
        link("middle", "bob", "rate = \"100 Mbit/s\"\ndelay = \"1 ms\""),
        measure("alice", "bob", WBEST),
        measure("carol", "bob", WBEST),
    ];
    vec![
        wbest_against("WBest, idle", None, "", 0.06, 0.003),
        wbest_against("WBest, CBR", Some("cbr"), "", 0.06, 0.003),
        wbest_against("WBest, Poisson", Some("poisson"), "", 0.10, 0.003),
        wbest_against("WBest by IPv6, Poisson", Some("poisson"), "ipv6 = true", 0.10, 0.003),
        Story {
            name: "CapProbe, one way",
            scenario: capprobe("both"),
            seed: 3,
            wanted: vec![capacity(Direction::Forward), capacity(Direction::Reverse)],
        },
        Story {
            name: "CapProbe, round trip",
            scenario: capprobe("round-trip"),
            seed: 3,
            wanted: vec![capacity(Direction::RoundTrip)],
        },
        Story {
            name: "WBest through a router, rates that differ by direction",
            scenario: routed.concat(),
            seed: 5,
            wanted: wbest(0.10, 0.003),
        },
        Story {
            name: "two sessions with one reflector",
            scenario: shared.concat(),
            seed: 9,
            wanted: [wbest(0.06, 0.003), wbest(0.06, 0.003)].concat(),
        },
    ]
}

fn makers(noise: Span) -> Makers {
    Makers::measuring(move |spec| {
        let conditions = Conditions { timing_noise: noise, ..Conditions::default() };
        lastmile::estimate::build(&spec.method, &conditions).map_err(|error| error.to_string())
    })
}

/// The errors of a story's estimates, or the first fault in words.
fn check(story: &Story, outcomes: &[Outcome], in_lab: bool) -> Result<String, String> {
    let name = |o: &Outcome| format!("{} to {}, {} {}", o.from, o.to, o.direction, o.method);
    let known = |o: &&Outcome| o.estimate.as_ref().is_none_or(|e| e.value != Value::Unknown);
    let outcomes: Vec<&Outcome> = outcomes.iter().filter(known).collect();
    if outcomes.len() != story.wanted.len() {
        let all: Vec<_> = outcomes.iter().map(|o| name(o)).collect();
        return Err(format!("{} estimates wanted, not {all:?}", story.wanted.len()));
    }
    let mut errors = Vec::new();
    for (outcome, (direction, quantity, lab, twin)) in outcomes.iter().zip(&story.wanted) {
        let limit = if in_lab { *lab } else { *twin };
        let Some(estimate) = &outcome.estimate else {
            return Err(format!("{}: refused: {:?}", name(outcome), outcome.refusal));
        };
        if (outcome.direction, estimate.quantity) != (*direction, *quantity) {
            return Err(format!(
                "{}: {} where {direction} {quantity} was due",
                name(outcome),
                estimate.quantity
            ));
        }
        let truth = outcome.truth.and_then(|t| t.of(estimate)).ok_or_else(|| name(outcome) + ": no truth")?;
        let error = estimate.value.rate().and_then(|rate| rate.ratio(truth)).map_or(f64::NAN, |r| r - 1.0);
        if error.is_nan() || error.abs() > limit {
            return Err(format!("{}: {quantity} {} where {truth} is true", name(outcome), estimate.value));
        }
        errors.push(format!("{:+.1} %", error * 100.0));
    }
    Ok(errors.join(" "))
}

/// Two sessions that begin at times of their own, the second beside the first.
fn beside_each_other() -> String {
    let session = |from, start| {
        let what = "method = \"capprobe\"\ndirection = \"forward\"";
        measure(from, "bob", what).replace("300 ms", start)
    };
    let hosts = head("[host.alice]\n[host.bob]\n[host.carol]").replace("20 s", "5 s");
    let links = [link("alice", "middle", TEN), link("carol", "middle", "rate = \"6 Mbit/s\"")].concat();
    let shared = link("middle", "bob", "rate = \"100 Mbit/s\"\ndelay = \"1 ms\"");
    [hosts, links, shared, session("alice", "500 ms"), session("carol", "600 ms")].concat()
}

/// By node when it decided first and last, in seconds.
fn spans(events: &[Event]) -> Vec<(u32, f64, f64)> {
    let mut spans: Vec<(u32, f64, f64)> = Vec::new();
    for event in events {
        let at = (event.at - Time::ZERO).as_secs_f64();
        match spans.iter_mut().find(|span| span.0 == event.node) {
            Some(span) => span.2 = at,
            None => spans.push((event.node, at, at)),
        }
    }
    spans
}

/// Checks that both sessions ran with their hosts' numbers, as the reflector did, each from its start on, at the same time.
fn are_beside_each_other(events: &[Event]) -> Result<String, String> {
    let spans = spans(events);
    let wrong = || format!("{spans:?}");
    let [(0, alice, alice_end), (1, ..), (2, carol, carol_end)] = spans[..] else { return Err(wrong()) };
    // The phase drawn for a session is up to 50 ms, the first answer comes a round trip later.
    let begin = (0.5..0.6).contains(&alice) && (0.6..0.7).contains(&carol);
    let ordered = events.is_sorted_by_key(Event::order);
    match begin && ordered && carol < alice_end && alice < carol_end {
        true => Ok(format!("{alice:.3} s to {alice_end:.3} s and {carol:.3} s to {carol_end:.3} s")),
        false => Err(wrong()),
    }
}

fn sessions_in_the_lab() -> Verdict {
    let scenario = Scenario::parse("story", &beside_each_other()).expect("scenario");
    let config = LabConfig { seed: 4, realtime: realtime(), ..LabConfig::default() };
    match run_lab(&scenario, &makers(Span::from_micros(2)), config, &AtomicBool::new(false)) {
        Err(error) => failed(error),
        Ok(run) => late(&run.lateness).unwrap_or_else(|| Verdict::Scored(are_beside_each_other(&run.events))),
    }
}

#[test]
fn sessions_twin() {
    let scenario = Scenario::parse("story", &beside_each_other()).expect("scenario");
    let run = simulate(&scenario, 4, &makers(Span::ZERO), Hooks::default()).expect("run");
    are_beside_each_other(&run.events).expect("two sessions at one time");
    assert!(
        run.found.measure.records.iter().all(|(_, records)| !records.is_empty())
            && run.found.measure.records.len() == 2
    );
}

/// A measurement and two streams, one of them back, between the same two hosts at once.
fn streams() -> String {
    let stream = |name, from, to, rate| {
        format!(
            "[[stream]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"{rate}\"\nstart = \"300 ms\"\n"
        )
    };
    [
        head(TWO).replace("20 s", "4 s"),
        // A burst of 40 packets, with which CapProbe checks pairs that it doubts, takes 60 kB of the queue at once.
        link("sender", "receiver", TEN).replace("60 kB", "120 kB"),
        measure("sender", "receiver", "method = \"capprobe\"\ndirection = \"forward\""),
        stream("there", "sender", "receiver", "2 Mbit/s"),
        stream("back", "receiver", "sender", "1 Mbit/s"),
    ]
    .concat()
}

/// Each stream got its rate, lost nothing and was told of it, and the measurement beside them found the capacity.
fn are_all_there(found: &Found) -> Result<String, String> {
    let mut seen = Vec::new();
    for (stream, rate) in found.stream.outcomes.iter().zip([2e6, 1e6]) {
        let share = stream.goodput_bps.unwrap_or_default() / rate;
        if (share - 1.0).abs() > 0.02 || !stream.lost.is_empty() || stream.feedback_bytes == 0 {
            return Err(format!("{stream:?}"));
        }
        seen.push(format!("{} at {share:.3}", stream.stream));
    }
    match &found.measure.outcomes[..] {
        [Outcome { estimate: Some(estimate), .. }, ..] if seen.len() == 2 => {
            let ratio = estimate.value.rate().and_then(|rate| rate.ratio(Rate::ip(10_000_000)));
            seen.push(format!("capacity at {:.3}", ratio.unwrap_or(f64::NAN)));
            match ratio.is_some_and(|ratio| (ratio - 1.0).abs() <= 0.03) {
                true => Ok(seen.join(", ")),
                false => Err(seen.join(", ")),
            }
        }
        other => Err(format!("{other:?}")),
    }
}

fn streams_in_the_lab() -> Verdict {
    let scenario = Scenario::parse("story", &streams()).expect("scenario");
    let config = LabConfig { seed: 5, realtime: realtime(), ..LabConfig::default() };
    match run_lab(&scenario, &makers(Span::from_micros(2)), config, &AtomicBool::new(false)) {
        Err(error) => failed(error),
        Ok(run) => late(&run.lateness).unwrap_or_else(|| Verdict::Scored(are_all_there(&run.found))),
    }
}

#[test]
fn streams_twin() {
    let scenario = Scenario::parse("story", &streams()).expect("scenario");
    let run = simulate(&scenario, 5, &makers(Span::ZERO), Hooks::default()).expect("run");
    are_all_there(&run.found).expect("a measurement and two streams at one time");
}

fn realtime() -> bool {
    RealTime::fifo(10).is_ok()
}

/// Runs a scenario in the lab; `judge` is asked about a run that was on time.
fn in_lab(text: &str, seed: u64, judge: impl FnOnce(&[Outcome]) -> Result<String, String>) -> Verdict {
    let scenario = Scenario::parse("story", text).expect("scenario");
    let config = LabConfig { seed, realtime: realtime(), ..LabConfig::default() };
    let run = run_lab(&scenario, &makers(Span::from_micros(2)), config, &AtomicBool::new(false));
    let run = match run {
        Ok(run) => run,
        Err(error) => return failed(error),
    };
    let broken =
        run.found.measure.outcomes.iter().find(|o| matches!(o.refusal, Some(Refusal::ScheduleBroken { .. })));
    match (late(&run.lateness), broken.and_then(|o| o.refusal.as_ref())) {
        (Some(verdict), _) => verdict,
        (None, Some(refusal)) => Verdict::Late(Late { why: refusal.to_string(), hypervisors: false }),
        (None, None) => {
            // An accepted result is also that of probes in time, in two simulations as well.
            let simulated = run.moved.and_then(|moved| moved.simulated).unwrap_or(0.0);
            if simulated.is_infinite() {
                // One of them refuses by the same late entries: a caution, and no wrong number.
                let why = "a simulation refuses by its late entries".to_owned();
                return Verdict::Late(Late { why, hypervisors: false });
            }
            let judged = judge(&run.found.measure.outcomes);
            Verdict::Scored(match simulated <= MOVED_MOST {
                true => judged,
                false => Err(format!("late entries move it by {:.1} % of the capacity", simulated * 100.0)),
            })
        }
    }
}

/// The verdict on a lab that was too late.
pub(crate) fn late(lateness: &LabLateness) -> Option<Verdict> {
    let why = lateness.refused.as_ref()?.to_string();
    Some(Verdict::Late(Late { why, hypervisors: lateness.is_hypervisors() }))
}

/// A lab that this machine cannot have is skipped; any other error is a defect.
pub(crate) fn failed(error: LabRunError) -> Verdict {
    match error {
        LabRunError::Lab(e @ (LabError::NeedNamespaces { .. } | LabError::NeedTun { .. })) => {
            Verdict::Impossible(e.to_string())
        }
        error => Verdict::Scored(Err(error.to_string())),
    }
}

fn in_simulator(text: &str, seed: u64) -> Vec<Outcome> {
    let scenario = Scenario::parse("story", text).expect("scenario");
    simulate(&scenario, seed, &makers(Span::ZERO), Hooks::default()).expect("run").found.measure.outcomes
}

#[test]
fn simulator_twins() {
    let mut wrong = Vec::new();
    for story in stories() {
        match check(&story, &in_simulator(&story.scenario, story.seed), false) {
            Ok(errors) => eprintln!("{}: {errors}", story.name),
            Err(why) => wrong.push(format!("{}: {why}", story.name)),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

const IDLE_RUNS: u64 = 5;

/// The median of the available bandwidth on the idle path.
fn idle_median(outcomes: impl Fn(u64) -> Vec<Outcome>) -> Option<Rate> {
    let available =
        |o: &Outcome| Some(o.estimate.as_ref().filter(|e| e.quantity == Quantity::AvailableBandwidth)?.value);
    let mut rates: Vec<Rate> =
        (0..IDLE_RUNS).flat_map(outcomes).filter_map(|o| available(&o)?.rate()).collect();
    rates.sort_unstable_by_key(|rate| rate.bits_per_second());
    rates.get(rates.len() / 2).copied()
}

fn idle() -> String {
    let forward = "method = \"wbest\"\ndirection = \"forward\"";
    [head(TWO), link("sender", "receiver", TEN), measure("sender", "receiver", forward)].concat()
}

/// Medians of both worlds on the idle path, within 2 %.
fn medians_agree() -> Verdict {
    let (text, late) = (idle(), std::cell::RefCell::new(Vec::new()));
    let lab = idle_median(|seed| {
        let mut found = Vec::new();
        let verdict = in_lab(&text, seed, |outcomes| {
            found = outcomes.to_vec();
            Ok(String::new())
        });
        if !matches!(verdict, Verdict::Scored(Ok(_))) {
            late.borrow_mut().push(verdict);
        }
        found
    });
    // The median of the runs that were on time, if they are most.
    let mut late = late.into_inner();
    let only_late = late.iter().all(|verdict| matches!(verdict, Verdict::Late(_)));
    if let Some(last) = late.pop().filter(|_| !only_late || late.len() as u64 * 2 + 2 > IDLE_RUNS) {
        return last;
    }
    let sim = idle_median(|seed| in_simulator(&text, seed)).expect("numbers");
    let Some(apart) = lab.and_then(|lab| lab.ratio(sim)).map(|r| r - 1.0) else {
        return Verdict::Scored(Err("no numbers in the lab".into()));
    };
    Verdict::Scored(match apart.abs() <= 0.02 {
        true => Ok(format!("{:+.2} %", apart * 100.0)),
        false => Err(format!("the lab's median is {:+.1} % from the simulator's", apart * 100.0)),
    })
}

/// Tells one story: true if it counted, or its fault in words. `None` once this machine turns out to have no lab.
fn tell(name: &str, run: impl Fn() -> Verdict) -> Option<Result<bool, String>> {
    let judged = patiently(name, || match run() {
        Verdict::Late(late) => Err(late),
        judged => Ok(judged),
    });
    match judged {
        None | Some(Verdict::Late(_)) => Some(Ok(false)),
        Some(Verdict::Scored(Ok(errors))) => {
            eprintln!("lab: scored: {name}: {errors}");
            Some(Ok(true))
        }
        Some(Verdict::Scored(Err(why))) => Some(Err(format!("{name}: {why}"))),
        Some(Verdict::Impossible(why)) => {
            eprintln!("lab: skipped: {why}");
            None
        }
    }
}

#[test]
#[ignore = "meets the wall clock: runs alone"]
fn wallclock_streams() {
    eprintln!();
    if let Some(Err(wrong)) = tell("a measurement and two streams", streams_in_the_lab) {
        panic!("{wrong}");
    }
}

#[test]
#[ignore = "meets the wall clock: runs alone"]
fn wallclock_lab() {
    // The harness has begun a line.
    eprintln!();
    let mut told = Vec::new();
    for story in stories() {
        let run = || in_lab(&story.scenario, story.seed, |outcomes| check(&story, outcomes, true));
        told.push(tell(story.name, run));
        if told.last() == Some(&None) {
            return;
        }
    }
    told.push(tell("lab and simulator medians agree", medians_agree));
    told.push(tell("sessions with starts of their own", sessions_in_the_lab));
    told.push(tell("two programs", programs::two_programs));
    let told: Vec<_> = told.into_iter().flatten().collect();
    let wrong: Vec<_> = told.iter().filter_map(|t| t.as_ref().err()).collect();
    let late = told.iter().filter(|t| **t == Ok(false)).count();
    eprintln!("lab: {} stories, {late} too late, {} wrong", told.len(), wrong.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
    // scripts/test.sh checks over the whole suite that no more than a third of the lab runs is refused.
}
