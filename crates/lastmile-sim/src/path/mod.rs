//! What packets pass through on their way: links, the queues in front of them, and channels that lose packets.
pub mod error;
pub mod link;
pub mod queue;
