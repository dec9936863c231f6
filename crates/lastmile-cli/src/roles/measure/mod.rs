//! Measurements: how their probers are recorded and built again, and each method's and classifier's cases.

use std::any::Any;
use std::collections::BTreeSet;

use anyhow::anyhow;
use lastmile::classify;
use lastmile::endpoint::measure::{
    Cost, Decision, Each, Key, Limits, Measurement, Prober, ProberConfig, Reflector, ReflectorConfig, Row,
};
use lastmile::endpoint::{self, AnyEndpoint, Event, any};
use lastmile::estimate::{ALL, Estimate, METHODS, Outcome, replay as replay_streams};
use lastmile::options::Choice;
use lastmile::report::{Direction, StreamRecord};
use lastmile::time::Span;
use lastmile_net::recording::{Header, SharedRecorder, World};
use lastmile_sim::roles::measure;
use lastmile_sim::roles::{Found, Rows};
use lastmile_sim::scenario::Scenario;
use lastmile_sim::scenario::roles::measure::{MeasureSpec, sessions};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::loopback::{Buffer, Driven, loopback};
use super::{Case, HeaderOf, Recorded, Role, Shown, Told};
#[cfg(feature = "pages")]
use crate::roles::run::Run;
use crate::shell::exit::Exit;
use crate::shell::network::random_seed;
use crate::shell::options::{self, KERNEL_NOISE, MethodArgs};

mod all;
pub(crate) mod answer;
mod describe;
pub(crate) mod enough;
mod load;
pub(crate) mod monitor;
#[cfg(feature = "pages")]
mod plots;
pub(crate) mod result;
#[cfg(feature = "pages")]
mod section;
pub(crate) mod seen;

use lastmile_report::text::Text;
use result::{exit, table};

const NAME: &str = "measure";

/// The role.
pub(super) struct Measuring;

impl Role for Measuring {
    fn name(&self) -> &'static str {
        NAME
    }

    fn shown(&self, scenario: &Scenario, found: &Found) -> Shown {
        let rows = found.measure.rows();
        let exit = if scenario.roles.measure.is_empty() { None } else { exit(&rows) };
        let mut shown = Shown { text: text(&rows), exit };
        let moved = scenario.roles.measure.iter().map(|spec| (spec.from, spec.to));
        let moved: BTreeSet<_> = moved.filter(|&(from, to)| scenario.path_changes(from, to)).collect();
        for (from, to) in moved {
            let [from, to] = [from, to].map(|host| &scenario.hosts[host].name);
            shown.text.say(format!("{from} and {to}: no truth: the path between them changes in the run"));
        }
        shown
    }

    /// The first session of a scenario, once its prober's configuration is known.
    fn header(&self, scenario: &Scenario, what: Recorded) -> HeaderOf {
        let measured =
            |(spec, direction): &(MeasureSpec, Direction)| (*direction, spec.method.clone().into());
        let sessions = sessions(scenario);
        let measurements = sessions.first().map(|first| first.measures.iter().map(measured).collect());
        Box::new(move |config: &dyn Any| {
            let config = config.downcast_ref::<ProberConfig>()?;
            Some(RecordedSession::of(config, what.noise, what.method_seed, measurements?).header(what.world))
        })
    }

    fn endpoint(&self, header: &Header, key: Option<Key>) -> anyhow::Result<AnyEndpoint> {
        let session: RecordedSession = super::recorded(header)?;
        if session.keyed && key.is_none() {
            return Err(Exit::Usage.blame(anyhow!("the recorded session had a key: give it with --key-file")));
        }
        let measurements = session.measurements()?;
        let (seed, epoch) = (header.seed, header.epoch);
        Ok(any(Prober::new(ProberConfig { key, seed, epoch, ..session.prober }, measurements)))
    }

    /// Every name in every direction that it has, with its brief options or its defaults.
    fn cases(&self, full: bool) -> Vec<Case> {
        let case = |kind, name, method: Choice, direction: Direction| Case {
            kind,
            name,
            direction,
            table: format!(
                "[[measure]]\nfrom = \"sender\"\nto = \"receiver\"\nmethod = \"{method}\"\n\
                 direction = \"{direction}\"\nstart = \"100 ms\"\n"
            ),
            which: 0,
            over_loopback: Box::new(move || over_loopback(&method, direction)),
        };
        let mut cases = Vec::new();
        for method in METHODS.iter() {
            let mut choice = Choice::named(method.name);
            if !full {
                choice = method.brief.iter().fold(choice, |choice, (name, value)| choice.with(name, value));
            }
            let mut directions = vec![Direction::Forward, Direction::Reverse];
            if method.round_trip {
                directions.push(Direction::RoundTrip);
            }
            cases.extend(
                directions
                    .into_iter()
                    .map(|direction| case("method", method.name, choice.clone(), direction)),
            );
        }
        cases.extend(classify::CLASSIFIERS.iter().map(|lda| {
            let choice = Choice::named("wbest").with("classifier", lda.name);
            case("classifier", lda.name, choice, Direction::Forward)
        }));
        cases
    }

    fn replayed(&self, events: &[Event]) -> Option<(Rows, Shown)> {
        // The exit code is of the comparison with the recording: a recorded refusal is no failure.
        let rows = Row::all(events);
        Some((measure::rows(&rows), Shown { text: text(&rows), exit: None }))
    }

    fn by_method(
        &self,
        method: &MethodArgs,
        header: &Header,
        records: &[Value],
    ) -> Option<anyhow::Result<(Rows, Shown)>> {
        (!records.is_empty()).then(|| {
            let rows = by_method(method, header, records)?;
            Ok((measure::rows(&rows), Shown { text: text(&rows), exit: exit(&rows) }))
        })
    }

    fn lanes(&self) -> &'static [&'static str] {
        &describe::LANES
    }

    fn told(&self, what: &endpoint::Decision) -> Option<Told> {
        what.of().map(describe::told)
    }

    fn is_result(&self, what: &endpoint::Decision) -> bool {
        matches!(what.of(), Some(Decision::Estimated { .. } | Decision::Refused { .. }))
    }

    #[cfg(feature = "pages")]
    fn results(&self, run: &Run) -> String {
        section::section(run)
    }

    #[cfg(feature = "pages")]
    fn plots(&self, run: &Run) -> String {
        plots::section(run)
    }
}

/// Results as an answer and as a table of all numbers, where there are any.
fn text(rows: &[Row]) -> Text {
    let mut text = Text::default();
    if !rows.is_empty() {
        text.either(screen(rows, "", ""), table(rows));
    }
    text
}

/// Results in lines of 80 columns; see [`answer::answer`].
pub(crate) fn screen(rows: &[Row], peer: &str, beside: &str) -> String {
    if load::is_all(rows) { all::screen(rows, peer) + beside } else { answer::answer(rows, peer, beside) }
}

/// Runs a method on the streams of each direction that the recording holds.
fn by_method(args: &MethodArgs, header: &Header, records: &[Value]) -> anyhow::Result<Vec<Row>> {
    if args.choice().name == ALL {
        return Err(Exit::Usage
            .blame(anyhow!("--streams runs one method on recorded streams: name it instead of `{ALL}`")));
    }
    let session: RecordedSession = super::recorded(header)?;
    let recorded: Vec<StreamRecord> = records
        .iter()
        .map(StreamRecord::deserialize)
        .collect::<Result<_, _>>()
        .map_err(|error| Exit::Usage.blame(anyhow!("the recording's streams: {error}")))?;
    let mut rows = Vec::new();
    for direction in [Direction::Forward, Direction::Reverse, Direction::RoundTrip] {
        let streams: Vec<_> = recorded.iter().filter(|s| s.direction == direction).cloned().collect();
        if streams.is_empty() {
            continue;
        }
        let mut estimator = args.build(session.noise, session.method_seed)?;
        let (method, cost) = (args.choice().to_string(), Cost::default());
        let found = |estimate: Estimate| {
            Row::of(&Decision::Estimated { method: method.clone(), direction, estimate, cost })
        };
        match replay_streams(&mut *estimator, &streams) {
            Outcome::Found(estimates) => rows.extend(estimates.into_iter().filter_map(found)),
            Outcome::Refused(refusal) => {
                // As far as the recording goes.
                rows.extend(estimator.so_far().into_iter().filter_map(found));
                rows.extend(Row::of(&Decision::Refused { method: method.clone(), direction, refusal, cost }));
            }
        }
    }
    Ok(Row::said_once(rows))
}

fn over_loopback(method: &Choice, direction: Direction) -> anyhow::Result<Buffer> {
    let (reflectors, probers) = (random_seed()?, random_seed()?);
    let reflector = move |epoch| {
        let config =
            ReflectorConfig { epoch, limits: Limits::unlimited(), ..ReflectorConfig::new(reflectors) };
        Ok(Driven::unrecorded(any(Reflector::new(config))))
    };
    let buffer = Buffer::default();
    let prober = |peer, epoch| {
        let config = ProberConfig { epoch, ..ProberConfig::new(peer, probers) };
        let session = RecordedSession::of(&config, KERNEL_NOISE, 0, vec![(direction, method.clone().into())]);
        let recorder = SharedRecorder::new(buffer.clone(), &session.header(World::Real)?)?;
        let kept = recorder.clone();
        let keep = Each(move |record: &StreamRecord| kept.record(record));
        let prober = Prober::with_sink(config, session.measurements()?, keep);
        Ok(Driven { endpoint: any(prober), recorder: Some(recorder) })
    };
    loopback(reflector, prober)?;
    Ok(buffer)
}

/// A method with its options, and what events call it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(into = "Choice", from = "MeasuredForm")]
pub(crate) struct Measured {
    pub(crate) choice: Choice,
    label: String,
}

impl From<Choice> for Measured {
    fn from(choice: Choice) -> Measured {
        Measured { label: choice.to_string(), choice }
    }
}

impl From<Measured> for Choice {
    fn from(measured: Measured) -> Choice {
        measured.choice
    }
}

/// Names of a method in recordings: a text with its options, or in older recordings a table with a key for each option of
/// their time.
#[derive(Deserialize)]
#[serde(untagged)]
enum MeasuredForm {
    Choice(Choice),
    Table(serde_json::Map<String, serde_json::Value>),
}

impl From<MeasuredForm> for Measured {
    fn from(form: MeasuredForm) -> Measured {
        let table = match form {
            MeasuredForm::Choice(choice) => {
                return Measured { label: choice.to_string(), choice: with_units(choice) };
            }
            MeasuredForm::Table(table) => table,
        };
        let label = table.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut choice = Choice::named(&label);
        for (key, value) in table.iter().filter(|(key, _)| *key != "method") {
            let bare = match value {
                Value::Object(rate) => rate.get("bits_per_second").map(|bps| format!("{bps} bit/s")),
                // Of methods without trains these said one.
                Value::Number(one) if key == "trains" && one.as_u64() == Some(1) => None,
                Value::Number(number) => Some(number.to_string()),
                Value::String(text) => Some(text.clone()),
                Value::Bool(true) => Some("true".to_owned()),
                _ => None,
            };
            choice = bare.iter().fold(choice, |choice, value| choice.with(key, value));
        }
        Measured { choice: with_units(choice), label }
    }
}

/// The choice of a recording, with units.
fn with_units(choice: Choice) -> Choice {
    let method = METHODS.iter().find(|method| method.name == choice.name);
    super::with_units(choice, method.map_or(&[], |method| method.options))
}

/// All that determines a prober beside its key, its seed and its epoch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RecordedSession {
    #[serde(flatten)]
    prober: ProberConfig,
    /// True if the prober had a key; the key itself is never written.
    keyed: bool,
    /// Uncertainty of stamps beyond their resolution.
    noise: Span,
    /// Seed of the methods' random numbers.
    method_seed: u64,
    measurements: Vec<(Direction, Measured)>,
}

impl RecordedSession {
    /// The session of a prober with that configuration.
    pub(crate) fn of(
        config: &ProberConfig,
        noise: Span,
        method_seed: u64,
        measurements: Vec<(Direction, Measured)>,
    ) -> RecordedSession {
        let (prober, keyed) = (config.clone(), config.key.is_some());
        RecordedSession { prober, keyed, noise, method_seed, measurements }
    }

    /// The first line of its recording.
    pub(crate) fn header(&self, world: World) -> anyhow::Result<Header> {
        let ProberConfig { seed, epoch, .. } = self.prober;
        let config = serde_json::to_value(self)?;
        Ok(Header { world, role: NAME.to_owned(), seed, epoch, config })
    }

    /// The methods' state machines.
    pub(crate) fn measurements(&self) -> anyhow::Result<Vec<Measurement>> {
        let one = |(direction, measured): &(Direction, Measured)| {
            let estimator = options::estimator(&measured.choice, self.noise, self.method_seed)
                .map_err(|error| options::refused(&error))?;
            Ok(Measurement { method: measured.label.clone(), direction: *direction, estimator })
        };
        self.measurements.iter().map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_name_methods_by_a_text_and_older_ones_by_a_table() {
        let read = |text: &str| -> Measured { serde_json::from_str(text).unwrap() };
        let measured = read("\"wbest(trains=4)\"");
        assert_eq!((measured.label.as_str(), measured.choice.options.len()), ("wbest(trains=4)", 1));
        assert_eq!(serde_json::to_string(&measured).unwrap(), "\"wbest(trains=4)\"");
        let older = r#"{"method":"wbest","trains":4,"train_length":null,"packet_size":700,"conservative":false,
            "faithful":true,"classifier":"spike","capacity":{"bits_per_second":1500000,"layer":"ip"}}"#;
        let older = read(older);
        assert_eq!(older.label, "wbest");
        let options =
            "wbest(capacity=1500000 bit/s, classifier=spike, faithful=true, packet_size=700 B, trains=4)";
        assert_eq!(older.choice.to_string(), options);
        assert!(options::estimator(&older.choice, Span::ZERO, 0).is_ok());
        let older = read("\"wbest(packet_size=700)\"");
        assert_eq!(
            (older.label.as_str(), older.choice.to_string().as_str()),
            ("wbest(packet_size=700)", "wbest(packet_size=700 B)")
        );
        let older = read(r#"{"method":"capprobe","trains":1,"faithful":false}"#);
        assert_eq!(older.choice.to_string(), "capprobe");
    }
}
