//! The way of the tested streams in a scenario: the link that limits them, its other users, and the times of changes.

use std::collections::BTreeMap;
use std::ops::Range;

use lastmile::endpoint::stream::source::{self, Setting};
use lastmile::endpoint::stream::{SenderConfig, SenderRate};
use lastmile::observe::stats::mean;
use lastmile::time::{Span, Time};
use lastmile::units::Bytes;
use lastmile_sim::scenario::{LinkSpec, Scenario, TrafficSpec};

use super::metrics::{STEP_S, part, steps};

/// Of a link's rate: an unresponsive flow that changes by less is nobody's event.
const MATTERS: f64 = 0.05;
/// Events so close together are one.
const AT_ONCE_S: f64 = 0.5;
/// A link limits a way that crosses a WLAN too where its rate is below that share of what the slowest station's frames are sent at.
const CLEARLY: f64 = 0.25;

/// Numbers that hold from times on, in seconds.
pub(super) type ByTime = Vec<(f64, f64)>;

/// The bottleneck of a flow, shared with other flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Limit {
    /// A link of the scenario.
    Link(usize),
    /// A WLAN, or a link that a trace drives: their rate is not known beforehand.
    Unknown,
}

/// A tested stream, or a flow of TCP beside them.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub(super) name: String,
    /// When it is active, in seconds.
    pub(super) from_s: f64,
    pub(super) to_s: f64,
    /// The steps in which it is all the time.
    pub(super) active: Range<usize>,
    /// The most that its source makes, in bit/s of IP packets.
    pub(super) most: f64,
    pub(super) limit: Limit,
    /// Propagation delay of all links on its way, in seconds, by time in seconds; nothing where the way changes.
    pub(super) propagation: Option<ByTime>,
    hosts: (usize, usize),
    /// The links that it crosses, by their numbers, and directions of WLANs beyond these.
    way: Vec<usize>,
}

/// A change for a flow, and its time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Change {
    pub(super) at_s: f64,
    pub(super) what: String,
}

/// A run's flows and their limits.
pub(super) struct Paths {
    pub(super) tested: Vec<Flow>,
    pub(super) tcp: Vec<Flow>,
    /// In each step, the rate of a limiting link less that of flows that do not answer: bit/s of IP packets.
    pub(super) left: BTreeMap<Limit, Vec<f64>>,
    /// And its whole rate.
    pub(super) rate: BTreeMap<Limit, Vec<f64>>,
    /// Changes for each tested stream after its start.
    pub(super) changes: Vec<Vec<Change>>,
    pub(super) steps: usize,
}

fn seconds(at: Time) -> f64 {
    (at - Time::ZERO).as_secs_f64()
}

/// A list of what holds from times on, in seconds.
fn at<T: Copy>(list: &[(f64, T)], at_s: f64) -> Option<T> {
    list.iter().take_while(|(from, _)| *from <= at_s).last().map(|&(_, value)| value)
}

/// Propagation delay of packets that leave then, in seconds.
pub(super) fn propagation(flow: &[(f64, f64)], at_s: f64) -> f64 {
    at(flow, at_s).unwrap_or(0.0)
}

/// Rate that a link leaves to IP packets of that size; nothing for a link without a rate or with a trace.
fn rates(link: &LinkSpec, size: Bytes) -> Option<ByTime> {
    let config = &link.config;
    let share = size.0 as f64 / (size.0 + config.overhead.0).max(1) as f64;
    let shaped = config.shaper.as_ref().map_or(f64::INFINITY, |shaper| shaper.rate.bits_per_second() as f64);
    let of = |bits: u64| (bits as f64).min(shaped) * share;
    let begins = config.rate.map_or(shaped * share, |rate| of(rate.bits_per_second()));
    let later = config.schedule.iter().filter_map(|change| Some((seconds(change.at), change.rate?)));
    let all: ByTime =
        [(0.0, begins)].into_iter().chain(later.map(|(at, rate)| (at, of(rate.bits_per_second())))).collect();
    (config.trace.is_none() && all.iter().any(|(_, rate)| rate.is_finite())).then_some(all)
}

/// Something that sends whatever the network says: from where to where, and its rate by time in seconds.
struct Load {
    name: String,
    way: Vec<usize>,
    rates: ByTime,
}

fn loads(scenario: &Scenario, seed: u64) -> Vec<Load> {
    let way = |from, to| scenario.path(from, to).unwrap_or_default();
    let traffic =
        scenario.traffic.iter().filter(|flow| flow.tcp.is_none() && flow.kind() != "trace").map(|flow| {
            let starts = flow.starts(seed);
            let before = flow.changes.iter().rfind(|change| change.0 <= starts);
            let begins = before.map_or(flow.rate, |change| change.1);
            let later = flow.changes.iter().filter(|change| change.0 > starts && change.0 < flow.stop);
            let rates = [(starts, begins)].into_iter().chain(later.copied());
            let mut rates: ByTime =
                rates.map(|(at, rate)| (seconds(at), rate.bits_per_second() as f64)).collect();
            rates.push((seconds(flow.stop), 0.0));
            Load { name: flow.name.clone(), way: way(flow.from, flow.to), rates }
        });
    let streams = scenario.roles.stream.iter().filter_map(|stream| {
        let SenderRate::Fixed(rate) = stream.sender.rate else { return None };
        let rate = rate.bits_per_second() as f64;
        let rates = vec![(seconds(stream.starts(seed)), rate), (seconds(stream.sender.stop), 0.0)];
        Some(Load { name: stream.name.clone(), way: way(stream.from, stream.to), rates })
    });
    traffic.chain(streams).collect()
}

/// The most that a stream's source and controller make.
fn most(sender: &SenderConfig) -> f64 {
    let SenderRate::Controlled(config) = &sender.rate else { return f64::INFINITY };
    let choice = sender.source.choice(true);
    let setting =
        Setting { sizes: &sender.source.sizes, ..Setting::of(sender.frame_rate, sender.packet_size) };
    let source = source::build(&choice, &setting).map_or(f64::INFINITY, |source| {
        let most = source.range().1;
        most.bits_per_second() as f64
    });
    source.min(config.max.bits_per_second() as f64)
}

impl Paths {
    /// Those of a run with that seed, in which the flows of these names are tested.
    pub(super) fn new(scenario: &Scenario, tested: &[String], seed: u64) -> Paths {
        let whole = scenario.duration.as_secs_f64();
        let steps_in_all = steps(0.0, whole).end;
        let loads = loads(scenario, seed);
        let left_of = |link: usize, size: Bytes| {
            let rates = rates(scenario.links.get(link)?, size)?;
            let each = |step: usize| {
                let at_s = (step as f64 + 0.5) * STEP_S;
                let rate = at(&rates, at_s).unwrap_or(0.0);
                let taken = loads.iter().filter(|load| load.way.contains(&link));
                let taken: f64 = taken.filter_map(|load| at(&load.rates, at_s)).sum();
                (rate, (rate - taken).max(0.0))
            };
            Some((0..steps_in_all).map(each).unzip::<f64, f64, Vec<f64>, Vec<f64>>())
        };
        let (mut left, mut rate) = (BTreeMap::new(), BTreeMap::new());
        let mut flow = |name: &str, hosts: (usize, usize), time: (Time, Time), size: Bytes, most: f64| {
            let (from_s, to_s) = (seconds(time.0), seconds(time.1).min(whole));
            let active = steps(from_s, to_s);
            let way = scenario.path(hosts.0, hosts.1).unwrap_or_default();
            let narrow = way.iter().filter_map(|&link| {
                let (whole, left) = left_of(link, size)?;
                let mean = mean(part(&left, active.clone()))?;
                mean.is_finite().then_some((link, whole, left, mean))
            });
            let narrow = narrow.min_by(|a, b| a.3.total_cmp(&b.3));
            let known = !scenario.path_changes(hosts.0, hosts.1)
                && way
                    .iter()
                    .all(|&link| scenario.links.get(link).is_none_or(|link| link.config.trace.is_none()));
            let air = way.iter().any(|&link| link >= scenario.links.len());
            let frames = if air { slowest_station(scenario) * CLEARLY } else { f64::INFINITY };
            let limit = match narrow {
                Some((link, whole, remains, mean)) if known && mean < frames => {
                    left.insert(Limit::Link(link), remains);
                    rate.insert(Limit::Link(link), whole);
                    Limit::Link(link)
                }
                _ => Limit::Unknown,
            };
            let propagation = (!scenario.path_changes(hosts.0, hosts.1)).then(|| propagates(scenario, &way));
            Flow { name: name.to_owned(), from_s, to_s, active, most, limit, propagation, hosts, way }
        };
        let (mut own, mut tcp) = (Vec::new(), Vec::new());
        for stream in scenario.roles.stream.iter().filter(|stream| tested.contains(&stream.name)) {
            let time = (stream.starts(seed), stream.sender.stop);
            let size = stream.sender.packet_size;
            own.push(flow(&stream.name, (stream.from, stream.to), time, size, most(&stream.sender)));
        }
        for spec in scenario.traffic.iter().filter(|spec| spec.tcp.is_some()) {
            let time = (spec.starts(seed), spec.stop);
            let flow = flow(&spec.name, (spec.from, spec.to), time, spec.size, f64::INFINITY);
            if tested.contains(&spec.name) { own.push(flow) } else { tcp.push(flow) }
        }
        let mut paths = Paths { tested: own, tcp, left, rate, changes: Vec::new(), steps: steps_in_all };
        paths.changes = paths.tested.iter().map(|flow| paths.changes_of(flow, scenario, &loads)).collect();
        paths
    }

    /// Changes for a stream while it is active.
    fn changes_of(&self, flow: &Flow, scenario: &Scenario, loads: &[Load]) -> Vec<Change> {
        let mut all = vec![Change { at_s: flow.from_s, what: "start".to_owned() }];
        let mut add = |at_s: f64, what: String| {
            if at_s > flow.from_s && at_s < flow.to_s {
                all.push(Change { at_s, what });
            }
        };
        for link in flow.way.iter().filter_map(|&link| scenario.links.get(link)) {
            let name = format!("{}>{}", scenario.vertex_name(link.from), scenario.vertex_name(link.to));
            for change in &link.config.schedule {
                let Some(rate) = change.rate else { continue };
                add(seconds(change.at), format!("{name} {rate}"));
            }
        }
        let air = flow.way.iter().any(|&link| link >= scenario.links.len());
        for station in scenario.wlans.iter().filter(|_| air).flat_map(|wlan| &wlan.config.station) {
            for change in &station.schedule {
                add(seconds(Time::ZERO + change.at), format!("station {}", station.name));
            }
        }
        let hosts = [flow.hosts.0, flow.hosts.1];
        for handoff in scenario.handoffs.iter().filter(|handoff| hosts.contains(&handoff.host)) {
            add(seconds(handoff.at), format!("hand-off to {}", scenario.vertex_name(handoff.to)));
        }
        let beside = self.tested.iter().chain(self.tcp.iter().filter(|tcp| is_long(scenario, &tcp.name)));
        for other in beside.filter(|other| other.name != flow.name && other.limit == flow.limit) {
            add(other.from_s, format!("{} starts", other.name));
            add(other.to_s, format!("{} stops", other.name));
        }
        let shared: Vec<usize> = match flow.limit {
            Limit::Link(link) => vec![link],
            Limit::Unknown => flow.way.clone(),
        };
        let wide = self.rate.get(&flow.limit).and_then(|rate| mean(rate));
        for load in loads.iter().filter(|load| air_or_shared(load, &shared, flow.limit, scenario)) {
            let mut before = 0.0;
            for &(at_s, rate) in &load.rates {
                if wide.is_none_or(|wide| (rate - before).abs() >= MATTERS * wide) {
                    add(at_s, format!("{} {:.3} Mbit/s", load.name, rate / 1e6));
                }
                before = rate;
            }
        }
        all.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
        all.dedup_by(|later, first| later.at_s - first.at_s < AT_ONCE_S);
        all
    }

    /// The name of a limiting link in series.
    pub(super) fn link_name(scenario: &Scenario, limit: Limit) -> Option<String> {
        let Limit::Link(link) = limit else { return None };
        let link = scenario.links.get(link)?;
        Some(format!("{}>{}", scenario.vertex_name(link.from), scenario.vertex_name(link.to)))
    }
}

/// True if a load takes from a flow's limit: from that link, or from the same WLANs.
fn air_or_shared(load: &Load, shared: &[usize], limit: Limit, scenario: &Scenario) -> bool {
    let air = |way: &[usize]| way.iter().any(|&link| link >= scenario.links.len());
    match limit {
        Limit::Link(_) => load.way.iter().any(|link| shared.contains(link)),
        Limit::Unknown => air(&load.way) && air(shared) || load.way.iter().any(|link| shared.contains(link)),
    }
}

/// A transfer without pauses: its start and end are events to others.
fn is_long(scenario: &Scenario, name: &str) -> bool {
    let spec = scenario.traffic.iter().find(|flow| flow.name == name);
    spec.is_some_and(|spec: &TrafficSpec| spec.kind() == "ftp")
}

/// The least rate of frames of any station; where none is said, 11 Mbit/s.
fn slowest_station(scenario: &Scenario) -> f64 {
    const USUAL: u64 = 11_000_000;
    let stations =
        scenario.wlans.iter().flat_map(|wlan| &wlan.config.station).filter(|station| station.ap.is_some());
    let rates = stations.map(|station| station.rate.map_or(USUAL, |rate| rate.bits_per_second()));
    rates.min().unwrap_or(USUAL) as f64
}

/// Propagation delay of all links of a way, in seconds, by time.
fn propagates(scenario: &Scenario, way: &[usize]) -> ByTime {
    let links: Vec<ByTime> = way
        .iter()
        .filter_map(|&link| scenario.links.get(link))
        .map(|link| {
            let later =
                link.config.schedule.iter().filter_map(|change| Some((seconds(change.at), change.delay?)));
            let all = [(0.0, link.config.delay)].into_iter().chain(later);
            all.map(|(at, delay): (f64, Span)| (at, delay.as_secs_f64())).collect()
        })
        .collect();
    let mut times: Vec<f64> = links.iter().flatten().map(|&(at, _)| at).chain([0.0]).collect();
    times.sort_by(f64::total_cmp);
    times.dedup();
    let sum = |when: f64| links.iter().filter_map(|link| at(link, when)).sum();
    times.into_iter().map(|when| (when, sum(when))).collect()
}
