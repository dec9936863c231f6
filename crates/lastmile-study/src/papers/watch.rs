//! Observation of a run: rates, queues and windows in steps of time, and the delays of streams' packets.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use lastmile::node::{Ecn, Payload};
use lastmile::time::{Span, Time};
use lastmile::wire::{Mode, SenderPacket};
use lastmile_sim::monitor::series::{SeriesPlan, SeriesRow};
use lastmile_sim::network::engine::{NodeId, Tap};
use lastmile_sim::network::meter::udp_payload;
use lastmile_sim::runs::Hooks;
use lastmile_sim::scenario::{Scenario, Simulation};

use crate::media;

/// Observation of a paper's runs.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// Length of a step.
    pub step: Span,
    /// True if each packet of a stream is noted.
    pub packets: bool,
    /// Hosts whose packets on the way from the first to the second are noted one by one.
    pub way: Option<(&'static str, &'static str)>,
}

impl Watch {
    /// Notes in steps of time.
    pub const fn every(step: Span) -> Watch {
        Watch { step, packets: false, way: None }
    }
}

/// A packet that left one host for another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Passed {
    /// Stream and place of a measurement's probe.
    pub probe: Option<(u32, u16)>,
    /// Planned departure of a probe, as its packet has it: NTP's 64 bits.
    pub planned: Option<u64>,
    /// Departure.
    pub left: Time,
    /// Arrival, unless it was lost.
    pub arrived: Option<Time>,
    /// Bytes of the IP packet.
    pub size: u64,
    /// True if it arrived with a mark (ECN).
    pub marked: bool,
}

/// Notes of a run.
#[derive(Debug, Default)]
pub struct Seen {
    /// Of flows, links and WLANs, step by step.
    pub rows: Vec<SeriesRow>,
    /// Packets of streams that arrived, by the stream's name: when, and after how long, in seconds.
    pub arrivals: BTreeMap<String, Vec<(f64, f64)>>,
    /// Packets of the [`way`](Watch::way), in the order of departure.
    pub passed: Vec<Passed>,
}

/// Shared by those who look on.
pub(crate) type Notes = Arc<Mutex<Seen>>;

impl Watch {
    /// Notes it while a run goes.
    pub(crate) fn hooks(self, notes: &Notes) -> Hooks {
        let (rows, packets, way) = (Arc::clone(notes), Arc::clone(notes), Arc::clone(notes));
        let tell = move |row: &SeriesRow| noted(&rows, |seen| seen.rows.push(row.clone()));
        let prepare = move |scenario: &Scenario, simulation: &mut Simulation| {
            if self.packets {
                let notes = Arc::clone(&packets);
                media::watch(
                    scenario,
                    simulation,
                    |name| Some(name.to_owned()),
                    move |name, packet| {
                        let (Some(left), now) = (packet.left, packet.at) else { return };
                        let arrival = ((now - Time::ZERO).as_secs_f64(), (now - left).as_secs_f64());
                        noted(&notes, |seen| seen.arrivals.entry(name.clone()).or_default().push(arrival));
                    },
                );
            }
            if let Some((from, to)) =
                self.way.and_then(|(from, to)| Some((scenario.host(from)?, scenario.host(to)?)))
            {
                // Traffic of the simulator's own stands beside its hosts.
                let own = scenario.traffic.iter().zip(simulation.sources.iter().zip(&simulation.sinks));
                let own = own.filter(|(flow, _)| (flow.from, flow.to) == (from, to));
                let (mut left, mut reached): (Vec<NodeId>, Vec<NodeId>) = own.map(|(_, ends)| ends).unzip();
                left.push(simulation.hosts[from]);
                reached.push(simulation.hosts[to]);
                simulation.engine.set_tap(pass(left, reached, way));
            }
        };
        Hooks {
            series: Some(SeriesPlan { step: self.step, tell: Box::new(tell) }),
            prepare: Some(Box::new(prepare)),
            ..Hooks::default()
        }
    }
}

/// Bytes by which a packet is known again: every kind has its number among them.
const KNOWN_BY: usize = 48;

/// Notes the packets that leave one of the first nodes, and those of them that arrive at one of the second.
fn pass(from: Vec<NodeId>, to: Vec<NodeId>, notes: Notes) -> Tap {
    // Places in the list, by the packet's bytes, or a model's words.
    let mut under_way: HashMap<Vec<u8>, usize> = HashMap::new();
    Box::new(move |now, left, reached, datagram| {
        let leaves = from.contains(&left);
        if !leaves && !to.contains(&reached) {
            return;
        }
        let udp = udp_payload(&datagram.payload);
        let key = match (&datagram.payload, udp) {
            (Payload::Model(model), _) => model.words.iter().flat_map(|word| word.to_be_bytes()).collect(),
            (_, Some(udp)) => udp[..udp.len().min(KNOWN_BY)].to_vec(),
            _ => return,
        };
        noted(&notes, |seen| {
            if leaves {
                under_way.insert(key, seen.passed.len());
                let planned = udp.and_then(|udp| SenderPacket::parse(Mode::Open, udp).ok());
                let probe = udp.and_then(lastmile_sim::roles::probe);
                seen.passed.push(Passed {
                    probe,
                    planned: planned.filter(|_| probe.is_some()).map(|packet| packet.timestamp),
                    left: now,
                    arrived: None,
                    size: datagram.ip_size().0,
                    marked: false,
                });
            } else if let Some(passed) = under_way.remove(&key).and_then(|at| seen.passed.get_mut(at)) {
                (passed.arrived, passed.marked) = (Some(now), datagram.ecn == Ecn::Ce);
            }
        });
    })
}

fn noted(notes: &Notes, what: impl FnOnce(&mut Seen)) {
    what(&mut notes.lock().unwrap_or_else(PoisonError::into_inner));
}

/// Notes of a run that is over.
pub(crate) fn taken(notes: &Notes) -> Seen {
    let mut taken = Seen::default();
    noted(notes, |seen| std::mem::swap(seen, &mut taken));
    taken
}

impl Seen {
    /// The rows of one flow, link (`from>to`) or direction of a WLAN, in the order of time.
    pub fn of<'a>(&'a self, row: &'a str, name: &'a str) -> impl Iterator<Item = &'a SeriesRow> {
        self.rows.iter().filter(move |seen| seen.row == row && seen.name == name)
    }
}
