//! Series of every flow, link and WLAN in steps of time: the differences of the counters at each step's ends, read by the run
//! loop and not told by events.

use core::fmt;

use lastmile::node::PortId;
use lastmile::time::{Span, Time};
use lastmile::units::Bytes;
use serde::Serialize;

use super::flows::{counters, sent};
use crate::network::link::Waits;
use crate::network::traffic::SinkCounters;
use crate::scenario::{FlowCounts, Scenario, Simulation};

/// The shortest step.
pub const MIN_STEP: Span = Span::from_millis(1);

/// One flow, link or direction of a WLAN in one step. Values that it cannot have are `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SeriesRow {
    /// The step's end.
    pub at_s: f64,
    /// `flow`, `link` or `wlan`.
    pub row: &'static str,
    /// The flow's name, or FROM>TO.
    pub name: String,
    /// IP bits per second that arrived for the first time.
    pub goodput_bps: Option<f64>,
    /// IP bits per second that were sent, with what was sent again; not of traces, whose packets differ in size.
    pub sent_bps: Option<f64>,
    /// Mean delay of the packets that arrived.
    pub delay_s: Option<f64>,
    /// The congestion window at the step's end, of TCP.
    pub window_packets: Option<f64>,
    /// Bytes that waited, on the mean.
    pub queue_mean_bytes: Option<f64>,
    /// Packets that wait at the step's end.
    pub queue_packets: Option<u32>,
    /// Share of the step that the transmitter was busy, or that these transmissions took of the air.
    pub busy_share: Option<f64>,
    /// Mean rate of the data frames sent by a WLAN, without preambles and waits.
    pub phy_bps: Option<f64>,
    /// Share of a WLAN's transmissions that repeat one.
    pub retry_share: Option<f64>,
    /// Packets that did not arrive, for whatever cause.
    pub lost: Option<u64>,
    /// Packets marked Congestion Experienced.
    pub marked: Option<u64>,
}

/// Plan of a run's series.
pub struct SeriesPlan {
    /// Length of a step, at least [`MIN_STEP`].
    pub step: Span,
    /// Told of each row, in the order of time.
    pub tell: Box<dyn FnMut(&SeriesRow) + Send>,
}

/// A link, or one direction of a WLAN, at a moment.
#[derive(Clone, Copy, Debug, Default)]
struct Hop {
    waits: Waits,
    /// `None` where nothing limits it.
    busy: Option<Span>,
    lost: u64,
    marked: u64,
    /// Of a WLAN: transmissions, those that repeat one, and the sum of their rates in kbit/s.
    sent: Option<[u64; 3]>,
}

/// The counters of a simulation at a moment.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    pub(super) at: Time,
    flows: Vec<(SinkCounters, u64)>,
    roles_flows: Vec<FlowCounts>,
    links: Vec<Hop>,
    /// Of each WLAN, for how long its medium was busy, and its directions by their ports.
    wlans: Vec<(Span, Vec<Hop>)>,
}

/// Queue and use of a hop between two moments.
#[derive(Clone, Copy, Debug)]
pub(super) struct HopSince {
    pub(super) queue_mean_bytes: f64,
    pub(super) busy_share: Option<f64>,
}

impl Hop {
    fn since(&self, before: &Hop, over: Span) -> Option<HopSince> {
        let queue_mean_bytes = self.waits.mean_bytes(&before.waits, over)?;
        let busy = self.busy.zip(before.busy).map(|(busy, before)| share(busy - before, over));
        Some(HopSince { queue_mean_bytes, busy_share: busy })
    }
}

fn share(of: Span, over: Span) -> f64 {
    of.as_secs_f64() / over.as_secs_f64()
}

impl Snapshot {
    /// As it is at the engine's time.
    pub(super) fn take(simulation: &Simulation) -> Snapshot {
        let engine = &simulation.engine;
        let at = engine.now();
        let flows = 0..simulation.sinks.len();
        let link = |&node| {
            engine.link(node).map_or_else(Hop::default, |link| Hop {
                waits: link.waits(at),
                busy: link.is_timed().then(|| link.busy(at)),
                lost: link.counters().not_delivered(),
                marked: link.counters().marked,
                sent: None,
            })
        };
        let wlan = |&node| {
            let Some(medium) = engine.wlan(node) else { return (Span::ZERO, Vec::new()) };
            let hop = |(port, _, _): (PortId, usize, usize)| Hop {
                waits: medium.waits(port, at).map_or_else(Waits::default, |(waits, _)| waits),
                busy: medium.counters(port).map(|counted| counted.airtime),
                lost: medium.counters(port).map_or(0, |counted| counted.lost()),
                marked: 0,
                sent: medium.counters(port).map(|c| [c.transmissions, c.retries, c.rates_kbps]),
            };
            (medium.busy(at), medium.directions().map(hop).collect())
        };
        Snapshot {
            at,
            flows: flows.map(|flow| (counters(simulation, flow), sent(simulation, flow))).collect(),
            roles_flows: simulation.roles_flows.iter().map(|(_, flow)| flow.counts()).collect(),
            links: simulation.links.iter().map(link).collect(),
            wlans: simulation.wlans.iter().map(wlan).collect(),
        }
    }

    /// Queue and use of a link since then.
    pub(super) fn link_since(&self, before: &Snapshot, link: usize) -> Option<HopSince> {
        self.links.get(link)?.since(before.links.get(link)?, self.at - before.at)
    }

    /// Queue and use of one direction of a WLAN since then, and the share of the time that the medium was busy.
    pub(super) fn air_since(&self, before: &Snapshot, wlan: usize, port: PortId) -> Option<(HopSince, f64)> {
        let over = self.at - before.at;
        let ((busy, now), (busy_before, before)) = (self.wlans.get(wlan)?, before.wlans.get(wlan)?);
        let port = usize::from(port.0);
        let since = now.get(port)?.since(before.get(port)?, over)?;
        Some((since, share(*busy - *busy_before, over)))
    }
}

/// A series under way.
pub(super) struct Series {
    plan: SeriesPlan,
    next: Time,
    before: Snapshot,
    /// The names of the flows with the size of their packets, where all have one; of the links; of the WLANs' directions.
    flows: Vec<(String, Option<Bytes>)>,
    links: Vec<String>,
    wlans: Vec<Vec<(PortId, String)>>,
}

impl fmt::Debug for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Series").field("step", &self.plan.step).field("next", &self.next).finish()
    }
}

impl Series {
    pub(super) fn new(scenario: &Scenario, simulation: &Simulation, mut plan: SeriesPlan) -> Series {
        plan.step = plan.step.max(MIN_STEP);
        let vertex = |vertex| scenario.vertex_name(vertex);
        let air = |wlan: &crate::scenario::WlanSpec| {
            let name = |&(port, from, to): &_| (port, format!("{}>{}", vertex(from), vertex(to)));
            wlan.directions.iter().map(name).collect()
        };
        let size = |flow: &crate::scenario::TrafficSpec| (flow.kind() != "trace").then_some(flow.size);
        Series {
            next: simulation.engine.now() + plan.step,
            before: Snapshot::take(simulation),
            flows: scenario.traffic.iter().map(|flow| (flow.name.clone(), size(flow))).collect(),
            links: scenario.links.iter().map(|link| scenario.link_name(link)).collect(),
            wlans: scenario.wlans.iter().map(air).collect(),
            plan,
        }
    }

    /// The end of the step under way.
    pub(super) fn next(&self) -> Time {
        self.next
    }

    /// Tells of a step, if the simulation has come to its end.
    pub(super) fn pass(&mut self, simulation: &Simulation) {
        if simulation.engine.now() < self.next {
            return;
        }
        let now = Snapshot::take(simulation);
        let (before, over) = (&self.before, now.at - self.before.at);
        let row = |row, name: &str| SeriesRow {
            at_s: (now.at - Time::ZERO).as_secs_f64(),
            row,
            name: name.to_owned(),
            ..SeriesRow::default()
        };
        let seconds = over.as_secs_f64();
        let mut rows = Vec::new();
        // A flow's row, from its packets, bytes and delays now and then.
        let flow = |name: &str, sent: Option<f64>, new: (u64, Bytes, Span), old: (u64, Bytes, Span)| {
            let packets = new.0 - old.0;
            SeriesRow {
                goodput_bps: Some((new.1.0 - old.1.0) as f64 * 8.0 / seconds),
                sent_bps: sent.map(|bits| bits / seconds),
                delay_s: (packets > 0).then(|| (new.2 - old.2).as_secs_f64() / packets as f64),
                ..row("flow", name)
            }
        };
        for (index, (name, size)) in self.flows.iter().enumerate() {
            let both = now.flows.get(index).zip(before.flows.get(index));
            let Some(((new, sent), (old, sent_before))) = both else { continue };
            let arrived = |seen: &SinkCounters| (seen.packets, seen.bytes, seen.total_delay);
            let sent = size.map(|size| (sent - sent_before) as f64 * size.bits() as f64);
            let tcp = simulation.sources.get(index).and_then(|&node| simulation.engine.tcp_sender(node));
            let window_packets = tcp.map(|tcp| tcp.cwnd());
            rows.push(SeriesRow { window_packets, ..flow(name, sent, arrived(new), arrived(old)) });
        }
        let all = simulation.roles_flows.iter().zip(now.roles_flows.iter().zip(&before.roles_flows));
        for ((name, _), (new, old)) in all {
            let arrived = |seen: &FlowCounts| (seen.packets, seen.arrived, seen.total_delay);
            let sent = (new.sent.0 - old.sent.0) as f64 * 8.0;
            rows.push(flow(name, Some(sent), arrived(new), arrived(old)));
        }
        let hop = |kind, name: &str, new: &Hop, old: &Hop| {
            let since = new.since(old, over);
            let sent = new.sent.zip(old.sent).filter(|(new, old)| new[0] > old[0]);
            let each =
                |of: usize| sent.map(|(new, old)| (new[of] - old[of]) as f64 / (new[0] - old[0]) as f64);
            SeriesRow {
                phy_bps: each(2).map(|kbps| kbps * 1e3),
                retry_share: each(1),
                queue_mean_bytes: since.map(|since| since.queue_mean_bytes),
                queue_packets: Some(new.waits.packets),
                busy_share: since.and_then(|since| since.busy_share),
                lost: Some(new.lost - old.lost),
                marked: (kind == "link").then_some(new.marked - old.marked),
                ..row(kind, name)
            }
        };
        for (name, (new, old)) in self.links.iter().zip(now.links.iter().zip(&before.links)) {
            rows.push(hop("link", name, new, old));
        }
        for (names, (new, old)) in self.wlans.iter().zip(now.wlans.iter().zip(&before.wlans)) {
            for (port, name) in names {
                let port = usize::from(port.0);
                rows.extend(
                    new.1.get(port).zip(old.1.get(port)).map(|(new, old)| hop("wlan", name, new, old)),
                );
            }
        }
        rows.iter().for_each(|row| (self.plan.tell)(row));
        self.before = now;
        self.next += self.plan.step;
    }
}
