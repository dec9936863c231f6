//! `lastmile evaluate`: rate controllers over anybody's path, or over those of RFC 8867 and RFC 8869, compared seed by seed.

use std::sync::PoisonError;

use anyhow::anyhow;
use clap::ValueEnum;
use lastmile::time::Span;
use lastmile_sim::scenario::Scenario;

use crate::exit::Exit;
use crate::experiment::{ExperimentArgs, by_seed};
use crate::ready::RMCAT;
use crate::{page, scenarios, signals};

mod cases;
mod document;
mod measure;
mod metrics;
mod numbers;
mod path;
mod variants;
mod watch;

use cases::{Contender, Tested, contenders};
use document::{Evaluated, Evaluation};
use measure::{Measured, Ran};
use path::Paths;
use variants::Variants;

/// Compare rate controllers over a path, seed by seed
///
/// Every controller has the tested streams of a scenario in turn, with the same seeds: those [[stream]] tables whose `control` is another
/// than `fixed`, or those that --stream names. Numbers are means over the runs, 5 of each unless --runs says otherwise, with their 95 %
/// intervals; differences from the first controller are paired by seed. What each number is of: docs/evaluate.md.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The test cases of RFC 8867 (5.1 to 5.8) and RFC 8869 (3.1 and 3.2)
    #[arg(value_enum, conflicts_with = "scenario")]
    suite: Option<Suite>,
    /// Scenario file, or the name of one that is built in; may be given several times
    #[arg(long, value_name = "FILE")]
    scenario: Vec<String>,
    /// Controllers with commas between them, such as tfrc+zbs,vtp,fixed(rate=1 Mbit/s); `tcp` for bulk TCP in the place of the streams; left out,
    /// all controllers but fixed
    #[arg(long, value_name = "LIST")]
    controllers: Option<String>,
    /// A [[stream]] that is tested, by its name; may be given several times
    #[arg(long, value_name = "NAME")]
    stream: Vec<String>,
    /// A key of the scenario and its value, such as `link.1.rate=5 Mbit/s`; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Queue discipline of the links that limit the tested streams, such as fq-codel or pie
    #[arg(long, value_name = "KIND")]
    queue: Option<String>,
    /// Share of packets that these links lose at random, such as 0.01
    #[arg(long, value_name = "SHARE")]
    loss: Option<f64>,
    /// Jitter on the way of every flow (RFC 8868, section 4.5: up to 15 ms, without reordering)
    #[arg(long)]
    jitter: bool,
    /// One-way delay beyond which a packet is too late to be played
    #[arg(long, value_name = "TIME", default_value = "400 ms")]
    playout: Span,
    #[command(flatten)]
    experiment: ExperimentArgs,
}

/// Runs of each case.
const RUNS: u64 = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Suite {
    Rmcat,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Option<Exit>> {
    if args.suite.is_none() && args.scenario.is_empty() {
        return Err(Exit::Usage
            .blame(anyhow!("name what to run: --scenario FILE, or rmcat for the RFCs' test cases")));
    }
    let contenders = contenders(args.controllers.as_deref())?;
    let variants = Variants::new(args.queue.as_deref(), args.loss, args.jitter)?;
    let names: Vec<&str> = match args.suite {
        Some(Suite::Rmcat) => RMCAT.to_vec(),
        None => args.scenario.iter().map(String::as_str).collect(),
    };
    let mut tested = Vec::new();
    for name in names {
        let overrides = args.set.iter().map(|set| scenarios::replaced(set)).collect::<anyhow::Result<_>>()?;
        let one = Tested::load(name, overrides, &args.stream)?;
        variants.check(name, &one)?;
        if variants.reach(&one) {
            tested.push(one);
        } else if args.suite.is_some() {
            crate::note(&format!(
                "{name} is left out: no link of a known rate limits its streams, for --queue and --loss"
            ));
        } else {
            let why =
                "--queue and --loss are of the link that limits a stream: here that is none of a known rate";
            return Err(Exit::Usage.blame(anyhow!("{name}: {why}")));
        }
    }
    args.experiment.check()?;
    signals::stop();
    let runs = args.experiment.runs.unwrap_or(RUNS);
    let pool = args.experiment.threads.pool()?;
    let found = pool.install(|| evaluate(&tested, &contenders, &variants, runs, args.playout))?;
    let evaluation = Evaluation {
        suite: args.suite.map(|_| "rmcat"),
        runs,
        contenders: contenders.iter().map(ToString::to_string).collect(),
        variants: variants.names(),
        playout: args.playout,
    };
    let document = evaluation.document(&found);
    args.experiment.show(&document, page::evaluation::page, || evaluation.say(&found))?;
    Ok(None)
}

/// What came of every scenario with every contender.
fn evaluate(
    tested: &[Tested],
    contenders: &[Contender],
    variants: &Variants,
    runs: u64,
    playout: Span,
) -> anyhow::Result<Vec<Evaluated>> {
    let mut cases = Vec::new();
    for of in tested {
        for contender in contenders {
            cases.push((of, of.with(contender, variants)?));
        }
    }
    let mut found = by_seed("runs", cases.len(), runs, |case, seed| {
        let (of, scenario) = &cases[case];
        one(of, scenario, seed, variants, playout).map_err(|error| {
            let contender = &contenders[case % contenders.len()];
            error.context(format!("{} with {contender}, seed {seed}", of.scenario.name))
        })
    })?
    .into_iter();
    let each = |of: &Tested| Evaluated {
        scenario: of.scenario.name.clone(),
        description: of.scenario.description.clone(),
        seconds: of.scenario.duration.as_secs_f64(),
        tested: of.streams.clone(),
        runs: found.by_ref().take(contenders.len()).collect(),
    };
    Ok(tested.iter().map(each).collect())
}

/// What came of one run.
fn one(
    of: &Tested,
    scenario: &Scenario,
    seed: u64,
    variants: &Variants,
    playout: Span,
) -> anyhow::Result<Measured> {
    let paths = Paths::new(scenario, &of.streams, seed);
    let (hooks, kept) = watch::watch(scenario, &paths);
    let mut jittered = scenario.clone();
    variants.jitter(&mut jittered, seed);
    let run = scenarios::simulated_with(&jittered, seed, hooks)?;
    let kept = std::mem::take(&mut *kept.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(Ran { scenario, paths: &paths, kept, found: &run.found, network: &run.network, playout }.measured())
}
