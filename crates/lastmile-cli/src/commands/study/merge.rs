//! `lastmile merge FILES -o FILE`: the result of a command whose runs many machines shared.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Parser;
use lastmile_study::fleet::Shards;

use super::Command;
use crate::shell::exit::Exit;

/// Join the shards of `sweep`, `evaluate`, `reproduce` or `paths`
///
/// The result is what the same command gives without --shard, byte for byte. The files must be all shards of one command, made by copies of
/// this program. Scenario files that the command names are read again, so call it in the folder where the shards were run.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Files of all shards, in any order
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Output file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The arguments of a command, as they stand in the files of its shards.
#[derive(Parser)]
#[command(no_binary_name = true)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Option<Exit>> {
    if let Some(output) = args.output.as_deref()
        && std::fs::metadata(output).is_ok_and(|known| known.is_file() && known.len() > 0)
    {
        let why = anyhow!("{} is there already: remove it, or name another output", output.display());
        return Err(Exit::Usage.blame(why));
    }
    let shards = Shards::open(&args.files)?;
    let shown = args.files[0].display();
    let refused = |why: String| Exit::Usage.blame(anyhow!("{shown}: {why}"));
    let line = Line::try_parse_from(shards.arguments())
        .map_err(|error| refused(error.render().to_string().lines().next().unwrap_or_default().to_owned()))?;
    let mut command = line.command;
    let shard = match &mut command {
        Command::Sweep(args) => &mut args.shard,
        Command::Evaluate(args) => &mut args.shard,
        Command::Reproduce(args) => &mut args.shard,
        Command::Paths(args) => &mut args.shard,
        _ => return Err(refused("its command has no shards".to_owned())),
    };
    shard.merge(shards, args.output);
    command.run()
}
