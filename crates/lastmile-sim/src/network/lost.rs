//! Losses, by flow and cause, and the listeners that are told of them.

use std::collections::BTreeMap;

use lastmile::node::{Datagram, Flow};
use lastmile::time::Time;

/// The true cause of a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LossCause {
    /// It found the queue full.
    Queue,
    /// The queue's discipline dropped it to signal congestion.
    Early,
    /// Noise destroyed it: on a link, or on a WLAN most of its transmissions (or, at a tie, the last).
    Channel,
    /// All its transmissions on a WLAN failed, most of them (or, at a tie, the last) because others sent as well.
    Collision,
    /// The host that it was for, or from, had left for another link.
    Handoff,
    /// A policer had no tokens for it.
    Policer,
    /// It was larger than the link's MTU.
    TooBig,
}

impl LossCause {
    /// All causes.
    pub const ALL: [LossCause; 7] = [
        LossCause::Queue,
        LossCause::Early,
        LossCause::Channel,
        LossCause::Collision,
        LossCause::Handoff,
        LossCause::Policer,
        LossCause::TooBig,
    ];

    /// True if a queue or a policer lost it, or others that sent as well: not the link.
    pub fn is_congestion(self) -> bool {
        match self {
            LossCause::Queue | LossCause::Early | LossCause::Policer | LossCause::Collision => true,
            LossCause::Channel | LossCause::Handoff | LossCause::TooBig => false,
        }
    }

    /// One word for tables.
    pub fn name(self) -> &'static str {
        match self {
            LossCause::Queue => "queue",
            LossCause::Early => "early",
            LossCause::Channel => "channel",
            LossCause::Collision => "collision",
            LossCause::Handoff => "handoff",
            LossCause::Policer => "policer",
            LossCause::TooBig => "too-big",
        }
    }
}

/// A packet that did not arrive.
#[derive(Clone, Copy, Debug)]
pub struct Lost<'a> {
    /// When the queue dropped it, when its sender gave it up, or when it would have arrived.
    pub at: Time,
    /// The true cause.
    pub cause: LossCause,
    /// The packet.
    pub datagram: &'a Datagram,
}

/// Listeners that are told of each loss.
#[derive(Default)]
struct Told(Vec<Tell>);

type Tell = Box<dyn FnMut(&Lost<'_>) + Send>;

impl core::fmt::Debug for Told {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Told")
    }
}

/// Losses of a carrier, by flow and cause, and their listeners.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    /// By the cause's place in [`LossCause::ALL`], for each flow that lost any.
    by_flow: BTreeMap<Flow, [u64; LossCause::ALL.len()]>,
    told: Told,
}

impl Losses {
    pub(crate) fn add(&mut self, lost: &Lost<'_>) {
        self.by_flow.entry(lost.datagram.flow).or_default()[lost.cause as usize] += 1;
        self.told.0.iter_mut().for_each(|tell| tell(lost));
    }

    /// Has each packet told of when it is decided that it is lost.
    pub(crate) fn tell(&mut self, tell: impl FnMut(&Lost<'_>) + Send + 'static) {
        self.told.0.push(Box::new(tell));
    }

    pub(crate) fn of(&self, flow: Flow) -> impl Iterator<Item = (LossCause, u64)> {
        LossCause::ALL.into_iter().zip(self.by_flow.get(&flow).copied().unwrap_or_default())
    }

    /// Flow, cause and packets, where there are any.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Flow, LossCause, u64)> {
        let lost = |(&flow, counted): (&Flow, &[u64; LossCause::ALL.len()])| {
            LossCause::ALL.into_iter().zip(*counted).map(move |(cause, packets)| (flow, cause, packets))
        };
        self.by_flow.iter().flat_map(lost).filter(|&(.., packets)| packets > 0)
    }
}
