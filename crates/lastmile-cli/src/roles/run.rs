//! [`Run`]: an endpoint's run for a page, read from its file or as it goes.

use lastmile::endpoint::Event;
use lastmile_net::recording::{Counts, Header};
use serde_json::Value;

/// Records that are drawn; more are counted and not kept.
pub(crate) const MAX_RECORDS: usize = 48;
/// Events that are listed, results apart.
const MAX_EVENTS: usize = 2_000;
/// Results that are listed.
pub(crate) const MAX_RESULTS: usize = 2_000;

/// A run; bounded, however long it is.
#[derive(Default)]
pub(crate) struct Run {
    /// The file's name, for the title.
    pub(crate) file: String,
    pub(crate) header: Option<Header>,
    pub(crate) counts: Counts,
    /// Place where the file is cut, if it is.
    pub(crate) cut: Option<String>,
    /// The first events, in the file's order.
    pub(crate) events: Vec<Event>,
    /// Results of the endpoints.
    pub(crate) results: Vec<Event>,
    /// The first of an endpoint's other records, in its role's form.
    pub(crate) records: Vec<Value>,
    /// A section of the page about what is in no file.
    pub(crate) section: String,
    /// Records of the network, in an event file.
    pub(crate) network: u64,
}

impl Run {
    /// A run before anything was read.
    pub(crate) fn new(file: &str) -> Run {
        Run { file: file.to_owned(), ..Run::default() }
    }

    /// Takes in a decision.
    pub(crate) fn event(&mut self, event: Event) {
        if super::is_result(&event.what) && self.results.len() < MAX_RESULTS {
            self.results.push(event.clone());
        }
        if self.events.len() < MAX_EVENTS {
            self.events.push(event);
        }
    }
}
