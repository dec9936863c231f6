//! Anybody's programs inside a scenario's hosts.

use std::io;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lastmile_sim::monitor::series::SeriesPlan;
use lastmile_sim::runs::Prepare;
use lastmile_sim::scenario::Scenario;
use nix::sys::signal::Signal;
use serde::Serialize;

use super::child::{LabChild, ProgramInput};
use super::lateness::LabLateness;
use super::run::{Lab, LabPlan, LabRun, LabRunError, WATCH, unknown};
use super::terminal::Terminal;

/// Time that programs get to end in when the lab does.
const GRACE: Duration = Duration::from_millis(500);
/// Added to the number of the signal that ended a program, by a shell and by the program's keeper.
const SIGNALLED: i32 = 128;

/// A program to run in a host.
#[derive(Clone, Debug)]
pub struct Program {
    /// The host's name.
    pub host: String,
    /// The program and its arguments; `{HOST}` stands for the address of the host of that name.
    pub command: Vec<String>,
}

/// Configuration of a run of programs.
#[derive(Default)]
pub struct ProgramsConfig {
    /// Draws the traffic's random numbers.
    pub seed: u64,
    /// Given the simulation before it runs.
    pub prepare: Option<Prepare>,
    /// Told the network's numbers in each step of time.
    pub series: Option<SeriesPlan>,
    /// True if programs' output goes to standard error, so that standard output is the caller's alone.
    pub apart: bool,
    /// True if programs' output goes nowhere.
    pub quiet: bool,
    /// True if the last program reads the caller's standard input; a terminal is its own until it ends.
    pub input: bool,
    /// Longest time that programs may run.
    pub longest: Option<Duration>,
}

/// The end of a program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProgramEnd {
    /// The host's name.
    pub host: String,
    /// The program and its arguments, as they were run.
    pub command: Vec<String>,
    /// The exit code; 128 and the signal's number where a signal ended it.
    pub exit_code: i32,
    /// The signal, if one ended it.
    pub signal: Option<&'static str>,
    /// True if the lab asked it to end: after the last program, when the time was up, or when the lab was interrupted.
    pub stopped: bool,
    /// Time that it ran, seconds.
    pub seconds: f64,
}

impl ProgramEnd {
    fn of(host: &str, command: &[String], status: ExitStatus, stopped: bool, ran: Duration) -> ProgramEnd {
        let exit_code = status.code().unwrap_or(1);
        let signal = Signal::try_from(exit_code - SIGNALLED).ok().map(Signal::as_str);
        let (host, command, seconds) = (host.to_owned(), command.to_vec(), ran.as_secs_f64());
        ProgramEnd { host, command, exit_code, signal, stopped, seconds }
    }

    /// True if it ended by itself with an exit code other than 0.
    pub fn failed(&self) -> bool {
        !self.stopped && self.exit_code != 0
    }
}

/// A program that runs.
struct Running {
    host: String,
    command: Vec<String>,
    child: LabChild,
    began: Instant,
    end: Option<ProgramEnd>,
}

impl Running {
    /// Notes its end, if it has ended.
    fn look(&mut self) -> io::Result<bool> {
        if self.end.is_none()
            && let Some(status) = self.child.try_wait()?
        {
            self.end = Some(ProgramEnd::of(&self.host, &self.command, status, false, self.began.elapsed()));
        }
        Ok(self.end.is_some())
    }

    /// Waits for the end of a program that was asked to.
    fn ended(mut self, until: Instant) -> io::Result<ProgramEnd> {
        let grace = until.saturating_duration_since(Instant::now());
        match self.end {
            Some(end) => Ok(end),
            None => {
                let status = self.child.end_within(grace)?;
                Ok(ProgramEnd::of(&self.host, &self.command, status, true, self.began.elapsed()))
            }
        }
    }
}

/// Runs programs inside a scenario's hosts until the last one named has ended, `stop` is set or the time is up. Gives the end
/// of each and the lab's results. The scenario's traffic goes on for as long, whatever the scenario's duration. Programs
/// know the hosts by their names.
///
/// # Errors
/// See [`LabRunError`].
pub fn run_programs(
    scenario: &Scenario,
    programs: &[Program],
    config: ProgramsConfig,
    stop: &AtomicBool,
) -> Result<(Vec<ProgramEnd>, LabRun), LabRunError> {
    let words = |program: &Program| program.command.iter().map(|word| expand(scenario, word)).collect();
    let commands: Vec<Vec<String>> = programs.iter().map(words).collect::<Result<_, _>>()?;
    let wanted: Vec<usize> = (0..scenario.hosts.len()).collect();
    let ProgramsConfig { seed, prepare, series, apart, quiet, input, longest } = config;
    let plan = LabPlan { seed, hosts: &wanted, prepare, series, ..LabPlan::default() };
    let mut lab = Lab::start(scenario, plan)?;
    lab.give_names()?;
    // Taken back when the programs have ended.
    let terminal = if input { Terminal::in_front() } else { None };
    let mut running: Vec<Running> = Vec::new();
    let began = Instant::now();
    for (number, (program, words)) in programs.iter().zip(commands).enumerate() {
        let index = scenario.host(&program.host).ok_or_else(|| unknown(scenario, &program.host))?;
        let Some((name, arguments)) = words.split_first() else { continue };
        let mut command = Command::new(name);
        command.args(arguments);
        if apart {
            command.stdout(io::stderr());
        }
        if quiet {
            command.stdout(Stdio::null()).stderr(Stdio::null());
        }
        let is_last = number + 1 == programs.len();
        let input = match (is_last && input, &terminal) {
            (false, _) => ProgramInput::Nothing,
            (true, Some(_)) => ProgramInput::Terminal,
            // Reading from behind would stop it.
            (true, None) if io::IsTerminal::is_terminal(&io::stdin()) => ProgramInput::Nothing,
            (true, None) => ProgramInput::Inherited,
        };
        let child = LabChild::spawn_with(lab.host(index)?, command, input)?;
        running.push(Running {
            host: program.host.clone(),
            command: words,
            child,
            began: Instant::now(),
            end: None,
        });
        // Servers come first on the command line: give them a moment to listen.
        if !is_last {
            std::thread::sleep(Duration::from_millis(200));
        }
    }
    let is_over = || {
        stop.load(Ordering::Relaxed)
            || longest.is_some_and(|longest| began.elapsed() >= longest)
            || lab.has_ended()
    };
    loop {
        let mut last = true;
        for program in &mut running {
            last = program.look()?;
        }
        if last || is_over() {
            break;
        }
        std::thread::sleep(WATCH);
    }
    let losses = lab.losses()?;
    // All are asked before any is waited for, so that the lab ends in one time of grace whatever their number.
    running.iter_mut().filter(|program| program.end.is_none()).for_each(|program| program.child.ask_to_end());
    let until = Instant::now() + GRACE;
    let ends = running.into_iter().map(|program| program.ended(until)).collect::<Result<Vec<_>, _>>()?;
    drop(terminal);
    let (pump, realtime) = lab.finish()?;
    let lateness = LabLateness::of(scenario, &pump, None, realtime);
    let mut run = lab.ran(&pump, lateness)?;
    // Packets to a program that the lab has stopped find nobody: that is no loss of its host.
    for (at_end, before) in run.hosts.iter_mut().zip(losses) {
        if ends.iter().any(|end| end.stopped && end.host == before.host) {
            *at_end = before;
        }
    }
    Ok((ends, run))
}

/// Replaces `{NAME}` by the address of the host of that name, and `{{NAME}}` by `{NAME}`. Other braces are a shell's, as in `${NAME}`, or a
/// program's, unless a name alone stands in them.
fn expand(scenario: &Scenario, word: &str) -> Result<String, LabRunError> {
    let (mut expanded, mut rest) = (String::new(), word);
    while let Some(at) = rest.find('{') {
        let (before, braced) = rest.split_at(at);
        expanded.push_str(before);
        let open = if braced.starts_with("{{") { "{{" } else { "{" };
        let close = if open == "{" { "}" } else { "}}" };
        let is_name = |name: &str| {
            name.starts_with(|c: char| c.is_ascii_alphanumeric())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
        };
        let named = braced[open.len()..].split_once(close).filter(|(name, _)| is_name(name));
        let Some((name, after)) = named.filter(|_| !before.ends_with('$')) else {
            expanded.push_str(open);
            rest = &braced[open.len()..];
            continue;
        };
        match scenario.host(name) {
            _ if open == "{{" => expanded += &format!("{{{name}}}"),
            Some(host) => expanded += &scenario.hosts[host].v4.to_string(),
            // A number counts repetitions in many programs' patterns.
            None if name.parse::<u32>().is_ok() => expanded += &format!("{{{name}}}"),
            None => {
                let known: Vec<_> = scenario.hosts.iter().map(|host| format!("{{{}}}", host.name)).collect();
                return Err(LabRunError::UnknownPlaceholder(name.to_owned(), known.join(", ")));
            }
        }
        rest = after;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_braces_are_addresses() {
        let text = lastmile_sim::scenario::builtin_text("path").unwrap();
        let scenario = Scenario::parse("path", text).unwrap();
        let expanded = |word: &str| expand(&scenario, word).map_err(|error| error.to_string());
        let address = scenario.hosts[scenario.host("receiver").unwrap()].v4;
        for (word, wanted) in [
            ("http://{receiver}:80/{receiver}", format!("http://{address}:80/{address}")),
            (
                "${receiver} {} a{3} { print $1 } {a,b} {",
                "${receiver} {} a{3} { print $1 } {a,b} {".to_owned(),
            ),
            ("{{print}} {{receiver}}", "{print} {receiver}".to_owned()),
        ] {
            assert_eq!(expanded(word), Ok(wanted));
        }
        assert_eq!(
            expanded("{nosuch}").unwrap_err(),
            "{nosuch} in a command stands for no host's address: there are {sender}, {receiver}; {{nosuch}} stands for the text {nosuch}"
        );
    }
}
