//! The files that a run of a scenario writes as it goes, in the simulator and in the lab: recordings, captures, events.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::anyhow;
use lastmile::endpoint::Event;
use lastmile::time::{Span, Time};
use lastmile_net::recording::World;
use lastmile_sim::monitor::series::{MIN_STEP, SeriesPlan, SeriesRow};
use lastmile_sim::roles::Found;
use lastmile_sim::runs::Hooks;
use lastmile_sim::runs::event_file::EventLog;
use lastmile_sim::runs::pcap::{Capture, Select, interfaces};
use lastmile_sim::scenario::{Scenario, Simulation};

use crate::files::recorder::ScenarioRecorder;
use crate::roles::Recorded;
use crate::shell::exit::Exit;
use crate::shell::options::KERNEL_NOISE;
use crate::shell::replace::{apart, incomplete, unwritable};
use crate::shell::spool::Spool;

/// Most delay of a lab endpoint's decision on its way to the event file: a hundred times the lateness that a run may have.
const LATEST_DECISION: Span = Span::from_secs(1);

/// Files to write.
#[derive(clap::Args)]
pub(crate) struct OutputArgs {
    /// Write the decisions, every lost packet with its cause, and the planned changes to FILE as JSON lines
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// Write all inputs of the first endpoint (prober, or sender of a stream) to FILE, for `lastmile replay` and `lastmile report`
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Write the packets and rates of every flow, link and WLAN by steps of time to FILE, as CSV if its name ends in .csv, else as JSON
    /// lines
    #[arg(long, value_name = "FILE")]
    series: Option<PathBuf>,
    /// Length of a step of --series, such as `100 ms`; 1 ms at least
    #[arg(long, value_name = "TIME", requires = "series", default_value = "100 ms", value_parser = step)]
    series_step: Span,
    /// Write the packets of every host, link and WLAN to FILE, as pcapng
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Capture only on these: a host's name, FROM>TO of a link, wlan/STATION; several with commas. Wireshark's analysis
    /// of TCP takes a packet that it sees on several interfaces for a retransmission
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "pcap")]
    pcap_at: Vec<String>,
}

/// Destination of a run's lines or packets.
type Out = Box<dyn Write + Send>;
/// A slot that is filled once the simulation is there.
type Slot<T> = Arc<Mutex<Option<T>>>;

/// Files under way.
pub(crate) struct Outputs {
    recorder: Option<(PathBuf, ScenarioRecorder)>,
    capture: Option<(PathBuf, Slot<Capture<Out>>)>,
    log: Option<(PathBuf, Slot<EventLog<Out>>)>,
    series: Option<(PathBuf, Arc<Mutex<SeriesFile>>)>,
}

impl OutputArgs {
    /// Opens all files, and gives the hooks by which the run fills them. `name` is the scenario as the user gave it.
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
                let what = Recorded { world, noise, method_seed: seed };
                let (recorder, hooks) = ScenarioRecorder::create(file, scenario, what)?;
                (Some((file.clone(), recorder)), hooks)
            }
        };
        let mut outputs = Outputs { recorder, capture: None, log: None, series: None };
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
        if let Some(file) = &self.series {
            let written = Arc::new(Mutex::new(SeriesFile::new(file, create(file, in_lab)?)));
            let shared = Arc::clone(&written);
            let tell = move |row: &SeriesRow| shared.lock().unwrap_or_else(PoisonError::into_inner).row(row);
            hooks.series = Some(SeriesPlan { step: self.series_step, tell: Box::new(tell) });
            outputs.series = Some((file.clone(), written));
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
            ("--series", self.series.as_deref()),
        ];
        apart(&files)
    }
}

impl Outputs {
    /// Ends all files at the run's `end`, with the decisions and records of the sessions. A file's error does not keep results
    /// from being printed: it comes afterwards.
    pub(crate) fn finish(self, events: &[Event], found: &Found, end: Time) -> anyhow::Result<()> {
        let recorder = self.recorder.map(|(file, recorder)| {
            let finished = recorder.finish(events, found);
            finished.map_err(|error| incomplete(&file, &error))
        });
        let capture =
            self.capture.map(|(file, capture)| ended(&file, taken(&capture).map_or(Ok(()), Capture::finish)));
        let log = self.log.map(|(file, log)| ended(&file, taken(&log).map_or(Ok(()), |log| log.finish(end))));
        let series = self.series.map(|(file, series)| {
            ended(&file, series.lock().unwrap_or_else(PoisonError::into_inner).finish())
        });
        // One that fails does not keep the others from their ends.
        [recorder, capture, log, series].into_iter().flatten().collect()
    }
}

/// A series under way; keeps the first error until its end.
struct SeriesFile {
    csv: Option<csv::Writer<Out>>,
    lines: Option<Out>,
    failed: Option<io::Error>,
}

impl SeriesFile {
    fn new(file: &Path, out: Out) -> SeriesFile {
        let is_csv = file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("csv"));
        let (csv, lines) =
            if is_csv { (Some(csv::Writer::from_writer(out)), None) } else { (None, Some(out)) };
        SeriesFile { csv, lines, failed: None }
    }

    fn row(&mut self, row: &SeriesRow) {
        let written = match (&mut self.csv, &mut self.lines) {
            (Some(csv), _) => csv.serialize(row).map_err(io::Error::other),
            (_, Some(out)) => line(out, row),
            _ => Ok(()),
        };
        if let Err(error) = written {
            (self.csv, self.lines) = (None, None);
            self.failed = Some(error);
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        self.csv.take().map_or(Ok(()), |mut csv| csv.flush())?;
        self.lines.take().map_or(Ok(()), |mut out| out.flush())
    }
}

/// A row as a line of JSON, without its null values.
fn line(out: &mut Out, row: &SeriesRow) -> io::Result<()> {
    let mut all = serde_json::to_value(row)?;
    if let Some(all) = all.as_object_mut() {
        all.retain(|_, value| !value.is_null());
    }
    serde_json::to_writer(&mut *out, &all)?;
    out.write_all(b"\n")
}

fn step(text: &str) -> Result<Span, String> {
    let step: Span = text.parse().map_err(|error| format!("{error}"))?;
    if step < MIN_STEP { Err(format!("a step has {MIN_STEP} at least")) } else { Ok(step) }
}

fn create(file: &Path, in_lab: bool) -> anyhow::Result<Out> {
    let blamed = |error| unwritable(file, &error);
    let created = File::create(file).map_err(blamed)?;
    Ok(match in_lab {
        true => Box::new(BufWriter::with_capacity(65_536, Spool::new(created).map_err(blamed)?)),
        false => Box::new(BufWriter::new(created)),
    })
}

fn ended(file: &Path, result: io::Result<()>) -> anyhow::Result<()> {
    result.map_err(|error| incomplete(file, &error.into()))
}

fn taken<T>(slot: &Slot<T>) -> Option<T> {
    slot.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Attaches something to the simulation before it runs, after earlier attachments.
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
