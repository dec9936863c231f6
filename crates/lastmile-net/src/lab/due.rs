//! The effect of lateness on the results of a measurement in the lab: the same streams with every probe in time, through the
//! same estimator.
//!
//! A probe is late where it enters (its sender's kernel stamp against the entry) and where it leaves. If the scenario's
//! traffic does not depend on its own fate, the path is simulated: the same seed, and each probe enters
//! when it was due; so a packet of others that slipped in ahead of a late probe is seen. TCP and stations that contend
//! answer to a microsecond with another run of luck, which is nobody's error: there both latenesses are taken out of the
//! probe's arrival in full, as if it had waited for nobody meanwhile.

use std::collections::HashMap;

use lastmile::node::Payload;
use lastmile::report::{Direction, Fate, StreamRecord};
use lastmile::time::{Span, Time};
use lastmile_sim::roles::{Makers, Running};
use lastmile_sim::runs::RunError;
use lastmile_sim::scenario::{Attach, Scenario, build};

use super::counts::LatenessCounts;
use super::entry::{Entry, MAX_NOTED, Probe};
use super::pump::Pump;
use super::roles::{Told, told};

/// Greatest change of an estimate, as a share of the capacity, when lateness is taken out of it.
pub const MOVED_MOST: f64 = 0.02;

/// The streams of each conversation, as they were recorded or would have been.
type Records = Vec<Vec<StreamRecord>>;

/// The greatest change of an estimate by lateness.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moved {
    /// Greatest change of an estimate from its probes as they came to its probes in time, as a share
    /// of the capacity; infinite if more than a number changes, as from a number to a refusal.
    pub share: f64,
    /// The same between two simulations of the run, in which the probes enter when they did and when they were due; `None`
    /// if the scenario's traffic answers to other traffic.
    pub simulated: Option<f64>,
    /// The estimate that moved furthest, in words: its value, and the one with every probe in time.
    pub what: String,
}

/// The effect of lateness on a run's measurements.
pub(super) struct Judged {
    pub(super) moved: Moved,
    /// Lateness of entering packets: probes by their senders' stamps, others by the longest time that they may have waited.
    pub(super) entered: LatenessCounts,
    /// True if this judges the whole run. It cannot judge round trips, endpoints that measure nothing, and packets too many
    /// to note.
    pub(super) whole: bool,
}

/// A run that has ended.
pub(super) struct Ran<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) seed: u64,
    /// The hosts that were outside.
    pub(super) hosts: &'a [usize],
    /// Conversations with recorded packets.
    pub(super) told: Vec<Told<'a>>,
    pub(super) records: Records,
    /// Packets that entered, in the order of entry, and the lateness of probes that left.
    pub(super) entries: &'a [Entry],
    pub(super) exits: &'a [(Probe, Span)],
    /// When it ended.
    pub(super) end: Time,
}

impl<'a> Ran<'a> {
    /// A run's endpoints.
    pub(super) fn of(
        scenario: &'a Scenario,
        seed: u64,
        hosts: &'a [usize],
        running: &Running,
        make: &'a Makers,
        pump: &'a Pump,
    ) -> Ran<'a> {
        let (told, records) = told((scenario, seed), running, make);
        Ran {
            scenario,
            seed,
            hosts,
            told,
            records,
            entries: pump.entries(),
            exits: pump.exits(),
            end: pump.engine().now(),
        }
    }

    /// Compares its results with those of probes in time.
    pub(super) fn judged(&self) -> Result<Judged, RunError> {
        let probes = self.probes();
        let mut entered = LatenessCounts::default();
        let late = |entry: &Entry| {
            let (session, record, index) = *probes.get(entry.probe.as_ref()?)?;
            let sent = self.records[session][record].packets[index].sent;
            Some((entry.at - Time::from_nanos(sent.as_nanos())).max(Span::ZERO))
        };
        let late: Vec<Option<Span>> = self.entries.iter().map(late).collect();
        for (entry, late) in self.entries.iter().zip(&late) {
            entered.add(late.unwrap_or(entry.waited).as_nanos().max(0) as u64);
        }
        let answers =
            !self.scenario.wlans.is_empty() || self.scenario.traffic.iter().any(|flow| flow.tcp.is_some());
        let mut moved = Moved::default();
        if answers {
            let due = self.taken_out(&probes, &late);
            self.compare(&self.records, &due, &mut moved)?;
        } else {
            let came = self.simulated(&probes, |_| Span::ZERO)?;
            let due = self.simulated(&probes, |entry| late[entry].unwrap_or_default())?;
            let mut simulated = Moved::default();
            self.compare(&came, &due, &mut simulated)?;
            self.compare(&self.records, &due, &mut moved)?;
            moved.simulated = Some(simulated.share);
        }
        let mut streams = self.records.iter().flatten();
        let whole = self.entries.len() < MAX_NOTED
            && self.told.len() == self.scenario.conversations().len()
            && streams.all(|stream| stream.direction != Direction::RoundTrip);
        Ok(Judged { moved, entered, whole })
    }

    /// Places of the probes in the records: session, record, packet. Replies of a round trip carry no number by which they
    /// could be told.
    fn probes(&self) -> HashMap<Probe, (usize, usize, usize)> {
        let mut probes = HashMap::new();
        for (s, (talk, records)) in self.told.iter().zip(&self.records).enumerate() {
            let address = |host: usize| self.scenario.hosts[host].address(talk.ipv6);
            for (r, record) in records.iter().enumerate() {
                let (from, to) = match record.direction {
                    Direction::Forward => (address(talk.from), address(talk.to)),
                    Direction::Reverse => (address(talk.to), address(talk.from)),
                    Direction::RoundTrip => continue,
                };
                for index in 0..record.packets.len() {
                    let probe = Probe { from, to, stream: record.stream, index: index as u16 };
                    probes.insert(probe, (s, r, index));
                }
            }
        }
        probes
    }

    /// The records with both latenesses taken out of each arrival.
    fn taken_out(&self, probes: &HashMap<Probe, (usize, usize, usize)>, late: &[Option<Span>]) -> Records {
        let mut records = self.records.clone();
        let entries = self.entries.iter().zip(late);
        let entries = entries.filter_map(|(entry, late)| Some((entry.probe?, (*late)?)));
        for (probe, late) in entries.chain(self.exits.iter().copied()) {
            let Some(&(session, record, index)) = probes.get(&probe) else { continue };
            let fate = &mut records[session][record].packets[index].fate;
            if let Fate::Arrived(at) = *fate {
                *fate = Fate::Arrived(at - late);
            }
        }
        records
    }

    /// The records as the simulator gives them where each packet enters so much earlier.
    fn simulated(
        &self,
        probes: &HashMap<Probe, (usize, usize, usize)>,
        earlier: impl Fn(usize) -> Span,
    ) -> Result<Records, RunError> {
        let name = |&host: &usize| (self.scenario.hosts[host].name.clone(), Attach::External);
        let mut simulation =
            build(self.scenario, self.seed, self.hosts.iter().map(name).collect()).map_err(RunError::from)?;
        let entries = self.entries;
        let mut order: Vec<(Time, usize)> =
            entries.iter().enumerate().map(|(k, entry)| (entry.at - earlier(k), k)).collect();
        order.sort_unstable();
        for (at, k) in order {
            let mut packet = entries[k].header.clone();
            if let Payload::Model(model) = &mut packet.payload {
                model.words[0] = k as u64;
            }
            simulation.engine.inject(entries[k].node, at, packet)?;
        }
        simulation.engine.run_until(self.end)?;
        let mut egress = Vec::new();
        simulation.engine.take_egress(&mut egress);
        let mut arrived: Vec<Option<Time>> = vec![None; entries.len()];
        for left in egress {
            if let Payload::Model(model) = left.datagram.payload {
                arrived[model.words[0] as usize] = Some(left.at);
            }
        }
        let mut records = self.records.clone();
        for (entry, arrived) in entries.iter().zip(arrived) {
            let Some(&(session, record, index)) = entry.probe.and_then(|probe| probes.get(&probe)) else {
                continue;
            };
            records[session][record].packets[index].fate =
                arrived.map_or(Fate::Lost, |at| Fate::Arrived(at.as_receiver()));
        }
        Ok(records)
    }

    /// Holds the results of two sets of the same streams against each other.
    fn compare(&self, before: &Records, after: &Records, moved: &mut Moved) -> Result<(), RunError> {
        for ((told, before), after) in self.told.iter().zip(before).zip(after) {
            let (share, what) = (told.moved)(before, after)?;
            if share > moved.share {
                (moved.share, moved.what) = (share, what);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::roles::measure::of;

    use lastmile::estimate::{Conditions, build as estimator};
    use lastmile::node::{Datagram, Model};
    use lastmile_sim::network::engine::NodeId;
    use lastmile_sim::runs::{Hooks, simulate};
    use lastmile_sim::scenario::builtin;
    use lastmile_sim::scenario::roles::measure::sessions;

    /// WBest on the scenario `path`, with each probe late by `late` of its stream and place.
    fn judged(name: &str, late: impl Fn(u32, usize) -> Span) -> Moved {
        let mut scenario = builtin(name).unwrap();
        // Streams are numbered from 1: pairs, a train that is not believed, and the one train that counts.
        scenario.roles.measure[0].method = "wbest(trains=1)".parse().unwrap();
        let make = Makers::measuring(|spec| {
            estimator(&spec.method, &Conditions::default()).map_err(|error| error.to_string())
        });
        let run = simulate(&scenario, 1, &make, Hooks::default()).unwrap();
        let sessions = sessions(&scenario);
        let session = &sessions[0];
        let address = |host: usize| scenario.hosts[host].address(session.ipv6);
        let (from, to) = (address(session.from), address(session.to));
        let mut entries = Vec::new();
        let records: Vec<_> = run.found.measure.records.into_iter().map(|(_, records)| records).collect();
        for record in &records[0] {
            for (index, packet) in record.packets.iter().enumerate() {
                let payload = Payload::Model(Model { ip_size: packet.size.0 as u32, words: [0; 4] });
                let header =
                    Datagram { payload, ..Datagram::udp((from, 0).into(), (to, 0).into(), Vec::new()) };
                let probe = Probe { from, to, stream: record.stream, index: index as u16 };
                entries.push(Entry {
                    node: NodeId(session.from as u32),
                    header,
                    at: Time::from_nanos(packet.sent.as_nanos()) + late(record.stream, index),
                    waited: Span::ZERO,
                    probe: Some(probe),
                });
            }
        }
        let mut ran = Ran {
            scenario: &scenario,
            seed: 1,
            hosts: &[session.from, session.to],
            told: vec![of(session.clone(), 1, &make)],
            records,
            entries: &entries,
            exits: &[],
            end: Time::ZERO + scenario.duration,
        };
        // The records are those of the late probes.
        ran.records = ran.simulated(&ran.probes(), |_| Span::ZERO).unwrap();
        let judged = ran.judged().unwrap();
        assert!(judged.whole && judged.entered.packets() == entries.len() as u64);
        judged.moved
    }

    #[test]
    fn lateness_counts_by_what_it_does_to_the_number() {
        assert_eq!(judged("path", |_, _| Span::ZERO), Moved { simulated: Some(0.0), ..Moved::default() });
        // Streams are numbered from 1: pairs, and the train. Nobody sees that a packet in the queue came later into it; nor one odd pair among thirty.
        let train = |k: usize, us| {
            move |stream, index| if (stream, index) == (2, k) { Span::from_micros(us) } else { Span::ZERO }
        };
        assert!(judged("path", train(15, 300)).share < 0.001);
        let pair = judged(
            "path",
            |stream, index| if (stream, index) == (1, 7) { Span::from_millis(3) } else { Span::ZERO },
        );
        assert!(pair.share < 0.005, "{pair:?}");
        // A last packet that comes 4 ms late makes the train longer.
        let last = judged("path", train(29, 4_000));
        assert!(last.share > MOVED_MOST && last.simulated == Some(last.share), "{last:?}");
        assert!(
            last.what.starts_with("forward wbest(trains=1) would have found available bandwidth"),
            "{last:?}"
        );
        // All pairs torn apart: there is no more capacity to find.
        let torn = judged("path", |stream, index| {
            Span::from_millis(if stream == 1 { (index % 2) as i64 * 4 } else { 0 })
        });
        assert!(torn.share > MOVED_MOST, "{torn:?}");
    }

    #[test]
    fn where_the_traffic_answers_lateness_is_taken_out_in_full() {
        let cell = |us| judged("wlan-g", move |_, index| Span::from_micros(us * (index % 2) as i64));
        assert_eq!(cell(0), Moved::default());
        // Half a pair's time on the air.
        let late = cell(200);
        assert!(late.share > 0.1 && late.simulated.is_none(), "{late:?}");
    }
}
