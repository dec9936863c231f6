//! [`Journal`]: what a sweep has finished so far, so that a killed one goes on where it stood.
//!
//! Beside the output `FILE` stands `FILE.part` while the sweep runs: a first line that says which sweep it is, then a
//! line for each finished run in whatever order they ended. A line that was never ended, the mark of a kill, is cut off.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, anyhow, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The rows of one run.
pub(crate) type Rows = Vec<Map<String, Value>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    /// Which sweep this is: a hash of all that decides its results.
    sweep: u64,
    runs: usize,
}

#[derive(Serialize, Deserialize)]
struct Line {
    run: usize,
    rows: Rows,
}

/// A sweep's journal, open for more.
pub(crate) struct Journal {
    path: PathBuf,
    file: Mutex<File>,
}

impl Journal {
    /// Where the journal of that output stands.
    pub(crate) fn path(output: &Path) -> PathBuf {
        let mut name = output.as_os_str().to_owned();
        name.push(".part");
        PathBuf::from(name)
    }

    /// Opens the journal of a sweep, or begins one; gives the runs that are finished.
    ///
    /// # Errors
    /// The file belongs to another sweep, or cannot be read or written.
    pub(crate) fn open(
        output: &Path,
        sweep: u64,
        runs: usize,
    ) -> anyhow::Result<(Journal, BTreeMap<usize, Rows>)> {
        let path = Journal::path(output);
        let shown = path.display();
        let head = Head { sweep, runs };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .with_context(|| format!("cannot write {shown}"))?;
        if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            bail!("{shown} is being written by another process: wait for it, or name another output");
        }
        let mut finished = BTreeMap::new();
        let mut whole = 0;
        let mut reader = BufReader::new(&file);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).with_context(|| format!("cannot read {shown}"))? > 0 {
            if line.last() != Some(&b'\n') {
                break;
            }
            if whole == 0 {
                if serde_json::from_slice::<Head>(&line).ok() != Some(head) {
                    bail!("{shown} belongs to another sweep: remove it, or name another output");
                }
            } else {
                let Line { run, rows } = serde_json::from_slice(&line)
                    .map_err(|e| anyhow!("{shown}: a line is damaged ({e}): remove the file"))?;
                finished.entry(run).or_insert(rows);
            }
            whole += line.len() as u64;
            line.clear();
        }
        file.set_len(whole).with_context(|| format!("cannot write {shown}"))?;
        file.seek(std::io::SeekFrom::End(0))?;
        let journal = Journal { path, file: Mutex::new(file) };
        if whole == 0 {
            journal.append(&Head { sweep, runs })?;
        }
        finished.retain(|&run, _| run < runs);
        Ok((journal, finished))
    }

    /// Adds a finished run; what was added survives the end of this process.
    pub(crate) fn add(&self, run: usize, rows: &Rows) -> anyhow::Result<()> {
        self.append(&Line { run, rows: rows.clone() })
    }

    fn append(&self, what: &impl Serialize) -> anyhow::Result<()> {
        let mut line = serde_json::to_vec(what)?;
        line.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // One write: another one of these, or a kill, never stands in the middle of a line that is read as whole.
        file.write_all(&line).with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// The sweep is written: the journal is no longer needed.
    pub(crate) fn remove(self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// FNV-1a of some texts: enough to tell by accident that a journal is another sweep's.
pub(crate) fn fingerprint<'a>(texts: impl IntoIterator<Item = &'a str>) -> u64 {
    let byte = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    texts.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, text| byte(text.bytes().fold(hash, byte), 0xff))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(value: u64) -> Rows {
        vec![Map::from_iter([("value".to_owned(), Value::from(value))])]
    }

    #[test]
    fn it_goes_on_where_it_was_cut_off() {
        let dir = std::env::temp_dir().join(format!("lastmile-journal-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let output = dir.join("out.jsonl");
        let (journal, finished) = Journal::open(&output, 7, 9).unwrap();
        assert!(finished.is_empty());
        journal.add(4, &rows(44)).unwrap();
        journal.add(2, &rows(22)).unwrap();
        drop(journal);

        let part = Journal::path(&output);
        let whole = std::fs::read(&part).unwrap();
        for cut in 0..=whole.len() {
            std::fs::write(&part, &whole[..cut]).unwrap();
            let (journal, finished) = Journal::open(&output, 7, 9).unwrap();
            let lines = whole[..cut].iter().filter(|b| **b == b'\n').count();
            assert_eq!(finished.len(), lines.saturating_sub(1), "cut at {cut}");
            journal.add(1, &rows(11)).unwrap();
            drop(journal);
            let (_, finished) = Journal::open(&output, 7, 9).unwrap();
            assert_eq!(finished[&1], rows(11));
        }
        let other = Journal::open(&output, 8, 9).map(|_| ()).unwrap_err().to_string();
        assert!(other.contains("belongs to another sweep"), "{other}");
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn texts_do_not_run_into_each_other() {
        assert_ne!(fingerprint(["ab", "c"]), fingerprint(["a", "bc"]));
    }
}
