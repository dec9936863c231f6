//! `lastmile sim SCENARIO`: a scenario's measurements in virtual time.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::anyhow;
use lastmile::time::{Span, Time};
use lastmile_net::recording::World;
use lastmile_sim::events::EventLog;
use lastmile_sim::flows::{FlowOutcome, as_rate};
use lastmile_sim::pcap::{Capture, Select, interfaces};
use lastmile_sim::run::{Hooks, simulate};
use lastmile_sim::scenario::{Scenario, Simulation};
use serde_json::json;

use crate::exit::Exit;
use crate::progress::Progress;
use crate::recorder::{Recorded, ScenarioRecorder};
use crate::result::{Row, exit, table};
use crate::scenarios;
use crate::table::Table;

/// Run a scenario's measurements in virtual time, beside the truth from its queues
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Scenario file, or the name of one that is built in; `lastmile scenarios` lists those
    scenario: String,
    /// A key of the scenario and its value, such as `duration=5 s` or `traffic.cross.rate=2 Mbit/s`; may be given several
    /// times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Draws all random numbers; the scenario's own if left out
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write the decisions, every lost packet with its cause, and the planned changes to FILE as JSON lines
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// Write everything that the first session's prober was told to FILE, for `lastmile replay` and `lastmile report`
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Write what every host, link and WLAN carries to FILE, as pcapng
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Capture only on these: a host's name, FROM>TO of a link, wlan/STATION; several with commas. Wireshark's analysis
    /// of TCP takes a packet that it sees on several interfaces for a retransmission
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "pcap")]
    pcap_at: Vec<String>,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Option<Exit>> {
    let scenario = scenarios::load(&args.scenario, &args.set)?;
    files_apart(&args)?;
    let seed = args.seed.unwrap_or(scenario.seed);
    let (recorder, mut hooks) = match &args.record {
        None => (None, Hooks::default()),
        Some(file) => {
            let what = Recorded::of(&scenario, World::Sim, Span::ZERO, seed)?;
            let (recorder, hooks) = ScenarioRecorder::create(file, what)?;
            (Some(recorder), hooks)
        }
    };
    let capture =
        args.pcap.as_deref().map(|file| capture(file, &args.pcap_at, &scenario, &mut hooks)).transpose()?;
    let log = args.events.as_deref().map(|file| log(file, &mut hooks)).transpose()?;
    let progress = Progress::new(&scenario.name, 1_000);
    let (bar, whole) = (progress.bar(), scenario.duration.as_secs_f64());
    hooks.progress = Some(Box::new(move |at| {
        bar.set_position(((at - Time::ZERO).as_secs_f64() / whole * 1_000.0) as u64);
    }));
    // Simulated stamps have their resolution and no other error.
    let run =
        simulate(&scenario, seed, &scenarios::maker(Span::ZERO, seed), hooks).map_err(scenarios::blame)?;
    drop(progress);
    if let Some(recorder) = recorder {
        recorder.finish(&run.events, &run.records)?;
    }
    if let (Some(file), Some(capture)) = (&args.pcap, capture) {
        let capture = capture.lock().unwrap_or_else(PoisonError::into_inner).take();
        capture.map_or(Ok(()), Capture::finish).map_err(|error| cannot_write(file, &error))?;
    }
    if let (Some(file), Some(log)) = (&args.events, log) {
        let log = log.lock().unwrap_or_else(PoisonError::into_inner).take();
        log.map_or(Ok(()), |log| log.finish(run.engine.now())).map_err(|error| cannot_write(file, &error))?;
    }
    let rows: Vec<Row> = run.outcomes.iter().filter_map(Row::of_outcome).collect();
    let links: Vec<_> = run
        .engine
        .elements()
        .filter_map(|(node, _)| Some((node, run.engine.link(node)?)))
        .zip(&scenario.links)
        .map(|((_, link), spec)| {
            let counted = link.counters();
            json!({
                "from": scenario.vertex_name(spec.from), "to": scenario.vertex_name(spec.to),
                "packets": counted.packets, "dropped": counted.drops,
            })
        })
        .collect();
    if args.json {
        let text = json!({
            "world": "sim", "scenario": scenario.name, "seed": seed,
            "simulated_seconds": scenario.duration.as_secs_f64(), "results": rows, "flows": run.flows, "links": links,
        });
        crate::say(&serde_json::to_string_pretty(&text)?);
    } else {
        crate::say(&format!("{}, seed {seed}, {} of virtual time", scenario.name, scenario.duration));
        if !rows.is_empty() {
            crate::say(table(&rows).trim_end());
        }
        if !run.flows.is_empty() {
            crate::say(flow_table(&run.flows).trim_end());
        }
        if rows.is_empty() && run.flows.is_empty() {
            links.iter().for_each(|link| crate::say(&link.to_string()));
        }
    }
    Ok(if scenario.measures.is_empty() { None } else { exit(&rows) })
}

/// What is filled once the simulation is there.
type Slot<T> = Arc<Mutex<Option<T>>>;

/// Has the run captured to a file.
fn capture(
    file: &Path,
    at: &[String],
    scenario: &Scenario,
    hooks: &mut Hooks,
) -> anyhow::Result<Slot<Capture<BufWriter<File>>>> {
    let select = if at.is_empty() { Select::All } else { Select::Only(at.to_vec()) };
    if let Some(unknown) = select.unknown(scenario) {
        let known = interfaces(scenario).join(", ");
        return Err(Exit::Usage.blame(anyhow!("--pcap-at: there is no {unknown:?}; there are: {known}")));
    }
    let out = create(file)?;
    Ok(prepared(hooks, move |scenario, simulation| Capture::attach(scenario, simulation, &select, out)))
}

/// Has the run's events written to a file.
fn log(file: &Path, hooks: &mut Hooks) -> anyhow::Result<Slot<EventLog<BufWriter<File>>>> {
    let out = create(file)?;
    Ok(prepared(hooks, move |scenario, simulation| EventLog::attach(scenario, simulation, out)))
}

/// No file is written twice, or over the scenario.
fn files_apart(args: &Args) -> anyhow::Result<()> {
    let scenario = Path::new(&args.scenario);
    let files = [
        ("the scenario", Some(scenario)),
        ("--events", args.events.as_deref()),
        ("--record", args.record.as_deref()),
        ("--pcap", args.pcap.as_deref()),
    ];
    // Where a file exists its canonical path tells links apart; one that does not is nobody else's but by name.
    let place = |file: &Path| std::fs::canonicalize(file).or_else(|_| std::path::absolute(file)).ok();
    // What is no file, such as a terminal or /dev/null, may be given more than once.
    let files: Vec<_> = files
        .into_iter()
        .filter_map(|(what, file)| Some((what, place(file?)?)))
        .filter(|(_, file)| file.is_file() || !file.exists())
        .collect();
    for (index, (what, file)) in files.iter().enumerate() {
        if let Some((other, _)) = files[..index].iter().find(|(_, before)| before == file) {
            return Err(Exit::Usage.blame(anyhow!("{what}: {} is {other}'s", file.display())));
        }
    }
    Ok(())
}

fn create(file: &Path) -> anyhow::Result<BufWriter<File>> {
    let created = File::create(file);
    let blamed = |error| Exit::Usage.blame(anyhow!("cannot write {}: {error}", file.display()));
    created.map(BufWriter::new).map_err(blamed)
}

fn cannot_write(file: &Path, error: &std::io::Error) -> anyhow::Error {
    let file = file.display();
    Exit::Machine.blame(anyhow!("cannot write {file}, which is not complete: {error}"))
}

/// Has something attached to the simulation before it runs, after what was asked for before.
fn prepared<T: Send + 'static>(
    hooks: &mut Hooks,
    attach: impl FnOnce(&Scenario, &mut Simulation) -> T + Send + 'static,
) -> Slot<T> {
    let slot = Slot::default();
    let filled = Arc::clone(&slot);
    let before = hooks.prepare.take();
    hooks.prepare = Some(Box::new(move |scenario, simulation| {
        if let Some(before) = before {
            before(scenario, simulation);
        }
        *filled.lock().unwrap_or_else(PoisonError::into_inner) = Some(attach(scenario, simulation));
    }));
    slot
}

/// What the scenario's traffic got.
fn flow_table(flows: &[FlowOutcome]) -> String {
    let columns =
        ["flow", "kind", "from", "to", ">goodput (IP)", ">sent", ">received", "lost", ">delay", ">longest"];
    let mut table = Table::new(&columns);
    let milliseconds =
        |seconds: Option<f64>| seconds.map_or_else(|| "-".to_owned(), |s| format!("{:.2} ms", s * 1e3));
    for flow in flows {
        let lost: Vec<_> = flow.lost.iter().map(|(cause, packets)| format!("{packets} {cause}")).collect();
        table.row([
            flow.flow.clone(),
            flow.kind.to_owned(),
            flow.from.clone(),
            flow.to.clone(),
            as_rate(flow.goodput_bps).to_string(),
            flow.sent.to_string(),
            flow.received.to_string(),
            if lost.is_empty() { "-".to_owned() } else { lost.join(", ") },
            milliseconds(flow.delay_mean_s),
            milliseconds(flow.delay_max_s),
        ]);
    }
    table.text()
}
