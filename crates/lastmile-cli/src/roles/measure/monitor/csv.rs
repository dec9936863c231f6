//! Rounds as CSV: a row for each round and direction, appended to what is there.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use anyhow::{Context, anyhow};
use lastmile::endpoint::measure::Row;
use lastmile::estimate::Quantity;
use lastmile::report::Direction;

use super::Told;
use crate::shell::exit::Exit;

const QUANTITIES: [Quantity; 5] = [
    Quantity::Capacity,
    Quantity::SustainedRate,
    Quantity::AvailableBandwidth,
    Quantity::AchievableRate,
    Quantity::ShortestExchange,
];

/// Columns before those of the quantities.
const ROUND: [&str; 14] = [
    "time",
    "version",
    "schema",
    "round",
    "missed",
    "host",
    "local",
    "peer",
    "method",
    "direction",
    "exit_code",
    "code",
    "error",
    "rtt_seconds",
];

/// Columns after those of the quantities.
const COST: [&str; 4] = ["codes", "seconds", "bytes", "bytes_received"];

fn header() -> Vec<String> {
    let of = |quantity: &Quantity| {
        let name = super::snake(*quantity);
        ["bps", "low_bps", "high_bps", "more_than_bps"].map(|what| format!("{name}_{what}"))
    };
    let round = ROUND.iter().map(|name| (*name).to_owned());
    let cost = COST.iter().map(|name| (*name).to_owned());
    round.chain(QUANTITIES.iter().flat_map(of)).chain(cost).collect()
}

fn text<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// The row of one direction of a round; its numbers are empty where there are none.
fn row(told: &Told<'_>, direction: Direction) -> Vec<String> {
    let round = told.round.as_ref();
    let rows: Vec<&Row> =
        round.iter().flat_map(|round| &round.rows).filter(|row| row.direction == direction).collect();
    // A direction has its own end, if the session came so far.
    let verdict = round.map_or_else(|| told.verdict.clone(), |round| round.verdict(Some(direction)));
    let mut cells = vec![
        told.time.clone(),
        super::VERSION.to_owned(),
        lastmile::SCHEMA.to_string(),
        told.number.to_string(),
        told.missed.to_string(),
        told.host.to_owned(),
        text(round.and_then(|round| round.local)),
        text(round.map(|round| round.peer)),
        told.method.to_owned(),
        direction.to_string(),
        verdict.exit_code().to_string(),
        text(verdict.code),
        text(verdict.error),
        text(round.and_then(|round| round.rtt)),
    ];
    for quantity in QUANTITIES {
        let found = rows.iter().find(|row| row.quantity == Some(quantity));
        cells.push(text(found.and_then(|row| row.rate_bps)));
        cells.push(text(found.and_then(|row| row.interval).map(|interval| interval.low_bps)));
        cells.push(text(found.and_then(|row| row.interval).map(|interval| interval.high_bps)));
        cells.push(text(found.and_then(|row| row.more_than_bps)));
    }
    let mut codes: Vec<&str> = Vec::new();
    for code in rows.iter().filter(|row| row.refused.is_none()).filter_map(|row| row.code.as_deref()) {
        codes.extend(code.split(' ').filter(|code| !codes.contains(code)).collect::<Vec<_>>());
    }
    cells.push(codes.join(" "));
    // Costs of a session add up to those of its last result.
    let cost = rows.last().map(|row| row.cost);
    cells.push(text(cost.map(|cost| cost.seconds)));
    cells.push(text(cost.map(|cost| cost.bytes)));
    cells.push(text(cost.map(|cost| cost.bytes_received)));
    cells
}

/// Opens the file for one writer at a time, with its header: written if the file is empty, else compared. A torn last row,
/// left by a program that was killed, is cut off.
fn open(path: &Path) -> anyhow::Result<File> {
    let cannot = || format!("cannot write {}", path.display());
    let mut file = OpenOptions::new().read(true).append(true).create(true).open(path).with_context(cannot)?;
    if !file.metadata().with_context(cannot)?.is_file() {
        return Err(Exit::Usage.blame(anyhow!("cannot write {}: it is no ordinary file", path.display())));
    }
    file.lock().with_context(cannot)?;
    let wanted = line(&header())?;
    let mut there = Vec::new();
    Read::by_ref(&mut file).take(wanted.len() as u64).read_to_end(&mut there).with_context(cannot)?;
    // A header that a full disk cut short is written again.
    if there.len() < wanted.len() && wanted.starts_with(&there) {
        file.set_len(0).with_context(cannot)?;
        file.write_all(&wanted).with_context(cannot)?;
    } else if there != wanted {
        return Err(Exit::Usage.blame(anyhow!(
            "{} has another header than this version writes: name another file",
            path.display()
        )));
    }
    let whole = whole_lines(&mut file).with_context(cannot)?;
    if let Some(length) = whole {
        crate::shell::note(&format!("the last row of {} was torn: it is cut off", path.display()));
        file.set_len(length).with_context(cannot)?;
    }
    Ok(file)
}

/// End of the last whole line, in bytes from the file's start, if a torn line is behind it.
fn whole_lines(file: &mut File) -> std::io::Result<Option<u64>> {
    let end = file.seek(SeekFrom::End(0))?;
    let mut from = end;
    let mut piece = Vec::new();
    while from > 0 {
        let until = from;
        from = from.saturating_sub(4096);
        file.seek(SeekFrom::Start(from))?;
        piece.clear();
        Read::by_ref(file).take(until - from).read_to_end(&mut piece)?;
        if let Some(at) = piece.iter().rposition(|byte| *byte == b'\n') {
            let whole = from + at as u64 + 1;
            return Ok((whole < end).then_some(whole));
        }
    }
    Ok(None)
}

fn line(cells: &[String]) -> anyhow::Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(cells)?;
    Ok(writer.into_inner().map_err(|error| error.into_error())?)
}

/// Refuses a file to which [`append`] could not write.
pub(super) fn check(path: &Path) -> anyhow::Result<()> {
    open(path).map(drop)
}

/// Appends a round, in one write, so that several programs may share the file.
pub(super) fn append(path: &Path, told: &Told<'_>) -> anyhow::Result<()> {
    let rows = told.directions.iter().map(|direction| line(&row(told, *direction)));
    let rows = rows.collect::<anyhow::Result<Vec<_>>>()?.concat();
    open(path)?.write_all(&rows).with_context(|| format!("cannot write {}", path.display()))
}
