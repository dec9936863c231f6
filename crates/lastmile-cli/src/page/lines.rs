//! Event files: decisions and records of the network, one a line.

use std::io::{BufRead, Read};

use anyhow::{Context, bail};
use lastmile::endpoint::Event;
use lastmile_sim::runs::event_file::Record;

use super::Run;

/// As long as a line of a recording may be.
const MAX_LINE: u64 = 4 << 20;

/// Reads an event file.
///
/// # Errors
/// A line is neither a decision nor a record: the file's name, the line's number and what is wrong.
pub(crate) fn read(file: &str, mut lines: impl BufRead) -> anyhow::Result<Run> {
    let mut run = Run::new(file);
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
            Ok(record) => run.network.add(&record),
            Err(error) if line.last() != Some(&b'\n') && number > 1 => {
                run.cut = Some(format!(
                    "cut at line {number}: {error}; whoever wrote it was killed, or the disk was full"
                ));
            }
            Err(error) => bail!("{file}:{number}: neither a decision nor a record of the network: {error}"),
        }
    }
    Ok(run)
}
