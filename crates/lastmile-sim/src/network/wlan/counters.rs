//! Counters of a WLAN: packets by fate, transmissions by outcome, and the air by use.

use lastmile::time::Span;
use lastmile::units::Bytes;

/// One direction of one association.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectionCounters {
    /// Packets that came to the sender's queue, dropped ones included.
    pub arrived: u64,
    /// Packets handed over by the receiver.
    pub delivered: u64,
    /// IP bytes handed over.
    pub delivered_bytes: Bytes,
    /// Packets lost, by cause.
    pub lost_collision: u64,
    /// See [`LossCause::Channel`](crate::network::lost::LossCause::Channel).
    pub lost_channel: u64,
    /// See there.
    pub lost_queue: u64,
    /// See there.
    pub lost_handoff: u64,
    /// Transmissions; an aggregate is one.
    pub transmissions: u64,
    /// Transmissions that repeat one, or its request to send.
    pub retries: u64,
    /// Sum of the rates of its transmissions of data, kbit/s.
    pub rates_kbps: u64,
    /// Transmissions that collided.
    pub collisions: u64,
    /// Frames transmitted; an aggregate has many.
    pub frames: u64,
    /// Frames that noise destroyed.
    pub channel_errors: u64,
    /// Air that its transmissions took, with their responses and retries.
    pub airtime: Span,
}

impl DirectionCounters {
    /// Packets lost.
    pub fn lost(&self) -> u64 {
        self.lost_collision + self.lost_channel + self.lost_queue + self.lost_handoff
    }
}

/// Use of the air, up to the end of the exchange that is under way. The rest of the elapsed time
/// was idle: waiting between frames, backoff, or nothing to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Airtime {
    /// Exchanges that brought something through, with their responses.
    pub success: Span,
    /// Collisions, to the end of the longest frame.
    pub collision: Span,
    /// Frames that noise destroyed.
    pub error: Span,
    /// Time that the exchanges take beside: the interframe space after each, and the backoff drawn by each sender for its
    /// next. It counts in full also if backoffs of several stations ran at once or nobody had anything to
    /// send, as if the exchanges came one after the other.
    pub access: Span,
    /// Exchanges of each kind.
    pub successes: u64,
    /// See [`collision`](Airtime::collision).
    pub collisions: u64,
    /// See [`error`](Airtime::error).
    pub errors: u64,
}

impl Airtime {
    /// All of it that the medium was busy.
    pub fn total(&self) -> Span {
        self.success + self.collision + self.error
    }

    /// Time that the exchanges need one after the other: their own time and [`access`](Airtime::access).
    pub fn needed(&self) -> Span {
        self.total() + self.access
    }
}
