//! Packets of a source, in and out of order, on their way to access units (RFC 6184, section 7.1).

use std::collections::BTreeMap;

use super::assemble::{AccessUnit, Building, begins_picture};

/// Packets that are held at most: four seconds of 10 Mbit/s.
const MAX_PACKETS: usize = 4_096;
/// Bytes of their payloads at most.
const MAX_BYTES: usize = 4 << 20;
/// A number this far from the newest begins a sequence anew, if the next one follows it (RFC 3550, A.1: `MAX_DROPOUT`). It holds
/// backwards too, since packets that are sent again come late.
const WINDOW: u64 = 3_000;

/// Counts of a [`Depacketizer`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DepacketizerCounts {
    /// Packets that came after their access unit was given out.
    pub late: u64,
    /// Packets that came again.
    pub duplicates: u64,
    /// Packets left out to bound memory.
    pub overflowed: u64,
    /// Times that the sequence began anew.
    pub restarts: u64,
}

#[derive(Clone, Debug)]
struct Held {
    timestamp: u32,
    marker: bool,
    payload: Vec<u8>,
}

/// Packets of one source on their way to access units.
///
/// [`pop`](Depacketizer::pop) waits for whatever is missing; [`force`](Depacketizer::force) does not. Memory is bounded.
#[derive(Clone, Debug, Default)]
pub struct Depacketizer {
    /// Numbers beyond 16 bits: the newest that came, and the next one to be given out once one was.
    newest: u64,
    next: Option<u64>,
    held: BTreeMap<u64, Held>,
    bytes: usize,
    /// Successor of a number outside of the window.
    stray: Option<u16>,
    /// Time of the unit given out last.
    given: Option<u32>,
    /// True if packets are missing behind it, of it or of the next one.
    gap: bool,
    counts: DepacketizerCounts,
}

impl Depacketizer {
    /// Takes a packet. An empty payload is that of a packet that carries nothing but has a number, such as padding.
    pub fn push(&mut self, sequence: u16, timestamp: u32, marker: bool, payload: &[u8]) {
        let Some(number) = self.number(sequence) else { return };
        if self.next.is_some_and(|next| number < next) {
            self.counts.late += 1;
            return;
        }
        if self.held.contains_key(&number) {
            self.counts.duplicates += 1;
            return;
        }
        // The rest of a unit that was given out without it: nothing but its number is of use.
        let late = self.given == Some(timestamp) && !payload.is_empty();
        self.counts.late += u64::from(late);
        let payload = if late { &[] } else { payload };
        self.bytes += payload.len();
        self.held.insert(number, Held { timestamp, marker, payload: payload.to_vec() });
        while self.held.len() > MAX_PACKETS || self.bytes > MAX_BYTES {
            let Some((_, oldest)) = self.held.pop_first() else { return };
            self.bytes -= oldest.payload.len();
            self.counts.overflowed += 1;
        }
    }

    /// The oldest access unit, if all of it and all before it came.
    pub fn pop(&mut self) -> Option<AccessUnit> {
        let end = self.end(false)?;
        Some(self.take(end))
    }

    /// The oldest access unit of which anything came, whatever is missing.
    pub fn force(&mut self) -> Option<AccessUnit> {
        let end = self.end(true)?;
        Some(self.take(end))
    }

    /// Time of the oldest access unit of which anything came.
    pub fn oldest(&self) -> Option<u32> {
        self.held.values().find(|held| !held.payload.is_empty()).map(|held| held.timestamp)
    }

    /// True if a packet is missing before one that came.
    pub fn is_missing(&self) -> bool {
        let first = self.next.or_else(|| self.held.keys().next().copied());
        let last = self.held.keys().next_back();
        first.zip(last).is_some_and(|(first, last)| last + 1 - first > self.held.len() as u64)
    }

    /// Counts so far.
    pub fn counts(&self) -> DepacketizerCounts {
        self.counts
    }

    /// The number beyond 16 bits that is nearest to the newest. A number out of the window is left out unless it follows another one there.
    fn number(&mut self, sequence: u16) -> Option<u64> {
        let first = self.newest == 0;
        let ahead = i64::from(sequence.wrapping_sub(self.newest as u16) as i16);
        if first || ahead.unsigned_abs() > WINDOW {
            let follows = self.stray.replace(sequence.wrapping_add(1)) == Some(sequence);
            if !first && !follows {
                return None;
            }
            self.counts.restarts += u64::from(!first);
            (self.next, self.given, self.gap, self.bytes) = (None, None, false, 0);
            self.held.clear();
            // Room below for those that it overtook.
            self.newest = 1 << 32 | u64::from(sequence);
        }
        self.stray = None;
        let ahead = i64::from(sequence.wrapping_sub(self.newest as u16) as i16);
        let number = self.newest.checked_add_signed(ahead)?;
        self.newest = self.newest.max(number);
        Some(number)
    }

    /// The number after the oldest access unit. Without `force`, nothing where a number before it is missing.
    fn end(&self, force: bool) -> Option<u64> {
        let mut next = self.next.or_else(|| self.held.keys().next().copied())?;
        let mut timestamp = None;
        for (number, held) in &self.held {
            if *number != next && !force {
                return None;
            }
            next = number + 1;
            if held.payload.is_empty() {
                continue;
            }
            if timestamp.is_some_and(|timestamp| timestamp != held.timestamp) {
                return Some(*number);
            }
            timestamp = Some(held.timestamp);
            if held.marker {
                return Some(next);
            }
        }
        timestamp.filter(|_| force).map(|_| next)
    }

    /// Takes the packets before `end` as an access unit.
    fn take(&mut self, end: u64) -> AccessUnit {
        let later = self.held.split_off(&end);
        let packets = core::mem::replace(&mut self.held, later);
        let begins = packets.values().find(|held| !held.payload.is_empty());
        let mut next = self.next.or_else(|| packets.keys().next().copied()).unwrap_or(end);
        let mut building = Building::default();
        let mut last = None;
        building.unit.timestamp = begins.map_or(0, |held| held.timestamp);
        building.unit.whole = !self.gap || begins.is_some_and(|held| begins_picture(&held.payload));
        for (number, held) in &packets {
            self.bytes -= held.payload.len();
            if *number != next {
                building.unit.lost += number - next;
                // Packets that are missing before a payload that begins a unit are of others.
                building.gap(last.is_none() && begins_picture(&held.payload));
            }
            next = number + 1;
            building.add(&held.payload);
            last = Some(held).filter(|held| !held.payload.is_empty()).or(last);
        }
        // The unit's end may be among the missing, unless the packet after them begins a picture or the last one had the marker.
        building.unit.lost += end - next;
        let ends = last.is_some_and(|held| held.marker)
            || end == next && self.held.first_key_value().is_some_and(|(number, _)| *number == end);
        building.unit.whole &= ends;
        building.close();
        (self.next, self.given, self.gap) = (Some(end), Some(building.unit.timestamp), end != next);
        building.unit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::h264::{packetize, write_nal_unit};

    /// A parameter set and a slice of eight bytes, as an STAP-A of one unit and three fragments of three bytes of it each.
    const PAYLOADS: [&[u8]; 4] =
        [&[0x78, 0, 2, 0x67, 0x42], &[0x7c, 0x85, 0x80, 1, 2], &[0x7c, 5, 3, 4], &[0x7c, 0x45, 5, 6]];
    const WHOLE: [u8; 18] = [0, 0, 0, 1, 0x67, 0x42, 0, 0, 0, 1, 0x65, 0x80, 1, 2, 3, 4, 5, 6];

    fn pushed(order: &[usize]) -> Depacketizer {
        let mut depacketizer = Depacketizer::default();
        for index in order {
            // Over the end of 16 bits.
            let sequence = 65_534_u16.wrapping_add(*index as u16);
            depacketizer.push(sequence, 3_000, *index == 3, PAYLOADS[*index]);
        }
        depacketizer
    }

    #[test]
    fn packets_in_any_order_make_the_unit_that_was_sent() {
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]] {
            let mut depacketizer = pushed(&order);
            let unit = depacketizer.pop().unwrap();
            assert_eq!((unit.bytes, unit.timestamp), (WHOLE.to_vec(), 3_000));
            assert_eq!((unit.whole, unit.key, unit.lost, unit.broken), (true, true, 0, 0));
            assert_eq!(depacketizer.force(), None);
        }
    }

    #[test]
    fn a_missing_fragment_takes_its_unit_along_and_nothing_else() {
        let mut depacketizer = pushed(&[0, 1, 3]);
        assert_eq!(depacketizer.pop(), None); // it may still come
        assert_eq!(depacketizer.oldest(), Some(3_000));
        let unit = depacketizer.force().unwrap();
        assert_eq!(unit.bytes, WHOLE[..6]);
        assert_eq!((unit.whole, unit.key, unit.lost, unit.broken), (false, false, 1, 1));
        // It comes after all.
        depacketizer.push(0, 3_000, false, PAYLOADS[2]);
        assert_eq!(depacketizer.counts().late, 1);
        assert_eq!(depacketizer.force(), None);
    }

    /// The end of a picture is missing, or a whole one between two.
    #[test]
    fn a_loss_is_counted_where_it_is_and_the_next_picture_is_whole() {
        let mut depacketizer = Depacketizer::default();
        depacketizer.push(1, 10, false, &[0x41, 0x80]);
        depacketizer.push(3, 20, true, &[0x41, 0x80]);
        depacketizer.push(5, 40, true, &[0x41, 0x80]);
        depacketizer.push(7, 50, true, &[0x41, 0x40]); // its first slice is missing
        assert_eq!(depacketizer.pop(), None);
        let units = std::iter::from_fn(|| depacketizer.force());
        let told: Vec<_> = units.map(|unit| (unit.timestamp, unit.whole, unit.lost)).collect();
        assert_eq!(told, [(10, false, 1), (20, true, 0), (40, true, 1), (50, false, 1)]);
    }

    #[test]
    fn a_unit_ends_by_its_marker_or_by_the_next_time() {
        let mut depacketizer = Depacketizer::default();
        depacketizer.push(1, 10, false, &[0x41, 0x80]);
        assert_eq!(depacketizer.pop(), None);
        depacketizer.push(2, 0, false, &[]); // padding
        depacketizer.push(3, 20, true, &[0x41, 0x80]);
        assert_eq!(depacketizer.pop().map(|unit| (unit.timestamp, unit.whole)), Some((10, true)));
        assert_eq!(depacketizer.pop().map(|unit| (unit.timestamp, unit.whole)), Some((20, true)));
    }

    #[test]
    fn the_rest_of_a_unit_that_was_given_out_is_late_and_holds_up_nothing() {
        let mut depacketizer = pushed(&[0, 1, 2]);
        assert!(!depacketizer.force().unwrap().whole);
        depacketizer.push(1, 3_000, true, PAYLOADS[3]);
        depacketizer.push(2, 6_000, true, &[0x41, 0x80]);
        assert_eq!(depacketizer.pop().map(|unit| (unit.timestamp, unit.whole)), Some((6_000, true)));
        assert_eq!(depacketizer.counts().late, 1);
    }

    #[test]
    fn reserved_types_are_ignored_and_what_cannot_be_read_is_told() {
        let unit = |payload: &[u8]| {
            let mut depacketizer = Depacketizer::default();
            depacketizer.push(1, 10, true, payload);
            depacketizer.pop().unwrap()
        };
        for ignored in [[0x40, 1], [0x59, 1], [0x5a, 1], [0x5d, 1], [0x5f, 1]] {
            assert_eq!((unit(&ignored).bytes.len(), unit(&ignored).broken), (0, 0), "{ignored:02x?}");
        }
        // A forbidden bit, a fragment without header, one of a fragment, an aggregation's unit that is longer than the payload, half a length.
        for broken in [&[0xc1, 1][..], &[0x5c], &[0x5c, 0x9c, 1], &[0x58, 0, 9, 0x41], &[0x58, 0]] {
            let unit = unit(broken);
            assert_eq!((unit.bytes.len(), unit.broken, unit.whole), (0, 1, false), "{broken:02x?}");
        }
    }

    #[test]
    fn a_sequence_may_begin_anew_and_one_stray_packet_does_not_do_it() {
        let mut depacketizer = Depacketizer::default();
        for (sequence, timestamp) in [(100, 10), (40_000, 11), (101, 20), (50_000, 12), (50_001, 30)] {
            depacketizer.push(sequence, timestamp, true, &[0x41, 0x80]);
        }
        assert_eq!(depacketizer.counts().restarts, 1);
        assert_eq!(depacketizer.pop().map(|unit| unit.timestamp), Some(30));
    }

    #[test]
    fn memory_is_bounded() {
        let mut depacketizer = Depacketizer::default();
        let payload = [0x41; 1_200];
        for sequence in 0..20_000_u16 {
            depacketizer.push(sequence, 10, false, &payload);
        }
        assert!(depacketizer.bytes <= MAX_BYTES && depacketizer.held.len() <= MAX_PACKETS);
        assert_eq!(
            depacketizer.held.values().map(|held| held.payload.len()).sum::<usize>(),
            depacketizer.bytes
        );
        let unit = depacketizer.force().unwrap();
        assert_eq!(unit.bytes.len() / 1_204 + depacketizer.counts().overflowed as usize, 20_000);
        assert_eq!(depacketizer.bytes, 0);
    }

    #[test]
    fn what_is_packetized_is_put_together_again() {
        let mut stream = WHOLE.to_vec();
        write_nal_unit(&mut stream, &[[0x61, 0x40], [0x99; 2]].concat().repeat(300));
        let mut depacketizer = Depacketizer::default();
        let payloads = packetize(&stream, 100);
        for (index, payload) in payloads.iter().enumerate() {
            assert!(payload.len() <= 100);
            depacketizer.push(index as u16, 7, index + 1 == payloads.len(), payload);
        }
        assert_eq!(depacketizer.pop().map(|unit| unit.bytes), Some(stream));
    }
}
