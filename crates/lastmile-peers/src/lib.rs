//! Rate controllers of others behind lastmile's [`RateController`](lastmile::control::RateController): hosts, paths, seeds and feedback stay
//! ours, the law is theirs. The README says which, in which version, and which could not be linked.

use lastmile::control::Controller;

#[cfg(feature = "googcc")]
#[macro_use]
mod googcc;
#[cfg(feature = "noq")]
pub mod noq;
#[cfg(scream)]
mod scream;

// str0m's files name these as parts of their crate.
#[cfg(feature = "googcc")]
use googcc::names::{Bitrate, DataSize, Reason, Rtc, bwe, log_stat, poll, rtp_, util};
#[cfg(feature = "googcc")]
include!(concat!(env!("OUT_DIR"), "/googcc.rs"));

/// Controllers that this build has: SCReAM where `SCREAM_DIR` named a checkout, GoogCC with the feature `googcc`.
pub fn controllers() -> Vec<&'static Controller> {
    vec![
        #[cfg(feature = "googcc")]
        &googcc::ENTRY,
        #[cfg(scream)]
        &scream::ENTRY,
    ]
}
