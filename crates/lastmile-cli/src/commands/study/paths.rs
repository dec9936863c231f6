//! `lastmile paths`: random paths, and what becomes of every number on them.

use anyhow::anyhow;
use lastmile::options::split_outside;
use lastmile_study::paths::{Feature, Request, document, list, measure, page, removed_text, table, text};

use crate::shell::exit::Exit;
use crate::shell::experiment::{ShownArgs, Threads};
use crate::shell::progress::audience;
use crate::shell::shard::ShardArgs;

/// Measure random paths, and count wrong numbers with and without a warning
///
/// Paths have 1 to 4 hops of 0.5 to 200 Mbit/s, several queue disciplines, token buckets, traffic of others, loss, jitter and cells of 802.11.
/// The seed and its number alone decide a path. A wrong number is "held" if its interval holds the truth, "warned" if a warning stands beside
/// it, and else "silent". docs/paths.md describes the paths and defines a wrong number.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Paths without 802.11n
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    runs: usize,
    /// Paths whose last hop is an 802.11n cell, numbered behind the others; they take ten times as long
    #[arg(long, value_name = "N", default_value_t = 0)]
    cells: usize,
    /// Queues of all links mark packets (ECN), as `ecnprobe` needs; FIFOs become RED, CoDel, FQ-CoDel or PIE
    #[arg(long)]
    marking: bool,
    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Methods, such as wbest or 'wbest(trains=4)', several with commas
    #[arg(long, value_name = "NAMES", default_value = "wbest,wbest(trains=4),capprobe")]
    method: String,
    /// Measure paths with this feature again without it, such as fq-codel or loss; several with commas, `all` for each in turn
    #[arg(long, value_name = "FEATURE", value_delimiter = ',')]
    without: Vec<String>,
    /// Measure only the paths with these numbers
    #[arg(long, value_name = "N", value_delimiter = ',')]
    only: Vec<usize>,
    /// Print the scenario of the path with this number, for `lastmile sim`; --without applies
    #[arg(long, value_name = "N", conflicts_with_all = ["list", "json", "report", "only", "shard", "output"])]
    show: Option<usize>,
    /// Print each silent wrong number, with the features without which it is right
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    pub(super) shard: ShardArgs,
    #[command(flatten)]
    shown: ShownArgs,
    #[command(flatten)]
    threads: Threads,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Option<Exit>> {
    let refused = |why: String| Exit::Usage.blame(anyhow!(why));
    let methods = split_outside(&args.method, ',')
        .map(|method| method.parse().map_err(|error| refused(format!("--method {method}: {error}"))));
    let features = match args.without.as_slice() {
        [all] if all == "all" => Feature::ALL.to_vec(),
        some => {
            let parsed = some.iter().map(|name| name.parse());
            parsed.collect::<Result<_, String>>().map_err(|why| refused(format!("--without: {why}")))?
        }
    };
    let request = Request {
        runs: args.runs,
        cells: args.cells,
        marking: args.marking,
        seed: args.seed,
        methods: methods.collect::<anyhow::Result<_>>()?,
        without: Vec::new(),
        only: (!args.only.is_empty()).then_some(args.only),
    };
    let count = request.runs + request.cells;
    if let Some(number) =
        args.show.iter().chain(request.only.iter().flatten()).find(|&&number| number >= count)
    {
        return Err(refused(format!("no path has the number {number}: there are {count}, from 0")));
    }
    if count == 0 {
        return Err(refused("--runs 0 measures nothing: at least 1, or --cells".to_owned()));
    }
    if let Some(number) = args.show {
        let text = Request { without: features, ..request }.scenario(number);
        crate::shell::say(text.trim_end());
        return Ok(None);
    }
    args.shown.check(args.shard.output())?;
    let (fleet, pool) = (args.shard.fleet()?, args.threads.pool()?);
    let found = pool.install(|| measure(&request, &features, &fleet, &audience()))?;
    let Some((measured, removed)) = found else { return args.shard.done() };
    let mut shown = text(&table(&measured));
    if !removed.is_empty() {
        shown.say("");
        shown.table(removed_text(&removed));
    }
    if args.list {
        shown.say("");
        shown.table(list(&measured, &removed));
    }
    let document = document(&request, &measured, &removed)?;
    args.shown.show(&document, page::page, &shown, args.shard.output())?;
    Ok(None)
}
