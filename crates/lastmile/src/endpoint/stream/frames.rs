//! From frames to packets: the source, and what waits for the pacer.

use std::collections::VecDeque;

use super::MAX_FRAME_PACKETS;
use super::source::FrameSource;
use crate::time::{Span, Time};
use crate::units::{Bytes, Rate};

/// A frame that comes while more than this waits, at the pacing rate, is left out. An encoder's large frame, three of its mean,
/// may wait.
const MAX_WAIT: Span = Span::from_millis(500);
const MAX_WAIT_FRAMES: i64 = 4;

/// A packet that was made and has not left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    /// When its frame was due.
    pub(super) frame: Time,
    /// It is the last of its frame.
    pub(super) marker: bool,
    /// Bytes of its IP packet.
    pub(super) size: u64,
}

/// The source, and the packets of its frames that have not left.
#[derive(Debug)]
pub(super) struct Frames {
    source: Box<dyn FrameSource>,
    /// When the next frame is due.
    pub(super) next: Time,
    waiting: VecDeque<Waiting>,
    bytes: u64,
}

impl Frames {
    pub(super) fn new(source: Box<dyn FrameSource>, start: Time) -> Frames {
        Frames { source, next: start, waiting: VecDeque::new(), bytes: 0 }
    }

    /// The least and the most that the source makes.
    pub(super) fn range(&self) -> (Rate, Rate) {
        self.source.range()
    }

    /// Makes the frame that is due, in packets of `full` bytes at most and `smallest` at least. It is left out where at the
    /// pacing rate what waits already takes too long.
    pub(super) fn make(&mut self, target: Rate, pacing: Option<Rate>, full: u64, smallest: u64) -> bool {
        let at = self.next;
        let frame = self.source.frame(at, target, Bytes(self.bytes));
        self.next = at + frame.next.max(Span::from_nanos(1));
        // A source that makes whole packets may have none.
        if frame.size == Bytes::ZERO {
            return true;
        }
        let most = MAX_WAIT.max(frame.next * MAX_WAIT_FRAMES);
        if pacing.is_some_and(|pacing| pacing.time_for(Bytes(self.bytes)) > most) {
            return false;
        }
        let full = full.max(smallest);
        let bytes = frame.size.0.clamp(smallest, full.saturating_mul(MAX_FRAME_PACKETS));
        let packets = bytes.div_ceil(full);
        for index in 0..packets {
            let size = (bytes * (index + 1) / packets - bytes * index / packets).max(smallest);
            self.waiting.push_back(Waiting { frame: at, marker: index + 1 == packets, size });
            self.bytes += size;
        }
        true
    }

    /// How many packets wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Takes the packet that waits for longest.
    pub(super) fn pop(&mut self) -> Option<Waiting> {
        let packet = self.waiting.pop_front()?;
        self.bytes -= packet.size;
        Some(packet)
    }
}
