//! As many full packets as leave at the target: data that never ends, so that there is always a packet to send.

use super::{Frame, FrameSource, Limits, Made, Setting, Source, Steady};
use crate::options::{Given, NoOptions, Options};
use crate::time::Time;
use crate::units::{Bytes, Rate};

/// Its place in the registry.
pub const ENTRY: Source = Source {
    name: "on-demand",
    about: "as many full packets as leave at the target: data that never ends",
    paper: "our own",
    needs_sizes: false,
    options: NoOptions::OPTIONS,
    make,
};

fn make(given: &Given, setting: &Setting<'_>) -> Made {
    NoOptions::read(given)?;
    let (steady, full) = (Steady::new(setting.frame_rate), setting.packet_size.0.max(1));
    Ok(Box::new(OnDemand { steady, full, paced: setting.paced, owed: 0 }))
}

#[derive(Debug)]
struct OnDemand {
    steady: Steady,
    full: u64,
    paced: bool,
    /// Bytes that were asked for and fill no packet yet, where no pacer holds packets back.
    owed: u64,
}

impl FrameSource for OnDemand {
    fn frame(&mut self, _: Time, target: Rate, waiting: Bytes) -> Frame {
        let next = self.steady.next();
        let made = self.steady.bytes(target, next).0;
        let packets = if self.paced {
            // Twice what this frame's time takes, and a packet: the pacer alone says when packets leave.
            (2 * made + self.full).saturating_sub(waiting.0).div_ceil(self.full)
        } else {
            self.owed += made;
            let packets = self.owed / self.full;
            self.owed %= self.full;
            packets
        };
        Frame { size: Bytes(packets * self.full), next }
    }

    fn range(&self) -> (Rate, Rate) {
        (Limits::NONE.min, Limits::NONE.max)
    }

    fn is_on_demand(&self) -> bool {
        true
    }

    fn resize(&mut self, packet_size: Bytes) {
        self.full = packet_size.0.max(1);
    }
}
