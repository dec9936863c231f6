//! [`Journal`]: the finished runs of a study, so that a killed one goes on where it stood, and a long one needs no memory
//! for its results.
//!
//! Beside the output `FILE` stands `FILE.part` while the study runs: a first line that says which study it is, then a
//! line for each finished run in whatever order they ended. A line that was never ended, the mark of a kill, is cut off.
//! Without an output it is a temporary file without a name.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

use super::Shard;
use crate::error::{Error, Result};

/// Contents of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    /// All runs of a sweep.
    Sweep,
    /// A shard of a study.
    Shard,
}

/// The first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) lastmile: Kind,
    pub(super) version: String,
    /// Which program made it, of a shard: programs of one version may be of different sources.
    #[serde(default)]
    pub(super) build: String,
    /// Those that ask for the study, of a shard.
    pub(super) arguments: Vec<String>,
    pub(super) shard: Shard,
    /// A hash of all that decides the results.
    pub(super) inputs: u64,
    /// Of all shards together.
    pub(super) runs: usize,
}

impl Head {
    pub(super) fn new(lastmile: Kind, shard: Shard, inputs: u64, runs: usize) -> Head {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let build = if lastmile == Kind::Shard { build() } else { String::new() };
        Head { lastmile, version, build, arguments: Vec::new(), shard, inputs, runs }
    }

    /// The first line of a shard's file.
    ///
    /// # Errors
    /// It cannot be read, or has another first line.
    pub(super) fn read(file: &Path) -> Result<Head> {
        let shown = file.display();
        let mut line = Vec::new();
        let read = File::open(file)
            .and_then(|file| BufReader::new(file).take(MAX_HEAD).read_until(b'\n', &mut line));
        read.map_err(|error| Error::Input(format!("cannot read {shown}: {error}")))?;
        let head = serde_json::from_slice::<Head>(&line).ok().filter(|head| head.lastmile == Kind::Shard);
        head.ok_or_else(|| Error::Input(format!("{shown}: it is no shard of a study")))
    }

    /// Takes the file of the same shard, if it is finished, as its journal again. Refuses a file that is neither that nor empty.
    pub(super) fn resume(&self, file: &Path) -> Result<()> {
        if std::fs::metadata(file).map_or(true, |known| known.is_file() && known.len() == 0) {
            return Ok(());
        }
        let theirs = match Head::read(file) {
            Ok(head) if head == *self => return Ok(std::fs::rename(file, Journal::path(file))?),
            Ok(_) => "a shard of another study",
            Err(_) => "something else than a shard",
        };
        let shown = file.display();
        Err(Error::Input(format!("{shown} holds {theirs}: remove it, or name another output")))
    }
}

/// The longest first line that is read, in bytes: command lines may name many files.
const MAX_HEAD: u64 = 4 << 20;

/// A run, and its results.
#[derive(Serialize, Deserialize)]
struct Line<T> {
    run: usize,
    found: T,
}

/// A study's journal, open for more.
pub struct Journal {
    /// None where it is temporary.
    path: Option<PathBuf>,
    inner: Mutex<Inner>,
}

struct Inner {
    file: File,
    /// Offset of the next line.
    end: u64,
    /// Offset of each run's line; zero, that of the first line, for a run that is not finished.
    lines: Vec<u64>,
    finished: usize,
}

/// Temporary journals of this process so far.
static TEMPORARY: AtomicU64 = AtomicU64::new(0);

impl Journal {
    /// Path of that output's journal.
    pub fn path(output: &Path) -> PathBuf {
        let mut name = output.as_os_str().to_owned();
        name.push(".part");
        PathBuf::from(name)
    }

    /// The journal of all runs of a sweep.
    ///
    /// # Errors
    /// As of [`Journal::open`].
    pub(crate) fn whole(output: &Path, inputs: u64, runs: usize) -> Result<Journal> {
        Journal::open(output, &Head::new(Kind::Sweep, Shard::ALL, inputs, runs))
    }

    /// Opens the journal of a study with what is finished, or begins one.
    ///
    /// # Errors
    /// The file belongs to another study, or cannot be read or written.
    pub(super) fn open(output: &Path, head: &Head) -> Result<Journal> {
        let path = Journal::path(output);
        let shown = path.display();
        let cannot = |what: &'static str| {
            let shown = shown.to_string();
            move |error: std::io::Error| Error::Input(format!("cannot {what} {shown}: {error}"))
        };
        let other =
            || Error::Input(format!("{shown} belongs to another study: remove it, or name another output"));
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(cannot("write"))?;
        if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            return Err(Error::Input(format!(
                "{shown} is being written by another process: wait for it, or name another output"
            )));
        }
        let (mut lines, mut finished) = (vec![0; head.runs], 0);
        let mut whole = 0;
        let mut reader = BufReader::new(&file);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).map_err(cannot("read"))? > 0 {
            if line.last() != Some(&b'\n') {
                // A first line that was never ended is this study's or somebody's file.
                if whole == 0 && !serde_json::to_vec(head)?.starts_with(&line) {
                    return Err(other());
                }
                break;
            }
            if whole == 0 {
                if serde_json::from_slice::<Head>(&line).ok().as_ref() != Some(head) {
                    return Err(other());
                }
            } else {
                let run = run_of(&line).map_err(|e| {
                    Error::Input(format!("{shown}: a line is damaged ({e}): remove the file"))
                })?;
                if let Some(place) = lines.get_mut(run).filter(|place| **place == 0) {
                    *place = whole;
                    finished += 1;
                }
            }
            whole += line.len() as u64;
            line.clear();
        }
        file.set_len(whole).map_err(cannot("write"))?;
        file.seek(SeekFrom::Start(whole))?;
        let mut inner = Inner { file, end: whole, lines, finished };
        if whole == 0 {
            inner.append(serde_json::to_vec(head)?, Some(&path))?;
        }
        Ok(Journal { path: Some(path), inner: Mutex::new(inner) })
    }

    /// A journal that nobody goes on from.
    ///
    /// # Errors
    /// There is no room for temporary files.
    pub fn temporary(runs: usize) -> Result<Journal> {
        let number = TEMPORARY.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("lastmile-{}-{number}.part", std::process::id()));
        let begun = || -> std::io::Result<File> {
            let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
            // It lives as long as it is open.
            std::fs::remove_file(&path)?;
            Ok(file)
        };
        let cannot =
            |error| Error::Machine(format!("cannot write the temporary file {}: {error}", path.display()));
        let file = begun().map_err(cannot)?;
        let mut inner = Inner { file, end: 0, lines: vec![0; runs], finished: 0 };
        inner.append(serde_json::to_vec(&Head::new(Kind::Sweep, Shard::ALL, 0, runs))?, None)?;
        Ok(Journal { path: None, inner: Mutex::new(inner) })
    }

    fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of all runs.
    pub fn runs(&self) -> usize {
        self.inner().lines.len()
    }

    /// Number of finished runs.
    pub fn finished(&self) -> usize {
        self.inner().finished
    }

    /// True if a run is finished.
    pub fn has(&self, run: usize) -> bool {
        self.inner().lines.get(run).is_some_and(|&place| place > 0)
    }

    /// Adds a finished run; it survives the end of this process.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn add(&self, run: usize, found: &impl Serialize) -> Result<()> {
        self.append(run, serde_json::to_vec(&Line { run, found })?)
    }

    /// Adds the finished runs of a shard's file.
    ///
    /// # Errors
    /// The file cannot be read, or a line of it is none of the shard's runs.
    pub(super) fn take(&self, file: &Path, shard: Shard) -> Result<()> {
        let refused = |why: String| Error::Input(format!("{}: {why}", file.display()));
        let opened = File::open(file).map_err(|error| refused(error.to_string()))?;
        for line in BufReader::new(opened).split(b'\n').skip(1) {
            let line = line.map_err(|error| refused(error.to_string()))?;
            let run = run_of(&line).map_err(|error| refused(format!("a line is damaged ({error})")))?;
            if !shard.has(run) || run >= self.runs() || self.has(run) {
                return Err(refused(format!("run {run} is none of shard {shard}, or there twice")));
            }
            self.append(run, line)?;
        }
        Ok(())
    }

    /// Adds the line of a run.
    fn append(&self, run: usize, line: Vec<u8>) -> Result<()> {
        let mut inner = self.inner();
        let place = inner.append(line, self.path.as_deref())?;
        if let Some(line) = inner.lines.get_mut(run) {
            *line = place;
            inner.finished += 1;
        }
        Ok(())
    }

    /// Shows what came of all finished runs, in the order of the runs, one run in memory at a time.
    ///
    /// # Errors
    /// The file cannot be read, or `show` fails.
    pub fn read<T: DeserializeOwned>(&self, mut show: impl FnMut(T) -> Result<()>) -> Result<()> {
        let cannot = |error| Error::Machine(format!("cannot read the finished runs: {error}"));
        let inner = self.inner();
        let mut reader = BufReader::new(&inner.file);
        let mut line = Vec::new();
        for &place in inner.lines.iter().filter(|&&place| place > 0) {
            line.clear();
            reader.seek(SeekFrom::Start(place)).map_err(cannot)?;
            reader.read_until(b'\n', &mut line).map_err(cannot)?;
            let run: Line<T> = serde_json::from_slice(&line)
                .map_err(|error| Error::Machine(format!("a finished run is damaged: {error}")))?;
            show(run.found)?;
        }
        drop(reader);
        // Lines are added at the end.
        (&inner.file).seek(SeekFrom::Start(inner.end)).map_err(cannot)?;
        Ok(())
    }

    /// The study is written: the journal is no longer needed.
    pub fn remove(self) {
        if let Some(path) = &self.path {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Inner {
    /// Adds a line; gives the place where it begins.
    fn append(&mut self, mut line: Vec<u8>, path: Option<&Path>) -> Result<u64> {
        line.push(b'\n');
        // One write: another one of these, or a kill, never stands in the middle of a line that is read as whole.
        let place = self.end;
        if let Err(error) = self.file.write_all(&line) {
            // The part of it that a full disk took must not stand before the line of another run.
            let _ = self.file.set_len(place).and_then(|()| self.file.seek(SeekFrom::Start(place)));
            return Err(Error::Machine(match path {
                Some(path) => format!("cannot write {}: {error}", path.display()),
                None => format!("cannot write a temporary file: {error}"),
            }));
        }
        self.end += line.len() as u64;
        Ok(place)
    }
}

/// The run that a line is of.
fn run_of(line: &[u8]) -> serde_json::Result<usize> {
    serde_json::from_slice::<Line<IgnoredAny>>(line).map(|line| line.run)
}

/// A hash of this program's file. It is in no program, so that builds stay reproducible.
fn build() -> String {
    let hash = || -> std::io::Result<u64> {
        // Of the running program, also if its file was replaced meanwhile.
        let own = File::open("/proc/self/exe").or_else(|_| File::open(std::env::current_exe()?))?;
        let (mut reader, mut hash) = (BufReader::with_capacity(1 << 16, own), BASIS);
        loop {
            let bytes = reader.fill_buf()?;
            if bytes.is_empty() {
                return Ok(hash);
            }
            hash = bytes.iter().copied().fold(hash, mixed);
            let read = bytes.len();
            reader.consume(read);
        }
    };
    static BUILD: OnceLock<String> = OnceLock::new();
    // A program that cannot read itself merges with its like alone.
    BUILD.get_or_init(|| hash().map_or_else(|_| "unknown".to_owned(), |hash| format!("{hash:016x}"))).clone()
}

const BASIS: u64 = 0xcbf2_9ce4_8422_2325;

/// A step of FNV-1a.
fn mixed(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
}

/// FNV-1a of some texts: enough to tell by accident that a journal is another study's.
pub(crate) fn fingerprint<'a>(texts: impl IntoIterator<Item = &'a str>) -> u64 {
    texts.into_iter().fold(BASIS, |hash, text| mixed(text.bytes().fold(hash, mixed), 0xff))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(journal: &Journal) -> Vec<u64> {
        let mut all = Vec::new();
        journal
            .read(|found| {
                all.push(found);
                Ok(())
            })
            .unwrap();
        all
    }

    #[test]
    fn rows_come_in_the_order_of_the_runs_and_more_may_follow() {
        let journal = Journal::temporary(5).unwrap();
        for run in [3, 0, 4] {
            journal.add(run, &(run as u64)).unwrap();
        }
        assert_eq!(all(&journal), [0, 3, 4]);
        journal.add(1, &1).unwrap();
        assert_eq!(all(&journal), [0, 1, 3, 4]);
        assert!(journal.has(1) && !journal.has(2) && !journal.has(9) && journal.finished() == 4);
    }

    #[test]
    fn it_goes_on_where_it_was_cut_off() {
        let dir = std::env::temp_dir().join(format!("lastmile-journal-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let output = dir.join("out.jsonl");
        let journal = Journal::whole(&output, 7, 9).unwrap();
        assert_eq!(journal.finished(), 0);
        journal.add(4, &44).unwrap();
        journal.add(2, &22).unwrap();
        drop(journal);

        let part = Journal::path(&output);
        let whole = std::fs::read(&part).unwrap();
        for cut in 0..=whole.len() {
            std::fs::write(&part, &whole[..cut]).unwrap();
            let journal = Journal::whole(&output, 7, 9).unwrap();
            let lines = whole[..cut].iter().filter(|b| **b == b'\n').count();
            assert_eq!(journal.finished(), lines.saturating_sub(1), "cut at {cut}");
            journal.add(1, &11).unwrap();
            drop(journal);
            let again = Journal::whole(&output, 7, 9).unwrap();
            assert_eq!(all(&again).first(), Some(&11));
        }
        let other = || Journal::whole(&output, 8, 9).map(|_| ()).unwrap_err().to_string();
        assert!(other().contains("belongs to another study"), "{}", other());
        // Nor is a file without the end of a line overwritten.
        let inputs = whole.windows(8).position(|bytes| bytes == b"inputs\":").unwrap();
        for theirs in ["a diary".as_bytes(), &whole[..inputs + 9]] {
            std::fs::write(&part, theirs).unwrap();
            assert!(other().contains("belongs to another study"), "{}", other());
            assert_eq!(std::fs::read(&part).unwrap(), theirs);
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn texts_do_not_run_into_each_other() {
        assert_ne!(fingerprint(["ab", "c"]), fingerprint(["a", "bc"]));
    }
}
