//! [`Journal`]: what a sweep has finished so far, so that a killed one goes on where it stood, and a long one needs no memory
//! for its rows.
//!
//! Beside the output `FILE` stands `FILE.part` while the sweep runs: a first line that says which sweep it is, then a
//! line for each finished run in whatever order they ended. A line that was never ended, the mark of a kill, is cut off.
//! Without an output it is a temporary file without a name.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::Rows;
use crate::error::{Error, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    /// Which sweep this is: a hash of all that decides its results.
    sweep: u64,
    runs: usize,
}

#[derive(Deserialize)]
struct Line {
    run: usize,
    rows: Rows,
}

#[derive(Serialize)]
struct LineOf<'a> {
    run: usize,
    rows: &'a Rows,
}

/// A sweep's journal, open for more.
pub struct Journal {
    /// None where it is temporary.
    path: Option<PathBuf>,
    inner: Mutex<Inner>,
}

struct Inner {
    file: File,
    /// Where the next line begins.
    end: u64,
    /// Where the line of each run begins; zero, where the first line stands, for one that is not finished.
    lines: Vec<u64>,
    finished: usize,
}

/// Temporary journals of this process so far.
static TEMPORARY: AtomicU64 = AtomicU64::new(0);

impl Journal {
    /// Where the journal of that output stands.
    pub fn path(output: &Path) -> PathBuf {
        let mut name = output.as_os_str().to_owned();
        name.push(".part");
        PathBuf::from(name)
    }

    /// Opens the journal of a sweep with what is finished, or begins one.
    ///
    /// # Errors
    /// The file belongs to another sweep, or cannot be read or written.
    pub fn open(output: &Path, sweep: u64, runs: usize) -> Result<Journal> {
        let path = Journal::path(output);
        let shown = path.display();
        let cannot = |what: &'static str| {
            let shown = shown.to_string();
            move |error: std::io::Error| Error::Input(format!("cannot {what} {shown}: {error}"))
        };
        let other =
            || Error::Input(format!("{shown} belongs to another sweep: remove it, or name another output"));
        let head = Head { sweep, runs };
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
        let (mut lines, mut finished) = (vec![0; runs], 0);
        let mut whole = 0;
        let mut reader = BufReader::new(&file);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).map_err(cannot("read"))? > 0 {
            if line.last() != Some(&b'\n') {
                // A first line that was never ended is this sweep's or somebody's file.
                if whole == 0 && !serde_json::to_vec(&head)?.starts_with(&line) {
                    return Err(other());
                }
                break;
            }
            if whole == 0 {
                if serde_json::from_slice::<Head>(&line).ok() != Some(head) {
                    return Err(other());
                }
            } else {
                let Line { run, .. } = serde_json::from_slice(&line).map_err(|e| {
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
        let inner = Mutex::new(Inner { file, end: whole, lines, finished });
        let journal = Journal { path: Some(path), inner };
        if whole == 0 {
            journal.append(&head)?;
        }
        Ok(journal)
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
        let inner = Inner { file, end: 0, lines: vec![0; runs], finished: 0 };
        let journal = Journal { path: None, inner: Mutex::new(inner) };
        journal.append(&Head { sweep: 0, runs })?;
        Ok(journal)
    }

    fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of finished runs.
    pub fn finished(&self) -> usize {
        self.inner().finished
    }

    /// Whether a run is.
    pub fn has(&self, run: usize) -> bool {
        self.inner().lines.get(run).is_some_and(|&place| place > 0)
    }

    /// Adds a finished run; what was added survives the end of this process.
    pub fn add(&self, run: usize, rows: &Rows) -> Result<()> {
        let place = self.append(&LineOf { run, rows })?;
        let mut inner = self.inner();
        if let Some(line) = inner.lines.get_mut(run) {
            *line = place;
            inner.finished += 1;
        }
        Ok(())
    }

    /// Adds a line; says where it begins.
    fn append(&self, what: &impl Serialize) -> Result<u64> {
        let mut line = serde_json::to_vec(what)?;
        line.push(b'\n');
        let mut inner = self.inner();
        // One write: another one of these, or a kill, never stands in the middle of a line that is read as whole.
        let place = inner.end;
        if let Err(error) = inner.file.write_all(&line) {
            // What a full disk took of it must not stand before the line of another run.
            let _ = inner.file.set_len(place).and_then(|()| inner.file.seek(SeekFrom::Start(place)));
            return Err(Error::Machine(match &self.path {
                Some(path) => format!("cannot write {}: {error}", path.display()),
                None => format!("cannot write a temporary file: {error}"),
            }));
        }
        inner.end += line.len() as u64;
        Ok(place)
    }

    /// Shows the rows of all finished runs, in the order of the runs, one run in memory at a time.
    ///
    /// # Errors
    /// The file cannot be read, or whom it is shown to fails.
    pub fn read(&self, mut show: impl FnMut(Rows) -> Result<()>) -> Result<()> {
        let cannot = |error| Error::Machine(format!("cannot read the finished runs: {error}"));
        let inner = self.inner();
        let mut reader = BufReader::new(&inner.file);
        let mut line = Vec::new();
        for &place in inner.lines.iter().filter(|&&place| place > 0) {
            line.clear();
            reader.seek(SeekFrom::Start(place)).map_err(cannot)?;
            reader.read_until(b'\n', &mut line).map_err(cannot)?;
            let run: Line = serde_json::from_slice(&line)
                .map_err(|error| Error::Machine(format!("a finished run is damaged: {error}")))?;
            show(run.rows)?;
        }
        drop(reader);
        // Whoever adds more does so at the end.
        (&inner.file).seek(SeekFrom::Start(inner.end)).map_err(cannot)?;
        Ok(())
    }

    /// The sweep is written: the journal is no longer needed.
    pub fn remove(self) {
        if let Some(path) = &self.path {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// FNV-1a of some texts: enough to tell by accident that a journal is another sweep's.
pub(super) fn fingerprint<'a>(texts: impl IntoIterator<Item = &'a str>) -> u64 {
    let byte = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    texts.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, text| byte(text.bytes().fold(hash, byte), 0xff))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, Value};

    fn rows(value: u64) -> Rows {
        vec![Map::from_iter([("value".to_owned(), Value::from(value))])]
    }

    fn all(journal: &Journal) -> Vec<Rows> {
        let mut all = Vec::new();
        journal
            .read(|rows| {
                all.push(rows);
                Ok(())
            })
            .unwrap();
        all
    }

    #[test]
    fn rows_come_in_the_order_of_the_runs_and_more_may_follow() {
        let journal = Journal::temporary(5).unwrap();
        for run in [3, 0, 4] {
            journal.add(run, &rows(run as u64)).unwrap();
        }
        assert_eq!(all(&journal), [rows(0), rows(3), rows(4)]);
        journal.add(1, &rows(1)).unwrap();
        assert_eq!(all(&journal), [rows(0), rows(1), rows(3), rows(4)]);
        assert!(journal.has(1) && !journal.has(2) && !journal.has(9) && journal.finished() == 4);
    }

    #[test]
    fn it_goes_on_where_it_was_cut_off() {
        let dir = std::env::temp_dir().join(format!("lastmile-journal-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let output = dir.join("out.jsonl");
        let journal = Journal::open(&output, 7, 9).unwrap();
        assert_eq!(journal.finished(), 0);
        journal.add(4, &rows(44)).unwrap();
        journal.add(2, &rows(22)).unwrap();
        drop(journal);

        let part = Journal::path(&output);
        let whole = std::fs::read(&part).unwrap();
        for cut in 0..=whole.len() {
            std::fs::write(&part, &whole[..cut]).unwrap();
            let journal = Journal::open(&output, 7, 9).unwrap();
            let lines = whole[..cut].iter().filter(|b| **b == b'\n').count();
            assert_eq!(journal.finished(), lines.saturating_sub(1), "cut at {cut}");
            journal.add(1, &rows(11)).unwrap();
            drop(journal);
            let again = Journal::open(&output, 7, 9).unwrap();
            assert_eq!(all(&again).first(), Some(&rows(11)));
        }
        let other = || Journal::open(&output, 8, 9).map(|_| ()).unwrap_err().to_string();
        assert!(other().contains("belongs to another sweep"), "{}", other());
        // Nor is a file without the end of a line overwritten.
        for theirs in ["a diary".as_bytes(), &whole[..12]] {
            std::fs::write(&part, theirs).unwrap();
            assert!(other().contains("belongs to another sweep"), "{}", other());
            assert_eq!(std::fs::read(&part).unwrap(), theirs);
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn texts_do_not_run_into_each_other() {
        assert_ne!(fingerprint(["ab", "c"]), fingerprint(["a", "bc"]));
    }
}
