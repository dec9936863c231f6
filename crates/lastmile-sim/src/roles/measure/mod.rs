//! Measuring: `[[measure]]`, probers and reflectors, and what was found beside the truth.

use lastmile::endpoint::measure::Row;
use lastmile::estimate::{Conditions, build};
use lastmile::options::{Choice, ChoiceError, Given};
use lastmile::time::{Span, Time};
use lastmile::units::Bytes;
use lastmile::wire::private::StreamTag;
use serde::Deserialize;
use serde_json::{Value, json};
use toml::Spanned;
use toml::de::DeValue;

use super::{Conversation, Ended, Placed, Role, Rows};
use crate::scenario::check::{Check, Checked};
use crate::scenario::error::ScenarioFile;
use crate::scenario::{RunError, Scenario, Simulation, TrafficSpec};
use crate::text;

mod options;
mod outcome;
mod session;

pub use outcome::{Outcome, Truth};
pub use session::{Make, REFLECTOR_PORT, Running, SessionSpec, sessions};

/// Size of the packets that truths are stated for, unless a stream says otherwise: a WBest probe.
pub const PROBE_SIZE: Bytes = Bytes(1488);

/// Measurements that `every` may make of a scenario's.
const MAX_REPETITIONS: u64 = 1_000;

/// A `[[measure]]` table as it is read.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct RawMeasure {
    from: String,
    to: String,
    method: String,
    #[serde(default)]
    direction: MeasureDirection,
    #[serde(default, deserialize_with = "text::some_not_negative")]
    start: Option<Span>,
    #[serde(default, deserialize_with = "text::some_positive")]
    every: Option<Span>,
    #[serde(default)]
    realtime: bool,
    #[serde(default)]
    ipv6: bool,
    /// All other keys.
    #[serde(skip)]
    options: Given,
}

/// Which way a measurement looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeasureDirection {
    /// From the initiator to the reflector.
    Forward,
    /// From the reflector to the initiator.
    Reverse,
    /// One after the other.
    #[default]
    Both,
    /// There and back, by replies: all that a plain STAMP reflector can do.
    RoundTrip,
}

/// A measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasureSpec {
    /// The initiating host.
    pub from: usize,
    /// The reflecting host.
    pub to: usize,
    /// The method's registered name, and the options given to it.
    pub method: Choice,
    /// Which way.
    pub direction: MeasureDirection,
    /// When it begins.
    pub start: Time,
    /// Whether the lab's endpoints ask for real-time priority.
    pub realtime: bool,
    /// Whether its packets are IPv6.
    pub ipv6: bool,
}

/// A `[[measure]]` table, checked.
pub type Spec = MeasureSpec;

/// The role.
pub(crate) struct Measuring;

impl Role for Measuring {
    type Raw = RawMeasure;
    type Spec = MeasureSpec;
    type Make = Make;
    type Running = session::Running;
    type Found = Found;
    const KEY: &'static str = "results";
    const ROW: &'static str = "result";

    fn read(file: &ScenarioFile<'_>, index: usize, table: Spanned<DeValue<'_>>) -> Checked<RawMeasure> {
        options::read(file, index, table)
    }

    fn check(check: &Check<'_>, raw: &[RawMeasure], scenario: &Scenario) -> Checked<Vec<MeasureSpec>> {
        let mut measures: Vec<MeasureSpec> = Vec::new();
        for (index, raw) in raw.iter().enumerate() {
            let own = format!("measure[{index}]");
            let (from, to) = check.ends(scenario, &own, (&raw.from, &raw.to), true)?;
            let blamed = |error: ChoiceError| options::blame(check, index, &raw.options, &error);
            let method: Result<Choice, _> = raw.method.parse();
            let mut method = method.map_err(|error| blamed(error.into()))?;
            method.options.extend(raw.options.clone());
            build(&method, &Conditions::default()).map_err(blamed)?;
            let start = raw.start.unwrap_or(scenario.warm_up);
            let path = format!("{own}.start");
            check.ensure(start < scenario.duration, || (&path, "starts after the run's end"))?;
            // One session, one start: in both worlds its measurements follow one another.
            let session = measures.iter().find(|m| (m.from, m.to, m.ipv6) == (from, to, raw.ipv6));
            let first = session.map_or(Time::ZERO + start, |first| first.start);
            check.ensure(raw.start.is_none() || Time::ZERO + start == first, || {
                let first = first - Time::ZERO;
                let order =
                    "measurements between the same hosts follow one another from the first one's start";
                (path, format!("{order}, {first}: leave it out or give that"))
            })?;
            let start = first;
            let spec = MeasureSpec {
                from,
                to,
                method,
                direction: raw.direction,
                start,
                realtime: raw.realtime,
                ipv6: raw.ipv6,
            };
            let Some(step) = raw.every else {
                measures.push(spec);
                continue;
            };
            let end = Time::ZERO + scenario.duration;
            let times = (end - start).as_nanos().unsigned_abs().div_ceil(step.as_nanos().unsigned_abs());
            check.ensure(measures.len() as u64 + times <= MAX_REPETITIONS, || {
                (format!("{own}.every"), format!("more than {MAX_REPETITIONS} measurements in the run"))
            })?;
            // Each is a session of its own.
            let at = |turn: u64| start + step * turn as i64;
            measures.extend((0..times).map(|turn| MeasureSpec { start: at(turn), ..spec.clone() }));
        }
        Ok(measures)
    }

    fn conversations(scenario: &Scenario) -> Vec<Conversation> {
        sessions(scenario).iter().map(SessionSpec::conversation).collect()
    }

    fn load(_scenario: &Scenario) -> Vec<TrafficSpec> {
        // The truth of a measurement leaves its own packets out.
        Vec::new()
    }

    fn plan(
        scenario: &Scenario,
        seed: u64,
        make: &Make,
    ) -> Result<(Vec<Placed>, session::Running), RunError> {
        session::plan(scenario, seed, make)
    }

    fn attach(running: &mut session::Running, scenario: &Scenario, simulation: &mut Simulation) {
        running.attach(scenario, simulation);
    }

    fn found(running: session::Running, ended: &Ended<'_>) -> Result<Found, RunError> {
        running.found(ended)
    }

    fn rows(found: &Found) -> Vec<Value> {
        rows(&found.rows()).rows
    }

    fn records(found: &Found, number: u32) -> Vec<Value> {
        let own = found.records.iter().filter(|(session, _)| *session == number);
        own.flat_map(|(_, records)| records).filter_map(|record| serde_json::to_value(record).ok()).collect()
    }

    fn probe(udp: &[u8]) -> Option<(u32, u16)> {
        read_probe(udp)
    }
}

/// What all measurements of a run gave.
#[derive(Debug, Default)]
pub struct Found {
    /// What was found, session by session; without any truth in a run that was stopped.
    pub outcomes: Vec<Outcome>,
    /// The streams of each session, with the number of its initiator.
    pub records: Vec<(u32, Vec<lastmile::report::StreamRecord>)>,
}

/// Results as a run's document has them, whether they are a simulation's or a real network's.
pub fn rows(rows: &[Row]) -> Rows {
    Rows { key: Measuring::KEY, row: Measuring::ROW, rows: rows.iter().map(|row| json!(row)).collect() }
}

impl Found {
    /// The outcomes as rows.
    pub fn rows(&self) -> Vec<Row> {
        self.outcomes.iter().filter_map(Outcome::row).collect()
    }
}

/// Reads stream and index of a probe; packets that are sent only to pay belong to no stream.
fn read_probe(udp: &[u8]) -> Option<(u32, u16)> {
    StreamTag::find(udp).filter(|tag| tag.stream != 0).map(|tag| (tag.stream, tag.index))
}
