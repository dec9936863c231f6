//! What the program has of each role: how its endpoints are recorded and built again, its cases in `conformance`, and what
//! it shows of a run.

use std::any::Any;

use anyhow::anyhow;
use lastmile::endpoint::AnyEndpoint;
use lastmile::endpoint::measure::Key;
use lastmile::report::Direction;
use lastmile::time::Span;
use lastmile_net::recording::{Header, World};
use lastmile_sim::roles::Found;
use lastmile_sim::scenario::Scenario;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::exit::Exit;

mod loopback;
pub(crate) use loopback::Buffer;

// The list of roles, which is these lines. The first is what recordings hold that name none.
pub(crate) mod measure;
mod stream;
const ROLES: &[Role] = &[measure::ROLE, stream::ROLE];

/// What the program asks of a role.
struct Role {
    /// What its recordings call it.
    name: &'static str,
    /// What it shows of a run.
    shown: fn(&Scenario, &Found) -> Shown,
    /// Makes the first line of a recording of one of its endpoints.
    header: fn(&Scenario, Recorded) -> HeaderOf,
    /// The recorded endpoint, as it was at its start.
    endpoint: fn(&Header, Option<Key>) -> anyhow::Result<AnyEndpoint>,
    /// What `conformance` runs of it, brief or in full.
    cases: fn(bool) -> Vec<Case>,
}

/// What one role shows: its key, its rows, and these as a table; nothing where it had nothing to do.
pub(crate) struct Shown {
    pub(crate) key: &'static str,
    pub(crate) rows: Value,
    pub(crate) table: Option<String>,
    /// The exit code that these deserve, where success is not it.
    pub(crate) exit: Option<Exit>,
}

/// What a recording needs to know before the run.
#[derive(Clone, Copy)]
pub(crate) struct Recorded {
    pub(crate) world: World,
    /// Uncertainty of stamps beyond their resolution.
    pub(crate) noise: Span,
    /// Seeds what the methods draw.
    pub(crate) method_seed: u64,
}

/// The first line of an endpoint's recording, from all that determines the endpoint, if that is of its role.
type HeaderOf = Box<dyn FnOnce(&dyn Any) -> Option<anyhow::Result<Header>> + Send>;

/// A row of `conformance`, in each world.
pub(crate) struct Case {
    pub(crate) kind: &'static str,
    pub(crate) name: &'static str,
    pub(crate) direction: Direction,
    /// The role's table in a scenario whose hosts are `sender` and `receiver`.
    pub(crate) table: String,
    /// Which endpoint is recorded, in the order of the scenario's tables.
    pub(crate) which: usize,
    /// The same over loopback sockets.
    pub(crate) over_loopback: Box<dyn Fn() -> anyhow::Result<Buffer>>,
}

/// What all roles show.
pub(crate) fn shown(scenario: &Scenario, found: &Found) -> Vec<Shown> {
    ROLES.iter().map(|role| (role.shown)(scenario, found)).collect()
}

/// What makes the first line of a recording, of an endpoint of whatever role.
pub(crate) fn header(
    scenario: &Scenario,
    what: Recorded,
) -> impl FnOnce(&dyn Any) -> anyhow::Result<Header> + Send + use<> {
    let all: Vec<HeaderOf> = ROLES.iter().map(|role| (role.header)(scenario, what)).collect();
    move |config| {
        let header = all.into_iter().find_map(|header| header(config));
        header.unwrap_or_else(|| Err(anyhow!("endpoints of this kind cannot be recorded")))
    }
}

/// The endpoint of a recording, as it was at its start.
pub(crate) fn endpoint(header: &Header, key: Option<Key>) -> anyhow::Result<AnyEndpoint> {
    let role = match header.role.as_str() {
        "" => ROLES.first(),
        name => ROLES.iter().find(|role| role.name == name),
    };
    let unknown =
        || Exit::Usage.blame(anyhow!("the recording is of a {:?}, which is unknown here", header.role));
    (role.ok_or_else(unknown)?.endpoint)(header, key)
}

/// A recording's configuration, in its role's form.
fn recorded<T: DeserializeOwned>(header: &Header) -> anyhow::Result<T> {
    serde_json::from_value(header.config.clone())
        .map_err(|error| Exit::Usage.blame(anyhow!("the recording's configuration: {error}")))
}

/// What `conformance` runs, of all roles.
pub(crate) fn cases(full: bool) -> Vec<Case> {
    ROLES.iter().flat_map(|role| (role.cases)(full)).collect()
}
