//! Measuring: probers and reflectors of `[[measure]]`, and their results beside the truth.

use lastmile::endpoint::measure::Row;
use lastmile::units::Bytes;
use lastmile::wire::private::StreamTag;
use serde_json::{Map, Value, json};

use super::{Ended, Placed, Role, Rows};
use crate::scenario::roles::measure::Measuring;
use crate::scenario::{RunError, Scenario, Simulation};

mod disturbed;
mod outcome;
mod session;
mod truth;

pub use outcome::Outcome;
pub use session::{Make, Running};
pub use truth::Truth;

/// Size of the packets that truths are stated for, unless a stream says otherwise: a WBest probe.
pub const PROBE_SIZE: Bytes = Bytes(1488);

impl Role for Measuring {
    type Make = Make;
    type Running = session::Running;
    type Found = Found;
    const KEY: &'static str = "results";
    const ROW: &'static str = "result";

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

    fn beside(found: &Found) -> Map<String, Value> {
        rows(&found.rows()).beside
    }

    fn records(found: &Found, number: u32) -> Vec<Value> {
        let own = found.records.iter().filter(|(session, _)| *session == number);
        own.flat_map(|(_, records)| records).filter_map(|record| serde_json::to_value(record).ok()).collect()
    }

    fn probe(udp: &[u8]) -> Option<(u32, u16)> {
        read_probe(udp)
    }
}

/// Results of all measurements of a run.
#[derive(Debug, Default)]
pub struct Found {
    /// Outcomes, session by session; without truths in a run that was stopped.
    pub outcomes: Vec<Outcome>,
    /// The streams of each session, with the number of its initiator.
    pub records: Vec<(u32, Vec<lastmile::report::StreamRecord>)>,
}

/// Results as a run's document has them, whether they are a simulation's or a real network's.
pub fn rows(rows: &[Row]) -> Rows {
    let beside = Map::from_iter([("options".to_owned(), json!(Row::options(rows)))]);
    Rows {
        key: Measuring::KEY,
        row: Measuring::ROW,
        rows: rows.iter().map(|row| json!(row)).collect(),
        beside,
    }
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
