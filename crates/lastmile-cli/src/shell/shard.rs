//! The options of commands whose runs many machines may share.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use lastmile_study::fleet::{Fleet, Part, Shard, Shards};

use super::exit::Exit;

/// One of the machines that share a command's runs, and the file of its results.
#[derive(clap::Args)]
pub(crate) struct ShardArgs {
    /// Run only shard I of N, such as 3/8, and write it to the output file; `lastmile merge` joins the shards' files (docs/fleets.md)
    #[arg(long, value_name = "I/N", requires = "output")]
    shard: Option<Shard>,
    /// Output file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Shards whose runs are taken in the place of new ones.
    #[arg(skip)]
    merged: Option<Shards>,
}

impl ShardArgs {
    /// Takes the runs of shards, and writes the result there.
    pub(crate) fn merge(&mut self, shards: Shards, output: Option<PathBuf>) {
        (self.merged, self.output) = (Some(shards), output);
    }

    /// Share of the runs that this process does: its shard, all, or none where shards are merged.
    pub(crate) fn fleet(&self) -> anyhow::Result<Fleet> {
        if let (Some(shard), Some(file)) = (self.shard, &self.output) {
            let arguments = of_the_study(std::env::args_os())?;
            return Ok(Fleet::Part(Part { shard, arguments, file: file.clone() }));
        }
        Ok(self.merged.clone().map_or(Fleet::Whole, Fleet::Merged))
    }

    /// Says where a shard is: it has nothing else to show.
    pub(crate) fn done(&self) -> anyhow::Result<Option<Exit>> {
        if let (Some(shard), Some(file)) = (self.shard, &self.output) {
            super::say(&format!("shard {shard} is in {}", file.display()));
        }
        Ok(None)
    }

    /// The file for the result.
    pub(crate) fn output(&self) -> Option<&Path> {
        self.output.as_deref()
    }
}

/// Options that differ between the shards of a study.
const OF_A_SHARD: [&str; 3] = ["shard", "output", "threads"];

/// The arguments that all shards of a study have in common: its command, options in the order of their declaration, and names.
fn of_the_study(line: impl IntoIterator<Item = OsString>) -> anyhow::Result<Vec<String>> {
    let mut program = crate::program();
    let matches = program.try_get_matches_from_mut(line)?;
    let Some((name, matches)) = matches.subcommand() else { return Ok(Vec::new()) };
    let (mut options, mut names) = (vec![name.to_owned()], Vec::new());
    for argument in program.find_subcommand(name).into_iter().flat_map(clap::Command::get_arguments) {
        let id = argument.get_id().as_str();
        if OF_A_SHARD.contains(&id) || matches.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        let values = matches.get_raw(id).into_iter().flatten().map(|value| value.to_string_lossy());
        match argument.get_long() {
            Some(long) if argument.get_action().takes_values() => {
                options.extend(values.map(|value| format!("--{long}={value}")));
            }
            Some(long) => options.push(format!("--{long}")),
            None => names.extend(values.map(|value| value.into_owned())),
        }
    }
    Ok([options, names].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_have_all_but_their_own_options_in_common() {
        let of = |line: &str| {
            of_the_study(line.split_whitespace().map(OsString::from))
                .unwrap_or_else(|e| panic!("{line}: {e}"))
                .join(" ")
        };
        for own in ["--shard 1/2 -o a", "--shard=1/2 --output=b --jobs 3", "-oc --shard 2/2 --threads=1"] {
            for line in [
                format!("lastmile sweep path --set link.0.rate=1M,2M --set seed=1,2 {own}"),
                format!("lastmile sweep {own} --set=link.0.rate=1M,2M --set seed=1,2 path"),
            ] {
                assert_eq!(of(&line), "sweep --set=link.0.rate=1M,2M --set=seed=1,2 path");
            }
        }
        assert_eq!(of("lastmile paths -vo a --shard 1/2 --runs 5"), "paths --runs=5 --verbose");
        let items = "lastmile reproduce lda --item table-1,table-2 --shard 1/2 -o a";
        assert_eq!(of(items), "reproduce --item=table-1 --item=table-2 lda");
    }
}
