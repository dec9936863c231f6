//! From a checked [`Scenario`] to an engine ready to run.

use std::sync::Arc;

use core::net::{IpAddr, SocketAddr};
use std::collections::BTreeMap;

use lastmile::endpoint::{Decision, Endpoint, any};
use lastmile::node::{Flow, Node, PortId};
use lastmile::rng::Stream;
use lastmile::time::Span;
use lastmile::units::Bytes;

use super::roles::Conversation;
use super::{OldQueue, Scenario, handoffs};
use crate::network::ConfigError;
use crate::network::brought::Brought;
use crate::network::clock::HostClock;
use crate::network::engine::{Engine, EngineError, NodeId, RouterId, Target};
use crate::network::host::{AddressBook, External, Host, Seat};
use crate::network::link::{Events, Link};
use crate::network::tcp::{Ends, Receiver, Sender};
use crate::network::traffic::{Sink, Source, SourceConfig};
use crate::network::wlan::Medium;

/// Occupant of a host.
pub enum Attach {
    /// Endpoints of ours, on the host's own clock.
    Endpoints(Vec<Seat>),
    /// Programs outside the engine: packets enter by [`Engine::inject`] and leave by [`Engine::take_egress`].
    External,
}

impl Attach {
    /// The only endpoint of a host, for all packets that come there.
    pub fn endpoint(endpoint: impl Endpoint<Event: Into<Decision>> + Send + 'static) -> Attach {
        Attach::Endpoints(vec![Seat::only(any(endpoint))])
    }

    /// A node of one's own, for all packets that come to its host; see [`Seat::own`].
    pub fn node<N: Node<Event: Send> + Send + 'static>(node: N) -> Attach {
        Attach::Endpoints(vec![Seat::own(0, node)])
    }
}

/// Why a scenario cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// An endpoint for a host that does not exist.
    #[error("the scenario has no host {0:?}")]
    UnknownHost(String),
    /// Something was attached to a host twice.
    #[error("the endpoints of host {0:?} were given twice")]
    SaidTwice(String),
    /// The engine refused.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A WLAN contradicts itself; scenarios that were read from a file do not.
    #[error(transparent)]
    Wlan(#[from] ConfigError),
}

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
    /// An endpoint cannot be made as its table asks for it.
    #[error("{0}")]
    Make(String),
}

/// IP bytes that a flow of a role has sent and received so far; each packet counts once.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowCounts {
    /// Bytes sent.
    pub sent: Bytes,
    /// Bytes that arrived.
    pub arrived: Bytes,
    /// Packets that arrived.
    pub packets: u64,
    /// Sum of their delays.
    pub total_delay: Span,
}

/// A flow with such counts while a run goes.
pub trait CountedFlow: core::fmt::Debug + Send + Sync {
    /// Up to now.
    fn counts(&self) -> FlowCounts;
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
    /// Conversations of endpoints by the ports that the scenario's roles have, each way a flow.
    talks: Vec<Talk>,
    seed: u64,
    /// The flows of roles that can be counted while the run goes, by their names: each role adds its own.
    pub roles_flows: Vec<(String, Arc<dyn CountedFlow>)>,
    /// Bytes that the TCP connections brought, step by step, where that is wanted.
    pub brought: Option<Brought>,
}

/// A conversation with the flows there and back.
type Talk = (Conversation, Flow, Flow);

/// Makes the engine. Hosts that are not named in `attached` take packets and answer nothing.
pub fn build(
    scenario: &Scenario,
    seed: u64,
    attached: Vec<(String, Attach)>,
) -> Result<Simulation, BuildError> {
    let scenario = &*scenario.drawn(seed);
    let mut at_host: Vec<Option<Attach>> = scenario.hosts.iter().map(|_| None).collect();
    for (name, what) in attached {
        let host = scenario.host(&name).ok_or_else(|| BuildError::UnknownHost(name.clone()))?;
        if at_host[host].replace(what).is_some() {
            return Err(BuildError::SaidTwice(name));
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
    let labels = labels(scenario, pairs.len());
    let mut next = pairs.len() + scenario.traffic.iter().map(|spec| labels_of(spec) as usize).sum::<usize>();
    let talks: Vec<Talk> = (scenario.conversations().into_iter())
        .map(|talk| {
            next += 2;
            (talk, Flow(next as u32 - 2), Flow(next as u32 - 1))
        })
        .collect();
    let mut engine = Engine::new();
    engine.set_budget(scenario.budget);
    let routers: Vec<RouterId> = (0..scenario.vertices()).map(|_| engine.add_router()).collect();

    let mut hosts = Vec::new();
    for (index, what) in at_host.into_iter().enumerate() {
        let spec = &scenario.hosts[index];
        let book = book(scenario, (&pairs, &talks), index);
        let node = match what {
            None => engine.add(Sink::default())?,
            Some(Attach::External) => engine.add(External::new(book))?,
            Some(Attach::Endpoints(seats)) => {
                let clock = HostClock::new(spec.clock.clone());
                engine.add(Host::new(seats, (spec.v4, spec.v6), book, clock))?
            }
        };
        engine.call(node, format!("host/{}", spec.name));
        engine.connect(node, Target::Router(routers[index]));
        hosts.push(node);
    }
    let traffic = scenario.traffic.iter().zip(&labels).map(|(spec, &flow)| (spec.name.as_str(), flow));
    let forth = talks.iter().filter_map(|(talk, there, _)| Some((talk.name.as_deref()?, *there)));
    let named: BTreeMap<&str, Flow> = traffic.chain(forth).collect();
    let mut links = Vec::new();
    let drops = scenario.handoffs.iter().any(|handoff| handoff.old_queue == OldQueue::Drop);
    for spec in &scenario.links {
        let mut config = spec.config.clone();
        if drops {
            // Waiting packets can be dropped only if their departure is not computed beforehand.
            config.events = Events::PerDequeue;
        }
        for (loss, flows) in config.losses.iter_mut().zip(&spec.loss_flows) {
            loss.flows = flows.iter().map(|name| named.get(name.as_str()).unwrap_or(&NOBODY).0).collect();
        }
        let name = format!("link/{}>{}", scenario.vertex_name(spec.from), scenario.vertex_name(spec.to));
        let node = engine.add(Link::seeded(config, seed, &name))?;
        engine.call(node, name);
        engine.connect(node, Target::Router(routers[spec.to]));
        links.push(node);
    }
    let (mut wlans, mut air) = (Vec::new(), Vec::new());
    for (number, spec) in scenario.wlans.iter().enumerate() {
        // An access point of several channels draws other numbers on each.
        let before = scenario.wlans[..number].iter().filter(|other| other.name() == spec.name()).count();
        let also = if before > 0 { format!("/{before}") } else { String::new() };
        let name = format!("wlan/{}{also}", spec.name());
        let node = engine.add(Medium::new(&spec.config, seed, &name)?)?;
        engine.call(node, name);
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
        let name = format!("traffic/{}", spec.name);
        let random = Stream::new(seed, &name);
        let address = |host: usize| SocketAddr::new(IpAddr::V4(scenario.hosts[host].v4), DISCARD);
        // Two flows between the same hosts are told apart in captures.
        let own = |host: usize| SocketAddr::new(IpAddr::V4(scenario.hosts[host].v4), ephemeral(flow));
        if let Some(tcp) = &spec.tcp {
            let acks = Flow(flow.0 + 1);
            let (sender, receiver) = (own(spec.from), address(spec.to));
            let ends = Ends { sender, receiver, data: flow, acks };
            let sender =
                Sender::new(&tcp.config, ends, tcp.app.clone(), spec.starts(seed), spec.stop, random);
            let (sender, receiver) = (engine.add(sender)?, engine.add(Receiver::new(&tcp.config, ends))?);
            engine.call(receiver, format!("{name}, receiving"));
            engine.call(sender, name);
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
            start: spec.starts(seed),
            stop: spec.stop,
            flow,
            from: own(spec.from),
            to: address(spec.to),
        };
        let source = engine.add(Source::new(config, random).with_changes(spec.changes.clone()))?;
        engine.call(source, name);
        engine.connect(source, Target::Router(routers[spec.from]));
        sources.push(source);
        let sink = engine.add(Sink::default())?;
        sinks.push(sink);
        flows.push((spec.from, spec.to, flow, sink));
    }
    for (talk, there, back) in &talks {
        let (from, to) = (talk.from.0, talk.to.0);
        flows.push((from, to, *there, hosts[to]));
        flows.push((to, from, *back, hosts[from]));
    }
    let hop = |link: usize| match links.get(link) {
        Some(&node) => (node, PortId(0)),
        None => (air[link - links.len()].0, air[link - links.len()].1),
    };
    let ways = scenario.ways();
    for &(from, to, flow, end) in &flows {
        for link in ways.path(from, to).unwrap_or_default() {
            let (node, port) = hop(link);
            engine.route_port(routers[ways.edges[link].from], flow, node, port);
        }
        engine.route(routers[to], flow, end);
    }
    handoffs::plan(scenario, &mut engine, &routers, hop, &flows);
    Ok(Simulation {
        engine,
        hosts,
        links,
        wlans,
        sources,
        sinks,
        traffic_flows: labels,
        pairs,
        talks,
        seed,
        roles_flows: Vec::new(),
        brought: None,
    })
}

/// The labels of the traffic's packets, where `taken` flows come before; a TCP connection has one more, for its ACKs.
fn labels(scenario: &Scenario, taken: usize) -> Vec<Flow> {
    let mut next = taken as u32;
    let label = |spec: &super::TrafficSpec| {
        let own = next;
        next += labels_of(spec);
        Flow(own)
    };
    scenario.traffic.iter().map(label).collect()
}

/// Number of labels of a flow's packets: TCP's go both ways.
fn labels_of(spec: &super::TrafficSpec) -> u32 {
    if spec.tcp.is_some() { 2 } else { 1 }
}

/// A flow that a channel is for and that a scenario made in code does not have.
const NOBODY: Flow = Flow(u32::MAX);

/// The port to which the simulator's own traffic goes: discard (RFC 863).
const DISCARD: u16 = 9;

/// The port from which a flow comes: of the range that nobody assigns (RFC 6335, section 6).
fn ephemeral(flow: Flow) -> u16 {
    49_152 + (flow.0 % 16_384) as u16
}

fn book(scenario: &Scenario, (pairs, talks): (&[(usize, usize, Flow)], &[Talk]), from: usize) -> AddressBook {
    let entries = pairs.iter().filter(|pair| pair.0 == from).flat_map(|&(_, to, flow)| {
        let host = &scenario.hosts[to];
        [(IpAddr::V4(host.v4), flow), (IpAddr::V6(host.v6), flow)]
    });
    let mut book = AddressBook::new(entries);
    for (talk, there, back) in talks {
        let ends = [(talk.from, talk.to, *there), (talk.to, talk.from, *back)];
        for ((_, own), (to, port), flow) in ends.into_iter().filter(|(own, ..)| own.0 == from) {
            book.add(own, SocketAddr::new(scenario.hosts[to].address(talk.ipv6), port), flow);
        }
    }
    book
}

impl Simulation {
    /// The flow of an endpoint's packets from one host to another; `None` where either carries nothing.
    pub fn flow(&self, from: usize, to: usize) -> Option<Flow> {
        self.pairs.iter().find(|pair| (pair.0, pair.1) == (from, to)).map(|pair| pair.2)
    }

    /// Node and port by which packets enter a link or a WLAN, by its number in [`Scenario::path`].
    pub(crate) fn hop(&self, scenario: &Scenario, index: usize) -> Option<(NodeId, PortId)> {
        if let Some(&link) = self.links.get(index) {
            return Some((link, PortId(0)));
        }
        let (wlan, port) = scenario.air(index)?;
        Some((*self.wlans.get(wlan)?, port))
    }

    /// The flows of endpoints' packets, as (from, to, flow).
    pub(crate) fn pairs(&self) -> &[(usize, usize, Flow)] {
        &self.pairs
    }

    /// The flows of a conversation, there and back.
    pub fn conversation(&self, of: &Conversation) -> Option<(Flow, Flow)> {
        self.talks.iter().find(|(talk, ..)| talk == of).map(|&(_, there, back)| (there, back))
    }

    /// All conversations, with their flows there and back.
    pub(crate) fn conversations(&self) -> &[(Conversation, Flow, Flow)] {
        &self.talks
    }

    /// The seed that it was built with.
    pub fn seed(&self) -> u64 {
        self.seed
    }
}
