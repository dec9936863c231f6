//! `lastmile evaluate`: rate controllers over anybody's path, or over those of RFC 8867 and RFC 8869, compared seed by seed.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::anyhow;
use clap::ValueEnum;
use lastmile::classify::Discriminator;
use lastmile::control::{Discriminated, Setting};
use lastmile::options::Choice;
use lastmile::time::Span;
use lastmile_net::program::Program;
use lastmile_study::evaluate::league::{self, League};
use lastmile_study::evaluate::{Comparison, Evaluation, Guest, PLAYOUT, Request, heat_map, page};
use serde_json::Value;

use crate::shell::exit::Exit;
use crate::shell::experiment::ExperimentArgs;
use crate::shell::options::share;
use crate::shell::progress::audience;
use crate::shell::replace::{self, replace};
use crate::shell::scenarios::replaced;
use crate::shell::shard::ShardArgs;
use lastmile_study::fleet::Fleet;

/// Compare rate controllers over a path, seed by seed
///
/// Each controller in turn sends the tested streams of a scenario, with the same seeds. Tested are the streams of --stream; without it all
/// [[stream]] tables with a `control` other than `fixed`. Numbers are means over 5 runs, or over --runs, with 95 % intervals; differences
/// from the first controller are paired by seed. docs/evaluate-numbers.md defines each number.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// `rmcat`: the test cases of RFC 8867 (5.1 to 5.8) and RFC 8869 (3.1 and 3.2); `league`: all suites of paths, with a summary
    /// (docs/league.md)
    #[arg(value_enum, conflicts_with = "scenario")]
    suite: Option<Suite>,
    /// Suite of the league, such as rmcat or loss; may be given several times [default: all]
    #[arg(long = "suite", value_name = "NAME")]
    suites: Vec<String>,
    /// Case of the league that --list has; may be given several times [default: all]
    #[arg(long = "case", value_name = "NAME")]
    cases: Vec<String>,
    /// List the league's cases: each scenario, and what is changed in it
    #[arg(long, conflicts_with_all = ["csv", "heat_map", "report", "runs", "seed", "program", "shard", "output"])]
    list: bool,
    /// League of fewer cases and runs, within ten minutes
    #[arg(long)]
    brief: bool,
    /// Scenario file, or a name that `lastmile scenarios` lists; may be given several times
    #[arg(long, value_name = "FILE")]
    scenario: Vec<String>,
    /// Controllers, separated by commas, such as tfrc+zbs,vtp,fixed(rate=1 Mbit/s); `tcp` is bulk TCP in place of the streams [default:
    /// all controllers but fixed]
    #[arg(long, value_name = "LIST")]
    controllers: Option<String>,
    /// Command of a program that is a rate controller, over a pipe (docs/program.md), such as 'python3 aimd.py'; may be given several times
    #[arg(long, value_name = "COMMAND")]
    program: Vec<String>,
    /// Loss classifier in front of every --program, such as zbs: `cause` of its lost packets
    #[arg(long, value_name = "NAME", requires = "program")]
    classifier: Option<Choice>,
    /// Name of a [[stream]] to test; may be given several times
    #[arg(long, value_name = "NAME")]
    stream: Vec<String>,
    /// A key of the scenario and its value, such as `link.1.rate=5 Mbit/s`; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Queue discipline of the links that limit the tested streams, such as fq-codel or pie
    #[arg(long, value_name = "KIND")]
    queue: Option<String>,
    /// Share of packets that these links lose at random, such as 0.01 or 1%
    #[arg(long, value_name = "SHARE", value_parser = share)]
    loss: Option<f64>,
    /// Jitter on the way of every flow (RFC 8868, section 4.5: up to 15 ms, without reordering)
    #[arg(long)]
    jitter: bool,
    /// One-way delay beyond which a packet is too late to be played
    #[arg(long, value_name = "TIME", default_value_t = PLAYOUT)]
    playout: Span,
    /// Count numbers from that time of each run on
    #[arg(long, value_name = "TIME", default_value = "0 s")]
    from: Span,
    /// Seed of the first run [default: 1, of the league 101: lower ones are for tuning]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    seed: Option<u64>,
    /// Write a row of numbers and intervals for each scenario and controller to FILE, as CSV
    #[arg(long, value_name = "FILE.csv")]
    csv: Option<PathBuf>,
    /// Write a heat map of the share of the possible rate that each controller used, as SVG
    #[arg(long, value_name = "FILE.svg")]
    heat_map: Option<PathBuf>,
    #[command(flatten)]
    pub(super) shard: ShardArgs,
    #[command(flatten)]
    experiment: ExperimentArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Suite {
    Rmcat,
    League,
}

/// The checked request.
enum Asked {
    Evaluation(Evaluation),
    League(League),
}

impl Asked {
    fn of(args: &Args) -> anyhow::Result<Asked> {
        if args.suite == Some(Suite::League) {
            let others = [
                (!args.stream.is_empty(), "--stream"),
                (!args.set.is_empty(), "--set"),
                (args.queue.is_some(), "--queue"),
                (args.loss.is_some(), "--loss"),
                (args.jitter, "--jitter"),
                (args.playout != PLAYOUT, "--playout"),
                (args.from != Span::ZERO, "--from"),
            ];
            if let Some((_, option)) = others.iter().find(|(given, _)| *given) {
                return Err(
                    Exit::Usage.blame(anyhow!("the league's paths are as they are: {option} is for others"))
                );
            }
            let request = league::Request {
                suites: args.suites.clone(),
                cases: args.cases.clone(),
                controllers: args.controllers.clone(),
                guests: guests(args)?,
                runs: args.experiment.runs,
                first_seed: args.seed,
                brief: args.brief,
            };
            return Ok(Asked::League(League::new(&request)?));
        }
        if args.brief || args.list || !args.suites.is_empty() || !args.cases.is_empty() {
            let why = "--suite, --case, --list and --brief are of the league: lastmile evaluate league";
            return Err(Exit::Usage.blame(anyhow!(why)));
        }
        if args.suite.is_none() && args.scenario.is_empty() {
            return Err(Exit::Usage
                .blame(anyhow!(
                "name what to run: --scenario FILE, rmcat for the RFCs' test cases, or league for all suites of paths"
            )));
        }
        let evaluation = Evaluation::new(&Request {
            scenarios: args.scenario.clone(),
            overrides: replaced(&args.set)?,
            streams: args.stream.clone(),
            controllers: args.controllers.clone(),
            guests: guests(args)?,
            queue: args.queue.clone(),
            loss: args.loss,
            jitter: args.jitter,
            playout: args.playout,
            from: args.from,
            runs: args.experiment.runs,
            first_seed: args.seed,
        })?;
        evaluation.left_out.iter().for_each(|why| crate::shell::note(why));
        Ok(Asked::Evaluation(evaluation))
    }

    fn run(&self, fleet: &Fleet) -> lastmile_study::Result<Option<Comparison>> {
        match self {
            Asked::Evaluation(evaluation) => evaluation.run(fleet, &audience()),
            Asked::League(league) => league.run(fleet, &audience()),
        }
    }
}

/// Programs as contenders. Each is started once, so that a wrong command is refused before any run.
fn guests(args: &Args) -> anyhow::Result<Vec<Guest>> {
    let classifier = args.classifier.as_ref().map(Discriminator::new).transpose();
    let classifier = classifier.map_err(|error| Exit::Usage.blame(anyhow!("--classifier: {error}")))?;
    let guest = |command: &String| {
        let refused = |why: &dyn std::fmt::Display| Exit::Usage.blame(anyhow!("--program {command}: {why}"));
        let program = Program::new(command).map_err(|why| refused(&why))?;
        program.check().map_err(|error| refused(&error))?;
        let name = match &args.classifier {
            Some(choice) => format!("{}+{choice}", program.name()),
            None => program.name(),
        };
        let classifier = classifier.clone();
        let make = move |setting: &Setting, failure| {
            let program = program.controller(setting, failure);
            match classifier.clone() {
                Some(classifier) => Box::new(Discriminated::new(classifier, program)),
                None => program,
            }
        };
        Ok(Guest { name, make: Arc::new(make) })
    };
    args.program.iter().map(guest).collect()
}

pub(crate) fn run(args: Args) -> anyhow::Result<Option<Exit>> {
    let asked = Asked::of(&args)?;
    if let (true, Asked::League(league)) = (args.list, &asked) {
        let (json, text) = league.list();
        args.experiment.shown.print.show(&json, &text)?;
        return Ok(None);
    }
    args.experiment.shown.check(args.shard.output())?;
    [&args.csv, &args.heat_map].into_iter().flatten().try_for_each(|file| replace::check(file))?;
    let is_other =
        |file: &&PathBuf| file.extension().is_some_and(|ending| !ending.eq_ignore_ascii_case("svg"));
    if let Some(file) = args.heat_map.as_ref().filter(is_other) {
        let svg = file.with_extension("svg");
        let why = format!("the heat map is an SVG: name it {}", svg.display());
        return Err(Exit::Usage.blame(anyhow!("--heat-map {}: {why}", file.display())));
    }
    let (fleet, pool) = (args.shard.fleet()?, args.experiment.threads.pool()?);
    let Some(compared) = pool.install(|| asked.run(&fleet))? else {
        return args.shard.done();
    };
    args.experiment.shown.show(&compared.document, page::page, &compared.text, args.shard.output())?;
    if let Some(file) = &args.csv {
        let rows = csv(&compared.document)?;
        replace(file, |out| Ok(out.write_all(&rows)?)).map_err(|error| Exit::Machine.blame(error))?;
    }
    if let Some(file) = &args.heat_map {
        let drawn = heat_map(&compared.document);
        replace(file, |out| Ok(out.write_all(drawn.as_bytes())?))
            .map_err(|error| Exit::Machine.blame(error))?;
    }
    // A program that failed is told of by the code too, for those who run this on each change of it.
    let has_failed = |of: &Value| of["failed"].as_array().is_some_and(|failed| !failed.is_empty());
    let failed = compared.document["scenarios"].as_array().is_some_and(|all| all.iter().any(has_failed));
    Ok(failed.then_some(Exit::NoResult))
}

/// Columns of a league's CSV: a controller's place in a case, and the seed of its longest P95 frame delay with that.
const PLACE: [&str; 7] =
    ["suite", "pareto", "fair", "dominates", "dominated", "worst_seed", "worst_frame_p95_ms"];

/// A row for each scenario and controller: a column for each number that any scenario has, and two for its interval; behind them its
/// place in a league.
fn csv(document: &Value) -> anyhow::Result<Vec<u8>> {
    let rows = |of: &'_ Value| of["rows"].as_array().cloned().unwrap_or_default();
    let scenarios = document["scenarios"].as_array().map_or(&[][..], Vec::as_slice);
    let names =
        document["metrics"].as_array().into_iter().flatten().filter_map(|metric| metric["name"].as_str());
    let columns: Vec<String> = names
        .flat_map(|name| [name.to_owned(), format!("{name}_low"), format!("{name}_high")])
        .filter(|name| scenarios.iter().flat_map(rows).any(|row| row[name.as_str()].is_number()))
        .collect();
    let league = rows(&document["league"]);
    let places = if league.is_empty() { &[][..] } else { &PLACE };
    let mut out = csv::Writer::from_writer(Vec::new());
    let names = ["scenario", "controller"].into_iter().chain(columns.iter().map(String::as_str));
    out.write_record(names.chain(places.iter().copied()))?;
    for scenario in scenarios {
        for row in rows(scenario) {
            let number =
                |name: &String| row[name.as_str()].as_f64().map_or_else(String::new, |at| format!("{at:.2}"));
            let of = [&scenario["scenario"], &row["controller"]]
                .map(|name| name.as_str().unwrap_or_default().to_owned());
            let place = league.iter().find(|place| {
                place["case"] == scenario["scenario"] && place["controller"] == row["controller"]
            });
            let place = places.iter().map(|key| match place.map(|place| &place[*key]) {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Bool(is)) => is.to_string(),
                Some(Value::Number(number)) if number.is_f64() => {
                    format!("{:.2}", number.as_f64().unwrap_or(0.0))
                }
                Some(Value::Number(number)) => number.to_string(),
                _ => String::new(),
            });
            out.write_record(of.into_iter().chain(columns.iter().map(number)).chain(place))?;
        }
    }
    Ok(out.into_inner()?)
}
