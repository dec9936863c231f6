//! Reports to samples: filters and statistics that estimators share.
//!
//! A record is taken apart before any formula sees it: did the departures keep the schedule
//! ([`schedule`]), did packets arrive in order and are the clocks whole ([`order`]), are arrivals stamped in
//! batches ([`batch`]), do the two clocks run alike ([`skew`]). [`mod@pairs`], [`train`] and [`burst`] put that together
//! for the three shapes of streams, [`signal`] has the congestion signals that tools read, and [`judge`] is the verdict that events carry.
pub mod batch;
pub mod burst;
mod judge;
pub mod order;
pub mod pairs;
pub mod schedule;
pub mod signal;
pub mod skew;
pub mod stats;
#[cfg(test)]
pub(crate) mod testing;
pub mod train;
pub(crate) use judge::cause;
pub use judge::{Judged, StreamVerdict, judge};
