//! `lastmile sim SCENARIO`: a scenario's measurements in virtual time.

use lastmile::time::{Span, Time};
use lastmile_net::recording::World;
use lastmile_sim::roles::Makers;
use lastmile_sim::runs::simulate;

use crate::files::outputs::OutputArgs;
use crate::roles;
use crate::shell::exit::Exit;
use crate::shell::progress::Progress;
use crate::shell::scenarios::ScenarioArgs;
use crate::shell::{scenarios, signals};

/// Run a scenario's measurements in virtual time, beside the truth from its queues
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Print all columns, in lines of any length
    #[arg(long, short, conflicts_with = "json")]
    verbose: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    outputs: OutputArgs,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Option<Exit>> {
    signals::stop();
    let (scenario, seed) = args.scenario.load()?;
    let (outputs, mut hooks) = args.outputs.open(&args.scenario.name, &scenario, World::Sim, seed)?;
    let progress = Progress::new(&scenario.name, 1_000);
    let (bar, whole) = (progress.bar(), scenario.duration.as_secs_f64());
    hooks.progress = Some(Box::new(move |at| {
        bar.set_position(((at - Time::ZERO).as_secs_f64() / whole * 1_000.0) as u64);
        signals::goes_on()
    }));
    // Simulated stamps have their resolution and no other error.
    let run =
        simulate(&scenario, seed, &Makers::registered(Span::ZERO, seed), hooks).map_err(scenarios::blame)?;
    drop(progress);
    let written = outputs.finish(&run.events, &run.found, run.engine.now());
    let shown = roles::shown(&scenario, &run.found);
    if args.json {
        crate::shell::json(&run.json(&scenario, seed))?;
    } else {
        let lasted = run.engine.now() - Time::ZERO;
        let how = if run.stopped { ", interrupted" } else { "" };
        crate::shell::say(&format!("{}, seed {seed}, {lasted} of virtual time{how}", scenario.name));
        super::say(&shown, &run.network, args.verbose);
    }
    written?;
    Ok(if run.stopped { Some(Exit::Interrupted) } else { shown.iter().find_map(|shown| shown.exit) })
}
