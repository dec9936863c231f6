//! The frame sizes of a recording, over and over, scaled to the target: RFC 8593, section 6, with one sequence for all rates.

use super::{Frame, FrameSource, Limits, Made, Setting, Source, Steady};
use crate::options::{Given, OptionError, Options};
use crate::time::Time;
use crate::units::{Bytes, Rate};

/// Frames of a trace.
pub const MAX_FRAMES: usize = 1_000_000;

crate::options! {
    /// The source's parameters.
    pub struct TraceConfig {
        /// Frames at the beginning that are not repeated
        skip: u32 [0..=1_000_000] = 0, "RFC 8593: SkipFrames, 20 or 0";
        /// Makes this, of IP packets, where the target is less
        min: Option<Rate> [Rate::ip(1)..=Rate::ip(1_000_000_000_000)] = None, "RFC 8593: R_min";
        /// Makes no more than this, of IP packets
        max: Option<Rate> [Rate::ip(1)..=Rate::ip(1_000_000_000_000)] = None, "RFC 8593: R_max";
    }
}

/// Its place in the registry.
pub const ENTRY: Source = Source {
    name: "trace",
    about: "the frame sizes of a file, over and over, scaled to the target",
    paper: "RFC 8593, section 6",
    needs_sizes: true,
    options: TraceConfig::OPTIONS,
    make,
};

/// An error in a line of a trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct TraceError {
    /// The line, from 1 on.
    pub line: usize,
    /// The error.
    pub reason: &'static str,
}

/// Reads a trace: on each line a frame's size in bytes. Lines that are empty or begin with `#` are left out.
///
/// ```
/// use lastmile::endpoint::stream::source::read_sizes;
/// assert_eq!(read_sizes("# an I-frame, two others\n9000\n700\n\n800\n")?, [9000, 700, 800]);
/// assert_eq!(read_sizes("700\n-1\n").unwrap_err().to_string(), "line 2: a frame's size is 0 to 4294967295 bytes");
/// # Ok::<(), lastmile::endpoint::stream::source::TraceError>(())
/// ```
///
/// # Errors
/// A line is no size, there are more than [`MAX_FRAMES`], or no frame has any bytes.
pub fn read_sizes(text: &str) -> Result<Vec<u32>, TraceError> {
    let mut sizes = Vec::new();
    let mut last = 1;
    for (index, content) in text.lines().map(str::trim).enumerate() {
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        last = index + 1;
        let refuse = |reason| TraceError { line: last, reason };
        if sizes.len() == MAX_FRAMES {
            return Err(refuse("a trace has at most 1000000 frames"));
        }
        sizes.push(content.parse().map_err(|_| refuse("a frame's size is 0 to 4294967295 bytes"))?);
    }
    match sizes.iter().any(|size| *size > 0) {
        true => Ok(sizes),
        false => Err(TraceError { line: last, reason: "no frame of the trace has any bytes" }),
    }
}

fn make(given: &Given, setting: &Setting<'_>) -> Made {
    let TraceConfig { skip, min, max } = TraceConfig::read(given)?;
    let sizes = setting.sizes.to_vec();
    let repeated = sizes.get(skip as usize..).unwrap_or(&[]);
    let sum: f64 = repeated.iter().copied().map(f64::from).sum();
    if sizes.is_empty() {
        return Err(OptionError::new("frames", "must be the sizes of frames, or name a file of them"));
    }
    if sum <= 0.0 {
        let reason = format!("leaves no frame with any bytes of the trace's {}", sizes.len());
        return Err(OptionError::new("skip", reason));
    }
    let (mean, limits) = (sum / repeated.len() as f64, Limits::new(min, max)?);
    let steady = Steady::new(setting.frame_rate);
    Ok(Box::new(Trace { sizes, skip: skip as usize, mean, limits, steady, place: 0, rest: 0.0 }))
}

#[derive(Debug)]
struct Trace {
    sizes: Vec<u32>,
    skip: usize,
    /// Of the frames that are repeated.
    mean: f64,
    limits: Limits,
    steady: Steady,
    place: usize,
    /// Part of a byte left by rounding.
    rest: f64,
}

impl FrameSource for Trace {
    fn frame(&mut self, _: Time, target: Rate, _: Bytes) -> Frame {
        let next = self.steady.next();
        let scale = self.limits.of(target).bits_per_second() as f64 / 8.0 * next.as_secs_f64() / self.mean;
        let size = f64::from(self.sizes[self.place]) * scale + self.rest;
        self.rest = size.fract();
        self.place += 1;
        if self.place == self.sizes.len() {
            self.place = self.skip;
        }
        Frame { size: Bytes(size as u64), next }
    }

    fn range(&self) -> (Rate, Rate) {
        (self.limits.min, self.limits.max)
    }
}

#[cfg(test)]
mod tests {
    use super::super::build;
    use super::*;

    #[test]
    fn sizes_are_scaled_to_the_target_and_begin_again_after_those_skipped() {
        // Means 100 B without the first; 8 kbit/s at 5 Hz are 200 B.
        let setting = Setting { sizes: &[900, 50, 150], ..Setting::of(5.0, Bytes(1200)) };
        let mut trace = build(&"trace(skip=1)".parse().unwrap(), &setting).unwrap();
        let sizes: Vec<u64> =
            (0..6).map(|_| trace.frame(Time::ZERO, Rate::ip(8_000), Bytes::ZERO).size.0).collect();
        assert_eq!(sizes, [1800, 100, 300, 100, 300, 100]);
    }

    #[test]
    fn a_trace_that_says_nothing_is_refused() {
        let setting = Setting { sizes: &[900, 0], ..Setting::of(5.0, Bytes(1200)) };
        let said = |text: &str, setting: &Setting<'_>| {
            build(&text.parse().unwrap(), setting).unwrap_err().to_string()
        };
        assert_eq!(
            said("trace", &Setting::of(5.0, Bytes(1200))),
            "frames of trace must be the sizes of frames, or name a file of them"
        );
        assert_eq!(
            said("trace(skip=1)", &setting),
            "skip of trace leaves no frame with any bytes of the trace's 2"
        );
        assert_eq!(
            read_sizes("0\n# end\n").unwrap_err().to_string(),
            "line 1: no frame of the trace has any bytes"
        );
    }
}
