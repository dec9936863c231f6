//! What the lab has of each role: which packets its endpoints recorded one by one, and what its results would have been had
//! these come otherwise.

use lastmile::report::StreamRecord;
use lastmile_sim::roles::{Make, Running};
use lastmile_sim::runs::RunError;
use lastmile_sim::scenario::Scenario;

// The list of roles that record their packets, which is these lines.
pub(super) mod measure;
const ROLES: &[Role] = &[measure::told];

/// What one role's endpoints recorded in a run.
type Role = for<'a> fn(&'a Scenario, &Running, Make<'a>) -> Vec<(Told<'a>, Vec<StreamRecord>)>;

/// A conversation whose packets are recorded one by one.
pub(super) struct Told<'a> {
    /// The host that begins it, and the one that is talked to.
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) ipv6: bool,
    /// How far its results are from each other with these records and with those.
    pub(super) moved: Box<Moved<'a>>,
}

/// A share of what was found, and both results in words.
pub(super) type Moved<'a> = dyn Fn(&[StreamRecord], &[StreamRecord]) -> Result<(f64, String), RunError> + 'a;

/// What all roles' endpoints recorded.
pub(super) fn told<'a>(
    scenario: &'a Scenario,
    running: &Running,
    make: Make<'a>,
) -> (Vec<Told<'a>>, Vec<Vec<StreamRecord>>) {
    ROLES.iter().flat_map(|role| role(scenario, running, make)).unzip()
}
