//! Runs a scenario's measurements in virtual time, and holds what they find against the truth: from the queue, or from twins
//! where a WLAN is on the path.
//!
//! The lab runs the same sessions with real sockets and gives the same [`Outcome`]s.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use lastmile::endpoint::{Limits, Measurement, Prober, ProberConfig, Reflector, ReflectorConfig};
use lastmile::estimate::Estimator;
use lastmile::event::{Event, PacketSink};
use lastmile::node::{Input, Recorded};
use lastmile::report::{Direction, StreamRecord};
use lastmile::time::{Epoch, Span, Time};
use lastmile::units::Bytes;
use lastmile::wire::private::StreamTag;

use super::outcome::{Outcome, SessionMeters, found, outcomes};
use crate::network::clock::HostClock;
use crate::network::engine::{Engine, EngineError};
use crate::rng::Stream;
use crate::runs::accounting::{NetworkOutcome, Watched};
use crate::scenario::{Attach, BuildError, MeasureDirection, MeasureSpec, Scenario, Simulation, build};

/// Makes the state machine of a measurement.
pub type MakeEstimator<'a> = &'a (dyn Fn(&MeasureSpec) -> Result<Box<dyn Estimator>, String> + Sync);

/// The UDP port of reflectors in scenarios.
pub const REFLECTOR_PORT: u16 = 8620;
/// Size of the packets that truths are stated for, unless a stream says otherwise: a WBest probe.
pub const PROBE_SIZE: Bytes = Bytes(1488);

/// Why a scenario's measurements cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The scenario cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The engine stopped.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A host has more to do than one endpoint can.
    #[error(
        "host {0:?} initiates measurements to two hosts or by both IP versions, or both initiates and reflects: give each role a host of its own"
    )]
    TwoRoles(String),
    /// No such method.
    #[error("{0}")]
    Method(String),
}

/// The measurements between two hosts: one session.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// The initiating host.
    pub from: usize,
    /// The reflecting host.
    pub to: usize,
    /// Whether its packets are IPv6.
    pub ipv6: bool,
    /// What is measured, in order, each with its direction.
    pub measures: Vec<(MeasureSpec, Direction)>,
}

impl Session {
    /// When it begins.
    pub fn start(&self) -> Time {
        self.measures.iter().map(|(spec, _)| spec.start).min().unwrap_or(Time::ZERO)
    }

    /// The state machines, in order.
    pub fn measurements(&self, make: MakeEstimator<'_>) -> Result<Vec<Measurement>, RunError> {
        let one = |(spec, direction): &(MeasureSpec, Direction)| {
            let estimator = make(spec).map_err(RunError::Method)?;
            Ok(Measurement { method: spec.method.to_string(), direction: *direction, estimator })
        };
        self.measures.iter().map(one).collect()
    }
}

/// The sessions of a scenario: its measurements, gathered by pair of hosts.
pub fn sessions(scenario: &Scenario) -> Result<Vec<Session>, RunError> {
    let mut sessions: Vec<Session> = Vec::new();
    for spec in &scenario.measures {
        let directions: &[Direction] = match spec.direction {
            MeasureDirection::Forward => &[Direction::Forward],
            MeasureDirection::Reverse => &[Direction::Reverse],
            MeasureDirection::RoundTrip => &[Direction::RoundTrip],
            MeasureDirection::Both => &[Direction::Forward, Direction::Reverse],
        };
        let added = directions.iter().map(|&direction| (spec.clone(), direction));
        match sessions.iter_mut().find(|s| (s.from, s.to, s.ipv6) == (spec.from, spec.to, spec.ipv6)) {
            Some(session) => session.measures.extend(added),
            None => sessions.push(Session {
                from: spec.from,
                to: spec.to,
                ipv6: spec.ipv6,
                measures: added.collect(),
            }),
        }
    }
    for session in &sessions {
        let conflict = sessions
            .iter()
            .any(|other| other.to == session.from || (other.from == session.from && other != session));
        if conflict {
            let name = scenario.hosts.get(session.from).map_or("?", |h| &h.name);
            return Err(RunError::TwoRoles(name.to_owned()));
        }
    }
    Ok(sessions)
}

/// Reads stream and index of a probe; packets that are sent only to pay belong to no stream.
pub fn read_probe(udp: &[u8]) -> Option<(u32, u16)> {
    StreamTag::find(udp).filter(|tag| tag.stream != 0).map(|tag| (tag.stream, tag.index))
}

/// A sink that can be read after the run although the node is inside the engine.
#[derive(Clone, Debug, Default)]
pub struct SharedRecords(Arc<Mutex<Vec<StreamRecord>>>);

impl SharedRecords {
    /// Takes the records so far.
    pub fn take(&self) -> Vec<StreamRecord> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl PacketSink for SharedRecords {
    fn stream(&mut self, record: &StreamRecord) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(record.clone());
    }
}

/// What a simulated run gave.
#[derive(Debug)]
pub struct SimulatedRun {
    /// What was found, session by session.
    pub outcomes: Vec<Outcome>,
    /// What the scenario's traffic got, and what its links and WLANs carried.
    pub network: NetworkOutcome,
    /// All decisions, in order.
    pub events: Vec<Event>,
    /// The streams of each session.
    pub records: Vec<Vec<StreamRecord>>,
    /// The engine, for counters.
    pub engine: Engine,
    /// Whether [`Hooks::progress`] ended it before the scenario's duration was over; then there are no truths.
    pub stopped: bool,
}

/// Endpoints' configuration in a scenario, the same in the simulator and in the lab.
pub fn prober_config(scenario: &Scenario, session: &Session, seed: u64) -> ProberConfig {
    let peer = scenario.hosts[session.to].address(session.ipv6);
    ProberConfig {
        // A random phase against periodic cross traffic, drawn for each run.
        start: session.start() + phase(seed, session),
        ..ProberConfig::new((peer, REFLECTOR_PORT).into(), endpoint_seed(seed, "prober"))
    }
}

/// The reflector's configuration in a scenario.
pub fn reflector_config(seed: u64) -> ReflectorConfig {
    ReflectorConfig { limits: Limits::unlimited(), ..ReflectorConfig::new(endpoint_seed(seed, "reflector")) }
}

fn phase(seed: u64, session: &Session) -> Span {
    let mut random = Stream::new(seed, &format!("phase/{}/{}", session.from, session.to));
    Span::from_nanos((random.unit() * 50e6) as i64)
}

fn endpoint_seed(seed: u64, role: &str) -> [u8; 32] {
    let mut random = Stream::new(seed, role);
    let mut bytes = [0; 32];
    bytes.iter_mut().for_each(|byte| *byte = (random.unit() * 256.0) as u8);
    bytes
}

/// Is told a prober's configuration.
pub type TellConfig = Box<dyn FnOnce(&ProberConfig) + Send>;
/// Is told every input of a node.
pub type TellInput = Box<dyn FnMut(Time, &Input) + Send>;

/// Is given a simulation before it runs.
pub type Prepare = Box<dyn FnOnce(&Scenario, &mut Simulation) + Send>;

/// Is told how far a run has come, in virtual time, and says whether it is to go on.
pub type Progress = Box<dyn FnMut(Time) -> ControlFlow<()> + Send>;

/// Who is told what the first session's prober is given: what a recording needs.
#[derive(Default)]
pub struct Hooks {
    /// Told its configuration, once.
    pub config: Option<TellConfig>,
    /// Told every input.
    pub input: Option<TellInput>,
    /// Given the simulation before it runs, to attach what else shall look on.
    pub prepare: Option<Prepare>,
    /// Told some thousand times, and each second of virtual time at least, how far the run has come; may end it there.
    /// Results of a run that goes on are the same with and without.
    pub progress: Option<Progress>,
}

impl Hooks {
    /// Makes the prober of a session, recorded if this is the first one asked for.
    pub fn prober(
        &mut self,
        config: ProberConfig,
        measurements: Vec<Measurement>,
        records: SharedRecords,
    ) -> Recorded<Prober<SharedRecords>, impl FnMut(Time, &Input) + Send + use<>> {
        if let Some(tell) = self.config.take() {
            tell(&config);
        }
        let mut input = self.input.take();
        Recorded::new(Prober::with_sink(config, measurements, records), move |now, what: &Input| {
            if let Some(tell) = &mut input {
                tell(now, what);
            }
        })
    }
}

/// Runs a scenario's measurements in virtual time, until the scenario's duration is over. What is not done by then is
/// [refused](lastmile::estimate::Refusal::RunOver).
///
/// # Errors
/// See [`RunError`].
pub fn simulate(
    scenario: &Scenario,
    seed: u64,
    make: MakeEstimator<'_>,
    mut hooks: Hooks,
) -> Result<SimulatedRun, RunError> {
    let sessions = sessions(scenario)?;
    let records: Vec<SharedRecords> = sessions.iter().map(|_| SharedRecords::default()).collect();
    let mut attached = Vec::new();
    for (session, records) in sessions.iter().zip(&records) {
        let clock = |host: usize| scenario.hosts[host].clock.resolution.max(Span::from_nanos(1));
        let config = prober_config(scenario, session, seed);
        let config = ProberConfig {
            resolution: clock(session.from),
            epoch: Epoch::from_unix_nanos(1_000_000_000_000_000_000),
            // A scenario's times are the engine's, whatever the host's clock says.
            start: HostClock::new(scenario.hosts[session.from].clock.clone()).read(config.start),
            ..config
        };
        let prober = hooks.prober(config, session.measurements(make)?, records.clone());
        attached.push((scenario.hosts[session.from].name.clone(), Attach::Endpoint(Box::new(prober))));
        let name = scenario.hosts[session.to].name.clone();
        if attached.iter().all(|(other, _)| *other != name) {
            let config = ReflectorConfig { resolution: clock(session.to), ..reflector_config(seed) };
            attached.push((name, Attach::Endpoint(Box::new(Reflector::new(config)))));
        }
    }
    let mut simulation = build(scenario, seed, attached)?;
    let meters: Vec<_> =
        sessions.iter().map(|s| SessionMeters::attach(&mut simulation, scenario, s)).collect();
    if let Some(prepare) = hooks.prepare.take() {
        prepare(scenario, &mut simulation);
    }
    let mut watched = Watched::new(scenario, simulation);
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
    let probers: Vec<_> = sessions.iter().map(|s| watched.simulation().hosts[s.from]).collect();
    let mut engine = watched.into_engine();
    probers.into_iter().for_each(|prober| engine.interrupt(prober));
    let events = engine.take_events();
    let records = records.iter().map(SharedRecords::take).collect();
    let mut all = Vec::new();
    for (session, meters) in sessions.iter().zip(&meters) {
        let own: Vec<Event> =
            events.iter().filter(|e| usize::from(e.node) == session.from).cloned().collect();
        all.extend(match stopped {
            // The twins that some truths take may last: not for somebody who wants to get away.
            true => found(scenario, session, &own),
            false => outcomes(scenario, session, meters, &engine, &own)?,
        });
    }
    Ok(SimulatedRun { outcomes: all, network, events, records, engine, stopped })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sessions_of(measures: &str) -> Result<Vec<Session>, String> {
        let link = |from| format!("[[link]]\nfrom = \"{from}\"\nto = \"middle\"\n");
        let links: String = ["a", "b", "c"].map(link).concat();
        let hosts = "[host.a]\n[host.b]\n[host.c]\n";
        let text = format!("name = \"x\"\nduration = \"1 s\"\n{hosts}{links}{measures}");
        let scenario = Scenario::parse("x", &text).map_err(|error| error.to_string())?;
        sessions(&scenario).map_err(|error| error.to_string())
    }

    fn measure(from: &str, to: &str, rest: &str) -> String {
        format!("[[measure]]\nfrom = \"{from}\"\nto = \"{to}\"\nmethod = \"wbest\"\n{rest}\n")
    }

    #[test]
    fn a_host_has_one_session_by_one_ip_version() {
        let (ab, cb) = (measure("a", "b", ""), measure("c", "b", "ipv6 = true"));
        let found = sessions_of(&[ab.as_str(), &ab, &cb].concat()).unwrap();
        assert_eq!(
            found.iter().map(|s| (s.from, s.ipv6, s.measures.len())).collect::<Vec<_>>(),
            [(0, false, 4), (2, true, 2)]
        );
        for other in [measure("a", "b", "ipv6 = true"), measure("a", "c", ""), measure("b", "a", "")] {
            let error = sessions_of(&[ab.as_str(), &other].concat()).unwrap_err();
            assert!(error.starts_with("x:") && error.contains("give each role a host of its own"), "{error}");
        }
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
                format!("{:?} {:?} {:?}", run.outcomes, run.network, run.events)
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
        assert!(!early.outcomes.is_empty());
        for outcome in &early.outcomes {
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
        assert!(run.outcomes.iter().any(|outcome| outcome.estimate.is_some()));
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
            let found = run.outcomes.iter().filter(|outcome| outcome.estimate.is_some()).count();
            let cut = run.outcomes.iter().filter(cut).count();
            assert_eq!((found, cut), (numbers, refused), "{duration}: {:?}", run.outcomes);
        }
    }

    #[test]
    fn a_session_by_ipv6_is_with_the_ipv6_address() {
        let mut scenario = crate::scenario::builtin("path").unwrap();
        for ipv6 in [false, true] {
            scenario.measures[0].ipv6 = ipv6;
            let session = sessions(&scenario).unwrap().remove(0);
            assert_eq!(prober_config(&scenario, &session, 1).peer.is_ipv6(), ipv6);
        }
    }
}
