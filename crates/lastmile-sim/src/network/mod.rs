//! The network and the engine that drives it: links with their queues and loss channels, WLANs, TCP, other
//! traffic, hosts with clocks of their own, and the meters that look on.
pub mod brought;
pub mod carrier;
pub mod clock;
mod config_error;
pub mod element;
pub mod engine;
mod event_queue;
pub mod host;
pub mod jitter;
pub mod link;
pub mod loss;
pub mod lost;
pub mod meter;
mod packets;
pub mod queue;
pub mod tcp;
pub mod trace;
pub mod traffic;
pub mod wlan;

pub use config_error::ConfigError;
