//! Controllers of others that are in no registry, such as programs over a pipe: a [`Guest`] makes one for each stream of each run.

use std::fmt;
use std::sync::{Arc, OnceLock};

use lastmile::control::{RateController, Setting};
use lastmile::endpoint::stream::SenderRate;
use lastmile_sim::roles::Makers;

/// The reason why a guest came to nothing in a run, once there is one.
pub type Failure = Arc<OnceLock<String>>;

/// Makes a controller within the limits of a stream. One that fails says why in [`Failure`].
pub type Make = dyn Fn(&Setting, Failure) -> Box<dyn RateController> + Send + Sync;

/// A contender that is in no registry.
#[derive(Clone)]
pub struct Guest {
    /// The name of its rows.
    pub name: String,
    /// Makes its controllers.
    pub make: Arc<Make>,
}

impl fmt::Debug for Guest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guest").field("name", &self.name).finish_non_exhaustive()
    }
}

impl PartialEq for Guest {
    fn eq(&self, other: &Guest) -> bool {
        self.name == other.name
    }
}

impl Guest {
    /// Makers that give these streams a controller of the guest's, and the place of the first failure.
    pub(super) fn makers(&self, seed: Makers, streams: &[String]) -> (Makers, Failure) {
        let failure = Failure::default();
        let (make, streams, told) = (self.make.clone(), streams.to_vec(), failure.clone());
        let makers = seed.controlling(move |spec| {
            let SenderRate::Controlled(config) = &spec.sender.rate else { return None };
            let own = streams.contains(&spec.name);
            own.then(|| make(&config.setting(spec.sender.packet_size), told.clone()))
        });
        (makers, failure)
    }
}
