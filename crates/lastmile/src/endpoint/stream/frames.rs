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
/// A coded frame is left out, before it is made, while more than this waits: a key frame of five means takes no longer at 30 in a second.
const MAX_WAIT_CODED: Span = Span::from_millis(150);
/// A source answers a new target within this.
const ANSWERS: Span = Span::from_millis(100);
/// It has too little to send where it makes less than this share of the target, over so long.
const ENOUGH: f64 = 0.75;
const LATELY: Span = Span::from_secs(1);

/// A packet that was made and has not left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    /// When its frame was due.
    pub(super) frame: Time,
    /// It is the last of its frame.
    pub(super) marker: bool,
    /// Bytes of its IP packet.
    pub(super) size: u64,
    /// Its payload, where it has a content.
    pub(super) content: Option<Vec<u8>>,
}

/// The source, and the packets of its frames that have not left.
#[derive(Debug)]
pub(super) struct Frames {
    source: Box<dyn FrameSource>,
    /// When the next frame is due.
    pub(super) next: Time,
    waiting: VecDeque<Waiting>,
    pub(super) waiting_bytes: u64,
    /// The time that it took to make the last frame.
    pub(super) took: Span,
    /// The size of full packets.
    full_size: u64,
    /// When the frame of the packet that left last was due.
    last_frame: Time,
    /// Bytes that trains were filled up with; frames to come are smaller for them.
    filling: u64,
    /// Targets of late, and bytes of late that these asked for and that the source made.
    targets: VecDeque<(Time, Rate)>,
    asked: f64,
    made: f64,
}

impl Frames {
    /// Frames cut into packets of `full` bytes at most.
    pub(super) fn new(source: Box<dyn FrameSource>, start: Time, full: Bytes) -> Frames {
        let waiting = VecDeque::new();
        Frames {
            source,
            next: start,
            waiting,
            waiting_bytes: 0,
            took: Span::ZERO,
            full_size: full.0,
            last_frame: start,
            filling: 0,
            targets: VecDeque::new(),
            asked: 0.0,
            made: 0.0,
        }
    }

    /// Packets have that size at most from the next frame on.
    pub(super) fn resize(&mut self, full: Bytes) {
        self.full_size = full.0;
        self.source.resize(full);
    }

    /// The least and the most that the source makes.
    pub(super) fn range(&self) -> (Rate, Rate) {
        self.source.range()
    }

    /// Makes the frame that is due, in packets of `smallest` bytes at least, of which the first `whole` are full where there is as
    /// much; the others are alike. It is left out where what waits already takes too long, which is `wait`.
    pub(super) fn make(&mut self, target: Rate, wait: Span, smallest: u64, whole: u64) -> bool {
        if self.source.is_coded() {
            return self.make_coded(target, wait, smallest - 1);
        }
        let at = self.next;
        let frame = self.source.frame(at, target, Bytes(self.waiting_bytes));
        self.next = at + frame.next.max(Span::from_nanos(1));
        self.count(target, frame.size, self.next - at);
        // A source that makes whole packets may have none.
        if frame.size == Bytes::ZERO {
            return true;
        }
        let most = MAX_WAIT.max(frame.next * MAX_WAIT_FRAMES);
        if wait > most {
            return false;
        }
        let full = self.full_size.max(smallest);
        let filled = self.filling.min(frame.size.0 / 2);
        self.filling -= filled;
        let bytes = (frame.size.0 - filled).clamp(smallest, full.saturating_mul(MAX_FRAME_PACKETS));
        let whole = whole.min(bytes / full);
        let rest = bytes - whole * full;
        let others = rest.div_ceil(full);
        for index in 0..whole + others {
            let size = match index.checked_sub(whole) {
                None => full,
                Some(index) => (rest * (index + 1) / others - rest * index / others).max(smallest),
            };
            let marker = index + 1 == whole + others;
            self.waiting.push_back(Waiting { frame: at, marker, size, content: None });
            self.waiting_bytes += size;
        }
        true
    }

    /// The same of a source whose frames have content: packets are its payloads with so many bytes of headers.
    fn make_coded(&mut self, target: Rate, wait: Span, headers: u64) -> bool {
        let at = self.next;
        if wait > MAX_WAIT_CODED {
            self.next = at + self.source.skip().max(Span::from_nanos(1));
            return false;
        }
        let frame = self.source.frame(at, target, Bytes(self.waiting_bytes));
        self.next = at + frame.next.max(Span::from_nanos(1));
        self.took = self.source.took();
        let payloads = self.source.payloads();
        let (mut left, mut bytes) = (payloads.len(), 0);
        for content in payloads {
            left -= 1;
            let size = content.len() as u64 + headers;
            bytes += size;
            self.waiting.push_back(Waiting { frame: at, marker: left == 0, size, content: Some(content) });
        }
        self.waiting_bytes += bytes;
        self.count(target, Bytes(bytes), self.next - at);
        true
    }

    /// True if packets have content.
    pub(super) fn is_coded(&self) -> bool {
        self.source.is_coded()
    }

    /// True if they repeat what the screen shows.
    pub(super) fn stand_still(&self) -> bool {
        self.source.stands_still()
    }

    /// True if no more frames will come.
    pub(super) fn has_ended(&self) -> bool {
        self.source.has_ended()
    }

    /// Counts a frame against the least target of the time within which a source answers, over a second or so.
    fn count(&mut self, target: Rate, size: Bytes, time: Span) {
        let (at, keeps) = (self.next, 1.0 - (time.as_secs_f64() / LATELY.as_secs_f64()).min(1.0));
        self.targets.push_back((at, target));
        while self.targets.front().is_some_and(|(since, _)| *since + ANSWERS < at) {
            self.targets.pop_front();
        }
        let least =
            self.targets.iter().map(|(_, rate)| rate.bits_per_second()).min().map_or(target, Rate::ip);
        self.asked = keeps * self.asked + least.bytes_in(time).0 as f64;
        self.made = keeps * self.made + size.0 as f64;
    }

    /// True if the source makes clearly less than it is asked for, and none of it waits. Not of a source that keeps packets waiting on purpose.
    pub(super) fn lack(&self) -> bool {
        let all = self.made < ENOUGH * self.asked && !self.source.is_on_demand();
        // All that waits is of the frame that was made last.
        all && self
            .waiting
            .front()
            .is_none_or(|first| Some(first.frame) == self.waiting.back().map(|last| last.frame))
    }

    /// Has the source make a picture that needs none before it.
    pub(super) fn key_frame(&mut self) {
        self.source.key_frame();
    }

    /// Packets that wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Their bytes, but those of a source that keeps packets waiting on purpose.
    pub(super) fn backlog(&self) -> Option<Bytes> {
        (!self.source.is_on_demand()).then_some(Bytes(self.waiting_bytes))
    }

    /// The size of the packet that waits for longest.
    pub(super) fn next_size(&self) -> Bytes {
        Bytes(self.waiting.front().map_or(0, |packet| packet.size))
    }

    /// A full packet that carries nothing.
    pub(super) fn padding(&self, smallest: u64) -> Waiting {
        Waiting { frame: self.last_frame, marker: false, size: self.full_size.max(smallest), content: None }
    }

    /// Takes the packet that waits for longest.
    pub(super) fn pop(&mut self) -> Option<Waiting> {
        let packet = self.waiting.pop_front()?;
        self.waiting_bytes -= packet.size;
        self.last_frame = packet.frame;
        Some(packet)
    }

    /// True if a train of packets of that size begins with the packet that waits for longest: it has that size, or is smaller
    /// and none that waits has it.
    pub(super) fn begins(&self, size: u64) -> bool {
        let first = self.waiting.front().map_or(0, |packet| packet.size);
        first == size || first < size && self.waiting.iter().all(|packet| packet.size != size)
    }

    /// Takes the packet that waits for longest, filled up to that size; nothing but filling where none waits that small.
    pub(super) fn pop_filled(&mut self, size: u64) -> Waiting {
        // RTP's padding has a count of one byte.
        let most = |packet: &Waiting| if packet.content.is_some() { packet.size + 255 } else { u64::MAX };
        let fits = self.waiting.front().is_some_and(|packet| packet.size <= size && size <= most(packet));
        let packet = if fits { self.pop() } else { None };
        let packet =
            packet.unwrap_or(Waiting { frame: self.last_frame, marker: false, size: 0, content: None });
        if !self.is_coded() {
            self.filling += size - packet.size;
        }
        Waiting { size, ..packet }
    }
}
