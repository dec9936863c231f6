//! Rate controllers over a path of one queue with independent losses, and under whatever feedback.

mod clones;
mod closed_loop;
mod foreign;
mod last_mile;
mod laws;
mod liars;
mod multfrc;
mod nonsense;
mod path;
mod probe;
mod tfrc;
mod vtp;
