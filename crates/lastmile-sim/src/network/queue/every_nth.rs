//! Drops every n-th packet that comes, whatever waits: the example of CONTRIBUTING.md.

use lastmile::units::Rate;
use serde::Deserialize;

use super::{Ahead, Law, Parameters, Single, Verdict, Waiting};
use crate::network::config_error::{ConfigError, require};
use crate::rng::Stream;

/// Which packets it drops.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EveryNth {
    /// One of so many.
    pub n: u32,
}

impl Default for EveryNth {
    fn default() -> EveryNth {
        EveryNth { n: 10 }
    }
}

impl Parameters for EveryNth {
    type Queue = Single<State>;
    const KEYS: &'static str = "`n` (10)";
    const SOURCE: &'static str = "an example";

    fn queue(&self, _: Option<Rate>, _: Stream) -> Single<State> {
        Single::new(State { n: self.n.max(1), came: 0 })
    }

    fn check(&self) -> Result<(), ConfigError> {
        require(self.n > 0, "n", "at least 1")
    }
}

/// How many came since the last drop.
#[derive(Debug)]
pub(crate) struct State {
    n: u32,
    came: u32,
}

impl Law for State {
    fn enqueue(&mut self, _: u64, _: Ahead, _: &Waiting) -> Verdict {
        self.came = (self.came + 1) % self.n;
        if self.came == 0 { Verdict::Drop } else { Verdict::Accept }
    }
}
