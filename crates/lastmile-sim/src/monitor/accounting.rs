//! [`Watched`]: a simulation with accounts of its traffic and network, at any pace; and [`NetworkOutcome`], their
//! totals. The simulator and the lab run the same, and so give the same.

use std::collections::BTreeMap;

use lastmile::time::{Span, Time};

use super::flows::{FlowOutcome, FlowWatch, by_tcp};
use super::series::{Series, SeriesPlan, Snapshot};
use crate::network::brought::Brought;
use crate::network::engine::{Engine, EngineError, NodeId};
use crate::network::link::Link;
use crate::network::wlan::Medium;
use crate::scenario::{LinkSpec, Scenario, Simulation, WlanSpec};

/// Results of the scenario's own traffic, its links and its WLANs.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct NetworkOutcome {
    /// The flows, in the scenario's order.
    pub flows: Vec<FlowOutcome>,
    /// The links, one for each direction, in the scenario's order.
    pub links: Vec<LinkOutcome>,
    /// The directions of all WLANs, in the scenario's order.
    pub wlans: Vec<WlanOutcome>,
}

/// Results of one direction of a link: packets over the whole run, means and shares from the warm-up's end on, `None` in a
/// run that ended before.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct LinkOutcome {
    /// The host or router where it begins.
    pub from: String,
    /// The host or router where it ends.
    pub to: String,
    /// Packets that its queue accepted.
    pub packets: u64,
    /// Packets that its queue dropped.
    pub dropped: u64,
    /// Packets that it did not deliver, by true cause: `queue`, `early`, `channel`, `policer`, `too-big`, `handoff`.
    pub lost: BTreeMap<&'static str, u64>,
    /// Packets that it marked Congestion Experienced.
    pub marked: u64,
    /// Mean number of bytes on the wire that waited, beside the packet in transmission.
    pub queue_mean_bytes: Option<f64>,
    /// The most that ever waited.
    pub queue_max_bytes: u64,
    /// The most packets that ever waited.
    pub queue_max_packets: u32,
    /// Share of the time that its transmitter was busy; `None` too where nothing limits it, or deliveries come at the times
    /// of a trace.
    pub busy_share: Option<f64>,
}

/// Results of one direction of an association in a WLAN: counts over the whole run, means and shares from the warm-up's end
/// on, `None` in a run that ended before.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct WlanOutcome {
    /// The WLAN, by its first station.
    pub wlan: String,
    /// The sending station.
    pub from: String,
    /// The receiving station.
    pub to: String,
    /// Packets that came to the sender's queue, dropped ones included.
    pub packets: u64,
    /// Packets that arrived.
    pub delivered: u64,
    /// Packets that found the queue full.
    pub dropped: u64,
    /// Packets given up after all retries, whatever destroyed them.
    pub lost: u64,
    /// Transmissions; an aggregate is one.
    pub transmissions: u64,
    /// Transmissions that collided.
    pub collisions: u64,
    /// Frames transmitted; an aggregate has many.
    pub frames: u64,
    /// Frames that noise destroyed.
    pub channel_errors: u64,
    /// Air that the transmissions took, with their responses and retries.
    pub airtime_s: f64,
    /// Packets that did not arrive, by true cause: `queue`, `collision`, `channel`, `handoff`.
    pub lost_by_cause: BTreeMap<&'static str, u64>,
    /// Mean number of bytes of frames in the sender's queue, for all of its receivers and with those on the air.
    pub queue_mean_bytes: Option<f64>,
    /// The most packets that it ever held.
    pub queue_max_packets: u32,
    /// Share of the time that these transmissions took.
    pub air_share: Option<f64>,
    /// Share of the time that the medium was busy, with any sender.
    pub busy_share: Option<f64>,
}

/// A simulation that takes its counts when its warm-up is over, however far it is run at a time.
#[derive(Debug)]
pub struct Watched {
    simulation: Simulation,
    warm_up: Time,
    flows: Option<FlowWatch>,
    /// The counters at the warm-up's end.
    before: Option<Snapshot>,
    /// When which flow stops after the warm-up, the last one first.
    stops: Vec<(Time, usize)>,
    series: Option<Series>,
    /// Links that traces drive.
    traced: Vec<NodeId>,
}

impl Watched {
    /// A simulation of that scenario at its start.
    pub fn new(scenario: &Scenario, simulation: Simulation) -> Watched {
        let warm_up = Time::ZERO + scenario.warm_up;
        let stops = scenario.traffic.iter().enumerate().map(|(flow, spec)| (spec.stop, flow));
        let mut stops: Vec<_> = stops.filter(|&(at, _)| at > warm_up && at < Time::MAX).collect();
        stops.sort_unstable_by(|a, b| b.cmp(a));
        let links = scenario.links.iter().zip(&simulation.links);
        let links = links.filter(|link| link.0.config.trace.is_some()).map(|link| *link.1);
        let driven = |wlan: &WlanSpec| wlan.config.station.iter().any(|station| station.trace.is_some());
        let wlans = scenario.wlans.iter().zip(&simulation.wlans).filter(|wlan| driven(wlan.0));
        let traced = links.chain(wlans.map(|wlan| *wlan.1)).collect();
        Watched { simulation, warm_up, flows: None, before: None, stops, series: None, traced }
    }

    /// Has what happens in each step of time told, from the start on.
    pub fn with_series(mut self, scenario: &Scenario, series: Option<SeriesPlan>) -> Watched {
        self.series = series.map(|plan| Series::new(scenario, &self.simulation, plan));
        self
    }

    /// See [`Engine::run_until`].
    ///
    /// # Errors
    /// See there.
    pub fn run_until(&mut self, end: Time) -> Result<(), EngineError> {
        loop {
            let begins = self.flows.is_none().then_some(self.warm_up);
            let stops = self.stops.last().map(|stop| stop.0);
            let series = self.series.as_ref().map(Series::next);
            let brought = self.simulation.brought.as_ref().map(Brought::next);
            let next = [begins, stops, series, brought].into_iter().flatten().min();
            let Some(at) = next.filter(|&at| at <= end) else { break };
            self.simulation.engine.run_until(at)?;
            if begins == Some(at) {
                self.flows = Some(FlowWatch::begin(&self.simulation));
                self.before = Some(Snapshot::take(&self.simulation));
            }
            while let Some((_, flow)) = self.stops.pop_if(|stop| stop.0 <= at) {
                if let Some(flows) = &mut self.flows {
                    flows.stop(&self.simulation, flow);
                }
            }
            if brought == Some(at) {
                let bytes = by_tcp(&self.simulation);
                self.simulation.brought.iter_mut().for_each(|brought| brought.add(bytes));
            }
            if let Some(series) = &mut self.series {
                series.pass(&self.simulation);
            }
        }
        self.simulation.engine.run_until(end)?;
        for &node in &self.traced {
            let engine = &self.simulation.engine;
            let link = engine.link(node).and_then(Link::trace_failure);
            if let Some(why) = link.or_else(|| engine.wlan(node).and_then(Medium::trace_failure)) {
                return Err(EngineError::Trace(node.0, why.to_owned()));
            }
        }
        Ok(())
    }

    /// The simulation as it stands.
    pub fn simulation(&self) -> &Simulation {
        &self.simulation
    }

    /// Its engine, to inject and to take out packets. Only [`run_until`](Watched::run_until) makes time pass.
    pub fn engine_mut(&mut self) -> &mut Engine {
        &mut self.simulation.engine
    }

    /// The simulation alone, for what else is to be read from it.
    pub fn into_simulation(self) -> Simulation {
        self.simulation
    }

    /// Results up to now. In a run that ended within its warm-up no flow has a goodput.
    pub fn outcome(&self, scenario: &Scenario) -> NetworkOutcome {
        let flows = self.flows.clone().unwrap_or_else(|| FlowWatch::begin(&self.simulation));
        NetworkOutcome {
            flows: flows.end(scenario, &self.simulation),
            links: self.links(scenario),
            wlans: self.wlans(scenario),
        }
    }

    fn links(&self, scenario: &Scenario) -> Vec<LinkOutcome> {
        let end = Snapshot::take(&self.simulation);
        let link = |(index, spec): (usize, &LinkSpec)| {
            let link = self.simulation.engine.link(*self.simulation.links.get(index)?)?;
            let counted = link.counters();
            let over = self.before.as_ref().and_then(|before| end.link_since(before, index));
            Some(LinkOutcome {
                from: scenario.vertex_name(spec.from).to_owned(),
                to: scenario.vertex_name(spec.to).to_owned(),
                packets: counted.packets,
                dropped: counted.drops,
                lost: causes([
                    ("queue", counted.drops - counted.early_drops),
                    ("early", counted.early_drops),
                    ("channel", counted.lost),
                    ("handoff", counted.handed_off),
                    ("policer", counted.policed),
                    ("too-big", counted.too_big),
                ]),
                marked: counted.marked,
                queue_mean_bytes: over.map(|over| over.queue_mean_bytes),
                queue_max_bytes: counted.max_queue_bytes.0,
                queue_max_packets: counted.max_queue_packets,
                busy_share: over.and_then(|over| over.busy_share),
            })
        };
        scenario.links.iter().enumerate().filter_map(link).collect()
    }

    fn wlans(&self, scenario: &Scenario) -> Vec<WlanOutcome> {
        let end = Snapshot::take(&self.simulation);
        let mut all = Vec::new();
        for (number, (spec, &node)) in scenario.wlans.iter().zip(&self.simulation.wlans).enumerate() {
            let Some(medium) = self.simulation.engine.wlan(node) else { continue };
            for &(port, from, to) in &spec.directions {
                let Some(counted) = medium.counters(port) else { continue };
                let over = self.before.as_ref().and_then(|before| end.air_since(before, number, port));
                let longest = medium.waits(port, end.at).map_or(0, |(_, longest)| longest);
                all.push(WlanOutcome {
                    wlan: spec.name().to_owned(),
                    from: scenario.vertex_name(from).to_owned(),
                    to: scenario.vertex_name(to).to_owned(),
                    packets: counted.arrived,
                    delivered: counted.delivered,
                    dropped: counted.lost_queue,
                    lost: counted.lost_collision + counted.lost_channel,
                    transmissions: counted.transmissions,
                    collisions: counted.collisions,
                    frames: counted.frames,
                    channel_errors: counted.channel_errors,
                    airtime_s: counted.airtime.max(Span::ZERO).as_secs_f64(),
                    lost_by_cause: causes([
                        ("queue", counted.lost_queue),
                        ("collision", counted.lost_collision),
                        ("channel", counted.lost_channel),
                        ("handoff", counted.lost_handoff),
                    ]),
                    queue_mean_bytes: over.map(|over| over.0.queue_mean_bytes),
                    queue_max_packets: longest as u32,
                    air_share: over.and_then(|over| over.0.busy_share),
                    busy_share: over.map(|over| over.1),
                });
            }
        }
        all
    }
}

/// Those causes that there were.
fn causes<const N: usize>(counted: [(&'static str, u64); N]) -> BTreeMap<&'static str, u64> {
    counted.into_iter().filter(|cause| cause.1 > 0).collect()
}
