//! `lastmile sweep SCENARIO`: every combination of some values, several seeds, on all cores.

use std::io::{BufWriter, stdout};
use std::path::PathBuf;

use anyhow::anyhow;
use clap::ValueEnum;
use lastmile::time::Span;
use lastmile::units::Bytes;
use lastmile_sim::network::traffic::Arrivals;
use lastmile_sim::network::wlan::StationTrace;
use lastmile_sim::runs::sweep::{Parameter, Plan, Run, Sweep};
use lastmile_sim::scenario::{Scenario, TrafficSpec};
use rayon::prelude::*;
use serde_json::{Map, Value, json};

use crate::exit::Exit;
use crate::experiment::Threads;
use crate::journal::{self, Journal, Rows};
use crate::progress::Progress;
use crate::replace::{is_special, replace};
use crate::{roles, scenarios, signals};

mod output;
mod recent;

use output::write;
use recent::Recent;

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
    let plan = sweep.plan(&file, &text).map_err(|e| Exit::Usage.blame(e))?;
    signals::stop();
    let pool = args.threads.pool()?;
    let traces = pool.install(|| checked(&plan))?;
    let journal = match &args.output {
        // A device or a pipe keeps nothing to go on from.
        Some(output) if !is_special(output) => {
            output::check(output, &plan).map_err(|e| Exit::Usage.blame(e))?;
            Journal::open(output, fingerprint(&text, &plan, traces), plan.runs())
                .map_err(|e| Exit::Usage.blame(e))?
        }
        _ => Journal::temporary(plan.runs()).map_err(|e| Exit::Machine.blame(e))?,
    };
    if journal.finished() > 0 {
        crate::say(&format!("{} of {} runs were finished before", journal.finished(), plan.runs()));
    }
    let progress = Progress::new("runs", plan.runs() as u64);
    let bar = progress.bar().with_position(journal.finished() as u64);
    let scenarios = Recent::new(pool.current_num_threads());
    pool.install(|| {
        (0..plan.runs()).into_par_iter().filter(|&run| !journal.has(run)).try_for_each(|index| {
            let run = plan.run(index, scenarios.of(&plan, plan.combination_of(index))?);
            let rows = one(&run).map_err(|error| match run.label() {
                label if label.is_empty() => error,
                label => error.context(format!("with {label}, seed {}", run.seed)),
            })?;
            journal.add(index, &rows)?;
            bar.inc(1);
            anyhow::Ok(())
        })
    })?;
    drop(progress);
    match &args.output {
        None => {
            write(&mut BufWriter::new(stdout().lock()), &journal, plan.sweep(), args.format).map(|_| ())?
        }
        Some(path) => {
            let mut results = 0;
            let written = replace(path, |file| {
                results = write(file, &journal, plan.sweep(), args.format)?;
                Ok(())
            });
            written.map_err(|error| Exit::Machine.blame(error))?;
            journal.remove();
            crate::say(&format!("{} runs, {results} results in {}", plan.runs(), path.display()));
        }
    }
    Ok(None)
}

/// Combinations that are checked before the first of them is looked at for errors.
const BATCH: usize = 1_024;

/// Checks every combination before any is run; what is wrong is that with the first one that is. Gives a number that
/// changes with what scenarios read from files beside them: a trace that has changed makes another sweep.
fn checked(plan: &Plan<'_>) -> anyhow::Result<u64> {
    let progress = Progress::new("checking combinations", plan.combinations() as u64);
    let bar = progress.bar();
    let mut all = 0;
    for first in (0..plan.combinations()).step_by(BATCH) {
        if signals::stopped() {
            return Err(Exit::Interrupted.blame(anyhow!("interrupted")));
        }
        let last = (first + BATCH).min(plan.combinations());
        let traces: Vec<_> = (first..last)
            .into_par_iter()
            .map(|combination| plan.scenario(combination).map(|scenario| traces(&scenario)))
            .collect();
        for found in traces {
            all = mixed(all, found.map_err(|error| Exit::Usage.blame(error))?);
        }
        bar.inc((last - first) as u64);
    }
    Ok(all)
}

/// Which sweep it is.
fn fingerprint(text: &str, plan: &Plan<'_>, traces: u64) -> u64 {
    let all = format!("{:?} {traces:x}", plan.sweep());
    journal::fingerprint([env!("CARGO_PKG_VERSION"), text, &all])
}

fn mixed(hash: u64, more: u64) -> u64 {
    (hash ^ more).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

/// What a scenario reads from files beside it, in short.
fn traces(scenario: &Scenario) -> u64 {
    let packet =
        |hash, packet: &(Span, Bytes)| mixed(hash, packet.0.as_nanos() as u64 ^ packet.1.0.rotate_left(40));
    let flow = |hash, flow: &TrafficSpec| match &flow.arrivals {
        Arrivals::Trace(trace) => trace.packets().iter().fold(hash, packet),
        _ => hash,
    };
    let links = scenario.links.iter().filter_map(|link| link.config.trace.as_ref());
    let stations = scenario.wlans.iter().flat_map(|wlan| &wlan.config.station);
    let stations = stations.filter_map(|station| match station.trace.as_ref()? {
        StationTrace::Open(trace) => Some(trace),
        StationTrace::Named(_) => None,
    });
    links
        .chain(stations)
        .fold(scenario.traffic.iter().fold(0, flow), |hash, trace| mixed(hash, trace.fingerprint()))
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
    let simulated = scenarios::simulated(&run.scenario, run.seed)?;
    let row = |kind: &str, found: Value| {
        let mut all = Map::new();
        all.insert("run".into(), json!(run.index));
        all.insert("seed".into(), json!(run.seed));
        // The seed is there as the number that it is.
        for parameter in run.overrides.iter().filter(|set| set.key != "seed") {
            all.insert(parameter.key.clone(), json!(parameter.value));
        }
        all.insert("row".into(), json!(kind));
        match found {
            Value::Object(found) => all.extend(found),
            other => all.extend([("result".to_owned(), other)]),
        }
        all
    };
    let mut rows = Vec::new();
    for shown in roles::shown(&run.scenario, &simulated.found) {
        rows.extend(shown.rows.into_iter().map(|found| row(shown.row, found)));
    }
    let network = &simulated.network;
    for flow in &network.flows {
        rows.push(row("flow", serde_json::to_value(flow)?));
    }
    for link in &network.links {
        rows.push(row("link", serde_json::to_value(link)?));
    }
    for wlan in &network.wlans {
        rows.push(row("wlan", serde_json::to_value(wlan)?));
    }
    Ok(rows)
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
            threads: Threads { threads: Some(threads) },
        })
    }

    #[test]
    fn the_file_is_the_same_whatever_the_cores_and_wherever_it_was_killed() {
        let dir = std::env::temp_dir().join(format!("lastmile-sweep-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        sweep(&dir, "one", 1).unwrap();
        let whole = std::fs::read_to_string(dir.join("one")).unwrap();
        assert_eq!(whole.lines().count(), 3 * 4 * 3, "a flow and two links of each run");
        assert!(!Journal::path(&dir.join("one")).exists());
        sweep(&dir, "three", 3).unwrap();
        assert_eq!(std::fs::read_to_string(dir.join("three")).unwrap(), whole);

        // A journal as a kill leaves it: some runs in any order, and half a line.
        let (file, text) = (dir.join("s.toml").display().to_string(), SCENARIO);
        let parameters = vec![parameter("traffic.t.rate=1 Mbit/s,4 Mbit/s,9 Mbit/s").unwrap()];
        let plan = Sweep { parameters, seeds: (1..=4).collect() };
        let plan = plan.plan(&file, text).unwrap();
        let which = fingerprint(text, &plan, checked(&plan).unwrap());
        let journal = Journal::open(&dir.join("cut"), which, plan.runs()).unwrap();
        for index in [7, 0, 11] {
            let scenario = plan.scenario(plan.combination_of(index)).unwrap();
            journal.add(index, &one(&plan.run(index, scenario.into())).unwrap()).unwrap();
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
            checked(&sweep.plan("s.toml", &text).unwrap()).unwrap()
        };
        assert_eq!(of("0 100"), of("0 100"));
        assert!(of("0 100") != of("0 101") && of("0 100") != of("0.1 100"));
    }
}
