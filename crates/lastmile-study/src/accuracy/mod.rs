//! Many runs against a known truth, as a table of errors.
//!
//! The path is one link with a queue of 60 kB; cross traffic takes 40 % of it, in packets of 1500 B, at a random phase in each run.
//! Errors are fractions of the truth at the IP layer: against the long-run spare rate ("mean") and against the spare rate of the
//! probe's own window ("window"), and that of the 10 s after it ("next"). A floor is the error of an observer who sees all other packets
//! in the probe's own window: no tool of that window can do better. On the path of a scenario, truth is read from its queues or, by WLANs, found by twin simulations.

use std::collections::BTreeMap;

use lastmile::endpoint::measure::relative_error;
use lastmile::estimate::{Conditions, Estimate, METHODS, Quantity, TruthOver, Value, build};
use lastmile::options::{Choice, Given, Scalar};
use lastmile::report::Direction;
use lastmile::time::Span;
use lastmile::units::Rate;
use lastmile_sim::roles::Makers;
use lastmile_sim::roles::measure::Outcome;
use lastmile_sim::runs::{Hooks, simulate};
use lastmile_sim::scenario::Scenario;
use lastmile_sim::scenario::roles::measure::sessions;
use rayon::prelude::*;
use serde::Serialize;
use serde_json::json;

use crate::World;
use crate::audience::Audience;
use crate::error::{Error, Result};
use crate::scenarios;

mod text;

pub use text::text;

/// Paths and methods to measure.
#[derive(Clone, Debug)]
pub struct Request {
    /// Runs for each row.
    pub runs: usize,
    /// Where.
    pub worlds: Vec<World>,
    /// Names or files of scenarios to measure instead of the link; their measurements are made with each method.
    pub scenarios: Vec<String>,
    /// Rates of the link.
    pub rates: Vec<Rate>,
    /// Cross traffic on the link.
    pub cross: Vec<Cross>,
    /// The methods, with their options.
    pub methods: Vec<Choice>,
    /// True if the measuring programs of the lab have real-time priority.
    pub realtime: bool,
    /// Draws all random numbers.
    pub seed: u64,
}

impl Default for Request {
    /// WBest on a link of 10 Mbit/s, 30 runs each.
    fn default() -> Request {
        Request {
            runs: 30,
            worlds: vec![World::Sim],
            scenarios: Vec::new(),
            rates: vec![Rate::ip(10_000_000)],
            cross: vec![Cross::Idle, Cross::Cbr, Cross::Poisson],
            methods: vec![Choice::named("wbest")],
            realtime: false,
            seed: 1,
        }
    }
}

/// Cross traffic on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Cross {
    /// Nothing.
    Idle,
    /// Packets at equal distances.
    Cbr,
    /// Packets at exponentially distributed distances.
    Poisson,
}

/// Time that a simulation goes on behind its measurement.
const LINGER: Span = Span::from_secs(10);

/// The share of the link that cross traffic takes.
const CROSS_SHARE: f64 = 0.4;

/// One kind of path and method. Errors are fractions of the truth.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Where.
    pub world: World,
    /// Null where the path is the link of `rate_mbps` with `cross`, which otherwise are.
    pub scenario: Option<String>,
    /// Rate of the link, Mbit/s.
    pub rate_mbps: Option<f64>,
    /// Cross traffic on the link.
    pub cross: Option<Cross>,
    /// The method's registered name.
    pub method: String,
    /// All options of the method as they were in force; a [`document`] has them once.
    #[serde(skip)]
    pub options: Given,
    /// The method as it was asked for, with the options that were given.
    pub asked: String,
    /// Of the last measurement, which is the one that counts.
    pub direction: Option<Direction>,
    /// Its trains; one for methods that know none.
    pub trains: u64,
    /// Runs that printed a number.
    pub n: usize,
    /// Runs that printed none.
    pub refused: usize,
    /// Runs that printed only a lower bound; they count as refused.
    pub more_than: usize,
    /// Median duration, seconds.
    pub seconds_p50: Option<f64>,
    /// Bytes of probes at the IP layer; requests apart.
    pub bytes_p50: Option<f64>,
    /// Median bytes of requests at the IP layer.
    pub control_bytes_p50: Option<f64>,
    /// Median error against the long-run truth.
    pub error_mean_p50: Option<f64>,
    /// 90th percentile of the same.
    pub error_mean_p90: Option<f64>,
    /// Floor of that median: the same error of an observer of all other packets in the probe's own window. Null where stations
    /// aggregate, and of quantities that others do not change.
    pub floor_mean_p50: Option<f64>,
    /// Median error against the truth of the 10 s after the last probe packet.
    pub error_next_p50: Option<f64>,
    /// 90th percentile of the same.
    pub error_next_p90: Option<f64>,
    /// Floor of that median, by the same observer.
    pub floor_next_p50: Option<f64>,
    /// Median error against the truth of the probe's own window.
    pub error_window_p50: Option<f64>,
    /// 90th percentile of the same.
    pub error_window_p90: Option<f64>,
    /// The median of the signed window error: the estimator's bias.
    pub bias_window_p50: Option<f64>,
    /// The largest window error, as a fraction of the capacity.
    pub error_worst_of_capacity: Option<f64>,
    /// The share of stated intervals that hold the truth of the probe's own window (of the run, where stations aggregate).
    pub coverage: Option<f64>,
    /// The share of stated intervals of the next 10 s that hold their truth.
    pub coverage_next: Option<f64>,
    /// The median rate.
    pub rate_p50_bps: Option<f64>,
    /// The median truth of the probe's own window, or where that is not known of the run: the one that the method aims at.
    pub truth_p50_bps: Option<f64>,
    /// The median of what one saturating flow gets around that window; only by WLANs.
    pub saturation_p50_bps: Option<f64>,
    /// Median error against what one saturating flow gets.
    pub error_saturation_p50: Option<f64>,
    /// The furthest that lateness moved a number that was printed, as a share of the capacity; only in the lab.
    pub moved_most: Option<f64>,
    /// The same between two simulations of each run, in which the probes enter when they did and when they were due.
    pub moved_simulated_most: Option<f64>,
    /// Why runs printed no number.
    pub reasons: Vec<String>,
}

/// Result of one run.
enum Run {
    Number(Box<Number>),
    MoreThan,
    Refused(String),
}

/// A number held against the truths; an error is missing where its truth is zero.
struct Number {
    outcome: Outcome,
    value: Rate,
    own: Rate,
    window: Option<f64>,
    of_capacity: f64,
    /// Shift by lateness, as a share of the capacity, and the same in simulations.
    moved: Option<f64>,
    moved_simulated: Option<f64>,
    mean: Option<f64>,
    next: Option<f64>,
    /// Errors of the own window's truth against the other two.
    floors: [Option<f64>; 2],
    covered: Option<bool>,
    covered_next: Option<bool>,
}

/// A path to measure again and again.
struct Path {
    scenario: Scenario,
    /// The link and its cross traffic, where the path is that.
    link: Option<(Rate, Cross)>,
}

impl Path {
    fn name(&self) -> String {
        self.link.map_or_else(|| self.scenario.name.clone(), |(rate, cross)| format!("{rate} {cross:?}"))
    }

    /// The direction that is measured last: the one whose number counts.
    fn direction(&self) -> Option<Direction> {
        let sessions = sessions(&self.scenario);
        Some(sessions.last()?.measures.last()?.1)
    }

    /// The long-run rate that an estimate of that quantity is held against, where the path says it by itself.
    fn long_run(&self, quantity: Quantity) -> Option<Rate> {
        let (rate, cross) = self.link?;
        let idle = quantity != Quantity::AvailableBandwidth || cross == Cross::Idle;
        Some(if idle { rate } else { rate.scaled(1.0 - CROSS_SHARE) })
    }
}

/// The paths, measured by one method.
fn paths(request: &Request, method: &Choice) -> Result<Vec<Path>> {
    let mut paths = Vec::new();
    for name in &request.scenarios {
        let mut scenario = scenarios::load(name, &[])?;
        if scenario.roles.measure.is_empty() {
            return Err(Error::Input(format!("the scenario {name} measures nothing: it has no [[measure]]")));
        }
        for measure in &mut scenario.roles.measure {
            measure.method = method.clone();
        }
        paths.push(Path { scenario, link: None });
    }
    if paths.is_empty() {
        for &rate in &request.rates {
            for &cross in &request.cross {
                paths.push(Path { scenario: path(rate, cross, method)?, link: Some((rate, cross)) });
            }
        }
    }
    Ok(paths)
}

/// Measures every path with every method, on all cores of the pool of threads that it is called in; in the lab one run at a time.
///
/// # Errors
/// A method or a scenario cannot be, or a run.
pub fn accuracy(request: &Request, audience: &Audience) -> Result<Vec<Row>> {
    for method in &request.methods {
        // Before the first run, and not after all those of the methods ahead of it.
        build(method, &Conditions::default()).map_err(Error::input)?;
    }
    let mut all = Vec::new();
    for method in &request.methods {
        all.extend(paths(request, method)?.into_iter().map(|path| (path, method)));
    }
    // Path by path, and the methods on each.
    let paths = all.len() / request.methods.len().max(1);
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|index| index % paths.max(1));
    let mut rows = Vec::new();
    for &world in &request.worlds {
        for (path, method) in order.iter().filter_map(|&index| all.get(index)) {
            audience.progress.begin(&format!("{world:?} {} {method}", path.name()), request.runs as u64);
            rows.push(row(request, world, path, method, audience)?);
        }
    }
    audience.progress.end();
    Ok(rows)
}

fn row(request: &Request, world: World, path: &Path, method: &Choice, audience: &Audience) -> Result<Row> {
    let one = |k: usize| -> Result<Run> {
        if audience.is_gone() {
            return Err(Error::interrupted());
        }
        let seed = request.seed.wrapping_mul(1_000_003).wrapping_add(k as u64);
        let run = match world {
            World::Sim => {
                let make = Makers::registered(Span::ZERO, seed);
                let linger = path.link.map(|_| LINGER);
                let run = simulate(&path.scenario, seed, &make, Hooks { linger, ..Hooks::default() })?;
                judge(&run.found.measure.outcomes, path)
            }
            World::Lab => in_lab(request, path, seed, audience)?,
        };
        audience.progress.advance(1);
        Ok(run)
    };
    let runs: Vec<Run> = match world {
        World::Sim => (0..request.runs).into_par_iter().map(one).collect::<Result<_>>()?,
        // The lab is one wall clock: one run at a time.
        World::Lab => (0..request.runs).map(one).collect::<Result<_>>()?,
    };
    Ok(summarise(world, path, method, &runs))
}

#[cfg(feature = "lab")]
fn in_lab(request: &Request, path: &Path, seed: u64, audience: &Audience) -> Result<Run> {
    use lastmile_net::lab::run::{LabConfig, run as run_lab};
    let make = Makers::registered(crate::lab::KERNEL_NOISE, seed);
    let config = LabConfig { seed, realtime: request.realtime, ..LabConfig::default() };
    let run = run_lab(&path.scenario, &make, config, &audience.stop)?;
    let refused = run.lateness.refused.map(|why| Run::Refused(why.to_string()));
    let mut judged = refused.unwrap_or_else(|| judge(&run.found.measure.outcomes, path));
    if let Run::Number(number) = &mut judged {
        number.moved = run.moved.as_ref().map(|moved| moved.share);
        number.moved_simulated = run.moved.and_then(|moved| moved.simulated);
    }
    Ok(judged)
}

#[cfg(not(feature = "lab"))]
fn in_lab(_: &Request, _: &Path, _: u64, _: &Audience) -> Result<Run> {
    Err(Error::Machine("the lab was left out of this program".to_owned()))
}

/// The path as a scenario: the same for both worlds.
fn path(rate: Rate, cross: Cross, method: &Choice) -> Result<Scenario> {
    let traffic = match cross {
        Cross::Idle => String::new(),
        Cross::Cbr | Cross::Poisson => format!(
            "[[traffic]]\nname = \"cross\"\nkind = \"{}\"\nfrom = \"sender\"\nto = \"receiver\"\nrate = \"{} bit/s\"\nsize = \"1500 B\"\n",
            if cross == Cross::Cbr { "cbr" } else { "poisson" },
            rate.scaled(CROSS_SHARE).bits_per_second(),
        ),
    };
    let text = format!(
        "name = \"accuracy\"\nduration = \"120 s\"\nwarm_up = \"0.2 s\"\nseed = 1\n[host.sender]\n[host.receiver]\n\
         [[link]]\nfrom = \"sender\"\nto = \"receiver\"\nrate = \"{} bit/s\"\ndelay = \"2 ms\"\nqueue = \"60 kB\"\n{traffic}\
         [[measure]]\nfrom = \"sender\"\nto = \"receiver\"\nmethod = \"{method}\"\ndirection = \"forward\"\nstart = \"300 ms\"\n",
        rate.bits_per_second()
    );
    Ok(Scenario::parse("accuracy", &text)?)
}

/// Holds a run's number against the truths: that of the available bandwidth, where the method has one, else the last that is known.
fn judge(outcomes: &[Outcome], path: &Path) -> Run {
    let of_rest =
        |o: &&Outcome| o.estimate.as_ref().is_some_and(|e| e.quantity == Quantity::AvailableBandwidth);
    let counts = |e: &Estimate| e.value != Value::Unknown && e.quantity != Quantity::ShortestExchange;
    let known = |o: &&Outcome| o.estimate.as_ref().is_none_or(counts);
    let Some(outcome) = outcomes.iter().rfind(of_rest).or_else(|| outcomes.iter().rfind(known)) else {
        return Run::Refused("the run's time was over".into());
    };
    let Some(estimate) = &outcome.estimate else {
        return Run::Refused(outcome.refusal.as_ref().map_or_else(String::new, ToString::to_string));
    };
    let value = match estimate.value {
        Value::Is(rate) => rate,
        Value::MoreThan(_) => return Run::MoreThan,
        // An answer is no number: `enough` has a table of its own.
        Value::Answer(answer) => return Run::Refused(answer.to_string()),
        Value::Unknown => return Run::Refused(estimate.warning().unwrap_or_default()),
    };
    let truth = outcome.truth;
    let (Some(truth), Some(own)) = (truth, truth.and_then(|t| t.of(estimate))) else {
        return Run::Refused("the queue never saw the stream: no truth to hold the number against".into());
    };
    let long_run = path.long_run(estimate.quantity).or(match estimate.quantity {
        Quantity::Capacity => Some(truth.capacity),
        Quantity::ShortestExchange => truth.shortest,
        Quantity::SustainedRate => Some(truth.sustained),
        _ => truth.mean,
    });
    let capacity = path.link.map_or(truth.capacity, |(rate, _)| rate);
    let of_run = truth.over == TruthOver::Run && estimate.quantity == Quantity::AvailableBandwidth;
    let next = truth.next_of(estimate).filter(|_| !of_run);
    let observed = Some(own).filter(|_| estimate.quantity == Quantity::AvailableBandwidth && !of_run);
    let off = value.bits_per_second().abs_diff(own.bits_per_second()) as f64;
    Run::Number(Box::new(Number {
        value,
        own,
        window: relative_error(Some(value), Some(own)).filter(|_| !of_run),
        of_capacity: off / capacity.bits_per_second().max(1) as f64,
        mean: relative_error(Some(value), long_run),
        next: relative_error(Some(value), next),
        floors: [relative_error(observed, long_run), relative_error(observed, next)],
        moved: None,
        moved_simulated: None,
        covered: estimate.interval.map(|interval| interval.contains(own)),
        covered_next: estimate.next.zip(truth.next_of(estimate)).map(|(next, rate)| next.contains(rate)),
        outcome: outcome.clone(),
    }))
}

/// The rows as `lastmile accuracy --json` prints them.
pub fn document(rows: &[Row]) -> serde_json::Value {
    let options: BTreeMap<&str, &Given> = rows.iter().map(|row| (row.asked.as_str(), &row.options)).collect();
    json!({ "schema": lastmile::SCHEMA, "options": options, "rows": rows })
}

fn summarise(world: World, path: &Path, method: &Choice, runs: &[Run]) -> Row {
    let options = METHODS.used(method);
    let trains = if let Some(Scalar::Count(trains)) = options.get("trains") { *trains } else { 1 };
    let numbers: Vec<&Number> =
        runs.iter().filter_map(|run| if let Run::Number(n) = run { Some(&**n) } else { None }).collect();
    let mut reasons: Vec<String> = Vec::new();
    for run in runs {
        if let Run::Refused(why) = run
            && !reasons.contains(why)
            && reasons.len() < 10
        {
            reasons.push(why.clone());
        }
    }
    let of = |each: &dyn Fn(&Number) -> Option<f64>, q: f64| {
        quantile(&numbers.iter().filter_map(|n| each(n)).collect::<Vec<_>>(), q)
    };
    let bps = |rate: Rate| rate.bits_per_second() as f64;
    let saturation = |n: &Number| {
        let available =
            n.outcome.estimate.as_ref().is_some_and(|e| e.quantity == Quantity::AvailableBandwidth);
        n.outcome.truth.filter(|_| available).and_then(|truth| truth.achievable_window)
    };
    let coverage = |of: &dyn Fn(&Number) -> Option<bool>| {
        let covered: Vec<bool> = numbers.iter().filter_map(|n| of(n)).collect();
        let held = covered.iter().filter(|&&covered| covered).count();
        (!covered.is_empty()).then(|| held as f64 / covered.len() as f64)
    };
    Row {
        world,
        scenario: path.link.is_none().then(|| path.scenario.name.clone()),
        rate_mbps: path.link.map(|(rate, _)| bps(rate) / 1e6),
        cross: path.link.map(|(_, cross)| cross),
        method: method.name.clone(),
        options,
        asked: method.to_string(),
        direction: path.direction(),
        trains,
        n: numbers.len(),
        refused: runs.len() - numbers.len(),
        more_than: runs.iter().filter(|run| matches!(run, Run::MoreThan)).count(),
        seconds_p50: of(&|n| Some(n.outcome.cost.elapsed.as_secs_f64()), 0.5),
        bytes_p50: of(&|n| Some(n.outcome.cost.probe_bytes.0 as f64), 0.5),
        control_bytes_p50: of(&|n| Some(n.outcome.cost.control_bytes.0 as f64), 0.5),
        error_mean_p50: of(&|n| n.mean.map(f64::abs), 0.5),
        error_mean_p90: of(&|n| n.mean.map(f64::abs), 0.9),
        floor_mean_p50: of(&|n| n.floors[0].map(f64::abs), 0.5),
        error_next_p50: of(&|n| n.next.map(f64::abs), 0.5),
        error_next_p90: of(&|n| n.next.map(f64::abs), 0.9),
        floor_next_p50: of(&|n| n.floors[1].map(f64::abs), 0.5),
        error_window_p50: of(&|n| n.window.map(f64::abs), 0.5),
        error_window_p90: of(&|n| n.window.map(f64::abs), 0.9),
        bias_window_p50: of(&|n| n.window, 0.5),
        error_worst_of_capacity: of(&|n| Some(n.of_capacity), 1.0),
        coverage: coverage(&|n| n.covered),
        coverage_next: coverage(&|n| n.covered_next),
        rate_p50_bps: of(&|n| Some(bps(n.value)), 0.5),
        truth_p50_bps: of(&|n| Some(bps(n.own)), 0.5),
        saturation_p50_bps: of(&|n| saturation(n).map(bps), 0.5),
        error_saturation_p50: of(&|n| relative_error(Some(n.value), saturation(n)).map(f64::abs), 0.5),
        moved_most: of(&|n| n.moved, 1.0),
        moved_simulated_most: of(&|n| n.moved_simulated, 1.0),
        reasons,
    }
}

fn quantile(values: &[f64], q: f64) -> Option<f64> {
    lastmile::observe::stats::quantile(values, q)
}
