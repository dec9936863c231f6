//! `lastmile sweep SCENARIO`: every combination of some values, several seeds, on all cores.

use std::collections::BTreeMap;
use std::io::{Write, stdout};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::anyhow;
use clap::ValueEnum;
use indicatif::{ParallelProgressIterator, ProgressBar, ProgressStyle};
use lastmile::time::Span;
use lastmile::units::Bytes;
use lastmile_sim::run::{Hooks, simulate};
use lastmile_sim::sweep::{Parameter, Run, Sweep};
use lastmile_sim::traffic::Arrivals;
use rayon::prelude::*;
use serde_json::{Map, Value, json};

use crate::exit::Exit;
use crate::journal::{self, Journal, Rows};
use crate::result::Row;
use crate::{scenarios, signals};

mod output;

/// Run a scenario with every combination of values and seeds, on all cores
///
/// Results are the same whatever the number of cores: one line for each number, in the order of the combinations.
/// With --output a sweep that was interrupted goes on where it stood when it is called again: finished runs stand in
/// FILE.part meanwhile. `lastmile report FILE` draws the result.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Scenario file, or the name of one that is built in; `lastmile scenarios` lists those
    scenario: String,
    /// A key of the scenario and its values, such as `link.0.rate=10 Mbit/s,30 Mbit/s`; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUES")]
    set: Vec<String>,
    /// Seeds 1 to N; left out, seed 1, or those of `--set seed=...`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seeds: Option<u64>,
    /// Where to write; standard output if left out. What another sweep wrote is not overwritten
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// JSON lines, or CSV
    #[arg(long, value_enum, default_value_t = Format::Jsonl)]
    format: Format,
    /// Cores to use; all if left out
    #[arg(long, visible_alias = "jobs", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
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
    let runs = sweep.runs(&file, &text, &scenarios::check_method).map_err(|e| Exit::Usage.blame(e))?;
    let journal = match &args.output {
        // A device or a pipe keeps nothing to go on from.
        Some(output) if output::is_special(output) => None,
        None => None,
        Some(output) => {
            output::check(output, &sweep, &runs).map_err(|e| Exit::Usage.blame(e))?;
            let all = format!("{sweep:?}");
            let which = journal::fingerprint([env!("CARGO_PKG_VERSION"), &text, &all, &traces(&runs)]);
            Some(Journal::open(output, which, runs.len()).map_err(|e| Exit::Usage.blame(e))?)
        }
    };
    let (journal, mut finished) = journal.map_or((None, BTreeMap::new()), |(j, f)| (Some(j), f));
    if !finished.is_empty() {
        crate::say(&format!("{} of {} runs were finished before", finished.len(), runs.len()));
    }
    signals::stop();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(args.threads.unwrap_or(0).into()).build()?;
    let bar = ProgressBar::new(runs.len() as u64).with_position(finished.len() as u64);
    bar.set_style(ProgressStyle::with_template("{wide_bar} {pos}/{len} {eta}")?);
    let missing: Vec<&Run> = runs.iter().filter(|run| !finished.contains_key(&run.index)).collect();
    let done = |run: &&Run| -> anyhow::Result<(usize, Rows)> {
        let rows = one(run).map_err(|error| match run.label() {
            label if label.is_empty() => error,
            label => error.context(format!("with {label}, seed {}", run.seed)),
        })?;
        if let Some(journal) = &journal {
            journal.add(run.index, &rows)?;
        }
        Ok((run.index, rows))
    };
    let added: Vec<(usize, Rows)> = pool
        .install(|| missing.par_iter().progress_with(bar.clone()).map(done).collect::<anyhow::Result<_>>())?;
    bar.finish_and_clear();
    finished.extend(added);
    // By run's number: neither the cores nor an interruption show.
    let rows: Rows = finished.into_values().flatten().collect();
    match &args.output {
        None => write(&mut stdout().lock(), &rows, args.format)?,
        Some(path) => {
            output::replace(path, |file| write(file, &rows, args.format)).map_err(|error| {
                Exit::Machine.blame(error.context(format!("cannot write {}", path.display())))
            })?;
            if let Some(journal) = journal {
                journal.remove();
            }
            crate::say(&format!("{} runs, {} results in {}", runs.len(), rows.len(), path.display()));
        }
    }
    Ok(None)
}

/// What scenarios read from files beside them, in short: a trace that has changed makes another sweep.
fn traces(runs: &[Run]) -> String {
    let mut text = String::new();
    let mut before = None;
    for run in runs {
        // All seeds of a combination have one scenario.
        if before.replace(Arc::as_ptr(&run.scenario)) == Some(Arc::as_ptr(&run.scenario)) {
            continue;
        }
        for flow in &run.scenario.traffic {
            if let Arrivals::Trace(trace) = &flow.arrivals {
                let packet = |hash: u64, packet: &(Span, Bytes)| {
                    let mixed = hash ^ packet.0.as_nanos() as u64 ^ packet.1.0.rotate_left(40);
                    mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
                };
                text += &format!(" {:x}", trace.packets().iter().fold(0, packet));
            }
        }
    }
    text
}

/// `KEY=VALUE,VALUE`. A comma inside a value cannot be written: no quantity has one.
fn parameter(text: &str) -> anyhow::Result<Parameter> {
    let (key, values) = text.split_once('=').ok_or_else(|| {
        Exit::Usage.blame(anyhow!("{text:?} is not KEY=VALUES, such as \"link.0.rate=10 Mbit/s,30 Mbit/s\""))
    })?;
    Ok(Parameter::new(key.trim(), values.split(',').map(str::trim)))
}

/// The rows of one run: its parameters, its seed, and each number found.
fn one(run: &Run) -> anyhow::Result<Rows> {
    if signals::stopped() {
        return Err(Exit::Interrupted.blame(anyhow!("interrupted")));
    }
    let make = scenarios::maker(Span::ZERO, run.seed);
    let simulated = simulate(&run.scenario, run.seed, &make, Hooks::default()).map_err(scenarios::blame)?;
    let row = |found: Value| {
        let mut all = Map::new();
        all.insert("run".into(), json!(run.index));
        all.insert("seed".into(), json!(run.seed));
        // The seed is there as the number that it is.
        for parameter in run.overrides.iter().filter(|set| set.key != "seed") {
            all.insert(parameter.key.clone(), json!(parameter.value));
        }
        match found {
            Value::Object(found) => all.extend(found),
            other => all.extend([("result".to_owned(), other)]),
        }
        all
    };
    let mut rows = Vec::new();
    for found in simulated.outcomes.iter().filter_map(Row::of_outcome) {
        rows.push(row(serde_json::to_value(found)?));
    }
    for flow in &simulated.network.flows {
        rows.push(row(serde_json::to_value(flow)?));
    }
    Ok(rows)
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const SCENARIO: &str = "name = \"s\"\nduration = \"200 ms\"\n[host.a]\n[host.b]\n[[link]]\nfrom = \"a\"\nto = \"b\"\n\
        rate = \"10 Mbit/s\"\n[[traffic]]\nname = \"t\"\nkind = \"poisson\"\nfrom = \"a\"\nto = \"b\"\nrate = \"4 Mbit/s\"\nsize = \"1500 B\"\n";

    fn sweep(dir: &Path, output: &str, threads: u16) -> anyhow::Result<Option<Exit>> {
        let scenario = dir.join("s.toml");
        std::fs::write(&scenario, SCENARIO)?;
        run(Args {
            scenario: scenario.display().to_string(),
            set: vec!["traffic.t.rate=1 Mbit/s,4 Mbit/s,9 Mbit/s".into()],
            seeds: Some(4),
            output: Some(dir.join(output)),
            format: Format::Jsonl,
            threads: Some(threads),
        })
    }

    #[test]
    fn the_file_is_the_same_whatever_the_cores_and_wherever_it_was_killed() {
        let dir = std::env::temp_dir().join(format!("lastmile-sweep-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        sweep(&dir, "one", 1).unwrap();
        let whole = std::fs::read_to_string(dir.join("one")).unwrap();
        assert_eq!(whole.lines().count(), 12);
        assert!(!Journal::path(&dir.join("one")).exists());
        sweep(&dir, "three", 3).unwrap();
        assert_eq!(std::fs::read_to_string(dir.join("three")).unwrap(), whole);

        // A journal as a kill leaves it: some runs in any order, and half a line.
        let (file, text) = (dir.join("s.toml").display().to_string(), SCENARIO);
        let parameters = vec![parameter("traffic.t.rate=1 Mbit/s,4 Mbit/s,9 Mbit/s").unwrap()];
        let plan = Sweep { parameters, seeds: (1..=4).collect() };
        let runs = plan.runs(&file, text, &scenarios::check_method).unwrap();
        let which =
            journal::fingerprint([env!("CARGO_PKG_VERSION"), text, &format!("{plan:?}"), &traces(&runs)]);
        let (journal, _) = Journal::open(&dir.join("cut"), which, runs.len()).unwrap();
        for index in [7, 0, 11] {
            journal.add(index, &one(&runs[index]).unwrap()).unwrap();
        }
        drop(journal);
        let part = Journal::path(&dir.join("cut"));
        let mut left = std::fs::read(&part).unwrap();
        left.extend_from_slice(b"{\"run\":3,\"rows\":[{\"se");
        std::fs::write(&part, left).unwrap();
        sweep(&dir, "cut", 2).unwrap();
        assert_eq!(std::fs::read_to_string(dir.join("cut")).unwrap(), whole);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn another_trace_is_another_sweep() {
        let (from, to) = (SCENARIO.find("kind = \"poisson\"").unwrap(), SCENARIO.find("rate = \"4").unwrap());
        let ends = SCENARIO[from..to].replace("poisson", "trace");
        let of = |packets: &str| {
            let text = format!("{}{ends}packets = \"{packets}\"\n", &SCENARIO[..from]);
            let sweep = Sweep { seeds: vec![1, 2], ..Sweep::default() };
            traces(&sweep.runs("s.toml", &text, &scenarios::check_method).unwrap())
        };
        assert_eq!(of("0 100"), of("0 100"));
        assert_eq!(of("0 100").split_whitespace().count(), 1);
        assert!(of("0 100") != of("0 101") && of("0 100") != of("0.1 100"));
    }
}
