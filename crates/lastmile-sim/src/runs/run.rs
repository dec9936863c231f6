//! Runs a scenario in virtual time, with what its roles put at its hosts, and says what came of it.
//!
//! The lab runs the same endpoints with real sockets and gives the same [`Found`].

use std::any::Any;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

use lastmile::endpoint::{AnyEndpoint, Event};
use lastmile::node::{self, Input};
use lastmile::time::{Epoch, Span, Time};

use crate::network::clock::HostClock;
use crate::network::engine::{Engine, EngineError};
use crate::network::host::Seat;
use crate::roles::{Ended, Found, Made, Make, Place, Placed, Running, Surroundings};
use crate::runs::accounting::{NetworkOutcome, Watched};
use crate::runs::series::SeriesPlan;
use crate::scenario::{Attach, BuildError, Scenario, Simulation, build};

/// Why a scenario cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The scenario cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The engine stopped.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// No such method.
    #[error("{0}")]
    Method(String),
}

/// What a simulated run gave.
#[derive(Debug)]
pub struct SimulatedRun {
    /// What came of the endpoints, role by role.
    pub found: Found,
    /// What the scenario's traffic got, and what its links and WLANs carried.
    pub network: NetworkOutcome,
    /// All decisions, in order.
    pub events: Vec<Event>,
    /// The engine, for counters.
    pub engine: Engine,
    /// Whether [`Hooks::progress`] ended it before the scenario's duration was over; then there are no truths.
    pub stopped: bool,
}

/// Is told where an endpoint is, and what determines it beside its inputs, in its role's own form.
pub type TellConfig = Box<dyn FnOnce(Place, &dyn Any) + Send>;

/// Is told every input of a node.
pub type TellInput = Box<dyn FnMut(Time, &Input) + Send>;

/// Is given a simulation before it runs.
pub type Prepare = Box<dyn FnOnce(&Scenario, &mut Simulation) + Send>;

/// Is told how far a run has come, in virtual time, and says whether it is to go on.
pub type Progress = Box<dyn FnMut(Time) -> ControlFlow<()> + Send>;

/// Who is told what an endpoint is given: what a recording needs.
pub struct Recorded {
    /// Which endpoint, by its place in the order of the scenario's tables.
    pub which: usize,
    /// Told once where it is, and all that determines it beside its inputs, in the role's own form.
    pub config: TellConfig,
    /// Told every input.
    pub input: TellInput,
}

/// Who looks on while a scenario runs.
#[derive(Default)]
pub struct Hooks {
    /// Records one endpoint.
    pub recorded: Option<Recorded>,
    /// Given the simulation before it runs, to attach what else shall look on.
    pub prepare: Option<Prepare>,
    /// Told what happens in each step of time.
    pub series: Option<SeriesPlan>,
    /// Told some thousand times, and each second of virtual time at least, how far the run has come; may end it there.
    /// Results of a run that goes on are the same with and without.
    pub progress: Option<Progress>,
}

impl Recorded {
    /// Makes an endpoint, and has it recorded if it is the one.
    pub fn make(
        recorded: &mut Option<Recorded>,
        index: usize,
        placed: Placed,
        around: &Surroundings,
    ) -> AnyEndpoint {
        let Made { endpoint, config } = (placed.make)(around);
        match recorded.take() {
            Some(Recorded { which, config: tell, input: mut told }) if which == index => {
                tell(placed.place, &*config);
                Box::new(node::Recorded::new(endpoint, move |now, what: &Input| told(now, what)))
            }
            other => {
                *recorded = other;
                endpoint
            }
        }
    }
}

/// Runs a scenario in virtual time, until its duration is over. What its endpoints have not done by then they are told to
/// end.
///
/// # Errors
/// See [`RunError`].
pub fn simulate(
    scenario: &Scenario,
    seed: u64,
    make: Make<'_>,
    mut hooks: Hooks,
) -> Result<SimulatedRun, RunError> {
    let (placed, mut running) = Running::plan(scenario, seed, make)?;
    let places: Vec<Place> = placed.iter().map(|placed| placed.place).collect();
    let mut seats: BTreeMap<usize, Vec<Seat>> = BTreeMap::new();
    for (index, placed) in placed.into_iter().enumerate() {
        let Place { host, ipv6, port, number } = placed.place;
        let clock = &scenario.hosts[host].clock;
        let around = Surroundings {
            epoch: Epoch::from_unix_nanos(1_000_000_000_000_000_000),
            resolution: clock.resolution.max(Span::from_nanos(1)),
            clock: Some(HostClock::new(clock.clone())),
        };
        let endpoint = Recorded::make(&mut hooks.recorded, index, placed, &around);
        seats.entry(host).or_default().push(Seat { number: Some(number), ipv6, port, endpoint });
    }
    let hosts: Vec<usize> = seats.keys().copied().collect();
    let attached =
        seats.into_iter().map(|(host, seats)| (scenario.hosts[host].name.clone(), Attach::Endpoints(seats)));
    let mut simulation = build(scenario, seed, attached.collect())?;
    running.attach(scenario, &mut simulation);
    if let Some(prepare) = hooks.prepare.take() {
        prepare(scenario, &mut simulation);
    }
    let mut watched = Watched::new(scenario, simulation).with_series(scenario, hooks.series.take());
    let end = Time::ZERO + scenario.duration;
    let mut stopped = false;
    if let Some(told) = &mut hooks.progress {
        let step = Span::from_nanos((scenario.duration.as_nanos() / 1_000).max(1)).min(Span::from_secs(1));
        let mut next = Time::ZERO + step;
        while next < end && !stopped {
            watched.run_until(next)?;
            stopped = told(next).is_break();
            next += step;
        }
    }
    if !stopped {
        watched.run_until(end)?;
    }
    let network = watched.outcome(scenario);
    let mut simulation = watched.into_simulation();
    hosts.into_iter().for_each(|host| simulation.engine.interrupt(simulation.hosts[host]));
    let events = simulation.engine.take_events();
    let ended = Ended { scenario, simulation: &simulation, events: &events, places: &places, stopped };
    let found = running.found(&ended)?;
    Ok(SimulatedRun { found, network, events, engine: simulation.engine, stopped })
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::roles::measure::{MeasureSpec, Outcome, Session, prober_config, sessions};
    use crate::runs::series::SeriesRow;

    fn sessions_of(measures: &str) -> Result<Vec<Session>, String> {
        let link = |from| format!("[[link]]\nfrom = \"{from}\"\nto = \"middle\"\n");
        let links: String = ["a", "b", "c"].map(link).concat();
        let hosts = "[host.a]\n[host.b]\n[host.c]\n";
        let text = format!("name = \"x\"\nduration = \"1 s\"\n{hosts}{links}{measures}");
        let scenario = Scenario::parse("x", &text).map_err(|error| error.to_string())?;
        Ok(sessions(&scenario))
    }

    fn measure(from: &str, to: &str, rest: &str) -> String {
        format!("[[measure]]\nfrom = \"{from}\"\nto = \"{to}\"\nmethod = \"wbest\"\n{rest}\n")
    }

    #[test]
    fn a_host_has_a_session_with_each_other_by_each_ip_version() {
        let (ab, cb) = (measure("a", "b", ""), measure("c", "b", "ipv6 = true"));
        let others =
            [measure("a", "b", "ipv6 = true"), measure("a", "c", ""), measure("b", "a", "")].concat();
        let found = sessions_of(&[ab.as_str(), &ab, &cb, &others].concat()).unwrap();
        assert_eq!(
            found.iter().map(|s| (s.from, s.to, s.ipv6, s.measures.len())).collect::<Vec<_>>(),
            [(0, 1, false, 4), (2, 1, true, 2), (0, 1, true, 2), (0, 2, false, 2), (1, 0, false, 2)]
        );
    }

    /// Beside its own answers a host measures, by both versions, and somebody measures back: each finds what is there.
    #[test]
    fn several_endpoints_of_a_host_are_told_apart() {
        let text = "name = \"x\"\nduration = \"8 s\"\n[host.a]\n[host.b]\n[[link]]\nfrom = \"a\"\nto = \"b\"\n\
                    rate = \"10 Mbit/s\"\nback = { rate = \"5 Mbit/s\" }\n";
        let start = |start: &str, rest: &str| format!("start = \"{start}\"\ndirection = \"forward\"\n{rest}");
        let text = [
            text.to_owned(),
            measure("a", "b", &start("0 s", "")),
            measure("a", "b", &start("2 s", "ipv6 = true")),
            measure("b", "a", &start("4 s", "")),
        ];
        let scenario = Scenario::parse("x", &text.concat()).unwrap();
        let make = |spec: &MeasureSpec| {
            lastmile::estimate::build(&spec.method, &Default::default()).map_err(|e| e.to_string())
        };
        let run = simulate(&scenario, 1, &make, Hooks::default()).unwrap();
        let error = |outcome: &Outcome| {
            let (estimate, truth) = (outcome.estimate.as_ref().unwrap(), outcome.truth.unwrap());
            (estimate.value.rate().unwrap().ratio(truth.of(estimate).unwrap()).unwrap() - 1.0).abs()
        };
        let outcomes = &run.found.measure.outcomes;
        assert_eq!(outcomes.iter().map(|o| o.from.as_str()).collect::<String>(), "aaaabb");
        assert!(outcomes.iter().all(|outcome| error(outcome) < 0.02), "{outcomes:?}");
        // The first endpoint of a host has its number; the others come behind the link's two directions.
        let mut nodes: Vec<u32> = run.events.iter().map(|event| event.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        assert_eq!(nodes, [0, 1, 4, 5, 6, 7]);
        assert!(run.events.is_sorted_by_key(|event| event.order()));
    }

    #[test]
    fn whoever_looks_on_changes_nothing() {
        for name in ["path", "wlan-g-busy", "dumbbell-tcp"] {
            let text = crate::scenario::builtin_text(name).unwrap();
            let set = |key, value| crate::scenario::Override::new(key, value);
            let short = [set("duration", "4 s"), set("warm_up", "1 s")];
            let scenario = Scenario::parse_with(name, text, &short, &|_| Ok(())).unwrap();
            let make = |spec: &MeasureSpec| {
                lastmile::estimate::build(&spec.method, &Default::default()).map_err(|e| e.to_string())
            };
            let run = |hooks| {
                let run = simulate(&scenario, 3, &make, hooks).unwrap();
                format!("{:?} {:?} {:?}", run.found.measure.outcomes, run.network, run.events)
            };
            let told = Arc::new(Mutex::new(Vec::new()));
            let log = Arc::clone(&told);
            let told_of = move |at| {
                log.lock().unwrap().push(at);
                ControlFlow::Continue(())
            };
            let hooks = Hooks { progress: Some(Box::new(told_of)), ..Hooks::default() };
            assert_eq!(run(hooks), run(Hooks::default()), "{name}");
            let told = told.lock().unwrap();
            assert!(told.len() >= 998 && told.is_sorted(), "{name}: {}", told.len());
        }
    }

    #[test]
    fn a_run_that_is_stopped_gives_what_there_is_until_then() {
        let text = crate::scenario::builtin_text("path").unwrap();
        let scenario = Scenario::parse("path", text).unwrap();
        let make = |spec: &MeasureSpec| {
            lastmile::estimate::build(&spec.method, &Default::default()).map_err(|e| e.to_string())
        };
        let run = |until: Time| {
            let progress: Progress = Box::new(move |at| match at < until {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            });
            simulate(&scenario, 3, &make, Hooks { progress: Some(progress), ..Hooks::default() }).unwrap()
        };
        let early = run(Time::from_nanos(100_000_000));
        assert!(early.stopped && early.engine.now() < Time::from_nanos(300_000_000));
        assert!(!early.found.measure.outcomes.is_empty());
        for outcome in &early.found.measure.outcomes {
            assert_eq!(outcome.refusal, Some(lastmile::estimate::Refusal::Interrupted), "{outcome:?}");
            assert!(outcome.truth.is_none());
        }
        assert!(!run(Time::MAX).stopped);
    }

    #[test]
    fn measurements_of_one_session_have_one_start() {
        let (named, unnamed) = (measure("a", "b", "start = \"200 ms\""), measure("a", "b", ""));
        let found = sessions_of(&[named.as_str(), &unnamed, &named].concat()).unwrap();
        assert_eq!(found[0].start(), Time::from_nanos(200_000_000));
        assert!(found[0].measures.iter().all(|(spec, _)| spec.start == found[0].start()));
    }

    #[test]
    fn a_start_is_the_engines_time_whatever_the_hosts_clock_says() {
        let text = r#"
name = "x"
duration = "5 s"
[host.a]
clock = { offset = "9 s", skew_ppm = 50.0 }
[host.b]
[[link]]
from = "a"
to = "b"
rate = "10 Mbit/s"
[[measure]]
from = "a"
to = "b"
method = "capprobe"
direction = "forward"
start = "2 s"
"#;
        let scenario = Scenario::parse("x", text).unwrap();
        let make = |spec: &MeasureSpec| {
            lastmile::estimate::build(&spec.method, &Default::default()).map_err(|e| e.to_string())
        };
        let run = simulate(&scenario, 1, &make, Hooks::default()).unwrap();
        let first = run.events.first().unwrap().at;
        let (from, to) = (Time::from_nanos(11_000_000_000), Time::from_nanos(11_100_000_000));
        assert!(from <= first && first < to, "{first:?}");
        assert!(run.found.measure.outcomes.iter().any(|outcome| outcome.estimate.is_some()));
    }

    #[test]
    fn what_the_runs_end_cuts_off_is_refused() {
        let text = crate::scenario::builtin_text("dumbbell").unwrap();
        let make = |spec: &MeasureSpec| {
            lastmile::estimate::build(&spec.method, &Default::default()).map_err(|e| e.to_string())
        };
        // Forward takes 0.4 s from 2 s on, reverse half a second after it.
        for (duration, numbers, refused) in
            [("2010 ms", 0, 2), ("2200 ms", 0, 2), ("2600 ms", 2, 1), ("4 s", 4, 0)]
        {
            let overrides = [crate::scenario::Override::new("duration", duration)];
            let scenario = Scenario::parse_with("dumbbell", text, &overrides, &|_| Ok(())).unwrap();
            let run = simulate(&scenario, 1, &make, Hooks::default()).unwrap();
            let cut = |outcome: &&Outcome| outcome.refusal == Some(lastmile::estimate::Refusal::RunOver);
            let found =
                run.found.measure.outcomes.iter().filter(|outcome| outcome.estimate.is_some()).count();
            let cut = run.found.measure.outcomes.iter().filter(cut).count();
            assert_eq!((found, cut), (numbers, refused), "{duration}: {:?}", run.found.measure.outcomes);
        }
    }

    #[test]
    fn a_session_by_ipv6_is_with_the_ipv6_address() {
        let mut scenario = crate::scenario::builtin("path").unwrap();
        for ipv6 in [false, true] {
            scenario.roles.measure[0].ipv6 = ipv6;
            let session = sessions(&scenario).remove(0);
            assert_eq!(prober_config(&scenario, &session, 1).peer.is_ipv6(), ipv6);
        }
    }

    /// A measurement and two streams between the same hosts at once; a third stream goes the other way, by IPv6.
    #[test]
    fn a_measurement_and_streams_run_beside_each_other() {
        let text = "name = \"x\"\nduration = \"6 s\"\n[host.a]\nclock = { offset = \"3 s\", skew_ppm = 40.0 }\n[host.b]\n\
                    clock = { offset = \"1 s\" }\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"10 Mbit/s\"\ndelay = \"5 ms\"\n\
                    queue = \"60 kB\"\n[[stream]]\nname = \"one\"\nfrom = \"a\"\nto = \"b\"\nrate = \"2 Mbit/s\"\n\
                    [[stream]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Mbit/s\"\nstart = \"1 s\"\nstop = \"4 s\"\n\
                    [[stream]]\nfrom = \"b\"\nto = \"a\"\nrate = \"3 Mbit/s\"\nipv6 = true\n";
        let scenario = Scenario::parse("x", &[text, &measure("a", "b", "start = \"2 s\"")].concat()).unwrap();
        let make = |spec: &MeasureSpec| {
            lastmile::estimate::build(&spec.method, &Default::default()).map_err(|e| e.to_string())
        };
        let told = Arc::new(Mutex::new(Vec::new()));
        let rows = Arc::clone(&told);
        let tell = Box::new(move |row: &SeriesRow| rows.lock().unwrap().push(row.clone()));
        let series = Some(SeriesPlan { step: Span::from_millis(500), tell });
        let run = simulate(&scenario, 1, &make, Hooks { series, ..Hooks::default() }).unwrap();
        // The series has each stream as the run's end has it.
        let rows = told.lock().unwrap();
        for (name, rate, running) in [("one", 2e6, 12), ("stream1", 1e6, 6), ("stream2", 3e6, 12)] {
            let own: Vec<_> = rows.iter().filter(|row| row.row == "flow" && row.name == name).collect();
            let busy =
                own.iter().filter(|row| row.delay_s.is_some_and(|delay| (0.005..0.05).contains(&delay)));
            assert!(own.len() == 12 && (running..=running + 1).contains(&busy.count()), "{name}: {own:?}");
            let mean = |of: fn(&SeriesRow) -> Option<f64>| {
                own.iter().map(|row| of(row).unwrap()).sum::<f64>() / f64::from(running as u32)
            };
            let (sent, arrived) = (mean(|row| row.sent_bps), mean(|row| row.goodput_bps));
            assert!(
                (arrived / rate - 1.0).abs() < 0.03 && (sent / rate - 1.0).abs() < 0.03,
                "{name}: {own:?}"
            );
        }
        let streams = &run.found.stream.outcomes;
        let expected = [("one", 2e6, 6.0), ("stream1", 1e6, 3.0), ("stream2", 3e6, 6.0)];
        for (stream, (name, rate, seconds)) in streams.iter().zip(expected) {
            assert_eq!((stream.stream.as_str(), stream.lost.len()), (name, 0), "{stream:?}");
            let goodput = stream.goodput_bps.unwrap();
            assert!((goodput / rate - 1.0).abs() < 0.02, "{stream:?}");
            let least = (rate * seconds / 8.0 / 1_200.0) as u64;
            assert!(stream.sent >= least && stream.sent < 2 * least, "{stream:?}");
            assert!(stream.sent - stream.received < 20, "{stream:?}");
            // 5 ms on the way, a packet of 1200 B takes 1 ms, and there are others.
            assert!(stream.delay_mean_s.is_some_and(|delay| (0.0055..0.02).contains(&delay)), "{stream:?}");
            // Twenty times a second, and not more than a few percent of what it is about.
            assert!(stream.feedback_packets as f64 > seconds * 18.0, "{stream:?}");
            assert!((stream.feedback_bytes as f64) < rate * seconds / 8.0 * 0.1, "{stream:?}");
        }
        // What the streams leave is what is measured: 7 of 10 Mbit/s there, and back.
        let spare = run.found.measure.outcomes.iter().filter_map(|outcome| outcome.truth?.window);
        for spare in spare.map(|rate| rate.bits_per_second()) {
            assert!((6_500_000..7_500_000).contains(&spare), "{:?}", run.found.measure.outcomes);
        }
        assert_eq!(run.found.measure.outcomes.len(), 4);
        assert!(run.found.measure.outcomes.iter().all(|outcome| outcome.estimate.is_some()));
    }
}
