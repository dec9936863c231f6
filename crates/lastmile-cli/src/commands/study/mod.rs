//! Commands on simulated networks, in virtual time and in the lab.
mod accuracy;
mod bench_sim;
mod conformance;
mod demo;
mod evaluate;
mod lab;
mod merge;
mod paths;
mod reproduce;
mod scenarios;
mod sim;
mod sweep;

use lastmile_sim::monitor::accounting::NetworkOutcome;
use lastmile_study::network_tables::tables;

use crate::roles::Shown;
use crate::shell::exit::Exit;
use crate::shell::say_text;

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    Demo(demo::Args),
    Sim(sim::Args),
    Lab(lab::Args),
    Sweep(sweep::Args),
    Accuracy(accuracy::Args),
    Paths(paths::Args),
    Evaluate(evaluate::Args),
    Reproduce(reproduce::Args),
    Merge(merge::Args),
    Scenarios(scenarios::Args),
    Conformance(conformance::Args),
    BenchSim(bench_sim::Args),
}

impl Command {
    /// True if it makes network namespaces. An ordinary user needs a user namespace for them first.
    fn needs_lab(&self) -> bool {
        match self {
            Command::Demo(_) | Command::Lab(_) | Command::Conformance(_) => true,
            Command::Accuracy(args) => args.needs_lab(),
            Command::Reproduce(args) => args.needs_lab(),
            _ => false,
        }
    }

    /// Runs it, while the process has only this thread.
    pub(crate) fn run(self) -> anyhow::Result<Option<Exit>> {
        if self.needs_lab() {
            // The lab itself reports a refusal, with the missing privilege.
            let _ = lastmile_net::lab::netns::enter_user_namespace();
        }
        match self {
            Command::Demo(args) => demo::run(args),
            Command::Sim(args) => sim::run(args),
            Command::Lab(args) => lab::run(args),
            Command::Sweep(args) => sweep::run(args),
            Command::Accuracy(args) => accuracy::run(args),
            Command::Paths(args) => paths::run(args),
            Command::Evaluate(args) => evaluate::run(args),
            Command::Reproduce(args) => reproduce::run(args),
            Command::Merge(args) => merge::run(args),
            Command::Scenarios(args) => scenarios::run(args),
            Command::Conformance(args) => conformance::run(args),
            Command::BenchSim(args) => bench_sim::run(args),
        }
    }
}

/// Prints the results of a run: endpoints, traffic, links and WLANs.
fn say(shown: &[Shown], network: &NetworkOutcome, all: bool) {
    shown.iter().map(|shown| &shown.text).for_each(|text| say_text(text, all));
    say_text(&tables(network), all);
}
