//! The options of commands whose runs many machines may share.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use lastmile_study::fleet::{Fleet, Part, Shard, Shards};

use super::exit::Exit;

/// One of the machines that share a command's runs, and the file of its results.
#[derive(clap::Args)]
pub(crate) struct ShardArgs {
    /// Run only shard I of N, such as 3/8, and write it to the output file; `lastmile merge` joins the shards' files (docs/fleets.md)
    #[arg(long, value_name = "I/N", requires = "output")]
    shard: Option<Shard>,
    /// Output file. Default: standard output
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
            let arguments = of_the_study(std::env::args_os().skip(1));
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

/// Options that differ between the shards of a study: how they are written, all of them with a value.
const OF_A_SHARD: [&str; 5] = ["--shard", "--output", "-o", "--threads", "--jobs"];

/// The arguments that all shards of a study have in common.
fn of_the_study(arguments: impl Iterator<Item = OsString>) -> Vec<String> {
    let mut arguments = arguments.map(|argument| argument.to_string_lossy().into_owned());
    let mut common = Vec::new();
    while let Some(argument) = arguments.next() {
        let name = argument.split_once('=').map_or(&*argument, |(name, _)| name);
        if OF_A_SHARD.contains(&&*argument) {
            arguments.next();
        } else if let Some((flags, file)) = bundled_output(&argument) {
            common.extend((!flags.is_empty()).then(|| format!("-{flags}")));
            if file.is_empty() {
                arguments.next();
            }
        } else if !OF_A_SHARD.contains(&name) {
            common.push(argument);
        }
    }
    common
}

/// The flags before `-o` in one argument, and the file after it: "v" and "out" of `-voout`.
fn bundled_output(argument: &str) -> Option<(&str, &str)> {
    argument.strip_prefix('-').filter(|flags| !flags.starts_with('-'))?.split_once('o')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_have_all_but_their_own_options_in_common() {
        let of = |line: &str| of_the_study(line.split_whitespace().map(OsString::from)).join(" ");
        let common = "sweep path --set link.0.rate=1 --seeds 5";
        for own in ["--shard 1/2 -o a", "--shard=1/2 --output=b --jobs 3", "-oc --shard 2/2 --threads=1"] {
            assert_eq!(of(&format!("{common} {own}")), common);
            assert_eq!(of(&format!("sweep {own} path --set link.0.rate=1 --seeds 5")), common);
        }
        assert_eq!(of("paths -vo a --shard 1/2 --runs 5"), "paths -v --runs 5");
    }
}
