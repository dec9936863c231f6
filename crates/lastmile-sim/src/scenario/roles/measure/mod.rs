//! Measuring in scenario files: `[[measure]]`, read and checked, and the sessions that it makes.

use lastmile::estimate::{AllConfig, Conditions, build};
use lastmile::options::{Choice, ChoiceError, Given};
use lastmile::report::Direction;
use lastmile::time::{Span, Time};
use serde::Deserialize;
use toml::Spanned;
use toml::de::DeValue;

use super::{Conversation, Tables};
use crate::scenario::Scenario;
use crate::scenario::check::{Check, Checked};
use crate::scenario::error::ScenarioFile;
use crate::text;

mod options;
mod sessions;

pub use sessions::{REFLECTOR_PORT, SessionSpec, sessions};

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
    #[serde(default, deserialize_with = "text::not_negative")]
    start_within: Span,
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

/// Direction of a measurement.
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

impl MeasureDirection {
    /// The directions of single measurements, in order.
    pub fn each(self) -> &'static [Direction] {
        match self {
            MeasureDirection::Forward => &[Direction::Forward],
            MeasureDirection::Reverse => &[Direction::Reverse],
            MeasureDirection::RoundTrip => &[Direction::RoundTrip],
            MeasureDirection::Both => &[Direction::Forward, Direction::Reverse],
        }
    }
}

/// A measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasureSpec {
    /// The initiating host.
    pub from: usize,
    /// The reflecting host.
    pub to: usize,
    /// The method's registered name or `all`, and the options given to it.
    pub method: Choice,
    /// Its direction.
    pub direction: MeasureDirection,
    /// When it begins, at the earliest.
    pub start: Time,
    /// It begins at a random time within so long.
    pub start_within: Span,
    /// True if the lab's endpoints ask for real-time priority.
    pub realtime: bool,
    /// True if its packets are IPv6.
    pub ipv6: bool,
}

/// A `[[measure]]` table, checked.
pub type Spec = MeasureSpec;

/// The role.
pub(crate) struct Measuring;

impl Tables for Measuring {
    type Raw = RawMeasure;
    type Spec = MeasureSpec;

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
            let expanded = AllConfig::expand(&method, raw.direction.each()).map_err(blamed)?;
            for (_, method) in &expanded.measured {
                build(method, &Conditions::default()).map_err(blamed)?;
            }
            let start = raw.start.unwrap_or(scenario.warm_up);
            let path = format!("{own}.start");
            check.ensure(start < scenario.duration, || (&path, "starts after the run's end"))?;
            check.ensure(start + raw.start_within <= scenario.duration, || {
                (format!("{own}.start_within"), "may start only after the run's end")
            })?;
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
                start_within: raw.start_within,
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
}
