//! The way of the tested streams in a scenario: the link that limits them, its other users, and the times of changes.

use std::collections::BTreeMap;
use std::ops::Range;

use lastmile::endpoint::stream::source::{self, FrameSource, Setting};
use lastmile::endpoint::stream::{SenderConfig, SenderRate};
use lastmile::observe::stats::mean;
use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};
use lastmile_sim::scenario::roles::stream::Spec;
use lastmile_sim::scenario::{LinkSpec, Scenario, TrafficSpec};

use super::cases::answers;
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
    /// A WLAN, whose rate is not known beforehand, or a way that changes.
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
    /// That one and the wider ones on its way, of links whose rates are known.
    pub(super) limits: Vec<Limit>,
    /// Propagation delay of all links on its way, in seconds, by time in seconds.
    pub(super) propagation: ByTime,
    /// Its source makes frames, and no data that never ends.
    pub(super) frames: bool,
    /// Its share among streams of its group is by this.
    pub(super) priority: f64,
    /// The rate that its source falls to for reasons of its own, where it does, in bit/s of IP packets.
    pub(super) idle: Option<f64>,
    /// The layers of its source, where it has any, from the lowest on.
    pub(super) layers: Vec<Layer>,
    hosts: (usize, usize),
    /// The links that it crosses, by their numbers, and directions of WLANs beyond these.
    way: Vec<usize>,
}

/// A layer of a fixed rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Layer {
    /// In bit/s of IP packets.
    pub(super) rate: f64,
    /// Bytes of a frame.
    pub(super) frame: f64,
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
    /// Streams beside them whose own controllers answer the network.
    pub(super) others: Vec<Flow>,
    /// In each step, the rate of a limiting link less that of flows that do not answer: bit/s of IP packets.
    pub(super) left: BTreeMap<Limit, Vec<f64>>,
    /// And its whole rate.
    pub(super) rate: BTreeMap<Limit, Vec<f64>>,
    /// Rate that is left, by time in seconds.
    pub(super) by_time: BTreeMap<Limit, ByTime>,
    /// Changes for each tested stream after its start.
    pub(super) changes: Vec<Vec<Change>>,
    pub(super) steps: usize,
    /// Numbers count from then on, in seconds.
    pub(super) from_s: f64,
}

fn seconds(at: Time) -> f64 {
    (at - Time::ZERO).as_secs_f64()
}

/// A list of what holds from times on, in seconds.
pub(super) fn at<T: Copy>(list: &[(f64, T)], at_s: f64) -> Option<T> {
    list.iter().take_while(|(from, _)| *from <= at_s).last().map(|&(_, value)| value)
}

/// Propagation delay of packets that leave then, in seconds.
pub(super) fn propagation(flow: &[(f64, f64)], at_s: f64) -> f64 {
    at(flow, at_s).unwrap_or(0.0)
}

/// Rate that a link leaves to IP packets of that size, of a trace the mean over each step; nothing for a link without a rate.
fn rates(link: &LinkSpec, size: Bytes, steps: usize) -> Option<ByTime> {
    let config = &link.config;
    let share = size.0 as f64 / (size.0 + config.overhead.0).max(1) as f64;
    if let Some(trace) = &config.trace {
        let means = trace.means(Span::from_secs_f64(STEP_S), steps)?;
        return Some(
            means.iter().enumerate().map(|(step, rate)| (step as f64 * STEP_S, rate * share)).collect(),
        );
    }
    let shaped = config.shaper.as_ref().map_or(f64::INFINITY, |shaper| shaper.rate.bits_per_second() as f64);
    let of = |bits: u64| (bits as f64).min(shaped) * share;
    let begins = config.rate.map_or(shaped * share, |rate| of(rate.bits_per_second()));
    let later = config.schedule.iter().filter_map(|change| Some((seconds(change.at), change.rate?)));
    let all: ByTime =
        [(0.0, begins)].into_iter().chain(later.map(|(at, rate)| (at, of(rate.bits_per_second())))).collect();
    all.iter().any(|(_, rate)| rate.is_finite()).then_some(all)
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

/// The source of a stream under control.
fn source_of(sender: &SenderConfig) -> Option<Box<dyn FrameSource>> {
    let setting =
        Setting { sizes: &sender.source.sizes, ..Setting::of(sender.frame_rate, sender.packet_size) };
    source::build(&sender.source.choice(true), &setting).ok()
}

/// The most that a stream's source and controller make.
fn most(sender: &SenderConfig, source: Option<&dyn FrameSource>) -> f64 {
    let SenderRate::Controlled(config) = &sender.rate else { return f64::INFINITY };
    let source = source.map_or(f64::INFINITY, |source| source.range().1.bits_per_second() as f64);
    source.min(config.max.bits_per_second() as f64)
}

impl Paths {
    /// Those of a run with that seed, in which the flows of these names are tested.
    pub(super) fn new(scenario: &Scenario, tested: &[String], seed: u64) -> Paths {
        let whole = scenario.duration.as_secs_f64();
        let steps_in_all = steps(0.0, whole).end;
        let loads = loads(scenario, seed);
        let left_of = |link: usize, size: Bytes| {
            let rates = rates(scenario.links.get(link)?, size, steps_in_all)?;
            let beside: Vec<&Load> = loads.iter().filter(|load| load.way.contains(&link)).collect();
            let each = |at_s: f64| {
                let rate = at(&rates, at_s).unwrap_or(0.0);
                let taken: f64 = beside.iter().filter_map(|load| at(&load.rates, at_s)).sum();
                (rate, (rate - taken).max(0.0))
            };
            let middle = |step: usize| each((step as f64 + 0.5) * STEP_S);
            let steps = (0..steps_in_all).map(middle).unzip::<f64, f64, Vec<f64>, Vec<f64>>();
            let changes = rates.iter().chain(beside.iter().flat_map(|load| &load.rates));
            let mut times: Vec<f64> = changes.map(|change| change.0).collect();
            times.sort_by(f64::total_cmp);
            times.dedup();
            Some((steps, times.into_iter().map(|at_s| (at_s, each(at_s).1)).collect::<ByTime>()))
        };
        let (mut left, mut rate, mut by_time) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut flow = |name: &str, hosts: (usize, usize), time: (Time, Time), size: Bytes, most: f64| {
            let (from_s, to_s) = (seconds(time.0), seconds(time.1).min(whole));
            let active = steps(from_s, to_s);
            let way = scenario.path(hosts.0, hosts.1).unwrap_or_default();
            let narrow = way.iter().filter_map(|&link| {
                let (steps, by_time) = left_of(link, size)?;
                let mean = mean(part(&steps.1, active.clone()))?;
                mean.is_finite().then_some((link, steps, by_time, mean))
            });
            let mut narrow: Vec<_> = narrow.collect();
            narrow.sort_by(|a, b| a.3.total_cmp(&b.3));
            let known = !scenario.path_changes(hosts.0, hosts.1);
            let air = way.iter().any(|&link| link >= scenario.links.len());
            let frames = if air { slowest_station(scenario) * CLEARLY } else { f64::INFINITY };
            let is_limit = known && narrow.first().is_some_and(|narrowest| narrowest.3 < frames);
            let limits: Vec<Limit> =
                narrow.iter().filter(|_| is_limit).map(|one| Limit::Link(one.0)).collect();
            let limit = limits.first().copied().unwrap_or(Limit::Unknown);
            for (&limit, (_, (whole, remains), times, _)) in limits.iter().zip(narrow) {
                if limits[0] == limit {
                    left.insert(limit, remains);
                    rate.insert(limit, whole);
                }
                by_time.insert(limit, times);
            }
            let propagation = propagates(scenario, hosts);
            Flow {
                name: name.to_owned(),
                from_s,
                to_s,
                active,
                most,
                limit,
                limits,
                propagation,
                frames: false,
                priority: 1.0,
                idle: None,
                layers: Vec::new(),
                hosts,
                way,
            }
        };
        let (mut own, mut tcp, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for stream in &scenario.roles.stream {
            let is_tested = tested.contains(&stream.name);
            if !is_tested && !answers(&stream.sender.rate) {
                continue;
            }
            let time = (stream.starts(seed), stream.sender.stop);
            let size = stream.sender.packet_size;
            let source = source_of(&stream.sender);
            let source = source.as_deref();
            let most = most(&stream.sender, source);
            let flow = flow(&stream.name, (stream.from, stream.to), time, size, most);
            let frames = stream.sender.source.choice(true).name != "on-demand";
            let bits = |rate: Rate| rate.bits_per_second() as f64;
            let idle = source.and_then(|source| source.idle()).map(bits);
            let layer = |rate: &Rate| Layer {
                rate: bits(*rate),
                frame: bits(*rate) / 8.0 / stream.sender.frame_rate,
            };
            let layers = source.map_or(&[][..], |source| source.layers()).iter().map(layer).collect();
            let priority = stream.group.as_ref().map_or(1.0, |group| group.priority);
            let flow = Flow { frames, priority, idle, layers, ..flow };
            if is_tested { own.push(flow) } else { others.push(flow) }
        }
        for spec in scenario.traffic.iter().filter(|spec| spec.tcp.is_some()) {
            let time = (spec.starts(seed), spec.stop);
            let flow = flow(&spec.name, (spec.from, spec.to), time, spec.size, f64::INFINITY);
            if tested.contains(&spec.name) { own.push(flow) } else { tcp.push(flow) }
        }
        let (changes, steps) = (Vec::new(), steps_in_all);
        let mut paths = Paths { tested: own, tcp, others, left, rate, by_time, changes, steps, from_s: 0.0 };
        paths.changes = paths.tested.iter().map(|flow| paths.changes_of(flow, scenario, &loads)).collect();
        paths
    }

    /// The same, with numbers that count from then on.
    pub(super) fn measured_from(mut self, from: Span) -> Paths {
        self.from_s = from.as_secs_f64();
        let first = steps(self.from_s, self.from_s).start;
        for flow in self.tested.iter_mut().chain(&mut self.tcp).chain(&mut self.others) {
            flow.active.start = flow.active.start.max(first).min(flow.active.end);
        }
        let from_s = self.from_s;
        self.changes.iter_mut().for_each(|changes| changes.retain(|change| change.at_s >= from_s));
        self
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
        let long = self.tcp.iter().filter(|tcp| is_long(scenario, &tcp.name));
        let beside = self.tested.iter().chain(&self.others).chain(long);
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

    /// Propagation delay of the way back to a stream's sender, in seconds, by time.
    pub(super) fn back(&self, scenario: &Scenario, stream: &Spec) -> ByTime {
        propagates(scenario, (stream.to, stream.from))
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

/// Propagation delay of all links from a host to another, in seconds, by time: of the way in use then.
fn propagates(scenario: &Scenario, hosts: (usize, usize)) -> ByTime {
    let delays = |link: usize| -> ByTime {
        let Some(link) = scenario.links.get(link) else { return Vec::new() };
        let later =
            link.config.schedule.iter().filter_map(|change| Some((seconds(change.at), change.delay?)));
        let all = [(0.0, link.config.delay)].into_iter().chain(later);
        all.map(|(at, delay): (f64, Span)| (at, delay.as_secs_f64())).collect()
    };
    let ways: Vec<(f64, Vec<ByTime>)> = scenario
        .paths(hosts.0, hosts.1)
        .into_iter()
        .map(|(from, way)| (seconds(from), way.into_iter().map(delays).collect()))
        .collect();
    let changes = ways.iter().flat_map(|(_, links)| links.iter().flatten().map(|&(at, _)| at));
    let mut times: Vec<f64> = changes.chain(ways.iter().map(|way| way.0)).collect();
    times.sort_by(f64::total_cmp);
    times.dedup();
    let sum = |when: f64| {
        let way = ways.iter().take_while(|way| way.0 <= when).last();
        way.into_iter().flat_map(|way| &way.1).filter_map(|link| at(link, when)).sum()
    };
    times.into_iter().map(|when| (when, sum(when))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 5, 5 and 100 ms by the cell; 5, 5 and the air from 60 to 120 s.
    #[test]
    fn propagation_is_that_of_the_way_in_use() {
        let text = include_str!("../papers/tfrc_probe/scenarios/hand-off.toml");
        let scenario = Scenario::parse("hand-off.toml", text).unwrap();
        let paths = Paths::new(&scenario, &["flow".to_owned()], 1);
        let flow = &paths.tested[0];
        assert_eq!((flow.limit, flow.frames), (Limit::Unknown, false));
        for (at_s, ms) in [(0.0, 110.0), (59.9, 110.0), (60.0, 10.0), (119.9, 10.0), (120.0, 110.0)] {
            let found = propagation(&flow.propagation, at_s) * 1e3;
            assert!((found - ms).abs() < 1e-9, "{at_s} s: {found} ms");
        }
    }

    /// 2 Mbit/s for 10 s and 1 for 10 s, 0.5 of them taken from 5 s on.
    #[test]
    fn a_trace_is_a_known_limit() {
        let text = r#"
            name = "traced"
            duration = "20 s"
            [host.a]
            [host.b]
            [[link]]
            from = "a"
            to = "b"
            trace = { kind = "csv", lines = "s,Mbit/s\n0,2\n10,1\n20,1\n" }
            [[stream]]
            name = "video"
            from = "a"
            to = "b"
            control = "tfrc"
            [[traffic]]
            name = "udp"
            kind = "cbr"
            from = "a"
            to = "b"
            rate = "500 kbit/s"
            size = "500 B"
            start = "5 s"
        "#;
        let scenario = Scenario::parse("traced.toml", text).unwrap();
        let paths = Paths::new(&scenario, &["video".to_owned()], 1);
        let limit = paths.tested[0].limit;
        assert_eq!(limit, Limit::Link(0));
        let left = |at_s: f64| (at(&paths.by_time[&limit], at_s).unwrap() / 1e3).round();
        assert_eq!([0.0, 4.9, 5.1, 9.9, 10.1].map(left), [2000.0, 2000.0, 1500.0, 1500.0, 500.0]);
        let steps: Vec<f64> =
            [0, 24, 25, 50].iter().map(|&k| (paths.left[&limit][k] / 1e3).round()).collect();
        assert_eq!(steps, [2000.0, 2000.0, 1500.0, 500.0]);
        let changes: Vec<f64> = paths.changes[0].iter().map(|change| change.at_s).collect();
        assert_eq!((changes, &paths.tested[0].active), (vec![0.0, 5.0], &(0..100)));
        let later = paths.measured_from(Span::from_millis(2_500));
        assert_eq!((later.changes[0].len(), &later.tested[0].active), (1, &(13..100)));
    }
}
