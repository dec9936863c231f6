//! Random paths from seeds, each measured by every method both ways, and every number held against its truth.
//!
//! A path is a pure function of its seed ([`Request::scenario`]). Its features draw from random streams of their own, so that the same path
//! without one of them ([`Feature`]) differs in nothing else. `docs/paths.md` has the parts of paths and the verdicts on numbers.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use lastmile::estimate::{Conditions, Estimate, Interval, Quantity, Value, build};
use lastmile::options::Choice;
use lastmile::report::Direction;
use lastmile::time::{Span, Time};
use lastmile::units::Rate;
use lastmile_sim::roles::measure::{Found, Truth};
use lastmile_sim::roles::{Makers, Truths};
use lastmile_sim::runs::{Hooks, simulate};
use lastmile_sim::scenario::Scenario;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::audience::Audience;
use crate::error::{Error, Result};
use crate::fleet::{self, Fleet};

mod draw;
mod features;
mod judge;
pub mod page;
mod table;
mod without;
mod write;

pub use features::Feature;
pub use judge::{Ends, Number, Verdict};
pub use table::{Cost, Row, Table, Warned, table, text};
use without::without;
pub use without::{Removed, Turned, list, removed_text};

/// The time that a run goes on behind its last measurement: the available bandwidth of that time is known too.
const LINGER: Span = Span::from_secs(10);

/// The paths and the methods.
#[derive(Clone, Debug)]
pub struct Request {
    /// Paths whose last hop is no 802.11n cell.
    pub runs: usize,
    /// Paths whose last hop is one; they are numbered behind the others.
    pub cells: usize,
    /// True if all queues of links mark packets (ECN).
    pub marking: bool,
    /// Draws all random numbers.
    pub seed: u64,
    /// The methods, one after the other.
    pub methods: Vec<Choice>,
    /// The features taken from all paths.
    pub without: Vec<Feature>,
    /// Only paths with these numbers; left out, all.
    pub only: Option<Vec<usize>>,
}

impl Default for Request {
    /// A thousand paths, measured with WBest, one train and four, and CapProbe.
    fn default() -> Request {
        let methods = ["wbest", "wbest(trains=4)", "capprobe"];
        Request {
            runs: 1_000,
            cells: 0,
            marking: false,
            seed: 1,
            methods: methods.iter().filter_map(|method| method.parse().ok()).collect(),
            without: Vec::new(),
            only: None,
        }
    }
}

impl Request {
    /// The numbers of its paths.
    fn numbers(&self) -> Vec<usize> {
        let wanted = |number: &usize| self.only.as_ref().is_none_or(|only| only.contains(number));
        (0..self.runs + self.cells).filter(wanted).collect()
    }

    fn seed(&self, number: usize) -> u64 {
        // Scenario files have seeds of 63 bits.
        self.seed.wrapping_mul(1_000_003).wrapping_add(number as u64) & i64::MAX as u64
    }

    fn path(&self, number: usize) -> draw::Path {
        let path = draw::draw(self.seed(number), number >= self.runs);
        let path = if self.marking { path.marking(self.seed(number)) } else { path };
        self.without.iter().fold(path, |path, &feature| path.without(feature))
    }

    /// The scenario of a path.
    pub fn scenario(&self, number: usize) -> String {
        let methods: Vec<String> = self.methods.iter().map(Choice::to_string).collect();
        self.path(number).text(&format!("path-{number}"), self.seed(number), &methods)
    }
}

/// The answer of one method in one direction of a path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The path's number.
    pub path: usize,
    /// The method, with its options.
    pub method: String,
    /// The direction.
    pub direction: Direction,
    /// Bytes of probes at the IP layer; back, all that came.
    pub bytes: u64,
    /// From the end of what came before it to its own.
    pub seconds: f64,
    /// Why it found nothing.
    pub refusal: Option<Cow<'static, str>>,
    /// True if others had traffic on its way.
    pub loaded: bool,
    /// True if rates change on the path.
    #[serde(skip)]
    changes: bool,
    #[serde(skip)]
    tags: Vec<Cow<'static, str>>,
}

/// Answers and numbers of all paths.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The numbers, and the questions without one.
    pub numbers: Vec<Number>,
    /// Every method's answers, with their costs.
    pub answers: Vec<Answer>,
    /// The length of each path's run, in seconds of virtual time: a scenario of that length has the same truths.
    pub durations: BTreeMap<usize, f64>,
}

/// All of it for programs.
///
/// # Errors
/// A number cannot be written.
pub fn document(request: &Request, measured: &Measured, removed: &[Removed]) -> Result<serde_json::Value> {
    let methods: Vec<String> = request.methods.iter().map(Choice::to_string).collect();
    let Request { runs, cells, marking, seed, without, .. } = request;
    let mut all = serde_json::to_value(table(measured))?;
    let paths = json!({ "runs": runs, "cells": cells, "marking": marking, "seed": seed, "methods": methods, "without": without });
    all["paths"] = paths;
    all["removed"] = serde_json::to_value(removed)?;
    for (key, value) in serde_json::to_value(measured)?.as_object().into_iter().flatten() {
        all[key] = value.clone();
    }
    Ok(all)
}

/// Measures paths, and those that have one of some features again without it, on all cores of the pool of threads that it is called in.
/// A shard has no results.
///
/// # Errors
/// A method cannot be, or a run, or the files of shards are not of these paths.
pub fn measure(
    request: &Request,
    features: &[Feature],
    fleet: &Fleet,
    audience: &Audience,
) -> Result<Option<(Measured, Vec<Removed>)>> {
    for method in &request.methods {
        build(method, &Conditions::default()).map_err(Error::input)?;
    }
    let less = features.iter().map(|&feature| without::less(request, feature));
    let requests: Vec<Request> = std::iter::once(request.clone()).chain(less).collect();
    let all = |(of, request): (usize, &Request)| {
        request.numbers().into_iter().map(move |number| (of, number)).collect::<Vec<_>>()
    };
    let runs: Vec<(usize, usize)> = requests.iter().enumerate().flat_map(all).collect();
    let one = |run: usize| {
        let (of, number) = runs[run];
        self::run(&requests[of], number, audience)
    };
    let inputs = fleet::inputs(&(request, features));
    let Some(found) = fleet.each("paths", inputs, runs.len(), audience, one)? else { return Ok(None) };
    let mut measured = vec![Measured::default(); requests.len()];
    for (&(of, number), mut one) in runs.iter().zip(found) {
        let all = &mut measured[of];
        one.mark(&requests[of].path(number));
        all.numbers.extend(one.numbers);
        all.answers.extend(one.answers);
        all.durations.extend(one.durations);
    }
    measured.iter_mut().for_each(Measured::refuse);
    let first = measured.remove(0);
    let less = features.iter().zip(&requests[1..]).zip(&measured);
    let removed = less.flat_map(|((&feature, request), less)| without(feature, request, &first, less));
    let removed = removed.collect();
    Ok(Some((first, removed)))
}

fn run(request: &Request, number: usize, audience: &Audience) -> Result<Measured> {
    if audience.is_gone() {
        return Err(Error::interrupted());
    }
    let (path, seed) = (request.path(number), request.seed(number));
    let name = format!("path-{number}");
    let blamed = |error: Error| error.of(format!("path {number} of seed {}", request.seed));
    let scenario = Scenario::parse(&name, &request.scenario(number)).map_err(|error| blamed(error.into()))?;
    let waits = audience.clone();
    let hooks = Hooks {
        linger: Some(LINGER),
        truths: Truths::Judged,
        progress: Some(Box::new(move |_| waits.goes_on())),
        ..Hooks::default()
    };
    let run = simulate(&scenario, seed, &Makers::registered(Span::ZERO, seed), hooks);
    let run = run.map_err(|error| blamed(error.into()))?;
    if run.stopped {
        return Err(Error::interrupted());
    }
    let mut measured = Measured::default();
    let lasted = (run.engine.now() - Time::ZERO).as_secs_f64();
    measured.durations.insert(number, lasted);
    measured.take(number, &path, &run.found.measure);
    Ok(measured)
}

impl Measured {
    fn take(&mut self, number: usize, path: &draw::Path, found: &Found) {
        let tags = [path.tags(0), path.tags(1)];
        let mut before = lastmile::endpoint::measure::Cost::default();
        let mut since = f64::INFINITY;
        for outcome in &found.outcomes {
            let way = usize::from(outcome.direction == Direction::Reverse);
            let is_same = |answer: &Answer| {
                (answer.path, &answer.method, answer.direction)
                    == (number, &outcome.method, outcome.direction)
            };
            if !self.answers.last().is_some_and(is_same) {
                let cost = &outcome.cost;
                let bytes = match way {
                    0 => cost.probe_bytes - before.probe_bytes,
                    _ => cost.bytes_received - before.bytes_received,
                };
                self.answers.push(Answer {
                    path: number,
                    method: outcome.method.clone(),
                    direction: outcome.direction,
                    bytes: bytes.0,
                    seconds: (cost.elapsed - before.elapsed).as_secs_f64(),
                    refusal: outcome.refusal.as_ref().map(|refusal| refusal.code().into()),
                    loaded: !tags[way].contains(&"idle".into()),
                    changes: path.changes(),
                    tags: tags[way].clone(),
                });
                before = outcome.cost;
                since = f64::INFINITY;
            }
            let (Some(answer), Some(estimate)) = (self.answers.last(), &outcome.estimate) else { continue };
            let (first, last) = span(estimate, found);
            // Available bandwidth is told by the pairs of the capacity too.
            since = since.min(first);
            let changed = path.changes_within((since, last));
            self.numbers.extend(answer.judged(estimate, outcome.truth, changed));
        }
    }

    /// Says of the answers on a path what the path has, which no file says.
    fn mark(&mut self, path: &draw::Path) {
        for answer in &mut self.answers {
            answer.changes = path.changes();
            answer.tags = path.tags(usize::from(answer.direction == Direction::Reverse));
        }
    }

    /// Adds the questions that a method answers on other paths, and on these does not: they count as refused.
    fn refuse(&mut self) {
        let key = |number: &Number| {
            (number.path, number.method.clone(), number.direction, number.quantity.to_string())
        };
        let known: BTreeSet<_> = self.numbers.iter().map(key).collect();
        let mut asked: BTreeMap<String, Vec<Quantity>> = BTreeMap::new();
        // Sustained rates are of shapers, and shortest exchanges of Wi-Fi, alone.
        let everywhere =
            |number: &&Number| matches!(number.quantity, Quantity::Capacity | Quantity::AvailableBandwidth);
        for number in self.numbers.iter().filter(everywhere) {
            let quantities = asked.entry(number.method.clone()).or_default();
            if !quantities.contains(&number.quantity) {
                quantities.push(number.quantity);
            }
        }
        for answer in &self.answers {
            let open = asked.get(&answer.method).into_iter().flatten().map(|&quantity| Number {
                codes: vec![answer.refusal.clone().unwrap_or("unknown".into())],
                ..answer.number(quantity)
            });
            self.numbers.extend(open.filter(|number| !known.contains(&key(number))));
        }
        self.numbers.sort_by_key(|number| number.path);
    }
}

impl Answer {
    /// A number of it of which nothing is known.
    fn number(&self, quantity: Quantity) -> Number {
        Number {
            path: self.path,
            method: self.method.clone(),
            direction: self.direction,
            quantity,
            verdict: Verdict::Refused,
            kept: false,
            rate_bps: None,
            bound: false,
            interval: None,
            truth_bps: None,
            capacity_bps: None,
            holds: None,
            next_holds: None,
            score: None,
            codes: Vec::new(),
            changed: self.changes,
            tags: self.tags.clone(),
        }
    }

    /// An estimate of it beside its truth; `None` of one that says nothing.
    fn judged(&self, estimate: &Estimate, truth: Option<Truth>, changed: bool) -> Option<Number> {
        let judged = judge::judge(estimate, truth)?;
        let bps = |rate: Rate| rate.bits_per_second();
        let (rate_bps, bound) = match estimate.value {
            Value::Is(rate) => (Some(bps(rate)), false),
            Value::MoreThan(rate) => (Some(bps(rate)), true),
            Value::Answer(_) | Value::Unknown => (None, false),
        };
        let ends = |interval: Interval| Ends { low_bps: bps(interval.low), high_bps: bps(interval.high) };
        let codes = estimate.warnings.iter().map(|warning| warning.code.code());
        Some(Number {
            verdict: judged.verdict,
            kept: judged.kept,
            rate_bps,
            bound,
            interval: estimate.interval.map(ends),
            truth_bps: judged.truth.map(bps),
            capacity_bps: judged.capacity.map(bps),
            holds: judged.holds,
            next_holds: judged.next_holds,
            score: judged.score,
            codes: codes.chain(bound.then_some("more-than")).map(Cow::from).collect(),
            changed,
            ..self.number(estimate.quantity)
        })
    }
}

/// When the first packet of an estimate's streams left, and when the last one came, in seconds: hosts here have perfect clocks.
fn span(estimate: &Estimate, found: &Found) -> (f64, f64) {
    let records = found.records.iter().flat_map(|(_, records)| records);
    let own = records.filter(|record| estimate.streams.contains(&record.stream));
    let (mut first, mut last) = (f64::INFINITY, 0.0_f64);
    for packet in own.flat_map(|record| &record.packets) {
        let came = packet.fate.arrived().map_or(0, |at| at.as_nanos());
        first = first.min(packet.sent.as_nanos() as f64 / 1e9);
        last = last.max(packet.sent.as_nanos().max(came) as f64 / 1e9);
    }
    (first, last)
}

#[cfg(test)]
mod case_tests;
#[cfg(test)]
mod tests;
