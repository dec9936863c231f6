//! A station of a WLAN: one FIFO queue, and its part in the contention.

use std::collections::VecDeque;

use lastmile::node::Datagram;
use lastmile::rng::Stream;

use crate::network::link::Waits;

/// A packet in a station's queue.
#[derive(Debug)]
pub(super) struct Packet {
    pub(super) datagram: Datagram,
    /// The port at which it entered: its association and direction.
    pub(super) port: u16,
    /// MAC frame in bytes, header and FCS included.
    pub(super) frame: u32,
    /// When it came.
    pub(super) since: u64,
    /// Transmissions of the frame itself.
    pub(super) attempts: u8,
    /// Requests to send it that went unanswered.
    pub(super) requests: u8,
    pub(super) collisions: u8,
    pub(super) channel_errors: u8,
    /// True if the last failure was a collision.
    pub(super) collided_last: bool,
    /// True if the receiver has it. Behind a missing packet the receiver holds it back to keep the order.
    pub(super) received: bool,
}

/// A station. Slots are counted on the medium's own count of idle slots, which stands still while the medium is
/// busy: this freezes and resumes every station's backoff without touching it.
#[derive(Debug)]
pub(super) struct Station {
    pub(super) queue: VecDeque<Packet>,
    pub(super) limit: usize,
    /// The most packets that it ever held.
    pub(super) longest: usize,
    /// Bytes of frames that have been in it and left, times the nanoseconds that each was.
    waited: u128,
    /// The idle slot at which its backoff ends or has ended.
    pub(super) backoff: u64,
    /// The exchange after which that was drawn.
    pub(super) drawn_in: u64,
    pub(super) window: u32,
    /// Positions in the queue of what it has on the air.
    pub(super) on_air: Vec<u32>,
    /// The port and the rate of an aggregate whose block ack did not come and is to be asked for.
    pub(super) unanswered: Option<(usize, usize)>,
    /// Requests for that block ack in vain.
    pub(super) asked: u8,
    pub(super) random: Stream,
}

impl Station {
    pub(super) fn new(limit: u32, window: u32, random: Stream) -> Station {
        Station {
            queue: VecDeque::new(),
            limit: limit as usize,
            longest: 0,
            waited: 0,
            backoff: 0,
            drawn_in: 0,
            window,
            on_air: Vec::new(),
            unanswered: None,
            asked: 0,
            random,
        }
    }

    #[inline]
    pub(super) fn push(&mut self, packet: Packet) {
        self.queue.push_back(packet);
        self.longest = self.longest.max(self.queue.len());
    }

    #[inline]
    pub(super) fn remove(&mut self, position: usize, now: u64) -> Option<Packet> {
        let packet = self.queue.remove(position)?;
        self.waited += u128::from(packet.frame) * u128::from(now.saturating_sub(packet.since));
        Some(packet)
    }

    /// Frames in the queue at `now`.
    pub(super) fn waits(&self, now: u64) -> Waits {
        let mut waits = Waits { total: self.waited, ..Waits::default() };
        self.queue.iter().for_each(|packet| waits.add(packet.frame, packet.since, now));
        waits
    }

    /// Draws a backoff that counts from the idle slot `from` on (10.3.3).
    #[inline]
    pub(super) fn draw(&mut self, from: u64, exchange: u64) {
        // The high half of a product with 32 random bits: uniform within 2^-32 of its share.
        let random = self.random.bits() >> 32;
        self.backoff = from + ((random * (u64::from(self.window) + 1)) >> 32);
        self.drawn_in = exchange;
    }

    /// Doubles the window after a failure (10.3.3).
    #[inline]
    pub(super) fn widen(&mut self, max: u32) {
        self.window = (2 * self.window + 1).min(max);
    }
}
