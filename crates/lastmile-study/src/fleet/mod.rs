//! A study on many machines: each runs every N-th of its runs and writes what came of them to a file, and these files together give the
//! result that one machine would have given, byte for byte.
//!
//! A study numbers its runs. Shard I of N has the runs I - 1, I - 1 + N and so on, in a [`Journal`] whose first line says whose it is. To
//! merge is to make the study again with what the files hold in the place of its runs.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rayon::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::audience::Audience;
use crate::error::{Error, Result};

mod journal;

pub use journal::Journal;
pub(crate) use journal::fingerprint;
use journal::{Head, Kind};

/// The most shards of a study.
const MAX_SHARDS: usize = 100_000;

/// One of several machines that share the runs of a study: `3/8` is the third of eight.
///
/// ```
/// use lastmile_study::fleet::Shard;
/// let shard: Shard = "3/8".parse()?;
/// assert!(shard.has(2) && shard.has(10) && !shard.has(3));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Shard {
    of: usize,
    number: usize,
}

impl Shard {
    /// The only one.
    const ALL: Shard = Shard { of: 1, number: 1 };

    /// True if a run is its own.
    pub fn has(self, run: usize) -> bool {
        run % self.of == self.number - 1
    }

    /// Its runs among so many.
    fn share(self, runs: usize) -> usize {
        (runs + self.of - self.number) / self.of
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> core::result::Result<Shard, String> {
        let parsed = text.split_once('/').and_then(|(number, of)| {
            Some(Shard { number: number.trim().parse().ok()?, of: of.trim().parse().ok()? })
        });
        let shard = parsed.filter(|shard| (1..=shard.of).contains(&shard.number) && shard.of <= MAX_SHARDS);
        shard.ok_or_else(|| format!("{text:?} is not I/N with I from 1 to N, such as 3/8"))
    }
}

impl TryFrom<String> for Shard {
    type Error = String;

    fn try_from(text: String) -> core::result::Result<Shard, String> {
        text.parse()
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> String {
        shard.to_string()
    }
}

/// Machines that do the runs of a study.
#[derive(Clone, Debug, Default)]
pub enum Fleet {
    /// All of them here.
    #[default]
    Whole,
    /// Some of them here; the study has no result yet.
    Part(Part),
    /// On other machines, before.
    Merged(Shards),
}

/// The share of this machine.
#[derive(Clone, Debug)]
pub struct Part {
    /// The shard.
    pub shard: Shard,
    /// The arguments that ask for the study, by which shards are told to belong together.
    pub arguments: Vec<String>,
    /// The file of the shard. Until it is whole it is called [`Journal::path`], from which the same call goes on.
    pub file: PathBuf,
}

impl Fleet {
    /// True if that run is done here.
    pub(crate) fn has(&self, run: usize) -> bool {
        match self {
            Fleet::Whole => true,
            Fleet::Part(part) => part.shard.has(run),
            Fleet::Merged(_) => false,
        }
    }

    /// The journal of a study of so many runs; `inputs` is a hash of all that decides their results, and `whole` makes the journal of a
    /// study that is not shared.
    ///
    /// # Errors
    /// A file cannot be read or written, or does not belong to the study.
    pub(crate) fn journal(
        &self,
        inputs: u64,
        runs: usize,
        whole: impl FnOnce() -> Result<Journal>,
    ) -> Result<Journal> {
        match self {
            Fleet::Whole => whole(),
            Fleet::Part(part) => {
                let arguments = part.arguments.clone();
                let head = Head { arguments, ..Head::new(Kind::Shard, part.shard, inputs, runs) };
                head.resume(&part.file)?;
                Journal::open(&part.file, &head)
            }
            Fleet::Merged(shards) => shards.journal(inputs, runs),
        }
    }

    /// Runs what is this machine's and not in the journal yet, on all cores of the pool of threads that it is called in, and gives the
    /// journal again; nothing of a shard, whose file is then in its place.
    ///
    /// # Errors
    /// The first of those of `run`, or the journal cannot be written.
    pub(crate) fn run<T: Serialize + Send>(
        &self,
        title: &str,
        journal: &Journal,
        audience: &Audience,
        run: impl Fn(usize) -> Result<T> + Sync,
    ) -> Result<()> {
        let own: Vec<usize> = (0..journal.runs()).filter(|&run| self.has(run) && !journal.has(run)).collect();
        audience.progress.begin(title, (own.len() + journal.finished()) as u64);
        audience.progress.advance(journal.finished() as u64);
        own.into_par_iter().with_max_len(1).try_for_each(|number| {
            journal.add(number, &run(number)?)?;
            audience.progress.advance(1);
            Ok::<_, Error>(())
        })?;
        audience.progress.end();
        Ok(())
    }

    /// Puts the file of a finished shard in its place; true if the study has its result here.
    ///
    /// # Errors
    /// It cannot be.
    pub(crate) fn finish(&self) -> Result<bool> {
        let Fleet::Part(part) = self else { return Ok(true) };
        std::fs::rename(Journal::path(&part.file), &part.file)
            .map_err(|error| Error::Machine(format!("cannot write {}: {error}", part.file.display())))?;
        Ok(false)
    }

    /// Results of runs 0 to `runs` - 1 of a study, in that order; nothing of a shard. `inputs` is as in [`Fleet::journal`].
    ///
    /// # Errors
    /// The first of those of `run`, or the files of shards are not the study's.
    pub(crate) fn each<T: Serialize + DeserializeOwned + Send>(
        &self,
        title: &str,
        inputs: u64,
        runs: usize,
        audience: &Audience,
        run: impl Fn(usize) -> Result<T> + Sync,
    ) -> Result<Option<Vec<T>>> {
        if let Fleet::Whole = self {
            // In memory: not every place where studies run has files.
            audience.progress.begin(title, runs as u64);
            let one = |number| {
                let found = run(number)?;
                audience.progress.advance(1);
                Ok(found)
            };
            let found = (0..runs).into_par_iter().with_max_len(1).map(one).collect::<Result<_>>()?;
            audience.progress.end();
            return Ok(Some(found));
        }
        let journal = self.journal(inputs, runs, || Journal::temporary(runs))?;
        self.run(title, &journal, audience, run)?;
        if !self.finish()? {
            return Ok(None);
        }
        let mut all = Vec::with_capacity(runs);
        journal.read(|found| {
            all.push(found);
            Ok(())
        })?;
        Ok(Some(all))
    }
}

/// All shards of a study, by their files.
#[derive(Clone, Debug)]
pub struct Shards(Vec<(PathBuf, Head)>);

impl Shards {
    /// Reads the first lines of the files, and refuses what does not make one study together.
    ///
    /// # Errors
    /// A file cannot be read, is no shard, another program's, another study's or there twice; or a shard is missing.
    pub fn open(files: &[PathBuf]) -> Result<Shards> {
        let mut all: Vec<(PathBuf, Head)> = Vec::new();
        for file in files {
            let (shown, head) = (file.display(), Head::read(file)?);
            let refused = |why: String| Err(Error::Input(format!("{shown}: {why}")));
            let own = Head::new(Kind::Shard, head.shard, 0, 0);
            if (&head.version, &head.build) != (&own.version, &own.build) {
                return refused(format!(
                    "it was made by lastmile {}, build {}, and this is lastmile {}, build {}: make and merge all shards by copies of \
                     one program",
                    head.version, head.build, own.version, own.build
                ));
            }
            if let Some((other, first)) = all.first() {
                let other = other.display();
                if head.arguments != first.arguments {
                    let [ours, theirs] = [&head, first].map(|head| head.arguments.join(" "));
                    return refused(format!(
                        "its arguments are \"{ours}\", and those of {other} are \"{theirs}\""
                    ));
                }
                if head.shard.of != first.shard.of {
                    return refused(format!(
                        "it is shard {}, and {other} is shard {}",
                        head.shard, first.shard
                    ));
                }
            }
            if let Some((other, _)) = all.iter().find(|(_, before)| before.shard == head.shard) {
                return refused(format!("it is shard {}, as is {}", head.shard, other.display()));
            }
            all.push((file.clone(), head));
        }
        let Some((first, of)) = all.first().map(|(file, head)| (file.display(), head.shard.of)) else {
            return Err(Error::Input("no files of shards are named".to_owned()));
        };
        let missing = |number: &usize| all.iter().all(|(_, head)| head.shard.number != *number);
        let missing: Vec<usize> = (1..=of).filter(missing).collect();
        if let Some(number) = missing.first() {
            let which = Shard { of, number: *number };
            let others = match missing.len() - 1 {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            return Err(Error::Input(format!(
                "shard {which}{others} is missing: {first} is one of {of} shards, and the command names {}",
                all.len()
            )));
        }
        Ok(Shards(all))
    }

    /// The arguments that asked for the study.
    pub fn arguments(&self) -> &[String] {
        self.0.first().map_or(&[], |(_, head)| &head.arguments)
    }

    /// All their runs in one journal.
    fn journal(&self, inputs: u64, runs: usize) -> Result<Journal> {
        let journal = Journal::temporary(runs)?;
        for (file, head) in &self.0 {
            let refused = |why: String| Err(Error::Input(format!("{}: {why}", file.display())));
            if (head.inputs, head.runs) != (inputs, runs) {
                return refused("the scenario files have changed since this shard was run".to_owned());
            }
            let before = journal.finished();
            journal.take(file, head.shard)?;
            let (has, needs) = (journal.finished() - before, head.shard.share(runs));
            if has != needs {
                return refused(format!(
                    "it has {has} of its {needs} runs: run shard {} again, which goes on from there",
                    head.shard
                ));
            }
        }
        Ok(journal)
    }
}

/// A hash of what decides the results of a study.
pub(crate) fn inputs(of: &impl fmt::Debug) -> u64 {
    fingerprint([format!("{of:?}").as_str()])
}

/// True if a file is a shard of a study.
pub fn is_shard(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|known| known.is_file()) && Head::read(file).is_ok()
}

#[cfg(test)]
mod tests;
