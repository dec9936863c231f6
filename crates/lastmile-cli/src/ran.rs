//! [`Ran`]: what a run of a scenario gave, printed alike whatever the world it ran in.

use lastmile_sim::roles::measure::Outcome;
use lastmile_sim::runs::accounting::{LinkOutcome, NetworkOutcome};
use lastmile_sim::runs::flows::{FlowOutcome, as_rate};
use serde_json::{Map, Value, json};

use crate::exit::Exit;
use crate::result::{Row, exit, table};
use crate::table::Table;

/// What was measured, and what the scenario's own traffic got beside.
pub(crate) struct Ran<'a> {
    rows: Vec<Row>,
    network: &'a NetworkOutcome,
}

impl<'a> Ran<'a> {
    pub(crate) fn new(outcomes: &[Outcome], network: &'a NetworkOutcome) -> Ran<'a> {
        Ran { rows: outcomes.iter().filter_map(Row::of_outcome).collect(), network }
    }

    /// How the measurements ended, where there were any.
    pub(crate) fn exit(&self, any: bool) -> Option<Exit> {
        if any { exit(&self.rows) } else { None }
    }

    /// The document of `--json`, to which each world adds what it alone has.
    pub(crate) fn json(&self, world: &str, scenario: &str, seed: u64) -> anyhow::Result<Map<String, Value>> {
        let mut all = Map::new();
        all.insert("world".into(), json!(world));
        all.insert("scenario".into(), json!(scenario));
        all.insert("seed".into(), json!(seed));
        all.insert("results".into(), serde_json::to_value(&self.rows)?);
        if let Value::Object(network) = serde_json::to_value(self.network)? {
            all.extend(network);
        }
        Ok(all)
    }

    /// The tables for people.
    pub(crate) fn say(&self) {
        if !self.rows.is_empty() {
            crate::say(table(&self.rows).trim_end());
        }
        if !self.network.flows.is_empty() {
            crate::say(flow_table(&self.network.flows).trim_end());
        }
        if self.rows.is_empty() && self.network.flows.is_empty() {
            crate::say(link_table(&self.network.links).trim_end());
        }
    }
}

/// What the links carried, where there was no traffic.
fn link_table(links: &[LinkOutcome]) -> String {
    let mut table = Table::new(&["link from", "to", ">packets", ">dropped"]);
    for link in links {
        table.row([link.from.clone(), link.to.clone(), link.packets.to_string(), link.dropped.to_string()]);
    }
    table.text()
}

/// What the scenario's traffic got.
fn flow_table(flows: &[FlowOutcome]) -> String {
    let columns =
        ["flow", "kind", "from", "to", ">goodput (IP)", ">sent", ">received", "lost", ">delay", ">longest"];
    let mut table = Table::new(&columns);
    let milliseconds =
        |seconds: Option<f64>| seconds.map_or_else(|| "-".to_owned(), |s| format!("{:.2} ms", s * 1e3));
    for flow in flows {
        let lost: Vec<_> = flow.lost.iter().map(|(cause, packets)| format!("{packets} {cause}")).collect();
        table.row([
            flow.flow.clone(),
            flow.kind.to_owned(),
            flow.from.clone(),
            flow.to.clone(),
            flow.goodput_bps.map_or_else(|| "-".to_owned(), |bps| as_rate(bps).to_string()),
            flow.sent.to_string(),
            flow.received.to_string(),
            if lost.is_empty() { "-".to_owned() } else { lost.join(", ") },
            milliseconds(flow.delay_mean_s),
            milliseconds(flow.delay_max_s),
        ]);
    }
    table.text()
}
