//! A run redrawn as one HTML page, from nothing but its event file or recording.
//!
//! The page is text, tables and SVG with tooltips, written here: no script, nothing to fetch. It weighs some 100 kB
//! where a plotting library's page weighs megabytes, prints, works with scripts switched off, and its policy header
//! keeps whatever an event file smuggles in from running or loading anything.

mod bars;
mod chart;
mod describe;
pub(crate) mod document;
mod html;
pub(crate) mod lines;
mod network;
pub(crate) mod series;
mod streams;
mod summary;
pub(crate) mod sweep;
mod table;
mod timeline;

use std::io::BufRead;

use lastmile::endpoint::Event;
use lastmile::endpoint::measure::Decision;
use lastmile::report::StreamRecord;
use lastmile_net::recording::{Counts, Entry, Header, Reader, RecordingError};

/// Streams that are drawn; a page with more is not read.
const MAX_STREAMS: usize = 48;
/// Events that are listed, results apart.
const MAX_EVENTS: usize = 2_000;
/// Results that are listed.
const MAX_RESULTS: usize = 2_000;

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
    /// All estimates and refusals.
    pub(crate) results: Vec<Event>,
    /// The first streams.
    pub(crate) streams: Vec<StreamRecord>,
    /// What the network did, where an event file says so.
    pub(crate) network: network::Network,
}

impl Run {
    /// A run of which nothing was read.
    fn new(file: &str) -> Run {
        Run {
            file: file.to_owned(),
            header: None,
            counts: Counts::default(),
            cut: None,
            events: Vec::new(),
            results: Vec::new(),
            streams: Vec::new(),
            network: network::Network::default(),
        }
    }

    /// Reads all of a recording or event file.
    pub(crate) fn read<R: BufRead>(file: &str, mut reader: Reader<R>) -> Result<Run, RecordingError> {
        let mut run = Run::new(file);
        while let Some(entry) = reader.next_entry()? {
            match entry {
                Entry::Event(event) => run.event(event),
                Entry::Record(stream) if run.streams.len() < MAX_STREAMS => {
                    run.streams.extend(serde_json::from_value(stream).ok());
                }
                Entry::Record(_) | Entry::Input { .. } => {}
            }
        }
        (run.header, run.counts) = (reader.header().cloned(), reader.counts());
        run.cut = reader.cut().map(str::to_owned);
        Ok(run)
    }

    fn event(&mut self, event: Event) {
        let is_result =
            matches!(event.what.of(), Some(Decision::Estimated { .. } | Decision::Refused { .. }));
        if is_result && self.results.len() < MAX_RESULTS {
            self.results.push(event.clone());
        }
        if self.events.len() < MAX_EVENTS {
            self.events.push(event);
        }
    }

    /// The page.
    pub(crate) fn page(&self) -> String {
        let mut body = html::heading(self);
        if self.network.records == 0 || !self.results.is_empty() {
            body += &summary::section(self);
        }
        body += &timeline::section(self);
        body += &streams::section(self);
        body += &self.network.section();
        body += &describe::section(self);
        body += &html::configuration(self);
        html::page(&self.file, &body)
    }
}

#[cfg(test)]
mod tests;
