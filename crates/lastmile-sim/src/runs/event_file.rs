//! [`EventLog`]: all that happens in a run, one JSON line each, written as the run goes: the decisions of endpoints ([`Event`]),
//! and [`Record`]s of what the network itself did. Ordered by the run's time, then node, then sequence; the `at` of a decision
//! is read from the clock of the host that decided. `docs/recording.md` has the lines.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use lastmile::endpoint::Event;
use lastmile::node::{Datagram, Flow, Payload};
use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};
use serde::{Deserialize, Serialize};

use crate::network::engine::NodeId;
use crate::network::lost::Lost;
use crate::network::tcp::{Ack, Segment};
use crate::network::wlan::StationChange;
use crate::scenario::{HandoffSpec, OldQueue, Scenario, Simulation, WlanSpec};

/// Something that the network did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// When, in the run's time.
    pub at: Time,
    /// The node of the engine that did it. Hosts come first, so that no decision has the same number.
    pub node: u32,
    /// Records of this node before this one.
    pub seq: u64,
    /// The event.
    #[serde(flatten)]
    pub what: Happening,
}

/// Events of the network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Happening {
    /// A link or a WLAN lost a packet.
    PacketLost {
        /// Its name, as captures have it.
        by: String,
        /// `queue` (full), `early` (its discipline dropped it), `channel`, `collision`, `policer`, `too-big` or `handoff`.
        cause: String,
        /// The traffic's name, or the two hosts of an endpoint's packets.
        flow: String,
        /// `data` of traffic, `ack` of TCP, or `datagram` of an endpoint.
        kind: PacketKind,
        /// The packet's number within its flow: segments of TCP, packets of other traffic, counted from zero.
        number: Option<u64>,
        /// Its size.
        ip_size: Bytes,
    },
    /// A TCP sender sent a segment again.
    SegmentResent {
        /// The traffic's name.
        flow: String,
        /// The segment's number.
        number: u64,
    },
    /// A link's rate or delay changed, as its scenario had planned.
    LinkChanged {
        /// The link's name.
        link: String,
        /// Its rate from now on; of zero in an outage, none where it stays.
        rate: Option<Rate>,
        /// Its delay from now on, none where it stays.
        delay: Option<Span>,
    },
    /// A WLAN's client changed, as its scenario had planned: it moved, or its rate did.
    StationChanged {
        /// The client's name.
        station: String,
        /// The rate of its frames from now on, none where it stays; so of the others.
        rate: Option<Rate>,
        /// The rate of frames to it from then on.
        down_rate: Option<Rate>,
        /// The share of its frames that noise destroys beside its channel.
        frame_error: Option<f64>,
        /// Its distance, in metres.
        distance_m: Option<f64>,
        /// Its mean signal-to-noise ratio, in dB.
        snr_db: Option<f64>,
    },
    /// A host changed its link, as its scenario had planned.
    HandedOff {
        /// The host.
        host: String,
        /// Its neighbour from now on.
        to: String,
        /// Fate of the packets that wait on the way that it leaves.
        old_queue: OldQueue,
    },
    /// The mean rate of traffic changed, as its scenario had planned.
    TrafficChanged {
        /// The traffic's name.
        flow: String,
        /// Its rate from now on.
        rate: Rate,
    },
}

/// Purpose of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PacketKind {
    /// Traffic's own.
    Data,
    /// A TCP receiver's answer.
    Ack,
    /// An endpoint's.
    Datagram,
}

/// A flow by its label.
#[derive(Clone, Debug)]
struct Named {
    name: String,
    /// Of TCP, the sender's node.
    sender: Option<NodeId>,
    /// Segments sent so far.
    sent: u64,
}

struct Log<W> {
    out: W,
    failed: Option<io::Error>,
    now: Time,
    /// Time for which lines are kept back for decisions that are told late.
    hold: Span,
    /// Lines that are not written yet, in their order: time, node, sequence, and a number against equals.
    pending: BTreeMap<(Time, u32, u64, u64), String>,
    lines: u64,
    planned: std::iter::Peekable<std::vec::IntoIter<(Time, NodeId, Happening)>>,
    links: Vec<Option<String>>,
    flows: Vec<Option<Named>>,
    seq: Vec<u64>,
}

/// Lines that are kept, at most, until all are there that belong before them.
const MAX_PENDING: usize = 100_000;

impl<W: Write> Log<W> {
    /// Writes the lines of before `end`.
    fn flush(&mut self, end: Time) {
        while let Some(first) = self.pending.first_entry().filter(|first| first.key().0 < end) {
            let line = first.remove();
            if self.failed.is_none() {
                self.failed = self.out.write_all(line.as_bytes()).err();
            }
        }
    }

    fn line(&mut self, at: Time, node: u32, seq: u64, what: &impl Serialize) {
        match serde_json::to_string(what) {
            Ok(text) => {
                self.lines += 1;
                self.pending.insert((at, node, seq, self.lines), text + "\n");
            }
            Err(error) => self.failed = self.failed.take().or(Some(error.into())),
        }
        if self.pending.len() >= MAX_PENDING {
            self.flush(Time::MAX);
        }
    }

    fn record(&mut self, node: NodeId, what: Happening) {
        let seq = self.seq.get(node.0 as usize).copied().unwrap_or(0);
        if let Some(next) = self.seq.get_mut(node.0 as usize) {
            *next += 1;
        }
        self.line(self.now, node.0, seq, &Record { at: self.now, node: node.0, seq, what });
    }

    /// Time has come to `now`: writes all lines that no decision told late can precede.
    fn pass(&mut self, now: Time) {
        if now > self.now {
            self.now = now;
            self.flush(self.before(now));
        }
    }

    /// A time less that for which lines are kept back.
    fn before(&self, time: Time) -> Time {
        Time::from_nanos(time.as_nanos().saturating_sub(self.hold.as_nanos().max(0) as u64))
    }

    /// Time has come to `now`: records the changes planned up to there.
    fn advance(&mut self, now: Time) {
        while let Some((at, node, what)) = self.planned.next_if(|planned| planned.0 <= now) {
            self.pass(at);
            self.record(node, what);
        }
        self.pass(now);
    }

    fn packet(&mut self, now: Time, from: NodeId, datagram: &Datagram) {
        let Payload::Model(model) = &datagram.payload else { return };
        let Some(Some(flow)) = self.flows.get_mut(datagram.flow.0 as usize) else { return };
        if flow.sender != Some(from) {
            return;
        }
        let Some(segment) = Segment::read(model) else { return };
        if segment.seq < flow.sent {
            let what = Happening::SegmentResent { flow: flow.name.clone(), number: segment.seq };
            self.advance(now);
            self.record(from, what);
        } else {
            flow.sent = segment.seq + 1;
        }
    }

    fn lost(&mut self, now: Time, node: NodeId, lost: &Lost<'_>) {
        self.advance(now);
        let flow = self.flows.get(lost.datagram.flow.0 as usize).and_then(Option::as_ref);
        let (kind, number) = match (&lost.datagram.payload, flow) {
            (Payload::Model(model), Some(Named { sender: Some(_), .. })) => match Segment::read(model) {
                Some(segment) => (PacketKind::Data, Some(segment.seq)),
                None => (PacketKind::Ack, Ack::read(model).map(|ack| ack.next)),
            },
            (Payload::Model(model), _) => (PacketKind::Data, Some(model.words[0])),
            _ => (PacketKind::Datagram, None),
        };
        let what = Happening::PacketLost {
            by: self.links.get(node.0 as usize).cloned().flatten().unwrap_or_default(),
            cause: lost.cause.name().to_owned(),
            flow: flow.map_or_else(String::new, |flow| flow.name.clone()),
            kind,
            number,
            ip_size: lost.datagram.ip_size(),
        };
        self.record(node, what);
    }
}

/// A log under way. Keeps the first error of its writer until [`finish`](EventLog::finish).
pub struct EventLog<W>(Arc<Mutex<Log<W>>>);

impl<W: Write + Send + 'static> EventLog<W> {
    /// Begins to write all that happens in the simulation.
    pub fn attach(scenario: &Scenario, simulation: &mut Simulation, out: W) -> EventLog<W> {
        let nodes = simulation.engine.elements().count();
        let mut links = vec![None; nodes];
        for (spec, node) in scenario.links.iter().zip(&simulation.links) {
            links[node.0 as usize] = Some(scenario.link_name(spec));
        }
        for (spec, node) in scenario.wlans.iter().zip(&simulation.wlans) {
            links[node.0 as usize] = Some(format!("wlan/{}", spec.name()));
        }
        let log = Log {
            out,
            failed: None,
            now: Time::ZERO,
            hold: Span::ZERO,
            pending: BTreeMap::new(),
            lines: 0,
            planned: planned(scenario, simulation).into_iter().peekable(),
            links,
            flows: flows(scenario, simulation),
            seq: vec![0; nodes],
        };
        let log = Arc::new(Mutex::new(log));
        let shared = || Arc::clone(&log);
        let (packets, lost, decisions) = (shared(), shared(), shared());
        simulation.engine.set_tap(Box::new(move |now, from, _, datagram| {
            packets.lock().unwrap_or_else(PoisonError::into_inner).packet(now, from, datagram);
        }));
        simulation.engine.add_lost_tap(Box::new(move |now, node, what| {
            lost.lock().unwrap_or_else(PoisonError::into_inner).lost(now, node, what);
        }));
        simulation.engine.add_decision_tap(Box::new(move |now, event: &Event| {
            let mut log = decisions.lock().unwrap_or_else(PoisonError::into_inner);
            // One from outside may be ahead of what the engine has come to.
            let reached = log.before(now);
            log.advance(reached);
            log.line(now, event.node, event.seq, event);
        }));
        EventLog(log)
    }

    /// Keeps lines back for that long, so that decisions which are
    /// [told late](crate::network::engine::Engine::tell_decision) find their place. One that is later still stands where it
    /// came.
    pub fn holding(self, hold: Span) -> EventLog<W> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).hold = hold;
        self
    }

    /// Ends the file, with the changes planned up to `end`.
    ///
    /// # Errors
    /// The first error of the writer, at whatever line it was.
    pub fn finish(self, end: Time) -> io::Result<()> {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        log.advance(end);
        log.flush(Time::MAX);
        match log.failed.take() {
            Some(error) => Err(error),
            None => log.out.flush(),
        }
    }
}

/// Changes that the scenario has planned, by time and node.
fn planned(scenario: &Scenario, simulation: &Simulation) -> Vec<(Time, NodeId, Happening)> {
    let mut planned = Vec::new();
    for (spec, &node) in scenario.links.iter().zip(&simulation.links) {
        planned.extend(spec.config.schedule.iter().map(|change| {
            let (link, rate, delay) = (scenario.link_name(spec), change.rate, change.delay);
            (change.at, node, Happening::LinkChanged { link, rate, delay })
        }));
    }
    for (spec, &node) in scenario.wlans.iter().zip(&simulation.wlans) {
        for station in &spec.config.station {
            planned.extend(station.schedule.iter().map(|change| {
                let StationChange { rate, down_rate, frame_error, distance_m, snr_db, .. } = *change;
                let station = station.name.clone();
                let changed =
                    Happening::StationChanged { station, rate, down_rate, frame_error, distance_m, snr_db };
                (Time::ZERO + change.at, node, changed)
            }));
        }
    }
    for (spec, &node) in scenario.traffic.iter().zip(&simulation.sources) {
        planned.extend(
            spec.changes
                .iter()
                .map(|&(at, rate)| (at, node, Happening::TrafficChanged { flow: spec.name.clone(), rate })),
        );
    }
    for &HandoffSpec { at, host, to, old_queue } in &scenario.handoffs {
        let by_link = scenario.links.iter().position(|link| (link.from, link.to) == (host, to));
        let by_air = |wlan: &WlanSpec| wlan.directions.iter().any(|&(_, from, ap)| (from, ap) == (host, to));
        let air = || simulation.wlans.get(scenario.wlans.iter().position(by_air)?);
        let Some(&node) = by_link.map(|at| &simulation.links[at]).or_else(air) else { continue };
        let [host, to] = [host, to].map(|vertex| scenario.vertex_name(vertex).to_owned());
        planned.push((at, node, Happening::HandedOff { host, to, old_queue }));
    }
    planned.sort_by_key(|(at, node, _)| (*at, *node));
    planned
}

/// The flows by their labels.
fn flows(scenario: &Scenario, simulation: &Simulation) -> Vec<Option<Named>> {
    let mut flows: Vec<Option<Named>> = Vec::new();
    let mut set = |label: Flow, named: Named| {
        let label = label.0 as usize;
        flows.resize(flows.len().max(label + 1), None);
        flows[label] = Some(named);
    };
    for &(from, to, label) in simulation.pairs() {
        let name = format!("{}>{}", scenario.vertex_name(from), scenario.vertex_name(to));
        set(label, Named { name, sender: None, sent: 0 });
    }
    for (talk, there, back) in simulation.conversations() {
        let ends = [(talk.from.0, talk.to.0, there), (talk.to.0, talk.from.0, back)];
        for (from, to, label) in ends {
            let hosts = || format!("{}>{}", scenario.vertex_name(from), scenario.vertex_name(to));
            set(*label, Named { name: talk.name.clone().unwrap_or_else(hosts), sender: None, sent: 0 });
        }
    }
    for (at, spec) in scenario.traffic.iter().enumerate() {
        let (Some(&label), Some(&node)) = (simulation.traffic_flows.get(at), simulation.sources.get(at))
        else {
            continue;
        };
        let named = Named { name: spec.name.clone(), sender: spec.tcp.is_some().then_some(node), sent: 0 };
        if spec.tcp.is_some() {
            set(Flow(label.0 + 1), named.clone());
        }
        set(label, named);
    }
    flows
}
