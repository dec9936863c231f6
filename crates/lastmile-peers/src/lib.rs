//! Rate controllers of others behind lastmile's [`RateController`](lastmile::control::RateController): hosts, paths, seeds and feedback stay
//! ours, the law is theirs. The README says which, in which version, and which could not be linked.

use lastmile::control::Controller;

#[cfg(feature = "noq")]
pub mod noq;
#[cfg(scream)]
mod scream;

/// Controllers that this build has: SCReAM where `SCREAM_DIR` named a checkout.
pub fn controllers() -> Vec<&'static Controller> {
    vec![
        #[cfg(scream)]
        &scream::ENTRY,
    ]
}
