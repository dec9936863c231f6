//! Anybody's programs inside a scenario's hosts.

use std::io;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lastmile_sim::monitor::series::SeriesPlan;
use lastmile_sim::runs::Prepare;
use lastmile_sim::scenario::Scenario;

use super::child::LabChild;
use super::lateness::LabLateness;
use super::run::{Lab, LabPlan, LabRun, LabRunError, WATCH, unknown};

/// What programs get to end in when the lab does.
const GRACE: Duration = Duration::from_millis(500);

/// A program to run in a host.
#[derive(Clone, Debug)]
pub struct Program {
    /// The host's name.
    pub host: String,
    /// The program and its arguments; `{HOST}` stands for the address of the host of that name.
    pub command: Vec<String>,
}

/// How to run programs.
#[derive(Default)]
pub struct ProgramsConfig {
    /// Draws the traffic's random numbers.
    pub seed: u64,
    /// Given the simulation before it runs.
    pub prepare: Option<Prepare>,
    /// Told what happens in each step of time.
    pub series: Option<SeriesPlan>,
    /// Whether what programs print goes to standard error, so that standard output is the caller's alone.
    pub apart: bool,
}

/// Runs programs inside a scenario's hosts until the last one named has ended, or `stop` is set. Gives that one's
/// exit code and what came of the lab. The scenario's traffic goes on for as long, whatever the scenario's duration.
///
/// # Errors
/// See [`LabRunError`].
pub fn run_programs(
    scenario: &Scenario,
    programs: &[Program],
    config: ProgramsConfig,
    stop: &AtomicBool,
) -> Result<(i32, LabRun), LabRunError> {
    let wanted: Vec<usize> = (0..scenario.hosts.len()).collect();
    let ProgramsConfig { seed, prepare, series, apart } = config;
    let plan = LabPlan { seed, hosts: &wanted, prepare, series, ..LabPlan::default() };
    let mut lab = Lab::start(scenario, plan)?;
    let mut children = Vec::new();
    for program in programs {
        let index = scenario.host(&program.host).ok_or_else(|| unknown(scenario, &program.host))?;
        let words: Vec<String> = program.command.iter().map(|word| expand(scenario, word)).collect();
        let Some((name, arguments)) = words.split_first() else { continue };
        let mut command = Command::new(name);
        command.args(arguments);
        if apart {
            command.stdout(io::stderr());
        }
        children.push(LabChild::spawn(lab.host(index)?, command)?);
        // Servers come first on the command line: give them a moment to listen.
        std::thread::sleep(Duration::from_millis(200));
    }
    let mut code = 0;
    if let Some(last) = children.last_mut() {
        loop {
            if let Some(status) = last.try_wait()? {
                code = status.code().unwrap_or(1);
                break;
            }
            if stop.load(Ordering::Relaxed) {
                code = 130;
                break;
            }
            if lab.has_ended() {
                break;
            }
            std::thread::sleep(WATCH);
        }
    }
    // All are asked before any is waited for, so that the lab ends in one time of grace whatever their number.
    children.iter_mut().for_each(LabChild::ask_to_end);
    let until = Instant::now() + GRACE;
    for child in &mut children {
        let _ = child.end_within(until.saturating_duration_since(Instant::now()));
    }
    drop(children);
    let (pump, realtime) = lab.finish()?;
    let lateness = LabLateness::of(scenario, &pump, None, realtime);
    Ok((code, lab.ran(&pump, lateness)))
}

/// Replaces `{NAME}` by the address of the host of that name.
fn expand(scenario: &Scenario, word: &str) -> String {
    scenario
        .hosts
        .iter()
        .fold(word.to_owned(), |word, host| word.replace(&format!("{{{}}}", host.name), &host.v4.to_string()))
}
