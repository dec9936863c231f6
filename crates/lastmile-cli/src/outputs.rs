//! The files that a run of a scenario writes as it goes, in the simulator and in the lab: recordings, captures, events.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::anyhow;
use lastmile::endpoint::Event;
use lastmile::time::{Span, Time};
use lastmile_net::recording::World;
use lastmile_sim::roles::Found;
use lastmile_sim::runs::Hooks;
use lastmile_sim::runs::event_file::EventLog;
use lastmile_sim::runs::pcap::{Capture, Select, interfaces};
use lastmile_sim::scenario::{Scenario, Simulation};

use crate::exit::Exit;
use crate::options::KERNEL_NOISE;
use crate::recorder::{Recorded, ScenarioRecorder};
use crate::spool::Spool;

/// How long a decision of an endpoint in the lab may take to be told: a hundred times what a run may be late.
const LATEST_DECISION: Span = Span::from_secs(1);

/// What is to be written, and where.
#[derive(clap::Args)]
pub(crate) struct OutputArgs {
    /// Write the decisions, every lost packet with its cause, and the planned changes to FILE as JSON lines
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// Write everything that the first session's prober was told to FILE, for `lastmile replay` and `lastmile report`
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Write what every host, link and WLAN carries to FILE, as pcapng
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Capture only on these: a host's name, FROM>TO of a link, wlan/STATION; several with commas. Wireshark's analysis
    /// of TCP takes a packet that it sees on several interfaces for a retransmission
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "pcap")]
    pcap_at: Vec<String>,
}

/// Where the lines or packets of a run go.
type Out = Box<dyn Write + Send>;
/// What is filled once the simulation is there.
type Slot<T> = Arc<Mutex<Option<T>>>;

/// Files under way.
pub(crate) struct Outputs {
    recorder: Option<ScenarioRecorder>,
    capture: Option<(PathBuf, Slot<Capture<Out>>)>,
    log: Option<(PathBuf, Slot<EventLog<Out>>)>,
}

impl OutputArgs {
    /// Opens them all, and gives what the run needs to fill them. `name` is what the scenario was called.
    pub(crate) fn open(
        &self,
        name: &str,
        scenario: &Scenario,
        world: World,
        seed: u64,
    ) -> anyhow::Result<(Outputs, Hooks)> {
        self.apart(name)?;
        let (noise, in_lab) = match world {
            // Simulated stamps have their resolution and no other error.
            World::Sim => (Span::ZERO, false),
            _ => (KERNEL_NOISE, true),
        };
        let (recorder, mut hooks) = match &self.record {
            None => (None, Hooks::default()),
            Some(file) => {
                let what = Recorded::of(scenario, world, noise, seed)?;
                let (recorder, hooks) = ScenarioRecorder::create(file, what)?;
                (Some(recorder), hooks)
            }
        };
        let mut outputs = Outputs { recorder, capture: None, log: None };
        if let Some(file) = &self.pcap {
            let select = match self.pcap_at.is_empty() {
                true => Select::All,
                false => Select::Only(self.pcap_at.clone()),
            };
            if let Some(unknown) = select.unknown(scenario) {
                let known = interfaces(scenario).join(", ");
                return Err(
                    Exit::Usage.blame(anyhow!("--pcap-at: there is no {unknown:?}; there are: {known}"))
                );
            }
            let out = create(file, in_lab)?;
            let slot = prepared(&mut hooks, move |scenario, simulation| {
                Capture::attach(scenario, simulation, &select, out)
            });
            outputs.capture = Some((file.clone(), slot));
        }
        if let Some(file) = &self.events {
            let out = create(file, in_lab)?;
            let hold = if in_lab { LATEST_DECISION } else { Span::ZERO };
            let slot = prepared(&mut hooks, move |scenario, simulation| {
                EventLog::attach(scenario, simulation, out).holding(hold)
            });
            outputs.log = Some((file.clone(), slot));
        }
        Ok((outputs, hooks))
    }

    /// No file is written twice, or over the scenario.
    fn apart(&self, name: &str) -> anyhow::Result<()> {
        let files = [
            ("the scenario", Some(Path::new(name))),
            ("--events", self.events.as_deref()),
            ("--record", self.record.as_deref()),
            ("--pcap", self.pcap.as_deref()),
        ];
        // Where a file exists its canonical path tells links apart; one that does not is nobody else's but by name.
        let place = |file: &Path| std::fs::canonicalize(file).or_else(|_| std::path::absolute(file)).ok();
        // What is no file, such as a terminal or /dev/null, may be given more than once.
        let files: Vec<_> = files
            .into_iter()
            .filter_map(|(what, file)| Some((what, place(file?)?)))
            .filter(|(_, file)| file.is_file() || !file.exists())
            .collect();
        for (index, (what, file)) in files.iter().enumerate() {
            if let Some((other, _)) = files[..index].iter().find(|(_, before)| before == file) {
                return Err(Exit::Usage.blame(anyhow!("{what}: {} is {other}'s", file.display())));
            }
        }
        Ok(())
    }
}

impl Outputs {
    /// Ends them all: with what the sessions decided and sent, at the run's `end`.
    pub(crate) fn finish(self, events: &[Event], found: &Found, end: Time) -> anyhow::Result<()> {
        if let Some(recorder) = self.recorder {
            recorder.finish(events, found)?;
        }
        if let Some((file, capture)) = self.capture {
            ended(&file, taken(&capture).map_or(Ok(()), Capture::finish))?;
        }
        if let Some((file, log)) = self.log {
            ended(&file, taken(&log).map_or(Ok(()), |log| log.finish(end)))?;
        }
        Ok(())
    }
}

fn create(file: &Path, in_lab: bool) -> anyhow::Result<Out> {
    let blamed = |error| Exit::Usage.blame(anyhow!("cannot write {}: {error}", file.display()));
    let created = File::create(file).map_err(blamed)?;
    Ok(match in_lab {
        true => Box::new(BufWriter::with_capacity(65_536, Spool::new(created).map_err(blamed)?)),
        false => Box::new(BufWriter::new(created)),
    })
}

fn ended(file: &Path, result: io::Result<()>) -> anyhow::Result<()> {
    let file = file.display();
    result
        .map_err(|error| Exit::Machine.blame(anyhow!("cannot write {file}, which is not complete: {error}")))
}

fn taken<T>(slot: &Slot<T>) -> Option<T> {
    slot.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Has something attached to the simulation before it runs, after what was asked for before.
fn prepared<T: Send + 'static>(
    hooks: &mut Hooks,
    attach: impl FnOnce(&Scenario, &mut Simulation) -> T + Send + 'static,
) -> Slot<T> {
    let slot = Slot::default();
    let filled = Arc::clone(&slot);
    let before = hooks.prepare.take();
    hooks.prepare = Some(Box::new(move |scenario, simulation| {
        if let Some(before) = before {
            before(scenario, simulation);
        }
        *filled.lock().unwrap_or_else(PoisonError::into_inner) = Some(attach(scenario, simulation));
    }));
    slot
}
