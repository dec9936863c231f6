//! Streaming: a sender of RTP at a fixed rate, or at a rate controller's, and its receiver, as [`Node`](crate::node::Node)s.
//!
//! The sender's frames have a size and no content, unless it is given a source of video ([`Sender::with_source`]), and the packets of each leave evenly over the frame's
//! time. A receiver can put video together and give it to a viewer ([`Receiver::with_viewer`]). The
//! receiver answers with congestion control feedback (RFC 8888) at its interval, or with its own receive rate and loss event
//! rate where the sender's packets ask for them (`tfrc(form=receiver)`), and with receiver reports (RFC 3550) each second; the sender reports each second as well. RTP and RTCP share the port (RFC 5761); feedback between two reports
//! stands alone in its datagram (RFC 5506).
//!
//! A receiver answers a source once two packets came in sequence, and never with more bytes than came from it. A sender
//! whose feedback stops ends.

mod admission;
mod answers;
mod breaker;
mod config;
mod control;
mod event;
mod flight;
mod frames;
mod heard;
mod missing;
mod outgoing;
mod playout;
mod receipts;
mod receiver;
mod receiver_config;
mod repeater;
mod sender;
mod signals;
pub mod source;
mod summary;
mod viewing;

pub use config::{ControlConfig, MAX_FRAME_PACKETS, Retransmission, SenderConfig, SenderRate, SourceConfig};
pub use event::{Decision, End, Left, Received, Sent};
pub use playout::{FrameSink, PlayedFrame, Viewed};
pub use receiver::Receiver;
pub use receiver_config::{FeedbackInterval, ReceiverConfig};
pub use sender::Sender;

use crate::time::{Epoch, Span, Time};
use crate::wire::TimestampFormat;

/// Ticks of the media's clock in a second: that of video (RFC 3551, section 5).
pub const CLOCK_RATE: u32 = 90_000;
/// Dynamic payload type (RFC 3551, section 6) of media.
pub const MEDIA: u8 = 96;
/// The same of packets that are sent again.
pub const RETRANSMITTED: u8 = 97;
/// Payload type of packets that carry nothing: a receiver ignores types that it does not know (RFC 3550, section 5.1).
pub const PADDING: u8 = 98;
/// Packets of which feedback is awaited: more than any path holds within its interval.
const MAX_AWAITED: usize = 16_384;
/// Payload type of audio beside video.
pub const AUDIO: u8 = 99;
/// Time between reports, of both ends.
const REPORT_EVERY: Span = Span::from_secs(1);

/// A moment on the media's clock, modulo 2^32.
fn ticks(at: Time) -> u32 {
    (u128::from(at.as_nanos()) * u128::from(CLOCK_RATE) / 1_000_000_000) as u32
}

/// A moment as an NTP timestamp.
fn ntp(epoch: Epoch, at: Time) -> u64 {
    TimestampFormat::Ntp.from_unix_nanos(epoch.unix_nanos(at))
}

/// The middle 32 bits of an NTP timestamp.
fn middle(ntp: u64) -> u32 {
    (ntp >> 16) as u32
}

/// The whole number of which `low` is the lowest 16 bits that is nearest to another.
fn nearest(to: u64, low: u16) -> Option<u64> {
    let ahead = low.wrapping_sub(to as u16) as i16;
    to.checked_add_signed(ahead.into())
}
