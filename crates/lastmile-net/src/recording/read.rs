//! Reading recordings, and the plain event files that have neither header nor end.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use lastmile::endpoint::Event;

use super::form::{HeaderForm, KIND, Kind, LineForm};
use super::{Counts, Entry, Header, MAX_LINE, VERSION};

/// A fault of a recording, with its place. All but [`Io`](RecordingError::Io) blame the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The system does not give the file.
    #[error("cannot read {file}")]
    Io {
        /// The file.
        file: String,
        /// The system's error.
        source: io::Error,
    },
    /// A line is malformed.
    #[error("{file}:{line}: {what}")]
    Malformed {
        /// The file.
        file: String,
        /// The line, counted from one.
        line: u64,
        /// The fault.
        what: String,
    },
    /// Of a version that this program does not know.
    #[error(
        "{file}:1: recording of version {version}; this program reads version {VERSION}: use the program that wrote it"
    )]
    Version {
        /// The file.
        file: String,
        /// Its version.
        version: u32,
    },
}

/// Reads a recording line by line, in memory that does not grow with the file.
///
/// Also reads plain event files, one [`Event`] a line: these have no [`header`](Reader::header). A file that ends too early,
/// because its writer was killed or the disk was full, is read as far as it goes; [`cut`](Reader::cut) says so.
pub struct Reader<R> {
    file: String,
    read: R,
    header: Option<Header>,
    line: u64,
    text: Vec<u8>,
    /// The text holds a first line that was read as a header, and is none.
    pending: bool,
    counts: Counts,
    done: bool,
    cut: Option<String>,
}

impl Reader<BufReader<File>> {
    /// Opens a file.
    ///
    /// # Errors
    /// It cannot be read, or does not begin as a recording or an event file does.
    pub fn open(path: &Path) -> Result<Self, RecordingError> {
        let file = path.display().to_string();
        match File::open(path) {
            Ok(read) => Reader::new(&file, BufReader::new(read)),
            Err(source) => Err(RecordingError::Io { file, source }),
        }
    }
}

impl<R: BufRead> Reader<R> {
    /// Reads `read`, called `file` in errors.
    ///
    /// # Errors
    /// It cannot be read, or does not begin as a recording or an event file does.
    pub fn new(file: &str, read: R) -> Result<Self, RecordingError> {
        let mut reader = Reader {
            file: file.to_owned(),
            read,
            header: None,
            line: 0,
            text: Vec::new(),
            pending: false,
            counts: Counts::default(),
            done: false,
            cut: None,
        };
        if !reader.next_line()? {
            return Err(reader.malformed("the file is empty"));
        }
        match serde_json::from_slice::<Kind>(&reader.text) {
            Ok(kind) if kind.lastmile != KIND => {
                Err(reader.malformed(format!("this is a {:?} of lastmile, not a recording", kind.lastmile)))
            }
            Ok(Kind { version, .. }) if version != VERSION => {
                Err(RecordingError::Version { file: reader.file, version })
            }
            Ok(_) => {
                let form = serde_json::from_slice::<HeaderForm>(&reader.text);
                let header = form.map_err(|e| describe(&e)).and_then(HeaderForm::header);
                reader.header = Some(header.map_err(|what| reader.malformed(what))?);
                Ok(reader)
            }
            Err(_) => {
                reader.pending = true;
                Ok(reader)
            }
        }
    }

    /// The first line; `None` for a plain event file.
    pub fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// Entries read so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The number of the line that was read last, from one.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// At the end: the place at which the file was cut, and the evidence. `None` if the last line proved that nothing is
    /// missing, and for plain event files that end with a whole line, in which a cut cannot be seen.
    pub fn cut(&self) -> Option<&str> {
        self.cut.as_deref()
    }

    /// The next entry; `None` at the end, wherever that is: see [`cut`](Reader::cut).
    ///
    /// # Errors
    /// The file cannot be read, or is malformed. Nothing more is read after an error.
    pub fn next_entry(&mut self) -> Result<Option<Entry>, RecordingError> {
        if self.done {
            return Ok(None);
        }
        let next = self.advance();
        self.done = !matches!(next, Ok(Some(_)));
        next
    }

    fn advance(&mut self) -> Result<Option<Entry>, RecordingError> {
        if !std::mem::take(&mut self.pending) && !self.next_line()? {
            if self.header.is_some() {
                self.note_cut("the last line, \"end\", is missing");
            }
            return Ok(None);
        }
        let parsed = if self.header.is_some() { self.parse_line() } else { self.parse_event().map(Some) };
        match parsed {
            Ok(Some(entry)) => {
                self.counts.count(&entry);
                Ok(Some(entry))
            }
            Ok(None) => self.at_end(),
            // An error in a line without its end is a cut.
            Err(what) if self.is_torn() => {
                self.note_cut(&what);
                Ok(None)
            }
            Err(what) => Err(self.malformed(what)),
        }
    }

    /// True if the line lacks its newline and is no whole JSON value.
    fn is_torn(&self) -> bool {
        let whole = || serde_json::from_slice::<serde::de::IgnoredAny>(&self.text).is_ok();
        self.line > 1 && self.text.last() != Some(&b'\n') && !whole()
    }

    fn parse_event(&self) -> Result<Entry, String> {
        let not_ours = |e| format!("neither a recording nor an event: {}", describe(&e));
        serde_json::from_slice::<Event>(&self.text).map(Entry::Event).map_err(not_ours)
    }

    /// The entry of a line; `None` if it is the last one, and right.
    fn parse_line(&self) -> Result<Option<Entry>, String> {
        let form: LineForm = serde_json::from_slice(&self.text).map_err(|e| describe(&e))?;
        match form {
            LineForm { now: Some(now), input: Some(input), event: None, stream: None, end: None } => {
                Ok(Some(Entry::Input { now, input: input.input()? }))
            }
            LineForm { now: None, input: None, event: Some(event), stream: None, end: None } => {
                Ok(Some(Entry::Event(event)))
            }
            LineForm { now: None, input: None, event: None, stream: Some(stream), end: None } => {
                Ok(Some(Entry::Record(stream)))
            }
            LineForm { now: None, input: None, event: None, stream: None, end: Some(end) } => {
                let Counts { inputs, events, records } = self.counts;
                match end == self.counts {
                    true => Ok(None),
                    false => Err(format!(
                        "{inputs} inputs, {events} events and {records} streams stand before an end of {}, {} and {}",
                        end.inputs, end.events, end.records
                    )),
                }
            }
            _ => Err("a line is an input with its time, an event, a stream or the end, and one of them only"
                .into()),
        }
    }

    fn at_end(&mut self) -> Result<Option<Entry>, RecordingError> {
        match self.next_line()? {
            false => Ok(None),
            true => Err(self.malformed("something stands behind the end")),
        }
    }

    /// Reads a line into `text`, its end included; false if there is none.
    fn next_line(&mut self) -> Result<bool, RecordingError> {
        self.text.clear();
        let io = |file: &String, source| RecordingError::Io { file: file.clone(), source };
        let limit = MAX_LINE as u64 + 1;
        let read = self.read.by_ref().take(limit).read_until(b'\n', &mut self.text);
        if read.map_err(|e| io(&self.file, e))? == 0 {
            return Ok(false);
        }
        self.line += 1;
        if self.text.len() > MAX_LINE {
            return Err(self.malformed(format!("the line is longer than {MAX_LINE} bytes")));
        }
        Ok(true)
    }

    fn malformed(&self, what: impl Into<String>) -> RecordingError {
        RecordingError::Malformed { file: self.file.clone(), line: self.line, what: what.into() }
    }

    fn note_cut(&mut self, what: &str) {
        self.cut =
            Some(format!("cut at line {}: {what}; its writer was killed, or the disk was full", self.line));
    }
}

/// The parser's message with its column; its line is always 1, which is not the file's.
fn describe(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((what, _)) => format!("{what} (column {})", error.column()),
        None => text,
    }
}
