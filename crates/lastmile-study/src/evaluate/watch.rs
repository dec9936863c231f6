//! Records of a run while it goes: each watched flow's rates in each step, its limiting link's queue, and the delay of each packet of
//! tested streams.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use lastmile::time::{Span, Time};
use lastmile::wire::RtpHeader;
use lastmile_sim::monitor::series::{SeriesPlan, SeriesRow};
use lastmile_sim::runs::Hooks;
use lastmile_sim::scenario::roles::Conversation;
use lastmile_sim::scenario::{Scenario, Simulation};

use super::frames::{Frames, timestamp};
use super::metrics::STEP_S;
use super::oracle::Queues;
use super::path::{ByTime, Flow, Limit, Paths, propagation};
use crate::media;

/// Of one flow, step by step: bit/s of IP packets, and the mean delay of those that arrived, in seconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Rates {
    /// With padding.
    pub(super) sent: Vec<f64>,
    /// Without it, which carries nothing.
    pub(super) received: Vec<f64>,
    /// Bits of padding that arrived in the step under way.
    padding: f64,
    pub(super) delay: Vec<Option<f64>>,
}

/// A packet of a tested stream that arrived, IP layer, in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Took {
    /// From leaving the sender to reaching the receiver.
    pub(super) delay: f32,
    /// The same without propagation.
    pub(super) queueing: f32,
}

/// Packets of media of tested streams, from the time on from which numbers count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) sent: u64,
    pub(super) lost: u64,
    /// Of these, packets that queues and collisions lost.
    pub(super) congestion: u64,
}

/// Rates, queues and delays of a run.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) flows: BTreeMap<String, Rates>,
    /// Bytes on the wire that waited at each limiting link, on the mean over a step.
    pub(super) queues: BTreeMap<String, Vec<f64>>,
    pub(super) took: Vec<Took>,
    pub(super) counts: Counts,
    /// Of tested streams whose sources make frames.
    pub(super) frames: BTreeMap<String, Frames>,
}

/// Facts that the packets of a stream are held against.
struct Way {
    name: String,
    propagation: ByTime,
    limit: Limit,
    /// The timestamp of the first frame that counts.
    first: u32,
}

type Shared = Arc<Mutex<Kept>>;

/// Attaches the recorders of all that to a run; the records are there when it is over. Oracles are told of the queues as it goes.
pub(super) fn watch(scenario: &Scenario, paths: &Paths, told: Option<Queues>) -> (Hooks, Shared) {
    let flows = paths.tested.iter().chain(&paths.tcp).chain(&paths.others);
    let flows = flows.map(|flow| (flow.name.clone(), Rates::default())).collect();
    let links = paths.left.keys().filter_map(|&limit| Paths::link_name(scenario, limit));
    let queues = links.map(|name| (name, Vec::new())).collect();
    let framed = paths.tested.iter().filter(|flow| flow.frames);
    let frames = framed.map(|flow| (flow.name.clone(), Frames::new(flow.from_s))).collect();
    let kept = Arc::new(Mutex::new(Kept { flows, queues, frames, ..Kept::default() }));
    let (rows, packets) = (Arc::clone(&kept), Arc::clone(&kept));
    let tell = move |row: &SeriesRow| rows.lock().unwrap_or_else(PoisonError::into_inner).row(row);
    let from_s = paths.from_s;
    let way = |flow: &Flow| {
        let (name, propagation, limit) = (flow.name.clone(), flow.propagation.clone(), flow.limit);
        let first = timestamp(from_s - flow.from_s);
        (name.clone(), Way { name, propagation, limit, first })
    };
    let mut ways: BTreeMap<String, Way> = paths.tested.iter().map(way).collect();
    let prepare = move |scenario: &Scenario, simulation: &mut Simulation| {
        count_losses(scenario, simulation, &ways, Arc::clone(&packets));
        media::watch(
            scenario,
            simulation,
            |name| ways.remove(name),
            move |way, packet| {
                let mut kept = packets.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(frames) = kept.frames.get_mut(&way.name) {
                    frames.saw(packet);
                }
                let Some(left) = packet.left else {
                    let counts = packet.repeats.is_none() && packet.header.timestamp >= way.first;
                    kept.counts.sent += u64::from(counts);
                    return;
                };
                let (delay, at_s) = ((packet.at - left).as_secs_f64(), (left - Time::ZERO).as_secs_f64());
                let queueing = delay - propagation(&way.propagation, at_s);
                if packet.is_padding()
                    && let Some(flow) = kept.flows.get_mut(&way.name)
                {
                    flow.padding += packet.size.bits() as f64;
                }
                if at_s >= from_s {
                    kept.took.push(Took { delay: delay as f32, queueing: queueing as f32 });
                }
                if let Some(told) = &told {
                    told.note(way.limit, packet.at, queueing);
                }
            },
        );
    };
    let hooks = Hooks {
        series: Some(SeriesPlan { step: Span::from_secs_f64(STEP_S), tell: Box::new(tell) }),
        prepare: Some(Box::new(prepare)),
        ..Hooks::default()
    };
    (hooks, kept)
}

/// Counts losses of tested streams' media.
fn count_losses(
    scenario: &Scenario,
    simulation: &mut Simulation,
    ways: &BTreeMap<String, Way>,
    kept: Shared,
) {
    let flow = |talk: &Conversation| {
        let first = ways.get(talk.name.as_ref()?)?.first;
        Some((simulation.conversation(talk)?.0, first))
    };
    let firsts: Vec<(lastmile::node::Flow, u32)> = scenario.conversations().iter().filter_map(flow).collect();
    simulation.engine.add_lost_tap(Box::new(move |_, _, what| {
        let Some((_, first)) = firsts.iter().find(|(flow, _)| *flow == what.datagram.flow) else { return };
        let counts =
            |(header, repeats): (RtpHeader, Option<u16>)| repeats.is_none() && header.timestamp >= *first;
        if !media::header(what.datagram).is_some_and(counts) {
            return;
        }
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.counts.lost += 1;
        kept.counts.congestion += u64::from(what.cause.is_congestion());
    }));
}

impl Kept {
    fn row(&mut self, row: &SeriesRow) {
        match row.row {
            "flow" => {
                let Some(flow) = self.flows.get_mut(&row.name) else { return };
                flow.sent.push(row.sent_bps.unwrap_or(0.0));
                let padding = core::mem::take(&mut flow.padding) / STEP_S;
                flow.received.push((row.goodput_bps.unwrap_or(0.0) - padding).max(0.0));
                flow.delay.push(row.delay_s);
            }
            "link" => {
                let Some(queue) = self.queues.get_mut(&row.name) else { return };
                queue.push(row.queue_mean_bytes.unwrap_or(0.0));
            }
            _ => {}
        }
    }
}
