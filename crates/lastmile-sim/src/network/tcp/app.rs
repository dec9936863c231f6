//! [`App`]: the data that a sender has to send, and their times.

use lastmile::rng::Stream;
use lastmile::time::{Span, Time};
use lastmile::units::Bytes;
use serde::Deserialize;

use crate::network::config_error::{ConfigError, require};
use crate::text;

/// Data that a sender has to send.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum App {
    /// As much as goes, from start to stop: FTP of a large file.
    #[default]
    Bulk,
    /// One transfer.
    File {
        /// Its bytes.
        #[serde(deserialize_with = "text::unit")]
        size: Bytes,
    },
    /// Transfers with pauses between, each as a new connection (RFC 8867, section 5.7: 30 to 50 kB, exponential
    /// pauses of 10 s on the mean).
    Files {
        /// Their sizes.
        size: FileSize,
        /// The mean of the exponentially distributed pause after each, and before the first.
        #[serde(deserialize_with = "text::unit")]
        pause: Span,
    },
}

/// More would not be counted in segments of one byte, and no run lasts so long.
const MAX_FILE: Bytes = Bytes(1 << 47);

impl App {
    /// Says what is impossible about it.
    pub fn check(&self) -> Result<(), ConfigError> {
        let size = |size: Bytes| (Bytes(1)..=MAX_FILE).contains(&size);
        match self {
            App::Bulk => Ok(()),
            App::File { size: file } => {
                require(size(*file), "size", "a file has at least one byte, and at most 2^47")
            }
            App::Files { size: FileSize { min, max }, pause } => {
                let reason = "a file has at least one byte, at most 2^47, and min is not above max";
                require(size(*min) && size(*max) && min <= max, "size", reason)?;
                require(*pause > Span::ZERO, "pause", "files without a pause between them would be one file")
            }
        }
    }
}

/// Sizes drawn uniformly between two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSize {
    /// The smallest.
    #[serde(deserialize_with = "text::unit")]
    pub min: Bytes,
    /// The largest.
    #[serde(deserialize_with = "text::unit")]
    pub max: Bytes,
}

/// An [`App`] at work: the number of segments to send.
#[derive(Debug)]
pub(super) struct Supply {
    app: App,
    random: Stream,
    segment: u64,
    /// The first segment that there is not.
    pub(super) end: u64,
    /// Bytes of the last one.
    pub(super) last: u32,
    /// When `end` changes by itself next: a start or the stop.
    pub(super) next: u64,
    stop: u64,
    /// When the present transfer began, if one is under way.
    since: Option<u64>,
    pub(super) transfers: u64,
    pub(super) transfer_time: Span,
}

impl Supply {
    pub(super) fn new(app: App, segment: u32, start: Time, stop: Time, mut random: Stream) -> Supply {
        let pause = match &app {
            App::Files { pause, .. } => exponential(&mut random, *pause),
            _ => 0,
        };
        Supply {
            app,
            random,
            segment: u64::from(segment),
            end: 0,
            last: segment,
            next: start.as_nanos().saturating_add(pause),
            stop: stop.as_nanos(),
            since: None,
            transfers: 0,
            transfer_time: Span::ZERO,
        }
    }

    /// `next` has come. `max` is the first segment never sent. Says whether a new transfer begins.
    pub(super) fn change(&mut self, now: u64, max: u64) -> bool {
        if now >= self.stop {
            // A bulk transfer ends with what was sent; files that have begun are finished.
            if self.app == App::Bulk {
                self.end = max;
            }
            self.next = u64::MAX;
            return false;
        }
        let size = match &self.app {
            App::Bulk => {
                self.end = u64::MAX;
                self.next = self.stop;
                return true;
            }
            App::File { size } => size.0,
            App::Files { size, .. } => {
                let range = size.max.0.saturating_sub(size.min.0);
                size.min.0.saturating_add((self.random.unit() * (range as f64 + 1.0)) as u64)
            }
        };
        let size = size.max(1);
        let segments = size.div_ceil(self.segment);
        self.end = max.saturating_add(segments);
        self.last = (size - (segments - 1) * self.segment) as u32;
        self.since = Some(now);
        self.next = u64::MAX;
        true
    }

    /// All below `una` is acknowledged.
    #[inline]
    pub(super) fn acknowledged(&mut self, now: u64, una: u64) {
        if una >= self.end
            && let Some(since) = self.since.take()
        {
            self.transfers += 1;
            self.transfer_time += Span::from_nanos((now - since) as i64);
            if let App::Files { pause, .. } = &self.app {
                // Not at this very moment: a pause of no time would send for ever.
                self.next = now.saturating_add(exponential(&mut self.random, *pause).max(1));
            }
        }
    }
}

fn exponential(random: &mut Stream, mean: Span) -> u64 {
    libm::round(random.exponential(mean.as_nanos().max(0) as f64)) as u64
}
