//! `lastmile sim SCENARIO`: a scenario's measurements in virtual time.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, anyhow};
use lastmile::time::Span;
use lastmile_net::recording::World;
use lastmile_sim::flows::{FlowOutcome, as_rate};
use lastmile_sim::pcap::Capture;
use lastmile_sim::run::{Hooks, simulate};
use serde_json::json;

use crate::exit::Exit;
use crate::recorder::{Recorded, ScenarioRecorder};
use crate::result::{Row, exit, table};
use crate::scenarios;
use crate::table::Table;

/// Run a scenario's measurements in virtual time, beside the truth from its queues
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Scenario file, or the name of one that is built in: path, dumbbell
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
    /// Write the decisions to FILE as JSON lines
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// Write everything that the first session's prober was told to FILE, for `lastmile replay` and `lastmile report`
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Write what every host and link carries to FILE, as pcapng
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Option<Exit>> {
    let scenario = scenarios::load(&args.scenario, &args.set)?;
    let seed = args.seed.unwrap_or(scenario.seed);
    let (recorder, mut hooks) = match &args.record {
        None => (None, Hooks::default()),
        Some(file) => {
            let what = Recorded::of(&scenario, World::Sim, Span::ZERO, seed)?;
            let (recorder, hooks) = ScenarioRecorder::create(file, what)?;
            (Some(recorder), hooks)
        }
    };
    let capture = args.pcap.as_deref().map(|file| capture(file, &mut hooks)).transpose()?;
    // Simulated stamps have their resolution and no other error.
    let run =
        simulate(&scenario, seed, &scenarios::maker(Span::ZERO, seed), hooks).map_err(scenarios::blame)?;
    if let Some(recorder) = recorder {
        recorder.finish(&run.events, &run.records)?;
    }
    if let (Some(file), Some(capture)) = (&args.pcap, capture) {
        let capture = capture.lock().unwrap_or_else(PoisonError::into_inner).take();
        capture
            .map_or(Ok(()), Capture::finish)
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    if let Some(file) = &args.events {
        super::write_events(file, &run.events)?;
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

type SharedCapture = Arc<Mutex<Option<Capture<BufWriter<File>>>>>;

/// Has the run captured to a file.
fn capture(file: &Path, hooks: &mut Hooks) -> anyhow::Result<SharedCapture> {
    let out = File::create(file)
        .map_err(|error| Exit::Usage.blame(anyhow!("cannot write {}: {error}", file.display())))?;
    let slot = SharedCapture::default();
    let filled = Arc::clone(&slot);
    hooks.prepare = Some(Box::new(move |scenario, simulation| {
        let capture = Capture::attach(scenario, simulation, BufWriter::new(out));
        *filled.lock().unwrap_or_else(PoisonError::into_inner) = Some(capture);
    }));
    Ok(slot)
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
