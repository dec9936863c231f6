//! Names and errors of the engine's interface.

use lastmile::node::PortId;
use lastmile::time::Time;

use crate::network::event_queue::MAX_NODES;

/// Ports of a node: the rest of 32 bits beside its number, without the last value.
pub(crate) const MAX_PORTS: u16 = 4095;

/// A node of an engine, numbered from zero in the order of [`Engine::add`](super::Engine::add).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// A routing table of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouterId(pub u32);

/// Target of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Nowhere: packets count as [unroutable](super::Engine::unroutable).
    Nowhere,
    /// To port 0 of a node.
    Node(NodeId),
    /// To a port of a node.
    Port(NodeId, PortId),
    /// The table's target for the packet's flow.
    Router(RouterId),
}

/// Reasons for which an engine stops.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// Nodes wake each other for ever at one moment.
    #[error(
        "time stands still at {at}: nodes were woken {wakes} times at that moment, {name} last; \
         two endpoints answer each other without any delay between them, or one asks again and again for a time that has passed, or sends all that it has at once"
    )]
    Stuck {
        /// The moment.
        at: Time,
        /// The node woken last.
        node: u32,
        /// Its name.
        name: String,
        /// Wakes and hand-overs of all nodes at that moment.
        wakes: u64,
    },
    /// The run has used up its budget.
    #[error(
        "{limit} are spent at {at}, {share} % of them by {node}: have it carry or keep less, shorten the run, or raise {key}"
    )]
    OverBudget {
        /// Time of the check.
        at: Time,
        /// The budget.
        limit: String,
        /// The costliest node.
        node: String,
        /// Its part, in per cent.
        share: u8,
        /// The scenario's key that allows more.
        key: &'static str,
    },
    /// A packet was injected at a node that takes none from outside.
    #[error("node {0} is not an external host: only those take packets from outside")]
    NotExternal(u32),
    /// A meter was attached to a node that carries no packets, or any number of them.
    #[error("node {0} is not a link with a rate: it has no spare rate to meter")]
    NotMeterable(u32),
    /// A port beyond what a route can name.
    #[error("port {0}: a node has at most {MAX_PORTS} ports")]
    TooManyPorts(u16),
    /// More nodes than the event queue can tell apart.
    #[error("more than {MAX_NODES} nodes")]
    TooManyNodes,
    /// A node's trace was readable before and is not any more, with the reason.
    #[error("the trace of node {0} cannot be read any more: {1}")]
    Trace(u32, String),
}
