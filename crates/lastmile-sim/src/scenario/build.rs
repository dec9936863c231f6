//! From a checked [`Scenario`] to an engine ready to run.

use core::net::{IpAddr, SocketAddr};

use lastmile::node::{Flow, Node, PortId};
use lastmile::time::Time;
use lastmile::units::{Bytes, Rate};

use super::Scenario;
use crate::clock::HostClock;
use crate::engine::{Engine, EngineError, NodeId, RouterId, Target};
use crate::host::{AddressBook, External, Host};
use crate::path::link::Link;
use crate::rng::Stream;
use crate::tcp::{Ends, Receiver, Sender};
use crate::traffic::{Sink, Source, SourceConfig};
use crate::truth::{MeterConfig, ReadProbe, TruthError};
use crate::wlan::{Medium, WlanError};

/// What stands at a host.
pub enum Attach {
    /// An endpoint of ours, on the host's own clock.
    Endpoint(Box<dyn Node + Send>),
    /// Programs outside the engine: packets enter by [`Engine::inject`] and leave by [`Engine::take_egress`].
    External,
}

/// Why a scenario cannot be built.
///
/// ```
/// use lastmile_sim::scenario::*;
/// let error = build(&builtin("path").unwrap(), 1, vec![("nobody".into(), Attach::External)]).unwrap_err();
/// assert_eq!(error.to_string(), "the scenario has no host \"nobody\"");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// An endpoint for a host that does not exist.
    #[error("the scenario has no host {0:?}")]
    UnknownHost(String),
    /// Two endpoints for one host.
    #[error("host {0:?} was given two endpoints")]
    TwoEndpoints(String),
    /// The engine refused.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A WLAN contradicts itself; scenarios that were read from a file do not.
    #[error(transparent)]
    Wlan(#[from] WlanError),
}

/// An engine made from a scenario, and where its parts are.
///
/// ```
/// use lastmile::{time::Time, units::Bytes};
/// use lastmile_sim::scenario::*;
/// let scenario = builtin("path").unwrap();
/// let mut run = build(&scenario, 7, vec![])?;
/// run.engine.run_until(Time::ZERO + scenario.duration)?;
/// let received = run.engine.sink(run.sinks[0]).unwrap().counters().packets;
/// assert!((3_100..3_600).contains(&received)); // 333 a second, ten seconds
/// # Ok::<(), BuildError>(())
/// ```
#[derive(Debug)]
pub struct Simulation {
    /// The engine, at the start of the run.
    pub engine: Engine,
    /// The node of each host, in the scenario's order: the host's number.
    pub hosts: Vec<NodeId>,
    /// The node of each unidirectional link, in the scenario's order.
    pub links: Vec<NodeId>,
    /// The node of each WLAN, in the scenario's order.
    pub wlans: Vec<NodeId>,
    /// The source of each traffic flow or the sender of a TCP connection, in the scenario's order.
    pub sources: Vec<NodeId>,
    /// The sink of each traffic flow or the receiver of a TCP connection, in the scenario's order.
    pub sinks: Vec<NodeId>,
    /// The label of each traffic flow's packets, in the scenario's order; a TCP connection's ACKs have the next one.
    pub traffic_flows: Vec<Flow>,
    /// The flow between each two hosts that carry something, as (from, to, flow).
    pairs: Vec<(usize, usize, Flow)>,
}

/// Makes the engine. Hosts that are not named in `attached` take packets and answer nothing.
pub fn build(
    scenario: &Scenario,
    seed: u64,
    attached: Vec<(String, Attach)>,
) -> Result<Simulation, BuildError> {
    let mut at_host: Vec<Option<Attach>> = scenario.hosts.iter().map(|_| None).collect();
    for (name, what) in attached {
        let host = scenario.host(&name).ok_or_else(|| BuildError::UnknownHost(name.clone()))?;
        if at_host[host].replace(what).is_some() {
            return Err(BuildError::TwoEndpoints(name));
        }
    }
    let carrying: Vec<usize> = (0..at_host.len()).filter(|&host| at_host[host].is_some()).collect();
    let mut pairs = Vec::new();
    for &from in &carrying {
        for &to in &carrying {
            if from != to && scenario.path(from, to).is_some() {
                pairs.push((from, to, Flow(pairs.len() as u32)));
            }
        }
    }
    let mut engine = Engine::new();
    let routers: Vec<RouterId> = (0..scenario.vertices()).map(|_| engine.add_router()).collect();

    let mut hosts = Vec::new();
    for (index, what) in at_host.into_iter().enumerate() {
        let spec = &scenario.hosts[index];
        let book = book(scenario, &pairs, index);
        let node = match what {
            None => engine.add(Sink::default())?,
            Some(Attach::External) => engine.add(External::new(book))?,
            Some(Attach::Endpoint(endpoint)) => {
                let clock = HostClock::new(spec.clock.clone());
                engine.add(Host::new(endpoint, (spec.v4, spec.v6), book, clock))?
            }
        };
        engine.connect(node, Target::Router(routers[index]));
        hosts.push(node);
    }
    let mut links = Vec::new();
    let labels = labels(scenario, pairs.len());
    for spec in &scenario.links {
        let mut config = spec.config.clone();
        for (loss, flows) in config.losses.iter_mut().zip(&spec.loss_flows) {
            loss.flows = flows.iter().filter_map(|&flow| Some(labels.get(flow)?.0)).collect();
        }
        let name = format!("link/{}>{}", scenario.vertex_name(spec.from), scenario.vertex_name(spec.to));
        let node = engine.add(Link::seeded(config, seed, &name))?;
        engine.connect(node, Target::Router(routers[spec.to]));
        links.push(node);
    }
    let (mut wlans, mut air) = (Vec::new(), Vec::new());
    for spec in &scenario.wlans {
        let medium = Medium::new(&spec.config, seed, &format!("wlan/{}", spec.name()))?;
        let node = engine.add(medium)?;
        for &(port, from, to) in &spec.directions {
            engine.connect_port(node, port, Target::Router(routers[to]))?;
            air.push((node, port, from));
        }
        wlans.push(node);
    }
    let (mut sources, mut sinks) = (Vec::new(), Vec::new());
    let mut flows: Vec<(usize, usize, Flow, NodeId)> =
        pairs.iter().map(|&(from, to, flow)| (from, to, flow, hosts[to])).collect();
    for spec in &scenario.traffic {
        let flow = Flow(flows.len() as u32);
        let address = |host: usize| SocketAddr::new(IpAddr::V4(scenario.hosts[host].v4), DISCARD);
        if let Some(tcp) = &spec.tcp {
            let acks = Flow(flow.0 + 1);
            let (sender, receiver) = (address(spec.from), address(spec.to));
            let ends = Ends { sender, receiver, data: flow, acks };
            let random = Stream::new(seed, &format!("traffic/{}", spec.name));
            let sender = Sender::new(&tcp.config, ends, tcp.app.clone(), spec.start, spec.stop, random);
            let (sender, receiver) = (engine.add(sender)?, engine.add(Receiver::new(&tcp.config, ends))?);
            engine.connect(sender, Target::Router(routers[spec.from]));
            engine.connect(receiver, Target::Router(routers[spec.to]));
            sources.push(sender);
            sinks.push(receiver);
            flows.push((spec.from, spec.to, flow, receiver));
            flows.push((spec.to, spec.from, acks, sender));
            continue;
        }
        let config = SourceConfig {
            arrivals: spec.arrivals.clone(),
            rate: spec.rate,
            ip_size: spec.size,
            start: spec.start,
            stop: spec.stop,
            flow,
            from: address(spec.from),
            to: address(spec.to),
        };
        let random = Stream::new(seed, &format!("traffic/{}", spec.name));
        let source = engine.add(Source::new(config, random).with_changes(spec.changes.clone()))?;
        engine.connect(source, Target::Router(routers[spec.from]));
        sources.push(source);
        let sink = engine.add(Sink::default())?;
        sinks.push(sink);
        flows.push((spec.from, spec.to, flow, sink));
    }
    route(scenario, &mut engine, &routers, (&links, &air), &flows);
    Ok(Simulation { engine, hosts, links, wlans, sources, sinks, traffic_flows: labels, pairs })
}

/// The labels of the traffic's packets, where `taken` flows come before; a TCP connection has one more, for its ACKs.
fn labels(scenario: &Scenario, taken: usize) -> Vec<Flow> {
    let mut next = taken as u32;
    let label = |spec: &super::TrafficSpec| {
        let own = next;
        next += if spec.tcp.is_some() { 2 } else { 1 };
        Flow(own)
    };
    scenario.traffic.iter().map(label).collect()
}

/// The port of the simulator's own traffic: discard (RFC 863).
const DISCARD: u16 = 9;

fn book(scenario: &Scenario, pairs: &[(usize, usize, Flow)], from: usize) -> AddressBook {
    let entries = pairs.iter().filter(|pair| pair.0 == from).flat_map(|&(_, to, flow)| {
        let host = &scenario.hosts[to];
        [(IpAddr::V4(host.v4), flow), (IpAddr::V6(host.v6), flow)]
    });
    AddressBook::new(entries)
}

fn route(
    scenario: &Scenario,
    engine: &mut Engine,
    routers: &[RouterId],
    (links, air): (&[NodeId], &[(NodeId, PortId, usize)]),
    flows: &[(usize, usize, Flow, NodeId)],
) {
    let ways = scenario.ways();
    for &(from, to, flow, end) in flows {
        for link in ways.path(from, to).unwrap_or_default() {
            match links.get(link) {
                Some(&node) => engine.route(routers[ways.edges[link].from], flow, node),
                None => {
                    let (node, port, from) = air[link - links.len()];
                    engine.route_port(routers[from], flow, node, port);
                }
            }
        }
        engine.route(routers[to], flow, end);
    }
}

impl Simulation {
    /// The flow of an endpoint's packets from one host to another; `None` where either carries nothing.
    pub fn flow(&self, from: usize, to: usize) -> Option<Flow> {
        self.pairs.iter().find(|pair| (pair.0, pair.1) == (from, to)).map(|pair| pair.2)
    }

    /// Attaches a meter to every link with a rate on the way of an endpoint's packets from one host to
    /// another. `None` where no packets can go, no link on the way has a rate, or a WLAN is on the way, whose
    /// stations share one medium and many queues.
    pub fn meter(
        &mut self,
        scenario: &Scenario,
        from: usize,
        to: usize,
        read: ReadProbe,
    ) -> Option<PathMeter> {
        let config = MeterConfig::new(self.flow(from, to)?, read);
        let path = scenario.path(from, to).filter(|path| !scenario.crosses_wlan(path))?;
        let nodes = path.into_iter().filter_map(|link| self.links.get(link).copied());
        let meters: Vec<_> =
            nodes.filter_map(|node| Some((node, self.engine.attach_meter(node, config).ok()?))).collect();
        (!meters.is_empty()).then_some(PathMeter { meters })
    }
}

/// Meters along a path. A path's capacity and spare rate are the smallest of its links', as RFC 5136 has it.
///
/// ```
/// use lastmile::{node::*, time::Time, units::*};
/// use lastmile_sim::scenario::*;
/// let scenario = builtin("path").unwrap();
/// let hosts = vec![("sender".into(), Attach::External), ("receiver".into(), Attach::External)];
/// let mut run = build(&scenario, 1, hosts)?;
/// let meter = run.meter(&scenario, 0, 1, |_| None).unwrap();
/// run.engine.run_until(Time::ZERO + scenario.duration)?;
/// let spare = meter.spare_between(&run.engine, Time::ZERO, run.engine.now(), Bytes(1500)).unwrap();
/// assert!((spare.ratio(Rate::ip(6_000_000)).unwrap() - 1.0).abs() < 0.05);
/// # Ok::<(), BuildError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathMeter {
    /// The links' nodes, in the order in which packets cross them, each with its meter's number.
    pub meters: Vec<(NodeId, usize)>,
}

impl PathMeter {
    fn smallest(
        &self,
        engine: &Engine,
        of: impl Fn(&crate::truth::Meter) -> Result<Rate, TruthError>,
    ) -> Result<Rate, TruthError> {
        let mut smallest: Option<Rate> = None;
        let mut nowhere = None;
        for meter in self.meters.iter().filter_map(|&(link, number)| engine.meter(link, number)) {
            match of(meter) {
                Ok(rate) => smallest = Some(smallest.map_or(rate, |s| if rate < s { rate } else { s })),
                // Back to back packets reach the first queue in one moment: no window there, but one further on.
                Err(error @ TruthError::EmptyWindow { .. }) => nowhere = Some(error),
                Err(error) => return Err(error),
            }
        }
        smallest.ok_or(nowhere.unwrap_or(TruthError::EmptyWindow { from: Time::ZERO, to: Time::ZERO }))
    }

    /// What the path carries of IP packets of that size.
    pub fn capacity(&self, engine: &Engine, ip_size: Bytes) -> Rate {
        self.smallest(engine, |meter| Ok(meter.capacity(ip_size))).unwrap_or(Rate::ip(0))
    }

    /// The spare rate over the window that the stream had at each link's queue.
    ///
    /// # Errors
    /// Where a link never saw the stream, or no link saw its packets at different times.
    pub fn spare(&self, engine: &Engine, stream: u32, ip_size: Bytes) -> Result<Rate, TruthError> {
        self.smallest(engine, |meter| meter.spare(stream, ip_size))
    }

    /// The spare rate between two times of the engine: with the measured part of a run, the long-run mean.
    ///
    /// # Errors
    /// Where a meter's log was full before `to`, or the window has no length.
    pub fn spare_between(
        &self,
        engine: &Engine,
        from: Time,
        to: Time,
        ip_size: Bytes,
    ) -> Result<Rate, TruthError> {
        self.smallest(engine, |meter| meter.spare_between(from, to, ip_size))
    }
}
