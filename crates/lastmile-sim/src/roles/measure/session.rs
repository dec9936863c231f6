//! Sessions: the measurements between two hosts, from their endpoints to the results.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lastmile::endpoint::any;
use lastmile::endpoint::measure::{
    Decision, Limits, Measurement, PacketSink, Prober, ProberConfig, Reflector, ReflectorConfig,
};
use lastmile::estimate::{Conditions, Estimator, build};
use lastmile::report::{Direction, StreamRecord};
use lastmile::rng::Stream;
use lastmile::time::{Span, Time};

use super::Found;
use super::disturbed::{Twin, disturb, is_watched};
use super::outcome::{found, outcomes};
use super::truth::PathTruth;
use crate::monitor::sent::Sent;
use crate::network::brought::Brought;
use crate::roles::{Ended, Made, Makers, Place, Placed, Surroundings, Truths};
use crate::scenario::roles::Conversation;
use crate::scenario::roles::measure::{MeasureSpec, REFLECTOR_PORT, SessionSpec, sessions};
use crate::scenario::{RunError, Scenario, Simulation};

/// Makes the state machine of a measurement. By default these are the registered methods on hosts whose stamps are exact,
/// drawing with the run's seed. The program makes the same, so that a default run has the program's numbers.
#[derive(Clone, Default)]
pub struct Make(Option<Arc<MakeEstimator>>);

type MakeEstimator = dyn Fn(&MeasureSpec) -> Result<Box<dyn Estimator>, String> + Send + Sync;

impl Makers {
    /// Registered methods. `noise` is the uncertainty of stamps beyond their resolution; simulated ones have none.
    pub fn registered(noise: Span, seed: u64) -> Makers {
        let conditions = Conditions::of(noise, seed);
        Makers::measuring(move |spec| build(&spec.method, &conditions).map_err(|error| error.to_string()))
    }

    /// State machines of one's own.
    pub fn measuring(
        make: impl Fn(&MeasureSpec) -> Result<Box<dyn Estimator>, String> + Send + Sync + 'static,
    ) -> Makers {
        Makers { measure: Make(Some(Arc::new(make))), stream: Default::default() }
    }
}

impl SessionSpec {
    /// The state machines, in order, for a run with that seed.
    pub fn measurements(&self, make: &Make, seed: u64) -> Result<Vec<Measurement>, RunError> {
        let one = |(spec, direction): &(MeasureSpec, Direction)| {
            let made = match &make.0 {
                Some(make) => make(spec),
                None => build(&spec.method, &Conditions::exact(seed)).map_err(|error| error.to_string()),
            };
            let estimator = made.map_err(RunError::Make)?;
            Ok(Measurement { method: spec.method.to_string(), direction: *direction, estimator })
        };
        self.measures.iter().map(one).collect()
    }
}

/// A sink that can be read after the run although the node is inside the engine.
#[derive(Clone, Default)]
struct SharedRecords(Arc<Mutex<Vec<StreamRecord>>>);

impl SharedRecords {
    fn lock(&self) -> MutexGuard<'_, Vec<StreamRecord>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PacketSink for SharedRecords {
    fn stream(&mut self, record: &StreamRecord) {
        self.lock().push(record.clone());
    }
}

/// The name of one among several, by which random numbers are drawn; the first of all has it to itself.
fn of(role: &str, index: usize) -> String {
    if index == 0 { role.to_owned() } else { format!("{role}/{index}") }
}

fn phase(seed: u64, session: &SessionSpec) -> Span {
    let mut random = Stream::new(seed, &format!("phase/{}/{}", session.from, session.to));
    let phase = Span::from_nanos((random.unit() * 50e6) as i64);
    phase + session.start_within().scaled(random.unit())
}

fn endpoint_seed(seed: u64, role: &str) -> [u8; 32] {
    let mut random = Stream::new(seed, role);
    let mut bytes = [0; 32];
    bytes.iter_mut().for_each(|byte| *byte = (random.unit() * 256.0) as u8);
    bytes
}

/// State of the sessions while they run.
pub struct Running {
    kept: Vec<Kept>,
    /// The packets of other endpoints than probers and reflectors, where twins are to send them again.
    sent: Option<Sent>,
}

struct Kept {
    session: SessionSpec,
    records: SharedRecords,
    truth: Option<PathTruth>,
}

pub(super) fn plan(scenario: &Scenario, seed: u64, make: &Make) -> Result<(Vec<Placed>, Running), RunError> {
    let (mut placed, mut kept) = (Vec::new(), Vec::new());
    for session in sessions(scenario) {
        let records = SharedRecords::default();
        let realtime = session.measures.iter().any(|(spec, _)| spec.realtime);
        let Conversation { from, to, ipv6, .. } = session.conversation();
        let peer = (scenario.hosts[session.to].address(ipv6), REFLECTOR_PORT).into();
        // A random phase against periodic cross traffic, drawn for each run.
        let begins = session.start() + phase(seed, &session);
        let nonces = endpoint_seed(seed, &of("prober", session.index));
        let budget = session.budget.clone();
        let measurements = session.measurements(make, seed)?;
        let sink = records.clone();
        let prober = move |around: &Surroundings| {
            let (epoch, resolution) = (around.epoch, around.resolution);
            // A scenario's times are the run's, whatever the host's clock says.
            let start = around.local(begins);
            let config = ProberConfig { epoch, resolution, start, ..ProberConfig::new(peer, nonces) };
            let config = budget.map_or(config.clone(), |budget| config.within(&budget));
            let endpoint = any(Prober::with_sink(config.clone(), measurements, sink));
            Ok(Made { endpoint, config: Box::new(config) })
        };
        let reflector = move |around: &Surroundings| {
            let (epoch, resolution) = (around.epoch, around.resolution);
            let nonces = endpoint_seed(seed, "reflector");
            let limits = Limits::unlimited();
            let config = ReflectorConfig { epoch, resolution, limits, ..ReflectorConfig::new(nonces) };
            Ok(Made { endpoint: any(Reflector::new(config.clone())), config: Box::new(config) })
        };
        let place = |(host, port): (usize, u16)| Place { host, ipv6, port, number: 0 };
        // One answers all that measure towards it.
        let serving = placed.iter().any(|other: &Placed| other.place == place(to));
        placed.push(Placed { place: place(from), answers: false, realtime, make: Box::new(prober) });
        if !serving {
            placed.push(Placed { place: place(to), answers: true, realtime, make: Box::new(reflector) });
        }
        kept.push(Kept { session, records, truth: None });
    }
    Ok((placed, Running { kept, sent: None }))
}

impl Running {
    pub(super) fn attach(&mut self, scenario: &Scenario, simulation: &mut Simulation) {
        for kept in &mut self.kept {
            kept.truth = Some(PathTruth::attach(simulation, scenario, &kept.session));
        }
        let watched = is_watched(scenario, self.kept.iter().map(|kept| &kept.session));
        simulation.brought = watched.then(Brought::default);
        let needs_twins = |kept: &Kept| watched || kept.truth.as_ref().is_some_and(PathTruth::needs_twins);
        if self.kept.iter().any(needs_twins) {
            let measuring: Vec<_> = self.kept.iter().map(|kept| kept.session.conversation()).collect();
            self.sent = Sent::watch(simulation, |talk| !measuring.contains(talk));
        }
    }

    pub(super) fn found(self, ended: &Ended<'_>) -> Result<Found, RunError> {
        let mut all = Found::default();
        let twin = if ended.truths == Truths::None { None } else { Twin::of(ended, self.sent.as_ref())? };
        for Kept { session, records, truth } in self.kept {
            let number = ended.number(session.conversation().from, session.ipv6);
            let told: Vec<(Time, &Decision)> = ended.decisions(number).collect();
            let decisions: Vec<&Decision> = told.iter().map(|(_, what)| *what).collect();
            let records = std::mem::take(&mut *records.lock());
            let mut outcomes = match truth.filter(|_| ended.truths != Truths::None) {
                Some(truth) => outcomes(ended, &session, (&truth, self.sent.as_ref()), &decisions)?,
                // A run that somebody stopped does without truths: twins take long.
                None => found(ended.scenario, &session, &decisions),
            };
            disturb(&mut outcomes, ended, &session, twin.as_ref(), &told, &records);
            all.outcomes.extend(outcomes);
            all.records.push((number, records));
        }
        Ok(all)
    }

    /// The streams of each session so far.
    pub fn records(&self) -> Vec<Vec<StreamRecord>> {
        self.kept.iter().map(|kept| kept.records.lock().clone()).collect()
    }
}
