//! `lastmile demo`: real packets through a path whose truth is known.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use lastmile::time::Span;
use lastmile_net::lab::LabError;
use lastmile_net::lab::run::{LabConfig, LabRunError, run as run_lab};
use lastmile_net::recording::{Reader, World};
use lastmile_net::sched;
use lastmile_sim::roles::Found;
use lastmile_sim::roles::Makers;
use lastmile_sim::runs::{Hooks, simulate};
use lastmile_sim::scenario::Scenario;

use crate::files::page::of_recording;
use crate::files::recorder::ScenarioRecorder;
use crate::roles;
use crate::roles::Recorded;
use crate::shell::exit::Exit;
use crate::shell::options::KERNEL_NOISE;
use crate::shell::replace::{self, replace};
use crate::shell::{say_in_lines, scenarios, signals};

/// Measure paths of known truth and send video over a lossy one, with real packets, in 45 s
///
/// The lab needs root or user namespaces. Without them the demo shows the simulator alone and says what is missing.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write a page with the plots of the first run, and its recording beside it
    #[arg(long, value_name = "FILE.html")]
    html: Option<PathBuf>,
}

struct Act {
    title: &'static str,
    what: What,
}

enum What {
    /// A measurement, and the link that it is of.
    Measure { path: &'static str, measure: &'static str },
    /// A stream under that controller.
    Video { control: &'static str },
}

const ACTS: &[Act] = &[
    Act {
        title: "WBest: 0.7 s and 256 kB to the server, where other traffic takes 4 of 10 Mbit/s; 0.4 s and 134 kB on the idle way back.",
        what: What::Measure {
            path: "rate = \"10 Mbit/s\"\nback = { rate = \"20 Mbit/s\" }",
            measure: "method = \"wbest\"\ndirection = \"both\"",
        },
    },
    Act {
        title: "WBest with four trains: a narrower interval of the next 10 s.",
        what: What::Measure {
            path: "rate = \"10 Mbit/s\"",
            measure: "method = \"wbest\"\ndirection = \"forward\"\ntrains = 4",
        },
    },
    Act {
        title: "CapProbe: the capacity alone, through the same traffic.",
        what: What::Measure {
            path: "rate = \"30 Mbit/s\"",
            measure: "method = \"capprobe\"\ndirection = \"forward\"",
        },
    },
    Act {
        title: "Video under TFRC for 20 s over 4 Mbit/s, where 3 % are lost as on a wireless last hop: to TFRC each loss is congestion.",
        what: What::Video { control: "tfrc" },
    },
    Act {
        title: "The same with a loss classifier in front: losses without a growing queue count as the wireless link's.",
        what: What::Video { control: "tfrc+spike" },
    },
];

fn scenario(act: &Act) -> anyhow::Result<Scenario> {
    let link = "[host.home]\n[host.server]\n[[link]]\nfrom = \"home\"\nto = \"server\"\n";
    let text = match act.what {
        What::Measure { path, measure } => format!(
            "name = \"demo\"\nduration = \"8 s\"\nwarm_up = \"0.2 s\"\n{link}{path}\ndelay = \"5 ms\"\nqueue = \"60 kB\"\n\
             [[traffic]]\nname = \"others\"\nkind = \"poisson\"\nfrom = \"home\"\nto = \"server\"\nrate = \"4 Mbit/s\"\nsize = \"1500 B\"\n\
             [[measure]]\nfrom = \"home\"\nto = \"server\"\n{measure}\nstart = \"300 ms\"\n"
        ),
        What::Video { control } => format!(
            "name = \"demo\"\nduration = \"20 s\"\n{link}rate = \"4 Mbit/s\"\ndelay = \"25 ms\"\nqueue = \"25 kB\"\n\
             losses = [{{ name = \"air\", model = {{ kind = \"bernoulli\", rate = 0.03 }} }}]\nback = {{ losses = [] }}\n\
             [[stream]]\nname = \"video\"\nfrom = \"home\"\nto = \"server\"\ncontrol = \"{control}\"\n\
             source = \"codec\"\nframe_rate = 30\nreceipt_times = true\n"
        ),
    };
    Scenario::parse("demo", &text).map_err(|error| Exit::Usage.blame(error))
}

pub(crate) fn run(args: Args) -> anyhow::Result<Option<Exit>> {
    args.html.as_deref().map_or(Ok(()), replace::check)?;
    signals::stop();
    say_in_lines(
        "Two hosts (network namespaces) on this machine, joined by a simulated link that carries real packets in real time. \
         The truth is read from the link's queue.\n",
    );
    crate::shell::say("");
    let (mut shown, mut drawn) = (0, false);
    for (number, act) in ACTS.iter().enumerate() {
        let scenario = scenario(act)?;
        say_in_lines(act.title);
        let html = args.html.as_ref().filter(|_| number == 0);
        match in_lab(&scenario, args.seed, html) {
            Ok(numbers) => {
                shown += usize::from(numbers);
                drawn |= html.is_some();
            }
            Err(LabFailure::Impossible(why)) => {
                say_in_lines(&format!("The lab cannot be shown here: {why}. In the simulator:"));
                in_simulator(&scenario, args.seed)?;
                continue;
            }
            Err(LabFailure::Other(error)) => return Err(error),
        }
        crate::shell::say("The same session in virtual time:");
        in_simulator(&scenario, args.seed)?;
    }
    if let Some(page) = &args.html {
        crate::shell::say(&match drawn {
            true => format!("Plots of the first run: {}", page.display()),
            false => format!("No lab, no plots: {} was not written", page.display()),
        });
    }
    if shown < ACTS.len() {
        say_in_lines(
            "Some runs were not shown, for the reason given; `lastmile doctor` says what to change.",
        );
    }
    say_in_lines(
        "Next: `lastmile serve` on one machine, `lastmile measure HOST` on another; `lastmile receive`, `lastmile stream HOST`.",
    );
    Ok(None)
}

enum LabFailure {
    /// This machine cannot have a lab.
    Impossible(String),
    Other(anyhow::Error),
}

impl From<anyhow::Error> for LabFailure {
    fn from(error: anyhow::Error) -> LabFailure {
        LabFailure::Other(error)
    }
}

/// Runs the scenario in the lab; true if numbers were shown.
fn in_lab(scenario: &Scenario, seed: u64, html: Option<&PathBuf>) -> Result<bool, LabFailure> {
    let realtime = sched::may_be_realtime();
    for attempt in 0..3 {
        let (recorder, hooks) = match html {
            None => (None, Hooks::default()),
            Some(page) => {
                let what = Recorded { world: World::Lab, noise: KERNEL_NOISE, method_seed: seed };
                let file = page.with_extension("jsonl");
                let (recorder, hooks) = ScenarioRecorder::create(&file, scenario, what)?;
                (Some(recorder), hooks)
            }
        };
        let make = Makers::registered(KERNEL_NOISE, seed);
        let run = match run_lab(scenario, &make, LabConfig { seed, realtime, hooks }, signals::stop()) {
            Ok(run) => run,
            Err(LabRunError::Lab(error @ (LabError::NeedNamespaces { .. } | LabError::NeedTun { .. }))) => {
                return Err(LabFailure::Impossible(error.to_string()));
            }
            Err(error) => return Err(LabFailure::Other(super::lab::blame(error))),
        };
        if signals::stopped() {
            return Err(LabFailure::Other(Exit::Interrupted.blame(anyhow!("interrupted"))));
        }
        if run.lateness.refused.is_some() && attempt < 2 {
            continue;
        }
        if run.lateness.refused.is_none() {
            say_answer(scenario, &run.found);
        }
        super::lab::say_lateness(&run.lateness);
        if let (Some(recorder), Some(page)) = (recorder, html) {
            recorder.finish(&run.events, &run.found)?;
            draw(page)?;
        }
        return Ok(run.lateness.refused.is_none());
    }
    Ok(false)
}

fn draw(page: &Path) -> anyhow::Result<()> {
    let recording = page.with_extension("jsonl");
    let drawn = of_recording(&recording.display().to_string(), Reader::open(&recording)?)?;
    replace(page, |file| Ok(file.write_all(drawn.as_bytes())?)).map_err(|error| Exit::Machine.blame(error))
}

fn in_simulator(scenario: &Scenario, seed: u64) -> anyhow::Result<()> {
    let run = simulate(scenario, seed, &Makers::registered(Span::ZERO, seed), Hooks::default());
    let run = run.map_err(scenarios::blame)?;
    say_answer(scenario, &run.found);
    crate::shell::say("");
    Ok(())
}

fn say_answer(scenario: &Scenario, found: &Found) {
    roles::shown(scenario, found).iter().for_each(|shown| crate::shell::say_text(&shown.text, false));
}
