//! `lastmile conformance`: every registered name in every world, recorded and replayed.

use anyhow::anyhow;
use lastmile::report::Direction;
use lastmile::time::Span;
use lastmile_net::lab::LabError;
use lastmile_net::lab::run::{LabConfig, LabRunError, run as run_lab};
use lastmile_net::recording::{Reader, World};
use lastmile_sim::roles::Makers;
use lastmile_sim::runs::simulate;
use lastmile_sim::scenario::Scenario;
use serde::Serialize;

use crate::files::recorder::ScenarioRecorder;
use crate::files::replayed::replay;
use crate::roles::{self, Buffer, Case, Recorded};
use crate::shell::exit::Exit;
use crate::shell::options::KERNEL_NOISE;
use crate::shell::{scenarios, signals};
use lastmile_report::text::Table;

/// Run every method, classifier and controller and both ends of a stream in all three worlds, and replay the recordings
///
/// Each name has one path in the simulator, in the lab and over loopback sockets. Replaying a recording in virtual
/// time must give the live run's decisions byte for byte.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these names
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Run each method with its defaults instead of its brief options
    #[arg(long)]
    full: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Row {
    kind: &'static str,
    name: &'static str,
    world: World,
    direction: Direction,
    /// "same", "differs", or "skipped": this world cannot have it here.
    verdict: &'static str,
    decisions: usize,
    inputs: u64,
    reason: Option<String>,
}

/// The canonical path: 10 Mbit/s with Poisson cross traffic, clocks that disagree, and a direction back that is narrower.
const CANONICAL: &str = r#"
name = "conformance"
duration = "20 s"
seed = 1
[host.sender]
clock = { offset = "1 s", skew_ppm = -20.0 }
[host.receiver]
clock = { offset = "3 s", skew_ppm = 25.0 }
[[link]]
from = "sender"
to = "receiver"
rate = "10 Mbit/s"
delay = "2 ms"
queue = "60 kB"
back = { rate = "8 Mbit/s" }
[[traffic]]
name = "cross"
kind = "poisson"
from = "sender"
to = "receiver"
rate = "4 Mbit/s"
size = "1500 B"
"#;

pub(crate) fn run(args: Args) -> anyhow::Result<Option<Exit>> {
    signals::stop();
    let mut rows = Vec::new();
    let mut cases = roles::cases(args.full);
    if let Some(unknown) = args.names.iter().find(|name| cases.iter().all(|case| case.name != **name)) {
        return Err(Exit::Usage.blame(anyhow!(
            "nothing is called {unknown:?}; see lastmile methods, classifiers, controllers and sources"
        )));
    }
    cases.retain(|case| args.names.is_empty() || args.names.iter().any(|name| name == case.name));
    for some in cases.chunks(AT_ONCE) {
        let all = std::thread::scope(|scope| {
            let worlds = [World::Sim, World::Lab, World::Real];
            let runs = some.iter().flat_map(|case| worlds.map(|world| (case, world)));
            let running: Vec<_> = runs.map(|(case, world)| scope.spawn(move || row(case, world))).collect();
            let ended = running.into_iter().map(|run| run.join());
            ended.map(|row| row.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect::<Vec<_>>()
        });
        if signals::stopped() {
            return Err(Exit::Interrupted.blame(anyhow!("interrupted")));
        }
        for row in all {
            rows.push(row?);
        }
    }
    let bad = rows.iter().filter(|row| row.verdict == "differs").count();
    if args.json {
        crate::shell::json(&rows)?;
    } else {
        let mut table =
            Table::new(&["kind", "name", "direction", "world", "replay", ">inputs", ">decisions", "reason"]);
        for row in &rows {
            table.row([
                row.kind.to_owned(),
                row.name.to_owned(),
                row.direction.to_string(),
                row.world.to_string(),
                row.verdict.to_owned(),
                row.inputs.to_string(),
                row.decisions.to_string(),
                row.reason.clone().unwrap_or_default(),
            ]);
        }
        crate::shell::say_text(&table.into(), false);
        let skipped = rows.iter().filter(|row| row.verdict == "skipped").count();
        crate::shell::say(&format!("{} rows, {bad} differ, {skipped} skipped with a reason", rows.len()));
    }
    Ok((bad > 0).then_some(Exit::NoResult))
}

fn row(case: &Case, world: World) -> anyhow::Result<Row> {
    let mut row = Row {
        kind: case.kind,
        name: case.name,
        world,
        direction: case.direction,
        verdict: "skipped",
        decisions: 0,
        inputs: 0,
        reason: None,
    };
    let buffer = match record(case, world)? {
        Ok((buffer, note)) => {
            row.reason = note;
            buffer
        }
        Err(why) => {
            row.reason = Some(why);
            return Ok(row);
        }
    };
    let bytes = buffer.take();
    let reader = Reader::new("the recording", bytes.as_slice())?;
    row.inputs = bytes.windows(9).filter(|w| w == b"\"input\":{" || w == b"\"input\":\"").count() as u64;
    let replayed = replay(reader, None)?;
    row.decisions = replayed.recorded.len();
    match replayed.difference()? {
        None if replayed.cut.is_some() => {
            row.verdict = "differs";
            row.reason = replayed.cut;
        }
        None if replayed.recorded.is_empty() => {
            row.verdict = "differs";
            row.reason = Some("the live run decided nothing".into());
        }
        None => row.verdict = "same",
        Some(difference) => {
            row.verdict = "differs";
            row.reason = Some(difference);
        }
    }
    Ok(row)
}

/// A finished recording with a remark, or why this world cannot have it here.
type Recording = Result<(Buffer, Option<String>), String>;

fn record(case: &Case, world: World) -> anyhow::Result<Recording> {
    match world {
        World::Sim | World::Lab => record_scenario(case, world),
        World::Real => {
            let buffer = (case.over_loopback)();
            let buffer = buffer.map_err(|error| error.context(format!("{} {}", case.kind, case.name)))?;
            Ok(Ok((buffer, None)))
        }
    }
}

fn record_scenario(case: &Case, world: World) -> anyhow::Result<Recording> {
    let noise = if world == World::Lab { KERNEL_NOISE } else { Span::ZERO };
    let text = [CANONICAL, &case.table].concat();
    let scenario = Scenario::parse_with("conformance", &text, &[])?;
    let mut late = None;
    // A lab that was late is tried again; even then its recording must replay.
    for _ in 0..TRIES {
        let buffer = Buffer::default();
        let what = Recorded { world, noise, method_seed: 0 };
        let (recorder, hooks) = ScenarioRecorder::begin(buffer.clone(), &scenario, case.which, what);
        let make = Makers::registered(noise, 0);
        let (events, found, refused) = if world == World::Sim {
            let run = simulate(&scenario, 1, &make, hooks).map_err(scenarios::blame)?;
            (run.events, run.found, None)
        } else {
            match run_lab(&scenario, &make, LabConfig { seed: 1, realtime: false, hooks }, signals::stop()) {
                Ok(run) => (run.events, run.found, run.lateness.refused.map(|why| why.to_string())),
                Err(LabRunError::Lab(
                    error @ (LabError::NeedNamespaces { .. } | LabError::NeedTun { .. }),
                )) => {
                    return Ok(Err(error.to_string()));
                }
                Err(error) => return Err(super::lab::blame(error)),
            }
        };
        recorder.finish(&events, &found)?;
        match refused {
            None => return Ok(Ok((buffer, None))),
            Some(why) => late = Some((buffer, Some(format!("late {TRIES} times: {why}")))),
        }
    }
    Ok(late.ok_or_else(|| "never run".into()))
}

/// Names at a time, each in all worlds: in two of them most of the time is waiting.
const AT_ONCE: usize = 2;
/// Runs of a lab that is late.
const TRIES: usize = 3;
