//! `lastmile sim SCENARIO`: a scenario's measurements in virtual time.

use lastmile::time::{Span, Time};
use lastmile_net::recording::World;
use lastmile_sim::runs::simulate;

use crate::exit::Exit;
use crate::outputs::OutputArgs;
use crate::progress::Progress;
use crate::ran::Ran;
use crate::{roles, scenarios, signals};

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
    #[command(flatten)]
    outputs: OutputArgs,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Option<Exit>> {
    signals::stop();
    let scenario = scenarios::load(&args.scenario, &args.set)?;
    let seed = args.seed.unwrap_or(scenario.seed);
    let (outputs, mut hooks) = args.outputs.open(&args.scenario, &scenario, World::Sim, seed)?;
    let progress = Progress::new(&scenario.name, 1_000);
    let (bar, whole) = (progress.bar(), scenario.duration.as_secs_f64());
    hooks.progress = Some(Box::new(move |at| {
        bar.set_position(((at - Time::ZERO).as_secs_f64() / whole * 1_000.0) as u64);
        signals::goes_on()
    }));
    // Simulated stamps have their resolution and no other error.
    let run = simulate(&scenario, seed, &roles::maker(Span::ZERO, seed), hooks).map_err(scenarios::blame)?;
    drop(progress);
    let written = outputs.finish(&run.events, &run.found, run.engine.now());
    let ran = Ran::new(&scenario, &run.found, &run.network);
    let lasted = run.engine.now() - Time::ZERO;
    if args.json {
        let mut all = ran.json("sim", &scenario.name, seed)?;
        all.insert("simulated_seconds".into(), lasted.as_secs_f64().into());
        all.insert("interrupted".into(), run.stopped.into());
        crate::say(&serde_json::to_string_pretty(&all)?);
    } else {
        let how = if run.stopped { ", interrupted" } else { "" };
        crate::say(&format!("{}, seed {seed}, {lasted} of virtual time{how}", scenario.name));
        ran.say();
    }
    written?;
    Ok(if run.stopped { Some(Exit::Interrupted) } else { ran.exit() })
}
