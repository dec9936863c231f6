//! [`Budget`]: the most that a run may cost, counted while it runs.
//!
//! Events count as time: each poll of a node, each packet handed to a node, and each period or frame that a channel looks at.
//! Packets that wait or are under way, and notes of them, count as memory. The engine checks both now and then, at the price of
//! a comparison a moment; the node that is at work at most checks is the one that costs most.

use lastmile::units::Bytes;

use super::{Engine, EngineError};
use crate::network::carrier::Cost;

/// The most that a run may cost. An engine beyond it stops with [`EngineError::OverBudget`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Events; a packet that crosses a link is about four.
    pub events: u64,
    /// Memory of packets that wait or are under way, and of notes.
    pub memory: Bytes,
}

impl Default for Budget {
    /// Some ten minutes of computing, and 2 GB.
    fn default() -> Budget {
        Budget { events: 10_000_000_000, memory: Bytes(2_000_000_000) }
    }
}

/// Events between checks; at a node at most every sixteenth event is one.
const LOOK: u64 = 1_024;
const LOOK_EACH: u64 = 16;

/// The engine's account of its budget.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    budget: Budget,
    /// Events at moments that are over.
    spent: u64,
    look_at: u64,
    /// Events of each node, by the checks that found it at work.
    busy: Vec<u64>,
}

impl Ledger {
    /// Counts the events of a moment that is over. True if a check is due.
    #[inline]
    pub(super) fn pass(&mut self, events: u64) -> bool {
        self.spent += events;
        self.spent >= self.look_at
    }
}

impl Engine {
    /// Sets the budget of the run from its start; the default is [`Budget::default`].
    pub fn set_budget(&mut self, budget: Budget) {
        self.ledger.budget = budget;
    }

    /// An error if the budget is spent; `node` is at work.
    #[cold]
    pub(super) fn look(&mut self, node: usize) -> Result<(), EngineError> {
        let ledger = &mut self.ledger;
        let passed = LOOK.max(LOOK_EACH * self.slots.len() as u64);
        // Not in step with anything periodic.
        let jitter = ledger.spent.wrapping_mul(0x9E37_79B9_7F4A_7C15) % LOOK;
        ledger.look_at = ledger.spent + passed + jitter;
        ledger.busy.resize(self.slots.len(), 0);
        ledger.busy[node] += passed;
        let (mut all, mut most) = (Cost { memory: 0, events: ledger.spent }, [(0, 0); 2]);
        for (node, (slot, busy)) in self.slots.iter().zip(&ledger.busy).enumerate() {
            let cost = slot.element.cost();
            all = Cost { memory: all.memory + cost.memory, events: all.events + cost.events };
            most = [most[0].max((cost.events + busy, node)), most[1].max((cost.memory, node))];
        }
        let Budget { events, memory } = ledger.budget;
        let (key, limit, whole, (own, node)) = if all.events > events {
            ("max_events", format!("{events} events"), all.events, most[0])
        } else if all.memory > memory.0 {
            ("max_memory", format!("{memory} of memory"), all.memory, most[1])
        } else {
            return Ok(());
        };
        let share = (own as f64 / whole as f64 * 100.0).min(100.0) as u8;
        Err(EngineError::OverBudget { at: self.now, limit, node: self.name(node), share, key })
    }
}
