//! As many full packets as the target asks for: data that never ends, cut at frame times.

use super::{Frame, FrameSource, Limits, Made, Setting, Source, Steady};
use crate::options::{Given, NoOptions, Options};
use crate::time::Time;
use crate::units::{Bytes, Rate};

/// Its place in the registry.
pub const ENTRY: Source = Source {
    name: "on-demand",
    about: "as many full packets as the target asks for",
    paper: "our own",
    needs_sizes: false,
    options: NoOptions::OPTIONS,
    make,
};

fn make(given: &Given, setting: &Setting<'_>) -> Made {
    NoOptions::read(given)?;
    let (steady, full) = (Steady::new(setting.frame_rate), setting.packet_size.0.max(1));
    Ok(Box::new(OnDemand { steady, full, owed: 0, begun: false }))
}

#[derive(Debug)]
struct OnDemand {
    steady: Steady,
    full: u64,
    /// Bytes that were asked for and fill no packet yet.
    owed: u64,
    begun: bool,
}

impl FrameSource for OnDemand {
    fn frame(&mut self, _: Time, target: Rate, waiting: Bytes) -> Frame {
        let next = self.steady.next();
        let made = self.steady.bytes(target, next).0;
        // What the network does not take is not made: no more than this frame's bytes and a packet may wait.
        let due = (self.owed + made).min((made + self.full).saturating_sub(waiting.0));
        // The first packet asks for nothing: without it nobody can answer.
        let packets = (due / self.full).max(u64::from(!self.begun));
        (self.owed, self.begun) = (due.saturating_sub(packets * self.full), true);
        Frame { size: Bytes(packets * self.full), next }
    }

    fn range(&self) -> (Rate, Rate) {
        (Limits::NONE.min, Limits::NONE.max)
    }
}
