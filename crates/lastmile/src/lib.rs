//! Sans-IO measurement and rate control for paths whose last hop is wireless.

pub mod wire;
