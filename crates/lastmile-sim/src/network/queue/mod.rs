//! Queue disciplines, one per file: drops and marks before a queue is full, and the order of sending. Also the token bucket
//! of the shaper behind it, or of the policer before it.
//!
//! A discipline is its `Parameters`, which its file declares as options, and a `Queue` at work. Most are a `Law` over
//! one `Fifo`, asked when a packet enters or when the transmitter fetches one; the others own what waits.

use lastmile::node::Datagram;
use lastmile::options::{ChoiceError, Given, Opt, OptionError, Options};
use lastmile::rng::Stream;
use lastmile::units::Rate;
use serde::Deserialize;

use super::lost::LossCause;
use crate::network::config_error::ConfigError;

mod bucket;
mod fifo;
pub(crate) mod limit;
#[macro_use]
mod list;
mod table;

pub(super) use bucket::Bucket;
pub use bucket::TokenBucket;
pub(crate) use fifo::{Fifo, Law, Single, Verdict, Waiting};
pub(crate) use limit::QueueLimit;
pub(crate) use table::Table;

// The list: files, tests and the documentation derive from it. In brackets stands what its parameters need beside.
disciplines! {
    drop_tail::DropTail,
    red::Red,
    tc_red::TcRed,
    codel::Codel,
    fq_codel::FqCodel,
    pie::Pie,
    dualpi2::DualPi2,
    step::Step(StepThreshold),
    #[cfg(test)]
    every_nth::EveryNth,
}

/// The parameters of a discipline.
pub(crate) trait Parameters: Options {
    /// The queue at work with them.
    type Queue: Queue;
    /// Its name in files.
    const KIND: &'static str;
    /// Its source, such as an RFC.
    const SOURCE: &'static str;

    fn queue(&self, rate: Option<Rate>, random: Stream) -> Self::Queue;

    /// Refuses values that do not go together; their ranges are checked already.
    fn check(&self) -> Result<(), ConfigError> {
        Ok(())
    }

    /// The limit that it brings along, which takes the place of the link's.
    fn limit(&self) -> Option<QueueLimit> {
        None
    }

    /// Refuses what a queue of that limit never reaches.
    fn check_limit(&self, _: QueueLimit) -> Result<(), ConfigError> {
        Ok(())
    }

    /// Parameters with which some ten packets see it act.
    #[cfg(test)]
    fn lively(_ecn: bool) -> Self {
        Self::default()
    }
}

/// A discipline at work, with all that waits.
pub(crate) trait Queue {
    /// Takes a packet in; false where it, and not another one, is dropped.
    fn enqueue(&mut self, now: u64, ahead: Ahead, packet: Waiting, fate: &mut impl Fate) -> bool;

    /// The next packet to send. Only an empty queue, or one that drops all it has, gives none.
    fn dequeue(&mut self, now: u64, fate: &mut impl Fate) -> Option<Waiting>;

    /// The transmitter found the queue empty.
    fn idle(&mut self, _now: u64) {}

    fn len(&self) -> usize;

    fn bytes(&self) -> u64;

    fn iter(&self) -> Box<dyn Iterator<Item = &Waiting> + '_>;

    /// The memory that it takes beside what waits.
    fn memory(&self) -> u64 {
        0
    }
}

/// Packets that wait before one that enters, with the fetched one that waits for a shaper's tokens.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ahead {
    pub(crate) packets: u32,
    pub(crate) bytes: u64,
    /// The packet finds no room.
    pub(crate) full: bool,
}

/// Actions of a queue on packets, told to the link.
pub(crate) trait Fate {
    fn drop(&mut self, packet: Waiting, cause: LossCause);

    /// Marks it Congestion Experienced, if it can be.
    fn mark(&mut self, packet: &mut Waiting);

    fn datagram(&self, packet: &Waiting) -> &Datagram;
}

impl Default for Discipline {
    fn default() -> Discipline {
        Discipline::DropTail(DropTail {})
    }
}

/// The part of a link that `tc` calls a discipline of that name.
fn elsewhere(kind: &str) -> Option<&'static str> {
    match kind.to_lowercase().as_str() {
        "fifo" | "pfifo" | "bfifo" | "pfifo_fast" | "droptail" => Some("\"drop-tail\""),
        "tbf" => Some("the link's `shaper`"),
        "netem" => Some("the link's `delay`, `jitter` and `losses`"),
        _ => None,
    }
}

impl Discipline {
    /// The kinds that files may name.
    pub fn kinds() -> impl Iterator<Item = String> {
        Discipline::described().map(|(kind, ..)| kind.to_owned())
    }
}

#[cfg(test)]
pub(crate) mod testing;
