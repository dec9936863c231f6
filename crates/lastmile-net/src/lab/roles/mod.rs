//! What the lab has of each role: which packets its endpoints recorded one by one, and what its results would have been had
//! these come otherwise.

use lastmile::node::Datagram;
use lastmile::report::StreamRecord;
use lastmile_sim::roles::{Makers, Running};
use lastmile_sim::runs::RunError;
use lastmile_sim::scenario::Scenario;

// The list of roles that record their packets, which is these lines.
pub(super) mod measure;
const ROLES: &[Role] = &[Role { told: measure::told, is_timed: measure::is_timed }];

/// What the lab asks of a role.
struct Role {
    /// What its endpoints recorded in a run of a scenario with a seed.
    told: for<'a> fn((&'a Scenario, u64), &Running, &'a Makers) -> AllTold<'a>,
    /// Whether a packet is of its endpoints, whose packets are timed one by one.
    is_timed: fn(&Datagram) -> bool,
}

/// Conversations with what was recorded of each.
type AllTold<'a> = Vec<(Told<'a>, Vec<StreamRecord>)>;

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

/// What all roles' endpoints recorded in a run of a scenario with a seed.
pub(super) fn told<'a>(
    run: (&'a Scenario, u64),
    running: &Running,
    make: &'a Makers,
) -> (Vec<Told<'a>>, Vec<Vec<StreamRecord>>) {
    ROLES.iter().flat_map(|role| (role.told)(run, running, make)).unzip()
}

/// Whether a packet is of endpoints whose packets are timed one by one, so that the lab had better not sleep.
pub(super) fn is_timed(datagram: &Datagram) -> bool {
    ROLES.iter().any(|role| (role.is_timed)(datagram))
}
