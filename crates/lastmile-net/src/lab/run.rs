//! A whole lab: a scenario's hosts as namespaces, joined by the pump, with our own endpoints or anybody's programs
//! inside; or its own traffic alone, which needs neither.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, ScopedJoinHandle};
use std::time::Duration;

use lastmile::endpoint::Event;
use lastmile::time::Time;
use lastmile_sim::monitor::accounting::{NetworkOutcome, Watched};
use lastmile_sim::monitor::series::SeriesPlan;
use lastmile_sim::network::engine::Budget;
use lastmile_sim::roles::{Ended, Found, Makers, Place, Running, Truths};
use lastmile_sim::runs::{Hooks, Prepare, RunError};
use lastmile_sim::scenario::{Attach, HostSpec, Scenario, build};

use super::due::{Moved, Ran};
use super::endpoints::{Standing, Waited};
use super::lateness::LabLateness;
use super::losses::HostLosses;
use super::netns::NetNs;
use super::pump::{Pump, PumpError};
use super::tun::{Tun, TunConfig};
use super::{DEVICE, LabError, names};
use crate::driver::DriverConfig;
use crate::udp::{OpenError, UdpConfig, UdpSocket};

/// Interval of checks that a lab has ended or shall end.
pub(super) const WATCH: Duration = Duration::from_millis(20);

/// Why a lab did not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabRunError {
    /// It cannot be set up here.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The scenario cannot be run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The pump failed.
    #[error(transparent)]
    Pump(#[from] PumpError),
    /// A socket inside a host could not be opened.
    #[error("in host {host}: {source}")]
    Socket {
        /// The host.
        host: String,
        /// Why.
        source: OpenError,
    },
    /// A driver failed.
    #[error("cannot drive an endpoint: {0}")]
    Driver(#[from] std::io::Error),
    /// There is no such host.
    #[error("the scenario has no host {0:?}; it has {1}")]
    UnknownHost(String, String),
    /// A word of a command names no host in braces.
    #[error(
        "{{{0}}} in a command stands for no host's address: there are {1}; {{{{{0}}}}} stands for the text {{{0}}}"
    )]
    UnknownPlaceholder(String, String),
    /// A thread of the lab panicked.
    #[error("a thread of the lab panicked; this is a defect of lastmile")]
    Panicked,
}

/// Results of a run in the lab.
#[derive(Debug)]
pub struct LabRun {
    /// Results of the endpoints, role by role.
    pub found: Found,
    /// Results of the scenario's traffic, links and WLANs, up to the run's end.
    pub network: NetworkOutcome,
    /// When it ended, in the engine's time.
    pub end: Time,
    /// All decisions, in order, on the engine's time.
    pub events: Vec<Event>,
    /// Lateness of the lab.
    pub lateness: LabLateness,
    /// Losses of each host that was a namespace.
    pub hosts: Vec<HostLosses>,
    /// Change of the measured numbers by the lateness; `None` if nothing was measured, or the run was stopped.
    pub moved: Option<Moved>,
}

/// Configuration of a run in the lab.
#[derive(Default)]
pub struct LabConfig {
    /// Draws the traffic's random numbers and the phases.
    pub seed: u64,
    /// Real-time priority for all endpoints; the pump asks for it in any case.
    pub realtime: bool,
    /// Told the inputs of one endpoint; given the simulation before it runs, and told of all decisions by
    /// its engine, soon after they were made.
    pub hooks: Hooks,
}

/// Plan of a lab.
#[derive(Default)]
pub struct LabPlan<'a> {
    /// Draws the traffic's random numbers.
    pub seed: u64,
    /// The hosts that are to be namespaces, with endpoints or programs outside of the engine.
    pub hosts: &'a [usize],
    /// Observers for the scenario's roles.
    pub running: Option<&'a mut Running>,
    /// Given the simulation before it runs.
    pub prepare: Option<Prepare>,
    /// Told the network's numbers in each step of time.
    pub series: Option<SeriesPlan>,
    /// When it ends by itself; `None`: only its starter ends it.
    pub end: Option<Time>,
}

/// A lab that is running.
pub struct Lab {
    scenario: Scenario,
    hosts: Vec<(usize, NetNs)>,
    /// When the engine's time zero is, in nanoseconds of CLOCK_MONOTONIC.
    started: u64,
    stop: Arc<AtomicBool>,
    /// Endpoints in the hosts send their decisions here.
    decisions: Sender<Event>,
    pump: Option<JoinHandle<Result<(Pump, bool), PumpError>>>,
}

impl Lab {
    /// Sets up hosts of a scenario and starts the pump.
    ///
    /// # Errors
    /// See [`LabRunError`].
    pub fn start(scenario: &Scenario, plan: LabPlan<'_>) -> Result<Lab, LabRunError> {
        let LabPlan { seed, hosts: wanted, running, prepare, series, end } = plan;
        let mut hosts = Vec::new();
        let mut tuns = Vec::new();
        for &index in wanted {
            let spec = &scenario.hosts[index];
            let host = NetNs::new(&spec.name)?;
            // By name, since a scenario may give its hosts addresses that have nothing in common.
            let others = scenario.hosts.iter().filter(|other| other.name != spec.name);
            let routes = others.flat_map(|other| [(other.v4.into(), 32), (other.v6.into(), 128)]);
            let config = TunConfig {
                v4: Some((spec.v4, 32)),
                v6: Some((spec.v6, 128)),
                routes: routes.collect(),
                ..TunConfig::new(DEVICE)
            };
            tuns.push((index, Tun::new(&host, &config)?));
            hosts.push((index, host));
        }
        let attached = wanted.iter().map(|&h| (scenario.hosts[h].name.clone(), Attach::External)).collect();
        let mut simulation = build(scenario, seed, attached).map_err(RunError::from)?;
        // The wall clock is the limit.
        simulation.engine.set_budget(Budget { events: u64::MAX, ..scenario.budget });
        // The effect of lateness is judged for endpoints of ours.
        let own = running.is_some() && !scenario.roles.is_empty();
        if let Some(running) = running {
            running.attach(scenario, &mut simulation);
        }
        let ports: Vec<_> = tuns.into_iter().map(|(host, tun)| (simulation.hosts[host], tun)).collect();
        if let Some(prepare) = prepare {
            prepare(scenario, &mut simulation);
        }
        let stop = Arc::new(AtomicBool::new(false));
        let (decisions, told) = channel();
        let watched = Watched::new(scenario, simulation).with_series(scenario, series);
        let mut pump = Pump::new(watched, ports).telling(told);
        if own {
            pump = pump.noting();
        }
        if let Some(end) = end {
            pump = pump.ending_at(end);
        }
        let started = pump.started();
        let pump = {
            let stop = Arc::clone(&stop);
            std::thread::Builder::new().name("lastmile-pump".into()).spawn(move || {
                let realtime = pump.run(&stop)?;
                Ok((pump, realtime))
            })?
        };
        let scenario = scenario.clone();
        Ok(Lab { scenario, hosts, started, stop, decisions, pump: Some(pump) })
    }

    /// Gives each host its name, and the names of all in its `/etc/hosts`.
    pub(super) fn give_names(&self) -> Result<(), LabRunError> {
        let line = |host: &HostSpec| format!("{}\t{name}\n{}\t{name}\n", host.v4, host.v6, name = host.name);
        let lines: String = self.scenario.hosts.iter().map(line).collect();
        self.hosts.iter().try_for_each(|(_, host)| names::give(host, &lines))?;
        Ok(())
    }

    pub(super) fn host(&self, index: usize) -> Result<&NetNs, LabRunError> {
        let found = self.hosts.iter().find(|(host, _)| *host == index).map(|(_, ns)| ns);
        found.ok_or_else(|| unknown(&self.scenario, &index.to_string()))
    }

    /// Opens a socket inside a host, on its address of that IP version.
    fn socket(&self, index: usize, ipv6: bool, port: u16) -> Result<UdpSocket, LabRunError> {
        let spec = &self.scenario.hosts[index];
        let bind = SocketAddr::new(spec.address(ipv6), port);
        let opened = self.host(index)?.run(move || UdpSocket::open(&UdpConfig::new(bind)))?;
        opened.map_err(|source| LabRunError::Socket { host: spec.name.clone(), source })
    }

    /// True if the pump has ended by itself: at its end, or else with an error.
    pub(super) fn has_ended(&self) -> bool {
        self.pump.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Stops the pump and gives it back; true if it had real-time priority.
    pub(super) fn finish(&mut self) -> Result<(Pump, bool), LabRunError> {
        self.stop.store(true, Ordering::Relaxed);
        match self.pump.take().map(JoinHandle::join) {
            Some(Ok(result)) => {
                let (mut pump, realtime) = result?;
                pump.tell();
                Ok((pump, realtime))
            }
            _ => Err(LabRunError::Panicked),
        }
    }

    /// Losses of each host so far.
    pub(super) fn losses(&self) -> Result<Vec<HostLosses>, LabRunError> {
        Ok(self.hosts.iter().map(|(_, host)| HostLosses::of(host)).collect::<Result<_, _>>()?)
    }

    /// Results of a lab whose pump has been stopped, without those of its endpoints.
    pub(super) fn ran(&self, pump: &Pump, lateness: LabLateness) -> Result<LabRun, LabRunError> {
        Ok(LabRun {
            hosts: self.losses()?,
            found: Found::default(),
            network: pump.watched().outcome(&self.scenario),
            end: pump.engine().now(),
            events: Vec::new(),
            lateness,
            moved: None,
        })
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(pump) = self.pump.take() {
            let _ = pump.join();
        }
    }
}

pub(super) fn unknown(scenario: &Scenario, name: &str) -> LabRunError {
    let known: Vec<_> = scenario.hosts.iter().map(|h| h.name.as_str()).collect();
    LabRunError::UnknownHost(name.to_owned(), known.join(", "))
}

/// Runs a scenario in the lab, with its own endpoints on real sockets. As in the simulator, every endpoint begins at its own
/// start, beside the others; the run ends with the last of them or with the scenario's duration. A scenario that has none
/// runs for its duration, without any host outside of the engine; its traffic gets the same as in the simulator. A run
/// that is stopped gives its results until then.
///
/// # Errors
/// See [`LabRunError`]. A run that was too late is no error: [`LabLateness::refused`] says so.
pub fn run(
    scenario: &Scenario,
    make: &Makers,
    config: LabConfig,
    stop: &AtomicBool,
) -> Result<LabRun, LabRunError> {
    let LabConfig { seed, realtime, mut hooks } = config;
    let scenario = &*scenario.drawn(seed);
    let (placed, mut running) = Running::plan(scenario, seed, make)?;
    let places: Vec<Place> = placed.iter().map(|placed| placed.place).collect();
    let mut wanted: Vec<usize> = places.iter().map(|place| place.host).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let over = Time::ZERO + scenario.duration;
    let plan = LabPlan {
        seed,
        hosts: &wanted,
        running: Some(&mut running),
        prepare: hooks.prepare.take(),
        series: hooks.series.take(),
        end: placed.is_empty().then_some(over),
    };
    let mut lab = Lab::start(scenario, plan)?;
    if placed.is_empty() {
        while !lab.has_ended() && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(WATCH);
        }
        let (pump, realtime) = lab.finish()?;
        let lateness = LabLateness::of(scenario, &pump, None, realtime);
        return lab.ran(&pump, lateness);
    }
    let recorded = Arc::new(Mutex::new(hooks.recorded.take()));
    let mut hosts: BTreeMap<usize, Standing> = BTreeMap::new();
    for (index, placed) in placed.into_iter().enumerate() {
        let Place { host, ipv6, port, .. } = placed.place;
        let socket = lab.socket(host, ipv6, port)?;
        let standing = hosts.entry(host).or_insert_with(|| Standing {
            placed: Vec::new(),
            sockets: Vec::new(),
            driver: DriverConfig { realtime, started: Some(lab.started) },
            recorded: Arc::clone(&recorded),
            tell: lab.decisions.clone(),
        });
        standing.driver.realtime |= placed.realtime;
        standing.sockets.push(socket);
        standing.placed.push((index, placed));
    }
    let waited = Waited::for_hosts(hosts.values().filter(|host| host.is_waited_for()).count());
    let is_over = |now| now >= over || stop.load(Ordering::Relaxed) || lab.has_ended();
    let decided = std::thread::scope(|scope| {
        let (waited, is_over) = (&waited, &is_over);
        let start = |host: Standing| {
            let thread = std::thread::Builder::new().name("lastmile-host".into());
            let run = move || host.run(waited, is_over).inspect_err(|_| waited.end());
            thread.spawn_scoped(scope, run).inspect_err(|_| waited.end())
        };
        let threads: Vec<_> = hosts.into_values().map(start).collect();
        let joined = |thread: std::io::Result<ScopedJoinHandle<'_, _>>| {
            Ok(thread?.join().map_err(|_| LabRunError::Panicked)??)
        };
        threads.into_iter().map(joined).collect::<Vec<_>>()
    });
    let mut events = decided.into_iter().collect::<Result<Vec<_>, LabRunError>>()?.concat();
    events.sort_by_key(Event::order);
    let (pump, realtime) = lab.finish()?;
    let stopped = stop.load(Ordering::Relaxed);
    let judged = match stopped {
        true => None,
        false => Some(Ran::of(scenario, seed, &wanted, &running, make, &pump).judged()?),
    };
    let lateness = LabLateness::of(scenario, &pump, judged.as_ref(), realtime);
    let moved = judged.map(|judged| judged.moved);
    let mut run = LabRun { moved, ..lab.ran(&pump, lateness)? };
    let simulation = pump.watched().simulation();
    let own_clocks = false;
    let truths = if stopped { Truths::None } else { Truths::All };
    // No host sends after the run's end: truths that need more time are unknown.
    let shortened = Scenario { duration: scenario.duration.min(run.end - Time::ZERO), ..scenario.clone() };
    let ended =
        Ended { scenario: &shortened, simulation, events: &events, places: &places, own_clocks, truths };
    run.found = running.found(&ended)?;
    run.events = events;
    Ok(run)
}
