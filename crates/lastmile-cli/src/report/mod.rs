//! A run redrawn as one HTML page, from nothing but its event file or recording.
//!
//! The page is text, tables and SVG with tooltips, written here: no script, nothing to fetch. It weighs some 100 kB
//! where a plotting library's page weighs megabytes, prints, works with scripts switched off, and its policy header
//! keeps whatever an event file smuggles in from running or loading anything.

mod chart;
mod describe;
mod html;
mod streams;
mod summary;
pub(crate) mod sweep;
mod timeline;

use std::io::BufRead;

use lastmile::event::{Decision, Event};
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
    /// The first events, in the file's order.
    pub(crate) events: Vec<Event>,
    /// All estimates and refusals.
    pub(crate) results: Vec<Event>,
    /// The first streams.
    pub(crate) streams: Vec<StreamRecord>,
}

impl Run {
    /// Reads all of a recording or event file.
    pub(crate) fn read<R: BufRead>(file: &str, mut reader: Reader<R>) -> Result<Run, RecordingError> {
        let (mut events, mut results, mut streams) = (Vec::new(), Vec::new(), Vec::new());
        while let Some(entry) = reader.next_entry()? {
            match entry {
                Entry::Event(event) => {
                    let is_result =
                        matches!(event.what, Decision::Estimated { .. } | Decision::Refused { .. });
                    if is_result && results.len() < MAX_RESULTS {
                        results.push(event.clone());
                    }
                    if events.len() < MAX_EVENTS {
                        events.push(event);
                    }
                }
                Entry::Stream(stream) if streams.len() < MAX_STREAMS => streams.push(stream),
                Entry::Stream(_) | Entry::Input { .. } => {}
            }
        }
        let (header, counts) = (reader.header().cloned(), reader.counts());
        Ok(Run { file: file.to_owned(), header, counts, events, results, streams })
    }

    /// The page.
    pub(crate) fn page(&self) -> String {
        let mut body = html::heading(self);
        body += &summary::section(self);
        body += &timeline::section(self);
        body += &streams::section(self);
        body += &describe::section(self);
        body += &html::configuration(self);
        html::page(&self.file, &body)
    }
}

#[cfg(test)]
mod tests;
