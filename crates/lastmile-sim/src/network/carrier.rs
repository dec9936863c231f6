//! `Carrier`: what meters, taps and results ask of whatever carries packets between nodes and may lose them; and
//! `Losses`, which it keeps for them.

use std::collections::BTreeMap;

use lastmile::node::{Datagram, Flow, PortId};
use lastmile::time::Time;

use super::meter::{Meter, MeterConfig};
use super::packets::Packets;

/// What carries packets.
pub(crate) trait Carrier {
    /// Whether others send by the same medium, so that no queue shows what is spare: it has to be found out in a twin.
    fn is_shared(&self) -> bool;

    /// Attaches a meter to the queue before a port and gives its number; `None` where nothing is there to meter.
    fn attach(&mut self, port: PortId, config: MeterConfig) -> Option<usize>;

    /// An attached meter.
    fn meter(&self, number: usize) -> Option<&Meter>;

    /// The host at one end of a port leaves for another link, or comes back. What waits there and what comes later is dropped;
    /// what is being sent goes on.
    fn leave(&mut self, packets: &mut Packets, now: u64, port: PortId, left: bool);

    /// What it has lost.
    fn losses(&self) -> &Losses;

    /// The same, to be told of what comes.
    fn losses_mut(&mut self) -> &mut Losses;

    /// What it has cost beside the engine's own events.
    fn cost(&self) -> Cost;

    /// The flow of each packet that waits or is on its way.
    fn flows_under_way(&self) -> Box<dyn Iterator<Item = Flow> + '_>;
}

/// What a node has cost: the memory that it holds, and events that the engine does not see.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    pub(crate) memory: u64,
    pub(crate) events: u64,
}

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
}

impl LossCause {
    /// All causes.
    pub const ALL: [LossCause; 5] =
        [LossCause::Queue, LossCause::Early, LossCause::Channel, LossCause::Collision, LossCause::Handoff];

    /// One word for tables.
    pub fn name(self) -> &'static str {
        match self {
            LossCause::Queue => "queue",
            LossCause::Early => "early",
            LossCause::Channel => "channel",
            LossCause::Collision => "collision",
            LossCause::Handoff => "handoff",
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

/// Who is told of each loss.
#[derive(Default)]
struct Told(Vec<Tell>);

type Tell = Box<dyn FnMut(&Lost<'_>) + Send>;

impl core::fmt::Debug for Told {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Told")
    }
}

/// What a carrier has lost, by flow and cause, and who is told of it.
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
