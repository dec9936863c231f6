//! The program `lastmile`: one file per command in `commands`, and what they share beside it.

mod commands;
mod exit;
mod experiment;
mod journal;
mod live;
mod network;
mod options;
mod outputs;
mod page;
mod progress;
mod ran;
mod ready;
mod recorder;
mod replace;
mod replayed;
mod roles;
mod scenarios;
mod signals;
mod spool;
mod table;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use lastmile::classify::{CLASSIFIERS, Lda};
use lastmile::control::{CONTROLLERS, Controller, WRAPPERS, Wrapper};
use lastmile::endpoint::stream::source::{SOURCES, Source};
use lastmile::estimate::{METHODS, Method};

/// Measures what a network path can carry, and what of it is left, in half a second and 130 kB.
#[derive(Parser)]
#[command(name = "lastmile", version, long_about = None, propagate_version = true, max_term_width = 100)]
#[command(after_help = exit::HELP)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Demo(commands::demo::Args),
    Serve(commands::serve::Args),
    Measure(commands::measure::Args),
    Receive(commands::receive::Args),
    Stream(Box<commands::stream::Args>),
    Sim(commands::sim::Args),
    Lab(commands::lab::Args),
    Sweep(commands::sweep::Args),
    Accuracy(commands::accuracy::Args),
    Evaluate(commands::evaluate::Args),
    Reproduce(commands::reproduce::Args),
    BenchSim(commands::bench_sim::Args),
    Replay(commands::replay::Args),
    Conformance(commands::conformance::Args),
    /// List the methods by which a path can be measured, or the options of one
    Methods(commands::registries::Args),
    /// List the classifiers that tell wireless from congestion losses, or the options of one
    Classifiers(commands::registries::Args),
    /// List the controllers that set a stream's rate, or the options of one
    Controllers(commands::registries::Args),
    /// List the sources that make a stream's frames, or the options of one
    Sources(commands::registries::Args),
    Scenarios(commands::scenarios::Args),
    Report(commands::report::Args),
    Doctor(commands::doctor::Args),
    Completions(commands::completions::Args),
    Man(commands::man::Args),
}

impl Command {
    /// Whether it makes network namespaces, for which an ordinary user needs a user namespace first.
    fn needs_lab(&self) -> bool {
        match self {
            Command::Demo(_) | Command::Lab(_) | Command::Conformance(_) => true,
            Command::Accuracy(args) => args.needs_lab(),
            Command::Reproduce(args) => args.needs_lab(),
            _ => false,
        }
    }
}

/// What a program adds to the names that come with this one.
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
    /// What can stand around a rate controller.
    pub wrappers: &'a [&'static Wrapper],
    /// Sources of a stream's frames.
    pub sources: &'a [&'static Source],
}

/// Runs the program with the arguments of the process, once in a process: its names are added to the registries of `lastmile`.
pub fn run(own: Own<'_>) -> ExitCode {
    let added = METHODS
        .add(own.methods)
        .and_then(|()| CLASSIFIERS.add(own.classifiers))
        .and_then(|()| CONTROLLERS.add(own.controllers))
        .and_then(|()| WRAPPERS.add(own.wrappers))
        .and_then(|()| SOURCES.add(own.sources));
    if let Err(error) = added {
        return exit::code(Err(exit::Exit::Machine.blame(error)));
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // Help and the version are asked for, or stand in for a command.
        Err(error) if !exit::is_usage_error(&error) => error.exit(),
        Err(error) => return exit::code(Err(exit::usage(&error, std::env::args().nth(1).as_deref()))),
    };
    if cli.command.needs_lab() {
        // While there is only this thread. Where it is refused, the lab itself says what is missing.
        let _ = lastmile_net::lab::netns::enter_user_namespace();
    }
    let done = match cli.command {
        Command::Demo(args) => commands::demo::run(args),
        Command::Serve(args) => commands::serve::run(args),
        Command::Measure(args) => commands::measure::run(args),
        Command::Receive(args) => commands::receive::run(args),
        Command::Stream(args) => commands::stream::run(*args),
        Command::Sim(args) => commands::sim::run(args),
        Command::Lab(args) => commands::lab::run(args),
        Command::Sweep(args) => commands::sweep::run(args),
        Command::Accuracy(args) => commands::accuracy::run(args),
        Command::Evaluate(args) => commands::evaluate::run(args),
        Command::Reproduce(args) => commands::reproduce::run(args),
        Command::BenchSim(args) => commands::bench_sim::run(args),
        Command::Replay(args) => commands::replay::run(args),
        Command::Conformance(args) => commands::conformance::run(args),
        Command::Methods(args) => commands::registries::run(args, &METHODS),
        Command::Classifiers(args) => commands::registries::run(args, &CLASSIFIERS),
        Command::Controllers(args) => commands::registries::controllers(args),
        Command::Sources(args) => commands::registries::run(args, &SOURCES),
        Command::Scenarios(args) => commands::scenarios::run(args),
        Command::Report(args) => commands::report::run(args),
        Command::Doctor(args) => commands::doctor::run(args),
        Command::Completions(args) => commands::completions::run(args),
        Command::Man(args) => commands::man::run(args),
    };
    exit::code(done)
}

/// Tells people what they should know and no program reads.
#[expect(clippy::print_stderr, reason = "standard output is for results")]
pub(crate) fn note(line: &str) {
    eprintln!("lastmile: {line}");
}

/// Whether somebody looks on, who wants to see how it goes: at a terminal, and no program reads the results.
pub(crate) fn is_looked_at(json: bool) -> bool {
    use std::io::IsTerminal;
    !json && std::io::stderr().is_terminal()
}

/// Shows a line to who looks on.
#[expect(clippy::print_stderr, reason = "standard output is for results")]
pub(crate) fn look(line: &str) {
    eprintln!("{line}");
}

/// Prints a line for people or programs. A reader that went away (`| head`) ends the program quietly; output that
/// cannot be written for another reason (a full disk) is an error.
#[expect(clippy::print_stderr, reason = "it ends the program here")]
pub(crate) fn say(line: &str) {
    use std::io::Write;
    let mut out = std::io::stdout();
    match writeln!(out, "{line}").and_then(|()| out.flush()) {
        Ok(()) => {}
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(e) => {
            eprintln!("lastmile: cannot write to standard output: {e}");
            std::process::exit(exit::Exit::Machine as i32);
        }
    }
}
