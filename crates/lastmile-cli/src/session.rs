//! What a recording keeps of a session, so that its prober can be built again.

use std::net::SocketAddr;

use anyhow::anyhow;
use lastmile::endpoint::Event;
use lastmile::endpoint::measure::{Decision, Key, Measurement, PacketSink, Prober, ProberConfig};
use lastmile::node::{Flow, Node, Output};
use lastmile::options::Choice;
use lastmile::report::{Direction, StreamRecord};
use lastmile::time::{Epoch, Span, Time};
use lastmile::units::Bytes;
use lastmile_net::recording::{Entry, Header, Reader, RecordingError, World};
use serde::{Deserialize, Serialize};

use crate::exit::Exit;
use crate::options;

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

/// How recordings name a method: by a text with its options, or before those, by a table with a key for each option that
/// there was.
#[derive(Deserialize)]
#[serde(untagged)]
enum MeasuredForm {
    Choice(Choice),
    Table(serde_json::Map<String, serde_json::Value>),
}

impl From<MeasuredForm> for Measured {
    fn from(form: MeasuredForm) -> Measured {
        use serde_json::Value;
        let table = match form {
            MeasuredForm::Choice(choice) => return choice.into(),
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
        Measured { choice, label }
    }
}

/// All that determines a prober beside its key, its seed and its epoch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) peer: SocketAddr,
    /// Whether it had a key; the key itself is never written.
    pub(crate) keyed: bool,
    pub(crate) max_bytes: Option<Bytes>,
    pub(crate) max_time: Option<Span>,
    pub(crate) start: Time,
    pub(crate) resolution: Span,
    pub(crate) dscp: u8,
    pub(crate) flow: Flow,
    /// Uncertainty of stamps beyond their resolution.
    pub(crate) noise: Span,
    /// Seeds what the methods draw.
    pub(crate) method_seed: u64,
    pub(crate) measurements: Vec<(Direction, Measured)>,
}

impl Session {
    /// The session of a prober with that configuration.
    pub(crate) fn of(
        config: &ProberConfig,
        noise: Span,
        method_seed: u64,
        measurements: Vec<(Direction, Measured)>,
    ) -> Session {
        Session {
            peer: config.peer,
            keyed: config.key.is_some(),
            max_bytes: config.max_bytes,
            max_time: config.max_time,
            start: config.start,
            resolution: config.resolution,
            dscp: config.dscp,
            flow: config.flow,
            noise,
            method_seed,
            measurements,
        }
    }

    /// The first line of its recording.
    pub(crate) fn header(&self, world: World, config: &ProberConfig) -> anyhow::Result<Header> {
        let role = "measure".to_owned();
        Ok(Header {
            world,
            role,
            seed: config.seed,
            epoch: config.epoch,
            config: serde_json::to_value(self)?,
        })
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

    fn config(&self, key: Option<Key>, seed: [u8; 32], epoch: Epoch) -> ProberConfig {
        ProberConfig {
            key,
            epoch,
            max_bytes: self.max_bytes,
            max_time: self.max_time,
            start: self.start,
            resolution: self.resolution,
            dscp: self.dscp,
            flow: self.flow,
            ..ProberConfig::new(self.peer, seed)
        }
    }
}

/// A session done again in virtual time.
pub(crate) struct Replayed {
    /// What the recording says was decided.
    pub(crate) recorded: Vec<Event>,
    /// What is decided now.
    pub(crate) events: Vec<Event>,
    /// The streams that the recording holds.
    pub(crate) streams: Vec<StreamRecord>,
}

impl Replayed {
    /// Where the decisions differ first, if they do: as written, byte for byte.
    pub(crate) fn difference(&self) -> anyhow::Result<Option<String>> {
        let line = |event: Option<&Event>| match event {
            Some(event) => serde_json::to_string(event),
            None => Ok("nothing".to_owned()),
        };
        for i in 0..self.recorded.len().max(self.events.len()) {
            let (then, now) = (line(self.recorded.get(i))?, line(self.events.get(i))?);
            if then != now {
                return Ok(Some(format!("decision {}: then {then}, now {now}", i + 1)));
            }
        }
        Ok(None)
    }
}

/// Does a recorded session again: the same inputs at the same times.
pub(crate) fn replay<R: std::io::BufRead>(
    mut reader: Reader<R>,
    key: Option<Key>,
) -> anyhow::Result<Replayed> {
    let usage = |error: RecordingError| Exit::Usage.blame(error);
    let Some(header) = reader.header().cloned() else {
        // What is not even an event file is said to be broken where it is.
        reader.next_entry().map_err(usage)?;
        return Err(Exit::Usage.blame(anyhow!(
            "this is an event file, not a recording: it has decisions and no inputs to replay"
        )));
    };
    let session: Session = serde_json::from_value(header.config.clone())
        .map_err(|error| Exit::Usage.blame(anyhow!("the recording's configuration: {error}")))?;
    if session.keyed && key.is_none() {
        return Err(Exit::Usage.blame(anyhow!("the recorded session had a key: give it with --key-file")));
    }
    let config = session.config(key, header.seed, header.epoch);
    let mut prober = Prober::new(config, session.measurements()?);
    let mut replayed = Replayed { recorded: Vec::new(), events: Vec::new(), streams: Vec::new() };
    while let Some(entry) = reader.next_entry().map_err(usage)? {
        match entry {
            Entry::Input { now, input } => {
                prober.handle(now, input);
                drain(&mut prober, now, &mut replayed.events);
            }
            Entry::Event(event) => replayed.recorded.push(event),
            Entry::Record(record) => {
                let record = serde_json::from_value(record);
                let bad = |error| Exit::Usage.blame(anyhow!("the recording's streams: {error}"));
                replayed.streams.push(record.map_err(bad)?);
            }
        }
    }
    // Which node it was in its run is the run's business.
    if let Some(node) = replayed.recorded.first().map(|event| event.node) {
        replayed.events.iter_mut().for_each(|event| event.node = node);
    }
    Ok(replayed)
}

fn drain<S: PacketSink>(prober: &mut Prober<S>, now: Time, events: &mut Vec<Event>) {
    loop {
        match prober.poll(now) {
            Output::Event(what) => {
                let what = Decision::into(what);
                events.push(Event { at: now, node: 0, seq: events.len() as u64, what });
            }
            Output::Transmit(_) => {}
            Output::Wait(_) => return,
        }
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
            "wbest(capacity=1500000 bit/s, classifier=spike, faithful=true, packet_size=700, trains=4)";
        assert_eq!(older.choice.to_string(), options);
        assert!(options::estimator(&older.choice, Span::ZERO, 0).is_ok());
        let older = read(r#"{"method":"capprobe","trains":1,"faithful":false}"#);
        assert_eq!(older.choice.to_string(), "capprobe");
    }
}
