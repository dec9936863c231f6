//! Endpoints on real sockets, with the files that are asked for: a recording, their decisions, a page.

use std::cell::Cell;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use lastmile::endpoint::{Endpoint, Event};
use lastmile::event;
use lastmile::node::{Input, Recorded};
use lastmile::time::Time;
use lastmile_net::driver::Driver;
use lastmile_net::recording::{Header, SharedRecorder};

use crate::files::recorder;
#[cfg(feature = "pages")]
use crate::roles::run::Run;
use crate::shell::exit::Exit;
use crate::shell::replace::{incomplete, unwritable};
use crate::shell::signals;
use crate::shell::spool::Spool;

/// Files to write.
#[derive(clap::Args)]
pub(crate) struct LiveArgs {
    /// Write all packets and decisions to FILE, for `lastmile replay` and `lastmile report`
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Write the decisions to FILE as JSON lines
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// Draw the result as one HTML page without network or scripts
    #[cfg(feature = "pages")]
    #[arg(long, value_name = "FILE.html")]
    html: Option<PathBuf>,
}

/// The files of a run.
pub(crate) struct Live {
    recorder: Option<(PathBuf, SharedRecorder)>,
    events: Option<(PathBuf, BufWriter<Spool>)>,
    #[cfg(feature = "pages")]
    page: Option<(PathBuf, Run)>,
    /// Makes a section of the page when the run is over.
    section: Option<Section>,
}

/// Makes a section of a page.
pub(crate) type Section = Box<dyn FnOnce() -> String>;

impl LiveArgs {
    /// True if a recording is asked for.
    pub(crate) fn records(&self) -> bool {
        self.record.is_some()
    }

    /// Refuses files of which two are the same, those among them that the run has besides.
    pub(crate) fn apart(&self, besides: &[(&str, Option<&Path>)]) -> anyhow::Result<()> {
        let own = [
            ("--record", self.record.as_deref()),
            ("--events", self.events.as_deref()),
            #[cfg(feature = "pages")]
            ("--html", self.html.as_deref()),
        ];
        crate::shell::replace::apart(&[besides, &own].concat())
    }

    /// Opens the files of an endpoint, which can be built again from the header.
    pub(crate) fn open(&self, header: Header) -> anyhow::Result<Live> {
        self.apart(&[])?;
        #[cfg(feature = "pages")]
        self.html.as_deref().map_or(Ok(()), crate::shell::replace::check)?;
        let record = |file: &PathBuf| anyhow::Ok((file.clone(), recorder::to_file(file, &header)?));
        let recorder = self.record.as_ref().map(record).transpose()?;
        let create = |file: &PathBuf| {
            let spool = File::create(file).and_then(Spool::new);
            let spool = spool.map_err(|error| unwritable(file, &error))?;
            anyhow::Ok((file.clone(), BufWriter::new(spool)))
        };
        let events = self.events.as_ref().map(create).transpose()?;
        #[cfg(feature = "pages")]
        let page = self.html.clone().map(|file| {
            let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned();
            (file, Run { header: Some(header), ..Run::new(&name) })
        });
        Ok(Live {
            recorder,
            events,
            #[cfg(feature = "pages")]
            page,
            section: None,
        })
    }
}

impl Live {
    /// The same with a section of its page about what is in no file.
    pub(crate) fn with_section(self, section: Option<Section>) -> Live {
        Live { section, ..self }
    }

    /// Runs the endpoint until it has finished, `limit` is over, `done` says so of a decision, or a signal comes. Files are ended;
    /// what could not be written is the second error, for after the results. Of several endpoints the page has the decisions of the first.
    pub(crate) fn run<E: Endpoint>(
        self,
        driver: &mut Driver,
        endpoint: E,
        limit: Option<Duration>,
        mut done: impl FnMut(&Event) -> bool,
    ) -> anyhow::Result<anyhow::Result<()>>
    where
        event::Event<E::Event>: Clone + Into<Event>,
    {
        let Live { recorder, mut events, section, .. } = self;
        #[cfg(feature = "pages")]
        let mut page = self.page;
        let interrupted = Cell::new(false);
        let mut node = Recorded::new(endpoint, |now: Time, input: &Input| {
            interrupted.set(interrupted.get() | matches!(input, Input::Interrupted));
            if let Some((_, recorder)) = &recorder {
                recorder.input(now, input);
            }
        });
        let mut written = Ok(());
        let over = Cell::new(false);
        let mut on_event = |told: &event::Event<E::Event>| {
            let event: &Event = &told.clone().into();
            if let Some((_, recorder)) = &recorder {
                recorder.event(event);
            }
            if let Some((_, out)) = events.as_mut().filter(|_| written.is_ok()) {
                let line = serde_json::to_writer(&mut *out, event).map_err(std::io::Error::from);
                written = line.and_then(|()| out.write_all(b"\n"));
            }
            #[cfg(feature = "pages")]
            if let Some((_, run)) = page.as_mut().filter(|_| event.node == 0) {
                run.counts.events += 1;
                run.event(event.clone());
            }
            over.set(over.get() | done(event));
        };
        let began = Instant::now();
        let up = || over.get() || limit.is_some_and(|limit| began.elapsed() >= limit);
        driver.run(&mut node, &mut on_event, signals::stop(), |node| up() || node.is_finished())?;
        if !node.is_finished() && !interrupted.get() {
            driver.interrupt(&mut node, &mut on_event);
        }
        let recorded = recorder.as_ref().map_or(Ok(()), |(file, recorder)| {
            recorder.finish().map(drop).map_err(|error| incomplete(file, &error.into()))
        });
        let written = events.as_mut().map_or(Ok(()), |(file, out)| {
            let done = written.and_then(|()| out.flush());
            done.map_err(|error| incomplete(file, &error.into()))
        });
        #[cfg(not(feature = "pages"))]
        let paged = {
            drop(section);
            Ok(())
        };
        #[cfg(feature = "pages")]
        let paged = page.map_or(Ok(()), |(file, mut run)| {
            run.section = section.map(|section| section()).unwrap_or_default();
            let page = crate::files::page::of_run(&run);
            crate::shell::replace::replace(&file, |out| Ok(out.write_all(page.as_bytes())?))
        });
        let errors = [recorded, written, paged].into_iter().filter_map(Result::err);
        let errors = errors.reduce(|one, other| anyhow!("{one}; {other}"));
        Ok(errors.map_or(Ok(()), |error| Err(Exit::Machine.blame(error))))
    }
}
