//! A run redrawn as one HTML page, from nothing but its event file or recording.
//!
//! The page is text, tables and SVG with tooltips, written here: no script, nothing to fetch. It weighs some 100 kB
//! where a plotting library's page weighs megabytes, prints, works with scripts switched off, and its policy header
//! keeps whatever an event file smuggles in from running or loading anything.

mod bars;
pub(crate) mod chart;
pub(crate) mod describe;
pub(crate) mod document;
pub(crate) mod evaluation;
pub(crate) mod html;
pub(crate) mod lines;
mod network;
pub(crate) mod reproduction;
pub(crate) mod series;
pub(crate) mod sweep;
pub(crate) mod table;
mod timeline;

use std::io::BufRead;

use lastmile::endpoint::Event;
use lastmile_net::recording::{Counts, Entry, Header, Reader, RecordingError};
use serde_json::Value;

use crate::roles;

/// Records that are drawn; a page with more is not read.
pub(crate) const MAX_RECORDS: usize = 48;
/// Events that are listed, results apart.
const MAX_EVENTS: usize = 2_000;
/// Results that are listed.
pub(crate) const MAX_RESULTS: usize = 2_000;

/// What the page is drawn from; bounded, however long the file is.
pub(crate) struct Run {
    /// The file's name, for the title.
    pub(crate) file: String,
    pub(crate) header: Option<Header>,
    pub(crate) counts: Counts,
    /// Where the file is cut, if it is.
    pub(crate) cut: Option<String>,
    /// The first events, in the file's order.
    pub(crate) events: Vec<Event>,
    /// What came of the endpoints.
    pub(crate) results: Vec<Event>,
    /// The first of what an endpoint recorded beside, in its role's form.
    pub(crate) records: Vec<Value>,
    /// What the network did, where an event file says so.
    pub(crate) network: network::Network,
}

impl Run {
    /// A run of which nothing was read.
    pub(crate) fn new(file: &str) -> Run {
        Run {
            file: file.to_owned(),
            header: None,
            counts: Counts::default(),
            cut: None,
            events: Vec::new(),
            results: Vec::new(),
            records: Vec::new(),
            network: network::Network::default(),
        }
    }

    /// Reads all of a recording or event file.
    pub(crate) fn read<R: BufRead>(file: &str, mut reader: Reader<R>) -> Result<Run, RecordingError> {
        let mut run = Run::new(file);
        while let Some(entry) = reader.next_entry()? {
            match entry {
                Entry::Event(event) => run.event(event),
                Entry::Record(record) if run.records.len() < MAX_RECORDS => run.records.push(record),
                Entry::Record(_) | Entry::Input { .. } => {}
            }
        }
        (run.header, run.counts) = (reader.header().cloned(), reader.counts());
        run.cut = reader.cut().map(str::to_owned);
        Ok(run)
    }

    /// Takes in a decision.
    pub(crate) fn event(&mut self, event: Event) {
        if roles::is_result(&event.what) && self.results.len() < MAX_RESULTS {
            self.results.push(event.clone());
        }
        if self.events.len() < MAX_EVENTS {
            self.events.push(event);
        }
    }

    /// The page.
    pub(crate) fn page(&self) -> String {
        let mut body = html::heading(self);
        body += &roles::results(self);
        body += &timeline::section(self);
        body += &roles::plots(self);
        body += &self.network.section();
        body += &describe::section(self);
        body += &html::configuration(self);
        html::page(&self.file, &body)
    }
}

#[cfg(test)]
mod tests;
