//! Writing recordings.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use lastmile::event::Event;
use lastmile::node::Input;
use lastmile::time::Time;
use serde::Serialize;

use super::form::{HeaderForm, InputForm, LineOut};
use super::{Counts, Header, MAX_LINE};

/// Writes a recording, each line at once and as a whole: the lines are there whatever ends the program. A program that must
/// not wait for a disk between two packets gives a writer that hands lines on to another thread.
///
/// The first error is kept and returned by [`finish`](Recorder::finish): a node that is being recorded cannot do anything
/// about a full disk, and a file without its last line is known as truncated.
pub struct Recorder<W: Write> {
    out: W,
    counts: Counts,
    failed: Option<io::Error>,
}

impl<W: Write> Recorder<W> {
    /// Begins a recording.
    ///
    /// # Errors
    /// `out` does not take it.
    pub fn new(out: W, header: &Header) -> io::Result<Recorder<W>> {
        let mut recorder = Recorder { out, counts: Counts::default(), failed: None };
        recorder.line(&HeaderForm::of(header));
        // At once, so that a place that cannot be written to is known before anything was measured.
        recorder.out.flush()?;
        recorder.failed.take().map_or(Ok(recorder), Err)
    }

    /// Writes an input of the node at `now`.
    pub fn input(&mut self, now: Time, input: &Input) {
        match InputForm::of(input) {
            Some(input) => {
                self.counts.inputs += 1;
                self.line(&LineOut::<(), ()>::Input { now, input });
            }
            None => self.fail("the recording format has no place for such an input"),
        }
    }

    /// Writes a decision.
    pub fn event(&mut self, event: &Event<impl Serialize>) {
        self.counts.events += 1;
        self.line(&LineOut::<_, ()>::Event { event });
    }

    /// Writes a record that the node's role keeps beside its decisions.
    pub fn record(&mut self, record: &impl Serialize) {
        self.counts.records += 1;
        self.line(&LineOut::<(), _>::Stream { stream: record });
    }

    /// Writes the last line.
    ///
    /// # Errors
    /// The first thing that went wrong since the recording began.
    pub fn finish(mut self) -> io::Result<Counts> {
        self.end()
    }

    fn end(&mut self) -> io::Result<Counts> {
        let end = self.counts;
        self.line(&LineOut::<(), ()>::End { end });
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        self.out.flush()?;
        Ok(end)
    }

    fn fail(&mut self, why: &str) {
        self.failed.get_or_insert_with(|| io::Error::other(why.to_owned()));
    }

    /// Writes nothing more once something failed, the last line included.
    fn line(&mut self, form: &impl serde::Serialize) {
        if self.failed.is_some() {
            return;
        }
        let written = serde_json::to_vec(form).map_err(io::Error::from).and_then(|mut line| {
            line.push(b'\n');
            match line.len() <= MAX_LINE {
                true => self.out.write_all(&line),
                false => Err(io::Error::other(format!("a line of the recording exceeds {MAX_LINE} bytes"))),
            }
        });
        if let Err(error) = written {
            self.failed = Some(error);
        }
    }
}

/// A [`Recorder`] that several owners write to: the recorded node's closure, the driver's event sink, and the keeper of
/// records inside the endpoint. Their entries stand in the order in which they came.
///
/// ```
/// use lastmile::node::Input;
/// use lastmile::time::{Epoch, Time};
/// use lastmile_net::recording::{Header, SharedRecorder, World};
///
/// let (role, config) = ("measure".into(), serde_json::json!({}));
/// let header = Header { world: World::Sim, role, seed: [0; 32], epoch: Epoch::default(), config };
/// let recorder = SharedRecorder::new(std::io::sink(), &header)?;
/// let tell = recorder.clone();
/// tell.input(Time::ZERO, &Input::Wake); // what `node::Recorded` is given to call
/// assert_eq!(recorder.finish()?.inputs, 1);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct SharedRecorder(Arc<Mutex<Recorder<Box<dyn Write + Send>>>>);

impl SharedRecorder {
    /// Begins a recording.
    ///
    /// # Errors
    /// `out` does not take it.
    pub fn new(out: impl Write + Send + 'static, header: &Header) -> io::Result<SharedRecorder> {
        let out: Box<dyn Write + Send> = Box::new(out);
        Ok(SharedRecorder(Arc::new(Mutex::new(Recorder::new(out, header)?))))
    }

    fn with<T>(&self, f: impl FnOnce(&mut Recorder<Box<dyn Write + Send>>) -> T) -> T {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Writes an input of the node at `now`.
    pub fn input(&self, now: Time, input: &Input) {
        self.with(|r| r.input(now, input));
    }

    /// Writes a decision.
    pub fn event(&self, event: &Event<impl Serialize>) {
        self.with(|r| r.event(event));
    }

    /// Writes a record that the node's role keeps beside its decisions.
    pub fn record(&self, record: &impl Serialize) {
        self.with(|r| r.record(record));
    }

    /// Writes the last line. An entry that another owner adds afterwards makes the file invalid.
    ///
    /// # Errors
    /// The first thing that went wrong since the recording began.
    pub fn finish(&self) -> io::Result<Counts> {
        self.with(Recorder::end)
    }
}
