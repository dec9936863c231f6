//! An access unit from the payloads of its RTP packets, in order (RFC 6184, sections 5.6 to 5.8).

use super::{END, FLAGS, FU_A, IDR_SLICE, PROPER, SLICE, STAP_A, START, nal_type, write_nal_unit};

/// The coded pictures of one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessUnit {
    /// Of its packets, on the media's clock.
    pub timestamp: u32,
    /// Its NAL units as a byte stream, without those that are not whole.
    pub bytes: Vec<u8>,
    /// True if no part of it is missing, as far as its packets tell.
    pub whole: bool,
    /// True if it has a picture from which decoding can begin.
    pub key: bool,
    /// Packets missing between the unit before and its end.
    pub lost: u64,
    /// NAL units left out: a part is missing, or they cannot be read.
    pub broken: u64,
}

/// True if a payload is the first of a picture: its first slice has the macroblock 0, a 1 as its first bit (H.264, 7.3.3), and no other unit
/// follows slices.
pub(super) fn begins_picture(payload: &[u8]) -> bool {
    let unit_begins = |unit: &[u8]| match unit {
        [first, second, ..] if (SLICE..=IDR_SLICE).contains(&nal_type(*first)) => second & 0x80 != 0,
        [first, ..] => (6..=9).contains(&nal_type(*first)),
        [] => false,
    };
    match payload {
        [first, _, _, unit @ ..] if nal_type(*first) == STAP_A => unit_begins(unit),
        [first, header, second, ..] if nal_type(*first) == FU_A => {
            header & START != 0 && unit_begins(&[nal_type(*header), *second])
        }
        unit => unit_begins(unit),
    }
}

/// The fragments of a unit, in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Fragments {
    /// None is open.
    #[default]
    None,
    /// Their unit begins there in the byte stream.
    Open(usize),
    /// Others of their unit are missing.
    Broken,
}

#[derive(Debug, Default)]
pub(super) struct Building {
    pub(super) unit: AccessUnit,
    fragments: Fragments,
}

impl Building {
    /// Takes the payload of the next packet.
    pub(super) fn add(&mut self, payload: &[u8]) {
        let Some((first, rest)) = payload.split_first() else { return };
        let kind = nal_type(*first);
        if kind != FU_A {
            self.close();
        }
        match kind {
            FU_A => self.fragment(*first, rest),
            STAP_A => self.aggregation(rest),
            _ => self.nal_unit(payload),
        }
    }

    fn nal_unit(&mut self, unit: &[u8]) {
        match unit.first() {
            // A forbidden bit says that the unit is not what was sent (section 5.3).
            Some(first) if PROPER.contains(&nal_type(*first)) && first & 0x80 == 0 => {
                self.unit.key |= nal_type(*first) == IDR_SLICE;
                write_nal_unit(&mut self.unit.bytes, unit);
            }
            // Reserved types, and those of other modes, are ignored (section 5.4).
            Some(first) if first & 0x80 == 0 => {}
            _ => self.break_unit(),
        }
    }

    fn aggregation(&mut self, mut rest: &[u8]) {
        while let Some((length, tail)) = rest.split_first_chunk::<2>() {
            let Some((unit, tail)) = tail.split_at_checked(usize::from(u16::from_be_bytes(*length))) else {
                return self.break_unit();
            };
            self.nal_unit(unit);
            rest = tail;
        }
        if !rest.is_empty() {
            self.break_unit();
        }
    }

    fn fragment(&mut self, indicator: u8, rest: &[u8]) {
        let Some((header, part)) = rest.split_first() else { return self.break_unit() };
        let kind = nal_type(*header);
        if header & START != 0 {
            self.close();
            if !PROPER.contains(&kind) || indicator & 0x80 != 0 {
                self.break_unit();
                self.fragments = Fragments::Broken;
            } else {
                self.fragments = Fragments::Open(self.unit.bytes.len());
                write_nal_unit(&mut self.unit.bytes, &[indicator & FLAGS | kind]);
            }
        }
        match self.fragments {
            Fragments::Open(_) => self.unit.bytes.extend(part),
            Fragments::Broken => {}
            // The fragment before is missing, and the unit with it.
            Fragments::None => {
                self.break_unit();
                self.fragments = Fragments::Broken;
            }
        }
        if header & END != 0 {
            self.unit.key |= matches!(self.fragments, Fragments::Open(_)) && kind == IDR_SLICE;
            self.fragments = Fragments::None;
        }
    }

    /// Packets are missing here; `before` the unit's first one.
    pub(super) fn gap(&mut self, before: bool) {
        self.unit.whole &= before;
        let open = matches!(self.fragments, Fragments::Open(_));
        self.close();
        if open {
            self.fragments = Fragments::Broken;
        }
    }

    /// No further fragment of an open unit comes.
    pub(super) fn close(&mut self) {
        if let Fragments::Open(at) = self.fragments {
            self.unit.bytes.truncate(at);
            self.break_unit();
        }
        self.fragments = Fragments::None;
    }

    fn break_unit(&mut self) {
        self.unit.broken += 1;
        self.unit.whole = false;
    }
}
