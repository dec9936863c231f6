//! Drop-tail: packets that find no room are dropped. If nothing else asks for an event per dequeue, a link computes its
//! departures beforehand, and this costs nothing.

use lastmile::rng::Stream;
use lastmile::units::Rate;

use super::{Law, Parameters, Single};

lastmile::options! {
    /// No discipline beside the limit.
    pub struct DropTail {}
}

impl Parameters for DropTail {
    type Queue = Single<DropTail>;
    const KIND: &'static str = "drop-tail";
    const SOURCE: &'static str = "the default";

    fn queue(&self, _: Option<Rate>, _: Stream) -> Single<DropTail> {
        Single::new(DropTail {})
    }
}

impl Law for DropTail {}
