//! What packets pass through on their way.
pub mod link;
