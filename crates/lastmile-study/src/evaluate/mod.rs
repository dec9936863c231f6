//! Rate controllers over anybody's path, or over those of RFC 8867 and RFC 8869, compared seed by seed.

use std::sync::PoisonError;

use lastmile::control::Composition;
use lastmile::options::Choice;
use lastmile::time::Span;
use lastmile_report::text::Text;
use lastmile_sim::roles::Makers;
use lastmile_sim::scenario::{Override, Scenario};
use serde_json::Value;

use crate::audience::Audience;
use crate::error::{Error, Result};
use crate::fleet::Fleet;
use crate::runs::by_seed;
use crate::scenarios::{self, RMCAT};

mod cases;
mod document;
mod frames;
mod guest;
mod heat;
pub mod league;
mod limited;
mod measure;
mod metrics;
mod numbers;
mod oracle;
pub mod page;
mod path;
mod variants;
mod watch;

use cases::{Contender, FIXED, Tested, contenders};
use document::{Evaluated, Plan};
pub use guest::{Failure, Guest, Make};
pub use heat::heat_map;
use measure::{Measured, Ran};
use path::Paths;
use variants::Variants;

/// Runs of each case, unless a request says otherwise.
const RUNS: u64 = 5;

/// Controllers to compare, and the paths.
#[derive(Clone, Debug)]
pub struct Request {
    /// Names or files of scenarios; none for the test cases of RFC 8867 and RFC 8869.
    pub scenarios: Vec<String>,
    /// Values of the scenarios that are replaced.
    pub overrides: Vec<Override>,
    /// Streams that are tested; none for all whose controller answers the network.
    pub streams: Vec<String>,
    /// Controllers with commas between them, `tcp` for bulk TCP in the place of the streams; nothing for all but `fixed`.
    pub controllers: Option<String>,
    /// Controllers that are in no registry, behind those.
    pub guests: Vec<Guest>,
    /// Queue discipline of the links that limit tested streams.
    pub queue: Option<String>,
    /// Share of packets that these links lose at random.
    pub loss: Option<f64>,
    /// True if every flow's way has jitter (RFC 8868, section 4.5).
    pub jitter: bool,
    /// One-way delay beyond which a packet is too late to be played.
    pub playout: Span,
    /// Numbers count from that time of a run on.
    pub from: Span,
    /// Runs of each case.
    pub runs: Option<u64>,
    /// Seed of the first run, if not 1.
    pub first_seed: Option<u64>,
}

/// The usual one-way delay beyond which a packet is too late to be played.
pub const PLAYOUT: Span = Span::from_millis(400);

impl Default for Request {
    /// All controllers over the RFCs' test cases.
    fn default() -> Request {
        Request {
            scenarios: Vec::new(),
            overrides: Vec::new(),
            streams: Vec::new(),
            controllers: None,
            guests: Vec::new(),
            queue: None,
            loss: None,
            jitter: false,
            playout: PLAYOUT,
            from: Span::ZERO,
            runs: None,
            first_seed: None,
        }
    }
}

/// An evaluation that was checked.
pub struct Evaluation {
    entries: Vec<Entry>,
    contenders: Vec<Contender>,
    plan: Plan,
    /// Scenarios that are left out, and why.
    pub left_out: Vec<String>,
}

/// A scenario, its variants, and the number of its runs.
struct Entry {
    of: Tested,
    variants: Variants,
    runs: u64,
    /// Numbers count from that time of a run on.
    from: Span,
}

/// Results of an evaluation.
pub struct Comparison {
    /// For programs and [`page`].
    pub document: Value,
    /// For people.
    pub text: Text,
}

impl Evaluation {
    /// Checks what is asked for.
    ///
    /// # Errors
    /// A scenario, a controller, a stream or a variant cannot be.
    pub fn new(request: &Request) -> Result<Evaluation> {
        if request.from < Span::ZERO {
            return Err(Error::Input(format!("--from {}: a run begins at 0 s", request.from)));
        }
        let contenders = contenders(request.controllers.as_deref(), &request.guests)?;
        let variants = Variants::new(request.queue.as_deref(), request.loss, request.jitter)?;
        let is_suite = request.scenarios.is_empty();
        let names: Vec<&str> = match is_suite {
            true => RMCAT.to_vec(),
            false => request.scenarios.iter().map(String::as_str).collect(),
        };
        let runs = request.runs.unwrap_or(RUNS);
        let (mut entries, mut left_out) = (Vec::new(), Vec::new());
        for name in names {
            let one = Tested::load(name, request.overrides.clone(), &request.streams)?;
            variants.check(name, &one)?;
            if variants.reach(&one) {
                let from = request.from;
                if from >= one.scenario.duration {
                    let why = format!("--from {from}: the run is over at {}", one.scenario.duration);
                    return Err(Error::Input(format!("{name}: {why}")));
                }
                entries.push(Entry { of: one, variants: variants.clone(), runs, from });
            } else if is_suite {
                left_out.push(format!(
                    "{name} is left out: no link of a known rate limits its streams, for --queue and --loss"
                ));
            } else {
                let why = "--queue and --loss are of the link that limits a stream: here that is none of a known rate";
                return Err(Error::Input(format!("{name}: {why}")));
            }
        }
        let plan = Plan {
            suite: is_suite.then_some("rmcat"),
            runs,
            first: request.first_seed.unwrap_or(1),
            contenders: contenders.iter().map(ToString::to_string).collect(),
            sources: contenders.iter().map(Contender::source).collect(),
            variants: variants.names(),
            playout: request.playout,
        };
        Ok(Evaluation { entries, contenders, plan, left_out })
    }

    /// Runs it, on all cores of the pool of threads that it is called in; a shard has no comparison.
    ///
    /// # Errors
    /// A run cannot be, or the files of shards are not of this evaluation.
    pub fn run(&self, fleet: &Fleet, audience: &Audience) -> Result<Option<Comparison>> {
        let found = self.evaluated(fleet, audience)?;
        let compared =
            |found: Vec<_>| Comparison { document: self.plan.document(&found), text: self.plan.text(&found) };
        Ok(found.map(compared))
    }

    /// Results of every scenario with every contender.
    fn evaluated(&self, fleet: &Fleet, audience: &Audience) -> Result<Option<Vec<Evaluated>>> {
        let Evaluation { entries, contenders, plan, .. } = self;
        let mut cases = Vec::new();
        let oracle = Contender::Controller(Composition::of(Choice::named(FIXED)));
        for Entry { of, variants, from, .. } in entries {
            for (contender, is_oracle) in contenders.iter().map(|one| (one, false)).chain([(&oracle, true)]) {
                let mut scenario = of.with(contender)?;
                variants.apply(&mut scenario, &of.streams);
                let paths = || Paths::new(&scenario, &of.streams, scenario.seed);
                if !is_oracle || oracle::is_possible(&scenario, &paths()) {
                    cases.push(Case { of, scenario, contender, variants, is_oracle, from: *from });
                }
            }
        }
        let inputs: Vec<_> =
            cases.iter().map(|case| (case.of.inputs(&case.scenario), case.is_oracle)).collect();
        let variants: Vec<_> = entries.iter().map(|entry| (&entry.variants, entry.from)).collect();
        let runs = |of: &Tested| {
            entries.iter().find(|entry| std::ptr::eq(&entry.of, of)).map_or(0, |entry| entry.runs)
        };
        let seeds: Vec<u64> = cases.iter().map(|case| runs(case.of)).collect();
        let inputs = (inputs, &plan.contenders, variants, plan.playout, plan.first);
        let found = by_seed("runs", &seeds, &inputs, fleet, audience, |case, seed| {
            let (case, seed) = (&cases[case], seed + plan.first - 1);
            one(case, seed, plan.playout, audience).map_err(|error| {
                let contender =
                    if case.is_oracle { "its oracle".to_owned() } else { case.contender.to_string() };
                error.of(format!("{} with {contender}, seed {seed}", case.of.scenario.name))
            })
        })?;
        let Some(found) = found else { return Ok(None) };
        let mut found = cases.iter().zip(found).peekable();
        let each = |entry: &Entry| {
            let of = &entry.of;
            let mut runs: Vec<_> = found.by_ref().take(contenders.len()).map(|(_, runs)| runs).collect();
            if let Some((_, possible)) = found.next_if(|(case, _)| case.is_oracle) {
                let pairs = runs.iter_mut().flat_map(|runs| runs.iter_mut().zip(&possible));
                pairs.for_each(|(run, possible)| run.regret(possible));
            }
            runs.iter_mut().for_each(|runs| Measured::fail_together(runs));
            Evaluated {
                scenario: of.scenario.name.clone(),
                description: of.scenario.description.clone(),
                seconds: of.scenario.duration.as_secs_f64(),
                from_s: entry.from.as_secs_f64(),
                tested: of.streams.clone(),
                runs,
            }
        };
        Ok(Some(entries.iter().map(each).collect()))
    }
}

/// A scenario in which a contender has the tested streams, or their oracle in its place.
struct Case<'a> {
    of: &'a Tested,
    scenario: Scenario,
    contender: &'a Contender,
    variants: &'a Variants,
    is_oracle: bool,
    from: Span,
}

/// Results of one run.
fn one(case: &Case<'_>, seed: u64, playout: Span, audience: &Audience) -> Result<Measured> {
    let Case { of, scenario, contender, variants, is_oracle, from } = case;
    let scenario = &*scenario.drawn(seed);
    let paths = Paths::new(scenario, &of.streams, seed).measured_from(*from);
    let (make, queues) = match is_oracle {
        true => Some(oracle::oracles(scenario, &paths)).unzip(),
        false => (None, None),
    };
    let (hooks, kept) = watch::watch(scenario, &paths, queues);
    let mut jittered = scenario.clone();
    variants.jitter(&mut jittered, seed);
    let make = make.unwrap_or_else(|| Makers::registered(Span::ZERO, seed));
    let (make, failure) = match contender {
        Contender::Guest(guest) if !is_oracle => guest.makers(make, &of.streams),
        _ => (make, Failure::default()),
    };
    let run = scenarios::simulated_with(&jittered, seed, &make, hooks, audience)?;
    if let Some(why) = failure.get() {
        return Ok(Measured { failed: Some(why.clone()), ..Measured::default() });
    }
    let kept = std::mem::take(&mut *kept.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(Ran { scenario, paths: &paths, kept, found: &run.found, network: &run.network, playout }.measured())
}
