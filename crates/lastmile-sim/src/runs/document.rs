//! The JSON document of a run, alike in whatever world it ran.

use lastmile::time::Time;
use serde_json::{Map, Value, json};

use super::SimulatedRun;
use crate::monitor::accounting::NetworkOutcome;
use crate::roles::Found;
use crate::scenario::Scenario;

/// The endpoints' results, role by role, and those of the scenario's traffic beside; each world adds what it alone has.
pub fn document(
    world: &str,
    (scenario, seed): (&Scenario, u64),
    found: &Found,
    network: &NetworkOutcome,
) -> Map<String, Value> {
    let mut all = Map::new();
    all.insert("schema".into(), json!(lastmile::SCHEMA));
    all.insert("world".into(), json!(world));
    all.insert("scenario".into(), json!(scenario.name));
    all.insert("seed".into(), json!(seed));
    found.rows().into_iter().for_each(|rows| rows.put_into(&mut all));
    if let Value::Object(network) = json!(network) {
        all.extend(network);
    }
    all
}

impl SimulatedRun {
    /// The document that `lastmile sim --json` prints of it; `docs/json.md` says what stands there.
    ///
    /// ```
    /// let path = lastmile_sim::scenario::builtin("path").unwrap();
    /// let document = path.run(1)?.json(&path, 1);
    /// assert!(document["results"][0]["rate_bps"].is_u64());
    /// # Ok::<(), lastmile_sim::runs::RunError>(())
    /// ```
    pub fn json(&self, scenario: &Scenario, seed: u64) -> Map<String, Value> {
        let mut all = document("sim", (scenario, seed), &self.found, &self.network);
        let lasted = self.engine.now() - Time::ZERO;
        all.insert("simulated_seconds".into(), json!(lasted.as_secs_f64()));
        all.insert("interrupted".into(), json!(self.stopped));
        all
    }
}
