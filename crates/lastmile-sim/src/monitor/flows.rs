//! [`FlowOutcome`]: results of each flow of the simulator's own traffic.

use std::collections::BTreeMap;

use lastmile::node::Flow;
use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};

use crate::network::carrier::Carrier;
use crate::network::element::Element;
use crate::network::traffic::SinkCounters;
use crate::scenario::{Scenario, Simulation};

/// Results of one flow of traffic, over the whole run but for its goodput.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct FlowOutcome {
    /// Its name in the scenario.
    pub flow: String,
    /// Kind of traffic, such as `cbr` or `ftp`.
    pub kind: &'static str,
    /// The sending host's name.
    pub from: String,
    /// The receiving host's name.
    pub to: String,
    /// IP bits per second that arrived for the first time, from the warm-up's end or the flow's start to its stop or the run's end.
    /// `None` if that is no time: the flow or the run ended within the warm-up.
    pub goodput_bps: Option<f64>,
    /// Packets sent.
    pub sent: u64,
    /// Packets that arrived.
    pub received: u64,
    /// Packets lost, by true cause: in WLANs after all retries, as the transport misses them.
    pub lost: BTreeMap<&'static str, u64>,
    /// Packets that wait or are on their way at the end: `sent = received + lost + under_way`.
    pub under_way: u64,
    /// Mean time from departure to arrival.
    pub delay_mean_s: Option<f64>,
    /// The longest, where the receiver takes note of it.
    pub delay_max_s: Option<f64>,
    /// Packets overtaken by a later one.
    pub out_of_order: u64,
}

/// Counts from the warm-up's end on.
#[derive(Clone, Debug)]
pub struct FlowWatch {
    at: Time,
    before: Vec<SinkCounters>,
    /// IP bytes that flows had brought when they stopped, by their place in the scenario.
    stopped: BTreeMap<usize, Bytes>,
}

impl FlowWatch {
    /// Takes the counts as they are: the measured part of the run begins.
    pub fn begin(simulation: &Simulation) -> FlowWatch {
        FlowWatch {
            at: simulation.engine.now(),
            before: (0..simulation.sinks.len()).map(|flow| counters(simulation, flow)).collect(),
            stopped: BTreeMap::new(),
        }
    }

    /// A flow stops as this is called: later arrivals, out of queues, do not count for its goodput.
    pub fn stop(&mut self, simulation: &Simulation, flow: usize) {
        self.stopped.insert(flow, counters(simulation, flow).bytes);
    }

    /// Results of each flow, in the scenario's order.
    pub fn end(self, scenario: &Scenario, simulation: &Simulation) -> Vec<FlowOutcome> {
        let host = |index: usize| scenario.hosts.get(index).map_or_else(String::new, |h| h.name.clone());
        let mut lost = lost(simulation);
        let under_way = under_way(simulation);
        let flow = |(index, (spec, before)): (usize, (&crate::scenario::TrafficSpec, &SinkCounters))| {
            let now = counters(simulation, index);
            let label = simulation.traffic_flows.get(index);
            let (from, to) =
                (spec.starts(simulation.seed()).max(self.at), spec.stop.min(simulation.engine.now()));
            let seconds = (to - from).max(Span::ZERO).as_secs_f64();
            let bytes = self.stopped.get(&index).unwrap_or(&now.bytes).0 - before.bytes.0;
            FlowOutcome {
                flow: spec.name.clone(),
                kind: spec.kind(),
                from: host(spec.from),
                to: host(spec.to),
                goodput_bps: (seconds > 0.0).then(|| bytes as f64 * 8.0 / seconds),
                sent: sent(simulation, index),
                received: now.packets,
                lost: label.and_then(|label| lost.remove(label)).unwrap_or_default(),
                under_way: label.and_then(|label| under_way.get(label)).copied().unwrap_or(0),
                delay_mean_s: now.mean_delay().map(Span::as_secs_f64),
                delay_max_s: (now.max_delay > Span::ZERO).then(|| now.max_delay.as_secs_f64()),
                out_of_order: now.out_of_order,
            }
        };
        scenario.traffic.iter().zip(&self.before).enumerate().map(flow).collect()
    }
}

/// Totals of a flow's receiver; the bytes of TCP without duplicates.
pub(crate) fn counters(simulation: &Simulation, flow: usize) -> SinkCounters {
    match simulation.sinks.get(flow).and_then(|&node| simulation.engine.element(node)) {
        Some(Element::Sink(sink)) => *sink.counters(),
        Some(Element::TcpReceiver(receiver)) => {
            let seen = receiver.counters();
            // Duplicates did nobody any good.
            let bytes = Bytes(seen.bytes.0 - seen.duplicate_bytes.0);
            let (packets, total_delay) = (seen.segments, seen.total_delay);
            SinkCounters { packets, bytes, total_delay, ..SinkCounters::default() }
        }
        _ => SinkCounters::default(),
    }
}

/// IP bytes that all TCP connections have brought.
pub(super) fn by_tcp(simulation: &Simulation) -> u64 {
    let sinks = simulation.sinks.iter().enumerate();
    let tcp =
        sinks.filter(|sink| matches!(simulation.engine.element(*sink.1), Some(Element::TcpReceiver(_))));
    tcp.map(|(flow, _)| counters(simulation, flow).bytes.0).sum()
}

fn carriers(simulation: &Simulation) -> impl Iterator<Item = &dyn Carrier> {
    simulation.links.iter().chain(&simulation.wlans).filter_map(|&node| simulation.engine.carrier(node))
}

/// Losses of each flow, by cause: one look through everything, for any number of flows.
pub(crate) fn lost(simulation: &Simulation) -> BTreeMap<Flow, BTreeMap<&'static str, u64>> {
    let mut lost = BTreeMap::<Flow, BTreeMap<&'static str, u64>>::new();
    for (flow, cause, packets) in carriers(simulation).flat_map(|carrier| carrier.losses().all()) {
        *lost.entry(flow).or_default().entry(cause.name()).or_insert(0) += packets;
    }
    lost
}

/// Packets under way of each flow.
fn under_way(simulation: &Simulation) -> BTreeMap<Flow, u64> {
    let mut under_way = BTreeMap::new();
    for flow in carriers(simulation).flat_map(|carrier| carrier.flows_under_way()) {
        *under_way.entry(flow).or_insert(0) += 1;
    }
    under_way
}

pub(super) fn sent(simulation: &Simulation, flow: usize) -> u64 {
    match simulation.sources.get(flow).and_then(|&node| simulation.engine.element(node)) {
        Some(Element::Source(source)) => source.sent(),
        Some(Element::TcpSender(sender)) => sender.counters().segments,
        _ => 0,
    }
}

/// Bits per second as a rate, for tables.
pub fn as_rate(bits_per_second: f64) -> Rate {
    Rate::ip(libm::round(bits_per_second.max(0.0)) as u64)
}
