//! The simulator's TCP packets as TCP: RFC 9293 (header), RFC 2018 (SACK), RFC 3168 (ECE, CWR).
//!
//! A model counts segments; a header counts bytes. The first byte of segment n has the number `1 + n x segment`, less what earlier
//! segments were shorter. Without handshake and window in the model there is none here: the window says 65535 throughout.

use std::collections::VecDeque;

use etherparse::TcpOptionElement::{Noop, SelectiveAcknowledgement};
use etherparse::{TcpHeader, TcpOptions};
use lastmile::node::Model;

use crate::network::tcp::{Ack, Segment};

/// Short segments that are remembered one by one: one is under way at most, before the next file begins.
const REMEMBERED: usize = 64;

/// Start of each segment of a connection in its byte stream.
#[derive(Debug)]
pub(super) struct Connection {
    /// Data bytes of a full segment.
    segment: u64,
    /// Short segments: number, and bytes that all up to it lack.
    short: VecDeque<(u64, u64)>,
    /// Bytes that short segments lack which are no longer remembered.
    forgotten: u64,
}

impl Connection {
    pub(super) fn new(segment: u64) -> Connection {
        Connection { segment: segment.max(1), short: VecDeque::new(), forgotten: 0 }
    }

    /// The sequence number of a segment's first byte.
    fn number(&self, segment: u64) -> u32 {
        let before = self.short.iter().rev().find(|(short, _)| *short < segment);
        let lacking = before.map_or(self.forgotten, |(_, lacking)| *lacking);
        segment.wrapping_mul(self.segment).wrapping_sub(lacking).wrapping_add(1) as u32
    }

    fn note(&mut self, segment: &Segment) {
        let lacks = self.segment.saturating_sub(u64::from(segment.bytes));
        let (last, before) = self.short.back().copied().map_or((None, self.forgotten), |(n, l)| (Some(n), l));
        if lacks > 0 && last.is_none_or(|last| last < segment.seq) {
            self.short.push_back((segment.seq, before + lacks));
            if self.short.len() > REMEMBERED
                && let Some((_, lacking)) = self.short.pop_front()
            {
                self.forgotten = lacking;
            }
        }
    }
}

/// The header of a model packet of that connection, ports and checksum still zero, and the number of data bytes, all
/// zeros, that follow it; `None` for a packet that is neither segment nor ACK. `room` is the packet's size less the IP
/// header. Padding fills the room that options leave. An ACK whose SACK blocks need more room is longer than it was
/// simulated.
pub(super) fn header(connection: &mut Connection, model: &Model, room: usize) -> Option<(TcpHeader, usize)> {
    let mut header = TcpHeader { ack: true, window_size: 65_535, ..TcpHeader::default() };
    let (mut options, mut data) = (Vec::new(), 0);
    if let Some(segment) = Segment::read(model) {
        connection.note(&segment);
        data = segment.bytes as usize;
        header.cwr = segment.cwr;
        (header.sequence_number, header.acknowledgment_number) = (connection.number(segment.seq), 1);
    } else {
        let ack = Ack::read(model)?;
        header.ece = ack.ece;
        (header.sequence_number, header.acknowledgment_number) = (1, connection.number(ack.next));
        let numbers = |&(start, end): &(u64, u64)| (connection.number(start), connection.number(end));
        let mut blocks = ack.blocks.iter().filter(|(start, end)| end > start).map(numbers);
        if let Some(first) = blocks.next() {
            let more = [blocks.next(), blocks.next(), blocks.next()];
            // Two no-operations align it.
            options = vec![Noop, Noop, SelectiveAcknowledgement(first, more)];
        }
    }
    header.set_options(&options).ok()?;
    let padding =
        room.saturating_sub(data + header.header_len()).min(TcpOptions::MAX_LEN - header.options.len());
    options.resize(options.len() + padding.next_multiple_of(4), Noop);
    header.set_options(&options).ok()?;
    Some((header, data))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(connection: &mut Connection, seq: u64, bytes: u32) -> (u32, usize, usize) {
        let model = Segment { seq, sent: 7, bytes, cwr: false }.model(40);
        let (header, data) = header(connection, &model, model.ip_size as usize - 20).unwrap();
        (header.sequence_number, header.header_len(), data)
    }

    #[test]
    fn numbers_count_bytes_and_short_segments_are_short() {
        let mut it = Connection::new(1000);
        assert_eq!(segment(&mut it, 0, 1000), (1, 20, 1000));
        assert_eq!(segment(&mut it, 1, 300), (1001, 20, 300));
        assert_eq!(segment(&mut it, 2, 1000), (1301, 20, 1000));
        assert_eq!(segment(&mut it, 1, 300).0, 1001, "sent again");
        for file in 0..1_000 {
            assert_eq!(segment(&mut it, 3 + file, 1).0, 2301 + file as u32);
        }
        assert_eq!(it.short.len(), REMEMBERED);
        assert_eq!(segment(&mut it, 1_003, 1000).0, 3301);
        let mut wrapped = Connection::new(1 << 16);
        assert_eq!(segment(&mut wrapped, 1 << 16, 1 << 16).0, 1);
    }

    #[test]
    fn acks_have_their_blocks_and_flags() {
        let mut it = Connection::new(10);
        let blocks = [(7, 9), (4, 5), (3, 3)];
        let model = Ack { next: 3, echo: 0, ece: true, blocks }.model(40);
        let (header, data) = header(&mut it, &model, 20).unwrap();
        let bytes = header.to_bytes();
        assert_eq!((bytes.len(), data), (40, 0));
        assert_eq!(bytes[4..14], [0, 0, 0, 1, 0, 0, 0, 31, 0xa0, 0x50]);
        assert_eq!(bytes[20..24], [1, 1, 5, 18]);
        assert_eq!(bytes[24..40], [0, 0, 0, 71, 0, 0, 0, 91, 0, 0, 0, 41, 0, 0, 0, 51]);
    }
}
