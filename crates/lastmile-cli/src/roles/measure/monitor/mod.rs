//! `measure --every`: rounds of measurements, one JSON line each, beside it CSV and Prometheus's text format.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use lastmile::endpoint::measure::{CostRow, Row};
use lastmile::estimate::Quantity;
use lastmile::report::Direction;
use lastmile::units::Bytes;
use serde_json::{Map, Value, json};

use crate::roles::measure::result;
use crate::shell::exit::{self, Exit};
use crate::shell::options::seconds;
use crate::shell::{signals, time_of_day};

mod csv;
mod grid;
mod prom;

use grid::{Budget, Grid};
use prom::Prom;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Time between checks for a signal during the wait for the next round.
const WATCH: Duration = Duration::from_millis(50);

/// Options of repeated measurements.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct MonitorArgs {
    /// Measure at multiples of this time until Ctrl-C, with one JSON line a round
    #[arg(long, value_name = "TIME", value_parser = seconds, help_heading = "Monitoring", conflicts_with_all = ["verbose", "record"])]
    pub(crate) every: Option<f64>,
    /// End after so many rounds; the exit code is the last round's
    #[arg(long, value_name = "ROUNDS", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Monitoring")]
    count: Option<u64>,
    /// Most bytes in any hour, both directions together; a round that would not fit is skipped
    #[arg(long, value_name = "BYTES", value_parser = budget, help_heading = "Monitoring")]
    max_bytes_per_hour: Option<Bytes>,
    /// Append a row for each round and direction to FILE
    #[arg(long, value_name = "FILE", help_heading = "Monitoring")]
    csv: Option<PathBuf>,
    /// Keep the last round in FILE, for the textfile collector of Prometheus's node-exporter
    #[arg(long, value_name = "FILE", help_heading = "Monitoring")]
    prom: Option<PathBuf>,
}

impl MonitorArgs {
    /// Refuses options of rounds where there is one measurement alone.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let given = [
            (self.count.is_some(), "--count"),
            (self.max_bytes_per_hour.is_some(), "--max-bytes-per-hour"),
            (self.csv.is_some(), "--csv"),
            (self.prom.is_some(), "--prom"),
        ];
        match given.iter().find(|(is_given, _)| *is_given && self.every.is_none()) {
            Some((_, option)) => Err(Exit::Usage
                .blame(anyhow!("{option} needs --every, the time from round to round, such as --every 60s"))),
            None => Ok(()),
        }
    }
}

/// A budget into which some round fits.
fn budget(text: &str) -> Result<Bytes, String> {
    match text.parse::<Bytes>() {
        Ok(Bytes::ZERO) => Err("no round costs nothing: leave the option out for no limit".to_owned()),
        Ok(budget) => Ok(budget),
        Err(error) => Err(error.to_string()),
    }
}

/// A session that came to an end.
pub(crate) struct Round {
    /// The address from which this host sends.
    pub(crate) local: Option<IpAddr>,
    pub(crate) peer: SocketAddr,
    /// The round trip, in seconds.
    pub(crate) rtt: Option<f64>,
    pub(crate) rows: Vec<Row>,
    /// Each warning with its code.
    pub(crate) warnings: Vec<(String, &'static str)>,
    pub(crate) cost: CostRow,
    pub(crate) exit: Option<Exit>,
}

impl Round {
    /// The document of a session that began at `time`.
    pub(crate) fn document(&self, time: &str, host: &str) -> Map<String, Value> {
        let mut all = head(time, host);
        let (warnings, codes): (Vec<_>, Vec<_>) = self.warnings.iter().cloned().unzip();
        all.insert("local".into(), json!(self.local));
        all.insert("peer".into(), json!(self.peer));
        all.insert("rtt_seconds".into(), json!(self.rtt));
        all.insert("options".into(), json!(Row::options(&self.rows)));
        all.insert("results".into(), json!(self.rows));
        all.insert("warnings".into(), json!(warnings));
        all.insert("warning_codes".into(), json!(codes));
        all
    }

    /// The end of one direction's measurements, or of all.
    fn verdict(&self, of: Option<Direction>) -> Verdict {
        // A session that failed early has no row of the later direction.
        let of = of.filter(|direction| self.rows.iter().any(|row| row.direction == *direction));
        let rows = || self.rows.iter().filter(|row| of.is_none_or(|direction| row.direction == direction));
        let failed = of.is_none() || result::exit(rows()).is_some();
        let Some(exit) = self.exit.filter(|_| failed) else { return Verdict::default() };
        let refused = rows().find(|row| row.refused.is_some());
        let code = refused.and_then(|row| row.code.clone()).unwrap_or_else(|| "unknown".to_owned());
        let exit = if of.is_some() && code.starts_with("peer-") { Exit::Peer } else { exit };
        let reason = |row: &Row| (!row.warnings.is_empty()).then(|| row.warnings.join("; "));
        // Without a refusal the warning beside an unknown rate says why it is unknown.
        let unknown = || rows().filter(|row| row.rate_bps.is_none()).find_map(reason);
        let error = refused.map_or_else(unknown, |row| row.refused.clone());
        Verdict { exit: Some(exit), code: Some(code), error }
    }
}

/// The end of a round: nothing of a success.
#[derive(Clone, Debug, Default)]
struct Verdict {
    exit: Option<Exit>,
    code: Option<String>,
    error: Option<String>,
}

impl Verdict {
    fn new(exit: Exit, code: &str, error: String) -> Verdict {
        Verdict { exit: Some(exit), code: Some(code.to_owned()), error: Some(error) }
    }

    /// Of a round for which no session could begin.
    fn of(error: &anyhow::Error) -> Verdict {
        let exit = exit::of(error);
        Verdict::new(exit, exit.word(), exit::one_line(error))
    }

    fn write(&self, all: &mut Map<String, Value>) {
        all.insert("exit_code".into(), json!(self.exit_code()));
        all.insert("code".into(), json!(self.code));
        all.insert("error".into(), json!(self.error));
    }

    fn exit_code(&self) -> u8 {
        self.exit.map_or(0, Exit::code)
    }
}

fn head(time: &str, host: &str) -> Map<String, Value> {
    let mut all = Map::new();
    all.insert("schema".into(), json!(lastmile::SCHEMA));
    all.insert("version".into(), json!(VERSION));
    all.insert("time".into(), json!(time));
    all.insert("host".into(), json!(host));
    all
}

/// The document of a session that could not begin.
fn empty(time: &str, host: &str) -> Map<String, Value> {
    let mut all = head(time, host);
    for missing in ["local", "peer", "rtt_seconds"] {
        all.insert(missing.into(), Value::Null);
    }
    all.insert("options".into(), json!({}));
    for empty in ["results", "warnings", "warning_codes"] {
        all.insert(empty.into(), json!([]));
    }
    all
}

/// The same with the reason, as it is printed.
pub(crate) fn failed(time: &str, host: &str, error: &anyhow::Error) -> String {
    let mut all = empty(time, host);
    Verdict::of(error).write(&mut all);
    format!("{:#}", Value::Object(all))
}

/// A quantity's name as it stands in other names.
fn snake(quantity: Quantity) -> String {
    quantity.to_string().replace([' ', '-'], "_")
}

/// Command line of all rounds.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    /// The host as it was given.
    pub(crate) host: &'a str,
    pub(crate) method: &'a str,
    pub(crate) directions: &'a [Direction],
}

/// A round as it is told.
struct Told<'a> {
    time: String,
    number: u64,
    missed: u32,
    asked: Asked<'a>,
    /// Nothing where no session could begin.
    round: Option<Round>,
    verdict: Verdict,
}

impl Told<'_> {
    fn line(&self) -> Value {
        let mut all = match &self.round {
            Some(round) => round.document(&self.time, self.asked.host),
            None => empty(&self.time, self.asked.host),
        };
        all.insert("round".into(), json!(self.number));
        all.insert("missed".into(), json!(self.missed));
        self.verdict.write(&mut all);
        Value::Object(all)
    }
}

/// Measures in rounds, each by `measure`, which is told the most that it may spend.
pub(crate) fn run(
    args: &MonitorArgs,
    every: f64,
    asked: Asked<'_>,
    mut measure: impl FnMut(Option<Bytes>) -> anyhow::Result<Round>,
) -> anyhow::Result<Option<Exit>> {
    signals::stop();
    args.csv.as_deref().map(csv::check).transpose()?;
    let mut prom = args.prom.as_deref().map(|path| Prom::new(path, asked.host)).transpose()?;
    let mut grid = Grid::new(Duration::from_secs_f64(every));
    let mut budget = args.max_bytes_per_hour.map(Budget::new);
    let (began, mut number, mut exit, mut is_read) = (Instant::now(), 0, None, true);
    while args.count.is_none_or(|count| number < count) {
        let (at, missed) = grid.next(began.elapsed());
        if missed > 0 {
            crate::shell::note(&format!(
                "round {number} took longer than the interval: the next {missed} are left out"
            ));
        }
        while began.elapsed() < at && !signals::stopped() {
            std::thread::sleep(WATCH.min(at.saturating_sub(began.elapsed())));
        }
        if signals::stopped() {
            break;
        }
        number += 1;
        let told = round(asked, (number, missed), &mut budget, began, &mut measure)?;
        exit = told.verdict.exit;
        let printed = if is_read { crate::shell::try_say(&told.line().to_string()) } else { Ok(()) };
        if let Err(error) = printed {
            if args.csv.is_none() && args.prom.is_none() {
                crate::shell::end_unsaid(&error);
            }
            is_read = error.kind() != std::io::ErrorKind::BrokenPipe;
            if is_read {
                exit = exit.or(Some(Exit::Machine));
            }
            let files = "the rounds go on into the files of --csv and --prom";
            crate::shell::note(&format!("round {number}: cannot write to standard output: {error}; {files}"));
        }
        let rows = args.csv.as_ref().map(|path| csv::append(path, &told));
        let now = jiff::Timestamp::now().as_millisecond() as f64 / 1e3;
        let gauges = prom.as_mut().map(|prom| prom.write(&told, now));
        // A full disk may have room again at the next round.
        for error in [rows, gauges].into_iter().flatten().filter_map(Result::err) {
            crate::shell::note(&format!("round {number}: {}", exit::one_line(&error)));
            exit = exit.or(Some(Exit::Machine));
        }
    }
    Ok(exit)
}

/// One round. Wrong usage ends the program in the first, since each further round would meet it too. Later it is none: an interface or an
/// address of this host has gone, and may come back.
fn round<'a>(
    asked: Asked<'a>,
    (number, missed): (u64, u32),
    budget: &mut Option<Budget>,
    began: Instant,
    measure: &mut impl FnMut(Option<Bytes>) -> anyhow::Result<Round>,
) -> anyhow::Result<Told<'a>> {
    let time = time_of_day();
    let told = |round, verdict| Told { time: time.clone(), number, missed, asked, round, verdict };
    let allowed = match budget.as_mut().map(|budget| budget.allows(began.elapsed())).transpose() {
        Ok(allowed) => allowed,
        Err(over) => {
            let error = format!(
                "{} of the {} of --max-bytes-per-hour are left, and a round took {}: this one is skipped",
                over.left, over.limit, over.wanted
            );
            return Ok(told(None, Verdict::new(Exit::NoResult, "over-budget", error)));
        }
    };
    match measure(allowed) {
        Ok(round) => {
            if let Some(budget) = budget {
                let cost = round.cost;
                budget.spend(began.elapsed(), Bytes(cost.bytes + cost.bytes_received));
            }
            let verdict = round.verdict(None);
            Ok(told(Some(round), verdict))
        }
        Err(error) => match exit::of(&error) {
            Exit::Usage if number == 1 => Err(error),
            Exit::Usage => Ok(told(None, Verdict::of(&Exit::Machine.blame(error)))),
            _ => Ok(told(None, Verdict::of(&error))),
        },
    }
}
