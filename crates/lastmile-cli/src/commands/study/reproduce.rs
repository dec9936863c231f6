//! `lastmile reproduce PAPER`: a paper's tables, figures and claims again, beside what the paper has.

use anyhow::anyhow;
use lastmile_study::papers::{self, PAPERS, Request, page, reproduce};

use crate::shell::exit::Exit;
use crate::shell::experiment::{ExperimentArgs, World};
use crate::shell::progress::audience;
use crate::shell::shard::ShardArgs;

/// Make a paper's tables and figures again, beside the paper's own numbers, and decide its claims
///
/// Numbers are means over the runs with 95 % intervals; the paper's own stand in brackets. Medians decide claims. Each case has 10 runs,
/// or those of --runs; in the lab one, or as many as decide a claim.
/// The scenarios and the paper's numbers are in the paper's folder in `crates/lastmile-study/src/papers` of the sources.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Name of the paper; without it the command lists the papers
    paper: Option<String>,
    /// List the paper's tables and figures, with those that can be made; -v has all of each
    #[arg(long, conflicts_with_all = ["shard", "output"])]
    list: bool,
    /// Make only these items of --list, separated by commas
    #[arg(long, value_name = "ITEM", value_delimiter = ',')]
    item: Vec<String>,
    /// sim, or lab in real time (needs --item)
    #[arg(long, value_enum, default_value_t = World::Sim)]
    world: World,
    #[command(flatten)]
    pub(super) shard: ShardArgs,
    #[command(flatten)]
    experiment: ExperimentArgs,
}

impl Args {
    /// True if it needs namespaces.
    pub(crate) fn needs_lab(&self) -> bool {
        self.world == World::Lab
    }
}

/// Real video for the items that need it, where this build has it.
#[cfg(feature = "video")]
fn film() -> Option<papers::Film> {
    Some(papers::Film::new(|make, size, world| {
        crate::roles::film::filmed(make, size, world == lastmile_study::World::Lab)
    }))
}

#[cfg(not(feature = "video"))]
fn film() -> Option<papers::Film> {
    None
}

pub(crate) fn run(args: Args) -> anyhow::Result<Option<Exit>> {
    let Some(name) = &args.paper else {
        let makes = args.shard.output().is_some() || args.experiment.shown.report.is_some();
        if makes || !args.item.is_empty() || args.experiment.runs.is_some() {
            return Err(Exit::Usage.blame(anyhow!(
                "-o, --shard, --report, --item and --runs need a PAPER: without it the papers are listed"
            )));
        }
        let (json, text) = papers::papers();
        args.experiment.shown.print.show(&json, &text.into())?;
        return Ok(None);
    };
    let paper = PAPERS.find(name).map_err(|error| Exit::Usage.blame(error))?;
    if args.list {
        let (json, text) = papers::list(paper);
        args.experiment.shown.print.show(&json, &text)?;
        return Ok(None);
    }
    args.experiment.shown.check(args.shard.output())?;
    let request =
        Request { items: args.item, world: args.world.into(), runs: args.experiment.runs, film: film() };
    let (fleet, pool) = (args.shard.fleet()?, args.experiment.threads.pool()?);
    let Some(made) = pool.install(|| reproduce(paper, &request, &fleet, &audience()))? else {
        return args.shard.done();
    };
    args.experiment.shown.show(&made.document, page::page, &made.text, args.shard.output())?;
    Ok(None)
}
