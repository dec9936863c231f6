//! Drops every n-th packet that comes, whatever waits: the example of CONTRIBUTING.md.

use lastmile::rng::Stream;
use lastmile::units::Rate;

use super::{Ahead, Law, Parameters, Single, Verdict, Waiting};

lastmile::options! {
    /// Drops every `n`th packet.
    pub struct EveryNth {
        /// One of so many packets is dropped
        n: u32 [1..=1_000_000] = 10, "an example";
    }
}

impl Parameters for EveryNth {
    type Queue = Single<State>;
    const KIND: &'static str = "every-nth";
    const SOURCE: &'static str = "an example";

    fn queue(&self, _: Option<Rate>, _: Stream) -> Single<State> {
        Single::new(State { n: self.n.max(1), came: 0 })
    }
}

/// Count of packets since the last drop.
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
