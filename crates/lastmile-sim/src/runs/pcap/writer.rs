//! Blocks of a pcapng file: draft-ietf-opsawg-pcapng, sections 4.1 (section header), 4.2 (interface), 4.3 (enhanced
//! packet), 4.6 (interface statistics).

use std::io::{self, Write};

use lastmile::time::Time;

/// Raw IP, IPv4 and IPv6 alike (LINKTYPE_RAW).
const LINK_TYPE: u16 = 101;
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const STATISTICS: u32 = 5;
const PACKET: u32 = 6;
/// No packet has more bytes than this; those without bytes of their own have some 50.
const SNAP: u32 = 65_535;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
pub(super) const INBOUND: u32 = 1;
pub(super) const OUTBOUND: u32 = 2;

/// What stands in a packet's block beside its bytes.
pub(super) struct About<'a> {
    pub(super) interface: u32,
    pub(super) at: Time,
    /// Zero where the interface has no direction.
    pub(super) direction: u32,
    /// Packets that the interface lost since the one before, and why.
    pub(super) lost: u64,
    pub(super) comment: &'a str,
}

/// Writes blocks.
pub(super) struct Writer<W> {
    out: W,
    block: Vec<u8>,
    /// The first error; nothing is written after it.
    pub(super) failed: Option<io::Error>,
}

impl<W: Write> Writer<W> {
    pub(super) fn new(out: W) -> Writer<W> {
        Writer { out, block: Vec::new(), failed: None }
    }

    /// Writes out what is still held back.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }

    fn flush_block(&mut self, kind: u32) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
        let length = (self.block.len() as u32 + 12).to_le_bytes();
        if self.failed.is_none() {
            let parts: [&[u8]; 4] = [&kind.to_le_bytes(), &length, &self.block, &length];
            self.failed = parts.iter().try_for_each(|part| self.out.write_all(part)).err();
        }
        self.block.clear();
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        self.block.extend_from_slice(&code.to_le_bytes());
        self.block.extend_from_slice(&(value.len() as u16).to_le_bytes());
        self.block.extend_from_slice(value);
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn time(&mut self, at: Time) {
        for word in [(at.as_nanos() >> 32) as u32, at.as_nanos() as u32] {
            self.block.extend_from_slice(&word.to_le_bytes());
        }
    }

    pub(super) fn section(&mut self) {
        self.block.extend_from_slice(&BYTE_ORDER.to_le_bytes());
        self.block.extend_from_slice(&[1, 0, 0, 0]); // version 1.0
        self.block.extend_from_slice(&u64::MAX.to_le_bytes()); // length unknown
        self.option(4, b"lastmile"); // shb_userappl
        self.option(0, b"");
        self.flush_block(SECTION);
    }

    pub(super) fn interface(&mut self, name: &str, description: &str) {
        self.block.extend_from_slice(&LINK_TYPE.to_le_bytes());
        self.block.extend_from_slice(&[0, 0]); // reserved
        self.block.extend_from_slice(&SNAP.to_le_bytes());
        self.option(2, name.as_bytes()); // if_name
        self.option(3, description.as_bytes()); // if_description
        self.option(9, &[9]); // if_tsresol: 10^-9 s
        self.option(0, b"");
        self.flush_block(INTERFACE);
    }

    pub(super) fn packet(&mut self, about: &About<'_>, bytes: &[u8], original: u32) {
        self.block.extend_from_slice(&about.interface.to_le_bytes());
        self.time(about.at);
        for word in [bytes.len() as u32, original] {
            self.block.extend_from_slice(&word.to_le_bytes());
        }
        self.block.extend_from_slice(bytes);
        self.block.resize(self.block.len().next_multiple_of(4), 0);
        if about.direction != 0 {
            self.option(2, &about.direction.to_le_bytes()); // epb_flags
        }
        if about.lost > 0 {
            self.option(4, &about.lost.to_le_bytes()); // epb_dropcount
            self.option(1, about.comment.as_bytes()); // opt_comment
        }
        if about.direction != 0 || about.lost > 0 {
            self.option(0, b"");
        }
        self.flush_block(PACKET);
    }

    /// How many packets an interface had, and how many it lost, up to `at`.
    pub(super) fn statistics(&mut self, interface: u32, at: Time, packets: u64, lost: u64) {
        self.block.extend_from_slice(&interface.to_le_bytes());
        self.time(at);
        self.option(4, &packets.to_le_bytes()); // isb_ifrecv
        self.option(5, &lost.to_le_bytes()); // isb_ifdrop
        self.option(0, b"");
        self.flush_block(STATISTICS);
    }
}
