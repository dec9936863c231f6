//! The last round in Prometheus's text format, for the textfile collector of node-exporter.
//!
//! Units are base units: bytes, seconds. A number that the last round did not find is left out, so that none is older than
//! `lastmile_last_round_timestamp_seconds`.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use lastmile::endpoint::measure::Row;
use prometheus::{Gauge, GaugeVec, IntCounter, IntCounterVec, Opts, Registry, TextEncoder};

use super::Told;
use crate::shell::exit::Exit;
use crate::shell::replace;

const LAST_SUCCESS: &str = "lastmile_last_success_timestamp_seconds";

/// The file and what has been counted.
pub(super) struct Prom {
    path: PathBuf,
    host: String,
    /// End of the last round that succeeded, in seconds since 1970; kept from an earlier program's file, 0 if there is none.
    last_success: f64,
    rounds: HashMap<u8, u64>,
    missed: u64,
    sent: u64,
    received: u64,
}

/// The largest file of an earlier program that is read.
const MOST: u64 = 1 << 20;

/// The text of an earlier program, if the file is an ordinary one: a device may have no end, and a pipe no writer.
fn before(path: &Path) -> String {
    let is_ours = std::fs::metadata(path).is_ok_and(|known| known.is_file() && known.len() <= MOST);
    if is_ours { std::fs::read_to_string(path).unwrap_or_default() } else { String::new() }
}

impl Prom {
    pub(super) fn new(path: &Path, host: &str) -> anyhow::Result<Prom> {
        replace::check(path)?;
        // Such a file is never read, and nothing would show that; a device or a pipe has a reader of its own.
        let is_special = std::fs::metadata(path).is_ok_and(|known| !known.is_file());
        if path.extension().is_none_or(|extension| extension != "prom") && !is_special {
            return Err(Exit::Usage.blame(anyhow!(
                "--prom {}: node-exporter reads only files whose names end in .prom",
                path.display()
            )));
        }
        let before = before(path);
        Ok(Prom {
            path: path.to_owned(),
            host: host.to_owned(),
            last_success: last_success(&before, host).unwrap_or_default(),
            rounds: HashMap::new(),
            missed: 0,
            sent: 0,
            received: 0,
        })
    }

    /// Replaces the file by one with this round, which ended at `now`, in seconds since 1970.
    pub(super) fn write(&mut self, told: &Told<'_>, now: f64) -> anyhow::Result<()> {
        *self.rounds.entry(told.verdict.exit_code()).or_default() += 1;
        self.missed += u64::from(told.missed);
        if let Some(round) = &told.round {
            self.sent += round.cost.bytes;
            self.received += round.cost.bytes_received;
        }
        if told.verdict.exit_code() == 0 {
            self.last_success = now;
        }
        let text = self.text(told, now).map_err(|error| Exit::Machine.blame(error))?;
        replace::replace(&self.path, |file| Ok(file.write_all(text.as_bytes())?))
    }

    fn text(&self, told: &Told<'_>, now: f64) -> prometheus::Result<String> {
        let labels = HashMap::from([("host".to_owned(), self.host.clone())]);
        let registry = Registry::new_custom(None, Some(labels))?;
        let gauge = |name: &str, help: &str, value: f64| -> prometheus::Result<()> {
            let gauge = Gauge::with_opts(Opts::new(name, help))?;
            gauge.set(value);
            registry.register(Box::new(gauge))
        };
        let count = |name: &str, help: &str, value: u64| -> prometheus::Result<()> {
            let counter = IntCounter::with_opts(Opts::new(name, help))?;
            counter.inc_by(value);
            registry.register(Box::new(counter))
        };
        let build = GaugeVec::new(
            Opts::new("lastmile_build_info", "Version of the program, always 1."),
            &["version"],
        )?;
        build.with_label_values(&[super::VERSION]).set(1.0);
        registry.register(Box::new(build))?;
        let rounds = Opts::new(
            "lastmile_rounds_total",
            "Rounds since the program's start, by exit code: 0 is success.",
        );
        let rounds = IntCounterVec::new(rounds, &["exit_code"])?;
        // Every code from the start, so that a rate is seen at the first failure.
        for code in
            [0, Exit::NoResult.code(), Exit::Peer.code(), Exit::Machine.code(), Exit::Interrupted.code()]
        {
            let counted = self.rounds.get(&code).copied().unwrap_or_default();
            rounds.with_label_values(&[&code.to_string()]).inc_by(counted);
        }
        registry.register(Box::new(rounds))?;
        count(
            "lastmile_missed_rounds_total",
            "Rounds left out because the one before took longer than the interval.",
            self.missed,
        )?;
        count(
            "lastmile_sent_bytes_total",
            "IP bytes that measurements sent since the program's start.",
            self.sent,
        )?;
        count(
            "lastmile_received_bytes_total",
            "IP bytes that measurements received since the program's start.",
            self.received,
        )?;
        gauge("lastmile_last_round_timestamp_seconds", "End of the last round, Unix time.", now)?;
        gauge(
            "lastmile_last_round_exit_code",
            "Exit code of the last round: 0 success, 1 no result, 3 peer or network, 4 this machine, 130 interrupted.",
            f64::from(told.verdict.exit_code()),
        )?;
        let help = "End of the last round that succeeded, Unix time; 0 before the first.";
        gauge(LAST_SUCCESS, help, self.last_success)?;
        let Some(round) = &told.round else { return TextEncoder::new().encode_to_string(&registry.gather()) };
        gauge(
            "lastmile_round_duration_seconds",
            "Duration of the last round's measurement.",
            round.cost.seconds,
        )?;
        if let Some(rtt) = round.rtt {
            gauge("lastmile_round_trip_seconds", "Round-trip time before the measurement.", rtt)?;
        }
        let mut rates: HashMap<String, GaugeVec> = HashMap::new();
        for row in &round.rows {
            for (name, help, bps) in numbers(row) {
                let known = rates.contains_key(&name);
                if !known {
                    let vec = GaugeVec::new(Opts::new(&name, help), &["direction", "method"])?;
                    registry.register(Box::new(vec.clone()))?;
                    rates.insert(name.clone(), vec);
                }
                let direction = row.direction.to_string();
                rates[&name].with_label_values(&[direction.as_str(), &row.asked]).set(bps as f64 / 8.0);
            }
        }
        TextEncoder::new().encode_to_string(&registry.gather())
    }
}

/// The rates of a row in bit/s, with the name and the help of their metrics.
fn numbers(row: &Row) -> Vec<(String, String, u64)> {
    let Some(quantity) = row.quantity else { return Vec::new() };
    let what = quantity.to_string();
    let all = [
        ("", "estimate", row.rate_bps),
        ("_low", "lower end of the 90 % interval", row.interval.map(|interval| interval.low_bps)),
        ("_high", "upper end of the 90 % interval", row.interval.map(|interval| interval.high_bps)),
        ("_more_than", "lower bound on a path that these hosts cannot time", row.more_than_bps),
    ];
    let named = |(suffix, help, bps): (&str, &str, Option<u64>)| {
        let name = format!("lastmile_{}{suffix}_bytes_per_second", super::snake(quantity));
        Some((name, format!("Path's {what} in IP bytes, {help}."), bps?))
    };
    all.into_iter().filter_map(named).collect()
}

/// The time of the last success to this host in an earlier file.
fn last_success(text: &str, host: &str) -> Option<f64> {
    let escaped = host.replace('\\', "\\\\").replace('"', "\\\"");
    let start = format!("{LAST_SUCCESS}{{host=\"{escaped}\"}} ");
    text.lines().find_map(|line| line.strip_prefix(&start)?.trim().parse().ok())
}
