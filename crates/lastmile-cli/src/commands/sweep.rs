//! `lastmile sweep SCENARIO`: every combination of some values, several seeds, on all cores.

use std::fs::File;
use std::io::{BufWriter, Write, stdout};
use std::path::PathBuf;

use anyhow::{Context, anyhow};
use clap::ValueEnum;
use indicatif::{ParallelProgressIterator, ProgressBar, ProgressStyle};
use lastmile::time::Span;
use lastmile_sim::run::{Hooks, simulate};
use lastmile_sim::sweep::{Parameter, Run, Sweep};
use rayon::prelude::*;
use serde_json::{Map, Value, json};

use crate::exit::Exit;
use crate::result::Row;
use crate::{scenarios, signals};

/// Run a scenario with every combination of values and seeds, on all cores
///
/// Results are the same whatever the number of cores: one line for each number, in the order of the combinations.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Scenario file, or the name of one that is built in: path, dumbbell
    scenario: String,
    /// A key of the scenario and its values, such as `link.0.rate=10 Mbit/s,30 Mbit/s`; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUES")]
    set: Vec<String>,
    /// Seeds 1 to N
    #[arg(long, value_name = "N", default_value_t = 1)]
    seeds: u64,
    /// Where to write; standard output if left out
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// JSON lines, or CSV
    #[arg(long, value_enum, default_value_t = Format::Jsonl)]
    format: Format,
    /// Cores to use; all if left out
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Jsonl,
    Csv,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Option<Exit>> {
    let (file, text) = scenarios::text(&args.scenario)?;
    let parameters = args.set.iter().map(|set| parameter(set)).collect::<anyhow::Result<_>>()?;
    let sweep = Sweep { parameters, seeds: (1..=args.seeds.max(1)).collect() };
    let runs = sweep.runs(&file, &text, &scenarios::check_method).map_err(|e| Exit::Usage.blame(e))?;
    signals::stop();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(args.threads.unwrap_or(0)).build()?;
    let bar = ProgressBar::new(runs.len() as u64);
    bar.set_style(ProgressStyle::with_template("{wide_bar} {pos}/{len} {eta}")?);
    let results: Vec<Vec<Map<String, Value>>> =
        pool.install(|| runs.par_iter().progress_with(bar.clone()).map(one).collect::<anyhow::Result<_>>())?;
    bar.finish_and_clear();
    let rows: Vec<Map<String, Value>> = results.into_iter().flatten().collect();
    match &args.output {
        None => write(&mut stdout().lock(), &rows, args.format)?,
        Some(path) => {
            let cannot = || format!("cannot write {}", path.display());
            let file = File::create(path).with_context(cannot).map_err(|e| Exit::Usage.blame(e))?;
            let mut file = BufWriter::new(file);
            write(&mut file, &rows, args.format)?;
            file.flush().with_context(cannot)?;
            crate::say(&format!("{} runs, {} results in {}", runs.len(), rows.len(), path.display()));
        }
    }
    Ok(None)
}

/// `KEY=VALUE,VALUE`. A comma inside a value cannot be written: no quantity has one.
fn parameter(text: &str) -> anyhow::Result<Parameter> {
    let (key, values) = text.split_once('=').ok_or_else(|| {
        Exit::Usage.blame(anyhow!("{text:?} is not KEY=VALUES, such as \"link.0.rate=10 Mbit/s,30 Mbit/s\""))
    })?;
    Ok(Parameter::new(key.trim(), values.split(',').map(str::trim)))
}

/// The rows of one run: its parameters, its seed, and each number found.
fn one(run: &Run) -> anyhow::Result<Vec<Map<String, Value>>> {
    if signals::stopped() {
        return Err(Exit::Interrupted.blame(anyhow!("interrupted")));
    }
    let make = scenarios::maker(Span::ZERO, run.seed);
    let simulated = simulate(&run.scenario, run.seed, &make, Hooks::default()).map_err(scenarios::blame)?;
    let row = |row: Row| -> anyhow::Result<Map<String, Value>> {
        let mut all = Map::new();
        all.insert("run".into(), json!(run.index));
        all.insert("seed".into(), json!(run.seed));
        for parameter in &run.overrides {
            all.insert(parameter.key.clone(), json!(parameter.value));
        }
        match serde_json::to_value(row)? {
            Value::Object(found) => all.extend(found),
            other => all.extend([("result".to_owned(), other)]),
        }
        Ok(all)
    };
    simulated.outcomes.iter().filter_map(Row::of_outcome).map(row).collect()
}

fn write(out: &mut impl Write, rows: &[Map<String, Value>], format: Format) -> anyhow::Result<()> {
    match format {
        Format::Jsonl => {
            for row in rows {
                serde_json::to_writer(&mut *out, row)?;
                out.write_all(b"\n")?;
            }
        }
        Format::Csv => {
            let mut columns: Vec<&String> = Vec::new();
            for key in rows.iter().flat_map(Map::keys) {
                if !columns.contains(&key) {
                    columns.push(key);
                }
            }
            let mut csv = csv::Writer::from_writer(out);
            csv.write_record(&columns)?;
            for row in rows {
                let cell = |column: &&String| match row.get(*column) {
                    None | Some(Value::Null) => String::new(),
                    Some(Value::String(text)) => text.clone(),
                    Some(other) => other.to_string(),
                };
                csv.write_record(columns.iter().map(cell))?;
            }
            csv.flush()?;
        }
    }
    Ok(())
}
