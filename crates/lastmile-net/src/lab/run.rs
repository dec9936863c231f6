//! A whole lab: a scenario's hosts as namespaces, joined by the pump, with our own endpoints or anybody's programs
//! inside.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lastmile::endpoint::{Prober, ProberConfig, Reflector, ReflectorConfig};
use lastmile::event::Event;
use lastmile::node::Recorded;
use lastmile::report::{Direction, StreamRecord};
use lastmile::time::{Span, Time};
use lastmile_sim::run::{
    Hooks, MakeEstimator, Outcome, REFLECTOR_PORT, RunError, Session, SessionMeters, SharedRecords, outcomes,
    prober_config, reflector_config, sessions,
};
use lastmile_sim::scenario::{Attach, Scenario, build};

use super::LabError;
use super::child::LabChild;
use super::netns::NetNs;
use super::pump::{Entry, LatenessCounts, Pump, PumpError};
use super::tun::{Tun, TunConfig};
use crate::clock::now as monotonic;
use crate::driver::{Driver, DriverConfig, Waker};
use crate::udp::{OpenError, UdpConfig, UdpSocket};

/// The share of packets that may be late by 100 us or more before a run is refused.
pub const LATE_SHARE: f64 = 0.01;
/// What programs get to end in when the lab does.
const GRACE: Duration = Duration::from_millis(500);
/// Name of the device in every host.
const DEVICE: &str = "lab0";

/// Why a lab did not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabRunError {
    /// It cannot be set up here.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The scenario's measurements cannot be run.
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
    /// A thread of the lab panicked.
    #[error("a thread of the lab panicked; this is a defect of lastmile")]
    Panicked,
}

/// How late the lab was.
#[derive(Clone, Debug, serde::Serialize)]
pub struct LabLateness {
    /// Packets carried.
    pub packets: u64,
    /// Median of the larger of output and ingress lateness.
    #[serde(rename = "p50_ns")]
    pub p50: Span,
    /// 99th percentile of it.
    #[serde(rename = "p99_ns")]
    pub p99: Span,
    /// The latest packet.
    #[serde(rename = "worst_ns")]
    pub worst: Span,
    /// Packets late by 100 us or more.
    pub over_100us: u64,
    /// Packets that a host's device had no room for: lost where the scenario loses nothing.
    pub device_drops: u64,
    /// Whether the pump had real-time priority.
    pub realtime: bool,
    /// Why results of this run must not be believed, if so.
    pub refused: Option<String>,
}

impl LabLateness {
    fn of(
        (out, into): (&LatenessCounts, &LatenessCounts),
        probes: &LatenessCounts,
        device_drops: u64,
        realtime: bool,
    ) -> LabLateness {
        let all = [out, into, probes];
        let largest =
            |of: &dyn Fn(&LatenessCounts) -> Span| all.iter().map(|c| of(c)).max().unwrap_or(Span::ZERO);
        let share = |c: &LatenessCounts| c.over_100us() as f64 / c.packets().max(1) as f64;
        let late = all.iter().map(|c| share(c)).fold(0.0, f64::max);
        let over_100us = all.iter().map(|c| c.over_100us()).max().unwrap_or(0);
        let too_late = (late > LATE_SHARE).then(|| {
            format!(
                "{:.1} % of the packets were carried 100 us or more too late: this machine is too busy for the lab",
                late * 100.0
            )
        });
        let dropped = (device_drops > 0).then(|| {
            format!("{device_drops} packets were lost at a host's device that had no room, not on the path")
        });
        let reasons: Vec<String> = too_late.into_iter().chain(dropped).collect();
        let refused = (!reasons.is_empty()).then(|| reasons.join("; "));
        LabLateness {
            packets: out.packets() + into.packets(),
            p50: largest(&|c| c.quantile(0.5)),
            p99: largest(&|c| c.quantile(0.99)),
            worst: largest(&|c| c.worst()),
            over_100us,
            device_drops,
            realtime,
            refused,
        }
    }
}

/// What a run in the lab gave.
#[derive(Debug)]
pub struct LabRun {
    /// What was found, session by session.
    pub outcomes: Vec<Outcome>,
    /// All decisions of the initiators, in order.
    pub events: Vec<Event>,
    /// All streams.
    pub records: Vec<StreamRecord>,
    /// How late the lab was.
    pub lateness: LabLateness,
}

/// How to run a lab.
#[derive(Default)]
pub struct LabConfig {
    /// Draws the traffic's random numbers and the phases.
    pub seed: u64,
    /// Real-time priority for the measuring endpoints; the pump asks for it in any case.
    pub realtime: bool,
    /// Told what the first session's prober is given.
    pub hooks: Hooks,
}

/// A lab that is running.
pub struct Lab {
    scenario: Scenario,
    hosts: Vec<(usize, NetNs)>,
    meters: Vec<SessionMeters>,
    stop: Arc<AtomicBool>,
    pump: Option<JoinHandle<Result<(Pump, bool), PumpError>>>,
}

impl Lab {
    /// Sets up the named hosts of a scenario and starts the pump. Sessions are what will be metered.
    ///
    /// # Errors
    /// See [`LabRunError`].
    pub fn start(
        scenario: &Scenario,
        seed: u64,
        wanted: &[usize],
        sessions: &[Session],
    ) -> Result<Lab, LabRunError> {
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
        let meters = sessions.iter().map(|s| SessionMeters::attach(&mut simulation, scenario, s)).collect();
        let ports: Vec<_> = tuns.into_iter().map(|(host, tun)| (simulation.hosts[host], tun)).collect();
        let stop = Arc::new(AtomicBool::new(false));
        let mut pump = Pump::new(simulation.engine, ports);
        let pump = {
            let stop = Arc::clone(&stop);
            std::thread::Builder::new().name("lastmile-pump".into()).spawn(move || {
                let realtime = pump.run(&stop)?;
                Ok((pump, realtime))
            })?
        };
        Ok(Lab { scenario: scenario.clone(), hosts, meters, stop, pump: Some(pump) })
    }

    fn host(&self, index: usize) -> Result<&NetNs, LabRunError> {
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

    /// Whether the pump has ended by itself, which it does only with an error.
    fn has_failed(&self) -> bool {
        self.pump.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Stops the pump and gives it back, with whether it had real-time priority.
    fn finish(&mut self) -> Result<(Pump, bool), LabRunError> {
        self.stop.store(true, Ordering::Relaxed);
        match self.pump.take().map(JoinHandle::join) {
            Some(Ok(result)) => Ok(result?),
            _ => Err(LabRunError::Panicked),
        }
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

fn unknown(scenario: &Scenario, name: &str) -> LabRunError {
    let known: Vec<_> = scenario.hosts.iter().map(|h| h.name.as_str()).collect();
    LabRunError::UnknownHost(name.to_owned(), known.join(", "))
}

/// A reflector that answers inside a host until it is stopped.
struct Serving {
    stop: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<std::io::Result<()>>>,
    /// When its clock started, in nanoseconds of CLOCK_MONOTONIC.
    started: u64,
}

impl Serving {
    fn start(socket: UdpSocket, config: ReflectorConfig, realtime: bool) -> Result<Serving, LabRunError> {
        let stop = Arc::new(AtomicBool::new(false));
        let (tell, told) = std::sync::mpsc::channel();
        let flag = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("lastmile-serve".into()).spawn(move || {
            let mut driver = Driver::new(vec![socket], DriverConfig { realtime })?;
            let mut reflector = Reflector::new(ReflectorConfig { epoch: driver.epoch(), ..config });
            let _ = tell.send((driver.started(), driver.waker()));
            driver.run(&mut reflector, &mut |_: &Event| {}, &flag, |_| false)
        })?;
        match told.recv() {
            Ok((started, waker)) => Ok(Serving { stop, waker, thread: Some(thread), started }),
            Err(_) => match thread.join() {
                Ok(Err(error)) => Err(error.into()),
                _ => Err(LabRunError::Panicked),
            },
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Runs a scenario's own measurements in the lab, with real sockets, one session after the other.
///
/// # Errors
/// See [`LabRunError`]. A run that was too late is no error: [`LabLateness::refused`] says so.
pub fn run(
    scenario: &Scenario,
    make: MakeEstimator<'_>,
    mut config: LabConfig,
    stop: &AtomicBool,
) -> Result<LabRun, LabRunError> {
    let sessions = sessions(scenario)?;
    let mut wanted: Vec<usize> = sessions.iter().flat_map(|s| [s.from, s.to]).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let mut lab = Lab::start(scenario, config.seed, &wanted, &sessions)?;
    let mut serving: Vec<((usize, bool), Serving)> = Vec::new();
    let records = SharedRecords::default();
    let mut found: Vec<(Vec<Event>, Vec<StreamRecord>, u64)> = Vec::new();
    for session in &sessions {
        let at = (session.to, session.ipv6);
        let realtime = config.realtime || session.measures.iter().any(|(spec, _)| spec.realtime);
        if !serving.iter().any(|(served, _)| *served == at) {
            let socket = lab.socket(session.to, session.ipv6, REFLECTOR_PORT)?;
            serving.push((at, Serving::start(socket, reflector_config(config.seed), realtime)?));
        }
        let socket = lab.socket(session.from, session.ipv6, 0)?;
        let mut driver = Driver::new(vec![socket], DriverConfig { realtime })?;
        let prober = ProberConfig { epoch: driver.epoch(), ..prober_config(scenario, session, config.seed) };
        let mut node = config.hooks.prober(prober, session.measurements(make)?, records.clone());
        let mut events = Vec::new();
        let over = driver.now() + scenario.duration;
        let started = driver.started();
        let is_over = |node: &Recorded<Prober<SharedRecords>, _>| {
            let now = Time::from_nanos(monotonic() - started);
            node.node().is_finished() || now >= over || lab.has_failed()
        };
        driver.run(&mut node, &mut |event: &Event| events.push(event.clone()), stop, is_over)?;
        found.push((events, records.take(), started));
    }
    let (pump, realtime) = lab.finish()?;
    let mut probes = LatenessCounts::default();
    for (session, (_, records, started)) in sessions.iter().zip(&found) {
        let at = (session.to, session.ipv6);
        let reflector = serving.iter().find(|(served, _)| *served == at).map_or(0, |(_, s)| s.started);
        compare(&pump, &lab, session, records, (*started, reflector), &mut probes);
    }
    let lateness = LabLateness::of((pump.late_out(), pump.late_in()), &probes, pump.refused(), realtime);
    let mut run = LabRun { outcomes: Vec::new(), events: Vec::new(), records: Vec::new(), lateness };
    for ((session, meters), (events, records, _)) in sessions.iter().zip(&lab.meters).zip(found) {
        run.outcomes.extend(outcomes(scenario, session, meters, pump.engine(), &events)?);
        run.events.extend(events);
        run.records.extend(records);
    }
    Ok(run)
}

/// Holds the entry of each probe into the lab against its sender's kernel stamp.
fn compare(
    pump: &Pump,
    lab: &Lab,
    session: &Session,
    records: &[StreamRecord],
    (prober, reflector): (u64, u64),
    counts: &mut LatenessCounts,
) {
    let position = |host: usize| lab.hosts.iter().position(|(h, _)| *h == host);
    for record in records {
        let (from, to, started) = match record.direction {
            Direction::Reverse => (session.to, session.from, reflector),
            _ => (session.from, session.to, prober),
        };
        let (host, to) = (position(from), lab.scenario.hosts[to].address(session.ipv6));
        let own = |e: &&Entry| (Some(e.host), e.to, e.stream) == (host, to, record.stream);
        for entry in pump.entries().iter().filter(own) {
            if let Some(packet) = record.packets.get(usize::from(entry.index)) {
                counts.add(entry.read.saturating_sub(started + packet.sent.as_nanos()));
            }
        }
    }
}

/// A program to run in a host.
#[derive(Clone, Debug)]
pub struct Program {
    /// The host's name.
    pub host: String,
    /// The program and its arguments; `{HOST}` stands for the address of the host of that name.
    pub command: Vec<String>,
}

/// Runs programs inside a scenario's hosts until the last one named has ended, or `stop` is set. Gives that one's
/// exit code and how late the lab was.
///
/// # Errors
/// See [`LabRunError`].
pub fn run_programs(
    scenario: &Scenario,
    seed: u64,
    programs: &[Program],
    stop: &AtomicBool,
) -> Result<(i32, LabLateness), LabRunError> {
    let wanted: Vec<usize> = (0..scenario.hosts.len()).collect();
    let mut lab = Lab::start(scenario, seed, &wanted, &[])?;
    let mut children = Vec::new();
    for program in programs {
        let index = scenario.host(&program.host).ok_or_else(|| unknown(scenario, &program.host))?;
        let words: Vec<String> = program.command.iter().map(|word| expand(scenario, word)).collect();
        let Some((name, arguments)) = words.split_first() else { continue };
        let mut command = Command::new(name);
        command.args(arguments);
        children.push(LabChild::spawn(lab.host(index)?, command)?);
        // Servers come first on the command line: give them a moment to listen.
        std::thread::sleep(Duration::from_millis(200));
    }
    let mut code = 0;
    if let Some(last) = children.last_mut() {
        loop {
            if let Some(status) = last.try_wait()? {
                code = status.code().unwrap_or(1);
                break;
            }
            if stop.load(Ordering::Relaxed) {
                code = 130;
                break;
            }
            if lab.has_failed() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    // All are asked before any is waited for, so that the lab ends in one time of grace whatever their number.
    children.iter_mut().for_each(LabChild::ask_to_end);
    let until = Instant::now() + GRACE;
    for child in &mut children {
        let _ = child.end_within(until.saturating_duration_since(Instant::now()));
    }
    drop(children);
    let (pump, realtime) = lab.finish()?;
    let lateness = LabLateness::of(
        (pump.late_out(), pump.late_in()),
        &LatenessCounts::default(),
        pump.refused(),
        realtime,
    );
    Ok((code, lateness))
}

/// Replaces `{NAME}` by the address of the host of that name.
fn expand(scenario: &Scenario, word: &str) -> String {
    scenario
        .hosts
        .iter()
        .fold(word.to_owned(), |word, host| word.replace(&format!("{{{}}}", host.name), &host.v4.to_string()))
}

#[cfg(test)]
mod lateness_tests {
    use super::*;

    #[test]
    fn packets_lost_at_a_device_refuse_the_run() {
        let none = LatenessCounts::default();
        assert_eq!(LabLateness::of((&none, &none), &none, 0, true).refused, None);
        let lateness = LabLateness::of((&none, &none), &none, 3, true);
        assert_eq!(lateness.device_drops, 3);
        assert!(
            lateness.refused.is_some_and(|why| why.starts_with("3 packets were lost at a host's device"))
        );
    }
}
