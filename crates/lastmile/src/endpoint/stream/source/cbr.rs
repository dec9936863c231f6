//! Frames of one size: a constant bit rate.

use super::{Frame, FrameSource, Limits, Made, Setting, Source, Steady};
use crate::options::{Given, Options};
use crate::time::Time;
use crate::units::{Bytes, Rate};

crate::options! {
    /// The source's parameters.
    pub struct CbrConfig {
        /// Makes this, of IP packets, where the target is less
        min: Option<Rate> [Rate::ip(1)..=Rate::ip(1_000_000_000_000)] = None, "our own";
        /// Makes no more than this, of IP packets
        max: Option<Rate> [Rate::ip(1)..=Rate::ip(1_000_000_000_000)] = None, "our own";
    }
}

/// Its place in the registry.
pub const ENTRY: Source = Source {
    name: "cbr",
    about: "frames of one size, which is the target's",
    paper: "our own",
    needs_sizes: false,
    options: CbrConfig::OPTIONS,
    make,
};

fn make(given: &Given, setting: &Setting<'_>) -> Made {
    let CbrConfig { min, max } = CbrConfig::read(given)?;
    Ok(Box::new(Cbr { limits: Limits::new(min, max)?, steady: Steady::new(setting.frame_rate) }))
}

#[derive(Debug)]
struct Cbr {
    limits: Limits,
    steady: Steady,
}

impl FrameSource for Cbr {
    fn frame(&mut self, _: Time, target: Rate, _: Bytes) -> Frame {
        let next = self.steady.next();
        Frame { size: self.steady.bytes(self.limits.of(target), next), next }
    }

    fn range(&self) -> (Rate, Rate) {
        (self.limits.min, self.limits.max)
    }
}
