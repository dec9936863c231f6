//! `lastmile sim SCENARIO`: a scenario's measurements in virtual time.

use std::path::PathBuf;

use lastmile::event::Event;
use lastmile::time::Span;
use lastmile_net::recording::World;
use lastmile_sim::run::{Hooks, sessions, simulate};
use lastmile_sim::scenario::Scenario;
use serde_json::json;

use crate::exit::Exit;
use crate::recorder::{Recorded, ScenarioRecorder};
use crate::result::{Row, exit, table};
use crate::scenarios;

/// Run a scenario's measurements in virtual time, beside the truth from its queues
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Scenario file, or the name of one that is built in: path, dumbbell
    scenario: String,
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
}

pub(crate) fn run(args: Args) -> anyhow::Result<Option<Exit>> {
    let scenario = scenarios::load(&args.scenario, &[])?;
    let seed = args.seed.unwrap_or(scenario.seed);
    let (recorder, hooks) = match &args.record {
        None => (None, Hooks::default()),
        Some(file) => {
            let what = Recorded::of(&scenario, World::Sim, Span::ZERO, seed)?;
            let (recorder, hooks) = ScenarioRecorder::create(file, what)?;
            (Some(recorder), hooks)
        }
    };
    // Simulated stamps have their resolution and no other error.
    let run =
        simulate(&scenario, seed, &scenarios::maker(Span::ZERO, seed), hooks).map_err(scenarios::blame)?;
    if let Some(recorder) = recorder {
        let own: Vec<_> = own_events(&scenario, &run.events);
        recorder.finish(&own, &run.records)?;
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
            "simulated_seconds": scenario.duration.as_secs_f64(), "results": rows, "links": links,
        });
        crate::say(&serde_json::to_string_pretty(&text)?);
    } else {
        crate::say(&format!("{}, seed {seed}, {} of virtual time", scenario.name, scenario.duration));
        if rows.is_empty() {
            links.iter().for_each(|link| crate::say(&link.to_string()));
        } else {
            crate::say(table(&rows).trim_end());
        }
    }
    Ok(if scenario.measures.is_empty() { None } else { exit(&rows) })
}

/// The decisions of the first session's initiator.
fn own_events(scenario: &Scenario, events: &[Event]) -> Vec<Event> {
    let first = sessions(scenario).ok().and_then(|sessions| sessions.first().map(|s| s.from));
    events.iter().filter(|e| Some(usize::from(e.node)) == first).cloned().collect()
}
