//! A run seen from outside of its endpoints: counts of flows, links and WLANs, over the run and step by step; and the truth of a
//! path, from meters at its links and from twin simulations.
pub mod accounting;
pub mod flows;
mod path_meter;
mod reach;
pub mod sent;
pub mod series;
mod spare;
pub mod twin;

pub use path_meter::PathMeter;
