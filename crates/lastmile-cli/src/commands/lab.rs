//! `lastmile lab SCENARIO`: the same scenario in real time, between real sockets or anybody's programs.

use std::path::PathBuf;

use anyhow::anyhow;
use lastmile_net::lab::LabError;
use lastmile_net::lab::lateness::LabLateness;
use lastmile_net::lab::programs::{Program, run_programs};
use lastmile_net::lab::run::{LabConfig, LabRunError, run as run_lab};
use lastmile_net::recording::World;
use lastmile_sim::run::Hooks;
use serde_json::json;

use crate::exit::Exit;
use crate::options::KERNEL_NOISE;
use crate::recorder::{Recorded, ScenarioRecorder};
use crate::result::{Row, exit, table};
use crate::{scenarios, signals};

/// Run a scenario in real time between network namespaces on this machine
///
/// Without a command it runs the scenario's own measurements with real sockets. With one it runs that program in the
/// host named by --in; `{NAME}` in it stands for the address of the host NAME. Several programs:
/// `lastmile lab path --in receiver -- iperf3 -s -1 --in sender -- iperf3 -c {receiver}`; the run ends with the last.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Scenario file, or the name of one that is built in; `lastmile scenarios` lists those
    scenario: String,
    /// A key of the scenario and its value, such as `duration=5 s` or `traffic.cross.rate=2 Mbit/s`; may be given several
    /// times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Draws all random numbers; the scenario's own if left out
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Real-time priority for the measuring programs too; the lab itself asks for it in any case
    #[arg(long)]
    realtime: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write the decisions to FILE as JSON lines
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// Write everything that the first session's prober was told to FILE, for `lastmile replay` and `lastmile report`
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Run the command in this host; may be given several times
    #[arg(long = "in", value_name = "HOST")]
    hosts: Vec<String>,
    /// A program and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Option<Exit>> {
    signals::stop();
    let scenario = scenarios::load(&args.scenario, &args.set)?;
    let seed = args.seed.unwrap_or(scenario.seed);
    if !args.command.is_empty() || !args.hosts.is_empty() {
        let programs = programs(&args.hosts, &args.command)?;
        let ignored = [
            (args.realtime, "--realtime"),
            (args.json, "--json"),
            (args.events.is_some(), "--events"),
            (args.record.is_some(), "--record"),
        ];
        if let Some((_, option)) = ignored.iter().find(|(given, _)| *given) {
            return Err(Exit::Usage.blame(anyhow!(
                "{option} is for a scenario's own measurements, and programs run instead of them: leave it out"
            )));
        }
        let (code, lateness) = run_programs(&scenario, seed, &programs, signals::stop()).map_err(blame)?;
        say_lateness(&lateness);
        let refused = lateness.refused.is_some().then_some(Exit::NoResult);
        return Ok(match code {
            0 => refused,
            130 => Some(Exit::Interrupted),
            code => return Err(Exit::NoResult.blame(anyhow!("the program ended with exit code {code}"))),
        });
    }
    if scenario.measures.is_empty() {
        return Err(Exit::Usage.blame(anyhow!(
            "the scenario measures nothing: run a program over it by --in HOST -- COMMAND, or its own traffic alone by lastmile sim"
        )));
    }
    let (recorder, hooks) = match &args.record {
        None => (None, Hooks::default()),
        Some(file) => {
            let what = Recorded::of(&scenario, World::Lab, KERNEL_NOISE, seed)?;
            let (recorder, hooks) = ScenarioRecorder::create(file, what)?;
            (Some(recorder), hooks)
        }
    };
    let config = LabConfig { seed, realtime: args.realtime, hooks };
    let make = scenarios::maker(KERNEL_NOISE, seed);
    let run = run_lab(&scenario, &make, config, signals::stop()).map_err(blame)?;
    if signals::stopped() {
        return Err(Exit::Interrupted.blame(anyhow!("interrupted")));
    }
    if let Some(recorder) = recorder {
        recorder.finish(&run.events, &run.records)?;
    }
    if let Some(file) = &args.events {
        super::write_events(file, &run.events)?;
    }
    let rows: Vec<Row> = run.outcomes.iter().filter_map(Row::of_outcome).collect();
    if args.json {
        let text = json!({
            "world": "lab", "scenario": scenario.name, "seed": seed, "results": rows, "lateness": run.lateness,
        });
        crate::say(&serde_json::to_string_pretty(&text)?);
    } else {
        crate::say(&format!("{}, seed {seed}, in real time", scenario.name));
        match &run.lateness.refused {
            // Numbers that must not be believed are not printed as if they could.
            Some(_) => {}
            None => crate::say(table(&rows).trim_end()),
        }
        say_lateness(&run.lateness);
    }
    Ok(if run.lateness.refused.is_some() { Some(Exit::NoResult) } else { exit(&rows) })
}

/// The lab's lateness in a line, and the refusal in another.
pub(crate) fn say_lateness(lateness: &LabLateness) {
    let priority = if lateness.realtime { "real-time priority" } else { "no real-time priority" };
    crate::say(&format!(
        "lab: {} packets, late by {} (median), {} (p99), {} (worst), {} by 100 us or more; {priority}",
        lateness.packets, lateness.p50, lateness.p99, lateness.worst, lateness.over_100us
    ));
    if let Some(why) = &lateness.refused {
        crate::say(&format!("refused: {why}"));
    }
}

/// Who is to blame for a lab that did not run.
pub(crate) fn blame(error: LabRunError) -> anyhow::Error {
    match error {
        LabRunError::Run(error) => scenarios::blame(error),
        LabRunError::UnknownHost(..) | LabRunError::Lab(LabError::Start { .. }) => Exit::Usage.blame(error),
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
