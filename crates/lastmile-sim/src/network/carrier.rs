//! `Carrier`: what meters, taps and results ask of whatever carries packets between nodes and may lose them.

use lastmile::node::{Flow, PortId};

use super::lost::Losses;
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
