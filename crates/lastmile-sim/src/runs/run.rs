//! Runs a scenario in virtual time, with its roles' endpoints at its hosts, and returns the results.
//!
//! The lab runs the same endpoints with real sockets and gives the same [`Found`].

use std::any::Any;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

use lastmile::endpoint::{AnyEndpoint, Event};
use lastmile::node::{self, Input};
use lastmile::time::{Epoch, Span, Time};

use crate::monitor::accounting::{NetworkOutcome, Watched};
use crate::monitor::series::SeriesPlan;
use crate::network::clock::HostClock;
use crate::network::engine::Engine;
use crate::network::host::Seat;
use crate::roles::{Ended, Found, Made, Makers, Place, Placed, Running, Surroundings, Truths, next_number};
use crate::scenario::{Attach, BuildError, RunError, Scenario, Simulation, build};

/// Results of a simulated run.
#[derive(Debug)]
pub struct SimulatedRun {
    /// Results of the endpoints, role by role.
    pub found: Found,
    /// Results of the scenario's traffic, and the load of its links and WLANs.
    pub network: NetworkOutcome,
    /// All decisions, in order.
    pub events: Vec<Event>,
    /// The engine, for counters.
    pub engine: Engine,
    /// True if [`Hooks::progress`] ended it before the scenario's duration was over; then there are no truths.
    pub stopped: bool,
    /// The endpoints as they were at the end, each with its place: those of the scenario's tables in their order, and those
    /// that were given beside.
    pub endpoints: Vec<(Place, Box<dyn Any + Send>)>,
}

impl SimulatedRun {
    /// Takes out the first of the endpoints that is of that type: a [`stream::Sender`](lastmile::endpoint::stream::Sender),
    /// or an [`Own`](crate::network::host::Own).
    pub fn take<N: 'static>(&mut self) -> Option<N> {
        let at = self.endpoints.iter().position(|(_, endpoint)| endpoint.is::<N>())?;
        self.endpoints.remove(at).1.downcast().ok().map(|endpoint| *endpoint)
    }
}

/// Gets the place of an endpoint, and all that determines it beside its inputs, in its role's own form.
pub type TellConfig = Box<dyn FnOnce(Place, &dyn Any) + Send>;

/// Gets every input of a node.
pub type TellInput = Box<dyn FnMut(Time, &Input) + Send>;

/// Gets a simulation before it runs.
pub type Prepare = Box<dyn FnOnce(&Scenario, &mut Simulation) + Send>;

/// Gets the virtual time that a run has come to, and decides if it goes on.
pub type Progress = Box<dyn FnMut(Time) -> ControlFlow<()> + Send>;

/// Observer of one endpoint's configuration and inputs, for a recording.
pub struct Recorded {
    /// The endpoint, by its place in the order of the scenario's tables.
    pub which: usize,
    /// Told once where it is, and all that determines it beside its inputs, in the role's own form.
    pub config: TellConfig,
    /// Told every input.
    pub input: TellInput,
}

/// Observers of a run; some may end it.
#[derive(Default)]
pub struct Hooks {
    /// Records one endpoint.
    pub recorded: Option<Recorded>,
    /// Given the simulation before it runs, to attach further taps.
    pub prepare: Option<Prepare>,
    /// Told what happens in each step of time.
    pub series: Option<SeriesPlan>,
    /// Told the run's virtual time some thousand times, and each second of it at least; may end it there.
    /// Results of a run that goes on are the same with and without.
    pub progress: Option<Progress>,
    /// Ends the run so long after all that its tables ask for has finished, but for what only answers, if that is before its
    /// duration is over; seen once in a thousandth of that. Truths are as of a scenario of that length.
    pub linger: Option<Span>,
    /// The truths that are found; of a run that [`Hooks::progress`] ended none.
    pub truths: Truths,
}

impl Recorded {
    /// Makes an endpoint, and has it recorded if it is the one.
    ///
    /// # Errors
    /// The endpoint cannot be made as its table asks for it.
    pub fn make(
        recorded: &mut Option<Recorded>,
        index: usize,
        placed: Placed,
        around: &Surroundings,
    ) -> Result<AnyEndpoint, RunError> {
        let Made { endpoint, config } = (placed.make)(around)?;
        Ok(match recorded.take() {
            Some(Recorded { which, config: tell, input: mut told }) if which == index => {
                tell(placed.place, &*config);
                Box::new(node::Recorded::new(endpoint, move |now, what: &Input| told(now, what)))
            }
            other => {
                *recorded = other;
                endpoint
            }
        })
    }
}

impl Scenario {
    /// Runs it in virtual time with the registered methods and controllers, without hooks.
    ///
    /// ```
    /// let run = lastmile_sim::scenario::builtin("path").unwrap().run(1)?;
    /// assert!(!run.found.measure.outcomes.is_empty());
    /// # Ok::<(), lastmile_sim::runs::RunError>(())
    /// ```
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn run(&self, seed: u64) -> Result<SimulatedRun, RunError> {
        simulate(self, seed, &Makers::default(), Hooks::default())
    }

    /// The same with endpoints beside those of its tables, each at the host of that name; the front page of this crate has an
    /// example.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn run_with(&self, seed: u64, own: Vec<(String, Seat)>) -> Result<SimulatedRun, RunError> {
        simulate_with(self, seed, &Makers::default(), Hooks::default(), own)
    }
}

/// Runs a scenario in virtual time, until its duration is over. Endpoints that have not finished by then are told to
/// end.
///
/// # Errors
/// See [`RunError`].
pub fn simulate(
    scenario: &Scenario,
    seed: u64,
    make: &Makers,
    hooks: Hooks,
) -> Result<SimulatedRun, RunError> {
    simulate_with(scenario, seed, make, hooks, Vec::new())
}

/// The same with endpoints beside those of its tables, each at the host of that name.
///
/// # Errors
/// See [`RunError`].
pub fn simulate_with(
    scenario: &Scenario,
    seed: u64,
    make: &Makers,
    mut hooks: Hooks,
    own: Vec<(String, Seat)>,
) -> Result<SimulatedRun, RunError> {
    let scenario = &*scenario.drawn(seed);
    let (placed, mut running) = Running::plan(scenario, seed, make)?;
    let mut places: Vec<Place> = placed.iter().map(|placed| placed.place).collect();
    let mut seats: BTreeMap<usize, Vec<Seat>> = BTreeMap::new();
    // Those that a run may wait for: hosts, and the endpoints' places there.
    let mut waited: Vec<(usize, usize)> = Vec::new();
    for (index, placed) in placed.into_iter().enumerate() {
        let Place { host, ipv6, port, number } = placed.place;
        if !placed.answers {
            waited.push((host, seats.get(&host).map_or(0, Vec::len)));
        }
        let clock = &scenario.hosts[host].clock;
        let around = Surroundings {
            epoch: Epoch::from_unix_nanos(1_000_000_000_000_000_000),
            resolution: clock.resolution.max(Span::from_nanos(1)),
            clock: Some(HostClock::new(clock.clone())),
        };
        let endpoint = Recorded::make(&mut hooks.recorded, index, placed, &around)?;
        seats.entry(host).or_default().push(Seat { number: Some(number), ipv6, port, endpoint });
    }
    for (name, seat) in own {
        let host = scenario.host(&name).ok_or(BuildError::UnknownHost(name))?;
        let number = seat.number.unwrap_or_else(|| next_number(scenario, &places));
        places.push(Place { host, ipv6: seat.ipv6, port: seat.port, number });
        seats.entry(host).or_default().push(Seat { number: Some(number), ..seat });
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
    let mut end = Time::ZERO + scenario.duration;
    let mut stopped = false;
    if hooks.progress.is_some() || hooks.linger.is_some() {
        let step = Span::from_nanos((scenario.duration.as_nanos() / 1_000).max(1)).min(Span::from_secs(1));
        let mut next = Time::ZERO + step;
        while next < end && !stopped {
            watched.run_until(next)?;
            stopped = hooks.progress.as_mut().is_some_and(|told| told(next).is_break());
            let Simulation { engine, hosts, .. } = watched.simulation();
            let is_finished = |&(host, seat): &(usize, usize)| engine.is_finished(hosts[host], seat);
            if let Some(linger) = hooks.linger.take_if(|_| waited.iter().all(is_finished)) {
                end = end.min(next + linger);
            }
            next += step;
        }
    }
    if !stopped {
        watched.run_until(end)?;
    }
    let shortened = Scenario { duration: end - Time::ZERO, ..scenario.clone() };
    let scenario = &shortened;
    let network = watched.outcome(scenario);
    let mut simulation = watched.into_simulation();
    hosts.iter().for_each(|&host| simulation.engine.interrupt(simulation.hosts[host]));
    let events = simulation.engine.take_events();
    let ended = Ended {
        scenario,
        simulation: &simulation,
        events: &events,
        places: &places,
        own_clocks: true,
        truths: if stopped { Truths::None } else { hooks.truths },
    };
    let found = running.found(&ended)?;
    let mut engine = simulation.engine;
    let mut take = |host: &usize| (*host, engine.take_endpoints(simulation.hosts[*host]).into_iter());
    let mut taken: BTreeMap<usize, _> = hosts.iter().map(&mut take).collect();
    let endpoints = places.into_iter().filter_map(|place| {
        let endpoint = taken.get_mut(&place.host)?.next()?;
        Some((place, endpoint.into_any()?))
    });
    Ok(SimulatedRun { found, network, events, endpoints: endpoints.collect(), engine, stopped })
}
