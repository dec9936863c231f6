//! Twin simulations: the truth of a path that crosses a WLAN, from runs of the same scenario and seed without its endpoints: as it
//! is, with a saturating flow beside, and with that alone. Random numbers are drawn by component, so that the others' are those of
//! the measured run. **Achievable** is the rate of the saturating flow (WBest, III.A), CBR at the rate that the path would
//! carry without others; **capacity** is its rate alone; **spare** is the share of the air that the others leave, or the rate
//! found by trying where stations aggregate. `docs/json.md` and `docs/wlan.md` say what each is true of.

use std::collections::BTreeSet;

use lastmile::node::PortId;
use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};

use super::flows::counters;
use super::reach::{Reach, silent};
use super::spare;
use crate::network::wlan::Medium;
use crate::scenario::{RunError, Scenario, TrafficSpec, build};

/// The shortest time over which a rate of a shared medium is stated: some 2400 exchanges of 1500 B at 54 Mbit/s,
/// 500 at 11, whose mean errs by less than half a percent.
pub const MIN_WINDOW: Span = Span::from_secs(1);

/// Names of the added flow, which decide its phase; a file is not likely to have them. A rate has to fit by each of
/// these: the packets that collide depend on the phase, and among many tries at one a lucky one would win.
const NAMES: [&str; 3] = ["(saturation)", "(saturation 2)", "(saturation 3)"];

/// The path of the endpoints that the twins stand in for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TwinPath {
    /// The sending host.
    pub from: usize,
    /// The receiving host.
    pub to: usize,
    /// The size of the IP packets that rates are stated for.
    pub ip_size: Bytes,
}

/// Truths that are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The path.
    pub path: TwinPath,
    /// The windows.
    pub windows: Vec<(Time, Time)>,
    /// True if the achievable rate is asked for too, which takes a twin more.
    pub achievable: bool,
}

/// Truths of a path that crosses a WLAN, over one window. Rates are of IP packets of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedTruth {
    /// Rate of a saturating flow where no other traffic starts.
    pub capacity: Rate,
    /// The same if no token bucket were on the path: the rate of bursts that buckets hold.
    pub unshaped: Rate,
    /// The rate that it would get alone without token buckets if each packet drew the shortest backoff and needed no retry; `None` where
    /// stations aggregate.
    pub shortest: Option<Rate>,
    /// Its rate beside the others, where it was asked for.
    pub achievable: Option<Rate>,
    /// Spare rate of the path's WLANs; its links may have less.
    pub spare: Rate,
    /// True if `spare` is of the whole run behind its warm-up, 20 s at least, and not of the window: no more is known
    /// where stations aggregate.
    pub spare_of_run: bool,
}

impl SharedTruth {
    /// True if token buckets limit the path's rate.
    pub fn is_shaped(&self) -> bool {
        self.capacity < self.unshaped.scaled(0.99)
    }
}

/// The window of an estimate whose streams came between these times: at least [`MIN_WINDOW`] around them, within
/// the run and, where the streams are, behind its warm-up.
///
/// ```
/// use lastmile::time::{Span, Time};
/// use lastmile_sim::{scenario::builtin, monitor::twin::window};
/// let ms = |n| Time::ZERO + Span::from_millis(n);
/// let ap = builtin("ap").unwrap(); // 10 s, 5 s of them warm-up
/// assert_eq!(window(&ap, ms(7_000), ms(7_012)), (ms(6_506), ms(7_506)));
/// assert_eq!(window(&ap, ms(5_100), ms(5_112)), (ms(5_000), ms(6_000)));
/// assert_eq!(window(&ap, ms(9_990), ms(10_002)), (ms(9_002), ms(10_002)));
/// assert_eq!(window(&ap, ms(6_000), ms(8_000)), (ms(6_000), ms(8_000)));
/// ```
pub fn window(scenario: &Scenario, first: Time, last: Time) -> (Time, Time) {
    let (first, last) = (first.as_nanos(), last.as_nanos().max(first.as_nanos()));
    let (warm_up, duration) = (nanos(scenario.warm_up), nanos(scenario.duration));
    let (low, high) = (warm_up.min(first), duration.max(last));
    let length = nanos(MIN_WINDOW).max(last - first).min(high - low);
    let middle = first.saturating_sub((length - (last - first).min(length)) / 2);
    let from = middle.clamp(low, high - length);
    (Time::from_nanos(from), Time::from_nanos(from + length))
}

fn nanos(span: Span) -> u64 {
    span.as_nanos().max(0) as u64
}

/// The truths over each window of each of these paths, from twins of the scenario. The paths share the twin without any added flow.
///
/// # Errors
/// If the scenario cannot be built, or its engine stops.
pub fn shared_truths(
    scenario: &Scenario,
    seed: u64,
    wanted: &[Wanted],
) -> Result<Vec<Vec<SharedTruth>>, RunError> {
    let aggregates =
        |path: TwinPath| on_path(scenario, path).any(|wlan| scenario.wlans[wlan].config.ampdu.is_some());
    let run_window = wanted.iter().any(|wanted| aggregates(wanted.path)).then(|| spare::window(scenario));
    let windows = wanted.iter().flat_map(|wanted| &wanted.windows).chain(&run_window);
    let mut times: Vec<Time> = windows.flat_map(|&(from, to)| [from, to]).collect();
    times.sort_unstable();
    times.dedup();
    let Some(&end) = times.last() else { return Ok(vec![Vec::new(); wanted.len()]) };
    let twin = scenario.without_endpoints();
    let mut reach = Reach::default();
    for &Wanted { path, .. } in wanted {
        reach.add_air(&twin, path.from, path.to);
        if aggregates(path) {
            reach.add_path(&twin, path.from, path.to);
        }
    }
    let others = run(&reach.only(&twin, end), seed, &times)?;
    let beside = Beside { twin, seed, times, end, others };
    wanted
        .iter()
        .map(|wanted| beside.truths(wanted, run_window.filter(|_| aggregates(wanted.path))))
        .collect()
}

/// The twin of the others alone, beside which the twins with an added flow are held.
struct Beside {
    twin: Scenario,
    seed: u64,
    /// The ends of all windows, in order.
    times: Vec<Time>,
    end: Time,
    others: Vec<Seen>,
}

impl Beside {
    fn truths(
        &self,
        wanted: &Wanted,
        run_window: Option<(Time, Time)>,
    ) -> Result<Vec<SharedTruth>, RunError> {
        let Beside { twin, seed, times, end, others } = self;
        let (path, count, seed, end) = (wanted.path, twin.traffic.len(), *seed, *end);
        let unlimited = without_buckets(twin, path);
        let shortest = alone(unlimited.as_ref().unwrap_or(twin), seed, path, Medium::shortest)?;
        let shortest = shortest.filter(|_| run_window.is_none());
        let mut reach = Reach::default();
        reach.add_path(twin, path.from, path.to);
        let saturated = |twin: &Scenario| -> Result<Scenario, RunError> {
            let most = alone(twin, seed, path, Medium::capacity)?.unwrap_or(Rate::ip(1));
            Ok(with_flow(twin, NAMES[0], path, most, end))
        };
        let full = saturated(twin)?;
        let undisturbed = |full: &Scenario| run(&silent(full, end, |flow| flow == count), seed, times);
        let single = undisturbed(&full)?;
        let beside = match (wanted.achievable, count) {
            (false, _) => None,
            (true, 0) => Some(single.clone()),
            (true, _) => Some(run(&reach.only(&full, end), seed, times)?),
        };
        let unshaped = match unlimited {
            Some(twin) => undisturbed(&saturated(&twin)?)?,
            None => single.clone(),
        };
        let at = |time: Time| times.partition_point(|&t| t < time);
        let wlans: BTreeSet<usize> = on_path(twin, path).collect();
        let truth = |(from, to): (Time, Time)| {
            let (a, b) = (at(from), at(to));
            let mean = |run: &[Seen]| run[b].rate_since(&run[a], count, path.ip_size);
            let needed =
                |run: &[Seen], wlan: usize| (run[b].needed[wlan] - run[a].needed[wlan]).as_secs_f64();
            let whole = (to - from).as_secs_f64();
            let share = |&wlan: &usize| {
                // A flow of two hops by one medium needs more than there is, since its backoffs overlap.
                let own = needed(&single, wlan).min(whole);
                if own > 0.0 { ((whole - needed(others, wlan)) / own).max(0.0) } else { 0.0 }
            };
            let share = wlans.iter().map(share).fold(f64::INFINITY, f64::min);
            let (capacity, unshaped) = (mean(&single), mean(&unshaped));
            let achievable = beside.as_deref().map(mean);
            let spare = capacity.scaled(share);
            SharedTruth { capacity, unshaped, shortest, achievable, spare, spare_of_run: false }
        };
        let mut truths: Vec<SharedTruth> = wanted.windows.iter().map(|&window| truth(window)).collect();
        if let Some((from, to)) = run_window {
            let guess = truth((from, to));
            let before = (&others[at(from)], &others[at(to)]);
            let fits = |rate: Rate, name: &str| -> Result<bool, RunError> {
                let tried = reach.only(&with_flow(twin, name, path, rate, to), end);
                let seen = run(&tried, seed, &[from, to])?;
                let got = |seen: &[u64], earlier: &[u64], flow: usize| (seen[flow] - earlier[flow]) as f64;
                let kept = |flow| {
                    let was = got(&before.1.bytes, &before.0.bytes, flow);
                    spare::keeps(was, got(&seen[1].bytes, &seen[0].bytes, flow))
                };
                let sent = rate.bits_per_second() as f64 / 8.0 * (to - from).as_secs_f64();
                Ok((0..count).all(kept) && spare::keeps(sent, got(&seen[1].bytes, &seen[0].bytes, count)))
            };
            let always = |rate| {
                let each = |fit, name: &&str| Ok::<_, RunError>(fit && fits(rate, name)?);
                NAMES.iter().try_fold(true, each)
            };
            let spare = if count == 0 {
                guess.capacity
            } else {
                spare::highest(guess.capacity, guess.spare, always)?
            };
            truths.iter_mut().for_each(|truth| (truth.spare, truth.spare_of_run) = (spare, true));
        }
        Ok(truths)
    }
}

/// The scenario with another flow: CBR over UDP, from the start until `stop`.
fn with_flow(scenario: &Scenario, name: &str, path: TwinPath, rate: Rate, stop: Time) -> Scenario {
    let mut scenario = scenario.clone();
    let (ends, what) = ((path.from, path.to), (rate, path.ip_size));
    scenario.traffic.push(TrafficSpec::cbr(name, ends, what, (Time::ZERO, stop)));
    scenario
}

/// The scenario without the token buckets on a path, if there are any.
fn without_buckets(scenario: &Scenario, path: TwinPath) -> Option<Scenario> {
    let hops = scenario.path(path.from, path.to).unwrap_or_default();
    let mut without = scenario.clone();
    let mut taken = false;
    for hop in hops {
        let Some(link) = without.links.get_mut(hop) else { continue };
        taken |= link.config.shaper.take().is_some() | link.config.policer.take().is_some();
    }
    taken.then_some(without)
}

/// The WLANs that a path crosses, some perhaps more than once.
fn on_path(scenario: &Scenario, path: TwinPath) -> impl Iterator<Item = usize> {
    let hops = scenario.path(path.from, path.to).unwrap_or_default();
    hops.into_iter().filter_map(|hop| scenario.air(hop)).map(|air| air.0)
}

/// Counts of a twin at some time.
#[derive(Clone, Debug)]
struct Seen {
    at: Time,
    /// IP bytes of each flow that had arrived for the first time.
    bytes: Vec<u64>,
    /// When the last packet of each had.
    last: Vec<Time>,
    /// The air that exchanges had needed, for each WLAN.
    needed: Vec<Span>,
}

impl Seen {
    /// The rate of a flow of packets of that size since then. A packet is counted as it comes in, by the mean time between two, and not
    /// when it is there: at 0.65 Mbit/s one is 2 % of a second.
    fn rate_since(&self, then: &Seen, flow: usize, size: Bytes) -> Rate {
        let bytes = (self.bytes[flow] - then.bytes[flow]) as f64;
        let each = (self.last[flow] - then.last[flow]).as_secs_f64() * size.0 as f64 / bytes;
        let part = |seen: &Seen| match (seen.at - seen.last[flow]).as_secs_f64() / each {
            part if part.is_finite() => part.min(1.0),
            _ => 0.0,
        };
        let whole = bytes + (part(self) - part(then)) * size.0 as f64;
        Rate::ip((whole * 8.0 / (self.at - then.at).as_secs_f64()).max(0.0) as u64)
    }
}

fn run(twin: &Scenario, seed: u64, times: &[Time]) -> Result<Vec<Seen>, RunError> {
    let mut simulation = build(twin, seed, Vec::new())?;
    let mut seen = Vec::new();
    for &time in times {
        simulation.engine.run_until(time)?;
        let media = simulation.wlans.iter().map(|&wlan| simulation.engine.wlan(wlan));
        let counted: Vec<_> = (0..twin.traffic.len()).map(|flow| counters(&simulation, flow)).collect();
        seen.push(Seen {
            at: time,
            bytes: counted.iter().map(|flow| flow.bytes.0).collect(),
            last: counted.iter().map(|flow| flow.last).collect(),
            needed: media
                .map(|medium| medium.map_or(Span::ZERO, |medium| medium.airtime().needed()))
                .collect(),
        });
    }
    Ok(seen)
}

/// Rate of the path at its highest rates if nobody else sent and nothing were lost.
fn alone(
    scenario: &Scenario,
    seed: u64,
    path: TwinPath,
    by_air: fn(&Medium, PortId, Bytes) -> Option<Rate>,
) -> Result<Option<Rate>, RunError> {
    let simulation = build(scenario, seed, Vec::new())?;
    let size = path.ip_size.0 as f64;
    let hop = |index: usize| -> Option<Rate> {
        let Some(link) = scenario.links.get(index) else {
            let (wlan, port) = scenario.air(index)?;
            return by_air(simulation.engine.wlan(*simulation.wlans.get(wlan)?)?, port, path.ip_size);
        };
        let changes = link.config.schedule.iter().filter_map(|change| change.rate);
        let trace = link.config.trace.as_ref().map(|trace| Rate::ip(trace.largest() as u64));
        let fastest =
            link.config.rate.into_iter().chain(changes).chain(trace).map(Rate::bits_per_second).max();
        let buckets = link.config.shaper.iter().chain(&link.config.policer);
        let tokens = buckets.map(|bucket| bucket.rate.bits_per_second());
        let rate = fastest.into_iter().chain(tokens).min()?;
        Some(Rate::ip(rate).scaled(size / (size + link.config.overhead.0 as f64)))
    };
    let hops = scenario.path(path.from, path.to).unwrap_or_default();
    let slowest = hops.into_iter().filter_map(hop).map(Rate::bits_per_second).min();
    Ok(slowest.map(|slowest| Rate::ip(slowest.max(1))))
}
