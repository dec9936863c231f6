//! Our own TLVs, with type numbers of the experimental range (RFC 8972, 5.1): Hello 243, Stream 244, Report 245,
//! Schedule 248.
//!
//! Anybody may use such a number, so every value begins with a magic and a layout number; a value without them is
//! somebody else's ([`WireError::NotOurs`]) and is treated as an unknown TLV. A plain STAMP reflector returns them
//! with the flag U, which tells a sender that it has to make do with standard STAMP.
//!
//! ```text
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |       'L'     |      'S'      |      'M'      |   Layout = 1  |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! Use together:
//!
//! - **Forward stream without replies**: each probe has Stream, Return Path (no reply), and Extra Padding up to the
//!   probe's size. The arrivals are then fetched page by page with Report requests, each as large as the page.
//! - **Reverse stream**: one request with Stream (id, first index, count of the stream) and Reflected Test Packet
//!   Control (number, length and interval of the packets for this request). Each reflected packet carries the Stream
//!   tag with its own index. [`StreamTag::burst`] adds a field that the Control TLV lacks, groups of packets back to
//!   back, so that a run of packet pairs is one request; a [`Schedule`] beside has the
//!   gaps of a stream that is not evenly spaced. No Return Path (no reply) beside a Control TLV: the draft
//!   forbids it. The times at which the packets left are fetched with a Report request for departures.
//! - **Hello** first: versions, abilities, the address-proof token that Stream and Report echo, and the credit.

mod hello;
mod report;
mod schedule;
mod stream;

pub use hello::{Abilities, HELLO_LEN, HelloReply, HelloRequest, Offer};
pub use report::{
    Arrival, MIN_REPORT_LEN, REPORT_ENTRY_LEN, REPORT_HEADER_LEN, ReportHeader, ReportKind, ReportPage,
    ReportRequest, ReportStatus, page_capacity, write_report,
};
pub use schedule::{MAX_GAPS, Schedule};
pub use stream::{STREAM_LEN, StreamTag};

use super::{TlvType, WireError};

/// Bytes of the address-proof token.
pub const TOKEN_LEN: usize = 16;

/// Proof that its sender receives at its address: the reflector gave it out in a Hello reply. All zeros: none yet.
pub type Token = [u8; TOKEN_LEN];

const MAGIC: [u8; 3] = *b"LSM";
const LAYOUT: u8 = 1;
/// Magic and layout number.
const PREFIX: [u8; 4] = [MAGIC[0], MAGIC[1], MAGIC[2], LAYOUT];

/// Checks magic and layout. A value too short for them is not ours either.
fn check_prefix(kind: TlvType, value: &[u8]) -> Result<(), WireError> {
    match value.first_chunk() {
        Some(&[a, b, c, layout]) if [a, b, c] == MAGIC => match layout {
            LAYOUT => Ok(()),
            layout => Err(WireError::Layout { kind: kind.0, layout }),
        },
        _ => Err(WireError::NotOurs { kind: kind.0 }),
    }
}
