//! [`Truth`]: the true rates of a path beside an estimate, read from the queues of its links and found by twins of its WLANs.

use std::collections::{BTreeMap, BTreeSet};

use lastmile::estimate::{Estimate, NextMissing, Quantity, TruthKind, TruthOver, Value};
use lastmile::node::Flow;
use lastmile::report::Direction;
use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};

use super::{PROBE_SIZE, read_probe};
use crate::monitor::PathMeter;
use crate::monitor::sent::Sent;
use crate::monitor::twin::{SharedTruth, TwinPath, Wanted, shared_truths, window};
use crate::network::engine::Engine;
use crate::network::meter::{Packets, TruthError};
use crate::roles::{Ended, Truths};
use crate::scenario::roles::measure::{SessionSpec, sessions};
use crate::scenario::{RunError, Scenario, Simulation};

/// The length of the window behind the last probe packet.
const NEXT: Span = Span::from_secs(10);

/// True rates of a path, at the IP layer and for packets of the estimate's size, or of [`PROBE_SIZE`] where it names none.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Truth {
    /// Capacity, without other traffic. Of links: the narrowest one's in the windows of the estimate's streams, for bursts that
    /// meet full token buckets and have the size that the estimate names (else two packets). With WLANs: the rate of a saturating
    /// flow alone, without token buckets ([`twin`](crate::monitor::twin)), and at most the links' rate for such bursts.
    pub capacity: Rate,
    /// Rate of a saturating flow alone if each packet drew the shortest backoff, at most the links' rate for such bursts. Only
    /// with WLANs that do not aggregate.
    pub shortest: Option<Rate>,
    /// Capacity for lasting load: at most the token rate of any shaper.
    pub sustained: Rate,
    /// The spare rate over the estimate's own streams, the mean of their windows; with WLANs over the
    /// [window](crate::monitor::twin::window) around them. For an available bandwidth with a burst, of such bursts; else of
    /// lasting load. `None` where stations aggregate.
    pub window: Option<Rate>,
    /// The spare rate from the warm-up's end to the run's.
    pub mean: Option<Rate>,
    /// The spare rate over the 10 s after the last probe packet of the estimate, if no measurement sent anything then.
    pub next: Option<Rate>,
    /// Reason why `next` is `None`.
    pub next_missing: Option<NextMissing>,
    /// Truth that an estimate is held against: the window's, or the mean where no window's is known.
    pub over: TruthOver,
    /// Rate of one saturating flow beside the others, over the window around the estimate's streams; only with WLANs.
    pub achievable_window: Option<Rate>,
    /// The same from the warm-up's end to that of the scenario.
    pub achievable_mean: Option<Rate>,
}

impl Truth {
    /// The rate that an estimate is to be held against: the capacity, or over its own window the spare or the
    /// achievable rate, as it says itself. On a path without WLANs nothing is known of the latter.
    pub fn of(&self, estimate: &Estimate) -> Option<Rate> {
        match (estimate.quantity, estimate.truth_kind) {
            (Quantity::Capacity, _) => Some(self.capacity),
            (Quantity::ShortestExchange, _) => self.shortest,
            (Quantity::SustainedRate, _) => Some(self.sustained),
            (_, TruthKind::Queue) if self.over == TruthOver::Run => self.mean,
            (_, TruthKind::Queue) => self.window,
            (_, TruthKind::Saturation) => self.achievable_window,
        }
    }

    /// The rate that the estimate's interval of the next 10 s is to be held against; where a truth is known of the whole run
    /// alone, that.
    pub fn next_of(&self, estimate: &Estimate) -> Option<Rate> {
        match (estimate.quantity, estimate.truth_kind) {
            (Quantity::AvailableBandwidth, TruthKind::Queue) => match self.next_missing {
                Some(NextMissing::Aggregation) => self.mean,
                _ => self.next,
            },
            _ => None,
        }
    }
}

/// Meters of both directions of a session's path, there and back.
pub(super) struct PathTruth([Option<PathMeter>; 2]);

/// The packets and windows of a truth that is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    direction: Direction,
    /// The streams that the estimate was made from; none if there is no estimate.
    streams: &'a [u32],
    ip_size: Bytes,
    /// The packets of the capacity, and those of the spare rate.
    capacity: Packets,
    rest: Packets,
    /// True if the achievable rate is asked for.
    achievable: bool,
}

impl<'a> Asked<'a> {
    /// The truth beside an estimate, or beside none; `None` where no such truth is wanted.
    pub(super) fn about(
        direction: Direction,
        estimate: Option<&'a Estimate>,
        wanted: Truths,
    ) -> Option<Asked<'a>> {
        let is_judged = estimate.is_some_and(|e| matches!(e.value, Value::Is(_) | Value::MoreThan(_)));
        let saturates = estimate.is_some_and(|e| e.truth_kind == TruthKind::Saturation);
        let achievable = match wanted {
            Truths::All => true,
            Truths::Judged if is_judged => saturates,
            Truths::Judged | Truths::None => return None,
        };
        let burst = |quantity| estimate.filter(|e| e.quantity == quantity).and_then(|e| e.burst);
        let pair = burst(Quantity::Capacity).or_else(|| burst(Quantity::ShortestExchange));
        // Small packets meet headers, backoffs and a bucket of their own.
        let ip_size = estimate.and_then(|e| e.packet_size).unwrap_or(PROBE_SIZE);
        Some(Asked {
            direction,
            achievable,
            streams: estimate.map_or(&[], |e| &e.streams),
            ip_size,
            capacity: Packets { ip_size, burst: Some(pair.unwrap_or(ip_size * 2)) },
            rest: Packets { ip_size, burst: burst(Quantity::AvailableBandwidth) },
        })
    }
}

/// One direction of a session's path, with its twins' results.
struct Side<'a> {
    meter: &'a PathMeter,
    /// For each estimate the 10 s after it.
    next: Vec<Result<(Time, Time), NextMissing>>,
    /// The twins' rates, by estimate.
    shared: BTreeMap<usize, Shared>,
    /// True if twins could send all that the measured run's other endpoints sent.
    has_all: bool,
}

/// The twins' rates for an estimate, for the 10 s after it (where these are not known, for the whole run), and for the run.
#[derive(Clone, Copy)]
struct Shared {
    own: SharedTruth,
    next: SharedTruth,
    whole: SharedTruth,
}

impl PathTruth {
    /// Attaches meters to all that limits the packets between a session's hosts, both ways.
    pub(super) fn attach(
        simulation: &mut Simulation,
        scenario: &Scenario,
        session: &SessionSpec,
    ) -> PathTruth {
        let flows = simulation.conversation(&session.conversation());
        let all = sessions(scenario);
        let all = all.iter().filter_map(|session| simulation.conversation(&session.conversation()));
        let measuring: Vec<Flow> = all.flat_map(|(there, back)| [there, back]).collect();
        let ways = [(session.from, session.to), (session.to, session.from)];
        let mut meter = |way: usize| {
            let flow = flows.map(|flows| [flows.0, flows.1][way])?;
            simulation.meter(scenario, ways[way], flow, &measuring, read_probe)
        };
        PathTruth([meter(0), meter(1)])
    }

    /// True if a WLAN is on the path: its truth comes from twins.
    pub(super) fn needs_twins(&self) -> bool {
        self.0.iter().flatten().any(|meter| !meter.air.is_empty())
    }

    /// The truth for estimates beside what other endpoints sent; `None` where
    /// nothing limits the path. Of a round trip it is the way there's, but for a smaller capacity back. Twins
    /// run only where a WLAN is on the path.
    pub(super) fn truths(
        &self,
        ended: &Ended<'_>,
        session: &SessionSpec,
        sent: Option<&Sent>,
        asked: &[Asked<'_>],
    ) -> Result<Vec<Option<Truth>>, RunError> {
        let (engine, scenario, seed) = (ended.engine(), ended.scenario, ended.simulation.seed());
        let again = sent.map(|sent| sent.again(scenario));
        let has_all = again.as_ref().is_none_or(Option::is_some);
        let again = again.flatten();
        let twin = again.as_ref().unwrap_or(scenario);
        let whole = (Time::ZERO + scenario.warm_up, Time::ZERO + scenario.duration);
        // Each way, but for estimates of the other one alone.
        let ways = [(0, Direction::Reverse), (1, Direction::Forward)];
        let side = |(way, but): (usize, Direction)| -> Option<Side<'_>> {
            let wanted = |ask: &Asked<'_>| ask.direction != but;
            let meter = self.0[way].as_ref().filter(|_| asked.iter().any(wanted))?;
            let next = asked.iter().map(|ask| next(meter, engine, scenario, ask.streams)).collect();
            let shared = BTreeMap::new();
            Some(Side { meter, next, shared, has_all })
        };
        let mut sides = ways.map(side);
        // Twins send packets of one size.
        let mut twins: Vec<(usize, Vec<usize>, Wanted)> = Vec::new();
        for ((way, but), side) in ways.into_iter().zip(&sides) {
            let Some(side) = side.as_ref().filter(|side| !side.meter.air.is_empty()) else { continue };
            let (from, to) = [(session.from, session.to), (session.to, session.from)][way];
            let of_way: Vec<usize> = (0..asked.len()).filter(|&i| asked[i].direction != but).collect();
            let sizes: BTreeSet<Bytes> = of_way.iter().map(|&i| asked[i].ip_size).collect();
            for ip_size in sizes {
                let of_size: Vec<usize> =
                    of_way.iter().copied().filter(|&i| asked[i].ip_size == ip_size).collect();
                let windows = of_size.iter().flat_map(|&i| {
                    let own = own(side.meter, engine, scenario, asked[i].streams).unwrap_or(whole);
                    [own, side.next[i].unwrap_or(whole), whole]
                });
                let windows = windows.collect();
                let achievable = of_size.iter().any(|&i| asked[i].achievable);
                let path = TwinPath { from, to, ip_size };
                twins.push((way, of_size, Wanted { path, windows, achievable }));
            }
        }
        let wanted: Vec<Wanted> = twins.iter().map(|(.., wanted)| wanted.clone()).collect();
        for ((way, of_size, _), found) in twins.into_iter().zip(shared_truths(twin, seed, &wanted)?) {
            let each = found.chunks_exact(3).map(|of| Shared { own: of[0], next: of[1], whole: of[2] });
            sides[way]
                .iter_mut()
                .for_each(|side| side.shared.extend(of_size.iter().copied().zip(each.clone())));
        }
        let [forward, reverse] = sides;
        let truth = |(index, ask): (usize, &Asked<'_>)| {
            let first = if ask.direction == Direction::Reverse { &reverse } else { &forward };
            let mut truth = first.as_ref()?.truth(engine, scenario, index, ask)?;
            if let Some(back) = reverse.as_ref().filter(|_| ask.direction == Direction::RoundTrip) {
                let less = |rate: &mut Rate, of| {
                    let back = back.capacity(engine, scenario, index, ask.streams, of);
                    *rate = back.map_or(*rate, |back| smaller(*rate, back));
                };
                less(&mut truth.capacity, ask.capacity);
                less(&mut truth.sustained, ask.ip_size.into());
            }
            Some(truth)
        };
        Ok(asked.iter().enumerate().map(truth).collect())
    }
}

/// The window of an estimate at a path's first WLAN.
fn own(meter: &PathMeter, engine: &Engine, scenario: &Scenario, streams: &[u32]) -> Option<(Time, Time)> {
    let &(node, number) = meter.air.first()?;
    let queue = engine.meter(node, number)?;
    let seen: Vec<_> = streams.iter().filter_map(|&stream| queue.stream(stream).ok()).collect();
    let (first, last) = (seen.iter().map(|s| s.first).min()?, seen.iter().map(|s| s.last).max()?);
    Some(window(scenario, first, last))
}

/// The 10 s after the last probe packet of an estimate.
fn next(
    meter: &PathMeter,
    engine: &Engine,
    scenario: &Scenario,
    streams: &[u32],
) -> Result<(Time, Time), NextMissing> {
    let from = meter.last(engine, streams).ok_or(NextMissing::NoStreams)?;
    let to = from + NEXT;
    if to > Time::ZERO + scenario.duration { Err(NextMissing::RunEnds) } else { Ok((from, to)) }
}

fn smaller(a: Rate, b: Rate) -> Rate {
    if b < a { b } else { a }
}

impl Side<'_> {
    fn shared(&self, index: usize) -> Option<Shared> {
        self.shared.get(&index).copied()
    }

    /// The spare rate over the 10 s after an estimate.
    fn next(&self, engine: &Engine, index: usize, of: Packets) -> Result<Rate, NextMissing> {
        let (from, to) = self.next.get(index).copied().unwrap_or(Err(NextMissing::NoStreams))?;
        let links = self.meter.smallest(engine, |m| m.spare_unmeasured(from, to, of));
        let Some(shared) = self.shared(index) else { return links.map_err(|_| NextMissing::Unlogged) };
        if !self.has_all {
            return Err(NextMissing::Unlogged);
        }
        let air = Some(shared.next).filter(|air| !air.spare_of_run).ok_or(NextMissing::Aggregation)?;
        match links {
            _ if self.meter.meters.is_empty() => Ok(air.spare),
            Ok(links) => Ok(smaller(air.spare, links)),
            Err(_) => Err(NextMissing::Unlogged),
        }
    }

    fn capacity(
        &self,
        engine: &Engine,
        scenario: &Scenario,
        index: usize,
        streams: &[u32],
        of: Packets,
    ) -> Option<Rate> {
        let shared = self.shared(index).map(|shared| shared.own);
        if let (Some(own), None) = (shared, of.burst) {
            // The twin's packets cross the links as well.
            return Some(own.capacity);
        }
        let links = self.capacity_of_links(engine, scenario, streams, of);
        match shared {
            Some(own) => Some(links.map_or(own.unshaped, |links| smaller(own.unshaped, links))),
            None => links,
        }
    }

    fn capacity_of_links(
        &self,
        engine: &Engine,
        scenario: &Scenario,
        streams: &[u32],
        of: Packets,
    ) -> Option<Rate> {
        let own = mean(streams, |stream| self.meter.smallest(engine, |m| m.capacity(stream, of)).ok());
        own.or_else(|| {
            let from = Time::ZERO + scenario.warm_up;
            self.meter.smallest(engine, |m| m.capacity_between(from, engine.now(), of)).ok()
        })
    }

    fn truth(&self, engine: &Engine, scenario: &Scenario, index: usize, ask: &Asked<'_>) -> Option<Truth> {
        let (from, to, streams) = (Time::ZERO + scenario.warm_up, engine.now(), ask.streams);
        let spare = |stream| match self.meter.smallest(engine, |m| m.spare(stream, ask.rest)) {
            // Packets that came in one moment have no window; others may.
            Err(TruthError::EmptyWindow(..)) => None,
            spare => Some(spare.ok()),
        };
        let windows: Vec<Option<Rate>> = streams.iter().filter_map(|&stream| spare(stream)).collect();
        let own = mean(&windows, |rate| rate);
        let long = self.meter.smallest(engine, |m| m.spare_between(from, to, ask.rest)).ok();
        let capacity = self.capacity(engine, scenario, index, streams, ask.capacity)?;
        let sustained = self.capacity(engine, scenario, index, streams, ask.ip_size.into())?;
        let (next, next_missing) = match self.next(engine, index, ask.rest) {
            Ok(rate) => (Some(rate), None),
            Err(why) => (None, Some(why)),
        };
        let Some(Shared { own: near, whole, .. }) = self.shared(index) else {
            return Some(Truth {
                capacity,
                shortest: None,
                sustained,
                window: own,
                mean: long,
                next,
                next_missing,
                over: over(streams, own),
                achievable_window: None,
                achievable_mean: None,
            });
        };
        let no_links = self.meter.meters.is_empty();
        let both = |air: Rate, links: Option<Rate>| match links {
            _ if no_links => Some(air),
            links => links.map(|links| smaller(air, links)),
        };
        let has_window = self.has_all && !streams.is_empty();
        let window = both(near.spare, own).filter(|_| has_window && !whole.spare_of_run);
        let mean = match whole.spare_of_run {
            // A spare rate found by trying includes the links, with token buckets that lasting load has emptied: no burst's.
            true => Some(whole.spare).filter(|_| ask.rest.burst.is_none() || !whole.is_shaped()),
            false => both(whole.spare, long),
        };
        let mean = mean.filter(|_| self.has_all);
        let of_links = || self.capacity_of_links(engine, scenario, streams, ask.capacity);
        Some(Truth {
            capacity,
            shortest: near.shortest.map(|air| of_links().map_or(air, |links| smaller(air, links))),
            sustained,
            window,
            mean,
            next,
            next_missing,
            over: over(streams, window),
            achievable_window: near.achievable.filter(|_| has_window),
            achievable_mean: whole.achievable.filter(|_| self.has_all),
        })
    }
}

/// The truth of an estimate of these streams.
fn over(streams: &[u32], window: Option<Rate>) -> TruthOver {
    if window.is_none() && !streams.is_empty() { TruthOver::Run } else { TruthOver::Window }
}

/// The mean over all of these; `None` where there is none, or one has no rate.
fn mean<T: Copy>(all: &[T], of: impl Fn(T) -> Option<Rate>) -> Option<Rate> {
    let rates: Option<Vec<u64>> = all.iter().map(|&one| of(one).map(Rate::bits_per_second)).collect();
    let rates = rates.filter(|rates| !rates.is_empty())?;
    let sum: u128 = rates.iter().map(|&rate| u128::from(rate)).sum();
    Some(Rate::ip((sum / rates.len() as u128) as u64))
}
