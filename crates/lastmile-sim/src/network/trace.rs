//! [`Trace`]: a recording that drives a link or a station, read as it is needed: of any length, a line at a time.
//!
//! Two forms. **Mahimahi's** (Netravali et al., USENIX ATC 2015; `mm-link`): a line is a time in milliseconds, at which
//! [`OPPORTUNITY`] bytes may be delivered. Bytes, not packets, are counted: several packets may share an opportunity, and one may need
//! several. Bytes not used then are lost, and bytes that come then are too late for it. **Times and values**: a first
//! line with the units, such as `s,Mbit/s`, then lines such as `0.5,3.2`, from the time 0 on. Either begins anew at its last time.

use core::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read, Seek};
use std::path::PathBuf;
use std::sync::Arc;

use lastmile::time::Span;
use lastmile::units::Rate;
use serde::Deserialize;

/// Bytes of one of Mahimahi's opportunities: an IP packet of 1500 B with the 4 B that its tunnel device puts before.
pub const OPPORTUNITY: u32 = 1_504;
/// Characters of a line.
const MAX_LINE: u64 = 200;

/// File format of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TraceForm {
    /// Delivery opportunities, as Mahimahi has them.
    Mahimahi,
    /// Times and values, with their units in the first line.
    Csv,
}

/// Trace that drives a link or a station.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct TraceConfig {
    /// Its form.
    pub kind: TraceForm,
    /// The file, by its way from the scenario's folder.
    pub file: Option<String>,
    /// Its lines themselves, instead of a file.
    pub lines: Option<String>,
    /// True if it begins anew at its last time.
    #[serde(default = "yes")]
    pub repeat: bool,
}

fn yes() -> bool {
    true
}

/// Quantity and unit of a trace's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Nothing but the times at which bytes may be delivered.
    Opportunities,
    /// Bits per second.
    Rate,
    /// A signal to noise ratio in decibels.
    Snr,
    /// Metres.
    Distance,
}

/// Place of a trace's lines.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// A file, read as it is needed.
    File(PathBuf),
    /// The lines.
    Lines(Arc<[u8]>),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::File(file) => file.display().fmt(f),
            Source::Lines(_) => f.write_str("lines"),
        }
    }
}

/// Lines that are being read.
#[derive(Debug)]
enum Lines {
    File(BufReader<File>),
    Memory(Cursor<Arc<[u8]>>),
}

impl Lines {
    fn rewind(&mut self) -> std::io::Result<()> {
        match self {
            Lines::File(file) => file.rewind(),
            Lines::Memory(lines) => lines.rewind(),
        }
    }

    /// Reads a line without its end; false behind the last one.
    fn read(&mut self, line: &mut String) -> Result<bool, String> {
        match self {
            Lines::File(file) => read_line(file, line),
            Lines::Memory(lines) => read_line(lines, line),
        }
    }
}

/// A trace that was looked through once: all its lines can be read, and its times do not fall.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    source: Source,
    quantity: Quantity,
    /// Nanoseconds of a unit of time, and what a unit of the values is.
    units: (f64, f64),
    repeat: bool,
    /// Its last time.
    length: u64,
    /// The largest value; of opportunities the mean rate.
    largest: f64,
    /// Lines that it has, and a number that changes with what stands in them.
    fingerprint: u64,
}

impl Trace {
    /// Looks through a trace, without keeping a file's lines.
    ///
    /// # Errors
    /// The fault, with its line.
    pub fn open(source: Source, form: TraceForm, repeat: bool) -> Result<Trace, String> {
        let mut trace = Trace {
            source,
            quantity: Quantity::Opportunities,
            units: (1e6, 1.0),
            repeat: false,
            length: 0,
            largest: 0.0,
            fingerprint: 0,
        };
        let mut lines = trace.lines().map_err(|error| error.to_string())?;
        let mut line = String::new();
        if form == TraceForm::Csv {
            lines.read(&mut line)?;
            (trace.quantity, trace.units) = units(&line)?;
        }
        let mut reader = Reader::new(Arc::new(trace.clone()));
        let (mut entries, mut first) = (0_u64, None);
        while let Some((at, value)) = reader.read()? {
            first.get_or_insert(at);
            if at < trace.length {
                return Err(format!("line {}: earlier than the line before", reader.line));
            }
            let allowed = match trace.quantity {
                Quantity::Opportunities => true,
                Quantity::Snr => (-300.0..=300.0).contains(&value),
                _ => (0.0..=1e15).contains(&value),
            };
            if !allowed {
                return Err(format!("line {}: {value} is out of range", reader.line));
            }
            trace.length = at;
            trace.largest = trace.largest.max(value);
            trace.fingerprint = (trace.fingerprint ^ at ^ value.to_bits())
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .rotate_left(23);
            entries += 1;
        }
        if entries == 0 {
            return Err("nothing stands in it".to_owned());
        }
        if trace.quantity == Quantity::Opportunities {
            trace.largest = entries as f64 * f64::from(OPPORTUNITY) * 8e9 / trace.length.max(1) as f64;
        } else if first != Some(0) {
            return Err("begins with the time 0".to_owned());
        }
        // A trace of one value that never ends is no repetition.
        if repeat && trace.length == 0 {
            return Err("must last for some time, or have `repeat = false`".to_owned());
        }
        trace.repeat = repeat;
        Ok(trace)
    }

    fn lines(&self) -> std::io::Result<Lines> {
        let file = match &self.source {
            Source::File(file) => File::open(file)?,
            Source::Lines(lines) => return Ok(Lines::Memory(Cursor::new(Arc::clone(lines)))),
        };
        if !file.metadata()?.is_file() {
            return Err(std::io::Error::other("is no file"));
        }
        Ok(Lines::File(BufReader::new(file)))
    }

    /// Quantity of its values.
    pub fn quantity(&self) -> Quantity {
        self.quantity
    }

    /// The largest of its values; of opportunities the mean rate in bits per second.
    pub fn largest(&self) -> f64 {
        self.largest
    }

    /// A number that changes with what the file says.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Mean bits per second in each of so many steps of time from the beginning on.
    pub fn means(self: &Arc<Trace>, step: Span, steps: usize) -> Option<Vec<f64>> {
        let step = step.as_nanos().max(1) as u64;
        let end = step.saturating_mul(steps as u64);
        let mut bits = vec![0.0; steps];
        let mut add = |from: u64, to: u64, rate: f64| {
            let (mut at, to) = (from, to.min(end));
            while at < to {
                let next = to.min((at / step + 1) * step);
                bits[(at / step) as usize] += rate * (next - at) as f64 / 1e9;
                at = next;
            }
        };
        let mut reader = Reader::new(Arc::clone(self));
        let mut before = (0, 0.0);
        while let Some((at, value)) = reader.next().filter(|(at, _)| *at < end) {
            match self.quantity {
                // Within a nanosecond.
                Quantity::Opportunities => add(at, at + 1, f64::from(OPPORTUNITY) * 8e9),
                _ => add(before.0, at, before.1),
            }
            before = (at, value);
        }
        if self.quantity != Quantity::Opportunities {
            add(before.0, end, before.1);
        }
        reader.failed.is_none().then(|| bits.iter().map(|bits| bits * 1e9 / step as f64).collect())
    }

    /// Mean bits per second between two times, in nanoseconds; of none at all where they are the same, over one whole turn.
    pub fn mean_rate(self: &Arc<Trace>, from: u64, to: u64) -> Option<f64> {
        let (from, to) = if to > from { (from, to) } else { (0, self.length.max(1)) };
        let mut reader = Reader::new(Arc::clone(self));
        if self.repeat {
            reader.base = from / self.length * self.length;
        }
        let (mut sum, mut before) = (0.0, (from, 0.0));
        while let Some((at, value)) = reader.next() {
            if self.quantity == Quantity::Opportunities {
                if at > to {
                    break;
                }
                sum += if at > from { f64::from(OPPORTUNITY) * 8e9 } else { 0.0 };
                continue;
            }
            let until = at.clamp(before.0, to);
            sum += before.1 * (until - before.0) as f64;
            before = (until, value);
            if at >= to {
                break;
            }
        }
        sum += before.1 * (to - before.0) as f64;
        reader.failed.is_none().then(|| sum / (to - from) as f64)
    }
}

/// The quantity of a first line such as `s,Mbit/s`, nanoseconds of its unit of time, and what a unit of its values is.
fn units(line: &str) -> Result<(Quantity, (f64, f64)), String> {
    let wrong = || format!("line 1: {line:?} does not name the units, such as `s,Mbit/s`, `ms,dB` or `s,m`");
    let (time, value) = line.split_once(',').ok_or_else(wrong)?;
    let time: Span = format!("1 {}", time.trim()).parse().map_err(|_| wrong())?;
    let (quantity, unit) = match value.trim() {
        "dB" => (Quantity::Snr, 1.0),
        "m" => (Quantity::Distance, 1.0),
        rate => {
            let rate: Rate = format!("1 {rate}").parse().map_err(|_| wrong())?;
            (Quantity::Rate, rate.bits_per_second() as f64)
        }
    };
    Ok((quantity, (time.as_nanos() as f64, unit)))
}

/// Reads a line without its end; false at the file's end.
fn read_line(lines: &mut impl BufRead, line: &mut String) -> Result<bool, String> {
    line.clear();
    let read = lines.take(MAX_LINE).read_line(line).map_err(|error| error.to_string())?;
    if read as u64 == MAX_LINE {
        return Err("a line that is too long for a trace".to_owned());
    }
    line.truncate(line.trim_end().len());
    Ok(read > 0)
}

/// A trace that is being read.
#[derive(Debug)]
pub(crate) struct Reader {
    trace: Arc<Trace>,
    lines: Option<Lines>,
    text: String,
    line: u64,
    /// When the turn under way began.
    base: u64,
    /// Why it cannot be read any more, although it could once.
    failed: Option<String>,
}

impl Reader {
    /// A reader at the trace's beginning. A file that can no longer be read counts as ended.
    pub(crate) fn new(trace: Arc<Trace>) -> Reader {
        let mut reader = Reader { lines: None, text: String::new(), line: 0, base: 0, failed: None, trace };
        reader.failed = reader.rewind().err();
        reader
    }

    fn rewind(&mut self) -> Result<(), String> {
        let io = |error: std::io::Error| error.to_string();
        let mut lines = match self.lines.take() {
            Some(lines) => lines,
            None => self.trace.lines().map_err(io)?,
        };
        lines.rewind().map_err(io)?;
        self.line = 0;
        if self.trace.quantity != Quantity::Opportunities {
            self.line = 1;
            lines.read(&mut self.text)?;
        }
        self.lines = Some(lines);
        Ok(())
    }

    /// The next line of the file: nanoseconds from its beginning, and a value.
    fn read(&mut self) -> Result<Option<(u64, f64)>, String> {
        self.line += 1;
        let line = self.line;
        let Some(lines) = &mut self.lines else { return Ok(None) };
        if !lines.read(&mut self.text).map_err(|error| format!("line {line}: {error}"))? {
            return Ok(None);
        }
        let (time, value) = match self.trace.quantity {
            Quantity::Opportunities => (self.text.as_str(), "0"),
            _ => self.text.split_once(',').unwrap_or((&self.text, "")),
        };
        let what = match self.trace.quantity {
            Quantity::Opportunities => "is no time in milliseconds",
            _ => "is no time and value, such as `0.5,3.2`",
        };
        let number = |text: &str, unit: f64| {
            let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
            number.map(|number| number * unit).ok_or_else(|| format!("line {line}: {:?} {what}", self.text))
        };
        let at = number(time, self.trace.units.0)?;
        if !(0.0..1e18).contains(&at) {
            return Err(format!("line {line}: {time} is no time"));
        }
        Ok(Some((libm::round(at) as u64, number(value, self.trace.units.1)?)))
    }

    /// Quantity of its values.
    pub(crate) fn quantity(&self) -> Quantity {
        self.trace.quantity
    }

    /// Leaves out whole turns that are over at `now`. Of values the turn under way says all that counts: it begins with one.
    pub(crate) fn skip_to(&mut self, now: u64) {
        let length = self.trace.length;
        if self.trace.repeat && now.saturating_sub(self.base) >= length {
            self.base = now / length * length;
            self.failed = self.failed.take().or_else(|| self.rewind().err());
        }
    }

    /// Next value, with its time in nanoseconds from the run's start; without end if the trace repeats.
    pub(crate) fn next(&mut self) -> Option<(u64, f64)> {
        if self.failed.is_some() {
            return None;
        }
        let found = self.read().and_then(|found| match found {
            None if self.trace.repeat => {
                self.base = self.base.saturating_add(self.trace.length);
                self.rewind()?;
                self.read()
            }
            found => Ok(found),
        });
        match found {
            Ok(found) => found.map(|(at, value)| (self.base.saturating_add(at), value)),
            Err(why) => {
                self.failed = Some(format!("{}: {why}", self.trace.source));
                None
            }
        }
    }

    /// Why it cannot be read any more.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failed.as_deref()
    }
}
