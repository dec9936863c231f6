//! `lastmile lab SCENARIO`: the same scenario in real time, between real sockets or anybody's programs.

use std::time::Duration;

use anyhow::anyhow;
use lastmile::time::{Span, Time};
use lastmile_net::lab::LabError;
use lastmile_net::lab::lateness::LabLateness;
use lastmile_net::lab::losses::HostLosses;
use lastmile_net::lab::programs::{Program, ProgramEnd, ProgramsConfig, run_programs};
use lastmile_net::lab::run::{LabConfig, LabRunError, run as run_lab};
use lastmile_net::recording::World;
use lastmile_sim::roles::Makers;
use lastmile_sim::runs::document;
use lastmile_sim::scenario::Scenario;
use serde_json::json;

use crate::files::outputs::OutputArgs;
use crate::roles;
use crate::shell::exit::Exit;
use crate::shell::options::{KERNEL_NOISE, seconds};
use crate::shell::progress::Progress;
use crate::shell::scenarios::ScenarioArgs;
use crate::shell::{WIDTH, scenarios, signals};

/// Run a scenario in real time between network namespaces on this machine
///
/// Without a command the scenario's own measurements and media streams run with real sockets; a scenario without them runs its
/// traffic for its duration. With a command that program runs in the host named by --in; `{NAME}` stands for the address of the host NAME. Several programs:
/// `lastmile lab path --in receiver -- iperf3 -s -1 --in sender -- iperf3 -c {receiver}`; the run ends with the last, which reads
/// standard input: `lastmile lab path --in sender -- bash` is a shell in a host. Programs know the hosts by their names. The exit code is
/// that of the program that failed by itself, or 1 if several did.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Real-time priority for the measuring programs too; the lab itself always asks for it
    #[arg(long)]
    realtime: bool,
    /// Print all columns, in lines of any length
    #[arg(long, short, conflicts_with = "json")]
    verbose: bool,
    /// Print JSON; output of programs goes to standard error
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    outputs: OutputArgs,
    /// Run the command in this host; may be given several times
    #[arg(long = "in", value_name = "HOST")]
    hosts: Vec<String>,
    /// End the programs after this time
    #[arg(long, value_name = "TIME", value_parser = seconds, requires = "hosts")]
    max_seconds: Option<f64>,
    /// A program and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Option<Exit>> {
    signals::stop();
    let (scenario, seed) = args.scenario.load()?;
    let programs = match args.command.is_empty() && args.hosts.is_empty() {
        true => Vec::new(),
        false => programs(&args.hosts, &args.command)?,
    };
    can_be_had(&args, &scenario, &programs)?;
    let (outputs, hooks) = args.outputs.open(&args.scenario.name, &scenario, World::Lab, seed)?;
    let (ends, run) = if programs.is_empty() {
        let make = Makers::registered(KERNEL_NOISE, seed);
        let config = LabConfig { seed, realtime: args.realtime, hooks };
        let most = scenario.duration;
        let _shown = Progress::waiting(&format!("{}, {most} at most, runs for", scenario.name));
        (Vec::new(), run_lab(&scenario, &make, config, signals::stop()).map_err(blame)?)
    } else {
        let longest = args.max_seconds.map(Duration::from_secs_f64);
        let (prepare, series) = (hooks.prepare, hooks.series);
        let config =
            ProgramsConfig { seed, prepare, series, apart: args.json, quiet: false, input: true, longest };
        run_programs(&scenario, &programs, config, signals::stop()).map_err(blame)?
    };
    let interrupted = signals::stopped();
    let written = outputs.finish(&run.events, &run.found, run.end);
    let shown = roles::shown(&scenario, &run.found);
    if args.json {
        let mut all = document("lab", (&scenario, seed), &run.found, &run.network);
        all.insert("seconds".into(), json!((run.end - Time::ZERO).as_secs_f64()));
        all.insert("interrupted".into(), json!(interrupted));
        all.insert("exit_code".into(), json!(ends.last().map(|end| end.exit_code)));
        all.insert("programs".into(), json!(ends));
        all.insert("hosts".into(), json!(run.hosts));
        all.insert("lateness".into(), serde_json::to_value(&run.lateness)?);
        crate::shell::json(&all)?;
    } else {
        let lasted = run.end - Time::ZERO;
        let how = if interrupted { ", interrupted" } else { "" };
        crate::shell::say(&format!("{}, seed {seed}, {lasted} in real time{how}", scenario.name));
        ends.iter().for_each(|end| crate::shell::say(&ended(end)));
        // Numbers that must not be believed are not printed as if they could.
        if run.lateness.refused.is_none() {
            super::say(&shown, &run.network, args.verbose);
            if !run.network.flows.is_empty() && lasted <= scenario.warm_up {
                let warm_up = scenario.warm_up;
                crate::shell::say(&format!(
                    "no goodput: the run ended within the scenario's warm-up of {warm_up}"
                ));
            }
        }
        run.hosts.iter().filter_map(lost).for_each(|line| crate::shell::say_in_lines(&line));
        say_lateness(&run.lateness);
        if run.lateness.refused.is_some() && programs.is_empty() && scenario.roles.is_empty() {
            crate::shell::say("`lastmile sim` prints the flows of the same run in virtual time");
        }
    }
    written?;
    let failed: Vec<&ProgramEnd> = ends.iter().filter(|end| end.failed()).collect();
    // The lab ends with the last program, and stops the others then.
    let cut_off = args.max_seconds.filter(|_| ends.last().is_some_and(|end| end.stopped));
    match () {
        () if interrupted => Ok(Some(Exit::Interrupted)),
        () if cut_off.is_some() => {
            let limit = Span::from_secs_f64(cut_off.unwrap_or_default());
            let running: Vec<_> = ends.iter().filter(|end| end.stopped).map(named).collect();
            let why = anyhow!("--max-seconds {limit} ended what still ran: {}", running.join(", "));
            Err(Exit::NoResult.blame(why))
        }
        () if !failed.is_empty() => {
            let said: Vec<String> = failed.iter().map(|end| failure(end)).collect();
            Err(exit_of(&failed).blame(anyhow!("{}", said.join("; "))))
        }
        () if run.lateness.refused.is_some() => Ok(Some(Exit::NoResult)),
        // Programs ran instead of the scenario's own endpoints.
        () if !ends.is_empty() => Ok(None),
        () => Ok(shown.iter().find_map(|shown| shown.exit)),
    }
}

/// The exit code of the one program that failed, as a shell has it; of several none is more telling than the others.
fn exit_of(failed: &[&ProgramEnd]) -> Exit {
    match failed {
        [one] => u8::try_from(one.exit_code).map_or(Exit::NoResult, Exit::Program),
        _ => Exit::NoResult,
    }
}

/// A program's end, in a line that is cut at the width of a terminal.
fn ended(end: &ProgramEnd) -> String {
    let after = Span::from_secs_f64((end.seconds * 100.0).round() / 100.0);
    let how = match (end.stopped, end.signal) {
        (true, _) => "stopped by the lab".to_owned(),
        (false, Some(signal)) => format!("ended by {signal}"),
        (false, None) => format!("exit code {}", end.exit_code),
    };
    let line = format!("{}: {how} after {after}: {}", end.host, end.command.join(" ").replace('\n', " "));
    if line.chars().count() <= WIDTH {
        line
    } else {
        line.chars().take(WIDTH - 3).chain("...".chars()).collect()
    }
}

/// A program and its host.
fn named(end: &ProgramEnd) -> String {
    format!("{} in {}", end.command.first().map_or("", String::as_str), end.host)
}

/// A program's failure: its name, its host, and the exit code or signal.
fn failure(end: &ProgramEnd) -> String {
    let (program, code) = (named(end), end.exit_code);
    match end.signal {
        Some(signal) => format!("{program} was ended by {signal}, exit code {code}"),
        None => format!("{program} ended with exit code {code}"),
    }
}

/// A host's own losses, if there are any.
fn lost(host: &HostLosses) -> Option<String> {
    let said = host.said();
    (!said.is_empty()).then(|| format!("{} itself lost packets: {}", host.host, said.join(", ")))
}

/// Refuses options without effect on this run, and a scenario in which nothing would happen.
fn can_be_had(args: &Args, scenario: &Scenario, programs: &[Program]) -> anyhow::Result<()> {
    let of_endpoints = [(args.realtime, "--realtime"), (args.outputs.record.is_some(), "--record")];
    let ignored = of_endpoints.iter().find(|(given, _)| *given).map(|(_, option)| option);
    let refused = match ignored {
        Some(option) if !programs.is_empty() => format!(
            "{option} is for a scenario's own endpoints, and programs run instead of them: leave it out"
        ),
        Some(option) if scenario.roles.is_empty() => {
            format!("{option} is for a scenario's own endpoints, and this one has none: leave it out")
        }
        _ if programs.is_empty() && scenario.roles.is_empty() && scenario.traffic.is_empty() => {
            "the scenario has neither traffic nor measurements, so nothing would happen: run a program over it by \
             --in HOST -- COMMAND"
                .to_owned()
        }
        _ => return Ok(()),
    };
    Err(Exit::Usage.blame(anyhow!("{refused}")))
}

/// The lab's lateness in a line, and the refusal in another.
pub(crate) fn say_lateness(lateness: &LabLateness) {
    crate::shell::say_in_lines(&lateness_in_words(lateness));
    if let Some(why) = &lateness.refused {
        crate::shell::say_in_lines(&format!("refused: {why}"));
    }
}

/// The lab's lateness in a line.
pub(super) fn lateness_in_words(lateness: &LabLateness) -> String {
    let priority = if lateness.realtime { "real-time priority" } else { "no real-time priority" };
    let (p50, p99, worst) = (lateness.p50, lateness.p99, lateness.worst);
    let (over, allowed) = (lateness.late, lateness.allowed);
    let late = format!("late by {p50} (median), {p99} (p99), {worst} (worst), {over} by {allowed} or more");
    let moved = lateness.moved.map_or_else(String::new, |moved| {
        format!("; in time the numbers would be within {:.1} % of the capacity", moved * 100.0)
    });
    let core = format!("{:.0} % of a core", lateness.core * 100.0);
    match (lateness.packets, lateness.events) {
        (0, 0) => format!("lab: nothing was due, and nothing can be late; {priority}"),
        (0, events) => {
            format!(
                "lab: no packets from outside, {events} events of the simulator's own, {late}; {core}; {priority}"
            )
        }
        (packets, _) => format!("lab: {packets} packets, {late}{moved}; {core}; {priority}"),
    }
}

/// Exit code of a lab that did not run.
pub(crate) fn blame(error: LabRunError) -> anyhow::Error {
    match error {
        LabRunError::Run(error) => scenarios::blame(error),
        LabRunError::UnknownHost(..)
        | LabRunError::UnknownPlaceholder(..)
        | LabRunError::Lab(LabError::Start { .. }) => Exit::Usage.blame(error),
        _ => Exit::Machine.blame(error),
    }
}

/// The programs of a command line: the first in the hosts named by --in, each further one after `--in HOST --`.
fn programs(hosts: &[String], command: &[String]) -> anyhow::Result<Vec<Program>> {
    let usage = |text: &str| Exit::Usage.blame(anyhow!("{text}"));
    if hosts.is_empty() {
        return Err(usage("a command needs the host to run it in: --in HOST"));
    }
    if command.is_empty() {
        return Err(usage("--in needs a command: --in HOST -- COMMAND"));
    }
    let mut programs = Vec::new();
    let mut hosts = hosts.to_vec();
    let mut rest = command;
    loop {
        let next = rest.windows(3).position(|w| w[0] == "--in" && w[2] == "--");
        let (own, more) = rest.split_at(next.unwrap_or(rest.len()));
        if own.is_empty() {
            return Err(usage("an empty command before --in"));
        }
        programs.extend(hosts.iter().map(|host| Program { host: host.clone(), command: own.to_vec() }));
        match more {
            [_, host, _, tail @ ..] if !tail.is_empty() => {
                hosts = vec![host.clone()];
                rest = tail;
            }
            [] => return Ok(programs),
            _ => return Err(usage("--in needs a command: --in HOST -- COMMAND")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_programs_on_one_line() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let found = programs(&words("b"), &words("iperf3 -s --in a -- iperf3 -c {b}")).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].host.as_str(), found[0].command.len()), ("b", 2));
        assert_eq!((found[1].host.as_str(), found[1].command[2].as_str()), ("a", "{b}"));
        assert!(programs(&[], &words("true")).is_err());
        assert!(programs(&words("a"), &[]).is_err());
    }
}
