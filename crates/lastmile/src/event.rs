//! [`Event`]: a decision with its place in the run. The file of a run's events is one stream in this one order.
//!
//! Each node has its own type of decision ([`Node::Event`](crate::node::Node::Event)). Logs, JSONL, tables,
//! plots and snapshots are functions of the events, and nothing else prints.

use crate::time::Time;

/// A decision with its place in the run: ordered by time, then node, then sequence.
///
/// ```
/// use lastmile::{event::Event, time::Time};
/// let first = Event { at: Time::from_nanos(1), node: 0, seq: 0, what: "begun" };
/// let second = Event { at: Time::from_nanos(1), node: 0, seq: 1, what: "ended" };
/// assert!(first.order() < second.order());
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Event<E> {
    /// Time of the decision, on the clock of the node that decided.
    pub at: Time,
    /// Number of the node in the run.
    pub node: u32,
    /// Events of this node before this one.
    pub seq: u64,
    /// The decision.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub what: E,
}

impl<E> Event<E> {
    /// The key by which an event file is sorted.
    ///
    /// ```
    /// # use lastmile::{event::Event, time::Time};
    /// let event = Event { at: Time::from_nanos(4), node: 2, seq: 0, what: "begun" };
    /// assert_eq!(event.order(), (Time::from_nanos(4), 2, 0));
    /// ```
    pub fn order(&self) -> (Time, u32, u64) {
        (self.at, self.node, self.seq)
    }

    /// The same event with its decision mapped to another type, such as one role's decision to one of any role.
    ///
    /// ```
    /// # use lastmile::{event::Event, time::Time};
    /// let event = Event { at: Time::ZERO, node: 2, seq: 0, what: 7_u8 };
    /// assert_eq!(event.map(u64::from).what, 7_u64);
    /// ```
    pub fn map<F>(self, what: impl FnOnce(E) -> F) -> Event<F> {
        Event { at: self.at, node: self.node, seq: self.seq, what: what(self.what) }
    }
}
