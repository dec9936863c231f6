//! [`Case`]: a run of a paper.

use std::borrow::Cow;
use std::collections::BTreeMap;

use lastmile_sim::scenario::Override;

pub use crate::runs::Numbers;

/// Lines drawn of a run: points by the line's name.
pub type Lines = BTreeMap<Cow<'static, str>, Vec<(f64, f64)>>;

/// A scenario of the paper with some of its values replaced: run with each seed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Case {
    /// The name of the paper's scenario file.
    pub scenario: &'static str,
    /// Keys of the scenario and the values that replace theirs.
    pub set: Vec<(String, String)>,
    /// Programs in its hosts: a host's name and the words of a command, in which `{HOST}` stands for a host's address and `lastmile` for
    /// this program. Such a case runs in the lab alone, until the last of them ends.
    pub programs: Vec<(&'static str, Vec<String>)>,
    /// Pixels across and down of real video in its streams; nothing where frames have no content.
    pub filmed: Option<(usize, usize)>,
}

impl Case {
    /// The scenario of that name as it is.
    pub fn new(scenario: &'static str) -> Case {
        Case { scenario, set: Vec::new(), programs: Vec::new(), filmed: None }
    }

    /// With that key of the scenario replaced.
    pub fn set(mut self, key: impl Into<String>, value: impl ToString) -> Case {
        self.set.push((key.into(), value.to_string()));
        self
    }

    /// With one more program in that host.
    pub fn program<W: ToString>(mut self, host: &'static str, words: impl IntoIterator<Item = W>) -> Case {
        self.programs.push((host, words.into_iter().map(|word| word.to_string()).collect()));
        self
    }

    /// With real video of that size in its streams: only a program that gave a [`Film`](super::Film) can run it.
    pub fn filmed(self, size: (usize, usize)) -> Case {
        Case { filmed: Some(size), ..self }
    }

    /// The values that are replaced, as scenarios take them.
    pub fn overrides(&self) -> Vec<Override> {
        self.set.iter().map(|(key, value)| Override::new(key, value)).collect()
    }
}
