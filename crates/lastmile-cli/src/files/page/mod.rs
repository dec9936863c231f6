//! A run redrawn as one HTML page, from nothing but its event file or recording.

use std::io::{BufRead, Read};

use anyhow::{Context, bail};
use lastmile::endpoint::Event;
use lastmile::time::{Epoch, Time};
use lastmile_net::recording::{Entry, Header, Reader, RecordingError};
use lastmile_report::event::Happened;
use lastmile_report::html::{self, esc, heading};
use lastmile_report::timeline::{list, section};
use lastmile_sim::runs::event_file::Record;

use crate::roles::run::{MAX_RECORDS, Run};
use crate::roles::{lanes, plots, results, told};

mod network;
use network::Network;

/// Of a configuration no more is shown.
const MAX_CONFIG: usize = 20_000;
/// A line of an event file is at most as long as one of a recording.
const MAX_LINE: u64 = 4 << 20;

/// The page of a recording.
///
/// # Errors
/// It is none, or broken in its middle.
pub(crate) fn of_recording<R: BufRead>(file: &str, reader: Reader<R>) -> Result<String, RecordingError> {
    Ok(html::page(file, &body_of_recording(file, reader)?))
}

/// The same page's body.
///
/// # Errors
/// It is none, or broken in its middle.
pub(crate) fn body_of_recording<R: BufRead>(
    file: &str,
    mut reader: Reader<R>,
) -> Result<String, RecordingError> {
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
    Ok(body(&run, &Network::default()))
}

/// The page of an event file: decisions and records of the network, one a line.
///
/// # Errors
/// A line is neither a decision nor a record: the file's name, the line's number and the error.
pub(crate) fn of_events(file: &str, mut lines: impl BufRead) -> anyhow::Result<String> {
    let (mut run, mut network) = (Run::new(file), Network::default());
    let (mut line, mut number) = (Vec::new(), 0_u64);
    loop {
        line.clear();
        let read = (&mut lines as &mut dyn BufRead).take(MAX_LINE).read_until(b'\n', &mut line);
        if read.with_context(|| format!("cannot read {file}"))? == 0 {
            break;
        }
        number += 1;
        if let Ok(event) = serde_json::from_slice::<Event>(&line) {
            run.counts.events += 1;
            run.event(event);
            continue;
        }
        match serde_json::from_slice::<Record>(&line) {
            Ok(record) => {
                run.network += 1;
                network.add(&record);
            }
            Err(error) if line.last() != Some(&b'\n') && number > 1 => {
                run.cut = Some(format!(
                    "cut at line {number}: {error}; its writer was killed, or the disk was full"
                ));
            }
            Err(error) => bail!("{file}:{number}: neither a decision nor a record of the network: {error}"),
        }
    }
    Ok(page(&run, &network))
}

/// The page of a run that has just ended.
pub(crate) fn of_run(run: &Run) -> String {
    page(run, &Network::default())
}

fn page(run: &Run, network: &Network) -> String {
    html::page(&run.file, &body(run, network))
}

fn body(run: &Run, network: &Network) -> String {
    let happened = |event: &Event| Happened { at: event.at, node: event.node, told: told(&event.what) };
    let events: Vec<Happened> = run.events.iter().map(happened).collect();
    head(run)
        + &results(run)
        + &run.section
        + &section(&events, &lanes())
        + &plots(run)
        + &network.section()
        + &list(&events, run.counts.events)
        + &configuration(run)
}

/// Title and the facts of the run.
fn head(run: &Run) -> String {
    let counts = run.counts;
    let mut facts = Vec::new();
    if let Some(Header { world, seed, epoch, .. }) = &run.header {
        facts.push(("world", world.to_string()));
        if *epoch != Epoch::default() {
            facts.push(("started", utc(*epoch)));
        }
        // The whole seed stands in the recording; its beginning is enough to tell two runs apart.
        let short: String = seed.iter().take(4).map(|b| format!("{b:02x}")).collect();
        facts.push(("seed", format!("{short}…")));
        facts.push(("inputs", counts.inputs.to_string()));
    } else {
        facts.push(("kind", "event file, without streams".to_owned()));
    }
    facts.push(("decisions", counts.events.to_string()));
    if run.network > 0 {
        facts.push(("network events", run.network.to_string()));
    }
    if run.header.is_some() {
        facts.push(("streams", counts.records.to_string()));
    }
    if let Some(cut) = &run.cut {
        facts.push(("not whole", cut.clone()));
    }
    heading(&run.file, &facts)
}

/// The configuration, folded.
fn configuration(run: &Run) -> String {
    let Some(header) = run.header.as_ref().filter(|h| !h.config.is_null()) else { return String::new() };
    let mut text = serde_json::to_string_pretty(&header.config).unwrap_or_default();
    if text.len() > MAX_CONFIG {
        let end = (0..=MAX_CONFIG).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    format!("<details>\n<summary>Configuration</summary>\n<pre>{}</pre>\n</details>\n", esc(&text))
}

/// A moment in UTC to the second (days to dates: Hinnant, "chrono-compatible low-level date algorithms").
fn utc(epoch: Epoch) -> String {
    let seconds = epoch.unix_nanos(Time::ZERO) / 1_000_000_000;
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let z = days + 719_468;
    let (era, day) = (z / 146_097, z % 146_097);
    let year_of_era = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let d = day_of_year - (153 * month + 2) / 5 + 1;
    let m = if month < 10 { month + 3 } else { month - 9 };
    let y = year_of_era + era * 400 + u64::from(m <= 2);
    format!("{y:04}-{m:02}-{d:02} {:02}:{:02}:{:02} UTC", second / 3600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        let at = |s: u64| utc(Epoch::from_unix_nanos(s * 1_000_000_000));
        assert_eq!(at(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(at(951_827_696), "2000-02-29 12:34:56 UTC");
        assert_eq!(at(1_798_761_599), "2026-12-31 23:59:59 UTC");
    }
}
