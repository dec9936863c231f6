//! The options of commands that run experiments, and the output of their results.

use std::io::Write;
use std::path::{Path, PathBuf};

use lastmile_report::text::Text;
use serde_json::Value;

use crate::shell::PrintArgs;
use crate::shell::exit::Exit;
use crate::shell::replace::{self, replace};

/// World of the runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum World {
    Sim,
    Lab,
}

impl From<World> for lastmile_study::World {
    fn from(world: World) -> lastmile_study::World {
        match world {
            World::Sim => lastmile_study::World::Sim,
            World::Lab => lastmile_study::World::Lab,
        }
    }
}

/// Cores for the runs.
#[derive(clap::Args)]
pub(crate) struct Threads {
    /// Cores to use [default: all]
    #[arg(long, visible_alias = "jobs", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
}

impl Threads {
    /// Threads on so many cores.
    pub(crate) fn pool(&self) -> anyhow::Result<rayon::ThreadPool> {
        Ok(rayon::ThreadPoolBuilder::new().num_threads(self.threads.unwrap_or(0).into()).build()?)
    }
}

/// Options of commands that make a document of many runs.
#[derive(clap::Args)]
pub(crate) struct ExperimentArgs {
    /// Runs per case, seeds 1 to N
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) runs: Option<u64>,
    #[command(flatten)]
    pub(crate) shown: ShownArgs,
    #[command(flatten)]
    pub(crate) threads: Threads,
}

/// Options for a document of many runs.
#[derive(clap::Args)]
pub(crate) struct ShownArgs {
    #[command(flatten)]
    pub(crate) print: PrintArgs,
    /// Write a page with tables and charts
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
}

impl ShownArgs {
    /// Refuses a page or an output file that cannot be written, before anything is run.
    pub(crate) fn check(&self, output: Option<&Path>) -> anyhow::Result<()> {
        self.report.as_deref().into_iter().chain(output).try_for_each(replace::check)
    }

    /// Writes the page, if asked for, and prints the document for programs or the text for people, or writes that to a file.
    pub(crate) fn show(
        &self,
        document: &Value,
        page: fn(&Value) -> String,
        text: &Text,
        output: Option<&Path>,
    ) -> anyhow::Result<()> {
        let write = |file: &PathBuf| replace(file, |out| Ok(out.write_all(page(document).as_bytes())?));
        let written = self.report.as_ref().map_or(Ok(()), write);
        match output {
            None => self.print.show(document, text)?,
            Some(file) => {
                let text = self.print.shown(document, text)?;
                replace(file, |out| Ok(writeln!(out, "{text}")?))
                    .map_err(|error| Exit::Machine.blame(error))?;
            }
        }
        // An error of the page takes no results away.
        written.map_err(|error| Exit::Machine.blame(error))
    }
}
