//! From estimate and loss class to a rate or a window: one file per scheme.
pub mod window;
