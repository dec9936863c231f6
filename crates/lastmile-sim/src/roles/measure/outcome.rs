//! [`Outcome`]: what was found, beside the [`Truth`].

use lastmile::endpoint::measure::{Cost, Decision, Row, TruthRow, relative_error};
use lastmile::estimate::{Estimate, Quantity, Refusal, TruthKind, TruthOver};
use lastmile::report::Direction;
use lastmile::time::Time;
use lastmile::units::Rate;

use super::{PROBE_SIZE, read_probe};
use crate::monitor::PathMeter;
use crate::monitor::twin::{SharedTruth, TwinPath, shared_truths, window};
use crate::network::engine::Engine;
use crate::network::meter::Packets;
use crate::roles::Ended;
use crate::scenario::roles::measure::SessionSpec;
use crate::scenario::{RunError, Scenario, Simulation};

/// What is true of a path, at the IP layer and [`PROBE_SIZE`].
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Truth {
    /// What the path carries while nobody else sends: of links what their narrowest could in the windows of
    /// the estimate's streams, of bursts as large as the estimate names (of two packets, if it is of something else) that meet
    /// full token buckets; by WLANs what a saturating flow gets alone ([`twin`](crate::monitor::twin)).
    pub capacity: Rate,
    /// The same of what lasts: no more than the tokens of any shaper.
    pub sustained: Rate,
    /// The spare rate over the estimate's own streams, the mean of their windows; by WLANs over the
    /// [window](crate::monitor::twin::window) around them. Of an available bandwidth that names a burst, of such bursts; else of
    /// what lasts. `None` where stations aggregate.
    pub window: Option<Rate>,
    /// The spare rate from the warm-up's end to the run's.
    pub mean: Option<Rate>,
    /// Which of the two an estimate is held against: the mean where no window's is known.
    pub over: TruthOver,
    /// What one saturating flow gets over the window around the estimate's streams; only by WLANs.
    pub achievable_window: Option<Rate>,
    /// What it gets from the warm-up's end to that of the scenario.
    pub achievable_mean: Option<Rate>,
}

impl Truth {
    /// The rate that an estimate is to be held against: the capacity, or over its own window the spare or the
    /// achievable rate, as it says itself. On a path without WLANs nothing is known of the latter.
    pub fn of(&self, estimate: &Estimate) -> Option<Rate> {
        match (estimate.quantity, estimate.truth_kind) {
            (Quantity::Capacity, _) => Some(self.capacity),
            (Quantity::SustainedRate, _) => Some(self.sustained),
            (_, TruthKind::Queue) if self.over == TruthOver::Run => self.mean,
            (_, TruthKind::Queue) => self.window,
            (_, TruthKind::Saturation) => self.achievable_window,
        }
    }
}

/// What one method found in one direction, beside the truth.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Outcome {
    /// The initiating host's name.
    pub from: String,
    /// The reflecting host's name.
    pub to: String,
    /// The method's name.
    pub method: String,
    /// The direction measured.
    pub direction: Direction,
    /// When its session began, as the scenario has it.
    pub start: Time,
    /// The number, or `None` where there is none that can be trusted.
    pub estimate: Option<Estimate>,
    /// Why there is none.
    pub refusal: Option<Refusal>,
    /// What the session cost up to here.
    pub cost: Cost,
    /// The truth, where something limits the path.
    pub truth: Option<Truth>,
}

impl Outcome {
    /// It as a row, with its truth.
    pub fn row(&self) -> Option<Row> {
        let (method, direction, cost) = (self.method.clone(), self.direction, self.cost);
        let mut row = Row::of(&match (self.estimate.clone(), self.refusal.clone()) {
            (Some(estimate), _) => Decision::Estimated { method, direction, estimate, cost },
            (None, Some(refusal)) => Decision::Refused { method, direction, refusal, cost },
            (None, None) => return None,
        })?;
        row.from = Some(self.from.clone());
        row.to = Some(self.to.clone());
        row.start_seconds = Some((self.start - Time::ZERO).as_secs_f64());
        let rate = row.rate_bps.map(Rate::ip);
        row.truth = self.truth.map(|truth| {
            let estimate = self.estimate.as_ref();
            let available = estimate.filter(|e| e.quantity == Quantity::AvailableBandwidth);
            let saturation = available.and(truth.achievable_window);
            TruthRow {
                truth_capacity_bps: truth.capacity.bits_per_second(),
                truth_sustained_bps: truth.sustained.bits_per_second(),
                truth_window_bps: truth.window.map(Rate::bits_per_second),
                truth_mean_bps: truth.mean.map(Rate::bits_per_second),
                truth_over: truth.over,
                truth_saturation_window_bps: truth.achievable_window.map(Rate::bits_per_second),
                truth_saturation_mean_bps: truth.achievable_mean.map(Rate::bits_per_second),
                error: relative_error(rate, estimate.and_then(|e| truth.of(e))),
                error_saturation: relative_error(rate, saturation),
            }
        });
        Some(row)
    }
}

/// Meters of both directions of a session's path, there and back.
pub(super) struct PathTruth([Option<PathMeter>; 2]);

/// What a truth is asked for.
#[derive(Clone, Copy, Debug)]
struct Asked<'a> {
    direction: Direction,
    /// The streams that the estimate was made from; none if there is no estimate.
    streams: &'a [u32],
    /// Of which packets the capacity and the spare rate are.
    capacity: Packets,
    rest: Packets,
}

impl<'a> Asked<'a> {
    /// The truth beside an estimate, or beside none.
    fn about(direction: Direction, estimate: Option<&'a Estimate>) -> Asked<'a> {
        let burst = |quantity| estimate.filter(|e| e.quantity == quantity).and_then(|e| e.burst);
        let pair = burst(Quantity::Capacity).unwrap_or(PROBE_SIZE * 2);
        Asked {
            direction,
            streams: estimate.map_or(&[], |e| &e.streams),
            capacity: Packets { ip_size: PROBE_SIZE, burst: Some(pair) },
            rest: Packets { ip_size: PROBE_SIZE, burst: burst(Quantity::AvailableBandwidth) },
        }
    }
}

/// One direction of a session's path, with what twins found: for each estimate, and last for the whole run.
struct Side<'a> {
    meter: &'a PathMeter,
    shared: Option<Vec<SharedTruth>>,
}

impl PathTruth {
    /// Attaches meters to all that limits the packets between a session's hosts, both ways.
    pub(super) fn attach(
        simulation: &mut Simulation,
        scenario: &Scenario,
        session: &SessionSpec,
    ) -> PathTruth {
        let flows = simulation.conversation(&session.conversation());
        let ways = [(session.from, session.to), (session.to, session.from)];
        let mut meter = |way: usize| {
            let flow = flows.map(|flows| [flows.0, flows.1][way])?;
            simulation.meter(scenario, ways[way], flow, read_probe)
        };
        PathTruth([meter(0), meter(1)])
    }

    /// The truth for estimates; `None` where
    /// nothing limits the path. Of a round trip it is the way there's, but for a smaller capacity back. Twins
    /// run only where a WLAN is on the path.
    fn truths(
        &self,
        ended: &Ended<'_>,
        session: &SessionSpec,
        asked: &[Asked<'_>],
    ) -> Result<Vec<Option<Truth>>, RunError> {
        let (engine, scenario, seed) = (ended.engine(), ended.scenario, ended.simulation.seed());
        let side = |way: usize, but: Direction| -> Result<Option<Side<'_>>, RunError> {
            let wanted = asked.iter().any(|ask| ask.direction != but);
            let Some(meter) = self.0[way].as_ref().filter(|_| wanted) else { return Ok(None) };
            let (from, to) = [(session.from, session.to), (session.to, session.from)][way];
            let path = TwinPath { from, to, ip_size: PROBE_SIZE };
            let windows = windows(meter, engine, scenario, asked);
            let twins = (!meter.air.is_empty()).then(|| shared_truths(scenario, seed, path, &windows));
            Ok(Some(Side { meter, shared: twins.transpose()? }))
        };
        let (forward, reverse) = (side(0, Direction::Reverse)?, side(1, Direction::Forward)?);
        let truth = |(index, ask): (usize, &Asked<'_>)| {
            let first = if ask.direction == Direction::Reverse { &reverse } else { &forward };
            let mut truth = first.as_ref()?.truth(engine, scenario, index, ask)?;
            if let Some(back) = reverse.as_ref().filter(|_| ask.direction == Direction::RoundTrip) {
                let less = |rate: &mut Rate, of| {
                    let back = back.capacity(engine, scenario, index, ask.streams, of);
                    *rate = back.map_or(*rate, |back| smaller(*rate, back));
                };
                less(&mut truth.capacity, ask.capacity);
                less(&mut truth.sustained, PROBE_SIZE.into());
            }
            Some(truth)
        };
        Ok(asked.iter().enumerate().map(truth).collect())
    }
}

/// The windows of estimates at a path's first WLAN, and last the measured part of the run, which also stands for what
/// has no window.
fn windows(
    meter: &PathMeter,
    engine: &Engine,
    scenario: &Scenario,
    asked: &[Asked<'_>],
) -> Vec<(Time, Time)> {
    let whole = (Time::ZERO + scenario.warm_up, Time::ZERO + scenario.duration);
    let own = |streams: &[u32]| {
        let &(node, number) = meter.air.first()?;
        let queue = engine.meter(node, number)?;
        let seen: Vec<_> = streams.iter().filter_map(|&stream| queue.stream(stream).ok()).collect();
        let (first, last) = (seen.iter().map(|s| s.first).min()?, seen.iter().map(|s| s.last).max()?);
        Some(window(scenario, first, last))
    };
    let mut all: Vec<_> = asked.iter().map(|ask| own(ask.streams).unwrap_or(whole)).collect();
    all.push(whole);
    all
}

fn smaller(a: Rate, b: Rate) -> Rate {
    if b < a { b } else { a }
}

impl Side<'_> {
    fn shared(&self, index: usize) -> Option<(SharedTruth, SharedTruth)> {
        let all = self.shared.as_ref()?;
        Some((*all.get(index)?, *all.last()?))
    }

    fn capacity(
        &self,
        engine: &Engine,
        scenario: &Scenario,
        index: usize,
        streams: &[u32],
        of: Packets,
    ) -> Option<Rate> {
        if let Some((own, _)) = self.shared(index) {
            // The twin's packets cross the links as well.
            return Some(own.capacity);
        }
        let own = mean(streams, |stream| self.meter.smallest(engine, |m| m.capacity(stream, of)).ok());
        own.or_else(|| {
            let from = Time::ZERO + scenario.warm_up;
            self.meter.smallest(engine, |m| m.capacity_between(from, engine.now(), of)).ok()
        })
    }

    fn truth(&self, engine: &Engine, scenario: &Scenario, index: usize, ask: &Asked<'_>) -> Option<Truth> {
        let (from, to, streams) = (Time::ZERO + scenario.warm_up, engine.now(), ask.streams);
        let own = mean(streams, |stream| self.meter.smallest(engine, |m| m.spare(stream, ask.rest)).ok());
        let long = self.meter.smallest(engine, |m| m.spare_between(from, to, ask.rest)).ok();
        let capacity = self.capacity(engine, scenario, index, streams, ask.capacity)?;
        let sustained = self.capacity(engine, scenario, index, streams, PROBE_SIZE.into())?;
        let Some((near, whole)) = self.shared(index) else {
            return Some(Truth {
                capacity,
                sustained,
                window: own,
                mean: long,
                over: TruthOver::Window,
                achievable_window: None,
                achievable_mean: None,
            });
        };
        let no_links = self.meter.meters.is_empty();
        let over = if whole.spare_of_run { TruthOver::Run } else { TruthOver::Window };
        // What was found by trying knows of the links.
        let both = |air: Rate, links: Option<Rate>| {
            if no_links || over == TruthOver::Run {
                Some(air)
            } else {
                links.map(|links| smaller(air, links))
            }
        };
        let has_window = !streams.is_empty();
        Some(Truth {
            capacity,
            sustained,
            window: both(near.spare, own).filter(|_| has_window && over == TruthOver::Window),
            mean: both(whole.spare, long),
            over,
            achievable_window: Some(near.achievable).filter(|_| has_window),
            achievable_mean: Some(whole.achievable),
        })
    }
}

/// The mean over all streams; `None` where there is none, or one has no rate.
fn mean(streams: &[u32], of: impl Fn(u32) -> Option<Rate>) -> Option<Rate> {
    let rates: Option<Vec<u64>> = streams.iter().map(|&s| of(s).map(Rate::bits_per_second)).collect();
    let rates = rates.filter(|rates| !rates.is_empty())?;
    let sum: u128 = rates.iter().map(|&rate| u128::from(rate)).sum();
    Some(Rate::ip((sum / rates.len() as u128) as u64))
}

/// The outcomes among a session's decisions, without any truth.
pub(super) fn found(scenario: &Scenario, session: &SessionSpec, decisions: &[&Decision]) -> Vec<Outcome> {
    let name = |host: usize| scenario.hosts.get(host).map_or_else(String::new, |h| h.name.clone());
    let found = |decision: &&Decision| {
        let (method, direction, result, cost) = match *decision {
            Decision::Estimated { method, direction, estimate, cost } => {
                (method, direction, Ok(estimate), cost)
            }
            Decision::Refused { method, direction, refusal, cost } => (method, direction, Err(refusal), cost),
            _ => return None,
        };
        Some(Outcome {
            from: name(session.from),
            to: name(session.to),
            method: method.clone(),
            direction: *direction,
            start: session.start(),
            estimate: result.ok().cloned(),
            refusal: result.err().cloned(),
            cost: *cost,
            truth: None,
        })
    };
    decisions.iter().filter_map(found).collect()
}

/// The outcomes among a session's decisions, with the truth to each. Of a run that nobody stopped: what was interrupted
/// was so by its end.
///
/// # Errors
/// Where a twin cannot be run.
pub(super) fn outcomes(
    ended: &Ended<'_>,
    session: &SessionSpec,
    meters: &PathTruth,
    decisions: &[&Decision],
) -> Result<Vec<Outcome>, RunError> {
    let mut all = found(ended.scenario, session, decisions);
    let refusals = all.iter_mut().filter_map(|outcome| outcome.refusal.as_mut());
    refusals
        .filter(|refusal| **refusal == Refusal::Interrupted)
        .for_each(|refusal| *refusal = Refusal::RunOver);
    let asked: Vec<Asked<'_>> =
        all.iter().map(|found| Asked::about(found.direction, found.estimate.as_ref())).collect();
    let truths = meters.truths(ended, session, &asked)?;
    for (outcome, truth) in all.iter_mut().zip(truths) {
        outcome.truth = truth;
    }
    Ok(all)
}
