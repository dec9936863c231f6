//! Decisions of a controller: events, and requests to its host.

use std::collections::VecDeque;

use crate::classify::{self, Decision::LossJudged};
use crate::time::Span;
use crate::units::{Bytes, Rate};

/// Something that a controller, or the classifier in front of it, decided.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(tag = "event", rename_all = "kebab-case")
)]
#[non_exhaustive]
pub enum Decision {
    /// A loss event began (RFC 5348, section 5.2).
    LossEvent {
        /// The number of the packet that began it.
        id: u64,
        /// The loss event rate with it.
        loss_event_rate: f64,
    },
    /// The first rise of the rate is over.
    SlowStartEnded {
        /// The rate from now on.
        rate: Rate,
    },
    /// Packet pairs told the path's capacity.
    Capacity {
        /// Of IP packets.
        rate: Rate,
        /// Their size.
        size: Bytes,
        /// The least sum of the delays of a pair's two packets, from an unknown zero: of several estimates of one path, that of
        /// the least is least disturbed.
        delay_sum: Span,
    },
    /// Packet pairs told that the path's capacity is more than this: times of arrival are too coarse to tell how much, or this
    /// host does not send packets back to back.
    CapacityAbove {
        /// Of IP packets.
        rate: Rate,
        /// Their size.
        size: Bytes,
    },
    /// Packet pairs tell no capacity: feedback has no times of arrival, the packets of a pair have the same one, or most are lost.
    CapacityUnknown,
    /// The capacity changed as in a hand-off to another network.
    HandOff {
        /// The capacity before.
        from: Rate,
        /// The capacity after; downwards, the rate of arrivals, which may be less.
        to: Rate,
    },
    /// No feedback came for too long, and the rate was cut.
    NoFeedback {
        /// The rate from now on.
        rate: Rate,
    },
    /// A decision of the classifier in front: losses judged, fall-backs.
    #[cfg_attr(feature = "serde", serde(untagged))]
    Classify(classify::Decision),
}

impl From<classify::Decision> for Decision {
    fn from(decision: classify::Decision) -> Decision {
        Decision::Classify(decision)
    }
}

/// A request of a controller to its host. There is no other way to ask for packets back to back.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Action {
    /// Send packets to measure with.
    Probe {
        /// Number of packets.
        packets: u16,
        /// Size of each packet at the IP layer.
        size: Bytes,
        /// Time between packets; `None` for back to back.
        gap: Option<Span>,
    },
    /// Make packets of at most this size at the IP layer.
    PacketSize(Bytes),
    /// Have feedback sent so often.
    FeedbackEvery(Span),
    /// Have the encoder make a picture that needs none before it.
    KeyFrame,
    /// Have the receiver forget its loss history, where it keeps one.
    ForgetLosses,
}

/// Decisions kept for a host that does not fetch them. One more displaces the oldest verdict on losses, or else the oldest decision.
const WAITING: usize = 64;

/// Decisions that wait to be fetched. Takes no memory after it was made.
///
/// ```
/// use lastmile::control::{Decision, Decisions};
/// let mut decisions = Decisions::default();
/// decisions.push(Decision::CapacityUnknown);
/// assert_eq!((decisions.pop(), decisions.pop()), (Some(Decision::CapacityUnknown), None));
/// ```
#[derive(Debug)]
pub struct Decisions(VecDeque<Decision>);

impl Default for Decisions {
    fn default() -> Decisions {
        Decisions(VecDeque::with_capacity(WAITING))
    }
}

impl Clone for Decisions {
    /// With the same room: that of a derived clone would be what waits.
    fn clone(&self) -> Decisions {
        let mut copy = Decisions::default();
        copy.0.extend(&self.0);
        copy
    }
}

impl Decisions {
    /// Adds one. The next lost packet of a run that gets the same verdict makes no decision of its own.
    pub fn push(&mut self, decision: impl Into<Decision>) {
        let decision = decision.into();
        if let Decision::Classify(LossJudged { id: next, class: verdict, by: judge, packets: more }) =
            decision
            && let Some(Decision::Classify(LossJudged { id, packets, class, by })) = self.0.back_mut()
            && (*class, *by, id.checked_add((*packets).into())) == (verdict, judge, Some(next))
        {
            *packets = packets.saturating_add(more);
            return;
        }
        if self.0.len() == WAITING {
            let verdict = |waiting: &Decision| matches!(waiting, Decision::Classify(LossJudged { .. }));
            self.0.remove(self.0.iter().position(verdict).unwrap_or(0));
        }
        self.0.push_back(decision);
    }

    /// The oldest, which waits no longer.
    pub fn pop(&mut self) -> Option<Decision> {
        self.0.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::LossClass;

    #[test]
    fn verdicts_make_room_for_other_decisions() {
        let mut decisions = Decisions::default();
        let judged =
            |id| Decision::Classify(LossJudged { id, packets: 1, class: LossClass::Congestion, by: "none" });
        decisions.push(judged(0));
        decisions.push(Decision::CapacityUnknown);
        (1..100).for_each(|k| decisions.push(judged(2 * k)));
        let waiting: Vec<Decision> = core::iter::from_fn(|| decisions.pop()).collect();
        assert_eq!((waiting.len(), waiting[0], waiting[1]), (WAITING, Decision::CapacityUnknown, judged(74)));
        (0..100).for_each(|_| decisions.push(Decision::CapacityUnknown));
        assert_eq!(decisions.0.len(), WAITING);
        assert!(
            decisions.clone().0.capacity() >= WAITING && Decisions::default().clone().0.capacity() >= WAITING
        );
    }
}
