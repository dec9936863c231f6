//! `lastmile demo`: real packets through paths whose truth is known, and video over a cell of Wi-Fi.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use lastmile::time::Span;
use lastmile_net::lab::LabError;
use lastmile_net::lab::lateness::LabLateness;
use lastmile_net::lab::run::{LabConfig, LabRun, LabRunError, run as run_lab};
use lastmile_net::recording::{Reader, World};
use lastmile_net::sched;
use lastmile_report::html::{self, esc};
use lastmile_report::text::Form;
use lastmile_sim::roles::Found;
use lastmile_sim::roles::Makers;
use lastmile_sim::runs::{Hooks, simulate};
use lastmile_sim::scenario::{Override, Scenario};

use crate::files::page::body_of_recording;
use crate::files::recorder::ScenarioRecorder;
use crate::roles;
use crate::roles::Recorded;
use crate::shell::exit::Exit;
use crate::shell::options::{KERNEL_NOISE, seconds};
use crate::shell::replace::{self, replace};
use crate::shell::{WIDTH, say, say_in_lines, scenarios, signals};

#[cfg(feature = "video")]
mod video;

/// Measure paths of known truth, and send video over a cell of Wi-Fi, with real packets, in 90 s
///
/// The lab needs root or user namespaces; without them the demo runs in the simulator and says so. Real video is in builds with the feature
/// `video`: without it frames have sizes and no content.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Longest time of each video: seconds, or a time such as 10s
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    seconds: f64,
    /// Write a page with the videos and the plots of the first measurement, and the recording of that beside it
    #[arg(long, value_name = "FILE.html")]
    html: Option<PathBuf>,
}

/// The cell of the demo, and its video from [`VIDEO`] on.
const CELL: &str = include_str!("cell.toml");
const VIDEO: &str = "[[handoff]]";
/// The controllers that the video is sent under, one after the other.
const CONTROLLERS: [&str; 2] = ["tfrc", "lastmile"];
/// Tries of a measurement whose run is refused, and of a video.
const TRIES: usize = 3;
const VIDEO_TRIES: usize = 2;

struct Measurement {
    title: &'static str,
    /// In the cell; else on a wire, and in virtual time after that.
    in_cell: bool,
    method: &'static str,
}

const MEASUREMENTS: [Measurement; 4] = [
    Measurement {
        title: "WBest: 0.7 s and 256 kB to the server, where other traffic takes 4 of 10 Mbit/s; 0.4 s and 134 kB on the idle way back.",
        in_cell: false,
        method: "from = \"home\"\nto = \"server\"\nmethod = \"wbest\"\ndirection = \"both\"",
    },
    Measurement {
        title: "CapProbe over the same link: the capacity alone, by the pair that met nobody.",
        in_cell: false,
        method: "from = \"home\"\nto = \"server\"\nmethod = \"capprobe\"\ndirection = \"forward\"",
    },
    Measurement {
        title: "WBest to a phone in a cell of 802.11g, where a laptop takes 18 Mbit/s.",
        in_cell: true,
        method: "from = \"server\"\nto = \"phone\"\nmethod = \"wbest\"\ndirection = \"forward\"",
    },
    Measurement {
        title: "The median dispersion of packet pairs there: the capacity alone.",
        in_cell: true,
        method: "from = \"server\"\nto = \"phone\"\nmethod = \"dispersion\"\ndirection = \"forward\"",
    },
];

impl Measurement {
    fn scenario(&self) -> anyhow::Result<Scenario> {
        let wire = "name = \"demo\"\nduration = \"8 s\"\nwarm_up = \"0.2 s\"\n[host.home]\n[host.server]\n[[link]]\nfrom = \"home\"\n\
                    to = \"server\"\nrate = \"10 Mbit/s\"\nback = { rate = \"20 Mbit/s\" }\ndelay = \"5 ms\"\nqueue = \"60 kB\"\n\
                    [[traffic]]\nname = \"others\"\nkind = \"poisson\"\nfrom = \"home\"\nto = \"server\"\nrate = \"4 Mbit/s\"\n\
                    size = \"1500 B\"\n";
        let cell = CELL.split(VIDEO).next().unwrap_or_default();
        let text = format!(
            "{}[[measure]]\n{}\nstart = \"300 ms\"\n",
            if self.in_cell { cell } else { wire },
            self.method
        );
        parsed(&text, Span::from_secs(8))
    }
}

/// A scenario that lasts so long at most.
fn parsed(text: &str, most: Span) -> anyhow::Result<Scenario> {
    let parse = |overrides: &[Override]| {
        Scenario::parse_with("demo", text, overrides).map_err(|error| Exit::Usage.blame(error))
    };
    let duration = parse(&[])?.duration.min(most);
    parse(&[Override::new("duration", duration.to_string())])
}

/// The scenario of a video under that controller.
fn cell(control: &str, seconds: f64) -> anyhow::Result<Scenario> {
    let own = CELL.replace("control = \"tfrc\"", &format!("control = \"{control}\""));
    parsed(&own, Span::from_secs_f64(seconds))
}

/// The demo so far.
struct Demo {
    seed: u64,
    /// Text of the measurements, for the page.
    said: String,
    /// Why there is no lab, once that is known.
    no_lab: Option<String>,
    /// Runs whose numbers must not be believed.
    refused: usize,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Option<Exit>> {
    args.html.as_deref().map_or(Ok(()), replace::check)?;
    let recording = args.html.as_ref().map(|page| page.with_extension("jsonl"));
    replace::apart(&[("--html", args.html.as_deref()), ("its recording", recording.as_deref())])?;
    // An empty one is of a demo that was interrupted.
    let holds_something =
        |file: &&PathBuf| file.metadata().is_ok_and(|meta| meta.is_file() && meta.len() > 0);
    // Files of events can be read too, and have no header.
    let is_recording =
        |file: &&PathBuf| Reader::open(file).is_ok_and(|recording| recording.header().is_some());
    if let Some(other) = recording.as_ref().filter(holds_something).filter(|file| !is_recording(file)) {
        let why = format!("{} is no recording, and that of the demo would replace it", other.display());
        return Err(Exit::Usage.blame(anyhow!("--html: {why}: name another page")));
    }
    signals::stop();
    say_in_lines(
        "Hosts (network namespaces) on this machine, joined by a simulated network that carries real packets in real time. \
         The truth is read from its queues.\n",
    );
    say("");
    let mut demo = Demo { seed: args.seed, said: String::new(), no_lab: None, refused: 0 };
    let [first, others @ ..] = &MEASUREMENTS;
    demo.measure(first, recording.as_deref())?;
    let in_lab = demo.no_lab.is_none();
    for measurement in others {
        demo.measure(measurement, None)?;
    }
    let filmed = demo.video(args.seconds)?;
    if let Some(page) = &args.html {
        let first = match &recording {
            Some(recording) if in_lab => drawn(recording)?,
            // It was begun for a lab, and is empty.
            Some(recording) => std::fs::remove_file(recording).map(|()| String::new()).unwrap_or_default(),
            None => String::new(),
        };
        let body = format!(
            "{}{filmed}<h2>Measurements</h2>\n<div class=\"card scroll\"><pre>{}</pre></div>\n{first}",
            html::heading("Demo", &[("seed", args.seed.to_string()), ("runs of each", "1".to_owned())]),
            esc(&demo.said)
        );
        replace(page, |file| Ok(file.write_all(html::page("Demo", &body).as_bytes())?))
            .map_err(|error| Exit::Machine.blame(error))?;
        say(&format!("All of it as a page: {}", page.display()));
        if let Some(file) = recording.filter(|_| in_lab) {
            say(&format!("The recording of the first measurement: {}", file.display()));
        }
    }
    if demo.refused > 0 {
        let runs =
            if demo.refused == 1 { "1 run was".to_owned() } else { format!("{} runs were", demo.refused) };
        say_in_lines(&format!(
            "{runs} refused, for the reason given; `lastmile doctor` says what to change."
        ));
    }
    say_in_lines(
        "Next: `lastmile serve` on one machine, `lastmile measure HOST` on another; `lastmile receive`, `lastmile stream HOST`.",
    );
    Ok(None)
}

/// The sections of a page about the first measurement.
fn drawn(recording: &Path) -> anyhow::Result<String> {
    let body = body_of_recording(&recording.display().to_string(), Reader::open(recording)?)?;
    Ok(format!("<h2>The first measurement, packet by packet</h2>\n{body}"))
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

/// Runs the scenario in the lab, again while the run is refused; `begin` makes a run's endpoints and observers, and what is to be had of it.
fn in_lab<T>(
    (scenario, seed): (&Scenario, u64),
    (tries, realtime): (usize, bool),
    mut begin: impl FnMut() -> anyhow::Result<(T, Makers, Hooks)>,
) -> Result<(T, LabRun), LabFailure> {
    let mut tried = 0;
    loop {
        let (begun, make, hooks) = begin()?;
        let run = match run_lab(scenario, &make, LabConfig { seed, realtime, hooks }, signals::stop()) {
            Ok(run) => run,
            Err(LabRunError::Lab(error @ (LabError::NeedNamespaces { .. } | LabError::NeedTun { .. }))) => {
                return Err(LabFailure::Impossible(error.to_string()));
            }
            Err(error) => return Err(LabFailure::Other(super::lab::blame(error))),
        };
        goes_on()?;
        tried += 1;
        match &run.lateness.refused {
            Some(why) if tried < tries => say_in_lines(&format!("Refused, and tried again: {why}.")),
            _ => return Ok((begun, run)),
        }
    }
}

/// An error once a signal came.
fn goes_on() -> anyhow::Result<()> {
    match signals::stopped() {
        true => Err(Exit::Interrupted.blame(anyhow!("interrupted"))),
        false => Ok(()),
    }
}

/// Runs the scenario in the simulator.
fn in_simulator(scenario: &Scenario, seed: u64, make: &Makers, hooks: Hooks) -> anyhow::Result<Found> {
    let hooks = Hooks { progress: Some(Box::new(|_| signals::goes_on())), ..hooks };
    let run = simulate(scenario, seed, make, hooks).map_err(scenarios::blame)?;
    goes_on()?;
    Ok(run.found)
}

impl Demo {
    /// The result of a run in the lab; nothing where there can be none, which is said once.
    fn where_possible<T>(
        &mut self,
        run: impl FnOnce(&mut Demo) -> Result<T, LabFailure>,
    ) -> anyhow::Result<Option<T>> {
        if self.no_lab.is_some() {
            return Ok(None);
        }
        match run(self) {
            Ok(done) => Ok(Some(done)),
            Err(LabFailure::Impossible(why)) => {
                say_in_lines(&format!(
                    "There can be no lab here: {why}. All that follows is in the simulator."
                ));
                self.no_lab = Some(why);
                Ok(None)
            }
            Err(LabFailure::Other(error)) => Err(error),
        }
    }

    /// Says how late a run was. True if its numbers may be believed.
    fn is_on_time(&mut self, lateness: &LabLateness) -> bool {
        super::lab::say_lateness(lateness);
        self.refused += usize::from(lateness.refused.is_some());
        lateness.refused.is_none()
    }

    fn measure(&mut self, measurement: &Measurement, recording: Option<&Path>) -> anyhow::Result<()> {
        let scenario = measurement.scenario()?;
        let title = measurement.title;
        say_in_lines(title);
        self.said += &format!("{title}\n");
        self.where_possible(|demo| demo.measure_in_lab(&scenario, recording))?;
        if self.no_lab.is_some() || !measurement.in_cell {
            let words = "In the simulator, in virtual time:";
            say(words);
            self.said += &format!("{words}\n");
            let make = Makers::registered(Span::ZERO, self.seed);
            let found = in_simulator(&scenario, self.seed, &make, Hooks::default())?;
            self.say_answer(&scenario, &found);
        }
        say("");
        self.said += "\n";
        Ok(())
    }

    fn measure_in_lab(&mut self, scenario: &Scenario, recording: Option<&Path>) -> Result<(), LabFailure> {
        let seed = self.seed;
        let begin = || {
            let make = Makers::registered(KERNEL_NOISE, seed);
            let what = Recorded { world: World::Lab, noise: KERNEL_NOISE, method_seed: seed };
            Ok(match recording {
                None => (None, make, Hooks::default()),
                Some(file) => {
                    let (recorder, hooks) = ScenarioRecorder::create(file, scenario, what)?;
                    (Some(recorder), make, hooks)
                }
            })
        };
        let (recorder, run) = in_lab((scenario, seed), (TRIES, sched::may_be_realtime()), begin)?;
        if run.lateness.refused.is_none() {
            self.say_answer(scenario, &run.found);
        }
        self.is_on_time(&run.lateness);
        if let Some(why) = &run.lateness.refused {
            self.said += &format!("refused: {why}\n");
        }
        if let Some(recorder) = recorder {
            recorder.finish(&run.events, &run.found)?;
        }
        Ok(())
    }

    fn say_answer(&mut self, scenario: &Scenario, found: &Found) {
        for shown in roles::shown(scenario, found) {
            crate::shell::say_text(&shown.text, false);
            self.said += &shown.text.shown(Form::Short(WIDTH));
        }
    }

    /// Streams of frames without content over the cell.
    #[cfg(not(feature = "video"))]
    fn video(&mut self, seconds: f64) -> anyhow::Result<String> {
        say_in_lines(
            "This build is without real video (the feature `video`, which `make demo` turns on): frames of these streams have sizes and no \
             content.",
        );
        for control in CONTROLLERS {
            let scenario = cell(control, seconds)?;
            say_in_lines(&format!(
                "Video under {control} to the phone, through a burst of losses and a hand-off:"
            ));
            let seed = self.seed;
            let begin = || Ok(((), Makers::registered(KERNEL_NOISE, seed), Hooks::default()));
            let real = (VIDEO_TRIES, sched::may_be_realtime());
            match self.where_possible(|_| in_lab((&scenario, seed), real, begin))? {
                Some(((), run)) => {
                    if self.is_on_time(&run.lateness) {
                        self.say_answer(&scenario, &run.found);
                    }
                }
                None => {
                    let make = Makers::registered(Span::ZERO, seed);
                    let found = in_simulator(&scenario, seed, &make, Hooks::default())?;
                    self.say_answer(&scenario, &found);
                }
            }
            say("");
        }
        Ok(String::new())
    }
}
