//! The lab's part of each role: the packets that its endpoints recorded one by one, and its results if these had
//! come otherwise.

use lastmile::node::Datagram;
use lastmile::report::StreamRecord;
use lastmile_sim::roles::{Makers, Running};
use lastmile_sim::runs::RunError;
use lastmile_sim::scenario::Scenario;

// The list of roles that record their packets, which is these lines.
pub(super) mod measure;
const ROLES: &[Role] = &[Role { told: measure::told, is_timed: measure::is_timed }];

/// The lab's functions of a role.
struct Role {
    /// Records of its endpoints in a run of a scenario with a seed.
    told: for<'a> fn((&'a Scenario, u64), &Running, &'a Makers) -> AllTold<'a>,
    /// True if a packet is of its endpoints, which need every packet in time.
    is_timed: fn(&Datagram) -> bool,
}

/// Conversations with the records of each.
type AllTold<'a> = Vec<(Told<'a>, Vec<StreamRecord>)>;

/// A conversation whose packets are recorded one by one.
pub(super) struct Told<'a> {
    /// The host that begins it, and the one that is talked to.
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) ipv6: bool,
    /// The difference between its results with these records and with those.
    pub(super) moved: Box<Moved<'a>>,
}

/// A difference as a share of the capacity, and both results in words.
pub(super) type Moved<'a> = dyn Fn(&[StreamRecord], &[StreamRecord]) -> Result<(f64, String), RunError> + 'a;

/// Records of all roles' endpoints in a run of a scenario with a seed.
pub(super) fn told<'a>(
    run: (&'a Scenario, u64),
    running: &Running,
    make: &'a Makers,
) -> (Vec<Told<'a>>, Vec<Vec<StreamRecord>>) {
    ROLES.iter().flat_map(|role| (role.told)(run, running, make)).unzip()
}

/// True if a packet is of endpoints whose packets are timed one by one, so that the lab had better not sleep.
pub(super) fn is_timed(datagram: &Datagram) -> bool {
    ROLES.iter().any(|role| (role.is_timed)(datagram))
}
