//! `lastmile paths`: random paths, and what becomes of every number on them.

use anyhow::anyhow;
use lastmile_study::paths::{Feature, Request, list, measure, table, text};
use serde_json::json;

use crate::shell::exit::Exit;
use crate::shell::experiment::Threads;
use crate::shell::progress::audience;

/// Measure random paths and say how often numbers are wrong, and whether they say so
///
/// Paths have 1 to 4 hops of 0.5 to 200 Mbit/s, several queue disciplines, token buckets, other traffic, loss, jitter and cells of 802.11. A
/// path is a function of the seed and its number alone. docs/paths.md says what paths are made of, and what right and wrong are.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Paths without 802.11n
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    runs: usize,
    /// Paths whose last hop is an 802.11n cell; they take long
    #[arg(long, value_name = "N", default_value_t = 0)]
    cells: usize,
    /// Draws all random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How to measure, such as wbest or 'wbest(trains=4)', several with commas
    #[arg(long, value_name = "NAMES", default_value = "wbest,wbest(trains=4),capprobe")]
    method: String,
    /// Measure only paths with these numbers
    #[arg(long, value_name = "N", value_delimiter = ',')]
    only: Vec<usize>,
    /// Print the scenario of the path with this number, to run with `lastmile sim`
    #[arg(long, value_name = "N", conflicts_with_all = ["list", "json"])]
    show: Option<usize>,
    /// Print all numbers that are wrong without a word
    #[arg(long)]
    list: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    threads: Threads,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Option<Exit>> {
    let methods = lastmile::options::split_outside(&args.method, ',').map(str::parse);
    let methods =
        methods.collect::<Result<_, _>>().map_err(|error| Exit::Usage.blame(anyhow!("--method: {error}")))?;
    let request = Request {
        runs: args.runs,
        cells: args.cells,
        seed: args.seed,
        methods,
        without: Vec::<Feature>::new(),
        only: args.only,
    };
    if let Some(number) = args.show {
        crate::shell::say(request.scenario(number).trim_end());
        return Ok(None);
    }
    let measured = args.threads.pool()?.install(|| measure(&request, &audience()))?;
    let table = table(&measured);
    let mut shown = text(&table);
    if args.list {
        shown.push_str(&format!("\n{}", list(&measured)));
    }
    let document = json!({ "table": table, "numbers": measured.numbers, "answers": measured.answers, "durations": measured.durations });
    crate::shell::show(args.json, &document, &shown)?;
    Ok(None)
}
