//! 802.11: stations that share one channel by DCF.
//!
//! A [`Medium`] is a WLAN, or several cells on one channel, as one element of the engine. Each client has two ports: packets enter
//! at the port of their direction, wait in the sender's FIFO queue, and leave by the same port when they are received.

mod ampdu;
mod channel;
mod choices;
pub mod config;
mod counters;
mod direction;
mod medium;
mod minstrel;
pub mod phy;
mod rate;
mod rates;
mod schedule;
mod setup;
mod station;

pub use choices::{AfterCollision, Band, Preamble, Protection, RateControl, SlotTime, Standard};
pub use config::{AmpduConfig, ChannelConfig, StationChange, StationConfig, StationTrace, WlanConfig};
pub use counters::{Airtime, DirectionCounters};
pub use medium::Medium;
