//! A recorded endpoint done again, whatever its role.

use anyhow::anyhow;
use lastmile::Key;
use lastmile::endpoint::{Decision, Endpoint, Event};
use lastmile::node::{Node, Output};
use lastmile::time::Time;
use lastmile_net::recording::{Entry, Header, Reader, RecordingError};

use crate::roles;
use crate::shell::exit::Exit;

/// A session done again in virtual time.
pub(crate) struct Replayed {
    /// The recording's first line.
    pub(crate) header: Header,
    /// Decisions of the recording.
    pub(crate) recorded: Vec<Event>,
    /// Decisions of the replay.
    pub(crate) events: Vec<Event>,
    /// Other records of the role, in its own form.
    pub(crate) records: Vec<serde_json::Value>,
    /// Place where the recording is cut, if it is.
    pub(crate) cut: Option<String>,
}

impl Replayed {
    /// First difference between the decisions as written, byte for byte. Decisions after the end of a recording that is cut are
    /// no difference.
    pub(crate) fn difference(&self) -> anyhow::Result<Option<String>> {
        let line = |event: Option<&Event>| match event {
            Some(event) => serde_json::to_string(event),
            None => Ok("nothing".to_owned()),
        };
        let decisions = match self.cut {
            Some(_) => self.recorded.len(),
            None => self.recorded.len().max(self.events.len()),
        };
        for i in 0..decisions {
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
        // A file that is not even an event file fails here, with the place of the error.
        reader.next_entry().map_err(usage)?;
        return Err(Exit::Usage.blame(anyhow!(
            "this is an event file, not a recording: it has decisions and no inputs to replay"
        )));
    };
    let mut endpoint = roles::endpoint(&header, key)?;
    let (recorded, events, records) = (Vec::new(), Vec::new(), Vec::new());
    let mut replayed = Replayed { header, recorded, events, records, cut: None };
    while let Some(entry) = reader.next_entry().map_err(usage)? {
        match entry {
            Entry::Input { now, input } => {
                endpoint.handle(now, input);
                drain(&mut *endpoint, now, &mut replayed.events);
            }
            Entry::Event(event) => replayed.recorded.push(event),
            Entry::Record(record) => replayed.records.push(record),
        }
    }
    replayed.cut = reader.cut().map(str::to_owned);
    // The node's number comes from the recorded run: the replay has one node.
    if let Some(node) = replayed.recorded.first().map(|event| event.node) {
        replayed.events.iter_mut().for_each(|event| event.node = node);
    }
    Ok(replayed)
}

fn drain(endpoint: &mut dyn Endpoint<Event = Decision>, now: Time, events: &mut Vec<Event>) {
    loop {
        match endpoint.poll(now) {
            Output::Event(what) => {
                events.push(Event { at: now, node: 0, seq: events.len() as u64, what });
            }
            Output::Transmit(_) => {}
            Output::Wait(_) => return,
        }
    }
}
