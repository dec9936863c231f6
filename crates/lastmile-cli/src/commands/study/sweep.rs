//! `lastmile sweep SCENARIO`: every combination of some values, several seeds, on all cores.

use std::io::{BufWriter, stdout};

use anyhow::anyhow;
use clap::ValueEnum;
use lastmile::options::split_outside;
use lastmile_study::fleet::Fleet;
use lastmile_study::scenarios;
use lastmile_study::sweep::{self, Parameter, Sweep, Written};

use crate::shell::Standard;
use crate::shell::exit::Exit;
use crate::shell::experiment::Threads;
use crate::shell::progress::audience;
use crate::shell::replace::{is_special, replace};
use crate::shell::shard::ShardArgs;

/// Run a scenario with every combination of values and seeds, on all cores
///
/// Each number is a line, in the order of the combinations; the number of cores changes nothing.
/// With --output an interrupted sweep goes on where it stopped when it is called again: FILE.part holds the finished runs. A file of another
/// sweep is not overwritten. `lastmile report FILE` draws the result.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Scenario file, or a name that `lastmile scenarios` lists
    scenario: String,
    /// A key of the scenario and its values, such as `link.0.rate=10 Mbit/s,30 Mbit/s`; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUES")]
    set: Vec<String>,
    /// Seeds 1 to N [default: seed 1, or those of `--set seed=...`]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seeds: Option<u64>,
    /// JSON lines, or CSV
    #[arg(long, value_enum, default_value_t = Format::Jsonl)]
    format: Format,
    #[command(flatten)]
    pub(super) shard: ShardArgs,
    #[command(flatten)]
    threads: Threads,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Jsonl,
    Csv,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Option<Exit>> {
    let (file, text) = scenarios::text(&args.scenario)?;
    let parameters: Vec<Parameter> =
        args.set.iter().map(|set| parameter(set)).collect::<anyhow::Result<_>>()?;
    let seeds = match (args.seeds, parameters.iter().any(|p| p.key == "seed")) {
        (Some(_), true) => {
            return Err(Exit::Usage
                .blame(anyhow!("both --seeds and --set seed=... say which seeds: give one of them")));
        }
        (None, true) => Vec::new(),
        (n, false) => (1..=n.unwrap_or(1)).collect(),
    };
    let sweep = Sweep { parameters, seeds };
    let plan = sweep.plan(&file, &text).map_err(|error| Exit::Usage.blame(error))?;
    let format = match args.format {
        Format::Jsonl => sweep::Format::Jsonl,
        Format::Csv => sweep::Format::Csv,
    };
    let (pool, audience) = (args.threads.pool()?, audience());
    // A device or a pipe keeps nothing to go on from.
    let kept = args.shard.output().filter(|output| !is_special(output));
    let fleet = args.shard.fleet()?;
    let written = pool.install(|| Written::new(plan, &text, kept, &fleet, &audience))?;
    let (runs, finished) = written.runs();
    if finished > 0 && !matches!(fleet, Fleet::Merged(_)) {
        crate::shell::say(&format!("{finished} of {runs} runs were finished before"));
    }
    let run = pool.install(|| written.run(&audience));
    if let (Err(lastmile_study::Error::Interrupted(_)), Some(file)) = (&run, kept) {
        crate::shell::note(&format!(
            "{}.part has the finished runs: the same command goes on",
            file.display()
        ));
    }
    if !run? {
        return args.shard.done();
    }
    match args.shard.output() {
        None => drop(written.write(&mut BufWriter::new(Standard(stdout())), format)?),
        Some(path) => {
            let mut results = 0;
            let done = replace(path, |file| {
                results = written.write(file, format)?;
                Ok(())
            });
            done.map_err(|error| Exit::Machine.blame(error))?;
            written.end();
            crate::shell::say(&format!("{runs} runs, {results} results in {}", path.display()));
        }
    }
    Ok(None)
}

/// `KEY=VALUE,VALUE`. A comma within parentheses separates no values.
fn parameter(text: &str) -> anyhow::Result<Parameter> {
    let (key, values) = text.split_once('=').ok_or_else(|| {
        Exit::Usage.blame(anyhow!("{text:?} is not KEY=VALUES, such as \"link.0.rate=10 Mbit/s,30 Mbit/s\""))
    })?;
    // The scenario says why an empty value is wrong.
    let empty = values.trim().is_empty().then_some("");
    Ok(Parameter::new(key.trim(), split_outside(values, ',').map(str::trim).chain(empty)))
}
