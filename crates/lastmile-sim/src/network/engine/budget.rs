//! [`Budget`]: what a run may cost, counted while it runs.
//!
//! Time is counted in events: each time that a node is asked what it does next, each packet handed to a node, and each
//! period or frame that a channel looks at. Memory is what waits, what is on its way and what is noted of it. Both are
//! looked at now and then, so that they cost a comparison at each moment; who was at work at these looks is who was at
//! work most of the time.

use lastmile::units::Bytes;

use super::{Engine, EngineError};
use crate::network::carrier::Cost;

/// What a run may cost. An engine that passes it stops with [`EngineError::OverBudget`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Events; a packet that crosses a link is about four.
    pub events: u64,
    /// Memory of what waits, is on its way or is noted.
    pub memory: Bytes,
}

impl Default for Budget {
    /// Some ten minutes, and 2 GB.
    fn default() -> Budget {
        Budget { events: 10_000_000_000, memory: Bytes(2_000_000_000) }
    }
}

/// How often an engine looks, in events: for each node at most every sixteenth.
const LOOK: u64 = 1_024;
const LOOK_EACH: u64 = 16;

/// What an engine keeps of its budget.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    budget: Budget,
    /// Events at moments that are over.
    spent: u64,
    look_at: u64,
    /// Events that each node stands for, by the looks that found it at work.
    busy: Vec<u64>,
}

impl Ledger {
    /// A moment with so many events is over. Whether it is time to look.
    #[inline]
    pub(super) fn pass(&mut self, events: u64) -> bool {
        self.spent += events;
        self.spent >= self.look_at
    }
}

impl Engine {
    /// Sets what the run may cost from its start; the default is [`Budget::default`].
    pub fn set_budget(&mut self, budget: Budget) {
        self.ledger.budget = budget;
    }

    /// Refuses to go on where the budget is spent; `node` is at work.
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
