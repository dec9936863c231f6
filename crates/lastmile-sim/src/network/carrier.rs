//! `Carrier`: the view that meters, taps and results have of a node that carries packets and may lose them.

use lastmile::node::{Flow, PortId};

use super::lost::Losses;
use super::meter::{Meter, MeterConfig};
use super::packets::Packets;

/// A node that carries packets: a link or a WLAN.
pub(crate) trait Carrier {
    /// True if others send by the same medium: no queue shows the spare rate, and a twin has to find it.
    fn is_shared(&self) -> bool;

    /// Attaches a meter to the queue before a port and gives its number; `None` where nothing is there to meter.
    fn attach(&mut self, port: PortId, config: MeterConfig) -> Option<usize>;

    /// An attached meter.
    fn meter(&self, number: usize) -> Option<&Meter>;

    /// The host at one end of a port leaves for another link, or comes back. Packets that wait there or come later are dropped;
    /// those being sent go on.
    fn leave(&mut self, packets: &mut Packets, now: u64, port: PortId, left: bool);

    /// Packets lost, by flow and cause.
    fn losses(&self) -> &Losses;

    /// The same, to add listeners.
    fn losses_mut(&mut self) -> &mut Losses;

    /// Memory, and events beside the engine's own.
    fn cost(&self) -> Cost;

    /// The flow of each packet that waits or is on its way.
    fn flows_under_way(&self) -> Box<dyn Iterator<Item = Flow> + '_>;
}

/// Cost of a node: the memory that it holds, in bytes, and events that the engine does not see.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    pub(crate) memory: u64,
    pub(crate) events: u64,
}
