//! The side channel: the true cause of each loss of a stream. No network tells that; `omniscient` judges by it, and the
//! verdicts of all others are counted against it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lastmile::classify::{LossClass, LossCounts};
use lastmile::control::LossTruth;

use crate::network::lost::LossCause;

/// Shared by the classifier at one end of the stream and by the tap that sees the network lose packets.
#[derive(Debug, Default)]
pub(super) struct Truth(Mutex<Known>);

/// True causes of a stream's losses, with counts of the verdicts.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// By sequence number, of the last 65,536 packets.
    causes: BTreeMap<u16, LossClass>,
    /// Packets lost to congestion, and by the link.
    pub(super) lost: [u64; 2],
    /// Verdicts, counted against the causes.
    pub(super) counts: LossCounts,
}

impl Truth {
    pub(super) fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// A packet left: the cause of the loss of an earlier packet with its number goes.
    pub(super) fn left(&mut self, sequence: u16) {
        self.causes.remove(&sequence);
    }

    /// A packet was lost: by a queue or a policer, or because others sent as well, which is congestion; or by the link.
    pub(super) fn lost(&mut self, sequence: u16, cause: LossCause) {
        let class = if cause.is_congestion() { LossClass::Congestion } else { LossClass::Wireless };
        self.causes.insert(sequence, class);
        self.lost[usize::from(class == LossClass::Wireless)] += 1;
    }
}

impl LossTruth for Truth {
    fn cause(&self, id: u64) -> Option<LossClass> {
        self.known().causes.get(&(id as u16)).copied()
    }

    fn judged(&self, id: u64, class: LossClass) {
        let mut known = self.known();
        let cause = known.causes.get(&(id as u16)).copied();
        known.counts.count(class, cause);
    }
}
