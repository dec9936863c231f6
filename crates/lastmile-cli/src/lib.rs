//! The program `lastmile`: one file per command in `commands`; results and recordings of roles in `roles`; the files of runs in `files`;
//! arguments, exit codes and lines to print in `shell`.
//!
//! The feature `study` holds experiments, the simulator's commands and the lab; `pages` the pages of HTML. Both are on by default.

#![cfg_attr(
    not(feature = "study"),
    expect(dead_code, reason = "roles have what the commands of the feature `study` ask of them")
)]

mod commands;
mod files;
mod roles;
mod shell;

use std::process::ExitCode;

use clap::{Arg, CommandFactory, FromArgMatches, Parser, Subcommand};
use lastmile::classify::{CLASSIFIERS, Lda};
use lastmile::control::{CONTROLLERS, Controller, WRAPPERS, Wrapper};
use lastmile::endpoint::stream::source::{SOURCES, Source};
use lastmile::estimate::{METHODS, Method};

const UNITS: &str = "\
Units: rates count bits (10M, 10Mbps, '10 Mbit/s'), sizes bytes (1500B, 60kB, 1MB), times are 500ms, 1s or 2min, and a bare number \
is seconds. k, M and G are powers of 1000, Ki, Mi and Gi of 1024, as in 64KiB.";

/// Measures the capacity and the available bandwidth of a network path: 0.5 s and 134 kB on an idle path, 0.8 s and 260 kB beside others.
#[derive(Parser)]
#[command(name = "lastmile", version, long_about = None, propagate_version = true, max_term_width = 80)]
#[command(after_help = format!("{UNITS}\n\n{}", shell::exit::HELP))]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[cfg(feature = "study")]
    #[command(flatten)]
    Study(commands::study::Command),
    Serve(commands::serve::Args),
    Measure(commands::measure::Args),
    Enough(commands::enough::Args),
    Receive(commands::receive::Args),
    Stream(Box<commands::stream::Args>),
    Traffic(commands::traffic::Args),
    Replay(commands::replay::Args),
    /// List the methods by which a path can be measured, or the options of one
    Methods(commands::registries::Args),
    /// List the classifiers that tell wireless from congestion losses, or the options of one
    Classifiers(commands::registries::Args),
    /// List the controllers that set a stream's rate, or the options of one
    Controllers(commands::registries::Args),
    /// List the sources that make a stream's frames, or the options of one
    Sources(commands::registries::Args),
    #[cfg(feature = "pages")]
    Report(commands::report::Args),
    Doctor(commands::doctor::Args),
    Completions(commands::completions::Args),
    Man(commands::man::Args),
}

/// Names that a program adds to those of this one.
///
/// ```no_run
/// # let my_method: &'static lastmile::estimate::Method = lastmile::estimate::METHODS[0];
/// lastmile_cli::run(lastmile_cli::Own { methods: &[my_method], ..lastmile_cli::Own::default() });
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Own<'a> {
    /// Methods by which a path can be measured.
    pub methods: &'a [&'static Method],
    /// Loss classifiers.
    pub classifiers: &'a [&'static Lda],
    /// Rate controllers.
    pub controllers: &'a [&'static Controller],
    /// Wrappers of rate controllers.
    pub wrappers: &'a [&'static Wrapper],
    /// Sources of a stream's frames.
    pub sources: &'a [&'static Source],
    /// Papers to make again.
    #[cfg(feature = "study")]
    pub papers: &'a [&'static lastmile_study::papers::Paper],
}

/// The command line, with all defaults written alike.
pub(crate) fn program() -> clap::Command {
    with_defaults(Cli::command())
}

/// clap sets a default with a blank in quotes, and others not: help texts end with it instead.
fn with_defaults(command: clap::Command) -> clap::Command {
    let shown = |arg: Arg| {
        let values: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
        if values.is_empty() || !arg.get_action().takes_values() {
            return arg;
        }
        let default = format!(" [default: {}]", values.join(","));
        let with = |help: Option<&clap::builder::StyledStr>| help.map(|help| format!("{help}{default}"));
        let arg = match (with(arg.get_help()), with(arg.get_long_help())) {
            (Some(short), Some(long)) => arg.help(short).long_help(long),
            (Some(short), None) => arg.help(short),
            _ => return arg,
        };
        arg.hide_default_value(true)
    };
    command.mut_args(shown).mut_subcommands(with_defaults)
}

/// Runs the program with the arguments of the process, once in a process: its names are added to the registries of `lastmile`.
pub fn run(own: Own<'_>) -> ExitCode {
    let added = METHODS
        .add(own.methods)
        .and_then(|()| CLASSIFIERS.add(own.classifiers))
        .and_then(|()| CONTROLLERS.add(own.controllers))
        .and_then(|()| WRAPPERS.add(own.wrappers))
        .and_then(|()| SOURCES.add(own.sources));
    #[cfg(feature = "study")]
    let added = added.and_then(|()| lastmile_study::papers::PAPERS.add(own.papers));
    if let Err(error) = added {
        return shell::exit::code(Err(shell::exit::Exit::Machine.blame(error)));
    }
    let mut program = program();
    let parsed = program
        .try_get_matches_from_mut(std::env::args_os())
        .and_then(|matches| Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut program)));
    let cli = match parsed {
        Ok(cli) => cli,
        // Help and the version are asked for, or stand in for a command.
        Err(error) if !shell::exit::is_usage_error(&error) => return shell::say_help(&error),
        Err(error) => {
            let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
            return shell::exit::code(Err(shell::exit::usage(error, &program, words)));
        }
    };
    let done = match cli.command {
        #[cfg(feature = "study")]
        Command::Study(command) => command.run(),
        Command::Serve(args) => commands::serve::run(args),
        Command::Measure(args) => commands::measure::run(args),
        Command::Enough(args) => commands::enough::run(args),
        Command::Receive(args) => commands::receive::run(args),
        Command::Stream(args) => commands::stream::run(*args),
        Command::Traffic(args) => commands::traffic::run(args),
        Command::Replay(args) => commands::replay::run(args),
        Command::Methods(args) => commands::registries::methods(args),
        Command::Classifiers(args) => commands::registries::run(args, &CLASSIFIERS),
        Command::Controllers(args) => commands::registries::controllers(args),
        Command::Sources(args) => commands::registries::run(args, &SOURCES),
        #[cfg(feature = "pages")]
        Command::Report(args) => commands::report::run(args),
        Command::Doctor(args) => commands::doctor::run(args),
        Command::Completions(args) => commands::completions::run(args),
        Command::Man(args) => commands::man::run(args),
    };
    shell::exit::code(done)
}
