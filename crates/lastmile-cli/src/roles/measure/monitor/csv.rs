//! Rounds as CSV: a row for each round and direction, appended to what is there.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use anyhow::{Context, anyhow};
use lastmile::endpoint::measure::Row;
use lastmile::estimate::Quantity;
use lastmile::report::Direction;

use super::{Told, Verdict};
use crate::shell::exit::Exit;
use crate::shell::replace::unwritable;

const QUANTITIES: [Quantity; 5] = [
    Quantity::Capacity,
    Quantity::SustainedRate,
    Quantity::AvailableBandwidth,
    Quantity::AchievableRate,
    Quantity::ShortestExchange,
];

/// One direction of a round.
struct Seen<'a> {
    told: &'a Told<'a>,
    direction: Direction,
    rows: Vec<&'a Row>,
    /// A direction has its own end, if the session came so far.
    verdict: Verdict,
}

/// A column: its name, and a row's cell, empty where there is no number.
type Column = (&'static str, fn(&Seen<'_>) -> String);
/// The same of a quantity.
type Number = (&'static str, fn(&Row) -> String);

/// Columns before those of the quantities.
const ROUND: [Column; 14] = [
    ("time", |seen| seen.told.time.clone()),
    ("version", |_| super::VERSION.to_owned()),
    ("schema", |_| lastmile::SCHEMA.to_string()),
    ("round", |seen| seen.told.number.to_string()),
    ("missed", |seen| seen.told.missed.to_string()),
    ("host", |seen| seen.told.asked.host.to_owned()),
    ("local", |seen| text(seen.told.round.as_ref().and_then(|round| round.local))),
    ("peer", |seen| text(seen.told.round.as_ref().map(|round| round.peer))),
    ("method", |seen| seen.told.asked.method.to_owned()),
    ("direction", |seen| seen.direction.to_string()),
    ("exit_code", |seen| seen.verdict.exit_code().to_string()),
    ("code", |seen| text(seen.verdict.code.as_ref())),
    ("error", |seen| text(seen.verdict.error.as_ref())),
    ("rtt_seconds", |seen| text(seen.told.round.as_ref().and_then(|round| round.rtt))),
];

/// Columns of each quantity, behind its name.
const NUMBERS: [Number; 4] = [
    ("bps", |row| text(row.rate_bps)),
    ("low_bps", |row| text(row.interval.map(|interval| interval.low_bps))),
    ("high_bps", |row| text(row.interval.map(|interval| interval.high_bps))),
    ("more_than_bps", |row| text(row.more_than_bps)),
];

/// Columns after those of the quantities. Costs of a session add up to those of its last result.
const COST: [Column; 4] = [
    ("codes", |seen| seen.codes()),
    ("seconds", |seen| text(seen.rows.last().map(|row| row.cost.seconds))),
    ("bytes", |seen| text(seen.rows.last().map(|row| row.cost.bytes))),
    ("bytes_received", |seen| text(seen.rows.last().map(|row| row.cost.bytes_received))),
];

fn header() -> Vec<String> {
    let of = |quantity: &Quantity| {
        let name = super::snake(*quantity);
        NUMBERS.map(|(number, _)| format!("{name}_{number}"))
    };
    let round = ROUND.iter().map(|(name, _)| (*name).to_owned());
    let cost = COST.iter().map(|(name, _)| (*name).to_owned());
    round.chain(QUANTITIES.iter().flat_map(of)).chain(cost).collect()
}

fn text<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

impl<'a> Seen<'a> {
    fn new(told: &'a Told<'a>, direction: Direction) -> Seen<'a> {
        let round = told.round.as_ref();
        let rows =
            round.iter().flat_map(|round| &round.rows).filter(|row| row.direction == direction).collect();
        let verdict = round.map_or_else(|| told.verdict.clone(), |round| round.verdict(Some(direction)));
        Seen { told, direction, rows, verdict }
    }

    fn codes(&self) -> String {
        let mut codes: Vec<&str> = Vec::new();
        let warned = self.rows.iter().filter(|row| row.refused.is_none());
        for code in warned.filter_map(|row| row.code.as_deref()).flat_map(|code| code.split(' ')) {
            if !codes.contains(&code) {
                codes.push(code);
            }
        }
        codes.join(" ")
    }

    fn cells(&self) -> Vec<String> {
        let of = |quantity: &Quantity| {
            let found = self.rows.iter().find(|row| row.quantity == Some(*quantity));
            NUMBERS.map(|(_, cell)| found.map(|row| cell(row)).unwrap_or_default())
        };
        let round = ROUND.iter().map(|(_, cell)| cell(self));
        let cost = COST.iter().map(|(_, cell)| cell(self));
        round.chain(QUANTITIES.iter().flat_map(of)).chain(cost).collect()
    }
}

/// Opens the file for one writer at a time, with its header: written if the file is empty, else compared. A torn last row,
/// left by a program that was killed, is cut off.
fn open(path: &Path) -> anyhow::Result<File> {
    let cannot = || format!("cannot write {}", path.display());
    let opened = OpenOptions::new().read(true).append(true).create(true).open(path);
    let mut file = opened.map_err(|error| unwritable(path, &error))?;
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
    let rows = told.asked.directions.iter().map(|direction| line(&Seen::new(told, *direction).cells()));
    let rows = rows.collect::<anyhow::Result<Vec<_>>>()?.concat();
    open(path)?.write_all(&rows).with_context(|| format!("cannot write {}", path.display()))
}
